"""The pictures of chapter 6: loss and entropy by length, scaled frequencies, penalties, log-n, attention up close."""

from functools import cache, lru_cache
from itertools import zip_longest

import numpy as np

import posviz
from posviz import lab, style
from posviz.lab.results import CHANGE_NAMES, LENGTHS, METHODS, NAMES, SEEDS, entropy, loss, smollm2_loss
from posviz.live import Choice, Range, Steps, Text, Toggle, View
from posviz.views.parts import (
    ENCODINGS,
    EndNames,
    Letters,
    counted,
    curve,
    heat_map,
    log_axis,
    measured,
    points,
    seed_curves,
    thousands,
    weight_bar,
)

TURN = 2 * np.pi


class LossByLength(View):
    """What does more text in front do to the loss on the same last 64 bytes? Grey: the other models, as trained."""

    title = "Loss against length, measured"
    size = (9, 4.8)
    MODELS = {  # as it is, and with each change that was measured
        name + f" + {words}" * bool(change): (encoding, change)
        for name, encoding in ENCODINGS.items()
        for change, words in CHANGE_NAMES.items()
        if change is None or (encoding, change, SEEDS[0]) in loss
    }
    controls = [Choice("model", MODELS, default="RoPE"), Choice("length", LENGTHS, label="texts up to (bytes)")]
    story = {"length": (), "model": ()}

    def draw(self, figure):
        axes = figure.subplots()
        _length_axis(axes, "loss (nats a byte)", (1.8, 4.2))
        grey = {"color": "#8A8A8A", "linewidth": 1, "marker": ".", "linestyle": "-"}
        self.others = {name: curve(axes, 7, **grey) for name in ENCODINGS}
        self.lines = {words: seed_curves(axes, index) for index, words in enumerate(("as trained", "with the change"))}
        axes.set_title(f"thin: the same with another seed, {', '.join(map(str, SEEDS[1:]))}")
        self.names = EndNames(axes, max(self.MODELS, key=len))

    def update(self, model, length):
        encoding, change = self.MODELS[model]
        most = LENGTHS.index(length) + 1
        plain, changed = _losses(encoding, None), _losses(encoding, change) if change else ()
        for name, line in self.others.items():
            losses = _losses(ENCODINGS[name], None)[0][:most] if ENCODINGS[name] != encoding else ()
            line.set_data(LENGTHS[: len(losses)], losses)
        for lines, curves in zip(self.lines.values(), (plain, changed)):
            for line, losses in zip_longest(lines, curves, fillvalue=()):
                line.set_data(LENGTHS[: len(losses[:most])], losses[:most])
        named = {
            NAMES[encoding]: self.lines["as trained"][0],
            model: self.lines["with the change" if change else "as trained"][0],
        }
        self.names.follow(self.others | named)
        return _grows(model, changed or plain, length)


