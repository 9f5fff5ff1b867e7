"""The pictures of chapter 3 hold what the formulas say: every curve and cell worked out here by another way."""

import json
import math
import re
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from posviz.views import absolute

LAB = Path(absolute.__file__).parent.parent / "lab"


def numbers(sentence):
    return [float(text.replace(",", "")) for text in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", sentence)]


def naive_table(positions, dim, base=10_000.0):
    table = np.zeros((positions, dim))
    for k in range(positions):
        for component in range(dim):
            angle = k / base ** ((component - component % 2) / dim)
            table[k, component] = math.cos(angle) if component % 2 else math.sin(angle)
    return table


def naive_weights(table, match):
    rows = len(table)
    weights = np.full((rows, rows), np.nan)
    for i in range(rows):
        scores = [math.exp(table[i] @ match @ table[j]) for j in range(i + 1)]
        weights[i, : i + 1] = np.array(scores) / sum(scores)
    return weights


def trained_with_autograd(trained, steps):
    """The same training, with torch's gradients in place of the ones written by hand; and the fixed matrix."""
    random = np.random.RandomState(0)
    table = torch.tensor(0.1 * random.normal(size=(24, 16)), requires_grad=True)
    match = torch.tensor(random.normal(size=(16, 16)) / 4)
    for _ in range(steps):
        scores = table[:trained] @ match @ table[:trained].T
        scores = scores.masked_fill(torch.ones(trained, trained).triu(1).bool(), -math.inf)
        loss = torch.nn.functional.cross_entropy(scores[1:], torch.arange(trained - 1))
        (gradient,) = torch.autograd.grad(loss, table)
        assert not gradient[trained:].any()
        table = (table - gradient).detach().requires_grad_()
    return table.detach().numpy(), match.numpy()


@pytest.mark.parametrize("step, trained", [(0, 16), (50, 16), (100, 16), (100, 4), (35, 24)])
def test_the_table_learns_as_under_automatic_gradients(step, trained):
    view, _, sentence = absolute.TableThatLearns().drawn(step=step, trained=trained)
    table, match = trained_with_autograd(trained, step)
    np.testing.assert_allclose(view.table.get_array(), table, atol=1e-9)
    weights = naive_weights(table, match)
    shown = np.ma.filled(view.weights.get_array(), np.nan)
    np.testing.assert_allclose(shown**2, weights, atol=1e-9)  # roots are shown, so that small weights are seen
    back = np.diagonal(weights, -1)
    assert [edge.get_ydata()[0] for edge in view.edges] == [trained - 0.5] * 4
    assert f"weight on the previous token {back[: trained - 1].mean():.2f} at positions 1 to {trained - 1}" in sentence
    assert ("Every row" in sentence) == (trained == 24)
    assert sentence.endswith("Which will change in training?") == (step == 0)
    if trained < 24 and step:
        assert f"{back[trained - 1 :].mean():.2f} from position {trained} on" in sentence


def test_rows_beyond_the_training_texts_are_bit_for_bit_those_of_the_start():
    start = absolute.TableThatLearns().drawn(step=0)[0].table.get_array()
    end = absolute.TableThatLearns().drawn(step=100, trained=12)[0].table.get_array()
    assert np.array_equal(start[12:], end[12:])
    assert (start[:12] != end[:12]).all()


def rows_of_the_small_model():
    raw = (LAB / "checkpoints" / "learned.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    entry = json.loads(raw[8 : 8 + size])["encoding.table"]
    first, last = entry["data_offsets"]
    assert entry["dtype"] == "F16"
    return np.frombuffer(raw[8 + size + first : 8 + size + last], "<f2").reshape(entry["shape"]).astype(float)


def rows_of_minilm():
    with np.load(LAB / "minilm.npz") as file:
        return file["position_embeddings"][:128].astype(float)


@pytest.mark.parametrize("table, rows", [("small model", rows_of_the_small_model), ("MiniLM", rows_of_minilm)])
def test_alike_rows_shows_the_cosines_of_the_shipped_tables(table, rows):
    rows = rows()
    view, _, sentence = absolute.AlikeRows().drawn(table=table, row=17)
    wanted = [rows[17] @ other / (np.linalg.norm(rows[17]) * np.linalg.norm(other)) for other in rows]
    np.testing.assert_allclose(view.curve.get_ydata(), wanted, atol=1e-12)
    np.testing.assert_allclose(view.cosines.get_array()[17], wanted, atol=1e-12)
    others = [-2 if k == 17 else cosine for k, cosine in enumerate(wanted)]
    assert (
        sentence.lower().startswith(table.lower())
        and f"most like row 17 is row {int(np.argmax(others))} (cosine {max(others):.2f})" in sentence
    )


def test_rows_of_the_sinusoidal_table_are_as_alike_as_their_distance_says():
    view, _, sentence = absolute.AlikeRows().drawn(table="sinusoidal", row=100)
    by_distance = [np.mean([math.cos(d * 10_000 ** (-2 * i / 64)) for i in range(32)]) for d in range(128)]
    np.testing.assert_allclose(view.curve.get_ydata(), [by_distance[abs(k - 100)] for k in range(128)], atol=1e-12)
    assert view.itself.get_xdata()[0] == 100 and [edge.get_ydata()[0] for edge in view.edges] == [100, 100]
    assert numbers(sentence)[-3:] == [round(by_distance[d], 2) for d in (1, 8, 64)]


@pytest.mark.parametrize("positions, dim, base", [(128, 64, 1e4), (16, 8, 10.0), (112, 128, 1e6)])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_the_sinusoidal_table_is_shown_component_by_component(positions, dim, base, layout):
    view, _, sentence = absolute.SinusoidalTable().drawn(positions=positions, dim=dim, base=base, layout=layout)
    table = naive_table(positions, dim, base)
    if layout == "concatenated":
        table = np.hstack([table[:, 0::2], table[:, 1::2]])
    np.testing.assert_allclose(view.table.get_array(), table.T, atol=1e-12)
    assert tuple(view.table.get_extent()) == (-0.5, positions - 0.5, dim - 0.5, -0.5)
    slow = sum(2 * math.pi * base ** (2 * i / dim) > positions for i in range(dim // 2))
    assert f"{slow} of {dim // 2} pairs do not finish one wave" in sentence
    assert f"features 0 and {1 if layout == 'interleaved' else dim // 2}," in sentence


def test_one_pair_and_one_digit_are_spoken_of_as_one():
    assert "1 of 4 pairs does not finish" in absolute.SinusoidalTable().drawn(positions=32, dim=8, base=10.0)[2]
    assert "1 of 7 digits changes." in absolute.BinaryClock().drawn(position=0)[2]
    assert "2 of 7 digits change." in absolute.BinaryClock().drawn(position=1)[2]


@pytest.mark.parametrize("component, dim, base, length", [(8, 128, 1e4, 64), (127, 128, 1e4, 16), (3, 8, 100.0, 48)])
def test_one_component_and_its_partner(component, dim, base, length):
    values = {"component": component, "dim": dim, "base": base, "length": length}
    view, _, sentence = absolute.OneComponent().drawn(**values)
    table = naive_table(length + 1, dim, base)
    np.testing.assert_allclose(view.tokens.get_ydata(), table[:, component], atol=1e-12)
    k, wave = view.wave.get_data()
    np.testing.assert_allclose(np.interp(np.arange(length + 1), k, wave), table[:, component], atol=2e-2)
    np.testing.assert_allclose(view.partner.get_ydata() ** 2 + wave**2, 1, atol=1e-12)
    long = 2 * math.pi * base ** ((component - component % 2) / dim)
    assert f"2π/θ = {long:,.1f} tokens, {length / long:.3g} waves" in sentence
    assert ("cosine" if component % 2 else "sine") in sentence.split(" of pair")[0].split()


def test_a_component_never_lies_beyond_the_width():
    explorer = absolute.OneComponent().explorer(component=100)
    explorer.controls["dim"].value = 40
    assert explorer.sentence.startswith("Feature 39 of 40")
    explorer.controls["dim"].value = 128
    assert explorer.sentence.startswith("Feature 100 of 128")  # as it was
    explorer.controls["dim"].value = 40
    explorer.controls["component"].value = 90
    assert explorer.values["dim"] == 96 and explorer.sentence.startswith("Feature 90 of 96")
    explorer.close()


@pytest.mark.parametrize("position", [0, 1, 63, 95, 126])
@pytest.mark.parametrize("base", [128, 10_000])
def test_the_binary_clock_counts_digits_and_measures_steps(position, base):
    view, figure, sentence = absolute.BinaryClock().drawn(position=position, base=base)
    table = naive_table(128, 14, base)
    np.testing.assert_allclose(view.sines.get_array(), table[:, 0::2].T, atol=1e-12)
    digits = figure.axes[0].images[0].get_array()
    for k in range(128):
        assert "".join(str(digit) for digit in digits[::-1, k]) == f"{k:07b}"
    here, there = f"{position:07b}", f"{position + 1:07b}"
    assert f"{position} ({here}) to {position + 1} ({there})" in sentence
    assert f"{sum(a != b for a, b in zip(here, there, strict=True))} of 7 digits" in sentence
    steps = np.sqrt((np.diff(table, axis=0) ** 2).sum(axis=1))
    assert np.ptp(steps) < 1e-12 and f"moves by {steps[0]:.3f}" in sentence
    assert all(edge.get_xdata()[0] == position + 0.5 for edge in view.edges)
    assert view.moves.get_ydata() == pytest.approx(steps[: position + 1])  # as far as the reader went
    changed = [sum(a != b for a, b in zip(f"{n:07b}", f"{n + 1:07b}")) for n in range(position + 1)]
    assert view.flips.get_ydata()[1::3].tolist() == changed


@pytest.mark.parametrize("dim, base, draw", [(128, 1e4, 0), (32, 10.0, 7), (256, 1e6, 20)])
@pytest.mark.parametrize("vectors", ["identical", "random", "projected"])
def test_the_score_by_distance_of_three_kinds_of_vectors(vectors, dim, base, draw):
    view, _, sentence = absolute.DecayByDistance().drawn(vectors=vectors, draw=draw, dim=dim, base=base)
    table, random = naive_table(513, dim, base), np.random.RandomState(draw)
    if vectors == "projected":
        w_q = random.normal(size=(dim, dim)) / math.sqrt(dim)
        w_k = random.normal(size=(dim, dim)) / math.sqrt(dim)
        score = np.array([(table[0] @ w_q) @ (row @ w_k) for row in table])
    else:
        q, k = random.normal(size=dim), random.normal(size=dim)
        score = np.array([(q + table[0]) @ ((q if vectors == "identical" else k) + row) for row in table])
    alone = np.array([sum(math.cos(n * base ** (-2 * i / dim)) for i in range(dim // 2)) for n in range(513)])
    np.testing.assert_allclose(view.score.get_ydata(), (score - score[0]) / (dim / 2), atol=1e-10)
    np.testing.assert_allclose(view.alone.get_ydata(), alone / (dim / 2) - 1, atol=1e-10)
    low, high = view.score.axes.get_ylim()
    assert low < view.score.get_ydata().min() and view.score.get_ydata().max() < high
    rises = np.mean([score[n + 1] > score[n] for n in range(512)])
    assert f"{score[0]:.1f} at distance 0 and {score[500]:.1f} at 500; {rises:.0%} of the steps" in sentence
    assert f"alone: {np.corrcoef(score, alone)[0, 1]:.2f}." in sentence


def test_the_word_of_the_key_moves_the_score_by_a_constant_only():
    curves = {
        kind: absolute.DecayByDistance().drawn(vectors=kind, draw=4)[0].score.get_ydata()
        for kind in ("identical", "random", "projected")
    }
    np.testing.assert_allclose(curves["identical"], curves["random"], atol=1e-10)
    assert np.abs(curves["projected"] - curves["random"]).max() > 0.3


@pytest.mark.parametrize("trained, dim, penalty", [(512, 128, 1e-3), (64, 16, 10.0), (768, 64, 1e-4)])
def test_the_reader_is_the_least_squares_fit_with_a_penalty(trained, dim, penalty):
    used = trained + 128
    view, _, sentence = absolute.ReadThePosition().drawn(trained=trained, used=used, dim=dim, penalty=penalty)
    table = naive_table(1024, dim)
    rows = np.vstack([table[:trained], math.sqrt(penalty) * np.eye(dim)])  # the penalty, as rows to be fitted by 0
    fitted = np.linalg.lstsq(rows, np.r_[np.arange(trained), np.zeros(dim)], rcond=None)[0]
    read = table @ fitted
    np.testing.assert_allclose(view.read.get_ydata(), read[:used], atol=1e-2)
    assert view.edge.get_xdata()[0] == trained
    inside = math.sqrt(np.mean((read[:trained] - np.arange(trained)) ** 2))
    beyond = math.sqrt(np.mean((read[trained : trained + 128] - np.arange(trained, trained + 128)) ** 2))
    assert numbers(sentence)[4:6] == pytest.approx([inside, beyond], abs=0.6) and inside < 0.1 * beyond
    assert f"{inside:.3f} tokens" in sentence and f"Position {used - 1:,} is read as {read[used - 1]:,.0f}." in sentence
    sentence = absolute.ReadThePosition().drawn(trained=trained, used=trained, dim=dim, penalty=penalty)[2]
    assert sentence.endswith(f"{inside:.3f} tokens there. How will the next positions be read?")


def test_untrained_rows_are_alike_to_none_and_the_picture_opens_on_them():
    view, _, sentence = absolute.AlikeRows().drawn()
    rows = np.random.RandomState(0).normal(size=(128, 64))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(view.cosines.get_array(), rows @ rows.T, atol=1e-12)
    assert np.abs(np.array(numbers(sentence)[-3:])).max() < 0.02 and "-0.00" not in sentence
    assert sentence.endswith("Will training make neighbours alike?")


def test_the_tables_named_in_the_chapter_have_the_sizes_of_the_models():
    transformers = pytest.importorskip("transformers")
    bert, gpt, gpt2 = transformers.BertConfig(), transformers.OpenAIGPTConfig(), transformers.GPT2Config()
    albert, opt = transformers.AlbertConfig(), transformers.OPTConfig()
    sizes = {
        "GPT (2018)": (gpt.n_positions, gpt.n_embd),
        "BERT-base (2018)": (bert.max_position_embeddings, bert.hidden_size),
        "GPT-2 (2019)": (gpt2.n_positions, gpt2.n_embd),
        "ALBERT-base (2019)": (albert.max_position_embeddings, albert.embedding_size),
        "OPT-125M (2022)": (opt.max_position_embeddings + 2, opt.hidden_size),
    }
    chapter = Path(absolute.__file__).parent.parent.parent / "notebooks" / "03_absolute.ipynb"
    (cell,) = [
        cell
        for cell in json.loads(chapter.read_text("utf-8"))["cells"]
        if "claim-3.1.3-who-uses-it" in cell["metadata"].get("tags", [])
    ]
    names = {}
    exec("".join(cell["source"]).partition("for name")[0], names)
    assert {name: size for name, size in names["tables"].items() if "RoBERTa" not in name} == sizes
