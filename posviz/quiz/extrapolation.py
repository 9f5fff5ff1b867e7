"""The exercises of chapter 6 (longer texts): right answers from the formulas, wrong ones from likely mistakes."""

import numpy as np

from posviz import llama3_frequencies, log_n_factor, ntk_base, rope_frequencies, softmax
from posviz.quiz import choice, function, number


def sharpened(scores, trained_length):
    """Causal attention weights of a square table of scores, each row sharpened by log-n for the keys that it sees."""
    visible = np.arange(1, len(scores) + 1)
    return softmax(scores * log_n_factor(visible, trained_length)[:, None], mask=np.tri(len(scores), dtype=bool))


def _sharpened(factor, mask=True):
    """A wrong `sharpened`: factor(visible keys of each row, trained length) in place of the right one."""

    def wrong(scores, trained_length):
        scores = np.asarray(scores)
        changed = factor(scores, np.arange(1, len(scores) + 1.0)[:, None], trained_length)
        return softmax(changed, mask=np.tri(len(scores), dtype=bool) if mask else None)

    return wrong


def _log_ratio(n, trained):
    return np.maximum(1, np.log(n) / np.log(trained))


def by_parts(dim, base, trained_length, factor):
    """Frequencies kept above 4 turns in training, divided by factor below 1 turn, mixed linearly in turns between."""
    return llama3_frequencies(dim, factor, base, trained_length)


def _turns(theta, length):
    return length * theta / (2 * np.pi)


def _ramp(turns):
    return np.clip((turns - 1) / 3, 0, 1)


def _by_parts(turns=_turns, keep=_ramp):
    """A wrong `by_parts`: with other turns, or another share that is kept."""

    def wrong(dim, base, trained_length, factor):
        theta = rope_frequencies(dim, base)
        share = keep(turns(theta, trained_length))
        return share * theta + (1 - share) * theta / factor

    return wrong


def _mixed_wavelengths(dim, base, trained_length, factor):
    theta = rope_frequencies(dim, base)
    share = _ramp(_turns(theta, trained_length))
    return 1 / (share / theta + (1 - share) * factor / theta)


_scores = np.random.RandomState(3).normal(size=(12, 12))

