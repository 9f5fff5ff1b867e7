"""What RoPE costs on this machine: three ways to write it, timed in turns with a copy of q and k, for chapter 5.

`benchmarks/rope.py` compares many more ways, those of libraries too, with the functions of this module. A way is a
function of (cos, sin, dtype of q) that makes its table and returns a function of (q, k) that rotates with it.
"""

import math
import random
import statistics
import time

import torch

from posviz import rope_frequencies, rope_torch
from posviz.lab.model import as_shipped
from posviz.lab.progress import Progress
from posviz.rope import rotate_pairs, rotation_table
from posviz.views.rope import HEAD_DIM, HEADS, KEY_HEADS, LEAST, PASSES, RopeAtScale

FORWARD, BACKWARD = PASSES.values()
CACHE = 2**27  # bytes: more than any cache of today
END = 10**6  # the positions measured are the ones just before this


@as_shipped
def rope_at_scale(device=None):
    """Time three ways to write RoPE on this machine's GPU (or, small, on its CPU) and show them as a live picture.

    Less than 5 s on a CPU; on a GPU with a progress bar. The first picture is counted, not measured, and so the same
    everywhere; the buttons "measured" show this machine.
    """
    device = device or best_device()
    exponents = range(7, 11) if device == "cpu" else range(10, 18)
    fused, where = fused_way(device)
    ways = {"fused": fused, "textbook formula": textbook, "complex numbers": by_complex_numbers}
    times = {show: measure(ways, [2**n for n in exponents], passes, device) for show, passes in PASSES.items()}
    return RopeAtScale(exponents, times, where).explorer()


def textbook(cos, sin, dtype):
    """The formula as it is often written, `x * cos + rotate_half(x) * sin`."""
    cos, sin = doubled(cos, sin, dtype)
    half = cos.shape[-1] // 2
    return lambda q, k: [x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin for x in (q, k)]


def doubled(cos, sin, dtype):
    """cos and sin for both halves of a head, in the dtype of q, as models of Hugging Face make them."""
    return [torch.cat([t, t], dim=-1).to(dtype) for t in (cos, sin)]


def by_complex_numbers(cos, sin, dtype):
    """The form of Meta's LLaMA code, layout "interleaved"."""
    turns = torch.complex(cos, sin)

    def rotate(x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)

    return lambda q, k: [rotate(q), rotate(k)]


def fused_way(device):
    """(RoPE in one pass over memory: block by block on a CPU, compiled elsewhere; words that say where it runs)."""
    if device == "cpu":
        return blockwise, f"No GPU here: small sizes on the CPU. {device_name(device)}"
    turn, problem = compiled(device)
    where = "torch.compile fails here, so fused runs uncompiled. " * bool(problem) + device_name(device)
    return lambda cos, sin, dtype: lambda q, k: [turn(x, cos, sin, "half") for x in (q, k)], where


def blockwise(cos, sin, dtype, layout="half"):
    """`posviz.rope` on a CPU, with its table made once."""
    table = rope_torch.table(cos, sin, layout)
    return lambda q, k: [rope_torch.rotate(x, table, layout) for x in (q, k)]


def compiled(device):
    """(`rotate_pairs` through torch.compile, None); where that does not work, (`rotate_pairs` as it is, why)."""
    function = torch.compile(rotate_pairs, dynamic=True)
    x = torch.ones(1, 2, 4, 8, device=device, requires_grad=True)
    cos = sin = x.detach()[0, 0, :, :4]
    try:
        function(x, cos, sin).sum().backward()
    except Exception as error:  # torch.compile names a missing compiler in many ways
        return rotate_pairs, str(error).strip().partition("\n")[0] or type(error).__name__
    return function, None


