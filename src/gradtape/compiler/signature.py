"""The signature a function is compiled for: containers, shapes, dtypes and static values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.class_fields import typed_key
from gradtape.compiler.argument_specs import (
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
from gradtape.core.aval import Abstract, Aval, aval_of, is_numeric
from gradtape.core.tensor import Tensor, is_place
from gradtape.errors import ArgumentError, DTypeError
from gradtape.graph.trace import is_truth

_NUMBERS = (float, int, bool, complex)
# Types that are certainly not containers, and make up most arguments.
_PLAIN = frozenset({np.ndarray, Tensor, *_NUMBERS})
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


# ---- static arguments ---------------------------------------------------------------------------


class Statics(NamedTuple):
    """The arguments that are passed as they are.

    Attributes:
        positions: Their positions; negative ones count from the last argument of a call.
        names: Their names, for those that are passed by keyword.
        of_class: Whether the first argument is static if it is a class, as for a class method.
    """

    positions: tuple[int, ...]
    names: tuple[str, ...]
    of_class: bool = False

    def of_method(self) -> Statics:
        """The statics once the first argument is bound."""
        return Statics(tuple(n - (n > 0) for n in self.positions if n != 0), self.names)

    def among(self, count: int) -> frozenset[int]:
        """The positions of static arguments in a call with `count` arguments."""
        return frozenset(n % count for n in self.positions if -count <= n < count)


def static_arguments(
    function: Callable[..., Any],
    argnums: int | Sequence[int],
    argnames: str | Sequence[str],
) -> Statics:
    """The static arguments of a function, found by position and by name, however they are passed.

    Raises:
        ArgumentError: They are not positions and names of arguments of the function.
    """
    numbers: list[Any] = list(argnums) if isinstance(argnums, Iterable) else [argnums]
    one_name = isinstance(argnames, str) or not isinstance(argnames, Iterable)
    names: list[Any] = [argnames] if one_name else list(argnames)
    integers = all(isinstance(n, int | np.integer) for n in numbers)
    if not integers or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            f"jit: got static_argnums={argnums!r}, static_argnames={argnames!r}, expected integers "
            "and strings"
        )
    positions = [int(n) for n in numbers]
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions need not have one
        return Statics(tuple(positions), tuple(names))
    positional = [p for p in parameters.values() if p.kind in _POSITIONAL]
    kinds = {p.kind for p in parameters.values()}
    count = len(positional)
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        if not all(-count <= n < count for n in positions):
            raise ArgumentError(
                f"jit: got static_argnums={argnums!r}; the function has {count} positional "
                "argument(s), counted from 0"
            )
        positions = [n % count for n in positions]
    for name in names:
        if name not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ArgumentError(
                f"jit: got static_argnames={argnames!r}; the function has no argument {name!r}, "
                f"only {', '.join(parameters) or 'none'}"
            )
    by_name = [n for n, p in enumerate(positional) if p.name in names]
    by_position = [positional[n].name for n in positions if 0 <= n < count]
    of_class = bool(positional) and positional[0].name == "cls"
    unique = dict.fromkeys
    return Statics(
        tuple(unique([*positions, *by_name])), tuple(unique([*names, *by_position])), of_class
    )


# ---- the arguments of a call --------------------------------------------------------------------


class Arguments(NamedTuple):
    """The arguments of a call: leaves that are traced, and those that are fixed when compiling.

    Attributes:
        args: The positional arguments as given.
        kwargs: The keyword arguments as given.
        leaves: Arrays, tensors and numbers.
        structure: The containers they came in.
        fixed: Positional arguments that are not traced, by position.
        named: Keyword arguments that are not traced.
        key: Equal for calls that the same code serves.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    structure: containers.Structure
    fixed: dict[int, Any]
    named: dict[str, Any]
    key: Any


