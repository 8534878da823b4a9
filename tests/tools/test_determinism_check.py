"""`check_deterministic`: which op differs first, why, and by how much."""

import json

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.blas_threads import libraries, on_one_thread
from gradtape.errors import ArgumentError, FileFormatError

X = gt.tensor(np.linspace(0.1, 1.0, 12).reshape(3, 4))


def here(difference, text):
    """Whether the line that a difference names has a text."""
    file, _, line = difference.line.rpartition(":")
    assert file == __file__
    with open(file, encoding="utf-8") as lines:
        return text in lines.readlines()[int(line) - 1]


def test_a_step_that_repeats_itself():
    net = {"w": X.numpy().copy()}

    def step(net):
        value, grads = gt.value_and_grad(lambda net: gt.sum(gt.nn.dropout(gt.tanh(net["w"]))))(net)
        net["w"] -= grads["w"]  # the argument is a copy
        return value, net

    state = gt.get_rng_state()
    report = gt.check_deterministic(step, net, runs=3)
    assert report.is_deterministic
    assert report.difference is None
    assert report.runs == ("the first run", *["in another run"] * 2, "with one thread")
    assert report.ops > 5
    assert str(report).startswith(f"deterministic: {report.ops} ops gave the same bits")
    np.testing.assert_array_equal(net["w"], X)
    np.testing.assert_array_equal(gt.get_rng_state(), state)
    with gt.deterministic(global_seed=3):
        assert gt.check_deterministic(step, net).is_deterministic
        assert gt.check_deterministic(gt.jit(step), net).is_deterministic


def fickle(op, change):
    """A function of the second op that a change is applied to from its second run on."""
    runs = iter(range(100))
    return lambda x: op(gt.exp(x), change(next(runs)))


def test_an_operand_from_outside():
    function = fickle(lambda x, y: gt.sum(x * y), lambda run: np.full((3, 4), 1.0 + run))
    report = gt.check_deterministic(function, X)
    found = report.difference
    assert not report.is_deterministic
    assert (found.op, found.number, found.cause) == ("multiply", 1, "operand")
    assert here(found, "gt.sum(x * y)")
    assert "gets another operand in another run, which comes from outside of gradtape" in str(found)


def test_an_op_that_differs_is_measured():
    noise = np.random.default_rng(0)

    def host(x):
        made = x * 2
        made[1, 2] += noise.integers(1, 1000)
        return made

    def function(x):
        return gt.sum(gt.host_call(host, x, gt.exp(x)))

    report = gt.check_deterministic(function, X)
    found = report.difference
    assert (found.op, found.number, found.cause) == ("host_call of host", 1, "op")
    assert found.index == (1, 2)
    assert found.max_error == abs(np.subtract(*found.values)) > 0
    assert here(found, "gt.host_call(host")
    assert f"instead of {found.values[0]} at index (1, 2)" in str(report)


def test_a_rule_that_differs():
    runs = iter(range(100))

    @gt.custom_vjp
    def twice(x):
        return 2 * x

    twice.defvjp(lambda ct, out, x: (ct * (2 + 0.5 * (next(runs) > 0)),))
    found = gt.check_deterministic(gt.grad(lambda x: gt.sum(twice(gt.exp(x)))), X).difference
    assert (found.op, found.cause) == ("gradient of twice", "op")
    assert here(found, "twice(gt.exp(x))")

    @gt.custom_jvp
    def squared(x):
        return x * x

    squared.defjvp(lambda tangents, out, x: tangents[0] * x * (2 + (next(runs) > 20)))
    runs = iter([0] + [30] * 100)
    forward = gt.check_deterministic(lambda x: gt.jvp(squared, (x,), (x,)), X)
    assert forward.difference.op == "squared"


def test_an_op_in_a_compiled_function():
    runs = iter(range(100))

    @gt.jit
    def step(x):
        y = gt.exp(x)
        return gt.sum(gt.host_call(lambda x: x + next(runs), y, y) * 2)

    found = gt.check_deterministic(lambda x: gt.sin(step(x)), X).difference
    assert (found.op, found.number) == ("host_call of <lambda> in the compiled step", 0)
    assert here(found, "next(runs)")
    assert found.max_error == 1


def test_draws_without_a_seed(monkeypatch):
    monkeypatch.setattr(gt.random.default_generator(), "_fixed", False)
    found = gt.check_deterministic(lambda x: gt.nn.dropout(gt.exp(x)), X).difference
    assert (found.op, found.cause) == ("random_kept", "random")
    assert "call gt.manual_seed(0) before" in str(found)


def test_functions_that_do_something_else():
    function = fickle(lambda x, run: gt.sin(x) if run else gt.cos(x), lambda run: run)
    found = gt.check_deterministic(function, X).difference
    assert (found.op, found.number, found.cause) == ("cos", 1, "order")
    function = fickle(lambda x, run: gt.sin(x) if run else x, lambda run: run)
    found = gt.check_deterministic(function, X).difference
    assert (found.op, found.number, found.cause) == ("sin", 1, "order")
    function = fickle(lambda x, run: (x, run), lambda run: run)
    found = gt.check_deterministic(function, X).difference
    assert (found.op, found.cause) == ("the result", "result")
    assert "though all ops gave the same" in str(found)


def test_threads_that_make_a_difference():
    before = [library.get_num_threads() for library in libraries()]
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300, 300)).astype(np.float32)
    try:
        for library in libraries():
            library.set_num_threads(2)
        if (on_one_thread(np.dot, a, b) == np.dot(a, b)).all():
            pytest.skip("this BLAS gives the same bits with one and with two threads")
        found = gt.check_deterministic(lambda a: gt.tanh(a @ b), gt.tensor(a)).difference
        assert (found.op, found.when, found.cause) == ("matmul", "with one thread", "op")
        assert 0 < found.max_error < 1e-3
        assert "compute it inside gt.deterministic()" in str(found)
        with gt.deterministic():
            assert gt.check_deterministic(lambda a: gt.tanh(a @ b), gt.tensor(a)).is_deterministic
    finally:
        for library, threads in zip(libraries(), before, strict=True):
            library.set_num_threads(threads)


def test_files_of_other_processes(tmp_path):
    path = tmp_path / "digests.json"
    function = gt.grad(lambda x: gt.sum(gt.exp(x) * x))
    first = gt.check_deterministic(function, X, save=path)
    again = gt.check_deterministic(function, X, against=path)
    assert again.is_deterministic
    assert again.digest == first.digest
    assert again.runs[1] == "in the run of the file"
    other = X.numpy().copy()
    other[1, 1] += 1e-9
    report = gt.check_deterministic(function, gt.tensor(other), against=path)
    assert report.digest != first.digest
    assert (report.difference.op, report.difference.cause) == ("exp", "operand")
    for text in ("{}", "no json", json.dumps({"format": "digests of gradtape 1", "steps": [1]})):
        path.write_text(text)
        with pytest.raises(FileFormatError, match="no file that check_deterministic"):
            gt.check_deterministic(function, X, against=path)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="got a float, expected a function"):
        gt.check_deterministic(1.0)
    with pytest.raises(ArgumentError, match="runs"):
        gt.check_deterministic(np.exp, X, runs=0)


def test_errors_of_the_function_leave_everything_as_it_was():
    state, threads = gt.get_rng_state(), gt.get_num_threads()

    def fails(x):
        gt.rand(3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gt.check_deterministic(fails, X)
    np.testing.assert_array_equal(gt.get_rng_state(), state)
    assert gt.get_num_threads() == threads
