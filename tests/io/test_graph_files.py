"""Graphs saved and loaded: nothing is lost, and what is no graph is refused."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import gradtape as gt
import gradtape.graph
from every_case import FURTHER, call_of, each
from gradtape.core.aval import Aval
from gradtape.core.op import Op, registry
from gradtape.errors import ArgumentError, FileFormatError, UnsupportedError
from gradtape.graph.ir import Graph, Node, Value, structural_hash
from gradtape.graph.trace import trace
from gradtape.graph.verify import faults
from gradtape.io import op_names
from gradtape.io.graph_files import from_bytes, load, save, to_bytes
from graphcall import assert_same_bits, traced
from nested_graphs import CHOICE, LOOP, around, deep, step
from opcases.case import OpCase

ONES = np.ones(3)
PREFIX = struct.Struct("<8sQQ32s")


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    return gt.graph.make_graph(function)(*(args or (ONES,)))  # type: ignore[no-any-return]


def again(graph: Graph) -> Graph:
    """A graph, saved and loaded; checks that it is the same."""
    data = to_bytes(graph)
    loaded = from_bytes(data)
    assert loaded.same_as(graph)
    assert structural_hash(loaded) == structural_hash(graph)
    assert to_bytes(loaded) == data
    return loaded


def with_params(**params: Any) -> Graph:
    """A graph of one node with some parameters."""
    x = Value(Aval((3,), np.dtype(np.float64)))
    node = Node(KEEPER, [x], params, [x.aval], "model.py:3")
    return Graph("g", [x], [node], node.outputs)


KEEPER = Op("keeper", lambda _xp, x, **_params: x, lambda x, **_params: x)


@pytest.fixture(autouse=True)
def _ops_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files name the ops of these tests."""
    own = {"loop": "nested_graphs:LOOP", "choice": "nested_graphs:CHOICE"}
    own["keeper"] = f"{__name__}:KEEPER"
    for name, place in own.items():
        monkeypatch.setitem(op_names._OF_GRAPHS, name, place)


# ---- every op -----------------------------------------------------------------------------------


def check(function: Callable[..., Any], args: list[Any]) -> None:
    with np.errstate(all="ignore"):
        result = traced(function, *args)
        hidden = [capture.current() for capture in result.captures]
        if any("jets" in node.params for node in result.graph.nodes):
            with pytest.raises(UnsupportedError, match=r"parameter jets of .* got a "):
                to_bytes(result.graph)  # it is made of a user's function
            return
        loaded = again(result.graph)
        assert str(loaded) == str(result.graph)
        inputs = [*args, *hidden]
        assert_same_bits(list(loaded(*inputs)), list(result.graph(*inputs)))


@each()
def test_every_op(case: OpCase) -> None:
    call = call_of(case)
    check(call, call.arrays)


@each(lambda case: case.differentiable)
def test_every_gradient(case: OpCase, thorough: bool) -> None:
    if case.id in FURTHER and not thorough:
        return
    function, floats = call_of(case).differentiable()
    with np.errstate(all="ignore"):
        cotangents = [np.array(out, order="C") for out in function(*floats)]

    def pull(*args: Any) -> list[Any]:
        return list(gt.vjp(function, *args[: len(floats)])[1](list(args[len(floats) :])))

    check(pull, [*floats, *cotangents])


def test_tangents_and_second_derivatives() -> None:
    def function(x: Any) -> Any:
        return np.sum(np.log(x) ** x + gt.nn.gelu(x))

    again(graph_of(lambda x, t: gt.jvp(function, (x,), (t,)), ONES, ONES))
    again(graph_of(gt.hessian(function)))


def test_every_op_of_graphs_has_a_name_in_files() -> None:
    found = {}
    for module in pkgutil.iter_modules(gradtape.graph.__path__, "gradtape.graph."):
        values = vars(importlib.import_module(module.name)).values()
        found.update({id(value): value for value in values if type(value) is Op})
    graphs = [op for op in found.values() if registry.named(op.name) is not op]
    assert len(graphs) > 5
    for op in graphs:
        name = op_names.name_of_op(op)
        assert name is not None, f"add {op.name} to _OF_GRAPHS in io/op_names.py"
        assert op_names.op_of_name(name) is op


