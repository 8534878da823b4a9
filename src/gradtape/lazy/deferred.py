"""Tensors of which the sizes are not known: calls that are put off until something is fed.

There is no arithmetic of unknown sizes. An op on such a tensor, or a whole function that asks for
its size, becomes a node that says what to call; `lazy.specialize` makes the calls once the sizes
are known.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.aval import Abstract
from gradtape.core.call import call
from gradtape.core.nested import Handle, Nested
from gradtape.core.op import Op
from gradtape.core.state import Mode
from gradtape.core.tensor import Tensor
from gradtape.errors import UnknownSizeError, WriteError
from gradtape.graph.ir import Operand, Value
from gradtape.ops.answers import answer


class DeferredValue(Value):
    """A result of a deferred call.

    Attributes:
        unsized: The name of a placeholder on whose size it depends.
    """

    __slots__ = ("unsized",)

    def __init__(self, unsized: str, node: Any = None, index: int = 0) -> None:
        self.node = node
        self.index = index
        self.unsized = unsized


class DeferredCall:
    """A call that is put off; the counterpart of `graph.ir.Node`.

    Attributes:
        function: The function to call.
        operands: The operands of the graph among its arguments.
        outputs: Its results.
        several: Whether it returns a sequence of them; if not, the one result may be anything.
        line: The line of the user's code.
        recorded: Whether what differentiates the results sees it: not in `no_grad`.
        modes: The rewriting modes that see its ops.
        region: The policy of the checkpointed function it is called in; None outside of one.
    """

    __slots__ = (
        "_leaves", "_structure", "function", "line", "modes", "operands", "outputs", "recorded",
        "region", "several",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Any],
        leaves: Sequence[Any],
        structure: containers.Structure | None,
        unsized: str,
        line: str,
        *,
        count: int | None = None,
        recorded: bool = True,
        modes: tuple[Mode, ...] = (),
        region: Any = None,
    ) -> None:
        """Note a call.

        Args:
            function: The function to call.
            leaves: The leaves of its arguments, with operands in place of lazy tensors.
            structure: Their structure, that of `(args, kwargs)`; None if they are the arguments.
            unsized: The name of a placeholder whose size is asked for.
            line: The line of the user's code.
            count: The number of results if it returns a sequence of them; None for one, which
                may be anything.
            recorded: Whether it is recorded by what differentiates the result: not in `no_grad`.
            modes: The rewriting modes that see its ops.
            region: The policy of the checkpointed function it is called in.
        """
        self.function, self._leaves, self._structure = function, tuple(leaves), structure
        self.operands: tuple[Operand, ...] = tuple(x for x in leaves if isinstance(x, Value))
        self.several = count is not None
        self.outputs = tuple(
            [DeferredValue(unsized, self, i) for i in range(1 if count is None else count)]
        )
        self.line = line
        self.recorded = recorded
        self.modes = modes
        self.region = region

    def __call__(self, traced: Callable[[Any], Any]) -> Any:
        """Make the call, with the tensors that a function gives for operands."""
        values = [traced(x) if isinstance(x, Operand) else x for x in self._leaves]
        if self._structure is None:
            return self.function(*values)
        args, kwargs = containers.unflatten(self._structure, values)
        return self.function(*args, **kwargs)


def op_call(op: Op, params: dict[str, Any]) -> Callable[..., Any]:
    """The call of an op as a function of its operands."""
    return lambda *args: call(op, args, params)


# ---- tensors ------------------------------------------------------------------------------------


def _unknown(name: str) -> Any:
    def ask(self: Unknown) -> Any:
        raise UnknownSizeError(
            f"{name}: got a lazy tensor whose size depends on what is fed to placeholder "
            f"{self.unsized!r}, expected known sizes; give the placeholder a shape without -1 and "
            "None, or leave the question to functions of arrays: np.mean(x) in place of "
            "np.sum(x) / x.size, x.reshape(-1, 32) in place of x.reshape(len(x), 32)",
            functools.partial(self.defer, self.unsized),
        )

    return property(ask)


class Unknown(Abstract):
    """Stands in for the array of a deferred tensor, and refuses to answer for it."""

    __slots__ = ("defer", "unsized")

    def __init__(self, unsized: str, defer: Callable[..., Any]) -> None:
        self.unsized = unsized
        self.defer = defer

    shape, dtype, weak = _unknown("shape"), _unknown("dtype"), _unknown("dtype")
    base, strides, size = _unknown("shape"), _unknown("shape"), _unknown("size")

    def __repr__(self) -> str:
        return f"of a size that depends on placeholder {self.unsized!r}"


class DeferredTensor(Nested):
    """A lazy tensor of which the sizes are not known, or any other result of a deferred call."""

    __slots__ = ()

    def __iter__(self) -> Any:
        error, names = self._not_iterable(), self._results()
        if names is None:
            raise error
        every = range(len(names))
        return iter([error.deferred(_part, (self, n, len(names)), {}) for n in every])

    def __getattr__(self, name: str) -> Any:
        names = self._results() or ()
        if name not in names:
            raise AttributeError(
                f"a lazy tensor of unknown size has no attribute {name!r}", name=name, obj=self
            )
        return self._not_iterable().deferred(_part, (self, names.index(name), len(names)), {})

    def _results(self) -> tuple[str, ...] | None:
        """The names of the results of the function that was deferred; None if not known."""
        node = self.record.operand.node  # type: ignore[union-attr]
        return None if node is None or node.several else result_names(node.function)

    def _not_iterable(self) -> UnknownSizeError:
        unsized: str = self.value.unsized
        return UnknownSizeError(
            "iteration: got a lazy tensor, or several results of a function, whose number depends "
            f"on what is fed to placeholder {unsized!r}; take them by index: t[0], t[1]",
            functools.partial(self.value.defer, unsized),
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        self.check_writable("item assignment")
        level = self.record.segment  # type: ignore[union-attr]
        self.rebind(level.written(self, value, index))

    def augment(self, function: Callable[[Any, Any], Any], other: Any) -> Tensor:
        self.check_writable("augmented assignment")
        self.rebind(function(self, other))
        return self

    def check_writable(self, what: str) -> None:
        level = self.record.segment  # type: ignore[union-attr]
        if self.record.operand in level.lent:  # type: ignore[union-attr]
            raise WriteError(
                f"{what}: got a lazy tensor of unknown size that may be a view or have views, "
                "expected a result of its own; write y = y + x in place of y += x, or "
                "y = gt.setitem(y, value, index)"
            )


def _part(results: Any, n: int, count: int) -> Any:
    """One of the results of a function, which must be as many as its annotation says."""
    if not isinstance(results, tuple | list) or len(results) != count:
        raise UnknownSizeError(
            f"iteration: got something else than the {count} results that the function has with "
            "other options; take elements by index: t[0]"
        )
    return results[n]


def result_names(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The names of the results of a function by its annotation, "" for one that has none.

    None if the annotation does not say how many there are.
    """
    function = _home(function)
    stated = getattr(function, "__annotations__", {}).get("return")
    found: set[tuple[str, ...] | None] = set()
    for part in stated.split(" | ") if isinstance(stated, str) else ():
        fields = getattr(getattr(function, "__globals__", {}).get(part), "_fields", None)
        if fields is not None:
            found.add(fields)
        elif part.startswith("tuple["):
            found.add(None if "..." in part else ("",) * (_outer_commas(part[6:-1]) + 1))
    return found.pop() if len(found) == 1 else None