def arguments(args: tuple[Any, ...], kwargs: dict[str, Any], statics: Statics) -> Arguments:
    """Take the arguments of a call apart.

    Raises:
        ArgumentError: A static argument cannot be hashed, or an integer is too large.
        DTypeError: A leaf is neither an array nor a number.
    """
    chosen = statics.among(len(args)) if statics.positions else frozenset()
    fixed = {n: arg for n, arg in enumerate(args) if n in chosen}
    named = {name: kwargs[name] for name in sorted(kwargs) if name in statics.names}
    traced = tuple(arg for n, arg in enumerate(args) if n not in chosen) if chosen else args
    keywords = {name: arg for name, arg in kwargs.items() if name not in named}
    leaves, structure, orders = _flatten(traced, keywords)
    try:
        kinds = tuple([leaf_key(leaf) for leaf in leaves])
    except (ArgumentError, DTypeError):
        # Since Python 3.13 class methods are bound without asking the wrapped object.
        if statics.of_class and args and isinstance(args[0], type):
            return arguments(args, kwargs, Statics((0, *statics.positions), statics.names))
        _name_leaf(args, keywords, chosen)
        raise
    try:
        values = [(name, _typed(value)) for name, value in (*fixed.items(), *named.items())]
        key = (structure, kinds, orders, tuple(kwargs), len(args), *values)
        hash(key)
    except TypeError as error:
        statics_given = (*fixed.values(), *named.values())
        sparse = [v for v in statics_given if type(v).__module__.startswith("scipy.sparse")]
        raise ArgumentError(
            f"jit: a static argument cannot be hashed ({error}); pass "
            + ("gt.scipy.sparse.from_scipy(a)" if sparse else "arrays and containers of them")
            + " as an ordinary argument"
        ) from None
    return Arguments(args, kwargs, leaves, structure, fixed, named, key)


def _name_leaf(args: tuple[Any, ...], keywords: dict[str, Any], chosen: frozenset[int]) -> None:
    """Raise again for the first leaf that cannot be an argument, and say where it is."""
    positional = [(f"argument {n}", arg) for n, arg in enumerate(args) if n not in chosen]
    for name, arg in (*positional, *((f"argument {name}", keywords[name]) for name in keywords)):
        for n, leaf in enumerate(containers.flatten(arg, view=containers.ALL_ARRAYS)[0]):
            leaf_key(leaf, containers.Place(name, arg, n, view=containers.ALL_ARRAYS))


def _flatten(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, Any]:
    """Leaves and structure of the arguments, and the keys of the dicts within, in their order.

    Structures of dicts are equal whatever the insertion order of the keys; a function that iterates
    over the values can tell the difference.
    """
    if _PLAIN.issuperset(map(type, (*args, *kwargs.values()))):
        return *containers.flatten((args, kwargs), view=containers.ALL_ARRAYS), ()
    orders: list[Any] = []
    both = (args, kwargs)

    def note(node: Any) -> bool:
        if node is both:
            orders.clear()
        elif isinstance(node, dict) and node is not kwargs:
            orders.append(tuple([key if type(key) is str else _typed(key) for key in node]))
        return False

    # `note` is called for every node, to decide whether to stop there.
    return *containers.flatten(both, note, view=containers.ALL_ARRAYS), tuple(orders)


def _typed(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Tensor):
        raise ArgumentError(
            "jit: got a tensor as a static argument; pass tensors as ordinary arguments"
        )
    return typed_key(value)


