"""Bad input: every mistake gets an error of the right type whose message names the argument and the value."""

import re

import numpy as np
import pytest
import torch

import posviz as p
from posviz import _arguments as arguments
from posviz.bias import distances
from posviz.rope import rotation_table

X = np.zeros((3, 4))
DIMS = [(3, "3"), (0, "0"), (-2, "-2")]
NOT_INTEGERS = [
    *[(2.5, "2.5"), ("8", "'8'"), (True, "True"), (None, "None"), (np.bool_(1), "True"), ([8], r"\[8\]")],
    *[(np.array(2.5), "2.5"), (np.array([8]), r"\[8\]"), (np.array(True), "True")],
    *[(torch.tensor(2.5), "2.5"), (torch.tensor([8, 8]), r"\[8, 8\]"), (torch.tensor(True), "True")],
]
LEARNED = torch.tensor(2.0, requires_grad=True)
NOT_POSITIVE = [(0, "0"), (-1.5, "-1.5"), (float("nan"), "nan"), (float("inf"), "inf")]
NOT_NUMBERS = [("4", "'4'"), (True, "True"), (None, "None"), ([4], r"\[4\]"), (1j, "1j")]
NOT_WHOLE = [([0.5], "0.5"), ([True], "bool"), (["a"], "a"), ([float("nan")], "nan"), (1e30, "1e"), ([None], "None")]


