"""The decks: 15 to 20 slides, each whole and legible on 1280 × 720, every key visits all of them, pictures move.

One deck is opened in Chromium, with EVERY_CHAPTER=1 (`make test-all`) every one of them.
"""

import pytest
import static_pages
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont
from static_pages import CHAPTERS, SAMPLE

import pages
import slides

sampled = pytest.mark.parametrize("name", SAMPLE)
each = pytest.mark.parametrize("name", CHAPTERS)
SMALLEST_TYPE = 18  # pixels of 720, pictures included
PRESENTER = 17 * 100 / 72  # pixels of the type in a picture of its own size

# Of the slide shown: what sticks out of 1280 × 720 or is covered, and how small its smallest words are.
MEASURE = """() => {
    const section = Reveal.getCurrentSlide(), out = [], sizes = [];
    const kinds = "h1, h2, p, li, td, th, pre, label, legend, figcaption, summary, math, img";
    const seen = [...section.querySelectorAll(kinds)]
        .filter(box => box.checkVisibility() && !box.closest("aside") && !box.closest(".fixed"));
    for (const element of seen) {
        const box = element.getBoundingClientRect();
        if (element.closest("fieldset") && !element.matches("legend")) continue;   // many choices scroll in their box
        if (box.width && (box.left < -1 || box.right > 1281 || box.bottom > 721 || box.top < -1))
            out.push(element.outerHTML.slice(0, 120));
        if (element.matches("pre") && element.scrollWidth > element.clientWidth + 1) out.push("scrolls");
        if (!element.matches("img, math")) sizes.push(parseFloat(getComputedStyle(element).fontSize));
    }
    const image = section.querySelector(".picture img"), left = section.querySelector(".live .controls");
    const share = image ? image.getBoundingClientRect().width / image.getAttribute("width") : null;
    if (left && left.getBoundingClientRect().right > image.getBoundingClientRect().left) out.push("covered");
    for (const box of section.querySelectorAll("fieldset"))
        if (box.getBoundingClientRect().bottom > 721) out.push("choices");
    return {out, smallest: Math.min(99, ...sizes), share};
}"""


def cells_of(name):
    return pages.chapter(next(path for path in pages.CHAPTERS if path.stem == name))[1]


def outline(name):
    """(cells, slides) of a chapter, its live pictures replaced by marks."""
    cells = cells_of(name)
    live = {
        cell.id: f"<figure>{cell.id}</figure>" for cell in cells for output in cell.outputs if "view" in output.picture
    }
    return cells, live, slides.slides(cells, live)


@each
def test_a_chapter_has_fifteen_to_twenty_slides_with_notes_on_most(name):
    _, _, deck = outline(name)
    assert slides.FEWEST <= len(deck) <= slides.MOST
    assert sum(bool(slide.notes) for slide in deck) > 0.6 * len(deck)


@each
def test_every_picture_and_every_bet_is_on_one_slide_with_its_heading_and_a_question(name):
    cells, live, deck = outline(name)
    for picture in live.values():
        (slide,) = [slide for slide in deck if picture in slide.shown]
        assert slide.live and slide.heading and picture == slide.shown[1]
        assert len(slide.shown[0]) > 20 or slide.heading.endswith("?")
    shown = "".join(part for slide in deck for part in slide.shown)
    bets = [cell.outputs[0].html for cell in cells if "quiz.bet(" in cell.source and "no-slide" not in cell.tags]
    assert all(bet in shown for bet in bets)


@each
def test_answers_solutions_and_assertions_are_on_no_slide_and_teachers_notes_are_in_the_notes(name):
    cells, _, deck = outline(name)
    shown = "".join(part for slide in deck for part in slide.shown if "posviz-bet" not in part)
    assert not any(word in shown for word in ("<details", "Solution", "assert", "quiz.check"))
    notes = "".join(note for slide in deck for note in slide.notes)
    assert notes.count("For the teacher") == sum(cell.slide == "notes" for cell in cells) > 0


def cell(source, *tags, id="x", kind="markdown"):
    text = pages.code(source, 1) if kind == "code" else pages.markdown(source)
    return pages.Cell(id, kind, "slide", list(tags), source, text, [])


