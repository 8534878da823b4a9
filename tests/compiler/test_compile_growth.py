"""What is compiled grows in proportion to the function: no step of a loop is written out twice.

Counts, not times: nodes, kernels, functions, parts of expressions, and the text given to LLVM.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.classify import obstacle
from gradtape.compiler.cpu.llvm.builder import Module
from gradtape.compiler.cpu.llvm.link import host
from gradtape.compiler.cpu.printer import print_plan
from gradtape.compiler.element_builder import folded
from gradtape.compiler.kernel import Kernel
from gradtape.compiler.partition import NativePart, partition
from gradtape.compiler.pipeline import optimized
from gradtape.compiler.plan import plan_of
from gradtape.compiler.program import NativeFunction
from gradtape.core.promotion import INT64
from gradtape.core.scalar import Scalar


class Size(NamedTuple):
    """How much there is of a compiled function."""

    nodes: int
    kernels: int
    functions: int
    parts: int
    text: int


def size_of(function: Callable[..., Any], *args: Any) -> Size:
    """The size of what a function is compiled to, without asking LLVM for it."""
    graph = optimized(gt.jit(function).graph(*args))
    kernels = functions = parts = text = 0
    for part in partition(graph, obstacle):
        if isinstance(part, NativePart):
            module = Module()
            printed = print_plan(plan_of(part.graph), module, host())
            own = [step for step in printed.plan.steps if isinstance(step, Kernel)]
            kernels += len(own)
            functions += len(set(printed.functions.values()))
            parts += sum(len(kernel.expressions) for kernel in own)
            text += len(str(module))
    return Size(len(graph.nodes), kernels, functions, parts, text)


def assert_linear(
    make: Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]], thorough: bool
) -> None:
    """Twice the steps make about twice of everything, three times the steps three times."""
    sizes = {}
    for n in (6, 12, 24) if thorough else (5, 15):
        function, args = make(n)
        sizes[n] = size_of(function, *args)
    for (few, before), (many, after) in itertools.pairwise(sizes.items()):
        for name, one, two in zip(Size._fields, before, after, strict=True):
            assert two <= 1.5 * (many / few) * one + 4, (name, sizes)


def summed(function: Callable[..., Any]) -> Callable[..., Any]:
    return gt.grad(lambda *args: np.sum(function(*args) ** 2))


# ---- assignments --------------------------------------------------------------------------------


def add_to_same_part(n: int) -> tuple[Any, tuple[Any, ...]]:
    def function(elements: Any) -> Any:
        total = np.zeros_like(elements, shape=(4,))
        for e in range(n):
            total[0:2] += elements[e]
        return total

    return function, (np.arange(2.0 * n).reshape(n, 2),)


def add_to_next_part(n: int) -> tuple[Any, tuple[Any, ...]]:
    def function(elements: Any) -> Any:
        total = np.zeros_like(elements, shape=(n + 1,))
        for e in range(n):
            total[e : e + 2] += elements[e]
        return total

    return function, (np.arange(2.0 * n).reshape(n, 2),)


def add_to_block(n: int) -> tuple[Any, tuple[Any, ...]]:
    def function(elements: Any) -> Any:
        matrix = np.zeros_like(elements, shape=(7, 7))
        for e in range(n):
            at = e % 6
            matrix[at : at + 2, at : at + 2] += elements[e] * elements[e][:, None]
        return matrix

    return function, (np.arange(2.0 * n).reshape(n, 2),)


def fill(n: int) -> tuple[Any, tuple[Any, ...]]:
    def function(x: Any) -> Any:
        filled = np.zeros_like(x, shape=(n,))
        for i in range(n):
            filled[i] = x[i % 4] * 2.0
        return filled

    return function, (np.arange(4.0),)


def recur(n: int) -> tuple[Any, tuple[Any, ...]]:
    def function(x: Any) -> Any:
        path = np.zeros_like(x, shape=(n + 1,))
        path[0] = x[0]
        for i in range(n):
            path[i + 1] = 0.9 * path[i] + x[1]
        return path

    return function, (np.arange(4.0),)


def swap(n: int) -> tuple[Any, tuple[Any, ...]]:
    def function(x: Any) -> Any:
        x = x * 1.0
        for i in range(n):
            one, other = x[i % 5] * 1.0, x[i % 5 + 1] * 1.0
            x[i % 5], x[i % 5 + 1] = other, one
        return x

    return function, (np.arange(6.0),)


ASSIGNMENTS = [add_to_same_part, add_to_next_part, add_to_block, fill, recur, swap]


@pytest.mark.parametrize("steps", ASSIGNMENTS)
def test_assignments_in_a_loop_and_their_gradients(steps: Any, thorough: bool) -> None:
    assert_linear(steps, thorough)

    def gradient(n: int) -> tuple[Any, tuple[Any, ...]]:
        function, args = steps(n)
        return summed(function), args

    assert_linear(gradient, thorough)


@pytest.mark.parametrize("steps", ASSIGNMENTS)
def test_assignments_in_a_loop_are_as_eager(steps: Any) -> None:
    function, args = steps(7)
    np.testing.assert_allclose(gt.jit(function)(*args), function(gt.tensor(args[0])).numpy())
    gradient = summed(function)
    np.testing.assert_allclose(gt.jit(gradient)(*args), gradient(*args))


# ---- chains -------------------------------------------------------------------------------------

CHAINS: dict[str, Callable[[Any], Any]] = {
    "two places by a select": lambda x: np.roll(x, 3),
    "two places by two ops": lambda x: x + np.roll(x, 1),
    "halves": lambda x: np.concatenate([x[:6] + x[6:], x[:6] - x[6:]]),
    "sorted pairs": lambda x: np.concatenate([np.minimum(x[:6], x[6:]), np.maximum(x[:6], x[6:])]),
    "from smaller ones": lambda x: np.outer(x[:3], x[:4]).reshape(-1),
    "repeated": lambda x: np.tile(x, 2)[3:15] + x,
    "other order": lambda x: x.reshape(3, 4).T.reshape(-1) + x,
    "one element for all": lambda x: x * x[0] + x[1],
    "cheap": lambda x: x * x + x,
    "dear": lambda x: x + np.sin(x) * np.cos(x),
    "neighbours": lambda x: np.pad(x[1:] - x[:-1], (0, 1)),
    "cumulative": lambda x: x + 0.1 * np.cumsum(x),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_and_their_gradients(name: str, thorough: bool) -> None:
    def chain(n: int) -> tuple[Any, tuple[Any, ...]]:
        def function(x: Any) -> Any:
            for _ in range(n):
                x = CHAINS[name](x)
            return np.sum(x**2)

        return gt.value_and_grad(function), (np.linspace(0.1, 1.0, 12),)

    assert_linear(chain, thorough)


# ---- leaves and results -------------------------------------------------------------------------


def test_leaves_that_are_not_used_cost_no_code() -> None:
    def function(leaves: Any) -> Any:
        return np.sum(leaves[0] * leaves[1] + leaves[-1])

    few, many = (size_of(function, [np.ones(3) for _ in range(n)]) for n in (10, 2000))
    # The last one has a number of more digits.
    assert many.text < few.text + 20
    result = gt.jit(function)([np.full(3, float(n)) for n in range(2000)])
    assert result == 3 * 1999.0


def test_many_leaves_and_results_in_kernels_of_few_arrays() -> None:
    def function(leaves: dict[str, Any]) -> dict[str, Any]:
        return {name: leaf * 2.0 + len(name) for name, leaf in leaves.items()}

    leaves = {f"leaf {n}": np.full(5, float(n)) for n in range(300)}
    compiled = gt.jit(function)
    report = compiled.explain(leaves)
    assert len(report.kernels) > 4
    assert len({kernel.function for kernel in report.kernels}) < 5
    made = compiled(leaves)
    for name, leaf in leaves.items():
        np.testing.assert_array_equal(made[name], leaf * 2.0 + len(name))


# ---- steps that are alike are one function ------------------------------------------------------


def oscillator(y: Any, k: Any) -> Any:
    return np.stack([y[1], -k * np.sin(y[0])])


def runge_kutta(n: int) -> Callable[..., Any]:
    def function(y: Any, k: Any) -> Any:
        for _ in range(n):
            a = oscillator(y, k)
            b = oscillator(y + 0.05 * a, k)
            c = oscillator(y + 0.05 * b, k)
            d = oscillator(y + 0.1 * c, k)
            y = y + 0.1 / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        return y

    return function


def euler(n: int) -> Callable[..., Any]:
    def function(y: Any, rates: Any) -> Any:
        for _ in range(n):
            y = y + 0.01 * (rates @ y)
        return y

    return function


def forced(n: int) -> Callable[..., Any]:
    def function(y: Any, force: Any) -> Any:
        for i in range(n):
            y = y + 0.1 * (np.sin(0.1 * i) * np.roll(y, 1) + force[i])
        return y

    return function


STEPS: dict[str, tuple[Callable[[int], Any], tuple[Any, ...]]] = {
    "runge_kutta": (runge_kutta, (np.array([1.0, 0.5]), 1.5)),
    "euler": (euler, (np.linspace(0.0, 1.0, 5), np.linspace(-1.0, 1.0, 25).reshape(5, 5))),
    "forced": (forced, (np.linspace(0.0, 1.0, 7), np.linspace(-1.0, 1.0, 100))),
}


# For kernels to be alike; a step of Runge–Kutta has as many of them as four of the others.
ENOUGH_STEPS = {"runge_kutta": 6, "euler": 12, "forced": 12}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("gradient", [False, True])
def test_the_functions_of_a_loop_do_not_depend_on_its_steps(
    name: str, gradient: bool, thorough: bool
) -> None:
    make, args = STEPS[name]
    few = 16 if thorough else ENOUGH_STEPS[name]
    change = summed if gradient else lambda function: function
    some, more = (size_of(change(make(n)), *args) for n in (few, 2 * few))
    assert more.kernels > 1.5 * some.kernels
    assert more.functions <= some.functions + 2
    # What grows are, in the long run, the numbers of the arrays that each step works on.
    assert more.text < 1.7 * some.text


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("n", [3, 8, pytest.param(20, marks=pytest.mark.slow)])
def test_shared_functions_compute_what_eager_code_does(name: str, n: int) -> None:
    make, args = STEPS[name]
    function = make(n)
    np.testing.assert_allclose(gt.jit(function, debug=n < 10)(*args), function(*args), 1e-12)
    gradient = summed(function)
    np.testing.assert_allclose(gt.jit(gradient)(*args), gradient(*args), 1e-10)


def test_numbers_of_every_kind_differ_from_step_to_step() -> None:
    def function(x: Any, n: Any, m: Any) -> Any:
        results = []
        for i in range(40):
            # Unrelated steps, each too much for one kernel with the others.
            y = np.roll(np.tanh(x * np.float32(i)), i % 5) if i % 2 else np.sort(x + np.float32(i))
            results.append((y, n + i, n // (i + 1), np.uint8(i) * m, (n > i) ^ (i % 3 == 0)))
        return results

    args = (
        np.linspace(-1.0, 1.0, 40, dtype=np.float32),
        np.arange(-3, 40),
        np.arange(5, dtype=np.uint8),
    )
    made, expected = gt.jit(function)(*args), function(*args)
    for row, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(row[0], wanted[0], 1e-6, 1e-6)
        for one, other in zip(row[1:], wanted[1:], strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_shared_functions_in_parts_for_threads() -> None:
    def function(x: Any) -> Any:
        for i in range(12):
            x = np.roll(np.sin(x * (1.0 + i)), i)
        return x

    x = np.linspace(0.0, 1.0, 60_000)
    compiled = gt.jit(function)
    report = compiled.explain(x)
    assert all(kernel.parts > 1 for kernel in report.kernels)
    assert len({kernel.function for kernel in report.kernels}) < len(report.kernels)
    np.testing.assert_allclose(compiled(x), function(x), 1e-6, 1e-6)


def test_the_step_that_fails_is_the_one_that_is_named() -> None:
    def function(x: Any, indices: Any) -> Any:
        for i in range(40):
            x = np.roll(x[indices[i]], 1) * 0.5
        return x

    compiled = gt.jit(function)
    x, indices = np.arange(5.0), np.tile(np.arange(5), (40, 1))
    report = compiled.explain(x, indices)
    assert len({kernel.function for kernel in report.kernels}) < len(report.kernels) / 2
    np.testing.assert_array_equal(compiled(x, indices), function(x, indices))
    for step in (0, 17, 39):
        wrong = indices.copy()
        wrong[step, 2] = 100 + step
        with pytest.raises(gt.errors.IndexingError, match=f"index {100 + step} "):
            compiled(x, wrong)


def test_a_condition_is_checked_for_vectors_and_for_single_elements() -> None:
    def function(x: Any, y: Any, indices: Any) -> Any:
        for row in indices:
            x, y = y, x - np.mean(x) * 0.5 + y[:1]
            x, y = y, x[row] * 0.9 + y * 0.1
            x, y = np.clip(x, -3, 3), np.clip(y, -3, 3)
        return x, y

    compiled = gt.jit(function)
    x, y, indices = np.arange(5.0), np.ones(5), list(np.tile(np.arange(5)[::-1], (10, 1)))
    report = compiled.explain(x, y, indices)
    assert len({kernel.function for kernel in report.kernels}) < len(report.kernels)
    for got, expected in zip(compiled(x, y, indices), function(x, y, indices), strict=True):
        np.testing.assert_allclose(got, expected, 1e-12)
    indices[4][0] = 9
    with pytest.raises(gt.errors.IndexingError, match="index 9 "):
        compiled(x, y, indices)


def test_products_of_one_array_with_itself() -> None:
    def function(x: Any, y: Any) -> Any:
        for i in range(40):
            x = x @ x * 0.1 if i % 2 else x @ y * 0.1
        return x

    x, y = np.linspace(0.0, 1.0, 9).reshape(3, 3), np.eye(3) + 0.5
    np.testing.assert_allclose(gt.jit(function)(x, y), function(x, y), 1e-12)


def test_native_parts_between_eager_ops_share_their_code() -> None:
    def function(x: Any, a: Any) -> Any:
        for _ in range(12):
            x = np.linalg.pinv(x + a) * 0.5
        return x

    args = np.eye(3), np.eye(3) + 0.1
    compiled = gt.jit(function)
    np.testing.assert_allclose(compiled(*args), function(*args), 1e-12)
    (form,) = compiled._forms
    steps = form.program.steps
    libraries = [step.code.library for step in steps if isinstance(step, NativeFunction)]
    assert len(libraries) == 13
    assert len(set(map(id, libraries))) <= 3


def test_explain_lists_shared_code_once() -> None:
    function, args = euler(30), STEPS["euler"][1]
    report = gt.jit(function).explain(*args)
    loops = [kernel for kernel in report.kernels if kernel.listing]
    shared = [kernel for kernel in loops if kernel.function != kernel.name]
    assert len(shared) > 20
    text = str(report)
    assert text.count("for i0 < 5:") == len(loops) - len(shared)
    assert text.count(f"the code of {shared[0].function}, for other arrays") == len(shared)
    assert all(f"@{kernel.function}(" in report.ir for kernel in loops)


def test_wide_sums_are_cut_into_kernels_that_are_alike() -> None:
    def terms(n: int) -> Callable[[Any], Any]:
        return lambda x: sum((np.sin(x * float(i)) for i in range(n)), start=x * 0.0)

    some, more = (size_of(terms(n), np.linspace(0.0, 1.0, 50)) for n in (150, 300))
    assert more.parts < 2.2 * some.parts
    assert more.functions <= some.functions + 1


def test_a_number_that_is_unknown_is_found_to_be_so_at_its_first_part() -> None:
    number = Scalar("axis", (), INT64)
    for _ in range(100):  # each is used twice: 2**100 ways down
        number = Scalar("add", (number, number), INT64)
    assert folded(number) is None
