"""Modules as arguments of transforms and compiled functions, and as what these use from outside."""

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.compiler.program import Program
from gradtape.errors import GrowingHistoryWarning, WriteError

X = np.random.default_rng(0).normal(size=(5, 2))


class Running(gt.nn.Module):
    """A linear layer that keeps the mean of what comes out, and drops the sign in training."""

    def __init__(self):
        self.layer = gt.nn.Linear(2, 3, dtype=gt.float64)
        self.register_buffer("mean", np.zeros(3))
        self.register_buffer("calls", np.array(0))

    def forward(self, x):
        y = self.layer(x)
        if not self.training:
            return y - self.mean
        self.mean = 0.5 * self.mean + 0.5 * gt.mean(y, axis=0)
        self.calls += 1
        return gt.abs(y)


def loss(net, x):
    return gt.sum(net(x) ** 2)


def numbers(net):
    return {name: value.detach().numpy().copy() for name, value in net.state_dict().items()}


def test_a_gradient_has_the_parameters_of_the_module():
    net = Running().eval()
    gradient = gt.grad(loss)(net, X)
    assert isinstance(gradient, Running)
    y = X @ net.layer.weight.detach().numpy().T + net.layer.bias.detach().numpy()
    np.testing.assert_allclose(gradient.layer.weight.detach(), 2 * y.T @ X, rtol=1e-12)
    np.testing.assert_allclose(gradient.layer.bias.detach(), 2 * y.sum(0), rtol=1e-12)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda net: gt.grad(loss)(net, X),
        lambda net: gt.value_and_grad(loss)(net, X),
        lambda net: gt.vjp(lambda net: loss(net, X), net),
        lambda net: gt.jvp(lambda net: loss(net, X), (net,), (net,)),
        lambda net: gt.hvp(lambda net: loss(net, X), (net,), (net,)),
        lambda net: gt.checkpoint(loss)(net, X),
    ],
    ids=["grad", "value_and_grad", "vjp", "jvp", "hvp", "checkpoint"],
)
def test_buffers_that_a_transform_writes_come_back(transformed):
    net, plain = Running(), Running()
    plain.load_state_dict(net.state_dict())
    with gt.no_grad():
        plain(X)
        transformed(net)
    assert net.calls.item() == 1
    for name, value in numbers(plain).items():
        np.testing.assert_array_equal(numbers(net)[name], value)


def test_second_derivatives():
    net = Running().eval()
    with gt.no_grad():
        product = gt.hvp(lambda net: loss(net, X), (net,), (net,))
    # The loss is quadratic in the parameters.
    gradient = gt.grad(loss)(net, X)
    np.testing.assert_allclose(
        product.layer.weight.detach(), gradient.layer.weight.detach(), rtol=1e-10
    )


def test_a_compiled_step_returns_the_module():
    rule, net = gt.optim.SGD(lr=0.01), Running()
    state = rule.init(net)

    @gt.jit
    def step(net, x):
        value, gradient = gt.value_and_grad(loss)(net, x)
        return value, rule.apply(net, gradient, state)[0]

    before = numbers(net)
    with gt.no_grad():
        expected, gradient = gt.value_and_grad(loss)(net, X)
        after = numbers(net)
        net.load_state_dict(before)
        value, moved = step(net, X)
    np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-12)
    assert not moved.layer.weight.requires_grad
    assert moved.calls.item() == 1
    np.testing.assert_allclose(moved.mean.detach().numpy(), after["mean"], rtol=1e-12)
    assert net.calls.item() == 0
    expected_weight = (
        net.layer.weight.detach().numpy() - 0.01 * gradient.layer.weight.detach().numpy()
    )
    np.testing.assert_allclose(moved.layer.weight.detach().numpy(), expected_weight, rtol=1e-12)
    moved.requires_grad_()
    gt.sum(moved(X)).backward()
    assert moved.layer.weight.grad.shape == (3, 2)


