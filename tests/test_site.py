"""The site: complete, small, silent on the network, alive by keyboard, readable by everyone, on a phone and on paper.

All chapters are written and their links checked. Frames are drawn, and pages opened in Chromium, for chapter 5; with
EVERY_CHAPTER=1 (`make test-all`) for all of them.
"""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urljoin

import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from static_pages import CHAPTERS, SAMPLE, visiting

import book
import frames
import pages
from posviz import views
from posviz.live import Drawing

LARGEST_CHAPTER = 2_000_000  # bytes
OTHERS = ["index", "docs/notation", "docs/source"]
SAMPLED = [f"notebooks/{name}" for name in SAMPLE]
PAPER = {"width": 718, "height": 1000}  # pixels: A4 with margins of 10 mm

pytestmark = pytest.mark.browser
sampled = pytest.mark.parametrize("name", SAMPLED)


def built(folder, live, **env):
    command = [sys.executable, Path(book.__file__), folder / "site", "--frames", folder / "frames", "--live", *live]
    run = subprocess.run(command, env=os.environ | env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return built(tmp_path_factory.mktemp("built"), SAMPLE)


@pytest.fixture(scope="module")
def soups(site):
    written = {path for path in site.rglob("*.html") if "_static" not in path.parts}
    return {
        str(path.relative_to(site).with_suffix("")): BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in written
    }


@pytest.fixture(scope="module")
def visitor(site):
    with visiting(site, viewport={"width": 1200, "height": 900}) as visitor:
        yield visitor


@pytest.fixture
def phone(visitor):
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    yield visitor
    visitor.page.set_viewport_size({"width": 1200, "height": 900})


def cells_of(name):
    (path,) = [path for path in pages.CHAPTERS if path.stem == name.rpartition("/")[2]]
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def stored_pictures(name):
    """What each picture of a chapter says of its view: {"view": …, "values": …}."""
    outputs = [output for cell in cells_of(name) for output in cell.get("outputs", [])]
    marks = [output["metadata"].get("posviz", {}) for output in outputs if "data" in output]
    return [mark for mark in marks if "view" in mark]


def is_note(cell):
    return cell["metadata"].get("slideshow", {}).get("slide_type") == "notes"


def words(text):
    """A text as a reader compares it: no markup, no signs, one space."""
    return " ".join(re.findall(r"\w+", BeautifulSoup(text, "html.parser").get_text()))


def test_every_page_is_there_and_in_the_list_of_pages(soups):
    assert set(soups) == {*(f"notebooks/{name}" for name in CHAPTERS), *OTHERS, "search"}
    for name, page in soups.items():
        listed = {
            urljoin(f"{name}.html", link["href"]) for link in page.select(".bd-sidebar-primary a.reference.internal")
        }
        assert len(listed - {f"{name}.html#", f"{name}.html"}) >= len(CHAPTERS) + len(OTHERS) - 1


def test_every_link_and_anchor_leads_somewhere_and_says_where(soups, site):
    ids = {name: [element["id"] for element in page.find_all(id=True)] for name, page in soups.items()}
    for name, page in soups.items():
        assert len(ids[name]) == len(set(ids[name])), f"{name} gives an id twice"
        for element in page.find_all(["a", "link", "script", "img"]):
            target = element.get("href") or element.get("src") or ""
            if element.name == "a" and element.has_attr("href"):
                label = element.get_text().strip() or element.get("title") or element.get("aria-label") or ""
                assert re.search(r"\w|#|^¶$", label), f"{name}: a link to {target} reads {label!r}"
            if not target or target.startswith("data:") or (element.name == "a" and "://" in target):
                continue
            file, _, anchor = urljoin(f"{name}.html", target).partition("#")
            file = file.partition("?")[0]
            assert (site / file).is_file(), f"{name} points to {target}"
            if anchor:
                assert unquote(anchor) in ids[file.removesuffix(".html")], f"{name} points to {target}"


@pytest.mark.parametrize("name", CHAPTERS)
def test_links_of_a_chapter_keep_their_labels(name, soups):
    """Links to earlier chapters once read "<"."""
    shown = [words(link.get_text()) for link in soups[f"notebooks/{name}"].select("article a")]
    for cell in cells_of(name):
        if cell["cell_type"] == "markdown" and not is_note(cell):
            for label in re.findall(r"(?<!!)\[([^\]]+)\]\([^)\s]+\)", "".join(cell["source"])):
                label = words(re.sub(r"\$.*?\$", " ", label).replace("`", "").replace("*", ""))
                assert any(label in each for each in shown), f"no link reads {label!r}"


def test_links_to_other_hosts_are_for_the_reader_only(soups):
    for name, page in soups.items():
        for element in page.find_all(src=True) + page.find_all("link"):
            assert "//" not in (element.get("src") or element["href"]).partition("base64,")[0], name


def test_every_claim_leads_to_its_cell(soups):
    rows = [row for row in soups["docs/source"].find_all("tr") if "claim-" in row.get_text()]
    assert len(rows) >= 100
    for row in rows:
        chapter = row.find_all("td")[2].get_text()
        assert f"/0{chapter}_" in row.find("a")["href"] and "#claim-" in row.find("a")["href"]


@pytest.mark.parametrize("name", CHAPTERS)
def test_teachers_notes_stay_out_and_answers_stay_folded(name, soups):
    page = soups[f"notebooks/{name}"]
    shown = words(str(page.article))
    cells = cells_of(name)
    for note in filter(is_note, cells):
        summary = re.search(r"<summary>(.*?)</summary>", "".join(note["source"]))
        assert summary and words(summary[1]) not in shown
    solutions = [cell for cell in cells if "solution" in cell["metadata"].get("tags", [])]
    for fold in page.select("details"):
        assert not fold.has_attr("open")
        fold.decompose()
    unfolded = "".join(page.article.get_text().split())
    assert solutions
    for cell in solutions:
        code = re.search(r"```python\n(.*?)```", "".join(cell["source"]), re.S)[1]
        assert "".join(code.split()) not in unfolded


@sampled
def test_a_chapter_is_small_with_all_its_pictures_and_as_it_opens(name, site, visitor):
    live = site / "live" / name.rpartition("/")[2]
    pictures = sum(file.stat().st_size for file in live.rglob("*.webp"))
    assert (site / f"{name}.html").stat().st_size + pictures < LARGEST_CHAPTER
    loaded = []
    visitor.page.on("response", lambda answer: loaded.append(answer))
    visitor.open(f"{name}.html").wait_for_load_state("networkidle")
    assert sum(len(answer.body()) for answer in loaded if answer.ok) < LARGEST_CHAPTER


@sampled
def test_every_stored_picture_lives_by_the_controls_that_its_text_asks_for(name, soups):
    figures, stored = soups[name].select("figure.live"), stored_pictures(name)
    assert len(figures) == len(stored) > 0
    for figure, mark in zip(figures, stored):
        view = getattr(views, mark["view"])()
        captions = {control.name: control.caption for control in view.controls}
        shown = [words(label.get_text().partition(":")[0]) for label in figure.select("label.slider, legend")]
        assert shown == [
            words(captions[control].partition(":")[0]) for control in view.story or [view.first_slider.name]
        ]
        for fieldset in figure.select("fieldset"):  # every option is a button
            control = next(c for c in view.controls if words(c.caption) == words(fieldset.legend.get_text()))
            assert [span.get_text() for span in fieldset.select("span")] == list(map(control.words, control.corners()))


@sampled
def test_a_frame_over_its_ground_is_the_picture_of_the_notebook(name, site, soups):
    """Of four states of each picture: the same pixels but for the shades that are left out, and the same sentence."""
    for figure, mark in zip(soups[name].select("figure.live"), stored_pictures(name)):
        told = json.loads(figure.script.string)
        view = getattr(views, mark["view"])()
        drawing = Drawing(view, **mark["values"])
        counts = [len(stops) for stops in told["words"]]
        story = view.story or [view.first_slider.name]
        moving = {control.name: control for control in view.controls if control.name in story}
        left, top, width, height = (
            float(share) / 100 for share in re.findall(r"([\d.]+)%", figure.select("img")[1]["style"])
        )
        for state in np.linspace(0, len(told["sentences"]) - 1, 4).astype(int):
            if told["goes"][state] != state:
                continue
            values = drawing.values
            for control, shown, at in zip(story, told["words"], np.unravel_index(state, counts)):
                stops = moving[control].stops(mark["values"][control], 10**6)
                values = view.after_move(
                    values, control, next(v for v in stops if moving[control].words(v) == shown[at])
                )
            pixels, sentence = drawing.show(**values)
            assert told["sentences"][state] == sentence
            folder = (site / "notebooks" / told["folder"]).resolve()
            ground = Image.open(folder / f"ground-{told['grounds'][state]}.webp").convert("RGBA")
            frame = Image.open(folder / f"{state}.webp").convert("RGBA")
            place = [round(left * ground.width), round(top * ground.height)]
            assert frame.size == (round(width * ground.width), round(height * ground.height))
            ground.alpha_composite(frame, tuple(place))
            assert np.abs(np.asarray(ground).astype(int) - pixels).max() <= 7


@sampled
def test_controls_work_by_keyboard_and_nothing_is_asked_of_another_host(name, visitor):
    visitor.complaints.clear()
    page = visitor.open(f"{name}.html")
    for figure in page.locator("figure.live").all():
        told = json.loads(figure.locator("script").text_content())
        counts = [len(words) for words in told["words"]]
        height = figure.bounding_box()["height"]
        for number, control in enumerate(figure.locator(".slider, fieldset").all()):
            slider = control.locator("input[type=range]")
            if slider.count():
                slider.focus()
                moves = [("End", counts[number] - 1), ("ArrowLeft", counts[number] - 2), ("Home", 0), ("ArrowRight", 1)]
            else:
                control.locator("input:checked").focus()
                at = int(control.locator("input:checked").input_value())
                moves = [("ArrowRight", (at + 1) % counts[number]), ("ArrowLeft", at)]
            for key, expected in moves:
                page.keyboard.press(key)
                places = figure.locator("input[type=range], input:checked").evaluate_all(
                    "all => all.map(i => +i.value)"
                )
                state = int(np.ravel_multi_index(places, counts))
                assert told["goes"][state] == state and (
                    places[number] == expected or len(set(told["goes"])) < len(told["goes"])
                )
                ground, frame = figure.locator("img").all()
                frame.evaluate("image => image.decode()")
                assert frame.get_attribute("src").endswith(f"/{state}.webp")
                assert ground.get_attribute("src").endswith(f"/ground-{told['grounds'][state]}.webp")
                assert ground.get_attribute("alt") == f"{told['title']}. {told['sentences'][state]}"
                assert figure.locator("figcaption").inner_text() == told["sentences"][state]
                if slider.count():
                    shown = told["words"][number][places[number]]
                    assert slider.get_attribute("aria-valuetext") == control.locator("output").inner_text() == shown
        assert len(set(told["sentences"])) > 1
        assert abs(figure.bounding_box()["height"] - height) <= 60  # a sentence of two lines more at most
    assert visitor.complaints == []


@pytest.mark.parametrize("name", [*SAMPLED, *OTHERS, "search"])
def test_axe_finds_nothing_in_light_on_a_phone_nor_in_dark_on_a_screen(name, visitor):
    for mode, width in (("light", 390), ("dark", 1200)):
        visitor.page.set_viewport_size({"width": width, "height": 844})
        page = visitor.open(f"{name}.html")
        page.evaluate(f"localStorage.setItem('mode', '{mode}'); localStorage.setItem('theme', '{mode}')")
        page.reload()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.dataset.theme") == mode
        assert visitor.problems() == [], f"{mode}, {width} pixels"
    page.evaluate("localStorage.clear()")


@pytest.mark.parametrize("name", [f"notebooks/{name}" for name in CHAPTERS] + OTHERS)
def test_no_page_is_wider_than_a_phone_and_code_keeps_its_lines(name, phone):
    page = phone.open(f"{name}.html")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate(
        "[...document.querySelectorAll('.highlight pre')].map(e => getComputedStyle(e).whiteSpace)"
        ".every(space => space === 'pre')"
    )
    cut = page.evaluate("""() => [...document.querySelectorAll("math")].filter(formula => {
        const box = formula.closest(".formula") ?? formula;
        return formula.checkVisibility() && formula.getBoundingClientRect().right > innerWidth
            && getComputedStyle(box).overflowX !== "auto"}).map(formula => formula.textContent)""")
    assert cut == []


@sampled
def test_every_sign_of_every_formula_comes_from_the_font_of_the_site(name, visitor):
    page = visitor.open(f"{name}.html")
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    page.evaluate("document.fonts.ready")
    empty = page.evaluate("""() => [...document.querySelectorAll("math")].filter(formula => formula.checkVisibility()
        && formula.getBoundingClientRect().width < 2).map(formula => formula.outerHTML.slice(0, 200))""")
    assert empty == []
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    used = set()
    for node in session.send("DOM.querySelectorAll", {"nodeId": root, "selector": "math :is(mi, mn, mo, mtext)"})[
        "nodeIds"
    ]:
        for font in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]:
            used.add((font["familyName"], font.get("isCustomFont")))
    assert used == {("STIX Two Math", True)}


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_formula_is_left_as_it_was_typed(name, soups):
    page = BeautifulSoup(str(soups[f"notebooks/{name}"].article), "html.parser")
    for element in page.select("pre, code, annotation, script, figure"):
        element.decompose()
    assert not re.search(r"\$|\\[a-z]+", page.get_text())


