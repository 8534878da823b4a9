"""Recurrent layers in transforms, against cells step by step, and on bad input."""

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.nn.layers.compiled_sequence import sequence

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 3, 4))
LENGTHS = np.array([3, 5, 0])
NAMES = ["RNN", "LSTM", "GRU"]


def made(name, *args, **kwargs):
    return getattr(gt.nn, name)(*args, dtype=np.float64, **kwargs)


def loss(net, x, lengths=None):
    out, last = net(x, lengths=lengths)
    return gt.sum(out**2) + sum(gt.sum(gt.sin(h)) for h in containers.flatten(last)[0])


def plain(x):
    return x.detach().numpy() if isinstance(x, gt.Tensor) else x


def assert_close(a, b, bound=1e-10):
    pairs = zip(containers.flatten(a)[0], containers.flatten(b)[0], strict=True)
    for x, y in pairs:
        np.testing.assert_allclose(plain(x), plain(y), rtol=bound, atol=bound)


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_takes_the_steps_of_its_cell(name):
    layer, cell = made(name, 4, 6), made(f"{name}Cell", 4, 6)
    cell.load_state_dict({key[:-3]: value for key, value in layer.state_dict().items()})
    state, outs = None, []
    for x in X:
        state = cell(x, state)
        outs.append(state[0] if name == "LSTM" else state)
    out, last = layer(X)
    np.testing.assert_allclose(out.detach(), gt.stack(outs).detach(), rtol=1e-12, atol=1e-14)
    ends = zip(last, state, strict=True) if name == "LSTM" else [(last, state)]
    for end, expected in ends:
        np.testing.assert_allclose(end[0].detach(), expected.detach(), rtol=1e-12, atol=1e-14)


def test_each_sequence_is_as_it_is_by_itself():
    layer = made("LSTM", 4, 6, bidirectional=True)
    x = X.copy()
    for column, length in enumerate(LENGTHS):
        x[length:, column] = np.nan  # is not read
    out, last = layer(x, lengths=LENGTHS)
    grads = gt.grad(loss)(layer, x, LENGTHS)
    total = [np.zeros(g.shape) for g in containers.flatten(grads)[0]]
    for column, length in enumerate(LENGTHS):
        assert (out[length:, column].detach().numpy() == 0).all()
        if not length:
            assert all(
                (h[:, column].detach().numpy() == 0).all() for h in containers.flatten(last)[0]
            )
            continue
        own, own_last = layer(x[:length, column])
        assert_close(out[:length, column].detach(), own.detach())
        firsts = zip(containers.flatten(last)[0], containers.flatten(own_last)[0], strict=True)
        assert_close(*zip(*((a[:, column].detach(), b.detach()) for a, b in firsts), strict=True))
        grads_of_it = containers.flatten(gt.grad(loss)(layer, x[:length, column]))[0]
        total = [a + b for a, b in zip(total, grads_of_it, strict=True)]
    assert_close(grads, total)


@pytest.mark.parametrize(("name", "lengths"), [("LSTM", None), ("GRU", LENGTHS)])
def test_transforms_agree(name, lengths):
    net = made(name, 4, 6, batch_first=lengths is not None)
    x = X if lengths is None else np.moveaxis(X, 0, 1)
    eager = gt.grad(loss)(net, x, lengths)
    loss(net, x, lengths).backward()
    assert_close([w.grad for w in net.parameters()], eager)
    assert_close(gt.jit(gt.grad(loss))(net, x, lengths), eager)
    with gt.no_grad():
        out, _ = net(x, lengths=lengths)
        assert not out.requires_grad
    tangent = containers.map_leaves(lambda w: gt.asarray(RNG.normal(size=w.shape)), net)
    slope = gt.jvp(lambda net: loss(net, x, lengths), (net,), (tangent,))[1]
    pairs = zip(containers.flatten(eager)[0], containers.flatten(tangent)[0], strict=True)
    expected = sum(np.vdot(plain(a), plain(b)) for a, b in pairs)
    assert slope.item() == pytest.approx(expected, rel=1e-10)


def test_vmap_over_samples_is_a_batch():
    net = made("LSTM", 4, 6)
    out = gt.vmap(lambda x: net(x)[0], in_axes=1, out_axes=1)(X)
    np.testing.assert_allclose(out.detach(), net(X)[0].detach(), rtol=1e-12)
    each = gt.vmap(gt.grad(loss), in_axes=(None, 1))(net, X)
    assert_close(containers.map_leaves(lambda g: gt.sum(g, axis=0), each), gt.grad(loss)(net, X))


