"""The calling functions that are running, by their public names."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FrameType

# Libraries whose functions call each other: the first one called is the one the user knows.
LIBRARIES = ("scipy", "sklearn")

# Modules whose functions come between the one that was called and its computation.
PASS_ON = ("gradtape.ops.arguments", "gradtape.ops.methods", "gradtape.ops.linalg.in_float32")
_BELOW = ("gradtape.core.", "gradtape.backends.", "gradtape.advice.")


def running() -> list[FrameType]:
    """Our frames, NumPy's and the libraries' that the user's code called, outermost first.

    The user's code ends them, and so do transforms, which call the user's code.
    """
    frames: list[FrameType] = []
    frame = inspect.currentframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("gradtape.ops.") or package(frame) in ("numpy", *LIBRARIES):
            frames.insert(0, frame)
        elif not module.startswith(_BELOW):
            break
        frame = frame.f_back
    return frames


def package(frame: FrameType) -> str:
    """The package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def own_function(frames: list[FrameType]) -> str | None:
    """The name of the first public function of gradtape that was called."""
    for frame in frames:
        name, place = frame.f_code.co_name, frame.f_globals["__name__"]
        passes_on = place in PASS_ON or "<locals>" in frame.f_code.co_qualname
        if package(frame) == "gradtape" and name[0] not in "_<" and not passes_on:
            return name
    return None


def public_names(frame: FrameType) -> Iterator[str | None]:
    """The public names that a library's frame may belong to; None in place of a private one."""
    module = frame.f_globals["__name__"]
    code, values = frame.f_code, frame.f_locals
    if "self" in values:
        # SciPy's distributions are the only instances of their classes: `norm` of `norm_gen`.
        owner = type(values["self"])
        name = owner.__name__.removesuffix("_gen")
        method = "" if code.co_name.startswith("_") else f".{code.co_name}"
        yield _public(owner.__module__, name, method)
    name, _, method = code.co_qualname.partition(".")
    yield _public(module, name, f".{method}" if method and not method.startswith("_") else "")
    # A decorated function is called by a wrapper that has it among its variables.
    for value in values.values():
        called = getattr(value, "__name__", None) if callable(value) else None
        if isinstance(called, str):
            yield _public(getattr(value, "__module__", None) or module, called)


def _public(module: str, name: str, method: str = "") -> str | None:
    """`scipy.linalg.det` for `det` in `scipy.linalg._basic`, if it is found there."""
    parts = module.split(".")
    if parts[0] not in LIBRARIES or name.startswith("_"):
        return None
    private = (number for number, part in enumerate(parts) if part.startswith("_"))
    package = ".".join(parts[: next(private, len(parts))])
    # Or next to it: `scipy.optimize.elementwise` exports `scipy.optimize._elementwise`.
    for place in (package, module.replace("._", ".")):
        found = sys.modules.get(place) if "." in place else None
        # Not by getattr, for which SciPy's deprecated modules would warn.
        if found is not None and name in vars(found):
            return f"{place}.{name}{method}"
    return None
