"""The recorded numbers of the lab. Standard library and NumPy only, so that a chapter can plot them without torch."""

import json
from pathlib import Path

_HERE = Path(__file__).parent


def results():
    """What `python -m posviz.lab evaluate --write` measured on the language models, as a dict.

    "rows": one dict a model, change and seed: encoding, change (None: as trained), seed, loss (nats a byte at each of
    "lengths"), ratio (loss over the loss at the trained length, for the longer ones), standard_error (of the ratio),
    entropy (nats, at each length). "by_position": for each model as trained the loss at each 16 positions of texts of
    1,024 bytes (learned: 128, where its table ends). "recall": share copied right at each of
    "distances" by the models of the copy task.
    "training": the record of every training, both seeds.
    """
    return _read("results.json")


def smollm2():
    """What `python -m posviz.lab smollm2` measured on SmolLM2-135M, with its provenance, as a dict."""
    return _read("smollm2.json")


def minilm():
    """The learned position table of all-MiniLM-L6-v2, float32 (512, 384); its source and licence are in NOTICE."""
    import numpy as np

    with np.load(_HERE / "minilm.npz", allow_pickle=False) as file:
        return file["position_embeddings"].astype(np.float32)


def find(encoding, change=None, seed=1):
    """The one row of results() for this model and change."""
    for row in results()["rows"]:
        if (row["encoding"], row["change"], row["seed"]) == (encoding, change, seed):
            return row
    raise KeyError(f"no recorded measurement of {encoding!r} with change {change!r} and seed {seed}")


def _read(name):
    return json.loads((_HERE / name).read_text("utf-8"))
