"""Relative positions inside attention: Transformer-XL and XLNet, T5, DeBERTa (chapter 4)."""

import math
from bisect import bisect_right
from collections import namedtuple

import numpy as np

from ._arguments import count, one_of, require, whole_numbers
from ._arrays import convert_like, quiet, real_array, same_kind
from .bias import distances

LARGEST = np.iinfo(np.int64).max  # −2^63 alone has no opposite

TransformerXLTerms = namedtuple("TransformerXLTerms", "content_content content_position bias_content bias_position")
TransformerXLTerms.__doc__ = "The four summands of a raw score, each (..., query, key); `sum(terms)` is the score."


def relative_shift(scores):
    """Move row i of (..., query, columns) left by (queries − 1 − i): columns by distance become columns by key.

    In: column c belongs to the distance columns − 1 − c. Out: entry (i, j) belongs to the distance of query i
    and key j when the last query lines up with the last key. No index table: pad one column, read the same
    memory with other row lengths, drop the first row. Entries beyond the given columns are leftovers of the
    next row: mask them. XLNet, which has one column more, is relative_shift(x[..., 1:])[..., :key_length].

    scores: NumPy or torch. Returns the same shape and kind. Raises ValueError for fewer than two axes.
    Source: Dai et al. 2019 (Transformer-XL), appendix B; `_rel_shift` of kimiyoung/transformer-xl.

    >>> relative_shift([[2, 1, 0], [2, 1, 0], [2, 1, 0]]).astype(int).tolist()
    [[0, 0, 2], [1, 0, 0], [2, 1, 0]]
    """
    xp, scores = real_array(scores, "scores", "query", "distance")
    *lead, queries, columns = scores.shape
    padded = xp.concat([xp.zeros_like(scores[..., :1]), scores], axis=-1)  # (..., queries, columns + 1)
    return xp.reshape(xp.reshape(padded, (*lead, columns + 1, queries))[..., 1:, :], scores.shape)


@quiet(under="ignore")
def transformer_xl_terms(queries, keys, relative, u, v):
    """Transformer-XL's raw score in four parts: q·k, q·r, u·k, v·r with r = the vector of the distance i − j.

    u and v take the place of the query in the last two terms: they live in the head's space, and no W_q stands
    between. The sign is query − key; the sine part of r is odd, so the other sign gives other scores.
    Divide the sum by sqrt(dim) and mask before the softmax.

    queries: (..., query, dim); keys: (..., key, dim), projected, without positions.
    relative: (..., rows, dim), W_kR · sinusoid of the distances key − 1, key − 2, … in falling order: either
        key rows (down to 0: causal, the terms of future keys are set to 0) or query + key − 1 rows (both sides).
    u, v: (dim,) or (..., dim), say (heads, dim). All NumPy or all torch.
    Returns TransformerXLTerms. Raises ValueError for other shapes, TypeError for mixed kinds.
    Source: Dai et al. 2019 (Transformer-XL), section 3.3; XLNet adds a segment term.

    >>> terms = transformer_xl_terms([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[0.8, 0.5], [0, 1]], [0.1, 0.2], [0.3, -0.1])
    >>> sum(terms).round(4).tolist()
    [[1.0, 0.2], [0.79, 2.1]]
    """
    u, v = (real_array(bias, name, "dim")[1][..., None, :] for bias, name in ((u, "u"), (v, "v")))  # (..., 1, dim)
    xp, (q, k, r, u, v) = same_kind(queries=queries, keys=keys, relative=relative, u=u, v=v)
    distance = distances(q.shape[-2], k.shape[-2])
    rows, (query, key) = r.shape[-2], distance.shape
    if rows not in (key, query + key - 1):
        raise ValueError(f"relative must have {key} (causal) or {query + key - 1} rows; got {rows}")

    def by_key(scores):  # (..., query, rows) -> (..., query, key)
        shifted = relative_shift(scores)[..., :key]
        return shifted if rows > key else xp.where(convert_like(distance >= 0, shifted), shifted, 0.0)

    q, u, v = xp.broadcast_arrays(q, u, v)  # (..., query, dim)
    k, r = xp.matrix_transpose(k), xp.matrix_transpose(r)  # (..., dim, key), (..., dim, rows)
    return TransformerXLTerms(q @ k, by_key(q @ r), u @ k, by_key(v @ r))


