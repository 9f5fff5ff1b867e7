"""The pictures of chapter 6: their artists hold the formulas' and the recorded numbers, found here by other means."""

import itertools
import json
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from posviz import lab
from posviz.lab.results import SEEDS
from posviz.lab.results import loss as loss_of
from posviz.views.extrapolation import (
    AttentionMicroscope,
    BiasShapes,
    EntropyByLength,
    LossByLength,
    Needle,
    RealModel,
    Spectrum,
    XPosDecay,
    difference,
)
from posviz.views.parts import ENCODINGS

TABLE = Path(lab.__file__).parent / "results.json"


def record(encoding, change, seed):
    """The row of the recorded table, read from the file."""
    (row,) = [
        row
        for row in json.loads(TABLE.read_text())["rows"]
        if (row["encoding"], row["change"], row["seed"]) == (encoding, change, seed)
    ]
    return row


def softmax(scores):
    exps = [math.exp(score - max(scores)) for score in scores]
    return [e / sum(exps) for e in exps]


# Recorded loss and entropy


@pytest.mark.parametrize(
    "model, encoding, change",
    [
        ("RoPE + YaRN + log-n", "rope", "yarn+log_n"),
        ("RoPE + NTK-aware, s = 8 always", "rope", "ntk × 8"),
        ("learned table + all rows: stretched", "learned", "interpolate"),
        ("ALiBi + log-n", "alibi", "log_n"),
    ],
)
def test_losses_are_the_recorded_ones_of_both_seeds(model, encoding, change):
    view, _, sentence = LossByLength().drawn(model=model, length=1024)
    for seed, line in enumerate(view.lines["with the change"], 1):
        assert list(line.get_xdata()) == [128, 256, 512, 1024]
        assert list(line.get_ydata()) == record(encoding, change, seed)["loss"]
    loss = record(encoding, change, 1)["loss"]
    assert f"loss {loss[0]:.2f} at 128 bytes, {loss[3]:.2f} at 1,024" in sentence
    ends = [record(encoding, change, seed)["loss"] for seed in SEEDS if (encoding, change, seed) in loss_of]
    assert ", ".join(f"{loss[3] / loss[0]:.2f}" for loss in ends) + " times" in sentence
    view, _, sentence = LossByLength().drawn(model=model)  # no longer than in training: a question
    assert all(len(line.get_xdata()) == 1 for line in view.lines["with the change"])
    assert sentence.endswith("the trained length. In longer texts, will it stay?") and " 1,024" not in sentence


def test_a_model_that_was_trained_once_shows_its_one_training_and_no_verdict():
    once = next((name for name, (key, _) in EntropyByLength.MODELS.items() if (key, None, 2) not in loss_of), None)
    if once is None:
        pytest.skip("every model has a second training")
    view, _, sentence = EntropyByLength().drawn(model=once)
    first, *others = view.loss["as it is"]
    assert list(first.get_ydata()) == list(loss_of[EntropyByLength.MODELS[once][0], None, 1])
    assert not any(len(line.get_xdata()) for line in others) and "a second seed is missing" in sentence


def test_every_recorded_measurement_can_be_chosen_and_nothing_else():
    recorded = {(row["encoding"], row["change"]) for row in json.loads(TABLE.read_text())["rows"]}
    offered = LossByLength.MODELS.values()
    assert set(offered) == recorded | {("learned", None)} and len(offered) == len(set(offered))
    assert LossByLength.controls[0].options == tuple(LossByLength.MODELS)


def test_all_other_models_stand_in_grey_behind():
    view, figure, _ = LossByLength().drawn(length=1024)
    for name, line in view.others.items():
        encoding = ENCODINGS[name]
        expected = (
            [] if encoding == "rope" else record(encoding, "random" if encoding == "learned" else None, 1)["loss"]
        )
        assert list(line.get_ydata()) == (expected[:1] if encoding == "learned" else expected)
    assert len(view.names.get_paths()) == len(ENCODINGS)  # each line has its name, the chosen one too
    low, high = figure.axes[0].get_ylim()
    assert all(low < loss < high for row in json.loads(TABLE.read_text())["rows"] for loss in row["loss"])


