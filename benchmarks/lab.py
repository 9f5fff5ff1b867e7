"""What the lab's functions cost at the largest settings of the chapters, for every encoding, in one run.

    python benchmarks/lab.py              seconds of each function; the ratio is to the model without encoding
    python benchmarks/lab.py --training   also what training takes, reckoned from 40 steps of each

Models are loaded beforehand; peak memory is that of the whole process, Python and torch included.
"""

import argparse
import contextlib
import io
import resource
import time

import torch

from posviz import lab
from posviz.lab import checkpoint
from posviz.lab.results import DISTANCES, LENGTHS

STEPS = 40
FUNCTIONS = {
    "loss_by_context": lambda model: lab.loss_by_context(model, LENGTHS),
    "loss_by_position": lambda model: lab.loss_by_position(model, 1024),
    "entropy_by_length": lambda model: lab.entropy_by_length(model, LENGTHS),
    "attention": lambda model: lab.attention(model, "x" * 256),
}


def seconds(function, *given):
    """Wall time of one call, its progress bar thrown away."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        function(*given)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--training", action="store_true")
    options = parser.parse_args()
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}; lengths {LENGTHS}")
    print("seconds (ratio to no encoding)")
    measurements()
    print(f"recall, RoPE, 8 distances: {seconds(lab.recall, lab.load('rope', 'copy'), DISTANCES):.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    if options.training:
        trainings()


def measurements():
    """A line for each encoding: what each function takes."""
    print(f"{'':16}" + "".join(f"{name:>20}" for name in FUNCTIONS))
    plain = {}
    for name in ["none", *(name for name in lab.ENCODINGS if name != "none")]:
        model, cells = lab.load(name), []
        for function, call in FUNCTIONS.items():
            try:
                took = seconds(call, model)
            except IndexError:  # the learned table
                cells.append("no row 128")
                continue
            plain.setdefault(function, took)
            cells.append(f"{took:.2f} ({took / plain[function]:4.1f})")
        print(f"{name:16}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def trainings():
    """A line for each encoding: what 400 steps and both whole trainings take."""
    print(f"{'':16}{'400 steps, text':>20}{'whole training, min':>22}")
    total = 0.0
    for name in lab.ENCODINGS:
        step = {
            task: seconds(lambda name=name, task=task: lab.train(name, STEPS, task=task)) / STEPS
            for task in lab.RECIPES
        }
        whole = sum(step[task] * checkpoint.read_record(name, task)["recipe"]["steps"] for task in step) / 60
        total += whole
        print(f"{name:16}{400 * step['text']:18.0f} s{whole:22.1f}", flush=True)
    print(f"all encodings, both tasks: {total:.0f} min")


if __name__ == "__main__":
    main()
