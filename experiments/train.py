"""Train the small language models and write their checkpoints, each with the record of what made it.

    python experiments/train.py                                        everything that is not trained yet
    python experiments/train.py --encoding rope --task text --seed 1   one model: about a minute on one core
    python experiments/train.py --seed 2 --folder build/seed2          a second training of every model

24 models, 12 encodings in both tasks, took 63 minutes on one core of a busy machine: all 30 are 79 at this rate, 40 on
two cores (--task text and --task copy side by side). A finished model is skipped; --force trains it again. Ctrl-C stops
at once and keeps what was finished.
"""

import argparse
import shlex
import sys
from pathlib import Path

from posviz import lab
from posviz.lab import checkpoint
from posviz.lab.results import CHECKPOINTS
from stopping import one_line


@one_line
def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoding", action="append", choices=lab.ENCODINGS, help="may be given several times")
    parser.add_argument("--task", action="append", choices=lab.RECIPES, help="text, copy; both without it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default=CHECKPOINTS, type=Path, help="where checkpoints go (default: the shipped)")
    parser.add_argument("--force", action="store_true", help="train a finished model again")
    options = parser.parse_args(arguments)
    for encoding in options.encoding or lab.ENCODINGS:
        for task in options.task or lab.RECIPES:
            if not options.force and finished(encoding, task, options.folder):
                print(f"{checkpoint.file_name(encoding, task)} is trained already; --force trains it again")
                continue
            model = train(encoding, task, options.seed, options.folder)
            print(f"{encoding}, {task}: loss {model.record['final_loss']:.3f}", flush=True)


def finished(encoding, task, folder):
    try:
        lab.load(encoding, task, folder)
    except lab.CheckpointError:  # missing or damaged
        return False
    return True


def train(encoding, task, seed, folder):
    """Train one model, as long as its recipe says, and write it."""
    command = f"python experiments/train.py --encoding {encoding} --task {task} --seed {seed}"
    if folder != CHECKPOINTS:
        command += f" --folder {shlex.quote(str(folder))}"
    trial = folder / "trial"
    checkpoint.write(trial, b"")  # a folder that cannot be written is found out now, and not after the training
    trial.unlink()
    model = lab.train(encoding, lab.RECIPES[task].steps, seed, task)
    checkpoint.save(model, folder, command)
    return model


if __name__ == "__main__":
    sys.exit(main())
