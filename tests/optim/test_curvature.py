"""Sophia and SOAP against their formulas, in every form."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError
from gradtape.optim import SOAP, Sophia
from gradtape.optim.sophia import random_signs

A = np.array([[3.0, 1.0, 0.2], [1.0, 2.0, -0.5], [0.2, -0.5, 1.0]])
START = {"w": np.array([2.0, -1.0, 0.5]), "b": np.array(0.7)}
NUMBERS = {"lr": 0.02, "betas": (0.9, 0.8), "rho": 0.5, "weight_decay": 0.1, "every": 4}


# ---- Sophia ----


def loss(p):
    return 0.5 * p["w"] @ A @ p["w"] + p["b"] ** 4 * p["w"][0] ** 2


def slopes(w, b):
    return A @ w + np.array([2 * b**4 * w[0], 0, 0]), 4 * b**3 * w[0] ** 2


def curvature(w, b, sw, sb):
    """The product of the Hessian with (sw, sb)."""
    corner = 8 * b**3 * w[0]
    top = A @ sw + np.array([2 * b**4 * sw[0] + corner * sb, 0, 0])
    return top, corner * sw[0] + 12 * b**2 * w[0] ** 2 * sb


def reference_sophia(steps, gauss_newton):
    values = [START["w"], START["b"]]
    means, hessians = [0.0, 0.0], [0.0, 0.0]
    for step in range(steps):
        grads = slopes(*values)
        if step % 4 == 0:
            # Containers of the tests list "b" before "w".
            sb, sw = random_signs([START["b"], START["w"]], 0, step)
            products = curvature(*values, sw, sb)
            found = [sw * products[0], sb * products[1]]
            if gauss_newton:
                found = [32 * g**2 for g in grads]
            hessians = [0.8 * h + 0.2 * f for h, f in zip(hessians, found, strict=True)]
        for i, g in enumerate(grads):
            means[i] = 0.9 * means[i] + 0.1 * g
            part = np.clip(means[i] / np.maximum(0.5 * hessians[i], 1e-12), -1, 1)
            values[i] = values[i] - 0.02 * 0.1 * values[i] - 0.02 * part
    return values


def test_estimates_reach_the_native_step(rng):
    start, scale = rng.normal(size=600), rng.uniform(1, 9, 600)
    w = gt.tensor(start, requires_grad=True)
    numbers = {"lr": 0.01, "betas": (0.9, 0.5), "every": 3}
    optimizer, pure = Sophia([w], **numbers), Sophia(**numbers)
    function = gt.value_and_grad(lambda w: np.sum(scale * w**4))

    def closure():
        value = (scale * w**4).sum()
        value.backward(create_graph=True)
        return value

    value, state = start, pure.init(start)
    for _ in range(8):
        optimizer.step(closure)
        value, state = pure.apply(value, function(value)[1], state, value_and_grad=function)
    np.testing.assert_allclose(w.detach(), value, rtol=1e-12)


@pytest.mark.parametrize("gauss_newton", [False, True])
def test_sophia_against_the_formula(gauss_newton):
    expected = reference_sophia(100, gauss_newton)
    numbers = {**NUMBERS, "gauss_newton": gauss_newton, "batch_size": 32}
    params = {name: gt.tensor(START[name], requires_grad=True) for name in ("b", "w")}
    optimizer = Sophia(params, **numbers)

    def closure():
        value = loss(params)
        value.backward(create_graph=not gauss_newton)
        return value

    for _ in range(100):
        optimizer.step(closure, closure)
    for name, value in zip(("w", "b"), expected, strict=True):
        np.testing.assert_allclose(params[name].detach(), value, rtol=1e-9)
    pure, function = Sophia(**numbers), gt.value_and_grad(loss)

    def step(params, state):
        return pure.apply(params, function(params)[1], state, value_and_grad=function)

    for call in (step, gt.jit(step)):
        values, state = START, pure.init(START)
        for _ in range(100):
            values, state = call(values, state)
        for name, value in zip(("w", "b"), expected, strict=True):
            np.testing.assert_allclose(values[name], value, rtol=1e-9)


def test_the_estimate_is_the_diagonal_on_average():
    signs = np.array([random_signs([np.zeros(3)], 5, step)[0] for step in range(2000)])
    assert set(np.unique(signs)) == {-1.0, 1.0}
    np.testing.assert_allclose((signs * (signs @ A)).mean(0), np.diag(A), atol=0.06)
    other = np.array([random_signs([np.zeros(3)], 6, step)[0] for step in range(2000)])
    assert np.all(np.abs((signs * other).mean(0)) < 0.1)


def test_sophia_of_a_module_learns():
    net, rng = gt.nn.Linear(4, 1, dtype=np.float64), np.random.default_rng(0)
    x = rng.normal(size=(64, 4)) * [1, 3, 10, 30]
    y = x @ [[1.0], [-1.0], [0.5], [0.1]]
    function = gt.value_and_grad(lambda net: gt.mean((net(x) - y) ** 2))
    opt = Sophia(lr=0.02, betas=(0.9, 0.9), rho=0.05, weight_decay=0.0)
    state = opt.init(net)

    @gt.jit
    def step(net, state):
        value, grads = function(net)
        return value, *opt.apply(net, grads, state, value_and_grad=function)

    with gt.no_grad():
        values = []
        for _ in range(150):
            value, net, state = step(net, state)
            values.append(float(value))
    assert values[-1] < 1e-3 * values[0]


@pytest.mark.parametrize("what", ["raises", "nan", "no history", "no closure", "bad estimate"])
def test_bad_closures_of_sophia_change_nothing(what):
    w = gt.tensor([1.0, 2.0], requires_grad=True)
    optimizer = Sophia([w], every=1, gauss_newton=what == "bad estimate")
    good = lambda: [(v := (w**4).sum()).backward(create_graph=True), v][1]  # noqa: E731
    optimizer.step(good, good)
    before, state = np.array(w.detach()), optimizer.state_dict()
    w.grad = gt.ones(2)

    def closure():
        value = (w**4).sum()
        value.backward(create_graph=what not in ("no history", "bad estimate"))
        if what == "raises":
            raise KeyError("mine")
        return value * np.nan if what == "nan" else value

    def sampled():
        value = (w**4).sum() * np.inf
        value.backward()
        return 0.0

    kinds = {"raises": KeyError, "nan": NonFiniteError, "bad estimate": NonFiniteError}
    with pytest.raises(kinds.get(what, ArgumentError)):
        optimizer.step(None if what == "no closure" else closure, sampled)
    np.testing.assert_array_equal(w.detach(), before)
    np.testing.assert_array_equal(w.grad, [1, 1])
    assert all(np.array_equal(optimizer.state_dict()[name], state[name]) for name in state)


# ---- SOAP ----


def basis_of(matrix):
    """Eigenvectors; a null space has those of a ramp that is projected onto it."""
    values, vectors = np.linalg.eigh(matrix)
    null = vectors[:, values < 1e-12 * values[-1]]
    used = vectors[:, values >= 1e-12 * values[-1]]
    ramp = null.T @ np.diag(np.linspace(0, 1, len(matrix))) @ null
    return np.hstack([used[:, ::-1], null @ np.linalg.eigh(ramp)[1]])


def reference_soap(value, grads, lr=0.01, frequency=5, decay=0.1):
    """SOAP as the authors' program computes it, for one matrix."""
    rows, columns = np.zeros((len(value),) * 2), np.zeros((value.shape[1],) * 2)
    mean, square = np.zeros_like(value), np.zeros_like(value)
    ql, qr = basis_of(0.2 * grads[0] @ grads[0].T), basis_of(0.2 * grads[0].T @ grads[0])
    for step, g in enumerate(grads):
        if step:
            turned = ql.T @ g @ qr
            mean = 0.95 * mean + 0.05 * turned  # in the basis, where it is turned along
            square = 0.9 * square + 0.1 * turned**2
            rate = lr * np.sqrt(1 - 0.9**step) / (1 - 0.95**step)
            value = value - rate * ql @ (mean / (np.sqrt(square) + 1e-8)) @ qr.T
            value = value - lr * decay * value
            mean = ql @ mean @ qr.T
        rows, columns = 0.8 * rows + 0.2 * g @ g.T, 0.8 * columns + 0.2 * g.T @ g
        if step and step % frequency == 0:
            bases = []
            for axis, (average, q) in enumerate([(rows, ql), (columns, qr)]):
                order = np.argsort(-np.diag(q.T @ average @ q))
                square = square.take(order, axis)
                q = q[:, order]
                shift = np.sqrt(np.finfo(float).eps) * np.diag(average).mean() + 1e-30
                bases.append(np.linalg.qr(average @ q + shift * q)[0])
            ql, qr = bases
        mean = ql.T @ mean @ qr
    return value


