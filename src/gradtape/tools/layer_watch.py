"""Watch layers at work: what goes out of modules and activations, and the gradients that come back.

Modules are watched by forward hooks, which are there only while a block runs. Activations are ops,
so those that are called as functions in a `forward` are seen as well as modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from gradtape import containers
from gradtape.core.level import Segment
from gradtape.core.op import Op, op_of
from gradtape.core.state import Entry, Proceed, Scope, State
from gradtape.core.tensor import Tensor, innermost
from gradtape.graph.known_values import is_unknown
from gradtape.io.leaf_names import named_leaves
from gradtape.nn.module import Module
from gradtape.nn.recipe import PARAMETER, entries, is_frozen
from gradtape.ops.activation import relu, relu6, sigmoid, softsign
from gradtape.ops.generator import Generator
from gradtape.ops.matmul import matmul_op
from gradtape.ops.nn.activations import hardsigmoid, hardtanh_op
from gradtape.ops.nn.conv import conv_bias_op
from gradtape.ops.nn.conv_products import conv, conv_input
from gradtape.ops.nn.conv_transpose import conv_input_bias_op
from gradtape.ops.nn.linear import linear_op
from gradtape.ops.trigonometric import tanh
from gradtape.tools.layer_health import LayerHealth

# The ends of the range of activations that level off there.
_ENDS = {
    op_of(tanh): (-1.0, 1.0),
    op_of(softsign): (-1.0, 1.0),
    op_of(sigmoid): (0.0, 1.0),
    op_of(hardsigmoid): (0.0, 1.0),
    hardtanh_op: (-1.0, 1.0),
}
# Activations that give exactly zero where they are off.
_RECTIFIERS = frozenset({op_of(relu), op_of(relu6)})
# After these, channels are the second axis; after those, features are the last.
_CONVOLUTIONS = frozenset({op_of(conv), op_of(conv_input), conv_bias_op, conv_input_bias_op})
_PRODUCTS = frozenset({linear_op, matmul_op})


@dataclass(slots=True)
class Seen:
    """What was seen of a layer in a block.

    Attributes:
        kind: The class of the module, or the name of the activation.
        active: Which units reacted to some item; None if that was not to be seen.
        at_end: How many outputs were at an end of the range.
        outputs: Of how many; 0 for what has no ends.
        nonfinite: How many elements of outputs were not finite.
    """

    kind: str
    active: Any = None
    at_end: int = 0
    outputs: int = 0
    nonfinite: int = 0

    def note_active(self, found: Any) -> None:
        """Note which units reacted, in one more call."""
        if found is not None:
            same = self.active is not None and self.active.shape == found.shape
            self.active = self.active | found if same else found


class _Hook:
    """A forward hook. Those of two looks are equal, so that compiled functions are traced once."""

    def __init__(self, name: str, method: Callable[..., None], watch: LayerWatch) -> None:
        # A compiled function keeps the hook, which must not keep the model.
        self._key, self._watch = (name, method), ref(watch)

    def __call__(self, module: Module, *args: Any) -> None:
        (name, method), watch = self._key, self._watch()
        if watch is not None:
            method(watch, name, module, *args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hook) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class LayerWatch(Scope):
    """A block in which layers are watched.

    Args:
        model: A module, or nested containers of arrays, whose activations are watched alone.
        end: How near an end of its range an output counts as saturated, relative to the range.

    Attributes:
        seen: What was seen, by the names of layers, in the order in which they ran.
    """

    kind = "observing"
    rules = False  # activations inside derivative rules are none of the model

    def __init__(self, model: Any, end: float) -> None:
        self._model, self._end = model, end
        self._handles: list[Any] = []
        self.seen: dict[str, Seen] = {}
        # The modules that are running, and how often each activation was called in the innermost.
        self._running: list[tuple[str, Module, dict[str, int]]] = []
        self._outside: dict[str, int] = {}
        # Where the features of arrays are: the channels of convolutions come first.
        self._feature_axis = -1

    def again(self) -> LayerWatch:
        return type(self)(self._model, self._end)

    def change(self, state: State, before: State | None = None) -> State:
        return state.derive(modes=(self, *state.modes))

    def entering(self, entry: Entry) -> None:
        modules = self._model.named_modules() if isinstance(self._model, Module) else ()
        for name, module in modules:
            self._handles += [
                module.register_forward_pre_hook(_Hook(name, LayerWatch._called, self)),
                module.register_forward_hook(_Hook(name, LayerWatch._returned, self)),
            ]

    def left(self, entry: Entry, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # ---- modules ---------------------------------------------------------------------------

    def _called(self, name: str, module: Module, args: Any) -> None:
        if not name:  # an error that was caught may have left some
            self._running.clear()
        self._running.append((name, module, {}))
        if any(kind is PARAMETER and value.ndim > 1 for kind, _, value in entries(module)):
            self._feature_axis = -1  # unless it is a convolution
        if _has_parameters(module):
            self._layer(name or type(module).__name__, type(module).__name__)

    def _returned(self, name: str, module: Module, args: Any, out: Any) -> None:
        if self._running and self._running[-1][0] == name:
            self._running.pop()
        result = next((x for x in containers.flatten(out)[0] if isinstance(x, Tensor)), None)
        if result is None or not _has_parameters(module) or is_unknown(result):
            return
        seen = self._layer(name or type(module).__name__, type(module).__name__)
        seen.nonfinite += _count_nonfinite(_array(result))
        record = result.fresh().record
        if record is not None and isinstance(record.segment, Segment):
            result.register_hook(partial(self._pulled, seen, self._feature_axis))

    def _pulled(self, seen: Seen, axis: int, gradient: Any) -> None:
        if not is_unknown(gradient):
            seen.note_active(_reacting(_array(gradient), axis))

    def _layer(self, name: str, kind: str) -> Seen:
        return self.seen.setdefault(name, Seen(kind))

    # ---- activations -----------------------------------------------------------------------

    def run(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], proceed: Proceed) -> Any:
        """Run an op, and look at its result if it is an activation."""
        out = proceed(op, args, params)
        if op in _CONVOLUTIONS:
            self._feature_axis = 1
        elif op in _PRODUCTS:
            self._feature_axis = -1
        elif (op in _ENDS or op in _RECTIFIERS) and not is_unknown(out):
            self._activated(op, params, _array(out))
        return out

    def _activated(self, op: Op, params: Mapping[str, Any], array: Any) -> None:
        seen = self._layer(*self._place_of(op.name))
        seen.nonfinite += _count_nonfinite(array)
        if op in _RECTIFIERS:
            seen.note_active(_reacting(array, self._feature_axis))
            return
        low, high = _ENDS[op]
        if op is hardtanh_op:
            low, high = params["low"], params["high"]
        near = self._end * (high - low)
        seen.at_end += int(np.count_nonzero((array <= low + near) | (array >= high - near)))
        seen.outputs += array.size

    def _place_of(self, activation: str) -> tuple[str, str]:
        """The name and the kind of the row of an activation."""
        name, module, calls = self._running[-1] if self._running else ("", None, self._outside)
        number = calls[activation] = calls.get(activation, 0) + 1
        if module is not None and number == 1 and _is_activation(module):
            return name or type(module).__name__, type(module).__name__
        start = f"{name}:" if name else ""
        return f"{start}{activation}" + (f" {number}" if number > 1 else ""), activation


class Probe(LayerWatch):
    """A block as `LayerWatch`, whose draws take no random numbers from generators of others."""

    def __init__(self, model: Any, end: float) -> None:
        super().__init__(model, end)
        self._generator = Generator(0)

    def source(self, name: str, given: Generator | None, default: Generator) -> Generator:
        """The generator for a draw."""
        return self._generator


# ---- figures ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layer:
    """The parameters of a layer.

    Attributes:
        kind: Its class.
        values: Copies of its parameters, by their full names.
        trained: The names of those that are not frozen.
    """

    kind: str
    values: dict[str, Any]
    trained: frozenset[str]


def layers_of(model: Any, function: str) -> dict[str, Layer]:
    """The layers that have parameters of their own; of containers, each array."""
    if not isinstance(model, Module):
        named, _ = named_leaves(model, function, view=containers.NAMESPACE)
        return {
            name: Layer("array", {name: _copy(leaf)}, frozenset({name}))
            for name, leaf in named.items()
        }
    found, known = {}, set[int]()
    for start, module in model.named_modules():
        own = [
            (f"{start}.{name}" if start else name, value, is_frozen(module, name, value))
            for kind, name, value in entries(module)
            if kind is PARAMETER and id(value) not in known
        ]
        known |= {id(value) for _, value, _ in own}
        if own:
            values = {name: _copy(value) for name, value, _ in own}
            trained = frozenset(name for name, _, is_off in own if not is_off)
            kind = type(module).__name__
            found[start or kind] = Layer(kind, values, trained)
    return found


def measured(
    layers: Mapping[str, Layer],
    grads: Mapping[str, Any],
    seen: Mapping[str, Seen],
    before: Mapping[str, Layer] | None = None,
) -> list[LayerHealth]:
    """Figures of layers and activations, without verdicts.

    Args:
        layers: The layers as they are.
        grads: The gradients by the names of parameters.
        seen: What a watch has seen.
        before: The layers before the step, if there was one.
    """
    found = []
    for name in [*seen, *[name for name in layers if name not in seen]]:
        one, layer = seen.get(name), layers.get(name)
        rest: dict[str, Any] = {"nonfinite": 0}
        if layer is not None:
            rest = _of_parameters(layer, grads)
        if layer is not None and before is not None and name in before:
            rest["update"] = _movement(before[name], layer)
        if one is not None:
            rest["nonfinite"] += one.nonfinite
            if one.active is not None and one.active.size:
                rest["dead"] = float(np.mean(~one.active))
            if one.outputs:
                rest["saturated"] = one.at_end / one.outputs
        kind = one.kind if one is not None else layer.kind if layer is not None else ""
        found.append(LayerHealth(name, kind, **rest))
    return found


def _of_parameters(layer: Layer, grads: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of the parameters of a layer and of their gradients."""
    values = list(layer.values.values())
    given = [_array(grads[name]) for name in layer.values if grads.get(name) is not None]
    size = sum(array.size for array in given)
    zeros = sum(array.size - int(np.count_nonzero(array)) for array in given)
    return {
        "parameters": sum(array.size for array in values),
        "trained": sum(array.size for name, array in layer.values.items() if name in layer.trained),
        "weight_norm": _norm(values),
        "gradient_norm": _norm(given) if given else None,
        "zeros": zeros / size if size else None,
        "nonfinite": sum(map(_count_nonfinite, [*values, *given])),
    }


