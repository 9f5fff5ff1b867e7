"""What pictures of several chapters draw alike: empty curves, points and maps that wait for their data; axes; words."""

import numpy as np

from posviz import style
from posviz.lab.results import NAMES

ENCODINGS = {name: key for key, name in NAMES.items()}  # {as a control offers it: as the recorded results have it}


def curve(axes, index, **look):
    """An empty curve in the style of the index-th; `look`: label and further settings of plot."""
    return axes.plot([], [], **style.line(index) | look)[0]


def points(axes, index, **look):
    """An empty set of points in the style of the index-th; `look`: label and further settings of plot."""
    return axes.plot([], [], **style.marker(index) | look)[0]


def measured(axes, index, **look):
    """An empty curve in the style of the index-th with its marker at each value, for the few that were measured."""
    return curve(axes, index, **{"marker": style.MARKERS[index % 8]} | look)


def ring(axes, index, times, **look):
    """An empty set of hollow points, `times` as large as the index-th: they go round other points."""
    size = times * style.marker(index)["markersize"]
    return points(axes, index, **{"markersize": size, "fillstyle": "none"} | look)


def heat_map(axes, cells, low, high, **look):
    """An empty map, coloured from `low` to `high`; signed where 0 lies in between. `look`: further settings of imshow.

    cells: (rows, columns); or None if their number changes: however many there are, they fill the square from 0 to 1,
    which has no ticks, so that no axis need be drawn anew.
    """
    colours = style.DIVERGING if low < 0 < high else style.SEQUENTIAL
    if cells is None:
        axes.set(xticks=[], yticks=[])
        cells, look = (1, 1), {"extent": (0, 1, 1, 0)} | look  # row 0 at the top, as in every map
    return axes.imshow(np.zeros(cells), vmin=low, vmax=high, cmap=colours, interpolation="nearest", **look)


def thousands(numbers):
    """Numbers as tick labels, written out: "0.01", "1", "1,000"."""
    return [f"{number:,g}" for number in numbers]


def log_axis(axes, side, ticks):
    """Make the side "x" or "y" of the axes logarithmic, with these ticks alone, written out and not as powers."""
    axes.set(**{f"{side}scale": "log", f"{side}ticks": ticks, f"{side}ticklabels": thousands(ticks)})
    axes.minorticks_off()


def outside_legend(figure, axes, place="upper left", **look):
    """A legend of one of the axes in the margin of the figure, where it hides no data."""
    figure.legend(*axes.get_legend_handles_labels(), loc=f"outside {place}", frameon=False, **look)


def strokes(x, y, to_x, to_y):
    """x and y data of one line made of separate strokes from each (x, y) to its (to_x, to_y)."""
    lift_pen = np.nan  # a line is not drawn where its data is nan
    return [np.stack(np.broadcast_arrays(*ends, lift_pen), axis=-1).ravel() for ends in ((x, to_x), (y, to_y))]


def sentence_case(words):
    """The words with a capital at the start and everything else as it was: "RoPE" stays "RoPE"."""
    return words[:1].upper() + words[1:]


def counted(number, thing):
    """A number with its noun: "1 token", "1,024 tokens"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"
