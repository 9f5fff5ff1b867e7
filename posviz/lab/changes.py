"""What can be done to a trained model at inference, without training: new frequencies, new rows, sharper scores.

A change is a name, several names joined by "+", or Change(name, factor). Without a factor the factor is the length of
the text over the trained length, never below 1, so nothing changes at the trained length.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch

import posviz
from posviz.lab.encodings import Learned, RoPE
from posviz.lab.model import Encoding

# The ramp of YaRN ends at 1 and beta turns within the trained length. The paper's 32 suits 2,048 tokens and more: at
# 128 tokens no pair turns 32 times, so every pair would be slowed down, the fastest ones too.
YARN_BETA_FAST = 4.0

ROWS = ("random", "zero", "repeat", "wrap", "interpolate")
FREQUENCIES = ("pi", "ntk", "dynamic_ntk", "ntk_by_parts", "yarn")
CHANGES = (*FREQUENCIES, "log_n", *ROWS)


@dataclass(frozen=True)
class Change:
    """One change by name, with a fixed factor instead of length / trained length."""

    name: str
    factor: float | None = None

    def __post_init__(self):
        if self.name not in CHANGES:
            raise ValueError(f"change must be one of {', '.join(CHANGES)}; got {self.name!r}")
        if self.factor is not None and not self.factor >= 1:
            raise ValueError(f"factor must be at least 1; got {self.factor!r}")


def changed(model, change, length):
    """The encoding of `model` as `change` makes it for a text of `length` tokens. The model stays as it is."""
    encoding = model.encoding
    if change is None:
        return encoding
    if isinstance(change, (str, Change)):
        change = [change]
    for part in change:
        for one in [part] if isinstance(part, Change) else map(Change, part.split("+")):
            encoding = _apply(one, encoding, length, model.length)
    return encoding


def _apply(change, encoding, length, trained):
    name, factor = change.name, change.factor or max(1.0, length / trained)
    if name == "log_n":
        return Scaled(encoding, query=posviz.log_n_factor(np.arange(1, length + 1), trained)[:, None])
    if name in ROWS:
        if not isinstance(encoding, Learned):
            raise ValueError(f"change {name!r} adds rows to a learned table; this encoding has none")
        return Rows(encoding, name)
    if not isinstance(encoding, RoPE):
        raise ValueError(f"change {name!r} needs an encoding that rotates (rope, xpos); this one does not")
    new = copy.copy(encoding)
    old, dim, base = encoding.frequencies(length), encoding.dim, encoding.base
    if name == "pi":
        frequencies = posviz.position_interpolation(old, factor)
    elif name == "ntk":
        frequencies = posviz.rope_frequencies(dim, posviz.ntk_base(base, factor, dim))
    elif name == "dynamic_ntk":
        dynamic = posviz.dynamic_ntk_base(base, length, trained, dim, change.factor or 1.0)
        frequencies = posviz.rope_frequencies(dim, dynamic)
    else:
        frequencies = posviz.yarn_frequencies(dim, factor, trained, base, beta_fast=YARN_BETA_FAST)
    new.frequencies = lambda length: frequencies
    if name == "yarn":
        sharper = posviz.yarn_attention_factor(factor)
        return Scaled(new, query=sharper, key=sharper)
    return new


class Scaled(Encoding):
    """Another encoding, with queries (and keys) multiplied: the same as multiplying q·k, but never the bias."""

    def __init__(self, inner, query=1.0, key=1.0):
        super().__init__()
        self.inner, self.query, self.key = inner, query, key

    def embed(self, length):
        return self.inner.embed(length)

    def rotate(self, q, k):
        q, k = self.inner.rotate(q, k)
        return q * torch.as_tensor(self.query, dtype=q.dtype), k * torch.as_tensor(self.key, dtype=k.dtype)

    def bias(self, q, k, layer):
        return self.inner.bias(q, k, layer)


class Rows(Encoding):
    """A learned table asked for more rows than it has: four ways to add rows, one to stretch the ones there are."""

    def __init__(self, learned, how):
        super().__init__()
        self.learned, self.how = learned, how

    def embed(self, length):
        table = self.learned.table
        rows, width = table.shape
        more = length - rows
        if more <= 0:
            return table[:length]
        if self.how == "wrap":
            return table[torch.arange(length) % rows]
        if self.how == "interpolate":
            return torch.nn.functional.interpolate(table.T[None], size=length, mode="linear", align_corners=True)[0].T
        if self.how == "random":  # as large as trained rows, and the same on every call
            added = torch.randn(more, width, generator=torch.Generator().manual_seed(0)) * table.std()
        elif self.how == "repeat":
            added = table[-1:].expand(more, -1)
        else:
            added = torch.zeros(more, width)
        return torch.cat([table, added])
