"""Softmax, attention weights and entropy: visible keys only, no NaN, every dtype, gradients."""

import math

import numpy as np
import pytest
import torch
from reference import assert_printed, softmax_loop

from posviz import attention_entropy, attention_weights, softmax

# Each dtype with the relative error allowed: its own rounding for 16 bits, a few roundings for the wider ones.
UNIT = {
    np.float16: 2.0**-11,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
    np.float32: 1e-6,
    torch.float32: 1e-6,
    np.float64: 1e-14,
    torch.float64: 1e-14,
}
DTYPES = list(UNIT)
SMALLEST = 2.0**-25  # half of the smallest float16


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def of_dtype(array, dtype):
    return torch.tensor(np.array(array)).to(dtype) if isinstance(dtype, torch.dtype) else np.asarray(array, dtype)


def as_float64(array):
    return array.double().numpy() if isinstance(array, torch.Tensor) else np.asarray(array, np.float64)


# ------------------------------------------------------------------ softmax


def test_softmax_equals_the_loop():
    scores, visible = 5 * random(4, 3, 7), random(4, 3, 7, seed=1) > -0.5
    found = softmax(scores, visible)
    for index in np.ndindex(4, 3):
        np.testing.assert_allclose(found[index], softmax_loop(scores[index], visible[index]), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_softmax_keeps_kind_and_dtype(dtype):
    scores = of_dtype(3 * random(5, 300), dtype)
    weights = softmax(scores)
    assert type(weights) is type(scores) and weights.dtype == scores.dtype
    expected = [softmax_loop(row, [True] * 300) for row in as_float64(scores)]
    np.testing.assert_allclose(as_float64(weights), expected, rtol=UNIT[dtype] * 1.01, atol=SMALLEST)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_row_without_a_visible_key_gives_zeros(dtype):
    scores = of_dtype([[1, 2, 3], [-np.inf] * 3, [1, -np.inf, 2]], dtype)
    weights = as_float64(softmax(scores, [[False] * 3, [True] * 3, [False, True, True]]))
    assert weights.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_huge_scores(dtype):
    largest = torch.finfo(dtype).max if isinstance(dtype, torch.dtype) else float(np.finfo(dtype).max)
    rows = [[largest, -largest, 0], [-largest, -largest, -np.inf], [largest, largest, 1]]
    weights = as_float64(softmax(of_dtype(rows, dtype)))
    assert weights.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]]


def test_hidden_scores_may_be_anything():
    assert softmax([np.nan, 1.0, np.inf], [False, True, False]).tolist() == [0, 1, 0]


def test_nan_is_not_hidden():
    assert np.isnan(softmax([np.nan, 1.0])).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_weights_too_small_to_write_are_zero_whatever_numpy_is_told_about_underflow(dtype):
    with np.errstate(all="raise"):
        assert softmax(np.array([0.0, -800], dtype)).tolist() == [1, 0]
        small = softmax(np.array([0.0, -15.9, -700], dtype))
        assert small[1] > 0 and attention_entropy(small) > 0
        assert attention_weights(np.array([[30, 0]], dtype), np.array([[30, 0], [-30, 0]], dtype)).tolist() == [[1, 0]]


def test_softmax_ignores_a_constant_and_follows_a_permutation():
    scores, order = random(3, 6), np.random.default_rng(1).permutation(6)
    np.testing.assert_allclose(softmax(scores + 1000), softmax(scores), rtol=1e-12)
    np.testing.assert_allclose(softmax(scores[:, order]), softmax(scores)[:, order], rtol=1e-15)


def test_empty_axes():
    assert softmax(np.zeros((3, 0))).shape == (3, 0) and softmax(np.zeros((0, 3))).shape == (0, 3)
    assert softmax(torch.zeros(3, 0), torch.zeros(3, 0, dtype=torch.bool)).shape == (3, 0)
    assert attention_weights(np.zeros((0, 4)), np.zeros((5, 4))).shape == (0, 5)
    assert attention_weights(np.zeros((5, 4)), np.zeros((0, 4))).shape == (5, 0)
    assert attention_entropy(np.zeros((3, 0))).tolist() == [0, 0, 0]


