"""Checks of arguments, each of (value, its name in a message, limits) and named for what it returns to a formula."""

import math
import numbers
import reprlib
import sys

import numpy as np

from ._arrays import any_seen, as_numpy, is_tensor, real_array


def require(holds, name, what, got):
    """ValueError unless it holds, in the form that all messages have: "base must be above 0; got -1"."""
    if not holds:
        raise ValueError(f"{name} must {what}; got {f'{got:g}' if isinstance(got, float) else got}")


def integer(value, name):
    """`value` as a Python int of 64 bits, also from a float, an array or a tensor that holds one whole number."""
    number = _python_number(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        raise TypeError(f"{name} must be an integer; got {reprlib.repr(value)}")
    require(-(2**63) <= number < 2**63, name, "fit in 64 bits", reprlib.repr(number))
    return int(number)


def count(value, name, least=1):
    """`value` as an int of at least `least`."""
    number = integer(value, name)
    require(number >= least, name, f"be an integer of at least {least}", number)
    return number


def even(value, name, least=2):
    """`value` as an even int of at least `least`: features are rotated in pairs."""
    number = integer(value, name)
    pairs = number >= least and number % 2 == 0
    require(pairs, name, f"be an even number of at least {least} (features come in pairs)", number)
    return number


def real(value, name, least=-math.inf):
    """`value` as a finite float of at least `least`; TypeError for a tensor whose gradient would end here."""
    if getattr(value, "requires_grad", False):
        raise TypeError(f"{name} is taken as a plain number, and no gradient would reach it; got {reprlib.repr(value)}")
    number = _python_number(value)
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TypeError(f"{name} must be a number; got {reprlib.repr(value)}")
    finite = abs(number) <= sys.float_info.max  # no NaN either, no int beyond all floats
    require(finite, name, "be finite", reprlib.repr(number))
    require(number >= least, name, f"be at least {least:g}", float(number))
    return float(number)


def positive(value, name):
    """`value` as a finite float above 0."""
    number = real(value, name)
    require(number > 0, name, "be above 0", number)
    return number


def one_of(value, name, choices):
    """`value`, if it is one of `choices`."""
    require(value in choices, name, f"be one of {', '.join(map(repr, choices))}", repr(value))
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


def positives(values, name, or_zero=False):
    """`values` as a new float64 array, or the tensor it is; ValueError unless all are finite and above 0 (or 0)."""
    xp, array = real_array(values, name)
    bad = ~(xp.isfinite(array) & (array >= 0 if or_zero else array > 0))
    if any_seen(bad):
        limit = "at least" if or_zero else "above"
        raise ValueError(f"{name} must be finite and {limit} 0; got {float(array[bad][0]):g}")
    return array if is_tensor(array) else array.astype(np.float64)


def _python_number(value):
    """What a NumPy number, or an array or tensor without axes, holds; anything else as it is."""
    return value.item() if getattr(value, "ndim", None) == 0 else value
