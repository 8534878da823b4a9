"""Taylor mode: closed forms, awkward points, cost, composition with other transforms, errors."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import our_scipy
from gradtape.autodiff.series_rules import Expanded, RuleLevel
from gradtape.core.op import Op
from gradtape.core.state import Proceed
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    LeakedTensorError,
    NotDifferentiableError,
    ShapeError,
)
from nested_derivatives import assert_derivatives, nested

ORDER = 8


def unit(order: int, like: Any = 1.0) -> list[Any]:
    """The derivatives of t: 1, 0 and so on."""
    return [np.ones_like(like), *[np.zeros_like(like)] * (order - 1)]


def derivatives(function: Callable[[Any], Any], x: Any, order: int = ORDER) -> list[Any]:
    """The derivatives of a function of each element."""
    return gt.jet(function, (x,), (unit(order, x),))[1]


# ---- closed forms -------------------------------------------------------------------------------


def hermite(k: int, x: float) -> float:
    """The polynomial of physicists: (−1)ᵏ·exp(x²)·dᵏ/dxᵏ exp(−x²)."""
    return float(np.polynomial.hermite.hermval(x, [0] * k + [1]))


def falling(a: float, k: int) -> float:
    """a·(a − 1)·…, k factors."""
    return math.prod(a - i for i in range(k))


def tangents(x: float) -> list[float]:
    """The derivatives of tan, by polynomials in tan: P' = P'(u)·(1 + u²)."""
    p, found = np.polynomial.Polynomial([0, 1]), []
    for _ in range(ORDER):
        p = p.deriv() * np.polynomial.Polynomial([1, 0, 1])
        found.append(p(math.tan(x)))
    return found


K = range(1, ORDER + 1)
CLOSED: dict[str, tuple[Callable[[Any], Any], float, Sequence[float]]] = {
    "exp": (np.exp, 0.7, [math.exp(0.7) for k in K]),
    "exp(2x)": (lambda x: np.exp(2 * x), 0.3, [2**k * math.exp(0.6) for k in K]),
    "sin": (np.sin, 0.4, [math.sin(0.4 + k * math.pi / 2) for k in K]),
    "cos": (np.cos, 0.4, [math.cos(0.4 + k * math.pi / 2) for k in K]),
    "sinh": (np.sinh, 0.4, [math.cosh(0.4) if k % 2 else math.sinh(0.4) for k in K]),
    "1/(1-x)": (lambda x: 1 / (1 - x), 0.25, [math.factorial(k) / 0.75 ** (k + 1) for k in K]),
    "log": (np.log, 0.5, [-math.factorial(k - 1) * (-2.0) ** k for k in K]),
    "tan": (np.tan, 0.3, tangents(0.3)),
    "tanh": (np.tanh, 0.0, [1, 0, -2, 0, 16, 0, -272, 0]),
    "sqrt": (np.sqrt, 0.49, [falling(0.5, k) * 0.49 ** (0.5 - k) for k in K]),
    "x**2.5": (lambda x: x**2.5, 1.5, [falling(2.5, k) * 1.5 ** (2.5 - k) for k in K]),
    "x**-1.5": (lambda x: x**-1.5, 1.5, [falling(-1.5, k) * 1.5 ** (-1.5 - k) for k in K]),
    "2**x": (lambda x: 2.0**x, 0.5, [math.sqrt(2) * math.log(2) ** k for k in K]),
    "x**5": (lambda x: x**5, -1.5, [falling(5, k) * (-1.5) ** max(5 - k, 0) for k in K]),
    "polynomial": (
        lambda x: 3 - x * (1 - 2 * x * (x + 4)),
        -0.5,
        [-1 + 16 * -0.5 + 6 * 0.25, 16 + 12 * -0.5, 12, 0, 0, 0, 0, 0],
    ),
    "erf": (
        our_scipy.special.erf,
        0.6,
        [
            2 / math.sqrt(math.pi) * (-1) ** (k - 1) * hermite(k - 1, 0.6) * math.exp(-0.36)
            for k in K
        ],
    ),
    "exp(-x²)": (
        lambda x: np.exp(-x * x),
        0.6,
        [(-1) ** k * hermite(k, 0.6) * math.exp(-0.36) for k in K],
    ),
    "digamma": (gt.digamma, 1.0, [float(gt.polygamma(k, np.float64(1.0))) for k in K]),
    "log(exp)": (lambda x: np.log(np.exp(3 * x)), 0.2, [3, 0, 0, 0, 0, 0, 0, 0]),
    "sin²+cos²": (lambda x: np.sin(x) ** 2 + np.cos(x) ** 2, 0.2, [0] * ORDER),
    "arctan(tan)": (lambda x: np.arctan(np.tan(x)), 0.3, [1, 0, 0, 0, 0, 0, 0, 0]),
    "cosh-arcosh": (lambda x: np.cosh(np.arccosh(x)), 1.7, [1, 0, 0, 0, 0, 0, 0, 0]),
    "x**y": (lambda x: x**x, 1.0, [1, 2, 3, 8, 10, 54, -42, 944]),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name: str) -> None:
    function, x, expected = CLOSED[name]
    scale = np.maximum.accumulate(np.abs(expected)) + [math.factorial(k) for k in K]
    for got in (
        derivatives(function, x),
        gt.jet(function, (x,), ([1.0, *[None] * (ORDER - 1)],))[1],
        gt.jit(lambda x: derivatives(function, x))(x),
    ):
        assert np.all(np.abs(np.array(got) - expected) <= 1e-13 * scale)


def test_faa_di_bruno() -> None:
    """(f∘x)''' = f'''·x'³ + 3f''·x'·x'' + f'·x''' with f = exp."""
    x, d1, d2, d3 = 0.5, 2.0, -3.0, 5.0
    out, (one, two, three) = gt.jet(np.exp, (x,), ([d1, d2, d3],))
    assert math.isclose(one / out, d1)
    assert math.isclose(two / out, d1**2 + d2)
    assert math.isclose(three / out, d1**3 + 3 * d1 * d2 + d3)


def test_many_orders() -> None:
    """The rule of x^2.5 goes on for ever, and the stack ends before order 90."""
    got = gt.jet(lambda x: 1 / (1 - x) + x**2.5, (0.5,), ([1.0, *[None] * 89],))[1]
    for k, value in enumerate(got, start=1):
        expected = math.factorial(k) * 2.0 ** (k + 1) + falling(2.5, k) * 0.5 ** (2.5 - k)
        assert math.isclose(value, expected, rel_tol=1e-11)


def test_matrices() -> None:
    """The inverse of I − tA is Σ tᵏAᵏ; solve gives the same, and the Cholesky factor squares."""
    a = np.array([[0.5, 0.2], [-0.3, 0.4]])
    powers = [math.factorial(k) * np.linalg.matrix_power(a, k) for k in range(1, 6)]
    eye = np.eye(2)
    series = ([-a, None, None, None, None],)
    assert_derivatives(gt.jet(np.linalg.inv, (eye,), series)[1], powers, 1e-13)
    solved = gt.jet(lambda m: np.linalg.solve(m, eye), (eye,), series)[1]
    assert_derivatives(solved, powers, 1e-13)
    square, slope = a @ a.T + eye, a + a.T
    _, terms = gt.jet(
        lambda m: (lambda c: c @ c.mT)(np.linalg.cholesky(m)), (square,), ([slope, None, None],)
    )
    assert_derivatives(terms, [slope, np.zeros((2, 2)), np.zeros((2, 2))], 1e-12)


# ---- awkward points -----------------------------------------------------------------------------

BIG = np.array([-800.0, -40.0, 0.0, 40.0, 800.0])
AWKWARD: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "x²": (lambda x: x**2, 0.0),
    "x⁰": (lambda x: x**0, 0.0),
    "x**1.5": (lambda x: x**1.5, 0.0),
    "x**4 below 0": (lambda x: x**4, -1.5),
    "x**5.0 below 0": (lambda x: x**5.0, -2.0),
    "powers of 0": (lambda x: x ** np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.zeros(5)),
    "powers of -1": (lambda x: x ** np.array([0.0, 1.0, 2.0, 3.0, 4.0]), -np.ones(5)),
    "0**x": (lambda x: 0.0**x, np.array([0.0, 1.0, 2.0])),
    "sqrt": (np.sqrt, 0.0),
    "log": (np.log, 0.0),
    "1/x": (lambda x: 1 / x, 0.0),
    "x/x": (lambda x: x / x, 0.0),
    "abs": (np.abs, 0.0),
    "sinc": (np.sinc, 0.0),
    "cbrt": (np.cbrt, 0.0),
    "hypot": (lambda x: np.hypot(x, 2 * x), 0.0),
    "norm": (np.linalg.norm, np.zeros(3)),
    "std": (np.std, np.ones(3)),
    "log where defined": (lambda x: np.where(x > 0, np.log(x), x), np.array([0.0, 2.0])),
    "sqrt where defined": (lambda x: np.where(x > 0, np.sqrt(x), x * x), 0.0),
    "x·log x": (lambda x: np.where(x == 0, 0.0, x * np.log(x)), np.array([0.0, 1.0])),
    "xlogy": (lambda x: gt.xlogy(x, x), np.array([0.0, 1.0])),
    "bump": (lambda x: np.exp(-1 / x**2), 0.0),
    "exp(2·log x)": (lambda x: np.exp(2 * np.log(x)), 0.0),
    "arctan(1/x)": (lambda x: np.arctan(1 / x), 0.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), BIG),
    "softplus": (lambda x: np.log(1 + np.exp(x)), BIG),
    "tanh": (np.tanh, BIG),
    "masked softmax": (
        lambda x: gt.nn.softmax(np.where([True, False, True], x, -np.inf)),
        np.arange(3.0),
    ),
    "a condition of floats": (lambda x: np.where(x, np.exp(x), x * x), np.array([0.0, 2.0])),
    "relu": (gt.nn.relu, 0.0),
    "clip": (lambda x: np.clip(x, 0, 1) ** 2, 1.0),
    "maximum": (lambda x: np.maximum(x, x * x), np.array([0.0, 1.0])),
    "max of ties": (np.max, np.array([1.0, 1.0, 0.0])),
    "sort of ties": (np.sort, np.array([1.0, 1.0, 0.0])),
    "product with zeros": (np.prod, np.array([1.0, 0.0, 2.0, 0.0, 3.0])),
    "running product with zeros": (np.cumprod, np.array([1.0, 0.0, 2.0, 0.0, 3.0])),
    "gamma at poles": (lambda x: our_scipy.special.gamma(x), np.array([0.0, -1.0, 1.0])),
}


@pytest.mark.parametrize("along", ["1", "curve", "0"])
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_points(name: str, along: str, rng: np.random.Generator) -> None:
    function, x = AWKWARD[name]
    x = np.asarray(x)
    series = unit(3, x)
    if along == "curve":
        series = [rng.normal(size=x.shape) for _ in range(3)]
    elif along == "0":
        series = [np.zeros_like(x)] * 3
    with np.errstate(all="ignore"):
        got = gt.jet(function, (x,), (series,))[1]
        assert_derivatives(got, nested(function, (x,), (series,)))
        if along == "curve":
            compiled = gt.jit(lambda x, *series: gt.jet(function, (x,), (series,))[1])
            assert_derivatives(compiled(x, *series), got, 1e-12)


# ---- arguments and results ----------------------------------------------------------------------


def test_containers() -> None:
    x, y = np.array([1.0, 2.0]), 3.0
    primals = ({"x": x, "y": [y]},)
    series = ([{"x": np.ones(2), "y": [1.0]}, None],)

    def function(p: Any) -> Any:
        return {"product": p["x"] * p["y"][0], "count": 2, "same": (p["x"],)}

    out, (one, two) = gt.jet(function, primals, series)
    assert (out["count"], one["count"], two["count"]) == (2, 0, 0)
    assert_derivatives([out["product"], one["product"]], [3 * x, 3 + x])
    assert_derivatives(two["product"], np.array([2.0, 2.0]))
    assert_derivatives([one["same"], two["same"]], [(np.ones(2),), (np.zeros(2),)])
    assert not np.shares_memory(out["same"][0], x)


def test_several_arguments() -> None:
    """(x·y)'' = x''y + 2x'y' + xy''."""
    out, (one, two) = gt.jet(np.multiply, (2.0, 3.0), ([1.0, 5.0], [7.0, 11.0]))
    assert (out, one, two) == (6.0, 17.0, 15.0 + 14.0 + 22.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_dtypes(dtype: Any) -> None:
    x = np.array([0.3, 0.5], dtype)
    got = derivatives(lambda x: 2 * np.tanh(x) / (1 + x**1.5) + 1.0, x, 3)
    assert [term.dtype for term in got] == [dtype] * 3
    exact = derivatives(lambda x: 2 * np.tanh(x) / (1 + x**1.5) + 1.0, x.astype(complex).real, 3)
    tolerance = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(got, exact, rtol=tolerance)


def test_narrow_floats() -> None:
    x = gt.tensor([0.5, 1.0], dtype=gt.bfloat16)
    ones = gt.ones(2, dtype=gt.bfloat16)
    out, terms = gt.jet(lambda x: gt.exp(x) / x, (x,), ([ones, ones],))
    assert all(term.dtype == gt.bfloat16 for term in (out, *terms))


def test_complex_functions() -> None:
    """|z|² along a line in the plane, and a holomorphic function."""
    z, d = 1 + 2j, 3 - 1j
    _, (one, two) = gt.jet(lambda z: np.abs(z) ** 2, (z,), ([d, 0j],))
    assert math.isclose(one, 2 * (z.conjugate() * d).real)
    assert math.isclose(two, 2 * abs(d) ** 2)
    got = gt.jet(np.exp, (z,), ([d, 0j, 0j],))[1]
    np.testing.assert_allclose(got, [d**k * np.exp(z) for k in (1, 2, 3)], rtol=1e-14)


def test_tensors_in_tensors_out() -> None:
    x = gt.tensor([1.0, 2.0])
    out, terms = gt.jet(np.exp, (x,), ([np.ones(2), None],))
    assert all(isinstance(value, gt.Tensor) for value in (out, *terms))
    out, terms = gt.jet(np.exp, (x.numpy(),), ([np.ones(2), None],))
    assert not any(isinstance(value, gt.Tensor) for value in (out, *terms))


def test_independent_results() -> None:
    out, terms = gt.jet(lambda x: (5.0, np.ones(2), x > 0, np.floor(x)), (1.5,), ([1.0, 2.0],))
    assert out[:1] == (5.0,)
    for term in terms:
        assert term[0] == 0
        np.testing.assert_array_equal(term[1], np.zeros(2))
        assert not term[2]
        assert term[3] == 0


def test_reads_and_writes() -> None:
    def function(x: Any) -> Any:
        y = np.zeros_like(x)
        y[0] = x[1] ** 3
        y[1:] += x[0] if x[0] > 0 else -x[0]
        return y

    _, (one, two) = gt.jet(function, (np.array([1.0, 2.0]),), (unit(2, np.ones(2)),))
    assert_derivatives([one, two], [np.array([12.0, 1.0]), np.array([12.0, 0.0])])


# ---- cost ---------------------------------------------------------------------------------------


class Count:
    kind = "observing"

    def __init__(self) -> None:
        self.calls = 0

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        self.calls += 1
        return proceed(op, args, params)


def calls(function: Callable[[Any], Any], x: Any, order: int) -> int:
    count, rng = Count(), np.random.default_rng(order)
    with gt.using_mode(count):
        gt.jet(function, (x,), ([rng.normal(size=np.shape(x)) for _ in range(order)],))
    return count.calls


CHAIN = {
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "1/x": lambda x: 1 / x,
    "arctan": np.arctan,
    "erf": our_scipy.special.erf,
    "sigmoid": gt.nn.sigmoid,
    "softmax": gt.nn.softmax,
    "logsumexp": gt.logsumexp,
    "norm": np.linalg.norm,
    "gelu": gt.nn.gelu,
    "chain": lambda x: np.tanh(np.exp(-x * x)) * np.sin(x) / (1 + np.cos(x) ** 2),
    "solve": lambda x: np.linalg.solve(np.diag(x), x),
    "cholesky": lambda x: np.linalg.cholesky(np.diag(x)),
}


@pytest.mark.parametrize("name", CHAIN)
def test_cost_is_quadratic(name: str) -> None:
    x = np.array([0.3, 0.7])
    four, eight, sixteen = (calls(CHAIN[name], x, order) for order in (4, 8, 16))
    assert eight < 4 * four
    assert sixteen < 4 * eight


@pytest.mark.parametrize("name", ["x**2.5", "digamma", "jv"])
def test_rules_that_go_on_cost_their_cube(name: str) -> None:
    """Each order needs a function more; nested forward mode would need twice as many."""
    orders = np.array([0.5, 1.5])
    function = {
        "x**2.5": lambda x: x**2.5,
        "digamma": gt.digamma,
        "jv": lambda x: our_scipy.special.jv(orders, x),
    }[name]
    six, twelve = (calls(function, np.array([0.3, 0.7]), order) for order in (6, 12))
    assert twelve < 8 * six


def test_long_chains() -> None:
    def function(x: Any) -> Any:
        for _ in range(1000):
            x = np.sin(x) + 0.1
        return x

    assert_derivatives(
        derivatives(function, 0.5, 2), nested(function, (np.float64(0.5),), (unit(2),))
    )


def test_nothing_is_left_for_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        derivatives(lambda x: np.sin(x) ** 2.5 / np.linalg.norm(x), np.array([0.3, 0.5]), 4)
        left = [obj for obj in gc.get_objects() if isinstance(obj, Expanded | RuleLevel)]
        assert not left
    finally:
        gc.enable()


# ---- other transforms ---------------------------------------------------------------------------

X = np.array([0.3, 0.5])


def smooth(x: Any) -> Any:
    return np.tanh(x) * np.exp(x) / (1 + x * x)


def looped(x: Any) -> Any:
    return gt.fori_loop(0, 3, lambda i, c: np.sin(c) * x, x)


def scanned(x: Any) -> Any:
    return gt.scan(lambda c, y: (np.sin(c) * y, c * y), x[0], x)


def repeated(x: Any) -> Any:
    def step(state: Any) -> Any:
        return np.exp(-state[0]) * x, state[1] + 1

    return gt.while_loop(lambda state: state[1] < 3, step, (x, 0))[0]


def chosen(x: Any) -> Any:
    return gt.cond(x[0] > 0, lambda x: x**3, lambda x: x, x)


PROGRAMS = {
    "smooth": smooth,
    "compiled": gt.jit(smooth),
    "fori_loop": looped,
    "compiled fori_loop": gt.jit(looped),
    "scan": scanned,
    "while_loop": repeated,
    "cond": chosen,
    "checkpoint": gt.checkpoint(smooth),
    "without recording": gt.no_grad()(smooth),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, rng: np.random.Generator) -> None:
    """Eager and compiled, with loops and branches."""
    function = PROGRAMS[name]
    series = [rng.normal(size=2) for _ in range(3)]
    expected = nested(function, (X,), (series,))
    assert_derivatives(gt.jet(function, (X,), (series,))[1], expected, 1e-12)
    compiled = gt.jit(lambda x, *series: gt.jet(function, (x,), (series,))[1])
    assert_derivatives(compiled(X, *series), expected, 1e-12)


def test_vmap() -> None:
    expected = derivatives(smooth, X, 4)

    def one(x: Any) -> Any:
        return derivatives(smooth, x, 4)

    assert_derivatives(gt.vmap(one)(X), expected, 1e-13)
    assert_derivatives(gt.jit(gt.vmap(one))(X), expected, 1e-13)
    assert_derivatives(derivatives(gt.vmap(smooth), X, 4), expected, 1e-13)


def test_gradients() -> None:
    """The gradient and the tangent of a derivative are the next one, and so are their own."""
    four = derivatives(smooth, X, 4)

    def third(x: Any) -> Any:
        return derivatives(smooth, x, 3)[2]

    assert_derivatives(gt.grad(lambda x: np.sum(third(x)))(X), four[3], 1e-12)
    assert_derivatives(gt.jit(gt.grad(lambda x: np.sum(third(x))))(X), four[3], 1e-12)
    assert_derivatives(gt.jvp(third, (X,), (np.ones(2),))[1], four[3], 1e-12)
    gradient = gt.grad(lambda x: np.sum(smooth(x)))
    assert_derivatives(derivatives(gradient, X, 3), four[1:], 1e-12)


def test_gradient_with_respect_to_the_series() -> None:
    """The k-th derivative is linear in the k-th term of the series."""
    x = 0.5

    def second(term: Any) -> Any:
        return gt.jet(np.exp, (x,), ([2.0, term],))[1][1]

    assert math.isclose(gt.grad(second)(3.0), math.exp(x))


def test_jets_of_jets() -> None:
    four = derivatives(smooth, X, 4)
    second = derivatives(lambda x: derivatives(smooth, x, 2)[1], X, 2)
    assert_derivatives(second, four[2:], 1e-12)


def test_levels_do_not_mix() -> None:
    """d/dx of x·(d/dy x·y at y = 1) is 2x, as for nested gradients."""

    def function(x: Any) -> Any:
        return x * gt.jet(lambda y: x * y * y, (1.0,), ([1.0],))[1][0]

    _, (one, two) = gt.jet(function, (3.0,), ([1.0, 0.0],))
    assert (one, two) == (12.0, 4.0)


def test_arrays_from_outside_in_compiled_functions() -> None:
    table = np.array([1.0, 2.0])
    compiled = gt.jit(lambda x: gt.jet(lambda x: table**x, (x,), ([np.ones(2), None],))[1][1])
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), table**X * np.log(table) ** 2, rtol=1e-14)
        table += 1.0


def test_lazy_graphs() -> None:
    """Also of tensors whose size is not known yet."""

    def program(ctx: Any) -> Any:
        x, u = ctx.placeholder("x", (2,)), ctx.placeholder("u", (-1,))
        found = [gt.jet(smooth, (t,), ([t, None],))[1][1] for t in (x, u)]
        return [t.eval(ctx, feed={x: X, u: X}) for t in found]

    expected = gt.jet(smooth, (X,), ([X, None],))[1][1]
    for got in gt.run(program):
        assert_derivatives(got, expected, 1e-13)


# ---- functions with their own rules -------------------------------------------------------------


def test_custom_jvp() -> None:
    @gt.custom_jvp
    def sine(x: Any) -> Any:
        return np.sin(x)

    @sine.defjvp
    def _(tangents: Any, _out: Any, x: Any) -> Any:
        return tangents[0] * np.cos(x)

    assert_derivatives(derivatives(sine, X, 4), derivatives(np.sin, X, 4), 1e-14)


def test_rule_on_arrays() -> None:
    """It has a first derivative, and no second one."""

    @gt.custom_jvp
    def sine(x: Any) -> Any:
        return np.sin(x)

    @sine.defjvp
    def _(tangents: Any, _out: Any, x: Any) -> Any:
        return np.asarray(tangents[0]) * np.cos(np.asarray(x))

    assert_derivatives(derivatives(sine, X, 1), [np.cos(X)])
    with pytest.raises(NotDifferentiableError, match="sine: has a forward-mode rule that reads"):
        derivatives(sine, X, 2)


def test_only_reverse_mode() -> None:
    @gt.custom_vjp
    def sine(x: Any) -> Any:
        return np.sin(x)

    @sine.defvjp
    def _(ct: Any, _out: Any, x: Any) -> Any:
        return (ct * np.cos(x),)

    with pytest.raises(NotDifferentiableError, match="sine: has no forward-mode rule"):
        derivatives(sine, X, 2)


# ---- errors -------------------------------------------------------------------------------------

ONE = np.ones(2)
BAD: list[tuple[Any, Any, type[Exception], str]] = [
    (X, ([ONE],), ArgumentError, "got primals as an ndarray, expected a tuple"),
    ((X,), ONE, ArgumentError, "got series as an ndarray, expected a tuple"),
    ((X,), (ONE,), ArgumentError, r"got series\[0\] as an ndarray, expected a list"),
    ((X,), (1.0,), ArgumentError, r"got series\[0\] as a float, expected a list"),
    ((X, X), ([ONE],), ShapeError, "got 2 primals and 1 series"),
    ((X, X), ([ONE], [ONE, ONE]), ShapeError, "series of 1, 2 derivatives"),
    ((X,), ([],), ShapeError, "series of 0 derivatives, expected 1 to 170"),
    ((X,), ([None] * 171,), ShapeError, "series of 171 derivatives"),
    ((X,), ([np.ones(3)],), ShapeError, r"series\[0\]\[0\] has shape \(3,\), expected \(2,\)"),
    ((X,), ([ONE, 1j * ONE],), DTypeError, r"series\[0\]\[1\] is complex128, expected float64"),
    ((np.arange(2),), ([ONE],), DTypeError, r"primals\[0\] is int64"),
    ((1,), ([1.0],), DTypeError, "is the int 1, expected a float"),
    (({"a": X},), ([ONE],), ShapeError, r"series\[0\]\[0\] has structure"),
    (({"a": X},), ([{"a": 1.0}],), ShapeError, r"series\[0\]\[0\]\['a'\] has shape \(\)"),
]


@pytest.mark.parametrize(("primals", "series", "error", "match"), BAD)
def test_bad_input(primals: Any, series: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=f"jet: .*{match}"):
        gt.jet(np.add if len(primals) == 2 else np.exp, primals, series)


def test_not_a_function() -> None:
    with pytest.raises(ArgumentError, match="jet: got a float, expected a function"):
        gt.jet(1.0, (1.0,), ([1.0],))  # type: ignore[arg-type]


def test_leaked_tensor() -> None:
    kept: list[Any] = []
    gt.jet(lambda x: kept.append(x) or x, (1.0,), ([1.0],))
    with pytest.raises(LeakedTensorError, match="a jet that has already returned"):
        kept[0] + 1
