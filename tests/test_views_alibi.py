"""The pictures of chapter 7 against loops and the recorded file, and its workbench, trained for a few steps."""

import json
import math
import re
from pathlib import Path

import ipywidgets
import numpy as np
import pytest
import torch

from posviz import lab, views
from posviz.lab.results import METHODS, SEEDS, recall
from posviz.lab.results import ratio as ratios
from posviz.views.alibi import reach

ROOT = Path(__file__).parent.parent
RESULTS = json.loads((Path(lab.__file__).parent / "results.json").read_text(encoding="utf-8"))
LENGTHS, DISTANCES = [128, 256, 512, 1024], [16, 32, 48, 64, 96, 128, 192, 256]


def row(part, encoding, change, seed):
    return next(r for r in RESULTS[part] if (r["encoding"], r["change"], r["seed"]) == (encoding, change, seed))


@pytest.mark.parametrize(
    "heads, head, length, symmetric", [(8, 1, 12, False), (8, 8, 64, True), (4, 2, 2, False), (16, 3, 5, True)]
)
def test_bias_and_weights_equal_loops(heads, head, length, symmetric):
    live, _, sentence = views.BiasAndWeights().drawn(heads=heads, head=head, length=length, symmetric=symmetric)
    slope = 2 ** (-8 * head / heads)
    bias, weights = live.bias.get_array(), live.weights.get_array()
    for query in range(length):
        visible = range(length if symmetric else query + 1)
        total = sum(math.exp(-slope * abs(query - key)) for key in visible)
        for key in range(length):
            if key not in visible:
                assert bias.mask[query, key] and weights.mask[query, key]
            else:
                assert bias[query, key] == pytest.approx(-slope * abs(query - key))
                expected = math.exp(-slope * abs(query - key)) / total
                assert weights[query, key] == pytest.approx(max(expected, 1e-12), rel=1e-9)
    assert live.slopes.get_ydata() == pytest.approx([2 ** (-8 * h / heads) for h in range(1, heads + 1)])
    assert np.ravel(live.chosen.get_data()) == pytest.approx([head, slope])
    assert f"Head {head} of {heads}, slope {slope:.4g}." in sentence
    row = weights[length // 2].filled(0)
    left, right = row[: length // 2].sum(), row[length // 2 + 1 :].sum()
    told = f"itself {row[length // 2]:.3f}, all keys on its left {left:.3f} and all on its right {right:.3f}."
    assert told in sentence
    assert f"{length // 2} back, has bias {-slope * (length // 2):.4g} and gets" in sentence


def test_random_scores_are_added_to_the_bias_and_every_row_adds_up_to_one():
    live = views.BiasAndWeights().drawn(content="random scores", length=64, head=8)[0]
    weights = live.weights.get_array().filled(0)
    assert weights.sum(axis=1) == pytest.approx(np.ones(64))
    bias = live.bias.get_array()
    scores = np.log(weights[40, :41]) - bias[40, :41].data
    other = views.BiasAndWeights().drawn(content="random scores", length=64, head=5)[0]
    again = np.log(other.weights.get_array()[40, :41].data) - other.bias.get_array()[40, :41].data
    assert (scores - scores[0]) == pytest.approx(again - again[0])
    assert 0.7 < scores.std() < 1.3


def test_a_head_never_lies_beyond_the_last_one():
    explorer = views.BiasAndWeights().explorer(heads=8, head=8)
    explorer.controls["heads"].value = 3
    assert "Head 3 of 3, slope 0.25. Of 12 tokens" in explorer.sentence
    explorer.controls["heads"].value = 8
    assert "Head 8 of 8" in explorer.sentence  # as it was
    explorer.controls["head"].value = 16
    assert explorer.controls["heads"].value == 16 and "Head 16 of 16" in explorer.sentence
    explorer.close()


@pytest.mark.parametrize("slope", [1.0, 0.5, 0.0884, 1 / 64, 1 / 1024])
@pytest.mark.parametrize("keys", [1, 128, 1024])
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_reach_is_what_counting_gives(slope, keys, share):
    weights = [math.exp(-slope * distance) for distance in range(keys)]
    seen, count = 0.0, 0
    while seen < share * sum(weights) * (1 - 1e-12):
        seen += weights[count]
        count += 1
    assert reach(slope, keys, share) == count


@pytest.mark.parametrize("exponent, heads, length", [(4.0, 8, 1024), (1.0, 12, 8192), (10.0, 1, 128), (0.0, 8, 1024)])
def test_the_reach_picture_shows_weights_and_reaches(exponent, heads, length):
    live, _, sentence = views.ReachAndSlope().drawn(exponent=exponent, heads=heads, length=length)
    distance, weights = live.weights.get_data()
    assert len(distance) == 128 and weights == pytest.approx([math.exp(-d * 2**-exponent) for d in range(128)])
    for share in (0.5, 0.99):
        assert live.here[share].get_xdata() == [2**-exponent]
        assert live.here[share].get_ydata() == [reach(2**-exponent, length, share)]
        assert len(live.heads[share].get_xdata()) == heads
        slopes, reaches = live.reach[share].get_data()
        assert reaches[8] == reach(0.25, length, share) and slopes[8] == 0.25
    pattern = r"nearest (\S+) gets? half .* nearest (\S+) get 99 %.* 99 % is (\S+) tokens, the longest (\S+)\."
    told = re.search(pattern, sentence)
    assert (told[1] == "1") == ("gets half" in sentence)
    reaches = live.heads[0.99].get_ydata()
    expected = [reach(2**-exponent, length, 0.5), reach(2**-exponent, length, 0.99), min(reaches), max(reaches)]
    assert [int(number.replace(",", "")) for number in told.groups()] == expected


@pytest.mark.parametrize("length", LENGTHS[1:])
@pytest.mark.parametrize("distance", [16, 128, 256])
def test_every_method_stands_where_it_was_measured(length, distance):
    live, _, sentence = views.EveryMethod().drawn(length=length, distance=distance)
    flat, far = np.ones((2, len(METHODS)), bool)
    for y, (name, method) in enumerate(METHODS.items()):
        measured = []
        for seed in SEEDS:
            if (*method, seed) in recall and (*method, seed) in ratios:
                ratio = row("rows", *method, seed)["ratio"][LENGTHS.index(length) - 1]
                share = row("recall", *method, seed)["accuracy"][DISTANCES.index(distance)]
                measured.append([ratio, share])
                flat[y] &= ratio < 1.1
                far[y] &= share > 0.5
        assert live.methods[name].get_xydata().tolist() == measured
        (left, right), (low, high) = live.methods[name].axes.get_xlim(), live.methods[name].axes.get_ylim()
        assert all(left < ratio < right and low < share < high for ratio, share in measured)
    assert len(live.names.get_paths()) == len(METHODS)
    assert f"The loss of {flat.sum()} of {len(METHODS)} grows" in sentence and f"and {far.sum()} copy more" in sentence
    both = [name for name, good in zip(METHODS, flat & far) if good]
    listed = f"{len(both)} methods" if len(both) >= 7 else ", ".join(both) or "none"
    assert sentence.endswith(f"Both: {listed}.")


def test_the_workbench_shows_all_shipped_models_and_yours():
    losses, shares = [2.0, 2.1, 2.2, 2.5], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25]
    view = views.Workbench("Mine", losses, shares)
    live, _, sentence = view.drawn(beside="T5")
    assert live.own[0].get_ydata() == losses and live.own[1].get_ydata() == shares
    assert np.array_equal(live.beside[0].get_ydata(), row("rows", "t5", None, 1)["loss"])
    assert np.array_equal(live.beside[1].get_ydata(), row("recall", "t5", None, 1)["accuracy"])
    assert len(live.all[0]) == len(live.all[1]) == len(lab.ENCODINGS)
    assert "Mine: 2.00 at 128 bytes, 2.50 at 1,024, 25% copied from 256 back." in sentence
    relative = view.drawn(beside="RoPE", loss="relative to 128 bytes")[0]
    assert relative.own[0].get_ydata() == pytest.approx([1, 1.05, 1.1, 1.25])
    assert relative.beside[0].get_ydata()[1:] == pytest.approx(row("rows", "rope", None, 1)["ratio"], abs=1e-4)
    live, _, sentence = views.Workbench().drawn()
    assert "Yours is not trained yet." in sentence and not any(len(own.get_xdata()) for own in live.own)


def workbench_cells():
    cells = json.loads((ROOT / "notebooks" / "07_alibi.ipynb").read_text(encoding="utf-8"))["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells}


def test_the_workbench_of_the_chapter_trains_its_example_and_shows_it(capsys):
    """The cells as they stand, with a few steps in place of 0."""
    cells = workbench_cells()
    train = cells["workbench-train"].replace("steps = 0 ", "steps = 3 ")
    assert train != cells["workbench-train"]
    *body, picture = train.strip().splitlines()
    names = {}
    for part in (cells["setup"], cells["workbench-class"], "\n".join(body)):
        exec(compile(part, "workbench", "exec"), names)
    loss, far = names["loss"], names["far"]
    assert loss.shape == (4,) and far.shape == (8,)
    assert 3 < loss[0] < 6 and (0 <= far).all() and (far <= 1).all()
    assert "loss [" in capsys.readouterr().out
    explorer = eval(picture, names)
    assert "Squared: " in explorer.sentence
    own = names["workbench"].drawn()[0].own
    assert np.array_equal(own[0].get_ydata(), loss) and np.array_equal(own[1].get_ydata(), far)
    explorer.close()
    ipywidgets.Widget.close_all()


def test_the_ideas_for_the_challenges_can_be_trained():
    cells = workbench_cells()
    ideas = re.findall(r"```python\n(.*?)\n```", cells["workbench-challenges"], re.S)
    assert len(ideas) == 2
    for idea in ideas:
        names = {}
        exec(cells["setup"] + "\nimport torch\n" + idea, names)
        encoding = names[re.search(r"class (\w+)", idea)[1]]()
        model = lab.train(encoding, steps=2)
        assert model.losses[1] < model.losses[0] < 6
        q = k = torch.zeros(1, 2, 300, 32)
        bias = encoding.bias(q, k, 0)
        assert bias.shape[-2:] == (300, 300)
        assert (bias.exp().diff(dim=-1)[..., -1, :] >= 0).all()  # farther is never better
