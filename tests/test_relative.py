"""Transformer-XL, T5 and DeBERTa terms against loops, printed values and both of their conventions."""

import numpy as np
import pytest
import torch
from reference import assert_printed, deberta_delta_loop, dot, t5_bucket_loop

from posviz import (
    attention_weights,
    deberta_index,
    deberta_terms,
    log_bucket,
    relative_shift,
    sinusoidal,
    softmax,
    t5_bucket,
    transformer_xl_terms,
)
from posviz.bias import distances


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# ------------------------------------------------------------------ relative shift


def test_shift_reference_three_by_three():
    shifted = relative_shift([[0, 1, 2], [10, 11, 12], [20, 21, 22]])
    assert shifted.tolist() == [[2, 0, 10], [11, 12, 0], [20, 21, 22]]  # above the diagonal: leftovers


def test_shift_reference_two_by_four():
    assert relative_shift([[0, 1, 2, 3], [10, 11, 12, 13]]).tolist() == [[1, 2, 3, 0], [10, 11, 12, 13]]


def test_shift_puts_the_distance_of_each_query_and_key_in_its_place():
    shifted = relative_shift(np.tile([4, 3, 2, 1, 0], (3, 1)))
    visible = distances(3, 5) >= 0
    assert np.array_equal(shifted[visible], distances(3, 5)[visible])
    assert shifted[0, :3].tolist() == [2, 1, 0] and shifted[2].tolist() == [4, 3, 2, 1, 0]


def test_shift_reference_of_xlnet_with_its_extra_column():
    one_sided = relative_shift(np.tile([5, 4, 3, 2, 1, 0], (3, 1))[:, 1:])[:, :5]
    assert one_sided[0, :3].tolist() == [2, 1, 0] and one_sided[1, :4].tolist() == [3, 2, 1, 0]
    both = relative_shift(np.tile(np.arange(5, -3, -1), (3, 1))[:, 1:])[:, :5]
    assert both.tolist() == [[2, 1, 0, -1, -2], [3, 2, 1, 0, -1], [4, 3, 2, 1, 0]]


def test_shift_of_heads_and_of_tensors():
    scores = random(2, 3, 4, 6)
    shifted = relative_shift(scores)
    assert shifted.shape == scores.shape
    for batch in range(2):
        for head in range(3):
            assert np.array_equal(shifted[batch, head], relative_shift(scores[batch, head]))
    tensor = torch.from_numpy(scores).float()
    assert torch.equal(relative_shift(tensor), torch.from_numpy(relative_shift(scores.astype(np.float32))))
    assert relative_shift(np.zeros((0, 3))).shape == (0, 3)


# ------------------------------------------------------------------ Transformer-XL

X = np.array([[1.0, 0], [0, 1], [1, 1]])
W_Q, W_KE, W_KR = np.array([[1, 0.5], [0, 1]]), np.array([[1, 0], [0.5, 1]]), np.array([[0.0, 1], [1, 0]])
U, V = [0.1, 0.2], [0.3, -0.1]


def test_transformer_xl_reference():
    relative = sinusoidal([2, 1, 0], 2) @ W_KR.T
    raw = sum(transformer_xl_terms(X @ W_Q.T, X @ W_KE.T, relative, U, V))
    assert_printed(raw[0, 0], 2.5, 8)
    assert_printed(raw[1, :2], [2.38956573, 2.0], 8)
    assert_printed(raw[2], [2.26930338, 2.92986804, 5.2], 8)
    weights = softmax(raw / np.sqrt(2), mask=np.tri(3, dtype=bool))
    assert_printed(weights, [[1, 0, 0], [0.56843395, 0.43156605, 0], [0.09488982, 0.15138196, 0.75372823]], 8)


def test_transformer_xl_with_the_wrong_sign_gives_other_scores():
    relative = sinusoidal([-2, -1, 0], 2) @ W_KR.T
    raw = sum(transformer_xl_terms(X @ W_Q.T, X @ W_KE.T, relative, U, V))
    assert_printed(raw[1, :2], [0.87491796, 2.0], 8)
    assert_printed(raw[2], [0.63256801, 1.41522026, 5.2], 8)


