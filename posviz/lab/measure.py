"""Measurements on trained models, all on the same frozen texts. Each takes a model and a change (see changes.py)."""

import contextlib

import numpy as np
import torch
from torch.nn import functional

from posviz._arguments import count
from posviz.lab import data
from posviz.lab.changes import changed
from posviz.lab.model import as_shipped
from posviz.lab.progress import Progress

BATCH = 4  # texts read at once: larger ones are no faster and take more memory


@as_shipped
def loss_by_context(model, lengths, change=None):
    """Loss on the same last 64 bytes of 32 texts, with more and more text before them.

    lengths: bytes the model reads, 64 … 1024. Returns nats a byte, float64 of shape (lengths, 32): each column is one
    text, so two rows can be compared text by text. Raises IndexError for a learned table that is too short and has
    no change, ValueError for a change that does not fit the encoding.
    """
    lengths = [count(length, "length", least=data.TAIL) for length in lengths]
    result = np.empty((len(lengths), data.CROPS))
    with _progress("loss by context", lengths) as step:
        for row, length in enumerate(lengths):
            for begin, tokens, encoding in _batches(model, length, change):
                result[row, begin : begin + BATCH] = _losses(model, tokens, encoding, data.TAIL).mean(axis=1)
                step(length)
    return result


@as_shipped
def loss_by_position(model, length, change=None):
    """Loss at every position of 32 texts of `length` bytes: float64 of shape (32, length), nats a byte."""
    length = count(length, "length", least=data.TAIL)
    result = np.empty((data.CROPS, length))
    with _progress("loss by position", [length]) as step:
        for begin, tokens, encoding in _batches(model, length, change):
            result[begin : begin + BATCH] = _losses(model, tokens, encoding, length)
            step(length)
    return result


@as_shipped
def attention(model, text=None, change=None):
    """Attention weights of one text: float32 of shape (layers, heads, query, key); every row sums to 1.

    text: a str, bytes or a list of tokens, up to 1,024 of them; by default the first 128 bytes of an evaluation text.
    """
    if text is None:
        text = data.crops()[0, :128]
    elif isinstance(text, str):
        text = text.encode()
    tokens = torch.as_tensor(list(text) if not isinstance(text, torch.Tensor) else text)[None]
    n = tokens.shape[1]
    if not 1 <= n <= data.CONTEXT:
        raise ValueError(f"the text must have 1 to {data.CONTEXT} tokens; got {n}")
    _check_tokens(model, tokens)
    shape = model.shape
    result = np.zeros((shape["layers"], shape["heads"], n, n), dtype=np.float32)

    def keep(layer, start, weights):  # (1, heads, queries of a block, keys up to its end)
        result[layer, :, start : start + weights.shape[2], : weights.shape[3]] = weights[0].numpy()

    with torch.inference_mode():
        model(tokens, encoding=changed(model, change, n), watch=keep)
    return result


@as_shipped
def entropy_by_length(model, lengths, change=None, texts=8):
    """Entropy of the attention weights of the last 64 queries, in nats.

    Returns float64 of shape (lengths, layers, heads), the mean over 8 texts. ln n is the most n keys can give.
    """
    lengths = [count(length, "length", least=data.TAIL) for length in lengths]
    result = np.zeros((len(lengths), model.shape["layers"], model.shape["heads"]))
    with _progress("entropy by length", lengths, texts) as step:
        for row, length in enumerate(lengths):
            result[row] = _entropy(model, length, change, texts, step)
    return result


@torch.inference_mode()
def _entropy(model, length, change, texts, step):
    """Entropy at one length, (layers, heads)."""
    result = np.zeros((model.shape["layers"], model.shape["heads"]))
    watch = _Entropy(result, length, slice(None))
    for _, tokens, encoding in _batches(model, length, change, texts):
        # The last block must hold all of the last 64 queries, so it begins where they do.
        model(tokens[:, :-1], encoding=encoding, last=data.TAIL, watch=watch)
        step(length)
    return result / texts