def test_second_derivatives():
    net = made("GRU", 4, 3)

    net.requires_grad_(False)

    def slope(scale):
        return gt.grad(lambda s: loss(net, s * X))(scale)

    step = 1e-5
    expected = (slope(0.5 + step) - slope(0.5 - step)) / (2 * step)
    assert float(gt.grad(slope)(0.5)) == pytest.approx(float(expected), rel=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_does_not_grow_with_the_length(name):
    net = made(name, 4, 6)
    step = gt.jit(gt.grad(loss))
    short, long = (len(step.graph(net, np.ones((n, 3, 4))).nodes) for n in (5, 50))
    assert short == long


def test_batches_of_many_lengths_share_code():
    net = made("GRU", 4, 6)
    x = RNG.normal(size=(40, 2, 4))
    for steps in range(33, 41):
        known = set(sequence._forms)
        out, _ = net(x[:steps], lengths=[steps, 3])
        assert out.shape == (steps, 2, 6)
        new = set(sequence._forms) - known
        assert len(new) == (steps in (33, 37))
    assert_close(net(x[:33], lengths=[33, 33])[0], net(x[:33])[0])


def test_dropout_is_between_layers_and_in_training_only():
    net = made("RNN", 4, 6, 2, dropout=0.5)
    gt.manual_seed(0)
    one, two = net(X)[0].detach(), net(X)[0].detach()
    assert not np.array_equal(one, two)
    net.eval()
    np.testing.assert_array_equal(net(X)[0].detach(), net(X)[0].detach())
    single = made("RNN", 4, 6, dropout=0.5)
    np.testing.assert_array_equal(single(X)[0].detach(), single(X)[0].detach())


def test_dtypes_are_those_of_inputs_and_weights_together():
    net = gt.nn.LSTM(4, 6)
    out, (h, c) = net(X.astype(np.float32))
    assert {out.dtype, h.dtype, c.dtype} == {np.dtype(np.float32)}
    assert net(X)[0].dtype == np.float64


@pytest.mark.parametrize(
    ("name", "options"), [("RNN", {}), ("LSTM", {"proj_size": 2}), ("GRU", {})]
)
def test_under_autocast_products_are_narrow_and_the_state_is_not(name, options):
    net = getattr(gt.nn, name)(4, 6, **options)
    x = X.astype(np.float32)
    with gt.autocast():
        out, _ = net(x)
        gt.sum(out).backward()
    assert out.dtype == net.weight_hh_l0.grad.dtype == np.float32
    wide = plain(net(x)[0])
    assert 0 < abs(plain(out) - wide).max() < 0.02


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: gt.nn.LSTM(4, 0), ArgumentError, "LSTM: got hidden_size=0"),
        (lambda: gt.nn.LSTM(4, 6, proj_size=6), ArgumentError, "got proj_size=6, expected 0"),
        (lambda: gt.nn.RNN(4, 6, nonlinearity="elu"), ArgumentError, "nonlinearity='elu'"),
        (lambda: gt.nn.RNN(4, 6, dropout=2.0), ArgumentError, "got dropout=2.0"),
        (lambda: gt.nn.GRU(4, 6, dtype=int), DTypeError, "GRU: got dtype int64"),
        (lambda: made("GRU", 4, 6)(X[..., :3]), ShapeError, r"GRU: got x of shape \(5, 3, 3\)"),
        (lambda: made("GRU", 4, 6)(X[:0]), ShapeError, "without steps"),
        (lambda: made("GRU", 4, 6)(X, X), ShapeError, r"expected \(1, 3, 6\)"),
        (lambda: made("LSTM", 4, 6)(X, X), ArgumentError, "expected a pair"),
        (lambda: made("GRU", 4, 6)(X, lengths=[1, 2]), ShapeError, "got lengths of shape"),
        (lambda: made("GRU", 4, 6)(X, lengths=[1, 2, 6]), ArgumentError, "got a sequence of le"),
        (lambda: made("GRU", 4, 6)(X, lengths=[-1, 2, 3]), ArgumentError, "length -1, expected"),
        (lambda: made("GRU", 4, 6)(X, lengths=[1.0] * 3), DTypeError, "lengths of float64"),
        (lambda: made("GRUCell", 4, 6)(X), ShapeError, "GRUCell: got x of shape"),
        (lambda: made("GRUCell", 4, 6)(X[0], X[0]), ShapeError, r"expected \(3, 6\)"),
        (lambda: made("LSTMCell", 4, 6)(X[0], X[0]), ArgumentError, "LSTMCell.*expected a pair"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
