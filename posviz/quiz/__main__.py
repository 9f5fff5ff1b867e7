"""Who has which exercise right: `python -m posviz.quiz collect *.ipynb` reads notebooks that were handed in.

It reads the outputs that they were saved with. With --run it runs each answer again, in a process of its own with a
time limit, after the cell of imports and the cells without a check that stand among the exercises. Such code can do
what you can do: run it where that is no harm. What is found is for teaching, not for marks.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = re.compile(r"^[^#\n]*\bquiz\.check\(\s*[\"']([\d.]+)[\"']", re.M)
WORDS = {"right": "right", "not yet": "wrong", "not answered yet": "open"}


def source(cell):
    return "".join(cell["source"])


def verdict(id, printed):
    """right, wrong, open, or nothing: what the last line about exercise `id` says in what a cell printed."""
    found = re.findall(rf"^Exercise {re.escape(id)}: ({'|'.join(WORDS)})\.", printed, re.M)
    return WORDS[found[-1]] if found else ""


def saved(cell, id, before):
    """What a cell says of an exercise in the outputs that it was saved with."""
    return verdict(id, "".join("".join(output.get("text", "")) for output in cell["outputs"]))


def run_again(seconds):
    """A function like `saved` that runs the cell."""

    def run(cell, id, before):
        code = "\n\n".join([*before, source(cell)])
        settings = os.environ | {"MPLBACKEND": "agg", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            command, pipes = [sys.executable, "-P", "-"], {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            try:
                done = subprocess.run(command, input=code.encode(), cwd=folder, env=settings, timeout=seconds, **pipes)
            except subprocess.TimeoutExpired:
                return "too long"
        return verdict(id, done.stdout.decode("utf-8", "replace")) or "stops"

    return run


def collect(path, look=saved):
    """{id of an exercise: right, wrong, open, or nothing where it was not run} of the notebook at `path`.

    With run_again(seconds) for `look` also "stops" and "too long". ValueError for a file that is no notebook.
    """
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        found, before, among = {}, [], False
        for cell in cells:
            among |= cell["cell_type"] == "markdown" and source(cell).startswith("## Exercises")
            if cell["cell_type"] != "code":
                continue
            ids = CHECK.findall(source(cell))
            if not ids and (among or "setup" in cell["metadata"].get("tags", [])):
                before.append(source(cell))
            found |= {id: look(cell, id, before) for id in ids}
    except (OSError, UnicodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a notebook that can be read ({type(error).__name__})") from None
    return found


def table(found):
    """The lines of a table: a file a line, an exercise a column, below them how many have it right."""
    ids = sorted({id for states in found.values() for id in states}, key=lambda id: [*map(int, id.split("."))])
    right = {id: str(sum(states.get(id) == "right" for states in found.values())) for id in ids}
    rows = [("", dict(zip(ids, ids))), *found.items(), ("right", right)]
    first = max(len(str(name)) for name, _ in rows)
    return [f"{name!s:{first}}" + "".join(f"{states.get(id) or '-':>10}" for id in ids) for name, states in rows]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m posviz.quiz", description=__doc__.partition("\n")[0])
    collecting = parser.add_subparsers(required=True).add_parser("collect", help="who has which exercise right")
    collecting.add_argument("notebooks", nargs="+", type=Path)
    collecting.add_argument("--run", action="store_true", help="run the answers again, with your rights")
    collecting.add_argument("--seconds", type=float, default=60, help="the most that one answer may take (default: 60)")
    options = parser.parse_args(arguments)
    found, refused = {}, []
    for path in options.notebooks:
        try:
            found[path] = collect(path, run_again(options.seconds) if options.run else saved)
        except ValueError as error:
            refused.append(str(error))
    print(*table(found), *refused, sep="\n")
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
