"""Kernel time from a slider's message to the new picture: every view and four reference figures, against three others.

    python benchmarks/live.py [--frames 60] [--references]
    python benchmarks/live.py --controls      every control of every view, and what memory 2,000 changes take

One process, one run, the alternatives measured in turn on the same figures:
  interact    ipywidgets.interact with a new figure and plt.show(): what most courses teach
  ipympl      a matplotlib widget with blitting: background restored, artists drawn, difference sent
  persistent  one figure kept, clear_output and display(figure) for each change
  posviz      the explorer
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
from IPython.display import clear_output, display  # noqa: E402
from matplotlib_inline.backend_inline import set_matplotlib_formats  # noqa: E402

from figures import REFERENCES  # noqa: E402
from posviz import views  # noqa: E402
from posviz.live.drawing import DPI, artists_of  # noqa: E402

set_matplotlib_formats("png")
ALTERNATIVES = ("interact", "ipympl", "persistent", "posviz")


def places(control, count):
    """`count` values of a control, far apart from one another as in a fast drag."""
    stops = control.stops(most=101)
    if len(stops) < 20:
        return [stops[k % len(stops)] for k in range(count)]
    return [stops[(7 * k + 1) % 101 * len(stops) // 101] for k in range(count)]


def milliseconds(slider, values, image=None):
    """Times of the messages that move `slider`, as the kernel receives them, and the largest PNG that one displayed.

    image   the widget that shows the PNG, if it is not displayed as an output
    """
    taken, largest = [], 0
    for value in values:
        if value == slider.value:
            continue
        # A choice sends the number of its option.
        state = {"index": slider.options.index(value)} if hasattr(slider, "index") else {"value": value}
        message = {"content": {"data": {"method": "update", "state": state, "buffer_paths": []}}, "buffers": []}
        start = time.perf_counter()
        slider._handle_msg(message)
        taken.append(1e3 * (time.perf_counter() - start))
        for output in shell.display_pub.outputs:
            largest = max(largest, len(output["data"].get("image/png", "")))
        if image:
            largest = max(largest, len(image.value))
        shell.display_pub.outputs.clear()
    return taken[3:], largest  # the first ones fill caches of fonts and paths


def time_interact(view, control, values):
    plt.switch_backend("module://matplotlib_inline.backend_inline")  # importing ipympl changes it
    others = view.values()

    def show(**moved):
        figure = plt.figure(figsize=view.size)
        fresh = type(view)()
        fresh.draw(figure)
        fresh.update(**{**others, **moved})
        plt.show()

    slider = control.widget(control.default)
    shown = ipywidgets.interactive(show, **{control.name: slider})
    measured = milliseconds(slider, values)
    shown.close()
    return measured


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

    slider = control.widget(control.default)
    shown = ipywidgets.interactive_output(show, {control.name: slider})
    measured = milliseconds(slider, values)
    shown.close()
    plt.ion()
    return measured


def time_ipympl(view, control, values):
    from ipympl.backend_nbagg import Canvas, FigureManager
    from matplotlib.figure import Figure

    others = view.values()
    figure = Figure(figsize=view.size, dpi=DPI)
    canvas = Canvas(figure)
    FigureManager(canvas, 1)
    kept = type(view)()
    kept.draw(figure)
    kept.update(**others)
    moving = sorted(artists_of(vars(kept)), key=lambda artist: artist.get_zorder())
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

    slider = control.widget(control.default)
    slider.observe(show, "value")
    taken, _ = milliseconds(slider, values)
    return taken, max(sent, default=0)


def time_posviz(view, control, values):
    explorer = view.explorer()
    measured = milliseconds(explorer.controls[control.name], values, explorer.image)
    explorer.close()
    return measured


def middle_and_late(taken):
    """(p50, p95) of times."""
    return statistics.median(taken), sorted(taken)[int(0.95 * (len(taken) - 1))]


def resident():
    """Resident memory of this process, in bytes."""
    import psutil

    return psutil.Process().memory_info().rss


def time_every_control():
    """p50, p95 and the slowest change of each control of each view; and how much 2,000 changes leave in memory."""
    print(
        f"{'view':22} {'control':14} {'p50':>6} {'p95':>6} {'worst ms':>9} {'largest kB':>11} {'2,000 changes, MB':>18}"
    )
    for kind in views.all_views():
        explorer = kind().explorer()
        rows = []
        for control in explorer.view.controls:
            taken, largest = milliseconds(explorer.controls[control.name], places(control, 63), explorer.image)
            rows.append((control.name, *middle_and_late(taken), max(taken), largest / 1e3))
        start = resident()
        each = 2000 // len(explorer.view.controls)
        for control in explorer.view.controls:
            milliseconds(explorer.controls[control.name], places(control, each))
        grown = (resident() - start) / 1e6
        for number, (name, middle, late, worst, size) in enumerate(rows):
            tail = f"{grown:18.1f}" if number == len(rows) - 1 else ""
            print(
                f"{kind.__name__:22} {name:14} {middle:6.1f} {late:6.1f} {worst:9.1f} {size:11.0f} {tail}", flush=True
            )
        explorer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=60, help="messages timed for each figure and alternative")
    parser.add_argument("--references", action="store_true", help="only the four reference figures")
    parser.add_argument("--controls", action="store_true", help="every control of every view, posviz alone")
    options = parser.parse_args()
    if options.controls:
        return time_every_control()
    kinds = REFERENCES + ([] if options.references else views.all_views())
    print(
        f"{'figure':26} {'moves':14} "
        + " ".join(f"{name:>16}" for name in ALTERNATIVES)
        + f" {'largest kB':>15}   posviz is faster by"
    )
    print(f"{'':41} " + " ".join(f"{'p50 / p95 ms':>16}" for _ in ALTERNATIVES) + f" {'interact/posviz':>15}")
    for kind in kinds:
        view = kind()
        control = view.first_slider
        row, payload = {}, {}
        for name in ALTERNATIVES:
            count = options.frames if name in ("posviz", "ipympl") else max(10, options.frames // 4)
            taken, payload[name] = globals()[f"time_{name}"](view, control, places(control, count + 3))
            row[name] = middle_and_late(taken)
        times = " ".join(f"{p50:8.1f} /{p95:6.1f}" for p50, p95 in row.values())
        ratios = ", ".join(f"{name} {row[name][0] / row['posviz'][0]:.0f}×" for name in ALTERNATIVES[:3])
        sent = f"{payload['interact'] / 1e3:7.0f}/{payload['posviz'] / 1e3:<7.0f}"  # base64 text against bytes
        print(f"{kind.__name__:26} {control.name:14} {times} {sent}   {ratios}", flush=True)


if __name__ == "__main__":
    main()
