"""Constructors of ops: what they derive, on the examples that the docs have for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.define import composite, elementwise_op, general, linear, multilinear
from gradtape.core.lowering import Composite
from gradtape.core.op import Zero, registry
from gradtape.ops import array_functions, exponential, reduce
from gradtape.ops.reduce import reduction
from gradtape.testing import check_grads
from paths import DOCS

PAGE = DOCS / "life-of-an-op.md"
X, Y = np.random.default_rng(0).normal(size=(2, 3, 4))

Function = Callable[..., Any]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take ops, and forget them afterwards."""
    list(registry)  # all families, so that those of tests are the only new ones
    known = dict(registry._ops)
    monkeypatch.setattr("gradtape.core.op._OPS", "")
    yield
    for name in set(registry._ops) - set(known):
        del registry._ops[name], registry._homes[name]


@pytest.fixture
def examples(opened: None) -> dict[str, Function]:
    """The ops that the page on constructors defines."""
    section = PAGE.read_text().split("### Constructors")[1].split("\n##")[0]
    (text,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names = {**vars(exponential), **vars(reduce), **globals(), "scalar": scalar}
    exec(text, names)
    return names


CASES: dict[str, tuple[Function, tuple[Any, ...], dict[str, Any]]] = {
    "damped": (lambda x, rate: x * np.exp(-rate * x), (X,), {"rate": 0.5}),
    "centered": (lambda x, axis: x - x.mean(axis, keepdims=True), (X,), {"axis": 0}),
    "dots": (lambda x, y: (x * y).sum(-1), (X, Y), {}),
    "log_energy": (lambda x, axis: np.log((x * x).sum(axis)), (X,), {"axis": (1,)}),
    "shares": (
        lambda x, axis: np.exp(x) / np.exp(x).sum(axis, keepdims=True),
        (X,),
        {"axis": (0,)},
    ),
    "smooth_max": (
        lambda x, axis: np.log(np.exp(x).sum(axis, keepdims=True)),
        (X,),
        {"axis": (1,)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_example_of_the_docs(name: str, examples: dict[str, Function]) -> None:
    reference, args, params = CASES[name]

    def function(*args: Any) -> Any:
        return examples[name](*args, **params)

    expected = reference(*args, **params)
    np.testing.assert_allclose(function(*args), expected, rtol=1e-14)
    np.testing.assert_allclose(gt.jit(function)(*args), expected, rtol=1e-14)
    check_grads(function, args, order=2, modes=("forward", "reverse"))
    stacked = [np.stack([a, -a, 2 * a]) for a in args]
    each = [reference(*one, **params) for one in zip(*stacked, strict=True)]
    np.testing.assert_allclose(gt.vmap(function)(*stacked), each, rtol=1e-14)


def test_parameters_decide_the_dtype(opened: None) -> None:
    times = elementwise_op("times", lambda xp, x, by: x * by, lambda ct, _out, _x, by: ct * by)
    infer = registry["times"].infer
    x = Aval((2,), np.dtype(np.int64))
    assert infer(x, by=2).dtype == np.int64
    assert infer(x, by=2.0).dtype == np.float64  # 2 and 2.0 are equal, and not the same
    assert times(np.arange(2), by=2.0).dtype == np.float64


def test_several_results(opened: None) -> None:
    # d(sin x·y, cos x) = (cos x·y, −sin x)·dx + (sin x, 0)·dy
    both = elementwise_op(
        "both",
        lambda xp, x, y: (xp.sin(x) * y, xp.cos(x) + 0 * y),
        lambda _out, x, y: (gt.cos(x) * y, -gt.sin(x)),
        lambda _out, x, _y: (gt.sin(x), 0 * x),
        outputs=2,
    )
    check_grads(both, (X, Y[0]), order=2)
    first, second = gt.vmap(both)(X, Y)
    np.testing.assert_allclose(first, np.sin(X) * Y)
    np.testing.assert_allclose(second, np.cos(X))


def test_an_index_is_not_replaced_by_its_tangent(opened: None) -> None:
    picked = multilinear(
        "picked",
        lambda xp, x, at: xp.take_along_axis(x, at, -1),
        lambda ct, _out, _x, at: gt.ops.select.mask(ct, at >= 0) @ np.eye(1, _x.shape[-1]),
        Zero("an index is a number"),
        infer=lambda x, at: Aval(at.shape, x.dtype),
    )
    at = np.zeros((3, 1), np.int64)
    out, tangent = gt.jvp(lambda x: picked(x, at), (X,), (Y,))
    np.testing.assert_array_equal(out, X[:, :1])
    np.testing.assert_array_equal(tangent, Y[:, :1])
    check_grads(lambda x: picked(x, at), (X,))


def test_a_product_keeps_only_what_its_transposes_read(opened: None) -> None:
    product = multilinear(
        "own_product",
        lambda xp, x, y: x * y,
        lambda ct, _out, _x, y: ct * y,
        lambda ct, _out, x, _y: ct * x,
    )
    op = product.op  # type: ignore[attr-defined]
    assert op.keeps((True, False)) == (False, False, True)
    assert op.keeps((False, True)) == (False, True, False)


def test_rules_of_a_composition_are_derived(opened: None) -> None:
    gated = composite("gated", lambda a, b, rate: a * gt.tanh(rate * b))
    x, y = X.copy(), Y.copy()
    expected = x * np.tanh(0.5 * y)
    np.testing.assert_allclose(gated(x, y, rate=0.5), expected, rtol=1e-15)
    np.testing.assert_allclose(gt.vmap(lambda a, b: gated(a, b, rate=0.5))(x, y), expected)
    check_grads(lambda a, b: gated(a, b, rate=0.5), (x, y), order=2)
    check_grads(lambda b: gated(x, b, rate=0.5), (y,), order=2)
    check_grads(gt.jit(lambda a, b: gated(a, b, rate=0.5)), (x, y), order=2)


def test_a_composition_of_several_results(opened: None) -> None:
    both = composite(
        "turned",
        lambda x, y: (x * gt.cos(y), x * gt.sin(y)),
        infer=lambda x, y: (x, x),
        outputs=2,
    )
    check_grads(both, (X, Y), order=2)
    # A result that is not used has no cotangent.
    np.testing.assert_allclose(gt.grad(lambda x: gt.sum(both(x, Y)[1]))(X), np.sin(Y), rtol=1e-15)


def test_a_composition_may_have_a_faster_forward(opened: None) -> None:
    calls = []

    def forward(xp: Any, x: Any) -> Any:
        calls.append(xp)
        return xp.expm1(x)

    grown = composite("grown", lambda x: gt.exp(x) - 1.0, forward=forward)
    np.testing.assert_array_equal(grown(X), np.expm1(X))
    assert calls == [np]
    check_grads(grown, (X,), order=2)
    np.testing.assert_allclose(gt.jit(grown)(X), np.exp(X) - 1.0, rtol=1e-14)


def test_modes_see_a_composition_as_one_op(opened: None) -> None:
    class Log:
        kind = "observing"

        def __init__(self) -> None:
            self.names: list[str] = []

        def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
            self.names.append(op.name)
            return proceed(op, args, params)

    unit = general("unit", Composite(lambda x: x / gt.sqrt(gt.sum(x * x))))
    with gt.using_mode(log := Log()):
        out = unit(gt.tensor(X))
    assert log.names == ["unit"]
    np.testing.assert_allclose(out, X / np.sqrt((X * X).sum()))


def test_slopes_of_zero_take_no_part_if_elements_are_chosen(opened: None) -> None:
    def first(xp: Any, x: Any, axis: int) -> Any:
        return x[..., 0]

    def slope(_out: Any, x: Any, axis: int) -> Any:
        return gt.zeros_like(x) + np.eye(1, x.shape[-1])

    infer = {"infer": lambda x, axis: Aval(x.shape[:-1], x.dtype)}
    chosen = reduction("chosen", first, slope, **infer, chosen=True)
    summed = reduction("summed", first, slope, **infer)
    seed = np.full(3, np.inf)
    with np.errstate(invalid="ignore"):
        (of_chosen,) = gt.vjp(lambda x: chosen(x, axis=1), X)[1](seed)
        (of_summed,) = gt.vjp(lambda x: summed(x, axis=1), X)[1](seed)
    np.testing.assert_array_equal(of_chosen, [[np.inf, 0, 0, 0]] * 3)
    assert np.isnan(of_summed[:, 1:]).all()


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "unit_vectors", "vector_norm"])
def test_forwards_are_compositions_with_the_functions_of_tensors(name: str) -> None:
    lower = registry[name].lower
    assert isinstance(lower, Composite)
    assert lower.function.func is registry[name].evaluate  # type: ignore[attr-defined]
    assert lower.function.args == (array_functions,)  # type: ignore[attr-defined]


def test_ops_that_are_not_registered_by_a_package_are_refused() -> None:
    with pytest.raises(gt.errors.GradtapeError, match="the op registry is closed"):
        linear("late", lambda xp, x: x, self_adjoint=True)
