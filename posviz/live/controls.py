"""What a reader can change: each control knows its widget, the values it stops at, and how a value reads."""

import math
from dataclasses import dataclass
from numbers import Real

import ipywidgets
import numpy as np


@dataclass(frozen=True)
class Control:
    """One thing the reader can change; `default` is its first value."""

    name: str

    slides = False  # whether its values lie along a line
    unit = ""

    @property
    def caption(self):
        words = self.label or self.name.replace("_", " ")
        return f"{words} ({self.unit})" if self.unit else words

    def check(self, value):
        """`value`, if the control can take it; ValueError otherwise."""
        if not self.accepts(value):
            raise ValueError(f"{self.name} must be {self.allowed()}; got {value!r}")
        return value

    def corners(self):
        """The values that a sweep must try."""
        return self.stops()

    def stops(self, start=None, most=41):
        """The values in order, both ends and `start` (the default) among them; of many, `most` and `start`."""
        return self.corners()

    def words(self, value):
        """The value as a reader reads it; the caption says the unit."""
        return str(value)

    def widget(self, value):
        """An ipywidgets control that shows `value`; it works with the keyboard and says its unit."""
        kind, look = self.look()
        style = {"description_width": "initial"} | look.pop("style", {})
        return kind(value=value, description=self.caption, style=style, **look)

    def read(self, widget):
        """The value of the widget, checked."""
        return self.check(widget.value)


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

    def look(self):
        if len(self.options) > 4:
            return ipywidgets.Dropdown, {"options": self.options}
        return ipywidgets.ToggleButtons, {"options": self.options, "style": {"button_width": "auto"}}


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

    def words(self, value):
        return "on" if value else "off"

    def look(self):
        return ipywidgets.Checkbox, {"indent": False}


@dataclass(frozen=True)
class Text(Control):
    """A line of text the reader types; what goes beyond `longest` characters is left out."""

    default: str
    label: str = None
    longest: int = 200

    def accepts(self, value):
        return isinstance(value, str) and len(value) <= self.longest

    def allowed(self):
        return f"a text of at most {self.longest} characters"

    def corners(self):
        return ["", self.default, ("0123456789" * self.longest)[: self.longest]]

    def stops(self, start=None, most=41):
        """The text as it is typed."""
        whole = self.default if start is None else start
        return [whole[:end] for end in sorted({round(at) for at in np.linspace(0, len(whole), most)})]

    def look(self):
        return ipywidgets.Text, {"continuous_update": True, "layout": {"width": "600px"}}

    def read(self, widget):
        return self.check(widget.value[: self.longest])


@dataclass(frozen=True)
class Range(Control):
    """Real numbers from `low` to `high` in steps of `step`."""

    low: float
    high: float
    step: float = 1
    default: float = None
    unit: str = ""
    label: str = None

    slides = True
    kind, number, numbers = ipywidgets.FloatSlider, float, "a number"

    def __post_init__(self):
        start = self.low if self.default is None else self.default
        object.__setattr__(self, "default", self.value_at(start))

    def value_at(self, place):
        """The value where the slider stands at `place`, a number from `low` to `high`."""
        return self.number(place)

    def place_of(self, value):
        return value

    def accepts(self, value):
        return isinstance(value, Real) and not isinstance(value, bool) and self.low <= self.place_of(value) <= self.high

    def allowed(self):
        return f"{self.numbers} from {self.value_at(self.low):g} to {self.value_at(self.high):g}"

    def check(self, value):
        return self.number(super().check(value))

    def corners(self):
        return sorted({self.value_at(self.low), self.default, self.value_at(self.high)})

    def stops(self, start=None, most=41):
        start = self.default if start is None else start
        count = round((self.high - self.low) / self.step) + 1
        places = {self.low + self.step * round(at) for at in np.linspace(0, count - 1, min(count, most))}
        here = round(self.place_of(start), 9)
        places = sorted({round(place, 9) for place in places} | {here})
        return [start if place == here else self.value_at(place) for place in places]

    @property
    def readout(self):
        """The format of a number beside the slider."""
        return f".{len(f'{self.step:g}'.partition('.')[2])}f"

    def words(self, value):
        return f"{value:{self.readout}}"

    def look(self):
        place = {"min": self.low, "max": self.high, "step": self.step}
        return self.kind, place | {"readout_format": self.readout, "layout": {"width": "430px"}}


@dataclass(frozen=True)
class Steps(Range):
    """Whole numbers from `low` to `high` in steps of `step`."""

    kind, number, numbers = ipywidgets.IntSlider, int, "a whole number"
    readout = "d"

    def accepts(self, value):
        return super().accepts(value) and value == int(value)

    def words(self, value):
        return f"{value:,}"


@dataclass(frozen=True)
class PowersOfTen(Range):
    """A slider over exponents from `low` to `high`, `default` one of them; the value is 10 to that power."""

    step: float = 0.25

    kind = ipywidgets.FloatLogSlider

    def value_at(self, place):
        return 10.0**place

    def place_of(self, value):
        return round(math.log10(value), 9) if value > 0 else -math.inf

    @property
    def readout(self):
        return ",.0f" if self.low >= 0 else ".3g"
