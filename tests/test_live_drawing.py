"""One drawing: what it owns, what it keeps still, and that a slider never makes it draw its axes again without need."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest

from posviz import style, views
from posviz.live import Drawing, Steps, Toggle, View
from posviz.live.explorer import LONGEST_SENTENCE

# The controls that change limits or ticks: each move of them draws the axes again, about 60 ms.
AXES_CHANGE = {
    ("SinusoidalTable", "positions"),
    ("SinusoidalTable", "dim"),
    ("OneComponent", "length"),
    ("RealModel", "zoom"),
}


class Wave(View):
    """A curve, a heat map and words that change."""

    title = "A wave"
    size = (5, 3)
    controls = [Steps("step", 0, 9, default=3), Toggle("wide"), Steps("tied", 0, 9)]

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        left.set(xlim=(0, 6), ylim=(-1, 1), ylabel="value")
        (self.curve,) = left.plot([], [], linewidth=3)
        self.words = left.text(1, 0.5, "")
        self.map = right.imshow(np.zeros((4, 4)), vmin=0, vmax=9, interpolation="nearest")

    def update(self, step, wide, tied):
        x = np.linspace(0, 6, 200)
        self.curve.set_data(x, np.sin(x + step))
        self.words.set_text(f"{step}")
        self.map.set_data(np.full((4, 4), step))
        if self.curve.axes.get_xlim()[1] != (12 if wide else 6):
            self.curve.axes.set_xlim(0, 12 if wide else 6)
        return f"The wave at step {step}, {'wide' if wide else 'narrow'}."

    def coupled(self, moved, before, values):
        return {"tied": values["step"]} if moved == "step" else {}


class Forgetful(Wave):
    """Changes an artist that it did not keep as an attribute."""

    def draw(self, figure):
        super().draw(figure)
        self.title_of = [self.curve.axes.set_title]

    def update(self, step, wide, tied):
        self.title_of[0](f"step {step}")
        return super().update(step, wide, tied)


def test_it_owns_a_copy_of_the_view_its_figure_and_the_checked_values():
    view = Wave()
    drawing = Drawing(view, step=np.int64(5))
    assert drawing.values == {"step": 5, "wide": False, "tied": 0} and type(drawing.values["step"]) is int
    assert drawing.sentence == "The wave at step 5, narrow." and vars(view) == {}
    assert drawing.view.curve.figure is drawing.figure
    with pytest.raises(ValueError, match="step must be a whole number from 0 to 9; got 10"):
        Drawing(view, step=10)


def test_a_shown_state_is_the_still_figure_of_that_state():
    state = Wave().values(step=7, wide=True)
    pixels, sentence = Drawing(Wave()).show(**state)
    figure = Wave().figure(step=7, wide=True)
    with style.rc("reader"):
        figure.canvas.draw()
    assert sentence == "The wave at step 7, wide."
    assert np.abs(pixels[..., :3].astype(int) - np.asarray(figure.canvas.buffer_rgba())[..., :3]).max() <= 2


def test_axes_stand_at_one_place_whatever_the_first_state():
    places = [[axes.get_position().bounds for axes in Wave().figure(wide=wide).axes] for wide in (False, True)]
    assert places[0] == places[1]


def rebuilds(view):
    """{control: (how often the axes were drawn again, how often the value changed)} along each, there and back.

    Its start is the last state too, so that the next control begins where this one did.
    """
    drawing, counted = Drawing(view), {}
    start = drawing.values
    size = drawing.show(**start)[0].shape
    assert drawing.rebuilds == 1
    for control in view.controls:
        before = drawing.rebuilds
        values = [start[control.name], *control.stops(most=21), start[control.name]]
        for value in values:
            state = view.after_move(start, control.name, value)
            sentence = drawing.view.update(**state)
            if drawing.figure.stale or value in control.corners():  # elsewhere a frame draws nothing again
                assert drawing.show(**state)[0].shape == size
            assert len(sentence) <= LONGEST_SENTENCE  # and one size of picture: in a page nothing jumps
        counted[control.name] = drawing.rebuilds - before, sum(one != other for one, other in zip(values, values[1:]))
    return counted


@pytest.mark.parametrize("kind", views.all_views(), ids=lambda kind: kind.__name__)
def test_no_slider_draws_the_axes_again_unless_they_change(kind):
    for name, (drawn, changed) in rebuilds(kind()).items():
        assert drawn == (changed if (kind.__name__, name) in AXES_CHANGE else 0), name


def test_the_count_finds_an_artist_that_is_changed_but_not_kept():
    assert rebuilds(Wave()) == {"step": (0, 11), "wide": (2, 2), "tied": (0, 10)}
    assert rebuilds(Forgetful())["step"][0] > 0


def test_a_move_takes_coupled_controls_along_and_leaves_the_state_before_as_it_was():
    view, before = Wave(), Wave().values()
    assert view.after_move(before, "step", 8) == {"step": 8, "wide": False, "tied": 8}
    assert view.after_move(before, "tied", 8) == {"step": 3, "wide": False, "tied": 8}
    assert before == {"step": 3, "wide": False, "tied": 0}


def test_where_one_control_has_room_it_is_the_first_that_slides():
    assert Wave().first_slider.name == "step"
    assert views.ScoreByDistance().first_slider.name == "dim"  # after a choice
    assert views.EveryMethod().first_slider.name == "length"  # two choices, nothing slides


@pytest.mark.parametrize("meanwhile", [{"pixel_ratio": 2}, {"preset": "presenter"}])
def test_a_drawing_keeps_the_style_it_was_made_in(meanwhile):
    drawing = Drawing(Wave())
    before, still = drawing.show(**drawing.values)[0].copy(), drawing.still(**drawing.values)
    try:
        style.use(**meanwhile)
        drawing.show(**drawing.values | {"wide": True})  # the axes are drawn again
        assert np.array_equal(drawing.show(**drawing.values)[0], before)
        assert drawing.still(**drawing.values) == still
    finally:
        style.use("reader", 1)


@pytest.mark.parametrize(
    "setting", [{"path.simplify_threshold": 1.0}, {"text.hinting": "none"}, {"axes.unicode_minus": False}]
)
def test_what_a_reader_sets_for_other_figures_does_not_reach_a_frame(setting):
    drawing = Drawing(Wave())
    before = drawing.show(**drawing.values)[0].copy()
    with matplotlib.rc_context(setting):
        for wide in (True, False):
            after, _ = drawing.show(**drawing.values | {"wide": wide})
        assert np.array_equal(after, before)
        assert matplotlib.rcParams[next(iter(setting))] == next(iter(setting.values()))


def test_a_figure_shows_itself_in_a_notebook_that_never_used_pyplot():
    code = """
from IPython.core.interactiveshell import InteractiveShell
from posviz import views
data, _ = InteractiveShell.instance().display_formatter.format(views.ClockWall().figure())
print(*data)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "image/png" in shown


@pytest.mark.parametrize("level", ["WARNING", "NOTSET", "CRITICAL"])
def test_the_users_logging_level_survives_the_import(level):
    code = f"""
import logging
logging.getLogger("matplotlib").setLevel(logging.{level})
import posviz.live
print(logging.getLogger("matplotlib").level == logging.{level})
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


@pytest.mark.parametrize("ratio", ["2,0", "", "0", "nan", [2], 5])
def test_a_wrong_pixel_ratio_is_named_and_changes_nothing(ratio):
    before = style.current()
    with pytest.raises(ValueError, match="pixel_ratio must be a number from 1 to 4, such as 1.5; got "):
        style.use("presenter", ratio)
    with pytest.raises(ValueError, match="preset must be one of 'reader', 'presenter'; got 'poster'"):
        style.use("poster", 2)
    assert style.current() == before
