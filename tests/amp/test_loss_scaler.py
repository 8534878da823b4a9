"""Loss scaling: what is skipped, when the scale changes, and that both forms agree on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    NonFiniteError,
    ShapeError,
    UnsupportedError,
)

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)


def leaf(*values: float) -> Any:
    return gt.tensor(np.array(values, np.float32), requires_grad=True)


def scaler_of(**numbers: Any) -> Any:
    return gt.LossScaler.Dynamic(**({"init_scale": 1024.0, "growth_interval": 3} | numbers))


# Which steps overflow, and the scales that follow with a growth interval of 3.
FINITE = [True, True, False, True, True, True, True, True, True, False, False, True]
SCALES = [1024, 1024, 512, 512, 512, 1024, 1024, 1024, 2048, 1024, 512, 512]


def test_the_scale_grows_and_backs_off_exactly() -> None:
    w = leaf(1.0, 2.0)
    optimizer = gt.optim.SGD([w], lr=0.5, momentum=0.9)
    scaler = scaler_of()
    found = []
    expected = gt.optim.SGD([v := leaf(1.0, 2.0)], lr=0.5, momentum=0.9)
    for finite in FINITE:
        optimizer.zero_grad()
        before = w.detach().numpy().copy()
        scaler.scale(gt.sum(w * w) * (1.0 if finite else np.inf)).backward()
        assert scaler.step(optimizer) == finite
        scaler.update()
        assert scaler.finite == finite
        found.append(scaler.get_scale())
        if finite:
            expected.zero_grad()
            gt.sum(v * v).backward()
            expected.step()
        else:
            np.testing.assert_array_equal(w.detach(), before)
        np.testing.assert_array_equal(w.detach(), v.detach())
    assert found == SCALES
    assert (scaler.steps, scaler.skipped) == (12, 3)
    assert list(scaler.scales) == [
        (0, 1024), (3, 512), (6, 1024), (9, 2048), (10, 1024), (11, 512),
    ]  # fmt: skip
    assert [(each.step, each.scale) for each in scaler.overflows] == [
        (3, 1024), (10, 2048), (11, 1024),
    ]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_the_pure_form_does_the_same(compiled: bool) -> None:
    scaler, optimizer = scaler_of(), gt.optim.SGD(lr=0.5, momentum=0.9)
    traces = []

    def step(params: Any, state: Any, scaling: Any, factor: Any) -> Any:
        traces.append(1)

        def loss(params: Any) -> Any:
            return scaler.scale(gt.sum(params["w"] ** 2) * factor, scaling)

        grads, finite, scaling = scaler.unscale(gt.grad(loss)(params), scaling)
        new = optimizer.apply(params, grads, state)
        return *gt.amp.select(finite, new, (params, state)), scaling, finite

    step = gt.jit(step) if compiled else step
    params: Any = {"w": np.array([1.0, 2.0], np.float32), "b": np.ones(1, np.float32)}
    state, scaling = optimizer.init(params), scaler.init()
    v = leaf(1.0, 2.0)
    expected = gt.optim.SGD([v], lr=0.5, momentum=0.9)
    found = []
    for finite in FINITE:
        factor = np.float32(1.0 if finite else np.inf)
        with np.errstate(invalid="ignore"):
            params, state, scaling, was_finite = step(params, state, scaling, factor)
        assert bool(was_finite) == finite
        found.append(float(scaling["scale"]))
        if finite:
            expected.zero_grad()
            gt.sum(v * v).backward()
            expected.step()
        np.testing.assert_allclose(params["w"], v.detach(), rtol=1e-6)
        assert np.isfinite(state["momentum"]["w"]).all()
    assert found == SCALES
    counts = ("steps", "skipped", "streak", "overflowed")
    assert [scaling[name].item() for name in counts] == [12, 3, 1, 1]
    assert {name: array.dtype for name, array in scaling.items()} == {
        name: array.dtype for name, array in scaler.init().items()
    }
    if compiled:
        assert len(traces) == 1


def test_a_module_with_buffers_in_a_compiled_step() -> None:
    gt.manual_seed(0)
    net: Any = gt.nn.Sequential(gt.nn.Linear(4, 8), gt.nn.BatchNorm1d(8), gt.nn.Linear(8, 1))
    x = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    optimizer, scaler = gt.optim.Adam(lr=0.05), scaler_of()

    @gt.jit
    def step(net: Any, state: Any, scaling: Any, factor: Any) -> Any:
        @gt.autocast(gt.float16)
        def loss(net: Any) -> Any:
            return scaler.scale(gt.mean((net(x) - x[:, :1]) ** 2) * factor, scaling)

        value, grads = gt.value_and_grad(loss)(net)
        grads, finite, after = scaler.unscale(grads, scaling)
        new = optimizer.apply(net, grads, state)
        return value / scaling["scale"], *gt.amp.select(finite, new, (net, state)), after

    state, scaling, losses = optimizer.init(net), scaler.init(), []
    with gt.no_grad():
        for number in range(20):
            before = [np.array(p) for p in net.parameters()]
            factor = np.float32(np.inf if number == 5 else 1.0)
            value, net, state, scaling = step(net, state, scaling, factor)
            losses.append(float(value))
            same = [np.array_equal(p, old) for p, old in zip(net.parameters(), before, strict=True)]
            assert all(same) == (number == 5)
    assert losses[-1] < 0.5 * losses[0]
    assert int(scaling["skipped"]) == 1
    assert np.isfinite(net[1].running_mean).all()
    assert int(net[1].num_batches_tracked) == 20


def test_small_gradients_of_float16_survive() -> None:
    x = np.full((8, 4), 1e-2, np.float32)
    w0 = np.full((4, 3), 1e-2, np.float32)

    def loss(w: Any) -> Any:
        return gt.mean(gt.astype(x @ w, F32)) * 1e-6

    with gt.autocast(gt.float16):
        lost = gt.grad(loss)(w0)
    exact = gt.grad(loss)(w0)
    assert not lost.any()
    scaler = gt.LossScaler.Static(2.0**20)
    state = scaler.init()
    with gt.autocast(gt.float16):
        grads = gt.grad(lambda w: scaler.scale(loss(w), state))(w0)
    found, finite, after = scaler.unscale(grads, state)
    assert bool(finite)
    assert (found.dtype, float(after["scale"])) == (F32, 2.0**20)
    np.testing.assert_allclose(found, exact, rtol=2e-3)


def test_gradients_are_unscaled_in_float32_and_named() -> None:
    scaler = scaler_of()
    grads = {
        "a": np.array([2.0**-20], F16) * 1024,
        "b": [np.ones(2), np.array([1.0, np.nan], np.float32)],
        "c": np.array([np.inf], np.float32),
        "d": gt.tensor(np.ones(2), dtype=gt.bfloat16),
    }
    found, finite, state = scaler.unscale(grads, scaler.init())
    assert not finite
    assert int(state["overflowed"]) == 2  # the first in the order of the leaves
    assert found["a"].dtype == F32
    assert found["a"][0] == np.float32(2.0**-20)
    assert found["b"][0].dtype == np.float64
    assert found["d"].dtype == F32
    assert isinstance(found["d"], gt.Tensor)


def test_which_parameter_overflowed_first() -> None:
    params = [leaf(1.0), leaf(2.0), leaf(3.0)]
    optimizer, scaler = gt.optim.SGD(params, lr=0.1), scaler_of()
    factors = [1.0, np.inf, np.nan]
    scaler.scale(sum(gt.sum(p) * f for p, f in zip(params, factors, strict=True))).backward()
    assert not scaler.step(optimizer)
    scaler.update()
    assert list(scaler.overflows) == [(1, 1024.0, "parameter 1")]


def test_clipping_between() -> None:
    w = leaf(3.0, 4.0)
    optimizer, scaler = gt.optim.SGD([w], lr=1.0), scaler_of()
    scaler.scale(gt.sum(w * w) / 2).backward()
    scaler.unscale_(optimizer)
    np.testing.assert_array_equal(w.grad, [3.0, 4.0])
    w.grad = gt.gradient_clipping.clip_by_global_norm(w.grad, 1.0)
    with pytest.raises(GradtapeError, match="unscale_ was called already"):
        scaler.unscale_(optimizer)
    assert scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(w.detach(), [2.4, 3.2], rtol=1e-6)


def test_two_optimizers_share_a_scaler() -> None:
    one, two = leaf(1.0), leaf(1.0)
    first, second = gt.optim.SGD([one], lr=0.5), gt.optim.SGD([two], lr=0.5)
    scaler = scaler_of()
    scaler.scale(gt.sum(one) + gt.sum(two) * np.inf).backward()
    assert [scaler.step(first), scaler.step(second)] == [True, False]
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert [one.item(), two.item()] == [0.5, 1.0]


def test_parameters_can_be_given_to_the_step() -> None:
    w = leaf(1.0)
    optimizer, scaler = gt.optim.SGD(lr=0.5), scaler_of()
    scaler.scale(gt.sum(w)).backward()
    assert scaler.step(optimizer, [w])
    assert w.item() == 0.5


def test_order_of_calls() -> None:
    w = leaf(1.0)
    optimizer, scaler = gt.optim.SGD([w], lr=0.5), scaler_of()
    with pytest.raises(GradtapeError, match="update\\(\\) was called before step"):
        scaler.update()
    short = gt.tensor(np.ones(2), dtype=gt.float16, requires_grad=True)
    scaler.scale(gt.sum(short)).backward()
    with pytest.raises(DTypeError, match=r"place 0, .* give the optimizer to gt.amp.MasterWeights"):
        scaler.step(gt.optim.SGD([short], lr=0.1))
    assert scaler.step(optimizer)  # no gradient at all
    scaler.scale(gt.sum(w)).backward()
    with pytest.raises(GradtapeError, match="step was called already"):
        scaler.step(optimizer)
    assert w.item() == 1.0
    scaler.update()
    assert scaler.step(optimizer)
    assert w.item() == 0.5


def test_a_trace_needs_the_state() -> None:
    scaler = scaler_of()
    with pytest.raises(UnsupportedError, match=r"pass scaler.init\(\) as an argument"):
        gt.jit(lambda x: scaler.scale(gt.sum(x)))(np.ones(2, np.float32))


def test_a_loss_that_is_nan_at_every_scale() -> None:
    w = leaf(1.0)
    optimizer, scaler = gt.optim.SGD([w], lr=0.5), scaler_of(init_scale=2.0**-38)
    for _ in range(2):
        scaler.scale(gt.sum(w) * np.nan).backward()
        scaler.step(optimizer)
        scaler.update()
    scaler.scale(gt.sum(w) * np.nan).backward()
    scaler.step(optimizer)
    with pytest.raises(NonFiniteError, match="parameter 0 is not finite at a scale"):
        scaler.update()
    assert w.item() == 1.0


def test_the_largest_scale_stays() -> None:
    scaler = scaler_of(init_scale=2.0**127, growth_interval=1)
    _, finite, state = scaler.unscale([np.zeros(1, np.float32)], scaler.init())
    assert bool(finite)
    assert float(state["scale"]) == 2.0**127


def test_state_of_resume(tmp_path: Any) -> None:
    scaler = scaler_of()
    state = scaler.init()
    for factor in (1.0, np.inf, 1.0, 1.0):
        _, _, state = scaler.unscale([np.array([factor])], state)
    scaler.load_state_dict(state)
    gt.save(tmp_path / "scaler.safetensors", scaler.state_dict())
    other = scaler_of()
    other.load_state_dict(gt.load(tmp_path / "scaler.safetensors"))
    assert other.state_dict() == scaler.state_dict()
    assert (other.get_scale(), other.steps, other.skipped) == (512.0, 4, 1)
    for each in (scaler, other):
        w = leaf(1.0)
        each.scale(gt.sum(w)).backward()
        each.step(gt.optim.SGD([w], lr=0.1))
        each.update()
    assert other.get_scale() == scaler.get_scale() == 1024.0
    before = other.state_dict()
    for wrong, error in (
        ({"scale": 1.0}, ArgumentError),
        (before | {"scale": np.float32(-1.0)}, ArgumentError),
        (before | {"steps": np.zeros(2)}, ShapeError),
        (before | {"steps": "a"}, ArgumentError),
        (before | {"streak": np.nan}, ArgumentError),
        (None, ArgumentError),
    ):
        with pytest.raises(error):
            other.load_state_dict(wrong)
        assert other.state_dict() == before


@pytest.mark.parametrize(
    "numbers",
    [
        {"init_scale": 0.0}, {"init_scale": np.inf}, {"init_scale": 1e300}, {"growth_factor": 0.5},
        {"backoff_factor": 1.0}, {"backoff_factor": 0.0}, {"growth_interval": 0},
        {"growth_interval": 2.0},
    ],
)  # fmt: skip
def test_numbers_out_of_range(numbers: Any) -> None:
    with pytest.raises(ArgumentError, match=r"LossScaler.Dynamic: got"):
        gt.LossScaler.Dynamic(**numbers)


def test_wrong_use() -> None:
    with pytest.raises(ArgumentError, match=r"gt.LossScaler.Static\(1024.0\)"):
        gt.LossScaler()
    with pytest.raises(ArgumentError, match=r"LossScaler.Static: got scale=-1"):
        gt.LossScaler.Static(-1)
    with pytest.raises(DTypeError, match="got int64"):
        scaler_of().scale(np.arange(3))
    with pytest.raises(ArgumentError, match=r"make it by scaler.init"):
        scaler_of().unscale([np.ones(1)], {"scale": 1.0})
    with pytest.raises(ArgumentError, match="got a list, expected an optimizer"):
        scaler_of().step([])
    with pytest.raises(ArgumentError, match="got an ndarray as a parameter"):
        scaler_of().step(gt.optim.SGD(lr=0.1), [np.ones(2)])
    with pytest.raises(ArgumentError, match="in the same containers"):
        gt.amp.select(True, [1.0], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="got a type, expected an optimizer"):
        gt.amp.MasterWeights(gt.optim.Adam)
    with pytest.raises(ArgumentError, match="an int for allow"):
        gt.autocast(allow=3)


# ---- tapes -------------------------------------------------------------------------------------


def test_tapes_scale_by_themselves() -> None:
    scaler = gt.LossScaler.Dynamic(init_scale=2.0**24, growth_interval=2)
    config = gt.AmpConfig(precision_mode=gt.PrecisionMode.Float16, loss_scaler=scaler)
    x, w0 = np.full((8, 4), 1e-2, np.float32), np.full((4, 3), 1e-2, np.float32)

    def gradient(factor: float, tape: Any) -> Any:
        w = tape.watch(w0)
        return tape.gradient(gt.mean(x @ w) * factor, {"w": w})["w"]

    exact = gradient(1e-6, gt.GradientTape())
    found = gradient(1e-6, gt.GradientTape(amp=config))
    assert found.dtype == F32
    np.testing.assert_allclose(found, exact, rtol=2e-3)
    assert scaler.finite
    wrong = gradient(1.0, gt.GradientTape(amp=config))  # 2^24/24 is too large for float16
    assert not np.isfinite(wrong).any()
    assert not scaler.finite
    assert list(scaler.overflows) == [(2, 2.0**24, "source['w']")]
    assert scaler.get_scale() == 2.0**23
    tape = gt.GradientTape(amp=config)
    w = tape.watch(w0)
    given = tape.gradient(gt.sum(x @ w, axis=0), w, output_gradients=np.full(3, 1e-4, np.float32))
    np.testing.assert_allclose(given, np.full((4, 3), 8e-6), rtol=2e-3)
    with pytest.raises(UnsupportedError, match=r"scaler.unscale\(grads, state\)"):
        gt.jit(lambda x: gradient(x, gt.GradientTape(amp=config)))(1.0)


def test_only_float16_is_scaled_by_default() -> None:
    for mode, name in (("BFloat16", type(None)), ("Float16", gt.LossScaler.Dynamic)):
        config = gt.AmpConfig(precision_mode=gt.PrecisionMode[mode])
        assert type(config.loss_scaler) is name


# ---- PyTorch -----------------------------------------------------------------------------------


def test_as_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    theirs = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    found = []
    for finite in FINITE:
        optimizer.zero_grad()
        theirs.scale(w.sum() * (1.0 if finite else np.inf)).backward()
        theirs.step(optimizer)
        theirs.update()
        found.append(theirs.get_scale())
    assert found == SCALES


def test_gradients_that_overflow_make_no_warnings() -> None:
    """Scales are tried until gradients overflow; warnings are errors here."""
    net = gt.nn.Sequential(gt.nn.Conv2d(1, 2, 3), gt.nn.ReLU())
    optimizer = gt.optim.SGD(net.parameters(), lr=0.1)
    scaler = gt.LossScaler.Dynamic(init_scale=2.0**30)
    with gt.autocast(gt.float16):
        loss = gt.sum(net(np.ones((2, 1, 4, 4), np.float32)) + 1.0)
    scaler.scale(loss).backward()
    assert not scaler.step(optimizer)
    assert gt.astype(np.full(2, 1e6, np.float32), gt.float16).tolist() == [np.inf, np.inf]
