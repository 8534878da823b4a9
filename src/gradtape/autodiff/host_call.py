"""Calls of Python functions that gradtape cannot see into: C libraries, solvers, data bases."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import as_function
from gradtape.autodiff.custom_run import UNSURE, Rule, Run, frozen, is_static
from gradtape.core.aval import Aval, aval_of, is_extended_float, is_numeric
from gradtape.core.lowering import Composite
from gradtape.core.nested import unshell
from gradtape.core.state import checked_flag
from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError, DTypeError, ShapeError, a_type

# Kinds of dtype that Python numbers of a kind may become.
_TAKEN_BY = {bool: "b", int: "iufc", float: "fc", complex: "c"}


def host_call(
    f: Callable[..., Any],
    result_like: Any,
    *args: Any,
    vjp: Rule | None = None,
    jvp: Rule | None = None,
    batch: Callable[..., Any] | None = None,
    deterministic: bool = False,
) -> Any:
    """Call a Python function on plain NumPy arrays, with derivatives by rules that come with it.

    It is for functions that take no tensors, such as `scipy.optimize.brentq` or those of a C
    library. In a compiled function the call is a step of its own between compiled parts: `f` runs
    at each call, also if nothing uses its result, and calls that do not depend on each other may
    run in any order. `gt.jvp` of a compiled function calls it twice, for value and tangent.

    Args:
        f: The function. It gets read-only NumPy arrays in place of arrays, tensors and floats;
            integers, and what is no number, are passed as they are.
        result_like: What it returns, as to containers, shapes and dtypes: arrays, tensors, floats,
            or anything with a `shape` and a `dtype`. The values are not used.
        *args: Its arguments, which may be nested containers.
        vjp: The reverse-mode rule `vjp(ct, out, *args)`: a tuple with one cotangent per argument,
            as for `gt.custom_vjp`. Derivatives of second order follow if it is written with
            functions that have derivatives.
        jvp: The forward-mode rule `jvp(tangents, out, *args)`: the tangent of the result. It is
            linear in the tangents; without a `vjp`, reverse mode follows from it.
        batch: The function for a whole batch under `gt.vmap`: arrays have one axis more, in front,
            and so do the results. Without it, `f` is called for each element of the batch.
        deterministic: Whether `f` does the same whenever its arguments are the same, as do its
            rules; `gt.DeterministicMode.Strict` asks for that.

    Returns:
        What `f` returns, as arrays or tensors.

    Raises:
        ShapeError: `f` returned other containers or shapes than `result_like` has.
        DTypeError: `f` returned another dtype, or `result_like` is not made of numbers.
        NotDifferentiableError: A derivative is asked for that there is no rule for.

    >>> from scipy.optimize import brentq
    >>> def cube_root(a):
    ...     solve = lambda a: brentq(lambda x: x**3 - a, 0.0, 100.0)
    ...     # x³ = a, so 3x²·dx = da
    ...     return gt.host_call(solve, 0.0, a, vjp=lambda ct, x, a: (ct / (3 * x**2),))
    >>> gt.grad(cube_root)(8.0).round(6), gt.grad(gt.grad(cube_root))(8.0).round(6)
    (np.float64(0.083333), np.float64(-0.006944))
    >>> gt.vmap(gt.jit(cube_root))(np.array([1.0, 8.0, 27.0])).round(6)
    array([1., 2., 3.])
    """
    as_function(f, "host_call")
    for rule in (vjp, jvp, batch):
        if rule is not None:
            as_function(rule, "host_call")
    name = f"host_call of {getattr(f, '__name__', type(f).__name__)}"
    likes, out_structure = containers.flatten(result_like)
    avals = [_aval_like(like, name) for like in likes]
    leaves, structure = containers.flatten(args)
    static = {n: leaf for n, leaf in enumerate(leaves) if is_static(leaf)}
    run = HostRun(name, f, vjp, jvp, structure, static)
    run.unsure = None if checked_flag("host_call", "deterministic", deterministic) else UNSURE
    run.returns(avals, out_structure, batch)
    return run.call([leaf for n, leaf in enumerate(leaves) if n not in static])


class HostRun(Run):
    """One call of a function that runs on arrays only, whose results are known beforehand.

    Attributes:
        avals: The shapes and dtypes of the results.
        batch: The function for a batch, or None to call it for each element.
    """

    kind = "host"
    effect: str | None = "host"

    def returns(
        self,
        avals: Sequence[Aval],
        structure: containers.Structure,
        batch: Callable[..., Any] | None,
    ) -> None:
        """Say what the function returns, and how a batch is computed."""
        self.avals, self.batch = tuple(avals), batch
        self.out_structure = structure

    def _advice(self, which: str) -> str:
        return f"give it one by {which}="

    def _lowering(self) -> Composite | None:
        return None

    def _identity(self) -> tuple[Any, ...]:
        return *super()._identity(), id(self.batch), str(self.avals)

    def _infer(self, *_avals: Any) -> Any:
        return self.avals

    def _evaluate(self, _xp: Any, *leaves: Any) -> Any:
        arrays = frozen([np.asarray(leaf) for leaf in leaves])
        return tuple(self._results(self.function(*self._args(arrays))))

    def _results(self, returned: Any) -> list[Any]:
        """New arrays of what the function returned, checked to be what was said."""
        outs, structure = containers.flatten(returned)
        if structure != self.out_structure:
            raise ShapeError(
                f"{self.name}: got {structure} from the function, expected the containers of "
                f"result_like, {self.out_structure}"
            )
        return [self._result(out, aval) for out, aval in zip(outs, self.avals, strict=True)]

    def _result(self, out: Any, aval: Aval) -> Any:
        value = unshell(out) if isinstance(out, Tensor) else out
        if isinstance(value, Tensor):
            raise ConversionError(
                f"{self.name}: the function returned a recorded tensor, expected arrays; pass "
                "tensors as arguments, by position, or detach() them"
            )
        array = np.array(value)  # its own: the function may keep what it returned
        if array.shape != aval.shape:
            raise ShapeError(
                f"{self.name}: got a result of shape {array.shape}, expected {aval.shape} as in "
                "result_like"
            )
        if array.dtype != aval.dtype:
            kind = "f" if is_extended_float(aval.dtype) else aval.dtype.kind
            if kind not in _TAKEN_BY.get(type(out), ""):
                raise DTypeError(
                    f"{self.name}: got a result of {array.dtype}, expected {aval.dtype} as in "
                    "result_like; convert it in the function, or change result_like"
                )
            array = array.astype(aval.dtype)
        return array

    # ---- batches ---------------------------------------------------------------------------

    def _batched(self, axes: Sequence[Any], args: Any) -> Run:
        along = zip(args, axes, strict=True)
        size = next(aval_of(arg).shape[axis] for arg, axis in along if axis is not None)
        in_axes = tuple(self._placed(axes, dict.fromkeys(self.static)))
        rules = self._batched_rules(in_axes)
        own = iter(axes)
        # None for those that are the same for all, static ones among them.
        count = len(axes) + len(self.static)
        places = [None if n in self.static else next(own) for n in range(count)]

        def looped(*args: Any) -> Any:
            leaves = containers.flatten(args)[0]
            elements = [
                self._evaluate(np, *self._operands(_element(leaves, places, n)))
                for n in range(size)
            ]
            return self._outs(
                [
                    np.stack([out[k] for out in elements])
                    if elements
                    else np.zeros((0, *aval.shape), aval.dtype)
                    for k, aval in enumerate(self.avals)
                ]
            )

        def at_once(*args: Any) -> Any:
            assert self.batch is not None
            leaves = containers.flatten(args)[0]
            moved = [
                leaf if n in self.static else _in_front(leaf, axis, size)
                for n, (leaf, axis) in enumerate(zip(leaves, places, strict=True))
            ]
            return self.batch(*containers.unflatten(self.structure, moved))

        function = looped if self.batch is None else at_once
        run = HostRun(self.name, function, *rules, self.structure, self.static)
        avals = [Aval((size, *aval.shape), aval.dtype) for aval in self.avals]
        run.returns(avals, self.out_structure, None)
        return run

    def _operands(self, leaves: Sequence[Any]) -> list[Any]:
        return [leaf for n, leaf in enumerate(leaves) if n not in self.static]


def _element(leaves: Sequence[Any], axes: Sequence[int | None], number: int) -> list[Any]:
    """The arguments for one element of a batch."""
    return [
        leaf if axis is None else leaf[(slice(None),) * axis + (number,)]
        for leaf, axis in zip(leaves, axes, strict=True)
    ]


def _in_front(leaf: Any, axis: int | None, size: int) -> Any:
    """An argument with the batch along its first axis, repeated if it is the same for all."""
    if axis is None:
        return np.broadcast_to(leaf, (size, *leaf.shape))
    return np.moveaxis(leaf, axis, 0)


def _aval_like(like: Any, name: str) -> Aval:
    """The shape and dtype of a part of `result_like`."""
    try:
        if isinstance(like, complex | float | int):
            like = np.asarray(like)
        aval = Aval(tuple(map(operator.index, like.shape)), np.dtype(like.dtype))
    except (AttributeError, TypeError, ValueError):
        aval = None
    if aval is None or not is_numeric(aval.dtype):
        raise DTypeError(
            f"{name}: got {a_type(like)} in result_like, expected numbers, arrays, or what has a "
            "shape and a dtype"
        )
    return aval
