"""Layers by themselves: against NumPy, their first values, their text, and bad input."""

import inspect
import re

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    DTypeError,
    GradtapeError,
    IndexingError,
    ShapeError,
    UnsupportedError,
)

# ---- modules that apply a function --------------------------------------------------------------


def test_settings_reach_the_function():
    x = np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_array_equal(gt.nn.ELU(0.3)(x), gt.nn.elu(x, 0.3))
    np.testing.assert_array_equal(gt.nn.Softmax(dim=0)(x), gt.nn.softmax(x, 0))
    np.testing.assert_array_equal(gt.nn.Threshold(0.1, value=7.0)(x), gt.nn.threshold(x, 0.1, 7.0))
    pool = gt.nn.MaxPool1d(2, 1, return_indices=True)
    for mine, other in zip(pool(x), gt.nn.max_pool1d(x, 2, 1, return_indices=True), strict=True):
        np.testing.assert_array_equal(mine, other)
    loss = gt.nn.HuberLoss("none", delta=0.1)
    np.testing.assert_array_equal(loss(x, -x), gt.nn.huber_loss(x, -x, "none", 0.1))


def test_unknown_arguments_raise_and_name_the_known_ones():
    with pytest.raises(ArgumentError, match=r"ELU: .*'alfa', expected ELU\(alpha=1\.0\)"):
        gt.nn.ELU(alfa=2.0)
    with pytest.raises(ArgumentError, match=r"Tanh: too many.*, expected Tanh\(\)"):
        gt.nn.Tanh(1)


def test_in_place_is_not_ignored():
    with pytest.raises(ArgumentError, match="never overwritten"):
        gt.nn.ReLU(inplace=True)
    assert repr(gt.nn.ELU(0.5, inplace=False)) == "ELU(alpha=0.5)"


def test_a_missing_setting_raises():
    with pytest.raises(ArgumentError, match=r"'value', expected Threshold\(threshold, value\)"):
        gt.nn.Threshold(1.0)


def test_weights_of_losses_are_buffers():
    loss = gt.nn.BCEWithLogitsLoss(np.array([1.0, 2.0]), pos_weight=[3.0, 4.0])
    assert [name for name, _ in loss.named_buffers()] == ["weight", "pos_weight"]
    assert repr(loss) == "BCEWithLogitsLoss(reduction='mean')"
    assert not list(gt.nn.CrossEntropyLoss().state_dict())
    x, target = np.array([[0.5, -1.0]]), np.array([[1.0, 0.0]])
    expected = gt.nn.binary_cross_entropy_with_logits(
        x, target, np.array([1.0, 2.0]), pos_weight=np.array([3.0, 4.0])
    )
    np.testing.assert_allclose(loss(x, target), expected, rtol=1e-12)


