"""RoPE for torch tensors on the CPU, block by block: x comes from memory once and the result goes back once."""

import torch

from ._arrays import BLOCK, blocks

SMALL = 2**16  # below this many features the plain formula is as fast


def rotate_pairs(x, cos, sin, layout="interleaved"):
    """`posviz.rope.rotate_pairs` for tensors: block by block where that may be done and pays."""
    compiled, learned = torch.compiler.is_compiling(), cos.requires_grad or sin.requires_grad
    if x.device.type == "cpu" and x.numel() >= SMALL and not compiled and not learned:
        return rotate(x, table(cos, sin, layout), layout)
    return _rotate_at_once(x, cos, sin, layout)


def _rotate_at_once(x, cos, sin, layout):
    """The plain formula, made of operations that have gradients and that every kind of torch.vmap can batch."""
    rows, half = x.shape[:-1], cos.shape[-1]
    shape, axis = ((half, 2), -1) if layout == "interleaved" else ((2, half), -2)  # axis: of a pair's two features
    a, b = x.narrow(-1, 0, 2 * half).reshape(*rows, *shape).unbind(axis)  # (..., sequence, half)
    turned = [part.to(x.dtype) for part in (a * cos - b * sin, a * sin + b * cos)]
    turned = torch.stack(turned, dim=axis).reshape(*rows, 2 * half)
    return turned if 2 * half == x.shape[-1] else torch.cat([turned, x[..., 2 * half :]], dim=-1)


def table(cos, sin, layout):
    """cos and sin, as `rotation_table` gives them, in the form `rotate` reads fastest; made once for many layers.

    Layout "interleaved": cos + i·sin, complex, of shape (..., pairs). Layout "half": (cos, cos, sin) side by side.
    """
    return torch.complex(cos, sin) if layout == "interleaved" else torch.cat([cos, cos, sin], dim=-1)


def rotate(x, table, layout):
    """`rotate_pairs` with a prepared table. The result is new, in x's memory order; no gradient needs x kept."""
    if (
        layout == "interleaved"
        and x.dtype == table.real.dtype
        and 2 * table.shape[-1] == x.shape[-1]
        and not x.requires_grad
        and _is_complex(x)
    ):
        return torch.view_as_real(_complex(x) * table).flatten(-2)  # the same with the fewest calls
    return _Rotation.apply(x, table, layout, 1)


class _Rotation(torch.autograd.Function):
    """The gradient of a rotation is the gradient turned back, by the opposite angles: sign −1."""

    @staticmethod
    def forward(x, table, layout, sign):
        return rotate_into(torch.empty_like(x), x, table, layout, sign)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, table, ctx.layout, ctx.sign = inputs
        ctx.save_for_backward(table)
        ctx.save_for_forward(table)

    @staticmethod
    def backward(ctx, gradient):
        (table,) = ctx.saved_tensors
        if not _has_memory(gradient):  # with torch.autograd.grad(…, is_grads_batched=True)
            cos, sin = (table.real, table.imag) if ctx.layout == "interleaved" else table.tensor_split(3, dim=-1)[::2]
            return _rotate_at_once(gradient, cos, -ctx.sign * sin, ctx.layout), None, None, None
        return _Rotation.apply(gradient, table, ctx.layout, -ctx.sign), None, None, None

    @staticmethod
    def jvp(ctx, tangent, *_):
        return _Rotation.apply(tangent, *ctx.saved_tensors, ctx.layout, ctx.sign)

    @staticmethod
    def vmap(info, dims, x, table, layout, sign):
        """The mapped axis becomes the first of x, and of a table that has it, there with axes of length 1 after it."""
        x = x.expand(info.batch_size, *x.shape) if dims[0] is None else x.movedim(dims[0], 0)
        if dims[1] is not None:
            table = table.movedim(dims[1], 0)
            table = table.reshape(len(table), *[1] * (x.ndim - table.ndim), *table.shape[1:])
        return _Rotation.apply(x, table, layout, sign), 0


def rotate_into(out, x, table, layout, sign=1):
    """x turned by sign × the angles of the prepared table, written into `out`, which may be x itself; returns out."""
    one_step = layout == "interleaved" and x.dtype == table.real.dtype  # nothing is stored on the way
    if one_step or x.numel() <= BLOCK or x.ndim == 1:
        _rotate_block(out, x, table, layout, sign)
    elif x.ndim > 3 and x[0].numel() >= BLOCK:
        for i in range(len(x)):
            own = table[i if len(table) > 1 else 0] if table.ndim == x.ndim else table
            rotate_into(out[i], x[i], own, layout, sign)
    else:
        for part, rows in blocks(x.shape, table.shape):
            _rotate_block(out[part], x[part], table[rows], layout, sign)
    return out


def _rotate_block(out, x, table, layout, sign):
    in_place, width = x.data_ptr() == out.data_ptr(), 2 * table.shape[-1]
    if layout == "half":
        width //= 3
    if width < x.shape[-1]:
        if not in_place:
            out[..., width:] = x[..., width:]
        x, out = x[..., :width], out[..., :width]
    dtype = table.real.dtype  # 16-bit features are turned in float32 and rounded once, at the end
    if layout == "interleaved":
        direct = x.dtype == dtype and _is_complex(x) and _is_complex(out)
        source = x if direct else x.to(dtype, copy=True)
        source = source if _is_complex(source) else source.contiguous()
        turned = out if direct else source
        torch.mul(_complex(source), table if sign > 0 else table.conj(), out=_complex(turned))
    else:
        half = width // 2
        source = x.clone() if in_place and x.dtype == dtype else x.to(dtype)
        turned = out if out.dtype == dtype else torch.empty_like(source)
        torch.mul(source, table[..., :width], out=turned)
        turned[..., :half].addcmul_(source[..., half:], table[..., width:], value=-sign)
        turned[..., half:].addcmul_(source[..., :half], table[..., width:], value=sign)
    if turned is not out:
        out.copy_(turned)


def _has_memory(x):
    """Whether x lies in memory of its own, unlike the gradients that an older kind of torch.vmap hands on."""
    try:
        return x.data_ptr() is not None
    except RuntimeError:
        return False


def _is_complex(x):
    """Whether the pairs of x can be read as complex numbers where they are."""
    return x.stride(-1) == 1 and not any(step % 2 for step in (x.storage_offset(), *x.stride()[:-1]))


def _complex(x):
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)))
