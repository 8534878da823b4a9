"""One step of a training: gradients of a few batches, and what the optimizer makes of them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.amp.config import AmpConfig
from gradtape.amp.loss_scaler import HOPELESS, select
from gradtape.autodiff.checkpoint import checkpoint as checkpointed
from gradtape.autodiff.checkpoint_config import CheckpointConfig
from gradtape.autodiff.reverse import value_and_grad, vjp
from gradtape.core.finite import is_traced
from gradtape.core.lazy import found_at
from gradtape.core.state import checked_flag, no_grad, using_mode
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, NonFiniteError, a_type
from gradtape.gradients.accumulation import accumulate
from gradtape.gradients.clipping import clip_by_global_norm
from gradtape.gradients.step import Step
from gradtape.io.leaf_names import named_leaves
from gradtape.nn.module import Module
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_positive
from gradtape.optim.parameters import is_leaf
from gradtape.training.evaluation import check_number, number
from gradtape.training.optimizers import holder_of, optimizers_in

Loss = Callable[[Any, Any], Any]
# A largest norm of all gradients, or a function from gradients to gradients.
Clip = float | Callable[[Any], Any] | None


class LossError(NonFiniteError):
    """A loss that is not finite, with its place among the batches of a step."""

    def __init__(self, value: float, place: int) -> None:
        super().__init__(
            f"the loss is {value}; lower the learning rate, clip gradients with clip=1.0, look for "
            "NaN in the batch, or find the op with gt.detect_anomaly()"
        )
        self.place = place


class TrainingStep:
    """Steps of an optimizer: `losses, model, state = step(model, state, batches)`.

    The gradient is the mean of those of the batches. A module is changed in place, unless the step
    is compiled; then it is a new one, and so are containers of arrays.

    Args:
        loss: `loss(model, batch)`, a number.
        optimizer: An optimizer with `init` and `apply`, such as `gt.optim.Adam(lr=0.01)`. One that
            was made with parameters of a module, perhaps in groups, will do if nothing is compiled.
        clip: The largest norm of all gradients together, or a function from gradients to gradients.
        checkpoint: How to compute with less memory.
        amp: How to compute in 16 bits. With a loss scaler, a step whose gradients are not finite
            changes neither parameters nor the state of the optimizer; the scale is lowered.
        compile: Whether to compile the step. Code of the loss then runs once for each kind of
            batch, as in `gt.jit`.

    >>> x = np.linspace(-1.0, 1.0, 32)
    >>> loss = lambda w, batch: gt.mean((w["a"] * batch - 3.0 * batch) ** 2)
    >>> step = gt.training.TrainingStep(loss, gt.optim.SGD(lr=0.5))
    >>> w = {"a": np.array(0.0)}
    >>> state = step.init(w)
    >>> for _ in range(50):
    ...     losses, w, state = step(w, state, [x])
    >>> print(f"{w['a']:.3f}")
    3.000
    """

    def __init__(
        self,
        loss: Loss,
        optimizer: Any,
        *,
        clip: Clip = None,
        checkpoint: CheckpointConfig | None = None,
        amp: AmpConfig | None = None,
        compile: bool = False,
    ) -> None:
        _check_loss(loss)
        _check_optimizer(optimizer)
        if not (amp is None or isinstance(amp, AmpConfig)):
            raise ArgumentError(f"fit: got {a_type(amp)} for amp, expected a gt.AmpConfig, or None")
        checked_flag("fit", "compile", compile)
        mode = None if amp is None else amp.tape_mode()
        within = loss if mode is None else _in_mode(loss, mode)
        self._loss = _connected(
            within if checkpoint is None else checkpointed(within, policy=checkpoint)
        )
        self._scaler = None if mode is None or amp is None else amp.scaler
        self._optimizer, self._clip = optimizer, _clipping(clip)
        # What remembers earlier gradients is a part of the state, to be compiled and saved with it.
        self._remembers = clip if isinstance(clip, Step) else None
        self._has_parts = not (self._scaler is None and self._remembers is None)
        # Some optimizers ask for the loss at other parameters within a step.
        self._again = _takes_function(optimizer)
        # One that was made with parameters keeps its state itself, and may have groups.
        holder = holder_of(optimizer)
        self._has_params = bool(getattr(holder, "param_groups", None))
        inside = holder is not optimizer
        if self._has_params and (compile or self._again or self._scaler or inside):
            raise ArgumentError(
                f"fit: got {a_type(optimizer)} that was made with its parameters, which cannot be "
                "used with compile=True, a loss scaler, an optimizer around it, or a rule that "
                "computes the loss again; make it without: gt.optim.Adam(lr=0.01)"
            )
        if self._again and self._scaler:
            raise ArgumentError(f"fit: {a_type(optimizer)} cannot be used with a loss scaler")
        if clip is not None and not all(map(_follows_given, optimizers_in(optimizer))):
            raise ArgumentError(
                f"fit: got clip= with {a_type(optimizer)}, which steps along gradients at other "
                "parameters, and these would not be clipped; leave it out"
            )
        # The names of parameters, and the structure that they belong to.
        self._names: tuple[Any, tuple[str, ...]] | None = None
        # Buffers that an eager step changes in place; a compiled one makes new ones.
        self._has_buffers = False
        self._is_compiled = compile
        # The compiler takes longer to load than all else that a training needs.
        self._run = found_at("gradtape.compiler.jit:jit")(self._traced) if compile else self._eager

    def init(self, model: Any) -> Any:
        """Return the state before the first step; None if the optimizer keeps all of it itself.

        Args:
            model: The model.

        Raises:
            ArgumentError: There is nothing to train, or the optimizer was made with parameters that
                are none of the model's.
        """
        params, _ = self._named(model)
        if not params:
            raise ArgumentError(
                f"fit: got {a_type(model)} without parameters to train; if they are frozen, use "
                "model.requires_grad_()"
            )
        own = {id(param) for param in params.values()}
        if self._has_params and any(id(param) not in own for param in self._optimizer.params):
            raise ArgumentError(
                "fit: the optimizer was made with parameters that the model does not have, or "
                "that are frozen; make it without parameters: gt.optim.Adam(lr=0.01)"
            )
        if isinstance(model, Module):
            self._has_buffers = not self._is_compiled and any(True for _ in model.buffers())
        values = _values(params)
        state = None if self._has_params else self._optimizer.init(values)
        if not self._has_parts:
            return state
        parts: dict[str, Any] = {"of": {} if state is None else state}
        if self._scaler is not None:
            parts["scaler"] = self._scaler.init()
        if self._remembers is not None:
            parts["clip"] = self._remembers.init(values)
        return parts

    def __call__(self, model: Any, state: Any, batches: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Make a step.

        Args:
            model: A module, or nested containers of arrays.
            state: The state of the optimizer.
            batches: The batches whose gradients are averaged.

        Returns:
            The loss of each batch, the model, and the state.

        Raises:
            NonFiniteError: A loss is NaN or infinite; the model and the state are as they were.
        """
        with no_grad(), _set_back_on_error(model.buffers() if self._has_buffers else ()):
            losses, model, state = self._run(model, state, tuple(batches))
        if self._is_compiled:
            _check_losses(losses)
        if self._remembers is not None:
            self._remembers.state = state["clip"]  # to be looked at: a threshold, a report
        if self._scaler is not None and float(state["scaler"]["scale"]) < HOPELESS:
            raise NonFiniteError(
                "gradients are not finite however small the loss is scaled; look with "
                "gt.detect_anomaly()"
            )
        return losses, model, state

    def _named(self, model: Any) -> tuple[dict[str, Any], Any]:
        """Parameters by name, and the structure that makes a model of others."""
        leaves, structure = containers.flatten(model)
        if self._names is None or structure != self._names[0]:
            named, _ = named_leaves(model, "fit", view=containers.NAMESPACE)
            self._names = structure, tuple(named)
        return dict(zip(self._names[1], leaves, strict=True)), structure

    def _eager(self, model: Any, state: Any, batches: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        losses, grads = self._gradients(model, batches, state)
        # Before a module is changed in place.
        _check_losses(losses)
        params, structure = self._named(model)
        if self._has_params:
            names = {id(param): name for name, param in params.items()}
            grads, state = self._clipped(grads, _values(params), state)
            self._optimizer.step([grads[names[id(param)]] for param in self._optimizer.params])
            return losses, model, state
        made, state = self._applied(structure, _values(params), grads, state, batches)
        if not isinstance(model, Module):
            return losses, containers.unflatten(structure, list(made.values())), state
        for name, param in params.items():
            param.value = made[name]
        return losses, model, state

    def _traced(self, model: Any, state: Any, batches: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        losses, grads = self._gradients(model, batches, state)
        params, structure = self._named(model)
        made, state = self._applied(structure, params, grads, state, batches)
        return losses, containers.unflatten(structure, list(made.values())), state

    def _gradients(
        self, model: Any, batches: tuple[Any, ...], state: Any
    ) -> tuple[list[Any], dict[str, Any]]:
        """The loss of each batch, and the mean of the gradients by name."""
        losses, total, grads = [], None, {}
        for batch in batches:
            loss, tree_of_grads = self._differentiated(model, batch, state)
            losses.append(loss)
            grads = self._named(tree_of_grads)[0]
            if not self._is_compiled:
                grads = _values(grads)
            if len(batches) > 1:
                # Scaled gradients may be infinite with both signs; such a step is left out.
                with np.errstate(invalid=None if self._scaler is None else "ignore"):
                    total = accumulate(total, grads)
        return losses, grads if total is None else total.mean()

    def _differentiated(self, model: Any, batch: Any, state: Any) -> tuple[Any, Any]:
        """The loss and its gradients, which are larger by the scale."""
        if self._scaler is None:
            return value_and_grad(self._loss)(model, batch)  # type: ignore[no-any-return]
        loss, pullback = vjp(lambda model: self._loss(model, batch), model)
        (grads,) = pullback(astype(state["scaler"]["scale"], loss.dtype))
        return loss, grads

    def _applied(
        self,
        structure: Any,
        params: dict[str, Any],
        grads: dict[str, Any],
        state: Any,
        batches: tuple[Any, ...],
    ) -> tuple[dict[str, Any], Any]:
        """The parameters and the state after a step."""
        if not self._has_parts:
            return self._optimized(structure, params, self._clip(grads), state, batches)
        finite: Any = True
        after = {}
        if self._scaler is not None:
            grads, finite, after["scaler"] = self._scaler.unscale(grads, state["scaler"])
            if not is_traced(finite) and not finite:
                return params, state | after
        grads, clipped = self._clipped(grads, params, state)
        made, held = self._optimized(structure, params, grads, state["of"], batches)
        params, state = select(finite, (made, clipped | {"of": held}), (params, state))
        return params, state | after

    def _clipped(self, grads: Any, params: Any, state: Any) -> tuple[Any, Any]:
        """Gradients that went through clipping, and the state after that."""
        step = self._remembers
        if step is None:
            return self._clip(grads), state
        if self._is_compiled:
            grads, held = step.apply(grads, state["clip"], params)
        else:  # a pipeline notes what it did when it is called
            step.state = state["clip"]
            grads, held = step(grads, params), step.state
        return grads, {**state, "clip": held}

    def _optimized(
        self,
        structure: Any,
        params: dict[str, Any],
        grads: dict[str, Any],
        state: Any,
        batches: tuple[Any, ...],
    ) -> tuple[dict[str, Any], Any]:
        """What the optimizer makes of parameters and its own state."""
        if not self._again:
            return self._optimizer.apply(params, grads, state)  # type: ignore[no-any-return]

        def elsewhere(values: dict[str, Any]) -> tuple[Any, Any]:
            model = containers.unflatten(structure, [*values.values()])
            losses, grads = self._gradients(model, batches, state)
            return sum(losses) / len(losses), grads

        return self._optimizer.apply(  # type: ignore[no-any-return]
            params, grads, state, value_and_grad=elsewhere
        )


def _takes_function(optimizer: Any) -> bool:
    """Whether `apply` takes `value_and_grad`: by itself, or for the optimizer inside."""
    parameters = inspect.signature(optimizer.apply).parameters
    if "value_and_grad" in parameters:
        return True
    passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return passes_on and hasattr(optimizer, "base") and _takes_function(optimizer.base)


def _check_optimizer(optimizer: Any) -> None:
    got = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else a_type(optimizer)
    for method in ("init", "apply"):
        if isinstance(optimizer, type) or not callable(getattr(optimizer, method, None)):
            raise ArgumentError(
                f"fit: got {got} as optimizer, expected one with init and apply, such as "
                "gt.optim.Adam(lr=0.01)"
            )


def _follows_given(optimizer: Any) -> bool:
    """Whether an optimizer steps along the gradients that it is given."""
    return getattr(optimizer, "follows_given", True)


def _check_loss(loss: Any) -> None:
    """Raise for what is no function of a model and a batch, such as one of results and labels."""
    origin = loss if inspect.isfunction(loss) else type(loss)
    if not callable(loss) or origin.__module__.startswith("gradtape.nn."):
        what = loss.__name__ if inspect.isfunction(loss) else a_type(loss)
        raise ArgumentError(
            f"fit: got {what} as loss, expected loss(model, batch), such as "
            "lambda model, batch: gt.nn.cross_entropy(model(batch[0]), batch[1])"
        )


def _check_losses(losses: Sequence[Any]) -> None:
    """Raise a LossError if a loss is not finite."""
    for place, loss in enumerate(losses):
        value = number(loss)
        if not math.isfinite(value):
            raise LossError(value, place)


@contextmanager
def _set_back_on_error(buffers: Iterable[Tensor]) -> Iterator[None]:
    """Set buffers back to what they were if a loss or gradient is not finite.

    A forward pass writes to them, such as the running mean of batch normalisation.
    """
    before = [(buffer, np.array(buffer.value)) for buffer in buffers]
    try:
        yield
    except NonFiniteError:
        for buffer, value in before:
            buffer.value = value
        raise


def _values(named: dict[str, Any]) -> dict[str, Any]:
    """The arrays in tensors: an optimizer is faster on arrays.

    Sophia differentiates gradients once more; those tensors stay.
    """
    return {
        name: x.value if isinstance(x, Tensor) and (x.record is None or is_leaf(x)) else x
        for name, x in named.items()
    }


def _in_mode(loss: Loss, mode: Any) -> Loss:
    """The loss, computed in a mode."""

    def within(model: Any, batch: Any) -> Any:
        with using_mode(mode):
            return loss(model, batch)

    return within


def _connected(loss: Loss) -> Loss:
    """The loss, checked to depend on the parameters, whose gradients would be zeros if not."""

    def connected(model: Any, batch: Any) -> Any:
        value = loss(model, batch)
        check_number(value, "the loss")
        levels = [_level(leaf) for leaf in containers.flatten(model)[0]]
        own = _level(value)
        is_number = isinstance(value, Tensor | np.ndarray | np.generic | float)
        if is_number and (own is None or own not in levels):
            raise ArgumentError(
                "fit: the loss does not depend on the parameters; is there a detach(), an item() "
                "or a no_grad() on the way to it?"
            )
        return value

    return connected


def _level(value: Any) -> Any:
    """Where a value is recorded; None for one that is not."""
    record = value.record if isinstance(value, Tensor) else None
    return None if record is None else record.segment


def _clipping(clip: Clip) -> Callable[[Any], Any]:
    if clip is None:
        return lambda grads: grads
    if callable(clip):
        return clip
    check_positive("fit", clip=clip)
    return lambda grads: clip_by_global_norm(grads, clip)
