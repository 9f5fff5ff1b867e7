"""Exercise checks that answer at once: right, not answered yet, or a hint that names the likely mistake. And bets.

A notebook calls `check("5.1", answer)` and `bet("5.1")`; both are declared in `posviz/quiz/<stem>.py`.
"""

import copy
import html
import importlib
import inspect
import io
import re
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from numbers import Real

import numpy as np

from posviz.chapters import STEMS

_nudged = set()  # ids of the exercises whose nudge this kernel has shown since they were last right


@dataclass(frozen=True)
class Result:
    """What a check found: `right` is True, False, or None when there is no answer yet; `message` is what is printed."""

    right: bool | None
    message: str
    known: bool = True  # False for a wrong answer that no hint knows

    def _ipython_display_(self):
        """Nothing more to show: the message has been printed."""


@dataclass(frozen=True)
class Exercise:
    """One exercise. `read` makes {name: array} of an answer and refuses other kinds; `check` compares these arrays."""

    id: str
    expected: object
    wrong: tuple  # of (wrong answer, hint)
    right: str
    nudge: str
    formula: str
    within: float
    read: object

    def check(self, answer, nudged=False):
        """The Result for an answer; where no hint knows a wrong one, the nudge, or the formula once `nudged`."""
        if answer is ...:
            return Result(None, "not answered yet. Put your answer in place of the three dots and run the cell again.")
        try:
            given, expected = self.read(answer), self.read(self.expected)
            off = self._off(given, expected)
            if not off:
                return Result(True, f"right. {self.right}")
            for mistake, hint in self.wrong:
                if not self._off(given, self.read(mistake)):
                    return Result(False, f"not yet. {hint}")
            remark = self._remark(given, expected, off)
        except _Refused as reason:
            return Result(False, f"not yet. {reason}")
        return Result(False, f"not yet. {remark}{self.formula if nudged else self.nudge}", known=False)

    def _off(self, given, value):
        """The names of the arrays in which two answers differ."""
        return [name for name in given if given[name].shape != value[name].shape or self._far(name, given, value).any()]

    def _far(self, name, given, value):
        return ~np.isclose(given[name], value[name], rtol=1e-7, atol=self.within)

    def _remark(self, given, expected, off):
        """What can be said of an answer that no hint knows: its form, its digits, where it is right and where not."""
        name, right = off[0], [name for name in given if name not in off]
        got, want, but = given[name], expected[name], f"{right[0]} is right, but {name}" if right else name
        if got.shape != want.shape:
            raise _Refused(f"{but} is {_kind(got)} where {_kind(want)} is asked for.")
        if not np.isfinite(got).all():
            raise _Refused(f"{but} holds a value that is not a finite number.")
        if self.within and any(np.allclose(got, want.round(digits), rtol=1e-9) for digits in (1, 2, 3)):
            raise _Refused("Right so far, but rounded too far: give more digits.")
        place = np.argwhere(self._far(name, given, expected))[0].tolist()
        return f"{but} is off{f', first at {place}' if place else ''}. " if right or place else ""


class _Refused(Exception):
    """The answer cannot be compared, or need not be any further; the text says why."""


def number(id, expected, *wrong, within=0, right, nudge, formula):
    """An exercise answered by a number or an array of numbers; up to `within` apart counts as equal.

    `wrong` are (likely wrong answer, hint) pairs. What no hint knows gets `nudge`, the second time `formula`.
    """

    def read(answer):
        return {"The answer": _array(answer, f"Answer with {_kind(expected)}").squeeze()}

    return Exercise(id, expected, wrong, right, nudge, formula, within, read)


def choice(id, expected, *, right, **wrong):
    """An exercise answered by a letter; `wrong` holds a hint for each of the others: a="…", c="…"."""
    letters = sorted({expected, *wrong})

    def read(answer):
        letter = str(answer).strip("[](),.'\" \n\t").lower()  # "B ", "b)" and ["b"] are b too
        if letter not in letters:
            raise _Refused(f'Answer with one letter in quotation marks, from "a" to "{letters[-1]}".')
        return {"The answer": np.array(ord(letter))}

    return Exercise(id, expected, tuple(wrong.items()), right, "", "", 0, read)


def function(id, expected, *wrong, probes, right, nudge, formula):
    """An exercise answered by a function, compared with `expected` on each tuple of arguments in `probes`."""
    name = expected.__name__

    def read(answer):
        if not callable(answer):
            raise _Refused(f"Answer with the function itself, without calling it: `answer = {name}`.")
        results = {}
        for probe in probes:
            call = f"`{name}({', '.join(map(_shown, probe))})`"
            results[call] = _run(answer, probe, f"{next(iter(results))} runs, but {call}" if results else call)
        return results

    return Exercise(id, expected, wrong, right, nudge, formula, 1e-9, read)


