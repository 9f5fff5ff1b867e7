"""Longer than trained: changes to RoPE's frequencies and to the scores, made after training (chapter 6)."""

import math

import numpy as np

from ._arguments import count, even, one_of, positive, positives, real, require, whole_numbers
from .rope import rope_frequencies


def position_interpolation(frequencies, factor):
    """Position Interpolation: every frequency divided by factor, as if positions were squeezed.

    No angle beyond the trained ones occurs up to factor × the trained length; the price is that neighbours
    move closer together, so the model needs a short fine-tuning.

    frequencies: radians per token, ≥ 0; factor: used length / trained length, ≥ 1.
    Returns float64 of the same shape, or a tensor with its gradient if frequencies is one.
    Raises ValueError for a factor below 1 or a frequency below 0.
    Source: Chen et al. 2023, eq. 4.

    >>> position_interpolation([1.0, 0.01], 4).tolist()
    [0.25, 0.0025]
    """
    return positives(frequencies, "frequencies", or_zero=True) / real(factor, "factor", least=1)


def ntk_base(base, factor, dim):
    """NTK-aware scaling: a larger base, b' = base · factor^(dim/(dim−2)); positions stay as they are.

    Pair 0 keeps its speed, the last pair is slowed by exactly factor, pair i by factor^(2i/(dim−2)). Pairs
    in between still leave their trained angles, so the real reach is smaller than factor.

    Returns a float. Raises ValueError for a factor below 1, a base not above 0, a dim not even and ≥ 4, or a b' beyond
    the largest float.
    Source: bloc97 2023; Peng et al. 2023 (YaRN), Definition 1, eq. 14 to 16.

    >>> round(ntk_base(10_000, 4, 128), 5)
    40889.94243
    """
    dim, base, factor = even(dim, "dim", least=4), positive(base, "base"), real(factor, "factor", least=1)
    with np.errstate(over="ignore"):
        larger = base * np.power(factor, dim / (dim - 2))
    return real(larger, f"base · factor^(dim/(dim−2)) with factor {factor:g}")


def dynamic_ntk_base(base, length, trained_length, dim, factor=1.0):
    """Dynamic NTK: the base grows with the text, and is untouched up to the trained length.

    b' = base · (factor · length / trained_length − (factor − 1))^(dim/(dim−2)) beyond it. Keys that were
    rotated and cached under an older, smaller base no longer fit the new queries: cache keys before rotation.

    length, trained_length: tokens; factor: ≥ 1. Returns a float. Raises as `ntk_base`.
    Source: emozilla 2023, as in Hugging Face transformers (`_compute_dynamic_ntk_parameters`).

    >>> [round(dynamic_ntk_base(10_000, n, 2048, 128, factor=2), 3) for n in (2048, 2049, 4096)]
    [10000.0, 10009.921, 30527.737]
    """
    factor = real(factor, "factor", least=1)
    length, trained = count(length, "length", least=0), count(trained_length, "trained_length")
    return ntk_base(base, max(1.0, factor * length / trained - (factor - 1)), dim)


