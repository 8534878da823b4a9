"""float16 and bfloat16 on the CPU: results and derivatives keep the dtype and are rounded once."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import UnsupportedError

DTYPES = {"float16": np.dtype(gt.float16), "bfloat16": np.dtype(gt.bfloat16)}
# Half a unit in the last place, relative; derivatives are rounded at every op.
HALF_UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8}

FUNCTIONS = {
    "number": lambda x: x * 2.0 + 1,
    "reflected": lambda x: 0.3 - 1.5 / x,
    "add": lambda x: x + x,
    "multiply": lambda x: x * x,
    "power": lambda x: x**2 + x**0.5,
    "exp": gt.exp,
    "log": gt.log,
    "tanh": gt.tanh,
    "sigmoid": gt.sigmoid,
    "gelu": gt.gelu,
    "silu": gt.silu,
    "softplus": gt.softplus,
    "erf": gt.erf,
    "maximum": lambda x: gt.maximum(x, 0.9),
    "clip": lambda x: gt.clip(x, 0.7, 1.4),
    "where": lambda x: gt.where(x > 1.0, x, 0.25),
    "sum": lambda x: gt.sum(x, axis=0),
    "mean": gt.mean,
    "var": lambda x: gt.var(x, axis=1),
    "norm": gt.norm,
    "max": lambda x: gt.max(x, axis=1),
    "prod": lambda x: gt.prod(x, axis=1),
    "cumsum": lambda x: gt.cumsum(x, axis=1),
    "softmax": lambda x: gt.softmax(x, axis=-1),
    "log_softmax": lambda x: gt.log_softmax(x, axis=-1),
    "logsumexp": lambda x: gt.logsumexp(x, axis=-1),
    "matmul": lambda x: x @ x.T,
    "einsum": lambda x: gt.einsum("ij,kj->ik", x, x),
    "index": lambda x: x[1:, [0, 0, 2]] * 3.0,
    "reshape": lambda x: gt.reshape(x, (4, 3)).T,
    "stack": lambda x: gt.stack([x, x * 2.0]),
    "pad": lambda x: gt.pad(x, 1),
}


def sample(dtype):
    return np.linspace(0.5, 1.7, 12).reshape(3, 4).astype(dtype)


def wide(x):
    return np.asarray(x).astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
class TestOps:
    def test_value(self, name, dtype):
        x = sample(DTYPES[dtype])
        out = FUNCTIONS[name](gt.tensor(x))
        expected = wide(FUNCTIONS[name](x.astype(np.float64)))
        assert out.dtype == DTYPES[dtype]
        np.testing.assert_allclose(wide(out), expected, rtol=8 * HALF_UNIT[dtype])
        assert FUNCTIONS[name](gt.tensor(x, requires_grad=True)).dtype == DTYPES[dtype]

    def test_gradient_in_both_modes(self, name, dtype):
        x = sample(DTYPES[dtype])

        def loss(x):
            return gt.sum(FUNCTIONS[name](x))

        expected = gt.grad(loss)(x.astype(np.float64))
        bound = {"rtol": 16 * HALF_UNIT[dtype], "atol": 8 * HALF_UNIT[dtype]}
        gradient = gt.grad(loss)(x)
        assert gradient.dtype == DTYPES[dtype]
        np.testing.assert_allclose(wide(gradient), expected, **bound)
        leaf = gt.tensor(x, requires_grad=True)
        loss(leaf).backward()
        assert leaf.grad.dtype == DTYPES[dtype]
        np.testing.assert_array_equal(wide(leaf.grad), wide(gradient))
        direction = np.ones_like(x)
        _, tangent = gt.jvp(loss, (x,), (direction,))
        assert tangent.dtype == DTYPES[dtype]
        size = max(1.0, np.sum(np.abs(expected)))
        np.testing.assert_allclose(
            float(tangent), np.sum(expected), atol=8 * HALF_UNIT[dtype] * size
        )

    def test_second_derivative(self, name, dtype):
        x = sample(DTYPES[dtype])

        def squared(x):
            return gt.sum(gt.grad(lambda x: gt.mean(FUNCTIONS[name](x) ** 2))(x) ** 2)

        gradient = gt.grad(squared)(x)
        expected = gt.grad(squared)(x.astype(np.float64))
        assert gradient.dtype == DTYPES[dtype]
        size = np.max(np.abs(expected))
        np.testing.assert_allclose(wide(gradient), expected, atol=64 * HALF_UNIT[dtype] * size)

    def test_compiled(self, name, dtype):
        x = sample(DTYPES[dtype])

        def both(x):
            return gt.value_and_grad(lambda x: gt.sum(FUNCTIONS[name](x)))(x)

        for compiled, eager in zip(gt.jit(both)(x), both(x), strict=True):
            assert compiled.dtype == eager.dtype
            np.testing.assert_array_equal(wide(compiled), wide(eager))


@pytest.mark.parametrize("dtype", [gt.bfloat16, gt.float16])
def test_vmap_of_products_keeps_the_dtype(dtype):
    x = np.arange(24.0).reshape(2, 3, 4).astype(dtype)
    for function in (
        lambda a: a[0] @ a[1],
        lambda a: a @ x[0, 0],
        lambda a: x[1] @ a[0],
        lambda a: x[1] @ gt.transpose(a),
        lambda a: a @ gt.transpose(a),
    ):
        for rows in (x, gt.tensor(x)):
            out, alone = gt.vmap(function)(rows), [function(gt.tensor(row)) for row in x]
            assert out.dtype == dtype
            np.testing.assert_array_equal(np.asarray(out), np.stack([y.numpy() for y in alone]))


def test_vmap_keeps_bfloat16():
    x = sample(gt.bfloat16)
    out = gt.vmap(lambda row: gt.softmax(row * 2.0))(x)
    assert out.dtype == gt.bfloat16
    expected = gt.softmax(gt.tensor(x) * 2.0, axis=-1)
    np.testing.assert_array_equal(wide(out), wide(expected))


def test_sums_are_added_up_in_float32():
    ones = gt.ones(1000, dtype=gt.bfloat16)
    assert float(ones.sum()) == 1000  # added up in bfloat16 it stops at 256
    assert float(gt.cumsum(ones)[-1]) == 1000
    assert float(gt.mean(ones)) == 1
    bias = gt.grad(lambda b: gt.sum(np.ones((1000, 1), gt.bfloat16) * b))(np.ones(1, gt.bfloat16))
    assert float(bias[0]) == 1000
    repeated = gt.grad(lambda x: gt.sum(x[np.zeros(1000, int)]))(np.ones(2, gt.bfloat16))
    assert repeated.tolist() == [1000, 0]


NARROW = gt.bfloat16
PROMOTIONS = [
    (2, NARROW),
    (2.5, NARROW),
    (True, NARROW),
    (2j, np.complex64),
    (np.int8, NARROW),
    (np.uint8, NARROW),
    (np.bool_, NARROW),
    (np.int16, np.float32),
    (np.int64, np.float64),
    (np.float16, np.float32),
    (np.float32, np.float32),
    (np.float64, np.float64),
    (np.complex64, np.complex64),
    (gt.bfloat16, NARROW),
]


@pytest.mark.parametrize(("other", "dtype"), PROMOTIONS)
@pytest.mark.parametrize("function", [gt.add, gt.where, gt.divide], ids=lambda f: f.__name__)
@pytest.mark.parametrize("recorded", [False, True])
def test_promotion_is_that_of_float16(other, dtype, function, recorded):
    x = gt.tensor([1.0, 2.0], dtype=gt.bfloat16, requires_grad=recorded)
    y = np.ones(2, other) if isinstance(other, type) else other
    out = function(True, x, y) if function is gt.where else function(x, y)
    assert out.dtype == dtype
    assert gt.result_type(x, y) == dtype
    assert (
        gt.jit(lambda x, y: function(True, x, y) if function is gt.where else function(x, y))(
            x.detach(), y
        ).dtype
        == dtype
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: gt.quantile(x, 0.3),
        lambda x: gt.percentile(x, 30, method="midpoint"),
        lambda x: gt.unwrap(x, period=0.5),
        lambda x: gt.select([np.arange(3) > 0], [x], 0.5),
        lambda x: gt.average(x, weights=np.array([True, False, True])),
    ],
)
def test_functions_keep_the_dtype_beside_numbers(function, dtype):
    x = np.array([1.0, 2.0, 1.5], DTYPES[dtype])
    assert function(x).dtype == DTYPES[dtype]
    assert function(gt.Tensor(x)).dtype == DTYPES[dtype]


def test_integers_beside_bfloat16_are_promoted_as_beside_float16():
    x = gt.tensor([1.0, 2.0], dtype=gt.bfloat16)
    assert gt.average(x, weights=np.array([1, 2])).dtype == np.float64
    assert gt.vander(x).dtype == np.float64


@pytest.mark.parametrize("dtype", DTYPES)
def test_assigned_numbers_are_rounded(dtype):
    for number in (0.5, 1, np.float64(0.5), np.float32(0.5)):
        x = gt.ones(3, dtype=DTYPES[dtype])
        x[0] = number
        assert x.dtype == DTYPES[dtype]
        assert x[0] == number


def test_numbers_are_rounded_before_they_are_compared():
    for dtype in DTYPES.values():
        x = gt.tensor([0.3, 0.5], dtype=dtype)
        assert (x == 0.3).tolist() == gt.equal(x, 0.3).tolist() == [True, False]
        assert (x > 0.3).tolist() == [False, True]


def test_casts_between_floats():
    x = gt.tensor([1.0, 1.0078125, 2048.0], dtype=gt.float16)
    assert x.astype(gt.bfloat16).tolist() == [1.0, 1.0078125, 2048.0]
    assert x.astype(gt.bfloat16).astype(gt.float16).dtype == gt.float16
    gradient = gt.grad(lambda x: gt.sum(x.astype(gt.bfloat16).astype(gt.float32) ** 2))(np.ones(2))
    assert gradient.dtype == np.float64
    assert gradient.tolist() == [2, 2]


def test_what_shares_memory_goes_on_sharing_it():
    x = gt.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=gt.bfloat16)
    row = x[0]
    x[0, 1] = 8.0
    assert row.tolist() == [1, 8]
    x.T[0, 0] = 5.0
    assert x.tolist() == [[5, 8], [3, 4]]
    assert np.shares_memory(x.detach().numpy(), x.numpy())


def test_a_large_array():
    x = gt.ones(300_000, dtype=gt.bfloat16, requires_grad=True)
    (gt.tanh(x) * x + 2.0).sum().backward()
    assert x.grad.dtype == gt.bfloat16
    assert gt.silu(np.ones(300_000, gt.bfloat16)).dtype == gt.bfloat16


def test_float8_has_the_same_rules():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = gt.tensor([0.5, 1.0], dtype=ml_dtypes.float8_e4m3fn)
    assert (gt.exp(x) * 2.0).dtype == ml_dtypes.float8_e4m3fn
    assert (x + gt.ones(2, dtype=gt.bfloat16)).dtype == np.float32


def test_custom_rules_get_bfloat16_as_it_is():
    seen = []

    @gt.custom_vjp
    def square(x):
        seen.append(x.dtype)
        return x * x

    @square.defvjp
    def rule(ct, out, x):
        seen.append(ct.dtype)
        return (ct * x,)

    gt.grad(lambda x: gt.sum(square(x)))(np.ones(2, gt.bfloat16))
    assert set(seen) == {np.dtype(gt.bfloat16)}


def test_limits():
    info = gt.finfo(gt.bfloat16)
    assert (info.bits, info.eps, info.dtype) == (16, 2.0**-7, np.dtype(gt.bfloat16))
    assert gt.isdtype(gt.bfloat16, "real floating")
    with pytest.raises((UnsupportedError, TypeError)):
        gt.bitwise_and(gt.ones(2, dtype=gt.bfloat16), 1)


def test_ops_that_hand_on_an_operand_keep_its_dtype():
    # A cotangent in float32 used to make bfloat16 values float32 that are computed again after it.
    def loss(w, x):
        with gt.autocast(gt.bfloat16):
            h = gt.tanh(x @ w)
            h = h @ w
        return gt.mean(gt.astype(h, gt.float32) ** 2)

    w, x = np.eye(3, dtype=np.float32) / 3, np.ones((2, 3), np.float32)
    expected = gt.grad(loss)(w, x)
    for policy in (None, gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)):
        found = gt.jit(gt.grad(gt.checkpoint(loss, policy=policy)))(w, x)
        np.testing.assert_array_equal(found, expected)


def test_large_results_of_few_channels_are_rounded_a_few_samples_at_a_time():
    x = gt.ones((64, 1, 64, 64), dtype=gt.bfloat16)
    w = gt.ones((32, 1, 3, 3), dtype=gt.bfloat16)
    gt.nn.conv2d(x, w, padding=1)
    with gt.GradientMemoryProfiler() as memory:
        out = gt.nn.conv2d(x, w, padding=1)
    # In float32 at once, it would be three times its own size.
    assert memory.peak_bytes() < 2 * out.numpy().nbytes
