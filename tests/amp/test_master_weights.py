"""Float32 master weights of parameters that are stored in 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, GradtapeError, NonFiniteError, ShapeError

BF16, F16, F32 = np.dtype(gt.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
START = np.linspace(-1.0, 1.0, 6).reshape(2, 3)


def leaves(dtype: Any = BF16) -> Any:
    w = gt.tensor(START, dtype=dtype, requires_grad=True)
    return [w, gt.tensor(np.ones(2, np.float32), requires_grad=True)]


def gradients(step: int) -> list[Any]:
    rng = np.random.default_rng(step)
    return [rng.normal(size=(2, 3)), rng.normal(size=2)]


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_steps_add_up_as_in_float32(dtype: Any) -> None:
    params = leaves(dtype)
    wide = [gt.tensor(p.detach().numpy().astype(F32), requires_grad=True) for p in params]
    optimizer = gt.amp.MasterWeights(gt.optim.Adam(params, lr=1e-3))
    expected = gt.optim.Adam(wide, lr=1e-3)
    assert [m.dtype for m in optimizer.masters] == [F32, F32]
    assert optimizer.masters[1] is params[1]
    for step in range(20):
        for group in (params, wide):
            for param, gradient in zip(group, gradients(step), strict=True):
                rounded = gradient.astype(dtype if param.shape == (2, 3) else F32)
                param.grad = gt.tensor(rounded.astype(param.dtype))
        optimizer.step()
        expected.step()
    assert [p.dtype for p in params] == [dtype, F32]
    for master, param, other in zip(optimizer.masters, params, wide, strict=True):
        np.testing.assert_array_equal(master.detach(), other.detach())
        np.testing.assert_array_equal(param.detach(), other.detach().numpy().astype(param.dtype))
    assert params[0].grad is None
    alone = gt.optim.SGD([w := gt.tensor([1.0], dtype=dtype, requires_grad=True)], lr=1e-5)
    gt.sum(w).backward()
    alone.step()
    assert w.item() == 1.0  # lost without them


def test_the_pure_form_agrees() -> None:
    rule = gt.amp.MasterWeights(gt.optim.Adam(lr=1e-3))
    params = {"w": START.astype(BF16), "b": np.ones(2, np.float32)}
    state = rule.init(params)
    assert state["master"]["w"].dtype == F32
    assert state["master"]["b"] is params["b"]
    compiled = gt.jit(rule.apply)
    other, its_state = params, state
    tensors = leaves()
    optimizer = gt.amp.MasterWeights(gt.optim.Adam(tensors, lr=1e-3))
    for step in range(5):
        w, b = gradients(step)
        grads = {"w": w.astype(BF16), "b": b.astype(F32)}
        params, state = rule.apply(params, grads, state)
        other, its_state = compiled(other, grads, its_state)
        for tensor, grad in zip(tensors, grads.values(), strict=True):
            tensor.grad = gt.tensor(grad)
        optimizer.step()
    for key, tensor in zip("wb", tensors, strict=True):
        assert params[key].dtype == other[key].dtype == tensor.dtype
        np.testing.assert_array_equal(params[key], tensor.detach())
        np.testing.assert_allclose(state["master"][key], its_state["master"][key], rtol=1e-6)


def test_with_a_scaler() -> None:
    w = gt.tensor([1.0, 1.0], dtype=F16, requires_grad=True)
    optimizer = gt.amp.MasterWeights(gt.optim.SGD([w], lr=1.0))
    scaler = gt.LossScaler.Dynamic(init_scale=2.0**16)
    # 2⁻²⁶ is too small for float16, and 2⁻¹⁰ too small to change 1.
    scaler.scale(gt.sum(gt.astype(w, F32) * 2.0**-26)).backward()
    scaler.unscale_(optimizer)
    np.testing.assert_array_equal(optimizer.masters[0].grad, np.full(2, 2.0**-26))
    assert scaler.step(optimizer)
    scaler.update()
    np.testing.assert_array_equal(optimizer.masters[0].detach(), np.float32(1 - 2.0**-26))
    optimizer.zero_grad()
    scaler.scale(gt.sum(gt.astype(w, F32) * np.inf)).backward()
    before = optimizer.masters[0].detach().numpy().copy()
    assert not scaler.step(optimizer)
    scaler.update()
    np.testing.assert_array_equal(optimizer.masters[0].detach(), before)
    optimizer.zero_grad()
    scaler.scale(gt.sum(gt.astype(w, F32) * 2.0**-8)).backward()
    assert scaler.step(optimizer)
    np.testing.assert_array_equal(w.detach(), np.full(2, 1 - 2.0**-8, F16))


def test_gradients_after_unscaling_are_not_lost() -> None:
    w = gt.tensor([1.0], dtype=F16, requires_grad=True)
    optimizer = gt.amp.MasterWeights(gt.optim.SGD([w], lr=0.5))
    scaler = gt.LossScaler.Dynamic(init_scale=4.0)

    def backward(factor: float) -> None:
        scaler.scale(gt.sum(gt.astype(w, F32) * factor)).backward()

    backward(0.25)
    backward(0.25)
    scaler.unscale_(optimizer)
    backward(0.25)
    with pytest.raises(GradtapeError, match="accumulate gradients before unscale_"):
        scaler.step(optimizer)
    optimizer.zero_grad()
    scaler.update()
    backward(np.inf)
    assert not scaler.step(optimizer)
    scaler.update()
    backward(0.5)  # without zero_grad: the step that was left out has left nothing
    assert scaler.step(optimizer)
    assert w.item() == 0.75


def test_schedules_and_groups_of_the_optimizer() -> None:
    w, b = leaves()
    inner = gt.optim.SGD([{"params": [w], "lr": 0.5}, {"params": [b], "lr": 0.25}], lr=1.0)
    optimizer = gt.amp.MasterWeights(inner)
    w.grad, b.grad = gt.ones((2, 3), dtype=BF16), gt.ones(2, dtype=F32)
    optimizer.step()
    np.testing.assert_array_equal(w.detach(), (START.astype(BF16).astype(F32) - 0.5).astype(BF16))
    np.testing.assert_array_equal(b.detach(), [0.75, 0.75])
    inner.lr = 1.0
    w.grad, b.grad = gt.ones((2, 3), dtype=BF16), gt.ones(2, dtype=F32)
    optimizer.step()
    np.testing.assert_array_equal(b.detach(), [-0.25, -0.25])


def test_resume_gives_the_same_bits(tmp_path: Any) -> None:
    def train(params: Any, optimizer: Any, steps: range) -> None:
        for step in steps:
            for param, gradient in zip(params, gradients(step), strict=True):
                param.grad = gt.tensor(gradient.astype(param.dtype))
            optimizer.step()

    params = leaves()
    optimizer = gt.amp.MasterWeights(gt.optim.Adam(params, lr=1e-3))
    train(params, optimizer, range(3))
    gt.save(tmp_path / "state.safetensors", optimizer.state_dict())
    bias = params[1].detach().numpy().copy()
    train(params, optimizer, range(3, 6))

    others = leaves()
    with gt.no_grad():
        others[1][...] = bias
    again = gt.amp.MasterWeights(gt.optim.Adam(others, lr=1e-3))
    again.load_state_dict(gt.load(tmp_path / "state.safetensors"))
    train(others, again, range(3, 6))
    for param, other in zip(params, others, strict=True):
        np.testing.assert_array_equal(param.detach(), other.detach())
    state = again.state_dict()
    before = others[0].detach().numpy().copy()
    with pytest.raises(ArgumentError, match=r"a state without '0.master'"):
        again.load_state_dict({k: v for k, v in state.items() if k != "0.master"})
    with pytest.raises(ShapeError, match=r"'0.master' of shape \(1,\)"):
        again.load_state_dict(state | {"0.master": np.ones(1)})
    with pytest.raises(ArgumentError):
        again.load_state_dict(state | {"7.momentum": np.ones(1)})
    np.testing.assert_array_equal(others[0].detach(), before)


def test_wrong_use() -> None:
    w, b = leaves()
    inner = gt.optim.SGD([w, b], lr=0.1, momentum=0.9)
    w.grad, b.grad = gt.ones((2, 3), dtype=BF16), gt.ones(2, dtype=F32)
    inner.step()
    with pytest.raises(ArgumentError, match="has made a step"):
        gt.amp.MasterWeights(inner)
    with pytest.raises(ArgumentError, match="got no parameters"):
        gt.amp.MasterWeights(gt.optim.SGD(lr=0.1)).step()
    params = leaves()
    optimizer = gt.amp.MasterWeights(gt.optim.SGD(params, lr=0.1))
    params[0].grad = gt.full((2, 3), np.inf, dtype=BF16)
    with pytest.raises(NonFiniteError):
        optimizer.step()
    np.testing.assert_array_equal(params[0].detach(), START.astype(BF16))
