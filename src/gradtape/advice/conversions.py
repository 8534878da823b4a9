"""Advice where a recorded tensor is turned into an array or a number: what to write instead.

SciPy converts its arguments with `np.asarray`, unless it was told to look for the Array API. Some
NumPy functions convert tensors without asking them first, and some of ours want plain numbers. By
then the error is certain, so there is time to search the calling frames for the function that was
called, and to name the one that has a gradient.
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from types import FrameType
from typing import Any

import numpy as np

from gradtape.advice.foreign_names import NUMPY, POLYNOMIAL, SCIPY, WITH_ARRAY_API
from gradtape.advice.frames import LIBRARIES, own_function, package, public_names, running
from gradtape.advice.scipy_counterparts import counterpart
from gradtape.core.tensor import OBJECTS, Tensor
from gradtape.core.tracked_number import WAYS_OUT
from gradtape.errors import ConversionError

_DETACHED = "; t.detach() computes without gradient"
_OF_NUMPY = (
    "To print, plot or log the value, use t.item() or t.detach().numpy(). To keep its gradient, "
    "leave the conversion out, or use np.sin instead of math.sin, np.stack instead of np.array, a "
    "buffer of np.zeros_like(x, shape=n) or gt.zeros(n) instead of np.zeros(n), and "
    "gt.asarray(array) instead of another array that is written to; or "
    "`import gradtape.numpy as np`, whose np.array takes tensors with any dtype, and whose zeros, "
    "ones, empty, full and eye make buffers that record inside gt.grad and other transforms"
)
# What NumPy says of arrays of objects.
_OBJECTS = re.compile(
    r"which has no callable|dtype\('O'\)|object arrays|not supported for the input"
)
_MADE_OF_NUMBERS = (
    "NumPy was given an array of objects, as np.array([x, 1.0]) makes it of a tracked number, and "
    "not all its functions take that"
)


def add_ways_out(error: ConversionError, recorded: bool) -> None:
    """Add to an error what to write instead of the refused conversion.

    Args:
        error: Changed in place.
        recorded: Whether the tensor has a value and a history; otherwise it has no value, even
            without its history.
    """
    advice = _specific_advice()
    if recorded:
        error.args = (f"{error}. {advice or _OF_NUMPY}",)
    elif advice:
        error.add_note(advice.removesuffix(_DETACHED))


def note_hidden_conversion(error: BaseException) -> None:
    """Add a note on what to write instead to an error of compiled code that hides a tensor's own.

    `_sigtools`, for one, replaces any conversion error by one of its own. Then the function that
    called it is found in the traceback, if it has a recorded tensor among its variables.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    called = [frame for frame in frames if package(frame) in LIBRARIES]
    if called and frames[-1] is called[-1] and any(map(_is_recorded, frames[-1].f_locals.values())):
        advice = _library_advice(called)
        if advice is not None:
            error.add_note(f"It was given a tensor that is being recorded. {advice}")


def of_objects(error: Exception) -> str | None:
    """What to say of NumPy's error about an array of objects; None for any other error."""
    said = f"{error}; {_MADE_OF_NUMBERS}; {WAYS_OUT}"
    if isinstance(error, TypeError) and _OBJECTS.search(str(error)):
        return said
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    # NumPy calls `x.arctan2(y)` on objects.
    missed = isinstance(error, AttributeError) and getattr(np, str(error.name), None)
    if isinstance(missed, np.ufunc) and isinstance(getattr(error, "obj", None), int | float):
        return said
    inside = frames and package(frames[-1]) == "numpy"
    return said if inside and any(map(_is_of_objects, frames[-1].f_locals.values())) else None


def _is_of_objects(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype is OBJECTS
        and any(isinstance(x, Tensor) for x in value.flat)
    )


def raise_of_objects(error: Exception) -> None:
    """Raise for NumPy's error about an array of objects what to write instead."""
    said = of_objects(error)
    if said is not None:
        raise ConversionError(said) from error


def _is_recorded(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _specific_advice() -> str | None:
    """Advice on the call that wants an array or a number; None if there is none."""
    frames = running()
    outermost = package(frames[0]) if frames else None
    if outermost == "gradtape":
        return _own_advice(frames)
    return _numpy_advice(frames[0]) if outermost == "numpy" else _library_advice(frames)


def _own_advice(frames: list[FrameType]) -> str | None:
    """Advice for a function of gradtape that wants a plain array or number as an argument."""
    name = own_function(frames)
    return name and (
        f"{name} takes arrays and numbers without history for this argument: give it t.item() or "
        "t.detach(), or join tensors with gt.stack"
    )


def _numpy_advice(frame: FrameType) -> str | None:
    """Advice for a NumPy function that converts without asking."""
    module, owner = frame.f_globals["__name__"], frame.f_locals.get("self")
    if module.startswith("numpy.polynomial"):
        return f"np.polynomial asks for arrays: {POLYNOMIAL}{_DETACHED}"
    kinds = {"RClass": "np.r_", "CClass": "np.c_", "vectorize": "np.vectorize"}
    name = kinds.get(type(owner).__name__, f"np.{frame.f_code.co_name}")
    advice = NUMPY.get(name)
    return advice and f"{name} asks for an array: {advice}{_DETACHED}"


def _library_advice(frames: list[FrameType]) -> str | None:
    """Advice for a function of SciPy or scikit-learn."""
    names = (name for frame in frames for name in public_names(frame))
    call = next((name for name in names if name is not None), None)
    if call is None:
        return None
    other = counterpart(call, frames[0].f_code.co_name)
    possible = (_array_api(call), other and f"use {other}", SCIPY.get(call))
    ways = [way for way in possible if way]
    if not ways:
        ways = ["write it with NumPy's functions", "give it a rule with gt.custom_vjp"]
    return f"{call} asks for an array: {', or '.join(ways)}{_DETACHED}"


def _array_api(call: str) -> str | None:
    """The setting with which a function takes tensors as they are, if there is one."""
    setting = "set SCIPY_ARRAY_API=1 before SciPy is imported"
    if call.startswith("scipy."):
        # The setting that SciPy saw when it was imported is the one that counts.
        module = sys.modules.get("scipy._lib._array_api")
        # Also for a method of a class: `scipy.spatial.transform.Rotation.apply`.
        useful = not WITH_ARRAY_API.isdisjoint((call, call.rpartition(".")[0]))
        return setting if useful and not getattr(module, "SCIPY_ARRAY_API", False) else None
    if not sys.modules["sklearn"].get_config()["array_api_dispatch"]:
        return (
            f"{setting}, and call it inside of sklearn.config_context(array_api_dispatch=True), "
            "which some of scikit-learn supports"
        )
    place, _, name = call.rpartition(".")
    function = getattr(sys.modules.get(place), name, None)
    if inspect.isfunction(function) and "multioutput" in inspect.signature(function).parameters:
        return "pass multioutput='raw_values', without which the result is a Python number"
    return None
