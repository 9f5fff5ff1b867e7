"""One formula for NumPy and torch: which of the two an array is, and how other values come to its kind and device."""

import functools
import math
import reprlib

import numpy as np

BLOCK = 2**21  # features worked on at a time: 8 MiB of float32 and as much for the result stay in the caches


# array_api_compat has `is_torch_array` and `array_namespace`, but both look the class up through functools.lru_cache,
# of which torch.compile warns, and stumble over a torch that cannot be imported. Neither of these imports torch itself.
def is_tensor(value):
    """Whether `value` is a torch tensor, found out without importing torch."""
    return any((kind.__module__, kind.__name__) == ("torch", "Tensor") for kind in type(value).__mro__)


def namespace(array):
    """The array-API view of NumPy or torch, so that a formula is written once for both."""
    if is_tensor(array):
        import array_api_compat.torch as xp
    else:
        import array_api_compat.numpy as xp
    return xp


def as_numpy(values, name):
    """`values` as a NumPy array, from a list, a NumPy array or a torch tensor on any device."""
    if is_tensor(values):
        if values.requires_grad:
            raise TypeError(f"{name} would lose its gradient, which NumPy does not carry: all as tensors, or detach it")
        values = values.cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers; got {reprlib.repr(values)}") from None


def convert_like(values, x, dtype=None):
    """`values` (NumPy or torch, gradients kept) as the kind and device of array `x`, in `dtype` or their own."""
    if not is_tensor(x):
        return (array := as_numpy(values, "values")).astype(dtype or array.dtype, copy=False)
    if not is_tensor(values):
        values = namespace(x).from_numpy(np.array(values))  # a copy: torch takes no negative strides
    return values.to(device=x.device, dtype=dtype)


def working_dtype(xp, dtype):
    """The dtype to compute in: float32 for 16-bit floats, otherwise `dtype` itself."""
    return xp.float32 if xp.finfo(dtype).bits < 32 else dtype


def real_array(values, name, *axes):
    """(namespace, array): NumPy or torch floats as they are; integers and lists become float64.

    axes: the names of the last axes, which the array must have.
    """
    if not is_tensor(values):
        values = as_numpy(values, name)
    xp = namespace(values)
    if xp.isdtype(values.dtype, "integral"):
        values = xp.astype(values, xp.float64)
    if not xp.isdtype(values.dtype, "real floating"):
        raise TypeError(f"{name} must be real numbers; got {values.dtype} {reprlib.repr(values)}")
    if values.ndim < len(axes):
        shape = tuple(values.shape) or "a single number"
        raise ValueError(f"{name} must have shape (..., {', '.join(axes)}); got {shape}")
    return xp, values


def same_kind(**arrays):
    """(namespace, arrays in one dtype): all NumPy or all torch, (..., sequence, dim), whose leading axes broadcast."""
    spaces, found = zip(*(real_array(values, name, "sequence", "dim") for name, values in arrays.items()))
    if len({is_tensor(array) for array in found}) > 1:
        kinds = ", ".join(f"{name} is {type(array).__name__}" for name, array in zip(arrays, found))
        raise TypeError(f"all of one kind, NumPy or torch: {kinds}")
    widths = [array.shape[-1] for array in found]
    if len(set(widths)) > 1 or widths[0] == 0:
        widths = ", ".join(f"{name} {width}" for name, width in zip(arrays, widths))
        raise ValueError(f"the last axes must be equal and not empty; got {widths}")
    together("leading axes", {name: array.shape[:-2] for name, array in zip(arrays, found)})
    dtype = spaces[0].result_type(*found)
    return spaces[0], [spaces[0].astype(array, dtype, copy=False) for array in found]


def fitting(array, name, shape, target):
    """`array`, if it broadcasts to `shape`, the shape of `target`, without making it larger."""
    own, shape = tuple(array.shape), tuple(shape)
    if len(own) > len(shape) or any(a not in (1, b) for a, b in zip(own[::-1], shape[::-1])):
        raise ValueError(f"{name} must broadcast to {target}, {shape}; got shape {own}")
    return array


def together(what, shapes):
    """ValueError unless the shapes, a dict by name, broadcast with one another."""
    try:
        np.broadcast_shapes(*map(tuple, shapes.values()))
    except ValueError:
        found = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        raise ValueError(f"the {what} must broadcast with one another; got {found}") from None


def any_seen(condition):
    """Whether a boolean array holds a True that one can see: torch.vmap and tensors on "meta" show no values."""
    try:
        return bool(condition.any())
    except RuntimeError:
        return False


def quiet(**errors):
    """A decorator, np.errstate(**errors) without its hold on tensors: torch.compile could not trace through that."""

    def decorate(formula):
        silent = np.errstate(**errors)(formula)

        @functools.wraps(formula)
        def call(*args, **named):
            tensors = any(map(is_tensor, (*args, *named.values())))
            return (formula if tensors else silent)(*args, **named)

        return call

    return decorate


def blocks(shape, table_shape):
    """Pieces of an array of this shape (..., sequence, dim), small enough for a cache: (index into it, into its table).

    Intermediate results of one piece never reach the memory, which is what RoPE waits for.
    """
    rows = shape[-2]
    step = max(1, BLOCK * rows // max(1, math.prod(shape)))
    for start in range(0, rows, step):
        part = (..., slice(start, start + step), slice(None))
        yield part, part if len(table_shape) > 1 and table_shape[-2] > 1 else ...
