"""Modules of NumPy and SciPy that gradtape has no form of, imported under gradtape's names."""

import importlib
import subprocess
import sys

import pytest

import gradtape as gt


@pytest.mark.parametrize(
    "name",
    [
        "numpy.testing", "numpy.polynomial", "numpy.polynomial.polynomial",
        "numpy.lib.stride_tricks", "scipy.constants", "scipy.io", "scipy.cluster.vq",
        "scipy.spatial.transform", "scipy.signal.windows", "scipy.stats.qmc",
        "scipy.sparse.csgraph", "scipy.optimize.elementwise", "scipy.differentiate",
    ],
)  # fmt: skip
def test_a_module_without_a_form_of_ours_is_the_library_s_own(name):
    assert importlib.import_module(f"gradtape.{name}") is importlib.import_module(name)


def test_modules_of_ours_stay_ours():
    for name in ("numpy.linalg", "numpy.fft", "scipy.signal", "scipy.spatial.distance"):
        assert importlib.import_module(f"gradtape.{name}") is not importlib.import_module(name)


def test_importing_leaves_the_library_s_module_as_it_was():
    import scipy.constants

    importlib.import_module("gradtape.scipy.constants")
    assert scipy.constants.__name__ == "scipy.constants"
    assert scipy.constants.__spec__.name == "scipy.constants"
    assert gt.scipy.constants is scipy.constants


def test_names_can_be_imported_from_them_in_a_fresh_process():
    program = (
        "from gradtape.scipy.cluster.vq import whiten\n"
        "from gradtape.scipy.signal.windows import hann\n"
        "from gradtape.numpy.testing import assert_allclose\n"
        "from gradtape.numpy.typing import NDArray\n"
        "import sys, scipy.cluster.vq, numpy.typing\n"
        "assert whiten is scipy.cluster.vq.whiten and NDArray is numpy.typing.NDArray\n"
        "assert sys.modules['gradtape.scipy.cluster.vq'] is scipy.cluster.vq\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["scipy.nothing", "numpy.nothing", "scipy.signal.nothing"])
def test_a_name_that_no_library_has_is_not_found(name):
    with pytest.raises(ModuleNotFoundError, match=f"No module named 'gradtape.{name}'"):
        importlib.import_module(f"gradtape.{name}")