def test_a_root_has_its_sign(site, visitor):
    """A browser draws it by itself: it is in no text, so a font that was cut to the text had none."""
    visitor.open("notebooks/02_why.html").evaluate(
        "document.querySelectorAll('details').forEach(fold => fold.open = true)"
    )
    root = visitor.page.locator("msqrt:visible").first
    root.scroll_into_view_if_needed()
    visitor.page.evaluate("document.fonts.ready")
    box, inside = root.bounding_box(), root.locator("> *").first.bounding_box()
    sign = {"x": box["x"], "y": box["y"], "width": inside["x"] - box["x"], "height": box["height"]}
    assert sign["width"] >= 4
    seen = np.asarray(Image.open(io.BytesIO(visitor.page.screenshot(clip=sign))).convert("L"))
    assert (seen < 128).mean() > 0.04  # an empty box is 0, a drawn root a tenth and more


def test_the_font_has_what_browsers_add():
    font = pages.TTFont(io.BytesIO(pages.math_font([])))
    assert {*"√∑∏∫()[]{}|‖⌊⌋⌈⌉⟨⟩′″−·×÷≤≥≠≈∞→αβγθωζ", "\U0001d465", "\U0001d703", "ℎ"} <= {*map(chr, font.getBestCmap())}
    tall = font["MATH"].table.MathVariants.VertGlyphCoverage.glyphs
    assert {font.getBestCmap()[ord(sign)] for sign in "√()[]{}|⌊⌋"} <= set(tall)


