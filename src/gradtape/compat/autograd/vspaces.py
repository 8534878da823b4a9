"""Vector spaces: what gradients of a value look like, by its type.

Arrays and numbers have one, and so do lists, tuples, dicts and named tuples of such. Operations on
vectors are written with operators, so they are differentiable and take tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from gradtape.compat.autograd.util import subvals
from gradtape.core.aval import aval_of, is_extended_float
from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError, UnsupportedError, a_type
from gradtape.ops.cast import conj, real
from gradtape.ops.reduce import sum as sum_of

Maker = Callable[[Any], "VSpace"]


class VSpace:
    """The space of gradients of a value; made by `vspace`.

    A class for another type of value defines `zeros`, `ones`, `standard_basis` and `randn`, which
    make vectors, and `_inner_prod`; and `_add`, `_scalar_mul` and `_covector` if they are not `+`,
    `*` and the vector itself. `register` says which values it is for.

    Attributes:
        iscomplex: Whether vectors are complex.
    """

    mappings: ClassVar[dict[type, Maker]] = {}
    iscomplex = False

    def __init__(self, value: Any) -> None:
        pass

    @classmethod
    def register(cls, value_type: type, vspace_maker: Maker | None = None) -> None:
        """Use this class, or what a function makes of a value, for values of a type."""
        VSpace.mappings[value_type] = cls if vspace_maker is None else vspace_maker

    @property
    def size(self) -> int:
        """How many real numbers a vector is."""
        raise self._missing("size")

    def zeros(self) -> Any:
        """The zero vector."""
        raise self._missing("zeros")

    def ones(self) -> Any:
        """The sum of the standard basis."""
        raise self._missing("ones")

    def standard_basis(self) -> Iterator[Any]:
        """The basis vectors, one after the other."""
        raise self._missing("standard_basis")

    def randn(self) -> Any:
        """A vector of normal random numbers, drawn by NumPy's global generator."""
        raise self._missing("randn")

    def add(self, x_prev: Any, x_new: Any) -> Any:
        """The sum of two vectors."""
        return self._add(x_prev, x_new)

    def mut_add(self, x_prev: Any, x_new: Any) -> Any:
        """The sum of two vectors; None in place of the first is zero. Neither is changed."""
        return self._add(self.zeros() if x_prev is None else x_prev, x_new)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """A vector times a number."""
        return self._scalar_mul(x, a)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The inner product of two vectors, a real number."""
        return self._inner_prod(x, y)

    def covector(self, x: Any) -> Any:
        """The complex conjugate, which turns autograd's cotangents into gradtape's, and back."""
        return self._covector(x)

    def _add(self, x: Any, y: Any) -> Any:
        return x + y

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return x * a

    def _inner_prod(self, _x: Any, _y: Any) -> Any:
        raise self._missing("_inner_prod")

    def _covector(self, x: Any) -> Any:
        return x

    def _missing(self, name: str) -> UnsupportedError:
        return UnsupportedError(f"{type(self).__name__}: has no {name}, which is asked for; add it")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{self.__dict__}"


def vspace(value: Any) -> VSpace:
    """The space of gradients of a value.

    Raises:
        DTypeError: Values of its type have no gradients.

    >>> from gradtape.compat.autograd.extend import vspace
    >>> vspace(np.ones((2, 3))).zeros()
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    if isinstance(value, Tensor):
        return _of_array(value)
    maker = VSpace.mappings.get(type(value))
    if maker is None and isinstance(value, tuple) and hasattr(value, "_fields"):
        maker = NamedTupleVSpace
    if maker is None:
        raise DTypeError(
            f"vspace: got {value!r}, {a_type(value)}, which has no gradient, expected an array, a "
            "float, or a list, tuple or dict of them; write numbers as floats (1.0)"
        )
    return maker(value)


# ---- arrays and numbers -------------------------------------------------------------------------


