"""The pictures of chapter 3: learned tables, the sinusoidal table and its waves, decay by distance, a linear reader."""

from functools import cache

import numpy as np

from posviz import rope_frequencies, sinusoidal, softmax, style, wavelengths
from posviz.lab.results import learned_table, minilm
from posviz.live import Choice, PowersOfTen, Steps, View
from posviz.views.parts import EndNames, curve, decimal, heat_map, points, sentence_case, strokes, weight_bar

ROWS, WIDTH = 24, 16  # the small learned table: positions, features
TABLES = {
    "untrained": lambda: np.random.RandomState(0).normal(size=(128, 64)),
    "MiniLM": minilm,
    "small model": learned_table,
    "sinusoidal": lambda: sinusoidal(range(128), 64),
}


class TableThatLearns(View):
    """Which rows of a learned table change? Attention by positions alone learns to look one token back."""

    title = "A table of positions while it learns"
    size = (9, 4.4)
    controls = [
        Steps("step", 0, 100, step=5, label="training step"),
        Steps("trained", 4, ROWS, step=4, default=16, unit="tokens", label="trained length"),
    ]
    story = {"step": (), "trained": ()}

    def draw(self, figure):
        left, right = figure.subplots(1, 2, width_ratios=[2, 3])
        self.table = heat_map(left, (ROWS, WIDTH), -1.5, 1.5, aspect="auto")
        self.weights = heat_map(right, (ROWS, ROWS), 0, 1, aspect="auto")
        left.set(xlabel="feature", ylabel="position", title="the table", xticks=[0, 5, 10, 15])
        right.set(xlabel="position looked at", ylabel="position that looks", title="attention weights")
        for axes in (left, right):
            axes.set_yticks([0, 5, 10, 15, 20])
        figure.colorbar(self.table, ax=left, label="value")
        weight_bar(self.weights)
        self.edges = _edge(left.axhline) + _edge(right.axhline)

    def update(self, step, trained):
        history, match = _learning(trained)
        table, visible = history[step // 5], np.tri(ROWS, dtype=bool)
        weights = softmax(table @ match @ table.T, mask=visible)  # (query, key)
        self.table.set_data(table)
        self.weights.set_data(np.where(visible, np.sqrt(weights), np.nan))
        for edge in self.edges:
            edge.set_ydata([trained - 0.5] * 2)
        back = np.diagonal(weights, -1)  # on the previous token, at positions 1, 2, ...
        inside, beyond = back[: trained - 1].mean(), back[trained - 1 :]
        text = f"Step {step}, texts of {trained} tokens: mean weight on the previous token {inside:.2f}"
        text += f" at positions 1 to {trained - 1}"
        if step == 0:
            return f"{text}. All rows are small random vectors, as yet. Which will change in training?"
        if not len(beyond):
            return f"{text}. Every row of the table has been trained."
        return f"{text}, and {beyond.mean():.2f} from position {trained} on, where no row has moved."


@cache
def _learning(trained):
    """Attention by positions alone, taught by gradient descent on texts of `trained` tokens to look one token back.

    Returns the table after 0, 5, ... 100 steps, (21, ROWS, WIDTH), and the fixed matrix that matches queries with keys.
    """
    random = np.random.RandomState(0)  # this generator's numbers are the same in every NumPy
    table, match = 0.1 * random.normal(size=(ROWS, WIDTH)), random.normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)
    history = [table.copy()]
    for step in range(1, 101):
        seen = table[:trained]
        weights = softmax(seen @ match @ seen.T, mask=np.tri(trained, dtype=bool))
        error = (weights - np.eye(trained, k=-1)) / (trained - 1)  # gradient of the mean cross-entropy by the scores
        error[0] = 0  # position 0 has no previous token
        table[:trained] -= error @ seen @ match.T + error.T @ seen @ match
        if step % 5 == 0:
            history.append(table.copy())
    history = np.array(history)
    for array in (history, match):
        array.setflags(write=False)
    return history, match


