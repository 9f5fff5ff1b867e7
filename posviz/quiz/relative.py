"""Exercises and bets of chapter 4: the four terms, T5's buckets, DeBERTa's rows, the shift, Transformer-XL's score."""

from functools import partial

import numpy as np

from posviz import deberta_index, relative_shift, t5_bucket
from posviz.quiz import Bet, choice, function, number

WHAT_STAYS = choice(
    "4.1",
    "a",
    right="Only term 1 has no position in it.",
    b="p_m · p_n alone depends on the distance only. In term 4 two matrices stand between: section 1 shows it change.",
    c="That is what relative methods are made for. Here three terms change: see section 1.",
    d="Term 1 holds words and weights, no position vector. What could change it?",
)

BUCKET_ON_PAPER = number(
    "4.2",
    int(t5_bucket(-40, bidirectional=False)),
    (7, "The logarithmic buckets come after the exact ones."),
    (24, "The fraction is cut off, not rounded up."),
    (int(t5_bucket(-40)), "That is the bucket when the future is visible too: the past then has 16 in all."),
    (40, "Only distances below 16 have a bucket of their own."),
    (21, "The logarithm runs from 16 to 128, so it is divided by ln(128 ÷ 16), not by ln 16."),
    right="16 + trunc(16 × ln 2.5 ÷ ln 8) = 16 + trunc(7.05) = 23.",
    nudge="How many buckets are exact, and how far along the logarithm from 16 to 128 is 40?",
    formula="16 + the whole part of 16 × ln(40 ÷ 16) ÷ ln(128 ÷ 16).",
)

_DISTANCE = 4 - np.arange(8)  # query 4, keys 0 … 7

ROWS_OF_A_TABLE = number(
    "4.3",
    deberta_index(8, span=3)[4],
    (np.clip(_DISTANCE + 3, 0, 6), "The table has 2c rows, counted from 0."),
    (
        np.clip(3 - _DISTANCE, 0, 5),
        "That counts the past as negative. DeBERTa counts m − n: the past has large indices.",
    ),
    (_DISTANCE + 3, "The index must stay within the rows of the table."),
    (np.clip(_DISTANCE, -3, 2), "The first row of the table has the index 0, not −c."),
    (_DISTANCE, "Those are the distances m − n. Which row of the table serves each of them?"),
    right="m − n + 3, cut off at 0 and at 5: the last row serves every distance from 2 on.",
    nudge="Which row serves distance 0, and what happens to distances beyond the ends of the table?",
    formula="For n = 0 … 7: 4 − n + c, then nothing below 0 and nothing above 2c − 1.",
)


def by_key(by_distance, shift=relative_shift, hidden=0):
    """Columns for distances keys − 1 … 0, moved to their keys; what lies in the future becomes `hidden`."""
    queries, keys = np.shape(by_distance)
    return np.where(np.tri(queries, keys, keys - queries, dtype=bool), shift(by_distance), hidden)


def _without_last_row(by_distance):
    queries, keys = by_distance.shape
    return np.c_[np.zeros(queries), by_distance].reshape(keys + 1, queries)[:-1].reshape(queries, keys)


def _without_memory(by_distance):
    return np.tril([np.roll(row, i + 1) for i, row in enumerate(by_distance)])


SHIFT_WITH_MEMORY = function(
    "4.4",
    by_key,
    (relative_shift, "Beside the visible part stand leftovers. Set them to 0."),
    (partial(by_key, hidden=-np.inf), "−inf comes later, from a mask. Here keys in the future have 0."),
    (partial(by_key, shift=np.asarray), "The future is hidden, but no row has moved. Which ones must?"),
    (partial(by_key, shift=_without_last_row), "After the new reading drop the first row, not the last."),
    (_without_memory, "With more keys than queries the last query lines up with the last key."),
    probes=[(np.arange(1.0, 10).reshape(3, 3),), (np.arange(1.0, 11).reshape(2, 5) ** 2,)],
    right="Every visible score is under its key, and nothing else is left.",
    nudge="In row m, how far back from the query is key n, and in which column does that distance stand?",
    formula="Entry (m, n) is by_distance[m, keys − 1 − distance], with distance = m + (keys − queries) − n.",
)


def raw_scores(q, k, r, u, v, sign=1, hidden=0):
    """(q_m + u) · k_n + (q_m + v) · r_(m−n) for n ≤ m; what lies in the future becomes `hidden`."""
    distance = sign * np.subtract.outer(np.arange(len(q)), np.arange(len(q)))
    scores = (q + u) @ k.T + np.take_along_axis((q + v) @ r.T, distance % len(q), axis=1)
    return np.where(distance * sign >= 0, scores, hidden)


def _probe(n, d):
    draw = np.random.RandomState(n)  # the one NumPy stream that no version changes
    return tuple(draw.normal(size=shape) for shape in ((n, d), (n, d), (n, d), d, d))


TRANSFORMER_XL_SCORE = function(
    "4.5",
    raw_scores,
    (lambda q, k, r, u, v: raw_scores(q, k, r, v, u), "Swapped: u meets the key, v meets the distance."),
    (lambda q, k, r, u, v: raw_scores(q, k, r, u, u), "Term 4 takes v, not u."),
    (lambda q, k, r, u, v: raw_scores(q, k, r, 0 * u, 0 * v), "Terms 3 and 4, with u and v, are missing."),
    (
        partial(raw_scores, sign=-1),
        "The sign: a past key has a positive distance, and a negative index counts from the end of r.",
    ),
    (lambda *a: raw_scores(*a) / len(a[-1]) ** 0.5, "The raw score is asked for: do not divide by √d yet."),
    (partial(raw_scores, hidden=-np.inf), "−inf comes later, from a mask. Here keys in the future have 0."),
    probes=[_probe(3, 2), _probe(5, 4)],
    right="Four terms, the right vectors, the right sign.",
    nudge="Four terms for each pair: which vectors meet the key, which meet the distance, and which distance is it?",
    formula="Entry (m, n) for n ≤ m is q_m · k_n + q_m · r_(m−n) + u · k_n + v · r_(m−n); the others are 0.",
)

WHAT_CHANGES = Bet(
    "4.1",
    "The same three words stand 100 tokens later. Which of the four terms change?",
    ("none", "2 and 3", "2, 3 and 4", "all four"),
    "2, 3 and 4",
    "Terms 1 to 4 change by up to 0.0, 1.15, 1.121 and 0.479. Two matrices stand between the positions of term 4.",
)

ONE_BUCKET = Bet(
    "4.2",
    "Are the distances 112, 113 and 128 in one bucket?",
    ("all three", "112 and 113", "113 and 128", "none with another"),
    "113 and 128",
    "Distance 112 is in bucket 30. The last bucket, 31, begins at 113 and not at 128.",
)

WHAT_TERM_3_SEES = Bet(
    "4.3",
    "Term 3 of Transformer-XL was position × word. What does it depend on now?",
    ("the key's word", "the key's word and the distance", "the key's word and the query's place", "nothing"),
    "the key's word",
    "Its u is one vector for every place, so neither the query nor the distance moves the term.",
)
