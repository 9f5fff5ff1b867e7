"""What a reader can change: each control knows its widget, the values it stops at, and how a value reads."""

import math
import re
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
        kind, look = self.look(value)
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

    def look(self, value):
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

    def look(self, value):
        return ipywidgets.Checkbox, {"indent": False}


@dataclass(frozen=True)
class Text(Control):
    """A line of text the reader types, of any length."""

    default: str
    label: str = None

    def accepts(self, value):
        return isinstance(value, str)

    def allowed(self):
        return "a text"

    def corners(self):
        return ["", self.default, "0123456789" * 20]

    def stops(self, start=None, most=41):
        """The text as it is typed."""
        whole = self.default if start is None else start
        return [whole[:end] for end in sorted({round(at) for at in np.linspace(0, len(whole), most)})]

    def look(self, value):
        return ipywidgets.Text, {"continuous_update": True, "layout": {"width": "600px"}}


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

    def read(self, widget):
        """Without the error of a page's arithmetic, which gives 0.5000000000000001 for 0.5."""
        return round(super().read(widget), 9)

    def corners(self):
        return sorted({self.value_at(self.low), self.default, self.value_at(self.high)})

    def every(self):
        """All values at which the slider stops, in order."""
        count = round((self.high - self.low) / self.step) + 1
        return [self.value_at(round(self.low + self.step * at, 9)) for at in range(count)]

    def stops(self, start=None, most=41):
        every = self.every()
        some = {every[round(at)] for at in np.linspace(0, len(every) - 1, min(len(every), most))}
        return sorted(some | {self.default if start is None else start})

    @property
    def readout(self):
        """The format of a number beside the slider."""
        return f".{len(f'{self.step:g}'.partition('.')[2])}f"

    def words(self, value):
        return f"{value:{self.readout}}"

    @property
    def typeable(self):
        return self.allowed() + (f" in steps of {self.step:g}" if self.step != 1 else "")

    def typed(self, text, now):
        """The value of a number as readers type it: "20,000", "20 000", "0,5", "0.5 rad"; ValueError in their words.

        It must be one at which the slider stops, or `now`, the value it has: a slider in the page takes no other.
        """
        number, unit = re.fullmatch(r"\s*(.*\d[.,]?)?\s*(.*?)\s*", text, re.S).groups()
        number = (number or "").replace("−", "-")
        grouped = re.fullmatch(r"-?[1-9]\d{0,2}([,\s'’]\d{3})+(\.\d*)?", number)
        number = re.sub(r"[,\s'’]", "", number) if grouped else number.replace(",", ".")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if value not in (now, *self.every()) or not self.unit.startswith(unit):
            raise ValueError(f"{self.caption}: “{text[:20]}” is not {self.typeable}.")
        return self.check(value)

    def look(self, value):
        place = {"min": self.low, "max": self.high, "step": self.step}
        return self.kind, place | {"readout": False, "layout": {"flex": "1"}}

    def field(self, value):
        """A line beside the slider for the number: the slider's own reads "20,000" as 20 and "0,5" as 0."""
        tooltip, layout = f"{self.caption}: {self.typeable}", {"width": "84px", "flex": "none"}
        return ipywidgets.Text(self.words(value), continuous_update=False, tooltip=tooltip, layout=layout)


@dataclass(frozen=True)
class Steps(Range):
    """Whole numbers from `low` to `high` in steps of `step`."""

    kind, number, numbers = ipywidgets.IntSlider, int, "a whole number"
    readout = ",d"

    def accepts(self, value):
        return super().accepts(value) and value == int(value)


@dataclass(frozen=True)
class PowersOfTen(Range):
    """1, 2 and 5 times the powers of ten from `low` to `high`; these two and `default` are exponents."""

    kind = ipywidgets.SelectionSlider

    def value_at(self, place):
        return 10.0**place

    def place_of(self, value):
        return round(math.log10(value), 9) if value > 0 else -math.inf

    def every(self):
        values = [float(f"{digit}e{power}") for power in range(self.low, self.high + 1) for digit in (1, 2, 5)]
        return values[:-2]  # not beyond `high`

    @property
    def readout(self):
        return ",.0f" if self.low >= 0 else "g"

    @property
    def typeable(self):
        return f"1, 2 or 5 times a power of ten, from {self.words(10.0**self.low)} to {self.words(10.0**self.high)}"

    def look(self, value):
        options = [(self.words(stop), stop) for stop in self.stops(value, most=1000)]
        return self.kind, {"options": options, "readout": False, "layout": {"flex": "1"}}
