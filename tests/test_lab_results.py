"""What the shipped models show, the measurements on them, and the recorded numbers."""

import dataclasses
import functools
import hashlib
import importlib
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import evaluate
from posviz import lab
from posviz.lab import changes, checkpoint, data, measure, progress, training

recorded = importlib.import_module("posviz.lab.results")  # `lab.results` is the function of that name
NAMES = list(lab.ENCODINGS)
FIRST_TWELVE = NAMES[:12]


@functools.cache
def model_of(name):
    return lab.load(name)


@functools.cache
def mean_loss(name, change, length):
    return lab.loss_by_context(model_of(name), [length], change).mean()


def ratio(name, times, change=None):
    first = "random" if name == "learned" else None
    return mean_loss(name, change, 128 * times) / mean_loss(name, first, 128)


# ------------------------------------------------------------------ what the models show


@pytest.mark.parametrize(
    "name, times, most",
    [("alibi", 8, 1.03), ("kerple_log", 8, 1.04), ("kerple_power", 8, 1.04), ("sandwich", 8, 1.05), ("xpos", 8, 1.12)],
)
def test_distance_penalties_stay_flat(name, times, most):
    assert 0.95 < ratio(name, times) <= most


def test_t5_rises_slowly():
    assert 1.10 <= ratio("t5", 8) <= 1.6


@pytest.mark.parametrize("how", ["random", "zero", "repeat", "wrap"])
def test_no_way_of_adding_rows_to_a_learned_table_works(how):
    assert ratio("learned", 2, how) >= 1.35


def test_a_stretched_learned_table_works_better():
    assert ratio("learned", 2, "interpolate") <= 1.12


def test_sinusoids_fail_at_twice_the_length():
    assert ratio("sinusoidal", 2) >= 1.25


def test_rope_fails_and_the_changes_help_in_their_order():
    assert ratio("rope", 2) >= 1.20 and ratio("rope", 4) >= 1.5
    assert ratio("rope", 2, "ntk") <= 1.12 and ratio("rope", 4, "ntk") <= 1.35
    assert ratio("rope", 4, "yarn") <= 1.25 and ratio("rope", 4, "yarn") < ratio("rope", 4, "ntk")
    assert ratio("rope", 4, "pi") > 1.4  # without fine-tuning it hurts


def test_dynamic_scaling_costs_nothing_at_the_trained_length_and_a_fixed_factor_does():
    model = model_of("rope")
    plain = lab.loss_by_context(model, [128])
    assert np.array_equal(lab.loss_by_context(model, [128], "dynamic_ntk"), plain)
    assert np.array_equal(lab.loss_by_context(model, [128], "ntk"), plain)
    assert lab.loss_by_context(model, [128], lab.Change("ntk", 8)).mean() > 1.08 * plain.mean()


def test_log_n_helps_rope_with_ntk_where_entropy_is_the_problem():
    assert mean_loss("rope", "ntk+log_n", 1024) < mean_loss("rope", "ntk", 1024)
    entropy = {c: lab.entropy_by_length(model_of("rope"), [1024], c).mean() for c in ("ntk", "ntk+log_n")}
    assert entropy["ntk+log_n"] < entropy["ntk"] - 0.2


def test_no_encoding_is_worse_at_the_trained_length_and_breaks_slowly():
    assert mean_loss("none", None, 128) > mean_loss("alibi", None, 128) + 0.1
    assert ratio("none", 2) <= 1.12


# ------------------------------------------------------------------ the recorded numbers


def test_the_table_is_complete_for_every_seed():
    rows = lab.results()["rows"]
    measured = {(row["encoding"], row["seed"]) for row in rows}
    assert {(name, 1) for name in NAMES} | {(name, 2) for name in FIRST_TWELVE} <= measured
    for encoding, seed in measured:  # a seed that is there is there with every change
        changes = [row["change"] for row in rows if (row["encoding"], row["seed"]) == (encoding, seed)]
        assert changes == [evaluate.label(change) for change in evaluate.CHANGES.get(encoding, evaluate.OTHERS)]
    for row in rows:
        assert len(row["loss"]) == len(row["entropy"]) == 4 and len(row["ratio"]) == len(row["standard_error"]) == 3
        assert row["ratio"] == pytest.approx([loss / row["loss"][0] for loss in row["loss"][1:]], abs=2e-4)
        assert max(row["standard_error"]) < 0.1
    trainings = lab.results()["training"]
    assert {(t["encoding"], t["seed"]) for t in trainings if t["task"] == "text"} == measured
    assert recorded.SEEDS == tuple(range(1, max(seed for _, seed in measured) + 1))


