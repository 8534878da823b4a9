"""Records by themselves: each kind has parents, pulls, pushes and can be freed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.call import lift
from gradtape.core.level import Leaf, Node
from gradtape.core.record import (
    Assigning,
    Binary,
    Constant,
    General,
    Indexing,
    Output,
    Pusher,
    Record,
    Taker,
    Unary,
)
from gradtape.errors import TapeError

LARGE = np.linspace(-1.0, 1.0, 1 << 15)
PUSHER = Pusher(None, careful=False)


def written(x: Any) -> Any:
    y = x * 2.0
    y[1:3] = x[:2] * x[2:]
    return y


# Each makes a record of one kind from a vector of four elements, or of many.
KINDS: dict[str, tuple[type[Record], Callable[[Any], Any], Any]] = {
    "unary": (Unary, gt.sin, np.arange(4.0)),
    "unary with a parameter": (Unary, lambda x: gt.sum(x, axis=0), np.arange(4.0)),
    "binary": (Binary, lambda x: x * (x + 1.0), np.arange(4.0)),
    "binary with a number": (Binary, lambda x: 2.0 / x, np.arange(1.0, 5.0)),
    "broadcast": (General, lambda x: x * x[:, None], np.arange(4.0)),
    "large": (General, lambda x: gt.sin(x), LARGE),
    "large with a number": (General, lambda x: 2.0 * x, LARGE),
    "assigning": (Assigning, written, np.arange(4.0)),
    "indexing": (Indexing, lambda x: x[1:3], np.arange(4.0)),
    "output": (Output, lambda x: gt.split(x, 2)[1], np.arange(4.0)),
}
each_kind = pytest.mark.parametrize(("kind", "function", "x"), KINDS.values(), ids=KINDS)


def recorded(function: Callable[[Any], Any], x: Any) -> tuple[Any, Any, gt.GradientTape]:
    """The record of what a function gives, its value, and the tape, which has to be held."""
    tape = gt.GradientTape(persistent=True)
    out = function(tape.watch(x))
    return out.fresh().record, out, tape


def pulled(record: Record, ct: Any, **options: bool) -> dict[Node, Any]:
    """What a record gives to its parents, or that of the op it is an output of."""
    found: dict[Any, Any] = {}

    def give(node: Node, ct: Any) -> bool:
        first = node not in found
        found[node] = ct if first else found[node] + ct
        return first

    def give_output(node: General, index: int, ct: Any) -> None:
        parts: list[Any] = [None] * len(node.avals)
        parts[index] = ct
        node.pull(parts, taker)

    taker = Taker(give, lambda *_part: False, give_output, **options)
    record.pull(ct, taker)
    return found


@each_kind
def test_kinds_are_as_they_say(kind: type[Record], function: Any, x: Any) -> None:
    record, _, _tape = recorded(function, x)
    assert type(record) is kind
    assert any(isinstance(parent, Node) for parent in record.parents)
    assert all(parent is None or parent.sequence < record.sequence for parent in record.parents)


@each_kind
def test_pull_is_the_adjoint_of_push(
    kind: type[Record], function: Any, x: Any, rng: np.random.Generator
) -> None:
    record, out, _tape = recorded(function, x)
    ct = np.asarray(rng.standard_normal(out.shape))
    given = pulled(record, ct)
    tangents = {node: rng.standard_normal(np.shape(part)) for node, part in given.items()}
    if kind is Output:
        tangents[record.parent] = record.parent.push(tangents, PUSHER)
    product = sum(np.sum(np.asarray(part) * tangents[node]) for node, part in given.items())
    np.testing.assert_allclose(product, np.sum(ct * record.push(tangents, PUSHER)), rtol=1e-10)


@each_kind
def test_rules_can_be_recorded_themselves(kind: type[Record], function: Any, x: Any) -> None:
    record, out, _tape = recorded(function, x)
    ct = gt.tensor(np.ones(out.shape), requires_grad=True)
    for node, part in pulled(record, ct, rebuild=True).items():
        assert isinstance(part, gt.Tensor)
        assert part.requires_grad
        again = pulled(record, np.ones(out.shape))[node]
        np.testing.assert_allclose(part.detach(), again, rtol=1e-14)


@each_kind
def test_a_freed_record_holds_nothing_and_says_so(
    kind: type[Record], function: Any, x: Any
) -> None:
    record, out, _tape = recorded(function, x)
    record.free()
    assert not [parent for parent in record.parents if isinstance(parent, Leaf)]
    with pytest.raises(TapeError, match="released"):
        pulled(record, np.ones(out.shape))


def test_constants_depend_on_nothing() -> None:
    record, _, _tape = recorded(lambda x: lift(np.ones(2), x), np.ones(2))
    assert type(record) is Constant
    assert record.parents == ()
    assert pulled(record, np.ones(2)) == {}
    assert record.push({}, PUSHER) is None


@each_kind
def test_a_record_tells_the_shape_of_its_result(kind: type[Record], function: Any, x: Any) -> None:
    record, out, _tape = recorded(function, x)
    assert (record.aval.shape, record.aval.dtype) == (out.shape, out.dtype)


def test_shapes_are_found_through_records_that_keep_nothing() -> None:
    x = gt.tensor(np.ones((2, 3), np.float32), requires_grad=True)
    y = gt.negative(gt.negative(x + 1.0))
    assert (y.record.aval.shape, y.record.aval.dtype) == ((2, 3), np.float32)
