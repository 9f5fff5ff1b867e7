"""What holds for every input, searched by Hypothesis: lengths, distances, caches, padding, no hidden state."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import posviz
from posviz import (
    alibi_bias,
    attention_weights,
    deberta_index,
    deberta_terms,
    rope,
    rope_frequencies,
    sandwich_bias,
    sinusoidal,
    softmax,
    t5_bucket,
    transformer_xl_terms,
    xpos_scale,
)
from posviz.bias import distances

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("repeatable")

FAR = 1_000_000
ANGLE = 5e-10  # what float64 loses of an angle of 10^6 radians, with margin
layouts = st.sampled_from(["interleaved", "half"])
positions = st.integers(-FAR, FAR)
dims = st.integers(1, 32).map(lambda pairs: 2 * pairs)
seeds = st.integers(0, 2**32 - 1)
bases = st.floats(2, 1e7)


def vectors(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


# ------------------------------------------------------------------ rotation


@given(seeds, dims, positions, layouts, bases)
def test_rotation_keeps_the_length_of_every_vector(seed, dim, position, layout, base):
    x = vectors(seed, 3, dim)
    rotated = rope(x, position, layout=layout, base=base)
    np.testing.assert_allclose(np.linalg.norm(rotated, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-14)


@given(seeds, dims, st.integers(0, FAR), st.integers(0, FAR), st.integers(0, FAR), layouts, bases)
def test_scores_depend_on_the_distance_only(seed, dim, m, n, shift, layout, base):
    q, k = vectors(seed, 2, dim)
    here = rope(q, m, layout=layout, base=base) @ rope(k, n, layout=layout, base=base)
    there = rope(q, m + shift, layout=layout, base=base) @ rope(k, n + shift, layout=layout, base=base)
    alone = rope(q, m - n, layout=layout, base=base) @ k
    size = np.linalg.norm(q) * np.linalg.norm(k)
    assert abs(here - there) <= 4 * ANGLE * size
    assert abs(here - alone) <= 4 * ANGLE * size


@given(seeds, dims, positions, positions, layouts)
def test_two_rotations_add_up_and_undo_each_other(seed, dim, m, n, layout):
    x = vectors(seed, dim)
    twice = rope(rope(x, m, layout=layout), n, layout=layout)
    np.testing.assert_allclose(twice, rope(x, m + n, layout=layout), rtol=0, atol=4 * ANGLE * np.abs(x).max())
    np.testing.assert_allclose(rope(rope(x, m, layout=layout), -m, layout=layout), x, rtol=0, atol=1e-14 * dim)


@given(seeds, dims, positions, layouts)
def test_rotation_is_linear(seed, dim, position, layout):
    x, y = vectors(seed, 2, dim)
    mixed = rope(2 * x - 3 * y, position, layout=layout)
    apart = 2 * rope(x, position, layout=layout) - 3 * rope(y, position, layout=layout)
    np.testing.assert_allclose(mixed, apart, rtol=0, atol=1e-13)


@given(st.integers(0, FAR), st.integers(-FAR, FAR), dims, bases)
def test_shift_of_a_sinusoid_is_a_rotation(k, delta, dim, base):
    swapped = sinusoidal([k, k + delta], dim, base).reshape(2, -1, 2)[..., ::-1].reshape(2, -1)  # pairs (cos, sin)
    np.testing.assert_allclose(rope(swapped[0], delta, base=base), swapped[1], rtol=0, atol=4 * ANGLE)


@given(seeds, st.integers(0, FAR), st.integers(0, 500), dims)
def test_xpos_scores_depend_on_the_distance_only(seed, n, distance, dim):
    q, k = np.abs(vectors(seed, 2, dim // 2))
    n = n % 20_000  # beyond it the factor of a key leaves the range of float64
    score = (q * xpos_scale(n + distance, dim)) @ (k / xpos_scale(n, dim))
    assert score == pytest.approx(q @ (k * xpos_scale(distance, dim)), rel=1e-10)


# ------------------------------------------------------------------ decoding with a cache


@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=5), layouts)
def test_rotation_in_chunks_equals_one_pass(seed, chunks, layout):
    x, start, parts = vectors(seed, 2, sum(chunks), 8), 0, []
    for chunk in chunks:
        parts.append(rope(x[:, start : start + chunk], range(start, start + chunk), layout=layout))
        start += chunk
    assert np.array_equal(np.concatenate(parts, axis=1), rope(x, range(start), layout=layout))


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_attention_in_chunks_equals_one_pass(seed, chunks):
    heads, dim, span, length = 2, 4, 3, sum(chunks)
    q, k = vectors(seed, 2, heads, length, dim)
    u, v = vectors(seed + 1, 2, heads, dim)
    qr, kr = vectors(seed + 2, 2, heads, 2 * span, dim)
    table, learned = vectors(seed + 3, heads, length, dim), vectors(seed + 4, 32, heads)

    def weights(first, last):
        """Of the queries first … last − 1 on all keys so far, under each kind of position."""
        query, now = q[:, first:last], slice(None, last)
        distance = distances(last - first, last)
        visible = distance >= 0
        rotated = rope(query, range(first, last)), rope(k[:, now], range(last))
        xl = transformer_xl_terms(query, k[:, now], table[:, :last][:, ::-1], u, v)
        deberta = deberta_terms(query, k[:, now], qr, kr, span)
        bias = np.moveaxis(learned[t5_bucket(-distance, bidirectional=False)], -1, 0)
        return [
            attention_weights(*rotated, mask=visible),
            attention_weights(query, k[:, now], bias=alibi_bias(heads, last - first, last)),
            attention_weights(query, k[:, now], bias=sandwich_bias(distance, heads), mask=visible),
            attention_weights(query, k[:, now], bias=bias, mask=visible, scale=1.0),
            softmax(sum(xl) / dim**0.5, visible),
            softmax(sum(deberta) / (3 * dim) ** 0.5, visible),
            deberta_index(last - first, last, span)[None],
        ]

    whole, first = weights(0, length), 0
    for chunk in chunks:
        last = first + chunk
        for part, full in zip(weights(first, last), whole, strict=True):
            np.testing.assert_allclose(part, full[:, first:last, :last], rtol=0, atol=1e-14)
        first = last


@given(seeds, st.integers(1, 6), st.integers(0, 5), layouts)
def test_left_padding_does_not_change_the_weights_of_real_tokens(seed, real, padding, layout):
    q, k = vectors(seed, 2, 1, 2, real, 8)
    filler = vectors(seed + 1, 2, 1, 2, padding, 8)
    padded_q, padded_k = (np.concatenate(pair, axis=-2) for pair in zip(filler, (q, k), strict=True))
    mask = np.r_[np.zeros(padding, bool), np.ones(real, bool)]
    ids = np.where(mask, mask.cumsum() - 1, 1)[None, None]  # the usual position ids of a padded batch
    visible = np.tri(padding + real, dtype=bool) & mask

    places = np.arange(real)[None, None]  # all axes: there may be as many heads as tokens
    alone = rope(q, places, layout=layout), rope(k, places, layout=layout)
    batch = rope(padded_q, ids, layout=layout), rope(padded_k, ids, layout=layout)
    expected = attention_weights(*alone, mask=np.tri(real, dtype=bool))
    found = attention_weights(*batch, mask=visible)
    np.testing.assert_allclose(found[..., padding:, padding:], expected, rtol=0, atol=1e-15)
    assert not found[..., :padding].any() and not found[..., :padding, :].any()

    biased = attention_weights(padded_q, padded_k, bias=alibi_bias(2, padding + real), mask=visible)
    expected = attention_weights(q, k, bias=alibi_bias(2, real))
    np.testing.assert_allclose(biased[..., padding:, padding:], expected, rtol=0, atol=1e-15)


@given(seeds, st.integers(1, 8), st.integers(0, 8))
def test_weights_are_zero_or_a_distribution(seed, queries, keys):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((queries, keys)) * 10.0 ** rng.integers(-3, 300)
    scores[rng.random((queries, keys)) < 0.3] = -np.inf
    visible = rng.random((queries, keys)) < 0.7
    weights = softmax(scores, visible)
    seen = visible & (scores > -np.inf)
    np.testing.assert_allclose(weights.sum(axis=-1), seen.any(axis=-1), rtol=1e-14)
    assert (weights >= 0).all() and not weights[~seen].any()


# ------------------------------------------------------------------ NumPy and torch agree; nothing is remembered

X, Y = vectors(0, 2, 4, 8), vectors(1, 2, 4, 8)
CALLS = {
    "alibi_bias": lambda: (3, 4),
    "alibi_slopes": lambda: (3,),
    "attention_entropy": lambda: (softmax(X),),
    "attention_weights": lambda: (X.copy(), Y.copy()),
    "deberta_index": lambda: (4, 4, 2),
    "deberta_terms": lambda: (X.copy(), Y.copy(), X.copy(), Y.copy(), 2),
    "dynamic_ntk_base": lambda: (1e4, 300, 128, 16),
    "kerple_log_bias": lambda: (np.arange(5), np.array(1.5), np.array(0.5)),
    "kerple_power_bias": lambda: (np.arange(5), np.array(1.5), np.array(0.5)),
    "llama3_frequencies": lambda: (16,),
    "log_bucket": lambda: (np.arange(-20, 20), 8, 16),
    "log_n_factor": lambda: (np.arange(1, 9), 4),
    "ntk_base": lambda: (1e4, 4, 16),
    "position_interpolation": lambda: (rope_frequencies(8), 4),
    "relative_shift": lambda: (X.copy(),),
    "rope": lambda: (X.copy(), np.arange(4)),
    "rope_frequencies": lambda: (8,),
    "rope_matrix": lambda: (3, 8),
    "sandwich_bias": lambda: (np.arange(5), 3),
    "sinusoidal": lambda: (np.arange(5), 8),
    "softmax": lambda: (X.copy(), X > -0.5),
    "t5_bucket": lambda: (np.arange(-5, 5),),
    "transformer_xl_terms": lambda: (X.copy(), Y.copy(), X.copy(), X[0, 0].copy(), Y[0, 0].copy()),
    "wavelengths": lambda: (8,),
    "xpos_scale": lambda: (np.arange(5), 8),
    "yarn_attention_factor": lambda: (4,),
    "yarn_frequencies": lambda: (16, 4, 128),
}


def parts(result):
    """The arrays of a result as a list."""
    return list(result) if isinstance(result, tuple) else [result]


def test_every_public_name_is_listed():
    assert sorted(CALLS) == sorted(posviz.__all__)


FAR_CALLS = (
    CALLS
    | {  # as above, where float32, or a number too small for its dtype, would show
        "alibi_bias": lambda: (12, 3, 4000),
        "attention_weights": lambda: (1e3 * X, 1e3 * Y),
        "deberta_terms": lambda: (1e-200 * X, 1e-200 * Y, X, Y, 2),
        "dynamic_ntk_base": lambda: (1e6, 10**7, 4096, 128),
        "kerple_log_bias": lambda: (np.array([0, 10**9]), np.array(1e-200), np.array(1e-200)),
        "kerple_power_bias": lambda: (np.array([0, 10**9]), np.array(1e-200), np.array(1.7)),
        "llama3_frequencies": lambda: (128,),
        "log_n_factor": lambda: (np.array([10**6, 10**9 + 1]), 4096),
        "relative_shift": lambda: (1e-310 * X,),
        "rope": lambda: (np.concatenate([X[:1], 1e-310 * X[1:]]), np.array([10**6 - 1, 10**6, 5, 999_983])),
        "rope_frequencies": lambda: (128, 5e5),
        "rope_matrix": lambda: (10**6, 64),
        "sandwich_bias": lambda: (np.array([0, 999_983, 10**6]), 12),
        "sinusoidal": lambda: (np.array([3, 999_983, 10**6]), 64),
        "softmax": lambda: (1e3 * X,),
        "transformer_xl_terms": lambda: (1e-200 * X, 1e-200 * Y, X, X[0, 0], Y[0, 0]),
        "wavelengths": lambda: (128, 5e5),
        "xpos_scale": lambda: (np.array([-5000, 10**6]), 64),
        "yarn_frequencies": lambda: (128, 4, 2048, 5e5),
    }
)


@pytest.mark.parametrize("name", FAR_CALLS)
def test_what_numpy_is_told_about_tiny_numbers_changes_nothing(name):
    formula = getattr(posviz, name)
    for arguments in (CALLS[name](), FAR_CALLS[name]()):
        expected = parts(formula(*arguments))
        with np.errstate(all="raise"):
            found = parts(formula(*arguments))
        for part, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, wanted)


@pytest.mark.filterwarnings("ignore:Dynamo:UserWarning")  # it says what it cannot trace, and computes that as it is
@pytest.mark.parametrize("name", FAR_CALLS)
def test_compiled_formulas_are_as_exact_as_plain_ones(name):
    """torch.compile traces NumPy too, and divides its integers in float32."""
    formula, arguments = getattr(posviz, name), FAR_CALLS[name]()
    given_ones = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    torch._dynamo.reset()
    found, expected = torch.compile(lambda: formula(*given_ones), backend="eager")(), formula(*arguments)
    for part, wanted in zip(parts(found), parts(expected), strict=True):
        assert np.asarray(part).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(part, wanted, rtol=1e-9, atol=4 * ANGLE)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_a_rotation_compiles_as_one_graph(layout):
    torch._dynamo.reset()
    x, places = torch.from_numpy(X).float(), torch.arange(4)
    turned = torch.compile(lambda x, m: rope(x, m, layout=layout), backend="eager", fullgraph=True)(x, places)
    torch.testing.assert_close(turned, rope(x, places, layout=layout))


@pytest.mark.parametrize("name", CALLS)
def test_results_do_not_depend_on_what_a_caller_did_before(name):
    formula, arguments = getattr(posviz, name), CALLS[name]()
    first = parts(formula(*arguments))
    kept = [np.array(part) for part in first]
    for given_one, fresh in zip(arguments, CALLS[name](), strict=True):
        np.testing.assert_array_equal(given_one, fresh)  # a formula changes nothing that it was handed
    for part in first:
        if isinstance(part, np.ndarray) and part.ndim:
            part[...] = 7  # a caller may write into a result …
    for given_one in arguments:
        if isinstance(given_one, np.ndarray):
            assert not any(isinstance(part, np.ndarray) and np.shares_memory(part, given_one) for part in first)
            given_one[...] = 1  # … and into what it handed over
    getattr(posviz, name)(*CALLS[name]())
    for part, expected in zip(parts(formula(*CALLS[name]())), kept, strict=True):
        np.testing.assert_array_equal(part, expected)


TAKES_TENSORS = [
    *("attention_entropy", "attention_weights", "deberta_terms", "kerple_log_bias", "kerple_power_bias"),
    *("relative_shift", "rope", "softmax", "transformer_xl_terms"),
]


@pytest.mark.parametrize("name", TAKES_TENSORS)
def test_tensors_give_tensors_with_the_same_numbers(name):
    formula, arguments = getattr(posviz, name), CALLS[name]()
    tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
    for found, expected in zip(parts(formula(*tensors)), parts(formula(*arguments)), strict=True):
        assert isinstance(found, torch.Tensor) and found.dtype == torch.float64
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-14)
    if torch.cuda.is_available():
        moved = [a.cuda() if isinstance(a, torch.Tensor) else a for a in tensors]
        for found, expected in zip(parts(formula(*moved)), parts(formula(*arguments)), strict=True):
            assert found.device.type == "cuda"
            np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=0, atol=1e-13)


MAPPED = {  # arguments along whose first axis a formula is mapped
    "attention_entropy": lambda: (softmax(vectors(3, 5, 4, 8)),),
    "attention_weights": lambda: (vectors(3, 5, 2, 4, 8), vectors(4, 5, 2, 4, 8)),
    "deberta_terms": lambda: tuple(vectors(n, 5, 4, 8) for n in range(4)),
    "kerple_log_bias": lambda: (np.arange(1.0, 6), np.arange(2.0, 7)),
    "kerple_power_bias": lambda: (np.arange(1.0, 6), np.linspace(0.2, 2, 5)),
    "position_interpolation": lambda: (np.abs(vectors(3, 5, 4)),),
    "relative_shift": lambda: (vectors(3, 5, 4, 8),),
    "rope": lambda: (vectors(3, 5, 2, 4, 8), np.arange(20).reshape(5, 4)),
    "softmax": lambda: (vectors(3, 5, 4, 8), vectors(4, 5, 4, 8) > 0),
    "transformer_xl_terms": lambda: (*(vectors(n, 5, 4, 8) for n in range(3)), vectors(3, 5, 8), vectors(4, 5, 8)),
}


def call_of(name):
    """The formula as a function of what it is mapped over."""
    return {
        "deberta_terms": lambda *given: posviz.deberta_terms(*given, 2),
        "kerple_log_bias": lambda *given: posviz.kerple_log_bias(range(6), *given),
        "kerple_power_bias": lambda *given: posviz.kerple_power_bias(range(6), *given),
        "position_interpolation": lambda theta: posviz.position_interpolation(theta, 4),
    }.get(name, getattr(posviz, name))


@pytest.mark.parametrize("name", MAPPED)
def test_formulas_can_be_mapped(name):
    call, given_ones = call_of(name), [torch.from_numpy(a) for a in MAPPED[name]()]
    mapped = parts(torch.vmap(call)(*given_ones))
    for i in range(5):
        for part, expected in zip(mapped, parts(call(*(a[i] for a in given_ones))), strict=True):
            torch.testing.assert_close(part[i], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", MAPPED)
def test_formulas_know_shapes_without_values(name):
    call, given_ones = call_of(name), [torch.from_numpy(a[0, ...]) for a in MAPPED[name]()]
    without = parts(call(*(a.to("meta") for a in given_ones)))
    for part, expected in zip(without, parts(call(*given_ones)), strict=True):
        assert part.device.type == "meta" and part.shape == expected.shape and part.dtype == expected.dtype
