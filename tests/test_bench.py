"""The benchmark of RoPE: every variant is right, the arithmetic of its table holds, and it says what it could not do."""

import importlib.util
import json
import runpy
import sys
import time
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from posviz import bench

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "rope.py"
VARIANTS = [
    v
    for v in bench.variants("cpu", libraries=False)[0]
    + bench._numpy()
    + bench._transformers()
    + bench._rotary_embedding_torch()
]
CASES = [(v, dtype) for v in VARIANTS for dtype in v.dtypes]


def replaced(variant, **changes):
    return bench.replace(variant, **changes)


# ------------------------------------------------------------------ correctness


@pytest.mark.parametrize(("variant", "dtype"), CASES, ids=[f"{v.name}, {v.layout}, {dtype}" for v, dtype in CASES])
def test_every_variant_is_right_up_to_a_million_positions(variant, dtype):
    assert bench.error(variant, dtype) <= bench.tolerance(variant, dtype)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_the_compiled_form_is_right_or_left_out_with_a_reason():
    found, note = bench._compiled(torch.device("cpu"))
    assert (note is None) == bool(found)
    assert note is None or note.startswith("torch.compile is left out: it does not work here (")
    for variant in found:
        assert bench.error(variant, "float32") <= 1e-6


def test_without_a_compiler_the_compiled_form_is_left_out_in_one_sentence(monkeypatch):
    def compile(function, dynamic):
        def fails(*given):
            raise RuntimeError("No working C++ compiler found\nsecond line")

        return fails

    monkeypatch.setattr(torch, "compile", compile)
    found, notes = bench.variants("cpu")
    assert "torch.compile is left out: it does not work here (No working C++ compiler found)." in notes
    assert not any("compile" in v.name for v in found)


def test_libraries_that_cannot_run_here_are_named(monkeypatch):
    monkeypatch.setattr(bench, "_compiled", lambda device: ([], None))
    found, notes = bench.variants("cpu")
    assert "flash-attn is left out: its kernel needs a GPU." in notes
    assert {"transformers", "rotary-embedding-torch"} <= {v.name for v in found}
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else find(name))
    found, notes = bench.variants("cpu")
    assert "transformers is left out: the package transformers is not installed." in notes
    assert "transformers" not in {v.name for v in found}


@pytest.mark.parametrize(
    "wrong",
    [
        replaced(VARIANTS[0], layout="interleaved"),
        replaced(bench.TEXTBOOK, prepare=lambda cos, sin, dtype: bench._doubled(cos, -sin, dtype)),
        replaced(bench.COMPLEX, rotate=lambda q, k, turns: [q, k]),
    ],
    ids=["layout", "sign", "identity"],
)
def test_a_wrong_variant_is_not_timed(wrong):
    with pytest.raises(ArithmeticError, match=f"{wrong.name}, .*: error"):
        bench.measure("cpu", "float32", [16], [wrong])


def test_float32_angles_would_be_found_out():
    """What libraries do by themselves: 2.9e-2 at a million positions."""
    angles = bench.rope_frequencies(bench.DIM) * 1e6
    lost = torch.cos(torch.tensor(angles, dtype=torch.float32)).double() - torch.cos(torch.tensor(angles))
    assert lost.abs().max() > 1e-2 > 1e3 * bench.tolerance(bench.TEXTBOOK, "float32")


# ------------------------------------------------------------------ the table


@pytest.fixture(scope="module")
def rows():
    chosen = [v for v in VARIANTS if v.kind == "torch"]
    found, notes = bench.measure("cpu", "float32", [16, 32], chosen, rounds=(3, 3))
    both, more = bench.measure("cpu", "bfloat16", [16], chosen, bench.BACKWARD, rounds=(3, 3), peak=False)
    assert not notes + more
    return found + both


def test_one_row_a_variant_and_length(rows):
    forward = [row for row in rows if row["passes"] == bench.FORWARD]
    named = [(v.name, v.layout) for v in VARIANTS if v.kind == "torch"] + [(v.name, "") for v in bench.COPIES]
    for length in (16, 32):
        assert sorted((r["variant"], r["layout"]) for r in forward if r["length"] == length) == sorted(named)
    back = {row["variant"] for row in rows if row["passes"] == bench.BACKWARD}
    assert "posviz" in back and "posviz, in place" not in back


def test_bytes_speed_shares_and_ratios_follow_from_the_times(rows):
    for row in rows:
        size = (32 + 8) * row["length"] * 128 * (4 if row["dtype"] == "float32" else 2)
        assert row["bytes"] == 2 * size * (1 if row["passes"] == bench.FORWARD else 2)
        assert row["bytes_per_second"] == pytest.approx(row["bytes"] / row["milliseconds"] * 1e3)
        same = [r for r in rows if all(r[key] == row[key] for key in ("dtype", "passes", "length"))]
        took = {r["variant"]: r["milliseconds"] for r in same if not r["layout"]}
        assert row["share_of_copy_new"] == pytest.approx(took["copy into a new tensor"] / row["milliseconds"])
        assert row["share_of_copy_over"] == pytest.approx(took["copy over another tensor"] / row["milliseconds"])
        others = [r["milliseconds"] for r in same if r["layout"] == row["layout"] and not r["ours"] and r["layout"]]
        assert row["ratio"] == (pytest.approx(min(others) / row["milliseconds"]) if others else None)
        assert (row["error"] is None) == (not row["layout"]) and row["rounds"] == 3
    best = [r["ratio"] for r in rows if r["layout"] and not r["ours"]]
    assert max(best) == 1.0


