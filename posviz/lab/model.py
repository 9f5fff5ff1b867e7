"""The small language model of the lab: one plain decoder, in which only the positional encoding is exchanged.

It reads bytes. Four layers, 64 features, no positions of its own: whatever it knows about order comes from its
causal mask and from one object, its encoding. An encoding answers at most three questions, and each answer may be
missing:

    embed(length)          what is added to the embeddings     -> (length, width)
    rotate(q, k)           how queries and keys are changed    -> q, k of the same shapes
    bias(q, k, layer)      what is added to the scores         -> (heads, queries, keys), or with a batch in front

q and k are (batch, heads, n, head_dim). Positions start at 0. Keys stand at 0 … keys − 1; when there are fewer
queries than keys, the last query lines up with the last key. The bias is added after the division by sqrt(head_dim)
and is not divided itself.
"""

import functools
import math

import torch
from torch import nn
from torch.nn import functional

BLOCK = 128  # queries handled at once: keeps the scores of a long text in the processor's cache


def as_shipped(function):
    """Makes its new tensors on the CPU in float32, as those of the shipped models, whatever a reader has torch do.

    It may take gradients, too, where they are turned off.
    """

    @functools.wraps(function)
    def there(*arguments, **keywords):
        dtype = torch.get_default_dtype()
        if (dtype, torch.get_default_device().type, torch.is_grad_enabled()) == (torch.float32, "cpu", True):
            return function(*arguments, **keywords)  # the rest would cost a short text a millisecond
        try:
            torch.set_default_dtype(torch.float32)
            with torch.device("cpu"), torch.inference_mode(False), torch.enable_grad():
                return function(*arguments, **keywords)
        finally:
            torch.set_default_dtype(dtype)

    return there


class Encoding(nn.Module):
    """An encoding that does nothing. Subclasses answer the questions they have an answer to."""

    def embed(self, length):
        return None

    def rotate(self, q, k):
        return q, k

    def rotate_in(self, q, k, layer):
        """`rotate`, for an encoding that is not the same in every layer."""
        return self.rotate(q, k)

    def bias(self, q, k, layer):
        return None


def distances(q, k):
    """Query position − key position, int64 of shape (queries, keys): negative for keys in the future."""
    queries, keys = q.shape[-2], k.shape[-2]
    return torch.arange(keys - queries, keys, device=q.device)[:, None] - torch.arange(keys, device=q.device)


class Attention(nn.Module):
    """softmax(q·k / sqrt(head_dim) + bias)·v, the same for training, evaluation and the pictures of weights."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, encoding, layer, last=None, watch=None):
        batch, n, width = x.shape
        q, k, v = self.qkv(x).view(batch, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (batch, heads, n, head_dim)
        q, k = encoding.rotate_in(q, k, layer)
        # Queries go in blocks; under the causal mask a block needs only the keys up to its own end.
        begin = n - (last or n)
        mixed = []
        for start in range(begin, n, BLOCK) if self.causal else [begin]:
            end = min(start + BLOCK, n) if self.causal else n
            seen_q, seen_k, seen_v = q[:, :, start:end], k[:, :, :end], v[:, :, :end]
            weights = self.weights(seen_q, seen_k, encoding, layer)  # (batch, heads, end - start, end)
            if watch is not None:
                watch(layer, start, weights)
            mixed.append(weights @ seen_v)
        mixed = torch.cat(mixed, dim=2).transpose(1, 2).reshape(batch, n - begin, width)
        return self.out(mixed)

    def weights(self, q, k, encoding, layer):
        """Attention weights (batch, heads, queries, keys)."""
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
        bias = encoding.bias(q, k, layer)
        if self.causal:  # adding −inf hides a key as setting it does, and the small bias costs less than the scores
            hidden = torch.zeros((), device=q.device).where(distances(q, k) >= 0, -math.inf)
            bias = hidden if bias is None else bias + hidden
        return (scores if bias is None else scores + bias).softmax(dim=-1)


class Layer(nn.Module):
    """Attention, then a feed-forward network four times as wide, each on a normalised copy and added back."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.norm1 = nn.RMSNorm(width, eps=1e-6)
        self.attention = Attention(width, heads, causal)
        self.norm2 = nn.RMSNorm(width, eps=1e-6)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x, encoding, layer, last=None, watch=None):
        attended = self.attention(self.norm1(x), encoding, layer, last, watch)
        x = x[:, x.shape[1] - attended.shape[1] :] + attended
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class LanguageModel(nn.Module):
    """Predicts the next token (a byte, or a symbol of the copy task) from those before it.

    encoding: an Encoding, or any object with some of its three methods. Its nn.Parameters are trained if it is an
    nn.Module. The weights drawn from `seed` are the same whatever the encoding is.
    """

    def __init__(self, encoding, *, vocabulary, width, layers, heads, length, causal=True, seed=1):
        super().__init__()
        self.shape = {"vocabulary": vocabulary, "width": width, "layers": layers, "heads": heads, "length": length}
        self.length = length  # tokens in a training text
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads, causal) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        draw = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if weight.ndim == 2:
                    spread = 0.05 if name == "embedding.weight" else weight.shape[1] ** -0.5
                    if name.endswith(("out.weight", "down.weight")):  # what is added back starts small
                        spread /= 2
                    weight.copy_(torch.randn(weight.shape, generator=draw) * spread)
        self.encoding = encoding if _is_ours(encoding) else Adapter(encoding)

    def forward(self, tokens, *, encoding=None, last=None, watch=None):
        """Logits (batch, n, vocabulary) of the token after each of `tokens` (batch, n).

        encoding: takes the place of the model's own for this call (how a trained model is changed without training).
        last: answer only for the last so many positions (the last layer then skips the other queries).
        watch(layer, first_query, weights): is shown the attention weights of every block of queries.
        """
        encoding = encoding or self.encoding
        x = self.embedding(tokens.to(self.embedding.weight.device))
        added = encoding.embed(tokens.shape[1])
        if added is not None:
            x = x + added
        for index, layer in enumerate(self.layers):
            x = layer(x, encoding, index, last if index == len(self.layers) - 1 else None, watch)
        return functional.linear(self.norm(x), self.embedding.weight)


