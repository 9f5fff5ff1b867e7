"""The fifteen encodings as small objects for the model. Their tables and biases are the public formulas of posviz.

Each is made for one model shape (keywords width, heads, layers, length, base). What it learns are its nn.Parameters.
"""

import torch
from torch import nn

import posviz
from posviz.lab.model import Encoding, distances

SINUSOID_SIZE = 0.1  # embeddings start with a spread of 0.05; a full-size sinusoid (0.7) would drown them
FIRE_WIDTH = 32  # of the hidden layer of FIRE's network, as in the paper
SANDWICH_DIM = 128  # width of the sinusoids whose product is the Sandwich bias


def _float(array, like):
    return torch.as_tensor(array, dtype=like.dtype, device=like.device)


def _by_distance(values, q, k):
    """Spread values (heads, keys), one per distance 0 … keys − 1, over the grid (heads, queries, keys)."""
    return values[:, distances(q, k).clamp(min=0)]


class NoEncoding(Encoding):
    """NoPE: the causal mask alone. Haviv et al. 2022, Kazemnejad et al. 2023."""

    def __init__(self, **shape):
        super().__init__()


class Learned(Encoding):
    """A trained row for each position of the trained length (GPT-2, BERT). There is no row for any other."""

    def __init__(self, *, width, length, seed=1, **shape):
        super().__init__()
        draw = torch.Generator().manual_seed(seed + 1)
        self.table = nn.Parameter(0.02 * torch.randn(length, width, generator=draw))

    def embed(self, length):
        rows = len(self.table)
        if length > rows:
            raise IndexError(
                f"the learned table has rows for positions 0 to {rows - 1}; position {rows} has none. "
                f"A change says what to use instead: change='wrap', for example"
            )
        return self.table[:length]


class Sinusoidal(Encoding):
    """Vaswani et al. 2017, § 3.5. Scaled down instead of scaling the embeddings up, as the paper does."""

    def __init__(self, *, width, **shape):
        super().__init__()
        self.width = width
        self.register_buffer("size", torch.tensor(SINUSOID_SIZE), persistent=False)

    def embed(self, length):
        return self.size * _float(posviz.sinusoidal(range(length), self.width), self.size)


