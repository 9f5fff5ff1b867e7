"""What pictures of several chapters draw alike: empty curves, points and maps that wait for their data; axes; words."""

from functools import cache

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import IdentityTransform, ScaledTranslation

from posviz import style
from posviz.lab.results import NAMES, SEEDS

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


def seed_curves(axes, index, **look):
    """Empty curves, one for each seed, of the style of the index-th: the first bold, the others thin."""
    thin = {"linewidth": 1, "markersize": 4}
    return [measured(axes, index, **look | ({"markersize": 8} if seed == SEEDS[0] else thin)) for seed in SEEDS]


def ring(axes, index, times, **look):
    """An empty set of hollow points, `times` as large as the index-th: they go round other points."""
    size = times * style.marker(index)["markersize"]
    return points(axes, index, **{"markersize": size, "fillstyle": "none"} | look)


def heat_map(axes, cells, low, high, **look):
    """An empty map, coloured from `low` to `high`; signed where 0 lies in between. `look`: further settings of imshow.

    cells: (rows, columns); or None if their number changes: however many there are, they fill the square from 0 to 1,
    which has no ticks, so that no axis need be drawn anew.
    """
    look = {"cmap": style.DIVERGING if low < 0 < high else style.SEQUENTIAL} | look
    if cells is None:
        axes.set(xticks=[], yticks=[])
        cells, look = (1, 1), {"extent": (0, 1, 1, 0)} | look  # row 0 at the top, as in every map
    return axes.imshow(np.zeros(cells), vmin=low, vmax=high, interpolation="nearest", **look)


def weight_bar(image, **look):
    """The colour bar of a map of square roots of attention weights: a map of the weights would hide small ones."""
    marks = [0, 0.05, 0.25, 0.5, 1]
    bar = image.axes.figure.colorbar(image, ax=image.axes, ticks=np.sqrt(marks), label="attention weight", **look)
    bar.set_ticklabels(thousands(marks))


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


def decimal(number, digits=3):
    """A number of so many digits without a power of ten: "0.0000281"."""
    return np.format_float_positional(float(f"{number:.{digits}g}"), trim="-")


