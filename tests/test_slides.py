"""The decks: every slide fits on 1280 × 720, nothing asks another host, notes and pictures are there.

One deck is opened in Chromium, with EVERY_CHAPTER=1 (`make test-all`) every one of them.
"""

import pytest
import static_pages
from bs4 import BeautifulSoup
from static_pages import CHAPTERS, SAMPLE

import slides

pytestmark = pytest.mark.browser
sampled = pytest.mark.parametrize("name", SAMPLE)

# Of the slide shown: what sticks out of 1280 × 720, and how small its smallest words are.
MEASURE = """() => {
    const out = [], sizes = [], stage = document.querySelector(".slides").getBoundingClientRect();
    const scale = stage.width / 1280, section = Reveal.getCurrentSlide();
    for (const element of section.querySelectorAll(".sheet, .sheet *")) {
        if (element.closest("math, annotation") && element.tagName !== "math" || !element.checkVisibility()) continue;
        const box = element.getBoundingClientRect();
        if (box.width && (box.left < stage.left - 1 || box.right > stage.right + 1 || box.bottom > stage.bottom + 1
            || box.top < stage.top - 1)) out.push(element.outerHTML.slice(0, 120));
        if (element.matches(".scrolls, pre") && element.scrollWidth > element.clientWidth + 1)
            out.push("scrolls: " + element.outerHTML.slice(0, 120));
        if (element.matches("p, li, td, pre"))
            sizes.push(parseFloat(getComputedStyle(element).fontSize) * section.querySelector(".sheet").dataset.scale);
    }
    return {out, smallest: Math.min(99, ...sizes)};
}"""
SMALLEST_TYPE = 11  # pixels of 720: what a listing of 15 lines with a picture comes down to


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slides")
    slides.build(folder)
    return folder


@pytest.fixture(scope="module")
def visitor(decks):
    with static_pages.visiting(decks, viewport={"width": 1280, "height": 720}) as visitor:
        yield visitor


def opened(visitor, name):
    page = visitor.open(f"{name}.html")
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    return page


def test_there_is_one_deck_a_chapter(decks):
    assert {path.stem for path in decks.glob("*.html")} == {*CHAPTERS, "index"}


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_deck_holds_what_its_cells_say(name, decks):
    (path,) = [path for path in slides.pages.CHAPTERS if path.stem == name]
    cells = slides.pages.chapter(path)[1]
    page = BeautifulSoup((decks / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    shown = [cell for cell in cells if cell.slide not in ("skip", "notes")]
    assert len(page.select(".slides > section")) == sum(cell.slide == "slide" for cell in shown)
    assert len(page.select(".part")) == len(shown)
    assert len(page.select(".step")) == sum(cell.slide == "fragment" for cell in shown)
    pictures = sum(output.is_picture for cell in shown for output in cell.outputs)
    assert len(page.select(".part img[alt]")) == pictures > 0
    notes = [aside.get_text() for aside in page.select("aside.notes")]
    assert sum("teacher" in text.lower() for text in notes) >= sum(cell.slide == "notes" for cell in cells) > 0
    assert not page.select(".part details:not(.posviz-bet details)") and "<summary>Solution" not in str(page)


@sampled
def test_every_slide_fits(name, visitor):
    visitor.complaints.clear()
    page = opened(visitor, name)
    assert page.locator("[data-overflows]").count() == 0
    page.evaluate("document.querySelectorAll('.fragment').forEach(step => step.classList.remove('fragment'))")
    total = page.evaluate("Reveal.getTotalSlides()")
    assert total >= page.locator(".slides > section").count()
    for number in range(total):
        page.evaluate(
            """number => {
            const {h, v} = Reveal.getIndices(Reveal.getSlides()[number]);
            Reveal.slide(h, v);
        }""",
            number,
        )
        seen = page.evaluate(MEASURE)
        assert seen["out"] == [], f"{name}, slide {number + 1}"
        assert seen["smallest"] >= SMALLEST_TYPE, f"{name}, slide {number + 1}"
    assert visitor.complaints == []


@sampled
def test_a_deck_moves_by_keyboard_and_steps_come_one_by_one(name, visitor):
    page = opened(visitor, name)
    page.evaluate("Reveal.slide(0, 0)")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices().h") == 1
    number = page.evaluate("Reveal.getSlides().findIndex(slide => slide.querySelector('.fragment'))")
    page.evaluate(
        "number => { const {h, v} = Reveal.getIndices(Reveal.getSlides()[number]); Reveal.slide(h, v, -1); }", number
    )
    step = page.locator("section.present .fragment").first
    assert "visible" not in step.get_attribute("class").split()
    page.keyboard.press("Space")
    assert "visible" in step.get_attribute("class").split()


@sampled
def test_nothing_is_lost_when_slides_are_divided(name, visitor, decks):
    written = BeautifulSoup((decks / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    words = "".join("".join(part.stripped_strings) for part in written.select(".part"))
    page = opened(visitor, name)
    shown = page.evaluate("[...document.querySelectorAll('.sheet')].map(sheet => sheet.textContent).join('')")
    assert "".join(shown.split()) == "".join(words.split())


@pytest.mark.parametrize("name", ["index", *SAMPLE])
def test_axe_finds_nothing_grave(name, visitor):
    visitor.open(f"{name}.html")
    assert visitor.grave_problems() == []
