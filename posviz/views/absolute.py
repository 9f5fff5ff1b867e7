"""The pictures of chapter 3: learned tables, the sinusoidal table and its waves, what fades with distance, what is read."""

from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from posviz import lab, rope_frequencies, sinusoidal, softmax, style, wavelengths
from posviz.live import Choice, PowersOfTen, Steps, View

ROWS, WIDTH = 24, 16  # the small learned table: positions, features


class TableThatLearns(View):
    """Which rows of a learned table change? Attention by positions alone learns to look one token back."""

    title = "A table of positions while it learns"
    size = (9, 4.4)
    controls = [
        Steps("step", 0, 100, step=5, default=100, label="training step"),
        Steps("trained", 4, ROWS, step=4, default=16, unit="tokens", label="trained length"),
    ]

    def draw(self, figure):
        left, right = figure.subplots(1, 2, width_ratios=[2, 3])
        look = {"cmap": style.DIVERGING, "interpolation": "nearest", "aspect": "auto"}
        self.table = left.imshow(np.zeros((ROWS, WIDTH)), vmin=-1.5, vmax=1.5, **look)
        self.weights = right.imshow(np.zeros((ROWS, ROWS)), vmin=0, vmax=1, **look)
        left.set(xlabel="feature", ylabel="position", title="the table", xticks=[0, 5, 10, 15])
        right.set(xlabel="position looked at", ylabel="position that looks", title="attention weights")
        for axes, image in ((left, self.table), (right, self.weights)):
            axes.set_yticks([0, 5, 10, 15, 20])
            figure.colorbar(image, ax=axes)
        self.edges = _edge(left.axhline) + _edge(right.axhline)

    def update(self, step, trained):
        table = _learning(trained)[step // 5]
        weights = softmax(table @ _matching() @ table.T, mask=np.tri(ROWS, dtype=bool))
        self.table.set_data(table)
        self.weights.set_data(np.where(np.tri(ROWS, dtype=bool), weights, np.nan))
        for edge in self.edges:
            edge.set_ydata([trained - 0.5] * 2)
        back = np.diagonal(weights, -1)  # on the previous token, at positions 1, 2, ...
        inside, beyond = back[: trained - 1].mean(), back[trained - 1 :]
        text = f"Step {step}, texts of {trained} tokens: mean weight on the previous token {inside:.2f} at positions 1 to {trained - 1}"
        if not len(beyond):
            return f"{text}. Every row of the table has been trained."
        return f"{text}, and {beyond.mean():.2f} from position {trained} on, where no row has moved."


class AlikeRows(View):
    """Which rows of a table are alike? The cosine of two rows is 1 for the same direction, 0 at right angles, -1 for opposite."""

    title = "Which rows of a position table are alike"
    size = (9, 4.2)
    controls = [
        Choice("table", ["MiniLM", "small model", "sinusoidal"]),
        Steps("row", 0, 127, default=60, label="position of the row"),
    ]

    def draw(self, figure):
        left, right = figure.subplots(1, 2, width_ratios=[2, 3])
        self.cosines = left.imshow(np.zeros((128, 128)), vmin=-1, vmax=1, cmap=style.DIVERGING, interpolation="nearest")
        self.edges = _edge(left.axhline)
        left.set(xlabel="position", ylabel="position of the row", xticks=[0, 64, 127], yticks=[0, 64, 127])
        figure.colorbar(self.cosines, ax=left, ticks=[-1, 0, 1], label="cosine")
        right.set(xlim=(0, 127), ylim=(-1.1, 1.1), xlabel="position", ylabel="cosine with the row", yticks=[-1, 0, 1])
        right.axhline(0, **style.reference)
        (self.curve,) = right.plot([], [], **style.line(0) | {"linewidth": 1.6})
        (self.itself,) = right.plot([], [], **style.marker(1))

    def update(self, table, row):
        cosines = _cosines(table)
        self.cosines.set_data(cosines)
        self.curve.set_data(np.arange(128), cosines[row])
        self.itself.set_data([row], [1])
        for edge in self.edges:
            edge.set_ydata([row] * 2)
        near = cosines.copy()
        np.fill_diagonal(near, -2)
        means = ", ".join(f"{np.diagonal(cosines, distance).mean():.2f}" for distance in (1, 8, 64))
        return (
            f"{table}: the row most like row {row} is row {near[row].argmax()} (cosine {near[row].max():.2f}). "
            f"Mean cosine of rows 1, 8 and 64 apart: {means}."
        )


class SinusoidalTable(View):
    """What does the whole table look like? Every column is one position, every line one component."""

    title = "The sinusoidal table"
    size = (9, 4.2)
    controls = [
        Steps("positions", 16, 128, step=16, default=128, unit="tokens"),
        Steps("dim", 8, 128, step=8, default=128, unit="features", label="width d"),
        PowersOfTen("base", 1, 6, default=4),
        Choice("layout", ["interleaved", "concatenated"]),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        self.table = axes.imshow(
            np.zeros((2, 2)), vmin=-1, vmax=1, cmap=style.DIVERGING, interpolation="nearest", aspect="auto"
        )
        axes.set(xlabel="position k", ylabel="component")
        axes.locator_params(nbins=4)  # drawn anew when the table's size changes: each tick takes half a millisecond
        figure.colorbar(self.table, ax=axes, ticks=[-1, 0, 1], label="value")

    def update(self, positions, dim, base, layout):
        extent = (-0.5, positions - 0.5, dim - 0.5, -0.5)
        if tuple(self.table.get_extent()) != extent:
            self.table.set_extent(extent)
        self.table.set_data(sinusoidal(range(positions), dim, base, layout).T)
        waves = wavelengths(dim, base)
        slow = int((waves > positions).sum())
        first = "0 and 1" if layout == "interleaved" else f"0 and {dim // 2}"
        return (
            f"{positions} positions, {dim} components, base {base:,.0f}: the fastest pair, components {first}, repeats every "
            f"{waves[0]:.2f} tokens; {slow} of {dim // 2} pairs do not finish one wave."
        )


class OneComponent(View):
    """How long is the wave of one component? Its partner in the pair is a quarter of a wave ahead or behind."""

    title = "One component along the text"
    size = (9, 3.6)
    controls = [
        Steps("component", 0, 127, default=8, label="component j"),
        Steps("dim", 8, 128, step=8, default=128, unit="features", label="width d"),
        PowersOfTen("base", 1, 6, default=4),
        Steps("length", 16, 64, step=16, default=64, unit="tokens", label="text length"),
    ]

    def follow(self, name, before, values):
        return {"component": min(values["component"], values["dim"] - 1)}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(ylim=(-1.15, 1.5), xlabel="position k", ylabel="value", yticks=[-1, 0, 1])
        axes.locator_params(axis="x", nbins=4)  # few ticks, as the axis is drawn anew with every text length
        axes.axhline(0, **style.reference)
        (self.partner,) = axes.plot([], [], **style.line(1) | {"linewidth": 1.4}, label="the other one of the pair")
        (self.wave,) = axes.plot([], [], **style.line(0) | {"linewidth": 1.6}, label="component j")
        (self.tokens,) = axes.plot([], [], **style.marker(0) | {"markersize": 5}, label="at a token")
        axes.legend(loc="upper center", ncols=3, frameon=False, borderaxespad=0.2)

    def update(self, component, dim, base, length):
        component = min(component, dim - 1)  # a state that the sliders never reach
        pair, is_cosine = divmod(component, 2)
        frequency = rope_frequencies(dim, base)[pair]
        both = (np.sin, np.cos)
        k = np.linspace(0, length, 1601)
        if self.wave.axes.get_xlim() != (0, length):
            self.wave.axes.set_xlim(0, length)
        self.wave.set_data(k, both[is_cosine](k * frequency))
        self.partner.set_data(k, both[1 - is_cosine](k * frequency))
        tokens = np.arange(length + 1)
        self.tokens.set_data(tokens, both[is_cosine](tokens * frequency))
        wave = 2 * np.pi / frequency
        return (
            f"Component {component} of {dim} is the {'cosine' if is_cosine else 'sine'} of pair {pair}: ω = {frequency:.3g} rad a token, "
            f"wavelength 2π/ω = {wave:,.1f} tokens, {length / wave:.3g} waves in {length} tokens."
        )


class BinaryClock(View):
    """Is the table a smooth binary number? Above the seven digits of each position, below seven sines."""

    title = "Binary digits and sines"
    size = (9, 4.6)
    controls = [Steps("position", 0, 126, default=63, unit="tokens"), Choice("base", [128, 10_000])]

    def draw(self, figure):
        above, below = figure.subplots(2, 1, sharex=True)
        digits = np.arange(128) >> np.arange(7)[:, None] & 1
        look = {"cmap": style.SEQUENTIAL, "interpolation": "nearest", "aspect": "auto"}
        above.imshow(digits, vmin=0, vmax=1, **look)
        self.sines = below.imshow(np.zeros((7, 128)), vmin=-1, vmax=1, **look)
        above.set(ylabel="digit", yticks=[0, 6], yticklabels=["ones", "64s"])
        below.set(ylabel="sine of pair", yticks=[0, 6], xlabel="position k", xticks=[0, 32, 64, 96, 127])
        self.edges = _edge(above.axvline) + _edge(below.axvline)

    def update(self, position, base):
        table = sinusoidal(range(128), 14, base)
        self.sines.set_data(table[:, 0::2].T)
        for edge in self.edges:
            edge.set_xdata([position + 0.5] * 2)
        flipped = (position ^ (position + 1)).bit_count()
        moved = np.linalg.norm(table[position + 1] - table[position])
        return (
            f"From position {position} ({position:07b}) to {position + 1} ({position + 1:07b}): {flipped} of 7 digits change. "
            f"With base {base:,} the vector of sines and cosines moves by {moved:.3f}, as at every step."
        )


class DecayByDistance(View):
    """What of a score fades with distance? The query stands at 0; the key moves away."""

    title = "Score against distance, three kinds of vectors"
    size = (9, 4)
    controls = [
        Choice("vectors", ["identical", "random", "projected"]),
        Steps("draw", 0, 20, default=0, label="draw of the random numbers"),
        Steps("dim", 32, 256, step=32, default=128, unit="features", label="width d"),
        PowersOfTen("base", 1, 6, default=4),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(0, 512), ylim=(-2.5, 1.3), xlabel="distance (tokens)", ylabel="score change ÷ (d/2)")
        axes.axhline(0, **style.reference)
        (self.alone,) = axes.plot([], [], **style.line(1) | {"linewidth": 1.6}, label="positions alone")
        (self.score,) = axes.plot([], [], **style.line(0) | {"linewidth": 1.6}, label="these vectors")
        axes.legend(loc="upper right", ncols=2, frameon=False)

    def update(self, vectors, draw, dim, base):
        distance = np.arange(513)
        table = sinusoidal(distance, dim, base)
        score, alone = _score(vectors, table, draw), table @ table[0]
        self.score.set_data(distance, (score - score[0]) / (dim / 2))
        self.alone.set_data(distance, (alone - alone[0]) / (dim / 2))
        rises = (np.diff(score) > 0).mean()
        alike = np.corrcoef(score, alone)[0, 1]
        return (
            f"{vectors.capitalize()} vectors, draw {draw}, d = {dim}, base {base:,.0f}: the score is {score[0]:.1f} at distance 0 and "
            f"{score[500]:.1f} at 500; {rises:.0%} of the steps go up. Correlation with the positions alone: {alike:.2f}."
        )


class ReadThePosition(View):
    """Can a linear reader, fitted on the first positions, read the later ones?"""

    title = "The position read from its vector"
    size = (9, 4.2)
    controls = [
        Steps("trained", 64, 768, step=64, default=512, unit="tokens", label="trained length"),
        Steps("dim", 16, 256, step=16, default=128, unit="features", label="width d"),
        PowersOfTen("penalty", -6, 1, default=-3, step=0.5, label="penalty on large weights"),
    ]

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(
            xlim=(0, 1024),
            ylim=(-250, 1100),
            xlabel="true position",
            ylabel="position read",
            xticks=range(0, 1025, 128),
        )
        axes.plot([0, 1024], [0, 1024], **style.reference, label="right")
        (self.read,) = axes.plot([], [], **style.line(0), label="read")
        self.edge = axes.axvline(0, color=style.COLORS[1], linewidth=3, label="end of training")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderpad=0)

    def update(self, trained, dim, penalty):
        k = np.arange(1024)
        table = sinusoidal(k, dim)
        seen = table[:trained]
        weights = np.linalg.solve(seen.T @ seen + penalty * np.eye(dim), seen.T @ k[:trained])
        read = table @ weights
        self.read.set_data(k, read)
        self.edge.set_xdata([trained] * 2)
        inside, beyond = (
            np.sqrt(np.mean((read - k)[part] ** 2)) for part in (slice(trained), slice(trained, trained + 128))
        )
        return (
            f"Fitted on positions 0 to {trained - 1}, d = {dim}, penalty {penalty:.2g}: the root-mean-square error is {inside:.3f} tokens "
            f"there and {beyond:.0f} on the next 128 positions. Position 1,023 is read as {read[-1]:,.0f}."
        )


def _edge(line):
    """A line that shows on dark and on bright cells: black with white dashes."""
    return [line(0, color="black", linewidth=3.5), line(0, color="white", linewidth=2, linestyle=(0, (3, 3)))]


@cache
def _cosines(table):
    """Cosine of every two of the first 128 rows of a table, (128, 128)."""
    if table == "sinusoidal":
        rows = sinusoidal(range(128), 64)
    elif table == "MiniLM":
        rows = lab.minilm()[:128].astype(float)
    else:
        file = Path(lab.__file__).with_name("checkpoints") / "learned.safetensors"
        rows = load_file(file)["encoding.table"].astype(float)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T
    cosines.setflags(write=False)
    return cosines


def _score(vectors, table, draw):
    """Score of the query at position 0 with the key at each position of the table."""
    dim = table.shape[1]
    random = np.random.RandomState(draw)  # this generator's numbers are the same in every NumPy
    if vectors == "projected":
        w_q, w_k = random.normal(size=(2, dim, dim)) / np.sqrt(dim)
        return table @ w_k @ (table[0] @ w_q)
    q, k = random.normal(size=(2, dim))
    return (table + (q if vectors == "identical" else k)) @ (q + table[0])


def _start():
    """The table before training and the fixed matrix that matches queries with keys."""
    random = np.random.RandomState(0)
    return 0.1 * random.normal(size=(ROWS, WIDTH)), random.normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)


def _matching():
    return _start()[1]


@cache
def _learning(trained):
    """The table after 0, 5, ... 100 steps of gradient descent on texts of `trained` tokens: (21, ROWS, WIDTH)."""
    table, match = _start()
    previous = np.eye(trained, k=-1)
    history = [table.copy()]
    for step in range(1, 101):
        seen = table[:trained]
        error = (softmax(seen @ match @ seen.T, mask=np.tri(trained, dtype=bool)) - previous) / (trained - 1)
        error[0] = 0  # position 0 has no previous token
        table[:trained] -= error @ seen @ match.T + error.T @ seen @ match
        if step % 5 == 0:
            history.append(table.copy())
    history = np.array(history)
    history.setflags(write=False)
    return history
