"""The smaller questions that the chapters ask of the language models, one function each, recorded by name and seed.

    python experiments/questions.py                                            every question, with the shipped models
    python experiments/questions.py --question held --folder build/seed2       one, with the second training
    python experiments/questions.py --question copy --seed 2 --write           and into posviz/lab/questions.json

held, parts, far_weight and windows measure finished models, half a minute each. t5_32, copy and longer train models
of their own, about 2, 8 and 4 minutes a seed on one core. Rows that were not measured now stay in the file as they are.
"""

import argparse
import copy
import json
import sys
from dataclasses import dataclass, replace

import numpy as np
import torch

import posviz
from posviz import lab
from posviz.lab import checkpoint, data, encodings, measure
from posviz.lab.changes import Around, Held, changed
from posviz.lab.model import distances
from posviz.lab.progress import Progress
from posviz.lab.results import CHECKPOINTS, DISTANCES, LENGTHS, QUESTIONS, TRAINED
from posviz.lab.training import Run
from stopping import one_line

FAST, SLOW = tuple(range(6)), (6, 7)  # the pairs of a head of 16 by the length of their wave: below and above 128 bytes


def loss(model, encoding=None, lengths=LENGTHS):
    """Mean loss at each of these lengths, nats a byte, with another encoding in place of the model's own."""
    return lab.loss_by_context(model, lengths, encoding).mean(axis=1)


# ------------------------------------------------------------------ finished models


def held(seed, folder):
    """Which angles do harm: RoPE with some pairs held at a distance, silent beyond 127, or all alike faded.

    Values: nats a byte at 128, 256, 512 bytes. A fade of .286 per 128 tokens is the same for every chosen pair.
    """
    model = lab.load("rope", folder=folder)
    e = model.encoding
    yield "as trained", loss(model, None, LENGTHS[:3])
    for words, pairs in (("slow two", SLOW), ("fast six", FAST), ("all", SLOW + FAST)):
        for at in (64, 127):
            yield f"{words} held at {at}", loss(model, Held(e, at, pairs), LENGTHS[:3])
    for words, pairs in (("slow two", SLOW), ("fast six", FAST), ("fastest two", (0, 1))):
        yield f"{words} silent beyond 127", loss(model, Faded(e, pairs, 0.0, beyond=127), LENGTHS[:3])
        yield f"{words} faded", loss(model, Faded(e, pairs, 0.286), LENGTHS[:3])


class Faded(Around):
    """RoPE whose chosen pairs count less: times rate^(distance / 128), or times rate beyond a distance."""

    def __init__(self, inner, pairs, rate, beyond=None):
        super().__init__(inner)
        self.rate, self.beyond = rate, beyond
        self.features = (2 * torch.as_tensor(pairs)[:, None] + torch.arange(2)).flatten()

    def bias(self, q, k, layer):
        distance = distances(q, k).clamp(min=0)
        if self.beyond is None:
            share = self.rate ** (distance / TRAINED)
        else:
            share = torch.where(distance > self.beyond, self.rate, 1.0)
        scores = q[..., self.features] * q.shape[-1] ** -0.5 @ k[..., self.features].transpose(-1, -2)
        return (share - 1) * scores


def parts(seed, folder):
    """Why Transformer-XL and DeBERTa stay flat: one part of the score taken away, or put in place of another.

    Values: nats a byte at LENGTHS. "… of far keys": only beyond a distance of 127, which training never showed.
    """
    model = lab.load("transformer_xl", folder=folder)
    yield "transformer_xl", loss(model)
    terms = ("content_position", "bias_content", "bias_position")
    for i, words in enumerate(("without q·r", "without u·k", "without v·r")):
        yield f"transformer_xl {words}", loss(model, XLParts(model.encoding, terms[:i] + terms[i + 1 :]))
    yield "transformer_xl without q·r and v·r of far keys", loss(model, XLParts(model.encoding, terms, far="none"))
    yield "transformer_xl r of far keys held at 127", loss(model, XLParts(model.encoding, terms, far="held"))
    model = lab.load("deberta", folder=folder)
    yield "deberta", loss(model)
    for words, kept in (("query to position", (1, 0)), ("position to key", (0, 1)), ("both", (0, 0))):
        yield f"deberta without {words}", loss(model, DeBERTaParts(model.encoding, *kept))
    yield "deberta without both for far keys", loss(model, DeBERTaParts(model.encoding, 1, 1, far=False))


