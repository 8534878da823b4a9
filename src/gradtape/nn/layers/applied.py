"""The base of modules that apply a function and have settings, but no parameters.

Such a class names the function and its settings, and nothing else. Its docstring gets the texts
about the settings from that of the function, unless it explains them in another way itself:

>>> from gradtape.nn.layers.applied import Applied
>>> def power(x, exponent):
...     '''Powers.
...
...     Args:
...         x: The array.
...         exponent: To which power.
...     '''
...     return x**exponent
>>> class Power(Applied, function=power):
...     '''Powers: `power`.'''
...
...     exponent: float = 2.0
>>> Power(3.0), Power(exponent=3.0)(np.arange(3.0))
(Power(exponent=3.0), array([0., 1., 8.]))
>>> print(Power.__doc__)
Powers: `power`.
<BLANKLINE>
Args:
    exponent: To which power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, ClassVar, dataclass_transform

from gradtape.errors import ArgumentError
from gradtape.nn.module import Module
from gradtape.ops.shared_options import options, section

_IN_PLACE = "inplace"


class _Signature:
    """What a class is called with; its objects are called with something else."""

    def __get__(self, instance: Any, owner: Any) -> Signature:
        if instance is not None or owner.__init__ is not Applied.__init__:
            raise AttributeError("__signature__")
        return owner._signature  # type: ignore[no-any-return]


@dataclass_transform(eq_default=False)
class Applied(Module):
    """A module that calls a function with its settings, which are annotated attributes.

    Args of the class:
        function: What it calls, with arrays first and settings by name.
        training: Whether the function takes `training`.
        arrays: Settings that are arrays or None; they become buffers.
    """

    _function: ClassVar[Callable[..., Any]]
    _settings: ClassVar[tuple[str, ...]] = ()
    _arrays: ClassVar[tuple[str, ...]] = ()
    _with_training: ClassVar[bool] = False
    # Settings that are checked by themselves: a function of `ops.checks`, and its bounds.
    _checks: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    _signature: ClassVar[Signature] = Signature()
    __signature__ = _Signature()

    def __init_subclass__(
        cls,
        function: Callable[..., Any] | None = None,
        training: bool | None = None,
        arrays: tuple[str, ...] = (),
        **others: Any,
    ) -> None:
        super().__init_subclass__(**others)
        if function is not None:
            cls._function = staticmethod(function)
        if training is not None:
            cls._with_training = training
        cls._arrays += arrays
        if "__init__" in vars(cls):  # a subclass that makes its attributes itself
            return
        known = cls._signature.parameters
        own = {
            name: Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=vars(cls).get(name, Parameter.empty),
                annotation=annotation,
            )
            for name, annotation in cls.__annotations__.items()
            if not name.startswith("_") and "ClassVar" not in str(annotation)
        }
        for name in own.keys() & vars(cls).keys():
            delattr(cls, name)  # a buffer cannot have the name of an attribute of the class
        cls._signature = Signature([*({**known, **own}).values()])
        cls._settings = tuple(cls._signature.parameters)
        if function is not None:
            cls._explain(function)

    @classmethod
    def _explain(cls, function: Callable[..., Any]) -> None:
        """Complete the docstring with what that of the function says about the settings."""
        # A setting that has no meaning is the one error that making a module can raise.
        checked = cls._checks or cls._check is not Applied._check
        raised = section(function, "Raises").get("ArgumentError") if checked else None
        raises = {"ArgumentError": raised} if raised else {}
        options(section(function, "Args"), raises=raises)(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _bound(type(self), args, kwargs)
        for name, value in given.items():
            if name in self._arrays:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self._check()

    def _check(self) -> None:
        """Raise for settings that no call could use."""
        for name, (check, *bounds) in self._checks.items():
            check(type(self).__name__, *bounds, **{name: vars(self)[name]})

    def forward(self, *args: Any) -> Any:
        """Call the function with these arrays and the settings."""
        held = vars(self)
        settings = {name: held[name] for name in self._settings}
        if self._with_training:
            settings["training"] = self.training
        return self._function(*args, **settings)

    def extra_repr(self) -> str:
        """Show the settings."""
        held = vars(self)
        return ", ".join(
            f"{name}={held[name]!r}" for name in self._settings if name not in self._arrays
        )


def _bound(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The settings by name, defaults included."""
    signature: Signature = cls._signature
    if _IN_PLACE not in signature.parameters and kwargs.pop(_IN_PLACE, False):
        raise ArgumentError(
            f"{cls.__name__}: got inplace=True; values of tensors are never "
            "overwritten by an activation. Leave it out: the result is the same"
        )
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        known = [str(p.replace(annotation=p.empty)) for p in signature.parameters.values()]
        expected = f"{cls.__name__}({', '.join(known)})"
        raise ArgumentError(f"{cls.__name__}: {error}, expected {expected}") from None
    bound.apply_defaults()
    return bound.arguments
