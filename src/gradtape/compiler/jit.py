"""`gt.jit`: functions of arrays compiled to native code, once for each form of their arguments."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from gradtape import containers
from gradtape.advice.tensor_attributes import COMPILED, refuse
from gradtape.autodiff.arguments import deliver, has_tensors
from gradtape.compiler.argument_specs import (
    NUMBERS,
    ArrayLeaf,
    NumberLeaf,
    Result,
    ResultLeaf,
    ScalarLeaf,
    Spec,
    StaticLeaf,
    TupleSpec,
)
from gradtape.compiler.debug import CheckedProgram, check_same
from gradtape.compiler.draws import Draws
from gradtape.compiler.explain import Explanation
from gradtape.compiler.forms import Flat, Form, RecentForms
from gradtape.compiler.growing_history import warn_of_growing_history
from gradtape.compiler.program import NativeFunction, Program
from gradtape.compiler.signature import (
    Arguments,
    Statics,
    argument_spec,
    arguments,
    leaf_aval,
    merged,
    numbers_among,
    result_spec,
    static_arguments,
)
from gradtape.compiler.unrolled import warn_of_unrolled_loop
from gradtape.core.aval import Aval, aval_of, is_numeric
from gradtape.core.call import is_differentiable
from gradtape.core.lazy import lazy
from gradtape.core.level import WITH_MODES, Node, Segment
from gradtape.core.lines import user_line
from gradtape.core.nested import unshell
from gradtape.core.portable import Portable
from gradtape.core.recent import Recent
from gradtape.core.state import STATE, WATCHING, State, current, mode_keys, run_inside, values_read
from gradtape.core.tape_modes import tapes_in_force
from gradtape.core.tensor import Tensor, note_places
from gradtape.errors import ArgumentError, DTypeError, UnknownSizeError, WriteError, a_type
from gradtape.graph.function import GraphFunction
from gradtape.graph.ir import Graph
from gradtape.graph.trace import Trace, is_traced, is_truth, operand_of, trace
from gradtape.locks import once

# The most forms of arguments a function keeps code for; the least recently used goes first.
_MOST_FORMS = 256


class Specialization:
    """A function compiled for one form of its arguments.

    Attributes:
        traced: The graph as it was traced, with the containers of its results.
        form: Its native entry points.
    """

    def __init__(
        self,
        traced: Trace,
        specs: Sequence[Spec | None],
        otherwise: Callable[..., Any],
        debug: bool,
        by_position: bool,
    ) -> None:
        self.traced = traced
        self.form = Form()
        # The programs that the entry points in `form` belong to.
        self._entered: Program | None = None
        self._recorded: Program | None = None
        # Results computed from Python numbers alone are Python numbers in eager code too.
        self._weak = [output.aval.weak for output in traced.graph.outputs]
        # The values of tensors and random draws differ at each call; guards have to be checked.
        fixed = not traced.guards and all(capture.is_array for capture in traced.captures)
        every = [*specs, *(argument_spec(capture.value) for capture in traced.captures)]
        self._specs: Any = every if fixed and None not in every else None
        self._otherwise = otherwise
        self._by_position = by_position
        # How often it was called other than by a native entry point.
        self.calls = 0
        # It does not refer back to this object, so there is no reference cycle.
        self.function = GraphFunction(traced.graph, CheckedProgram if debug else Program)

    @lazy
    def program(self) -> Program:
        """The program that runs it on arrays."""
        program: Program = self.function.runner  # type: ignore[assignment]
        self._enter(program.in_force)
        return program

    def _enter(self, program: Program) -> None:
        """Let calls go directly to the native code of a program, if possible."""
        self._entered = program
        self.form.entry = self.form.call = self.form.untracked = None
        result = result_spec(self.traced.structure, len(self._weak))
        self.form.entry = self._entry(self.function, result)
        if self._by_position:
            self.form.call = self._entry(self.function, result, self._otherwise)

    def _entry(
        self,
        function: GraphFunction,
        result: Spec | None,
        otherwise: Callable[..., Any] | None = None,
        *,
        numbers: bool = True,
    ) -> Callable[..., Any] | None:
        """An entry point for a graph like the traced one; None if there cannot be one."""
        runs: Any = function.runner
        native: NativeFunction | None = runs.in_force.native
        if native is None or self._specs is None or result is None:
            return None
        outputs = [
            Result(o.dtype, o.shape, numbers and o.aval.weak) for o in function.graph.outputs
        ]
        if any(made.number and made.dtype not in NUMBERS for made in outputs):
            return None
        bound = [capture.value for capture in self.traced.captures]
        return native.code.entry(
            self._specs, result, outputs, otherwise=otherwise, unless=WATCHING, bound=bound
        )

    def _flat(self, function: GraphFunction, *, numbers: bool) -> Flat | None:
        """A graph like the traced one, as a flat function of tensors; None with containers."""
        plain = (ArrayLeaf, NumberLeaf, ScalarLeaf, StaticLeaf)
        if self._specs is None or not all(isinstance(spec, plain) for spec in self._specs):
            return None
        outputs, captures = function.graph.outputs, self.traced.captures
        result = TupleSpec(tuple(map(ResultLeaf, range(len(outputs)))))
        entry = self._entry(function, result, numbers=numbers)
        if entry is None:
            return None
        given = self._specs[: len(self._specs) - len(captures)]
        reached = zip(self.function.graph.outputs, self.function.reached, strict=True)
        return Flat(
            entry,
            function.op(),
            tuple([Aval(output.shape, output.dtype) for output in outputs]),
            tuple([bits if is_differentiable(output) else 0 for output, bits in reached]),
            tuple(self._weak),
            tuple([n for n, spec in enumerate(given) if not isinstance(spec, StaticLeaf)]),
            tuple([capture.value for capture in captures]),
            self.traced.structure,
        )

    @property
    def outdated(self) -> bool:
        """Whether a captured value is of a transform that has returned, or has changed its form."""
        changed = any(guard.changed() for guard in self.traced.guards)
        return changed or any(capture.outdated(aval) for capture, aval in self.traced.hidden)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """The results for leaves of any kind."""
        for guard in self.traced.guards:
            values_read(guard.array)  # a function that is being traced depends on it too
        tensors = has_tensors(leaves)
        hidden = [capture.current() for capture in self.traced.captures]
        state = current()
        values = [_content(leaf, state) for leaf in (*leaves, *hidden)]
        if any(isinstance(value, Tensor) for value in values):
            outputs = list(self.function(*values))
            # It may be traced, or called under a transform: then nothing is compiled.
            keeping = self.function.keeping
            if "runner" in vars(keeping):
                runs: Any = keeping.runner
                if self.form.recording is None or runs.in_force is not self._recorded:
                    self._recorded = runs.in_force
                    self.form.recording = self._flat(keeping, numbers=False)
        else:
            made = self.function(*values) if state.observed else self.program(*values)
            outputs = [
                out.item() if weak else deliver(out, tensors=tensors)
                for out, weak in zip(made, self._weak, strict=True)
            ]
            if self.program.in_force is not self._entered:
                self._enter(self.program.in_force)
            if tensors and self.form.untracked is None:
                self.form.untracked = self._flat(self.function, numbers=True)
        return containers.unflatten(self.traced.structure, outputs)


def _content(leaf: Any, state: State) -> Any:
    """What to compute with for an argument: an array, or a tensor if a call of it is recorded.

    Where `no_grad` keeps it from being recorded, the program without results kept for gradients
    does, and is the one that runs when the results of the call are the arguments of the next.
    """
    value = unshell(leaf)
    while isinstance(value, Tensor) and isinstance(value.record, Node):
        level = value.record.segment
        if not isinstance(level, Segment) or not state.stops(level.number):
            break
        value = unshell(value.value)
    return value


class Compiled(Portable):
    """A function that is compiled when it is first called with arguments of a new form.

    Made by `gt.jit`. It is called like the function it was made from. Python finds `__call__` in
    the object itself and calls it without any code in between: it is the native entry point for
    arguments of the last form, and leads to `_call` for any others.
    """

    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], statics: Statics, debug: bool) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._statics = statics
        self._debug = debug
        self._forms: Recent[Specialization] = Recent()
        self._recent = RecentForms()
        # By identity: objects that are equal need not have the same attributes.
        self._methods: dict[int, tuple[weakref.ref[Any], Compiled]] = {}
        self._otherwise = _any_form(weakref.ref(self), function, statics, debug)
        # Other threads may call while it is replaced: it is all that a call depends on.
        self.__call__ = self._otherwise
        self._hinted = False

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Take the arguments apart in Python, compile if they are of a new form, and run."""
        if WITH_MODES:
            scope = tapes_in_force(
                containers.flatten((args, kwargs), view=containers.ALL_ARRAYS)[0]
            )
            if scope is not None:
                return run_inside(scope, self._call, args, kwargs)
        state = STATE.get()
        seen = state.observed or bool(state.rewriting)
        if not seen:
            out, entry = self._recent.call(args, kwargs)
            if out is not NotImplemented:
                if entry is not None:
                    self.__call__ = entry
                elif kwargs:
                    self.__call__ = self._otherwise
                return out
        try:
            given = arguments(args, kwargs, self._statics)
            form = self._specialized(given)
        except UnknownSizeError as error:
            return error.deferred(self, args, kwargs)
        if self._debug:
            check_same(form.traced, self._traced(given))
        form.calls += 1
        if form.calls <= 2:
            warn_of_growing_history(form.traced.graph.name, (args, kwargs))
        out = form(given.leaves)
        if not seen:
            if form.form and not self._debug:
                self._recent.add(tuple(kwargs), form.form)
            # The next call goes directly to a native entry point, if possible.
            self.__call__ = form.form.call or self._otherwise
        return out

    def _specialized(self, given: Arguments) -> Specialization:
        rewriting = current().rewriting
        key = (given.key, mode_keys(rewriting)) if rewriting else given.key
        form = self._forms.get(key)
        if form is not None and not form.outdated:
            return form
        # No lock is held: the function may itself wait for another thread.
        new = self._specialize(given)
        new.form.key = key
        new.form.numbers = numbers_among(given.leaves)
        # Calls that were served elsewhere count as uses here.
        for used in self._recent.in_order():
            self._forms.get(used.key)
        kept = self._forms.put(key, new, most=_MOST_FORMS, instead=form)
        self._recent.retain({each.form for each in self._forms})
        return kept

    def _traced(self, given: Arguments) -> Trace:
        def function(*leaves: Any) -> Any:
            note_places(leaves, given.leaves)
            full, keywords = merged(given, leaves)
            buffers = [
                (f"{type(member).__name__}.{name}", buffer, operand_of(buffer))
                for member in containers.members_in((full, keywords))
                for name, buffer in member.named_buffers()
            ]
            out = self._function(*full, **keywords)
            if buffers:
                _check_buffers(buffers, out)
            found = set(
                map(id, containers.flatten((tuple(full), keywords), view=containers.ALL_ARRAYS)[0])
            )
            if not found.issuperset(map(id, leaves)):
                raise WriteError(
                    "jit: the function puts something else into a container that is an argument; "
                    "the caller would not see it. Return the new values instead"
                )
            return out

        avals = [leaf_aval(leaf) for leaf in given.leaves]
        truths = [place for place, leaf in enumerate(given.leaves) if is_truth(leaf)]
        return trace(function, avals, _name(self._function), truths, current().rewriting)

    def _specialize(self, given: Arguments) -> Specialization:
        draws = Draws((self._function, *given.fixed.values(), *given.named.values()))
        traced = self._traced(given)
        draws.warn(_name(self._function))
        if not self._hinted:
            self._hinted = warn_of_unrolled_loop(traced.graph, user_line())
        for output in traced.graph.outputs:
            if not is_numeric(output.dtype):
                raise DTypeError(
                    f"jit: the function returned an array of {output.dtype}, expected numbers"
                )
        # Leaves of keyword arguments are in the order of their names.
        every = [*enumerate(given.args), *sorted(given.kwargs.items())]
        specs = [
            StaticLeaf(arg) if place in given.fixed or place in given.named else argument_spec(arg)
            for place, arg in every
        ]
        return Specialization(traced, specs, self._otherwise, self._debug, not given.kwargs)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that is compiled for these arguments, as it was traced; `print` shows it.

        It is what `jax.make_jaxpr` shows there. `gt.graph` has tools for graphs; arrays and tensors
        from outside are inputs after the arguments.

        Args:
            *args: Arguments of the function.
            **kwargs: Its keyword arguments.

        >>> gt.jit(lambda x: x * 2.0).graph(np.ones(3)).nodes[0].op.name
        'multiply'
        """
        return self._specialized(arguments(args, kwargs, self._statics)).traced.graph

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Explain what the function is compiled to for these arguments, without running it.

        Args:
            *args: Arguments of the function.
            **kwargs: Its keyword arguments.

        Returns:
            A report to be printed: the graph, what was fused and what was not, with estimates of
            the work. Its attributes have the same as data, and the LLVM IR and assembly.

        >>> report = gt.jit(lambda x: np.exp(x) + 1.0).explain(np.ones(3))
        >>> report.kernels[0].ops, report.eager
        (('exp', 'add'), [])
        """
        form = self._specialized(arguments(args, kwargs, self._statics))
        return Explanation(form.program.in_force, [aval_of(c.value) for c in form.traced.captures])

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        bind = getattr(self._function, "__get__", None)
        if instance is None or bind is None or isinstance(self._function, staticmethod):
            return self
        key, methods = id(instance), self._methods
        known = methods.get(key)
        if known is None:
            try:
                reference = weakref.ref(instance, lambda _: methods.pop(key, None))
            except TypeError:  # a named tuple is a container of arrays like any other
                return functools.partial(self, instance)
            method = Compiled(_WeakMethod(bind, reference), self._statics.of_method(), self._debug)
            known = methods.setdefault(key, (reference, method))
        return Method(known[1], instance, self)

    def made_by(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _compiled, (self._function, *self._statics, self._debug)

    def __repr__(self) -> str:
        return f"<compiled {_name(self._function)}, for {len(self._forms)} form(s) of arguments>"


refuse(Compiled, "a compiled function", COMPILED)


class Method(Portable):
    """A compiled method of one object, which it keeps alive as Python's bound methods do."""

    def __init__(self, compiled: Compiled, instance: Any, function: Compiled) -> None:
        self.__self__ = instance
        self.__wrapped__ = compiled
        self.__func__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def made_by(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _method, (self.__func__, self.__self__)

    def __repr__(self) -> str:
        return f"{self.__wrapped__!r} of {self.__self__!r}"


def _method(function: Compiled, instance: Any) -> Any:
    return function.__get__(instance, type(instance))


class _WeakMethod:
    """A method that does not keep its object alive: its caller does."""

    def __init__(self, bind: Callable[..., Any], reference: weakref.ref[Any]) -> None:
        self._bind = bind
        self._reference = reference
        self.__wrapped__ = bind.__self__  # type: ignore[attr-defined]
        self.__name__ = _name(self.__wrapped__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        instance = self._reference()
        return self._bind(instance, type(instance))(*args, **kwargs)


def _check_buffers(buffers: Sequence[tuple[str, Any, Any]], out: Any) -> None:
    """Raise if a buffer of an argument was written to, and the result does not have it."""
    # A module of gradients has the buffers, too, but an optimizer takes those of the module itself.
    returned = {operand_of(leaf) for leaf in containers.all_but_gradients(out) if is_traced(leaf)}
    lost = [name for name, buffer, was in buffers if operand_of(buffer) not in (was, *returned)]
    if lost:
        raise WriteError(
            f"jit: the function writes to {', '.join(lost)}, a buffer of its argument, and does "
            "not return it; the caller's module stays as it is. Return the module, too, or call "
            "module.eval() first"
        )


def _compiled(function: Callable[..., Any], *options: Any) -> Compiled:
    *statics, debug = options
    return Compiled(function, Statics(*statics), debug)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _any_form(
    reference: weakref.ref[Compiled],
    function: Callable[..., Any],
    statics: Statics,
    debug: bool,
) -> Callable[..., Any]:
    """A function that calls a compiled function with arguments of any form.

    It is part of the compiled function and does not keep it alive: the caller does. A caller that
    has kept only its `__call__` gets a new one, made when it is needed.
    """
    another = once(lambda: Compiled(function, statics, debug))

    def call(*args: Any, **kwargs: Any) -> Any:
        compiled = reference()
        return another()(*args, **kwargs) if compiled is None else compiled._call(args, kwargs)

    return call


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    debug: bool = False,
) -> Any:
    """Compile a function of arrays to native code.

    The function is traced when it is first called with arguments of a new form (containers,
    shapes, dtypes): it runs once with abstract values, and the operations it does become one native
    function. Anything it computes without the arguments is computed only then; arrays and tensors
    it uses from outside are read at every call, and gradtape's random numbers are drawn anew, while
    those of NumPy's generators are frozen, with a warning. A name that is bound to another array
    afterwards is not looked up again.

    Python numbers are arguments like any other: different values use the same code, and they take
    the dtype of the other operands. Results share memory with nothing; those without axes are NumPy
    scalars, or Python numbers if computed from such numbers alone. Arguments are not written to.

    Args:
        function: The function to compile: plain NumPy code or gradtape's functions, including
            `gt.grad(f)` and other transforms. Without it, a decorator is returned.
        static_argnums: Positions of arguments that are passed as they are and compiled for: flags,
            sizes, names. They must be hashable. The `self` of a method counts; it is always static.
        static_argnames: Names of arguments, likewise. However these are passed, by position or by
            name, they are static.
        debug: Whether to check every pass of the compiler, every kernel against eager code, and at
            each call that tracing the function again gives the same.

    Returns:
        A function of the same arguments: arrays in, arrays out; tensors in, tensors out. It can be
        differentiated and batched again.

    Raises:
        ArgumentError: It is not a function, or does not have those static arguments.
        ConversionError: When it is called: it asks for a value of an argument, as `if x > 0` does.
        DTypeError: When it is called: an argument or a result is not made of numbers.
        WriteError: When it is called: it writes to an argument, a container or something from
            outside, and the write would be lost.

    >>> @gt.jit
    ... def energy(x):
    ...     return np.sum(np.tanh(x) ** 2)
    >>> float(energy(np.array([0.0, 1.0])).round(6))
    0.580026
    >>> gt.jit(gt.grad(energy))(np.array([0.0, 1.0])).round(6)
    array([0.    , 0.6397])
    """
    if function is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, debug=debug
        )
    if not callable(function):
        raise ArgumentError(f"jit: got {a_type(function)}, expected a function")
    return Compiled(function, static_arguments(function, static_argnums, static_argnames), debug)
