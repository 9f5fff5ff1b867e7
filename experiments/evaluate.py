"""The table: every model, as trained and changed, at one to eight times the trained length.

    python experiments/evaluate.py                                          measure the shipped models, print the table
    python experiments/evaluate.py --write                                  and put it into posviz/lab/results.json
    python experiments/evaluate.py --write --folder build/seed2             add the second training of every model

    python experiments/evaluate.py --write --change clamped                 add one change to the rows that are there

Rows that were not measured now stay in the file as they are. Four minutes a folder on one core.
"""

import argparse
import hashlib
import json
import sys

import numpy as np
import torch

from posviz import lab
from posviz.lab import checkpoint, data, measure
from posviz.lab.changes import ROWS, Change
from posviz.lab.results import CHECKPOINTS, DISTANCES, LENGTHS, POSITIONS, RESULTS
from stopping import one_line

_ROPE = ("pi", "ntk", "ntk_by_parts", "yarn", "clamped", "log_n", "ntk+log_n", "yarn+log_n", Change("ntk", 8))
CHANGES = {"learned": ROWS, "rope": (None, *_ROPE)}
CHANGES |= dict.fromkeys(("none", "sinusoidal", "xpos", "rope_nope", "p_rope"), (None, "log_n"))
OTHERS = (None, "log_n", "log_n_all")  # those that add a bias, which log-n may multiply as well or not
RECALL_CHANGES = {"learned": ROWS, "rope": (None, "pi", "ntk", "yarn", "clamped", "yarn+log_n")}


@one_line
def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", action="append", help="a folder of checkpoints; may be given several times")
    parser.add_argument("--encoding", action="append", choices=lab.ENCODINGS, help="may be given several times")
    parser.add_argument("--change", action="append", help="only this change; may be given several times")
    parser.add_argument("--write", action="store_true", help="also write results.json")
    options = parser.parse_args(arguments)
    parts = measured(options.folder or [CHECKPOINTS], options.encoding, options.change)
    if options.write:
        write(parts)


def measured(folders, encodings=None, changes=None):
    """Rows of results.json for the models of these folders (one a seed), printed one by one.

    encodings, changes: these alone, and with changes nothing of the model but these.
    """
    parts = {"rows": [], "by_position": [], "recall": [], "training": []}
    for model in models(folders, encodings):
        encoding, seed = model.record["encoding"], model.record["seed"]
        if not changes:
            parts["training"].append({key: value for key, value in model.record.items() if key != "losses"})
        if model.record["task"] == "copy":
            new = recall_rows(model, encoding, seed, changes)
            parts["recall"] += new
        else:
            new = loss_rows(model, encoding, seed, changes)
            parts["rows"] += new
            if not changes:
                parts["by_position"].append(position_row(model, encoding, seed))
        for row in new:
            print(line(row), flush=True)
    return parts


def models(folders, encodings=None):
    """Every model of these folders; one that cannot be loaded gets a line in place of its rows."""
    for folder in folders:
        for encoding in encodings or lab.ENCODINGS:
            for task in lab.RECIPES:
                try:
                    yield lab.load(encoding, task, folder)
                except lab.CheckpointError as error:
                    print(error, file=sys.stderr)


def wanted(changes, only):
    return [change for change in changes if not only or label(change) in only]


def loss_rows(model, encoding, seed, only=None):
    """One dict for each change of a model."""
    rows = []
    for change in wanted(CHANGES.get(encoding, OTHERS), only):
        loss, entropy = measure.loss_and_entropy(model, LENGTHS, change)  # (lengths, texts), (lengths, layers, heads)
        ratio, error = ratios(loss)
        entropy = entropy.mean(axis=(1, 2))
        rows.append(
            {
                "encoding": encoding,
                "change": label(change),
                "seed": seed,
                "loss": loss.mean(axis=1).round(4).tolist(),
                "ratio": ratio.round(4).tolist(),
                "standard_error": error.round(4).tolist(),
                "entropy": entropy.round(3).tolist(),
            }
        )
    return rows


def label(change):
    """How a change is written in the table and in results.json."""
    return change if change is None or isinstance(change, str) else f"{change.name} × {change.factor:g}"


def ratios(loss):
    """Mean loss at each longer length over the mean at the first, and the standard error of that over the texts.

    loss: (lengths, texts). The texts are the same at every length, so the error is that of the paired difference
    loss_n − ratio · loss_1.
    """
    ratio = loss[1:].mean(axis=1) / loss[0].mean()
    spread = (loss[1:] - ratio[:, None] * loss[0]).std(axis=1, ddof=1)
    return ratio, spread / np.sqrt(loss.shape[1]) / loss[0].mean()


def position_row(model, encoding, seed):
    """Loss along texts of 1,024 bytes as trained, one number for 16 positions. A learned table ends at its last row."""
    length = model.length if encoding == "learned" else LENGTHS[-1]
    loss = lab.loss_by_position(model, length).mean(axis=0)
    return {"encoding": encoding, "seed": seed, "loss": loss.reshape(-1, POSITIONS).mean(axis=1).round(4).tolist()}


def recall_rows(model, encoding, seed, only=None):
    """One dict for each change of a model of the copy task."""
    return [
        {
            "encoding": encoding,
            "change": label(change),
            "seed": seed,
            "accuracy": lab.recall(model, DISTANCES, change).round(4).tolist(),
        }
        for change in wanted(RECALL_CHANGES.get(encoding, (None,)), only)
    ]


def line(row):
    """A row of results.json as it is printed."""
    name = row["encoding"] + (f" + {row['change']}" if row["change"] else "")
    start = f"{name:26} seed {row['seed']}  "
    if "accuracy" in row:
        return start + "  ".join(["copied right at", *(f"{d}: {a:.2f}" for d, a in zip(DISTANCES, row["accuracy"]))])
    ratio = "  ".join(f"{r:.3f} ±{e:.3f}" for r, e in zip(row["ratio"], row["standard_error"]))
    entropy = f"{row['entropy'][0]:.2f} → {row['entropy'][-1]:.2f}"
    return f"{start}loss {row['loss'][0]:.3f}  ratio {ratio}  entropy {entropy}"


def write(parts):
    """Put the rows into results.json, with what they were measured on."""
    text = data.evaluation_bytes()
    results = {
        "command": "python experiments/evaluate.py --write",
        "evaluation_text": {
            "bytes": len(text),
            "sha256": hashlib.sha256(text).hexdigest(),
            "texts": data.CROPS,
            "scored_bytes": data.TAIL,
        },
        "torch": torch.__version__,
        "lengths": LENGTHS,
        "distances": DISTANCES,
    }
    old = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results |= {key: merged(old.get(key, []), new) for key, new in parts.items()}
    checkpoint.write(RESULTS, (json.dumps(results, indent=1) + "\n").encode())
    print(f"\nwritten to {RESULTS.name}")


def merged(old, new):
    """New rows, and the old ones that were not measured again; in the order of the table."""

    def kind(row):
        return row["encoding"], row["seed"], row.get("task"), row.get("change")

    fresh, order = {kind(row) for row in new}, list(lab.ENCODINGS)

    def place(row):
        of_model = [label(change) for change in CHANGES.get(row["encoding"], OTHERS)]
        change = row.get("change")
        return row["seed"], order.index(row["encoding"]), of_model.index(change) if change in of_model else 0

    return sorted([row for row in old if kind(row) not in fresh] + new, key=place)


if __name__ == "__main__":
    sys.exit(main())
