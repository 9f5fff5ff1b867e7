"""What chapter 1 says beyond what its cells print: its bias is the package's, its counts hold for every length."""

import numpy as np

import notebooks
import posviz
import reading

CELLS = {cell["id"]: notebooks.source(cell) for cell in notebooks.read(reading.CHAPTERS[1])["cells"]}


def test_the_loop_is_alibi_for_the_first_of_eight_heads():
    names = {"np": np}
    exec(CELLS["relative-code"], names)
    assert np.array_equal(names["biased"], names["scores"] + posviz.alibi_bias(8, 3, causal=False)[0])


def test_n_tokens_have_2n_minus_1_distances_each_the_same_along_its_diagonal():
    for count in (1, 4, 7):
        table = np.arange(count)[:, None] - np.arange(count)
        assert len(np.unique(table)) == 2 * count - 1
        assert all(len(np.unique(np.diagonal(table, -distance))) == 1 for distance in np.unique(table))


def test_a_rule_about_the_first_token_holds_once_and_one_about_the_previous_token_everywhere():
    names = {"np": np}
    exec(CELLS["back-code"], names)
    assert names["rules"](0) == (1, 3) and names["rules"](1000) == (0, 3)


def test_added_vectors_tell_equal_tokens_apart():
    names = {"np": np, "sinusoidal": posviz.sinusoidal}
    exec(CELLS["absolute-code"], names)
    assert np.array_equal(names["x"][0], names["x"][2]) and not np.allclose(names["placed"][0], names["placed"][2])


def test_the_drawing_and_the_three_questions_have_the_same_three_places():
    for mark, place in (("(1)", "input"), ("(2)", "queries and keys"), ("(3)", "scores")):
        assert mark in CELLS["order"] and mark in CELLS["sort"] and place in CELLS["order"] and place in CELLS["sort"]
