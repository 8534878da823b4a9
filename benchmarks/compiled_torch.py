"""PyTorch's side of the compiled benchmarks, eager and through torch.compile in its default mode.

Weights are stored as its `linear` wants them; what it has a function for is computed by that.
Training steps write into their parameters, the eager one by its fused Adam.
"""

import os
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks import THREADS
from benchmarks.compiled_cases import Arrays
from benchmarks.compiled_functions import (
    EPS,
    SGD_RATE,
    adam,
    chain,
    regression_loss,
    rosenbrock,
)
from benchmarks.compiled_program import Program, UnavailableError
from benchmarks.loop_functions import pendulum_misfit
from benchmarks.plain_loops import PlainLoops

Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]


def program(kind: str, arrays: Arrays) -> Program:
    """Return the eager program of a kind."""
    torch.set_num_threads(THREADS)
    if kind == "classifier":
        return _classifier_eager(arrays)
    return _program(kind, arrays, lambda function: function)


def compiled_program(kind: str, arrays: Arrays) -> Program:
    """Return the program of a kind through torch.compile."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise UnavailableError(f"torch.compile needs a C++ compiler, {compiler} was not found")
    torch.set_num_threads(THREADS)
    torch.compiler.reset()  # a second shape of one function would be compiled for any shape
    if kind == "classifier":
        return _classifier_compiled(arrays)
    return _program(kind, arrays, torch.compile)


def lstm_program(kind: str, arrays: Arrays) -> Program:
    """Return the program of the LSTM by PyTorch's own function for whole sequences."""
    torch.set_num_threads(THREADS)
    assert kind == "lstm"
    return _lstm(arrays, lambda layer, xs: layer(xs)[0], torch.nn.LSTM)


def _program(kind: str, arrays: Arrays, compiled: Compiler) -> Program:
    match kind:
        case "chain":
            f = compiled(lambda x: chain(torch, x))
            return Program("f(x)", _tensors(arrays) | {"f": f}, leaf=_numpy)
        case "rosenbrock":
            f = _value_and_gradient(compiled(lambda x: rosenbrock(torch, x)))
            return Program("f(x)", _tensors(arrays, "x") | {"f": f}, leaf=_numpy)
        case "softmax":
            f = _output_and_gradients(compiled(lambda x: functional.softmax(x, -1)))
            return Program("f(g, x)", _tensors(arrays, "x") | {"f": f}, leaf=_numpy)
        case "layer norm":
            f = _output_and_gradients(compiled(_layer_norm))
            names = _tensors(arrays, "x", "gamma", "beta") | {"f": f}
            return Program("f(g, x, gamma, beta)", names, leaf=_numpy)
        case "regression":
            return _regression(arrays, compiled)
        case "pendulum":
            f = _pendulum_gradient(compiled(_pendulum_misfit))
            names = _tensors(arrays, "start", "params") | {"f": f}
            return Program("f(start, params, observed)", names, leaf=_numpy)
        case "lstm":
            return _lstm(arrays, compiled(_cell_loop), torch.nn.LSTMCell)
    raise ValueError(f"no program of kind {kind!r}")


def _tensors(arrays: Arrays, *tracked: str) -> dict[str, Any]:
    return {name: torch.tensor(a, requires_grad=name in tracked) for name, a in arrays.items()}


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy()


def _value_and_gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        value = function(x)
        return value, *torch.autograd.grad(value, x)

    return call


