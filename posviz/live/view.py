"""What a picture is: its controls, artists drawn once, an update that sets data and says one sentence."""

from posviz.live.drawing import Drawing
from posviz.live.explorer import Explorer


class View:
    """A picture with controls. A subclass gives `title`, `size` in inches, `controls`, `draw` and `update`."""

    title = ""
    size = (9, 4)
    controls = []
    # What moves where there is no kernel, on the site and on slides, set in this order: {name of a control: the values
    # that the text asks for, which a slider must not step over}. If nothing is named, it is the first slider.
    story = {}

    def draw(self, figure):
        """Create the axes and artists once. Every artist that `update` changes becomes an attribute of the view."""
        raise TypeError(f"{type(self).__name__} has no draw(figure)")

    def update(self, **values):
        """Set data on the artists for these values; return the sentence that says what the picture shows."""
        raise TypeError(f"{type(self).__name__} has no update(...)")

    def coupled(self, moved, before, values):
        """{name: value} of what changes along when the control `moved` has left its value `before`; none by default."""
        return {}

    def after_move(self, values, name, value):
        """All values once the control `name` has moved to `value`, from the state of `values`."""
        after = values | {name: value}
        return after | self.coupled(name, values[name], after)

    def values(self, **given):
        """Every control's value: the given ones, checked, and the default of the others."""
        controls = {control.name: control for control in self.controls}
        for name in given.keys() - controls:
            raise TypeError(f"{type(self).__name__} has no control {name!r}; it has {', '.join(controls)}")
        return {name: control.check(given.get(name, control.default)) for name, control in controls.items()}

    @property
    def first_slider(self):
        """The control to move where there is room for one: the first that slides, or else the first."""
        return min(self.controls, key=lambda control: not control.slides)

    def figure(self, **values):
        """A still Figure of the state given, independent of any other."""
        return Drawing(self, **values).figure

    def explorer(self, **values):
        """The live widget, starting from the values given; where no widget can live, its picture and sentence."""
        return Explorer(self, **values)

    def drawn(self, **values):
        """(a copy of this view with its own figure, the figure, the sentence) in the state given."""
        drawing = Drawing(self, **values)
        return drawing.view, drawing.figure, drawing.sentence
