"""The pictures of chapter 4: a score term by term, the relative shift, T5's buckets, the position part by distance."""

import numpy as np
from matplotlib.markers import MarkerStyle

from posviz import deberta_terms, sinusoidal, style, t5_bucket, transformer_xl_terms
from posviz.live import Choice, Steps, Toggle, View

# One small example for every method. All numbers are invented; a trained model has learned its own.
DIM = 8
TEXT = "the dog saw the old dog".split()
METHODS = ("absolute", "Transformer-XL", "T5", "DeBERTa")
_draw = np.random.RandomState(39)  # the one NumPy stream that no version changes
WORDS = dict(zip(("the", "dog", "saw", "old"), 0.7 * _draw.normal(size=(4, DIM)), strict=True))
W_Q, W_K, W_QR, W_KR = _draw.normal(size=(4, DIM, DIM)) / DIM**0.5
U, V = _draw.normal(size=(2, DIM)) / 2
T5_TABLE = np.concatenate([1.0 - 0.5 * np.arange(16), 0.4 - 0.3 * np.arange(16)])  # past, then future
SPAN = 16
DEBERTA_TABLE = sinusoidal(range(2 * SPAN), DIM, base=100)


def score_terms(method, queries, keys, first=0):
    """The four terms of each raw score, (query, key) each, in the order of ScoreTerms.names; zeros for a missing term.

    queries, keys: two lists of WORDS, equally long, both at positions first, first + 1, …; every key is visible.
    """
    q = np.stack([WORDS[word] for word in queries]) @ W_Q.T
    k = np.stack([WORDS[word] for word in keys]) @ W_K.T
    none = np.zeros((len(q), len(k)))
    positions = first + np.arange(len(q))
    if method == "absolute":
        p = sinusoidal(positions, DIM)
        return q @ k.T, q @ (p @ W_K.T).T, p @ W_Q.T @ k.T, p @ W_Q.T @ (p @ W_K.T).T
    if method == "Transformer-XL":
        r = sinusoidal(np.arange(len(q) - 1, -len(q), -1), DIM, layout="concatenated") @ W_KR.T
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
    names = ("word × word", "word × position", "position × word", "position × position")

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        look = {"vmin": -6, "vmax": 6, "cmap": style.DIVERGING, "interpolation": "nearest"}
        self.newest, self.total = (axes.imshow(np.zeros((6, 6)), **look) for axes in (left, right))
        self.heading = left.text(0, 1.03, "", transform=left.transAxes)
        right.set_title("the sum so far")
        for axes in (left, right):
            axes.set(ylabel="query i", xticks=range(6), yticks=range(6))
            axes.set_xticklabels(TEXT)
            axes.set_yticklabels(TEXT)
            for edge, width in (("white", 6), ("black", 2)):  # a frame that shows on light and on dark
                axes.plot(
                    [0, 3],
                    [5, 5],
                    linestyle="none",
                    marker="s",
                    markersize=25,
                    markerfacecolor="none",
                    markeredgecolor=edge,
                    markeredgewidth=width,
                )
        self.places = [
            axes.text(0.5, -0.14, "", transform=axes.transAxes, ha="center", va="top") for axes in (left, right)
        ]
        figure.colorbar(self.total, ax=[left, right], ticks=[-6, -3, 0, 3, 6], label="raw score")

    def update(self, method, terms, first):
        parts = score_terms(method, TEXT, TEXT, first)[:terms]
        total = sum(parts)
        size = np.abs(parts[-1]).max()
        self.newest.set_data(parts[-1] if size else np.full((6, 6), np.nan))
        self.total.set_data(total)
        self.heading.set_text(f"term {terms}: {self.names[terms - 1]}")
        for place in self.places:
            place.set_text(f"key j, at positions {first} to {first + 5}")
        newest = f"term {terms} ({self.names[terms - 1]}) " + (f"reaches {size:.2f} in size" if size else "is left out")
        return (
            f"{method[0].upper()}{method[1:]}, first word at {first}: {newest}. With {terms} of 4 terms in, "
            f"the last dog scores the first 'the' {total[5, 0]:+.2f} and the second {total[5, 3]:+.2f}."
        )


