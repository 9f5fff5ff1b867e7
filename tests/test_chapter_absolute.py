"""What chapter 3 says beyond what its cells print: its slopes, its waves, its scores, its readers."""

import json
from pathlib import Path

import numpy as np
import pytest

import posviz

CHAPTER = Path(__file__).parent.parent / "notebooks" / "03_absolute.ipynb"


@pytest.fixture(scope="module")
def chapter():
    """The names that the chapter's cells of the table leave behind, exercises and pictures left out."""
    names = {}
    for cell in json.loads(CHAPTER.read_text("utf-8"))["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and not {"exercise", "picture"} & set(tags):
            exec("".join(cell["source"]), names)
            if "claim-3.1.4-extending-destroys" in tags:
                return names


def test_the_slope_of_the_training_is_what_a_nudge_of_each_number_finds(chapter):
    start, match, loss = chapter["start"], chapter["match"], chapter["loss"]
    rows, found = start[:16], np.zeros_like(start)
    error = (posviz.softmax(rows @ match @ rows.T, mask=np.tri(16, dtype=bool)) - np.eye(16, k=-1)) / 15
    error[0] = 0
    for place in np.ndindex(start.shape):
        nudge = np.zeros_like(start)
        nudge[place] = 1e-5
        found[place] = (loss(start + nudge) - loss(start - nudge)) / 2e-5
    np.testing.assert_allclose(found[:16], error @ rows @ match.T + error.T @ rows @ match, atol=1e-8)
    assert not found[16:].any()


def test_training_changes_every_row_that_its_texts_use_and_no_other(chapter):
    start, learned, match = chapter["start"], chapter["learned"], chapter["match"]
    assert (learned[:16] != start[:16]).all() and learned[16:].tobytes() == start[16:].tobytes()
    alone = posviz.softmax(learned[:16] @ match @ learned[:16].T, mask=np.tri(16, dtype=bool))
    np.testing.assert_allclose(chapter["weights"][:16, :16], alone, atol=1e-15)  # what is appended changes nothing
    assert (chapter["answers"][16:] == chapter["letters"][15:23]).sum() == 0


def test_the_loss_of_equal_weights():
    assert np.mean(np.log(np.arange(2, 17))) == pytest.approx(2.04, abs=0.005)


def test_frequencies_of_tensor2tensor_are_other_numbers_than_those_of_the_paper():
    first, last = 1.0, 10_000 ** -(1 / (4 / 2 - 1))
    theirs = [np.sin(first), np.sin(last), np.cos(first), np.cos(last)]
    assert np.round(theirs, 4).tolist() == [0.8415, 0.0001, 0.5403, 1.0]
    ours = posviz.sinusoidal([1], 4, base=10_000 ** (4 / 2), layout="concatenated")[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-15)
    assert not np.allclose(posviz.sinusoidal([1], 4, layout="concatenated")[0], theirs)


def test_each_feature_repeats_after_its_wave_and_every_step_is_equally_long():
    frequencies, waves, n = posviz.rope_frequencies(128), posviz.wavelengths(128), np.arange(1000)
    for theta, wave in zip(frequencies, waves):
        np.testing.assert_allclose(np.sin((n + wave) * theta), np.sin(n * theta), atol=1e-9)
    steps = np.linalg.norm(np.diff(posviz.sinusoidal(range(127), 14, 128), axis=0), axis=1)
    assert np.ptp(steps) < 1e-12 and steps[0] == pytest.approx(1.117, abs=5e-4)


def test_wavelengths_that_the_chapter_names():
    waves = posviz.wavelengths(128)
    assert np.round(waves[[16, 17]], 1).tolist() == [62.8, 72.6]
    assert (np.diff(np.repeat(waves, 2)) >= 0).all() and np.tile(waves, 2)[64] == waves[0]  # the two layouts
    longest = posviz.sinusoidal(range(20_001), 128)
    assert np.linalg.norm(longest - longest[0], axis=1)[5:].min() == pytest.approx(5.80, abs=0.005)


def test_a_shift_is_a_rotation_that_keeps_lengths():
    table = posviz.sinusoidal(range(1000), 16)
    np.testing.assert_allclose((table**2).sum(axis=1), 8)
    seven = np.linalg.lstsq(table[:-7], table[7:], rcond=None)[0]
    np.testing.assert_allclose(table[:-7] @ seven, table[7:], atol=1e-10)
    np.testing.assert_allclose(seven @ seven.T, np.eye(16), atol=1e-9)


def test_the_dot_product_of_two_positions_is_a_sum_of_cosines_of_their_distance():
    frequencies, table = posviz.rope_frequencies(128), posviz.sinusoidal(range(2000), 128)
    for m, n in [(60, 50), (1010, 1000), (50, 60)]:
        assert table[m] @ table[n] == pytest.approx(sum(np.cos((m - n) * frequencies)), abs=1e-9)
    alone = table @ table[0]
    assert (np.diff(alone) > 0).argmax() == 11 and (alone < 0).argmax() == 1707


def test_scores_of_two_words_are_the_positions_alone_a_constant_and_noise():
    random, p = np.random.RandomState(0), posviz.sinusoidal(range(513), 128)
    x, y = random.normal(size=(2, 128))
    alone, identical, different = p @ p[0], (x + p) @ (x + p[0]), (y + p) @ (x + p[0])
    np.testing.assert_allclose(different, x @ y + y @ p[0] + p @ x + alone)
    assert np.ptp(identical - different) < 1e-9 and (identical - different)[0] == pytest.approx(154.8, abs=0.05)
    assert identical[1] > identical[0] and different[1] > different[0]
    assert min(np.corrcoef(alone, score)[0, 1] for score in (identical, different)) > 0.5


def test_no_base_is_a_threshold_for_the_reader():
    """Its error falls step by step as the slowest wave grows from half the text to a little more than all of it."""
    n, errors = np.arange(4096), {}
    for share in (0.5, 0.75, 1.0, 1.1, 13.28, 1236):
        base = (share * 4096 / (2 * np.pi)) ** (128 / 126)
        table = posviz.sinusoidal(n, 128, base)
        fit = np.linalg.solve(table.T @ table + 0.001 * np.eye(128), table.T @ n)
        errors[share] = np.sqrt(((table @ fit - n) ** 2).mean())
    assert 30 < errors[0.5] and 3 < errors[0.75] < 10 and 1 < errors[1.0] < 3 and 0.1 < errors[1.1] < 1
    assert errors[13.28] < errors[1236] < 0.1


def test_side_by_side_is_a_sum_of_two_products():
    x, p, w = np.split(np.random.RandomState(0).normal(size=(18, 8)), [1, 2])
    np.testing.assert_allclose(np.concatenate([x, p], axis=1) @ w.reshape(16, 8), x @ w[:8] + p @ w[8:])


def test_rows_that_roberta_looks_up():
    tokens = np.array([0, 10, 11, 2, 1, 1])
    real, rows = tokens != 1, [1] * 6
    for place in np.flatnonzero(real):
        rows[place] = 2 + int(real[:place].sum())
    assert (np.cumsum(real) * real + 1).tolist() == rows == [2, 3, 4, 5, 1, 1]
