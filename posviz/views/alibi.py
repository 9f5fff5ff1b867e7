"""The pictures of chapter 7: ALiBi's bias and weights, its reach, every method measured, and the reader's own."""

from functools import cache

import numpy as np
from matplotlib.colors import LogNorm

from posviz import alibi_bias, alibi_slopes, lab, softmax, style
from posviz.lab.results import METHODS
from posviz.live import Choice, Range, Steps, Toggle, View
from posviz.views.extrapolation import ENCODINGS, LENGTHS, recorded

DISTANCES = (16, 32, 48, 64, 96, 128, 192, 256)  # tokens, of the recorded copy task; training had 8 to 64


class BiasAndWeights(View):
    """What does the bias matrix look like, and what does it make of the weights? Below: the slope of every head."""

    title = "ALiBi's bias matrix and the weights it leads to"
    size = (9, 5.6)
    controls = [
        Steps("heads", 1, 16, default=8),
        Steps("head", 1, 16, default=3),
        Steps("length", 2, 64, default=12, unit="tokens"),
        Choice("content", ["all keys fit equally", "random scores"]),
        Toggle("symmetric", label="keys on both sides (symmetric)"),
    ]

    def draw(self, figure):
        grid = figure.add_gridspec(2, 2, height_ratios=[4, 1.1])
        left, right, below = (figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[1, :]))
        self.bias = self._map(figure, left, "bias", range(-8, 1, 2), vmin=-8, vmax=0)
        self.weights = self._map(figure, right, "weight", [0.0001, 0.001, 0.01, 0.1, 1], norm=LogNorm(1e-4, 1))
        left.set_ylabel("query, first to last")
        below.set(
            yscale="log",
            xlim=(0.5, 16.5),
            ylim=(0.002, 1.9),
            xlabel="head",
            ylabel="slope",
            xticks=range(1, 17),
            yticks=[1, 0.1, 0.01],
            yticklabels=["1", "0.1", "0.01"],
        )
        below.minorticks_off()
        (self.slopes,) = below.plot([], [], **style.marker(0) | {"markersize": 6})
        (self.chosen,) = below.plot([], [], **style.marker(1) | {"markersize": 13, "fillstyle": "none"})

    def _map(self, figure, axes, label, ticks, **scale):
        look = {"extent": (0, 1, 1, 0), "cmap": style.SEQUENTIAL, "interpolation": "nearest"}
        image = axes.imshow(np.zeros((1, 1)), **look, **scale)
        axes.set(xticks=[], yticks=[], xlabel="key, first to last")
        bar = figure.colorbar(image, ax=axes, label=label, extend="min", ticks=ticks, format="%g")
        bar.minorticks_off()
        return image

    def follow(self, name, before, values):
        """There is no head beyond the last one."""
        return {"head": min(values["head"], values["heads"])}

    def update(self, heads, head, length, content, symmetric):
        head = min(head, heads)
        bias = alibi_bias(heads, length, causal=not symmetric)[head - 1]
        weights = softmax(bias + (_scores()[:length, :length] if content == "random scores" else 0.0))
        self.bias.set_data(np.ma.masked_invalid(bias))
        self.weights.set_data(np.ma.masked_where(np.isneginf(bias), np.maximum(weights, 1e-12)))
        slopes, query = alibi_slopes(heads), length // 2
        row, slope = weights[query], slopes[head - 1]
        self.slopes.set_data(range(1, heads + 1), slopes)
        self.chosen.set_data([head], [slope])
        left, right = row[:query].sum(), row[query + 1 :].sum()
        return (
            f"Head {head} of {heads}, slope {slope:.4g}. Of {length} tokens the one at position {query} gives "
            f"itself {row[query]:.3f}, all keys on its left {left:.3f} and all on its right {right:.3f}. "
            f"The first key, {query} back, has bias {bias[query, 0]:.4g} and gets {_small(row[0])}."
        )


