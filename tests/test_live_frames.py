"""The fast frame against matplotlib's own: PNG bytes, heat maps, layers that notice when they are out of date."""

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from posviz.live.frames import Layers
from posviz.live.png import Palette, png


def full_draw(figure, animated):
    """Matplotlib's own picture of the figure as it is, as int RGB."""
    for artist in animated:
        artist.set_animated(False)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    for artist in animated:
        artist.set_animated(True)
    figure.stale = False
    return pixels


def new_figure():
    figure = Figure(figsize=(5, 4), dpi=100)
    FigureCanvasAgg(figure)
    return figure


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (100, 257)])
@pytest.mark.parametrize("filling", ["zeros", "ones", "noise"])
def test_png_is_lossless(shape, small, filling):
    noise = np.random.default_rng(0).integers(0, 256, (*shape, 4))
    pixels = {"zeros": 0 * noise, "ones": 0 * noise + 255, "noise": noise}[filling].astype(np.uint8)
    read = Image.open(io.BytesIO(png(pixels, small)))
    assert read.mode == "RGBA" and np.array_equal(np.asarray(read), pixels)


def as_shown(file):
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGBA"))


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (100, 257)])
def test_a_palette_loses_nothing_of_a_picture_with_few_colours(shape):
    rng = np.random.default_rng(0)
    grey = np.arange(0, 256, 8, np.uint8)  # colours that differ in their upper five bits
    colours = np.stack([grey, rng.permutation(grey), rng.permutation(grey), np.full(32, 255)], axis=-1).astype(np.uint8)
    pixels = colours[rng.integers(0, 32, shape)] + np.uint8([3, 5, 7, 0])
    assert np.array_equal(as_shown(Palette().png(pixels)), pixels)


def test_a_palette_keeps_paper_and_ink_and_takes_the_nearest_for_the_rest():
    ramp = np.arange(256, dtype=np.uint8)
    pixels = np.full((200, 256, 4), 255, np.uint8)
    pixels[50:100, :, :3] = ramp[:, None]
    pixels[100:150, :, 0], pixels[100:150, :, 1] = ramp, ramp[::-1]
    pixels[150:160] = 0, 0, 0, 255
    palette = Palette()
    for picture in (
        pixels,
        pixels[::-1].copy(),
        255 - pixels + np.array([0, 0, 0, 255], np.uint8),
    ):  # met, met, all new
        off = np.abs(as_shown(palette.png(picture)).astype(int) - picture)
        assert off.max() <= 8 and off[:50].max() == off[-40:].max() == 0


@pytest.mark.parametrize("origin", ["upper", "lower"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 5), (64, 64), (31, 200), (256, 256), (300, 700)])
def test_a_heat_map_equals_imshow_with_nearest_interpolation(shape, origin):
    figure = new_figure()
    axes = figure.add_axes([0.1, 0.1, 0.8, 0.8])
    rng = np.random.default_rng(1)
    image = axes.imshow(
        np.zeros(shape),
        vmin=-1,
        vmax=1,
        cmap="cividis",
        aspect="auto",
        origin=origin,
        interpolation="nearest",
        interpolation_stage="data",
    )
    layers = Layers(figure, [image])
    for _ in range(3):
        image.set_data(rng.normal(size=shape))
        fast = layers.frame()[..., :3].astype(int)
        off = np.abs(fast - full_draw(figure, layers.moving)).max(axis=-1)
        assert (off > 2).mean() <= 1e-4 and off.max() <= 40


@pytest.mark.parametrize("x_limits", [(0, 10), (10, 0), (2.3, 7.9), (-5, 15), (9.2, 1.1), (9.9, 30), (11, 12)])
@pytest.mark.parametrize("y_limits", [(0, 10), (8.8, -3.1)])
@pytest.mark.parametrize("extent", [(0, 10, 0, 10), (0, 10, 10, 0), (10, 0, 0, 10)])
def test_a_heat_map_is_right_under_any_limits(x_limits, y_limits, extent):
    figure = new_figure()
    axes = figure.add_axes([0.1, 0.1, 0.8, 0.8])
    data = np.random.default_rng(2).uniform(-1, 1, (9, 13))
    image = axes.imshow(data, vmin=-1, vmax=1, cmap="cividis", aspect="auto", interpolation="nearest", extent=extent)
    axes.set(xlim=x_limits, ylim=y_limits)
    layers = Layers(figure, [image])
    fast = layers.frame()[..., :3].astype(int)
    off = np.abs(fast - full_draw(figure, layers.moving)).max(axis=-1)
    assert (off > 2).mean() <= 1e-4 and off.max() <= 40