def test_mask_broadcasts():
    scores = random(2, 3, 4)
    visible = np.tri(3, 4, dtype=bool)
    assert np.array_equal(softmax(scores, visible), softmax(scores, np.stack([visible, visible])))
    assert np.array_equal(softmax(scores, True), softmax(scores))


def test_softmax_gradients_with_a_fully_masked_row():
    scores = torch.tensor(random(4, 5)).requires_grad_()
    visible = torch.tensor(np.tri(4, 5, -1, dtype=bool))  # row 0 sees nothing
    assert torch.autograd.gradcheck(lambda s: softmax(s, visible), scores)
    softmax(torch.cat([scores, torch.full((1, 5), -torch.inf)])).sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_softmax_gradients_with_equal_scores():
    scores = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    (softmax(scores) * torch.tensor([1.0, 2, 3], dtype=torch.float64)).sum().backward()
    np.testing.assert_allclose(scores.grad.numpy(), np.tile([-1 / 3, 0, 1 / 3], (2, 1)), atol=1e-15)


def test_softmax_equals_torch():
    scores = torch.tensor(10 * random(8, 50))
    torch.testing.assert_close(softmax(scores), torch.softmax(scores, dim=-1), rtol=1e-14, atol=1e-300)


# ------------------------------------------------------------------ attention weights


def test_attention_weights_equal_the_loop():
    q, k, bias = random(2, 3, 4), random(2, 5, 4, seed=1), random(3, 5, seed=2)
    visible = random(2, 3, 5, seed=3) > -0.7
    found = attention_weights(q, k, bias=bias, mask=visible, temperature=0.7)
    for h in range(2):
        for i in range(3):
            scores = [(math.fsum(q[h, i] * k[h, j]) / math.sqrt(4) + bias[i, j]) / 0.7 for j in range(5)]
            np.testing.assert_allclose(found[h, i], softmax_loop(scores, visible[h, i]), rtol=1e-13)


def test_scale_and_temperature():
    q, k = random(3, 4), random(5, 4, seed=1)
    np.testing.assert_allclose(attention_weights(q, k, scale=1.0), softmax(q @ k.T), rtol=1e-14)
    np.testing.assert_allclose(attention_weights(q, k, temperature=2), attention_weights(q / 2, k), rtol=1e-14)
    np.testing.assert_allclose(attention_weights(q, k, scale=12**-0.5), softmax(q @ k.T / math.sqrt(12)), rtol=1e-14)
    assert (attention_weights(q, k, scale=0) == 0.2).all()
    tilted = attention_weights(q, k, temperature=[[1], [2], [4]])
    for row, temperature in enumerate((1, 2, 4)):
        alone = attention_weights(q[row : row + 1], k, temperature=temperature)[0]
        np.testing.assert_allclose(tilted[row], alone, rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention_weights_keep_kind_and_dtype(dtype):
    q, k = of_dtype(random(2, 3, 8), dtype), of_dtype(random(2, 6, 8, seed=1), dtype)
    bias, visible = random(3, 6), np.tri(3, 6, 3, dtype=bool)
    weights = attention_weights(q, k, bias=bias, mask=visible)
    assert type(weights) is type(q) and weights.dtype == q.dtype and weights.shape == (2, 3, 6)
    exact = attention_weights(as_float64(q), as_float64(k), bias=bias, mask=visible)
    np.testing.assert_allclose(as_float64(weights), exact, rtol=UNIT[dtype] * 1.01, atol=SMALLEST)


def test_bias_and_mask_may_be_numpy_beside_tensors_and_the_other_way_round():
    q, k = random(3, 4), random(5, 4, seed=1)
    bias, visible = random(3, 5, seed=2)[::-1], np.tri(3, 5, dtype=bool)[:, ::-1]  # negative strides
    expected = attention_weights(q, k, bias=bias, mask=visible)
    found = attention_weights(torch.tensor(q), torch.tensor(k), bias=bias, mask=visible)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)
    back = attention_weights(q, k, bias=torch.tensor(bias.copy()), mask=torch.tensor(visible.copy()))
    np.testing.assert_allclose(back, expected, rtol=1e-13)


