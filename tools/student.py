"""A copy of the course to hand out, `make student`: solutions and teacher's notes are gone, exercises and checks stay.

    python tools/student.py [folder]                 into student/

The copy holds all that a student needs to run it: notebooks, package, requirements, licence, and a README of its own,
web/student.md. The checks are part of the package, and who reads posviz/quiz can work out some answers from them;
docs/teaching.md says so.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import folders
import notebooks

ROOT = Path(__file__).resolve().parent.parent
KEPT = ("LICENSE", "NOTICE", "requirements.txt", "environment.yml", "pyproject.toml", "posviz", "jupyter-config")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".ipynb_checkpoints")


def build(folder):
    """Write the copy into `folder`, which an earlier copy is emptied from; the notebooks written.

    Raises FileExistsError for a folder with other files.
    """
    folder = folders.emptied(folder, "tools/student.py")
    (folder / "notebooks").mkdir()
    for name in KEPT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
        else:
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copyfile(ROOT / "tools" / "web" / "student.md", folder / "README.md")
    written = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        written.append(folder / "notebooks" / path.name)
        written[-1].write_bytes(for_students(path.read_bytes()))
    return written


def for_students(content):
    """The bytes of a notebook without its solutions and the teacher's notes. Nothing else changes, byte by byte."""
    notebook = json.loads(content)
    notebook["cells"] = [cell for cell in notebook["cells"] if not notebooks.is_teachers(cell)]
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode("utf-8")


def main():
    parser = argparse.ArgumentParser(description="Write a copy of the course without solutions and teacher's notes.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "student")
    options = parser.parse_args()
    try:
        written = build(options.folder)
    except FileExistsError as error:
        sys.exit(str(error))
    found = [f"{path.name}: {problem}" for path in written for problem in notebooks.problems(path, solutions=False)]
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(f"{options.folder}: the copy for students, without solutions and teacher's notes")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
