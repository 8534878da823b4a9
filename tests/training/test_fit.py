"""gt.fit: what it trains, its options, callbacks and logs, and what it refuses."""

import csv
import functools
import io
import json
import resource

import numpy as np
import pytest
from rich.console import Console

import gradtape as gt
from gradtape.training import CSVLog, EarlyStopping, JSONLog, KeepBest, SaveEvery, ScheduleRate


def data(n=32):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4)).astype("float32")
    return x, np.sin(x[:, :1])


def loader(**options):
    return gt.data.DataLoader(gt.data.TensorDataset(*data()), 8, shuffle=True, **options)


def net(width=8):
    gt.manual_seed(0)
    return gt.nn.Sequential(gt.nn.Linear(4, width), gt.nn.Linear(width, 1))


def loss(model, batch):
    return gt.mean((model(batch[0]) - batch[1]) ** 2)


def linear_loss(params, batch):
    return gt.mean((batch[0] @ params["w"] + params["b"] - batch[1]) ** 2)


def fit(model, *args, optimizer=None, epochs=3, data=None, loss=loss, **options):
    optimizer = optimizer or gt.optim.Adam(lr=0.01)
    options = {"progress": False, **options}
    source = loader() if data is None else data
    return gt.fit(model, loss, optimizer, source, *args, epochs=epochs, **options)


def weights(model):
    return [p.detach().numpy() for p in model.parameters()]


def by_hand(epochs=3, accumulate=1, clip=None):
    model, source = net(), loader()
    optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for epoch in range(epochs):
        batches = list(source.epoch(epoch))
        total = 0.0
        for start in range(0, len(batches), accumulate):
            group = batches[start : start + accumulate]
            grads = []
            for batch in group:
                value, gradient = gt.value_and_grad(loss)(model, batch)
                total += value.item() * len(batch[0])
                grads.append([p.detach().numpy() for p in gradient.parameters()])
            mean = [sum(parts) / len(group) for parts in zip(*grads, strict=True)]
            optimizer.step(mean if clip is None else gt.gradients.clip_by_global_norm(mean, clip))
        losses.append(total / 32)
    return model, losses


