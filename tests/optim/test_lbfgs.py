"""L-BFGS: iterates, its state, and what it does when something goes wrong."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    NonFiniteError,
    NotDifferentiableError,
    ShapeError,
)
from gradtape.optim import LBFGS
from gradtape.optim.line_search import Point, strong_wolfe


def rosenbrock(x):
    return ((x[1:] - x[:-1] ** 2) ** 2 * 100 + (1 - x[:-1]) ** 2).sum()


def valley(x):
    """It has slopes of very different size, and is not convex."""
    powers = np.arange(6.0)
    return (2.0**powers * (x - 0.3) ** 2).sum() - (3 * x[::2]).cos().sum() + (x[0] * x[-1]) ** 4


START = np.array([-1.2, 1.0, 0.7, -0.4, 0.9, 1.4])
OPTIONS = [
    {},
    {"max_iter": 7, "history_size": 3},
    {"lr": 0.3, "max_eval": 9},
    {"line_search_fn": None, "lr": 1e-3},
]


def torch_valley(torch):
    powers = torch.arange(6.0, dtype=torch.float64)
    return lambda x: (
        (2.0**powers * (x - 0.3) ** 2).sum()
        - (3 * x[torch.arange(0, 6, 2)]).cos().sum()
        + (x[0] * x[-1]) ** 4
    )


def closure_of(optimizer, x, loss):
    def closure():
        optimizer.zero_grad()
        value = loss(x)
        value.backward()
        return value

    return closure


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["rosenbrock", "valley"])
def test_iterates_against_torch(name, options):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ours, theirs = (
        (rosenbrock, rosenbrock) if name == "rosenbrock" else (valley, torch_valley(torch))
    )
    x, y = gt.tensor(START, requires_grad=True), torch.tensor(START, requires_grad=True)
    one = LBFGS([x], **options)
    other = torch.optim.LBFGS([y], **{"line_search_fn": "strong_wolfe", **options})
    for _ in range(6):
        loss = one.step(closure_of(one, x, ours))
        expected = other.step(closure_of(other, y, theirs))
        np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(x.detach(), y.detach().numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("search", ["strong_wolfe", None])
def test_a_hundred_steps_against_torch(search):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.default_rng(0)
    a, y = rng.normal(size=(300, 40)) * np.logspace(0, -2, 40), rng.normal(size=300)
    x, w = gt.zeros(40, requires_grad=True), torch.zeros(40, dtype=torch.float64)
    b, z = torch.tensor(a), torch.tensor(y)
    options = {"lr": 1.0 if search else 0.02, "max_iter": 1, "history_size": 5}
    one = LBFGS([x], **options, line_search_fn=search)
    other = torch.optim.LBFGS([w.requires_grad_()], **options, line_search_fn=search)
    ours = closure_of(one, x, lambda x: gt.sum(gt.log(gt.cosh(a @ x - y))) + 1e-3 * gt.sum(x * x))
    theirs = closure_of(other, w, lambda w: (b @ w - z).cosh().log().sum() + 1e-3 * (w * w).sum())
    first = last = one.step(ours).item()
    assert first == pytest.approx(other.step(theirs).item(), rel=1e-12)
    for _ in range(99):
        last = one.step(ours).item()
        np.testing.assert_allclose(last, other.step(theirs).item(), rtol=1e-6)
        np.testing.assert_allclose(x.detach(), w.detach().numpy(), rtol=1e-6, atol=1e-6)
    assert last < first


def test_converges_on_rosenbrock_in_few_evaluations():
    calls = []

    def counted(x):
        calls.append(1)
        return gt.value_and_grad(rosenbrock)(x)

    opt = LBFGS(max_iter=200, tolerance_change=0.0, tolerance_grad=1e-10)
    x = np.array([-1.2, 1.0])
    x, _ = opt.apply(x, None, opt.init(x), value_and_grad=counted)
    np.testing.assert_allclose(x, 1, atol=1e-10)
    assert len(calls) < 60


def test_pure_and_closure_forms_agree():
    x = gt.tensor(START, requires_grad=True)
    steps = LBFGS([x], max_iter=4)
    pure = LBFGS(max_iter=4)
    # The same numbers in two arrays of a container.
    value, state = {"a": START[:2], "b": START[2:].reshape(2, 2)}, None
    function = gt.value_and_grad(
        lambda tree: rosenbrock(gt.concatenate([tree["a"], tree["b"].reshape(-1)]))
    )
    state = pure.init(value)
    for _ in range(5):
        steps.step(closure_of(steps, x, rosenbrock))
        value, state = pure.apply(value, None, state, value_and_grad=gt.jit(function))
        found = np.concatenate([value["a"], value["b"].ravel()])
        np.testing.assert_allclose(found, x.detach(), rtol=1e-9)
    assert 15 < state["step"] <= 20
    assert value["b"].shape == (2, 2)


@pytest.mark.parametrize("lr", [0.5, gt.optim.exponential(1.0, 0.9)], ids=repr)
def test_compiled_steps_are_the_same(lr):
    opt, traced, start = LBFGS(max_iter=4, lr=lr, history_size=5), [], {"x": START}

    def step(params, state, target):
        traced.append(1)
        both = gt.value_and_grad(lambda p: rosenbrock(p["x"] - target))
        params, state = opt.apply(params, None, state, value_and_grad=both)
        return params, state, both(params)[0]

    compiled = gt.jit(step)
    one, other, state, other_state = start, start, opt.init(start), opt.init(start)
    for target in (0.0, 0.0, 0.1, 0.1, 0.1):
        one, state, loss = step(one, state, np.full(6, target))
        count = len(traced)
        other, other_state, other_loss = compiled(other, other_state, np.full(6, target))
        np.testing.assert_allclose(other["x"], one["x"], rtol=1e-6)
        np.testing.assert_allclose(other_loss, loss, rtol=1e-6)
    assert len(traced) == count  # traced once
    assert other_state["moves"].shape == (5, 6)
    assert other_state["step"] == state["step"]
    with pytest.raises(NonFiniteError, match="loss"):
        compiled(other, other_state, np.full(6, np.nan))


def test_a_compiled_step_keeps_its_promise_in_strict_mode():
    opt = LBFGS(max_iter=5)
    both = gt.value_and_grad(rosenbrock)
    step = gt.jit(lambda x, state: opt.apply(x, None, state, value_and_grad=both)[0])
    with gt.deterministic(gt.DeterministicConfig(mode=gt.DeterministicMode.Strict)):
        found = step(START, opt.init(START))
    np.testing.assert_array_equal(found, step(START, opt.init(START)))


def test_batches_of_problems():
    opt, targets = LBFGS(max_iter=60, tolerance_change=0.0), np.array([0.0, 0.5, 2.0])

    def solved(target):
        x = np.zeros(3)
        both = gt.value_and_grad(lambda x: rosenbrock(x - target))
        return opt.apply(x, None, opt.init(x), value_and_grad=both)[0]

    np.testing.assert_allclose(gt.vmap(solved)(targets), np.ones(3) + targets[:, None], atol=1e-6)
    with pytest.raises(NotDifferentiableError):
        gt.grad(lambda target: solved(target).sum())(1.0)


def test_modules_and_narrow_dtypes():
    net = gt.nn.Linear(3, 1)
    data, target = np.eye(3, dtype=np.float32), np.array([[1.0], [2.0], [4.0]], np.float32)
    function = gt.value_and_grad(lambda net: gt.mean((net(data) - target) ** 2))
    opt = LBFGS(max_iter=50)
    state = opt.init(net)
    with gt.no_grad():
        net, _ = gt.jit(lambda n: opt.apply(n, None, state, value_and_grad=function))(net)
    assert net.weight.dtype == np.float32
    assert float(function(net)[0]) < 1e-6
    w = gt.ones(2, gt.float16, requires_grad=True)
    half = LBFGS([w])
    half.step(closure_of(half, w, lambda w: ((w - 0.5) ** 2).sum()))
    assert w.dtype == np.float16
    np.testing.assert_allclose(w.detach(), 0.5, atol=1e-3)


def test_complex_parameters_are_two_real_ones():
    z = gt.tensor(np.array([1 + 2j, -1j]), requires_grad=True)
    opt = LBFGS([z])
    opt.step(closure_of(opt, z, lambda z: (gt.abs(z - (0.5 + 1j)) ** 2).sum()))
    np.testing.assert_allclose(z.detach(), 0.5 + 1j, atol=1e-6)


def test_state_continues_bit_for_bit(tmp_path):
    def run(steps, state=None, start=START):
        x = gt.tensor(start, requires_grad=True)
        opt = LBFGS([x], max_iter=3)
        if state is not None:
            opt.load_state_dict(state)
        for _ in range(steps):
            opt.step(closure_of(opt, x, rosenbrock))
        return np.array(x.detach()), opt.state_dict()

    whole, _ = run(6)
    half, state = run(3)
    gt.save(tmp_path / "s.safetensors", state)
    again, _ = run(3, gt.load(tmp_path / "s.safetensors"), half)
    np.testing.assert_array_equal(again, whole)
    opt = LBFGS([gt.ones(2, requires_grad=True)])
    for wrong, kind in [
        (state, ShapeError),
        ({"step": np.array(1)}, ArgumentError),
        ({**state, "0.momentum": np.ones(2)}, (ArgumentError, ShapeError)),
    ]:
        with pytest.raises(kind):
            opt.load_state_dict(wrong)
        assert "move" not in opt.state_dict()


@pytest.mark.parametrize("where", ["at the start", "later"])
@pytest.mark.parametrize("what", ["raises", "nan", "nothing"])
def test_bad_closures_change_nothing(what, where):
    x = gt.tensor(START, requires_grad=True)
    opt = LBFGS([x], max_iter=5)
    opt.step(closure_of(opt, x, rosenbrock))
    x.grad = gt.ones(6)
    before, state, calls = np.array(x.detach()), opt.state_dict(), []

    def closure():
        calls.append(1)
        loss = rosenbrock(x)
        loss.backward()
        if len(calls) < (1 if where == "at the start" else 3):
            return loss
        if what == "raises":
            raise KeyError("mine")
        return loss * np.nan if what == "nan" else None

    if (what, where) == ("nan", "later"):
        # A point of the line where there is no loss is too far, and the search goes back.
        opt.step(closure)
        assert np.all(np.isfinite(x.detach()))
        return
    kinds = {"raises": KeyError, "nan": NonFiniteError, "nothing": ArgumentError}
    with pytest.raises(kinds[what]):
        opt.step(closure)
    np.testing.assert_array_equal(x.detach(), before)
    np.testing.assert_array_equal(x.grad, np.ones(6))
    assert all(np.array_equal(opt.state_dict()[name], state[name]) for name in state)


def test_bad_input():
    function = gt.value_and_grad(rosenbrock)
    opt = LBFGS()
    state = opt.init(START)
    with pytest.raises(NotDifferentiableError):
        gt.grad(lambda x: opt.apply(x, None, state, value_and_grad=function)[0].sum())(START)
    with pytest.raises(ArgumentError, match="value_and_grad"):
        opt.apply(START, None, state)
    with pytest.raises(ShapeError, match="parameters of 2"):
        opt.apply(START[:2], None, state, value_and_grad=function)
    with pytest.raises(ArgumentError, match="init"):
        opt.apply(START, None, {"step": 0}, value_and_grad=function)
    with pytest.raises(NonFiniteError, match="loss"):
        opt.apply(START * np.nan, None, state, value_and_grad=function)
    with pytest.raises(ArgumentError, match="returns the loss"):
        LBFGS([gt.ones(2, requires_grad=True)]).step()
    with pytest.raises(ArgumentError, match="strong_wolfe"):
        LBFGS(line_search_fn="armijo")
    with pytest.raises(ArgumentError, match="history_size"):
        LBFGS(history_size=0)
    with pytest.raises(ArgumentError, match="second group"):
        LBFGS([{"params": [gt.ones(1, requires_grad=True)]} for _ in range(2)])
    with pytest.raises(DTypeError):
        opt.init(np.arange(3))
    assert LBFGS(line_search_fn=None).replace(lr=0.5).line_search_fn is None


@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 50.0])
def test_the_line_search_finds_what_wolfe_asks_for(first):
    def value(t):
        return (t - 2) ** 2 * (1 + 0.1 * np.sin(5 * t)) - t

    slope = gt.grad(value)

    def at(t):
        return Point(t, float(value(t)), float(slope(t)), None)

    start = at(0.0)
    point, count = strong_wolfe(at, start, first, length=1.0, most=40, tolerance=1e-9)
    assert point.value <= start.value + 1e-4 * point.at * start.slope
    assert abs(point.slope) <= 0.9 * abs(start.slope)
    assert count <= 20
