"""Every exercise: right in any form, a hint of its own for each listed mistake, a clear sentence for all else."""

import ast
import importlib
import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from posviz import quiz
from posviz.chapters import STEMS

CHAPTERS = range(len(STEMS))
ALL = [exercise for n in CHAPTERS for exercise in quiz.exercises(n).values()]
CHOICES = [exercise for exercise in ALL if isinstance(exercise.expected, str)]
FUNCTIONS = [exercise for exercise in ALL if callable(exercise.expected)]
NUMBERS = [exercise for exercise in ALL if exercise not in CHOICES + FUNCTIONS]
NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


def each(exercises):
    return pytest.mark.parametrize("exercise", exercises, ids=lambda exercise: exercise.id)


@pytest.fixture(autouse=True)
def a_new_kernel():
    """No test sees what another one has tried."""
    quiz._nudged.clear()


def module_of(chapter):
    return importlib.import_module(f"posviz.quiz.{STEMS[chapter]}")


def cells_of(exercise):
    """The question and the code cell of an exercise, as text."""
    (path,) = NOTEBOOKS.glob(f"0{exercise.id[0]}_*.ipynb")
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    question = next(i for i, cell in enumerate(cells) if cell.startswith(f"### Exercise {exercise.id} "))
    return cells[question], cells[question + 1]


@each(ALL)
def test_the_right_answer_passes(exercise, capsys):
    assert quiz.check(exercise.id, exercise.expected).right is True
    assert capsys.readouterr().out.startswith(f"Exercise {exercise.id}: right.")


@each(ALL)
def test_each_listed_mistake_gets_its_own_hint(exercise):
    hints = [exercise.check(mistake) for mistake, _ in exercise.wrong]
    assert hints, "an exercise lists at least one likely mistake"
    for (_, hint), result in zip(exercise.wrong, hints, strict=True):
        assert result.right is False and result.known
        assert result.message == f"not yet. {hint}"
    assert len({result.message for result in hints}) == len(hints)


@each(ALL)
def test_three_dots_mean_not_answered_yet(exercise):
    result = exercise.check(...)
    assert result.right is None
    assert "not answered yet" in result.message


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_ids_are_unique_and_belong_to_their_chapter(chapter):
    ids = [value.id for value in vars(module_of(chapter)).values() if isinstance(value, quiz.Exercise)]
    assert len(set(ids)) == len(ids) >= 4
    assert ids == [f"{chapter}.{number}" for number in range(1, len(ids) + 1)] == list(quiz.exercises(chapter))


def test_no_exercise_keeps_a_random_generator():
    for chapter in CHAPTERS:
        for value in vars(module_of(chapter)).values():
            assert not isinstance(value, np.random.RandomState | np.random.Generator)


# -------------------------------------------------------- what an exercise says


@each(ALL)
def test_an_exercise_lists_three_likely_mistakes_or_every_other_letter(exercise):
    if exercise in CHOICES:
        letters = re.findall(r"^- \*\*([a-z])\*\*", cells_of(exercise)[0], re.M)
        assert sorted([exercise.expected, *dict(exercise.wrong)]) == letters
    else:
        assert len(exercise.wrong) >= 3


@each(NUMBERS + FUNCTIONS)
def test_a_wrong_answer_that_no_hint_knows_gets_a_nudge_and_then_the_formula(exercise, capsys):
    wrong = np.full(np.shape(exercise.expected), 987.25) if exercise in NUMBERS else other_function(exercise)
    assert exercise.nudge and exercise.formula and exercise.nudge != exercise.formula
    for told, untold in ((exercise.nudge, exercise.formula), (exercise.formula, exercise.nudge)):
        result = quiz.check(exercise.id, wrong)
        assert result.right is False and not result.known
        assert result.message.endswith(told) and untold not in result.message
    assert quiz.check(exercise.id, exercise.expected).right is True
    assert quiz.check(exercise.id, wrong).message.endswith(exercise.nudge)  # from the start


