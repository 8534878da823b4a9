"""Initial value problems: solves and their gradients against torchdiffeq, JAX, diffrax and SciPy.

Every side has the same tolerances and, where the problem is not stiff, the pair of Dormand and
Prince, 4(5). Batches are solved in two ways, and like is compared with like: each member with steps
of its own, or all as one system with one sequence of steps, which is cheaper and controls only the
mean of the errors. PyTorch has the second way only. Gradients of all sides are compared with ours
at tight tolerances by a method of eighth order; the errors are part of the table.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.integrate

import gradtape as gt
from benchmarks import THREADS
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings, measure, time_once
from benchmarks.result import OURS, NotRun, Row, compare, row_of

# Three times as fast as the peers.
BAR = 0.33
COUNT = 100
MANY = f"{COUNT} Lotka–Volterra solves"
TIMES = np.linspace(0.0, 10.0, 21)
START = np.ones(2)
TOLERANCE = 1e-6
# What solves of that tolerance can agree to, relative to the largest entry.
RTOL = 3e-4
TIGHT = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-11}

Work = Callable[[], Any]
"""One solve, or all of them: losses and gradients, these in the shape of the parameters."""

# The ways in which each of many solves has steps of its own.
OWN_STEPS = ("map", "vmap")


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Time many solves and single ones, compiled and eager, and a stiff problem."""
    before = gt.get_num_threads()
    gt.set_num_threads(THREADS)
    try:
        yield from _many(settings)
        yield from _eager(settings)
        yield from _stiff(settings)
    finally:
        gt.set_num_threads(before)


# ---- prey and predators --------------------------------------------------------------------------


def slope(stack: Callable[..., Any], y: Any, p: Any) -> Any:
    """Lotka's and Volterra's equations, for one set of parameters or many side by side."""
    prey, predators = y
    a, b, c, d = p
    return stack([a * prey - b * prey * predators, d * prey * predators - c * predators])


def parameters() -> tuple[Any, Any]:
    """Return the parameters of all solves, in rows, and the data that they are fitted to."""
    centre = np.array([1.5, 1.0, 3.0, 1.0])
    factors = 1 + 0.1 * np.random.default_rng(0).uniform(-1, 1, (COUNT, 4))
    return centre * factors, _solved(_equations, START, centre, **TIGHT)


def _equations(t: Any, y: Any, p: Any) -> Any:
    return slope(np.stack, y, p)


def _solved(fun: Callable[..., Any], start: Any, p: Any, **options: Any) -> Any:
    options = {"rtol": TOLERANCE, "atol": TOLERANCE} | options
    span = (TIMES[0], TIMES[-1])
    return gt.scipy.integrate.solve_ivp(fun, span, start, t_eval=TIMES, args=(p,), **options).y


def _by_gradtape(params: Any, data: Any, **options: Any) -> dict[str, Work]:
    def loss(p: Any) -> Any:
        return np.sum((_solved(_equations, START, p, **options) - data) ** 2)

    def in_one_system(params: Any) -> Any:
        def flat(t: Any, y: Any, p: Any) -> Any:
            return _equations(t, y.reshape(2, COUNT), p).reshape(-1)

        y = _solved(flat, np.repeat(START, COUNT), params.T, **options)
        return np.sum((y.reshape(2, COUNT, -1) - data[:, None]) ** 2)

    slopes = gt.value_and_grad(loss)
    ways = {
        "map": gt.jit(lambda params: gt.map(slopes, params)),
        "vmap": gt.jit(gt.vmap(slopes)),
        "one system": gt.jit(gt.value_and_grad(in_one_system)),
    }
    return {name: partial(function, params) for name, function in ways.items()}


# ---- the peers -----------------------------------------------------------------------------------


def _jax() -> Any:
    # Read when JAX first computes: one thread, as every side has, and that is the calling thread.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return jax


def _compiled_by_jax(functions: dict[str, Callable[[Any], Any]], params: Any) -> dict[str, Work]:
    jax = _jax()
    given = jax.numpy.asarray(params)
    compiled = {name: jax.jit(function) for name, function in functions.items()}
    return {
        name: lambda function=function: jax.block_until_ready(function(given))
        for name, function in compiled.items()
    }


