"""The page of NumPy's functions is complete and says what happens.

With another NumPy than the one the page was made with, functions that only one of the two has are
left out of the comparison.
"""

import functools
import inspect
import re
import types
import warnings

import numpy as np
import pytest

import numpy_page
from gradtape.errors import UnsupportedError
from gradtape.ops.answers import answer, places
from numpy_page import DIFFERENTIABLE, NOT_FOR_ARRAYS, REFUSED, UNTRACKED
from numpy_samples import LIKE, NO_ARRAYS, ONLY_ARRAYS, SAMPLES
from paths import DOCS

PAGE = DOCS / "numpy-functions.md"
TEXT = PAGE.read_text(encoding="utf-8")
VERSION = re.search(r"as of NumPy\s+(\S+),", TEXT)[1]
LISTED = dict(re.findall(r"^\| `(np\.[\w.]+)` \| ([\w ]+) \|", TEXT, re.MULTILINE))
SAME_NUMPY = np.__version__ == VERSION
AGAIN = "run python tests/support/numpy_page.py docs/numpy-functions.md"


@functools.cache
def found():
    return {entry.name: entry for entry in numpy_page.entries()}


def test_the_page_is_current():
    names = LISTED.keys() & found().keys()
    changed = {n: (LISTED[n], found()[n].status) for n in names if LISTED[n] != found()[n].status}
    assert changed == {}, AGAIN
    if SAME_NUMPY:
        assert numpy_page.page() == TEXT, AGAIN


def test_the_page_is_complete():
    every = set()
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        for name in dir(module):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = getattr(module, name)
            if callable(value) and not inspect.isclass(value) and not name.startswith("_"):
                assert not isinstance(value, types.ModuleType)
                every.add(f"{prefix}.{name}")
    assert every == found().keys()
    assert len(every) > 400
    if SAME_NUMPY:
        assert every == LISTED.keys(), AGAIN


def test_every_status_is_one_of_four():
    known = {DIFFERENTIABLE, UNTRACKED, REFUSED, NOT_FOR_ARRAYS}
    assert set(LISTED.values()) == known
    assert {entry.status for entry in found().values()} == known


def test_what_is_differentiable_has_an_answer():
    for name, status in LISTED.items():
        space = np if name.count(".") == 1 else getattr(np, name.split(".")[1])
        function = getattr(space, name.rpartition(".")[2], None)
        if status == DIFFERENTIABLE and function is not None:
            # np.row_stack is Python code around another function, which has one.
            assert answer(function) is not None or name == "np.row_stack", name


def test_what_is_refused_names_a_way_out():
    refused = [entry for entry in found().values() if entry.status == REFUSED]
    assert refused
    silent = [entry for entry in refused if "use " not in entry.note and "gt." not in entry.note]
    assert silent == []


def test_refusals_are_on_the_page():
    refusals = [(function, answer(function)) for function in places()]
    assert sum(hasattr(refusal, "reason") for _, refusal in refusals) > 10
    for function, refusal in refusals:
        if hasattr(refusal, "reason"):
            with pytest.raises(UnsupportedError, match=re.escape(refusal.reason)):
                refusal()
            name = f"np.{function.__name__}"
            assert found()[name].status == REFUSED


def test_samples_are_of_functions_there_are():
    gone = (SAMPLES.keys() | NO_ARRAYS | LIKE | ONLY_ARRAYS.keys()) - LISTED.keys()
    # Names of other versions of NumPy.
    assert gone <= {"np.issctype"}
