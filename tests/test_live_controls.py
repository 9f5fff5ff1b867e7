"""What a control takes, where it stops, how its values read, and the widget it becomes."""

import math

import ipywidgets
import numpy as np
import pytest

from posviz.live import Choice, PowersOfTen, Range, Steps, Text, Toggle

FEW = Choice("side", ["left", "right"])
MANY = Choice("length", [1, 2, 4, 8, 16], default=4)
SWITCH = Toggle("mirror")
LINE = Text("name", "abc", longest=5)
REAL = Range("height", 0.0, 2.0, 0.25, default=1.0, unit="m")
WHOLE = Steps("position", 0, 4096, default=100, unit="tokens", label="query position")
POWER = PowersOfTen("base", 2, 7, default=4)
SMALL = PowersOfTen("penalty", -6, 1, default=-3, step=0.5)
CONTROLS = [FEW, MANY, SWITCH, LINE, REAL, WHOLE, POWER, SMALL]
each = pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)


@pytest.mark.parametrize(
    "control, value, words",
    [
        (FEW, "up", "side must be one of 'left', 'right'; got 'up'"),
        (SWITCH, 1, "mirror must be True or False; got 1"),
        (LINE, "abcdef", "name must be a text of at most 5 characters; got 'abcdef'"),
        (LINE, 3, "name must be a text of at most 5 characters; got 3"),
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
    assert 20_000.0 in POWER.stops(start=20_000.0) and np.allclose(POWER.stops(most=6), 10.0 ** np.arange(2, 8))
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
        (SMALL, 10**-2.5, "0.00316"),
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
        (POWER, ipywidgets.FloatLogSlider),
    ],
)
def test_the_widget_shows_the_value_and_reaches_every_corner(control, kind):
    widget = control.widget(control.default)
    assert type(widget) is kind and widget.description == control.caption
    for value in control.corners():
        widget.value = value
        assert control.read(widget) == value
    widget.close()


def test_a_caption_names_the_unit():
    assert WHOLE.caption == "query position (tokens)" and POWER.caption == "base"
    assert Toggle("causal_mask").caption == "causal mask"


def test_typing_beyond_the_longest_text_changes_nothing():
    widget = LINE.widget("abcde")
    widget.value = "abcdef"
    assert LINE.read(widget) == "abcde"
    widget.close()


def test_controls_cannot_be_changed():
    with pytest.raises(AttributeError):
        WHOLE.high = 8192
