"""What the pictures share: empty artists in the style, a field whose cells change in number, written-out ticks."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from posviz import style
from posviz.lab.results import NAMES, by_position
from posviz.views import parts


@pytest.fixture
def axes():
    return Figure(layout="constrained").subplots()


def test_every_encoding_is_offered_under_its_display_name():
    assert {parts.ENCODINGS[NAMES[key]] for key in by_position} == set(by_position)


@pytest.mark.parametrize("index", [0, 5, 9])
def test_curves_and_points_are_empty_and_keep_the_style_unless_told(axes, index):
    curve, points = parts.curve(axes, index, linewidth=1.4), parts.points(axes, index, label="here", markersize=5)
    measured, ring = parts.measured(axes, index, markersize=8), parts.ring(axes, index, 2)
    assert all(len(artist.get_xdata()) == 0 for artist in (curve, points, measured, ring))
    assert {artist.get_color() for artist in (curve, points, measured, ring)} == {style.COLORS[index % 8]}
    assert curve.get_linewidth() == 1.4 and curve.get_marker() == "None"
    assert points.get_marker() == measured.get_marker() == ring.get_marker() == style.MARKERS[index % 8]
    assert points.get_label() == "here" and points.get_linestyle() == ring.get_linestyle() == "None"
    assert [artist.get_markersize() for artist in (points, measured, ring)] == [5, 8, 16]
    assert measured.get_linewidth() == style.line(index)["linewidth"] and ring.get_fillstyle() == "none"


def test_a_signed_map_is_centred_on_0_and_a_field_keeps_its_place(axes):
    signed = parts.heat_map(axes, (3, 4), -2, 2, aspect="auto")
    assert signed.get_array().shape == (3, 4) and signed.get_clim() == (-2, 2)
    assert signed.get_cmap() == style.DIVERGING and signed.get_interpolation() == "nearest"
    assert list(signed.get_extent()) == [-0.5, 3.5, 2.5, -0.5] and len(axes.get_xticks()) > 0
    field = parts.heat_map(axes, None, 0, 1)
    field.set_data(np.zeros((5, 7)))
    assert tuple(field.get_extent()) == (0, 1, 1, 0)
    assert len(axes.get_xticks()) == len(axes.get_yticks()) == 0


def test_a_logarithmic_axis_has_the_ticks_given_and_no_other(axes):
    axes.set_xlim(0.005, 2000)
    parts.log_axis(axes, "x", [0.01, 1, 1000])
    axes.figure.draw_without_rendering()
    assert axes.get_xscale() == "log" and axes.get_yscale() == "linear" and axes.get_xlim() == (0.005, 2000)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.01", "1", "1,000"]
    assert len(axes.xaxis.get_minorticklocs()) == 0


def test_a_legend_outside_takes_room_from_the_axes_and_names_their_curves(axes):
    parts.curve(axes, 0, label="first")
    parts.outside_legend(axes.figure, axes)
    axes.figure.draw_without_rendering()
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["first"]
    assert legend.get_window_extent().y0 >= axes.get_window_extent().y1


def test_strokes_are_apart():
    x, y = parts.strokes(np.array([1, 2]), 0, np.array([1, 3]), np.array([5, 6]))
    assert np.array_equal(x, [1, 1, np.nan, 2, 3, np.nan], equal_nan=True)
    assert np.array_equal(y, [0, 5, np.nan, 0, 6, np.nan], equal_nan=True)


def test_words_and_numbers():
    assert parts.sentence_case("learned table") == "Learned table" and parts.sentence_case("xPos") == "XPos"
    assert parts.sentence_case("RoPE + PI") == "RoPE + PI"
    assert [parts.counted(n, "token") for n in (0, 1, 2, 1024)] == ["0 tokens", "1 token", "2 tokens", "1,024 tokens"]
    assert parts.thousands([0.0001, 0.5, 1, 16_384, 131_072]) == ["0.0001", "0.5", "1", "16,384", "131,072"]


def test_numbers_stand_in_their_cells_and_hidden_ones_do_not(axes):
    image, numbers = parts.heat_map(axes, (2, 2), 0, 1), parts.Letters(axes)
    numbers.number_cells(image, np.ma.array([[0.0, 0.994], [-0.001, 0.5]], mask=[[0, 0], [0, 1]]))
    assert numbers.get_offsets().tolist() == [[0, 0], [1, 0], [0, 1]] and len(numbers.get_paths()) == 3
    same = numbers.get_paths()[0].vertices.tolist() == numbers.get_paths()[2].vertices.tolist()  # no "-0.00"
    assert same and numbers.get_facecolors()[:, :3].tolist() == [[1, 1, 1], [0, 0, 0], [1, 1, 1]]
    field = parts.heat_map(axes, None, 0, 1)  # a field of any size: its cells fill the square
    numbers.number_cells(field, np.zeros((2, 4)))
    assert numbers.get_offsets().tolist() == [[x, y] for y in (0.25, 0.75) for x in (0.125, 0.375, 0.625, 0.875)]
    numbers.number_cells(field, np.zeros((9, 9)))
    assert len(numbers.get_paths()) == 0  # too many to read


def test_a_signed_map_is_white_at_0_and_told_apart_at_its_ends_in_grey_and_without_red_or_green():
    low, zero, high = (np.array(style.DIVERGING(value)[:3]) for value in (0.0, 0.5, 1.0))
    assert zero.tolist() == [1, 1, 1]
    grey = [np.dot(colour, [0.299, 0.587, 0.114]) for colour in (low, high)]
    assert grey[1] - grey[0] > 0.2 and low[2] - high[2] > 0.3  # darker; and bluer, which all but few see


def test_names_stand_where_their_lines_end_now(axes):
    lines = {name: parts.curve(axes, index) for index, name in enumerate(("first", "second", "third"))}
    names = parts.EndNames(axes, "second")
    axes.set(xlim=(0, 10), ylim=(0, 10))
    names.follow(lines)
    assert len(names.get_paths()) == 0  # nothing is drawn yet
    lines["first"].set_data([1, 2], [3, 4])
    lines["second"].set_data([1, 9], [3, 4])
    lines["third"].set_data([1, 9], [3, 4])
    names.follow(lines)
    (x1, y1), (x2, y2), (x3, y3) = names.get_offsets()
    assert (x1, x2, x3) == pytest.approx((2, 9, 9)) and y1 == pytest.approx(4)
    assert y2 == pytest.approx(4) and y3 > 4  # the other stands above it
    touching = 1.2 * style.font_size() * axes.figure.dpi / 72
    assert np.diff(axes.transData.transform([(9, y2), (9, y3)])[:, 1]) == pytest.approx(touching)
    lines["first"].set_data([1, 9], [3, 10])
    lines["second"].set_data([1, 9], [3, 10])
    names.follow(lines)
    assert names.get_offsets()[:, 1].max() < 10  # none is over the top, where the picture ends
    for colour, line in zip(names.get_facecolors(), lines.values()):
        assert np.allclose(colour[:3], 0.8 * np.array(to_rgb(line.get_color())))


@pytest.mark.parametrize("number, words", [(0.0, "0"), (2.81e-05, "0.0000281"), (0.005, "0.005"), (12.34, "12.3")])
def test_a_number_without_powers_of_ten(number, words):
    assert parts.decimal(number) == words
