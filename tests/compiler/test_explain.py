"""`gt.jit(f).explain(*args)`: what was fused, what was not and why, and how much work it is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradtape as gt
from gradtape.compiler.explain import Explanation


def explained(function, *args, **options) -> Explanation:
    return gt.jit(function, **options).explain(*args)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


# ---- loop nests ---------------------------------------------------------------------------------


def test_a_chain_is_one_kernel_with_all_its_ops():
    report = explained(lambda x, y: np.tanh(x * y) + 1.0, np.ones(5), np.ones(5))
    (kernel,) = report.kernels
    assert kernel.ops == ("multiply", "tanh", "add")
    assert kernel.listing.splitlines() == [
        "for i0 < 5:",
        "    out0[i0] = tanh(in0[i0] * in1[i0]) + 1.0",
    ]
    assert report.eager == []


def test_softmax_is_one_kernel():
    (kernel,) = explained(softmax, np.ones((4, 6), np.float32)).kernels
    assert kernel.ops == ("max", "subtract", "exp", "sum", "divide")
    assert kernel.listing.count("for i1 < 6:") == 3


def test_traffic_counts_every_array_once():
    x, y = np.ones((8, 4)), np.ones(4)
    (kernel,) = explained(lambda x, y: (x * x + x) * y, x, y).kernels
    assert kernel.bytes_read == x.nbytes + y.nbytes
    assert kernel.bytes_written == x.nbytes


def test_flops_are_instructions_times_points():
    (one,) = explained(lambda x, y: x + y, np.ones(10), np.ones(10)).kernels
    (two,) = explained(lambda x, y: x + y * x, np.ones(10), np.ones(10)).kernels
    (summed,) = explained(lambda x: np.sum(x * x), np.ones(10)).kernels
    assert (one.flops, two.flops, summed.flops) == (10, 20, 20)


def test_a_long_reduction_is_divided():
    first, last = explained(lambda x: np.sum(x * x), np.ones(1 << 20)).kernels
    assert first.parts > 1
    assert last.parts == 1
    assert last.name.startswith(first.name)
    assert first.ops == ("multiply", "sum")
    assert first.bytes_written == last.bytes_read == 8 * first.parts
    assert first.parts < (1 << 20) // 4096


def test_cuts_say_why_neighbours_are_apart():
    def function(x):
        y = np.exp(x)
        return np.sum(y, axis=0) + np.sum(y, axis=1)

    report = explained(function, np.ones((7, 7)))
    cuts = [cut for kernel in report.kernels for cut in kernel.cuts]
    assert len(report.kernels) > 1
    assert any(re.fullmatch(r"\w+ \(.+\)", cut) for cut in cuts)
    assert all(len(set(kernel.cuts)) == len(kernel.cuts) for kernel in report.kernels)
    assert "not fused: " in str(report)


def test_lines_are_those_of_the_user():
    def function(x):
        return np.exp(x)

    (kernel,) = explained(function, np.ones(3)).kernels
    line = function.__code__.co_firstlineno + 1
    assert kernel.lines == (f"{__file__}:{line}",)
    assert f"from: test_explain.py:{line}" in str(kernel)


# ---- listings -----------------------------------------------------------------------------------


def listing(function, *args):
    (kernel,) = explained(function, *args).kernels
    return kernel.listing


def test_listing_keeps_the_order_of_operators():
    x = np.ones(3)
    text = listing(lambda a, b, c: (a - (b - c)) / (a * (b + c)), x, x, x)
    assert "(in0[i0] - (in1[i0] - in2[i0])) / (in0[i0] * (in1[i0] + in2[i0]))" in text


def test_what_is_used_twice_is_written_once():
    def function(x):
        for _ in range(50):
            x = gt.leaky_relu(x)
        return x

    # Written out in full, this would have 2⁵⁰ terms.
    text = listing(function, np.ones(3))
    assert text.count("select(") == 50
    assert len(text.splitlines()) == 51


def test_listing_of_other_accumulations():
    text = listing(lambda x: (np.max(x, axis=1), np.sum(x, axis=1)), np.ones((3, 5)))
    assert re.search(r"(acc\d+) = maximum\(\1, in0\[", text)
    assert re.search(r"acc\d+ \+= in0\[", text)


# ---- matrix products, eager ops, hidden inputs --------------------------------------------------


def test_matrix_product():
    a, b = np.ones((4, 5)), np.ones((5, 6))
    (product,) = explained(lambda a, b: a @ b, a, b).kernels
    assert product.name == "matmul 4×5·5×6"
    assert product.flops == 2 * 4 * 5 * 6
    assert product.bytes_read == a.nbytes + b.nbytes
    assert product.bytes_written == 4 * 6 * 8
    assert product.listing == ""


def test_eager_ops_have_a_reason_and_a_line():
    def function(a):
        return np.linalg.pinv(a * 2.0) + 1.0

    report = explained(function, np.eye(3))
    ((op, reason, line),) = report.eager
    assert op == "pinv"
    assert reason == "pinv has no native form"
    assert line == f"{__file__}:{function.__code__.co_firstlineno + 1}"
    text = str(report)
    assert text.index("part 1, native") < text.index("part 2, eager: pinv")
    assert text.index("part 2, eager: pinv") < text.index("part 3, native")


def test_a_dtype_without_native_code_is_the_reason():
    report = explained(lambda x: x * 2, np.ones(3, np.complex128))
    assert [(op, reason) for op, reason, _ in report.eager] == [
        ("multiply", "no native code for complex128")
    ]
    assert report.kernels == []


def test_hidden_inputs():
    weights, bias = np.ones((3, 2), np.float32), gt.Tensor(np.ones(2, np.float32))
    report = explained(lambda x: x @ weights + bias, np.ones((4, 3), np.float32))
    assert [(aval.shape, aval.dtype) for aval in report.hidden] == [
        ((3, 2), np.float32),
        ((2,), np.float32),
    ]
    assert "2 hidden inputs (float32[3, 2], float32[2])" in " ".join(str(report).split())


# ---- the whole ----------------------------------------------------------------------------------


def test_report_goes_from_the_whole_to_the_parts():
    def loss(w, x):
        return np.mean(np.tanh(x @ w) ** 2)

    report = explained(gt.grad(loss), np.ones((3, 2)), np.ones((4, 3)))
    head, graph, *_ = (text := str(report)).split("\n\n")
    assert head.startswith("loss: 1 native part (1 loop nest, 2 matrix products), no eager ops")
    assert graph.startswith("graph loss(%0: float64[3, 2], %1: float64[4, 3])")
    for kernel in report.kernels:
        assert f"  {kernel.name}: " in text
    assert "takes in0 = %0, in1 = %1" in text
    assert max(map(len, text.splitlines())) <= 120


def test_graph_is_the_optimised_one():
    report = explained(lambda x: np.exp(x) * np.exp(x), np.ones(3))
    assert [node.op.name for node in report.graph.nodes] == ["exp", "multiply"]


def test_ir_and_assembly():
    report = explained(lambda a: np.linalg.pinv(a + 1.0) * 2.0 + 1.0, np.eye(3))
    assert "assembly" not in vars(report)
    names = [kernel.name for kernel in report.kernels]
    for name in names:
        assert f"@{name}(" in report.ir
        assert f"{name}:" in report.assembly
    assert report.ir.count("define i32 @run(") == report.assembly.count("\nrun:") == 2


def test_nothing_is_run_and_nothing_is_traced_twice():
    traces = []

    def function(x, *, scale):
        traces.append(scale)
        return x * scale

    compiled = gt.jit(function, static_argnames="scale")
    assert compiled.explain(np.ones(3), scale=2.0).kernels[0].ops == ("multiply",)
    np.testing.assert_array_equal(compiled(np.ones(3), scale=2.0), [2.0, 2.0, 2.0])
    assert traces == [2.0]


def test_the_report_is_the_same_each_time():
    gradient = gt.grad(lambda x: np.sum(softmax(x) @ x.T))
    first, second = (explained(gradient, np.ones((3, 4))) for _ in range(2))
    assert str(first) == str(second)
    assert first.ir == second.ir


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1)])
def test_awkward_shapes(shape):
    x = np.zeros(shape)
    report = explained(lambda x: (np.exp(x), np.sum(x)), x)
    assert {op for kernel in report.kernels for op in kernel.ops} >= {"exp"}
    assert str(report).startswith("<lambda>: 1 native part")


def test_debug_mode_is_explained_alike():
    x = np.ones((4, 6))
    assert [k.listing for k in explained(softmax, x, debug=True).kernels] == [
        k.listing for k in explained(softmax, x).kernels
    ]
