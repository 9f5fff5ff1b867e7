"""How long a chapter takes: minutes by one rule, from its words, cells, pictures and exercises.

    python tools/reading.py                    words, predictions and minutes of each chapter
    python tools/reading.py --write            puts the minutes into all chapters and into docs/teaching.md
    python tools/reading.py --write 05_rope    those of the named chapters

A minute for 120 words of the main path (formulas, folded answers and speaker notes not counted), one for each code
cell, two for each live picture; five for an exercise, ten where a function is to be written. The sum of reading is
rounded up to five.
"""

import argparse
import json
import math
import re

import notebooks
import pages

WORDS_A_MINUTE, CELL, PICTURE, EXERCISE, FUNCTION = 120, 1, 2, 5, 10
LESSON, TALK = 90, 10  # minutes of a lesson, and of those what the class talks
CHAPTERS = pages.CHAPTERS
TEACHING = pages.ROOT / "docs" / "teaching.md"
TIME = re.compile(r"(?<=\*\*Time\*\*: )\d+ minutes to read, \d+ minutes of exercises")


def main_path(path):
    """The cells of a chapter that are read: no speaker notes, no exercises."""
    exercises = False
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if notebooks.source(cell).startswith("## "):
            exercises = notebooks.source(cell).startswith("## Exercises")
        if not exercises and cell["metadata"].get("slideshow", {}).get("slide_type") != "notes":
            yield cell


def text(cell):
    """What a reader reads of a cell of text: no folded part, no formula on a line of its own."""
    return re.sub(r"<details.*?</details>|\$\$.*?\$\$", "", notebooks.source(cell), flags=re.S)


def words(path):
    return sum(len(text(cell).split()) for cell in main_path(path) if cell["cell_type"] == "markdown")


def predictions(path):
    cells = [cell for cell in main_path(path) if cell["cell_type"] == "markdown"]
    return sum(len(re.findall(r"\*\*Predict", text(cell))) for cell in cells)


def cost(cell):
    """The minutes that a cell of the main path takes."""
    if cell["cell_type"] == "markdown":
        return len(text(cell).split()) / WORDS_A_MINUTE
    return PICTURE if "picture" in notebooks.tags(cell) else CELL


def minutes(path):
    """(minutes to read, minutes of exercises)."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    answers = [notebooks.source(cell) for cell in cells if "exercise" in notebooks.tags(cell)]
    exercises = sum(FUNCTION if "def " in answer else EXERCISE for answer in answers)
    return 5 * math.ceil(sum(map(cost, main_path(path))) / 5), exercises


def picture_minutes(path):
    """{name of a view: minutes of the part, from one heading to the next, that shows it}."""
    parts = [[]]
    for cell in main_path(path):
        if re.match("##+ ", notebooks.source(cell)):
            parts.append([])
        parts[-1].append(cell)
    found = {}
    for part in parts:
        shown = re.findall(r"views\.(\w+)\(", "".join(notebooks.source(cell) for cell in part))
        found |= dict.fromkeys(shown, sum(map(cost, part)))
    return found


def sentence(path):
    return "{} minutes to read, {} minutes of exercises".format(*minutes(path))


def table(path):
    """A chapter's line in the table of docs/teaching.md, up to its minutes: what to look for and what to put there."""
    line = re.compile(rf"^(\| {int(path.name[:2])} \|.*\|) \d+ min \| \d+ min \|$", re.M)
    return line, r"\1 {} min | {} min |".format(*minutes(path))


def lesson(path):
    """A chapter's line among the lessons of 90 minutes: what to look for and what to put there."""
    line = re.compile(rf"^(\| {int(path.name[:2]) + 1} \|[^|]*\|) \d+ \| \d+ \| \d+ \|$", re.M)
    reading, exercises = minutes(path)
    here = min(exercises, LESSON - reading - TALK)
    return line, rf"\1 {reading} | {here} | {exercises - here} |"


def write(paths):
    """Put the minutes of these chapters where they are told."""
    for path in paths:
        chapter = path.read_text(encoding="utf-8")
        path.write_text(TIME.sub(sentence(path), chapter), encoding="utf-8")
        for line, filled in (table(path), lesson(path)):
            TEACHING.write_text(line.sub(filled, TEACHING.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Words, predictions and minutes of each chapter.")
    parser.add_argument("--write", nargs="*", metavar="CHAPTER", help="put the minutes where they are told")
    names = parser.parse_args().write
    if names is not None:
        write(pages.chosen(names or None).values())
    for path in CHAPTERS:
        print(f"{path.stem:16} {words(path):6,} words, {predictions(path):2} predictions, {sentence(path)}")
    print(f"together {sum(map(words, CHAPTERS)):,} words, {sum(map(predictions, CHAPTERS))} predictions")


if __name__ == "__main__":
    main()
