"""Live pictures elsewhere and otherwise: Notebook 7, dark theme, zoom, keyboard alone, less motion, two views.

Two tabs as well, and notebooks that were saved and opened again. The server's address has a path, as behind a hub.

Notebook 7 runs chapter 5, with EVERY_CHAPTER=1 (`make test-all`) every chapter. The rest needs a few pictures only.
"""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import sync_playwright
from static_pages import SAMPLE
from test_browser import NOTEBOOKS, OPEN, PATIENCE, Chapter, drag, save, wait_for_jupyter, wait_until

import browser
import notebooks

pytestmark = pytest.mark.browser

# How light a colour is, as WCAG 2 counts it, and the contrast of an element's text with what lies behind it.
CONTRAST = """element => {
    const channels = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = colour => channels(colour).slice(0, 3).map(value => value / 255)
        .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
    let behind = element;
    while (behind.parentElement && (channels(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0)
        behind = behind.parentElement;
    const [low, high] = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor].map(light)
        .sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}"""


def notebook_of(first, names):
    """A notebook with the line `first`, then one picture a cell."""
    cells = [nbformat.v4.new_code_cell(first)]
    cells += [nbformat.v4.new_code_cell(f"views.{name}().explorer()") for name in names]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(Chromium, the URL of a server of both JupyterLab and Notebook 7, its folder of chapters and short notebooks)."""
    root, home = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("home")
    for path in NOTEBOOKS:
        shutil.copy(path, root)
    for name, first, pictures in [
        ("small", "from posviz import views", ["TurningPair", "ClockWall"]),
        ("other", "from posviz import views", ["RotationMatrix"]),
        ("kept-lab", "from posviz import views", ["TurningPair", "SlidingSentence"]),
        ("projector", "from posviz import style, views; style.use('presenter')", ["TurningPair", "RotationMatrix"]),
    ]:
        nbformat.write(notebook_of(first, pictures), root / f"{name}.ipynb")
    stored = notebooks.run(root / "kept-lab.ipynb")
    for name in ("kept-lab", "kept-7"):
        (root / f"{name}.ipynb").write_bytes(stored)
    settings = home / "jupyter_config_dir" / "jupyter_server_config.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"JupyterNotebookApp": {"expose_app_in_browser": True}}))
    path = browser.chromium()
    with browser.server(root, home, base="/user/ada") as url, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=browser.FLAGS)
        yield chromium, url, root
        chromium.close()


def new_page(server, place):
    chromium, url, _ = server
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{url}/{place}", wait_until="domcontentloaded")
    return page


@pytest.fixture(scope="module")
def lab(server):
    """A page of JupyterLab."""
    page = new_page(server, "lab?reset")
    wait_for_jupyter(page)
    yield page
    page.close()


@pytest.fixture
def opened(lab):
    """opened(name): one of the short notebooks, opened in JupyterLab and run; all is closed and reset at the end."""

    def opened(name):
        lab.evaluate(OPEN, [f"{name}.ipynb", True])
        return Chapter(lab, Path(f"{name}.ipynb"))

    yield opened
    lab.evaluate("""async () => {
        for (const notebook of [...jupyterapp.shell.widgets("main")]) {
            await notebook.sessionContext?.shutdown();
            notebook.dispose();
        }
        await jupyterapp.commands.execute("apputils:change-theme", {theme: "JupyterLab Light"});
    }""")
    lab.set_viewport_size({"width": 1400, "height": 1000})
    lab.emulate_media(reduced_motion="no-preference")


@pytest.fixture(scope="module", params=SAMPLE)
def notebook_7(server, request):
    """A chapter, opened in Notebook 7 and run."""
    page = new_page(server, f"notebooks/{request.param}.ipynb")
    yield Chapter(page, Path(f"{request.param}.ipynb"))
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.close()


def test_notebook_7_runs_the_chapter_and_every_slider_moves_its_picture(notebook_7):
    chapter = notebook_7
    assert chapter.ran_well and chapter.explorers
    for explorer in chapter.explorers:
        for slider in explorer.sliders:
            before = explorer.settled()
            drag(explorer, slider)
            after = explorer.settled()
            assert after["sentence"] != before["sentence"] and after["picture"] != before["picture"]
    assert chapter.page.get_by_text("Error displaying widget").count() == 0


def test_in_notebook_7_a_slider_takes_page_up_and_page_down(notebook_7):
    """The arrow keys belong to the cells there while one is in command mode."""
    explorer = next(explorer for explorer in notebook_7.explorers if explorer.sliders)
    for key in ("PageDown", "PageUp"):
        before = explorer.settled()
        explorer.control(explorer.sliders[0]).locator(".noUi-handle").focus()
        notebook_7.page.keyboard.press(key)
        explorer.wait_for_other(before, f"{key} does not move the slider")
        explorer.settled()


def test_the_dark_theme_keeps_words_readable_and_pictures_on_paper(opened):
    chapter = opened("small")
    chapter.page.evaluate("() => jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    wait_until(lambda: chapter.page.evaluate("() => document.body.dataset.jpThemeLight === 'false'"), "no dark theme")
    for explorer in chapter.explorers:
        explorer.settled()
        words = explorer.element.locator("[aria-live], .widget-label, .widget-text input, .widget-label-basic").all()
        assert len(words) >= 1 + len(explorer.controls)
        for word in words:
            assert word.evaluate(CONTRAST) >= 4.5, word.inner_text()
        corner = explorer.image.evaluate("""async image => {
            await image.decode();
            const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight), pen = canvas.getContext("2d");
            pen.drawImage(image, 0, 0);
            return [...pen.getImageData(1, 1, 1, 1).data];
        }""")
        assert corner == [255, 255, 255, 255]


@pytest.mark.parametrize(
    "settings",
    [
        ("small", 1120, 800),  # what 1400 × 1000 leaves at 125 %
        ("projector", 1024, 768),
    ],
    ids=["125 %", "projector"],
)
def test_on_a_small_screen_nothing_is_cut_and_type_stays_readable(settings, lab, opened):
    name, width, height = settings
    lab.set_viewport_size({"width": width, "height": height})
    lab.evaluate("() => jupyterapp.shell.collapseLeft()")
    chapter = opened(name)
    for explorer in chapter.explorers:
        before = explorer.settled()
        drag(explorer, explorer.sliders[0])
        assert explorer.settled()["sentence"] != before["sentence"]
        outside = explorer.element.evaluate("""explorer => {
            const room = explorer.closest(".jp-OutputArea-output").getBoundingClientRect();
            const cut = part => part.scrollWidth > part.clientWidth + 1 && !part.matches(".noUi-base");   // handle
            return [...explorer.querySelectorAll("img, [aria-live], .widget-label, .widget-text input, .noUi-base")]
                .filter(part => part.getBoundingClientRect().right > room.right + 1 || cut(part))
                .map(part => part.className);
        }""")
        assert outside == []
        width, height, natural = explorer.image.evaluate(
            "image => [image.clientWidth, image.clientHeight, image.naturalWidth / image.naturalHeight]"
        )
        assert abs(width / height - natural) < 0.02
        points = {"small": 12, "projector": 17}[name]  # of the two presets
        assert points * 4 / 3 * width / 900 >= {"small": 13, "projector": 20}[name], "type too small, in pixels"
        words = explorer.element.locator(".widget-label, .widget-text input, [aria-live], .widget-toggle-button")
        sizes = words.evaluate_all("all => all.map(part => parseFloat(getComputedStyle(part).fontSize))")
        together = explorer.element.evaluate("explorer => explorer.clientHeight")
        assert min(sizes) >= {"small": 13, "projector": 18}[name]
        assert together < 650  # controls, picture and sentence are on the screen at once


@pytest.mark.parametrize("width", [1400, 620, 480])
def test_at_any_width_a_longer_sentence_moves_nothing(width, lab, opened):
    lab.set_viewport_size({"width": width, "height": 900})
    lab.evaluate("() => jupyterapp.shell.collapseLeft()")
    chapter = opened("small")
    for explorer in chapter.explorers:
        explorer.settled()
        explorer.watch_layout()
        for name in explorer.sliders:
            drag(explorer, name)
            explorer.settled()
        layouts = explorer.layouts_seen()
        assert len(layouts) == 1, f"{explorer.title}: things move at a width of {width}: {layouts}"


def test_the_keyboard_alone_reaches_every_control_in_order(opened):
    chapter = opened("small")
    page = chapter.page
    page.evaluate("() => jupyterapp.shell.currentWidget.content.activate()")
    for explorer in chapter.explorers:
        before = explorer.settled()
        explorer.element.evaluate("""explorer => {
            const notebook = jupyterapp.shell.currentWidget.content;
            notebook.activeCellIndex = notebook.widgets.findIndex(cell => cell.node.contains(explorer));
            notebook.activeCell.node.focus();
        }""")
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            name = explorer.element.evaluate("""explorer => {
                const control = explorer.contains(document.activeElement)
                    && document.activeElement.closest("[class*=control-]");
                return control && [...control.classList].find(name => name.startsWith("control-")).slice(8);
            }""")
            if name and name not in reached:
                reached.append(name)
                if name == explorer.sliders[0] and page.evaluate(
                    "document.activeElement.classList.contains('noUi-handle')"
                ):
                    page.keyboard.press("ArrowRight")
                    explorer.wait_for_other(before, "the arrow key does nothing")
            if len(reached) == len(explorer.controls):
                break
        assert reached == list(explorer.controls)


def test_with_less_motion_nothing_of_a_picture_is_animated(lab, opened):
    lab.emulate_media(reduced_motion="reduce")
    chapter = opened("small")
    for explorer in chapter.explorers:
        before = explorer.settled()
        handle = explorer.control(explorer.sliders[0]).locator(".noUi-handle")
        handle.focus()
        chapter.page.keyboard.press("ArrowRight")
        moving = explorer.element.evaluate("""explorer => [explorer, ...explorer.querySelectorAll("img, [aria-live]")]
            .flatMap(part => part.getAnimations()).length""")
        assert moving == 0
        assert explorer.settled()["sentence"] != before["sentence"]


def test_a_notebook_opened_twice_shows_the_same_state_in_both_views(opened):
    chapter = opened("small")
    explorer = chapter.explorers[0]
    explorer.settled()
    chapter.page.evaluate("""async () => {
        const view = await jupyterapp.commands.execute("docmanager:clone");
        await view?.revealed;
    }""")
    views = chapter.page.locator(".explorer-0")
    wait_until(lambda: views.count() == 2, "the second view shows no live picture")
    start = views.nth(0).locator("[aria-live]").text_content()
    handle = views.nth(1).locator(f".control-{explorer.sliders[0]} .noUi-handle")
    handle.scroll_into_view_if_needed()
    handle.focus()
    chapter.page.keyboard.press("ArrowRight")
    wait_until(
        lambda: (
            start not in [text := views.nth(k).locator("[aria-live]").text_content() for k in (0, 1)]
            and text == views.nth(0).locator("[aria-live]").text_content()
        ),
        "the views differ",
    )
    assert chapter.page.get_by_text("model not found").count() == 0


def test_two_notebooks_on_one_kernel_do_not_disturb_each_other(opened):
    first = opened("small")
    page = first.page
    before = first.explorers[0].settled()
    kept = page.evaluate("""async () => {
        const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        const other = await jupyterapp.commands.execute("docmanager:open",
            {path: "other.ipynb", options: {mode: "split-right"}, kernelPreference: {id: kernel.id}});
        await other.context.ready;
        await other.sessionContext.ready;
        jupyterapp.shell.activateById(other.id);
        await jupyterapp.commands.execute("notebook:run-all-cells");
        return other.sessionContext.session.kernel.id === kernel.id;
    }""")
    assert kept
    second = page.locator(".jp-OutputArea .widget-image").last
    second.wait_for()
    old = second.get_attribute("src")
    handle = page.locator(".jp-NotebookPanel").last.locator(".noUi-handle").first
    handle.focus()
    page.keyboard.press("ArrowRight")
    wait_until(lambda: second.get_attribute("src") != old, "the second notebook's slider does nothing")
    drag(first.explorers[0], first.explorers[0].sliders[0])
    assert first.explorers[0].settled()["sentence"] != before["sentence"]


def test_behind_another_tab_many_changes_make_one_picture_which_is_there_when_the_tab_is_shown(opened):
    chapter = opened("small")
    page, explorer = chapter.page, chapter.explorers[0]
    before = explorer.settled()
    name = explorer.sliders[0]
    page.evaluate(OPEN, ["other.ipynb", False])
    assert not explorer.image.is_visible()
    chapter.ask(f"""
