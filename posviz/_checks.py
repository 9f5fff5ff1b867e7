"""Argument checks shared by every formula, so that each formula stays one line and every message has one form."""

import math
import operator
import reprlib

import numpy as np

# ------------------------------------------------------------------ single numbers and names


def integer(value, name):
    """`value` as a Python int; TypeError for booleans, fractions, strings and anything else that is not whole."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer; got the boolean {value}")
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer; got {reprlib.repr(value)}") from None


def count(value, name, least=1):
    """`value` as an int of at least `least`."""
    number = integer(value, name)
    if number < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {number}")
    return number


def even(value, name, least=2):
    """`value` as an even int of at least `least`: features are rotated in pairs."""
    number = integer(value, name)
    if number < least or number % 2:
        raise ValueError(f"{name} must be an even number of at least {least} (features come in pairs); got {number}")
    return number


def real(value, name):
    """`value` as a finite float."""
    if isinstance(value, (bool, np.bool_, str, bytes)) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a number; got {reprlib.repr(value)}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number; got {reprlib.repr(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; got {number}")
    return number


def positive(value, name):
    """`value` as a finite float above 0."""
    number = real(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be above 0; got {number:g}")
    return number


def at_least(least, value, name):
    """`value` as a finite float of at least `least`."""
    number = real(value, name)
    if number < least:
        raise ValueError(f"{name} must be at least {least:g}; got {number:g}")
    return number


def one_of(value, name, choices):
    """`value`, if it is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")
    return value


# ------------------------------------------------------------------ NumPy or torch


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


def beside(x, values, dtype=None):
    """`values` (NumPy or torch, gradients kept) as the kind and device of array `x`, in `dtype` or their own."""
    if not is_tensor(x):
        return (array := _numpy(values, "values")).astype(dtype or array.dtype, copy=False)
    if not is_tensor(values):
        values = namespace(x).from_numpy(np.array(values))  # a copy: torch takes no negative strides
    return values.to(device=x.device, dtype=dtype)


def working_dtype(xp, dtype):
    """The dtype to compute in: float32 for 16-bit floats, otherwise `dtype` itself."""
    return xp.float32 if xp.finfo(dtype).bits < 32 else dtype


def _numpy(values, name):
    """`values` as a NumPy array, from a list, a NumPy array or a torch tensor on any device."""
    if is_tensor(values):
        values = values.detach().cpu()
        values = (values.double() if values.is_floating_point() else values).numpy()
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers; got {reprlib.repr(values)}") from None


# ------------------------------------------------------------------ arrays


def whole_numbers(values, name, least=None):
    """`values` as a new int64 array of the same shape: lists, NumPy and torch integers, floats that are whole.

    TypeError for booleans, strings and fractions; ValueError below `least` or beyond int64.
    """
    array = _numpy(values, name)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind == "f":
        bad = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**63))
        if bad.any():
            raise TypeError(f"{name} must be whole numbers; got {array[bad].flat[0]!s}")
    elif array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers of at most 64 bits; got {array.dtype} {reprlib.repr(values)}")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must fit in 64 bits; got {array.max()}")
    array = array.astype(np.int64)
    if least is not None and array.size and array.min() < least:
        raise ValueError(f"{name} must be at least {least}; got {array.min()}")
    return array


def positives(values, name):
    """`values` as a new float64 array; ValueError unless all are finite and above 0."""
    array = _numpy(values, name)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers; got {array.dtype} {reprlib.repr(values)}")
    array = array.astype(np.float64)
    bad = ~(np.isfinite(array) & (array > 0))
    if bad.any():
        raise ValueError(f"{name} must be finite and above 0; got {array[bad].flat[0]:g}")
    return array


def real_array(values, name):
    """(namespace, array): NumPy or torch floats as they are; integers and lists become float64."""
    if not is_tensor(values):
        values = _numpy(values, name)
    xp = namespace(values)
    if xp.isdtype(values.dtype, "integral"):
        values = xp.astype(values, xp.float64)
    if not xp.isdtype(values.dtype, "real floating"):
        raise TypeError(f"{name} must be an array of real numbers; got {values.dtype}")
    return xp, values


def same_kind(**arrays):
    """(namespace, arrays in one dtype): all NumPy or all torch, each of shape (..., sequence, dim), dim the same."""
    found = {name: real_array(values, name) for name, values in arrays.items()}
    for name, (_, array) in found.items():
        if array.ndim < 2 or array.shape[-1] == 0:
            raise ValueError(f"{name} must have shape (..., sequence, dim); got {tuple(array.shape)}")
    if len({is_tensor(array) for _, array in found.values()}) > 1:
        kinds = ", ".join(f"{name} is {type(array).__name__}" for name, (_, array) in found.items())
        raise TypeError(f"all of one kind, NumPy or torch: {kinds}")
    if len({array.shape[-1] for _, array in found.values()}) > 1:
        widths = ", ".join(f"{name} {array.shape[-1]}" for name, (_, array) in found.items())
        raise ValueError(f"the last axes must be equal; got {widths}")
    spaces, given = zip(*found.values(), strict=True)
    dtype = spaces[0].result_type(*given)
    return spaces[0], [spaces[0].astype(array, dtype, copy=False) for array in given]