@pytest.mark.parametrize("options", [{}, {"accumulate": 3}, {"accumulate": 4, "clip": 0.1}])
@pytest.mark.parametrize("compiled", [False, True])
def test_it_does_what_a_loop_by_hand_does(options, compiled):
    model, losses = by_hand(**options)
    run = fit(net(), compile=compiled, **options)
    assert run.losses == pytest.approx(losses, rel=1e-5)
    for one, other in zip(weights(run.model), weights(model), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert (run.epoch, run.step) == (3, 3 * -(-4 // options.get("accumulate", 1)))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_module_is_trained_in_place(compiled):
    model = net()
    kept = model[0].weight
    run = fit(model, compile=compiled)
    assert run.model is model
    assert model[0].weight is kept
    assert kept.requires_grad
    assert not np.array_equal(kept.detach().numpy(), net()[0].weight.detach().numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_containers_of_arrays_are_trained(compiled, tmp_path):
    params = {"w": np.zeros((4, 1)), "b": np.zeros(1)}
    options = {"loss": linear_loss, "compile": compiled, "optimizer": gt.optim.Adam(lr=0.1)}
    run = fit(params, epochs=4, **options)
    assert not params["w"].any()
    assert run.losses[-1] < run.losses[0]
    fit(params, epochs=2, folder=tmp_path, **options)
    resumed = fit(params, epochs=4, folder=tmp_path, **options)
    np.testing.assert_array_equal(np.asarray(resumed.model["w"]), np.asarray(run.model["w"]))


def test_optimizers_with_parameters_keep_their_groups(tmp_path):
    def made():
        model = net()
        groups = [{"params": [model[0].weight], "lr": 0.0}, {"params": [model[1].weight]}]
        return model, gt.optim.SGD(groups, lr=0.1, momentum=0.9)

    model, optimizer = made()
    run = fit(model, optimizer=optimizer, epochs=4)
    np.testing.assert_array_equal(weights(run.model)[0], weights(net())[0])
    np.testing.assert_array_equal(weights(run.model)[1], weights(net())[1])
    assert not np.array_equal(weights(run.model)[2], weights(net())[2])
    for epochs in (2, 4):
        model, optimizer = made()
        resumed = fit(model, optimizer=optimizer, epochs=epochs, folder=tmp_path)
    np.testing.assert_array_equal(weights(resumed.model)[2], weights(run.model)[2])


@pytest.mark.parametrize("clip", [1e-3, lambda grads: gt.gradients.clip_by_value(grads, 1e-3)])
def test_gradients_are_clipped_for_optimizers_with_parameters(clip):
    model = net()
    run = fit(model, optimizer=gt.optim.SGD(model.parameters(), lr=0.1), clip=clip)
    assert run.losses == fit(net(), optimizer=gt.optim.SGD(lr=0.1), clip=clip).losses


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mode", [None, "Float16"])
def test_clipping_that_remembers_goes_on_with_the_run(tmp_path, compiled, mode):
    def run(epochs, folder):
        clip = gt.gradients.Pipeline([gt.gradients.AutoClip(25.0)])
        options = {"clip": clip, "compile": compiled, "amp": amp_of(mode)}
        return clip, fit(net(), epochs=epochs, folder=folder, **options)

    clip, whole = run(4, tmp_path / "whole")
    assert 0 < clip.steps[0].threshold < np.inf
    run(2, tmp_path / "cut")
    _, resumed = run(4, tmp_path / "cut")
    assert resumed.losses == whole.losses
    with pytest.raises(gt.GradtapeError, match=r"unexpected 'clip\.0\.norms'"):
        fit(net(), epochs=5, folder=tmp_path / "cut", compile=compiled, amp=amp_of(mode))


def amp_of(mode):
    return mode and gt.AmpConfig(precision_mode=gt.PrecisionMode[mode])


def test_clipping_that_remembers_and_an_optimizer_with_parameters(tmp_path):
    def run(epochs, folder, clip=True, own=True):
        model = net()
        optimizer = gt.optim.SGD(model.parameters() if own else None, lr=0.1, momentum=0.9)
        clip = gt.gradients.AutoClip(25.0) if clip else None
        return fit(model, optimizer=optimizer, epochs=epochs, folder=folder, clip=clip)

    whole = run(4, tmp_path / "whole")
    assert whole.losses != run(4, tmp_path / "plain", clip=False).losses
    run(2, tmp_path / "cut")
    assert run(4, tmp_path / "cut").losses == whole.losses
    kept = (tmp_path / "plain" / "checkpoint.safetensors").read_bytes()
    with pytest.raises(gt.GradtapeError, match="groups of 4"):
        run(5, tmp_path / "plain", clip=False, own=False)
    assert (tmp_path / "plain" / "checkpoint.safetensors").read_bytes() == kept


def test_optimizers_that_look_elsewhere():
    source = [data()]
    run = fit(net(), optimizer=gt.optim.LBFGS(lr=1.0), data=source, epochs=3)
    assert run.losses[-1] < 0.2 * run.losses[0]


def test_wrapped_optimizers_resume(tmp_path):
    def run(epochs, folder, lr=0.01):
        optimizer = gt.amp.MasterWeights(gt.optim.Adam(lr=lr))
        options = {"optimizer": optimizer, "epochs": epochs, "folder": folder}
        return fit(net().bfloat16(), data=[data()], **options)

    whole = run(4, tmp_path / "whole")
    run(2, tmp_path / "cut")
    assert run(4, tmp_path / "cut").losses == whole.losses
    with pytest.raises(gt.GradtapeError, match=r"lr=0.01, got lr=0.02"):
        run(5, tmp_path / "cut", lr=0.02)


class Falling:
    """A schedule whose representation is the usual one, with its address."""

    def __call__(self, step):
        return 0.1 / (1.0 + step)


@pytest.mark.parametrize("made", [Falling, lambda: functools.partial(lambda a, step: a, 0.1)])
def test_schedules_that_were_made_anew_are_the_same(tmp_path, made):
    held = []
    for epochs in (1, 2):
        held.append(made())  # two that live at once have two addresses
        optimizer = gt.optim.SGD(lr=held[-1])
        assert fit(net(), optimizer=optimizer, epochs=epochs, folder=tmp_path).epoch == epochs


def test_rates_that_are_tensors_are_compared(tmp_path):
    fit(net(), optimizer=gt.optim.SGD(lr=gt.tensor(0.1)), epochs=1, folder=tmp_path)
    with pytest.raises(gt.GradtapeError, match=r"'lr=0\.1' there, 'lr=0\.2' here"):
        fit(net(), optimizer=gt.optim.SGD(lr=gt.tensor(0.2)), folder=tmp_path)


def test_wrapped_optimizers_with_parameters_are_refused():
    class Wrapped:
        def __init__(self, optimizer):
            self.optimizer = optimizer
            self.init, self.apply = optimizer.init, optimizer.apply

    model = net()
    with pytest.raises(gt.GradtapeError, match="make it without"):
        fit(model, optimizer=Wrapped(gt.optim.Adam(model.parameters(), lr=0.01)))


def test_less_memory_same_bits():
    config = gt.CheckpointConfig(strategy=gt.CheckpointStrategy.Full)
    for one, other in zip(
        weights(fit(net()).model), weights(fit(net(), checkpoint=config).model), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("mode", "compiled"), [("BFloat16", False), ("Float16", True)])
def test_mixed_precision_trains_and_resumes(tmp_path, compiled, mode):
    seen = []

    def loss_seen(model, batch):
        hidden = model[0](batch[0])
        seen.append(str(hidden.dtype))
        return gt.mean((model[1](hidden) - batch[1]) ** 2)

    def run(epochs, folder):
        amp = gt.AmpConfig(precision_mode=gt.PrecisionMode[mode])
        options = {"clip": 1.0, "accumulate": 2, "amp": amp, "compile": compiled, "folder": folder}
        return fit(net(), loss=loss_seen, epochs=epochs, **options)

    whole = run(4, tmp_path / "a")
    assert set(seen) == {mode.lower()}
    plain = fit(net(), epochs=4, clip=1.0, accumulate=2)
    assert whole.losses == pytest.approx(plain.losses, rel=0.03)
    run(2, tmp_path / "b")
    resumed = run(4, tmp_path / "b")
    assert resumed.losses == whole.losses
    assert weights(resumed.model)[0].dtype == np.float32


@pytest.mark.parametrize("compiled", [False, True])
def test_steps_that_overflow_are_left_out(compiled):
    # Gradients of 16 bits are infinite at the first scales.
    scaler = gt.LossScaler.Dynamic(init_scale=2.0**26)
    amp = gt.AmpConfig(precision_mode=gt.PrecisionMode.Float16, loss_scaler=scaler)
    before = []
    run = fit(
        net(),
        data=[data()],
        epochs=30,
        amp=amp,
        clip=1.0,
        compile=compiled,
        callbacks=[lambda run: before.append(np.asarray(run.state["scaler"]["skipped"]).item())],
    )
    assert before[0] == 1
    assert run.losses[1] == run.losses[0]
    assert run.losses[-1] < run.losses[0]
    assert 1 < before[-1] == before[-10] < 20


@pytest.mark.parametrize("compiled", [False, True])
def test_accumulated_gradients_that_overflow_make_no_warnings(compiled):
    scaler = gt.LossScaler.Dynamic(init_scale=2.0**40)
    amp = gt.AmpConfig(precision_mode=gt.PrecisionMode.Float16, loss_scaler=scaler)
    x, y = data()
    batches = [(x, y + 100.0), (x, y - 100.0)]  # gradients are infinite with both signs
    run = fit(net(), data=batches, epochs=1, accumulate=2, amp=amp, compile=compiled)
    assert np.asarray(run.state["scaler"]["skipped"]).item() == 1


def test_gradients_that_are_never_finite_raise():
    amp = gt.AmpConfig(precision_mode=gt.PrecisionMode.Float16)
    with pytest.raises(gt.errors.NonFiniteError, match="however small the loss is scaled"):
        fit(
            np.zeros(2, np.float32),
            loss=lambda w, batch: gt.sum(np.sqrt(w)),
            data=[data()],
            amp=amp,
            epochs=80,
        )


def test_validation_is_in_eval_and_metrics_are_means():
    class Net(gt.nn.Module):
        def __init__(self):
            self.layer = gt.nn.Linear(4, 1)

        def forward(self, x):
            modes.append(self.training)
            return self.layer(x)

    modes, model = [], Net().eval()
    x, y = data(5)
    validation = [(x[:4], y[:4]), (x[4:], y[4:])]
    run = fit(
        model,
        epochs=2,
        validation=validation,
        metrics={"largest": lambda model, batch: np.max(np.abs(batch[1]))},
    )
    assert model.training
    assert modes == 2 * ([True] * 4 + [False] * 2)
    expected = (4 * np.abs(y[:4]).max() + np.abs(y[4:]).max()) / 5
    assert run.history["largest"] == pytest.approx([expected] * 2)
    assert run.history["validation_loss"][1] == pytest.approx(
        gt.training.evaluate(model, [(x, y)], {"loss": loss})["loss"], rel=1e-5
    )


def test_early_stopping_and_what_a_folder_says_of_it(tmp_path):
    optimizer = gt.optim.SGD(lr=1e-12)
    stopping = lambda patience: EarlyStopping(patience=patience, min_delta=0.1)  # noqa: E731
    options = {"optimizer": optimizer, "epochs": 20, "folder": tmp_path}
    run = fit(net(), callbacks=[stopping(3)], **options)
    assert run.epoch == 4
    assert "for 3 epochs" in run.stopped
    again = fit(net(), callbacks=[stopping(3)], **options)
    assert (again.epoch, again.stopped) == (4, run.stopped)


def test_the_best_model_is_kept(tmp_path):
    seen = []
    run = fit(
        net(),
        epochs=4,
        folder=tmp_path,
        validation=[data()],
        metrics={"score": lambda model, batch: [1.0, 3.0, 2.0, 0.0][len(seen)]},
        callbacks=[
            KeepBest("score", mode="max"),
            lambda run: seen.append(run.model.state_dict()["0.weight"].numpy().copy()),
        ],
    )
    assert run.history["score"] == [1.0, 3.0, 2.0, 0.0]
    best = gt.load(tmp_path / "best.safetensors")
    np.testing.assert_array_equal(best["0.weight"], seen[1])
    net().load_state_dict(best)
    assert gt.load_metadata(tmp_path / "best.safetensors")["epoch"] == "1"


def test_callbacks_that_watch_forget_another_run(tmp_path):
    stopping, best = EarlyStopping("score", patience=2, mode="min"), KeepBest("score", mode="min")
    for name, start in (("first", 0.0), ("second", 10.0)):
        values = iter([start + 3.0, start + 2.0, start + 2.5, start + 2.0, start])
        run = fit(
            net(),
            epochs=5,
            folder=tmp_path / name,
            validation=[data()],
            metrics={"score": lambda model, batch, values=values: next(values)},
            callbacks=[stopping, best],
        )
        assert run.epoch == 4
        assert stopping.best == best.best == start + 2.0
        assert (tmp_path / name / "best.safetensors").exists()


def test_schedulers_go_on_with_the_run(tmp_path):
    def run(epochs, folder, way):
        optimizer = gt.optim.SGD(lr=0.4, momentum=0.1)
        if way == "cycle":
            cycle = gt.optim.OneCycleLR(optimizer, max_lr=0.05, total_steps=17)
            callback = ScheduleRate(cycle, every="step")
        elif way == "plateau":
            scheduler = gt.optim.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
            callback = ScheduleRate(scheduler, monitor="fixed")
        else:
            callback = ScheduleRate(gt.optim.ExponentialLR(optimizer, 0.9), every=way)
        made = fit(
            net(),
            optimizer=optimizer,
            epochs=epochs,
            folder=folder,
            callbacks=[callback],
            validation=[data()],
            metrics={"fixed": lambda model, batch: 1.0},
        )
        return made, optimizer.lr, optimizer.defaults["momentum"]

    rates = {"epoch": 0.4 * 0.9**4, "step": 0.4 * 0.9**16, "plateau": 0.05, "cycle": 0.05 / 25e4}
    for way, rate in rates.items():
        whole, *last = run(4, tmp_path / way / "whole", way)
        assert last == pytest.approx([rate, 0.95 if way == "cycle" else 0.1])
        run(2, tmp_path / way / "cut", way)
        resumed, *again = run(4, tmp_path / way / "cut", way)
        assert again == last
        assert resumed.losses == whole.losses


def test_the_model_alone_is_loaded_from_a_checkpoint(tmp_path):
    run = fit(net(), folder=tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    model = gt.nn.Sequential(gt.nn.Linear(4, 8), gt.nn.Linear(8, 1))
    before = gt.random.default_generator().state_dict()["state"]
    found = gt.training.load_checkpoint(path, model)
    assert found.model is model
    assert found.state is None
    np.testing.assert_array_equal(gt.random.default_generator().state_dict()["state"], before)
    for one, other in zip(weights(model), weights(run.model), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(gt.GradtapeError, match="the model that was saved differs"):
        gt.training.load_checkpoint(path, net(3))
    with pytest.raises(gt.GradtapeError, match="a state, but not the optimizer"):
        gt.training.load_checkpoint(path, model, state={})


def test_numbers_that_are_set_go_on_with_a_loop_by_hand(tmp_path):
    def made():
        model = net()
        return model, gt.optim.Adam(model.parameters(), lr=0.1)

    path = tmp_path / "checkpoint"
    model, optimizer = made()
    optimizer.defaults["eps"], optimizer.defaults["betas"] = 1e-4, (0.5, 0.9)
    gt.training.save_checkpoint(path, model, optimizer)
    model, optimizer = made()
    optimizer.defaults["weight_decay"] = 0.5
    gt.training.load_checkpoint(path, model, optimizer)
    numbers = optimizer.defaults
    assert (numbers["eps"], numbers["betas"], numbers["weight_decay"]) == (1e-4, (0.5, 0.9), 0.0)


def test_arrays_of_callbacks_go_on_with_the_run(tmp_path):
    class Average:
        """A running mean of the weights."""

        def __init__(self):
            self.mean = {}

        def on_batch_end(self, run):
            for name, value in run.model.state_dict().items():
                self.mean[name] = 0.5 * (self.mean.get(name, 0) + value.numpy())

        def state_dict(self):
            return {**self.mean, "note": "kept"}

        def load_state_dict(self, state):
            assert state.pop("note") == "kept"
            self.mean = state

    def run(epochs, folder):
        average = Average()
        fit(net(), epochs=epochs, folder=folder, callbacks=[average])
        return average.mean

    whole = run(4, tmp_path / "whole")
    run(2, tmp_path / "cut")
    resumed = run(4, tmp_path / "cut")
    assert list(whole) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    for name, value in whole.items():
        np.testing.assert_array_equal(resumed[name], value)


def test_logs_have_a_row_for_each_epoch_after_resuming(tmp_path):
    class Fail:
        def on_epoch_end(self, run):
            if run.epoch == 2:
                raise RuntimeError("power cut")

    def logs():
        return [CSVLog(tmp_path / "log.csv"), JSONLog(tmp_path / "own.jsonl")]

    with pytest.raises(RuntimeError, match="power cut"):
        fit(net(), folder=tmp_path, callbacks=[*logs(), Fail()])
    assert len((tmp_path / "own.jsonl").read_text().splitlines()) == 3
    with (tmp_path / "own.jsonl").open("a") as file:
        file.write('{"epoch": 3, "lo')
    run = fit(net(), folder=tmp_path, callbacks=logs())
    for name in ("own.jsonl", "log.jsonl"):
        rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        assert [row["loss"] for row in rows] == run.losses
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == run.losses
    assert [row["epoch"] for row in rows] == ["0", "1", "2"]


def test_event_files(tmp_path):
    pytest.importorskip("tensorboardX", reason="in the extra tensorboard")
    fit(net(), callbacks=[gt.training.TensorBoardLog(tmp_path)])
    (path,) = tmp_path.glob("events.out.tfevents.*")
    assert b"loss" in path.read_bytes()


def test_progress_is_for_terminals_only(capsys):
    gt.fit(net(), loss, gt.optim.SGD(lr=0.1), loader(), epochs=1)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize(("width", "validation"), [(80, False), (120, True)])
def test_progress_fits_into_a_line(width, validation):
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    bar = gt.training.Progress(console)
    fit(net(), epochs=2, data=loader(), validation=loader(), callbacks=[bar])
    (line,) = [text for text in console.file.getvalue().splitlines() if "epoch 2/2" in text][-1:]
    assert ("validation" in line) is validation
    assert all(word in line for word in ("loss", "steps/s", "MB", "left 0:00:00"))
    assert "…" not in line


def test_checkpoints_as_often_as_asked(tmp_path, monkeypatch):
    from gradtape.training import run as runs

    places, save = [], runs.save_checkpoint

    def noted(*args, progress, **kwargs):
        places.append((progress["epoch"], progress["batch"]))
        save(*args, progress=progress, **kwargs)

    monkeypatch.setattr(runs, "save_checkpoint", noted)
    fit(net(), folder=tmp_path / "a", save=SaveEvery(epochs=2))
    assert places == [(2, 0), (3, 0)]
    places.clear()
    fit(net(), folder=tmp_path / "b", epochs=1, save=SaveEvery(batches=3), accumulate=2)
    assert places == [(0, 4), (1, 0)]
    places.clear()
    fit(net(), folder=tmp_path / "c", epochs=1, save=SaveEvery(seconds=0))
    assert places == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 0)]


# ---- what goes wrong ----------------------------------------------------------------------------


def test_a_loss_that_is_nan_is_named_and_what_was_good_is_kept(tmp_path):
    x, y = data()
    source = [(x[:8], y[:8]), (x[8:], y[8:])]
    model = net()
    fit(model, data=source, epochs=1, folder=tmp_path)
    before, kept = weights(model), (tmp_path / "checkpoint.safetensors").read_bytes()
    bad = [source[0], (x[8:] * np.float32("nan"), y[8:])]
    message = r"epoch 1, batch 1: the loss is nan.* holds the state of the end of epoch 0"
    with pytest.raises(gt.errors.NonFiniteError, match=message):
        fit(net(), data=bad, folder=tmp_path)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == kept
    run = fit(net(), data=source, epochs=1, folder=tmp_path)
    for one, other in zip(weights(run.model), before, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, gt.bfloat16])
def test_weights_that_are_not_finite_raise_without_a_folder(compiled, dtype):
    with pytest.raises(gt.errors.NonFiniteError, match=r"the end of epoch 0: .*NaN or infinite"):
        fit(
            np.array([0.0, 1.0], dtype),
            loss=lambda w, batch: gt.sum(np.sqrt(w)),
            data=[data()],
            epochs=1,
            compile=compiled,
            optimizer=gt.optim.SGD(lr=0.1),
        )


@pytest.mark.parametrize(
    "lost",
    [
        lambda model, batch: loss(model, batch).detach(),
        lambda model, batch: gt.no_grad()(loss)(model, batch),
        lambda model, batch: gt.mean(batch[1] ** 2),
        lambda model, batch: 1.0,
    ],
)
@pytest.mark.parametrize("options", [{}, {"compile": True}, {"amp": gt.AmpConfig()}])
def test_losses_that_do_not_depend_on_parameters_raise(lost, options):
    with pytest.raises(gt.GradtapeError, match="does not depend on the parameters"):
        fit(net(), loss=lost, **options)


@pytest.mark.parametrize(("compiled", "own"), [(False, False), (False, True), (True, False)])
def test_a_batch_of_nan_leaves_running_means_as_they_were(compiled, own):
    model = gt.nn.Sequential(gt.nn.Linear(4, 3), gt.nn.BatchNorm1d(3), gt.nn.Linear(3, 1))
    x, y = data(8)
    params = model.parameters() if own else None
    optimizer = gt.optim.SGD(params, lr=0.1)
    fit(model, optimizer=optimizer, data=[(x, y)], epochs=1, compile=compiled)
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    with pytest.raises(gt.errors.NonFiniteError):
        fit(model, optimizer=optimizer, data=[(x * np.nan, y)], epochs=1, compile=compiled)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name], err_msg=name)


@pytest.mark.parametrize("compiled", [False, True])
def test_weights_that_are_not_finite_are_not_saved(tmp_path, compiled):
    # The loss is finite, its slope is not: the step makes NaN of the weights.
    with pytest.raises(gt.errors.NonFiniteError, match=r"the end of epoch 0: .*not saved"):
        fit(
            np.array([0.0, 1.0]),
            loss=lambda w, batch: gt.sum(np.sqrt(w)),
            data=[data()],
            epochs=2,
            folder=tmp_path,
            compile=compiled,
            optimizer=gt.optim.SGD(lr=0.1),
        )
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_gradients_that_cannot_be_clipped_are_named():
    with pytest.raises(gt.errors.NonFiniteError, match="epoch 0, batch 0: clip_by_global_norm"):
        fit(
            np.array([0.0, 1.0]),
            loss=lambda w, batch: gt.sum(np.sqrt(w)),
            data=[data()],
            clip=1.0,
        )


def test_a_full_disk_is_told_and_the_old_checkpoint_is_whole(tmp_path):
    fit(net(), epochs=2, folder=tmp_path)
    kept = (tmp_path / "checkpoint.safetensors").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(gt.errors.SaveError, match=r"File too large.*last checkpoint is whole"):
            fit(net(), epochs=3, folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == kept
    assert not list(tmp_path.glob(".gradtape*"))
    assert fit(net(), epochs=3, folder=tmp_path).epoch == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda: fit_into(net(9)), r"Linear\(4, 8\): .* there, .*Linear\(4, 9\)"),
        (lambda: fit_into(gt.nn.Sequential(gt.nn.Linear(4, 1))), "the model that was saved"),
        (lambda: fit_into(net(), optimizer=gt.optim.SGD(lr=0.01)), "'Adam' there, 'SGD' here"),
        (lambda: fit_into(net(), optimizer=gt.optim.Adam(lr=0.02)), "lr=0.01, got lr=0.02"),
        (lambda: fit_into(net(), optimizer=gt.optim.Adam(lr=0.01, eps=1e-3)), "eps=1e-08"),
        (lambda: fit_into(net(), epochs=1), "holds a run of 2 epochs"),
        (lambda: fit_into(net().double()), "float32"),
    ],
)
def test_a_folder_of_another_run_is_refused(tmp_path, changed, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit_into(net(), epochs=2)
    kept = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    with pytest.raises(gt.GradtapeError, match=message):
        changed()
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == kept


def fit_into(model, **options):
    return fit(model, folder="run", **options)


def test_other_data_in_the_middle_of_an_epoch_are_refused(tmp_path):
    class Stop:
        def on_batch_end(self, run):
            if run.step == 2:
                raise KeyboardInterrupt

    options = {"folder": tmp_path, "save": SaveEvery(batches=1)}
    with pytest.raises(KeyboardInterrupt):
        fit(net(), callbacks=[Stop()], **options)
    with pytest.raises(KeyboardInterrupt):
        fit(net(), callbacks=[Stop()], **options)
    with pytest.raises(gt.GradtapeError, match="epoch 0 up to batch"):
        fit(net(), data=loader(seed=1), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": iter([1])}, "gone through once only"),
        ({"data": 3}, "got an int as data"),
        ({"epochs": -1}, "epochs=-1"),
        ({"accumulate": 0}, "accumulate=0"),
        ({"data": data()}, r"a tuple of arrays as data, .*TensorDataset\(x, y\)"),
        ({"data": gt.data.TensorDataset(*data())}, "DataLoader"),
        ({"data": "abc"}, "got a str as data"),
        ({"data": data()[0]}, r"an ndarray of shape \(32, 4\) as data, .*TensorDataset"),
        ({"data": ()}, "no batches"),
        ({"validation": []}, "no batches"),
        ({"epochs": "3"}, "epochs='3', expected an integer"),
        ({"epochs": 1.5}, "epochs=1.5"),
        ({"accumulate": True}, "accumulate=True"),
        ({"clip": -1.0}, "fit: got clip=-1.0"),
        ({"clip": "1"}, "fit: got clip='1'"),
        ({"amp": gt.bfloat16}, "expected a gt.AmpConfig"),
        ({"compile": "no"}, "got 'no' for compile"),
        ({"progress": None}, "for progress"),
        ({"save": 5}, "an int for save, expected a gt.training.SaveEvery"),
        ({"folder": 3}, "got 3 for folder"),
        ({"folder": __file__}, "expected one to write to: .* exists"),
        ({"metrics": [loss], "validation": [data()]}, "a list for metrics"),
        ({"metrics": {"m": 3}, "validation": [data()]}, "the metric 'm'"),
        ({"metrics": {"loss": loss}, "validation": [data()]}, "name 'loss', expected"),
        ({"metrics": {"lr": loss}, "validation": [data()]}, "name 'lr', expected"),
        ({"callbacks": EarlyStopping()}, r"an EarlyStopping for callbacks, .*\[callback\]"),
        ({"callbacks": [EarlyStopping]}, "as a callback"),
        ({"callbacks": [gt.optim.StepLR(gt.optim.SGD(lr=0.1), 1)]}, "ScheduleRate"),
        ({"loss": gt.nn.CrossEntropyLoss()}, r"got a CrossEntropyLoss as loss, .*model, batch"),
        ({"loss": gt.nn.mse_loss}, r"got mse_loss as loss"),
        ({"callbacks": [None]}, "got None as a callback"),
        ({"optimizer": 0.1}, "got a float as optimizer"),
        ({"optimizer": gt.optim.Adam}, "the class Adam as optimizer"),
        ({"loss": 3}, "as loss"),
        ({"metrics": {"m": loss}}, "use validation="),
        (
            {"callbacks": [ScheduleRate(gt.optim.StepLR(gt.optim.SGD(lr=0.1), 2))]},
            "a StepLR of another optimizer",
        ),
        ({"callbacks": [KeepBest()]}, r"use fit\(\.\.\., folder="),
        (
            {"callbacks": [EarlyStopping("accuracy", mode="max")]},
            "EarlyStopping: got monitor='accuracy', expected one of 'loss', .*; .* validation=",
        ),
        ({"optimizer": gt.optim.SGD([gt.ones(2, requires_grad=True)], lr=0.1)}, "does not have"),
    ],
)
def test_bad_input(options, message):
    model = net().eval()
    before = weights(net())
    with pytest.raises(gt.GradtapeError, match=message):
        fit(model, **options)
    if "callbacks" not in options:
        assert not model.training
        for one, other in zip(weights(model), before, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m, b: None, "the loss returned None, .* is a return missing"),
        (lambda m, b: (loss(m, b), 1.0), "the loss returned a tuple, .*one number"),
        (lambda m, b: m(b[0]), r"fit: the loss returned shape \(8, 1\), .*gt.mean"),
    ],
)
def test_a_loss_that_is_no_number(wrong, message, compiled):
    with pytest.raises(gt.GradtapeError, match=message):
        fit(net(), loss=wrong, compile=compiled)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (lambda m, b: m(b[0]), r"fit: the metric 'error' returned shape \(32, 1\)"),
        (lambda m, b: None, "the metric 'error' returned None"),
        (lambda m, b: "high", "the metric 'error' returned a str, expected a real number"),
    ],
)
def test_a_metric_that_is_no_number_is_named(metric, message):
    with pytest.raises(gt.GradtapeError, match=message):
        fit(net(), validation=[data()], metrics={"error": metric})


