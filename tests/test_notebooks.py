"""The chapters as files: stored from one clean run, readable everywhere, solvable, at home on a locked machine.

`make test` runs them under strict nbval as well, which compares every text output with a new run.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ipywidgets
import pytest
from bs4 import BeautifulSoup
from IPython.display import display

import notebooks
from posviz import quiz

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
every_chapter = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def number_of(path):
    return int(path.name[:2])


def test_there_are_chapters():
    assert NOTEBOOKS


@every_chapter
def test_nothing_is_wrong_with_the_stored_file(path):
    assert notebooks.problems(path) == []


@every_chapter
def test_every_solution_is_right_and_every_exercise_is_in_the_chapter(path):
    """Runs the cells in order, each exercise once as it stands and once with its solution in place."""
    names, checked = {"display": display}, []
    cells = cells_of(path)
    try:
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile(notebooks.source(cell), cell["id"], "exec"), names)
            elif "solution" in notebooks.tags(cell):
                code = notebooks.solution_code(cell)
                ids = re.findall(r"quiz\.check\(\s*[\"']([^\"']+)", code)
                solved = [(id, result.right) for id, result in results_of(code, cell["id"], dict(names))]
                assert solved == [(id, True) for id in ids]
                checked += ids
    finally:
        ipywidgets.Widget.close_all()
    assert sorted(checked) == sorted(quiz.exercises(number_of(path)))


def results_of(code, name, names):
    """Run `code`; [(exercise, result), ...] of the checks in it."""
    results = []

    class Recorder:
        @staticmethod
        def check(id, answer):
            results.append((id, quiz.check(id, answer)))
            return results[-1][1]

    names["quiz"] = Recorder
    exec(compile(code, name, "exec"), names)
    return results


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder to which plain `jupyter nbconvert`, with the project's configuration, wrote every chapter."""
    folder = tmp_path_factory.mktemp("exported")
    env = os.environ | {"JUPYTER_CONFIG_PATH": str(ROOT / "jupyter-config")}
    for kind in ("html", "markdown"):
        subprocess.run(
            [sys.executable, "-m", "nbconvert", "--log-level=ERROR", "--to", kind, "--output-dir", folder, *NOTEBOOKS],
            check=True,
            env=env,
        )
    return folder


def pictures_of(path):
    """[(sentence, PNG bytes), ...] of the pictures stored in a chapter."""
    data = [output.get("data", {}) for cell in cells_of(path) for output in cell.get("outputs", [])]
    return [
        ("".join(part["text/plain"]), base64.b64decode("".join(part["image/png"])))
        for part in data
        if "image/png" in part
    ]


@every_chapter
def test_html_shows_every_picture_with_its_sentence(path, exported):
    page = BeautifulSoup((exported / f"{path.stem}.html").read_text(encoding="utf-8"), "html.parser")
    shown = [
        (image["alt"], base64.b64decode(image["src"].removeprefix("data:image/png;base64,")))
        for image in page.find_all("img")
    ]
    assert_the_same(shown, pictures_of(path))
    assert page.find("script", type="application/vnd.jupyter.widget-view+json") is None


@every_chapter
def test_markdown_shows_every_picture_with_its_sentence(path, exported):
    text = (exported / f"{path.stem}.md").read_text(encoding="utf-8")
    shown = [
        (re.sub(r"\\(.)", r"\1", alt), (exported / file).read_bytes())
        for alt, file in re.findall(r"!\[((?:\\.|[^\]\\])*)\]\(([^)]+\.png)\)", text)
    ]
    assert_the_same(shown, pictures_of(path))


def assert_the_same(shown, stored):
    assert [picture for _, picture in shown] == [picture for _, picture in stored]
    for (alt, _), (sentence, _) in zip(shown, stored):
        assert sentence in alt


@pytest.fixture(scope="module")
def locked_repository(tmp_path_factory):
    """A copy of the package and the chapters that nobody else touches, write-protected."""
    root = tmp_path_factory.mktemp("repository")
    for folder in ("posviz", "notebooks"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.partial"))
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    yield root
    for folder in folders:
        folder.chmod(0o755)


@every_chapter
def test_strict_nbval_from_another_folder_nothing_writable_no_network(path, tmp_path, locked_repository):
    """Repository and HOME are read-only, no connection leaves the machine, and chapters 1 to 5 have no torch.

    Cells tagged `torch` or `gpu` need torch by their own word; they are left out where it is missing.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))
    no_torch = 1 <= number_of(path) <= 5
    if no_torch:
        notebook["cells"] = [cell for cell in notebook["cells"] if not {"torch", "gpu"} & set(notebooks.tags(cell))]
    folder = tmp_path / "another folder"
    folder.mkdir()
    (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")
    before = files_of(locked_repository)
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:python",
            "-p",
            "no:cacheprovider",
            "--nbval",
            "--nbval-current-env",
            "--nbval-cell-timeout",
            "120",
            path.name,
        ],
        cwd=folder,
        env=locked_environment(locked_repository, tmp_path, no_torch),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert files_of(locked_repository) == before


def locked_environment(repository, temporary, no_torch):
    """Environment variables under which Python lives on a locked machine: see tests/locked/sitecustomize.py."""
    home = os.devnull + "/home"  # nobody can write there, not even root
    env = os.environ | {
        "HOME": home,
        "USERPROFILE": home,
        "TMPDIR": str(temporary),
        "JUPYTER_RUNTIME_DIR": str(temporary / "runtime"),  # a hub gives a kernel these two
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "locked"), str(repository)]),
        "POSVIZ_READ_ONLY": os.pathsep.join([str(repository), str(ROOT), os.path.expanduser("~")]),
        "POSVIZ_NO_TORCH": "1" if no_torch else "",
    }
    for name in (
        "IPYTHONDIR",
        "MPLCONFIGDIR",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
    ):
        env.pop(name, None)
    return env


def files_of(root):
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in root.rglob("*")}


@pytest.mark.parametrize(
    "attempt, error",
    [
        ("open(posviz.__file__, 'a')", "Read-only file system"),
        ("os.mkdir(os.path.join(os.path.dirname(posviz.__file__), 'new'))", "Read-only file system"),
        ("socket.create_connection(('192.0.2.1', 80), 1)", "Network is unreachable"),
        ("socket.create_connection(('pypi.org', 443), 1)", "Network is unreachable"),
        ("import torch", "No module named 'torch'"),
    ],
)
def test_the_locked_machine_refuses(attempt, error, tmp_path, locked_repository):
    code = f"import os, socket, posviz\nassert posviz.__file__.startswith({str(locked_repository)!r})\n{attempt}"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        env=locked_environment(locked_repository, tmp_path, no_torch=True),
    )
    assert run.returncode == 1 and error in run.stderr.splitlines()[-1]