@dataclass(frozen=True)
class Bet:
    """A prediction that a reader commits to: a click on one of `options` shows whether it is `right`, and the `result`.

    A row of buttons without script or kernel, so that they work in a notebook, on a page and on a slide alike.
    """

    id: str
    question: str
    options: tuple  # short texts, two to five
    right: str  # one of them
    result: str  # a sentence with the number that decides

    def _repr_mimebundle_(self, include=None, exclude=None):
        button = "border:1px solid #767676;border-radius:6px;padding:4px 12px;cursor:pointer;display:inline-block"
        said = {o: f"You bet “{o}”: {'right' if o == self.right else 'lost'}. {self.result}" for o in self.options}
        row = "".join(
            f'<details name="bet-{self.id}"><summary style="{button}">{html.escape(option)}</summary>'
            f'<p style="position:absolute;left:0;right:0;bottom:0;margin:0">{html.escape(words)}</p></details>'
            for option, words in said.items()
        )
        room = re.sub(r"\S", "n", max(said.values(), key=len))  # unseen: nothing below moves when a text appears
        page = (
            f'<div class="posviz-bet" style="position:relative">'
            f"<p><b>Bet {self.id}.</b> {html.escape(self.question)}</p>"
            f'<div style="display:flex;flex-wrap:wrap;gap:8px">{row}</div>'
            f'<p aria-hidden="true" style="visibility:hidden;margin:8px 0 0">{room}</p></div>'
        )
        return {"text/plain": f"Bet {self.id}. {self.question} {' | '.join(self.options)}", "text/html": page}


def exercises(chapter):
    """The exercises of a chapter (0 to 7), by id."""
    return _declared(chapter, Exercise)


def bets(chapter):
    """The bets of a chapter (0 to 7), by id."""
    return _declared(chapter, Bet)


def _declared(chapter, kind):
    module = importlib.import_module(f"posviz.quiz.{STEMS[int(chapter)]}")
    return {value.id: value for value in vars(module).values() if isinstance(value, kind)}


def _find(id, declared, kind):
    try:
        return declared(id.partition(".")[0])[id]
    except (KeyError, ValueError, IndexError, AttributeError):
        raise ValueError(f"there is no {kind} {id!r}; write it as chapter.number, such as '5.1'") from None


def bet(id):
    """The Bet `id` (such as "5.1"), which shows itself at the end of a cell. ValueError for one that does not exist."""
    return _find(id, bets, "bet")


def check(id, answer):
    """Print, in one line, whether `answer` solves exercise `id` (such as "5.1"), and return the Result.

    Raises ValueError for an exercise that does not exist.
    """
    exercise = _find(id, exercises, "exercise")
    result = exercise.check(answer, nudged=id in _nudged)
    if not result.known:
        _nudged.add(id)
    elif result.right:
        _nudged.discard(id)
    if answer is ... and callable(exercise.expected):
        name = exercise.expected.__name__
        with suppress(KeyError, _Refused):  # the caller has not written it
            exercise.read(inspect.currentframe().f_back.f_globals[name])
            result = Result(None, f"not answered yet. `{name}` is written: put `answer = {name}` in place of the dots.")
    print(f"Exercise {id}: {result.message}")
    return result


def _run(function, probe, call):
    """What the function returns for a copy of `probe`, as an array."""
    arguments, printed = copy.deepcopy(probe), io.StringIO()
    try:
        with redirect_stdout(printed):
            result = function(*arguments)
    except Exception as error:
        raise _Refused(f"{call} stops with {type(error).__name__}: {error}") from None
    print(end=printed.getvalue())
    if result is ...:
        raise _Refused(f"{call} still returns the three dots: put the result in their place.")
    if result is None:
        raise _Refused(f"{call} {'prints, and ' * bool(printed.getvalue())}returns None: end its body with `return`.")
    if not all(map(np.array_equal, arguments, probe)):
        raise _Refused(f"{call} changes what it was given: let the function work on a copy.")
    return _array(result, f"{call} must return numbers", truth=True)


def _array(answer, asked, truth=False):
    """A number, an array, a tensor or lists of these as floats; with `truth`, or in a list, True is 1 and False 0."""
    answer = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(answer, list | tuple | range):
        parts = [_array(part, asked, truth=True) for part in answer]
        if len({part.shape for part in parts}) > 1:
            raise _Refused(f"{asked}; got rows of different lengths.")
        return np.array(parts, float)
    if not isinstance(answer, Real) or isinstance(answer, bool) and not truth:
        raise _Refused(f"{asked}; got {type(answer).__name__}.")
    return np.array(answer, float)


def _shown(argument):
    """An argument as a sentence names it."""
    if isinstance(argument, np.ndarray):
        return f"array({argument.tolist()})" if argument.size <= 10 else f"array of shape {argument.shape}"
    return getattr(argument, "__name__", repr(argument))


def _kind(array):
    """What an array is in words, by its shape."""
    sizes = " × ".join(map(str, np.shape(array)))
    return ("one number", f"a list of {sizes} numbers", f"a table of {sizes} numbers")[min(np.ndim(array), 2)]
