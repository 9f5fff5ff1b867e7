"""The Triton kernel, run by Triton's interpreter on the CPU, so that its correctness does not wait for a GPU."""

import importlib
import sys

import numpy as np
import pytest
import torch

from posviz import rope_frequencies
from posviz.rope import rotate_pairs, rotation_table

pytest.importorskip("triton", reason="Triton is made for Linux only")
LAYOUTS = ("half", "interleaved")


@pytest.fixture(scope="module")
def kernel():
    """`benchmarks/rope_triton.py` imported for the interpreter, which Triton decides when a kernel is defined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        patch.delitem(sys.modules, "rope_triton", raising=False)
        yield importlib.import_module("rope_triton")
    sys.modules.pop("rope_triton", None)


def turned(x, positions, layout, width):
    """The rotation in complex float64, by hand."""
    x = x.detach().double().numpy()
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
    draw = torch.Generator().manual_seed(4)

    def random(*shape):
        return torch.randn(*shape, generator=draw)

    yield "odd batch, odd number of heads", random(3, 5, 7, 8), np.arange(7), 8
    yield "more positions than one block, not a multiple", random(1, 1, 147, 16), np.arange(147), 16
    yield "positions of each text", random(2, 3, 5, 8), np.arange(10).reshape(2, 1, 5), 8
    yield "one position for all", random(2, 3, 5, 8), 9, 8
    yield "heads of a token together in memory", random(2, 5, 6, 8).transpose(1, 2), np.arange(5), 8
    yield "features apart in memory", random(1, 2, 8, 5).mT, np.arange(5), 8
    yield "starting at an odd place", random(2, 1, 5, 17)[..., 1:], np.arange(5), 16
    yield "every second head", random(1, 6, 5, 8)[:, ::2], np.arange(5), 8
    yield "part of an odd width", random(2, 3, 5, 9), np.arange(5), 6
    yield "24 of 96 features", random(1, 2, 5, 96), np.arange(5), 24
    yield "no leading axes, far positions", random(37, 8), np.arange(10**6 - 37, 10**6), 8
    yield "nothing", random(0, 8), np.arange(0), 8


@pytest.mark.parametrize("inplace", [False, True], ids=["new", "in place"])
@pytest.mark.parametrize("layout", LAYOUTS)
# One step in the last place for 16 bits: the interpreter cuts off where a GPU rounds to nearest.
@pytest.mark.parametrize(
    ("dtype", "step"), [("float64", 1e-9), ("float32", 5e-7), ("bfloat16", 2**-7), ("float16", 2**-10)]
)
@pytest.mark.parametrize(("x", "positions", "width"), [c[1:] for c in cases()], ids=[c[0] for c in cases()])
def test_every_shape_stride_and_dtype(kernel, x, positions, width, dtype, step, layout, inplace):
    memory = torch.empty(0).set_(x.untyped_storage()).to(getattr(torch, dtype), copy=True)  # with what lies between
    x = memory.as_strided(x.shape, x.stride(), x.storage_offset())
    right = turned(x, positions, layout, width)
    before = memory.clone()
    found = kernel.rotate_pairs(x, *rotation_table(positions, rope_frequencies(width), x), layout, inplace)
    assert found.dtype == x.dtype and found.shape == x.shape
    assert (found.data_ptr() == x.data_ptr()) == inplace or not x.numel()
    if inplace:
        before.as_strided(x.shape, x.stride(), x.storage_offset()).copy_(x)
    assert torch.equal(memory, before)  # nothing beside the result was written
    np.testing.assert_allclose(found.double().numpy(), right, rtol=step, atol=step if dtype != "bfloat16" else 1e-6)


@pytest.mark.parametrize("inplace", [False, True], ids=["new", "in place"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_backward_against_autograd(kernel, layout, inplace):
    draw = torch.Generator().manual_seed(5)
    x, weights = (torch.randn(2, 3, 5, 10, generator=draw, dtype=torch.float64) for _ in range(2))
    cos, sin = rotation_table(np.arange(5), rope_frequencies(6), x)

    def gradients(rotate):
        start = x.clone().requires_grad_()
        loss = (rotate(start * 1).tanh() * weights).sum()
        (first,) = torch.autograd.grad(loss, start, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), start)
        return first.detach(), second

    plain = gradients(lambda x: rotate_pairs(x, cos, sin, layout))
    fused = gradients(lambda x: kernel.rotate_pairs(x, cos, sin, layout, inplace))
    for one, other in zip(plain, fused):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_back_from_a_gradient_with_other_strides(kernel):
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(6), requires_grad=True)
    cos, sin = rotation_table(np.arange(5), rope_frequencies(8), x)
    gradient = torch.ones(1).expand(2, 3, 5, 8)
    found, right = (
        torch.autograd.grad(rotate(x, cos, sin), x, gradient)[0] for rotate in (kernel.rotate_pairs, rotate_pairs)
    )
    torch.testing.assert_close(found, right)


@pytest.mark.parametrize(
    "change",
    [
        {"layout": "halves"},
        {"x": torch.zeros(8)},
        {"x": torch.zeros(1, 1, 1, 3, 8)},
        {"x": torch.zeros(3, 6)},
        {"cos": torch.zeros(4, 4), "sin": torch.zeros(4, 4)},
        {"sin": torch.zeros(3, 2)},
        {"x": torch.zeros(2, 3, 8), "cos": torch.zeros(2, 3, 4), "sin": torch.zeros(2, 3, 4)},
    ],
)
def test_what_does_not_fit_is_refused(kernel, change):
    good = {"x": torch.zeros(3, 8), "cos": torch.zeros(3, 4), "sin": torch.zeros(3, 4), "layout": "half"}
    kernel.rotate_pairs(**good)
    with pytest.raises(ValueError, match="must"):
        kernel.rotate_pairs(**good | change)


def test_in_place_over_a_parameter_is_refused_as_everywhere_in_torch(kernel):
    x = torch.zeros(3, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        kernel.rotate_pairs(x, torch.ones(3, 4), torch.zeros(3, 4), "half", inplace=True)
