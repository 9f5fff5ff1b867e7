"""What makes a picture live: its controls, one drawing that is kept, fast frames, and the widget around them."""

from posviz import style  # noqa: F401  first, because it keeps matplotlib's import quiet
from posviz.live.controls import Choice, Control, PowersOfTen, Range, Steps, Text, Toggle
from posviz.live.drawing import Drawing
from posviz.live.explorer import Explorer
from posviz.live.view import View

__all__ = ["Choice", "Control", "Drawing", "Explorer", "PowersOfTen", "Range", "Steps", "Text", "Toggle", "View"]
