"""The pictures of chapter 1: what they show equals loops and published descriptions, at several states."""

import re

import numpy as np
import pytest

from posviz import views
from posviz.views.parts import _outline
from posviz.views.what import KIND, METHODS, SEES, WHAT_IT_DOES, WHERE, WORDS, method_scores


@pytest.mark.parametrize("start, inserted, query", [(0, 0, "the"), (4, 0, "bit"), (8, 3, "man"), (7, 2, "big")])
def test_the_sliding_sentence_counts_positions_and_distances(start, inserted, query):
    live, _, sentence = views.SlidingSentence().drawn(start=start, inserted=inserted, query=query)
    text = [None] * start + ["the", "dog", "bit", "one", "big"] + ["old"] * inserted + ["man"]
    places = [text.index(word) for word in WORDS]
    distances = [text.index(query) - place for place in places]
    assert live.now[0].get_ydata().tolist() == places
    assert live.now[1].get_ydata().tolist() == distances
    assert live.before[0].get_ydata().tolist() == [0, 1, 2, 3, 4, 5]
    assert live.before[1].get_ydata().tolist() == [WORDS.index(query) - i for i in range(6)]
    assert live.words.get_offsets()[:, 0].tolist() == list(range(len(text)))
    drawn = [_outline(word).vertices.tolist() for word in text[start:]]
    assert [path.vertices.tolist() for path in live.words.get_paths()][start:] == drawn
    assert live.chosen.get_x() + live.chosen.get_width() / 2 == pytest.approx(text.index(query))
    assert [int(n) for n in re.findall(r"(?:the|dog|bit|one|big|man) (-?\d+)", sentence)] == distances
    moved = sum(place != i for i, place in enumerate(places))
    longer = sum(d != WORDS.index(query) - i for i, d in enumerate(distances))
    if start or inserted:
        assert f"{moved} of 6 positions and {longer} of 6 distances" in sentence
    else:  # the question, before a move answers it
        assert "have changed" not in sentence and sentence.endswith("Which of these numbers change when it moves?")
    assert f"“{query}” stands at position {text.index(query)}." in sentence


def test_moving_changes_positions_only_and_inserting_changes_distances_across_the_new_words():
    view = views.SlidingSentence()
    for query in WORDS:
        assert "6 of 6 positions and 0 of 6 distances" in view.drawn(start=3, query=query)[2]
        across = 5 if query == "man" else 1
        assert f"1 of 6 positions and {across} of 6 distances" in view.drawn(start=0, inserted=2, query=query)[2]


@pytest.mark.parametrize("method", ["learned table", "sinusoidal", "RoPE", "T5 bias", "ALiBi"])
@pytest.mark.parametrize("start", [0, 1, 40, 120])
def test_moved_scores_show_the_scores_and_their_change(method, start):
    live, _, sentence = views.MovedScores().drawn(method=method, start=start)
    scores, first = method_scores(method, start), method_scores(method, 0)
    assert np.array_equal(live.scores.get_array(), scores)
    assert np.array_equal(live.change.get_array(), scores - first)
    stays = start == 0 or METHODS[method][1] == "distance only"
    assert np.allclose(scores, first, atol=1e-12) == stays
    if start:
        assert f"is {np.abs(scores - first).max():.2f}:" in sentence
        assert ("only the distance" in sentence) == stays
    else:
        assert "the score sees" not in sentence and sentence.endswith("will the right side stay white?")


def test_the_scores_of_two_methods_equal_loops():
    draw = np.random.RandomState(1)
    x, w_q, w_k = 1.3 * draw.normal(size=(8, 16)), draw.normal(size=(16, 16)) / 4, draw.normal(size=(16, 16)) / 4
    for m in range(8):
        for n in range(8):
            plain = (x[m] @ w_q) @ (x[n] @ w_k) / 4
            assert method_scores("ALiBi", 33)[m, n] == pytest.approx(plain - 0.5 * abs(m - n))
            turned = 0.0
            for i in range(8):
                angle = (m - n) * 10000 ** (-2 * i / 16)
                a, b = (x[m] @ w_q)[2 * i : 2 * i + 2], (x[n] @ w_k)[2 * i : 2 * i + 2]
                turned += (a @ b * np.cos(angle) + (a[0] * b[1] - a[1] * b[0]) * np.sin(angle)) / 4
            assert method_scores("RoPE", 33)[m, n] == pytest.approx(turned, abs=1e-9)


