"""Groups of parameters, the ways of calling a step, state of groups, and bad input."""

import copy

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError, ShapeError


def leaves(*sizes):
    return [gt.tensor(np.arange(1.0, n + 1), requires_grad=True) for n in sizes]


def with_grads(params, value=1.0):
    for param in params:
        param.grad = gt.Tensor(np.full(param.shape, value))
    return params


# ---- groups ----


def test_each_group_has_its_numbers():
    w, b, c = with_grads(leaves(2, 3, 1))
    groups = [{"params": [w], "lr": 0.5}, {"params": b, "momentum": 0.5}]
    optimizer = gt.optim.SGD(groups, lr=0.25)
    optimizer.add_param_group({"params": {"c": c}, "weight_decay": 1.0})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25, 0.25]
    assert [list(map(id, group["params"])) for group in optimizer.param_groups] == [
        [id(w)],
        [id(b)],
        [id(c)],
    ]
    for _ in range(2):
        optimizer.step()
    np.testing.assert_array_equal(w.detach(), np.array([1.0, 2.0]) - 1.0)
    np.testing.assert_array_equal(b.detach(), np.arange(1.0, 4.0) - 0.25 * (1 + 1.5))
    np.testing.assert_array_equal(c.detach(), [1.0 - 0.25 * 2 - 0.25 * 1.5])


@pytest.mark.parametrize("size", [2, 1000])
def test_numbers_of_groups_can_be_set_between_steps(size):
    w, b = with_grads([gt.zeros(size, requires_grad=True) for _ in range(2)])
    optimizer = gt.optim.SGD([{"params": [w]}, {"params": [b], "lr": 0.5}], lr=1.0)
    for _ in range(3):
        optimizer.step()
    optimizer.param_groups[1]["lr"] = 0.0
    optimizer.step()
    optimizer.lr = 2.0
    optimizer.step()
    assert (w.tolist()[-1], b.tolist()[-1]) == (-6.0, -3.5)
    with pytest.raises(ArgumentError, match="SGD: got lr=-1"):
        optimizer.param_groups[0]["lr"] = -1
    with pytest.raises(ArgumentError, match="got 'rate', expected one of lr, momentum"):
        optimizer.param_groups[0]["rate"] = 1
    with pytest.raises(ArgumentError, match="got nesterov=True without momentum"):
        optimizer.param_groups[0]["nesterov"] = True
    assert optimizer.param_groups[0]["lr"] == 2.0
    assert not optimizer.param_groups[0]["nesterov"]


@pytest.mark.parametrize("size", [2, 1000])
def test_numbers_that_need_more_memory_can_be_set_between_steps(size):
    (w,) = with_grads([gt.zeros(size, requires_grad=True)])
    optimizer = gt.optim.SGD([w], lr=1.0)
    for _ in range(2):
        optimizer.step()
    optimizer.param_groups[0]["momentum"] = 0.5
    for _ in range(2):
        optimizer.step()
    assert w.tolist()[0] == -(1 + 1 + 1 + 1.5)


def test_frozen_parameters_and_those_without_gradient_are_left_alone():
    net = gt.nn.Linear(2, 1)
    net.weight.set_requires_grad(False)
    optimizer = gt.optim.Adam(net.parameters(), lr=0.5)
    before = net.state_dict()
    optimizer.step()
    gt.sum(net(np.ones((1, 2), np.float32))).backward()
    optimizer.step()
    after = net.state_dict()
    np.testing.assert_array_equal(after["weight"], before["weight"])
    np.testing.assert_allclose(after["bias"], before["bias"] - 0.5, rtol=1e-6)
    net.requires_grad_()
    gt.sum(net(np.ones((1, 2), np.float32))).backward()
    optimizer.step()
    assert np.all(np.asarray(net.state_dict()["weight"]) < np.asarray(before["weight"]))


def test_a_module_is_its_parameters_and_a_shared_one_counts_once():
    first, second = gt.nn.Linear(2, 2), gt.nn.Linear(2, 2)
    second.weight = first.weight
    optimizer = gt.optim.SGD(gt.nn.Sequential(first, second), lr=1.0)
    assert len(optimizer.params) == 3
    with pytest.raises(ArgumentError, match=r"shape \(2, 2\) in two groups"):
        gt.optim.SGD([{"params": first.parameters()}, {"params": second.parameters()}], lr=1.0)


