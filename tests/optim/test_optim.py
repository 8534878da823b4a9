"""Optimizers: their rules, their steps, what they do with the tape, their state."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, DTypeError, GradtapeError, ShapeError
from gradtape.optim import stepping

# More elements than NumPy steps by itself.
LARGE = 2 * stepping.WORTH_COMPILING

SHAPES = [(4, 3), (3,), ()]


def gradients(rng, dtype, steps=7):
    return [[rng.normal(size=shape).astype(dtype) for shape in SHAPES] for _ in range(steps)]


def initial(rng, dtype):
    return [rng.normal(size=shape).astype(dtype) for shape in SHAPES]


def trained(make, start, steps):
    """The values after steps with given gradients; one parameter has none in the third."""
    params = [gt.tensor(x, requires_grad=True) for x in start]
    optimizer = make(params)
    for number, grads in enumerate(steps):
        for param, grad in zip(params, grads, strict=True):
            param.grad = gt.Tensor(grad)
        if number == 2:
            params[1].grad = None
        optimizer.step()
    return [np.asarray(param.detach()) for param in params]


# ---- literal references ----


def reference_sgd(x, grads, lr, momentum=0.0, weight_decay=0.0, nesterov=False):
    v = None
    for g in grads:
        g = g + weight_decay * x
        v = g if v is None else momentum * v + g
        x = x - lr * (g + momentum * v if nesterov else v)
    return x


def reference_adam(x, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    m = v = 0
    for t, g in enumerate(grads, start=1):
        g = g + weight_decay * x
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        x = x - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return x


FORMS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.02, "betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.2}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.0), "eps": 0.1}),
]
REFERENCES = {"SGD": reference_sgd, "Adam": reference_adam}
TOLERANCE = {np.float64: 1e-13, np.float32: 1e-5}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("name", "options"), FORMS)
def test_steps_against_the_formula(name, options, dtype, rng):
    start, steps = initial(rng, dtype), gradients(rng, dtype)
    got = trained(lambda params: getattr(gt.optim, name)(params, **options), start, steps)
    for i, x in enumerate(got):
        grads = [grads[i] for number, grads in enumerate(steps) if not (i == 1 and number == 2)]
        expected = REFERENCES[name](start[i], grads, **options)
        assert x.dtype == dtype
        assert x.shape == SHAPES[i]
        np.testing.assert_allclose(x, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("name", "options"), FORMS)
def test_steps_against_torch(name, options, dtype, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    start, steps = initial(rng, dtype), gradients(rng, dtype)
    got = trained(lambda params: getattr(gt.optim, name)(params, **options), start, steps)
    params = [torch.tensor(x, requires_grad=True) for x in start]
    optimizer = getattr(torch.optim, name)(params, **options)
    for number, grads in enumerate(steps):
        for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
            param.grad = None if i == 1 and number == 2 else torch.tensor(grad)
        optimizer.step()
    for x, param in zip(got, params, strict=True):
        expected = param.detach().numpy()
        np.testing.assert_allclose(x, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_dtypes_stay(name, dtype):
    w = gt.ones(3, getattr(gt, dtype), requires_grad=True)
    optimizer = getattr(gt.optim, name)([w], lr=np.float64(0.25), weight_decay=1e-3)
    for _ in range(2):
        w.grad = gt.ones(3, w.dtype)
        optimizer.step()
        assert w.dtype == getattr(gt, dtype)
    np.testing.assert_allclose(np.asarray(w.detach()).astype(float), 0.5, rtol=1e-2)


@pytest.mark.parametrize("name", REFERENCES)
def test_minimizes(name):
    target = np.array([1.0, -2.0, 3.0])
    w, b = gt.zeros(3, requires_grad=True), gt.zeros((), requires_grad=True)
    optimizer = getattr(gt.optim, name)({"w": w, "b": b}, lr=0.1)
    for _ in range(400):
        optimizer.zero_grad()
        loss = gt.sum((w - target) ** 2) + (b - 1.0) ** 2
        loss.backward()
        optimizer.step()
    np.testing.assert_allclose(w.detach(), target, atol=1e-3)
    assert b.item() == pytest.approx(1, abs=1e-3)


# ---- arrays and tapes ----


@pytest.mark.parametrize("make", [gt.optim.SGD, gt.optim.Adam])
def test_a_step_leaves_recorded_arrays_alone(make):
    w = gt.tensor([2.0, 3.0], requires_grad=True)
    optimizer = make([w], lr=0.1)
    before = w.value
    loss = gt.sum(w * w)
    for _ in range(3):
        w.grad = gt.ones(2)
        gradient = w.grad.value
        optimizer.step()
        np.testing.assert_array_equal(gradient, [1, 1])
    np.testing.assert_array_equal(before, [2, 3])
    assert w.is_leaf
    w.zero_grad()
    loss.backward()
    np.testing.assert_array_equal(w.grad, [4, 6])


@pytest.mark.parametrize("make", [gt.optim.SGD, gt.optim.Adam])
def test_zero_grad_with_parameters_clears_the_default_tape(make):
    w = gt.ones(3, requires_grad=True)
    optimizer = make(lr=0.1)
    gt.sum(w * 2.0).backward()
    kept = w * 3.0
    with gt.GradientContext() as context:
        inner = w * 4.0
        optimizer.zero_grad([w])
        assert len(context.tape) == 1
        gt.compute_gradients(inner)
    assert len(gt.default_context().tape) == 0
    np.testing.assert_array_equal(w.grad, [4, 4, 4])
    with pytest.raises(GradtapeError, match="cleared"):
        kept.backward()


@pytest.mark.parametrize("make", [gt.optim.SGD, gt.optim.Adam])
def test_zero_grad_without_parameters_only_zeroes(make):
    w = gt.ones(3, requires_grad=True)
    optimizer = make([w], lr=0.1)
    loss = gt.sum(w * 2.0)
    optimizer.zero_grad()
    assert w.grad is None
    loss.backward()
    optimizer.zero_grad()
    np.testing.assert_array_equal(w.grad, np.zeros(3))
    loss.backward()
    np.testing.assert_array_equal(w.grad, [2, 2, 2])


def test_a_frozen_parameter_is_skipped():
    w = gt.ones(2, requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.1)
    w.set_requires_grad(False)
    optimizer.step()
    np.testing.assert_array_equal(w, [1, 1])


def test_learning_rate_may_change():
    w = gt.ones((), requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.5)
    w.grad = gt.ones(())
    optimizer.step()
    optimizer.lr = 0.25
    optimizer.step()
    assert w.item() == 0.25
    with pytest.raises(ArgumentError, match="lr=-1"):
        optimizer.lr = -1
    assert "<SGD, lr=0.25, momentum=0.0" in repr(optimizer)
    assert "1 parameters of its own" in repr(optimizer)


def test_parameters_may_come_from_a_generator():
    params = [gt.ones(2, requires_grad=True) for _ in range(3)]
    assert gt.optim.SGD((param for param in params), lr=0.1).params == params


# ---- state ----


def test_state_dies_with_its_parameter():
    optimizer = gt.optim.Adam(lr=0.1)
    w = gt.ones(1000, requires_grad=True)
    w.grad = gt.ones(1000)
    optimizer.step([w])
    (memory,) = optimizer._memories.values()
    buffer = weakref.ref(memory.slots["mean"])
    del w, memory
    gc.collect()
    assert len(optimizer._memories) == 0
    assert buffer() is None


def test_another_parameter_has_its_own_state():
    optimizer = gt.optim.SGD(lr=1.0, momentum=0.5)
    for _ in range(20):  # a new tensor often gets the memory of the one before
        w = gt.zeros(2, requires_grad=True)
        w.grad = gt.ones(2)
        optimizer.step([w])
        np.testing.assert_array_equal(w.detach(), [-1, -1])
        del w


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_state_can_be_saved(name, options, rng, tmp_path):
    def run(optimizer, steps):
        for grads in steps:
            for param, grad in zip(optimizer.params, grads, strict=True):
                param.grad = gt.Tensor(grad)
            optimizer.step()

    start, steps = initial(rng, np.float64), gradients(rng, np.float64)
    whole, parts = ([gt.tensor(x, requires_grad=True) for x in start] for _ in range(2))
    make = getattr(gt.optim, name)
    run(make(whole, **options), steps)

    first, second = make(parts, **options), make(parts, **options)
    run(first, steps[:3])
    np.savez(tmp_path / "state.npz", **first.state_dict())
    with np.load(tmp_path / "state.npz") as saved:
        second.load_state_dict(saved)
    run(second, steps[3:])
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one.detach(), other.detach())


def test_states_that_do_not_fit():
    w = gt.ones(3, requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.1, momentum=0.9)
    for name in ("1.momentum", "momentum", "-1.momentum", "0."):
        with pytest.raises(ArgumentError, match=r"'0\.momentum'"):
            optimizer.load_state_dict({name: np.ones(3)})
    with pytest.raises(ShapeError, match=r"expected \(3,\)"):
        optimizer.load_state_dict(optimizer.state_dict() | {"0.momentum": np.ones(2)})
    with pytest.raises(ArgumentError, match="state_dict"):
        gt.optim.SGD(lr=0.1).state_dict()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (None, "got a NoneType as a state"),
        ({3: np.ones(3)}, "expected a dict of arrays by name"),
        ({"0.mean": np.ones(3) * 1j}, "'0.mean' of complex128, expected float64"),
        ({"0.mean": np.array(["a"] * 3)}, "'0.mean' of <U1"),
        ({"0.step": np.nan}, "'0.step' = nan, expected an integer from 0"),
        ({"0.step": 1.5}, "'0.step' = 1.5"),
        ({"0.step": -1}, "'0.step' = -1"),
        ({"0.step": np.ones(3)}, "'0.step'"),
        ({"groups.0.betas": np.ones(3)}, "betas"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda optimizer: optimizer, gt.optim.Lookahead])
def test_states_that_do_not_fit_change_nothing(changes, match, wrap):
    w = gt.ones(3, requires_grad=True)
    optimizer = wrap(gt.optim.Adam([w], lr=0.1))
    optimizer.step([np.ones(3)])
    before = optimizer.state_dict()
    with pytest.raises(GradtapeError, match=match):
        optimizer.load_state_dict(None if changes is None else {**before, **changes})
    after = optimizer.state_dict()
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("optimizer", [gt.optim.SGD, gt.optim.LBFGS])
def test_closures_that_compute_no_gradients(optimizer):
    w = gt.ones(3, requires_grad=True)
    with pytest.raises(ArgumentError, match=r"no gradient in any of 1 .*call backward"):
        optimizer([w], lr=0.1).step(lambda: gt.sum(w * w))
    assert w.tolist() == [1.0] * 3


# ---- bad arguments ----


def leaf():
    return gt.ones(3, requires_grad=True)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: gt.optim.Adam(lr=-1), ArgumentError, "Adam: got lr=-1"),
        (lambda: gt.optim.LBFGS(max_iter="9"), DTypeError, "max_iter='9'"),
        (lambda: gt.optim.SGD([leaf()], lr=0.1).add_param_group(None), ArgumentError, "'params'"),
        (lambda: gt.optim.SGD([leaf()], lr=0.1).step([["a"] * 3]), DTypeError, "expected numbers"),
        (lambda: gt.optim.Adam().apply(np.ones(2), np.ones(2), None), ArgumentError, "NoneType"),
        (
            lambda: gt.optim.SGD(lr=float("nan")),
            ArgumentError,
            "SGD: got lr=nan, expected a number >= 0",
        ),
        (lambda: gt.optim.SGD(lr=float("inf")), ArgumentError, "lr=inf"),
        (lambda: gt.optim.SGD(lr=0.1, momentum=1.0), ArgumentError, "momentum=1.0"),
        (lambda: gt.optim.SGD(lr=0.1, weight_decay=-1), ArgumentError, "weight_decay=-1"),
        (lambda: gt.optim.SGD(lr=0.1, nesterov=True), ArgumentError, "without momentum"),
        (lambda: gt.optim.Adam(betas=(0.9, 1.0)), ArgumentError, "betas"),
        (lambda: gt.optim.Adam(betas=(0.9,)), ArgumentError, "betas"),
        (lambda: gt.optim.Adam(eps=-1e-8), ArgumentError, "eps"),
        (lambda: gt.optim.Adam(weight_decay=-1), ArgumentError, "weight_decay"),
        (lambda: gt.optim.SGD(leaf(), lr=0.1), DTypeError, r"\[w, b\]"),
        (lambda: gt.optim.SGD(0.1), ArgumentError, "number 0.1 as parameters.*lr=0.1"),
        (lambda: gt.optim.Adam(3, lr=0.1), ArgumentError, "number 3 as parameters"),
        (lambda: gt.optim.SGD([leaf()]), ArgumentError, "SGD: got no learning rate.*lr="),
        (lambda: gt.optim.SGD(lr=0.1).step(object()), DTypeError, "object"),
        (lambda: gt.optim.SGD([np.ones(3)], lr=0.1), DTypeError, "ndarray"),
        (
            lambda: gt.optim.SGD(gt.nn.Linear(2, 1).named_parameters(), lr=0.1),
            DTypeError,
            r"of type str, .*net\.parameters\(\), without names",
        ),
        (lambda: gt.optim.SGD([gt.ones(3)], lr=0.1), ArgumentError, "does not require"),
        (lambda: gt.optim.SGD([leaf() * 2], lr=0.1), ArgumentError, "recorded result"),
        (lambda: gt.optim.SGD(lr=0.1).step([leaf() * 2]), ArgumentError, "recorded result"),
        (lambda: gt.optim.SGD(lr=0.1).step(), ArgumentError, "SGD.step: got no parameters"),
        (lambda: gt.optim.SGD(lr=0.1).zero_grad(), ArgumentError, "zero_grad"),
    ],
)
def test_bad_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_a_parameter_that_changes_its_shape():
    w = leaf()
    optimizer = gt.optim.SGD([w], lr=0.1, momentum=0.9)
    w.grad = gt.ones(3)
    optimizer.step()
    w.value = np.ones(2)
    with pytest.raises(ShapeError, match=r"gradient of shape \(3,\)"):
        optimizer.step()
    w.grad = gt.ones(2)
    with pytest.raises(ShapeError, match=r"at its first step it had shape \(3,\)"):
        optimizer.step()


# ---- complex parameters, and parameters that come twice ----


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_complex_numbers_are_pairs_of_real_ones(dtype, weight_decay):
    rng = np.random.default_rng(0)
    arrays = (rng.normal(size=(4, 5, 3)) + 1j * rng.normal(size=(4, 5, 3))).astype(dtype)
    start, *grads = arrays

    def pair(x):
        return np.stack([x.real, x.imag])

    w = gt.tensor(start, requires_grad=True)
    parts = gt.tensor(pair(start), requires_grad=True)
    one, other = (gt.optim.Adam([p], lr=0.1, weight_decay=weight_decay) for p in (w, parts))
    for grad in grads:
        one.step([grad])
        other.step([pair(grad)])
    assert w.dtype == one.state_dict()["0.square"].dtype == dtype
    np.testing.assert_array_equal(pair(w.detach().numpy()), parts.detach())


def test_a_parameter_listed_twice_is_stepped_once():
    first, second = leaf(), leaf()
    nested = {"a": [first, {"b": second}], "b": (first, second), "c": first}
    optimizer = gt.optim.SGD(nested, lr=0.5)
    assert [id(param) for param in optimizer.params] == [id(first), id(second)]
    gt.compute_gradients(gt.sum(first + second))
    optimizer.step()
    optimizer.step([first, [first]])
    assert first.tolist() == [0.0] * 3
    assert second.tolist() == [0.5] * 3


# ---- pure rules ----


RULES = {"SGD": gt.optim.SGD, "Adam": gt.optim.Adam}
# Few steps are enough to have used what was remembered.
STEPS = 4


def tree_of(arrays):
    return {"w": [arrays[0]], "rest": (arrays[1], {"scale": arrays[2]})}


def leaves_of(tree):
    return [tree["w"][0], tree["rest"][0], tree["rest"][1]["scale"]]


def applied(apply, rule, start, steps):
    """Parameters and state after steps of a rule, or of what was made of its `apply`."""
    params = tree_of(start)
    state = rule.init(params)
    for grads in steps:
        params, state = apply(params, tree_of(grads), state)
    return params, state


def assert_same(got, expected):
    for one, other in zip(leaves_of(got), leaves_of(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize(("name", "options"), FORMS)
def test_a_rule_gives_what_the_class_gives_bit_for_bit(name, options, dtype, rng):
    start, steps = initial(rng, dtype), gradients(rng, dtype, STEPS)
    params = [gt.tensor(x, requires_grad=True) for x in start]
    optimizer = getattr(gt.optim, name)(params, **options)
    for grads in steps:
        for param, grad in zip(params, grads, strict=True):
            param.grad = gt.Tensor(grad)
        optimizer.step()
    rule = RULES[name](**options)
    got, state = applied(rule.apply, rule, start, steps)
    assert_same(got, tree_of([param.detach().numpy() for param in params]))
    states = optimizer.state_dict()
    for slot in rule.slot_names(rule.defaults):
        for position, array in enumerate(leaves_of(state[slot])):
            np.testing.assert_array_equal(array, states[f"{position}.{slot}"])
    assert state.get("step") == (STEPS if name == "Adam" else None)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "options"), FORMS)
def test_a_compiled_rule_is_the_eager_one(name, options, dtype, rng):
    start, steps = initial(rng, dtype), gradients(rng, dtype, STEPS)
    rule = RULES[name](**options)
    compiled = gt.jit(rule.apply)
    got, state = applied(compiled, rule, start, steps)
    expected, eager_state = applied(rule.apply, rule, start, steps)
    for one, other in zip(leaves_of(got), leaves_of(expected), strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=4 * np.finfo(dtype).eps)
    assert state.get("step") == eager_state.get("step")


def test_steps_are_counted_without_compiling_anew():
    rule = gt.optim.Adam(lr=0.1)
    params = {"w": np.ones(3, np.float32)}
    state, compiled = rule.init(params), gt.jit(rule.apply)
    for _ in range(5):
        params, state = compiled(params, params, state)
    assert state["step"] == 5
    assert "1 form(s)" in repr(compiled)


def test_a_learning_rate_may_be_an_argument_of_a_compiled_step():
    @gt.jit
    def step(params, state, lr):
        rule = gt.optim.Adam(lr=lr)
        return rule.apply(params, gt.grad(lambda w: np.sum(w * w))(params), state)

    start = np.array([1.0, -2.0], np.float32)
    params, state = start, gt.optim.Adam().init(start)
    for lr in (0.5, 0.25):
        expected, expected_state = gt.optim.Adam(lr=lr).apply(params, 2 * params, state)
        params, state = step(params, state, lr)
        assert params.dtype == np.float32
        np.testing.assert_allclose(params, expected, rtol=1e-6)
        np.testing.assert_allclose(state["square"], expected_state["square"], rtol=1e-6)
    assert "1 form(s)" in repr(step)


def loss_after_training(rule):
    """The loss after steps from a fixed start; one parameter has no influence on it."""
    weights = np.array([1.0, 3.0, 0.0])

    def loss(params):
        return np.sum(weights * (params["w"] - 1.0) ** 2) + params["b"] ** 2 * np.sum(params["w"])

    params = {"w": np.array([3.0, -1.0, 0.0]), "b": np.array(0.5)}
    state = rule.init(params)
    for _ in range(STEPS):
        params, state = rule.apply(params, gt.grad(loss)(params), state)
    return loss(params)


HYPERPARAMETERS = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "weight_decay": 0.1, "nesterov": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "eps": 0.01, "weight_decay": 0.1}),
]


@pytest.mark.parametrize(("name", "numbers"), HYPERPARAMETERS)
@pytest.mark.parametrize("transform", [lambda f: f, gt.jit], ids=["eager", "compiled"])
def test_gradients_with_respect_to_the_numbers_of_a_rule(name, numbers, transform):
    def final(values):
        return loss_after_training(RULES[name](**{**numbers, **values}))

    values = {key: value for key, value in numbers.items() if key != "nesterov"}
    slopes = transform(gt.grad(final))(values)
    for key, slope in slopes.items():
        step = 1e-6
        ahead, behind = (final({**values, key: values[key] + h}) for h in (step, -step))
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-7), key


def test_gradients_with_respect_to_betas():
    def final(betas):
        return loss_after_training(gt.optim.Adam(lr=0.05, betas=betas))

    slopes, step = gt.grad(final)((0.9, 0.99)), 1e-6
    first = (final((0.9 + step, 0.99)) - final((0.9 - step, 0.99))) / (2 * step)
    second = (final((0.9, 0.99 + step)) - final((0.9, 0.99 - step))) / (2 * step)
    np.testing.assert_allclose(slopes, (first, second), rtol=1e-5)


def test_a_step_through_which_nothing_passed_has_no_nan():
    def moved(lr):
        rule = gt.optim.Adam(lr=lr)
        w = np.zeros(3)
        return gt.sum(rule.apply(w, lr * np.zeros(3), rule.init(w))[0])

    assert gt.grad(moved)(0.1) == 0.0
    # What is not a number stays so, which is how users notice.
    gradient = np.array([np.nan, 1.0])
    rule = gt.optim.Adam()
    for apply in (rule.apply, gt.jit(rule.apply)):
        got, _ = apply(np.ones(2), gradient, rule.init(np.ones(2)))
        np.testing.assert_array_equal(np.isnan(got), [True, False])


@pytest.mark.parametrize(("name", "numbers"), HYPERPARAMETERS)
def test_a_batch_of_learning_rates(name, numbers):
    def final(lr):
        return loss_after_training(RULES[name](**{**numbers, "lr": lr}))

    rates = np.array([0.01, 0.05, 0.1])
    np.testing.assert_allclose(gt.vmap(final)(rates), [final(lr) for lr in rates], rtol=1e-12)


def test_a_batch_of_states_goes_on_with_its_steps():
    rates, start = np.array([0.1, 0.2]), np.ones(3, np.float32)

    def step(lr, params, state):
        return gt.optim.Adam(lr=lr).apply(params, params, state)

    batch = gt.vmap(lambda lr: step(lr, start, gt.optim.Adam().init(start)))(rates)
    params, state = gt.vmap(step)(rates, *batch)
    np.testing.assert_array_equal(state["step"], [2, 2])
    assert params.dtype == np.float32
    for lr, got in zip(rates, params, strict=True):
        expected, held = step(lr, start, gt.optim.Adam().init(start))
        np.testing.assert_allclose(got, step(lr, expected, held)[0], rtol=1e-6)


def test_tensors_in_tensors_out():
    rule = gt.optim.SGD(lr=gt.tensor(0.5), momentum=0.5)
    params = [gt.tensor([1.0, 2.0], dtype=gt.float32)]
    params, state = rule.apply(params, [np.ones(2, np.float32)], rule.init(params))
    assert isinstance(params[0], gt.Tensor)
    assert isinstance(state["momentum"][0], gt.Tensor)
    assert params[0].dtype == gt.float32
    assert params[0].tolist() == [0.5, 1.5]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("transform", [lambda f: f, gt.jit], ids=["eager", "compiled"])
def test_narrow_dtypes_are_computed_in_float32(name, dtype, transform, rng):
    narrow = np.dtype(getattr(gt, dtype))
    value, gradient = (rng.normal(size=50).astype(narrow) for _ in range(2))
    rule = RULES[name](lr=0.01, weight_decay=0.1)
    got, state = transform(rule.apply)(value, gradient, rule.init(value))
    wide = [x.astype(np.float32) for x in (value, gradient)]
    expected, expected_state = rule.apply(*wide, rule.init(wide[0]))
    assert got.dtype == narrow
    np.testing.assert_array_equal(got, expected.astype(narrow))
    for slot in rule.slot_names(rule.defaults):
        assert state[slot].dtype == np.float32
        np.testing.assert_array_equal(state[slot], expected_state[slot])


def test_state_keeps_its_dtype_and_parameters_theirs():
    rule = gt.optim.SGD(lr=0.5, momentum=0.5)
    for dtype in (np.float16, np.float32):
        w = np.ones(2, dtype)
        params, state = rule.apply(w, np.ones(2), {"momentum": np.ones(2)})
        assert (params.dtype, state["momentum"].dtype) == (dtype, np.float64)
        np.testing.assert_array_equal(params, [0.25, 0.25])


@pytest.mark.parametrize(("name", "options"), FORMS)
def test_large_arrays_have_the_same_bits(name, options, rng):
    # They are compiled; a part of them is not.
    rule = RULES[name](**options)
    arrays = [rng.normal(size=(LARGE // 8, 8)).astype(np.float32) for _ in range(STEPS)]
    params, part = arrays[0], arrays[0][:5]
    state, part_state = rule.init(params), rule.init(part)
    for gradient in arrays:
        params, state = rule.apply(params, gradient, state)
        part, part_state = rule.apply(part, gradient[:5], part_state)
    assert params.dtype == np.float32
    np.testing.assert_array_equal(params[:5], part)
    for slot in rule.slot_names(rule.defaults):
        np.testing.assert_array_equal(state[slot][:5], part_state[slot])


def test_large_arrays_heed_the_error_state_of_numpy():
    rule = gt.optim.SGD(lr=10.0)
    w = np.full(LARGE, 1e38, np.float32)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        rule.apply(w, w, {})


def test_everything_works_without_llvmlite():
    code = f"""
