"""Absolute positions: the sinusoidal table that is added once, to the token embeddings (chapter 3)."""

import numpy as np

from ._arguments import one_of, whole_numbers
from .rope import rope_frequencies


def sinusoidal(positions, dim, base=10_000.0, layout="interleaved"):
    """The sinusoidal position vectors of the first Transformer.

    p[k, 2i] = sin(k ω_i), p[k, 2i+1] = cos(k ω_i), ω_i = base^(-2i/dim) in radians per token.
    Every row has the same length, sqrt(dim/2), and p_k · p_{k+δ} depends on δ only.
    `layout="concatenated"` puts all sines first, then all cosines (Transformer-XL, XLNet): the same numbers in
    another order, so tables of the two layouts must not be mixed. tensor2tensor and fairseq have that order and
    other frequencies, 10000^(−i/(dim/2−1)): that is base=10_000 ** (dim / (dim - 2)).

    positions: integers of any shape, negative ones too. Returns float64 of shape positions.shape + (dim,).
    Raises TypeError for positions that are not whole, ValueError for an odd dim, a base not above 0, another layout.
    Source: Vaswani et al. 2017, section 3.5.

    >>> sinusoidal([0, 1], 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    angles = whole_numbers(positions, "positions")[..., None] * rope_frequencies(dim, base)  # (..., pairs)
    pair = [np.sin(angles), np.cos(angles)]
    if one_of(layout, "layout", ("interleaved", "concatenated")) == "concatenated":
        return np.concatenate(pair, axis=-1)
    return np.stack(pair, axis=-1).reshape(*angles.shape[:-1], 2 * angles.shape[-1])


def wavelengths(dim, base=10_000.0):
    """Tokens that each pair needs for one full turn, shortest first: λ_i = 2π / ω_i = 2π base^(2i/dim).

    ω_i is an angular frequency, so a wavelength is 2π/ω_i and not 1/ω_i. At dim 128 and base 10,000
    33 of the 64 pairs do not finish one turn in 512 tokens.

    Returns float64 of shape (dim/2,). Raises ValueError for an odd dim or a base not above 0.
    Source: Vaswani et al. 2017, section 3.5.

    >>> wavelengths(4).round(4).tolist()
    [6.2832, 628.3185]
    """
    return 2 * np.pi / rope_frequencies(dim, base)