class EntropyByLength(View):
    """Does attention get flatter in a longer text, and does it help to sharpen it again?"""

    title = "Entropy of attention and loss, with and without log-n"
    size = (9, 4.4)
    MODELS = {name: (encoding, None) for name, encoding in ENCODINGS.items() if encoding != "learned"}
    MODELS |= {name: METHODS[name] for name in ("RoPE + NTK-aware", "RoPE + YaRN")}
    controls = [Choice("model", MODELS, default="RoPE + NTK-aware")]

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        _length_axis(left, "entropy (nats)", (0, 7.4))
        _length_axis(right, "loss (nats a byte)", (1.8, 4.2))
        left.plot(LENGTHS, np.log(LENGTHS), **style.reference | {"linewidth": 1.6}, label="ln n, the most there can be")
        self.entropy, self.loss = {}, {}
        for index, words in enumerate(("as it is", "with log-n")):
            self.entropy[words] = seed_curves(left, index)
            self.loss[words] = seed_curves(right, index)
        right.set_title(f"thin: another seed, {', '.join(map(str, SEEDS[1:]))}")
        left.set_title("grey: ln n, the most there can be")
        self.names = EndNames(right, "with log-n")

    def update(self, model):
        encoding, change = self.MODELS[model]
        changes = {"as it is": change, "with log-n": f"{change}+log_n" if change else "log_n"}
        seeds = [seed for seed in SEEDS if all((encoding, each, seed) in loss for each in changes.values())]
        for words, change in changes.items():
            for recorded, lines in ((entropy, self.entropy[words]), (loss, self.loss[words])):
                for line, seed in zip_longest(lines, seeds):
                    line.set_data(*((LENGTHS, recorded[encoding, change, seed]) if seed else ((), ())))
        self.names.follow({words: lines[0] for words, lines in self.loss.items()})
        (flat, sharp), (plain, helped) = (
            np.array([[recorded[encoding, change, seed] for seed in seeds] for change in changes.values()])
            for recorded in (entropy, loss)
        )  # (seeds, lengths) each
        more = (helped - plain)[:, -1]
        return (
            f"{model}, mean of {counted(len(seeds), 'seed')}: from 128 to 1,024 bytes the entropy goes from "
            f"{flat[:, 0].mean():.2f} to {flat[:, -1].mean():.2f}, with log-n to {sharp[:, -1].mean():.2f}. "
            f"At 1,024 log-n {difference(more)}."
        )


class Spectrum(View):
    """How long is each pair's wave under each scaling, and which pairs meet angles that training never showed?"""

    title = "Wavelength of every pair under each scaling"
    size = (9, 4.4)
    MODELS = {  # features of a head, base, trained length, turns above which YaRN leaves a pair alone
        "LLaMA": (128, 10_000.0, 2048, 32.0),
        "Llama 3": (128, 500_000.0, 8192, 32.0),
        "our small model": (16, 100.0, 128, 4.0),
    }
    controls = [
        Choice("model", MODELS),
        Choice("scaling", ["none", "PI", "NTK-aware", "dynamic NTK", "YaRN", "YaRN, the paper's ramp", "Llama 3's"]),
        Steps("factor", 1, 16, default=4, label="factor s"),
        Steps("times", 1, 16, default=4, label="used length ÷ trained length"),
    ]
    story = {"model": (), "scaling": (), "factor": (9,), "times": (2,)}

    def draw(self, figure):
        axes = figure.subplots()
        log_axis(axes, "y", [0.001, 0.01, 0.1, 1, 10, 100, 1000])
        axes.set(xlim=(-0.03, 1.03), ylim=(5e-4, 1.5e4), ylabel="wavelength ÷ trained length")
        axes.set_xticks([0, 0.5, 1], ["fastest pair", "middle", "slowest pair"])
        axes.axhline(1, **style.reference | {"color": "#222222", "linestyle": "-"}, label="trained length")
        self.used = axes.axhline(4, **style.reference | {"color": "#222222", "linewidth": 1.6}, label="used length")
        self.plain = curve(axes, 7, linewidth=1.4, label="as trained")
        self.safe = points(axes, 0, markersize=6, label="after scaling")
        self.new = points(axes, 1, markersize=6, label="after scaling, with new angles")
        axes.legend(loc="upper left", ncols=2, frameon=False, columnspacing=1.5)

    def update(self, model, scaling, factor, times):
        dim, base, trained, _ = self.MODELS[model]
        plain = posviz.rope_frequencies(dim, base)
        scaled = _scaled(scaling, factor, times, *self.MODELS[model])
        place = np.linspace(0, 1, len(plain))
        reach = times * scaled / plain  # largest angle in use over the largest in training
        new = (trained * plain < TURN) & (reach > 1 + 1e-9)  # a pair that came round has met every angle
        wave = TURN / scaled / trained
        self.plain.set_data(place, TURN / plain / trained)
        self.safe.set_data(place[~new], wave[~new])
        self.new.set_data(place[new], wave[new])
        self.used.set_ydata([times, times])
        how = f"{scaling}, s = {times if scaling == 'dynamic NTK' else factor}" if scaling != "none" else "no scaling"
        worst = f", up to {reach[new].max():.2f} times the trained ones" if new.any() else ""
        return (
            f"{model}, {how}, {times} times the trained {trained:,}: {new.sum()} of {len(plain)} pairs "
            f"{'meets' if new.sum() == 1 else 'meet'} new angles{worst}. One token turns the fastest pair by "
            f"{scaled[0]:.2f} rad (in training {plain[0]:.2f})."
        )