def reference_adam(value, grads, lr=0.01, decay=0.1):
    mean = square = 0.0
    for step, g in enumerate(grads[1:], 1):
        mean, square = 0.95 * mean + 0.05 * g, 0.9 * square + 0.1 * g * g
        rate = lr * np.sqrt(1 - 0.9**step) / (1 - 0.95**step)
        value = (value - rate * mean / (np.sqrt(square) + 1e-8)) * (1 - lr * decay)
    return value


SOAP_NUMBERS = {
    "lr": 0.01,
    "betas": (0.95, 0.9),
    "shampoo_beta": 0.8,
    "weight_decay": 0.1,
    "precondition_frequency": 5,
    "max_precond_dim": 6,
}


def test_soap_against_the_formula(rng):
    shapes = {
        "tall": (5, 3),
        "wide": (2, 4),
        "kernel": (4, 3, 2),
        "b": (3,),
        "s": (),
        "long": (3, 7),
    }
    start = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    grads = [{name: rng.normal(size=shape) for name, shape in shapes.items()} for _ in range(100)]
    expected = {}
    for name, value in start.items():
        of = [g[name] for g in grads]
        if name in ("b", "s"):
            expected[name] = reference_adam(value, of)
        else:
            flat = [g.reshape(len(value), -1) for g in of]
            expected[name] = reference_soap(value.reshape(len(value), -1), flat)
    # The long side is not turned.
    del expected["long"]
    soap = SOAP(**SOAP_NUMBERS)
    params = {name: gt.tensor(x, requires_grad=True) for name, x in start.items()}
    steps = SOAP(params, **SOAP_NUMBERS)
    compiled = gt.jit(soap.apply)
    values, others, state, other_state = start, start, soap.init(start), soap.init(start)
    assert state["columns"]["long"].shape == (0, 0)
    for g in grads:
        values, state = soap.apply(values, g, state)
        others, other_state = compiled(others, g, other_state)
        steps.step(g)
    for name, value in expected.items():
        for found in (values[name], others[name], params[name].detach()):
            np.testing.assert_allclose(found.reshape(value.shape), value, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(params["long"].detach(), values["long"], rtol=1e-12)


def test_soap_does_not_depend_on_the_basis_of_the_gradient(rng):
    """What SOAP is for: turned coordinates make no difference once its basis is exact."""
    scale = np.diag([4.0, 2.0, 1.0])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]

    def losses(matrix):
        w, opt = np.eye(3) @ matrix, SOAP(lr=0.05, precondition_frequency=1, eps=0.1)
        function = gt.value_and_grad(lambda w: np.sum((w @ matrix.T @ scale) ** 2))
        state, found = opt.init(w), []
        for _ in range(40):
            value, grads = function(w)
            w, state = opt.apply(w, grads, state)
            found.append(float(value))
        return found

    np.testing.assert_allclose(losses(turn), losses(np.eye(3)), rtol=1e-5)


