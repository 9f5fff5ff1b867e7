"""Exercises of chapter 1: positions, distances, and three questions to sort a method by."""

import numpy as np

from posviz.quiz import choice, function, number


def distances(query_positions, key_positions):
    """Query position minus key position: (queries, keys)."""
    return np.subtract.outer(query_positions, key_positions)


# One row a method: learned table, sinusoidal, T5 bias, DeBERTa, RoPE, ALiBi. Columns: where (0 input, 1 queries and keys,
# 2 scores), what the score sees (0 both positions, 1 the distance only), its numbers (0 fixed, 1 learned).
SORTED = [[0, 0, 1], [0, 0, 0], [2, 1, 1], [2, 1, 1], [1, 1, 0], [2, 1, 0]]


def _but(method, row):
    return SORTED[:method] + [row] + SORTED[method + 1 :]


EXERCISES = [
    number(
        "1.1",
        2,
        within=0,
        right="The query “not” stands at 3, the key “be” at 1: 3 − 1 = 2.",
        wrong=[
            (
                -2,
                "That is key − query. In this course the distance is query − key, so a key on the left has a positive distance.",
            ),
            (1, "That counts the tokens between the two. The distance is the difference of the positions, one more."),
            (3, "That is the position of the query. Subtract the position of the key."),
            (
                4,
                "That counts the positions from 1. The first token has position 0; then subtract the position of the key.",
            ),
        ],
        otherwise="Number the tokens from 0 and subtract the position of the key from the position of the query.",
    ),
    number(
        "1.2",
        [[0, -1, -2], [1, 0, -1], [2, 1, 0]],
        within=0,
        right="The table of a text that begins at 0. Moving the text adds 100 to both positions, and the difference loses it.",
        wrong=[
            (
                [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]],
                "That is key − query: rows and columns are exchanged. Rows are queries, and the distance is query − key.",
            ),
            (
                [[0, 1, 2], [1, 0, 1], [2, 1, 0]],
                "The sign is lost. A key on the right of the query has a negative distance.",
            ),
            (
                [[100, 99, 98], [101, 100, 99], [102, 101, 100]],
                "Only the queries were moved. The keys stand in the same text and move by 100 as well.",
            ),
            ([100, 101, 102], "Those are the positions. Asked for is the table of distances, three rows of three."),
        ],
        otherwise="Entry (i, j) is the position of token i minus the position of token j.",
    ),
    choice(
        "1.3",
        "d",
        options=["a", "b", "c", "d"],
        right="It is a relative method with learned numbers that works on the keys: neither in the input nor as one number for a score.",
        wrong={
            "a": "Nothing is added to the input: the token vectors stay as they are, and the vector is chosen by i − j, not by the position.",
            "b": "The vector is chosen by the distance i − j, so moving the whole text changes nothing. It is not absolute.",
            "c": "The vectors are trained, so its numbers are learned. Fixed would be a rule with preset numbers.",
        },
    ),
    function(
        "1.4",
        distances,
        probes=[
            ([0, 1, 2], [0, 1, 2]),
            ([5, 6], [0, 1, 2, 3, 4, 5, 6]),
            (np.array([7]), np.array([9, 2])),
            ([4, 2], [1, 1]),
        ],
        right="The positions decide, not the places in the lists: a text that goes on at position 5 has its queries there.",
        wrong=[
            (lambda q, k: np.subtract.outer(q, k) * -1, "The sign is turned round: the distance is query − key."),
            (
                lambda q, k: np.abs(np.subtract.outer(q, k)),
                "The absolute value hides whether the key is on the left or on the right. Leave the sign.",
            ),
            (
                lambda q, k: np.subtract.outer(np.arange(len(q)), np.arange(len(k))),
                "That numbers the entries of the lists. Use the positions that were given: queries may begin at 5.",
            ),
        ],
        otherwise="Row i, column j holds query_positions[i] − key_positions[j].",
    ),
    number(
        "1.5",
        SORTED,
        within=0,
        right="Six methods, four different rows: “input or attention” alone would give two groups and mix fixed with learned ones.",
        wrong=[
            (
                _but(4, [0, 1, 0]),
                "RoPE leaves the input alone. It turns queries and keys, inside every attention layer.",
            ),
            (
                _but(4, [1, 0, 0]),
                "RoPE is computed from both positions, but the score of a moved text does not change: it sees the distance only.",
            ),
            (_but(4, [1, 1, 1]), "RoPE's angles are preset: training changes none of them."),
            (_but(1, [0, 0, 1]), "The sinusoidal table is a formula. Training does not change it."),
            (
                _but(1, [0, 1, 0]),
                "Two sinusoidal vectors alone meet in a product that depends on the distance. The model's score has matrices between them, and the picture shows it change when the text moves.",
            ),
            (_but(5, [2, 1, 1]), "ALiBi's slopes are preset, one for each head. Training changes none."),
            (_but(2, [2, 1, 0]), "T5's bias is a table of trained numbers, one for each range of distances."),
            (_but(2, [0, 1, 1]), "T5 adds its number to the score. The token vectors stay as they are."),
        ],
        otherwise="At least one row is off. For each method ask: what does its formula change, does moving the text change the score, does training change its numbers?",
    ),
]
