"""Public implementations as oracles: Hugging Face transformers and rotary-embedding-torch, random weights only."""

import numpy as np
import pytest
import torch
from rotary_embedding_torch import RotaryEmbedding
from transformers import BloomConfig, DebertaV2Config, GPTJConfig, LlamaConfig, T5Config, XLNetConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import BloomAttention, build_alibi_tensor
from transformers.models.deberta_v2.modeling_deberta_v2 import (
    DisentangledSelfAttention,
    build_relative_position,
    make_log_bucket_position,
)
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.xlnet.modeling_xlnet import XLNetModel, XLNetRelativeAttention

from posviz import (
    alibi_bias,
    alibi_slopes,
    attention_weights,
    deberta_index,
    deberta_terms,
    dynamic_ntk_base,
    llama3_frequencies,
    log_bucket,
    position_interpolation,
    relative_shift,
    rope,
    rope_frequencies,
    sinusoidal,
    softmax,
    t5_bucket,
    transformer_xl_terms,
    xpos_scale,
    yarn_attention_factor,
    yarn_frequencies,
)
from posviz.bias import distances


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).float()


def close(found, expected, tolerance=2e-6):
    """Equal up to the rounding of the float32 that the oracles compute in."""
    torch.testing.assert_close(
        torch.as_tensor(found).double(), torch.as_tensor(expected).double(), rtol=tolerance, atol=tolerance
    )


# ------------------------------------------------------------------ RoPE


def llama_config(dim=32, base=10_000.0, length=2048, **scaling):
    parameters = {"rope_type": "default", "rope_theta": base, **scaling}
    return LlamaConfig(
        hidden_size=2 * dim, num_attention_heads=2, max_position_embeddings=length, rope_parameters=parameters
    )


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_half_layout_is_llamas(base):
    q, k = random(2, 3, 40, 32), random(2, 3, 40, 32, seed=1)
    positions = torch.stack([torch.arange(40), torch.arange(100, 140)])
    cos, sin = llama.LlamaRotaryEmbedding(llama_config(base=base))(q, positions)
    expected_q, expected_k = llama.apply_rotary_pos_emb(q, k, cos, sin)
    close(rope(q, positions[:, None], base=base, layout="half"), expected_q, 2e-5)  # float32 angles up to 140
    close(rope(k, positions[:, None], base=base, layout="half"), expected_k, 2e-5)


def test_printed_example_of_llama():
    x = torch.arange(1.0, 9).reshape(1, 1, 1, 8)
    cos, sin = llama.LlamaRotaryEmbedding(llama_config(dim=8))(x, torch.tensor([[5]]))
    close(rope(x, 5, layout="half"), llama.apply_rotary_pos_emb(x, x, cos, sin)[0])


def test_interleaved_layout_with_partial_rotation_is_gptjs():
    config = GPTJConfig(n_embd=64, n_head=2, rotary_dim=16, n_positions=256)
    x, positions = random(2, 50, 2, 32), torch.arange(50).expand(2, 50)  # (batch, sequence, head, dim)
    sin, cos = gptj.GPTJRotaryEmbedding(config)(x, positions)
    expected = torch.cat([gptj.apply_rotary_pos_emb(x[..., :16], sin, cos), x[..., 16:]], dim=-1)
    close(rope(x, positions[..., None], rotary_dim=16), expected, 1e-5)


def test_concatenated_sinusoids_are_gptjs_table():
    close(sinusoidal(range(64), 24, layout="concatenated"), gptj.create_sinusoidal_positions(64, 24), 1e-5)


def test_interleaved_layout_is_rotary_embedding_torchs():
    x = random(2, 3, 40, 32)
    rotary = RotaryEmbedding(32)
    close(rope(x, range(40)), rotary.rotate_queries_or_keys(x), 1e-5)
    close(rope(x, range(7, 47)), rotary.rotate_queries_or_keys(x, offset=7), 1e-5)


def test_xpos_is_rotary_embedding_torchs():
    q, k, length = random(2, 3, 40, 32), random(2, 3, 40, 32, seed=1), 40
    expected_q, expected_k = RotaryEmbedding(32, use_xpos=True).rotate_queries_and_keys(q, k)
    centred = np.arange(length) - length // 2  # the scale counts from the middle of the text
    scale = torch.from_numpy(xpos_scale(centred, 32)).float().repeat_interleave(2, dim=-1)
    close(rope(q, range(length)) * scale, expected_q, 1e-5)
    close(rope(k, range(length)) / scale, expected_k, 1e-5)


# ------------------------------------------------------------------ scaled frequencies


