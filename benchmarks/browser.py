"""What a slider feels like in JupyterLab: key to changed pixels, frames a second in a drag, time to the last state.

    python benchmarks/browser.py [--keys 30] [--drags 2]

One server, one Chromium, one run. Each reference figure is shown by
  interact   ipywidgets.interact with a new figure and plt.show()
  ipympl     a matplotlib widget with blitting
  posviz     the explorer
and the floor is a slider whose value a Label repeats: no drawing at all.
Needs Chromium on the PATH and benchmarks/requirements.txt.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import watched  # first: it shows where the browser tests lie

FIGURES = ("Circle", "Sines", "Heat64")
SETUP = f"import sys; sys.path.insert(0, {str(watched.HERE)!r})\nimport figures, ipywidgets\nview = figures.NAME()"
CELLS = {
    "label": """slider = ipywidgets.IntSlider(0, 0, 100)
label = ipywidgets.Label("0")
slider.observe(lambda change: setattr(label, "value", f"{change['new']}"), "value")
ipywidgets.VBox([slider, label])""",
    "interact": """%matplotlib inline
import matplotlib.pyplot as plt
def show(step):
    figure = plt.figure(figsize=view.size)
    fresh = type(view)(); fresh.draw(figure); fresh.update(step=step)
    plt.show()
ipywidgets.interact(show, step=ipywidgets.IntSlider(0, 0, 100));""",
    "ipympl": """%matplotlib widget
import matplotlib.pyplot as plt
from posviz.live.drawing import artists_of
with plt.ioff():
    figure = plt.figure(figsize=view.size)
view.draw(figure); view.update(step=0)
moving = artists_of(vars(view))
for artist in moving: artist.set_animated(True)
back = []
def show(change):
    if not back:   # the background can only be taken once the canvas is on the page
        figure.canvas.draw(); back.append(figure.canvas.copy_from_bbox(figure.bbox))
    view.update(step=change["new"])
    figure.canvas.restore_region(back[0])
    for artist in moving: artist.axes.draw_artist(artist)
    figure.canvas.blit(figure.bbox)
slider = ipywidgets.IntSlider(0, 0, 100); slider.observe(show, "value")
ipywidgets.VBox([slider, figure.canvas])""",
    "posviz": "view.explorer()",
}


def keys(page, count):
    """Milliseconds from a key press on the slider to the first changed pixels, `count` times."""
    page.locator(watched.HANDLE).first.focus()
    taken = []
    for _ in range(count):
        pressed, changed = page.evaluate("[seen.keys.length, seen.changes.length]")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("n => seen.changes.length > n", arg=changed, timeout=5000, polling=5)
        taken.append(page.evaluate("([k, c]) => seen.changes[c] - seen.keys[k]", [pressed, changed]))
        time.sleep(0.25)
    return taken


def measure(context, url, name, options):
    with watched.watched(context, url, name) as page:
        pressed = keys(page, options.keys + 3)[3:]
        dragged = [watched.drag(page) for _ in range(options.drags)]
    return (
        statistics.median(pressed),
        sorted(pressed)[int(0.95 * (len(pressed) - 1))],
        statistics.median(rate for rate, _ in dragged),
        max(tail for _, tail in dragged),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keys", type=int, default=30, help="key presses timed for each figure and alternative")
    parser.add_argument("--drags", type=int, default=2, help="drags of three seconds for each")
    options = parser.parse_args()
    cases = [("label", FIGURES[0])] + [(how, figure) for figure in FIGURES for how in ("interact", "ipympl", "posviz")]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        for how, figure in cases:
            watched.write_notebook(f"{folder}/{how}_{figure}.ipynb", SETUP.replace("NAME", figure), CELLS[how])
        print(
            f"{'figure':8} {'shown by':10} {'key to pixels p50/p95 ms':>25} {'drag frames/s':>14} {'last state ms':>14}"
        )
        with watched.browser.server(folder, Path(home)) as url, sync_playwright() as play:
            chromium = play.chromium.launch(executable_path=watched.browser.chromium(), args=watched.browser.FLAGS)
            context = chromium.new_context(viewport={"width": 1400, "height": 1000})
            for how, figure in cases:
                p50, p95, rate, tail = measure(context, url, f"{how}_{figure}", options)
                print(
                    f"{'' if how == 'label' else figure:8} {how:10} {p50:16.0f} /{p95:7.0f} {rate:14.1f} {tail:14.0f}",
                    flush=True,
                )
            chromium.close()


if __name__ == "__main__":
    main()
