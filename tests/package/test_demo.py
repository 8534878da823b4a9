"""The command line, and the main job it runs."""

import math
import subprocess
import sys

import numpy as np
import pytest

import gradtape as gt
from gradtape import demo
from gradtape.cli import main
from gradtape.ops.generator import Generator
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


@pytest.fixture
def valid_gradients(monkeypatch):
    """No comparison with differences, which takes most of a short run's time."""
    monkeypatch.setattr(demo, "check", lambda trainer, digits: report(True))


@pytest.fixture
def few_digits(monkeypatch):
    """A sixth of the images to train with; a batch that is not full is among them, too."""
    digits = demo.load_digits()
    few = digits._replace(
        train_images=digits.train_images[:254], train_labels=digits.train_labels[:254]
    )
    monkeypatch.setattr(demo, "load_digits", lambda: few)


def rows(out):
    """The table at the end: the two entries of each row, by label."""
    found = {}
    for line in out.splitlines():
        found[line[:15].strip()] = line[15:24].strip(), line[24:35].strip()
    return found


def test_demo_trains_both_ways_checks_and_reports(capsys):
    assert main(["demo", "--epochs", "6", "--no-progress"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines() if line.startswith("epoch")]
    losses = np.array([[float(line[3]), float(line[5])] for line in lines])
    assert losses.shape == (6, 2)
    assert (losses[-1] < 0.2 * losses[0]).all()
    np.testing.assert_allclose(losses[:, 0], losses[:, 1], atol=2e-4)
    table = rows(out)
    assert table[""] == ("eager", "compiled")
    assert all(float(entry.rstrip("%")) >= 95 for entry in table["test accuracy"])
    assert table["gradient check"] == ("valid", "valid")
    assert all(entry.endswith("µs") for entry in table["time per step"])
    assert all(entry.endswith("ms") for entry in table["time per epoch"])
    assert table["compile time"][0] == ""
    assert table["compile time"][1].endswith("ms")
    assert "losses         differ by" in out
    assert len(gt.default_context().tape) == 0


@pytest.mark.usefixtures("valid_gradients")
def test_demo_with_a_progress_bar(capsys):
    assert main(["demo", "--epochs", "6", "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert "training" in out
    assert "100%" in out
    assert "epoch   6" in out


@pytest.mark.usefixtures("valid_gradients", "few_digits")
def test_too_little_training_fails(capsys):
    assert main(["demo", "--epochs", "1", "--no-progress"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: the accuracy of the eager run is too low; the accuracy of the compiled" in out
    assert rows(out)["gradient check"] == ("valid", "valid")


@pytest.mark.usefixtures("few_digits")
@pytest.mark.parametrize(
    ("wrong", "name"), [(demo.EagerTrainer, "eager"), (demo.CompiledTrainer, "compiled")]
)
def test_wrong_gradients_fail(wrong, name, capsys, monkeypatch):
    monkeypatch.setattr(demo, "check", lambda trainer, digits: report(type(trainer) is not wrong))
    monkeypatch.setattr(demo, "accuracy_of", lambda params, digits: 1.0)
    assert main(["demo", "--epochs", "1", "--no-progress"]) == 1
    out = capsys.readouterr().out
    assert "gradient WRONG: max error 1.0e+00" in out
    assert out.endswith(f"FAILED: the {name} gradients are wrong\n")


@pytest.mark.usefixtures("valid_gradients")
def test_a_wrong_compiled_step_fails(capsys, monkeypatch):
    monkeypatch.setattr(demo, "accuracy_of", lambda params, digits: 1.0)
    step = demo.training_step

    def forgets_the_averages(params, state, images, labels):
        halved = state | {"sum": [0.5 * array for array in state["sum"]]}
        return step(params, halved, images, labels)

    monkeypatch.setattr(demo, "training_step", forgets_the_averages)
    assert main(["demo", "--epochs", "1", "--no-progress"]) == 1
    assert "FAILED: the losses of both runs differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("eager", "compiled", "passed"),
    [
        ([2.0, 1.0], [2.0, 1.0], True),
        ([2.0, 1.0], [2.00001, 1.009], True),
        ([2.0, 1.0], [2.0001, 1.0], False),
        ([2.0, 1.0], [2.0, 1.02], False),
        ([2.0, 1.0], [2.0, math.nan], False),
        ([math.nan, 1.0], [math.nan, 1.0], False),
        ([2.0, 1e-9], [2.0, 2e-9], True),  # nothing but rounding
        ([2.0, 1e-9], [2.0, 1e-3], False),
    ],
)
def test_losses_have_to_agree(eager, compiled, passed):
    runs = [demo.Run(losses, 1.0, report(True), [1.0]) for losses in (eager, compiled)]
    result = demo.Result(*runs, compile_seconds=1.0)
    assert result.passed is passed
    assert result.failures == ([] if passed else ["the losses of both runs differ"])


def test_an_accuracy_that_is_no_number_fails():
    runs = [demo.Run([1.0], accuracy, report(True), [1.0]) for accuracy in (1.0, math.nan)]
    assert demo.Result(*runs, compile_seconds=1.0).failures == [
        "the accuracy of the compiled run is too low"
    ]


def test_the_compiled_step_is_the_optimizers():
    # In float64 the eager loop and the function have no rounding to hide behind.
    digits = demo.load_digits()
    params = [param.astype(np.float64) for param in demo.initial_params(Generator(0))]
    images, labels = digits.train_images[:32].astype(np.float64), digits.train_labels[:32]
    eager = demo.EagerTrainer(params)
    state = demo.RULE.init(params)
    compiled = gt.jit(demo.training_step)
    for count in range(1, 4):
        expected = eager.step(images, labels)
        loss, params, state = compiled(params, state, images, labels)
        assert state["step"] == count
        assert loss == pytest.approx(expected, rel=1e-12)
        for got, wanted in zip(params, eager.arrays, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
    assert "1 form(s)" in repr(compiled)


def test_preparing_changes_nothing():
    digits = demo.load_digits()
    trainer = demo.CompiledTrainer(demo.initial_params(Generator(0)))
    before = [array.copy() for array in trainer.arrays]
    batches = demo.batches_of(digits, np.arange(70))
    assert [len(labels) for _, labels in batches] == [32, 32, 6]
    assert trainer.prepare(batches) > 0
    for now, then in zip(trainer.arrays, before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert "2 form(s)" in repr(trainer._step)


@pytest.mark.usefixtures("valid_gradients", "few_digits")
def test_the_same_seed_gives_the_same_losses(capsys):
    first, second, other = (demo.run(epochs=1, seed=n, progress=False) for n in (3, 3, 4))
    for kind in ("eager", "compiled"):
        losses = [getattr(result, kind).losses for result in (first, second, other)]
        assert losses[0] == losses[1]
        assert losses[0] != losses[2]


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