def test_losses_compile_with_their_settings():
    x, target = np.random.default_rng(0).normal(size=(4, 3)), np.array([0, 2, 1, 1])
    loss = gt.nn.CrossEntropyLoss(weight=np.array([1.0, 2.0, 3.0]), label_smoothing=0.1)
    compiled = gt.jit(lambda loss, x, target: loss(x, target))
    np.testing.assert_allclose(compiled(loss, x, target), loss(x, target), rtol=1e-12)
    other = gt.nn.CrossEntropyLoss(weight=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(compiled(other, x, target), other(x, target), rtol=1e-12)


def test_a_subclass_may_add_settings_or_make_its_own():
    class Scaled(gt.nn.ELU, function=lambda x, alpha, scale: scale * gt.nn.elu(x, alpha)):
        scale: float = 2.0

    class Half(gt.nn.Dropout):
        def __init__(self):
            super().__init__(0.5)

    assert repr(Scaled(scale=3.0)) == "Scaled(alpha=1.0, scale=3.0)"
    np.testing.assert_array_equal(Scaled()(np.array([1.0])), [2.0])
    assert repr(Half()) == "Half(p=0.5)"
    assert not inspect.signature(Half).parameters


def test_signatures_are_those_of_the_class_and_of_the_call():
    assert str(inspect.signature(gt.nn.Softplus)) == (
        "(beta: 'float' = 1.0, threshold: 'float' = 20.0)"
    )
    assert "beta" not in inspect.signature(gt.nn.Softplus()).parameters
    assert list(inspect.signature(gt.nn.Conv1d).parameters)[:2] == ["in_channels", "out_channels"]
    compiled = gt.jit(gt.nn.Softplus(beta=2.0))
    np.testing.assert_allclose(compiled(np.zeros(1)), [np.log(2) / 2], rtol=1e-12)


# ---- against NumPy ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "of_numpy"),
    [("zeros", "constant"), ("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")],
)
@pytest.mark.parametrize(
    ("padding", "added"), [((1, 2), ((1, 1), (2, 2))), ("same", ((0, 1), (2, 2)))]
)
def test_padding_modes(mode, of_numpy, padding, added, rng):
    layer = gt.nn.Conv2d(2, 3, (2, 3), dilation=(1, 2), padding=padding, padding_mode=mode)
    layer.double()
    x = rng.normal(size=(4, 2, 5, 6))
    padded = np.pad(x, ((0, 0), (0, 0), *added), mode=of_numpy)
    expected = gt.nn.conv2d(padded, layer.weight, layer.bias, dilation=(1, 2))
    np.testing.assert_allclose(layer(x).detach(), expected.detach(), rtol=1e-12)
    np.testing.assert_allclose(layer(x[0]).detach(), expected[0].detach(), rtol=1e-12)
    assert layer(x).shape[2:] == (5, 6) or padding != "same"


def test_sizes_of_transposed_convolutions(rng):
    layer = gt.nn.ConvTranspose2d(2, 3, 3, stride=(2, 3), padding=1, dtype=gt.float64)
    x = rng.normal(size=(4, 2, 5, 6))
    assert layer(x).shape == (4, 3, 9, 16)
    more = gt.nn.conv_transpose2d(x, layer.weight, layer.bias, (2, 3), 1, (1, 2))
    np.testing.assert_array_equal(layer(x, (10, 18)).detach(), more.detach())
    np.testing.assert_array_equal(layer(x, more.shape).detach(), more.detach())
    with pytest.raises(ShapeError, match=r"output_size=\(11, 18\).*from \(9, 16\) to \(10, 18\)"):
        layer(x, (11, 18))


def test_batch_norm_by_hand(rng):
    layer = gt.nn.BatchNorm2d(3, momentum=0.25, eps=0.5, dtype=gt.float64)
    x = rng.normal(size=(4, 3, 2, 2))
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    shaped = (1, 3, 1, 1)
    expected = (x - mean.reshape(shaped)) / np.sqrt(var + 0.5).reshape(shaped)
    np.testing.assert_allclose(layer(x).detach(), expected, rtol=1e-12)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.25 * mean, rtol=1e-12)
    unbiased = x.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.75 + 0.25 * unbiased, rtol=1e-12)
    assert layer.num_batches_tracked.dtype == np.int64
    layer.eval()
    expected = (x - layer.running_mean.numpy().reshape(shaped)) / np.sqrt(
        layer.running_var.numpy() + 0.5
    ).reshape(shaped)
    np.testing.assert_allclose(layer(x).detach(), expected, rtol=1e-12)
    assert layer.num_batches_tracked.item() == 1


def test_the_mean_over_all_batches(rng):
    layer = gt.nn.BatchNorm1d(3, momentum=None, dtype=gt.float64)
    xs = rng.normal(size=(5, 4, 3))
    for x in xs:
        layer(x)
    np.testing.assert_allclose(layer.running_mean.numpy(), xs.mean((0, 1)), rtol=1e-12)
    expected = xs.var(1, ddof=1).mean(0)
    np.testing.assert_allclose(layer.running_var.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [gt.float16, gt.bfloat16])
