"""Norms of the gradients of every sample, without computing these gradients where possible.

The loss of one sample is traced. Where an op multiplies a parameter with something that depends on
the sample, zeros are added to its result: the gradient by these zeros is the cotangent ct of the
op, for all samples in one backward pass, and together with the other operands of the op it decides
the gradient by the parameter.

- A matrix: the gradient is Σ x·ctᵀ over the rows of a sample (of a sequence), and its square norm
  Σ (x·x′)(ct·ct′) over pairs of rows. For a single row that is |x|²·|ct|². Complex rows of a real
  matrix count as two each, real and imaginary parts.
- A table that rows are read from: the same with 1 for x·x′ if both read the same row, else 0.
- Anything else, and matrices where pairs of rows would take longer: the gradient of some samples
  at a time is computed by the op's own rule, and dropped when its norm is known.

Parameters that are used in another way, as in a product of two of them, are differentiated as
usual, for some samples at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradtape import containers
from gradtape.autodiff.arguments import (
    as_primals,
    deliver,
    function_and_argnums,
    has_tensors,
    selected,
)
from gradtape.autodiff.per_sample import of_one_sample, sample_axes
from gradtape.autodiff.reverse import grad
from gradtape.autodiff.transforms import vmap
from gradtape.backends import is_raw
from gradtape.core.aval import Aval, aval_of
from gradtape.core.broadcasting import fit
from gradtape.core.call import is_differentiable
from gradtape.core.op import op_of
from gradtape.core.portable import Transformed
from gradtape.core.state import adopted, current, values_read
from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError, DTypeError, ShapeError, UnsupportedError, a_type
from gradtape.gradients.leaves import real_dtype
from gradtape.gradients.parameter_uses import Use, dependent_values, tapped, uses_of
from gradtape.graph.capture import DrawCapture
from gradtape.graph.ir import Graph, Literal, Value
from gradtape.graph.passes.dead import dead
from gradtape.graph.passes.share import share
from gradtape.graph.run import replay
from gradtape.graph.trace import trace
from gradtape.ops.arithmetic import square
from gradtape.ops.cast import astype, imag, real
from gradtape.ops.exponential import sqrt
from gradtape.ops.join import concatenate
from gradtape.ops.matmul import matmul, matmul_op
from gradtape.ops.nn.embedding import read_rows
from gradtape.ops.nn.linear import linear_op
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.select import maximum, where
from gradtape.ops.shape import broadcast_to, moveaxis, reshape, swapaxes

_NAME = "per_sample_norms"
# Bytes of gradients, or of products of pairs of rows, that are computed at a time.
_AT_A_TIME = 4 << 20
_read_rows_op = op_of(read_rows)


def per_sample_norms(
    loss: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    in_axes: Any = None,
    per_leaf: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the norm of the gradient of every sample of a batch.

    Norms are those of `gt.per_sample_gradients`, up to rounding. Gradients by weights of linear
    layers and embeddings are not computed at all, and others for some samples at a time, so that
    memory is about that of a gradient of the whole batch.

    Args:
        loss: The loss of one sample, such as `loss(params, x, y)`: returns a scalar. It is traced,
            as by `gt.jit`, at each call; compile the result to do so once.
        argnums: Which positional argument(s) to differentiate with respect to.
        in_axes: Which axis of each argument numbers the samples, as for `gt.per_sample_gradients`.
        per_leaf: Whether to return the norm by each array among the arguments to differentiate, in
            their containers, instead of the norm by all of them.

    Returns:
        A function of whole batches that returns one norm for each sample.

    Raises:
        ArgumentError: `argnums` or `in_axes` do not fit the arguments.
        ShapeError: The loss did not return one number for a sample, or batches differ in size.
        DTypeError: An argument to be differentiated is not floating or complex, or the loss is not
            real.
        UnsupportedError: The loss draws random numbers; pass them as an argument.

    >>> loss = lambda p, x, y: (np.sum(np.tanh(x @ p["w"])) - y) ** 2
    >>> params, xs, ys = {"w": np.zeros((2, 5))}, np.ones((3, 2)), np.array([0.0, 1.0, 2.0])
    >>> gt.per_sample_norms(loss)(params, xs, ys)
    array([ 0.        ,  6.32455532, 12.64911064])
    """
    function, argnums = function_and_argnums(loss, argnums, _NAME)

    def norms(*args: Any, **kwargs: Any) -> Any:
        axes = sample_axes(_NAME, argnums, in_axes, args)
        batch = _Batch(_of_one_number(function), args, kwargs, axes, argnums)
        squares = batch.square_norms()
        return batch.by_leaf(squares) if per_leaf else batch.by_all(squares)

    options = {"in_axes": in_axes, "per_leaf": per_leaf}
    return Transformed(norms, per_sample_norms, (function, argnums), options)


