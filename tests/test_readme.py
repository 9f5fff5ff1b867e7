"""The README: short, links that lead somewhere, a moving picture that is the view as it is, true hours."""

import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from PIL import Image

import gif
import reading

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def test_two_screens():
    rows = sum(-(-len(line) // 125) for line in re.sub(r"<!--.*?-->", "", README).splitlines())
    assert rows <= 100 and len(README.split()) <= 750


def test_the_chapters_stand_between_two_marks_in_order():
    table = README.partition("and the next such. -->")[2].partition("<!-- Thus far. -->")[0]
    files = re.findall(r"\(notebooks/(\w+)\.ipynb\)", table)
    assert files == [path.stem for path in reading.CHAPTERS]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_are_there(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|\.\./\.\./actions", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.M)
            slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in slugs, target


def test_the_hours_are_those_of_the_chapters():
    minutes = np.array([reading.minutes(path) for path in reading.CHAPTERS])
    read, exercises = map(int, re.search(r"about (\d+) hours to read, (\d+) hours of exercises", README).groups())
    assert abs(minutes[:, 0].sum() / 60 - read) <= 0.6 and abs(minutes[:, 1].sum() / 60 - exercises) <= 0.6
    least, most = map(int, re.search(r"a chapter is (\d+) to (\d+) minutes", README).groups())
    assert least <= minutes[:, 0].min() + 5 and most >= minutes[:, 0].max() - 5


def test_the_moving_picture_is_small_and_shows_the_view_as_it_is():
    assert gif.FILE.stat().st_size < 500_000 and f"({gif.FILE.relative_to(ROOT).as_posix()})" in README
    with Image.open(gif.FILE) as stored:
        assert stored.n_frames == len(gif.states())
        for number, drawn in enumerate(gif.frames()):
            if number in (0, stored.n_frames - 1):
                stored.seek(number)
                far = np.abs(np.asarray(stored.convert("RGB"), int) - np.asarray(drawn.convert("RGB"), int)).max(-1)
                assert (far > 60).mean() < 0.002
