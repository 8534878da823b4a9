"""Schedules: as functions of the step, in rules, and under PyTorch's names."""

import numpy as np
import pytest

import gradtape as gt
from gradtape import optim
from gradtape.errors import ArgumentError, DTypeError, NonFiniteError, UnsupportedError

STEPS = 200

SCHEDULES = [
    optim.constant(0.1),
    optim.linear(0.01, 0.1, 30),
    optim.staircase(0.1, 30, 0.5),
    optim.milestones(0.1, [5, 5, 80], 0.5),
    optim.exponential(0.1, 0.97),
    optim.polynomial(0.1, 50, 2.0, 0.01),
    optim.cosine(0.1, 50, 0.01),
    optim.cosine(0.1, 50, periodic=True),
    optim.cosine_restarts(0.1, 10, 2, 0.01),
    optim.cosine_restarts(0.1, 7),
    optim.one_cycle(0.1, 150),
    optim.one_cycle(0.1, 150, shape="linear", back=True),
    optim.warmup(optim.cosine(0.1, 100), 20, 0.01),
    optim.sequence([0.1, optim.exponential(0.1, 0.9), lambda step: 0.01 / (1 + step)], [10, 60]),
    optim.product(optim.linear(0.1, 1.0, 20), optim.exponential(0.1, 0.99)),
]


# ---- as functions ----


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_a_traced_step_gives_the_same(schedule):
    steps = np.arange(0, STEPS, 7)
    compiled = gt.jit(lambda step: schedule(step) * np.ones(()))
    expected = [schedule(int(step)) for step in steps]
    np.testing.assert_allclose([compiled(int(n)) for n in steps], expected, rtol=1e-13, atol=1e-17)
    batched = gt.vmap(lambda step: schedule(step) * np.ones(()))(steps)
    np.testing.assert_allclose(batched, expected, rtol=1e-13, atol=1e-17)
    assert all(type(x) is float for x in expected)


def test_known_values():
    cosine = optim.cosine(0.1, 10, end=0.02)
    assert cosine(0) == 0.1
    assert cosine(5) == pytest.approx(0.06)
    assert cosine(10) == cosine(1000) == pytest.approx(0.02)
    restarts = optim.cosine_restarts(1.0, 3, 3)
    assert [restarts(n) for n in (0, 3, 12, 39)] == [1.0] * 4
    assert restarts(38) == pytest.approx((1 + np.cos(np.pi * 26 / 27)) / 2)
    assert optim.warmup(0.5, 4)(1) == 0.125
    cycle = optim.one_cycle(1.0, 100, start=0.1, end=0.01)
    assert (cycle(0), cycle(29), cycle(99), cycle(500)) == pytest.approx((0.1, 1.0, 0.01, 0.01))


def test_slopes_by_numbers_of_a_schedule():
    slope = gt.grad(lambda lr: optim.cosine(lr, 10)(3))(0.1)
    assert slope == pytest.approx((1 + np.cos(0.3 * np.pi)) / 2)


def test_schedules_are_shown_and_compared():
    assert repr(optim.product(optim.constant(0.5), 2.0)) == "product(constant(lr=0.5), 2.0)"
    assert optim.cosine(0.1, 5) == optim.cosine(0.1, steps=5)
    assert optim.cosine(0.1, 5) != optim.cosine(0.1, 6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.constant(-1.0), "lr=-1.0"),
        (lambda: optim.linear(0.0, 1.0, 0), "steps=0"),
        (lambda: optim.cosine(0.1, 1.5), "steps"),
        (lambda: optim.milestones(0.1, 5), "at=5"),
        (lambda: optim.sequence([0.1, 0.2], []), "the start of each"),
        (lambda: optim.sequence([0.1, 0.2, 0.3], [5, 5]), "increasing"),
        (lambda: optim.sequence(["cos"], []), "expected a schedule or a number"),
        (lambda: optim.product(), "at least one"),
        (lambda: optim.one_cycle(0.1, 10, shape="sine"), "shape='sine'"),
        (lambda: optim.one_cycle(0.1, 10, rise=0.7, back=True), "rise=0.7"),
        (lambda: optim.Plateau(factor=1.0), "factor=1.0"),
        (lambda: optim.Plateau(mode="low"), "mode='low'"),
        (lambda: optim.Plateau(patience=-1), "patience=-1"),
        (lambda: optim.Plateau(threshold=1.0), "threshold=1.0"),
    ],
)
def test_bad_schedules(make, message):
    with pytest.raises((ArgumentError, DTypeError), match=message):
        make()


