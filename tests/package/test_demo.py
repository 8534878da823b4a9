"""The command line, and the main job it runs."""

import math
import subprocess
import sys
import types

import numpy as np
import pytest

import gradtape as gt
from gradtape import demo
from gradtape.cli import main
from gradtape.tools.check import GradientReport


def report(is_valid):
    return GradientReport(
        is_valid=is_valid,
        max_error=1.0,
        worst_index=(0,),
        analytic=np.ones(1),
        numeric=np.zeros(1),
        method="central",
        step=1e-6,
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def valid_gradients(monkeypatch):
    """No comparison with differences, which takes most of a short run's time."""
    monkeypatch.setattr(demo, "check", lambda net, digits: report(True))


@pytest.fixture
def few_digits(monkeypatch):
    """A fifth of the images to train with."""
    digits = demo.load_digits()
    few = digits._replace(
        train_images=digits.train_images[:288], train_labels=digits.train_labels[:288]
    )
    monkeypatch.setattr(demo, "load_digits", lambda: few)


def rows(out):
    """The lines at the end: the value of each, by label."""
    return {line[:17].strip(): line[17:27].strip() for line in out.splitlines()}


def confusion(out):
    """The numbers of the confusion matrix."""
    lines = [line.split() for line in out.partition("accuracy\n")[2].splitlines()[:10]]
    return np.array([[int(cell) for cell in line[1:11]] for line in lines])


def test_demo_trains_checks_and_reports(capsys, tmp_path):
    recorded = len(gt.default_context().tape)
    assert main(["demo", "--epochs", "6", "--no-progress"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines() if line.startswith("epoch")]
    losses = [float(line[3]) for line in lines]
    assert len(losses) == 6
    assert losses[-1] < 0.1 * losses[0]
    found = rows(out)
    assert found["test accuracy"] == lines[-1][-1]
    assert float(found["test accuracy"].rstrip("%")) >= 98
    assert found["gradient check"] == "valid"
    assert float(found["compiled, eager"]) < 1e-6
    assert found["time per step"].endswith("µs")
    table = confusion(out)
    assert table.shape == (10, 10)
    assert table.sum() == 359
    assert f"{np.trace(table) / 359:.1%}" == found["test accuracy"]
    page = (tmp_path / "gradtape-demo.html").read_text(encoding="utf-8")
    for part in ("Handwritten digits", "validation loss", "BatchNorm2d", "peak memory"):
        assert part in page
    assert len(gt.default_context().tape) == recorded


@pytest.mark.usefixtures("valid_gradients", "few_digits")
@pytest.mark.parametrize(("options", "shown"), [([], True), (["--no-progress"], False)])
def test_progress_in_a_terminal(options, shown, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes any output for a terminal
    assert main(["demo", "--epochs", "2", *options]) == 1
    out = capsys.readouterr().out
    assert "epoch   2   loss" in out
    assert ("epoch 2/2" in out) is shown
    assert ("steps/s" in out) is shown


@pytest.mark.usefixtures("valid_gradients", "few_digits")
def test_too_little_training_fails(capsys):
    assert main(["demo", "--epochs", "1", "--no-progress"]) == 1
    out = capsys.readouterr().out
    assert out.endswith("FAILED: the accuracy is below 98%\n")
    assert rows(out)["gradient check"] == "valid"


def test_wrong_gradients_are_found(monkeypatch):
    right = demo.loss_of
    monkeypatch.setattr(demo, "loss_of", lambda *args: gt.scale_gradient(right(*args), 1.001))
    found = demo.check(demo.net_of(0), demo.load_digits())
    assert not found.is_valid
    assert found.analytic.size == demo.count_of(demo.net_of(0))


@pytest.mark.usefixtures("few_digits")
def test_wrong_gradients_fail(capsys, monkeypatch):
    monkeypatch.setattr(demo, "check", lambda net, digits: report(False))
    monkeypatch.setattr(demo, "NEEDED_ACCURACY", 0.0)
    assert main(["demo", "--epochs", "1", "--no-progress"]) == 1
    out = capsys.readouterr().out
    assert "gradient WRONG: max error 1.0e+00" in out
    assert out.endswith("FAILED: the gradient is wrong\n")


def run_of(*losses):
    return types.SimpleNamespace(losses=losses)


@pytest.mark.parametrize(
    ("compiled", "eager", "passed"),
    [
        (2.0, 2.0, True),
        (2.0001, 2.0, True),
        (2.001, 2.0, False),
        (math.nan, 2.0, False),
        (math.nan, math.nan, False),
    ],
)
def test_losses_have_to_agree(compiled, eager, passed):
    labels = np.arange(10)
    result = demo.Result(run_of(compiled, 1.0), labels, labels, report(True), run_of(eager))
    assert result.failures == ([] if passed else ["compiled and eager losses differ"])


def test_accuracy_and_confusion_are_counted():
    labels, predictions = np.array([3, 3, 3, 7]), np.array([3, 5, 5, 7])
    result = demo.Result(run_of(1.0), labels, predictions, report(True), run_of(1.0))
    assert result.accuracy == 0.5
    counts = result.confusion.counts
    assert (counts[3, 3], counts[3, 5], counts[7, 7], counts.sum()) == (1, 2, 1, 4)
    assert result.failures == ["the accuracy is below 98%"]


@pytest.mark.usefixtures("valid_gradients", "few_digits")
def test_the_page_goes_where_it_is_asked_for(tmp_path):
    (tmp_path / "here").mkdir()
    assert main(["demo", "--epochs", "1", "--no-progress", "--report", "here/page.html"]) == 1
    assert [path.name for path in tmp_path.rglob("*.html")] == ["page.html"]


@pytest.mark.usefixtures("valid_gradients", "few_digits")
def test_the_same_seed_gives_the_same_losses():
    first, second, other = (demo.run(epochs=1, seed=n, progress=False) for n in (3, 3, 4))
    assert first.run.losses == second.run.losses != other.run.losses
    assert first.eager.losses == second.eager.losses != other.eager.losses


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


def test_version_loads_neither_the_progress_bar_nor_the_compiler():
    code = (
        "import sys; from gradtape.cli import main; main(['version']);"
        "assert not {'rich', 'llvmlite'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
