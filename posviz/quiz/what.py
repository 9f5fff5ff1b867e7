"""Exercises of chapter 1: positions, distances, and three questions to sort a method by."""

import numpy as np

from posviz.quiz import Bet, choice, function, number


def distances(query_positions, key_positions):
    """Query position minus key position: (queries, keys)."""
    return np.subtract.outer(query_positions, key_positions)


_TABLE = distances(range(3), range(3))

ONE_DISTANCE = number(
    "1.1",
    2,
    (-2, "That is key − query, or the distance to the second “be”. The distance to the first is query − key."),
    (1, "That counts the tokens between the two. The distance is the difference of their positions."),
    (3, "That is the position of the query. How far back from there is the key?"),
    (4, "That is the position of the query, counted from 1. Positions start at 0, and the key has one too."),
    (5, "That is the position of the second “be”. Asked for is how far the first is from the query."),
    right="The query “not” stands at 3, the key “be” at 1: 3 − 1 = 2.",
    nudge="At which positions do the two stand, when the first token has position 0?",
    formula="Position of “not” minus position of the first “be”, both counted from 0.",
)

FAR_TABLE = number(
    "1.2",
    _TABLE,
    (-_TABLE, "That is key − query. Rows are queries, and the distance is query − key."),
    (abs(_TABLE), "The sign is lost. A key on the right of the query has a negative distance."),
    (_TABLE + 100, "Only the queries were moved. The keys stand in the same text and move by 100 as well."),
    ([100, 101, 102], "Those are the positions. Asked for is the table of their distances, three rows of three."),
    right="The table of a text that begins at 0. Moving it adds 100 to both positions, and the difference loses it.",
    nudge="Which distance does a token have to itself, and which to the tokens left and right of it?",
    formula="Entry (i, j) is the position of token i minus the position of token j.",
)

NEW_METHOD = choice(
    "1.3",
    "d",
    right="A relative method with learned numbers that works on the keys, neither on the input nor on the score.",
    a="The token vectors stay as they are, and what is added is chosen by i − j, not by the position.",
    b="The vector is chosen by i − j alone. Does moving the whole text change it?",
    c="The vectors are trained. Fixed would be a rule with preset numbers.",
)

ANY_DISTANCES = function(
    "1.4",
    distances,
    (lambda q, k: -distances(q, k), "The sign is turned round: the distance is query − key."),
    (lambda q, k: abs(distances(q, k)), "Leave the sign: it says on which side the key is."),
    (lambda q, k: distances(range(len(q)), range(len(k))), "Those are the places in the lists: a text may begin at 5."),
    (lambda q, k: distances(q, k).T, "Rows and columns are exchanged: queries have the rows, keys the columns."),
    probes=[([0, 1, 2], [0, 1, 2]), ([5, 6], [0, 1, 2, 3]), (np.array([7]), np.array([9, 2])), ([4, 2], [1, 1])],
    right="The positions decide, not the places in the lists: a text that goes on at position 5 has its queries there.",
    nudge="Fill one row by hand: one query, and its distance to each key.",
    formula="Row i, column j holds query_positions[i] − key_positions[j].",
)

# One row a method: learned table, sinusoidal, T5 bias, DeBERTa, RoPE, ALiBi. Columns: where it enters (0 input,
# 1 queries and keys, 2 scores), what it sees (0 both positions, 1 the distance), numbers (0 fixed, 1 learned).
SORTED = [[0, 0, 1], [0, 0, 0], [2, 1, 1], [2, 1, 1], [1, 1, 0], [2, 1, 0]]


def _but(method, *row):
    return SORTED[:method] + [row] + SORTED[method + 1 :]


SIX_METHODS = number(
    "1.5",
    SORTED,
    (_but(4, 0, 1, 0), "RoPE leaves the input alone. It turns queries and keys, inside every attention layer."),
    (_but(4, 1, 0, 0), "RoPE uses both positions, but the score of a moved text does not change."),
    (_but(4, 1, 1, 1), "RoPE's angles are preset: training changes none of them."),
    (_but(1, 0, 0, 1), "The sinusoidal table is a formula. Training does not change it."),
    (_but(1, 0, 1, 0), "Matrices stand between two sinusoidal vectors: the score changes when the text moves."),
    (_but(5, 2, 1, 1), "ALiBi's slopes are preset, one for each head. Training changes none."),
    (_but(2, 2, 1, 0), "T5's bias is a table of trained numbers, one for each range of distances."),
    (_but(2, 0, 1, 1), "T5 adds its number to the score. The token vectors stay as they are."),
    (_but(3, 1, 1, 1), "DeBERTa leaves queries and keys as they are: it adds two terms to the score."),
    (_but(3, 2, 0, 1), "DeBERTa's absolute positions near the end are left out here. What do its layers see?"),
    right="Six methods, four different rows: “input or attention” alone would mix fixed with learned ones.",
    nudge="Ask the three questions of section 8 anew for that method.",
    formula="Where does its formula act? Do the scores of a moved text stay (1)? Does training change it (1)?",
)

FAR_FROM_THE_START = Bet(
    "1.1",
    "With RoPE a query at 3 meets a key at 1. Then the same two vectors stand at 1000 and 998. What does the score do?",
    ("it gets smaller", "it gets larger", "it stays"),
    "it stays",
    "Both times the score is 10.733230. At 1 and 3 it is 14.510411: the score sees the distance, with its sign.",
)

NO_ENCODING = Bet(
    "1.2",
    "Sinusoidal vectors, RoPE, ALiBi, and no encoding at all: which of the four keep their scores when the text moves?",
    ("RoPE and ALiBi", "RoPE, ALiBi and no encoding", "all four"),
    "RoPE, ALiBi and no encoding",
    "All three change by 0.000. The second test tells no encoding apart: stretched, its scores still change by 0.000.",
)
