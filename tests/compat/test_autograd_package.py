"""autograd's modules besides its operators and primitives, and taking its place."""

import importlib
import subprocess
import sys
import types
from collections import namedtuple

import numpy as np
import pytest
import scipy.signal
import scipy.stats

import gradtape as gt
import gradtape.numpy as gnp
from gradtape.compat import autograd as ag
from gradtape.compat.autograd import builtins, install, tracer, uninstall
from gradtape.compat.autograd.core import vspace
from gradtape.compat.autograd.misc import const_graph, fixed_points, flatten, optimizers
from gradtape.compat.autograd.misc.flatten import flatten_func
from gradtape.compat.autograd.misc.tracers import full_graph
from gradtape.compat.autograd.numpy import numpy_boxes, numpy_vjps
from gradtape.compat.autograd.scipy.signal import convolve
from gradtape.compat.autograd.test_util import check_equivalent, check_grads, combo_check
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradientCheckError,
    MissingNameError,
    ShapeError,
    UnsupportedError,
)

close = np.testing.assert_allclose
X = np.array([1.0, -2.0, 0.5])


@pytest.fixture(autouse=True)
def _same_vectors():
    """Vectors of vector spaces are drawn by NumPy's global generator, as in autograd."""
    np.random.seed(1)  # noqa: NPY002


# ---- names --------------------------------------------------------------------------------------

# What programs import from autograd, by module.
NAMES = {
    "": "grad value_and_grad elementwise_grad jacobian hessian make_vjp make_jvp deriv primitive "
    "checkpoint multigrad_dict grad_named holomorphic_grad make_hvp make_ggnvp list tuple dict "
    "isinstance type grad_and_aux hessian_vector_product vector_jacobian_product",
    "builtins": "list tuple dict isinstance type SequenceBox DictBox",
    "core": "make_vjp make_jvp vspace VSpace primitive_vjps primitive_jvps getval primitive "
    "VJPNode backward_pass",
    "extend": "primitive defvjp defvjp_argnum defvjp_argnums defjvp defjvp_argnum defjvp_argnums "
    "def_linear Box VSpace vspace SparseObject VJPNode JVPNode notrace_primitive register_notrace",
    "differential_operators": "make_jvp_reversemode grad jacobian tensor_jacobian_product",
    "misc": "flatten const_graph",
    "misc.optimizers": "adam sgd rmsprop unflatten_optimizer",
    "misc.fixed_points": "fixed_point",
    "misc.tracers": "const_graph full_graph",
    "numpy": "array sum sin linalg fft random ndarray pi newaxis float64 make_diagonal",
    "numpy.linalg": "norm solve inv det eigh cholesky LinAlgError",
    "numpy.fft": "fft ifft rfft",
    "numpy.random": "randn RandomState seed",
    "numpy.numpy_boxes": "ArrayBox",
    "numpy.numpy_vspaces": "ArrayVSpace ComplexArrayVSpace",
    "numpy.numpy_vjps": "unbroadcast unbroadcast_f match_complex repeat_to_match_shape metadata",
    "numpy.numpy_wrapper": "wrap_namespace array_from_args concatenate_args",
    "scipy.special": "gammaln logsumexp expit erf beta",
    "scipy.signal": "convolve",
    "scipy.stats": "norm t gamma beta expon",
    "scipy.stats.norm": "logpdf pdf cdf logcdf sf rvs",
    "scipy.stats.multivariate_normal": "logpdf pdf entropy",
    "scipy.misc": "logsumexp",
    "test_util": "check_grads check_vjp check_jvp combo_check scalar_close check_equivalent",
    "tracer": "trace_stack isbox getval Node trace Box primitive new_box toposort",
    "util": "subvals subval toposort quick_grad_check",
    "wrap_util": "unary_to_nary wraps get_name",
}