def other_function(exercise):
    return lambda *arguments: np.asarray(exercise.expected(*arguments)) * 1.5 + 0.25


def test_only_unknown_wrong_answers_bring_the_formula_nearer():
    exercise = quiz.exercises(5)["5.1"]
    for answer in (..., "text", None, 4.0, [1, 2]):
        quiz.check("5.1", answer)
    quiz.check("5.3", 7)  # another exercise
    assert quiz.check("5.1", 7).message.endswith(exercise.nudge)
    quiz.check("5.1", 4.0)
    assert quiz.check("5.1", 7).message.endswith(exercise.formula)


@each(NUMBERS)
def test_no_hint_gives_the_answer(exercise):
    if np.ndim(exercise.expected) == 0:
        answer = float(exercise.expected)
        written = {
            f"{answer:.10g}",
            f"{answer:,.10g}",
            f"{answer:.3g}",
            f"{answer:,.0f}" if answer.is_integer() else "none",
        }
        for text in [exercise.nudge, exercise.formula, *(hint for _, hint in exercise.wrong)]:
            numbers = set(re.findall(r"(?<![\d,.^/])−?\d[\d,]*(?:\.\d+)?", text.replace("-", "−")))
            assert not {number.rstrip(",").replace("−", "-") for number in numbers} & written, text


@each(ALL)
def test_what_is_said_is_short_and_ends(exercise):
    for text in filter(None, [exercise.right, exercise.nudge, exercise.formula, *(hint for _, hint in exercise.wrong)]):
        assert len(text) <= 115 and text[-1] in ".?", text


# -------------------------------------------------------- the right answer in every form


def forms_of(value):
    """The same numbers as a learner may have them."""
    torch = pytest.importorskip("torch")
    array = np.asarray(value, float)
    yield from (
        array,
        array.tolist(),
        torch.tensor(array),
        torch.tensor(array, dtype=torch.float32, requires_grad=True),
    )
    if array.ndim == 0:
        yield from (
            float(array),
            np.float32(array),
            [float(array)],
            (float(array),),
            array.reshape(1),
            array.reshape(1, 1),
        )
        yield from (
            Fraction(float(array)),
            [torch.tensor(float(array), requires_grad=True)],
            torch.tensor([float(array)]),
        )
    else:
        yield from (
            tuple(map(tuple, array)) if array.ndim > 1 else tuple(array),
            list(array),
            list(map(torch.tensor, array)),
        )
        yield from (array[None], array[..., None])


@each(NUMBERS)
def test_the_right_numbers_are_right_in_any_form(exercise):
    for answer in forms_of(exercise.expected):
        assert exercise.check(answer).right is True, repr(answer)
    if np.ndim(exercise.expected) == 0 and float(exercise.expected).is_integer():
        assert exercise.check(int(exercise.expected)).right is True
        assert exercise.check(np.int64(exercise.expected)).right is True


@each(CHOICES)
@pytest.mark.parametrize("form", ["{}", "{} ", "({})", "{}.", "{})"])
def test_the_right_letter_is_right_in_any_form(exercise, form):
    for letter in (exercise.expected, exercise.expected.upper()):
        answer = form.format(letter)
        for given in (answer, [answer], (answer,), np.array(answer), np.array([answer])):
            assert exercise.check(given).right is True, repr(given)
        assert exercise.check(f"\n{letter}\t").right is True


@each(FUNCTIONS)
def test_the_right_function_is_right_whatever_it_returns_the_numbers_in(exercise):
    torch = pytest.importorskip("torch")
    for form in (np.asarray, lambda array: np.asarray(array).tolist(), lambda array: torch.tensor(np.asarray(array))):
        assert exercise.check(lambda *arguments, form=form: form(exercise.expected(*arguments))).right is True


@each(FUNCTIONS)
def test_the_cell_asks_for_the_function_that_the_exercise_names(exercise):
    stub = ast.parse(cells_of(exercise)[1]).body[0]
    assert isinstance(stub, ast.FunctionDef) and stub.name == exercise.expected.__name__


