"""How an op becomes native code: the forms of `Op.lower`.

The first four say how to *pull* one element of the result from elements of the operands; the
compiler composes them freely, so that a chain of ops becomes one loop without arrays in between. An
op without a lowering runs its eager forward inside the compiled function.

An expression that has no native form for the given dtypes raises `UnsupportedError`; the op then
runs its eager forward too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.scalar import Scalar
from gradtape.errors import GradtapeError


class Reader(Protocol):
    """An operand inside the expression of `Elements`: call it with an index to read an element."""

    aval: Aval

    def __call__(self, *index: Any, inside: Scalar | None = None) -> Scalar:
        """The element at an index, which has one entry per axis.

        Args:
            *index: Expressions or integers.
            inside: Where the index is valid. Elsewhere nothing is read and the value is arbitrary:
                choose another with `scalar.where(inside, …)`.
        """
        ...

    def check(self, value: Scalar, holds: Scalar, message: str, given: Scalar) -> Scalar:
        """The value where a condition holds; elsewhere it is 0, and the call raises.

        Only elements that are computed are checked, not those that nothing reads.

        Args:
            value: The value to use from here on, such as an index.
            holds: The condition it has to meet.
            message: Of the `IndexingError` otherwise: `op: got …, expected …`.
            given: The integer to put in the message for `{}`, from an element that is wrong.
        """
        ...

    def watch(self, value: Scalar) -> Scalar:
        """The value; if any element is not finite, another program takes over the call."""
        ...


class Lowering:
    """Base of all forms."""

    __slots__ = ()


class Pointwise(Lowering):
    """out[i] = expression(x[i], y[i], …, **params), operands broadcast against each other.

    Attributes:
        numbers: Python numbers that are worth compiling for one by one when they are the last
            operand, since there is better code for them.
    """

    __slots__ = ("expression", "numbers")

    def __init__(self, expression: Callable[..., Any], *, numbers: Sequence[float] = ()) -> None:
        self.expression = expression
        self.numbers = tuple(numbers)


class Elements(Lowering):
    """out[i] = expression(i, x, y, …, **params): `i` are the indices, operands are readers.

    Attributes:
        repeats: Whether a smaller operand is repeated along axes, as in broadcasting, rather than
            put beside others: it can then be computed outside the innermost loop.
        often: Whether elements of operands are read for several elements of the result, as by
            overlapping windows: operands that are expensive to compute are then stored in memory.
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
    """Combines elements over the axes `params["axis"]`; `params["keepdims"]` keeps them at size 1.

    Attributes:
        combine: "add", "multiply", "maximum", "minimum", "and", "or".
        element: The values to combine, if not the elements themselves: `element(x[i])`.
    """

    __slots__ = ("combine", "element")

    def __init__(self, combine: str, element: Callable[[Scalar], Scalar] | None = None) -> None:
        self.combine = combine
        self.element = element


class Scan(Lowering):
    """out[k] = x[0] combined with x[1] … x[k], in order, along the axis `params["axis"]`.

    With `params["reverse"]` it begins at the other end. The second operand, if the op has two,
    holds factors: out[k] = factor[k]·out[k − 1] combined with x[k].

    Attributes:
        combine: "add" or "multiply".
    """

    __slots__ = ("combine",)

    def __init__(self, combine: str) -> None:
        self.combine = combine


class Scatter(Lowering):
    """Writes elements to computed places, one after the other in order.

    For all i: place, value = put(i, x, y, …, **params); out[place] = value, or += value.

    Attributes:
        sizes: `sizes(*avals, **params)` gives the sizes of i in two parts. Places may coincide
            along the first axes, and never do along the others.
        put: Gives the index of an element of the result, and a value.
        start: The element of the result at an index beforehand, like an expression of `Elements`;
            None for zeros.
        adds: Whether values are added to those already there.
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


class Terms:
    """What one element of the result is made of, for an op that has no native code.

    Element i depends on `expression(i, k, x, y, …, **params)` for all k, which is written like the
    expression of `Elements`. The sparsity of derivatives is found from it.

    Attributes:
        sizes: `sizes(*avals, **params)` gives the sizes of k.
        expression: A term; it may have any value as long as it reads the right elements.
    """

    __slots__ = ("expression", "sizes")

    def __init__(
        self, sizes: Callable[..., tuple[int, ...]], expression: Callable[..., Scalar]
    ) -> None:
        self.sizes = sizes
        self.expression = expression


class Whole(NamedTuple):
    """What the results of a solver read: all of its operands, for each element of a batch.

    Attributes:
        why: Why nothing better is said, for users.
        results: So many results, the first ones, have derivatives.
        operands: The operands that they depend on.
        axes: For each batch, the outermost one first, its axis in each operand; None for one that
            is the same for all. In results it is the first axis that is left.
    """

    why: str
    results: int
    operands: range = range(sys.maxsize)
    axes: tuple[tuple[int | None, ...], ...] = ()


class Site(Protocol):
    """The place where an op of `Matrices` is lowered: its operands, and how it reports failures."""

    avals: Sequence[Aval]

    def check(
        self,
        value: Scalar,
        holds: Scalar,
        error: type[GradtapeError],
        message: str,
        given: Scalar | int = 0,
    ) -> Scalar:
        """The value where a condition holds; elsewhere it is 0, and the call raises.

        Args:
            value: The value to use from here on.
            holds: The condition.
            error: The class of the error otherwise.
            message: Of the error: `op: got …; problem; remedy`.
            given: The integer to put in the message for `{}`.
        """
        ...


class Memory(Protocol):
    """Matrices in memory, one for each of a stack; called with an index, it reads an element."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __call__(self, *index: Any) -> Scalar:
        """An element of the matrix at hand."""
        ...