@as_shipped
def recall(model, distances, change=None, texts=24):
    """Share of tokens copied right when the only help is the same text `distance` tokens back.

    A model of the copy task reads random symbols that repeat after `distance` tokens, and is scored on the second
    round. A language model reads a 32-byte piece of an evaluation text, other text, and the same piece again; it is
    scored on the last 24 bytes of it. distances: tokens, 8 … 512 (language models 32 … 960).
    Returns float64 of shape (distances,), each between 0 and 1.
    """
    copying = model.shape["vocabulary"] == data.CopyBatches.vocabulary
    low, high = (8, 512) if copying else (32, 960)
    distances = [count(distance, "distance", least=low) for distance in distances]
    if distances and max(distances) > high:
        raise ValueError(f"distance must be at most {high} for this model; got {max(distances)}")
    result = np.zeros(len(distances))
    with _progress("recall", distances, texts) as step, torch.inference_mode():
        for row, distance in enumerate(distances):
            if copying:
                draw = torch.Generator().manual_seed(distance)
                tokens, scored = data.copies(torch.full((texts, 1), distance), 2 * distance, draw), distance - 1
            else:
                tokens, scored = data.crops()[:texts, -(distance + 32) :], 24
                tokens[:, distance:] = tokens[:, :32]
            encoding = changed(model, change, tokens.shape[1] - 1)
            for begin in range(0, texts, BATCH):
                some = tokens[begin : begin + BATCH]
                guess = model(some[:, :-1], encoding=encoding, last=scored).argmax(dim=-1)
                result[row] += (guess == some[:, -scored:]).float().mean(dim=1).sum().item() / texts
                step(distance)
    return result


@as_shipped
def loss_and_entropy(model, lengths, change=None):
    """What `loss_by_context` and `entropy_by_length` return, read once. lengths: multiples of the block, 128."""
    loss = np.empty((len(lengths), data.CROPS))
    entropy = np.zeros((len(lengths), model.shape["layers"], model.shape["heads"]))
    every = data.CROPS // 8  # of the texts, one in so many
    with _progress("loss and entropy", lengths) as step:
        for row, length in enumerate(lengths):
            for begin, tokens, encoding in _batches(model, length, change):
                watch = _Entropy(entropy[row], length, slice(-begin % every, None, every))
                losses = _losses(model, tokens, encoding, data.TAIL, watch)
                loss[row, begin : begin + BATCH] = losses.mean(axis=1)
                step(length)
    return loss, entropy / 8


class _Entropy:
    """Adds up the entropy of the last 64 queries of some of the texts that a model reads, (layers, heads)."""

    def __init__(self, total, length, texts):
        self.total, self.length, self.texts = total, length, texts

    def __call__(self, layer, start, weights):  # (texts, heads, queries of a block, keys up to its end)
        if start + weights.shape[2] == self.length:  # the block of the last queries
            w = weights[self.texts, :, -data.TAIL :]
            entropy = -torch.xlogy(w, w).sum(dim=-1)  # a weight of 0 counts as 0
            self.total[layer] += entropy.mean(dim=2).sum(dim=0).numpy()


def _batches(model, length, change, number=data.CROPS):
    """Evaluation texts in batches, each with the encoding to read them with."""
    texts = data.crops(length, number=data.CROPS)[:: data.CROPS // number]
    _check_tokens(model, texts)
    encoding = changed(model, change, length)
    for begin in range(0, len(texts), BATCH):
        yield begin, texts[begin : begin + BATCH], encoding


@torch.inference_mode()
def _losses(model, tokens, encoding, last, watch=None):
    """Nats for each of the last so many tokens, float64 (texts, last)."""
    logits = model(tokens[:, :-1], encoding=encoding, last=last, watch=watch)
    wanted = tokens[:, -last:]
    losses = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
    return losses.view(wanted.shape).double().numpy()


def _check_tokens(model, tokens):
    most = model.shape["vocabulary"] - 1
    if tokens.min() < 0 or tokens.max() > most:
        raise ValueError(f"this model reads tokens 0 to {most}; got {int(tokens.min())} to {int(tokens.max())}")


@contextlib.contextmanager
def _progress(title, lengths, texts=data.CROPS):
    """A Progress whose steps are weighted by the length of the text."""
    done = 0
    with Progress(title, sum(lengths) * -(-texts // BATCH)) as bar:

        def step(length):
            nonlocal done
            done += length
            bar.update(done)

        yield step
