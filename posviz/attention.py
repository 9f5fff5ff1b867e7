"""Attention weights: where every positional encoding ends up (chapter 2)."""

import numpy as np

from ._arguments import positives, real
from ._arrays import any_seen, convert_like, fitting, is_tensor, quiet, real_array, same_kind, working_dtype


@quiet(over="ignore", under="ignore")  # two scores may lie further apart than the largest float: exp(−inf) = 0
def softmax(scores, mask=None):
    """exp(score), divided by the sum over the visible keys of the last axis.

    A row without a visible key gives zeros, not NaN. A constant added to a whole row changes nothing.

    scores: NumPy or torch, any shape; −inf hides a key. mask: boolean, True = visible, broadcast to scores.
    Returns the kind, dtype and shape of scores; 16-bit input is summed in float32.
    Raises TypeError for a mask that is not boolean, ValueError for one that does not broadcast to scores.

    >>> softmax([1.0, 2.0, 3.0, 0.5]).round(4).tolist()
    [0.0854, 0.2321, 0.6308, 0.0518]
    >>> softmax([1.0, 2.0], mask=[False, False]).tolist()
    [0.0, 0.0]
    """
    xp, scores = real_array(scores, "scores", "key")
    dtype = scores.dtype
    scores = xp.astype(scores, working_dtype(xp, dtype), copy=False)
    if mask is not None:
        scores = xp.where(_visible(mask, scores), scores, -xp.inf)
    if scores.shape[-1] == 0:
        return xp.astype(scores, dtype)
    peak = xp.max(scores, axis=-1, keepdims=True)  # (..., 1)
    peak = xp.where(xp.isinf(peak), 0.0, peak)  # a row without a visible key has the peak −inf
    weights = xp.exp(scores - peak)
    total = weights.sum(axis=-1, keepdims=True)
    return xp.astype(weights / xp.where(total == 0, 1.0, total), dtype, copy=False)


@quiet(under="ignore")
def attention_weights(q, k, *, bias=None, mask=None, scale=None, temperature=1.0):
    """softmax((scale · q kᵀ + bias) / temperature) over the visible keys.

    The bias comes after the scale and is not scaled (ALiBi, KERPLE's code); the temperature divides both.

    q: (..., query, dim), k: (..., key, dim), both NumPy or both torch, leading axes broadcast.
    bias: added, broadcasts to (..., query, key). mask: boolean, True = visible.
    scale: a number, 1/sqrt(dim) unless given (T5: 1; DeBERTa: 1/sqrt(3 dim)).
    temperature: above 0; one number, or an array that broadcasts to the scores, such as
        1 / log_n_factor(…)[:, None], one for each query.
    Returns (..., query, key) in the kind and dtype of q and k; 16-bit input is computed in float32. Tensors keep their
    gradients, those of bias, scale and temperature too.
    Raises TypeError for mixed kinds or a mask that is not boolean, ValueError for shapes that do not fit.
    Source: Vaswani et al. 2017, eq. 1.

    >>> attention_weights([[1, 0], [0, 1]], [[1, 0], [0, 1]], mask=[[True, False], [True, True]]).round(4).tolist()
    [[1.0, 0.0], [0.3302, 0.6698]]
    """
    xp, (q, k) = same_kind(q=q, k=k)
    dtype = q.dtype
    q, k = (xp.astype(array, working_dtype(xp, dtype), copy=False) for array in (q, k))
    if is_tensor(scale):
        scale = fitting(convert_like(real_array(scale, "scale")[1], q, q.dtype), "scale", (), "a single number")
    else:
        scale = q.shape[-1] ** -0.5 if scale is None else real(scale, "scale")
    scores = (q * scale) @ xp.matrix_transpose(k)  # (..., query, key)
    if bias is not None:
        scores = scores + _like_scores(real_array(bias, "bias")[1], "bias", scores)
    scores = scores / _like_scores(positives(temperature, "temperature"), "temperature", scores)
    return xp.astype(softmax(scores, mask), dtype, copy=False)


@quiet(under="ignore")
def attention_entropy(weights):
    """−Σ w ln w over the last axis, in nats: ln n for n equal weights, 0 for a single one (or for none).

    weights: NumPy or torch, ≥ 0, rows that sum to 1. Returns the shape without the last axis, same kind and dtype.
    Raises ValueError for a negative weight.

    >>> attention_entropy([[0.5, 0.5], [1.0, 0.0]]).round(6).tolist()
    [0.693147, 0.0]
    """
    xp, weights = real_array(weights, "weights", "key")
    if any_seen(weights < 0):
        raise ValueError(f"weights must be at least 0; got {float(xp.min(weights)):g}")
    dtype = weights.dtype
    weights = xp.astype(weights, working_dtype(xp, dtype), copy=False)
    logs = xp.log(xp.where(weights > 0, weights, 1.0))  # 0 ln 0 = 0
    return xp.astype(0.0 - (weights * logs).sum(axis=-1), dtype, copy=False)


def _visible(mask, scores):
    """The mask as the kind of scores, checked."""
    mask = mask if is_tensor(mask) else np.asarray(mask)
    if str(mask.dtype).rpartition(".")[2] != "bool":
        raise TypeError(f"mask must be boolean, True = visible; got {mask.dtype}")
    return fitting(convert_like(mask, scores), "mask", scores.shape, "the scores")


def _like_scores(values, name, scores):
    """What is added to the scores or divides them, in their kind and dtype."""
    return fitting(convert_like(values, scores, scores.dtype), name, scores.shape, "the scores")
