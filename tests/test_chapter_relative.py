"""What chapter 4 says beyond what its cells print: the same scores by the package, by loops and by other shapes."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import posviz

CHAPTER = Path(__file__).parent.parent / "notebooks" / "04_relative.ipynb"
X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


@pytest.fixture(scope="module")
def left_behind():
    """{cell id: the names after it} for the code cells of the chapter, exercises, bets and pictures left out."""
    names, found = {}, {}
    for cell in json.loads(CHAPTER.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code" and not {"exercise", "bet", "picture"} & set(cell["metadata"].get("tags", [])):
            exec("".join(cell["source"]), names)
            found[cell["id"]] = dict(names)
    return found


def test_vectors_of_a_distance_are_those_of_the_index_of_the_paper(left_behind):
    tokens = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, -0.5]])
    table = np.array([[0.2, 0.0], [0.0, 0.0], [0.0, 0.2]])  # for key − query = −1, 0, 1, as Shaw et al. count
    index = np.clip(np.arange(4) - np.arange(4)[:, None], -1, 1) + 1
    scores = (tokens @ tokens.T + np.take_along_axis(tokens @ table.T, index, axis=1)) / np.sqrt(2)
    np.testing.assert_allclose(left_behind["shaw-code"]["scores"], scores)
    assert all(len(set(np.diag(index, offset))) == 1 for offset in range(-3, 4))


def test_transformer_xl_by_pairs_is_transformer_xl_by_matrices(left_behind):
    names = left_behind["xl-code"]
    q, k = X @ names["W_q"], X @ names["W_k"]
    r = posviz.sinusoidal([2, 1, 0, -1, -2], 2) @ names["W_r"]
    both = sum(posviz.transformer_xl_terms(q, k, r, names["u"], names["v"]))
    causal = sum(posviz.transformer_xl_terms(q, k, r[:3], names["u"], names["v"]))
    np.testing.assert_allclose(names["scores"], both)
    np.testing.assert_allclose(np.tril(names["scores"]), np.tril(causal))
    np.testing.assert_allclose(both[2], [2.26930338, 2.92986804, 5.2])


def test_u_before_w_q_is_another_shape_and_in_one_square_layer_the_same_scores():
    """The rewriting of RoFormer's equation 7: docs/source.md speaks of it."""
    head_q, u = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 0.5]]), np.array([0.1, 0.2])  # model 3 wide, head 2 wide
    with pytest.raises(ValueError):
        u @ head_q
    square = np.array([[1.0, 0.0], [0.5, 1.0]])
    np.testing.assert_allclose(np.linalg.solve(square.T, u) @ square, u)


def test_the_relative_shift_of_the_chapter_is_that_of_the_package(left_behind):
    names = left_behind["shift-code"]
    np.testing.assert_array_equal(names["shifted"], posviz.relative_shift(names["by_distance"]))
    visible = np.tri(3, dtype=bool)
    masked, unmasked = (posviz.softmax(names["shifted"] / 10, mask=mask) for mask in (visible, None))
    assert not np.allclose(masked, unmasked)


def test_buckets_that_the_chapter_names():
    past, both = posviz.t5_bucket(-np.arange(400), bidirectional=False), posviz.t5_bucket(-np.arange(400))
    assert past.tolist().index(31) == 113 and both.tolist().index(15) == 91
    assert np.flatnonzero(past == past[100])[[0, -1]].tolist() == [99, 112]
    assert np.flatnonzero(past == past[98])[0] == 87
    assert set(posviz.t5_bucket(np.arange(-400, 401)).tolist()) == set(range(32)) - {16}
    assert posviz.t5_bucket([-7, 7]).tolist() == [7, 23]
    assert posviz.t5_bucket(-(10**6), bidirectional=False) == 31


def test_floats_miss_a_start_that_whole_numbers_find():
    """24 buckets up to 192: 96 is 12 · 16^(9/12), so it begins bucket 12 + 9."""
    assert (96 // 12) ** 12 == (192 // 12) ** 9
    assert 12 + int(12 * np.log(96 / 12) / np.log(192 / 12)) == 20  # as the chapter writes it for 32 and 128
    assert posviz.t5_bucket(-96, bidirectional=False, num_buckets=24, max_distance=192) == 21


def test_weights_with_t5_biases(left_behind):
    tokens, b = left_behind["t5-score-code"]["tokens"], 0.1 * np.arange(32)
    bias = [[b[max(query - key, 0)] for key in range(4)] for query in range(4)]
    weights = posviz.softmax(tokens @ tokens.T + bias, mask=np.tri(4, dtype=bool))[3]
    np.testing.assert_allclose(weights, [0.38906349, 0.12950798, 0.19320321, 0.28822532])
    divided = posviz.softmax(tokens @ tokens[3] / math.sqrt(2) + bias[3])
    assert np.ptp(divided) < np.ptp(weights) - 0.01


def test_what_a_bias_takes_in_memory():
    assert 8192 * 8192 * 32 * 2 == 4 * 2**30 and 8192 * 32 * 2 == 512 * 2**10


def test_deberta_by_pairs_is_deberta_by_matrices(left_behind):
    names = left_behind["deberta-code"]
    paper = sum(posviz.deberta_terms(X, X, names["rows"], names["rows"], span=2))
    code = sum(posviz.deberta_terms(X, X, names["rows"], names["rows"], span=2, convention="code"))
    np.testing.assert_allclose(names["paper"], paper[0])
    np.testing.assert_allclose(names["released"], code[0])
    assert posviz.deberta_index(3, span=2).tolist() == [[2, 1, 0], [3, 2, 1], [3, 3, 2]]


def test_logarithmic_buckets_that_the_chapter_names():
    assert posviz.log_bucket([128, 200, 511], 256, 512).tolist() == [128, 169, 255]
    far = np.arange(-700, 701)
    rows = [np.clip(posviz.log_bucket(far, 256, 512, clamp=clamp) + 256, 0, 511) for clamp in (True, False)]
    assert far[rows[0] != rows[1]].max() == -512  # only keys 512 or more ahead


def test_the_terms_of_the_last_section_are_those_of_the_sections_before(left_behind):
    terms = left_behind["who-terms"]["terms"]
    assert sum(terms("Transformer-XL", X[2], X[0], 2, 0)) == pytest.approx(2.26930338)
    assert sum(terms("absolute", X[2], X[0], 2, 0)) == pytest.approx(left_behind["terms-code"]["score"])
    assert terms("Shaw", X[2], X[0], 3, 3)[0] == terms("T5", X[2], X[0], 3, 3)[0] == 2


def test_the_numbers_of_t5_small():
    assert 6 * 512 * 512 + 2 * 512 == 1_573_888