class ArrayVSpace(VSpace):
    """Real arrays of a shape and dtype; a number is one of shape ()."""

    def __init__(self, value: Any) -> None:
        aval = aval_of(value)
        self.shape, self.dtype = aval.shape, aval.dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def zeros(self) -> Any:
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        return np.ones(self.shape, self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        return self._basis((1,))

    def _basis(self, units: tuple[complex, ...]) -> Iterator[Any]:
        for place in np.ndindex(*self.shape):
            for unit in units:
                vector = self.zeros()
                vector[place] = unit
                yield vector

    def randn(self) -> Any:
        # As in autograd, so that np.random.seed decides.
        drawn = np.random.standard_normal(self.shape)  # noqa: NPY002
        return np.asarray(drawn).astype(self.dtype)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return sum_of(x * y)


class ComplexArrayVSpace(ArrayVSpace):
    """Complex arrays of a shape and dtype, a space over the real numbers."""

    iscomplex = True

    @property
    def size(self) -> int:
        return 2 * super().size

    def ones(self) -> Any:
        return np.full(self.shape, 1 + 1j, self.dtype)

    def standard_basis(self) -> Iterator[Any]:
        return self._basis((1, 1j))

    def randn(self) -> Any:
        return super().randn() + 1j * super().randn()

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return real(sum_of(conj(x) * y))

    def _covector(self, x: Any) -> Any:
        return conj(x)


def _of_array(value: Any) -> VSpace:
    dtype = aval_of(value).dtype
    if dtype.kind == "c":
        return ComplexArrayVSpace(value)
    if dtype.kind not in "fiu" and not is_extended_float(dtype):
        raise DTypeError(f"vspace: got {dtype}, which has no gradient, expected floating numbers")
    return ArrayVSpace(value)


VSpace.register(np.ndarray, _of_array)
for _real in (float, np.longdouble, np.float64, np.float32, np.float16):
    ArrayVSpace.register(_real)
for _complex in (complex, np.clongdouble, np.complex64, np.complex128):
    ComplexArrayVSpace.register(_complex)


# ---- containers ---------------------------------------------------------------------------------


class ContainerVSpace(VSpace):
    """Containers of vectors.

    Attributes:
        shape: The same container with the spaces of its entries.
    """

    def __init__(self, value: Any) -> None:
        self.shape: Any = value
        self.shape = self._map(vspace)

    @property
    def size(self) -> int:
        return sum(vs.size for vs in self._values(self.shape))

    def zeros(self) -> Any:
        return self._map(lambda vs: vs.zeros())

    def ones(self) -> Any:
        return self._map(lambda vs: vs.ones())

    def randn(self) -> Any:
        return self._map(lambda vs: vs.randn())

    def standard_basis(self) -> Iterator[Any]:
        zero = self.zeros()
        for key, vs in self._kv_pairs(self.shape):
            for vector in vs.standard_basis():
                yield self._subval(zero, key, vector)

    def _add(self, x: Any, y: Any) -> Any:
        return self._map(lambda vs, x, y: vs._add(x, y), x, y)

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return self._map(lambda vs, x: vs._scalar_mul(x, a), x)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return sum(self._values(self._map(lambda vs, x, y: vs._inner_prod(x, y), x, y)))

    def _covector(self, x: Any) -> Any:
        return self._map(lambda vs, x: vs._covector(x), x)

    def _values(self, container: Any) -> Iterable[Any]:
        """The entries of a container."""
        raise self._missing("_values")

    def _kv_pairs(self, container: Any) -> Iterable[tuple[Any, Any]]:
        """The entries of a container with their keys."""
        raise self._missing("_kv_pairs")

    def _map(self, function: Callable[..., Any], *containers: Any) -> Any:
        """A function of the entries of the spaces and of some containers."""
        raise self._missing("_map")

    def _subval(self, container: Any, key: Any, value: Any) -> Any:
        """A container with one entry replaced."""
        raise self._missing("_subval")


class SequenceVSpace(ContainerVSpace):
    """Sequences of vectors."""

    seq_type: Callable[..., Any]

    def _values(self, container: Any) -> Iterable[Any]:
        return container  # type: ignore[no-any-return]

    def _kv_pairs(self, container: Any) -> Iterable[tuple[Any, Any]]:
        return enumerate(container)

    def _map(self, function: Callable[..., Any], *containers: Any) -> Any:
        return self.seq_type(map(function, self.shape, *containers))

    def _subval(self, container: Any, key: Any, value: Any) -> Any:
        return self.seq_type(subvals(container, [(key, value)]))


class ListVSpace(SequenceVSpace):
    """Lists of vectors."""

    seq_type = list


class TupleVSpace(SequenceVSpace):
    """Tuples of vectors."""

    seq_type = tuple


class NamedTupleVSpace(SequenceVSpace):
    """Named tuples of vectors, such as the results of `np.linalg.eigh`."""

    def __init__(self, value: Any) -> None:
        self.seq_type = type(value)._make
        super().__init__(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedTupleVSpace) and self.shape == other.shape

    __hash__ = object.__hash__


class DictVSpace(ContainerVSpace):
    """Dicts of vectors."""

    def _values(self, container: Any) -> Iterable[Any]:
        return container.values()  # type: ignore[no-any-return]

    def _kv_pairs(self, container: Any) -> Iterable[tuple[Any, Any]]:
        return container.items()  # type: ignore[no-any-return]

    def _map(self, function: Callable[..., Any], *containers: Any) -> Any:
        return {
            key: function(entry, *(container[key] for container in containers))
            for key, entry in self.shape.items()
        }

    def _subval(self, container: Any, key: Any, value: Any) -> Any:
        return {**container, key: value}


ListVSpace.register(list)
TupleVSpace.register(tuple)
DictVSpace.register(dict)


# ---- sparse vectors -----------------------------------------------------------------------------


class SparseObject:
    """A vector that is mostly zeros, as a rule may return it: what it adds to another one.

    Attributes:
        vs: The space it is of.
        mut_add: Adds it to a vector, which it may change, and returns the sum.
    """

    __slots__ = ("mut_add", "vs")

    def __init__(self, vs: VSpace, mut_add: Callable[[Any], Any]) -> None:
        self.vs, self.mut_add = vs, mut_add

    def dense(self) -> Any:
        """The vector, written out."""
        return self.mut_add(self.vs.zeros())


VSpace.register(SparseObject, lambda sparse: sparse.vs)
