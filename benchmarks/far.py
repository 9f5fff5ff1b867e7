"""A slider far from its kernel: frames a second, age of the last state, bytes and queue over slow lines.

    python benchmarks/far.py [--drags 2]

One server, one Chromium, and between them a proxy that gives each direction half the round trip and a rate. The page is
opened at full speed; then the line is made slow and the slider is dragged to and fro for three seconds.
  frames/s    pictures shown while the hand moves
  last state  milliseconds from the last move until the state it left is shown
  kB a frame  bytes that reached the browser in the drag ÷ pictures shown in it, with all messages and the exact picture
  queue kB    the most that waited in the line at once
Needs Chromium on the PATH and benchmarks/requirements.txt.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

import watched
from slow_line import SlowLine

LINES = {"one machine": (1e10, 0.0), "8 Mbit/s, 40 ms": (8e6, 0.040), "2 Mbit/s, 150 ms": (2e6, 0.150)}
REFERENCE = f"import sys; sys.path.insert(0, {str(watched.HERE)!r})\nimport figures\nfigures.NAME().explorer()"
COURSE = "from posviz import views\nviews.NAME().explorer()"
PICTURES = {  # name: the cell that shows it
    "circle": REFERENCE.replace("NAME", "Circle"),
    "heat map": REFERENCE.replace("NAME", "Heat64"),
    "microscope": COURSE.replace("NAME", "AttentionMicroscope"),
    "largest": COURSE.replace("NAME", "AlikeRows"),  # of all pictures of the course, in bytes
}


def measure(page, line, drags):
    """Medians over the drags; the longest queue of all."""
    found, longest = [], 0
    for _ in range(drags):
        line.reset()
        rate, last = watched.drag(page)
        shown = page.evaluate("seen.changes.length")
        found.append((rate, last, line.sent / max(shown, 1) / 1e3))
        longest = max(longest, line.longest)
    return [statistics.median(values) for values in zip(*found)] + [longest / 1e3]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--drags", type=int, default=2, help="drags of three seconds for each picture and line")
    parser.add_argument("--pictures", nargs="+", default=list(PICTURES), choices=PICTURES)
    options = parser.parse_args()
    print(f"{'picture':12} {'line':18} {'frames/s':>9} {'last state ms':>14} {'kB a frame':>11} {'queue kB':>9}")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        for name in options.pictures:
            watched.write_notebook(f"{folder}/{name}.ipynb", PICTURES[name])
        with (
            watched.browser.server(folder, Path(home)) as url,
            SlowLine(urlsplit(url).port, *LINES["one machine"]) as line,
            sync_playwright() as play,
        ):
            chromium = play.chromium.launch(executable_path=watched.browser.chromium(), args=watched.browser.FLAGS)
            context = chromium.new_context(viewport={"width": 1400, "height": 1000})
            for name in options.pictures:
                line.set(*LINES["one machine"])
                with watched.watched(context, f"http://127.0.0.1:{line.port}", name) as page:
                    for words, speed in LINES.items():
                        line.set(*speed)
                        rate, last, size, queue = measure(page, line, options.drags)
                        print(f"{name:12} {words:18} {rate:9.1f} {last:14.0f} {size:11.0f} {queue:9.0f}", flush=True)
            chromium.close()


if __name__ == "__main__":
    main()
