"""Attention, transformers, positions and LoRA: against plain NumPy, in transforms, on bad input."""

import copy

import numpy as np
import pytest

import gradtape as gt
from gradtape import containers
from gradtape.errors import ArgumentError, DTypeError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5, 8))
Y = RNG.normal(size=(3, 4, 8))
PADDING = np.arange(5) >= np.array([[5], [3], [4]])


def made(name, *args, **kwargs):
    return getattr(gt.nn, name)(*args, dtype=np.float64, **kwargs)


def attention(**kwargs):
    return made("MultiheadAttention", 8, 4, batch_first=True, **kwargs)


def plain(x):
    return x.detach().numpy() if isinstance(x, gt.Tensor) else x


def assert_close(a, b, bound=1e-10):
    for x, y in zip(containers.flatten(a)[0], containers.flatten(b)[0], strict=True):
        np.testing.assert_allclose(plain(x), plain(y), rtol=bound, atol=bound)


# ---- attention ----------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("need_weights", [False, True])
def test_groups_of_heads_share_keys_and_values(heads, need_weights):
    grouped, full = attention(num_kv_heads=heads), attention()
    # The same for all heads of a group: its rows, once for each head.
    w, b = plain(grouped.in_proj_weight), plain(grouped.in_proj_bias)
    b = b + RNG.normal(size=b.shape)
    grouped.in_proj_bias = gt.nn.Parameter(b)

    def rows(x):
        each = x.reshape(heads, 2, *x.shape[1:])
        return each.repeat(4 // heads, 0).reshape(8, *x.shape[1:])

    parts = [[x[:8], rows(x[8 : 8 + 2 * heads]), rows(x[8 + 2 * heads :])] for x in (w, b)]
    full.in_proj_weight, full.in_proj_bias = (gt.nn.Parameter(np.concatenate(p)) for p in parts)
    full.out_proj = grouped.out_proj
    for call in ({}, {"key_padding_mask": PADDING, "is_causal": True}):
        results = [net(X, X, X, need_weights=need_weights, **call) for net in (grouped, full)]
        assert_close(*results)


def test_weights_belong_to_the_result():
    net = attention()
    out, weights = net(Y, X, X, PADDING, average_attn_weights=False)
    fast, none = net(Y, X, X, PADDING, need_weights=False)
    assert none is None
    assert weights.shape == (3, 4, 4, 5)
    assert_close(fast, out)
    assert_close(gt.sum(weights, axis=-1), np.ones((3, 4, 4)))
    assert (plain(weights)[1, :, :, 3:] == 0).all()


@pytest.mark.parametrize("need_weights", [False, True])
def test_causal_attention_does_not_look_ahead(need_weights):
    net, changed = attention(), X.copy()
    changed[:, 3:] = 7.0
    for padding in (None, PADDING & False):
        one, two = (net(x, x, x, padding, need_weights, is_causal=True)[0] for x in (X, changed))
        assert_close(one[:, :3], two[:, :3])
        assert not np.allclose(plain(one)[:, 3:], plain(two)[:, 3:])


def test_a_query_that_sees_nothing_gets_the_bias():
    net = attention()
    closed = np.zeros((3, 5), bool)
    closed[1] = True
    for need_weights in (False, True):
        out, _ = net(X, X, X, closed, need_weights)
        assert_close(out[1], np.zeros((5, 8)) + plain(net.out_proj.bias))
        grads = gt.grad(lambda x: gt.sum(net.requires_grad_(False)(x, x, x, closed)[0]))(X)
        assert np.isfinite(grads).all()


def test_dropout_of_weights_in_training_only():
    net = attention(dropout=0.5)
    gt.manual_seed(0)
    for need_weights in (False, True):
        one, two = (plain(net.train()(X, X, X, need_weights=need_weights)[0]) for _ in "ab")
        assert not np.allclose(one, two)
        one, two = (plain(net.eval()(X, X, X, need_weights=need_weights)[0]) for _ in "ab")
        np.testing.assert_array_equal(one, two)


# ---- transformers -------------------------------------------------------------------------------


def loss(net, *args, **kwargs):
    return gt.sum(gt.sin(net(*args, **kwargs)))


def make_encoder():
    layer = made("TransformerEncoderLayer", 8, 2, 12, 0.0, batch_first=True, num_kv_heads=1)
    return gt.nn.TransformerEncoder(layer, 2, made("LayerNorm", 8))


def make_decoder():
    rotary = gt.nn.RotaryEmbedding(4)
    layer = made("TransformerDecoderLayer", 8, 2, 12, 0.0, batch_first=True, rotary=rotary)
    return gt.nn.TransformerDecoder(layer, 1)


@pytest.mark.parametrize(
    ("make", "args"), [(make_encoder, (X,)), (make_decoder, (Y, X))], ids=["encoder", "decoder"]
)
def test_transforms_agree(make, args):
    net = make()
    eager = gt.grad(loss)(net, *args)
    loss(net, *args).backward()
    assert_close([w.grad for w in net.parameters()], eager)
    assert_close(gt.jit(gt.grad(loss))(net, *args), eager)
    each = gt.vmap(gt.grad(loss), in_axes=(None, *(0,) * len(args)))(net, *args)
    assert_close(containers.map_leaves(lambda g: gt.sum(g, axis=0), each), eager)
    with gt.no_grad():
        assert not net(*args).requires_grad


def test_layers_of_a_stack_are_copies():
    layer = made("TransformerEncoderLayer", 8, 2, 12)
    net = gt.nn.TransformerEncoder(layer, 2)
    one, two = (each.linear1.weight for each in net.layers)
    assert_close(one, two)
    one.value[...] = 0.0
    assert not np.allclose(plain(two), 0.0)
    assert not np.allclose(plain(layer.linear1.weight), 0.0)
    # In a whole transformer, matrices are drawn anew.
    net = made("Transformer", 8, 2, 2, 1, 12)
    one, two = (plain(each.self_attn.in_proj_weight) for each in net.encoder.layers)
    assert not np.allclose(one, two)
    assert abs(one).max() <= (6 / 32) ** 0.5


def test_activations_by_name_or_function():
    make = lambda activation: made("TransformerEncoderLayer", 8, 2, 12, 0.0, activation)  # noqa: E731
    net = make("gelu")
    for other in (make(gt.nn.gelu), make(gt.nn.GELU())):
        other.load_state_dict(net.state_dict())
        assert_close(net(X), other(X))


# ---- positions ----------------------------------------------------------------------------------


def test_sinusoidal_encoding_is_that_of_the_article():
    place, j = np.arange(5)[:, None], np.arange(4)
    angles = place / 10000 ** (2 * j / 8)
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(5, 8)
    net = gt.nn.SinusoidalPositionalEncoding(8, batch_first=True)
    np.testing.assert_allclose(net(X), X + table, rtol=1e-12)
    first = gt.nn.SinusoidalPositionalEncoding(8)
    np.testing.assert_allclose(first(np.moveaxis(X, 0, 1)), np.moveaxis(X + table, 0, 1))
    np.testing.assert_allclose(first(X[0, 2:], 2), X[0, 2:] + table[2:], rtol=1e-12)
    np.testing.assert_allclose(gt.jit(first)(X[0, 2:], 2), X[0, 2:] + table[2:], rtol=1e-12)
    assert net(X.astype(np.float32)).dtype == np.float32


def test_learned_encoding():
    net = made("LearnedPositionalEncoding", 6, 8, batch_first=True)
    w = plain(net.weight)
    assert_close(net(X), X + w[:5])
    assert_close(net(X, 1), X + w[1:])
    assert_close(gt.jit(net)(X, 1), X + w[1:])
    grads = gt.grad(lambda net: gt.sum(net(X, 1)))(net)
    assert_close(grads.weight, np.r_[np.zeros((1, 8)), np.full((5, 8), 3.0)])
    with pytest.raises(ShapeError, match="got 5 places from 2 on, expected at most max_length=6"):
        net(X, 2)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("size", [4, 8])
def test_rotary_embedding_turns_pairs(interleaved, size):
    rotary = gt.nn.RotaryEmbedding(size, 100.0, 0.5, interleaved)
    half = size // 2
    angles = 0.5 * (2 + np.arange(5))[:, None] / 100.0 ** (2 * np.arange(half) / size)
    pick = (
        (slice(0, size, 2), slice(1, size, 2)) if interleaved else (slice(half), slice(half, size))
    )
    turned = (X[..., pick[0]] + 1j * X[..., pick[1]]) * np.exp(1j * angles)
    expected = X.copy()
    expected[..., pick[0]], expected[..., pick[1]] = turned.real, turned.imag
    for call in (rotary, gt.jit(rotary)):
        np.testing.assert_allclose(call(X, 2), expected, rtol=1e-12)
    slope = gt.grad(lambda x: gt.sum(rotary(x, 2) * X))(X)
    back = (X[..., pick[0]] + 1j * X[..., pick[1]]) * np.exp(-1j * angles)
    np.testing.assert_allclose(slope[..., pick[0]], back.real, rtol=1e-11)


def test_attention_with_rotary_embedding_sees_distances_only():
    net = attention(rotary=gt.nn.RotaryEmbedding(2))
    out, _ = net(X, X, X)
    assert not np.allclose(plain(out), plain(net(X[:, ::-1], X[:, ::-1], X[:, ::-1])[0])[:, ::-1])
    net.rotary.register_forward_pre_hook(lambda module, args: (args[0], 10))
    assert_close(net(X, X, X)[0], out)
    assert list(net.state_dict()) == [
        *("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
    ]


# ---- low-rank adaptation ------------------------------------------------------------------------


class Net(gt.nn.Module):
    """Linear layers in attributes and containers, one of them twice."""

    def __init__(self):
        self.head = made("Linear", 8, 4)
        self.layers = [made("Linear", 8, 8), {"inner": (made("Linear", 8, 8), 1)}]
        self.again = self.layers[0]

    def forward(self, x):
        x = self.again(gt.tanh(self.layers[1]["inner"][0](gt.tanh(self.layers[0](x)))))
        return self.head(x)


def trained(net):
    return [name for name, w in net.named_parameters() if w.requires_grad]


def test_lora_starts_as_the_model_and_trains_the_change_only():
    net = Net()
    before, state = plain(net(X)), {k: plain(v).copy() for k, v in net.state_dict().items()}
    assert gt.nn.lora(net, rank=2, alpha=3.0) is net
    assert_close(net(X), before)
    assert net.again is net.layers[0]
    assert len(trained(net)) == 6
    assert all("lora_" in name for name in trained(net))
    optimizer = gt.optim.Adam([w for w in net.parameters() if w.requires_grad], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        gt.sum(net(X) ** 2).backward()
        optimizer.step()
    after = plain(net(X))
    assert not np.allclose(after, before)
    for name, value in net.state_dict().items():
        if name in state:
            np.testing.assert_array_equal(plain(value), state[name])
    head = net.head
    w = plain(head.weight) + 3.0 / 2 * plain(head.lora_B) @ plain(head.lora_A)
    x = RNG.normal(size=(2, 8))
    assert_close(head(x), x @ w.T + plain(head.bias))


def test_merge_and_unmerge():
    net = gt.nn.lora(Net(), rank=2)
    for layer in {id(m): m for m in net.modules() if isinstance(m, gt.nn.LoRALinear)}.values():
        layer.lora_B = gt.nn.Parameter(RNG.normal(size=layer.lora_B.shape))
    out, names, first = plain(net(X)), trained(net), plain(net.head.weight).copy()
    adapted = [m for m in net.modules() if isinstance(m, gt.nn.LoRALinear)]
    for layer in adapted:
        assert layer.merge().merge().merged
    assert_close(net(X), out)
    assert trained(net) == []
    assert "lora_A" not in str(net.head.state_dict().keys())
    plain_net = Net()
    plain_net.load_state_dict(net.state_dict())
    assert_close(plain_net(X), out)
    assert_close(gt.jit(lambda net: net(X))(net), out)
    copied = copy.deepcopy(net)
    for layer in adapted:
        layer.unmerge()
    np.testing.assert_array_equal(plain(net.head.weight), first)
    assert trained(net) == names
    assert_close(net(X), out)
    copied.head.unmerge()
    assert copied.head.lora_A is not net.head.lora_A
    assert_close(copied(X), out)


def test_merging_leaves_a_tied_weight_alone():
    net = gt.nn.Module()
    net.embedding, net.head = made("Embedding", 6, 4), made("Linear", 4, 6)
    net.head.weight = net.embedding.weight
    gt.nn.lora(net, rank=2)
    net.head.lora_B = gt.nn.Parameter(np.ones((6, 2)))
    ids = np.arange(6)
    before, out = plain(net.embedding(ids)).copy(), plain(net.head(X[..., :4]))
    net.head.merge()
    assert_close(net.embedding(ids), before)
    assert_close(net.head(X[..., :4]), out)
    assert net.head.unmerge().weight is net.embedding.weight


def test_a_merged_weight_that_was_changed_is_not_taken_apart():
    layer = gt.nn.LoRALinear(made("Linear", 8, 4), 2).merge()
    layer.load_state_dict({"weight": np.ones((4, 8)), "bias": np.ones(4)})
    with pytest.raises(ArgumentError, match="not the one that merge made"):
        layer.unmerge()
    assert layer.merged
    assert_close(layer(np.ones(8)), np.full(4, 9.0))


def test_lora_in_transforms():
    net = gt.nn.lora(Net(), rank=2, where=["head", "inner.0"])
    assert len(trained(net)) == 4
    net.head.lora_B = gt.nn.Parameter(np.ones((4, 2)))
    grads = gt.grad(loss)(net, X)
    assert len(containers.flatten(grads)[0]) == 4
    assert_close(gt.jit(gt.grad(loss))(net, X), grads)
    step = gt.jit(lambda net, x: (net, loss(net, x)))
    with gt.no_grad():
        made_net, _ = step(net, X)
    assert len(containers.flatten(gt.grad(loss)(made_net, X))[0]) == 4
    gt.nn.mark_only_lora_as_trainable(made_net.requires_grad_())
    assert trained(made_net) == trained(net)


def test_lora_dropout_leaves_the_frozen_part_alone():
    layer = gt.nn.LoRALinear(made("Linear", 8, 4), 2, dropout=0.5)
    base = gt.nn.linear(X, layer.weight, layer.bias)
    assert_close(layer(X), base)  # the change is 0 at first
    layer.lora_B = gt.nn.Parameter(np.ones((4, 2)))
    assert not np.allclose(plain(layer(X)), plain(layer(X)))
    assert_close(layer.eval()(X), layer(X))


# ---- bad input ----------------------------------------------------------------------------------


def lora_twice():
    gt.nn.lora(gt.nn.lora(Net(), 2), 2)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: gt.nn.MultiheadAttention(8, 3), ArgumentError, "num_heads=3, expected a number"),
        (lambda: attention(num_kv_heads=3), ArgumentError, "num_kv_heads=3, expected a number"),
        (lambda: attention(dropout=-1.0), ArgumentError, "got dropout=-1.0"),
        (
            lambda: attention()(X, Y[:2], Y[:2]),
            ShapeError,
            "got queries, keys and values of sh",
        ),
        (lambda: attention()(X, X, X[..., :3]), ShapeError, r"\(3, 5, 3\), expected \(batch, pl"),
        (lambda: attention()(X, X, X, PADDING[:2]), ShapeError, "got key_padding_mask of shape"),
        (lambda: attention()(X, X, X, PADDING * 1), DTypeError, "got key_padding_mask of int64"),
        (
            lambda: attention()(X, X, X, attn_mask=PADDING),
            ShapeError,
            r"expected \(5, 5\), or",
        ),
        (lambda: gt.nn.TransformerEncoder(gt.tanh, 2), ArgumentError, "expected a module"),
        (
            lambda: gt.nn.TransformerEncoderLayer(8, 2, activation="tanh"),
            ArgumentError,
            "activation='tanh', expected 'relu' or 'gelu'",
        ),
        (lambda: made("Transformer", 8, 2, 1, 1, 8)(X, Y), ShapeError, "Transformer: got src and"),
        (lambda: gt.nn.SinusoidalPositionalEncoding(5), ArgumentError, "expected an even number"),
        (lambda: gt.nn.SinusoidalPositionalEncoding(4)(X), ShapeError, "got x of shape"),
        (lambda: gt.nn.RotaryEmbedding(16)(X), ShapeError, "RotaryEmbedding: got x of shape"),
        (lambda: gt.nn.lora(Net(), 0), ArgumentError, "LoRA: got rank=0"),
        (lambda: gt.nn.lora(Net(), where="tail"), ArgumentError, "fits none of the layers: 'head'"),
        (lambda: gt.nn.LoRALinear(gt.nn.Tanh()), ArgumentError, "expected a gt.nn.Linear"),
        (lora_twice, ArgumentError, "has adapted layers already"),
        (lambda: gt.nn.mark_only_lora_as_trainable(Net()), ArgumentError, "without adapted layers"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_a_model_that_lora_refuses_stays_trainable():
    net = Net()
    names = trained(net)
    for wrong in ({"where": "tail"}, {"rank": 0}, {"dropout": 2.0}):
        with pytest.raises(ArgumentError):
            gt.nn.lora(net, **{"rank": 2, **wrong})
    assert trained(net) == names