def t5_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
    """T5's bucket of each relative position: small distances one by one, larger ones in widening ranges.

    relative_position is key − query, so the past is negative. Causal: distances 0 … 15 have their own
    bucket, then ranges up to max_distance, all future keys share bucket 0. Bidirectional: half of the buckets
    for keys in the future. The last bucket starts below max_distance (at 113 and 91 of 128). The learned
    scalar of a bucket and head is added to the unscaled score and shared by all layers.

    relative_position: integers of any shape. Returns int64, same shape, 0 … num_buckets − 1.
    Raises TypeError for numbers that are not whole; ValueError if there are too few buckets (2, or 4 and even
    when bidirectional) or max_distance does not exceed the exact range.
    Source: Raffel et al. 2020, section 2.1; `_relative_position_bucket` of Mesh TensorFlow and Hugging Face.

    >>> t5_bucket([-200, -16, -15, -1, 0, 1, 16]).tolist()
    [15, 10, 9, 1, 0, 17, 26]
    >>> t5_bucket([-200, -16, -15, -1, 0, 1, 16], bidirectional=False).tolist()
    [31, 16, 15, 1, 0, 0, 0]
    """
    relative = np.maximum(whole_numbers(relative_position, "relative_position"), -LARGEST)
    buckets = count(num_buckets, "num_buckets", least=4 if bidirectional else 2)
    if bidirectional:
        require(buckets % 2 == 0, "num_buckets", "be even (half for each direction)", buckets)
        buckets //= 2
        first, distance = np.where(relative > 0, buckets, 0), np.abs(relative)
    else:
        first, distance = 0, np.maximum(-relative, 0)
    exact = buckets // 2
    longest, ranges = count(max_distance, "max_distance", least=exact + 1), buckets - exact
    # Range k starts where ranges · ln(distance/exact) / ln(longest/exact) reaches k; floats would miss ties.
    starts = [exact] + [_root(longest**k * exact ** (ranges - k) - 1, ranges) + 1 for k in range(1, ranges)]
    wide = exact - 1 + np.searchsorted(starts, distance, side="right")
    return first + np.where(distance < exact, distance, wide)


DebertaTerms = namedtuple("DebertaTerms", "content_to_content content_to_position position_to_content")
DebertaTerms.__doc__ = "The three summands of a raw score, each (..., query, key); `sum(terms)` is the score."


def deberta_index(query_length, key_length=None, span=512):
    """DeBERTa's row δ(i, j) of the relative table: clip(i − j + span, 0, 2·span − 1).

    The last query lines up with the last key. The range is lopsided: −span has a row, +span shares that of span − 1.

    Lengths in tokens; span: ≥ 1 (k in the paper). Returns int64 of shape (query, key).
    Raises TypeError or ValueError for other lengths. Source: He et al. 2021 (DeBERTa), eq. 3.

    >>> deberta_index(3, span=2).tolist()
    [[2, 1, 0], [3, 2, 1], [3, 3, 2]]
    """
    return _delta(distances(query_length, key_length), count(span, "span"))


