"""The table: every model, as trained and changed, at one to eight times the trained length; text and results.json."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch

from posviz.lab import data, measure, storage
from posviz.lab.changes import ROWS, Change
from posviz.lab.encodings import ENCODINGS

LENGTHS = (128, 256, 512, 1024)  # 1, 2, 4 and 8 times the trained length
STRIDE = 16  # positions whose losses are averaged into one number of "by_position"
DISTANCES = (16, 32, 48, 64, 96, 128, 192, 256)  # of the copy task; the longest trained one is 64
RESULTS = Path(__file__).parent / "results.json"

_ROPE = ("pi", "ntk", "ntk_by_parts", "yarn", "log_n", "ntk+log_n", "yarn+log_n", Change("ntk", 8))
CHANGES = {"learned": ROWS, "rope": (None, *_ROPE), "xpos": (None, "log_n")}
OTHERS = (None, "log_n")
RECALL_CHANGES = {"learned": ROWS, "rope": (None, "pi", "ntk", "yarn", "yarn+log_n")}


def label(change):
    """How a change is written in the table and in results.json."""
    return change if change is None or isinstance(change, str) else f"{change.name} × {change.factor:g}"


def measure_rows(model, encoding, seed):
    """One dict for each change of a model."""
    rows = []
    for change in CHANGES.get(encoding, OTHERS):
        loss = measure.loss_by_context(model, LENGTHS, change)
        mean, (ratio, error) = loss.mean(axis=1), ratios(loss)
        entropy = measure.entropy_by_length(model, LENGTHS, change).mean(axis=(1, 2))
        rows.append(
            {
                "encoding": encoding,
                "change": label(change),
                "seed": seed,
                "loss": mean.round(4).tolist(),
                "ratio": ratio.round(4).tolist(),
                "standard_error": error.round(4).tolist(),
                "entropy": entropy.round(3).tolist(),
            }
        )
    return rows


def ratios(loss):
    """Mean loss at each longer length over the mean at the first, and the standard error of that over the texts.

    The texts are the same at every length, so the error is that of the paired difference loss_n − ratio · loss_1.
    """
    ratio = loss[1:].mean(axis=1) / loss[0].mean()
    spread = (loss[1:] - ratio[:, None] * loss[0]).std(axis=1, ddof=1)
    return ratio, spread / np.sqrt(loss.shape[1]) / loss[0].mean()


def position_row(model, encoding, seed):
    """Loss along texts of 1,024 bytes as trained, one number for 16 positions. A learned table ends at its last row."""
    length = model.length if encoding == "learned" else LENGTHS[-1]
    loss = measure.loss_by_position(model, length).mean(axis=0)
    return {"encoding": encoding, "seed": seed, "loss": loss.reshape(-1, STRIDE).mean(axis=1).round(4).tolist()}


def recall_rows(model, encoding, seed):
    """One dict for each change of a model of the copy task."""
    return [
        {
            "encoding": encoding,
            "change": label(change),
            "seed": seed,
            "accuracy": measure.recall(model, DISTANCES, change).round(4).tolist(),
        }
        for change in RECALL_CHANGES.get(encoding, (None,))
    ]


def evaluate(folders, write=False):
    """Measure the models of these folders (one a seed), print the table, and with `write` put it in results.json."""
    rows, by_position, recall, training = [], [], [], []
    for folder in folders:
        for encoding in ENCODINGS:
            for task in ("text", "copy"):
                try:
                    model = storage.load(encoding, task, folder)
                except storage.CheckpointError as error:
                    print(error, file=sys.stderr)
                    continue
                seed = model.record["seed"]
                training.append({key: value for key, value in model.record.items() if key != "losses"})
                if task == "copy":
                    recall += recall_rows(model, encoding, seed)
                else:
                    rows += measure_rows(model, encoding, seed)
                    by_position.append(position_row(model, encoding, seed))
                    for row in rows[-len(CHANGES.get(encoding, OTHERS)) :]:
                        print(line(row), flush=True)
    print()
    for row in recall:
        print(recall_line(row))
    if write:
        results = {
            "command": "python -m posviz.lab evaluate --write",
            "evaluation_text": {
                "bytes": len(data.evaluation_bytes()),
                "sha256": hashlib.sha256(data.evaluation_bytes()).hexdigest(),
                "texts": data.CROPS,
                "scored_bytes": data.TAIL,
            },
            "torch": torch.__version__,
            "lengths": list(LENGTHS),
            "distances": list(DISTANCES),
        }
        old = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
        parts = {"rows": rows, "by_position": by_position, "recall": recall, "training": training}
        for key, new in parts.items():
            results[key] = merged(old.get(key, []), new)
        storage.write(RESULTS, (json.dumps(results, indent=1) + "\n").encode())
        print(f"\nwritten to {RESULTS.name}")


def merged(old, new):
    """New rows, and the old ones of seeds or models that were not measured again; in the order of the table."""
    kind = lambda row: (row["encoding"], row["seed"], row.get("task"))  # noqa: E731
    fresh = {kind(row) for row in new}
    order = list(ENCODINGS)
    kept = [row for row in old if kind(row) not in fresh]
    return sorted(kept + new, key=lambda row: (row["seed"], order.index(row["encoding"])))


def line(row):
    name = row["encoding"] + (f" + {row['change']}" if row["change"] else "")
    ratio = "  ".join(f"{r:.3f} ±{e:.3f}" for r, e in zip(row["ratio"], row["standard_error"]))
    entropy = f"{row['entropy'][0]:.2f} → {row['entropy'][-1]:.2f}"
    return f"{name:26} seed {row['seed']}  loss {row['loss'][0]:.3f}  ratio {ratio}  entropy {entropy}"


def recall_line(row):
    name = row["encoding"] + (f" + {row['change']}" if row["change"] else "")
    accuracy = "  ".join(f"{d}: {a:.2f}" for d, a in zip(DISTANCES, row["accuracy"]))
    return f"{name:26} seed {row['seed']}  copied right at distance  {accuracy}"
