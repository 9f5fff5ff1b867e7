"""The moving picture at the top of the README, `make gif`: a query and a key that turn with their positions.

    python tools/gif.py [file]          into docs/turning-pair.gif

First both move on together and the score stays; then the query moves alone and the score follows the curve.
"""

import sys
from pathlib import Path

from PIL import Image

from posviz import views
from posviz.live import Drawing

FILE = Path(__file__).resolve().parent.parent / "docs" / "turning-pair.gif"
DISTANCE, STEPS = 2, 16
COLOURS, MILLISECONDS = 40, 220


def states():
    """The positions (m, n) of query and key, in the order in which they are shown."""
    together = [(DISTANCE + step, step) for step in range(STEPS)]
    return together + [(m, STEPS - 1) for m in range(DISTANCE + STEPS, 2 * STEPS + DISTANCE)]


def frames():
    drawing = Drawing(views.TurningPair())
    for m, n in states():
        pixels, _ = drawing.show(**drawing.values | {"m": m, "n": n})
        yield Image.fromarray(pixels[..., :3].copy()).quantize(COLOURS, dither=Image.Dither.NONE)


def main():
    first, *others = frames()
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    first.save(file, save_all=True, append_images=others, duration=MILLISECONDS, loop=0, optimize=True)
    print(f"{file.name}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
