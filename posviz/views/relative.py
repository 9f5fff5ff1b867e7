"""The pictures of chapter 4: a score term by term, the relative shift, T5's buckets, the position part by distance."""

import numpy as np

from posviz import deberta_terms, sinusoidal, style, t5_bucket, transformer_xl_terms
from posviz.live import Choice, Steps, Toggle, View
from posviz.views.parts import EndNames, Letters, counted, curve, heat_map, points, sentence_case

# One small example for every method. All numbers are invented; a trained model has learned its own.
DIM = 8
TEXT = "the dog saw the old dog".split()
METHODS = ("absolute", "Transformer-XL", "T5", "DeBERTa")
_normal = np.random.RandomState(39).normal(size=(4 + 4 * DIM + 2, DIM))  # the one NumPy stream that no version changes
WORDS = dict(zip(("the", "dog", "saw", "old"), 0.7 * _normal[:4]))
W_Q, W_K, W_QR, W_KR = _normal[4:-2].reshape(4, DIM, DIM) / DIM**0.5
U, V = _normal[-2:] / 2
T5_TABLE = np.concatenate([1.0 - 0.5 * np.arange(16), 0.4 - 0.3 * np.arange(16)])  # past, then future
SPAN = 16
DEBERTA_TABLE = sinusoidal(range(2 * SPAN), DIM, base=100)
PADDING = -10.0  # in a cell of the relative shift, where a score is 10 × query + distance; shown as 0


def score_terms(method, queries, keys, first=0):
    """The four terms of each raw score, (query, key) each, in the order of ScoreTerms.names; zeros for a missing term.

    queries, keys: two lists of WORDS, equally long, both at positions first, first + 1, …; every key is visible.
    """
    q = np.stack([WORDS[word] for word in queries]) @ W_Q.T  # (queries, DIM)
    k = np.stack([WORDS[word] for word in keys]) @ W_K.T  # (keys, DIM)
    none = np.zeros((len(q), len(k)))
    positions = first + np.arange(len(q))
    if method == "absolute":
        p = sinusoidal(positions, DIM)
        p_q, p_k = p @ W_Q.T, p @ W_K.T
        return q @ k.T, q @ p_k.T, p_q @ k.T, p_q @ p_k.T
    if method == "Transformer-XL":
        r = sinusoidal(np.arange(len(q) - 1, -len(q), -1), DIM, layout="concatenated") @ W_KR.T  # by falling distance
        return tuple(transformer_xl_terms(q, k, r, U, V))
    if method == "T5":
        return q @ k.T, none, none, T5_TABLE[t5_bucket(positions - positions[:, None])]
    return *deberta_terms(q, k, DEBERTA_TABLE @ W_QR.T, DEBERTA_TABLE @ W_KR.T, SPAN), none


class ScoreTerms(View):
    """What does each of the four terms add to the scores? Two cells are framed: the last dog looks at either 'the'."""

    title = "A score matrix, built up term by term"
    size = (9, 4.2)
    controls = [
        Choice("method", METHODS),
        Steps("terms", 1, 4, default=1, label="terms added"),
        Steps("first", 0, 100, default=0, unit="tokens", label="first word at"),
    ]
    story = {"method": (), "terms": (), "first": ()}
    names = ("word × word", "word × position", "position × word", "position × position")

    def draw(self, figure):
        self.newest, self.total = (heat_map(axes, (6, 6), -6, 6) for axes in figure.subplots(1, 2))
        self.numbers = [Letters(image.axes) for image in (self.newest, self.total)]
        left, right = self.newest.axes, self.total.axes
        self.heading = left.text(0, 1.03, "", transform=left.transAxes)
        right.set_title("the sum so far")
        self.places = []
        for axes in (left, right):
            axes.set(ylabel="query", xticks=range(6), yticks=range(6), xticklabels=TEXT, yticklabels=TEXT)
            frame = {"linestyle": "none", "marker": "s", "markersize": 33, "markerfacecolor": "none"}
            for edge, width in (("white", 5), ("black", 2)):  # shows on light and on dark
                axes.plot([0, 3], [5, 5], **frame, markeredgecolor=edge, markeredgewidth=width)
            self.places.append(axes.text(0.5, -0.14, "", transform=axes.transAxes, ha="center", va="top"))
        figure.colorbar(self.total, ax=[left, right], ticks=[-6, -3, 0, 3, 6], label="raw score")

    def update(self, method, terms, first):
        parts = score_terms(method, TEXT, TEXT, first)[:terms]
        total = sum(parts)
        size = np.abs(parts[-1]).max()
        newest = np.ma.masked_array(parts[-1], mask=not size)
        for image, numbers, values in zip((self.newest, self.total), self.numbers, (newest, total)):
            image.set_data(values)
            numbers.number_cells(image, values)
        self.heading.set_text(f"term {terms}: {self.names[terms - 1]}")
        for place in self.places:
            place.set_text(f"key, at positions {first} to {first + 5}")
        named = f"term {terms} ({self.names[terms - 1]})"
        does = f"reaches {size:.2f} in size" if size else "is left out"
        return (
            f"{sentence_case(method)}, first word at {first}: {named} {does}. With {terms} of 4 terms in, "
            f"the last dog scores the first 'the' {total[5, 0]:+.2f} and the second {total[5, 3]:+.2f}."
        )


