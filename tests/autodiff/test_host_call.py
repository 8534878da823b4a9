"""Functions that run on arrays only: values, rules, batches, and calls in compiled functions."""

import ctypes
import ctypes.util
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from scipy.optimize import brentq

import gradtape as gt
from gradtape.core.aval import aval_of
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    NotDifferentiableError,
    ShapeError,
)
from gradtape.graph.ir import structural_hash
from gradtape.graph.trace import trace


class Solver:
    """The root x of x³ + x = a by brentq, which takes no tensors; counts its calls."""

    def __init__(self):
        self.calls = 0

    def solve(self, a):
        assert type(a) is np.ndarray
        assert not a.flags.writeable
        self.calls += 1
        return brentq(lambda x: x**3 + x - a, -100.0, 100.0, xtol=1e-14)

    def root(self, a, **options):
        # (3x² + 1)·dx = da
        rules = {
            "vjp": lambda ct, x, a: (ct / (3 * x**2 + 1),),
            "jvp": lambda tangents, x, a: tangents[0] / (3 * x**2 + 1),
        }
        return gt.host_call(self.solve, 0.0, a, **(options or rules))

    def counted(self, function, *args):
        self.calls = 0
        result = function(*args)
        return result, self.calls


def slope(x):
    return 1 / (3 * x**2 + 1)


def second_slope(x):
    return -6 * x / (3 * x**2 + 1) ** 3


@pytest.fixture
def solver():
    return Solver()


X = np.array([0.5, 1.0, 2.0])
A = X**3 + X


# ---- values ----


def test_arrays_in_arrays_out(solver):
    for a in (A[1], np.array(A[1]), 2.0):
        result = solver.root(a)
        assert isinstance(result, np.ndarray | np.generic)
        assert abs(result - 1.0) < 1e-12
    assert isinstance(solver.root(gt.tensor(2.0)), gt.Tensor)


def test_containers_and_static_arguments():
    seen = []

    def f(params, power, name, table):
        seen.append((type(params["w"]), power, name, table))
        return {"y": params["w"] ** power, "pair": (params["b"] * 2.0, np.array(3))}

    table = object()
    like = {"y": np.zeros(2), "pair": (gt.zeros(()), 0)}
    params = {"w": gt.tensor([2.0, 3.0]), "b": 4.0}
    out = gt.host_call(f, like, params, 2, "name", table)
    assert seen == [(np.ndarray, 2, "name", table)]
    assert out["y"].numpy().tolist() == [4, 9]
    assert [float(part) for part in out["pair"]] == [8, 3]


def test_what_has_a_shape_and_a_dtype_will_do():
    like = SimpleNamespace(shape=(2,), dtype="float32")
    out = gt.host_call(lambda x: np.full(2, x, np.float32), like, 1.5)
    assert out.dtype == np.float32
    assert out.tolist() == [1.5, 1.5]


def test_c_functions():
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    libm.cbrt.restype, libm.cbrt.argtypes = ctypes.c_double, [ctypes.c_double]

    def cbrt(x):
        rule = lambda ct, y, x: (ct / (3 * y * y),)  # noqa: E731
        return gt.host_call(lambda x: libm.cbrt(float(x)), 0.0, x, vjp=rule)

    assert gt.jit(gt.grad(cbrt))(8.0) == pytest.approx(1 / 12)


def test_arguments_cannot_be_written():
    def f(x):
        x[0] = 5.0
        return x

    x = np.ones(2)
    for call in (
        gt.host_call,
        gt.jit(lambda f, like, x: gt.host_call(f, like, x), static_argnums=0),
    ):
        with pytest.raises(ValueError, match="read-only"):
            call(f, x, x)
    assert x.tolist() == [1, 1]


def test_results_are_copies():
    buffer = np.zeros(2)

    def f(x):
        buffer[:] = x
        return buffer

    first = gt.host_call(f, buffer, 1.0)
    second = gt.host_call(f, buffer, 2.0)
    assert first.tolist() == [1, 1]
    assert second.tolist() == [2, 2]
    both = gt.jit(lambda x: (gt.host_call(f, buffer, x), gt.host_call(f, buffer, 2 * x)))(3.0)
    assert [part.tolist() for part in both] == [[3, 3], [6, 6]]


