"""What the models read: source code of the standard library to learn from, a frozen text of our own to test on."""

import functools
import gzip
import hashlib
import platform
import sysconfig
from pathlib import Path

import numpy as np
import torch

from posviz.lab.results import LENGTHS

EVALUATION = Path(__file__).parent / "evaluation.txt.gz"  # compressed, so that a search of the code does not hit it
CROPS = 32  # evaluation texts
CONTEXT = LENGTHS[-1]  # longest context of an evaluation text, bytes
TAIL = 64  # the bytes that are scored, the same ones whatever the context

# Left out of the training text: tests, tables, editors, copies of other projects, and files made at install time.
_LEFT_OUT = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idle_test",
    "idlelib",
    "lib2to3",
    "turtledemo",
    "encodings",
    "pydoc_data",
    "ensurepip",
    "_vendor",
    "__pycache__",
}


@functools.cache
def training_text():
    """The standard library's own source code as bytes: on every machine, no download, about 7 MB.

    It differs a little between Python versions, so every record names the version and the SHA-256.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [
        (name, path)
        for path in root.rglob("*.py")
        for name in [path.relative_to(root).as_posix()]
        if not _LEFT_OUT & set(name.split("/")) and not name.startswith(("config-", "_sysconfigdata"))
    ]
    text = b"\n\n".join(path.read_bytes() for _, path in sorted(files))
    if len(text) < 1_000_000:
        raise FileNotFoundError(f"the training text is this Python's own library, but {root} holds no source code")
    return text


def describe_training_text():
    """Where the training text comes from, for the record of a checkpoint."""
    text = training_text()
    return {
        "source": "Python standard library, *.py",
        "python": platform.python_version(),
        "bytes": len(text),
        "sha256": hashlib.sha256(text).hexdigest(),
    }


class TextBatches:
    """Random crops of the training text. Batch number and seed fix the crops, whatever the encoding is."""

    vocabulary = 256

    def __init__(self, length, batch, seed):
        self.text = torch.frombuffer(bytearray(training_text()), dtype=torch.uint8)
        self.length, self.batch, self.seed = length, batch, seed

    def __call__(self, step):
        """Tokens int64 (batch, length + 1), and the weight of each prediction (all 1)."""
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        starts = torch.randint(len(self.text) - self.length, (self.batch,), generator=draw)
        return self.text[starts[:, None] + torch.arange(self.length + 1)].long(), None


class CopyBatches:
    """The copy task: random symbols, repeated after `period` steps. From the second round on each can be copied.

    Nothing but the symbol `period` tokens back helps, so the task separates "uses far context" from "is not hurt
    by it". Periods are 8 … length / 2.
    """

    vocabulary = 64

    def __init__(self, length, batch, seed):
        self.length, self.batch, self.seed = length, batch, seed

    def __call__(self, step):
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + step)
        period = torch.randint(8, self.length // 2 + 1, (self.batch, 1), generator=draw)
        tokens = copies(period, self.length + 1, draw)
        return tokens, (torch.arange(self.length) + 1 >= period).float()


def copies(period, length, draw):
    """Random symbols (batch, length) that repeat after `period` (batch, 1) tokens."""
    symbols = torch.randint(CopyBatches.vocabulary, (len(period), length), generator=draw)
    return symbols.gather(1, torch.arange(length) % period)


@functools.cache
def evaluation_bytes():
    """The frozen evaluation text: this project's own code and prose, never trained on."""
    return gzip.decompress(EVALUATION.read_bytes())


def crops(context=CONTEXT, tail=TAIL, number=CROPS):
    """Evaluation texts, int64 (number, context + 1), spread evenly over the frozen text.

    Every text ends at the same place whatever `context` is: only what stands before the last `tail` bytes grows.
    That makes the losses at two contexts a pair, and their ratio precise.
    """
    if not TAIL <= context <= CONTEXT:
        raise ValueError(f"the context must be between {TAIL} and {CONTEXT} bytes; got {context}")
    text = np.frombuffer(evaluation_bytes(), dtype=np.uint8)
    ends = np.linspace(CONTEXT + 1, len(text), number).astype(int)
    return torch.from_numpy(np.stack([text[end - context - 1 : end] for end in ends]).astype(np.int64))


TASKS = {"text": TextBatches, "copy": CopyBatches}
