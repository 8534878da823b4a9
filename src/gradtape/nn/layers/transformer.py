"""Transformers: encoders and decoders, and the layers these are made of."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gradtape.errors import ArgumentError, ShapeError, a_type
from gradtape.nn.containers import ModuleList
from gradtape.nn.init import xavier_uniform_
from gradtape.nn.layers.attention import MultiheadAttention
from gradtape.nn.layers.dropout import Dropout
from gradtape.nn.layers.linear import Linear
from gradtape.nn.layers.normalization import LayerNorm
from gradtape.nn.module import Module
from gradtape.ops.activation import gelu, relu
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_callable, check_choice, check_count
from gradtape.ops.reduce import floats
from gradtape.ops.shared_options import options
from gradtape.typing import Array, ArrayLike

Activation = str | Callable[[Any], Any]

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": relu, "gelu": gelu}

_LAYERS = {
    "d_model": "The size of what comes in and goes out.",
    "nhead": "How many heads attention has.",
    "dim_feedforward": "The size between the two linear layers.",
    "dropout": "The probability that an element is dropped, while in training.",
    "activation": 'What follows the first linear layer: "relu", "gelu", or a function.',
    "layer_norm_eps": "What is added to variances, so that they can be divided by.",
    "batch_first": "Whether arrays are of shape (batch, places, size), not (places, batch, size).",
    "norm_first": "Whether norms come before attention and linear layers, not after the sums.",
    "bias": "Whether linear layers and norms have biases.",
    "num_kv_heads": "How many heads keys and values have; None for `nhead`.",
    "rotary": "Applied to queries and keys of self-attention, as `gt.nn.RotaryEmbedding`.",
    "dtype": "The dtype of the parameters.",
}
_MASKS = {
    "src": "The sequences that are read.",
    "tgt": "The sequences that are made.",
    "memory": "What the encoder gives.",
    "src_mask": "Which places a place of `src` does not see; see `MultiheadAttention`.",
    "mask": "Which places a place does not see; see `MultiheadAttention`.",
    "tgt_mask": "Which places a place of `tgt` does not see.",
    "memory_mask": "Which places of `memory` a place of `tgt` does not see.",
    "src_key_padding_mask": "Which places of `src` are padding, by sample.",
    "tgt_key_padding_mask": "Which places of `tgt` are padding, by sample.",
    "memory_key_padding_mask": "Which places of `memory` are padding, by sample.",
    "src_is_causal": "Whether places of `src` see only those up to themselves.",
    "is_causal": "Whether places see only those up to themselves; a mask is not needed.",
    "tgt_is_causal": "Whether places of `tgt` see only those up to themselves.",
    "memory_is_causal": "Whether places of `tgt` see only places of `memory` up to their own.",
}


# ---- layers -------------------------------------------------------------------------------------


class _TransformerLayer(Module):
    """What layers of encoders and decoders have in common."""

    _attentions: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        num_kv_heads: int | None = None,
        rotary: Callable[[Array], Array] | None = None,
        dtype: Any = np.float32,
    ) -> None:
        # The parts are made in PyTorch's order.
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, num_kv_heads=num_kv_heads,
                rotary=rotary if name == "self_attn" else None, dtype=dtype,
            )  # fmt: skip
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype=dtype)
        self.norm_first = bool(norm_first)
        count = len(self._attentions) + 1
        for n in range(1, count + 1):
            setattr(self, f"norm{n}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for n in range(1, count + 1):
            setattr(self, f"dropout{n}", Dropout(dropout))
        if isinstance(activation, str):
            check_choice(type(self).__name__, _ACTIVATIONS, activation=activation)
            activation = _ACTIVATIONS[activation]
        check_callable(type(self).__name__, activation=activation)
        self.activation = activation

    def _add(self, x: Any, number: int, part: Callable[[Any], Any]) -> Any:
        """Add what a part makes of `x`, and normalize before or after."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


@options(_LAYERS)
class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and two linear layers, each added to what it gets, and normalized.

    Raises:
        ArgumentError: `nhead` does not divide `d_model`.

    >>> layer = gt.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(np.ones((3, 5, 8), np.float32), is_causal=True).shape
    (3, 5, 8)
    """

    _attentions = ("self_attn",)

    @options(_MASKS)
    def forward(
        self,
        src: ArrayLike,
        src_mask: ArrayLike | None = None,
        src_key_padding_mask: ArrayLike | None = None,
        is_causal: bool = False,
    ) -> Array:
        """Apply the layer.

        Returns:
            An array of the shape of `src`.
        """

        def attend(x: Any) -> Any:
            return self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal
            )[0]

        x = self._add(floats(as_array(src)), 1, attend)
        return self._add(x, 2, self._feed_forward)


@options(_LAYERS)
class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to what an encoder gives, and two linear layers.

    Raises:
        ArgumentError: `nhead` does not divide `d_model`.

    >>> layer = gt.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> memory = np.ones((3, 7, 8), np.float32)
    >>> layer(np.ones((3, 5, 8), np.float32), memory, tgt_is_causal=True).shape
    (3, 5, 8)
    """

    _attentions = ("self_attn", "multihead_attn")

    @options(_MASKS)
    def forward(
        self,
        tgt: ArrayLike,
        memory: ArrayLike,
        tgt_mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        tgt_key_padding_mask: ArrayLike | None = None,
        memory_key_padding_mask: ArrayLike | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Array:
        """Apply the layer.

        Returns:
            An array of the shape of `tgt`.
        """

        def attend(x: Any) -> Any:
            return self.self_attn(
                x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal
            )[0]

        def look(x: Any) -> Any:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask,
                is_causal=memory_is_causal,
            )[0]  # fmt: skip

        x = self._add(floats(as_array(tgt)), 1, attend)
        x = self._add(x, 2, look)
        return self._add(x, 3, self._feed_forward)


