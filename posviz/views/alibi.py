"""The pictures of chapter 7: ALiBi's bias and weights, its reach, every method measured, and the reader's own."""

import numpy as np

from posviz import alibi_bias, alibi_slopes, softmax, style
from posviz.lab.results import DISTANCES, LENGTHS, METHODS, SEEDS, loss, ratio, recall
from posviz.live import Choice, Range, Steps, Toggle, View
from posviz.views.parts import (
    ENCODINGS,
    EndNames,
    Letters,
    curve,
    heat_map,
    log_axis,
    measured,
    number_sides,
    points,
    sides,
)


class BiasAndWeights(View):
    """What does the bias matrix look like, and what does it make of the weights? Below: the slope of every head."""

    title = "ALiBi's bias matrix and the weights it leads to"
    size = (9, 4.85)
    controls = [
        Steps("heads", 1, 16, default=8),
        Steps("head", 1, 16, default=3),
        Steps("length", 2, 64, default=12, unit="tokens"),
        Choice("content", ["all keys fit equally", "random scores"]),
        Toggle("symmetric", label="keys on both sides (symmetric)"),
    ]
    story = {"head": tuple(range(1, 9)), "length": (64,), "content": (), "symmetric": ()}

    SCORES = np.random.RandomState(7).normal(size=(64, 64))  # random ones, of (queries, keys)

    def draw(self, figure):
        axes = figure.subplot_mosaic([["bias", "weight"], ["slope", "slope"]], height_ratios=[4, 1.1])
        self.bias = heat_map(axes["bias"], None, -4, 0)
        self.weights = heat_map(axes["weight"], None, 1e-4, 1, norm="log")
        bars = (self.bias, "bias", range(-4, 1)), (self.weights, "weight", 10.0 ** np.arange(-4, 1))
        for image, label, ticks in bars:
            figure.colorbar(image, ax=image.axes, label=label, extend="min", ticks=ticks, format="%g").minorticks_off()
        self.sides = [sides(image.axes, "position of the query", "position of the key") for image, *_ in bars]
        self.numbers = [Letters(image.axes) for image, *_ in bars]
        below = axes["slope"]
        log_axis(below, "y", [1, 0.1, 0.01])
        below.set(xlim=(0.5, 16.5), xticks=range(1, 17), xlabel="head", ylim=(0.002, 1.9), ylabel="slope")
        self.slopes = points(below, 0, markersize=6)
        self.chosen = points(below, 1, markersize=13, fillstyle="none")

    def coupled(self, moved, before, values):
        """A head beyond the last adds heads; with fewer heads the last one is shown and yours remembered."""
        return {"heads": max(values["head"], values["heads"])} if moved == "head" else {}

    def update(self, heads, head, length, content, symmetric):
        head = min(head, heads)
        bias = alibi_bias(heads, length, causal=not symmetric)[head - 1]  # (queries, keys)
        weights = softmax(bias + (self.SCORES[:length, :length] if content == "random scores" else 0.0))
        weights_shown = np.ma.masked_where(np.isneginf(bias), np.maximum(weights, 1e-12))  # 0 has no logarithm
        for image, numbers, values in zip(
            (self.bias, self.weights), self.numbers, (np.ma.masked_invalid(bias), weights_shown)
        ):
            image.set_data(values)
            numbers.number_cells(image, values)
        for both in self.sides:
            number_sides(both, range(length))
        slopes, query = alibi_slopes(heads), length // 2
        row, slope = weights[query], slopes[head - 1]
        self.slopes.set_data(range(1, heads + 1), slopes)
        self.chosen.set_data([head], [slope])
        left, right = row[:query].sum(), row[query + 1 :].sum()
        first = f"{row[0]:.3f}" if row[0] >= 0.0005 else f"{row[0]:.1e}"
        return (
            f"Head {head} of {heads}, slope {slope:.4g}. Of {length} tokens the one at position {query} gives "
            f"itself {row[query]:.3f}, all keys on its left {left:.3f} and all on its right {right:.3f}. "
            f"The first key, {query} back, has bias {bias[query, 0]:.4g} and gets {first}."
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
    story = {"exponent": (), "length": ()}
    SLOPES = 0.5 ** np.arange(0, 10.01, 0.25)

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        left.set(xlim=(-2, 130), ylim=(-0.03, 1.03), xlabel="distance (tokens)", ylabel="weight ÷ that at distance 0")
        self.weights = curve(left, 0)
        log_axis(right, "x", [1, 0.1, 0.01, 0.001])
        log_axis(right, "y", [1, 10, 100, 1000, 10_000])
        right.set(xlim=(1.3, 0.0007), xlabel="slope, steep to flat", ylim=(0.7, 12_000), ylabel="reach (tokens)")
        self.reach, self.heads, self.here = {}, {}, {}
        for index, share in enumerate((0.99, 0.5)):
            self.reach[share] = curve(right, index)
            self.heads[share] = points(right, index, markersize=5)
            self.here[share] = points(right, 4, markersize=12, fillstyle="none")
        self.names = EndNames(right, "99 % of the weight")

    def update(self, exponent, heads, length):
        slope, distance = 0.5**exponent, np.arange(128)
        self.weights.set_data(distance[:length], np.exp(-slope * distance))
        for share in self.reach:
            for line, slopes in ((self.reach, self.SLOPES), (self.heads, alibi_slopes(heads)), (self.here, [slope])):
                line[share].set_data(slopes, [reach(each, length, share) for each in slopes])
        self.names.follow({f"{100 * share:.0f} % of the weight": line for share, line in self.reach.items()})
        half, most = reach(slope, length, 0.5), reach(slope, length, 0.99)
        reaches = [reach(each, length, 0.99) for each in alibi_slopes(heads)]
        return (
            f"Slope {slope:.4g}, {length:,} keys that fit equally well: the nearest {half:,} get{'s' * (half == 1)} "
            f"half of the weight and the nearest {most:,} get 99 %. Of {heads} head{'s' * (heads > 1)}, the shortest "
            f"reach for 99 % is {min(reaches):,} tokens, the longest {max(reaches):,}."
        )


class EveryMethod(View):
    """Which methods stay flat on longer texts and can still use a token far back? A line joins the seeds of one."""

    title = "Every method, flat and far"
    size = (9, 5)
    controls = [
        Choice("length", LENGTHS[1:], default=256, label="loss on texts of (bytes)"),
        Choice("distance", DISTANCES, default=16, label="copy from a distance of (tokens)"),
    ]
    story = {"length": (), "distance": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(0.9, 2.6), xlabel="loss ÷ loss at 128 bytes (left: flat)")
        axes.set(ylim=(-0.04, 1.04), ylabel="share copied right (above: far)")
        axes.axvline(1.1, **style.reference)
        axes.axhline(0.5, **style.reference)
        self.methods = {name: measured(axes, at, linewidth=1, markersize=6) for at, name in enumerate(METHODS)}
        self.names = EndNames(axes, "no encoding")

    def update(self, length, distance):
        at, far_at, flat, far = LENGTHS[1:].index(length), DISTANCES.index(distance), [], []
        for line, method in zip(self.methods.values(), METHODS.values()):
            keys = [(*method, seed) for seed in SEEDS if (*method, seed) in recall and (*method, seed) in ratio]
            grown, copied = [ratio[key][at] for key in keys], [recall[key][far_at] for key in keys]
            line.set_data(grown, copied)
            flat.append(max(grown) < 1.1)
            far.append(min(copied) > 0.5)
        self.names.follow(self.methods)
        flat, far = np.array(flat), np.array(far)
        both = [name for name, good in zip(METHODS, flat & far) if good]
        listed = ", ".join(both) if len(both) < 7 else f"{len(both)} methods"
        return (
            f"{length:,} bytes, copying from {distance} back. The loss of {flat.sum()} of {len(METHODS)} grows by "
            f"less than 10 %, and {far.sum()} copy more than half. Both: {listed or 'none'}."
        )


LOSSES = "nats a byte", "relative to 128 bytes"


class Workbench(View):
    """How does your own encoding do beside the shipped ones? In grey all of them, as the first seed trained them."""

    title = "Your encoding beside the shipped ones"
    size = (9, 4.4)
    controls = [
        Choice("beside", ENCODINGS, default="ALiBi", label="beside it"),
        Choice("loss", LOSSES, label="loss in"),
    ]
    story = {"beside": (), "loss": ()}

    def __init__(self, name=None, losses=(), shares=()):
        """Your encoding: its name, its losses at LENGTHS (nats a byte), the shares it copied right from DISTANCES."""
        self.name, self.measured = name, (losses, shares)

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        log_axis(left, "x", LENGTHS)
        left.set(xlim=(115, 1140), ylim=(0.9, 3.9), xlabel="context (bytes)", ylabel="loss")
        log_axis(right, "x", [16, 32, 64, 128, 256])
        right.set(xlim=(14, 290), ylim=(-0.04, 1.04), xlabel="distance (tokens)", ylabel="share copied right")
        right.axvline(64, **style.reference)
        self.all, self.beside, self.own = [], [], []
        for axes in (left, right):
            self.all.append([axes.plot([], [], color="#CFCFCF", linewidth=1)[0] for _ in ENCODINGS])
            self.beside.append(measured(axes, 1, marker="o", markersize=7))
            self.own.append(measured(axes, 2, marker="s", markersize=7))
        self.names = EndNames(right, "Transformer-XL")

    def update(self, beside, loss):
        models = [*map(_shipped, ENCODINGS.values()), _shipped(ENCODINGS[beside]), self.measured]
        if loss != LOSSES[0]:
            models = [(np.divide(losses, losses[:1]), shares) for losses, shares in models]
        for side, x in enumerate((LENGTHS, DISTANCES)):
            for line, model in zip((*self.all[side], self.beside[side], self.own[side]), models):
                line.set_data(x[: len(model[side])], model[side])
        self.names.follow({beside: self.beside[1], self.name or "yours": self.own[1]})
        yours = f"{_tell(self.name, *models[-1])}. " if self.name else ""
        shipped = _tell(f"{beside}, 800 steps", *models[-2])
        loss = f"in {loss}" if loss == LOSSES[0] else loss
        return f"Loss {loss}. {yours}{shipped}.{'' if yours else ' Yours is not trained yet.'}"


def reach(slope, keys, share):
    """How many of the nearest `keys` hold this share of the weight, if the weights are exp(−slope · distance)."""
    whole = -np.expm1(-slope * keys)
    return int(np.ceil(np.round(-np.log1p(-share * whole) / slope, 9)))


def _shipped(encoding):
    """(losses, shares copied) of a shipped model; a learned table has no answer beyond 128 bytes."""
    key = encoding, "wrap" if encoding == "learned" else None, SEEDS[0]
    return loss[key][: 1 if encoding == "learned" else None], recall[key]


def _tell(name, losses, copied):
    end = f"{losses[-1]:.2f} at 1,024" if len(losses) == len(LENGTHS) else "no answer beyond"
    return f"{name}: {losses[0]:.2f} at 128 bytes, {end}, {copied[-1]:.0%} copied from 256 back"
