"""What can be done to a trained model at inference, without training: new frequencies, new rows, sharper scores.

A change is a name, several names joined by "+", or Change(name, factor). Without a factor the factor is the length of
the text over the trained length, never below 1, so nothing changes at the trained length.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch

import posviz
from posviz.lab.encodings import Learned, RoPE, XPos
from posviz.lab.model import Encoding, distances

# The ramp of YaRN ends at 1 and beta turns within the trained length. The paper's 32 suits 2,048 tokens and more: at
# 128 tokens no pair turns 32 times, so every pair would be slowed down, the fastest ones too.
YARN_BETA_FAST = 4.0

ROWS = ("random", "zero", "repeat", "wrap", "interpolate")
FREQUENCIES = ("pi", "ntk", "dynamic_ntk", "ntk_by_parts", "yarn")
CHANGES = (*FREQUENCIES, "clamped", "log_n", "log_n_all", *ROWS)


@dataclass(frozen=True)
class Change:
    """One change by name, with a fixed factor instead of length / trained length.

    clamped: the factor is trained length / largest distance, 2 without one.
    """

    name: str
    factor: float | None = None

    def __post_init__(self):
        if self.name not in CHANGES:
            raise ValueError(f"change must be one of {', '.join(CHANGES)}; got {self.name!r}")
        if self.factor is not None and not self.factor >= 1:
            raise ValueError(f"factor must be at least 1; got {self.factor!r}")


def changed(model, change, length):
    """The encoding of `model` as `change` makes it for a text of `length` tokens. The model stays as it is.

    An Encoding in place of a change is taken as it is.
    """
    encoding = model.encoding
    if change is None:
        return encoding
    if isinstance(change, Encoding):
        return change
    if isinstance(change, (str, Change)):
        change = [change]
    for part in change:
        for one in [part] if isinstance(part, Change) else map(Change, part.split("+")):
            encoding = _apply(one, encoding, length, model.length)
    return encoding


def _apply(change, encoding, length, trained):
    name, factor = change.name, change.factor or max(1.0, length / trained)
    if name in ("log_n", "log_n_all"):
        factors = posviz.log_n_factor(np.arange(1, length + 1), trained)[:, None]
        return Scaled(encoding, query=factors) if name == "log_n" else WholeScore(encoding, factors)
    if name in ROWS:
        if not isinstance(encoding, Learned):
            raise ValueError(f"change {name!r} adds rows to a learned table; this encoding has none")
        return Rows(encoding, name)
    if not isinstance(encoding, RoPE):
        raise ValueError(f"change {name!r} needs an encoding that rotates (rope, xpos); this one does not")
    if name == "clamped":
        if isinstance(encoding, XPos):
            raise ValueError("change 'clamped' needs an encoding that only rotates (rope); this one fades, too")
        if length <= trained and change.factor is None:
            return encoding
        return Held(encoding, at=int(trained / (change.factor or 2)))
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
    frequencies = np.where(old > 0, frequencies, 0)  # a pair at rest stays at rest
    new.frequencies = lambda length: frequencies
    if name == "yarn":
        sharper = posviz.yarn_attention_factor(factor)
        return Scaled(new, query=sharper, key=sharper)
    return new


class Around(Encoding):
    """Another encoding, of which a subclass changes one answer."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def embed(self, length):
        return self.inner.embed(length)

    def rotate(self, q, k):
        return self.rotate_in(q, k, 0)

    def rotate_in(self, q, k, layer):
        return self.inner.rotate_in(q, k, layer)

    def bias(self, q, k, layer):
        return self.inner.bias(q, k, layer)


class Scaled(Around):
    """Another encoding, with queries (and keys) multiplied: the same as multiplying q·k, but not what is added to it.

    A bias that is made of q grows with q.
    """

    def __init__(self, inner, query=1.0, key=1.0):
        super().__init__(inner)
        self.query, self.key = query, key

    def rotate_in(self, q, k, layer):
        q, k = self.inner.rotate_in(q, k, layer)
        return q * torch.as_tensor(self.query, dtype=q.dtype), k * torch.as_tensor(self.key, dtype=k.dtype)


class WholeScore(Around):
    """Another encoding, with the whole score of each query multiplied: q·k and what is added to it."""

    def __init__(self, inner, factors):
        super().__init__(inner)
        self.factors = torch.as_tensor(factors, dtype=torch.float32)  # (length, 1), one a query

    def rotate_in(self, q, k, layer):
        q, k = self.inner.rotate_in(q, k, layer)
        return q * self.factors, k

    def bias(self, q, k, layer):
        factors = self.factors[k.shape[-2] - q.shape[-2] : k.shape[-2]]
        bias = self.inner.bias(q / factors, k, layer)  # a bias that is made of q must not be multiplied twice
        return None if bias is None else bias * factors


class Held(Around):
    """RoPE whose pairs turn no farther than they do at a distance of `at` tokens: ReRoPE's clamped distances.

    pairs: hold these alone, by their numbers; without it all of them.
    """

    def __init__(self, inner, at, pairs=None):
        super().__init__(inner)
        self.at = at
        pairs = torch.arange(inner.dim // 2) if pairs is None else torch.as_tensor(pairs)
        self.features = (2 * pairs[:, None] + torch.arange(2)).flatten()

    def bias(self, q, k, layer):
        """What the held scores of far keys have more than the scores of q and k as they come, rotated."""
        distance = distances(q, k)
        if not self.inner.turns(layer) or distance.max() <= self.at:
            return None
        back = -torch.arange(k.shape[-2])
        frequencies, scale = self.inner.frequencies(k.shape[-2]), q.shape[-1] ** -0.5
        held = (
            posviz.rope(x, positions[None, None], frequencies=frequencies)[..., self.features]
            for x, positions in ((q * scale, back[-q.shape[-2] :] + self.at), (k, back))
        )
        turned = (x[..., self.features] for x in (q * scale, k))
        held, turned = (queries @ keys.transpose(-1, -2) for queries, keys in (held, turned))
        return torch.where(distance > self.at, held - turned, 0.0)


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
