"""Layers are those of PyTorch: names, shapes, outputs, gradients and buffers.

PyTorch is not needed to work on gradtape; `make test-torch` runs this file where it is installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradtape as gt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

TOLERANCE = 1e-10


class Case(NamedTuple):
    """A layer, made by the same code in both libraries, and what it is called with.

    Args:
        make: A function of the namespace `nn`.
        inputs: Shapes of arrays to draw, or arrays. What is drawn, and what comes first, has a
            gradient if it is of floats.
        evaluated: Whether to look at evaluation only, as training is random.
        leaves: Whether to look at gradients by the inputs.
    """

    make: Callable[[Any], Any]
    inputs: tuple[Any, ...]
    evaluated: bool = False
    leaves: bool = True


def case(text: str, *inputs: Any, **options: Any) -> Any:
    make = eval(f"lambda nn: nn.{text}")
    return pytest.param(Case(make, inputs, **options), id=text)


ROWS = np.array([[1, 0, 3], [2, 2, 0]])
CLASSES = np.array([0, 2, 1, 2])
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
POSITIVE = np.random.default_rng(1).uniform(0.1, 0.9, (4, 3))
LOGS = np.log(POSITIVE / POSITIVE.sum(1, keepdims=True))
TIMES = np.log(np.random.default_rng(2).dirichlet(np.ones(4), (6, 2)))
LENGTHS = (np.array([[1, 2], [3, 3]]), np.array([6, 5]), np.array([2, 2]))
WEIGHT = "torch.tensor([0.2, 1.0, 3.0]).double() if nn is torch.nn else np.array([0.2, 1.0, 3.0])"

LAYERS = [
    case("Linear(3, 2)", (4, 3)),
    case("Linear(3, 2, bias=False)", (4, 5, 3)),
    case("Bilinear(3, 2, 4)", (5, 3), (5, 2)),
    case("Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)", (5, 4, 9)),
    case("Conv1d(2, 3, 4, padding='same', padding_mode='circular')", (2, 7)),
    case("Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), groups=2)", (2, 4, 7, 6)),
    case("Conv2d(2, 3, 3, padding='same', dilation=2, bias=False)", (2, 2, 7, 6)),
    case("Conv2d(2, 3, 3, padding=(2, 1), padding_mode='reflect')", (2, 2, 5, 6)),
    case("Conv2d(2, 3, 4, padding='same', padding_mode='replicate')", (2, 2, 5, 6)),
    case("Conv2d(2, 3, 2, padding='valid', padding_mode='circular')", (2, 2, 5, 6)),
    case("Conv3d(2, 4, 2, stride=2, padding=1)", (2, 2, 4, 5, 3)),
    case("Conv3d(2, 2, 3, padding=(1, 0, 2), padding_mode='replicate')", (1, 2, 4, 5, 3)),
    case("ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", (5, 4, 6)),
    case("ConvTranspose2d(4, 2, (3, 2), stride=2, padding=(1, 0), dilation=2)", (2, 4, 4, 3)),
    case("ConvTranspose3d(2, 4, 2, stride=2, bias=False)", (1, 2, 3, 2, 3)),
    case("BatchNorm1d(3)", (6, 3)),
    case("BatchNorm1d(3, momentum=None)", (6, 3, 4)),
    case("BatchNorm2d(3, eps=0.1, momentum=0.3)", (4, 3, 2, 5)),
    case("BatchNorm2d(3, affine=False)", (4, 3, 2, 5)),
    case("BatchNorm2d(3, track_running_stats=False)", (4, 3, 2, 5)),
    case("BatchNorm3d(2)", (3, 2, 2, 3, 4)),
    case("InstanceNorm1d(3, affine=True, track_running_stats=True)", (4, 3, 5)),
    case("InstanceNorm1d(3, affine=True)", (3, 5)),
    case("InstanceNorm2d(3)", (4, 3, 5, 2)),
    case("InstanceNorm3d(3, affine=True, track_running_stats=True, momentum=0.4)", (2, 3, 2, 2, 3)),
    case("LayerNorm((2, 5))", (4, 2, 5)),
    case("LayerNorm(5, eps=0.1, bias=False)", (4, 5)),
    case("LayerNorm(5, elementwise_affine=False)", (4, 5)),
    case("GroupNorm(2, 4)", (3, 4, 5)),
    case("GroupNorm(4, 4, affine=False)", (3, 4, 5, 2)),
    case("RMSNorm(5)", (4, 5)),
    case("RMSNorm((2, 5), eps=0.1, elementwise_affine=False)", (4, 2, 5)),
    case("LocalResponseNorm(3, alpha=0.5)", (2, 5, 4)),
    case("Embedding(4, 3)", ROWS),
    case("Embedding(4, 3, padding_idx=-2)", ROWS),
    case("EmbeddingBag(4, 3)", ROWS),
    case("EmbeddingBag(4, 3, mode='sum', padding_idx=2)", ROWS.ravel(), np.array([0, 2])),
    case("PReLU()", (3, 4)),
    case("PReLU(4, init=0.1)", (3, 4, 2)),
]
if "bias" in inspect.signature(torch.nn.BatchNorm2d).parameters:  # not before PyTorch 2.13
    LAYERS += [
        case("BatchNorm2d(3, bias=False)", (4, 3, 2, 5)),
        case("GroupNorm(2, 4, bias=False)", (3, 4, 5)),
        case("InstanceNorm2d(3, affine=True, bias=False)", (4, 3, 5, 2)),
    ]
POOLING = [
    case("MaxPool1d(3, 2, 1)", (2, 3, 8)),
    case("MaxPool2d((3, 2), dilation=2, ceil_mode=True)", (2, 3, 8, 7)),
    case("MaxPool3d(2)", (2, 4, 5, 4)),
    case("AvgPool1d(3, 2, 1, count_include_pad=False)", (2, 3, 8)),
    case("AvgPool2d((3, 2), ceil_mode=True)", (2, 3, 8, 7)),
    case("AvgPool3d(2, divisor_override=3)", (1, 2, 4, 5, 4)),
    case("LPPool1d(2, 3)", (2, 3, 8)),
    case("LPPool2d(2, 2, ceil_mode=True)", (2, 3, 8, 7)),
    case("LPPool3d(2, 2, 1)", (1, 2, 3, 4, 3)),
    case("AdaptiveAvgPool1d(3)", (2, 3, 8)),
    case("AdaptiveAvgPool2d((None, 2))", (2, 3, 8, 7)),
    case("AdaptiveAvgPool3d(1)", (2, 3, 2, 3, 4)),
    case("AdaptiveMaxPool1d(3)", (2, 3, 8)),
    case("AdaptiveMaxPool2d((None, 2))", (2, 3, 8, 7)),
    case("AdaptiveMaxPool3d(2)", (1, 3, 2, 3, 4)),
]
SHAPES = [
    case("Identity(3, a=4)", (2, 3)),
    case("Flatten()", (2, 3, 4)),
    case("Flatten(0, 1)", (2, 3, 4)),
    case("Unflatten(1, (2, -1))", (2, 6)),
    case("PixelShuffle(2)", (1, 8, 3, 2)),
    case("PixelUnshuffle(2)", (1, 2, 4, 6)),
    case("Upsample(scale_factor=2, mode='bilinear', align_corners=True)", (1, 2, 3, 2)),
    case("Upsample((5, 4))", (1, 2, 3, 2)),
    case("Unfold(2, padding=1, stride=2)", (1, 2, 3, 4)),
    case("Fold((3, 4), 2)", (1, 8, 6)),
]
# Not Hardsigmoid, nor CELU for most numbers: PyTorch rounds 1/6 and 1/alpha to float32.
ACTIVATIONS = [
    *[case(f"{name}()", (4, 6)) for name in ("Hardswish", "LogSigmoid", "Mish")],
    *[case(f"{name}()", (4, 6)) for name in ("ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid")],
    *[case(f"{name}()", (4, 6)) for name in ("Softsign", "Tanh", "Tanhshrink", "CELU", "ELU")],
    *[case(f"{name}()", (4, 6)) for name in ("GELU", "Hardshrink", "Hardtanh", "LeakyReLU")],
    *[case(f"{name}()", (4, 6)) for name in ("Softplus", "Softshrink", "GLU")],
    *[case(f"{name}(0.3)", (4, 6)) for name in ("ELU", "LeakyReLU", "Hardshrink")],
    *[case(f"{name}(1)", (4, 6)) for name in ("Softmax", "LogSoftmax", "Softmin", "GLU")],
    case("CELU(0.5)", (4, 6)),
    case("GELU('tanh')", (4, 6)),
    case("Hardtanh(-0.5, 0.25)", (4, 6)),
    case("Softplus(2.0, 1.0)", (4, 6)),
    case("Threshold(0.1, -3.0)", (4, 6)),
    case("Softmax2d()", (2, 3, 2, 2)),
    case("RReLU(0.1, 0.3)", (4, 6), evaluated=True),
    *[case(f"{name}(0.4)", (4, 6), evaluated=True) for name in ("Dropout", "AlphaDropout")],
    *[case(f"Dropout{n}d(0.4)", (4, 3, *[2] * n), evaluated=True) for n in (1, 2, 3)],
    case("FeatureAlphaDropout(0.4)", (4, 3, 2), evaluated=True),
]
LOSSES = [
    *[case(f"{name}()", (4, 3), (4, 3)) for name in ("L1Loss", "MSELoss", "SmoothL1Loss")],
    case("SmoothL1Loss(reduction='sum', beta=0.3)", (4, 3), (4, 3)),
    case("HuberLoss(reduction='none', delta=0.3)", (4, 3), (4, 3)),
    case("GaussianNLLLoss(full=True)", (4, 3), (4, 3), POSITIVE),
    case("KLDivLoss(reduction='batchmean')", LOGS, POSITIVE),
    case("KLDivLoss(log_target=True)", LOGS, LOGS - 0.1),
    case("PoissonNLLLoss(full=True)", (4, 3), np.arange(1.0, 13.0).reshape(4, 3)),
    case("PoissonNLLLoss(log_input=False)", POSITIVE, POSITIVE),
    case(f"BCELoss(weight={WEIGHT})", POSITIVE, np.round(POSITIVE)),
    case(f"BCEWithLogitsLoss(pos_weight={WEIGHT})", (4, 3), np.round(POSITIVE)),
    case(f"BCEWithLogitsLoss({WEIGHT}, reduction='none')", (4, 3), np.round(POSITIVE)),
    case(f"CrossEntropyLoss({WEIGHT}, label_smoothing=0.2)", (4, 3), CLASSES),
    case("CrossEntropyLoss(ignore_index=2, reduction='sum')", (4, 3), CLASSES),
    case(f"NLLLoss({WEIGHT})", LOGS, CLASSES),
    case(f"MultiMarginLoss(2, weight={WEIGHT})", (4, 3), CLASSES),
    case("MultiLabelMarginLoss()", (2, 3), np.array([[2, 0, -1], [1, -1, 0]])),
    case(f"MultiLabelSoftMarginLoss({WEIGHT})", (4, 3), np.round(POSITIVE)),
    case("SoftMarginLoss()", (4,), SIGNS),
    case("MarginRankingLoss(0.3)", (4,), (4,), SIGNS),
    case("HingeEmbeddingLoss(0.3)", (4,), SIGNS),
    case("CosineEmbeddingLoss(0.3)", (4, 3), (4, 3), SIGNS),
    case("TripletMarginLoss(0.3, swap=True)", (4, 3), (4, 3), (4, 3)),
    # PyTorch's gradient is that of a log_softmax before it.
    case("CTCLoss(zero_infinity=True)", TIMES, *LENGTHS, leaves=False),
    case("CosineSimilarity(dim=-1)", (4, 3), (4, 3)),
    case("PairwiseDistance(3.0, keepdim=True)", (4, 3), (4, 3)),
]
CASES = [*LAYERS, *POOLING, *SHAPES, *ACTIVATIONS, *LOSSES]


def ours_from(theirs: Any, make: Callable[[Any], Any]) -> Any:
    """Our layer with the state of theirs."""
    ours = make(gt.nn).double()
    ours.load_state_dict(theirs.state_dict())
    return ours


def numbers(values: Any) -> dict[str, Any]:
    return {name: np.asarray(value.detach()) for name, value in values}


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        assert ours[name].dtype == value.dtype, name
        np.testing.assert_allclose(ours[name], value, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def run_ours(
    layer: Any, inputs: list[Any], leaves: list[bool]
) -> tuple[Any, list[Any], dict[str, Any]]:
    """The output, the gradients by float inputs, and those by parameters."""
    xs = [gt.nn.Parameter(x) if leaf else x for x, leaf in zip(inputs, leaves, strict=True)]
    out = layer(*xs)
    if isinstance(out, gt.Tensor) and out.requires_grad:
        gt.sum(gt.sin(out)).backward()
    gradients = [x.grad for x in xs if isinstance(x, gt.Tensor)]
    grads = ((name, p.grad) for name, p in layer.named_parameters())
    return np.asarray(gt.asarray(out).detach()), gradients, numbers(grads)


def run_theirs(
    layer: Any, inputs: list[Any], leaves: list[bool]
) -> tuple[Any, list[Any], dict[str, Any]]:
    xs = [torch.tensor(x, requires_grad=leaf) for x, leaf in zip(inputs, leaves, strict=True)]
    out = layer(*xs)
    if out.requires_grad:
        torch.sin(out).sum().backward()
    gradients = [x.grad for x in xs if x.requires_grad]
    grads = ((name, p.grad) for name, p in layer.named_parameters())
    return out.detach().numpy(), gradients, numbers(grads)


def drawn(case: Case, rng: np.random.Generator) -> tuple[list[Any], list[bool]]:
    """The inputs, and which of them have a gradient."""
    xs = [rng.normal(size=x) if isinstance(x, tuple) else x for x in case.inputs]
    leaves = [isinstance(x, tuple) or n == 0 for n, x in enumerate(case.inputs)]
    floats = [x.dtype.kind == "f" and case.leaves for x in xs]
    return xs, [a and b for a, b in zip(leaves, floats, strict=True)]


@pytest.mark.filterwarnings("ignore::UserWarning:torch")
@pytest.mark.parametrize("case", CASES)
def test_same_as_in_torch(case: Case, rng: np.random.Generator) -> None:
    theirs = case.make(torch.nn).double()
    for value in theirs.parameters():  # affine parameters of norms begin with 1 and 0
        value.data += 0.1 * torch.tensor(rng.normal(size=value.shape))
    ours = ours_from(theirs, case.make)
    for training in (False,) if case.evaluated else (True, True, False):
        inputs = drawn(case, rng)
        for layer in (ours, theirs):
            layer.train(training)
            layer.zero_grad()
        out, gradients, grads = run_ours(ours, *inputs)
        expected, expected_gradients, expected_grads = run_theirs(theirs, *inputs)
        assert out.shape == expected.shape
        np.testing.assert_allclose(out, expected, rtol=TOLERANCE, atol=TOLERANCE)
        for mine, other in zip(gradients, expected_gradients, strict=True):
            other = np.zeros(mine.shape) if other is None else other
            np.testing.assert_allclose(mine, other, rtol=TOLERANCE, atol=TOLERANCE)
        assert_same(grads, expected_grads)
        assert_same(numbers(ours.state_dict().items()), numbers(theirs.state_dict().items()))


@pytest.mark.parametrize("case", LAYERS)
def test_states_go_both_ways(case: Case) -> None:
    ours, theirs = case.make(gt.nn), case.make(torch.nn)
    state = {name: torch.tensor(value.numpy()) for name, value in ours.state_dict().items()}
    theirs.load_state_dict(state)
    assert_same(numbers(ours.state_dict().items()), numbers(theirs.state_dict().items()))


@pytest.mark.parametrize("case", LAYERS)
def test_first_values_have_the_spread_of_torch(case: Case) -> None:
    ours, theirs = case.make(gt.nn).state_dict(), case.make(torch.nn).state_dict()
    for name, value in ours.items():
        mine, other = (np.abs(np.asarray(x)).astype(float) for x in (value, theirs[name]))
        if mine.size < 16 or not other.any():
            continue
        assert 0.5 < (mine.max() / other.max()) < 2, name
        assert 0.6 < (mine.mean() / other.mean()) < 1.7, name


FILES = ("activations", "convolution", "dropout", "embedding", "linear", "losses")
FILES += ("normalization", "pooling", "shapes")
# Devices, writing in place, and what PyTorch itself gave up or left out of its documentation.
LEFT_OUT = {"args", "kwargs", "device", "inplace", "size_average", "reduce", "_weight", "_freeze"}
UNSUPPORTED = {"max_norm", "norm_type", "scale_grad_by_freq", "sparse"}
LEFT_OUT_OF = {
    "Embedding": UNSUPPORTED,
    "EmbeddingBag": UNSUPPORTED,
    **{f"ConvTranspose{n}d": {"padding_mode"} for n in (1, 2, 3)},  # has a single choice
    **{f"FractionalMaxPool{n}d": {"_random_samples"} for n in (2, 3)},
    "Hardtanh": {"min_value", "max_value"},  # former names
}


def test_arguments_have_the_names_and_the_order_of_torch() -> None:
    checked = 0
    for name, ours in vars(gt.nn).items():
        theirs, place = getattr(torch.nn, name, None), getattr(ours, "__module__", "")
        if theirs is None or place.removeprefix("gradtape.nn.layers.") not in FILES:
            continue
        left_out = LEFT_OUT | LEFT_OUT_OF.get(name, set())
        wanted = [n for n in inspect.signature(theirs).parameters if n not in left_out]
        own = [n for n in inspect.signature(ours).parameters if n in wanted]
        assert own == wanted, name
        checked += 1
    assert checked > 100