@pytest.mark.parametrize("asked", ["entropy", "rotary", "base 10000"])
def test_search_finds_words_in_the_text_and_shows_them(asked, visitor, soups):
    page = visitor.open("index.html")
    page.keyboard.press("Control+K")
    page.get_by_role("searchbox").locator("visible=true").fill(asked)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    found = page.locator("#search-results ul.search > li")
    found.first.wait_for()
    pages_found = [item.locator("a").first.get_attribute("href").partition("#")[0] for item in found.all()]
    assert any(name.startswith("notebooks/") for name in pages_found)
    first = soups[pages_found[0].partition(".html")[0]].article.get_text().lower()
    assert all(word in first for word in asked.split())
    excerpts = found.locator(".context")
    excerpts.last.wait_for()
    assert any(word in text.lower() for text in excerpts.all_inner_texts() for word in asked.split())


def test_a_button_changes_between_light_and_dark(visitor):
    page = visitor.open("index.html")
    for mode in ("dark", "light"):
        page.get_by_role("button", name="Color mode").locator("visible=true").click()
        page.locator(f".theme-change-button[data-mode={mode}]:visible").click()
        assert page.evaluate("document.documentElement.dataset.theme") == mode
    page.evaluate("localStorage.clear()")


def test_a_chapter_has_contents_heading_links_its_neighbours_and_its_notebook(soups, site):
    for number, name in enumerate(CHAPTERS):
        page = soups[f"notebooks/{name}"]
        headings = page.article.select("h2[id], h3[id], section[id] > h2, section[id] > h3")
        assert len(headings) >= 8 and all(heading.select_one("a.headerlink") for heading in headings)
        assert len(page.select(".bd-sidebar-secondary nav a")) >= len(page.article.select("section > h2"))
        (after,) = page.select("a.right-next")
        assert after["href"] == (f"{CHAPTERS[number + 1]}.html" if name != CHAPTERS[-1] else "../docs/notation.html")
        (before,) = page.select("a.left-prev")
        assert before["href"] == (f"{CHAPTERS[number - 1]}.html" if number else "../index.html")
        (download,) = [link for link in page.select("a[download], a.btn") if link.get("href", "").endswith(".ipynb")][
            :1
        ]
        notebook = site / urljoin(f"notebooks/{name}.html", download["href"])
        assert notebook.read_bytes() == next(p for p in pages.CHAPTERS if p.stem == name).read_bytes()
        assert "mybinder" not in str(page) and "colab" not in str(page)


