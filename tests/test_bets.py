"""Bets: what a reader sees, and that the option called right is what the course's own code finds."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from posviz import quiz, sinusoidal
from posviz.chapters import STEMS
from posviz.views import absolute

ROOT = Path(__file__).parent.parent
BETS = {id: bet for chapter in range(len(STEMS)) for id, bet in quiz.bets(chapter).items()}

# The option that is right, found by running code, and the numbers that its sentence must name.
FOUND = {}


def found(id):
    """Registers what the decorated function finds for the bet."""
    return lambda find: FOUND.setdefault(id, find)


@found("3.1")
def rows_that_change():
    history, _ = absolute._learning(16)
    changed = np.flatnonzero((history[0] != history[-1]).any(axis=1)).tolist()
    return {(0, 15): "0 to 15", (0, 23): "all 24"}[changed[0], changed[-1]], ["16"]


@found("3.2")
def size_of_projected_scores():
    random, p = np.random.RandomState(0), sinusoidal([0, 500], 128)
    random.normal(size=(2, 128))  # the chapter draws two words first
    draws = [random.normal(size=(2, 128, 128)) / 128**0.5 for _ in range(200)]
    near, far = np.mean([np.abs(p @ w_k @ (p[0] @ w_q)) for w_q, w_k in draws], axis=0)
    alone = p @ p[0]
    numbers = [f"{value:.1f}" for value in (near, far, *alone)]
    return "about the same" if 0.8 < far / near < 1.25 else "something else", numbers


@found("3.3")
def error_beyond_the_fit():
    n, table = np.arange(640), sinusoidal(range(640), 128)
    fit = np.linalg.lstsq(np.vstack([table[:512], 0.001**0.5 * np.eye(128)]), np.r_[n[:512], np.zeros(128)], rcond=None)
    error = np.sqrt(((table @ fit[0] - n) ** 2)[512:].mean())
    return "more than 100 tokens" if error > 100 else "about 1 token", [f"{error:.0f}"]


every_bet = pytest.mark.parametrize("bet", [pytest.param(bet, id=id) for id, bet in BETS.items()])
EXAMPLE = quiz.Bet("0.9", "Is 2 < 3 & 1?", ("yes <b>", "no"), "no", "2 < 1 is false.")


def test_a_bet_shows_its_options_as_buttons_and_the_result_behind_each():
    page = EXAMPLE._repr_mimebundle_()["text/html"]
    folded = re.findall(r'<details name="bet-0.9"><summary[^>]*>(.*?)</summary><p[^>]*>(.*?)</p></details>', page)
    assert folded == [
        ("yes &lt;b&gt;", "You bet “yes &lt;b&gt;”: lost. 2 &lt; 1 is false."),
        ("no", "You bet “no”: right. 2 &lt; 1 is false."),
    ]
    seen = re.sub(r"<p[^>]*>[^<]*</p></details>", "", page)
    assert "2 &lt; 3 &amp; 1" in seen and "false" not in seen and "right" not in seen


def test_the_plain_text_asks_and_does_not_answer():
    assert EXAMPLE._repr_mimebundle_()["text/plain"] == "Bet 0.9. Is 2 < 3 & 1? yes <b> | no"


def test_no_script_and_no_address_so_that_it_works_everywhere():
    assert not re.search(r"<script|on\w+=|https?:", EXAMPLE._repr_mimebundle_()["text/html"])


@pytest.mark.parametrize("id", ["9.1", "0.99", "zero", "", None, 5.1])
def test_a_bet_that_does_not_exist_is_named(id):
    with pytest.raises(ValueError, match=f"no bet {re.escape(repr(id))}"):
        quiz.bet(id)


@every_bet
def test_the_right_option_is_the_one_that_is_found(bet):
    right, numbers = FOUND[bet.id]()
    assert bet.right == right
    assert all(number in bet.result for number in numbers), (numbers, bet.result)


@every_bet
def test_a_bet_is_short_and_has_real_alternatives(bet):
    assert 2 <= len(bet.options) == len(set(bet.options)) <= 5 and bet.right in bet.options
    assert max(map(len, bet.options)) <= 40 and len(bet.question) <= 220 and bet.question.endswith("?")
    assert len(bet.result) <= 260 and bet.result.endswith(".") and not bet.result.startswith(bet.right)


@every_bet
def test_a_bet_stands_once_in_its_chapter_and_nothing_above_it_in_the_cell_answers(bet):
    number = int(bet.id.partition(".")[0])
    chapter = json.loads((ROOT / "notebooks" / f"{number:02}_{STEMS[number]}.ipynb").read_text("utf-8"))
    cells = ["".join(cell["source"]) for cell in chapter["cells"] if cell["cell_type"] == "code"]
    assert sum(f'quiz.bet("{bet.id}")' in cell for cell in cells) == 1
    assert f'quiz.bet("{bet.id}")' in [cell.splitlines()[-1] for cell in cells if cell.strip()]
