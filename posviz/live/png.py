"""PNG without the search for filters that takes most of Pillow's time: a ten-line writer and one fast compressor.

`png` keeps every colour. A `Palette` keeps 256, which makes a picture half as large or less: for a hand that moves at
the far end of a slow line.
"""

import struct
import zlib

import numpy as np
from isal import isal_zlib


def png(pixels, small=False):
    """Lossless PNG bytes of an opaque uint8 RGBA picture (height, width, 4).

    `small` saves a fifth of them or more and takes 100 times as long: for pictures that are stored.
    """
    return _file(pixels, 6, b"", lambda rows: zlib.compress(rows, 9) if small else isal_zlib.compress(rows, 2))


class Palette:
    """The 256 colours of one drawing that cover most of its pixels; others become the nearest of these."""

    def __init__(self):
        self.index = np.full(2**15, -1, np.int16)  # of each shade its number here; −1 is one not met yet

    def png(self, pixels):
        """PNG bytes of an opaque uint8 RGBA picture (height, width, 4) in these colours.

        They are chosen anew where they fit badly.
        """
        shades = _shades(pixels)
        cells = self.index.take(shades)
        missing = cells < 0
        if missing.any():
            if missing.mean() > 0.01:
                self._choose(shades, pixels)
                missing[:] = True
            new = np.unique(shades[missing])
            away = _channels(new)[:, None] - _channels(self.shades)  # (new, 256, 3)
            self.index[new] = (away**2).sum(axis=-1).argmin(axis=-1)
            cells = self.index.take(shades)
        return _file(cells[..., None], 3, self.colours, lambda rows: isal_zlib.compress(rows, 2))

    def _choose(self, shades, pixels):
        self.index[:] = -1
        self.shades = np.argsort(np.bincount(shades.ravel(), minlength=2**15), kind="stable")[:-257:-1]
        example = np.zeros((2**15, 4), np.uint8)
        example[shades] = pixels  # of each shade the colour of one of its pixels: white paper stays white
        self.colours = _chunk(b"PLTE", example[self.shades, :3].tobytes())


def _shades(pixels):
    """The upper five bits of red, green and blue as one number below 2^15, of shape (height, width)."""
    low, high = np.moveaxis(pixels.view("<u2"), -1, 0)  # green and red, alpha and blue
    return low >> 3 & 31 | low >> 6 & 992 | high << 7 & 31744


def _channels(shades):
    """Red, green and blue, 0 to 31, of shades."""
    return np.stack([shades & 31, shades >> 5 & 31, shades >> 10], axis=-1).astype(int)


def _file(samples, kind, palette, compress):
    """A PNG file of uint8 samples (height, width, channels); kind: 6 for RGBA, 3 for numbers of a palette."""
    height, width, channels = samples.shape
    rows = np.empty((height, 1 + channels * width), np.uint8)
    rows[:, 0] = 0  # the filter number of the row: none
    rows[:, 1:] = samples.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)  # 8 bits a channel
    parts = _chunk(b"IHDR", header), palette, _chunk(b"IDAT", compress(rows)), _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