def shift_steps(memory):
    """The cells after each of five steps, for 4 queries behind `memory` keys: 10 × query + distance, PADDING, nan."""
    keys = 4 + memory
    scores = 10.0 * np.arange(4)[:, None] + np.arange(keys)[::-1]  # (queries, keys), a column a distance
    padded = np.hstack([np.full((4, 1), PADDING), scores])
    read = padded.reshape(keys + 1, 4)
    shifted = read[1:].reshape(4, keys)
    return scores, padded, read, shifted, np.where(np.tri(4, keys, memory, dtype=bool), shifted, np.nan)


class RelativeShift(View):
    """How do columns by distance become columns by key? Each number is 10 × query + distance."""

    title = "The relative shift, step by step"
    size = (7, 4.8)
    controls = [Steps("step", 0, 4), Steps("memory", 0, 3, unit="tokens", label="keys before the first query")]
    story = {"step": (), "memory": ()}
    said = (
        "As computed: a row a query, a column a distance, {first} … 0. A number is 10 × query + distance.",
        "One column of zeros (marked 0) is put on the left: {rows} rows of {columns} numbers.",
        "Nothing moves in memory; the same numbers are read as {rows} rows of {columns}.",
        "The first row is dropped. Query m, key n now hold distance m{memory} − n; 6 cells top right hold leftovers.",
        "The 6 leftovers, for keys in the future, are masked. The rest is right: the last row reads {first} … 0.",
    )

    def draw(self, figure):
        axes = figure.subplots()
        self.cells = heat_map(
            axes, (4, 4), -1, 4.5, aspect="auto", cmap=style.SEQUENTIAL
        )  # a colour for each query; below them the padding
        axes.set(xlim=(-2.2, 7.5), ylim=(7.5, -1.7))
        axes.axis("off")
        self.names = Letters(axes)
        self.numbers = {}  # a number is a marker: one artist for all its cells, quicker than texts
        for value in [PADDING, *(10 * query + distance for query in range(4) for distance in range(7))]:
            digits = "0" if value == PADDING else f"{value:02d}"
            look = {"marker": f"$\\mathdefault{{{digits}}}$", "markersize": 9 * len(digits), "markeredgewidth": 0}
            look |= {"color": "black" if value >= 20 else "white", "zorder": 3}
            self.numbers[value] = points(axes, 0, **look)

    def update(self, step, memory):
        cells = shift_steps(memory)[step]
        rows, columns = cells.shape
        for value, number in self.numbers.items():
            row, column = np.nonzero(cells == value)
            number.set_data(column, row)
        self.names.show(*_side_names(step, rows, columns))
        self.cells.set_data(cells // 10)  # the query; nan stays nan
        self.cells.set_extent((-0.5, columns - 0.5, rows - 0.5, -0.5))
        known = {"rows": rows, "columns": columns, "first": 3 + memory, "memory": f" + {memory}" if memory else ""}
        return f"Step {step}. " + self.said[step].format(**known)


def _side_names(step, rows, columns):
    """(words, x, y): what the rows of a step are, on their left, and above them what the columns are."""
    down = [f"query {row}" for row in range(rows)] if step != 2 else [f"row {row}" for row in range(rows)]
    if step < 2:
        kind, across = "distance", ["zero"] * step + [str(distance) for distance in range(columns - step)][::-1]
    else:
        kind, across = ("column", "key", "key")[step - 2], [str(column) for column in range(columns)]
    words = [*down, *across, kind]
    return words, [*[-1.35] * rows, *range(columns), -1.35], [*range(rows), *[-0.95] * (columns + 1)]


class T5Buckets(View):
    """Which distances share one learned number?"""

    title = "T5's bucket of each relative position"
    size = (9, 4.4)
    controls = [
        Steps("distance", -200, 200, default=20, unit="tokens", label="query − key"),
        Toggle("bidirectional", label="keys in the future too"),
        Steps("buckets", 8, 64, step=4, default=32),
        Steps("longest", 40, 200, step=4, default=128, unit="tokens", label="max distance"),
    ]
    story = {"bidirectional": (), "distance": (100, 16, 15, 14, 9, 8, 7, 1, -7)}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(205, -205), xlabel="distance m − n (tokens, past on the left)")
        axes.set(ylim=(-2, 66), ylabel="bucket")
        axes.axvline(0, **style.reference)
        self.limit = curve(axes, 5, label="max distance")
        self.last = curve(axes, 1, label="last bucket begins")
        self.all = points(axes, 0, markersize=3, label="bucket")
        self.shared = curve(axes, 4, linewidth=6, solid_capstyle="butt", label="in the bucket of the marked one")
        self.here = points(axes, 1)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)

    def update(self, distance, bidirectional, buckets, longest):
        distances = np.arange(200, -201, -1)  # from the past on
        bucket = t5_bucket(-distances, bidirectional, buckets, longest)
        here = bucket[200 - distance]
        same = distances[bucket == here]
        full = t5_bucket(-np.arange(longest + 1), bidirectional, buckets, longest)
        begins = np.argmax(full == full[-1])
        self.all.set_data(distances, bucket)
        self.shared.set_data([same[0] + 0.5, same[-1] - 0.5], [here, here])
        self.here.set_data([distance], [here])
        self.limit.set_data([longest, longest], [0, 66])
        self.last.set_data([begins, begins], [0, 66])
        side = "past" if distance > 0 else "future"
        away = f"{counted(abs(distance), 'token')} in the {side}" if distance else "The query itself"
        return (
            f"{away}: bucket {here} of {buckets}, shared by {_range(same[0], same[-1])}. "
            f"The last bucket of the past begins at distance {begins}, not at {longest}."
        )