# ---- what graphs have ---------------------------------------------------------------------------


def test_ops_that_only_graphs_have() -> None:
    def quiet(x: Any) -> Any:
        with gt.no_grad():
            return np.sin(x)

    assert "unrecorded" in str(again(graph_of(quiet)))
    twice = gt.grad(lambda x: gt.sum(gt.checkpoint(lambda x: gt.exp(gt.sin(x)) * x)(x)))
    assert "= again(" in str(again(graph_of(twice)))
    assert "= int(" in str(again(graph_of(lambda x, flag: x * (flag + flag), ONES, True)))
    weights = np.arange(6.0).reshape(2, 3).T
    loaded = again(graph_of(lambda x: weights @ x, np.ones(2)))
    np.testing.assert_array_equal(loaded(np.ones(2))[0], weights @ np.ones(2))


def test_random_draws_are_functions_of_their_state() -> None:
    graph = trace(lambda x: x + gt.random.normal(shape=3), [Aval((3,), np.dtype(float))]).graph
    loaded, state = again(graph), np.array([1, 2, 3], np.uint64)
    assert_same_bits(loaded(ONES, state), graph(ONES, state))
    assert "redrawn:random_normal" in header_of(to_bytes(graph))["ops"]


def test_literals_keep_their_type_and_bits() -> None:
    numbers: list[Any] = [0.0, -0.0, 1, True, 1j, complex(-0.0, np.inf), np.inf, -np.inf, 2**70]
    numbers += [np.float32(0.1), np.int8(-3), np.bool_(True), np.complex64(1 + 2j), 5e-324]
    numbers += [ml_dtypes.bfloat16(1.5), ml_dtypes.float8_e5m2(0.5), np.nan, 0.1]
    numbers += [struct.unpack(">d", bytes.fromhex("fff8000000000123"))[0], np.float16("nan")]
    graph = graph_of(lambda x: tuple(numbers))
    loaded = again(graph)
    for one, other in zip(loaded.outputs, graph.outputs, strict=True):
        assert type(one.value) is type(other.value)  # type: ignore[union-attr]
        assert one.key == other.key  # type: ignore[union-attr]


def test_dtypes() -> None:
    names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
    for name in [*names.split(), "complex64", "complex128", "bfloat16", "float8_e4m3fn", ">f8"]:
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        array = np.arange(6).reshape(2, 3).astype(dtype)
        loaded = again(with_params(dtype=dtype, array=array, scalar=array[1, 2], turned=array.T))
        params = loaded.nodes[0].params
        assert params["dtype"] == dtype
        assert params["array"].dtype == params["turned"].dtype == dtype
        np.testing.assert_array_equal(params["turned"], array.T)
        assert not params["array"].flags.writeable
    for refused in ("U3", "M8[s]", "O", "longdouble", "i4,i4"):
        with pytest.raises(UnsupportedError, match=r"save: parameter a of keeper at .*: got"):
            to_bytes(with_params(a=np.zeros(2, refused)))


numbers = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(),
    st.just(...), st.builds(np.float32, st.floats(width=32)), st.just(np.dtype(np.int16)),
    st.builds(slice, st.none() | st.integers(), st.integers(), st.none() | st.integers()),
    st.builds(lambda shape: np.arange(np.prod(shape)).reshape(shape), st.tuples(st.integers(0, 3))),
)  # fmt: skip
values = st.recursive(
    numbers,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=4).filter(lambda s: s != "x"), values))