class AlikeRows(View):
    """Which rows of a table are alike? A cosine of 1 is the same direction, 0 a right angle, −1 the opposite."""

    title = "Which rows of a position table are alike"
    size = (9, 4.2)
    controls = [Choice("table", TABLES), Steps("row", 0, 127, default=60, label="position of the row")]
    story = {"table": (), "row": ()}

    def draw(self, figure):
        left, right = figure.subplots(1, 2, width_ratios=[2, 3])
        self.cosines = heat_map(left, (128, 128), -1, 1)
        self.edges = _edge(left.axhline)
        left.set(xlabel="position", ylabel="position of the row", xticks=[0, 64, 127], yticks=[0, 64, 127])
        figure.colorbar(self.cosines, ax=left, ticks=[-1, 0, 1], label="cosine")
        right.set(xlim=(-2, 129), ylim=(-1.1, 1.1), xlabel="position", ylabel="cosine with the row", yticks=[-1, 0, 1])
        right.axhline(0, **style.reference)
        self.curve = curve(right, 0, linewidth=1.6)
        self.itself = points(right, 1)

    def update(self, table, row):
        cosines = _cosines(table)
        self.cosines.set_data(cosines)
        self.curve.set_data(np.arange(128), cosines[row])
        self.itself.set_data([row], [1])
        for edge in self.edges:
            edge.set_ydata([row] * 2)
        others = np.where(np.arange(128) == row, -2, cosines[row])
        means = ", ".join(f"{round(np.diagonal(cosines, distance).mean(), 2) + 0.0:.2f}" for distance in (1, 8, 64))
        asks = " Will training make neighbours alike?" if table == "untrained" else ""
        return (
            f"{sentence_case(table)}: the row most like row {row} is row {others.argmax()} "
            f"(cosine {others.max():.2f}). Mean cosine of rows 1, 8 and 64 apart: {means}.{asks}"
        )


@cache
def _cosines(table):
    """Cosine of every two of the first 128 rows of a table, (128, 128), read-only."""
    rows = TABLES[table]()[:128].astype(float)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T
    cosines.setflags(write=False)
    return cosines


class SinusoidalTable(View):
    """What does the whole table look like? Every column is one position, every line one feature."""

    title = "The sinusoidal table"
    size = (9, 4.2)
    controls = [
        Steps("positions", 16, 128, step=16, default=128, unit="tokens"),
        Steps("dim", 8, 128, step=8, default=128, unit="features", label="width d"),
        PowersOfTen("base", 1, 6, default=4),
        Choice("layout", ["interleaved", "concatenated"]),
    ]
    story = {"layout": (), "base": ()}

    def draw(self, figure):
        axes = figure.subplots()
        look = {"aspect": "auto", "cmap": style.SEQUENTIAL}  # its fine stripes read in grey
        self.table = heat_map(axes, (2, 2), -1, 1, **look)
        axes.set(xlabel="position m", ylabel="feature")
        axes.locator_params(nbins=4)  # drawn anew when the table's size changes: each tick takes half a millisecond
        figure.colorbar(self.table, ax=axes, ticks=[-1, 0, 1], label="value")

    def update(self, positions, dim, base, layout):
        extent = (-0.5, positions - 0.5, dim - 0.5, -0.5)
        if tuple(self.table.get_extent()) != extent:  # setting it would draw the axes anew
            self.table.set_extent(extent)
        self.table.set_data(sinusoidal(range(positions), dim, base, layout).T)
        waves = wavelengths(dim, base)
        slow = int((waves > positions).sum())
        second = 1 if layout == "interleaved" else dim // 2
        return (
            f"{positions} positions, {dim} features, base {base:,.0f}: the fastest pair, features 0 and {second}, "
            f"repeats every {waves[0]:.2f} tokens; {slow} of {dim // 2} pairs {'does' if slow == 1 else 'do'} not "
            f"finish one wave."
        )


