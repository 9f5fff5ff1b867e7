"""What RoPE costs: the bytes that must move, the time they take, and how near each way of writing it comes to a copy.

rows, notes = measure("cpu", "float32", [1024, 4096], variants("cpu")[0])
rope_at_scale()                       # the optional cell of chapter 5
"""

import contextlib
import ctypes
import importlib.util
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from posviz import rope_frequencies, rope_torch, style
from posviz.lab.progress import Progress
from posviz.live import Choice, Steps, View
from posviz.rope import rotate_pairs, rotation_table

BATCH, HEADS, KEY_HEADS, DIM = 1, 32, 8, 128  # one layer of LLaMA-3-8B, one text
CACHED = 2**27  # inputs that rotate fill more than any cache of today
LAST = 10**6  # the positions measured are the ones just before this
RECORDED = Path(__file__).with_name("bench_recorded.json")
FORWARD, BACKWARD = "forward", "forward and backward"


@dataclass(frozen=True)
class Variant:
    """One way to rotate q and k: `prepare(cos, sin, dtype)` makes its table, `rotate(q, k, table)` uses it.

    q and k are (batch, heads, sequence, dim), in memory as a projection leaves them: the heads of a token together.
    `moves`: how often a number crosses the memory bus in a forward pass if nothing stays in a cache between operations.
    """

    name: str
    layout: str
    prepare: Callable
    rotate: Callable
    ours: bool = False
    kind: str = "torch"  # ratios are taken among variants of one kind and layout
    in_place: bool = False  # the result takes the place of q and k
    backward: bool = True
    dtypes: tuple = ("float32", "bfloat16", "float16")
    moves: int = None


# ------------------------------------------------------------------ the ways to write it


def variants(device, libraries=True):
    """(the variants that run on this device, one sentence for each that does not)."""
    device = torch.device(device)
    found, notes = [_eager(layout) for layout in ("half", "interleaved")], []
    if device.type == "cpu":
        found += [_eager(layout, in_place=True) for layout in ("half", "interleaved")]
    if device.type == "cuda" and importlib.util.find_spec("triton"):
        found += [_fused(layout, in_place) for layout in ("half", "interleaved") for in_place in (False, True)]
    elif device.type == "cuda":
        notes.append("The fused kernel is left out: the package triton is not installed.")
    found += [TEXTBOOK, COMPLEX]
    if libraries:
        compiled, note = _compiled(device)
        found += compiled
        notes += [note] if note else []
        for name, add in LIBRARIES.items():
            if add.needs_gpu and device.type != "cuda":
                notes.append(f"{name} is left out: its kernel needs a GPU.")
            elif importlib.util.find_spec(add.package) is None:
                notes.append(f"{name} is left out: the package {add.package} is not installed.")
            else:
                found += add.variants()
        if device.type == "cpu":
            found += _numpy()
    return found, notes


def _eager(layout, in_place=False):
    """`posviz` with its table made once, as a model of many layers would."""

    def rotate(q, k, table):
        if in_place:
            return [rope_torch.rotate_into(x, x, table, layout) for x in (q, k)]
        if isinstance(table, torch.Tensor):
            return [rope_torch.rotate(x, table, layout) for x in (q, k)]
        return [rotate_pairs(x, *table, layout) for x in (q, k)]

    def prepare(cos, sin, dtype):
        return rope_torch.table(cos, sin, layout) if cos.device.type == "cpu" else (cos, sin)

    return Variant(
        "posviz" + ", in place" * in_place,
        layout,
        prepare,
        rotate,
        ours=True,
        in_place=in_place,
        backward=not in_place,
        moves=2,
    )


def _fused(layout, in_place):
    from posviz import rope_triton

    return Variant(
        "posviz, fused kernel" + ", in place" * in_place,
        layout,
        lambda cos, sin, dtype: (cos, sin),
        lambda q, k, table: [rope_triton.rotate_pairs(x, *table, layout, in_place) for x in (q, k)],
        ours=True,
        in_place=in_place,
        backward=not in_place,
        moves=2,
    )


