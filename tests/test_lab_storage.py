"""Checkpoints and the command line: what happens when files are damaged, folders full, and trainings interrupted."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys

import pytest
import safetensors.torch
import torch

from posviz.lab import __main__ as command
from posviz.lab import data, storage, training

TINY = dataclasses.replace(training.RECIPES["text"], width=16, heads=2, layers=2, length=20, batch=4, steps=6)


@pytest.fixture
def tiny(monkeypatch):
    """A recipe of 6 small steps instead of the real one."""
    monkeypatch.setitem(training.RECIPES, "text", TINY)


def run(*arguments):
    return command.main([str(a) for a in arguments])


def trained(folder, encoding="rope", *more):
    return run("train", "--encoding", encoding, "--folder", folder, *more)


def test_train_writes_a_half_precision_checkpoint_and_a_complete_record(tiny, tmp_path, capsys):
    assert trained(tmp_path) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rope.json", "rope.safetensors"]
    record = json.loads((tmp_path / "rope.json").read_text())
    assert record["recipe"] | {"betas": (0.9, 0.95)} == dataclasses.asdict(TINY)
    assert record["seed"] == 1 and record["torch"] == torch.__version__ and len(record["losses"]) == 1
    assert record["command"] == f"python -m posviz.lab train --encoding rope --task text --seed 1 --folder {tmp_path}"
    assert record["training_text"] == data.describe_training_text()
    weights = safetensors.torch.load_file(tmp_path / "rope.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.float16}
    model = storage.load("rope", folder=tmp_path)
    assert model.record == record and not model.training
    assert "rope: loss" in capsys.readouterr().out


def test_a_finished_checkpoint_is_kept_unless_forced(tiny, tmp_path, capsys):
    trained(tmp_path)
    before = (tmp_path / "rope.safetensors").read_bytes()
    assert trained(tmp_path, "rope", "--seed", 2) == 1
    assert capsys.readouterr().err == "rope is trained already; --force trains it again\n"
    assert (tmp_path / "rope.safetensors").read_bytes() == before
    assert trained(tmp_path, "rope", "--seed", 2, "--force") == 0
    assert (tmp_path / "rope.safetensors").read_bytes() != before
    assert storage.load("rope", folder=tmp_path).record["seed"] == 2


def break_file(how, folder):
    weights, record = folder / "rope.safetensors", folder / "rope.json"
    if how == "damaged":
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
    elif how == "short":
        weights.write_bytes(weights.read_bytes()[:100])
    elif how == "missing":
        weights.unlink()
    elif how == "no record":
        record.unlink()
    elif how == "record not JSON":
        record.write_text("{")
    elif how == "other JSON":
        record.write_text("[1, 2]")
    elif how == "another record":
        record.write_text(json.dumps(json.loads(record.read_text()) | {"encoding": "alibi"}))
    elif how == "foreign weights":
        foreign = safetensors.torch.save({"x": torch.zeros(3)})
        weights.write_bytes(foreign)
        new = json.loads(record.read_text()) | {"sha256": storage.hashlib.sha256(foreign).hexdigest()}
        record.write_text(json.dumps(new))
    elif how == "pickle":
        torch.save({"x": torch.zeros(3)}, weights)
        new = {"sha256": storage.hashlib.sha256(weights.read_bytes()).hexdigest()}
        record.write_text(json.dumps(json.loads(record.read_text()) | new))


@pytest.mark.parametrize(
    "how, message",
    [
        ("damaged", "rope.safetensors is damaged or from another training: its SHA-256 is not the one in rope.json"),
        ("short", "rope.safetensors is damaged"),
        ("missing", "rope.safetensors is missing"),
        ("no record", "rope.json is missing"),
        ("record not JSON", "rope.json is damaged: it is not JSON"),
        ("other JSON", "rope.json is not the record of a checkpoint"),
        ("another record", "rope.json is the record of another model"),
        ("foreign weights", "rope.safetensors does not hold the weights of a rope model"),
        ("pickle", "rope.safetensors does not hold the weights of a rope model"),
    ],
)
def test_a_file_that_is_not_right_gets_one_line(how, message, tiny, tmp_path, capsys):
    trained(tmp_path)
    break_file(how, tmp_path)
    with pytest.raises(storage.CheckpointError) as error:
        storage.load("rope", folder=tmp_path)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert trained(tmp_path) == 0  # a broken pair is not a finished one: no --force needed
    assert storage.load("rope", folder=tmp_path)


def test_an_unknown_encoding_is_named(capsys):
    with pytest.raises(ValueError, match="encoding must be one of none, learned"):
        storage.load("rotary")
    assert run("train", "--encoding", "rotary") == 2
    assert "unknown encoding 'rotary'" in capsys.readouterr().err
    assert run("train") == 2


def interrupt_at(step, monkeypatch):
    advance = training.Run.advance

    def one(self):
        advance(self)
        if self.step == step:
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C does

    monkeypatch.setattr(training.Run, "advance", one)
    return lambda: monkeypatch.setattr(training.Run, "advance", advance)


def test_an_interrupt_loses_nothing_and_the_same_command_goes_on(tiny, tmp_path, monkeypatch, capsys):
    trained(tmp_path / "whole")
    undo = interrupt_at(4, monkeypatch)
    assert trained(tmp_path / "part") == 130
    assert "Interrupted. Nothing is lost" in capsys.readouterr().err
    _, notes = storage.load_state(tmp_path / "part" / "rope.partial")
    assert notes["step"] == 4
    undo()
    assert trained(tmp_path / "part") == 0
    whole, part = (storage.read_record("rope", folder=tmp_path / name) for name in ("whole", "part"))
    assert whole["sha256"] == part["sha256"] and whole["losses"] == part["losses"]
    assert not (tmp_path / "part" / "rope.partial").exists()


def test_another_seed_does_not_go_on_from_someone_elses_state(tiny, tmp_path, monkeypatch):
    undo = interrupt_at(4, monkeypatch)
    trained(tmp_path)
    undo()
    trained(tmp_path, "rope", "--seed", 2)
    trained(tmp_path / "fresh", "rope", "--seed", 2)
    assert (
        storage.read_record("rope", folder=tmp_path)["sha256"]
        == (storage.read_record("rope", folder=tmp_path / "fresh")["sha256"])
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_a_real_ctrl_c_leaves_a_state_to_go_on_from(tmp_path):
    arguments = [sys.executable, "-m", "posviz.lab", "train", "--encoding", "none", "--folder", str(tmp_path)]
    script = (
        "import sys, posviz.lab.training as t; a = t.Run.advance\n"
        "def advance(self):\n"
        "    a(self)\n"
        "    if self.step == 3: print('three', flush=True)\n"
        "t.Run.advance = advance\n"
        "from posviz.lab.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments[3:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout.readline() == "three\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "Interrupted. Nothing is lost: the same command goes on from here.\n"
    assert storage.load_state(tmp_path / "none.partial")[1]["step"] >= 3


def test_a_full_disk_gets_one_line_and_keeps_what_was_there(tiny, tmp_path, monkeypatch, capsys):
    trained(tmp_path)
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert trained(tmp_path, "rope", "--force", "--seed", 3) == 1
    err = capsys.readouterr().err
    assert err == f"Stopped: {os.strerror(errno.ENOSPC)}. What was saved before is untouched.\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_disk_that_fills_up_while_training_keeps_the_last_state(tiny, tmp_path, monkeypatch, capsys):
    undo = interrupt_at(4, monkeypatch)
    trained(tmp_path)
    undo()
    before = (tmp_path / "rope.partial").read_bytes()
    write = storage.write

    def full(path, content):
        if path.suffix == ".safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    monkeypatch.setattr(storage, "write", full)
    assert trained(tmp_path) == 1
    monkeypatch.setattr(storage, "write", write)
    assert (tmp_path / "rope.partial").read_bytes() == before
    assert trained(tmp_path) == 0


@pytest.mark.skipif(os.name == "nt", reason="resource limits are a POSIX feature")
def test_a_write_that_the_system_stops_half_way_leaves_the_old_file(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    script = (
        "import resource, sys; from pathlib import Path; from posviz.lab import storage\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: storage.write(Path(sys.argv[1]), bytes(5000))\n"
        "except OSError as error: print(error.strerror)"
    )
    out = subprocess.run([sys.executable, "-c", script, tmp_path / "file"], capture_output=True, text=True, check=True)
    assert out.stdout == os.strerror(errno.EFBIG) + "\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


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


def test_all_leaves_finished_models_alone_and_trains_the_rest(tiny, tmp_path, capsys):
    trained(tmp_path, "alibi")
    before = (tmp_path / "alibi.json").stat().st_mtime_ns
    assert run("train", "--all", "--folder", tmp_path) == 0
    assert (tmp_path / "alibi.json").stat().st_mtime_ns == before
    assert len(list(tmp_path.glob("*.safetensors"))) == 12
    assert capsys.readouterr().err == "alibi is trained already; --force trains it again\n"


def test_shipped_checkpoints_are_small_and_complete():
    files = list(storage.CHECKPOINTS.iterdir())
    assert sum(file.stat().st_size for file in files) < 8e6
    assert {file.suffix for file in files} == {".safetensors", ".json"}


def test_loading_never_unpickles(monkeypatch):
    import pickle

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *a, **k: pytest.fail("unpickled something"))
    storage.load("alibi")
