"""Integrals over several numbers, by fixed points, and of vectors, against SciPy's."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.integrate as theirs

import gradtape as gt
from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.testing import check_grads

ours = gt.scipy.integrate
LOOSE = {"rtol": 1e-5, "atol": 1e-5}


def wedge(a: Any, b: Any, rate: Any) -> Any:
    """∫∫ x·e^(−rate·x·y) between y = x and y = 1 + x²."""
    limits = (lambda x: x), (lambda x: 1 + x * x)
    return ours.dblquad(lambda y, x, rate: np.exp(-rate * x * y) * x, a, b, *limits, (rate,))[0]


def captured(rate: Any) -> Any:
    """The same, but the rate is not an argument, and also a limit."""
    limits = (lambda x: rate * x), (lambda x: 1 + x * x)
    return ours.dblquad(lambda y, x: np.exp(-rate * x * y) * x, 0.2, 1.1, *limits)[0]


@pytest.mark.parametrize("name", ["dblquad", "tplquad", "nquad", "fixed_quad", "quad_vec"])
def test_signatures_are_scipys(name: str) -> None:
    one, other = (inspect.signature(getattr(f, name)).parameters for f in (ours, theirs))
    assert [(p.name, p.kind, p.default) for p in one.values()] == [
        (p.name, p.kind, p.default) for p in other.values()
    ]


def test_plain_arguments_are_scipys() -> None:
    limits = [(0.0, 1.0), (0.0, 2.0)]
    assert ours.nquad(lambda x, y: x * y, limits) == theirs.nquad(lambda x, y: x * y, limits)
    given = (lambda y, x: x * y * y), 0, 1, 0, lambda x: x
    assert ours.dblquad(*given) == theirs.dblquad(*given)
    given = (lambda z, y, x: x * y * z), 0, 1, 0, 1, 0, lambda x, y: x * y
    assert ours.tplquad(*given) == theirs.tplquad(*given)
    assert ours.fixed_quad(np.exp, 0, 1, n=4) == theirs.fixed_quad(np.exp, 0, 1, n=4)
    full = ours.quad_vec(lambda x: np.array([x, x**2]), 0, 1, full_output=True)[2]
    assert full.success


def test_derivatives_over_two_numbers() -> None:
    check_grads(wedge, (0.2, 1.1, 0.7), order=1, **LOOSE)
    step, slope = 1e-4, gt.grad(lambda rate: wedge(0.2, 1.1, rate))
    wanted = (slope(0.7 + step) - slope(0.7 - step)) / (2 * step)
    np.testing.assert_allclose(gt.grad(slope)(0.7), wanted, rtol=1e-6)
    for wrap in (gt.jit, lambda f: lambda x: gt.vmap(f)(np.array([x]))[0]):
        np.testing.assert_allclose(wrap(lambda r: wedge(0.2, 1.1, r))(0.7), wedge(0.2, 1.1, 0.7))
    compiled = gt.jit(gt.grad(wedge, 2))(0.2, 1.1, 0.7)
    np.testing.assert_allclose(compiled, gt.grad(wedge, 2)(0.2, 1.1, 0.7), rtol=1e-8)


def test_tensors_from_outside() -> None:
    step = 1e-5
    slope = (captured(0.7 + step) - captured(0.7 - step)) / (2 * step)
    np.testing.assert_allclose(gt.grad(captured)(0.7), slope, rtol=1e-7)
    np.testing.assert_allclose(gt.jvp(captured, (0.7,), (1.0,))[1], slope, rtol=1e-7)
    np.testing.assert_allclose(gt.jit(captured)(0.7), captured(0.7))
    rate = gt.tensor(0.7, requires_grad=True)
    captured(rate).backward()
    np.testing.assert_allclose(rate.grad, slope, rtol=1e-7)


@pytest.mark.slow  # 21³ points, several times
def test_over_three_numbers() -> None:
    def volume(side: Any) -> Any:
        inside = 0, (lambda x: x), 0, (lambda x, y: side * y)
        return ours.tplquad(lambda z, y, x: z * y + side * x, 0, side, *inside)[0]

    step = 1e-5
    slope = (volume(0.7 + step) - volume(0.7 - step)) / (2 * step)
    np.testing.assert_allclose(volume(gt.tensor(0.7)), volume(0.7), rtol=1e-12)
    np.testing.assert_allclose(gt.grad(volume)(0.7), slope, rtol=1e-7)


def test_values_over_three_numbers() -> None:
    def volume(side: Any) -> Any:
        limits = 0, 1, 0, (lambda x: x), 0, (lambda x, y: y)
        return ours.tplquad(lambda z, y, x, side: side * x, *limits, (side,))[0]

    found = volume(gt.tensor(0.7))
    assert isinstance(found, gt.Tensor)
    np.testing.assert_allclose(found, volume(0.7))


def test_options_of_nquad() -> None:
    def area(side: Any, opts: Any) -> Any:
        return ours.nquad(lambda x, y: np.abs(x - 0.3) * y, [(0.0, side), (0.0, 1.0)], opts=opts)[0]

    for opts in ({"limit": 100}, [{"points": [0.3]}, {}], [lambda *_: {"points": [0.3]}, {}]):
        np.testing.assert_allclose(gt.grad(area)(0.9, opts), 0.3, rtol=1e-7)
    with pytest.raises(UnsupportedError, match="full_output"):
        ours.nquad(lambda x: x, [(0.0, gt.tensor(1.0))], full_output=True)


def test_fixed_quad() -> None:
    def area(a: Any, b: Any, rate: Any) -> Any:
        return ours.fixed_quad(lambda x, rate: np.exp(rate * x), a, b, (rate,), 6)[0]

    check_grads(area, (0.0, 1.0, 0.5), order=2)
    np.testing.assert_allclose(gt.jit(area)(0.0, 1.0, 0.5), area(0.0, 1.0, 0.5))
    outside = gt.grad(lambda rate: ours.fixed_quad(lambda x: np.exp(rate * x), 0.0, 1.0)[0])(0.5)
    np.testing.assert_allclose(outside, gt.grad(area, 2)(0.0, 1.0, 0.5), rtol=1e-6)

    def several(rate: Any) -> Any:
        return ours.fixed_quad(lambda x: np.stack([rate * x, x**rate]), 0.0, 1.0)[0]

    np.testing.assert_allclose(gt.jacobian(several)(2.0)[0], 0.5)
    with pytest.raises(ArgumentError, match="infinite limit"):
        area(0.0, gt.tensor(np.inf), 0.5)


def test_quad_vec() -> None:
    def areas(a: Any, b: Any, rate: Any) -> Any:
        return ours.quad_vec(
            lambda x, rate: np.stack([np.exp(rate * x), np.sin(rate * x)])[None], a, b, args=(rate,)
        )[0]

    assert areas(0.0, 1.0, 0.5).shape == (1, 2)
    check_grads(areas, (0.0, 1.0, 0.5), order=1, rtol=1e-6, atol=1e-6)
    check_grads(areas, (0.0, 1.0, 0.5), order=2, rtol=1e-6, atol=1e-6, entries=0)
    np.testing.assert_allclose(gt.jit(areas)(0.0, 1.0, 0.5), areas(0.0, 1.0, 0.5))

    def tails(rate: Any) -> Any:
        return ours.quad_vec(lambda x: np.exp(-rate * x) * gt.stack([rate, rate**2]), 0, np.inf)[0]

    np.testing.assert_allclose(gt.jacobian(tails)(0.5), [0.0, 1.0], atol=1e-9)

    def steep(power: Any) -> Any:
        return ours.quad_vec(lambda x: np.stack([x**power, 2 * x**power]), 0.0, 1.0, 1e-8)[0]

    np.testing.assert_allclose(gt.jacobian(steep)(-0.5), [-4.0, -8.0], rtol=1e-5)

    def left(rate: Any) -> Any:
        return ours.quad_vec(lambda x: np.exp(rate * x) * np.ones(2), -np.inf, 0)[0]

    np.testing.assert_allclose(gt.jacobian(left)(0.5), [-4.0, -4.0])
    wave = ours.quad_vec(lambda x: np.exp(1j * gt.tensor(1.0) * x) * np.ones(2), 0, 1)[0]
    np.testing.assert_allclose(wave, (np.sin(1.0) + 1j * (1 - np.cos(1.0))) * np.ones(2))
    with pytest.raises(UnsupportedError, match="quadrature"):
        ours.quad_vec(lambda x: x, 0, gt.tensor(1.0), quadrature="gk15")
