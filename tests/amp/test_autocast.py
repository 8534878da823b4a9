"""Autocast: which ops are cast, and that every way of computing agrees on it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.core.op import registry
from gradtape.core.state import current
from gradtape.errors import ArgumentError

RNG = np.random.default_rng(0)
X: Any = RNG.normal(size=(6, 4)).astype(np.float32)
W: Any = RNG.normal(size=(4, 3)).astype(np.float32)
BF16 = np.dtype(gt.bfloat16)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
SHORT = {"bfloat16": BF16, "float16": F16}


def loss(w: Any, x: Any) -> Any:
    return gt.mean(gt.tanh(x @ w) ** 2)


def rounded(array: Any, dtype: Any = BF16) -> Any:
    return np.asarray(array).astype(dtype).astype(np.float64)


def as_tensor(x: Any) -> Any:
    """A tensor: NumPy's products of arrays are its own."""
    return gt.tensor(x) if type(x) is np.ndarray else x


def by_hand(w: Any, x: Any, dtype: Any) -> Any:
    """The loss with the casts of autocast written out."""
    h = gt.astype(as_tensor(x), dtype) @ gt.astype(as_tensor(w), dtype)
    return gt.mean(gt.astype(gt.tanh(h), F32) ** 2)


# ---- what is cast ------------------------------------------------------------------------------


H: Any = RNG.uniform(0.1, 0.9, size=(8, 3)).astype(np.float32)
LABELS, SIGNS = np.arange(8) % 3, np.where(np.arange(8) % 2, 1, -1)
SHARES = np.full((8, 3), 1 / 3, np.float32)
# What a loss takes besides the results of a network, if these are not shares like them.
OTHERS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("cross_entropy", "nll_loss", "multi_margin_loss"), (LABELS,)),
    **dict.fromkeys(("contrastive_loss", "cosine_embedding_loss"), (H, SIGNS)),
    "ctc_loss": (np.ones((3, 2), np.int64), np.full(3, 2), np.full(3, 1)),
    "gaussian_nll_loss": (SHARES, SHARES),
    "margin_ranking_loss": (H, np.ones_like(H)),
    "multilabel_margin_loss": (np.zeros((8, 3), np.int64),),
    "triplet_margin_loss": (H, SHARES),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_16_bits_are_float32(reduction: str) -> None:
    found = {}
    for name in dir(gt.nn):
        loss = getattr(gt.nn, name)
        if inspect.isfunction(loss) and "reduction" in inspect.signature(loss).parameters:
            h = gt.tensor(H if name != "ctc_loss" else H.reshape(2, 3, 4)).astype(BF16)
            others = [x.astype(BF16) if x is H else x for x in OTHERS.get(name, (SHARES,))]
            with gt.autocast():
                found[name] = loss(h, *others, reduction=reduction).dtype
    assert len(found) > 25
    # Not added up, it is made of nothing but choices among elements.
    choices = {"hinge_embedding_loss"} if reduction == "none" else set()
    assert {name for name, dtype in found.items() if dtype != F32} == choices


def test_targets_of_integers_are_not_rounded_to_16_bits() -> None:
    ages = np.array([257, 1001])
    guesses = gt.tensor(np.array([256.0, 1000.0])).astype(BF16)
    assert gt.nn.l1_loss(guesses, ages) == 1.0
    with gt.autocast():
        assert gt.nn.mse_loss(guesses, ages, reduction="sum") == 2.0


@pytest.mark.parametrize("dtype", SHORT)
def test_values_are_those_of_casts_by_hand(dtype: str) -> None:
    w: Any = gt.tensor(W, requires_grad=True)
    with gt.autocast(dtype):
        h = X @ w
        value = loss(w, X)
    assert (h.dtype, value.dtype) == (SHORT[dtype], F32)
    exact = rounded(X, SHORT[dtype]) @ rounded(W, SHORT[dtype])
    np.testing.assert_allclose(rounded(h.detach()), exact, rtol=2**-8, atol=1e-3)
    np.testing.assert_array_equal(value.detach(), by_hand(W, X, SHORT[dtype]))
    value.backward()
    assert w.grad.dtype == F32
    expected = gt.grad(by_hand)(W, X, SHORT[dtype])
    np.testing.assert_array_equal(w.grad, expected)
    np.testing.assert_allclose(w.grad, gt.grad(loss)(W, X), atol=2e-3)


