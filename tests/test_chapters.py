"""One stem a chapter: its notebook, its pictures, its exercises and the tests of its pictures are named alike."""

import json
from pathlib import Path

import pytest

from posviz.chapters import STEMS

ROOT = Path(__file__).resolve().parent.parent
NOT_A_CHAPTER = {"__init__", "__main__", "base", "parts"}  # what the chapters share


def stems(pattern, prefix=""):
    """The stems of the files of a kind, what the chapters share left out."""
    return {path.stem.removeprefix(prefix) for path in ROOT.glob(pattern)} - NOT_A_CHAPTER


def test_a_chapter_has_one_notebook_named_for_its_number_and_stem():
    found = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert found == [f"{number:02}_{stem}.ipynb" for number, stem in enumerate(STEMS)]


def test_a_chapter_has_one_module_of_pictures_one_of_exercises_and_one_test_of_its_pictures():
    assert stems("posviz/views/*.py") == stems("posviz/quiz/*.py") == set(STEMS)
    assert stems("tests/test_views_*.py", "test_views_") == set(STEMS)


def test_the_stems_stand_in_one_place():
    """Code asks `posviz.chapters`; only what names one module (an import, a path in a sentence) spells a stem."""
    listed = "absolute", "relative", "rope", "extrapolation", "alibi"
    python = [path for folder in ("posviz", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    lists = [
        path.name
        for path in python
        if all(f'"{stem}"' in path.read_text(encoding="utf-8") for stem in listed) and path.name != "chapters.py"
    ]
    assert lists == []


@pytest.mark.parametrize("name", ["03_absolute", "04_relative"])
def test_a_cell_run_again_after_the_whole_chapter_finds_what_it_needs(name):
    """A name that a later cell takes for something else must not be one that an earlier cell still reads."""
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names = {}
    for source in [*code, *code]:
        exec(source, names)
