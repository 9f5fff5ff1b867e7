"""Frames at the speed of the hand: a full matplotlib draw takes 60 ms or more, a frame made here a tenth of that.

Two steps, each of which removes one cost of a full draw:
1. Layers. Axes, ticks, grid and legend do not change while a slider moves. They are drawn once, split in two: what lies
   under the moving artists (the back) and what lies over them (the front). A frame is back, moving artists, front.
   Blitting without a front would let a curve cover spines, ticks and legend.
2. Heat maps. A cell of a nearest-neighbour heat map is a block of equal pixels: colours come from the colour table once
   a cell and are copied to the pixels that matplotlib itself says belong to that cell.

Matplotlib tells when the layers are out of date: an artist that moves is marked "animated" and does not report changes
to the figure; all else that changes (limits, ticks, a title) marks the figure stale, and the layers are drawn again.
"""

import copy
import math

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.transforms import Bbox


class Layers:
    """The frames of one figure whose `moving` artists change and whose other artists hardly ever do.

    rebuilds   how often all the others were drawn
    """

    def __init__(self, figure, moving):
        self.figure = figure
        self.moving = sorted(moving, key=lambda artist: artist.get_zorder())
        self.in_front = _in_front(figure, self.moving)
        self.rebuilds = 0
        for artist in self.moving:
            artist.set_animated(True)
        self._rebuild()

    def frame(self):
        """The picture as it is now: uint8 RGBA of shape (height, width, 4). Valid until the next call."""
        if self.figure.stale:
            self._rebuild()
        self.pixels[...] = self.back
        for artist in self.moving:
            if artist.get_visible() and not (artist in self.painters and self.painters[artist].paint(self.pixels)):
                artist.draw(self.renderer)
        self.renderer.draw_image(self.renderer.new_gc(), 0, 0, self.front)
        return self.pixels

    def _rebuild(self):
        canvas = self.figure.canvas
        shown = [artist for artist in self.moving if artist.get_visible()]
        try:
            for artist in shown:
                artist.set_visible(False)  # matplotlib 3.9 draws an image even if it is animated
            for artist in self.in_front:
                artist.set_animated(True)  # leaves it out of the back ...
            canvas.draw()
        finally:  # also where the reader interrupts
            for artist in self.in_front:
                artist.set_animated(False)  # ... but not out of what the figure hears about
            for artist in shown:
                artist.set_visible(True)
            self.figure.stale = True
        self.renderer = canvas.get_renderer()
        self.pixels = np.asarray(self.renderer.buffer_rgba())
        self.back = self.pixels.copy()
        self.renderer.clear()
        for artist in self.in_front:
            artist.draw(self.renderer)
        self.front = self.pixels[::-1].copy()  # an image begins with its lowest row
        self.painters = {image: HeatMap(image, self.renderer) for image in self.moving if isinstance(image, AxesImage)}
        self.rebuilds += 1
        self.figure.stale = False


def _in_front(figure, moving):
    """The static artists that matplotlib draws after the first moving artist of their axes, in drawing order."""
    front = []
    for axes in figure.axes:
        children = sorted(axes.get_children(), key=lambda artist: artist.get_zorder())
        here = [position for position, child in enumerate(children) if child in moving]
        if here:
            hidden = [axes.patch] + ([] if axes.axison else [*axes.spines.values(), axes.xaxis, axes.yaxis])
            front += [child for child in children[here[0] :] if child not in moving and child not in hidden]
    return front


class HeatMap:
    """Paints an `imshow` picture with nearest-neighbour interpolation straight into the frame."""

    def __init__(self, image, renderer):
        self.image, self.renderer = image, renderer
        self.height = int(renderer.height)  # a float before matplotlib 3.10
        self.placed = None

    def paint(self, pixels):
        """Paint the cells; False where only matplotlib can (smoothing, no linear norm, see-through cells)."""
        image, data = self.image, self.image.get_array()
        if not (
            image.get_interpolation() == "nearest"
            and data.ndim == 2
            and type(image.norm) is Normalize
            and image.get_alpha() in (None, 1)
        ):
            return False
        if (data.shape, tuple(image.get_extent())) != self.placed:
            self._place(data.shape)
        cells = self._colours(data).take(self.columns, axis=1).take(self.rows, axis=0)  # 3 times as fast as indexing
        height, width = cells.shape
        pixels.view(np.uint32)[..., 0][self.top : self.top + height, self.left : self.left + width] = cells
        return True

    def _colours(self, data):
        """The packed RGBA colour of each cell."""
        image = self.image
        low, high = image.norm.vmin, image.norm.vmax
        table = image.cmap(np.arange(image.cmap.N), bytes=True).view(np.uint32)[:, 0]
        scale = image.cmap.N / (high - low) if high > low else 0.0
        values, bad = np.ma.getdata(data), np.ma.getmask(data)  # the mask is the single value False where there is none
        if values.dtype.kind == "f":
            bad = bad | ~np.isfinite(values)
        any_bad = np.any(bad)
        level = np.clip(((np.where(bad, low, values) if any_bad else values) - low) * scale, 0, image.cmap.N - 1)
        colours = table.take(level.astype(np.intp))
        if any_bad:
            red, green, blue, alpha = image.cmap.get_bad()
            paper = np.array(image.axes.patch.get_facecolor()[:3])
            seen = alpha * np.array([red, green, blue]) + (1 - alpha) * paper
            colours[bad] = np.append(np.rint(seen * 255), 255).astype(np.uint8).view(np.uint32)[0]
        return colours

    def _place(self, shape):
        """Find which cell each pixel shows. Rows and columns are independent, so a thin strip of each tells."""
        box = self.image.axes.bbox
        corner = Bbox.intersection(self.image.get_window_extent(), box) or box
        flat = Bbox.from_extents(box.x0, corner.y0, box.x1, corner.y0 + 2)  # two pixels, as Agg may err in the last
        tall = Bbox.from_extents(corner.x0, box.y0, corner.x0 + 2, box.y1)
        columns, left, _ = self._ask_matplotlib((1, shape[1]), flat)
        rows, _, bottom = self._ask_matplotlib((shape[0], 1), tall)
        top = self.height - _round(bottom) - len(rows)  # matplotlib counts pixel rows from the bottom
        self.columns, self.left = _clip(columns[:1].ravel(), _round(left), _round(box.x0), _round(box.x1))
        self.rows, self.top = _clip(
            rows[::-1, :1].ravel(), top, _round(self.height - box.y1), _round(self.height - box.y0)
        )
        self.placed = shape, tuple(self.image.get_extent())

    def _ask_matplotlib(self, shape, strip):
        """Draw the cells in a strip of the picture, their colours their numbers, and read them: (cells, left, bottom).

        Its own inverse transform would be faster, but where pixels and cells are rounded differs between versions.
        """
        probe = copy.copy(self.image)
        numbers = np.arange(max(shape), dtype=np.uint32) | 0xFF000000  # opaque
        probe.set_data(numbers.view(np.uint8).reshape(*shape, 4))
        probe.set_clip_box(strip)
        seen, left, bottom, _ = probe.make_image(self.renderer)
        return np.empty((0, 0), int) if seen is None else seen.view(np.uint32)[..., 0] & 0xFFFFFF, left, bottom


def _round(value):
    """The nearest whole number, halves upwards, as Agg does it; Python's own `round` takes 2.5 to 2."""
    return math.floor(value + 0.5)


def _clip(cells, start, low, high):
    """What is left of cells at the pixels start, start + 1, … inside low ≤ pixel ≤ high, and where that begins."""
    cut = max(0, low - start)
    return cells[cut : max(cut, high + 1 - start)], start + cut