# ---- stacks of layers ---------------------------------------------------------------------------


class _Stack(Module):
    """Copies of a layer, one after the other, and a norm at the end."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        name = type(self).__name__
        if not isinstance(layer, Module):
            raise ArgumentError(f"{name}: got {a_type(layer)} for a layer, expected a module")
        check_count(name, 0, num_layers=num_layers)
        self.layers = ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.add_module("norm", norm)

    def _through(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Copies of an encoder's layer, one after the other.

    Args:
        encoder_layer: The layer; the copies have its first values, and parameters of their own.
        num_layers: How many copies there are.
        norm: A module at the end, or None.

    Raises:
        ArgumentError: The layer is not a module, or the number is negative.

    >>> layer = gt.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> encoder = gt.nn.TransformerEncoder(layer, 2, gt.nn.LayerNorm(8))
    >>> encoder(np.ones((3, 5, 8), np.float32)).shape
    (3, 5, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    @options(_MASKS)
    def forward(
        self,
        src: ArrayLike,
        mask: ArrayLike | None = None,
        src_key_padding_mask: ArrayLike | None = None,
        is_causal: bool | None = None,
    ) -> Array:
        """Apply all layers.

        Returns:
            An array of the shape of `src`.
        """
        return self._through(src, mask, src_key_padding_mask, is_causal=bool(is_causal))


class TransformerDecoder(_Stack):
    """Copies of a decoder's layer, one after the other.

    Args:
        decoder_layer: The layer; the copies have its first values, and parameters of their own.
        num_layers: How many copies there are.
        norm: A module at the end, or None.

    Raises:
        ArgumentError: The layer is not a module, or the number is negative.

    >>> layer = gt.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> decoder = gt.nn.TransformerDecoder(layer, 2)
    >>> decoder(np.ones((3, 5, 8), np.float32), np.ones((3, 7, 8), np.float32)).shape
    (3, 5, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    @options(_MASKS)
    def forward(
        self,
        tgt: ArrayLike,
        memory: ArrayLike,
        tgt_mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        tgt_key_padding_mask: ArrayLike | None = None,
        memory_key_padding_mask: ArrayLike | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Array:
        """Apply all layers.

        Returns:
            An array of the shape of `tgt`.
        """
        return self._through(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal=bool(tgt_is_causal), memory_is_causal=memory_is_causal,
        )  # fmt: skip


# ---- the whole ----------------------------------------------------------------------------------


@options(_LAYERS)
class Transformer(Module):
    """An encoder that reads sequences, and a decoder that makes others of what it has read.

    Args:
        num_encoder_layers: How many layers the encoder has.
        num_decoder_layers: How many layers the decoder has.
        custom_encoder: A module in place of the encoder.
        custom_decoder: A module in place of the decoder.

    Raises:
        ArgumentError: `nhead` does not divide `d_model`.

    >>> net = gt.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> net(np.ones((3, 5, 8), np.float32), np.ones((3, 4, 8), np.float32)).shape
    (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        num_kv_heads: int | None = None,
        rotary: Callable[[Array], Array] | None = None,
        dtype: Any = np.float32,
    ) -> None:
        check_count("Transformer", 1, d_model=d_model, nhead=nhead)
        own = {"custom_encoder": custom_encoder, "custom_decoder": custom_decoder}
        check_callable("Transformer", **{k: v for k, v in own.items() if v is not None})
        settings: dict[str, Any] = {
            "dim_feedforward": dim_feedforward, "dropout": dropout, "activation": activation,
            "layer_norm_eps": layer_norm_eps, "batch_first": batch_first, "norm_first": norm_first,
            "bias": bias, "num_kv_heads": num_kv_heads, "rotary": rotary, "dtype": dtype,
        }  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(d_model, nhead, **settings)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is None:
            layer = TransformerDecoderLayer(d_model, nhead, **settings)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, bool(batch_first)
        # As in PyTorch, matrices are drawn anew: copies of a layer do not begin alike.
        for weight in self.parameters():
            if len(weight.shape) > 1:
                xavier_uniform_(weight)

    @options(_MASKS)
    def forward(
        self,
        src: ArrayLike,
        tgt: ArrayLike,
        src_mask: ArrayLike | None = None,
        tgt_mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        src_key_padding_mask: ArrayLike | None = None,
        tgt_key_padding_mask: ArrayLike | None = None,
        memory_key_padding_mask: ArrayLike | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Array:
        """Read `src`, and make of it an array of the shape of `tgt`.

        Returns:
            An array of the shape of `tgt`.

        Raises:
            ShapeError: The shapes do not fit.
        """
        src, tgt = as_array(src), as_array(tgt)
        axis = 0 if self.batch_first else 1
        fits = (
            src.ndim == tgt.ndim
            and src.shape[-1] == tgt.shape[-1] == self.d_model
            and (src.ndim != 3 or src.shape[axis] == tgt.shape[axis])
        )
        if not fits:
            raise ShapeError(
                f"Transformer: got src and tgt of shapes {src.shape} and {tgt.shape}, expected "
                f"the same batch, and {self.d_model} along the last axis"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, *, dtype: Any = np.float32) -> Any:
        """Make a mask of −∞ for places after one's own, as PyTorch does; `is_causal` needs none.

        Args:
            sz: How many places there are.
            dtype: The dtype of the mask.

        >>> gt.nn.Transformer.generate_square_subsequent_mask(2)
        array([[  0., -inf],
               [  0.,   0.]], dtype=float32)
        """
        return np.triu(np.full((sz, sz), -math.inf, dtype), 1)
