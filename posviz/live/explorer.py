"""A view with its controls: one live widget, and a still picture with its sentence wherever widgets cannot live."""

import asyncio
import base64
import html

import ipywidgets

from posviz import style
from posviz.live.drawing import DPI, Drawing
from posviz.live.png import Palette, png

AT_REST = 0.4  # seconds without a change: longer than a far line takes from one picture of a drag to the next
LONGEST_SENTENCE = 220  # characters; a test holds every view to it

# Shown while the page is not connected to the kernel that made the picture: ipywidgets marks its widgets by a class.
DISCONNECTED = (
    "<style>.posviz-gone:not(.jupyter-widgets-disconnected) {display: none}</style>"
    "<b>Not connected: the kernel was started again. Run this cell, then the controls move the picture.</b>"
)
# The words of the controls in the back row: the sizes that ipywidgets takes, and room for them.
PRESENTER = (
    "<style>.posviz-presenter {--jp-widgets-font-size: 18px; --jp-widgets-inline-height: 32px}"
    ".posviz-presenter .widget-text {min-width: 100px}</style>"
)
RUN_ELSEWHERE = (
    "<b>The cell of this picture was run again, in another tab perhaps: save there, then reload this page.</b>"
)

# The explorers of each notebook cell, so that a cell run again replaces its own instead of adding one.
_of_cell = {}


class Explorer(ipywidgets.VBox):
    """The controls of a view, its picture and its sentence.

    controls   dict of the ipywidgets controls, by name
    values     dict of their values, by name
    fields     dict of the Text beside each slider, by name
    image      the Image that shows the picture
    sentence   the text under it; reading it shows the newest state first
    frames     how many frames have been shown
    drawing    the Drawing that makes them

    A control change only marks the state as changed. Inside a running event loop (a notebook) the newest state is drawn
    from the loop, so that a fast drag never queues up; elsewhere a change draws at once.
    """

    _resting = None  # the timer that runs while the hand may go on
    _sentence = ""

    def __init__(self, view, **start):
        self.view = view
        self.drawing = Drawing(view, **start)
        self.values = self.drawing.values
        self.frames = 0
        self.controls = {control.name: control.widget(self.values[control.name]) for control in view.controls}
        self.fields = {
            control.name: control.field(self.values[control.name]) for control in view.controls if control.slides
        }
        width, height = (round(side * DPI) for side in view.size)
        # The default margin has 2px at the sides too, and 100% plus them would scroll.
        layout = {"max_width": "100%", "margin": "2px 0"}
        self._presenting = self.drawing.preset == "presenter"
        self.image = ipywidgets.Image(format="png", width=str(width), height=str(height), layout=layout)
        self._text = ipywidgets.HTML(layout={"max_width": f"{width}px"})
        self._palette = Palette()
        self._pending = True
        self._show()
        layout = {"flex_flow": "row wrap", "grid_gap": "0 24px", "max_width": f"{width}px"}
        rows = ipywidgets.Box([self._row(control) for control in view.controls], layout=layout)
        gone = ipywidgets.HTML(DISCONNECTED).add_class("posviz-gone")
        looks = [ipywidgets.HTML(PRESENTER)] if self._presenting else []
        super().__init__([rows, self.image, self._text, gone, *looks])
        if self._presenting:
            self.add_class("posviz-presenter")
        for control in view.controls:
            self.controls[control.name].observe(lambda change, control=control: self._changed(control), "value")
            if control.slides:
                self.fields[control.name].observe(lambda change, control=control: self._typed(control), "value")
        _replace_earlier(self)

    def _row(self, control):
        """The control as the page shows it: a slider has its field beside it."""
        widget, field = self.controls[control.name], self.fields.get(control.name)
        layout = {"width": "438px" if self._presenting else "430px", "max_width": "100%"}
        return ipywidgets.HBox([widget, field], layout=layout) if field else widget

    def _typed(self, control):
        """Move the slider to the number in its field, or say under the picture why not and show the old number."""
        text, now = self.fields[control.name].value, self.values[control.name]
        if text == control.words(now):
            return
        try:
            value, words = control.typed(text, now), self.sentence
        except ValueError as refusal:
            value, words = now, str(refusal)
        self._say(words)
        self.controls[control.name].value = value
        self._write_numbers()

    def _write_numbers(self):
        for control in self.view.controls:
            if control.slides:
                self.fields[control.name].value = control.words(self.values[control.name])

    @property
    def sentence(self):
        with style.lock:
            self._show()
            return self._sentence

    def _changed(self, control):
        value = control.read(self.controls[control.name])
        if value == self.values[control.name]:  # it was taken along by another control
            return
        moved = self.values | {control.name: value}
        self.values = self.view.after_move(self.values, control.name, value)
        for name in self.values:
            if self.values[name] != moved[name]:
                self.controls[name].value = self.values[name]
        self._pending = True
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._show()
        else:
            # After the answer to this message. The browser waits for it before it sends the next move, and an answer
            # that follows a picture is held back by TCP: 52 ms a move, 9 ms this way.
            loop.call_soon(self._show, loop)

    def _show(self, loop=None):
        with style.lock:  # the pixels are one frame's until they are in the PNG file
            self._show_newest(loop)

    def _show_newest(self, loop):
        """Show the newest state unless it is shown; an error is said in words under the picture and raised again.

        In a loop the picture has 256 colours, half the bytes, so that a drag keeps up over a slow line; the exact one
        follows when the hand rests.
        """
        if not self._pending:
            return
        self._pending = False
        self._write_numbers()
        try:
            pixels, self._sentence = self.drawing.show(**self.values)
            self.image.value = self._palette.png(pixels) if loop else png(pixels)
            self.frames += 1
        except Exception as error:
            self._sentence = f"This picture could not be drawn: {type(error).__name__}: {error}"
            raise
        finally:
            self._say(self._sentence)
        if self._resting:
            self._resting.cancel()
        if loop:
            self._resting = loop.call_later(AT_REST, self._refine)

    def _say(self, words):
        self._text.value = _paragraph(words, 20 if self._presenting else 16)

    def _refine(self):
        """The picture shown, in all its colours."""
        with style.lock:
            self._resting = None
            if self.drawing:  # not closed in the meantime, by a cell in another thread
                self.image.value = png(self.drawing.show(**self.values)[0])

    def _repr_mimebundle_(self, include=None, exclude=None, **kwargs):
        picture, sentence = self.drawing.still(**self.values)
        live = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        data = {"text/plain": sentence, "image/png": base64.b64encode(picture).decode("ascii")}
        metadata = {"image/png": {"alt": f"{self.view.title}. {sentence}"}, "posviz": {}}
        if _made_without_arguments(self.view):  # whoever reads the stored cell can make the picture again
            values = {name: _as_saved(value) for name, value in self.values.items()}
            metadata["posviz"] = {"view": type(self.view).__name__, "values": values}
        return data | {"application/vnd.jupyter.widget-view+json": live}, metadata

    _ipython_display_ = None  # ipywidgets 7 displays by this method, which would leave the still picture out

    def close(self):
        """Detach the controls and drop the figure; the picture shown stays."""
        self._stop()
        _close([*self.children, self.layout])
        super().close()

    def _give_way(self):
        """Close all but the box, which shows one sentence where it is still seen: the cell's new run has a new box."""
        self._stop()
        closed, self.children = self.children, [ipywidgets.HTML(RUN_ELSEWHERE)]
        _close(closed)
        self.controls, self.fields, self.image, self._text = {}, {}, None, None  # or the box would keep them in memory

    def _stop(self):
        for widget in (*getattr(self, "controls", {}).values(), *getattr(self, "fields", {}).values()):
            widget.unobserve_all()
        if self._resting:
            self._resting.cancel()
        self._pending, self.drawing = False, None


