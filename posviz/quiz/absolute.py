"""Exercises and bets of chapter 3: rows, values, padded texts, the score, the base."""

import numpy as np

from posviz import sinusoidal
from posviz.quiz import Bet, choice, function, number

NEW_ROWS = number(
    "3.1",
    (2048 - 512) * 768,
    (2048 * 768, "That is the whole new table. The first 512 rows are copied and are trained already."),
    (512 * 768, "That is the table BERT already has. Count the rows that are new."),
    (2048 - 512, "That is the number of new rows. Each of them has many numbers."),
    right="1,536 rows of 768 numbers have never been trained; the first 512 rows stay as they are.",
    nudge="Which rows of the longer table has BERT never used?",
    formula="New rows times the width of a row.",
)

_ROW = sinusoidal([3], 4)[0]


def _waves(*angles):
    """The sine and the cosine of each angle."""
    return [wave(angle) for angle in angles for wave in (np.sin, np.cos)]


ROW_BY_HAND = number(
    "3.2",
    _ROW,
    (_ROW[[0, 2, 1, 3]], "That is the concatenated layout. Here sine and cosine of a pair stand side by side."),
    (_ROW[[1, 0, 3, 2]], "Sine and cosine are exchanged: the sine stands at the even feature."),
    (_waves(3, 0.0003), "The 2 of the exponent 2i/d has been counted twice: i is 1 for the second pair."),
    ([*_waves(3)[:1], np.cos(0.3), np.sin(0.03), np.cos(0.003)], "A sine and its cosine share one frequency."),
    (_waves(*np.deg2rad([3, 0.03])), "Those are the waves of angles in degrees. Here they are in radians."),
    (_waves(1, 0.01), "That is the row of position 1."),
    within=1e-4,
    right="Pair 0 has turned by 3 rad, pair 1 by 0.03 rad.",
    nudge="By which angle has each of the two pairs turned at position 3?",
    formula="sin, cos, sin, cos of the angles 3·θ_0 and 3·θ_1, with θ_0 = 1 and θ_1 = 10000^(−2/4).",
)


def positions(mask):
    """0, 1, 2 … for the real tokens of each row, 0 for the padding in front."""
    return np.maximum(np.cumsum(mask, axis=-1) - 1, 0)


PADDED_TEXTS = function(
    "3.3",
    positions,
    (lambda mask: np.indices(mask.shape)[-1], "The padding was counted too. The first real token stands at 0."),
    (lambda mask: np.cumsum(mask, -1), "Close, but the first real token gets position 1. Positions start at 0."),
    (lambda mask: np.cumsum(mask, -1) - 1, "The padding gets −1: NumPy would quietly take the last row of the table."),
    (lambda mask: (np.cumsum(mask) - 1).clip(0).reshape(mask.shape), "The count runs on into the next text."),
    probes=[(np.array([0, 0, 1, 1, 1]),), (np.array([[1, 1, 1, 1], [0, 0, 0, 1]]),)],
    right="The first real token stands at 0, however much padding is in front of it.",
    nudge="How many real tokens stand in front of each token?",
    formula="The running sum of the mask counts the real tokens so far; take 1 off, and let the padding end at 0.",
)

FAR_KEY = choice(
    "3.4",
    "c",
    right="Only p_m·p_n alone has a law. Random matrices between the two destroy it; training may build another.",
    a="That holds for p_m · p_n alone. Here a random matrix stands between them: look at 'projected'.",
    b="Slow pairs change little, but that is not what decides. Look at several draws of 'projected'.",
)


def smallest_base(dim, length):
    """The base at which the slowest wave is `length` tokens long."""
    return (length / (2 * np.pi)) ** (dim / (dim - 2))


SMALLEST_BASE = function(
    "3.5",
    smallest_base,
    (lambda dim, length: length ** (dim / (dim - 2)), "A wave of frequency θ is 2π/θ tokens long. The 2π is missing."),
    (lambda dim, length: length / (2 * np.pi), "The exponent of the last pair is not 1: i runs to dim/2 − 1 only."),
    (lambda dim, length: (length / 2 / np.pi) ** ((dim - 2) / dim), "The exponent is upside down: solve for base."),
    (lambda dim, length: (length / 2 / np.pi) ** (dim / 2), "That sets the length of wave 1, not of the slowest."),
    probes=[(128, 512), (4, 100), (64, 8192)],
    right="At width 128 and 512 tokens that is a base of 87: the 10,000 of the paper is far on the safe side.",
    nudge="Which pair is the slowest, and how long is its wave for a given base?",
    formula="Set 2π·base^((dim−2)/dim) equal to length and solve for base.",
)

WHICH_ROWS_CHANGE = Bet(
    "3.1",
    "The table has 24 rows, the texts have 16 tokens. Which rows will have changed after 100 steps?",
    ("all 24", "0 to 15", "0 to 15 much, 16 to 23 a little"),
    "0 to 15",
    "Not one number of the rows from 16 to 23 moves: no text looks them up.",
)

DOES_IT_FADE = Bet(
    "3.2",
    "Projected, random matrices: how large is the typical score at distance 500, beside that at distance 0?",
    ("about a third", "about a half", "about the same", "about the double"),
    "about the same",
    "The mean size of 200 draws is 4.5 at distance 0 and 4.4 at 500. The positions alone go from 64.0 to 19.1.",
)

BEYOND_THE_FIT = Bet(
    "3.3",
    "On positions 0 to 511 the reader is off by about 0.01 tokens. By how much on 512 to 639?",
    ("about 0.1 tokens", "about 1 token", "more than 100 tokens"),
    "more than 100 tokens",
    "It is off by 175 tokens: the reading collapses where the fitted range ends.",
)
