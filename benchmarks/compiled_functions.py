"""The functions that are compiled, each written once for NumPy, gradtape and JAX.

`lib.np` is the library's form of NumPy's namespace; functions of neural networks, which NumPy does
not have, and transforms are the library's own. Constants are written into the functions, as a user
would. PyTorch, whose names differ, shares what it can (`compiled_torch.py`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import loop_functions
from gradtape import optim

SLOPE, SHIFT = 1.3, -0.2
EPS = 1e-5
CLASSES = 10
SGD_RATE = 0.01


def adam() -> Any:
    """Adam as a rule: it is written with operators, which all of these libraries have.

    Made when it is needed: earlier states of gradtape, which are measured too, have no rules.
    """
    return optim.Adam(lr=1e-3)


class Library(NamedTuple):
    """What the functions below need of a library."""

    np: Any
    relu: Callable[[Any], Any]
    softmax: Callable[..., Any]
    logsumexp: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    vjp: Callable[..., Any]
    sigmoid: Callable[[Any], Any]
    scan: Callable[..., Any]
    while_loop: Callable[..., Any]
    map: Callable[..., Any]


def chain(np: Any, x: Any) -> Any:
    """Compute `tanh(a*x+b)*exp(-x*x)+log1p(abs(x))`."""
    return np.tanh(SLOPE * x + SHIFT) * np.exp(-x * x) + np.log1p(np.abs(x))


def rosenbrock(np: Any, x: Any) -> Any:
    """Compute Rosenbrock's function of n variables."""
    head, tail = x[:-1], x[1:]
    return np.sum(100.0 * (tail - head**2) ** 2 + (1.0 - head) ** 2)


def layer_norm(np: Any, x: Any, gamma: Any, beta: Any) -> Any:
    """Normalise every row, then scale and shift it."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + EPS) * gamma + beta


def regression_loss(np: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    """Compute the mean squared error of a perceptron with one hidden layer of tanh."""
    error = np.tanh(x @ w1 + b1) @ w2 + b2 - y
    return np.mean(error * error)


def classifier_loss(lib: Library, params: tuple[Any, ...], x: Any, labels: Any) -> Any:
    """Compute the cross-entropy of a perceptron with one hidden layer of relu."""
    np = lib.np
    w1, b1, w2, b2 = params
    logits = lib.relu(x @ w1 + b1) @ w2 + b2
    chosen = labels[:, None] == np.arange(CLASSES)
    picked = np.sum(np.where(chosen, logits, 0.0), axis=1)
    return np.mean(lib.logsumexp(logits, axis=1) - picked)


def _chain(lib: Library, x: Any) -> Any:
    return chain(lib.np, x)


def _add(lib: Library, x: Any, y: Any) -> Any:
    return x + y


def _rosenbrock(lib: Library, x: Any) -> Any:
    return lib.value_and_grad(lambda x: rosenbrock(lib.np, x))(x)


def _softmax(lib: Library, x: Any, g: Any) -> tuple[Any, ...]:
    out, pullback = lib.vjp(lambda x: lib.softmax(x, axis=-1), x)
    return out, *pullback(g)


def _layer_norm(lib: Library, x: Any, gamma: Any, beta: Any, g: Any) -> tuple[Any, ...]:
    out, pullback = lib.vjp(lambda *args: layer_norm(lib.np, *args), x, gamma, beta)
    return out, *pullback(g)


def _sgd_step(lib: Library, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> tuple[Any, ...]:
    def loss_of(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return regression_loss(lib.np, w1, b1, w2, b2, x, y)

    params = w1, b1, w2, b2
    loss, grads = lib.value_and_grad(loss_of, argnums=(0, 1, 2, 3))(*params)
    return *(p - SGD_RATE * g for p, g in zip(params, grads, strict=True)), loss


def _sgd_dict_step(lib: Library, params: dict[str, Any], x: Any, y: Any) -> tuple[Any, ...]:
    def loss_of(params: dict[str, Any]) -> Any:
        return regression_loss(lib.np, **params, x=x, y=y)

    loss, grads = lib.value_and_grad(loss_of)(params)
    return {name: params[name] - SGD_RATE * grads[name] for name in params}, loss


def _adam_step(lib: Library, params: Any, state: Any, x: Any, labels: Any) -> tuple[Any, ...]:
    loss, grads = lib.value_and_grad(lambda p: classifier_loss(lib, p, x, labels))(params)
    return *adam().apply(params, grads, state), loss


def _pendulum(lib: Library, start: Any, params: Any, observed: Any) -> tuple[Any, ...]:
    def misfit(start: Any, params: Any) -> Any:
        return loop_functions.pendulum_misfit(lib.np, lib.scan, start, params, observed)

    value, grads = lib.value_and_grad(misfit, argnums=(0, 1))(start, params)
    return value, *grads


def _newton(total: Callable[..., Any]) -> Callable[..., Any]:
    def roots(lib: Library, values: Any) -> Any:
        return lib.value_and_grad(lambda v: total(lib.np, lib.while_loop, lib.map, v))(values)

    return roots


def _lstm(lib: Library, wx: Any, wh: Any, bias: Any, xs: Any, g: Any) -> tuple[Any, ...]:
    def hidden(*args: Any) -> Any:
        return loop_functions.lstm(lib.np, lib.sigmoid, lib.scan, *args)

    out, pullback = lib.vjp(hidden, wx, wh, bias, xs)
    return out, *pullback(g)


def _kalman(
    lib: Library, transition: Any, emission: Any, log_q: Any, log_r: Any, observed: Any
) -> tuple[Any, ...]:
    def loss_of(*params: Any) -> Any:
        return loop_functions.kalman_loss(lib.np, lib.scan, *params, observed)

    params = transition, emission, log_q, log_r
    value, grads = lib.value_and_grad(loss_of, argnums=(0, 1, 2, 3))(*params)
    return value, *grads


class Kind(NamedTuple):
    """A function of a library and arrays; a step of training maps its `state` to the next."""

    function: Callable[..., Any]
    data: str
    """Names of the arguments that stay, as they stand in a call."""
    state: str = ""
    """Names of the arguments that the function returns anew, before the loss."""

    def of(self, lib: Library) -> Callable[..., Any]:
        """Return the function of arrays alone."""
        return lambda *args: self.function(lib, *args)


KINDS = {
    "chain": Kind(_chain, "x"),
    "add": Kind(_add, "x, y"),
    "rosenbrock": Kind(_rosenbrock, "x"),
    "softmax": Kind(_softmax, "x, g"),
    "layer norm": Kind(_layer_norm, "x, gamma, beta, g"),
    "regression": Kind(_sgd_step, "x, y", "w1, b1, w2, b2"),
    "regression, dict": Kind(_sgd_dict_step, "x, y", "params"),
    "classifier": Kind(_adam_step, "x, labels", "params, state"),
    "pendulum": Kind(_pendulum, "start, params, observed"),
    "cube roots": Kind(_newton(loop_functions.sum_of_cube_roots), "values"),
    "anomalies": Kind(_newton(loop_functions.sum_of_anomalies), "values"),
    "lstm": Kind(_lstm, "wx, wh, bias, xs, g"),
    "kalman": Kind(_kalman, "transition, emission, log_q, log_r, observed"),
}
