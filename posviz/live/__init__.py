"""What makes a picture live: its controls, one drawing that is kept, fast frames, and the widget around them."""

from posviz.views.base import Choice, Control, PowersOfTen, Range, Steps, Text, Toggle, View

__all__ = ["Choice", "Control", "PowersOfTen", "Range", "Steps", "Text", "Toggle", "View"]
