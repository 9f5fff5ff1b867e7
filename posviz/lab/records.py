"""Moves to posviz.lab.results."""

from posviz.lab.results import minilm, results, smollm2  # noqa: F401


def find(encoding, change=None, seed=1):
    """The one row of results() for this model and change."""
    for row in results()["rows"]:
        if (row["encoding"], row["change"], row["seed"]) == (encoding, change, seed):
            return row
    raise KeyError(f"no recorded measurement of {encoding!r} with change {change!r} and seed {seed}")
