"""Sinusoidal tables against loops, printed values and the facts that chapter 3 states."""

import numpy as np
import pytest
from reference import assert_printed, sinusoid_loop

import posviz
from posviz import sinusoidal, wavelengths


@pytest.mark.parametrize(
    ("dim", "position", "features", "expected"),
    [
        (4, 0, slice(None), [0, 1, 0, 1]),
        (4, 1, slice(None), [0.84147098, 0.54030231, 0.00999983, 0.99995000]),
        (4, 2, slice(None), [0.90929743, -0.41614684, 0.01999867, 0.99980001]),
        (4, 3, slice(None), [0.14112001, -0.98999250, 0.02999550, 0.99955003]),
        (8, 1, slice(4), [0.84147098, 0.54030231, 0.09983342, 0.99500417]),
        (8, 1, slice(4, 8), [0.00999983, 0.99995000, 0.00100000, 0.99999950]),
        (8, 5, slice(4), [-0.95892427, 0.28366219, 0.47942554, 0.87758256]),
        (8, 5, slice(4, 8), [0.04997917, 0.99875026, 0.00499998, 0.99998750]),
        (512, 1, slice(6), [0.84147098, 0.54030231, 0.82185619, 0.56969501, 0.80196180, 0.59737533]),
        (512, 10, slice(4), [-0.54402111, -0.83907153, -0.22002319, -0.97549464]),
        (512, 1000, slice(510, 512), [0.10347773, 0.99463177]),
    ],
)
def test_reference_vectors(dim, position, features, expected):
    assert_printed(sinusoidal(position, dim)[features], expected, 8)


@pytest.mark.parametrize(("dim", "base"), [(2, 10_000.0), (8, 10_000.0), (6, 100.0), (64, 5e5)])
def test_table_equals_the_loop(dim, base):
    positions = [0, 1, 7, 511, 100_000]
    found, expected = sinusoidal(positions, dim, base), sinusoid_loop(positions, dim, base)
    np.testing.assert_allclose(found[:4], expected[:4], rtol=0, atol=1e-13)
    np.testing.assert_allclose(found[4], expected[4], rtol=0, atol=1e-10)  # 10^5 radians carry a rounding of 10^-11


def test_concatenated_is_the_same_numbers_with_all_sines_first():
    plain, other = sinusoidal(range(20), 10), sinusoidal(range(20), 10, layout="concatenated")
    assert np.array_equal(other[:, :5], plain[:, 0::2])
    assert np.array_equal(other[:, 5:], plain[:, 1::2])


@pytest.mark.parametrize("dim", [4, 10, 512])
def test_tensor2tensors_table_has_other_frequencies(dim):
    """`get_timing_signal_1d`: exp(−i ln(10⁴)/(dim/2 − 1)), all sines first; fairseq the same, from position 1 on."""
    pairs = dim // 2
    slower = np.exp(-np.arange(pairs) * np.log(10_000.0) / (pairs - 1))
    angles = np.arange(50)[:, None] * slower
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    found = sinusoidal(range(50), dim, base=10_000 ** (dim / (dim - 2)), layout="concatenated")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    assert np.abs(sinusoidal(range(50), dim, layout="concatenated") - expected).max() > 0.02
    assert_printed(expected[1, [0, pairs - 1]], [0.84147098, 0.0001], 8)


def test_shape_follows_the_positions():
    assert sinusoidal(3, 8).shape == (8,)
    assert sinusoidal([], 8).shape == (0, 8)
    assert sinusoidal([[1, 2, 3], [4, 5, 6]], 8).shape == (2, 3, 8)
    assert sinusoidal(range(3), 8).dtype == np.float64


def test_negative_positions_flip_the_sine_only():
    past, future = sinusoidal([-5], 8), sinusoidal([5], 8)
    assert np.array_equal(past[:, 0::2], -future[:, 0::2])
    assert np.array_equal(past[:, 1::2], future[:, 1::2])


def test_every_row_has_the_length_root_of_half_dim():
    rows = sinusoidal(np.arange(0, 100_000, 997), 128)
    np.testing.assert_allclose((rows**2).sum(axis=1), 64, rtol=1e-14)


INNER_PRODUCTS = """
0       4.000000   32.000000   64.000000   256.000000
1       3.535256   30.916832   62.093684   249.102098
2       2.563718   28.303862   57.381861   231.733620
5       3.159983   23.503971   47.185012   189.596668
10      1.696185   21.051629   42.820023   173.789725
50      3.124961   15.673797   34.955011   131.090761
100     1.558554   17.874669   30.543455   111.950209
500     1.242362   6.418171    19.102697   67.233076
1000    1.125929   8.925967    10.177728   44.971605
5000    0.519447   -4.187777   -0.445176   -6.274991
10000   -0.366529  1.579226    -1.785202   -16.490400
"""


@pytest.mark.parametrize("row", INNER_PRODUCTS.split("\n")[1:-1], ids=lambda row: row.split()[0])
def test_inner_product_depends_on_the_distance_only(row):
    distance, *expected = row.split()
    for dim, value in zip((8, 64, 128, 512), expected):
        for start in (0, 3, 1234):
            near, far = sinusoidal([start, start + int(distance)], dim)
            assert_printed(near @ far, float(value), 6)


@pytest.mark.parametrize(
    ("dim", "first_negative", "first_rise", "share"), [(64, 725, 5, 47.7), (128, 1707, 11, 46.9), (512, 3284, 43, 39.5)]
)
def test_inner_product_is_not_monotone_and_becomes_negative(dim, first_negative, first_rise, share):
    product = sinusoidal(range(4000), dim) @ sinusoidal(0, dim)
    assert np.argmax(product < 0) == first_negative
    assert np.argmax(np.diff(product) > 0) == first_rise
    assert_printed(100 * (np.diff(product[:513]) > 0).mean(), share, 1)


def test_shift_is_one_matrix_for_all_positions():
    delta, dim = 7, 16
    angles = delta * posviz.rope_frequencies(dim)
    shift = np.zeros((dim, dim))
    for i, angle in enumerate(angles):
        c, s = np.cos(angle), np.sin(angle)
        shift[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]  # for pairs in the order (sin, cos)
    here, there = sinusoidal(range(50), dim), sinusoidal(range(delta, 50 + delta), dim)
    np.testing.assert_allclose(here @ shift.T, there, rtol=0, atol=1e-14)


def test_wavelengths():
    for dim, last in [(64, 47117.24), (128, 54410.14), (512, 60611.48)]:
        assert_printed(wavelengths(dim)[0], 6.283185, 6)
        assert_printed(wavelengths(dim)[-1], last, 2)
    for reach, pairs in [(512, 33), (2048, 23), (4096, 18)]:
        assert (wavelengths(128) > reach).sum() == pairs


def test_after_one_wavelength_a_pair_is_back():
    ordinary = 1 / wavelengths(8, base=16.0)
    np.testing.assert_allclose(ordinary * 2 * np.pi, posviz.rope_frequencies(8, base=16.0), rtol=1e-15)


def test_joint_vector_does_not_come_back():
    rows = sinusoidal(np.arange(5, 100_001), 128)
    distance = np.linalg.norm(rows - sinusoidal(0, 128), axis=1)
    assert distance.argmin() == 0
    assert_printed(distance.min(), 5.80, 2)
