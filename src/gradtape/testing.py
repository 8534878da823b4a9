"""Checking derivatives: `check_grads` compares them with differences, and with each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, GradientCheckError, a_type
from gradtape.ops.arguments import as_integer, as_number
from gradtape.tools.differences import Vector, compare, directional, jacobian
from gradtape.tools.flat import FlatFunction, flatten

__all__ = ["check_grads"]

# A Jacobian of up to so many entries is compared in full, a larger one along random directions.
_FULL = 256
# How well <u, Jv> = <Jᵀu, v> holds: both sides are exact but for rounding.
_ADJOINT = 1e-12
_MODES = ("forward", "reverse")


def check_grads(
    function: Callable[..., Any],
    args: Sequence[Any],
    *,
    order: int = 2,
    modes: Sequence[str] = _MODES,
    rtol: float = 1e-7,
    atol: float = 1e-7,
    step: float | None = None,
    entries: int = _FULL,
    directions: int = 2,
) -> None:
    """Check the derivatives of a function at a point, in double precision.

    Forward and reverse mode are compared with central differences of the function, and with each
    other by <u, J·v> = <Jᵀ·u, v>. The derivatives of order n are compared with differences of those
    of order n − 1, in every mix of modes, also with respect to tangents and cotangents.

    Args:
        function: A function of arrays or nested containers of them, returning the same.
        args: The point: its positional arguments. Floating and complex leaves are differentiated
            (in double precision, whatever they come in), all others are constant.
        order: The highest order that is checked.
        modes: Which modes to check and to mix: "forward", "reverse".
        rtol: Tolerance relative to the derivative.
        atol: Tolerance added to that.
        step: Relative step of the differences; the cube root of the machine's precision if None.
        entries: Jacobians of at most so many entries are compared entry by entry, larger ones along
            random directions.
        directions: How many of these, at least one. A wrong rule shows in almost any
            direction; a second one catches an error that the first happens to make small.

    Raises:
        GradientCheckError: A derivative is wrong; says in which mode, with respect to which
            element of which argument, what came and what differences give.

    >>> gt.testing.check_grads(lambda x, y: x * x / y, (np.ones(3), np.array([1.0, 2.0, 3.0])))
    >>> gt.testing.check_grads(lambda x: gt.stop_gradient(x) * x, (np.array([3.0]),))
    Traceback (most recent call last):
    ...
    gradtape.errors.GradientCheckError: forward: d output 0[0] / d argument 0[0] is 3.0; ...
    """
    if not callable(function):
        raise ArgumentError(f"check_grads: got {a_type(function)}, expected a function")
    if not isinstance(modes, Sequence) or any(str(mode) not in _MODES for mode in modes):
        raise ArgumentError(f"check_grads: got modes {modes!r}, expected forward or reverse")
    order = as_integer(order, "check_grads", "order")
    entries = as_integer(entries, "check_grads", "entries")
    directions = as_integer(directions, "check_grads", "directions")
    if directions < 1:
        raise ArgumentError(f"check_grads: got directions={directions}, expected at least 1")
    rtol, atol = (as_number(x, "check_grads", "a tolerance") for x in (rtol, atol))
    step = None if step is None else as_number(step, "check_grads", "step")
    flat = flatten(function, tuple(args) if isinstance(args, tuple | list) else (args,))
    if not flat.inputs.sizes or not flat.outputs.sizes:
        what = "argument" if not flat.inputs.sizes else "output"
        raise ArgumentError(f"check_grads: no {what} is floating or complex: nothing to check")
    check = _Check(tuple(modes), rtol, atol, step, entries, directions, np.random.default_rng(0))
    check.run(flat, order, "")


@dataclass(frozen=True)
class _Check:
    """The settings of a check, and its steps."""

    modes: tuple[str, ...]
    rtol: float
    atol: float
    step: float | None
    entries: int
    directions: int
    rng: np.random.Generator

    def run(self, flat: FlatFunction, order: int, over: str) -> None:
        """Check derivatives up to `order`; `over` says what `flat` is itself a derivative of."""
        if flat.inputs.size * flat.outputs.size <= self.entries:
            self._in_full(flat, over)
        else:
            for _ in range(self.directions):
                self._along_direction(flat, over)
        if order > 1:
            for mode in self.modes:
                layout = flat.inputs if mode == "forward" else flat.outputs
                derivative = flat.derivative(mode, self.rng.standard_normal(layout.size))
                self.run(derivative, order - 1, f" over {mode}{over}")

    def _in_full(self, flat: FlatFunction, over: str) -> None:
        """Every entry of the Jacobian against central differences."""
        expected = jacobian(flat, flat.point, "central", self.step)
        for mode in self.modes:
            got = flat.forward_jacobian() if mode == "forward" else flat.reverse_jacobian()
            result = compare(got, expected, self.rtol, self.atol)
            if not result.close:
                assert result.worst_index is not None
                row, column = result.worst_index
                what = f"d {flat.outputs.name(row)} / d {flat.inputs.name(column)}"
                self._fail(f"{mode}{over}: {what}", got[row, column], expected[row, column])
        if set(self.modes) == set(_MODES):
            u, v = self._random(flat)
            self._adjoint(u, v, flat.push(v), flat.puller()(u), over)

    def _along_direction(self, flat: FlatFunction, over: str) -> None:
        """J·v in forward mode and <Jᵀ·u, v> in reverse mode, for random u and v."""
        u, v = self._random(flat)
        expected = directional(flat, flat.point, v, "central", self.step)
        if "forward" in self.modes:
            tangent = flat.push(v)
            result = compare(tangent, expected, self.rtol, self.atol)
            if not result.close:
                assert result.worst_index is not None
                (row,) = result.worst_index
                what = f"d {flat.outputs.name(row)} along a random direction"
                self._fail(f"forward{over}: {what}", tangent[row], expected[row])
        if "reverse" in self.modes:
            cotangent = flat.puller()(u)
            projection, terms = cotangent @ v, u * expected
            # The error of a sum is the sum of the errors of its terms.
            if not compare(projection, terms.sum(), 0.0, self._sum_tolerance(terms)).close:
                what = "<u, d output> along a random direction"
                self._fail(f"reverse{over}: {what}", projection, terms.sum())
        if set(self.modes) == set(_MODES):
            self._adjoint(u, v, tangent, cotangent, over)

    def _sum_tolerance(self, terms: Vector) -> float:
        return self.atol + self.rtol * float(np.linalg.norm(terms))

    def _adjoint(self, u: Vector, v: Vector, tangent: Vector, cotangent: Vector, over: str) -> None:
        """<u, J·v> = <Jᵀ·u, v>: forward and reverse mode state the same Jacobian."""
        size = np.linalg.norm(u) * np.linalg.norm(tangent)
        size += np.linalg.norm(cotangent) * np.linalg.norm(v)
        # Where derivatives cancel, only rounding is left.
        rounding = 4 * np.finfo(np.float64).eps
        if not abs(u @ tangent - cotangent @ v) <= _ADJOINT * size + rounding:
            raise GradientCheckError(
                f"forward and reverse{over}: <u, Jv> is {u @ tangent} and <Jᵀu, v> is "
                f"{cotangent @ v}, expected equal: the two modes have different rules"
            )

    def _random(self, flat: FlatFunction) -> tuple[Vector, Vector]:
        rng = self.rng
        return rng.standard_normal(flat.outputs.size), rng.standard_normal(flat.inputs.size)

    def _fail(self, what: str, got: float, expected: float) -> None:
        raise GradientCheckError(
            f"{what} is {got}; central differences give {expected} (error "
            f"{abs(got - expected):.1e}, tolerance {self.atol + self.rtol * abs(expected):.1e})"
        )
