"""Checks of arguments, named for what they return: a formula stays one line, and every message has one form.

In each the value comes first, then the name that a message says, then the limits.
"""

import math
import operator
import reprlib

import numpy as np

from ._arrays import as_numpy, is_tensor, real_array


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


def at_least(value, name, least):
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


def whole_numbers(values, name, least=None):
    """`values` as a new int64 array of the same shape: lists, NumPy and torch integers, floats that are whole.

    TypeError for booleans, strings and fractions; ValueError below `least` or beyond int64.
    """
    array = as_numpy(values, name)
    if array.dtype.kind == "f":  # an empty list too
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
    """`values` as a new float64 array, or the tensor it is; ValueError unless all are finite and above 0."""
    xp, array = real_array(values, name)
    bad = ~(xp.isfinite(array) & (array > 0))
    if bad.any():
        raise ValueError(f"{name} must be finite and above 0; got {float(array[bad][0]):g}")
    return array if is_tensor(array) else array.astype(np.float64)