def test_statistics_of_narrow_batches_are_wide(kind, rng):
    x = gt.asarray(300.0 * rng.normal(size=(64, 3, 9))).astype(kind)  # its squares overflow float16
    wide = x.numpy().astype(np.float32)
    layers = gt.nn.BatchNorm1d(3), gt.nn.InstanceNorm1d(3, track_running_stats=True)
    for layer, axes in zip(layers, [(0, 2), 2], strict=True):
        layer(x)
        expected = wide.var(axes, ddof=1)
        expected = 0.9 + 0.1 * (expected if axes != 2 else expected.mean(0))
        np.testing.assert_allclose(layer.running_var.numpy(), expected, rtol=1e-5)


def test_norms_without_statistics_take_those_of_the_batch_always(rng):
    layer = gt.nn.BatchNorm1d(3, track_running_stats=False, dtype=gt.float64)
    x = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(layer(x).detach(), layer.eval()(x).detach())
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_the_padding_row_has_no_gradient():
    layer = gt.nn.Embedding(4, 2, padding_idx=1)
    np.testing.assert_array_equal(layer.weight[1].detach(), [0.0, 0.0])
    gradient = gt.grad(lambda net: gt.sum(net(np.array([0, 1, 1]))))(layer)
    np.testing.assert_array_equal(gradient.weight.detach(), [[1, 1], [0, 0], [0, 0], [0, 0]])


def test_embeddings_from_a_table():
    table = np.arange(6.0).reshape(3, 2)
    layer = gt.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    np.testing.assert_array_equal(layer(np.array([[0, 2]])).detach(), [[4.0, 6.0]])
    assert not layer.weight.requires_grad
    table[0] = 9
    assert layer.weight[0, 0].item() == 0
    assert gt.nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad


def test_alpha_dropout_only_in_training():
    x = np.random.default_rng(0).normal(size=(100, 100))
    layer = gt.nn.AlphaDropout(0.2)
    assert np.unique(layer(x)).size < 9000  # the dropped ones are equal
    np.testing.assert_array_equal(layer.eval()(x), x)


# ---- first values -------------------------------------------------------------------------------


def test_first_values_follow_the_seed_of_the_library():
    def weights():
        layers = [gt.nn.Conv2d(3, 4, 3), gt.nn.Bilinear(2, 3, 4), gt.nn.Embedding(5, 4)]
        return np.concatenate(
            [w.detach().numpy().ravel() for net in layers for w in net.parameters()]
        )

    gt.manual_seed(5)
    first = weights()
    assert not np.array_equal(first, weights())
    gt.manual_seed(5)
    np.testing.assert_array_equal(first, weights())


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [
        (gt.nn.Conv2d(4, 64, (3, 5), groups=2), 30),
        (gt.nn.ConvTranspose1d(64, 8, 5, groups=2), 20),  # by the outputs, as in PyTorch
    ],
)
def test_first_values_of_convolutions(layer, fan_in):
    for value in layer.parameters():
        largest = abs(value.detach().numpy()).max()
        assert largest <= fan_in**-0.5
        assert largest > 0.5 * fan_in**-0.5


def test_dtypes():
    for kind in (gt.float16, gt.float32, gt.float64, gt.bfloat16):
        net = gt.nn.Sequential(gt.nn.Conv1d(2, 3, 1, dtype=kind), gt.nn.BatchNorm1d(3, dtype=kind))
        floats = [v for name, v in net.state_dict().items() if "batches" not in name]
        assert {value.dtype for value in floats} == {np.dtype(kind)}
        assert net(gt.ones((4, 2, 5), dtype=kind)).dtype == kind
    with pytest.raises(DTypeError, match="Conv1d: got dtype int64"):
        gt.nn.Conv1d(2, 3, 1, dtype=np.int64)


def test_layers_are_not_made_in_compiled_functions():
    with pytest.raises(UnsupportedError, match="make layers outside"):
        gt.jit(lambda x: gt.nn.Linear(2, 1)(x))(np.ones(2, np.float32))