class XLParts(Around):
    """Transformer-XL with some of its terms; for keys beyond 127 with all, without r, or with the r of distance 127."""

    def __init__(self, inner, kept, far="all"):
        super().__init__(inner)
        self.kept, self.far = kept, far

    def bias(self, q, k, layer):
        e, (keys, dim) = self.inner, k.shape[-2:]
        row = np.arange(keys - 1, -1, -1)
        row = np.minimum(row, TRAINED - 1) if self.far == "held" else row
        r = torch.as_tensor(posviz.sinusoidal(row, e.width, layout="concatenated"), dtype=q.dtype)
        r = (r @ e.w[layer].T).view(keys, e.heads, dim).transpose(0, 1)
        scale = dim**-0.5
        terms = posviz.transformer_xl_terms(q * scale, k, r, e.u * scale, e.v * scale)
        near = (distances(q, k) < TRAINED).to(q.dtype) if self.far == "none" else 1.0
        zero = torch.zeros(())
        return sum((getattr(terms, name) * (1.0 if name == "bias_content" else near) for name in self.kept), start=zero)


class DeBERTaParts(Around):
    """DeBERTa with one or both of its position terms; far=False leaves them out beyond a distance of 127."""

    def __init__(self, inner, to_position, from_position, far=True):
        super().__init__(inner)
        self.kept, self.far = (to_position, from_position), far

    def bias(self, q, k, layer):
        e, dim, distance = self.inner, q.shape[-1], distances(q, k)
        query_rows, key_rows = ((e.positions @ w[layer].T).view(-1, e.heads, dim).transpose(0, 1) for w in (e.wq, e.wk))
        to_position = e._take(q * dim**-0.5 @ key_rows.transpose(-1, -2), distance)
        from_position = e._take(k @ (query_rows * (3 * dim) ** -0.5).transpose(-1, -2), -distance.T).transpose(-1, -2)
        bias = self.kept[0] * to_position + self.kept[1] * from_position
        return bias if self.far else bias * (distance < TRAINED)


def far_weight(seed, folder):
    """How much weight falls on keys beyond the trained length, and what the loss is with these keys shut out.

    Values of "weight on far keys": share of the weight of the last 64 queries on keys at a distance above 127, mean
    over layers, heads and 8 texts, at 256, 512, 1024 bytes. Values of "without far keys": nats a byte at LENGTHS.
    """
    for name in ("none", "transformer_xl", "t5", "deberta", "rope", "alibi"):
        model = lab.load(name, folder=folder)
        yield f"{name}, weight on far keys", np.array([_far_weight(model, length) for length in LENGTHS[1:]])
        yield f"{name}, without far keys", loss(model, Window(model.encoding))


@torch.inference_mode()
def _far_weight(model, length):
    shares = []

    def add(layer, start, weights):
        if start + weights.shape[2] == length:
            last = weights[:, :, -data.TAIL :]
            far = torch.arange(length - data.TAIL, length)[:, None] - torch.arange(length) >= TRAINED
            shares.append((last * far).sum(dim=-1).mean().item())

    for _, tokens, encoding in measure._batches(model, length, None, number=8):
        model(tokens[:, :-1], encoding=encoding, last=data.TAIL, watch=add)
    return np.mean(shares)


class Window(Around):
    """Another encoding that sees no key beyond a distance of 127."""

    def bias(self, q, k, layer):
        window = torch.where(distances(q, k) < TRAINED, 0.0, -torch.inf)
        bias = self.inner.bias(q, k, layer)
        return window if bias is None else bias + window


def windows(seed, folder):
    """How one evaluates: the same bytes in windows of 128 that do not overlap, and in windows that slide.

    Texts of 1,024 bytes. Values: nats a byte over bytes 128 to 1,023, windows of 128 moved on by 128, 64, 32, 16
    bytes (only the new bytes of each are scored, so each byte counts once).
    """
    for name in ("rope", "alibi"):
        model = lab.load(name, folder=folder)
        yield name, np.array([_windows(model, step) for step in (128, 64, 32, 16)])
        by_position = lab.loss_by_position(model, TRAINED).mean(axis=0)
        yield f"{name}, by place in the window", by_position.reshape(8, -1).mean(axis=1)


