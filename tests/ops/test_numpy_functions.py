"""NumPy's functions on tensors where rows of samples do not fit: sizes, texts, refusals."""

import io

import numpy as np
import pytest
from numpy import polynomial

import gradtape as gt
from gradtape.errors import ConversionError, ShapeError, UnsupportedError

V = np.array([0.5, -1.0, 2.0, 0.0])
M = np.arange(12.0).reshape(3, 4) / 4 - 1


def same(got, expected):
    assert isinstance(got, gt.Tensor)
    assert (got.shape, got.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_allclose(np.asarray(got.detach()), expected, rtol=1e-13, atol=1e-14)


# ---- sizes that depend on values ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (np.trim_zeros, (np.array([0.0, 1.0, 0.0, 2.0, 0.0]),)),
        (np.trim_zeros, (np.array([0.0, 1.0, 0.0]), "f")),
        (np.trim_zeros, (np.array([0.0, 1.0, 0.0]), "b")),
        (np.trim_zeros, (np.zeros(3),)),
        (np.polydiv, (np.array([3.0, 5.0, 2.0]), np.array([2.0, 1.0]))),
        (np.polydiv, (np.array([1.0, -3.0, 2.0]), np.array([1.0, -1.0]))),
        (np.polydiv, (np.array([2.0, 1.0]), np.array([3.0, 5.0, 2.0]))),
        (np.compress, (V > 0, V)),
        (np.extract, (V > 0, V)),
        (np.piecewise, (V, [V < 0, V > 1], [np.abs, np.exp, 0.5])),
        (np.real_if_close, (V + 1e-20j,)),
        (np.real_if_close, (V + 1j,)),
        (np.poly, (np.array([1.0 + 2.0j, 1.0 - 2.0j, 0.5]),)),
    ],
)
def test_sizes_that_depend_on_values(function, args):
    expected = function(*args)
    got = function(*(gt.tensor(x) if isinstance(x, np.ndarray) else x for x in args))
    several = isinstance(expected, tuple)
    for one, other in zip(
        got if several else [got], expected if several else [expected], strict=True
    ):
        same(one, other)


def test_gradients_where_sizes_depend_on_values():
    x = np.array([3.0, 5.0, 2.0, 1.0])
    gt.testing.check_grads(lambda u, v: np.polydiv(u, v), (x, np.array([2.0, 1.0])))
    grad = gt.grad(lambda x: np.sum(np.trim_zeros(x) ** 2))(np.array([0.0, 1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(grad, [0, 2, 0, 4])
    with pytest.raises(ConversionError):
        gt.jit(lambda x: np.trim_zeros(x))(x)
    with pytest.raises(ConversionError):
        gt.vmap(lambda x: np.trim_zeros(x))(x[None])


def test_roots():
    coefficients = np.array([0.0, 2.0, -6.0, 4.0, 0.0])
    found = np.roots(gt.tensor(coefficients))
    expected = np.roots(coefficients)
    np.testing.assert_allclose(np.sort(np.asarray(found).real), np.sort(expected), atol=1e-12)
    assert np.roots(gt.tensor([0.0, 0.0])).shape == (0,)
    assert np.roots(gt.tensor([0.0, 3.0])).shape == (0,)

    # The largest zero of x² − s·x + p is (s + √(s² − 4p))/2.
    def largest(s, p):
        return np.max(np.real(np.roots(gt.stack([np.ones_like(s), -s, p]))))

    grads = gt.grad(largest, (0, 1))(5.0, 6.0)
    np.testing.assert_allclose(grads, [3.0, -1.0], rtol=1e-12)


# ---- numpy.polynomial ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        polynomial.polynomial.polyval,
        polynomial.chebyshev.chebval,
        polynomial.legendre.legval,
        polynomial.hermite.hermval,
        polynomial.hermite_e.hermeval,
        polynomial.laguerre.lagval,
    ],
    ids=lambda function: function.__name__,
)
def test_polynomials_of_other_bases_run_as_they_are(function):
    coefficients = np.array([1.0, -2.0, 0.5, 0.25])
    same(function(gt.tensor(V), coefficients), function(V, coefficients))
    gt.testing.check_grads(lambda x: function(x, coefficients), (V,))
    with pytest.raises(ConversionError):
        function(V, gt.tensor(coefficients, requires_grad=True))


# ---- made from sizes ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(name, size):
    same(getattr(gt, name)(size), getattr(np, name)(size))


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_kaiser(size):
    same(gt.kaiser(size, 4.5), np.kaiser(size, 4.5))
    gt.testing.check_grads(lambda beta: gt.kaiser(size, beta), (np.array(3.0),))


def test_indices():
    same(gt.tri(2, 3, 1), np.tri(2, 3, 1))
    same(gt.indices((2, 3)), np.indices((2, 3)))
    for got, expected in (
        (gt.indices((2, 3), sparse=True), np.indices((2, 3), sparse=True)),
        (gt.tril_indices(3, 1, 4), np.tril_indices(3, 1, 4)),
        (gt.triu_indices(3, 1), np.triu_indices(3, 1)),
        (gt.diag_indices(3), np.diag_indices(3)),
        (np.tril_indices_from(gt.tensor(M)), np.tril_indices_from(M)),
        (np.triu_indices_from(gt.tensor(M), 1), np.triu_indices_from(M, 1)),
        (np.diag_indices_from(gt.tensor(M[:, :3])), np.diag_indices_from(M[:, :3])),
        (np.ix_(gt.tensor([0, 2]), [True, False, True]), np.ix_([0, 2], [True, False, True])),
    ):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other)
    np.testing.assert_array_equal(
        gt.grad(lambda m: gt.sum(m[np.triu_indices_from(m, 2)]))(M), np.triu(np.ones((3, 4)), 2)
    )
    for function in (np.tril_indices_from, np.triu_indices_from, np.diag_indices_from):
        with pytest.raises(ShapeError, match=f"{function.__name__}: got shape"):
            function(gt.tensor(V))


