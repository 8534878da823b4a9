"""Reports of trainings: what is on the page, and that nothing in it can break out."""

import json
import os
from html.parser import HTMLParser

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import ArgumentError, FileFormatError, NonFiniteError

EVIL = '</script><img src=x onerror="alert(1)"> & "quoted" \u2028 {{data}} {{title}} é'


class Page(HTMLParser):
    """The tags of a page, and the text of the element that has the data."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.data = self.title = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = "data" if ("id", "data") in attrs else tag

    def handle_data(self, data):
        if self._inside == "data":
            self.data += data
        elif self._inside == "title":
            self.title += data

    def handle_endtag(self, tag):
        self._inside = ""


def data_of(report):
    return json.loads(Page(report.html()).data)


def report_of(history=None, **options):
    return data_of(gt.TrainingReport(history, **options))


def loss(net, batch):
    return gt.mean((net(batch[0]) - batch[1]) ** 2)


def batch():
    x = np.random.default_rng(0).normal(size=(16, 2)).astype(np.float32)
    return x, x[:, :1]


def made():
    gt.manual_seed(0)
    return gt.nn.Sequential(gt.nn.Linear(2, 4), gt.nn.Tanh(), gt.nn.Linear(4, 1))


def trained(folder=None, epochs=3):
    watch = gt.training.WatchGradients(loss, batch(), every=4)
    callbacks = [watch, gt.training.WatchMemory()]
    options = {"epochs": epochs, "folder": folder, "callbacks": callbacks, "progress": False}
    return gt.fit(made(), loss, gt.optim.Adam(lr=0.01), [batch()] * 4, **options)


# ---- the page -----------------------------------------------------------------------------------


def test_page_is_one_file_and_text_stays_text(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    report = gt.TrainingReport(
        {"loss": [1.0], EVIL: [2.0]},
        title=EVIL,
        confusion=([0, 1], [1, 1]),
        classes=[EVIL, "b"],
        health=gt.gradient_health({EVIL: np.ones((2, 1))}, _linear, batch()),
        model=EVIL,
        settings={EVIL: EVIL},
    )
    report.save(path)
    assert os.listdir(tmp_path) == ["report.html"]
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    data = json.loads(page.data)
    assert page.title == data["title"] == EVIL
    assert data["confusion"]["classes"] == [EVIL, "b"]
    assert data["settings"] == [[EVIL, EVIL]]
    assert data["health"]["layers"][0][0] == EVIL
    assert not {"link", "img", "iframe"} & set(page.tags)
    assert not {"src", "href", "onerror"} & {name for name, _ in page.attributes}
    assert "<img" not in text.replace("&lt;img", "")
    assert "default-src 'none'" in text
    without = text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "http" not in without
    assert os.path.expanduser("~") not in data["model"]
    with pytest.raises(OSError, match="missing"):
        report.save(tmp_path / "missing" / "report.html")


def _linear(params, batch):
    (w,) = params.values()
    return gt.mean((batch[0] @ w - batch[1]) ** 2)


def test_script_has_an_element_for_each_name_it_asks_for():
    text = gt.TrainingReport().html()
    ids = {value for name, value in Page(text).attributes if name == "id"}
    made_later = {"matrix", "square"}
    asked = {part.split('"')[0] for part in text.split('byId("')[1:]}
    assert asked
    assert asked <= ids | made_later


def test_nothing_given_is_a_page_without_plots():
    data = report_of()
    assert data["panels"] == data["parameters"] == data["settings"] == []
    assert data["confusion"] is data["health"] is data["memory"] is None
    assert {name for name, _ in data["environment"]} >= {"gradtape", "NumPy", "threads"}


# ---- curves -------------------------------------------------------------------------------------


def test_losses_share_a_plot_and_so_do_metrics_of_a_name():
    names = ["loss", "validation_loss", "lr", "accuracy", "val_accuracy", "seconds", "f1"]
    panels = report_of({name: [1.0, 0.5] for name in names})["panels"]
    assert [(panel["title"], len(panel["series"])) for panel in panels] == [
        ("loss", 2),
        ("learning rate", 1),
        ("accuracy", 2),
        ("seconds for an epoch", 1),
        ("f1", 1),
    ]
    assert panels[0]["series"][1] == {
        "name": "validation loss",
        "points": [[0.0, 1.0], [1.0, 0.5]],
    }


def test_rows_of_a_log_are_a_history():
    rows = [{"epoch": 4, "loss": 1.0}, {"epoch": 5, "loss": 0.5, "accuracy": 0.9}]
    panels = report_of(rows)["panels"]
    assert panels[0]["series"][0]["points"] == [[4.0, 1.0], [5.0, 0.5]]
    assert panels[1]["series"][0]["points"] == [[4.0, None], [5.0, 0.9]]
    assert report_of([{"step": 7, "loss": 1.0}])["panels"][0]["axis"] == "step"


def test_values_that_are_not_finite_are_gaps_and_counted():
    panel = report_of({"loss": [None, 1.0, np.nan, np.inf, 0.5]})["panels"][0]
    assert [y for _, y in panel["series"][0]["points"]] == [None, 1.0, None, None, 0.5]
    assert panel["odd"] == 2
    assert report_of({"loss": [np.nan, np.nan]})["panels"][0]["odd"] == 2


def test_long_curves_keep_their_peaks():
    values = np.sin(np.arange(100_000) / 1000.0)
    values[[12_345, 70_001]] = 50.0, -50.0
    points = report_of({"loss": values})["panels"][0]["series"][0]["points"]
    assert len(points) <= 1000
    assert [12_345.0, 50.0] in points
    assert [70_001.0, -50.0] in points
    assert points == sorted(points)


# ---- the other parts ----------------------------------------------------------------------------


def test_confusion_is_sparse():
    labels = np.arange(200) % 100
    data = report_of(confusion=gt.ConfusionMatrix(labels, np.where(labels == 7, 3, labels)))
    assert len(data["confusion"]["cells"]) == 100
    assert [7, 3, 2] in data["confusion"]["cells"]
    assert data["confusion"]["confused"] == [["7", "3", 2]]
    assert data["confusion"]["recall"][7] == 0.0
    assert data["confusion"]["precision"][7] is None
    assert ["accuracy", "99.00%"] in data["totals"]


def test_health_over_time_has_a_row_for_each_layer():
    watch = gt.GradientHealth(net := made(), every=1)
    optimizer = gt.optim.SGD(net.parameters(), lr=1e30)

    def step():
        with watch:
            optimizer.zero_grad()
            loss(net, batch()).backward()
            optimizer.step()

    with np.errstate(all="ignore"):
        step()
        with pytest.raises(NonFiniteError):
            step()
    data = report_of(health=watch)["health"]
    assert data["steps"] == [1, 2]
    assert [name for name, _ in data["layers"]] == ["0", "1", "2"]
    ratios = data["maps"]["gradient / weights"]
    assert ratios[0][0] > 0
    assert ratios[0][1] == -1
    assert data["maps"]["saturated"][0][0] is None
    assert max(row[0] for row in data["maps"]["gradient / largest"] if row[0]) == 1.0
    assert ["0", "non-finite", 1, 2, 2] in data["verdicts"]
    assert any("NaN or infinite" in text for text in data["problems"])


def test_memory_of_a_profiler_is_over_seconds():
    with gt.GradientMemoryProfiler() as profiler:
        kept = gt.exp(gt.tensor(np.ones(1000), requires_grad=True))
    data = report_of(memory=profiler)["memory"]
    assert data["axis"] == "seconds"
    assert data["points"][-1][1] >= 8000
    assert kept.shape == (1000,)
    assert report_of(memory=[(0, 10), (1, 20)])["memory"]["axis"] == "step"


def test_model_is_listed_with_counts():
    data = report_of(model=made())
    assert data["model"].startswith("Sequential(\n  (0): Linear(2, 4)")
    assert data["parameters"][0] == ["0.weight", "[4, 2]", 8]
    assert ["parameters", "17"] in data["totals"]
    assert report_of(model={"w": np.ones((2, 3))})["parameters"] == [["w", "[2, 3]", 6]]


# ---- runs ---------------------------------------------------------------------------------------


def without_date(data):
    return {name: value for name, value in data.items() if name != "made"}


def test_run_and_its_folder_give_the_same_report(tmp_path):
    run = trained(tmp_path / "run")
    of_run = report_of(run, settings={"seed": 0})
    of_folder = data_of(gt.TrainingReport.from_folder(tmp_path / "run", settings={"seed": 0}))
    for part in ("panels", "health", "memory", "settings"):
        assert of_folder[part] == of_run[part]
    assert [panel["title"] for panel in of_run["panels"]] == [
        "loss",
        "seconds for an epoch",
        "learning rate",
    ]
    assert of_run["health"]["steps"] == [1, 5, 9]
    assert of_run["memory"] is None or len(of_run["memory"]["points"]) == 12
    assert of_run["settings"][1:] == [["epochs", "3"], ["steps", "12"], ["seed", "0"]]
    assert of_run["settings"][0][1].startswith("Adam, ")
    assert "Linear(2, 4)" in of_folder["model"]
    assert str(tmp_path) not in json.dumps([of_run, of_folder])


def test_folder_without_a_run_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        gt.TrainingReport.from_folder(tmp_path)
    trained(tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileFormatError):
        gt.TrainingReport.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"history": 3}, "got an int as history"),
        ({"history": {"loss": [1.0], "accuracy": []}}, "different lengths"),
        ({"history": {"loss": ["much"]}}, "in 'loss' of history, expected numbers"),
        ({"confusion": np.eye(3)}, "as confusion"),
        ({"health": ["good"]}, "as health"),
        ({"memory": [1, 2, 3]}, "expected pairs"),
    ],
)
def test_bad_input(options, match):
    with pytest.raises(ArgumentError, match=match):
        gt.TrainingReport(**options)
