"""How an op becomes native code: the forms of `Op.lower`.

The first four say how to *pull* one element of the result from elements of the operands; the
compiler composes them freely, so that a chain of ops becomes one loop without arrays in between. An
op without a lowering runs its eager forward inside the compiled function.

An expression that has no native form for the dtypes at hand raises `UnsupportedError`; the op then
runs its eager forward too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gradtape.core.aval import Aval
from gradtape.core.scalar import Scalar


class Reader(Protocol):
    """An operand inside the expression of `Elements`: call it with an index to read an element."""

    aval: Aval

    def __call__(self, *index: Any, inside: Scalar | None = None) -> Scalar:
        """The element at an index, which has one entry per axis.

        Args:
            *index: Expressions or integers.
            inside: Where the index is valid. Elsewhere nothing is read and the value means nothing:
                choose another with `scalar.where(inside, …)`.
        """
        ...

    def check(self, value: Scalar, holds: Scalar, message: str, given: Scalar) -> Scalar:
        """The value where a condition holds; elsewhere it is 0, and the call raises.

        Only elements that are computed are checked: not those that nothing reads.

        Args:
            value: What is used further, such as an index.
            holds: What has to be true of it.
            message: Of the `IndexingError` otherwise: `op: got …, expected …`.
            given: The integer that stands in the message for `{}`, of an element that is wrong.
        """
        ...

    def watch(self, value: Scalar) -> Scalar:
        """The value; if it is not finite somewhere, the call is left to another program."""
        ...


class Lowering:
    """Base of all forms."""

    __slots__ = ()


class Pointwise(Lowering):
    """out[i] = expression(x[i], y[i], …, **params), operands broadcast against each other.

    Attributes:
        numbers: For which Python numbers in place of the last operand there is better code, so that
            it is worth compiling for each of them.
    """

    __slots__ = ("expression", "numbers")

    def __init__(self, expression: Callable[..., Any], *, numbers: Sequence[float] = ()) -> None:
        self.expression = expression
        self.numbers = tuple(numbers)


class Elements(Lowering):
    """out[i] = expression(i, x, y, …, **params): `i` are the indices, operands are readers.

    Attributes:
        repeats: Whether a smaller operand is repeated along axes, as by broadcasting, and not put
            beside others: it can then be computed outside of the innermost loop.
        often: Whether elements of operands are read for several elements of the result, as windows
            that overlap do: what is dear to compute is then in memory.
    """

    __slots__ = ("expression", "often", "repeats")

    def __init__(
        self, expression: Callable[..., Any], *, repeats: bool = False, often: bool = False
    ) -> None:
        self.expression = expression
        self.repeats = repeats
        self.often = often


class Relabel(Lowering):
    """The elements of the first operand in the same order under another shape: reshape, copy."""

    __slots__ = ()


class Reduction(Lowering):
    """Combines elements over the axes `params["axis"]`; `params["keepdims"]` keeps those at size 1.

    Attributes:
        combine: "add", "multiply", "maximum", "minimum", "and", "or".
        element: What is combined, if not the element itself: `element(x[i])`.
    """

    __slots__ = ("combine", "element")

    def __init__(self, combine: str, element: Callable[[Scalar], Scalar] | None = None) -> None:
        self.combine = combine
        self.element = element


class Scan(Lowering):
    """out[k] = x[0] combined with x[1] … x[k], in order, along the axis `params["axis"]`.

    With `params["reverse"]` it begins at the other end. The second operand, if the op has two, are
    factors: out[k] = factor[k]·out[k − 1] combined with x[k].

    Attributes:
        combine: "add" or "multiply".
    """

    __slots__ = ("combine",)

    def __init__(self, combine: str) -> None:
        self.combine = combine


class Scatter(Lowering):
    """Elements that go to places which are computed, one after the other in order.

    For all i: place, value = put(i, x, y, …, **params); out[place] = value, or += value.

    Attributes:
        sizes: `sizes(*avals, **params)` gives those of i in two parts. Along the first axes, places
            may coincide; the others are such that different ones never do.
        put: Gives the index of an element of the result, and a value.
        start: The element of the result at an index before that, like an expression of `Elements`;
            None for zeros.
        adds: Whether values are added to what is there.
    """

    __slots__ = ("adds", "put", "sizes", "start")

    def __init__(
        self,
        sizes: Callable[..., tuple[tuple[int, ...], tuple[int, ...]]],
        put: Callable[..., tuple[Sequence[Any], Scalar]],
        start: Callable[..., Scalar] | None = None,
        *,
        adds: bool = False,
    ) -> None:
        self.sizes = sizes
        self.put = put
        self.start = start
        self.adds = adds


class Contraction(Lowering):
    """A matrix product."""

    __slots__ = ()


class Composite(Lowering):
    """function(*operands, **params), written with other ops, which are compiled in its place."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