def best_device():
    """ "cuda" (also for ROCm), "mps" or "cpu"."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def device_name(device):
    """The name of the GPU, or the number of threads of the CPU."""
    if device == "cpu":
        return f"CPU, {torch.get_num_threads()} threads"
    return "Apple GPU (MPS)" if device == "mps" else torch.cuda.get_device_name(device)


def measure(ways, lengths, passes, device):
    """{way: {length: (milliseconds, share of a copy's speed)}} in float32; the copy itself is "least possible".

    Where memory runs out, this length and the longer ones are left out.
    """
    table = {}
    seconds, quiet = (0.1, math.inf) if device == "cpu" else (0.8, 1.0)  # a CPU is done before a bar would help
    with Progress(f"measuring RoPE, {passes}", len(lengths), quiet=quiet) as bar:
        for number, length in enumerate(lengths, 1):
            bar.update(number, f"{length:,} positions")
            try:
                inputs = random_inputs(length, torch.float32, device)
                turns = runs(ways, inputs, passes) | {LEAST: copying(inputs, passes)}
                took = {name: statistics.median(times) for name, times in take_turns(turns, device, seconds).items()}
            except (MemoryError, RuntimeError) as error:
                if not memory_is_full(error):
                    raise
                break
            for name, median in took.items():
                table.setdefault(name, {})[length] = 1e3 * median, took[LEAST] / median
    return table


def memory_is_full(error):
    """Whether the error is one of the ways in which a device says that its memory is full."""
    words = ("out of memory", "not enough memory", "allocate memory")
    return isinstance(error, MemoryError) or any(form in str(error) for form in words)


def layer_bytes(length, dtype):
    """Bytes of q and k."""
    return (HEADS + KEY_HEADS) * length * HEAD_DIM * dtype.itemsize


def random_inputs(length, dtype, device):
    """Pairs (q, k) of shape (1, heads, length, HEAD_DIM), too many for a cache, in memory as projections leave them."""
    draw = torch.Generator().manual_seed(1)
    sets = min(8, max(2, CACHE // layer_bytes(length, dtype)))

    def tensor(heads):
        tile = torch.randn(1, 64, heads, HEAD_DIM, generator=draw)  # repeated: what they are does not matter for time
        return tile.repeat(1, -(-length // 64), 1, 1)[:, :length].to(device, dtype).transpose(1, 2)

    return [(tensor(HEADS), tensor(KEY_HEADS)) for _ in range(sets)]


def rotation(way, positions, q):
    """The function of (q, k) that this way makes for these positions."""
    return way(*rotation_table(positions, rope_frequencies(HEAD_DIM), q), q.dtype)


def runs(ways, inputs, passes):
    """{name: a function of the round's number that works once on the inputs of that round} of {name: way}."""
    length = inputs[0][0].shape[-2]
    positions = torch.arange(END - length, END)
    return {name: run(rotation(way, positions, inputs[0][0]), inputs, passes) for name, way in ways.items()}


def run(rotate, inputs, passes):
    """`runs` for one rotation."""
    if passes == FORWARD:
        return torch.no_grad()(lambda number: rotate(*inputs[number % len(inputs)]))
    leaves = [[x.detach().requires_grad_() for x in pair] for pair in inputs]

    def both(number):
        pair = leaves[number % len(inputs)]
        return torch.autograd.grad(rotate(*pair), pair, inputs[(number + 1) % len(inputs)])

    return both


def copying(inputs, passes):
    """A run that copies as many bytes as a rotation must move: q and k once, and once more for their gradients."""
    times = 1 if passes == FORWARD else 2
    return run(lambda q, k: [x.clone() for x in (q, k) * times], inputs, FORWARD)


def take_turns(runs, device, seconds, fewest=3, most=50):
    """{name: seconds of each round}, without a warm-up; once it has the fewest rounds it stops after `seconds`."""
    taken, order, shuffle = {name: [] for name in runs}, list(runs), random.Random(1).shuffle
    for warm_up in runs.values():
        warm_up(0)
    end = time.monotonic() + seconds
    for number in range(most):
        shuffle(order)  # nobody always finds the memory that the same other has just given back
        for name in order:
            taken[name].append(_seconds(runs[name], number, device))
        if number + 1 >= fewest and time.monotonic() > end:
            break
    return taken


def _seconds(work, number, device):
    if device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work(number)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3
    wait = torch.mps.synchronize if device == "mps" else lambda: None
    wait()
    begin = time.perf_counter()
    work(number)
    wait()
    return time.perf_counter() - begin
