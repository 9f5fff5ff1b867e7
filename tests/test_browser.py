"""The chapters as a reader meets them: JupyterLab in Chromium, every control moved, every picture and sentence read.

One server and one page of JupyterLab serve all tests; each chapter is opened once and run once. Then each of its
controls is moved and the page is compared with what the kernel holds. Nothing here knows any picture: the controls are
found in the page.
"""

import functools
import json
import shutil
import time
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

import browser
import notebooks

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
SLIDERS = ("Steps", "Range", "PowersOfTen")
PARTS = ("sentence", "picture")
PATIENCE = 60  # seconds until something that must happen counts as missing

pytestmark = pytest.mark.browser
every_chapter = pytest.mark.parametrize("chapter", NOTEBOOKS, ids=lambda path: path.stem, indirect=True, scope="module")

# Runs in the kernel of the chapter: names the live explorers and their controls in the page by CSS classes.
NAME_EXPLORERS = """
import gc, hashlib, json
import posviz.live.explorer
from posviz.live import Drawing, Explorer
from posviz.live.png import png

posviz.live.explorer.AT_REST = 0.05   # the exact picture follows a move sooner than for a reader

def page_of_explorers():
    live = [e for e in gc.get_objects() if isinstance(e, Explorer) and e.comm is not None]
    for number, explorer in enumerate(live):
        explorer.add_class(f"explorer-{number}")
        for name, control in explorer.controls.items():
            control.add_class(f"control-{name}")
        for name, field in explorer.fields.items():
            field.add_class(f"field-{name}")
    return live

def page_state(number):
    explorer = page_explorers[number]
    pixels, again = page_twins[number].show(**explorer.values)
    return json.dumps({"values": explorer.values, "sentence": explorer.sentence, "again": again,
                       "picture": hashlib.sha256(png(pixels)).hexdigest()})

page_explorers = page_of_explorers()
page_twins = [Drawing(e.view) for e in page_explorers]   # a second copy of each picture, never shown
print(json.dumps([{"title": e.view.title, "controls": [
    {"name": c.name, "kind": type(c).__name__} for c in e.view.controls]}
    for e in page_explorers]))
"""

OPEN = """async ([path, shouldStart]) => {
    const notebook = await jupyterapp.commands.execute("docmanager:open", {path, kernelPreference: {shouldStart}});
    await notebook.context.ready;
    await notebook.revealed;
}"""

KERNEL_READY = """async () => {
    const notebook = jupyterapp.shell.currentWidget;
    await notebook.context.ready;
    await notebook.sessionContext.ready;
    await notebook.sessionContext.session.kernel.info;
}"""

ASK_KERNEL = """async ([id, code]) => {
    const notebook = [...jupyterapp.shell.widgets("main")].find(widget => widget.id === id);
    const kernel = notebook.sessionContext.session.kernel;
    const future = kernel.requestExecute({code, store_history: false, silent: false});
    let text = "";
    future.onIOPub = message => {
        if (message.header.msg_type === "stream" && message.content.name === "stdout") text += message.content.text;
    };
    const reply = await future.done;
    if (reply.content.status !== "ok") throw new Error(`${reply.content.ename}: ${reply.content.evalue}`);
    return text;
}"""

# What the page shows of an explorer: the sentence, the fingerprint of the picture's file (null while one file replaces
# another), where each control stands.
READ_EXPLORER = """async explorer => {
    explorer.scrollIntoView({block: "nearest"});   // JupyterLab does not lay out what is far from the screen
    const image = explorer.querySelector("img.widget-image");
    const fingerprint = async () => {
        await image.decode();
        const digest = await crypto.subtle.digest("SHA-256", await (await fetch(image.src)).arrayBuffer());
        return [...new Uint8Array(digest)].map(byte => byte.toString(16).padStart(2, "0")).join("");
    };
    const controls = {};
    for (const control of explorer.querySelectorAll("[class*=control-]")) {
        const name = [...control.classList].find(name => name.startsWith("control-")).slice(8);
        const field = explorer.querySelector(`.field-${name} input`), menu = control.querySelector("select");
        const button = control.querySelector("button.mod-active"), input = control.querySelector("input");
        controls[name] = field?.value ?? menu?.selectedOptions[0].text ?? button?.innerText
            ?? (input.type === "checkbox" ? input.checked : input.value);
    }
    return {
        sentence: explorer.querySelector("[aria-live]").innerText,
        picture: await fingerprint().catch(() => null),
        controls,
    };
}"""

