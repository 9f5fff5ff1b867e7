"""The pictures of the course, one small class each; `all_views()` lists them."""

import importlib

from posviz import style  # noqa: F401  first, because it keeps matplotlib's import quiet
from posviz.chapters import STEMS
from posviz.views.base import View


def all_views():
    """Every view class of the course, in the order of the chapters; each is made without arguments."""
    classes = []
    for stem in STEMS:
        module = importlib.import_module(f"posviz.views.{stem}")
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
