"""RoPE for large tensors on the CPU: the same numbers as the plain formula, whatever the memory order and the block."""

import numpy as np
import pytest
import torch

import posviz
from posviz import _arrays, rope_frequencies, rope_torch
from posviz.rope import rotate_pairs, rotation_table

LAYOUTS = ("half", "interleaved")


def turned(x, positions, layout, width):
    """The rotation in complex float64, by hand."""
    x = x.double().numpy()
    angles = np.asarray(positions)[..., None] * 10_000.0 ** (-np.arange(0, width, 2) / width)
    a, b = (
        (x[..., 0:width:2], x[..., 1:width:2])
        if layout == "interleaved"
        else (x[..., : width // 2], x[..., width // 2 : width])
    )
    z = (a + 1j * b) * np.exp(1j * angles)
    pairs = np.stack([z.real, z.imag], -1) if layout == "interleaved" else np.stack([z.real, z.imag], -2)
    return np.concatenate([pairs.reshape(*x.shape[:-1], width), x[..., width:]], axis=-1)


def cases():
    draw = torch.Generator().manual_seed(2)

    def random(*shape):
        return torch.randn(*shape, generator=draw)

    yield "one vector", random(8), 3, 8
    yield "heads and positions", random(2, 3, 50, 8), np.arange(50), 8
    yield "positions of each text", random(2, 3, 5, 8), np.arange(10).reshape(2, 1, 5), 8
    yield "positions on the second axis", random(3, 4, 8), np.arange(3)[:, None], 8
    yield "one position for all", random(4, 3, 50, 8), 7, 8
    yield "no positions", random(0, 8), np.arange(0), 8
    yield "heads of a token together in memory", random(2, 5, 3, 8).transpose(1, 2), np.arange(5), 4
    yield "odd width, part of it turned", random(2, 3, 5, 9), np.arange(5), 6
    yield "features apart in memory", random(2, 3, 8, 5).mT, np.arange(5), 8
    yield "starting at an odd place", random(2, 3, 5, 17)[..., 1:], np.arange(5), 16
    yield "one row repeated", random(1, 8).expand(5, 8), np.arange(5), 8
    yield "far positions", random(2, 40, 16), np.arange(10**6 - 40, 10**6), 16


@pytest.fixture(params=[16, 200, 2**21], ids="blocks of {}".format)
def block(request, monkeypatch):
    for module in (rope_torch, _arrays):
        monkeypatch.setattr(module, "BLOCK", request.param)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("dtype", "rounding"), [("float64", 1e-15), ("float32", 1e-7), ("bfloat16", 2**-8), ("float16", 2**-11)]
)
@pytest.mark.parametrize(("x", "positions", "width"), [c[1:] for c in cases()], ids=[c[0] for c in cases()])
def test_every_shape_memory_order_and_block(x, positions, width, dtype, rounding, layout, block):
    x = x.to(getattr(torch, dtype))
    right = turned(x, positions, layout, width)
    cos, sin = rotation_table(positions, rope_frequencies(width), x)
    table = rope_torch.table(cos, sin, layout)
    limit = 4 * rounding * np.abs(right).max(initial=1) + (2e-9 if dtype == "float64" else 0)
    for found in (
        rope_torch.rotate(x, table, layout),
        rotate_pairs(x, cos, sin, layout),
        torch.from_numpy(rotate_pairs(x.double().numpy(), cos.double().numpy(), sin.double().numpy(), layout)),
    ):
        assert found.shape == x.shape
        np.testing.assert_allclose(found.double().numpy(), right, rtol=0, atol=limit)
    here = x.clone()
    assert rope_torch.rotate_into(here, here, table, layout) is here
    np.testing.assert_allclose(here.double().numpy(), right, rtol=0, atol=limit)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_tensors_take_this_way_and_come_out_as_small_ones_do(layout, dtype, monkeypatch):
    x = torch.randn(2, 600, 4, 64, generator=torch.Generator().manual_seed(1)).to(dtype).transpose(1, 2)
    calls = []
    rotate = rope_torch.rotate
    monkeypatch.setattr(rope_torch, "rotate", lambda *given: calls.append(1) or rotate(*given))
    whole = posviz.rope(x, range(600), layout=layout)
    assert calls and whole.dtype == dtype and whole.stride() == x.stride()
    calls.clear()
    parts = [posviz.rope(x[:, :, i : i + 100], range(i, i + 100), layout=layout) for i in range(0, 600, 100)]
    assert not calls
    torch.testing.assert_close(
        torch.cat(parts, dim=2), whole, rtol=2**-8 if dtype == torch.bfloat16 else 1e-6, atol=1e-6
    )


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, in forward mode
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [2, 4])
def test_gradients_forward_mode_and_maps(layout, width, monkeypatch):
    monkeypatch.setattr(rope_torch, "BLOCK", 20)
    x = torch.randn(2, 2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3), requires_grad=True)
    table = rope_torch.table(*rotation_table(torch.arange(5), rope_frequencies(width), x), layout)

    def rotate(x):
        return rope_torch.rotate(x, table, layout)

    assert torch.autograd.gradcheck(rotate, x) and torch.autograd.gradgradcheck(rotate, x)
    tangent = torch.ones_like(x)
    assert torch.allclose(torch.func.jvp(rotate, (x.detach(),), (tangent,))[1], rotate(tangent))
    assert torch.allclose(torch.func.vmap(rotate, in_dims=1, out_dims=1)(x), rotate(x))

    def each(x, positions):
        return rope_torch.rotate(
            x, rope_torch.table(*rotation_table(positions, rope_frequencies(width), x), layout), layout
        )

    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]])
    apart = torch.stack([each(x[i], positions[i]) for i in range(2)])
    assert torch.allclose(torch.func.vmap(each)(x, positions), apart)
    assert torch.allclose(torch.func.vmap(each, in_dims=(None, 0))(x[0], positions)[1], each(x[0], positions[1]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("rows", "width"), [(1023, 64), (1024, 64), (2000, 64), (2000, 48)])
def test_many_gradients_at_once(rows, width, layout):
    x = torch.randn(rows, 64, generator=torch.Generator().manual_seed(5), requires_grad=True)
    turned = posviz.rope(x, range(rows), layout=layout, rotary_dim=width)
    flowing = torch.randn(3, rows, 64, generator=torch.Generator().manual_seed(6))
    (together,) = torch.autograd.grad(turned, x, flowing, is_grads_batched=True, retain_graph=True)
    for gradient, expected in zip(together, flowing):
        (alone,) = torch.autograd.grad(turned, x, expected, retain_graph=True)
        torch.testing.assert_close(gradient, alone, rtol=0, atol=1e-6)


def test_nothing_of_x_is_kept_for_the_gradient():
    x = torch.randn(600, 128, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        posviz.rope(x, range(600), layout="half")
        posviz.rope(x.bfloat16(), range(600))
    assert kept and all(t.data_ptr() != x.data_ptr() and t.shape[-1] != 128 for t in kept)


def test_a_gradient_through_the_angles_takes_the_plain_way():
    x = torch.randn(600, 128)
    cos, sin = (t.requires_grad_() for t in rotation_table(range(600), rope_frequencies(128), x))
    rotate_pairs(x, cos, sin).sum().backward()
    assert torch.allclose(cos.grad, x[:, 0::2] + x[:, 1::2])