def by_image(dtype: Any) -> list[Any]:
    image, kernel = gt.ones((1, 2, 5, 5), dtype=dtype), gt.ones((3, 2, 3, 3), dtype=dtype)
    return [gt.nn.conv2d(image, kernel), gt.nn.conv_transpose2d(image, gt.ones_like(kernel[:2]))]


V = gt.ones((2, 4, 8), dtype=F32)
CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "matmul": (lambda t: t[0] @ t[0].T, "short"),
    "einsum": (lambda t: gt.einsum("bij,bkj->bik", t, t), "short"),
    "linear": (lambda t: gt.nn.linear(t[0], gt.ones((3, 8), dtype=F32)), "short"),
    "conv": (lambda t: gt.nn.conv1d(t, gt.ones((3, 4, 2), dtype=F32)), "short"),
    "attention": (lambda t: gt.nn.scaled_dot_product_attention(t, t, t), "short"),
    "exp": (lambda t: gt.exp(gt.astype(t, BF16)), "float32"),
    "log": (lambda t: gt.log(gt.astype(t, BF16)), "float32"),
    "softmax": (lambda t: gt.softmax(gt.astype(t, BF16), axis=-1), "float32"),
    "sum": (lambda t: gt.sum(gt.astype(t, BF16), axis=0), "float32"),
    "mean": (lambda t: gt.astype(t, BF16).mean(), "float32"),
    "std": (lambda t: gt.std(gt.astype(t, BF16)), "float32"),
    "norm": (lambda t: gt.norm(gt.astype(t, BF16)), "float32"),
    "cumsum": (lambda t: gt.cumsum(gt.astype(t, BF16), axis=0), "float32"),
    "layer_norm": (lambda t: gt.nn.layer_norm(gt.astype(t, BF16), (8,)), "short"),
    "power": (lambda t: gt.astype(t, BF16) ** 2, "float32"),
    "mse": (lambda t: gt.nn.mse_loss(gt.astype(t, BF16), gt.zeros_like(t)), "float32"),
    "erf": (lambda t: gt.erf(gt.astype(t, BF16)), "float32"),
    "lgamma": (lambda t: gt.lgamma(gt.astype(t, BF16)), "float32"),
    "inv": (lambda t: gt.linalg.inv(gt.astype(t[0, :3, :3] + 2 * gt.eye(3), F32)), "float32"),
    "tanh of short": (lambda t: gt.tanh(gt.astype(t, BF16)), "short"),
    "relu of short": (lambda t: gt.relu(gt.astype(t, BF16)), "short"),
    "max of short": (lambda t: gt.astype(t, BF16).max(axis=0), "short"),
    "times number": (lambda t: gt.astype(t, BF16) * 2.5, "short"),
    "reshape of short": (lambda t: gt.astype(t, BF16).reshape(-1), "short"),
    "tanh of float32": (gt.tanh, "float32"),
    "short + float32": (lambda t: gt.astype(t, BF16) + t, "float32"),
    "where": (lambda t: gt.where(t > 0, gt.astype(t, BF16), t), "float32"),
    "matmul of float64": (lambda t: gt.astype(t, F64) @ gt.astype(t[0].T, F64), "float64"),
    "matmul with float64": (lambda t: t @ gt.astype(t[0].T, F64), "float64"),
    "complex": (lambda t: gt.astype(t, np.complex64) @ t[0].T, "complex64"),
    "integers": (lambda t: gt.astype(t, np.int32) @ gt.astype(t[0].T, np.int32), "int32"),
}


