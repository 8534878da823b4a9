"""Random numbers of other generators, drawn while a function is traced: they never change again.

NumPy's and Python's generators give a plain array or number, which becomes part of the compiled
function. It does not show where it came from, but a generator that was drawn from has another state
afterwards. So the generators that a function can reach are searched for before it is traced: the
global ones, and those in its closure, its arguments, the globals it names, the objects and
functions among these, and so on. That is done at traces only.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gradtape.core.lines import warn_user
from gradtape.core.portable import Portable
from gradtape.core.tensor import Tensor
from gradtape.errors import FrozenRandomWarning

# The most objects to look at, in all and in each container: it is a search, not a proof.
_MOST, _MOST_ITEMS = 1000, 100
# Functions of these libraries draw from global generators, if at all.
_LIBRARIES = frozenset({"gradtape", "numpy", "scipy"}) | sys.stdlib_module_names
_CONTAINERS = (tuple, list, set, frozenset, deque, dict)
# Types of objects that contain no others.
_PLAIN = (np.ndarray, np.generic, Tensor, str, bytes, int, float, complex, types.NoneType)


class Draws:
    """The generators that can be reached from some objects, and their states.

    Args:
        roots: A function to be traced, and arguments that it gets as they are.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        names: set[str] = set()
        found = list(_reachable(roots, names))
        if "random" in names:
            _ = np.random  # NumPy loads it on first use
        # Other threads may draw from the global ones, which then count only if they are named.
        if "random" in names or threading.active_count() == 1:
            found += _global_ones().values()
        self._before = {id(source): (source, _state(source)) for source in found}

    def warn(self, name: str) -> None:
        """Warn if a function of this name drew from any of them."""
        used = [
            _described(source) for source, state in self._before.values() if _state(source) != state
        ]
        if not used:
            return
        warn_user(
            f"jit: {name} draws from {' and '.join(dict.fromkeys(used))} while it is traced; the "
            "numbers are frozen into the compiled function, the same at each call; draw with "
            "gt.random (gt.random.normal, gt.random.uniform, …), which is new at each call, or "
            "pass the numbers as an argument",
            FrozenRandomWarning,
        )


# ---- generators ---------------------------------------------------------------------------------


def _is_generator(thing: Any) -> bool:
    numpys, pythons = sys.modules.get("numpy.random"), sys.modules.get("random")
    kinds = [getattr(numpys, name, ()) for name in ("Generator", "RandomState", "BitGenerator")]
    return isinstance(thing, (*kinds, getattr(pythons, "Random", ())))


def _state(source: Any) -> Any:
    """The state of a generator, which changes with each draw; None if it has no state."""
    try:
        if hasattr(source, "getstate"):
            return source.getstate()
        if hasattr(source, "get_state"):
            return _comparable(source.get_state(legacy=False))
        return _comparable(getattr(source, "bit_generator", source).state)
    except NotImplementedError:
        return None


def _comparable(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _comparable(part) for name, part in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _global_ones() -> dict[str, Any]:
    """The generators behind NumPy's and Python's global functions, if these are loaded."""
    functions = {
        "np.random": getattr(sys.modules.get("numpy.random"), "get_state", None),
        "Python's random": getattr(sys.modules.get("random"), "getstate", None),
    }
    return {name: f.__self__ for name, f in functions.items() if f is not None}


def _described(source: Any) -> str:
    for name, known in _global_ones().items():
        if source is known:
            return name
    return f"a {'random' if hasattr(source, 'getstate') else 'np.random'}.{type(source).__name__}"


# ---- reachable objects --------------------------------------------------------------------------


def _reachable(roots: Iterable[Any], names: set[str]) -> Iterator[Any]:
    """The generators within reach of the roots; adds names used in code to `names`."""
    pending = deque(roots)
    seen: dict[int, Any] = {}
    while pending and len(seen) < _MOST:
        thing = pending.popleft()
        if isinstance(thing, _PLAIN) or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if _is_generator(thing):
            yield thing
        elif not isinstance(thing, types.ModuleType):
            pending.extend(_parts(thing, names))


def _parts(thing: Any, names: set[str]) -> Iterator[Any]:
    """The objects that a function can reach through another."""
    if isinstance(thing, types.FunctionType):
        yield from _of_function(thing, names)
    elif isinstance(thing, Portable):
        yield from thing.made_by()[1]
    elif isinstance(thing, weakref.ref):
        yield thing()
    elif isinstance(thing, _CONTAINERS):
        items = thing.values() if isinstance(thing, dict) else thing
        yield from itertools.islice(items, _MOST_ITEMS)
    elif not (isinstance(thing, type) and _is_library(thing.__module__)):
        # Attributes, methods of the class, what a bound method or a partial function holds.
        yield from itertools.islice(gc.get_referents(thing), _MOST_ITEMS)


def _of_function(function: types.FunctionType, names: set[str]) -> Iterator[Any]:
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
    if not _is_library(function.__module__):
        own = set(_names(function.__code__))
        names |= own
        for name in own & function.__globals__.keys():
            yield from _named(function.__globals__[name], own)


def _names(code: types.CodeType) -> Iterator[str]:
    """The globals and attributes that code names, including those of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _named(value: Any, names: set[str], depth: int = 3) -> Iterator[Any]:
    """A global; for a module, those of its attributes that are named as well."""
    if not isinstance(value, types.ModuleType):
        yield value
    elif depth and not _is_library(value.__name__):
        for name in names & vars(value).keys():
            yield from _named(vars(value)[name], names, depth - 1)


def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES
