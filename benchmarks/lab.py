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
from posviz.lab import storage

LENGTHS = [128, 256, 512, 1024]
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
    print(
        f"{torch.get_num_threads()} threads, torch {torch.__version__}; lengths {LENGTHS}; seconds (ratio to no encoding)"
    )
    print(f"{'':16}" + "".join(f"{name:>20}" for name in FUNCTIONS))
    plain = {}
    for name in ["none", *(name for name in lab.ENCODINGS if name != "none")]:
        model, cells = lab.load(name), []
        for function, call in FUNCTIONS.items():
            try:
                took = seconds(call, model)
            except IndexError:  # the learned table
                cells.append(f"{'no row 128':>20}")
                continue
            plain.setdefault(function, took)
            cells.append(f"{took:12.2f} ({took / plain[function]:4.1f})")
        print(f"{name:16}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
    print(
        f"recall, RoPE, 8 distances: {seconds(lab.recall, lab.load('rope', 'copy'), [16, 32, 48, 64, 96, 128, 192, 256]):.2f} s"
    )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    if options.training:
        print(f"{'':16}{'400 steps, text':>20}{'whole training, min':>22}")
        total = 0.0
        for name in lab.ENCODINGS:
            each = {
                task: seconds(lambda name=name, task=task: lab.train(name, STEPS, task=task)) / STEPS
                for task in ("text", "copy")
            }
            whole = sum(each[task] * storage.read_record(name, task)["recipe"]["steps"] for task in each) / 60
            total += whole
            print(f"{name:16}{400 * each['text']:18.0f} s{whole:22.1f}", flush=True)
        print(f"all encodings, both tasks: {total:.0f} min")


if __name__ == "__main__":
    main()