def test_a_compiled_step_is_compiled_once(monkeypatch):
    """The first call has leaves and a step of 0; the others what it returned."""
    made = []
    init = Program.__init__
    monkeypatch.setattr(Program, "__init__", lambda *args: made.append(args) or init(*args))
    net, rule = gt.nn.Linear(2, 3, dtype=gt.float64), gt.optim.Adam(lr=0.1)
    state = rule.init(net)

    @gt.jit
    def step(net, state):
        return rule.apply(net, gt.grad(loss)(net, X), state)

    with gt.no_grad():
        for count in (1, 2, 3):
            net, state = step(net, state)
            assert type(state["step"]) is int
            assert state["step"] == count
        net, state = step(net.requires_grad_(), state)
    assert repr(step) == "<compiled step, for 1 form(s) of arguments>"
    assert len(made) == 1
    assert not net.weight.requires_grad


@pytest.mark.parametrize("rule", [gt.optim.SGD(lr=0.1), gt.optim.Adam(lr=0.1)], ids=["SGD", "Adam"])
def test_a_history_that_grows_with_each_step_is_told(rule):
    @gt.jit
    def step(net, state):
        return rule.apply(net, gt.grad(loss)(net, X), state)

    first = gt.nn.Linear(2, 3, dtype=gt.float64)
    net, state = step(first, rule.init(first))
    with pytest.warns(GrowingHistoryWarning, match=r"no_grad\(\)") as caught:
        step(net, state)
    assert caught[0].filename == __file__
    # None of these has a history that grows; warnings are errors here.
    with gt.no_grad():
        net, state = step(*step(first, rule.init(first)))
    step(net.requires_grad_(), state)
    step(first, rule.init(first))
    gt.grad(lambda net: loss(step(*step(net, rule.init(net)))[0], X))(first)


def test_a_compiled_function_that_loses_a_buffer_raises():
    net = Running()
    with pytest.raises(WriteError, match=r"Running\.mean, Running\.calls.*Return the module"):
        gt.jit(loss)(net, X)
    with pytest.raises(WriteError, match=r"Running\.calls"):
        gt.jit(lambda net: (gt.sum(net(X)) * net.calls, net.mean))(net)
    # Gradients have the buffers as well; nobody looks for them there.
    for lost in (
        gt.grad(loss),
        gt.value_and_grad(loss),
        lambda net, x: gt.vjp(loss, net, x)[1](1.0),
    ):
        with pytest.raises(WriteError, match=r"Running\.mean, Running\.calls.*Return the module"):
            gt.jit(lost)(net, X)
    _, moved = gt.jit(lambda net: (gt.grad(loss)(net, X), net))(net)
    assert moved.calls.item() == 1
    assert net.calls.item() == 0
    assert gt.jit(loss)(net.eval(), X).item() == pytest.approx(loss(net, X).item())


def test_flags_and_settings_are_part_of_what_is_compiled_for():
    traced = []

    @gt.jit
    def compiled(net, x):
        traced.append(net.training)
        return net(x), net

    net = Running()
    with gt.no_grad():
        compiled(net, X)
        compiled(net.eval(), X)
        np.testing.assert_allclose(compiled(net, X)[0], net(X), rtol=1e-12)
        compiled(net.train(), X)
    assert traced == [True, False]


def test_a_compiled_function_notices_the_flag_of_a_module_from_outside():
    class Doubles(gt.nn.Module):
        def forward(self, x):
            return x * 2 if self.training else x

    net = gt.nn.Sequential(Doubles(), gt.nn.Linear(2, 2, dtype=gt.float64))
    inner = gt.jit(net)
    outer = gt.jit(lambda x: inner(x) + 1.0)
    with gt.no_grad():
        for mode in (True, False, True):
            net.train(mode)
            np.testing.assert_allclose(inner(X), net(X), rtol=1e-12)
            np.testing.assert_allclose(outer(X), net(X) + 1.0, rtol=1e-12)


REPLACEMENTS = {
    "a setting": lambda net: setattr(net[1], "negative_slope", 0.5),
    "a parameter": lambda net: setattr(net[0], "weight", gt.nn.Parameter(np.ones((2, 2)))),
    "no parameter": lambda net: setattr(net[0], "bias", None),
    "a module": lambda net: net.__setitem__(0, gt.nn.Linear(2, 2, dtype=gt.float64)),
    "another module": lambda net: net.append(gt.nn.Tanh()),
    "one module less": lambda net: net.__delitem__(1),
    "a hook": lambda net: net[0].register_forward_hook(lambda net, args, out: out * 2.0),
}


