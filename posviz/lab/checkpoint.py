"""Checkpoints on disk: a safetensors file and a JSON record that names its SHA-256. Nothing is ever unpickled."""

import hashlib
import json
import os
import uuid
from pathlib import Path

import safetensors.torch

from posviz.lab import encodings
from posviz.lab.model import as_shipped
from posviz.lab.results import CHECKPOINTS
from posviz.lab.training import Recipe

_KEYS = {"encoding", "task", "seed", "recipe", "sha256", "final_loss", "command"}


class CheckpointError(ValueError):
    """A checkpoint that is missing, damaged or not ours; the message says which in one line."""


def write(path, data):
    """Write bytes so that `path` holds either the old content or all of the new one, whatever goes wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}.writing")  # another process may write here too
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def file_name(encoding, task):
    return encoding if task == "text" else f"{encoding}-{task}"


def save(model, folder, command):
    """Write the weights as fp16 and their record. The record comes last: without it the pair does not load."""
    weights = {name: value.detach().half().contiguous() for name, value in model.state_dict().items()}
    data = safetensors.torch.save(weights)
    record = {**model.record, "command": command, "sha256": hashlib.sha256(data).hexdigest()}
    path = Path(folder) / file_name(record["encoding"], record["task"])
    write(path.with_suffix(".safetensors"), data)
    write(path.with_suffix(".json"), (json.dumps(record, indent=1) + "\n").encode())


@as_shipped
def load(encoding, task="text", folder=None):
    """A trained model by the name of its encoding, on the CPU, ready for the measurements.

    task: "text" for the language models, "copy" for the models of the far-recall task.
    Its record (recipe, seed, loss, command …) is model.record.
    Raises ValueError for an unknown name, CheckpointError for a file that is missing, damaged or not ours.
    """
    if encoding not in encodings.ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(encodings.ENCODINGS)}; got {encoding!r}")
    name = file_name(encoding, task)
    folder = Path(folder or CHECKPOINTS)
    record = read_record(encoding, task, folder)
    path = folder / f"{name}.safetensors"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{path.name} is missing from {folder}; {_again(encoding, task)}") from None
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != record["sha256"]:
        raise CheckpointError(
            f"{path.name} is damaged or from another training: its SHA-256 is not the one in {name}.json; "
            f"{_again(encoding, task)}"
        )
    try:
        model = Recipe(**record["recipe"]).untrained(encoding, task, record["seed"])
        model.load_state_dict({key: value.float() for key, value in safetensors.torch.load(data).items()})
    except (safetensors.SafetensorError, KeyError, TypeError, RuntimeError):
        raise CheckpointError(f"{path.name} does not hold the weights of a {encoding} model of this lab") from None
    model.record = record
    return model.eval().requires_grad_(False)


def read_record(encoding, task="text", folder=None):
    """The record of a checkpoint as a dict, without loading its weights."""
    path = Path(folder or CHECKPOINTS) / f"{file_name(encoding, task)}.json"
    try:
        record = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path.name} is missing from {path.parent}; {_again(encoding, task)}") from None
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from None
    except ValueError:
        raise CheckpointError(f"{path.name} is damaged: it is not JSON; {_again(encoding, task)}") from None
    if not isinstance(record, dict) or not _KEYS <= set(record) or not isinstance(record["recipe"], dict):
        raise CheckpointError(f"{path.name} is not the record of a checkpoint; {_again(encoding, task)}")
    if (record["encoding"], record["task"]) != (encoding, task):
        raise CheckpointError(f"{path.name} is the record of another model ({record['encoding']}, {record['task']})")
    return record


def _again(encoding, task):
    return f"to train it again: python experiments/train.py --encoding {encoding} --task {task} --force"
