"""Every picture, driven through every corner of its controls: by the view, by the widget, and against a full draw."""

import itertools
import warnings

import numpy as np
import pytest
from matplotlib.text import Text

from posviz import style, views
from posviz.live import Choice, Drawing, Range, Steps
from posviz.live.explorer import LONGEST_SENTENCE
from posviz.live.png import png

ALL = views.all_views()
SLIDING = next(kind for kind in ALL if any(isinstance(control, Steps) for control in kind.controls))
each_view = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


def corners(view):
    """The full product of minimum, default and maximum of every control; then each further option of a choice."""
    names = [control.name for control in view.controls]
    ends = [
        [
            value
            for value in control.corners()
            if not isinstance(control, Choice) or value in (control.options[0], control.default, control.options[-1])
        ]
        for control in view.controls
    ]
    for values in itertools.product(*ends):
        yield dict(zip(names, values, strict=True))
    for control, tried in zip(view.controls, ends, strict=True):
        for value in control.corners():
            if value not in tried:
                yield view.values(**{control.name: value})


def with_all_pairs(states):
    """Some of the states that together have every two values of two controls that are met in any."""
    pairs = [set(itertools.combinations(state.items(), min(2, len(state)))) for state in states]
    missing, chosen = set.union(*pairs), []
    while missing:
        most = max(range(len(states)), key=lambda number: len(pairs[number] & missing))
        missing -= pairs[most]
        chosen.append(states[most])
    return chosen


class Sweep:
    """A view seen once in every corner, in all ways at once; a warning in any is an error.

    explorer   its widget, whose controls are set to each corner in turn
    twin       a drawing of its own that goes straight to each and makes no frames: what matplotlib draws
    corners    what was seen in each: a dict of
        values      where the controls were set to
        reached     where they stand: other than `values` where a move takes another control along
        said        the sentences of the widget and of the twin for `reached`
        shown       the PNG files of the widget and of its frame for `reached`
        sentence    the twin's sentence for `values`
        png         the PNG file of the frame for `values`
        off, share  how far that frame is from what matplotlib draws: the largest difference of a channel, and the share
                    of the pixels that differ by more than 2
        small       the texts under 12 points

    A full draw takes ten times as long as a frame. It is made in corners that hold all pairs of values; in the others
    matplotlib draws the heat maps, the one thing in a frame that it does not draw itself.
    """

    def __init__(self, kind):
        self.view = kind()
        self.explorer, self.twin = self.view.explorer(), Drawing(self.view)
        self.corners, states = [], list(corners(self.view))
        compared = with_all_pairs(states)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for values in states:
                seen, frame = self.see(values)
                seen |= self.full_draw(frame) if values in compared else self.without_painters(frame)
                self.corners.append(seen)

    def see(self, values):
        explorer, twin = self.explorer, self.twin
        for name, value in values.items():
            explorer.controls[name].value = value
        reached = explorer.values
        said = explorer.sentence, twin.view.update(**reached)
        frame = explorer.drawing.show(**reached)[0]
        shown = explorer.image.value, png(frame)
        if reached != values:
            frame = explorer.drawing.show(**values)[0]
        sentence, file = twin.view.update(**values), png(frame)
        seen = {"values": values, "reached": reached, "said": said, "shown": shown, "sentence": sentence, "png": file}
        return seen, frame

    def full_draw(self, frame):
        with style.rc(self.twin.preset):
            self.twin.figure.canvas.draw()
        small = {
            text.get_text()
            for text in self.twin.figure.findobj(Text)
            if text.get_text().strip() and text.get_visible() and text.get_fontsize() < 12
        }
        return off_from(np.asarray(self.twin.figure.canvas.buffer_rgba()), frame) | {"small": small}

    def without_painters(self, frame):
        layers = self.explorer.drawing._layers
        painters, frame = layers.painters, frame.copy()
        layers.painters = {}
        try:
            return off_from(layers.frame(), frame) if painters else {}
        finally:
            layers.painters = painters


def off_from(picture, frame):
    off = np.abs(frame[..., :3].astype(np.int16) - picture[..., :3]).max(axis=-1)
    return {"off": off.max(), "share": (off > 2).mean()}


@pytest.fixture(scope="module", params=ALL, ids=lambda kind: kind.__name__)
def sweep(request):
    swept = Sweep(request.param)
    yield swept
    swept.explorer.close()


