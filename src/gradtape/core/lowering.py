"""How an op becomes native code: the forms of `Op.lower`.

All but the last two say how to *pull* one element of the result from elements of the operands; the
compiler composes them freely, so that a chain of ops becomes one loop without arrays in between. An
op without a lowering runs its eager forward inside the compiled function.

An expression that has no native form for the dtypes at hand raises `UnsupportedError`; the op then
runs its eager forward too.
"""

from __future__ import annotations

from collections.abc import Callable
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


class Lowering:
    """Base of all forms."""

    __slots__ = ()


class Pointwise(Lowering):
    """out[i] = expression(x[i], y[i], …, **params), operands broadcast against each other."""

    __slots__ = ("expression",)

    def __init__(self, expression: Callable[..., Any]) -> None:
        self.expression = expression


class Elements(Lowering):
    """out[i] = expression(i, x, y, …, **params): `i` are the indices, operands are readers."""

    __slots__ = ("expression",)

    def __init__(self, expression: Callable[..., Any]) -> None:
        self.expression = expression


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


class Contraction(Lowering):
    """A matrix product."""

    __slots__ = ()


class Composite(Lowering):
    """function(*operands, **params), written with other ops, which are compiled in its place."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
