"""A reader's own settings reach nothing: what is called and drawn under them is the same to the last bit.

And whatever stops a computation in the middle, the reader's hand or a full memory, leaves nothing half done.
"""

import ast
import contextlib
import functools
import json
import locale
import os
import signal
import subprocess
import sys
from pathlib import Path

import everything
import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import pyplot

import notebooks
from posviz import lab, style, views
from posviz.live import Drawing, Steps, View

ROOT = Path(__file__).parent.parent
OTHER_LOOK = {
    "axes.formatter.limits": [-1, 1],
    "axes.unicode_minus": False,
    "figure.constrained_layout.h_pad": 1,
    "figure.dpi": 40,
    "font.family": "monospace",
    "image.interpolation": "bilinear",
    "image.origin": "lower",
    "lines.antialiased": False,
    "lines.linewidth": 9,
    "mathtext.fontset": "stix",
    "patch.antialiased": False,
    "path.simplify_threshold": 0.9,
    "path.sketch": (3, 20, 5),
    "savefig.bbox": "tight",
    "savefig.dpi": 240,
    "savefig.facecolor": "red",
    "savefig.transparent": True,
    "text.antialiased": False,
    "text.hinting": "none",
    "text.parse_math": False,
    "text.usetex": True,  # there need be no LaTeX
    "xtick.minor.visible": True,
}


@functools.cache
def usual(part):
    """What a part of posviz gives under no settings at all."""
    return everything.digests(part)


@contextlib.contextmanager
def numbers():
    """Settings of NumPy and torch; the device "meta" stands for "cuda": it, too, mixes with no other."""
    with np.errstate(all="raise"), np.printoptions(precision=1, legacy="1.13"), torch.no_grad():
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        try:
            yield
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def look():
    """Settings of matplotlib, with a decimal comma where the system has a language that writes one."""
    language = locale.setlocale(locale.LC_ALL)
    with matplotlib.rc_context(), pyplot.style.context("dark_background"):
        matplotlib.rcParams.update(OTHER_LOOK | {"axes.formatter.use_locale": True})
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
        try:
            yield
        finally:
            locale.setlocale(locale.LC_ALL, language)


@pytest.mark.parametrize("part", ["formulas", "lab", "exercises"])
def test_torch_and_numpy_settings_change_nothing(part):
    expected = usual(part)
    with numbers():
        assert everything.digests(part) == expected


def test_settings_made_before_a_picture_change_nothing():
    expected = usual("pictures")
    with numbers(), look():
        assert everything.digests("pictures") == expected


def test_matplotlib_settings_made_after_a_picture_change_nothing():
    def a_cell_of_the_readers_own():
        matplotlib.rcParams.update(OTHER_LOOK)
        pyplot.figure()
        pyplot.close("all")

    with matplotlib.rc_context():
        found = everything.digests("pictures", between=a_cell_of_the_readers_own)
        assert matplotlib.rcParams["savefig.dpi"] == 240
    assert found == usual("pictures")


