"""Where functions are found: by NumPy's and SciPy's names, by ours, and by the registry of ops."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import gradtape as gt
from gradtape.core.define import linear
from gradtape.core.lazy import Deferred, found_at
from gradtape.core.op import Op, infer_like, registry
from gradtape.errors import GradtapeError
from gradtape.ops import answers, arrays

SOURCE = Path(gt.__file__).parent


# ---- the table ----------------------------------------------------------------------------------


def test_every_answer_is_where_the_table_says():
    found = {original: found_at(place) for original, place in answers.places().items()}
    assert all(map(callable, found.values()))
    assert found[np.tanh] is gt.tanh
    assert found[np.sort] is found_at("gradtape.ops.arrays.sort:sort")
    assert found[scipy.special.gammaln] is gt.lgamma
    assert len(found) > 450


def test_the_table_names_functions_that_exist():
    # Names that some version of NumPy or SciPy has, and not this one.
    others = {"numpy.matvec", "numpy.vecmat", "numpy.unstack", "numpy.cumulative_sum"}
    others |= {"numpy.cumulative_prod", "numpy.fix"}
    for space, modules in answers._ANSWERS.items():
        names = [pair.partition("=")[0] for names in modules.values() for pair in names.split()]
        assert len(names) == len(set(names)), space
        known = vars(sys.modules[space])
        assert {f"{space}.{name}" for name in names if name not in known} <= others


def test_what_has_no_answer_loads_nothing():
    assert answers.answer(np.set_printoptions) is None
    assert answers.answer("a text") is None


def test_functions_of_gradtape_are_the_same_for_type_checkers():
    tree = ast.parse((SOURCE / "ops" / "arrays" / "__init__.py").read_text(encoding="utf-8"))
    listed = {
        alias.name: (node.module, alias.asname)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    table = {name: (f"gradtape.ops.arrays.{module}", name) for name, module in arrays.NAMES.items()}
    assert listed == table
    assert all(callable(getattr(gt, name)) for name in arrays.NAMES)


def test_deferred_functions_are_where_they_are_looked_for():
    texts = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    places = [place for text in texts for place in re.findall(r'Deferred\("(gradtape.*?)"\)', text)]
    assert len(places) >= 10
    for place in places:
        deferred = Deferred(place)
        assert callable(deferred.function)
        assert deferred.function is found_at(place)


# ---- what is loaded -----------------------------------------------------------------------------


def loaded_by(statement: str) -> set[str]:
    """The modules of gradtape that a statement about a tensor `t` loads."""
    code = f"""
import sys
import numpy as np
import gradtape as gt
t = gt.tensor([1.0, 2.0])
before = set(sys.modules)
{statement}
print(*(name for name in set(sys.modules) - before if name.startswith("gradtape.")))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.removeprefix("gradtape.ops.") for name in run.stdout.split()}


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("np.tanh(t)", "answers"),
        ("np.sum(t)", "answers"),
        ("np.fft.fft(t)", "answers fft fft.common fft.fourier fft.real fft.transforms"),
        ("np.isclose(t, t)", "answers close"),
        ("np.sort(t)", "answers arrays.sort"),
        ("gt.sort(t)", "arrays.sort"),
        ("t.argsort()", "arrays.sort"),
        ("gt.interp(t, t, t)", "arrays.interpolation arrays.search arrays.sort"),
        ("t.sum(); t * t; t[0]", ""),
    ],
)
def test_a_lookup_loads_what_it_needs(statement: str, modules: str) -> None:
    # Small modules that families share come with the first of them.
    shared = {"arrays.axes", "checks", "family"}
    assert loaded_by(statement) - shared == set(modules.split())


# ---- the registry -------------------------------------------------------------------------------


def defined(name: str, module: str) -> Any:
    """An op that a module of that name defines."""
    code = "op = linear(name, lambda xp, x: x, lambda ct, _out, _x: ct, infer=infer, batch=None)"
    given = {"__name__": module, "linear": linear, "infer": infer_like, "name": name}
    exec(code, given)
    return given["op"]


def test_only_modules_of_ops_register_ops():
    before = set(registry)
    for module in ("__main__", "gradtape", "gradtape.core.op", "gradtape_extras.ops.mine"):
        with pytest.raises(GradtapeError, match=r"^mine: the op registry is closed; use gt\.cus"):
            defined("mine", module)
    with pytest.raises(GradtapeError, match=r"^tanh: there is an op of this name already$"):
        defined("tanh", "gradtape.ops.mine")
    assert set(registry) == before


def test_the_registry_has_all_ops_by_name():
    ops = list(registry)
    assert all(type(op) is Op for op in ops)
    assert {op.name: op for op in ops} == {op.name: registry[op.name] for op in ops}
    assert registry["tanh"] is gt.tanh.op  # type: ignore[attr-defined]
    assert "tanh" in registry
    assert "tangent" not in registry
    with pytest.raises(KeyError):
        registry["tangent"]
