"""The pictures of chapter 5: a turning pair, dials, the matrix, the score by distance and over an image,
the angles seen, the cost."""

import numpy as np

from posviz import rope_frequencies, rope_matrix, style
from posviz.live import Choice, PowersOfTen, Range, Steps, Toggle, View
from posviz.views.parts import (
    Letters,
    curve,
    decimal,
    heat_map,
    measured,
    number_sides,
    outside_legend,
    points,
    sentence_case,
    sides,
    strokes,
)

TURN = 2 * np.pi
BAR = {"linestyle": "-", "linewidth": 5, "solid_capstyle": "butt"}  # flat ends: its length can be read

HEADS, KEY_HEADS, HEAD_DIM = 32, 8, 128  # of q and of k in one layer of LLaMA-3-8B, as `RopeAtScale` counts them
PASSES = {"measured, forward": "forward", "measured, with backward": "forward and backward"}  # what is timed
LEAST = "least possible"
# How often a number crosses the memory bus in a forward pass if no cache keeps it between two operations. Textbook:
# x·cos: in, out. −x2: half in, half out. Joining the halves: in, out. Times sin: in, out. Sum: two in, one out.
MOVES = {"fused": 2, "textbook formula": 10, "complex numbers": 2, LEAST: 2}


class TurningPair(View):
    """Which part of the two positions does the score see? The query starts at (1, 0), the key at (0.6, 0.8)."""

    title = "A query and a key turn with their positions"
    size = (9, 4)
    controls = [
        Steps("m", 0, 40, default=3, unit="tokens", label="query position m"),
        Steps("n", 0, 40, default=1, unit="tokens", label="key position n"),
        Range("theta", 0.0, 1.0, 0.05, default=0.3, unit="radians a token", label="frequency θ"),
        Toggle("together", label="move m and n together"),
    ]
    story = {"together": (), "m": ()}

    def draw(self, figure):
        circle, by_distance = figure.subplots(1, 2, width_ratios=[2, 3])
        rim = np.linspace(0, TURN, 181)
        circle.plot(np.cos(rim), np.sin(rim), **style.reference)
        circle.set(xlim=(-1.4, 1.4), xticks=[-1, 0, 1], xlabel="first feature", aspect="equal")
        circle.set(ylim=(-1.2, 1.6), yticks=[-1, 0, 1], ylabel="second feature")
        for x, y in [(1, 0), (0.6, 0.8)]:  # where the two start
            circle.plot([0, x], [0, y], **style.reference | {"linestyle": "-"}, marker="o", markevery=[1], markersize=5)
        self.angle_between = curve(circle, 4)
        self.key = curve(circle, 1, marker="s", markevery=[1], markersize=8, label="key")
        ring = {"markersize": 15, "fillstyle": "none", "markeredgewidth": 2}  # the key is seen in it
        self.query = curve(circle, 0, marker="o", markevery=[1], **ring, label="query")
        circle.legend(loc="upper center", ncols=2, frameon=False, columnspacing=1.0, borderaxespad=0, reverse=True)
        by_distance.axhline(0, **style.reference)
        by_distance.axvline(0, **style.reference)
        by_distance.set(xlim=(42, -42), xlabel="distance m − n (past on the left)")
        by_distance.set(ylim=(-1.12, 1.12), yticks=[-1, -0.5, 0, 0.5, 1], ylabel="score q · k")
        self.score = curve(by_distance, 0, linewidth=1.6)
        self.here = points(by_distance, 3, markersize=10)

    def update(self, m, n, theta, together):
        start = np.arctan2(0.8, 0.6)  # where the key points before any turn
        query, key = m * theta, start + n * theta
        between = np.linspace(key, key + (query - key + np.pi) % TURN - np.pi, 60)  # the short way round
        distance = np.linspace(-40, 40, 1201)
        score = np.cos(query - key)
        self.query.set_data([0, np.cos(query)], [0, np.sin(query)])
        self.key.set_data([0, np.cos(key)], [0, np.sin(key)])
        self.angle_between.set_data(0.3 * np.cos(between), 0.3 * np.sin(between))
        self.score.set_data(distance, np.cos(distance * theta - start))
        self.here.set_data([m - n], [score])
        turned = f"Query at {m} (turned by {query:.2f} rad), key at {n} (by {n * theta:.2f})"
        if together:
            return f"{turned}. They move together: the distance stays {m - n}, so the score stays {score:+.3f}."
        return f"{turned}: at distance {m - n} and frequency {theta:.2f} the score is {score:+.3f}."

    def coupled(self, moved, before, values):
        """Together, the other position moves by as much; both stop where the first of them meets its end."""
        if not values["together"] or moved not in ("m", "n"):
            return {}
        other = "n" if moved == "m" else "m"
        step = min(max(values[moved] - before, -values[other]), 40 - values[other])
        return {moved: before + step, other: values[other] + step}