def test_the_methods_stand_where_the_papers_put_them():
    sorted_by_hand = {  # BERT, Vaswani, Dai, Raffel, He, Su, Press
        "learned table": ("input", "both positions", "learned"),
        "sinusoidal": ("input", "both positions", "fixed"),
        "Transformer-XL": ("scores", "distance only", "learned"),
        "T5 bias": ("scores", "distance only", "learned"),
        "DeBERTa": ("scores", "distance only", "learned"),
        "RoPE": ("queries and keys", "distance only", "fixed"),
        "ALiBi": ("scores", "distance only", "fixed"),
    }
    assert METHODS == sorted_by_hand and METHODS.keys() == WHAT_IT_DOES.keys()


@pytest.mark.parametrize("method", METHODS)
def test_exactly_one_box_is_right_for_each_method(method):
    live = views.SortTheMethods().drawn()[0]
    right = []
    for row, where in enumerate(WHERE):
        for half, sees in enumerate(SEES):
            for side, kind in enumerate(KIND):
                sentence = live.update(method=method, where=where, sees=sees, kind=kind, placed="")
                matches = sum(a == b for a, b in zip((where, sees, kind), METHODS[method]))
                assert live.box.get_xy() == (2 * half + side, row)
                places = [[2 * half + side + 0.5, row + y] for y in (0.85, 0.62)]
                assert live.name.get_offsets().tolist() == places[: 1 + (matches < 3)]
                said = "here" if matches == 3 else "not here"
                assert np.array_equal(live.name.get_paths()[0].vertices, _outline(said).vertices)
                assert len(live.cards.get_paths()) == (matches == 3) and f"{int(matches == 3)} of 7 placed" in sentence
                assert ("All three are right" if matches == 3 else f"right answers {matches} of 3") in sentence
                assert "enters" not in sentence  # which one is wrong would give a choice of two away
                right += [(where, sees, kind)] * (matches == 3)
    assert len(right) == 1


def test_nothing_is_judged_before_it_is_answered():
    explorer = views.SortTheMethods().explorer()
    live = explorer.drawing.view
    assert "answered 0 of 3 (" in explorer.sentence and not live.box.get_visible()
    for name, value in zip(("where", "sees", "kind"), METHODS["learned table"]):
        assert not live.box.get_visible() and "right" not in explorer.sentence
        explorer.controls[name].value = value
    assert "All three are right" in explorer.sentence and live.box.get_visible()
    explorer.controls["method"].value = "RoPE"  # the answers to the method before are no answers to this one
    assert [explorer.controls[name].value for name in ("where", "sees", "kind")] == ["?"] * 3
    assert "answered 0 of 3 (" in explorer.sentence and not live.box.get_visible()
    assert np.array_equal(live.name.get_paths()[0].vertices, _outline("RoPE?").vertices)
    assert live.name.get_offsets()[0, 1] < 0  # waits above the boxes
    explorer.close()


def test_a_method_in_its_box_stays_there_until_all_seven_are_placed():
    explorer = views.SortTheMethods().explorer()
    live = explorer.drawing.view
    for done, (method, answers) in enumerate(METHODS.items()):
        explorer.controls["method"].value = method
        assert f"{done} of 7 placed" in explorer.sentence and len(live.cards.get_paths()) == done
        for name, value in zip(("where", "sees", "kind"), answers):
            explorer.controls[name].value = value
    assert "7 of 7 placed" in explorer.sentence and explorer.values["placed"].split(", ") == list(METHODS)
    places = live.cards.get_offsets()
    boxes = [(int(y), int(x)) for x, y in places]
    for (row, column), (where, sees, kind) in zip(boxes, METHODS.values()):
        assert (WHERE[row], SEES[column // 2], KIND[column % 2]) == (where, sees, kind)
    assert len({tuple(place) for place in places}) == 7  # those of one box stand below each other
    explorer.close()
