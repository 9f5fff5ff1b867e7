"""Chapter 5: what its cells print and its text says, held against sums written out here."""

import cmath
import json
import math
from pathlib import Path

import numpy as np
import pytest

import notebooks
from posviz import rope, rope_frequencies, rope_matrix

CELLS = {
    cell["id"]: cell
    for cell in json.loads((Path(__file__).parent.parent / "notebooks" / "05_rope.ipynb").read_text(encoding="utf-8"))[
        "cells"
    ]
}


def printed(id):
    return "".join("".join(output.get("text", "")) for output in CELLS[id]["outputs"])


def says(id, *words):
    text = " ".join(notebooks.source(CELLS[id]).split())
    assert all(word in text for word in words), [word for word in words if word not in text]


def run(*ids):
    """The names that cells of the chapter leave behind."""
    names = {}
    for id in ("setup", *ids):
        exec(compile(notebooks.source(CELLS[id]), id, "exec"), names)
    return names


def test_adding_shows_the_place_and_turning_does_not():
    names = run("added-or-turned")
    assert abs(names["added"](3, 1) - names["added"](1003, 1001)) > 10
    assert names["turned"](3, 1) == pytest.approx(names["turned"](1003, 1001)) == pytest.approx(10.733230, abs=1e-6)


def test_the_score_by_hand():
    product = complex(1, 2) * complex(3, 1)
    score = (product * cmath.exp(2.1j)).real
    assert product == 1 + 7j and f"{score:.3f}" == "-6.547"
    assert f"{score:.4f}" in printed("complex") and "5.5376" in printed("complex")
    says("plane-turn", "$1+7\\mathrm{j}$", "-6.547")


def test_the_matrix_by_hand_is_the_one_for_columns_transposed():
    names = run("matrix-by-hand")
    assert np.allclose(names["R"], rope_matrix(5, 8).T) and np.allclose(names["R"] @ names["R"].T, np.eye(8))
    says("matrix-by-hand-means", "(2.2015, -0.3916)", "6{,}283")
    assert "2.2015, -0.3916" in printed("matrix-by-hand") and f"{2 * math.pi / 0.001:.0f}" == "6283"


@pytest.mark.parametrize("m, n", [(3, 1), (0, 7), (2048, 1)])
def test_a_turn_by_m_and_back_by_n_is_a_turn_by_m_minus_n(m, n):
    R = {position: rope_matrix(position, 8).T for position in (m, n)}
    assert np.allclose(R[m] @ R[n].T, rope_matrix(m - n, 8).T)
    q, k = np.random.RandomState(1).normal(size=(2, 8))
    assert rope(q, m) @ rope(k, n) == pytest.approx(q @ rope_matrix(m - n, 8).T @ k)


def test_norm_before_rope_keeps_the_distance_and_after_it_does_not():
    near, far = (line.split("before RoPE ")[1].split(", norm after RoPE ") for line in printed("qk-norm").splitlines())
    assert near[0] == far[0] and abs(float(near[1]) - float(far[1])) > 1


def test_the_layouts_differ_and_are_one_rotation():
    names = run("layouts-code")
    assert abs(names["interleaved"] - names["half"]).max() > 4
    assert math.isclose(math.cos(5) - 5 * math.sin(5), names["half"][0])
    says("layouts-means", "0.284+4.795=5.078")


def test_resting_pairs_and_untouched_features_stay():
    x = np.arange(1.0, 9)
    part, slow = rope(x, 5, rotary_dim=4), rope(x, 5, frequencies=[1, 0.1, 0, 0])
    assert np.array_equal(part[4:], x[4:]) and np.array_equal(slow[4:], x[4:])
    assert np.allclose(part[:4], rope(x[:4], 5)) and np.allclose(slow[:4], rope(x, 5)[:4])


def test_the_bound_of_the_paper_is_above_what_no_turning_can_reach():
    q, k = np.random.RandomState(0).normal(size=(2, 500, 128))
    h = (q[:, 0::2] + 1j * q[:, 1::2]) * (k[:, 0::2] - 1j * k[:, 1::2])
    largest_step = abs(np.diff(h, axis=1, append=0)).max(axis=1)
    turn, sizes = np.exp(1000j * rope_frequencies(128)), []
    bound = (largest_step * abs(turn.cumsum()).sum()).mean()
    says("fade-questions", f"{bound:,.0f} on average at distance 1,000", f"above {abs(h).sum(axis=1).mean():.0f}.")
    for distance in (1, 1000):
        sizes.append(abs((h @ np.exp(1j * distance * rope_frequencies(128))).real).mean())
    assert 0.9 < sizes[1] / sizes[0] < 1.1 and bound > 10 * abs(h).sum(axis=1).mean()


def equal_vectors(distance, base):
    return math.fsum(math.cos(distance * base ** (-i / 64)) for i in range(64))


def test_the_distance_at_which_equal_vectors_fall_below_nothing():
    for line, base in zip(printed("base-code").splitlines(), (10_000, 500_000, 1_000_000), strict=True):
        first = int(line.rsplit(" ", 1)[1].replace(",", ""))
        assert equal_vectors(first, base) < 0 <= equal_vectors(first - 1, base)
        assert min(equal_vectors(distance, base) for distance in range(1, first, 7)) >= 0


def test_sixteen_bits_lose_positions():
    for digits, name, kept in ((24, "float32", 4096), (11, "float16", 3073), (8, "bfloat16", 769)):
        lost = next((m for m in range(4096) if round(math.frexp(m)[0] * 2**digits) != math.frexp(m)[0] * 2**digits), 0)
        assert lost == (0 if name == "float32" else 2**digits + 1)
        assert f"{name:8} {kept} of 4,096" in printed("precision-code")
    rounded = run("precision-code")["rounded"]
    numbers = np.random.RandomState(0).normal(size=1000)
    assert np.array_equal(rounded(numbers, 11), numbers.astype(np.float16))
    assert np.array_equal(rounded(numbers, 24), numbers.astype(np.float32))
    says("precision-means", "$2^8+1=257$", "2,049")


def test_what_a_bias_and_the_caches_hold():
    says(
        "scale-means", f"{8192**2 * 32 * 2 / 2**30:.0f} GiB a layer", f"moves {(2 + 4 + 4 + 4 + 4 + 2)} bytes a feature"
    )
    says("partial-means", "$512+64$", f"{2 * 128 * 128:,}")


def test_turns_add_up():
    one, other = printed("cache-code").splitlines()
    assert one.split("[")[1] == other.split("[")[1]
