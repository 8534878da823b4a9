"""What somebody new does wrong, and what is said about it: what came, what was needed, what to do.

One line per mistake. That an error is raised is not enough: the text has to name the way out.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.sparse
from numpy import polynomial

import gradtape as gt
import our_scipy
from builds import SCIPY, needs_scipy_1_17
from gradtape.advice.foreign_names import MODULE
from gradtape.advice.tensor_attributes import TENSOR
from gradtape.errors import (
    ArgumentError,
    AxisError,
    ConversionError,
    DTypeError,
    ShapeError,
    UnsupportedError,
)

X = np.array([1.0, 2.0, 3.0])


def square(x: Any) -> Any:
    return np.sum(x * x)


# ---- arguments of transforms --------------------------------------------------------------------

BY_POSITION = (gt.grad, gt.value_and_grad, gt.jacobian, gt.jacrev, gt.jacfwd, gt.hessian)


@pytest.mark.parametrize("transform", BY_POSITION)
@pytest.mark.parametrize("argnums", ["x", 1.5, None, [0.0], ("x",)])
def test_argnums_that_are_not_positions(transform: Any, argnums: Any) -> None:
    with pytest.raises(ArgumentError, match=r"got argnums=.*expected the position.*from 0"):
        transform(square, argnums=argnums)


def test_argnums_as_numpy_has_integers() -> None:
    assert gt.grad(square, np.int64(0))(X).tolist() == [2.0, 4.0, 6.0]
    assert [g.tolist() for g in gt.grad(square, np.array([0]))(X)] == [[2.0, 4.0, 6.0]]


@pytest.mark.parametrize("transform", [*BY_POSITION, gt.vmap, gt.jit])
def test_the_value_in_place_of_the_function(transform: Any) -> None:
    with pytest.raises(ArgumentError, match=r"got a float64, expected a function"):
        transform(square(X))


def test_the_value_in_place_of_the_function_with_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"vjp: got a float64, expected a function"):
        gt.vjp(square(X), X)
    with pytest.raises(ArgumentError, match=r"jvp: got a float64, expected a function"):
        gt.jvp(square(X), (X,), (X,))


@pytest.mark.parametrize("number", [3, True, 10**30])
def test_integers_are_not_differentiated(number: int) -> None:
    with pytest.raises(DTypeError, match=rf"grad: argument 0 is the \w+ {number}, .*float\(x\)"):
        gt.grad(square)(number)


PARAMS = {"w": [X, X, np.arange(3)], "b": 0.0}


def norm(params: Any) -> Any:
    return np.sum(params["w"][0]) + params["b"]


@pytest.mark.parametrize(
    "differentiate",
    [
        gt.grad(norm),
        gt.jacobian(norm),
        gt.jacfwd(norm),
        lambda params: gt.vjp(norm, params),
        lambda params: gt.grad(lambda _, p: norm(p), argnums=1)(0.0, params),
    ],
)
def test_leaves_without_derivative_are_located(differentiate: Callable[..., Any]) -> None:
    with pytest.raises(DTypeError, match=r"argument [01]\['w'\]\[2\] is int64\[3\], .*astype"):
        differentiate(PARAMS)


def test_leaves_of_tangents_are_located() -> None:
    good = {"w": [X], "b": 0.0}
    with pytest.raises(DTypeError, match=r"primals\[0\]\['w'\]\[2\] is int64\[3\]"):
        gt.jvp(norm, (PARAMS,), (PARAMS,))
    with pytest.raises(
        ShapeError, match=r"tangent\[0\]\['w'\]\[0\] has shape \(2,\), expected \(3,"
    ):
        gt.jvp(norm, (good,), ({"w": [X[:2]], "b": 0.0},))
    _, pullback = gt.vjp(lambda x: {"a": x, "b": (x, x)}, X)
    with pytest.raises(
        ShapeError, match=r"cotangent\['b'\]\[1\] has shape \(2,\), expected \(3,\)"
    ):
        pullback({"a": X, "b": (X, X[:2])})


def test_leaves_of_batches_are_located() -> None:
    batched = gt.vmap(lambda a, params: a + params["b"])
    with pytest.raises(AxisError, match=r"argument 1\['b'\] has shape \(\) and no axis 0; .*in_ax"):
        batched(X, {"b": 1.0})
    with pytest.raises(ShapeError, match=r"argument 0: 3, argument 1\['b'\]: 2, .*in_axes=None"):
        batched(X, {"b": X[:2]})
    with pytest.raises(DTypeError, match=r"argument 1\['b'\] is a str, .*in_axes=None"):
        batched(X, {"b": "b"})


def test_leaves_of_compiled_functions_are_located() -> None:
    compiled = gt.jit(lambda mode, params, scale=1.0: params["w"][0] * scale, static_argnums=0)
    with pytest.raises(
        DTypeError, match=r"jit: argument 1\['w'\]\[1\] is of type str, .*static_ar"
    ):
        compiled("mode", {"w": [X, "name"]})
    with pytest.raises(DTypeError, match=r"jit: argument scale\[0\] is of type str"):
        compiled("mode", {"w": [X]}, scale=["x"])
    with pytest.raises(ArgumentError, match=r"jit: argument 1\['w'\]\[0\] is the integer 10{30},"):
        compiled("mode", {"w": [10**30]})


# ---- names and keywords of other libraries ------------------------------------------------------


def names_in(text: str) -> list[str]:
    """What a piece of advice names: `gt.linalg.inv`, `t.clip`, `np.save`."""
    return re.findall(r"\b((?:gt|t|np)(?:\.[A-Za-z]\w*)+)", text)


def exists(name: str) -> bool:
    found: Any = {"gt": gt, "t": gt.tensor(1.0), "np": np}[name.split(".")[0]]
    return all(
        hasattr(found, part) and [found := getattr(found, part)] for part in name.split(".")[1:]
    )


@pytest.mark.parametrize("name", MODULE)
def test_names_of_the_module(name: str) -> None:
    assert not hasattr(gt, name)
    with pytest.raises(AttributeError, match=re.escape(MODULE[name])) as caught:
        getattr(gt, name)
    assert caught.value.name == name
    assert all(map(exists, names_in(MODULE[name])))


@pytest.mark.parametrize("name", TENSOR)
def test_names_of_tensors(name: str) -> None:
    t = gt.ones(2)
    assert not hasattr(t, name)
    assert name not in dir(t)
    with pytest.raises(AttributeError, match=re.escape(TENSOR[name])):
        getattr(t, name)
    assert all(map(exists, names_in(TENSOR[name])))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cat", "use gt.concat"),
        ("conv2d", "use gt.nn.conv2d"),
        ("svd", "use gt.linalg.svd"),
        ("logit", "use gt.scipy.special.logit"),
        ("Adam", "use gt.optim.Adam"),
        ("savez", "use np.savez"),
        ("clip_by_global_norm", "use gt.gradients.clip_by_global_norm"),
        ("sofmax", r"did you mean gt\.softmax\?"),
        ("nothing_like_it_anywhere", "has no attribute 'nothing_like_it_anywhere'$"),
    ],
)
def test_names_are_looked_for_elsewhere(name: str, text: str) -> None:
    with pytest.raises(AttributeError, match=text):
        getattr(gt, name)


def test_draws_like_an_array_keep_its_dtype() -> None:
    x = gt.ones((2, 3), dtype=gt.float32)
    for name in ("rand_like", "randn_like"):
        call = MODULE[name].removeprefix("use ")
        assert eval(call, {"gt": gt, "x": x}).dtype == np.float32


def test_names_that_are_near_are_public() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = gt.kernel
    assert "gt._" not in str(caught.value)


def test_asking_for_a_name_loads_nothing() -> None:
    program = (
        "import sys, gradtape as gt\nassert not hasattr(gt, 'conv2d')\n"
        "assert 'gradtape.ops.nn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.mean(dim=0),
        lambda t: t.sum(0, keepdim=True),
        lambda t: t.argmax(dim=0),
        lambda t: t.squeeze(dim=0),
        lambda t: t.median(dim=0),
        lambda t: t.var(unbiased=False),
        lambda t: gt.sum(t, dim=0),
        lambda t: gt.max(t, dim=0, keepdims=True),
        lambda t: gt.softmax(t, dim=0),
        lambda t: gt.log_softmax(t, dim=0),
        lambda t: gt.logsumexp(t, dim=0),
        lambda t: gt.concat([t, t], dim=0),
        lambda t: gt.stack([t, t], dim=0),
    ],
)
def test_keywords(call: Callable[[Any], Any]) -> None:
    with pytest.raises(
        UnsupportedError, match=r"((axis|keepdims)= here|ddof=1 here.*), as in NumPy"
    ):
        call(gt.ones((2, 2)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gt.optim.Adam([], learning_rate=0.1), "Adam: got learning_rate=; .* lr= here"),
        (lambda: gt.data.DataLoader([1], collate_fn=list), "DataLoader: got .* collate= here"),
        (lambda: gt.data.DataLoader([1], pin_memory=True), "got pin_memory=, .*; leave it out"),
        (lambda: gt.data.random_split([1], [1], generator=3), "random_split: .* seed= here"),
        (lambda: gt.nn.Conv2d(filters=3), "Conv2d: got filters=; .* out_channels= here"),
        (lambda: gt.nn.Linear(2, 3, activation="relu"), "Linear: .* call an activation after it"),
        (lambda: gt.nn.Linear(2, 3, biass=False), r"Linear: .* did you mean bias=\?"),
        (lambda: gt.load("x", map_location="cpu"), "load: .* leave it out: arrays are in main"),
        (lambda: gt.nn.lora(None, r=4), "lora: got r=; it is called rank= here"),
        (lambda: gt.fit(verbose=1), "fit: got verbose=; it is called progress= here"),
        (lambda: gt.fit(batch_size=8), "fit: got batch_size=, .*gt.data.DataLoader"),
        (lambda: gt.autocast(device_type="cpu"), "autocast: .* leave it out"),
        (
            lambda: gt.training.EarlyStopping(restore_best_weights=True),
            "EarlyStopping: .* gt.training.KeepBest",
        ),
    ],
)
def test_keywords_of_classes_and_of_training(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        call()


def test_other_errors_of_calls_are_those_of_python() -> None:
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'out_features'"):
        gt.nn.Linear(2, bias=False)

    class Net(gt.nn.Module):
        def __init__(self) -> None:
            self.layer = gt.nn.Linear(2, 3)

    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'size'"):
        Net(size=3)  # type: ignore[call-arg]


def test_keywords_of_transforms() -> None:
    with pytest.raises(UnsupportedError, match=r"vmap: got in_dims=; it is called in_axes= here"):
        gt.vmap(square, in_dims=0)
    with pytest.raises(UnsupportedError, match=r"vmap: got out_dims=; .*out_axes= here"):
        gt.vmap(square, 0, out_dims=0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t: t.flatten(1), r"flatten: got 1, expected.*use t\.reshape\(len\(t\), -1\)"),
        (lambda t: t.flatten(0, 1), r"flatten: got 0, 1, expected.*use t\.reshape"),
        (lambda t: t.sum(0, 1), r"sum: got 0, 1; axes go into one tuple: t\.sum\(\(0, 1\)\)"),
        (lambda t: t.max(0, 1), r"one tuple: t\.max\(\(0, 1\)\)"),
        (lambda t: t.max(0, True), r"flags go by name: t\.max\(0, keepdims=True\)"),
        (lambda t: t.repeat(2, 3), r"repeat: got 2, 3, expected.*use gt\.tile\(t, \(2, 3\)\)"),
        (lambda t: t.repeat(2, 3, 1), r"use gt\.tile\(t, \(2, 3, 1\)\)"),
        (lambda t: t.view(np.int64), r"view: got dtype int64, .*use t\.astype\(dtype\)"),
        (lambda t: t.view(np.dtype("f4")), r"view: got dtype float32"),
    ],
)
def test_arguments_by_position(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises((ArgumentError, UnsupportedError), match=text):
        call(gt.ones((2, 2)))


# ---- what converts tensors without asking -------------------------------------------------------

MATRIX = scipy.sparse.csr_array(np.eye(3))
CONVERSIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "sparse made": (
        lambda t: scipy.sparse.csr_array((t, ([0, 1, 2], [0, 1, 2]))),
        r"csr_array asks .*use gt\.scipy\.sparse\.csr_array",
    ),
    "sparse made of diagonals": (
        lambda t: scipy.sparse.dia_matrix((t[None], [0]), shape=(3, 3)),
        r"use gt\.scipy\.sparse\.coo_matrix",
    ),
    "sparse elements": (
        lambda t: MATRIX * t,
        r"use t \* a, or gt\.scipy\.sparse\.from_scipy\(a\)\.multiply\(t\)",
    ),
    "sparse method": (lambda t: MATRIX.multiply(t), r"from_scipy\(a\)\.multiply\(t\)"),
    "sparse maximum": (lambda t: MATRIX.maximum(t), r"from_scipy\(a\), whose operators take tens"),
    "r_": (lambda t: np.r_[t, 1.0], r"np\.r_ asks .*use np\.concatenate"),
    "c_": (lambda t: np.c_[t, t], r"np\.c_ asks .*use np\.column_stack"),
    "vectorize": (lambda t: np.vectorize(lambda x: x * x)(t), r"np\.vectorize asks .*gt\.vmap"),
    "full": (
        lambda t: np.full(3, t[0], float),
        r"np\.full asks .*np\.full_like\(t, t, shape=sh.*gt\.full",
    ),
    "array": (lambda t: np.array([t, t]), r"np\.stack instead of np\.array"),
    "polynomial": (lambda t: polynomial.polynomial.polyval(X, t), r"np\.polyval\(c\[::-1\], x\)"),
    "chebyshev": (lambda t: polynomial.Chebyshev(X)(t), r"np\.polynomial asks .*chebval"),
    "number": (lambda t: gt.leaky_relu(X, t[0]), r"leaky_relu takes .*t\.item\(\)"),
}


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("transform", ["grad", "jvp", "jit", "vmap"])
def test_conversions_name_the_way_out(name: str, transform: str) -> None:
    function, text = CONVERSIONS[name]

    def total(x: Any) -> Any:
        return np.sum(function(x))

    calls: dict[str, Callable[[], Any]] = {
        "grad": lambda: gt.grad(total)(X),
        "jvp": lambda: gt.jvp(total, (X,), (X,)),
        "jit": lambda: gt.jit(total)(X),
        "vmap": lambda: gt.vmap(total)(np.stack([X, X])),
    }
    # SciPy 1.15 does not convert what it cannot take; what helps is added to its own error.
    error = ValueError if name == "sparse maximum" and SCIPY < (1, 16) else ConversionError
    with pytest.raises(error) as caught:
        calls[transform]()
    # Those that have no value at all say so first.
    said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert re.search(text if name != "array" else "np.stack|vmap|jit", said)


@needs_scipy_1_17
@pytest.mark.parametrize("transform", [gt.grad, gt.jacfwd, gt.jit])
def test_errors_of_compiled_code_that_hide_ours_have_a_note(transform: Any) -> None:
    def total(a: Any) -> Any:
        return gt.sum(scipy.signal.lfilter([1.0], a, X))

    with pytest.raises(ValueError, match="common type") as caught:
        transform(total)(np.array([1.0, -0.5]))
    assert (
        "scipy.signal.lfilter asks for an array: use gt.scipy.signal.lfilter;"
        in caught.value.__notes__[0]
    )


def test_errors_without_a_tensor_have_no_note() -> None:
    def total(x: Any) -> Any:
        return gt.sum(x) + scipy.signal.lfilter([], [1.0, 2.0], X)

    with pytest.raises(ValueError, match=r".") as caught:
        gt.grad(total)(X)
    assert not hasattr(caught.value, "__notes__")


FAMILIES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "legendre": "leg",
    "hermite": "herm",
    "hermite_e": "herme",
    "laguerre": "lag",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_polynomials_take_tensors_as_x(family: str) -> None:
    value = getattr(getattr(polynomial, family), f"{FAMILIES[family]}val")
    slope = getattr(getattr(polynomial, family), f"{FAMILIES[family]}der")
    got = gt.grad(lambda x: np.sum(value(x, X)))(X)
    np.testing.assert_allclose(got, value(X, slope(X)), rtol=1e-13)


# ---- tensors made by hand -----------------------------------------------------------------------


@pytest.mark.parametrize("use", [repr, lambda t: t.shape, lambda t: t.dtype, lambda t: t.sum()])
def test_the_class_is_not_what_makes_tensors(use: Callable[[Any], Any]) -> None:
    with pytest.raises(DTypeError, match=r"Tensor: got a list, .*gt\.tensor\(\[1\.0"):
        use(gt.Tensor([1.0, 2.0]))


# ---- what is no array ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [gt.exp, gt.sum, gt.concat, gt.linalg.inv, our_scipy.special.erfcx]
)
def test_ragged_lists(function: Callable[[Any], Any]) -> None:
    with pytest.raises(ShapeError, match=r"lists of different lengths.*fill them up"):
        function([[[1.0, 2.0], [3.0]]])


@pytest.mark.parametrize("function", [gt.exp, gt.sum, gt.sort, gt.linalg.inv, gt.fft.fft])
def test_nothing_in_place_of_an_array(function: Callable[[Any], Any]) -> None:
    with pytest.raises(DTypeError, match="got None, expected an array"):
        function(None)


@pytest.mark.parametrize("axis", ["x", 1.5, X])
def test_axes_that_are_not_integers(axis: Any) -> None:
    for function in (gt.sum, gt.sort, gt.softmax, gt.flip, gt.fft.fft):
        with pytest.raises(DTypeError, match=r"got axis=.*expected an integer"):
            function(gt.ones((2, 2)), axis=axis)


def test_tensors_in_place_of_integers() -> None:
    with pytest.raises(DTypeError, match=r"a tensor of float64\[\], expected an integer; use int"):
        gt.ones(3)[: gt.tensor(2.0)]


def test_errors_that_compiled_code_passed_by_come_out_of_transforms() -> None:
    def goes_on(x: Any) -> Any:
        try:
            return float(x)
        except ConversionError as error:
            raise SystemError("returned a result with an exception set") from error

    with pytest.raises(ConversionError, match=r"float\(tensor\).*t\.item\(\)"):
        gt.grad(goes_on)(1.0)


@pytest.mark.parametrize(
    ("call", "order"),
    [
        (lambda x, i: gt.gather(x, 0, i), "gt.gather(x, index, axis)"),
        (lambda x, i: gt.gather(x, 1, gt.tensor(i)), "gt.gather(x, index, axis)"),
        (lambda x, i: gt.scatter_add(x, 0, i, x), "gt.scatter_add(x, index, src, axis)"),
        (lambda x, i: gt.index_add(x, 0, i[0], x), "gt.index_add(x, index, src, axis)"),
    ],
)
def test_arguments_in_the_order_of_pytorch(call: Any, order: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"PyTorch's order, expected {order}")):
        call(np.eye(2), np.zeros((2, 2), int))


# ---- shapes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [lambda f: f, gt.jit, lambda f: gt.grad(f, argnums=0)])
@pytest.mark.parametrize("sizes", [(3, 4), (50_000, 40_000)])
def test_shapes_that_do_not_broadcast(transform: Any, sizes: tuple[int, int]) -> None:
    x, y = map(np.ones, sizes)
    text = rf"add: got float64\[{sizes[0]}\], .*; shapes .* do not broadcast, expected"
    with pytest.raises(ShapeError, match=text):
        transform(lambda x, y: gt.sum(gt.add(gt.asarray(x), y)))(x, y)


def test_sizes_that_are_arguments_of_compiled_functions() -> None:
    for function in (lambda x, n: np.reshape(x, (n, -1)), lambda x, n: gt.zeros(n) + x):
        with pytest.raises(ShapeError, match="static_argnums"):
            gt.jit(function)(np.ones(6), 3)
    with pytest.raises(ShapeError) as caught:
        np.reshape(gt.ones(6), "3")
    assert "static" not in str(caught.value)


@pytest.mark.parametrize("function", [np.linalg.cholesky, np.linalg.eigvalsh])
def test_functions_of_symmetric_matrices_are_told_how_to_be_checked(function: Any) -> None:
    a, weights = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    checker = gt.NumericalChecker()
    report = checker.check_gradient(lambda a: np.sum(function(a) * weights), a)
    assert "check lambda a: f((a + a.T) / 2)" in str(report)
    assert checker.check_gradient(lambda a: np.sum(function((a + a.T) / 2) * weights), a).is_valid
    wrong = checker.check_gradient(lambda a: np.sum(gt.stop_gradient(a) * a), a)
    assert "symmetric" not in str(wrong)
