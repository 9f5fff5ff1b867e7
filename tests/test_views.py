"""Every picture, driven through every corner of its controls: by the view, by the widget, and against a full draw."""

import io
import itertools
import warnings

import numpy as np
import pytest
from PIL import Image

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


def pixels_of(explorer):
    return np.asarray(Image.open(io.BytesIO(explorer.image.value))).astype(int)


def set_controls(explorer, values):
    for name, value in values.items():
        explorer.controls[name].value = value


def full_draw(drawing):
    """Matplotlib's own picture of the state that the drawing shows."""
    moving = drawing._layers.moving
    for artist in moving:
        artist.set_animated(False)
    with style.rc(drawing.preset):
        drawing.figure.canvas.draw()
    for artist in moving:
        artist.set_animated(True)
    drawing.figure.stale = False
    return np.asarray(drawing.figure.canvas.buffer_rgba())[..., :3].astype(int)


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


@each_view
def test_every_corner_draws_and_the_fast_frame_equals_a_full_draw(kind):
    view = kind()
    drawing = Drawing(view)
    for values in corners(view):
        fast, sentence = drawing.show(**values)
        assert 25 <= len(sentence) <= LONGEST_SENTENCE and "nan" not in sentence.lower().split(), sentence
        assert len(png(fast)) <= 100_000, values  # bytes, at 100 dpi
        fast = fast[..., :3].astype(int)
        full = full_draw(drawing)
        off = np.abs(fast - full).max(axis=-1)
        assert off.max() <= 40, values
        assert (off > 2).mean() <= 1e-4, values


@each_view
def test_the_widget_reaches_every_corner_without_a_warning(kind):
    view = kind()
    explorer = view.explorer()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twin = Drawing(view)
        for values in corners(view):
            set_controls(explorer, values)
            assert explorer.image.value[:4] == b"\x89PNG"
            assert explorer.sentence == twin.show(**explorer.values)[1]
    explorer.close()


@each_view
def test_each_control_changes_the_picture_or_the_sentence(kind):
    """In some state of the others: a slider that never changes anything is dead."""
    view = kind()
    live = Drawing(view).view
    states = list(corners(view))
    sentences = {tuple(state.values()): live.update(**state) for state in states}
    for control in view.controls:
        groups = {}
        for state in states:
            others = tuple(value for name, value in state.items() if name != control.name)
            groups.setdefault(others, set()).add(sentences[tuple(state.values())])
        assert any(len(group) > 1 for group in groups.values()), f"{control.name} never changes the sentence"


@each_view
def test_a_still_figure_is_independent_of_the_live_one(kind):
    view = kind()
    explorer = view.explorer()
    before = pixels_of(explorer)
    first, second = view.figure(), view.figure()
    assert first is not second and first.axes[0] is not second.axes[0]
    first.clear()
    pixels, _ = explorer.drawing.show(**explorer.values)
    assert np.array_equal(pixels, before)
    explorer.close()


@each_view
def test_text_is_large_enough_for_the_back_row(kind):
    figure = kind().figure()
    import matplotlib.text

    small = {
        text.get_text()
        for text in figure.findobj(matplotlib.text.Text)
        if text.get_text().strip() and text.get_visible() and text.get_fontsize() < 12
    }
    assert not small


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
