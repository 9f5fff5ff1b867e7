"""tools/notebooks.py: what `make notebooks` stores, twice the same, and every fault its check must find."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

import notebooks
from posviz import views
from posviz.live import Drawing

CELLS = [
    "from posviz import views\nviews.ClockWall().explorer(position=7)",
    "print('words')",
    "views.RotationMatrix().explorer()",
]


def write(path, cells, metadata):
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def unrun(tmp_path):
    """A notebook as an editor leaves it: not run, one cell without an id, traces of a session in its metadata."""
    metadata = {"slideshow": {"slide_type": "slide"}, "tags": ["live"], "collapsed": True}
    cells = [
        {
            "cell_type": "code",
            "id": f"code-{number}",
            "metadata": metadata,
            "source": code,
            "outputs": [],
            "execution_count": 9,
        }
        for number, code in enumerate(CELLS)
    ]
    del cells[1]["id"]
    return write(tmp_path / "unrun.ipynb", cells, {"widgets": {}, "celltoolbar": "Tags"})


def test_storing_twice_changes_no_byte_and_leaves_no_trace_of_a_session(unrun):
    assert notebooks.store(unrun, notebooks.run(unrun))
    first = unrun.read_bytes()
    assert not notebooks.store(unrun, notebooks.run(unrun))
    assert unrun.read_bytes() == first
    assert notebooks.problems(unrun) == []
    shown = {"view": "ClockWall", "values": {"position": 7, "dim": 128, "base": 10_000.0}}
    assert read(unrun)["cells"][0]["outputs"][0]["metadata"]["posviz"] == shown
    assert [cell["id"] for cell in read(unrun)["cells"]] == ["code-0", "cell-2", "code-2"]
    assert [path.name for path in unrun.parent.iterdir()] == ["unrun.ipynb"]


@pytest.mark.parametrize(
    "code, words",
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import ipywidgets\nipywidgets.IntSlider()", "shows a widget without a still picture"),
    ],
)
def test_a_notebook_that_fails_is_not_stored(code, words, unrun):
    notebook = read(unrun)
    notebook["cells"][2]["source"] = code
    before = write(unrun, notebook["cells"], {}).read_bytes()
    tool = Path(notebooks.__file__)
    run = subprocess.run([sys.executable, tool, unrun], capture_output=True, text=True)
    assert run.returncode == 1 and "unrun.ipynb: not stored." in run.stderr and words in run.stderr
    assert unrun.read_bytes() == before


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    cells = [
        {
            "cell_type": "code",
            "metadata": {"slideshow": {"slide_type": "slide"}},
            "source": code,
            "outputs": [],
            "execution_count": None,
        }
        for code in CELLS
    ]
    return json.loads(notebooks.run(write(tmp_path_factory.mktemp("good") / "good.ipynb", cells, {})))


def test_a_stored_picture_says_by_which_view_and_with_which_values_it_is_drawn_again(good):
    stored = good["cells"][0]["outputs"][0]
    assert set(stored["metadata"]) == {"image/png", "posviz"}
    made = stored["metadata"]["posviz"]
    assert made["view"] == "ClockWall" and made["values"]["position"] == 7
    drawing = Drawing(getattr(views, made["view"])(), **made["values"])
    assert drawing.sentence == "".join(stored["data"]["text/plain"])


@pytest.mark.parametrize("view", views.all_views(), ids=lambda view: view.__name__)
def test_the_values_of_a_view_come_back_from_a_file_as_they_were(view):
    values = view().values()
    again = view().values(**json.loads(json.dumps(values)))
    assert again == values and list(map(type, again.values())) == list(map(type, values.values()))


@pytest.mark.parametrize("path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_checkout_with_the_line_ends_of_windows_holds_the_same_chapter(path, tmp_path):
    windows = tmp_path / path.name
    windows.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert notebooks.read(windows) == notebooks.read(path)
    assert notebooks.problems(windows) == notebooks.problems(path)


FAULTS = {  # what is done to the good notebook: what must be said about it
    "picture['execution_count'] = 7": "execution counts are not those of one clean run: [7, 2, 3]",
    "metadata['widgets'] = {}": "the metadata must be the kernelspec, the language and the mark alone",
    "picture['id'] = text['id']": "cell ids are missing or repeated",
    "output['data'][notebooks.WIDGET] = {}": "output that is not stored: application/vnd.jupyter.widget-view+json",
    "output['data']['text/plain'] = '<Figure size 640x480>'": "a picture without its sentence",
    "output['metadata'] = {}": "a picture whose alternative text does not hold its sentence",
    "del output['metadata']['posviz']": "a picture without a word in its metadata that posviz drew it",
    "words['name'] = 'stderr'": "a warning or other text on stderr is stored",
    "words['text'] = 'done in 3.2 ms'": "a duration in its output",
    "words['text'] = '<object at 0x7f981fa9c4a0>'": "an address in its output",
    "words['text'] = 'read /home/ada/text'": "a path of one machine in its output",
    "words['text'] = 'word ' * 200_000": "it must stay under 1,000,000",
    "text['outputs'] = [{'output_type': 'error', 'ename': 'ValueError'}]": "an error is stored: ValueError",
    "text['metadata'] = {}": "its slide type must be one of",
    "text['metadata']['collapsed'] = True": "metadata that is not stored: ['collapsed']",
    "text['source'] = ''": "it is empty",
    "text['source'] = '\\n\\n'.join(['x = 0'] * 16)": "16 lines of code; 15 at most",
    "text['source'] = '%matplotlib inline'": "a magic",
    "text['source'] = 'x;'": "a last line that ends in a semicolon",
    "text['source'] = 'answer = ...\\nquiz.check(\"5.1\", answer)'": "an exercise without its folded solution",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_a_stored_file_is_found(fault, good, tmp_path):
    notebook = copy.deepcopy(good)
    picture, text = notebook["cells"][:2]
    exec(
        fault,
        {
            "notebooks": notebooks,
            "metadata": notebook["metadata"],
            "picture": picture,
            "text": text,
            "output": picture["outputs"][0],
            "words": text["outputs"][0],
        },
    )
    found = notebooks.problems(write(tmp_path / "spoiled.ipynb", notebook["cells"], notebook["metadata"]))
    assert len(found) == 1 and FAULTS[fault] in found[0]


def test_the_solution_must_check_what_its_exercise_checks(good, tmp_path):
    notebook = copy.deepcopy(good)
    notebook["cells"][1]["source"] = 'quiz.check("5.1", answer)'
    solution = (
        "<details><summary>Solution</summary>\n\nTwo.\n\n"
        '```python\nanswer = 2\nquiz.check("5.2", answer)\n```\n\n</details>'
    )
    notebook["cells"].insert(
        2,
        {
            "cell_type": "markdown",
            "id": "solution",
            "source": solution,
            "metadata": {"slideshow": {"slide_type": "skip"}, "tags": ["solution"]},
        },
    )
    path = tmp_path / "solved.ipynb"
    (found,) = notebooks.problems(write(path, notebook["cells"], notebook["metadata"]))
    assert "it checks ['5.1'], the solution after it ['5.2']" in found
    notebook["cells"][2]["source"] = solution.replace("5.2", "5.1")
    assert notebooks.problems(write(path, notebook["cells"], notebook["metadata"])) == []
