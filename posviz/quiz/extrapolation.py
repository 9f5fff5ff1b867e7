"""Exercises of chapter 6: entropy, a remedy, a new base, log-n row by row, frequencies by parts."""

from functools import partial

import numpy as np

from posviz import llama3_frequencies, ntk_base, rope_frequencies, softmax
from posviz.quiz import Bet, choice, function, number

WHO_STAYS_FLAT = Bet(
    "6.1",
    "ALiBi, T5's bias and RoPE all know the distance and nothing else. Whose loss at 8 times the trained length is at "
    "most a tenth above that at the trained length?",
    ("all three", "ALiBi and T5", "ALiBi alone", "none"),
    "ALiBi alone",
    "Loss at 1,024 bytes over the loss at 128, first seed: ALiBi 1.00, T5 1.28, RoPE 1.85.",
)

WHICH_PAIRS = Bet(
    "6.2",
    "RoPE trained on 128 bytes reads 256: the loss goes from 1.98 to 2.54. Pairs are held at the angle of distance 64. "
    "Which must be held to bring the loss back?",
    ("the slow two, with new angles", "the fast six, with none", "all eight and no fewer"),
    "the slow two, with new angles",
    "Loss at 256 bytes, first seed: 1.98 with the slow two held at 64, 2.38 with the fast six, 1.98 with all.",
)

WHICH_CHANGE = Bet(
    "6.3",
    "A finished RoPE model has to score the last 64 of 1,024 bytes. Which gives the lowest loss?",
    ("NTK-aware", "YaRN", "clamped distances", "throw away all but the last 128 bytes"),
    "throw away all but the last 128 bytes",
    "Loss, mean of the seeds: NTK-aware 2.84, YaRN 2.54, clamped distances 2.18, the last 128 bytes alone 2.00.",
)

SPREAD_OUT = number(
    "6.1",
    np.log(8),
    (np.log(1024), "That is the entropy at 1,024 keys. By how much has it grown since 128 keys?"),
    (np.log(128), "That is the entropy at 128 keys, before it grows."),
    (3.0, "That is log2 of the ratio, in bits. Nats use the natural logarithm."),
    (8.0, "The number of keys is 8 times as large. Entropy is the logarithm of the number."),
    (np.log(1024) / np.log(128), "That is the ratio of the two entropies. Growth is their difference."),
    (np.log(1024 - 128), "Subtract the logarithms, not the numbers of keys."),
    within=0.01,
    right="ln 1,024 − ln 128 = ln 8: eight times the keys, 2.08 nats more, whatever the first length was.",
    nudge="What is the entropy of n equal weights?",
    formula="n equal weights have the entropy ln n. Take it at 1,024 keys and at 128, and subtract.",
)

WHAT_WOULD_YOU_DO = choice(
    "6.2",
    "d",
    right="It keeps the fast pairs, slows the slow ones and needs no training. What it costs has to be measured.",
    a="ALiBi must be there in training: section 4 puts it into a finished RoPE model, and the loss jumps.",
    b="PI needs a short fine-tuning: it moves neighbours closer together than the model has ever seen.",
    c="A sharper softmax works against too many keys. The angles stay as new as before.",
)

NEW_BASE = number(
    "6.3",
    ntk_base(10_000, 4, 64),
    (40_000.0, "That is b · s: it slows the last pair by 3.83 only. An exponent is missing."),
    (10_000 * 4 ** (62 / 64), "The exponent is upside down: it is above 1."),
    (10_000 / 4 ** (64 / 62), "A smaller base makes pairs faster. NTK-aware scaling slows them."),
    (2500.0, "PI divides each frequency by 4. Here the base is changed instead."),
    (10_000 * 4 ** (128 / 126), "That is for a head of 128 features. This one has 64."),
    within=1.0,
    right="10,000 · 4^(64/62) = 41,829, a little more than 4 times the base: the last pair is slowed by exactly 4.",
    nudge="The last pair should become exactly 4 times as slow. Which exponent does its frequency have?",
    formula="b′ = b · s^(d/(d−2)) with b = 10,000, s = 4 and d = 64.",
)


def _ratio(n, trained):
    return np.maximum(1, np.log(n) / np.log(trained))


