"""What chapter 5 times: its three ways are right, the bytes it counts are those that move, the picture says both."""

import time

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from posviz import bench, rope_frequencies
from posviz.rope import rotation_table
from posviz.views.rope import LEAST, MOVES, PASSES, RopeAtScale

WAYS = {"fused": bench.blockwise, "textbook formula": bench.textbook, "complex numbers": bench.by_complex_numbers}


def turned(x, positions, layout):
    """The rotation in complex float64, by hand."""
    x = x.detach().double().numpy()
    half = x.shape[-1] // 2
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., :half], x[..., half:])
    z = (a + 1j * b) * np.exp(1j * np.asarray(positions)[:, None] * 10_000.0 ** (-np.arange(half) / half))
    return np.stack([z.real, z.imag], -1 if layout == "interleaved" else -2).reshape(x.shape)


# ------------------------------------------------------------------ the ways to write it


@pytest.mark.parametrize("name", WAYS)
def test_every_way_is_right_up_to_a_million_positions(name):
    q, k = bench.random_inputs(32, torch.float32, "cpu")[0]
    positions = torch.arange(10**6 - 31, 10**6 + 1)
    layout = "interleaved" if name == "complex numbers" else "half"
    right = [turned(x, positions, layout) for x in (q, k)]
    for found, expected in zip(bench.rotation(WAYS[name], positions, q)(q, k), right):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=2e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_the_compiled_form_is_right_or_left_out_with_a_reason():
    function, problem = bench.compiled("cpu")
    assert problem is None or (function is bench.rotate_pairs and problem)
    x = torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(1), requires_grad=True)
    cos, sin = rotation_table(range(6), rope_frequencies(8), x)
    found = function(x, cos, sin, "half")
    np.testing.assert_allclose(found.detach().numpy(), turned(x, range(6), "half"), rtol=1e-6, atol=1e-6)
    (gradient,) = torch.autograd.grad(found, x, found)  # turned back, it is x again
    torch.testing.assert_close(gradient, x.detach(), rtol=1e-5, atol=1e-6)


def no_compiler(monkeypatch, message="No working C++ compiler found\nsecond line"):
    def compile(function, dynamic):
        def fails(*given):
            raise RuntimeError(message)

        return fails

    monkeypatch.setattr(torch, "compile", compile)


def test_without_a_compiler_the_plain_form_is_timed_and_the_picture_says_so(monkeypatch):
    no_compiler(monkeypatch)
    assert bench.compiled("cpu") == (bench.rotate_pairs, "No working C++ compiler found")
    no_compiler(monkeypatch, message="")
    assert bench.compiled("cpu") == (bench.rotate_pairs, "RuntimeError")
    compiled = bench.compiled
    monkeypatch.setattr(bench, "compiled", lambda device: compiled("cpu"))  # no GPU is needed to fail
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA X")
    way, where = bench.fused_way("cuda")
    assert where == "torch.compile fails here, so fused runs uncompiled. NVIDIA X"
    q, k = bench.random_inputs(16, torch.float32, "cpu")[0]
    for x, found in zip((q, k), bench.rotation(way, torch.arange(16), q)(q, k)):
        np.testing.assert_allclose(found.numpy(), turned(x, range(16), "half"), rtol=1e-6, atol=2e-6)


def test_where_it_compiles_the_picture_says_the_device_alone(monkeypatch):
    monkeypatch.setattr(bench, "compiled", lambda device: (bench.rotate_pairs, None))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA X")
    assert bench.fused_way("cuda")[1] == "NVIDIA X"
    assert bench.fused_way("mps")[1] == "Apple GPU (MPS)"


# ------------------------------------------------------------------ the times


@pytest.mark.parametrize("passes", [bench.FORWARD, bench.BACKWARD])
def test_times_of_every_way_and_of_a_copy_at_every_length(passes):
    table = bench.measure(WAYS, [16, 32], passes, "cpu")
    assert set(table) == {*WAYS, LEAST}
    for points in table.values():
        assert list(points) == [16, 32] and min(milliseconds for milliseconds, _ in points.values()) > 0
        for length, (milliseconds, share) in points.items():
            assert share == pytest.approx(table[LEAST][length][0] / milliseconds)


def test_inputs_rotate_and_the_warm_up_is_not_counted():
    inputs = bench.random_inputs(16, torch.float32, "cpu")
    seen = []
    run = bench.run(lambda q, k: seen.append(q.data_ptr()), inputs, bench.FORWARD)
    taken = bench.take_turns({"one": run}, "cpu", 0, fewest=4, most=4)
    assert len(taken["one"]) == 4 and len(seen) == 1 + 4
    assert len(set(seen[1:])) == 4


def test_rounds_end_when_the_time_is_over_but_not_before_the_fewest():
    run = {"one": lambda number: None}
    assert len(bench.take_turns(run, "cpu", 0, fewest=3, most=50)["one"]) == 3
    assert len(bench.take_turns(run, "cpu", 60, fewest=3, most=7)["one"]) == 7


def test_a_copy_moves_as_many_bytes_as_a_rotation_must():
    inputs = bench.random_inputs(16, torch.float32, "cpu")
    size = sum(x.nbytes for x in inputs[0])
    assert size == bench.layer_bytes(16, torch.float32) == (32 + 8) * 16 * 128 * 4
    for passes, times in ((bench.FORWARD, 1), (bench.BACKWARD, 2)):
        made = bench.copying(inputs, passes)(0)
        assert sum(x.nbytes for x in made) == times * size
        assert not {x.data_ptr() for x in made} & {x.data_ptr() for pair in inputs for x in pair}


