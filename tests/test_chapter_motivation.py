"""What chapter 0 says beyond what its cells print: which models stay where they were, and that one loop is one line."""

import re

import numpy as np
import pytest

import notebooks
import posviz
import reading
from posviz.lab.results import NAMES, by_position

CELLS = {cell["id"]: notebooks.source(cell) for cell in notebooks.read(reading.CHAPTERS[0])["cells"]}


def test_the_folded_answer_names_every_model_that_ends_less_than_a_tenth_higher():
    answer = CELLS["along-questions"].split("Question 2")[1].split("end less than a tenth")[0]
    flat = {name for name, loss in by_position.items() if len(loss) == 64 and loss[-4:].mean() < 1.1 * loss[4:8].mean()}
    named = {name for name in by_position if re.search(rf"\b{NAMES[name].split()[0]}", answer)}
    assert named == flat and "rope" not in flat


def test_the_first_letters_are_the_hardest_for_every_model():
    assert all(loss[0] > loss[6] for loss in by_position.values())


def test_the_stored_curve_is_what_the_cell_measures():
    lab = pytest.importorskip("posviz.lab")
    for name in ("rope", "alibi"):
        loss = lab.loss_by_position(lab.load(name), 1024).mean(axis=0)
        np.testing.assert_allclose(loss.reshape(64, 16).mean(axis=1), by_position[name], atol=0.02)


def test_the_loop_and_the_line_give_one_attention():
    names = {"np": np}
    exec(CELLS["attention-code"], names)
    X = np.array([names["vector"][word] for word in ("dog", "bites", "man")])
    mixes = np.array([names["one"][word] for word in ("dog", "bites", "man")])
    np.testing.assert_allclose(posviz.attention_weights(X, X, scale=1.0) @ X, mixes)


def test_perplexity_has_the_numbers_of_the_text():
    mean = -np.log([0.5, 0.25, 0.1]).mean()
    assert f"e^{{{mean:.3f}}}={np.exp(mean):.2f}" in CELLS["loss-means"]
    assert np.exp(2.7 - 2.0) == pytest.approx(2, abs=0.02)  # "from 2.0 to 2.7 doubles the perplexity"


def test_every_small_model_is_named_with_its_chapter():
    text = CELLS["models"]
    named = {name: NAMES[name].split()[0] for name in NAMES}
    named |= {"none": "none, or", "rope_nope": "RoPE in three of four layers"}
    assert all(named[name].lower() in text.lower() for name in NAMES)
