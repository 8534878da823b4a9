"""Checking a gradient by differences, with a report: `NumericalChecker`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.errors import DTypeError
from gradtape.ops.checks import check_choice
from gradtape.tools.differences import compare, directional, jacobian, method_named
from gradtape.tools.flat import FlatFunction, flatten

# A Jacobian with at most this many entries is compared in full, others along random directions.
_FULL = 2**14
_DIRECTIONS = 8
_OF_SYMMETRIC = (
    ". The two agree for symmetric changes of the matrix: for a function of symmetric matrices, "
    "such as eigh or cholesky, check lambda a: f((a + a.T) / 2)"
)


@dataclass(frozen=True)
class GradientReport:
    """The findings of a numerical check.

    Attributes:
        is_valid: Whether every element is within the tolerance.
        max_error: The largest absolute error.
        worst_index: The element of `analytic` that is worst against its tolerance; None if there
            are no elements.
        analytic: The result of automatic differentiation: the Jacobian, with the axes of the output
            before those of the argument (one flat axis for each of them that is a container). If
            the Jacobian is large, its products <u, J·v> with random vectors.
        numeric: The same from differences.
        method: The difference formula.
        step: Its relative step.
        rtol: The tolerance relative to `numeric`.
        atol: The tolerance added to that.
    """

    is_valid: bool
    max_error: float
    worst_index: tuple[int, ...] | None
    analytic: Any
    numeric: Any
    method: str
    step: float
    rtol: float
    atol: float

    def __str__(self) -> str:
        if self.worst_index is None:
            return f"gradient valid: it has no elements ({self.method} differences)"
        got, expected = self.analytic[self.worst_index], self.numeric[self.worst_index]
        return (
            f"gradient {'valid' if self.is_valid else 'WRONG'}: max error {self.max_error:.1e}; "
            f"worst at {self.worst_index}: {got} where {self.method} differences give {expected}"
            f"{_OF_SYMMETRIC if self._agrees_on_symmetric() else ''}"
        )

    def _agrees_on_symmetric(self) -> bool:
        """Whether it is wrong, but right along symmetric changes of a matrix."""
        sizes = np.shape(self.analytic)[-2:]
        if self.is_valid or len(sizes) < 2 or sizes[0] != sizes[1]:
            return False
        one, other = (np.asarray(x) + np.swapaxes(x, -1, -2) for x in (self.analytic, self.numeric))
        return np.allclose(one, other, rtol=self.rtol, atol=2 * self.atol)


@dataclass(frozen=True)
class NumericalChecker:
    """Compares gradients with finite differences, including those of custom operations.

    Attributes:
        method: "forward", "central", "higher_order" (fourth order), or "complex_step": exact to
            rounding, for functions that NumPy can compute on complex arguments as well.
        step: Relative step of the differences; None for one that suits the method.
        rtol: Tolerance relative to the derivative; None for one that suits the method.
        atol: Tolerance added to that; the same as `rtol` if None.
        mode: Which derivatives are checked: "reverse" or "forward" mode.

    >>> report = gt.NumericalChecker().check_gradient(lambda x: x**2, np.array([1.0, 2.0]))
    >>> report.is_valid, report.analytic
    (True, array([[2., 0.],
           [0., 4.]]))
    """

    method: str = "central"
    step: float | None = None
    rtol: float | None = None
    atol: float | None = None
    mode: str = "reverse"

    def __post_init__(self) -> None:
        method_named(self.method)
        check_choice("NumericalChecker", ("forward", "reverse"), mode=self.mode)

    def check_gradient(self, function: Callable[[Any], Any], x: Any) -> GradientReport:
        """Check the derivatives of a function of one argument, by the checker's method.

        Args:
            function: A function of an array or a nested container of arrays, returning the same.
            x: The point; checked in double precision, whatever its dtype.

        >>> print(gt.NumericalChecker().check_gradient(lambda x: gt.stop_gradient(x) * x, 3.0))
        gradient WRONG: max error 3.0e+00; worst at (): 3.0 where central differences give 6.0...
        """
        return self._check(function, x, self.method)

    def check_gradient_forward(self, function: Callable[[Any], Any], x: Any) -> GradientReport:
        """Check by one-sided differences: half the evaluations, accurate to 1e-5.

        >>> gt.NumericalChecker().check_gradient_forward(np.exp, np.ones(2)).is_valid
        True
        """
        return self._check(function, x, "forward")

    def check_gradient_central(self, function: Callable[[Any], Any], x: Any) -> GradientReport:
        """Check by central differences.

        >>> gt.NumericalChecker().check_gradient_central(np.exp, np.ones(2)).is_valid
        True
        """
        return self._check(function, x, "central")

    def check_gradient_higher_order(self, function: Callable[[Any], Any], x: Any) -> GradientReport:
        """Check by differences of fourth order.

        >>> gt.NumericalChecker().check_gradient_higher_order(np.exp, np.ones(2)).is_valid
        True
        """
        return self._check(function, x, "higher_order")

    def check_gradient_complex_step(self, function: Callable[[Any], Any], x: Any) -> GradientReport:
        """Check by a complex step.

        Raises:
            ArgumentError: `x` is complex itself, or the function drops imaginary parts.

        >>> report = gt.NumericalChecker().check_gradient_complex_step(np.exp, np.ones(2))
        >>> report.max_error < 1e-15
        True
        """
        return self._check(function, x, "complex_step")

    def _check(self, function: Callable[[Any], Any], x: Any, method: str) -> GradientReport:
        flat = flatten(function, (x,))
        if not flat.inputs.names:
            raise DTypeError(
                f"check_gradient: got {_dtypes(x)}, which have no gradient, expected floating or "
                "complex numbers: use astype(float)"
            )
        difference = method_named(method)
        step = self.step if self.step is not None and method == self.method else difference.step
        rtol = difference.tolerance if self.rtol is None else self.rtol
        atol = rtol if self.atol is None else self.atol
        if flat.inputs.size * flat.outputs.size <= _FULL:
            forward = self.mode == "forward"
            analytic = flat.forward_jacobian() if forward else flat.reverse_jacobian()
            numeric = jacobian(flat, flat.point, method, step)
            shape = _axes(flat.outputs) + _axes(flat.inputs)
            analytic, numeric = analytic.reshape(shape), numeric.reshape(shape)
        else:
            analytic, numeric = self._projections(flat, method, step)
        found = compare(analytic, numeric, rtol, atol)
        return GradientReport(*found, analytic, numeric, method, step, rtol, atol)

    def _projections(self, flat: FlatFunction, method: str, step: float) -> tuple[Any, Any]:
        """<u, J·v> for random unit vectors, by automatic differentiation and by differences."""
        rng = np.random.default_rng(0)
        pull = flat.puller() if self.mode == "reverse" else None
        analytic, numeric = [], []
        for _ in range(_DIRECTIONS):
            u, v = rng.standard_normal(flat.outputs.size), rng.standard_normal(flat.inputs.size)
            u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
            analytic.append(u @ flat.push(v) if pull is None else pull(u) @ v)
            numeric.append(u @ directional(flat, flat.point, v, method, step))
        return np.array(analytic), np.array(numeric)


def _dtypes(x: Any) -> str:
    """The dtypes of all leaves of an argument, for an error."""
    names = {str(getattr(leaf, "dtype", type(leaf).__name__)) for leaf in containers.flatten(x)[0]}
    return f"an argument of {', '.join(sorted(names)) or 'no arrays'}"


def _axes(layout: Any) -> tuple[int, ...]:
    """The shape of a single real array; one flat axis for anything else."""
    if len(layout.shapes) == 1 and not layout.complex[0]:
        return layout.shapes[0]  # type: ignore[no-any-return]
    return (layout.size,)
