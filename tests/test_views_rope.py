"""The pictures of chapter 5: their artists hold the formula's numbers, computed here by other means."""

import ast
import cmath
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from posviz.views.rope import (
    AnglesSeen,
    ClockWall,
    PatchesOfAnImage,
    RopeAtScale,
    RotationMatrix,
    ScoreByDistance,
    TurningPair,
)

CHAPTER = Path(__file__).parent.parent / "notebooks" / "05_rope.ipynb"


def speed(pair, dim, base):
    return base ** (-2 * pair / dim)


def tips(line):
    """End points of a line that starts at the origin."""
    x, y = line.get_data()
    assert (x[0], y[0]) == (0, 0)
    return complex(x[-1], y[-1])


def pieces(line):
    """The parts of a line between its gaps, as complex arrays."""
    points = np.asarray(line.get_xdata(), float) + 1j * np.asarray(line.get_ydata(), float)
    cuts = np.flatnonzero(np.isnan(points))
    return [part[~np.isnan(part)] for part in np.split(points, cuts + 1) if not np.isnan(part).all()]


# The turning pair


@pytest.mark.parametrize(
    "m, n, theta", [(3, 1, 0.3), (0, 0, 0.3), (40, 0, 1.0), (0, 40, 0.05), (17, 29, 0.0), (12, 31, 0.85)]
)
def test_both_vectors_and_their_score_are_those_of_complex_multiplication(m, n, theta):
    view, _, sentence = TurningPair().drawn(m=m, n=n, theta=theta)
    query, key = 1 * cmath.exp(1j * m * theta), (0.6 + 0.8j) * cmath.exp(1j * n * theta)
    score = query.real * key.real + query.imag * key.imag
    assert tips(view.query) == pytest.approx(query) and tips(view.key) == pytest.approx(key)
    assert (view.here.get_xdata()[0], view.here.get_ydata()[0]) == pytest.approx((m - n, score))
    assert f"distance {m - n} " in sentence and f"score is {score:+.3f}" in sentence
    assert f"Query at {m} (turned by {m * theta:.2f} rad), key at {n} (by {n * theta:.2f})" in sentence


def test_the_curve_is_the_score_of_every_distance():
    view = TurningPair().drawn(theta=0.45)[0]
    for distance, score in zip(*view.score.get_data(), strict=True):
        assert score == pytest.approx((cmath.exp(1j * distance * 0.45) * (0.6 - 0.8j)).real)


def test_the_arc_goes_the_short_way_from_key_to_query():
    view = TurningPair().drawn(m=20, n=3, theta=0.95)[0]
    arc = pieces(view.angle_between)[0]
    assert np.allclose(abs(arc), 0.3)
    assert arc[0] / 0.3 == pytest.approx(tips(view.key)) and arc[-1] / 0.3 == pytest.approx(tips(view.query))
    assert abs(np.angle(arc[1:] / arc[:-1]).sum()) <= math.pi


@pytest.mark.parametrize(
    "start, moved, expected",
    [
        ((3, 1), ("m", 13), (13, 11)),
        ((3, 1), ("m", 40), (40, 38)),
        ((3, 1), ("m", 0), (2, 0)),
        ((3, 1), ("n", 40), (40, 38)),
        ((3, 1), ("n", 0), (2, 0)),
        ((5, 30), ("m", 30), (15, 40)),
        ((40, 0), ("m", 0), (40, 0)),
        ((7, 7), ("n", 0), (0, 0)),
    ],
)
def test_together_the_distance_stays_and_both_stop_at_the_ends(start, moved, expected):
    explorer = TurningPair().explorer(m=start[0], n=start[1], together=True)
    before = re.search(r"score stays (\S+)\.", explorer.sentence)[1]
    explorer.controls[moved[0]].value = moved[1]
    assert (explorer.controls["m"].value, explorer.controls["n"].value) == expected
    assert expected[0] - expected[1] == start[0] - start[1]
    assert re.search(r"score stays (\S+)\.", explorer.sentence)[1] == before
    explorer.close()


def test_apart_only_the_moved_one_moves():
    explorer = TurningPair().explorer()
    explorer.controls["m"].value = 20
    assert (explorer.controls["m"].value, explorer.controls["n"].value) == (20, 1)
    assert "distance 19 " in explorer.sentence
    explorer.close()


# The wall of clocks


