"""Attention and transformers against PyTorch: states both ways, results and gradients."""

import numpy as np
import pytest

import gradtape as gt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch_pairs import compare, pair  # noqa: E402 - it needs PyTorch

pytestmark = [
    pytest.mark.filterwarnings("ignore:Support for mismatched"),
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True"),
]
PLACES, KEYS, BATCH, SIZE, HEADS = 4, 5, 3, 8, 2
RNG = np.random.default_rng(0)
Q, K, V = (RNG.normal(size=(n, BATCH, SIZE)) for n in (PLACES, KEYS, KEYS))
PADDING = np.arange(KEYS) >= np.array([[5], [3], [4]])
CLOSED = RNG.random((PLACES, KEYS)) < 0.3
CLOSED[:, 0] = False
ADDED = RNG.normal(size=(BATCH * HEADS, PLACES, KEYS))
CAUSAL = ~np.tri(PLACES, KEYS, dtype=bool)


def as_torch(options):
    return {
        key: torch.tensor(value) if isinstance(value, np.ndarray) else value
        for key, value in options.items()
    }


ATTENTIONS = [
    {"bias": False},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"kdim": 3, "vdim": 6, "batch_first": True},
]
CALLS = [
    {},
    {"key_padding_mask": PADDING, "attn_mask": CLOSED, "average_attn_weights": False},
    {"key_padding_mask": PADDING, "attn_mask": ADDED, "need_weights": False},
    {"attn_mask": CAUSAL, "is_causal": True, "need_weights": False},
]


@pytest.mark.parametrize("options", ATTENTIONS, ids=str)
@pytest.mark.parametrize("call", CALLS, ids=["plain", "masks", "added", "causal"])
def test_attention_equals_pytorchs(options, call):
    # Without weights, PyTorch's `is_causal` closes keys that the layer adds, unlike its masks.
    call = {**call, "need_weights": True} if "add_bias_kv" in options else call
    ours, theirs = pair("MultiheadAttention", SIZE, HEADS, **options)
    given = [Q, K[..., : options.get("kdim", SIZE)], V[..., : options.get("vdim", SIZE)]]
    if options.get("batch_first"):
        given = [np.moveaxis(x, 0, 1).copy() for x in given]
    compare(
        ours,
        theirs,
        lambda *x: ours(*x, **call),
        lambda *x: theirs(*x, **as_torch(call)),
        given,
    )


@pytest.mark.parametrize("batch", [(BATCH,), ()])
def test_self_attention_equals_pytorchs(batch):
    ours, theirs = pair("MultiheadAttention", SIZE, HEADS)
    compare(
        ours, theirs, lambda x: ours(x, x, x), lambda x: theirs(x, x, x), [Q if batch else Q[:, 0]]
    )


# ---- transformers -------------------------------------------------------------------------------

SRC, TGT = Q, V
CLOSED_SRC = np.triu(np.ones((PLACES, PLACES), bool), 1)
SRC_PADDING = np.arange(PLACES) >= np.array([[4], [3], [2]])
LAYER = (SIZE, HEADS, 12, 0.0)
LAYERS = [
    {},
    {"norm_first": True, "activation": "gelu", "batch_first": True},
    {"bias": False, "layer_norm_eps": 1e-2},
]


def batch_second(options, *arrays):
    first = options.get("batch_first")
    return [np.moveaxis(x, 0, 1).copy() if first else x for x in arrays]


@pytest.mark.parametrize("options", LAYERS, ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_an_encoder_layer_equals_pytorchs(options, masked):
    ours, theirs = pair("TransformerEncoderLayer", *LAYER, **options)
    call = {"src_mask": CLOSED_SRC, "src_key_padding_mask": SRC_PADDING} if masked else {}
    given = batch_second(options, SRC)
    compare(ours, theirs, lambda x: ours(x, **call), lambda x: theirs(x, **as_torch(call)), given)


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_a_decoder_layer_equals_pytorchs(options):
    ours, theirs = pair("TransformerDecoderLayer", *LAYER, **options)
    mask = CLOSED_SRC.copy()
    call = {"tgt_mask": mask, "memory_key_padding_mask": PADDING}
    given = batch_second(options, SRC, TGT)
    compare(
        ours, theirs, lambda *x: ours(*x, **call), lambda *x: theirs(*x, **as_torch(call)), given
    )
    causal = lambda *x: ours(*x, tgt_is_causal=True, memory_key_padding_mask=PADDING)  # noqa: E731
    np.testing.assert_array_equal(causal(*given).detach(), ours(*given, **call).detach())


def test_a_transformer_equals_pytorchs():
    ours, theirs = pair("Transformer", SIZE, HEADS, 2, 2, 12, 0.0, "gelu")
    mask = gt.nn.Transformer.generate_square_subsequent_mask(PLACES, dtype=np.float64)
    assert (mask == theirs.generate_square_subsequent_mask(PLACES).numpy()).all()
    padding = np.where(PADDING, -np.inf, 0.0)
    call = {"tgt_mask": mask, "src_key_padding_mask": padding}
    compare(
        ours,
        theirs,
        lambda x, y: ours(x, y, **call),
        lambda x, y: theirs(x, y, **as_torch(call)),
        [K, Q],
    )
