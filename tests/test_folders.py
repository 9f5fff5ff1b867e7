"""What the tools write: never over other people's files, never from chapters that have nothing to show."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import book
import folders
import pages
import slides
import student

TOOLS = Path(student.__file__).parent
every_tool = pytest.mark.parametrize("tool", [book, slides, student], ids=lambda tool: tool.__name__)
of_chapters = pytest.mark.parametrize("tool", [book, slides], ids=lambda tool: tool.__name__)


def test_a_folder_is_emptied_only_by_the_tool_that_made_it(tmp_path):
    folder = folders.emptied(tmp_path / "new" / "folder", "one")
    (folder / "page.html").write_text("old")
    assert folders.emptied(folder, "one") == folder
    assert [path.name for path in folder.iterdir()] == [folders.MARK]
    (folder / "page.html").write_text("kept")
    with pytest.raises(FileExistsError, match="holds files that another did not write"):
        folders.emptied(folder, "another")
    assert (folder / "page.html").read_text() == "kept"


def test_an_empty_folder_may_be_used(tmp_path):
    assert folders.emptied(tmp_path, "one") == tmp_path


@every_tool
def test_a_folder_with_a_file_is_refused_in_one_sentence_and_the_file_stays(tool, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    command = [sys.executable, TOOLS / f"{tool.__name__}.py", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1 and run.stdout == ""
    assert run.stderr.splitlines() == [
        f"{tmp_path} holds files that tools/{tool.__name__}.py did not write: remove it, or name another folder"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.fixture
def stripped(tmp_path, monkeypatch):
    """One chapter, its outputs removed; a function says whether the execution counts go too."""

    def strip(counts):
        notebook = json.loads(pages.CHAPTERS[1].read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = []
                cell["execution_count"] = None if counts else cell["execution_count"]
        path = tmp_path / pages.CHAPTERS[1].name
        path.write_text(json.dumps(notebook), encoding="utf-8")
        monkeypatch.setattr(pages, "CHAPTERS", [path])

    return strip


@of_chapters
@pytest.mark.parametrize("counts, words", [(True, "code cells were not run"), (False, "none of its outputs is stored")])
def test_a_chapter_without_its_outputs_is_refused_and_nothing_is_written(tool, counts, words, stripped, tmp_path):
    stripped(counts)
    with pytest.raises(ValueError, match=f"^01_what.ipynb: .*{words}\n.*make notebooks"):
        tool.build(tmp_path / "built")
    assert not (tmp_path / "built").exists()


@of_chapters
def test_a_chapter_that_is_not_there_is_refused(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "CHAPTERS", pages.CHAPTERS[1:2])
    with pytest.raises(ValueError, match="there is no chapter 05_rop; there are 01_what"):
        tool.build(tmp_path / "built", ["05_rop"])
    assert not (tmp_path / "built").exists()