@example({"self": 1})  # the name of an argument of every method
@settings(max_examples=200)
def test_parameters_of_all_types(params: dict[str, Any]) -> None:
    op_names._OF_GRAPHS["keeper"] = f"{__name__}:KEEPER"
    again(with_params(**params))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (np.sin, "got an? ufunc"),
        (lambda: 0, "got a function"),
        (np.float32, "got a type"),
        (b"bytes", "got a bytes"),
        ({1, 2}, "got a set"),
        (object(), "got an object"),
        (Path("x"), "got a PosixPath"),
        (np.ma.ones(3), "got a MaskedArray"),
        (10**2000, "got an int"),
        (np.datetime64("2020-01-01"), "got the dtype datetime64"),
    ],
)
def test_parameters_that_are_refused(value: Any, what: str) -> None:
    with pytest.raises(UnsupportedError, match=f"save: parameter deep of keeper at .*: {what}"):
        to_bytes(with_params(deep=[(value,)]))


def test_a_graph_in_itself_deeply_is_refused() -> None:
    nested: Any = 1
    for _ in range(100):
        nested = (nested,)
    with pytest.raises(UnsupportedError, match="more than 32 levels deep"):
        to_bytes(with_params(a=nested))
    again(deep(90))
    with pytest.raises(FileFormatError, match="graphs more than 100 levels deep"):
        from_bytes(to_bytes(deep(150)))


def test_nested_graphs() -> None:
    body = step()
    outer = around(LOOP, body=around(CHOICE, branches=(body, step(3.0), body)), length=4)
    loaded = again(outer)
    assert str(loaded) == str(outer)
    branches = loaded.nodes[0].params["body"].nodes[0].params["branches"]
    assert branches[0] is branches[2]  # shared graphs stay shared
    assert len(header_of(to_bytes(outer))["graphs"]) == 4
    again(deep(60, copies=2))


def test_lines_have_no_folders() -> None:
    loaded = from_bytes(to_bytes(around(LOOP, body=step(), length=1)))
    assert loaded.nodes[0].line == "model.py:5"


def test_compiled_functions_are_inlined() -> None:
    op = gt.graph.make_graph  # a graph that calls another one, as modes see compiled functions
    inner = op(lambda x: np.sin(x) * 2.0)(ONES)
    call = Op("inner", lambda _xp, x: inner(x), lambda x: (x,), kind="graph", outputs=None)
    call.graph = inner
    x = Value(Aval((3,), np.dtype(float)))
    node = Node(call, [x], {}, [x.aval])
    loaded = from_bytes(to_bytes(Graph("outer", [x], [node], node.outputs)))
    assert [node.op.name for node in loaded.nodes] == ["sin", "multiply"]
    assert loaded.same_as(inner)


def test_rules_of_users_are_refused_by_name() -> None:
    @gt.custom_vjp
    def clipped(x: Any) -> Any:
        return np.clip(x, -1.0, 1.0)

    clipped.defvjp(lambda ct, out, x: (ct,))
    with pytest.raises(UnsupportedError, match=r"calls clipped at .*rules of its own"):
        to_bytes(graph_of(lambda x: clipped(x)))
    with pytest.raises(ArgumentError, match="got a function, expected a graph"):
        to_bytes(gt.sum)  # type: ignore[arg-type]


def test_long_graphs() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20_000):
            x = x + 1.0
        return x

    assert len(again(graph_of(chain)).nodes) == 20_000


# ---- files --------------------------------------------------------------------------------------

FRESH = """
import sys
import numpy as np
import gradtape as gt
graph = gt.graph.load(sys.argv[1])
print(gt.graph.structural_hash(graph))
print(graph(np.arange(1.0, 4.0))[0].tobytes().hex())
"""


def test_loads_in_a_fresh_process(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(3, 3))
    graph = graph_of(gt.grad(lambda x: np.sum(np.linalg.solve(weights, x) ** 2.0)))
    path = tmp_path / "model.gtgraph"
    save(path, graph)
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(path)], capture_output=True, text=True, check=True
    )
    expected = graph(np.arange(1.0, 4.0))[0].tobytes().hex()
    assert done.stdout.split() == [structural_hash(graph), expected]