@quiet(under="ignore")
def deberta_terms(content_queries, content_keys, position_queries, position_keys, span, convention="paper"):
    """DeBERTa's raw score in three parts: content→content, content→position, position→content.

    Q^c_i · K^c_j + Q^c_i · K^r_δ(i,j) + K^c_j · Q^r_δ(j,i). There is no position→position term. Divide the sum by
    sqrt(3 dim): three terms. The released code (convention="code", Microsoft and Hugging Face) takes δ(i, j) in the
    last term too; the paper insists on δ(j, i). A checkpoint needs the code's.

    content_queries: (..., query, dim); content_keys: (..., key, dim), without positions;
    position_queries, position_keys: (..., 2·span, dim), rows of the table after W_qr and W_kr.
    All NumPy or all torch. Returns DebertaTerms. Raises ValueError for other shapes or another convention.
    Source: He et al. 2021 (DeBERTa), eq. 4; `disentangled_attention.py` of microsoft/DeBERTa for "code".

    >>> x, p = [[1, 0], [0, 1], [1, 1]], [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]]
    >>> sum(deberta_terms(x, x, p, p, span=2))[0].round(4).tolist()
    [2.0, 1.1, 2.6]
    >>> sum(deberta_terms(x, x, p, p, span=2, convention="code"))[0].round(4).tolist()
    [2.0, 0.7, 1.4]
    """
    one_of(convention, "convention", ("paper", "code"))
    xp, (qc, kc, qr, kr) = same_kind(
        content_queries=content_queries,
        content_keys=content_keys,
        position_queries=position_queries,
        position_keys=position_keys,
    )
    span = count(span, "span")
    for name, table in (("position_queries", qr), ("position_keys", kr)):
        if table.shape[-2] != 2 * span:
            raise ValueError(f"{name} must have 2·span = {2 * span} rows; got {table.shape[-2]}")
    distance = distances(qc.shape[-2], kc.shape[-2])
    forward = _delta(distance, span)
    backward = _delta(-distance, span) if convention == "paper" else forward

    def take(scores, index):  # (..., n, 2·span), (n, m) -> (..., n, m)
        index = xp.broadcast_to(convert_like(index, scores), (*scores.shape[:-2], *index.shape))
        return xp.take_along_axis(scores, index, axis=-1)

    content_to_position = take(qc @ xp.matrix_transpose(kr), forward)
    position_to_content = xp.matrix_transpose(take(kc @ xp.matrix_transpose(qr), backward.T))
    return DebertaTerms(qc @ xp.matrix_transpose(kc), content_to_position, position_to_content)


def log_bucket(relative_position, bucket_size, max_position, clamp=True):
    """DeBERTa v2's buckets: exact up to mid = bucket_size/2, then logarithmic; odd, so both sign conventions fit.

    sign(r) · (mid + ceil(ln(|r|/mid) / ln((max_position−1)/mid) · (mid−1))) beyond mid. The row of the table is
    this + span, clipped to 0 … 2·span − 1 (span = bucket_size). From max_position on, r counts as max_position − 1, as
    in Microsoft's code since commit c794b71; clamp=False lets it grow on, as the code before and Hugging Face do.

    relative_position: integers of any shape; bucket_size: ≥ 2; max_position: ≥ mid + 2. Returns int64, same shape.
    Raises TypeError for numbers that are not whole, ValueError for sizes that are too small.
    Source: `make_log_bucket_position` of microsoft/DeBERTa (v2 and v3 use 256 and 512).

    >>> log_bucket([-500, -1, 0, 128, 200, 512], 256, 512).tolist()
    [-254, -1, 0, 128, 169, 255]
    """
    relative = np.maximum(whole_numbers(relative_position, "relative_position"), -LARGEST)
    mid = count(bucket_size, "bucket_size", least=2) // 2
    last = count(max_position, "max_position", least=mid + 2) - 1
    if clamp:
        relative = np.clip(relative, -last, last)
    distance, farthest = np.abs(relative), int(np.abs(relative).max(initial=0))
    # Bucket mid + k ends where (mid − 1) · ln(distance/mid) / ln(last/mid) reaches k; floats would miss ties.
    ends = [mid]
    while ends[-1] < farthest and mid > 1:
        k = len(ends)
        ends.append(_root(last**k * mid ** (mid - 1) // mid**k, mid - 1))
    beyond = np.sign(relative) * (mid + np.minimum(np.searchsorted(ends, distance), len(ends) - 1))
    return np.where(distance <= mid, relative, beyond)


def _root(value, n):
    """The largest whole number whose n-th power is at most value: found in floats, settled in whole numbers."""
    near = round(math.exp(math.log(value) / n))
    first = near - near // 10**9 - 1
    return first - 1 + bisect_right(range(first, near + near // 10**9 + 2), value, key=lambda root: root**n)


def _delta(distance, span):
    """DeBERTa's δ: the distance moved by span and clipped to the rows of the table."""
    return np.clip(distance + span, 0, 2 * span - 1)
