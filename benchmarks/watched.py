"""A notebook in JupyterLab whose first picture is watched: what the benchmarks in the browser have in common."""

import contextlib
import math
import sys
import time
from pathlib import Path

import nbformat

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import browser  # noqa: E402, F401  (the server and the flags of the browser tests)

# Notes when the picture's pixels (or the label's text) change, when its sentence does, when keys and moves arrive.
WATCH = """() => {
  const seen = window.seen = {keys: [], moves: [], changes: [], sentences: []};
  const now = () => performance.timeOrigin + performance.now();
  const canvas = new OffscreenCanvas(225, 100), pen = canvas.getContext('2d', {willReadFrequently: true});
  const find = () => [...document.querySelectorAll('.jp-OutputArea img, .jupyter-matplotlib canvas')]
    .filter(e => e.clientWidth > 100)[0];
  let before = null, said = null;
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
    const sentence = document.querySelector('.jp-OutputArea [aria-live]')?.textContent;
    if (sentence !== undefined && sentence !== said) { if (said !== null) seen.sentences.push(now()); said = sentence; }
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


def write_notebook(path, *cells):
    """A notebook of these code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


@contextlib.contextmanager
def watched(context, url, name):
    """A page with the notebook, every cell run, its first picture watched."""
    page = context.new_page()
    page.goto(f"{url}/lab/tree/{name}.ipynb?reset", wait_until="domcontentloaded")
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.sessionContext", timeout=60_000)
    page.evaluate(RUN_ALL)
    page.locator(HANDLE).first.wait_for(timeout=60_000)
    time.sleep(2)
    page.evaluate(WATCH)
    time.sleep(0.5)
    yield page
    page.evaluate("async () => await jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.close()


def drag(page, seconds=3.0, rate=60):
    """Drag the handle to and fro: (frames a second, milliseconds from the last move until the last state is shown).

    The last state is shown with its sentence; where there is none, with the last change of the picture.
    """
    handle = page.locator(HANDLE).first.bounding_box()
    track = page.locator(".jp-OutputArea .widget-slider .noUi-base").first.bounding_box()
    height = handle["y"] + handle["height"] / 2
    page.evaluate("seen.moves.length = seen.changes.length = seen.sentences.length = 0")
    page.mouse.move(handle["x"] + handle["width"] / 2, height)
    page.mouse.down()
    start = time.time()
    steps = round(seconds * rate)
    for step in range(steps):
        page.mouse.move(track["x"] + track["width"] * (0.5 + 0.45 * math.sin(4 * math.pi * step / steps)), height)
        time.sleep(max(0, start + (step + 1) / rate - time.time()))
    page.mouse.up()
    time.sleep(2.5)
    moves, changes, sentences = page.evaluate("[seen.moves, seen.changes, seen.sentences]")
    during = [change for change in changes if change <= moves[-1]]
    return len(during) / (moves[-1] - moves[0]) * 1e3, max(0.0, (sentences or changes)[-1] - moves[-1])