def test_files_are_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.gtgraph"
    save(path, step())
    os.chmod(path, 0o640)
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, _no_space)
            with pytest.raises(OSError, match="no space"):
                save(path, step(3.0))
        assert load(path).same_as(step())
        assert os.listdir(tmp_path) == ["model.gtgraph"]
    with pytest.raises(UnsupportedError):
        save(path, with_params(a=object()))
    assert load(path).same_as(step())
    save(path, step(3.0))
    assert load(path).same_as(step(3.0))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link = tmp_path / "link"
    link.symlink_to(path)
    save(link, step())
    assert link.is_symlink()
    assert load(path).same_as(step())


def _no_space(*_args: Any) -> None:
    raise OSError("no space left")


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(OSError, match="No such file"):
        save(tmp_path / "none" / "x", step())
    (tmp_path / "other").write_bytes(b"PK\x03\x04" * 100)
    with pytest.raises(FileFormatError, match=r"load: '.*other': got 400 bytes that do not begin"):
        load(tmp_path / "other")


# ---- hostile bytes ------------------------------------------------------------------------------


def header_of(data: bytes) -> dict[str, Any]:
    _, _, length, _ = PREFIX.unpack_from(data)
    return json.loads(data[PREFIX.size : PREFIX.size + length])  # type: ignore[no-any-return]


def signed(header: bytes, rest: bytes = b"", version: int = 1, length: int | None = None) -> bytes:
    """A file with a right checksum, whatever is in it."""
    digest = hashlib.sha256(header + rest).digest()
    size = len(header) if length is None else length
    return PREFIX.pack(b"GTGRAPH\n", version, size, digest) + header + rest


def sample() -> Graph:
    """A graph with something of everything."""
    table = np.arange(6.0).reshape(2, 3)

    def function(x: Any, n: Any) -> Any:
        return np.sum((table @ x)[..., 1:] * 2.0) ** n, gt.nn.avg_pool1d(x[None], 2), x.astype(int)

    inner = graph_of(gt.grad(lambda x: function(x, 2.0)[0]))
    x = Value(Aval((3,), np.dtype(float)))
    node = Node(LOOP, [x], {"body": inner, "length": 3}, [x.aval])
    again(Graph("outer", [x], [node], node.outputs))
    return graph_of(function, ONES, 2.0)