def yarn_frequencies(
    dim, factor, trained_length, base=10_000.0, beta_fast=32.0, beta_slow=1.0, ramp="code", truncate=True
):
    """YaRN / NTK-by-parts: fast pairs keep their frequency, slow pairs are divided by factor, a ramp between.

    A pair is fast if it makes more than beta_fast turns in the trained length, slow below beta_slow turns.
    Paper and released code differ in the middle: ramp="paper" is linear in the number of turns,
    ramp="code" (default, and what published checkpoints were tuned with) is linear in the index of the pair.
    Between the two a frequency can differ by a factor of 2 to 3. A short trained length needs a smaller
    beta_fast: 32 turns are more than any pair makes in 128 tokens. The code's ramp begins and ends at whole pairs,
    rounded outwards; truncate=False leaves them where they fall (gpt-oss), which slows a pair by up to 1.8 times.

    Returns float64 of shape (dim/2,), radians per token. Raises ValueError for an odd dim, a factor below 1,
    a trained_length below 1, a base not above 1, beta_slow not below beta_fast, another ramp.
    Source: Peng et al. 2023 (YaRN), section 3.2; jquesnelle/yarn and Hugging Face transformers for "code",
    openai/gpt-oss for truncate=False.

    >>> theta = rope_frequencies(128)
    >>> (theta / yarn_frequencies(128, 4, 2048))[[0, 24, 63]].round(4).tolist()
    [1.0, 1.3158, 4.0]
    >>> (theta / yarn_frequencies(128, 4, 2048, ramp="paper"))[[0, 24, 63]].round(4).tolist()
    [1.0, 2.1045, 4.0]
    """
    dim, base, length = even(dim, "dim"), positive(base, "base"), count(trained_length, "trained_length")
    theta = rope_frequencies(dim, base)
    fast, slow = positive(beta_fast, "beta_fast"), positive(beta_slow, "beta_slow")
    require(slow < fast, "beta_slow", f"be below beta_fast, {fast:g}", slow)
    if one_of(ramp, "ramp", ("code", "paper")) == "paper":
        keep = (length * theta / (2 * np.pi) - slow) / (fast - slow)
    else:
        require(base > 1, "base", "be above 1 (frequencies must fall)", base)
        # Which pairs make so many turns in the trained length: a pair between two others has a fraction.
        low, high = dim * (np.log(length / (2 * np.pi)) - np.log([fast, slow])) / (2 * np.log(base))
        if truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        keep = 1 - (np.arange(0.0, dim // 2) - low) / (high - low if high != low else 0.001)
    return _by_parts(theta, factor, keep)


def yarn_attention_factor(factor, mscale=1.0, mscale_all_dim=0.0):
    """YaRN's temperature as a factor on q and on k: 1/sqrt(t) = 0.1 ln(factor) + 1.

    It multiplies both, so the scores are multiplied by its square. DeepSeek turns only some of the features and splits
    the factor: (0.1 mscale ln(factor) + 1) / (0.1 mscale_all_dim ln(factor) + 1) for those, which is 1 in V2 (both
    0.707) and V3 (both 1), and the scale of the whole score times yarn_attention_factor(factor, mscale_all_dim)**2.

    factor: ≥ 1; mscale and mscale_all_dim: ≥ 0, else ValueError. Returns a float.
    Source: Peng et al. 2023 (YaRN), eq. 21 and 22; `modeling_deepseek.py` of deepseek-ai/DeepSeek-V2.

    >>> round(yarn_attention_factor(16), 8)
    1.27725887
    >>> yarn_attention_factor(40, 0.707, 0.707)
    1.0
    """
    tenth = 0.1 * math.log(real(factor, "factor", least=1))
    return (tenth * real(mscale, "mscale", least=0) + 1) / (tenth * real(mscale_all_dim, "mscale_all_dim", least=0) + 1)


def llama3_frequencies(dim, factor=8.0, base=500_000.0, trained_length=8192, low=1.0, high=4.0):
    """Llama 3.1's scaling: YaRN's idea with a ramp that is linear in turns, from `low` to `high` of them.

    Pairs that make more than `high` turns in trained_length tokens are kept, below `low` turns divided by factor.
    No temperature goes with it.

    Returns float64 of shape (dim/2,), radians per token. Raises ValueError for an odd dim, a factor below 1,
    a base or low not above 0, a trained_length below 1, low not below high.
    Source: meta-llama/llama-models, `apply_scaling`; Llama 3.1 uses factor 8, Llama 3.2 (1B, 3B) 32.

    >>> theta = rope_frequencies(128, 500_000)
    >>> (theta / llama3_frequencies(128))[[28, 31, 35]].round(4).tolist()
    [1.0, 2.0263, 8.0]
    """
    theta = rope_frequencies(dim, base)
    low, high = positive(low, "low"), real(high, "high")
    require(low < high, "low", f"be below high, {high:g}", low)
    turns = count(trained_length, "trained_length") * theta / (2 * np.pi)
    return _by_parts(theta, factor, (turns - low) / (high - low))


def log_n_factor(visible_keys, trained_length):
    """Su's factor for the scores: max(1, ln n / ln L), n = keys that the query sees, L = trained length.

    A factor, not a summand: softmax does not notice a constant added to all scores. It sharpens near and far
    keys alike, so it is a temperature and not a distance penalty. In causal attention n = position + 1.
    As a temperature of `attention_weights` it is 1 / log_n_factor.

    visible_keys: integers ≥ 1 of any shape; trained_length: ≥ 2. Returns float64, same shape, never below 1.
    Raises TypeError or ValueError for other numbers. Source: Su 2021 (kexue.fm/archives/8823), clamped at L.

    >>> log_n_factor([100, 512, 2048], 512).round(6).tolist()
    [1.0, 1.0, 1.222222]
    """
    visible = whole_numbers(visible_keys, "visible_keys", least=1).astype(np.float64)
    return np.maximum(1.0, np.log(visible) / math.log(count(trained_length, "trained_length", least=2)))


def _by_parts(theta, factor, keep):
    """θ where keep ≥ 1, θ/factor where keep ≤ 0, a linear mix between."""
    keep = np.clip(keep, 0, 1)
    return keep * theta + (1 - keep) * theta / real(factor, "factor", least=1)