def _of_one_number(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A loss that says so if it does not return one real number for a sample.

    Only parts of its gradient are computed by `gt.grad`, which would say it.
    """
    of_one = of_one_sample(loss, _NAME)

    def checked(*args: Any, **kwargs: Any) -> Any:
        out = of_one(*args, **kwargs)
        leaves = containers.flatten(out)[0]
        if len(leaves) != 1:
            raise ShapeError(
                f"{_NAME}: the loss returned {len(leaves)} values for one sample, expected one "
                "number"
            )
        (leaf,) = leaves
        known = isinstance(leaf, Tensor) or is_raw(leaf)
        if not known or not is_differentiable(leaf) or aval_of(leaf).dtype.kind == "c":
            got = aval_of(leaf) if known else a_type(leaf)
            raise DTypeError(f"{_NAME}: the loss returned {got}, expected a real floating number")
        return out

    return checked


# ---- one call -----------------------------------------------------------------------------------


class _Batch:
    """The arguments of one call, taken apart.

    Attributes:
        params: The arrays to differentiate by.
        samples: The arrays with a sample for each index of the first axis.
        size: The number of samples.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        axes: tuple[Any, ...],
        argnums: int | Sequence[int],
    ) -> None:
        # `vmap` checks axes and sizes, and says what is wrong with them.
        self.size = len(vmap(lambda *_: np.zeros(()), in_axes=axes)(*args))
        self._loss, self._kwargs, self._argnums = loss, kwargs, argnums
        self._leaves, self._structure = containers.flatten(args)
        counts = [len(containers.flatten(arg)[0]) for arg in args]
        self.params: list[Any] = []
        self._places: list[int] = []
        self._structures: list[containers.Structure] = []
        for n in selected(argnums, len(args), _NAME):
            _, values, structure = as_primals(args[n], _NAME, f"argument {n}")
            self.params += values
            self._places += range(sum(counts[:n]), sum(counts[: n + 1]))
            self._structures.append(structure)
        by_leaf = containers.broadcast_prefix(axes, args)
        self._sampled = [n for n, axis in enumerate(by_leaf) if axis is not None]
        self.samples = [moveaxis(self._leaves[n], by_leaf[n], 0) for n in self._sampled]

    def loss_of_one(self, params: Sequence[Any], samples: Sequence[Any]) -> Any:
        """The loss of one sample, given the leaves that are not the same for all calls."""
        full = list(self._leaves)
        for n, value in zip((*self._places, *self._sampled), (*params, *samples), strict=True):
            full[n] = value
        return self._loss(*containers.unflatten(self._structure, full), **self._kwargs)

    def square_norms(self) -> list[Any]:
        """The square norms of the gradients by each parameter, one for each sample."""
        found: dict[int, Any] = {}
        loss = _traced(self)
        if loss is not None:
            found = loss.square_norms()
        rest = [n for n in range(len(self.params)) if n not in found]
        return [{**found, **self._some_at_a_time(rest)}[n] for n in range(len(self.params))]

    def _some_at_a_time(self, places: Sequence[int]) -> dict[int, Any]:
        """The square norms of gradients that are computed for some samples at a time."""
        if not places:
            return {}
        chosen = [self.params[n] for n in places]

        def of_chosen(values: Sequence[Any], *samples: Any) -> Any:
            known = dict(zip(places, values, strict=True))
            params = [known.get(n, param) for n, param in enumerate(self.params)]
            return self.loss_of_one(params, samples)

        gradients = vmap(grad(of_chosen), in_axes=(None, *[0] * len(self.samples)))

        def of_some(*samples: Any) -> list[Any]:
            return [_squares(g) for g in gradients(chosen, *samples)]

        squares = _chunked(of_some, sum(map(_nbytes, chosen)), self.samples)
        return dict(zip(places, squares, strict=True))

    def by_all(self, squares: Sequence[Any]) -> Any:
        """The norms by all parameters together."""
        total = sum(squares[1:], start=squares[0]) if squares else np.zeros(self.size)
        return self._norms(total, self.params)

    def by_leaf(self, squares: Sequence[Any]) -> Any:
        """The norms by each parameter, in the containers of the parameters."""
        own = [self._norms(s, [param]) for s, param in zip(squares, self.params, strict=True)]
        parts = []
        for structure in self._structures:
            parts.append(containers.unflatten(structure, own[: structure.num_leaves]))
            own = own[structure.num_leaves :]
        return parts[0] if isinstance(self._argnums, int) else tuple(parts)

    def _norms(self, squares: Any, params: Sequence[Any]) -> Any:
        dtype = np.result_type(np.float32, *map(real_dtype, params))
        return deliver(astype(sqrt(squares), dtype), tensors=has_tensors(self._leaves))


