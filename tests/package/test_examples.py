"""The programs in `examples`: what they find, and that they are what a tutorial should be."""

import ast
import importlib.util
import sys

import numpy as np
import pytest

from paths import ROOT

FOLDER = ROOT / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # jit and dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


# ---- what each has to find; `quick` as in the fast tests ----------------------------------------


def check_linear_regression(found, quick):
    np.testing.assert_allclose(found.descent, found.exact, atol=1e-4)
    np.testing.assert_allclose(found.module, found.exact, atol=1e-3)
    assert (abs(found.exact - [2.0, -1.0, 0.5, 0.7]) < 4 * found.errors).all()


def check_digits_mlp(found, quick):
    assert found.losses[-1] < 0.3 * found.losses[0]
    assert found.accuracy > (0.92 if quick else 0.97)
    assert found.again == found.accuracy


def check_digits_convnet(found, quick):
    assert len(found.losses) == (4 if quick else 12)
    assert found.logged == found.losses == sorted(found.losses, reverse=True)
    assert found.accuracy[-1] > (0.8 if quick else 0.98)
    assert found.confusion.accuracy == pytest.approx(found.accuracy[-1])
    assert "BatchNorm2d" in found.page
    assert found.page.startswith("<!DOCTYPE html>")


def check_character_lstm(found, quick):
    assert found.losses[-1] < (0.6 if quick else 0.05) * found.uniform
    assert len(found.text) == 4 + (20 if quick else 300)
    assert quick or "the claws that catch!" in found.text or "vorpal sword" in found.text


def check_small_transformer(found, quick):
    # Nobody can know whom a verse is about; all else is in the words before.
    assert found.losses[-1] < (0.15 if quick else 0.08)
    assert found.verse == found.expected


def check_vae(found, quick):
    assert found.losses[-1] < found.losses[0]
    assert found.error < (0.75 if quick else 0.4) * found.spread
    assert ((found.drawn > 0) & (found.drawn < 1)).all()
    assert found.drawn.std(axis=0).max() > 0.01  # they are not one and the same


def check_physics_informed_network(found, quick):
    assert found.last_loss < (0.15 if quick else 1e-4) * found.first_loss
    assert found.error < (0.3 if quick else 1e-3)


def check_gaussian_process(found, quick):
    assert found.best < found.start
    assert found.noise == pytest.approx(0.1, rel=0.35 if quick else 0.1)
    assert found.error < 0.1
    assert found.slope_error < 0.3
    assert found.coverage > (0.8 if quick else 0.9)


def check_ode_parameters(found, quick):
    # Of the same data and equations: B. Carpenter, "Predator-Prey Population Dynamics", 2018.
    np.testing.assert_allclose(found.params[:4], [0.55, 0.028, 0.80, 0.024], rtol=0.05)
    assert found.misfit < found.start
    assert found.misfit < 0.22
    assert 9.0 < found.period < 12.0
    assert (found.errors < 0.2).all()


def check_sensitivity_and_uncertainty(found, quick):
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert found.shares["recovery"] > found.shares["infection"] > found.shares["infected"]
    assert found.mean == pytest.approx(found.sampled_mean, rel=0.01)
    assert found.deviation == pytest.approx(found.sampled_deviation, rel=0.06)
    assert abs(found.mean - found.sampled_mean) < abs(found.peak - found.sampled_mean) + 1e-3


def check_two_models_two_contexts(found, quick):
    assert found.losses == found.alone
    assert max(found.losses) < 0.1
    assert "recorded by context" in found.mixed
    assert found.kept


def check_private_gradients(found, quick):
    assert found.difference < 1e-5
    assert found.clipped > 0.5
    assert found.largest < 1.0 + 1e-5
    assert found.private > (0.85 if quick else 0.95)
    assert found.plain > (0.95 if quick else 0.97)


def check_mixed_precision(found, quick):
    assert found.dtypes == {name: name for name in ("float32", "bfloat16", "float16")}
    assert found.parameters == {"float32"}
    assert min(found.accuracy.values()) > found.accuracy["float32"] - 0.01
    assert found.accuracy["float32"] > (0.9 if quick else 0.97)
    assert (found.vanished, found.kept) == (1.0, 0.0)
    assert found.skipped > 0
    assert found.scale < 2.0**24
    assert found.losses[-1] < 0.6 * found.losses[0]


def check_memory_budget(found, quick):
    assert found.bounded_mb < 0.6 * found.plain_mb
    assert found.same_bits
    assert found.losses[-1] < found.losses[0]
    assert found.share > 0
    assert "needs at least" in found.least


def check_custom_op(found, quick):
    assert found.slope == pytest.approx(2 * 800.0 + 0.3 * np.tanh(0.3))
    assert found.curvature == 1.0
    np.testing.assert_array_equal(found.steps, [0.5, -0.25, 1.0])
    volume = found.volume
    assert (1.0 + 1.0 / volume**2) * (volume - 0.1) == pytest.approx(3.0)
    assert max(found.errors) < 1e-6


CHECKS = {
    name.removeprefix("check_"): function
    for name, function in list(globals().items())
    if name.startswith("check_")
}


@pytest.mark.parametrize("name", NAMES)
def test_example(name, capsys):
    CHECKS[name](load(name).main(quick=True), quick=True)
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_example_in_full(name):
    CHECKS[name](load(name).main(), quick=False)


# ---- their form ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_form(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    tree = ast.parse(text)
    assert f"    python examples/{name}.py" in ast.get_docstring(tree)
    assert text.endswith('if __name__ == "__main__":\n    main()\n')
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.module.startswith("gradtape"), "public names are reached by gt"
        elif isinstance(node, ast.Import):
            assert not any(part.name.startswith("gradtape.") for part in node.names)
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_") or node.attr.startswith("__")


def test_every_example_is_checked_and_listed():
    assert sorted(CHECKS) == NAMES
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"[{name}.py]({name}.py)" not in index] == []
    assert index.count(".py](") == len(NAMES)