def test_a_model_as_it_is_draws_no_change():
    view, _, sentence = LossByLength().drawn(model="ALiBi", length=1024)
    assert all(len(line.get_xdata()) == 0 for line in view.lines["with the change"])
    assert [len(line.get_xdata()) for line in view.lines["as trained"][:2]] == [4, 4]


def test_a_learned_table_ends_where_its_rows_end():
    view, _, sentence = LossByLength().drawn(model="learned table", length=512)
    assert [list(line.get_xdata()) for line in view.lines["as trained"][:2]] == [[128], [128]]
    assert "no row, so there is no answer" in sentence


@pytest.mark.parametrize(
    "model, encoding, change",
    [("RoPE + NTK-aware", "rope", "ntk"), ("ALiBi", "alibi", None), ("no encoding", "none", None)],
)
def test_entropy_and_loss_with_and_without_log_n_are_the_recorded_ones(model, encoding, change):
    view, figure, sentence = EntropyByLength().drawn(model=model)
    changes = {"as it is": change, "with log-n": f"{change}+log_n" if change else "log_n"}
    seeds = [seed for seed in SEEDS if all((encoding, each, seed) in loss_of for each in changes.values())]
    rows = {words: [record(encoding, change, seed) for seed in seeds] for words, change in changes.items()}
    for words, of_seeds in rows.items():
        for at, row in enumerate(of_seeds):
            assert list(view.entropy[words][at].get_ydata()) == row["entropy"]
            assert list(view.loss[words][at].get_ydata()) == row["loss"]
    more = [after["loss"][3] - before["loss"][3] for before, after in zip(rows["as it is"], rows["with log-n"])]
    mean, error = statistics.mean(more), statistics.stdev(more) / math.sqrt(len(seeds))
    assert f"changes the loss by {mean:+.2f} ± {2 * error:.2f}: it" in sentence
    verdict = "no difference" if abs(mean) <= 2 * error else "it helps." if mean < 0 else "it hurts."
    assert verdict in sentence
    flat = [statistics.mean(row["entropy"][at] for row in rows["as it is"]) for at in (0, 3)]
    assert f"from {flat[0]:.2f} to {flat[1]:.2f}" in sentence


@pytest.mark.parametrize(
    "more, verdict",
    [([-0.2, -0.1, -0.3], "helps"), ([0.1, 0.12, 0.11], "hurts"), ([-0.1, 0.12, 0.01], "makes no difference")],
)
def test_a_change_helps_or_hurts_only_beyond_two_standard_errors(more, verdict):
    assert f"it {verdict}" in difference(np.array(more))


def test_entropy_fits_into_the_picture_and_stays_below_ln_n():
    left, right = EntropyByLength().figure().axes
    for row in json.loads(TABLE.read_text())["rows"]:
        assert all(left.get_ylim()[0] < h < math.log(n) for h, n in zip(row["entropy"], (128, 256, 512, 1024)))
        assert all(right.get_ylim()[0] < loss < right.get_ylim()[1] for loss in row["loss"])


# The spectrum


def scaled_by_hand(scaling, speed, pair, dim, base, trained, fast, factor, times):
    turns = trained * speed / (2 * math.pi)
    if scaling == "none":
        return speed
    if scaling == "PI":
        return speed / factor
    if scaling in ("NTK-aware", "dynamic NTK"):
        by = times if scaling == "dynamic NTK" else factor
        return speed / by ** (2 * pair / (dim - 2))
    if scaling == "YaRN":
        low, high = (dim * math.log(trained / (beta * 2 * math.pi)) / (2 * math.log(base)) for beta in (fast, 1))
        low, high = max(math.floor(low), 0), min(math.ceil(high), dim - 1)
        keep = 1 - (pair - low) / (high - low)
    else:
        slow, fast = (1, fast) if scaling == "YaRN, the paper's ramp" else (1, 4)
        keep = (turns - slow) / (fast - slow)
    keep = min(max(keep, 0), 1)
    return keep * speed + (1 - keep) * speed / factor


