"""Everything public says what it does, shows it, and names the options it takes."""

import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gradtape as gt

MODULES = (
    "gradtape",
    *(f"gradtape.{name}" for name in ["linalg", "random", "optim", "testing", "data", "training"]),
    *("gradtape.fft", *(f"gradtape.scipy.{name}" for name in gt.scipy._MODULES)),
    *("gradtape.tree", "gradtape.nn", "gradtape.nn.functional", "gradtape.nn.init"),
)

# What is exempt from a check, and why.
NO_EXAMPLE = {
    "gradtape.BenchmarkComparison": "made by PerformanceBenchmark.compare, whose example shows one",
    "gradtape.GradientReport": "made by NumericalChecker, whose example shows one",
    "gradtape.GradtapeError": "a base class; its subclasses name the code that raises them",
    "gradtape.linalg.LinAlgError": "such a subclass",
    "gradtape.nn.init.Fans": "made by gradtape.nn.init.fans, whose example shows one",
}
NO_OPTIONS = {
    **dict.fromkeys(("gradtape.nn.Identity", "gradtape.nn.Module"), "they ignore what they get"),
}


def public_objects() -> Iterator[tuple[str, Any]]:
    """Every function and class that users are given, once, by the first name it has."""
    seen = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            value = getattr(value, "on_tensors", value)  # whose options the docstring explains
            own = str(getattr(value, "__module__", "")).startswith("gradtape")
            if name.startswith("_") or not own or not callable(value) or id(value) in seen:
                continue
            seen.add(id(value))
            yield f"{module_name}.{name}", value


PUBLIC = dict(public_objects())


def summary_is_complete(docstring: str) -> bool:
    """Whether the first line is a sentence, with nothing or an empty line below it."""
    first, *rest = docstring.split("\n")
    return first[:1] != "" and first.endswith(".") and not (rest and rest[0])


def options(function: Callable[..., Any]) -> set[str]:
    """The parameters beside the arrays, which are positional-only or come one by one."""
    parameters = inspect.signature(function).parameters.values()
    arrays = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    return {parameter.name for parameter in parameters if parameter.kind not in arrays}


def section(docstring: str, title: str) -> set[str]:
    """The names that a section explains."""
    found = re.search(rf"^{title}:\n((?:    .*\n?)+)", docstring, re.MULTILINE)
    return set(re.findall(r"^    \**(\w+):", found[1], re.MULTILINE)) if found else set()


def explained(docstring: str) -> set[str]:
    """The options a docstring explains.

    Those of its sections, those its first sentence names, and those of a function it refers to: "as
    of `sum`".
    """
    summary = docstring.split("\n")[0]
    names = section(docstring, "Args") | section(docstring, "Attributes")
    names |= set(re.findall(r"`(\w+)`", summary))
    for other in re.findall(r"options as of `(\w+)`", docstring):
        names |= section(inspect.getdoc(getattr(gt, other)), "Args")
    return names


def unexplained(name: str) -> set[str]:
    """The options of something public that its docstring does not explain."""
    value = PUBLIC[name]
    if inspect.isclass(value) and issubclass(value, BaseException | tuple | enum.Enum):
        # Errors take a message; a named tuple is made by us, not by users; members have names.
        return set()
    if type(value).__module__.startswith("gradtape"):
        return set()  # an object, as a distribution is: what it is called with is its parameters
    return options(value) - explained(inspect.getdoc(value) or "")


def has_example(name: str) -> bool:
    return re.search(r"^ *>>> ", inspect.getdoc(PUBLIC[name]) or "", re.MULTILINE) is not None


def silent_methods(name: str) -> list[str]:
    """The methods of a public class that do not say what they do."""
    methods = vars(PUBLIC[name]).items()
    return [
        method
        for method, value in methods
        if (inspect.isfunction(value) or isinstance(value, property))
        and not method.startswith("_")
        and not summary_is_complete(inspect.getdoc(value) or "")
    ]


# One test for all that is public: each name takes a hundredth of what a test costs.


def test_first_line_is_a_sentence():
    wrong = [
        name
        for name, value in PUBLIC.items()
        if not summary_is_complete(inspect.getdoc(value) or "")
    ]
    assert wrong == []


def test_has_an_example():
    # The example runs with the other doctests.
    assert [name for name in PUBLIC if name not in NO_EXAMPLE and not has_example(name)] == []


def test_options_are_explained():
    missing = {name: unexplained(name) for name in PUBLIC if name not in NO_OPTIONS}
    assert {name: found for name, found in missing.items() if found} == {}


def test_methods_say_what_they_do():
    silent = {name: silent_methods(name) for name in PUBLIC if inspect.isclass(PUBLIC[name])}
    assert {name: found for name, found in silent.items() if found} == {}


def test_every_exception_is_needed():
    needless = {name for name in NO_EXAMPLE if has_example(name)}
    needless |= {name for name in NO_OPTIONS if not unexplained(name)}
    assert needless == set(), "explained by now: take it out"


def test_something_is_checked():
    assert {"gradtape.sum", "gradtape.grad", "gradtape.Tensor", "gradtape.optim.SGD"} <= set(PUBLIC)


# ---- the measure itself ----


@pytest.mark.parametrize(
    ("docstring", "complete"),
    [("One.", True), ("One.\n\nTwo", True), ("One", False), ("One\ntwo.", False), ("", False)],
)
def test_summary(docstring, complete):
    assert summary_is_complete(docstring) == complete


def test_options_leave_out_arrays():
    def function(x, /, axis, *arrays, keepdims=False, **unsupported):
        """One."""

    assert options(function) == {"axis", "keepdims", "unsupported"}


def test_explained_names():
    docstring = (
        "By `k`.\n\nArgs:\n    a: One:\n        b: two.\n    **c: Three.\n"
        "\nRaises:\n    AxisError: Never.\n"
    )
    assert explained(docstring) == {"k", "a", "c"}


def test_explained_by_another():
    assert {"axis", "dtype", "keepdims"} <= explained("Options, options as of `sum`.")
