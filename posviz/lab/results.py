"""The recorded numbers of the lab by name. Standard library and NumPy only, so that a chapter needs no torch for them.

    from posviz.lab.results import loss, recall
    loss["rope", "yarn", 1]        # nats a byte at LENGTHS, seed 1, with YaRN
    recall["alibi", None, 2]       # share copied right at DISTANCES, seed 2, as trained

    mean_and_error(loss, "rope", "yarn")          # over the seeds that were measured
    question["held", "all held at 64", 1]         # experiments/questions.py says what its values are

A key is (encoding, change, seed); the change is None for a model as trained. `experiments/evaluate.py` wrote the file.
The function `results` has the name of this module: `posviz.lab.results()` is the function.
"""

import json
from pathlib import Path

import numpy as np
import safetensors.numpy

CHECKPOINTS = Path(__file__).parent / "checkpoints"
RESULTS = Path(__file__).parent / "results.json"
SMOLLM2 = Path(__file__).parent / "smollm2.json"
QUESTIONS = Path(__file__).parent / "questions.json"
MINILM = Path(__file__).parent / "minilm.npz"

TRAINED = 128  # bytes, or symbols of the copy task, in a training text
LENGTHS = tuple(times * TRAINED for times in (1, 2, 4, 8))  # bytes of context that were measured
DISTANCES = (16, 32, 48, 64, 96, 128, 192, 256)  # tokens, of the copy task; its training had 8 to 64
POSITIONS = 16  # whose losses are averaged into one number of `by_position`
BIN = 512  # tokens whose losses are averaged into one number of `smollm2_loss`

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
    "rope_nope": "RoPE + NoPE",
    "p_rope": "p-RoPE",
    "fire": "FIRE",
}
CHANGE_NAMES = {  # change: as the chapters write it
    None: "none",
    "log_n": "log-n",
    "log_n_all": "log-n on the whole score",
    "pi": "PI",
    "ntk": "NTK-aware",
    "ntk × 8": "NTK-aware, s = 8 always",
    "ntk_by_parts": "NTK by parts",
    "yarn": "YaRN",
    "clamped": "clamped distances",
    "ntk+log_n": "NTK-aware + log-n",
    "yarn+log_n": "YaRN + log-n",
    "random": "new rows: random",
    "zero": "new rows: zero",
    "repeat": "new rows: the last one",
    "wrap": "new rows: from the start again",
    "interpolate": "all rows: stretched",
}
_CHANGED = {
    "learned": {", wrapped": "wrap", ", stretched": "interpolate"},
    "rope": {"": None, " + PI": "pi", " + NTK-aware": "ntk", " + YaRN": "yarn"},
}
METHODS = {  # row of a table of methods, measured on both tasks: (encoding, change)
    name + words: (encoding, change)
    for encoding, name in NAMES.items()
    for words, change in _CHANGED.get(encoding, {"": None}).items()
}


def results():
    """Everything that was measured on the language models, as the file has it, a new dict at each call.

    "rows": one dict a model, change and seed: encoding, change (None: as trained), seed, loss (nats a byte at each of
    "lengths"), ratio (loss over the loss at the trained length, for the longer ones), standard_error (of the ratio),
    entropy (nats, at each length). "by_position": for each model as trained the loss at each 16 positions of texts of
    1,024 bytes (learned: 128, where its table ends). "recall": share copied right at each of "distances" by the models
    of the copy task. "training": the record of every training, both seeds.
    """
    return json.loads(RESULTS.read_text("utf-8"))


def questions():
    """What `experiments/questions.py` measured, as a dict: "rows", one a question, name and seed, with their values."""
    return json.loads(QUESTIONS.read_text("utf-8"))


def smollm2():
    """What `experiments/smollm2.py` measured on SmolLM2-135M, with its provenance, as a dict."""
    return json.loads(SMOLLM2.read_text("utf-8"))


def minilm():
    """The learned position table of all-MiniLM-L6-v2, float32 (512, 384); its source and licence are in NOTICE."""
    with np.load(MINILM, allow_pickle=False) as file:
        return file["position_embeddings"].astype(np.float32)


def learned_table():
    """The learned position table of the lab's own small model, float32 (128, 64): one row a position."""
    return safetensors.numpy.load_file(CHECKPOINTS / "learned.safetensors")["encoding.table"].astype(np.float32)


