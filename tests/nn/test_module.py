"""Modules: what counts as what, names, states, text, and bad input."""

import copy

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, MissingNameError, ShapeError


class Scale(gt.nn.Module):
    """A parameter, a buffer and a number."""

    def __init__(self, size=3, power=2):
        self.factor = gt.nn.Parameter(np.arange(1.0, size + 1))
        self.register_buffer("seen", np.zeros(size))
        self.power = power

    def forward(self, x):
        self.seen = self.seen + x
        return (x * self.factor) ** self.power


class Nested(gt.nn.Module):
    """Modules and parameters in containers."""

    def __init__(self):
        self.layers = [gt.nn.Linear(2, 3), gt.nn.Linear(3, 1)]
        self.by_name = {"first": (Scale(), "a text"), "biases": [gt.nn.Parameter(np.ones(2))]}
        self.sizes = (1, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def names(module):
    return [name for name, _ in module.named_parameters()]


# ---- what counts as what ------------------------------------------------------------------------


def test_parameters_and_modules_in_containers_have_dotted_names():
    assert names(Nested()) == [
        *("by_name.biases.0", "layers.0.weight", "layers.0.bias"),
        *("layers.1.weight", "layers.1.bias", "by_name.first.0.factor"),
    ]


def test_init_of_the_base_class_may_be_called_or_not():
    class Called(Scale):
        def __init__(self):
            super().__init__()
            gt.nn.Module.__init__(self)

    assert names(Called()) == ["factor"]


@pytest.mark.parametrize("value", [np.ones(2), gt.asarray(np.ones(2)), [np.ones(2)]])
def test_an_array_that_is_neither_parameter_nor_buffer_raises(value):
    module = gt.nn.Module()
    with pytest.raises(ArgumentError, match=r"gt\.nn\.Parameter.*register_buffer\('mean'"):
        module.mean = value
    assert "mean" not in vars(module)


def test_a_result_is_no_parameter():
    with pytest.raises(ArgumentError, match="expected a leaf"):
        gt.nn.Module().twice = gt.nn.Parameter(np.ones(2)) * 2


def test_a_parameter_can_be_replaced_by_a_leaf_and_nothing_else():
    module = Scale()
    module.factor = gt.nn.Parameter(np.ones(3))
    np.testing.assert_array_equal(module.factor.detach().numpy(), np.ones(3))
    with pytest.raises(ArgumentError, match=r"gt\.nn\.Parameter\(array\)"):
        module.factor = np.ones(3)


def test_names_of_the_class_are_not_taken():
    with pytest.raises(ArgumentError, match="use another name"):
        gt.nn.Module().forward = gt.nn.Linear(1, 1)
    with pytest.raises(ArgumentError, match="taken already"):
        gt.nn.Module().register_buffer("apply", np.ones(1))
    with pytest.raises(ArgumentError, match="without dots"):
        gt.nn.Module().add_module("a.b", gt.nn.Linear(1, 1))


def test_a_buffer_is_written_without_history():
    module = Scale()
    handle = module.seen
    y = gt.nn.Parameter(np.ones(3)) * 2.0
    module.seen = y
    assert module.seen is handle
    assert not handle.requires_grad
    np.testing.assert_array_equal(handle.detach().numpy(), [2.0, 2.0, 2.0])
    with pytest.raises(ShapeError, match="register a new buffer"):
        module.seen = np.ones(4)


def test_a_missing_attribute_raises_with_the_class():
    with pytest.raises(MissingNameError, match="class 'Scale' has no attribute 'factr'"):
        _ = Scale().factr
    with pytest.raises(MissingNameError, match=r"use gt\.fit"):
        Scale().fit()
    with pytest.raises(ArgumentError, match="main memory"):
        Scale().to("cuda:0")


def test_sizes_of_layers_are_numbers():
    with pytest.raises(DTypeError, match="Linear: got out_features='relu', expected"):
        gt.nn.Linear(3, "relu")


def test_tied_parameters_are_one():
    class Tied(gt.nn.Module):
        def __init__(self):
            self.one = gt.nn.Linear(3, 3, dtype=gt.float64)
            self.two = gt.nn.Linear(3, 3, dtype=gt.float64)
            self.two.weight = self.one.weight

        def forward(self, x):
            return self.two(gt.tanh(self.one(x)))

    net, x = Tied(), np.random.default_rng(0).normal(size=(4, 3))
    assert names(net) == ["one.weight", "one.bias", "two.bias"]
    gradient = gt.grad(lambda net: gt.sum(net(x)))(net)
    assert gradient.one.weight is gradient.two.weight

    def loss(w):
        hidden = gt.tanh(x @ w.T + net.one.bias.detach())
        return gt.sum(hidden @ w.T + net.two.bias.detach())

    expected = gt.grad(loss)(net.one.weight.detach())
    np.testing.assert_allclose(gradient.one.weight.detach(), expected, rtol=1e-12)
    assert sorted(net.state_dict()) == ["one.bias", "one.weight", "two.bias", "two.weight"]


# ---- training, freezing, conversion -------------------------------------------------------------


def test_train_and_eval_reach_all_modules():
    net = Nested().eval()
    assert [module.training for module in net.modules()] == [False] * 4
    assert all(module.training for module in net.train().modules())
    with pytest.raises(ArgumentError, match="expected True or False"):
        net.train(1)


def test_frozen_parameters_get_no_gradient():
    net = gt.nn.Sequential(gt.nn.Linear(2, 3), gt.nn.Linear(3, 1))
    net[0].requires_grad_(False)
    gradient = gt.grad(lambda net: gt.sum(net(np.ones((1, 2), np.float32))))(net)
    assert not gradient[0].weight.requires_grad
    np.testing.assert_array_equal(gradient[0].weight, net[0].weight)
    np.testing.assert_array_equal(gradient[1].bias.detach(), [1.0])
    assert "9 of them frozen" in repr(net)
    net.requires_grad_()
    assert all(w.requires_grad for w in net.parameters())


def test_conversion_keeps_tensors_and_drops_gradients():
    net = gt.nn.Linear(2, 1)
    weight = net.weight
    gt.sum(net(np.ones((1, 2), np.float32))).backward()
    assert net.double().weight is weight
    assert (weight.dtype, weight.requires_grad, weight.grad) == (np.float64, True, None)
    assert net.bfloat16().bias.dtype == gt.bfloat16
    with pytest.raises(DTypeError, match="floating"):
        net.to(np.int32)


def test_a_copy_has_parameters_of_its_own():
    net = Nested().eval()
    other = copy.deepcopy(net)
    assert names(other) == names(net)
    assert other.layers[0].weight is not net.layers[0].weight
    assert all(w.requires_grad for w in other.parameters())
    assert other.train().layers[0] is not net.layers[0]
    assert not net.training
    gt.nn.Module.load_state_dict(other, {name: v * 0 for name, v in net.state_dict().items()})
    assert np.any(net.layers[0].weight.detach().numpy() != 0)


# ---- states -------------------------------------------------------------------------------------


def test_a_state_is_not_changed_by_training():
    net = Scale()
    state = net.state_dict()
    before = {name: value.detach().numpy().copy() for name, value in state.items()}
    net(np.ones(3))
    optimizer = gt.optim.SGD(net.parameters(), lr=1.0)
    gt.sum(net(np.ones(3))).backward()
    optimizer.step()
    assert np.any(net.factor.detach().numpy() != before["factor"])
    for name, value in state.items():
        np.testing.assert_array_equal(value.detach().numpy(), before[name])


def test_a_state_that_does_not_fit_changes_nothing():
    net = Nested()
    state = {name: value.detach().numpy() + 1 for name, value in net.state_dict().items()}
    state["layers.0.weight"] = np.ones((2, 2), np.float32)
    del state["layers.1.bias"]
    state["more"] = np.ones(1)
    before = net.layers[1].weight.detach().numpy().copy()
    with pytest.raises(ArgumentError) as caught:
        net.load_state_dict(state)
    text = str(caught.value)
    for problem in (
        "'layers.0.weight' is [2, 2], expected [3, 2]",
        *("missing 'layers.1.bias'", "unexpected 'more'"),
    ):
        assert problem in text
    np.testing.assert_array_equal(net.layers[1].weight.detach(), before)


def test_two_tensors_of_one_name_are_not_saved_as_one():
    class Net(gt.nn.Module):
        def __init__(self, layers):
            self.layers = layers

    def layer():
        return gt.nn.Linear(2, 1)

    for layers in ({1: layer(), "1": layer()}, {"a": {"b": layer()}, "a.b": layer()}):
        net = Net(layers)
        with pytest.raises(ArgumentError, match=r"two tensors of the name 'layers\..*weight'"):
            net.state_dict()
        with pytest.raises(ArgumentError, match="two tensors of the name"):
            net.load_state_dict({})


def test_a_state_may_be_loaded_in_part():
    net = Nested()
    net.load_state_dict({"layers.1.bias": np.array([5.0]), "more": np.ones(1)}, strict=False)
    np.testing.assert_array_equal(net.layers[1].bias.detach().numpy(), [5.0])


def test_a_state_of_another_kind_of_numbers_raises():
    with pytest.raises(DTypeError, match="complex128 for 'factor', expected float64"):
        Scale().load_state_dict({"factor": np.ones(3) * 1j, "seen": np.ones(3)})


def test_a_state_that_numpy_cannot_read_is_refused():
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("Got unsupported ScalarType BFloat16")

    layer = gt.nn.Linear(2, 1)
    before = {name: array.copy() for name, array in layer.state_dict().items()}
    with pytest.raises(DTypeError, match=r"'weight' that NumPy cannot read.*\.float\(\)"):
        layer.load_state_dict({"weight": Foreign(), "bias": np.zeros(1)})
    for name, array in layer.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_tied_parameters_take_one_value():
    net = gt.nn.Sequential(gt.nn.Linear(2, 2), gt.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    state = net.state_dict()
    with pytest.raises(ArgumentError, match="one parameter"):
        net.load_state_dict({**state, "1.weight": np.zeros((2, 2), np.float32)})
    net.load_state_dict(state)


def test_saving_and_loading(tmp_path):
    net, other = Nested(), Nested()
    gt.save(tmp_path / "net.safetensors", net.state_dict())
    other.load_state_dict(gt.load(tmp_path / "net.safetensors"))
    for ours, theirs in zip(net.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(ours.detach(), theirs.detach())


# ---- hooks, containers, text --------------------------------------------------------------------


def test_hooks_are_called_until_they_are_removed():
    layer, calls = Scale(), []
    before = layer.register_forward_pre_hook(lambda module, args: calls.append("before"))
    after = layer.register_forward_hook(lambda module, args, out: out + 1)
    np.testing.assert_array_equal(layer(np.zeros(3)).detach(), np.ones(3))
    before.remove()
    after.remove()
    np.testing.assert_array_equal(layer(np.zeros(3)).detach(), np.zeros(3))
    assert calls == ["before"]


def test_chains_and_lists_behave_like_lists():
    layers = [gt.nn.Linear(2, 2) for _ in range(3)]
    chain = gt.nn.Sequential(*layers)
    assert (len(chain), chain[-1], list(chain[:2])) == (3, layers[2], layers[:2])
    listed = gt.nn.ModuleList(layers)
    listed.insert(0, gt.nn.Linear(1, 1))
    del listed[1]
    assert [layer.in_features for layer in listed] == [1, 2, 2]
    with pytest.raises(IndexError):
        listed[3]
    with pytest.raises(ArgumentError, match=r"make one by Linear\(\.\.\.\)"):
        gt.nn.Sequential(gt.nn.Linear)
    with pytest.raises(ArgumentError, match="class with forward"):
        gt.nn.Sequential(np.tanh)
    with pytest.raises(ArgumentError, match=r"use Sequential\(\*modules\)"):
        gt.nn.Sequential(layers)


def test_text_has_names_shapes_and_counts():
    assert repr(Nested()).splitlines() == [
        "Nested(",
        "  (layers.0): Linear(2, 3): weight[3, 2], bias[3]",
        "  (layers.1): Linear(3, 1): weight[1, 3], bias[1]",
        "  (by_name.first.0): Scale(): factor[3]",
        "): by_name.biases.0[2]: 18 parameters",
    ]


def test_modules_are_taken_out_of_a_chain():
    net = gt.nn.Sequential(gt.nn.Tanh(), gt.nn.ReLU(), gt.nn.Sigmoid(), gt.nn.GELU())
    del net[1]
    assert [(name, type(m).__name__) for name, m in net.named_children()] == [
        ("0", "Tanh"), ("1", "Sigmoid"), ("2", "GELU"),
    ]  # fmt: skip
    del net[-2:]
    assert len(net) == 1
    with pytest.raises(IndexError):
        del net[1]
    net.insert(0, gt.nn.ReLU())
    assert list(map(type, net)) == [gt.nn.ReLU, gt.nn.Tanh]
    assert type(net[:1]) is gt.nn.Sequential
    named = gt.nn.Sequential({"first": gt.nn.Tanh(), "second": gt.nn.ReLU()})
    del named[0]
    assert [name for name, _ in named.named_children()] == ["second"]


def test_arrays_in_tuples_are_refused_too():
    net = gt.nn.Module()
    with pytest.raises(ArgumentError, match=r"pair\[1\]: got .*register_buffer"):
        net.pair = (1, np.ones(2))