def test_small_floats_stay():
    x = np.ones(2, ml_dtypes.bfloat16)
    seen = []

    def f(x):
        seen.append(x.dtype)
        return x

    for call in (lambda x: gt.host_call(f, x, x), gt.jit(lambda x: gt.host_call(f, x, x))):
        assert call(x).dtype == ml_dtypes.bfloat16
    assert set(seen) == {np.dtype(ml_dtypes.bfloat16)}


# ---- derivatives ----


@pytest.mark.parametrize("wrap", [lambda f: f, gt.jit], ids=["eager", "compiled"])
def test_derivatives_of_both_orders(solver, wrap):
    f = solver.root
    x, a = 2.0, 10.0
    assert wrap(gt.grad(f))(a) == pytest.approx(slope(x))
    assert gt.grad(wrap(f))(a) == pytest.approx(slope(x))
    assert wrap(lambda a: gt.jvp(f, (a,), (1.0,))[1])(a) == pytest.approx(slope(x))
    assert gt.jvp(wrap(f), (a,), (1.0,))[1] == pytest.approx(slope(x))
    for second in (gt.grad(gt.grad(f)), gt.hessian(f), gt.jacfwd(gt.jacfwd(f))):
        assert wrap(second)(a) == pytest.approx(second_slope(x))
    assert gt.grad(wrap(gt.grad(f)))(a) == pytest.approx(second_slope(x))


@pytest.mark.parametrize("rule", ["vjp", "jvp"])
def test_one_rule_is_enough_for_reverse_mode(solver, rule):
    options = {
        "vjp": lambda ct, x, a: (ct * slope(x),),
        "jvp": lambda tangents, x, a: tangents[0] * slope(x),
    }
    f = lambda a: solver.root(a, **{rule: options[rule]})  # noqa: E731
    for call in (gt.grad(f), gt.jit(gt.grad(f)), gt.grad(gt.jit(f))):
        assert call(10.0) == pytest.approx(slope(2.0))
    assert gt.grad(gt.grad(f))(10.0) == pytest.approx(second_slope(2.0))


def test_rules_pass_the_gradient_check(solver):
    gt.testing.check_grads(lambda a: gt.sin(solver.root(gt.exp(a))), (1.3,), order=2)


def test_recorded_tensors(solver):
    a = gt.tensor(10.0, requires_grad=True)
    (solver.root(a) * 3.0).backward()
    assert a.grad.item() == pytest.approx(3 * slope(2.0))
    assert solver.calls == 1


def test_without_a_rule_only_derivatives_raise(solver):
    f = lambda a: solver.root(a, batch=None)  # noqa: E731
    assert f(10.0) == pytest.approx(2.0)
    a = gt.tensor(10.0, requires_grad=True)
    y = f(a)
    for ask in (
        y.backward,
        lambda: gt.grad(f)(10.0),
        lambda: gt.jit(gt.grad(f))(10.0),
        lambda: gt.grad(gt.jit(f))(10.0),
    ):
        with pytest.raises(NotDifferentiableError, match=r"host_call of solve: .* by vjp="):
            ask()
    for ask in (
        lambda: gt.jvp(f, (10.0,), (1.0,)),
        lambda: gt.jit(lambda a: gt.jvp(f, (a,), (1.0,)))(10.0),
    ):
        with pytest.raises(NotDifferentiableError, match=r"no forward-mode rule; .* by jvp="):
            ask()
    assert gt.grad(lambda a: f(gt.stop_gradient(a)) * a)(10.0) == pytest.approx(2.0)


def test_several_results_and_integers():
    def f(a, b):
        return {"sum": a + b, "count": 7}

    def vjp(ct, out, a, b):
        return ct["sum"], ct["sum"]

    def g(a, b):
        out = gt.host_call(f, {"sum": np.zeros(2), "count": 0}, a, b, vjp=vjp)
        return gt.sum(out["sum"] * out["count"])

    for call in (gt.grad(g), gt.jit(gt.grad(g)), gt.grad(gt.jit(g))):
        assert call(np.ones(2), np.ones(2)).tolist() == [7, 7]