@pytest.mark.parametrize("module", NAMES)
def test_names(module):
    found = importlib.import_module(f"gradtape.compat.autograd.{module}".rstrip("."))
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []
    assert set(NAMES[module].split()) <= set(dir(found)) | {"random", "fft", "linalg"}


def test_unknown_names():
    with pytest.raises(MissingNameError, match="no attribute 'nonsense'"):
        _ = ag.nonsense
    with pytest.raises(MissingNameError, match="nonsense"):
        _ = ag.numpy.nonsense
    with pytest.raises(MissingNameError, match="nonsense"):
        _ = ag.scipy.stats.norm.nonsense
    with pytest.raises(MissingNameError, match=r"gradtape\.scipy\.interpolate"):
        _ = ag.scipy.interpolate


def test_numpy_is_gradtapes():
    assert ag.numpy.sum is gnp.sum
    names = [name for name in dir(np) if not name.startswith("_")]
    assert [name for name in names if not hasattr(ag.numpy, name)] == []


def test_nothing_of_it_is_loaded_with_gradtape():
    code = "import sys, gradtape; print([m for m in sys.modules if 'gradtape.compat' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- taking autograd's place --------------------------------------------------------------------


@pytest.fixture
def nobody():
    """No package of the name autograd in `sys.modules`, whatever other tests have loaded."""
    uninstall()
    saved = {n: sys.modules.pop(n) for n in list(sys.modules) if n.partition(".")[0] == "autograd"}
    yield
    uninstall()
    sys.modules.update(saved)


@pytest.mark.usefixtures("nobody")
def test_install():
    with install():
        for name in ("autograd", "autograd.numpy", "autograd.scipy.stats.norm", "autograd.extend"):
            module = importlib.import_module(name)
            home = "gradtape.compat." + name
            assert module is sys.modules[home]
        program = (
            "import autograd.numpy as np, autograd.scipy.stats.norm as norm\n"
            "from autograd import grad\n"
            "from autograd.misc.optimizers import adam\n"
            "found = grad(lambda m: np.sum(norm.logpdf(np.ones(3), m, 2.0)))(0.5)\n"
        )
        scope = {}
        exec(program, scope)
        close(scope["found"], 3 * 0.5 / 4)
        assert install() is install()
    assert not [name for name in sys.modules if name.partition(".")[0] == "autograd"]
    uninstall()  # does nothing


@pytest.mark.usefixtures("nobody")
def test_install_does_not_replace_autograd_unasked():
    real, part = types.ModuleType("autograd"), types.ModuleType("autograd.numpy")
    real.__file__ = "/somewhere/autograd/__init__.py"
    sys.modules.update({"autograd": real, "autograd.numpy": part})
    with pytest.raises(ArgumentError, match=r"loaded already, from /somewhere.*replace=True"):
        install()
    install(replace=True)
    assert sys.modules["autograd"] is ag
    uninstall()
    assert sys.modules["autograd"] is real
    assert sys.modules["autograd.numpy"] is part
    assert "autograd.extend" not in sys.modules
    del sys.modules["autograd"], sys.modules["autograd.numpy"]


# ---- tensors as boxes ---------------------------------------------------------------------------


def test_tensors_are_boxes():
    def f(x):
        assert isinstance(x, numpy_boxes.ArrayBox)
        assert isinstance(x, tracer.Box)
        assert not isinstance(x, builtins.SequenceBox)
        assert tracer.isbox(x)
        assert type(tracer.getval(x)) is np.ndarray
        assert builtins.isinstance(x, np.ndarray)
        assert builtins.type(x) is np.ndarray
        assert type(x._value) is np.ndarray
        assert tracer.getval([x, 1.0])[0] is not x
        assert tracer.getval(np.array([x[0], x[1]])).tolist() == [1.0, -2.0]
        return gnp.sum(x * tracer.getval(x))

    close(ag.grad(f)(X), X)
    close(ag.grad(ag.grad(lambda x: x**2 * tracer.getval(x)))(3.0), 6.0)
    assert not tracer.isbox(X)
    assert tracer.getval("any") == "any"
    ag.grad(lambda x: x if builtins.isinstance(x, float) else None)(1.0)