@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize(("query", "key"), [(4, 4), (2, 5), (1, 6)])
def test_transformer_xl_equals_the_loop(query, key, both_sides):
    heads, dim = 3, 6
    q, k = random(heads, query, dim), random(heads, key, dim, seed=1)
    u, v = random(heads, dim, seed=2), random(heads, dim, seed=3)
    vector = {d: random(heads, dim, seed=100 + d) for d in range(-query, key)}  # W_kR · R_d of each head
    falling = range(key - 1, -query if both_sides else -1, -1)
    terms = transformer_xl_terms(q, k, np.stack([vector[d] for d in falling], axis=1), u, v)
    assert terms._fields == ("content_content", "content_position", "bias_content", "bias_position")
    for h in range(heads):
        for row in range(query):
            i = row + key - query  # the last query lines up with the last key
            for j in range(key):
                r = vector[i - j][h] if both_sides or i >= j else np.zeros(dim)
                expected = [dot(q[h, row], k[h, j]), dot(q[h, row], r), dot(u[h], k[h, j]), dot(v[h], r)]
                assert [term[h, row, j] for term in terms] == pytest.approx(expected, abs=1e-13)


def test_transformer_xl_terms_are_the_callers_own():
    terms = transformer_xl_terms(X, X, X, U, V)
    for term in terms:
        assert term.shape == (3, 3)
        term += 1.0  # neither read-only nor a view of another query's row
    assert np.array_equal(X, [[1, 0], [0, 1], [1, 1]])


def test_transformer_xl_gradients():
    q, k, r = (torch.from_numpy(random(2, 3, 4, seed=s)).requires_grad_() for s in range(3))
    u, v = (torch.from_numpy(random(2, 4, seed=s)).requires_grad_() for s in (3, 4))
    visible = torch.ones(3, 3).tril()
    assert torch.autograd.gradcheck(lambda *args: sum(transformer_xl_terms(*args)) * visible, (q, k, r, u, v))


# ------------------------------------------------------------------ T5

# The first distance of each bucket.
CAUSAL_STARTS = [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
TWO_SIDED_STARTS = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]


def expected_buckets(starts, distances):
    return np.searchsorted(starts, distances, side="right") - 1


def test_t5_causal_buckets_of_every_distance():
    distance = np.arange(201)
    assert np.array_equal(t5_bucket(-distance, bidirectional=False), expected_buckets(CAUSAL_STARTS, distance))
    assert t5_bucket(-10_000, bidirectional=False) == 31
    assert not t5_bucket(np.arange(1, 500), bidirectional=False).any()  # keys in the future share bucket 0


def test_t5_bidirectional_buckets_of_every_distance():
    distance = np.arange(201)
    past, future = t5_bucket(-distance), t5_bucket(distance)
    assert np.array_equal(past, expected_buckets(TWO_SIDED_STARTS, distance))
    assert np.array_equal(future[1:], past[1:] + 16)
    assert 16 not in t5_bucket(np.arange(-5000, 5000))


def test_t5_printed_examples():
    distance = np.array([15, 16, 20, 64, 112, 113, 128, 1000])
    assert t5_bucket(-distance, bidirectional=False).tolist() == [15, 16, 17, 26, 30, 31, 31, 31]
    assert t5_bucket([-7, 7, -8, 8, -90, 90, -91, 91]).tolist() == [7, 23, 8, 24, 14, 30, 15, 31]


@pytest.mark.parametrize("distance", [16, 32, 64, 128])
def test_t5_edges_that_are_whole_numbers_fall_on_the_upper_side(distance):
    assert t5_bucket(-distance) == min(8 + 2 * round(np.log2(distance / 8)), 15)
    assert t5_bucket(-distance + 1) == min(8 + 2 * round(np.log2(distance / 8)), 16) - 1


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (64, 256), (8, 20), (10, 7), (4, 3)])
def test_t5_equals_the_loop(bidirectional, num_buckets, max_distance):
    relative = np.arange(-300, 301)
    found = t5_bucket(relative, bidirectional, num_buckets, max_distance)
    expected = [t5_bucket_loop(int(r), bidirectional, num_buckets, max_distance) for r in relative]
    assert found.tolist() == expected
    assert found.dtype == np.int64 and 0 <= found.min() and found.max() < num_buckets


def exact_t5_bucket(distance, buckets, longest):
    """exact + ⌊(buckets − exact) ln(distance/exact) / ln(longest/exact)⌋ for a key in the past, in whole numbers."""
    exact = buckets // 2
    if distance < exact:
        return distance
    n, k = buckets - exact, 0
    while k < n - 1 and distance**n * exact ** (k + 1) >= longest ** (k + 1) * exact**n:
        k += 1
    return exact + k


def boundaries(values):
    """Where an array of rising whole numbers changes: the last index of each value and the first of the next."""
    changes = np.flatnonzero(np.diff(values))
    return sorted({0, *changes.tolist(), *(changes + 1).tolist(), len(values) - 1})


