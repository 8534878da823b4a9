"""Sparse Jacobians and Hessians against dense ones, and against sparsejac on JAX.

sparsejac is given the pattern, which it does not find; both sides colour it once, and compile. A
call then gives the numbers of all places, and ours a matrix of SciPy with them: that takes 30 µs,
hence the bars of small problems. The process is held to one core meanwhile.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks.agreement import assert_agree
from benchmarks.harness import Contender, Settings, time_once
from benchmarks.result import OURS, NotRun, Row, compare
from gradtape.tools.statistics import Spread

PEER = "sparsejac, jax.jit"


@dataclass(frozen=True)
class Case:
    """A function `function(xp, x)` of one vector, and the derivative that is taken."""

    name: str
    what: str
    function: Callable[[Any, Any], Any]
    x: Any
    hessian: bool = False
    bar: float = 1.0

    def ours(self) -> Any:
        """Return our sparse derivative, which has neither pattern nor code yet."""
        make = gt.sparse_hessian if self.hessian else gt.sparse_jacobian
        return make(lambda x: self.function(np, x))

    def dense(self, x: Any) -> Any:
        """Compute the same as a dense array."""
        make = gt.hessian if self.hessian else gt.jacrev
        return make(lambda x: self.function(np, x))(x)


# ---- functions ----------------------------------------------------------------------------------


def _tridiagonal(xp: Any, x: Any) -> Any:
    """Residuals of Broyden's tridiagonal equations."""
    padded = xp.pad(x, 1)
    return (3.0 - 2.0 * x) * x - padded[:-2] - 2.0 * padded[2:] + 1.0


def _arrowhead(xp: Any, x: Any) -> Any:
    return xp.concatenate([xp.sum(x**2)[None], xp.sin(x[1:]) * x[0]])


def _rosenbrock(xp: Any, x: Any) -> Any:
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def _hub(xp: Any, x: Any) -> Any:
    return xp.sum(xp.sin(x[0] * x[1:])) + xp.sum(x**4)


def _turned(xp: Any, rotation: Any, points: Any) -> Any:
    """Points turned by rotation vectors: Rodrigues' formula."""
    angle = xp.sqrt(xp.sum(rotation**2, axis=-1, keepdims=True))
    axis = rotation / angle
    along = xp.sum(axis * points, axis=-1, keepdims=True) * (1.0 - xp.cos(angle))
    return points * xp.cos(angle) + xp.cross(axis, points) * xp.sin(angle) + axis * along