# ---- the traced loss ----------------------------------------------------------------------------


def _traced(batch: _Batch) -> _Loss | None:
    """The loss of one sample as a graph; None if it asks for values, so that there is none.

    Raises:
        UnsupportedError: It draws random numbers, which would be others for each part of a batch.
    """
    avals = [Aval(p.shape, p.dtype) for p in map(aval_of, batch.params)]
    avals += [Aval(s.shape[1:], s.dtype) for s in map(aval_of, batch.samples)]
    count = len(batch.params)

    def flat(*values: Any) -> Any:
        return batch.loss_of_one(values[:count], values[count:])

    try:
        made = trace(flat, avals, _NAME, rewriting=current().rewriting)
    except ConversionError:
        return None
    if any(isinstance(capture, DrawCapture) for capture in made.captures):
        raise UnsupportedError(
            f"{_NAME}: the loss draws random numbers, which would be others for each part of the "
            "batch; draw them outside, and pass them as an argument"
        )
    for guard in made.guards:
        values_read(guard.array)
    captures = [adopted(capture.current()) for capture in made.captures]
    return _Loss(share(dead(made.graph)), batch, captures)


class _Parameter(NamedTuple):
    """How the gradient by a parameter is found.

    Attributes:
        value: The parameter in the graph, or the transposed one that is used in its place.
        uses: The ops that combine it with samples.
    """

    value: Value
    uses: list[Use]