slider, frames = page_explorers[0].controls[{name!r}], page_explorers[0].frames
for value in [*range(slider.min, slider.max)] * 3:
    slider.value = value
""")
    assert chapter.ask("print(page_explorers[0].frames - frames)") == "1\n"
    page.evaluate("id => jupyterapp.shell.activateById(id)", chapter.id)
    after = explorer.settled()
    assert explorer.image.is_visible()
    assert after["sentence"] != before["sentence"] and after["picture"] != before["picture"]


LIVE, STILL, SENTENCE = ".jp-OutputArea img.widget-image", ".jp-RenderedImage img", ".widget-html [aria-live]"


def shows(page, live, still):
    """Wait until so many pictures are alive in the page, so many still, and none is broken."""
    wait_until(
        lambda: (page.locator(LIVE).count(), page.locator(STILL).count()) == (live, still),
        lambda: f"not {live} live and {still} still pictures, but {page.locator(LIVE).count()} live",
    )
    assert page.get_by_text("model not found").count() == 0


def load_again(page):
    page.reload(wait_until="domcontentloaded")
    wait_for_jupyter(page)
    wait_until(lambda: page.evaluate("() => !!jupyterapp.shell.currentWidget?.context"), "no notebook opened")
    page.evaluate("() => jupyterapp.shell.currentWidget.context.ready")


def move_a_slider(page):
    """Move the first slider by a key; it must change its picture's sentence. Returns the new one."""
    words, handle = page.locator(SENTENCE).first, page.locator(".noUi-handle").first
    before = words.text_content()
    at, top = (float(handle.get_attribute(f"aria-value{end}")) for end in ("now", "max"))
    handle.focus()
    page.keyboard.press("PageDown" if at == top else "PageUp")
    wait_until(lambda: words.text_content() != before, "the slider moves nothing")
    return words.text_content()


