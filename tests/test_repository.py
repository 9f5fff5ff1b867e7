"""What must agree across files: dependencies, make targets, the two commands in the README."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
# The first version of an action that runs on Node 24.
NODE_24 = {"actions/checkout": 5, "actions/setup-python": 6, "actions/cache": 5}
NODE_24 |= {"actions/configure-pages": 6, "actions/upload-pages-artifact": 5, "actions/deploy-pages": 5}
CONDA_NAMES = {"pytorch": "torch", "python-isal": "isal"}
BROUGHT_ALONG = {"IPython"}  # by jupyterlab


def requirements(text):
    """{name: range} of the lines of a requirements file."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return dict(re.fullmatch(r"([A-Za-z0-9_.-]+)(.*)", line).groups() for line in lines if line)


RUNTIME = requirements((ROOT / "requirements.txt").read_text())


def test_pip_and_conda_install_the_same_packages_in_the_same_ranges():
    entries = re.findall(r"^  - ([^:\s]+)$", (ROOT / "environment.yml").read_text().partition("dependencies:")[2], re.M)
    conda = requirements("\n".join(entries))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = re.fullmatch(r"=(3\.\d+)", conda.pop("python"))  # what repo2docker can read: it ignores a range
    assert python and python[1] in SpecifierSet(project["requires-python"])
    del conda["pip"]
    assert {CONDA_NAMES.get(name, name): version for name, version in conda.items()} == RUNTIME


def test_conda_takes_everything_from_conda_forge():
    channels = (ROOT / "environment.yml").read_text().partition("channels:")[2].partition("dependencies:")[0]
    assert re.findall(r"- (\S+)", channels) == ["conda-forge", "nodefaults"]


def test_the_package_requires_what_requirements_txt_names():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "dependencies" in configuration["project"]["dynamic"]
    assert configuration["tool"]["setuptools"]["dynamic"]["dependencies"] == {"file": ["requirements.txt"]}


def test_everything_the_package_imports_is_required():
    """At the top of a module; inside functions and try blocks stands what is optional."""
    known = {name.replace("-", "_") for name in RUNTIME} | set(sys.stdlib_module_names) | {"posviz"} | BROUGHT_ALONG
    for file in (ROOT / "posviz").rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            assert {name.partition(".")[0] for name in names} <= known, file


def test_torch_is_pinned_and_everything_else_is_a_range():
    assert RUNTIME["torch"] == "==2.13.0"
    for name, version in RUNTIME.items():
        assert name == "torch" or re.fullmatch(r">=[\d.]+,<\d+", version), name


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY:(.*)$", text, re.M)[0].split()
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  make (\S+)\s+\S", shown, re.M) == targets
    assert {"help", "install", "lab", "test", "notebooks", "clean"} <= set(targets)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_test_looks_at_the_layout_first():
    steps = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert 0 < steps.index("ruff format --check .") < steps.index("ruff check .") < steps.index("-m pytest")


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(
    "script, words",
    [
        ("exit 1", "posviz needs Python 3.11 or newer as "),
        ('case "$2" in *ensurepip*) exit 1;; esac', "This Python has no venv module."),
    ],
)
def test_make_says_in_one_line_what_is_missing(script, words, tmp_path):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    command = ["make", "--no-print-directory", "lab", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode != 0
    (line,) = run.stdout.splitlines()
    assert line.startswith(words)
    assert not (tmp_path / "venv").exists()


def test_the_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make lab" in text and "make test" in text


def test_actions_run_on_a_node_that_the_runners_still_have():
    """Node 20 left GitHub's runners in September 2026."""
    text = "".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    used = re.findall(r"uses: (\S+)@v(\d+)", text)
    assert len(used) == text.count("uses:") > 0
    assert [(name, version) for name, version in used if int(version) < NODE_24[name]] == []


def test_a_block_of_the_readme_is_for_one_system_and_can_be_pasted():
    """It names no system, so it has no remark on another one; paths of Windows and of a shell do not meet in it."""
    for file in ("README.md", "docs/start.md", "docs/teaching.md"):
        blocks = re.findall(r"^```\n(.*?)^```$", (ROOT / file).read_text(encoding="utf-8"), re.M | re.S)
        assert blocks
        for block in blocks:
            assert not re.search(r"\b(Windows|Linux|macOS)\b", block), block
            assert not ("\\Scripts\\" in block and re.search(r"/bin/|source |export ", block)), block


def test_the_issue_forms_ask_for_what_a_correction_needs():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert form["name"] and form["description"]
        assert all(part["attributes"]["label"] for part in form["body"])
        assert any(part.get("validations", {}).get("required") for part in form["body"])
    labels = [part["attributes"]["label"] for part in yaml.safe_load((path.parent / "mistake.yml").read_text())["body"]]
    assert labels[0] == "Chapter and cell" and "Source" in labels
