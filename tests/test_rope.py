"""Rotation against loops, matrices, complex numbers and printed values; dtypes, layouts, shapes, gradients."""

import numpy as np
import pytest
import torch
from reference import assert_printed, assert_significant, rope_loop

from posviz import rope, rope_frequencies, rope_matrix, xpos_scale
from posviz.rope import rotate_pairs, rotation_table

LAYOUTS = ["interleaved", "half"]


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# ------------------------------------------------------------------ frequencies


@pytest.mark.parametrize(
    ("dim", "base", "pairs", "expected"),
    [
        (4, 1e4, [0, 1], [1, 0.01]),
        (8, 1e4, [0, 1, 2, 3], [1, 0.1, 0.01, 0.001]),
        (128, 1e4, [0, 1, 2, 16, 32, 63], [1, 0.86596432, 0.74989421, 0.1, 0.01, 1.15478198e-4]),
        (128, 5e5, [0, 1, 16, 32, 63], [1, 0.81461723, 0.03760603, 0.00141421, 2.45514e-6]),
    ],
)
def test_reference_frequencies(dim, base, pairs, expected):
    theta = rope_frequencies(dim, base)
    assert theta.shape == (dim // 2,) and theta.dtype == np.float64
    assert_significant(theta[pairs], expected, 6)
    assert_printed(theta[pairs], expected, 8)


def test_slow_pairs_reach_angles_they_were_not_trained_on():
    theta = rope_frequencies(128)
    assert (2047 * theta >= 2 * np.pi).sum() == 41
    assert_printed(2047 * theta[-1], 0.236, 3)
    assert_printed(8191 * theta[-1], 0.946, 3)


# ------------------------------------------------------------------ printed values

X4, X8 = [1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8]
X8_INTERLEAVED = [2.20151073, -0.39159990, 0.71504553, 4.94860686, 4.69387629, 6.24239741, 6.95991267, 8.03489985]
X8_HALF = [5.07828356, -1.12138811, 2.64639660, 3.95995017, 0.45938665, 6.22434645, 7.14118933, 8.01989992]


@pytest.mark.parametrize(
    ("x", "position", "options", "expected"),
    [
        (X4, 1, {}, [-1.14263966, 1.92207560, 2.95985067, 4.02979950]),
        (X4, 2, {}, [-2.23474169, 0.07700375, 2.91940535, 4.05919603]),
        (X4, 3, {}, [-1.27223251, -1.83886499, 2.87866810, 4.08818664]),
        (X4, 10, {}, [0.24897069, -2.22216417, 2.58567883, 4.27951691]),
        (X4, 1, {"layout": "half"}, [-1.98411065, 1.95990067, 2.46237790, 4.01979967]),
        (X4, 2, {"layout": "half"}, [-3.14403912, 1.91960535, -0.33914308, 4.03919736]),
        (X4, 3, {"layout": "half"}, [-1.41335252, 1.87911807, -2.82885748, 4.05819114]),
        (X8, 5, {}, X8_INTERLEAVED),
        (X8, 5, {"layout": "half"}, X8_HALF),
        (X8, 5, {"rotary_dim": 4}, [2.20151073, -0.39159990, 2.79633410, 4.14493855, 5, 6, 7, 8]),
        (X8, 5, {"rotary_dim": 4, "layout": "half"}, [3.16043501, 1.79758384, -0.10793772, 4.09495938, 5, 6, 7, 8]),
    ],
)
def test_reference_rotations(x, position, options, expected):
    assert_printed(rope(x, position, **options), expected, 8)


@pytest.mark.parametrize(
    ("layout", "m", "n", "expected"),
    [
        ("interleaved", 0, 0, 10.5),
        ("interleaved", 3, 1, 10.73323015),
        ("interleaved", 10, 8, 10.73323015),
        ("interleaved", 1000, 998, 10.73323015),
        ("interleaved", 1, 3, 14.51041052),
        ("half", 3, 1, 1.88888497),
        ("half", 10, 8, 1.88888497),
        ("half", 1, 3, 0.69960621),
    ],
)
def test_reference_scores(layout, m, n, expected):
    q, k = [1, 2, 3, 4], [0.5, -1, 2, 1.5]
    assert_printed(rope(q, m, layout=layout) @ rope(k, n, layout=layout), expected, 8)


def test_mixing_the_layouts_loses_relativity():
    """Interleaved tables with the half-split rotation, the bug of errata E21: the value is known, and not relative."""

    def mixed(x, m):
        cos, sin = (np.repeat(f(m * rope_frequencies(4)), 2) for f in (np.cos, np.sin))
        return np.asarray(x) * cos + np.concatenate([-np.asarray(x)[2:], np.asarray(x)[:2]]) * sin

    q, k = [1, 2, 3, 4], [0.5, -1, 2, 1.5]
    assert_printed(mixed(q, 3) @ mixed(k, 1), 18.70172444, 8)
    assert_printed(mixed(q, 10) @ mixed(k, 8), 9.89536766, 8)


# ------------------------------------------------------------------ independent forms


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dim", "rotary_dim"), [(2, None), (8, None), (96, 24), (7, 4)])
def test_equals_the_loop(layout, dim, rotary_dim):
    x, positions = random(5, dim), [0, 1, -3, 511, 1_000_000]
    expected = rope_loop(x, positions, layout=layout, rotary_dim=rotary_dim)
    np.testing.assert_allclose(
        rope(x, positions, layout=layout, rotary_dim=rotary_dim), expected, rtol=0, atol=1e-9
    )  # 10^6 radians carry a rounding of 10^-10
    np.testing.assert_allclose(
        rope(x[:4], positions[:4], layout=layout, rotary_dim=rotary_dim), expected[:4], rtol=0, atol=1e-12
    )


def test_positions_that_float32_cannot_hold():
    x, positions = random(2, 4), [2**24 + 1, 2**31 + 1]
    expected = rope_loop(x, positions)
    np.testing.assert_allclose(rope(x, positions), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(rope(torch.from_numpy(x), torch.tensor(positions)), expected, rtol=0, atol=1e-6)


def test_equals_complex_multiplication():
    x, positions = random(3, 6, 16), np.arange(6)
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * positions[:, None] * rope_frequencies(16))
    np.testing.assert_allclose(rope(x, positions)[..., 0::2], turned.real, rtol=0, atol=1e-14)
    np.testing.assert_allclose(rope(x, positions)[..., 1::2], turned.imag, rtol=0, atol=1e-14)


def test_equals_the_matrix_which_is_orthogonal():
    x = random(12)
    for m in (0, 1, 5, 1000):
        matrix = rope_matrix(m, 12)
        np.testing.assert_allclose(matrix @ x, rope(x, m), rtol=0, atol=1e-13)
        np.testing.assert_allclose(matrix.T @ matrix, np.eye(12), rtol=0, atol=1e-14)
        assert np.linalg.det(matrix) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(rope_matrix(3, 12).T @ rope_matrix(8, 12), rope_matrix(5, 12), rtol=0, atol=1e-14)
    np.testing.assert_allclose(rope_matrix(-4, 12), rope_matrix(4, 12).T, rtol=0, atol=0)


@pytest.mark.parametrize("dim", [4, 8, 64])
def test_one_permutation_leads_from_one_layout_to_the_other(dim):
    x, evens_then_odds = random(9, dim), np.r_[0:dim:2, 1:dim:2]
    half = rope(x[:, evens_then_odds], range(9), layout="half")
    assert np.array_equal(half, rope(x, range(9))[:, evens_then_odds])
    assert np.abs(rope(x, range(9), layout="half") - rope(x, range(9))).max() > 0.1


def test_conjugate_belongs_on_one_side():
    q, k, theta, m, n = 1 + 2j, 3 - 1j, 0.7, 5, 2
    score = rope([1, 2], m, frequencies=[theta]) @ rope([3, -1], n, frequencies=[theta])
    assert_printed(score, -6.5473117, 7)
    assert score == pytest.approx((q * k.conjugate() * np.exp(1j * (m - n) * theta)).real, abs=1e-13)
    assert score != pytest.approx((q * k.conjugate() * np.exp(1j * (n - m) * theta)).real, abs=1)


@pytest.mark.parametrize(
    ("base", "relative", "expected"),
    [
        (1e4, [0, 1, 2, 5, 10], [32.5, 31.538166, 28.955988, 20.845358, 17.954137]),
        (1e4, [20, 50, 100, 150, 200], [15.242430, 12.629452, 10.227330, 7.588477, 7.244771]),
        (1e4, [250, 500, 1000, 4096], [6.548179, 6.189791, 4.470761, 4.882792]),
        (1e6, [100, 1000, 4096], [13.532760, 12.500698, 5.614539]),
    ],
)
def test_curve_of_the_decay_bound(base, relative, expected):
    phases = np.exp(1j * np.outer(relative, rope_frequencies(128, base)))
    assert_printed(np.abs(phases.cumsum(axis=1)).mean(axis=1), expected, 6)


# ------------------------------------------------------------------ kinds, dtypes, shapes

HALVES = [np.float16, torch.float16, torch.bfloat16]
SINGLES = [np.float32, torch.float32]
DOUBLES = [np.float64, torch.float64]
UNIT = {np.float16: 2.0**-11, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}  # largest relative rounding


def of_dtype(array, dtype):
    if isinstance(dtype, torch.dtype):
        return torch.from_numpy(np.array(array)).to(dtype)
    return array.astype(dtype)


def as_float64(array):
    return array.double().numpy() if isinstance(array, torch.Tensor) else array.astype(np.float64)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", HALVES + SINGLES + DOUBLES, ids=str)
def test_each_dtype_is_kept_and_right_within_its_own_rounding(dtype, layout):
    positions = np.array([0, 1, 255, 257, 2049, 4095, 65_521, 131_071, 999_999, 1_000_000])
    x = of_dtype(random(4, len(positions), 64), dtype)
    rotated = rope(x, positions, layout=layout)
    assert type(rotated) is type(x) and rotated.dtype == x.dtype and rotated.shape == x.shape

    exact = np.stack([rope_loop(head, positions, layout=layout) for head in as_float64(x)])
    error = np.abs(as_float64(rotated) - exact)
    size = np.abs(as_float64(x)).max()
    if dtype in HALVES:  # one rounding of the result, and the rounding of float32 arithmetic before it
        assert (error <= UNIT[dtype] * np.abs(exact) * 1.001 + 4 * 2.0**-24 * size).all()
    else:
        assert error.max() <= (4 * 2.0**-24 if dtype in SINGLES else 1e-9) * size


def test_half_precision_scores_stay_relative_where_half_precision_positions_do_not():
    q, k = (torch.from_numpy(random(128, seed=s)).to(torch.bfloat16) for s in (1, 2))
    scores = [float(rope(q, m + 5).double() @ rope(k, m).double()) for m in (0, 255, 256, 1000, 4000, 1_000_000)]
    assert max(scores) - min(scores) < 0.1  # positions in bfloat16: off by more than 10 at 4,000 (FACTS 7)


@pytest.mark.parametrize("integers", [[1, 2, 3, 4], np.array([1, 2, 3, 4], np.int8), np.array([1, 2, 3, 4], np.uint64)])
def test_integers_and_lists_become_float64(integers):
    rotated = rope(integers, 1)
    assert rotated.dtype == np.float64
    assert np.array_equal(rotated, rope(np.array([1.0, 2, 3, 4]), 1))


def test_integer_tensors_become_float64_tensors():
    rotated = rope(torch.tensor([1, 2, 3, 4]), 1)
    assert rotated.dtype == torch.float64
    assert np.array_equal(rotated.numpy(), rope([1, 2, 3, 4], 1))


@pytest.mark.parametrize(
    "positions",
    [
        [0, 1, 2, 3],
        (0, 1, 2, 3),
        range(4),
        np.arange(4, dtype=np.int16),
        np.arange(4.0),
        np.arange(3, -1, -1)[::-1],
        torch.arange(4),
        torch.arange(4, dtype=torch.uint8),
        torch.arange(4.0),
    ],
    ids=lambda p: f"{type(p).__name__}-{getattr(p, 'dtype', '')}",
)
def test_positions_of_every_kind(positions):
    x = random(2, 4, 8)
    expected = rope(x, [0, 1, 2, 3])
    assert np.array_equal(rope(x, positions), expected)
    assert np.array_equal(rope(torch.from_numpy(x), positions).numpy(), expected)


def test_strides_do_not_matter():
    x = random(6, 10, 16)
    views = [x[::-1], x[:, ::-1], x[:, :, ::-1], x[:, 1::2], x.swapaxes(0, 1), x[:, :, ::2], np.asfortranarray(x)]
    for view in views:
        positions = np.arange(view.shape[1])
        expected = np.stack([rope_loop(head, positions) for head in view])
        np.testing.assert_allclose(rope(view, positions), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(rope(view, positions[::-1])[:, ::-1], rope(view[:, ::-1], positions), rtol=0, atol=0)
    t = torch.from_numpy(x)
    for view in (t.transpose(0, 1), t[:, 1::2], t[..., ::2], t[..., 1:9], t[:1].expand(3, 10, 16)):
        positions = np.arange(view.shape[1])
        np.testing.assert_allclose(rope(view, positions).numpy(), rope(view.numpy(), positions), rtol=0, atol=1e-14)


def test_leading_axes_and_positions_of_each_text():
    x, positions = random(2, 3, 5, 8), np.array([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
    rotated = rope(x, positions[:, None, :])
    for text in range(2):
        for head in range(3):
            assert np.array_equal(rotated[text, head], rope(x[text, head], positions[text]))
    assert np.array_equal(rope(x, 7), rope(x, [7] * 5))
    assert np.array_equal(rope(x[0, 0, 0], 3), rope(x[0, 0], [3] * 5)[0])


def test_nothing_to_rotate():
    assert rope(np.zeros((2, 0, 8)), []).shape == (2, 0, 8)
    assert rope(torch.zeros(0, 4, 8), range(4)).shape == (0, 4, 8)


def test_frequencies_take_the_place_of_the_base():
    x = random(5, 8)
    assert np.array_equal(rope(x, range(5), frequencies=rope_frequencies(8, 500.0)), rope(x, range(5), base=500.0))
    squeezed = rope(x, [0, 4, 8, 12, 16], frequencies=rope_frequencies(8) / 4)
    np.testing.assert_allclose(squeezed, rope(x, range(5)), rtol=0, atol=1e-14)
    from_tensor = rope(torch.from_numpy(x), range(5), frequencies=torch.from_numpy(rope_frequencies(8)))
    assert np.array_equal(from_tensor.numpy(), rope(x, range(5)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_frequency_of_zero_leaves_its_pair_as_it_is(layout):
    x = random(5, 8)
    still = rope(x, range(5), frequencies=[1.0, 0.5, 0, 0], layout=layout)
    pairs = [slice(4, 8)] if layout == "interleaved" else [slice(2, 4), slice(6, 8)]
    for kept in pairs:
        assert np.array_equal(still[:, kept], x[:, kept])
    assert np.abs(still - x).max() > 0.1


@pytest.mark.parametrize("rows", [5, 3000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_reach_learned_frequencies(layout, rows):
    x = torch.from_numpy(random(rows, 32))
    theta = torch.tensor(rope_frequencies(32) / 100).requires_grad_()
    rope(x, range(rows), frequencies=theta, layout=layout)[-1].sum().backward()
    step = 1e-7
    for i in range(0, 16, 5):
        moved = [
            rope(x[-1], rows - 1, frequencies=theta.detach().numpy() + s * step * np.eye(16)[i], layout=layout)
            for s in (1, -1)
        ]
        assert theta.grad[i].item() == pytest.approx((moved[0] - moved[1]).sum().item() / (2 * step), rel=1e-3)


def test_positions_that_name_all_axes_are_never_refused():
    x = random(5, 5, 5, 8)
    along_tokens, along_heads = rope(x, np.arange(5)[None, None]), rope(x, np.arange(5)[None, :, None])
    for i in range(5):
        assert np.array_equal(along_tokens[:, :, i], rope(x[:, :, i], i))
        assert np.array_equal(along_heads[:, i], rope(x[:, i], i))
    assert np.array_equal(rope(x[:, :2], range(5)), along_tokens[:, :2])  # two heads, five tokens: one reading
    assert np.array_equal(rope(x, np.arange(5)[:, None]), along_heads)  # (sequence, 1) fits heads nowhere
    assert np.array_equal(rope(x[0], range(5)), along_tokens[0])
    assert np.array_equal(rope(x[:, :, :1], [7]), rope(x[:, :, :1], 7))


def test_table_can_be_made_once_for_many_layers():
    x = torch.from_numpy(random(2, 6, 8)).float()
    cos, sin = rotation_table(torch.arange(6), rope_frequencies(8), x)
    assert cos.dtype == torch.float32 and cos.shape == (6, 4)
    for layout in LAYOUTS:
        assert torch.equal(rotate_pairs(x, cos, sin, layout), rope(x, range(6), layout=layout))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_are_the_rotation_backwards(layout):
    x = torch.from_numpy(random(2, 5, 8)).requires_grad_()
    flowing = torch.from_numpy(random(2, 5, 8, seed=1))
    rope(x, range(5), layout=layout, rotary_dim=6).backward(flowing)
    backwards = rope(flowing, [0, -1, -2, -3, -4], layout=layout, rotary_dim=6)
    torch.testing.assert_close(x.grad, backwards, rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(lambda t: rope(t, range(5), layout=layout), x)


def test_bfloat16_gradients_flow():
    x = torch.ones(3, 8, dtype=torch.bfloat16, requires_grad=True)
    rope(x, range(3)).sum().backward()
    assert x.grad.dtype == torch.bfloat16 and torch.isfinite(x.grad).all()


# ------------------------------------------------------------------ xPos


def test_xpos_constants():
    assert_printed(xpos_scale(512, 8), [0.28571429, 0.46428571, 0.64285714, 0.82142857], 8)
    wide = xpos_scale(512, 64)
    assert_printed(wide[[0, 1]], [0.28571429, (2 / 64 + 0.4) / 1.4], 8)
    assert_printed(wide[-1], 0.9776786, 7)
    assert_significant(xpos_scale(2048, 8)[0], 0.00666389, 6)
    assert_significant(xpos_scale([-1024, -4096, -16384], 64)[:, 0], [12.25, 2.25e4, 2.6e17], 2)


@pytest.mark.parametrize(
    ("m", "n", "expected"),
    [(0, 0, 15.0), (1, 0, 12.627150), (2, 0, 9.725802), (5, 0, 12.845058), (0, 1, 14.801587), (105, 100, 12.845058)],
)
def test_xpos_scores(m, n, expected):
    q, k = np.arange(1.0, 9), np.arange(8.0, 0, -1) / 8
    scaled_q = rope(q, m) * np.repeat(xpos_scale(m, 8), 2)
    scaled_k = rope(k, n) / np.repeat(xpos_scale(n, 8), 2)
    assert_printed(scaled_q @ scaled_k, expected, 6)


def test_xpos_loop():
    scale = xpos_scale([0, 3, -100], 6, gamma=0.5, scale_base=64)
    for row, position in enumerate((0, 3, -100)):
        for i in range(3):
            assert scale[row, i] == pytest.approx(((2 * i / 6 + 0.5) / 1.5) ** (position / 64), rel=1e-14)
