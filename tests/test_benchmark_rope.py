"""The benchmark of RoPE: every variant is right, the arithmetic of its table holds, it says what it could not do."""

import importlib.util
import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import rope_measure
from posviz import bench, rope_frequencies
from rope_measure import COPY_NEW, COPY_OVER, error, measure, tolerance
from rope_variants import COMPLEX, LIBRARIES, NUMPY, TEXTBOOK, own, variants

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "rope.py"
VARIANTS = [*own("cpu")[0], *NUMPY, *LIBRARIES["transformers"].variants, *LIBRARIES["rotary-embedding-torch"].variants]
CASES = [(v, dtype) for v in VARIANTS for dtype in v.dtypes]


# ------------------------------------------------------------------ correctness


@pytest.mark.parametrize(("variant", "dtype"), CASES, ids=[f"{v.name}, {v.layout}, {dtype}" for v, dtype in CASES])
def test_every_variant_is_right_up_to_a_million_positions(variant, dtype):
    assert error(variant, dtype) <= tolerance(variant, dtype)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own
def test_the_compiled_form_is_right_or_left_out_with_a_reason():
    found, notes = variants("cpu")
    compiled = [v for v in found if v.name == "posviz, torch.compile"]
    said = [note for note in notes if note.startswith("torch.compile is left out: it does not work here (")]
    assert len(compiled) == (0 if said else 2)
    for variant in compiled:
        assert error(variant, "float32") <= 1e-6


def test_without_a_compiler_the_compiled_form_is_left_out_in_one_sentence(monkeypatch):
    monkeypatch.setattr(bench, "compiled", lambda device: (bench.rotate_pairs, "No working C++ compiler found"))
    found, notes = variants("cpu")
    assert "torch.compile is left out: it does not work here (No working C++ compiler found)." in notes
    assert not any("compile" in v.name for v in found)


def test_libraries_that_cannot_run_here_are_named(monkeypatch):
    monkeypatch.setattr(bench, "compiled", lambda device: (bench.rotate_pairs, "test"))
    found, notes = variants("cpu")
    assert "flash-attn is left out: its kernel needs a GPU." in notes
    assert {"transformers", "rotary-embedding-torch"} <= {v.name for v in found}
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else find(name))
    found, notes = variants("cpu")
    assert "transformers is left out: the package transformers is not installed." in notes
    assert "transformers" not in {v.name for v in found}


def test_on_a_gpu_the_kernel_is_compared_where_triton_is_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    found, notes = own("cuda")
    kernels = [(v.name, v.layout, v.backward) for v in found if "kernel" in v.name]
    assert not notes and sorted(kernels) == [
        ("posviz, fused kernel", "half", True),
        ("posviz, fused kernel", "interleaved", True),
        ("posviz, fused kernel, in place", "half", False),
        ("posviz, fused kernel, in place", "interleaved", False),
    ]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found, notes = own("cuda")
    assert notes == ["The fused kernel is left out: the package triton is not installed."]
    assert not any("kernel" in v.name for v in found)
    assert error(found[0], "float32") <= 1e-6 and error(found[1], "float32") <= 1e-6  # the plain form, run here


def negative(cos, sin, dtype):
    return bench.textbook(cos, -sin, dtype)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(VARIANTS[0], layout="interleaved"),
        replace(TEXTBOOK, way=negative),
        replace(COMPLEX, way=lambda cos, sin, dtype: lambda q, k: [q, k]),
    ],
    ids=["layout", "sign", "identity"],
)
def test_a_wrong_variant_is_not_timed(wrong):
    with pytest.raises(ArithmeticError, match=f"{wrong.name}, .*: error"):
        measure("cpu", "float32", [16], [wrong])


def test_float32_angles_would_be_found_out():
    """What libraries do by themselves: 2.9e-2 at a million positions."""
    angles = rope_frequencies(128) * 1e6
    lost = torch.cos(torch.tensor(angles, dtype=torch.float32)).double() - torch.cos(torch.tensor(angles))
    assert lost.abs().max() > 1e-2 > 1e3 * tolerance(TEXTBOOK, "float32")


# ------------------------------------------------------------------ the table


@pytest.fixture(scope="module")
def rows():
    chosen = [v for v in VARIANTS if v.kind == "torch"]
    found, notes = measure("cpu", "float32", [16, 32], chosen, rounds=(3, 3))
    both, more = measure("cpu", "bfloat16", [16], chosen, bench.BACKWARD, rounds=(3, 3), peak=False)
    assert not notes + more
    return found + both


def test_one_row_a_variant_and_length(rows):
    forward = [row for row in rows if row["passes"] == bench.FORWARD]
    named = [(v.name, v.layout) for v in [*VARIANTS, COPY_NEW, COPY_OVER] if v.kind != "NumPy"]
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


