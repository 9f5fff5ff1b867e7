"""The chapters under a reader's own settings: every text output as it is stored.

Chapter 5 runs, with EVERY_CHAPTER=1 (`make test-all`) every chapter.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from static_pages import SAMPLE

ROOT = Path(__file__).parent.parent

NUMBERS = """
import numpy, torch
numpy.seterr(all="raise")
torch.set_default_dtype(torch.float64)
"""
LOOK = """
import contextlib, locale, warnings, matplotlib.pyplot
warnings.simplefilter("error")
matplotlib.pyplot.style.use("dark_background")
matplotlib.rcParams.update({"text.usetex": True, "figure.dpi": 40, "axes.formatter.use_locale": True})
with contextlib.suppress(locale.Error):
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
"""
SETTINGS = {
    "numbers": (NUMBERS, {}),
    "look and warnings": (LOOK, {}),
    "no asserts, little to write on": ("", {"PYTHONOPTIMIZE": "2", "HOME": os.devnull + "/home"}),
}


@pytest.mark.parametrize("chapter", SAMPLE)
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_chapter_under_a_readers_own_settings_says_what_is_stored(settings, chapter, tmp_path):
    cell, environment = SETTINGS[settings]
    notebook = json.loads((ROOT / "notebooks" / f"{chapter}.ipynb").read_text("utf-8"))
    first = {"cell_type": "code", "execution_count": 0, "id": "settings", "metadata": {}, "outputs": [], "source": cell}
    notebook["cells"].insert(0, first)
    (tmp_path / "chapter.ipynb").write_text(json.dumps(notebook), "utf-8")
    options = ["-p", "no:python", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env"]
    program = [sys.executable, "-m", "pytest", *options, "--nbval-cell-timeout", "120", "chapter.ipynb"]
    runtime = {"JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(program, cwd=tmp_path, env=os.environ | runtime | environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
