"""gt.tree: maps, leaves, structures and paths of nested containers."""

from __future__ import annotations

import pickle
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, MissingNameError


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Layer:
    weight: Any
    bias: Any = None
    name: str = field(default="layer", metadata={"static": True})


def tree() -> dict[str, Any]:
    return {"z": [1.0, (2.0, None)], "pair": Pair(3.0, 4.0), "layer": Layer(5.0)}


# ---- flatten, unflatten -------------------------------------------------------------------------


def test_leaves_in_order_and_back() -> None:
    leaves, structure = gt.tree.flatten(tree())
    assert leaves == gt.tree.leaves(tree()) == [5.0, 3.0, 4.0, 1.0, 2.0]
    assert gt.tree.unflatten(structure, leaves) == tree()
    assert list(gt.tree.unflatten(structure, leaves)) == ["z", "pair", "layer"]
    assert structure == gt.tree.structure(tree())
    assert structure.num_leaves == 5
    assert hash(structure) == hash(gt.tree.structure(tree()))
    assert pickle.loads(pickle.dumps(structure)) == structure


def test_structures_differ_by_containers_and_static_fields() -> None:
    same = gt.tree.structure([Layer(1.0), 2.0])
    assert same == gt.tree.structure([Layer(np.ones(3)), "x"])
    for other in ([Layer(1.0, name="b"), 2.0], [Layer(1.0, 2.0), 2.0], (Layer(1.0), 2.0), 3.0):
        assert same != gt.tree.structure(other)
    assert gt.tree.structure(3.0) == gt.tree.structure(np.ones(2)) != gt.tree.structure([3.0])
    assert repr(gt.tree.structure(3.0)) == "Structure(*)"
    assert repr(gt.tree.structure([1, {"a": None}])) == "Structure([*, {'a': None}])"


def test_none_is_a_container_without_leaves() -> None:
    assert gt.tree.leaves(None) == gt.tree.leaves([None, {"a": None}]) == []
    assert gt.tree.map(np.exp, {"w": 0.0, "bias": None}) == {"w": 1.0, "bias": None}

    def is_none(x: Any) -> bool:
        return x is None

    assert gt.tree.leaves([None, 1.0], is_none) == [None, 1.0]
    assert gt.tree.map(lambda x: x is None, [None, 1.0], is_leaf=is_none) == [True, False]


def test_a_single_leaf() -> None:
    for leaf in (2.0, np.ones(2), gt.ones(2), "text", object()):
        assert gt.tree.leaves(leaf) == [leaf]
        assert gt.tree.unflatten(gt.tree.structure(leaf), [7]) == 7
        assert gt.tree.leaves_with_path(leaf) == [((), leaf)]
    assert gt.tree.map(lambda x, y: (x, y), 1.0, [2.0]) == (1.0, [2.0])


def test_leaves_of_a_choice() -> None:
    found = gt.tree.leaves(tree(), lambda x: isinstance(x, (Layer, Pair)))
    assert found == [Layer(5.0), Pair(3.0, 4.0), 1.0, 2.0]
    names = gt.tree.map(lambda x: x.name, [Layer(1.0)], is_leaf=lambda x: isinstance(x, Layer))
    assert names == ["layer"]


def test_other_dicts() -> None:
    assert gt.tree.map(abs, OrderedDict(b=-1, a=-2)) == OrderedDict(b=1, a=2)
    made = gt.tree.map(abs, defaultdict(list, b=-1))
    assert made == {"b": 1}
    assert made["c"] == []


# ---- map, reduce, all, transpose ----------------------------------------------------------------


def test_maps_of_several() -> None:
    got = gt.tree.map(lambda *parts: sum(parts), tree(), tree(), tree())
    assert gt.tree.leaves(got) == [15.0, 9.0, 12.0, 3.0, 6.0]
    assert type(got["pair"]) is Pair
    assert got["layer"].name == "layer"
    # What the others have in place of a leaf is passed as it is.
    pairs = gt.tree.map(lambda x, state: (x, state["m"]), [1.0, 2.0], [{"m": 3}, {"m": 4}])
    assert pairs == [(1.0, 3), (2.0, 4)]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ([1.0], r"got containers 2 of structure \[\*\], expected \[\*, \*\]"),
        ((1.0, 2.0), r"structure \(\*, \*\), expected \[\*, \*\]"),
        (1.0, r"structure \*, expected \[\*, \*\]"),
        (None, r"structure None, expected \[\*, \*\]"),
    ],
)
def test_maps_of_different_containers(other: Any, text: str) -> None:
    for call in (gt.tree.map, gt.tree.map_with_path):
        with pytest.raises(ArgumentError, match=text):
            call(lambda *_: 0, [1.0, 2.0], other)


def test_reductions() -> None:
    assert gt.tree.reduce(lambda a, b: a - b, [10, {"a": 3}, (2,)]) == 5
    assert gt.tree.reduce(lambda a, b: a - b, [3, 2], 10) == 5
    assert gt.tree.reduce(max, [], initializer=None) is None
    with pytest.raises(ArgumentError, match="no leaves"):
        gt.tree.reduce(max, [None])
    assert gt.tree.all([True, {"a": 1}])
    assert gt.tree.all([])
    assert not gt.tree.all([True, (0,)])