def test_gradients_reach_queries_keys_and_bias():
    shapes = [(2, 3, 4), (2, 3, 4), (2, 3, 3)]
    q, k, bias = (torch.tensor(random(*shape, seed=n)).requires_grad_() for n, shape in enumerate(shapes))
    visible = np.tri(3, dtype=bool)
    assert torch.autograd.gradcheck(lambda a, b, c: attention_weights(a, b, bias=c, mask=visible), (q, k, bias))


def test_gradients_reach_scale_and_temperature():
    q, k = (torch.tensor(random(2, 3, 4, seed=n)) for n in range(2))
    scale, temperature = (
        torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.7, [[1], [2], [3]])
    )

    def weights(scale, temperature):
        return attention_weights(q, k, scale=scale, temperature=temperature)

    assert torch.autograd.gradcheck(weights, (scale, temperature))
    plain = attention_weights(q.numpy(), k.numpy(), scale=0.7, temperature=[[1], [2], [3]])
    np.testing.assert_allclose(weights(scale, temperature).detach(), plain, rtol=1e-14)


def test_mixed_widths_of_floats_take_the_wider():
    weights = attention_weights(random(2, 4).astype(np.float32), random(3, 4))
    assert weights.dtype == np.float64
    wide = attention_weights(torch.tensor(random(2, 4)).float(), torch.tensor(random(3, 4)))
    assert wide.dtype == torch.float64


def test_leading_axes_broadcast():
    q, k = random(5, 2, 3, 4), random(2, 6, 4, seed=1)
    weights = attention_weights(q, k)
    assert weights.shape == (5, 2, 3, 6)
    np.testing.assert_allclose(weights[3, 1], attention_weights(q[3, 1], k[1]), rtol=1e-14)


def test_without_positions_attention_follows_a_reordering_unless_masked():
    x, order = random(6, 8), np.random.default_rng(2).permutation(6)
    plain = attention_weights(x, x) @ x
    np.testing.assert_allclose(attention_weights(x[order], x[order]) @ x[order], plain[order], rtol=0, atol=1e-14)
    causal = np.tri(6, dtype=bool)
    masked = attention_weights(x, x, mask=causal) @ x
    assert np.abs(attention_weights(x[order], x[order], mask=causal) @ x[order] - masked[order]).max() > 0.1


def test_uniform_causal_attention_to_the_first_token_counts_positions():
    zeros = np.zeros((6, 2))
    weights = attention_weights(zeros, zeros, mask=np.tri(6, dtype=bool))
    np.testing.assert_allclose(weights[:, 0], 1 / np.arange(1, 7), rtol=1e-15)


# ------------------------------------------------------------------ entropy


def test_entropy_reference_and_limits():
    assert attention_entropy(np.full(8, 1 / 8)) == pytest.approx(math.log(8), rel=1e-15)
    assert attention_entropy([0.0, 1.0, 0.0]) == 0 and not np.signbit(attention_entropy([0.0, 1.0]))
    assert attention_entropy([0.0, 0.0]) == 0
    assert_printed(attention_entropy([0.5, 0.25, 0.25]), 1.5 * math.log(2), 14)


def test_entropy_equals_the_loop():
    weights = softmax(3 * random(2, 3, 9))
    for index in np.ndindex(2, 3):
        expected = -math.fsum(w * math.log(w) for w in weights[index])
        assert attention_entropy(weights)[index] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_entropy_keeps_kind_and_dtype(dtype):
    entropy = attention_entropy(of_dtype([[0.5, 0.5], [1, 0]], dtype))
    assert entropy.dtype == of_dtype([0.0], dtype).dtype
    np.testing.assert_allclose(as_float64(entropy), [math.log(2), 0], atol=4e-3)


def test_entropy_gradients():
    scores = torch.tensor(random(3, 4)).requires_grad_()
    visible = np.tri(3, 4, 1, dtype=bool)
    assert torch.autograd.gradcheck(lambda s: attention_entropy(softmax(s, visible)), scores)


def test_entropy_grows_with_the_number_of_keys():
    rng = np.random.default_rng(0)
    found = []
    for n in (64, 512, 4096):
        q, k = rng.standard_normal((40, 64)), rng.standard_normal((n, 64))
        found.append(attention_entropy(attention_weights(q, k)).mean())
    assert found == pytest.approx([math.log(n) - 0.5 for n in (64, 512, 4096)], abs=0.1)
