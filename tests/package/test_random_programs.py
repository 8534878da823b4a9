"""Random small programs in plain NumPy, run and differentiated in every way there is.

No reference is needed: all ways have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

import gradtape as gt
from gradtape.core.level import Segment
from gradtape.core.walk import walk

# What programs are made of, by number of operands. Each is defined and tame for all real numbers;
# those that do not take the shapes at hand are passed over.
STEPS: dict[int, dict[str, Callable[..., Any]]] = {
    1: {
        "sin": np.sin,
        "tanh": np.tanh,
        "exp(-x²)": lambda x: np.exp(-x * x),
        "log1p(x²)": lambda x: np.log1p(x**2),
        "sqrt(1+x²)": lambda x: np.sqrt(1.0 + np.square(x)),
        "1/(2+cos)": lambda x: 1.0 / (2.0 + np.cos(x)),
        "arctan": np.arctan,
        "abs": np.abs,
        "clip": lambda x: np.clip(x, -0.5, 1.5),
        "3 - x": lambda x: 3.0 - x,
        "sum": np.sum,
        "sum(axis=0)": lambda x: np.sum(x, axis=0),
        "mean(axis=-1, keepdims)": lambda x: np.mean(x, axis=-1, keepdims=True),
        "max(axis=0)": lambda x: np.max(x, axis=0),
        "var": np.var,
        "prod(axis=-1)": lambda x: np.prod(x, axis=-1),
        "cumsum(axis=0)": lambda x: np.cumsum(x, axis=0),
        "x.T": np.transpose,
        "reshape(-1)": lambda x: np.reshape(x, -1),
        "reshape(3, -1)": lambda x: np.reshape(x, (3, -1)),
        "x[0]": lambda x: x[0],
        "x[..., 1:]": lambda x: x[..., 1:],
        "x[::-2]": lambda x: x[::-2],
        "x[[0, -1, 0]]": lambda x: x[[0, -1, 0]],
        "x[..., None]": lambda x: x[..., None],
        "flip": np.flip,
        "x @ x.T": lambda x: np.matmul(x, np.transpose(x)),
    },
    2: {
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
        "x/(1+y²)": lambda x, y: x / (1.0 + y * y),
        "(1+x²)**tanh(y)": lambda x, y: (1.0 + x * x) ** np.tanh(y),
        "maximum": np.maximum,
        "minimum": np.minimum,
        "matmul": np.matmul,
        "where": lambda x, y: np.where(x > y, x * 2.0, np.sin(y)),
        "concatenate": lambda x, y: np.concatenate([x, y, x]),
        "stack": lambda x, y: np.stack([x, y], axis=-1),
    },
}
SHAPES = [(), (3,), (2, 3), (3, 2), (3, 3), (1, 3), (2, 1, 3)]
MAX_SIZE = 24
TOLERANCE = 1e-10


@dataclass(frozen=True)
class Program:
    """Straight-line code: each step works on inputs and results of earlier steps, by number."""

    shapes: list[tuple[int, ...]]
    seed: int
    steps: list[tuple[str, tuple[int, ...]]]

    def inputs(self, seed: int = 0) -> tuple[Any, ...]:
        rng = np.random.default_rng((self.seed, seed))
        return tuple(np.asarray(rng.uniform(-2, 2, shape)) for shape in self.shapes)

    def values(self, *inputs: Any) -> list[Any]:
        """All inputs and results."""
        values = list(inputs)
        for name, operands in self.steps:
            values.append(STEPS[len(operands)][name](*(values[i] for i in operands)))
        return values

    def __call__(self, *inputs: Any) -> Any:
        """The result of the last step."""
        return self.values(*inputs)[-1]

    def loss(self, *inputs: Any) -> Any:
        """A scalar made of the results no other step uses, so that it depends on all of them."""
        used = {i for _, operands in self.steps for i in operands}
        total = 0.0
        for i, value in enumerate(self.values(*inputs)):
            if i not in used:
                total = total + np.sum(np.sin(value))
        return total

    @property
    def argnums(self) -> tuple[int, ...]:
        return tuple(range(len(self.shapes)))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of one to three inputs whose values stay small."""
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    program = Program(shapes, draw(st.integers(0, 2**16)), [])
    values = list(program.inputs())
    for _ in range(draw(st.integers(1, 8))):
        arity = draw(st.sampled_from([1, 1, 2]))
        name = draw(st.sampled_from(sorted(STEPS[arity])))
        # Later values are likelier operands: programs grow deep.
        operands = tuple(
            len(values) - 1 - draw(st.integers(0, min(3, len(values) - 1))) for _ in range(arity)
        )
        if "axis=" in name and np.ndim(values[operands[0]]) == 0:
            continue  # NumPy lets it pass, gradtape does not
        try:
            value = STEPS[arity][name](*(values[i] for i in operands))
        except (ValueError, IndexError):
            continue
        if 0 < value.size <= MAX_SIZE and np.abs(value).max() < 1e4:
            program.steps.append((name, operands))
            values.append(value)
    assume(program.steps)
    return program


