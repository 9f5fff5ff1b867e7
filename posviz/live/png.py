"""PNG without the search for filters that takes most of Pillow's time: a ten-line writer and one fast compressor."""

import struct
import zlib

import numpy as np
from isal import isal_zlib


def png(pixels, small=False):
    """Lossless PNG bytes of an opaque uint8 RGBA picture (height, width, 4).

    `small` saves a fifth of them or more and takes 100 times as long: for pictures that are stored.
    """
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 4 * width), np.uint8)  # each row begins with its filter number: 0, none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits a channel, colour type 6: RGBA
    packed = zlib.compress(rows, 9) if small else isal_zlib.compress(rows, 2)
    chunks = (b"IHDR", header), (b"IDAT", packed), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
