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
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import browser  # noqa: E402  (the server and the flags of the browser tests)

FIGURES = ("Circle", "Sines", "Heat64")
SETUP = f"import sys; sys.path.insert(0, {str(HERE)!r})\nimport figures, ipywidgets\nview = figures.NAME()"
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

# Watches the picture (or the label) and notes when its pixels (or its text) change, and when keys and moves arrive.
WATCH = """() => {
  const seen = window.seen = {keys: [], moves: [], changes: []};
  const now = () => performance.timeOrigin + performance.now();
  const canvas = new OffscreenCanvas(225, 100), pen = canvas.getContext('2d', {willReadFrequently: true});
  const find = () => [...document.querySelectorAll('.jp-OutputArea img, .jupyter-matplotlib canvas')]
    .filter(e => e.clientWidth > 100)[0];
  let before = null;
  const look = () => {
    const picture = find(), label = document.querySelector('.jp-OutputArea .widget-label:not(.widget-readout)');
    let state = null;
    if (picture && (picture.tagName === 'CANVAS' || picture.complete)) {
      pen.drawImage(picture, 0, 0, 225, 100);
      const pixels = new Uint32Array(pen.getImageData(0, 0, 225, 100).data.buffer);
      let sum = 7; for (let k = 0; k < pixels.length; k++) sum = (Math.imul(sum, 31) + pixels[k]) | 0;
      state = sum;
    } else if (!picture) {
      const labels = [...document.querySelectorAll('.jp-OutputArea .widget-label')];
      state = labels.length ? labels[labels.length - 1].textContent : null;
    }
    if (state !== null && state !== before) { if (before !== null) seen.changes.push(now()); before = state; }
    requestAnimationFrame(look);
  };
  document.addEventListener('keydown', () => seen.keys.push(now()), true);
  document.addEventListener('pointermove', () => seen.moves.push(now()), true);
  look();
}"""
RUN_ALL = """async () => {
  await jupyterapp.restored;
  const notebook = jupyterapp.shell.currentWidget;
  await notebook.context.ready;
  await notebook.sessionContext.ready;
  await notebook.sessionContext.session.kernel.info;
  await jupyterapp.commands.execute('notebook:run-all-cells');
}"""
HANDLE = ".jp-OutputArea .widget-slider .noUi-handle"


def keys(page, count):
    """Milliseconds from a key press on the slider to the first changed pixels, `count` times."""
    page.locator(HANDLE).first.focus()
    taken = []
    for _ in range(count):
        pressed, changed = page.evaluate("[seen.keys.length, seen.changes.length]")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("n => seen.changes.length > n", arg=changed, timeout=5000, polling=5)
        taken.append(page.evaluate("([k, c]) => seen.changes[c] - seen.keys[k]", [pressed, changed]))
        time.sleep(0.25)
    return taken


def drag(page, seconds=3.0, rate=60):
    """Drag the handle to and fro: (frames a second, milliseconds from the last move to the last change)."""
    handle = page.locator(HANDLE).first.bounding_box()
    track = page.locator(".jp-OutputArea .widget-slider .noUi-base").first.bounding_box()
    height = handle["y"] + handle["height"] / 2
    page.evaluate("seen.moves.length = seen.changes.length = 0")
    page.mouse.move(handle["x"] + handle["width"] / 2, height)
    page.mouse.down()
    start = time.time()
    steps = round(seconds * rate)
    for step in range(steps):
        page.mouse.move(track["x"] + track["width"] * (0.5 + 0.45 * math.sin(4 * math.pi * step / steps)), height)
        time.sleep(max(0, start + (step + 1) / rate - time.time()))
    page.mouse.up()
    time.sleep(2.5)
    moves, changes = page.evaluate("[seen.moves, seen.changes]")
    during = [change for change in changes if change <= moves[-1]]
    return len(during) / (moves[-1] - moves[0]) * 1e3, max(0.0, changes[-1] - moves[-1])


def measure(context, url, name, options):
    page = context.new_page()
    page.goto(f"{url}/lab/tree/{name}.ipynb?reset", wait_until="domcontentloaded")
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext", timeout=60_000)
    page.evaluate(RUN_ALL)
    page.locator(HANDLE).first.wait_for(timeout=60_000)
    time.sleep(2)
    page.evaluate(WATCH)
    time.sleep(0.5)
    pressed = keys(page, options.keys + 3)[3:]
    dragged = [drag(page) for _ in range(options.drags)]
    page.evaluate("async () => await jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.close()
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
            notebook = nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(SETUP.replace("NAME", figure)), nbformat.v4.new_code_cell(CELLS[how])]
            )
            notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
            nbformat.write(notebook, f"{folder}/{how}_{figure}.ipynb")
        print(
            f"{'figure':8} {'shown by':10} {'key to pixels p50/p95 ms':>25} {'drag frames/s':>14} {'last state ms':>14}"
        )
        with browser.server(folder, Path(home)) as url, sync_playwright() as play:
            chromium = play.chromium.launch(executable_path=browser.chromium(), args=browser.FLAGS)
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