@pytest.mark.parametrize("name", CASES)
def test_dtypes_of_results_eager_and_traced(name: str) -> None:
    function, expected = CASES[name]
    dtype = BF16 if expected == "short" else np.dtype(expected)
    with gt.autocast():
        eager = function(gt.tensor(V))
        assert eager.dtype == dtype
        compiled = gt.jit(function)(V)
    assert compiled.dtype == dtype
    tolerance = 2**-7 if dtype == BF16 else 1e-6
    np.testing.assert_allclose(
        np.asarray(compiled, np.complex128), np.asarray(eager, np.complex128), rtol=tolerance
    )


def test_every_op_has_a_precision() -> None:
    found = {op.name: gt.amp.precision_of(op.name) for op in registry}
    assert {op.name for op in registry if op.kind == "contraction"} == {
        name for name, precision in found.items() if precision == "16 bits"
    }
    for name in ("exp", "log", "softmax", "log_softmax", "sum", "mean", "logsumexp", "gamma"):
        assert found[name] == "float32", name
    for name in ("add", "multiply", "relu", "gelu", "dropout", "reshape", "max", "pool_average"):
        assert found[name] == "as given", name
    assert gt.amp.precision_of("conv3d") == "16 bits"


def test_convolutions_and_their_gradients() -> None:
    with gt.autocast():
        assert [out.dtype for out in by_image(F32)] == [BF16, BF16]
        kernel: Any = gt.tensor(
            RNG.normal(size=(3, 2, 3, 3)).astype(np.float32), requires_grad=True
        )
        bias: Any = gt.zeros(3, dtype=F32, requires_grad=True)
        image = RNG.normal(size=(2, 2, 6, 6)).astype(np.float32)
        out = gt.nn.conv2d(image, kernel, bias)
    gt.sum(gt.astype(out, F32) ** 2).backward()
    assert (kernel.grad.dtype, bias.grad.dtype) == (F32, F32)
    expected = gt.grad(lambda k: gt.sum(gt.nn.conv2d(image, k) ** 2))(kernel.detach().numpy())
    np.testing.assert_allclose(kernel.grad, expected, atol=0.02 * np.abs(expected).max())


def test_products_of_float16_are_rounded_once() -> None:
    a, b = (gt.tensor(RNG.normal(size=(64, 64)), dtype=F16, requires_grad=True) for _ in range(2))
    wide: Any = [each.detach().numpy().astype(F32) for each in (a, b)]
    product = a @ b
    np.testing.assert_array_equal(product.detach(), (wide[0] @ wide[1]).astype(F16))
    seed = RNG.normal(size=(64, 64)).astype(F16)
    product.backward(seed)
    expected = (seed.astype(F32) @ wide[1].T).astype(F16)
    np.testing.assert_array_equal(a.grad, expected)
    tangent = gt.jvp(lambda a: a @ b.detach(), (a.detach(),), (seed,))[1]
    np.testing.assert_array_equal(tangent, (seed.astype(F32) @ wide[1]).astype(F16))


