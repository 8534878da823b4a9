"""The small print of NumPy's functions: dtypes, options, empty arrays, and what they refuse."""

from typing import Any

import numpy as np
import pytest

import gradtape as gt
import our_scipy
from gradtape.errors import ArgumentError, DTypeError, GradtapeError, IndexingError, ShapeError

M = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]])
V = M[0]
HOLES = np.array([[3.0, np.nan, 2.0], [np.nan, 5.0, 1.0]])
SMALL = V.astype(np.int8)
NARROW = V.astype(np.float32)
COORDINATES = np.array([0.0, 1.0, 3.0])

# Calls on `x`, an ndarray for NumPy and a tensor for gradtape.
SAME: dict[str, tuple[Any, Any]] = {
    "fabs of int8": (SMALL, np.fabs),
    "fabs of bool": (V > 1, np.fabs),
    "angle of bool": (V > 1, np.angle),
    "gradient of float32": (NARROW, lambda x: np.gradient(x, COORDINATES)),
    "gradient with a wide number": (NARROW, lambda x: np.gradient(x, np.float64(2))),
    "gradient of complex64": (NARROW + 0j, lambda x: np.gradient(x, COORDINATES, edge_order=2)),
    "gradient unsigned": (V, lambda x: np.gradient(x, np.array([3, 2, 0], np.uint8))),
    "unwrap of int8": (SMALL, lambda x: np.unwrap(x, period=4)),
    "unwrap of int32": (V.astype(np.int32), lambda x: np.unwrap(x, period=3)),
    "midpoint": (NARROW, lambda x: np.quantile(x, np.float32(0.3), method="midpoint")),
    "averaged": (
        SMALL,
        lambda x: np.quantile(x, np.float32(0.3), method="averaged_inverted_cdf"),
    ),
    "poly of float16": (V.astype(np.float16), np.poly),
    "geomspace of float16": (V.astype(np.float16), lambda x: np.geomspace(x, x + 1, 3)),
    "linspace of integers": (np.array([-3.0, 1.0]), lambda x: np.linspace(x, 0, 5, dtype=int)),
    "histogramdd int weights": (M.T, lambda x: np.histogramdd(x, 2, weights=SMALL)[0]),
    "histogram2d float32": (V, lambda x: np.histogram2d(x, x, 2, weights=NARROW)[0]),
    "insert at a list of one": (V, lambda x: np.insert(x, [1], [7.0, 8.0])),
    "insert at an array of one": (M, lambda x: np.insert(x, np.array([2]), M[:, :2], axis=1)),
    "insert at nothing": (V, lambda x: np.insert(x, [], [])),
    "setxor1d of nothing": (V[:0], lambda x: np.setxor1d(x, x)),
    "trim_zeros of a number": (np.float64(2.0), np.trim_zeros),
    "ravel": (M, lambda x: x.ravel("F")),
    "array like": (V, lambda x: np.array([1.0, 2.0], ndmin=3, like=x)),
    "nansum where": (HOLES, lambda x: np.nansum(x, 1, where=M > 1)),
    "nansum initial": (HOLES, lambda x: np.nansum(x, 0, initial=2.0)),
    "nansum in float32": (HOLES, lambda x: np.nansum(x, 0, np.float32)),
    "nansum in integers": (HOLES, lambda x: np.nansum(x, dtype=int)),
    "nanprod where": (HOLES, lambda x: np.nanprod(x, initial=2.0, where=M > 1)),
    "nanmax where": (HOLES, lambda x: np.nanmax(x, 1, initial=-1.0, where=M > 2)),
    "nanmin initial": (HOLES, lambda x: np.nanmin(x, 0, initial=1.5)),
    "nanmean where": (HOLES, lambda x: np.nanmean(x, 1, where=M != 1)),
    "nanmean of many halves": (np.ones(70_000, np.float16) / 2**4, np.nanmean),
    "nanvar where": (HOLES, lambda x: np.nanvar(x, 0, where=M > 0)),
    "nanvar around": (HOLES, lambda x: np.nanvar(x, 1, mean=np.array([[2.5], [3.0]]))),
    "nanstd where": (HOLES, lambda x: np.nanstd(x, 1, keepdims=True, where=M != 1)),
    "nanvar of too few": (HOLES, lambda x: np.nanvar(x, 1, ddof=3)),
    "polyfit in full": (V, lambda x: np.polyfit(COORDINATES, x, 1, full=True)[:4]),
    "polyfit in full, weighted": (
        M.T,
        lambda x: np.polyfit(COORDINATES, x, 1, full=True, w=[1.0, 2.0, 3.0])[1],
    ),
    "polyfit of columns": (M.T, lambda x: np.polyfit(COORDINATES, x, 1, cov="unscaled")),
    "interp of one sample": (
        np.array([np.nan, 1.0, 2.0]),
        lambda x: np.interp(x, np.array([1.0]), np.array([3.0])),
    ),
}


