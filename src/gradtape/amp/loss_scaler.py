"""Loss scaling: gradients of 16 bits are computed from a larger loss, so that none vanish.

The rule is pure: `init`, `scale` and `unscale` are functions of a state, a dict of arrays, and run
in compiled functions. Around it is PyTorch's object, which keeps a state and skips steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.amp.master_weights import MasterWeights
from gradtape.amp.precision import FLOAT16, FLOAT32
from gradtape.core.aval import is_extended_float
from gradtape.core.call import is_differentiable
from gradtape.core.finite import is_finite, is_traced
from gradtape.core.level import Leaf
from gradtape.core.state import current
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    NonFiniteError,
    ShapeError,
    UnsupportedError,
    a_type,
)
from gradtape.ops.arguments import as_number
from gradtape.ops.cast import astype
from gradtape.ops.comparison import isfinite, logical_and
from gradtape.ops.select import where
from gradtape.ops.which import all as all_of

# scale: what losses are multiplied by. streak: steps with finite gradients since it changed.
# steps, skipped: of all. overflowed: the first leaf that was not finite in the last skipped step.
State = dict[str, Any]
_DTYPES = {
    "scale": FLOAT32,
    **dict.fromkeys(("streak", "steps", "skipped", "overflowed"), np.dtype(np.int32)),
}
_LARGEST = float(np.finfo(np.float32).max)
# A loss that is not finite at this scale is so by itself.
HOPELESS = 2.0**-40
_REMEMBERED = 1000


class Overflow(NamedTuple):
    """A step that was skipped.

    Attributes:
        step: Its number, from 1.
        scale: The scale of its loss.
        parameter: The first of its gradients that was not finite: its name in the containers that
            were given, or its position in the optimizer.
    """

    step: int
    scale: float
    parameter: str


class LossScaler:
    """Multiplies losses, and divides gradients, by a scale; skips steps that are not finite.

    Make one by `gt.LossScaler.Dynamic()`, which finds the scale by itself, or by
    `gt.LossScaler.Static(scale)`. A scaler is used in one of two ways:

    - with an optimizer, as PyTorch's `GradScaler`: `scale(loss).backward()`, `step(optimizer)`,
      `update()`;
    - as a pure rule in compiled functions: `init`, `scale(loss, state)`, `unscale(grads, state)`
      and `gt.amp.select`.

    Attributes:
        finite: Whether all gradients were finite in the last step.
        overflows: The last 1,000 steps that were skipped, as `gt.amp.Overflow`.
        scales: The last 1,000 changes of the scale, as pairs of the number of steps before and
            the scale from then on.

    >>> scaler, optimizer = gt.LossScaler.Dynamic(), gt.optim.SGD(lr=0.5)
    >>> @gt.jit
    ... def step(w, state, scaling):
    ...     grads = gt.grad(lambda w: scaler.scale(gt.sum(w * w), scaling))(w)
    ...     grads, finite, scaling = scaler.unscale(grads, scaling)
    ...     new = optimizer.apply(w, grads, state)
    ...     return *gt.amp.select(finite, new, (w, state)), scaling
    >>> w = np.ones(2, np.float32)
    >>> w, state, scaling = step(w, optimizer.init(w), scaler.init())
    >>> w, scaling["steps"], scaling["skipped"]
    (array([0., 0.], dtype=float32), np.int32(1), np.int32(0))
    """

    Dynamic: ClassVar[type[DynamicScaler]]
    Static: ClassVar[type[StaticScaler]]

    init_scale: float

    def __init__(self) -> None:
        if type(self) is LossScaler:
            raise ArgumentError(
                "LossScaler: make one with gt.LossScaler.Dynamic() or gt.LossScaler.Static(1024.0)"
            )
        self._state = self.init()
        self.finite = True
        self.overflows: deque[Overflow] = deque(maxlen=_REMEMBERED)
        self.scales: deque[tuple[int, float]] = deque([(0, self.get_scale())], maxlen=_REMEMBERED)
        # By the identity of an optimizer: it, and the name of a gradient that was not finite.
        self._unscaled: dict[int, tuple[Any, str | None]] = {}
        # Those among them that have taken their step, or left it out.
        self._stepped: set[int] = set()

    # ---- the pure rule ---------------------------------------------------------------------

    def init(self) -> State:
        """Return the state before the first step: a dict of NumPy's numbers.

        >>> gt.LossScaler.Static(8.0).init()["scale"]
        np.float32(8.0)
        """
        values = {"scale": self.init_scale, "overflowed": -1}
        # As compiled functions return them, so that the second step is not of a new form.
        return {name: np.array(values.get(name, 0), dtype)[()] for name, dtype in _DTYPES.items()}

    def scale(self, loss: Any, state: Mapping[str, Any] | None = None) -> Any:
        """Return a loss times the scale, in float32 if it is of 16 bits.

        Args:
            loss: The loss, or containers of losses.
            state: The state of the pure rule; the scaler's own if not given.

        Raises:
            DTypeError: The loss is not of floating-point numbers.
            UnsupportedError: No state was given in a function that is being traced.
        """
        factor = self._of(state)["scale"]
        return containers.map_leaves(lambda one: _times(_checked(one, "scale"), factor), loss)

    def unscale(self, grads: Any, state: Mapping[str, Any]) -> tuple[Any, Any, State]:
        """Divide gradients by the scale, and find the next state.

        Args:
            grads: Nested containers of gradients.
            state: The state that `init` or the last `unscale` returned.

        Returns:
            The gradients, in float32 if they are of 16 bits; whether all are finite; and the next
            state. Give what to keep if they are not to `gt.amp.select`.

        Raises:
            ArgumentError: The state is not of a scaler.
            DTypeError: A gradient is not of floating-point numbers.

        >>> scaler = gt.LossScaler.Dynamic(init_scale=4.0)
        >>> grads, finite, state = scaler.unscale({"w": np.array([8.0, np.inf])}, scaler.init())
        >>> grads["w"], bool(finite), float(state["scale"])
        (array([ 2., inf]), False, 2.0)
        """
        state = self._of(state)
        leaves, structure = containers.flatten(grads)
        inverse = 1.0 / state["scale"]
        made = [_times(_checked(leaf, "unscale"), inverse) for leaf in leaves]
        flags = [all_of(isfinite(leaf)) for leaf in made]
        finite: Any = np.True_
        first: Any = np.int32(-1)
        for place, flag in reversed(list(enumerate(flags))):
            finite = logical_and(flag, finite)
            first = where(flag, first, np.int32(place))
        return containers.unflatten(structure, made), finite, self._next(state, finite, first)

    def _next(self, state: State, finite: Any, first: Any) -> State:
        """The state after a step."""
        scale, streak = self.changed(state["scale"], state["streak"], finite)
        missed = where(finite, np.int32(0), np.int32(1))
        after = {
            "scale": scale,
            "streak": streak,
            "steps": state["steps"] + 1,
            "skipped": state["skipped"] + missed,
            "overflowed": where(finite, state["overflowed"], first),
        }
        return {name: _in_dtype(value, _DTYPES[name]) for name, value in after.items()}

    def changed(self, scale: Any, streak: Any, finite: Any) -> tuple[Any, Any]:
        """Return the scale and the streak after a step, in operations that can be traced.

        Args:
            scale: The scale of the step.
            streak: The number of steps before it, since the scale changed, that were finite.
            finite: Whether this one was.
        """
        raise NotImplementedError

    def _of(self, state: Mapping[str, Any] | None) -> State:
        if state is None:
            if any(mode.kind == "tracing" for mode in current().modes):
                raise UnsupportedError(
                    f"{self._name}: got no state in a function that is being traced, whose scale "
                    "would stay what it is now; pass scaler.init() as an argument, and use "
                    "scaler.scale(loss, state) and scaler.unscale(grads, state)"
                )
            return self._state
        if not isinstance(state, Mapping) or set(state) != set(_DTYPES):
            got = sorted(state) if isinstance(state, Mapping) else a_type(state)
            raise ArgumentError(
                f"{self._name}: got {got} as state, expected one with {sorted(_DTYPES)}; make it "
                "by scaler.init()"
            )
        return dict(state)

    # ---- with an optimizer -----------------------------------------------------------------

    def unscale_(self, optimizer: Any, params: Any = None) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to clip them.

        `step` does it if it has not been done.

        Args:
            optimizer: An optimizer.
            params: The parameters, for an optimizer that was made without.

        Raises:
            GradtapeError: It was done already since the last `update()`.
            DTypeError: A parameter is of 16 bits: gradients that were scaled would vanish again.
        """
        if id(optimizer) in self._unscaled:
            raise GradtapeError(
                f"{self._name}: unscale_ was called already for this optimizer, and its gradients "
                "would be divided twice; call update() after each step"
            )
        given = _parameters(optimizer, params)
        inverse = np.float32(1.0) / self._of(None)["scale"]
        leaves = [(place, param.record) for place, param in enumerate(given)]
        work = [
            (place, leaf, leaf.grad)
            for place, leaf in leaves
            if isinstance(leaf, Leaf) and leaf.grad is not None
        ]
        for place, _, grad in work:
            if grad.dtype.itemsize <= 2:
                raise DTypeError(
                    f"{self._name}: got a parameter of {grad.dtype} in place {place}, whose "
                    "gradient would vanish when it is divided; keep float32 parameters under "
                    "gt.autocast, or give the optimizer to gt.amp.MasterWeights"
                )
        missed: str | None = None
        for place, leaf, grad in work:
            leaf.grad = Tensor(_times(innermost(grad), inverse))
            if missed is None and not is_finite(leaf.grad):
                missed = f"parameter {place}"
        self._unscaled[id(optimizer)] = optimizer, missed

    def step(self, optimizer: Any, params: Any = None) -> bool:
        """Let an optimizer take a step, unless a gradient is not finite.

        Args:
            optimizer: An optimizer.
            params: The parameters, for an optimizer that was made without.

        Returns:
            Whether the step was taken.

        Raises:
            GradtapeError: It has taken one since the last `update()`: new gradients would not be
                divided.
        """
        if id(optimizer) in self._stepped:
            raise GradtapeError(
                f"{self._name}: step was called already for this optimizer, and new gradients "
                "would not be divided by the scale; call update() after each step"
            )
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer, params)
        finite = self._unscaled[id(optimizer)][1] is None
        if finite:
            optimizer.step(*([] if params is None else [params]))
        elif isinstance(optimizer, MasterWeights):
            optimizer.discard()
        self._stepped.add(id(optimizer))
        return finite

    def update(self) -> None:
        """Change the scale after a step of all optimizers.

        Raises:
            GradtapeError: No optimizer has taken a step.
            NonFiniteError: No scale helps: the loss itself is infinite or NaN.
        """
        if not self._unscaled:
            raise GradtapeError(
                f"{self._name}: update() was called before step(optimizer); call it after each step"
            )
        missed = [name for _, name in self._unscaled.values() if name is not None]
        self._unscaled, self._stepped = {}, set()
        self._note(missed[0] if missed else None)

    def _note(self, missed: str | None) -> None:
        """Count a step, and name what was not finite in it."""
        before = self.get_scale()
        finite = missed is None
        after = self._next(self._state, np.bool_(finite), np.int32(-1))
        if not finite and float(after["scale"]) < HOPELESS:
            raise NonFiniteError(
                f"{self._name}: {missed} is not finite at a scale of {before:g} either, so the "
                "loss itself is infinite or NaN; look for the op with gt.detect_anomaly()"
            )
        self._state, self.finite = after, finite
        step = int(after["steps"])
        if missed is not None:
            self.overflows.append(Overflow(step, before, missed))
        if float(after["scale"]) != before:
            self.scales.append((step, float(after["scale"])))

    # ---- with a tape -----------------------------------------------------------------------

    def scaled_seeds(self, seeds: Sequence[Any]) -> list[Any]:
        """Cotangents to start from, times the scale, in their own dtypes."""
        scale = self._of(None)["scale"]
        with np.errstate(over="ignore"):
            return [_in_dtype(_times(seed, scale), seed.dtype) for seed in seeds]

    def unscaled_gradients(self, grads: Sequence[Any], nested: Any) -> list[Any]:
        """Gradients divided by the scale; notes whether they are finite.

        Args:
            grads: The gradients.
            nested: The containers that they will be in, to name them.
        """
        inverse = np.float32(1.0) / self._state["scale"]
        made = [_in_dtype(_times(grad, inverse), grad.dtype) for grad in grads]
        places = [place for place, grad in enumerate(made) if not is_finite(grad)]
        self._note(str(containers.Place("source", nested, places[0])) if places else None)
        return made

    # ---- its state -------------------------------------------------------------------------

    def get_scale(self) -> float:
        """Return the scale of the next loss."""
        return float(self._state["scale"])

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return int(self._state["steps"])

    @property
    def skipped(self) -> int:
        """How many of them were skipped."""
        return int(self._state["skipped"])

    def state_dict(self) -> dict[str, Any]:
        """Copies of all state as arrays, which `gt.save` can write."""
        return {name: np.array(value) for name, value in self._state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned.

        Raises:
            ArgumentError: It is not of a scaler, or its scale is not a positive number.
            ShapeError: A part of it is not one number.
        """
        made = {}
        for name, value in self._of({} if state is None else state).items():
            array = np.asarray(value.detach() if isinstance(value, Tensor) else value)
            if array.shape:
                raise ShapeError(
                    f"{self._name}: got {name!r} of shape {array.shape}, expected one number"
                )
            if array.dtype.kind not in "iuf" or not np.isfinite(array):
                raise ArgumentError(f"{self._name}: got {name!r}={array}, expected a finite number")
            made[name] = array.astype(_DTYPES[name])[()]
        _positive(made["scale"].item(), self._name, "'scale'")
        self._state, self._unscaled, self._stepped = made, {}, set()
        self.scales.append((self.steps, self.get_scale()))

    @property
    def _name(self) -> str:
        return type(self).__qualname__

    def __repr__(self) -> str:
        return f"<{self._name}, scale {self.get_scale():g}, {self.skipped}/{self.steps} skipped>"


class DynamicScaler(LossScaler):
    """A scale that is lowered when gradients overflow, and raised when they have not for long.

    Args:
        init_scale: The scale to begin with.
        growth_factor: What it is multiplied by after `growth_interval` finite steps.
        backoff_factor: What it is multiplied by after a step that was not finite.
        growth_interval: How many finite steps there are between two changes.

    Raises:
        ArgumentError: A number is out of its range.

    >>> w = gt.tensor(np.ones(2, np.float32), requires_grad=True)
    >>> optimizer = gt.optim.SGD([w], lr=0.5)
    >>> scaler = gt.LossScaler.Dynamic(init_scale=1024.0, growth_interval=1)
    >>> for factor in (1.0, np.inf):
    ...     optimizer.zero_grad()
    ...     scaler.scale(gt.sum(w) * factor).backward()
    ...     print(scaler.step(optimizer), w.detach().numpy())
    ...     scaler.update()
    True [0.5 0.5]
    False [0.5 0.5]
    >>> scaler
    <LossScaler.Dynamic, scale 1024, 1/2 skipped>
    >>> scaler.overflows[0]
    Overflow(step=2, scale=2048.0, parameter='parameter 0')
    >>> list(scaler.scales)
    [(0, 1024.0), (1, 2048.0), (2, 1024.0)]
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ) -> None:
        name = self._name
        self.init_scale = _positive(init_scale, name, "init_scale")
        self.growth_factor = _positive(growth_factor, name, "growth_factor")
        self.backoff_factor = _positive(backoff_factor, name, "backoff_factor")
        if self.growth_factor < 1.0 or self.backoff_factor >= 1.0:
            raise ArgumentError(
                f"{name}: got growth_factor={growth_factor} and backoff_factor={backoff_factor}, "
                "expected one of at least 1 and one below 1"
            )
        if type(growth_interval) is not int or growth_interval < 1:
            raise ArgumentError(
                f"{name}: got growth_interval={growth_interval!r}, expected a number of steps from "
                "1 on"
            )
        self.growth_interval = growth_interval
        super().__init__()

    def changed(self, scale: Any, streak: Any, finite: Any) -> tuple[Any, Any]:
        """Return the scale and the streak after a step."""
        due = streak + 1 >= self.growth_interval
        # A scale that would overflow itself stays.
        possible = scale <= np.float32(_LARGEST / self.growth_factor)
        one, factor = np.float32(1.0), np.float32(self.growth_factor)
        grown = scale * where(logical_and(due, possible), factor, one)
        lowered = scale * np.float32(self.backoff_factor)
        longer = where(due, np.int32(0), streak + 1)
        return where(finite, grown, lowered), where(finite, longer, np.int32(0))