def test_lists_of_names() -> None:
    x = gt.tensor(V)
    with gt.autocast(allow=["exp"], deny=["einsum", "conv1d"]):
        assert gt.exp(x).dtype == BF16
        assert gt.einsum("bij,bkj->bik", x, x).dtype == F32
        assert gt.nn.conv1d(x, gt.ones((3, 4, 2), dtype=F32)).dtype == F32
        assert gt.nn.linear(x, gt.ones((3, 8), dtype=F32)).dtype == BF16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allow": ["matmull"]}, r"'matmull' in allow, which is no op; near names are matmul"),
        ({"deny": ["layernorm"]}, r"'layernorm' in deny, .* layer_norm"),
        ({"allow": "matmul"}, r"the string 'matmul' for allow, expected a list"),
        ({"allow": [3]}, r"got an int in allow, expected names of ops"),
        ({"allow": ["exp"], "deny": ["exp"]}, r"'exp' in allow and in deny"),
        ({"dtype": gt.float64}, r"expected gt.float16, gt.bfloat16"),
        ({"dtype": "cpu"}, r"leave out the device"),
        ({"dtype": None}, r"expected gt.float16"),
        ({"enabled": 1}, r"expected True or False"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gt.autocast(**options)
    assert current().modes == ()


# ---- blocks ------------------------------------------------------------------------------------


def test_inner_blocks_decide() -> None:
    w = gt.tensor(W)
    with gt.autocast(gt.float16):
        assert (X @ w).dtype == F16
        with gt.autocast():
            assert (X @ w).dtype == BF16
            with gt.autocast(enabled=False):
                assert (X @ w).dtype == F32
                assert gt.exp(gt.astype(w, BF16)).dtype == BF16
            with gt.autocast(gt.PrecisionMode.Float32):
                assert (X @ w).dtype == F32
        assert (X @ w).dtype == F16
    assert (X @ w).dtype == F32


def test_as_a_decorator() -> None:
    @gt.autocast(deny=["tanh"])
    def model(w: Any) -> Any:
        return X @ w, gt.tanh(X @ w)

    assert [out.dtype for out in model(gt.tensor(W))] == [BF16, F32]


def test_what_is_given_is_never_written_to() -> None:
    w = gt.tensor(W.copy(), requires_grad=True)
    with gt.autocast():
        first = (X @ w).detach()
        with gt.no_grad():
            w *= 2.0
        second = X @ w
        assert second.requires_grad  # nothing is remembered from inside no_grad, or from before
    np.testing.assert_allclose(rounded(second.detach()), 2 * rounded(first), rtol=2**-7)


def test_users_functions_are_left_alone() -> None:
    @gt.custom_vjp
    def matmul(x: Any) -> Any:
        assert x.dtype == F32
        return x * 2.0

    matmul.defvjp(lambda ct, out, x: (ct * 2.0,))
    with gt.autocast():
        assert gt.grad(lambda x: gt.sum(matmul(x)))(X).dtype == F32


# ---- compiled functions and transforms ---------------------------------------------------------


def test_compiled_functions_are_compiled_for_it() -> None:
    traces: list[int] = []

    @gt.jit
    def product(x: Any, w: Any) -> Any:
        traces.append(1)
        return x @ w

    for _ in range(2):
        assert product(X, W).dtype == F32
        for dtype in (BF16, F16):
            with gt.autocast(dtype):
                assert product(X, W).dtype == dtype
        with gt.autocast(allow=["exp"]):
            assert product(X, W).dtype == BF16
        with gt.autocast(enabled=False):
            assert product(X, W).dtype == F32
    assert len(traces) == 5
    with gt.autocast():
        graph = product.graph(X, W)
    assert [node.op.name for node in graph.nodes] == ["astype", "astype", "matmul"]
    assert [node.op.name for node in product.graph(X, W).nodes] == ["matmul"]


def test_a_block_inside_of_a_compiled_function() -> None:
    @gt.jit
    def function(x: Any, w: Any) -> Any:
        with gt.autocast():
            h = x @ w
        return h, x @ w

    assert [out.dtype for out in function(X, W)] == [BF16, F32]


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f(gt.tensor(W), X),
    "grad": lambda f: gt.grad(f)(W, X),
    "jit of grad": lambda f: gt.jit(gt.grad(f))(W, X),
    "grad of jit": lambda f: gt.grad(gt.jit(f))(W, X),
    "grad of grad": lambda f: gt.grad(lambda w: gt.sum(gt.grad(f)(w, X) ** 2))(W),
    "hessian": lambda f: gt.hessian(f)(W, X),
    "jit of hessian": lambda f: gt.jit(gt.hessian(f))(W, X),
    "jvp": lambda f: gt.jvp(lambda w: f(w, X), (W,), (W,))[1],
    "vmap of grad": lambda f: gt.vmap(gt.grad(f), in_axes=(None, 0))(W, X[:, None]),
    "jet": lambda f: gt.jet(lambda w: f(w, X), (W,), ((W, np.zeros_like(W)),)),
    "linearize": lambda f: gt.linearize(lambda w: f(w, X), W)[1](W),
    "laplacian": lambda f: gt.laplacian(lambda w: f(w, X))(W),
    "per_sample_norms": lambda f: gt.per_sample_norms(lambda w, x: f(w, x[None]))(W, X),
    "hvp": lambda f: gt.hvp(f, (W, X), (W, np.zeros_like(X))),
    "checkpoint": lambda f: gt.grad(gt.checkpoint(f))(W, X),
    "scan": lambda f: gt.scan(
        lambda c, x: (c + f(gt.tensor(W), x[None]), c), np.float32(0), X, save="sqrt"
    )[0],
    "jit of scan": lambda f: gt.jit(
        lambda w: gt.scan(lambda c, x: (c + f(w, x[None]), c), np.float32(0), X)[0]
    )(W),
    "cond": lambda f: gt.jit(lambda w: gt.cond(w[0, 0] > -9, f, lambda w, _: w.sum(), w, X))(W),
}


