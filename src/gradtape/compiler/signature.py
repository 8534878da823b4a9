"""What a compiled function is compiled for: containers, shapes, dtypes and static values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import tree
from gradtape.compiler.runtime.entry import (
    ArrayLeaf,
    DictSpec,
    ListSpec,
    NumberLeaf,
    ResultLeaf,
    ScalarLeaf,
    Spec,
    StaticLeaf,
    TupleSpec,
)
from gradtape.core.aval import Aval, aval_of
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError

_NUMBERS = (float, int, bool, complex)


class Arguments(NamedTuple):
    """The arguments of a call: leaves that are traced, and all that is fixed when it is compiled.

    Attributes:
        leaves: Arrays, tensors and numbers.
        structure: The containers they came in.
        statics: Positional and keyword arguments that are not traced.
        key: Equal for calls that the same code serves.
    """

    leaves: list[Any]
    structure: tree.Structure
    statics: tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]
    key: Any


def arguments(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static_argnums: Sequence[int],
    static_argnames: Sequence[str],
) -> Arguments:
    """Take the arguments of a call apart.

    Raises:
        ArgumentError: A static argument cannot be hashed.
        DTypeError: A leaf is no array and no number.
    """
    chosen = {n % len(args) for n in static_argnums if -len(args) <= n < len(args)}
    fixed = tuple(arg for n, arg in enumerate(args) if n in chosen)
    named = tuple(sorted((name, kwargs[name]) for name in static_argnames if name in kwargs))
    traced = tuple(arg for n, arg in enumerate(args) if n not in chosen)
    keywords = {name: arg for name, arg in kwargs.items() if name not in static_argnames}
    leaves, structure = tree.flatten((traced, keywords))
    kinds = tuple(leaf_key(leaf) for leaf in leaves)
    key = (structure, kinds, len(args), tuple(chosen), tuple(map(_typed, fixed)),
           tuple((name, _typed(value)) for name, value in named))  # fmt: skip
    try:
        hash(key)
    except TypeError as error:
        raise ArgumentError(
            f"jit: a static argument cannot be hashed ({error}); pass arrays and containers of "
            "them as ordinary arguments"
        ) from None
    return Arguments(leaves, structure, (fixed, named), key)


def _typed(value: Any) -> tuple[type, Any]:
    """1, 1.0 and True are equal, and not the same argument."""
    return type(value), value


def merged(
    given: Arguments, count: int, static_argnums: Sequence[int], leaves: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments again, with other leaves."""
    traced, keywords = tree.unflatten(given.structure, list(leaves))
    fixed, named = given.statics
    chosen = {n % count for n in static_argnums if -count <= n < count}
    rest, statics = iter(traced), iter(fixed)
    args = [next(statics) if n in chosen else next(rest) for n in range(count)]
    return args, {**keywords, **dict(named)}


def leaf_key(leaf: Any) -> tuple[Any, ...]:
    """What of a leaf the code depends on."""
    kind = type(leaf)
    if kind is np.ndarray or isinstance(leaf, np.generic | Tensor | np.ndarray):
        return leaf.shape, leaf.dtype
    if kind in _NUMBERS:
        return (kind,)
    raise DTypeError(
        f"jit: came an argument of type {kind.__name__}; needed arrays, tensors, numbers or "
        "containers of them. Name it in static_argnums or static_argnames if the code depends on it"
    )


def leaf_aval(leaf: Any) -> Aval:
    """A leaf as it is traced: in native byte order, Python's numbers weak."""
    aval = aval_of(leaf)
    return Aval(aval.shape, aval.dtype.newbyteorder("="), weak=aval.weak)


# ---- for the native entry point -----------------------------------------------------------------


def argument_spec(value: Any) -> Spec | None:
    """What the native entry point has to see in place of an argument; None if it cannot."""
    kind = type(value)
    if kind is tuple or kind is list:
        items = [argument_spec(item) for item in value]
        if any(item is None for item in items):
            return None
        return (TupleSpec if kind is tuple else ListSpec)(tuple(items))  # type: ignore[arg-type]
    if kind is dict:
        # Leaves of dicts are in the order of their keys.
        if not all(type(key) is str for key in value):
            return None
        keys = tuple(sorted(value))
        items = [argument_spec(value[key]) for key in keys]
        return None if any(item is None for item in items) else DictSpec(keys, tuple(items))  # type: ignore[arg-type]
    if kind in (float, int, bool):
        return NumberLeaf(kind)
    if value is None:
        return StaticLeaf(None)
    try:
        if kind is np.ndarray:
            return ArrayLeaf(value.dtype.newbyteorder("="), value.shape)
        if isinstance(value, np.generic):
            return ScalarLeaf(value.dtype)
    except DTypeError:
        return None
    return None


def result_spec(structure: tree.Structure, count: int) -> Spec | None:
    """The containers of the results for the native entry point; None if it cannot make them."""
    return _result(tree.unflatten(structure, [ResultLeaf(n) for n in range(count)]))


def _result(value: Any) -> Spec | None:
    kind = type(value)
    if kind is ResultLeaf:
        return value  # type: ignore[no-any-return]
    if value is None:
        return StaticLeaf(None)
    if kind is tuple or kind is list:
        items = [_result(item) for item in value]
        if any(item is None for item in items):
            return None
        return (TupleSpec if kind is tuple else ListSpec)(tuple(items))  # type: ignore[arg-type]
    if kind is dict and all(type(key) is str for key in value):
        items = [_result(item) for item in value.values()]
        return None if any(item is None for item in items) else DictSpec(tuple(value), tuple(items))  # type: ignore[arg-type]
    return None