def test_inputs_rotate_and_the_first_round_is_not_counted():
    seen = []

    def rotate(q, k, table):
        seen.append(q.data_ptr())
        return bench.COMPLEX.rotate(q, k, table)

    found, _ = bench.measure(
        "cpu", "float32", [16], [replaced(bench.COMPLEX, rotate=rotate)], rounds=(4, 4), peak=False
    )
    assert found[0]["rounds"] == 4 and len(seen) == 1 + 1 + 4  # check, warm-up, rounds
    assert len(set(seen[2:])) == 4


def test_peak_memory_tells_one_pass_from_many(rows):
    tall = 2048
    found, _ = bench.measure("cpu", "float32", [tall], [VARIANTS[0], bench.TEXTBOOK], rounds=(1, 1))
    peak = {row["variant"]: row["peak_bytes"] for row in found}
    result = (32 + 8) * tall * 128 * 4
    if peak["posviz"] is not None:  # Linux only
        assert 0.9 * result < peak["posviz"] < 1.3 * result < peak["textbook formula"]


# ------------------------------------------------------------------ memory runs out


def short_of_memory(at_most, error):
    def rotate(q, k, table):
        if q.shape[-2] > at_most and q.shape[-2] != 64:  # 64: the check before the timing
            raise error
        return bench.TEXTBOOK.rotate(q, k, table)

    return replaced(bench.TEXTBOOK, rotate=rotate)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("MPS backend out of memory"),
        RuntimeError(
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes"
        ),
        MemoryError(),
    ],
    ids=["CUDA", "MPS", "CPU", "Python"],
)
def test_it_keeps_the_lengths_that_fit_and_says_so(error):
    found, notes = bench.measure(
        "cpu", "float32", [16, 32, 128, 256], [short_of_memory(32, error)], rounds=(1, 1), peak=False
    )
    assert sorted({row["length"] for row in found}) == [16, 32]
    assert notes == ["Memory ran out at 128 positions (float32, forward); longer texts are left out."]


def test_it_steps_down_when_not_even_the_first_length_fits():
    found, notes = bench.measure(
        "cpu", "float32", [256, 512], [short_of_memory(64, MemoryError())], rounds=(1, 1), peak=False
    )
    assert {row["length"] for row in found} == {64}
    assert notes == [
        "Memory ran out at 256 positions (float32, forward); 128 are tried instead.",
        "Memory ran out at 128 positions (float32, forward); 64 are tried instead.",
    ]


def test_it_gives_up_when_nothing_fits():
    found, notes = bench.measure("cpu", "float32", [32], [short_of_memory(0, MemoryError())], rounds=(1, 1))
    assert not found and notes[-1] == "Memory ran out at 16 positions (float32, forward); longer texts are left out."


def test_a_cpu_is_not_filled_to_the_brim(monkeypatch):
    monkeypatch.setattr(bench, "_free_memory", lambda: 10 * 2**20)
    found, notes = bench.measure("cpu", "float32", [16, 1024], [bench.COMPLEX], rounds=(1, 1), peak=False)
    assert {row["length"] for row in found} == {16} and "1,024 positions" in notes[0]


def test_other_errors_are_not_taken_for_want_of_memory():
    with pytest.raises(RuntimeError, match="size mismatch"):
        bench.measure("cpu", "float32", [16], [short_of_memory(0, RuntimeError("size mismatch"))], rounds=(1, 1))


# ------------------------------------------------------------------ the bytes that are counted


class Moved(TorchDispatchMode):
    """Numbers that operations read and write, tables aside; a view moves none."""

    def __init__(self, tables):
        super().__init__()
        self.tables = {t.untyped_storage().data_ptr() for t in tables}
        self.count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        out = operation(*args, **(kwargs or {}))
        read = [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(t, torch.Tensor)]
        if out.untyped_storage().data_ptr() not in {t.untyped_storage().data_ptr() for t in read}:
            self.count += sum(numbers(t) for t in [out, *read] if t.untyped_storage().data_ptr() not in self.tables)
        return out


def numbers(tensor):
    return tensor.numel() * (2 if tensor.is_complex() else 1)