def leaves(result: Any) -> list[Any]:
    found: list[Any] = containers.flatten(result)[0]
    return found


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_agree_with_casts_by_hand(name: str) -> None:
    transform = TRANSFORMS[name]
    with gt.autocast():
        result = transform(loss)
    expected = transform(lambda w, x: by_hand(w, x, BF16))
    wide = transform(loss)
    for each, other, plain in zip(*map(leaves, (result, expected, wide)), strict=True):
        assert each.dtype == other.dtype == plain.dtype == F32
        scale = np.abs(plain).max()
        np.testing.assert_allclose(each, other, atol=1e-6 * scale)
        np.testing.assert_allclose(each, plain, atol=0.05 * scale)
        assert np.abs(np.asarray(each) - plain).max() > 1e-5 * scale


def test_modules_train_in_16_bits() -> None:
    gt.manual_seed(0)
    net = gt.nn.Sequential(gt.nn.Linear(4, 8), gt.nn.Tanh(), gt.nn.Linear(8, 1))
    y = np.sin(X[:, :1])
    optimizer, losses = gt.optim.Adam(net.parameters(), lr=0.05), []
    for _ in range(30):
        optimizer.zero_grad()
        with gt.autocast():
            out = net(X)
            assert out.dtype == BF16
            error = gt.nn.mse_loss(out, y)
        error.backward()
        optimizer.step()
        losses.append(error.item())
    assert losses[-1] < 0.2 * losses[0]
    assert all(p.dtype == F32 for p in net.parameters())


# ---- tapes -------------------------------------------------------------------------------------


def test_a_tape_computes_as_a_block_does() -> None:
    tape = gt.GradientTape(amp=gt.AmpConfig())
    w = tape.watch(W)
    gradient = tape.gradient(loss(w, X), w)
    np.testing.assert_array_equal(gradient, gt.grad(by_hand)(W, X, BF16))


def test_second_derivatives_by_tapes() -> None:
    outer, inner = gt.GradientTape(amp=gt.AmpConfig()), gt.GradientTape()
    w = outer.watch(W)
    v = inner.watch(w)
    first = inner.gradient(loss(v, X), v)
    second = outer.gradient(gt.sum(first**2), w)
    expected = gt.grad(lambda w: gt.sum(gt.grad(by_hand)(w, X, BF16) ** 2))(W)
    np.testing.assert_allclose(second, expected, rtol=1e-5, atol=1e-7)


