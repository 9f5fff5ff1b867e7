"""Frames at the speed of the hand: a full matplotlib draw takes 60 ms or more, a frame made here about a tenth of that.

Four steps, each of which removes one cost of a full draw:
1. Layers. Axes, ticks, grid and legend do not change while a slider moves. They are drawn once, split in two: what lies
   under the moving artists (the back) and what lies over them (the front). A frame is back, moving artists, front.
   Blitting without a front would let a curve cover spines, ticks and legend.
2. Heat maps. A cell of a nearest-neighbour heat map is a block of equal pixels: colours come from the colour table once a
   cell and are copied to the pixels that matplotlib itself says belong to that cell.
3. PNG without a search for filters, which takes most of Pillow's time, and on two cores at once.
4. Nothing is drawn twice: see the cache of encoded frames in `posviz.explorer`.

Matplotlib tells when the layers are out of date: an artist that moves is marked "animated" and does not report changes to
its figure; anything else that changes (limits, ticks, a title) marks the figure stale, and the layers are drawn anew.
"""

import copy
import math
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage

from posviz import style

try:  # optional: the same deflate format, a few times faster
    from isal import isal_zlib
except ImportError:
    isal_zlib = None

_pool = ThreadPoolExecutor(1, "posviz-png")


class Layers:
    """The frames of one figure whose `moving` artists change and whose other artists hardly ever do."""

    def __init__(self, figure, moving):
        self.figure = figure
        self.moving = sorted(moving, key=lambda artist: artist.get_zorder())
        self.front = _in_front(figure, self.moving)
        for artist in self.moving:
            artist.set_animated(True)
        self._rebuild()

    def frame(self):
        """The picture as it is now: uint8 RGBA of shape (height, width, 4). Valid until the next call."""
        if self.figure.stale:
            self._rebuild()
        self.pixels[...] = self.back
        for artist in self.moving:
            if artist.get_visible():
                painter = self.painters.get(artist)
                if painter is None or not painter.paint(self.pixels):
                    artist.draw(self.renderer)
        self.flat[self.front_opaque] = self.front_colour
        self._blend_front_edges()
        return self.pixels

    def _rebuild(self):
        canvas = self.figure.canvas
        shown = [artist for artist in self.moving if artist.get_visible()]
        with style.rc():
            for artist in shown:
                artist.set_visible(False)  # matplotlib 3.9 draws an image even if it is animated
            for artist in self.front:
                artist.set_animated(True)  # leaves it out of the back ...
            canvas.draw()
            for artist in self.front:
                artist.set_animated(False)  # ... but not out of what the figure hears about
            for artist in shown:
                artist.set_visible(True)
            self.renderer = canvas.get_renderer()
            self.pixels = np.asarray(self.renderer.buffer_rgba())
            self.flat = self.pixels.reshape(-1, 4).view(np.uint32)[:, 0]
            self.back = self.pixels.copy()
            self.renderer.clear()
            for artist in self.front:
                artist.draw(self.renderer)
        self.figure.stale = False
        front = self.pixels.reshape(-1, 4)
        self.front_opaque = np.flatnonzero(front[:, 3] == 255)
        self.front_colour = self.flat[self.front_opaque]
        self.front_edge = np.flatnonzero((front[:, 3] > 0) & (front[:, 3] < 255))
        edge = front[self.front_edge].astype(np.uint16)
        self.edge_alpha = 255 - edge[:, 3:]
        self.edge_colour = edge[:, :3] * edge[:, 3:] + 127
        self.painters = {artist: HeatMap(artist, self.renderer) for artist in self.moving if HeatMap.fits(artist)}

    def _blend_front_edges(self):
        rgb = self.pixels.reshape(-1, 4)[:, :3]
        rgb[self.front_edge] = (self.edge_colour + rgb[self.front_edge] * self.edge_alpha) // 255


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

    @staticmethod
    def fits(artist):
        return (
            isinstance(artist, AxesImage)
            and artist.get_interpolation() == "nearest"
            and artist.get_array() is not None
            and artist.get_array().ndim == 2
        )

    def __init__(self, image, renderer):
        self.image, self.renderer = image, renderer
        self.shape = None

    def paint(self, pixels):
        """Paint the cells; False where only matplotlib can (a norm that is not linear, see-through cells)."""
        image = self.image
        data = image.get_array()
        if type(image.norm) is not Normalize or image.get_alpha() not in (None, 1):
            return False
        if (data.shape, tuple(image.get_extent())) != self.shape:
            self._ask_matplotlib(data.shape)
        if self.rows.size == 0 or self.columns.size == 0:
            return True
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

    def _ask_matplotlib(self, shape):
        """Which cell does each pixel show? Rows and columns do not depend on each other, so a thin strip of each tells."""
        height, box = int(self.renderer.height), self.image.axes.bbox  # the height is a float before matplotlib 3.10
        columns, left, _ = self._strip(shape, along="x")
        rows, _, bottom = self._strip(shape, along="y")
        top = height - _round(bottom) - len(rows)  # matplotlib counts pixel rows from the bottom
        self.columns, self.left = _clip(columns, _round(left), _round(box.x0), _round(box.x1))
        self.rows, self.top = _clip(rows[::-1], top, _round(height - box.y1), _round(height - box.y0))
        self.shape = (shape, tuple(self.image.get_extent()))

    def _strip(self, shape, along):
        """Draw the picture two pixels wide, its colours the cells' own numbers, and read them: (cells, left, bottom)."""
        axes, (x0, x1, y0, y1) = self.image.axes, self.image.get_extent()
        number = np.arange(shape[0 if along == "y" else 1])
        code = np.full((len(number), 1, 4), 255, np.uint8)
        code[:, 0, 0], code[:, 0, 1], code[:, 0, 2] = number & 255, number >> 8 & 255, number >> 16
        probe = copy.copy(self.image)
        if along == "y":
            left, right = axes.get_xlim()
            extent = left, left + 2 * (right - left) / axes.bbox.width, y0, y1
        else:
            bottom, top = axes.get_ylim()
            extent = x0, x1, bottom, bottom + 2 * (top - bottom) / axes.bbox.height
        probe.get_extent = lambda: extent  # set_extent would change the limits of the axes
        probe.set_data(code if along == "y" else code.swapaxes(0, 1))
        seen, left, bottom, _ = probe.make_image(self.renderer)
        if seen is None:
            return np.empty(0, int), left, bottom
        strip = (seen[:, 0] if along == "y" else seen[0]).astype(int)
        return strip[:, 0] + 256 * strip[:, 1] + 65536 * strip[:, 2], left, bottom