@pytest.mark.parametrize("name, change", [("alibi", None), ("rope", None), ("rope", "yarn"), ("learned", "wrap")])
def test_recorded_numbers_are_those_of_the_shipped_models(name, change):
    loss = recorded.loss[name, change, 1]
    assert loss[1] == pytest.approx(mean_loss(name, change, 256), abs=0.01)
    assert loss[2] == pytest.approx(mean_loss(name, change, 512), abs=0.01)


def test_the_file_was_measured_at_the_lengths_and_distances_that_the_names_promise():
    file = lab.results()
    assert (file["lengths"], file["distances"]) == (list(recorded.LENGTHS), list(recorded.DISTANCES))
    assert lab.smollm2()["tokens_in_a_bin"] == recorded.BIN
    assert list(recorded.NAMES) == NAMES and training.RECIPES["text"].length == recorded.LENGTHS[0]


def test_every_number_in_the_file_has_its_key():
    file = lab.results()
    for row in file["rows"]:
        key = row["encoding"], row["change"], row["seed"]
        for name in ("loss", "ratio", "standard_error", "entropy"):
            assert getattr(recorded, name)[key].tolist() == row[name]
    for row in file["recall"]:
        assert recorded.recall[row["encoding"], row["change"], row["seed"]].tolist() == row["accuracy"]
    first = {row["encoding"]: row["loss"] for row in file["by_position"] if row["seed"] == 1}
    assert {name: loss.tolist() for name, loss in recorded.by_position.items()} == first
    assert len(recorded.loss) == len(file["rows"]) and len(recorded.recall) == len(file["recall"])
    for row in lab.questions()["rows"]:
        assert recorded.question[row["question"], row["name"], row["seed"]].tolist() == row["values"]
    assert len(recorded.question) == len(lab.questions()["rows"])
    for encoding, change in recorded.METHODS.values():
        least = (1, 2) if encoding in FIRST_TWELVE else (1,)
        assert all((encoding, change, seed) in part for seed in least for part in (recorded.loss, recorded.recall))


def test_the_real_model_has_a_row_a_text_and_a_number_for_each_512_tokens():
    assert {mode: loss.shape for mode, loss in recorded.smollm2_loss.items()} == (
        {"plain": (3, 32), "yarn": (3, 32), "ntk": (3, 32), "pi": (3, 32), "cut": (3, 16)}
    )
    runs = {(run["text"], run["mode"]): run["loss_by_bin"] for run in lab.smollm2()["runs"]}
    texts = list(dict.fromkeys(text for text, _ in runs))
    for (text, mode), loss in runs.items():
        assert recorded.smollm2_loss[mode][texts.index(text)].tolist() == loss


def test_a_hard_window_hurts_the_real_model_and_its_first_token_alone_mends_most_of_it():
    """Six parts of texts, 512 keys in every mode but the first; nats a token, paired (experiments/smollm2.py)."""
    losses = recorded.smollm2_window_loss
    assert {mode: loss.shape for mode, loss in losses.items()} == dict.fromkeys(losses, (6,)) and len(losses) == 4
    all_keys, window, one, four = losses.values()

    def more(loss):
        return (loss - all_keys).mean(), (loss - all_keys).std(ddof=1) / 6**0.5

    assert more(window) == pytest.approx((0.692, 0.034), abs=1e-3)
    assert more(one) == pytest.approx((0.102, 0.010), abs=1e-3)
    assert abs(four - one).max() < 0.01  # StreamingLLM keeps four: this model needs one
    assert 0.23 < recorded.smollm2_first_weight.min() < recorded.smollm2_first_weight.max() < 0.29


