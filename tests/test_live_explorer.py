"""The widget around a view: one redraw for the newest state, errors in words, a still picture, no leftovers."""

import asyncio
import base64
import io
import json
import subprocess
import sys
import threading

import ipywidgets
import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from PIL import Image

from posviz import style, views
from posviz.live import Choice, Drawing, PowersOfTen, Range, Steps, Text, Toggle, View
from posviz.live.png import png


class Parabola(View):
    """A curve with one control of each kind."""

    title = "A parabola"
    size = (4, 3)
    controls = [
        Steps("power", 1, 5, default=2),
        Range("height", 0.0, 2.0, 0.25, default=1.0, unit="m"),
        Choice("side", ["left", "right"]),
        PowersOfTen("scale", 0, 3, default=1),
        Toggle("mirror"),
        Text("name", "y"),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(0, 1), ylim=(-2, 2))
        (self.curve,) = axes.plot([], [])

    def update(self, power, height, side, scale, mirror, name):
        if name == "boom":
            raise ValueError("no curve of that name")
        x = np.linspace(0, 1, 50)
        self.curve.set_data(x, (-1) ** mirror * height * x**power)
        way = "mirrored" if mirror else "upright"
        return f"{name}: {height:g} m at the {side}, power {power}, scale {scale:g}, {way}."

    def coupled(self, moved, before, values):
        return {"height": 2.0} if moved == "side" and values["side"] == "right" else {}


@pytest.fixture
def explorer():
    made = Parabola().explorer()
    yield made
    if made.comm is not None:
        made.close()


def test_the_contract(explorer):
    assert isinstance(explorer, ipywidgets.VBox)
    assert list(explorer.controls) == ["power", "height", "side", "scale", "mirror", "name"]
    assert all(isinstance(control, ipywidgets.Widget) for control in explorer.controls.values())
    assert isinstance(explorer.image, ipywidgets.Image) and bytes(explorer.image.value).startswith(b"\x89PNG")
    assert explorer.sentence == "y: 1 m at the left, power 2, scale 10, upright."
    assert explorer.frames == 1


def test_a_change_outside_a_loop_draws_at_once(explorer):
    picture = explorer.image.value
    explorer.controls["power"].value = 5
    assert explorer.frames == 2 and "power 5" in explorer.sentence and explorer.image.value != picture
    assert np.allclose(explorer.drawing.view.curve.get_ydata(), np.linspace(0, 1, 50) ** 5)
    explorer.controls["power"].value = 2
    assert explorer.frames == 3 and explorer.image.value == picture


def test_inside_a_loop_only_the_newest_state_is_drawn(explorer):
    async def drag():
        for power in (1, 2, 3, 4, 5):
            explorer.controls["power"].value = power
        drawn_before_the_loop_turned = explorer.frames
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return drawn_before_the_loop_turned

    assert asyncio.run(drag()) == 1
    assert explorer.frames == 2 and "power 5" in explorer.sentence


def test_the_sentence_is_that_of_the_newest_state_when_it_is_read(explorer):
    async def move_and_read():
        explorer.controls["power"].value = 5
        read = explorer.sentence
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return read

    assert "power 5" in asyncio.run(move_and_read())
    assert explorer.frames == 2  # it was drawn when it was read, and not once more from the loop


def test_a_drag_is_shown_in_256_colours_and_its_end_exactly(explorer, monkeypatch):
    monkeypatch.setattr("posviz.live.explorer.AT_REST", 0.02)
    seen = []
    explorer.image.observe(lambda change: seen.append(Image.open(io.BytesIO(change["new"]))), "value")

    async def drag():
        for power in (3, 4):
            explorer.controls["power"].value = power
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)

    asyncio.run(drag())
    assert [picture.mode for picture in seen] == ["P", "P", "RGBA"] and explorer.frames == 3
    exact = np.asarray(seen[2])
    assert np.array_equal(exact, explorer.drawing.show(**explorer.values)[0])
    assert np.abs(np.asarray(seen[1].convert("RGBA")).astype(int) - exact).mean() < 1  # of 255