class ReachAndSlope(View):
    """How far does a head look, if all keys fit equally well? Right: its reach against its slope, both logarithmic."""

    title = "The reach of a head against its slope"
    size = (9, 4.2)
    controls = [
        Range("exponent", 0.0, 10.0, 0.25, default=4.0, label="slope = 1/2 to the power of"),
        Steps("heads", 1, 16, default=8, label="marked: the slopes of so many heads"),
        Choice("length", [128, 1024, 8192], default=1024, label="visible keys"),
    ]
    SLOPES = 0.5 ** np.arange(0, 10.01, 0.25)

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        left.set(xlim=(-2, 130), ylim=(-0.03, 1.03), xlabel="distance (tokens)", ylabel="weight ÷ weight at distance 0")
        (self.weights,) = left.plot([], [], **style.line(0))
        right.set(
            xscale="log",
            yscale="log",
            xlim=(1.3, 0.0007),
            ylim=(0.7, 12_000),
            xlabel="slope, steep to flat",
            ylabel="reach (tokens)",
            xticks=[1, 0.1, 0.01, 0.001],
            xticklabels=["1", "0.1", "0.01", "0.001"],
            yticks=[1, 10, 100, 1000, 10_000],
            yticklabels=["1", "10", "100", "1,000", "10,000"],
        )
        right.minorticks_off()
        self.reach, self.heads, self.here = {}, {}, {}
        for index, share in enumerate((0.99, 0.5)):
            (self.reach[share],) = right.plot([], [], **style.line(index), label=f"{share:.0%} of the weight")
            (self.heads[share],) = right.plot([], [], **style.marker(index) | {"markersize": 5})
            (self.here[share],) = right.plot([], [], **style.marker(4) | {"markersize": 12, "fillstyle": "none"})
        right.legend(loc="upper left", frameon=False)

    def update(self, exponent, heads, length):
        slope, distance = 0.5**exponent, np.arange(128)
        self.weights.set_data(distance[:length], np.exp(-slope * distance))
        for share in self.reach:
            for line, slopes in ((self.reach, self.SLOPES), (self.heads, alibi_slopes(heads)), (self.here, [slope])):
                line[share].set_data(slopes, [reach(each, length, share) for each in slopes])
        half, most = reach(slope, length, 0.5), reach(slope, length, 0.99)
        reaches = [reach(each, length, 0.99) for each in alibi_slopes(heads)]
        return (
            f"Slope {slope:.4g}, {length:,} keys that fit equally well: the nearest {half:,} get half of the "
            f"weight and the nearest {most:,} get 99 %. Of {heads} head{'s' * (heads > 1)}, the shortest reach for "
            f"99 % is {min(reaches):,} tokens, the longest {max(reaches):,}."
        )


class EveryMethod(View):
    """Which methods stay flat on longer texts, and which can still use a token far back? Two trainings of each."""

    title = "Every method, flat and far"
    size = (9, 5.8)
    controls = [
        Choice("length", LENGTHS[1:], default=1024, label="loss on texts of (bytes)"),
        Choice("distance", DISTANCES, default=128, label="copy from a distance of (tokens)"),
    ]

    def draw(self, figure):
        left, right = figure.subplots(1, 2, sharey=True)
        rows = np.arange(len(METHODS))
        left.set(
            xlim=(0.9, 2.6),
            ylim=(len(METHODS) - 0.5, -0.5),
            yticks=rows,
            yticklabels=METHODS,
            xlabel="loss ÷ loss at 128 bytes",
        )
        right.set(xlim=(-0.04, 1.04), xlabel="share copied right")
        right.tick_params(left=False)
        left.axvline(1, **style.reference)
        self.flat, self.far = [], []
        for axes, points in ((left, self.flat), (right, self.far)):
            axes.hlines(rows, -1, 3, color="#E3E3E3", linewidth=1, zorder=0)
            for seed in (0, 1):
                look = style.marker(seed) | {"markersize": (9, 6)[seed], "label": ("first seed", "second seed")[seed]}
                points += axes.plot([], [], **look)
        left.legend(loc="lower right", frameon=True, edgecolor="none")

    def update(self, length, distance):
        rows = np.arange(len(METHODS))
        ratio, copied = (
            np.array([[measure(*method, at, seed) for method in METHODS.values()] for seed in (1, 2)])
            for measure, at in ((loss_ratio, length), (copied_right, distance))
        )
        for points, values in ((self.flat, ratio), (self.far, copied)):
            for point, row in zip(points, values):
                point.set_data(row, rows)
        flat, far = np.nanmax(ratio, axis=0) < 1.1, np.nanmin(copied, axis=0) > 0.5
        both = [name for name, good in zip(METHODS, flat & far) if good]
        return (
            f"{length:,} bytes, copying from {distance} back. The loss of {flat.sum()} of {len(METHODS)} grows by "
            f"less than 10 %, and {far.sum()} copy more than half. Both: {', '.join(both) or 'none'}."
        )