import sys
sys.modules["llvmlite"] = None
import numpy as np, gradtape as gt
w = gt.tensor(np.ones({LARGE}, np.float32), requires_grad=True)
w.grad = gt.ones(w.shape, w.dtype)
gt.optim.Adam([w], lr=0.5).step()
assert np.allclose(w.detach().numpy(), 0.5)
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_rule_writes_into_nothing():
    rule = gt.optim.Adam(weight_decay=0.1)
    for size in (3, LARGE):
        arrays = [np.full(size, number) for number in (1.0, 2.0, 3.0, 4.0)]
        for array in arrays:
            array.flags.writeable = False
        state = {"step": 7, "mean": arrays[2], "square": arrays[3]}
        rule.apply(arrays[0], arrays[1], state)
        assert [array[0] for array in arrays] == [1.0, 2.0, 3.0, 4.0]
        assert [state["step"], id(state["mean"])] == [7, id(arrays[2])]


W = np.ones(3)
MOMENTUM = gt.optim.SGD(lr=0.1, momentum=0.9)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: MOMENTUM.apply({"w": W}, {"v": W}, {"momentum": {"w": W}}), ArgumentError, "'w'"),
        (lambda: MOMENTUM.apply([W], [W], {"momentum": [W, W]}), ArgumentError, "momentum for"),
        (lambda: MOMENTUM.apply([W, W], [W, None], {"momentum": [W, W]}), ArgumentError, "grad"),
        (
            lambda: MOMENTUM.apply(W, W, {}),
            ArgumentError,
            r"expected \['momentum'\]; make it by init",
        ),
        (
            lambda: MOMENTUM.apply(W, W[:2], {"momentum": W}),
            ShapeError,
            r"gradient of shape \(2,\)",
        ),
        (
            lambda: MOMENTUM.apply(W, W, {"momentum": W[:2]}),
            ShapeError,
            r"momentum of shape \(2,\)",
        ),
        (lambda: MOMENTUM.apply(W, 1j * W, {"momentum": W}), DTypeError, "complex128 gradient"),
        (lambda: MOMENTUM.init(np.arange(3)), DTypeError, "parameter of int64"),
        (lambda: MOMENTUM.init(0.5), DTypeError, r"parameter of float, .*use np\.asarray"),
        (lambda: MOMENTUM.init(["w"]), DTypeError, "parameter of str"),
        (lambda: gt.optim.SGD(lr=None), ArgumentError, "SGD: got no learning rate"),
        (lambda: gt.optim.SGD(lr=gt.ones(2)), ShapeError, r"lr of shape \(2,\)"),
        (
            lambda: gt.optim.Adam(betas=(0.9, 1.0)),
            ArgumentError,
            r"betas=\(0.9, 1.0\), expected two",
        ),
        (lambda: MOMENTUM.replace(momentum=2.0), ArgumentError, "SGD: got momentum=2.0"),
    ],
)
def test_what_a_rule_does_not_take(call, error, match):
    with pytest.raises(error, match=match):
        call()