def test_a_picture_closed_in_a_drag_is_not_refined(explorer, monkeypatch):
    monkeypatch.setattr("posviz.live.explorer.AT_REST", 0.01)
    errors = []

    async def drag():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
        explorer.controls["power"].value = 3
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        explorer.close()
        await asyncio.sleep(0.05)

    asyncio.run(drag())
    assert not errors


def test_one_control_can_take_another_along(explorer):
    explorer.controls["side"].value = "right"
    assert explorer.controls["height"].value == 2.0
    assert explorer.frames == 2 and "2 m at the right" in explorer.sentence


def test_each_control_is_read_and_checked_once_a_move(explorer, monkeypatch):
    checked = []
    for kind in (Steps, Range, Choice, PowersOfTen, Toggle, Text):
        was = kind.check
        monkeypatch.setattr(
            kind, "check", lambda self, value, was=was: [checked.append(self.name), was(self, value)][1]
        )
    explorer.controls["side"].value = "right"
    assert checked == ["side", "height"] or checked == ["side", "height", "height"]


@pytest.mark.parametrize(
    "typed, value, shown",
    [
        ("20000", 20_000, "20,000"),
        ("20,000", 20_000, "20,000"),
        (" 20 000 ", 20_000, "20,000"),
        ("20\u202f000", 20_000, "20,000"),
        ("20'000", 20_000, "20,000"),
        ("2e4", 20_000, "20,000"),
        ("500000", 500_000, "500,000"),
        ("10,000", 10_000, "10,000"),
        ("20,00", 20, "20"),
        ("100 tok", 100, "100"),
        ("", None, "1,000"),
        ("many", None, "1,000"),
        ("0,5", None, "1,000"),
        ("30000", None, "1,000"),
        ("100 rad", None, "1,000"),
        ("nan", None, "1,000"),
        ("1e999", None, "1,000"),
        ("10,00,00", None, "1,000"),
    ],
)
def test_a_typed_number_moves_the_slider_or_is_refused_in_words(typed, value, shown):
    class Base(View):
        title, size, controls = "A base", (4, 3), [PowersOfTen("base", 1, 6, default=3, unit="tokens")]

        def draw(self, figure):
            self.text = figure.text(0, 0, "")

        def update(self, base):
            self.text.set_text(f"{base:g}")
            return f"The base is {base:g}."

    explorer = Base().explorer()
    explorer.fields["base"].value = typed
    assert explorer.fields["base"].value == shown
    assert explorer.controls["base"].value == explorer.values["base"] == (value or 1000)
    refused = f"base (tokens): “{typed}” is not 1, 2 or 5 times a power of ten, from 10 to 1,000,000."
    assert (refused if value is None else f"The base is {value:g}.") in explorer._text.value
    explorer.fields["base"].value = "1000"
    assert "The base is 1000." in explorer._text.value
    explorer.close()


def test_numbers_follow_the_sliders_and_are_whole_or_not(explorer):
    explorer.controls["power"].value = 4
    explorer.fields["height"].value = "0,25 m"
    assert explorer.values["power"] == 4 and explorer.values["height"] == 0.25
    assert [explorer.fields[name].value for name in ("power", "height", "scale")] == ["4", "0.25", "10"]
    explorer.controls["side"].value = "right"  # takes the height along
    assert explorer.fields["height"].value == "2.00"
    explorer.fields["height"].value = "0.3"
    assert "height (m): “0.3” is not a number from 0 to 2 in steps of 0.25." in explorer._text.value
    assert explorer.fields["power"].tooltip == "power: a whole number from 1 to 5"


def test_an_error_is_shown_in_words_and_raised(explorer):
    with pytest.raises(ValueError, match="no curve of that name"):
        explorer.controls["name"].value = "boom"
    assert "could not be drawn" in explorer.sentence and "no curve of that name" in explorer._text.value
    explorer.controls["name"].value = "y"
    assert explorer.sentence.startswith("y: 1 m")