def cases():
    """(call, error, what the message must hold)."""
    for dim, shown in DIMS:
        for call in (
            p.rope_frequencies,
            p.wavelengths,
            p.llama3_frequencies,
            lambda d: p.sinusoidal([0], d),
            lambda d: p.rope_matrix(1, d),
            lambda d: p.xpos_scale([0], d),
            lambda d: p.yarn_frequencies(d, 4, 2048),
            lambda d: p.sandwich_bias([1], 4, dim=d),
            lambda d: p.rope(X, range(3), rotary_dim=d),
        ):
            yield lambda call=call, dim=dim: call(dim), ValueError, f"dim must be an even number.*got {shown}$"
    yield lambda: p.ntk_base(1e4, 2, 2), ValueError, "dim must be an even number of at least 4.*got 2"
    for dim, shown in NOT_INTEGERS:
        yield lambda dim=dim: p.rope_frequencies(dim), TypeError, f"dim must be an integer; got .*{shown}"
        yield lambda heads=dim: p.alibi_slopes(heads), TypeError, f"heads must be an integer; got .*{shown}"
        if dim is not None:
            yield lambda n=dim: p.alibi_bias(4, 3, n), TypeError, f"key_length must be an integer; got .*{shown}"
        yield lambda m=dim: p.rope_matrix(m, 4), TypeError, f"position must be an integer; got .*{shown}"
    for base, shown in NOT_POSITIVE:
        yield lambda b=base: p.rope_frequencies(8, b), ValueError, f"base must be .*got {shown}"
        yield lambda b=base: p.sinusoidal([1], 8, b), ValueError, f"base must be .*got {shown}"
        yield lambda b=base: p.rope(X, range(3), base=b), ValueError, f"base must be .*got {shown}"
        yield lambda b=base: p.xpos_scale([1], 8, gamma=b), ValueError, f"gamma must be .*got {shown}"
        yield lambda b=base: p.xpos_scale([1], 8, scale_base=b), ValueError, f"scale_base must be .*got {shown}"
        yield lambda b=base: p.kerple_log_bias([1], b, 1), ValueError, f"r1 must be .*got {shown}"
        yield lambda b=base: p.kerple_log_bias([1], 1, b), ValueError, f"r2 must be .*got {shown}"
        yield lambda b=base: p.attention_weights(X, X, temperature=b), ValueError, f"temperature must be .*got {shown}"
    for below, shown in NOT_POSITIVE[1:]:  # 0 leaves a pair as it is
        yield lambda b=below: p.position_interpolation([1, b], 2), ValueError, f"frequencies must be .*got {shown}"
        yield lambda b=below: p.rope(X, range(3), frequencies=[1, b]), ValueError, f"frequencies must be .*got {shown}"
    for base, shown in NOT_NUMBERS:
        yield lambda b=base: p.rope_frequencies(8, b), TypeError, f"base must be a number; got .*{shown}"
        yield lambda b=base: p.yarn_attention_factor(b), TypeError, f"factor must be a number; got .*{shown}"
    for factor in (0.5, 0, -4):
        for call in (
            lambda s: p.position_interpolation([1.0], s),
            lambda s: p.ntk_base(1e4, s, 8),
            lambda s: p.dynamic_ntk_base(1e4, 10, 5, 8, factor=s),
            lambda s: p.yarn_frequencies(8, s, 100),
            p.yarn_attention_factor,
            lambda s: p.llama3_frequencies(8, s),
        ):
            yield lambda call=call, s=factor: call(s), ValueError, f"factor must be at least 1; got {factor}$"
    for bad, shown in NOT_WHOLE:
        yield lambda v=bad: p.sinusoidal(v, 4), TypeError, f"positions must be .*got .*{shown}"
        yield lambda v=bad: p.rope(X[:1], v), TypeError, f"positions must be .*got .*{shown}"
        yield lambda v=bad: p.xpos_scale(v, 4), TypeError, f"positions must be .*got .*{shown}"
        yield lambda v=bad: p.t5_bucket(v), TypeError, f"relative_position must be .*got .*{shown}"
        yield lambda v=bad: p.log_bucket(v, 8, 16), TypeError, f"relative_position must be .*got .*{shown}"
        yield lambda v=bad: p.kerple_power_bias(v, 1, 1), TypeError, f"distance must be .*got .*{shown}"
        yield lambda v=bad: p.sandwich_bias(v, 4), TypeError, f"distance must be .*got .*{shown}"
        yield lambda v=bad: p.log_n_factor(v, 512), TypeError, f"visible_keys must be .*got .*{shown}"
    for huge in (2**63, -(10**400), 1e300):
        yield lambda n=huge: p.rope_matrix(n, 4), ValueError, "position must fit in 64 bits; got "
    yield lambda: p.rope_frequencies(8, 10**400), ValueError, "base must be finite; got 1000"
    yield lambda: p.ntk_base(1e4, 1e300, 4), ValueError, r"base · factor.* with factor 1e\+300 must be finite; got inf"
    yield lambda: p.ntk_base(1e300, 1e9, 64), ValueError, r"base · factor.* with factor 1e\+09 must be finite; got inf"
    yield (lambda: p.dynamic_ntk_base(1e4, 2**62, 1, 4, factor=1e300), ValueError, "factor must be finite; got inf")
    yield lambda: p.log_n_factor([5, 0], 512), ValueError, "visible_keys must be at least 1; got 0"
    yield lambda: p.log_n_factor(5, 1), ValueError, "trained_length must be an integer of at least 2; got 1"
    yield lambda: p.sinusoidal([[1, 2], [3]], 4), ValueError, r"positions must be a rectangular .*\[\[1, 2\], \[3\]\]"
    yield lambda: p.t5_bucket(np.array([2**63], np.uint64)), ValueError, "must fit in 64 bits; got 9223372036854775808"

    # gradients that would end here
    for learned in (
        lambda: p.rope_frequencies(8, LEARNED),
        lambda: p.rope(torch.zeros(3, 4), range(3), base=LEARNED),
        lambda: p.ntk_base(1e4, LEARNED, 8),
        lambda: p.xpos_scale([1], 4, gamma=LEARNED),
        lambda: p.yarn_frequencies(8, LEARNED, 99),
        lambda: p.yarn_attention_factor(LEARNED),
    ):
        yield learned, TypeError, "is taken as a plain number, and no gradient would reach it; got tensor"
    yield lambda: p.rope(X, range(3), frequencies=LEARNED.expand(2)), TypeError, "would lose its gradient"
    yield lambda: p.attention_weights(X, X, bias=LEARNED), TypeError, "would lose its gradient"
    yield lambda: p.sinusoidal(LEARNED, 4), TypeError, "positions would lose its gradient"

    # names
    yield lambda: p.sinusoidal([0], 4, layout="half"), ValueError, "layout must be one of .*got 'half'"
    yield lambda: p.rope(X, range(3), layout="neox"), ValueError, "layout must be one of .*got 'neox'"
    yield lambda: p.yarn_frequencies(8, 2, 99, ramp="hf"), ValueError, "ramp must be one of .*got 'hf'"
    yield lambda: p.deberta_terms(X, X, X, X, 2, convention="v3"), ValueError, "convention must be one of .*got 'v3'"

    # lengths and counts
    yield lambda: p.alibi_slopes(0), ValueError, "heads must be an integer of at least 1; got 0"
    yield lambda: p.alibi_bias(4, -1), ValueError, "query_length must be .*got -1"
    yield lambda: p.alibi_bias(4, 3, -1), ValueError, "key_length must be .*got -1"
    yield lambda: p.alibi_bias(4, 3, 2), ValueError, "key_length must be at least query_length, 3; got 2"
    yield lambda: p.deberta_index(-2), ValueError, "query_length must be .*got -2"
    yield lambda: p.deberta_index(2, span=0), ValueError, "span must be .*got 0"
    yield lambda: p.sandwich_bias([1], 0), ValueError, "heads must be .*got 0"
    yield lambda: p.dynamic_ntk_base(1e4, -1, 5, 8), ValueError, "length must be .*got -1"
    yield lambda: p.dynamic_ntk_base(1e4, 1, 0, 8), ValueError, "trained_length must be .*got 0"
    yield lambda: p.yarn_frequencies(8, 2, 0), ValueError, "trained_length must be .*got 0"
    yield lambda: p.llama3_frequencies(8, trained_length=1.5), TypeError, "trained_length must be .*got 1.5"
    yield lambda: p.t5_bucket([1], num_buckets=7), ValueError, "num_buckets must be even.*got 7"
    yield lambda: p.t5_bucket([1], num_buckets=2), ValueError, "num_buckets must be .*at least 4; got 2"
    yield lambda: p.t5_bucket([1], bidirectional=False, num_buckets=1), ValueError, "num_buckets must be .*got 1"
    yield lambda: p.t5_bucket([1], max_distance=8), ValueError, "max_distance must be .*at least 9; got 8"
    yield lambda: p.log_bucket([1], 1, 16), ValueError, "bucket_size must be .*got 1"
    yield lambda: p.log_bucket([1], 8, 5), ValueError, "max_position must be .*at least 6; got 5"
    yield lambda: distances(2.5), TypeError, "query_length must be .*got 2.5"

    # ranges
    yield lambda: p.yarn_frequencies(8, 2, 99, beta_fast=1, beta_slow=1), ValueError, "beta_slow must be below .*got 1"
    yield lambda: p.yarn_frequencies(8, 2, 99, base=1), ValueError, "base must be above 1.*got 1"
    yield lambda: p.yarn_attention_factor(4, mscale=-1), ValueError, "mscale must be at least 0; got -1"
    yield lambda: p.yarn_attention_factor(4, 1, -1), ValueError, "mscale_all_dim must be at least 0; got -1"
    yield lambda: p.llama3_frequencies(8, low=4, high=4), ValueError, "low must be below high, 4; got 4"
    yield lambda: p.llama3_frequencies(8, low=0), ValueError, "low must be above 0; got 0"
    yield lambda: p.kerple_power_bias([1], 1, 2.5), ValueError, "r2 must be at most 2; got 2.5"
    yield lambda: p.kerple_power_bias([1], torch.tensor([1.0]), torch.tensor([-0.5])), ValueError, "r2 .*got -0.5"
    yield lambda: p.kerple_log_bias([1], "1", 1), TypeError, "r1 must be real numbers; got .*'1'"
    yield lambda: p.attention_entropy([0.5, -0.5]), ValueError, "weights must be at least 0; got -0.5"
    yield lambda: p.attention_weights(X, X, scale=np.nan), ValueError, "scale must be finite; got nan"
    yield lambda: p.attention_weights(X, X, scale="big"), TypeError, "scale must be a number; got 'big'"
    yield (
        lambda: p.attention_weights(X, X, scale=torch.ones(2)),
        ValueError,
        r"scale must .* number, \(\); got .*\(2,\)",
    )

    # arrays
    yield lambda: p.rope(3.0, 0), ValueError, "x must have shape .*got a single number"
    yield lambda: p.rope(np.zeros((2, 5)), [0, 1]), ValueError, "last axis of x must be an even number.*got 5"
    yield lambda: p.rope(X, range(3), rotary_dim=6), ValueError, "rotary_dim must be at most .* 4; got 6"
    yield lambda: p.rope(X, range(4)), ValueError, r"positions must broadcast to .*\(3,\); got shape \(4,\)"
    yield lambda: p.rope(X, [[0, 1, 2]]), ValueError, r"positions must broadcast to .*\(3,\); got shape \(1, 3\)"
    yield lambda: p.rope(X[0], [0, 1]), ValueError, r"positions must broadcast to .*\(\); got shape \(2,\)"
    yield lambda: p.rope(torch.zeros(3, 4), torch.arange(2)), ValueError, r"positions must broadcast .*got shape \(2,\)"
    yield lambda: p.rope(torch.zeros(3, 4), torch.tensor([0.5])), TypeError, "positions must be whole numbers; got 0.5"
    yield lambda: p.rope(torch.zeros(3, 4), torch.tensor([True])), TypeError, "positions must be integers.*got bool"
    yield lambda: p.rope(X, range(3), frequencies=[1.0]), ValueError, r"frequencies must have shape \(2,\).*got \(1,\)"
    yield lambda: p.rope(X, range(3), frequencies=[1.0, -1]), ValueError, "frequencies must be .*got -1"
    yield lambda: p.rope(X, range(3), frequencies=["a", "b"]), TypeError, "frequencies must be real numbers; got .*'a'"
    yield lambda: p.rope(X.astype(complex), range(3)), TypeError, "x must be real numbers; got complex128"
    yield lambda: p.rope(X > 0, range(3)), TypeError, "x must be real numbers; got bool .*False"
    yield lambda: p.rope(["a", "b"], 0), TypeError, "x must be real numbers; got <U1 .*'a'"
    yield lambda: p.rope(torch.zeros(2, dtype=torch.bool), 0), TypeError, "x must be real numbers; got torch.bool"
    yield lambda: p.rope([[1, 2], [3]], 0), ValueError, r"x must be a rectangular array.*got \[\[1, 2\], \[3\]\]"
    many = np.zeros((2, 5, 5, 8))  # as many heads as tokens, in either order
    yield lambda: p.rope(many, range(5)), ValueError, r"shape \(5,\) fit two places .*\(2, 5, 5\): give them 3 axes"
    yield lambda: p.rope(torch.tensor(many), [range(5)]), ValueError, r"shape \(1, 5\) fit two places .*\(2, 5, 5\)"
    yield lambda: p.rope(many[:, :2], np.zeros((2, 5), int)), ValueError, r"shape \(2, 5\) fit two places .*\(2, 2, 5\)"
    yield lambda: rotation_table([0, 1], [1.0], X), ValueError, r"positions must broadcast .*got shape \(2,\)"
    yield lambda: p.softmax(3.0), ValueError, r"scores must have shape \(..., key\); got a single number"
    yield lambda: p.softmax(X, [1, 1, 0, 0]), TypeError, "mask must be boolean, True = visible; got int64"
    yield lambda: p.softmax(X, np.zeros((3, 4))), TypeError, "mask must be boolean.*got float64"
    yield lambda: p.softmax(X, torch.zeros(3, 4)), TypeError, "mask must be boolean.*got torch.float32"
    yield lambda: p.softmax(X, np.ones(3, bool)), ValueError, r"mask must broadcast .*\(3, 4\); got shape \(3,\)"
    yield lambda: p.softmax(X, np.ones((2, 3, 4), bool)), ValueError, r"mask must broadcast .*got shape \(2, 3, 4\)"
    yield lambda: p.attention_entropy(1.0), ValueError, r"weights must have shape \(..., key\); got a single number"
    yield lambda: p.attention_weights(X[0], X), ValueError, r"q must have shape .*got \(4,\)"
    yield lambda: p.attention_weights(X, X[:, :0]), ValueError, "last axes must be equal and not empty; got q 4, k 0"
    yield lambda: p.attention_weights(X, X[:, :3]), ValueError, "last axes must be equal and not empty; got q 4, k 3"
    for kind in (np.zeros, torch.zeros):
        eight, two, table = kind((8, 3, 4)), kind((2, 3, 4)), kind((2, 4))
        shapes = r"leading axes must broadcast with one another; got .* \(8,\), .* \(2,\)"
        yield lambda a=eight, b=two: p.attention_weights(a, b), ValueError, shapes
        yield lambda a=eight, b=two, t=table: p.deberta_terms(a, b, t, t, 1), ValueError, shapes
        yield lambda a=eight, b=two: p.transformer_xl_terms(a, a, b, a[0, 0], a[0, 0]), ValueError, shapes
        for formula in (p.kerple_log_bias, p.kerple_power_bias):
            r = kind(8) + 1
            message = r"shapes must broadcast .* distance \(3,\), r1 \(8,\)"
            yield lambda f=formula, r=r: f(range(3), r, 1), ValueError, message
    yield lambda: p.attention_weights(X, torch.zeros(3, 4)), TypeError, "one kind, .*q is ndarray, k is Tensor"
    yield lambda: p.attention_weights(X, X, bias=np.zeros((2, 3, 3))), ValueError, r"bias must .*got shape \(2, 3, 3\)"
    yield lambda: p.attention_weights(X, X, bias=["a"]), TypeError, "bias must be real numbers; got <U1 .*'a'"
    yield lambda: p.attention_weights(X, X, temperature=[1, 2]), ValueError, r"temperature must .*got shape \(2,\)"
    yield lambda: p.relative_shift([1, 2]), ValueError, r"scores must have shape .*got \(2,\)"
    yield lambda: p.transformer_xl_terms(X, X, X[:2], X[0], X[0]), ValueError, r"relative must have 3 .*or 5 .*got 2"
    yield lambda: p.transformer_xl_terms(X, X, X, 1.0, X[0]), ValueError, "u must have shape .*single number"
    yield lambda: p.transformer_xl_terms(X, X, X, X[0], [1.0]), ValueError, "last axes must be equal .*v 1"
    yield lambda: p.transformer_xl_terms(X, X[:2], X, X[0], X[0]), ValueError, "key_length must be at least .*3; got 2"
    yield lambda: p.deberta_terms(X, X, X, X, 2), ValueError, "position_queries must have 2·span = 4 rows; got 3"
    yield lambda: p.deberta_terms(X, X, np.zeros((4, 4)), X, 2), ValueError, "position_keys must .* 4 rows; got 3"
    yield lambda: p.deberta_terms(X, X, X, X, 2.5), TypeError, "span must be an integer; got 2.5"


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_bad_input_names_the_argument_and_the_value(case):
    call, error, message = case
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert re.search(message, str(caught.value), re.DOTALL), f"{caught.value} does not match {message}"