EXERCISES = [
    number(
        "6.1",
        np.log(8),
        within=0.01,
        right="ln 1,024 − ln 128 = ln 8: eight times the keys, 2.08 nats more, whatever the first length was.",
        wrong=[
            (np.log(1024), "That is the entropy at 1,024 keys. By how much has it grown since 128 keys?"),
            (np.log(128), "That is the entropy at 128 keys, before it grows."),
            (3.0, "That is log2 of 8, in bits. Nats use the natural logarithm."),
            (8.0, "The number of keys is 8 times as large. Entropy is the logarithm of the number."),
            (np.log(1024) / np.log(128), "That is the ratio of the two entropies. Growth is their difference."),
            (np.log(1024 - 128), "Subtract the logarithms, not the numbers of keys."),
        ],
        otherwise="n equal weights have the entropy ln n. Take it at 1,024 keys and at 128, and subtract.",
    ),
    choice(
        "6.2",
        "d",
        options=["a", "b", "c", "d"],
        right="It keeps the fast pairs, slows the slow ones and needs no training. What it costs has to be measured.",
        wrong={
            "a": "ALiBi must be there in training: section 4 puts it into a finished RoPE model, and the loss jumps.",
            "b": "PI needs a short fine-tuning: it moves neighbours closer together than the model has ever seen.",
            "c": "A sharper softmax works against too many keys. The angles stay as new as before.",
        },
    ),
    number(
        "6.3",
        ntk_base(10_000, 4, 64),
        within=1.0,
        right="10,000 · 4^(64/62) = 41,829, a little more than 4 times the base: the last pair is slowed by exactly 4.",
        wrong=[
            (40_000.0, "That is b · s: it slows the last pair by 3.83 only. The exponent d/(d − 2) is missing."),
            (10_000 * 4 ** (62 / 64), "The exponent is upside down: it is d/(d − 2), above 1."),
            (10_000 / 4 ** (64 / 62), "A smaller base makes pairs faster. NTK-aware scaling slows them: multiply."),
            (2500.0, "PI divides each frequency by 4. Here the base is multiplied instead."),
            (10_000 * 4 ** (128 / 126), "That is for a head of 128 features. This one has 64."),
        ],
        otherwise="b′ = b · s^(d/(d−2)) with b = 10,000, s = 4 and d = 64.",
    ),
    function(
        "6.4",
        sharpened,
        probes=[(_scores, 4), (_scores[:5, :5], 2), (3 * _scores, 100)],
        right="One factor a query, for the keys that it sees, and 1 up to the trained length.",
        wrong=[
            (
                _sharpened(lambda s, n, trained: s * _log_ratio(len(s), trained)),
                "All rows have the factor of the last one. A causal query sees the keys up to itself: row i sees i + 1.",
            ),
            (
                _sharpened(lambda s, n, trained: s * np.log(n) / np.log(trained)),
                "Rows with few keys are flattened: ln n / ln L is below 1 there. Take at least 1.",
            ),
            (
                _sharpened(lambda s, n, trained: s * (np.log(trained) - np.log(n))),
                "ln L − ln n is 0 at the trained length and negative beyond: it turns attention round. Take the ratio.",
            ),
            (
                _sharpened(lambda s, n, trained: s / _log_ratio(n, trained)),
                "Divided, attention gets flatter still. Multiply, so that it gets sharper.",
            ),
            (
                _sharpened(lambda s, n, trained: s * _log_ratio(n, trained), mask=False),
                "The factor is right, but queries see the future: pass a causal mask to softmax.",
            ),
            (
                _sharpened(lambda s, n, trained: s * _log_ratio(n - 1 + (n == 1), trained)),
                "Nearly: row i sees i + 1 keys, itself among them, not i.",
            ),
            (
                _sharpened(lambda s, n, trained: s),
                "Those are the plain causal weights. (A number *added* to a row changes nothing.) Multiply the scores.",
            ),
        ],
        otherwise="Multiply row i by max(1, ln(i + 1) / ln L), and take the causal softmax.",
    ),
    function(
        "6.5",
        by_parts,
        probes=[(128, 500_000.0, 8192, 8.0), (16, 100.0, 128, 4.0), (64, 10_000.0, 2048, 16.0)],
        right="This is Llama 3.1's scaling. With other limits it is the ramp of the YaRN paper.",
        wrong=[
            (
                _by_parts(turns=lambda theta, length: length * theta),
                "length × θ is an angle in radians. One turn is 2π of them.",
            ),
            (
                _by_parts(keep=lambda turns: 1 - _ramp(turns)),
                "Upside down: pairs with *many* turns have seen every angle and are kept.",
            ),
            (
                _by_parts(keep=lambda turns: np.where(turns >= 1, 1.0, 0.0)),
                "Right at both ends, but without the ramp between 1 turn and 4.",
            ),
            (
                _by_parts(keep=lambda turns: (turns - 1) / 3),
                "The share that is kept leaves the range 0 to 1: np.clip stops it there.",
            ),
            (
                _by_parts(keep=lambda turns: np.clip(turns / 4, 0, 1)),
                "The ramp starts at 0 turns. It should start at 1: the share is (turns − 1) / (4 − 1).",
            ),
            (_mixed_wavelengths, "You mix wavelengths. Mix frequencies: share · θ + (1 − share) · θ / s."),
            (
                lambda dim, base, length, factor: rope_frequencies(dim, base) / factor,
                "That is Position Interpolation: it slows down the fast pairs as well.",
            ),
            (
                lambda dim, base, length, factor: rope_frequencies(dim, ntk_base(base, factor, dim)),
                "That is NTK-aware scaling. Here each pair is treated by the number of its turns.",
            ),
        ],
        otherwise="turns = L·θ/2π; share = (turns − 1)/3, kept within 0 … 1; result = share·θ + (1 − share)·θ/s.",
    ),
]
