"""L-BFGS: steps by an approximate Hessian, which is remembered as a few pairs of vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from gradtape import containers
from gradtape.autodiff.host_call import host_call
from gradtape.core.aval import Abstract, aval_of
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import ArgumentError, ShapeError
from gradtape.graph.known_values import is_traced
from gradtape.graph.loop_state import traced_function
from gradtape.graph.run import replay
from gradtape.locks import load
from gradtape.ops.shared_options import options
from gradtape.optim.closures import Closure, as_value_and_grad, check_finite, undone_on_error
from gradtape.optim.lbfgs_steps import Memory, iterate, no_memory
from gradtape.optim.numbers import at_step, not_negative, plain, positive_count
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.parameters import check_state, is_leaf
from gradtape.optim.pure import TREES, State
from gradtape.solvers.vectors import Vectors

_STATE = Memory._fields


class LBFGS(Optimizer):
    """L-BFGS with a line search for the strong conditions of Wolfe (Liu and Nocedal, 1989).

    A step makes up to `max_iter` iterations, and evaluates the loss and its gradients as often as
    it needs: it takes a closure, or as a pure function `value_and_grad`. The loss must be the same
    function throughout a step, so it is not for small batches. The numbers and their meaning are
    PyTorch's.

    In a compiled function a step is a part of its own, which calls the compiled loss: how often
    depends on values. The pure form keeps room for `history_size` pairs in its state.

    Args:
        params: The parameters.
        lr: The length of the step that is tried first.
        max_iter: The largest number of iterations of a step.
        max_eval: After how many evaluations a step ends; 1.25 times `max_iter` by default.
        tolerance_grad: No element of the gradient is larger at the end.
        tolerance_change: A step ends when the loss, or every parameter, changes less.
        history_size: How many pairs of vectors are remembered.
        line_search_fn: `"strong_wolfe"`, or None to take the step of length `lr` as it is.

    Raises:
        ArgumentError: A number is out of its range.

    >>> x = gt.tensor([-1.2, 1.0], requires_grad=True)
    >>> optimizer = gt.optim.LBFGS([x], max_iter=100, tolerance_change=1e-15)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    ...     loss.backward()
    ...     return loss
    >>> round(optimizer.step(closure).item(), 6)
    24.2
    >>> x.detach().numpy().round(6)
    array([1., 1.])
    """

    not_of_variables = "it evaluates the loss; use its apply with value_and_grad"
    follows_given = False
    checks: ClassVar = {
        "max_iter": positive_count,
        "max_eval": positive_count,
        "tolerance_grad": not_negative,
        "tolerance_change": not_negative,
        "history_size": positive_count,
    }

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = "strong_wolfe",
    ) -> None:
        if line_search_fn not in ("strong_wolfe", None):
            raise ArgumentError(
                f"LBFGS: got line_search_fn={line_search_fn!r}, expected 'strong_wolfe' or None"
            )
        self.line_search_fn = line_search_fn
        max_iter = positive_count(max_iter, "LBFGS", "max_iter")
        self._memory: Memory | None = None
        super().__init__(
            params,
            lr=lr,
            max_iter=max_iter,
            max_eval=5 * max_iter // 4 or 1 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
        )

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add the parameters; there is one group.

        Args:
            group: `{"params": [...]}`, and numbers by name.

        Raises:
            ArgumentError: There is a group already.
        """
        if self.param_groups:
            raise ArgumentError(
                "LBFGS: got a second group of parameters, expected one: its steps have one length"
            )
        super().add_param_group(group)

    def replace(self, **changes: Any) -> Self:
        return super().replace(**{"line_search_fn": self.line_search_fn, **changes})

    # ---- as a pure function ----------------------------------------------------------------

    @options(TREES)
    def init(self, params: Any) -> State:
        """Return the state of parameters before the first step.

        Raises:
            DTypeError: A parameter is not of floating-point or complex numbers.
        """
        leaves, _ = containers.flatten(params)
        self._check_dtypes(leaves)
        vectors = Vectors([np.zeros(x.shape, _wide_dtype(x)) for x in leaves])
        return self._padded(no_memory(vectors.size, vectors.dtype))

    @options(TREES)
    def apply(
        self, params: Any, grads: Any, state: Mapping[str, Any], *, value_and_grad: Any = None
    ) -> tuple[Any, State]:
        """Return the parameters and the state after one step; nothing is changed.

        Args:
            grads: May be None: the step evaluates gradients itself.

        Returns:
            New parameters and the new state.

        Raises:
            ArgumentError: There is no such function, or the state is of other parameters.
            NonFiniteError: The loss or a gradient is not finite at the parameters.
            NotDifferentiableError: A derivative is taken of the result.

        >>> def loss(x):
        ...     return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        >>> opt = gt.optim.LBFGS(max_iter=100, tolerance_change=1e-15)
        >>> x = np.array([-1.2, 1.0])
        >>> state = opt.init(x)
        >>> x, state = opt.apply(x, None, state, value_and_grad=gt.value_and_grad(loss))
        >>> x.round(6)
        array([1., 1.])
        """
        function = as_value_and_grad(self.name, value_and_grad)
        leaves, structure = containers.flatten(params)
        self._check_dtypes(leaves)
        _memory(state)
        numbers = dict(self.defaults.read())

        def flat(*values: Any) -> tuple[Any, ...]:
            loss, grads = function(containers.unflatten(structure, list(values)))
            return loss, *self._aligned(grads, "a gradient", leaves, structure)

        def evaluate(values: list[Any]) -> tuple[float, list[Any]]:
            found = flat(*_like(leaves, values))
            if any(map(_is_of_transform, found)):
                raise _OfTransformError
            loss, *grads = map(_array, found)
            return float(loss), grads

        operands = [*leaves, *containers.flatten(dict(state))[0], numbers["lr"]]
        try:
            if is_traced(operands) or any(map(_is_of_transform, operands)):
                raise _OfTransformError
            numbers["lr"] = plain(numbers["lr"])
            values = list(map(_array, leaves))
            found, memory = self._stepped(values, _memory(state), evaluate, numbers)
            new, after = _like(leaves, found), self._padded(memory)
        except _OfTransformError:
            new, after = self._by_host(flat, leaves, dict(state), numbers)
        return containers.unflatten(structure, new), after

    def _by_host(
        self, function: Any, leaves: list[Any], state: State, numbers: dict[str, Any]
    ) -> tuple[list[Any], State]:
        """A step between the parts of a compiled function: how long it takes depends on values.

        The function of the parameters becomes a graph, and all else that it uses an argument.
        """
        traced = traced_function(self.name, function, [aval_of(leaf) for leaf in leaves])
        evaluate_all = load("gradtape.compiler.jit").jit(
            lambda *operands: tuple(replay(traced.graph, operands))
        )

        def step(values: list[Any], held: State, lr: Any, captures: list[Any]) -> Any:
            def evaluate(at: list[Any]) -> tuple[float, list[Any]]:
                loss, *grads = evaluate_all(*at, *captures)
                return float(loss), list(map(np.asarray, grads))

            known = {**numbers, "lr": lr if callable(lr) else float(lr)}
            found, memory = self._stepped(values, _memory(held), evaluate, known)
            return found, self._padded(memory)

        like = ([aval_of(leaf) for leaf in leaves], {k: aval_of(x) for k, x in state.items()})
        given = leaves, state, numbers["lr"], list(traced.captures)
        return host_call(step, like, *given, deterministic=True)  # type: ignore[no-any-return]

    def _padded(self, memory: Memory) -> State:
        """The memory as a state, whose shapes do not depend on how much there is in it."""
        state: State = {**memory._asdict(), "step": np.asarray(memory.step, np.int64)}
        for name in ("moves", "differences"):
            rows = state[name]
            most = max(self.defaults["history_size"], len(rows))
            state[name] = np.zeros((most, rows.shape[1]), rows.dtype)
            state[name][most - len(rows) :] = rows
        return state

    def _stepped(
        self, values: list[Any], memory: Memory, evaluate: Any, numbers: dict[str, Any]
    ) -> tuple[list[Any], Memory]:
        """The values and the memory after one step."""
        vectors = Vectors(_wide(values))
        if memory.move.shape != (vectors.size,):
            raise ShapeError(
                f"LBFGS: got a state of {memory.move.size} numbers for parameters of "
                f"{vectors.size}; make it by init(params)"
            )

        def at(vector: Any) -> list[Any]:
            parts = vectors.leaves(vector)
            return [np.asarray(x, v.dtype) for x, v in zip(parts, values, strict=True)]

        def function(vector: Any) -> tuple[float, Any]:
            loss, gradients = evaluate(at(vector))
            return loss, vectors.flat(_wide(gradients))

        x = vectors.flat(_wide(values))
        loss, gradient = function(x)
        check_finite(self.name, loss, [gradient])
        numbers = at_step(numbers, self.name, memory.step)
        numbers = {**numbers, "line_search_fn": self.line_search_fn}
        x, memory = iterate(function, x, loss, gradient, memory, numbers)
        return at(x), memory

    # ---- as steps of tensors ---------------------------------------------------------------

    def step(self, closure: Any = None, params: Any = None) -> Any:
        """Make one step.

        Args:
            closure: Computes the loss and its gradients: it clears the gradients, calls
                `backward()` and returns the loss. It is called several times.
            params: The parameters; those the optimizer was made with if not given.

        Returns:
            What the closure returned for the parameters before the step.

        Raises:
            ArgumentError: There is no closure, or it returns no loss.
            NonFiniteError: The loss or a gradient is not finite. Then, as after any error,
                the parameters are as before.
        """
        call = Closure(self.name, closure, self._trained(params))
        memory = self._memory
        first: list[Any] = []

        def evaluate(values: list[Any]) -> tuple[float, list[Any]]:
            for param, value in zip(call.params, values, strict=True):
                param.value = value
            loss = call()
            first.append(call.loss)
            found = zip(call.gradients(), values, strict=True)
            return loss, [np.zeros_like(v) if g is None else g for g, v in found]

        with undone_on_error(call.params):
            values = [param.value for param in call.params]
            if memory is None:
                vectors = Vectors(_wide(values))
                memory = no_memory(vectors.size, vectors.dtype)
            group = self.param_groups[0] if self.param_groups else self.defaults
            new, memory = self._stepped(values, memory, evaluate, group.plain())
            for param, value in zip(call.params, new, strict=True):
                param.value = value
            self._memory = memory
        return first[0]

    def _trained(self, params: Any) -> list[Tensor]:
        """The parameters that are not frozen."""
        return [param for param in self._meant(params, "step") if is_leaf(param)]

    def state_dict(self) -> dict[str, Any]:
        """Copies of all state as arrays, which `gt.save` can write.

        Returns:
            New arrays: what is remembered, as in `"moves"`, and the numbers, as in `"groups.0.lr"`.

        Raises:
            ArgumentError: The optimizer was made without parameters.
        """
        memory = {} if self._memory is None else self._memory._asdict()
        return super().state_dict() | {name: np.array(value) for name, value in memory.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("LBFGS", state)
        own = {name: value for name, value in state.items() if name in _STATE}
        memory = None
        if own:
            values = [param.value for param in self._trained(None)]
            vectors = Vectors(_wide(values))
            arrays = {name: np.array(_array(value)) for name, value in own.items()}
            for name, value in arrays.items():
                if name != "step" and (value.shape[-1:] != (vectors.size,) or value.ndim > 2):
                    raise ShapeError(
                        f"LBFGS: got state {name!r} of shape {value.shape} for parameters of "
                        f"{vectors.size} numbers"
                    )
            memory = _memory(arrays)
        super().load_state_dict({name: x for name, x in state.items() if name not in own})
        self._memory = memory


class _OfTransformError(Exception):
    """Something is traced, batched or differentiated."""


def _memory(state: Mapping[str, Any]) -> Memory:
    """The memory in a state, checked; that of a trace is not to be used further."""
    if not isinstance(state, Mapping) or set(state) != set(_STATE):
        got = sorted(state) if isinstance(state, Mapping) else type(state).__name__
        raise ArgumentError(
            f"LBFGS: got a state with {got}, expected {sorted(_STATE)}; make it by init(params)"
        )
    held = [state[name] for name in _STATE]
    if any(map(_is_of_transform, held)):
        return Memory(*held)
    step, move, gradient, moves, differences = map(_array, held)
    # Rows of zeros are room for more.
    used = np.any(moves, axis=1)
    return Memory(int(step), move, gradient, moves[used], differences[used])


def _is_of_transform(value: Any) -> bool:
    """Whether a tensor is traced or batched, or derivatives are taken by it."""
    if not isinstance(value, Tensor):
        return False
    return isinstance(value.value, Tensor | Abstract) or not (
        value.record is None or is_leaf(value)
    )


def _array(value: Any) -> Any:
    return np.asarray(innermost(value) if isinstance(value, Tensor) else value)


def _like(leaves: list[Any], values: list[Any]) -> list[Any]:
    """Tensors where leaves are."""
    return [Tensor(v) if isinstance(x, Tensor) else v for x, v in zip(leaves, values, strict=True)]


def _wide_dtype(x: Any) -> Any:
    return np.float32 if x.dtype.itemsize <= 2 else x.dtype


def _wide(values: list[Any]) -> list[Any]:
    """Arrays of at least 32 bits."""
    return [x.astype(_wide_dtype(x), copy=False) for x in values]