EIGHTS = [
    *[8, np.int8(8), np.uint64(8), 8.0, np.float32(8), np.array(8), np.array(8.0)],
    *[torch.tensor(8), torch.tensor(8.0), torch.tensor(8, dtype=torch.bfloat16)],
]


@pytest.mark.parametrize("value", EIGHTS, ids=repr)
def test_whole_numbers_of_every_kind_are_integers(value):
    assert arguments.integer(value, "n") == 8 and type(arguments.integer(value, "n")) is int


@pytest.mark.parametrize("eight", EIGHTS[1:], ids=repr)
@pytest.mark.parametrize(
    "formula",
    [
        lambda n: p.sinusoidal([0, 5], n),
        lambda n: p.sinusoidal(n, 4, base=n),
        lambda n: p.wavelengths(n, n),
        lambda n: p.rope_frequencies(n, n),
        lambda n: p.rope_matrix(n, n, n),
        lambda n: p.rope(np.ones(12), n, base=n, rotary_dim=n),
        lambda n: p.xpos_scale(n, n, gamma=n, scale_base=n),
        lambda n: p.position_interpolation([1.0], n),
        lambda n: p.ntk_base(n, n, n),
        lambda n: p.dynamic_ntk_base(n, n, 4, n, factor=n),
        lambda n: p.yarn_frequencies(n, n, n, n, beta_fast=n, truncate=False),
        lambda n: p.yarn_frequencies(n, n, 100, n, beta_slow=n, ramp="paper"),
        lambda n: p.yarn_attention_factor(n, n, n),
        lambda n: p.llama3_frequencies(n, n, n, n, high=n),
        lambda n: p.log_n_factor(n + 1, n),
        lambda n: p.alibi_slopes(n),
        lambda n: p.alibi_bias(n, n, n),
        lambda n: p.kerple_log_bias(n, 1, 1),
        lambda n: p.sandwich_bias(n, n, n),
        lambda n: p.t5_bucket(n, num_buckets=n, max_distance=n),
        lambda n: p.log_bucket(n, n, n),
        lambda n: p.deberta_index(n, n, n),
        lambda n: p.deberta_terms(X, X, np.ones((16, 4)), np.ones((16, 4)), n),
        lambda n: p.attention_weights(X, X, scale=n, temperature=n),
    ],
)
def test_every_kind_of_number_gives_what_a_python_number_gives(formula, eight):
    np.testing.assert_array_equal(formula(eight), formula(8))


@pytest.mark.parametrize("value", [2, 2.0, np.float16(2), np.array(2.0), torch.tensor(2.0)])
def test_numbers_of_every_kind_are_floats(value):
    assert arguments.positive(value, "x") == 2.0 and type(arguments.positive(value, "x")) is float


def test_messages_stay_short():
    with pytest.raises(TypeError) as caught:
        p.rope_frequencies([1] * 10_000)
    assert len(str(caught.value)) < 200


def test_whole_numbers_are_copied():
    given = np.arange(3)
    arguments.whole_numbers(given, "positions")[0] = 9
    assert given[0] == 0
