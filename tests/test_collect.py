"""`python -m posviz.quiz collect`: from what was saved and by running again, with what students hand in."""

import json
import subprocess
import sys

import pytest

from posviz.quiz.__main__ import collect, main, run_again, table

SETUP = "import numpy as np\nfrom posviz import quiz, rope_frequencies"


def cell(source, printed=None, *tags):
    outputs = [{"output_type": "stream", "name": "stdout", "text": [printed]}] if printed else []
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source, "outputs": outputs}


def handed_in(path, *cells):
    heading = {"cell_type": "markdown", "metadata": {}, "source": ["## Exercises\n", "Go."]}
    path.write_text(json.dumps({"cells": [cell(SETUP, None, "setup"), heading, *cells]}), encoding="utf-8")
    return path


def answer(id, text, printed=None):
    return cell(f'answer = {text}\nquiz.check("{id}", answer)', printed)


@pytest.fixture
def ann(tmp_path):
    return handed_in(
        tmp_path / "ann.ipynb",
        answer("5.1", "2.0", "Exercise 5.1: not yet. Two lines\n"),
        answer("5.2", '"b"', "Exercise 5.2: right. Good.\n"),
        answer("5.3", "...", "Exercise 5.3: not answered yet. Put\n"),
        answer("5.4", "..."),
    )


def test_saved_outputs_say_what_the_student_saw(ann):
    assert collect(ann) == {"5.1": "wrong", "5.2": "right", "5.3": "open", "5.4": ""}


def test_answers_run_again_each_on_its_own(tmp_path):
    path = handed_in(
        tmp_path / "bob.ipynb",
        cell("def helper():\n    return 8 * 0.25"),
        answer("5.1", "helper()", "Exercise 5.1: not yet. An old output\n"),
        answer("5.2", "nobody_knows"),
        cell('while True: pass\nquiz.check("5.3", 1)'),
        cell('import os\nos._exit(0)\nquiz.check("5.4", 1)'),
        cell('# quiz.check("5.5", answer)'),
    )
    expected = {"5.1": "right", "5.2": "stops", "5.3": "too long", "5.4": "stops"}
    assert collect(path, run_again(12)) == expected


def test_running_an_answer_leaves_nothing_in_the_folder_and_takes_no_module_from_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numpy.py").write_text("raise SystemExit")
    path = handed_in(tmp_path / "eve.ipynb", cell('open("left", "w").write("x")\nquiz.check("5.1", 2.0)'))
    assert collect(path, run_again(30)) == {"5.1": "right"}
    assert not (tmp_path / "left").exists()


def test_the_table_names_every_file_and_counts_each_exercise(ann, tmp_path):
    other = handed_in(
        tmp_path / "a longer name.ipynb", answer("5.10", "1"), answer("5.2", '"b"', "Exercise 5.2: right. So\n")
    )
    lines = table({"ann": collect(ann), "other": collect(other)})
    assert [line.split() for line in lines] == [
        ["5.1", "5.2", "5.3", "5.4", "5.10"],
        ["ann", "wrong", "right", "open", "-", "-"],
        ["other", "-", "right", "-", "-", "-"],
        ["right", "0", "2", "0", "0", "0"],
    ]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"cells": [1]}', "\xff"])
def test_what_is_no_notebook_is_named_and_the_others_are_still_read(content, ann, tmp_path, capsys):
    broken = tmp_path / "broken.ipynb"
    broken.write_bytes(content.encode("latin-1"))
    assert main(["collect", str(broken), str(ann)]) == 1
    printed = capsys.readouterr().out
    assert "broken.ipynb: not a notebook that can be read" in printed and str(ann) in printed


def test_it_is_a_command(ann):
    run = subprocess.run([sys.executable, "-m", "posviz.quiz", "collect", ann], capture_output=True, text=True)
    assert run.returncode == 0 and "wrong" in run.stdout and run.stderr == ""