# ---- ways of calling ----


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize("name", ["SGD", "Adam", "LAMB"])
def test_every_form_of_a_step_does_the_same(name, size):
    make, start = getattr(gt.optim, name), np.linspace(-1.0, 1.0, size)
    rates = np.linspace(0.0, 2.0, size)

    def loss(w):
        return gt.sum(rates * (w - 1.0) ** 2)

    def pytorch(w):
        optimizer = make([w], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad(set_to_none=True)
            loss(w).backward()
            optimizer.step()

    def hodu(w):
        optimizer = make(lr=0.1)
        for _ in range(4):
            gt.compute_gradients(loss(w))
            optimizer.step([w])
            optimizer.zero_grad([w])

    def tape(w):
        optimizer = make([w], lr=0.1)
        for _ in range(4):
            with gt.GradientTape() as recorded:
                watched = recorded.watch(w)
                value = loss(watched)
            optimizer.step([recorded.gradient(value, watched)])

    pure, state, expected = make(lr=0.1), None, start
    state = pure.init(start)
    for _ in range(4):
        expected, state = pure.apply(expected, gt.grad(loss)(expected), state)
    for form in (pytorch, hodu, tape):
        w = gt.tensor(start, requires_grad=True)
        form(w)
        np.testing.assert_array_equal(w.detach(), expected, err_msg=form.__name__)


def test_gradients_may_be_a_module_or_missing():
    net = gt.nn.Linear(2, 1, dtype=gt.float64)
    optimizer = gt.optim.SGD(net, lr=1.0)
    before = {name: np.asarray(value) for name, value in net.state_dict().items()}
    optimizer.step(gt.grad(lambda net: gt.sum(net(np.ones((1, 2)))))(net))
    np.testing.assert_array_equal(net.bias.detach(), before["bias"] - 1)
    optimizer.step([None, np.ones(1)])
    np.testing.assert_array_equal(net.bias.detach(), before["bias"] - 2)
    np.testing.assert_array_equal(net.weight.detach(), before["weight"] - 1)


def test_some_of_its_parameters_may_be_stepped():
    w, b = with_grads(leaves(2, 2))
    optimizer = gt.optim.SGD([{"params": [w]}, {"params": [b], "lr": 0.5}], lr=1.0)
    optimizer.step([b])
    assert (w.tolist(), b.tolist()) == ([1.0, 2.0], [0.5, 1.5])


def test_compiled_functions_see_the_numbers_as_they_are_now():
    optimizer = gt.optim.SGD(lr=0.5)
    step = gt.jit(lambda w: optimizer.apply(w, np.ones(2), optimizer.init(w))[0])
    w = np.zeros(2)
    assert step(w).tolist() == [-0.5, -0.5]
    optimizer.lr = 0.25
    assert step(w).tolist() == [-0.25, -0.25]
    assert "1 form(s)" in repr(step)
    optimizer.defaults["maximize"] = True
    assert step(w).tolist() == [0.25, 0.25]


# ---- state ----


@pytest.mark.parametrize("name", ["Adam", "NAdam", "RMSprop"])
def test_state_with_groups_goes_through_a_file(name, tmp_path):
    def run(optimizer, steps):
        for number in range(steps):
            with_grads(optimizer.params, 0.5 + number)
            optimizer.step()

    def make(params):
        groups = [{"params": params[:1], "lr": 0.5}, {"params": params[1:]}]
        return getattr(gt.optim, name)(groups, lr=0.25)

    whole, parts = leaves(2, 700), leaves(2, 700)
    first, second = make(whole), make(parts)
    run(first, 2)
    first.param_groups[0]["lr"] = 0.1
    run(second, 2)
    gt.save(tmp_path / "state.safetensors", first.state_dict())
    second = make(parts)
    second.load_state_dict(gt.load(tmp_path / "state.safetensors"))
    assert second.param_groups[0]["lr"] == 0.1
    run(first, 3)
    run(second, 3)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one.detach(), other.detach())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"groups.1.lr": np.array(0.1)}, ArgumentError, "'groups.1.lr'"),
        ({"groups.0.lr": np.array(-1.0)}, ArgumentError, "lr=-1"),
        ({"groups.0.rho": np.array(0.1)}, ArgumentError, "numbers .*'rho'.* of group 0"),
        ({"0.mean": np.ones(3)}, ShapeError, r"'0.mean' of shape \(3,\), expected \(2,\)"),
        ({"0.other": np.ones(2)}, ArgumentError, "a state '0.other'"),
        ({"9.mean": np.ones(2)}, ArgumentError, "one of 1 parameters"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, error, message):
    optimizer = gt.optim.Adam(with_grads(leaves(2)), lr=0.5)
    optimizer.step()
    good = optimizer.state_dict()
    with pytest.raises(error, match=message):
        optimizer.load_state_dict(good | {"0.step": np.array(7)} | change)
    assert optimizer.param_groups[0]["lr"] == 0.5
    for name, value in optimizer.state_dict().items():
        np.testing.assert_array_equal(value, good[name])


