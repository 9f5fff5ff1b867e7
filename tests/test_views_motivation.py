"""The pictures of chapter 0: attention by loops, and the measured losses of the file and of the models themselves."""

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from posviz import lab, views
from posviz.lab.results import by_position
from posviz.views.motivation import ORDERS
from posviz.views.parts import ENCODINGS

VECTORS = {"dog": (1, 0), "bites": (0, 1), "man": (1, 1)}
RECORDED = Path(lab.__file__).parent / "results.json"


def mixes(order, numbered):
    """({word: vector}, {word: mix}) by loops; the position vectors are (sin k, cos k)."""
    before, after = {}, {}
    for k, word in enumerate(order.split()):
        before[word] = [VECTORS[word][0] + numbered * math.sin(k), VECTORS[word][1] + numbered * math.cos(k)]
    for word, x in before.items():
        fits = [math.exp(x[0] * y[0] + x[1] * y[1]) for y in before.values()]
        after[word] = [sum(fit * y[i] for fit, y in zip(fits, before.values())) / sum(fits) for i in (0, 1)]
    return before, after


def test_the_orders_are_all_orders_of_the_three_words():
    assert {tuple(order.split()) for order in ORDERS} == set(itertools.permutations(VECTORS))
    assert len(ORDERS) == 6


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_the_points_are_the_words_before_and_after_attention(order, numbered):
    live, _, sentence = views.WhoBitWhom().drawn(order=order, numbered=numbered)
    same = 0
    sides = mixes(order, numbered), mixes("dog bites man", numbered)
    for side, names, now, first in zip(live.points, live.names, *sides):
        assert names.get_offsets()[:, 0] == pytest.approx([now[word][0] for word in VECTORS])
        for point, ring, move, word in zip(live.points[side], live.rings[side], live.moves[side], VECTORS):
            assert np.transpose(move.get_data()) == pytest.approx(np.array([first[word], now[word]]))
            assert np.ravel(point.get_data()) == pytest.approx(now[word])
            assert np.ravel(ring.get_data()) == pytest.approx(first[word])
            assert ring.get_color() == point.get_color()
        same = sum(now[word] == pytest.approx(first[word]) for word in VECTORS)
    told = {word: (float(x), float(y)) for word, x, y in re.findall(r"(\w+) \((-?[\d.]+), (-?[\d.]+)\)", sentence)}
    assert list(told) == order.split()
    for word, mix in mixes(order, numbered)[1].items():
        assert told[word] == pytest.approx(mix, abs=0.0051)
    asks = "In another order, which points will leave theirs?" in sentence
    assert asks == (order == "dog bites man") and (asks or f"{same} of the 3 words" in sentence)
    assert same == (3 if not numbered or order == "dog bites man" else 0)


def recorded(name):
    rows = json.loads(RECORDED.read_text(encoding="utf-8"))["by_position"]
    return np.array(next(row["loss"] for row in rows if (row["encoding"], row["seed"]) == (name, 1)))


@pytest.mark.parametrize("encoding, name", [("RoPE", "rope"), ("ALiBi", "alibi"), ("no encoding", "none")])
@pytest.mark.parametrize("length", [192, 512, 1024])
def test_the_curves_are_the_recorded_losses_up_to_the_length(encoding, name, length):
    live, _, sentence = views.LossAlongText().drawn(encoding=encoding, beside="Sandwich", length=length)
    losses = recorded(name), recorded("sandwich"), recorded("learned")
    for line, loss, end in zip(live.lines[::-1], losses, (length, length, 128), strict=True):
        x, y = line.get_data()
        assert x.tolist() == [16 * i + 8 for i in range(end // 16)]
        assert np.array_equal(y, loss[: end // 16])
    trained, last = recorded(name)[4:8].mean(), recorded(name)[length // 16 - 4 : length // 16].mean()
    assert f"A text of {length:,} bytes" in sentence
    assert f"{encoding} {trained:.2f} and {last:.2f} ({last / trained:.2f} times)" in sentence
    assert (
        live.lines[0].axes.get_ylim()[0] <= min(y) and max(recorded("sinusoidal")) <= live.lines[0].axes.get_ylim()[1]
    )


def test_a_learned_table_stops_at_its_last_row():
    live, _, sentence = views.LossAlongText().drawn(encoding="learned table", length=1024)
    assert [len(line.get_xdata()) for line in live.lines] == [8, 64, 8]
    assert "then it stops: no vector for 128" in sentence


def test_at_the_trained_length_nothing_is_compared():
    sentence = views.LossAlongText().drawn()[2]
    assert f"RoPE {recorded('rope')[4:8].mean():.2f}, ALiBi {recorded('alibi')[4:8].mean():.2f}, learned" in sentence
    assert sentence.endswith("What will more text do to each?") and "times" not in sentence


def test_every_encoding_has_its_curve_and_no_torch_is_needed():
    assert set(by_position) == set(ENCODINGS.values()) == set(lab.ENCODINGS)
    assert all(len(loss) == (8 if name == "learned" else 64) for name, loss in by_position.items())


@pytest.mark.parametrize("name", ["alibi", "learned"])
def test_the_recorded_losses_are_those_of_the_shipped_models(name):
    length = 128 if name == "learned" else 1024
    loss = lab.loss_by_position(lab.load(name), length)
    for block in range(length // 16):
        assert recorded(name)[block] == pytest.approx(loss[:, 16 * block : 16 * block + 16].mean(), abs=0.01)