# -------------------------------------------------------- another kind of answer


@each(ALL)
def test_an_answer_of_another_kind_is_told_which_kind_is_asked_for(exercise):
    kind = {
        str: "Answer with one letter in quotation marks",
        float: "Answer with one number",
        list: f"Answer with a list of {np.shape(exercise.expected)[:1] and np.shape(exercise.expected)[0]} numbers",
        tuple: f"Answer with a table of {' × '.join(map(str, np.shape(exercise.expected)))} numbers",
    }[str if exercise in CHOICES else (float, list, tuple)[np.ndim(exercise.expected)]]
    if exercise in FUNCTIONS:
        kind = f"Answer with the function itself, without calling it: `answer = {exercise.expected.__name__}`"
    others = [None, {}, {1.0}, True, np.True_, "0.5", "a and b", ["0.5", "1"], [None], object(), 1j, iter([1])]
    others += [0.5, np.zeros((2, 2))] if exercise in CHOICES + FUNCTIONS else [len, [[1], [1, 2]]]
    for answer in others:
        result = exercise.check(answer)
        assert result.right is False and kind in result.message, (answer, result.message)
        assert len(result.message) < 130 and "\n" not in result.message


HALF = quiz.number("9.1", 0.5, (2.0, "Upside down."), within=0.01, right="Yes.", nudge="Share.", formula="Divide.")
PAIR = quiz.number("9.2", [1, 2], ([2, 1], "Swapped."), (3, "The sum."), right="Yes.", nudge="No.", formula="Count.")


def twice(x):
    return 2 * x


TWICE = quiz.function(
    "9.3",
    twice,
    (lambda x: x**2, "That squares."),
    probes=[(np.arange(3),), (1.5,)],
    right="Yes.",
    nudge="How often?",
    formula="Add it to itself.",
)


@pytest.mark.parametrize("answer", [0.5, [0.5], np.array(0.5), np.array([[0.5]]), np.float32(0.509), (0.5,)])
def test_any_form_of_the_right_number_is_accepted(answer):
    assert HALF.check(answer).right is True


def test_an_array_of_true_and_false_counts_as_ones_and_zeros():
    mask = quiz.number("9.6", [1, 0], ([0, 1], "Swapped."), right="Yes.", nudge="No.", formula="Yes, no.")
    assert mask.check([True, False]).right is True and mask.check(np.array([False, True])).right is False


def test_a_tensor_is_accepted():
    torch = pytest.importorskip("torch")
    assert HALF.check(torch.tensor(0.5, requires_grad=True)).right is True
    assert HALF.check(torch.tensor(0.5, dtype=torch.bfloat16)).right is True
    assert PAIR.check(torch.tensor([1, 2])).right is True


@pytest.mark.parametrize(
    "answer, says",
    [
        ("half", "number"),
        (None, "number"),
        (True, "number; got bool"),
        (float("nan"), "finite"),
        ([1, [2]], "different lengths"),
        ([0.5, 0.5], "a list of 2 numbers where one number is asked for"),
        ([], "a list of 0 numbers"),
        (len, "number"),
        (7, "Share."),
        (0.52, "Share."),
        (1j, "number"),
    ],
)
def test_a_number_of_another_form_is_told_what_is_asked(answer, says):
    result = HALF.check(answer)
    assert result.right is False and says in result.message


def test_a_mistake_of_another_shape_is_recognised():
    assert PAIR.check(3).message == "not yet. The sum."
    assert "a list of 3 numbers where a list of 2" in PAIR.check([1, 2, 3]).message


def test_the_first_entry_that_is_off_is_named():
    assert PAIR.check([1, 7]).message == "not yet. The answer is off, first at [1]. No."
    assert PAIR.check([1, 7], nudged=True).message == "not yet. The answer is off, first at [1]. Count."


