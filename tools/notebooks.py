"""Run the chapters and store what they show, byte for byte the same every time; or check what is stored.

    python tools/notebooks.py                            all chapters
    python tools/notebooks.py notebooks/05_rope.ipynb    the named ones
    python tools/notebooks.py --check                    run nothing, say what is wrong with the stored files

A stored chapter holds text and still pictures only. Live widgets come back when a reader runs the cell; their
identifiers would differ from run to run and are dead in a fresh copy. tests/test_notebooks.py applies `problems` to
every chapter.
"""

import argparse
import base64
import json
import os
import re
import struct
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from posviz.server import without_empty

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
    "posviz": {"chapter": True},  # by this posviz.server knows one: a save in JupyterLab leaves language_info as it is
}
CELL_METADATA = {"slideshow", "tags"}
WIDGET = "application/vnd.jupyter.widget-view+json"
STORED = {"text/plain", "text/html", "text/markdown", "text/latex", "image/png"}
SLIDES = {"slide", "subslide", "fragment", "skip", "notes"}
LONGEST_CELL = 15  # lines that are not blank
SHORTEST_SENTENCE = 25  # characters
WIDEST_PICTURE = 960  # pixels
LARGEST_FILE = 1_000_000  # bytes
UNREPEATABLE = {
    "an address": re.compile(r"\b0x[0-9a-fA-F]{6,}"),
    "a duration": re.compile(r"\d\s?(ns|µs|us|ms|s|sec|seconds?|minutes?)\b(?!/)|\bit/s\b|\bs/it\b"),
    "a path of one machine": re.compile(r"(?<![\w.])(/home/|/root/|/tmp/|/usr/|/Users/|[A-Z]:\\)"),
}


def run(path):
    """Run the notebook at `path` in a fresh kernel; the bytes to store. CellExecutionError if a cell fails."""
    notebook = read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(Path(path).parent)}},
    )
    client.execute()
    return stored(notebook)


def read(path):
    """The notebook at `path` as nbformat 4.5, with the cell ids it has and a repeatable id where it has none."""
    raw = json.loads(Path(path).read_text(encoding="utf-8"))
    taken = set()
    for number, cell in enumerate(raw["cells"], 1):
        if not re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", cell.get("id", "")) or cell["id"] in taken:
            cell["id"] = next(name for name in (f"cell-{n}" for n in range(number, 10**6)) if name not in taken)
        taken.add(cell["id"])
    raw["nbformat"], raw["nbformat_minor"] = 4, 5
    return nbformat.reads(json.dumps(raw), as_version=4)


