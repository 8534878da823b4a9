"""Callbacks that watch a training: they see it, change nothing, and go on after an interruption."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError
from gradtape.tools.peak_memory import resident_and_peak
from gradtape.training import WatchGradients, WatchMemory, watching


def data():
    x = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    return gt.data.DataLoader(gt.data.TensorDataset(x, np.sin(x[:, :1])), 8, shuffle=True, seed=0)


def net():
    gt.manual_seed(0)
    layers = [gt.nn.Linear(4, 8), gt.nn.BatchNorm1d(8), gt.nn.ReLU(), gt.nn.Dropout(0.2)]
    return gt.nn.Sequential(*layers, gt.nn.Linear(8, 1))


def loss(model, batch):
    return gt.mean((model(batch[0]) - batch[1]) ** 2)


def watch(**options):
    return WatchGradients(loss, next(iter(data())), **options)


def fit(*callbacks, epochs=3, **options):
    return gt.fit(
        net(), loss, gt.optim.Adam(lr=0.01), data(), epochs=epochs, callbacks=callbacks,
        progress=False, **options,
    )  # fmt: skip


def values(run):
    return [value.numpy() for value in run.model.state_dict().values()]


@pytest.mark.parametrize("compile", [False, True])
def test_watching_keeps_the_bits(compile):
    one, health = watch(every=5), None
    plain, watched = fit(compile=compile), fit(one, WatchMemory(), compile=compile)
    health = one.reports
    for here, there in zip(values(plain), values(watched), strict=True):
        np.testing.assert_array_equal(here, there)
    assert [report.step for report in health] == [1, 6, 11]
    assert [layer.name for layer in health[0].layers] == ["0", "1", "2", "4"]
    assert all(0 < report["0"].update < 0.1 for report in health)


def test_reports_are_those_of_the_model_at_that_step():
    one = watch(every=12)
    run = fit(one, epochs=4)
    assert [report.step for report in one.reports] == [1, 13]
    last = watch(every=1)
    fit(last, epochs=4)
    again = gt.gradient_health(run.model, loss, next(iter(data())))
    assert last.report["4"].gradient_norm == again["4"].gradient_norm


def test_a_run_goes_on_with_its_reports(tmp_path):
    whole, cut, rest = (watch(every=3) for _ in range(3))
    fit(whole, epochs=4)
    fit(cut, epochs=2, folder=tmp_path)
    fit(rest, epochs=4, folder=tmp_path)
    assert rest.reports == whole.reports
    assert len(rest.reports) > len(cut.reports) > 1


def test_memory_is_sampled_and_thinned_out(monkeypatch, tmp_path):
    if resident_and_peak() is None:
        pytest.skip("this system does not tell how much memory is in use")
    monkeypatch.setattr(watching, "_MOST_SAMPLES", 8)
    memory = WatchMemory()
    fit(memory, folder=tmp_path)
    assert [step for step, _ in memory.samples] == [1, 3, 5, 7, 9, 11]
    assert all(size > 1e6 for _, size in memory.samples)
    again = WatchMemory()
    fit(again, folder=tmp_path)
    assert again.samples == memory.samples


def test_history_has_the_learning_rate():
    optimizer = gt.optim.SGD(lr=0.4)
    halve = gt.training.ScheduleRate(gt.optim.StepLR(optimizer, 1, gamma=0.5))
    run = gt.fit(net(), loss, optimizer, data(), epochs=3, callbacks=[halve], progress=False)
    assert run.history["lr"] == [0.4, 0.2, 0.1]


def test_no_report_yet():
    with pytest.raises(ArgumentError, match="it takes a step"):
        watch().report  # noqa: B018
    with pytest.raises(ArgumentError, match="every=0"):
        watch(every=0)
    with pytest.raises(ArgumentError, match="every=0"):
        WatchMemory(every=0)
