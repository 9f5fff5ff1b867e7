"""Time, memory speed, most memory in use and error of the variants of `rope_variants`, and the machine they ran on."""

import ctypes
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from posviz import bench, rope_frequencies
from posviz.bench import FORWARD
from posviz.views.rope import HEAD_DIM, HEADS, KEY_HEADS
from rope_variants import Variant

COPY_NEW = Variant("copy into a new tensor", "", None, kind="copy")
COPY_OVER = Variant("copy over another tensor", "", None, kind="copy")


# ------------------------------------------------------------------ correctness


def error(variant, dtype, device="cpu", length=64):
    """The largest error against float64 at positions up to 10^6, as a share of the length of the pair.

    In the dtype's own rounding that is about 1e-7 for float32 and at most 2^-8 = 0.004 for bfloat16 rounded once.
    """
    positions = torch.cat([torch.arange(length // 2), torch.arange(bench.END - length // 2, bench.END)]) + 1
    q, k = bench.random_inputs(length, getattr(torch, dtype), device)[0]
    before = [x.double().cpu().numpy() for x in (q, k)]  # some variants write over them
    after = bench.rotation(variant.way, positions, q)(q, k)
    return max(
        _pair_error(x, torch.as_tensor(y).double().cpu().numpy(), positions.numpy(), variant.layout)
        for x, y in zip(before, after)
    )


def _pair_error(x, y, positions, layout):
    """`error` for one tensor, by complex numbers in float64: not the formula that any fast variant uses."""

    def pairs(x):
        half = x.shape[-1] // 2
        return x[..., 0::2] + 1j * x[..., 1::2] if layout == "interleaved" else x[..., :half] + 1j * x[..., half:]

    right = pairs(x) * np.exp(1j * positions[:, None] * rope_frequencies(x.shape[-1]))
    wrong = pairs(y) - right
    return float(np.max(np.maximum(np.abs(wrong.real), np.abs(wrong.imag)) / np.abs(right)))


def tolerance(variant, dtype):
    """What `error` may be: 1e-6 in float32; one rounding for our 16-bit results, four for those made in 16 bits."""
    if dtype == "float32":
        return 1e-6
    unit = torch.finfo(getattr(torch, dtype)).eps / 2
    return (1.01 if variant.ours else 4) * unit


# ------------------------------------------------------------------ time


def measure(device, dtype, lengths, chosen, passes=FORWARD, rounds=(5, 30), seconds=10.0, peak=True, say=None):
    """(rows, notes): one row a variant and length, medians of rounds in which all variants take turns.

    Inputs rotate, so that none is in a cache because of the round before; one round before the first is not counted.
    Every variant is checked against float64 first: ArithmeticError if its error is above `tolerance`.
    rounds: fewest and most; seconds: after that many a length stops, once it has the fewest. peak: whether to find
    the most memory in use, in a run of its own. say: called with a note before each length.
    If memory runs out, the lengths so far are kept (or shorter ones tried, if there are none) and a note says so.
    """
    chosen = [v for v in chosen if dtype in v.dtypes and (passes == FORWARD or v.backward)]
    errors = _checked(chosen, dtype, device)
    rows, notes, waiting = [], [], sorted(lengths)
    while waiting:
        length = waiting.pop(0)
        if say is not None:
            say(f"{length:,} positions, {dtype}, {passes}")
        try:
            rows += _measure_length(device, dtype, length, errors, passes, rounds, seconds, peak)
        except (MemoryError, RuntimeError) as problem:
            if not bench.memory_is_full(problem):
                raise
            shorter = length // 2
            waiting = [shorter] if not rows and shorter >= 16 else []
            notes.append(
                f"Memory ran out at {length:,} positions ({dtype}, {passes}); "
                + (f"{shorter:,} are tried instead." if waiting else "longer texts are left out.")
            )
    return rows, notes


def _checked(chosen, dtype, device):
    """{variant: its error}; ArithmeticError if one is too large."""
    errors = {variant: error(variant, dtype, device) for variant in chosen}
    for variant, found in errors.items():
        if not found <= tolerance(variant, dtype):
            raise ArithmeticError(
                f"{variant.name}, {variant.layout}, {dtype}: error {found:.1e} of the length of a pair"
            )
    return errors


def _measure_length(device, dtype, length, errors, passes, rounds, seconds, peak):
    kind = getattr(torch, dtype)
    size = bench.layer_bytes(length, kind)
    # Inputs, the copy's goal, what the textbook formula stores. A full CPU says nothing: the system ends the process.
    most = max(bench.CACHE, 2 * size) + (4 if passes == FORWARD else 6) * size
    if device == "cpu" and most > _free_memory():
        raise MemoryError
    inputs = bench.random_inputs(length, kind, device)
    runs = bench.runs({variant: variant.way for variant in errors}, inputs, passes)
    runs |= {COPY_NEW: bench.copying(inputs, passes), COPY_OVER: _copying_over(inputs, passes)}
    taken = bench.take_turns(runs, device, seconds, *rounds)
    took = {variant: statistics.median(values) for variant, values in taken.items()}
    rows = []
    for variant, run in runs.items():
        peers = [took[v] for v in errors if not v.ours and (v.kind, v.layout) == (variant.kind, variant.layout)]
        row = _row(variant, took, peers, 2 * size * (1 if passes == FORWARD else 2))
        row |= {"dtype": dtype, "passes": passes, "length": length, "rounds": len(taken[variant])}
        row |= {"peak_bytes": _peak(run, device) if peak else None, "error": errors.get(variant)}
        rows.append(row)
    return sorted(rows, key=lambda row: (row["layout"], not row["ours"], row["variant"]))


def _row(variant, took, peers, moved):
    """What the times say about one variant; `moved`: the bytes that must move, `peers`: times of its alternatives."""
    return {
        "variant": variant.name,
        "layout": variant.layout,
        "ours": variant.ours,
        "batch": 1,
        "heads": HEADS,
        "key_heads": KEY_HEADS,
        "dim": HEAD_DIM,
        "milliseconds": took[variant] * 1e3,
        "bytes": moved,
        "bytes_per_second": moved / took[variant],
        "share_of_copy_new": took[COPY_NEW] / took[variant],
        "share_of_copy_over": took[COPY_OVER] / took[variant],
        "ratio": min(peers) / took[variant] if peers else None,
    }


def _copying_over(inputs, passes):
    """`bench.copying` into tensors that are there already."""
    goal = [x.clone() for x in inputs[0]]
    times = 1 if passes == FORWARD else 2
    return bench.run(lambda q, k: [to.copy_(x) for to, x in zip(goal * times, [q, k] * times)], inputs, FORWARD)


# ------------------------------------------------------------------ memory


def _free_memory():
    """Bytes a new tensor may take on this system; infinite where it does not say."""
    try:
        return _kibibytes("/proc/meminfo", "MemAvailable") * 1024
    except (OSError, KeyError):
        return float("inf")


def _peak(run, device):
    """Bytes in use at the highest point of one run, above those before it; None where no counter can be set back."""
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run(0)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    try:  # Linux: writing 5 sets the high-water mark of this process back to what it uses now
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _kibibytes("/proc/self/status", "VmRSS")
        run(0)
        return max(0, _kibibytes("/proc/self/status", "VmHWM") - before) * 1024
    except (OSError, AttributeError, KeyError):
        return None


def _kibibytes(file, name):
    lines = Path(file).read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[name].split()[0])


# ------------------------------------------------------------------ the machine


def machine(device):
    """What a table must say about where it was measured: device, driver, versions, date."""
    drivers = {"cpu": lambda: "none", "mps": lambda: "of the system", "cuda": _gpu_driver}
    return {
        "device": bench.device_name(device),
        "driver": drivers[device](),
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


def _gpu_driver():
    if torch.version.hip:
        return torch.version.hip
    try:
        ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"