def _scaled(scaling, factor, times, dim, base, trained, fast):
    """Frequencies (dim/2,) in radians per token under a scaling of Spectrum; dynamic NTK finds its own factor."""
    plain, yarn = posviz.rope_frequencies(dim, base), (dim, factor, trained, base, fast)
    return {
        "none": lambda: plain,
        "PI": lambda: posviz.position_interpolation(plain, factor),
        "NTK-aware": lambda: posviz.rope_frequencies(dim, posviz.ntk_base(base, factor, dim)),
        "dynamic NTK": lambda: _scaled("NTK-aware", times, times, dim, base, trained, fast),
        "YaRN": lambda: posviz.yarn_frequencies(*yarn),
        "YaRN, the paper's ramp": lambda: posviz.yarn_frequencies(*yarn, ramp="paper"),
        "Llama 3's": lambda: posviz.llama3_frequencies(dim, factor, base, trained),
    }[scaling]()


class RealModel(View):
    """What does a real model lose past its trained length? SmolLM2-135M, RoPE, measured on three long texts."""

    title = "SmolLM2-135M past its trained length"
    size = (9, 4.2)
    MODES = CHANGE_NAMES | {"plain": "as trained", "cut": "last 8,192 tokens only"}
    TEXTS = ["all three texts", "documentation, first half", "documentation, second half", "source code"]
    controls = [
        Choice("text", TEXTS),
        Steps("used", 2048, 16_384, step=2048, default=8192, unit="tokens", label="read up to"),
        Toggle("zoom", label="losses from 1 to 3.5"),
    ]
    story = {"used": (), "text": (), "zoom": ()}

    def draw(self, figure):
        axes = figure.subplots()
        ticks = range(0, 16_385, 4096)
        axes.set(xlim=(0, 16_384), xlabel="position (tokens)", xticks=ticks, xticklabels=thousands(ticks))
        axes.set(ylim=(1, 8), ylabel="loss (nats a token)", title="dashed upright line: the trained length")
        axes.axvline(8192, **style.reference)
        modes = ("plain", "pi", "ntk", "yarn", "cut")
        self.curves = {mode: measured(axes, index, markersize=6) for index, mode in enumerate(modes)}
        self.names = EndNames(axes, self.MODES["cut"])

    def update(self, text, used, zoom):
        end, axes = {}, self.curves["plain"].axes
        if axes.get_ylim() != (limits := (1, 3.5 if zoom else 8)):  # setting them draws the axes anew
            axes.set_ylim(limits)
        for mode, line in self.curves.items():
            of_texts = smollm2_loss[mode].reshape(3, -1, 4).mean(axis=2)  # (texts, stretches of 4 bins, 2,048 tokens)
            losses = of_texts.mean(axis=0) if text == self.TEXTS[0] else of_texts[self.TEXTS.index(text) - 1]
            places = 16_384 - 1024 - 2048 * np.arange(len(losses))[::-1]  # "cut" has the last stretches alone
            read = places < used
            line.set_data(places[read], losses[read])
            if read.any():
                end[mode] = losses[read][-1]
        self.names.follow({self.MODES[mode]: line for mode, line in self.curves.items()})
        asks = " Longer than in training, what will each do?" if used <= 8192 else ""
        told = ", ".join(f"{self.MODES[mode]} {losses:.2f}" for mode, losses in end.items())
        asks += " Seen from 1 to 3.5." * zoom
        return f"SmolLM2-135M-Instruct on {text}. Loss at the end of {used:,} tokens: {told}.{asks}"


