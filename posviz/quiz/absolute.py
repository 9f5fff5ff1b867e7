"""The exercises of chapter 3: rows, values, padded texts, the score, the base."""

import numpy as np

from posviz.quiz import choice, function, number


def positions(mask):
    return np.maximum(np.cumsum(mask, axis=-1) - 1, 0)


def _places(mask):
    return np.broadcast_to(np.arange(np.shape(mask)[-1]), np.shape(mask))


def _from_one(mask):
    return np.cumsum(mask, axis=-1)


def _negative_padding(mask):
    return np.cumsum(mask, axis=-1) - 1


def smallest_base(dim, length):
    return (length / (2 * np.pi)) ** (dim / (dim - 2))


def _without_two_pi(dim, length):
    return float(length) ** (dim / (dim - 2))


def _exponent_one(dim, length):
    return length / (2 * np.pi)


SIN, COS = np.sin(3), np.cos(3)

EXERCISES = [
    number(
        "3.1",
        (2048 - 512) * 768,
        within=0,
        right="1,536 rows of 768 numbers have never been trained; the first 512 rows stay as they are.",
        wrong=[
            (2048 * 768, "That is the whole new table. The first 512 rows are copied and are trained already."),
            (512 * 768, "That is the table BERT already has. Count the rows that are new."),
            (2048 - 512, "That is the number of new rows. Each row has 768 numbers."),
        ],
        otherwise="New rows times the width of a row.",
    ),
    number(
        "3.2",
        [SIN, COS, np.sin(0.03), np.cos(0.03)],
        within=1e-4,
        right="Pair 0 has turned by 3 rad, pair 1 by 0.03 rad.",
        wrong=[
            (
                [SIN, np.sin(0.03), COS, np.cos(0.03)],
                "Those are the right numbers in the concatenated layout. Here sine and cosine of a pair stand side by side.",
            ),
            (
                [COS, SIN, np.cos(0.03), np.sin(0.03)],
                "Sine and cosine are exchanged: the sine stands at the even component.",
            ),
            (
                [SIN, COS, np.sin(0.0003), np.cos(0.0003)],
                "The exponent is 2i/d with i = 1 for the second pair, so 2/4. Here the 2 has been counted twice.",
            ),
            (
                [SIN, np.cos(0.3), np.sin(0.03), np.cos(0.003)],
                "Each component got its own frequency. The sine and the cosine of a pair share one.",
            ),
            (
                [np.sin(np.deg2rad(3)), np.cos(np.deg2rad(3)), np.sin(np.deg2rad(0.03)), np.cos(np.deg2rad(0.03))],
                "The angles are in radians. These values are of 3 degrees.",
            ),
        ],
        otherwise="The angles are 3·ω_0 and 3·ω_1, with ω_0 = 1 and ω_1 = 10000^(-2/4). Four numbers: sin, cos, sin, cos.",
    ),
    function(
        "3.3",
        positions,
        probes=[([0, 0, 1, 1, 1],), (np.array([[1, 1, 1, 1], [0, 0, 0, 1]]),)],
        right="The first real token stands at 0, however much padding is in front of it.",
        wrong=[
            (_places, "You counted the padding too: each text is moved to rows that it did not have in training."),
            (_from_one, "Close, but the first real token gets position 1. Positions start at 0."),
            (
                _negative_padding,
                "The padding gets -1. NumPy would quietly take the last row of the table, PyTorch would stop.",
            ),
        ],
        otherwise="The running sum of the mask counts the real tokens so far. The padding must end up at 0.",
    ),
    choice(
        "3.4",
        "c",
        options=["a", "b", "c"],
        right="Only p·p has a law. Random matrices between the two vectors destroy it; training may build another.",
        wrong={
            "a": "That holds for the positions alone, p_m · p_n. Here a random matrix stands between them: look at 'projected'.",
            "b": "Slow pairs change little, but that is not what decides. Look at several draws of 'projected'.",
        },
    ),
    function(
        "3.5",
        smallest_base,
        probes=[(128, 512), (4, 100), (64, 8192)],
        right="At width 128 and 512 tokens that is a base of 87: the 10,000 of the paper is far on the safe side.",
        wrong=[
            (_without_two_pi, "The slowest wavelength is 2π·base^((dim-2)/dim). The 2π is missing."),
            (_exponent_one, "The last pair is i = dim/2 - 1, so its exponent is (dim-2)/dim, not 1."),
        ],
        otherwise="Set 2π·base^((dim-2)/dim) equal to length and solve for base.",
    ),
]