# ---- as numbers of optimizers ----


# Many elements are stepped by a native kernel, which is kept from step to step.
@pytest.mark.parametrize("size", [5, 700])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Lion", "NAdam"])
def test_optimizers_take_schedules(name, size, rng):
    make, schedule = getattr(optim, name), optim.cosine(0.1, 6)
    start, grads = rng.normal(size=size), rng.normal(size=(8, size))
    # A rate that is set before each step is what the schedule has to agree with.
    w = gt.tensor(start, requires_grad=True)
    by_hand = make([w], lr=0.1)
    for step, gradient in enumerate(grads):
        by_hand.lr = schedule(step)
        by_hand.step([gradient])
    v = gt.tensor(start, requires_grad=True)
    optimizer = make([v], lr=schedule)
    for gradient in grads:
        v.grad = gt.Tensor(gradient)
        optimizer.step()
    np.testing.assert_allclose(v.detach(), w.detach(), rtol=1e-14)
    pure = make(lr=schedule)
    for step in (pure.apply, gt.jit(pure.apply)):
        x, state = start, pure.init(start)
        for gradient in grads:
            x, state = step(x, gradient, state)
        np.testing.assert_allclose(x, w.detach(), rtol=1e-12)
        assert state["step"] == 8


def test_a_momentum_that_is_zero_for_once_is_still_remembered():
    optimizer = optim.SGD(lr=0.1, momentum=lambda step: 0.0 if step == 1 else 0.5)
    x, state = np.zeros(2), optimizer.init(np.zeros(2))
    for _ in range(3):
        x, state = optimizer.apply(x, np.ones(2), state)
    np.testing.assert_allclose(x, -0.1 * (1 + 1 + 1.5))


def test_a_schedule_is_not_in_the_state_but_the_step_is():
    def make():
        return optim.SGD([gt.ones(2, requires_grad=True)], lr=optim.exponential(0.1, 0.5))

    one, other = make(), make()
    for _ in range(3):
        one.step([np.ones(2)])
    state = one.state_dict()
    assert "groups.0.lr" not in state
    assert state["0.step"] == 3
    other.load_state_dict(state)
    other.step([np.ones(2)])
    np.testing.assert_allclose(other.params[0].detach(), 1 - 0.1 * 0.125)


def test_variables_follow_a_schedule():
    env = gt.VariableEnvironment()
    w = env.name("w").set(np.zeros(2))
    optimizer = optim.SGD.on_environment("sgd", [w], env, lr=optim.staircase(1.0, 1, 0.5))
    for _ in range(3):
        optimizer.update([w], [np.ones(2)])
    np.testing.assert_array_equal(env.array(w), -1.75)
    assert env.namespace("sgd").current_var_names() == ["step.w"]


def test_a_schedule_without_a_number_changes_nothing():
    w = gt.ones(2, requires_grad=True)
    for lr, message in [
        (lambda step: np.nan, "nan from the schedule of lr at step 0"),
        (repr, "lr"),
    ]:
        with pytest.raises((ArgumentError, DTypeError), match=message):
            optim.SGD([w], lr=lr).step([np.ones(2)])
    np.testing.assert_array_equal(w.detach(), [1, 1])


# ---- against PyTorch ----


