"""Help is a package of its own: core does without it, and most of it is loaded when needed."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import our_scipy
from gradtape import advice
from gradtape.core import hooks
from gradtape.errors import ConversionError, DTypeError, GradtapeError, LinAlgError, a_type

X = np.array([1.0, 2.0])


# ---- what is loaded when ------------------------------------------------------------------------


def loaded_by(program: str) -> set[str]:
    """The modules of help that a program loads, by their short names."""
    code = f"import sys, gradtape as gt\n{program}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    start = "gradtape.advice."
    return {name.removeprefix(start) for name in done.stdout.split() if name.startswith(start)}


def test_what_explains_is_loaded_when_something_goes_wrong() -> None:
    wrappers = {"public", "tensor_attributes"}
    assert loaded_by("gt.linalg.inv([[2.0]]); hasattr(gt, 'conv2d'); gt.ones(2).sum()") == wrappers
    wrong = "try: gt.fft.dct([1.0, 2.0], n=1j)\nexcept TypeError: pass"
    assert loaded_by(wrong) == wrappers | {"argument_errors", "error_names", "frames", "keywords"}


def test_every_name_of_the_lazy_point_is_there_and_typed() -> None:
    assert all(hasattr(advice, name) for name in advice._HOMES)
    tree = ast.parse(inspect.getsource(advice))
    typed = {
        alias.name: str(node.module).removeprefix("gradtape.advice.")
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == advice._HOMES
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        advice.nothing  # noqa: B018 - it is looked for


# ---- core without help --------------------------------------------------------------------------


def lost() -> Any:
    return float(gt.tensor(2.0, requires_grad=True) * 1.0)


def singular() -> Any:
    return gt.grad(lambda x: gt.linalg.slogdet(x)[1])(np.ones((2, 2)))


ERRORS: dict[str, tuple[Callable[[], Any], type[GradtapeError], str, str]] = {
    "conversion": (lost, ConversionError, "would be lost$", r"would be lost\. To print, plot"),
    "operand": (lambda: gt.exp(None), DTypeError, "^got None", "^exp: got None"),
    "integer": (lambda: gt.chunk(X, gt.tensor(X)), DTypeError, "^got a tens", "^chunk: got a tens"),
    "rule": (singular, LinAlgError, "^inv: got", "^slogdet: got"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_core_raises_the_same_errors_without_help(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, kind, plain, helped = ERRORS[name]
    with pytest.raises(kind, match=helped):
        call()
    without = hooks.Hooks()
    for hook in without.__slots__:
        monkeypatch.setattr(hooks.HOOKS, hook, getattr(without, hook))
    with pytest.raises(kind, match=plain):
        call()


# ---- names and words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gt.one_hot(None, 2), "one_hot"),
        (lambda: gt.gather(X, None, 0), "gather"),
        (lambda: gt.matmul(None, X), "matmul"),
        (lambda: gt.ones(3)[{}], "getitem"),
        (lambda: our_scipy.stats.norm.cdf(None), "cdf"),
        (lambda: gt.sum(np.ma.masked_array(X)), "sum"),
        (lambda: np.fill_diagonal(gt.ones((2, 2)), None), "fill_diagonal"),
        (lambda: gt.sum([gt.ones(2), 1.0]), "sum"),
    ],
)
def test_what_is_no_array_is_named_by_the_function(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(GradtapeError, match=rf"^{name}: got "):
        call()


def test_missing_names_of_nn_functional_are_answered_as_those_of_nn() -> None:
    with pytest.raises(
        AttributeError, match=r"'gradtape\.nn\.functional'.*did you mean gt\.nn\.Conv2d"
    ):
        gt.nn.functional.Conv2d  # noqa: B018 - it is looked for


def test_types_have_their_article() -> None:
    assert [a_type(x) for x in (1, 1.0, X, np.uint8(1), None)] == [
        *("an int", "a float", "an ndarray", "a uint8", "a NoneType")
    ]
    layers = gt.nn.LSTM(1, 1), gt.nn.GRU(1, 1), gt.nn.MSELoss(), gt.nn.ReLU(), gt.nn.ELU()
    rules = gt.optim.SGD(lr=1.0), gt.optim.LAMB(lr=1.0), gt.optim.Adam(lr=1.0)
    assert [a_type(x) for x in (*layers, *rules, type("A", (), {})())] == [
        *("an LSTM", "a GRU", "an MSELoss", "a ReLU", "an ELU"),
        *("an SGD", "a LAMB", "an Adam", "an A"),
    ]