def test_masked_cells_infinities_and_new_limits_are_drawn_as_matplotlib_draws_them():
    figure = new_figure()
    axes = figure.add_axes([0.1, 0.1, 0.8, 0.8])
    image = axes.imshow(np.zeros((6, 6)), vmin=-1, vmax=1, cmap="cividis", interpolation="nearest")
    layers = Layers(figure, [image])
    data = np.arange(36.0).reshape(6, 6) - 18
    data[0, 0], data[1, 1] = np.nan, np.inf
    states = [
        np.ma.masked_invalid(data),
        np.ma.masked_where(np.triu(np.ones((6, 6)), 1) > 0, data),
        data[:3, :2],
        np.arange(36).reshape(6, 6),
        np.zeros((6, 6)),
    ]
    for number, state in enumerate(states):
        image.set_data(state)
        if number % 2:
            image.set_clim(-5, 40)
        fast = layers.frame()[..., :3].astype(int).copy()
        full = full_draw(figure, layers.moving)
        assert np.abs(fast - full).max() <= 2, number


def test_other_norms_and_see_through_cells_are_drawn_as_matplotlib_draws_them():
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    figure = new_figure()
    axes = figure.add_axes([0.1, 0.1, 0.8, 0.8])
    axes.set_facecolor("#AACCEE")
    data = np.logspace(-1, 2, 16).reshape(4, 4)  # the first cells lie below the norm
    for bad in ((0, 0, 0, 0), (1, 0, 0, 1), (1, 0, 0, 0.5)):
        image = axes.imshow(
            np.ones((4, 4)),
            norm=LogNorm(1, 100),
            cmap=colormaps["cividis"].with_extremes(bad=bad),
            interpolation="nearest",
        )
        layers = Layers(figure, [image])
        image.set_data(np.ma.masked_where(np.triu(np.ones((4, 4)), 1) > 0, data))
        fast = layers.frame()[..., :3].astype(int).copy()
        assert np.abs(fast - full_draw(figure, layers.moving)).max() <= 2
        image.remove()


@pytest.fixture
def curve():
    figure = new_figure()
    axes = figure.add_axes([0.15, 0.15, 0.8, 0.75])
    axes.set(xlim=(0, 1), ylim=(-1, 1), xlabel="x", title="before")
    axes.grid(True, alpha=0.4)
    (line,) = axes.plot([0, 1], [-1, 1], linewidth=9, label="a")
    axes.legend(loc="center")
    return Layers(figure, [line]), axes, line


CHANGES = {
    "limits": lambda axes, line: axes.set_xlim(0, 2),
    "ticks": lambda axes, line: axes.set_xticks([0, 0.5, 1], ["zero", "half", "one"]),
    "title": lambda axes, line: axes.set_title("after"),
    "grid": lambda axes, line: axes.grid(False),
    "size": lambda axes, line: axes.figure.set_size_inches(4, 3),
    "dpi": lambda axes, line: axes.figure.set_dpi(150),
    "data": lambda axes, line: line.set_data([0, 1], [1, -1]),
    "hidden": lambda axes, line: line.set_visible(False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_layers_notice_what_changed(curve, change):
    layers, axes, line = curve
    before = layers.frame().copy()
    CHANGES[change](axes, line)
    fast = layers.frame()[..., :3].astype(int).copy()
    full = full_draw(axes.figure, layers.moving)
    assert fast.shape == full.shape
    off = np.abs(fast - full).max(axis=-1)
    assert (off > 2).mean() <= 1e-4 and off.max() <= 40
    assert not np.array_equal(before[..., :3], fast)


def test_nothing_is_drawn_anew_while_only_data_changes(curve, monkeypatch):
    layers, axes, line = curve
    layers.frame()
    assert layers.rebuilds == 1
    monkeypatch.setattr(axes.figure.canvas, "draw", lambda: pytest.fail("a full draw"))
    for k in range(5):
        line.set_ydata([k / 5, -k / 5])
        layers.frame()


def test_an_interrupted_rebuild_is_made_up_for(curve, monkeypatch):
    layers, axes, line = curve
    axes.set_title("after")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(axes.figure.canvas, "draw", lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
        layers.frame()
    fast = layers.frame()[..., :3].astype(int).copy()
    assert line.get_visible()
    assert np.abs(fast - full_draw(axes.figure, layers.moving)).max() <= 2


def test_a_curve_stays_under_spines_and_legend(curve):
    layers, axes, line = curve
    fast = layers.frame()[..., :3].astype(int)
    assert np.abs(fast - full_draw(axes.figure, layers.moving)).max() <= 2
