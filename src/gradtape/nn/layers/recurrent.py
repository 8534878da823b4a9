"""Recurrent layers: RNN, LSTM and GRU over sequences, and cells for single steps.

The steps of one layer in one direction are a compiled loop, in eager code as well: a function that
`jit` compiles for each size it meets, and that a surrounding trace takes over as one `scan`. The
products of the inputs with their weights do not depend on the state; they are one product for all
steps, before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape.core.lazy import Deferred
from gradtape.errors import ArgumentError, DTypeError, ShapeError, a_type
from gradtape.graph.loops import scan
from gradtape.graph.trace import is_traced
from gradtape.nn.layers.first_values import by_fan_in, layer_dtype
from gradtape.nn.module import Module
from gradtape.ops.activation import relu, sigmoid
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_between, check_choice, check_count
from gradtape.ops.join import concatenate, stack
from gradtape.ops.nn.dropout import dropout
from gradtape.ops.nn.known import known_values
from gradtape.ops.nn.linear import linear
from gradtape.ops.reduce import floats
from gradtape.ops.select import where
from gradtape.ops.shape import moveaxis, reshape
from gradtape.ops.shared_options import options
from gradtape.ops.split import split
from gradtape.ops.trigonometric import tanh
from gradtape.typing import Array, ArrayLike

# ---- one step -----------------------------------------------------------------------------------

# How many numbers a unit computes from its inputs at each step: one for each gate.
_GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}


class _Weights(NamedTuple):
    """The parameters of one layer in one direction; None for those it does not have."""

    of_input: Any
    of_state: Any
    input_bias: Any = None
    state_bias: Any = None
    projection: Any = None


def _of_input(unit: str, x: Any, weights: _Weights) -> Any:
    """What the gates get from the inputs, side by side."""
    bias = weights.input_bias
    # Where both biases are only added up, they are so here.
    if unit != "gru" and bias is not None:
        bias = bias + weights.state_bias
    return linear(x, weights.of_input, bias)


def _side_by_side(unit: str, gates: Any) -> list[Any]:
    """The gates of an array that has them along its last axis."""
    return split(gates, _GATES[unit], axis=-1)


def _next(
    unit: str, of_x: Any, of_h: Any, state: Sequence[Any], projection: Any, gates_of: Any
) -> tuple[Any, ...]:
    """The next state of units, from what their gates get from inputs and state.

    Args:
        unit: The name of the unit.
        of_x: What all gates get from the inputs.
        of_h: What they get from the state.
        state: h, and c of an LSTM.
        projection: A matrix that reduces h, or None.
        gates_of: Gives an array for each gate.
    """
    if unit == "gru":
        # r, z = σ(xᵣ + hᵣ), σ(x_z + h_z); n = tanh(xₙ + r·hₙ); h = (1 − z)·n + z·h
        (xr, xz, xn), (hr, hz, hn) = gates_of(unit, of_x), gates_of(unit, of_h)
        z, n = sigmoid(xz + hz), tanh(xn + sigmoid(xr + hr) * hn)
        return (n + z * (state[0] - n),)
    gates = gates_of(unit, of_x + of_h)
    if unit != "lstm":
        return (tanh(gates[0]) if unit == "tanh" else relu(gates[0]),)
    # c = σ(f)·c + σ(i)·tanh(g); h = σ(o)·tanh(c)
    i, f, g, o = gates
    c = sigmoid(f) * state[1] + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)
    return (h if projection is None else h @ projection.mT, c)


# ---- a sequence ---------------------------------------------------------------------------------


class _Form(NamedTuple):
    """What the code for a sequence depends on besides sizes.

    Attributes:
        unit: The name of the unit.
        reverse: Whether it goes from the last step to the first.
        given: Which weights there are.
        lengths: Whether there are lengths.
    """

    unit: str
    reverse: bool
    given: tuple[bool, ...]
    lengths: bool


def _in_front(unit: str, array: Any) -> Any:
    """An array with its gates, which are side by side, along an axis before the last two."""
    *lead, rows, size = array.shape
    count = _GATES[unit]
    return moveaxis(reshape(array, (*lead, rows, count, size // count)), -2, -3)


def sequence_steps(form: _Form, x: Any, *arrays: Any) -> tuple[Any, ...]:
    """The results of all steps, and the last state.

    Gates are along an axis of their own, so that neither a step nor its gradient copies parts of
    arrays, and weights are transposed before the loop, so that their gradients are one product of
    all steps after it.

    Args:
        form: Which arrays there are.
        x: Of shape (steps, batch, inputs).
        *arrays: The first state; the weights there are; the lengths of the sequences, if given.
    """
    unit, states = form.unit, 2 if form.unit == "lstm" else 1
    left = iter(arrays[states:])
    weights = _Weights(*(next(left) if there else None for there in form.given))
    inside = None
    if form.lengths:
        inside = (np.arange(x.shape[0])[:, None] < next(left))[..., None]
        x = where(inside, x, 0)  # what is behind the end may be anything, NaN included
    given = (_in_front(unit, _of_input(unit, x, weights)), *(() if inside is None else (inside,)))
    across = _in_front(unit, weights.of_state.mT)
    bias = None
    if unit == "gru" and weights.state_bias is not None:
        bias = _in_front(unit, weights.state_bias[None])

    def step(state: Any, given: Any) -> Any:
        of_h = state[0] @ across
        of_h = of_h if bias is None else of_h + bias
        made = _next(unit, given[0], of_h, state, weights.projection, _in_turn)
        # Products may be of a narrower dtype (`gt.autocast`); a state keeps its own.
        new = tuple(astype(a, b.dtype, copy=False) for a, b in zip(made, state, strict=True))
        if inside is None:
            return new, new[0]
        kept = tuple(where(given[1], a, b) for a, b in zip(new, state, strict=True))
        return kept, where(given[1], new[0], 0)

    last, out = scan(step, arrays[:states], given, reverse=form.reverse)
    return (out, *last)


def _in_turn(unit: str, gates: Any) -> list[Any]:
    """The gates of an array that has them along its first axis."""
    return [gates[n] for n in range(_GATES[unit])]


# The compiler takes longer to load than all layers, and not every model has a sequence.
_sequence = Deferred("gradtape.nn.layers.compiled_sequence:sequence")


def _lengths(name: str, lengths: Any, steps: int, batch: int) -> Any:
    """The lengths of the sequences of a batch, checked.

    Raises:
        DTypeError: They are not integers.
        ShapeError: There is not one for each sequence.
        ArgumentError: One is negative, or larger than the number of steps.
    """
    given = as_array(lengths)
    if given.dtype.kind not in "iu":
        raise DTypeError(f"{name}: got lengths of {given.dtype}, expected integers")
    if given.shape != (batch,):
        raise ShapeError(
            f"{name}: got lengths of shape {given.shape}, expected ({batch},), one for each "
            "sequence of the batch"
        )
    known = known_values(given)
    if known is not None and known.size and not 0 <= known.min() <= known.max() <= steps:
        wrong = known.max() if known.max() > steps else known.min()
        raise ArgumentError(
            f"{name}: got a sequence of length {wrong}, expected lengths from 0 to {steps}, the "
            "number of steps"
        )
    return given


# The parameters of one layer in one direction, as `_Weights` has them.
_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")

# ---- layers -------------------------------------------------------------------------------------


def _with_more_steps(x: Any) -> Any:
    """Sequences with steps at their end that are not read, so that code for few sizes serves.

    Batches of sequences of different lengths have another length each time. The number of steps is
    rounded up to one of eight between powers of two.
    """
    steps = x.shape[0]
    unit = 1 << max(steps.bit_length() - 4, 0)
    more = -steps % unit
    return concatenate([x, np.zeros((more, *x.shape[1:]), x.dtype)]) if more else x


# What the arguments of all layers are, and of all cells.
_LAYERS = {
    "input_size": "How many numbers there are in each step of a sequence.",
    "hidden_size": "How many units a layer has.",
    "num_layers": "How many layers there are, each over the results of the one before.",
    "bias": "Whether there are biases.",
    "batch_first": "Whether sequences are of shape (batch, steps, size), not (steps, batch, size).",
    "dropout": "The probability that a result is dropped between layers, while in training.",
    "bidirectional": "Whether each layer also goes from the last step to the first.",
    "dtype": "The dtype of the parameters.",
}
_CELLS = {
    "input_size": "How many numbers go in.",
    "hidden_size": "How many units there are.",
    "bias": "Whether there are biases.",
    "dtype": "The dtype of the parameters.",
}


class _Recurrent(Module):
    """What RNN, LSTM and GRU have in common."""

    def __init__(
        self,
        kind: str,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        dtype: Any,
    ) -> None:
        name = type(self).__name__
        check_count(name, 1, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        check_between(name, 0, 1, dropout=dropout)
        check_count(name, 0, proj_size=proj_size)
        if proj_size >= hidden_size:
            raise ArgumentError(
                f"{name}: got proj_size={proj_size}, expected 0 for none, or less than "
                f"hidden_size={hidden_size}"
            )
        self._unit = kind
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bool(bias), bool(batch_first), float(dropout)
        self.bidirectional, self.proj_size = bool(bidirectional), proj_size
        kept = layer_dtype(dtype, name)
        out, rows = proj_size or hidden_size, _GATES[kind] * hidden_size
        for layer, suffix in self._directions():
            inputs = out * (1 + self.bidirectional) if layer else input_size
            shapes = ((rows, inputs), (rows, out), (rows,), (rows,), (proj_size, hidden_size))
            for each, shape, there in zip(_NAMES, shapes, self._given, strict=True):
                if there:
                    self.register_parameter(f"{each}{suffix}", by_fan_in(shape, hidden_size, kept))

    @property
    def _given(self) -> tuple[bool, ...]:
        """Which of the weights there are."""
        return (True, True, self.bias, self.bias, self.proj_size > 0)

    def _directions(self) -> list[tuple[int, str]]:
        """The number of a layer, and the end of the names of its parameters, by direction."""
        directions = ("", "_reverse") if self.bidirectional else ("",)
        return [(n, f"_l{n}{way}") for n in range(self.num_layers) for way in directions]

    def _run(self, x: Any, hx: Any, lengths: Any) -> tuple[Any, list[Any]]:
        """The results of all steps, and the last states."""
        name = type(self).__name__
        x = floats(as_array(x))
        if len(x.shape) not in (2, 3) or x.shape[-1] != self.input_size:
            axes = "batch, steps" if self.batch_first else "steps, batch"
            raise ShapeError(
                f"{name}: got x of shape {x.shape}, expected ({axes}, {self.input_size}), or "
                f"(steps, {self.input_size}) for a single sequence"
            )
        single = len(x.shape) == 2
        if single:
            x = reshape(x, (x.shape[0], 1, x.shape[1]))
        elif self.batch_first:
            x = moveaxis(x, 0, 1)
        if not x.shape[0]:
            raise ShapeError(f"{name}: got x without steps, expected one step or more")
        steps = x.shape[0]
        if lengths is not None:
            lengths = _lengths(name, [lengths] if single else lengths, steps, x.shape[1])
            if not is_traced(x):
                x = _with_more_steps(x)
        states = self._first_state(x, hx, single)
        last: list[tuple[Any, ...]] = []
        for number in range(self.num_layers):
            if number and self.dropout and self.training:
                x = dropout(x, self.dropout)
            outs = []
            for place, (layer, suffix) in enumerate(self._directions()):
                if layer == number:
                    out, *state = self._layer(x, suffix, [h[place] for h in states], lengths)
                    outs.append(out)
                    last.append(tuple(state))
            x = outs[0] if len(outs) == 1 else concatenate(outs, axis=-1)
        x = x if x.shape[0] == steps else x[:steps]
        ends = [stack(each) for each in zip(*last, strict=True)]
        if single:
            return x[:, 0], [end[:, 0] for end in ends]
        return moveaxis(x, 0, 1) if self.batch_first else x, ends

    def _layer(self, x: Any, suffix: str, state: Sequence[Any], lengths: Any) -> tuple[Any, ...]:
        """The steps of one layer in one direction."""
        pairs = zip(_NAMES, self._given, strict=True)
        weights = [getattr(self, f"{name}{suffix}") for name, there in pairs if there]
        form = _Form(self._unit, suffix.endswith("_reverse"), self._given, lengths is not None)
        more = () if lengths is None else (lengths,)
        return _sequence(form, x, *state, *weights, *more)  # type: ignore[no-any-return]

    def _first_state(self, x: Any, hx: Any, single: bool) -> list[Any]:
        """The first state of all layers, checked, in the dtype of the results."""
        name, places = type(self).__name__, len(self._directions())
        batch = x.shape[1]
        dtype = np.result_type(x.dtype, self.weight_ih_l0.dtype)
        sizes = [self.proj_size or self.hidden_size, self.hidden_size]
        sizes = sizes if self._unit == "lstm" else sizes[:1]
        if hx is None:
            return [np.zeros((places, batch, size), dtype) for size in sizes]
        if self._unit != "lstm":
            hx = (hx,)
        elif not isinstance(hx, tuple | list) or len(hx) != 2:
            raise ArgumentError(f"{name}: got {a_type(hx)} for hx, expected a pair (h_0, c_0)")
        found = []
        for given, size in zip(hx, sizes, strict=True):
            h = as_array(given)
            shape = (places, size) if single else (places, batch, size)
            if h.shape != shape:
                raise ShapeError(f"{name}: got a first state of {h.shape}, expected {shape}")
            h = astype(h, dtype, copy=False)
            found.append(reshape(h, (places, 1, size)) if single else h)
        return found

    def extra_repr(self) -> str:
        """Show the sizes, and options that differ from the defaults."""
        sizes = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0,
            "bidirectional": False,
        }  # fmt: skip
        others = [(name, getattr(self, name)) for name in usual]
        return sizes + "".join(f", {n}={v}" for n, v in others if v != usual[n])


@options(_LAYERS)
class RNN(_Recurrent):
    """Layers of units whose state is tanh(W·x + b + U·h + c), or relu of it.

    Args:
        nonlinearity: "tanh" or "relu".

    Attributes:
        weight_ih_l0: W of layer 0, of shape (hidden_size, input_size); "_reverse" follows for the
            other direction, and l1, l2, … for the other layers.
        weight_hh_l0: U, of shape (hidden_size, hidden_size).
        bias_ih_l0: b, of shape (hidden_size,).
        bias_hh_l0: c, of shape (hidden_size,).

    >>> layer = gt.nn.RNN(4, 8, bidirectional=True)
    >>> out, h = layer(np.ones((5, 3, 4), np.float32))
    >>> out.shape, h.shape
    ((5, 3, 16), (2, 3, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = np.float32,
    ) -> None:
        check_choice("RNN", ("tanh", "relu"), nonlinearity=nonlinearity)
        self.nonlinearity = nonlinearity
        super().__init__(
            nonlinearity, input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, 0, dtype,
        )  # fmt: skip

    def forward(
        self, x: ArrayLike, hx: ArrayLike | None = None, *, lengths: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Go through sequences.

        Args:
            x: Of shape (steps, batch, input_size), with the first two the other way round for
                `batch_first`; or (steps, input_size), without a batch.
            hx: The first state, of shape (layers · directions, batch, hidden_size); zeros if not
                given.
            lengths: How many steps each sequence has, if not all; what follows is not read.

        Returns:
            The state of the last layer after each step, 0 behind the end of a sequence, with both
            directions along the last axis; and the last state of all layers and directions.
        """
        out, (h,) = self._run(x, hx, lengths)
        return out, h


@options(_LAYERS)
class LSTM(_Recurrent):
    """Layers of long short-term memory.

    Args:
        proj_size: To how many numbers the state h of a layer is reduced by a matrix; 0 for none.

    Attributes:
        weight_ih_l0: Of shape (4 · hidden_size, input_size), for the gates i, f, g and o of layer
            0; "_reverse" follows for the other direction, and l1, l2, … for the other layers.
        weight_hh_l0: Of shape (4 · hidden_size, hidden_size), or with proj_size as second.
        bias_ih_l0: Of shape (4 · hidden_size,).
        bias_hh_l0: The same.
        weight_hr_l0: Of shape (proj_size, hidden_size), if there is one.

    >>> layer = gt.nn.LSTM(4, 8, num_layers=2, batch_first=True)
    >>> out, (h, c) = layer(np.ones((3, 5, 4), np.float32), lengths=[5, 2, 4])
    >>> out.shape, h.shape, c.shape
    ((3, 5, 8), (2, 3, 8), (2, 3, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(
            "lstm", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, proj_size, dtype,
        )  # fmt: skip

    def forward(
        self,
        x: ArrayLike,
        hx: tuple[ArrayLike, ArrayLike] | None = None,
        *,
        lengths: ArrayLike | None = None,
    ) -> tuple[Array, tuple[Array, Array]]:
        """Go through sequences.

        Args:
            x: Of shape (steps, batch, input_size), with the first two the other way round for
                `batch_first`; or (steps, input_size), without a batch.
            hx: The first states h and c, of shape (layers · directions, batch, hidden_size), with
                proj_size as last of h if there is one; zeros if not given.
            lengths: How many steps each sequence has, if not all; what follows is not read.

        Returns:
            The state h of the last layer after each step, 0 behind the end of a sequence, with both
            directions along the last axis; and the pair of the last h and c of all layers and
            directions.
        """
        out, (h, c) = self._run(x, hx, lengths)
        return out, (h, c)


@options(_LAYERS)
class GRU(_Recurrent):
    """Layers of gated recurrent units.

    Attributes:
        weight_ih_l0: Of shape (3 · hidden_size, input_size), for the gates r, z and n of layer 0;
            "_reverse" follows for the other direction, and l1, l2, … for the other layers.
        weight_hh_l0: Of shape (3 · hidden_size, hidden_size).
        bias_ih_l0: Of shape (3 · hidden_size,).
        bias_hh_l0: The same.

    >>> layer = gt.nn.GRU(4, 8)
    >>> out, h = layer(np.ones((5, 3, 4), np.float32))
    >>> out.shape, h.shape
    ((5, 3, 8), (1, 3, 8))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(
            "gru", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            0, dtype,
        )  # fmt: skip

    forward = RNN.forward


# ---- cells --------------------------------------------------------------------------------------


class _Cell(Module):
    """What the cells have in common: the weights, and one step."""

    def __init__(
        self, unit: str, input_size: int, hidden_size: int, bias: bool, dtype: Any
    ) -> None:
        name = type(self).__name__
        check_count(name, 1, input_size=input_size, hidden_size=hidden_size)
        self._unit = unit
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bool(bias)
        kept, rows = layer_dtype(dtype, name), _GATES[unit] * hidden_size
        for each, shape in zip(_NAMES, ((rows, input_size), (rows, hidden_size)), strict=False):
            self.register_parameter(each, by_fan_in(shape, hidden_size, kept))
        for each in _NAMES[2:4]:
            drawn = by_fan_in((rows,), hidden_size, kept) if bias else None
            self.register_parameter(each, drawn)

    def _step(self, x: Any, state: Any) -> tuple[Any, ...]:
        name = type(self).__name__
        x = floats(as_array(x))
        if len(x.shape) not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: got x of shape {x.shape}, expected (batch, {self.input_size}), or "
                f"({self.input_size},) for a single sample"
            )
        shape = (*x.shape[:-1], self.hidden_size)
        if state is None:
            dtype = np.result_type(x.dtype, self.weight_ih.dtype)
            state = (np.zeros(shape, dtype),) * (2 if self._unit == "lstm" else 1)
        state = [as_array(h) for h in state]
        for h in state:
            if h.shape != shape:
                raise ShapeError(f"{name}: got a state of shape {h.shape}, expected {shape}")
        weights = _Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        of_x = _of_input(self._unit, x, weights)
        of_h = linear(state[0], self.weight_hh, self.bias_hh if self._unit == "gru" else None)
        return _next(self._unit, of_x, of_h, state, None, _side_by_side)

    def extra_repr(self) -> str:
        """Show the sizes."""
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"


@options(_CELLS)
class RNNCell(_Cell):
    """One step of an `RNN`.

    Args:
        nonlinearity: "tanh" or "relu".

    >>> cell = gt.nn.RNNCell(4, 8)
    >>> cell(np.ones((3, 4), np.float32)).shape
    (3, 8)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        dtype: Any = np.float32,
    ) -> None:
        check_choice("RNNCell", ("tanh", "relu"), nonlinearity=nonlinearity)
        self.nonlinearity = nonlinearity
        super().__init__(nonlinearity, input_size, hidden_size, bias, dtype)

    def forward(self, x: ArrayLike, hx: ArrayLike | None = None) -> Array:
        """Take a step.

        Args:
            x: Of shape (batch, input_size), or (input_size,).
            hx: The state, of shape (batch, hidden_size), or (hidden_size,); zeros if not given.

        Returns:
            The next state.
        """
        return self._step(x, None if hx is None else (hx,))[0]


@options(_CELLS)
class GRUCell(_Cell):
    """One step of a `GRU`.

    >>> cell = gt.nn.GRUCell(4, 8)
    >>> cell(np.ones((3, 4), np.float32)).shape
    (3, 8)
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = np.float32
    ) -> None:
        super().__init__("gru", input_size, hidden_size, bias, dtype)

    forward = RNNCell.forward


@options(_CELLS)
class LSTMCell(_Cell):
    """One step of an `LSTM`.

    >>> cell = gt.nn.LSTMCell(4, 8)
    >>> h, c = cell(np.ones((3, 4), np.float32))
    >>> h.shape, c.shape
    ((3, 8), (3, 8))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = np.float32
    ) -> None:
        super().__init__("lstm", input_size, hidden_size, bias, dtype)

    def forward(
        self, x: ArrayLike, hx: tuple[ArrayLike, ArrayLike] | None = None
    ) -> tuple[Array, Array]:
        """Take a step.

        Args:
            x: Of shape (batch, input_size), or (input_size,).
            hx: The states h and c, each of shape (batch, hidden_size), or (hidden_size,); zeros if
                not given.

        Returns:
            The next h and c.
        """
        if hx is not None and (not isinstance(hx, tuple | list) or len(hx) != 2):
            raise ArgumentError(f"LSTMCell: got {a_type(hx)} for hx, expected a pair (h_0, c_0)")
        h, c = self._step(x, hx)
        return h, c