@pytest.mark.parametrize("dim", [32, 64, 128])
@pytest.mark.parametrize("factor", [1.0, 4.0, 16.0])
def test_linear_scaling(dim, factor):
    expected, _ = ROPE_INIT_FUNCTIONS["linear"](llama_config(dim, rope_type="linear", factor=factor))
    close(position_interpolation(rope_frequencies(dim), factor) / expected.double().numpy(), np.ones(dim // 2))


@pytest.mark.parametrize("length", [100, 2048, 2049, 4096, 16_384])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_dynamic_scaling(length, factor):
    config = llama_config(128, rope_type="dynamic", factor=factor)
    expected, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, seq_len=length)
    found = rope_frequencies(128, dynamic_ntk_base(10_000, length, 2048, 128, factor=factor))
    close(found / expected.double().numpy(), np.ones(64))


@pytest.mark.parametrize("dim", [32, 64, 128])
@pytest.mark.parametrize(
    ("factor", "length", "base", "fast", "slow"),
    [
        (4.0, 2048, 1e4, 32, 1),
        (16.0, 4096, 1e4, 32, 1),
        (40.0, 4096, 1e6, 32, 1),
        (8.0, 128, 1e2, 4, 1),
        (8.0, 128, 1e4, 32, 1),
        (2.0, 1024, 5e5, 16, 2),
        (4.0, 100_000, 1e2, 2000, 1),  # the slow end lies beyond the last pair
        (2.0, 6, 1e4, 32, 1),  # no pair makes a turn: both ends meet, or swap
        (2.0, 4, 1e4, 32, 1),
    ],
)
def test_yarn_scaling(dim, factor, length, base, fast, slow):
    scaling = {"factor": factor, "beta_fast": fast, "beta_slow": slow, "original_max_position_embeddings": length}
    config = llama_config(dim, base, int(length * factor), rope_type="yarn", **scaling)
    expected, temperature = ROPE_INIT_FUNCTIONS["yarn"](config)
    found = yarn_frequencies(dim, factor, length, base, beta_fast=fast, beta_slow=slow)
    close(found / expected.double().numpy(), np.ones(dim // 2))
    assert yarn_attention_factor(factor) == pytest.approx(temperature, rel=1e-15)

    config = llama_config(dim, base, int(length * factor), rope_type="yarn", truncate=False, **scaling)
    expected, _ = ROPE_INIT_FUNCTIONS["yarn"](config)
    found = yarn_frequencies(dim, factor, length, base, beta_fast=fast, beta_slow=slow, truncate=False)
    close(found / expected.double().numpy(), np.ones(dim // 2))


@pytest.mark.parametrize(("mscale", "mscale_all_dim"), [(0.707, 0.707), (1.0, 1.0), (1.0, 0.8), (0.5, 2.0)])
def test_yarn_factor_with_deepseeks_two_numbers(mscale, mscale_all_dim):
    scaling = {"factor": 40.0, "mscale": mscale, "mscale_all_dim": mscale_all_dim}
    config = llama_config(64, 1e4, 163_840, rope_type="yarn", original_max_position_embeddings=4096, **scaling)
    _, temperature = ROPE_INIT_FUNCTIONS["yarn"](config)
    assert yarn_attention_factor(40, mscale, mscale_all_dim) == pytest.approx(temperature, rel=1e-15)


@pytest.mark.parametrize(("dim", "factor"), [(128, 8.0), (64, 32.0)])
@pytest.mark.parametrize(("low", "high"), [(1.0, 4.0), (2.0, 16.0)])
def test_llama3_scaling(dim, factor, low, high):
    scaling = {"factor": factor, "low_freq_factor": low, "high_freq_factor": high}
    config = llama_config(dim, 500_000.0, 131_072, rope_type="llama3", original_max_position_embeddings=8192, **scaling)
    expected, temperature = ROPE_INIT_FUNCTIONS["llama3"](config)
    close(llama3_frequencies(dim, factor, low=low, high=high) / expected.double().numpy(), np.ones(dim // 2))
    assert temperature == 1


# ------------------------------------------------------------------ T5


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "longest"), [(32, 128), (64, 128), (32, 20), (64, 1024), (8, 16)])
def test_t5_buckets(bidirectional, buckets, longest):
    relative = torch.arange(-2000, 2001)
    expected = T5Attention._relative_position_bucket(relative, bidirectional, buckets, longest)
    assert np.array_equal(t5_bucket(relative, bidirectional, buckets, longest), expected.numpy())


@pytest.mark.parametrize("decoder", [True, False])
def test_t5_bias_table(decoder):
    config = T5Config(d_model=16, d_kv=8, num_heads=2, is_decoder=decoder)
    layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    bucket = t5_bucket(-distances(200), bidirectional=not decoder)
    expected = layer.compute_bias(200, 200)[0].permute(1, 2, 0)
    assert torch.equal(layer.relative_attention_bias.weight[torch.from_numpy(bucket)], expected)


# ------------------------------------------------------------------ ALiBi


@pytest.mark.parametrize("heads", [*range(1, 21), 32, 40, 48, 71, 112])
def test_alibi_slopes_are_blooms_and_mpts(heads):
    one_step = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1]
    close(alibi_slopes(heads), one_step, 1e-6)
    if heads > 2:
        close(-alibi_slopes(heads), build_mpt_alibi_tensor(heads, 2)[:, 0, 0], 1e-6)


def test_alibi_with_left_padding_is_blooms_attention():
    torch.manual_seed(0)
    config = BloomConfig(hidden_size=48, n_head=6, attention_dropout=0.0, hidden_dropout=0.0)
    config._attn_implementation = "eager"
    layer = BloomAttention(config, layer_idx=0).eval()
    states = random(2, 7, 48)
    real = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]], dtype=torch.bool)
    visible = real[:, None, None, :] & torch.ones(7, 7, dtype=torch.bool).tril()
    hidden = torch.zeros(2, 1, 7, 7).masked_fill(~visible, torch.finfo(torch.float32).min)
    alibi = build_alibi_tensor(real.long(), 6, torch.float32)
    with torch.no_grad():
        _, expected = layer(states, torch.zeros_like(states), alibi, hidden, output_attentions=True)
        q, k, _ = layer._reshape(layer.query_key_value(states))
        found = attention_weights(q, k, bias=alibi_bias(6, 7), mask=visible)
    for text, first in enumerate((3, 0)):  # rows of padding see nothing here, and everything there
        close(found[text, :, first:], expected[text, :, first:])
        assert not found[text, :, :first].any()


# ------------------------------------------------------------------ Transformer-XL, XLNet


def test_relative_shift_is_xlnets():
    scores = random(3, 9, 2, 4)  # (query, columns, batch, head) in XLNet
    expected = XLNetRelativeAttention.rel_shift(scores, klen=5)
    ours = relative_shift(scores.permute(2, 3, 0, 1)[..., 1:])[..., :5]
    assert torch.equal(ours.permute(2, 3, 0, 1), expected)


def test_transformer_xl_terms_are_xlnets():
    torch.manual_seed(0)
    config = XLNetConfig(d_model=24, n_head=3, d_head=8, n_layer=1, d_inner=8, vocab_size=5, dropout=0.0)
    layer, length = XLNetRelativeAttention(config).eval(), 6
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    states = random(length, 1, 24)  # (sequence, batch, model)
    positions = XLNetModel(config).relative_positional_encoding(length, length, bsz=1)
    with torch.no_grad():
        *_, expected = layer(states, None, None, None, positions, None, output_attentions=True)
        q, k = (torch.einsum("ibm,mhd->bhid", states, weight) for weight in (layer.q, layer.k))
        sinusoids = torch.from_numpy(sinusoidal(range(length - 1, -length, -1), 24, layout="concatenated")).float()
        relative = torch.einsum("rm,mhd->hrd", sinusoids, layer.r)
        terms = transformer_xl_terms(q, k, relative, layer.r_w_bias, layer.r_r_bias)
    close(softmax(sum(terms) / 8**0.5)[0], expected.permute(2, 3, 0, 1)[0], 1e-5)


# ------------------------------------------------------------------ DeBERTa


@pytest.mark.parametrize(("bucket", "longest"), [(256, 512), (8, 16), (32, 128), (64, 2048)])
def test_log_buckets(bucket, longest):
    relative = torch.arange(-longest, longest + 1)
    expected = make_log_bucket_position(relative, bucket, longest)
    assert np.array_equal(log_bucket(relative, bucket, longest, clamp=False), expected.numpy())


def test_deberta_distances():
    table = build_relative_position(torch.zeros(1, 5, 2), torch.zeros(1, 5, 2))[0]
    assert np.array_equal(deberta_index(5, span=3), (table + 3).clamp(0, 5).numpy())


@pytest.mark.parametrize("terms", [["c2p", "p2c"], ["c2p"], ["p2c"]])
def test_deberta_code_convention_is_hugging_faces(terms):
    torch.manual_seed(0)
    span, length, heads, dim = 4, 9, 3, 8
    config = DebertaV2Config(
        hidden_size=heads * dim,
        num_attention_heads=heads,
        relative_attention=True,
        max_relative_positions=span,
        pos_att_type=terms,
        hidden_dropout_prob=0.0,
    )
    layer = DisentangledSelfAttention(config).eval()
    states, table = random(1, length, heads * dim), random(2 * span, heads * dim, seed=1)

    def split(projected):  # (rows, model) -> (heads, rows, dim)
        return projected.reshape(-1, heads, dim).transpose(0, 1)

    with torch.no_grad():
        qc, kc = split(layer.query_proj(states[0])), split(layer.key_proj(states[0]))
        expected = layer.disentangled_attention_bias(qc, kc, None, table, scale_factor=1 + len(terms))
        kr = split(layer.pos_key_proj(table)) if "c2p" in terms else torch.zeros(heads, 2 * span, dim)
        qr = split(layer.pos_query_proj(table)) if "p2c" in terms else torch.zeros(heads, 2 * span, dim)
        code, paper = (deberta_terms(qc, kc, qr, kr, span, convention=name) for name in ("code", "paper"))
    scale = (dim * (1 + len(terms))) ** 0.5
    close((code.content_to_position + code.position_to_content) / scale, expected)
    if "p2c" in terms:  # the paper's index δ(j, i) is another function
        difference = (paper.content_to_position + paper.position_to_content) / scale - expected
        assert difference.abs().max() > 0.1
