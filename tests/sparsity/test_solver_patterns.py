"""Solvers, integrals, and functions whose rules call themselves, in sparse derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.scipy import integrate, optimize

KEPLER = gt.implicit.root(lambda E, e: E - e * np.sin(E) - 1.0)
CUBES = gt.implicit.root(lambda y, x: y**3 + y - x)
COUPLED = gt.implicit.root(lambda y, x: y + 0.1 * np.sum(y**2) - x)
SLOWLY = gt.implicit.fixed_point(lambda y, x: 0.3 * np.sin(np.roll(y, 1)) + x)


def linear(x: Any) -> Any:
    def matvec(y: Any, x: Any) -> Any:
        return (2.0 + x**2) * y + np.roll(y, 1)

    return gt.implicit.linear_solve(matvec, x[::-1] ** 2, args=(x,))


def squares(x: Any) -> Any:
    return optimize.least_squares(
        lambda p, x: np.stack([p[0] - x[0], p[1] * p[0] - x[1], p[1] - x[2]]), np.ones(2), args=(x,)
    ).x


def of_limits(x: Any) -> Any:
    parts = [integrate.quad(lambda t, s: np.exp(-s * t * t), x[0], x[1], args=(x[2],))[0]]
    return np.stack([*parts, x[1] ** 2])


def motion(x: Any) -> Any:
    return integrate.solve_ivp(
        lambda t, y, k: np.stack([y[1], -k * y[0]]),
        (0.0, 1.0),
        x[:2],
        args=(x[2],),
        t_eval=[0.5, 1.0],
    ).y


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "root": lambda x: CUBES(np.ones(3), x),
    "coupled root": lambda x: COUPLED(np.ones(3), x),
    "root of a part": lambda x: np.concatenate([COUPLED(np.ones(2), x[:2]), x**2]),
    "fixed_point": lambda x: SLOWLY(np.zeros(3), x),
    "linear_solve": linear,
    "scipy root": lambda x: optimize.root(lambda y, x: y**3 + y - x, np.ones(3), args=(x,)).x,
    "brentq": lambda x: optimize.brentq(lambda y, s: y**3 + y - s, -9.0, 9.0, args=(x[1],)) * x,
    "least_squares": squares,
    "quad": of_limits,
    "solve_ivp": motion,
    "in a loop": lambda x: gt.scan(lambda c, s: (c, KEPLER(1.0, c * s)), 0.5, x)[1],
    "in a branch": lambda x: gt.cond(x[0] > 9.0, lambda x: x, lambda x: CUBES(np.ones(3), x), x),
    "compiled": gt.jit(lambda x: CUBES(np.ones(3), x)),
    "of captured": lambda x: gt.implicit.root(lambda y: y**3 + y - x)(np.ones(3)),
}


# These take the longest to compile, and others go the same way.
SLOW = ("solve_ivp", "least_squares", "coupled root", "in a branch")
NAMES = [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in FUNCTIONS]


@pytest.mark.parametrize("name", NAMES)
def test_same_as_dense(name: str, rng: Any) -> None:
    function, x = FUNCTIONS[name], rng.uniform(0.2, 0.8, size=3)

    def flat(x: Any) -> Any:
        return np.reshape(function(x), -1)

    def total(x: Any) -> Any:
        return np.sum(flat(x) ** 2)

    dense, second = gt.jacrev(flat)(x), gt.jacrev(gt.grad(total))(x)
    for mode in ("auto", "forward", "reverse"):
        got = gt.sparse_jacobian(flat, mode=mode)(x).toarray()
        np.testing.assert_allclose(got, dense, rtol=1e-5, atol=1e-8)
    assert (gt.jacobian_sparsity(flat)(x).toarray() >= (dense != 0.0)).all()
    got = gt.sparse_hessian(total)(x).toarray()
    np.testing.assert_allclose(got, second, rtol=1e-4, atol=1e-6)


def test_the_block_is_listed_with_its_line_and_reason() -> None:
    pattern = gt.jacobian_sparsity(FUNCTIONS["root of a part"])(np.full(3, 0.5))
    np.testing.assert_array_equal(
        pattern.toarray(), [[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    )
    (block,) = pattern.blocks
    assert (block.op, block.why) == (
        "root",
        "the solution of equations: each unknown is taken to depend on all of them",
    )
    assert "test_solver_patterns.py" in block.line
    hessian = gt.hessian_sparsity(lambda x: np.sum(FUNCTIONS["root of a part"](x)))(np.ones(3))
    assert hessian.toarray().tolist() == [
        [True, True, False],
        [True, True, False],
        [False, False, True],
    ]
    assert all("test_solver_patterns.py" in block.line for block in hessian.blocks)
    pattern = gt.jacobian_sparsity(of_limits)(np.full(3, 0.5))
    np.testing.assert_array_equal(pattern.toarray(), [[1, 1, 1], [0, 1, 0]])
    assert "an integral" in str(pattern)


def test_nothing_depends_on_the_first_guess() -> None:
    pattern = gt.jacobian_sparsity(lambda x: COUPLED(x[:2], x[2:]))(np.ones(4))
    np.testing.assert_array_equal(pattern.toarray(), [[0, 0, 1, 1]] * 2)
    nothing = gt.jacobian_sparsity(lambda x: COUPLED(x, np.ones(2)))(np.ones(2))
    assert (nothing.nnz, nothing.blocks) == (0, ())


MAPPED: dict[str, Callable[[Any], Any]] = {
    "map": lambda x: gt.map(lambda s: KEPLER(1.0, s), x),
    "vmap": lambda x: gt.vmap(lambda s: KEPLER(1.0, s))(x),
    "vmap with guesses": lambda x: gt.vmap(KEPLER)(np.ones(4), x),
    "vmap of brentq": lambda x: gt.vmap(
        lambda s: optimize.brentq(lambda y, s: y**3 + y - s, -9.0, 9.0, args=(s,))
    )(x),
    "vmap of captured": lambda x: gt.vmap(
        lambda s: gt.implicit.root(lambda y: y**3 + y - s * np.array([2.0])[0])(1.0)
    )(x),
    "vmap of quad": lambda x: gt.vmap(
        lambda s: integrate.quad(lambda t: np.exp(-t * s), 0.0, s)[0]
    )(x),
    "vmap of vmap": lambda x: gt.vmap(gt.vmap(lambda s: KEPLER(1.0, s)))(x.reshape(2, 2)),
    "vmap of linear_solve": lambda x: gt.vmap(
        lambda s: gt.implicit.linear_solve(lambda y, s: (2.0 + s) * y, np.ones(1), args=(s,))[0]
    )(x),
    "map in jit": gt.jit(lambda x: gt.vmap(lambda s: KEPLER(1.0, s))(x)),
}


SLOWLY_MAPPED = ("vmap of captured", "vmap of quad", "vmap of vmap", "map in jit")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOWLY_MAPPED else n for n in MAPPED]
)
def test_roots_of_elements_are_diagonal(name: str, rng: Any) -> None:
    def function(x: Any) -> Any:
        return np.reshape(MAPPED[name](x), -1)

    x = rng.uniform(0.2, 0.8, size=4)
    jacobian = gt.sparse_jacobian(function)
    np.testing.assert_allclose(jacobian(x).toarray(), gt.jacrev(function)(x), rtol=1e-5, atol=1e-9)
    assert jacobian.plan(x).pattern.nnz == 4
    hessian = gt.sparse_hessian(lambda x: np.sum(function(x) ** 2))
    expected = gt.jacrev(gt.grad(lambda x: np.sum(function(x) ** 2)))(x)
    np.testing.assert_allclose(hessian(x).toarray(), expected, rtol=1e-4, atol=1e-6)
    assert hessian.plan(x).pattern.nnz == 4


def test_batches_along_other_axes_and_operands_that_all_share(rng: Any) -> None:
    system = gt.implicit.root(lambda y, A, b, x: A @ y + b * x - 1.0)
    batched = gt.vmap(gt.vmap(system, in_axes=(None, None, 0, None)), in_axes=(None, 1, None, 0))
    matrices = rng.normal(size=(2, 3, 2)) + 4.0 * np.eye(2)[:, None]

    def function(p: Any) -> Any:
        return np.reshape(batched(np.zeros(2), matrices * p["A"], p["b"], p["x"]), -1)

    p = {"A": np.ones((2, 3, 2)), "b": rng.normal(size=(4, 1)), "x": rng.normal(size=3)}
    got = gt.sparse_jacobian(function)(p)
    dense = gt.jacrev(function)(p)
    expected = np.concatenate([dense[key].reshape(24, -1) for key in ("A", "b", "x")], axis=1)
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-6, atol=1e-9)
    # Two unknowns each depend on four elements of a matrix, one of b and one of x.
    assert got.nnz == 24 * (4 + 1 + 1)


# ---- rules that call themselves -----------------------------------------------------------------


@gt.custom_jvp
def shifted(x: Any) -> Any:
    return np.roll(x, 1) * 2.0


@shifted.defjvp
def _(tangents: Any, out: Any, x: Any) -> Any:
    return shifted(tangents[0])


@gt.custom_vjp
def symmetric(x: Any) -> Any:
    return 2.0 * x + np.roll(x, 1) + np.roll(x, -1)


@symmetric.defvjp
def _(ct: Any, out: Any, x: Any) -> Any:
    return (symmetric(ct),)


def hosted(x: Any) -> Any:
    """The rule calls a function whose rule calls this one, with new functions each time."""
    return gt.host_call(lambda x: np.roll(x, 1), x, x, vjp=lambda ct, out, x: (hosted_back(ct),))


def hosted_back(x: Any) -> Any:
    return gt.host_call(lambda x: np.roll(x, -1), x, x, vjp=lambda ct, out, x: (hosted(ct),))


RECURSIVE: dict[str, Callable[[Any], Any]] = {
    "custom_jvp": shifted,
    "custom_vjp": symmetric,
    "host_call": hosted,
    "vmap": lambda x: gt.vmap(shifted)(np.stack([x, x]))[1],
    "loop": lambda x: gt.fori_loop(0, 3, lambda _, x: shifted(x), x),
    "compiled": gt.jit(shifted),
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_rules_that_call_themselves_are_dense_blocks(name: str, rng: Any) -> None:
    function, x = RECURSIVE[name], rng.normal(size=4)

    def whole(x: Any) -> Any:
        return np.concatenate([function(x[:3]), x])

    jacobian = gt.sparse_jacobian(whole)
    # A rule for tangents that calls the function itself cannot be transposed.
    forward = name not in ("custom_vjp", "host_call")
    dense = gt.jacfwd(whole)(x) if forward else gt.jacrev(whole)(x)
    np.testing.assert_allclose(jacobian(x).toarray(), dense, atol=1e-12)
    pattern = jacobian.plan(x).pattern
    assert pattern.nnz == 9 + 4
    assert pattern.blocks
    assert all("rule" in block.why for block in pattern.blocks)
    single = gt.sparse_jacobian(lambda x: whole(x)[:1])
    np.testing.assert_allclose(single(x).toarray(), dense[:1], atol=1e-12)
    if not forward:
        hessian = gt.sparse_hessian(lambda x: np.sum(whole(x) ** 2))
        expected = gt.jacrev(gt.grad(lambda x: np.sum(whole(x) ** 2)))(x)
        np.testing.assert_allclose(hessian(x).toarray(), expected, atol=1e-12)