class _Recorded(dict):
    """Read-only arrays by key; a key that was not measured gets a sentence that names what was."""

    def __init__(self, values):
        super().__init__({key: np.array(value) for key, value in values})
        for array in self.values():
            array.flags.writeable = False

    def __missing__(self, key):
        asked = key if isinstance(key, tuple) else (key,)
        known = [other if isinstance(other, tuple) else (other,) for other in self]
        for depth, part in enumerate(asked[: len(known[0])]):
            there = dict.fromkeys(other[depth] for other in known)
            if part not in there:
                raise KeyError(f"nothing is recorded for {key!r}: in place of {part!r} there are {list(there)}")
            known = [other for other in known if other[depth] == part]
        raise KeyError(f"{key!r} is not a key; one is {next(iter(self))!r}")


def _by_key(part, value):
    """{(encoding, change, seed): array} of one part of the results."""
    return _Recorded(((row["encoding"], row["change"], row["seed"]), row[value]) for row in _RESULTS[part])


_RESULTS, _SMOLLM2 = results(), smollm2()
_RUNS, _WINDOWS = _SMOLLM2["runs"], _SMOLLM2["windows"]["runs"]
SEEDS = tuple(sorted({row["seed"] for row in _RESULTS["rows"]}))  # of the trainings; the shipped models: the first

loss = _by_key("rows", "loss")  # nats a byte at each of LENGTHS
ratio = _by_key("rows", "ratio")  # loss over the loss at the first length, at each of the others
standard_error = _by_key("rows", "standard_error")  # of the ratio, over the evaluation texts
entropy = _by_key("rows", "entropy")  # nats, mean over layers and heads, at each of LENGTHS
recall = _by_key("recall", "accuracy")  # share copied right at each of DISTANCES
question = (
    _Recorded(  # (question, name, seed): its values; what they are says the question's function in the experiment
        ((row["question"], row["name"], row["seed"]), row["values"]) for row in questions()["rows"]
    )
)
by_position = _Recorded(  # encoding: nats a byte for each 16 positions, of the shipped model as trained
    (row["encoding"], row["loss"]) for row in _RESULTS["by_position"] if row["seed"] == SEEDS[0]
)
smollm2_loss = _Recorded(  # plain, pi, ntk, yarn: nats a token, (texts, bins); cut: the same, of the last bins alone
    (mode, [run["loss_by_bin"] for run in _RUNS if run["mode"] == mode])
    for mode in dict.fromkeys(run["mode"] for run in _RUNS)
)
smollm2_window_loss = _Recorded(  # mode: nats a token, one number a text, of its last 2,048 tokens
    (mode, [run["loss"] for run in _WINDOWS if run["mode"] == mode])
    for mode in dict.fromkeys(run["mode"] for run in _WINDOWS)
)
smollm2_first_weight = np.array([run["weight_on_first_token"] for run in _WINDOWS if run["mode"] == "all keys"])


def seeds(part, *key):
    """The seeds that were measured for a key without its last place: seeds(loss, "rope", "yarn")."""
    found = sorted(seed for *other, seed in part if tuple(other) == key)
    return found or [part[(*key, SEEDS[0])]]  # which says what there is instead


def of_seeds(part, *key):
    """The values of every seed, (seeds, …): of_seeds(loss, "rope", "yarn")."""
    return np.stack([part[(*key, seed)] for seed in seeds(part, *key)])


def mean_and_error(part, *key):
    """Mean over the seeds, and its standard error: mean_and_error(loss, "rope", "yarn"). One seed has no error: NaN."""
    return _mean_and_error(of_seeds(part, *key))


def difference(part, key, other):
    """Mean of part[key] − part[other], paired seed by seed, and its standard error over the seeds that both have.

    difference(loss, ("rope", "yarn"), ("rope", None)) is below 0 where YaRN helps.
    """
    both = [seed for seed in seeds(part, *key) if seed in seeds(part, *other)]
    return _mean_and_error(np.stack([part[(*key, seed)] - part[(*other, seed)] for seed in both]))


def _mean_and_error(values):
    number = len(values)
    error = values.std(axis=0, ddof=1) / number**0.5 if number > 1 else np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), error
