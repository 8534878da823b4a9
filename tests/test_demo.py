"""The command line, and the main job it runs."""

import subprocess
import sys

import numpy as np
import pytest

import gradtape as gt
from gradtape import demo
from gradtape.cli import main
from gradtape.tools.check import GradientReport


def test_demo_trains_checks_and_reports(capsys):
    assert main(["demo", "--epochs", "6", "--no-progress"]) == 0
    out = capsys.readouterr().out.splitlines()
    losses = [float(line.split()[-1]) for line in out if line.startswith("epoch")]
    assert len(losses) == 6
    assert losses[-1] < 0.2 * losses[0]
    (accuracy,) = [line.split()[2] for line in out if line.startswith("test accuracy")]
    assert float(accuracy.rstrip("%")) >= 95
    assert any(line.startswith("gradient check   valid: max error") for line in out)
    assert any(line.startswith("time per step") and line.endswith("µs") for line in out)
    assert len(gt.default_context().tape) == 0


def test_demo_with_a_progress_bar(capsys):
    assert main(["demo", "--epochs", "6", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "training" in out
    assert "100%" in out
    assert "epoch   6" in out


def test_too_little_training_fails(capsys):
    result = demo.run(epochs=1, progress=False)
    assert result.accuracy < 0.95
    assert result.report.is_valid
    assert not result.passed
    assert main(["demo", "--epochs", "1", "--no-progress"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_wrong_gradients_fail(capsys, monkeypatch):
    wrong = GradientReport(
        is_valid=False,
        max_error=1.0,
        worst_index=(0,),
        analytic=np.ones(1),
        numeric=np.zeros(1),
        method="central",
        step=1e-6,
        rtol=1e-6,
        atol=1e-6,
    )
    monkeypatch.setattr(demo, "check", lambda params, digits: wrong)
    monkeypatch.setattr(demo, "accuracy_of", lambda params, digits: 1.0)
    assert main(["demo", "--epochs", "1", "--no-progress"]) == 1
    assert "gradient WRONG: max error 1.0e+00" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_losses(capsys):
    first, second, other = (demo.run(epochs=1, seed=n, progress=False).losses for n in (3, 3, 4))
    assert first == second
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--epochs", "0"], "0 is less than 1"),
        (["demo", "--epochs", "many"], "'many'"),
        (["demo", "--seed", "-1"], "-1 is less than 0"),
        (["demo", "--speed"], "unrecognized arguments: --speed"),
        (["train"], "invalid choice: 'train'"),
        ([], "required: command"),
    ],
)
def test_bad_options(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert "usage: gradtape" in error


def test_version(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("gradtape ")


def test_version_does_not_load_the_progress_bar():
    code = (
        "import sys; from gradtape.cli import main; main(['version']);"
        "assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