@pytest.mark.parametrize(
    "table, key, message",
    [
        ("loss", ("rope", "yarn", 9), "nothing is recorded for .* in place of 9 there are [1, 2"),
        ("loss", ("alibi", "pi", 1), "in place of 'pi' there are [None, 'log_n', 'log_n_all']"),
        ("recall", ("rotary", None, 1), "in place of 'rotary' there are ['none', 'learned',"),
        ("loss", "rope", "'rope' is not a key; one is ('none', None, 1)"),
        ("loss", ("rope", None, 1, 128), "is not a key"),
        ("by_position", "rotary", "in place of 'rotary' there are ['none',"),
    ],
)
def test_a_key_that_was_not_measured_is_told_what_was(table, key, message):
    with pytest.raises(KeyError) as error:
        getattr(recorded, table)[key]
    assert all(part in error.value.args[0] for part in message.split(" .* "))
    assert key not in getattr(recorded, table) and getattr(recorded, table).get(key) is None


def test_mean_and_error_over_the_seeds():
    values = np.stack([recorded.loss["rope", "yarn", seed] for seed in recorded.seeds(recorded.loss, "rope", "yarn")])
    mean, error = recorded.mean_and_error(recorded.loss, "rope", "yarn")
    assert np.allclose(mean, values.mean(0)) and len(values) >= 2
    by_hand = np.sqrt(((values - mean) ** 2).sum(0) / (len(values) - 1) / len(values))
    assert np.allclose(error, by_hand) and (error > 0).all()
    assert np.array_equal(recorded.of_seeds(recorded.loss, "rope", "yarn"), values)


def test_a_difference_is_paired_seed_by_seed_and_one_seed_has_no_error():
    part = {("a", None, 1): np.array([1.0]), ("a", None, 2): np.array([3.0]), ("a", None, 3): np.array([9.0])}
    part |= {("a", "x", 1): np.array([1.5]), ("a", "x", 2): np.array([3.7]), ("b", None, 1): np.array([2.0])}
    mean, error = recorded.difference(part, ("a", "x"), ("a", None))
    assert mean == pytest.approx([0.6]) and error == pytest.approx([0.1])
    mean, error = recorded.mean_and_error(part, "b", None)
    assert mean == [2] and np.isnan(error).all()
    with pytest.raises(KeyError, match="in place of 'pi' there are"):
        recorded.mean_and_error(recorded.loss, "alibi", "pi")


# ------------------------------------------------------------------ the questions of the chapters


def answers(question, name):
    """Values of every seed, (seeds, …)."""
    return recorded.of_seeds(recorded.question, question, name)


def test_new_angles_are_most_of_the_harm_of_a_longer_text():
    plain, held = answers("held", "as trained"), answers("held", "all held at 64")
    new = recorded.of_seeds(recorded.question, "held", "slow two held at 127")
    rise = (plain - plain[:, :1])[:, 1:]  # at 256 and 512 bytes
    assert (rise > 0.5).all()
    assert ((new - new[:, :1])[:, 1:] < 0.35 * rise).all()  # no angle is new, and all distances are
    assert ((held - held[:, :1])[:, 1:] < 0.1 * rise).all()
    assert (answers("held", "fast six held at 64")[:, 1] > new[:, 1] + 0.2).all()  # but not any pairs


@pytest.mark.parametrize("name, encoding", [("as trained", None), ("all held at 64", "clamped")])
def test_the_held_pairs_are_those_of_the_recorded_changes(name, encoding):
    for seed in recorded.seeds(recorded.loss, "rope", encoding):
        found = recorded.question["held", name, seed]
        assert found.tolist()[1:] == recorded.loss["rope", encoding, seed][1:3].tolist()  # beyond the trained length


def test_the_records_name_no_folder_of_one_machine():
    for path in (recorded.RESULTS, recorded.QUESTIONS, *recorded.CHECKPOINTS.glob("*.json")):
        assert "/tmp/" not in path.read_text("utf-8") and "/home/" not in path.read_text("utf-8")


def test_the_answers_are_those_of_the_shipped_model():
    model = model_of("rope")
    held = changes.Held(model.encoding, 127, (6, 7))
    again = lab.loss_by_context(model, [256], held).mean()
    assert recorded.question["held", "slow two held at 127", 1][1] == pytest.approx(again, abs=0.01)


def test_t5_rises_with_a_well_filled_last_bucket_too():
    for name in ("t5, max distance 32",):
        losses = answers("t5_32", name)
        assert (losses[:, -1] / losses[:, 0] > 1.15).all()


