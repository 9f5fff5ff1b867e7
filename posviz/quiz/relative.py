"""The exercises of chapter 4 (relative encodings): right answers from the formulas, wrong ones from likely mistakes."""

import numpy as np

from posviz import deberta_index, relative_shift, t5_bucket
from posviz.quiz import choice, function, number

_DISTANCE, _SPAN = 4 - np.arange(8), 3  # exercise 4.3: query 4, keys 0 … 7


def _visible(by_distance):
    queries, keys = np.shape(by_distance)
    return np.arange(keys) <= np.arange(queries)[:, None] + keys - queries


def by_key(by_distance):
    return np.where(_visible(by_distance), relative_shift(by_distance), 0)


def _in_place(by_distance):
    return np.where(_visible(by_distance), by_distance, 0)


def _without_last_row(by_distance):
    queries, keys = np.shape(by_distance)
    padded = np.concatenate([np.zeros((queries, 1)), by_distance], axis=1).reshape(keys + 1, queries)
    return np.where(_visible(by_distance), padded[:-1].reshape(queries, keys), 0)


def _without_memory(by_distance):
    scores = np.asarray(by_distance)
    queries, keys = scores.shape
    return np.array([[scores[i, keys - 1 - i + j] if j <= i else 0 for j in range(keys)] for i in range(queries)])


def _scores(pair, sign=1):
    """Scores as a function of (q, k, r, u, v), from one of (q_i, k_j, r_distance, u, v) for a visible pair."""

    def scores(q, k, r, u, v):
        n = len(q)
        return np.array(
            [[pair(q[i], k[j], r[sign * (i - j)], u, v) if j <= i else 0.0 for j in range(n)] for i in range(n)]
        )

    return scores


def _pair(q, k, r, u, v):
    return (q + u) @ k + (q + v) @ r


def _probe(n, d):
    draw = np.random.RandomState(n)  # the one NumPy stream that no version changes
    return tuple(draw.normal(size=shape) for shape in ((n, d), (n, d), (n, d), d, d))


EXERCISES = [
    choice(
        "4.1",
        "a",
        options=["a", "b", "c", "d"],
        right="Only term 1 has no position in it.",
        wrong={
            "b": "p · p alone depends on the distance only. In term 4 W_q and W_k stand between the two, and section 1 "
            "shows that term change.",
            "c": "That is what relative methods are made for. With position vectors at the input, three terms change: "
            "see section 1.",
            "d": "Term 1 holds words and weights, no position vector. What could change it?",
        },
    ),
    number(
        "4.2",
        int(t5_bucket(-40, bidirectional=False)),
        within=0,
        right="16 + trunc(16 × ln 2.5 ÷ ln 8) = 16 + trunc(7.05) = 23.",
        wrong=[
            (7, "The logarithmic buckets come after the 16 exact ones: add 16."),
            (24, "The fraction is cut off, not rounded up."),
            (int(t5_bucket(-40)), "That is the bucket when the future is visible too: the past then has 16 in all."),
            (40, "Only distances below 16 have a bucket of their own."),
            (21, "The logarithm runs from 16 to 128, so it is divided by ln(128 ÷ 16), not by ln 16."),
        ],
        otherwise="16 + the whole part of 16 × ln(40 ÷ 16) ÷ ln(128 ÷ 16).",
    ),
    number(
        "4.3",
        deberta_index(8, span=_SPAN)[4],
        within=0,
        right="i − j + 3, cut off at 0 and at 5: the last row serves every distance from 2 on.",
        wrong=[
            (np.clip(_DISTANCE + _SPAN, 0, 2 * _SPAN), "The table has 2k = 6 rows, so the last index is 5."),
            (np.clip(_SPAN - _DISTANCE, 0, 5), "That counts j − i. DeBERTa counts i − j: the past has large indices."),
            (_DISTANCE + _SPAN, "The distances are right, but the index must stay within the rows 0 to 5."),
            (np.clip(_DISTANCE, -3, 2), "Add k = 3, so that the index of a row starts at 0."),
        ],
        otherwise="For j = 0 … 7: 4 − j + 3, then nothing below 0 and nothing above 5.",
    ),
    function(
        "4.4",
        by_key,
        probes=[(np.arange(1.0, 10).reshape(3, 3),), (np.arange(1.0, 11).reshape(2, 5) ** 2,)],
        right="Every visible score is under its key, and nothing else is left.",
        wrong=[
            (relative_shift, "The visible part is right, but beside it stand leftovers. Set them to 0."),
            (_in_place, "The future is hidden, but no row has moved: row i must move left by queries − 1 − i."),
            (_without_last_row, "After the new reading drop the first row, not the last."),
            (
                _without_memory,
                "With more keys than queries the last query lines up with the last key: key j is "
                "i + (keys − queries) − j back.",
            ),
        ],
        otherwise="Entry (i, j) is by_distance[i, keys − 1 − distance], with distance = i + (keys − queries) − j.",
    ),
    function(
        "4.5",
        _scores(_pair),
        probes=[_probe(3, 2), _probe(5, 4)],
        right="Four terms, the right vectors, the right sign.",
        wrong=[
            (_scores(lambda q, k, r, u, v: _pair(q, k, r, v, u)), "Swapped: u meets the key, v meets the distance."),
            (_scores(lambda q, k, r, u, v: _pair(q, k, r, u, u)), "Term 4 takes v, not u."),
            (_scores(lambda q, k, r, u, v: q @ k + q @ r), "Terms 3 and 4 are missing: u · k and v · r."),
            (_scores(_pair, sign=-1), "The sign: j − i is negative, and a negative index counts from the end of r."),
            (
                _scores(lambda q, k, r, u, v: _pair(q, k, r, u, v) / len(u) ** 0.5),
                "The raw score is asked for: do not divide by √d yet.",
            ),
        ],
        otherwise="Entry (i, j) for j ≤ i is q_i · k_j + q_i · r_(i−j) + u · k_j + v · r_(i−j); the others are 0.",
    ),
]
