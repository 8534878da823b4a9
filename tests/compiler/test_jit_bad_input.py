"""`gt.jit` and input that is unusual or wrong: the right answer or a clear error, never a crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradtape as gt
import our_scipy
from gradtape.errors import (
    ArgumentError,
    AxisError,
    ConversionError,
    DTypeError,
    GradtapeError,
    IndexingError,
    LinAlgError,
    ShapeError,
)
from jitcheck import assert_close

Function = Callable[..., Any]
X = np.random.default_rng(5).normal(size=(6, 9))


# ---- how arrays lie in memory -------------------------------------------------------------------


class Labelled(np.ndarray):
    """A subclass that computes as arrays do."""


def unaligned(x: Any) -> Any:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    assert not view.flags.aligned
    return view


def read_only(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "in order": np.array,
    "Fortran order": np.asfortranarray,
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "every second": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "part of rows": lambda x: np.concatenate([x, x], axis=1)[:, : x.shape[1]],
    "read-only": read_only,
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder("S")),
    "unaligned": unaligned,
    "subclass": lambda x: x.copy().view(Labelled),
}
FUNCTIONS: dict[str, Function] = {
    "elementwise": lambda x: np.tanh(x) * 2 + x[:, ::-1],
    "reduced": lambda x: (x.sum(axis=0), x.max(axis=1), np.mean(x)),
    "product": lambda x: x @ x.T,
    "returned": lambda x: (x, x.T),
    "eager part": lambda x: np.linalg.pinv(x.T @ x + np.eye(x.shape[1], dtype=x.dtype)) @ x.T,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_layouts(name: str, dtype: Any) -> None:
    function, x = FUNCTIONS[name], (X * 4).astype(dtype)
    compiled = gt.jit(function)
    expected = function(x)
    for layout, laid_out in LAYOUTS.items():
        argument = laid_out(x)
        before = argument.copy()
        for _ in range(2):
            out = compiled(argument)
            assert_close([np.array(o) for o in gt.tree.flatten(out)[0]],
                         [np.array(o) for o in gt.tree.flatten(expected)[0]], 512)  # fmt: skip
        assert np.array_equal(argument, before), layout


def test_repeated_elements_and_memory_maps(tmp_path: Any) -> None:
    compiled = gt.jit(lambda x: x * 2 + x.sum(axis=0))
    repeated = np.broadcast_to(X[0], X.shape)
    assert_close(compiled(repeated), repeated * 2 + repeated.sum(axis=0))
    windows = np.lib.stride_tricks.sliding_window_view(X[0], 4)
    assert_close(compiled(windows), windows * 2 + windows.sum(axis=0))
    mapped = np.memmap(tmp_path / "x", X.dtype, "w+", shape=X.shape)
    mapped[...] = X
    assert_close(compiled(mapped), X * 2 + X.sum(axis=0))


def test_captured_arrays_of_every_layout() -> None:
    for name, laid_out in LAYOUTS.items():
        captured = laid_out(X.copy())
        compiled = gt.jit(lambda x, c=captured: x + c * 2 if x.ndim else c)
        for _ in range(2):
            assert_close(compiled(X), X + X * 2), name


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (1, 1, 1), (2, 0, 2)])
def test_arrays_without_axes_and_without_elements(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return np.exp(x) + 1, x.sum(), x.prod(), x.T, np.concatenate([x.reshape(-1)] * 2), x > 0

    x = np.full(shape, 0.5)
    compiled = gt.jit(function)
    for _ in range(2):
        assert_close(compiled(x), function(x))
    loss = gt.jit(gt.grad(lambda x: np.sum(np.exp(x))))
    assert_close(loss(x), gt.grad(lambda x: np.sum(np.exp(x)))(x))


def test_mean_of_nothing_is_nan() -> None:
    compiled = gt.jit(lambda x: (np.mean(x), np.var(x), x.mean(axis=0)))
    assert all(np.isnan(out).all() for out in compiled(np.zeros((0, 3))))


# ---- what is not an array of numbers ------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (np.ma.masked_array([1.0, 2.0], [False, True]), "a MaskedArray.*filled"),
        (np.ones((1, 2)).view(np.matrix), "a matrix, which computes by rules of its own"),
        (np.array([1, None]), "dtype object, expected numbers"),
        (np.array(["a", "b"]), "dtype <U1, expected numbers"),
        (np.array([b"a"]), "expected numbers"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), "expected numbers"),
        (np.zeros(2, "datetime64[s]"), "expected numbers"),
        (np.zeros(2, "timedelta64[s]"), "expected numbers"),
        ("text", "type str, expected arrays"),
        (b"bytes", "type bytes, expected arrays"),
        ({1, 2}, "type set, expected arrays"),
        (object(), "type object, expected arrays"),
        (np.float64, "type type, expected arrays"),
        (range(3), "type range, expected arrays"),
        ([1.0, "a"], "type str, expected arrays"),
        ({"a": np.array(["a"])}, "expected numbers"),
    ],
)
def test_arguments_that_are_not_numbers(argument: Any, text: str) -> None:
    calls: list[Any] = []
    compiled = gt.jit(lambda x: calls.append(x))
    for _ in range(2):
        with pytest.raises(DTypeError, match=f"jit: argument 0.*{text}"):
            compiled(argument)
    with pytest.raises(DTypeError, match=f"jit: argument x.*{text}"):
        compiled(x=argument)
    assert not calls


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: "text", "returned a str"),
        (lambda x: {"a": [x, object()]}, "returned an object"),
        (lambda x: np.array([1, None]), "returned an array of object"),
        (lambda x: np.array(["a"]), "returned an array of <U1"),
        (lambda x: {1, 2}, "returned a set"),
        (lambda x: (n for n in "ab"), "returned a generator"),
    ],
)
def test_results_that_are_not_numbers(function: Function, text: str) -> None:
    with pytest.raises(GradtapeError, match=text):
        gt.jit(function)(X)


# ---- what functions do wrong --------------------------------------------------------------------

WRONG: dict[str, tuple[Function, tuple[Any, ...], type[Exception]]] = {
    "shapes": (lambda x, y: x + y, (np.ones(3), np.ones(4)), ShapeError),
    "product": (lambda x, y: x @ y, (np.ones((2, 3)), np.ones((2, 3))), ShapeError),
    "product of numbers": (lambda x, y: x @ y, (np.ones(()), np.ones(3)), GradtapeError),
    "reshape": (lambda x: x.reshape(4, 4), (X,), ShapeError),
    "axis": (lambda x: x.sum(axis=2), (X,), AxisError),
    "axes twice": (lambda x: x.sum(axis=(0, 0)), (X,), GradtapeError),
    "transpose": (lambda x: np.transpose(x, (0, 0)), (X,), GradtapeError),
    "concatenate": (lambda x, y: np.concatenate([x, y]), (X, np.ones(3)), ShapeError),
    "stack": (lambda x, y: np.stack([x, y]), (X, X[1:]), ShapeError),
    "max of nothing": (lambda x: x.max(), (np.ones((0, 3)),), ShapeError),
    "argmax of nothing": (lambda x: x.argmax(axis=0), (np.ones((0, 3)),), ShapeError),
    "broadcast": (lambda x: np.broadcast_to(x, (2, 2)), (X,), ShapeError),
    "split": (lambda x: np.split(x, 4), (X,), GradtapeError),
    "index": (lambda x: x[6], (X,), IndexingError),
    "index below": (lambda x: x[0, -10], (X,), IndexingError),
    "too many": (lambda x: x[0, 0, 0], (X,), IndexingError),
    "kind of index": (lambda x: x["a"], (X,), IndexingError),
    "float index": (lambda x, i: x[i], (X, np.array([0.5])), IndexingError),
    "step": (lambda x: x[::0], (X,), IndexingError),
    "singular": (lambda x: np.linalg.inv(x), (np.zeros((2, 2)),), LinAlgError),
    "square": (lambda x: np.linalg.solve(x, x), (X,), GradtapeError),
    "integer power": (lambda x: x ** np.array([-1, 2]), (np.array([2, 3]),), ValueError),
    "gradient of integers": (lambda x: gt.grad(np.sum)(x), (np.arange(3),), DTypeError),
    "gradient of an array": (lambda x: gt.grad(np.sin)(x), (X,), ShapeError),
    "strings": (lambda x: x + "a", (X,), TypeError),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_eager_code(name: str) -> None:
    function, args, kind = WRONG[name]
    with pytest.raises(kind):
        function(*(gt.tensor(arg) for arg in args))
    compiled = gt.jit(function)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            compiled(*args)
        assert str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x[0, 0] > 0 else -x,
        lambda x: float(x[0, 0]),
        lambda x: int(x[0, 0]),
        lambda x: range(x[0, 0]),
        lambda x: [v for v in range(3) if x.sum() > v],
        lambda x: x[x > 0],
        lambda x: np.zeros(6)[int(x[0, 0])],
        lambda x: x.item(),
        lambda x: x.tolist(),
        lambda x: np.asarray(x),
        lambda x: np.random.default_rng(0).permutation(x),
        lambda x: np.zeros(3).__setitem__(0, x[0, 0]),
    ],
)
def test_asking_for_values_names_the_line(function: Function) -> None:
    with pytest.raises(ConversionError, match=r"jit: .*test_jit_bad_input\.py:\d+.*np\.where"):
        gt.jit(function)(X)


# ---- indices ------------------------------------------------------------------------------------


def written(x: Any, i: Any) -> Any:
    y = x * 1.0
    y[i] = 5.0
    return y


def added(x: Any, i: Any) -> Any:
    y = x * 1.0
    y[i] += x[i]
    return y


READS: dict[str, Function] = {
    "x[i]": lambda x, i: x[i],
    "x[i] after": lambda x, i: np.exp(x)[i] * 2,
    "x[:, i]": lambda x, i: x.T[:, i],
    "take": lambda x, i: np.take(x, i, axis=0),
    "x[i] = v": written,
    "x[i] += v": added,
    "gradient": lambda x, i: gt.grad(lambda x: np.sum(x[i] ** 2))(x),
}


@pytest.mark.parametrize("name", READS)
def test_index_arrays(name: str) -> None:
    function = READS[name]
    compiled = gt.jit(function)
    for index in ([0, 2, 5], [-1, -6, 3], [[0, 0], [1, 1]]):
        i = np.array(index)
        assert_close(compiled(X, i), np.array(function(gt.tensor(X), i)))
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        i = np.array([1, 3, 3], dtype)
        expected = function(gt.tensor(X), i)
        assert_close(compiled(X, i), np.array(expected))
    assert_close(compiled(X, np.zeros(0, int)), np.array(function(gt.tensor(X), np.zeros(0, int))))
    for index in ([0, 6], [-7, 0], [2**40, 0], [-(2**62), 1]):
        for _ in range(2):
            with pytest.raises(IndexingError, match=r"got .*index.* axis of size 6.*from -6 to 5"):
                compiled(X, np.array(index))
    with pytest.raises(IndexingError, match=r"got .*index"):
        compiled(X, 6)
    assert_close(compiled(X, np.array([0, 2])), np.array(function(gt.tensor(X), np.array([0, 2]))))


def test_indices_out_of_bounds_with_mode() -> None:
    i = np.array([-100, -1, 0, 5, 6, 100])
    for mode in ("clip", "wrap"):
        compiled = gt.jit(lambda x, i, mode=mode: np.take(x, i, axis=0, mode=mode))
        assert_close(compiled(X, i), np.take(X, i, axis=0, mode=mode))


def test_index_arrays_that_are_known() -> None:
    with pytest.raises(IndexingError, match=r"got .*index"):
        gt.jit(lambda x: x[np.array([0, 6])])(X)
    assert_close(gt.jit(lambda x: x[np.array([0, -6, 5])])(X), X[[0, -6, 5]])
    assert_close(gt.jit(lambda x: x[X[:, 0] > 0])(X), X[X[:, 0] > 0])


# ---- sizes --------------------------------------------------------------------------------------

ENORMOUS = 2**21, 2**20  # 16 TiB of float64
IMPOSSIBLE = 2**33, 2**31  # more bytes than can be counted


@pytest.mark.parametrize("shape", [ENORMOUS, IMPOSSIBLE], ids=["enormous", "impossible"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, shape: np.broadcast_to(x, shape) * 2,
        lambda x, shape: np.sum(np.cumsum(np.broadcast_to(x, shape), axis=0)),
        lambda x, shape: (lambda y: np.sum(y - np.max(y)))(np.exp(np.broadcast_to(x, shape)))[()],
        lambda x, shape: np.sum(np.broadcast_to(x, shape) @ np.broadcast_to(x, shape[::-1])),
        lambda x, shape: np.linalg.inv(np.broadcast_to(x, (shape[1], shape[1]))),
    ],
    ids=["result", "eager", "temporary", "product", "solver"],
)
def test_arrays_that_do_not_fit_into_memory(function: Function, shape: Any) -> None:
    compiled = gt.jit(function, static_argnums=1)
    for _ in range(2):
        with pytest.raises((MemoryError, GradtapeError, ValueError)) as caught:
            compiled(2.0, shape)
        assert str(caught.value)


def test_arguments_that_do_not_fit_into_memory_once_they_are_stored() -> None:
    with pytest.raises(MemoryError):
        gt.jit(np.sin)(np.broadcast_to(1.0, ENORMOUS))


def test_a_single_element_of_what_does_not_fit() -> None:
    compiled = gt.jit(lambda x: np.broadcast_to(x, ENORMOUS).reshape(-1)[-1] * 2)
    assert compiled(3.0) == 6.0


def test_many_axes_and_many_arguments() -> None:
    x = np.arange(3.0 * 2**5).reshape((2,) * 5 + (3,) + (1,) * 10)
    assert_close(gt.jit(lambda x: (x.T * 2, x.sum(axis=(0, 3))))(x), (x.T * 2, x.sum(axis=(0, 3))))
    many = [np.float64(k) for k in range(300)]
    compiled = gt.jit(lambda *xs: [sum(xs), *xs])
    for _ in range(2):
        assert_close(compiled(*many), [sum(many), *many])


# ---- dtypes without native code -----------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.complex64, np.complex128, np.longdouble, np.clongdouble, ml_dtypes.bfloat16],
)
def test_dtypes_that_run_eager_kernels(dtype: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        z = x * x + y
        return z, z.sum(axis=0), np.exp(y) * 2, x, y > 0, np.abs(z @ z.T), x.T

    x, y = X.astype(dtype), X.astype(np.float32)
    with np.errstate(all="ignore"):
        try:
            expected = function(x, y)
        except TypeError:  # NumPy has no such product
            function = lambda x, y: (x * x, x, x.T, y * 2, x.astype(np.float32) + y)  # noqa: E731
            expected = function(x, y)
    compiled = gt.jit(function)
    for _ in range(2):
        out = compiled(x, y)
        assert [o.dtype for o in out] == [o.dtype for o in expected]
        for one, other in zip(out, expected, strict=True):
            wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
            assert_close(one.astype(wide), np.array(other).astype(wide), 2**30)


def test_sparse_matrices_of_scipy_are_told_the_way() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix, x = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])), np.array([1.0, 1.0])

    def product(a: Any, x: Any) -> Any:
        return a @ x

    with pytest.raises(DTypeError, match=r"Pass gt\.scipy\.sparse\.from_scipy\(a\)"):
        gt.jit(product)(matrix, x)
    with pytest.raises(ArgumentError, match=r"pass gt\.scipy\.sparse\.from_scipy\(a\)"):
        gt.jit(product, static_argnums=0)(matrix, x)
    # What is said works.
    np.testing.assert_array_equal(
        gt.jit(product)(our_scipy.sparse.from_scipy(matrix), x), [3.0, 3.0]
    )
    np.testing.assert_array_equal(gt.jit(lambda x: matrix @ x)(x), [3.0, 3.0])
    np.testing.assert_array_equal(
        gt.jit(lambda x: our_scipy.sparse.matmul(matrix, x))(x), [3.0, 3.0]
    )


def test_what_cannot_be_hashed_is_not_sent_to_static_arguments() -> None:
    class Table:
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(DTypeError, match="a variable from outside"):
        gt.jit(lambda table, x: x)(Table(), 1.0)
    with pytest.raises(DTypeError, match="static_argnums"):
        gt.jit(lambda thing, x: x)(object(), 1.0)
