"""What a picture is: its controls, an artist drawn once, an update that sets data and says one sentence."""

import copy
import math
import textwrap
from dataclasses import dataclass

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from posviz import style

DPI = 100


@dataclass(frozen=True)
class Control:
    """One thing the reader can change. `default` is its first value; `corners()` are the values a sweep must try."""

    name: str

    @property
    def caption(self):
        words = self.label or self.name.replace("_", " ")
        return f"{words} ({self.unit})" if getattr(self, "unit", "") else words

    def check(self, value):
        """`value`, if the control can take it; ValueError otherwise."""
        if not self.accepts(value):
            raise ValueError(f"{self.name} must be {self.allowed()}; got {value!r}")
        return value


@dataclass(frozen=True)
class Choice(Control):
    options: tuple
    default: object = None
    label: str = None

    def __post_init__(self):
        object.__setattr__(self, "options", tuple(self.options))
        if self.default is None:
            object.__setattr__(self, "default", self.options[0])

    def accepts(self, value):
        return value in self.options

    def allowed(self):
        return "one of " + ", ".join(map(repr, self.options))

    def corners(self):
        return list(self.options)


@dataclass(frozen=True)
class Steps(Control):
    """Whole numbers from `low` to `high` in steps of `step`."""

    low: int
    high: int
    step: int = 1
    default: int = None
    unit: str = ""
    label: str = None

    def __post_init__(self):
        if self.default is None:
            object.__setattr__(self, "default", self.low)

    def accepts(self, value):
        return not isinstance(value, (bool, str)) and value == int(value) and self.low <= value <= self.high

    def allowed(self):
        return f"a whole number from {self.low} to {self.high}"

    def corners(self):
        return sorted({self.low, self.default, self.high})


@dataclass(frozen=True)
class Range(Control):
    """Real numbers from `low` to `high` in steps of `step`."""

    low: float
    high: float
    step: float
    default: float = None
    unit: str = ""
    label: str = None

    def __post_init__(self):
        if self.default is None:
            object.__setattr__(self, "default", self.low)

    def accepts(self, value):
        return not isinstance(value, (bool, str)) and self.low <= value <= self.high

    def allowed(self):
        return f"a number from {self.low:g} to {self.high:g}"

    def corners(self):
        return sorted({self.low, self.default, self.high})


@dataclass(frozen=True)
class PowersOfTen(Control):
    """A slider over exponents from `low` to `high`; the value is 10 to that power."""

    low: float
    high: float
    default: float = None
    step: float = 0.25
    unit: str = ""
    label: str = None

    def __post_init__(self):
        exponent = self.low if self.default is None else self.default
        object.__setattr__(self, "default", 10.0**exponent)

    def accepts(self, value):
        return (
            not isinstance(value, (bool, str))
            and value > 0
            and self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9
        )

    def allowed(self):
        return f"a number from {10.0**self.low:g} to {10.0**self.high:g}"

    def corners(self):
        return sorted({10.0**self.low, self.default, 10.0**self.high})


@dataclass(frozen=True)
class Toggle(Control):
    default: bool = False
    label: str = None

    def accepts(self, value):
        return isinstance(value, bool)

    def allowed(self):
        return "True or False"

    def corners(self):
        return [False, True]


@dataclass(frozen=True)
class Text(Control):
    """A line of text the reader types; longer input is refused."""

    default: str
    label: str = None
    longest: int = 200

    def accepts(self, value):
        return isinstance(value, str) and len(value) <= self.longest

    def allowed(self):
        return f"a text of at most {self.longest} characters"

    def corners(self):
        return ["", self.default, ("0123456789" * self.longest)[: self.longest]]


class View:
    """A picture with controls. A subclass gives `title`, `size`, `controls`, `draw` and `update`; see the module."""

    title = ""
    size = (9, 4)
    controls = []

    def draw(self, figure):
        """Create the axes and artists once. Every artist that `update` changes becomes an attribute of the view."""
        raise TypeError(f"{type(self).__name__} has no draw(figure)")

    def update(self, **values):
        """Set data on the artists for these values; return the sentence that says what the picture shows."""
        raise TypeError(f"{type(self).__name__} has no update(...)")

    def follow(self, name, before, values):
        """Values that other controls must take along after control `name` moved from `before`; none by default."""
        return {}

    def values(self, **given):
        """Every control's value: the given ones, checked, and the default of the others."""
        controls = {control.name: control for control in self.controls}
        for name in given:
            if name not in controls:
                known = ", ".join(controls)
                raise TypeError(f"{type(self).__name__} has no control {name!r}; it has {known}")
        return {
            name: controls[name].check(given[name]) if name in given else control.default
            for name, control in controls.items()
        }

    def drawn(self, **given):
        """(a copy of this view with its own figure, the sentence), in the state given: the one way a figure is made."""
        view = copy.copy(self)
        values = self.values(**given)
        with style.rc():
            figure = Figure(figsize=self.size, dpi=DPI * style.current()[1], layout="constrained")
            FigureCanvasAgg(figure)
            view.draw(figure)
            for axes in figure.axes:  # said aloud, or the number of ticks would depend on the reader's own settings
                axes.tick_params(labelsize=style.font_size())
            view.update(**self.values())
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # the axes stay where they are, whatever the values do
            _snap(figure)
            sentence = view.update(**values)
        return view, figure, sentence

    def figure(self, **values):
        """A still Figure of the state given, independent of any other."""
        return self.drawn(**values)[1]

    def explorer(self, **values):
        """The live widget, starting from the values given; a still picture with its sentence where widgets cannot live."""
        from posviz.explorer import Explorer

        return Explorer(self, **values)


def caption(sentence, width):
    """A strip `width` inches wide with the sentence on it, as RGBA pixels: GitHub and slides show only the picture."""
    with style.rc():
        size = style.font_size()
        lines = textwrap.wrap(sentence, int(width * 72 / (0.56 * size)))  # a letter is about 0.56 of the type size wide
        height = (1.4 * len(lines) + 0.8) * size / 72
        figure = Figure(figsize=(width, height), dpi=DPI * style.current()[1])
        canvas = FigureCanvasAgg(figure)
        figure.text(0.01, 1 - 0.4 * size / 72 / height, "\n".join(lines), va="top", linespacing=1.4)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())


def _snap(figure):
    """Move the edges of the axes onto whole pixels, so that a heat map's cells begin and end where they are drawn."""
    width, height = figure.bbox.size
    for axes in figure.axes:
        box = axes.get_position()
        axes.set_aspect("auto")  # as drawn, to half a pixel; "equal" would shrink the box by a part of a pixel again
        left, bottom = round(box.x0 * width), round(box.y0 * height)
        right, top = round(box.x1 * width), round(box.y1 * height)
        axes.set_position([left / width, bottom / height, (right - left) / width, (top - bottom) / height])


def artists_of(view):
    """The artists that `update` may change: those kept as attributes of the view, alone, in lists or in dicts."""
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    def walk(value):
        if isinstance(value, Artist):
            if not isinstance(value, (Axes, Figure)):
                yield value
        elif isinstance(value, dict):
            for part in value.values():
                yield from walk(part)
        elif isinstance(value, (list, tuple)):
            for part in value:
                yield from walk(part)

    return [artist for value in vars(view).values() for artist in walk(value)]
