"""Kernel time from a slider's message to the new picture, for every view and four reference figures, against three others.

    python benchmarks/live.py [--frames 60] [--references]

One process, one run, the alternatives measured in turn on the same figures:
  interact    ipywidgets.interact with a new figure and plt.show(): what most courses teach
  ipympl      a matplotlib widget with blitting: background restored, artists drawn, difference sent
  persistent  one figure kept, clear_output and display(figure) for each change
  posviz      the explorer, its cache of frames emptied before each change
"""

import argparse
import os
import statistics
import time

os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"

import ipywidgets  # noqa: E402
from IPython.core.displaypub import CapturingDisplayPublisher  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402



class Publisher(CapturingDisplayPublisher):
    """Keeps what would be sent to the browser; clearing an output prints nothing here."""

    def clear_output(self, wait=False):
        self.outputs.clear()


shell = InteractiveShell.instance()
shell.display_pub = Publisher(shell=shell)
shell.showtraceback = lambda *args, **kwargs: (_ for _ in ()).throw(RuntimeError("an alternative failed"))

import matplotlib.pyplot as plt  # noqa: E402
from figures import REFERENCES  # noqa: E402
from IPython.display import clear_output, display  # noqa: E402
from matplotlib_inline.backend_inline import set_matplotlib_formats  # noqa: E402

from posviz import views  # noqa: E402
from posviz.views import base  # noqa: E402

set_matplotlib_formats("png")
ALTERNATIVES = ("interact", "ipympl", "persistent", "posviz")


def places(control, count):
    """`count` values of a control, far apart from one another as in a fast drag."""
    spots = [(7 * k + 1) % 101 / 100 for k in range(count)]
    if isinstance(control, base.Steps):
        steps = (control.high - control.low) // control.step
        return [control.low + control.step * round(spot * steps) for spot in spots]
    if isinstance(control, base.PowersOfTen):
        return [10.0 ** (control.low + spot * (control.high - control.low)) for spot in spots]
    return [control.low + spot * (control.high - control.low) for spot in spots]


def milliseconds(slider, values, before=lambda: None):
    """Time of each message that moves `slider`, as the kernel receives it."""
    taken = []
    for value in values:
        before()
        message = {"content": {"data": {"method": "update", "state": {"value": value}, "buffer_paths": []}},
                   "buffers": []}
        start = time.perf_counter()
        slider._handle_msg(message)
        taken.append(1e3 * (time.perf_counter() - start))
        shell.display_pub.outputs.clear()
    return taken[3:]   # the first ones fill caches of fonts and paths


def new_slider(control):
    """A fresh widget of the control's kind."""
    from posviz.explorer import _widget
    return _widget(control, control.default)


def time_interact(view, control, values):
    plt.switch_backend("module://matplotlib_inline.backend_inline")   # importing ipympl changes it
    others = view.values()

    def show(**moved):
        figure = plt.figure(figsize=view.size)
        fresh = type(view)()
        fresh.draw(figure)
        fresh.update(**{**others, **moved})
        plt.show()

    slider = new_slider(control)
    shown = ipywidgets.interactive(show, **{control.name: slider})
    taken = milliseconds(slider, values)
    shown.close()
    return taken, 0


def time_persistent(view, control, values):
    plt.switch_backend("module://matplotlib_inline.backend_inline")
    others = view.values()
    plt.ioff()
    figure = plt.figure(figsize=view.size)
    kept = type(view)()
    kept.draw(figure)
    plt.close(figure)

    def show(**moved):
        kept.update(**{**others, **moved})
        clear_output(wait=True)
        display(figure)

    slider = new_slider(control)
    shown = ipywidgets.interactive_output(show, {control.name: slider})
    taken = milliseconds(slider, values)
    shown.close()
    plt.ion()
    return taken, 0


def time_ipympl(view, control, values):
    from ipympl.backend_nbagg import Canvas, FigureManager
    from matplotlib.figure import Figure
    others = view.values()
    figure = Figure(figsize=view.size, dpi=base.DPI)
    canvas = Canvas(figure)
    FigureManager(canvas, 1)
    kept = type(view)()
    kept.draw(figure)
    kept.update(**others)
    moving = sorted(base.artists_of(kept), key=lambda artist: artist.get_zorder())
    for artist in moving:
        artist.set_animated(True)
    canvas.draw()
    background = canvas.copy_from_bbox(figure.bbox)
    sent = []
    canvas.send_binary = lambda data: sent.append(len(data))

    def show(change):
        kept.update(**{**others, control.name: change["new"]})
        canvas.restore_region(background)
        for artist in moving:
            artist.axes.draw_artist(artist)
        canvas.blit(figure.bbox)
        if not canvas._png_is_old:
            return
        sent.append(len(canvas.get_diff_image() or b""))

    slider = new_slider(control)
    slider.observe(show, "value")
    taken = milliseconds(slider, values)
    return taken, statistics.median(sent) if sent else 0


def time_posviz(view, control, values):
    explorer = view.explorer()
    sizes = []

    def forget():
        explorer._cache.clear()
        sizes.append(len(explorer.image.value))

    taken = milliseconds(explorer.controls[control.name], values, before=forget)
    explorer.close()
    return taken, max(sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=60, help="messages timed for each figure and alternative")
    parser.add_argument("--references", action="store_true", help="only the four reference figures")
    options = parser.parse_args()
    kinds = REFERENCES + ([] if options.references else views.all_views())
    print(f"{'figure':26} {'moves':14} " + " ".join(f"{name:>16}" for name in ALTERNATIVES)
          + f" {'largest kB':>10}   posviz is faster by")
    print(f"{'':41} " + " ".join(f"{'p50 / p95 ms':>16}" for _ in ALTERNATIVES))
    for kind in kinds:
        view = kind()
        control = next((c for c in view.controls if not isinstance(c, (base.Choice, base.Toggle, base.Text))), None)
        if control is None:
            continue
        row, payload = {}, 0
        for name in ALTERNATIVES:
            count = options.frames if name in ("posviz", "ipympl") else max(10, options.frames // 4)
            taken, payload = globals()[f"time_{name}"](view, control, places(control, count + 3))
            row[name] = statistics.median(taken), sorted(taken)[int(0.95 * (len(taken) - 1))]
        times = " ".join(f"{p50:8.1f} /{p95:6.1f}" for p50, p95 in row.values())
        ratios = ", ".join(f"{name} {row[name][0] / row['posviz'][0]:.0f}×" for name in ALTERNATIVES[:3])
        print(f"{kind.__name__:26} {control.name:14} {times} {payload / 1e3:10.0f}   {ratios}", flush=True)


if __name__ == "__main__":
    main()