class OneComponent(View):
    """How long is the wave of one feature? Its partner in the pair is a quarter of a wave ahead or behind."""

    title = "One feature along the text"
    size = (9, 3.6)
    controls = [
        Steps("component", 0, 127, default=8, label="feature"),
        Steps("dim", 8, 128, step=8, default=128, unit="features", label="width d"),
        PowersOfTen("base", 1, 6, default=4),
        Steps("length", 16, 64, step=16, default=64, unit="tokens", label="text length"),
    ]
    story = {"component": (9, 34)}

    def coupled(self, moved, before, values):
        """A feature beyond the last widens the table; a narrower table shows its last one and remembers yours."""
        least = 8 * (values["component"] // 8 + 1)
        return {"dim": max(least, values["dim"])} if moved == "component" else {}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(ylim=(-1.15, 1.15), xlabel="position m", ylabel="value", yticks=[-1, 0, 1])
        axes.locator_params(axis="x", nbins=4)  # few ticks, as the axis is drawn anew with every text length
        axes.axhline(0, **style.reference)
        self.partner = curve(axes, 1, linewidth=1.4)
        self.wave = curve(axes, 0, linewidth=1.6)
        self.tokens = points(axes, 0, markersize=5)
        self.names = EndNames(axes, "feature 127")

    def update(self, component, dim, base, length):
        component = min(component, dim - 1)
        pair, is_cosine = divmod(component, 2)
        frequency = rope_frequencies(dim, base)[pair]
        wave, partner = (np.cos, np.sin) if is_cosine else (np.sin, np.cos)
        m, tokens = np.linspace(0, length, 1601), np.arange(length + 1)
        if self.wave.axes.get_xlim() != (0, length):  # setting it would draw the axes anew
            self.wave.axes.set_xlim(0, length)
        self.wave.set_data(m, wave(m * frequency))
        self.partner.set_data(m, partner(m * frequency))
        self.tokens.set_data(tokens, wave(tokens * frequency))
        self.names.follow({f"feature {component}": self.wave, f"feature {component ^ 1}": self.partner})
        wavelength = 2 * np.pi / frequency
        return (
            f"Feature {component} of {dim} is the {'cosine' if is_cosine else 'sine'} of pair {pair}: "
            f"θ = {decimal(frequency)} rad a token, wavelength 2π/θ = {wavelength:,.1f} tokens, "
            f"{decimal(length / wavelength)} waves in {length} tokens."
        )


class BinaryClock(View):
    """Is the table a smooth binary number? Seven digits of each position, seven sines, and the steps of both."""

    title = "Binary digits and sines"
    size = (9, 5.2)
    controls = [Steps("position", 0, 126, unit="tokens"), Choice("base", [128, 10_000])]
    story = {"position": (64, 65), "base": ()}

    def draw(self, figure):
        above, below, steps = figure.subplots(3, 1, sharex=True)
        digits = heat_map(above, (7, 128), 0, 1, aspect="auto")
        digits.set_data(np.arange(128) >> np.arange(7)[:, None] & 1)  # the ones in the first row
        self.sines = heat_map(below, (7, 128), -1, 1, aspect="auto", cmap=style.SEQUENTIAL)  # dark to bright, as above
        above.set(ylabel="digit", yticks=[0, 6], yticklabels=["ones", "64s"])
        below.set(ylabel="sine of pair", yticks=[0, 6])
        steps.set(ylim=(0, 7.5), yticks=[0, 7], ylabel="step", xlabel="position m", xticks=[0, 32, 64, 96, 127])
        self.flips, self.moves = curve(steps, 4, linewidth=2), curve(steps, 1, linestyle="-")
        steps.set_title("bars: digits that change; line: length of the vector's step")
        self.edges = _edge(above.axvline) + _edge(below.axvline)

    def update(self, position, base):
        table = sinusoidal(range(128), 14, base)
        self.sines.set_data(table[:, 0::2].T)
        for edge in self.edges:
            edge.set_xdata([position + 0.5] * 2)
        steps = np.arange(position + 1)  # all up to this one
        flips = np.array([(step ^ (step + 1)).bit_count() for step in range(position + 1)])
        moves = np.linalg.norm(np.diff(table[: position + 2], axis=0), axis=1)
        self.flips.set_data(*strokes(steps + 0.5, 0, steps + 0.5, flips))
        self.moves.set_data(steps + 0.5, moves)
        flipped, moved = int(flips[-1]), moves[-1]
        return (
            f"From position {position} ({position:07b}) to {position + 1} ({position + 1:07b}): {flipped} of 7 digits "
            f"change{'s' * (flipped == 1)}. With base {base:,} the vector of sines and cosines moves by {moved:.3f}."
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
    story = {"vectors": (), "draw": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(0, 512), ylim=(-2.4, 1.2), xlabel="distance (tokens)", ylabel="change from 0, ÷ d/2")
        axes.axhline(0, **style.reference)
        self.alone, self.score = curve(axes, 1, linewidth=1.6), curve(axes, 0, linewidth=1.6)
        self.names = EndNames(axes, "positions alone")

    def update(self, vectors, draw, dim, base):
        distance = np.arange(513)
        table = sinusoidal(distance, dim, base)
        score, alone = _score(vectors, table, draw), table @ table[0]
        self.score.set_data(distance, (score - score[0]) / (dim / 2))
        self.alone.set_data(distance, (alone - alone[0]) / (dim / 2))
        self.names.follow({"positions alone": self.alone, "these vectors": self.score})
        rises = (np.diff(score) > 0).mean()
        alike = np.corrcoef(score, alone)[0, 1]
        return (
            f"{vectors.capitalize()} vectors, draw {draw}, d = {dim}, base {base:,.0f}: the score is {score[0]:.1f} at "
            f"distance 0 and {score[500]:.1f} at 500; {rises:.0%} of the steps go up. Correlation with the positions "
            f"alone: {alike:.2f}."
        )


def _score(vectors, table, draw):
    """Score (positions,) of the query at position 0 with the key at each position of the table (positions, dim)."""
    dim = table.shape[1]
    random = np.random.RandomState(draw)  # this generator's numbers are the same in every NumPy
    if vectors == "projected":
        w_q, w_k = random.normal(size=(2, dim, dim)) / np.sqrt(dim)
        return table @ w_k @ (table[0] @ w_q)
    q, k = random.normal(size=(2, dim))
    return (table + (q if vectors == "identical" else k)) @ (q + table[0])


class ReadThePosition(View):
    """Can a linear reader, fitted on the first positions, read the later ones?"""

    title = "The position read from its vector"
    size = (9, 4.2)
    controls = [
        Steps("trained", 64, 768, step=64, default=512, unit="tokens", label="trained length"),
        Steps("used", 64, 1024, step=64, default=512, unit="tokens", label="read up to"),
        Steps("dim", 16, 256, step=16, default=128, unit="features", label="width d"),
        PowersOfTen("penalty", -6, 1, default=-3, label="penalty on large weights"),
    ]
    story = {"used": (), "trained": (), "penalty": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(0, 1024), xticks=range(0, 1025, 128), xlabel="true position")
        axes.set(ylim=(-250, 1100), ylabel="position read")
        (self.right,) = axes.plot([0, 1024], [0, 1024], **style.reference)
        self.read = curve(axes, 0)
        self.edge = axes.axvline(0, color=style.COLORS[1], linewidth=3, label="end of training")
        axes.legend(loc="upper left", frameon=False)
        self.names = EndNames(axes, "right")

    def update(self, trained, used, dim, penalty):
        positions = np.arange(1024)
        table = sinusoidal(positions, dim)
        seen = table[:trained]
        weights = np.linalg.solve(seen.T @ seen + penalty * np.eye(dim), seen.T @ positions[:trained])
        read = table @ weights
        self.read.set_data(positions[:used], read[:used])
        self.names.follow({"right": self.right, "read": self.read})
        self.edge.set_xdata([trained] * 2)
        inside, beyond = (read[:trained] - positions[:trained]), (read[trained:used] - positions[trained:used])
        fitted = f"Fitted on positions 0 to {trained - 1}, d = {dim}, penalty {decimal(penalty)}: the root-mean-square"
        fitted += f" error is {np.sqrt(np.mean(inside**2)):.3f} tokens there"
        if used <= trained:
            return f"{fitted}. How will the next positions be read?"
        return (
            f"{fitted} and {np.sqrt(np.mean(beyond**2)):.0f} from there to {used - 1:,}. "
            f"Position {used - 1:,} is read as {read[used - 1]:,.0f}."
        )


def _edge(line):
    """A line that shows on dark and on bright cells: black with white dashes."""
    return [line(0, color="black", linewidth=3.5), line(0, color="white", linewidth=2, linestyle=(0, (3, 3)))]
