"""The handouts: complete, small, silent on the network, alive by keyboard, readable by everyone.

All chapters are written and their links checked. Frames are drawn, and pages opened in Chromium, for chapter 5; with
EVERY_CHAPTER=1 (`make test-all`) for all of them.
"""

import json
from urllib.parse import unquote

import pytest
import static_pages
from bs4 import BeautifulSoup
from static_pages import CHAPTERS, SAMPLE

import handouts

LARGEST_CHAPTER = 2_000_000  # bytes, pictures included
OTHERS = ["index", "glossary", "claims"]

pytestmark = pytest.mark.browser
sampled = pytest.mark.parametrize("name", SAMPLE)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    handouts.build(folder, live=SAMPLE)
    return folder


@pytest.fixture(scope="module")
def soups(site):
    return {path.name: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in site.glob("*.html")}


@pytest.fixture(scope="module")
def visitor(site):
    with static_pages.visiting(site, viewport={"width": 1200, "height": 900}) as visitor:
        yield visitor


def test_every_page_is_there(soups):
    assert set(soups) == {f"{name}.html" for name in [*CHAPTERS, *OTHERS]}


def test_every_page_lists_all_pages_by_their_short_titles_and_itself_as_the_current_one(soups):
    for name, page in soups.items():
        listed = page.select_one("header nav").find_all("a")
        short = ["Start" if link["href"] == "index.html" else soups[link["href"]].title.get_text() for link in listed]
        assert [link.get_text() for link in listed] == [title.partition(":")[0] for title in short]
        assert [link["href"] for link in listed if link.get("aria-current")] == [name]
        assert len(listed) == len(soups)


def test_every_link_and_anchor_leads_somewhere(soups, site):
    ids = {name: [element["id"] for element in page.find_all(id=True)] for name, page in soups.items()}
    for name, page in soups.items():
        assert len(ids[name]) == len(set(ids[name])), f"{name} gives an id twice"
        for element in page.find_all(["a", "link", "script", "img"]):
            target = element.get("href") or element.get("src") or ""
            if not target or target.startswith("data:") or (element.name == "a" and "://" in target):
                continue
            file, _, anchor = target.partition("#")
            assert (site / (file or name)).is_file(), f"{name} points to {target}"
            assert not anchor or unquote(anchor) in ids[file or name], f"{name} points to {target}"


def test_links_to_other_hosts_are_for_the_reader_only(soups):
    for name, page in soups.items():
        for element in page.find_all(src=True) + page.find_all("link"):
            assert "//" not in (element.get("src") or element["href"]).partition("base64,")[0], name


def test_every_heading_can_be_searched(site, soups):
    listed = json.loads((site / "course.js").read_text(encoding="utf-8").partition(" = ")[2].partition(";\n")[0])
    headings = sum(len(page.main.find_all(["h1", "h2", "h3"])) for page in soups.values())
    assert len(listed) == headings
    assert all(soups[page].find(id=anchor).get_text() == words for page, anchor, words, _ in listed)


def test_every_claim_leads_to_its_cell(soups):
    rows = [row for row in soups["claims.html"].find_all("tr") if "claim-" in row.get_text()]
    assert rows and all(row.find("a", href=lambda href: "#claim-" in href) for row in rows)


@sampled
def test_a_chapter_with_its_pictures_is_small(name, site):
    pictures = sum(file.stat().st_size for file in (site / name).rglob("*.webp"))
    assert (
        pictures
        + sum((site / file).stat().st_size for file in (f"{name}.html", "course.css", "course.js", "math.woff"))
        < LARGEST_CHAPTER
    )


@sampled
def test_every_live_picture_of_the_chapter_lives_on_the_page(name, soups):
    (path,) = [path for path in handouts.pages.CHAPTERS if path.stem == name]
    calls = sum(".explorer(" in "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
    assert len(soups[f"{name}.html"].select("figure.live input[type=range]")) == calls > 0


@sampled
def test_sliders_work_by_keyboard_and_nothing_is_asked_of_another_host(name, visitor):
    visitor.complaints.clear()
    page = visitor.open(f"{name}.html")
    for figure in page.locator("figure.live").all():
        slider, image, text = figure.locator("input"), figure.locator("img"), figure.locator("figcaption")
        data = json.loads(figure.locator("script").text_content())
        last = len(data["sentences"]) - 1
        assert last >= 1 and len(set(data["sentences"])) > 1
        assert slider.get_attribute("max") == str(last)
        height = figure.bounding_box()["height"]
        start = int(slider.input_value())
        slider.focus()
        for key, at in [("End", last), ("ArrowLeft", last - 1), ("Home", 0), ("ArrowRight", 1)]:
            page.keyboard.press(key)
            image.evaluate("image => image.decode()")
            assert slider.input_value() == str(at)
            assert text.inner_text() == data["sentences"][at]
            assert image.get_attribute("alt") == f"{data['title']}. {data['sentences'][at]}"
            assert image.get_attribute("src").endswith(f"/{at}.webp")
            assert slider.get_attribute("aria-valuetext") == figure.locator("output").inner_text() == data["shown"][at]
        assert 0 <= start <= last
        assert abs(figure.bounding_box()["height"] - height) <= 30  # a sentence of one line more at most
        assert image.evaluate("image => [image.naturalWidth, image.clientWidth <= 960]")[1]
    assert visitor.complaints == []


@pytest.mark.parametrize("name", [*SAMPLE, *OTHERS])
def test_axe_finds_nothing_grave(name, visitor):
    visitor.open(f"{name}.html")
    assert visitor.grave_problems() == []


@sampled
def test_every_formula_is_drawn_and_no_word_is_cut(name, visitor):
    page = visitor.open(f"{name}.html")
    empty = page.evaluate("""() => [...document.querySelectorAll("math")].filter(formula => formula.checkVisibility()
        && formula.getBoundingClientRect().width < 2).map(formula => formula.outerHTML.slice(0, 200))""")
    assert empty == []
    assert page.evaluate("document.fonts.check(\"20px 'STIX Two Math'\")")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_search_finds_headings_and_says_how_many(visitor):
    page = visitor.open("index.html")
    page.get_by_label("Search the headings").fill("EXERCISE 5.3")
    link = page.get_by_role("search").get_by_role("link")
    assert link.count() == 1 and page.get_by_role("status").inner_text() == "1 heading"
    link.click()
    page.wait_for_url("**/05_rope.html#*")
    assert page.locator(f"[id='{unquote(page.url.partition('#')[2])}']").is_visible()


def test_frames_are_left_out_until_they_fit():
    assert handouts.thinned([10] * 9, 3, 1000) == (3, list(range(9)))
    at, kept = handouts.thinned([10] * 9, 3, 60)
    assert kept == [0, 2, 3, 4, 6, 8] and kept[at] == 3


def test_formulas_keep_their_lines_and_unknown_commands_are_refused():
    lines = handouts.pages.math(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block")
    assert lines.count("<mtr>") == 2 and lines.count("<mtd") == 4
    for latex in (r"\nosuchcommand x", r"\begin{nosuch} a & b \end{nosuch}"):
        with pytest.raises(ValueError, match="a command that MathML does not know"):
            handouts.pages.math(latex, "block")