def edited(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The sample with a change of its header."""
    data = to_bytes(sample())
    header = header_of(data)
    _, _, length, _ = PREFIX.unpack_from(data)
    change(header)
    return signed(json.dumps(header).encode(), data[PREFIX.size + length :])


def set_param(header: dict[str, Any], value: Any) -> None:
    header["graphs"][-1]["nodes"][1]["params"]["x"] = value


def set_at(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Sets what is at a path in the header to the last item."""

    def change(header: Any) -> None:
        for part in path[:-2]:
            header = header[part]
        header[path[-2]] = path[-1]

    return change


NODE = ("graphs", 0, "nodes", 1)
WRONG: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (set_at("ops", 1, "no_such_op"), "got the op 'no_such_op', which this version"),
    (set_at("ops", 1, "os:system"), "got the op 'os:system'"),
    (set_at("ops", 1, "graph:os"), "got the op 'graph:os'"),
    (set_at("ops", 1, "redrawn:sin"), "got the op 'redrawn:sin'"),
    (set_at("ops", 1, "redrawn:redrawn:random_normal"), "got the op"),
    (set_at("ops", 1, "settled:sin:vjp:7"), "got the op"),
    (set_at("ops", 1, "settled:sin:__class__:0"), "got the op"),
    (set_at("ops", 1, "settled:nope:vjp:0"), "got the op"),
    (set_at("ops", 1, 7), "a name of an op that is no string"),
    (set_at("ops", {}), "got ops that are no list"),
    (set_at("types", 0, ["float64", [4], False]), "the graph is wrong: .*shape rule"),
    (set_at("types", 0, ["float64", [-1], False]), "got the shape a list"),
    (set_at("types", 0, ["float64", [2.0], False]), "got the shape"),
    (set_at("types", 0, ["float64", [True], False]), "got the shape"),
    (set_at("types", 0, ["object", [3], False]), "got the dtype 'object'"),
    (set_at("types", 0, ["<<float64", [3], False]), "got the dtype"),
    (set_at("types", 0, [["float64"], [3], False]), "got the dtype a list"),
    (set_at("types", 0, ["float64", [3], 1]), "got a type that is not"),
    (set_at("lines", 0, None), "a line that is no string"),
    (set_at("arrays", 0, ["float64", [2, 10**12]]), "more bytes than the file has"),
    (set_at("arrays", 0, ["float64", [2]]), "32 bytes after the last array"),
    (set_at("arrays", []), "48 bytes after the last array|number 0 of array"),
    (set_at("graphs", []), "got no graphs"),
    (set_at("graphs", 0, "name", 3), "a name that is no string"),
    (set_at("graphs", 0, "extra", 1), "a graph that has other fields"),
    (set_at("extra", []), "a header that has other fields"),
    (set_at(*NODE, "extra", 1), "a node that has other fields"),
    (set_at(*NODE, "op", 99), "got the number 99 of op"),
    (set_at(*NODE, "op", -1), "got the number -1 of op"),
    (set_at(*NODE, "op", True), "got the number True of op"),
    (set_at(*NODE, "operands", [0, 55]), "got the number 55 of value"),
    (set_at(*NODE, "operands", [0]), "matmul: got 1 operands"),
    (set_at(*NODE, "operands", [{"number": "text"}, 0]), "a str as an operand"),
    (set_at(*NODE, "outputs", [99]), "got the number 99 of type"),
    (set_at(*NODE, "outputs", []), "number 3 of value"),
    (set_at(*NODE, "line", 99), "got the number 99 of line"),
    (set_at(*NODE, "params", []), "parameters that are no object"),
    (lambda header: set_param(header, 1), r"matmul: got 2 operands and parameters \['x'\]"),
    (lambda header: set_param(header, 1.5), "got 1.5, which stands for no value"),
    (lambda header: set_param(header, {"eval": "1"}), "a value of type 'eval'"),
    (lambda header: set_param(header, {"pickle": "gASV"}), "a value of type 'pickle'"),
    (lambda header: set_param(header, {"function": "os:system"}), "got 'os:system'"),
    (lambda header: set_param(header, {"record": ["os", []]}), "got 'os'"),
    (lambda header: set_param(header, {"record": ["Windows", [1]]}), "stands for no value"),
    (lambda header: set_param(header, {"float": "one"}), "the header is wrong"),
    (lambda header: set_param(header, {"float": "nan"}), "got 'nan'"),
    (lambda header: set_param(header, {"float": "0x1p99999"}), "the header is wrong"),
    (lambda header: set_param(header, {"nan": "00"}), "got '00'"),
    (lambda header: set_param(header, {"scalar": ["float64", "00"]}), "stands for no value"),
    (lambda header: set_param(header, {"slice": [1]}), "stands for no value"),
    (lambda header: set_param(header, {"ellipsis": False}), "got False"),
    (lambda header: set_param(header, {"array": 5}), "got the number 5 of array"),
    (lambda header: set_param(header, {"graph": 0}), "got the number 0 of graph"),
    (lambda header: set_param(header, {"dict": [[1]]}), "stands for no value"),
    (lambda header: set_param(header, {"dict": [[[], 1]]}), "stands for no value"),
    (lambda header: set_param(header, {"dict": 3}), "stands for no value"),
    (lambda header: set_param(header, {"complex": [1, 2]}), "stands for no value"),
    (lambda header: set_param(header, {}), "got a dict, which"),
]