def forms(module):
    """Schedulers of one library by name; both have the same signatures."""

    def sequential(optimizer):
        parts = [
            module.LinearLR(optimizer, 0.1, total_iters=10),
            module.CosineAnnealingLR(optimizer, 60, 1e-3),
            module.ExponentialLR(optimizer, 0.98),
        ]
        return module.SequentialLR(optimizer, parts, [10, 90])

    def chained(optimizer):
        parts = [
            module.ConstantLR(optimizer, 0.1, 20),
            module.ExponentialLR(optimizer, 0.99),
            module.LinearLR(optimizer, 0.5, total_iters=50),
            module.StepLR(optimizer, 30, 0.7),
            module.CosineAnnealingLR(optimizer, 40, 1e-3),
        ]
        return module.ChainedScheduler(parts)

    return {
        "constant": lambda o: module.ConstantLR(o, 0.25, 10),
        "linear": lambda o: module.LinearLR(o, 0.1, 0.9, 50),
        "step": lambda o: module.StepLR(o, 17, 0.7),
        "multistep": lambda o: module.MultiStepLR(o, [10, 10, 50, 150], 0.6),
        "exponential": lambda o: module.ExponentialLR(o, 0.98),
        "polynomial": lambda o: module.PolynomialLR(o, 120, 0.9),
        "lambda": lambda o: module.LambdaLR(o, lambda n: 1 / (1 + 0.1 * n)),
        "cosine": lambda o: module.CosineAnnealingLR(o, 45, 1e-3),
        "restarts": lambda o: module.CosineAnnealingWarmRestarts(o, 9, 1, 1e-3),
        "longer restarts": lambda o: module.CosineAnnealingWarmRestarts(o, 9, 3, 1e-3),
        "one cycle": lambda o: module.OneCycleLR(o, 0.3, total_steps=STEPS + 1),
        "one cycle, three phases": lambda o: module.OneCycleLR(
            o, 0.3, epochs=10, steps_per_epoch=21, three_phase=True, anneal_strategy="linear"
        ),
        "sequential": sequential,
        "chained": chained,
    }