def counted(number, thing):
    """A number with its noun: "1 token", "1,024 tokens"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def sides(axes, down, across):
    """[Letters left of the rows, Letters below the columns] of a map, with the names of both sides beyond them."""
    size = style.font_size()
    axes.set(xticks=[], yticks=[])
    axes.set_ylabel(down, labelpad=2.2 * size)
    axes.set_xlabel(across, labelpad=1.9 * size)
    return [Letters(axes, -1.2 * size, 0), Letters(axes, 0, -size)]


def number_sides(both, numbers):
    """Write the numbers of rows and columns, which are the same, beside the map: a dozen of them at most."""
    shown = range(0, len(numbers), -(-len(numbers) // 12))
    words, middles = [str(numbers[at]) for at in shown], (np.array(shown) + 0.5) / len(numbers)
    both[0].show(words, 0 * middles, 1 - middles)
    both[1].show(words, middles, 0 * middles)


MONO, SANS = FontProperties(family="DejaVu Sans Mono"), FontProperties(family="DejaVu Sans")


class Letters(PathCollection):
    """Many short words at places of their own. As 96 tick labels they would take 40 ms, as outlines one or two."""

    def __init__(self, axes, right=0, up=0):
        """Away from fractions of the axes by so many points right and up; by none, the places are data."""
        away = ScaledTranslation(right / 72, up / 72, axes.figure.dpi_scale_trans)
        places = axes.transAxes + away if right or up else axes.transData
        super().__init__([], facecolors="black", clip_on=False, offsets=[], offset_transform=places, zorder=3)
        self.set_transform(IdentityTransform())  # else the outlines would be stretched with the axes
        self.set_in_layout(False)  # longer words move nothing
        axes.add_collection(self, autolim=False)

    @staticmethod
    def of_bytes(data):
        """(words, their places in bytes): characters of UTF-8; bytes of what is cut, shuffled or not in the font."""
        words, places, begin, known = [], [], 0, get_font(findfont(MONO)).get_charmap()
        for character in data.decode(errors="surrogateescape"):
            own = character.encode(errors="surrogateescape")
            seen = ord(character) in known and character.isprintable()
            words += [character.replace(" ", "␣")] if seen else [f"{byte:02x}" for byte in own]
            places += [begin + len(own) / 2] if seen else [begin + at + 0.5 for at in range(len(own))]
            begin += len(own)
        return words, np.array(places)

    def show(self, words, x, y, lines=1, share=1):
        """Words in their places, at `share` of the usual size; smaller where so many lines would touch."""
        room = 72 / self.figure.dpi * self.axes.bbox.width / max(lines, 1)  # points for each line
        self.set_paths([_outline(word) for word in words])
        self.set_offsets(np.column_stack([x, y]))
        high = min(share * style.font_size(), 1.25 * room)  # as tall as a row at most, and as wide
        self.set_sizes([min(high, 1.5 * room / len(word)) ** 2 for word in words], self.figure.dpi)

    def number_cells(self, image, values, digits=2):
        """Write each value into its cell of a map of at most 8 × 8 cells; hidden ones not."""
        (rows, columns), (left, right, bottom, top) = values.shape, image.get_extent()
        row, column = np.nonzero(~np.ma.getmaskarray(values) & (max(rows, columns) <= 8))
        shown = np.ma.getdata(values)[row, column]
        x, y = left + (column + 0.5) * (right - left) / columns, top + (row + 0.5) * (bottom - top) / rows
        self.show([f"{round(value, digits) + 0.0:.{digits}f}" for value in shown], x, y, lines=columns, share=0.72)
        light = image.to_rgba(shown)[:, :3] @ [0.3, 0.6, 0.1] > 0.46  # from here on black has the better contrast
        self.set_facecolors(np.where(light, "black", "white"))


class EndNames(Letters):
    """The names of lines or points at their right ends, in their colours, moved apart where they would touch."""

    def __init__(self, axes, longest):
        """The axes leave room for the longest name."""
        super().__init__(axes)
        right = ScaledTranslation(10 / 72, 0, axes.figure.dpi_scale_trans)
        self.set_offset_transform(axes.transData + right)
        axes.text(1, 0.5, "  " + longest, transform=axes.transAxes, alpha=0)

    def follow(self, lines):
        """Stand where the lines, {name: line}, end now."""
        ends = {name: line.get_xydata()[-1] for name, line in lines.items() if len(line.get_xdata())}
        places = self.axes.transData.transform(np.array([*ends.values()]).reshape(-1, 2))
        gap = 1.2 * style.font_size() * self.figure.dpi / 72
        x, y = places.T
        order = np.argsort(y, kind="stable")
        for at, name in enumerate(order):  # up, where one below would touch
            beside = order[:at][np.abs(x[order[:at]] - x[name]) < 8 * gap]
            y[name] = max([y[name], *(y[beside] + gap)])
        for at in range(len(order))[::-1]:  # down again, what is over the top
            beside = order[at + 1 :][np.abs(x[order[at + 1 :]] - x[order[at]]) < 8 * gap]
            y[order[at]] = min([y[order[at]], self.axes.bbox.y1 - gap / 2, *(y[beside] - gap)])
        self.set_paths([_outline(name, SANS) for name in ends])
        self.set_offsets(self.axes.transData.inverted().transform(places))
        self.set_sizes([style.font_size() ** 2], self.figure.dpi)
        self.set_facecolors([0.8 * np.array(to_rgb(lines[name].get_color())) for name in ends])


@cache
def _outline(word, font=MONO):
    """A word of size 1 with its middle at (0, 0); in the font of names it begins there."""
    path = TextPath((0, 0), word, size=1, prop=font)
    middle = -0.05 if word == "␣" else 0.27  # that one hangs below its line, into the next row
    return Path(path.vertices - (0.3 * len(word) * (font is MONO), middle), path.codes)