@pytest.mark.parametrize(
    "model, dim, base, trained, fast",
    [("LLaMA", 128, 1e4, 2048, 32), ("Llama 3", 128, 5e5, 8192, 32), ("our small model", 16, 100.0, 128, 4)],
)
def test_wavelengths_and_new_angles_are_those_of_each_pair(model, dim, base, trained, fast):
    view = Spectrum().drawn()[0]
    low, high = view.used.axes.get_ylim()
    for scaling, (factor, times) in itertools.product(Spectrum.controls[1].options, [(4, 4), (1, 16), (16, 3)]):
        sentence = view.update(model=model, scaling=scaling, factor=factor, times=times)
        wave, new = [], []
        for pair in range(dim // 2):
            speed = base ** (-2 * pair / dim)
            scaled = scaled_by_hand(scaling, speed, pair, dim, base, trained, fast, factor, times)
            wave.append(2 * math.pi / scaled / trained)
            comes_round = trained * speed >= 2 * math.pi
            new.append(not comes_round and times * trained * scaled > trained * speed * (1 + 1e-6))
        wave, new = np.array(wave), np.array(new)
        assert np.allclose(view.safe.get_ydata(), wave[~new]) and np.allclose(view.new.get_ydata(), wave[new]), scaling
        assert len(view.new.get_xdata()) == new.sum() and f"{new.sum()} of {dim // 2} pairs" in sentence
        assert view.used.get_ydata()[0] == times
        assert low < wave.min() and wave.max() < high


@pytest.mark.parametrize(
    "values, says",
    [
        ({}, "23 of 64 pairs meet new angles, up to 4.00 times"),
        ({"scaling": "PI"}, "0 of 64 pairs meet new angles. One token turns the fastest pair by 0.25 rad"),
        ({"scaling": "NTK-aware"}, "22 of 64 pairs meet new angles, up to 1.62 times"),
        ({"scaling": "NTK-aware", "factor": 8}, "1 of 64 pairs meets new angles, up to 1.03 times"),
        ({"scaling": "NTK-aware", "factor": 9}, "0 of 64 pairs"),
        ({"scaling": "dynamic NTK"}, "22 of 64 pairs"),
        ({"scaling": "YaRN"}, "0 of 64 pairs meet new angles. One token turns the fastest pair by 1.00 rad"),
        (
            {"scaling": "YaRN, the paper's ramp"},
            "0 of 64 pairs meet new angles. One token turns the fastest pair by 1.00",
        ),
        ({"scaling": "Llama 3's"}, "0 of 64 pairs meet new angles. One token turns the fastest pair by 1.00 rad"),
        ({"model": "our small model", "times": 2}, "2 of 8 pairs meet new angles"),
    ],
)
def test_the_answers_in_the_chapter_are_what_the_spectrum_shows(values, says):
    assert says in Spectrum().drawn(**values)[2]


# Penalties


@pytest.mark.parametrize("head, r1, r2", [(4, 1.0, 0.5), (1, 0.5, 1.0), (8, 3.0, 2.0)])
def test_penalties_and_their_reach_are_those_of_the_formulas(head, r1, r2):
    view, _, sentence = BiasShapes().drawn(head=head, r1=r1, r2=r2)
    x = np.arange(4096)
    rules = {
        "ALiBi": -(2.0**-head) * x,
        "KERPLE log": -r1 * np.log(1 + r2 * x),
        "KERPLE power": -r1 * x**r2,
        "Sandwich": (sum(np.cos(x * 10000 ** (-t / 64)) for t in range(1, 65)) - 64) / head,
    }
    for name, bias in rules.items():
        shown = view.bias[name].get_xdata().tolist()
        assert shown[0] == 1 and shown[-1] == 4095
        assert np.allclose(view.bias[name].get_ydata(), bias[shown])
        within = np.exp(bias).cumsum() / np.exp(bias).sum()  # the largest is 0, at distance 0
        assert np.allclose(view.within[name].get_ydata(), within[shown])
        reach = next(x for x in range(4096) if within[x] >= 0.99)
        assert f"{reach:,} ({name})" in sentence


def test_alibi_is_kerple_with_power_1():
    view = BiasShapes().drawn(head=1, r1=0.5, r2=1.0)[0]
    assert np.array_equal(view.bias["ALiBi"].get_ydata(), view.bias["KERPLE power"].get_ydata())


@pytest.mark.parametrize("values, says", [({"head": 8}, "1,178 (ALiBi), 3,784 (KERPLE log)")])
def test_the_answers_in_the_chapter_are_what_the_penalties_show(values, says):
    assert says in BiasShapes().drawn(**values)[2]


# xPos


@pytest.mark.parametrize("scale_base, gamma", [(512, 0.4), (64, 2.0), (2048, 0.1)])
def test_the_score_of_xpos_is_that_of_scaled_and_turned_vectors(scale_base, gamma):
    view, _, sentence = XPosDecay().drawn(scale_base=scale_base, gamma=gamma)
    distance, shown = view.xpos.get_data()
    for at in (0, 7, 128, 512):
        score, factors = 0.0, []
        for pair in range(32):
            factors.append(((2 * pair / 64 + gamma) / (1 + gamma)) ** (distance[at] / scale_base))
            score += factors[-1] * math.cos(distance[at] * 10000 ** (-2 * pair / 64))
        assert shown[at] == pytest.approx(score / 32)
        assert view.ceiling.get_ydata()[at] == pytest.approx(sum(factors) / 32)
        assert abs(shown[at]) <= view.ceiling.get_ydata()[at] + 1e-12
    (at,) = np.flatnonzero(distance == 512)
    fastest = (gamma / (1 + gamma)) ** (512 / scale_base)
    assert f"fastest pair keeps {100 * fastest:.0f} %" in sentence and f"score is {shown[at]:+.3f}" in sentence


# The needle


@pytest.mark.parametrize("needle, trained", [(9.0, 512), (6.0, 512), (2.0, 2048), (12.0, 128)])
def test_the_weight_of_the_needle_follows_each_rule(needle, trained):
    view, _, sentence = Needle().drawn(needle=needle, trained=trained, keys=32_768)
    others = np.random.RandomState(0).normal(size=2**15).tolist()
    assert view.curves["as it is"].get_xdata().tolist() == [2**e for e in range(5, 16)]
    for index, n in enumerate((32, 64, 128, 256, 512, 1024)):
        scores = [needle, *others[: n - 1]]
        ratio, difference = max(1, math.log(n) / math.log(trained)), math.log(trained) - math.log(n)
        assert view.curves["as it is"].get_ydata()[index] == pytest.approx(softmax(scores)[0])
        assert view.curves["ln L − ln n added"].get_ydata()[index] == pytest.approx(softmax(scores)[0])
        assert view.curves["ln n / ln L multiplied"].get_ydata()[index] == pytest.approx(
            softmax([ratio * score for score in scores])[0]
        )
        assert view.curves["ln L − ln n multiplied"].get_ydata()[index] == pytest.approx(
            softmax([difference * score for score in scores])[0]
        )
    last = [curve.get_ydata()[-1] for curve in view.curves.values()]
    assert f"to {last[0]:.2f} as it is" in sentence and f"to {last[2]:.2f} with the ratio" in sentence


def test_the_needle_asks_before_it_shows_more_keys_than_in_training():
    view, _, sentence = Needle().drawn()
    assert view.curves["as it is"].get_xdata()[-1] == 512
    assert sentence == "A key with score 9.0 keeps 0.91 among 512 keys. Among more, what will it keep?"


def test_the_answers_in_the_chapter_are_what_the_needle_shows():
    nine, six = (Needle().drawn(needle=score, keys=32_768)[0].curves for score in (9.0, 6.0))
    assert nine["as it is"].get_ydata()[-1] == pytest.approx(0.13, abs=0.005)
    assert nine["ln n / ln L multiplied"].get_ydata()[-1] == pytest.approx(0.96, abs=0.005)
    held = six["ln n / ln L multiplied"].get_ydata()[4:]
    assert (np.diff(held) < 0).all() and held[-1] > 5 * six["as it is"].get_ydata()[-1]
    turned = nine["ln L − ln n multiplied"].get_ydata()
    assert turned[4] == pytest.approx(1 / 512) and max(turned[5:]) < 1e-4


# The microscope


def shown(view):
    """The weights in the map, 0 where it is blank."""
    data = view.weights.get_array()
    return np.ma.filled(data, 0.0) ** 2


@pytest.mark.parametrize(
    "encoding, name, layer, head", [("RoPE", "rope", 1, 1), ("T5", "t5", 4, 3), ("no encoding", "none", 2, 4)]
)
def test_the_microscope_shows_the_weights_of_the_shipped_model(encoding, name, layer, head):
    text = "def f(x): return x $_$"
    view, _, sentence = AttentionMicroscope().drawn(text=text, encoding=encoding, layer=layer, head=head)
    weights = lab.attention(lab.load(name), text)[layer - 1, head - 1]
    assert shown(view) == pytest.approx(weights, abs=1e-6)
    assert shown(view).sum(axis=1) == pytest.approx(np.ones(len(text)), abs=1e-4)
    assert view.words == list(text.replace(" ", "␣"))
    near = distance = 0.0
    for i in range(1, len(text)):
        near += weights[i, i] + weights[i, i - 1]
        distance += sum((i - j) * weights[i, j] for j in range(i + 1))
    near, distance = near / (len(text) - 1), distance / (len(text) - 1)
    assert f"{100 * near:.0f} % of the weight goes to the byte itself" in sentence
    assert f"mean distance is {distance:.1f}" in sentence


def test_shuffling_moves_the_bytes_and_keeps_each_of_them():
    text = "one two three"
    view, _, sentence = AttentionMicroscope().drawn(text=text, shuffle=True)
    labels = view.words
    assert sorted(labels) == sorted(text.replace(" ", "␣")) and "".join(labels) != text.replace(" ", "␣")
    assert "in another order" in sentence
    other = lab.attention(lab.load("rope"), "".join(labels).replace("␣", " "))[0, 0]
    assert shown(view) == pytest.approx(other, abs=1e-6)


def test_without_an_encoding_layer_1_compares_two_letters_alike_in_any_order():
    """Scores depend on the two letters only, so the ratio of two weights of one row does too."""
    before, after = (lab.attention(lab.load("none"), text)[0, 2] for text in ("abcd", "cbad"))
    assert before[3, 0] / before[3, 2] == pytest.approx(after[3, 2] / after[3, 0], rel=1e-4)
    before, after = (lab.attention(lab.load("rope"), text)[0, 2] for text in ("abcd", "cbad"))
    assert before[3, 0] / before[3, 2] != pytest.approx(after[3, 2] / after[3, 0], rel=1e-2)


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_answers_in_the_chapter_are_what_the_microscope_shows(shuffle):
    """A head that goes by place: whatever the letters, it looks at the letter itself and the one before."""
    sentence = AttentionMicroscope().drawn(encoding="RoPE", head=2, shuffle=shuffle)[2]
    assert int(re.search(r"(\d+) % of the weight goes to the byte itself", sentence)[1]) >= 90


@pytest.mark.parametrize("text", ["", "a"])
def test_too_short_a_text_is_answered_in_words(text):
    view, _, sentence = AttentionMicroscope().drawn(text=text)
    assert "at least two letters" in sentence and np.ma.getmaskarray(view.weights.get_array()).all()


def test_each_letter_stands_before_the_middle_of_its_row_and_its_column():
    view = AttentionMicroscope().drawn(text="abcba")[0]
    for letters, axis in ((view.across, 0), (view.down, 1)):
        paths, places = letters.get_paths(), letters.get_offsets()
        assert len(paths) == 5 and np.array_equal(paths[0].vertices, paths[4].vertices)
        assert not np.array_equal(paths[0].vertices.shape, paths[1].vertices.shape)
        along = places[:, axis] if axis == 0 else 1 - places[:, axis]
        assert along == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9]) and places[:, 1 - axis] == pytest.approx(np.zeros(5))