@pytest.mark.parametrize("name", forms(optim))
def test_rates_against_torch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def rates(make, optimizer):
        scheduler, found = make(optimizer), []
        for _ in range(STEPS):
            optimizer.step()
            scheduler.step()
            group = optimizer.param_groups[0]
            found.append([*scheduler.get_last_lr(), group["lr"], group["momentum"]])
        return found

    w, v = gt.ones(2, requires_grad=True), gt.ones(2, requires_grad=True)
    ours = optim.SGD([{"params": [w]}, {"params": [v], "lr": 0.03}], lr=0.2, momentum=0.9)
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    theirs = torch.optim.SGD([{"params": [x]}, {"params": [y], "lr": 0.03}], lr=0.2, momentum=0.9)
    expected = rates(forms(torch.optim.lr_scheduler)[name], theirs)
    np.testing.assert_allclose(rates(forms(optim)[name], ours), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_training_with_one_cycle_against_torch(name, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    start, grads = rng.normal(size=7), rng.normal(size=(100, 7))

    def trained(module, optimizers, w, as_gradient):
        optimizer = getattr(optimizers, name)([w], **options)
        scheduler = module.OneCycleLR(optimizer, 0.2, total_steps=110)
        for gradient in grads:
            w.grad = as_gradient(gradient)
            optimizer.step()
            scheduler.step()
        return w.detach().numpy()

    w, v = gt.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    expected = trained(torch.optim.lr_scheduler, torch.optim, v, torch.tensor)
    np.testing.assert_allclose(trained(optim, optim, w, gt.Tensor), expected, rtol=1e-9)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateaus_against_torch(mode, threshold_mode, rng):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    options = {"mode": mode, "threshold_mode": threshold_mode, "factor": 0.6, "patience": 2}
    options |= {"cooldown": 3, "threshold": 0.01, "min_lr": [1e-3, 0.01]}
    losses = 1 + rng.random(STEPS) * 0.9 ** np.arange(STEPS)
    ours = optim.SGD(
        [{"params": [gt.ones(2, requires_grad=True)], "lr": lr} for lr in (0.2, 0.5)], lr=0.1
    )
    theirs = torch.optim.SGD(
        [{"params": [torch.ones(2, requires_grad=True)], "lr": lr} for lr in (0.2, 0.5)]
    )
    one = optim.ReduceLROnPlateau(ours, **options)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    for loss in losses:
        one.step(loss)
        other.step(loss)
        np.testing.assert_allclose(one.get_last_lr(), other.get_last_lr(), rtol=1e-13)
    assert one.get_last_lr() == [1e-3, 0.01]


def test_plateaus_in_a_compiled_function():
    plateau = optim.Plateau(factor=0.5, patience=1, cooldown=2)
    compiled = gt.jit(plateau.apply)
    one, other, state, other_state = 0.1, 0.1, plateau.init(), plateau.init()
    for loss in (1.0, 0.5, 0.5, 0.6, 0.4, 0.4, 0.4, 0.4, 0.4, np.nan, np.nan):
        one, state = plateau.apply(one, loss, state)
        other, other_state = compiled(other, loss, other_state)
        assert float(other) == one
        assert {name: float(x) for name, x in other_state.items()} == state
    assert one == 0.1 * 0.5**2


# ---- objects ----


def test_momentum_of_one_cycle_with_adam():
    optimizer = optim.Adam([gt.ones(2, requires_grad=True)], lr=0.1)
    scheduler = optim.OneCycleLR(optimizer, 0.1, total_steps=20)
    assert optimizer.param_groups[0]["betas"] == (0.95, 0.999)
    for _ in range(5):
        scheduler.step()
    assert optimizer.param_groups[0]["betas"] == (0.85, 0.999)
    with pytest.raises(ArgumentError, match="cycle_momentum=False"):
        optim.OneCycleLR(optim.Adagrad([gt.ones(2, requires_grad=True)]), 0.1, total_steps=20)


@pytest.mark.parametrize("name", [*forms(optim), "plateau"])
def test_states_continue(name):
    made = {**forms(optim), "plateau": lambda o: optim.ReduceLROnPlateau(o, factor=0.5, patience=3)}

    def start():
        optimizer = optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1, momentum=0.9)
        return optimizer, made[name](optimizer)

    def steps(optimizer, scheduler, count):
        loss = (1.0,) if name == "plateau" else ()
        found = []
        for _ in range(count):
            scheduler.step(*loss)
            found.append([optimizer.lr, optimizer.param_groups[0]["momentum"]])
        return found

    whole = steps(*start(), 25)
    first = start()
    steps(*first, 12)
    second = start()
    second[1].load_state_dict(first[1].state_dict())
    assert second[0].lr == whole[11][0]
    np.testing.assert_allclose(steps(*second, 13), whole[12:], rtol=1e-14)
    before = second[1].state_dict()
    with pytest.raises(ArgumentError, match="expected"):
        second[1].load_state_dict({"momentum": 1})
    assert second[1].state_dict() == before


def test_a_state_of_other_numbers_is_refused():
    optimizer = optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    scheduler = optim.ExponentialLR(optimizer, 0.5)
    scheduler.step()
    again = optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    again.load_state_dict(optimizer.state_dict())
    late = optim.ExponentialLR(again, 0.5)  # it would begin from 0.05
    with pytest.raises(ArgumentError, match=r"before optimizer\.load_state_dict"):
        late.load_state_dict(scheduler.state_dict())
    assert late.last_epoch == 0


def test_states_survive_a_file(tmp_path):
    optimizer = optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    scheduler = optim.StepLR(optimizer, 1, 0.5)
    scheduler.step()
    gt.save(tmp_path / "s.safetensors", scheduler.state_dict())
    again = optim.StepLR(optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1), 1, 0.5)
    again.load_state_dict(gt.load(tmp_path / "s.safetensors", like=scheduler.state_dict()))
    assert again.get_last_lr() == [0.05]
    assert again.last_epoch == 1


def test_two_schedulers_multiply_and_manual_changes_stay():
    optimizer = optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    one, other = optim.ExponentialLR(optimizer, 0.5), optim.StepLR(optimizer, 2, 0.1)
    for _ in range(2):
        one.step()
        other.step()
    assert optimizer.lr == pytest.approx(0.1 * 0.25 * 0.1)
    optimizer.lr = 1.0
    one.step()
    assert optimizer.lr == pytest.approx(0.5)


