"""Scaled frequencies and factors against printed values and loops, in the paper's and in the code's convention."""

import math

import numpy as np
import pytest
import torch
from reference import assert_printed, assert_significant

from posviz import (
    attention_weights,
    dynamic_ntk_base,
    llama3_frequencies,
    log_n_factor,
    ntk_base,
    position_interpolation,
    rope,
    rope_frequencies,
    softmax,
    wavelengths,
    yarn_attention_factor,
    yarn_frequencies,
)

THETA = rope_frequencies(128)


# ------------------------------------------------------------------ position interpolation


def test_interpolation_reference():
    expected = [0.25, 0.21649109, 2.8869548e-5]  # float32 in the source
    np.testing.assert_allclose(position_interpolation(THETA, 4)[[0, 1, 63]], expected, rtol=1e-7)


def test_interpolation_squeezes_positions():
    x = np.random.default_rng(0).standard_normal((4, 8))
    squeezed = rope(x, [0, 8, 16, 24], frequencies=position_interpolation(rope_frequencies(8), 8))
    np.testing.assert_allclose(squeezed, rope(x, [0, 1, 2, 3]), rtol=0, atol=1e-14)


# ------------------------------------------------------------------ NTK


@pytest.mark.parametrize(
    ("factor", "dim", "expected"),
    [
        (2, 128, 20221.26169),
        (4, 128, 40889.94243),
        (8, 128, 82684.62264),
        (16, 128, 167198.73921),
        (4, 64, 41829.36593),
    ],
)
def test_ntk_reference_bases(factor, dim, expected):
    assert_printed(ntk_base(10_000, factor, dim), expected, 5)


def test_ntk_keeps_the_first_pair_and_slows_the_last_by_the_factor():
    slower = THETA / rope_frequencies(128, ntk_base(10_000, 4, 128))
    assert_printed(slower[[0, 1, 16, 32, 63]], [1, 1.02224856, 1.42201483, 2.02212617, 4], 8)
    np.testing.assert_allclose(slower, 4 ** (2 * np.arange(64) / 126), rtol=1e-13)


def test_ntk_reaches_less_far_than_its_factor():
    slow = wavelengths(128) > 2048
    assert slow.sum() == 23

    def reach(factor):  # largest angle at 8191 against the largest trained one
        return (8191 * rope_frequencies(128, ntk_base(10_000, factor, 128)) / (2047 * THETA))[slow]

    assert (reach(4) > 1.0005).sum() == 22
    assert_printed(reach(4).max(), 1.62, 2)
    assert (reach(8) > 1).any()


@pytest.mark.parametrize(
    ("length", "expected"),
    [(0, 10000), (2048, 10000), (2049, 10009.92071), (4096, 30527.73675), (8192, 72195.86009), (16384, 156588.32346)],
)
def test_dynamic_ntk_reference(length, expected):
    assert_printed(dynamic_ntk_base(10_000, length, 2048, 128, factor=2), expected, 5)


def test_dynamic_ntk_reference_frequencies():
    theta = rope_frequencies(128, dynamic_ntk_base(10_000, 4096, 2048, 128, factor=2))
    assert_significant(theta[[32, 63]], [5.7233819e-3, 3.8492733e-5], 7)  # float32 in the source of the values
    assert_significant(rope_frequencies(128, dynamic_ntk_base(10_000, 4096, 2048, 128))[63], 5.7739e-5, 5)


def test_dynamic_ntk_with_factor_one_is_ntk_of_the_ratio():
    assert dynamic_ntk_base(10_000, 6000, 2000, 64) == ntk_base(10_000, 3, 64)


def test_dynamic_ntk_touches_nothing_within_the_trained_length():
    for length in (0, 1, 2047, 2048):
        assert dynamic_ntk_base(500.0, length, 2048, 64, factor=8) == 500.0


# ------------------------------------------------------------------ YaRN

YARN_INDEX = [16, 20, 24, 28, 32, 40, 45, 48]
YARN_RATIO = {
    (2048, 4, "code"): [1, 1.136364, 1.315789, 1.562500, 1.923077, 3.571428, 4, 4],
    (2048, 4, "paper"): [1, 1.494184, 2.104467, 2.731947, 3.282292, 3.988135, 4, 4],
    (4096, 16, "code"): [1, 1, 1.168539, 1.405405, 1.762712, 3.586207, 10.146339, 16],
    (4096, 16, "paper"): [1, 1, 1.525109, 2.612057, 4.359106, 10.570674, 15.970048, 16],
}


