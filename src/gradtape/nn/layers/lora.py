"""Low-rank adaptation: train a small change of weights that stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.nn.layers.first_values import by_fan_in, filled
from gradtape.nn.layers.linear import Linear
from gradtape.nn.module import Module
from gradtape.nn.recipe import CONTAINER, FROZEN, KINDS, MODULE
from gradtape.ops.checks import check_between, check_count
from gradtape.ops.nn.dropout import dropout as dropped
from gradtape.ops.nn.linear import linear
from gradtape.typing import Array, ArrayLike

# Which layers to adapt: names, or a function of name and layer.
Where = Callable[[str, Module], bool] | str | Sequence[str] | None


class _Apart:
    """The weight and the factors of a layer while they are merged: they are no parameters then."""

    __slots__ = ("factors", "weight")

    def __init__(self, weight: Tensor, factors: tuple[Tensor, Tensor]) -> None:
        self.weight, self.factors = weight, factors

    def merged(self, scale: float) -> Any:
        """The array of the weight with the change added."""
        w, a, b = (np.asarray(x.detach(), np.float64) for x in (self.weight, *self.factors))
        return (w + scale * (b @ a)).astype(self.weight.dtype)


class LoRALinear(Module):
    """A linear layer whose weight is frozen, plus a product of two small matrices that are trained.

    It computes x·(W + alpha/rank · B·A)ᵀ + bias (Hu et al. 2021). Its weight and bias are those of
    the layer it is made of, under the same names, so that its state has the names of the original.

    Args:
        layer: The linear layer; its parameters are frozen.
        rank: The rank of the change.
        alpha: The factor of the change, times the rank.
        dropout: The probability that an input of the change is dropped, while in training.

    Raises:
        ArgumentError: It is not a linear layer, or a number has no meaning.

    Attributes:
        weight: Of shape (out_features, in_features), frozen.
        bias: Of shape (out_features,), frozen, or None.
        lora_A: Of shape (rank, in_features); None while merged.
        lora_B: Of shape (out_features, rank), 0 at first; None while merged.

    >>> layer = gt.nn.LoRALinear(gt.nn.Linear(64, 32), rank=2)
    >>> [name for name, w in layer.named_parameters() if w.requires_grad]
    ['lora_A', 'lora_B']
    >>> layer(np.ones((5, 64), np.float32)).shape
    (5, 32)
    """

    lora_A: Any  # noqa: N815 - its name in other libraries
    lora_B: Any  # noqa: N815

    def __init__(
        self, layer: Linear, rank: int = 8, alpha: float = 16.0, dropout: float = 0.0
    ) -> None:
        _check_options(rank, alpha, dropout)
        if not isinstance(layer, Linear):
            raise ArgumentError(f"LoRALinear: got {a_type(layer)}, expected a gt.nn.Linear")
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.rank, self.alpha, self.dropout = rank, float(alpha), float(dropout)
        layer.requires_grad_(False)
        self.register_parameter("weight", layer.weight)
        self.register_parameter("bias", layer.bias)
        dtype = layer.weight.dtype
        self.register_parameter(
            "lora_A", by_fan_in((rank, self.in_features), self.in_features, dtype)
        )
        self.register_parameter("lora_B", filled(0.0, (self.out_features, rank), dtype))
        self._apart: _Apart | None = None

    def forward(self, x: ArrayLike) -> Array:
        """Apply the layer to the last axis of `x`."""
        out = linear(x, self.weight, self.bias)
        if self.merged:
            return out
        if self.dropout and self.training:
            x = dropped(x, self.dropout)
        change = linear(linear(x, self.lora_A), self.lora_B)
        return out + change * (self.alpha / self.rank)

    @property
    def merged(self) -> bool:
        """Whether the change is part of the weight.

        >>> gt.nn.LoRALinear(gt.nn.Linear(4, 2), rank=1).merged
        False
        """
        return self._apart is not None

    def merge(self) -> LoRALinear:
        """Add the change to the weight, which makes the layer as fast as a linear one.

        The layer has no parameters to train until `unmerge`, and its state is that of a linear
        layer. The weight as it was is kept beside it.

        Returns:
            The layer itself.

        >>> layer = gt.nn.LoRALinear(gt.nn.Linear(4, 2), rank=1).merge()
        >>> list(layer.state_dict())
        ['weight', 'bias']
        """
        if self._apart is None:
            apart = _Apart(self.weight, (self.lora_A, self.lora_B))
            # A tensor of its own: others may use the weight, as an embedding with the same one.
            self._hold(Tensor(apart.merged(self.alpha / self.rank)), None, None)
            self._apart = apart
        return self

    def unmerge(self) -> LoRALinear:
        """Put the weight back as it was, and train the change on.

        Returns:
            The layer itself.

        Raises:
            ArgumentError: The merged weight was changed, by another state or dtype.

        >>> layer = gt.nn.LoRALinear(gt.nn.Linear(4, 2), rank=1).merge().unmerge()
        >>> layer.lora_A.shape
        (1, 4)
        """
        apart = self._apart
        if apart is not None:
            merged = apart.merged(self.alpha / self.rank)
            now = np.asarray(self.weight.detach())
            if now.dtype != merged.dtype or not np.array_equal(now, merged, equal_nan=True):
                raise ArgumentError(
                    "unmerge: the weight is not the one that merge made; load states and convert "
                    "dtypes before merging"
                )
            self._hold(apart.weight, *apart.factors)
            self._apart = None
        return self

    def _hold(self, weight: Tensor, a: Tensor | None, b: Tensor | None) -> None:
        self.weight, self.lora_A, self.lora_B = weight, a, b

    def extra_repr(self) -> str:
        """Show the sizes and settings."""
        merged = ", merged" if self.merged else ""
        sizes = f"{self.in_features}, {self.out_features}"
        return f"{sizes}, rank={self.rank}, alpha={self.alpha}{merged}"


def _check_options(rank: int, alpha: float, dropout: float) -> None:
    check_count("LoRA", 1, rank=rank)
    check_between("LoRA", 0, 1, dropout=dropout)
    if not math.isfinite(alpha):
        raise ArgumentError(f"LoRA: got alpha={alpha}, expected a finite number")


# ---- whole models -------------------------------------------------------------------------------


def lora(
    model: Module, rank: int = 8, alpha: float = 16.0, dropout: float = 0.0, where: Where = None
) -> Module:
    """Freeze a model, and put a trained change of low rank beside its linear layers.

    The model is changed in place. The weights by which `MultiheadAttention` projects queries, keys
    and values are parameters of its own, no layers: they are frozen and not adapted.

    Args:
        model: The model.
        rank: The rank of the changes.
        alpha: The factor of the changes, times the rank.
        dropout: The probability that an input of a change is dropped, while in training.
        where: The layers to adapt: names, of which the last parts suffice, or a function of a name
            and a layer; None for all linear layers.

    Returns:
        The model; or a `LoRALinear`, if the model is a linear layer itself.

    Raises:
        ArgumentError: There are no such layers, the model has adapted layers already, or a number
            has no meaning.

    >>> net = gt.nn.Sequential(gt.nn.Linear(64, 64), gt.nn.ReLU(), gt.nn.Linear(64, 10))
    >>> net = gt.nn.lora(net, rank=4, where="0")
    >>> [name for name, w in net.named_parameters() if w.requires_grad]
    ['0.lora_A', '0.lora_B']
    """
    _check_options(rank, alpha, dropout)
    if not isinstance(model, Module):
        raise ArgumentError(f"lora: got {a_type(model)}, expected a gt.nn.Module")
    if any(_adapted(model)):
        raise ArgumentError("lora: got a model that has adapted layers already")
    layers = {name: each for name, each in model.named_modules() if isinstance(each, Linear)}
    wanted = [each for name, each in layers.items() if _is_wanted(where, name, each)]
    if not wanted:
        names = ", ".join(map(repr, layers)) or "none"
        raise ArgumentError(f"lora: got where={where!r}, which fits none of the layers: {names}")
    model.requires_grad_(False)
    made = {id(layer): LoRALinear(layer, rank, alpha, dropout) for layer in wanted}
    for layer in wanted:
        made[id(layer)].train(layer.training)
    return _replaced(model, made)  # type: ignore[no-any-return]


def mark_only_lora_as_trainable(model: Module) -> Module:
    """Freeze all parameters but the changes of adapted layers.

    Args:
        model: A model that `lora` made, or that a compiled function returned.

    Returns:
        The model.

    Raises:
        ArgumentError: It has no adapted layers.

    >>> net = gt.nn.lora(gt.nn.Sequential(gt.nn.Linear(4, 2)), rank=1).requires_grad_()
    >>> net = gt.nn.mark_only_lora_as_trainable(net)
    >>> [name for name, w in net.named_parameters() if w.requires_grad]
    ['0.lora_A', '0.lora_B']
    """
    layers = list(_adapted(model))
    if not layers:
        raise ArgumentError("mark_only_lora_as_trainable: got a model without adapted layers")
    model.requires_grad_(False)
    for layer in layers:
        for name in ("lora_A", "lora_B") if not layer.merged else ():
            getattr(layer, name).set_requires_grad()
            vars(layer)[FROZEN] -= {name}
    return model


def _adapted(model: Module) -> Iterator[LoRALinear]:
    return (each for each in model.modules() if isinstance(each, LoRALinear))


def _is_wanted(where: Where, name: str, layer: Module) -> bool:
    if where is None:
        return True
    if callable(where):
        return bool(where(name, layer))
    ends = [where] if isinstance(where, str) else where
    return any(f".{name}".endswith(f".{end}") for end in ends)


def _replaced(value: Any, made: dict[int, LoRALinear]) -> Any:
    """A module, list, tuple or dict with layers replaced in it; tuples are made anew."""
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, Module):
        held = vars(value)
        for name, kind in held[KINDS].items():
            if kind in (MODULE, CONTAINER):
                value._put(name, _replaced(held[name], made))
    elif isinstance(value, list):
        value[:] = [_replaced(item, made) for item in value]
    elif isinstance(value, dict):
        value.update({key: _replaced(item, made) for key, item in value.items()})
    elif isinstance(value, tuple):
        items = [_replaced(item, made) for item in value]
        if any(a is not b for a, b in zip(items, value, strict=True)):
            return value._make(items) if hasattr(value, "_make") else type(value)(items)
    return value