def test_transformer_xl_and_deberta_stay_flat_by_their_position_terms():
    far = {name: answers("far_weight", f"{name}, weight on far keys")[:, -1] for name in ("none", "t5", "rope")}
    assert all((shares > 0.6).all() for shares in far.values())
    for name in ("transformer_xl", "deberta"):
        assert (answers("far_weight", f"{name}, weight on far keys")[:, -1] < 0.4).all()
        plain = answers("parts", name)
        assert (plain[:, -1] / plain[:, 0] < 1.06).all()
    lost = answers("parts", "deberta without both for far keys")
    assert (lost[:, -1] / lost[:, 0] > 1.15).all()


def test_the_first_bytes_of_a_window_are_the_dear_ones_and_sliding_windows_leave_them_out():
    for name in ("rope", "alibi"):
        assert (answers("windows", name)[:, 0] > answers("windows", name)[:, 1] + 0.015).all()
        by_place = answers("windows", f"{name}, by place in the window")
        assert (by_place[:, 0] > by_place[:, 1:].max(axis=1) + 0.1).all()


def test_a_tenth_more_training_on_longer_texts_mends_the_length():
    before, after = (answers("longer", f"base 500, {when}") for when in ("before", "80 steps more"))
    assert (after[:, 2] < before[:, 2] - 0.2).all() and (after[:, 2] < after[:, 0] + 0.1).all()


def test_log_n_on_the_whole_score_and_on_the_product_are_two_measurements():
    for name in ("t5", "kerple_log", "sandwich"):
        product, whole = (recorded.of_seeds(recorded.loss, name, change)[:, 2] for change in ("log_n", "log_n_all"))
        assert (whole < product - 0.03).all()  # the lower loss at 512 bytes
    assert lab.loss_by_context(model_of("t5"), [512], "log_n_all").mean() == pytest.approx(2.709, abs=0.01)


def test_clamped_distances_beat_yarn_in_both_tasks():
    for seed in recorded.seeds(recorded.loss, "rope", "clamped"):
        assert (recorded.loss["rope", "clamped", seed][1:] < recorded.loss["rope", "yarn", seed][1:] - 0.03).all()
    for seed in recorded.seeds(recorded.recall, "rope", "clamped"):
        assert recorded.recall["rope", "clamped", seed][-1] > recorded.recall["rope", "yarn", seed][-1] + 0.3


def test_loss_and_entropy_read_once_are_those_read_twice():
    loss, entropy = measure.loss_and_entropy(model_of("alibi"), [128, 256], "log_n")
    assert np.array_equal(loss, lab.loss_by_context(model_of("alibi"), [128, 256], "log_n"))
    assert np.allclose(entropy, lab.entropy_by_length(model_of("alibi"), [128, 256], "log_n"), atol=1e-6)


def test_recorded_numbers_cannot_be_overwritten():
    with pytest.raises(ValueError, match="read-only"):
        recorded.loss["rope", None, 1][0] = 0


def test_the_table_of_the_small_model_is_read_without_its_model():
    assert np.array_equal(lab.learned_table(), model_of("learned").encoding.table)
    assert lab.learned_table().dtype == np.float32


def test_results_name_the_text_they_were_measured_on():
    text = lab.results()["evaluation_text"]
    assert text["sha256"] == hashlib.sha256(data.evaluation_bytes()).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_every_checkpoint_carries_a_complete_record(name):
    record = model_of(name).record
    assert record["seed"] == 1 and record["final_loss"] < 2.5 and record["training_text"]["sha256"]
    assert record["command"] == f"python experiments/train.py --encoding {name} --task text --seed 1"
    recipe = training.RECIPES["text"]
    assert record["recipe"] == dataclasses.asdict(recipe) | {"betas": list(recipe.betas)}


def test_training_again_from_the_recorded_command_follows_the_recorded_losses():
    record, recipe = model_of("alibi").record, training.RECIPES["text"]
    if record["training_text"] != data.describe_training_text():
        pytest.skip("another Python version: the training text is another one")
    run = training.Run(recipe.untrained("alibi", "text", 1), "text", recipe, 1)
    for _ in range(40):
        run.advance()
    assert [np.mean(run.losses[:20]), np.mean(run.losses[20:])] == pytest.approx(record["losses"][:2], abs=0.02)


