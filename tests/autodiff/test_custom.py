"""`custom_vjp` and `custom_jvp`: functions with rules of their own, recorded like built-in ones."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import GradtapeError, NotDifferentiableError, ShapeError

X = np.array([0.5, 1.0, 2.0])


def make_cube():
    """x³ with the rule 30·x²: a factor of ten shows that the rule was used."""

    @gt.custom_vjp
    def cube(x):
        """The cube."""
        return x**3

    @cube.defvjp
    def _(ct, out, x):
        return (30.0 * x**2 * ct,)

    return cube


def make_cube_forward():
    @gt.custom_jvp
    def cube(x):
        return x**3

    @cube.defjvp
    def _(tangents, out, x):
        return 30.0 * x**2 * tangents[0]

    return cube


def make_both():
    cube = make_cube()

    @cube.defjvp
    def _(tangents, out, x):
        return 30.0 * x**2 * tangents[0]

    return cube


MAKERS = {"vjp": make_cube, "jvp": make_cube_forward, "both": make_both}
any_rule = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


# ---- the rule is used ---------------------------------------------------------------------------


@any_rule
def test_values_are_those_of_the_function(make):
    cube = make()
    assert cube.__name__ == "cube"
    assert cube(2.0) == 8.0
    assert type(cube(X)) is np.ndarray
    np.testing.assert_array_equal(cube(X), X**3)
    out = cube(gt.tensor(X))
    assert isinstance(out, gt.Tensor)
    assert not out.requires_grad


@any_rule
def test_reverse_mode_uses_the_rule(make):
    cube = make()
    assert gt.grad(cube)(2.0) == 120.0
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(cube(x) * X))(X), 30 * X**3)
    x = gt.tensor(X, requires_grad=True)
    gt.compute_gradients(cube(x))
    np.testing.assert_array_equal(np.asarray(x.grad), 30 * X**2)
    tape = gt.GradientTape()
    x = tape.watch(2.0)
    assert tape.gradient(cube(x), x).item() == 120.0


@pytest.mark.parametrize("make", [make_cube_forward, make_both], ids=["jvp", "both"])
def test_forward_mode_uses_the_rule(make):
    cube = make()
    assert gt.jvp(cube, (2.0,), (1.0,)) == (8.0, 120.0)
    np.testing.assert_array_equal(gt.jacfwd(cube)(X), np.diag(30 * X**2))
    tape = gt.GradientTape()
    x = tape.watch(2.0)
    assert tape.forward_gradient(x, cube(x)).item() == 120.0


@any_rule
def test_rules_are_differentiable_again(make):
    cube = make()
    assert gt.grad(gt.grad(cube))(2.0) == 120.0
    assert gt.grad(gt.grad(gt.grad(cube)))(2.0) == 60.0
    x = gt.tensor(2.0, requires_grad=True)
    cube(x).backward(create_graph=True)
    slope, x.grad = x.grad, None
    slope.backward()
    assert x.grad.item() == 120.0


@pytest.mark.parametrize("make", [make_cube_forward, make_both], ids=["jvp", "both"])
def test_every_mix_of_modes(make):
    cube = make()

    def forward(f):
        return lambda x: gt.jvp(f, (x,), (1.0,))[1]

    for outer in (gt.grad, forward):
        for inner in (gt.grad, forward):
            assert outer(inner(cube))(2.0) == 120.0


# ---- containers, several arguments and results --------------------------------------------------


@pytest.fixture
def affine():
    """Containers in and out; the rules are the true ones, with a factor of ten."""

    @gt.custom_vjp
    def affine(p, x, *, scale=1.0):
        y = p["w"] * x * scale
        return {"y": y, "total": (np.sum(y), p["b"])}

    @affine.defvjp
    def _(ct, out, p, x):
        by_y = ct["y"] + ct["total"][0]
        return {"w": 10 * by_y * x, "b": 10 * ct["total"][1]}, 10 * by_y * p["w"]

    return affine


def test_containers_in_and_out(affine):
    p = {"w": X, "b": 3.0}
    out = affine(p, X)
    np.testing.assert_array_equal(out["y"], X * X)
    assert out["total"] == (np.sum(X * X), 3.0)

    def loss(p, x):
        out = affine(p, x)
        return np.sum(out["y"]) + 2.0 * out["total"][0] + 5.0 * out["total"][1]

    by_p, by_x = gt.grad(loss, (0, 1))(p, X)
    np.testing.assert_array_equal(by_p["w"], 30 * X)
    assert by_p["b"] == 50.0
    np.testing.assert_array_equal(by_x, 30 * X)


def test_an_unused_output_has_a_zero_cotangent(affine):
    slope = gt.grad(lambda x: affine({"w": X, "b": 3.0}, x)["total"][0])(X)
    np.testing.assert_array_equal(slope, 10 * X)


def test_keyword_arguments_are_constants(affine):
    assert affine({"w": 2.0, "b": 3.0}, 5.0, scale=7.0)["y"] == 70.0


def test_several_outputs_with_a_forward_rule():
    @gt.custom_jvp
    def both(x, y):
        return x * y, [x + y]

    @both.defjvp
    def _(tangents, out, x, y):
        dx, dy = tangents
        return 10 * (dx * y + x * dy), [10 * (dx + dy)]

    out, tangent = gt.jvp(both, (2.0, 3.0), (1.0, 0.0))
    assert out == (6.0, [5.0])
    assert tangent == (30.0, [10.0])
    assert gt.grad(lambda x, y: both(x, y)[0] + both(x, y)[1][0], (0, 1))(2.0, 3.0) == (40.0, 30.0)


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_integer_arguments_have_no_derivative(kind):
    if kind == "vjp":
        f = gt.custom_vjp(lambda x, n: x**n)
        f.defvjp(lambda ct, out, x, n: (ct * 10 * n * x ** (n - 1), None))
    else:
        f = gt.custom_jvp(lambda x, n: x**n)
        f.defjvp(lambda tangents, out, x, n: tangents[0] * 10 * n * x ** (n - 1))
    assert gt.grad(f)(2.0, 3) == 120.0
    np.testing.assert_array_equal(
        gt.grad(lambda x: np.sum(f(x, np.array([1, 2, 3]))))(X),
        10 * np.array([1, 2, 3]) * X ** [0, 1, 2],
    )


def test_none_is_a_zero_cotangent():
    f = gt.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda ct, out, x, y: (ct * y, None))
    by_x, by_y = gt.grad(lambda x, y: np.sum(f(x, y)), (0, 1))(X, X + 1)
    np.testing.assert_array_equal(by_x, X + 1)
    np.testing.assert_array_equal(by_y, np.zeros(3))
    assert type(by_y) is np.ndarray


def test_a_rule_may_return_what_it_was_given():
    f = gt.custom_vjp(lambda x, y: x + y)
    f.defvjp(lambda ct, out, x, y: (ct, x))
    x, y, ct = X.copy(), X + 1, np.ones(3)
    by_x, by_y = gt.vjp(f, x, y)[1](ct)
    np.testing.assert_array_equal(by_x, ct)
    np.testing.assert_array_equal(by_y, x)
    arrays = [by_x, by_y, x, y, ct]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[i + 1 :])


def test_a_function_may_return_its_argument():
    f = gt.custom_vjp(lambda x: x)
    f.defvjp(lambda ct, out, x: (10 * ct,))
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(f(x) * x))(X), 11 * X)
    out = f(x := X.copy())
    assert out is x or not np.shares_memory(out, x)


def test_a_function_of_plain_numpy_without_our_ops():
    @gt.custom_vjp
    def sort(x):
        return np.sort(x)  # has no counterpart in gradtape

    @sort.defvjp
    def _(ct, out, x):
        return (ct[np.argsort(np.argsort(np.asarray(x.detach() if hasattr(x, "detach") else x)))],)

    point = np.array([3.0, 1.0, 2.0])
    weights = np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(gt.grad(lambda x: sort(x) @ weights)(point), [100, 1, 10])


def test_a_rule_may_differentiate():
    f = gt.custom_vjp(lambda x: x**3)
    f.defvjp(lambda ct, out, x: (ct * gt.grad(lambda v: np.sum(v**3))(x),))
    np.testing.assert_allclose(gt.grad(lambda x: np.sum(f(x)))(X), 3 * X**2)
    np.testing.assert_allclose(gt.jacrev(gt.grad(lambda x: np.sum(f(x))))(X), np.diag(6 * X))


def test_a_rule_may_walk_the_tape_that_is_being_walked():
    x = gt.tensor(X, requires_grad=True)
    shared = np.exp(x)
    other = gt.sum(shared * shared)
    f = gt.custom_vjp(lambda h: h * 1.0)
    f.defvjp(lambda ct, out, h: (other.backward() or ct,))
    gt.sum(f(shared) + shared).backward()
    np.testing.assert_allclose(np.asarray(x.grad), 2 * np.exp(X) + 2 * np.exp(2 * X))


def test_a_rule_that_fails_leaves_nothing_behind():
    broken = [True]
    f = gt.custom_vjp(lambda x: (x * 1.0, x * 2.0))

    @f.defvjp
    def _(ct, out, x):
        if broken[0]:
            raise ZeroDivisionError
        return (ct[0] + 2.0 * ct[1],)

    x = gt.tensor(X, requires_grad=True)
    h = x * 1.0
    one, two = f(h)
    loss = gt.sum(one * two + h * h)
    with pytest.raises(ZeroDivisionError):
        loss.backward()
    assert x.grad is None
    broken[0] = False
    loss.backward()
    np.testing.assert_allclose(np.asarray(x.grad), 6 * X)


# ---- batches ------------------------------------------------------------------------------------


@any_rule
def test_vmap_outside_and_inside(make):
    cube = make()
    np.testing.assert_array_equal(gt.vmap(cube)(X), X**3)
    np.testing.assert_array_equal(gt.vmap(gt.grad(cube))(X), 30 * X**2)
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(gt.vmap(cube)(x)))(X), 30 * X**2)
    np.testing.assert_array_equal(gt.jacrev(cube)(X), np.diag(30 * X**2))
    np.testing.assert_array_equal(gt.vmap(gt.grad(gt.grad(cube)))(X), 60 * X)


def test_a_batch_of_containers_with_shared_arguments(affine):
    p, xs = {"w": X, "b": 3.0}, np.stack([X, X + 1, X + 2, X + 3])

    def loss(p, x):
        return np.sum(affine(p, x)["y"])

    out = gt.vmap(gt.grad(loss, (0, 1)), (None, 0))(p, xs)
    np.testing.assert_array_equal(out[0]["w"], 10 * xs)
    np.testing.assert_array_equal(out[1], np.broadcast_to(10 * X, (4, 3)))
    total = gt.grad(lambda p: np.sum(gt.vmap(loss, (None, 0))(p, xs)))(p)
    np.testing.assert_array_equal(total["w"], 10 * xs.sum(0))


def test_a_batch_with_a_zero_cotangent():
    f = gt.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda ct, out, x, y: (ct * y, None))
    np.testing.assert_array_equal(gt.vmap(gt.grad(f))(X, X + 1), X + 1)
    by_y = gt.grad(lambda y: np.sum(gt.vmap(f)(X, y)))(X)
    np.testing.assert_array_equal(by_y, np.zeros(3))


# ---- mistakes -----------------------------------------------------------------------------------


def test_a_function_without_a_rule():
    f = gt.custom_vjp(lambda x: x * x)
    assert f(3.0) == 9.0
    with pytest.raises(NotDifferentiableError, match="defvjp"):
        gt.grad(f)(3.0)


def test_forward_mode_without_a_forward_rule():
    cube = make_cube()
    with pytest.raises(NotDifferentiableError, match=r"cube.*defjvp"):
        gt.jvp(cube, (2.0,), (1.0,))


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (lambda ct: ct, "tuple of 2"),
        (lambda ct: (ct,), "1 values.*tuple of 2"),
        (lambda ct: (ct, ct, ct), "3 values.*tuple of 2"),
        (lambda ct: (ct, np.sum(ct)), r"\(\).*\(3,\)"),
        (lambda ct: (ct[None], ct), r"\(1, 3\).*\(3,\)"),
        (lambda ct: None, "tuple of 2"),
    ],
    ids=["bare", "too few", "too many", "scalar", "extra axis", "nothing"],
)
def test_a_rule_that_returns_the_wrong_thing(returned, match):
    f = gt.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda ct, out, x, y: returned(ct))
    with pytest.raises(ShapeError, match=match):
        gt.grad(lambda x: np.sum(f(x, X)))(X)


def test_a_rule_that_returns_the_wrong_container():
    f = gt.custom_vjp(lambda p: p["a"] * p["b"])
    f.defvjp(lambda ct, out, p: ({"a": ct},))
    with pytest.raises(ShapeError):
        gt.grad(lambda p: f(p))({"a": 1.0, "b": 2.0})


def test_a_forward_rule_that_returns_the_wrong_shape():
    f = gt.custom_jvp(lambda x: x * x)
    f.defjvp(lambda tangents, out, x: np.sum(tangents[0]))
    with pytest.raises(ShapeError, match=r"\(\).*\(3,\)"):
        gt.jvp(f, (X,), (X,))


def test_a_closure_over_a_recorded_tensor_is_refused():
    w = gt.tensor(X, requires_grad=True) * 2.0
    f = gt.custom_vjp(lambda x: x * w)
    f.defvjp(lambda ct, out, x: (ct,))
    for argument in (X, gt.tensor(X), gt.tensor(X, requires_grad=True)):
        with pytest.raises(GradtapeError, match="pass it as an argument"):
            f(argument)
    with pytest.raises(GradtapeError, match="pass it as an argument"):
        gt.grad(lambda x: gt.custom_vjp(lambda y: x * y)(2.0))(3.0)


def test_a_wrong_rule_is_found_by_check_grads():
    with pytest.raises(AssertionError, match="reverse"):
        gt.testing.check_grads(make_cube(), (X,), order=1, modes=("reverse",))


# ---- rules that call the function ---------------------------------------------------------------


@gt.custom_jvp
def doubled(x):
    return 2.0 * x


@doubled.defjvp
def _(tangents, out, x):
    return doubled(tangents[0])


@pytest.mark.parametrize(
    "function",
    [
        doubled,
        gt.jit(doubled),
        gt.vmap(doubled),
        lambda x: gt.fori_loop(0, 2, lambda _, x: doubled(x), x),
    ],
    ids=["eager", "compiled", "batched", "loop"],
)
def test_a_forward_rule_that_calls_the_function_itself_has_no_reverse_mode(function):
    x = np.array([1.0, 2.0])
    assert gt.jacfwd(function)(x)[0, 0] in (2.0, 4.0)
    with pytest.raises(NotDifferentiableError, match=r"itself with tangents.*@doubled\.defvjp"):
        gt.jacrev(function)(x)
    with pytest.raises(NotDifferentiableError, match="itself with tangents"):
        gt.jit(gt.jacrev(function))(x)


def test_a_forward_rule_that_calls_the_function_with_less_has_a_reverse_mode():
    @gt.custom_jvp
    def at_07(*coefficients):
        value = 0.0
        for c in reversed(coefficients):
            value = 0.7 * value + c
        return value

    @at_07.defjvp
    def _(tangents, out, *coefficients):
        first, *rest = tangents
        return first + 0.7 * at_07(*rest) if rest else first

    coefficients = tuple(np.arange(1.0, 13.0))
    found = gt.grad(at_07, argnums=tuple(range(12)))(*coefficients)
    np.testing.assert_allclose(found, 0.7 ** np.arange(12), rtol=1e-14)
