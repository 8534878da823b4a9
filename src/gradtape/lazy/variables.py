"""Variables of lazy graphs: arrays with ids and names, in namespaces, that outlive each run.

An environment holds the arrays, so a program can be run again and again while an optimizer assigns
new values in between. Arrays are never written to: assigning replaces them, all at once where there
are several, so that other threads see either the old values or the new ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gradtape.core.aval import aval_of, is_extended_float, is_numeric
from gradtape.core.recent import Recent
from gradtape.core.tensor import read_only
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    FileFormatError,
    ShapeError,
    VariableError,
    a_type,
)
from gradtape.locks import guard, load

# The number of a variable in its environment: 0, 1, … in the order in which they were made.
VariableId = int

_SEPARATOR = "/"
# Begins the names that unnamed variables are given: "#0", "#1", …
_SLOT = "#"
# The key of a file's metadata that has the names in the order of their ids.
_ORDER = "gradtape.variables"
# At most so many names are listed in an error.
_LISTED = 20


class VariableEnvironment:
    """Variables by id and by name, grouped in namespaces.

    The full name of a variable is that of its namespace and its own, `"layer/dense/w"`; variables
    of the default namespace have no prefix. Several threads may use one environment.

    Attributes:
        programs: What evaluation has compiled for this environment; of no use otherwise.

    >>> env = gt.VariableEnvironment()
    >>> env.name("w").set(np.zeros((2, 3)))
    0
    >>> env.namespace("layer/dense").name("b").set(np.ones(3, np.float32))
    1
    >>> env
    VariableEnvironment(
        w: float64[2, 3]
        layer/dense/b: float32[3]
    )
    >>> env.array(env.id_of("layer/dense/b"))
    array([1., 1., 1.], dtype=float32)
    """

    def __init__(self) -> None:
        # By id. Entries are only added, so an id stays valid.
        self._names: list[str] = []
        self._arrays: list[Any] = []
        self._ids: dict[str, VariableId] = {}
        # The number that the next slot of a namespace gets, unless that is taken.
        self._next_slots: dict[str, int] = {}
        self.programs: Recent[Any] = Recent()

    # ---- making variables ------------------------------------------------------------------

    def name(self, name: str) -> Setter:
        """Start a named variable of the default namespace; `set(array)` makes it.

        Args:
            name: Its name, or a path such as `"layer/w"` for one of another namespace.

        Returns:
            An object whose `set(array)` makes the variable and returns its id.

        Raises:
            ArgumentError: The name is not one, or is taken.

        >>> gt.VariableEnvironment().name("w").set([1.0, 2.0])
        0
        """
        return self.default_namespace().name(name)

    def slot(self) -> Setter:
        """Start an unnamed variable of the default namespace; `set(array)` makes it.

        Returns:
            An object whose `set(array)` makes the variable and returns its id.

        >>> env = gt.VariableEnvironment()
        >>> env.slot().set(1.5), env.default_namespace().current_var_names()
        (0, ['#0'])
        """
        return self.default_namespace().slot()

    def set(self, array: Any) -> VariableId:
        """Make an unnamed variable of the default namespace.

        Args:
            array: Its first value, which is copied.

        Returns:
            Its id.

        Raises:
            DTypeError: The value is not an array of numbers.

        >>> env = gt.VariableEnvironment()
        >>> env.array(env.set([1, 2]))
        array([1, 2])
        """
        return self.slot().set(array)

    # ---- namespaces ------------------------------------------------------------------------

    def namespace(self, path: str) -> Namespace:
        """Return the namespace of a path, which need not have variables yet.

        Args:
            path: Names with `/` between them; `""` is the default namespace.

        Raises:
            ArgumentError: The path has an empty part or unprintable characters.

        >>> gt.VariableEnvironment().namespace("encoder/layer0")
        Namespace('encoder/layer0')
        """
        return Namespace(self, _checked_path(path, "namespace") if path != "" else "")

    def default_namespace(self) -> Namespace:
        """Return the namespace of variables whose names have no prefix.

        >>> gt.VariableEnvironment().default_namespace()
        Namespace('')
        """
        return Namespace(self, "")

    def namespace_names(self) -> list[str]:
        """The paths of the namespaces that have variables, in the order of their first ones.

        >>> env = gt.VariableEnvironment()
        >>> env.name("w").set(1.0), env.name("adam/step").set(0)
        (0, 1)
        >>> env.namespace_names()
        ['', 'adam']
        """
        return list(dict.fromkeys(_namespace_of(name) for name in self._names.copy()))

    # ---- values ----------------------------------------------------------------------------

    def array(self, variable: VariableId) -> Any:
        """Return the current value of a variable, a read-only array that later steps leave alone.

        Args:
            variable: Its id.

        Raises:
            VariableError: There is no variable of this id.

        >>> env = gt.VariableEnvironment()
        >>> env.array(env.set(np.eye(2)))
        array([[1., 0.],
               [0., 1.]])
        """
        return self._arrays[self._checked_id(variable, "array")].view()

    def id_of(self, name: str) -> VariableId:
        """Return the id of the variable with a full name.

        Args:
            name: The path of its namespace and its own name: `"layer/w"`.

        Raises:
            VariableError: There is none; the error lists the names there are.

        >>> gt.VariableEnvironment().id_of("w")
        Traceback (most recent call last):
            ...
        gradtape.errors.VariableError: id_of: got 'w', expected the name of a variable; there are none
        """  # noqa: E501 - it is one line of output
        found = self._ids.get(name) if isinstance(name, str) else None
        if found is None:
            raise VariableError(
                f"id_of: got {name!r}, expected the name of a variable; {_listing(self._names)}"
            )
        return found

    def name_of(self, variable: VariableId) -> str:
        """Return the full name of a variable; that of an unnamed one ends in `#` and a number.

        Args:
            variable: Its id.

        Raises:
            VariableError: There is no variable of this id.

        >>> env = gt.VariableEnvironment()
        >>> env.name_of(env.namespace("adam").slot().set(0))
        'adam/#0'
        """
        return self._names[self._checked_id(variable, "name_of")]

    def assign(self, variable: VariableId, array: Any) -> None:
        """Give a variable a new value.

        Args:
            variable: Its id.
            array: The value, of the same shape and kind of dtype; it is copied, and cast to the
                dtype of the variable.

        Raises:
            VariableError: There is no variable of this id.
            ShapeError: The value has another shape.
            DTypeError: The value is of another kind, such as floats for integers.

        >>> env = gt.VariableEnvironment()
        >>> w = env.name("w").set(np.zeros(2, np.float32))
        >>> env.assign(w, np.array([1.0, 2.0]))
        >>> env.array(w)
        array([1., 2.], dtype=float32)
        """
        self.assign_all({variable: array})

    def assign_all(self, values: Mapping[VariableId, Any], *, copy: bool = True) -> None:
        """Give several variables new values at once: all of them, or none if one does not fit.

        Args:
            values: The new values by id; see `assign`.
            copy: Whether to copy them. If not, arrays are handed over: they become read-only, and
                nobody may write to them by another way.

        Raises:
            VariableError: There is no variable of an id.
            ShapeError: A value has another shape than its variable.
            DTypeError: A value is of another kind than its variable.

        >>> env = gt.VariableEnvironment()
        >>> a, b = env.set(1.0), env.set(2.0)
        >>> env.assign_all({a: 3.0, b: np.ones(2)})
        Traceback (most recent call last):
            ...
        gradtape.errors.ShapeError: assign: got shape (2,) for variable '#1', expected ()
        >>> env.array(a)
        array(1.)
        """
        new = [
            (self._checked_id(variable, "assign"), self._fitting(variable, array, copy))
            for variable, array in values.items()
        ]
        # Held until the lock is free: nothing may be freed while it is taken.
        old: list[Any] = []
        arrays = self._arrays
        with guard:
            for variable, array in new:
                old.append(arrays[variable])
                arrays[variable] = array

    def _fitting(self, variable: VariableId, array: Any, copy: bool) -> Any:
        """A value as an array of its own, checked to fit a variable and cast to its dtype."""
        before = self._arrays[variable]
        value = _copied(array, "assign") if copy or type(array) is not np.ndarray else array
        if value.shape != before.shape:
            raise ShapeError(
                f"assign: got shape {value.shape} for variable {self._names[variable]!r}, expected "
                f"{before.shape}"
            )
        if _kind(value.dtype) != _kind(before.dtype):
            raise DTypeError(
                f"assign: got {value.dtype} for variable {self._names[variable]!r}, expected "
                f"{before.dtype} or another dtype of its kind; convert it with astype"
            )
        return _frozen(value.astype(before.dtype, copy=False))

    # ---- all of them -----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, variable: object) -> bool:
        """Whether there is a variable of a full name or of an id."""
        if isinstance(variable, str):
            return variable in self._ids
        return _is_integer(variable) and 0 <= variable < len(self._names)  # type: ignore[operator]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The full names and current values of all variables, in the order of their ids."""
        return iter([(name, array.view()) for name, array in zip(*self._snapshot(), strict=True)])

    def __repr__(self) -> str:
        return _shown("VariableEnvironment", self)

    def _snapshot(self) -> tuple[list[str], list[Any]]:
        """All names and arrays of one moment."""
        with guard:
            return self._names[:], self._arrays[:]

    # ---- running and keeping ---------------------------------------------------------------

    def run(self, function: Callable[[Any], Any]) -> Any:
        """Call a function with a context in which these variables can be used.

        Args:
            function: Called with the context; `ctx.variable("w")` is a variable as a lazy tensor.

        Returns:
            What the function returns.
        """
        return load("gradtape.lazy.run").run(function, self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save all variables to a file, as `gt.save` does.

        Args:
            path: The file; an old one stays whole unless all could be written.

        Raises:
            DTypeError: A variable is of a dtype that the format safetensors lacks.
            OSError: The file cannot be written.

        >>> env = gt.VariableEnvironment()
        >>> env.name("layer/w").set(np.ones(2))
        0
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     env.save(f"{folder}/variables.safetensors")
        ...     gt.load(f"{folder}/variables.safetensors")
        {'layer/w': array([1., 1.])}
        """
        values = dict(self)
        _files().write(path, values, {_ORDER: json.dumps(list(values))})

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> VariableEnvironment:
        """Make an environment of the variables in a file, with their names, ids and namespaces.

        Args:
            path: A file that `save` wrote. Other files of the format safetensors will do, too, if
                the names in them can be names of variables; ids then follow the order of the names.

        Returns:
            A new environment.

        Raises:
            FileFormatError: The file is truncated or damaged, or of another format.
            OSError: The file cannot be read.

        >>> env = gt.VariableEnvironment()
        >>> env.name("layer/w").set(np.ones(2)), env.slot().set(3)
        (0, 1)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     env.save(f"{folder}/variables.safetensors")
        ...     gt.VariableEnvironment.from_file(f"{folder}/variables.safetensors")
        VariableEnvironment(
            layer/w: float64[2]
            #0: int64[]
        )
        """
        arrays, metadata = _files().read(path)
        env = cls()
        for name in _saved_order(path, arrays, metadata):
            env._add(name, "", _frozen(arrays[name]))
        return env

    def load(self, path: str | os.PathLike[str]) -> None:
        """Give all variables the values they have in a file.

        Args:
            path: A file that `save` wrote, with exactly the variables of this environment.

        Raises:
            FileFormatError: The file is truncated or damaged, or of another format.
            ArgumentError: Variables are missing, unexpected, or of another shape or dtype; all of
                them are listed, and nothing is changed.
            OSError: The file cannot be read.

        >>> env = gt.VariableEnvironment()
        >>> w = env.name("w").set(np.ones(2))
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     env.save(f"{folder}/variables.safetensors")
        ...     env.assign(w, np.zeros(2))
        ...     env.load(f"{folder}/variables.safetensors")
        >>> env.array(w)
        array([1., 1.])
        """
        arrays, _ = _files().read(path)
        _files().check_fit(arrays, dict(self), "load")
        self.assign_all({self.id_of(name): array for name, array in arrays.items()})

    def _checked_id(self, variable: Any, method: str) -> int:
        if not (_is_integer(variable) and 0 <= variable < len(self._arrays)):
            raise VariableError(
                f"{method}: got {variable!r}, expected the id of a variable, an integer from 0 to "
                f"{len(self._arrays) - 1}; env.id_of(name) returns it"
                if self._arrays
                else f"{method}: got {variable!r}, but there are no variables yet"
            )
        return int(variable)

    def _add(self, name: str | None, namespace: str, value: Any) -> VariableId:
        """Make a variable; the next free slot of the namespace if it has no name."""
        number = self._next_slots.get(namespace, 0)
        while True:
            full = _joined(namespace, f"{_SLOT}{number}") if name is None else name
            with guard:
                # Strings and integers only, whose comparisons call nothing of users.
                taken = full in self._ids
                variable = len(self._names)
                if not taken:
                    self._names.append(full)
                    self._arrays.append(value)
                    self._ids[full] = variable
            if not taken:
                if name is None:
                    self._next_slots[namespace] = number + 1
                return variable
            if name is not None:
                raise _taken(name)
            number += 1  # another thread was faster


class Namespace:
    """The variables of an environment whose names have the same prefix; made by `env.namespace`.

    It holds nothing itself. Variables of namespaces below it, such as `"a/b"` for `"a"`, are not
    its own.

    >>> env = gt.VariableEnvironment()
    >>> layer = env.namespace("layer")
    >>> layer.name("w").set(np.zeros(2)), layer.name("b").set(1.0)
    (0, 1)
    >>> layer.current_var_names(), "w" in layer, len(layer)
    (['w', 'b'], True, 2)
    >>> dict(layer)
    {'w': array([0., 0.]), 'b': array(1.)}
    """

    def __init__(self, environment: VariableEnvironment, path: str) -> None:
        self._environment = environment
        self.path = path

    def name(self, name: str) -> Setter:
        """Start a named variable; `set(array)` makes it.

        Args:
            name: Its name in the namespace.

        Returns:
            An object whose `set(array)` makes the variable and returns its id.

        Raises:
            ArgumentError: The name is not one, or is taken.

        >>> gt.VariableEnvironment().namespace("a").name("w").set(np.ones(2))
        0
        """
        full = _joined(self.path, _checked_path(name, "name"))
        if full in self._environment:
            raise _taken(full)
        return Setter(self._environment, full, self.path)

    def slot(self) -> Setter:
        """Start an unnamed variable; `set(array)` makes it.

        Returns:
            An object whose `set(array)` makes the variable and returns its id.

        >>> gt.VariableEnvironment().namespace("a").slot().set(np.ones(2))
        0
        """
        return Setter(self._environment, None, self.path)

    def id_of(self, name: str) -> VariableId:
        """Return the id of the variable with a name in this namespace.

        Args:
            name: Its name, without the path of the namespace.

        Raises:
            VariableError: There is none; the error lists the names there are.

        >>> env = gt.VariableEnvironment()
        >>> env.name("layer/w").set(1.0), env.namespace("layer").id_of("w")
        (0, 0)
        """
        full = _joined(self.path, name) if isinstance(name, str) else None
        if full is None or full not in self._environment:
            raise VariableError(
                f"id_of: got {name!r}, expected the name of a variable of namespace {self.path!r}; "
                f"{_listing(self.current_var_names())}"
            )
        return self._environment.id_of(full)

    def current_var_ids(self) -> list[VariableId]:
        """The ids of its variables, in the order in which they were made.

        >>> env = gt.VariableEnvironment()
        >>> env.name("w").set(1.0), env.name("adam/step").set(0), env.name("b").set(2.0)
        (0, 1, 2)
        >>> env.default_namespace().current_var_ids()
        [0, 2]
        """
        names, _ = self._environment._snapshot()
        return [number for number, name in enumerate(names) if _namespace_of(name) == self.path]

    def current_var_names(self) -> list[str]:
        """The names of its variables, without its path, in the order in which they were made.

        >>> env = gt.VariableEnvironment()
        >>> env.name("layer/w").set(1.0), env.namespace("layer").current_var_names()
        (0, ['w'])
        """
        return [name for name, _ in self]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The names and current values of its variables."""
        return iter(
            [
                (name.rpartition(_SEPARATOR)[2], array)
                for name, array in self._environment
                if _namespace_of(name) == self.path
            ]
        )

    def __len__(self) -> int:
        return len(self.current_var_ids())

    def __contains__(self, variable: object) -> bool:
        """Whether it has a variable of a name or an id."""
        if isinstance(variable, str):
            return _SEPARATOR not in variable and _joined(self.path, variable) in self._environment
        return variable in self.current_var_ids()

    def __repr__(self) -> str:
        return _shown("Namespace", self, repr(self.path))


class Setter:
    """A variable to be made: its name, and where; made by `env.name` and `env.slot`."""

    def __init__(self, environment: VariableEnvironment, name: str | None, namespace: str) -> None:
        self._environment = environment
        self._name = name
        self._namespace = namespace

    def set(self, array: Any) -> VariableId:
        """Make the variable.

        Args:
            array: Its first value, an array of numbers or what NumPy makes one of; it is copied.

        Returns:
            Its id.

        Raises:
            ArgumentError: The name has been taken meanwhile.
            DTypeError: The value is not an array of numbers.

        >>> gt.VariableEnvironment().name("w").set("text")
        Traceback (most recent call last):
            ...
        gradtape.errors.DTypeError: set: got a str, expected an array of numbers
        """
        return self._environment._add(self._name, self._namespace, _frozen(_copied(array, "set")))


# ---- values -------------------------------------------------------------------------------------


def _copied(array: Any, method: str) -> Any:
    """A copy of a value as an array in native byte order."""
    try:
        value = np.array(array)
    except (ValueError, TypeError) as error:
        if hasattr(array, "dtype"):  # a tensor that is recorded says what to do
            raise
        raise DTypeError(f"{method}: got {a_type(array)}, expected an array of numbers") from error
    if not is_numeric(value.dtype):
        got = value.dtype if hasattr(array, "dtype") else a_type(array)
        raise DTypeError(f"{method}: got {got}, expected an array of numbers")
    return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))


