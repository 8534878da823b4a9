"""Optimizers of variables in an environment: the same steps as on tensors."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    VariableError,
)

SHAPES = {"w": (4, 3), "layer/b": (3,), "s": ()}
MAKERS = {
    "adam": (gt.optim.Adam, {"lr": 0.05}),
    "adam with decay": (gt.optim.Adam, {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    "sgd": (gt.optim.SGD, {"lr": 0.1}),
    "momentum": (gt.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
}


class Lazy:
    """A lazy tensor as far as optimizers know: something the context can evaluate."""

    def __init__(self, compute=None, variable=None):
        self.compute, self.variable = compute, variable


class FakeContext:
    """Evaluates lazy tensors with what was fed, and remembers how it was asked."""

    def __init__(self, env):
        self.variables, self.runs = env, []

    def variable(self, name):
        return Lazy(variable=self.variables.id_of(name))

    def variable_id(self, tensor):
        return tensor.variable

    def evaluator(self):
        return FakeEvaluator(self)


class FakeEvaluator:
    def __init__(self, context):
        self.context, self.targets, self.feeder = context, [], None

    def extend(self, targets):
        self.targets += targets
        return self

    def set_feeder(self, feeder):
        self.feeder = feeder
        return self

    def run(self):
        self.context.runs.append(len(self.targets))
        return [target.compute(self.feeder) for target in self.targets]


def start(rng, dtype=np.float64):
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in SHAPES.items()}


def environment(values):
    env = gt.VariableEnvironment()
    for name, value in values.items():
        env.name(name).set(value)
    return env, list(range(len(values)))


@pytest.fixture
def env():
    env = gt.VariableEnvironment()
    env.name("w").set(np.ones(2))
    env.name("b").set(np.zeros(3))
    env.name("count").set(5)
    return env


def values_of(env):
    return {name: array.tolist() for name, array in env}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex128])
def test_steps_are_those_on_tensors(rng, maker, dtype):
    kind, numbers = MAKERS[maker]
    values = start(rng, dtype)
    env, ids = environment(values)
    optimizer = kind.on_environment("own", ids, env, **numbers)
    params = [gt.tensor(value, requires_grad=True) for value in values.values()]
    eager = kind(params, **numbers)
    for step in range(5):
        grads = list(start(rng, dtype).values())
        chosen = ids if step != 2 else [0, 2]  # one has no gradient in the third step
        for number, param in enumerate(params):
            param.grad = gt.Tensor(grads[number]) if number in chosen else None
        eager.step()
        optimizer.update(chosen, [grads[number] for number in chosen])
    for number, param in enumerate(params):
        got, expected = env.array(number), param.detach().numpy()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


def test_lazy_gradients_are_evaluated_once_with_the_feeds(rng):
    env, ids = environment(start(rng))
    other, _ = environment(dict(env))
    optimizer = gt.optim.Adam.default("adam", ids, env)
    beside = gt.optim.Adam.default("adam", ids, other)
    ctx = FakeContext(env)
    scale = 3.0
    variables = [ctx.variable(name) for name in SHAPES]
    lazy = [Lazy(lambda fed, n=n: fed * env.array(n)) for n in ids]
    optimizer.update(variables, lazy, ctx, scale)
    beside.update(ids, [scale * other.array(n) for n in ids])
    assert ctx.runs == [3]
    assert values_of(env) == values_of(other)


def test_arrays_lazy_tensors_and_numbers_may_be_mixed(rng):
    env, _ = environment(start(rng))
    before = dict(env)
    sgd = gt.optim.SGD.on_environment("sgd", [0, 1, 2], env, lr=1.0)
    ctx = FakeContext(env)
    x = gt.tensor(np.ones((4, 3)), requires_grad=True)
    sgd.update(["w", 1, np.int64(2)], [x * 2, Lazy(lambda _: np.ones(3)), 4.0], ctx)
    np.testing.assert_array_equal(env.array(0), before["w"] - 2)
    np.testing.assert_array_equal(env.array(1), before["layer/b"] - 1)
    assert env.array(2) == before["s"] - 4


def test_state_is_in_its_namespace(rng):
    env, ids = environment(start(rng))
    gt.optim.Adam.default("adam", ids, env)
    assert env.namespace_names() == ["", "layer", "adam"]
    assert env.namespace("adam").current_var_names() == [
        f"{part}.{name}" for name in ("w", "layer.b", "s") for part in ("mean", "square", "step")
    ]
    assert env.default_namespace().current_var_names() == ["w", "s"]


def test_usual_numbers():
    env = gt.VariableEnvironment()
    number = env.set(1.0)
    assert gt.optim.Adam.default("adam", [number], env).lr == 0.01
    assert gt.optim.Adam.on_environment("other", [number], env).lr == 1e-3
    assert gt.optim.SGD.default("sgd", [number], env).lr == 0.01


def test_training_continues_from_a_file(rng, tmp_path):
    env, ids = environment(start(rng))
    gradients = [list(start(rng).values()) for _ in range(6)]
    adam = gt.optim.Adam.on_environment("adam", ids, env, lr=0.1)
    for grads in gradients[:3]:
        adam.update(ids, grads)
    env.save(tmp_path / "env")
    again = gt.VariableEnvironment.from_file(tmp_path / "env")
    fresh, _ = environment(start(rng))
    optimizers = [
        (env, adam),
        (again, gt.optim.Adam.on_environment("adam", ids, again, lr=0.1)),
        (fresh, gt.optim.Adam.on_environment("adam", ids, fresh, lr=0.1)),
    ]
    fresh.load(tmp_path / "env")
    assert len(again) == len(env)
    for own, optimizer in optimizers:
        for grads in gradients[3:]:
            optimizer.update(ids, grads)
        assert values_of(own) == values_of(env)


def test_the_learning_rate_can_be_set():
    env = gt.VariableEnvironment()
    number = env.set(1.0)
    sgd = gt.optim.SGD.on_environment("sgd", [number], env, lr=1.0)
    sgd.lr = 0.25
    sgd.update([number], [1.0])
    assert env.array(number) == 0.75
    assert repr(sgd) == "<SGD 'sgd', lr=0.25, 1 variables>"
    with pytest.raises(ArgumentError, match="lr=-1"):
        sgd.lr = -1


def test_rules_of_users():
    class Sign(gt.optim.Optimizer):
        @staticmethod
        def update(value, gradient, slots, factors):
            return value - factors[0] * np.sign(gradient), slots

    env = gt.VariableEnvironment()
    number = env.set([1.0, 2.0])
    Sign.on_environment("sign", [number], env, lr=0.5).update([number], [np.array([3.0, -4.0])])
    assert env.array(number).tolist() == [0.5, 2.5]
    with pytest.raises(ArgumentError, match="Sign: got no learning rate"):
        Sign.default("sign", [number], env)


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[:]])
def test_gradients_that_a_rule_keeps_stay_the_users(part):
    class Last(gt.optim.Optimizer):
        slots = ("last",)

        @staticmethod
        def update(value, gradient, slots, factors):
            return value - factors[0] * gradient, (part(gradient),)

    env = gt.VariableEnvironment()
    number = env.name("w").set(np.zeros(2))
    gradient = np.ones(2)
    Last.on_environment("last", [number], env, lr=1.0).update([number], [gradient])
    gradient[0] = 5.0
    assert env.array(env.id_of("last/last.w")).tolist() == [1, 1]


# ---- bad input: a clear error, nothing changed ----


@pytest.mark.parametrize(
    ("name", "ids", "error", "message"),
    [
        ("adam", [], ArgumentError, "no variables"),
        ("adam", [0, 9], VariableError, "got 9 among the variables, expected their ids"),
        ("adam", ["w"], VariableError, "got 'w' among"),
        ("adam", "w", ArgumentError, "a str as var_ids"),
        ("adam", 0, ArgumentError, "an int as var_ids"),
        ("adam", [0, 0], ArgumentError, "a variable twice"),
        ("adam", [0, 2], DTypeError, "a parameter of int64"),
        ("", [0], ArgumentError, "a namespace with other variables: w, b, count"),
        ("a//b", [0], ArgumentError, "printable names"),
        ("#", [0], ArgumentError, "begin with '#'"),
    ],
)
def test_bad_makings(env, name, ids, error, message):
    with pytest.raises(error, match=message):
        gt.optim.Adam.default(name, ids, env)
    assert len(env) == 3


def test_a_namespace_of_another_optimizer(env):
    gt.optim.Adam.default("own", [0], env)
    size = len(env)
    for make in (
        lambda: gt.optim.Adam.default("own", [1], env),
        lambda: gt.optim.Adam.default("own", [0, 1], env),
        lambda: gt.optim.SGD.on_environment("own", [0], env, lr=1.0, momentum=0.5),
        lambda: gt.optim.SGD.default("own", [0], env),
    ):
        with pytest.raises(ArgumentError, match=r"'own', a namespace .* choose another name"):
            make()
    assert len(env) == size


def test_state_of_another_shape_is_not_continued(env):
    for part, value in (("mean", np.zeros(2)), ("square", np.zeros(3)), ("step", 0)):
        env.name(f"adam/{part}.w").set(value)
    with pytest.raises(ShapeError, match=r"float64\[3\] in 'adam/square.w', expected float64\[2\]"):
        gt.optim.Adam.default("adam", [0], env)


def test_names_of_states_do_not_collide():
    env = gt.VariableEnvironment()
    env.name("a/w").set(1.0)
    env.name("a.w").set(1.0)
    with pytest.raises(ArgumentError, match=r"two variables .* 'mean.a.w'"):
        gt.optim.Adam.default("adam", [0, 1], env)
    assert len(env) == 2


@pytest.mark.parametrize(
    ("variables", "grads", "error", "message"),
    [
        ([0, 1], [np.ones(2)], ArgumentError, "got 1 gradients for 2 variables"),
        ([0], [np.ones(2), np.ones(3)], ArgumentError, "got 2 gradients for 1 variables"),
        ([0, 0], [np.ones(2)] * 2, ArgumentError, "a variable twice"),
        ([0, 2], [np.ones(2), 1], ArgumentError, "got variable 'count', .* w, b$"),
        (["count"], [1], ArgumentError, "got variable 'count'"),
        (["x"], [1], VariableError, "got 'x'"),
        ([77], [1], ArgumentError, "got variable 77"),
        ([True], [np.ones(3)], ArgumentError, "a bool as a variable"),
        ([0, 1], [np.ones(2), np.ones(2)], ShapeError, r"of shape \(2,\), expected .* \(3,\)"),
        ([0, 1], [np.ones(2), 1j * np.ones(3)], DTypeError, "a complex128 gradient"),
        ([0], [["a", "b"]], ArgumentError, "a list as a gradient without a context"),
        ([0], [np.array(["a", "b"])], DTypeError, "gradient of <U1"),
        ([0], [None], ArgumentError, "a NoneType as a gradient without a context"),
        ([0], [Lazy()], ArgumentError, "a Lazy as a gradient without a context"),
        ([Lazy()], [np.ones(2)], ArgumentError, "a Lazy as a variable without a context"),
        (np.array([0]), [np.ones(2)], ArgumentError, "an ndarray as variables"),
        ([0], np.ones((1, 2)), ArgumentError, "an ndarray as grads"),
    ],
)
def test_bad_updates_change_nothing(env, variables, grads, error, message):
    adam = gt.optim.Adam.default("adam", [0, 1], env)
    before = values_of(env)
    with pytest.raises(error, match=message):
        adam.update(variables, grads)
    assert values_of(env) == before


def test_an_evaluation_that_fails_changes_nothing(env):
    adam = gt.optim.Adam.default("adam", [0, 1], env)
    before = values_of(env)
    with pytest.raises(ZeroDivisionError):
        adam.update([0, 1], [np.ones(2), Lazy(lambda _: 1 / 0)], FakeContext(env))
    assert values_of(env) == before


def test_a_context_of_another_environment_is_refused(env):
    other = gt.VariableEnvironment()
    other.name("w").set(np.ones(2))
    adam = gt.optim.Adam.default("adam", [0], env)
    ctx = FakeContext(other)
    with pytest.raises(ArgumentError, match="a context of another environment"):
        adam.update([ctx.variable("w")], [np.ones(2)], ctx)


def test_what_is_no_environment():
    with pytest.raises(ArgumentError, match=r"a dict, expected a gt\.VariableEnvironment"):
        gt.optim.Adam.default("adam", [0], {})


def test_an_update_in_a_run_of_another_environment_is_refused():
    environments = [gt.VariableEnvironment(), gt.VariableEnvironment()]
    for env in environments:
        env.name("w").set(np.ones(3))
    first, second = environments
    adam = gt.optim.Adam.default("adam", first.default_namespace().current_var_ids(), first)

    def step(ctx):
        w = ctx.variable("w")
        adam.update([w], gt.graph.grad([gt.sum(w * w)], [w]), ctx)

    first.run(step)
    moved = first.array(first.id_of("w")).copy()
    with pytest.raises(gt.GradtapeError, match="environment"):
        second.run(step)
    np.testing.assert_array_equal(first.array(first.id_of("w")), moved)
    np.testing.assert_array_equal(second.array(second.id_of("w")), np.ones(3))