def test_a_rounded_answer_is_asked_for_more_digits():
    third = quiz.number("9.7", 1 / 3, within=0.0005, right="Yes.", nudge="No.", formula="Divide.")
    assert third.check(0.333).right is True
    assert "more digits" in third.check(0.33).message and "more digits" in third.check(0.3).message
    assert third.check(0.34).message == "not yet. No." and third.check(0).message == "not yet. No."


# -------------------------------------------------------- functions


def square_in_place(x):
    x *= x
    return x


def by_printing(x):
    print(2 * x)


@pytest.mark.parametrize(
    "answer, right, says",
    [
        (lambda x: x + x, True, "Yes."),
        (lambda x: x**2, False, "squares"),
        (square_in_place, False, "`twice(array([0, 1, 2]))` changes what it was given"),
        (lambda x: None, False, "`twice(array([0, 1, 2]))` returns None: end its body with `return`."),
        (by_printing, False, "prints, and returns None"),
        (lambda x: ..., False, "still returns the three dots"),
        (lambda: 1, False, "TypeError"),
        (3, False, "without calling it"),
        (lambda x: x * 2 + 1, False, "How often?"),
        (
            lambda x: x * 2 + (x == 1.5),
            False,
            "`twice(array([0, 1, 2]))` is right, but `twice(1.5)` is off. How often?",
        ),
        (
            lambda x: x * 2 + (np.arange(3) if np.ndim(x) else 0),
            False,
            "`twice(1.5)` is right, but `twice(array([0, 1, 2]))` is off, first at [1].",
        ),
        (lambda x: x * 2 if np.ndim(x) else x.shape, False, "runs, but `twice(1.5)` stops with AttributeError"),
        (
            lambda x: x * 2 if np.ndim(x) else [x * 2],
            False,
            "is right, but `twice(1.5)` is a list of 1 numbers where one number",
        ),
        (lambda x: x * np.inf if np.ndim(x) == 0 else x * 2, False, "not a finite number"),
        (lambda x: [1], False, "is a list of 1 numbers where a list of 3 numbers is asked for"),
        (lambda x: "no", False, "must return numbers; got str"),
        (lambda x: [[1], [1, 2]], False, "different lengths"),
    ],
)
def test_functions_are_compared_on_every_probe(answer, right, says):
    result = TWICE.check(answer)
    assert result.right is right and says in result.message


def test_what_a_function_prints_is_shown_once(capsys):
    def talks(x):
        print("x is", x)
        return 2 * x

    assert TWICE.check(talks).right is True
    assert capsys.readouterr().out == "x is [0 1 2]\nx is 1.5\n"


@each(FUNCTIONS)
def test_a_function_that_is_not_ready_gets_a_sentence(exercise):
    name, right = exercise.expected.__name__, exercise.expected
    assert f"`{name}(" in exercise.check(lambda *arguments: ...).message
    assert "still returns the three dots" in exercise.check(lambda *arguments: ...).message
    assert "end its body with `return`" in exercise.check(lambda *arguments: None).message
    assert "prints, and returns None" in exercise.check(lambda *arguments: print(right(*arguments))).message
    assert "stops with ZeroDivisionError: division by zero" in exercise.check(lambda *arguments: 1 / 0).message
    assert "must return numbers; got str" in exercise.check(lambda *arguments: "text").message


@each(FUNCTIONS)
def test_a_function_that_works_once_is_told_where_it_fails(exercise):
    def first_call_only(fails):
        calls = []

        def answer(*arguments):
            calls.append(arguments)
            return exercise.expected(*arguments) if len(calls) == 1 else fails(exercise.expected(*arguments))

        return exercise.check(answer).message

    assert re.search(r"`.+` runs, but `.+` stops with ZeroDivisionError", first_call_only(lambda value: 1 / 0))
    assert re.search(r"`.+` is right, but `.+` is off.*\. ", first_call_only(lambda value: np.asarray(value) + 9))
    assert re.search(
        r"`.+` is right, but `.+` is a .+ where .+ is asked", first_call_only(lambda value: np.zeros((7, 7)))
    )


