"""The pictures of chapter 1: a sentence that slides, scores of a text that moves, methods sorted by three questions."""

import numpy as np
from matplotlib.patches import Rectangle

from posviz import alibi_slopes, rope, sinusoidal, style, t5_bucket
from posviz.live import Choice, Steps, Text, View
from posviz.views.parts import Letters, heat_map, number_sides, points, ring, sentence_case, sides

WORDS = ("the", "dog", "bit", "one", "big", "man")
EARLIER = ("well", "I", "am", "told", "that", "on", "a", "day")  # before the sentence, the last of them first
ORANGE, GREEN, BLACK = "#FFD9B8", "#BFE3D6", "#222222"  # two light grounds for black letters


class SlidingSentence(View):
    """Which numbers change when a sentence moves along the text, and which stay?"""

    title = "A sentence slides along the text"
    size = (9, 4.8)
    controls = [
        Steps("start", 0, 8, unit="tokens", label="text before the sentence"),
        Steps("inserted", 0, 3, unit="tokens", label='"old" added before "man"'),
        Choice("query", WORDS, default="bit", label="distances from"),
    ]
    story = {"start": (), "inserted": (), "query": ()}

    def draw(self, figure):
        grid = figure.add_gridspec(2, 2, height_ratios=[1, 3])
        text, positions, distances = (figure.add_subplot(place) for place in (grid[0, :], grid[1, 0], grid[1, 1]))
        text.set(xlim=(-0.6, 16.6), ylim=(-1, 1), yticks=[], xticks=range(17), xlabel="position in the text")
        text.spines["left"].set_visible(False)
        self.chosen = text.add_patch(Rectangle((0, -0.8), 0.96, 1.6, facecolor=ORANGE))
        self.words = Letters(text)
        self.before, self.now = [], []
        for axes in (positions, distances):
            axes.set(xlim=(-0.5, 5.5), xticks=range(6), xticklabels=WORDS)
            self.before.append(ring(axes, 4, 1.8, label="text begins here, no “old”"))
            self.now.append(points(axes, 0, label="now"))
        positions.set(ylim=(-1, 18), yticks=range(0, 17, 4), ylabel="position")
        distances.set(ylim=(-9, 9), yticks=range(-9, 10, 3), ylabel="distance, query − key")
        distances.axhline(0, **style.reference)
        positions.legend(loc="upper left", frameon=False, borderpad=0)

    def update(self, start, inserted, query):
        first = np.arange(6)  # the positions of the six words where the text begins with them
        place = start + first + inserted * (first == 5)
        at = WORDS.index(query)
        text = [*EARLIER[8 - start :], *WORDS[:-1], *["old"] * inserted, WORDS[-1]]
        self.words.show(text, np.arange(len(text)), np.zeros(len(text)))
        self.words.set_facecolors(["#6E6E6E"] * start + [BLACK] * 9)
        self.chosen.set_x(place[at] - 0.48)
        changed = []
        for index, (old, new) in enumerate([(first, place), (first[at] - first, place[at] - place)]):
            self.before[index].set_data(first, old)
            self.now[index].set_data(first, new)
            changed.append(int((old != new).sum()))
        listed = ", ".join(f"{word} {distance}" for word, distance in zip(WORDS, place[at] - place))
        here = f"“{query}” stands at position {place[at]}. Distances from it: {listed}."
        if not start and not inserted:
            return f"{here} The text begins with the sentence. Which of these numbers change when it moves?"
        return (
            f"{here} Compared with the start of the text, "
            f"{changed[0]} of 6 positions and {changed[1]} of 6 distances have changed."
        )


class MovedScores(View):
    """What can a score see of the two positions? Eight tokens of fixed content; only their place in the text moves."""

    title = "The scores of a text that moves"
    size = (9, 4.2)
    controls = [
        Choice("method", ["learned table", "sinusoidal", "RoPE", "T5 bias", "ALiBi"]),
        Steps("start", 0, 120, unit="tokens", label="text before the eight tokens"),
    ]
    story = {"method": (), "start": (0, 1)}

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        self.scores, self.change = (heat_map(axes, None, -4, 4) for axes in (left, right))
        self.numbers = [Letters(axes) for axes in (left, right)]
        left.set_title("scores")
        right.set_title("change from the text at 0")
        self.sides = [sides(axes, "position of the query", "position of the key") for axes in (left, right)]

    def update(self, method, start):
        scores, first = method_scores(method, start), method_scores(method, 0)
        for image, numbers, values in zip((self.scores, self.change), self.numbers, (scores, scores - first)):
            image.set_data(values)
            numbers.number_cells(image, values, digits=1)
        for both in self.sides:
            number_sides(both, range(start, start + 8))
        largest, name = np.abs(scores - first).max(), sentence_case(method)
        if start == 0:
            return f"{name}: positions 0 to 7, nothing has moved yet. When it moves, will the right side stay white?"
        sees = "only the distance" if largest < 1e-9 else "the positions themselves"
        return (
            f"{name}: positions 0 to 7 became {start} to {start + 7}, every distance stayed. "
            f"The largest change of a score is {largest:.2f}: the score sees {sees}."
        )


