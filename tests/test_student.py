"""The copy for students: no solution and no teacher's note is left, every check is, and its README is true."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import notebooks
import student

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("student")
    student.build(folder)
    return folder


def cells_of(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_every_chapter_is_in_the_copy_and_passes_the_lints(copy):
    written = sorted((copy / "notebooks").glob("*.ipynb"))
    assert [path.name for path in written] == [path.name for path in NOTEBOOKS]
    for path in written:
        assert notebooks.problems(path, solutions=False) == []


def test_the_lints_find_a_solution_and_a_note_that_were_left():
    found = notebooks.problems(NOTEBOOKS[0], solutions=False)
    left = [cell for cell in cells_of(NOTEBOOKS[0]) if notebooks.is_teachers(cell)]
    assert len(found) == len(left) > 0
    assert all("a solution or a teacher's note in a copy for students" in problem for problem in found)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_the_solutions_and_the_teachers_notes_are_gone(path, copy):
    before, after = cells_of(path), cells_of(copy / "notebooks" / path.name)
    assert after == [cell for cell in before if not notebooks.is_teachers(cell)]
    assert len(after) < len(before)
    text = (copy / "notebooks" / path.name).read_text(encoding="utf-8")
    assert "<summary>Solution" not in text and "For the teacher" not in text
    for cell in before:
        if "solution" in notebooks.tags(cell):
            assert notebooks.solution_code(cell) not in "\n".join(notebooks.source(kept) for kept in after)
    checks = [
        set(re.findall(r"quiz\.check\(\s*[\"']([\d.]+)", "".join(map(notebooks.source, cells))))
        for cells in (before, after)
    ]
    assert checks[0] == checks[1]


def test_a_solution_runs_in_the_copy_and_is_found_right(copy):
    """The student's package is the one that answers, not the one under test."""
    code = "from posviz import quiz; import posviz; print(posviz.__file__); quiz.check('5.1', 2.0)"
    run = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=True)
    file, answer = run.stdout.splitlines()
    assert Path(file).is_relative_to(copy.resolve()) and "right" in answer


def test_the_readme_is_short_and_names_only_what_the_copy_has(copy):
    text = (copy / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) < 250 and "make" not in re.findall(r"\w+", text)
    assert not (copy / "Makefile").exists()
    named = re.findall(r"`(notebooks/[^`]*)`", text)
    assert named and all((copy / name).exists() for name in named)
    assert text.count("-m posviz notebooks") == 2