def _compiled(device):
    """(`rotate_pairs` through torch.compile in both layouts, nothing) or ([], why not)."""
    function = torch.compile(rotate_pairs, dynamic=True)
    try:
        x = torch.ones(1, 2, 4, 8, device=device)
        with torch.no_grad():
            function(x, x[0, 0, :, :4], x[0, 0, :, :4])
    except Exception as error:  # torch.compile names a missing compiler in many ways
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return [], f"torch.compile is left out: it does not work here ({reason})."
    return [
        Variant(
            "posviz, torch.compile",
            layout,
            lambda cos, sin, dtype: (cos, sin),
            lambda q, k, table, layout=layout: [function(x, *table, layout) for x in (q, k)],
            ours=True,
            moves=2,
        )
        for layout in ("half", "interleaved")
    ], None


def _numpy():
    def swap(x):
        return np.concatenate([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], axis=-1)

    def ours(layout):
        return Variant(
            "posviz, NumPy",
            layout,
            lambda cos, sin, dtype: (cos.numpy(), sin.numpy()),
            lambda q, k, table: [rotate_pairs(x.numpy(), *table, layout) for x in (q, k)],
            ours=True,
            kind="NumPy",
            backward=False,
            dtypes=("float32",),
        )

    return [
        ours("half"),
        ours("interleaved"),
        Variant(
            "textbook, NumPy",
            "half",
            lambda cos, sin, dtype: [t.numpy() for t in _doubled(cos, sin, dtype)],
            lambda q, k, table: [x * table[0] + swap(x) * table[1] for x in (q.numpy(), k.numpy())],
            kind="NumPy",
            backward=False,
            dtypes=("float32",),
        ),
    ]


def _doubled(cos, sin, dtype):
    """cos and sin for both halves of a head, in the dtype of q, as Hugging Face models make them."""
    return [torch.cat([t, t], dim=-1).to(dtype) for t in (cos, sin)]


