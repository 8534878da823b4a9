"""Derivatives of higher order along a line: `gt.jet` against nested `gt.jvp` and JAX's Taylor mode.

The function is a small network with tanh, exp and products between its layers. The time of Taylor
mode may grow with the square of the order, that of nested forward mode doubles and worse.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.jet import jet as jax_jet

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings, measure
from benchmarks.result import OURS, NotRun, Row, compare, row_of

NAME = "jet"
SAMPLES, WIDTH, LAYERS = 64, 64, 3
ORDERS = (1, 2, 4, 8)
# Nested forward mode evaluates eight times as many ops at order 6 as at order 4.
MOST_NESTED = 4
# What is quadratic takes at most four times as long at twice the order.
GROWTH_BAR = 4.0

Function = Callable[[Any], Any]


def network(np: Any, weights: list[Any], x: Any) -> Any:
    """Return one number per sample; `np` is a library's form of NumPy's namespace."""
    for w in weights:
        x = np.tanh(x @ w) * np.exp(-0.1 * x * x)
    return np.sum(x, axis=1)


def derivatives(function: Function, x: Any, v: Any, order: int) -> list[Any]:
    """Return the derivatives of f(x + tv) at t = 0, up to an order, by Taylor mode."""
    return gt.jet(function, (x,), ([v, *[None] * (order - 1)],))[1]


def nested(function: Function, x: Any, v: Any, order: int) -> Any:
    """Return the last of them, by forward mode within itself."""
    along: Function = lambda t: function(x + t * v)  # noqa: E731
    for _ in range(order):
        along = partial(_slope, along)
    return along(np.float64(0.0))


def _slope(along: Function, t: Any) -> Any:
    return gt.jvp(along, (t,), (1.0,))[1]


def jax_derivatives(function: Function, x: Any, v: Any, order: int) -> list[Any]:
    """Return the derivatives by JAX's Taylor mode."""
    found: list[Any] = jax_jet(function, (x,), ([v, *[jnp.zeros_like(v)] * (order - 1)],))[1]
    return found


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Time orders 1 to 8, eager and compiled, and compare the last two of them."""
    # In the calling thread, as everything else here.
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5 for _ in range(LAYERS)]
    x, v = rng.normal(size=(2, SAMPLES, WIDTH))
    ours = partial(network, np, weights)
    theirs = partial(network, jnp, [jnp.array(w) for w in weights])
    eager = {order: partial(derivatives, ours, x, v, order) for order in ORDERS}
    compiled = {
        order: partial(gt.jit(partial(derivatives, ours, order=order)), x, v) for order in ORDERS
    }
    yield from _growth("eager", eager, settings)
    yield from _growth("compiled", compiled, settings)
    for order in ORDERS:
        what = f"order {order} of a network, {LAYERS} layers of {WIDTH}, {SAMPLES} samples"
        if order <= MOST_NESTED:
            peer = partial(nested, ours, x, v, order)
            for way in (eager, compiled):
                assert_agree(what, way[order]()[-1], peer())
            bar = 1.0 if order > 2 else None
            sides = [(Contender("nested `gt.jvp`", peer), bar)]
            yield from compare(
                NAME, f"{what}, eager", Contender(OURS, eager[order]), sides, settings
            )
        yield from _against_jax(what, compiled[order], theirs, (x, v), order, settings)


def _growth(how: str, works: dict[int, Callable[[], Any]], settings: Settings) -> Iterator[Row]:
    """Compare the last two orders, one of which is twice the other."""
    *_, less, more = ORDERS
    sides = {f"order {order}": works[order] for order in (less, more)}
    samples = measure([Contender(name, work) for name, work in sides.items()], settings)
    what = f"order {more} / order {less}, {how}"
    yield row_of(f"{NAME} growth", what, samples, f"order {more}", f"order {less}", GROWTH_BAR)


def _against_jax(
    what: str,
    compiled: Callable[[], Any],
    theirs: Function,
    point: tuple[Any, Any],
    order: int,
    settings: Settings,
) -> Iterator[Row | NotRun]:
    """Compare compiled functions, both called with arrays of their own."""
    function = jax.jit(partial(jax_derivatives, theirs, order=order))
    given = tuple(map(jnp.array, point))
    try:
        for ours, other in zip(compiled(), function(*given), strict=True):
            assert_agree(what, ours, other)
    except AssertionError as error:
        if order > MOST_NESTED:
            raise
        # Ours is that of nested forward mode. (JAX 0.10 gives anything for order 1.)
        yield NotRun(NAME, "JAX compiled", str(error))
        return

    def peer() -> Any:
        return jax.block_until_ready(function(*given))

    sides: list[tuple[Contender, float | None]] = [(Contender("JAX compiled", peer), 1.0)]
    yield from compare(NAME, f"{what}, compiled", Contender(OURS, compiled), sides, settings)