class RelativeShift(View):
    """How do columns by distance become columns by key? Each number is 10 × query + distance."""

    title = "The relative shift, step by step"
    size = (7, 4.8)
    controls = [
        Steps("step", 0, 4, default=0),
        Steps("memory", 0, 3, default=0, unit="tokens", label="keys before the first query"),
    ]
    queries = 4
    said = (
        "As computed: a row a query, a column a distance, {first} … 0. A number is 10 × query + distance.",
        "One column of zeros (marked 0) is put on the left: {rows} rows of {columns} numbers.",
        "Nothing moves in memory; the same numbers are read as {rows} rows of {columns}.",
        "The first row is dropped. Row i, column j now holds distance i{memory} − j; 6 cells top right hold leftovers.",
        "The 6 leftovers, for keys in the future, are masked. The rest is right: the last row reads {first} … 0.",
    )

    def draw(self, figure):
        axes = figure.subplots()
        self.cells = axes.imshow(
            np.zeros((4, 4)), vmin=-1, vmax=4.5, cmap=style.SEQUENTIAL, interpolation="nearest", aspect="auto"
        )
        axes.set(xlim=(-0.5, 7.5), ylim=(7.5, -0.5), xticks=range(8), yticks=range(8), xlabel="column", ylabel="row")
        self.numbers = {}
        for value in [0, *(10 * query + distance for query in range(4) for distance in range(7))]:
            name = f"{value:02d}" if self.numbers else "0"
            marker = MarkerStyle(f"$\\mathdefault{{{name}}}$")
            (self.numbers[name],) = axes.plot(
                [],
                [],
                linestyle="none",
                marker=marker,
                markeredgewidth=0,
                zorder=3,
                markersize=9 * len(name),
                color="black" if value >= 20 else "white",
            )

    def update(self, step, memory):
        cells = self.steps(memory)[step]
        rows, columns = len(cells), len(cells[0])
        places = {}
        for row, line in enumerate(cells):
            for column, name in enumerate(line):
                places.setdefault(name, []).append((column, row))
        for name, line in self.numbers.items():
            line.set_data(*np.transpose(places[name])) if name in places else line.set_data([], [])
        query = [[np.nan if name == "" else -1 if name == "0" else int(name) // 10 for name in line] for line in cells]
        self.cells.set_data(np.array(query, float))
        self.cells.set_extent((-0.5, columns - 0.5, rows - 0.5, -0.5))
        keys = self.queries + memory
        return f"Step {step}. " + self.said[step].format(
            rows=rows, columns=columns, first=keys - 1, memory=f" + {memory}" if memory else ""
        )

    def steps(self, memory):
        """The cells of the five steps, as rows of texts: "" is masked, "0" is the padding."""
        keys = self.queries + memory
        scores = [
            [f"{10 * query + distance:02d}" for distance in reversed(range(keys))] for query in range(self.queries)
        ]
        padded = [["0", *row] for row in scores]
        flat = sum(padded, [])
        read = [flat[start : start + self.queries] for start in range(0, len(flat), self.queries)]
        flat = sum(read[1:], [])
        shifted = [flat[start : start + keys] for start in range(0, len(flat), keys)]
        masked = [
            [name if key <= query + memory else "" for key, name in enumerate(row)] for query, row in enumerate(shifted)
        ]
        return scores, padded, read, shifted, masked


class T5Buckets(View):
    """Which distances share one learned number?"""

    title = "T5's bucket of each relative position"
    size = (9, 4.4)
    controls = [
        Steps("relative", -200, 200, default=-20, unit="tokens", label="key − query"),
        Toggle("bidirectional", label="keys in the future too"),
        Steps("buckets", 8, 64, step=4, default=32),
        Steps("longest", 40, 200, step=4, default=128, unit="tokens", label="max distance"),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(
            xlim=(-205, 205), ylim=(-2, 66), ylabel="bucket", xlabel="key − query (tokens; the past is on the left)"
        )
        axes.axvline(0, **style.reference)
        (self.limit,) = axes.plot([], [], **style.line(5), label="max distance")
        (self.last,) = axes.plot([], [], **style.line(1), label="last bucket begins")
        (self.all,) = axes.plot([], [], **style.marker(0) | {"markersize": 3}, label="bucket")
        (self.shared,) = axes.plot(
            [], [], color=style.COLORS[4], linewidth=6, solid_capstyle="butt", label="in the bucket of the marked one"
        )
        (self.here,) = axes.plot([], [], **style.marker(1))
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)

    def update(self, relative, bidirectional, buckets, longest):
        offsets = np.arange(-200, 201)
        bucket = t5_bucket(offsets, bidirectional, buckets, longest)
        here = int(bucket[relative + 200])
        same = offsets[bucket == here]
        full = t5_bucket(-np.arange(longest + 1), bidirectional, buckets, longest)
        begins = int(np.argmax(full == full[-1]))
        self.all.set_data(offsets, bucket)
        self.shared.set_data([same[0] - 0.5, same[-1] + 0.5], [here, here])
        self.here.set_data([relative], [here])
        self.limit.set_data([-longest, -longest], [0, 66])
        self.last.set_data([-begins, -begins], [0, 66])
        side = "past" if relative < 0 else "future"
        away = f"{abs(relative)} tokens in the {side}" if relative else "The query itself"
        return (
            f"{away}: bucket {here} of {buckets}, shared by {_range(same)}. "
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

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(
            xlim=(-32, 32),
            ylim=(-6, 8),
            xlabel="distance i − j (tokens; the future is on the left)",
            ylabel="position part of score",
            title="one curve for each query word",
        )
        axes.axhline(0, **style.reference)
        self.curves = {word: axes.plot([], [], **style.line(n), label=word)[0] for n, word in enumerate(WORDS)}
        (self.read,) = axes.plot([], [], **style.marker(4) | {"markersize": 7})
        axes.legend(loc="upper center", ncols=4, frameon=False, columnspacing=1.0, handlelength=2.6)

    def update(self, method, key, distance):
        offsets = np.arange(-32, 33)
        here = []
        for word, curve in self.curves.items():
            part = sum(score_terms(method, [word] * 65, [key] * 65)[1:])[32, ::-1]  # the query stands in the middle
            curve.set_data(offsets, part)
            here.append(part[distance + 32])
        self.read.set_data([distance] * 4, here)
        read = ", ".join(f"{word} {value:+.2f}" for word, value in zip(self.curves, here, strict=True))
        spread = max(here) - min(here)
        said = f"a spread of {spread:.2f}" if spread > 0.005 else "the query word has no say"
        return f"{method}, key '{key}', at distance {distance} the position part is: {read}: {said}."


def _range(offsets):
    """Relative positions, all of one bucket, as distances in words."""
    low, high = sorted((abs(int(offsets[0])), abs(int(offsets[-1]))))
    if offsets[-1] == 200 and offsets[0] <= 0:
        return "every key in the future and the query itself"
    if high == 200:
        return f"all distances from {low} on"
    return f"distance {low} alone" if low == high else f"distances {low} to {high}"