def test_own_boxes_are_refused():
    class Mine:
        pass

    tracer.Box.register(np.matrix)
    with pytest.raises(UnsupportedError, match=r"gt\.tree\.register"):
        tracer.Box.register(Mine)
    with pytest.raises(UnsupportedError, match="new_box"):
        tracer.new_box(1.0, 0, None)

    class MyBox(tracer.Box):
        pass

    assert not isinstance(gt.ones(2), MyBox)


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda: ag.core.VJPNode.new_root(), "make_vjp"),
        (lambda: ag.core.JVPNode.new_root(1.0), "make_jvp"),
        (lambda: ag.core.backward_pass(1.0, None), "make_vjp"),
        (lambda: tracer.trace_stack.new_trace(), "trace"),
    ],
)
def test_internals_say_what_to_use(call, instead):
    with pytest.raises(UnsupportedError, match=rf"use autograd\.(tracer\.)?{instead}\("):
        call()


# ---- vector spaces ------------------------------------------------------------------------------

Pair = namedtuple("Pair", "a b")
SPACES = [
    X,
    3.0,
    np.float32(2.0),
    1.0 + 2.0j,
    np.ones((2, 1)) * 1j,
    [1.0, np.ones((2, 1))],
    (1.0, [X]),
    {"x": [0.0, X], "y": ({"a": 0.0}, 1j)},
    Pair(X, 1.0),
]


@pytest.mark.parametrize("value", SPACES)
def test_vector_spaces(value):
    space = vspace(value)
    assert vspace(space.zeros()) == space == vspace(space.randn())
    basis = list(space.standard_basis())
    assert len(basis) == space.size
    gram = [[space.inner_prod(x, y) for x in basis] for y in basis]
    close(gram, np.eye(space.size))
    total = space.zeros()
    for vector in basis:
        total = space.add(total, vector)
    check_equivalent(total, space.ones())
    x, y = space.randn(), space.randn()
    close(space.inner_prod(x, space.scalar_mul(y, 3.0)), 3 * space.inner_prod(x, y), rtol=1e-6)
    check_equivalent(space.covector(space.covector(x)), x)
    check_equivalent(space.mut_add(None, x), x)
    if not isinstance(value, np.float32):  # too coarse for differences
        check_grads(space.add)(x, y)
        check_grads(space.inner_prod)(x, y)
    assert space != vspace(np.ones((7, 7)))
    assert repr(space)


def test_what_has_no_vector_space():
    for value in (1, True, "x", None, np.array(["x"]), np.ones(2, bool)):
        with pytest.raises(DTypeError, match="vspace"):
            vspace(value)


# ---- flat vectors, optimizers, fixed points -----------------------------------------------------


def test_flatten(rng):
    value = (1.0, rng.normal(size=(2, 3)), [rng.normal(size=2), {"y": 2.0, "x": X}], (), 3)
    flat, unflatten = flatten(value)
    assert flat.shape == (14,)
    again = unflatten(flat)
    assert list(again[2][1]) == ["y", "x"]
    close(flatten(again)[0], flat)
    close(flat[9:12], X)  # in the order of sorted keys
    assert type(again) is tuple
    assert flatten([])[0].shape == (0,)
    mixed, unflatten = flatten([1.0, 2.0 + 1.0j])
    assert unflatten(mixed) == [1.0, 2.0 + 1.0j]
    assert isinstance(unflatten(mixed)[0], float)


def test_flatten_is_differentiable():
    def f(d):
        flat, unflatten = flatten(d)
        return gnp.sum(unflatten(flat**2)["a"]) * d["b"]

    found = ag.grad(f)({"b": 3.0, "a": X})
    close(found["a"], 6 * X)
    close(found["b"], np.sum(X**2))
    of_vector, unflatten, start = flatten_func(lambda d: {"a": d["a"] * d["b"]}, {"b": 3.0, "a": X})
    close(of_vector(start), 3 * X)
    close(ag.jacobian(of_vector)(start)[:, -1], X)
    assert unflatten(start)["b"] == 3.0


