"""Small language models, one per encoding, trained alike: what chapters 6 and 7 say about length is run on them.

    model = lab.load("alibi")
    lab.loss_by_context(model, [128, 256, 512, 1024])      # nats a byte, (lengths, texts)

`posviz.lab.results` holds the recorded numbers by name and needs no torch, as `lab.results()`, `lab.smollm2()`,
`lab.minilm()` and `lab.learned_table()` do not; everything else imports it on first use.
"""

import importlib

# At once, and not on first use: a function that has the name of its module must be set after the module was imported.
from posviz.lab.results import learned_table, minilm, questions, results, smollm2

_HOME = {
    "load": "checkpoint",
    "CheckpointError": "checkpoint",
    "loss_by_context": "measure",
    "loss_by_position": "measure",
    "attention": "measure",
    "entropy_by_length": "measure",
    "recall": "measure",
    "train": "training",
    "RECIPES": "training",
    "Change": "changes",
    "CHANGES": "changes",
    "Encoding": "model",
    "LanguageModel": "model",
    "distances": "model",
    "ENCODINGS": "encodings",
}

__all__ = ["learned_table", "minilm", "questions", "results", "smollm2", *_HOME]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'posviz.lab' has no attribute {name!r}")
    return getattr(importlib.import_module(f"posviz.lab.{_HOME[name]}"), name)


def __dir__():
    return __all__