# ---- classes over rules ----


def test_bad_gradients_leave_everything_as_it_was():
    good, bad = leaf(), leaf()
    optimizer = gt.optim.Adam([good, bad], lr=0.1)
    for param in (good, bad):
        param.grad = gt.ones(3)
    optimizer.step()
    before, states = good.tolist(), optimizer.state_dict()
    bad.value = np.ones(2)
    with pytest.raises(ShapeError, match="gradient of shape"):
        optimizer.step()
    assert good.tolist() == before
    bad.value = np.ones(3)
    for name, array in optimizer.state_dict().items():
        np.testing.assert_array_equal(array, states[name])


def test_states_of_another_optimizer_change_nothing():
    w = leaf()
    w.grad = gt.ones(3)
    optimizer = gt.optim.Adam([w], lr=0.1)
    optimizer.step()
    before = optimizer.state_dict()
    with pytest.raises(ArgumentError, match=r"no state '0\.square'"):
        optimizer.load_state_dict({"0.mean": np.ones(3), "0.step": 3})
    for name, array in optimizer.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_loaded_state_takes_the_dtype_of_its_parameter():
    w = gt.ones(3, np.float32, requires_grad=True)
    w.grad = gt.ones(3, np.float32)
    optimizer = gt.optim.SGD([w], lr=0.1, momentum=0.9)
    optimizer.load_state_dict({"0.momentum": np.ones(3)})
    optimizer.step()
    assert w.dtype == np.float32


