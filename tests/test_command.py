"""The command `posviz`: what it puts into a folder, what it leaves alone, what it refuses. No wheel, no JupyterLab.

tests/test_wheel.py tries the rest with an installed wheel.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from posviz import __main__ as command

ROOT = Path(__file__).parent.parent


@pytest.fixture
def deliver(tmp_path, monkeypatch):
    """deliver(version): from now on the command delivers chapters of this version."""
    delivered = tmp_path / "delivered"
    delivered.mkdir()
    monkeypatch.setattr(command, "chapters", lambda: delivered)

    def deliver(version):
        for name in command.NAMES:
            (delivered / f"{name}.ipynb").write_text(f"{name}, version {version}")

    deliver(1)
    return deliver


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "my folder ü 课"


def run(folder, capsys):
    """Copy only; the sentences said, without the last, which names the folder."""
    assert command.main([str(folder), "--copy-only"]) is None
    *sentences, last = capsys.readouterr().out.splitlines()
    assert last == f"The chapters are in {folder}"
    return sentences


def files(folder):
    return {file.name: file.read_text() for file in folder.iterdir() if file.name != command.RECORD}


def version(number, **own):
    return {f"{name}.ipynb": f"{name}, version {number}" for name in command.NAMES} | own


def test_the_chapters_are_those_of_the_repository():
    assert [path.stem for path in sorted(command.chapters().glob("*.ipynb"))] == list(command.NAMES)
    assert command.chapters() == ROOT / "notebooks"


def test_an_empty_folder_gets_every_chapter_and_a_second_run_changes_nothing(deliver, folder, capsys):
    assert run(folder, capsys) == []
    assert files(folder) == version(1)
    before = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert run(folder, capsys) == []
    assert {file: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_the_folder_is_posviz_course_where_none_is_named(deliver, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command.main(["--copy-only"])
    assert files(tmp_path / "posviz-course") == version(1)


def test_a_new_version_replaces_what_was_not_changed_and_goes_beside_what_was(deliver, folder, capsys):
    run(folder, capsys)
    (folder / "05_rope.ipynb").write_text("my notes")
    (folder / "mine.ipynb").write_text("mine")
    assert run(folder, capsys) == []  # still the version that the notes are about
    deliver(2)
    said = run(folder, capsys)
    assert len(said) == len(command.NAMES)
    assert [line for line in said if "as you left it" in line] == [
        "05_rope.ipynb is as you left it; the new version of the chapter is beside it: 05_rope.new.ipynb"
    ]
    own = {"05_rope.ipynb": "my notes", "mine.ipynb": "mine"}
    assert files(folder) == version(2, **own, **{"05_rope.new.ipynb": "05_rope, version 2"})
    assert run(folder, capsys) == []
    deliver(3)
    run(folder, capsys)
    assert files(folder) == version(3, **own, **{"05_rope.new.ipynb": "05_rope, version 3"})


def test_a_new_version_beside_that_was_changed_stays_too(deliver, folder, capsys):
    run(folder, capsys)
    (folder / "05_rope.ipynb").write_text("my notes")
    deliver(2)
    run(folder, capsys)
    (folder / "05_rope.new.ipynb").write_text("my new notes")
    assert run(folder, capsys) == []
    deliver(3)
    assert "beside it: 05_rope.new.new.ipynb" in run(folder, capsys)[5]
    own = {"05_rope.ipynb": "my notes", "05_rope.new.ipynb": "my new notes"}
    assert files(folder) == version(3, **own, **{"05_rope.new.new.ipynb": "05_rope, version 3"})


def test_a_deleted_chapter_comes_back_and_a_deleted_new_version_does_not(deliver, folder, capsys):
    run(folder, capsys)
    (folder / "05_rope.ipynb").write_text("my notes")
    (folder / "01_what.ipynb").unlink()
    deliver(2)
    run(folder, capsys)
    (folder / "05_rope.new.ipynb").unlink()
    assert run(folder, capsys) == []
    assert files(folder) == version(2, **{"05_rope.ipynb": "my notes"})


def test_a_new_version_that_took_the_old_place_is_followed_again(deliver, folder, capsys):
    run(folder, capsys)
    (folder / "05_rope.ipynb").write_text("my notes")
    deliver(2)
    run(folder, capsys)
    os.replace(folder / "05_rope.new.ipynb", folder / "05_rope.ipynb")
    assert run(folder, capsys) == []
    deliver(3)
    run(folder, capsys)
    assert files(folder) == version(3)


@pytest.mark.parametrize("record", [None, "", "[1]", "[]", "not JSON", "\x00"])
def test_without_a_sound_record_everything_that_differs_is_the_learners(record, deliver, folder, capsys):
    run(folder, capsys)
    (folder / command.RECORD).unlink()
    if record is not None:
        (folder / command.RECORD).write_text(record)
    deliver(2)
    assert all("as you left it" in sentence for sentence in run(folder, capsys))
    assert files(folder) == version(1) | {f"{name}.new.ipynb": f"{name}, version 2" for name in command.NAMES}
    assert run(folder, capsys) == []


def test_a_folder_that_has_the_name_of_a_chapter_is_left_alone(deliver, folder, capsys):
    (folder / "05_rope.ipynb").mkdir(parents=True)
    run(folder, capsys)
    assert (folder / "05_rope.ipynb").is_dir()
    assert (folder / "05_rope.new.ipynb").read_text() == "05_rope, version 1"


def test_stopped_half_way_it_goes_on_the_next_time(deliver, folder, capsys, monkeypatch):
    run(folder, capsys)
    deliver(2)
    whole = command.replace

    def stopped(file, content):
        if file.name == "03_absolute.ipynb":
            raise KeyboardInterrupt
        whole(file, content)

    monkeypatch.setattr(command, "replace", stopped)
    assert command.main([str(folder), "--copy-only"]) == 130
    monkeypatch.setattr(command, "replace", whole)
    capsys.readouterr()
    run(folder, capsys)
    assert files(folder) == version(2)


def test_the_chapters_own_folder_is_opened_as_it_is(deliver, capsys):
    folder = command.chapters()
    before = files(folder)
    assert run(folder, capsys) == []
    assert files(folder) == before and not (folder / command.RECORD).exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["{file}"], "{file} is a file; name a folder: posviz FOLDER"),
        (["{file}/below"], "cannot write into {file}/below"),
        ([os.devnull], f"cannot write into {os.devnull}"),
        (["test", "05_ropes"], "there is no chapter '05_ropes'; the chapters are 00_motivation, 01_what, "),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments, words, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("mine")
    assert command.main([argument.format(file=file) for argument in arguments]) == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert said.out == "" and line.startswith(f"posviz: {words.format(file=file)}")
    assert file.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_refused_even_if_it_is_up_to_date(deliver, folder, capsys, monkeypatch):
    run(folder, capsys)

    def locked(dir):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr(command.tempfile, "TemporaryFile", locked)
    assert command.main([str(folder), "--copy-only"]) == 2
    assert capsys.readouterr().err == (
        f"posviz: cannot write into {folder} (Permission denied); name another: posviz FOLDER\n"
    )


def test_a_console_that_lacks_the_letters_of_a_folder_is_no_obstacle(folder):
    said = subprocess.run(
        [sys.executable, "-m", "posviz", str(folder), "--copy-only"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith("The chapters are in ") and said.stdout.strip().endswith("my folder ? ?")
    assert len(list(folder.glob("*.ipynb"))) == len(command.NAMES)


def notebook(code, output):
    """A notebook of one cell that was stored with `output`."""
    cell = {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "source": code}
    cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": output}]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})


def test_a_chapter_whose_output_differs_fails_the_test_and_is_named(deliver, tmp_path, monkeypatch, capsys):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    monkeypatch.setattr(command.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    right, wrong = command.NAMES[:2]
    (command.chapters() / f"{right}.ipynb").write_text(
        notebook("import os; print(os.environ['OMP_NUM_THREADS'])", "1\n")
    )
    (command.chapters() / f"{wrong}.ipynb").write_text(notebook("print(1 + 1)", "3\n"))
    assert command.main(["test", right, wrong]) == 1
    first, second, *report, last = capsys.readouterr().out.splitlines()
    assert (first, second) == (f"{right} ... passed", f"{wrong} ... failed")
    assert any(wrong in line for line in report) and last == "1 passed, 1 failed"
