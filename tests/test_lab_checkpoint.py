"""Checkpoints on disk: what happens when files are damaged, folders full, and two programs write at once."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import safetensors.torch
import torch

from posviz import lab
from posviz.lab import checkpoint


def test_a_checkpoint_holds_half_precision_and_its_record(tmp_path):
    model = lab.load("rope")
    checkpoint.save(model, tmp_path, "a command")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rope.json", "rope.safetensors"]
    assert {value.dtype for value in safetensors.torch.load_file(tmp_path / "rope.safetensors").values()} == (
        {torch.float16}
    )
    again = lab.load("rope", folder=tmp_path)
    assert again.record == model.record | {"command": "a command"} and not again.training
    assert again.record == json.loads((tmp_path / "rope.json").read_text())


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
        new = json.loads(record.read_text()) | {"sha256": hashlib.sha256(foreign).hexdigest()}
        record.write_text(json.dumps(new))
    elif how == "pickle":
        torch.save({"x": torch.zeros(3)}, weights)
        new = {"sha256": hashlib.sha256(weights.read_bytes()).hexdigest()}
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
def test_a_file_that_is_not_right_gets_one_line(how, message, tmp_path):
    checkpoint.save(lab.load("rope"), tmp_path, "a command")
    break_file(how, tmp_path)
    with pytest.raises(lab.CheckpointError) as error:
        lab.load("rope", folder=tmp_path)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_an_unknown_encoding_is_named():
    with pytest.raises(ValueError, match="encoding must be one of none, learned"):
        lab.load("rotary")


def use_everything():
    rope, learned, copier = lab.load("rope"), lab.load("learned"), lab.load("alibi", "copy")
    assert {value.device.type for model in (rope, learned, copier) for value in model.state_dict().values()} == {"cpu"}
    return [
        lab.loss_by_context(learned, [256], "random"),
        lab.loss_by_position(rope, 64, "yarn+log_n"),
        lab.entropy_by_length(rope, [64]),
        lab.attention(rope, "some text"),
        lab.recall(copier, [16]),
        lab.train("t5", steps=1).losses,
    ]


def test_everything_is_on_the_cpu_wherever_a_reader_has_new_tensors_made():
    before = use_everything()
    torch.set_default_device("meta")  # stands for "cuda"
    try:
        after = use_everything()
    finally:
        torch.set_default_device(None)
    assert all(np.array_equal(one, other) for one, other in zip(before, after))


@pytest.mark.skipif(os.name == "nt", reason="resource limits are a POSIX feature")
def test_a_write_that_the_system_stops_half_way_leaves_the_old_file(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    script = (
        "import resource, sys; from pathlib import Path; from posviz.lab import checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: checkpoint.write(Path(sys.argv[1]), bytes(5000))\n"
        "except OSError as error: print(error.strerror)"
    )
    out = subprocess.run([sys.executable, "-c", script, tmp_path / "file"], capture_output=True, text=True, check=True)
    assert out.stdout == os.strerror(errno.EFBIG) + "\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_several_programs_may_write_one_file_at_once(tmp_path):
    contents, failed = [bytes([i]) * 50_000 for i in range(4)], []

    def write(content):
        try:
            for _ in range(20):
                checkpoint.write(tmp_path / "file", content)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and (tmp_path / "file").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_shipped_checkpoints_are_small_and_complete():
    files = list(checkpoint.CHECKPOINTS.iterdir())
    assert sum(file.stat().st_size for file in files) < 10e6
    assert {file.suffix for file in files} == {".safetensors", ".json"}


def test_loading_never_unpickles(monkeypatch):
    import pickle

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, lambda *a, **k: pytest.fail("unpickled something"))
    lab.load("alibi")