# A sum hands one and the same cotangent to both operands; what comes later for one of them must not
# be added into the other's.
SHARED = [
    Program(
        [(3,)], 0, [("tanh", (0,)), ("arctan", (0,)), (step, (2,)), ("+", (1, 2)), ("*", (4, 3))]
    )
    for step in ("sin", "x[0]", "x[[0, -1, 0]]")
] + [
    Program([(3,), (3,)], 0, [(step, (1,)), ("+", (0, 1)), ("*", (2, 3))])
    for step in ("sin", "x[0]", "x[[0, -1, 0]]")
]


def on_programs(test: Callable[[Program], None]) -> Callable[[], None]:
    """Run a test on random programs, and on some that random ones seldom are like.

    On a third of those of the profile: `test_more_programs` takes all.
    """
    for program in SHARED:
        test = example(program)(test)
    return settings(max_examples=settings.default.max_examples // 3)(given(programs())(test))


def assert_close(got: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        scale = max(1.0, np.abs(other).max(initial=0.0))
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * scale)


def like(rng_seed: int, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Random arrays of the same shapes."""
    rng = np.random.default_rng(rng_seed)
    return tuple(np.asarray(rng.standard_normal(np.shape(array))) for array in arrays)


def dot(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return float(sum(np.sum(x * y) for x, y in zip(xs, ys, strict=True)))


def leaves_of(inputs: Sequence[Any]) -> list[gt.Tensor]:
    return [gt.Tensor(x).set_requires_grad(True) for x in inputs]


@on_programs
def test_tensors_compute_what_arrays_do(program: Program) -> None:
    inputs = program.inputs()
    expected = program.values(*inputs)
    untracked = program.values(*(gt.Tensor(x) for x in inputs))
    assert all(isinstance(value, gt.Tensor) for value in untracked)
    assert_close(untracked, expected)
    with gt.GradientContext():
        tracked = program.values(*leaves_of(inputs))
        assert all(value.requires_grad for value in tracked)
        assert_close([value.detach() for value in tracked], expected)


@on_programs
def test_gradients_agree(program: Program) -> None:
    inputs = program.inputs()
    gradient = gt.grad(program.loss, program.argnums)(*inputs)

    with gt.GradientContext():
        leaves = leaves_of(inputs)
        gt.compute_gradients(program.loss(*leaves))
        assert_close([leaf.grad for leaf in leaves], gradient)
        recorded = leaves_of(inputs)
        gt.compute_gradients(program.loss(*recorded), create_graph=True)
        assert_close([leaf.grad.detach() for leaf in recorded], gradient)

    tangents = like(1, inputs)
    _, slope = gt.jvp(program.loss, inputs, tangents)
    assert_close([slope], [np.float64(dot(gradient, tangents))])


@on_programs
def test_jacobians_agree(program: Program) -> None:
    inputs = program.inputs()
    by_rows = gt.jacrev(program, program.argnums)(*inputs)
    by_columns = gt.jacfwd(program, program.argnums)(*inputs)
    assert_close(by_columns, by_rows)

    out, pullback = gt.vjp(program, *inputs)
    (u,) = like(2, [out])
    expected = [np.tensordot(u, J, axes=u.ndim) for J in by_rows]
    assert_close(pullback(u), [np.asarray(ct) for ct in expected])

    v = like(3, inputs)
    _, tangent = gt.jvp(program, inputs, v)
    size = np.linalg.norm(u) * np.linalg.norm(tangent) + 1e-300
    assert abs(np.sum(u * tangent) - dot(pullback(u), v)) <= 1e-11 * max(size, 1.0)


@on_programs
def test_second_derivatives_agree(program: Program) -> None:
    inputs = program.inputs()
    v = like(4, inputs)
    gradient = gt.grad(program.loss, program.argnums)
    _, forward_over_reverse = gt.jvp(gradient, inputs, v)

    def slope(*xs: Any) -> Any:
        return gt.jvp(program.loss, xs, v)[1]

    def slope_by_gradient(*xs: Any) -> Any:
        return sum(np.sum(g * t) for g, t in zip(gradient(*xs), v, strict=True))

    assert_close(gt.grad(slope, program.argnums)(*inputs), forward_over_reverse)
    assert_close(gt.grad(slope_by_gradient, program.argnums)(*inputs), forward_over_reverse)
    # What a transform returns inside another one can be computed with.
    curvature = np.float64(dot(forward_over_reverse, v))
    for function in (slope, slope_by_gradient):
        assert_close([gt.jvp(function, inputs, v)[1]], [curvature])


@on_programs
def test_vmap_equals_loop(program: Program) -> None:
    elements = [program.inputs(seed) for seed in range(3)]

    def gradient(*inputs: Any) -> Any:
        return [np.sin(g) for g in gt.grad(program.loss, program.argnums)(*inputs)]

    for function in (program.values, gradient):
        rows = [function(*inputs) for inputs in elements]
        expected = [np.stack(column) for column in zip(*rows, strict=True)]
        batches = [np.stack(column) for column in zip(*elements, strict=True)]
        assert_close(gt.vmap(function)(*batches), expected)
        last = [np.moveaxis(batch, 0, -1) for batch in batches]
        assert_close(gt.vmap(function, in_axes=-1)(*last), expected)


@settings(max_examples=settings.default.max_examples // 25)
@example(SHARED[5])
@given(programs())
def test_compiled_code_agrees(program: Program) -> None:
    inputs, elements = program.inputs(), [program.inputs(seed) for seed in range(3)]
    compiled, loss = gt.jit(program.values), gt.jit(program.loss)
    assert_close(compiled(*inputs), program.values(*inputs))
    gradient = gt.grad(program.loss, program.argnums)
    expected = gradient(*inputs)
    assert_close(gt.grad(loss, program.argnums)(*inputs), expected)
    assert_close(gt.jit(gradient)(*inputs), expected)

    v = like(5, inputs)
    _, curvature = gt.jvp(gradient, inputs, v)
    assert_close(gt.jit(lambda *xs: gt.jvp(gradient, xs, v)[1])(*inputs), curvature)
    assert_close(gt.jvp(gt.grad(loss, program.argnums), inputs, v)[1], curvature)

    batches = [np.stack(column) for column in zip(*elements, strict=True)]
    expected = gt.vmap(program.values)(*batches)
    assert_close(gt.vmap(compiled)(*batches), expected)
    assert_close(gt.jit(gt.vmap(program.values))(*batches), expected)


@on_programs
def test_both_walks_give_the_same_bits(program: Program) -> None:
    with gt.GradientContext() as context:
        leaves = leaves_of(program.inputs())
        loss = program.loss(*leaves)
        segment: Segment = context.tape.segment
        roots = [(loss.record, np.float64(1.0))]
        in_records = walk(segment, roots)
        segment.idle.clear()  # as another walk in progress would
        apart = walk(segment, roots)
    assert in_records.keys() == apart.keys() == {leaf.record for leaf in leaves}
    for node, ct in in_records.items():
        np.testing.assert_array_equal(ct, apart[node])


@pytest.mark.slow
@pytest.mark.parametrize(
    "test",
    [
        test_tensors_compute_what_arrays_do,
        test_gradients_agree,
        test_jacobians_agree,
        test_second_derivatives_agree,
        test_vmap_equals_loop,
        test_compiled_code_agrees,
        test_both_walks_give_the_same_bits,
    ],
)
def test_more_programs(test: Any) -> None:
    check = test.hypothesis.inner_test
    for program in SHARED:
        check(program)
    given(programs())(check)()