def test_numbers_can_be_set_and_are_checked():
    optimizer = gt.optim.Adam(lr=0.5, betas=[0.5, 0.75])
    assert (optimizer.lr, optimizer.defaults["betas"]) == (0.5, (0.5, 0.75))
    optimizer.defaults["eps"] = 1e-3
    with pytest.raises(ArgumentError, match="Adam: got eps=-1"):
        optimizer.defaults["eps"] = -1
    assert optimizer.defaults["eps"] == 1e-3
    with pytest.raises(ArgumentError, match="got 'learning_rate', expected one of lr, betas"):
        optimizer.defaults["learning_rate"] = 0.1


def test_an_update_of_ones_own_over_that_of_a_class():
    class Clipped(gt.optim.SGD):
        @staticmethod
        def update(value, gradient, slots, factors):
            return gt.optim.SGD.update(value, np.clip(gradient, -1, 1), slots, factors)

    w = leaf()
    w.grad = gt.tensor([5.0, -5.0, 0.5])
    Clipped([w], lr=1.0, momentum=0.5).step()
    assert w.tolist() == [0.0, 2.0, 0.5]


@pytest.mark.parametrize("make", [gt.optim.Adam, gt.optim.SOAP])
def test_slots_follow_a_module_to_another_dtype(make):
    def steps(net, optimizer, count):
        for _ in range(count):
            optimizer.step([np.ones(p.shape, p.dtype) / 3 for p in net.parameters()])

    net = gt.nn.Linear(3, 2)
    optimizer = make(net.parameters(), lr=0.1)
    steps(net, optimizer, 2)
    net.double()
    state = {n: np.array(x, np.float64) for n, x in optimizer.state_dict().items() if n[0] != "g"}
    other = gt.nn.Linear(3, 2, dtype=gt.float64)
    other.load_state_dict(net.state_dict())
    same = make(other.parameters(), lr=0.1)
    same.load_state_dict(state)
    steps(net, optimizer, 2)
    steps(other, same, 2)
    assert optimizer.state_dict()["0.mean"].dtype == np.float64
    np.testing.assert_array_equal(net.weight.detach().numpy(), other.weight.detach().numpy())
