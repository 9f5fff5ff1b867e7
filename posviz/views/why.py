"""The pictures of chapter 2: reordered tokens, a counter made of a mask, and swaps seen through one layer or more."""

import numpy as np

from posviz import attention_weights, sinusoidal
from posviz.live import Choice, Range, Steps, Toggle, View
from posviz.views.parts import Letters, counted, curve, heat_map, points, strokes

WORDS = ("dog", "bites", "big", "man")
ORDERS = ("dog bites big man", "man bites big dog", "big dog bites man", "big man bites dog", "man big bites dog")


class ReorderedTokens(View):
    """Do the attention weights care in which order the tokens come?"""

    title = "Reordered tokens and their weights"
    size = (9.6, 3.4)
    controls = [
        Choice("order", ORDERS),
        Toggle("positions", label="add positions"),
        Toggle("mask", label="causal mask"),
    ]
    story = {"order": (), "positions": (), "mask": ()}

    def draw(self, figure):
        before, after, change = figure.subplots(1, 3)
        self.before, self.after = (heat_map(axes, (4, 4), 0, 1) for axes in (before, after))
        self.change = heat_map(change, (4, 4), -1, 1)
        self.numbers = [Letters(axes) for axes in (before, after, change)]
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        for axes, title in ((before, "first order"), (after, "chosen order"), (change, "the change")):
            axes.set(xticks=range(4), yticks=range(4), xlabel="key", title=title)
            axes.set_xticklabels(WORDS, **slanted)
            axes.set_yticklabels(WORDS)
        before.set_ylabel("query")
        figure.colorbar(self.before, ax=[before, after], ticks=[0, 0.5, 1], label="weight", shrink=0.6)
        figure.colorbar(self.change, ax=change, ticks=[-1, 0, 1], label="change", shrink=0.6)
        # The words beside the middle map move, so they are texts; its tick labels stay, unseen, to keep room for them.
        for label in (*after.get_xticklabels(), *after.get_yticklabels()):
            label.set_alpha(0)
        self.keys = [after.text(0, 3.75, word, **slanted, va="top") for word in WORDS]
        self.queries = [after.text(-0.72, 0, word, ha="right", va="center") for word in WORDS]

    def update(self, order, positions, mask):
        tokens = [WORDS.index(word) for word in order.split()]
        place = np.argsort(tokens)  # where each word of the first order now stands
        before, after = word_weights(range(4), positions, mask), word_weights(tokens, positions, mask)
        change = after[np.ix_(place, place)] - before
        hidden = ~np.tri(4, dtype=bool) & mask
        shown = np.ma.array(before, mask=hidden), np.ma.array(after, mask=hidden), np.ma.array(change)
        for image, numbers, values in zip((self.before, self.after, self.change), self.numbers, shown):
            image.set_data(values)
            numbers.number_cells(image, values)
        for word, (key, query) in enumerate(zip(self.keys, self.queries)):
            key.set_x(place[word])
            query.set_y(place[word])
        case = f"“{order}”, {_with(positions)} positions, {_with(mask)} the causal mask"
        moved, largest = (place != range(4)).sum(), np.abs(change).max()
        if not moved:
            return f"{case}: the first order, nothing is moved. In another order, will weights change?"
        verdict = "weights of the same two tokens differ"
        if largest < 1e-9:
            verdict = "every weight moved along with its two tokens"
        return f"{case}: {moved} tokens moved, the largest change of a weight is {largest:.3f}: {verdict}."


def word_weights(tokens, positions, mask):
    """Attention weights (4, 4) of four words, given by their numbers in WORDS, with random vectors and weights."""
    draw = np.random.RandomState(4)  # a stream of numbers that NumPy promises to keep
    x, (w_q, w_k) = draw.normal(size=(4, 8)), draw.normal(size=(2, 8, 8)) / 2  # x: (words, features)
    x = x[list(tokens)] + (sinusoidal(range(4), 8) if positions else 0)
    return attention_weights(x @ w_q, x @ w_k, mask=np.tri(4, dtype=bool) if mask else None)


class FirstTokenCounter(View):
    """What weight does the first token get behind a causal mask? All other scores are 0."""

    title = "A mask that counts"
    size = (9, 3.8)
    controls = [
        Steps("position", 0, 62, default=9, unit="tokens", label="position of the query"),
        Range("score", 0.0, 4.0, 0.5, label="score of the first token"),
    ]
    story = {"position": (19, 50), "score": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(-1, 64), ylim=(-0.04, 1.05), xlabel="position of the query", ylabel="weight of the first token")
        self.weights = curve(axes, 0, linewidth=1.2, marker=".", markersize=7)
        self.here = points(axes, 1, markersize=11)

    def update(self, position, score):
        place = np.arange(64)
        weights = 1 / (1 + place * np.exp(-score))  # e^s over e^s + t times e^0
        self.weights.set_data(place, weights)
        self.here.set_data([position], [weights[position]])
        now, following = weights[position : position + 2]
        return (
            f"The query at position {position} sees {counted(position + 1, 'key')} and gives the first the weight "
            f"{now:.4f}. The next query gives {following:.4f}: {now - following:.4f} less."
        )


class SwappedTokens(View):
    """How far does a swap of two early tokens reach? No positions are given to the model."""

    title = "A swap seen through one layer or more"
    size = (9, 3.8)
    controls = [
        Steps("layers", 1, 4, label="attention layers"),
        Steps("swap", 0, 5, default=2, label="token to swap with the next"),
        Toggle("mask", default=True, label="causal mask"),
        Toggle("swapped", label="swap them"),
    ]
    story = {"swapped": (), "layers": (), "mask": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(-0.5, 7.5), xticks=range(8), xlabel="token (numbered before the swap)")
        axes.set(ylim=(-0.02, 1.02), ylabel="change of its output")
        self.stems = curve(axes, 0, linewidth=5, solid_capstyle="butt")
        self.changes = points(axes, 0, label="token")
        self.swapped = points(axes, 1, markersize=11, label="one of the two to swap")
        axes.legend(loc="upper right", frameon=False)

    def update(self, layers, swap, mask, swapped):
        order, both = np.arange(8), [swap, swap + 1]
        if swapped:
            order[both] = order[both[::-1]]
        draw = np.random.RandomState(0)  # a stream of numbers that NumPy promises to keep
        x, weights = draw.normal(size=(8, 8)), draw.normal(size=(4, 3, 8, 8)) / np.sqrt(8)
        before = _outputs(x, weights[:layers], mask)
        after = _outputs(x[order], weights[:layers], mask)[order]  # a swap undoes itself
        change = np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)
        token = np.arange(8)
        self.stems.set_data(*strokes(token, 0, token, change))
        self.changes.set_data(token, change)
        self.swapped.set_data(both, change[both])
        case = f"{counted(layers, 'layer')} {_with(mask)} the causal mask, tokens {swap} and {swap + 1}"
        if not swapped:
            return f"{case} not yet swapped. How many of the 8 outputs will change? Swap them."
        count = (change > 1e-9).sum()
        return f"{case} swapped: {count} of 8 outputs change. The last token's output changes by {change[-1]:.1%}."


def _outputs(x, weights, mask):
    """Tokens x (8, 8) after attention layers (layers, 3, 8, 8) with residual connections, without positions."""
    visible = np.tri(8, dtype=bool) if mask else None
    for w_q, w_k, w_v in weights:
        x = x + attention_weights(x @ w_q, x @ w_k, mask=visible) @ (x @ w_v)
    return x


def _with(chosen):
    return "with" if chosen else "without"