def test_an_error_inside_a_loop_reaches_its_handler(explorer):
    caught = []

    async def type_it():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: caught.append(context["exception"]))
        explorer.controls["name"].value = "boom"
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(type_it())
    assert isinstance(caught[0], ValueError) and "could not be drawn" in explorer.sentence


def test_what_is_typed_cannot_become_markup(explorer):
    explorer.controls["name"].value = "<b>&"
    assert "&lt;b&gt;&amp;:" in explorer._text.value


def test_start_values_are_checked_and_used():
    explorer = Parabola().explorer(power=4)
    assert "power 4" in explorer.sentence and explorer.controls["power"].value == 4
    explorer.close()
    with pytest.raises(ValueError, match="power must be a whole number from 1 to 5; got 6"):
        Parabola().explorer(power=6)


def test_the_same_cell_shows_live_and_still(explorer):
    data, metadata = explorer._repr_mimebundle_()
    assert data["text/plain"] == explorer.sentence
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.model_id
    assert metadata["image/png"]["alt"] == f"A parabola. {explorer.sentence}"


def test_a_stored_cell_names_the_view_and_the_values_shown(explorer):
    explorer.controls["power"].value = 4
    metadata = explorer._repr_mimebundle_()[1]["posviz"]
    assert metadata == {"view": "Parabola", "values": explorer.values} and metadata["values"]["power"] == 4
    assert json.loads(json.dumps(metadata)) == metadata


def test_a_view_made_with_arguments_is_not_named_as_its_name_is_not_enough():
    class Scaled(Parabola):
        def __init__(self, factor):
            self.factor = factor

    class Named(Parabola):
        def __init__(self, who=None):
            self.who = who

    for view, named in ((Scaled(2), False), (Named(), True), (Named("Ada"), False)):
        made = view.explorer()
        assert bool(made._repr_mimebundle_()[1]["posviz"]) == named  # the mark is there, the way back may not be
        made.close()


def test_the_still_picture_has_its_sentence_written_under_it(explorer):
    from struct import unpack

    width, height = unpack(">II", explorer.drawing.still(**explorer.values)[0][16:24])
    assert width == 400 and 330 < height < 450  # 300 of the picture, the rest for four or five lines
    longer = explorer.drawing._caption("word " * 40)
    assert longer.shape[1] == 400 and longer.shape[0] > explorer.drawing._caption("word").shape[0]
    assert (longer[..., :3].min(axis=(0, 2))[-5:] == 255).all()  # no line runs out on the right


def test_the_still_picture_is_the_same_on_every_run(explorer):
    other = Parabola().explorer()
    assert other._repr_mimebundle_()[0]["image/png"] == explorer._repr_mimebundle_()[0]["image/png"]
    other.close()


def test_a_preset_changed_meanwhile_redraws(explorer):
    try:
        style.use("presenter")
        bigger = Parabola().explorer()
        assert bigger.image.value != explorer.image.value
        bigger.close()
    finally:
        style.use("reader")


def test_a_retina_screen_gets_twice_the_pixels_in_the_same_space():
    try:
        style.use(pixel_ratio=2)
        sharp = Parabola().explorer()
    finally:
        style.use(pixel_ratio=1)
    from struct import unpack

    assert unpack(">II", sharp.image.value[16:24]) == (800, 600)
    assert (sharp.image.width, sharp.image.height) == ("400", "300")
    sharp.close()


def test_views_of_one_class_do_not_share_state():
    one, two = Parabola().explorer(), Parabola().explorer()
    one.controls["power"].value = 5
    assert "power 2" in two.sentence and two.frames == 1
    one.close()
    two.controls["power"].value = 3
    assert "power 3" in two.sentence
    two.close()


def test_two_pictures_linked_by_one_slider_stay_in_step():
    one, two = Parabola().explorer(), Parabola().explorer()
    ipywidgets.link((one.controls["power"], "value"), (two.controls["power"], "value"))
    one.controls["power"].value = 4
    two.controls["power"].value = 5
    assert one.sentence == two.sentence and one.frames == two.frames == 3
    one.close()
    two.close()


def test_a_closed_explorer_draws_no_more_even_if_a_move_is_waiting(explorer):
    async def move_and_close():
        explorer.controls["power"].value = 4
        explorer.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(move_and_close())
    assert explorer.frames == 1


