"""What chapters 6 and 7 say in numbers, found again by other means than their cells."""

import math

import numpy as np
import pytest

import notebooks
import posviz
import reading
from posviz import lab
from posviz.lab import data
from posviz.lab.results import entropy, loss, smollm2_first_weight, smollm2_loss, smollm2_window_loss


def cell(chapter, id):
    """The source of a chapter's cell."""
    (found,) = [c for c in notebooks.read(reading.CHAPTERS[chapter])["cells"] if c["id"] == id]
    return notebooks.source(found)


@pytest.mark.parametrize("name", ["rope", "alibi"])
def test_what_is_measured_now_is_what_was_recorded(name):
    assert np.allclose(lab.loss_by_context(lab.load(name), [128, 256]).mean(axis=1), loss[name, None, 1][:2], atol=0.01)


def test_entropy_grows_by_two_tenths_to_nine_tenths_a_doubling():
    grown = {
        name: (entropy[name, None, 1][-1] - entropy[name, None, 1][0]) / 3 for name in ("alibi", "rope", "none", "t5")
    }
    assert [round(value, 2) for value in grown.values()] == [0.21, 0.68, 0.81, 0.87]


def test_interpolation_is_a_turn_by_a_fraction_of_the_position():
    theta, x = posviz.rope_frequencies(128), np.arange(128.0)
    assert np.allclose(posviz.rope(x, 8188, frequencies=theta / 4), posviz.rope(x, 2047))


@pytest.mark.parametrize("factor, new", [(4, 22), (6, 8), (8, 1), (9, 0)])
def test_pairs_that_still_meet_new_angles_with_ntk(factor, new):
    count = 0
    for i in range(64):
        plain = 10_000 ** (-i / 64)
        if 2048 * plain < 2 * math.pi:
            slowed = plain / factor ** (2 * i / 126)
            count += 8192 * slowed > 2048 * plain * (1 + 1e-9)
    assert count == new


@pytest.mark.parametrize("key, error", [(0, 0.0), (1000, 4.27), (3000, 7.76), (4090, 0.52)])
def test_a_cache_of_turned_keys_is_wrong_under_dynamic_scaling(key, error):
    q, k = np.random.RandomState(0).normal(size=(2, 128))

    def speeds(length):
        return posviz.rope_frequencies(128, posviz.dynamic_ntk_base(10_000, length, 2048, 128))

    query = posviz.rope(q, 4095, frequencies=speeds(4096))
    right, cached = (query @ posviz.rope(k, key, frequencies=speeds(n)) for n in (4096, key + 1))
    assert abs(cached - right) == pytest.approx(error, abs=0.01)


def test_the_real_model_has_the_same_order_on_each_text():
    end = [smollm2_loss[mode][:, -4:].mean(axis=1) for mode in ("plain", "pi", "ntk", "yarn", "cut")]
    assert (np.diff(end, axis=0) < 0).all() and (end[3] - end[4] < 0.035).all()


def test_a_window_on_the_real_model_needs_the_first_token():
    plain, cut, one, four = (smollm2_window_loss[mode].mean() for mode in smollm2_window_loss)
    assert round(cut - plain, 2) == 0.69 and round(one - plain, 2) == 0.10 and abs(one - four) < 0.01
    assert [round(f(smollm2_first_weight), 2) for f in (min, max)] == [0.23, 0.29]


@pytest.mark.parametrize("score, sign", [(6.5, -1), (7.0, -1), (8.0, 1), (9.0, 1)])
def test_log_n_holds_a_key_above_its_level_and_not_below(score, sign):
    others = np.random.RandomState(0).normal(size=2**15)
    weights = []
    for n in (512, 32_768):
        scores = np.append(score, others[: n - 1]) * max(1, math.log(n) / math.log(512))
        weights.append(np.exp(scores[0]) / np.exp(scores).sum())
    assert np.sign(weights[1] - weights[0]) == sign
    factor = math.log(32_768) / math.log(512)
    assert round(math.log(512) + (factor + 1) / 2, 1) == 7.6


def test_the_slopes_of_the_chapter_are_those_of_the_package():
    names = {"math": math, "np": np, "alibi_slopes": posviz.alibi_slopes, "print": lambda *words: None}
    exec(cell(7, "slopes-code"), names)
    for heads in range(1, 129):
        assert np.allclose(names["slopes"](heads), posviz.alibi_slopes(heads))


def test_heads_of_alibi_look_as_far_as_if_all_keys_fitted():
    queries = np.arange(448, 512)
    for slope, equal in zip((1 / 4, 1 / 16, 1 / 64, 1 / 256), (3.5, 15.5, 63.2, 168.6)):
        means = []
        for query in queries:
            weights = [math.exp(-slope * distance) for distance in range(query + 1)]
            means.append(sum(d * w for d, w in enumerate(weights)) / sum(weights))
        assert np.mean(means) == pytest.approx(equal, abs=0.06)


def test_small_models_have_no_attention_sink():
    for name in ("rope", "alibi"):
        weights = lab.attention(lab.load(name), data.crops(128)[0, :-1])
        assert weights[:, :, 64:, 0].mean() < 0.01


def test_the_keys_that_a_model_with_local_layers_keeps():
    assert round(1 / 6 + 5 / 6 * 1024 / 32_768, 2) == 0.19


def test_log_n_lowers_the_entropy_of_every_model():
    for encoding, change, seed in entropy:
        if change in ("log_n", "ntk+log_n", "yarn+log_n") and encoding != "learned":
            plain = change.removesuffix("log_n").rstrip("+") or None
            assert entropy[encoding, change, seed][-1] < entropy[encoding, plain, seed][-1], encoding
