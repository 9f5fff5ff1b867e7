"""The pictures of chapter 1: a sentence that slides, scores of a text that moves, methods sorted by three questions."""

import numpy as np
from matplotlib.patches import Rectangle

from posviz import alibi_slopes, rope, sinusoidal, style, t5_bucket
from posviz.live import Choice, Steps, View

WORDS = ("the", "dog", "bit", "one", "big", "man")


class SlidingSentence(View):
    """Which numbers change when a sentence moves along the text, and which stay?"""

    title = "A sentence slides along the text"
    size = (9, 4.8)
    controls = [
        Steps("start", 0, 8, default=4, unit="tokens", label="text before the sentence"),
        Steps("inserted", 0, 3, unit="tokens", label='"old" added before "man"'),
        Choice("query", WORDS, default="bit", label="distances from"),
    ]

    def draw(self, figure):
        grid = figure.add_gridspec(2, 2, height_ratios=[1, 3])
        text, positions, distances = (figure.add_subplot(place) for place in (grid[0, :], grid[1, 0], grid[1, 1]))
        text.set(xlim=(-0.6, 16.6), ylim=(-1, 1), yticks=[], xticks=range(17), xlabel="position in the text")
        text.spines["left"].set_visible(False)
        self.chosen = text.add_patch(Rectangle((0, -0.8), 0.96, 1.6, facecolor="#FFD9B8"))
        self.words = [
            text.text(0, 0, word, ha="center", va="center") for word in (*WORDS[:-1], "old", "old", "old", "man")
        ]
        self.before, self.now = [], []
        for axes in (positions, distances):
            axes.set(xlim=(-0.5, 5.5), xticks=range(6), xticklabels=WORDS)
            (at_first,) = axes.plot(
                [], [], **style.marker(4) | {"markerfacecolor": "none"}, label="text begins here, no “old”"
            )
            at_first.set_markersize(1.8 * at_first.get_markersize())
            (now,) = axes.plot([], [], **style.marker(0), label="now")
            self.before.append(at_first)
            self.now.append(now)
        positions.set(ylim=(-1, 18), yticks=range(0, 17, 4), ylabel="position")
        distances.set(ylim=(-9, 9), yticks=range(-9, 10, 3), ylabel="distance, query − key")
        distances.axhline(0, **style.reference)
        positions.legend(loc="upper left", frameon=False, borderpad=0)

    def update(self, start, inserted, query):
        first = np.arange(6)
        place = start + first + inserted * (first == 5)
        at = WORDS.index(query)
        for word, x, seen in zip(self.words, start + np.r_[:5, 5:8, 5 + inserted], np.arange(9) < 5 + inserted):
            word.set_x(x)
            word.set_visible(bool(seen) or word is self.words[-1])
        self.chosen.set_x(place[at] - 0.48)
        changed = []
        for index, (old, new) in enumerate([(first, place), (first[at] - first, place[at] - place)]):
            self.before[index].set_data(first, old)
            self.now[index].set_data(first, new)
            changed.append(int((old != new).sum()))
        listed = ", ".join(f"{word} {distance}" for word, distance in zip(WORDS, place[at] - place))
        return (
            f"“{query}” stands at position {place[at]}. Distances from it: {listed}. Compared with the start of the text, "
            f"{changed[0]} of 6 positions and {changed[1]} of 6 distances have changed."
        )


class MovedScores(View):
    """What can a score see of the two positions? Eight tokens of fixed content; only their place in the text moves."""

    title = "The scores of a text that moves"
    size = (9, 4.2)
    controls = [
        Choice("method", ["learned table", "sinusoidal", "RoPE", "T5 bias", "ALiBi"]),
        Steps("start", 0, 120, default=40, unit="tokens", label="text before the eight tokens"),
    ]

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        self.scores = self._map(figure, left, "score")
        self.change = self._map(figure, right, "change since start 0")

    def _map(self, figure, axes, label):
        image = axes.imshow(np.zeros((8, 8)), vmin=-4, vmax=4, cmap=style.DIVERGING, interpolation="nearest")
        axes.set(xticks=range(8), yticks=range(8), xlabel="key token", ylabel="query token")
        figure.colorbar(image, ax=axes, label=label, ticks=[-4, -2, 0, 2, 4], extend="both", extendfrac=0.04)
        return image

    def update(self, method, start):
        scores, first = method_scores(method, start), method_scores(method, 0)
        self.scores.set_data(scores)
        self.change.set_data(scores - first)
        largest, name = np.abs(scores - first).max(), method[0].upper() + method[1:]
        if start == 0:
            return f"{name}: the text stands at positions 0 to 7. Nothing has moved yet, so every change is 0."
        sees = "only the distance" if largest < 1e-9 else "the positions themselves"
        return (
            f"{name}: positions 0 to 7 became {start} to {start + 7}, every distance stayed. "
            f"The largest change of a score is {largest:.2f}: the score sees {sees}."
        )


