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
from itertools import dropwhile

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_rgba
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
        frame = self.pixels.view(np.uint32).reshape(-1)
        self.under[...] = frame[self.spots]
        self.sheet.draw_image(self.sheet.new_gc(), 0, 0, self.front)
        frame[self.spots] = self.under
        return self.pixels

    def _rebuild(self):
        canvas = self.figure.canvas
        shown = [artist for artist in self.moving if artist.get_visible()]
        try:
            for artist in shown:
                artist.set_visible(False)  # before 3.11 matplotlib draws an image even if it is animated
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
        self._cut_out(self.pixels.view(np.uint32).reshape(-1), self.pixels.shape[1])
        self.painters = {image: HeatMap(image, self.renderer) for image in self.moving if isinstance(image, AxesImage)}
        self.rebuilds += 1
        self.figure.stale = False

    def _cut_out(self, front, width):
        """Keep the few pixels that the front has, as an image of full rows; the sheet is where they are blended."""
        spots = np.flatnonzero(front > 0xFFFFFF)  # what a sheet does not show is see-through white
        self.spots = np.resize(spots, (max(1, -(-len(spots) // width)), width))  # those that fill the last row: twice
        self.front = front[self.spots[::-1]].view(np.uint8).reshape(*self.spots.shape, 4)  # begins with its lowest row
        self.sheet = RendererAgg(width, len(self.spots), self.renderer.dpi)
        self.under = np.asarray(self.sheet.buffer_rgba()).view(np.uint32)[..., 0]


def _in_front(figure, moving):
    """The static artists that matplotlib draws after the first moving artist of their axes, in drawing order."""
    front = []
    for axes in figure.axes:
        children = sorted(axes.get_children(), key=lambda artist: artist.get_zorder())
        without = [*moving, axes.patch] + ([] if axes.axison else [*axes.spines.values(), axes.xaxis, axes.yaxis])
        front += [child for child in dropwhile(lambda child: child not in moving, children) if child not in without]
    return front


class HeatMap:
    """Paints an `imshow` picture with nearest-neighbour interpolation straight into the frame."""

    def __init__(self, image, renderer):
        self.image, self.renderer = image, renderer
        self.placed = None

    def paint(self, pixels):
        """Paint the cells; False where only matplotlib can (smoothing, cells that are see-through in part)."""
        image, data = self.image, self.image.get_array()
        if image.get_interpolation() != "nearest" or image.get_alpha() not in (None, 1) or data.ndim != 2:
            return False
        cells = image.to_rgba(data, bytes=True)  # (rows, columns, 4)
        clear = cells[..., 3] < 255
        if clear.any():  # masked cells, where the paper shows
            if cells[clear].any():
                return False
            cells[clear] = np.multiply(to_rgba(image.axes.get_facecolor()), 255)
        if (data.shape, tuple(image.get_extent())) != self.placed:
            self._place(data.shape)
        cells = cells.view(np.uint32)[..., 0].take(self.columns, axis=1).take(self.rows, axis=0)  # faster than indexing
        height, width = cells.shape
        pixels.view(np.uint32)[self.top : self.top + height, self.left : self.left + width, 0] = cells
        return True

    def _place(self, shape):
        """Find which cell each pixel shows. Rows and columns are independent, so a thin strip of each tells."""
        box = self.image.axes.bbox
        corner = Bbox.intersection(self.image.get_window_extent(), box) or box
        flat = Bbox.from_extents(box.x0, corner.y0, box.x1, corner.y0 + 2)
        tall = Bbox.from_extents(corner.x0, box.y0, corner.x0 + 2, box.y1)
        self.placed = None  # until all of it is found: the reader may interrupt
        self.columns, self.left = self._ask_matplotlib((1, shape[1]), flat, axis=1)
        self.rows, self.top = self._ask_matplotlib((shape[0], 1), tall, axis=0)
        self.placed = shape, tuple(self.image.get_extent())

    def _ask_matplotlib(self, shape, strip, axis):
        """Draw the cells in a strip of the picture, their colours their numbers: (cell of each pixel, first pixel).

        Its own inverse transform would be faster, but where pixels and cells are rounded differs between versions.
        """
        probe = copy.copy(self.image)
        numbers = np.arange(max(shape), dtype=np.uint32) | 0xFF000000  # opaque
        probe.set_data(numbers.view(np.uint8).reshape(*shape, 4))
        probe.set_clip_box(strip)
        sheet = RendererAgg(self.renderer.width, self.renderer.height, self.renderer.dpi)
        probe.draw(sheet)
        seen = np.asarray(sheet.buffer_rgba()).view(np.uint32).max(axis=(1 - axis, 2))
        return seen[seen > 0xFFFFFF] & 0xFFFFFF, (seen > 0xFFFFFF).argmax()  # an empty sheet is see-through
