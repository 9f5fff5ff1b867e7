"""Exercises and bets of chapter 5: an angle, what rotations promise, slow pairs, layouts, a bug that does not crash."""

import numpy as np

from posviz import rope, rope_frequencies
from posviz.quiz import Bet, choice, function, number

AN_ANGLE = number(
    "5.1",
    2.0,
    (4.0, "That is 0.25 × (12 + 4). Both turn the same way, so their angles are subtracted."),
    (3.0, "That is how far the query alone turns. The key turns too, in the same direction."),
    (1.0, "That is how far the key alone turns. The query turns too, in the same direction."),
    (-2.0, "The size is right. The query stands at the larger position, so it has turned further."),
    (8.0, "That is the distance in tokens. Each token of it counts 0.25 radians."),
    within=0.01,
    right="8 tokens apart at 0.25 radians a token: 2 radians, wherever the two stand.",
    nudge="By how much has each of the two turned?",
    formula="Work out the angle of each, position × 0.25, and take the difference.",
)

WHICH_IS_TRUE = choice(
    "5.2",
    "b",
    right="The distance stays, so in every pair the angle between query and key stays.",
    a="Scores of equal vectors fade on the whole; vectors aimed at distance 100 do not: see section 8.",
    c="Lengths stay, but directions change, and scores with them. Section 5 measures the new output.",
    d="The angle exists for every position, but the trained weights have not met it: see section 9.",
)


def _slowest(turns):
    """The last pair of a head of 128 features that makes so many turns in 2,048 tokens."""
    return np.flatnonzero(2048 * rope_frequencies(128) >= turns * 2 * np.pi)[-1]


THREE_TURNS = number(
    "5.3",
    _slowest(3),
    (_slowest(3 / (2 * np.pi)), "That pair turns by three radians. A turn is 2π of them."),
    (_slowest(3) + 1, "That pair makes 2.82 turns. Pairs are counted from 0."),
    (2 * _slowest(3), "That is the number of a feature. Pair i holds features 2i and 2i + 1."),
    (_slowest(1), "That pair is the slowest that makes one turn. Three are asked for."),
    (0, "Pair 0 is the fastest. The slowest that still makes three turns is asked for."),
    right="Pair 32 turns 0.01 radians a token: 20.48 radians, 3.26 turns. Pair 33 makes 2.82.",
    nudge="How many turns does pair i make in 2,048 tokens?",
    formula="Pair i makes 2048 × θ_i ÷ 2π turns, with θ_i = 10000^(−2i/128). Take the largest i with at least 3.",
)


def rope_half(x, positions):
    """RoPE in layout half."""
    return rope(x, positions, layout="half")


def _to_half(x):
    return np.concatenate([x[..., 0::2], x[..., 1::2]], axis=-1)


def _from_half(x):
    return np.stack(np.split(x, 2, axis=-1), axis=-1).reshape(x.shape)


OTHER_LAYOUT = function(
    "5.4",
    rope_half,
    (rope, "That is the interleaved layout itself: it pairs neighbours. Reorder the features before and after."),
    (lambda x, m: rope(_from_half(x), m), "Turned, but left in interleaved order. The result should be in half order."),
    (lambda x, m: _to_half(rope(x, m)), "The result is reordered, but x comes in half order as well."),
    (lambda x, m: _from_half(rope(_to_half(x), m)), "The two reorderings are swapped: x comes in half order."),
    (lambda x, m: rope(_to_half(x), m), "x has that order already. Undo it before the turn (np.argsort helps)."),
    probes=[(np.arange(1.0, 9), 5), (np.cos(np.arange(30.0)).reshape(3, 10), [0, 7, 1000])],
    right="The same rotation, with the features in another order.",
    nudge="Which features does `rope` pair, and which should be paired? Bring those side by side first.",
    formula="Three steps: x to interleaved order, rope, and back. half(x[P]) = interleaved(x)[P] says how.",
)


def _suspects(x, m):
    """x as each of the three suspects turns it at position m."""
    theta, neighbours = m * rope_frequencies(len(x)), np.stack([-x[1::2], x[0::2]], axis=-1).ravel()
    halves = np.concatenate([-x[len(x) // 2 :], x[: len(x) // 2]])
    repeated, tiled = np.repeat(theta, 2), np.tile(theta, 2)
    for angles, partners in ((repeated, neighbours), (repeated, halves), (tiled, halves)):
        yield x * np.cos(angles) + partners * np.sin(angles)


def _scores(m, n):
    """The score of q at m and k at n, by each suspect."""
    q, k = np.array([1.0, 2, 3, 4]), np.array([0.5, -1, 2, 1.5])
    return np.array([query @ key for query, key in zip(_suspects(q, m), _suspects(k, n))])


CATCH_THE_BUG = number(
    "5.5",
    abs(_scores(10, 8) - _scores(3, 1)),
    (_scores(10, 8) - _scores(3, 1), "The sizes are right. Leave out the sign, so that 0 means equal."),
    (abs(_scores(1, 3) - _scores(3, 1)), "(3, 1) and (1, 3) are not the same distance: their scores may differ."),
    ([0, 0, 0], "No difference? Turn q and k with the suspect itself, each at its own position."),
    (_scores(10, 8), "Those are the scores at (10, 8). By how much do they differ from those at (3, 1)?"),
    within=0.01,
    right="Suspect b is the culprit. Its angles are laid out for neighbours and its partners half a vector away.",
    nudge="The two pairs of positions are equally far apart. What should a right RoPE say of their scores?",
    formula="For each suspect, turn(q, 10) @ turn(k, 8) minus turn(q, 3) @ turn(k, 1), without its sign.",
)

MOVED_TOGETHER = Bet(
    "5.1",
    "Query at 3, key at 1, 0.3 radians a token. Both move on by 10. What happens to the score?",
    ("it falls", "it stays", "it rises", "it changes its sign"),
    "it stays",
    "Both turn by 3 radians more, so the angle between them stays, and the score stays +0.947.",
)

COME_ROUND = Bet(
    "5.2",
    "In a text of 2,048 tokens, how many of the 64 pairs come round at least once?",
    ("all", "about two thirds", "about a third", "fewer than ten"),
    "about two thirds",
    "At position 2,048 it is 41 of 64, at 1,000 it is 36. The slowest has made 0.038 of a turn.",
)

NEAREST_PATCH = Bet(
    "5.3",
    "Patches are numbered one by one, row after row. The query is at the left edge. Which patch scores higher?",
    ("the one right below it", "the far end of the row above", "both the same"),
    "the far end of the row above",
    "That patch is 1 token away and scores 0.944; the one right below is 16 away and scores 0.256.",
)
