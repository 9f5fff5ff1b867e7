"""The pictures of chapter 2: weights, counter and swaps equal loops written here, at several states."""

import math
import re

import numpy as np
import pytest

from posviz import views
from posviz.views.why import ORDERS, WORDS


def loop_weights(q, k, mask):
    """Attention weights by the formula, one entry at a time."""
    n, d = q.shape
    weights = np.zeros((n, n))
    for m in range(n):
        keys = range(m + 1) if mask else range(n)
        exps = {j: math.exp(sum(q[m, i] * k[j, i] for i in range(d)) / math.sqrt(d)) for j in keys}
        for j in keys:
            weights[m, j] = exps[j] / sum(exps.values())
    return weights


def loop_word_weights(words, positions, mask):
    draw = np.random.RandomState(4)
    vectors, w_q, w_k = draw.normal(size=(4, 8)), draw.normal(size=(8, 8)) / 2, draw.normal(size=(8, 8)) / 2
    x = np.array([vectors[WORDS.index(word)] for word in words])
    if positions:
        for k in range(4):
            for i in range(4):
                x[k, 2 * i] += math.sin(k / 10000 ** (2 * i / 8))
                x[k, 2 * i + 1] += math.cos(k / 10000 ** (2 * i / 8))
    return loop_weights(x @ w_q, x @ w_k, mask)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_reordered_tokens_show_both_orders_and_the_change(order, positions, mask):
    live, _, sentence = views.ReorderedTokens().drawn(order=order, positions=positions, mask=mask)
    words = order.split()
    before, after = loop_word_weights(WORDS, positions, mask), loop_word_weights(words, positions, mask)
    assert np.allclose(np.ma.getdata(live.before.get_array()), before)
    assert np.allclose(np.ma.getdata(live.after.get_array()), after)
    change = [
        [after[words.index(a), words.index(b)] - before[WORDS.index(a), WORDS.index(b)] for b in WORDS] for a in WORDS
    ]
    assert np.allclose(live.change.get_array(), change)
    for word, key, query in zip(WORDS, live.keys, live.queries):
        assert key.get_text() == query.get_text() == word
        assert key.get_position()[0] == query.get_position()[1] == words.index(word)
    if order == ORDERS[0]:
        assert "nothing is moved" in sentence
    else:
        largest = float(re.search(r"weight is (\d\.\d+)", sentence)[1])
        assert largest == pytest.approx(np.abs(change).max(), abs=6e-4)
        assert ("moved along" in sentence) == (not positions and not mask)


def test_hidden_keys_are_left_as_paper():
    live = views.ReorderedTokens().drawn(mask=True)[0]
    for image in (live.before, live.after):
        assert np.ma.getmaskarray(image.get_array()).tolist() == [[j > i for j in range(4)] for i in range(4)]
    assert not np.ma.getmaskarray(views.ReorderedTokens().drawn()[0].after.get_array()).any()


@pytest.mark.parametrize("position, score", [(0, 0.0), (9, 0.0), (20, 2.0), (62, 4.0)])
def test_the_counter_gives_the_weight_of_the_first_token(position, score):
    live, _, sentence = views.FirstTokenCounter().drawn(position=position, score=score)
    weights = []
    for query in range(64):
        exps = [math.exp(score)] + [1.0] * query
        weights.append(exps[0] / sum(exps))
    assert np.allclose(live.weights.get_ydata(), weights)
    assert live.here.get_xdata() == [position] and np.allclose(live.here.get_ydata(), weights[position])
    seen, now, following, less = re.search(
        r"sees (\d+) keys? .*weight (\d\.\d+)\. .*gives (\d\.\d+): (\d\.\d+) less", sentence
    ).groups()
    assert int(seen) == position + 1
    assert [float(now), float(following)] == [round(w, 4) for w in weights[position : position + 2]]
    assert float(less) == round(weights[position] - weights[position + 1], 4)


def test_with_equal_scores_the_counter_reads_one_over_the_number_of_keys():
    live = views.FirstTokenCounter().drawn()[0]
    assert np.allclose(1 / live.weights.get_ydata(), np.arange(1, 65))


@pytest.mark.parametrize(
    "layers, swap, mask", [(1, 2, True), (2, 2, True), (4, 0, True), (3, 5, True), (4, 2, False), (1, 5, False)]
)
def test_swapped_tokens_show_the_change_of_every_output(layers, swap, mask):
    live, _, sentence = views.SwappedTokens().drawn(layers=layers, swap=swap, mask=mask, swapped=True)
    draw = np.random.RandomState(0)
    x, weights = draw.normal(size=(8, 8)), draw.normal(size=(4, 3, 8, 8)) / math.sqrt(8)

    def outputs(x):
        for w_q, w_k, w_v in weights[:layers]:
            x = x + loop_weights(x @ w_q, x @ w_k, mask) @ x @ w_v
        return x

    order = list(range(8))
    order[swap], order[swap + 1] = swap + 1, swap
    first, second = outputs(x), outputs(x[order])
    change = [math.dist(second[order.index(t)], first[t]) / math.hypot(*first[t]) for t in range(8)]
    assert np.allclose(live.changes.get_ydata(), change)
    assert np.allclose(live.swapped.get_ydata(), [change[swap], change[swap + 1]])
    assert live.swapped.get_xdata() == [swap, swap + 1]
    assert f"{sum(c > 1e-9 for c in change)} of 8 outputs change" in sentence
    assert f"by {change[-1]:.1%}." in sentence


def test_one_masked_layer_hides_the_swap_from_later_tokens_and_two_show_it():
    live = views.SwappedTokens().drawn()[0]
    for swap in range(6):
        live.update(layers=1, swap=swap, mask=True, swapped=True)
        one = live.changes.get_ydata() > 1e-9
        live.update(layers=2, swap=swap, mask=True, swapped=True)
        two = live.changes.get_ydata() > 1e-9
        assert one.tolist() == [token in (swap, swap + 1) for token in range(8)]
        assert two.tolist() == [token >= swap for token in range(8)]
        live.update(layers=4, swap=swap, mask=False, swapped=True)
        assert not (live.changes.get_ydata() > 1e-9).any()


def test_before_the_swap_and_in_the_first_order_the_picture_asks():
    live, _, sentence = views.SwappedTokens().drawn()
    assert not live.changes.get_ydata().any() and live.swapped.get_xdata() == [2, 3]
    assert sentence.endswith("How many of the 8 outputs will change? Swap them.")
    live, _, sentence = views.ReorderedTokens().drawn()
    assert not live.change.get_array().any() and sentence.endswith("In another order, will weights change?")