def _by_jax(params: Any, data: Any) -> dict[str, Work]:
    """`jax.experimental.ode.odeint`, whose gradients are solves backwards."""
    jax = _jax()
    from jax.experimental.ode import odeint

    jnp = jax.numpy

    def solved(start: Any, p: Any) -> Any:
        def equations(y: Any, t: Any, p: Any) -> Any:
            return slope(jnp.stack, y, p)

        return odeint(equations, start, jnp.asarray(TIMES), p, rtol=TOLERANCE, atol=TOLERANCE)

    def loss(p: Any) -> Any:
        return jnp.sum((solved(jnp.asarray(START), p) - data.T) ** 2)

    def together(params: Any) -> Any:
        start = jnp.repeat(jnp.asarray(START)[:, None], COUNT, 1)
        return jnp.sum((solved(start, params.T) - data.T[:, :, None]) ** 2)

    slopes = jax.value_and_grad(loss)
    functions = {
        "vmap": jax.vmap(slopes),
        "map": lambda params: jax.lax.map(slopes, params),
        "one system": jax.value_and_grad(together),
    }
    return _compiled_by_jax(functions, params)


def _by_diffrax(params: Any, data: Any) -> dict[str, Work]:
    """Discrete gradients with checkpoints, diffrax's default; it is told how many steps suffice."""
    jax = _jax()
    import diffrax

    jnp = jax.numpy

    def loss(p: Any) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, p: slope(jnp.stack, y, p)),
            diffrax.Dopri5(),
            TIMES[0],
            TIMES[-1],
            None,
            jnp.asarray(START),
            args=p,
            saveat=diffrax.SaveAt(ts=jnp.asarray(TIMES)),
            stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
            max_steps=256,
        )
        return jnp.sum((found.ys - data.T) ** 2)

    slopes = jax.value_and_grad(loss)
    functions = {"vmap": jax.vmap(slopes), "map": lambda params: jax.lax.map(slopes, params)}
    return _compiled_by_jax(functions, params)


def _by_torchdiffeq(params: Any, data: Any) -> dict[str, Work]:
    """Backpropagation through the steps, and solves backwards; for one solve or many."""
    import torch
    import torchdiffeq

    rates = [torch.tensor(column).requires_grad_() for column in params.T]
    many = params.ndim - 1
    start = torch.tensor(START.reshape(2, *[1] * many)).repeat(1, *[COUNT] * many)
    times, target = torch.tensor(TIMES), torch.tensor(data.T.reshape(-1, 2, *[1] * many))

    def work(solve: Callable[..., Any], **options: Any) -> Any:
        y = solve(
            lambda t, y: slope(torch.stack, y, rates), start, times,
            rtol=TOLERANCE, atol=TOLERANCE, method="dopri5", **options,
        )  # fmt: skip
        total = torch.sum((y - target) ** 2)
        return total.detach(), torch.stack(torch.autograd.grad(total, rates), -1)

    return {
        "odeint": lambda: work(torchdiffeq.odeint),
        "odeint_adjoint": lambda: work(torchdiffeq.odeint_adjoint, adjoint_params=tuple(rates)),
    }


PEERS = (
    ("JAX", _by_jax, BAR),
    ("diffrax", _by_diffrax, None),
    ("torchdiffeq", _by_torchdiffeq, BAR),
)


# ---- many solves ---------------------------------------------------------------------------------


def _many(settings: Settings) -> Iterator[Row | NotRun]:
    """Time gradients of all solves: each with steps of its own, and as one system."""
    params, data = parameters()
    exact = _by_gradtape(params, data, **TIGHT)["map"]()[1]
    ways = _faster(_by_gradtape(params, data))
    own = next(way for way in ways if way in OWN_STEPS)
    sides = {f"{OURS}, {way}": work for way, work in ways.items()}
    # Which way of ours is compared with which peer, and the bar.
    pairs: list[tuple[str, str, float | None]] = []
    for library, make, bar in PEERS:
        try:
            ways = _faster(make(params, data))
        except ImportError as error:
            yield NotRun(MANY, library, str(error))
            continue
        for way, work in ways.items():
            sides[f"{library}, {way}"] = work
            # PyTorch has no other way, so it is held against both of ours.
            if way in OWN_STEPS or library == "torchdiffeq":
                pairs.append((own, f"{library}, {way}", bar))
            if way not in OWN_STEPS:
                pairs.append(("one system", f"{library}, {way}", bar))
    errors = {name: _error(name, work, exact) for name, work in sides.items()}
    samples = measure([Contender(name, work) for name, work in sides.items()], settings)
    for way, peer, bar in sorted(pairs, key=lambda pair: pair[0] == "one system"):
        ours = f"{OURS}, {way}"
        how = "as one system" if way == "one system" else f"each with its own steps (`gt.{way}`)"
        what = f"gradients in 4 parameters, compiled, {how}; {_errors(errors[ours], errors[peer])}"
        yield row_of(MANY, what, samples, ours, peer, bar)
    yield from _adjoint(settings, params, data, exact)