class BiasShapes(View):
    """How fast do the penalties fall, and how far does a head look whose keys all fit equally well?"""

    title = "Four distance penalties side by side"
    size = (9, 4.4)
    controls = [
        Steps("head", 1, 8, default=4, label="head of 8 (ALiBi, Sandwich)"),
        Range("r1", 0.1, 3.0, 0.1, default=1.0, label="r1 (KERPLE)"),
        Range("r2", 0.05, 2.0, 0.05, default=0.5, label="r2 (KERPLE)"),
    ]
    story = {"head": (1, 8), "r1": (0.5, 3.0), "r2": (1.0,)}

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        for axes in (left, right):
            log_axis(axes, "x", [1, 8, 64, 512, 4096])
            axes.set(xlim=(1, 4096), xlabel="distance (tokens)")
        left.set(ylim=(-15, 0.5), ylabel="added to the score")
        right.set(ylim=(0, 1.03), ylabel="weight within the distance")
        self.bias, self.within = {}, {}
        for index, name in enumerate(("ALiBi", "KERPLE log", "KERPLE power", "Sandwich")):
            self.bias[name] = curve(left, index)
            self.within[name] = curve(right, index)
        self.names = EndNames(right, "KERPLE power")

    def update(self, head, r1, r2):
        distance = np.arange(4096)
        shown = np.unique(np.geomspace(1, 4095, 200).astype(int))
        bias = {
            "ALiBi": -posviz.alibi_slopes(8)[head - 1] * distance,
            "KERPLE log": posviz.kerple_log_bias(distance, r1, r2),
            "KERPLE power": posviz.kerple_power_bias(distance, r1, r2),
            "Sandwich": _sandwich()[head - 1],
        }
        reach = []
        for name, values in bias.items():
            within = posviz.softmax(values).cumsum()
            self.bias[name].set_data(shown, values[shown])
            self.within[name].set_data(shown, within[shown])
            reach.append(f"{int((within < 0.99).sum()):,} ({name})")
        far = ", ".join(reach)
        self.names.follow(self.within)
        return f"4,096 keys that fit equally well, head {head} of 8: 99 % of the weight lies within {far} tokens."


class XPosDecay(View):
    """What does xPos do to a RoPE score? Query and key are equal vectors of 64 features."""

    title = "The score of equal vectors with RoPE and with xPos"
    size = (9, 4)
    controls = [
        Steps("scale_base", 64, 2048, step=64, default=512, unit="tokens", label="scale base B"),
        Range("gamma", 0.1, 2.0, 0.1, default=0.4, label="γ"),
    ]
    story = {"scale_base": (64,), "gamma": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(-20, 2068), ylim=(-0.25, 1.1), xlabel="distance (tokens)", ylabel="score ÷ score at distance 0")
        axes.axhline(0, **style.reference)
        self.rope, self.ceiling, self.xpos = curve(axes, 7, linewidth=1.4), curve(axes, 1), curve(axes, 0)
        self.names = EndNames(axes, "mean factor of xPos")

    def update(self, scale_base, gamma):
        distance = np.arange(0, 2049, 4)
        factor = posviz.xpos_scale(distance, 64, gamma, scale_base)  # (distances, pairs)
        turned = np.cos(np.outer(distance, posviz.rope_frequencies(64)))
        self.rope.set_data(distance, turned.mean(axis=1))
        self.xpos.set_data(distance, (turned * factor).mean(axis=1))
        self.ceiling.set_data(distance, factor.mean(axis=1))
        self.names.follow({"RoPE": self.rope, "mean factor of xPos": self.ceiling, "xPos": self.xpos})
        at = distance.tolist().index(512)
        return (
            f"Scale base {scale_base:,}, γ = {gamma:.1f}: at distance 512 the fastest pair keeps "
            f"{_percent(factor[at, 0])} of its part of the score and the slowest {_percent(factor[at, -1])}; "
            f"the score is {(turned * factor)[at].mean():+.3f} in place of {turned[at].mean():+.3f}."
        )