def _frozen(array: Any) -> Any:
    """The array itself, never to be written to again: views of it cannot be made writeable."""
    array.flags.writeable = False
    return read_only(array)


def _kind(dtype: np.dtype[Any]) -> str:
    return "f" if is_extended_float(dtype) else dtype.kind


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


# ---- files --------------------------------------------------------------------------------------


def _files() -> Any:
    """The module that reads and writes files, which not every program needs."""
    return load("gradtape.io.tensor_files")


def _saved_order(path: Any, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> list[str]:
    """The names in a file in the order of their ids, checked to be names of variables."""
    try:
        order = json.loads(metadata[_ORDER]) if _ORDER in metadata else list(arrays)
        if not (isinstance(order, list) and sorted(order) == sorted(arrays)):
            raise ArgumentError("the order of the variables is not that of the arrays")
        for name in order:
            *before, last = name.split(_SEPARATOR)
            is_slot = last.startswith(_SLOT) and last[len(_SLOT) :].isdecimal()
            _checked_path(_SEPARATOR.join([*before, "slot" if is_slot else last]), "load")
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(
            f"load: got {os.fspath(path)!r}, expected a file of variables; {error}"
        ) from None
    return order


# ---- names --------------------------------------------------------------------------------------


def _checked_path(path: str, method: str) -> str:
    """A path of names, none of them empty, unprintable, or that of a slot."""
    if not isinstance(path, str):
        raise ArgumentError(f"{method}: got {a_type(path)}, expected a name such as 'w1'")
    parts = path.split(_SEPARATOR)
    if not all(part.isprintable() and part.strip() for part in parts):
        raise ArgumentError(
            f"{method}: got {path!r}, expected printable names with '/' between them: 'layer/w1'"
        )
    if any(part.startswith(_SLOT) for part in parts):
        raise ArgumentError(
            f"{method}: got {path!r}, but names that begin with '#' are those of unnamed variables;"
            " use slot() to make one"
        )
    # A subclass of str could compare by code of users, also while a lock is held.
    return str.__str__(path)


def _joined(namespace: str, name: str) -> str:
    return f"{namespace}{_SEPARATOR}{name}" if namespace else str.__str__(name)


def _namespace_of(name: str) -> str:
    return name.rpartition(_SEPARATOR)[0]


def _taken(name: str) -> ArgumentError:
    return ArgumentError(
        f"name: got {name!r}, which is the name of a variable already; give it a new value by "
        f"env.assign(env.id_of({name!r}), array)"
    )


def _listing(names: list[str]) -> str:
    if not names:
        return "there are none"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"there are {', '.join(map(repr, names[:_LISTED]))}{more}"


def _shown(kind: str, variables: Any, first: str = "") -> str:
    lines = [f"\n    {name}: {aval_of(array)}" for name, array in variables]
    start = f"{first}," if first and lines else first
    return f"{kind}({start}{''.join(lines)}{chr(10) if lines else ''})"
