"""Targets: the machines that plans are compiled for and run on.

A target has two methods: `compile` turns plans into code, and `call` runs it on arrays. Nothing
else in the compiler knows about a machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from gradtape.compiler.argument_specs import Result, Spec
from gradtape.compiler.plan import Plan, Step


class StepReport(NamedTuple):
    """A report on how a step is run, for `explain`.

    Attributes:
        nanoseconds: A rough time on one core.
        lanes: The number of elements done at once; 0 if the plan does not determine it.
        parts: The number of parts it is divided into for threads; 0, likewise.
        function: The name of its function in the text of the code; "" if it has none.
    """

    nanoseconds: float = 0.0
    lanes: int = 0
    parts: int = 0
    function: str = ""


class Code:
    """A plan compiled for a machine.

    The methods defined here are defaults, for targets that have nothing better.

    Attributes:
        plan: The plan, with the steps that the machine runs.
        text: The code as the target printed it.
        assembly: The code as the machine runs it.
    """

    text = ""
    assembly = ""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def direct(self, *_arrays: Any) -> Any:
        """The results for any arrays, as a tuple; `NotImplemented` if the arrays do not fit.

        Results without axes are NumPy's numbers.
        """
        return NotImplemented

    def entry(
        self,
        args: Sequence[Spec],
        result: Spec,
        results: Sequence[Result],
        *,
        otherwise: Callable[..., Any] | None = None,
        unless: list[Any] | None = None,
        bound: Sequence[Any] = (),
    ) -> Callable[..., Any] | None:
        """A function that takes arguments of one form directly; None if there is none.

        Args:
            args: One spec per positional argument, then one for each object in `bound`.
            result: The value it returns.
            results: The outputs of the plan.
            otherwise: Called with the arguments if they are of another form.
            unless: A list: `otherwise`, if there is one, is called whenever something is in it.
            bound: Objects that follow the arguments at every call.
        """
        return None

    def report(self, step: Step) -> StepReport:
        """A report on how a step of the plan is run."""
        return StepReport()


C = TypeVar("C", bound=Code)


class Target(ABC, Generic[C]):
    """A machine that plans are compiled for and run on."""

    @abstractmethod
    def compile(self, plans: Sequence[Plan]) -> Sequence[C]:
        """The code of plans with different names, which are compiled together."""

    @abstractmethod
    def call(self, code: C, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for contiguous arrays of the inputs' shapes and dtypes.

        Raises:
            UnsettledError: A watched value is not finite.
            GradtapeError: A condition does not hold: the error and message of the first of the
                plan's failures.
        """