def _movement(before: Layer, after: Layer) -> float | None:
    """How far parameters moved, relative to where they were."""
    start = _norm(list(before.values.values()))
    with np.errstate(all="ignore"):
        way = _norm([after.values[name] - value for name, value in before.values.items()])
    return way / start if start and math.isfinite(start) else None


def _has_parameters(module: Module) -> bool:
    return any(kind is PARAMETER for kind, _, _ in entries(module))


def _is_activation(module: Module) -> bool:
    return not any(True for _ in entries(module))


def _array(value: Any) -> Any:
    """The numbers of a value, as float64 where they have 16 bits."""
    raw = innermost(value, show=True) if isinstance(value, Tensor) else value
    array = np.asarray(raw.get() if hasattr(raw, "get") else raw)
    return array.astype(np.float64) if array.dtype.kind == "V" or array.itemsize == 2 else array


def _copy(value: Any) -> Any:
    return np.array(_array(value))


def _norm(arrays: list[Any]) -> float:
    """The norm of all elements, which does not overflow where squares would."""
    sizes = [float(np.abs(x).max()) for x in arrays if x.size]
    largest = max(sizes, default=0.0) if not any(map(math.isnan, sizes)) else math.nan
    if not largest or not math.isfinite(largest):
        return largest
    parts = [
        np.ravel(x / largest).astype(np.complex128)
        if x.dtype.kind == "c"
        else np.ravel(x / largest).astype(np.float64)
        for x in arrays
    ]
    return largest * math.sqrt(sum(float(np.vdot(x, x).real) for x in parts))


def _count_nonfinite(array: Any) -> int:
    return int(array.size - np.count_nonzero(np.isfinite(array)))


def _reacting(array: Any, axis: int) -> Any:
    """Which units have an element that is not zero; None if there is no axis of units."""
    if array.ndim < 2:
        return None
    features = array.ndim - 1 if axis == -1 or array.ndim == 2 else axis
    return np.any(array != 0, axis=tuple(n for n in range(array.ndim) if n != features))
