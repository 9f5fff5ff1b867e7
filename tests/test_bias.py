"""ALiBi, KERPLE and Sandwich against loops, printed values and what chapter 7 states about them."""

import math

import numpy as np
import pytest
import torch
from reference import assert_printed

from posviz import alibi_bias, alibi_slopes, attention_weights, kerple_log_bias, kerple_power_bias, sandwich_bias
from posviz.bias import distances

X = np.array([[1, 0], [0, 1], [1, 1], [0.5, -0.5]])


# ------------------------------------------------------------------ distances


def test_distances_loop():
    table = distances(3, 5)
    for row in range(3):
        for key in range(5):
            assert table[row, key] == (row + 2) - key
    assert distances(4).shape == (4, 4) and distances(0).shape == (0, 0) and distances(0, 3).shape == (0, 3)


# ------------------------------------------------------------------ ALiBi


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (1, [2**-8]),
        (2, [0.0625, 0.00390625]),
        (3, [0.0625, 0.00390625, 0.25]),
        (4, [0.25, 0.0625, 0.015625, 0.00390625]),
        (5, [0.25, 0.0625, 0.015625, 0.00390625, 0.5]),
        (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        (8, [2.0**-h for h in range(1, 9)]),
    ],
)
def test_slopes_that_are_powers_of_two_are_exact(heads, expected):
    assert alibi_slopes(heads).tolist() == expected


@pytest.mark.parametrize(
    ("heads", "part", "expected"),
    [
        (12, slice(8), [2.0**-h for h in range(1, 9)]),
        (12, slice(8, 12), [0.70710678, 0.35355339, 0.17677670, 0.08838835]),
        (16, slice(4), [0.70710678, 0.5, 0.35355339, 0.25]),
        (16, slice(15, 16), [0.00390625]),
        (20, slice(19, 20), [0.29730178]),
        (32, slice(1), [0.84089642]),
        (40, slice(0, 40, 39), [0.84089642, 0.27262693]),
        (48, slice(47, 48), [0.06815673]),
        (112, slice(0, 112, 111), [0.91700404, 0.01631678]),
    ],
)
def test_slopes_of_other_head_counts(heads, part, expected):
    assert alibi_slopes(heads).shape == (heads,)
    assert_printed(alibi_slopes(heads)[part], expected, 8)


def test_twelve_heads_do_not_follow_the_plain_formula():
    assert not np.isclose(alibi_slopes(12)[0], 2 ** (-8 / 12))


def test_last_query_lines_up_with_last_key_when_decoding():
    cached = alibi_bias(heads=4, query_length=2, key_length=5)
    for head, slope in enumerate([0.25, 0.0625, 0.015625, 0.00390625]):
        for row, query in enumerate((3, 4)):
            for key in range(5):
                assert cached[head, row, key] == (-slope * (query - key) if key <= query else -math.inf)


def test_symmetric_bias_falls_on_both_sides():
    bias = alibi_bias(2, 4, causal=False)
    for head, slope in enumerate([0.0625, 0.00390625]):
        for query in range(4):
            for key in range(4):
                assert bias[head, query, key] == -slope * abs(query - key)


def test_causal_bias_is_its_own_mask():
    bias = alibi_bias(8, 5)
    assert np.array_equal(np.isneginf(bias[0]), distances(5) < 0)
    weights = attention_weights(np.zeros((5, 2)), np.zeros((5, 2)), bias=bias[0])
    assert_printed(weights[4], [0.05801222, 0.09564598, 0.15769356, 0.25999272, 0.42865553], 8)
    assert weights[0].tolist() == [1, 0, 0, 0, 0]


def test_bias_has_no_negative_zero():
    assert not np.signbit(alibi_bias(3, 4)[:, range(4), range(4)]).any()
    assert not np.signbit(kerple_log_bias(0, 1, 1)) and not np.signbit(kerple_power_bias(0, 1, 1))


def test_alibi_is_added_after_the_scaling():
    last = attention_weights(X, X, bias=alibi_bias(8, 4)[0])[3]
    assert_printed(last, [0.12190115, 0.09909745, 0.23267836, 0.54632305], 8)
    falcon = attention_weights(X, X, bias=alibi_bias(8, 4)[0] / math.sqrt(2))[3]  # scaled with the scores
    assert_printed(falcon, [0.16626252, 0.11674763, 0.23677762, 0.48021223], 8)


