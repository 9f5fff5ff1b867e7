"""What the formula tests compare with: slow loops written from the definitions, and printed reference values."""

import math

import numpy as np


def assert_printed(actual, expected, digits):
    """`actual` rounds to `expected`, which was printed with so many decimals: half a unit of the last one."""
    np.testing.assert_allclose(np.asarray(actual, dtype=float), expected, rtol=0, atol=0.5000001 * 10.0**-digits)


def assert_significant(actual, expected, digits):
    """`actual` rounds to `expected`, which was printed with so many significant digits."""
    for got, wanted in zip(np.ravel(actual), np.ravel(expected), strict=True):
        unit = 10.0 ** (math.floor(math.log10(abs(wanted))) - digits + 1)
        assert abs(got - wanted) <= 0.5000001 * unit, f"{got} is not {wanted} to {digits} digits"


def sinusoid_loop(positions, dim, base=10_000.0):
    """The interleaved table, one number at a time."""
    table = []
    for k in positions:
        row = []
        for feature in range(dim):
            angle = k / base ** (2 * (feature // 2) / dim)
            row.append(math.cos(angle) if feature % 2 else math.sin(angle))
        table.append(row)
    return np.array(table)


def rope_loop(x, positions, base=10_000.0, layout="interleaved", rotary_dim=None):
    """x (sequence, dim) with each pair rotated, one pair at a time; features beyond rotary_dim are copied."""
    x = np.asarray(x, dtype=float)
    out = x.copy()
    width = rotary_dim or x.shape[1]
    for row, position in enumerate(positions):
        for i in range(width // 2):
            first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + width // 2)
            angle = int(position) * base ** (-2 * i / width)
            a, b = x[row, first], x[row, second]
            out[row, first] = a * math.cos(angle) - b * math.sin(angle)
            out[row, second] = a * math.sin(angle) + b * math.cos(angle)
    return out


def softmax_loop(scores, visible):
    """One row of softmax over the visible keys, in exact order of the definition."""
    shown = [score for score, seen in zip(scores, visible) if seen and score > -math.inf]
    if not shown:
        return [0.0] * len(scores)
    largest = max(shown)
    total = math.fsum(math.exp(score - largest) for score in shown)
    return [math.exp(s - largest) / total if seen and s > -math.inf else 0.0 for s, seen in zip(scores, visible)]


def t5_bucket_loop(relative_position, bidirectional, num_buckets, max_distance):
    """T5's bucket of one relative position (key − query)."""
    first = 0
    if bidirectional:
        num_buckets //= 2
        first = num_buckets if relative_position > 0 else 0
        distance = abs(relative_position)
    else:
        distance = max(-relative_position, 0)
    exact = num_buckets // 2
    if distance < exact:
        return first + distance
    share = math.log(distance / exact) / math.log(max_distance / exact)
    return first + min(exact + int(share * (num_buckets - exact)), num_buckets - 1)


def deberta_delta_loop(i, j, span):
    """δ(i, j) of DeBERTa's eq. 3."""
    if i - j <= -span:
        return 0
    if i - j >= span:
        return 2 * span - 1
    return i - j + span


def dot(a, b):
    """Σ a_i b_i of two short vectors."""
    return math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))