def test_with_an_address_a_chapter_has_buttons_for_binder_and_colab(tmp_path):
    site = built(tmp_path, [], POSVIZ_REPOSITORY="https://github.com/someone/course", POSVIZ_BRANCH="main")
    page = BeautifulSoup((site / "notebooks" / "05_rope.html").read_text(encoding="utf-8"), "html.parser")
    links = {link["href"] for link in page.select("a[href]")}
    assert "https://mybinder.org/v2/gh/someone/course/main?urlpath=lab/tree/notebooks/05_rope.ipynb" in links
    assert "https://colab.research.google.com/github/someone/course/blob/main/notebooks/05_rope.ipynb" in links
    assert not page.select("figure.live") and page.select("img[src^='data:'][alt]")


@sampled
def test_on_paper_answers_are_open_and_nothing_is_cut_or_parted(name, visitor):
    page = visitor.open(f"{name}.html")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size(PAPER)
    try:
        assert page.locator("details").count() > 5 and page.locator("details:not([open], [name])").count() == 0
        assert page.locator("details[name^=bet]").count() > 5 and page.locator("details[name][open]").count() == 0
        wide = page.evaluate("""() => [...document.querySelectorAll("article :is(math, pre, table, img)")]
            .filter(element => element.checkVisibility() && element.getBoundingClientRect().right > innerWidth + 1)
            .map(element => element.outerHTML.slice(0, 100))""")
        assert wide == []
        scrolls = page.evaluate("""() => [...document.querySelectorAll("article pre, article .formula")]
            .filter(element => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1
                && getComputedStyle(element).overflowX !== "visible").map(element => element.outerHTML.slice(0, 80))""")
        assert scrolls == []
        for figure in page.locator("figure.live").all():
            assert figure.evaluate("figure => getComputedStyle(figure).breakInside") == "avoid"
            assert figure.bounding_box()["height"] < 900 and not figure.locator(".controls").is_visible()
    finally:
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 1200, "height": 900})