def run_and_save(page, file):
    """The chapter at `file`, opened in the page, run and saved: the file does not change."""
    stored = file.read_bytes()
    chapter = Chapter(page, file)
    shows(page, live=2, still=0)
    save(page)
    assert file.read_bytes() == stored, "a run that changed nothing has changed the file"
    return chapter


def shut_down(page):
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")


# What of a picture lies beyond the room that a narrow window leaves it, where no box scrolls there.
TOO_WIDE = """pictures => pictures.flatMap(picture => {
    const room = picture.closest(".jp-OutputArea-output"), right = room.getBoundingClientRect().right + 1;
    const scrolls = part => part !== room
        && (getComputedStyle(part).overflowX === "auto" || scrolls(part.parentElement));
    const parts = [room, ...room.querySelectorAll("*")];
    return [...parts.filter(part => part.getBoundingClientRect().right > right && !scrolls(part)),
        ...(right > document.documentElement.clientWidth + 1 ? [room] : [])].map(part => part.className);
})"""


def test_in_jupyterlab_a_notebook_that_was_run_and_saved_keeps_its_pictures(server):
    page, file = new_page(server, "lab/tree/kept-lab.ipynb"), server[2] / "kept-lab.ipynb"
    page.on("dialog", lambda dialog: dialog.accept())
    chapter = run_and_save(page, file)
    stored = file.read_bytes()
    drag(chapter.explorers[0], chapter.explorers[0].sliders[0], let_go=False)
    load_again(page)  # in the middle of a drag, beside a running kernel
    shows(page, live=2, still=0)
    move_a_slider(page)
    page.set_viewport_size({"width": 320, "height": 700})
    page.evaluate("() => jupyterapp.shell.collapseLeft()")
    wait_until(lambda: page.locator(LIVE).last.bounding_box()["width"] < 300, "the picture does not become narrow")
    assert page.locator(LIVE).evaluate_all(TOO_WIDE) == []

    words = page.get_by_text("Not connected: the kernel was started again.").first
    assert not words.is_visible()
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    words.wait_for(state="visible")
    save(page)
    assert file.read_bytes() == stored
    load_again(page)  # the kernel runs, the widgets of the pictures are gone
    shows(page, live=0, still=2)
    shut_down(page)
    load_again(page)
    shows(page, live=0, still=2)
    page.close()


def test_in_notebook_7_as_well_and_a_cell_run_in_another_tab_leaves_words_where_its_picture_was(server):
    first, file = new_page(server, "notebooks/kept-7.ipynb"), server[2] / "kept-7.ipynb"
    run_and_save(first, file)
    second = new_page(server, "notebooks/kept-7.ipynb")
    shows(second, live=2, still=0)
    moved = move_a_slider(second)
    wait_until(lambda: first.locator(SENTENCE).first.text_content() == moved, "the tabs differ")
    second.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
    wait_until(lambda: first.get_by_text("was run again").count() == 2, "no word in the first tab")
    shows(first, live=0, still=0)
    save(second)
    load_again(first)
    shows(first, live=2, still=0)
    first.close()
    shut_down(second)
    load_again(second)
    shows(second, live=0, still=2)
    second.close()
