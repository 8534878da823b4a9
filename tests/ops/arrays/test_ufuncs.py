"""NumPy's ufuncs on tensors: their methods and options, in every mode."""

import itertools

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import DTypeError, GradtapeError, ShapeError, UnsupportedError

M = np.array([[0.5, 1.25, 2.0], [3.0, 0.75, 1.5]])
MASK = np.array([[True, False, True], [False, True, True]])
WHOLE = np.array([[12, 6, 9], [8, 0, 4]])


def same(got, expected):
    """Values, shape and dtype."""
    assert isinstance(got, gt.Tensor)
    assert (got.shape, got.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_allclose(np.asarray(got.detach()), expected, rtol=1e-13, atol=1e-14)


@pytest.fixture(name="check")
def checking(thorough):
    """Check on tensors as on arrays; derivatives to second order; batched; compiled."""

    def checked(function, x=M, *, derivatives=True):
        same(function(gt.tensor(x)), function(x))
        if derivatives:
            # Entry by entry, or along random directions of all entries.
            gt.testing.check_grads(function, (x,), **({} if thorough else {"entries": 0}))
        batch = np.stack([x, x[::-1].copy(), x * 2])
        rows = np.stack([function(row) for row in batch])
        np.testing.assert_allclose(gt.vmap(function)(batch), rows, rtol=1e-13)
        np.testing.assert_allclose(gt.jit(function)(x), function(x), rtol=1e-13)

    return checked


# ---- reduce -------------------------------------------------------------------------------------

ASSOCIATIVE = ["add", "multiply", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2"]
ORDERED = ["subtract", "divide", "fmod", "remainder", "float_power", "copysign"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
INTEGERS = ["gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift"]


@pytest.mark.parametrize("name", [*ASSOCIATIVE, "hypot"])
def test_reduce(name, check):
    reduce = getattr(np, name).reduce
    check(reduce)
    for options in (
        {"axis": 1},
        {"axis": None},
        {"axis": (0, 1), "keepdims": True},
        {"axis": -1, "initial": 0.25},
        {"axis": 1, "initial": 0.25, "where": MASK},
        {"axis": 0, "dtype": np.float32},
    ):
        same(reduce(gt.tensor(M), **options), reduce(M, **options))
    check(lambda x: reduce(x, axis=1, initial=0.25, where=MASK))


@pytest.mark.parametrize("name", ORDERED)
def test_reduce_in_order(name, check):
    reduce = getattr(np, name).reduce
    check(lambda x: reduce(x, axis=1), M + 0.1)
    for options in (
        {"axis": 1, "keepdims": True},
        {"axis": 0, "initial": 7.25},
        {"axis": 1, "initial": 7.25, "where": MASK},
    ):
        same(reduce(gt.tensor(M), **options), reduce(M, **options))
    check(lambda x: reduce(x, axis=1, initial=7.25, where=MASK), M + 0.1)
    with pytest.raises(ShapeError, match="the order matters"):
        reduce(gt.tensor(M), axis=None)


def test_reduce_calls_the_ufunc_on_one_element_after_the_other():
    # NumPy's own loops get these two wrong.
    for ufunc in (np.power, np.arctan2):
        same(ufunc.reduce(gt.tensor(M), axis=1), ufunc(ufunc(M[:, 0], M[:, 1]), M[:, 2]))


@pytest.mark.parametrize("name", LOGICAL)
def test_reduce_of_truths(name):
    ufunc = getattr(np, name)
    for x, axis in itertools.product((M - 0.5, MASK, WHOLE), (0, 1, None)):
        same(ufunc.reduce(gt.tensor(x), axis=axis), ufunc.reduce(x, axis=axis))
    same(ufunc.accumulate(gt.tensor(MASK), axis=1), ufunc.accumulate(MASK, axis=1))


@pytest.mark.parametrize("name", INTEGERS)
def test_reduce_of_integers(name, check):
    ufunc = getattr(np, name)
    check(lambda x: ufunc.reduce(x, axis=1), WHOLE, derivatives=False)
    check(lambda x: ufunc.accumulate(x, axis=1), WHOLE, derivatives=False)
    same(ufunc.outer(gt.tensor(WHOLE), WHOLE[0]), ufunc.outer(WHOLE, WHOLE[0]))


def test_reduce_where_of_integers_and_truths():
    for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
        options = {"axis": 1, "initial": 5, "where": MASK}
        same(ufunc.reduce(gt.tensor(WHOLE), **options), ufunc.reduce(WHOLE, **options))
    same(np.maximum.reduce(gt.tensor(MASK), axis=1), np.maximum.reduce(MASK, axis=1))


def test_reduce_of_nothing():
    none = M[:, :0]
    for name in ("add", "multiply", "logaddexp", "hypot", "logical_and"):
        reduce = getattr(np, name).reduce
        same(reduce(gt.tensor(none), axis=1), reduce(none, axis=1))
    same(np.maximum.reduce(gt.tensor(none), axis=1, initial=3.0), np.array([3.0, 3.0]))
    for ufunc in (np.maximum, np.fmax, np.subtract):
        with pytest.raises(ShapeError, match="expected at least one element"):
            ufunc.reduce(gt.tensor(none), axis=1)


def test_what_cannot_be_reduced():
    with pytest.raises(ShapeError, match="expected initial="):
        np.maximum.reduce(gt.tensor(M), where=MASK)
    with pytest.raises(DTypeError, match="its results are truth values"):
        np.less.reduce(gt.tensor(M))
    with pytest.raises((ShapeError, ValueError), match=r"two arrays|binary"):
        np.exp.reduce(gt.tensor(M))
    with pytest.raises((ShapeError, RuntimeError)):
        np.matmul.reduce(gt.tensor(M))


def test_ties_share_the_gradient_of_an_extreme():
    np.testing.assert_array_equal(
        gt.grad(np.maximum.reduce)(np.array([1.0, 3.0, 3.0])), [0, 0.5, 0.5]
    )
    half = gt.grad(lambda x: np.maximum.reduce(x, initial=3.0))(np.array([1.0, 3.0]))
    np.testing.assert_array_equal(half, [0, 0.5])


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("x", [MASK, WHOLE.astype(np.uint8)])
def test_reduce_bits_keeps_the_dtype(name, x):
    reduce = getattr(np, name).reduce
    for options in ({"where": x > 5}, {"initial": 1, "where": MASK}, {"initial": 1}):
        same(reduce(gt.tensor(x), axis=1, **options), reduce(x, axis=1, **options))


# ---- accumulate, reduceat, outer ----------------------------------------------------------------


@pytest.mark.parametrize("name", [*ASSOCIATIVE, *ORDERED, "hypot"])
def test_accumulate(name, check):
    accumulate = getattr(np, name).accumulate
    check(lambda x: accumulate(x, axis=1), M + 0.1)
    same(accumulate(gt.tensor(M)), accumulate(M))
    same(accumulate(gt.tensor(M[:, :0]), axis=1), accumulate(M[:, :0], axis=1))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract", "hypot"])
def test_reduceat(name, check):
    reduceat = getattr(np, name).reduceat
    check(lambda x: reduceat(x, [0, 2, 1], axis=1))
    same(reduceat(gt.tensor(M), gt.tensor([1, 0])), reduceat(M, [1, 0]))
    nothing = np.zeros(0, int)
    same(reduceat(gt.tensor(M), nothing, axis=1), reduceat(M, nothing, axis=1))
    with pytest.raises(GradtapeError, match="index 5"):
        reduceat(gt.tensor(M), [0, 5], axis=1)


@pytest.mark.parametrize("name", ["add", "multiply", "arctan2", "maximum", "less"])
def test_outer(name, check):
    outer = getattr(np, name).outer
    check(lambda x: outer(x, x[0]), derivatives=name not in ("less", "maximum"))
    check(lambda x: outer(M[0], x), derivatives=name not in ("less", "maximum"))


# ---- at -----------------------------------------------------------------------------------------

INDICES = {
    "repeated": [0, 0, 1],
    "pairs": (np.array([0, 1, 0, 0]), np.array([1, 1, 1, 2])),
    "mask": MASK,
    "slice": slice(None),
    "element": (0, 1),
}


def written(ufunc, index, *operand):
    """The method as a function that gives the array it wrote to."""

    def function(x):
        out = x * 1.0
        ufunc.at(out, index, *operand)
        return out

    return function


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "power"])
def test_at(name, index, check):
    check(written(getattr(np, name), index, 1.5), derivatives=name != "maximum")


def test_at_of_one_array_applies_as_often_as_an_index_comes(check):
    check(written(np.negative, [0, 0, 1]))
    check(written(np.exp, INDICES["pairs"]))


def test_at_is_differentiable_in_its_operand():
    def total(values):
        out = gt.tensor(M)
        np.multiply.at(out, (0, [1, 1, 2]), values)
        np.add.at(out, (1, [0, 0, 2]), values)
        return gt.sum(out * out)

    gt.testing.check_grads(total, (np.array([2.0, 3.0, 0.5]),))


def test_at_on_an_ndarray():
    buffer, expected = np.zeros(3), np.zeros(3)
    np.add.at(buffer, gt.tensor([0, 0, 2]), gt.tensor([1.0, 2.0, 3.0]))
    np.add.at(expected, [0, 0, 2], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(buffer, expected)
    with pytest.raises(UnsupportedError, match="an ndarray cannot hold the history"):
        np.add.at(buffer, 0, gt.tensor(1.0, requires_grad=True) * 2)


def test_at_keeps_the_dtype():
    with pytest.raises(DTypeError, match="got a value of dtype float64"):
        np.add.at(gt.tensor([1, 2]), 0, 0.5)
    small = gt.tensor(np.array([1, 2], np.uint8))
    np.add.at(small, [0, 0], 3)
    same(small, np.array([7, 2], np.uint8))


# ---- options ------------------------------------------------------------------------------------


def into(function):
    """A call with out= as a function that gives what was written."""

    def result(x):
        out = x * 0.0 + 7.0
        assert function(x, out) is out
        return out

    return result


@pytest.mark.parametrize(
    "function",
    [
        lambda x, out: np.log(x - 1.0, out=out, where=M > 1.0),
        lambda x, out: np.divide(1.0, x - 0.75, out=out, where=M != 0.75),
        lambda x, out: np.add(x, x, out=out),
        lambda x, out: np.multiply(x, 2.0, out, where=MASK),
        lambda x, out: np.sqrt(x, out=out, casting="unsafe"),
    ],
)
def test_out_with_and_without_where(function):
    with np.errstate(all="raise"):
        same(into(function)(gt.tensor(M)), into(function)(M))
        gt.testing.check_grads(into(function), (M,))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(gt.jit(into(function))(M), into(function)(M), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float64])
@pytest.mark.parametrize("name", ["invert", "add", "maximum", "exp"])
def test_where_keeps_truths(name, dtype):
    ufunc = getattr(np, name)
    arguments = [M > 1.0, MASK][: ufunc.nin]
    if not np.can_cast(ufunc(*arguments).dtype, dtype, "same_kind"):
        return
    expected = ufunc(*arguments, out=np.full(M.shape, 1, dtype), where=M != 2.0)
    out = gt.tensor(np.full(M.shape, 1, dtype))
    same(ufunc(*map(gt.tensor, arguments), out=out, where=M != 2.0), expected)


def test_where_of_a_number_that_takes_no_part():
    def function(x):
        return np.log(x, out=np.zeros_like(x, shape=2), where=np.array([False, False])).sum()

    assert gt.grad(function)(0.0) == 0.0


def test_where_needs_out():
    with pytest.raises(UnsupportedError, match=r"np\.sin: got where= without out=.*gt\.where"):
        np.sin(gt.tensor(M), where=MASK)
    same(np.sin(gt.tensor(M), where=True), np.sin(M))


def test_out_of_two_results():
    part, whole = gt.zeros((2, 3)), gt.zeros((2, 3))
    assert np.modf(gt.tensor(M), out=(part, whole)) == (part, whole)
    same(part, np.modf(M)[0])
    other = gt.zeros((2, 3))
    left, right = np.modf(gt.tensor(M), out=(None, other))
    assert right is other
    same(left, np.modf(M)[0])
    with pytest.raises(UnsupportedError, match="a tensor and an ndarray as out="):
        np.modf(gt.tensor(M), out=(part, np.zeros((2, 3))))


def test_reduce_into_a_tensor():
    out = gt.zeros(3)
    assert np.add.reduce(gt.tensor(M), out=out) is out
    same(out, M.sum(0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.add(x, 1, dtype=np.float32),
        lambda x: np.add(x, x, dtype="complex128"),
        lambda x: np.add(x, x, dtype=int, casting="unsafe"),
        lambda x: np.add(x, 1.0, casting="no"),
        lambda x: np.add(x, 1, sig="ff->f"),
        lambda x: np.add(x, 1, signature=(None, None, np.float32)),
        lambda x: np.sin(x, order="F", subok=False),
        lambda x: np.modf(x, dtype=np.float32)[0],
        lambda x: np.equal(x, x, dtype=bool),
        lambda x: np.exp(x, dtype=None),
        lambda x: np.vecdot(x, x, axis=0),
    ],
)
def test_dtype_and_casting(function):
    same(function(gt.tensor(M)), function(M))


def test_casts_that_are_not_allowed():
    with pytest.raises(DTypeError, match=r"np\.add: Cannot cast"):
        np.add(gt.tensor(M), M, dtype=int)
    with pytest.raises(DTypeError, match=r"np\.add: "):
        np.add(gt.tensor(M), np.float32(1), casting="no")
    with pytest.raises(UnsupportedError, match=r"np\.matmul: got axes="):
        np.matmul(gt.tensor(M), M.T, axes=[(0, 1), (0, 1), (0, 1)])


def test_gradient_passes_through_a_dtype():
    grad = gt.grad(lambda x: np.sum(np.multiply(x, x, dtype=np.float32)))(M)
    assert grad.dtype == np.float64
    np.testing.assert_allclose(grad, 2 * M, rtol=1e-6)
