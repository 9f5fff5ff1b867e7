"""A view with its controls: one live widget, and a still picture with its sentence wherever widgets cannot live."""

import asyncio
import base64
import html
from collections import OrderedDict

import ipywidgets
import numpy as np

from posviz import frames, style
from posviz.views import base

CACHE_BYTES = 2_000_000
LONGEST_SENTENCE = 220  # characters; a test holds every view to it

# The explorers of each notebook cell, so that a cell run again replaces its own instead of adding one.
_of_cell = {}


class Explorer(ipywidgets.VBox):
    """The controls of a view, its picture and its sentence.

    controls   dict of the ipywidgets controls, by name
    image      the Image that shows the picture
    sentence   the text now shown under it
    frames     how many frames have been shown

    A control change only marks the state as changed. Inside a running event loop (a notebook) the newest state is drawn
    from the loop, so that a fast drag never queues up; elsewhere a change draws at once.
    """

    def __init__(self, view, **start):
        self.view = view
        values = view.values(**start)
        self._drawn, self._figure, sentence = view.drawn(**values)
        self._layers = frames.Layers(self._figure, base.artists_of(self._drawn))
        self._cache = OrderedDict()
        self._waiting = self._following = False
        self.frames = 0
        width, height = (round(side * base.DPI) for side in view.size)
        self.controls = {control.name: _widget(control, values[control.name]) for control in view.controls}
        self.image = ipywidgets.Image(format="png", width=str(width), height=str(height))
        self.image.layout.max_width = "100%"
        self.image.layout.margin = "2px 0"  # the default has 2px at the sides too, and 100% plus them would scroll
        self._text = ipywidgets.HTML()
        self._text.layout.max_width = f"{width}px"
        self._before = values
        self._show()
        panel = ipywidgets.Box(list(self.controls.values()))
        panel.layout.flex_flow = "row wrap"
        panel.layout.max_width = f"{width}px"
        super().__init__([panel, self.image, self._text])
        for name, control in self.controls.items():
            control.observe(lambda change, name=name: self._changed(name), "value")
        _replace_earlier(self)

    @property
    def values(self):
        """The values of all controls."""
        return {control.name: _value(control, self.controls[control.name]) for control in self.view.controls}

    @property
    def _cached_bytes(self):
        return sum(len(picture) for picture, _ in self._cache.values())

    def _changed(self, name):
        if self._following:
            return
        values = self.values
        self._following = True
        try:
            for other, value in self.view.follow(name, self._before[name], values).items():
                self.controls[other].value = value
        finally:
            self._following = False
        self._before = self.values
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._show()
        else:
            if not self._waiting:
                self._waiting = True
                loop.call_soon(self._show)

    def _show(self):
        """Draw the newest state; an error is shown in words beside the picture and raised again."""
        self._waiting = False
        try:
            picture, self.sentence = self._frame(self.values)
        except Exception as error:
            self.sentence = f"This picture could not be drawn: {type(error).__name__}: {error}"
            self._text.value = _paragraph(self.sentence)
            raise
        self.frames += 1
        self.image.value = picture
        self._text.value = _paragraph(self.sentence)

    def _frame(self, values):
        key = (style.current(), *values.values())
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        sentence = self._drawn.update(**values)
        picture = frames.png(self._layers.frame())
        self._cache[key] = picture, sentence
        while self._cached_bytes > CACHE_BYTES:
            self._cache.popitem(last=False)
        return picture, sentence

    def still(self):
        """(PNG bytes, sentence) of the state shown, the sentence written under the picture: what a saved notebook keeps."""
        sentence = self._drawn.update(**self.values)
        picture = self._layers.frame()
        caption = base.caption(sentence, self.view.size[0])
        return frames.png(np.concatenate([picture, caption]), level=9), sentence

    def _repr_mimebundle_(self, include=None, exclude=None, **kwargs):
        picture, sentence = self.still()
        return {
            "text/plain": sentence,
            "image/png": base64.b64encode(picture).decode("ascii"),
            "application/vnd.jupyter.widget-view+json": {
                "version_major": 2,
                "version_minor": 0,
                "model_id": self.model_id,
            },
        }, {"image/png": {"alt": f"{self.view.title}. {sentence}"}}

    _ipython_display_ = None  # ipywidgets 7 displays by this method, which would leave the still picture out

    def close(self):
        """Detach the controls and drop the figure; the picture shown stays."""
        for control in getattr(self, "controls", {}).values():
            control.unobserve_all()
        self._layers = self._figure = self._drawn = None
        self._cache = OrderedDict()
        _close_below(self)
        super().close()


def _close_below(widget):
    """Close a widget's children, layout and style: each is a widget that would stay registered on its own."""
    for child in getattr(widget, "children", ()):
        _close_below(child)
        child.close()
    for part in ("layout", "style"):
        if getattr(widget, part, None) is not None:
            getattr(widget, part).close()


def _paragraph(sentence):
    """The sentence, over unseen words as long as the longest sentence allowed: at any width its room never changes."""
    longest = "aeon " * (LONGEST_SENTENCE // 5)
    return (
        f'<div style="display:grid;font-size:16px;line-height:1.4;padding:4px 0">'
        f'<p aria-live="polite" style="grid-area:1/1;margin:0">{html.escape(sentence)}</p>'
        f'<p aria-hidden="true" style="grid-area:1/1;margin:0;visibility:hidden">{longest}</p></div>'
    )


def _widget(control, value):
    """The ipywidgets control of a declared one: it works with the keyboard and shows its unit."""
    look = {"description": control.caption, "style": {"description_width": "initial"}}
    if isinstance(control, base.Choice):
        few = len(control.options) <= 4
        kind = ipywidgets.ToggleButtons if few else ipywidgets.Dropdown
        if few:
            look["style"]["button_width"] = "auto"
        return kind(options=list(control.options), value=value, **look)
    if isinstance(control, base.Toggle):
        return ipywidgets.Checkbox(value=value, indent=False, **look)
    if isinstance(control, base.Text):
        return ipywidgets.Text(value=value, continuous_update=True, layout={"width": "600px"}, **look)
    look["layout"] = {"width": "430px"}
    if isinstance(control, base.PowersOfTen):
        return ipywidgets.FloatLogSlider(
            value=value,
            base=10,
            min=control.low,
            max=control.high,
            step=control.step,
            readout_format=",.0f" if control.low >= 0 else ".3g",
            **look,
        )
    slider = ipywidgets.IntSlider if isinstance(control, base.Steps) else ipywidgets.FloatSlider
    if slider is ipywidgets.FloatSlider:
        look["readout_format"] = f".{max(0, len(f'{control.step:g}'.partition('.')[2]))}f"
    return slider(value=value, min=control.low, max=control.high, step=control.step, **look)


def _value(control, widget):
    value = widget.value
    if isinstance(control, base.Text):
        value = value[: control.longest]
    return control.check(value)


def _replace_earlier(explorer):
    """Close the explorers that an earlier run of the same notebook cell left behind."""
    try:
        shell = get_ipython()  # defined in every IPython session, nowhere else
        parent = shell.get_parent()
        cell = parent["metadata"].get("cellId") or parent["content"]["code"]
    except (NameError, AttributeError, KeyError):
        return
    run = shell.execution_count
    made_in, explorers = _of_cell.get(cell, (run, []))
    if made_in != run:
        for earlier in explorers:
            earlier.close()
        explorers = []
    _of_cell[cell] = run, [*explorers, explorer]