# ------------------------------------------------------------------ memory runs out


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("MPS backend out of memory"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes"),
    MemoryError(),
]


def failing_above(longest, error):
    def way(cos, sin, dtype):
        rotate = bench.textbook(cos, sin, dtype)

        def fails(q, k):
            if q.shape[-2] > longest:
                raise error
            return rotate(q, k)

        return fails

    return {**WAYS, "textbook formula": way}


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=["CUDA", "MPS", "CPU", "Python"])
def test_shorter_texts_are_shown_when_memory_runs_out(error):
    ways = failing_above(1024, error)
    tables = {show: bench.measure(ways, [512, 1024, 2048, 4096], passes, "cpu") for show, passes in PASSES.items()}
    assert all(list(points) == [512, 1024] for table in tables.values() for points in table.values())
    explorer = RopeAtScale(range(9, 13), tables, "NVIDIA X").explorer(show="measured, forward")
    assert "fused" in explorer.sentence
    explorer.controls["exponent"].value = 11
    assert explorer.sentence == (
        "NVIDIA X: 2,048 positions, forward: memory ran out, so nothing was measured from here on."
    )


def test_a_full_device_shows_the_bytes_alone():
    ways = failing_above(0, MemoryError())
    tables = {show: bench.measure(ways, [1024, 2048], passes, "cpu") for show, passes in PASSES.items()}
    assert tables == {show: {} for show in PASSES}
    explorer = RopeAtScale(range(10, 12), tables, "NVIDIA X").explorer()
    assert explorer.sentence == COUNTED
    explorer.controls["show"].value = "measured, with backward"
    assert explorer.sentence.startswith("NVIDIA X: 1,024 positions, forward and backward: memory ran out")


@pytest.mark.parametrize("message", ["size mismatch", "CUDA error: an illegal memory access was encountered"])
def test_other_errors_are_not_taken_for_want_of_memory(message):
    with pytest.raises(RuntimeError, match=message):
        bench.measure(failing_above(0, RuntimeError(message)), [16], bench.FORWARD, "cpu")


# ------------------------------------------------------------------ the bytes that are counted


class Moved(TorchDispatchMode):
    """Numbers that operations read and write, tables aside; a view moves none."""

    def __init__(self, inputs):
        super().__init__()
        self.counted = {t.untyped_storage().data_ptr(): t for t in inputs}  # kept, so that no address is used twice
        self.count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        out = operation(*args, **(kwargs or {}))
        read = [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(t, torch.Tensor)]
        if out.untyped_storage().data_ptr() not in {t.untyped_storage().data_ptr() for t in read}:
            self.counted[out.untyped_storage().data_ptr()] = out
            self.count += sum(numbers(t) for t in [out, *read] if t.untyped_storage().data_ptr() in self.counted)
        return out


def numbers(tensor):
    return tensor.numel() * (2 if tensor.is_complex() else 1)


@pytest.mark.parametrize("name", ["textbook formula", "complex numbers"])
def test_moves_are_counted_right(name):
    q, k = bench.random_inputs(32, torch.float32, "cpu")[0]
    rotate = bench.rotation(WAYS[name], torch.arange(32), q)
    with torch.no_grad(), Moved([q, k]) as moved:
        rotate(q, k)
    assert moved.count == MOVES[name] * (q.numel() + k.numel())


# ------------------------------------------------------------------ the cell


COUNTED = (
    "At 1,024 positions q and k of one layer hold 20 MiB. Fused, 40 MiB pass between memory and processor; "
    "the textbook formula, with what it stores on the way, moves 200 MiB."
)


@pytest.fixture(scope="module")
def cell():
    return bench.rope_at_scale("cpu")


def test_the_cell_shows_the_same_before_anything_is_pressed(cell, capsys):
    again = bench.rope_at_scale("cpu")
    assert cell.sentence == again.sentence == COUNTED
    kept, kept_again = (explorer._repr_mimebundle_()[0] for explorer in (cell, again))  # what a saved chapter keeps
    assert all(kept[part] == kept_again[part] for part in ("text/plain", "image/png"))
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_the_cell_is_quick_on_a_cpu():
    begin = time.process_time()
    bench.rope_at_scale("cpu")
    assert time.process_time() - begin < 10  # 2 s of one core; this is for machines that are busy and slow


def test_every_state_has_its_curves_and_a_short_sentence(cell):
    shows = cell.view.controls[0].options
    assert shows == ("counted", "measured, forward", "measured, with backward")
    for show in shows:
        for exponent in range(7, 11):
            view, figure, sentence = cell.view.drawn(show=show, exponent=exponent)
            assert len(sentence) <= 220 and f"{2**exponent:,} positions" in sentence
            assert show == "counted" or sentence.startswith("No GPU here: small sizes on the CPU. CPU, ")
            for curves in view.curves.values():
                for curve in curves:
                    assert list(curve.get_xdata()) == [128, 256, 512, 1024] and min(curve.get_ydata()) > 0
            (floor,), (textbook, _) = view.curves[LEAST], view.curves["textbook formula"]
            low, high = floor.axes.get_ylim()
            assert low < min(floor.get_ydata()) and max(textbook.get_ydata()) < high
            assert list(view.here[0].get_xdata()) == [2**exponent] * 2
