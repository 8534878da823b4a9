"""Linear algebra in native loops: in registers, or by calls of LAPACK at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import LinAlgError


def assert_native(function: Callable[..., Any], *arrays: Any, rtol: float = 1e-9) -> None:
    compiled = gt.jit(function)
    assert not compiled.explain(*arrays).eager
    found = gt.tree.flatten(compiled(*arrays))[0]
    for one, other in zip(found, gt.tree.flatten(function(*arrays))[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max())


def repeated(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: gt.fori_loop(0, 4, lambda _i, x: step(x), x)


STEPS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: gt.linalg.solve(x @ x.mT + gt.eye(x.shape[-1]), x),
    "solve pos": lambda x: gt.linalg.solve(x @ x.mT + gt.eye(x.shape[-1]), x, assume_a="pos"),
    "inv": lambda x: gt.linalg.inv(x @ x.mT + gt.eye(x.shape[-1])) + x,
    "det": lambda x: x / (1 + gt.linalg.det(x) ** 2)[..., None, None],
    "slogdet": lambda x: x + gt.linalg.slogdet(x)[1][..., None, None] / 9,
    "cholesky": lambda x: gt.linalg.cholesky(x @ x.mT + gt.eye(x.shape[-1])),
    "triangular": lambda x: gt.linalg.solve_triangular(x + 9 * gt.eye(x.shape[-1]), x) + x.mT,
    "lu": lambda x: gt.linalg.lu(x)[2] + 1,
    "qr": lambda x: gt.linalg.qr(x)[0] * 2 + x.mT,
    "eigh": lambda x: gt.linalg.eigh(x + x.mT)[1] + x,
    "svd": lambda x: gt.linalg.svd(x)[0] + x,
    "svdvals": lambda x: x / gt.linalg.svdvals(x)[..., :1, None],
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (12, 12), (2, 12, 12)], ids=str)
def test_values(rng: Any, name: str, shape: tuple[int, ...]) -> None:
    if name == "lu" and shape[-1] > 8:
        pytest.skip("the order of many rows is eager")
    assert_native(repeated(STEPS[name]), rng.normal(size=shape))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("size", [3, 10])
def test_gradients(rng: Any, name: str, size: int) -> None:
    if size > 4 and name in ("lu", "det"):
        pytest.skip("the derivative is eager")
    function = gt.grad(lambda x: (repeated(STEPS[name])(x) ** 2).sum())
    assert_native(function, rng.normal(size=(size, size)), rtol=1e-7)


def test_stacks_broadcast_in_registers(rng: Any) -> None:
    b = rng.normal(size=(2, 3, 1))

    def function(a: Any, b: Any) -> Any:
        return gt.fori_loop(0, 3, lambda _i, b: gt.linalg.solve(a, b), b)

    assert_native(function, rng.normal(size=(3, 3)), b)
    assert_native(function, rng.normal(size=(1, 3, 3)), b)


@pytest.mark.parametrize("states", [4, 12])
def test_kalman_filter(rng: Any, states: int) -> None:
    seen = np.eye(2, states)

    def likelihood(f: Any, q: Any, r: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            mean, spread = f @ carry[0], f @ carry[1] @ f.T + q
            s = seen @ spread @ seen.T + r
            gain = gt.linalg.solve(s, seen @ spread).T
            error = y - seen @ mean
            value = error @ gt.linalg.solve(s, error) + gt.linalg.slogdet(s)[1]
            return (mean + gain @ error, spread - gain @ seen @ spread), value

        return gt.scan(step, (np.zeros(states), np.eye(states)), ys)[1].sum()

    f = 0.9 * np.eye(states) + 0.01 * rng.normal(size=(states, states))
    args = f, 0.1 * np.eye(states), 0.2 * np.eye(2), rng.normal(size=(30, 2))
    assert_native(gt.value_and_grad(likelihood, argnums=(0, 1, 2)), *args)


@pytest.mark.parametrize("size", [2, 12])
def test_failures(size: int) -> None:
    compiled = gt.jit(repeated(lambda x: gt.linalg.inv(x) - gt.eye(size)))
    with pytest.raises(LinAlgError, match=r"inv: got .*Singular matrix"):
        compiled(np.eye(size))
    with pytest.raises(LinAlgError, match="not positive definite"):
        gt.jit(repeated(lambda x: gt.linalg.cholesky(x) - 2 * gt.eye(size)))(np.eye(size))


def test_repeated_eigenvalues_are_left_to_eager_code(rng: Any) -> None:
    function = repeated(STEPS["eigh"])
    compiled = gt.jit(function)
    for x in (rng.normal(size=(3, 3)), np.eye(3)):
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-9)
    assert compiled.explain(np.eye(3)).eager