def test_recorded_numbers_need_no_torch():
    script = (
        "import sys, posviz.lab as lab; lab.results(); lab.minilm(); lab.learned_table();"
        "assert not {'torch', 'matplotlib', 'ipywidgets'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_minilm_table_is_the_one_described():
    table = lab.minilm()
    assert table.shape == (512, 384)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosine = [np.diagonal(unit @ unit.T, distance).mean() for distance in (1, 8, 128)]
    assert cosine == pytest.approx([0.85, 0.29, 0.08], abs=0.01)


# ------------------------------------------------------------------ the texts


def test_the_evaluation_text_is_frozen_ascii_and_long_enough():
    text = data.evaluation_bytes()
    assert hashlib.sha256(text).hexdigest() == "18db7ddb147804bea522548e111d1288733bc996852c56eda62b33eeac65ce18"
    assert len(text) >= 64_000 and text.isascii()


def test_a_search_of_the_code_does_not_hit_the_evaluation_text():
    assert b"def " in data.evaluation_bytes() and b"def " not in data.EVALUATION.read_bytes()


def test_the_evaluation_text_is_not_in_the_training_text():
    training_text = data.training_text()
    for crop in data.crops(256)[:, -128:]:
        assert bytes(crop.tolist()) not in training_text


def test_only_the_context_of_an_evaluation_text_grows():
    short, long = data.crops(128), data.crops(1024)
    assert short.shape == (32, 129) and long.shape == (32, 1025)
    assert torch.equal(short, long[:, -129:])
    assert len({tuple(row) for row in long.tolist()}) == 32
    with pytest.raises(ValueError, match="between 64 and 1024"):
        data.crops(2048)


def test_the_training_text_is_described_by_its_hash_and_holds_no_tests():
    described = data.describe_training_text()
    assert described["sha256"] == hashlib.sha256(data.training_text()).hexdigest()
    assert described["bytes"] > 5_000_000
    assert b"class TestProgram" not in data.training_text().replace(b"class TestProgram(object)", b"")


# ------------------------------------------------------------------ measurements


def test_loss_by_position_and_by_context_agree_on_the_last_bytes():
    model = model_of("alibi")
    by_position = lab.loss_by_position(model, 200)
    assert by_position.shape == (32, 200)
    assert np.allclose(by_position[:, -64:].mean(axis=1), lab.loss_by_context(model, [200])[0], atol=1e-5)


def test_loss_is_the_mean_negative_log_probability():
    model = model_of("rope")
    tokens = data.crops(64)[3:4]
    with torch.no_grad():
        p = model(tokens[:, :-1])[0].double().softmax(-1)
    expected = -np.mean([p[i, tokens[0, i + 1]].log().item() for i in range(64)])
    assert lab.loss_by_context(model, [64])[0, 3] == pytest.approx(expected, abs=1e-5)


def test_attention_gives_causal_rows_that_sum_to_one():
    weights = lab.attention(model_of("rope"), "import numpy as np\n" * 12, "yarn")
    assert weights.shape == (4, 4, 228, 228) and weights.dtype == np.float32
    assert np.allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert np.triu(weights, 1).max() == 0
    assert lab.attention(model_of("alibi")).shape == (4, 4, 128, 128)
    with pytest.raises(ValueError, match="1 to 1024 tokens; got 0"):
        lab.attention(model_of("alibi"), "")
    with pytest.raises(ValueError, match="reads tokens 0 to 255; got 0 to 300"):
        lab.attention(model_of("alibi"), [0, 300])


def test_entropy_is_that_of_the_attention_weights():
    model = model_of("alibi")
    tokens = data.crops(192)[::4]
    expected = []
    for row in tokens:
        w = lab.attention(model, row[:-1])[:, :, -64:].astype(float)
        expected.append(-(w * np.log(np.where(w > 0, w, 1))).sum(-1).mean(-1))
    entropy = lab.entropy_by_length(model, [192])
    assert entropy.shape == (1, 4, 4)
    assert np.allclose(entropy[0], np.mean(expected, axis=0), atol=1e-3)


def test_entropy_grows_with_the_text_where_nothing_holds_it():
    none, alibi = (lab.entropy_by_length(model_of(name), [128, 1024]).mean(axis=(1, 2)) for name in ("none", "alibi"))
    assert none[1] - none[0] > 1 and none[1] - none[0] > alibi[1] - alibi[0] + 0.5
    assert none[1] < np.log(1024)


def test_a_learned_table_asked_too_much_says_what_to_do():
    with pytest.raises(IndexError, match="position 128 has none. A change says what to use instead"):
        lab.loss_by_context(model_of("learned"), [256])


@pytest.mark.parametrize("bad", [63, 1025, 128.5, "128", True])
def test_lengths_that_cannot_be_measured_are_named(bad):
    with pytest.raises((ValueError, TypeError), match="length|context"):
        lab.loss_by_context(model_of("alibi"), [bad])


def test_measuring_changes_nothing():
    model = model_of("rope")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first = lab.loss_by_context(model, [256])
    lab.loss_by_context(model, [256], "yarn+log_n")
    assert np.array_equal(lab.loss_by_context(model, [256]), first)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_the_largest_measurement_stays_under_600_megabytes():
    # VmHWM and not ru_maxrss: that one starts at the peak of the process which started this one.
    script = (
        "import re, posviz.lab as lab; m = lab.load('transformer_xl');"
        "lab.loss_by_context(m, [1024]); lab.entropy_by_length(m, [1024]);"
        "print(int(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]) / 1024)"
    )
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert float(out.stdout) < 600


# ------------------------------------------------------------------ the progress bar


class Handle:
    def __init__(self):
        self.frames = []

    def update(self, frame, raw):
        self.frames.append(frame)


def test_the_bar_in_a_notebook_leaves_nothing_behind(monkeypatch):
    handle, first = Handle(), []

    def display(frame, raw, display_id):
        first.append(frame)
        return handle

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    with progress.Progress("counting <things>", 2, quiet=0) as bar:
        bar.update(1)
        bar.update(2)
    assert first == [{}] and handle.frames[-1] == {}
    assert "counting &lt;things&gt;: 2 of 2" in handle.frames[-2]["text/html"]


def test_a_training_in_a_notebook_ends_with_its_loss_curve(monkeypatch):
    handle = Handle()
    monkeypatch.setattr("IPython.display.display", lambda *a, **k: handle)
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    lab.train("none", steps=2)
    assert handle.frames[-1].keys() == {"image/png"}
    assert handle.frames[-1]["image/png"].startswith(b"\x89PNG")


def test_the_bar_in_a_terminal_is_wiped(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.Progress("counting", 4, quiet=0) as bar:
        bar.update(4, "loss 1.0")
    err = capsys.readouterr().err
    assert "████████████████████ counting: 4 of 4, loss 1.0, 0 s left" in err
    assert err.endswith("\r\033[K")


def test_short_measurements_are_silent(capsys):
    lab.recall(model_of("alibi"), [40])
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------ far recall


@functools.cache
def recall_of(name, change=None):
    return dict(zip((16, 48, 256), lab.recall(lab.load(name, "copy"), [16, 48, 256], change)))


def test_flat_is_not_the_same_as_using_far_context():
    alibi, rope, learned = recall_of("alibi"), recall_of("rope"), recall_of("learned", "wrap")
    assert rope[16] > 0.9 and rope[48] > 0.9 and rope[256] < 0.2  # learned well, and lost beyond 64
    assert alibi[48] > 0.7 and alibi[256] > 0.4  # ALiBi still copies from four times the longest trained distance
    assert learned[48] > 0.7 and learned[256] < 0.3


def test_a_copy_model_reads_symbols_only():
    with pytest.raises(ValueError, match="reads tokens 0 to 63"):
        lab.loss_by_context(lab.load("alibi", "copy"), [64])
    with pytest.raises(ValueError, match="distance must be at most 512"):
        lab.recall(lab.load("alibi", "copy"), [513])


def test_the_environment_may_be_read_only(tmp_path):
    """Loading and measuring write nothing: a course in a shared folder."""
    script = "import posviz.lab as lab; lab.recall(lab.load('alibi', 'copy'), [16]); lab.results()"
    before = sorted(os.listdir(checkpoint.CHECKPOINTS))
    subprocess.run([sys.executable, "-B", "-c", script], check=True, cwd=tmp_path)
    assert sorted(os.listdir(checkpoint.CHECKPOINTS)) == before and not os.listdir(tmp_path)
