"""What is published: the wheel and the sdist. Installed into an empty environment, without a network, nothing writable
but the learner's folder, `posviz` opens the chapters and runs them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from test_notebooks import locked_environment

import browser
from posviz.__main__ import NAMES

ROOT = Path(__file__).parent.parent
SOURCE = ("posviz", "notebooks", "jupyter-config", "LICENSE", "MANIFEST.in", "NOTICE", "README.md", "pyproject.toml")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
WHEEL = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir"]
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info", ".ipynb_checkpoints")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(the sdist, the wheel made from it, the wheel made from the repository), each in a folder of its own."""
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in (*SOURCE, "requirements.txt", "tests"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=IGNORED)
        else:
            shutil.copyfile(ROOT / name, source / name)
    make = f"from setuptools import build_meta; build_meta.build_sdist({str(dist / 'sdist')!r})"
    subprocess.run([sys.executable, "-c", make], cwd=source, check=True, stdout=subprocess.DEVNULL)
    (sdist,) = (dist / "sdist").glob("*.tar.gz")
    wheels = []
    for start in (sdist, source):
        folder = dist / f"wheelhouse of {start.name}"
        subprocess.run([*PIP, *WHEEL, folder, start], check=True)
        wheels += folder.glob("*.whl")
    return sdist, *wheels


@pytest.fixture(scope="module")
def machine(built, tmp_path_factory):
    """run(*command): runs it with the Python of an environment that has posviz from the wheelhouse. Nothing is writable
    but temporary folders, no connection leaves the machine, HOME is nowhere. The requirements are those of this Python.
    """
    root, temporary = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("temporary")
    venv.create(root, with_pip=False, symlinks=os.name != "nt")
    paths = sysconfig.get_paths(vars={"base": str(root), "platbase": str(root)})
    python = Path(paths["scripts"]) / Path("python").with_suffix(".exe" if os.name == "nt" else "")
    requirements = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(paths["purelib"]) / "requirements.pth").write_text("\n".join(requirements))  # its own packages come first
    wheelhouse = ["--no-index", "--find-links", built[1].parent]
    subprocess.run([*PIP, "--python", python, "install", "--no-deps", "-I", *wheelhouse, "posviz"], check=True)
    subprocess.run(
        [*PIP, "--python", python, "install", *wheelhouse, "posviz"], check=True
    )  # no requirement is missing
    env = locked_environment(root, temporary, no_torch=False)
    env["PYTHONPATH"] = str(ROOT / "tests" / "locked")

    def run(*command, start=subprocess.run, **options):
        return start([python, *command], env=env | options.pop("env", {}), cwd=temporary, text=True, **options)

    run.python, run.scripts = python, Path(paths["scripts"])
    return run


def names_in(wheel):
    return [PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")]


def test_the_sdist_makes_the_same_wheel_as_the_repository(built):
    ours, theirs = map(zipfile.ZipFile, built[1:])
    assert sorted(ours.namelist()) == sorted(theirs.namelist())
    assert [name for name in ours.namelist() if ours.read(name) != theirs.read(name)] == []


def test_the_wheel_holds_every_file_of_the_package_and_every_chapter_as_it_is(built):
    wheel = zipfile.ZipFile(built[1])
    held = {name for name in map(str, names_in(built[1])) if name.startswith("posviz/")}
    package = [path for path in (ROOT / "posviz").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    chapters = [ROOT / "notebooks" / f"{name}.ipynb" for name in NAMES]
    expected = {path.relative_to(ROOT).as_posix(): path for path in package}
    expected |= {f"posviz/notebooks/{path.name}": path for path in chapters}
    assert held == set(expected), "a new folder of the package stands in `packages` or `package-data` of pyproject.toml"
    assert [name for name, path in expected.items() if wheel.read(name) != path.read_bytes()] == []


def test_wheel_and_sdist_bring_files_of_our_own_names_only(built):
    files = names_in(built[1])
    assert {file.parts[0].partition("-")[0] for file in files} == {"posviz"}
    data = ["/".join(file.parts[1:]) for file in files if file.parts[0].endswith(".data")]
    assert data == ["data/etc/jupyter/jupyter_server_config.d/posviz.json"]
    licences = {file.name for file in files if "licenses" in file.parts}
    assert licences == {"LICENSE", "NOTICE"}
    with tarfile.open(built[0]) as sdist:
        top = {PurePosixPath(name).parts[1] for name in sdist.getnames() if "/" in name}
    assert top == {*SOURCE, "requirements.txt", "PKG-INFO", "posviz.egg-info", "setup.cfg"}


def test_the_command_copies_the_chapters_into_a_folder_with_any_name(machine, tmp_path):
    folder = tmp_path / "my folder ü 课"
    command = [machine.scripts / "posviz"] if os.name != "nt" else ["-m", "posviz"]
    said = machine(*command, folder, "--copy-only", capture_output=True, check=True).stdout
    assert said == f"The chapters are in {folder}\n"
    assert {path.name: path.read_bytes() for path in folder.glob("*.ipynb")} == {
        f"{name}.ipynb": (ROOT / "notebooks" / f"{name}.ipynb").read_bytes() for name in NAMES
    }
    where = machine("-c", "import posviz; print(posviz.__file__)", capture_output=True, check=True).stdout
    assert Path(where).is_relative_to(machine.python.parent.parent)


def test_the_command_runs_a_chapter_under_strict_nbval(machine):
    said = machine("-m", "posviz", "test", "01_what", capture_output=True)
    assert (said.returncode, said.stdout) == (0, "01_what ... passed\n1 passed, 0 failed\n"), said.stderr


def test_the_command_opens_jupyterlab_at_the_chapters_without_the_question_about_news(machine, tmp_path):
    folder, port = tmp_path / "my folder ü 课", browser.free_port()
    url = f"http://127.0.0.1:{port}"
    env = {"JUPYTER_PORT": str(port), "JUPYTER_TOKEN": "word", "JUPYTER_CONFIG_DIR": str(tmp_path / "settings")}
    with open(tmp_path / "log", "w+") as log:
        process = machine(
            "-m", "posviz", folder, "--no-browser", start=subprocess.Popen, env=env, stdout=log, stderr=log
        )
        try:
            browser.wait_until_it_answers(process, f"{url}/api/status?token=word", log)
            listing = fetch(f"{url}/api/contents?token=word")
            page = fetch(f"{url}/lab?token=word")
        finally:
            browser.stop(process)
        log.seek(0)
        said = log.read()
    assert sorted(file["path"] for file in json.loads(listing)["content"]) == [f"{name}.ipynb" for name in NAMES]
    settings = re.search(r'id="jupyter-config-data"[^>]*>\s*(\{.*?\})\s*</script>', page, re.DOTALL)[1]
    assert json.loads(settings)["disabledExtensions"] == ["@jupyterlab/apputils-extension:announcements"]
    assert "posviz.server | extension was successfully loaded" in said and "The chapters are in " in said


def fetch(address):
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read().decode("utf-8")