def _as_saved(value):
    """10000 for 10000.0, as JavaScript writes it: a save in JupyterLab then changes nothing."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _made_without_arguments(view):
    try:
        return repr(vars(view)) == repr(vars(type(view)()))
    except TypeError:
        return False


def _close(widgets):
    """Close widgets with their children, layout and style: each is a widget that would stay registered on its own."""
    for widget in filter(None, widgets):
        _close([*getattr(widget, "children", ()), getattr(widget, "layout", None), getattr(widget, "style", None)])
        widget.close()


def _paragraph(sentence, size):
    """The sentence, over unseen words as long as the longest sentence allowed: at any width its room never changes."""
    longest = "aeon " * (LONGEST_SENTENCE // 5)
    return (
        f'<div style="display:grid;font-size:{size}px;line-height:1.4;padding:4px 0">'
        f'<p aria-live="polite" style="grid-area:1/1;margin:0">{html.escape(sentence)}</p>'
        f'<p aria-hidden="true" style="grid-area:1/1;margin:0;visibility:hidden">{longest}</p></div>'
    )


def _replace_earlier(explorer):
    """Those of an earlier run of the same notebook cell give way; where the front end names no cells, none does."""
    try:
        shell = get_ipython()  # defined in every IPython session, nowhere else
        cell = shell.get_parent()["metadata"]["cellId"]
    except (NameError, AttributeError, KeyError):
        return
    run = shell.execution_count
    made_in, explorers = _of_cell.get(cell, (run, []))
    if made_in != run:
        for earlier in explorers:
            earlier._give_way()
        explorers = []
    _of_cell[cell] = run, [*explorers, explorer]
