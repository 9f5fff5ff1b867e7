"""Every way to rotate q and k that `benchmarks/rope.py` compares: ours, the usual formulas, those of libraries."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from posviz import bench, rope_torch
from posviz.rope import rotate_pairs

LAYOUTS = ("half", "interleaved")


@dataclass(frozen=True)
class Variant:
    """A way, as in `posviz.bench`: `way(cos, sin, dtype)` makes its table and returns a function of (q, k)."""

    name: str
    layout: str
    way: Callable
    ours: bool = False
    kind: str = "torch"  # ratios are taken among variants of one kind and layout
    backward: bool = True
    dtypes: tuple = ("float32", "bfloat16", "float16")


def variants(device):
    """(the variants that run on this device, one sentence for each that does not)."""
    found, notes = own(device)
    turn, problem = bench.compiled(device)
    if problem:
        notes.append(f"torch.compile is left out: it does not work here ({problem}).")
    else:
        found += [ours("posviz, torch.compile", layout, partial(plain, turn=turn)) for layout in LAYOUTS]
    for name, library in LIBRARIES.items():
        if library.needs_gpu and device != "cuda":
            notes.append(f"{name} is left out: its kernel needs a GPU.")
        elif importlib.util.find_spec(library.package) is None:
            notes.append(f"{name} is left out: the package {library.package} is not installed.")
        else:
            found += library.variants
    return found + (NUMPY if device == "cpu" else []), notes


def own(device):
    """`variants` that need no compiler and no library: `posviz` as it is, its kernel, the two usual formulas."""
    if device == "cpu":
        found = [ours("posviz", layout, bench.blockwise) for layout in LAYOUTS]
        return found + [ours("posviz, in place", layout, in_place, backward=False) for layout in LAYOUTS] + USUAL, []
    found = [ours("posviz", layout, plain) for layout in LAYOUTS]
    if device != "cuda":
        return found + USUAL, []
    if importlib.util.find_spec("triton") is None:
        return found + USUAL, ["The fused kernel is left out: the package triton is not installed."]
    for layout in LAYOUTS:
        found.append(ours("posviz, fused kernel", layout, kernel))
        over = partial(kernel, inplace=True)
        found.append(ours("posviz, fused kernel, in place", layout, over, backward=False))
    return found + USUAL, []


def ours(name, layout, way, **more):
    """A variant made from functions of this repository, which take the layout as an argument."""
    return Variant(name, layout, partial(way, layout=layout), ours=True, **more)


def plain(cos, sin, dtype, layout, turn=rotate_pairs):
    return lambda q, k: [turn(x, cos, sin, layout) for x in (q, k)]


def in_place(cos, sin, dtype, layout):
    table = rope_torch.table(cos, sin, layout)
    return lambda q, k: [rope_torch.rotate_into(x, x, table, layout) for x in (q, k)]


def kernel(cos, sin, dtype, layout, inplace=False):
    from rope_triton import rotate_pairs  # of this folder; Triton is there on Linux with a GPU only

    return lambda q, k: [rotate_pairs(x, cos, sin, layout, inplace) for x in (q, k)]


TEXTBOOK = Variant("textbook formula", "half", bench.textbook)
COMPLEX = Variant("complex numbers", "interleaved", bench.by_complex_numbers)
USUAL = [TEXTBOOK, COMPLEX]


# ------------------------------------------------------------------ NumPy


def our_numpy(cos, sin, dtype, layout):
    cos, sin = cos.numpy(), sin.numpy()
    return lambda q, k: [rotate_pairs(x.numpy(), cos, sin, layout) for x in (q, k)]


def numpy_textbook(cos, sin, dtype):
    cos, sin = (t.numpy() for t in bench.doubled(cos, sin, dtype))
    half = cos.shape[-1] // 2

    def rotate(x):
        return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin

    return lambda q, k: [rotate(q.numpy()), rotate(k.numpy())]


IN_NUMPY = {"kind": "NumPy", "backward": False, "dtypes": ("float32",)}
NUMPY = [
    *(ours("posviz, NumPy", layout, our_numpy, **IN_NUMPY) for layout in LAYOUTS),
    Variant("textbook, NumPy", "half", numpy_textbook, **IN_NUMPY),
]


# ------------------------------------------------------------------ libraries


def transformers(cos, sin, dtype):
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    cos, sin = (t[None] for t in bench.doubled(cos, sin, dtype))
    return lambda q, k: apply_rotary_pos_emb(q, k, cos, sin)


def rotary_embedding_torch(cos, sin, dtype):
    from rotary_embedding_torch import apply_rotary_emb

    # It takes angles. Given as they are, float32 would lose them at these positions; within one turn it keeps them.
    angles = torch.atan2(sin.double(), cos.double()).repeat_interleave(2, -1).to(cos.dtype)
    return lambda q, k: [apply_rotary_emb(angles, x) for x in (q, k)]


def flash_attention(cos, sin, dtype, interleaved):
    from flash_attn.layers.rotary import apply_rotary_emb

    cos, sin = cos.to(dtype), sin.to(dtype)

    def rotate(x):
        return apply_rotary_emb(x.transpose(1, 2), cos, sin, interleaved=interleaved).transpose(1, 2)

    return lambda q, k: [rotate(q), rotate(k)]


def liger(cos, sin, dtype):
    """It writes over q and k where they lie in memory as they do here."""
    from liger_kernel.transformers.rope import liger_rotary_pos_emb

    cos, sin = (t[None] for t in bench.doubled(cos, sin, dtype))
    return lambda q, k: liger_rotary_pos_emb(q, k, cos, sin)


@dataclass(frozen=True)
class Library:
    package: str
    variants: list
    needs_gpu: bool = False


FLASH = {"half": False, "interleaved": True}
LIBRARIES = {
    "transformers": Library("transformers", [Variant("transformers", "half", transformers)]),
    "rotary-embedding-torch": Library(
        "rotary_embedding_torch", [Variant("rotary-embedding-torch", "interleaved", rotary_embedding_torch)]
    ),
    "flash-attn": Library(
        "flash_attn",
        [Variant("flash-attn", layout, partial(flash_attention, interleaved=flag)) for layout, flag in FLASH.items()],
        needs_gpu=True,
    ),
    "Liger": Library("liger_kernel", [Variant("Liger", "half", liger, backward=False)], needs_gpu=True),
}