# ---- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (gt.nn.ReLU(), "ReLU()"),
        (gt.nn.Dropout(0.25), "Dropout(p=0.25)"),
        (
            gt.nn.LayerNorm(3, bias=False),
            "LayerNorm((3,), eps=1e-05, elementwise_affine=True): weight[3]",
        ),
        (gt.nn.Embedding(4, 2, padding_idx=-1), "Embedding(4, 2, padding_idx=3): weight[4, 2]"),
        (
            gt.nn.ConvTranspose1d(2, 2, 3, groups=2, output_padding=1, stride=2, bias=False),
            "ConvTranspose1d(2, 2, kernel_size=(3,), stride=(2,), output_padding=(1,), groups=2, "
            "bias=False): weight[2, 1, 3]",
        ),
    ],
)
def test_text(layer, text):
    assert repr(layer) == text


# ---- bad input ----------------------------------------------------------------------------------

nn = gt.nn
BAD = {
    "CELU: got alpha=0": lambda: nn.CELU(0.0),
    "GELU: got approximate='erf'": lambda: nn.GELU("erf"),
    "Hardtanh: got max_val=-2": lambda: nn.Hardtanh(1.0, -2.0),
    "RReLU: got upper=0.1": lambda: nn.RReLU(0.2, 0.1),
    "GumbelSoftmax: got tau=0": lambda: nn.GumbelSoftmax(0.0),
    "PReLU: got num_parameters=0": lambda: nn.PReLU(0),
    "Dropout2d: got p=1.5": lambda: nn.Dropout2d(1.5),
    "MSELoss: got reduction='avg'": lambda: nn.MSELoss("avg"),
    "L1Loss: got reduction='batchmean'": lambda: nn.L1Loss("batchmean"),
    "HuberLoss: got delta=0": lambda: nn.HuberLoss(delta=0.0),
    "CrossEntropyLoss: got label_smoothing=2": lambda: nn.CrossEntropyLoss(label_smoothing=2.0),
    "MultiMarginLoss: got p=3": lambda: nn.MultiMarginLoss(3),
    "Conv2d: got 3 and 4 channels and groups=2": lambda: nn.Conv2d(3, 4, 1, groups=2),
    "Conv1d: got out_channels=0": lambda: nn.Conv1d(1, 0, 1),
    "Conv1d: got kernel_size=0": lambda: nn.Conv1d(1, 1, 0),
    "Conv2d: got stride=": lambda: nn.Conv2d(1, 1, 1, stride=(1, 2, 3)),
    "Conv2d: got padding='full'": lambda: nn.Conv2d(1, 1, 1, padding="full"),
    'Conv2d: got padding="same" and stride': lambda: nn.Conv2d(1, 1, 1, 2, "same"),
    "Conv2d: got padding_mode='mirror'": lambda: nn.Conv2d(1, 1, 1, padding_mode="mirror"),
    "ConvTranspose1d: got output_padding=2": lambda: nn.ConvTranspose1d(1, 1, 3, 2, 0, 2),
    "MaxPool2d: got kernel_size=-1": lambda: nn.MaxPool2d(-1),
    "AvgPool1d: got stride=0": lambda: nn.AvgPool1d(2, 0),
    "FractionalMaxPool2d: got output_size=None": lambda: nn.FractionalMaxPool2d(2),
    "Upsample: got size=2 and scale_factor=2": lambda: nn.Upsample(2, 2),
    "Unflatten: got unflattened_size": lambda: nn.Unflatten(1, (-1, -1)),
    "BatchNorm1d: got num_features=0": lambda: nn.BatchNorm1d(0),
    "BatchNorm1d: got momentum=1.5": lambda: nn.BatchNorm1d(1, momentum=1.5),
    "BatchNorm1d: got eps=-1": lambda: nn.BatchNorm1d(1, eps=-1.0),
    "InstanceNorm1d: got momentum=None": lambda: nn.InstanceNorm1d(1, momentum=None),
    "GroupNorm: got 4 channels and num_groups=3": lambda: nn.GroupNorm(3, 4),
    "LayerNorm: got normalized_shape=": lambda: nn.LayerNorm(()),
    "Embedding: got num_embeddings=0": lambda: nn.Embedding(0, 1),
    "EmbeddingBag: got mode='min'": lambda: nn.EmbeddingBag(2, 1, mode="min"),
    "TransformerEncoderLayer: got activation='swish'": lambda: nn.TransformerEncoderLayer(
        4, 2, activation="swish"
    ),
    "EncoderLayer: got a NoneType for activation": lambda: nn.TransformerEncoderLayer(
        4, 2, activation=None
    ),
    "MultiheadAttention: got True for rotary": lambda: nn.MultiheadAttention(4, 2, rotary=True),
    "Transformer: got 3 for custom_encoder": lambda: nn.Transformer(4, 2, custom_encoder=3),
}
TYPES = {
    "Linear: got in_features='3', expected an integer": lambda: nn.Linear("3", 2),
    "Linear: got out_features=2.0": lambda: nn.Linear(3, 2.0),
    "Conv1d: got in_channels=True": lambda: nn.Conv1d(True, 2, 1),
    "BatchNorm1d: got num_features=None": lambda: nn.BatchNorm1d(None),
    "BatchNorm1d: got eps='0', expected a real number": lambda: nn.BatchNorm1d(3, eps="0"),
    "Dropout: got p=None": lambda: nn.Dropout(None),
    "LSTM: got hidden_size=[2]": lambda: nn.LSTM(3, [2]),
    "LSTM: got proj_size='1'": lambda: nn.LSTM(3, 2, proj_size="1"),
    "MultiheadAttention: got kdim='4'": lambda: nn.MultiheadAttention(4, 2, kdim="4"),
    "PReLU: got init=(1, 2)": lambda: nn.PReLU(init=(1, 2)),
    "padding_idx=1.5": lambda: nn.Embedding(3, 2, padding_idx=1.5),
}
CALLS = {
    r"BatchNorm2d: got shape \(2, 3\), expected 4 axes": lambda: nn.BatchNorm2d(3)(np.ones((2, 3))),
    r"BatchNorm1d: got shape \(2, 4\).*3 channels": lambda: nn.BatchNorm1d(3)(np.ones((2, 4))),
    r"InstanceNorm1d: got shape \(2, 4\).*3 channels as axis 0": lambda: nn.InstanceNorm1d(3)(
        np.ones((2, 4))
    ),
    r"GroupNorm: got shape \(2, 3\)": lambda: nn.GroupNorm(2, 4)(np.ones((2, 3))),
    r"layer_norm: got shape \(2, 3\)": lambda: nn.LayerNorm(4)(np.ones((2, 3))),
    r"conv2d: got .*channels": lambda: nn.Conv2d(3, 4, 1)(np.ones((1, 2, 3, 3), np.float32)),
    r"Flatten: got shape \(3,\)": lambda: nn.Flatten()(np.ones(3)),
    r"Unflatten: got shape \(2, 5\)": lambda: nn.Unflatten(1, (2, -1))(np.ones((2, 5))),
    r"batch_norm: got shape \(0, 3\); in training": lambda: NORM(np.ones((0, 3), np.float32)),
}
NORM = nn.BatchNorm1d(3)


@pytest.mark.parametrize("message", BAD)
def test_bad_settings_raise_when_a_layer_is_made(message):
    with pytest.raises(ArgumentError, match=message):
        BAD[message]()


@pytest.mark.parametrize("message", TYPES)
def test_settings_of_other_types_raise(message):
    with pytest.raises(DTypeError, match=re.escape(message)):
        TYPES[message]()


@pytest.mark.parametrize("message", CALLS)
def test_bad_arrays_raise(message):
    with pytest.raises(ShapeError, match=message):
        CALLS[message]()
    np.testing.assert_array_equal(NORM.running_mean.numpy(), np.zeros(3))


def test_rows_that_are_not_there():
    with pytest.raises(IndexingError, match="padding_idx=4"):
        gt.nn.Embedding(4, 2, padding_idx=4)
    with pytest.raises(GradtapeError, match="4"):
        gt.nn.Embedding(4, 2)(np.array([4]))
