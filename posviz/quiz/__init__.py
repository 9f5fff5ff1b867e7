"""Exercise checks that answer at once: right, not answered yet, or a hint that names the likely mistake.

A notebook calls `check("5.1", answer)`. The exercises of chapter 5 stand in `posviz/quiz/rope.py` as a list EXERCISES
of `number`, `choice` and `function` objects.
"""

import copy
import importlib
from dataclasses import dataclass, field

import numpy as np

from posviz.chapters import STEMS


@dataclass(frozen=True)
class Result:
    """What a check found: `right` is True, False, or None when there is no answer yet; `message` is what was printed."""

    right: bool | None
    message: str

    def _ipython_display_(self):
        """Nothing more to show: the message has been printed."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: how to compare, the right answer, the message for it, and (wrong answer, hint) pairs."""

    id: str
    expected: object
    right: str
    wrong: tuple
    otherwise: object = field(repr=False)  # the hint for any other answer, as a function of it
    compare: object = field(repr=False)

    def check(self, answer):
        if answer is ...:
            return Result(None, "not answered yet. Put your answer in place of the three dots and run the cell again.")
        try:
            if self.compare(answer, self.expected):
                return Result(True, f"right. {self.right}")
            for mistake, hint in self.wrong:
                if self.compare(answer, mistake):
                    return Result(False, f"not yet. {hint}")
        except _Unusable as problem:
            return Result(False, f"not yet. {problem}")
        return Result(False, f"not yet. {self.otherwise(answer)}")


class _Unusable(Exception):
    """The answer is not of a form that can be compared; the text says what form is."""


def number(id, expected, *, within, right, wrong, otherwise):
    """An exercise answered by a number or an array of numbers: a list, a NumPy array or a tensor will do.

    within     the absolute difference still counted as right
    wrong      [(wrong answer, hint), ...]: the likely mistakes
    otherwise  the hint for any other answer
    """
    shape = np.shape(expected)

    def compare(answer, value):
        given = _array(answer)
        if given.size == 1 and np.size(value) == 1:
            given, value = given.reshape(()), np.reshape(value, ())
        return given.shape == np.shape(value) and bool((np.abs(given - np.asarray(value, float)) <= within).all())

    def hint(answer):
        given = _array(answer)
        if given.size != np.size(expected):
            return f"The answer has shape {given.shape}; what is asked for has shape {shape}."
        return otherwise

    return Exercise(id, expected, right, tuple(wrong), hint, compare)


def choice(id, expected, *, options, right, wrong):
    """An exercise answered by one of `options` (letters or words, upper or lower case).

    wrong   {option: hint} for every option but the right one
    """
    known = {option.lower() for option in options}
    if {expected.lower(), *map(str.lower, wrong)} != known:
        raise ValueError(f"exercise {id}: every option but {expected!r} needs its hint; got {sorted(wrong)}")

    def compare(answer, value):
        if not isinstance(answer, str) or answer.strip().lower() not in known:
            raise _Unusable(f"Answer with one of {', '.join(repr(option) for option in options)}; got {answer!r}.")
        return answer.strip().lower() == value.lower()

    return Exercise(id, expected, right, tuple(wrong.items()), str, compare)


def function(id, expected, *, probes, right, wrong, otherwise, within=1e-9):
    """An exercise answered by a function, compared with `expected` on every tuple of arguments in `probes`.

    wrong   [(a function with a likely mistake, hint), ...]
    """

    def compare(answer, reference):
        if not callable(answer):
            raise _Unusable(f"Answer with a function, without calling it; got {type(answer).__name__}.")
        same = True
        for arguments in probes:
            try:
                got = answer(*copy.deepcopy(arguments))
            except Exception as error:
                raise _Unusable(f"The function stops with {type(error).__name__}: {error}") from None
            if got is None:
                raise _Unusable("The function returns None: is a `return` missing?")
            got, want = _array(got), _array(reference(*copy.deepcopy(arguments)))
            if reference is expected and got.shape != want.shape:
                raise _Unusable(f"The result has shape {got.shape} where {want.shape} is right.")
            same = same and got.shape == want.shape and bool(np.allclose(got, want, rtol=within, atol=within))
        return same

    return Exercise(id, expected, right, tuple(wrong), lambda answer: otherwise, compare)


def exercises(chapter):
    """The exercises of a chapter (0 to 7), by id."""
    module = importlib.import_module(f"posviz.quiz.{STEMS[int(chapter)]}")
    return {exercise.id: exercise for exercise in module.EXERCISES}


def check(id, answer):
    """Print, in one line, whether `answer` solves exercise `id` (such as "5.1"), and return the Result.

    Raises ValueError for an exercise that does not exist.
    """
    try:
        exercise = exercises(id.partition(".")[0])[id]
    except (KeyError, ValueError, IndexError, AttributeError):
        raise ValueError(f"there is no exercise {id!r}; write it as chapter.number, such as '5.1'") from None
    result = exercise.check(answer)
    print(f"Exercise {id}: {result.message}")
    return result


def _array(answer):
    """`answer` as a float array; what is not made of finite numbers is refused in words."""
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().numpy()
    try:
        array = np.asarray(answer)
    except ValueError:
        raise _Unusable("The rows of the answer have different lengths.") from None
    if array.dtype.kind not in ("iuf" if array.ndim == 0 else "biuf"):  # an array of True and False is one of 1 and 0
        raise _Unusable(f"Answer with a number or an array of numbers; got {type(answer).__name__} {answer!r}.")
    array = array.astype(float)
    if not np.isfinite(array).all():
        raise _Unusable("The answer contains a value that is not a finite number.")
    return array