def _output_and_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(g: torch.Tensor, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = function(*args)
        return out, *torch.autograd.grad(out, args, g)

    return call


def _layer_norm(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, gamma.shape, gamma, beta, EPS)


def _pendulum_misfit(start: Any, params: Any, observed: Any) -> torch.Tensor:
    return pendulum_misfit(torch, PlainLoops(torch.stack).scan, start, params, observed)


def _pendulum_gradient(misfit: Callable[..., Any]) -> Callable[..., Any]:
    def call(start: Any, params: Any, observed: Any) -> tuple[torch.Tensor, ...]:
        value = misfit(start, params, observed)
        return value, *torch.autograd.grad(value, (start, params))

    return call


def _cell_loop(cell: Any, xs: torch.Tensor) -> torch.Tensor:
    state, outs = None, []
    for x in xs.unbind():
        state = cell(x, state)
        outs.append(state[0])
    return torch.stack(outs)


def _lstm(arrays: Arrays, run: Callable[..., Any], make: Callable[..., Any]) -> Program:
    """Make the program of a layer of PyTorch; it has two biases, of which the second is zero."""
    wx, wh, bias = (torch.tensor(arrays[name].T.copy()) for name in ("wx", "wh", "bias"))
    layer = make(wx.shape[1], wh.shape[1])
    weights = list(layer.parameters())
    with torch.no_grad():
        for parameter, given in zip(weights, (wx, wh, bias, bias * 0.0), strict=True):
            parameter.copy_(given)

    def f(xs: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = run(layer, xs)
        return out, *torch.autograd.grad(out, (*weights, xs), g)

    def ordered(out: Any, wx: Any, wh: Any, bias: Any, _: Any, xs: Any) -> tuple[Any, ...]:
        return out, wx.T, wh.T, bias, xs

    data = _tensors({name: arrays[name] for name in ("xs", "g")}, "xs")
    names = data | {"f": f, "ordered": ordered}
    return Program("f(xs, g)", names, result="ordered(*f(xs, g))", leaf=_numpy)


def _regression(arrays: Arrays, compiled: Compiler) -> Program:
    names = ("w1", "b1", "w2", "b2")
    loss_of = compiled(lambda *args: regression_loss(torch, *args))

    def start() -> list[torch.Tensor]:
        return [torch.tensor(arrays[name], requires_grad=True) for name in names]

    def step(params: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = loss_of(*params, x, y)
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            torch._foreach_add_(params, grads, alpha=-SGD_RATE)
        return loss

    data = _tensors({name: arrays[name] for name in ("x", "y")})
    return Program(
        "loss = step(params, x, y)",
        data | {"step": step, "start": start},
        start="params = start()",
        result="(params, loss)",
        leaf=_numpy,
    )


def _classifier_loss(params: Any, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    w1, b1, w2, b2 = params
    hidden = functional.relu(functional.linear(x, w1, b1))
    return functional.cross_entropy(functional.linear(hidden, w2, b2), labels)


def _classifier_compiled(arrays: Arrays) -> Program:
    def step(params: Any, state: Any, x: Any, labels: Any) -> torch.Tensor:
        grads, loss = torch.func.grad_and_value(_classifier_loss)(params, x, labels)
        state["step"].add_(1)
        rule = adam()
        factors = rule.factors(rule.defaults, {"step": state["step"]})
        for p, g, *slots in zip(params, grads, state["mean"], state["square"], strict=True):
            after = rule.update(p, g, tuple(slots), factors)
            for old, new in zip((p, *slots), (after[0], *after[1]), strict=True):
                old.copy_(new)
        return loss

    def start() -> tuple[Any, ...]:
        given = arrays["state"]
        slots = {name: _stored(given[name]) for name in ("mean", "square")}
        return _stored(arrays["params"]), slots | {"step": torch.tensor(given["step"])}

    return Program(
        "loss = step(params, state, x, labels)",
        _classifier_data(arrays) | {"step": torch.compile(step), "start": start},
        start="params, state = start()",
        result="(params, state, loss)",
        leaf=_unstored,
    )


def _classifier_eager(arrays: Arrays) -> Program:
    def start() -> tuple[Any, ...]:
        params = [p.requires_grad_() for p in _stored(arrays["params"])]
        rule = adam()
        optimizer = torch.optim.Adam(
            params, **{name: rule.defaults[name] for name in ("lr", "betas", "eps")}, fused=True
        )
        count = torch.tensor(float(arrays["state"]["step"]))
        slots = [_stored(arrays["state"][name]) for name in ("mean", "square")]
        for p, mean, square in zip(params, *slots, strict=True):
            optimizer.state[p] = {"step": count.clone(), "exp_avg": mean, "exp_avg_sq": square}
        return params, optimizer

    def step(params: Any, optimizer: Any, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = _classifier_loss(params, x, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def state_of(params: Any, optimizer: Any) -> dict[str, Any]:
        held = [optimizer.state[p] for p in params]
        return {
            "step": held[0]["step"],
            "mean": [of["exp_avg"] for of in held],
            "square": [of["exp_avg_sq"] for of in held],
        }

    return Program(
        "loss = step(params, optimizer, x, labels)",
        _classifier_data(arrays) | {"step": step, "start": start, "state_of": state_of},
        start="params, optimizer = start()",
        result="(params, state_of(params, optimizer), loss)",
        leaf=_unstored,
    )


def _classifier_data(arrays: Arrays) -> dict[str, Any]:
    return {"x": torch.tensor(arrays["x"]), "labels": torch.tensor(arrays["labels"]).long()}


def _stored(arrays: tuple[np.ndarray, ...]) -> list[torch.Tensor]:
    """Make new tensors, matrices transposed."""
    return [torch.tensor(a.T.copy()) for a in arrays]


def _unstored(tensor: torch.Tensor) -> np.ndarray:
    return _numpy(tensor).T