def method_scores(method, start):
    """Scaled scores (8, 8) of eight tokens at positions start … start + 7 under one method, with random weights."""
    draw = np.random.RandomState(1)  # a stream of numbers that NumPy promises never to change
    x = 1.3 * draw.normal(size=(8, 16))  # (tokens, features)
    w_q, w_k = draw.normal(size=(2, 16, 16)) / 4  # 4 = √16
    table, buckets = draw.normal(size=(128, 16)) / 2, 2 * draw.normal(size=32)  # stand-ins for trained numbers
    positions = start + np.arange(8)
    distance = positions[:, None] - positions
    if method in ("learned table", "sinusoidal"):
        x = x + (table[positions] if method == "learned table" else sinusoidal(positions, 16))
    q, k = x @ w_q, x @ w_k
    if method == "RoPE":
        q, k = rope(q, positions), rope(k, positions)
    bias = {"T5 bias": buckets[t5_bucket(-distance)], "ALiBi": -alibi_slopes(8)[0] * np.abs(distance)}
    return q @ k.T / 4 + bias.get(method, 0)


WHERE, SEES, KIND = ("input", "queries and keys", "scores"), ("both positions", "distance only"), ("fixed", "learned")
QUESTIONS = ("where it enters", "what the score sees", "fixed or learned")
METHODS = {  # the answers to the three questions
    "learned table": ("input", "both positions", "learned"),
    "sinusoidal": ("input", "both positions", "fixed"),
    "Transformer-XL": ("scores", "distance only", "learned"),
    "T5 bias": ("scores", "distance only", "learned"),
    "DeBERTa": ("scores", "distance only", "learned"),
    "RoPE": ("queries and keys", "distance only", "fixed"),
    "ALiBi": ("scores", "distance only", "fixed"),
}
WHAT_IT_DOES = {
    "learned table": "adds a trained vector, one for each position, to the token vector",
    "sinusoidal": "adds sines and cosines of the position to the token vector",
    "Transformer-XL": "adds products with trained matrices and sines of the distance to the score",
    "T5 bias": "adds a trained number, one for each range of distances, to the score",
    "DeBERTa": "adds two products with trained vectors of the distance to the score",
    "RoPE": "turns queries and keys by an angle that grows with their position",
    "ALiBi": "subtracts a preset number times the distance from the score",
}


class Placed(Text):
    """The methods that are in their boxes, with commas."""

    def corners(self):
        return ["", ", ".join(METHODS)]


class SortTheMethods(View):
    """Where does a method enter, what does the score see, is anything learned? Each goes into one of twelve boxes."""

    title = "Methods sorted by three questions"
    size = (9, 3.8)
    controls = [
        Choice("method", METHODS, default="learned table"),
        Choice("where", ("?", *WHERE), label="it enters at the"),
        Choice("sees", ("?", *SEES), label="the score sees"),
        Choice("kind", ("?", *KIND), label="its numbers are"),
        Placed("placed", "", label="placed so far"),
    ]
    story = {"method": (), "where": (), "sees": (), "kind": ()}

    def coupled(self, moved, before, values):
        """Another method is another question: the answers are taken back. A method in its box stays there."""
        if moved == "method":
            return dict.fromkeys(("where", "sees", "kind"), "?")
        right = (values["where"], values["sees"], values["kind"]) == METHODS[values["method"]]
        placed = [*_placed(values["placed"]), values["method"]]
        return {"placed": ", ".join(dict.fromkeys(placed))} if right else {}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(0, 4), xticks=np.arange(4) + 0.5, xticklabels=KIND * 2, xlabel="fixed or learned")
        axes.set(ylim=(3, 0), yticks=np.arange(3) + 0.5, yticklabels=WHERE, ylabel="where it enters")
        axes.tick_params(length=0)
        for x, sees in zip((1, 3), SEES):
            axes.text(x, -0.08, f"sees {sees}", ha="center", va="bottom")
        for x in range(5):
            axes.axvline(x, color=BLACK, linewidth=3 if x == 2 else 1)
        for y in range(4):
            axes.axhline(y, color=BLACK, linewidth=1)
        self.box = axes.add_patch(Rectangle((0, 0), 1, 1, edgecolor=BLACK, linewidth=3))
        self.cards, self.name = Letters(axes), Letters(axes)

    def update(self, method, where, sees, kind, placed):
        answers = (where, sees, kind)
        given, right = 3 - answers.count("?"), sum(map(str.__eq__, answers, METHODS[method]))
        if given == 3:
            row, column = WHERE.index(where), 2 * SEES.index(sees) + KIND.index(kind)
            self.box.set(xy=(column, row), facecolor=GREEN if right == 3 else ORANGE)
            self.box.set_linestyle("-" if right == 3 else (0, (4, 2)))
            words = ["here"] if right == 3 else ["not here", method]
            self.name.show(words, [column + 0.5] * len(words), [row + 0.85, row + 0.62][: len(words)])
        else:
            self.name.show([f"{method}?"], [-0.5], [-0.15])
        self.box.set_visible(given == 3)
        cards = list(dict.fromkeys([*_placed(placed), *[method] * (right == 3)]))
        spots = [_spot(card) for card in cards]
        self.cards.show(cards, [x for x, _ in spots], [y for _, y in spots])
        verdict = "All three are right" if right == 3 else f"Not in this box: right answers {right} of 3"
        if given < 3:
            answered = (f"{question}: {answer}" for question, answer in zip(QUESTIONS, answers))
            verdict = f"You answered {given} of 3 ({', '.join(answered)})"
        return f"{sentence_case(method)} {WHAT_IT_DOES[method]}. {verdict}. {len(cards)} of 7 placed."


def _placed(text):
    """The methods that a text of names with commas has, in the order of METHODS."""
    named = text.split(", ")
    return [method for method in METHODS if method in named]


def _spot(method):
    """Where its name stands in its box, below those of the methods before it."""
    where, sees, kind = METHODS[method]
    above = [other for other in METHODS if METHODS[other] == METHODS[method]].index(method)
    return 2 * SEES.index(sees) + KIND.index(kind) + 0.5, WHERE.index(where) + 0.17 + 0.23 * above
