"""One drawing of a view: its own copy, figure and layers. Live pictures, stills, static pages and tests all use it."""

import copy
import io
import textwrap
from functools import cached_property

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from posviz import style
from posviz.live.frames import Layers
from posviz.live.png import png

DPI = 100
STILL = "A still picture. Run this cell in Jupyter: then the controls appear."


class Drawing:
    """A view drawn once; `show` sets it to any state. It keeps the style in force when it was made.

    view       the copy of the view whose artists these are
    figure     its Figure, in the state given
    values     the values of that state: those given, checked, and the defaults of the others
    sentence   what the view says about it
    """

    def __init__(self, view, **values):
        self.values = view.values(**values)
        self.view = copy.copy(view)
        self.preset, ratio = style.current()
        with style.rc(self.preset):
            self.figure = Still(figsize=view.size, dpi=DPI * ratio, layout="constrained")
            FigureCanvasAgg(self.figure)
            self.figure.preset = self.preset
            self.view.draw(self.figure)
            for axes in self.figure.axes:  # or the number of ticks would depend on the reader's own settings
                axes.tick_params(labelsize=style.font_size())
            # The layout is measured on the default state and then frozen, whatever state is asked for: so the axes of
            # a view stand at one place in every still, page and live picture, and no slider moves them.
            self.view.update(**view.values())
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")
            _snap(self.figure)
            self.sentence = self.view.update(**self.values)

    def show(self, **values):
        """(pixels, sentence) of the state of these values, which must be valid and complete.

        pixels: uint8 RGBA of shape (height, width, 4), good until the next call.
        """
        with style.rc(self.preset):
            sentence = self.view.update(**values)
            return self._layers.frame(), sentence

    def still(self, **values):
        """(PNG bytes, sentence) of a state, the sentence written under the picture: what a saved notebook keeps."""
        with style.lock:
            pixels, sentence = self.show(**values)
            picture = np.concatenate([pixels, self._caption(sentence)])
        return png(picture, small=True), sentence

    @property
    def rebuilds(self):
        """How often the axes were drawn with all that stands still in them: once, and where limits or ticks change."""
        return self._layers.rebuilds

    @cached_property
    def _layers(self):  # made when first asked for, as a still figure has none
        return Layers(self.figure, artists_of(vars(self.view)))

    def _caption(self, sentence):
        """A strip as wide as the figure with the sentence on it, as pixels: GitHub and slides show only the picture."""
        with style.rc(self.preset):
            size, width = style.font_size(self.preset), self.view.size[0]
            letters = int(width * 72 / (0.56 * size))  # a letter is about 0.56 of the size wide
            lines, hint = textwrap.wrap(sentence, letters), textwrap.wrap(STILL, letters)
            height = (1.4 * len(lines + hint) + 0.8) * size / 72
            figure = Figure(figsize=(width, height), dpi=self.figure.dpi)
            canvas = FigureCanvasAgg(figure)
            figure.text(0.01, 1 - 0.4 * size / 72 / height, "\n".join(lines), va="top", linespacing=1.4)
            look = {"va": "bottom", "linespacing": 1.4, "color": style.COLORS[-1], "style": "italic"}
            figure.text(0.01, 0.4 * size / 72 / height, "\n".join(hint), **look)
            canvas.draw()
            return np.asarray(canvas.buffer_rgba())


class Still(Figure):
    """A figure in its own style, which a notebook shows as a picture even if pyplot was never used there."""

    def draw(self, renderer):
        with style.rc(self.preset):
            super().draw(renderer)

    def _repr_png_(self):
        file = io.BytesIO()
        with style.rc(self.preset):
            self.savefig(file, format="png")
        return file.getvalue()


def _snap(figure):
    """Move the edges of the axes onto whole pixels, so that a heat map's cells begin and end where they are drawn."""
    pixels = figure.bbox.size
    for axes in figure.axes:
        low, high = np.rint(axes.get_position().get_points() * pixels)  # the corners, each (x, y)
        axes.set_aspect("auto")  # as drawn, to half a pixel; "equal" would shrink the box by a part of a pixel again
        axes.set_position([*low / pixels, *(high - low) / pixels])


def artists_of(value):
    """The artists that `update` may change: those kept as attributes of a view, alone, in lists or in dicts."""
    if isinstance(value, Artist):
        return [] if isinstance(value, (Axes, Figure)) else [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [artist for part in value for artist in artists_of(part)] if isinstance(value, (list, tuple)) else []