def test_soap_states_continue_bit_for_bit(tmp_path, rng):
    grads = [[rng.normal(size=(4, 3)), rng.normal(size=3)] for _ in range(12)]

    def run(grads, state=None, start=None):
        start = [np.ones((4, 3)), np.ones(3)] if start is None else start
        params = [gt.tensor(x, requires_grad=True) for x in start]
        optimizer = SOAP(params, **SOAP_NUMBERS)
        if state is not None:
            optimizer.load_state_dict(state)
        for g in grads:
            optimizer.step(g)
        return [np.array(x.detach()) for x in params], optimizer.state_dict()

    whole, _ = run(grads)
    half, state = run(grads[:6])
    gt.save(tmp_path / "s.safetensors", state)
    again, _ = run(grads[6:], gt.load(tmp_path / "s.safetensors"), half)
    for x, y in zip(again, whole, strict=True):
        np.testing.assert_array_equal(x, y)


def test_bad_input():
    with pytest.raises(DTypeError, match="complex"):
        SOAP(lr=0.1).init(np.ones((2, 2), complex))
    with pytest.raises(ArgumentError, match="precondition_frequency"):
        SOAP(precondition_frequency=0)
    with pytest.raises(ArgumentError, match="shampoo_beta"):
        SOAP(shampoo_beta=1.0)
    sophia, function = Sophia(), gt.value_and_grad(loss)
    with pytest.raises(ArgumentError, match=r"gt.value_and_grad"):
        sophia.apply(START, START, sophia.init(START))
    with pytest.raises(ArgumentError, match="init"):
        sophia.apply(START, START, {}, value_and_grad=function)
    with pytest.raises(DTypeError, match="complex"):
        sophia.init(np.ones(2, complex))
    with pytest.raises(ArgumentError, match="every"):
        Sophia(every=0)
    w = np.zeros((0, 3))
    assert SOAP().apply(w, w, SOAP().init(w))[0].shape == (0, 3)