@pytest.mark.parametrize("watching", [EarlyStopping, KeepBest])
def test_whether_a_metric_is_to_be_high_or_low_is_said(watching):
    with pytest.raises(gt.GradtapeError, match=r"monitor='accuracy' and no mode; .*mode='max'"):
        watching("accuracy")
    for loss_name in (None, "loss", "validation_loss"):
        assert watching(loss_name).best == np.inf
    assert watching("accuracy", mode="max").best == -np.inf


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    optimizer = gt.optim.Adam(lr=0.01)
    gt.training.save_checkpoint(path, net(), optimizer, {})
    with pytest.raises(gt.GradtapeError, match="a loop by hand saved"):
        fit(net(), folder=tmp_path)
    gt.save(path, net().state_dict())
    with pytest.raises(gt.errors.FileFormatError, match="expected a file that save_checkpoint"):
        fit(net(), folder=tmp_path)
    path.write_bytes(b"something else")
    with pytest.raises(gt.errors.FileFormatError):
        fit(net(), folder=tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": -1}, {"epoch": 1.5}, {"epoch": "a"}, {"epoch": None}, {"batch": -3},
        {"step": None}, {"items": True}, {"seconds": "a"}, {"loss_sum": []}, {"stopped": 3},
        {"history": 3}, {"history": {}}, {"history": {"loss": [1.0]}},
        {"history": {"loss": [1.0, "a"]}}, {"callbacks": {"x": 3}}, {"order": ...},
        {"random": 3}, {"random": {"default": {"state": ["a"] * 4}}},
        {"random": {"default": {"state": [1]}}}, {"model": 3}, {"progress": 3},
        {"numbers": {"lr": -1.0}}, {"numbers": {"lr": "a"}}, {"numbers": {"speed": 1.0}},
        {"numbers": {"betas": [0.9]}}, {"numbers": 3},
    ],
)  # fmt: skip
def test_hostile_checkpoints_change_nothing(tmp_path, changes):
    path = tmp_path / "checkpoint.safetensors"
    fit(net(), epochs=2, folder=tmp_path)
    known = json.loads(gt.load_metadata(path)["training"])
    ((name, value),) = changes.items()
    holder = known if name in known else known["progress"]
    holder[name] = value
    if value is ...:
        del holder[name]
    gt.save(path, gt.load(path), metadata={"training": json.dumps(known)})
    model, optimizer = net(), gt.optim.Adam(lr=0.01)
    before = gt.random.default_generator().state_dict()["state"]
    with pytest.raises(gt.GradtapeError):
        fit(model, optimizer=optimizer, folder=tmp_path)
    assert optimizer.lr == 0.01
    np.testing.assert_array_equal(gt.random.default_generator().state_dict()["state"], before)
    for one, other in zip(weights(model), weights(net()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_states_of_callbacks_that_cannot_be_saved(tmp_path):
    class Bad:
        def on_epoch_end(self, run):
            pass

        def state_dict(self):
            return {"held": object()}

        def load_state_dict(self, state):
            pass

    fit(net(), epochs=1, folder=tmp_path)
    kept = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(gt.GradtapeError, match="state of a callback, that json cannot write"):
        fit(net(), epochs=2, folder=tmp_path, callbacks=[Bad()])
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == kept


def test_metrics_that_come_later(tmp_path):
    fit(net(), epochs=1, folder=tmp_path)
    metrics = {"one": lambda model, batch: 1.0}
    callbacks = [CSVLog(tmp_path / "log.csv")]
    options = {"validation": [data()], "metrics": metrics, "callbacks": callbacks}
    run = fit(net(), epochs=2, folder=tmp_path, **options)
    assert np.isnan(run.history["one"][0])
    assert run.history["one"][1] == 1.0
    first, second = (json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines())
    assert (first["one"], second["one"]) == (None, 1.0)
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3


def test_a_model_that_is_frozen():
    with pytest.raises(gt.GradtapeError, match="without parameters to train"):
        fit(net().requires_grad_(False))


def test_empty_data():
    class Empty:
        def __iter__(self):
            return iter(())

    with pytest.raises(gt.GradtapeError, match="no batches in epoch 0"):
        fit(net(), data=Empty())
