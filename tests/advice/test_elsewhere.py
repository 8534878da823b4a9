"""What we say for names of other libraries gives what these give there."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest

import elsewhere_samples as samples
import gradtape as gt
from elsewhere_samples import FUNCTIONS, VARIABLES, Sample
from gradtape.advice.foreign_names import MODULE, NAMES, NUMPY
from gradtape.advice.tensor_attributes import COMPILED, TAPE, TENSOR, MissingAttribute

TABLES: list[tuple[dict[str, str], dict[str, Sample], dict[str, str]]] = [
    (MODULE, samples.MODULE_SAMPLES, samples.MODULE_EXEMPT),
    (TENSOR, samples.TENSOR_SAMPLES, samples.TENSOR_EXEMPT),
]
EVERY = [
    pytest.param(table[name], name, sample, id=f"{owner}.{name}")
    for owner, (table, rows, _) in zip(("gt", "t"), TABLES, strict=True)
    for name, sample in rows.items()
]


def code_of(advice: str) -> str:
    """The Python that follows "use": the longest part, up to a comma or semicolon, that is some."""
    text = advice.removeprefix("use ")
    assert text != advice, f"no sample can be made of {advice!r}"
    ends = [len(text), *(found.start() for found in re.finditer("[,;]", text))]
    for end in sorted(ends, reverse=True):
        try:
            compile(text[:end], advice, "eval")
        except SyntaxError:
            continue
        return text[:end]
    raise AssertionError(f"no Python in {advice!r}")


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in flat(one)]
    if isinstance(result, gt.Tensor):
        result = result.detach()
    return [np.asarray(result)] if not isinstance(result, np.dtype) else [np.empty(0, result)]


def assert_same(got: Any, expected: Any) -> None:
    for one, other in zip(flat(got), flat(expected), strict=True):
        assert one.shape == other.shape
        assert one.dtype.kind == other.dtype.kind
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-12)


def test_every_name_has_a_sample_or_a_reason() -> None:
    for table, rows, exempt in TABLES:
        assert rows.keys() | exempt.keys() == table.keys()
        assert not rows.keys() & exempt.keys()


def test_no_row_is_about_a_name_that_is_there() -> None:
    assert [
        name for name in TENSOR if not isinstance(vars(gt.Tensor)[name], MissingAttribute)
    ] == []
    assert [name for name in MODULE if name in dir(gt)] == []


def test_the_names_in_texts_exist() -> None:
    texts = [*MODULE.values(), *TENSOR.values(), *COMPILED.values(), *TAPE.values()]
    paths = {path for text in texts for path in re.findall(r"\bgt((?:\.[A-Za-z]\w*)+)", text)}
    assert len(paths) > 100
    for path in paths:
        operator.attrgetter(path[1:])(gt)


# So does NumPy, of np.fix since 2.5.
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("advice", "name", "sample"), EVERY)
def test_what_is_said_gives_the_same(advice: str, name: str, sample: Sample) -> None:
    known = {**FUNCTIONS, **VARIABLES, "gt": gt}
    expected = eval(sample.expected, known)
    variables = {k: eval(text, known) for k, text in sample.renamed.items()}
    if "t" in variables:
        variables["t"] = gt.tensor(variables["t"])
    got = eval(code_of(advice), known | variables)
    if callable(got):
        got = got(*eval(sample.arguments, known))
    if name in ("svd", "eig"):
        got = tuple(abs(part) if part.ndim > 1 else part for part in got)
    assert_same(got, expected)


@pytest.mark.parametrize("name", NUMPY)
def test_what_is_said_for_names_of_numpy(name: str) -> None:
    sample = samples.NUMPY_SAMPLES[name]
    known = {**FUNCTIONS, **VARIABLES, "gt": gt}
    variables = {k: eval(text, known) for k, text in sample.renamed.items()}
    got = eval(code_of(NUMPY[name]), known | variables)
    if callable(got):
        got = got(*eval(sample.arguments, known))
    if callable(got):  # a function of a function
        got = got(VARIABLES["vector"])
    assert_same(got, eval(sample.expected, known))


def test_names_of_namespaces_have_a_reason() -> None:
    for namespace, table in NAMES.items():
        assert samples.NAMES_EXEMPT[namespace].keys() == table.keys()


# PyTorch warns of what it will remove; people still look for the old names.
@pytest.mark.filterwarnings("ignore:.*is deprecated:UserWarning")
def test_what_they_give() -> None:
    torch = pytest.importorskip("torch")
    arrays = {
        k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in VARIABLES.items()
    }
    for _, rows, _ in TABLES:
        for name, sample in rows.items():
            if sample.torch is None:
                continue
            call = sample.torch or f"torch.{name}{sample.arguments}"
            theirs = eval(call, {"torch": torch, **arrays})
            parts = theirs if isinstance(theirs, (tuple, list)) else (theirs,)
            whole = [p.resolve_conj() if isinstance(p, torch.Tensor) else p for p in parts]
            expected = eval(sample.expected, {**FUNCTIONS, **VARIABLES})
            assert_same([np.asarray(part) for part in whole], expected)


@pytest.mark.parametrize("name", COMPILED)
def test_names_of_other_compiled_functions(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"{name!r}; {COMPILED[name]}")):
        getattr(gt.jit(np.sin), name)


@pytest.mark.parametrize("name", TAPE)
def test_names_of_other_tapes(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"{name!r}; {TAPE[name]}")):
        getattr(gt.GradientTape(), name)


def test_names_that_no_library_has() -> None:
    for thing in (gt.jit(np.sin), gt.GradientTape()):
        with pytest.raises(AttributeError, match=r"has no attribute 'zzz'$"):
            thing.zzz  # noqa: B018
        assert not {*COMPILED, *TAPE}.intersection(dir(thing))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: gt.jit(np.sin, donate_argnums=0),
            "got donate_argnums=, .*; leave it out: arguments are not written",
        ),
        (lambda: gt.jit(np.sin, fullgraph=True), "got fullgraph=.*; leave it out"),
        (lambda: gt.jit(np.sin, static_argname="n"), r"did you mean static_argnames=\?"),
        (lambda: gt.grad(np.sin, argnum=1), "got argnum=; it is called argnums= here"),
        (lambda: gt.value_and_grad(np.sin, argnum=1), "it is called argnums= here"),
        (lambda: gt.grad(np.sin, allow_int=True), "got allow_int=, expected"),
        (lambda: gt.jacrev(np.sin, argnum=1), "it is called argnums= here"),
    ],
)
def test_keywords_of_other_transforms(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()
