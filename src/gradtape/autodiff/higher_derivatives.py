"""Derivatives of higher order of functions of numbers, and the Laplacian, by Taylor mode."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_primals, function_and_argnums, selected
from gradtape.autodiff.forward import ones_like
from gradtape.autodiff.jet import MOST_DERIVATIVES, jet
from gradtape.autodiff.transforms import vmap
from gradtape.core.aval import aval_of
from gradtape.core.portable import Transformed
from gradtape.errors import ArgumentError, DTypeError, a_type
from gradtape.ops.reduce import sum as sum_of

Argnums = int | Sequence[int]


def nth_derivative(function: Callable[..., Any], n: int, argnum: int = 0) -> Callable[..., Any]:
    """Return a function that computes the n-th derivative with respect to a number.

    It is found by one pass of Taylor mode, in a time that grows with the square of n.

    The argument may be an array if the function treats each element by itself, as `np.sin` does:
    the result is then the n-th derivative at each element. Of any other function of an array it is
    the derivative as all elements grow at the same rate; `gt.jet` takes other directions.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        n: The order of the derivative; 0 is the function itself.
        argnum: Which positional argument to differentiate with respect to.

    Returns:
        A function of the same arguments.

    Raises:
        ArgumentError: `n` is not an integer from 0 to 170, or there is no such argument.
        DTypeError: The argument is not floating or complex.

    >>> gt.nth_derivative(lambda x: x**5, 3)(1.0)  # 5·4·3·x²
    np.float64(60.0)
    >>> gt.nth_derivative(np.exp, 4)(np.array([0.0, 1.0]))
    array([1.        , 2.71828183])
    """
    function, place = function_and_argnums(function, argnum, "nth_derivative")
    try:
        order = operator.index(n)
    except TypeError:
        order = -1
    if not 0 <= order <= MOST_DERIVATIVES:
        raise ArgumentError(
            f"nth_derivative: got n={n!r}, expected the order of the derivative, an integer from 0 "
            f"to {MOST_DERIVATIVES}"
        )
    if not isinstance(place, int):
        raise ArgumentError(
            f"nth_derivative: got argnum={argnum!r}, expected the position of one argument; use "
            "gt.mixed_derivative for several"
        )

    def derivative(*args: Any, **kwargs: Any) -> Any:
        (chosen,) = selected(place, len(args), "nth_derivative")
        return _along("nth_derivative", function, order, chosen)(*args, **kwargs)

    return Transformed(derivative, nth_derivative, (function, order, place), {})


def mixed_derivative(function: Callable[..., Any], argnums: Sequence[int]) -> Callable[..., Any]:
    """Return a function that computes a mixed partial derivative with respect to numbers.

    Each argument that is named takes one pass of Taylor mode, within those of the others. Arguments
    may be arrays as for `nth_derivative`.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: The positional arguments, each as often as to differentiate by it: `(0, 1, 1)` for
            ∂³f/∂x₀∂x₁².

    Returns:
        A function of the same arguments.

    Raises:
        ArgumentError: There is no such argument.
        DTypeError: An argument is not floating or complex.

    >>> gt.mixed_derivative(lambda x, y: x**2 * np.exp(y), (0, 1, 1))(3.0, 0.0)  # 2x·exp(y)
    np.float64(6.0)
    """
    function, places = function_and_argnums(function, argnums, "mixed_derivative")
    places = (places,) if isinstance(places, int) else places

    def derivative(*args: Any, **kwargs: Any) -> Any:
        chosen = [selected(n, len(args), "mixed_derivative")[0] for n in places]
        made = function
        for n in sorted(set(chosen)):
            made = _along("mixed_derivative", made, chosen.count(n), n)
        return made(*args, **kwargs)

    return Transformed(derivative, mixed_derivative, (function, places), {})


def _along(name: str, function: Callable[..., Any], order: int, place: int) -> Callable[..., Any]:
    """The derivative of a function as all elements of an argument grow at the rate 1."""

    def derivative(*args: Any, **kwargs: Any) -> Any:
        values, structure = as_primals(args[place], name, f"argument {place}")[1:]
        if structure is not containers.SINGLE:
            raise ArgumentError(
                f"{name}: argument {place} is {a_type(args[place])}, expected a number or an "
                "array; use gt.jet for a direction in a container"
            )
        if not order:
            return function(*args, **kwargs)

        def of_one(x: Any) -> Any:
            return function(*args[:place], x, *args[place + 1 :], **kwargs)

        return jet(of_one, (args[place],), ([ones_like(values[0]), *[None] * (order - 1)],))[1][-1]

    return derivative


def laplacian(function: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the sum of all unmixed second derivatives, Σ ∂²f/∂x_i².

    They are the second derivatives along all coordinates, found in one batched pass of Taylor mode:
    the trace of the Hessian, without the Hessian.

    Args:
        function: The function to differentiate; returns arrays or nested containers.
        argnums: Which positional argument(s) the coordinates are in: arrays or containers of them.

    Returns:
        A function of the same arguments, whose results have the form of the function's.

    Raises:
        ArgumentError: `argnums` are not positions of arguments.
        DTypeError: An argument is not real.

    >>> gt.laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))  # Σ 6x
    np.float64(18.0)
    >>> gt.laplacian(np.sin)(np.array([0.0, np.pi / 2]))
    array([ 0., -1.])
    """
    function, argnums = function_and_argnums(function, argnums, "laplacian")

    def trace(*args: Any, **kwargs: Any) -> Any:
        chosen = selected(argnums, len(args), "laplacian")
        values, structure = as_primals([args[n] for n in chosen], "laplacian", "arguments")[1:]
        for value in values:
            if aval_of(value).dtype.kind == "c":
                raise DTypeError(
                    f"laplacian: got {aval_of(value)}, expected real arguments; make it a function "
                    "of the real and the imaginary part"
                )

        def of_leaves(*leaves: Any) -> Any:
            full = list(args)
            for n, part in zip(chosen, containers.unflatten(structure, list(leaves)), strict=True):
                full[n] = part
            return function(*full, **kwargs)

        def second(*directions: Any) -> Any:
            return jet(of_leaves, values, [[v, None] for v in directions])[1][1]

        along_all = vmap(second)(*_coordinates(values))
        return containers.map_leaves(lambda leaf: sum_of(leaf, axis=0), along_all)

    return Transformed(trace, laplacian, (function, argnums), {})


def _coordinates(values: Sequence[Any]) -> list[Any]:
    """The unit vectors of the space that some arrays are in together, stacked, for each array."""
    sizes = [math.prod(aval_of(value).shape) for value in values]
    rows, found, start = np.eye(sum(sizes)), [], 0
    for value, size in zip(values, sizes, strict=True):
        part = rows[:, start : start + size].astype(value.dtype)
        found.append(part.reshape(len(rows), *aval_of(value).shape))
        start += size
    return found