def test_a_rule_of_the_wrong_shape():
    f = lambda x: gt.host_call(np.sum, 0.0, x, vjp=lambda ct, out, x: (ct,))  # noqa: E731
    with pytest.raises(ShapeError, match=r"host_call of sum: the vjp rule .* expected \(2,\)"):
        gt.grad(f)(np.ones(2))


# ---- what it returns is checked ----

BAD = [
    (lambda x: np.ones(3), np.ones(2), ShapeError, r"shape \(3,\), expected \(2,\)"),
    (lambda x: np.ones(2, int), np.ones(2), DTypeError, "int64, expected float64"),
    (lambda x: np.ones(2, np.float32), np.ones(2), DTypeError, "float32, expected float64"),
    (lambda x: 1.5, 0, DTypeError, "float64, expected int64"),
    (lambda x: (x, x), np.ones(2), ShapeError, "expected the containers"),
    (lambda x: x, (np.ones(2),), ShapeError, "expected the containers"),
    (lambda x: {"a": x}, {"b": np.ones(2)}, ShapeError, "expected the containers"),
    (lambda x: None, np.ones(2), ShapeError, "expected the containers"),
    (lambda x: "text", 0.0, DTypeError, "expected float64"),
]


@pytest.mark.parametrize(("f", "like", "error", "message"), BAD)
def test_results_are_checked(f, like, error, message):
    call = lambda x: gt.host_call(f, like, x)  # noqa: E731
    for run in (call, gt.jit(call)):
        with pytest.raises(error, match=message):
            run(np.ones(2))


@pytest.mark.parametrize(
    ("number", "dtype"), [(1, "float32"), (1.5, "float16"), (2, "int8"), (True, "bool"), (1, "c8")]
)
def test_python_numbers_take_the_dtype(number, dtype):
    out = gt.host_call(lambda x: number, np.zeros((), dtype), 1.0)
    assert out.dtype == dtype
    assert out == number


@pytest.mark.parametrize("like", ["text", object(), [None, "a"], np.array(["a"])])
def test_result_like_is_checked(like):
    with pytest.raises(DTypeError, match="in result_like, expected numbers"):
        gt.host_call(lambda x: x, like, 1.0)


def test_functions_are_checked():
    with pytest.raises(ArgumentError, match="host_call: got an int, expected a function"):
        gt.host_call(3, 0.0, 1.0)
    with pytest.raises(ArgumentError, match="host_call: got an int, expected a function"):
        gt.host_call(lambda x: x, 0.0, 1.0, vjp=3)


def test_tensors_that_are_no_arguments_are_refused():
    w = gt.tensor(2.0, requires_grad=True)
    with pytest.raises(ConversionError, match="returned a recorded tensor"):
        gt.host_call(lambda x: w * 2, 0.0, 1.0)


@pytest.mark.parametrize("error", [ValueError, TypeError, IndexError, ZeroDivisionError, KeyError])
def test_errors_of_the_function_stay_as_they_are(error):
    def f(x):
        raise error("f(a) and f(b) must have different signs")

    call = lambda x: gt.host_call(f, 0.0, x, vjp=lambda ct, out, x: (ct,))  # noqa: E731
    for run in (call, gt.jit(call), gt.grad(call), gt.jit(gt.grad(call))):
        with pytest.raises(error, match=r"^'?f\(a\) and f\(b\) must") as raised:
            run(1.0)
        assert type(raised.value) is error
    with pytest.raises(error, match=r"^'?f\(a\) and"):
        gt.vmap(call)(np.ones(2))


# ---- batches ----