class DoesNotFit(ValueError):
    """A reader's encoding that returns what no model can use; a notebook shows the sentence and no traceback."""

    def _render_traceback_(self):
        return [f"ValueError: {self}"]


def _is_ours(encoding):
    """Is it one of the lab's encodings, which need no check, and not one derived from lab.Encoding by a reader?"""
    return isinstance(encoding, Encoding) and type(encoding).__module__.startswith("posviz.lab.")


class Adapter(Encoding):
    """Someone's own encoding object, with the missing answers filled in and the given ones checked."""

    def __init__(self, given):
        super().__init__()
        if isinstance(given, type):
            raise TypeError(f"an encoding is an object: write {given.__name__}() with its brackets")
        methods = ("embed", "rotate", "bias")
        if not any(callable(getattr(given, name, None)) for name in methods):
            raise TypeError(f"an encoding has at least one of the methods {', '.join(methods)}; {given!r} has none")
        self.given = given

    def embed(self, length):
        if not hasattr(self.given, "embed"):
            return None
        added = self.given.embed(length)
        return None if added is None else _tensor(added, "embed", f"(length, width) = ({length}, width)", length, None)

    def rotate(self, q, k):
        if not hasattr(self.given, "rotate"):
            return q, k
        pair = self.given.rotate(q, k)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise DoesNotFit("rotate(q, k) must return the pair q, k")
        for name, new, old in zip("qk", pair, (q, k)):
            if not isinstance(new, torch.Tensor) or new.shape != old.shape:
                raise DoesNotFit(f"rotate must return {name} as a tensor of shape {tuple(old.shape)}; got {_what(new)}")
        return tuple(pair)

    def bias(self, q, k, layer):
        if not hasattr(self.given, "bias"):
            return None
        added = self.given.bias(q, k, layer)
        queries, keys = q.shape[-2], k.shape[-2]
        if added is None:
            return None
        wanted = f"(queries, keys), (heads, queries, keys) or (batch, heads, queries, keys) with {queries}, {keys} last"
        return _tensor(added, "bias", wanted, queries, keys)


def _tensor(value, method, wanted, *shape):
    """`value` as a float tensor whose last dimensions are `shape` (None: any size)."""
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise DoesNotFit(f"{method} must return numbers of shape {wanted}; got {_what(value)}") from None
    found = tuple(tensor.shape)
    if len(found) < 2 or any(want not in (None, size) for want, size in zip(shape, found[-2:])):
        raise DoesNotFit(f"{method} must return numbers of shape {wanted}; got shape {found}")
    return tensor.float()


def _what(value):
    return f"shape {tuple(value.shape)}" if hasattr(value, "shape") else type(value).__name__