@pytest.mark.parametrize("name", ["adam", "sgd", "rmsprop"])
def test_optimizers(name):
    optimize = getattr(optimizers, name)
    target, seen = {"w": np.array([3.0, 3.0]), "b": [-1.0]}, []

    def loss(params, i):
        return gnp.sum((params["w"] - target["w"]) ** 2) + (params["b"][0] - target["b"][0]) ** 2

    found = optimize(
        ag.grad(loss),
        {"w": np.zeros(2), "b": [0.0]},
        callback=lambda params, i, g: seen.append((i, set(params), set(g))),
        num_iters=500,
        step_size=0.05,
    )
    close(found["w"], 3.0, atol=0.06)
    close(found["b"][0], -1.0, atol=0.06)
    assert seen[7] == (7, {"w", "b"}, {"w", "b"})


def test_steps_of_adam():
    # The first steps by hand: each is the rate in the direction of the sign.
    found = optimizers.adam(lambda x, i: np.array([2.0, -3.0]), np.zeros(2), num_iters=4)
    close(found, [-0.004, 0.004], rtol=1e-6)
    # Through the optimizer: x − rate·Σ of what a gradient of x is.
    close(
        ag.grad(lambda r: optimizers.sgd(lambda x, i: 2 * x, 1.0, None, 2, r, 0.0))(0.1),
        2 * (1 - 0.2) * -2,
    )


def test_fixed_point():
    def root(a, start=1.0):
        def newton(a):
            return lambda x: 0.5 * (x + a / x)

        return fixed_points.fixed_point(newton, a, start, lambda x, y: gnp.max(abs(x - y)), 1e-13)

    close(root(4.0), 2.0)
    close(ag.grad(root)(4.0), 0.25)
    close(ag.grad(ag.grad(root))(4.0), -1 / 32)
    close(ag.deriv(root)(4.0), 0.25)
    close(ag.deriv(ag.grad(root))(4.0), -1 / 32)
    a = np.array([1.0, 4.0, 9.0])
    close(ag.elementwise_grad(lambda a: root(a, np.ones(3)))(a), 0.5 / np.sqrt(a))


# ---- traces -------------------------------------------------------------------------------------


class Noted(tracer.Node):
    """A node that knows its formula."""

    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        known = dict(zip(parent_argnums, parents, strict=True))
        shown = [known[n].text if n in known else str(a) for n, a in enumerate(args)]
        self.text = f"{fun.__name__}({', '.join(shown)})"
        self.value = value

    def initialize_root(self):
        self.text = "x"


def test_trace():
    value, node = tracer.trace(Noted.new_root(), lambda x: gnp.sin(x) * x + 2.0, 3.0)
    assert node.text == "add(multiply(sin(x), x), 2.0)"
    assert value == node.value == np.sin(3.0) * 3.0 + 2.0
    # Also of what a derivative computes, and inside of one.
    _, node = tracer.trace(Noted.new_root(), ag.grad(gnp.sin), 3.0)
    assert "cos(x)" in node.text
    assert ag.grad(lambda x: tracer.trace(Noted.new_root(), gnp.sin, x)[0])(0.0) == 1.0
    with pytest.warns(UserWarning, match="independent"):
        assert tracer.trace(Noted.new_root(), lambda x: 1.0, 3.0) == (1.0, None)


def test_trace_of_containers():
    def f(pair):
        w, v = gnp.linalg.eigh(pair[0] * pair[1])
        return {"w": w, "v": v}

    value, node = tracer.trace(Noted.new_root(), f, (np.eye(2), 3.0))
    assert node.text.startswith("make_container(")
    assert node.text.count("eigh(multiply(getitem(x), getitem(x)))") == 2
    assert set(value) == {"w", "v"}


