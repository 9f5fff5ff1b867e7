"""The lab's model: each encoding against naive loops, short trainings, and encodings written by a reader."""

import cmath
import dataclasses
import math
import signal

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import posviz
from posviz import lab
from posviz.lab import changes, data, encodings, training
from posviz.lab.model import Attention, LanguageModel

SHAPE = {"width": 16, "heads": 2, "layers": 2, "length": 20}
SMALL = {task: dataclasses.replace(recipe, **SHAPE) for task, recipe in training.RECIPES.items()}
NAMES = list(encodings.ENCODINGS)


def test_names_are_those_the_chapters_use():
    assert NAMES == (
        "none learned sinusoidal transformer_xl t5 deberta rope xpos alibi kerple_log kerple_power sandwich "
        "rope_nope p_rope fire".split()
    )


# ------------------------------------------------------------------ scores against loops


def rotated(vector, position, base):
    """RoPE with complex numbers: the pair (2i, 2i + 1) is one number that is turned."""
    out = []
    for i in range(len(vector) // 2):
        turned = complex(vector[2 * i], vector[2 * i + 1]) * cmath.exp(1j * position * base ** (-2 * i / len(vector)))
        out += [turned.real, turned.imag]
    return out


def dot(a, b):
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def sinusoid(position, width):  # sines first, then cosines, as Transformer-XL has them
    angles = [position / 10000 ** (2 * i / width) for i in range(width // 2)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]


T5_FIRST = [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]  # first distance of buckets 16 … 31


def naive_score(name, e, layer, head, q, k, i, j):
    """Score of query i and key j (lists of numbers), straight from the papers, before the softmax."""
    d, distance = len(q), i - j
    plain = dot(q, k) / math.sqrt(d)
    if name in ("none", "learned", "sinusoidal"):
        return plain
    if name == "alibi":
        return plain - 2 ** (-8 * (head + 1) / 2) * distance
    if name == "t5":
        bucket = distance if distance < 16 else 15 + sum(distance >= first for first in T5_FIRST)
        return plain + e.table[head, bucket].item()
    if name == "kerple_log":
        return plain - e.r1[head].item() * math.log(1 + e.r2[head].item() * distance)
    if name == "kerple_power":
        return plain - e.r1[head].item() * distance ** e.r2[head].item()
    if name == "sandwich":
        product = sum(math.cos(distance * 10000 ** (-2 * t / 128)) for t in range(1, 65)) - 64
        return plain + product / (8 * (head + 1) / 2)
    if name == "rope_nope" and layer == 1:  # the last of the two
        return plain
    if name == "fire":
        least, c = abs(e.share.item()) * 20 / 4, abs(e.c.item())
        x = math.log(1 + c * distance) / (math.log(1 + c * max(i, least)) + 1e-6)
        network = zip(e.first.tolist(), e.shift.tolist(), e.second[head].tolist(), strict=True)
        return plain + sum(out * max(0.0, x * weight + shift) for weight, shift, out in network)
    if name == "p_rope":  # the first two of four pairs, the fast ones
        half = d // 2
        return (dot(rotated(q, i, 100)[:half], rotated(k, j, 100)[:half]) + dot(q[half:], k[half:])) / math.sqrt(d)
    if name in ("rope", "rope_nope"):
        return dot(rotated(q, i, 100), rotated(k, j, 100)) / math.sqrt(d)
    if name == "xpos":
        total, a, b = 0.0, rotated(q, i, 100), rotated(k, j, 100)
        for p in range(d // 2):
            zeta = (2 * p / d + 0.4) / 1.4
            total += zeta ** (distance / e.length) * (a[2 * p] * b[2 * p] + a[2 * p + 1] * b[2 * p + 1])
        return total / math.sqrt(d)
    if name == "transformer_xl":
        projected = [dot(row, sinusoid(distance, e.width)) for row in e.w[layer].tolist()]
        r = projected[head * d : (head + 1) * d]
        u, v = e.u[head].tolist(), e.v[head].tolist()
        return (dot(q, k) + dot(q, r) + dot(u, k) + dot(v, r)) / math.sqrt(d)
    assert name == "deberta"

    def row(weight, index):
        index = min(max(index + e.span, 0), 2 * e.span - 1)
        return [dot(w, e.positions[index].tolist()) for w in weight[layer].tolist()][head * d : (head + 1) * d]

    return (dot(q, k) + dot(q, row(e.wk, distance)) + dot(k, row(e.wq, -distance))) / math.sqrt(3 * d)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_scores_inside_the_model_equal_naive_ones(name, layer):
    shape = SHAPE | ({"length": 128} if name == "t5" else {})
    encoding = encodings.make(name, base=100, **shape)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.add_(0.3 * torch.rand(parameter.shape, generator=draw))
    n, heads, d = (40 if name == "t5" else 9), 2, 8
    q, k = torch.randn(2, 1, heads, n, d, generator=draw)
    attention = Attention(16, heads, causal=True)
    with torch.no_grad():
        weights = attention.weights(*encoding.rotate_in(q, k, layer), encoding, layer)[0]
    for head in range(heads):
        for i in (0, 1, n // 2, n - 1):
            scores = [
                naive_score(name, encoding, layer, head, q[0, head, i].tolist(), k[0, head, j].tolist(), i, j)
                for j in range(i + 1)
            ]
            top = max(scores)
            total = sum(math.exp(s - top) for s in scores)
            for j in range(n):
                expected = math.exp(scores[j] - top) / total if j <= i else 0.0
                assert weights[head, i, j].item() == pytest.approx(expected, abs=2e-5)


def test_deberta_inside_the_model_equals_the_public_terms():
    e = encodings.make("deberta", **SHAPE)
    q, k = torch.randn(2, 1, 2, 30, 8, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        rows = [(e.positions @ w[1].T).view(-1, 2, 8).transpose(0, 1) for w in (e.wq, e.wk)]
        terms = posviz.deberta_terms(q, k, *rows, span=e.span)
        expected = (terms.content_to_position + terms.position_to_content) / math.sqrt(3 * 8)
        bias = e.bias(*e.rotate(q, k), layer=1)
    visible = lab.distances(q, k) >= 0
    assert torch.allclose(bias[..., visible], expected[..., visible], atol=1e-5)


def test_sinusoidal_and_learned_add_their_table_to_the_embeddings():
    added = encodings.make("sinusoidal", **SHAPE).embed(5)
    for position in range(5):
        for i in range(8):
            angle = position / 10000 ** (2 * i / 16)
            assert added[position, 2 * i].item() == pytest.approx(0.1 * math.sin(angle), abs=1e-6)
            assert added[position, 2 * i + 1].item() == pytest.approx(0.1 * math.cos(angle), abs=1e-6)
    learned = encodings.make("learned", **SHAPE)
    assert torch.equal(learned.embed(5), learned.table[:5])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "learned"])
def test_blocks_of_queries_give_what_one_block_gives(name, monkeypatch):
    model = SMALL["text"].untrained(name, "text", 1)
    tokens = torch.randint(256, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = model(tokens)
        monkeypatch.setattr("posviz.lab.model.BLOCK", 7)
        assert torch.allclose(model(tokens), whole, atol=1e-5)
        assert torch.allclose(model(tokens, last=3), whole[:, -3:], atol=1e-5)


# ------------------------------------------------------------------ the model


def test_every_encoding_starts_from_the_same_weights_and_reads_the_same_batches():
    models = [SMALL["text"].untrained(name, "text", 5) for name in NAMES]
    for model in models[1:]:
        assert torch.equal(model.layers[1].up.weight, models[0].layers[1].up.weight)
        assert torch.equal(model.embedding.weight, models[0].embedding.weight)
    batches = data.TextBatches(16, 4, 5)
    assert torch.equal(batches(7)[0], data.TextBatches(16, 4, 5)(7)[0])
    assert not torch.equal(batches(7)[0], batches(8)[0])


def test_no_encoding_is_equivariant_without_the_causal_mask_and_not_with_it():
    tokens = torch.randint(256, (1, 10), generator=torch.Generator().manual_seed(0))
    order = torch.tensor([3, 0, 8, 1, 9, 2, 6, 4, 7, 5])
    for causal in (False, True):
        model = LanguageModel(encodings.make("none"), vocabulary=256, causal=causal, **SHAPE)
        with torch.no_grad():
            difference = (model(tokens[:, order]) - model(tokens)[:, order]).abs().max().item()
        assert (difference > 1e-2) if causal else (difference < 1e-5)


def test_one_causal_layer_without_encoding_cannot_tell_the_order_of_earlier_tokens_two_can():
    tokens = torch.randint(256, (1, 8), generator=torch.Generator().manual_seed(0))
    shuffled = tokens[:, [4, 2, 0, 6, 1, 3, 5, 7]]
    for layers in (1, 2):
        model = LanguageModel(encodings.make("none"), vocabulary=256, **(SHAPE | {"layers": layers}))
        with torch.no_grad():
            difference = (model(shuffled)[:, -1] - model(tokens)[:, -1]).abs().max().item()
        assert (difference < 1e-5) if layers == 1 else (difference > 1e-3)


@pytest.mark.parametrize("task", ["text", "copy"])
@pytest.mark.parametrize("name", NAMES)
def test_a_few_steps_lower_the_loss_reach_every_parameter_and_repeat(name, task):
    recipe = dataclasses.replace(SMALL[task], batch=8, steps=12, warm_up=0.1)
    runs = [training.Run(recipe.untrained(name, task, 4), task, recipe, 4) for _ in range(2)]
    for run in runs:
        for _ in range(recipe.steps):
            run.advance()
    first, second = runs
    assert first.losses == second.losses
    if task == "text":  # random symbols stay at ln 64 for the first few hundred steps
        assert sum(first.losses[-3:]) / 3 < first.losses[0] - 0.02
    for parameter in first.model.parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0


def test_loss_of_the_copy_task_counts_the_second_round_only():
    tokens, weight = data.CopyBatches(40, 64, 1)(0)
    assert tokens.shape == (64, 41) and weight.shape == (64, 40)
    for row, counted in zip(tokens, weight):
        period = int((counted == 0).sum()) + 1
        assert 8 <= period <= 20
        assert torch.equal(row[period:], row[:-period])


# ------------------------------------------------------------------ encodings of a reader


class Near:
    """A reader's encoding: keys more than three tokens back are forbidden."""

    def bias(self, q, k, layer):
        return torch.where(lab.distances(q, k) > 3, -1e4, 0.0)


def test_an_object_with_one_method_trains_and_is_measured(monkeypatch):
    model = lab.train(Near(), steps=3, seed=2)
    assert len(model.losses) == 3 and model.record["encoding"] == "Near"
    assert lab.loss_by_context(model, [64, 256]).shape == (2, 32)
    assert lab.loss_by_position(model, 70).shape == (32, 70)
    weights = lab.attention(model, "def f(x):\n    return x")
    assert weights.shape == (4, 4, 22, 22)
    assert np.tril(weights, -4).max() == 0
    assert lab.entropy_by_length(model, [64]).shape == (1, 4, 4)
    assert 0 <= lab.recall(model, [100])[0] <= 1


class NoMethod:
    pass


class WrongShape:
    def embed(self, length):
        return np.zeros((length + 1, 64))


class WrongBias:
    def bias(self, q, k, layer):
        return torch.zeros(3, 3)


class OnlyQ:
    def rotate(self, q, k):
        return q


class WrongQ:
    def rotate(self, q, k):
        return q[..., :-1], k


class NotANumber:
    def bias(self, q, k, layer):
        return torch.log(lab.distances(q, k).float())  # NaN for the future, -inf for itself


class Future:
    def rotate(self, q, k):
        return q, k.roll(-1, dims=-2)


@pytest.mark.parametrize(
    "encoding, error, message",
    [
        (NoMethod(), TypeError, "at least one of the methods embed, rotate, bias"),
        (Near, TypeError, r"write Near\(\)"),
        (WrongShape(), ValueError, r"embed must return numbers of shape \(length, width\) .* got shape \(129, 64\)"),
        (WrongBias(), ValueError, r"bias must return numbers of shape .* got shape \(3, 3\)"),
        (OnlyQ(), ValueError, "rotate.* must return the pair q, k"),
        (WrongQ(), ValueError, r"rotate must return q as a tensor of shape .* got shape"),
        (NotANumber(), ValueError, "NaN or infinite"),
        (Future(), ValueError, "looks at the future"),
        ("absolute", ValueError, "encoding must be one of none, learned"),
    ],
)
def test_an_encoding_that_does_not_fit_gets_one_clear_message(encoding, error, message):
    with pytest.raises(error, match=message):
        lab.train(encoding, steps=1)


class Table(lab.Encoding):
    """A reader's table of 128 rows, as a class derived from lab.Encoding."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.zeros(128, 64))

    def embed(self, length):
        return self.table[:length]


@pytest.fixture
def shell():
    """IPython, as a notebook cell runs in it."""
    settings = Config()
    settings.HistoryManager.enabled = False
    made = InteractiveShell(config=settings)
    made.user_ns |= {"lab": lab, "WrongBias": WrongBias, "Table": Table, "Interrupts": Interrupts}
    return made


@pytest.mark.parametrize(
    "cell, message",
    [
        ("lab.train(WrongBias(), steps=1)", "bias must return numbers of shape"),
        ("lab.loss_by_context(lab.train(Table(), steps=1), [256])", "= (256, width); got shape (128, 64)"),
        ("lab.recall(lab.train(Table(), steps=1, task='copy'), [256])", "; got shape (128, 64)"),
    ],
)
def test_in_a_notebook_the_message_stands_alone(shell, cell, message, capsys):
    result = shell.run_cell(cell)
    assert isinstance(result.error_in_exec, ValueError)
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert said.startswith("ValueError: ") and message in said


def test_a_stop_ends_the_cell_and_no_second_training_begins(shell, capsys):
    result = shell.run_cell(
        "one, two = Interrupts(), Interrupts()\nfirst = lab.train(one, steps=15)\nsecond = lab.train(two, steps=15)"
    )
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert shell.user_ns["one"].calls == 60 and shell.user_ns["two"].calls == 0
    assert "first" not in shell.user_ns and "second" not in shell.user_ns


class Explodes(lab.Encoding):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def embed(self, length):
        self.calls += 1
        return torch.full((length, 64), 1.0 if self.calls < 8 else math.nan)


def test_a_loss_that_becomes_nan_stops_the_training_with_a_message():
    with pytest.raises(FloatingPointError, match="the loss is nan at step"):
        lab.train(Explodes(), steps=20)


class Interrupts(Near):
    calls = 0

    def bias(self, q, k, layer):
        self.calls += 1
        if self.calls == 60:
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C or the stop button do
        return super().bias(q, k, layer)


def test_an_interrupt_stops_the_training_at_once():
    encoding = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        lab.train(encoding, steps=15)
    assert encoding.calls == 60


def test_train_always_begins_with_fresh_weights():
    model = lab.train("none", steps=1)
    with pytest.raises(TypeError, match="an encoding has at least one of the methods"):
        lab.train(model)
    assert lab.train("none", steps=1).losses == model.losses
    assert model.record["recipe"]["steps"] == 1 and model.record["seed"] == 1 and not model.training


# ------------------------------------------------------------------ changes at inference


def model_of(name):
    return training.RECIPES["text"].untrained(name, "text", 1)


@pytest.mark.parametrize("change", [*changes.FREQUENCIES, "clamped", "log_n", "log_n_all"])
def test_changes_without_a_factor_do_nothing_at_the_trained_length(change):
    model = model_of("rope")
    tokens = torch.randint(256, (1, 128), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        plain = model(tokens)
        other = model(tokens, encoding=changes.changed(model, change, 128))
    if change in ("pi", "ntk", "dynamic_ntk", "clamped", "log_n", "log_n_all"):
        assert torch.equal(plain, other)
    assert torch.allclose(plain, other, atol=1e-5)


def test_frequencies_of_each_change_are_those_of_its_paper():
    model, theta = model_of("rope"), [100 ** (-2 * i / 16) for i in range(8)]
    at = lambda change: changes.changed(model, change, 512).frequencies(512)  # noqa: E731
    assert at("pi") == pytest.approx([t / 4 for t in theta])
    ntk = [(100 * 4 ** (16 / 14)) ** (-2 * i / 16) for i in range(8)]
    assert at("ntk") == pytest.approx(ntk)
    assert at("dynamic_ntk") == pytest.approx(ntk)
    assert at(lab.Change("ntk", 8)) == pytest.approx([(100 * 8 ** (16 / 14)) ** (-2 * i / 16) for i in range(8)])
    parts = at("ntk_by_parts")
    assert parts[0] == pytest.approx(1) and parts[-1] == pytest.approx(theta[-1] / 4)
    assert model.encoding.frequencies(512) == pytest.approx(theta)  # the model itself is as before


def test_yarn_and_log_n_sharpen_the_scores():
    model = model_of("rope")
    q = k = torch.ones(1, 4, 256, 16)
    by_parts = changes.changed(model, "ntk_by_parts", 256).rotate(q, k)
    yarn = changes.changed(model, "yarn", 256).rotate(q, k)
    for plain, sharp in zip(by_parts, yarn):
        assert torch.allclose(sharp, plain * (0.1 * math.log(2) + 1))
    log_q, log_k = changes.changed(model, "log_n", 256).rotate(q, k)
    plain_q, plain_k = model.encoding.rotate(q, k)
    for position in (0, 127, 200, 255):
        factor = max(1.0, math.log(position + 1) / math.log(128))
        assert torch.allclose(log_q[:, :, position], plain_q[:, :, position] * factor)
    assert torch.equal(log_k, plain_k)


def test_learned_rows_are_added_in_four_ways_or_stretched():
    model = model_of("learned")
    table = model.encoding.table.detach()
    with pytest.raises(IndexError, match="rows for positions 0 to 127; position 128 has none"):
        model.encoding.embed(129)
    rows = {how: changes.changed(model, how, 256).embed(256).detach() for how in changes.ROWS}
    for how in ("random", "zero", "repeat", "wrap"):
        assert torch.equal(rows[how][:128], table)
    assert rows["zero"][128:].abs().max() == 0
    assert torch.equal(rows["repeat"][200], table[127])
    assert torch.equal(rows["wrap"][128 + 5], table[5])
    assert rows["random"][128:].std().item() == pytest.approx(table.std().item(), rel=0.1)
    stretched = rows["interpolate"]
    assert torch.allclose(stretched[0], table[0]) and torch.allclose(stretched[255], table[127])
    where = 100 * 127 / 255
    low = int(where)
    assert torch.allclose(stretched[100], table[low] + (where - low) * (table[low + 1] - table[low]), atol=1e-6)


def naive_weights(score, n):
    """Causal softmax weights (n, n) of score(i, j)."""
    rows = []
    for i in range(n):
        row = [math.exp(score(i, j)) for j in range(i + 1)]
        rows.append([value / sum(row) for value in row] + [0.0] * (n - i - 1))
    return torch.tensor(rows)


@pytest.mark.parametrize("pairs", [None, (0, 3)])
def test_held_pairs_turn_as_far_as_at_their_distance_and_no_farther(pairs):
    encoding = encodings.make("rope", base=100, **SHAPE)
    held = changes.Held(encoding, 3, pairs)
    q, k = torch.randn(2, 1, 2, 9, 8, generator=torch.Generator().manual_seed(3))
    weights = Attention(16, 2, causal=True).weights(*held.rotate_in(q, k, 0), held, 0)[0, 1]

    def score(i, j):
        total = 0.0
        for pair in range(4):
            limit = 3 if pairs is None or pair in pairs else 99
            a, b = (complex(*x[0, 1, at, 2 * pair : 2 * pair + 2].tolist()) for x, at in ((q, i), (k, j)))
            total += (a * b.conjugate() * cmath.exp(1j * min(i - j, limit) * 100 ** (-2 * pair / 8))).real
        return total / math.sqrt(8)

    assert torch.allclose(weights, naive_weights(score, 9), atol=1e-5)


def test_clamped_distances_end_at_half_the_trained_length_or_where_the_factor_says():
    model = model_of("rope")
    assert changes.changed(model, "clamped", 129).at == 64
    assert changes.changed(model, lab.Change("clamped", 4), 64).at == 32
    assert changes.changed(model, "clamped", 128) is model.encoding
    with pytest.raises(ValueError, match="only rotates"):
        changes.changed(model_of("xpos"), "clamped", 256)


def test_a_layer_without_positions_stays_without_them_when_distances_are_clamped():
    model = model_of("rope_nope")
    clamped, (q, k) = changes.changed(model, "clamped", 256), torch.randn(2, 1, 4, 256, 16)
    assert clamped.bias(q, k, 3) is None and clamped.bias(q, k, 2) is not None
    assert torch.equal(clamped.rotate_in(q, k, 3)[0], q) and not torch.equal(clamped.rotate_in(q, k, 2)[0], q)


def test_scaled_frequencies_leave_pairs_at_rest():
    for change in ("pi", "ntk", "yarn"):
        encoding = changes.changed(model_of("p_rope"), change, 512)
        frequencies = getattr(encoding, "inner", encoding).frequencies(512)
        assert (frequencies[:4] > 0).all() and (frequencies[4:] == 0).all()


@pytest.mark.parametrize("name", ["alibi", "transformer_xl", "fire"])
def test_log_n_multiplies_the_whole_score_or_the_product_alone(name):
    model = SMALL["text"].untrained(name, "text", 1)
    with torch.no_grad():
        for parameter in model.encoding.parameters():
            parameter.add_(0.3)
    q, k = torch.randn(2, 1, 2, 40, 8, generator=torch.Generator().manual_seed(3))
    factors = torch.tensor([max(1.0, math.log(i + 1) / math.log(20)) for i in range(40)])[:, None]
    attention = Attention(16, 2, causal=True)
    with torch.no_grad():
        plain = q * 8**-0.5 @ k.transpose(-1, -2) + model.encoding.bias(q, k, 0)
        hidden = lab.distances(q, k) < 0
        expected = (plain * factors).masked_fill(hidden, -math.inf).softmax(-1)
        for change, same in (("log_n_all", True), ("log_n", False)):
            encoding = changes.changed(model, change, 40)
            weights = attention.weights(*encoding.rotate_in(q, k, 0), encoding, 0)
            assert torch.allclose(weights, expected, atol=1e-5) == same


def test_an_encoding_may_stand_in_for_a_change():
    encoding = encodings.make("alibi", heads=4)
    assert changes.changed(model_of("rope"), encoding, 256) is encoding


def test_changes_compose_and_refuse_what_does_not_fit():
    model = model_of("rope")
    q = torch.ones(1, 4, 256, 16)
    both = changes.changed(model, "ntk+log_n", 256).rotate(q, q)[0]
    ntk = changes.changed(model, "ntk", 256).rotate(q, q)[0]
    assert torch.allclose(both[:, :, 255], ntk[:, :, 255] * math.log(256) / math.log(128))
    listed = changes.changed(model, ["ntk", lab.Change("log_n")], 256).rotate(q, q)[0]
    assert torch.equal(both, listed)
    with pytest.raises(ValueError, match="needs an encoding that rotates"):
        changes.changed(model_of("alibi"), "yarn", 256)
    with pytest.raises(ValueError, match="adds rows to a learned table"):
        changes.changed(model, "wrap", 256)
    with pytest.raises(ValueError, match="change must be one of pi"):
        changes.changed(model, "magic", 256)
    with pytest.raises(ValueError, match="factor must be at least 1"):
        lab.Change("pi", 0.5)
