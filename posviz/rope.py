"""Rotary position encoding: queries and keys are turned by an angle that grows with their position (chapter 5)."""

from itertools import dropwhile

import numpy as np

from ._arguments import even, integer, one_of, positive, positives, whole_numbers
from ._arrays import blocks, convert_like, fitting, is_tensor, namespace, quiet, real_array, working_dtype

LAYOUTS = ("interleaved", "half")


def rope_frequencies(dim, base=10_000.0):
    """Angular frequency of each rotated pair, fastest first.

    θ_i = base^(-2i/dim), i = 0 … dim/2 − 1, in radians per token. Pair 0 turns one radian a step; the last
    pair needs almost 2π·base steps for one turn, so in a text of 2,048 tokens more than a third of the pairs
    of a 128-wide head never come round.

    Returns float64 of shape (dim/2,). Raises ValueError if dim is not even and ≥ 2 or base is not above 0.
    Source: Su et al. 2021 (RoFormer), eq. 15, counting i from 0.

    >>> rope_frequencies(8).round(6).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    dim = even(dim, "dim")
    exponents = np.arange(0.0, dim, 2) / dim  # of floats: torch.compile divides integers in float32
    return positive(base, "base") ** -exponents


@quiet(under="ignore")
def rope(x, positions, *, base=10_000.0, layout="interleaved", frequencies=None, rotary_dim=None):
    """Rotate each pair of features of x by (position × frequency of the pair).

    Used on queries and keys, never on values. Lengths do not change, and the score of a rotated query with a rotated
    key depends on their distance only. The pairs are (0, 1), (2, 3) … in layout "interleaved" (the paper, LLaMA, GPT-J)
    and (i, i + dim/2) in layout "half" (GPT-NeoX, Hugging Face LLaMA): the same family of functions, but weights made
    for one give wrong scores in the other.

    x: NumPy or torch, shape (..., sequence, dim); lists and integers become float64.
    positions: integers, of a shape that broadcasts to x.shape[:-1]: (sequence,) as a rule; (batch, 1, sequence)
        for x of shape (batch, heads, sequence, dim) whose texts are padded on the left; (1, sequence, 1) for x of
        shape (batch, sequence, heads, dim), where (sequence,) would turn along the heads. With as many heads as
        tokens (sequence,) is refused beside either; shapes with all axes are never in doubt.
    frequencies: rotary_dim/2 numbers ≥ 0 in radians per token, in place of base (position interpolation, YaRN …;
        0 leaves a pair at rest, as p-RoPE does with the slow ones). Their gradient is kept.
    rotary_dim: rotate only the first rotary_dim features; the frequencies are then base^(-2i/rotary_dim).

    Returns the kind, dtype, device and shape of x. Angles are float64 and 16-bit input is rotated in float32:
    half precision cannot hold the position 257 (bfloat16) or 2,049 (float16), let alone its angle.
    Raises TypeError for positions that are not whole and for x that is not real; ValueError for an odd width,
    a rotary_dim above dim, shapes that do not fit or fit in two ways, another layout.
    Source: Su et al. 2021 (RoFormer), eq. 14 and 34.

    >>> rope([1, 2, 3, 4], 1).round(4).tolist()
    [-1.1426, 1.9221, 2.9599, 4.0298]
    >>> q, k = [1, 2, 3, 4], [0.5, -1, 2, 1.5]
    >>> [round(float(rope(q, m) @ rope(k, n)), 6) for m, n in [(3, 1), (1003, 1001), (1, 3)]]
    [10.73323, 10.73323, 14.510411]
    """
    _, x = real_array(x, "x", "dim")
    one_of(layout, "layout", LAYOUTS)
    width = even(x.shape[-1], "the last axis of x") if rotary_dim is None else even(rotary_dim, "rotary_dim")
    if width > x.shape[-1]:
        raise ValueError(f"rotary_dim must be at most the last axis of x, {x.shape[-1]}; got {width}")
    if frequencies is None:
        frequencies = rope_frequencies(width, base)
    else:
        frequencies = positives(frequencies, "frequencies", or_zero=True)
    if tuple(frequencies.shape) != (width // 2,):
        raise ValueError(f"frequencies must have shape ({width // 2},), one a pair; got {tuple(frequencies.shape)}")
    cos, sin = rotation_table(positions, frequencies, x)
    _refuse_two_readings(tuple(cos.shape[:-1]), tuple(x.shape[:-1]))
    return rotate_pairs(x, cos, sin, layout)


def rotation_table(positions, frequencies, x):
    """(cos, sin) of position × frequency for `rotate_pairs`, each of shape positions.shape + (pairs,).

    Computed in float64 and cast last, to x's dtype (float32 if that has 16 bits), on x's device. Make it once
    and use it for many layers. Raises ValueError if positions do not broadcast to x.shape[:-1].
    """
    xp = namespace(x)
    if not (is_tensor(x) and is_tensor(positions) and xp.isdtype(positions.dtype, "integral")):
        positions = whole_numbers(positions, "positions")  # an integer tensor need not leave its device for that
    fitting(positions, "positions", x.shape[:-1], "x.shape[:-1]")
    home = x.new_empty(0, device="cpu") if is_tensor(x) and x.device.type == "mps" else x  # MPS has no float64
    positions, frequencies = (convert_like(values, home, xp.float64) for values in (positions, frequencies))
    angles = positions[..., None] * frequencies  # (..., sequence, pairs), radians
    dtype = working_dtype(xp, x.dtype)
    return [convert_like(xp.astype(table, dtype, copy=False), x) for table in (xp.cos(angles), xp.sin(angles))]


def rotate_pairs(x, cos, sin, layout="interleaved"):
    """x with pair i = (a, b) replaced by (a cos_i − b sin_i, a sin_i + b cos_i), in x's dtype.

    x: (..., sequence, dim); cos and sin: as `rotation_table` gives them. Features beyond the last angle stay as
    they are. A table in float32 lifts 16-bit input to float32 for the arithmetic; the result is rounded once.
    For tensors `rope_torch` does the same, on the CPU in one pass over memory.
    """
    if is_tensor(x):
        from . import rope_torch  # here, so that torch is imported only by those who use it

        return rope_torch.rotate_pairs(x, cos, sin, layout)
    half, out = cos.shape[-1], np.empty_like(x)
    first = slice(0, 2 * half, 2) if layout == "interleaved" else slice(0, half)
    second = slice(1, 2 * half, 2) if layout == "interleaved" else slice(half, 2 * half)
    for part, rows in blocks(x[None].shape, cos.shape):
        x_, out_, c, s = x[None][part], out[None][part], cos[rows], sin[rows]  # (..., rows, dim), (rows, pairs)
        np.subtract(x_[..., first] * c, x_[..., second] * s, out=out_[..., first], casting="same_kind")
        np.add(x_[..., first] * s, x_[..., second] * c, out=out_[..., second], casting="same_kind")
    out[..., 2 * half :] = x[..., 2 * half :]
    return out


def _refuse_two_readings(positions, rows):
    """ValueError for positions that broadcast to the last axes of `rows` and may be meant for others of these lengths.

    That is (sequence,) beside (batch, sequence, heads) with as many heads as tokens, and (batch, sequence) beside
    (batch, heads, sequence) with as many heads as texts. Positions that name all axes are never in doubt.
    """
    named = tuple(dropwhile(lambda length: length == 1, positions))
    n, doubtful = len(named), len(positions) < len(rows) > 2
    if n and doubtful and named == rows[-n:] and named in (rows[-n - 1 : -1], (rows[0], rows[-1])):
        raise ValueError(
            f"positions of shape {positions} fit two places among the axes of x before its features, {rows}: "
            f"give them {len(rows)} axes, with length 1 along the others"
        )


def rope_matrix(position, dim, base=10_000.0):
    """The rotation R_m of one position as a matrix: 2×2 blocks [[cos mθ_i, −sin mθ_i], [sin mθ_i, cos mθ_i]].

    Orthogonal, with determinant 1, and R_mᵀ R_n = R_{n−m}: the identity behind "only the distance counts".
    Made to be looked at; `rope` does the same with dim operations for each vector in place of dim².

    position: one integer. Returns float64 of shape (dim, dim), for column vectors in layout "interleaved".
    Raises TypeError for a position that is not whole, ValueError for an odd dim or a base not above 0.
    Source: Su et al. 2021 (RoFormer), eq. 15.

    >>> rope_matrix(1, 2).round(4).tolist()
    [[0.5403, -0.8415], [0.8415, 0.5403]]
    """
    dim = even(dim, "dim")
    angles = integer(position, "position") * rope_frequencies(dim, base)
    cos, sin = np.diag(np.cos(angles)), np.diag(np.sin(angles))  # (pairs, pairs)
    matrix = np.empty((dim, dim))
    matrix[0::2, 0::2], matrix[0::2, 1::2] = cos, 0.0 - sin
    matrix[1::2, 0::2], matrix[1::2, 1::2] = sin, cos
    return matrix


@np.errstate(under="ignore")
def xpos_scale(positions, dim, gamma=0.4, scale_base=512.0):
    """The factor that xPos adds to RoPE: ζ_i^(position/scale_base), ζ_i = (2i/dim + γ) / (1 + γ).

    Multiply rotated queries by it and divide rotated keys by it: the score of pair i then carries
    ζ_i^((m−n)/scale_base), below 1 for keys in the past and above 1 for keys in the future, so xPos is for
    causal attention only. The fastest pair fades most. Factors of keys grow without bound with the position;
    released code counts from the middle of the text (negative positions) to delay the overflow.

    positions: integers of any shape. Returns float64 of shape positions.shape + (dim/2,), one factor a pair.
    Raises TypeError for positions that are not whole, ValueError for an odd dim, gamma or scale_base not above 0.
    Source: Sun et al. 2022 (A Length-Extrapolatable Transformer); constants of microsoft/torchscale.

    >>> xpos_scale([0, 512], 4).round(4).tolist()
    [[1.0, 1.0], [0.2857, 0.6429]]
    """
    dim, gamma = even(dim, "dim"), positive(gamma, "gamma")
    zeta = (np.arange(0.0, dim, 2) / dim + gamma) / (1 + gamma)  # (dim/2,)
    exponents = whole_numbers(positions, "positions").astype(np.float64) / positive(scale_base, "scale_base")
    return zeta ** exponents[..., None]