class TransformerXL(Encoding):
    """Dai et al. 2019, § 3.3: score = ((q + u)·k + (q + v)·W R_distance) / sqrt(d). One W a layer; u, v shared."""

    def __init__(self, *, width, heads, layers, seed=1, **shape):
        super().__init__()
        self.width, self.heads = width, heads
        draw = torch.Generator().manual_seed(seed + 1)
        self.u = nn.Parameter(torch.zeros(heads, width // heads))
        self.v = nn.Parameter(torch.zeros(heads, width // heads))
        self.w = nn.Parameter(torch.randn(layers, width, width, generator=draw) * width**-0.5)

    def bias(self, q, k, layer):
        keys, dim = k.shape[-2:]
        far_to_near = posviz.sinusoidal(range(keys - 1, -1, -1), self.width, layout="concatenated")
        r = (_float(far_to_near, q) @ self.w[layer].T).view(keys, self.heads, dim).transpose(0, 1)
        scale = dim**-0.5  # on the small factors: the terms are large
        terms = posviz.transformer_xl_terms(q * scale, k, r, self.u * scale, self.v * scale)
        return terms.content_position + terms.bias_content + terms.bias_position


class T5(Encoding):
    """Raffel et al. 2020: one learned number a head and bucket of distances, shared by all layers.

    The scores here are divided by sqrt(d); T5 leaves that out and starts W_q smaller instead.
    """

    def __init__(self, *, heads, length, max_distance=None, **shape):
        super().__init__()
        self.max_distance = max_distance or length  # of a bucket of its own
        self.table = nn.Parameter(torch.zeros(heads, 32))

    def bias(self, q, k, layer):
        buckets = posviz.t5_bucket(range(0, -k.shape[-2], -1), bidirectional=False, max_distance=self.max_distance)
        return _by_distance(self.table[:, torch.as_tensor(buckets, device=q.device)], q, k)


class DeBERTa(Encoding):
    """He et al. 2021, eq. 4: content to content, content to position, position to content; all over sqrt(3d).

    The position-to-content index is the paper's δ(j, i). Distances clip at half the trained length, so that the last
    row is trained too. One pair of matrices a layer, the position vectors are shared.
    """

    def __init__(self, *, width, heads, layers, length, seed=1, **shape):
        super().__init__()
        self.heads, self.span = heads, length // 2
        draw = torch.Generator().manual_seed(seed + 1)
        self.positions = nn.Parameter(torch.randn(2 * self.span, width, generator=draw) * 0.5)
        self.wk = nn.Parameter(torch.randn(layers, width, width, generator=draw) * width**-0.5)
        self.wq = nn.Parameter(torch.randn(layers, width, width, generator=draw) * width**-0.5)

    def rotate(self, q, k):
        return q * 3**-0.5, k  # turns 1/sqrt(d) into 1/sqrt(3d), in q·k and in q·position

    def bias(self, q, k, layer):
        dim = q.shape[-1]
        query_rows, key_rows = (
            (self.positions @ w[layer].T).view(-1, self.heads, dim).transpose(0, 1) for w in (self.wq, self.wk)
        )
        # posviz.deberta_terms without its first term and with torch's own gather, which is three times as fast.
        distance = distances(q, k)
        to_position = self._take(q * dim**-0.5 @ key_rows.transpose(-1, -2), distance)
        from_position = self._take(k @ (query_rows * (3 * dim) ** -0.5).transpose(-1, -2), -distance.T)
        return to_position + from_position.transpose(-1, -2)

    def _take(self, scores, distance):
        index = (distance + self.span).clamp(0, 2 * self.span - 1)  # the paper's δ
        return scores.gather(-1, index.expand(*scores.shape[:2], *index.shape))


class RoPE(Encoding):
    """Su et al. 2021: queries and keys are rotated, one angle a pair of features and position."""

    def __init__(self, *, width, heads, length, base, **shape):
        super().__init__()
        self.dim, self.base, self.length = width // heads, base, length

    def frequencies(self, length):
        """Radians per token for a text of this length (changes look at the length, RoPE itself does not)."""
        return posviz.rope_frequencies(self.dim, self.base)

    def turns(self, layer):
        """Whether this layer turns its queries and keys."""
        return True

    def rotate_in(self, q, k, layer):
        return self.rotate(q, k) if self.turns(layer) else (q, k)

    def rotate(self, q, k):
        # All axes are there: there may be as many heads as tokens.
        positions = torch.arange(q.shape[-2], device=q.device)[None, None]
        frequencies = self.frequencies(q.shape[-2])
        return tuple(posviz.rope(x, positions, frequencies=frequencies) for x in (q, k))


class RoPENoPE(RoPE):
    """RoPE in every layer but the last, which has no positions: here three of four (SmolLM3 and Llama 4: every fourth).

    Yang et al. 2025 (RNoPE) mix such layers. A model of two layers, as that of the copy task, has one of each.
    """

    def __init__(self, *, layers, **shape):
        super().__init__(**shape)
        self.last = layers - 1

    def turns(self, layer):
        return layer != self.last


class PartialRoPE(RoPE):
    """p-RoPE, Barbero et al. 2024, p = 1/2: the fast half of the pairs turns as in RoPE, the slow half rests."""

    def frequencies(self, length):
        turning = super().frequencies(length)
        turning[len(turning) // 2 :] = 0
        return turning


class XPos(RoPE):
    """Sun et al. 2023: RoPE whose score also decays with distance, fastest in the fastest pair.

    Positions are counted from the middle of the text, which keeps the factors in range. The scale base is the
    trained length (the paper: 512).
    """

    def rotate(self, q, k):
        n = q.shape[-2]
        scale = posviz.xpos_scale(range(-(n // 2), n - n // 2), self.dim, scale_base=self.length)
        scale = _float(scale, q).repeat_interleave(2, dim=-1)
        q, k = super().rotate(q, k)
        return q * scale, k / scale


class ALiBi(Encoding):
    """Press et al. 2021: −slope · distance, a fixed slope a head."""

    def __init__(self, *, heads, **shape):
        super().__init__()
        self.heads = heads

    def bias(self, q, k, layer):
        far_to_near = posviz.alibi_bias(self.heads, 1, k.shape[-2])[:, 0]
        return _by_distance(_float(far_to_near[:, ::-1].copy(), q), q, k)


class Kerple(Encoding):
    """Chi et al. 2022: −r1·ln(1 + r2·distance) or −r1·distance^r2; r1, r2 learned a head, shared by all layers.

    Added after the division by sqrt(d) and kept ≥ 0.01, as in the released code. The start is spread evenly over
    the range that code draws from.
    """

    def __init__(self, *, heads, kind, **shape):
        super().__init__()
        spread = (torch.arange(heads)[:, None] + 0.5) / heads
        first, second = (2, 1) if kind == "log" else (1, 2)
        self.r1, self.r2, self.kind = nn.Parameter(first * spread), nn.Parameter(second * spread), kind

    def bias(self, q, k, layer):
        distance = torch.arange(k.shape[-2], device=q.device)
        if self.kind == "log":
            values = posviz.kerple_log_bias(distance, self.r1.clamp(min=0.01), self.r2.clamp(min=0.01))
        else:
            values = posviz.kerple_power_bias(distance, self.r1.clamp(min=0.01), self.r2.clamp(0.01, 2))
        return _by_distance(values, q, k)


class Sandwich(Encoding):
    """Chi et al. 2023: the product of two sinusoids, divided by the compression ratio of the head."""

    def __init__(self, *, heads, **shape):
        super().__init__()
        self.heads = heads

    def bias(self, q, k, layer):
        values = posviz.sandwich_bias(range(k.shape[-2]), self.heads, SANDWICH_DIM)
        return _by_distance(_float(values, q), q, k)


class FIRE(Encoding):
    """Li et al. 2023: a learned function of ln(1 + c·distance) / ln(1 + c·max(position of the query, L)).

    The quotient is never above 1, so the function never meets a number that it did not meet in training. It is a
    network of one hidden layer of 32, shared by all layers (the paper's FIRE-S). c = 0.1 and L = a quarter of the
    trained length are the start (the paper: 512 of 2,048), both learned. The network has no constant at its end: one
    number added to all scores of a head changes nothing.
    """

    def __init__(self, *, heads, length, seed=1, **shape):
        super().__init__()
        draw = torch.Generator().manual_seed(seed + 1)

        def uniform(*size):
            return nn.Parameter(2 * torch.rand(*size, generator=draw) - 1)

        self.first, self.shift = uniform(FIRE_WIDTH), uniform(FIRE_WIDTH)
        self.second = nn.Parameter(uniform(heads, FIRE_WIDTH).detach() * FIRE_WIDTH**-0.5)
        self.c, self.share, self.threshold = (
            nn.Parameter(torch.tensor(0.1)),
            nn.Parameter(torch.tensor(1.0)),
            length / 4,
        )

    def bias(self, q, k, layer):
        distance = distances(q, k).clamp(min=0).to(q.dtype)
        position = torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2], device=q.device, dtype=q.dtype)
        c, least = self.c.abs(), (self.share * self.threshold).abs()
        x = torch.log1p(c * distance) / (torch.log1p(c * torch.maximum(position, least)) + 1e-6)[:, None]
        hidden = torch.relu(x[..., None] * self.first + self.shift)  # (queries, keys, 32)
        return (hidden @ self.second.T).permute(2, 0, 1)


ENCODINGS = {
    "none": NoEncoding,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "transformer_xl": TransformerXL,
    "t5": T5,
    "deberta": DeBERTa,
    "rope": RoPE,
    "xpos": XPos,
    "alibi": ALiBi,
    "kerple_log": lambda **shape: Kerple(kind="log", **shape),
    "kerple_power": lambda **shape: Kerple(kind="power", **shape),
    "sandwich": Sandwich,
    "rope_nope": RoPENoPE,
    "p_rope": PartialRoPE,
    "fire": FIRE,
}


def make(name, *, seed=1, **shape):
    """A fresh encoding by its name, for a model of this shape."""
    if name not in ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(ENCODINGS)}; got {name!r}")
    return ENCODINGS[name](seed=seed, **shape)