class ClockWall(View):
    """How fast does each pair turn? Every dial is one pair; its hand stands at (position × frequency)."""

    title = "All pairs of a head as dials"
    size = (9, 3.2)
    controls = [
        Steps("position", 0, 4096, default=100, unit="tokens"),
        Steps("dim", 8, 128, step=8, default=128, unit="features", label="head dimension d"),
        PowersOfTen("base", 2, 7, default=4),
    ]
    story = {"position": (1000, 2048), "base": (1e6,)}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(
            xlim=(-0.6, 16),
            ylim=(0, 4),
            aspect="equal",
            title="One dial a pair; left, the number of the first in its row",
        )
        axes.axis("off")
        (self.rims,) = axes.plot([], [], **style.reference | {"linestyle": "-"})
        self.round = curve(axes, 4, linewidth=2.6, label="has come round")
        self.arcs = curve(axes, 1, **BAR, label="turned so far, not yet round")
        self.hands = curve(axes, 0, linewidth=2.4, label="hand")
        self.numbers = Letters(axes)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, columnspacing=1.2)

    def update(self, position, dim, base):
        angles = position * rope_frequencies(dim, base)
        pitch, columns = _grid(len(angles))
        row, column = np.divmod(np.arange(len(angles)), columns)
        x, y = (column + 0.5) * pitch, 4 - (row + 0.5) * pitch
        first = np.arange(0, len(angles), columns)
        self.numbers.show(first.astype(str), np.full(len(first), -0.35), y[first])
        done = angles >= TURN
        self.rims.set_data(_arcs(x, y, 0.42 * pitch, np.full(len(angles), TURN)))
        self.round.set_data(_arcs(x[done], y[done], 0.42 * pitch, np.full(done.sum(), TURN)))
        self.arcs.set_data(_arcs(x[~done], y[~done], 0.42 * pitch, angles[~done]))
        self.hands.set_data(strokes(x, y, x + 0.34 * pitch * np.cos(angles), y + 0.34 * pitch * np.sin(angles)))
        return (
            f"Position {position:,}, base {base:,.0f}: {done.sum()} of {len(angles)} pairs "
            f"{'has' if done.sum() == 1 else 'have'} come round at least once. The fastest has made "
            f"{_turns(angles[0] / TURN)} turns, the slowest {_turns(angles[-1] / TURN)}."
        )