def compare(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple | list):
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other)
        return
    theirs = np.asarray(theirs)
    ours = ours.numpy() if isinstance(ours, gt.Tensor) else np.asarray(ours)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-12)


if np.lib.NumpyVersion(np.__version__) < "2.2.0":
    del SAME["trim_zeros of a number"]


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("name", SAME)
def test_value_and_dtype_are_those_of_numpy(name: str) -> None:
    x, call = SAME[name]
    compare(call(gt.tensor(x)), call(x))


REFUSED: dict[str, tuple[type[GradtapeError], str, Any]] = {
    "ediff1d": (DTypeError, "ediff1d: got", lambda x: np.ediff1d(x.astype(int), to_end=0.5)),
    "delete": (IndexingError, "delete: boolean", lambda x: np.delete(x, [True, False])),
    "geomspace": (ArgumentError, "geomspace: got 0", lambda x: np.geomspace(x, 0.0)),
    "hypot": (DTypeError, "hypot", lambda x: np.hypot.reduce(x + 1j)),
    "histogram": (DTypeError, "histogram: got complex", lambda x: np.histogram(x + 1j)),
    "bincount": (ArgumentError, "minlength", lambda x: np.bincount(x.astype(int), x, -1)),
    "polyfit": (ShapeError, "polyfit: got w", lambda x: np.polyfit(x, x, 1, w=[[1.0]])),
    "full_like": (ShapeError, "full_like: got", lambda x: np.full_like(x, np.ones(4))),
    "astype": (DTypeError, "astype: got dtype", lambda x: np.astype(x, "float99")),
    "take_along_axis": (ShapeError, "expected 1 or 2 along axis 0", lambda x: np.take_along_axis(
        np.stack([x, x]), np.zeros((4, 3), int), 1)),
    "copyto": (DTypeError, "copyto: got", lambda x: np.copyto(x, np.ones(3), "no")),
    "copyto rule": (ArgumentError, "casting", lambda x: np.copyto(x, 1.0, "never")),
    "quantile": (ArgumentError, "negative", lambda x: np.quantile(
        x, 0.5, method="inverted_cdf", weights=(1, -1, 1))),
    "nanmax": (ShapeError, "expected initial=", lambda x: np.nanmax(x, where=x > 1)),
    "reshape": (ArgumentError, "copy=False", lambda x: np.reshape(
        np.stack([x, x]).T, -1, copy=False)),
}  # fmt: skip

# Their own parameter `copy`.
COPY_IS_KNOWN = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
if not COPY_IS_KNOWN:
    del REFUSED["reshape"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    error, match, call = REFUSED[name]
    with pytest.raises(error, match=match):
        call(gt.tensor(NARROW))


def test_a_reshaped_copy_has_memory_of_its_own() -> None:
    x = gt.tensor(V)
    copied, shared = gt.reshape(x, (3, 1), copy=True), gt.reshape(x, (3, 1), copy=False)
    copied[0] = 9.0
    assert x[0] == 3.0
    shared[0] = 9.0
    assert x[0] == 9.0


@pytest.mark.parametrize("shape", [(1,), (), (3, 1)])
def test_a_traced_array_is_not_broadcast_to_less(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="broadcast_to: got float64"):
        gt.jit(lambda x: gt.broadcast_to(x, shape))(np.ones((2, 3)))


def test_copyto_casts_as_it_is_told() -> None:
    x = gt.tensor(np.zeros(3, int))
    np.copyto(x, gt.tensor([1.5, 2.5, 3.5]), casting="unsafe")
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3])