def test_any_character_is_read_as_its_bytes_and_shown_over_them():
    view, _, sentence = AttentionMicroscope().drawn(text="é语\tx α" + "语" * 40)
    assert view.words[:8] == ["é", "e8", "af", "ad", "09", "x", "␣", "α"]
    assert view.across.get_offsets()[:8, 0] * 48 == pytest.approx([1, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 9])
    assert len(view.words) == 48 - 2 and "the first 48 of 130 bytes" in sentence
    view, _, sentence = AttentionMicroscope().drawn(text="狗咬人 dog")
    assert "head 1, 13 bytes:" in sentence and view.words[-4:] == ["␣", "d", "o", "g"]
    assert view.words[:9] == [f"{byte:02x}" for byte in "狗咬人".encode()]
    shuffled = AttentionMicroscope().drawn(text="é é", shuffle=True)[0]
    assert sum(1 if len(word) < 3 and word != "é" else 2 for word in shuffled.words) == 5


def test_half_a_character_is_no_obstacle():
    view, _, sentence = AttentionMicroscope().drawn(text="dog \ud83d cat")  # half of a pair of UTF-16
    assert "?" in view.words and "9 bytes" in sentence


def test_the_microscope_fits_a_laptop_screen():
    assert AttentionMicroscope.size[1] <= 5.5  # with two rows of controls and the sentence: 730 pixels