class RotationMatrix(View):
    """What does the matrix of one position look like, and which pairs has it turned?"""

    title = "The rotation matrix of one position"
    size = (9, 4.2)
    controls = [
        Steps("position", 0, 1000, default=5, unit="tokens"),
        Steps("dim", 2, 32, step=2, default=8, unit="features", label="head dimension d"),
        PowersOfTen("base", 2, 7, default=4),
        Choice("layout", ["interleaved", "half"]),
    ]
    story = {"position": (6,), "dim": (32,), "layout": ()}

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        self.matrix = heat_map(left, None, -1, 1)
        left.set(title="the matrix", facecolor="#E3E3E3")  # what is always 0 is left out
        self.sides, self.numbers = sides(left, "feature after", "feature before"), Letters(left)
        figure.colorbar(self.matrix, ax=left, ticks=[-1, 0, 1], label="entry")
        self.angles = points(right, 0)
        right.set(title="turn of each pair", xlim=(-0.5, 15.5), xticks=range(0, 16, 3), xlabel="pair i", axisbelow=True)
        right.set(ylim=(-0.3, TURN + 0.3), ylabel="angle within one turn (rad)")
        right.set_yticks(np.linspace(0, TURN, 5), ["0", "π/2", "π", "3π/2", "2π"])
        right.grid(axis="y", color="#D0D0D0", linewidth=0.8)

    def update(self, position, dim, base, layout):
        matrix = rope_matrix(position, dim, base)
        order = np.arange(dim) if layout == "interleaved" else np.r_[0:dim:2, 1:dim:2]  # evens, then odds
        angles = position * rope_frequencies(dim, base)
        never = rope_matrix(1, dim) == 0  # features of two pairs
        shown = np.ma.masked_array(matrix, never)[order][:, order]
        self.matrix.set_data(shown)
        self.numbers.number_cells(self.matrix, shown)
        number_sides(self.sides, order)
        self.angles.set_data(np.arange(dim // 2), angles % TURN)
        partner = 1 if layout == "interleaved" else dim // 2
        return (
            f"Position {position:,}, base {base:,.0f}, {layout}: {never.sum()} of {never.size} entries are always 0 "
            f"(grey). Feature 0 is turned with feature {partner}, by {angles[0]:,.0f} rad; "
            f"the slowest pair by {decimal(angles[-1])} rad."
        )


class ScoreByDistance(View):
    """Does a RoPE score fade with distance? It depends on q and k."""

    title = "Score against distance"
    size = (9, 4)
    controls = [
        Choice("vectors", ["equal", "random", "aimed at 100"]),
        Steps("dim", 16, 256, step=8, default=128, unit="features", label="head dimension d"),
        PowersOfTen("base", 2, 7, default=4),
    ]
    story = {"vectors": (), "base": ()}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(-15, 1015), xlabel="distance m − n (tokens)")
        axes.set(ylim=(-1.05, 1.35), yticks=[-1, -0.5, 0, 0.5, 1], ylabel="score ÷ largest possible")
        axes.axhline(0, **style.reference)
        self.curve = curve(axes, 0, linewidth=1.6, label="score")
        self.largest = points(axes, 1, markersize=10, label="where it is largest")
        axes.legend(loc="upper right", ncols=2, frameon=False)

    def update(self, vectors, dim, base):
        distance = np.arange(1001)
        frequencies = rope_frequencies(dim, base)
        pairs = _pair_products(vectors, frequencies)
        angles = np.outer(distance, frequencies)  # (distances, pairs)
        score = (np.cos(angles) @ pairs.real - np.sin(angles) @ pairs.imag) / np.abs(pairs).sum()
        top = int(score.argmax())
        self.curve.set_data(distance, score)
        self.largest.set_data([top], [score[top]])
        near, far = np.abs(score[:50]).mean(), np.abs(score[-50:]).mean()
        words = "Vectors aimed at 100" if vectors == "aimed at 100" else f"{vectors.capitalize()} vectors"
        return (
            f"{words}, d = {dim}, base {base:,.0f}: the score is largest at distance {top} ({score[top]:.2f}). "
            f"Its mean size is {near:.2f} over the nearest 50 distances and {far:.2f} over the farthest 50."
        )


class PatchesOfAnImage(View):
    """Which patches of an image are near for RoPE? Equal vectors, 64 pairs; the score goes by three ways to number."""

    title = "Score of every patch of an image for one query"
    size = (9, 4.2)
    controls = [
        Choice("numbers", ["one for a patch", "row and column", "M-RoPE"]),
        Steps("row", 1, 14, default=8, label="row of the query"),
        Steps("column", 0, 15, default=0, label="column of the query"),
        PowersOfTen("base", 2, 6, default=2),
    ]
    story = {"numbers": (), "column": (8,)}

    def draw(self, figure):
        axes = figure.subplots()
        self.scores = heat_map(axes, (16, 16), -1, 1)
        axes.set(xticks=range(0, 16, 3), xlabel="column", yticks=range(0, 16, 3), ylabel="row")
        self.query = points(axes, 3, markersize=9, label="query")
        figure.colorbar(self.scores, ax=axes, ticks=[-1, 0, 1], label="score ÷ largest possible")
        outside_legend(figure, axes, "right upper")

    def update(self, numbers, row, column, base):
        scores = patch_scores(numbers, row, column, base)
        self.scores.set_data(scores)
        self.query.set_data([column], [row])
        return (
            f"{sentence_case(numbers)}, base {base:,.0f}, query in row {row}, column {column}: the patch right below "
            f"it scores {scores[row + 1, column]:.3f}, the last patch of the row above {scores[row - 1, 15]:.3f}."
        )


def patch_scores(numbers, row, column, base):
    """(16, 16): RoPE score of each patch for the query at (row, column), all vectors equal, 1 where nothing turns."""
    down, right = row - np.arange(16)[:, None, None], column - np.arange(16)[:, None]  # distances, query minus key
    pair, frequencies = np.arange(64), rope_frequencies(128, base)
    if numbers == "one for a patch":  # row after row
        distance = 16 * down + right
    elif numbers == "row and column":  # pairs 0, 2, 4 … turn by rows, 1, 3, 5 … by columns
        distance = np.where(pair % 2 == 0, down, right)
    else:  # Qwen2-VL: 16 pairs for the time, which stands still in one image, 24 for rows, 24 for columns
        distance = np.where(pair < 16, 0, np.where(pair < 40, down, right))
    return np.cos(distance * frequencies).mean(axis=-1)


class AnglesSeen(View):
    """Which angles does a longer text ask for that training never showed? A head of 128 features, 64 pairs."""

    title = "Angles seen in training, angles met in use"
    size = (9, 4.2)
    controls = [
        Steps("trained", 512, 8192, step=512, default=2048, unit="tokens", label="trained length"),
        Steps("used", 512, 32768, step=512, default=2048, unit="tokens", label="used length"),
        PowersOfTen("base", 3, 7, default=4),
    ]
    story = {"used": (2560, 8192), "base": (1e6,)}

    def draw(self, figure):
        axes = figure.subplots()
        axes.set(xlim=(-1, 64), xlabel="pair i (0 is the fastest)")
        axes.set(ylim=(-0.04, 1.2), ylabel="part of the circle reached")
        axes.axhline(1, **style.reference)
        self.unseen = curve(axes, 1, **BAR, label="never seen in training")
        self.used = points(axes, 1, markersize=6, label="in use")
        self.trained = points(axes, 0, markersize=6, label="in training")
        axes.legend(loc="upper center", ncols=3, frameon=False, borderaxespad=0.2, reverse=True)

    def update(self, trained, used, base):
        pair, frequencies = np.arange(64), rope_frequencies(128, base)
        before, now = ((length - 1) * frequencies for length in (trained, used))  # largest angle of each pair (rad)
        seen, met = np.minimum(before / TURN, 1), np.minimum(now / TURN, 1)
        new = met > seen
        self.trained.set_data(pair, seen)
        self.used.set_data(pair, met)
        self.unseen.set_data(strokes(pair[new], seen[new], pair[new], met[new]))
        if used <= trained:
            short = np.sum(before < TURN)
            return (
                f"Trained on {trained:,} tokens, base {base:,.0f}: {short} of 64 pairs have not come round. "
                f"Used on {used:,}, no pair meets a new angle. In a longer text, which pairs will?"
            )
        return (
            f"Trained on {trained:,} tokens, used on {used:,}, base {base:,.0f}: {new.sum()} of 64 pairs "
            f"{'meets' if new.sum() == 1 else 'meet'} angles never seen in training. "
            f"The slowest saw up to {decimal(before[-1])} rad and now reaches {decimal(now[-1])} rad."
        )


class RopeAtScale(View):
    """Why does RoPE cost what it costs? Bytes counted, and times if there are some: `posviz.bench.rope_at_scale`.

    exponents: the lengths of text, as powers of two. times: {a key of PASSES: {way: {length: (milliseconds, share of a
    copy's speed)}}}; the way "least possible" is the copy, and lengths are missing for which memory ran out.
    where: the words that open a sentence about times.
    """

    title = "What a rotation of q and k costs"
    size = (9, 4.2)

    def __init__(self, exponents=range(10, 18), times=None, where=""):
        self.tables = {"counted": counted_bytes([2**n for n in exponents])} | (times or {})
        self.where = where
        slider = Steps("exponent", exponents[0], exponents[-1], default=10, label="positions, 2 to the power of")
        self.controls = [Choice("show", list(self.tables)), slider] if times else [slider]

    def draw(self, figure):
        self.axes = cost, share = figure.subplots(1, 2)
        lengths = list(self.tables["counted"][LEAST])
        for axes in (cost, share):
            axes.set_xscale("log", base=2)
            axes.set(xlim=(lengths[0] / 2**0.3, lengths[-1] * 2**0.3), xlabel="positions in the text")
            axes.set_xticks(lengths, [f"{n // 1024}k" if n >= 1024 else f"{n}" for n in lengths])
            axes.yaxis.set_label_coords(-0.22, 0.5)  # stays put when tick labels get wider
        cost.set_yscale("log")
        share.set(ylim=(0, 1.15), yticks=[0, 0.25, 0.5, 0.75, 1], yticklabels=["0 %", "25 %", "50 %", "75 %", "100 %"])
        share.axhline(1, **style.reference)
        self.here = [axes.axvline(lengths[0], **style.reference) for axes in (cost, share)]
        self.curves = {
            way: [measured(axes, i, markersize=12 - 3 * i, label=way) for axes in (cost, share)]  # seen where they meet
            for i, way in enumerate(("fused", "textbook formula", "complex numbers"))
        }
        self.curves[LEAST] = cost.plot([], [], color="#6E6E6E", linewidth=1.5, label=LEAST)
        outside_legend(figure, cost, "upper center", ncols=4)

    def update(self, exponent, show="counted"):
        table, length, counted = self.tables[show], 2**exponent, show == "counted"
        names = (
            ("MiB moved (float32)", "least possible ÷ moved")
            if counted
            else ("milliseconds", "share of a copy's speed")
        )
        for axes, name in zip(self.axes, names):
            axes.yaxis.label.set_text(name)  # part of its axis, and so drawn anew only when it changes
        for way, curves in self.curves.items():
            values = table.get(way, {})
            for column, line in enumerate(curves):
                line.set_data(list(values), [pair[column] for pair in values.values()])
        for line in self.here:
            line.set_xdata([length, length])
        costs = [value for values in table.values() for value, _ in values.values()] or [1]  # not one length fitted
        most = max((share for values in table.values() for _, share in values.values()), default=1)
        for axes, limits in zip(self.axes, ((min(costs) / 1.5, max(costs) * 1.5), (0, max(1.15, 1.05 * most)))):
            if axes.get_ylim() != limits:
                axes.set_ylim(limits)
        return self._bytes_in_words(length) if counted else self._times_in_words(length, show)

    def _bytes_in_words(self, length):
        moved = {way: values[length][0] for way, values in self.tables["counted"].items()}  # MiB
        return (
            f"At {length:,} positions q and k of one layer hold {moved[LEAST] / 2:,.6g} MiB. "
            f"Fused, {moved['fused']:,.6g} MiB pass between memory and processor; the textbook formula, "
            f"with what it stores on the way, moves {moved['textbook formula']:,.6g} MiB."
        )

    def _times_in_words(self, length, show):
        fused, textbook = (self.tables[show].get(way, {}) for way in ("fused", "textbook formula"))
        state = f"{self.where}: {length:,} positions, {PASSES[show]}"
        if length not in fused:
            return f"{state}: memory ran out, so nothing was measured from here on."
        took, share = fused[length]
        return (
            f"{state}: fused {took:.3g} ms, {textbook[length][0] / took:.1f} times as fast as the textbook formula, "
            f"at {share:.0%} of a copy's speed."
        )


def counted_bytes(lengths):
    """{way: {length: (MiB moved in a forward pass of float32, least possible ÷ that)}}."""
    size = {length: (HEADS + KEY_HEADS) * length * HEAD_DIM * 4 / 2**20 for length in lengths}
    return {way: {n: (moves * size[n], MOVES[LEAST] / moves) for n in lengths} for way, moves in MOVES.items()}


def _grid(dials):
    """(side of one cell, columns) that makes `dials` cells largest in a field 16 wide and 4 high."""
    return max((min(16 / -(-dials // rows), 4 / rows), -(-dials // rows)) for rows in range(1, 9))


def _arcs(x, y, radius, angles):
    """x and y data of one line that draws an arc from 0 to each angle round each centre, with gaps between."""
    steps = angles[:, None] * np.append(np.linspace(0, 1, 41), np.nan)  # (dials, 42): a line ends where its data is nan
    return (x[:, None] + radius * np.cos(steps)).ravel(), (y[:, None] + radius * np.sin(steps)).ravel()


def _turns(turns):
    """A number of turns in words: all of its tenths if there are many, two digits if it is small."""
    return f"{turns:,.1f}" if turns >= 10 else decimal(turns, 2)


def _pair_products(vectors, frequencies):
    """q times the conjugate of k, pair by pair, before any turn: complex of shape (pairs,)."""
    if vectors == "equal":
        return np.ones(len(frequencies), complex)
    if vectors == "aimed at 100":
        return np.exp(-100j * frequencies)
    q, k = np.random.RandomState(5).normal(size=(2, 256))[:, : 2 * len(frequencies)]
    return (q[0::2] + 1j * q[1::2]) * (k[0::2] - 1j * k[1::2])