@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (np.logspace, (0.5, 2.0, 4), {}),
        (np.logspace, (0.5, 2.0, 4), {"base": 2.0, "endpoint": False}),
        (np.logspace, (np.array([0.5, 1.0]), 2.0, 4), {"axis": -1}),
        (np.logspace, (np.array([0.5, 1.0]), 2.0, 4), {"base": np.array([2.0, 3.0])}),
        (np.geomspace, (0.5, 2.0, 4), {}),
        (np.geomspace, (-0.5, -2.0, 4), {"endpoint": False}),
        (np.geomspace, (np.array([0.5, 1.0]), np.array([2.0, 8.0]), 4), {"axis": -1}),
        (np.geomspace, (0.5, 2.0, 1), {}),
    ],
)
def test_spaced_numbers(function, args, options):
    start, stop, num = args
    expected = function(start, stop, num, **options)
    same(function(gt.tensor(start), gt.tensor(stop), num, **options), expected)
    same(getattr(gt, function.__name__)(start, stop, num, **options), expected)
    gt.testing.check_grads(
        lambda first, last: function(first, last, num, **options),
        (np.asarray(start), np.asarray(stop)),
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda like: np.array([1.0, 2.0], like=like),
        lambda like: np.asanyarray([1, 2], like=like),
        lambda like: np.ascontiguousarray([1, 2], dtype=float, like=like),
        lambda like: np.require([1.0, 2.0], like=like),
        lambda like: np.fromiter([1.0, 2.0], float, like=like),
        lambda like: np.frombuffer(np.array([1.0, 2.0]), like=like),
        lambda like: np.fromfunction(lambda i: i * 1.0, (2,), like=like),
        lambda like: np.loadtxt(io.StringIO("1 2"), like=like),
        lambda like: np.tri(2, like=like),
    ],
)
def test_made_like_a_tensor(make):
    same(make(gt.tensor(V)), make(None))


def test_an_array_like_a_tensor_keeps_the_history_of_a_tensor():
    x = gt.tensor(V, requires_grad=True)
    assert np.array(x * 2, like=x).requires_grad
    assert np.asanyarray(x, like=x) is x


# ---- applied ------------------------------------------------------------------------------------


def test_vectorize():
    @gt.vectorize
    def clipped(x, y):
        return (x * y, x) if x > y else (x * x, y)

    expected = np.vectorize(lambda x, y: (x * y, x) if x > y else (x * x, y))(M, V)
    for one, other in zip(clipped(gt.tensor(M), V), expected, strict=True):
        same(one, other)
    gt.testing.check_grads(lambda x, y: clipped(x, y), (M + 0.1, V))
    assert gt.vectorize(lambda x: x, otypes=[np.float32])(V).dtype == np.float32
    with pytest.raises(UnsupportedError, match=r"use gt\.vmap"):
        gt.vectorize(np.sum, signature="(n)->()")
    with pytest.raises(ShapeError, match="at least one element"):
        gt.vectorize(lambda x: x)(V[:0])
    with pytest.raises(ConversionError):
        np.vectorize(lambda x: x)(gt.tensor(V, requires_grad=True))


def test_bad_applications():
    with pytest.raises(ShapeError, match="apply_along_axis: got shape"):
        np.apply_along_axis(np.sum, 1, gt.tensor(M[:0]))
    with pytest.raises(ShapeError, match="apply_over_axes: the function gave"):
        np.apply_over_axes(lambda x, axis: np.sum(x), gt.tensor(M), [0])


# ---- texts and dtypes ---------------------------------------------------------------------------


def test_what_numpy_says_about_tensors():
    x = gt.tensor(V, requires_grad=True)
    assert np.array2string(x, precision=2) == np.array2string(V, precision=2)
    assert np.array_repr(x) == np.array_repr(V)
    assert np.array_str(x) == np.array_str(V)
    assert np.can_cast(x, np.float32, "same_kind")
    assert not np.can_cast(x, np.float32)
    assert np.result_type(x, np.float32) == np.float64
    assert np.common_type(x, gt.tensor([1, 2])) is np.float64
    assert np.min_scalar_type(gt.tensor(5)) == np.uint8
    assert np.shares_memory(x, x.detach())
    assert not np.may_share_memory(x, V.copy())
    assert np.einsum_path("i,i->", x, x)[0] == np.einsum_path("i,i->", V, V)[0]
    assert np.iscomplexobj(x) is False
    assert np.isrealobj(x) is True
    assert gt.broadcast_shapes((3, 1), 4, (1, 1)) == (3, 4)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda t: np.save("nowhere", t), "a file holds values"),
        (lambda t: np.savez("nowhere", t), "a file holds values"),
        (lambda t: np.savetxt("nowhere", t), "a file holds values"),
        (lambda t: np.packbits(t > 0), "bits in bytes"),
        (lambda t: np.isnat(t), "dates"),
        (lambda t: np.is_busday(t), "dates"),
    ],
)
def test_refusals_name_a_way_out(call, reason):
    with pytest.raises(UnsupportedError, match=reason):
        call(gt.tensor(M))


# ---- complex vectors ----------------------------------------------------------------------------


def test_vecmat_conjugates_its_vectors():
    z, m = V[:3] + 1j * V[1:], M.T[:3] - 0.5j
    same(gt.vecmat(gt.tensor(z), m), z.conj() @ m)
    gt.testing.check_grads(gt.vecmat, (z, m))
