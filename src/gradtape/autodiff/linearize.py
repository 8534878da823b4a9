"""`linearize`: a function replaced by its derivative at a point, to be applied many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.autodiff.arguments import as_function, checked
from gradtape.autodiff.reverse import record
from gradtape.errors import ShapeError


def linearize(
    function: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Run a function and return the linear map from tangents of its arguments to its output.

    It is `gt.jvp` with the function run once: each call of the map only goes along what was
    recorded, with the slopes that are there. As for `gt.vjp`, what the function computes under
    `gt.no_grad` counts as a constant.

    Args:
        function: The function to differentiate.
        *primals: Its arguments: arrays, tensors, floats or nested containers of them.
        has_aux: Whether the function returns `(output, aux)`; `aux` is passed on as it is.

    Returns:
        `(output, pushforward)`, with `aux` as third if asked for. `pushforward(*tangents)` takes
        one tangent per argument, returns that of the output, and can be called any number of
        times.

    Raises:
        DTypeError: An argument is not floating or complex.
        ShapeError: The tangents do not have the containers or shapes of the arguments.

    >>> out, pushforward = gt.linearize(lambda x: np.sum(np.sin(x)), np.zeros(3))
    >>> pushforward(np.array([1.0, 2.0, 3.0]))
    np.float64(6.0)
    """
    function = as_function(function, "linearize")
    run = record(function, primals, {}, range(len(primals)), "linearize", has_aux=has_aux)
    arguments, structure = containers.flatten(primals)

    def pushforward(*tangents: Any) -> Any:
        leaves, own = containers.flatten(tangents)
        if own != structure:
            raise _unlike(tangents, primals)
        return run.push(
            [
                checked(t, x, "linearize", containers.Place("tangent", tangents, n), "argument")
                for n, (t, x) in enumerate(zip(leaves, arguments, strict=True))
            ]
        )

    value = run.value(copy=True)
    return (value, pushforward, run.aux) if has_aux else (value, pushforward)


def _unlike(tangents: Sequence[Any], primals: Sequence[Any]) -> ShapeError:
    """The error for tangents that do not have the containers of the arguments."""
    if len(tangents) != len(primals):
        return ShapeError(
            f"linearize: got {len(tangents)} tangent(s) for {len(primals)} argument(s), expected "
            "one per argument"
        )
    given, wanted = ([containers.flatten(one)[1] for one in all_] for all_ in (tangents, primals))
    n = next(n for n, own in enumerate(given) if own != wanted[n])
    return ShapeError(
        f"linearize: tangent {n} is {containers.outline(given[n])}, expected "
        f"{containers.outline(wanted[n])}, the containers of argument {n}, where * is an array or "
        "a number"
    )
