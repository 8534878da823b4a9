"""Graphs as bytes and files. docs/graph-format.md describes the format.

A file is a prefix of 56 bytes, a header in JSON, and the arrays. Reading one looks up ops in tables
of this package, and runs nothing but their shape rules: it imports nothing by a name in the file,
evaluates no expression and unpickles nothing.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradtape.core.aval import Aval
from gradtape.core.op import Op
from gradtape.errors import ArgumentError, FileFormatError, UnsupportedError, a_type
from gradtape.graph.inline import inline
from gradtape.graph.ir import Graph, Literal, Node, Operand, Rewriter, Value
from gradtape.graph.text import short_line
from gradtape.graph.verify import faults
from gradtape.io.atomic import replacing
from gradtape.io.graph_params import (
    Decoder,
    Encoder,
    dtype_of_name,
    index,
    name_of_dtype,
    restored,
    sizes,
    stored,
)
from gradtape.io.op_names import name_of_op, op_of_name

MAGIC = b"GTGRAPH\n"
VERSION = 1
# The magic bytes, the version, the length of the header, and SHA-256 of all that follows.
_PREFIX = struct.Struct("<8sQQ32s")
# Graphs inside of graphs; a program has a few.
_MOST_NESTED = 100
_NUMBERS = (bool, int, float, complex, np.generic)


def save(path: str | os.PathLike[str], graph: Graph) -> None:
    """Save a graph to a file.

    The file is written atomically: whatever happens, it holds the old graph or the new one.

    Args:
        path: The file, by convention `name.gtgraph`.
        graph: The graph, with those in its parameters. Of the lines of code, the file has the name
            of the source file and the number, without folders.

    Raises:
        ArgumentError: What is given is not a graph, or given before the path.
        UnsupportedError: The graph has a rule or a function of a user in it, or a parameter that
            the format does not have. Nothing is written.
        OSError: The file cannot be written.

    >>> import os, tempfile
    >>> graph = gt.graph.make_graph(lambda x: np.tanh(x) * 2.0)(np.ones(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.gtgraph")
    ...     gt.graph.save(path, graph)
    ...     gt.graph.load(path).same_as(graph)
    True
    """
    if isinstance(path, Graph):
        raise ArgumentError(
            "save: got a graph for the path, expected the path first: gt.graph.save(path, graph)"
        )
    data = to_bytes(graph)
    with replacing(path) as temporary:
        Path(temporary).write_bytes(data)


def load(path: str | os.PathLike[str]) -> Graph:
    """Load a graph from a file.

    Nothing is executed: the file can only name ops that gradtape has. The graph is checked before
    it is returned. Run it only if you trust its source, as it may take any time and memory.

    Args:
        path: A file written by `gt.graph.save`.

    Returns:
        A graph that is `same_as` the saved one.

    Raises:
        FileFormatError: The file is truncated or changed, of an unknown version, or names an op or
            a type that this version does not have.
        OSError: The file cannot be read.

    >>> gt.graph.load("no-such-file.gtgraph")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.gtgraph'
    """
    return _checked(Path(path).read_bytes(), f"load: {os.fspath(path)!r}")


def to_bytes(graph: Graph) -> bytes:
    r"""A graph as bytes, as `gt.graph.save` writes them.

    Args:
        graph: The graph.

    Returns:
        The bytes; the same for the same graph.

    Raises:
        UnsupportedError: The graph cannot be saved.

    >>> graph = gt.graph.make_graph(np.sin)(np.ones(3))
    >>> data = gt.graph.to_bytes(graph)
    >>> data[:8], gt.graph.from_bytes(data).same_as(graph)
    (b'GTGRAPH\n', True)
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(f"save: got {a_type(graph)}, expected a graph; use gt.graph.make_graph")
    return _Writer(graph).data()


def from_bytes(data: bytes) -> Graph:
    """A graph from bytes; see `gt.graph.load`.

    Args:
        data: What `gt.graph.to_bytes` returned.

    Returns:
        The graph.

    Raises:
        FileFormatError: The bytes are those of no graph.

    >>> gt.graph.from_bytes(b"something else")
    Traceback (most recent call last):
        ...
    gradtape.errors.FileFormatError: from_bytes: got 14 bytes that do not begin as a graph does, ...
    """
    return _checked(bytes(data), "from_bytes")


# ---- writing ------------------------------------------------------------------------------------


class _Table:
    """Things that are written once, and referred to by their number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __call__(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def entries(self) -> list[Any]:
        return list(self._numbers)


class _Writer:
    """Makes the header and the arrays of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._root = _inlined(graph)
        graphs = self._root.nested()
        self._encode = Encoder({one: number for number, one in enumerate(graphs)})
        self._types, self._ops, self._lines = _Table(), _Table(), _Table()
        self._written = [self._graph(one) for one in graphs]

    def data(self) -> bytes:
        arrays = self._encode.arrays
        header = {
            "types": self._types.entries(),
            "ops": self._ops.entries(),
            "lines": self._lines.entries(),
            "arrays": [[name_of_dtype(array.dtype), list(array.shape)] for array in arrays],
            "graphs": self._written,
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        body = b"".join([text, *map(stored, arrays)])
        return _PREFIX.pack(MAGIC, VERSION, len(text), hashlib.sha256(body).digest()) + body

    def _graph(self, graph: Graph) -> dict[str, Any]:
        numbers = {value: number for number, value in enumerate(graph.values())}

        def operand(one: Operand) -> Any:
            return numbers[one] if isinstance(one, Value) else {"number": self._encode(one.value)}

        return {
            "name": graph.name,
            "inputs": [self._type(value.aval) for value in graph.inputs],
            "nodes": [
                {
                    "op": self._op(node),
                    "operands": [operand(one) for one in node.operands],
                    "params": self._params(node),
                    "outputs": [self._type(value.aval) for value in node.outputs],
                    "line": self._lines(short_line(node.line)) if node.line else None,
                }
                for node in graph.nodes
            ],
            "outputs": [operand(one) for one in graph.outputs],
        }

    def _type(self, aval: Aval) -> int:
        return self._types((name_of_dtype(aval.dtype), tuple(map(int, aval.shape)), aval.weak))

    def _op(self, node: Node) -> int:
        name = name_of_op(node.op)
        if name is not None:
            return self._ops(name)
        if node.op.kind == "custom":
            what = "a function with rules of its own, which a file cannot hold"
            advice = "write it with functions of gradtape only"
        elif node.op.kind == "host":
            what = "a Python function, which a file cannot hold"
            advice = "save the parts before and after it"
        elif node.op.graph is not None:
            what, advice = "a compiled function inside of another graph", "call the plain function"
        else:
            what, advice = "which is no op that files can name", "save the graph before any pass"
        at = f" at {node.line}" if node.line else ""
        raise UnsupportedError(f"save: got a graph that calls {node.op.name}{at}, {what}; {advice}")

    def _params(self, node: Node) -> dict[str, Any]:
        found = {}
        for name, value in node.params.items():
            try:
                found[name] = self._encode(value)
            except UnsupportedError as error:
                at = f" at {node.line}" if node.line else ""
                raise UnsupportedError(
                    f"save: parameter {name} of {node.op.name}{at}: {error}"
                ) from None
        return found


def _inlined(graph: Graph) -> Graph:
    """The graph with calls of compiled functions replaced by their nodes."""
    while any(node.op.kind == "graph" for node in graph.nodes):
        rewriter = Rewriter(graph)
        for node in graph.nodes:
            if node.op.kind == "graph":
                results = inline(rewriter, node.op.graph, rewriter.operands(node), node.line)
                for value, result in zip(node.outputs, results, strict=True):
                    rewriter.replace(value, result)
            else:
                rewriter.copy(node)
        graph = rewriter.finish()
    return graph


# ---- reading ------------------------------------------------------------------------------------


def _checked(data: bytes, what: str) -> Graph:
    """The graph in a file; all errors are of one class, and begin with what is read."""
    try:
        graph = _Reader(*_parts(data)).graph()
    except FileFormatError as error:
        raise FileFormatError(f"{what}: {error}") from None
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise FileFormatError(f"{what}: the header is wrong: {error}") from None
    for fault in faults(graph):
        raise FileFormatError(f"{what}: the graph is wrong: {fault}")
    return graph


def _parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the bytes of all arrays."""
    if len(data) < _PREFIX.size or not data.startswith(MAGIC):
        raise FileFormatError(
            f"got {len(data)} bytes that do not begin as a graph does, expected what gt.graph.save "
            "writes"
        )
    _, version, length, digest = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise FileFormatError(
            f"got version {version} of the format, expected {VERSION}; use the release of gradtape "
            "that wrote it, or a later one"
        )
    body = data[_PREFIX.size :]
    if hashlib.sha256(body).digest() != digest or length > len(body):
        raise FileFormatError("the file is truncated or was changed: its checksum is wrong")
    header = json.loads(body[:length])
    _fields(header, ("types", "ops", "lines", "arrays", "graphs"), "header")
    return header, body[length:]


def _fields(item: Any, names: Sequence[str], what: str) -> list[Any]:
    """The values of an object that has these fields and no others."""
    if not isinstance(item, dict) or set(item) != set(names):
        raise FileFormatError(f"got a {what} that has other fields than {', '.join(names)}")
    return [item[name] for name in names]


class _Reader:
    """Makes graphs of a header and the bytes of arrays."""

    def __init__(self, header: dict[str, Any], data: bytes) -> None:
        for name, entries in header.items():
            _listed(entries, name)
        self._types = [_type(entry) for entry in header["types"]]
        self._ops = [_op(entry) for entry in header["ops"]]
        self._lines = [_text(entry, "line") for entry in header["lines"]]
        self._written = header["graphs"]
        self._graphs: list[Graph] = []
        self._depths: dict[Graph, int] = {}
        self._decode = Decoder(list(_arrays(header["arrays"], data)), self._graphs)

    def graph(self) -> Graph:
        """The last graph, which the others are inside of."""
        for written in self._written:
            graph = self._graph(written)
            inner = (self._depths[one] for node in graph.nodes for one in node.graphs())
            self._depths[graph] = 1 + max(inner, default=0)
            if self._depths[graph] > _MOST_NESTED:
                raise FileFormatError(f"got graphs more than {_MOST_NESTED} levels deep")
            self._graphs.append(graph)
        if not self._graphs:
            raise FileFormatError("got no graphs, expected at least one")
        return self._graphs[-1]

    def _graph(self, item: Any) -> Graph:
        name, inputs, nodes, outputs = _fields(
            item, ("name", "inputs", "nodes", "outputs"), "graph"
        )
        values = [Value(aval) for aval in self._avals(inputs)]
        given = tuple(values)
        made = [self._node(one, values) for one in _listed(nodes, "nodes")]
        found = [self._operand(one, values) for one in _listed(outputs, "outputs")]
        return Graph(_text(name, "name"), given, made, found)

    def _node(self, item: Any, values: list[Value]) -> Node:
        """A node, whose results are added to the values that there are."""
        number, operands, params, outputs, line = _fields(
            item, ("op", "operands", "params", "outputs", "line"), "node"
        )
        op = self._ops[index(number, self._ops, "op")]
        if not isinstance(params, dict):
            raise FileFormatError(f"{op.name}: got parameters that are no object")
        given = {name: self._decode(value) for name, value in params.items()}
        taken = [self._operand(one, values) for one in _listed(operands, "operands")]
        _check_call(op, len(taken), given)
        at = "" if line is None else self._lines[index(line, self._lines, "line")]
        node = Node(op, taken, given, self._avals(outputs), at)
        values += node.outputs
        return node

    def _operand(self, item: Any, values: list[Value]) -> Operand:
        if isinstance(item, dict):
            (number,) = _fields(item, ("number",), "operand")
            value = self._decode(number)
            if not isinstance(value, _NUMBERS):
                raise FileFormatError(f"got {a_type(value)} as an operand, expected a number")
            return Literal(value)
        return values[index(item, values, "value")]

    def _avals(self, item: Any) -> list[Aval]:
        numbers = _listed(item, "types")
        return [self._types[index(number, self._types, "type")] for number in numbers]


def _listed(item: Any, what: str) -> list[Any]:
    if not isinstance(item, list):
        raise FileFormatError(f"got {what} that are no list")
    return item


def _text(item: Any, what: str) -> str:
    if not isinstance(item, str):
        raise FileFormatError(f"got a {what} that is no string")
    return item


def _type(entry: Any) -> Aval:
    if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[2], bool):
        raise FileFormatError("got a type that is not [dtype, shape, weak]")
    return Aval(sizes(entry[1]), dtype_of_name(entry[0]), weak=entry[2])


def _op(entry: Any) -> Op:
    op = op_of_name(_text(entry, "name of an op"))
    if op is None:
        raise FileFormatError(
            f"got the op {entry[:80]!r}, which this version of gradtape does not have; use the "
            "release that wrote the file, or a later one"
        )
    return op


def _arrays(entries: list[Any], data: bytes) -> Any:
    """The arrays, each from the bytes that follow those of the one before."""
    start = 0
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 2:
            raise FileFormatError("got an array that is not [dtype, shape]")
        dtype, shape = dtype_of_name(entry[0]), sizes(entry[1])
        end = start + math.prod(shape) * dtype.itemsize
        if end > len(data):
            raise FileFormatError("got arrays of more bytes than the file has")
        yield restored(data[start:end], dtype, shape)
        start = end
    if start != len(data):
        raise FileFormatError(f"got {len(data) - start} bytes after the last array, expected none")


def _check_call(op: Op, count: int, params: dict[str, Any]) -> None:
    """Check that an op takes so many operands, and parameters of these names."""
    signature = _signature(op)
    if signature is not None:
        try:
            signature.bind(None, *(None,) * count, **params)
        except TypeError as error:
            raise FileFormatError(
                f"{op.name}: got {count} operands and parameters {sorted(params)!r:.200}: {error}"
            ) from None


@functools.lru_cache(maxsize=1024)
def _signature(op: Op) -> inspect.Signature | None:
    try:
        return inspect.signature(op.evaluate)
    except (TypeError, ValueError):
        return None
