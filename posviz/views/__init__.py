"""The pictures of the course, one small class each; `all_views()` lists them."""

import importlib
import importlib.util

from posviz import style  # noqa: F401  first, because it keeps matplotlib's import quiet
from posviz.views.base import View

MODULES = ("motivation", "what", "why", "absolute", "relative", "rope", "extrapolation", "alibi")


def all_views():
    """Every view class of the course, in the order of the chapters; each is made without arguments."""
    classes = []
    for name in MODULES:
        if not importlib.util.find_spec(f"posviz.views.{name}"):
            continue
        module = importlib.import_module(f"posviz.views.{name}")
        classes += [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, View) and value.__module__ == module.__name__
        ]
    return classes


def __getattr__(name):
    for view in all_views():
        if view.__name__ == name:
            return view
    raise AttributeError(f"posviz.views has no picture {name!r}; it has {', '.join(v.__name__ for v in all_views())}")