@pytest.mark.parametrize("wrap", [lambda f: f, gt.jit], ids=["eager", "compiled"])
def test_each_element_of_a_batch_is_a_call(solver, wrap):
    result, calls = solver.counted(wrap(gt.vmap(solver.root)), A)
    np.testing.assert_allclose(result, X)
    assert calls == 3
    np.testing.assert_allclose(wrap(gt.vmap(gt.grad(solver.root)))(A), slope(X))
    np.testing.assert_allclose(wrap(gt.vmap(gt.grad(gt.grad(solver.root))))(A), second_slope(X))
    jacobian = wrap(gt.jacrev(gt.vmap(solver.root)))(A)
    np.testing.assert_allclose(jacobian, np.diag(slope(X)), atol=1e-12)
    np.testing.assert_allclose(wrap(gt.jacfwd(gt.vmap(solver.root)))(A), jacobian)


def test_vmap_of_a_compiled_function(solver):
    np.testing.assert_allclose(gt.vmap(gt.jit(solver.root))(A), X)
    np.testing.assert_allclose(gt.vmap(gt.jit(gt.grad(solver.root)))(A), slope(X))


def test_axes_and_arguments_that_are_not_batched(rng):
    x, y = rng.normal(size=(2, 4, 3)), rng.normal(size=2)

    def f(x, y, scale):
        assert x.shape == (2, 3)
        assert y.shape == (2,)
        return scale * (y @ x)

    call = lambda x, y: gt.host_call(  # noqa: E731
        f,
        np.zeros(3),
        x,
        y,
        2,
        vjp=lambda ct, out, x, y, s: (s * y[:, None] * ct, s * x @ ct, None),
    )
    mapped = gt.vmap(call, in_axes=(1, None))
    np.testing.assert_allclose(mapped(x, y), 2 * np.einsum("bac,b->ac", x, y))
    total = lambda x, y: gt.sum(mapped(x, y) ** 2)  # noqa: E731
    plain = lambda x, y: gt.sum((2 * gt.einsum("bac,b->ac", x, y)) ** 2)  # noqa: E731
    for got, expected in zip(
        gt.grad(total, argnums=(0, 1))(x, y), gt.grad(plain, argnums=(0, 1))(x, y), strict=True
    ):
        np.testing.assert_allclose(got, expected)


def test_a_batch_rule_is_one_call(rng):
    shapes = []

    def batch(x, y, n):
        shapes.append((x.shape, y.shape, n, x.flags.writeable, y.flags.writeable))
        return np.sum(x, -1) * y**n

    def f(x, y, n):
        raise AssertionError

    def call(x, y):
        rule = lambda ct, out, x, y, n: (ct * y**n * gt.ones_like(x), None, None)  # noqa: E731
        return gt.host_call(f, 0.0, x, y, 2, vjp=rule, batch=batch)

    x = rng.normal(size=(3, 5))
    mapped = gt.vmap(call, in_axes=(1, None))
    for run in (mapped, gt.jit(mapped)):
        shapes.clear()
        np.testing.assert_allclose(run(x, 3.0), 9 * x.sum(0))
        assert shapes == [((5, 3), (5,), 2, False, False)]
    gradient = gt.grad(lambda x: gt.sum(mapped(x, 3.0)))(x)
    np.testing.assert_allclose(gradient, np.full((3, 5), 9.0))
    # A batch of batches: the rule for each of the outer ones.
    shapes.clear()
    nested = gt.vmap(gt.vmap(call, in_axes=(0, None)), in_axes=(0, None))(x.reshape(3, 5, 1), 1.0)
    np.testing.assert_allclose(nested, x)
    assert len(shapes) == 3


def test_batch_rules_are_checked():
    call = lambda x: gt.host_call(np.sum, 0.0, x, batch=lambda x: np.sum(x))  # noqa: E731
    with pytest.raises(ShapeError, match=r"shape \(\), expected \(4,\)"):
        gt.vmap(call)(np.ones((4, 2)))


def test_an_empty_batch_calls_nothing(solver):
    result, calls = solver.counted(gt.vmap(solver.root), np.zeros(0))
    assert result.shape == (0,)
    assert calls == 0


