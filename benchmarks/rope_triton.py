"""RoPE as one Triton kernel: each number of x is read once and written once, whatever the layout.

It is compared by `benchmarks/rope.py` and is not part of the package: torch.compile writes such a kernel by itself.
"""

import torch
import triton
import triton.language as tl

TILE = 1024  # pairs that a program turns at a time: 8 for each of its 128 threads, so that loads are 16 bytes wide
HEADS = tl.constexpr(4)  # heads that a program turns with the cos and sin it has read


def rotate_pairs(x, cos, sin, layout="interleaved", inplace=False):
    """`posviz.rope.rotate_pairs` for a GPU, with its gradient; features beyond the last angle are left as they are.

    x: (batch, heads, sequence, dim) or without the first axes, any strides; inplace writes the result over it.
    cos, sin: as `rotation_table` gives them, the same for all heads: (sequence, pairs) as a rule.
    The arithmetic is done in the dtype of cos and rounded once.
    Raises ValueError for another number of axes, tables that differ by head, other shapes and another layout.
    """
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout must be one of 'interleaved', 'half'; got {layout!r}")
    if not 2 <= x.ndim <= 4:
        raise ValueError(f"x must have shape (batch, heads, sequence, dim) or fewer axes; got {tuple(x.shape)}")
    shape = (1,) * (4 - x.ndim) + tuple(x.shape)
    cos, sin = (t.reshape((1,) * (4 - t.ndim) + tuple(t.shape)).contiguous() for t in (cos, sin))
    fits = cos.shape == sin.shape and cos.shape[1] == 1 and 2 * cos.shape[3] <= shape[3]
    if not fits or cos.shape[0] not in (1, shape[0]) or cos.shape[2] not in (1, shape[2]):
        raise ValueError(
            f"cos and sin must have one row a position, the same for all heads, and at most {x.shape[-1] // 2} "
            f"columns; got {tuple(cos.shape)} and {tuple(sin.shape)} for x of shape {tuple(x.shape)}"
        )
    return _Rotation.apply(x, cos, sin, layout, inplace)


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin, layout, inplace):
        ctx.save_for_backward(cos, sin)
        ctx.layout = layout
        if inplace:
            ctx.mark_dirty(x)
        out = x if inplace else torch.empty_like(x)
        _launch(x, cos, sin, out, layout)
        return out

    @staticmethod
    def backward(ctx, gradient):
        cos, sin = ctx.saved_tensors
        return _Rotation.apply(gradient, cos, -sin, ctx.layout, False), None, None, None, None  # turned back


def _launch(x, cos, sin, out, layout):
    missing = (None,) * (4 - x.ndim)
    x, out = x[missing], out[missing]
    batch, heads, rows, dim = x.shape
    if not x.numel():
        return
    pairs = cos.shape[3]
    width = triton.next_power_of_2(pairs)
    tile = min(triton.next_power_of_2(rows), max(1, TILE // width))
    rest = dim - 2 * pairs if out.data_ptr() != x.data_ptr() else 0
    steps = [cos.stride(axis) if cos.shape[axis] > 1 else 0 for axis in (0, 2)]
    _kernel[triton.cdiv(rows, tile) * triton.cdiv(heads, HEADS.value), batch](
        x,
        cos,
        sin,
        out,
        heads,
        rows,
        dim,
        *x.stride(),
        *out.stride(),
        *steps,
        PAIRS=pairs,
        WIDTH=width,
        REST=triton.next_power_of_2(rest) if rest else 0,
        ROWS=tile,
        INTERLEAVED=layout == "interleaved",
    )


@triton.jit
def _kernel(
    x,
    cos,
    sin,
    out,
    heads,
    rows,
    dim,
    x_batch,
    x_head,
    x_row,
    x_feature,
    out_batch,
    out_head,
    out_row,
    out_feature,
    table_batch,
    table_row,
    PAIRS: tl.constexpr,
    WIDTH: tl.constexpr,
    REST: tl.constexpr,
    ROWS: tl.constexpr,
    INTERLEAVED: tl.constexpr,
):
    """ROWS positions of up to HEADS heads of one text. Their cos and sin are read once and stay in registers."""
    program = tl.program_id(0)
    groups = (heads + HEADS - 1) // HEADS
    row = (program // groups * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    batch = tl.program_id(1).to(tl.int64)
    pair = tl.arange(0, WIDTH)[None, :]
    table = batch * table_batch + row * table_row + pair
    angle = (row < rows) & (pair < PAIRS)
    c = tl.load(cos + table, mask=angle, other=0.0)
    s = tl.load(sin + table, mask=angle, other=0.0)
    for i in tl.static_range(HEADS):
        head = (program % groups * HEADS + i).to(tl.int64)
        here = row < tl.where(head < heads, rows, 0)  # the last group may be short of heads
        source = x + batch * x_batch + head * x_head + row * x_row
        target = out + batch * out_batch + head * out_head + row * out_row
        _turn(source, x_feature, target, out_feature, c, s, here, dim, PAIRS, WIDTH, REST, ROWS, INTERLEAVED)


@triton.jit
def _turn(
    source,
    x_feature,
    target,
    out_feature,
    c,
    s,
    here,
    dim,
    PAIRS: tl.constexpr,
    WIDTH: tl.constexpr,
    REST: tl.constexpr,
    ROWS: tl.constexpr,
    INTERLEAVED: tl.constexpr,
):
    """One head at ROWS positions; `here`: which of them there are."""
    if INTERLEAVED:
        feature = tl.arange(0, 2 * WIDTH)[None, :]
        inside = here & (feature < 2 * PAIRS)
        both = tl.load(source + feature * x_feature, mask=inside, other=0.0).to(c.dtype)
        a, b = tl.split(tl.reshape(both, (ROWS, WIDTH, 2)))
        turned = tl.reshape(tl.join(a * c - b * s, a * s + b * c), (ROWS, 2 * WIDTH))
        tl.store(target + feature * out_feature, turned.to(target.dtype.element_ty), mask=inside)
    else:
        pair = tl.arange(0, WIDTH)[None, :]
        seen = here & (pair < PAIRS)
        a = tl.load(source + pair * x_feature, mask=seen, other=0.0).to(c.dtype)
        b = tl.load(source + (PAIRS + pair) * x_feature, mask=seen, other=0.0).to(c.dtype)
        tl.store(target + pair * out_feature, (a * c - b * s).to(target.dtype.element_ty), mask=seen)
        tl.store(target + (PAIRS + pair) * out_feature, (a * s + b * c).to(target.dtype.element_ty), mask=seen)
    if REST > 0:
        other = 2 * PAIRS + tl.arange(0, REST)[None, :]
        kept = here & (other < dim)
        value = tl.load(source + other * x_feature, mask=kept)
        tl.store(target + other * out_feature, value, mask=kept)
