"""The pictures of chapter 4 show what the formulas say: every artist against numbers that were made another way."""

import math
import re

import numpy as np
import pytest

from posviz import style
from posviz.live.drawing import DPI
from posviz.views import relative

NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def numbers(sentence):
    return [float(n) for n in NUMBER.findall(sentence)]


def wave(distance, dim, base=10_000.0, sines_first=False):
    """The sinusoidal vector of one distance, feature by feature."""
    speeds = [base ** (-2 * i / dim) for i in range(dim // 2)]
    sines, cosines = [math.sin(distance * s) for s in speeds], [math.cos(distance * s) for s in speeds]
    if sines_first:
        return np.array(sines + cosines)
    return np.array([part for pair in zip(sines, cosines, strict=True) for part in pair])


def t5_past_or_future(offset):
    """T5's bucket, both directions, from the published list of ranges: 0 to 7 alone, then 8–11, 12–15, 16–22 …"""
    first_of = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    return sum(abs(offset) >= first for first in first_of) - 1 + (16 if offset > 0 else 0)


def terms_of_pair(method, word, other, i, j):
    q, k = relative.W_Q @ relative.WORDS[word], relative.W_K @ relative.WORDS[other]
    if method == "absolute":
        pq, pk = relative.W_Q @ wave(i, 8), relative.W_K @ wave(j, 8)
        return q @ k, q @ pk, pq @ k, pq @ pk
    if method == "Transformer-XL":
        r = relative.W_KR @ wave(i - j, 8, sines_first=True)
        return q @ k, q @ r, relative.U @ k, relative.V @ r
    if method == "T5":
        return q @ k, 0, 0, relative.T5_TABLE[t5_past_or_future(j - i)]
    forward, backward = (wave(min(max(d + 16, 0), 31), 8, base=100) for d in (i - j, j - i))
    return q @ k, q @ (relative.W_KR @ forward), k @ (relative.W_QR @ backward), 0


@pytest.mark.parametrize("method", relative.METHODS)
@pytest.mark.parametrize("terms, first", [(1, 0), (2, 37), (3, 100), (4, 5)])
def test_the_score_matrix_is_the_sum_of_the_terms_of_each_pair(method, terms, first):
    view, _, sentence = relative.ScoreTerms().drawn(method=method, terms=terms, first=first)
    text = relative.TEXT
    expected = np.array(
        [[terms_of_pair(method, text[i], text[j], first + i, first + j) for j in range(6)] for i in range(6)]
    )
    total = expected[..., :terms].sum(axis=-1)
    newest = expected[..., terms - 1]
    assert np.allclose(view.total.get_array(), total)
    if newest.any():
        assert np.allclose(view.newest.get_array(), newest)
        assert f"reaches {np.abs(newest).max():.2f} in size" in sentence
    else:
        assert np.ma.getmaskarray(view.newest.get_array()).all() or np.isnan(view.newest.get_array()).all()
        assert "is left out" in sentence
    assert view.heading.get_text() == f"term {terms}: {relative.ScoreTerms.names[terms - 1]}"
    assert {place.get_text() for place in view.places} == {f"key, at positions {first} to {first + 5}"}
    assert numbers(sentence)[-2:] == pytest.approx([total[5, 0], total[5, 3]], abs=0.006)


def test_no_score_of_the_example_leaves_the_colour_scale():
    for method in relative.METHODS:
        for first in (0, 50, 100):
            parts = relative.score_terms(method, relative.TEXT, relative.TEXT, first)
            sums = np.cumsum(parts, axis=0)
            assert max(np.abs(parts).max(), np.abs(sums).max()) <= 6


@pytest.mark.parametrize("method", relative.METHODS)
def test_only_absolute_positions_notice_that_the_text_moves(method):
    view = relative.ScoreTerms()
    near, far = (view.drawn(method=method, terms=4, first=first)[0].total.get_array() for first in (0, 61))
    assert np.allclose(near, far) == (method != "absolute")


STEPS_WITHOUT_MEMORY = [
    ["03 02 01 00", "13 12 11 10", "23 22 21 20", "33 32 31 30"],
    ["0 03 02 01 00", "0 13 12 11 10", "0 23 22 21 20", "0 33 32 31 30"],
    ["0 03 02 01", "00 0 13 12", "11 10 0 23", "22 21 20 0", "33 32 31 30"],
    ["00 0 13 12", "11 10 0 23", "22 21 20 0", "33 32 31 30"],
    ["00", "11 10", "22 21 20", "33 32 31 30"],
]


def written(line):
    """The number that is the marker of this artist."""
    return re.fullmatch(r"\$\\mathdefault{(\d+)}\$", line.get_marker())[1]


def cells_shown(view):
    """{(row, column): the number written there} of the picture, as it is written there."""
    return {
        (int(row), int(column)): written(line)
        for line in view.numbers.values()
        for column, row in zip(*line.get_data(), strict=True)
    }


@pytest.mark.parametrize("step", range(5))
def test_the_shift_shows_each_number_where_a_strip_of_numbers_puts_it(step):
    view, _, sentence = relative.RelativeShift().drawn(step=step)
    expected = {
        (row, column): name
        for row, line in enumerate(STEPS_WITHOUT_MEMORY[step])
        for column, name in enumerate(line.split())
    }
    assert cells_shown(view) == expected
    colours = np.ma.filled(np.ma.masked_invalid(view.cells.get_array()), -9)
    for (row, column), name in expected.items():
        assert colours[row, column] == (-1 if name == "0" else int(name) // 10)
    assert (colours == -9).sum() == colours.size - len(expected)
    assert view.cells.get_extent() == [-0.5, colours.shape[1] - 0.5, colours.shape[0] - 0.5, -0.5]
    assert sentence.startswith(f"Step {step}. ")


@pytest.mark.parametrize("memory", [0, 1, 2, 3])
def test_after_the_mask_each_cell_holds_the_distance_of_its_query_and_key(memory):
    view, _, sentence = relative.RelativeShift().drawn(step=4, memory=memory)
    assert cells_shown(view) == {
        (i, j): f"{10 * i + i + memory - j:02d}" for i in range(4) for j in range(i + memory + 1)
    }
    leftovers = 4 * (4 + memory) - len(cells_shown(view))
    assert numbers(sentence) == [4, leftovers, 3 + memory, 0]


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("memory", [0, 3])
def test_no_cell_of_the_shift_lies_outside_the_axes(step, memory):
    view = relative.RelativeShift().drawn(step=step, memory=memory)[0]
    left, right, bottom, top = view.cells.get_extent()
    axes = view.cells.axes
    assert axes.get_xlim()[0] <= left < right <= axes.get_xlim()[1]
    assert axes.get_ylim()[1] <= top < bottom <= axes.get_ylim()[0]
    assert len(cells_shown(view)) == np.isfinite(view.cells.get_array()).sum()


def test_the_numbers_of_the_shift_stand_out_from_their_cells():
    view, figure, _ = relative.RelativeShift().drawn(step=1, memory=2)
    cell = view.cells.axes.transData.transform([[0, 0], [1, 0]])
    shades = {row: np.mean(view.cells.cmap(view.cells.norm(row))[:3]) for row in (-1, 0, 1, 2, 3)}
    for line in view.numbers.values():
        name = written(line)
        ground = shades[-1 if name == "0" else int(name) // 10]
        assert (line.get_color() == "white") == (ground < 0.45)
        assert 16 < line.get_markersize() * DPI / 72 * 2 / len(name) < 0.9 * (cell[1, 0] - cell[0, 0])  # fits its cell


def loop_bucket(offset, bidirectional, buckets, longest):
    future = 0
    if bidirectional:
        buckets //= 2
        future = buckets if offset > 0 else 0
    elif offset > 0:
        return 0
    distance, exact = abs(offset), buckets // 2
    if distance < exact:
        return future + distance
    edges = [exact * (longest / exact) ** (step / (buckets - exact)) for step in range(buckets - exact)]
    return future + exact + sum(distance >= edge - 1e-9 for edge in edges) - 1


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"distance": 100},
        {"distance": 0},
        {"distance": -7},
        {"distance": -7, "bidirectional": True},
        {"distance": 33, "bidirectional": True, "buckets": 12, "longest": 68},
        {"distance": 200, "buckets": 8, "longest": 40},
        {"distance": -200, "bidirectional": True, "buckets": 64, "longest": 200},
    ],
)
def test_the_buckets_are_those_of_a_loop_over_their_edges(state):
    view, _, sentence = relative.T5Buckets().drawn(**state)
    values = relative.T5Buckets().values(**state)
    rule = values["bidirectional"], values["buckets"], values["longest"]
    distances = list(range(200, -201, -1))  # from the past on
    expected = [loop_bucket(-distance, *rule) for distance in distances]
    assert np.array_equal(view.all.get_data(), [distances, expected])
    here = loop_bucket(-values["distance"], *rule)
    same = [distance for distance, bucket in zip(distances, expected, strict=True) if bucket == here]
    assert np.array_equal(view.here.get_data(), [[values["distance"]], [here]])
    assert np.array_equal(view.shared.get_data(), [[same[0] + 0.5, same[-1] - 0.5], [here, here]])
    past = [loop_bucket(-distance, *rule) for distance in range(values["longest"] + 1)]
    begins = past.index(past[-1])
    assert list(view.last.get_xdata()) == [begins] * 2 and list(view.limit.get_xdata()) == [values["longest"]] * 2
    assert f"bucket {here} of {values['buckets']}" in sentence
    assert sentence.endswith(f"begins at distance {begins}, not at {values['longest']}.")


@pytest.mark.parametrize(
    "state, says",
    [
        (
            {},
            "20 tokens in the past: bucket 17 of 32, shared by distances 19 to 20. "
            "The last bucket of the past begins at distance 113",
        ),
        ({"distance": 1}, "1 token in the past: bucket 1 of 32, shared by distance 1 alone"),
        ({"distance": 5}, "bucket 5 of 32, shared by distance 5 alone"),
        ({"distance": 180}, "bucket 31 of 32, shared by all distances from 113 on"),
        ({"distance": -50}, "50 tokens in the future: bucket 0 of 32, shared by every key in the future and the query"),
        (
            {"distance": -50, "bidirectional": True},
            "bucket 29 of 32, shared by distances 46 to 63. The last bucket of the past begins at distance 91",
        ),
        ({"distance": -120, "bidirectional": True}, "bucket 31 of 32, shared by all distances from 91 on"),
        ({"distance": 0, "bidirectional": True}, "The query itself: bucket 0 of 32, shared by distance 0 alone"),
    ],
)
def test_the_sentence_names_the_published_ranges(state, says):
    assert says in relative.T5Buckets().drawn(**state)[2]


@pytest.mark.parametrize("method", relative.METHODS[1:])
@pytest.mark.parametrize("key, distance", [("dog", 5), ("old", -32), ("saw", 0)])
def test_the_position_part_is_the_score_without_its_first_term(method, key, distance):
    view, _, sentence = relative.PositionPart().drawn(method=method, key=key, distance=distance)
    read = []
    for word, curve in view.curves.items():
        expected = [sum(terms_of_pair(method, word, key, offset, 0)[1:]) for offset in range(32, -33, -1)]
        x, y = curve.get_data()
        assert list(x) == list(range(32, -33, -1)) and np.allclose(y, expected)
        low, high = curve.axes.get_ylim()
        assert low <= min(y) and max(y) <= high
        read.append(expected[32 - distance])
    assert np.allclose(view.read.get_data(), [[distance] * 4, read])
    assert [float(n) for n in re.findall(r"[+-]\d\.\d\d", sentence)] == pytest.approx(read, abs=0.006)
    if method == "T5":
        assert np.ptp(read) == 0 and "the query word has no say" in sentence
    else:
        assert numbers(sentence)[-1] == pytest.approx(np.ptp(read), abs=0.006) and np.ptp(read) > 0.1


def test_the_four_curves_differ_in_dash_as_well_as_colour():
    view = relative.PositionPart().drawn()[0]
    looks = [(curve.get_color(), str(curve.get_linestyle())) for curve in view.curves.values()]
    assert len({colour for colour, _ in looks}) == len(set(looks)) == 4
    assert {colour for colour, _ in looks} == set(style.COLORS[:4])


def test_the_past_is_on_the_left_where_past_and_future_both_stand():
    for view in (relative.T5Buckets, relative.PositionPart):
        axes = view().drawn()[1].axes[0]
        assert axes.get_xlim()[0] > 0 > axes.get_xlim()[1] and axes.get_xlabel().startswith("distance m − n")


@pytest.mark.parametrize("step, memory", [(0, 0), (1, 2), (2, 1), (3, 3), (4, 0)])
def test_rows_and_columns_of_the_shift_are_named(step, memory):
    view = relative.RelativeShift().drawn(step=step, memory=memory)[0]
    rows, columns = view.cells.get_array().shape
    words, x, y = relative._side_names(step, rows, columns)
    distances = [str(distance) for distance in range(3 + memory, -1, -1)]
    across = [str(n) for n in range(columns)] if step > 1 else ["zero"] * step + distances
    kind = ["distance", "distance", "column", "key", "key"][step]
    assert words == [f"{'row' if step == 2 else 'query'} {n}" for n in range(rows)] + across + [kind]
    assert len(words) == len(x) == len(y) == len(view.names.get_paths())
    assert x[rows:-1] == list(range(columns)) and y[:rows] == list(range(rows))


def test_every_cell_of_a_score_map_has_its_number():
    view = relative.ScoreTerms().drawn(method="T5", terms=2)[0]
    newest, total = view.numbers
    assert len(newest.get_paths()) == 0 and len(total.get_paths()) == 36  # a term left out has no cells
