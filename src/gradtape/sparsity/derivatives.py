"""`gt.sparse_jacobian`, `gt.sparse_hessian`, and the patterns they are computed by.

A call traces the function, finds the pattern, colours it and compiles the sweeps, once for each
form of the arguments. Later calls only check that the pattern still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import function_and_argnums
from gradtape.core.portable import Transformed
from gradtape.core.recent import Recent
from gradtape.core.state import current, mode_keys
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError
from gradtape.graph.known_values import in_trace, is_differentiated, is_unknown
from gradtape.ops.sparse.arrays import SparseArray
from gradtape.sparsity.form import Form, Request, taken
from gradtape.sparsity.pattern import SparsityPattern
from gradtape.sparsity.plan import MODES, SparsePlan

# The most forms of arguments a function keeps patterns and code for.
_MOST_FORMS = 64


class SparseDerivative(Transformed):
    """A function that computes a sparse Jacobian or Hessian; see `gt.sparse_jacobian`."""

    __slots__ = ("_forms", "_request")

    def __init__(
        self, request: Request, transform: Callable[..., Any], options: dict[str, Any]
    ) -> None:
        self._request = request
        self._forms: Recent[Form] = Recent()
        super().__init__(self._call, transform, (request.function, request.argnum), options)

    def plan(self, *args: Any, **kwargs: Any) -> SparsePlan:
        """Say how the matrix is computed for arguments: its pattern, and the sweeps it takes.

        Args:
            *args: Arguments of the function.
            **kwargs: Its keyword arguments.

        Returns:
            A plan to be printed, with the attributes `forward` and `reverse`, the numbers of
            sweeps, `columns` and `rows`, the sweep that each is part of, and `pattern`.

        >>> def f(x):
        ...     return x[1:] * x[:-1]
        >>> print(gt.sparse_jacobian(f).plan(np.ones(1000)))
        sparse_jacobian
        forward sweeps: 2 for 1000 columns
        pattern of 999 × 1000 with 1998 places (0.2 %); no dense blocks
        """
        form, values = self._prepared(args, kwargs, draws=False)
        return form.ready(values).plan

    def _prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], *, draws: bool
    ) -> tuple[Form, list[Any]]:
        """The form of the arguments, and the values of the inputs of its graph."""
        call = taken(self._request, args, kwargs)
        # Fewer values are known of arguments that are batched, and in a function that is traced;
        # those of further arguments are not used if they are differentiated.
        leaves = call.given.leaves
        unknown = tuple([is_unknown(leaf) for leaf in leaves])
        further = tuple(
            [n not in call.chosen and is_differentiated(leaf) for n, leaf in enumerate(leaves)]
        )
        key = (call.given.key, unknown, further, in_trace(), mode_keys(current().rewriting))
        form = self._forms.get(key)
        if form is None or form.outdated:
            # No lock is held: the function may itself wait for another thread.
            new = Form(self._request, call)
            form = self._forms.put(key, new, most=_MOST_FORMS, instead=form)
        return form, form.values(call.given.leaves, draws=draws)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        form, values = self._prepared(args, kwargs, draws=True)
        ready = form.ready(values)
        data, *aux = ready.compiled(*ready.plan.colours, *values)
        made = _matrix(data, ready.plan)
        return (made, containers.unflatten(form.aux, aux)) if self._request.has_aux else made


def _matrix(data: Any, plan: SparsePlan) -> Any:
    """The matrix of the numbers: SciPy's if they are an array, ours if they are a tensor."""
    pattern = plan.pattern
    if isinstance(data, Tensor):
        return SparseArray(data, *pattern.places, pattern.shape, False)
    import scipy.sparse

    if data.dtype.itemsize < 4:  # SciPy does not compute with half floats
        data = data.astype(np.float32)
    indices, indptr = (array.copy() for array in (pattern.matrix.indices, pattern.matrix.indptr))
    made = scipy.sparse.csr_array((data, indices, indptr), shape=pattern.shape)
    made.has_canonical_format = True
    return made


def _checked(name: str, function: Any, argnums: Any) -> tuple[Callable[..., Any], int]:
    """The function and the argument, of which there is one."""
    function, argnum = function_and_argnums(function, argnums, name)
    if not isinstance(argnum, int):
        raise ArgumentError(
            f"{name}: got argnums={argnums!r}, expected the position of one argument; pass several "
            "arrays as one argument, in a tuple or dict"
        )
    return function, argnum