def merged(given: Arguments, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and keyword arguments again, with other leaves."""
    traced, keywords = containers.unflatten(given.structure, list(leaves))
    rest = iter(traced)
    count = len(given.args)
    args = [given.fixed[n] if n in given.fixed else next(rest) for n in range(count)]
    # A function gets them by ** in the order in which they were passed.
    named = {**keywords, **given.named}
    return args, {name: named[name] for name in given.kwargs}


def leaf_key(leaf: Any, where: str | containers.Place = "an argument") -> tuple[Any, ...]:
    """The properties of a leaf that code depends on; errors say `where` it is.

    Raises:
        ArgumentError: An integer is too large.
        DTypeError: It is neither an array of numbers nor a number.
    """
    kind = type(leaf)
    if kind is np.ndarray or isinstance(leaf, np.generic | Tensor | np.ndarray):
        if isinstance(leaf, np.ndarray) and kind is not np.ndarray:
            _check_plain(kind, where)
        if not is_numeric(leaf.dtype):
            raise DTypeError(
                f"jit: {where} is of dtype {leaf.dtype}, expected numbers. Name it in "
                "static_argnums or static_argnames if the code depends on it"
            )
        # Scalars run the same code as 0-d arrays; the native entry point takes one or the other.
        if isinstance(leaf, np.generic):
            return leaf.shape, leaf.dtype, "scalar"
        if kind is np.ndarray or not (_is_weak(leaf) or is_truth(leaf)):
            return (
                (leaf.shape, leaf.dtype, "number") if _is_number(leaf) else (leaf.shape, leaf.dtype)
            )
        return leaf.shape, leaf.dtype, "weak"
    if kind is int and not -(2**63) <= leaf < 2**63:
        raise ArgumentError(
            f"jit: {where} is the integer {leaf}, expected one that fits into 64 bits; pass a "
            "float, or name it in static_argnums or static_argnames"
        )
    if kind in _NUMBERS:
        return (kind,)
    needed = f"jit: {where} is of type {kind.__name__}, expected arrays, tensors, numbers or "
    advice = where.advice if isinstance(where, containers.Place) else ""
    raise DTypeError(f"{needed}containers of them. {_instead_of(kind)}{advice}")


def _is_number(leaf: Any) -> bool:
    """Whether it is a tensor of which `+=` makes a new one."""
    return isinstance(leaf, Tensor) and not leaf.shape and not is_place(leaf)


def numbers_among(leaves: Sequence[Any]) -> frozenset[int]:
    """The places of the leaves that are tensors of which `+=` makes new ones."""
    return frozenset([n for n, leaf in enumerate(leaves) if _is_number(leaf)])


def _instead_of(kind: type) -> str:
    """Advice for an object that cannot be an argument, which does not lead to another error."""
    if kind.__module__.startswith("scipy.sparse"):
        return "Pass gt.scipy.sparse.from_scipy(a), which is a container of arrays"
    if kind.__hash__ is None:
        return (
            "Pass what it holds as arguments, or use it as a variable from outside of the "
            "function; as a static argument it would have to be hashable"
        )
    return "Name it in static_argnums or static_argnames if the code depends on it"


def _check_plain(kind: type, where: str | containers.Place) -> None:
    """Refuse arrays that compute differently, such as masked arrays and np.matrix."""
    if any(
        getattr(kind, name) is not getattr(np.ndarray, name)
        for name in ("__array_ufunc__", "__add__", "__mul__")
    ):
        raise DTypeError(
            f"jit: {where} is a {kind.__name__}, which computes by rules of its own, expected a "
            "plain array; use np.asarray, or filled() for a masked array"
        )


def _is_weak(leaf: Any) -> bool:
    """Whether it is a Python number in a function that is being traced."""
    return isinstance(leaf, Tensor) and isinstance(leaf.value, Abstract) and leaf.value.weak


def leaf_aval(leaf: Any) -> Aval:
    """A leaf as it is traced: in native byte order, Python numbers weak."""
    aval = aval_of(leaf)
    return Aval(aval.shape, aval.dtype.newbyteorder("="), weak=aval.weak or _is_weak(leaf))


# ---- for the native entry point -----------------------------------------------------------------


def argument_spec(value: Any) -> Spec | None:
    """The spec the native entry point checks an argument against; None if it cannot."""
    return _spec(value, _argument_leaf)


def result_spec(structure: containers.Structure, count: int) -> Spec | None:
    """The containers of the results for the native entry point; None if it cannot make them."""
    results = containers.unflatten(structure, list(map(ResultLeaf, range(count))))
    return _spec(results, lambda leaf: leaf if type(leaf) is ResultLeaf else None)


def _spec(value: Any, leaf_spec: Callable[[Any], Spec | None]) -> Spec | None:
    """The spec of a value, given those of its leaves; None if one of these is None."""
    kind = type(value)
    if value is None:
        return StaticLeaf(None)
    if kind is dict:
        if not all(type(key) is str for key in value):
            return None
        # Leaves of dicts are in the order of the sorted keys.
        keys = tuple(sorted(value))
        items = [_spec(value[key], leaf_spec) for key in keys]
    elif kind is tuple or kind is list:
        items = [_spec(item, leaf_spec) for item in value]
    else:
        return leaf_spec(value)
    if any(item is None for item in items):
        return None
    if kind is dict:
        return DictSpec(keys, tuple(items), tuple(value))  # type: ignore[arg-type]
    return (TupleSpec if kind is tuple else ListSpec)(tuple(items))  # type: ignore[arg-type]


def _argument_leaf(value: Any) -> Spec | None:
    kind = type(value)
    if kind in (float, int, bool):
        return NumberLeaf(kind)
    try:
        # Tensors are taken apart in Python; arrays of the same shape in their place are not.
        if kind is np.ndarray or isinstance(value, Tensor):
            return ArrayLeaf(value.dtype.newbyteorder("="), value.shape)
        return ScalarLeaf(value.dtype) if isinstance(value, np.generic) else None
    except DTypeError:
        return None
