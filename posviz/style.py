"""How every picture looks: colours for grey print and colour blindness, type for the back row and the projector."""

import logging
import os
import threading
from contextlib import contextmanager
from functools import cache

# Where HOME cannot be written, or no font list exists yet, matplotlib logs a warning at its import: no reader needs it.
_log = logging.getLogger("matplotlib")
_level_before = _log.level
_log.setLevel(logging.ERROR)
import matplotlib.font_manager  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap  # noqa: E402

from posviz._arguments import one_of, require  # noqa: E402

_log.setLevel(_level_before)

# Eight dark colours: each at least 3:1 against white, no pair told apart by red against green alone.
COLORS = ["#0060A8", "#D05000", "#00795A", "#9C3C8C", "#222222", "#846200", "#3A86C8", "#6E6E6E"]
DASHES = ["-", (0, (5, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.5)), "-", (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)), (0, (2, 2))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]

SEQUENTIAL = "cividis"  # its lightness only rises, so it reads in grey, too
# White at 0: what is not there does not show. In grey the negative end is the darker one; small maps have numbers.
DIVERGING = LinearSegmentedColormap.from_list(
    "blue to orange", ["#062B5E", "#5C92CC", "#FFFFFF", "#F5B56E", "#D05000"], N=257
)

reference = {"color": "#8A8A8A", "linewidth": 1.0, "linestyle": (0, (4, 3)), "zorder": 1}

PRESETS = {
    "reader": {"font": 12.0, "line": 2.2, "marker": 8.0},
    "presenter": {"font": 17.0, "line": 3.6, "marker": 12.0},
}
# Held while anything is drawn: matplotlib is not made for threads, and JupyterLab has the messages of controls answered
# in another thread of the kernel (a "subshell") than the one that runs the cells.
lock = threading.RLock()
_current = {"preset": "reader", "pixel_ratio": 1.0}


def use(preset=None, pixel_ratio=None):
    """Choose the look of the pictures made from now on.

    preset        "reader" or "presenter"
    pixel_ratio   of the screen; 2 on a retina screen

    The environment variables POSVIZ_PRESET and POSVIZ_PIXEL_RATIO set the same when a kernel starts.
    Raises ValueError for an unknown preset or a ratio outside 1 … 4.
    """
    preset, ratio = (now if new is None else new for new, now in zip((preset, pixel_ratio), current()))
    one_of(preset, "preset", PRESETS)
    try:
        ratio = float(ratio)
    except (TypeError, ValueError):
        ratio = 0.0
    require(1 <= ratio <= 4, "pixel_ratio", "be a number from 1 to 4, such as 1.5", repr(pixel_ratio))
    _current.update(preset=preset, pixel_ratio=ratio)


def current():
    """The preset's name and the pixel ratio now in force, as a tuple."""
    return _current["preset"], _current["pixel_ratio"]


def font_size(preset=None):
    """The type size in points under a preset, or under the one in force."""
    return PRESETS[preset or _current["preset"]]["font"]


def line(index):
    """Keyword arguments of the index-th curve: colour and dash differ together, so neither is needed alone."""
    width = PRESETS[_current["preset"]]["line"]
    return {"color": COLORS[index % 8], "linestyle": DASHES[index % 8], "linewidth": width}


def marker(index):
    """Keyword arguments of the index-th set of points: colour and shape differ together."""
    size = PRESETS[_current["preset"]]["marker"]
    return {"color": COLORS[index % 8], "marker": MARKERS[index % 8], "markersize": size, "linestyle": "none"}


@contextmanager
def rc(preset=None):
    """The settings of a preset, or of the one in force; whatever the reader set for other figures stays as it was.

    Every frame is drawn under them, so only what differs is set, and by `_set`: matplotlib keeps it stable for others,
    and unlike `rc_context` it does not check each value again, which takes longer than a frame.
    """
    with lock:
        params, ours = matplotlib.rcParams, _settings(preset or _current["preset"])
        theirs = {key: params._get(key) for key, value in ours.items() if params._get(key) is not value}
        try:
            for key in theirs:
                params._set(key, ours[key])
            yield
        finally:
            for key, value in theirs.items():
                params._set(key, value)


@cache
def _settings(preset):
    sizes = ("font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    ours = {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    ours |= {"legend.framealpha": 1.0, "image.interpolation": "nearest"} | dict.fromkeys(sizes, font_size(preset))
    defaults = matplotlib.rcParamsDefault  # white paper
    return {key: defaults._get(key) for key in defaults if key != "backend"} | ours


use(os.environ.get("POSVIZ_PRESET") or None, os.environ.get("POSVIZ_PIXEL_RATIO") or None)