def test_a_row_vector_is_enough_in_causal_attention_only():
    m, keys = 0.5, 5
    row = np.broadcast_to(m * np.arange(keys), (keys, keys))
    q = np.random.default_rng(0).standard_normal((keys, 2))
    causal = attention_weights(q, q, bias=row, mask=np.tri(keys, dtype=bool))
    np.testing.assert_allclose(causal, attention_weights(q, q, bias=alibi_bias(8, keys)[0]), rtol=0, atol=1e-15)
    both = attention_weights(q, q, bias=alibi_bias(8, keys, causal=False)[0])
    assert np.abs(attention_weights(q, q, bias=row) - both).max() > 0.2


@pytest.mark.parametrize(("head", "mean", "reach"), [(0, 1.54, 9.2), (7, 255.5, 1179)])
def test_alibi_is_a_soft_window(head, mean, reach):
    keys = 20_000
    weights = attention_weights(np.zeros((1, 1)), np.zeros((keys, 1)), bias=alibi_bias(8, 1, keys)[head])[0, ::-1]
    assert weights @ np.arange(keys) == pytest.approx(mean, abs=0.05)
    assert np.searchsorted(weights.cumsum(), 0.99) == pytest.approx(reach, abs=1.5)


def test_mass_of_far_keys():
    bias = alibi_bias(8, 1, 1024)
    far = [attention_weights(np.zeros((1, 1)), np.zeros((1024, 1)), bias=b)[0, ::-1][65:].sum() for b in bias]
    assert far[0] < 2e-14
    assert [far[3], far[5], far[7]] == pytest.approx([0.018, 0.368, 0.775], abs=0.008)


# ------------------------------------------------------------------ KERPLE

D = [0, 1, 2, 4, 8, 64, 512, 1024]


def test_kerple_reference():
    first = [0, -0.69314718, -1.09861229, -1.60943791, -2.19722458, -4.17438727, -6.24027585, -6.93244789]
    second = [0, -0.81093022, -1.38629436, -2.19722458, -3.21887582, -6.99301512, -11.09815217, -12.48055169]
    assert_printed(kerple_log_bias(D, 1, 1), first, 8)
    assert_printed(kerple_log_bias(D, 2, 0.5), second, 8)
    np.testing.assert_allclose(kerple_power_bias(D, 1, 0.5), -np.sqrt(D), rtol=1e-15)


def test_kerple_loop():
    for d in (-7, 0, 3, 100):
        assert kerple_log_bias(d, 1.7, 0.3) == pytest.approx(-1.7 * math.log(1 + 0.3 * abs(d)), rel=1e-14)
        assert kerple_power_bias(d, 1.7, 1.3) == pytest.approx(-1.7 * abs(d) ** 1.3, rel=1e-14)


def test_kerple_power_with_exponent_one_is_alibi():
    for slope, bias in zip(alibi_slopes(4), alibi_bias(4, 6, causal=False), strict=True):
        assert np.array_equal(kerple_power_bias(distances(6), slope, 1), bias)


def test_kerple_code_adds_after_the_scaling_and_the_paper_before():
    bias, visible = kerple_log_bias(distances(4), 1, 0.5), distances(4) >= 0
    code = attention_weights(X, X, bias=bias, mask=visible)[3]
    assert_printed(code, [0.1891557, 0.11658344, 0.2213716, 0.47288926], 7)
    paper = attention_weights(X, X, bias=bias / math.sqrt(2), mask=visible)[3]
    assert_printed(paper, [0.22239133, 0.12839586, 0.22410024, 0.42511256], 8)


def test_kerple_one_pair_a_head():
    r1, r2 = np.array([0.5, 2.0])[:, None, None], np.array([0.1, 1.5])[:, None, None]
    for formula in (kerple_log_bias, kerple_power_bias):
        bias = formula(distances(3, 5), r1, r2)
        assert bias.shape == (2, 3, 5)
        for head in range(2):
            assert np.array_equal(bias[head], formula(distances(3, 5), r1[head, 0, 0], r2[head, 0, 0]))


