"""The iterations of L-BFGS, on vectors (Nocedal and Wright, 2006, section 7.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gradtape.optim.line_search import Point, strong_wolfe

Vector = np.ndarray[Any, np.dtype[Any]]
# A function of a vector: its value and its gradient.
Evaluate = Callable[[Vector], tuple[float, Vector]]

# Pairs whose curvature y·s is below this say nothing about the Hessian.
_LEAST_CURVATURE = 1e-10


class Memory(NamedTuple):
    """What L-BFGS remembers.

    Attributes:
        step: How many iterations there have been.
        move: The last change of the vector.
        gradient: The gradient before that.
        moves: Changes s of the vector, the oldest first, in rows.
        differences: The changes y of the gradient along them.
    """

    step: int
    move: Vector
    gradient: Vector
    moves: Vector
    differences: Vector


def no_memory(size: int, dtype: Any) -> Memory:
    """Return the memory before the first iteration."""
    return Memory(
        0, *(np.zeros(shape, dtype) for shape in ((size,), (size,), (0, size), (0, size)))
    )


def iterate(
    evaluate: Evaluate,
    x: Vector,
    loss: float,
    gradient: Vector,
    memory: Memory,
    numbers: Mapping[str, Any],
) -> tuple[Vector, Memory]:
    """Make up to `max_iter` iterations.

    Args:
        evaluate: The function.
        x: Where to begin.
        loss: Its value there.
        gradient: Its gradient there.
        memory: What is remembered from earlier calls.
        numbers: Those of the optimizer.

    Returns:
        The vector, and what is remembered of it.
    """
    rate, small = numbers["lr"], numbers["tolerance_change"]
    max_iter, max_eval = numbers["max_iter"], numbers["max_eval"]
    evaluations = 1
    for iteration in range(1, max_iter + 1):
        if np.max(np.abs(gradient)) <= numbers["tolerance_grad"]:
            break
        memory = _remembered(memory, gradient, numbers["history_size"])
        direction = _direction(gradient, memory)
        slope = float(gradient @ direction)
        first = memory.step == 1
        at = rate * min(1.0, 1.0 / float(np.sum(np.abs(gradient)))) if first else rate
        memory = memory._replace(move=np.zeros_like(x))
        if slope > -small:
            break
        before, origin = loss, x

        def point(at: float, direction: Vector = direction, origin: Vector = origin) -> Point:
            value, found = evaluate(origin + at * direction)
            return Point(at, value, float(found @ direction), found)

        if numbers["line_search_fn"] is not None:
            length = float(np.max(np.abs(direction)))
            start = Point(0.0, loss, slope, gradient)
            (at, loss, _, gradient), count = strong_wolfe(
                point, start, at, length=length, most=max_eval - evaluations, tolerance=small
            )
            evaluations += count
        elif iteration < max_iter:
            _, loss, _, gradient = point(at)
            evaluations += 1
        memory = memory._replace(move=at * direction)
        x = origin + memory.move
        still = np.max(np.abs(memory.move)) <= small or abs(loss - before) < small
        if still or evaluations >= max_eval:
            break
    return x, memory


def _remembered(memory: Memory, gradient: Vector, most: int) -> Memory:
    """The memory with the pair of the last move, if there is one that says something."""
    step, move, before, moves, differences = memory
    change = gradient - before
    if step and move @ change > _LEAST_CURVATURE:
        moves = np.concatenate([moves, move[None]])[-most:]
        differences = np.concatenate([differences, change[None]])[-most:]
    return Memory(step + 1, move, gradient, moves, differences)


def _direction(gradient: Vector, memory: Memory) -> Vector:
    """−H·g by the recursion of two loops, where H approximates the inverse of the Hessian."""
    moves, differences = memory.moves, memory.differences
    curvatures = np.sum(moves * differences, axis=1)
    direction = -gradient
    # Python numbers keep the dtype of vectors.
    parts = [0.0] * len(moves)
    for place in reversed(range(len(moves))):
        parts[place] = float(moves[place] @ direction / curvatures[place])
        direction = direction - parts[place] * differences[place]
    if len(moves):
        last = differences[-1]
        direction = direction * (curvatures[-1] / (last @ last))
    for place, part in enumerate(parts):
        along = float(differences[place] @ direction / curvatures[place])
        direction = direction + (part - along) * moves[place]
    return direction