def sharpened(scores, trained_length, factor=_ratio, mask=True):
    """Causal weights of a square table, each row sharpened by a factor made from the number of keys that it sees."""
    seen = np.arange(1.0, len(scores) + 1)[:, None]
    return softmax(scores * factor(seen, trained_length), mask=np.tri(len(scores), dtype=bool) if mask else None)


def _probes():
    scores = np.random.RandomState(3).normal(size=(12, 12))
    return [(scores, 4), (scores[:5, :5], 2), (3 * scores, 100)]


SHARPEN_EACH_ROW = function(
    "6.4",
    sharpened,
    (
        partial(sharpened, factor=lambda n, L: _ratio(len(n), L)),
        "All rows have the last one's factor. Row 0 sees one key.",
    ),
    (
        partial(sharpened, factor=lambda n, L: np.log(n) / np.log(L)),
        "Rows with few keys are flattened. Take at least 1.",
    ),
    (partial(sharpened, factor=lambda n, L: np.log(L / n)), "That turns attention round beyond L. Take the ratio."),
    (partial(sharpened, factor=lambda n, L: 1 / _ratio(n, L)), "Divided, attention gets flatter still. Multiply."),
    (partial(sharpened, factor=lambda n, L: _ratio(n - (n > 1), L)), "Row i sees its own key too, not only i keys."),
    (
        partial(sharpened, factor=lambda n, L: 1),
        "Those are the plain weights: a number added to a row changes nothing.",
    ),
    (partial(sharpened, mask=False), "The factor is right, but queries see the future: softmax needs a mask."),
    probes=_probes(),
    right="One factor a query, for the keys that it sees, and 1 up to the trained length.",
    nudge="How many keys does row i see, and what happens to rows that see fewer than the trained length?",
    formula="Multiply row i by max(1, ln(i + 1) / ln L), and take the causal softmax.",
)


def by_parts(dim, base, trained_length, factor):
    """Frequencies kept above 4 turns in training, divided by factor below 1 turn, mixed linearly in turns between."""
    return llama3_frequencies(dim, factor, base, trained_length)


def _ramp(turns, low=1, high=4):
    return np.clip((turns - low) / (high - low), 0, 1)


def _parts(dim, base, length, factor, keep=_ramp, turn=2 * np.pi):
    """The same from the turns of each pair, or a wrong one: another share that is kept, another turn."""
    theta = rope_frequencies(dim, base)
    share = keep(length * theta / turn)
    return share * theta + (1 - share) * theta / factor


def _mixed_wavelengths(dim, base, length, factor):
    theta = rope_frequencies(dim, base)
    share = _ramp(length * theta / (2 * np.pi))
    return 1 / (share / theta + (1 - share) * factor / theta)


LLAMA_3 = function(
    "6.5",
    by_parts,
    (partial(_parts, turn=1), "length × θ is an angle in radians. One turn is 2π of them."),
    (partial(_parts, keep=lambda turns: 1 - _ramp(turns)), "Upside down: pairs with many turns have seen every angle."),
    (partial(_parts, keep=lambda turns: turns >= 1), "The ramp between 1 turn and 4 is missing."),
    (partial(_parts, keep=lambda turns: (turns - 1) / 3), "The share that is kept leaves the range 0 to 1."),
    (partial(_parts, keep=lambda turns: _ramp(turns, low=0)), "The ramp starts at 0 turns. It should start at 1."),
    (_mixed_wavelengths, "You mix wavelengths. Mix frequencies."),
    (partial(_parts, keep=lambda turns: 0), "That is Position Interpolation: it slows down the fast pairs as well."),
    (lambda d, b, L, s: rope_frequencies(d, ntk_base(b, s, d)), "That is NTK-aware scaling: no pair's turns counted."),
    probes=[(128, 500_000.0, 8192, 8.0), (16, 100.0, 128, 4.0), (64, 10_000.0, 2048, 16.0)],
    right="This is Llama 3.1's scaling. With other limits it is the ramp of the YaRN paper.",
    nudge="How many turns does each pair make, and which share of its frequency is kept then?",
    formula="turns = L·θ/2π; share = (turns − 1)/3, kept within 0 … 1; result = share·θ + (1 − share)·θ/s.",
)