def _textbook(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin


def _by_complex_numbers(x, turns):
    """The form of Meta's LLaMA code."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


# x·cos: in, out. −x2: half in, half out. cat: in, out. ·sin: in, out. Sum: two in, one out.
TEXTBOOK = Variant(
    "textbook formula", "half", _doubled, lambda q, k, table: [_textbook(x, *table) for x in (q, k)], moves=10
)
COMPLEX = Variant(
    "complex numbers",
    "interleaved",
    lambda cos, sin, dtype: torch.complex(cos, sin),
    lambda q, k, turns: [_by_complex_numbers(x, turns) for x in (q, k)],
    moves=2,
)


def _transformers():
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    return [
        Variant(
            "transformers",
            "half",
            lambda cos, sin, dtype: [t[None] for t in _doubled(cos, sin, dtype)],
            lambda q, k, table: apply_rotary_pos_emb(q, k, *table),
        )
    ]


def _rotary_embedding_torch():
    from rotary_embedding_torch import apply_rotary_emb

    def angles(cos, sin, dtype):
        # It takes angles. Given as they are, float32 would lose them at these positions; within one turn it keeps them.
        return torch.atan2(sin.double(), cos.double()).repeat_interleave(2, -1).to(cos.dtype)

    return [
        Variant(
            "rotary-embedding-torch",
            "interleaved",
            angles,
            lambda q, k, table: [apply_rotary_emb(table, x) for x in (q, k)],
        )
    ]


def _flash_attention():
    from flash_attn.layers.rotary import apply_rotary_emb

    def rotate(q, k, table, layout):
        return [
            apply_rotary_emb(x.transpose(1, 2), *table, interleaved=layout == "interleaved").transpose(1, 2)
            for x in (q, k)
        ]

    return [
        Variant(
            "flash-attn",
            layout,
            lambda cos, sin, dtype: (cos.to(dtype), sin.to(dtype)),
            lambda q, k, table, layout=layout: rotate(q, k, table, layout),
        )
        for layout in ("half", "interleaved")
    ]


def _liger():
    from liger_kernel.transformers.rope import liger_rotary_pos_emb

    # It writes over q and k where they lie in memory as they do here.
    return [
        Variant(
            "Liger",
            "half",
            lambda cos, sin, dtype: [t[None] for t in _doubled(cos, sin, dtype)],
            lambda q, k, table: liger_rotary_pos_emb(q, k, *table),
            in_place=True,
            backward=False,
        )
    ]


@dataclass(frozen=True)
class _Library:
    package: str
    variants: Callable
    needs_gpu: bool = False


LIBRARIES = {
    "transformers": _Library("transformers", _transformers),
    "rotary-embedding-torch": _Library("rotary_embedding_torch", _rotary_embedding_torch),
    "flash-attn": _Library("flash_attn", _flash_attention, needs_gpu=True),
    "Liger": _Library("liger_kernel", _liger, needs_gpu=True),
}


# ------------------------------------------------------------------ correctness


def error(variant, dtype, device="cpu", length=64):
    """The largest error against float64 at positions up to 10^6, as a share of the length of the pair.

    In the dtype's own rounding that is about 1e-7 for float32 and at most 2^-8 = 0.004 for bfloat16 rounded once.
    """
    positions = torch.cat([torch.arange(length // 2), torch.arange(LAST - length // 2, LAST)]) + 1
    dtype = getattr(torch, dtype)
    q, k = _inputs(length, dtype, device, sets=1)[0]
    before = q.double().cpu().numpy(), k.double().cpu().numpy()
    tables = _tables(variant, positions, dtype, device)
    after = variant.rotate(q, k, tables)
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
    """What `error` may be: 1e-6 in float32; one rounding for our 16-bit results, four for those who compute in 16 bits."""
    if dtype == "float32":
        return 1e-6
    unit = torch.finfo(getattr(torch, dtype)).eps / 2
    return (1.01 if variant.ours else 4) * unit


def _inputs(length, dtype, device, sets):
    """Pairs (q, k) of random vectors, each as a view of what a projection writes: (batch, sequence, heads × dim)."""
    draw = torch.Generator().manual_seed(1)

    def tensor(heads):
        if length * heads < 2**12:
            x = torch.randn(BATCH, length, heads, DIM, generator=draw)
        else:  # a tile of noise, repeated: what the numbers are does not matter for the time
            x = torch.randn(BATCH, 16, heads, DIM, generator=draw).repeat(1, -(-length // 16), 1, 1)[:, :length]
        return x.to(device=device, dtype=dtype).transpose(1, 2)

    return [(tensor(HEADS), tensor(KEY_HEADS)) for _ in range(sets)]


def _tables(variant, positions, dtype, device):
    like = torch.empty(BATCH, 1, len(positions), DIM, dtype=dtype, device=device)
    return variant.prepare(*rotation_table(positions, rope_frequencies(DIM), like), dtype)


# ------------------------------------------------------------------ time


COPIES = [
    Variant("copy into a new tensor", "", lambda *table: None, None, kind="copy"),
    Variant("copy over another tensor", "", lambda *table: None, None, kind="copy"),
]


def measure(device, dtype, lengths, chosen, passes=FORWARD, rounds=(5, 30), seconds=10.0, peak=True, say=None):
    """(rows, notes): one row a variant and length, medians of rounds in which all variants take turns.

    Inputs rotate, so that none is in a cache because of the round before; one round before the first is not counted.
    Every variant is checked against float64 first: ArithmeticError if its error is above `tolerance`.
    rounds: fewest and most; seconds: after that many a length stops, once it has the fewest. peak: whether to find
    the most memory in use, in a run of its own. say: called with a note before each length.
    If memory runs out, the lengths so far are kept (or shorter ones tried, if there are none) and a note says so.
    """
    chosen = [v for v in chosen if dtype in v.dtypes and (passes == FORWARD or v.backward)]
    errors = {}
    for variant in chosen:
        errors[variant.name, variant.layout] = found = error(variant, dtype, device)
        if not found <= tolerance(variant, dtype):
            raise ArithmeticError(
                f"{variant.name}, {variant.layout}, {dtype}: error {found:.1e} of the length of a pair"
            )
    rows, notes, waiting = [], [], sorted(lengths)
    while waiting:
        length = waiting.pop(0)
        if say is not None:
            say(f"{length:,} positions, {dtype}, {passes}")
        try:
            with _no_memory_as_error():
                rows += _measure_length(device, dtype, length, chosen, passes, rounds, seconds, peak, errors)
        except MemoryError:
            shorter = length // 2
            waiting = [shorter] if not rows and shorter >= 16 else []
            notes.append(
                f"Memory ran out at {length:,} positions ({dtype}, {passes}); "
                + (f"{shorter:,} are tried instead." if waiting else "longer texts are left out.")
            )
    return rows, notes


@contextlib.contextmanager
def _no_memory_as_error():
    """Every way in which a device says that its memory is full, as MemoryError."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError from error
    except RuntimeError as error:
        if "memory" not in str(error):
            raise
        raise MemoryError from error


def _measure_length(device, dtype, length, chosen, passes, rounds, seconds, peak, errors):
    device, kind = torch.device(device), getattr(torch, dtype)
    size = BATCH * (HEADS + KEY_HEADS) * length * DIM * kind.itemsize
    sets = min(8, max(2, CACHED // size))
    most = sets + 1 + (3 if passes == FORWARD else 5)  # inputs, the copy's goal, what the textbook formula stores
    if device.type == "cpu" and most * size > _free_memory():
        raise MemoryError  # a full CPU says nothing: the system ends the process
    inputs = _inputs(length, kind, device, sets)
    positions = torch.arange(LAST - length, LAST)
    runs = {}
    for variant in [*chosen, *COPIES]:
        table = _tables(variant, positions, kind, device)
        runs[variant] = _run(variant, table, inputs, passes, device)
    times = {variant: [] for variant in runs}
    order, shuffle = list(runs), random.Random(1).shuffle
    for run in runs.values():
        run(0)
    begin = time.monotonic()
    for number in range(rounds[1]):
        shuffle(order)  # nobody always finds the memory that the same other has just given back
        for variant in order:
            times[variant].append(_timed(runs[variant], number, device))
        if number + 1 >= rounds[0] and time.monotonic() - begin > seconds:
            break
    took = {variant: statistics.median(values) for variant, values in times.items()}
    moved = 2 * size * (1 if passes == FORWARD else 2)
    rows = []
    for variant in order:
        peers = [took[v] for v in chosen if not v.ours and (v.kind, v.layout) == (variant.kind, variant.layout)]
        rows.append(
            {
                "variant": variant.name,
                "layout": variant.layout,
                "ours": variant.ours,
                "dtype": dtype,
                "passes": passes,
                "batch": BATCH,
                "heads": HEADS,
                "key_heads": KEY_HEADS,
                "dim": DIM,
                "length": length,
                "milliseconds": took[variant] * 1e3,
                "rounds": len(times[variant]),
                "bytes": moved,
                "bytes_per_second": moved / took[variant],
                "share_of_copy_new": took[COPIES[0]] / took[variant],
                "share_of_copy_over": took[COPIES[1]] / took[variant],
                "ratio": min(peers) / took[variant] if peers else None,
                "peak_bytes": _peak(runs[variant], device) if peak else None,
                "error": errors.get((variant.name, variant.layout)),
            }
        )
    return sorted(rows, key=lambda row: (row["layout"], not row["ours"], row["variant"]))


def _run(variant, table, inputs, passes, device):
    """A function of the round's number that does the work once, on that round's inputs."""
    sets = len(inputs)
    if variant.kind == "copy":  # as many bytes as a rotation must move
        times = 1 if passes == FORWARD else 2
        goal = [x.clone() for x in inputs[0]] if variant is COPIES[1] else None

        def copy(number):
            for _ in range(times):
                q, k = inputs[number % sets]
                kept = [q.clone(), k.clone()] if goal is None else [goal[0].copy_(q), goal[1].copy_(k)]
            return kept

        return copy
    if passes == FORWARD:

        @torch.no_grad()
        def forward(number):
            return variant.rotate(*inputs[number % sets], table)

        return forward
    leaves = [[x.detach().requires_grad_() for x in pair] for pair in inputs]

    def both(number):
        pair = leaves[number % sets]
        return torch.autograd.grad(variant.rotate(*pair, table), pair, inputs[(number + 1) % sets])

    return both


def _timed(run, number, device):
    """Seconds of one run, its results thrown away."""
    if device.type == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run(number)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3
    wait = torch.mps.synchronize if device.type == "mps" else lambda: None
    wait()
    begin = time.perf_counter()
    run(number)
    wait()
    return time.perf_counter() - begin


def _free_memory():
    """Bytes a new tensor may take on this system; infinite where it does not say."""
    try:
        return _kibibytes("/proc/meminfo", "MemAvailable") * 1024
    except (OSError, KeyError):
        return float("inf")


def _peak(run, device):
    """Bytes in use at the highest point of one run, above those before it; None where no counter can be set back."""
    if device.type == "cuda":
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


def best_device():
    """ "cuda" (also for ROCm), "mps" or "cpu"."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def machine(device):
    """What a table must say about where it was measured: device, driver, versions, date."""
    if device == "cuda":
        name, driver = torch.cuda.get_device_name(), torch.version.hip or _nvidia_driver()
    elif device == "mps":
        name, driver = "Apple GPU (MPS)", "of the system"
    else:
        name, driver = f"CPU, {torch.get_num_threads()} threads", "none"
    return {
        "device": name,
        "driver": driver,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


def _nvidia_driver():
    try:
        ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def recorded(path=RECORDED):
    """What `benchmarks/rope.py --json` wrote on a GPU, or None if no figures were recorded."""
    return json.loads(Path(path).read_text()) if Path(path).exists() else None


# ------------------------------------------------------------------ the cell of chapter 5


def rope_at_scale(device=None):
    """Measure three ways to write RoPE on this machine's GPU (or, small, on its CPU) and show them as a live picture.

    Under 5 s on a CPU; under 30 s on a GPU, with a progress bar. The first picture is counted, not measured, and so the
    same everywhere; the button "measured" shows this machine.
    """
    device = device or best_device()
    lengths = [2**n for n in (range(7, 11) if device == "cpu" else range(10, 18))]
    limits = (
        {"rounds": (3, 15), "seconds": 0.1, "peak": False} if device == "cpu" else {"rounds": (5, 50), "seconds": 0.8}
    )
    ours = [v for v in variants(device, libraries=False)[0] if v.ours and v.layout == "half" and not v.in_place]
    chosen = [replace(ours[-1], name="fused"), TEXTBOOK, COMPLEX]
    rows, notes, done = [], [], itertools.count(1)
    with contextlib.ExitStack() as stack:
        say = None
        if device != "cpu":  # on a CPU it is over before a bar would show
            bar = stack.enter_context(Progress("measuring RoPE", 2 * len(lengths)))
            say = lambda note: bar.update(next(done), note)  # noqa: E731
        for passes in (FORWARD, BACKWARD):
            more, said = measure(device, "float32", lengths, chosen, passes, say=say, **limits)
            rows, notes = rows + more, notes + said
    here = {**machine(device), "gpu": device != "cpu", "rows": rows, "notes": notes}
    return RopeAtScale(here, recorded()).explorer()


class RopeAtScale(View):
    """Why does RoPE cost what it costs? Bytes counted, then times measured.

    measured, recorded: dicts as `benchmarks/rope.py --json` writes them, with "gpu": whether it was one.
    """

    title = "What a rotation of q and k costs"
    size = (9, 4.2)
    SHOWN = {"fused": 0, "textbook formula": 1, "complex numbers": 2}

    def __init__(self, measured, recorded=None):
        self.sources = {
            "counted": (None, FORWARD),
            "measured, forward": (measured, FORWARD),
            "measured, with backward": (measured, BACKWARD),
        }
        if recorded is not None:
            self.sources[f"recorded on {recorded['device']}"] = (recorded, FORWARD)
        lengths = [row["length"] for source, _ in self.sources.values() if source for row in source["rows"]]
        low, high = (int(np.log2(end)) for end in (min(lengths), max(lengths)))
        self.controls = [
            Choice("show", list(self.sources)),
            Steps("exponent", low, high, default=min(max(10, low), high), label="positions, 2 to the power of"),
        ]

    def draw(self, figure):
        cost, share = figure.subplots(1, 2)
        low, high = (
            2.0 ** (end + nudge) for end, nudge in zip((self.controls[1].low, self.controls[1].high), (-0.3, 0.3))
        )
        lengths = [2**n for n in range(self.controls[1].low, self.controls[1].high + 1)]
        for axes in (cost, share):
            axes.set_xscale("log", base=2)
            axes.set(xlim=(low, high), xlabel="positions in the text")
            axes.set_xticks(lengths, [f"{n // 1024}k" if n >= 1024 else f"{n}" for n in lengths])
            axes.yaxis.set_label_coords(-0.17, 0.5)  # stays put when tick labels get wider
        cost.set_yscale("log")
        share.set(ylim=(0, 1.15), yticks=[0, 0.25, 0.5, 0.75, 1], yticklabels=["0 %", "25 %", "50 %", "75 %", "100 %"])
        share.axhline(1, **style.reference)
        self.here = [axes.axvline(low, **style.reference) for axes in (cost, share)]
        self.curves = {
            name: [
                axes.plot(
                    [], [], **style.line(i) | style.marker(i) | {"linestyle": style.line(i)["linestyle"]}, label=name
                )[0]
                for axes in (cost, share)
            ]
            for name, i in self.SHOWN.items()
        }
        (self.floor,) = cost.plot([], [], color="#6E6E6E", linewidth=1.5, label="least possible")
        figure.legend(
            handles=[pair[0] for pair in self.curves.values()] + [self.floor],
            loc="outside upper center",
            ncols=4,
            frameon=False,
        )
        self.labels = [cost.yaxis.label, share.yaxis.label]

    def update(self, show, exponent):
        source, passes = self.sources[show]
        length = 2**exponent
        table = _counted(self.controls[1]) if source is None else _measured(source["rows"], passes)
        labels = (
            ("MiB moved", "least possible ÷ moved") if source is None else ("milliseconds", "share of a copy's speed")
        )
        for label, words in zip(self.labels, labels):
            label.set_text(words)
        for name, curves in self.curves.items():
            points = table.get(name, {})
            for curve, column in zip(curves, (0, 1)):
                curve.set_data(list(points), [values[column] for values in points.values()])
        self.floor.set_data(list(table["floor"]), [values[0] for values in table["floor"].values()])
        for line in self.here:
            line.set_xdata([length, length])
        costs = [values[0] for points in table.values() for values in points.values()]
        limits = min(costs) / 1.5, max(costs) * 1.5
        if self.floor.axes.get_ylim() != limits:
            self.floor.axes.set_ylim(limits)
        if source is None:
            size, fused, textbook = (
                table["floor"][length][0] / 2,
                table["fused"][length][0],
                table["textbook formula"][length][0],
            )
            return (
                f"At {length:,} positions q and k of one layer hold {size:.0f} MiB. Fused, {fused:.0f} MiB pass between "
                f"memory and processor; the textbook formula, with what it stores on the way, moves {textbook:.0f} MiB."
            )
        none = "" if len(self.sources) > 3 else " and no figures of one recorded"
        where = "" if source["gpu"] else f"No GPU here{none}: small sizes on the CPU. "
        if length not in table["fused"]:
            return f"{where}{source['device']}: {length:,} positions were not measured. " + " ".join(source["notes"])
        (took, share), (slow, _) = table["fused"][length], table["textbook formula"][length]
        return (
            f"{where}{source['device']}: {length:,} positions, {passes}: fused {took:.3g} ms, {slow / took:.1f} times as "
            f"fast as the textbook formula, at {share:.0%} of a copy's speed."
        )


def _counted(exponents):
    """{name: {length: (MiB moved in a forward pass of float32, least possible ÷ that)}}."""
    table = {"floor": {}}
    for length in (2**n for n in range(exponents.low, exponents.high + 1)):
        least = 2 * BATCH * (HEADS + KEY_HEADS) * length * DIM * 4 / 2**20
        table["floor"][length] = least, 1.0
        for name, moves in (("fused", 2), (TEXTBOOK.name, TEXTBOOK.moves), (COMPLEX.name, COMPLEX.moves)):
            table.setdefault(name, {})[length] = least * moves / 2, 2 / moves
    return table


def _measured(rows, passes):
    """{name: {length: (milliseconds, share of the speed of a copy)}}; "floor" is the copy itself."""
    table = {}
    for row in rows:
        if row["passes"] == passes and row["dtype"] == "float32":
            name = "floor" if row["variant"] == COPIES[0].name else row["variant"]
            table.setdefault(name, {})[row["length"]] = row["milliseconds"], row["share_of_copy_new"]
    return table
