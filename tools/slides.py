"""One reveal.js deck a chapter, `make slides`: offline, from the slide types of the cells, stills in place of widgets.

    python tools/slides.py [folder] [--chapters 05_rope ...]

Cells of type "slide" begin one, "fragment" adds a step to it, "subslide" goes below it, "notes" become speaker notes
(press S), "skip" is left out. A folded answer becomes its question on the slide and its answer in the notes. What does
not fit on 1280 × 720 is shared out over sub-slides when the deck opens, where the real sizes are known: slides.js.
"""

import argparse
import shutil
import sys
from pathlib import Path

from bs4 import BeautifulSoup

import folders
import pages

REVEAL = "_static/revealjs"  # in the package sphinx-revealjs, which ships reveal.js whole
FILES = {
    "dist/reveal.js": "reveal.js",
    "dist/reveal.css": "reveal.css",
    "plugin/notes/notes.js": "notes.js",
    "LICENSE": "reveal-license.txt",
}


def build(folder, chapters=None):
    """Write the decks into `folder`, which earlier decks are emptied from; `chapters` names some of them (all).

    Raises ValueError for a chapter that is not there or was not run, FileExistsError for a folder with other files.
    """
    paths = pages.chosen(chapters)
    folder = folders.emptied(folder, "tools/slides.py")
    read = {name: pages.chapter(path) for name, path in paths.items()}
    decks = {
        name: pages.rendered("deck.html", title=title, stacks=slides(cells)) for name, (title, cells) in read.items()
    }
    for name, text in decks.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    index = pages.rendered("decks.html", title="Slides", decks=[(name, title) for name, (title, _) in read.items()])
    (folder / "index.html").write_text(index, encoding="utf-8")
    for source, name in FILES.items():
        shutil.copyfile(pages.shipped("sphinx_revealjs", f"{REVEAL}/{source}"), folder / name)
    style = "".join((pages.WEB / name).read_text(encoding="utf-8") for name in ("text.css", "slides.css"))
    (folder / "slides.css").write_text(style, encoding="utf-8")
    shutil.copyfile(pages.WEB / "slides.js", folder / "slides.js")
    (folder / "math.woff").write_bytes(pages.math_font(decks.values()))


def slides(cells):
    """Stacks of slides: each slide is a list of (HTML of a part, whether it comes as a step) and a list of notes."""
    stacks = []
    for cell in cells:
        if cell.slide == "skip":
            continue
        if cell.slide == "notes":
            if not stacks:
                stacks.append([([], [])])
            stacks[-1][-1][1].append(_unfolded(cell.html))
            continue
        if cell.slide == "slide" or not stacks:
            stacks.append([([], [])])
        elif cell.slide == "subslide":
            stacks[-1].append(([], []))
        parts, notes = stacks[-1][-1]
        shown, answers = _questions(cell.html)
        shown += "".join(output.html for output in cell.outputs)
        parts.append((shown, cell.slide == "fragment"))
        notes += answers
    return stacks


def _questions(text):
    """(text with each folded answer replaced by its question, the answers for the notes)."""
    page, answers = BeautifulSoup(text, "html.parser"), []
    for fold in page.find_all("details"):
        summary = fold.summary.extract()
        answers.append(f"<p><b>{summary.decode_contents()}</b></p>{fold.decode_contents()}")
        summary.name = "p"
        summary["class"] = "question"
        fold.replace_with(summary)
    return str(page), answers


def _unfolded(text):
    """A teacher's note without its fold."""
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
        print(f"{deck.name}: {deck.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
