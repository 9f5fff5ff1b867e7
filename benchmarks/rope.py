"""RoPE on q and k of one LLaMA-like layer: time, memory speed and error of every way to write it, in one run.

    python benchmarks/rope.py                         CPU or GPU, 1k to 128k positions, about 15 minutes on 2 cores
    python benchmarks/rope.py --lengths 1024 8192 --dtypes float32
    python benchmarks/rope.py --json rope.json        also the rows, with device, versions and date, in a file

Of each variant the table gives
  ms          the median of rounds in which all variants take turns on inputs that rotate; warm-up not counted
  GB/s        bytes that must move (q and k in and out, once more for the gradients) ÷ time
  copy new    that speed as a share of a copy of q and k into new tensors (a CPU must first map fresh memory for those)
  copy over   the same for a copy over tensors that exist
  ratio       time of the best alternative of the same layout and kind ÷ time: above 1 is faster
  peak        most memory in use during one run, above q, k and the table
  error       largest error against float64 at positions up to 10^6, as a share of the length of the pair
Tables of cos and sin are made beforehand, for all variants from the same float64 angles.
"""

import argparse
import itertools
import json
import shlex
import sys

import torch._dynamo

from posviz.bench import BACKWARD, FORWARD, best_device
from posviz.lab.progress import Progress
from rope_measure import machine, measure
from rope_variants import variants


def show(rows):
    """The table of one length."""
    first = rows[0]
    copies = {row["variant"]: row["milliseconds"] for row in rows if not row["layout"]}
    print(
        f"\n{first['dtype']}, {first['passes']}, {first['length']:,} positions, {first['heads']} + "
        f"{first['key_heads']} heads of {first['dim']}: {first['bytes'] / 2**20:,.0f} MiB must move; "
        + ", ".join(f"{name} {took:.2f} ms" for name, took in copies.items())
    )
    print(
        f"{'variant':34} {'layout':12} {'ms':>9} {'GB/s':>7} {'copy new':>9} {'copy over':>9} {'ratio':>6} "
        f"{'peak MiB':>9} {'error':>8}"
    )
    for row in rows:
        if row["layout"]:
            peak = "" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:,.0f}"
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
            print(
                f"{row['variant']:34} {row['layout']:12} {row['milliseconds']:9.2f} "
                f"{row['bytes_per_second'] / 1e9:7.1f} {row['share_of_copy_new']:9.0%} "
                f"{row['share_of_copy_over']:9.0%} {ratio:>6} {peak:>9} {row['error']:8.1e}",
                flush=True,
            )


def growth(rows, dtype, passes):
    """Nanoseconds a position at each length: flat where the cost is proportional to the length."""
    rows = [row for row in rows if row["dtype"] == dtype and row["passes"] == passes]
    lengths = sorted({row["length"] for row in rows})
    print(f"\nns a position, {dtype}, {passes}" + "".join(f"{length:>12,}" for length in lengths))
    for name, layout in dict.fromkeys((row["variant"], row["layout"]) for row in rows):
        cells = {
            row["length"]: row["milliseconds"] * 1e6 / row["length"]
            for row in rows
            if (row["variant"], row["layout"]) == (name, layout)
        }
        print(f"{name:34} {layout:12}" + "".join(f"{cells[length]:12,.0f}" for length in lengths))


def verdict(rows):
    """Of each of ours, and of the fastest of ours at each shape: the lowest ratio to the best other of its layout."""
    ours = [row for row in rows if row["ours"] and row["ratio"] is not None]
    print("\nTimes as fast as the best alternative of the same layout, at the shape where that is lowest:")
    for name, layout in dict.fromkeys((row["variant"], row["layout"]) for row in ours):
        lowest("  " + name, layout, [row for row in ours if (row["variant"], row["layout"]) == (name, layout)])
    for layout in ("half", "interleaved"):
        fastest = {}
        for row in ours:
            if row["layout"] == layout and "NumPy" not in row["variant"] and "in place" not in row["variant"]:
                shape = row["dtype"], row["passes"], row["length"]
                fastest[shape] = max(row, fastest.get(shape, row), key=lambda row: row["ratio"])
        lowest("  the fastest of ours, new tensors", layout, list(fastest.values()))


def lowest(name, layout, rows):
    if rows:
        row = min(rows, key=lambda row: row["ratio"])
        print(
            f"{name:36} {layout:12} {row['ratio']:6.2f}   {row['length']:,} positions, {row['dtype']}, {row['passes']}"
        )


def options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default=best_device(), choices=("cpu", "cuda", "mps"))
    parser.add_argument("--lengths", type=int, nargs="+", default=[2**10, 2**12, 2**15, 2**17])
    dtypes = ("float32", "bfloat16", "float16")
    parser.add_argument("--dtypes", nargs="+", default=dtypes[:2], choices=dtypes)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each length, after the fewest rounds")
    parser.add_argument(
        "--json", help="also write the rows, with device, driver, versions, date and command, to this file"
    )
    return parser.parse_args()


def main():
    given = options()
    torch._dynamo.config.recompile_limit = 64  # one compilation for each dtype, layout, pass and head count
    chosen, notes = variants(given.device)
    about = machine(given.device) | {"command": shlex.join(["python", "benchmarks/rope.py", *sys.argv[1:]])}
    print("; ".join(f"{key} {value}" for key, value in about.items()))
    print(
        "6 operations and 4 numbers a pair: 0.375 operations a byte in float32, 0.75 in 16 bits. Memory sets the floor."
    )
    print(*notes, sep="\n")
    rows, done = [], itertools.count(1)
    with Progress("measuring RoPE", 2 * len(given.dtypes) * len(given.lengths)) as bar:

        def say(note):
            bar.update(next(done), note)

        for dtype, passes in itertools.product(given.dtypes, (FORWARD, BACKWARD)):
            found, said = measure(given.device, dtype, given.lengths, chosen, passes, seconds=given.seconds, say=say)
            rows, notes = rows + found, notes + said
            for length in sorted({row["length"] for row in found}):
                show([row for row in found if row["length"] == length])
            print("", *said, sep="\n")
            growth(rows, dtype, passes)
    verdict(rows)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(about | {"rows": rows, "notes": notes}, file, indent=1)


if __name__ == "__main__":
    torch.manual_seed(1)
    main()
