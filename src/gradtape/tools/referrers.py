"""Why an object is alive: the chain of what refers to it, from a variable of the user's down.

Python's garbage collector knows who refers to whom. The search goes up from the objects, level by
level, until it meets a global variable of a module or a local variable of a function that runs, and
the shortest way down is told: ``global `history` of train → [17]``.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import CellType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from gradtape.core.level import Leaf, Node
from gradtape.core.lines import is_ours
from gradtape.core.nested import Handle
from gradtape.core.tensor import Tensor

# Objects further away than this are not explained, nor is what more objects than that refer to.
_DEEPEST, _MOST = 12, 20_000
_CO_OPTIMIZED = 0x1
_LONGEST_KEY = 40
_ASKS = "gradtape.tools.leaks"


def chains(targets: list[Any]) -> list[str]:
    """For each object, the way to it from a variable; "" if none was found."""
    roots = _Roots()
    parents, known = _referrers(targets, roots)
    # From every root down, so that the first way found to an object is the shortest.
    below: dict[int, list[int]] = {}
    for child, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(child)
    came_from: dict[int, int | None] = {key: None for key in known if roots.name(known[key])}
    waiting = deque(came_from)
    while waiting:
        parent = waiting.popleft()
        for child in below.get(parent, ()):
            if child not in came_from:
                came_from[child] = parent
                waiting.append(child)
    found = [_told(id(target), came_from, known, roots) for target in targets]
    roots.forget()
    return found


def _referrers(targets: list[Any], roots: _Roots) -> tuple[dict[int, list[int]], dict[int, Any]]:
    """Who refers to whom above the targets, as ids; and the objects by their ids."""
    known: dict[int, Any] = {id(target): target for target in targets}
    parents: dict[int, list[int]] = {}
    for view, array in _views(targets):
        known[id(view)] = view
        parents.setdefault(id(array), []).append(id(view))
    frontier = [value for value in known.values() if not roots.name(value)]
    own = {id(targets), id(known), id(parents), id(roots.__dict__)}
    for _ in range(_DEEPEST):
        if not frontier or len(known) > _MOST:
            break
        keys = {id(item) for item in frontier}
        above = []
        found = gc.get_referrers(*frontier)
        skipped = own | {id(frontier), id(found), id(keys)}
        for holder in found:
            if id(holder) in skipped or _is_no_reason(holder) or roots.holds(holder):
                continue
            for item in gc.get_referents(holder):
                if id(item) in keys:
                    parents.setdefault(id(item), []).append(id(holder))
            if id(holder) not in known:
                known[id(holder)] = holder
                if not roots.name(holder):
                    above.append(holder)
        frontier = above
    return parents, known


def _views(targets: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Views with the arrays among the targets that they are of: arrays do not tell Python."""
    arrays = {id(target): target for target in targets if isinstance(target, np.ndarray)}
    seen: set[int] = set()
    for holder in gc.get_objects() if arrays else ():
        for value in gc.get_referents(holder):
            if isinstance(value, np.ndarray) and id(value.base) in arrays and id(value) not in seen:
                seen.add(id(value))
                yield value, arrays[id(value.base)]


def _is_no_reason(holder: Any) -> bool:
    """Whether an object refers to others only because we look, or is no part of an explanation."""
    if isinstance(holder, FrameType):
        return is_ours(holder.f_code.co_filename)
    return isinstance(holder, ModuleType | type) or type(holder).__module__ == _ASKS