def stored(notebook):
    """The bytes of a notebook that was run, without anything that lives only in this session."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type == "code":
            cell.outputs = without_empty(cell.outputs)
        for output in cell.get("outputs", []):
            if "data" in output:
                if WIDGET in output.data and "image/png" not in output.data:
                    raise ValueError(f"cell {cell.id} shows a widget without a still picture")
                output.data.pop(WIDGET, None)
                alt = output.metadata.get("image/png", {}).get("alt")
                kept = {"image/png": {"alt": alt}} if alt else {}
                if "posviz" in output.metadata:  # the view of a picture and its values, from which a page can redraw it
                    kept["posviz"] = output.metadata["posviz"]
                output.metadata = nbformat.from_dict(kept)
    nbformat.validate(notebook)
    return (nbformat.writes(notebook) + "\n").encode("utf-8")


def store(path, content):
    """Replace the file in one step, and only where a byte differs; whether it did."""
    path = Path(path)
    if path.read_bytes() == content:
        return False
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
        part.write(content)
    os.chmod(part.name, path.stat().st_mode)
    os.replace(part.name, path)
    return True


def problems(path, solutions=True):
    """What is wrong with the notebook stored at `path`: a list of sentences, empty for a good one.

    A copy for students has no `solutions`; then neither they nor teacher's notes may be left.
    """
    content = Path(path).read_bytes()
    notebook = json.loads(content)
    cells = notebook["cells"]
    found = []
    if len(content) >= LARGEST_FILE:
        found.append(f"the file has {len(content):,} bytes; it must stay under {LARGEST_FILE:,}")
    if notebook["metadata"] != METADATA:
        found.append(
            f"the metadata must be the kernelspec, the language and the mark alone; got {sorted(notebook['metadata'])}"
        )
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"execution counts are not those of one clean run: {counts}")
    ids = [cell.get("id") for cell in cells]
    if None in ids or len(set(ids)) < len(ids):
        found.append("cell ids are missing or repeated")
    for number, cell in enumerate(cells):
        following = cells[number + 1] if number + 1 < len(cells) else None
        found += [
            f"cell {number} ({cell.get('id')}): {problem}" for problem in _cell_problems(cell, following, solutions)
        ]
    return found


def not_run(path):
    """What keeps the notebook at `path` from being shown as it is stored: a list of sentences, empty if it was run."""
    cells = [
        cell for cell in json.loads(Path(path).read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    waiting = sum(cell["execution_count"] is None for cell in cells)
    found = [f"{waiting} of its {len(cells)} code cells were not run"] if waiting else []
    if not waiting and cells and not any(cell["outputs"] for cell in cells):
        found.append("none of its outputs is stored")
    return found


def source(cell):
    """The text of a cell of a notebook read as JSON."""
    return "".join(cell["source"])


def tags(cell):
    return cell["metadata"].get("tags", [])


def is_teachers(cell):
    """Whether students are not to see a cell: a solution, or a note for the teacher."""
    return "solution" in tags(cell) or cell["metadata"].get("slideshow", {}).get("slide_type") == "notes"


def is_exercise(cell):
    return cell["cell_type"] == "code" and re.search(r"\bquiz\.check\(", source(cell)) is not None


def solution_code(cell):
    """The Python block of a folded solution, or None if the cell is not a well-formed one."""
    form = r"<details>\s*<summary>Solution</summary>\n\n.*?```python\n(.*?)\n```\n.*\n</details>\s*"
    match = re.fullmatch(form, source(cell), re.DOTALL)
    return match and match[1]


def _cell_problems(cell, following, solutions):
    if cell["metadata"].get("slideshow", {}).get("slide_type") not in SLIDES:
        yield f"its slide type must be one of {', '.join(sorted(SLIDES))}"
    if set(cell["metadata"]) - CELL_METADATA:
        yield f"metadata that is not stored: {sorted(set(cell['metadata']) - CELL_METADATA)}"
    if not source(cell).strip():
        yield "it is empty"
    if not solutions and (is_teachers(cell) or solution_code(cell) is not None):
        yield "a solution or a teacher's note in a copy for students"
    if cell["cell_type"] != "code":
        return
    lines = [line for line in source(cell).splitlines() if line.strip()]
    if len(lines) > LONGEST_CELL:
        yield f"{len(lines)} lines of code; {LONGEST_CELL} at most"
    if any(re.match(r"\s*[%!]|.*\?\s*$", line.partition("#")[0]) for line in lines):
        yield "a magic, a shell line or a help line"
    if lines and lines[-1].rstrip().endswith(";"):
        yield "a last line that ends in a semicolon"
    if is_exercise(cell) and solutions:
        if following is None or "solution" not in tags(following) or solution_code(following) is None:
            yield "an exercise without its folded solution in the next cell"
        elif set(_checked(cell)) != set(_checked(following)):
            yield f"it checks {_checked(cell)}, the solution after it {_checked(following)}"
    for output in cell["outputs"]:
        yield from _output_problems(output)


def _checked(cell):
    return re.findall(r"quiz\.check\(\s*[\"']([^\"']+)", source(cell))


def _output_problems(output):
    if output["output_type"] == "error":
        yield f"an error is stored: {output['ename']}"
    if output.get("name") == "stderr":
        yield "a warning or other text on stderr is stored"
    data = output.get("data", {})
    if set(data) - STORED:
        yield f"output that is not stored: {', '.join(sorted(set(data) - STORED))}"
    texts = ["".join(output.get("text", ""))] + ["".join(data[kind]) for kind in data if kind.startswith("text/")]
    for what, pattern in UNREPEATABLE.items():
        for text in texts:
            if match := pattern.search(text):
                yield f"{what} in its output: {text[max(0, match.start() - 20) : match.end() + 10]!r}"
    if "image/png" in data:
        sentence = "".join(data.get("text/plain", ""))
        if len(sentence) < SHORTEST_SENTENCE or sentence.startswith("<"):
            yield f"a picture without its sentence: {sentence!r}"
        elif sentence not in output["metadata"].get("image/png", {}).get("alt", ""):
            yield "a picture whose alternative text does not hold its sentence"
        elif "posviz" not in output["metadata"]:  # exports would leave its alternative text out
            yield "a picture without a word in its metadata that posviz drew it"
        width, _ = struct.unpack(">II", base64.b64decode("".join(data["image/png"]))[16:24])
        if width > WIDEST_PICTURE:
            yield f"a picture {width} pixels wide; {WIDEST_PICTURE} at most"


def main():
    parser = argparse.ArgumentParser(description="Run the chapters and store their outputs.")
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; all chapters if none is named")
    parser.add_argument("--check", action="store_true", help="run nothing; list what is wrong with the stored files")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as settings:  # the reader's own IPython settings have no say in what is stored
        os.environ.update(IPYTHONDIR=settings, OMP_NUM_THREADS="1")
        for path in options.paths or sorted(FOLDER.glob("*.ipynb")):
            if not options.check:
                try:
                    changed = store(path, run(path))
                except (CellExecutionError, ValueError) as error:
                    print(f"{path.name}: not stored. {error}", file=sys.stderr)
                    failed = True
                    continue
                print(f"{path.name}: {'stored' if changed else 'unchanged'}", flush=True)
            for problem in problems(path):
                print(f"{path.name}: {problem}", file=sys.stderr)
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
