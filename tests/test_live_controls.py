"""What a control takes, where it stops, how its values read, and the widget it becomes."""

import math

import ipywidgets
import numpy as np
import pytest

from posviz.live import Choice, PowersOfTen, Range, Steps, Text, Toggle

FEW = Choice("side", ["left", "right"])
MANY = Choice("length", [1, 2, 4, 8, 16], default=4)
SWITCH = Toggle("mirror")
LINE = Text("name", "abc")
REAL = Range("height", 0.0, 2.0, 0.25, default=1.0, unit="m")
WHOLE = Steps("position", 0, 4096, default=100, unit="tokens", label="query position")
POWER = PowersOfTen("base", 2, 7, default=4)
SMALL = PowersOfTen("penalty", -6, 1, default=-3)
CONTROLS = [FEW, MANY, SWITCH, LINE, REAL, WHOLE, POWER, SMALL]
each = pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)


@pytest.mark.parametrize(
    "control, value, words",
    [
        (FEW, "up", "side must be one of 'left', 'right'; got 'up'"),
        (SWITCH, 1, "mirror must be True or False; got 1"),
        (LINE, 3, "name must be a text; got 3"),
        (REAL, 2.1, "height must be a number from 0 to 2; got 2.1"),
        (REAL, math.nan, "height must be a number from 0 to 2; got nan"),
        (REAL, True, "height must be a number from 0 to 2; got True"),
        (REAL, "1", "height must be a number from 0 to 2; got '1'"),
        (REAL, None, "height must be a number from 0 to 2; got None"),
        (WHOLE, 4097, "position must be a whole number from 0 to 4096; got 4097"),
        (WHOLE, 0.5, "position must be a whole number from 0 to 4096; got 0.5"),
        (POWER, 99.9, "base must be a number from 100 to 1e+07; got 99.9"),
        (POWER, 0, "base must be a number from 100 to 1e+07; got 0"),
        (SMALL, 10.1, "penalty must be a number from 1e-06 to 10; got 10.1"),
    ],
)
def test_what_a_control_cannot_take_is_named(control, value, words):
    with pytest.raises(ValueError) as refusal:
        control.check(value)
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    "control, given, taken",
    [(WHOLE, np.int64(7), 7), (WHOLE, 7.0, 7), (REAL, 1, 1.0), (REAL, np.float32(0.5), 0.5), (POWER, 10_000, 1e4)],
)
def test_numbers_of_any_kind_are_taken_as_pythons_own(control, given, taken):
    value = control.check(given)
    assert value == taken and type(value) is type(taken)


@each
def test_it_takes_its_default_and_its_corners(control):
    for value in [control.default, *control.corners()]:
        assert control.check(value) == value
    assert control.default in control.corners()


@each
def test_stops_are_in_order_and_hold_the_start_and_both_ends(control):
    stops = control.stops()
    assert all(control.check(stop) == stop for stop in stops) and len(stops) == len(set(stops)) <= 42
    assert control.default in stops
    if control.slides:
        assert stops == sorted(stops) and [stops[0], stops[-1]] == [min(control.corners()), max(control.corners())]


def test_stops_of_a_long_slider_are_few_and_the_start_is_exact():
    stops = WHOLE.stops(start=1001, most=11)
    assert stops == [0, 410, 819, 1001, 1229, 1638, 2048, 2458, 2867, 3277, 3686, 4096]
    assert Steps("dim", 8, 128, step=8).stops(most=1000) == list(range(8, 129, 8))
    assert 20_000.0 in POWER.stops(start=20_000.0) and POWER.stops(most=6) == [10.0**n for n in range(2, 8)]
    assert POWER.stops()[:5] == [100, 200, 500, 1000, 2000] and {500_000, 1e6} < set(POWER.stops())
    assert SMALL.stops()[:4] == [1e-6, 2e-6, 5e-6, 1e-5] and len(set(SMALL.stops())) == 22
    assert REAL.stops(start=0.1) == [0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]


def test_what_does_not_slide_stops_everywhere():
    assert FEW.stops("right") == ["left", "right"] and MANY.stops() == [1, 2, 4, 8, 16]
    assert SWITCH.stops() == [False, True]
    assert LINE.stops("abcd") == ["", "a", "ab", "abc", "abcd"]
    assert len(Text("text", "x" * 100).stops(most=11)) == 11


@pytest.mark.parametrize(
    "control, value, words",
    [
        (FEW, "left", "left"),
        (MANY, 8, "8"),
        (SWITCH, True, "on"),
        (SWITCH, False, "off"),
        (LINE, "ab", "ab"),
        (REAL, 0.5, "0.50"),
        (Range("theta", 0.0, 1.0, 0.1), 0.3, "0.3"),
        (WHOLE, 4096, "4,096"),
        (POWER, 1e4, "10,000"),
        (SMALL, 0.002, "0.002"),
        (SMALL, 1e-6, "1e-06"),
    ],
)
def test_a_value_reads_as_a_reader_says_it(control, value, words):
    assert control.words(value) == words


@pytest.mark.parametrize(
    "control, kind",
    [
        (FEW, ipywidgets.ToggleButtons),
        (MANY, ipywidgets.Dropdown),
        (SWITCH, ipywidgets.Checkbox),
        (LINE, ipywidgets.Text),
        (REAL, ipywidgets.FloatSlider),
        (WHOLE, ipywidgets.IntSlider),
        (POWER, ipywidgets.SelectionSlider),
    ],
)
def test_the_widget_shows_the_value_and_reaches_every_corner(control, kind):
    widget = control.widget(control.default)
    assert type(widget) is kind and widget.description == control.caption
    for value in control.corners():
        widget.value = value
        assert control.read(widget) == value
    widget.close()


def test_a_value_is_read_without_the_rounding_of_the_page():
    widget = REAL.widget(0.5)
    widget.value = 0.5000000000000001
    assert REAL.read(widget) == 0.5
    widget.close()


def test_a_caption_names_the_unit():
    assert WHOLE.caption == "query position (tokens)" and POWER.caption == "base"
    assert Toggle("causal_mask").caption == "causal mask"


def test_a_text_of_any_length_is_kept_whole():
    widget = LINE.widget("abc")
    widget.value = "abcdef" * 1000
    assert LINE.read(widget) == "abcdef" * 1000
    widget.close()


def test_controls_cannot_be_changed():
    with pytest.raises(AttributeError):
        WHOLE.high = 8192
