"""Four reference pictures of the kinds a course shows, so that live.py and browser.py measure the same everywhere."""

import numpy as np

from posviz.live import Steps, View


class Circle(View):
    """Eight turning arrows beside a curve with a moving dot."""

    title = "reference: circle"
    controls = [Steps("step", 0, 100)]

    def draw(self, figure):
        left, right = figure.subplots(1, 2)
        angle = np.linspace(0, 2 * np.pi, 200)
        left.plot(np.cos(angle), np.sin(angle), color="0.8")
        left.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), aspect="equal", xlabel="x", ylabel="y", title="pairs")
        left.grid(True, alpha=0.3)
        zeros = np.zeros(8)
        self.arrows = left.quiver(
            zeros,
            zeros,
            zeros + 1,
            zeros,
            color=[f"C{k}" for k in range(8)],
            angles="xy",
            scale_units="xy",
            scale=1,
            width=0.012,
        )
        (self.curve,) = right.plot(np.arange(256), np.zeros(256))
        (self.dot,) = right.plot([0], [0], "o")
        right.set(xlim=(0, 255), ylim=(-1.1, 1.1), xlabel="distance", ylabel="score", title="score")
        right.grid(True, alpha=0.3)

    def update(self, step):
        frequency = 10_000.0 ** (-np.arange(8) / 8)
        self.arrows.set_UVC(np.cos(step * frequency), np.sin(step * frequency))
        self.curve.set_ydata(np.cos(np.multiply.outer(np.arange(256) - step, frequency)).mean(axis=1))
        self.dot.set_data([step], [1.0])
        return f"Eight pairs turned to position {step}."


class Sines(View):
    """Eight sine curves of 512 points with a legend."""

    title = "reference: eight sines"
    controls = [Steps("step", 0, 100)]

    def draw(self, figure):
        axes = figure.subplots()
        self.x = np.linspace(0, 100, 512)
        self.curves = [axes.plot(self.x, 0 * self.x, label=f"{2 * k}")[0] for k in range(8)]
        axes.set(xlim=(0, 100), ylim=(-1.1, 1.1), xlabel="position", ylabel="value", title="sinusoids")
        axes.legend(loc="upper right", ncol=4)
        axes.grid(True, alpha=0.3)

    def update(self, step):
        base = 10 + 5 * step
        for k, curve in enumerate(self.curves):
            curve.set_ydata(np.sin(self.x * base ** (-k / 8)))
        return f"Eight sinusoids with base {base}."


class Heat64(View):
    """A bias matrix of 64 × 64 cells with a colour bar."""

    title = "reference: heat map 64"
    size_of = 64
    controls = [Steps("step", 0, 100)]

    def draw(self, figure):
        axes = figure.subplots()
        place = np.arange(self.size_of)
        self.distance = np.abs(np.subtract.outer(place, place)).astype(float)
        self.image = axes.imshow(
            -self.distance, vmin=-self.size_of / 4, vmax=0, cmap="viridis", aspect="auto", interpolation="nearest"
        )
        figure.colorbar(self.image, ax=axes)
        axes.set(xlabel="key", ylabel="query", title="bias")

    def update(self, step):
        self.image.set_data(-self.distance * step / 100)
        return f"A bias of {step / 100:.2f} a token."


class Heat256(Heat64):
    """The same with 256 × 256 cells."""

    title = "reference: heat map 256"
    size_of = 256


REFERENCES = [Circle, Sines, Heat64, Heat256]