def sparse_jacobian(
    function: Callable[..., Any],
    argnums: int = 0,
    *,
    pattern: Any = None,
    mode: str = "auto",
    has_aux: bool = False,
) -> SparseDerivative:
    """Return a function that computes the Jacobian as a sparse matrix, in a few sweeps.

    The pattern of the Jacobian is found by tracing the function; columns that have no row in
    common, or rows that have no column in common, are then computed together, in one compiled pass.

    Args:
        function: The function to differentiate; returns one array, whose elements in C order are
            the rows. It is traced as by `gt.jit`, and must not look at values.
        argnums: The position of the argument to differentiate by: an array, whose elements in C
            order are the columns, or nested containers of arrays, one after the other.
        pattern: Where elements may be other than zero, if it is not to be found: a matrix of
            `scipy.sparse`, an array of truth values, or what `gt.jacobian_sparsity` returns. It is
            checked at each call by products with a random vector, which takes four sweeps more.
        mode: The direction of the sweeps: "forward" (groups of columns), "reverse" (groups of
            rows), "mixed" (dense rows or columns apart from all else), or "auto", whichever takes
            the fewest.
        has_aux: Whether the function returns `(result, aux)`; the result is then `(matrix, aux)`.

    Returns:
        A function of the same arguments. Arrays in, a `scipy.sparse.csr_array` out, of float32 for
        half floats; tensors in, a `SparseArray` with differentiable numbers. Its method `plan`,
        with the same arguments, says how the matrix is computed.

    Raises:
        PatternError: The pattern given lacks a place, or one found is so large that it is not
            sparse.
        ConversionError: The function looks at values of its arguments.

    >>> J = gt.sparse_jacobian(lambda x: x[1:] * x[:-1])
    >>> J(np.array([1.0, 2.0, 3.0])).toarray()
    array([[2., 1., 0.],
           [0., 3., 2.]])
    >>> J.plan(np.ones(1000)).forward
    2
    """
    function, argnum = _checked("sparse_jacobian", function, argnums)
    if mode not in MODES:
        listed = ", ".join(map(repr, MODES))
        raise ArgumentError(f"sparse_jacobian: got mode={mode!r}, expected one of {listed}")
    request = Request("sparse_jacobian", function, argnum, False, mode, pattern, has_aux)
    options = {"pattern": pattern, "mode": mode, "has_aux": has_aux}
    return SparseDerivative(request, sparse_jacobian, options)


def sparse_hessian(
    function: Callable[..., Any],
    argnums: int = 0,
    *,
    pattern: Any = None,
    has_aux: bool = False,
) -> SparseDerivative:
    """Return a function that computes the Hessian as a sparse matrix, by a few products.

    The pattern is found by tracing the gradient. As the matrix is symmetric, columns share a
    product with a vector if each of their elements, or its mirror image, can be told from it.

    Args:
        function: The function to differentiate; returns a scalar. It is traced as by `gt.jit`, and
            must not look at values.
        argnums: The position of the argument to differentiate by: an array, whose elements in C
            order are rows and columns, or nested containers of arrays, one after the other.
        pattern: Where elements may be other than zero, as for `gt.sparse_jacobian`; one half of it
            is enough.
        has_aux: Whether the function returns `(result, aux)`; the result is then `(matrix, aux)`.

    Returns:
        A function of the same arguments, as for `gt.sparse_jacobian`.

    Raises:
        PatternError: The pattern given lacks a place, or one found is so large that it is not
            sparse.
        ConversionError: The function looks at values of its arguments.

    >>> H = gt.sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))
    >>> H(np.array([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """
    function, argnum = _checked("sparse_hessian", function, argnums)
    request = Request("sparse_hessian", function, argnum, True, "auto", pattern, has_aux)
    return SparseDerivative(request, sparse_hessian, {"pattern": pattern, "has_aux": has_aux})


def jacobian_sparsity(
    function: Callable[..., Any], argnums: int = 0
) -> Callable[..., SparsityPattern]:
    """Return a function that finds where the Jacobian may be other than zero, from one trace.

    The pattern holds for all values of the argument; values of other arguments and of captured
    arrays count, as those of an index do. Nothing is computed but such values.

    Args:
        function: The function to differentiate, as for `gt.sparse_jacobian`.
        argnums: The position of the argument to differentiate by.

    Returns:
        A function of the same arguments that gives the pattern: `matrix`, a boolean matrix of
        `scipy.sparse`, `shape`, `nnz`, and `blocks`, the operations that were taken as dense;
        `print` lists them, with their lines and the reasons.

    >>> gt.jacobian_sparsity(lambda x: np.cumsum(x))(np.ones(3)).toarray()
    array([[ True, False, False],
           [ True,  True, False],
           [ True,  True,  True]])
    >>> print(gt.jacobian_sparsity(lambda x: np.sort(x)[:1])(np.ones(3)))
    pattern of 1 × 3 with 3 places (100 %); dense blocks:
      sort at ...: all elements along its axis are taken to depend on each other
    """
    return _finding("jacobian_sparsity", jacobian_sparsity, function, argnums)


def hessian_sparsity(
    function: Callable[..., Any], argnums: int = 0
) -> Callable[..., SparsityPattern]:
    """Return a function that finds where the Hessian may be other than zero, from one trace.

    Args:
        function: The function to differentiate; returns a scalar.
        argnums: The position of the argument to differentiate by.

    Returns:
        A function of the same arguments that gives the pattern, as for `gt.jacobian_sparsity`.

    >>> gt.hessian_sparsity(lambda x: np.sum(x[1:] * x[:-1]) + np.sum(x))(np.ones(3)).toarray()
    array([[False,  True, False],
           [ True, False,  True],
           [False,  True, False]])
    """
    return _finding("hessian_sparsity", hessian_sparsity, function, argnums)


def _finding(
    name: str, transform: Any, function: Any, argnums: Any
) -> Callable[..., SparsityPattern]:
    function, argnum = _checked(name, function, argnums)
    request = Request(name, function, argnum, name == "hessian_sparsity")

    def find(*args: Any, **kwargs: Any) -> SparsityPattern:
        call = taken(request, args, kwargs)
        form = Form(request, call)
        return form.find(form.values(call.given.leaves, draws=False)).pattern

    return Transformed(find, transform, (function, argnum), {})