# Notes, at every frame the browser paints, where things stand in the cell of an explorer and where the next one begins.
WATCH_LAYOUT = """explorer => {
    const cell = explorer.closest(".jp-Cell"), below = cell.nextElementSibling;
    const seen = window.layoutSeen = new Set();
    const note = () => {
        if (window.layoutSeen !== seen) return;
        const top = cell.getBoundingClientRect().top;
        const shown = [...explorer.children].filter(child => child.checkVisibility());   // what is hidden has no place
        const places = shown.map(child => child.getBoundingClientRect());
        seen.add(JSON.stringify([...places.flatMap(place => [place.top - top, place.height]),
            below ? below.getBoundingClientRect().top - top : cell.offsetHeight].map(length => Math.round(length))));
        requestAnimationFrame(note);
    };
    note();
}"""


def wait_until(condition, message):
    """Ask again and again until `condition()` is true; its value. AssertionError with `message` when patience ends."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(message() if callable(message) else message)
        time.sleep(0.03)


def wait_for_jupyter(page):
    wait_until(lambda: page.evaluate("() => !!window.jupyterapp"), "Jupyter did not load")
    page.evaluate("() => jupyterapp.restored")


def save(page):
    page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")


class Chapter:
    """The chapter that `page` has opened, run from top to bottom; its live pictures as `explorers`."""

    def __init__(self, page, path):
        self.page, self.path = page, path
        wait_for_jupyter(page)
        wait_until(
            lambda: page.evaluate("() => !!jupyterapp.shell.currentWidget?.sessionContext"), "no notebook opened"
        )
        page.evaluate(KERNEL_READY)
        self.id = page.evaluate("() => jupyterapp.shell.currentWidget.id")
        self.ran_well = page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
        described = json.loads(self.ask(NAME_EXPLORERS))
        self.explorers = [LiveExplorer(self, number, **words) for number, words in enumerate(described)]
        for explorer in self.explorers:
            explorer.element.wait_for(state="attached", timeout=1000 * PATIENCE)

    def ask(self, code):
        """What `code` prints in the kernel of the chapter, whichever tab is in front."""
        return self.page.evaluate(ASK_KERNEL, [self.id, code])


class LiveExplorer:
    """One live picture in the page: its controls, what it shows, and what the kernel says it should show."""

    def __init__(self, chapter, number, title, controls):
        self.chapter, self.number, self.title = chapter, number, title
        self.page = chapter.page
        self.element = self.page.locator(f".explorer-{number}")
        self.image = self.element.locator("img.widget-image")
        self.controls = {words["name"]: words for words in controls}
        self.sliders = [name for name, words in self.controls.items() if words["kind"] in SLIDERS]

    def control(self, name):
        return self.element.locator(f".control-{name}")

    def shown(self):
        """What the page shows: a dict of sentence, picture (its fingerprint) and controls."""
        return self.element.evaluate(READ_EXPLORER)

    def pixels(self):
        """The picture as it is on the screen."""
        return self.image.screenshot()

    def wait_for_other(self, before, message, parts=("sentence",)):
        """Wait until one of the `parts` of what is shown differs from the state `before`."""
        wait_until(lambda: any(self.shown()[part] != before[part] for part in parts), f"{self.title}: {message}")

    def wait_for_other_pixels(self, pixels, message):
        wait_until(lambda: self.pixels() != pixels, f"{self.title}: {message}")

    def watch_layout(self):
        """From now on the page notes where everything stands, in every frame."""
        self.element.evaluate(WATCH_LAYOUT)

    def layouts_seen(self):
        """The different layouts since `watch_layout`, which ends here; one if nothing has moved."""
        return self.page.evaluate(
            "() => { const seen = [...window.layoutSeen]; window.layoutSeen = null; return seen; }"
        )

    def settled(self):
        """What the page shows and the values behind it, once it is exactly the state that the kernel holds."""
        seen = {}

        def same():
            kernel = json.loads(self.chapter.ask(f"print(page_state({self.number}))"))
            page = self.shown()
            seen.update(page=page, kernel=kernel)
            return (
                page["sentence"] == kernel["sentence"] == kernel["again"]
                and page["picture"] == kernel["picture"]
                and all(
                    stands_at(page["controls"][name], kernel["values"][name], self.controls[name])
                    for name in self.controls
                )
            )

        wait_until(same, lambda: f"{self.title}: page and kernel differ: {seen}")
        return seen["page"] | {"values": seen["kernel"]["values"]}


def stands_at(shown, value, control):
    """Is `shown`, the words or the tick of a control in the page, the kernel's `value`?"""
    if control["kind"] in SLIDERS:
        return float(shown.replace(",", "")) == value
    return shown == value or isinstance(shown, str) and shown.replace("\xa0", " ") == str(value)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of JupyterLab over a copy of the chapters, `root`; its list `complaints` holds what went wrong in it."""
    path = browser.chromium()
    root, home = tmp_path_factory.mktemp("chapters"), tmp_path_factory.mktemp("home")
    for notebook in NOTEBOOKS:
        shutil.copy(notebook, root)
    with browser.server(root, home) as url, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=browser.FLAGS)
        page = chromium.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(1000 * PATIENCE)
        page.root, page.complaints = root, (complaints := [])
        page.on("pageerror", lambda error: complaints.append(f"error in the page: {error}"))
        page.on("response", lambda answer: answer.status >= 400 and complaints.append(f"{answer.status}: {answer.url}"))
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.goto(f"{url}/lab?reset", wait_until="domcontentloaded")
        wait_for_jupyter(page)
        yield page
        chromium.close()


@pytest.fixture(scope="module")
def chapter(page, request):
    """A chapter, opened and run."""
    page.complaints.clear()
    page.evaluate(OPEN, [request.param.name, True])
    try:
        yield Chapter(page, request.param)
    finally:
        page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        page.evaluate("() => jupyterapp.shell.currentWidget.dispose()")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_without_a_kernel_the_still_pictures_show(page, path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    stored = sum("image/png" in output.get("data", {}) for cell in cells for output in cell.get("outputs", []))
    page.evaluate(OPEN, [path.name, False])
    wait_until(
        lambda: (
            page.evaluate("""() => {
        const stills = [...jupyterapp.shell.currentWidget.node.querySelectorAll(".jp-RenderedImage img")];
        return stills.filter(image => image.complete && image.naturalWidth > 0 && image.clientWidth > 0).length;
    }""")
            == stored
        ),
        f"not all of the {stored} still pictures are shown",
    )
    assert page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session") is None
    assert page.locator(".jupyter-widgets").count() == 0
    assert page.get_by_text("model not found").count() == 0
    page.evaluate("() => jupyterapp.shell.currentWidget.dispose()")


@every_chapter
def test_the_chapter_runs_and_shows_its_live_pictures(chapter):
    called = sum(".explorer(" in "".join(cell["source"]) for cell in json.loads(chapter.path.read_text())["cells"])
    assert chapter.ran_well
    assert len(chapter.explorers) >= called
    for explorer in chapter.explorers:
        explorer.settled()
        width, height = explorer.image.evaluate("image => [image.clientWidth, image.clientHeight]")
        assert [width, height] == explorer.image.evaluate("image => [image.naturalWidth, image.naturalHeight]")


@every_chapter
def test_after_a_run_that_changed_nothing_a_save_changes_nothing(chapter, page):
    """Up to the pictures themselves, which another matplotlib may draw a little otherwise."""
    save(page)
    saved = page.root / chapter.path.name
    assert saved.read_bytes() == notebooks.stored(notebooks.read(saved))
    assert without_pictures(saved) == without_pictures(chapter.path)


def without_pictures(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
            output.get("metadata", {}).pop("posviz", None)
    return notebook


@every_chapter
def test_every_control_changes_what_is_shown_and_nothing_jumps(chapter):
    """By a key, a fast drag, a click. One pass: the state in which a move ends is that in which the next begins."""
    for explorer in chapter.explorers:
        before, pixels = explorer.settled(), explorer.pixels()
        explorer.watch_layout()
        for name, move, how_many in moves(explorer):
            move()
            explorer.wait_for_other(before, f"{name} changes nothing that is seen", PARTS)
            after = explorer.settled()
            if pixels and after["picture"] != before["picture"]:  # once a picture: it reaches the screen
                explorer.wait_for_other_pixels(pixels, f"{name} changes no pixel")
                pixels = None
            assert after["values"][name] != before["values"][name]
            changed = [after[part] != before[part] for part in PARTS]
            asks = "?" in after["sentence"]  # the picture waits for the answer, the sentence asks something else
            assert any(changed) if asks else how_many(changed), f"{explorer.title}: {name} leaves {before}"
            before = after
        assert pixels is None, f"{explorer.title}: no control changes the picture"
        layouts = explorer.layouts_seen()
        assert len(layouts) == 1, f"{explorer.title}: things jump: {layouts}"


def moves(explorer):
    """(control, function that moves it, all or any: how many of PARTS must change) of all that a reader can move."""
    for name in explorer.sliders:
        yield name, functools.partial(press_a_key, explorer, name), all
        yield name, functools.partial(drag, explorer, name), all
    for name, words in explorer.controls.items():
        for act in other_values(explorer.control(name), words["kind"]):
            yield name, act, any


def press_a_key(explorer, name):
    handle = explorer.control(name).locator(".noUi-handle")
    at, top = (float(handle.get_attribute(f"aria-value{end}")) for end in ("now", "max"))
    handle.focus()
    explorer.page.keyboard.press("ArrowLeft" if at == top else "ArrowRight")


def drag(explorer, name, let_go=True):
    """Sweep the handle over its whole track, there and back, as fast as the browser takes it, to the far half."""
    explorer.control(name).scroll_into_view_if_needed()
    track = explorer.control(name).locator(".noUi-base").bounding_box()
    grip = explorer.control(name).locator(".noUi-handle").bounding_box()
    start = (grip["x"] + grip["width"] / 2 - track["x"]) / track["width"]
    y = track["y"] + track["height"] / 2
    mouse = explorer.page.mouse
    mouse.move(track["x"] + start * track["width"], y)
    mouse.down()
    for part in (0, 0.3, 0.6, 1, 0.5, 0.7 if start < 0.5 else 0.3):
        mouse.move(track["x"] + part * track["width"], y)
    if let_go:
        mouse.up()


@pytest.mark.parametrize("chapter", NOTEBOOKS[5:6], ids=lambda path: path.stem, indirect=True, scope="module")
def test_a_number_is_read_as_it_is_typed_or_refused_in_words(chapter):
    explorers = {name: explorer for explorer in reversed(chapter.explorers) for name in explorer.sliders}
    for explorer in chapter.explorers:
        explorer.settled()
    for name, text, value in [
        ("base", "20000", 20_000),
        ("base", "10,000", 10_000),
        ("base", "20 000", 20_000),
        ("base", "0,5", None),
        ("base", "500000", 500_000),
        ("base", "", None),
        ("base", "1e6", 1_000_000),
        ("position", "1,000", 1000),
        ("theta", "0,5", 0.5),
        ("theta", "0.6 rad", 0.6),
        ("theta", "1.5", None),
        ("theta", "0.7", 0.7),
    ]:
        type_number(explorers[name], name, text, value)


def type_number(explorer, name, text, value):
    """Type `text` beside the slider `name`: it must move to `value`, or say so and stay if that is None."""
    field, before = explorer.element.locator(f".field-{name} input"), explorer.shown()
    field.fill(text)
    field.press("Enter")
    if value is None:
        explorer.wait_for_other(before, f"{text!r} is not refused")
        assert f"“{text}” is not" in explorer.shown()["sentence"]
        wait_until(lambda: field.input_value() == before["controls"][name], "the old number does not come back")
        return
    wait_until(lambda: explorer.settled()["values"][name] == value, f"{text!r} is misread for {name}")
    field.press("Enter")  # on the number as it stands there
    assert field.get_attribute("title") and explorer.settled()["values"][name] == value


def other_values(control, kind):
    """Functions that each give a control that is no slider another value, the way a reader does."""
    if kind == "Toggle":
        box = control.locator("input")
        return [box.click, box.click]
    if kind == "Text":
        box = control.locator("input")
        return [functools.partial(box.fill, "the dog"), functools.partial(box.press, "Backspace")]
    if kind == "Choice" and control.locator("select").count():
        menu = control.locator("select")
        chosen = menu.evaluate("menu => menu.selectedIndex")
        others = [index for index in range(menu.locator("option").count()) if index != chosen]
        return [functools.partial(menu.select_option, index=index) for index in [*others, chosen]]
    if kind == "Choice":
        buttons = control.locator("button").all()
        chosen = [button for button in buttons if "mod-active" in button.get_attribute("class")]
        return [button.click for button in buttons if button not in chosen] + [button.click for button in chosen]
    return []


@every_chapter
def test_the_page_never_complains(chapter):
    for words in ("model not found", "Error displaying widget", "Loading widget"):
        assert chapter.page.get_by_text(words).count() == 0
    assert chapter.page.complaints == []