def test_choose_refuses_negative_numbers_in_compiled_code() -> None:
    choose = gt.jit(lambda i: gt.choose(i, [V, 2 * V]))
    np.testing.assert_array_equal(choose(np.array([1, 0, 1])), [6.0, 1.0, 4.0])
    with pytest.raises(IndexingError):
        choose(np.array([-1, 0, 1]))


def test_nanquantile_of_nothing_is_a_tensor() -> None:
    out = gt.nanquantile(gt.tensor(np.empty((0, 2))), 0.5, axis=0)
    assert isinstance(out, gt.Tensor)
    assert out.shape == (2,)


def test_arrays_like_a_tensor_are_copied_as_told() -> None:
    x = gt.tensor(V)
    assert np.asanyarray(x, like=x) is x
    if COPY_IS_KNOWN:
        assert np.asanyarray(x, copy=True, like=x) is not x
    assert np.array(x, copy=None, like=x) is x
    assert np.array(x, like=x) is not x


def test_broadcast_shapes_takes_numpys_integers() -> None:
    assert gt.broadcast_shapes(np.int64(3), (2, 1)) == (2, 3)


def test_nan_to_num_of_half_a_complex_number() -> None:
    # The imaginary part is a number, and passes.
    z = np.array([complex(np.nan, 2.0), complex(1.0, np.inf), 1.0 + 1.0j])
    _, pull = gt.vjp(gt.nan_to_num, z)
    np.testing.assert_array_equal(pull(np.full(3, 2 + 3j))[0], [3j, 2, 2 + 3j])
    tangent = gt.jvp(gt.nan_to_num, (z,), (np.full(3, 2 + 3j),))[1]
    np.testing.assert_array_equal(tangent, [3j, 2, 2 + 3j])


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda x: gt.std(x, mean=np.array([2.0])), id="around a mean"),
        pytest.param(lambda x: gt.std(x, where=V > 1), id="of some"),
        pytest.param(gt.nanstd, id="without NaN"),
        pytest.param(our_scipy.ndimage.standard_deviation, id="of an image"),
    ],
)
def test_a_spread_of_everything_is_a_scalar_of_numpy(call: Any) -> None:
    assert type(call(V)) is np.float64


def test_what_is_not_the_extreme_has_gradient_zero() -> None:
    # The cotangent of the root is infinite at 0.
    x = np.array([-1.0, 0.0, -2.0])
    for compiled in (gt.jit, lambda f: f):
        grads = compiled(gt.grad(lambda x: gt.sqrt(gt.max(x))))(x)
        np.testing.assert_array_equal(grads, [0.0, np.inf, 0.0])


def test_vectorize_with_options_of_numpy() -> None:
    def scaled(x: Any, by: Any) -> Any:
        return x * by[0]

    ours = gt.vectorize(scaled, excluded={"by"}, doc="scaled")
    np.testing.assert_array_equal(ours(V, by=[2.0]), 2 * V)
    assert ours.__doc__ == "scaled"
    np.testing.assert_array_equal(gt.vectorize(scaled, excluded=[1])(V, [3.0]), 3 * V)
    named = gt.grad(lambda x: gt.vectorize(lambda x, y: x * y)(V, y=x).sum())(V)
    np.testing.assert_array_equal(named, V)
    empty = gt.vectorize(lambda x: (x, 2 * x), otypes="df")(V[:0])
    assert [x.dtype.char for x in empty] == ["d", "f"]
    assert [x.shape for x in empty] == [(0,), (0,)]


HALVED = ["mean", "max", "min", "nanmax", "var", "std", "nanmean", "nanvar"]


@pytest.mark.parametrize("name", HALVED)
def test_half_precision_has_gradients_over_many_elements(name: str) -> None:
    # The largest number of float16 is 65504: a count of elements may be beyond it.
    size = 70_000
    x = np.zeros(size) if "max" in name or "min" in name else np.arange(size) / size
    function = getattr(gt, name)
    wide = gt.grad(function)(x)
    narrow = gt.grad(function)(x.astype(np.float16))
    assert narrow.dtype == np.float16
    np.testing.assert_allclose(narrow, wide, rtol=0.02, atol=3e-7)
    tangent = (1 + x) / 4  # of which the sum is still a number
    wide_change = gt.jvp(function, (x,), (tangent,))[1]
    change = gt.jvp(function, (x.astype(np.float16),), (tangent.astype(np.float16),))[1]
    np.testing.assert_allclose(change, wide_change, rtol=0.02)