class Needle(View):
    """One key fits, the others have random scores. How much weight does it keep as keys are added?"""

    title = "Weight of one fitting key among more and more keys"
    size = (9, 4.2)
    RULES = ("as it is", "ln L − ln n added", "ln n / ln L multiplied", "ln L − ln n multiplied")
    OTHERS = np.random.RandomState(0).normal(size=2**15)  # scores of the keys that do not fit
    controls = [
        Range("needle", 2.0, 12.0, 0.5, default=9.0, label="score of the key that fits"),
        Choice("keys", [512, 2048, 8192, 32_768], default=512, label="keys up to"),
        Choice("trained", [128, 512, 2048], default=512, label="trained length L (tokens)"),
    ]
    story = {"keys": (), "needle": (6.0,), "trained": ()}

    def draw(self, figure):
        axes = figure.subplots()
        log_axis(axes, "x", [32, 128, 512, 2048, 8192, 32768])
        axes.set(xlim=(28, 37_000), xlabel="number of keys n")
        axes.set(ylim=(-0.03, 1.05), ylabel="weight of the key that fits")
        self.length = axes.axvline(512, **style.reference)
        self.curves = {rule: curve(axes, index) for index, rule in enumerate(self.RULES)}
        equal = self.curves[self.RULES[1]]  # to the first
        equal.set(linestyle="none", marker="s", markersize=11, fillstyle="none")
        self.names = EndNames(axes, max(self.RULES, key=len))

    def update(self, needle, keys, trained):
        numbers = 2 ** np.arange(5, int(np.log2(keys)) + 1)
        self.length.set_xdata([trained, trained])
        weights = {rule: [] for rule in self.RULES}
        for n in numbers:
            scores = np.append(needle, self.OTHERS[: n - 1])  # (n,)
            difference = np.log(trained) - np.log(n)
            ruled = scores, scores + difference, scores * posviz.log_n_factor(n, trained), scores * difference
            for rule, changed in zip(self.RULES, ruled):
                weights[rule].append(posviz.softmax(changed)[0])
        for rule, line in self.curves.items():
            line.set_data(numbers, weights[rule])
        self.names.follow(self.curves)
        if keys <= trained:
            kept = weights[self.RULES[0]][-1]
            return f"A key with score {needle:.1f} keeps {kept:.2f} among {keys} keys. Among more, what will it keep?"
        begin = numbers.tolist().index(trained)
        plain, added, ratio, _ = (f"{row[begin]:.2f} to {row[-1]:.2f}" for row in weights.values())
        return (
            f"A key with score {needle:.1f}, trained at {trained:,}. Its weight from there to {keys:,} keys: "
            f"{plain} as it is, {added} with the difference added, {ratio} with the ratio."
        )