@pytest.mark.parametrize("variant", [bench.TEXTBOOK, bench.COMPLEX], ids=lambda v: v.name)
def test_moves_are_counted_right(variant):
    q, k = bench._inputs(32, torch.float32, "cpu", sets=1)[0]
    table = bench._tables(variant, torch.arange(32), torch.float32, "cpu")
    with torch.no_grad(), Moved(table if isinstance(table, list) else [table]) as moved:
        variant.rotate(q, k, table)
    assert moved.count == variant.moves * (q.numel() + k.numel())


# ------------------------------------------------------------------ the cell of chapter 5


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
    assert cell.still() == again.still()
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_the_cell_is_quick_on_a_cpu():
    begin = time.process_time()
    bench.rope_at_scale("cpu")
    assert time.process_time() - begin < 10  # 2 s of one core; this is for machines that are busy and slow


def on_a_gpu(*, device="NVIDIA X", lengths=range(10, 18)):
    names = ["fused", "textbook formula", "complex numbers", "copy into a new tensor"]
    rows = [
        {
            "variant": name,
            "dtype": "float32",
            "passes": passes,
            "length": 2**n,
            "milliseconds": 2.0**n * (i + 1) / 1e4,
            "share_of_copy_new": 1 / (i + 1),
        }
        for n in lengths
        for i, name in enumerate(names)
        for passes in (bench.FORWARD, bench.BACKWARD)
    ]
    return {"device": device, "gpu": True, "rows": rows, "notes": []}


def test_with_a_gpu_the_first_picture_says_the_same():
    explorer = bench.RopeAtScale(on_a_gpu()).explorer()
    assert explorer.sentence == COUNTED and explorer.controls["exponent"].max == 17
    explorer.controls["show"].value = "measured, forward"
    assert explorer.sentence == (
        "NVIDIA X: 1,024 positions, forward: fused 0.102 ms, 2.0 times as fast as the textbook "
        "formula, at 100% of a copy's speed."
    )


def test_every_state_has_its_curves_and_a_short_sentence(cell):
    shows = cell.view.controls[0].options
    assert shows == ("counted", "measured, forward", "measured, with backward")
    for show in shows:
        for exponent in range(7, 11):
            view, figure, sentence = cell.view.drawn(show=show, exponent=exponent)
            assert len(sentence) <= 220 and f"{2**exponent:,} positions" in sentence
            assert show == "counted" or sentence.startswith(
                "No GPU here and no figures of one recorded: small sizes on the CPU. CPU, "
            )
            for name, curves in view.curves.items():
                for curve in curves:
                    assert list(curve.get_xdata()) == [128, 256, 512, 1024] and min(curve.get_ydata()) > 0
            low, high = view.floor.axes.get_ylim()
            assert low < min(view.floor.get_ydata()) and max(view.curves["textbook formula"][0].get_ydata()) < high
            assert list(view.here[0].get_xdata()) == [2**exponent] * 2


def test_the_curves_are_the_rows():
    source = on_a_gpu()
    view, _, _ = bench.RopeAtScale(source).drawn(show="measured, with backward")
    right = [
        row["milliseconds"] for row in source["rows"] if row["variant"] == "fused" and row["passes"] == bench.BACKWARD
    ]
    assert list(view.curves["fused"][0].get_ydata()) == right
    assert list(view.curves["textbook formula"][1].get_ydata()) == [0.5] * 8


def test_recorded_figures_are_shown_where_there_are_some(tmp_path, cell):
    assert bench.recorded(tmp_path / "none.json") is None
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(on_a_gpu(device="NVIDIA Y", lengths=range(10, 12))))
    view = bench.RopeAtScale(on_a_gpu(device="CPU, 2 threads", lengths=range(7, 11)), bench.recorded(file))
    explorer = view.explorer()
    explorer.controls["show"].value = "recorded on NVIDIA Y"
    assert explorer.sentence.startswith("NVIDIA Y: 1,024 positions, forward: fused")
    explorer.controls["exponent"].value = 8
    assert explorer.sentence.startswith("NVIDIA Y: 256 positions were not measured.")


def test_no_figures_are_shipped_that_name_no_gpu():
    if bench.RECORDED.exists():
        found = bench.recorded()
        assert (
            found["gpu"]
            and found["rows"]
            and all(found[key] for key in ("device", "driver", "torch", "date", "command"))
        )


# ------------------------------------------------------------------ the script


def test_the_script_prints_every_variant_and_writes_what_the_cell_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        bench, "_compiled", lambda device: ([], "torch.compile is left out: it does not work here (test).")
    )
    file = tmp_path / "rope.json"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--lengths", "16", "32", "--seconds", "0.01", "--json", str(file)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    said = capsys.readouterr().out
    for variant in VARIANTS:
        assert f"\n{variant.name}" in said
    assert "Memory sets the floor" in said and "torch.compile is left out" in said
    assert "ns a position, bfloat16, forward and backward" in said and "the fastest of ours, new tensors" in said
    found = bench.recorded(file)
    assert {row["length"] for row in found["rows"]} == {16, 32} and not found["gpu"]
    assert set(found) == {"device", "driver", "torch", "python", "date", "gpu", "command", "rows", "notes"}
