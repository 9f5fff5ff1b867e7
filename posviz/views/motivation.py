"""The pictures of chapter 0: three words through attention, and the loss of small models along longer texts."""

import numpy as np

from posviz import attention_weights, sinusoidal, style
from posviz.lab.results import LENGTHS, POSITIONS, by_position
from posviz.live import Choice, Steps, Toggle, View
from posviz.views.parts import ENCODINGS, EndNames, curve, log_axis, measured, points, ring

VECTORS = {"dog": [1.0, 0.0], "bites": [0.0, 1.0], "man": [1.0, 1.0]}
ORDERS = ("dog bites man", "man bites dog", "dog man bites", "man dog bites", "bites dog man", "bites man dog")
TRAINED, LONGEST = LENGTHS[0], LENGTHS[-1]  # bytes


def through_attention(text, numbered):
    """({word: vector before attention}, {word: vector after it}); `numbered` adds the position vectors."""
    words = text.split()
    before = np.array([VECTORS[word] for word in words]) + (sinusoidal(range(3), 2) if numbered else 0.0)
    after = attention_weights(before, before, scale=1.0) @ before
    return dict(zip(words, before)), dict(zip(words, after))


class WhoBitWhom(View):
    """What does attention make of three words in another order? Each line begins at the ring of "dog bites man"."""

    title = "Three words before and after attention"
    size = (9, 4.4)
    controls = [Choice("order", ORDERS), Toggle("numbered", label="number the words (add a position vector)")]
    story = {"order": (), "numbered": ()}

    def draw(self, figure):
        self.rings, self.points, self.moves, self.names = {}, {}, {}, []
        for axes, side in zip(figure.subplots(1, 2), ("before attention", "after attention")):
            axes.set(title=side, xlabel="first number", xticks=[0, 1, 2], yticks=[0, 1, 2])
            axes.set(xlim=(-0.25, 2.25), ylim=(-0.75, 2.25), aspect="equal")
            axes.axhline(0, **style.reference)
            axes.axvline(0, **style.reference)
            self.moves[side] = [curve(axes, index, linestyle="-") for index in range(3)]
            self.points[side] = [points(axes, index) for index in range(3)]
            # Larger from word to word: where two results are one, both rings are seen.
            self.rings[side] = [ring(axes, index, 2.0 + 0.4 * index, zorder=5) for index in range(3)]
            self.names.append(EndNames(axes, "bites"))
        figure.axes[0].set_ylabel("second number")

    def update(self, order, numbered):
        sides = list(zip(through_attention(order, numbered), through_attention(ORDERS[0], numbered)))
        artists = zip(self.rings.values(), self.moves.values(), self.points.values())
        for (rings, moves, dots), names, (now, first) in zip(artists, self.names, sides):
            for circle, move, dot, word in zip(rings, moves, dots, VECTORS):
                circle.set_data(*first[word][:, None])
                move.set_data(*np.transpose([first[word], now[word]]))
                dot.set_data(*now[word][:, None])
            names.follow(dict(zip(VECTORS, dots)))
        now, first = sides[1]
        same = sum(np.allclose(now[word], first[word]) for word in VECTORS)
        listed = ", ".join(f"{word} ({now[word][0]:.2f}, {now[word][1]:.2f})" for word in order.split())
        case = f"“{order}”, {'numbered' if numbered else 'not numbered'}: attention gives {listed}."
        if order == ORDERS[0]:
            return f"{case} Each point is in its ring. In another order, which points will leave theirs?"
        return f"{case} {same} of the 3 words get what they get in “dog bites man”."


class LossAlongText(View):
    """How well does each small model guess the next byte, the further it reads? All were trained on 128 bytes."""

    title = "Loss along a text, measured on small trained models"
    size = (9, 4.2)
    controls = [
        Choice("encoding", ENCODINGS, default="RoPE"),
        Choice("beside", ENCODINGS, default="ALiBi", label="and"),
        Choice("third", ENCODINGS, default="learned table", label="and"),
        Steps("length", TRAINED, LONGEST, step=64, default=TRAINED, unit="bytes", label="length of the text"),
    ]
    story = {"encoding": (), "length": ()}

    def draw(self, figure):
        axes = figure.subplots()
        losses = np.concatenate(list(by_position.values()))
        log_axis(axes, "x", [8, 16, 32, 64, 128, 256, 512, 1024])  # or most of the picture would be empty at first
        axes.set(xlim=(7, LONGEST), ylim=(np.floor(2 * losses.min()) / 2, np.ceil(2 * losses.max()) / 2))
        axes.set(xlabel="position in the text (bytes)", ylabel="loss (nats a byte)")
        axes.axvspan(7, TRAINED, color="#E3E3E3", linewidth=0, zorder=0)
        axes.text(7.3, axes.get_ylim()[1], "trained on this length", va="top")
        self.lines = [measured(axes, index, markersize=5, linestyle="-") for index in (2, 1, 0)]  # the first on top
        self.names = EndNames(axes, "Transformer-XL")

    def update(self, encoding, beside, third, length):
        trained, told = {}, {}
        lines = dict(zip((third, beside, encoding), self.lines))
        for name, line in zip((encoding, beside, third), self.lines[::-1]):
            loss = by_position[ENCODINGS[name]][: length // POSITIONS]
            line.set_data(POSITIONS * (np.arange(len(loss)) + 0.5), loss)
            trained[name], last = loss[4:8].mean(), loss[-4:].mean()  # of 64 positions each
            if len(loss) * POSITIONS < length:
                told[name] = f"{name} {trained[name]:.2f}, then it stops: no vector for {TRAINED}"
            else:
                told[name] = f"{name} {trained[name]:.2f} and {last:.2f} ({last / trained[name]:.2f} times)"
        self.names.follow(lines)
        if length == TRAINED:
            known = ", ".join(f"{name} {loss:.2f}" for name, loss in trained.items())
            return (
                f"No longer than in training. Loss over positions 64 to 127: {known}. What will more text do to each?"
            )
        told = "; ".join(told.values())
        return f"A text of {length:,} bytes. Loss over positions 64 to 127 and over the last 64: {told}."
