"""Optimizers: one class is a pure function of trees, and steps of leaf tensors with their state.

A step gives a parameter a new value. It writes into the array of the parameter only if nothing else
can see that: no record, no view, no variable.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from gradtape import containers
from gradtape.core.finite import is_finite
from gradtape.core.ownership import is_alone
from gradtape.core.state import clear_default_context_tape
from gradtape.core.tensor import Tensor, innermost
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    NonFiniteError,
    ShapeError,
    UnsupportedError,
    a_type,
)
from gradtape.lazy.variables import VariableEnvironment
from gradtape.optim.closures import Closure, check_finite, is_closure, undone_on_error
from gradtape.optim.environment import EnvironmentOptimizer
from gradtape.optim.numbers import Numbers, at_step, plain
from gradtape.optim.parameters import (
    Memories,
    Memory,
    check_state,
    groups_in,
    is_leaf,
    loaded_number,
    loaded_slot,
    parameters_in,
)
from gradtape.optim.pure import PureOptimizer
from gradtape.optim.repeats import Asked, Repeat, gradient_of, repeat
from gradtape.optim.stepping import Item, Slots, computing_dtype, native

_LARGE, _LINE = 1 << 17, 64
# A parameter that is to make a step: its group's numbers, its tensor, its memory, its gradient.
Job = tuple[Numbers, Tensor, Memory, Any]


class Optimizer(PureOptimizer):
    """Base class of optimizers; a subclass says in `update` how one array changes.

    There are four ways to use one:

    - `state = opt.init(params)` and `params, state = opt.apply(params, grads, state)` are pure
      functions of trees of arrays, modules among them, that can be compiled with the rest of a
      training step, batched and differentiated. They use the numbers in `defaults`.
    - Made without parameters, `step(params)` and `zero_grad(params)` say each time which tensors
      are meant, and `zero_grad(params)` also clears the tape of the default context.
    - Made with its parameters, `step()` and `zero_grad()` apply to those.
    - Made with its parameters, `step(grads)` takes their gradients, such as those from a tape.

    Numbers such as the learning rate may be tensors without axes in the pure form: arguments of
    `gt.jit`, `gt.vmap` or `gt.grad`. Whether those are in range is not checked. float16 and
    bfloat16 are computed in float32, and rounded once; complex numbers are pairs of real ones.

    Besides `update`, a subclass may name `slots`, arrays that are remembered for each parameter,
    and have a `clock` to know the number of the step.

    Args:
        params: Leaf tensors, in a sequence, a dict, a module, or nested ones; or groups of them,
            `[{"params": [...], "lr": 0.1}, ...]`, with numbers of their own.
        lr: The learning rate.
        **numbers: Further numbers of the rule.

    Attributes:
        defaults: The numbers of the pure functions, of tensors that are given to `step`, and of
            groups that have none of their own.
        param_groups: The groups, in which `"params"` are the tensors and numbers can be set.

    Raises:
        ArgumentError: A number is out of its range, a tensor is not a leaf that requires a
            gradient, or it is in two groups.
        DTypeError: A parameter is not a tensor.

    >>> class SignDescent(gt.optim.Optimizer):
    ...     @staticmethod
    ...     def update(value, gradient, slots, factors):
    ...         (lr,) = factors
    ...         return value - lr * np.sign(gradient), slots
    >>> opt = SignDescent(lr=0.5)
    >>> params, grads = {"w": np.ones(2)}, {"w": np.array([3.0, -4.0])}
    >>> opt.apply(params, grads, opt.init(params))
    ({'w': array([0.5, 1.5])}, {})
    >>> w = gt.tensor([1.0], requires_grad=True)
    >>> gt.sum(w * w).backward()
    >>> SignDescent([w], lr=0.25).step()
    >>> w
    tensor([0.75], requires_grad=True)
    """

    # Why there is no form of it for variables in an environment.
    not_of_variables: ClassVar[str] = ""
    # What `default` gives to an optimizer that has no learning rate of its own.
    usual: ClassVar[dict[str, Any]] = {}

    def __init__(self, params: Any = None, *, lr: Any = None, **numbers: Any) -> None:
        groups = None if params is None else groups_in(params, self.name)
        if lr is None and groups:
            lr = groups[0].get("lr")
        super().__init__(lr=lr, **numbers)
        self.param_groups: list[Numbers] = []
        self._memories = Memories()
        self._repeats: list[Repeat] = []
        self._asked = Asked(None, [])
        for group in groups or []:
            self.add_param_group(group)

    @property
    def lr(self) -> Any:
        """The learning rate in `defaults`; setting it sets that of all groups."""
        return self.defaults["lr"]

    @lr.setter
    def lr(self, value: Any) -> None:
        for numbers in (self.defaults, *self.param_groups):
            numbers["lr"] = value

    @property
    def params(self) -> list[Tensor]:
        """The parameters of all groups; empty if it was made without."""
        return [param for group in self.param_groups for param in group["params"]]

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add parameters with numbers of their own.

        Args:
            group: `{"params": [...], "lr": 0.01}`; other numbers are those in `defaults`.

        Raises:
            ArgumentError: A number is unknown or out of its range, a parameter is not a leaf that
                requires a gradient, or it is in another group.
            DTypeError: A parameter is not a tensor.

        >>> w, b = gt.ones(2, requires_grad=True), gt.zeros((), requires_grad=True)
        >>> opt = gt.optim.SGD([w], lr=0.1)
        >>> opt.add_param_group({"params": [b], "lr": 0.01})
        >>> [group["lr"] for group in opt.param_groups]
        [0.1, 0.01]
        """
        given = dict(group) if isinstance(group, Mapping) else {}
        if "params" not in given:
            raise ArgumentError(
                f"{self.name}: got {a_type(group)} with {sorted(given)} as a group, expected a "
                "dict with 'params'"
            )
        params = given.pop("params")
        params = parameters_in([params] if isinstance(params, Tensor) else params, self.name)
        if not params:
            raise ArgumentError(f"{self.name}: got no parameters, expected at least one")
        if unknown := sorted(set(given).difference(self.defaults)):
            raise ArgumentError(
                f"{self.name}: got a group with {unknown[0]!r}, expected numbers among "
                f"{', '.join(self.defaults)}"
            )
        known = {id(param) for param in self.params}
        if twice := [param for param in params if id(param) in known]:
            raise ArgumentError(
                f"{self.name}: got a parameter of shape {twice[0].shape} in two groups, expected "
                "each in one"
            )
        numbers = {name: plain(value) for name, value in {**self.defaults, **given}.items()}
        self.param_groups.append(Numbers(self._checked_numbers, numbers, params=tuple(params)))
        self._repeats = []

    # ---- steps of tensors ------------------------------------------------------------------

    def step(self, given: Any = None) -> Any:
        """Give every parameter that has a gradient its next value: all of them, or none.

        Frozen parameters, and those whose gradient is None, are left alone.

        Args:
            given: Of an optimizer made without parameters, the parameters. Of one that has its
                own, their gradients, in their order, None for one that is to be left alone; those
                in `.grad` if not given. Some of its own parameters may be given, too. Or a closure,
                which clears the gradients, computes the loss, calls `backward()` and returns it.

        Returns:
            The loss that a closure returned.

        Raises:
            ArgumentError: No parameters were given, neither now nor before; or there is not one
                gradient for each.
            DTypeError: A gradient is complex and its parameter is not.
            NonFiniteError: A gradient is not finite.
            ShapeError: A gradient has not the shape of its parameter, or a parameter has changed
                its shape since its last step.

        >>> w = gt.tensor([1.0, 2.0], requires_grad=True)
        >>> opt = gt.optim.SGD([w], lr=0.5)
        >>> opt.step([np.array([1.0, 1.0])])
        >>> w
        tensor([0.5, 1.5], requires_grad=True)
        """
        if self._repeats and self._asked.again(given) and repeat(self, self._repeats):
            return None
        if is_closure(given):
            return self._step_by(Closure(self.name, given, self._meant(None, "step")))
        self._repeats = []
        pairs, gradients = self._found(given)
        jobs = self._jobs(gradients)
        self._check_finite(jobs)
        # Parameters with the same numbers that have made as many steps go together.
        batches: dict[Any, list[Job]] = {}
        for job in jobs:
            key = (id(job[0]), *self._settled(job).clock.items())
            batches.setdefault(key, []).append(job)
        # All of it is computed before the first parameter changes.
        writes = [self._batch(batch) for batch in batches.values()]
        done = [write() for write in writes]
        if pairs and None not in done:
            memories = [(param, self._memories.of(param, self.name)) for _, param in pairs]
            idle = [memory.param for param, memory in memories if gradient_of(param) is None]
            asked = None if given is None else {id(param) for _, param in pairs}
            self._asked, self._repeats = Asked(asked, idle), done
        return None

    def _step_by(self, closure: Closure) -> Any:
        """Make a step with the gradients that a closure computes; returns its loss."""
        with undone_on_error(closure.params):
            check_finite(self.name, closure(), [])
            self.step()
        return closure.loss

    def _batch(self, jobs: list[Job]) -> Callable[[], Any]:
        """Compute the step of parameters with the same numbers.

        Returns:
            What writes it down, and returns how to repeat it, or None.
        """
        read, before = jobs[0][0].plain(), jobs[0][2].clock
        names = self.slot_names(read)
        numbers = at_step(read, self.name, before.get("step"))
        clock = self.tick(numbers, before)
        rule = self._rule(numbers, clock)
        kernels = native(sum([job[3].size for job in jobs]))
        # Only the tensor may refer to an array that is written into.
        own = [] if kernels is None else [_is_own(job[1]) for job in jobs]
        items = [
            Item(param.value, gradient, tuple(memory.slots.values()))
            for _, param, memory, gradient in jobs
        ]
        calls: Any = None
        if kernels is not None:
            made = [
                (item.value if alone else kernels.empty_like(item.value), item.slots)
                for item, alone in zip(items, own, strict=True)
            ]
            calls = rule.prepared(kernels, items, made)
        if calls is None:
            made = [_owned(rule.one(item), item) for item in items]

        def write() -> Any:
            for call in calls or ():
                call.run()
            for (_, param, memory, _), (value, after) in zip(jobs, made, strict=True):
                param.value = value
                memory.clock = clock
                memory.slots = dict(zip(names, after, strict=True))
            if calls is None or len(calls) != 1 or not calls[0].let_go():
                return None
            params = [job[2].param for job in jobs]
            group, is_scheduled = jobs[0][0], numbers is not read
            return Repeat(group, group.version, read, is_scheduled, params, clock, calls[0])

        return write

    def _check_finite(self, jobs: list[Job]) -> None:
        """Raise if a gradient is not finite."""
        gradients = [gradient for *_, gradient in jobs]
        kernels = native(sum([gradient.size for gradient in gradients]))
        if kernels is not None and kernels.are_finite(gradients):
            return
        for position, gradient in enumerate(gradients):
            if not is_finite(gradient):
                raise NonFiniteError(
                    f"{self.name}: got a gradient that is not finite, of the parameter of shape "
                    f"{gradient.shape} at position {position}; nothing was changed. Clip "
                    "gradients, lower the learning rate, or look with gt.detect_anomaly()"
                )

    def _settled(self, job: Job) -> Memory:
        """The memory of a parameter, with what the numbers of its group ask for."""
        numbers, param, memory, _ = job
        read = numbers.read()
        names = self.slot_names(read)
        if tuple(memory.slots) != names:
            kernels = native(param.size)
            given = (self.started, param.value, read)
            started = self.started(*given[1:]) if kernels is None else kernels.pooled()(*given)
            fresh = dict(zip(names, started, strict=True))
            memory.slots = {name: memory.slots.get(name, fresh[name]) for name in names}
        dtype = computing_dtype(param.value.dtype)
        # The dtype is another one after `net.to(dtype)`. Native steps write into these arrays in
        # C's order, while what NumPy makes of a parameter in Fortran's order is in that order, too.
        if any(slot.dtype != dtype or not slot.flags.carray for slot in memory.slots.values()):
            memory.slots = {
                name: slot.astype(dtype, order="C") for name, slot in memory.slots.items()
            }
        clock = self.first_clock(read)
        if memory.clock.keys() != clock.keys():
            memory.clock = clock | {k: v for k, v in memory.clock.items() if k in clock}
        return memory

    def _jobs(self, gradients: list[tuple[Numbers, Tensor, Any]] | None = None) -> list[Job]:
        """The parameters to step, all checked before the first one changes."""
        jobs: list[Job] = []
        for numbers, param, gradient in self._found(None)[1] if gradients is None else gradients:
            if type(gradient) is not np.ndarray:
                gradient = np.asarray(innermost(gradient))
            shape, dtype = param.value.shape, param.value.dtype
            if gradient.shape != shape:
                raise ShapeError(
                    f"{self.name}: got a gradient of shape {gradient.shape} for a parameter of "
                    f"shape {shape}; zero_grad() after changing the shape of a parameter"
                )
            if gradient.dtype.kind in "OSUMm" or (gradient.dtype.kind == "c" != dtype.kind):
                expected = "numbers" if gradient.dtype.kind != "c" else "a real one"
                raise DTypeError(
                    f"{self.name}: got a {gradient.dtype} gradient of a {dtype} parameter, "
                    f"expected {expected}"
                )
            jobs.append((numbers, param, self._memories.of(param, self.name), gradient))
        return jobs

    def _found(
        self, given: Any
    ) -> tuple[list[tuple[Numbers, Tensor]], list[tuple[Numbers, Tensor, Any]]]:
        """The parameters that a step is asked for, unless it is given gradients; and those to step.

        Each is with its numbers, and those to step with their gradients.
        """
        groups = self.param_groups
        params = [(group, param) for group in groups for param in group["params"]]
        if given is None:
            self._meant(None, "step")
            pairs = params
        elif groups and not _holds_leaves(given):
            grads = given if isinstance(given, list | tuple) else containers.flatten(given)[0]
            if len(grads) != len(params):
                raise ArgumentError(
                    f"{self.name}.step: got {len(grads)} gradients for {len(params)} parameters, "
                    "expected one for each"
                )
            return [], [
                (group, param, gradient)
                for (group, param), gradient in zip(params, grads, strict=True)
                if gradient is not None and is_leaf(param)
            ]
        else:
            of = {id(param): group for group, param in params}
            params_given = self._meant(given, "step")
            pairs = [(of.get(id(param), self.defaults), param) for param in params_given]
        found = [(group, param, gradient_of(param)) for group, param in pairs]
        return pairs, [(group, param, ct.value) for group, param, ct in found if ct is not None]

    def zero_grad(self, params: Any = None, *, set_to_none: bool = False) -> None:
        """Set the gradients of the parameters to zeros, or to None.

        Args:
            params: The parameters. If they are given, the tape of the default context is cleared
                as well; otherwise those the optimizer was made with are meant, and tapes are left
                alone.
            set_to_none: Whether to drop gradients, which frees their memory, instead.

        Raises:
            ArgumentError: No parameters were given, neither now nor before.
        """
        for param in self._meant(params, "zero_grad"):
            if not set_to_none:
                param.zero_grad()
            elif param.grad is not None:
                param.grad = None
        if params is not None:
            clear_default_context_tape()

    def _meant(self, params: Any, method: str) -> list[Tensor]:
        if params is not None:
            return parameters_in(params, self.name)
        if not self.param_groups:
            raise ArgumentError(
                f"{self.name}.{method}: got no parameters; give them here, or make the "
                f"optimizer with them: {self.name}(params, lr=...)"
            )
        return self.params

    # ---- variables in environments ---------------------------------------------------------

    @classmethod
    def on_environment(
        cls, name: str, var_ids: Iterable[int], env: VariableEnvironment, **numbers: Any
    ) -> EnvironmentOptimizer:
        """Make an optimizer of variables of an environment, which keeps its state there.

        Args:
            name: The namespace for its state, such as `"adam"`. State that is there already, for
                the same variables, is continued.
            var_ids: The ids of the variables.
            env: The environment.
            **numbers: The numbers of the rule, such as `lr=0.01`.

        Returns:
            An optimizer with `update(variables, grads, ctx, feeder)`.

        Raises:
            ArgumentError: A number is out of its range, or the namespace has other variables.
            DTypeError: A variable is not of floating-point or complex numbers.
            UnsupportedError: The optimizer evaluates the loss itself, or wraps another one.
            VariableError: There is no variable of an id.

        >>> env = gt.VariableEnvironment()
        >>> w = env.name("w").set([1.0, 2.0])
        >>> sgd = gt.optim.SGD.on_environment("sgd", [w], env, lr=0.5, momentum=0.9)
        >>> sgd.update([w], [np.ones(2)])
        >>> env.array(w), env.namespace("sgd").current_var_names()
        (array([0.5, 1.5]), ['momentum.w'])
        """
        if cls.not_of_variables:
            raise UnsupportedError(
                f"{cls.__name__}: it has no form for variables: {cls.not_of_variables}"
            )
        try:
            optimizer = cls(**numbers)
        except TypeError as error:
            if isinstance(error, GradtapeError):
                raise
            raise ArgumentError(
                f"{cls.__name__}: got the numbers {sorted(numbers)}, expected those of its rule; "
                f"{error}"
            ) from None
        return EnvironmentOptimizer(name, var_ids, env, optimizer)

    @classmethod
    def default(
        cls, name: str, var_ids: Iterable[int], env: VariableEnvironment
    ) -> EnvironmentOptimizer:
        """Make an optimizer of variables of an environment, with numbers that mostly do.

        The learning rate is 0.01 for SGD and for Adam; `on_environment` takes others.

        Args:
            name: The namespace for its state, such as `"adam"`.
            var_ids: The ids of the variables.
            env: The environment.

        Returns:
            An optimizer with `update(variables, grads, ctx, feeder)`; see `on_environment`.

        Raises:
            ArgumentError: The namespace has other variables, or one is missing.
            DTypeError: A variable is not of floating-point or complex numbers.
            VariableError: There is no variable of an id.

        >>> env = gt.VariableEnvironment()
        >>> w = env.name("w").set([1.0, 2.0])
        >>> gt.optim.Adam.default("adam", env.default_namespace().current_var_ids(), env)
        <Adam 'adam', lr=0.01, 1 variables>
        """
        return cls.on_environment(name, var_ids, env, **cls.usual)

    # ---- its state -------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Copies of all state as arrays, which `gt.save` can write.

        Returns:
            New arrays: what is remembered by position of the parameter, as in `"0.momentum"`, and
            the numbers by position of their group, as in `"groups.0.lr"`.

        Raises:
            ArgumentError: The optimizer was made without parameters, so that they have no order.

        >>> w = gt.ones(2, requires_grad=True)
        >>> opt = gt.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> opt.step([np.ones(2)])
        >>> opt.state_dict()["0.momentum"], float(opt.state_dict()["groups.0.lr"])
        (array([1., 1.]), 0.1)
        """
        state: dict[str, Any] = {}
        for position, param in enumerate(self._meant(None, "state_dict")):
            memory = self._memories.get(id(param))
            if memory is not None:
                for name, value in (memory.slots | memory.clock).items():
                    state[f"{position}.{name}"] = np.array(value)
        for position, group in enumerate(self.param_groups):
            for name, value in group.saved().items():
                state[f"groups.{position}.{name}"] = np.array(value)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state that `state_dict` returned: all of it, or nothing if it does not fit.

        Args:
            state: Arrays by name, as it returned them, for parameters in the same order.

        Raises:
            ArgumentError: There is no parameter or group at a position, a part of its state is
                missing, or a number is out of its range.
            DTypeError: An array is not of numbers, or complex for a real parameter.
            ShapeError: An array does not have the shape of its parameter.
        """
        params = self._meant(None, "load_state_dict")
        check_state(self.name, state)
        places: dict[tuple[str, int], dict[str, Any]] = {}
        for entry, value in state.items():
            kind, _, rest = entry.rpartition("groups.")
            position, _, name = rest.partition(".")
            group = entry.startswith("groups.") and not kind
            known = len(self.param_groups) if group else len(params)
            if not (position.isdecimal() and name and int(position) < known):
                raise ArgumentError(
                    f"{self.name}: got state {entry!r}, expected names such as '0.momentum' with "
                    f"the position of one of {len(params)} parameters, or 'groups.0.lr' with that "
                    f"of one of {len(self.param_groups)} groups"
                )
            value = np.array(value.detach() if isinstance(value, Tensor) else value)
            places.setdefault(("group" if group else "", int(position)), {})[name] = value
        groups = list(self.param_groups)
        if any(kind for kind, _ in places):  # the numbers may be left out, but those of all groups
            groups = [
                self._loaded_group(places.get(("group", place), {}), place)
                for place in range(len(groups))
            ]
        owners = [group for group in groups for _ in group["params"]]
        loaded = [
            self._loaded_memory(places.get(("", place), {}), place, param, owners[place])
            for place, param in enumerate(params)
        ]
        self.param_groups[:] = groups
        self._repeats = []
        for param, (slots, clock) in zip(params, loaded, strict=True):
            memory = self._memories.of(param, self.name)
            memory.slots, memory.clock = slots, clock

    def _loaded_group(self, given: dict[str, Any], place: int) -> Numbers:
        group = self.param_groups[place]
        saved = group.saved()
        if given.keys() != saved.keys():
            raise ArgumentError(
                f"{self.name}: got the numbers {sorted(given)} of group {place}, expected "
                f"{sorted(saved)}; is it the state of another optimizer, or of other groups?"
            )
        numbers = group.plain() | {name: _python(value) for name, value in given.items()}
        return Numbers(self._checked_numbers, numbers, params=group["params"])

    def _loaded_memory(
        self, given: dict[str, Any], place: int, param: Tensor, group: Numbers
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        numbers = group.plain()
        names, clock = self.slot_names(numbers), self.first_clock(numbers)
        if not given:
            return {}, {}
        if wrong := sorted({*names, *clock} ^ given.keys()):
            what = "no state" if wrong[0] in (*names, *clock) else "a state"
            raise ArgumentError(
                f"{self.name}: got {what} '{place}.{wrong[0]}', expected "
                f"{sorted({*names, *clock})} of each parameter; is it another optimizer's?"
            )
        slots = {}
        fresh = self.started(param.value, numbers)
        for name, own in zip(names, fresh, strict=True):
            slots[name] = loaded_slot(self.name, f"{place}.{name}", given[name], own)
        return slots, {
            name: loaded_number(self.name, f"{place}.{name}", given[name], first)
            for name, first in clock.items()
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = memo[id(self)] = object.__new__(type(self))
        fresh = {"_repeats": [], "_asked": Asked(None, [])}
        for name, value in vars(self).items():
            if isinstance(value, Memories):
                vars(new)[name] = value.copied(memo, self.name)
            else:
                vars(new)[name] = fresh[name] if name in fresh else copy.deepcopy(value, memo)
        return new

    def __repr__(self) -> str:
        count = len(self.params) or "no"
        groups = f" in {len(self.param_groups)} groups" if len(self.param_groups) > 1 else ""
        numbers = ", ".join([f"{name}={value}" for name, value in self.defaults.items()])
        return f"<{self.name}, {numbers}, {count} parameters of its own{groups}>"


def _holds_leaves(given: Any) -> bool:
    """Whether these are parameters: gradients are no leaves that require gradients."""
    leaves = containers.flatten(given)[0]
    return bool(leaves) and all(map(is_leaf, leaves))


def _python(value: Any) -> Any:
    """An array of a saved state as the number, or the numbers, it was."""
    return tuple(value.tolist()) if value.shape else value.item()


def _is_own(param: Tensor) -> bool:
    """Whether nothing but a tensor sees its array, which can be written into."""
    if type(param.value) is not np.ndarray or not is_alone(param):
        return False
    value = param.value
    # A large one that begins within a cache line is moved: vectors would cross lines at every step.
    is_placed = value.nbytes < _LARGE or value.ctypes.data % _LINE == 0
    return is_placed and value.base is None and value.flags.carray


def _owned(made: tuple[Any, Slots], item: Item) -> tuple[Any, Slots]:
    """New arrays that are to be written into later: no views, and nothing that a user has."""
    value, after = made
    own = [x.base is None and x is not item.gradient and x is not item.value for x in after]
    return value, tuple([x if x_own else x.copy() for x, x_own in zip(after, own, strict=True)])
