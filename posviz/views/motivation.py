"""The pictures of chapter 0: three words through attention, and the loss of small models along longer texts."""

from functools import cache

import numpy as np

from posviz import attention_weights, lab, sinusoidal, style
from posviz.live import Choice, Steps, Toggle, View
from posviz.views.extrapolation import ENCODINGS

VECTORS = {"dog": [1.0, 0.0], "bites": [0.0, 1.0], "man": [1.0, 1.0]}
ORDERS = ("dog bites man", "man bites dog", "dog man bites", "man dog bites", "bites dog man", "bites man dog")
TRAINED, LONGEST, BLOCK = 128, 1024, 16  # bytes; the recorded losses are means over 16 positions


def through_attention(text, numbered):
    """({word: vector before attention}, {word: vector after it}); `numbered` adds the position vectors."""
    words = text.split()
    before = np.array([VECTORS[word] for word in words]) + (sinusoidal(range(3), 2) if numbered else 0.0)
    after = attention_weights(before, before, scale=1.0) @ before
    return dict(zip(words, before)), dict(zip(words, after))


class WhoBitWhom(View):
    """What does attention make of three words in another order? Grey rings: the result for "dog bites man"."""

    title = "Three words before and after attention"
    size = (9, 4.4)
    controls = [
        Choice("order", ORDERS, default="man bites dog"),
        Toggle("numbered", label="number the words (add a position vector)"),
    ]

    def draw(self, figure):
        self.rings, self.points = [], {}
        for axes, title in zip(figure.subplots(1, 2), ("before attention", "after attention")):
            axes.set(
                title=title,
                xlim=(-0.25, 2.25),
                ylim=(-0.75, 2.25),
                aspect="equal",
                xlabel="first number",
                xticks=[0, 1, 2],
                yticks=[0, 1, 2],
            )
            axes.axhline(0, **style.reference)
            axes.axvline(0, **style.reference)
            (ring,) = axes.plot(
                [], [], **style.marker(7) | {"marker": "o", "fillstyle": "none"}, label="in “dog bites man”"
            )
            ring.set_markersize(2.2 * ring.get_markersize())
            self.rings.append(ring)
            self.points[title] = [axes.plot([], [], **style.marker(i), label=word)[0] for i, word in enumerate(VECTORS)]
        figure.axes[0].set_ylabel("second number")
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, columnspacing=1.2
        )

    def update(self, order, numbered):
        sides = list(zip(through_attention(order, numbered), through_attention(ORDERS[0], numbered)))
        for ring, points, (now, first) in zip(self.rings, self.points.values(), sides):
            ring.set_data(*np.array(list(first.values())).T)
            for point, word in zip(points, VECTORS):
                point.set_data(*now[word][:, None])
        now, first = sides[1]
        same = sum(np.allclose(now[word], first[word]) for word in VECTORS)
        listed = ", ".join(f"{word} ({now[word][0]:.2f}, {now[word][1]:.2f})" for word in order.split())
        return (
            f"“{order}”, {'numbered' if numbered else 'not numbered'}: attention gives {listed}. "
            f"{same} of the 3 words get what they get in “dog bites man”."
        )


class LossAlongText(View):
    """How well does each small model guess the next byte, the further it reads? All were trained on 128 bytes."""

    title = "Loss along a text, measured on small trained models"
    size = (9, 4.2)
    controls = [
        Choice("encoding", ENCODINGS, default="RoPE"),
        Choice("beside", ENCODINGS, default="ALiBi", label="and beside it"),
        Steps("length", TRAINED, LONGEST, step=64, default=TRAINED, unit="bytes", label="length of the text"),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        everything = np.concatenate(list(losses_along_text().values()))
        axes.set(
            xlim=(0, LONGEST),
            ylim=(np.floor(2 * everything.min()) / 2, np.ceil(2 * everything.max()) / 2),
            xticks=range(0, LONGEST + 1, 128),
            xlabel="position in the text (bytes)",
            ylabel="loss (nats a byte)",
        )
        axes.axvspan(0, TRAINED, color="#E3E3E3", linewidth=0, label="trained on this length", zorder=0)
        look = {"marker": "s", "markersize": 5}
        (self.second,) = axes.plot([], [], **style.line(1), **look, label="beside it")
        (self.first,) = axes.plot([], [], **style.line(0), **look | {"marker": "o"}, label="the encoding")
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside upper right", ncols=3, frameon=False, reverse=True
        )

    def update(self, encoding, beside, length):
        words = []
        for line, name in ((self.first, encoding), (self.second, beside)):
            loss = losses_along_text()[ENCODINGS[name]][: length // BLOCK]
            line.set_data(BLOCK * np.arange(len(loss)) + BLOCK / 2, loss)
            trained, last = loss[4:8].mean(), loss[-4:].mean()
            if len(loss) * BLOCK < length:
                words.append(f"{name} {trained:.2f}, then it stops: it has no vector for position {TRAINED}")
            else:
                words.append(f"{name} {trained:.2f} and {last:.2f} ({last / trained:.2f} times)")
        if length == TRAINED:
            first, second = (line.get_ydata()[4:].mean() for line in (self.first, self.second))
            return (
                f"No longer than in training. Loss over positions 64 to 127: "
                f"{encoding} {first:.2f}, {beside} {second:.2f}."
            )
        return f"A text of {length:,} bytes. Loss over positions 64 to 127 and over the last 64: {'; '.join(words)}."


@cache
def losses_along_text():
    """{encoding: loss at each 16 positions} of the shipped models, as the lab has recorded it; needs no torch."""
    return {row["encoding"]: np.array(row["loss"]) for row in lab.results()["by_position"] if row["seed"] == 1}
