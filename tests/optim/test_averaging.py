"""Averages of weights, and the statistics of batch normalization that go with them."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError
from gradtape.optim import AveragedModel, WeightAverage, update_bn


def net(dtype=np.float64):
    return gt.nn.Sequential(
        gt.nn.Linear(3, 4, dtype=dtype), gt.nn.BatchNorm1d(4, dtype=dtype), gt.nn.Tanh()
    )


def moved(model, rng):
    """Other weights and statistics, as after some training."""
    for value in (*model.parameters(), *model.buffers()):
        if value.dtype.kind == "f":
            value.value = rng.uniform(0.1, 2, value.shape).astype(value.dtype)
        else:
            value.value = value.value + 3


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("decay", [None, 0.9])
def test_averages_of_a_model(decay, use_buffers, rng):
    model = net()
    averaged, states = AveragedModel(model, decay, use_buffers=use_buffers), []
    for _ in range(100):
        moved(model, rng)
        states.append({name: np.array(x) for name, x in model.state_dict().items()})
        averaged.update_parameters(model)
    for name, found in averaged.module.state_dict().items():
        values = [state[name] for state in states]
        is_copied = name.endswith("num_batches_tracked") or ("running" in name and not use_buffers)
        if is_copied:
            expected = values[-1]
        elif decay is None:
            expected = np.mean(values, axis=0)
        else:
            expected = values[0]
            for value in values[1:]:
                expected = decay * expected + (1 - decay) * value
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)
    assert averaged.n_averaged.item() == 100


@pytest.mark.parametrize("decay", [None, 0.9])
def test_averages_against_torch(decay, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from torch.optim import swa_utils

    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double()
    ours = gt.nn.Sequential(
        gt.nn.Linear(3, 4, dtype=np.float64), gt.nn.BatchNorm1d(4, dtype=np.float64)
    )
    function = None if decay is None else swa_utils.get_ema_multi_avg_fn(decay)
    one, other = AveragedModel(ours, decay), swa_utils.AveragedModel(theirs, multi_avg_fn=function)
    for _ in range(100):
        moved(ours, rng)
        state = {key: torch.tensor(np.array(x)) for key, x in ours.state_dict().items()}
        theirs.load_state_dict(state)
        one.update_parameters(ours)
        other.update_parameters(theirs)
    batches = [rng.normal(size=(5, 3)) for _ in range(4)]
    update_bn(batches, one)
    swa_utils.update_bn([torch.tensor(batch) for batch in batches], other)
    expected = other.state_dict()
    assert set(one.state_dict()) == set(expected)
    for name, value in one.state_dict().items():
        np.testing.assert_allclose(value, expected[name].numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("decay", [None, 0.9])
def test_the_pure_form_in_a_compiled_step(decay, rng):
    model, average = net(), WeightAverage(decay)
    averaged = AveragedModel(model, decay)
    step, state = gt.jit(average.apply), average.init(model)
    for _ in range(10):
        moved(model, rng)
        averaged.update_parameters(model)
        with gt.no_grad():
            state = step(model, state)
    assert state["count"] == 10
    found = state["average"].state_dict()
    assert set(found) == set(averaged.module.state_dict())
    for name, value in averaged.module.state_dict().items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)


def test_the_average_is_differentiable():
    average = WeightAverage(0.75)

    def after(w):
        state = average.apply(w, average.init(w))
        return average.apply(2 * w, state)["average"]

    np.testing.assert_allclose(gt.grad(lambda w: after(w).sum())(np.ones(2)), 0.75 + 0.5)


def test_the_model_is_left_alone_and_states_are_saved(rng, tmp_path):
    model = net(np.float32)
    before = {name: np.array(x) for name, x in model.state_dict().items()}
    averaged = AveragedModel(model, 0.5)
    moved(model, rng)
    averaged.update_parameters(model)
    moved(model, rng)
    averaged.update_parameters(model)
    x = np.ones((2, 3), np.float32)
    averaged.eval()
    assert model.training
    gt.save(tmp_path / "a.safetensors", averaged.state_dict())
    other = AveragedModel(net(np.float32), 0.5)
    other.load_state_dict(gt.load(tmp_path / "a.safetensors"))
    other.eval()
    np.testing.assert_array_equal(other(x).detach(), averaged(x).detach())
    assert other.n_averaged.item() == 2
    assert any(not np.array_equal(before[name], x) for name, x in model.state_dict().items())


def test_bad_updates_change_nothing(rng):
    model = net()
    averaged = AveragedModel(model)
    averaged.update_parameters(model)
    before = {name: np.array(x) for name, x in averaged.state_dict().items()}
    for other in (gt.nn.Sequential(gt.nn.Linear(3, 4)), np.ones(3)):
        with pytest.raises(ArgumentError, match="update_parameters"):
            averaged.update_parameters(other)
    model.train()
    model[2].eval()
    with pytest.raises(ArgumentError, match="no batches"):
        update_bn([], averaged)

    def broken():
        yield rng.normal(size=(5, 3))
        raise KeyError("mine")

    with pytest.raises(KeyError):
        update_bn(broken(), averaged)
    for name, value in averaged.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
    assert averaged.module[1].momentum == 0.1
    with pytest.raises(ArgumentError, match="decay"):
        AveragedModel(model, decay=1.0)
    with pytest.raises(ArgumentError, match=r"gt.nn.Module"):
        AveragedModel([model])
    average = WeightAverage()
    with pytest.raises(ArgumentError, match="init"):
        average.apply(np.ones(2), {})
    with pytest.raises(ArgumentError, match="same containers"):
        average.apply([np.ones(2)], average.init(np.ones(2)))


def test_statistics_leave_modes_as_they_were(rng):
    model = net()
    model.eval()
    model[0].train()
    update_bn([(rng.normal(size=(8, 3)), np.zeros(8))], model)
    assert [module.training for module in model] == [True, False, False]
    assert model[1].num_batches_tracked.item() == 1
