"""NumPy's functions that write into a tensor, and assignment with masks: both differentiable."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    UnsupportedError,
    WriteError,
)

V = np.array([0.5, -1.0, 2.0, 0.0])
M = np.arange(12.0).reshape(3, 4) / 4 - 1


def same(got, expected):
    assert isinstance(got, gt.Tensor)
    assert (got.shape, got.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_allclose(np.asarray(got.detach()), expected, rtol=1e-13, atol=1e-14)


# ---- writes -------------------------------------------------------------------------------------

WRITES = {
    "put": lambda x, v: np.put(x, [0, 5, -1], v),
    "put wrap": lambda x, v: np.put(x, [0, 50], v, mode="wrap"),
    "put clip": lambda x, v: np.put(x, [3, 50], v, mode="clip"),
    "put cycled": lambda x, v: np.put(x, np.arange(7), v),
    "place": lambda x, v: np.place(x, M > 0.5, v),
    "putmask": lambda x, v: np.putmask(x, M > 0.5, v),
    "put_along_axis": lambda x, v: np.put_along_axis(x, np.array([[0, 1, 2, 0]]), v[0], 0),
    "put_along_axis last": lambda x, v: np.put_along_axis(
        x, np.array([[1], [0], [3]]), v[:, None], 1
    ),
    "put_along_axis flat": lambda x, v: np.put_along_axis(x, np.array([1, 7, 4]), v, None),
    "fill_diagonal": lambda x, v: np.fill_diagonal(x, v),
    "fill_diagonal number": lambda x, v: np.fill_diagonal(x, 5.0),
    "copyto": lambda x, v: np.copyto(x, v[0], where=M > 0.5),
}


def after(write):
    """A write as a function of what is written to and of what is written."""

    def function(x, v):
        out = x * 1.0
        write(out, v)
        return out

    return function


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_writes_into_tensors_are_differentiable(write):
    values = np.array([5.0, 6.0, 7.0])
    function = after(write)
    same(function(gt.tensor(M), gt.tensor(values)), function(M, values))
    gt.testing.check_grads(function, (M, values))
    np.testing.assert_array_equal(gt.jit(function)(M, values), function(M, values))
    batch = np.stack([M, 2 * M])
    rows = np.stack([function(row, values) for row in batch])
    np.testing.assert_array_equal(gt.vmap(lambda x: function(x, values))(batch), rows)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_writes_into_arrays_take_no_history(write):
    values = np.array([5.0, 6.0, 7.0])
    target, expected = M.copy(), M.copy()
    write(expected, values)
    write(target, gt.tensor(values))
    np.testing.assert_array_equal(target, expected)


def test_writes_that_would_lose_history_are_refused():
    for write in (WRITES["put"], WRITES["place"], WRITES["putmask"]):
        with pytest.raises(UnsupportedError, match="an ndarray cannot hold the history"):
            write(M.copy(), gt.tensor(V, requires_grad=True) * 2)
        with pytest.raises(WriteError, match="got a leaf"):
            write(gt.tensor(M, requires_grad=True), V)


def test_bad_writes():
    with pytest.raises(ArgumentError, match="put: got mode="):
        gt.put(gt.zeros(3), 0, 1.0, mode="no")
    with pytest.raises(ShapeError, match="putmask: got a mask"):
        gt.putmask(gt.zeros(3), M > 0, 1.0)
    with pytest.raises(ShapeError, match="fill_diagonal: got shape"):
        gt.fill_diagonal(gt.zeros(3), 1.0)
    with pytest.raises(ShapeError, match="got no values"):
        gt.place(gt.zeros(3), np.ones(3, bool), [])


def test_fill_diagonal_of_a_tall_matrix_goes_on():
    expected = np.zeros((7, 3))
    np.fill_diagonal(expected, 1.5, wrap=True)
    out = gt.zeros((7, 3))
    np.fill_diagonal(out, 1.5, wrap=True)
    same(out, expected)


def test_fill():
    def function(x):
        out = np.zeros_like(x, shape=3)
        out.fill(x[1])
        return out

    np.testing.assert_array_equal(gt.grad(lambda x: gt.sum(function(x)))(V), [0, 3, 0, 0])


def test_attributes_that_tensors_do_not_have_name_another_way():
    for x in (gt.tensor(V), gt.tensor(V)[1:]):
        with pytest.raises(
            AttributeError, match=r"a tensor has no attribute 'flat'; use t\.reshape"
        ):
            _ = x.flat
        assert not hasattr(x, "strides")


# ---- assignment with a mask ---------------------------------------------------------------------


def masked(x, value):
    out = x * 1.0
    out[x > 0] = value
    return out


@pytest.mark.parametrize("value", [0.0, np.float32(2.5), np.array(3.0), 1, True])
def test_one_value_for_all_that_a_mask_selects(value):
    same(masked(gt.tensor(M), value), masked(M, value))
    gt.testing.check_grads(lambda x: masked(x, value), (M - 0.1,))
    np.testing.assert_array_equal(gt.jit(masked)(M, value), masked(M, value))
    rows = np.stack([masked(row, value) for row in M])
    np.testing.assert_array_equal(gt.vmap(lambda x: masked(x, value))(M), rows)


def test_a_mask_of_rows():
    def function(x, row):
        out = x * 1.0
        out[x[:, 0] < -0.5] = row
        return out

    same(function(gt.tensor(M), V), function(M, V))
    gt.testing.check_grads(function, (M, V))
    np.testing.assert_array_equal(gt.jit(function)(M, V), function(M, V))


def test_mask_assignment_checks_dtypes_and_shapes():
    with pytest.raises(DTypeError, match="setitem: got a value of dtype float64"):
        gt.tensor([1, 2])[np.array([True, False])] = 0.5
    with pytest.raises(ShapeError, match="setitem: got a value of shape"):
        gt.tensor(V)[V > 0] = np.ones(3)


def test_an_index_out_of_bounds_does_not_speak_of_reading():
    with pytest.raises(IndexError, match="setitem: got index 9"):
        gt.tensor(V)[np.array([9])] = 1.0


def test_parts_of_truths():
    for name in ("real", "imag"):
        expected = getattr(np, name)(V > 0)
        same(getattr(gt, name)(gt.tensor(V > 0)), expected)
        np.testing.assert_array_equal(gt.jit(getattr(gt, name))(V > 0), expected)