def test_a_scheduler_reaches_compiled_steps_without_compiling_again():
    optimizer = optim.SGD(lr=0.1)
    scheduler = optim.ExponentialLR(optimizer, 0.5)
    traced = []

    @gt.jit
    def step(w):
        traced.append(1)
        return optimizer.apply(w, np.ones(2), {})[0]

    w = np.zeros(2)
    for _ in range(3):
        w = step(w)
        scheduler.step()
    np.testing.assert_allclose(w, -0.175, rtol=1e-6)
    assert len(traced) == 1


def test_bad_schedulers():
    optimizer = optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    other = optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)
    scheduler = optim.StepLR(optimizer, 5)
    for make, message in [
        (lambda: optim.StepLR(0.1, 5), "expected an optimizer"),
        (lambda: optim.LRScheduler(optimizer, 0.1), "function of the step"),
        (lambda: optim.LambdaLR(optimizer, [abs] * 3), "3 values for 1 groups"),
        (lambda: optim.SequentialLR(other, [scheduler], []), "another optimizer"),
        (lambda: optim.ChainedScheduler([]), "no scheduler"),
        (lambda: optim.OneCycleLR(optimizer, 0.1), "no number of steps"),
        (lambda: optim.OneCycleLR(optimizer, 0.1, 9, div_factor=0), "div_factor=0"),
        (lambda: optim.OneCycleLR(optimizer, "a", 9), r"max_lr\[0\]='a'"),
        (lambda: optim.ConstantLR(optimizer, "a"), "factor='a', expected a real number"),
        (lambda: optim.LinearLR(optimizer, -1.0), "start_factor=-1.0"),
    ]:
        with pytest.raises((ArgumentError, DTypeError), match=message):
            make()
        assert optimizer.lr == 0.1
    with pytest.raises(UnsupportedError, match="expected a scheduler by the step"):
        optim.ChainedScheduler([optim.ReduceLROnPlateau(optimizer)])
    plateau = optim.ReduceLROnPlateau(optimizer)
    before = plateau.state_dict()
    with pytest.raises(NonFiniteError, match="nan"):
        plateau.step(float("nan"))
    assert plateau.state_dict() == before
    optimizer.add_param_group({"params": [gt.ones(1, requires_grad=True)]})
    with pytest.raises(ArgumentError, match="after the groups"):
        scheduler.step()


@pytest.mark.parametrize(
    ("make", "name", "values"),
    [
        (lambda **numbers: optim.Adam(lr=0.1, **numbers), "betas", [(0.9, 0.99), (0.8, 0.9)]),
        (lambda **numbers: optim.SGD(lr=0.1, **numbers), "momentum", [0.9, 0.8]),
    ],
    ids=["betas", "momentum"],
)
def test_a_number_that_changes_again_does_not_compile_anew(make, name, values):
    first, *others = values
    opt, traced = make(**{name: first}), []

    @gt.jit
    def step(w, grads, state):
        traced.append(1)
        return opt.apply(w, grads, state)

    w, grads = np.array([1.0, -2.0]), np.array([0.3, 0.1])
    state = opt.init(w)
    step(w, grads, state)
    for n, value in enumerate([*others, first, *others, first]):
        opt.defaults[name] = value
        found, expected = step(w, grads, state), make(**{name: value}).apply(w, grads, state)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        assert len(traced) == 2, n


def test_a_number_that_becomes_zero_compiles_anew():
    opt = optim.SGD(lr=0.1, weight_decay=0.1)
    step = gt.jit(lambda w, grads: opt.apply(w, grads, opt.init(w))[0])
    w, grads = np.array([1.0, -2.0]), np.array([0.3, 0.1])
    for decay in (0.2, 0.0, 0.3, 0.0):
        step(w, grads)
        opt.defaults["weight_decay"] = decay
        np.testing.assert_allclose(step(w, grads), w - 0.1 * (grads + decay * w), rtol=1e-12)