@pytest.mark.parametrize(
    "position, dim, base", [(100, 128, 1e4), (0, 128, 1e4), (4096, 8, 1e7), (2048, 72, 1e2), (37, 16, 1e4)]
)
def test_every_hand_stands_at_position_times_frequency(position, dim, base):
    view, _, sentence = ClockWall().drawn(position=position, dim=dim, base=base)
    hands, rims = pieces(view.hands), pieces(view.rims)
    assert len(hands) == len(rims) == dim // 2
    angles = [position * speed(pair, dim, base) for pair in range(dim // 2)]
    for hand, rim, angle in zip(hands, rims, angles, strict=True):
        direction = (hand[1] - hand[0]) / abs(hand[1] - hand[0])
        assert direction == pytest.approx(cmath.exp(1j * angle))
        assert np.allclose(abs(rim - hand[0]), abs(rim[0] - hand[0]))
        assert 0 < hand[0].real < 16 and 0 < hand[0].imag < 4
    done = sum(angle >= 2 * math.pi for angle in angles)
    assert len(pieces(view.round)) == done
    assert f"{done} of {dim // 2} pairs have come round" in sentence
    arcs = pieces(view.arcs)
    assert len(arcs) == dim // 2 - done
    for arc, hand, angle in zip(arcs, hands[done:], angles[done:], strict=True):
        swept = np.angle((arc[1:] - hand[0]) / (arc[:-1] - hand[0])).sum()
        assert swept == pytest.approx(angle, abs=1e-9)


def test_dials_do_not_touch_and_read_from_left_to_right():
    for dim in range(8, 129, 8):
        centres = [hand[0] for hand in pieces(ClockWall().drawn(dim=dim)[0].hands)]
        radius = abs(pieces(ClockWall().drawn(dim=dim)[0].rims)[0][0] - centres[0])
        gaps = [abs(a - b) for i, a in enumerate(centres) for b in centres[:i]]
        assert min(gaps) > 2 * radius
        assert centres == sorted(centres, key=lambda centre: (-round(centre.imag, 6), centre.real))


# The matrix


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("position, dim, base", [(5, 8, 1e4), (1000, 32, 1e2), (0, 2, 1e7), (77, 14, 1e4)])
def test_the_heat_map_is_the_rotation_and_blank_elsewhere(position, dim, base, layout):
    view, _, sentence = RotationMatrix().drawn(position=position, dim=dim, base=base, layout=layout)
    shown = view.matrix.get_array()
    for pair in range(dim // 2):
        a, b = (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + dim // 2)
        angle = position * speed(pair, dim, base)
        block = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        assert np.allclose(shown[np.ix_([a, b], [a, b])].filled(9), block)
        assert view.angles.get_ydata()[pair] == pytest.approx(angle % (2 * math.pi))
    assert shown.count() == 2 * dim
    assert view.matrix.get_clim() == (-1, 1)
    assert f"{dim * dim - 2 * dim} of {dim * dim} entries" in sentence
    assert f"with feature {1 if layout == 'interleaved' else dim // 2}," in sentence


# Score by distance


@pytest.mark.parametrize(
    "vectors, dim, base",
    [("equal", 128, 1e4), ("equal", 16, 1e2), ("aimed at 100", 64, 1e7), ("aimed at 100", 256, 1e2)],
)
def test_equal_and_aimed_scores_are_a_mean_of_cosines(vectors, dim, base):
    view, _, sentence = ScoreByDistance().drawn(vectors=vectors, dim=dim, base=base)
    aim = 100 if vectors == "aimed at 100" else 0
    shown = view.curve.get_ydata()
    for distance in range(0, 1001, 7):
        expected = sum(math.cos((distance - aim) * speed(pair, dim, base)) for pair in range(dim // 2)) / (dim // 2)
        assert shown[distance] == pytest.approx(expected, abs=1e-9)
    assert f"largest at distance {aim} (1.00)" in sentence
    assert view.largest.get_xdata()[0] == aim and view.largest.get_ydata()[0] == pytest.approx(1)


def test_random_scores_are_those_of_vectors_turned_one_by_one():
    view, _, sentence = ScoreByDistance().drawn(vectors="random", dim=32, base=1e4)
    q, k = np.random.RandomState(5).normal(size=(2, 256))[:, :32]
    largest = sum(math.hypot(*q[i : i + 2]) * math.hypot(*k[i : i + 2]) for i in range(0, 32, 2))
    shown = view.curve.get_ydata()
    for distance in range(0, 1001, 13):
        score = 0.0
        for pair in range(16):
            turned = complex(*q[2 * pair : 2 * pair + 2]) * cmath.exp(1j * distance * speed(pair, 32, 1e4))
            score += turned.real * k[2 * pair] + turned.imag * k[2 * pair + 1]
        assert shown[distance] == pytest.approx(score / largest)
    near, far = (sum(abs(part)) / 50 for part in (shown[:50], shown[951:]))
    assert f"{near:.2f} over the nearest 50 distances and {far:.2f} over the farthest" in sentence
    assert f"distance {int(np.argmax(shown))} " in sentence


# The patches of an image


@pytest.mark.parametrize("numbers", ["one for a patch", "row and column", "M-RoPE"])
@pytest.mark.parametrize("row, column, base", [(8, 0, 1e2), (1, 15, 1e4), (14, 7, 1e6)])
def test_the_score_of_a_patch_is_the_mean_cosine_of_its_pairs(numbers, row, column, base):
    view, _, sentence = PatchesOfAnImage().drawn(numbers=numbers, row=row, column=column, base=base)
    shown = view.scores.get_array()
    for r, c in [(0, 0), (15, 15), (row + 1, column), (row - 1, 15), (row, column)]:
        total = 0.0
        for pair in range(64):
            down, right = row - r, column - c
            if numbers == "one for a patch":
                distance = (16 * row + column) - (16 * r + c)
            elif numbers == "row and column":
                distance = right if pair % 2 else down
            else:  # sections of 16, 24, 24 pairs for time, height, width
                distance = [0] * 16 + [down] * 24 + [right] * 24
                distance = distance[pair]
            total += math.cos(distance * speed(pair, 128, base))
        assert shown[r, c] == pytest.approx(total / 64, abs=1e-9)
    assert shown[row, column] == pytest.approx(1)
    assert (view.query.get_xdata()[0], view.query.get_ydata()[0]) == (column, row)
    assert f"right below it scores {shown[row + 1, column]:.3f}" in sentence
    assert f"the last patch of the row above {shown[row - 1, 15]:.3f}." in sentence


# Angles seen


@pytest.mark.parametrize(
    "trained, used, base", [(2048, 8192, 1e4), (8192, 512, 1e4), (512, 32768, 1e7), (2048, 2048, 1e3)]
)
def test_new_angles_are_those_beyond_the_largest_of_training(trained, used, base):
    view, _, sentence = AnglesSeen().drawn(trained=trained, used=used, base=base)
    new = 0
    for pair in range(64):
        turn = 2 * math.pi / speed(pair, 128, base)
        assert view.trained.get_ydata()[pair] == pytest.approx(min(1, (trained - 1) / turn))
        assert view.used.get_ydata()[pair] == pytest.approx(min(1, (used - 1) / turn))
        new += used > trained and trained - 1 < turn
    assert len(pieces(view.unseen)) == new
    seen = sum(used_once < 2 * math.pi for used_once in ((trained - 1) * speed(pair, 128, base) for pair in range(64)))
    asks = sentence.endswith("no pair meets a new angle. In a longer text, which pairs will?")
    assert asks == (used <= trained) and f"{seen if asks else new} of 64 pairs" in sentence
    for bar in pieces(view.unseen):
        pair = round(bar[0].real)
        assert (bar[0].imag, bar[1].imag) == (view.trained.get_ydata()[pair], view.used.get_ydata()[pair])


# RoPE at scale


def times_on_a_gpu(lengths=tuple(2**n for n in range(10, 18))):
    ways = ("fused", "textbook formula", "complex numbers", "least possible")
    return {
        show: {
            way: {length: (slower * (i + 1) * length / 1e4, 1 / (i + 1)) for length in lengths}
            for i, way in enumerate(ways)
        }
        for show, slower in (("measured, forward", 1), ("measured, with backward", 3))
    }


def test_without_times_the_bytes_are_counted():
    view, _, sentence = RopeAtScale().drawn(exponent=12)
    assert [control.name for control in view.controls] == ["exponent"]
    lengths = [2**n for n in range(10, 18)]
    for way, moves in (("fused", 2), ("textbook formula", 10), ("complex numbers", 2), ("least possible", 2)):
        assert list(view.curves[way][0].get_xdata()) == lengths
        mib = [moves * (32 + 8) * 128 * length * 4 / 2**20 for length in lengths]  # 32 + 8 heads of 128, in float32
        assert list(view.curves[way][0].get_ydata()) == mib
    assert list(view.curves["textbook formula"][1].get_ydata()) == [0.2] * 8
    assert sentence == (
        "At 4,096 positions q and k of one layer hold 80 MiB. Fused, 160 MiB pass between memory and processor; "
        "the textbook formula, with what it stores on the way, moves 800 MiB."
    )


def test_with_times_the_first_picture_says_the_same():
    explorer = RopeAtScale(times=times_on_a_gpu(), where="NVIDIA X").explorer()
    assert explorer.sentence == RopeAtScale().drawn()[2]
    explorer.controls["show"].value = "measured, forward"
    assert explorer.sentence == (
        "NVIDIA X: 1,024 positions, forward: fused 0.102 ms, 2.0 times as fast as the textbook "
        "formula, at 100% of a copy's speed."
    )
    fresh = explorer.view.explorer(show="measured, forward")
    assert explorer.image.value == fresh.image.value  # limits and names of the axes moved along
    fresh.close()
    explorer.close()


@pytest.mark.parametrize("show, slower", [("measured, forward", 1), ("measured, with backward", 3)])
def test_the_curves_are_the_times(show, slower):
    view, _, sentence = RopeAtScale(times=times_on_a_gpu(), where="NVIDIA X").drawn(show=show, exponent=17)
    lengths = [2**n for n in range(10, 18)]
    assert list(view.curves["fused"][0].get_ydata()) == [slower * length / 1e4 for length in lengths]
    assert list(view.curves["textbook formula"][1].get_ydata()) == [0.5] * 8
    assert list(view.curves["least possible"][0].get_ydata()) == [4 * slower * length / 1e4 for length in lengths]
    assert (", forward and backward: " in sentence) == (slower == 3)
    low, high = view.curves["fused"][0].axes.get_ylim()
    assert low < slower * 1024 / 1e4 and 4 * slower * 2**17 / 1e4 < high


def test_the_longest_sentence_fits_below_the_picture():
    where = "torch.compile fails here, so fused runs uncompiled. NVIDIA GeForce RTX 4070 Laptop GPU"
    view = RopeAtScale(times=times_on_a_gpu(), where=where)
    assert len(view.drawn(show="measured, with backward", exponent=17)[2]) <= 220


def test_lengths_that_did_not_fit_are_said_and_the_others_shown():
    view = RopeAtScale(times=times_on_a_gpu(lengths=(1024, 2048)), where="NVIDIA X")
    live, _, sentence = view.drawn(show="measured, forward", exponent=12)
    assert sentence == "NVIDIA X: 4,096 positions, forward: memory ran out, so nothing was measured from here on."
    assert list(live.curves["fused"][0].get_xdata()) == [1024, 2048]
    nothing = RopeAtScale(times={show: {} for show in times_on_a_gpu()}, where="NVIDIA X")
    assert "memory ran out" in nothing.drawn(show="measured, with backward")[2]


# What the chapter says about the pictures, in its text and in its folded answers


@pytest.mark.parametrize(
    "view, values, says",
    [
        (ClockWall, {"position": 1000}, "36 of 64 pairs"),
        (ClockWall, {"position": 2048}, "41 of 64 pairs"),
        (ClockWall, {"position": 7}, "1 of 64 pairs has come round"),
        (ClockWall, {"position": 2048, "base": 1e6}, "27 of 64 pairs"),
        (TurningPair, {"m": 0, "n": 0}, "+0.600"),
        (TurningPair, {"m": 2, "n": 0}, "+0.947"),
        (TurningPair, {"m": 23, "n": 0}, "+0.952"),
        (RotationMatrix, {"dim": 32}, "960 of 1024 entries"),
        (PatchesOfAnImage, {"numbers": "row and column"}, "right below it scores 0.970"),
        (PatchesOfAnImage, {"numbers": "row and column"}, "row above 0.620."),
        (AnglesSeen, {"used": 8192}, "23 of 64 pairs meet"),
        (AnglesSeen, {"used": 8192}, "saw up to 0.236 rad and now reaches 0.946 rad"),
        (AnglesSeen, {}, "23 of 64 pairs have not come round. Used on 2,048, no pair meets a new angle."),
        (AnglesSeen, {"trained": 5120, "used": 8192, "base": 1e3}, "1 of 64 pairs meets"),
        (AnglesSeen, {"used": 2560}, "23 of 64 pairs"),
        (AnglesSeen, {"used": 8192, "base": 1e6}, "37 of 64 pairs meet"),
        (AnglesSeen, {"used": 8192, "base": 1e6}, "reaches 0.0102 rad"),
    ],
)
def test_the_answers_in_the_chapter_are_what_the_pictures_show(view, values, says):
    assert says in view().drawn(**values)[2]


def test_at_speed_0_3_the_best_whole_distance_is_3():
    scores = {m: float(TurningPair().drawn(m=m, n=0)[0].here.get_ydata()[0]) for m in range(10)}
    assert max(scores, key=scores.get) == 3


def test_random_scores_do_not_fade_and_equal_ones_do():
    def near_and_far(vectors, **values):
        shown = abs(ScoreByDistance().drawn(vectors=vectors, **values)[0].curve.get_ydata())
        return shown[:50].mean(), shown[-50:].mean()

    near, far = near_and_far("random")
    assert 0.5 < near / far < 2 and near < 0.1
    near, far = near_and_far("equal")
    assert near > 3 * far
    slower_near, slower_far = near_and_far("equal", base=1e7)
    assert far / near < slower_far / slower_near < 1
    steps = np.diff(ScoreByDistance().drawn(base=1e7)[0].curve.get_ydata())
    assert (steps > 0).sum() > 200 and (steps < 0).sum() > 200


# The table of models


def models_of_the_chapter():
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    (cell,) = [cell for cell in cells if "models" in cell["metadata"].get("tags", [])]
    assignment = ast.parse("".join(cell["source"])).body[0]
    return ast.literal_eval(assignment.value)


@pytest.mark.parametrize(
    "name, config",
    [("GPT-J-6B", "GPTJConfig"), ("GPT-NeoX-20B", "GPTNeoXConfig"), ("LLaMA", "LlamaConfig"), ("Gemma", "GemmaConfig")],
)
def test_the_models_are_those_of_the_published_configurations(name, config):
    transformers = pytest.importorskip("transformers")
    published = getattr(transformers, config)()
    rope = getattr(published, "rope_parameters", None) or {}
    head = getattr(published, "head_dim", None) or published.hidden_size // published.num_attention_heads
    turned = getattr(published, "rotary_dim", None) or round(head * rope.get("partial_rotary_factor", 1))
    assert models_of_the_chapter()[name] == (turned, rope.get("rope_theta", 10_000), published.max_position_embeddings)


def test_angles_are_written_without_powers_of_ten():
    assert "by 1,000 rad; the slowest pair by 0.00562 rad" in RotationMatrix().drawn(position=1000, base=1e7)[2]
    assert "e-" not in RotationMatrix().drawn(position=1, base=1e7, dim=32)[2]
    assert "saw up to 0.000263 rad and now reaches 0.00105 rad" in AnglesSeen().drawn(used=8192, base=1e7)[2]


def test_a_small_text_holds_as_many_bytes_as_it_moves():
    sentence = RopeAtScale(exponents=range(7, 12)).drawn(exponent=7)[2]
    assert "hold 2.5 MiB. Fused, 5 MiB" in sentence
    assert "hold 2,560 MiB. Fused, 5,120 MiB" in RopeAtScale().drawn(exponent=17)[2]


def test_no_curve_leaves_the_axes_of_rope_at_scale():
    times = {"measured, forward": {"fused": {1024: (1.0, 1.3)}, "textbook formula": {1024: (5.0, 0.2)}}}
    times |= {"measured, with backward": times["measured, forward"]}
    view = RopeAtScale(times=times).drawn(show="measured, forward")[0]
    assert view.axes[1].get_ylim()[1] > 1.3


def test_the_matrix_is_numbered_where_it_can_be_read_and_the_past_of_the_pair_is_on_the_left():
    view = RotationMatrix().drawn(dim=8, layout="half")[0]
    assert len(view.numbers.get_paths()) == 16 and len(view.sides[0].get_paths()) == 8
    assert len(RotationMatrix().drawn(dim=32)[0].numbers.get_paths()) == 0
    low, high = TurningPair().drawn()[1].axes[1].get_xlim()
    assert low > 0 > high
    wall = ClockWall().drawn(dim=96)[0]
    assert wall.numbers.get_offsets()[:, 1] == pytest.approx(sorted(wall.numbers.get_offsets()[:, 1])[::-1])
    assert len(wall.numbers.get_paths()) == 3  # the first pair of each row


def test_ways_that_cost_the_same_are_told_apart():
    view = RopeAtScale().drawn()[0]
    sizes = [curves[0].get_markersize() for curves in list(view.curves.values())[:3]]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 3 and len({*view.curves}) == 4
