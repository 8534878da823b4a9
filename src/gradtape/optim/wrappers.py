"""Optimizers around other optimizers: SAM and Lookahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from gradtape import containers
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.ops.shared_options import options
from gradtape.optim.closures import (
    Closure,
    as_value_and_grad,
    check_finite,
    is_closure,
    undone_on_error,
)
from gradtape.optim.numbers import checked, not_negative, positive_count
from gradtape.optim.optimizer import Optimizer
from gradtape.optim.parameters import (
    Memories,
    check_state,
    held,
    is_leaf,
    loaded_number,
    loaded_slot,
)
from gradtape.optim.pure import TREES, State
from gradtape.optim.schedules import where
from gradtape.optim.stepping import root

_STATE_OF_BASE = {"base"}
# Added to the norm of the gradient, which may be 0.
_EPS = 1e-12


class Wrapper(Optimizer):
    """Base class of optimizers that change what another one does.

    The parameters, their groups and the numbers are those of the other one.

    Args:
        base: The other optimizer, made with or without parameters.

    Attributes:
        base: The other optimizer.
    """

    not_of_variables = "use that of its base"

    def __init__(self, base: Optimizer) -> None:
        if not isinstance(base, Optimizer):
            raise ArgumentError(
                f"{self.name}: got {a_type(base)}, expected an optimizer: "
                f"gt.optim.{self.name}(gt.optim.SGD(params, lr=0.1))"
            )
        self.base = base
        # The same objects, so that both see what is set in one of them.
        self.defaults, self.param_groups = base.defaults, base.param_groups

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add parameters with numbers of their own; see `Optimizer.add_param_group`."""
        self.base.add_param_group(group)

    def replace(self, **changes: Any) -> Self:
        """Return the same optimizer without parameters, with other numbers of its base.

        Args:
            **changes: The new numbers by name.
        """
        return self._around(self.base.replace(**changes))

    def _around(self, base: Optimizer) -> Self:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the base as arrays, which `gt.save` can write."""
        return self.base.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.base.load_state_dict(state)

    def _state_of(self, state: Any, names: set[str]) -> Mapping[str, Any]:
        if not isinstance(state, Mapping) or set(state) != names:
            got = sorted(state) if isinstance(state, Mapping) else a_type(state)
            raise ArgumentError(
                f"{self.name}: got a state with {got}, expected {sorted(names)}; make it by "
                "init(params)"
            )
        return state


class SAM(Wrapper):
    """Sharpness-aware minimization (Foret et al., 2021) around another optimizer.

    Gradients are taken where the loss is about the largest, at a distance of `rho`, so that a step
    leads to where the loss is small around. A step evaluates the loss twice: it takes a closure, or
    as a pure function `value_and_grad`.

    Args:
        base: The optimizer that makes the step.
        rho: The distance.
        adaptive: Whether to measure it by the size of each weight (ASAM; Kwon et al., 2021).

    Raises:
        ArgumentError: `rho` is negative, or the base is not an optimizer.

    >>> w = gt.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = gt.optim.SAM(gt.optim.SGD([w], lr=0.1), rho=0.5)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = gt.sum(w**2)
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    5.0
    >>> w.detach().numpy().round(3)
    array([0.755, 1.511])
    """

    follows_given = False

    def __init__(self, base: Optimizer, *, rho: float = 0.05, adaptive: bool = False) -> None:
        super().__init__(base)
        self.rho = not_negative(rho, self.name, "rho")
        self.adaptive = bool(adaptive)

    def _around(self, base: Optimizer) -> Self:
        return type(self)(base, rho=self.rho, adaptive=self.adaptive)

    @options(TREES)
    def init(self, params: Any) -> State:
        """Return the state of the base before the first step."""
        return {"base": self.base.init(params)}

    @options(TREES)
    def apply(
        self, params: Any, grads: Any, state: Mapping[str, Any], *, value_and_grad: Any = None
    ) -> tuple[Any, State]:
        """Return the parameters and the state after one step; nothing is changed.

        Returns:
            New parameters and the new state.

        Raises:
            ArgumentError: There is no such function, or the state or the gradients have another
                structure than the parameters.
            ShapeError: A gradient has another shape than its parameter.

        >>> f = gt.value_and_grad(lambda w: np.sum(w**2))
        >>> sam, w = gt.optim.SAM(gt.optim.SGD(lr=0.1), rho=0.5), np.array([1.0, 2.0])
        >>> w, state = sam.apply(w, f(w)[1], sam.init(w), value_and_grad=f)
        >>> w.round(3)
        array([0.755, 1.511])
        """
        function = as_value_and_grad(self.name, value_and_grad)
        own = self._state_of(state, _STATE_OF_BASE)
        values, structure = containers.flatten(params)
        gradients = self._aligned(grads, "a gradient", values, structure)
        moved = self._moved(values, gradients)
        _, sharp = function(containers.unflatten(structure, moved))
        new, after = self.base.apply(params, sharp, own["base"])
        return new, {"base": after}

    def step(self, closure: Any = None, params: Any = None) -> Any:
        """Make one step.

        Args:
            closure: Computes the loss and its gradients: it clears the gradients, calls
                `backward()` and returns the loss. It is called twice.
            params: The parameters; those the base was made with if not given.

        Returns:
            What the closure returned for the parameters before the step.

        Raises:
            ArgumentError: There is no closure, or it returns no loss.
            NonFiniteError: A loss or a gradient is not finite. Then, as after any error, the
                parameters are as before.
        """
        own = [param for param in self.base._meant(params, "step") if is_leaf(param)]
        call = Closure(self.name, closure, own)
        with undone_on_error(own):
            check_finite(self.name, call(), call.gradients())
            result = call.loss
            before = [param.value for param in own]
            pairs = list(zip(own, before, call.gradients(), strict=True))
            used = [(param, value, g) for param, value, g in pairs if g is not None]
            moved = self._moved([value for _, value, _ in used], [g for *_, g in used])
            for (param, _, _), value in zip(used, moved, strict=True):
                param.value = np.asarray(value)
            check_finite(self.name, call(), call.gradients())
            for param, value in zip(own, before, strict=True):
                param.value = value
            self.base.step(params)
        return result

    def _moved(self, values: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        """Parameters at a distance of rho: w + rho·g/‖g‖; adaptive w + rho·w²·g/‖|w|·g‖."""
        if not values:
            return []
        wide = [(_wide(w), _wide(g)) for w, g in zip(values, gradients, strict=True)]
        if self.adaptive:
            wide = [(w, abs(w) * g) for w, g in wide]
        norm = root(sum([np.sum((g * g.conj()).real) for _, g in wide]))
        scale = self.rho / (norm + _EPS)
        moved = []
        for value, (w, g) in zip(values, wide, strict=True):
            new = w + (abs(w) * g if self.adaptive else g) * scale
            moved.append(new if new.dtype == value.dtype else new.astype(value.dtype))
        return moved


def _wide(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.itemsize <= 2 else x


class Lookahead(Wrapper):
    """Lookahead (Zhang et al., 2019) around another optimizer.

    The other optimizer makes `k` steps; then slow weights go a part of the way to where it has
    got, and it goes on from there.

    Args:
        base: The optimizer that makes the steps.
        k: How many steps it makes.
        alpha: How much of the way the slow weights go.

    Raises:
        ArgumentError: A number is out of its range, or the base is not an optimizer.

    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> optimizer = gt.optim.Lookahead(gt.optim.SGD([w], lr=0.1), k=2, alpha=0.5)
    >>> for _ in range(2):
    ...     optimizer.step([np.ones(1)])
    >>> w
    tensor([0.9], requires_grad=True)
    """

    def __init__(self, base: Optimizer, *, k: int = 5, alpha: float = 0.5) -> None:
        super().__init__(base)
        self.k = positive_count(k, self.name, "k")
        self.alpha = checked(alpha, self.name, "alpha", "a number in [0, 1]", lambda x: 0 <= x <= 1)
        self._slow = Memories()
        # The name in states, which another one inside has, too.
        inside = 0
        while isinstance(base, Wrapper):
            inside, base = inside + isinstance(base, Lookahead), base.base
        self._part = f"slow_{inside}" if inside else "slow"

    def _around(self, base: Optimizer) -> Self:
        return type(self)(base, k=self.k, alpha=self.alpha)

    @options(TREES)
    def init(self, params: Any) -> State:
        """Return the state before the first step: that of the base, and the slow weights."""
        leaves, structure = containers.flatten(params)
        slow = list(map(held, leaves))
        return {
            "base": self.base.init(params),
            "slow": containers.unflatten(structure, slow),
            "step": 0,
        }

    @options(TREES)
    def apply(
        self, params: Any, grads: Any, state: Mapping[str, Any], **more: Any
    ) -> tuple[Any, State]:
        """Return the parameters and the state after one step; nothing is changed.

        Args:
            **more: What the base takes further, such as `value_and_grad`.

        Returns:
            New parameters and the new state.

        Raises:
            ArgumentError: The state or the gradients have another structure than the parameters.

        >>> opt, w = gt.optim.Lookahead(gt.optim.SGD(lr=0.1), k=2), np.array([1.0])
        >>> state = opt.init(w)
        >>> for _ in range(2):
        ...     w, state = opt.apply(w, np.ones(1), state)
        >>> w
        array([0.9])
        """
        own = self._state_of(state, {"base", "slow", "step"})
        fast, base = self.base.apply(params, grads, own["base"], **more)
        values, structure = containers.flatten(fast)
        slow = self._aligned(own["slow"], "slow weights", values, structure)
        step = own["step"] + 1
        is_due = step % self.k == 0
        slow = [where(is_due, self._between(s, v), s) for s, v in zip(slow, values, strict=True)]
        values = [where(is_due, s, v) for s, v in zip(slow, values, strict=True)]
        after = {"base": base, "slow": containers.unflatten(structure, slow), "step": step}
        return containers.unflatten(structure, values), after

    def _between(self, slow: Any, fast: Any) -> Any:
        """Slow weights after a part of the way: s + alpha·(w − s)."""
        new = _wide(slow) + self.alpha * (_wide(fast) - _wide(slow))
        return new if new.dtype == slow.dtype else new.astype(slow.dtype)

    def step(self, given: Any = None, *more: Any) -> Any:
        """Make one step of the base, and every `k` steps one of the slow weights.

        Args:
            given: As for the base: nothing, gradients, parameters, or a closure.
            *more: What else the base takes.

        Returns:
            What the base returns.

        Raises:
            GradtapeError: The base raises it; nothing is changed then.
        """
        own = self._parameters(given, more)
        before = [param.value for param in own]
        base: Any = self.base
        result = base.step(given, *more)
        for param, value in zip(own, before, strict=True):
            if param.value is value:
                continue  # it had no gradient
            memory = self._slow.of(param, self.name)
            slow = memory.slots.get("slow", value)
            count = memory.clock.get("step", 0) + 1
            if count % self.k == 0:
                slow = np.asarray(self._between(slow, param.value))
                param.value = slow.copy()
            memory.slots, memory.clock = {"slow": slow}, {"step": count}
        return result

    def _parameters(self, given: Any, more: Sequence[Any]) -> list[Tensor]:
        """The parameters that a step may change."""
        listed = (more[0] if more else None) if is_closure(given) else given
        if listed is None or self.param_groups:
            return self.base._meant(None, "step")
        return self.base._meant(listed, "step")

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the base and the slow weights as arrays, which `gt.save` can write.

        Returns:
            New arrays: those of the base, and `"0.slow"` and `"0.slow_step"` for parameter 0.
        """
        state = self.base.state_dict()
        for position, param in enumerate(self.params):
            memory = self._slow.get(id(param))
            if memory is not None:
                state[f"{position}.{self._part}"] = np.array(memory.slots["slow"])
                state[f"{position}.{self._part}_step"] = np.array(memory.clock["step"])
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state(self.name, state)
        rest, found = dict(state), []
        for position, param in enumerate(self.params):
            names = [f"{position}.{self._part}", f"{position}.{self._part}_step"]
            slow, count = (rest.pop(name, None) for name in names)
            if slow is None and count is None:
                continue
            if slow is None or count is None:
                raise ArgumentError(
                    f"{self.name}: got no state {names[slow is not None]!r}, expected both the "
                    "slow weights and the number of their steps"
                )
            array = np.array(slow.detach() if isinstance(slow, Tensor) else slow)
            array = loaded_slot(self.name, names[0], array, param)
            count = loaded_number(self.name, names[1], np.asarray(count), 0)
            found.append((param, array, count))
        self.base.load_state_dict(rest)
        self._slow.clear()
        for param, slow, count in found:
            memory = self._slow.of(param, self.name)
            memory.slots, memory.clock = {"slow": slow}, {"step": count}