def test_the_pictures_need_no_torch_until_a_model_is_looked_into():
    script = (
        "import sys; from posviz.views import extrapolation as e;"
        "[kind().drawn() for kind in (e.LossByLength, e.EntropyByLength, e.Spectrum, e.BiasShapes)];"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_no_sentence_promises_a_number_that_is_not_finite():
    for kind in (LossByLength, EntropyByLength, Spectrum, BiasShapes, XPosDecay, Needle):
        assert not re.search(r"\b(nan|inf)\b", kind().drawn()[2])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_real_model_shows_the_recorded_means_of_2048_tokens(number):
    measured = json.loads((TABLE.parent / "smollm2.json").read_text(encoding="utf-8"))
    name = list(dict.fromkeys(run["text"] for run in measured["runs"]))[number - 1]
    view, _, sentence = RealModel().drawn(text=RealModel.TEXTS[number], used=16_384)
    runs = [run for run in measured["runs"] if run["text"] == name]
    assert {run["mode"] for run in runs} == set(view.curves)
    for run in runs:
        bins, curve = run["loss_by_bin"], view.curves[run["mode"]]
        assert list(curve.get_ydata()) == pytest.approx([sum(bins[k : k + 4]) / 4 for k in range(0, len(bins), 4)])
        assert curve.get_xdata()[-1] == 15_360 and curve.get_xdata()[0] == (9216 if run["mode"] == "cut" else 1024)
        assert f"{curve.get_ydata()[-1]:.2f}" in sentence
        # The first token has no loss, so the last four bins hold 2,047 of the last 2,048.
        assert run["loss_of_last_2048"] == pytest.approx(curve.get_ydata()[-1], abs=12 / 2048)


def test_all_texts_of_the_real_model_are_their_mean():
    means = {mode: curve.get_ydata() for mode, curve in RealModel().drawn(used=16_384)[0].curves.items()}
    each = [RealModel().drawn(text=text, used=16_384)[0].curves for text in RealModel.TEXTS[1:]]
    for mode, mean in means.items():
        assert list(mean) == pytest.approx(sum(curves[mode].get_ydata() for curves in each) / 3)


def test_the_real_model_is_read_as_far_as_asked_and_nearer_by():
    view, figure, sentence = RealModel().drawn()
    assert sentence.endswith("Longer than in training, what will each do?")
    read = {mode: len(curve.get_xdata()) for mode, curve in view.curves.items()}
    assert read == {"plain": 4, "pi": 4, "ntk": 4, "yarn": 4, "cut": 0}
    assert RealModel().drawn(zoom=True)[1].axes[0].get_ylim() == (1, 3.5) and figure.axes[0].get_ylim() == (1, 8)
