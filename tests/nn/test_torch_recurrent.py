"""RNN, LSTM, GRU and their cells against PyTorch: states both ways, results and gradients."""

import numpy as np
import pytest

import gradtape as gt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch_pairs import compare, pair  # noqa: E402 - it needs PyTorch

STEPS, BATCH, INPUTS, UNITS = 5, 3, 4, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(STEPS, BATCH, INPUTS))
LENGTHS = np.array([3, 5, 1])


def states(name, places, shape, proj_size=0):
    h = RNG.normal(size=(places, *shape, proj_size or UNITS))
    return [h, RNG.normal(size=(places, *shape, UNITS))] if name == "LSTM" else [h]


def as_hx(name, given):
    return tuple(given) if name == "LSTM" else given[0]


OPTIONS = [
    {},
    {"bias": False},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
]
CASES = [
    *((name, options) for name in ("RNN", "LSTM", "GRU") for options in OPTIONS),
    ("RNN", {"nonlinearity": "relu"}),
    ("LSTM", {"proj_size": 2, "num_layers": 2, "bidirectional": True}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("packed", [False, True])
def test_a_layer_equals_pytorchs(name, options, packed):
    ours, theirs = pair(name, INPUTS, UNITS, **options)
    first = options.get("batch_first", False)
    x = np.moveaxis(X, 0, 1).copy() if first else X
    places = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    given = states(name, places, (BATCH,), options.get("proj_size", 0))
    rnn = torch.nn.utils.rnn

    def run_theirs(x, *hx):
        if not packed:
            return theirs(x, as_hx(name, hx))
        rows = rnn.pack_padded_sequence(x, torch.tensor(LENGTHS), first, enforce_sorted=False)
        out, last = theirs(rows, as_hx(name, hx))
        return rnn.pad_packed_sequence(out, first)[0], last

    def run_ours(x, *hx):
        return ours(x, as_hx(name, hx), lengths=LENGTHS if packed else None)

    compare(ours, theirs, run_ours, run_theirs, [x, *given])


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_single_sequence_without_a_first_state(name):
    ours, theirs = pair(name, INPUTS, UNITS)
    compare(ours, theirs, ours, theirs, [X[:, 0]])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(BATCH,), ()])
@pytest.mark.parametrize(
    ("name", "options"),
    [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {})],
    ids=str,
)
def test_a_cell_equals_pytorchs(name, options, shape, bias):
    ours, theirs = pair(name, INPUTS, UNITS, bias, **options)
    kind = name.removesuffix("Cell")
    given = [h[0] for h in states(kind, 1, shape)]

    def run(cell):
        return lambda x, *hx: (cell(x), cell(x, as_hx(kind, hx)))

    compare(ours, theirs, run(ours), run(theirs), [X[0] if shape else X[0, 0], *given])


def test_first_values_have_pytorchs_bound():
    for name in ("RNN", "LSTM", "GRU", "LSTMCell"):
        layer = getattr(gt.nn, name)(200, 100)
        for weights in layer.parameters():
            top = float(abs(weights.detach().numpy()).max())
            assert 0.09 < top <= 0.1, name
