"""Exercises of chapter 2: weights by hand, equivariance, the causal mask and what it already tells."""

import math

import numpy as np

from posviz.quiz import choice, function, number


def causal_mask(query_length, key_length):
    """True where the key is visible: the last query lines up with the last key. (query, key)."""
    return np.tri(query_length, key_length, key_length - query_length, dtype=bool) * 1


def order_error(layer, x, order):
    """How far a layer is from moving its outputs along with its inputs: 0 for an equivariant one."""
    return np.abs(layer(x[order]) - layer(x)[order]).max()


def running_mean(x):
    return np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]


def minus_mean(x):
    return x - x.mean(axis=0)


def add_place(x):
    return x + np.arange(len(x))[:, None]


def doubled(x):
    return 2 * x


_X = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0], [-2.0, 1.5]])
_ORDERS = np.array([[2, 0, 3, 1], [3, 0, 1, 2]])

EXERCISES = [
    number(
        "2.1",
        math.exp(2) / (math.exp(2) + 1),
        within=0.0005,
        right="The scaled scores are 4 ÷ √4 = 2 and 0, so the weight is e² ÷ (e² + 1) = 0.881.",
        wrong=[
            (math.exp(4) / (math.exp(4) + 1), "The scores were not divided by √d. With d = 4 the first one is 4 ÷ 2."),
            (math.exp(1) / (math.exp(1) + 1), "The scores were divided by d. The scale is 1 ÷ √d, here 1 ÷ 2."),
            (2, "That is the scaled score. The weight is its share after softmax."),
            (
                1,
                "That is the share of the score itself. Softmax takes the exponential first, so the second key keeps e⁰ = 1.",
            ),
            (1 / (math.exp(2) + 1), "That is the weight of the second key."),
        ],
        otherwise="Take both dot products, divide by √4, take exponentials, and divide the first by their sum.",
    ),
    choice(
        "2.2",
        "b",
        options=["a", "b", "c"],
        right="Each token gets the same output vector, which stands at the token's new place: permutation equivariance.",
        wrong={
            "a": "The same rows in the same places would be invariance. The outputs stand at the new places of their tokens: row 0 is another token's row now.",
            "c": "Without positions and mask no formula in the layer contains a place number. Check it: `layer(x[order])` against `layer(x)[order]`.",
        },
    ),
    number(
        "2.3",
        24,
        within=0,
        right="0.04 = 1/25: the query sees 25 keys, positions 0 to 24, and is the last of them.",
        wrong=[
            (25, "25 is the number of visible keys. They stand at positions 0 to 24, and the query is the last."),
            (26, "One too many twice: 1 ÷ 0.04 = 25 keys, and the last of 25 has position 24."),
            (4, "Read 0.04 as 1/25, not as 4 hundredths: each of 25 keys gets an equal share."),
        ],
        otherwise="Each visible key gets the same share. How many keys does a share of 0.04 mean, and which position has the last of them?",
    ),
    function(
        "2.4",
        causal_mask,
        probes=[(4, 4), (1, 5), (2, 5), (1, 1)],
        right="A single new query sees all stored keys, as it must when a text is written token by token.",
        wrong=[
            (
                lambda q, k: np.tri(q, k, dtype=int),
                "The first query was lined up with the first key. The last query belongs to the last key: one new query must see all keys before it.",
            ),
            (
                lambda q, k: 1 - np.tri(q, k, k - q - 1, dtype=int),
                "That shows the future and hides the past: a key is visible when its position is at most the query's.",
            ),
            (
                lambda q, k: np.tri(q, k, k - q - 1, dtype=int),
                "A query sees its own key too: position of the key ≤ position of the query, not <.",
            ),
            (lambda q, k: np.ones((q, k), int), "Nothing is hidden. Keys on the right of the query must be 0."),
        ],
        otherwise="Query i stands at position i + key_length − query_length; key j is visible if j is at most that.",
    ),
    function(
        "2.5",
        order_error,
        probes=[(layer, _X, order) for layer in (doubled, minus_mean, running_mean, add_place) for order in _ORDERS],
        right="0 for doubling and for taking off the mean; not for a running mean (a causal mask with equal weights) or for added positions.",
        wrong=[
            (
                lambda layer, x, order: np.abs(layer(x[order]) - layer(x)).max(),
                "That asks for invariance: the outputs themselves must be reordered as well before you compare.",
            ),
            (
                lambda layer, x, order: np.abs(layer(x[order])[order] - layer(x)).max(),
                "Reordering a second time by the same order does not undo the first. Reorder the output of the original instead.",
            ),
            (
                lambda layer, x, order: (layer(x[order]) - layer(x)[order]).max(),
                "Without the absolute value a large negative difference is missed.",
            ),
            (
                lambda layer, x, order: float(np.abs(layer(x[order]) - layer(x)[order]).max() > 1e-9),
                "That says yes or no. Return the size of the largest difference.",
            ),
        ],
        otherwise="Compare layer(x[order]) with layer(x)[order], entry by entry, and return the largest absolute difference.",
    ),
]