class AttentionMicroscope(View):
    """Where does a head of a trained model look? Any text, any encoding; the models read its first 48 bytes."""

    title = "Attention of a small trained model, byte by byte"
    size = (9.4, 4.7)
    LONGEST = 48
    controls = [
        Text("text", "for name in names: print(name)"),
        Choice("encoding", ENCODINGS, default="RoPE"),
        Steps("layer", 1, 4),
        Steps("head", 1, 4),
        Toggle("shuffle", label="shuffle the bytes"),
    ]
    story = {"encoding": (), "layer": (2,), "head": (2,), "shuffle": ()}

    def draw(self, figure):
        axes = figure.subplots()
        self.weights = heat_map(axes, None, 0, 1)
        size = style.font_size()
        axes.set_xlabel("byte that is looked at", labelpad=1.9 * size)
        axes.set_ylabel("byte that looks", labelpad=1.9 * size)
        self.across, self.down = (Letters(axes, *away) for away in ((0, -size), (-size, 0)))
        weight_bar(self.weights, shrink=0.7)

    def update(self, text, encoding, layer, head, shuffle):
        whole = text.encode(errors="replace")
        data, n = whole[: self.LONGEST], min(len(whole), self.LONGEST)
        if shuffle:
            data = bytes(np.random.RandomState(0).permutation(list(data)).astype(np.uint8))
        self.words, places = Letters.of_bytes(data)
        middles = places / max(n, 1)
        self.across.show(self.words, middles, 0 * middles, lines=n)
        self.down.show(self.words, 0 * middles, 1 - middles, lines=n)
        if n < 2:
            self.weights.set_data(np.full((1, 1), np.nan))
            return "Type at least two letters: then every letter after the first has something to look back at."
        weights = _attention(ENCODINGS[encoding], data)[layer - 1, head - 1]  # (queries, keys)
        self.weights.set_data(np.ma.masked_array(np.sqrt(weights), ~np.tri(n, dtype=bool)))
        later = weights[1:]
        distance = np.arange(1, n)[:, None] - np.arange(n)
        read = f"{n} bytes" if n == len(whole) else f"the first {n} of {len(whole):,} bytes"
        near = later[(distance == 0) | (distance == 1)].sum() / (n - 1)
        return (
            f"{encoding}, layer {layer}, head {head}, {read}{' in another order' * shuffle}: {_percent(near)} of the "
            f"weight goes to the byte itself and the one before, {_percent(later[:, 0].mean())} to the first byte; "
            f"the mean distance is {(later * np.maximum(distance, 0)).sum() / (n - 1):.1f}."
        )


def _length_axis(axes, ylabel, ylim):
    log_axis(axes, "x", LENGTHS)
    axes.set(xlim=(115, 1140), ylim=ylim, xlabel="context (bytes)", ylabel=ylabel)
    axes.set_xticklabels(["128\ntrained", "256\n2 times", "512\n4 times", "1,024\n8 times"])


def _losses(encoding, change):
    """Loss at each length, one array a seed; a learned table as it is has no answer beyond the trained length."""
    if encoding == "learned" and change is None:
        return [losses[:1] for losses in _losses(encoding, "random")]
    return [loss[encoding, change, seed] for seed in SEEDS if (encoding, change, seed) in loss]


def difference(more):
    """What a loss does that changes by `more` nats, a seed each: beyond two standard errors it helps or hurts."""
    if len(more) == 1:
        return f"changes the loss by {more[0]:+.2f}: a second seed is missing, so nothing can be said"
    mean, error = more.mean(), 2 * more.std(ddof=1) / np.sqrt(len(more))
    verdict = ("helps" if mean < 0 else "hurts") if abs(mean) > error else "makes no difference that we could measure"
    return f"changes the loss by {mean:+.2f} ± {error:.2f}: it {verdict}"


def _grows(what, curves, length):
    """Two sentences on how the loss goes up to this length; curves is a list of losses, one a seed."""
    if len(curves[0]) == 1:
        return f"{what}: loss {curves[0][0]:.2f} at 128 bytes. Beyond there is no row, so there is no answer."
    if length == LENGTHS[0]:
        return f"{what}: loss {curves[0][0]:.2f} at 128 bytes, the trained length. In longer texts, will it stay?"
    most = LENGTHS.index(length)
    times = ", ".join(f"{losses[most] / losses[0]:.2f}" for losses in curves)
    return (
        f"{what}: loss {curves[0][0]:.2f} at 128 bytes, {curves[0][most]:.2f} at {length:,}. "
        f"That is {times} times the loss at 128 ({counted(len(curves), 'seed')})."
    )


@cache
def _sandwich():
    return posviz.sandwich_bias(np.arange(4096), 8)


@cache
def _model(encoding):
    return lab.load(encoding)


@lru_cache(64)
def _attention(encoding, data):
    """Attention weights (layers, heads, query, key) of a shipped model on these bytes; imports torch."""
    return lab.attention(_model(encoding), data)


def _percent(share):
    return f"{100 * share:.0f} %"
