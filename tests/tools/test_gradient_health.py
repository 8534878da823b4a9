"""Gradient health: verdicts on nets that are made to be ill, and what watching leaves alone."""

import io

import numpy as np
import pytest
from rich.console import Console

import gradtape as gt
from gradtape.errors import ArgumentError
from gradtape.tools import gradient_health as module
from gradtape.tools.layer_health import packed, unpacked

nn = gt.nn


def batch(n=16, width=8):
    return np.random.default_rng(0).normal(size=(n, width)).astype(np.float32)


def loss(net, x):
    return gt.mean((net(x) - 1.0) ** 2)


def deep(activation, depth=8, width=8, gain=1.0):
    gt.manual_seed(0)
    layers = [one for _ in range(depth) for one in (nn.Linear(width, width), activation())]
    net = nn.Sequential(*layers, nn.Linear(width, 1))
    for name, weight in net.named_parameters():
        if name.endswith("weight"):
            weight.value = weight.value * np.float32(gain)
    return net


def health(net, x=None, **limits):
    return gt.gradient_health(
        net, loss, batch() if x is None else x, limits=gt.HealthLimits(**limits)
    )


# ---- verdicts -----------------------------------------------------------------------------------


def test_healthy_net_has_no_verdicts():
    report = health(deep(nn.Tanh, depth=3))
    assert report.is_healthy
    assert report.problems == []
    assert [layer.kind for layer in report.layers] == [*["Linear", "Tanh"] * 3, "Linear"]
    assert all(layer.update is None for layer in report.layers)


def test_figures_are_those_of_numpy():
    net = deep(nn.Tanh, depth=1)
    grads = gt.grad(loss)(net, batch())
    first = health(net)["0"]
    parts = [grads[0].weight.detach().numpy(), grads[0].bias.detach().numpy()]
    expected = np.sqrt(sum(np.sum(part.astype(float) ** 2) for part in parts))
    assert first.gradient_norm == pytest.approx(expected)
    weights = [p.detach().numpy().astype(float) for p in net[0].parameters()]
    norm = np.sqrt(sum(np.sum(w**2) for w in weights))
    assert first.weight_norm == pytest.approx(norm)
    assert first.ratio == pytest.approx(expected / norm)
    assert (first.parameters, first.trained, first.zeros, first.dead) == (72, 72, 0.0, 0.0)


def test_deep_sigmoids_vanish_towards_the_input():
    report = health(deep(nn.Sigmoid))
    norms = [layer.gradient_norm for layer in report.layers if layer.kind == "Linear"]
    assert norms == sorted(norms)
    assert report["0"].verdicts == ("vanishing",)
    assert report["16"].verdicts == ()
    assert report.problems[0].startswith("0: vanishing")
    assert health(deep(nn.Sigmoid), vanishing=0.0).is_healthy


def test_large_weights_explode():
    report = health(deep(nn.Identity, gain=8.0))
    linear = [layer for layer in report.layers if layer.kind == "Linear"]
    assert all("exploding" in layer.verdicts for layer in linear)
    assert all(layer.ratio > 1e3 for layer in linear)
    assert not any(
        "exploding" in layer.verdicts
        for layer in health(deep(nn.Identity, gain=8.0), exploding=1e30).layers
    )


def killed(net, place, units):
    bias = net[place].bias.detach().numpy().copy()
    bias[units] = -1e3
    net[place].bias.value = bias
    return net


def test_relus_that_are_never_on_are_dead():
    report = health(killed(deep(nn.ReLU, depth=2), 2, [1, 4, 5, 6]))
    assert report["3"].dead == report["2"].dead == 0.5
    assert report["2"].verdicts == report["3"].verdicts == ("dead",)
    assert "dead: 50%" in report.problems[0]
    assert "dead" not in report["0"].verdicts
    again = health(killed(deep(nn.ReLU, depth=2), 2, [1, 4, 5, 6]), dead=0.6)
    assert "dead" not in again["2"].verdicts


def test_channels_are_the_units_of_convolutions():
    gt.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 1)
    )
    killed(net, 1, [2])
    x = np.random.default_rng(0).normal(size=(8, 1, 6, 6)).astype(np.float32)
    report = health(net, x)
    assert [layer.dead for layer in report.layers] == [0.25, 0.25, 0.25, 0.0]


@pytest.mark.parametrize("activation", [nn.Tanh, nn.Sigmoid, nn.Hardtanh, nn.Softsign])
def test_large_inputs_saturate(activation):
    report = health(deep(activation, depth=1), 1e4 * batch())
    assert report["1"].verdicts == ("saturated",)
    assert report["1"].saturated > 0.9
    assert health(deep(activation, depth=1), batch())["1"].saturated < 0.5


