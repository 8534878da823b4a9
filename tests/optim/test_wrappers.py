"""SAM and Lookahead around other optimizers."""

import copy

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, GradtapeError, NonFiniteError, UnsupportedError
from gradtape.optim import LBFGS, SAM, SGD, Adam, Lookahead

A = np.array([[3.0, 1.0], [1.0, 2.0]])
START = {"w": np.array([2.0, -1.0]), "b": np.array(0.5)}


def loss(p):
    return 0.5 * p["w"] @ A @ p["w"] + (p["b"] - p["w"].sum()) ** 4


def slopes(w, b):
    """The gradient of `loss`, by hand."""
    inner = 4 * (b - w.sum()) ** 3
    return A @ w - inner, inner


def adam(x, g, state, lr=0.02):
    """One step of Adam, by hand."""
    m, v, t = state
    m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g, t + 1
    return x - lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8), (m, v, t)


def reference_sam(steps, adaptive):
    w, b = START["w"], START["b"]
    states = [(0.0, 0.0, 0)] * 2
    for _ in range(steps):
        gw, gb = slopes(w, b)
        sw, sb = (np.abs(w), np.abs(b)) if adaptive else (1.0, 1.0)
        norm = np.sqrt(((sw * gw) ** 2).sum() + (sb * gb) ** 2)
        gw, gb = slopes(w + 0.1 * sw**2 * gw / norm, b + 0.1 * sb**2 * gb / norm)
        w, states[0] = adam(w, gw, states[0])
        b, states[1] = adam(b, gb, states[1])
    return w, b


def reference_lookahead(steps):
    w, b = START["w"], START["b"]
    slow, states = [w, b], [(0.0, 0.0, 0)] * 2
    for step in range(1, steps + 1):
        gw, gb = slopes(w, b)
        w, states[0] = adam(w, gw, states[0])
        b, states[1] = adam(b, gb, states[1])
        if step % 4 == 0:
            w, b = slow = [s + 0.3 * (x - s) for s, x in zip(slow, (w, b), strict=True)]
    return w, b


def tensors():
    return {name: gt.tensor(x, requires_grad=True) for name, x in START.items()}


def closure_of(params):
    def closure():
        value = loss(params)
        value.backward()
        return value

    return closure


MADE = {
    "SAM": (lambda base: SAM(base, rho=0.1), lambda n: reference_sam(n, False)),
    "ASAM": (lambda base: SAM(base, rho=0.1, adaptive=True), lambda n: reference_sam(n, True)),
    "Lookahead": (lambda base: Lookahead(base, k=4, alpha=0.3), reference_lookahead),
}
AROUND_ITSELF = {"Lookahead twice": (lambda base: Lookahead(Lookahead(base, k=4), k=3), None)}


@pytest.mark.parametrize("name", MADE)
def test_a_hundred_steps_against_the_formula(name):
    make, reference = MADE[name]
    expected = reference(100)
    params = tensors()
    optimizer = make(Adam(params, lr=0.02))
    for _ in range(100):
        if name == "Lookahead":
            optimizer.zero_grad()
            loss(params).backward()
            optimizer.step()
        else:
            optimizer.step(closure_of(params))
    for found, value in zip(params.values(), expected, strict=True):
        np.testing.assert_allclose(found.detach(), value, rtol=1e-9)
    pure, function = make(Adam(lr=0.02)), gt.value_and_grad(loss)
    more = {} if name == "Lookahead" else {"value_and_grad": function}

    def step(params, state):
        return pure.apply(params, function(params)[1], state, **more)

    for call in (step, gt.jit(step)):
        values, state = START, pure.init(START)
        for _ in range(100):
            values, state = call(values, state)
        for found, value in zip(values.values(), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-9)
    np.testing.assert_array_equal(START["w"], [2, -1])


@pytest.mark.parametrize("name", MADE | AROUND_ITSELF)
def test_states_continue_bit_for_bit(name, tmp_path):
    def run(steps, state=None, start=START):
        params = {key: gt.tensor(x, requires_grad=True) for key, x in start.items()}
        optimizer = (MADE | AROUND_ITSELF)[name][0](Adam(params, lr=0.02))
        if state is not None:
            optimizer.load_state_dict(state)
        for _ in range(steps):
            closure = closure_of(params)
            if name.startswith("Lookahead"):
                optimizer.zero_grad()
                closure()
                optimizer.step()
            else:
                optimizer.step(closure)
        return {key: np.array(x.detach()) for key, x in params.items()}, optimizer.state_dict()

    whole, _ = run(11)
    half, state = run(6)
    gt.save(tmp_path / "s.safetensors", state)
    again, _ = run(5, gt.load(tmp_path / "s.safetensors"), half)
    for key in START:
        np.testing.assert_array_equal(again[key], whole[key])
    with pytest.raises(GradtapeError):
        run(0, {"0.nothing": np.ones(2)})