class PositionPart(View):
    """Does the distance count the same for every word? The score without its first term, one curve a query word."""

    title = "What the distance adds to a score, for four query words"
    size = (9, 4.2)
    controls = [
        Choice("method", METHODS[1:]),
        Choice("key", tuple(WORDS), default="dog", label="key word"),
        Steps("distance", -32, 32, default=5, unit="tokens", label="query − key"),
    ]
    story = {"method": (), "key": (), "distance": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(32, -32), xlabel="distance m − n (tokens, past on the left)")
        axes.set(ylim=(-6, 8), ylabel="position part of score", title="one curve for each query word")
        axes.axhline(0, **style.reference)
        self.curves = {word: curve(axes, index) for index, word in enumerate(WORDS)}
        self.names = EndNames(axes, "saw")
        self.read = points(axes, 4, markersize=7)

    def update(self, method, key, distance):
        offsets = np.arange(32, -33, -1)
        here = []
        for word, line in self.curves.items():
            part = sum(score_terms(method, [word] * 65, [key] * 65)[1:])[32]  # the query stands in the middle
            line.set_data(offsets, part)
            here.append(part[32 - distance])
        self.names.follow(self.curves)
        self.read.set_data([distance] * 4, here)
        read = ", ".join(f"{word} {value:+.2f}" for word, value in zip(self.curves, here))
        spread = max(here) - min(here)
        said = f"a spread of {spread:.2f}" if spread > 0.005 else "the query word has no say"
        return f"{method}, key '{key}', at distance {distance} the position part is: {read}: {said}."


def _range(first, last):
    """Distances from first down to last, all of one bucket, in words; what is shown ends at ±200."""
    low, high = sorted((abs(first), abs(last)))
    if last == -200 and first >= 0:
        return "every key in the future and the query itself"
    if high == 200:
        return f"all distances from {low} on"
    return f"distance {low} alone" if low == high else f"distances {low} to {high}"