@pytest.mark.parametrize("passes, times", [(bench.FORWARD, 1), (bench.BACKWARD, 2)])
def test_a_copy_over_moves_as_many_bytes_as_one_into_new_tensors(passes, times):
    inputs = bench.random_inputs(16, torch.float32, "cpu")
    run = rope_measure._copying_over(inputs, passes)
    first, second = run(0), run(1)
    assert len(first) == 2 * times and {x.data_ptr() for x in first} == {x.data_ptr() for x in second}
    assert all(torch.equal(x, y) for x, y in zip(second, inputs[1]))


def test_inputs_rotate_and_the_first_round_is_not_counted():
    seen = []

    def way(cos, sin, dtype):
        rotate = bench.by_complex_numbers(cos, sin, dtype)
        return lambda q, k: seen.append(q.data_ptr()) or rotate(q, k)

    found, _ = measure("cpu", "float32", [16], [replace(COMPLEX, way=way)], rounds=(4, 4), peak=False)
    assert found[0]["rounds"] == 4 and len(seen) == 1 + 1 + 4  # check, warm-up, rounds
    assert len(set(seen[2:])) == 4


def test_peak_memory_tells_one_pass_from_many():
    tall = 2048
    found, _ = measure("cpu", "float32", [tall], [VARIANTS[0], TEXTBOOK], rounds=(1, 1))
    peak = {row["variant"]: row["peak_bytes"] for row in found}
    result = (32 + 8) * tall * 128 * 4
    if peak["posviz"] is not None:  # Linux only
        assert 0.9 * result < peak["posviz"] < 1.3 * result < peak["textbook formula"]


# ------------------------------------------------------------------ memory runs out


def short_of_memory(at_most, error):
    def way(cos, sin, dtype):
        rotate = bench.textbook(cos, sin, dtype)

        def fails(q, k):
            if q.shape[-2] > at_most and q.shape[-2] != 64:  # 64: the check before the timing
                raise error
            return rotate(q, k)

        return fails

    return replace(TEXTBOOK, way=way)


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
    found, notes = measure(
        "cpu", "float32", [16, 32, 128, 256], [short_of_memory(32, error)], rounds=(1, 1), peak=False
    )
    assert sorted({row["length"] for row in found}) == [16, 32]
    assert notes == ["Memory ran out at 128 positions (float32, forward); longer texts are left out."]


def test_it_steps_down_when_not_even_the_first_length_fits():
    found, notes = measure(
        "cpu", "float32", [256, 512], [short_of_memory(64, MemoryError())], rounds=(1, 1), peak=False
    )
    assert {row["length"] for row in found} == {64}
    assert notes == [
        "Memory ran out at 256 positions (float32, forward); 128 are tried instead.",
        "Memory ran out at 128 positions (float32, forward); 64 are tried instead.",
    ]


def test_it_gives_up_when_nothing_fits():
    found, notes = measure("cpu", "float32", [32], [short_of_memory(0, MemoryError())], rounds=(1, 1))
    assert not found and notes[-1] == "Memory ran out at 16 positions (float32, forward); longer texts are left out."


def test_a_cpu_is_not_filled_to_the_brim(monkeypatch):
    monkeypatch.setattr(rope_measure, "_free_memory", lambda: 160 * 2**20)
    found, notes = measure("cpu", "float32", [16, 1024], [COMPLEX], rounds=(1, 1), peak=False)
    assert {row["length"] for row in found} == {16} and "1,024 positions" in notes[0]


def test_other_errors_are_not_taken_for_want_of_memory():
    with pytest.raises(RuntimeError, match="size mismatch"):
        measure("cpu", "float32", [16], [short_of_memory(0, RuntimeError("size mismatch"))], rounds=(1, 1))


# ------------------------------------------------------------------ the script


def test_the_script_prints_every_variant_and_writes_the_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "compiled", lambda device: (bench.rotate_pairs, "test"))
    file = tmp_path / "rope.json"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--lengths", "16", "32", "--seconds", "0.01", "--json", str(file)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    said = capsys.readouterr().out
    for variant in VARIANTS:
        assert f"\n{variant.name}" in said
    assert "Memory sets the floor" in said
    assert "torch.compile is left out: it does not work here (test)." in said
    assert "ns a position, bfloat16, forward and backward" in said and "the fastest of ours, new tensors" in said
    found = json.loads(file.read_text())
    assert {row["length"] for row in found["rows"]} == {16, 32}
    assert set(found) == {"device", "driver", "torch", "python", "date", "command", "rows", "notes"}
