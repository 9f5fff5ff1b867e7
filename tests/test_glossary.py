"""The glossary is honest: each term is defined in bold in its chapter, and no chapter uses it before that."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| (?P<term>[^|]+?) \| (?P<chinese>[^|]+?) \| (?P<meaning>[^|]+?) \| (?P<chapter>\d) \|$", re.M)


def glossary():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return [row.groupdict() for row in ROW.finditer(text)]


def prose(chapter):
    """The chapter's sentences as the reader meets them: [(cell number, text)].

    Left out: headings, speaker notes, code, formulas, and the addresses of links. The cells before the first code cell,
    which list what is to come, have negative numbers.
    """
    (path,) = (ROOT / "notebooks").glob(f"{chapter:02}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    start = next(number for number, cell in enumerate(cells) if cell["cell_type"] == "code")
    for number, cell in enumerate(cells, -start):
        if cell["cell_type"] == "markdown" and cell["metadata"]["slideshow"]["slide_type"] != "notes":
            text = "".join(cell["source"])
            for unread in (
                r"```.*?```",
                r"\$\$.*?\$\$",
                r"\$[^$\n]*\$",
                r"`[^`\n]*`",
                r"^#[^\n]*",
                r"\]\([^)]*\)",
                r"<[^>]*>",
            ):
                text = re.sub(unread, " ", text, flags=re.S | re.M)
            yield number, text


PROSE = {chapter: list(prose(chapter)) for chapter in range(8)}


def first(pattern, chapter, opening):
    """(cell, place in it) of the pattern's first appearance, the opening counted or not; None if there is none."""
    for number, text in PROSE[chapter]:
        if (opening or number >= 0) and (found := re.search(pattern, text, re.I)):
            return number, found.start()
    return None


@pytest.mark.parametrize("row", glossary(), ids=lambda row: row["term"])
def test_a_term_is_defined_where_the_glossary_says_and_not_used_before(row):
    term, chapter = row["term"], int(row["chapter"])
    word = re.escape(term).replace(r"\ ", r"\s+")
    defined = first(rf"\*\*{word}(s|es)?\*\*", chapter, opening=True)
    assert defined, f"chapter {chapter} does not define **{term}**"
    used = first(rf"(?<![\w*-]){word}(s|es)?(?![\w-])", chapter, opening=False)
    assert used is None or used >= defined, (
        f"chapter {chapter}, cell {used[0]}: {term!r} before its definition in cell {defined[0]}"
    )


def test_the_glossary_has_each_term_once():
    terms = [row["term"].lower() for row in glossary()]
    assert len(terms) == len(set(terms)) >= 40