def _round(value):
    """The nearest whole number, halves upwards, as Agg does it; Python's own `round` takes 2.5 to 2."""
    return math.floor(value + 0.5)


def _clip(cells, start, low, high):
    """What is left of cells at the pixels start, start + 1, … inside low ≤ pixel ≤ high, and where that begins."""
    cut = max(0, low - start)
    return cells[cut : max(cut, high + 1 - start)], start + cut


def png(pixels, level=3):
    """Lossless PNG bytes of an opaque uint8 RGBA picture (height, width, 4)."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 4 * width), np.uint8)  # each row begins with its filter number: 0, none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits a channel, colour type 6: RGBA
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", _deflate(rows.ravel(), level))
        + _chunk(b"IEND", b"")
    )


def _deflate(data, level):
    """`data` as one zlib stream. Its two halves are packed at the same time: zlib leaves the interpreter free."""
    half = len(data) // 2
    second = _pool.submit(_packed, data[half:], level, zlib.Z_FINISH)
    first, low, high = _packed(
        data[:half], level, zlib.Z_FULL_FLUSH
    )  # ends on a whole byte; nothing later refers to it
    rest, more_low, more_high = second.result()
    # The check of the whole from those of its halves: 16-bit sums of the bytes (from 1) and of those sums (from 0).
    low, high = (low + more_low - 1) % 65521, (high + more_high + (len(data) - half) * (low - 1)) % 65521
    return b"\x78\x01" + first + rest + struct.pack(">HH", high, low)


def _packed(data, level, ending):
    """Raw deflate of `data` and the two sums of its Adler-32 check."""
    library, level = (isal_zlib, 2) if isal_zlib and level < 4 else (zlib, level)
    squeeze = library.compressobj(level, zlib.DEFLATED, -15)  # −15: no header of its own
    check = library.adler32(data)
    return squeeze.compress(data) + squeeze.flush(ending), check & 0xFFFF, check >> 16


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
