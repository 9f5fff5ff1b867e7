"""Every exercise: its answer passes, each listed mistake gets its own hint, and odd forms get a clear sentence."""

import importlib

import numpy as np
import pytest

from posviz import quiz
from posviz.chapters import STEMS

CHAPTERS = range(len(STEMS))
ALL = [exercise for n in CHAPTERS for exercise in quiz.exercises(n).values()]
by_id = pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)


@by_id
def test_the_right_answer_passes(exercise, capsys):
    assert quiz.check(exercise.id, exercise.expected).right is True
    assert capsys.readouterr().out.startswith(f"Exercise {exercise.id}: right.")


@by_id
def test_each_listed_mistake_gets_its_own_hint(exercise):
    hints = [exercise.check(mistake) for mistake, _ in exercise.wrong]
    assert hints, "an exercise lists at least one likely mistake"
    for (_, hint), result in zip(exercise.wrong, hints, strict=True):
        assert result.right is False
        assert result.message == f"not yet. {hint}"
    assert len({result.message for result in hints}) == len(hints)


@by_id
def test_three_dots_mean_not_answered_yet(exercise):
    result = exercise.check(...)
    assert result.right is None
    assert "not answered yet" in result.message


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_ids_are_unique_and_belong_to_their_chapter(chapter):
    module = importlib.import_module(f"posviz.quiz.{STEMS[chapter]}")
    ids = [exercise.id for exercise in module.EXERCISES]
    assert len(set(ids)) == len(ids) >= 4
    assert all(id.startswith(f"{chapter}.") for id in ids)


HALF = quiz.number("9.1", 0.5, within=0.01, right="Yes.", wrong=[(2.0, "Upside down.")], otherwise="Divide.")
PAIR = quiz.number(
    "9.2", [1, 2], within=0, right="Yes.", wrong=[([2, 1], "Swapped."), (3, "The sum.")], otherwise="No."
)
TWICE = quiz.function(
    "9.3",
    lambda x: 2 * x,
    probes=[(np.arange(3),), (1.5,)],
    right="Yes.",
    wrong=[(lambda x: x**2, "That squares.")],
    otherwise="Add it to itself.",
)


@pytest.mark.parametrize("answer", [0.5, [0.5], np.array(0.5), np.array([[0.5]]), np.float32(0.509), (0.5,)])
def test_any_form_of_the_right_number_is_accepted(answer):
    assert HALF.check(answer).right is True


def test_an_array_of_true_and_false_counts_as_ones_and_zeros():
    mask = quiz.number("9.6", [1, 0], within=0, right="Yes.", wrong=[([0, 1], "Swapped.")], otherwise="No.")
    assert mask.check([True, False]).right is True and mask.check(np.array([False, True])).right is False


def test_a_tensor_is_accepted():
    torch = pytest.importorskip("torch")
    assert HALF.check(torch.tensor(0.5, requires_grad=True)).right is True
    assert PAIR.check(torch.tensor([1, 2])).right is True


@pytest.mark.parametrize(
    "answer, says",
    [
        ("half", "number"),
        (None, "number"),
        (True, "number"),
        (float("nan"), "finite"),
        ([1, [2]], "different lengths"),
        ([0.5, 0.5], "shape (2,)"),
        (len, "number"),
        (7, "Divide."),
        (0.52, "Divide."),
        (1j, "number"),
    ],
)
def test_a_number_of_another_form_is_told_what_is_asked(answer, says):
    result = HALF.check(answer)
    assert result.right is False and says in result.message


def test_a_mistake_of_another_shape_is_recognised():
    assert PAIR.check(3).message == "not yet. The sum."
    assert "shape (3,)" in PAIR.check([1, 2, 3]).message


def square_in_place(x):
    x *= x
    return x


@pytest.mark.parametrize(
    "answer, right, says",
    [
        (lambda x: x + x, True, "Yes."),
        (lambda x: x**2, False, "squares"),
        (square_in_place, False, "squares"),
        (lambda x: None, False, "return"),
        (lambda: 1, False, "TypeError"),
        (3, False, "without calling it"),
        (lambda x: x * 2 + 1, False, "Add it"),
        (lambda x: [1], False, "shape"),
        (lambda x: "no", False, "number"),
    ],
)
def test_functions_are_compared_on_every_probe(answer, right, says):
    result = TWICE.check(answer)
    assert result.right is right and says in result.message


def test_choices_ignore_case_and_need_a_hint_each():
    letter = quiz.choice("9.4", "b", options=["a", "b"], right="Yes.", wrong={"a": "The other."})
    assert letter.check(" B ").right is True
    assert "The other." in letter.check("A").message
    assert "'a', 'b'" in letter.check("c").message and "'a', 'b'" in letter.check(2).message
    with pytest.raises(ValueError, match="9.5"):
        quiz.choice("9.5", "b", options=["a", "b", "c"], right="", wrong={"a": ""})


@pytest.mark.parametrize("id", ["9.1", "5.99", "five", "", 5.1, None])
def test_an_exercise_that_does_not_exist_is_named(id):
    with pytest.raises(ValueError, match="no exercise"):
        quiz.check(id, 1)


def test_a_result_prints_once_and_shows_nothing_more(capsys):
    result = quiz.Result(True, "right.")
    assert result._ipython_display_() is None and capsys.readouterr().out == ""