class _Loss:
    """The traced loss of one sample, and what is to be known of it for all of them."""

    def __init__(self, graph: Graph, batch: _Batch, captures: list[Any]) -> None:
        self._graph, self._batch, self._captures = graph, batch, captures
        count = len(batch.params)
        self._params = graph.inputs[:count]
        self._samples = graph.inputs[count : count + len(batch.samples)]
        self._dependent = dependent_values(graph, self._samples)
        # Values that depend on the sample, and cotangents of ops by their results: one value may
        # be both, the result of one op and an operand of the next.
        self._known: dict[Value, Any] = {}
        self._ct_of: dict[Value, Any] = {}
        inputs = zip(graph.inputs, (*batch.params, *batch.samples, *captures), strict=True)
        self._shared = {value: one for value, one in inputs if value not in self._dependent}

    def square_norms(self) -> dict[int, Any]:
        """The square norms by the parameters that are small, or used in known ways, by number."""
        users = self._graph.users()
        small: list[int] = []
        large: dict[int, _Parameter] = {}
        for n, value in enumerate(self._params):
            found = uses_of(self._graph, value, self._dependent, users)
            nodes = [use.node for use in found[1]] if found else users.get(value, ())
            results = [out for node in nodes for out in node.outputs if out in self._dependent]
            touched = sum([math.prod(out.shape) for out in results])
            if math.prod(value.shape) <= max(touched, 1):
                small.append(n)  # its gradients take no more memory than results that use it
            elif found is not None:
                large[n] = _Parameter(*found)
        gradients = self._cotangents(small, large)
        squares = {
            n: _chunked(lambda part: [_squares(part)], _nbytes(g[:1]), [g])[0]
            for n, g in zip(small, gradients, strict=True)
        }
        return squares | {n: self._squares_by(param) for n, param in large.items()}

    def _cotangents(self, small: Sequence[int], large: dict[int, _Parameter]) -> Any:
        """The gradients by small parameters; cotangents of ops and what their rules read is noted.

        All of this is one forward and one backward pass over the whole batch.
        """
        uses = [use for param in large.values() for use in param.uses]
        if not small and not uses:
            return []
        with_taps = tapped(self._graph, uses, self._dependent)
        zeros = [np.zeros(aval.shape, aval.dtype) for aval in with_taps.zeros_like()]
        params = self._batch.params

        def loss(taps: Sequence[Any], chosen: Sequence[Any], *samples: Any) -> Any:
            known = dict(zip(small, chosen, strict=True))
            given = [known.get(n, param) for n, param in enumerate(params)]
            out, *read = replay(with_taps.graph, [*given, *samples, *self._captures, *taps])
            return out, read

        samples = self._batch.samples
        each = vmap(grad(loss, (0, 1), has_aux=True), in_axes=(None, None, *[0] * len(samples)))
        (cts, gradients), read = each(zeros, [params[n] for n in small], *samples)
        self._known.update(zip(self._samples, samples, strict=True))
        self._known.update(zip(with_taps.values, read, strict=True))
        self._ct_of.update({n.outputs[0]: ct for n, ct in zip(with_taps.nodes, cts, strict=True)})
        return gradients

    def _squares_by(self, param: _Parameter) -> Any:
        """The square norms of the gradients by one parameter."""
        shape = param.value.shape
        if not param.uses:
            return np.zeros(self._batch.size)
        is_real = param.value.dtype.kind == "f"
        if is_real and all(use.op is _read_rows_op for use in param.uses):
            return self._by_rows(param)
        if is_real and all(use.op in (matmul_op, linear_op) for use in param.uses):
            pairs = [self._row_pairs(use) for use in param.uses if len(shape) == 2]
            count = sum([left.shape[1] for left, _ in pairs])
            # Products of pairs are in float64, which takes twice as long.
            if pairs and 2 * count * sum(shape) <= math.prod(shape):
                return self._by_pairs(pairs, count)
        return self._by_rules(param)

    # ---- matrices: pairs of rows ----------------------------------------------------------------

    def _row_pairs(self, use: Use) -> tuple[Any, Any]:
        """Real rows a and b of each sample, (samples, rows, …), with the gradient Σ a·bᵀ."""
        other, ct = use.node.operands[1 - use.position], self._ct_of[use.node.outputs[0]]
        if use.op is linear_op:  # x·Wᵀ: Σ ct·xᴴ
            return _real_pairs(_rows(ct), _rows(self._value(use.node.operands[0])))
        x = self._value(other)
        if use.position == 1:  # x·M: Σ x̄·ctᵀ
            return _real_pairs(_rows(x), _rows(ct))
        if len(other.shape) > 1:  # M·y: Σ ct·yᴴ over columns
            x, ct = swapaxes(x, -1, -2), swapaxes(ct, -1, -2)
        return _real_pairs(_rows(ct), _rows(x))

    def _by_pairs(self, pairs: Sequence[tuple[Any, Any]], count: int) -> Any:
        sides = [
            side[0] if len(pairs) == 1 else concatenate(side, 1)
            for side in zip(*pairs, strict=True)
        ]

        def of_some(left: Any, right: Any) -> list[Any]:
            left, right = _wide(left), _wide(right)
            if count == 1:
                return [sum_of(square(left), (1, 2)) * sum_of(square(right), (1, 2))]
            products = matmul(left, swapaxes(left, 1, 2)) * matmul(right, swapaxes(right, 1, 2))
            return [maximum(sum_of(products, (1, 2)), 0.0)]

        numbers = count * (2 * count + sum([side.shape[2] for side in sides]))
        return _chunked(of_some, 8 * numbers, sides)[0]

    # ---- tables: pairs of rows that are read from the same place --------------------------------

    def _by_rows(self, param: _Parameter) -> Any:
        places, cts = [], []
        for use in param.uses:
            indices = self._value(use.node.operands[1])
            ct = self._ct_of[use.node.outputs[0]]
            indices = reshape(indices, (len(indices), math.prod(indices.shape[1:])))
            ct = reshape(ct, (*indices.shape, math.prod(param.value.shape[1:])))
            skip = use.node.params["skip"]
            if skip is not None:
                ct = where(reshape(indices != skip, (*indices.shape, 1)), ct, 0.0)
            places.append(indices)
            cts.append(ct)

        def of_some(indices: Any, ct: Any) -> list[Any]:
            ct = _wide(ct)
            size, count = indices.shape
            same = reshape(indices, (size, count, 1)) == reshape(indices, (size, 1, count))
            products = where(same, matmul(ct, swapaxes(ct, 1, 2)), 0.0)
            return [maximum(sum_of(products, (1, 2)), 0.0)]

        arrays = [side[0] if len(side) == 1 else concatenate(side, 1) for side in (places, cts)]
        count, width = arrays[1].shape[1:]
        return _chunked(of_some, 8 * count * (2 * count + width), arrays)[0]

    # ---- everything else: the op's own rule, for some samples at a time -------------------------

    def _by_rules(self, param: _Parameter) -> Any:
        read = dict.fromkeys([use.node.operands[n] for use in param.uses for n in use.reads])
        moving = [x for x in read if x in self._dependent]
        outs = [use.node.outputs[0] for use in param.uses]

        def of_one(values: Sequence[Any]) -> Any:
            cts = dict(zip(outs, values[: len(outs)], strict=True))
            known = dict(zip(moving, values[len(outs) :], strict=True))
            total: Any = None
            for use in param.uses:
                operands = [
                    known[x] if n in use.reads and x in known else self._fixed(x)
                    for n, x in enumerate(use.node.operands)
                ]
                out = use.node.outputs[0]
                rule = use.op.vjps[use.position]
                part = rule(cts[out], out.aval, *operands, **use.node.params)
                part = fit(part, param.value)  # real for a real parameter
                total = part if total is None else total + part
            return total

        def of_some(*values: Any) -> list[Any]:
            return [_squares(vmap(lambda *one: of_one(one))(*values))]

        nbytes = math.prod(param.value.shape) * param.value.dtype.itemsize
        arrays = [self._ct_of[out] for out in outs] + [self._value(x) for x in moving]
        return _chunked(of_some, nbytes, arrays)[0]

    def _value(self, operand: Any) -> Any:
        """The value of an operand that depends on the sample, for all samples."""
        if operand in self._known:
            return self._known[operand]
        # The same for all samples, such as a matrix that is multiplied from both sides.
        fixed = self._fixed(operand)
        return broadcast_to(fixed, (self._batch.size, *fixed.shape))

    def _fixed(self, operand: Any) -> Any:
        """The value of an operand that is the same for all samples; if not known, its form."""
        if isinstance(operand, Literal):
            return operand.value
        return self._shared.get(operand, operand.aval)


