"""Functions of nested containers as functions of one real vector, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.autodiff.reverse import vjp
from gradtape.autodiff.transforms import jvp
from gradtape.core.call import is_differentiable
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, GradientCheckError
from gradtape.tools.differences import Vector

Leaves = Sequence[Any]


class Layout:
    """The positions of arrays in a flat vector; a complex number takes two places."""

    def __init__(self, leaves: Leaves, names: Sequence[str]) -> None:
        self.names = list(names)
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.complex = [np.iscomplexobj(leaf) for leaf in leaves]
        places = zip(self.shapes, self.complex, strict=True)
        self.sizes = [math.prod(shape) * (2 if pair else 1) for shape, pair in places]
        self.size = sum(self.sizes)

    def pack(self, leaves: Leaves) -> Vector:
        """The elements of the arrays one after another."""
        parts = [np.zeros(0)]
        layout = zip(leaves, self.names, self.shapes, self.complex, strict=True)
        for leaf, name, shape, pair in layout:
            if np.shape(leaf) != shape:
                raise GradientCheckError(
                    f"a derivative has shape {np.shape(leaf)}, expected {shape}, as {name} has"
                )
            flat = np.array(leaf, np.complex128 if pair else None).ravel()
            parts.append(flat.view(np.float64) if pair else flat)
        return np.concatenate(parts)

    def unpack(self, vector: Vector) -> list[Any]:
        """The inverse of `pack`; a complex vector gives complex arrays in place of real ones."""
        leaves = []
        start = 0
        for shape, size, pair in zip(self.shapes, self.sizes, self.complex, strict=True):
            part = vector[start : start + size]
            if pair and np.iscomplexobj(part):
                raise ArgumentError("complex_step: got a complex argument, expected real ones")
            leaves.append((part.view(np.complex128) if pair else part.copy()).reshape(shape))
            start += size
        return leaves

    def name(self, position: int) -> str:
        """An element of the vector in users' terms: `argument 0[1, 2]`."""
        layout = zip(self.names, self.shapes, self.sizes, self.complex, strict=True)
        for name, shape, size, pair in layout:
            if position < size:
                index = np.unravel_index(position // 2 if pair else position, shape)
                place = f"[{', '.join(str(i) for i in index)}]" if index else ""
                return name + place + (f" ({('real', 'imaginary')[position % 2]})" if pair else "")
            position -= size
        raise IndexError(position)


class FlatFunction:
    """A function at a point, with the differentiable leaves of its arguments in one vector.

    Attributes:
        function: Takes those leaves and returns the list of differentiable leaves of the result.
        inputs: The positions of the arguments' leaves in `point`.
        outputs: The positions of the result's leaves in `value`.
    """

    def __init__(self, function: Callable[..., list[Any]], leaves: Leaves, names: Sequence[str]):
        self.function = function
        self.inputs = Layout(leaves, names)
        self.point = self.inputs.pack(leaves)
        results = function(*leaves)
        self.outputs = Layout(results, [f"output {i}" for i in range(len(results))])
        self.value = self.outputs.pack(results)

    def __call__(self, vector: Vector) -> Vector:
        return self.outputs.pack(self.function(*self.inputs.unpack(vector)))

    def push(self, tangent: Vector) -> Vector:
        """The derivative along a tangent, by forward mode."""
        primals, tangents = self.inputs.unpack(self.point), self.inputs.unpack(tangent)
        return self.outputs.pack(jvp(self.function, tuple(primals), tuple(tangents))[1])

    def puller(self) -> Callable[[Vector], Vector]:
        """The map from cotangents of the result to those of the arguments, by reverse mode."""
        _, pullback = vjp(self.function, *self.inputs.unpack(self.point))
        return lambda cotangent: self.inputs.pack(pullback(self.outputs.unpack(cotangent)))

    def forward_jacobian(self) -> Vector:
        """The Jacobian matrix column by column."""
        columns = [self.push(basis) for basis in np.eye(self.inputs.size)]
        return np.reshape(columns, (self.inputs.size, self.outputs.size)).T

    def reverse_jacobian(self) -> Vector:
        """The Jacobian matrix row by row."""
        pull = self.puller()
        rows = [pull(basis) for basis in np.eye(self.outputs.size)]
        return np.reshape(rows, (self.outputs.size, self.inputs.size))

    def derivative(self, mode: str, seed: Vector) -> FlatFunction:
        """The function `(x, v) ↦ J(x)·v` in forward mode, `(x, u) ↦ J(x)ᵀ·u` in reverse mode.

        It is a function of both at the point (self.point, seed): rules must be differentiable in
        the cotangent as well.
        """
        count, forward = len(self.inputs.sizes), mode == "forward"

        def derivative(*leaves: Any) -> list[Any]:
            primals, seeds = leaves[:count], leaves[count:]
            if forward:
                return list(jvp(self.function, primals, seeds)[1])
            _, pullback = vjp(self.function, *primals)
            return list(pullback(list(seeds)))

        layout, word = (self.inputs, "tangent") if forward else (self.outputs, "cotangent")
        leaves = [*self.inputs.unpack(self.point), *layout.unpack(seed)]
        names = [*self.inputs.names, *(f"{word} of {name}" for name in layout.names)]
        return FlatFunction(derivative, leaves, names)


def flatten(function: Callable[..., Any], args: Sequence[Any]) -> FlatFunction:
    """A user's function as a flat one: floating leaves in float64, all other leaves constant."""
    leaves, structure = containers.flatten(tuple(args))
    values = [_in_double(leaf) for leaf in leaves]
    variable = [i for i, value in enumerate(values) if value is not None]

    def flat(*chosen: Any) -> list[Any]:
        full = list(leaves)
        for i, leaf in zip(variable, chosen, strict=True):
            full[i] = leaf
        results, _ = containers.flatten(function(*containers.unflatten(structure, full)))
        return [result for result in results if is_differentiable(result)]

    paths = structure.paths()
    names = [_argument_name(paths[i]) for i in variable]
    return FlatFunction(flat, [values[i] for i in variable], names)


def _in_double(leaf: Any) -> Any:
    """A floating leaf as an array in double precision; None for any other."""
    if not is_differentiable(leaf):
        return None
    array = np.asarray(leaf.detach() if isinstance(leaf, Tensor) else leaf)
    return np.array(array, np.complex128 if array.dtype.kind == "c" else np.float64)


def _argument_name(path: tuple[Any, ...]) -> str:
    first, *rest = path
    return f"argument {first}" + "".join(f"[{key!r}]" for key in rest)