def _bundle(count: int) -> tuple[Callable[[Any, Any], Any], Any]:
    """Bundle adjustment: residuals of points that cameras with 9 parameters see, and parameters."""
    rng = np.random.default_rng(0)
    cameras, points = max(count // 400, 2), count // 5
    camera, point = rng.integers(cameras, size=count), np.arange(count) % points
    seen = rng.normal(size=(count, 2))
    start = rng.normal(size=(cameras, 9)) * 0.1 + [0.1, 0, 0, 0, 0, -5.0, 500.0, 0, 0]

    def residuals(xp: Any, x: Any) -> Any:
        chosen = x[: 9 * cameras].reshape(cameras, 9)[camera]
        moved = _turned(xp, chosen[:, :3], x[9 * cameras :].reshape(points, 3)[point])
        moved = moved + chosen[:, 3:6]
        flat = -moved[:, :2] / moved[:, 2:]
        square = xp.sum(flat**2, axis=-1, keepdims=True)
        distortion = 1.0 + chosen[:, 7:8] * square + chosen[:, 8:9] * square**2
        return (chosen[:, 6:7] * distortion * flat - seen).reshape(-1)

    return residuals, np.concatenate([start.reshape(-1), rng.normal(size=3 * points)])


def _cases() -> list[Case]:
    line = np.linspace(0.1, 1.0, 10_000)
    bundle, parameters = _bundle(20_000)
    return [
        Case("sparse tridiagonal", "Jacobian, 10,000 × 10,000", _tridiagonal, line, bar=2.0),
        Case(
            "sparse bundle adjustment",
            f"Jacobian of 20,000 observations, 40,000 × {len(parameters):,}",
            bundle,
            parameters,
        ),
        Case("sparse Rosenbrock", "Hessian, 10,000 × 10,000", _rosenbrock, line, True, bar=2.0),
    ]


def _dense_cases() -> list[Case]:
    line = np.linspace(0.1, 1.0, 1000)
    bundle, parameters = _bundle(400)
    return [
        Case("tridiagonal", "Jacobian, 1,000 × 1,000", _tridiagonal, line),
        Case("arrowhead", "Jacobian, 1,000 × 1,000", _arrowhead, line),
        Case("bundle adjustment", f"Jacobian, 800 × {len(parameters)}", bundle, parameters),
        Case("Rosenbrock", "Hessian, 1,000 × 1,000", _rosenbrock, line, hessian=True),
        Case("arrowhead", "Hessian, 1,000 × 1,000", _hub, line, hessian=True),
    ]


# ---- sides --------------------------------------------------------------------------------------


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Compare with sparsejac, then with dense derivatives."""
    with _on_one_core():
        yield from _against_sparsejac(settings)
        for case in _dense_cases():
            sparse, dense = case.ours(), gt.jit(case.dense)
            assert_agree(case.name, sparse(case.x).toarray(), dense(case.x))
            yield from compare(
                f"sparse {case.name}",
                f"{case.what}, in {_sweeps(case)} sweeps, against the dense one, compiled",
                Contender(OURS, lambda case=case, f=sparse: f(case.x)),
                [(Contender("dense", lambda case=case, f=dense: f(case.x)), 0.5)],
                settings,
            )


def _against_sparsejac(settings: Settings) -> Iterator[Row | NotRun]:
    for case in _cases():
        ours = case.ours()
        first = time_once(lambda case=case, f=ours: f(case.x))
        pattern = ours.plan(case.x).pattern.matrix
        try:
            theirs, their_first = _sparsejac(case, pattern)
        except ImportError as error:
            yield NotRun(case.name, PEER, str(error))
            return
        assert_agree(case.name, ours(case.x).data, theirs())
        what = f"{case.what}, {pattern.nnz:,} places, in {_sweeps(case)} sweeps"
        contender = Contender(OURS, lambda case=case, f=ours: f(case.x))
        peer = Contender(PEER, theirs)
        yield from compare(case.name, what, contender, [(peer, case.bar)], settings)
        ratio = first / their_first
        spread = Spread(ratio, ratio, ratio)
        what = f"{case.what}: the first call, with pattern, colours and compilation"
        yield Row(f"{case.name}, first call", what, first, PEER, their_first, spread, detail=True)


def _sweeps(case: Case) -> int:
    plan = case.ours().plan(case.x)
    return plan.forward + plan.reverse


def _sparsejac(case: Case, pattern: Any) -> tuple[Callable[[], Any], float]:
    """Return a call that gives the numbers by sparsejac, and the seconds of the first one."""
    import jax
    import jax.numpy as jnp
    import sparsejac
    from jax.experimental import sparse

    jax.config.update("jax_enable_x64", True)
    function = lambda x: case.function(jnp, x)  # noqa: E731
    x, found = jnp.asarray(case.x), {}

    def made() -> Any:
        places = sparse.BCOO.from_scipy_sparse(pattern.astype(float))
        taken = sparsejac.jacfwd(jax.grad(function) if case.hessian else function, places)
        found["call"] = jax.jit(lambda x: taken(x).data)
        return found["call"](x).block_until_ready()

    seconds = time_once(made)
    return lambda: found["call"](x).block_until_ready(), seconds


@contextlib.contextmanager
def _on_one_core() -> Iterator[None]:
    """Hold this process to one core: JAX makes threads for all that it may use when it starts."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