@each(FUNCTIONS)
def test_a_function_that_changes_what_it_is_given_is_told(exercise):
    def answer(*arguments):
        result = exercise.expected(*arguments)
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                argument += 1
            elif isinstance(argument, list):
                argument.append(0)
        return result

    result = exercise.check(answer)
    mutable = exercise.id not in ("2.4", "3.5", "6.5", "7.4")
    assert result.right is (not mutable) and ("changes what it was given" in result.message) is mutable


@each(FUNCTIONS)
def test_a_function_that_is_written_but_not_handed_over_is_named(exercise, capsys):
    _, cell = cells_of(exercise)
    name = exercise.expected.__name__
    names = {"quiz": quiz, "right": exercise.expected}
    exec(cell, names)
    assert "Put your answer in place of the three dots" in capsys.readouterr().out  # nothing is written yet
    for body, says in (("right(*_)", f"`{name}` is written: put `answer = {name}`"), ("1 / 0", "three dots and run")):
        exec(f"def {name}(*_):\n    return {body}\nanswer = ...\nquiz.check({exercise.id!r}, answer)", names)
        assert says in capsys.readouterr().out


# -------------------------------------------------------- answers that learners gave


@pytest.mark.parametrize(
    "id, answer, says",
    [
        ("0.5", lambda loss, trained: loss[trained:].mean() / loss[:trained].mean(), "right."),
        ("3.3", lambda mask: np.maximum(mask.cumsum(-1) - 1, 0), "right."),
        ("3.3", lambda mask: (mask.cumsum(-1) - 1) * mask, "right."),
        ("2.1", 0.88, "more digits"),
        ("2.1", 0.881, "right."),
        ("1.1", 3 - 5, "second “be”"),
        ("1.5", [[0, 0, 1], [0, 0, 0], [2, 0, 1], [2, 1, 1], [0, 1, 0], [2, 1, 0]], "first at [2, 1]"),
        ("1.5", [[0, 0, 1], [0, 0, 0], [2, 1, 1], [2, 1, 1], [0, 1, 0], [2, 1, 0]], "RoPE leaves the input alone"),
        ("2.4", lambda q, k: np.where(np.tri(q, k, k - q), 0, -np.inf), "added to scores"),
        ("2.4", lambda q, k: np.tri(q, k, k - q, dtype=bool), "right."),
        ("4.5", lambda *a: np.where(np.tri(len(a[0])), quiz.exercises(4)["4.5"].expected(*a), -np.inf), "from a mask"),
        ("4.1", np.zeros((3, 2)), 'one letter in quotation marks, from "a" to "d"'),
        ("7.2", 295.2, "right."),
        ("3.1", 1_179_649, "Which rows"),
        ("2.5", lambda layer, x, order: np.abs(layer(x[order]) - layer(x)[order]).max() + 1e-15, "right."),
        ("6.5", lambda *a: quiz.exercises(6)["6.5"].expected(*a).round(3), "more digits"),
    ],
)
def test_what_learners_answered(id, answer, says):
    assert says in quiz.check(id, answer).message


def test_choices_ignore_case_and_need_a_hint_each():
    letter = quiz.choice("9.4", "b", right="Yes.", a="The other.")
    assert letter.check(" B ").right is True
    assert "The other." in letter.check("A").message
    assert '"a" to "b"' in letter.check("c").message and '"a" to "b"' in letter.check(2).message


@pytest.mark.parametrize("id", ["9.1", "5.99", "five", "", 5.1, None, "-1.1", "8.1"])
def test_an_exercise_that_does_not_exist_is_named(id):
    with pytest.raises(ValueError, match="no exercise"):
        quiz.check(id, 1)


def test_a_result_prints_once_and_shows_nothing_more(capsys):
    result = quiz.Result(True, "right.")
    assert result._ipython_display_() is None and capsys.readouterr().out == ""