@pytest.mark.parametrize("change", REPLACEMENTS.values(), ids=REPLACEMENTS.keys())
def test_a_compiled_function_notices_what_was_replaced_in_a_module_from_outside(change):
    net = gt.nn.Sequential(gt.nn.Linear(2, 2, dtype=gt.float64), gt.nn.LeakyReLU(0.1))
    functions = [gt.jit(net), gt.jit(lambda x: net(x) + 0.0)]
    with gt.no_grad():
        before = [f(X) for f in functions]
        change(net)
        assert not np.array_equal(net(X), before[0])
        for f in functions:
            np.testing.assert_allclose(f(X), net(X), rtol=1e-12)


def test_a_module_that_counts_its_calls_is_not_compiled_again_for_that():
    class Counts(gt.nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2.0

    net = Counts()
    f = gt.jit(lambda x: net(x))
    for _ in range(3):
        f(X)
    assert net.calls == 1


def test_a_module_that_was_returned_can_be_used_from_outside():
    net = Running()
    with gt.no_grad():
        moved = gt.jit(lambda net: (net(X), net))(net)[1]
        f = gt.jit(lambda x: moved(x))
        moved.eval()
        np.testing.assert_allclose(f(X), moved(X), rtol=1e-12)
        assert net.training
        moved.mean = np.ones(3)
        np.testing.assert_allclose(f(X), moved(X), rtol=1e-12)


def stacked(net, count):
    leaves, structure = containers.flatten(net, view=containers.ALL_ARRAYS)
    return containers.unflatten(structure, [gt.stack([leaf.detach()] * count) for leaf in leaves])


def test_stacked_modules_get_their_buffers_back():
    net, xs = Running(), np.random.default_rng(1).normal(size=(4, 5, 2))
    many = stacked(net, 4)
    with gt.no_grad():
        out = gt.vmap(lambda net, x: net(x))(many, xs)
        for n, x in enumerate(xs):
            one = Running()
            one.load_state_dict(net.state_dict())
            np.testing.assert_allclose(out[n], one(x), rtol=1e-12)
            np.testing.assert_allclose(many.mean[n], one.mean, rtol=1e-12)
    np.testing.assert_array_equal(many.calls, [1, 1, 1, 1])


def test_a_batch_does_not_fit_a_buffer_that_is_one_for_all():
    net = Running()
    with pytest.raises(WriteError, match=r"Running\.mean.*in_axes=0"):
        gt.vmap(net)(X[:, None])
    with pytest.raises(WriteError, match=r"Running\.mean"):
        gt.vmap(lambda net, x: net(x), in_axes=(None, 0))(net, X[:, None])
    assert net.calls.item() == 0
    assert gt.vmap(net.eval())(X[:, None]).shape == (5, 1, 3)


def test_gradients_of_samples():
    net = Running().eval()
    with gt.no_grad():
        gradients = gt.per_sample_gradients(loss)(net, X)
        first = gt.grad(loss)(net, X[0])
    assert gradients.layer.weight.shape == (5, 3, 2)
    np.testing.assert_allclose(gradients.layer.weight[0], first.layer.weight, rtol=1e-12)


def test_modules_in_loops():
    net = gt.nn.Linear(2, 2, dtype=gt.float64)

    @gt.jit
    def iterate(net, x):
        return gt.scan(lambda x, _: (gt.tanh(net(x)), None), x, length=3)[0]

    with gt.no_grad():
        expected = X
        for _ in range(3):
            expected = gt.tanh(net(expected))
        np.testing.assert_allclose(iterate(net, X), expected, rtol=1e-12)
        carried = gt.jit(lambda net: gt.fori_loop(0, 3, lambda i, net: net, net))(net)
    np.testing.assert_array_equal(carried.weight, net.weight.detach())


def test_modules_in_other_containers():
    net, scale = gt.nn.Linear(2, 1, dtype=gt.float64), np.array(2.0)
    gradients = gt.grad(lambda p: gt.sum(p["net"](X)) * p["scale"])({"net": net, "scale": scale})
    assert gradients["net"].weight.shape == (1, 2)
    np.testing.assert_allclose(gradients["scale"].item(), gt.sum(net(X)).item(), rtol=1e-12)


def test_frozen_parameters_stay_frozen_in_every_transform():
    net = gt.nn.Sequential(
        gt.nn.Linear(2, 3, dtype=gt.float64), gt.nn.Linear(3, 1, dtype=gt.float64)
    )
    net[0].requires_grad_(False)
    eager = gt.grad(loss)(net, X)
    compiled = gt.jit(gt.grad(loss))(net, X)
    returned = gt.jit(lambda net: net)(net)
    stacked = gt.vmap(gt.grad(loss), in_axes=(None, 0))(net, X)
    for module in (eager, compiled, returned, stacked):
        assert len(containers.flatten(module)[0]) == 2
    np.testing.assert_allclose(compiled[1].weight.detach(), eager[1].weight.detach(), rtol=1e-12)
    # What a tensor is switched to by itself counts.
    net[0].weight.set_requires_grad()
    assert len(containers.flatten(gt.jit(gt.grad(loss))(net, X))[0]) == 3


def test_arrays_may_be_in_the_places_of_parameters_in_lists():
    class Net(gt.nn.Module):
        def __init__(self):
            self.parts = [gt.nn.Parameter(np.ones(3)), {"a": gt.nn.Parameter(np.ones(2))}, 7]
            self.weight = gt.nn.Parameter(np.ones(2))

        def forward(self, x):
            first, second, number = self.parts
            return gt.sum(first) * x + gt.sum(second["a"] * self.weight) * number

    net = Net()
    names = ["parts.0", "parts.1.a", "weight"]
    leaves, structure = containers.flatten(net)
    arrays = containers.map_leaves(lambda leaf: leaf.detach().numpy(), net)
    assert [name for name, _ in arrays.named_parameters()] == names
    assert containers.flatten(arrays)[1] == structure
    stacked = containers.unflatten(structure, [np.stack([np.ones(x.shape)] * 2) for x in leaves])
    np.testing.assert_array_equal(gt.vmap(lambda net: net(2.0))(stacked), [20.0, 20.0])
    product = gt.hvp(lambda net: net(2.0), (net,), (arrays,))
    np.testing.assert_array_equal(product.parts[1]["a"].detach(), [7.0, 7.0])
    # In a list that is new, a number is a number.
    arrays.parts = [3, gt.nn.Parameter(np.ones(1))]
    assert [name for name, _ in arrays.named_parameters()] == ["parts.1", "weight"]
    sam = gt.optim.SAM(gt.optim.SGD(lr=0.1))
    run = gt.fit(net, lambda net, x: net(x) ** 2, sam, [0.5], epochs=1, progress=False)
    assert run.losses == [15.5**2]


class Late(gt.nn.Module):
    """A buffer that has no value before the first call."""

    def __init__(self):
        self.register_buffer("seen", None)
        self.scale = gt.nn.Parameter(np.ones(3))

    def forward(self, x):
        self.seen = gt.mean(x, axis=0) if self.seen is None else self.seen + 1
        return x * self.scale


def test_the_first_value_of_a_buffer_is_not_left_outside_of_a_transform():
    x = np.ones((4, 1, 3))
    for transform in (gt.jit, gt.vmap):
        net = Late()
        with pytest.raises(WriteError, match=r"Late\.seen: this buffer has no value yet"):
            transform(net)(x)
        assert net.seen is None
    net = Late()
    with gt.no_grad():
        _, net = gt.jit(lambda net, x: (net(x), net))(net, x[:, 0])
        np.testing.assert_array_equal(net.seen, [1, 1, 1])
        made_inside = gt.jit(lambda x: Late()(x))
        np.testing.assert_array_equal(made_inside(x[:, 0]), x[:, 0])