def _outer_commas(text: str) -> int:
    """How many commas of an annotation are in no brackets."""
    while "[" in text:
        text = re.sub(r"\[[^][]*\]", "", text)
    return text.count(",")


def _home(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is defined; ours for one of NumPy's or SciPy's."""
    module = getattr(function, "__module__", None) or ""
    if isinstance(function, np.ufunc) or module.startswith(("numpy", "scipy")):
        function = _answer(function) or function
    return inspect.unwrap(function)  # type: ignore[no-any-return]


# An answer is looked up in a table that is made for it.
_answer = functools.cache(answer)


# Modules of `ops` whose functions return results of their own, no views.
_OWNING = frozenset(
    {"contract", "cumulative", "einsum", "join", "like", "moments", "norm", "product", "reduce"}
    | {"softmax"}
)


def may_return_view(function: Callable[..., Any]) -> bool:
    """Whether a result may share memory with an argument, as far as is known."""
    home = getattr(_home(function), "__module__", None) or ""
    return home.removeprefix("gradtape.ops.") not in _OWNING


# Answered by the class itself, or refused by it.
_OWN = frozenset(
    {"__array_ufunc__", "__array_function__", "__array__", "__init__", "__repr__", "__hash__"}
    | {"__float__", "__int__", "__complex__", "__index__", "__bool__", "__len__", "__iter__"}
    | {"__format__", "__reduce__", "__deepcopy__", "__dir__", "__setitem__"}
    | {"augment", "check_writable", "fresh", "peek", "rebind", "item", "tolist", "numpy"}
    | {"backward", "set_requires_grad", "zero_grad"}
    | {"eval", "raw_hook", "show", "show_shape"}
)
_WRITING = frozenset({"fill", "sort", "partition"})
# Properties that say something of the tensor itself.
_ASKING = frozenset({"shape", "dtype", "ndim", "size", "itemsize", "nbytes"})


def _through(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method that is deferred if it asks for sizes."""

    @functools.wraps(method)
    def through(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        try:
            result = method(self, *args, **kwargs)
        except UnknownSizeError as error:
            return error.deferred(_by_name(name), (self, *args), kwargs)
        # A view that follows its base would have to know sizes.
        return result.fresh() if isinstance(result, Handle) else result

    return through


@functools.cache
def _by_name(name: str) -> Callable[..., Any]:
    """The function that looks a method or property of its first argument up, and calls it."""
    if name == "__getitem__":
        return operator.getitem  # what is indexed may be a container of results

    def looked_up(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(self, name)
        return (
            found(*args, **kwargs) if callable(found) and not isinstance(found, Tensor) else found
        )

    return looked_up


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise WriteError(
            f"{name}: got a lazy tensor of unknown size, which is not written to in place; use a "
            "function that returns its result"
        )

    return refuse


def _install() -> None:
    for name in dir(Tensor):
        found = getattr(Tensor, name)
        if name in _OWN or name in _ASKING or getattr(object, name, None) is found:
            continue
        if name in _WRITING or name.endswith("_into"):
            setattr(DeferredTensor, name, _refused(name))
        elif isinstance(found, FunctionType):
            setattr(DeferredTensor, name, _through(found, name))
        elif isinstance(found, property) and found.fget is not None:
            setattr(DeferredTensor, name, property(_through(found.fget, name)))


_install()