class StaticScaler(LossScaler):
    """A scale that stays; steps whose gradients are not finite are skipped all the same.

    Args:
        scale: The scale.

    Raises:
        ArgumentError: It is not a positive number.

    >>> scaler = gt.LossScaler.Static(128.0)
    >>> scaler.scale(gt.tensor(0.5))
    tensor(64.)
    """

    def __init__(self, scale: float) -> None:
        self.init_scale = _positive(scale, self._name, "scale")
        super().__init__()

    def changed(self, scale: Any, streak: Any, finite: Any) -> tuple[Any, Any]:
        """Return the scale and the streak after a step."""
        return scale, where(finite, streak + 1, np.int32(0))


LossScaler.Dynamic, LossScaler.Static = DynamicScaler, StaticScaler
for _kind, _called in ((DynamicScaler, "Dynamic"), (StaticScaler, "Static")):
    _kind.__qualname__ = f"LossScaler.{_called}"


def select(finite: Any, new: Any, old: Any) -> Any:
    """The new values if a step was finite, and else the old ones.

    Args:
        finite: Whether it was, as `scaler.unscale` returned it.
        new: Nested containers of arrays: parameters, states. Of a module, the parameters are
            chosen, and buffers are those it has, as they were written in the forward pass.
        old: What they were before, in the same containers.

    Returns:
        One of them; in a traced function, a choice for each array.

    Raises:
        ArgumentError: The containers differ.

    >>> gt.amp.select(np.False_, {"w": np.ones(2)}, {"w": np.zeros(2)})
    {'w': array([0., 0.])}
    """
    leaves, structure = containers.flatten(new)
    before, other = containers.flatten(old)
    if structure != other:
        raise ArgumentError(
            f"select: got {containers.outline(structure)} and {containers.outline(other)}, "
            "expected new and old values in the same containers"
        )
    if not is_traced(finite):
        return new if finite else old
    return containers.unflatten(
        structure, [where(finite, *pair) for pair in zip(leaves, before, strict=True)]
    )