def test_what_is_saturated_is_counted():
    net = nn.Sequential(nn.Linear(1, 1), nn.Hardtanh(-2.0, 2.0))
    net[0].weight.value, net[0].bias.value = np.ones((1, 1), "f4"), np.zeros(1, "f4")
    x = np.array([[-3.0], [-1.0], [0.5], [1.0], [1.99]], np.float32)
    assert health(net, x)["1"].saturated == pytest.approx(2 / 5)
    assert health(net, x, end=0.25)["1"].saturated == pytest.approx(4 / 5)


def test_activations_called_as_functions_are_seen():
    class Net(nn.Module):
        def __init__(self):
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x):
            return gt.tanh(self.second(gt.tanh(1e4 * gt.relu(self.first(x)))))

    gt.manual_seed(0)
    net = Net()
    report = health(net)
    assert [layer.name for layer in report.layers] == ["first", "relu", "tanh", "second", "tanh 2"]
    on = net.first(batch()).detach().numpy() > 3e-4
    assert report["tanh"].saturated == np.mean(on)
    assert report["relu"].dead == np.mean(~on.any(axis=0))
    assert report["relu"].saturated is report["tanh"].dead is None


def test_nonfinite_layers_are_named():
    net = deep(nn.Tanh, depth=2)
    bad = net[2].weight.detach().numpy().copy()
    bad[0, 0] = np.nan
    net[2].weight.value = bad
    report = health(net)
    assert "non-finite" in report["2"].verdicts
    assert report["0"].nonfinite > 0  # its gradients
    assert np.isnan(report["2"].weight_norm)
    assert any(text.startswith("2: ") and "NaN" in text for text in report.problems)


def test_unused_layers_have_no_gradient_and_frozen_ones_are_left_alone():
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    net.spare = nn.Linear(3, 3)
    net[0].requires_grad_(False)
    report = gt.gradient_health(net, lambda net, x: gt.mean(net[2](net[1](net[0](x)))), batch())
    assert report["spare"].verdicts == ("no gradient",)
    assert report["0"].verdicts == ()
    assert (report["0"].gradient_norm, report["0"].trained, report["0"].parameters) == (None, 0, 72)


def test_containers_of_arrays_are_judged_array_by_array():
    params = {"w": np.ones((8, 4)), "b": np.full(4, -100.0)}
    report = gt.gradient_health(
        params, lambda p, x: gt.sum(gt.relu(x @ p["w"] + p["b"])), batch().astype(float)
    )
    assert {layer.name: layer.verdicts for layer in report.layers} == {
        "relu": ("dead",),
        "b": ("no gradient",),
        "w": ("no gradient",),
    }


def test_tables():
    report = health(deep(nn.Sigmoid))
    lines = str(report).splitlines()
    assert lines[0].split()[:3] == ["layer", "kind", "weights"]
    assert lines[1].split()[-1] == "vanishing"
    assert len(lines) == 1 + len(report.layers)
    console = Console(file=io.StringIO(), width=200)
    console.print(report.table())
    assert "vanishing" in console.file.getvalue()
    assert report.to_dict()["layers"][0]["verdicts"] == ("vanishing",)
    with pytest.raises(ArgumentError, match="expected one of '0', '1'"):
        report["nothing"]


@pytest.mark.parametrize("limits", [{"dead": 1.5}, {"vanishing": -1.0}, {"exploding": np.nan}])
def test_limits_are_checked(limits):
    with pytest.raises(ArgumentError, match=f"got {next(iter(limits))}="):
        gt.HealthLimits(**limits)


# ---- what it leaves alone -----------------------------------------------------------------------


def test_a_look_changes_nothing():
    gt.manual_seed(0)
    generator = gt.random.Generator(3)

    class Noise(nn.Module):
        def forward(self, x):
            return x + gt.randn(8, dtype=gt.float32, generator=generator)

    net = nn.Sequential(
        nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), Noise(), nn.Linear(8, 1)
    )
    before = {name: value.numpy().copy() for name, value in net.state_dict().items()}
    states = repr(gt.get_rng_state()), generator.state
    reports = [health(net), health(net)]
    assert (repr(gt.get_rng_state()), generator.state) == states
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert reports[0] == reports[1]
    assert not any(one._forward_hooks for one in net.modules())
    assert all(p.grad is None for p in net.parameters())


def trained(steps=6, watch=None, **options):
    net = deep(nn.Tanh, depth=2)
    made = None if watch is None else watch(net, **options)
    optimizer = gt.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        if made is None:
            _step(net, optimizer)
        else:
            with made:
                _step(net, optimizer)
    return net, made


