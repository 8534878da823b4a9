"""A training that was interrupted ends with the bits of one that was not."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import run as runs
from killed_run import EPOCHS, Noisy, digest, loss, train


class Interrupt:
    """Raises after some steps, as Ctrl-C would."""

    def __init__(self, steps):
        self.left = steps

    def on_batch_end(self, run):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return digest(train(tmp_path_factory.mktemp("whole"), "plain"))


@pytest.mark.parametrize(
    ("steps", "way"), [(0, "plain"), (1, "plain"), (7, "plain"), (7, "threads"), (10, "plain")]
)
def test_interrupted_at_any_step(tmp_path, whole, way, steps):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, way, [Interrupt(steps)])
    assert digest(train(tmp_path, way)) == whole
    log = (tmp_path / "log.jsonl").read_text().splitlines()
    assert len(log) == EPOCHS


def test_interrupted_compiled(tmp_path):
    expected = digest(train(tmp_path / "whole", "compiled"))
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "cut", "compiled", [Interrupt(7)])
    assert digest(train(tmp_path / "cut", "compiled")) == expected


def test_in_a_deterministic_block(tmp_path):
    def run(folder, callbacks=()):
        with gt.deterministic(global_seed=5, operation_seeds=True):
            return digest(train(tmp_path / folder, "plain", callbacks))

    expected = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("cut", [Interrupt(7)])
    with pytest.raises(gt.GradtapeError, match="set of random generators"):
        train(tmp_path / "cut", "plain")
    assert run("cut") == expected


class Dropping(gt.nn.Module):
    """A perceptron that draws from generators of its own."""

    def __init__(self):
        self.out = gt.nn.Linear(4, 1)
        self.first = gt.random.Generator(5)
        self.others = {"more": [gt.random.Generator(6)]}

    def forward(self, x):
        for generator in (self.first, *self.others["more"]):
            x = gt.nn.dropout(x, 0.2, generator=generator)
        return self.out(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_generators_of_modules_go_on(tmp_path, compiled):
    def run(folder, epochs):
        gt.manual_seed(0)
        loader = gt.data.DataLoader(Noisy(), 8)
        options = {"epochs": epochs, "folder": tmp_path / folder, "compile": compiled}
        return digest(gt.fit(Dropping(), loss, gt.optim.Adam(lr=0.01), loader, **options))

    expected = run("whole", 3)
    run("cut", 1)
    assert run("cut", 3) == expected


def test_epochs_in_portions(tmp_path, whole):
    for epochs in (1, 2, EPOCHS):
        run = train(tmp_path, "plain", epochs=epochs)
    assert digest(run) == whole
    again = train(tmp_path, "plain")
    assert digest(again) == whole
    assert again.step == run.step


def test_interrupted_while_it_saves(tmp_path, whole, monkeypatch):
    save, calls = runs.save_checkpoint, []

    def failing(*args, **kwargs):
        calls.append(args)
        if len(calls) == 9:
            raise KeyboardInterrupt
        save(*args, **kwargs)

    monkeypatch.setattr(runs, "save_checkpoint", failing)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, "plain")
    assert digest(train(tmp_path, "plain")) == whole


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plain", "threads", "compiled"])
def test_killed_at_random_moments(tmp_path, way):
    script = Path(__file__).with_name("killed_run.py")

    def start(folder):
        command = [sys.executable, script, tmp_path / folder, way, "30"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        return process

    begun = time.monotonic()
    expected = start("whole").communicate()[0]
    tenth = (time.monotonic() - begun) / 10
    rng, killed, out = random.Random(way), 0, None
    while out is None:
        process = start("cut")
        try:
            out, _ = process.communicate(timeout=rng.uniform(0, tenth) if killed < 30 else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            killed += 1
            checkpoint = tmp_path / "cut" / "checkpoint.safetensors"
            assert not checkpoint.exists() or gt.load(checkpoint)
    assert killed > 5
    assert out == expected
    assert not list((tmp_path / "cut").glob(".gradtape*"))


def test_hand_written_loop_resumes(tmp_path):
    x = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)

    def made():
        gt.manual_seed(0)
        net = gt.nn.Linear(2, 1)
        loader = gt.data.DataLoader(gt.data.TensorDataset(x), 5, shuffle=True)
        return net, gt.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), loader

    def go_on(net, optimizer, loader, steps, path=None):
        while steps:
            for (batch,) in loader:
                loss = gt.mean((net(batch) - batch[:, :1]) ** 2)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps -= 1
                if not steps:
                    break
        if path:
            progress = {"loader": loader.state_dict()}
            gt.training.save_checkpoint(path, net, optimizer, progress=progress)
        return net

    expected = go_on(*made(), 10)
    go_on(*made(), 4, tmp_path / "c")
    net, optimizer, loader = made()
    found = gt.training.load_checkpoint(tmp_path / "c", net, optimizer)
    assert found.model is net
    loader.load_state_dict(found.progress["loader"])
    go_on(net, optimizer, loader, 6)
    np.testing.assert_array_equal(net.weight.detach().numpy(), expected.weight.detach().numpy())