def test_tags_add_a_slide_and_take_one_away():
    many = [cell(f"## {number} Section\n\nA text.") for number in range(1, 16)]
    kept = [cell("# Title\n\nA text."), *many, cell("### Small\n\nMore of it.")]
    assert [slide.heading for slide in slides.slides(kept, {})] == ["Title", *(f"{n} Section" for n in range(1, 16))]
    kept[-1].tags, kept[3].tags = ["slide"], ["no-slide"]
    deck = slides.slides(kept, {})
    assert deck[-1].heading == "Small" and "3 Section" not in [slide.heading for slide in deck]
    assert "A text." in "".join(deck[2].notes)
    long = "\n".join(["x = 1"] * (slides.CODE + 1))
    for tags, expected in (((), 0), (("slide",), 1)):
        deck = slides.slides([*kept, cell("## 16 Code\n\nLook."), cell(long, *tags, kind="code")], {})
        assert sum('class="code"' in part for part in deck[-1].shown) == expected


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slides")
    slides.build(folder, SAMPLE, tmp_path_factory.mktemp("frames"))
    return folder


@pytest.fixture(scope="module")
def visitor(decks):
    with static_pages.visiting(decks, viewport={"width": 1280, "height": 720}) as visitor:
        yield visitor


def opened(visitor, name):
    page = visitor.open(f"{name}.html")
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    page.evaluate("Reveal.slide(0)")
    return page


@pytest.mark.browser
@sampled
def test_every_slide_fits_and_nothing_is_smaller_than_18_pixels(name, visitor):
    visitor.page.goto("about:blank")  # what an earlier page still asked for is broken off
    visitor.complaints.clear()
    page = opened(visitor, name)
    for number in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate("number => Reveal.slide(number)", number)
        seen = page.evaluate(MEASURE)
        assert seen["out"] == [], f"{name}, slide {number + 1}"
        assert seen["smallest"] >= SMALLEST_TYPE, f"{name}, slide {number + 1}"
        assert seen["share"] is None or seen["share"] * PRESENTER >= SMALLEST_TYPE, f"{name}, slide {number + 1}"
    assert visitor.complaints == []


@pytest.mark.browser
@sampled
def test_what_a_bet_says_covers_nothing(name, visitor):
    page = opened(visitor, name)
    for number in range(page.evaluate("Reveal.getTotalSlides()")):
        page.evaluate("number => Reveal.slide(number)", number)
        bets = page.locator("section.present.with-picture summary")
        for bet in bets.all():
            bet.click()
            said = page.locator("section.present details[open] p").bounding_box()
            sentence = page.locator("section.present figcaption").bounding_box()
            assert said["y"] >= sentence["y"] + sentence["height"] and said["y"] + said["height"] <= 720


@pytest.mark.browser
@sampled
@pytest.mark.parametrize(
    "forward, back",
    [
        ("ArrowRight", "ArrowLeft"),
        ("ArrowDown", "ArrowUp"),
        ("PageDown", "PageUp"),
        ("Space", "Shift+Space"),
        ("n", "p"),
    ],
)
def test_every_key_visits_every_slide(name, forward, back, visitor):
    page = opened(visitor, name)
    total = page.evaluate("Reveal.getTotalSlides()")
    for key, expected in ((forward, range(1, total)), (back, range(total - 2, -1, -1))):
        for number in expected:
            page.keyboard.press(key)
            assert page.evaluate("Reveal.getSlidePastCount()") == number, key


@pytest.mark.browser
@sampled
def test_a_picture_moves_and_a_presenters_keys_still_turn_the_slide(name, visitor):
    page = opened(visitor, name)
    number = page.evaluate("Reveal.getSlides().findIndex(slide => slide.querySelector('input[type=range]'))")
    page.evaluate("number => Reveal.slide(number)", number)
    section = page.locator("section.present")
    before = section.locator("figcaption").inner_text()
    section.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    assert section.locator("figcaption").inner_text() != before
    assert page.evaluate("Reveal.getSlidePastCount()") == number
    page.keyboard.press("PageDown")
    assert page.evaluate("Reveal.getSlidePastCount()") == number + 1
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getSlidePastCount()") == number + 2


def test_formulas_have_their_roots(decks):
    """A root is a sign that a browser draws by itself, so it stands in no text."""
    assert 0x221A in TTFont(decks / "math.woff").getBestCmap()


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", *SAMPLE])
def test_axe_finds_nothing_grave(name, visitor):
    visitor.open(f"{name}.html")
    assert visitor.grave_problems() == []


def test_the_index_names_every_deck(decks):
    page = BeautifulSoup((decks / "index.html").read_text(encoding="utf-8"), "html.parser")
    assert [link["href"] for link in page.select("a")] == [f"{name}.html" for name in SAMPLE]
    assert len(list(decks.glob(f"live/{SAMPLE[-1]}/*/0.webp"))) > 1
