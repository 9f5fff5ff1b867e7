"""What the pictures share: empty artists in the style, a field whose cells change in number, written-out ticks."""

import numpy as np
import pytest
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
    assert signed.get_cmap().name == style.DIVERGING and signed.get_interpolation() == "nearest"
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


@pytest.mark.parametrize("number, words", [(0.0, "0"), (2.81e-05, "0.0000281"), (0.005, "0.005"), (12.34, "12.3")])
def test_a_number_without_powers_of_ten(number, words):
    assert parts.decimal(number) == words