class LibrarySite(Protocol):
    """The place where an op of `Matrices` becomes calls of a library, in the order of its methods.

    Attributes:
        avals: The operands.
        results: The results.
        dtype: The dtype of the first result.
    """

    avals: Sequence[Aval]
    results: Sequence[Aval]
    dtype: np.dtype[Any]

    def fill(
        self, shape: tuple[int, ...], element: Callable[..., Scalar], dtype: np.dtype[Any]
    ) -> Memory:
        """New matrices with the elements `element(*index)`."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Memory:
        """New matrices for a routine to write to."""
        ...

    def work(self, size: int, dtype: np.dtype[Any]) -> Memory:
        """Working memory, which all matrices of a stack share."""
        ...

    def call(
        self,
        routine: Any,
        *args: str | int | Memory,
        flops: int,
        failure: tuple[type[GradtapeError], str] | None = None,
        settles: bool = False,
    ) -> None:
        """Call a routine of LAPACK for each matrix.

        Args:
            routine: Its symbol and address.
            *args: Its arguments, without the status.
            flops: The rough number of multiplications and additions.
            failure: The error if the status is above 0, and the message, in which `{}` stands for
                the status less 1.
            settles: Whether another program takes over the call if the status is not 0.
        """
        ...

    def watch(self, value: Scalar) -> Scalar:
        """The value; if any element is not finite, another program takes over the call.

        That program computes the op by its eager forward.
        """
        ...

    def result(self, number: int, element: Callable[..., Scalar]) -> None:
        """Store a result with the elements `element(*index)`."""
        ...

    def combined(
        self,
        count: int,
        terms: Sequence[tuple[str, Callable[[Scalar], Scalar]]],
        results: Callable[..., Sequence[Scalar]],
        dtype: np.dtype[Any],
    ) -> None:
        """Store results that are numbers: `results` of the combined terms.

        Args:
            count: How many terms are combined.
            terms: How they are combined, as in `Reduction`, and `term(k)` for the k-th one.
            results: Gives the results, from what was combined.
            dtype: The dtype it is combined in.
        """
        ...


class Matrices(Lowering):
    """An op on stacks of matrices. Small ones are computed in registers, all elements at once.

    For each matrix of a stack, `small(site, *matrices, **params)` gives nested lists of expressions
    for the results, from nested lists of the elements of its operands. The axes of the stack are
    the first ones, and broadcast. Elements are in the dtype of the first result.

    Attributes:
        small: One result, or a sequence of several; None if no matrices are done so.
        fits: `fits(*avals, **params)` says whether the matrices are so small: the code is as long
            as the number of operations.
        axes: How many axes of an operand belong to a matrix.
        library: `library(site, *operands, **params)` computes matrices that do not fit, by calls of
            a library; None if there is no such way. Operands are readers of the matrix at hand.
        takes: `takes(*avals, **params)` says whether the library does these.
        hopeful: Whether the library leaves some matrices to the eager forward: it is then used in
            programs that another one may take over from.
        columns: Whether columns of the first result come from those of the last operand, one by
            one, and other results not from that operand: there may be any number of columns.
    """

    __slots__ = ("axes", "columns", "fits", "hopeful", "library", "small", "takes")

    def __init__(
        self,
        small: Callable[..., Any] | None = None,
        *,
        fits: Callable[..., bool] = lambda *_avals, **_params: False,
        axes: int = 2,
        columns: bool = False,
        library: Callable[..., None] | None = None,
        takes: Callable[..., bool] | None = None,
        hopeful: bool = False,
    ) -> None:
        self.small = small
        self.fits = fits
        self.axes = axes
        self.columns = columns
        self.library = library
        self.takes = takes
        self.hopeful = hopeful


class Composite(Lowering):
    """function(*operands, **params), written with other ops, which are compiled instead.

    Attributes:
        function: The function.
        graph: Its graph, if it is known already; the op has no parameters then.
    """

    __slots__ = ("function", "graph")

    def __init__(self, function: Callable[..., Any], graph: Any = None) -> None:
        self.function = function
        self.graph = graph