# ---- parts of batches ---------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    """Vectors along the last axis of each sample as rows, (samples, rows, size)."""
    return reshape(x, (x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1]))


def _real_pairs(left: Any, right: Any) -> tuple[Any, Any]:
    """Real rows for complex ones, which have the real part of Σ a·b̄ᵀ as their Σ a·bᵀ.

    That is Σ Re(a)·Re(b)ᵀ + Im(a)·Im(b)ᵀ, whichever of the two is conjugated: the gradient by a
    real matrix.
    """
    if left.dtype.kind == "c" and right.dtype.kind == "c":
        return concatenate([real(left), imag(left)], 1), concatenate([real(right), imag(right)], 1)
    return _real_part(left), _real_part(right)


def _real_part(x: Any) -> Any:
    return real(x) if x.dtype.kind == "c" else x


def _wide(x: Any) -> Any:
    # Sums of products of pairs cancel; float64 has twice the digits.
    return astype(x, np.float64)


def _squares(gradients: Any) -> Any:
    """The square norm of each gradient along the first axis."""
    flat = reshape(gradients, (gradients.shape[0], math.prod(gradients.shape[1:])))
    if flat.dtype.kind == "c":
        return sum_of(square(_wide(real(flat))) + square(_wide(imag(flat))), 1)
    return sum_of(square(_wide(flat)), 1)


def _nbytes(x: Any) -> int:
    return int(math.prod(x.shape) * x.dtype.itemsize)


def _chunked(function: Callable[..., list[Any]], nbytes: int, arrays: Sequence[Any]) -> list[Any]:
    """The results of a function of parts of arrays, each result joined along the first axis.

    Args:
        function: Takes a part of each array, and returns arrays with as many entries.
        nbytes: The memory that it needs for one entry.
        arrays: All of them have the same length.
    """
    size = arrays[0].shape[0]
    step = max(1, _AT_A_TIME // max(nbytes, 1))
    if step >= size:
        return function(*arrays)
    parts = [function(*[x[n : n + step] for x in arrays]) for n in range(0, size, step)]
    return [concatenate(some) for some in zip(*parts, strict=True)]
