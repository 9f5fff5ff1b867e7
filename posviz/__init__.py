"""posviz: positional encodings in language models, as tested formulas and live pictures.

`posviz.rope` is the function, which hides the module of its name: `from posviz.rope import rotate_pairs` reaches that.
"""

from .absolute import sinusoidal, wavelengths
from .attention import attention_entropy, attention_weights, softmax
from .bias import alibi_bias, alibi_slopes, kerple_log_bias, kerple_power_bias, sandwich_bias
from .relative import deberta_index, deberta_terms, log_bucket, relative_shift, t5_bucket, transformer_xl_terms
from .rope import rope, rope_frequencies, rope_matrix, xpos_scale
from .scaling import (
    dynamic_ntk_base,
    llama3_frequencies,
    log_n_factor,
    ntk_base,
    position_interpolation,
    yarn_attention_factor,
    yarn_frequencies,
)

__all__ = sorted(name for name, value in globals().items() if callable(value))
