"""Sophia: steps scaled by an estimate of the diagonal of the Hessian."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gradtape import containers
from gradtape.autodiff.transforms import jvp
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, DTypeError
from gradtape.graph.branches import cond
from gradtape.ops.arguments import as_integer
from gradtape.ops.shared_options import options
from gradtape.optim.closures import (
    Closure,
    as_value_and_grad,
    check_finite,
    gradients_of,
    undone_on_error,
)
from gradtape.optim.numbers import (
    arguments,
    at_step,
    explained,
    not_negative,
    positive_count,
    switch,
)
from gradtape.optim.optimizer import Job, Optimizer
from gradtape.optim.parameters import is_leaf
from gradtape.optim.pure import TREES, State
from gradtape.optim.stepping import Factors, Slots, elementwise

_Numbers = Mapping[str, Any]


@explained
class Sophia(Optimizer):
    """Sophia (Liu et al., 2023): the mean gradient divided by the mean diagonal of the Hessian.

    No element of a step is larger than the learning rate. Every `every` steps, from the first one,
    the diagonal is estimated anew, in one of two ways:

    - Hutchinson's, by default: s·(H s) with random signs s, one product of the Hessian with a
      vector. The pure form differentiates `value_and_grad` once more; a closure has to call
      `loss.backward(create_graph=True)` in these steps. The signs are a function of `seed` and of
      the number of the step.
    - Gauss, Newton and Bartlett's, with `gauss_newton=True`: `batch_size`·g², where g is the
      gradient of the mean loss for labels that are drawn from what the model predicts. That loss
      is the one that `value_and_grad`, or the closure `sampled`, computes.

    Args:
        params: The parameters, or groups of them.
        betas: How much of the means of the gradient and of the diagonal is kept, in [0, 1).
        rho: What the diagonal is multiplied by; the paper's gamma.
        weight_decay: How much of the parameter is taken away, times the learning rate.
        eps: The smallest number that is divided by.
        every: After how many steps the diagonal is estimated again.
        gauss_newton: Whether it is estimated in the second way.
        batch_size: The number of samples of a batch, for the second way.
        seed: The seed of the signs.

    >>> w = gt.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = gt.optim.Sophia([w], lr=0.1, betas=(0.5, 0.5), rho=1.0)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = gt.sum(gt.tensor([1.0, 100.0]) * w**2)
    ...     loss.backward(create_graph=True)
    ...     return loss
    >>> for _ in range(100):
    ...     _ = optimizer.step(closure)
    >>> bool(gt.all(gt.abs(w) < 0.01))
    True
    """

    checks: ClassVar = {
        "rho": not_negative,
        "every": positive_count,
        "gauss_newton": switch,
        "batch_size": positive_count,
        "seed": as_integer,
    }
    slots = ("mean", "hessian")
    not_of_variables = "it evaluates the loss; use its apply with value_and_grad"

    def __init__(
        self,
        params: Any = None,
        *,
        lr: Any = 1e-4,
        betas: tuple[Any, Any] = (0.965, 0.99),
        rho: Any = 0.04,
        weight_decay: Any = 0.1,
        eps: Any = 1e-12,
        every: int = 10,
        gauss_newton: bool = False,
        batch_size: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(**arguments(locals()))

    def clock(self, numbers: _Numbers) -> dict[str, Any]:
        """The number of steps."""
        return {"step": 0}

    def factors(self, numbers: _Numbers, clock: _Numbers) -> Factors:
        """Return the numbers that `update` needs."""
        lr = numbers["lr"]
        return lr, numbers["betas"][0], numbers["rho"], numbers["eps"], lr * numbers["weight_decay"]

    @staticmethod
    @elementwise
    def update(value: Any, gradient: Any, slots: Slots, factors: Factors) -> tuple[Any, Slots]:
        """With means m of g and h of the Hessian: x ← x − lr·λ·x − lr·clip(m / max(ρ·h, ε), ±1)."""
        lr, beta, rho, eps, decay = factors
        mean, hessian = slots
        mean = beta * mean + (1 - beta) * gradient
        ratio = mean / np.maximum(rho * hessian, eps)
        return value - decay * value - lr * np.clip(ratio, -1.0, 1.0), (mean, hessian)

    # ---- as a pure function ----------------------------------------------------------------

    @options(TREES)
    def apply(
        self, params: Any, grads: Any, state: Mapping[str, Any], *, value_and_grad: Any = None
    ) -> tuple[Any, State]:
        """Return the parameters and the state after one step; nothing is changed.

        Args:
            value_and_grad: Takes parameters; returns the loss and its gradients. It is called when
                the Hessian is estimated, or traced if the number of the step is.

        Returns:
            New parameters and the new state.

        Raises:
            ArgumentError: There is no such function, or the state or the gradients have another
                structure than the parameters.
            DTypeError: A parameter is complex.

        >>> f = gt.value_and_grad(lambda w: np.sum(np.array([1.0, 100.0]) * w**2))
        >>> opt, w = gt.optim.Sophia(lr=0.1, betas=(0.5, 0.5), rho=1.0), np.array([1.0, 2.0])
        >>> state = opt.init(w)
        >>> for _ in range(100):
        ...     w, state = opt.apply(w, f(w)[1], state, value_and_grad=f)
        >>> bool(np.all(abs(w) < 0.01))
        True
        """
        function = as_value_and_grad(self.name, value_and_grad)
        if not isinstance(state, Mapping) or "step" not in state or "hessian" not in state:
            raise ArgumentError(f"{self.name}: got no state, expected one made by init(params)")
        step = state["step"]
        numbers = at_step(self.defaults.read(), self.name, step)
        values, structure = containers.flatten(params)
        means = self._aligned(state["hessian"], "hessian", values, structure)

        def estimated() -> list[Any]:
            found = self._estimate(function, values, structure, numbers, step)
            return [_mixed(m, e, numbers) for m, e in zip(means, found, strict=True)]

        fresh = cond(step % numbers["every"] == 0, estimated, lambda: means)
        return super().apply(
            params, grads, {**state, "hessian": containers.unflatten(structure, fresh)}
        )

    def _estimate(
        self, function: Any, values: list[Any], structure: Any, numbers: _Numbers, step: Any
    ) -> list[Any]:
        """An estimate of the diagonal of the Hessian, for each parameter."""

        def gradients(*leaves: Any) -> tuple[Any, ...]:
            _, grads = function(containers.unflatten(structure, list(leaves)))
            return tuple(self._aligned(grads, "a gradient", values, structure))

        if numbers["gauss_newton"]:
            return _squares(gradients(*values), numbers)
        signs = random_signs(values, numbers["seed"], step)
        _, products = jvp(gradients, tuple(values), tuple(signs))
        return [s * p for s, p in zip(signs, products, strict=True)]

    def _check_dtypes(self, values: list[Any]) -> None:
        super()._check_dtypes(values)
        if any(value.dtype.kind == "c" for value in values):
            raise DTypeError("Sophia: got a complex parameter, expected real ones")

    # ---- as steps of tensors ---------------------------------------------------------------

    def step(self, closure: Any = None, sampled: Any = None) -> Any:
        """Make one step.

        Args:
            closure: Computes the loss and its gradients: it clears the gradients, calls
                `backward()` and returns the loss. In steps that estimate the Hessian by
                Hutchinson's way it has to call `backward(create_graph=True)`; it may always.
            sampled: With `gauss_newton`, the same for the loss with drawn labels. It is called in
                steps that estimate the Hessian.

        Returns:
            What the closure returned.

        Raises:
            ArgumentError: There is no closure, it returns no loss, or it does not record the
                backward pass where that is needed.
            DTypeError: A parameter is complex.
            NonFiniteError: The loss, a gradient or the estimate is not finite. Then, as after any
                error, everything is as before.
        """
        own = [param for param in self._meant(None, "step") if is_leaf(param)]
        self._check_dtypes(own)
        call = Closure(self.name, closure, own)
        with undone_on_error(own):
            loss = call()
            result, grads = call.loss, [param.grad for param in own]
            check_finite(self.name, loss, call.gradients())
            jobs = self._jobs()
            slots = [(job[2], self._settled(job).slots) for job in jobs]
            due = [job for job in jobs if job[2].clock["step"] % job[0]["every"] == 0]
            try:
                if due:
                    self._repeats = []  # they refer to the arrays that are replaced
                    self._estimate_by_closure(due, own, sampled)
                    for param, gradient in zip(own, grads, strict=True):
                        param.grad = None if gradient is None else gradient.detach()
                super().step()
            except BaseException:
                for memory, before in slots:
                    memory.slots = before
                raise
        return result

    def _estimate_by_closure(self, due: list[Job], own: list[Tensor], sampled: Any) -> None:
        """Take an estimate of the Hessian into the slots of parameters."""
        steps = [job[2].clock["step"] for job in due]
        numbers = [
            at_step(job[0].plain(), self.name, step) for job, step in zip(due, steps, strict=True)
        ]
        params = [job[1] for job in due]
        if numbers[0]["gauss_newton"]:
            call = Closure(f"{self.name}, sampled", sampled, own)
            loss = call()
            found = _squares(gradients_of(params), numbers[0])
        else:
            loss = 0.0
            all_signs = random_signs([p.value for p in own], numbers[0]["seed"], steps[0])
            of = {id(param): signs for param, signs in zip(own, all_signs, strict=True)}
            found = self._products(params, [of[id(param)] for param in params])
        check_finite(f"{self.name}, Hessian", loss, found)
        for job, estimate, own_numbers in zip(due, found, numbers, strict=True):
            memory = job[2]
            if estimate is not None:
                mean = _mixed(memory.slots["hessian"], estimate, own_numbers)
                memory.slots = {**memory.slots, "hessian": np.asarray(mean)}

    def _products(self, params: Sequence[Tensor], signs: list[Any]) -> list[Any]:
        """s·(H s) by the recorded backward pass of the closure."""
        recorded = [param.grad for param in params]
        parts: list[Any] = [
            (g * s).sum()
            for g, s in zip(recorded, signs, strict=True)
            if g is not None and g.record is not None
        ]
        if not parts:
            raise ArgumentError(
                f"{self.name}.step: got gradients without history from the closure, expected that "
                "it calls loss.backward(create_graph=True): this step estimates the Hessian"
            )
        for param in params:
            param.grad = None
        sum(parts[1:], parts[0]).backward()
        found = gradients_of(params)
        return [np.zeros_like(s) if p is None else s * p for s, p in zip(signs, found, strict=True)]


def _squares(gradients: Sequence[Any], numbers: _Numbers) -> list[Any]:
    """B·g², the estimate of Gauss, Newton and Bartlett."""
    return [None if g is None else numbers["batch_size"] * g * g for g in gradients]


def _mixed(mean: Any, estimate: Any, numbers: _Numbers) -> Any:
    """β·h + (1 − β)·estimate, in the dtype of h."""
    beta = numbers["betas"][1]
    new = beta * mean + (1 - beta) * estimate.astype(mean.dtype)
    return new if new.dtype == mean.dtype else new.astype(mean.dtype)


# ---- signs --------------------------------------------------------------------------------------


def random_signs(values: Sequence[Any], seed: int, step: Any) -> list[Any]:
    """Arrays of ±1 like parameters, a function of the seed and of the step, which may be traced."""
    signs = []
    for position, value in enumerate(values):
        size = math.prod(value.shape)
        # 32-bit words: a hash of the place in the array, the array, the step and the seed.
        word = np.arange(max(size, 1), dtype=np.uint32)
        for part in (seed + 1, position, step):
            word = _hashed(word + _word(part))
        bits = (word >> np.uint32(31))[:size].reshape(value.shape)
        signs.append((1.0 - 2.0 * bits).astype(value.dtype))
    return signs


def _word(number: Any) -> Any:
    if isinstance(number, Tensor):
        return number.astype(np.uint32)
    return np.full(1, number & 0xFFFFFFFF, np.uint32)


def _hashed(word: Any) -> Any:
    """The last steps of MurmurHash3, in which each bit depends on all."""
    word = (word ^ (word >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    word = (word ^ (word >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return word ^ (word >> np.uint32(16))
