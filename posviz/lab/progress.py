"""A bar that says how far a long computation is, in a terminal and in a notebook, and leaves nothing behind."""

import io
import sys
import time


class Progress:
    """with Progress("training", steps) as bar: bar.update(step, "loss 2.1"). Silent during the first second."""

    def __init__(self, title, total, quiet=1.0):
        self.title, self.total, self.quiet, self.keep = title, total, quiet, False
        self.begin = self.shown = time.monotonic()
        self.handle, self.terminal = None, False

    def __enter__(self):
        return self

    def update(self, done, note="", losses=None):
        """Show that `done` of the steps are finished; at most two frames a second."""
        now = time.monotonic()
        if now - self.begin < self.quiet or (now - self.shown < 0.5 and done < self.total):
            return
        self.shown = now
        left = (now - self.begin) / done * (self.total - done)
        self._show(done, f"{self.title}: {done} of {self.total}{note and ', ' + note}, {left:.0f} s left", losses)

    def _show(self, done, text, losses):
        if _in_notebook():
            from IPython.display import display

            # The first frame is empty and the pictures arrive as updates: a stored notebook keeps no timing.
            self.handle = self.handle or display({}, raw=True, display_id=True)
            if losses is None:
                self.handle.update({"text/html": _bar(done / self.total, text)}, raw=True)
            else:
                self.handle.update({"image/png": _curve(losses, self.total, text)}, raw=True)
        elif sys.stderr.isatty():
            self.terminal = True
            filled = round(20 * done / self.total)
            print(f"\r{'█' * filled}{'░' * (20 - filled)} {text}\033[K", end="", file=sys.stderr, flush=True)

    def finish(self, text, losses):
        """The last frame, which stays: the whole loss curve."""
        if _in_notebook():
            self.keep = True
            self._show(self.total, text, losses)

    def __exit__(self, *exception):
        if self.handle is not None and not self.keep:
            self.handle.update({}, raw=True)
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _in_notebook():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def _bar(share, text):
    from html import escape

    return f'<progress max="1" value="{share:.3f}" aria-label="{escape(text)}"></progress> {escape(text)}'


def _curve(losses, total, text):
    """The loss of every step so far as a PNG."""
    import numpy as np
    from matplotlib.figure import Figure

    from posviz import style

    with style.rc(style.current()[0]):
        figure = Figure(figsize=(8, 3), dpi=100, layout="constrained")
        axes = figure.subplots()
        smooth = np.convolve(losses, np.full(10, 0.1), mode="valid") if len(losses) >= 10 else np.asarray(losses)
        axes.plot(np.arange(len(smooth)) + len(losses) - len(smooth) + 1, smooth, **style.line(0))
        axes.set(xlim=(0, total), xlabel="training step", ylabel="loss (nats a token)")
        axes.set_title(text, loc="left")
        out = io.BytesIO()
        figure.savefig(out, format="png")
    return out.getvalue()