def test_pictures_do_not_mind_what_pyplot_does(explorer):
    """`plt.close("all")`, and any backend that a reader chooses, as by `%matplotlib widget`: one that is not there."""
    theirs = matplotlib.rcParams._get("backend")
    picture = explorer.image.value
    try:
        matplotlib.rcParams._set("backend", "module://nowhere")
        pyplot.close("all")
        explorer.controls["power"].value = 5
        other = Parabola().explorer()
        assert explorer.image.value != picture == other.image.value
        other._repr_mimebundle_()
        other.close()
    finally:
        matplotlib.rcParams._set("backend", theirs)


def test_a_closed_explorer_draws_no_more(explorer):
    control = explorer.controls["power"]
    explorer.close()
    control.value = 4
    assert explorer.frames == 1


RERUN = """
import gc, ipywidgets
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
parent = {"metadata": {"cellId": "cell-1"}, "content": {"code": "x"}}
type(shell).get_parent = lambda self: parent
from posviz import views
from posviz.live import explorer
View = views.all_views()[0]
counts = []
for run in range(10):
    shell.execution_count = run + 1
    first, second = View().explorer(), View().explorer()
    counts.append(len(explorer._of_cell["cell-1"][1]))
    if run == 0:
        registry = getattr(ipywidgets.widgets.widget, "_instances", None)  # since ipywidgets 8
        registry = ipywidgets.Widget.widgets if registry is None else registry
        after_one = len(registry)
assert counts == [2] * 10, counts
words = 9 * 2 * 5   # where the others stood, each in a box: two widgets, two layouts, a style
assert len(registry) == after_one + words, (len(registry), after_one)
kept = [e for e in gc.get_objects() if isinstance(e, explorer.Explorer)]
assert sum(e.drawing is not None or e.image is not None for e in kept) == 2
assert sum("was run again" in e.children[0].value for e in kept if e.drawing is None) == 18
print("one cell's worth")
"""


def test_two_cells_of_one_source_stay_both_alive_where_the_front_end_names_no_cells():
    nameless = RERUN.replace('{"cellId": "cell-1"}', "{}").partition("counts = []")[0]
    code = nameless + "one = View().explorer()\nshell.execution_count += 1\ntwo = View().explorer()\n"
    code += "assert one.comm and two.comm and one.drawing and two.drawing\nprint('both')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().endswith("both"), done.stderr


def test_a_cell_run_ten_times_leaves_one_cells_worth_of_widgets():
    done = subprocess.run([sys.executable, "-c", RERUN], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().endswith("one cell's worth"), done.stderr


def test_a_cell_and_a_moved_control_in_two_threads_leave_whole_pictures():
    """JupyterLab answers the messages of controls in a thread of the kernel that does not run the cells."""
    view = views.AttentionMicroscope()
    explorer, twin = view.explorer(), Drawing(view)
    here, there = explorer.values, explorer.values | {"layer": 3, "shuffle": True}
    whole = {png(twin.show(**values)[0]) for values in (here, there)}
    seen, done = [], threading.Event()

    def drag():
        while not done.is_set():
            explorer.values = there if explorer.values == here else here
            explorer._pending = True
            explorer._refine()
            seen.append(explorer.image.value)

    mover = threading.Thread(target=drag)
    mover.start()
    try:
        for _ in range(20):
            assert explorer.sentence
            assert png(twin.show(**here)[0]) in whole
            explorer.drawing.show(**here)
    finally:
        done.set()
        mover.join()
    assert seen and whole.issuperset(seen)
    explorer.close()


def test_the_presenter_preset_enlarges_words_as_well_as_the_picture():
    try:
        style.use("presenter")
        large = Parabola().explorer()
    finally:
        style.use("reader")
    small = Parabola().explorer()
    assert "posviz-presenter" in large._dom_classes and "posviz-presenter" not in small._dom_classes
    assert "font-size:20px" in large._text.value and "font-size:16px" in small._text.value
    large.close()
    small.close()