def test_t5_equals_whole_numbers_in_all_settings_up_to_128_buckets():
    """A bucket number that only rises is right everywhere if it is right on both sides of every rise."""
    ties = 0
    for buckets in range(2, 129):
        exact = buckets // 2
        multiples = [exact * m for m in (2, 3, 4, 8, 9, 16, 27)]
        for longest in {exact + 1, exact + 2, *multiples, 128, 160, 320, 1000, 1024} - set(range(exact + 1)):
            distance = np.arange(longest + exact)
            found = t5_bucket(-distance, False, buckets, longest)
            assert (np.diff(found) >= 0).all()
            if buckets % 2 == 0:
                assert np.array_equal(t5_bucket(-distance, True, 2 * buckets, longest), found)
                assert np.array_equal(t5_bucket(distance[1:], True, 2 * buckets, longest), found[1:] + buckets)
            n = buckets - exact
            for d in boundaries(found):
                k = int(found[d]) - exact
                if k < 0:
                    assert d < exact and found[d] == d
                else:
                    assert d**n * exact**k >= longest**k * exact**n
                    assert k == n - 1 or d**n * exact ** (k + 1) < longest ** (k + 1) * exact**n
                    ties += k > 0 and d**n * exact**k == longest**k * exact**n
    assert ties > 400  # the cases that floats may miss


@pytest.mark.parametrize(
    ("distance", "buckets", "longest", "expected"), [(20, 20, 320, 12), (80, 10, 160, 9), (79, 10, 160, 8)]
)
def test_t5_ties_that_floats_miss(distance, buckets, longest, expected):
    assert exact_t5_bucket(distance, buckets, longest) == expected
    assert t5_bucket(-distance, False, buckets, longest) == expected
    assert t5_bucket(-distance, True, 2 * buckets, longest) == expected


@pytest.mark.parametrize("far", [10**6, 2**53 + 1, 2**63 - 1])
def test_buckets_of_the_farthest_distances(far):
    assert t5_bucket([-far, far]).tolist() == [15, 31] and t5_bucket([-far, far], False).tolist() == [31, 0]
    assert t5_bucket(-(2**63)) == 15 and t5_bucket(-(2**63), False) == 31
    assert log_bucket([-far, far, -(2**63)], 256, 512).tolist() == [-255, 255, -255]
    assert log_bucket([-far, -(2**63)], 8, 16, clamp=False).max() < -8


def test_t5_end_to_end_reference():
    x = np.array([[1, 0], [0, 1], [1, 1], [0.5, -0.5]])
    bias = 0.1 * t5_bucket(-distances(4), bidirectional=False)
    weights = attention_weights(x, x, bias=bias, mask=distances(4) >= 0, scale=1.0)
    assert_printed(weights[3], [0.38906349, 0.12950798, 0.19320321, 0.28822532], 8)
    assert_printed(weights[2, :3], [0.24210857, 0.21906889, 0.53882253], 8)


def test_t5_keeps_the_shape():
    assert t5_bucket(-3).shape == () and t5_bucket([[1, 2], [3, 4]]).shape == (2, 2)
    assert t5_bucket([]).shape == (0,)
    assert t5_bucket(torch.tensor([-3, 3])).tolist() == [3, 19]


# ------------------------------------------------------------------ DeBERTa

P = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])


def test_deberta_index_reference():
    assert deberta_index(3, span=2).tolist() == [[2, 1, 0], [3, 2, 1], [3, 3, 2]]


@pytest.mark.parametrize(("query", "key", "span"), [(5, 5, 2), (2, 6, 3), (7, 7, 100), (1, 4, 1)])
def test_deberta_index_equals_the_loop(query, key, span):
    index = deberta_index(query, key, span)
    expected = [[deberta_delta_loop(row + key - query, j, span) for j in range(key)] for row in range(query)]
    assert index.tolist() == expected


@pytest.mark.parametrize(
    ("convention", "expected"),
    [
        ("paper", [[2.0, 1.1, 2.6], [1.1, 2.2, 2.9], [2.6, 2.9, 4.2]]),
        ("code", [[2.0, 0.7, 1.4], [1.5, 2.2, 2.1], [3.2, 3.3, 4.2]]),
    ],
)
def test_deberta_reference(convention, expected):
    terms = deberta_terms(X, X, P, P, span=2, convention=convention)
    np.testing.assert_allclose(sum(terms), expected, rtol=0, atol=1e-14)


def test_deberta_follows_the_paper_unless_told_otherwise():
    assert np.array_equal(sum(deberta_terms(X, X, P, P, 2)), sum(deberta_terms(X, X, P, P, 2, convention="paper")))