def test_const_graph():
    runs = []

    @ag.extend.primitive
    def noted(x, name):
        runs.append(name)
        return x

    def f(x, y, z):
        return noted(x, "x") + 2 * noted(y, "y") + 3 * noted(z, "z")

    cached = const_graph(f, 1.0, z=3.0)
    assert cached(2.0) == 14.0
    assert runs == ["x", "y", "z"]
    assert cached(5.0) == 20.0
    assert runs == ["x", "y", "z", "y"]
    close(ag.grad(const_graph(lambda x: gnp.sum(x**2)))(X), 2 * X)
    with pytest.warns(UserWarning, match="independent"), pytest.raises(ArgumentError):
        const_graph(lambda x: 1.0)(2.0)
    node = full_graph(lambda x, y: x * y, 3.0, 4.0)
    assert node.value == 12.0
    assert node.recipe[0].__name__ == "multiply"


# ---- checks -------------------------------------------------------------------------------------


def test_wrong_rules_are_found():
    f = ag.extend.primitive(lambda x: 2.0 * x)
    ag.extend.defvjp(f, lambda ans, x: lambda g: 2.001 * g)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of <lambda> failed"):
        check_grads(f, modes=["rev"])(1.0)
    h = ag.extend.primitive(lambda x: x**2)
    ag.extend.defjvp(h, lambda g, ans, x: 2.001 * x * g)
    with pytest.raises(GradientCheckError, match="Value mismatch"):
        check_grads(h, modes=["fwd"], order=1)(1.0)
    with pytest.raises(GradientCheckError, match="VSpace mismatch"):
        check_equivalent(X, X[:2])
    with pytest.raises(ArgumentError, match="modes"):
        check_grads(gnp.sin, modes=["sideways"])(1.0)
    combo_check(gnp.sum, modes=["rev"])([X, np.ones((2, 2))], axis=[None, 0])


# ---- rules' helpers -----------------------------------------------------------------------------


def test_helpers_of_rules():
    g = np.ones((4, 2, 3))
    assert numpy_vjps.unbroadcast(g, numpy_vjps.metadata(np.ones((2, 1)))).tolist() == [[12], [12]]
    assert numpy_vjps.unbroadcast(g * 1j, numpy_vjps.metadata(3.0)) == 0.0
    assert numpy_vjps.match_complex(1.0, 2j + 1) == 1.0
    assert numpy_vjps.match_complex(1j, 2.0) == 2 + 0j
    for axis, keepdims, count in [(None, False, 6), (0, False, 2), ((0, -1), True, 6)]:
        out = np.sum(np.ones((2, 3)), axis=axis, keepdims=keepdims)
        got, n = numpy_vjps.repeat_to_match_shape(out, (2, 3), float, axis, keepdims)
        assert got.shape == (2, 3)
        assert n == count
    assert numpy_vjps.replace_zero(np.array([0.0, 2.0]), 5.0).tolist() == [5, 2]
    assert numpy_vjps.balanced_eq(1.0, 1.0, 1.0) == 0.5


def test_what_autograds_numpy_has_besides():
    assert ag.numpy.where(True, 1, 2) == 1
    assert ag.numpy.where(True, [1, 2], [3, 4]) == [1, 2]
    assert ag.numpy.where(condition=X > 0, x=X, y=0.0).tolist() == [1.0, 0.0, 0.5]
    for name in ("concatenate", "stack", "vstack", "hstack", "column_stack", "dstack"):
        join, parts = getattr(ag.numpy, name), {"a": X, "b": 2 * X}
        assert np.array_equal(join(parts.values()), getattr(np, name)([X, 2 * X]))
        assert ag.grad(lambda x: ag.numpy.sum(join(iter([x, 2 * x, X]))))(X).tolist() == [3] * 3  # noqa: B023
    check_grads(lambda D: ag.numpy.make_diagonal(D, axis1=-1, axis2=-2))(np.ones((2, 3)))
    with pytest.raises(UnsupportedError, match="make_diagonal"):
        ag.numpy.make_diagonal(X)
    assert ag.grad(lambda x: x[ag.numpy.int64(x[0])])(X).tolist() == [0, 1, 0]
    for uplo in "LU":
        check_grads(lambda x: ag.numpy.linalg.eigh(x, uplo)[0])(np.diag(X) + 0.1)  # noqa: B023
        lower = np.tril(np.ones((3, 3)))
        found = ag.grad(lambda x: ag.numpy.sum(ag.numpy.linalg.eigh(x, uplo)[0] ** 2))(lower)  # noqa: B023
        assert np.array_equal(np.tril(found) if uplo == "L" else np.triu(found), found)