def _parameters(optimizer: Any, params: Any) -> list[Tensor]:
    """The parameters whose gradients an optimizer reads."""
    if isinstance(optimizer, MasterWeights):
        return optimizer.gathered()
    if not hasattr(optimizer, "params"):
        raise ArgumentError(
            f"LossScaler: got {a_type(optimizer)}, expected an optimizer such as "
            "gt.optim.Adam(net.parameters(), lr=0.001)"
        )
    found = containers.flatten(optimizer.params if params is None else params)[0]
    for param in found:
        if not isinstance(param, Tensor):
            raise ArgumentError(
                f"LossScaler: got {a_type(param)} as a parameter, expected tensors that require a "
                "gradient; in the pure form, use scaler.unscale(grads, state)"
            )
    return found


def _checked(value: Any, method: str) -> Any:
    value = value if hasattr(value, "dtype") else np.asarray(value)
    if not is_differentiable(value):
        raise DTypeError(f"LossScaler.{method}: got {value.dtype}, expected floating-point numbers")
    return value


def _times(value: Any, factor: Any) -> Any:
    """A value times a factor of float32, in float32 at least."""
    if value.dtype == FLOAT16 or is_extended_float(value.dtype):
        value = astype(value, FLOAT32)
    return value * _in_dtype(factor, _real(value.dtype))


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.empty(0, dtype).real.dtype


def _in_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value in a dtype; without axes, one of NumPy's numbers or a tensor."""
    value = value if hasattr(value, "dtype") else np.asarray(value)
    value = value if value.dtype == dtype else astype(value, dtype)
    return value[()] if isinstance(value, np.ndarray) else value


def _positive(value: Any, name: str, option: str) -> float:
    number = as_number(value, name, option)
    if not 0 < number <= _LARGEST:
        raise ArgumentError(f"{name}: got {option}={value}, expected a positive number")
    return number