@pytest.mark.parametrize("convention", ["paper", "code"])
@pytest.mark.parametrize(("query", "key"), [(5, 5), (2, 6)])
def test_deberta_equals_the_loop(convention, query, key):
    heads, dim, span = 2, 4, 3
    qc, kc = random(heads, query, dim), random(heads, key, dim, seed=1)
    qr, kr = random(heads, 2 * span, dim, seed=2), random(heads, 2 * span, dim, seed=3)
    terms = deberta_terms(qc, kc, qr, kr, span, convention=convention)
    assert terms._fields == ("content_to_content", "content_to_position", "position_to_content")
    for h in range(heads):
        for row in range(query):
            i = row + key - query
            for j in range(key):
                forward = deberta_delta_loop(i, j, span)
                backward = deberta_delta_loop(j, i, span) if convention == "paper" else forward
                expected = [dot(qc[h, row], kc[h, j]), dot(qc[h, row], kr[h, forward]), dot(kc[h, j], qr[h, backward])]
                assert [term[h, row, j] for term in terms] == pytest.approx(expected, abs=1e-13)


def test_deberta_tables_shared_by_a_batch():
    qc, kc, qr, kr = random(5, 2, 4, 8), random(5, 2, 4, 8, seed=1), random(2, 6, 8, seed=2), random(2, 6, 8, seed=3)
    whole = deberta_terms(qc, kc, qr, kr, span=3)
    alone = deberta_terms(qc[4], kc[4], qr, kr, span=3)
    for batch, single in zip(whole, alone, strict=True):
        np.testing.assert_allclose(batch[4], single, rtol=0, atol=1e-14)


def test_deberta_gradients():
    qc, kc = (torch.from_numpy(random(2, 3, 4, seed=s)).requires_grad_() for s in (0, 1))
    qr, kr = (torch.from_numpy(random(2, 4, 4, seed=s)).requires_grad_() for s in (2, 3))
    assert torch.autograd.gradcheck(lambda *args: sum(deberta_terms(*args, 2)), (qc, kc, qr, kr))


LOG_BUCKETS = """
0 0 64 64 127 127 128 128 129 129 130 130 131 131 132 131 135 133 140 137 150 143 160 149 200 169 255 192 256 192
257 192 300 207 384 229 400 233 500 254 511 255 512 256
"""


def test_log_bucket_reference():
    pairs = np.array(LOG_BUCKETS.split(), dtype=int).reshape(-1, 2)
    assert np.array_equal(log_bucket(pairs[:, 0], 256, 512, clamp=False), pairs[:, 1])
    assert np.array_equal(log_bucket(-pairs[:, 0], 256, 512, clamp=False), -pairs[:, 1])
    first = [0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 7, 7]
    assert log_bucket(np.arange(18), 8, 16).tolist() == [*first, 7, 7]
    assert log_bucket(np.arange(18), 8, 16, clamp=False).tolist() == [*first, 8, 8]


def test_log_bucket_is_clamped_as_microsofts_newer_code_does():
    """`make_log_bucket_position` since c794b71 clamps to ±(max_position − 1) first; the code before it did not."""
    relative = np.arange(-600, 601)
    clamped = log_bucket(relative, 256, 512)
    assert np.array_equal(clamped, log_bucket(np.clip(relative, -511, 511), 256, 512, clamp=False))
    assert clamped[relative == -512] == -255 and log_bucket(-512, 256, 512, clamp=False) == -256


def test_log_bucket_equals_whole_numbers_in_all_settings_up_to_128_buckets():
    """Bucket mid + k: the least k with (distance/mid)^(mid−1) ≤ (last/mid)^k, checked on both sides of every rise."""
    ties = 0
    for size in range(2, 129):
        mid = size // 2
        n, tied = mid - 1, [mid * m for m in (2, 3, 4, 8, 9, 16)]
        for last in {mid + 1, mid + 2, *tied, 127, 159, 319, 511, 999} - set(range(mid + 1)):
            distance = np.arange(last + 3)
            found = log_bucket(distance, size, last + 1, clamp=False)
            assert (np.diff(found) >= 0).all() and np.array_equal(log_bucket(-distance, size, last + 1, False), -found)
            for d in boundaries(found):
                k = int(found[d]) - mid
                if d <= mid or n == 0:
                    assert found[d] == min(d, mid)
                else:
                    assert d**n * mid**k <= last**k * mid**n
                    assert d**n * mid ** (k - 1) > last ** (k - 1) * mid**n
                    ties += d < last and d**n * mid**k == last**k * mid**n
    assert ties > 300


@pytest.mark.parametrize(("relative", "size", "longest", "expected"), [(15, 18, 26, 13), (-15, 18, 26, -13)])
def test_log_bucket_ties_that_floats_miss(relative, size, longest, expected):
    assert log_bucket(relative, size, longest) == expected


def test_log_bucket_never_falls():
    assert (np.diff(log_bucket(np.arange(-2000, 2000), 256, 512)) >= 0).all()
