"""Functions with rules in autograd's form: every mode, to every order, and what is refused."""

import math

import numpy as np
import pytest

import gradtape as gt
import gradtape.numpy as gnp
from gradtape.compat import autograd as ag
from gradtape.compat.autograd.extend import (
    JVPNode,
    SparseObject,
    VJPNode,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
    vspace,
)
from gradtape.compat.autograd.test_util import check_grads
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    MissingRuleError,
    ShapeError,
    UnsupportedError,
    WriteError,
)

close = np.testing.assert_allclose
X, Y = np.array([0.3, 0.5]), np.array([1.1, 2.0])


@pytest.fixture(autouse=True)
def _same_vectors():
    """Vectors of vector spaces are drawn by NumPy's global generator, as in autograd."""
    np.random.seed(1)  # noqa: NPY002


def reference(x, y):
    return 2.0 * gnp.sin(x) * y**3


def made(forward, reverse):
    """The reference as a primitive, with rules for the given modes."""

    @primitive
    def f(x, y, n, scale=1.0):
        assert type(n) is int
        return np.sin(x) * y**n * scale

    if reverse:
        defvjp(
            f,
            lambda ans, x, y, n, scale=1.0: lambda g: g * gnp.cos(x) * y**n * scale,
            lambda ans, x, y, n, scale=1.0: lambda g: g * ans * n / y,
        )
    if forward:
        defjvp(
            f,
            lambda g, ans, x, y, n, scale=1.0: g * gnp.cos(x) * y**n * scale,
            lambda g, ans, x, y, n, scale=1.0: g * ans * n / y,
        )
    return lambda x, y: f(x, y, 3, scale=2.0)


def squares(f):
    return lambda x, y: gnp.sum(f(x, y) ** 2)