@pytest.mark.parametrize("setting", YARN_RATIO, ids=str)
def test_yarn_reference_ratios_of_both_ramps(setting):
    length, factor, ramp = setting
    ratio = THETA / yarn_frequencies(128, factor, length, ramp=ramp)
    np.testing.assert_allclose(ratio[YARN_INDEX], YARN_RATIO[setting], rtol=3e-7, atol=5e-7)  # float32 in the source


def test_yarn_reference_frequencies():
    expected = [4.9486034e-2, 2.4033312e-2, 1.1380988e-2, 5.2e-3, 8.8543788e-4, 3.8498163e-4]
    np.testing.assert_allclose(yarn_frequencies(128, 4, 2048)[[20, 24, 28, 32, 40, 45]], expected, rtol=2e-7)


def test_yarn_code_and_paper_differ_most_where_facts_say():
    for length, factor, index, difference in [(2048, 4, 29, 0.757), (4096, 16, 38, 2.04)]:
        code, paper = (yarn_frequencies(128, factor, length, ramp=ramp) for ramp in ("code", "paper"))
        relative = np.abs(code - paper) / np.minimum(code, paper)
        assert relative.argmax() == index
        assert relative.max() == pytest.approx(difference, abs=0.006)


def test_yarn_is_the_code_unless_told_otherwise():
    assert np.array_equal(yarn_frequencies(64, 8, 1024), yarn_frequencies(64, 8, 1024, ramp="code"))