def test_a_state_of_fewer_groups_changes_nothing():
    one = gt.optim.SGD(leaves(2, 3), lr=0.5, momentum=0.9)
    first, second = leaves(2, 3)
    optimizer = gt.optim.SGD([{"params": [first]}, {"params": [second], "lr": 0.25}], lr=0.1)
    with pytest.raises(ArgumentError, match=r"the numbers \[\] of group 1, expected .*'lr'"):
        optimizer.load_state_dict(one.state_dict())
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.25]


def test_a_deep_copy_goes_on_by_itself():
    params = with_grads(leaves(2, 700))
    optimizer = gt.optim.Adam([{"params": params[:1], "lr": 0.5}, {"params": params[1:]}], lr=0.25)
    optimizer.step()
    copied_params, copied = copy.deepcopy((params, optimizer))
    assert [id(x) for x in copied.params] == [id(x) for x in copied_params]
    before = [x.tolist() for x in copied_params]
    with_grads(params, 2.0)
    optimizer.step()
    assert [x.tolist() for x in copied_params] == before
    with_grads(copied_params, 2.0)
    copied.param_groups[0]["lr"] = 0.5
    copied.step()
    for one, other in zip(params, copied_params, strict=True):
        np.testing.assert_array_equal(one.detach(), other.detach())


# ---- bad input: a clear error, nothing changed ----


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.float16])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gradients_that_are_not_finite(dtype, size, bad):
    params = [gt.ones(size, dtype, requires_grad=True) for _ in range(2)]
    optimizer = gt.optim.Adam(params, lr=0.5)
    for number in range(4):
        for param in params:
            param.grad = gt.Tensor(np.ones(size, dtype))
        if number == 3:
            gradient = np.ones(size, dtype)
            gradient[-1] = bad
            params[1].grad = gt.Tensor(gradient)
            before, state = [param.tolist() for param in params], optimizer.state_dict()
            with pytest.raises(NonFiniteError, match=r"position 1; nothing was changed"):
                optimizer.step()
        else:
            optimizer.step()
    assert [param.tolist() for param in params] == before
    for name, value in optimizer.state_dict().items():
        np.testing.assert_array_equal(value, state[name])


DAMPED = {"momentum": 0.5, "dampening": 0.1, "nesterov": True}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda w: gt.optim.Adam([]), ArgumentError, "got no parameters, expected at least one"),
        (lambda w: gt.optim.Adam([{"params": []}]), ArgumentError, "got no parameters"),
        (lambda w: gt.optim.Adam([{"params": [w]}, {"params": [w]}]), ArgumentError, "two groups"),
        (lambda w: gt.optim.Adam([{"params": [w], "rho": 1}]), ArgumentError, "group with 'rho'"),
        (lambda w: gt.optim.Adam([{"params": [w], "lr": -1}]), ArgumentError, "lr=-1"),
        (lambda w: gt.optim.Adam([w]).add_param_group({"lr": 1}), ArgumentError, "'params'"),
        (lambda w: gt.optim.Adam([{"params": [np.ones(2)]}]), DTypeError, "type ndarray"),
        (lambda w: gt.optim.Adam([w]).step([np.ones(2)] * 2), ArgumentError, "2 gradients for 1"),
        (lambda w: gt.optim.Adam([w]).step([np.ones(3)]), ShapeError, r"shape \(3,\)"),
        (lambda w: gt.optim.Adam([w]).step([1j * np.ones(2)]), DTypeError, "complex128 gradient"),
        (lambda w: gt.optim.Adam(amsgrad=1), ArgumentError, "amsgrad=1, expected True or False"),
        (lambda w: gt.optim.SGD(lr=1, **DAMPED), ArgumentError, "nesterov=True with dampening"),
    ],
)  # fmt: skip
def test_what_an_optimizer_does_not_take(make, error, message):
    (w,) = with_grads(leaves(2))
    with pytest.raises(error, match=message):
        make(w)
    assert w.tolist() == [1.0, 2.0]