@each_view
def test_a_view_declares_what_it_is(kind):
    view = kind()
    assert len(kind.title) > 5 and kind.__doc__ and len(view.controls) >= 1
    assert view.size[0] <= 9.6
    names = [control.name for control in view.controls]
    assert len(set(names)) == len(names)
    for control in view.controls:
        assert all(control.accepts(value) for value in control.corners())
        assert len(control.caption) <= 40
    controls = {control.name: control for control in view.controls}
    for name, asked in view.story.items():
        assert all(controls[name].accepts(value) for value in asked)
        assert controls[name].slides or not asked  # a choice keeps all its options anyway


def test_every_corner_draws_and_the_fast_frame_equals_a_full_draw(sweep):
    for seen in sweep.corners:
        sentence = seen["sentence"]
        assert 25 <= len(sentence) <= LONGEST_SENTENCE and "nan" not in sentence.lower().split(), sentence
        assert len(seen["png"]) <= 100_000, seen["values"]  # bytes, at 100 dpi
        assert seen.get("off", 0) <= 40 and seen.get("share", 0) <= 1e-4, seen["values"]


def test_the_widget_reaches_every_corner_without_a_warning(sweep):
    for seen in sweep.corners:
        shown, frame = seen["shown"]
        assert shown[:4] == b"\x89PNG" and shown == frame, seen["reached"]
        said, twins = seen["said"]
        assert said == twins, seen["reached"]


def test_each_control_changes_the_picture_or_the_sentence(sweep):
    """In some state of the others: a slider that never changes anything is dead."""
    for control in sweep.view.controls:
        groups = {}
        for seen in sweep.corners:
            others = tuple(value for name, value in seen["values"].items() if name != control.name)
            groups.setdefault(others, set()).add(seen["sentence"])
        assert any(len(group) > 1 for group in groups.values()), f"{control.name} never changes the sentence"


@each_view
def test_every_number_that_a_slider_can_show_is_read_back_to_itself(kind):
    for control in kind.controls:
        if control.slides:
            for value in control.stops(most=100_000):
                for shown in (control.words(value), f"{control.words(value)} {control.unit}", f"{value:.12g}"):
                    assert control.typed(shown, control.default) == value, shown


def test_a_still_figure_is_independent_of_the_live_one(sweep):
    explorer = sweep.explorer
    before = explorer.drawing.show(**explorer.values)[0].copy()
    first, second = sweep.view.figure(), sweep.view.figure()
    assert first is not second and first.axes[0] is not second.axes[0]
    first.clear()
    assert np.array_equal(explorer.drawing.show(**explorer.values)[0], before)


def test_text_is_large_enough_for_the_back_row(sweep):
    for seen in sweep.corners:
        assert not seen.get("small"), seen["values"]


@pytest.mark.parametrize("kind", views.all_views(), ids=lambda kind: kind.__name__)
def test_no_title_and_no_label_is_cut_off_on_a_projector(kind):
    preset, _ = style.current()
    style.use("presenter")
    try:
        figure = Drawing(kind()).figure
    finally:
        style.use(preset)
    renderer, (width, height) = figure.canvas.get_renderer(), figure.bbox.size
    for axes in figure.axes:
        for text in (axes.title, axes._left_title, axes._right_title, axes.xaxis.label, axes.yaxis.label):
            box = text.get_window_extent(renderer)
            inside = -1 <= box.x0 and box.x1 <= width + 1 and -1 <= box.y0 and box.y1 <= height + 1
            assert inside or not text.get_text(), text.get_text()


def test_unknown_controls_and_values_out_of_range_are_named():
    view = SLIDING()
    with pytest.raises(TypeError, match="no control 'speed'"):
        view.figure(speed=3)
    control = next(c for c in view.controls if isinstance(c, (Steps, Range)))
    with pytest.raises(ValueError, match=rf"{control.name} must be .*got {control.high + 1}"):
        view.figure(**{control.name: control.high + 1})


def test_two_hundred_updates_leave_no_open_figure_and_bounded_memory():
    import gc
    import tracemalloc

    from matplotlib import pyplot

    view = SLIDING()
    control = next(c for c in view.controls if isinstance(c, (Steps, Range)))
    explorer = view.explorer()
    step = (control.high - control.low) / 50
    places = [type(control.default)(control.low + step * (k % 51)) for k in range(200)]
    for value in places:
        explorer.controls[control.name].value = value
    gc.collect()
    tracemalloc.start()
    for value in places:
        explorer.controls[control.name].value = value
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 3_000_000
    assert pyplot.get_fignums() == []
    explorer.close()