class _Roots:
    """Variables by the ids of what they refer to."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._snapshots: list[dict[str, Any]] = []
        self._spaces: set[int] = set()
        for name, module in list(sys.modules.items()):
            space = getattr(module, "__dict__", None)
            if isinstance(space, dict):
                self._add(name, space)
        for frame in _running_frames():
            # Code that `exec` runs, such as a notebook's, may have globals that are no module's.
            self._add(frame.f_globals.get("__name__", "?"), frame.f_globals)
            if frame.f_code.co_flags & _CO_OPTIMIZED:
                self._add_locals(frame)

    def _add(self, name: str, space: dict[str, Any]) -> None:
        if id(space) not in self._spaces:
            self._spaces.add(id(space))
            if name.partition(".")[0] != "gradtape":
                for variable, value in list(space.items()):
                    self._names.setdefault(id(value), f"global `{variable}` of {name}")

    def _add_locals(self, frame: FrameType) -> None:
        variables = frame.f_locals
        if isinstance(variables, dict):
            self._snapshots.append(variables)
        code = frame.f_code
        where = f"{code.co_name} ({os.path.basename(code.co_filename)}:{frame.f_lineno})"
        for variable, value in list(variables.items()):
            self._names[id(value)] = f"local `{variable}` of {where}"

    def name(self, value: Any) -> str:
        """The variable that refers to an object; "" if there is none."""
        # Numbers and the like are shared by everybody.
        is_shared = not gc.is_tracked(value) and not isinstance(value, np.ndarray)
        return "" if is_shared else self._names.get(id(value), "")

    def holds(self, holder: Any) -> bool:
        """Whether an object is the variables themselves: of a module, or our copy of them."""
        spaces = self._spaces
        return id(holder) in spaces or any(holder is each for each in self._snapshots)

    def forget(self) -> None:
        """Drop the copies of local variables that Python (until 3.12) makes for us and keeps."""
        for snapshot in self._snapshots:
            snapshot.clear()


def _running_frames() -> list[FrameType]:
    """The frames of users' functions in all threads."""
    found = []
    frame: FrameType | None
    for frame in sys._current_frames().values():
        # No variable is left that refers to the frame of this very function: the cycle would keep
        # it alive, with the variables of all that have called it.
        while frame is not None:
            if not is_ours(frame.f_code.co_filename):
                found.append(frame)
            frame = frame.f_back
    return found


# ---- in words -----------------------------------------------------------------------------------


def _told(
    key: int, came_from: Mapping[int, int | None], known: Mapping[int, Any], roots: _Roots
) -> str:
    if key not in came_from:
        return ""
    way = [known[key]]
    while (parent := came_from[key]) is not None:
        way.insert(0, known[parent])
        key = parent
    steps = [roots.name(way[0])]
    for number, (holder, item) in enumerate(itertools.pairwise(way)):
        if isinstance(holder, FunctionType) and item is holder.__closure__:
            steps.append(_closure(holder, way[number + 2]))
        elif not isinstance(holder, CellType) and (
            not number or not _is_closure(way[number - 1 :])
        ):
            steps.append(_step(holder, item))
    return " → ".join(step for step in steps if step)


def _is_closure(way: list[Any]) -> bool:
    """Whether a function comes first and its cells are next."""
    return isinstance(way[0], FunctionType) and way[1] is way[0].__closure__


def _closure(function: FunctionType, cell: Any) -> str:
    names = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    name = next((name for name, each in names if each is cell), "?")
    return f"`{name}` in the closure of {function.__qualname__}"


def _step(holder: Any, item: Any) -> str:
    """How one object refers to another."""
    if isinstance(holder, np.ndarray):
        return "the array it is a view of"
    if isinstance(holder, Handle):
        return "the tensor it is a view of"
    if isinstance(holder, Leaf):
        return "its gradient"
    if isinstance(holder, Tensor | Node):
        return "its history" if isinstance(holder, Tensor) else ""
    if isinstance(holder, Mapping):
        return _key_of(holder, item)
    if isinstance(holder, list | tuple | deque):
        return f"{type(holder).__name__}{_index_of(holder, item)}"
    if isinstance(holder, set | frozenset):
        return f"an element of a {type(holder).__name__}"
    return _attribute(holder, item)


def _key_of(holder: Mapping[Any, Any], item: Any) -> str:
    for key, value in holder.items():
        if value is item:
            text = repr(key)
            short = text if len(text) <= _LONGEST_KEY else f"{text[: _LONGEST_KEY - 1]}…"
            return f"{type(holder).__name__}[{short}]"
    return f"a key of a {type(holder).__name__}"


def _index_of(holder: Iterable[Any], item: Any) -> str:
    return next((f"[{n}]" for n, value in enumerate(holder) if value is item), "")


def _attribute(holder: Any, item: Any) -> str:
    if isinstance(holder, FunctionType):
        return f"the function {holder.__qualname__}"
    if isinstance(holder, MethodType):
        return f"the method {holder.__func__.__qualname__}"
    if isinstance(holder, functools.partial):
        return "an argument of functools.partial"
    if isinstance(holder, FrameType):
        return f"a variable of {holder.f_code.co_name}, kept by a traceback or a debugger"
    if isinstance(holder, GeneratorType):
        return f"a variable of the generator {holder.__qualname__}"
    kind = type(holder).__name__
    # Attributes in the object itself: with a dict of them, the dict is on the way.
    own = getattr(holder, "__dict__", {})
    if own is item:
        return ""
    slots = [name for each in type(holder).__mro__ for name in getattr(each, "__slots__", ())]
    for name in (*own, *slots):
        if own.get(name, getattr(holder, name, None) if name in slots else None) is item:
            return f"{kind}.{name}"
    return kind