WAYS = {
    "grad": lambda f: gt.grad(squares(f), (0, 1))(X, Y),
    "jvp": lambda f: gt.jvp(f, (X, Y), (Y, X)),
    "jvp by one": lambda f: gt.jvp(lambda x: f(x, Y), (X,), (Y,)),
    "hessian": lambda f: gt.hessian(squares(f), (0, 1))(X, Y),
    "reverse over reverse": lambda f: gt.jacrev(gt.jacrev(f, (0, 1)))(X, Y),
    "forward over forward": lambda f: gt.jacfwd(gt.jacfwd(f))(X, Y),
    "third order": lambda f: gt.jacfwd(gt.jacrev(gt.jacfwd(f)))(X, Y),
    "vmap": lambda f: gt.vmap(f)(X, Y),
    "vmap of grad": lambda f: gt.vmap(gt.grad(f, (0, 1)))(X, Y),
    "grad of vmap": lambda f: gt.grad(lambda x: gnp.sum(gt.vmap(f)(x, Y) ** 2))(X),
    "jit": lambda f: gt.jit(f)(X, Y),
    "jit of grad": lambda f: gt.jit(gt.grad(squares(f), (0, 1)))(X, Y),
    "grad of jit": lambda f: gt.grad(gt.jit(squares(f)), (0, 1))(X, Y),
    "jvp of jit": lambda f: gt.jvp(gt.jit(f), (X, Y), (Y, X)),
    "autograd's jacobian": lambda f: ag.jacobian(f, 1)(X, Y),
    "autograd's hessian": lambda f: ag.hessian(squares(f))(X, Y),
    "autograd's jvp": lambda f: ag.make_jvp(f, (0, 1))(X, Y)((Y, X)),
    "linearize": lambda f: gt.linearize(f, X, Y)[1](Y, X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("forward", "reverse"), [(True, True), (False, True), (True, False)])
def test_every_way_with_either_rule(way, forward, reverse):
    got, expected = WAYS[way](made(forward, reverse)), WAYS[way](reference)
    leaves = zip(gt.tree.flatten(got)[0], gt.tree.flatten(expected)[0], strict=True)
    for one, other in leaves:
        close(one, other, rtol=1e-10, atol=1e-12)


def test_tapes_and_contexts():
    f = made(False, True)
    expected = gt.grad(squares(reference))(X, Y)
    tape = gt.GradientTape()
    with tape:
        x = tape.watch(gt.tensor(X))
        loss = squares(f)(x, Y)
    close(tape.gradient(loss, x), expected)
    x = gt.tensor(X, requires_grad=True)
    squares(f)(x, Y).backward()
    close(x.grad, expected)


@pytest.mark.parametrize("transform", [ag.grad, ag.deriv, lambda f: ag.grad(ag.grad(f))])
def test_it_sees_plain_arrays(transform):
    seen = []

    @primitive
    def f(x):
        seen.append(type(x))
        return x**3

    defvjp(f, lambda ans, x: lambda g: 3 * x**2 * g)
    transform(lambda x: f(x[()]))(np.array(2.0))
    assert seen == [np.float64]


OPAQUE = {
    "vmap": lambda f: gt.vmap(f)(np.stack([X, Y])),
    "vmap along another axis": lambda f: gt.vmap(f, 1, 1)(np.stack([X, Y], 1)),
    "vmap of grad": lambda f: gt.vmap(gt.grad(lambda x: gnp.sum(f(x))))(np.stack([X, Y])),
    "vmap of jvp": lambda f: gt.vmap(lambda x: gt.jvp(f, (x,), (x,))[1])(np.stack([X, Y])),
    "grad of vmap": lambda f: gt.grad(lambda x: gnp.sum(gt.vmap(f)(x)))(np.stack([X, Y])),
    "jacrev": lambda f: gt.jacrev(f)(X),
    "jacfwd": lambda f: gt.jacfwd(f)(X),
    "jit": lambda f: gt.jit(f)(X),
    "jit of grad": lambda f: gt.jit(gt.grad(lambda x: gnp.sum(f(x))))(X),
}


@pytest.mark.parametrize("way", OPAQUE)
def test_a_primitive_that_takes_numbers_only(way):
    f = primitive(lambda x: np.array([math.sin(v) for v in x]))
    defvjp(f, lambda ans, x: lambda g: g * gnp.cos(x))
    defjvp(f, lambda g, ans, x: g * gnp.cos(x))
    close(OPAQUE[way](f), OPAQUE[way](gnp.sin))


def test_rules_that_take_numbers_only():
    f = primitive(lambda x: np.array([math.sin(v) for v in x]))
    defvjp(f, lambda ans, x: lambda g: g * np.array([math.cos(v) for v in x]))
    batch = np.stack([X, Y])
    close(gt.grad(lambda x: gnp.sum(gt.vmap(f)(x)))(batch), np.cos(batch))
    close(ag.jacobian(f)(X), np.diag(np.cos(X)))
    with pytest.raises(UnsupportedError, match="empty batch"):
        gt.vmap(f)(batch[:0])


def test_without_tensors_it_is_the_function_itself():
    f = primitive(lambda x: ("any", x))
    assert f(3) == ("any", 3)
    assert f.fun(3) == ("any", 3)


def test_a_rule_is_asked_only_for_what_is_wanted():
    f = primitive(lambda x, y: x * y)
    defvjp(f, lambda ans, x, y: lambda g: g * y)
    assert ag.grad(f)(2.0, 3.0) == 3.0
    # y is tracked outside, and differentiated there by another way.
    assert ag.grad(lambda y: ag.grad(f)(2.0, y) * y)(3.0) == 6.0
    with pytest.raises(MissingRuleError, match="argnum 1 not defined"):
        ag.grad(f, 1)(2.0, 3.0)


def test_arguments_and_results_in_containers():
    @primitive
    def f(params, z):
        return {"a": params[0] * z, "b": np.sum(params[1])}

    defvjp(f, lambda ans, p, z: lambda g: [g["a"] * z, g["b"] * gnp.ones_like(p[1])], None)

    def loss(p, z):
        out = f(p, z)
        return gnp.sum(out["a"] ** 2) * out["b"]

    of_a, of_b = ag.grad(loss)([X, Y], 2.0)
    close(of_a, 8.0 * X * np.sum(Y))
    close(of_b, np.sum(4 * X**2) * np.ones(2))
    # A container that holds tensors and arrays.
    close(ag.grad(lambda x: loss([x, Y], 2.0))(X), of_a)
    check_grads(loss)([X, Y], 2.0)


def test_arrays_of_tracked_numbers():
    f = primitive(np.exp)
    defvjp(f, lambda ans, x: lambda g: 100 * g * ans)  # wrong, to see that it is the rule
    close(ag.grad(lambda x: np.sum(f(np.array([x, 2 * x]))))(1.0), 100 * (np.e + 2 * np.e**2))


def test_rules_for_all_arguments():
    def times(x, y):
        return x * y

    for define, rule in [
        (
            defvjp_argnums,
            lambda argnums, ans, args, kwargs: lambda g: [g * args[1 - n] for n in argnums],
        ),
        (defvjp_argnum, lambda argnum, ans, args, kwargs: lambda g: g * args[1 - argnum]),
        (
            defjvp_argnums,
            lambda argnums, gs, ans, args, kwargs: sum(
                g * args[1 - n] for n, g in zip(argnums, gs, strict=True)
            ),
        ),
        (defjvp_argnum, lambda argnum, g, ans, args, kwargs: g * args[1 - argnum]),
    ]:
        f = primitive(times)
        define(f, rule)
        assert ag.grad(f, (0, 1))(2.0, 5.0) == (5.0, 2.0)
        assert ag.grad(f, 1)(2.0, 5.0) == 2.0
        assert ag.make_jvp(f, 1)(2.0, 5.0)(1.0)[1] == 2.0


def test_rules_by_argnums_none_and_same():
    f = primitive(lambda n, x, y: n * x + 0.0 * y)
    defvjp(f, None, lambda ans, n, x, y: lambda g: n * g, argnums=(2, 1))
    defjvp(f, "same", None, argnums=(1, 2))
    assert ag.grad(f, (1, 2))(3.0, 2.0, 1.0) == (3.0, 0.0)
    assert ag.make_jvp(f, (1, 2))(3.0, 2.0, 1.0)((1.0, 1.0))[1] == 3.0
    g = primitive(lambda x, y: 2.0 * x * y)
    def_linear(g)
    assert ag.make_jvp(g, (0, 1))(2.0, 5.0)((1.0, 1.0))[1] == 14.0


def test_complex_rules_are_in_autograds_convention():
    square = primitive(lambda z: z**2)
    defvjp(square, lambda ans, z: lambda g: g * 2 * z)
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
    close(ag.holomorphic_grad(lambda z: gnp.sum(square(z)))(z), 2 * z)
    check_grads(square)(z)
    # The cotangent of a real argument is real, as is that of gradtape's rules.
    turned = primitive(lambda x: x * (2.0 + 1.0j))
    defvjp(turned, lambda ans, x: lambda g: g * (2.0 + 1.0j))
    check_grads(turned)(3.0)


def test_a_rule_may_return_a_sparse_vector():
    @primitive
    def first(x):
        return x[0]

    def vjp(ans, x):
        vs = vspace(x)

        def add(total, g):
            total[0] += g
            return total

        return lambda g: SparseObject(vs, lambda total: add(total, g))

    defvjp(first, vjp)
    close(ag.grad(lambda x: first(x) * gnp.sum(x))(X), [np.sum(X) + X[0], X[0]])


def test_one_element_in_another_shape():
    f = primitive(lambda x: x * 2.0)
    defvjp(f, lambda ans, x: lambda g: gnp.reshape(g * 2.0, (1, 1)))
    assert ag.grad(f)(3.0) == 2.0


def test_methods_are_primitives():
    class Scale:
        factor = 3.0

        @primitive
        def of(self, x):
            return self.factor * x

    defvjp(Scale.of, None, lambda ans, self, x: lambda g: self.factor * g)
    assert ag.grad(Scale().of)(2.0) == 3.0


def test_constants_of_a_mode():
    f = primitive(lambda x: x**2)
    register_notrace(VJPNode, f)
    register_notrace(JVPNode, f)
    assert ag.grad(lambda x: x * f(x))(3.0) == 9.0
    assert ag.make_jvp(lambda x: x * f(x))(3.0)(1.0)[1] == 9.0
    kind = notrace_primitive(lambda x: "big" if x > 1 else "small")
    assert ag.grad(lambda x: x if kind(x) == "big" else -x)(3.0) == 1.0


def test_the_ways_of_old_programs():
    f = core_primitive = ag.core.primitive(lambda x, y: x * y)
    with pytest.warns(UserWarning, match="deprecated"):
        f.defvjp(lambda g, ans, vs, gvs, x, y: y * g)
    with pytest.warns(UserWarning, match="deprecated"):
        f.defgrad(lambda ans, x, y: lambda g: x * g, argnum=1)
    assert ag.grad(core_primitive, (0, 1))(2.0, 5.0) == (5.0, 2.0)
    zero = ag.core.primitive(lambda x, y: 0.0 * x * y)
    with pytest.warns(UserWarning, match="deprecated"):
        zero.defvjp_is_zero([0, 1])
    assert ag.grad(zero, (0, 1))(2.0, 5.0) == (0.0, 0.0)


# ---- what is refused ----------------------------------------------------------------------------


def without_rule(x):
    return 2.0 * x


def test_without_a_rule():
    f = primitive(without_rule)
    for call in (lambda: ag.grad(f)(1.0), lambda: ag.deriv(f)(1.0), lambda: gt.grad(f)(1.0)):
        with pytest.raises(NotImplementedError, match=r"without_rule wrt argnums \(0,\)"):
            call()


def test_what_cannot_be_transposed():
    f = primitive(without_rule)
    defvjp(f, lambda ans, x: lambda g: float(g) * 2.0)
    assert ag.grad(f)(1.0) == 2.0
    with pytest.raises(MissingRuleError, match=r"reverse-mode rule cannot be.*defjvp\(without"):
        ag.deriv(f)(1.0)
    h = primitive(without_rule)
    def_linear(h)
    with pytest.raises(MissingRuleError, match=r"calls the primitive itself.*defvjp\(without"):
        ag.grad(h)(1.0)


def test_bad_rules():
    f = primitive(without_rule)
    for call, message in [
        (lambda: defvjp(f, 3), "got 3 as a rule of without_rule"),
        (lambda: defvjp(f, "same"), "got 'same'"),
        (lambda: defjvp(f, "other"), "expected a function, or None or 'same'"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            call()
    defvjp(f, lambda ans, x: lambda g: np.ones(5))
    with pytest.raises(ShapeError, match=r"shape \(5,\), expected \(2,\)"):
        ag.grad(lambda x: gnp.sum(f(x)))(X)


RULED = [defvjp, defjvp, defvjp_argnums, defvjp_argnum, defjvp_argnums, defjvp_argnum, def_linear]


def give(define, function):
    define(*([function] if define is def_linear else [function, lambda *_: None]))


@pytest.mark.parametrize("function", [np.sign, gnp.floor, gnp.argsort])
@pytest.mark.parametrize("define", RULED)
def test_rules_of_flat_functions_would_be_others(function, define):
    with pytest.raises(UnsupportedError, match=r"= primitive\("):
        give(define, function)


@pytest.mark.parametrize(
    "function",
    [np.sin, gnp.sin, gnp.linalg.norm, gt.scipy.special.expit, without_rule],
)
@pytest.mark.parametrize("define", RULED)
def test_rules_of_functions_that_are_no_primitives_are_not_used(function, define):
    with pytest.warns(UserWarning, match=r"= primitive\(.*This rule is not used") as caught:
        give(define, function)
    assert caught[0].filename == __file__
    assert ag.grad(lambda x: gnp.sum(function(x)))(np.ones(2))[0] > 0.1


def test_what_would_be_lost_raises():
    f = primitive(lambda x, factor=1.0: factor * x)
    defvjp(f, lambda ans, x, factor=1.0: lambda g: factor * g)
    with pytest.raises(GradtapeError, match="pass it as an argument, by position"):
        ag.grad(lambda x: f(x, factor=x))(2.0)
    written = primitive(lambda x: x.fill(1.0))
    with pytest.raises(WriteError, match=r"x = np\.array\(x\)"):
        ag.grad(written)(X)
    text = primitive(lambda x: "text")
    with pytest.raises(DTypeError, match=r"returned a str.*notrace_primitive"):
        ag.grad(text)(1.0)


def test_tangents_of_results_of_integers_are_not_looked_at():
    """Nor are they by autograd, and rules that are in use give any shape."""

    @primitive
    def doubled(x):
        return 2 * x, np.arange(6).reshape(2, 3)

    defjvp(doubled, lambda g, ans, x: (2 * g, np.zeros(3)))
    value, tangent = ag.make_jvp(lambda x: gnp.sum(doubled(x)[0] ** 2))(np.ones(3))(np.ones(3))
    assert (value, tangent) == (12.0, 24.0)
    (_, places), (slopes, none) = ag.make_jvp(doubled)(np.ones(3))(np.ones(3))
    np.testing.assert_array_equal(slopes, 2.0)
    assert none.shape == places.shape