def method_scores(method, start):
    """Scaled scores (8, 8) of eight tokens at positions start … start + 7 under one method, with random weights."""
    draw = np.random.RandomState(1)  # a stream of numbers that NumPy promises never to change
    x, w_q, w_k = 1.3 * draw.normal(size=(8, 16)), draw.normal(size=(16, 16)) / 4, draw.normal(size=(16, 16)) / 4
    table, buckets = draw.normal(size=(128, 16)) / 2, 2 * draw.normal(size=32)  # stand-ins for trained numbers
    positions = start + np.arange(8)
    distance = positions[:, None] - positions
    if method in ("learned table", "sinusoidal"):
        x = x + (table[positions] if method == "learned table" else sinusoidal(positions, 16))
    q, k = x @ w_q, x @ w_k
    if method == "RoPE":
        q, k = rope(q, positions), rope(k, positions)
    bias = {"T5 bias": buckets[t5_bucket(-distance)], "ALiBi": -alibi_slopes(8)[0] * np.abs(distance)}
    return q @ k.T / 4 + bias.get(method, 0)  # 4 = √16


# Method: (where it enters, what the score sees, whether training changes it, what it does in one line).
METHODS = {
    "learned table": (
        "input",
        "both positions",
        "learned",
        "adds a trained vector, one for each position, to the token vector",
    ),
    "sinusoidal": ("input", "both positions", "fixed", "adds sines and cosines of the position to the token vector"),
    "Transformer-XL": (
        "scores",
        "distance only",
        "learned",
        "adds products with trained matrices and sines of the distance to the score",
    ),
    "T5 bias": (
        "scores",
        "distance only",
        "learned",
        "adds a trained number, one for each range of distances, to the score",
    ),
    "DeBERTa": (
        "scores",
        "distance only",
        "learned",
        "adds two products with trained vectors of the distance to the score",
    ),
    "RoPE": (
        "queries and keys",
        "distance only",
        "fixed",
        "turns queries and keys by an angle that grows with their position",
    ),
    "ALiBi": ("scores", "distance only", "fixed", "subtracts a preset number times the distance from the score"),
}
WHERE, SEES, KIND = ("input", "queries and keys", "scores"), ("both positions", "distance only"), ("fixed", "learned")


class SortTheMethods(View):
    """Where does a method enter, what does the score see, is anything learned? Put it into one of twelve boxes."""

    title = "Methods sorted by three questions"
    size = (9, 3.8)
    controls = [
        Choice("method", METHODS, default="learned table"),
        Choice("where", WHERE, label="it enters at the"),
        Choice("sees", SEES, label="the score sees"),
        Choice("kind", KIND, default="learned", label="its numbers are"),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(
            xlim=(0, 4),
            ylim=(3, 0),
            xticks=np.arange(4) + 0.5,
            xticklabels=KIND * 2,
            yticks=np.arange(3) + 0.5,
            yticklabels=WHERE,
            ylabel="where it enters",
            xlabel="fixed or learned",
        )
        axes.tick_params(length=0)
        for x, sees in zip((1, 3), SEES):
            axes.text(x, -0.08, f"sees {sees}", ha="center", va="bottom")
        for x in range(5):
            axes.axvline(x, color="#222222", linewidth=3 if x == 2 else 1)
        for y in range(4):
            axes.axhline(y, color="#222222", linewidth=1)
        self.box = axes.add_patch(Rectangle((0, 0), 1, 1, edgecolor="#222222", linewidth=3))
        self.name = axes.text(0, 0, "", ha="center", va="center")
        self.right = axes.text(0, 0, "here", ha="center", va="center", fontweight="bold")
        self.wrong = axes.text(0, 0, "not here", ha="center", va="center", fontweight="bold")

    def update(self, method, where, sees, kind):
        *answer, what = METHODS[method]
        row, column = WHERE.index(where), 2 * SEES.index(sees) + KIND.index(kind)
        missed = [
            question
            for question, given, right in zip(
                ("where it enters", "what the score sees", "fixed or learned"), (where, sees, kind), answer
            )
            if given != right
        ]
        self.box.set_xy((column, row))
        self.box.set_facecolor("#FFD9B8" if missed else "#BFE3D6")
        self.box.set_linestyle((0, (4, 2)) if missed else "-")
        self.name.set_text(method)
        for text, dy in ((self.name, 0.35), (self.right, 0.68), (self.wrong, 0.68)):
            text.set_position((column + 0.5, row + dy))
        self.right.set_visible(not missed)
        self.wrong.set_visible(bool(missed))
        verdict = (
            f"{3 - len(missed)} of 3 right; look again at: {', '.join(missed)}" if missed else "All three are right"
        )
        return f"{method[0].upper()}{method[1:]} {what}. {verdict}."