def _faster(ways: dict[str, Work]) -> dict[str, Work]:
    """Leave out the slower one of "map" and "vmap". Their first calls compile them."""
    each = [way for way in OWN_STEPS if way in ways]
    seconds = {way: min(time_once(ways[way]) for _ in range(4)) for way in each}
    slower = {way for way in each if seconds[way] > min(seconds.values())}
    return {way: work for way, work in ways.items() if way not in slower}


def _error(name: str, work: Work, exact: Any) -> float:
    """The error of a gradient, relative to its largest entry; it is held to the tolerance."""
    found = np.asarray(work()[1])
    assert_agree(name, found, exact, rtol=RTOL)
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def _errors(ours: float, theirs: float) -> str:
    return f"errors {ours:.0e} and {theirs:.0e}"


def _adjoint(settings: Settings, params: Any, data: Any, exact: Any) -> Iterator[Row]:
    """Time gradients by solving backwards against those of the steps."""
    found = {}
    for gradient in ("adjoint", "discrete"):
        ways = _faster(_by_gradtape(params, data, gradient=gradient))
        way = next(way for way in ways if way in OWN_STEPS)
        found[gradient] = way, ways[way], _error(gradient, ways[way], exact)
    (way, work, error), (peer_way, peer, peer_error) = found.values()
    yield from compare(
        f"{MANY}, adjoint",
        f"gradients by solving backwards (`gt.{way}`) against those of the steps; "
        f"{_errors(error, peer_error)}",
        Contender("adjoint", work),
        [(Contender(f"discrete, {peer_way}", peer), None)],
        settings,
    )


# ---- one solve -----------------------------------------------------------------------------------


def _eager(settings: Settings) -> Iterator[Row | NotRun]:
    """Time the gradient of a single solve, op by op, against torchdiffeq."""
    name = "one Lotka–Volterra solve"
    params, data = parameters()
    p = params[0]
    exact = _by_gradtape(params, data, **TIGHT)["map"]()[1][0]
    slopes = gt.value_and_grad(lambda p: np.sum((_solved(_equations, START, p) - data) ** 2))
    error = _error(OURS, lambda: slopes(p), exact)
    try:
        ways = _by_torchdiffeq(p, data)
    except ImportError as missing:
        yield NotRun(name, "torchdiffeq", str(missing))
        return
    for way, work in ways.items():
        theirs = _error(way, work, exact)
        what = f"gradient in 4 parameters, eager; {_errors(error, theirs)}"
        peer = Contender(f"torchdiffeq, {way}", work)
        yield from compare(name, what, Contender(OURS, lambda: slopes(p)), [(peer, None)], settings)


# ---- a stiff problem -----------------------------------------------------------------------------


def _robertson(t: Any, y: Any, log_rates: Any) -> Any:
    """Three reactions whose rates differ by nine powers of ten."""
    k = np.exp(log_rates)
    a, b, c = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] * y[1]
    return np.stack([b - a, a - b - c, c])


def _stiff(settings: Settings) -> Iterator[Row]:
    """Time Radau's method: value and gradient against the value, the value against SciPy's."""
    name = "Robertson's reactions, Radau"
    times = np.logspace(-1, 5, 13)
    # All three concentrations are of a size then.
    weights = np.array([1.0, 1e4, 1.0])
    log_rates = np.log([0.04, 1e4, 3e7])

    def total(p: Any, solve: Any = gt.scipy.integrate.solve_ivp, rtol: float = TOLERANCE) -> Any:
        y = solve(
            _robertson, (0.0, times[-1]), np.array([1.0, 0.0, 0.0]), "Radau", times, args=(p,),
            rtol=rtol, atol=rtol / weights / 100,
        ).y  # fmt: skip
        return np.sum((weights[:, None] * y) ** 2)

    def by_scipy(p: Any, rtol: float = TOLERANCE) -> Any:
        return total(p, scipy.integrate.solve_ivp, rtol)

    value, slopes = gt.jit(total), gt.jit(gt.value_and_grad(total))
    assert_agree(name, value(log_rates), by_scipy(log_rates), rtol=1e-5)
    exact = [
        (by_scipy(log_rates + d, 1e-10) - by_scipy(log_rates - d, 1e-10)) / 2e-3
        for d in 1e-3 * np.eye(3)
    ]
    error = _error(name, lambda: slopes(log_rates), np.array(exact))
    yield from compare(
        name,
        f"value and gradient in 3 rates, compiled; error against differences {error:.0e}",
        Contender("value and gradient", lambda: slopes(log_rates)),
        [(Contender("value", lambda: value(log_rates)), None)],
        settings,
    )
    yield from compare(
        name,
        "value, compiled; both by the same steps",
        Contender(OURS, lambda: value(log_rates)),
        [(Contender("SciPy", lambda: by_scipy(log_rates)), None)],
        settings,
    )
