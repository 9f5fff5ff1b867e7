"""The recorded numbers of the lab by name. Standard library and NumPy only, so that a chapter needs no torch for them.

    from posviz.lab.results import loss, recall
    loss["rope", "yarn", 1]        # nats a byte at LENGTHS, seed 1, with YaRN
    recall["alibi", None, 2]       # share copied right at DISTANCES, seed 2, as trained

A key is (encoding, change, seed); the change is None for a model as trained. `experiments/evaluate.py` wrote the file.
The function `results` has the name of this module: `posviz.lab.results()` is the function.
"""

import json
from pathlib import Path

import numpy as np

_HERE = Path(__file__).parent


def results():
    """Everything that was measured on the language models, as the file has it, a new dict at each call.

    "rows": one dict a model, change and seed: encoding, change (None: as trained), seed, loss (nats a byte at each of
    "lengths"), ratio (loss over the loss at the trained length, for the longer ones), standard_error (of the ratio),
    entropy (nats, at each length). "by_position": for each model as trained the loss at each 16 positions of texts of
    1,024 bytes (learned: 128, where its table ends). "recall": share copied right at each of "distances" by the models
    of the copy task. "training": the record of every training, both seeds.
    """
    return _read("results.json")


def smollm2():
    """What `experiments/smollm2.py` measured on SmolLM2-135M, with its provenance, as a dict."""
    return _read("smollm2.json")


def minilm():
    """The learned position table of all-MiniLM-L6-v2, float32 (512, 384); its source and licence are in NOTICE."""
    with np.load(_HERE / "minilm.npz", allow_pickle=False) as file:
        return file["position_embeddings"].astype(np.float32)


def _read(name):
    return json.loads((_HERE / name).read_text("utf-8"))


def _by_key(part, value):
    """{(encoding, change, seed): read-only array} of one part of the results."""
    found = {}
    for row in _RESULTS[part]:
        found[row["encoding"], row.get("change"), row["seed"]] = array = np.array(row[value])
        array.flags.writeable = False
    return found


_RESULTS = results()
LENGTHS = tuple(_RESULTS["lengths"])  # bytes of context: 1, 2, 4 and 8 times the trained length
DISTANCES = tuple(_RESULTS["distances"])  # tokens, of the copy task; its training had 8 to 64
POSITIONS = 16  # whose losses are averaged into one number of `by_position`

NAMES = {  # encoding: as the chapters write it
    "none": "no encoding",
    "learned": "learned table",
    "sinusoidal": "sinusoidal",
    "transformer_xl": "Transformer-XL",
    "t5": "T5",
    "deberta": "DeBERTa",
    "rope": "RoPE",
    "xpos": "xPos",
    "alibi": "ALiBi",
    "kerple_log": "KERPLE log",
    "kerple_power": "KERPLE power",
    "sandwich": "Sandwich",
}

METHODS = {  # a display name: (encoding, change) of what chapter 7 compares, in both tasks
    "no encoding": ("none", None),
    "learned table, wrapped": ("learned", "wrap"),
    "learned table, stretched": ("learned", "interpolate"),
    "sinusoidal": ("sinusoidal", None),
    "Transformer-XL": ("transformer_xl", None),
    "T5": ("t5", None),
    "DeBERTa": ("deberta", None),
    "RoPE": ("rope", None),
    "RoPE + PI": ("rope", "pi"),
    "RoPE + NTK-aware": ("rope", "ntk"),
    "RoPE + YaRN": ("rope", "yarn"),
    "xPos": ("xpos", None),
    "ALiBi": ("alibi", None),
    "KERPLE log": ("kerple_log", None),
    "KERPLE power": ("kerple_power", None),
    "Sandwich": ("sandwich", None),
}

loss = _by_key("rows", "loss")  # nats a byte at each of LENGTHS
ratio = _by_key("rows", "ratio")  # loss over the loss at the first length, at each of the others
standard_error = _by_key("rows", "standard_error")  # of the ratio, over the evaluation texts
entropy = _by_key("rows", "entropy")  # nats, mean over layers and heads, at each of LENGTHS
recall = _by_key("recall", "accuracy")  # share copied right at each of DISTANCES
by_position = {name: row for (name, _, seed), row in _by_key("by_position", "loss").items() if seed == 1}
