"""One reveal.js deck a chapter, `make slides`: 15 to 20 slides to teach from, offline, with live pictures and notes.

    python tools/slides.py [folder] [--chapters 05_rope ...]

Which slides there are follows from the chapter: one for its title, one for each picture with its question, one for each
bet, one for each numbered section without either, "What we saw" and the exercises; where that is too few, subsections.
A cell tagged "slide" adds its part of the chapter, on a code cell also the code; "no-slide" takes it away. What is not
shown becomes speaker notes (press S): the text, the answers, what is for the teacher.
"""

import argparse
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bs4 import BeautifulSoup

import folders
import frames
import pages

FEWEST, MOST = 15, 20  # slides of a chapter
WORDS, OPENING = 75, 130  # of text on a slide, and on the first
CODE = 8  # lines of code that a slide holds
ROWS, TABLE = 8, 140  # rows and words of a table
BET = "posviz-bet"  # the class of a bet
LEFT_OUT = ("References", "Next", "Where it is used")
REVEAL = "_static/revealjs"  # in the package sphinx-revealjs, which ships reveal.js whole
FILES = {
    "dist/reveal.js": "reveal.js",
    "dist/reveal.css": "reveal.css",
    "plugin/notes/notes.js": "notes.js",
    "LICENSE": "reveal-license.txt",
}


@dataclass
class Part:
    """What stands under one heading of a chapter: blocks of (kind, HTML element or cell), and the teacher's notes."""

    level: int
    heading: str
    tags: set
    blocks: list = field(default_factory=list)
    notes: list = field(default_factory=list)


@dataclass
class Slide:
    """A heading, what is shown under it, the notes of the speaker; `live` where the last thing shown is a picture."""

    heading: str
    shown: list
    notes: list
    live: bool = False


def build(folder, chapters=None, cache_folder=pages.ROOT / "build" / "frames"):
    """Write the decks into `folder`, which earlier decks are emptied from; `chapters` names some of them (all).

    Raises ValueError for a chapter that is not there or was not run, FileExistsError for a folder with other files.
    """
    paths = pages.chosen(chapters)
    folder = folders.emptied(folder, "tools/slides.py")
    live = {
        (chapter, cell): pages.rendered("live.html", picture=picture, folder=place)
        for chapter, cell, place, picture in frames.placed(paths.values(), folder, cache_folder, "presenter")
    }
    titles, decks = {}, {}
    for name, path in paths.items():
        titles[name], cells = pages.chapter(path)
        pictures = {cell.id: live[name, cell.id] for cell in cells if (name, cell.id) in live}
        decks[name] = pages.rendered("deck.html", title=titles[name], slides=slides(cells, pictures))
        (folder / f"{name}.html").write_text(decks[name], encoding="utf-8")
    index = pages.rendered("decks.html", title="Slides", decks=titles.items())
    (folder / "index.html").write_text(index, encoding="utf-8")
    for source, name in FILES.items():
        shutil.copyfile(pages.shipped("sphinx_revealjs", f"{REVEAL}/{source}"), folder / name)
    style = "".join((pages.WEB / name).read_text(encoding="utf-8") for name in ("text.css", "live.css", "slides.css"))
    (folder / "slides.css").write_text(style, encoding="utf-8")
    for name in ("slides.js", "live.js"):
        shutil.copyfile(pages.WEB / name, folder / name)
    (folder / "math.woff").write_bytes(pages.math_font(decks.values()))


def slides(cells, live):
    """The Slides of a chapter; `live` is {cell id: HTML of its live picture}."""
    found = [(part, _shown(part, live)) for part in parts(cells)]
    chosen = [at for at, (part, shown) in enumerate(found) if _is_chosen(part, shown)]
    spare = [at for at, (part, shown) in enumerate(found) if at not in chosen and shown and _may(part)]
    spare.sort(key=lambda at: (_is_exercise(found[at][0]), -len(found[at][0].blocks)))
    while spare and _count(found, chosen) < FEWEST:
        chosen.append(spare.pop(0))
    plain = [
        at
        for at in chosen
        if found[at][0].heading[:1].isdigit()
        and found[at][0].level == 2
        and not any(slide.live for slide in found[at][1])
        and "slide" not in found[at][0].tags
    ]
    plain.sort(key=lambda at: len(found[at][0].blocks))
    while plain and _count(found, chosen) > MOST:
        chosen.remove(plain.pop(0))
    deck, asked = [], [part.heading for part, _ in found if _is_exercise(part)]
    for at, (part, shown) in enumerate(found):
        if _name(part) == "Exercises":
            shown[0].shown.append(f"<ul>{''.join(f'<li>{heading}</li>' for heading in asked)}</ul>")
        if at in chosen:
            deck += shown
        elif deck and not _is_left_out(part):
            deck[-1].notes += _everything(part)
    return deck


def _count(found, chosen):
    return sum(len(found[at][1]) for at in chosen)


def parts(cells):
    """The chapter cut at its headings. Solutions and what is to be answered in code stay out."""
    found = []
    for cell in cells:
        if {"solution", "exercise", "setup"} & set(cell.tags):
            continue
        if cell.slide == "notes":
            found[-1].notes.append(_unfolded(cell.html))
        elif cell.kind == "code":
            found[-1].blocks.append(("code", cell))
            found[-1].tags |= set(cell.tags)
        else:
            for element in BeautifulSoup(cell.html, "html.parser").find_all(recursive=False):
                if re.fullmatch("h[1-6]", element.name):
                    found.append(Part(int(element.name[1]), element.decode_contents(), set()))
                else:
                    found[-1].blocks.append((_kind(element), element))
                found[-1].tags |= set(cell.tags)
    return found


