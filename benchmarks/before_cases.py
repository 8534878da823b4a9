"""The programs that two states of gradtape are compared by, each made when it is asked for."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape as gt
from benchmarks import (
    before_steps,
    compiled_cases,
    compiled_gradtape,
    op_cases,
    op_worker,
    programs,
)
from benchmarks.compiled_program import Program


def _compiled(case: compiled_cases.Case) -> Program:
    return compiled_gradtape.program(case.kind, case.arrays())


def _gradient(case: programs.Case) -> Program:
    gradient = gt.grad(functools.partial(case.program, np), argnums=case.argnums)
    return Program("gradient(*args)", {"gradient": gradient, "args": (*case.data, *case.args)})


def _statement(statement: str) -> Program:
    rng = np.random.default_rng(0)
    x = gt.tensor(rng.normal(size=10), requires_grad=True)
    names: dict[str, Any] = {"np": np, "gt": gt, "x": x, "a": rng.normal(size=10)}
    names |= {"t": gt.tensor(names["a"]), "matrix": rng.normal(size=(60, 60))}
    names |= {"long": gt.tensor(rng.normal(size=1_000_000)), "product": gt.jit(np.multiply)}
    return Program(statement, names)


# What costs little but its calls, and what computes outside of gradtape's own kernels.
STATEMENTS = (
    "t + t",
    "x * x",
    "np.tanh(a)",
    "gt.reshape(t, (2, 5))",
    "x[1:]",
    "gt.tensor(1.0, requires_grad=True)",
    "x.grad = None; gt.sum(x * x).backward()",
    "x.grad = None; gt.sum(np.sin(x) * x + np.exp(x)).backward()",
    "gt.grad(lambda x: np.sum(x * x))(a)",
    "gt.hessian(lambda x: np.sum(x**3))(a)",
    "gt.jvp(np.sin, (a,), (a,))",
    "gt.vmap(lambda x: x * x)(a)",
    "product(a, a)",
    "product(a, 2.0)",
    "product(t, a)",
    "product(x, a)",
    "gt.grad(lambda m: gt.sum(gt.linalg.qr(m).Q))(matrix)",
    "gt.grad(lambda m: gt.sum(gt.linalg.solve(m, m)))(matrix)",
    "gt.fft.fft(long)",
    "gt.fft.rfft(long)",
)

PROGRAMS: dict[str, Callable[[], Program]] = {
    **{text: functools.partial(_statement, text) for text in STATEMENTS},
    **before_steps.PROGRAMS,
    **{f"gradient: {case.name}": functools.partial(_gradient, case) for case in programs.cases()},
    **{
        f"compiled: {case.name}": functools.partial(_compiled, case)
        for case in compiled_cases.CASES.values()
    },
    **{
        name: functools.partial(op_worker.our_program, case)
        for name, case in op_cases.CASES.items()
    },
}