def test_yarn_paper_loop():
    dim, factor, length, fast, slow = 64, 8, 1024, 16, 2
    found = yarn_frequencies(dim, factor, length, beta_fast=fast, beta_slow=slow, ramp="paper")
    for i in range(dim // 2):
        theta = 10_000 ** (-2 * i / dim)
        turns = length * theta / (2 * math.pi)
        gamma = 0 if turns < slow else 1 if turns > fast else (turns - slow) / (fast - slow)
        assert found[i] == pytest.approx((1 - gamma) * theta / factor + gamma * theta, rel=1e-13)


@pytest.mark.parametrize("ramp", ["code", "paper"])
def test_yarn_with_factor_one_changes_nothing(ramp):
    np.testing.assert_allclose(yarn_frequencies(128, 1, 2048, ramp=ramp), THETA, rtol=1e-15)


GPT_OSS = {"dim": 64, "factor": 32, "trained_length": 4096, "base": 150_000.0}  # openai/gpt-oss, `ModelConfig`


def test_yarn_ramp_that_is_not_cut_at_whole_pairs_is_gpt_oss():
    """`_compute_concentration_and_inv_freq` of openai/gpt-oss, number by number."""
    ends = [32 * math.log(4096 / (turns * 2 * math.pi)) / math.log(150_000) for turns in (32, 1)]
    assert not any(end.is_integer() for end in ends)
    found = yarn_frequencies(**GPT_OSS, truncate=False)
    for i in range(32):
        theta = 150_000 ** (-2 * i / 64)
        mask = 1 - min(max((i - ends[0]) / (ends[1] - ends[0]), 0), 1)
        assert found[i] == pytest.approx((1 - mask) * theta / 32 + mask * theta, rel=1e-13)
    ratio = yarn_frequencies(**GPT_OSS) / found
    assert ratio.argmax() == 17 and ratio.max() == pytest.approx(1.763, abs=0.001)
    assert np.array_equal(
        yarn_frequencies(**GPT_OSS, ramp="paper", truncate=False), yarn_frequencies(**GPT_OSS, ramp="paper")
    )


def test_yarn_factor_of_deepseek():
    """`yarn_get_mscale(factor, mscale) / yarn_get_mscale(factor, mscale_all_dim)`, defaults 1 and 0."""

    def mscale(factor, share):
        return 1.0 if factor <= 1 else 0.1 * share * math.log(factor) + 1.0

    for factor, share, all_dim in [(40, 0.707, 0.707), (40, 1.0, 1.0), (40, 1.0, 0.8), (16, 0.5, 0.0), (1, 0.7, 0.3)]:
        expected = mscale(factor, share) / mscale(factor, all_dim)
        assert yarn_attention_factor(factor, share, all_dim) == pytest.approx(expected, rel=1e-15)
        assert yarn_attention_factor(factor, all_dim) == pytest.approx(mscale(factor, all_dim), rel=1e-15)
    assert yarn_attention_factor(40, 0.707) == pytest.approx(1.2608, abs=5e-5)


def test_interpolation_keeps_kind_gradient_and_zeros():
    assert position_interpolation(np.float32([1, 0]), 4).dtype == np.float64
    theta = torch.tensor([1.0, 0.5, 0.0], requires_grad=True)
    slower = position_interpolation(theta, 4)
    slower.sum().backward()
    assert slower.tolist() == [0.25, 0.125, 0] and theta.grad.tolist() == [0.25] * 3


def test_yarn_attention_factor_reference():
    factors = [1, 2, 4, 8, 16, 32]
    found = np.array([yarn_attention_factor(s) for s in factors])
    assert_printed(found, [1, 1.06931472, 1.13862944, 1.20794415, 1.27725887, 1.34657359], 8)
    assert_printed(1 / found**2, [1, 0.87455859, 0.77132105, 0.68534033, 0.61297413, 0.55149276], 8)


# ------------------------------------------------------------------ Llama 3


def test_llama3_reference():
    theta = rope_frequencies(128, 500_000)
    ratio = theta / llama3_frequencies(128)
    assert (ratio[:29] == 1).all() and (np.abs(ratio[35:] - 8) < 1e-12).all()
    expected = [1.207484, 1.553414, 2.026313, 2.694530, 3.684254, 5.257327]
    np.testing.assert_allclose(ratio[29:35], expected, rtol=5e-7)  # float32 in the source of these values
    expected = [3.2114461e-3, 2.1665706e-3, 1.3718937e-3, 8.5675146e-4, 5.2484602e-4, 3.1269365e-4, 1.7850779e-4]
    np.testing.assert_allclose(llama3_frequencies(128)[28:35], expected, rtol=5e-7)
    np.testing.assert_allclose(llama3_frequencies(128)[[35, 63]], [9.5562122e-5, 3.0689259e-7], rtol=5e-7)
    assert_printed(wavelengths(128, 5e5)[28:36], [1956.5, 2401.7, 2948.3, 3619.2, 4442.9, 5454.0, 6695.1, 8218.7], 1)


def test_llama32_reference():
    ratio = rope_frequencies(64, 500_000) / llama3_frequencies(64, factor=32)
    assert (ratio[:15] == 1).all() and (np.abs(ratio[18:] - 32) < 1e-12).all()
    np.testing.assert_allclose(ratio[15:18], [1.651329, 3.292263, 9.666731], rtol=5e-7)  # float32 in the source


def test_llama3_loop():
    dim, factor, base, length, low, high = 64, 4.0, 1e4, 1000, 2.0, 5.0
    found = llama3_frequencies(dim, factor, base, length, low, high)
    for i in range(dim // 2):
        theta = base ** (-2 * i / dim)
        wavelength = 2 * math.pi / theta
        if wavelength < length / high:
            expected = theta
        elif wavelength > length / low:
            expected = theta / factor
        else:
            smooth = (length / wavelength - low) / (high - low)
            expected = (1 - smooth) * theta / factor + smooth * theta
        assert found[i] == pytest.approx(expected, rel=1e-13)


# ------------------------------------------------------------------ log-n


def test_log_n_reference():
    keys = [512, 1024, 2048, 4096, 8192]
    assert_printed(log_n_factor(keys, 512), [1, 1.111111, 1.222222, 1.333333, 1.444444], 6)
    assert_printed(log_n_factor([2048, 4096, 8192], 2048), [1, 1.0909091, 1.1818182], 7)


def test_log_n_is_never_below_one():
    assert log_n_factor([1, 2, 64, 511], 512).tolist() == [1, 1, 1, 1]
    assert log_n_factor(2048, 512) == pytest.approx(math.log(2048) / math.log(512), rel=1e-15)
    assert log_n_factor([[1, 600]], 512).shape == (1, 2)


def test_log_n_is_a_factor_and_the_difference_of_logs_does_nothing():
    z = np.array([1, 2, 3, 0.5])
    plain = softmax(z)
    assert_printed(plain, [0.08536889, 0.23205671, 0.63079554, 0.05177885], 8)
    np.testing.assert_allclose(softmax(z + math.log(512) - math.log(2048)), plain, rtol=0, atol=1e-15)
    assert_printed(softmax(z * log_n_factor(2048, 512)), [0.06074738, 0.20622053, 0.70006161, 0.03297049], 8)


def test_log_n_as_a_temperature_for_each_query():
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((6, 4)), rng.standard_normal((6, 4))
    factor = log_n_factor(np.arange(1, 7), 2)
    visible = np.tri(6, dtype=bool)
    weights = attention_weights(q, k, mask=visible, temperature=1 / factor[:, None])
    np.testing.assert_allclose(weights, softmax(q @ k.T / 2 * factor[:, None], visible), rtol=0, atol=1e-15)