@pytest.mark.parametrize(("change", "match"), WRONG, ids=[match for _, match in WRONG])
def test_wrong_headers(change: Callable[[dict[str, Any]], Any], match: str) -> None:
    with pytest.raises(FileFormatError, match=f"from_bytes: .*({match})"):
        from_bytes(edited(change))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "got 0 bytes that do not begin"),
        (b"GTGRAPH\n", "got 8 bytes"),
        (signed(b"{}", version=2), "got version 2 of the format, expected 1"),
        (signed(b"{}", version=0), "got version 0"),
        (signed(b"{}"), "a header that has other fields"),
        (signed(b"{}", length=2**63), "truncated or was changed"),
        (signed(b"[1, 2"), "the header is wrong"),
        (signed(b"\xff\xfe"), "the header is wrong"),
        (signed(b"[" * 100_000), "the header is wrong"),
        (signed(b"9" * 100_000), "the header is wrong"),
        (signed(b'{"types":' * 2000 + b"1" + b"}" * 2000), "header"),
    ],
)
def test_wrong_bytes(data: bytes, match: str) -> None:
    with pytest.raises(FileFormatError, match=match):
        from_bytes(data)


def test_every_truncation_is_refused() -> None:
    data = to_bytes(sample())
    for end in range(0, len(data), 7):
        with pytest.raises(FileFormatError):
            from_bytes(data[:end])
    with pytest.raises(FileFormatError, match="truncated or was changed"):
        from_bytes(data + b"\0")


@given(st.data())
@settings(max_examples=300)
def test_changed_bytes_are_refused(data: st.DataObject) -> None:
    good = SAMPLE
    place = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(0, 255))
    bad = good[:place] + bytes([byte]) + good[place + 1 :]
    if bad == good:
        return
    with pytest.raises(FileFormatError):
        from_bytes(bad)


SAMPLE = to_bytes(step())
RICH = to_bytes(
    graph_of(
        gt.value_and_grad(lambda x: np.sum(np.arange(3.0) * x[..., ::-1] ** x) + np.mean(x, 0))
    )
)


@given(st.data())
@settings(max_examples=500)
def test_changed_headers_with_a_right_checksum(data: st.DataObject) -> None:
    """A clear error, or a graph that is sound; never another error."""
    _, _, length, _ = PREFIX.unpack_from(RICH)
    header, rest = RICH[PREFIX.size :][:length], RICH[PREFIX.size + length :]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(header) - 1))
        end = start + data.draw(st.integers(0, 4))
        piece = data.draw(st.sampled_from([b"", b"0", b"1", b"-1", b"[]", b"{}", b'"', b",", b"9"]))
        header = header[:start] + piece + header[end:]
    check_hostile(signed(header, rest))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 99) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["float", "slice", "dict", "list", "array", "graph", "dtype", "nan"]),
            inner,
            max_size=1,
        )
    ),
    max_leaves=6,
)


@given(st.data())
@settings(max_examples=500)
def test_changed_values_with_a_right_checksum(data: st.DataObject) -> None:
    header = header_of(RICH)
    _, _, length, _ = PREFIX.unpack_from(RICH)
    place: Any = header
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(json_values)
    check_hostile(signed(json.dumps(header).encode(), RICH[PREFIX.size + length :]))


def check_hostile(data: bytes) -> None:
    try:
        graph = from_bytes(data)
    except FileFormatError:
        return
    assert list(faults(graph)) == []
    again(graph)


def test_a_graph_given_before_the_path_is_told_the_order(tmp_path):
    graph = gt.graph.make_graph(np.sin)(np.ones(3))
    with pytest.raises(ArgumentError, match=r"the path first: gt\.graph\.save\(path, graph\)"):
        gt.graph.save(graph, tmp_path / "sine.gtgraph")


def test_a_call_of_the_host_is_refused_as_a_python_function(tmp_path):
    graph = gt.graph.make_graph(lambda x: gt.host_call(np.sin, 0.0, x))(1.0)
    with pytest.raises(UnsupportedError, match=r"host_call of sin at .*, a Python function"):
        gt.graph.save(tmp_path / "sine.gtgraph", graph)
    assert not list(tmp_path.iterdir())