def test_containers_in_batches():
    f = lambda p: (p["x"] + p["y"], p["x"])  # noqa: E731
    call = lambda p: gt.host_call(f, (0.0, 0.0), p)  # noqa: E731
    total, x = gt.vmap(call, in_axes=({"x": 0, "y": None},))({"x": np.arange(3.0), "y": 1.0})
    assert total.tolist() == [1, 2, 3]
    assert x.tolist() == [0, 1, 2]


# ---- compiled functions ----


def test_it_runs_at_each_call_between_native_parts(solver):
    compiled = gt.jit(lambda a: gt.sin(solver.root(gt.exp(a))) * 2)
    for a in (0.5, 1.5, 1.5):
        result, calls = solver.counted(compiled, a)
        assert calls == 1
        assert result == pytest.approx(2 * np.sin(solver.root(np.exp(a))))
    (eager,) = compiled.explain(1.5).eager
    assert eager.reason == "host_call of solve has no native form"


def test_it_is_neither_folded_nor_merged_nor_dropped(solver):
    twice = gt.jit(lambda a: (solver.root(a), solver.root(a)))
    constant = gt.jit(lambda a: a + solver.root(2.0))
    unused = gt.jit(lambda a: (solver.root(a), a)[1])
    for function, expected in ((twice, 2), (constant, 1), (unused, 1)):
        for _ in range(2):
            assert solver.counted(function, 10.0)[1] == expected


def test_without_arguments_or_results():
    numbers = iter(range(100))
    seen = []
    read = gt.jit(lambda x: x + gt.host_call(lambda: next(numbers), 0.0))
    assert [float(read(0.5)) for _ in range(3)] == [0.5, 1.5, 2.5]

    def noted(x):
        gt.host_call(lambda x: (seen.append(float(x)), ())[1], (), x)
        return x * 2

    assert gt.jit(noted)(3.0) == 6.0
    assert gt.jit(gt.grad(noted))(4.0) == 2.0
    assert seen == [3.0, 4.0]


@pytest.mark.parametrize("transform", [lambda f: gt.jit(gt.grad(f)), lambda f: gt.grad(gt.jit(f))])
def test_a_gradient_calls_once(solver, transform):
    function = transform(lambda a: gt.exp(solver.root(a) * 0.1))
    for _ in range(2):
        assert solver.counted(function, 10.0)[1] == 1


def test_tangents_of_a_compiled_function_call_once_more(solver):
    compiled = gt.jit(solver.root)
    for _ in range(2):
        assert solver.counted(lambda: gt.jvp(compiled, (10.0,), (1.0,)))[1] == 2


def test_a_backward_pass_through_a_compiled_function_does_not_call_again(solver):
    compiled = gt.jit(solver.root)
    a = gt.tensor(10.0, requires_grad=True)
    y = compiled(a)
    assert solver.calls == 1
    y.backward()
    assert solver.calls == 1


def test_debug_mode_calls_once(solver):
    compiled = gt.jit(lambda a: solver.root(a) * 2, debug=True)
    result, calls = solver.counted(compiled, 10.0)
    assert result == pytest.approx(4.0)
    assert calls == 1


def test_graphs_of_different_functions_differ():
    def graph(f, **options):
        return trace(lambda x: gt.host_call(f, 0.0, x, **options), [aval_of(np.array(1.0))]).graph

    f, g = (lambda x: x), (lambda x: x)
    rule = lambda ct, out, x: (ct,)  # noqa: E731
    solver = Solver()
    graphs = [graph(f), graph(g), graph(f, vjp=rule), graph(f, batch=g), graph(solver.solve)]
    assert len({structural_hash(one) for one in graphs}) == len(graphs)
    assert structural_hash(graph(f)) == structural_hash(graphs[0])

    def power(n):
        call = lambda x: gt.host_call(f, 0.0, x, n)  # noqa: E731
        return structural_hash(trace(call, [aval_of(np.array(1.0))]).graph)

    assert power(1000) == power(int("1000"))
    assert power(1000) != power(1001)
    assert power(1) != power("1")
    assert structural_hash(graph(solver.solve)) == structural_hash(graphs[-1])