def test_configs_of_tapes() -> None:
    config = gt.AmpConfig(
        precision_mode=gt.PrecisionMode.Float16,
        autocast_ops=["matmul", "conv2d", "exp"],
        keep_fp32_ops=["softmax", "layer_norm", "tanh"],
    )
    tape = gt.GradientTape.with_amp_config(config)
    w = tape.watch(W)
    assert (X @ w).dtype == F16
    assert gt.exp(w).dtype == F16
    assert gt.tanh(X @ w).dtype == F32
    with gt.autocast(enabled=False):
        assert (X @ w).dtype == F32
    with gt.autocast():
        assert (X @ w).dtype == BF16
    for off in (gt.AmpConfig(enabled=False), gt.AmpConfig(precision_mode=gt.PrecisionMode.Float32)):
        tape = gt.GradientTape(amp=off)
        assert (X @ tape.watch(W)).dtype == F32
    with pytest.raises(ArgumentError, match="'mm' in autocast_ops, which is no op"):
        gt.AmpConfig(autocast_ops=["mm"])
    with pytest.raises(ArgumentError, match=r"expected one of gt.PrecisionMode.Float16"):
        gt.AmpConfig(precision_mode="float16")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"expected a gt.LossScaler.Dynamic\(\)"):
        gt.AmpConfig(loss_scaler=65536.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", [None, *gt.CheckpointStrategy][:4])
@pytest.mark.parametrize("block", [False, True])
def test_what_is_computed_again_has_the_same_bits(strategy: Any, block: bool) -> None:
    checkpoint = gt.CheckpointConfig(strategy=strategy)
    amp = None if block else gt.AmpConfig()
    tape = gt.GradientTape(amp=amp, checkpoint=checkpoint)
    w = tape.watch(W)
    with gt.autocast(enabled=True) if block else contextlib.nullcontext():
        value = loss(w, X)
    np.testing.assert_array_equal(tape.gradient(value, w), gt.grad(by_hand)(W, X, BF16))


def test_a_tape_that_is_off_casts_in_its_block() -> None:
    tape = gt.GradientTape(amp=gt.AmpConfig(), enabled=False)
    with tape:
        assert (X @ tape.watch(W)).dtype == BF16
    assert (X @ gt.tensor(W)).dtype == F32


def test_lazy_graphs() -> None:
    def main(ctx: Any) -> Any:
        x = ctx.placeholder("x", [-1, 4], dtype=F32)
        with gt.autocast():
            short = x @ gt.tensor(W)
            value = loss(gt.tensor(W), x)
        wide = x @ gt.tensor(W)
        slope = gt.graph.grad([value], [x])[0]
        with gt.autocast():  # an op is cast where it is written, not where it is evaluated
            return [t.eval(ctx, feed={x: X}) for t in (short, wide, value, slope)]

    short, wide, value, slope = gt.run(main)
    assert [each.dtype for each in (short, wide, value, slope)] == [BF16, F32, F32, F32]
    np.testing.assert_allclose(value, by_hand(W, X, BF16), rtol=1e-6)
    expected = gt.grad(lambda x: by_hand(W, x, BF16))(X)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


def test_a_tape_inside_of_a_compiled_function() -> None:
    config = gt.AmpConfig()

    @gt.jit
    def step(w: Any) -> Any:
        tape = gt.GradientTape(amp=config)
        v = tape.watch(w)
        return tape.gradient(loss(v, X), v)

    np.testing.assert_allclose(step(W), gt.grad(by_hand)(W, X, BF16), rtol=1e-5, atol=1e-8)


# ---- PyTorch -----------------------------------------------------------------------------------


def test_as_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    w = torch.tensor(W, requires_grad=True)
    x = torch.tensor(X)
    with torch.autocast("cpu", torch.bfloat16):
        h = torch.tanh(x @ w)
        theirs = (h.float() ** 2).mean()
    theirs.backward()
    v: Any = gt.tensor(W, requires_grad=True)
    with gt.autocast():
        g = gt.tanh(X @ v)
        ours = gt.mean(g**2)
    ours.backward()
    assert str(h.dtype) == "torch.bfloat16"
    assert g.dtype == BF16
    np.testing.assert_array_equal(g.detach().numpy().astype(F32), h.detach().float().numpy())
    np.testing.assert_allclose(ours.item(), theirs.item(), rtol=1e-6)
    np.testing.assert_allclose(v.grad, w.grad.numpy(), atol=2e-3)