def test_kerple_learns():
    r1, r2 = (torch.tensor(r).double().reshape(2, 1, 1).requires_grad_() for r in ([0.5, 2], [0.25, 1.5]))
    for formula in (kerple_log_bias, kerple_power_bias):
        bias = formula(distances(4), r1, r2)
        expected = formula(distances(4), r1.detach().numpy(), r2.detach().numpy())
        np.testing.assert_allclose(bias.detach().numpy(), expected, rtol=1e-15)
        assert torch.autograd.gradcheck(lambda a, b, formula=formula: formula(distances(4), a, b), (r1, r2))
    assert kerple_log_bias([1], torch.ones(1), 2.0).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_far_distances_in_half_precision(dtype):
    """Neither 70,000 nor its logarithm's argument fits into float16; the bias does."""
    distance = np.array([0, 1, 300, 70_000, 10**9])
    r1, r2 = (torch.tensor(r, dtype=dtype, requires_grad=True) for r in (1.0, 0.5))
    limit = {torch.float16: 2**-11, torch.bfloat16: 2**-8, torch.float32: 1e-6}[dtype]
    for formula, exact in [(kerple_log_bias, -np.log1p(0.5 * distance)), (kerple_power_bias, -np.sqrt(distance))]:
        bias = formula(distance, r1, r2)
        assert bias.dtype == dtype
        np.testing.assert_allclose(bias.detach().double(), exact, rtol=1.01 * limit)
        for gradient in torch.autograd.grad(bias.float().sum(), (r1, r2)):
            assert torch.isfinite(gradient) or formula is kerple_power_bias  # Σ √d ln d is beyond float16
    assert kerple_log_bias([70_000], r1.detach().half(), 1.0).item() == np.float16(-math.log(70_001))


def test_kerple_takes_the_wider_of_two_dtypes():
    one, other = torch.tensor(1.0).half(), torch.tensor(0.5)
    assert kerple_log_bias([1], one, other).dtype == kerple_log_bias([1], other, one).dtype == torch.float32


@pytest.mark.parametrize(
    "formula",
    [lambda d: kerple_power_bias(d, 1, 1), lambda d: kerple_log_bias(d, 1, 1), lambda d: sandwich_bias(d, 8)[0]],
)
def test_the_farthest_distances_of_64_bits_have_the_same_bias_on_both_sides(formula):
    before, after = formula([-(2**63), 2**63 - 1])
    assert before == after < 0


def test_the_power_of_the_farthest_distance():
    assert kerple_power_bias([-(2**63)], 1, 1) == -(2.0**63)


def test_kerple_kernels_are_conditionally_positive_definite_up_to_exponent_two():
    d, centring = distances(12), np.eye(12) - 1 / 12
    for bias in (kerple_log_bias(d, 1, 1), kerple_power_bias(d, 1, 1), kerple_power_bias(d, 1, 2)):
        assert np.linalg.eigvalsh(centring @ bias @ centring).min() > -1e-10
    assert np.linalg.eigvalsh(centring @ (-(np.abs(d) ** 3.0)) @ centring).min() < -100


# ------------------------------------------------------------------ Sandwich


def test_sandwich_reference():
    distance = [0, 1, 2, 5, 10, 50, 100, 512, 1024, 4096]
    total = sandwich_bias(distance, 8)[0] + 64  # head 1 of 8 has ratio 1
    expected = [
        *(64, 62.55338149, 58.79800737, 47.90134966, 44.65909393),
        *(34.99003231, 30.68108583, 16.03868280, 13.09165891, -3.26932434),
    ]
    assert_printed(total, expected, 8)
    bias = sandwich_bias(distance, 12)
    first = [0, -2.16992776, -7.80298895, -24.14797551, -29.01135911, -43.51495153, -49.97837126, -71.94197580]
    assert_printed(bias[0, :8], first, 8)
    last = [
        *(0, -0.18082731, -0.65024908, -2.01233129, -2.41761326),
        *(-3.62624596, -4.16486427, -5.99516465, -6.36354264, -8.40866554),
    ]
    assert_printed(bias[11], last, 8)


def test_sandwich_loop():
    bias = sandwich_bias(distances(3, 5), heads=3, dim=6)
    assert bias.shape == (3, 3, 5)
    for h in range(1, 4):
        for row in range(3):
            for key in range(5):
                cosines = [math.cos((row + 2 - key) * 10_000 ** (-2 * t / 6)) for t in range(1, 4)]
                assert bias[h - 1, row, key] == pytest.approx((sum(cosines) - 3) / (8 * h / 3), abs=1e-14)


def test_sandwich_is_even_and_zero_at_the_query():
    assert np.array_equal(sandwich_bias(np.arange(-50, 51), 4), sandwich_bias(np.arange(50, -51, -1), 4))
    assert not sandwich_bias(0, 4).any() and sandwich_bias(0, 4).shape == (4,)
    assert sandwich_bias([], 4).shape == (4, 0)


def test_sandwich_is_about_logarithmic():
    distance = np.arange(1, 512)
    slope, _ = np.polyfit(np.log1p(distance), sandwich_bias(distance, 8)[0], 1)
    assert_printed(slope, -7.15, 2)
    steps = np.diff(sandwich_bias(np.arange(2048), 8)[0])
    assert (steps > 0).mean() == pytest.approx(0.48, abs=0.005)
