"""The exercises of chapter 5 (RoPE): the right answers come from the formulas, the wrong ones from likely mistakes."""

import numpy as np

from posviz import rope, rope_frequencies
from posviz.quiz import choice, function, number


def _slowest(turns):
    """The last pair of a head of 128 features that makes so many turns in 2,048 tokens."""
    return int(np.flatnonzero(2048 * rope_frequencies(128) >= turns * 2 * np.pi)[-1])


_THREE_TURNS = _slowest(turns=3)


def _order(width):
    return np.r_[0:width:2, 1:width:2]  # evens, then odds


def _from_half(x):
    """Features of layout half, put where layout interleaved has them."""
    x = np.asarray(x)
    return x[..., np.argsort(_order(x.shape[-1]))]


def _to_half(x):
    x = np.asarray(x)
    return x[..., _order(x.shape[-1])]


def rope_half(x, positions):
    return rope(x, positions, layout="half")


def suspect_a(x, m):
    angles = np.repeat(m * rope_frequencies(len(x)), 2)
    return x * np.cos(angles) + np.stack([-x[1::2], x[0::2]], axis=-1).ravel() * np.sin(angles)


def suspect_b(x, m):
    angles, half = np.repeat(m * rope_frequencies(len(x)), 2), len(x) // 2
    return x * np.cos(angles) + np.concatenate([-x[half:], x[:half]]) * np.sin(angles)


def suspect_c(x, m):
    angles, half = np.tile(m * rope_frequencies(len(x)), 2), len(x) // 2
    return x * np.cos(angles) + np.concatenate([-x[half:], x[:half]]) * np.sin(angles)


def _gaps(first, second, size=abs):
    """Score at `second` minus score at `first` for each suspect; both are (query position, key position)."""
    q, k = np.array([1.0, 2, 3, 4]), np.array([0.5, -1, 2, 1.5])
    return [
        size(float(turn(q, second[0]) @ turn(k, second[1]) - turn(q, first[0]) @ turn(k, first[1])))
        for turn in (suspect_a, suspect_b, suspect_c)
    ]


EXERCISES = [
    number(
        "5.1",
        2.0,
        within=0.01,
        right="8 tokens apart at 0.25 radians a token: 2 radians, wherever the two stand.",
        wrong=[
            (4.0, "That is 0.25 × (12 + 4). Both turn the same way, so their angles are subtracted."),
            (3.0, "That is how far the query alone turns. The key turns too, in the same direction."),
            (1.0, "That is how far the key alone turns. The query turns too, in the same direction."),
            (-2.0, "The size is right. The query stands at the larger position, so it has turned further: plus."),
            (8.0, "That is the distance in tokens. Each token of it counts 0.25 radians."),
        ],
        otherwise="Work out the angle of each, position × 0.25, and take the difference.",
    ),
    choice(
        "5.2",
        "b",
        options=["a", "b", "c", "d"],
        right="The distance stays, so in every pair the angle between query and key stays.",
        wrong={
            "a": "Scores of equal vectors fade on the whole. Those of random vectors do not, and vectors can be aimed "
            "at distance 100: see section 8.",
            "c": "Lengths stay, but directions change, and scores with them. Section 5 measures the new output.",
            "d": "The angle exists for every position, but the trained weights have not met it: see section 9.",
        },
    ),
    number(
        "5.3",
        _THREE_TURNS,
        within=0,
        right="Pair 32 turns 0.01 radians a token: 20.48 radians, 3.26 turns. Pair 33 makes 2.82.",
        wrong=[
            (_slowest(turns=3 / (2 * np.pi)), "A turn is 2π radians: 3 turns are 18.85 radians, not 3."),
            (_THREE_TURNS + 1, "One too many. Pairs are counted from 0, and pair 33 makes 2.82 turns."),
            (2 * _THREE_TURNS, "That is the number of its first feature. Pair i holds features 2i and 2i + 1."),
            (_slowest(turns=1), "That pair is the slowest that makes one turn. Three are asked for."),
            (0, "Pair 0 is the fastest. The slowest that still makes three turns is asked for."),
        ],
        otherwise="Pair i makes 2048 × θ_i ÷ 2π turns, with θ_i = 10000^(−2i/128). Take the largest i with at least 3.",
    ),
    function(
        "5.4",
        rope_half,
        probes=[(np.arange(1.0, 9), 5), (np.cos(np.arange(30.0)).reshape(3, 10), [0, 7, 1000])],
        right="The same rotation, with the features in another order.",
        wrong=[
            (
                lambda x, m: rope(x, m),
                "That is the interleaved layout itself: it pairs neighbours. Reorder the features before and after.",
            ),
            (
                lambda x, m: rope(_from_half(x), m),
                "The features are turned, but left in interleaved order. Put evens first and odds after them again.",
            ),
            (
                lambda x, m: _to_half(rope(x, m)),
                "The result is reordered, but x comes in half order. Undo that order before the turn.",
            ),
            (
                lambda x, m: _from_half(rope(_to_half(x), m)),
                "The two reorderings are swapped: x comes in half order, so first apply the inverse of [0, 2, …, 1, 3, …] "
                "(np.argsort gives it).",
            ),
            (
                lambda x, m: rope(_to_half(x), m),
                "x has the order already: undo it (np.argsort gives the inverse), turn, and apply it to the result.",
            ),
        ],
        otherwise="Three steps: x to interleaved order, rope, and back. half(x[P]) = interleaved(x)[P] says how.",
    ),
    number(
        "5.5",
        _gaps((3, 1), (10, 8)),
        within=0.01,
        right="Suspect b is the culprit. Its angles are laid out for neighbours and its partners half a vector away.",
        wrong=[
            (_gaps((3, 1), (10, 8), size=float), "The sizes are right. Leave out the sign, so that 0 means equal."),
            (
                _gaps((3, 1), (1, 3)),
                "Positions (3, 1) and (1, 3) lie at distances 2 and −2: even a right RoPE tells "
                "them apart. Compare (3, 1) with (10, 8).",
            ),
            ([0.0, 0.0, 0.0], "No difference? Compare (3, 1) with (10, 8), and turn q and k with the suspect itself."),
        ],
        otherwise="For each suspect, turn(q, 10) @ turn(k, 8) minus turn(q, 3) @ turn(k, 1), without its sign.",
    ),
]
