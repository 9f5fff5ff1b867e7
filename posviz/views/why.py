"""The pictures of chapter 2: reordered tokens, a counter made of a mask, and swaps seen through one layer or more."""

import numpy as np

from posviz import attention_weights, sinusoidal, style
from posviz.live import Choice, Range, Steps, Toggle, View

WORDS = ("dog", "bites", "big", "man")
ORDERS = ("dog bites big man", "man bites big dog", "big dog bites man", "big man bites dog", "man big bites dog")


class ReorderedTokens(View):
    """Do the attention weights care in which order the tokens come?"""

    title = "Reordered tokens and their weights"
    size = (9.6, 3.4)
    controls = [
        Choice("order", ORDERS, default="man bites big dog"),
        Toggle("positions", label="add positions"),
        Toggle("mask", label="causal mask"),
    ]

    def draw(self, figure):
        before, after, change = figure.subplots(1, 3)
        self.before = before.imshow(np.zeros((4, 4)), vmin=0, vmax=1, cmap=style.SEQUENTIAL, interpolation="nearest")
        self.after = after.imshow(np.zeros((4, 4)), vmin=0, vmax=1, cmap=style.SEQUENTIAL, interpolation="nearest")
        self.change = change.imshow(np.zeros((4, 4)), vmin=-1, vmax=1, cmap=style.DIVERGING, interpolation="nearest")
        for axes, title in ((before, "first order"), (after, "chosen order"), (change, "the change")):
            axes.set(xticks=range(4), yticks=range(4), xlabel="key", title=title)
            axes.set_xticklabels(WORDS, rotation=45, ha="right", rotation_mode="anchor")
            axes.set_yticklabels(WORDS)
        before.set_ylabel("query")
        figure.colorbar(self.before, ax=[before, after], ticks=[0, 0.5, 1], label="weight", shrink=0.6)
        figure.colorbar(self.change, ax=change, ticks=[-1, 0, 1], label="change", shrink=0.6)
        # The words beside the middle map move, so they are texts and not tick labels.
        for label in (*after.get_xticklabels(), *after.get_yticklabels()):
            label.set_alpha(0)
        self.keys = [
            after.text(0, 3.75, word, rotation=45, ha="right", va="top", rotation_mode="anchor") for word in WORDS
        ]
        self.queries = [after.text(-0.72, 0, word, ha="right", va="center") for word in WORDS]

    def update(self, order, positions, mask):
        tokens = [WORDS.index(word) for word in order.split()]
        place = np.argsort(tokens)  # where each word of the first order now stands
        before, after = word_weights(range(4), positions, mask), word_weights(tokens, positions, mask)
        hidden = ~np.tri(4, dtype=bool) & mask
        self.before.set_data(np.ma.array(before, mask=hidden))
        self.after.set_data(np.ma.array(after, mask=hidden))
        change = after[np.ix_(place, place)] - before
        self.change.set_data(change)
        for word, (key, query) in enumerate(zip(self.keys, self.queries)):
            key.set_x(place[word])
            query.set_y(place[word])
        largest = np.abs(change).max()
        case = f"“{order}”, {'with' if positions else 'without'} positions, {'with' if mask else 'without'} the causal mask"
        moved = int((place != np.arange(4)).sum())
        if not moved:
            return f"{case}: the first order, nothing is moved. Choose another order."
        verdict = (
            "every weight moved along with its two tokens"
            if largest < 1e-9
            else "weights of the same two tokens differ"
        )
        return f"{case}: {moved} tokens moved, the largest change of a weight is {largest:.3f}: {verdict}."


def word_weights(tokens, positions, mask):
    """Attention weights (4, 4) of four words, given by their numbers in WORDS, with random vectors and weights."""
    draw = np.random.RandomState(4)  # a stream of numbers that NumPy promises to keep
    x, w_q, w_k = draw.normal(size=(4, 8)), draw.normal(size=(8, 8)) / 2, draw.normal(size=(8, 8)) / 2
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

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(-1, 64), ylim=(0, 1.05), xlabel="position of the query", ylabel="weight of the first token")
        (self.weights,) = axes.plot([], [], **style.line(0) | {"linewidth": 1.2}, marker=".", markersize=7)
        (self.here,) = axes.plot([], [], **style.marker(1) | {"markersize": 11})

    def update(self, position, score):
        place = np.arange(64)
        weights = 1 / (1 + place * np.exp(-score))  # e^s over e^s + t times e^0
        self.weights.set_data(place, weights)
        self.here.set_data([position], [weights[position]])
        return (
            f"The query at position {position} sees {position + 1} key{'s' if position else ''} and gives the first the weight "
            f"{weights[position]:.4f}. The next query gives {weights[position + 1]:.4f}: {weights[position] - weights[position + 1]:.4f} less."
        )


class SwappedTokens(View):
    """How far does a swap of two early tokens reach? No positions are given to the model."""

    title = "A swap seen through one layer or more"
    size = (9, 3.8)
    controls = [
        Steps("layers", 1, 4, unit="attention layers"),
        Steps("swap", 0, 5, default=2, label="swap this token with the next"),
        Toggle("mask", default=True, label="causal mask"),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(
            xlim=(-0.5, 7.5),
            ylim=(-0.02, 1.02),
            xticks=range(8),
            xlabel="token (numbered before the swap)",
            ylabel="change of its output",
        )
        (self.stems,) = axes.plot([], [], color=style.COLORS[0], linewidth=5, solid_capstyle="butt")
        (self.changes,) = axes.plot([], [], **style.marker(0), label="token")
        (self.swapped,) = axes.plot([], [], **style.marker(1) | {"markersize": 11}, label="token that was swapped")
        axes.legend(loc="upper right", frameon=False)

    def update(self, layers, swap, mask):
        order = np.arange(8)
        order[[swap, swap + 1]] = order[[swap + 1, swap]]
        draw = np.random.RandomState(0)
        x, weights = draw.normal(size=(8, 8)), draw.normal(size=(4, 3, 8, 8)) / np.sqrt(8)
        before = _outputs(x, weights[:layers], mask)
        after = _outputs(x[order], weights[:layers], mask)[order]  # a swap undoes itself
        change = np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)
        token = np.arange(8)
        self.stems.set_data(np.repeat(token, 3), np.stack([np.zeros(8), change, np.full(8, np.nan)], 1).ravel())
        self.changes.set_data(token, change)
        self.swapped.set_data([swap, swap + 1], change[[swap, swap + 1]])
        return (
            f"{layers} layer{'s' if layers > 1 else ''} {'with' if mask else 'without'} the causal mask, tokens {swap} and {swap + 1} "
            f"swapped: {(change > 1e-9).sum()} of 8 outputs change. The last token's output changes by {change[-1]:.1%}."
        )


def _outputs(x, weights, mask):
    """The outputs (8, 8) of attention layers with residual connections, without positions."""
    visible = np.tri(8, dtype=bool) if mask else None
    for w_q, w_k, w_v in weights:
        x = x + attention_weights(x @ w_q, x @ w_k, mask=visible) @ (x @ w_v)
    return x