def _kind(element):
    if element.name == "details":
        return "fold"
    words = element.get_text()
    if element.name in ("p", "blockquote") and re.match(r"\s*(Predict|Try|Bet)\b", words):
        return "question"
    return "question" if element.name == "p" and words.strip().endswith("?") and element.find("strong") else "text"


def _name(part):
    return BeautifulSoup(part.heading, "html.parser").get_text()


def _is_exercise(part):
    return _name(part).startswith("Exercise ")


def _is_left_out(part):
    return _name(part).startswith(LEFT_OUT)


def _may(part):
    return "no-slide" not in part.tags and not _is_left_out(part)


def _is_chosen(part, shown):
    """Whether the part makes slides by itself: a picture, a bet, a section, or because a tag says so."""
    special = "slide" in part.tags or any(slide.live or BET in slide.shown[0] for slide in shown)
    return bool(shown) and _may(part) and (part.level < 3 or special)


def _everything(part):
    """What a part without a slide gives to the notes."""
    return [
        f"<b>{part.heading}</b>",
        *(_note(kind, block) for kind, block in part.blocks if kind != "code"),
        *part.notes,
    ]


def _shown(part, live):
    """The Slides of a part: one for each picture and each bet, or one of text; what is left goes to the notes."""
    if not any(kind == "code" and (cell.id in live or _is_bet(cell)) for kind, cell in part.blocks):
        return _text_slides(part)
    made, question, before = [], "", []
    for kind, block in part.blocks:
        if kind == "code" and block.id in live:
            ask = question or next((str(text) for kind, text in reversed(before) if kind == "text"), "")
            notes = [_note(kind, text) for kind, text in before if str(text) not in ask]
            made.append(Slide(part.heading, [ask, live[block.id]], notes, True))
            question, before = "", []
        elif kind == "code" and _is_bet(block):
            if BET in question:  # the next bet before any picture
                made.append(Slide(part.heading, [question], []))
            question = "".join(output.html for output in block.outputs)
        elif kind == "question" or question.rstrip().endswith(":</p>"):  # what is asked goes on in a list
            question = question * (BET in question or question.rstrip().endswith(":</p>")) + str(block)
        elif kind != "code":
            before.append((kind, block))
    if BET in question:
        made.append(Slide(part.heading, [question], []))
    made[-1].notes += [_note(kind, text) for kind, text in before] + part.notes
    return made


def _is_bet(cell):
    return any(BET in output.html for output in cell.outputs)


def _text_slides(part):
    """One slide with the beginning of the text, a formula or table, short code and the question; tables take two."""
    shown, notes, words, tables, most = [], [], 0, [], OPENING if part.level == 1 else WORDS
    for kind, block in part.blocks:
        if kind == "code":
            lines = [line for line in block.source.splitlines() if line.strip()]
            pictures = any(output.is_picture for output in block.outputs)
            short = len(lines) <= CODE and "assert" not in block.source and not pictures
            if short and not any("pre" in text for text in shown) or "slide" in block.tags:
                shown.append(block.html + "".join(output.html for output in block.outputs))
            continue
        size = len(block.get_text().split())
        if part.level == 1 and (block.find("table") or "You need first" in block.get_text()):
            most = 0  # the rest of the title is for reading
        if kind == "text" and block.find("table") is not None and words <= most:
            tables += _divided(block)
        elif kind == "fold" or kind == "text" and words + size > most:
            notes.append(_note(kind, block))
        else:
            shown.append(str(block))
            words += size
    first = [Slide(part.heading, shown + tables[:1], notes + part.notes)] if shown or tables else []
    return first + [Slide(part.heading, [table], []) for table in tables[1:]]


def _divided(block):
    """A table as tables of at most ROWS lines, each under the same head and without the column of links."""
    table = block.find("table")
    rows = table.find_all("tr")
    if rows[0].find_all("th")[-1].get_text() == "shown in":
        for row in rows:
            row.find_all(["th", "td"])[-1].decompose()
    head, body = str(rows[0]), [str(row) for row in rows[1:]]
    words = len(table.get_text(" ").split())
    count = max(-(-len(body) // ROWS), -(-words // TABLE))
    size = -(-len(body) // count)
    starts = range(0, len(body), size)
    return [f"<table>{head}{''.join(body[at : at + size])}</table>" for at in starts]


def _note(kind, block):
    return _unfolded(str(block)) if kind == "fold" else str(block)


def _unfolded(text):
    """A note without its fold."""
    page = BeautifulSoup(text, "html.parser")
    for fold in page.find_all("details"):
        fold.summary.name = "b"
        fold.unwrap()
    return str(page)


def main():
    parser = argparse.ArgumentParser(description="Write one reveal.js deck a chapter.")
    parser.add_argument("folder", nargs="?", type=Path, default=pages.ROOT / "slides")
    parser.add_argument("--chapters", nargs="*", help="such as 05_rope; all if not given")
    options = parser.parse_args()
    try:
        build(options.folder, options.chapters)
    except (ValueError, FileExistsError) as error:
        sys.exit(str(error))
    for deck in sorted(options.folder.glob("[0-9]*.html")):
        print(f"{deck.name}: {deck.read_text(encoding='utf-8').count('<section')} slides")


if __name__ == "__main__":
    main()