def test_no_assert_is_needed_no_warning_given_and_no_folder_but_the_readers_own(tmp_path):
    """python -O -W error where HOME, the system's folder for temporary files and the package cannot be written."""
    env = os.environ | {"HOME": os.devnull + "/home", "USERPROFILE": os.devnull + "/home", "LC_ALL": "de_DE.UTF-8"}
    env |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), os.devnull + "/temporary")
    env |= {"POSVIZ_READ_ONLY": os.pathsep.join([str(ROOT), "/var/tmp", "/usr/tmp"]), "POSVIZ_NO_TORCH": ""}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "locked"), str(ROOT), env.get("PYTHONPATH", "")])
    for name in ("MPLCONFIGDIR", "IPYTHONDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        env.pop(name, None)
    program = [sys.executable, "-O", "-W", "error", ROOT / "tests" / "everything.py", *everything.PARTS]
    run = subprocess.run(program, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert run.returncode == 0 and not run.stderr, run.stderr
    for part, found in json.loads(run.stdout).items():
        assert found == {name: usual(part)[name] for name in found} and len(found) > 12, part
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------- interrupts


class Map(View):
    """A heat map whose cells and limits change, under a curve: each way that a frame can be made."""

    title = "A map"
    size = (1, 1)
    controls = [Steps("cells", 2, 9, default=5)]

    def draw(self, figure):
        self.axes = figure.subplots()
        self.axes.set(xticks=[], yticks=[])
        self.image = self.axes.imshow(np.zeros((2, 2)), vmin=0, vmax=1, extent=(0, 1, 0, 1), aspect="auto")
        (self.curve,) = self.axes.plot([], [])

    def update(self, cells):
        self.image.set_data(np.linspace(0, 1, cells**2).reshape(cells, cells))
        self.axes.set_ylim(0, 1 if cells < 7 else 2)
        self.curve.set_data([0, 1], [0, cells / 9])
        return f"A map of {cells} by {cells} cells."


ENGINE = ROOT / "posviz" / "live"
FINALLY = {  # what mends is not itself interrupted: it takes some microseconds
    (path.name, line)
    for path in ENGINE.glob("*.py")
    for node in ast.walk(ast.parse(path.read_text("utf-8")))
    if isinstance(node, ast.Try) and node.finalbody
    for line in range(node.finalbody[0].lineno, node.finalbody[-1].end_lineno + 1)
}


def interrupted(place, call):
    """Call, and interrupt at the `place`-th line of the picture engine that runs; False where it ends before."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        path = Path(frame.f_code.co_filename)
        if path.parent != ENGINE:
            return None
        if event == "line" and (path.name, frame.f_lineno) not in FINALLY:
            lines += 1
            if lines == place:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_whatever_line_of_a_redraw_is_interrupted_the_next_move_shows_the_right_picture():
    explorer, place, settings = Map().explorer(), 1, dict(matplotlib.rcParams)
    move = functools.partial(setattr, explorer.controls["cells"], "value")

    def seen():
        return bytes(explorer.image.value), explorer.sentence, explorer._text.value

    move(4)
    move(5)
    expected = seen()
    while interrupted(place, functools.partial(move, 8 if place % 2 else 4)):
        move(5)
        assert seen() == expected, place
        place += 1
    assert place > 80
    assert dict(matplotlib.rcParams) == settings
    explorer.close()


def test_an_interrupt_while_a_picture_is_made_is_said_as_such(monkeypatch):
    def stop(drawing, **values):
        raise KeyboardInterrupt

    monkeypatch.setattr(Drawing, "show", stop)
    with pytest.raises(KeyboardInterrupt):
        Map().explorer()


def workbench(steps, **replaced):
    """Run the cells of chapter 7 that train the reader's own encoding, for so many steps; their names."""
    cells = json.loads((ROOT / "notebooks" / "07_alibi.ipynb").read_text("utf-8"))["cells"]
    sources = [notebooks.source(cell) for cell in cells if "workbench" in notebooks.tags(cell)]
    names = {"math": __import__("math"), "lab": lab, "views": views, "LENGTHS": [128], "DISTANCES": [16]}
    exec(sources[0], names)
    names |= replaced
    exec(sources[1].replace("steps = 0 ", f"steps = {steps} "), names)
    return names


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt, torch.OutOfMemoryError("no memory"), MemoryError(), RuntimeError("not enough memory")]
)
def test_what_stops_the_first_training_of_a_cell_stops_the_cell(stop, monkeypatch):
    """No second training begins, and nothing half trained is drawn as the reader's."""
    calls, drawn = [], []
    monkeypatch.setattr(views, "Workbench", lambda *arguments: drawn.append(arguments))

    class Stops:
        def bias(self, q, k, layer):
            calls.append(q.shape)
            if len(calls) == 40:  # in the middle of a step
                if stop is KeyboardInterrupt:
                    signal.raise_signal(signal.SIGINT)
                raise stop

    with pytest.raises(stop if isinstance(stop, type) else type(stop)):
        workbench(20, Squared=Stops)
    assert len(calls) == 40 and drawn == [()]


# -------------------------------------------------------------- settings of our own


@pytest.mark.parametrize("ratio", ["2,0", "", "two", "0", "nan", [2], 5, "1e400"])
def test_a_wrong_pixel_ratio_is_named_and_changes_nothing(ratio):
    before = style.current()
    with pytest.raises(ValueError, match="pixel_ratio must be a number from 1 to 4, such as 1.5; got "):
        style.use("presenter", ratio)
    assert style.current() == before


def test_a_wrong_pixel_ratio_of_the_environment_is_named():
    env = os.environ | {"POSVIZ_PIXEL_RATIO": "2,0"}
    run = subprocess.run([sys.executable, "-c", "import posviz.style"], env=env, capture_output=True, text=True)
    assert run.stderr.splitlines()[-1].endswith("pixel_ratio must be a number from 1 to 4, such as 1.5; got '2,0'")
