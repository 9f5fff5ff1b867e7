"""Exercises of chapter 2: weights by hand, equivariance, the causal mask and what it already tells."""

import numpy as np

from posviz.quiz import Bet, choice, function, number


def _share(score, other=0):
    """The weight of `score` beside one other."""
    return np.exp(score) / (np.exp(score) + np.exp(other))


WEIGHT_BY_HAND = number(
    "2.1",
    _share(2),
    (_share(4), "The scores were not divided by √d."),
    (_share(1), "The scores were divided by d. The scale is 1 ÷ √d."),
    (2, "That is the scaled score. The weight is its share after softmax."),
    (1, "That is the share of the score itself. Softmax takes exponentials first, and e⁰ is not 0."),
    (_share(0, 2), "That is the weight of the second key."),
    within=0.0005,
    right="The scaled scores are 4 ÷ √4 = 2 and 0, so the weight is e² ÷ (e² + 1) = 0.881.",
    nudge="Which two numbers go into softmax? Mind the scale.",
    formula="Take both dot products, divide by √4, take exponentials, and divide the first by their sum.",
)

SHUFFLED_TOKENS = choice(
    "2.2",
    "b",
    right="Each token gets the same output vector, which stands at its new place: permutation equivariance.",
    a="That would be invariance. Row 0 belongs to another token now: does it get that token's output?",
    c="No formula in the layer contains a place number. Compare `layer(x[order])` with `layer(x)[order]`.",
)

COUNTER = number(
    "2.3",
    24,
    (25, "That is the number of visible keys. The first of them stands at position 0."),
    (26, "Keys are counted from position 0, and the query's own key is one of them."),
    (4, "Read 0.04 as a share: one part of how many equal ones?"),
    right="0.04 = 1/25: the query sees 25 keys, positions 0 to 24, and is the last of them.",
    nudge="Each visible key gets the same share. How many keys does a share of 0.04 mean?",
    formula="A query at position p sees p + 1 keys, and each of them gets 1 ÷ (p + 1).",
)


def causal_mask(query_length, key_length):
    """1 where the key is visible: the last query lines up with the last key. (query, key)."""
    return np.tri(query_length, key_length, key_length - query_length)


MASK_FOR_THE_NEXT_TOKEN = function(
    "2.4",
    causal_mask,
    (np.tri, "The first query was lined up with the first key. A new query must see all keys before it."),
    (lambda q, k: 1 - np.tri(q, k, k - q - 1), "That shows the future and hides the past."),
    (lambda q, k: 1 - causal_mask(q, k), "Turned round: 1 for a visible key, 0 for a hidden one."),
    (lambda q, k: np.tri(q, k, k - q - 1), "A query sees its own key too, not only those before it."),
    (lambda q, k: np.ones((q, k)), "Nothing is hidden. Keys on the right of the query must be 0."),
    (lambda q, k: np.where(causal_mask(q, k), 0, -np.inf), "That is what is added to scores. Here 0 is hidden."),
    (lambda q, k: np.where(causal_mask(q, k), 1, -np.inf), "−inf hides a score. In a mask a hidden key is 0."),
    probes=[(4, 4), (1, 5), (2, 5), (1, 1)],
    right="A single new query sees all stored keys, as it must when a text is written token by token.",
    nudge="At which position of the text does the first of the queries stand?",
    formula="Query i stands at position i + key_length − query_length; key j is visible if j is at most that.",
)


def order_error(layer, x, order):
    """How far a layer is from moving its outputs along with its inputs: 0 for an equivariant one."""
    return _largest(layer(x[order]) - layer(x)[order])


def _largest(difference):
    return np.abs(difference).max()


def doubled(x):
    return 2 * x


def minus_mean(x):
    return x - x.mean(axis=0)


def running_mean(x):
    return np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]


def add_place(x):
    return x + np.arange(len(x))[:, None]


_X = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0], [-2.0, 1.5]])
_LAYERS = (doubled, minus_mean, running_mean, add_place)

MEASURE_ANY_LAYER = function(
    "2.5",
    order_error,
    (lambda f, x, o: _largest(f(x[o]) - f(x)), "That measures invariance: the outputs must be reordered as well."),
    (lambda f, x, o: _largest(f(x[o])[o] - f(x)), "A second reordering by the same order does not undo the first."),
    (lambda f, x, o: (f(x[o]) - f(x)[o]).max(), "Without the absolute value a large negative difference is missed."),
    (lambda f, x, o: order_error(f, x, o) > 1e-9, "That says yes or no. Return the size of the largest difference."),
    (lambda f, x, o: np.abs(f(x[o]) - f(x)[o]).mean(), "That is the mean difference. Return the largest."),
    probes=[(layer, _X, order) for layer in _LAYERS for order in ([2, 0, 3, 1], [3, 0, 1, 2])],
    right="0 for doubling and for taking off the mean; not for a running mean (a causal mask) or added positions.",
    nudge="An equivariant layer gives the same rows, in the new order. Which two arrays should then be equal?",
    formula="Compare layer(x[order]) with layer(x)[order], entry by entry, and return the largest absolute difference.",
)

REORDERED = Bet(
    "2.1",
    "Six tokens are put in another order, without mask and positions. Which outputs are as before?",
    ("those of each place", "those of each token", "none"),
    "those of each token",
    "By token the largest difference is 0.000, by place 3.522: the layer is equivariant, not invariant.",
)

EQUAL_TOKENS = Bet(
    "2.2",
    "Causal mask, no encoding, and all eight tokens of the text are equal. Do the outputs still tell the position?",
    ("yes", "no", "at the first token only"),
    "no",
    "All eight outputs are 1.0: the mean of equal values is the same, however many of them are visible.",
)

TWO_LAYERS = Bet(
    "2.3",
    "The first five tokens are reordered, the last stays. From how many layers on does the last token's output change?",
    ("one", "two", "none, without an encoding"),
    "two",
    "The last output changes by 0.000 after one layer and by 2.252 after two.",
)