@pytest.mark.parametrize("name", [*MADE, "both"])
def test_a_deep_copy_goes_on_by_itself(name):
    params = tensors()
    base = Adam(params, lr=0.02)
    optimizer = Lookahead(SAM(base), k=3) if name == "both" else MADE[name][0](base)
    for _ in range(2):
        optimizer.step(closure_of(params))
    copied_params, copied = copy.deepcopy((params, optimizer))
    assert copied.param_groups is copied.base.param_groups
    for _ in range(3):
        optimizer.step(closure_of(params))
    for _ in range(3):
        copied.step(closure_of(copied_params))
    for one, other in zip(params.values(), copied_params.values(), strict=True):
        np.testing.assert_array_equal(one.detach(), other.detach())


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("what", ["raises", "nan", "nothing"])
def test_bad_closures_change_nothing(what, call):
    params = tensors()
    optimizer = SAM(SGD(params, lr=0.1, momentum=0.9))
    optimizer.step(closure_of(params))
    before = {name: np.array(x.detach()) for name, x in params.items()}
    state, calls = optimizer.state_dict(), []
    params["w"].grad = gt.ones(2)

    def closure():
        calls.append(1)
        value = closure_of(params)()
        if len(calls) < call:
            return value
        if what == "raises":
            raise KeyError("mine")
        return value * np.nan if what == "nan" else None

    with pytest.raises({"raises": KeyError, "nan": NonFiniteError, "nothing": ArgumentError}[what]):
        optimizer.step(closure)
    for name, x in params.items():
        np.testing.assert_array_equal(x.detach(), before[name])
    np.testing.assert_array_equal(params["w"].grad, [1, 1])
    assert all(np.array_equal(optimizer.state_dict()[name], state[name]) for name in state)


def test_numbers_and_parameters_are_those_of_the_base():
    params = tensors()
    optimizer = SAM(Lookahead(SGD(params, lr=0.1), k=1, alpha=1.0), rho=0.0)
    optimizer.lr = 0.5
    assert optimizer.base.base.param_groups[0]["lr"] == 0.5
    gt.optim.ExponentialLR(optimizer, 0.5).step()
    optimizer.step(closure_of(params))
    w, b = START["w"], START["b"]
    np.testing.assert_allclose(params["w"].detach(), w - 0.25 * slopes(w, b)[0])
    optimizer.zero_grad()
    assert float(params["b"].grad) == 0
    assert SAM(SGD(lr=0.1), rho=0.3).replace(lr=0.2).rho == 0.3
    lookahead = Lookahead(LBFGS(params, max_iter=3), k=2)
    first = loss(params).item()
    for _ in range(6):
        lookahead.step(closure_of(params))
    assert loss(params).item() < first


def test_every_optimizer_takes_a_closure():
    params = tensors()
    optimizer = Adam(params, lr=0.02)
    first = optimizer.step(closure_of(params))
    assert first.item() == pytest.approx(float(loss(START)))
    pure = Adam(lr=0.02)
    expected, _ = pure.apply(START, gt.grad(loss)(START), pure.init(START))
    np.testing.assert_allclose(params["w"].detach(), expected["w"])
    with pytest.raises(NonFiniteError):
        optimizer.step(lambda: closure_of(params)() * np.nan)
    np.testing.assert_allclose(params["w"].detach(), expected["w"])


def test_lookahead_of_tensors_that_are_given_to_steps():
    w, unused = gt.tensor([1.0], requires_grad=True), gt.tensor([1.0], requires_grad=True)
    optimizer = Lookahead(SGD(lr=0.1), k=2, alpha=0.5)
    for _ in range(2):
        w.grad = gt.ones(1)
        optimizer.step([w, unused])
    np.testing.assert_allclose(w.detach(), 0.9)
    np.testing.assert_array_equal(unused.detach(), 1)


def test_gradients_of_zero_and_narrow_dtypes():
    w = gt.zeros(2, gt.bfloat16, requires_grad=True)
    optimizer = SAM(SGD([w], lr=0.1))
    optimizer.step(lambda: [(w * w).sum().backward(), 0.0][1])
    np.testing.assert_array_equal(w.detach().astype(np.float32), 0)
    assert w.dtype == gt.bfloat16
    value, state = np.ones(2, np.float16), None
    pure = Lookahead(SGD(lr=0.25), k=1)
    state = pure.init(value)
    value, state = pure.apply(value, value, state)
    assert value.dtype == state["slow"].dtype == np.float16


@pytest.mark.parametrize("part", ["slow", "slow_step"])
def test_a_state_without_a_part_of_lookahead_changes_nothing(part):
    w = gt.tensor([1.0], requires_grad=True)
    optimizer = Lookahead(SGD([w], lr=0.25, momentum=0.5), k=2)
    optimizer.step([np.ones(1)])
    before = optimizer.state_dict()
    state = {name: x + 1 for name, x in before.items() if name != f"0.{part}"}
    with pytest.raises(ArgumentError, match=rf"no state '0\.{part}'"):
        optimizer.load_state_dict(state)
    assert optimizer.state_dict() == before


def test_bad_input():
    sam = SAM(SGD(lr=0.1))
    state = sam.init(START)
    with pytest.raises(ArgumentError, match=r"gt.value_and_grad"):
        sam.apply(START, START, state)
    with pytest.raises(ArgumentError, match="init"):
        sam.apply(START, START, {}, value_and_grad=gt.value_and_grad(loss))
    with pytest.raises(ArgumentError, match="expected an optimizer"):
        SAM([gt.ones(2, requires_grad=True)])
    with pytest.raises(ArgumentError, match="rho"):
        SAM(SGD(lr=0.1), rho=-1)
    with pytest.raises(ArgumentError, match="k=0"):
        Lookahead(SGD(lr=0.1), k=0)
    with pytest.raises(ArgumentError, match="alpha"):
        Lookahead(SGD(lr=0.1), alpha=2)
    for kind in (SAM, Lookahead, LBFGS, gt.optim.Sophia):
        with pytest.raises(UnsupportedError, match="variables"):
            kind.default("one", [], gt.VariableEnvironment())