def test_stops_of_a_page_are_the_start_what_the_text_asks_for_and_what_there_is_room_for():
    wall, start = views.ClockWall(), views.ClockWall().values()
    found = frames.stops(wall, start, 100)
    assert list(found) == ["position", "base"] and 60 <= len(found["position"]) * len(found["base"]) <= 130
    assert {0, 100, 1000, 2048, 4096} <= set(found["position"]) and {1e4, 1e6} <= set(found["base"])
    few = frames.stops(wall, start, 4)
    assert few == {"position": [100, 1000, 2048], "base": [1e4, 1e6]}
    assert frames.stops(views.WhoBitWhom(), views.WhoBitWhom().values(), 2)["numbered"] == [False, True]  # all options
    assert len(frames.stops(views.RelativeShift(), views.RelativeShift().values())["step"]) == 5


def test_frames_stay_under_their_budget_and_are_drawn_once(tmp_path):
    values = views.DecayByDistance().values()
    folder, picture = frames.written("DecayByDistance", values, 150_000, tmp_path)
    files = list(folder.glob("*.webp"))
    assert 60_000 < sum(file.stat().st_size for file in files) <= 150_000
    assert len(picture["sentences"]) == len(picture["goes"]) == len(picture["grounds"]) >= 15
    before = {file: file.stat().st_mtime_ns for file in files}
    assert frames.written("DecayByDistance", values, 150_000, tmp_path) == (folder, picture)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.webp")} == before
    assert frames.written("DecayByDistance", values, 140_000, tmp_path)[0] != folder


def test_a_state_that_coupled_controls_leave_leads_to_the_one_they_reach(tmp_path):
    _, picture = frames.written("TurningPair", views.TurningPair().values(m=3, n=1), 500_000, tmp_path)
    together, alone = (len(picture["controls"][1]["words"]) * k for k in (1, 0))
    assert picture["goes"][together] == together + 2  # together, m stops at 2, where n has come to 0
    assert picture["goes"][alone] == alone


def test_formulas_keep_their_lines_and_unknown_commands_are_refused():
    lines = pages.math(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block")
    assert lines.count("<mtr>") == 2 and lines.count("<mtd") == 4
    for latex in (r"\nosuchcommand x", r"\begin{nosuch} a & b \end{nosuch}"):
        with pytest.raises(ValueError, match="a command that MathML does not know"):
            pages.math(latex, "block")


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path):
    (path,) = [path for path in pages.CHAPTERS if path.stem == "02_why"]
    text = path.read_text(encoding="utf-8")
    assert "](03_absolute.ipynb" in text
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / path.name).write_text(text.replace("](03_absolute.ipynb", "](03_gone.ipynb"), "utf-8")
    for name in book.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((pages.ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    code = (
        "import sys, pathlib, pages, book; pages.ROOT = pathlib.Path(sys.argv[1]);"
        "pages.CHAPTERS = sorted((pages.ROOT / 'notebooks').glob('*.ipynb')); book.build(pages.ROOT / 'out', [])"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(book.__file__).parent), *sys.path])}
    run = subprocess.run([sys.executable, "-c", code, tmp_path], env=env, capture_output=True, text=True)
    assert run.returncode == 1 and "03_gone" in run.stderr
