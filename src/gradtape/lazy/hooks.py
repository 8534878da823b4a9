"""Looking at values on their way through a graph, and checking them.

These are ops like others: they run when a target that depends on them is evaluated. On eager
tensors and arrays they run at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.backends import to_numpy
from gradtape.core.batching import batch_in_place, in_front
from gradtape.core.call import call
from gradtape.core.op import EVERY, Facts, Op, infer_like
from gradtape.core.tensor import Tensor, read_only
from gradtape.errors import ArgumentError, FailedAssertionError, a_type
from gradtape.typing import Array, ArrayLike

# ---- hooks --------------------------------------------------------------------------------------


def _hooked(xp: Any, x: Any, hook: Callable[[Any], Any]) -> Any:
    hook(read_only(np.asarray(to_numpy(x))))
    return x


# An op of kind "custom" passes errors of its function on as they are.
_HOOK = Op(
    "hook",
    _hooked,
    infer_like,
    vjps=(lambda ct, _out, _x, hook: ct,),
    jvp=lambda tangents, _out, _x, hook: tangents[0],
    batch=batch_in_place,
    kind="custom",
    aliases=True,
    facts=Facts(layout="same", carries=EVERY),
    effect="hook",
)


def raw_hook(x: ArrayLike, function: Callable[[Any], Any]) -> Array:
    """The same tensor, with a function that is called with its value at each evaluation.

    Args:
        x: A tensor, lazy or not.
        function: Gets the value as a read-only array; what it returns is dropped.

    Returns:
        A tensor to use in place of `x`: the function is called if something that depends on it is
        evaluated.

    Raises:
        ArgumentError: It is not a function.

    >>> seen = []
    >>> def program(ctx):
    ...     x = ctx.placeholder("x", (-1,))
    ...     y = gt.graph.raw_hook(x * 2.0, lambda value: seen.append(value.sum()))
    ...     return (y + 1.0).eval(ctx, {x: [1.0, 2.0]})
    >>> gt.run(program), seen
    (array([3., 5.]), [np.float64(6.0)])
    """
    if not callable(function):
        raise ArgumentError(f"raw_hook: got {a_type(function)}, expected a function of the value")
    return call(_HOOK, (x,), {"hook": function})


def show(x: ArrayLike, label: str = "") -> Array:
    """The same tensor, whose value is printed at each evaluation.

    Args:
        x: A tensor, lazy or not.
        label: What to print before it.

    Returns:
        A tensor to use in place of `x`.

    >>> def program(ctx):
    ...     x = ctx.placeholder("x", (-1,))
    ...     return (x * 2.0).show("doubled").eval(ctx, {x: [1.0, 2.0]})
    >>> _ = gt.run(program)
    doubled [2. 4.]
    """
    return raw_hook(x, functools.partial(_print_value, label))


def show_shape(x: ArrayLike, label: str = "") -> Array:
    """The same tensor, whose shape is printed at each evaluation.

    Args:
        x: A tensor, lazy or not.
        label: What to print before it.

    Returns:
        A tensor to use in place of `x`.

    >>> def program(ctx):
    ...     x = ctx.placeholder("x", (-1, 2))
    ...     return np.sum(x.show_shape("x:")).eval(ctx, {x: np.ones((3, 2))})
    >>> gt.run(program)
    x: (3, 2)
    np.float64(6.0)
    """
    return raw_hook(x, functools.partial(_print_shape, label))


def _print_value(label: str, value: Any) -> None:
    print(*filter(None, [label]), value)


def _print_shape(label: str, value: Any) -> None:
    print(*filter(None, [label]), value.shape)


# ---- order --------------------------------------------------------------------------------------


def _batch_after(op: Op, axes: Sequence[int | None], args: Sequence[Any], params: Any) -> Any:
    return call(op, in_front(args, axes), params), 0


_AFTER = Op(
    "control_dependencies",
    lambda xp, x, *others: x,
    infer_like,
    vjp_each=lambda i, ct, _out, *_inputs: None if i else ct,
    jvp=lambda tangents, _out, *_inputs: tangents[0],
    batch=_batch_after,
    aliases=True,
    facts=Facts(layout="same"),
    effect="order",
)


def control_dependencies(x: ArrayLike, dependencies: Sequence[Any]) -> Array:
    """The same tensor, evaluated only after others have been.

    Args:
        x: A tensor.
        dependencies: Tensors that are evaluated whenever the result is: assertions, hooks.

    Returns:
        A tensor to use in place of `x`. Its derivatives are those of `x`.

    Raises:
        ArgumentError: The dependencies are not in a list.

    >>> def program(ctx):
    ...     x = ctx.placeholder("x", ())
    ...     positive = gt.graph.assert_that(x > 0, "x must be positive")
    ...     return gt.graph.control_dependencies(np.log(x), [positive]).eval(ctx, {x: -1.0})
    >>> gt.run(program)
    Traceback (most recent call last):
        ...
    gradtape.errors.FailedAssertionError: assert_that: x must be positive
    """
    if isinstance(dependencies, Tensor) or not isinstance(dependencies, Sequence):
        raise ArgumentError(
            f"control_dependencies: got {a_type(dependencies)}, expected a list of tensors: "
            "control_dependencies(x, [y])"
        )
    return call(_AFTER, (x, *dependencies), {})


# ---- assertions ---------------------------------------------------------------------------------


def _asserted(xp: Any, condition: Any, message: str) -> Any:
    if not xp.all(condition):
        raise FailedAssertionError(f"assert_that: {message}")
    return condition


_ASSERT = Op(
    "assert_that",
    _asserted,
    infer_like,
    batch=batch_in_place,
    aliases=True,
    facts=Facts(layout="same"),
    effect="assertion",
)


def assert_that(condition: ArrayLike, message: str) -> Array:
    """The same condition, which must hold everywhere when it is evaluated.

    Args:
        condition: A tensor of truth values.
        message: What the error says if it does not hold.

    Returns:
        A tensor to use in place of the condition, or as a dependency of others: see
        `control_dependencies`.

    Raises:
        FailedAssertionError: An element is false; raised where it is evaluated.

    >>> bool(gt.graph.assert_that(np.array(2.0) > 1.0, "must be greater than 1"))
    True
    """
    if not isinstance(message, str):
        raise ArgumentError(f"assert_that: got {a_type(message)}, expected a condition and a text")
    return call(_ASSERT, (condition,), {"message": message})
