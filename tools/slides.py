"""One reveal.js deck a chapter, `make slides`: offline, from the slide types of the cells, stills in place of widgets.

    python tools/slides.py [folder] [--chapters 05_rope ...]

Cells of type "slide" begin one, "fragment" adds a step to it, "subslide" goes below it, "notes" become speaker notes
(press S), "skip" is left out. A folded answer becomes its question on the slide and its answer in the notes. What does
not fit on 1280 × 720 is shared out over sub-slides when the deck opens, where the real sizes are known: slides.js.
"""

import argparse
import html
import shutil
from pathlib import Path

import pages
from bs4 import BeautifulSoup

REVEAL = "_static/revealjs"  # in the package sphinx-revealjs, which ships reveal.js whole
FILES = {
    "dist/reveal.js": "reveal.js",
    "dist/reveal.css": "reveal.css",
    "plugin/notes/notes.js": "notes.js",
    "LICENSE": "reveal-license.txt",
}


def build(folder, chapters=None):
    """Write the decks into `folder`, which is emptied before; `chapters` names some of them (all)."""
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    decks = {path.stem: pages.chapter(path) for path in pages.CHAPTERS if chapters is None or path.stem in chapters}
    written = [_deck(title, cells) for title, cells in decks.values()]
    for name, text in zip(decks, written):
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    items = "".join(f'<li><a href="{name}.html">{html.escape(title)}</a></li>' for name, (title, _) in decks.items())
    (folder / "index.html").write_text(_index(items), encoding="utf-8")
    for source, name in FILES.items():
        shutil.copyfile(pages.shipped("sphinx_revealjs", f"{REVEAL}/{source}"), folder / name)
    style = "".join((pages.WEB / name).read_text(encoding="utf-8") for name in ("text.css", "slides.css"))
    (folder / "slides.css").write_text(style, encoding="utf-8")
    shutil.copyfile(pages.WEB / "slides.js", folder / "slides.js")
    (folder / "math.woff").write_bytes(pages.math_font(written))


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
        shown += "".join(pages.still(output) if isinstance(output, tuple) else output for output in cell.outputs)
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


def _deck(title, cells):
    sections = []
    for stack in slides(cells):
        inner = ""
        for parts, notes in stack:
            body = "".join(f'<div class="part{" step" if step else ""}">{part}</div>' for part, step in parts)
            inner += f'<section>{body}<aside class="notes">{"".join(notes)}</aside></section>\n'
        sections.append(f"<section>\n{inner}</section>\n")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="reveal.css">
<link rel="stylesheet" href="slides.css">
</head>
<body>
<div class="reveal"><div class="slides">
{"".join(sections)}</div></div>
<script src="reveal.js"></script>
<script src="notes.js"></script>
<script src="slides.js"></script>
</body>
</html>
"""


def _index(items):
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Slides</title><link rel="icon" href="data:,"></head>
<body style="font: 20px/1.6 system-ui, sans-serif; margin: 2em"><main><h1>Slides</h1><ul>{items}</ul>
<p>Arrow keys or space to move, S for the speaker's view, O for an overview, F for full screen.</p></main></body>
</html>
"""


def main():
    parser = argparse.ArgumentParser(description="Write one reveal.js deck a chapter.")
    parser.add_argument("folder", nargs="?", type=Path, default=pages.ROOT / "slides")
    parser.add_argument("--chapters", nargs="*", help="such as 05_rope; all if not given")
    options = parser.parse_args()
    build(options.folder, options.chapters)
    for deck in sorted(options.folder.glob("[0-9]*.html")):
        print(f"{deck.name}: {deck.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