def _windows(model, step, texts=16):
    losses = []
    tokens = data.crops(number=data.CROPS)[:: data.CROPS // texts]
    for end in range(TRAINED + step, tokens.shape[1], step):
        losses.append(measure._losses(model, tokens[:, end - TRAINED : end + 1], model.encoding, step))
    return np.concatenate(losses, axis=1).mean()


# ------------------------------------------------------------------ trainings of their own


def t5_32(seed, folder):
    """T5 whose last bucket is well filled in training: it begins at 31 tokens, not at 113. Values: loss at LENGTHS."""
    recipe = lab.RECIPES["text"]
    encoding = encodings.make("t5", seed=seed, base=recipe.base, max_distance=32, **_shape(recipe))
    yield "t5, max distance 32", loss(trained(recipe, encoding, "text", seed, "T5, max distance 32"))


COPY = {  # (encoding, base, heads): what is not the recipe's own is trained here
    "rope, base 100, 2 heads": ("rope", 100.0, 2),
    "rope, base 100, 4 heads": ("rope", 100.0, 4),
    "rope, base 10,000, 4 heads": ("rope", 10_000.0, 4),
    "alibi, 4 heads": ("alibi", 10_000.0, 4),
}


def copying(seed, folder):
    """The copy task fair to all: RoPE's base and the number of heads. Values: share copied right at DISTANCES."""
    for name, (encoding, base, heads) in COPY.items():
        recipe = replace(lab.RECIPES["copy"], base=base, heads=heads)
        yield name, lab.recall(trained(recipe, encoding, "copy", seed, name), DISTANCES)


@dataclass
class Longer:
    """How a finished RoPE model is trained on with texts four times as long, and a model trained long throughout."""

    length: int = 4 * TRAINED
    batch: int = 4  # as many tokens a step as in the first training
    steps: int = 80
    learning_rate: float = 1e-3
    base: float = 500.0  # the larger one; the NTK-aware formula has 488
    throughout: int = 750  # steps from the start that cost as much


def longer(seed, folder):
    """Training a little longer. Values: loss at LENGTHS, each model read with the frequencies it was trained on with.

    Four copies of the finished model get 80 more steps (a tenth) at 512 bytes. "long throughout" has length 512 from
    its first step, with the larger base, and as many steps as cost the same time: 800 / 1.2 + 80.
    """
    plan, recipe = Longer(), lab.RECIPES["text"]
    more = replace(recipe, length=plan.length, batch=plan.batch, steps=plan.steps, learning_rate=plan.learning_rate)
    finished = lab.load("rope", folder=folder)
    base = posviz.rope_frequencies(finished.encoding.dim, plan.base)
    for name, encoding in (
        ("base 100", finished.encoding),
        ("base 500", _turning(finished.encoding, base)),
        ("PI", changed(finished, "pi", plan.length)),
        ("YaRN", changed(finished, "yarn", plan.length)),
    ):
        yield f"{name}, before", loss(finished, encoding)
        model = _copied(finished, encoding)
        yield f"{name}, 80 steps more", loss(_train(Run(model, "text", more, seed), name))
    throughout = replace(recipe, length=plan.length, batch=plan.batch, base=plan.base, steps=plan.throughout)
    yield "long throughout", loss(trained(throughout, "rope", "text", seed, "long throughout"))


def _turning(encoding, frequencies):
    encoding = copy.copy(encoding)
    encoding.frequencies = lambda length: frequencies
    return encoding


def _copied(model, encoding):
    """The same weights, free to be trained on, with another encoding."""
    model = copy.copy(model)
    model.__dict__["_modules"] = {name: copy.deepcopy(part) for name, part in model._modules.items()}
    model.encoding = encoding
    return model


def _shape(recipe):
    return {key: getattr(recipe, key) for key in ("width", "layers", "heads", "length")}


def trained(recipe, encoding, task, seed, title):
    """A model trained as `lab.train` does it, with a recipe of one's own."""
    model = recipe.untrained(encoding, task, seed)
    return _train(Run(model, task, recipe, seed), title)


def _train(run, title):
    with Progress(f"training {title}", run.recipe.steps) as bar:
        while run.step < run.recipe.steps:
            run.advance()
            bar.update(run.step, f"loss {run.losses[-1]:.2f}")
    return run.model.to("cpu").eval().requires_grad_(False)


# ------------------------------------------------------------------ the file

ALL = {
    "held": held,
    "parts": parts,
    "far_weight": far_weight,
    "windows": windows,
    "t5_32": t5_32,
    "copy": copying,
    "longer": longer,
}


@one_line
def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--question", action="append", choices=ALL, help="may be given several times")
    parser.add_argument("--seed", type=int, default=1, help="of the trainings, and of the models in the folder")
    parser.add_argument("--folder", default=CHECKPOINTS, help="finished models (default: the shipped)")
    parser.add_argument("--write", action="store_true", help="also write questions.json")
    options = parser.parse_args(arguments)
    for question in options.question or ALL:
        for name, values in ALL[question](options.seed, options.folder):
            row = {"question": question, "name": name, "seed": options.seed, "values": np.round(values, 4).tolist()}
            print(f"{question:8} {name:45} seed {options.seed}  " + "  ".join(f"{v:.3f}" for v in values), flush=True)
            if options.write:
                write(row)


def write(row):
    """Put one row into questions.json, in place of an older one of the same name and seed."""
    rows = json.loads(QUESTIONS.read_text("utf-8"))["rows"] if QUESTIONS.exists() else []

    def key(row):
        return list(ALL).index(row["question"]), row["seed"]

    rows = [old for old in rows if any(old[part] != row[part] for part in ("question", "name", "seed"))]
    found = {"command": "python experiments/questions.py --write", "torch": torch.__version__}
    found["rows"] = sorted([*rows, row], key=key)
    checkpoint.write(QUESTIONS, (json.dumps(found, indent=1) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