def test_turned_inside_out() -> None:
    outer, inner = gt.tree.structure([0, 0, 0]), gt.tree.structure(("a", {"b": 0}))
    rows = [(1, {"b": 2}), (3, {"b": 4}), (5, {"b": 6})]
    turned = gt.tree.transpose(outer, inner, rows)
    assert turned == ([1, 3, 5], {"b": [2, 4, 6]})
    assert gt.tree.transpose(inner, outer, turned) == rows
    assert gt.tree.transpose(gt.tree.structure([]), inner, []) == ([], {"b": []})
    single = gt.tree.structure(0)
    assert gt.tree.transpose(single, inner, rows[0]) == rows[0]
    for wrong in (rows[:2], [(1, 2)] * 3, [(1, {"c": 2})] * 3):
        with pytest.raises(ArgumentError, match=r"tree\.transpose: got"):
            gt.tree.transpose(outer, inner, wrong)
    with pytest.raises(ArgumentError, match=r"gt\.tree\.structure returns"):
        gt.tree.transpose([0, 0, 0], inner, rows)


# ---- paths --------------------------------------------------------------------------------------


def test_paths() -> None:
    pairs = gt.tree.leaves_with_path(tree())
    assert [path for path, _ in pairs] == [
        ("layer", "weight"),
        ("pair", "first"),
        ("pair", "second"),
        ("z", 0),
        ("z", 1, 0),
    ]
    texts = [str(path) for path, _ in pairs]
    assert texts[:3] == ["['layer'].weight", "['pair'].first", "['pair'].second"]
    assert texts[3:] == ["['z'][0]", "['z'][1][0]"]
    t = tree()
    for path, leaf in pairs:
        assert eval(f"t{path}", {"t": t}) == leaf
    got = gt.tree.map_with_path(lambda path, x, y: (path[-1], x + y), {"a": (1, 2)}, {"a": (3, 4)})
    assert got == {"a": ((0, 4), (1, 6))}
    rows = gt.tree.leaves_with_path({"a": [1, 2]}, lambda x: isinstance(x, list))
    assert rows == [(("a",), [1, 2])]


def test_modules_are_containers_of_their_parameters() -> None:
    net = gt.nn.Sequential(gt.nn.Linear(2, 3), gt.nn.BatchNorm1d(3), gt.nn.Linear(3, 1))
    assert gt.tree.structure(net).num_leaves == 6
    names = [str(path) for path, _ in gt.tree.leaves_with_path({"net": net})]
    assert names[0] == "['net'].0.weight"
    doubled = gt.tree.map(lambda p: 2.0 * p.detach(), net)
    assert type(doubled) is gt.nn.Sequential
    np.testing.assert_array_equal(
        doubled[0].weight.numpy(), 2.0 * net[0].weight.detach().numpy(), strict=True
    )
    np.testing.assert_array_equal(doubled[1].running_var, net[1].running_var)


# ---- in transforms ------------------------------------------------------------------------------


def test_maps_are_differentiated_and_compiled() -> None:
    params = {"w": np.array([1.0, 2.0]), "layers": [3.0, None]}

    def step(params: Any) -> Any:
        squares = gt.tree.map(lambda p: p**2, params)
        return gt.tree.reduce(lambda total, leaf: total + np.sum(leaf), squares, 0.0)

    for run in (gt.grad(step), gt.jit(gt.grad(step))):
        slopes = run(params)
        np.testing.assert_array_equal(slopes["w"], [2.0, 4.0])
        assert slopes["layers"] == [6.0, None]
    stacked = gt.vmap(step)({"w": np.ones((3, 2)), "layers": [np.ones(3), None]})
    np.testing.assert_array_equal(stacked, [3.0, 3.0, 3.0])


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gt.tree.map([1.0], np.exp), "got a list, expected a function"),
        (lambda: gt.tree.unflatten([1.0], gt.tree.structure([1.0])), "the leaves come after it"),
        (lambda: gt.tree.unflatten(gt.tree.structure([1.0]), []), "got 0 leaves, expected 1"),
        (lambda: gt.tree.leaves([1.0], True), "as is_leaf, expected a function"),
    ],
)
def test_bad_calls(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


def test_containers_that_hold_themselves() -> None:
    endless: list[Any] = [1.0]
    endless.append(endless)
    with pytest.raises(ArgumentError, match="holds itself"):
        gt.tree.leaves(endless)


def test_names_of_others() -> None:
    with pytest.raises(TypeError, match="is_leaf=lambda x: x is None"):
        gt.tree.map(abs, [1.0], none_is_leaf=True)
    for name, text in {
        "tree_map": "use gt.tree.map",
        "flatten_with_path": "use gt.tree.leaves_with_path",
        "ravel_pytree": "use gt.tree.ravel",
        "register_pytree_node": "use gt.tree.register",
    }.items():
        with pytest.raises(MissingNameError, match=text):
            getattr(gt.tree, name)
    with pytest.raises(MissingNameError, match=r"use gt\.tree\.register"):
        gt.register_container  # noqa: B018
    with pytest.raises(MissingNameError, match=r"use gt\.tree\.leaves"):
        gt.leaves  # noqa: B018
