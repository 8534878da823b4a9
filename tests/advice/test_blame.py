"""Errors begin with the name of the function that was called, not of those it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    GradtapeError,
    LinAlgError,
    NotDifferentiableError,
    TapeError,
)

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
CALLS: dict[str, Callable[[Any], Any]] = {
    "tensorinv": lambda x: gt.linalg.tensorinv(0.0 * gt.ones((2, 2, 4)) * x[0, 0], 2),
    "matrix_power": lambda x: gt.linalg.matrix_power(x, -1),
    "eigh": lambda x: gt.linalg.eigh(x, -x),
    "eigvalsh": lambda x: gt.linalg.eigvalsh(x[0]),
    "multi_dot": lambda x: gt.linalg.multi_dot([x, x[:1]]),
    "orthogonal_procrustes": lambda x: gt.linalg.orthogonal_procrustes(x, x[0]),
    "cho_factor": lambda x: gt.linalg.cho_factor(-x),
    "pinvh": lambda x: gt.linalg.pinvh(x[:1]),
    "cov": lambda x: gt.cov(x, x[:, :1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_function_that_was_called_is_named(name: str) -> None:
    with pytest.raises(GradtapeError, match=rf"^{name}: got ") as caught:
        CALLS[name](SINGULAR)
    with pytest.raises(type(caught.value), match=rf"^{name}: got "):
        CALLS[name](gt.tensor(SINGULAR))


def test_numpys_functions_are_named_likewise() -> None:
    with pytest.raises(
        LinAlgError, match=r"^matrix_power: got float64\[2, 2\]; Singular"
    ) as caught:
        np.linalg.matrix_power(gt.tensor(SINGULAR), -1)
    assert caught.value.__notes__ == ["matrix_power calls inv, which raised it."]


@pytest.mark.parametrize("derivative", [gt.grad, gt.jacfwd, gt.jacrev])
def test_derivatives_are_those_of_the_function(derivative: Any) -> None:
    with pytest.raises(LinAlgError, match=r"^slogdet: got float64\[2, 2\]; Singular matrix"):
        derivative(lambda x: gt.linalg.slogdet(x)[1])(SINGULAR)
    with pytest.raises(NotDifferentiableError, match=r"^eigvalsh: got repeated eigenvalues"):
        gt.grad(lambda x: gt.linalg.eigvalsh(x)[0])(np.eye(2))


def test_derivatives_on_tapes() -> None:
    with gt.GradientTape(persistent=True) as tape:
        x = tape.watch(gt.tensor(SINGULAR))
        y = gt.linalg.slogdet(x)[1]
    with pytest.raises(LinAlgError, match=r"^slogdet: "):
        tape.gradient(y, x)
    with pytest.raises(LinAlgError, match=r"^slogdet: "):
        tape.forward_gradient(x, y, np.ones((2, 2)))


def test_what_the_user_calls_inside_of_it_keeps_its_name() -> None:
    def function(x: Any) -> Any:
        return gt.linalg.inv(SINGULAR)[0, 0] * x

    for call in (
        lambda: gt.linalg.funm(np.eye(2), function),
        lambda: gt.apply_along_axis(function, 0, np.eye(2)),
    ):
        with pytest.raises(LinAlgError, match=r"^inv: got"):
            call()

    @gt.custom_vjp
    def double(x: Any) -> Any:
        return 2.0 * x

    double.defvjp(lambda ct, out, x: ct * gt.linalg.inv(SINGULAR)[0, 0])
    with pytest.raises(LinAlgError, match=r"^inv: got"):
        gt.grad(lambda x: gt.sum(double(x)))(np.ones(2))


def test_forward_gradients_are_named() -> None:
    tape = gt.GradientTape(persistent=True)
    with tape:
        x = tape.watch(gt.tensor(np.array(2.0)))
        y = x * x
    other = gt.tensor(np.array(1.0))
    for source, target in ((other, y), (x, other)):
        with pytest.raises(TapeError, match=r"^forward_gradient: the .* is not on this tape"):
            tape.forward_gradient(source, target)
    with pytest.raises(TapeError, match=r"^forward_gradient: the source was computed after"):
        tape.forward_gradient(y, x)
    with pytest.raises(TapeError, match=r"^gradient: the source is not on this tape"):
        tape.gradient(y, other)


def test_calls_that_python_refuses() -> None:
    inv: Any = gt.linalg.inv
    with pytest.raises(TypeError, match=r"inv\(\) missing 1 required"):
        inv()
    cholesky: Any = gt.linalg.cholesky
    with pytest.raises(TypeError, match=r"cholesky: got uper=.*did you mean upper=\?"):
        cholesky(np.eye(2), uper=True)