class Workbench(View):
    """Your own encoding beside the shipped ones: Workbench.yours = name, losses at LENGTHS, shares at DISTANCES."""

    title = "Your encoding beside the shipped ones"
    size = (9, 4.4)
    controls = [
        Choice("beside", ENCODINGS, default="ALiBi", label="beside it"),
        Choice("loss", ["nats a byte", "relative to 128 bytes"], label="loss in"),
    ]

    yours = None  # set on the class after a training, so that every picture made from then on shows it

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        left.set(
            xscale="log",
            xlim=(115, 1140),
            ylim=(0.9, 3.9),
            xlabel="context (bytes)",
            ylabel="loss",
            xticks=LENGTHS,
            xticklabels=["128", "256", "512", "1,024"],
        )
        right.set(
            xscale="log",
            xlim=(14, 290),
            ylim=(-0.04, 1.04),
            xlabel="distance (tokens)",
            ylabel="share copied right",
            xticks=[16, 32, 64, 128, 256],
            xticklabels=["16", "32", "64", "128", "256"],
        )
        right.axvline(64, **style.reference)
        self.all, self.beside, self.own = [], [], []
        for axes in (left, right):
            axes.minorticks_off()
            self.all.append([axes.plot([], [], color="#CFCFCF", linewidth=1)[0] for _ in ENCODINGS])
            for index, (group, label) in enumerate(((self.beside, "beside it"), (self.own, "yours"))):
                look = {"marker": style.MARKERS[index], "markersize": 7, "label": label}
                group += axes.plot([], [], **style.line(index + 1), **look)
        left.legend(loc="upper left", frameon=False)

    def update(self, beside, loss):
        relative = loss != "nats a byte"
        curves = {name: _curves(encoding, relative) for name, encoding in ENCODINGS.items()}
        own = ([], [])
        if self.yours:
            own = (np.divide(self.yours[1], self.yours[1][0] if relative else 1.0), self.yours[2])
        for side, x in enumerate((LENGTHS, DISTANCES)):
            for line, curve in zip(self.all[side], curves.values()):
                line.set_data(x[: len(curve[side])], curve[side])
            self.beside[side].set_data(x[: len(curves[beside][side])], curves[beside][side])
            self.own[side].set_data(x[: len(own[side])], own[side])
        told = [_tell(beside, *curves[beside])]
        if self.yours:
            told.insert(0, _tell(self.yours[0], *own))
        return f"Loss {loss}. {'. '.join(told)}." + ("" if self.yours else " Yours is not trained yet.")


def reach(slope, keys, share):
    """How many of the nearest `keys` hold this share of the weight, if the weights are exp(−slope · distance)."""
    whole = -np.expm1(-slope * keys)
    return int(np.ceil(np.round(-np.log1p(-share * whole) / slope, 9)))


def loss_ratio(encoding, change, length, seed):
    """Recorded loss at this length over the loss at the trained one; nan if this seed was not measured."""
    row = recorded().get((encoding, change, seed))
    return row["ratio"][LENGTHS.index(length) - 1] if row else np.nan


def copied_right(encoding, change, distance, seed):
    """Recorded share of tokens copied right from this distance; nan if this seed was not measured."""
    accuracy = _recall().get((encoding, change, seed))
    return accuracy[DISTANCES.index(distance)] if accuracy else np.nan


@cache
def _recall():
    return {(row["encoding"], row["change"], row["seed"]): row["accuracy"] for row in lab.results()["recall"]}


def _curves(encoding, relative):
    """(losses, shares copied) of a shipped model, first seed; a learned table has no answer beyond 128 bytes."""
    row = recorded()[encoding, "wrap" if encoding == "learned" else None, 1]
    losses = np.array(row["loss"][:1] if encoding == "learned" else row["loss"])
    far = _recall()[encoding, "wrap" if encoding == "learned" else None, 1]
    return losses / (losses[0] if relative else 1.0), far


def _tell(name, losses, copied):
    end = f"{losses[-1]:.2f} at 1,024" if len(losses) == len(LENGTHS) else "no answer beyond"
    return f"{name}: {losses[0]:.2f} at 128 bytes, {end}, {copied[-1]:.0%} copied from 256 back"


@cache
def _scores():
    """Scores of 64 queries for 64 keys, drawn once: normal, mean 0, spread 1."""
    return np.random.RandomState(7).normal(size=(64, 64))


def _small(weight):
    return f"{weight:.3f}" if weight >= 0.0005 else f"{weight:.1e}"
