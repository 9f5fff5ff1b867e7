"""The teacher's page: its plans add up, from minutes that follow from the chapters."""

import re
from pathlib import Path

import pytest

import reading
from posviz import quiz

TEXT = (Path(__file__).parent.parent / "docs" / "teaching.md").read_text(encoding="utf-8")
SHORT = TEXT.partition("\n## 90 minutes\n")[2].partition("\n## ")[0]
ROUTE = re.findall(r"^\| (\d+) \| .* \| chapter (\d), `(\w+)` \|$", SHORT, re.M)


@pytest.mark.parametrize("path", reading.CHAPTERS, ids=lambda path: path.stem)
def test_the_minutes_of_a_lesson_are_those_of_its_chapter_and_fit(path):
    line, filled = reading.lesson(path)
    (written,) = line.finditer(TEXT)
    assert line.sub(filled, written[0]) == written[0], "python tools/reading.py --write"
    read, here, home = map(int, re.findall(r"\d+", written[0])[-3:])
    assert read + here + reading.TALK <= reading.LESSON and here + home == reading.minutes(path)[1]


def test_the_short_route_takes_ninety_minutes_and_each_picture_has_twice_its_readers_time():
    assert len(ROUTE) == SHORT.count("| chapter ") and sum(int(minutes) for minutes, _, _ in ROUTE) == reading.LESSON
    for minutes, chapter, view in ROUTE:
        assert int(minutes) >= 2 * reading.picture_minutes(reading.CHAPTERS[int(chapter)])[view], view


def test_every_exercise_has_its_misconception():
    listed = re.findall(r"^\| (\d\.\d+) \| \S", TEXT, re.M)
    assert listed == [id for chapter in range(8) for id in quiz.exercises(chapter)]