def _step(net, optimizer):
    optimizer.zero_grad()
    loss(net, batch()).backward()
    optimizer.step()


def test_watching_keeps_the_bits_of_a_training():
    plain, _ = trained()
    net, watch = trained(watch=gt.GradientHealth, every=2)
    for one, other in zip(plain.parameters(), net.parameters(), strict=True):
        np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())
    assert [report.step for report in watch.reports] == [1, 3, 5]
    assert watch.step == 6
    assert not any(one._forward_hooks for one in net.modules())


def test_updates_are_how_far_a_step_moved():
    net = deep(nn.Tanh, depth=1)
    watch = gt.GradientHealth(net)
    before = net[2].weight.detach().numpy().copy()
    bias = net[2].bias.detach().numpy().copy()
    with watch:
        _step(net, gt.optim.SGD(net.parameters(), lr=0.1))
    way = np.hypot(
        np.linalg.norm(net[2].weight.detach().numpy() - before),
        np.linalg.norm(net[2].bias.detach().numpy() - bias),
    )
    start = np.hypot(np.linalg.norm(before), np.linalg.norm(bias))
    assert watch.report["2"].update == pytest.approx(way / start)
    with gt.GradientHealth(net) as other:  # no step
        loss(net, batch()).backward()
    assert other.report["2"].update is None


def test_gradients_may_be_given():
    net = deep(nn.Tanh, depth=1)
    watch = gt.GradientHealth(net)
    with watch:
        watch.gradients(gt.grad(loss)(net, batch()))
    assert watch.report["0"].gradient_norm == pytest.approx(health(net)["0"].gradient_norm)


def test_an_error_in_the_block_leaves_no_hooks():
    net = deep(nn.Tanh, depth=1)
    watch = gt.GradientHealth(net)
    with pytest.raises(gt.GradtapeError), watch:
        net(batch()[:, :3])
    assert (watch.reports, watch.step) == ([], 0)
    assert not any(one._forward_hooks for one in net.modules())
    with pytest.raises(ArgumentError, match="no report yet"):
        watch.report  # noqa: B018


def test_a_compiled_step_says_where_to_look():
    net = deep(nn.Tanh, depth=1)
    step = gt.jit(lambda net, x: gt.grad(loss)(net, x))
    with pytest.raises(ArgumentError, match=r"gt\.gradient_health"), gt.GradientHealth(net):
        step(net, batch())


def test_a_compiled_loss_is_traced_once_for_all_looks():
    calls = []

    @gt.jit
    def compiled(net, x):
        calls.append(1)
        return loss(net, x)

    net = deep(nn.Tanh, depth=1)
    reports = [gt.gradient_health(net, compiled, batch()) for _ in range(3)]
    assert len(calls) == 1
    assert reports[0]["0"].gradient_norm == pytest.approx(health(net)["0"].gradient_norm)
    assert reports[0]["0"].dead is None


@pytest.mark.parametrize("options", [{"every": 0}, {"window": 0}])
def test_counts_are_checked(options):
    with pytest.raises(ArgumentError, match="expected 1 or more"):
        gt.GradientHealth(deep(nn.Tanh, depth=1), **options)


# ---- over time ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "dead"), [(1, 0.5), (2, 0.0)])
def test_units_are_dead_if_they_never_react(window, dead):
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[0].weight.value, net[0].bias.value = np.eye(2, dtype="f4"), np.zeros(2, "f4")
    watch = gt.GradientHealth(net, every=1, window=window)
    for x in ([[1.0, -1.0]], [[-1.0, 1.0]]):
        with watch:
            net.zero_grad()
            gt.sum(net(np.array(x, np.float32))).backward()
    assert [report["1"].dead for report in watch.reports] == [0.5, dead]


def test_reports_are_thinned_out(monkeypatch):
    monkeypatch.setattr(module, "MOST_REPORTS", 4)
    _, watch = trained(steps=20, watch=gt.GradientHealth, every=1)
    assert [report.step for report in watch.reports] == [1, 9, 17]


def test_reports_survive_as_arrays():
    net = deep(nn.Sigmoid)
    ill = deep(nn.ReLU, depth=1)
    ill[0].weight.value = np.full((8, 8), np.inf, np.float32)
    reports = [health(net), health(deep(nn.Tanh, depth=2)), health(ill)]
    again = unpacked(packed(reports), gt.HealthLimits())
    assert [len(report.layers) for report in again] == [17, 5, 3]
    assert repr(again[0]) == repr(reports[0])
    assert repr([one.verdicts for one in again[2].layers]) == repr(
        [one.verdicts for one in reports[2].layers]
    )
    assert unpacked(packed([]), gt.HealthLimits()) == []
