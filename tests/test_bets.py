"""Bets: what a reader sees, and that the option called right is what the course's own code finds."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import posviz
from posviz import lab, quiz, sinusoidal, t5_bucket, transformer_xl_terms
from posviz.chapters import STEMS
from posviz.lab.results import SEEDS, loss, question, ratio, recall
from posviz.views import absolute

ROOT = Path(__file__).parent.parent
BETS = {id: bet for chapter in range(len(STEMS)) for id, bet in quiz.bets(chapter).items()}

# The option that is right, found by running code, and the numbers that its sentence must name.
FOUND = {}


def found(id):
    """Registers what the decorated function finds for the bet."""
    return lambda find: FOUND.setdefault(id, find)


@found("0.1")
def share_of_comparisons():
    """LLaMA-7B, causal: 4 operations a comparison and feature, 2 for each weight and token."""
    shares = [4 * 4096 * 32 * (length + 1) / 2 / (2 * 6.7e9) for length in (2048, 8192, 32_768)]
    return f"about {shares[0]:.0%}".replace("%", " %"), [f"{share:.0%}".replace("%", " %") for share in shares]


@found("0.2")
def flat_at_1024():
    times = {name: ratio[name.lower(), None, 1][2] for name in ("RoPE", "ALiBi")}
    assert ("learned", None, 1) not in loss  # as trained it has no row for position 128
    return min(times, key=times.get), [f"{number:.2f} times" for number in times.values()]


@found("0.3")
def with_more_before():
    short, long = loss["rope", None, 1][0], loss["rope", None, 1][2]
    return "it rises" if long > short else "it falls: more help", [f"{short:.2f}", f"{long:.2f}"]


@found("1.1")
def score_far_from_the_start():
    q, k = np.array([1.0, 2, 3, 4]), np.array([0.5, -1, 2, 1.5])
    near, far, turned = (posviz.rope(q, m) @ posviz.rope(k, n) for m, n in ((3, 1), (1000, 998), (1, 3)))
    return "it stays" if np.isclose(far, near) else "it changes", [f"{near:.6f}", f"{turned:.6f}"]


@found("1.2")
def unmoved():
    draw = np.random.default_rng(0)
    x, w_q, w_k = draw.normal(size=(6, 8)), draw.normal(size=(8, 8)), draw.normal(size=(8, 8))

    def scores(name, at):
        tokens = x + posviz.sinusoidal(at, 8) * (name == "sinusoidal")
        q, k = tokens @ w_q, tokens @ w_k
        turned = (posviz.rope(q, at), posviz.rope(k, at)) if name == "RoPE" else (q, k)
        return turned[0] @ turned[1].T - 0.5 * abs(at[:, None] - at) * (name == "ALiBi")

    at = np.arange(6)
    names = ("sinusoidal", "RoPE", "ALiBi", "no encoding")
    kept = [name for name in names if np.allclose(scores(name, at), scores(name, at + 1000))]
    assert np.array_equal(scores("no encoding", at), scores("no encoding", 2 * at))
    return "{}, {} and {}".format(*kept), ["0.000"]


def chapter_2_layers(count, tokens=6):
    draw = np.random.RandomState(0)
    return draw.normal(size=(tokens, 8)), draw.normal(size=(count, 3, 8, 8)) / 2


@found("2.1")
def as_before():
    x, ((w_q, w_k, w_v),) = chapter_2_layers(1)
    order = [3, 0, 5, 1, 4, 2]
    before, after = (posviz.attention_weights(x @ w_q, x @ w_k) @ (x @ w_v) for x in (x, x[order]))
    place, token = abs(after - before).max(), abs(after - before[order]).max()
    return "those of each token" if token < 1e-12 else "none", [f"{token:.3f}", f"{place:.3f}"]


@found("2.2")
def outputs_of_equal_tokens():
    zeros = np.zeros((8, 1))
    outputs = posviz.attention_weights(zeros, zeros, mask=np.tri(8, dtype=bool)) @ np.ones(8)
    return "no" if np.ptp(outputs) < 1e-12 else "yes", ["1.0"]


@found("2.3")
def first_change():
    x, layers = chapter_2_layers(2)
    before, after, changes = x, x[[3, 0, 4, 1, 2, 5]], []
    for w_q, w_k, w_v in layers:
        before, after = (
            x + posviz.attention_weights(x @ w_q, x @ w_k, mask=np.tri(6, dtype=bool)) @ (x @ w_v)
            for x in (before, after)
        )
        changes.append(abs(after[-1] - before[-1]).max())
    first = next(number for number, change in enumerate(changes) if change > 1e-9)
    return ("one", "two")[first], [f"{change:.3f}" for change in changes]


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


@found("4.1")
def terms_that_change():
    x, w_q, w_k = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[1, 0], [0.5, 1]]), np.array([[1, 0.5], [0, 1]])
    near, far = sinusoidal(range(3), 2), sinusoidal(range(100, 103), 2)
    change = [
        max(abs(a[m] @ w_q @ w_k.T @ b[n] - c[m] @ w_q @ w_k.T @ d[n]) for m in range(3) for n in range(3))
        for a, b, c, d in ((x, x, x, x), (x, near, x, far), (near, x, far, x), (near, near, far, far))
    ]
    moved = [str(number) for number, size in enumerate(change, 1) if size > 0.1]
    return f"{', '.join(moved[:-1])} and {moved[-1]}", [f"{round(size, 3)}" for size in change]


@found("4.2")
def buckets_of_three_distances():
    one, two, three = t5_bucket([-112, -113, -128], bidirectional=False).tolist()
    begins = min(distance for distance in range(200) if t5_bucket(-distance, bidirectional=False) == 31)
    return {False: "all three", True: "113 and 128"}[one != two == three], [str(one), str(two), str(begins)]


@found("4.3")
def what_term_3_sees():
    random = np.random.RandomState(0)
    q, k, r = random.normal(size=(3, 4, 2))
    other_q, other_k, other_r = random.normal(size=(3, 4, 2))
    u, v = random.normal(size=(2, 2))
    third = transformer_xl_terms(q, k, r, u, v).bias_content
    same = [
        np.allclose(np.tril(third), np.tril(transformer_xl_terms(*arrays, u, v).bias_content))
        for arrays in ((other_q, k, r), (q, other_k, r), (q, k, other_r))
    ]
    return {(True, False, True): "the key's word"}[tuple(same)], []


@found("5.1")
def moved_together():
    scores = [(np.exp(0.3j * m) * np.conj((0.6 + 0.8j) * np.exp(0.3j * n))).real for m, n in ((3, 1), (13, 11))]
    stays = np.isclose(*scores)
    return "it stays" if stays else "it changes", [f"{scores[0]:+.3f}", f"{10 * 0.3:.0f} radians"]


@found("5.2")
def come_round():
    turns = 2048 * posviz.rope_frequencies(128) / (2 * np.pi)
    round_at = {length: int((length / 2048 * turns >= 1).sum()) for length in (1000, 2048)}
    assert 0.6 < round_at[2048] / 64 < 0.7
    return "about two thirds", [f"{round_at[2048]} of 64", f"{round_at[1000]}", f"{turns[-1]:.3f}"]


@found("5.3")
def nearest_patch():
    below, above = (np.cos(distance * posviz.rope_frequencies(128, 100)).mean() for distance in (16, 1))
    right = "the far end of the row above" if above > below else "the one right below it"
    return right, [f"{above:.3f}", f"{below:.3f}"]


@found("6.1")
def who_stays_flat():
    times = {name: ratio[name, None, 1][-1] for name in ("alibi", "t5", "rope")}
    flat = {name for name in times for seed in SEEDS if ratio[name, None, seed][-1] < 1.1}
    return {("alibi",): "ALiBi alone"}[tuple(flat)], [f"{value:.2f}" for value in times.values()]


@found("6.2")
def which_pairs_bring_the_loss_back():
    names = ("as trained", "slow two held at 64", "fast six held at 64", "all held at 64")
    plain, *held = (question["held", name, 1] for name in names)
    assert abs(held[0][1] - plain[0]) < 0.05 < held[1][1] - plain[0]
    return "the slow two, with new angles", [f"{losses[1]:.2f}" for losses in held]


@found("6.3")
def which_change_is_best():
    ends = {
        change: np.mean([loss["rope", change, seed][-1] for seed in SEEDS]) for change in ("ntk", "yarn", "clamped")
    }
    cut = np.mean([loss["rope", None, seed][0] for seed in SEEDS])
    assert cut < min(ends.values())
    return "throw away all but the last 128 bytes", [f"{value:.2f}" for value in (*ends.values(), cut)]


@found("7.1")
def loss_in_a_hard_window():
    model = lab.load("rope")
    lengths = lab.loss_by_context(model, [128, 512]).mean(axis=1)

    class Window:
        rotate = staticmethod(model.encoding.rotate)

        @staticmethod
        def bias(q, k, layer):
            return (lab.distances(q, k) >= 64) * -1e9

    model.encoding = lab.LanguageModel(Window(), vocabulary=2, width=8, layers=1, heads=1, length=8).encoding
    windowed = lab.loss_by_context(model, [512]).mean()
    assert abs(windowed - lengths[0]) < 0.03 and lengths[1] > 3
    return "as low as at 128 bytes", [f"{windowed:.2f}", f"{lengths[0]:.2f}"]


@found("7.2")
def copied_from_far():
    far, near = ([recall["alibi", None, seed][at] for seed in (1, 2)] for at in (7, 2))
    assert all(0.55 < share < 0.65 for share in far)
    return "about six in ten", [f"{share:.2f}" for share in (*far, *near)]


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