def test_square_roots_of_matrices_become_complex(rng):
    A = np.diag([4.0, 9.0]) + 0.1
    close(ag.scipy.linalg.sqrtm(A) @ ag.scipy.linalg.sqrtm(A), A)
    check_grads(ag.scipy.linalg.sqrtm)(A)
    negative = np.diag([4.0, -9.0]) + 0.1
    check_grads(lambda A: ag.numpy.abs(ag.scipy.linalg.sqrtm(A)))(negative)
    found = gt.jit(ag.grad(lambda A: gnp.sum(ag.scipy.linalg.sqrtm(A))))(A)
    close(found, ag.grad(lambda A: gnp.sum(ag.scipy.linalg.sqrtm(A)))(A))


# ---- convolutions -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize(("a", "b"), [((7,), (3,)), ((2,), (5,)), ((5, 6), (2, 3)), ((4,), (4,))])
def test_convolve_is_scipys(a, b, mode, rng):
    A, B = rng.normal(size=a), rng.normal(size=b)
    close(convolve(A, B, mode=mode), scipy.signal.convolve(A, B, mode=mode), atol=1e-12)
    check_grads(convolve, (0, 1), order=1)(A, B, mode=mode)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("swapped", [False, True])
def test_convolve_along_some_axes(mode, swapped, rng):
    # Images (samples, channels, h, w) with filters (h, w, channels, outputs).
    A, B = rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(3, 2, 3, 4))
    axes, dot = ([2, 3], [0, 1]), ([1], [2])
    expected = np.zeros((2, 4, *scipy.signal.convolve(A[0, 0], B[:, :, 0, 0], mode).shape))
    for n, o, c in np.ndindex(2, 4, 3):
        expected[n, o] += scipy.signal.convolve(A[n, c], B[:, :, c, o], mode)
    if not swapped:
        close(convolve(A, B, axes=axes, dot_axes=dot, mode=mode), expected, atol=1e-12)
    elif mode != "same":
        got = convolve(B, A, axes=axes[::-1], dot_axes=dot[::-1], mode=mode)
        close(got, expected.swapaxes(0, 1), atol=1e-12)


def test_convolve_refuses():
    with pytest.raises(ArgumentError, match="mode='most'"):
        convolve(X, X, mode="most")
    with pytest.raises(ShapeError, match="expected one array to be as large"):
        convolve(np.ones((3, 1)), np.ones((1, 3)), mode="valid")


# ---- distributions ------------------------------------------------------------------------------


def test_distributions_are_modules():
    norm = importlib.import_module("gradtape.compat.autograd.scipy.stats.norm")
    assert isinstance(norm, types.ModuleType)
    close(norm.logpdf(X, 0.5, 2.0), scipy.stats.norm.logpdf(X, 0.5, 2.0))
    close(ag.grad(lambda m: gnp.sum(norm.logpdf(X, m, 2.0)))(0.5), np.sum(X - 0.5) / 4)
    assert norm.rvs(size=3, random_state=0).shape == (3,)
    assert gt.grad(lambda m: ag.scipy.stats.t.logpdf(1.0, 3.0, m))(0.5) > 0
