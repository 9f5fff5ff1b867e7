"""Distance penalties that are added to the scaled scores, in place of any embedding (chapters 6 and 7)."""

import numpy as np

from ._arguments import count, even, positives, require, whole_numbers
from ._arrays import any_seen, convert_like, is_tensor, namespace, quiet, together, working_dtype


def alibi_slopes(heads):
    """ALiBi's fixed slope of each head: 2^(−8h/H), h = 1 … H, when H is a power of two.

    For another H the released code takes the slopes of the power of two below, then every second slope of
    the power of two above; the plain formula would not fit published checkpoints. Nothing is learned.

    heads: ≥ 1. Returns float64 of shape (heads,), per token. Raises TypeError or ValueError for other heads.
    Source: Press et al. 2021, section 3; `get_slopes` of ofirpress/attention_with_linear_biases for other H.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    heads = count(heads, "heads")
    power = 1 << (heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * h / power) for h in range(1, power + 1)]
    return np.array(slopes + [2.0 ** (-4 * h / power) for h in range(1, 2 * (heads - power), 2)])


def alibi_bias(heads, query_length, key_length=None, causal=True):
    """ALiBi's bias −slope · distance, to be added after the division by sqrt(dim) and not scaled itself.

    causal: keys in the future get −inf, so the bias is a mask as well; otherwise −slope · |distance|.
    With fewer queries than keys the last query lines up with the last key, as in decoding with a cache.

    Lengths in tokens; key_length defaults to query_length. Returns float64 of shape (heads, query, key).
    Raises TypeError for lengths that are not whole, ValueError for negative ones or more queries than keys.
    Source: Press et al. 2021, section 3; the symmetric form is a common extra choice.

    >>> alibi_bias(8, 3)[0].tolist()
    [[0.0, -inf, -inf], [-0.5, 0.0, -inf], [-1.0, -0.5, 0.0]]
    >>> alibi_bias(8, 1, 3, causal=False)[0].tolist()
    [[-1.0, -0.5, 0.0]]
    """
    distance = distances(query_length, key_length)
    bias = 0.0 - alibi_slopes(heads)[:, None, None] * np.abs(distance)  # 0 − x: no negative zero
    return np.where(distance >= 0, bias, -np.inf) if causal else bias


@quiet(under="ignore")
def kerple_log_bias(distance, r1, r2):
    """KERPLE, logarithmic: −r1 · ln(1 + r2 · |distance|). Falls ever more slowly, so far keys keep some weight.

    Added after the division by sqrt(dim), as the released code does; eq. 1 of the paper has it inside, which is
    kerple_log_bias(…) / sqrt(dim) here. r1 and r2 are learned, one pair a head, in published models.

    distance: integers of any shape. r1, r2: above 0; numbers, or arrays that broadcast with distance, say of
    shape (heads, 1, 1). Returns float64 of the broadcast shape, or torch with gradients if r1 or r2 is torch.
    Raises TypeError for distances that are not whole, ValueError for r1 or r2 not above 0.
    Source: Chi et al. 2022, section 4; chijames/KERPLE, `ParallelKerpleLog`.

    >>> kerple_log_bias([0, 1, 512], 1, 1).round(6).tolist()
    [0.0, -0.693147, -6.240276]
    """
    xp, dtype, distance, r1, r2 = _kerple(distance, r1, r2)
    return xp.astype(0.0 - r1 * xp.log1p(r2 * distance), dtype, copy=False)


@quiet(under="ignore")
def kerple_power_bias(distance, r1, r2):
    """KERPLE, power: −r1 · |distance|^r2. ALiBi is the case r2 = 1 with r1 fixed.

    r2 above 2 is refused: the kernel is then no longer conditionally positive definite. The place of the
    division by sqrt(dim) and the arguments are those of `kerple_log_bias`.
    Source: Chi et al. 2022, section 4; chijames/KERPLE, `ParallelKerplePower`.

    >>> kerple_power_bias([0, 1, 4], 1, 0.5).tolist()
    [0.0, -1.0, -2.0]
    """
    xp, dtype, distance, r1, r2 = _kerple(distance, r1, r2)
    if any_seen(r2 > 2):
        raise ValueError(f"r2 must be at most 2; got {float(r2.max()):g}")
    return xp.astype(0.0 - r1 * distance**r2, dtype, copy=False)


def sandwich_bias(distance, heads, dim=128):
    """Sandwich: the sinusoidal inner product of the two positions, made 0 at distance 0, divided per head.

    bias_h = (Σ_{t=1}^{dim/2} cos(distance · 10000^(−2t/dim)) − dim/2) / (8h/heads), h = 1 … heads: about
    logarithmic in the distance, with ripples. t starts at 1, unlike the table's i = 0. Nothing is learned.

    distance: integers of any shape; heads: ≥ 1; dim: even. Returns float64 of shape (heads, *distance.shape).
    Raises TypeError for distances that are not whole, ValueError for other heads or an odd dim.
    Source: Chi et al. 2023; formula as in NVIDIA NeMo, `sandwich_relative_position_embedding.py`.

    >>> sandwich_bias([0, 1, 100], 12)[0].round(6).tolist()
    [0.0, -2.169928, -49.978371]
    """
    distance = _magnitude(distance)
    dim, heads = even(dim, "dim"), count(heads, "heads")
    frequencies = 10_000.0 ** (-2 * np.arange(1.0, dim // 2 + 1) / dim)  # (dim/2,)
    values, where = np.unique(distance, return_inverse=True)  # a q × k table holds few different distances
    product = (np.cos(values[:, None] * frequencies) - 1).sum(axis=-1)[where].reshape(distance.shape)
    ratio = 8 * np.arange(1.0, heads + 1) / heads  # (heads,)
    return product / ratio.reshape(-1, *[1] * distance.ndim)


def distances(query_length, key_length=None):
    """Query position − key position, int64 of shape (query, key): 0 or more where the key is visible.

    The last query lines up with the last key. ValueError for negative lengths or more queries than keys.

    >>> distances(2, 3).tolist()
    [[1, 0, -1], [2, 1, 0]]
    """
    queries = count(query_length, "query_length", least=0)
    keys = queries if key_length is None else count(key_length, "key_length", least=0)
    require(queries <= keys, "key_length", f"be at least query_length, {queries}", keys)
    return np.arange(keys - queries, keys)[:, None] - np.arange(keys)


def _kerple(distance, r1, r2):
    """(namespace, dtype of the result, |distance|, r1, r2): tensors if r1 or r2 is one, of 32 bits where it has 16."""
    given = [_magnitude(distance), positives(r1, "r1"), positives(r2, "r2")]
    together("shapes", {name: each.shape for name, each in zip(("distance", "r1", "r2"), given)})
    learned = [each for each in given if is_tensor(each)] or given
    xp = namespace(learned[0])
    dtype = xp.result_type(*learned)
    return xp, dtype, *(convert_like(each, learned[0], working_dtype(xp, dtype)) for each in given)


def _magnitude(distance):
    """|distance| as float64, in which −2^63 has its positive twin too."""
    return np.abs(whole_numbers(distance, "distance").astype(np.float64))
