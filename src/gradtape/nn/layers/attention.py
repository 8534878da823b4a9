"""Attention with several heads, which may share keys and values."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.errors import ArgumentError, DTypeError, ShapeError
from gradtape.nn.layers.first_values import filled, layer_dtype, leaf, within
from gradtape.nn.layers.linear import Linear
from gradtape.nn.module import Module
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.checks import check_between, check_callable, check_count
from gradtape.ops.join import concatenate
from gradtape.ops.matmul import matmul
from gradtape.ops.nn.attention import scaled_dot_product_attention
from gradtape.ops.nn.dropout import dropout
from gradtape.ops.nn.linear import linear
from gradtape.ops.random import randn
from gradtape.ops.rearrange import repeat
from gradtape.ops.reduce import floats, mean
from gradtape.ops.select import where
from gradtape.ops.shape import broadcast_to, moveaxis, reshape
from gradtape.ops.softmax import softmax_over
from gradtape.ops.split import split
from gradtape.typing import Array, ArrayLike

# ---- masks --------------------------------------------------------------------------------------


def _checked_mask(name: str, mask: ArrayLike) -> Any:
    """A mask of truth values, true where nothing is seen, or of numbers to add.

    Raises:
        DTypeError: It is neither.
    """
    given = as_array(mask)
    if given.dtype.kind in "iuc":
        raise DTypeError(
            f"MultiheadAttention: got {name} of {given.dtype}, expected truth values, true where "
            "nothing is to be seen, or floats to add to the scores"
        )
    return given


def _joined(masks: list[Any], dtype: Any) -> Any:
    """Masks joined in one: of places that are open, or of numbers to add; None for none."""
    if not masks:
        return None
    closed = [mask for mask in masks if mask.dtype == np.bool_]
    # Numbers of a wider dtype than that of the scores would make all that follows wide.
    added = [astype(mask, dtype, copy=False) for mask in masks if mask.dtype != np.bool_]
    numbers = functools.reduce(operator.add, added) if added else 0.0
    if not closed:
        return numbers
    joint = functools.reduce(operator.or_, closed)
    return where(joint, -math.inf, numbers) if added else ~joint


# ---- the layer ----------------------------------------------------------------------------------


class MultiheadAttention(Module):
    """Attention of several heads: each takes means of values, of which it sees a projection.

    With fewer heads of keys and values than of queries, groups of heads share them (grouped-query
    attention; multi-query with one).

    Args:
        embed_dim: The size of queries, and of the results.
        num_heads: How many heads there are; it divides `embed_dim`.
        dropout: The probability that a weight is dropped, while in training.
        bias: Whether projections have biases.
        add_bias_kv: Whether a key and a value that are parameters are added to those given.
        add_zero_attn: Whether a key and a value of zeros are added.
        kdim: The size of keys; None for `embed_dim`.
        vdim: The size of values; None for `embed_dim`.
        batch_first: Whether arrays are of shape (batch, places, size), not (places, batch, size).
        num_kv_heads: How many heads keys and values have; it divides `num_heads`. None for as many.
        rotary: A module that is applied to the projected queries and keys, of shape (batch, heads,
            places, size of a head), as `gt.nn.RotaryEmbedding` is.
        dtype: The dtype of the parameters.

    Raises:
        ArgumentError: A number of heads does not divide what it should.

    Attributes:
        in_proj_weight: The projections of queries, keys and values, one below the other; None if
            keys or values are of another size than queries.
        q_proj_weight: That of queries, if they are apart; so are `k_proj_weight`, `v_proj_weight`.
        in_proj_bias: The biases of these projections, or None.
        out_proj: The layer that combines the heads.

    >>> attention = gt.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = np.ones((3, 5, 8), np.float32)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        num_kv_heads: int | None = None,
        rotary: Callable[[Array], Array] | None = None,
        dtype: Any = np.float32,
    ) -> None:
        kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        _check_sizes(embed_dim, num_heads, kv_heads)
        check_between("MultiheadAttention", 0, 1, dropout=dropout)
        if rotary is not None:
            check_callable("MultiheadAttention", rotary=rotary)
        kind = layer_dtype(dtype, "MultiheadAttention")
        self.embed_dim, self.num_heads, self.num_kv_heads = embed_dim, num_heads, kv_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        check_count("MultiheadAttention", 1, kdim=self.kdim, vdim=self.vdim)
        self.head_dim = embed_dim // num_heads
        self.dropout, self.batch_first = float(dropout), bool(batch_first)
        self.add_zero_attn = bool(add_zero_attn)
        self.rotary = rotary
        shared = kv_heads * self.head_dim
        together = self.kdim == self.vdim == embed_dim
        for name, shape, there in (
            ("in_proj_weight", (embed_dim + 2 * shared, embed_dim), together),
            ("q_proj_weight", (embed_dim, embed_dim), not together),
            ("k_proj_weight", (shared, self.kdim), not together),
            ("v_proj_weight", (shared, self.vdim), not together),
        ):
            self.register_parameter(name, _glorot(shape, kind) if there else None)
        size = embed_dim + 2 * shared
        self.register_parameter("in_proj_bias", filled(0.0, (size,), kind) if bias else None)
        for name in ("bias_k", "bias_v"):
            drawn = leaf(randn((1, 1, shared), dtype=kind) * shared**-0.5) if add_bias_kv else None
            self.register_parameter(name, drawn)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=kind)
        if bias:
            self.out_proj.bias = filled(0.0, (embed_dim,), kind)

    def forward(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        key_padding_mask: ArrayLike | None = None,
        need_weights: bool = True,
        attn_mask: ArrayLike | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Array, Array | None]:
        """Attend to values.

        A query that no key is open to gets 0 from all heads, where PyTorch gives NaN.

        Args:
            query: Of shape (places, batch, embed_dim), with the first two the other way round for
                `batch_first`; or (places, embed_dim), without a batch.
            key: Of shape (places of keys, batch, kdim), or as for queries.
            value: Of shape (places of keys, batch, vdim), or as for queries.
            key_padding_mask: Which keys are left out, of shape (batch, places of keys): truth
                values, *true for those that are not seen*, or numbers to add to scores.
            need_weights: Whether to return the weights, which takes more time and memory.
            attn_mask: Which keys a query does not see, or numbers to add, of shape (places, places
                of keys), or (batch · heads, places, places of keys).
            average_attn_weights: Whether weights are means over heads.
            is_causal: Whether a query sees only keys up to its own place. A mask is not needed, and
                keeps its effect.

        Returns:
            The results, of the shape of the queries, and the weights: of shape (batch, places,
            places of keys), or (batch, heads, places, places of keys); None unless asked for.

        Raises:
            ShapeError: The shapes do not fit.
            DTypeError: A mask is of integers.
        """
        q, k, v = self._arranged(query, key, value)
        batch, places, keys = q.shape[0], q.shape[1], k.shape[1]
        heads = [self._heads(x) for x in self._projected(q, k, v)]
        masks = self._masks(key_padding_mask, attn_mask, (batch, places, keys))
        if self.rotary is not None:
            heads[:2] = [self.rotary(x) for x in heads[:2]]
        heads[1:], more = self._with_more(heads[1:])
        # Keys that were added come last, and are open to all queries.
        masks = [_open_behind(mask, more) for mask in masks]
        if is_causal and (masks or more or need_weights):
            masks.append(_open_behind(~np.tri(places, keys, dtype=np.bool_), more))
        mask = _joined(masks, heads[0].dtype)
        rate = self.dropout if self.training else 0.0
        if need_weights:
            out, weights = self._weighted(heads, mask, rate)
        else:
            weights = None
            q, k, v = heads
            causal, shared = is_causal and mask is None, self.num_kv_heads != self.num_heads
            out = scaled_dot_product_attention(q, k, v, mask, rate, causal, enable_gqa=shared)
        out = self.out_proj(reshape(moveaxis(out, 1, 2), (batch, places, self.embed_dim)))
        if weights is not None and average_attn_weights:
            weights = mean(weights, axis=1)
        if len(np.shape(query)) == 2:
            return out[0], None if weights is None else weights[0]
        return (out if self.batch_first else moveaxis(out, 0, 1)), weights

    # ---- how it is done --------------------------------------------------------------------

    def _arranged(self, *given: Any) -> list[Any]:
        """Queries, keys and values of shape (batch, places, size); the same arrays stay the same.

        Raises:
            ShapeError: The shapes do not fit.
        """
        known: dict[int, Any] = {}
        for x in given:
            array = floats(as_array(x))
            if len(array.shape) == 2:
                array = array[None]
            elif len(array.shape) == 3 and not self.batch_first:
                array = moveaxis(array, 0, 1)
            known[id(x)] = array
        found = [known[id(x)] for x in given]
        shapes = [x.shape for x in found]
        sizes = (self.embed_dim, self.kdim, self.vdim)
        fits = (
            len({len(np.shape(x)) for x in given}) == 1
            and all(len(s) == 3 and s[2] == n for s, n in zip(shapes, sizes, strict=True))
            and shapes[0][0] == shapes[1][0]
            and shapes[1][:2] == shapes[2][:2]
        )
        if not fits:
            got = ", ".join(str(np.shape(x)) for x in given)
            axes = ("batch, {}" if self.batch_first else "{}, batch").format
            raise ShapeError(
                f"MultiheadAttention: got queries, keys and values of shapes {got}, expected "
                f"({axes('places')}, {sizes[0]}), ({axes('keys')}, {sizes[1]}) and "
                f"({axes('keys')}, {sizes[2]}), or all without a batch"
            )
        return found

    def _projected(self, q: Any, k: Any, v: Any) -> list[Any]:
        """Queries, keys and values as heads see them, heads side by side."""
        bias, shared = self.in_proj_bias, self.num_kv_heads * self.head_dim
        places = [self.embed_dim, self.embed_dim + shared]
        if self.in_proj_weight is not None and q is k is v:
            return split(linear(q, self.in_proj_weight, bias), places, axis=-1)
        weights: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        if self.in_proj_weight is not None:
            weights = split(self.in_proj_weight, places)
        biases = [None] * 3 if bias is None else split(bias, places)
        return [linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True)]

    def _heads(self, x: Any) -> Any:
        """Heads that are side by side in an array (batch, heads, places, size of a head)."""
        count = x.shape[2] // self.head_dim
        return moveaxis(reshape(x, (*x.shape[:2], count, self.head_dim)), 2, 1)

    def _with_more(self, heads: list[Any]) -> tuple[list[Any], int]:
        """Keys and values with those added that the layer has, and how many these are."""
        batch, count, _, size = heads[0].shape
        shape, more = (batch, count, 1, size), 0
        if self.bias_k is not None:
            own = (reshape(x, (1, count, 1, size)) for x in (self.bias_k, self.bias_v))
            heads = [
                concatenate([x, broadcast_to(b, shape)], axis=2)
                for x, b in zip(heads, own, strict=True)
            ]
            more += 1
        if self.add_zero_attn:
            heads = [concatenate([x, np.zeros(shape, x.dtype)], axis=2) for x in heads]
            more += 1
        return heads, more

    def _masks(self, padding: Any, mask: Any, sizes: tuple[int, int, int]) -> list[Any]:
        """The given masks, such that they broadcast to (batch, heads, places, places of keys).

        Raises:
            ShapeError: The shapes do not fit.
        """
        batch, places, keys = sizes
        found = []
        if padding is not None:
            given = _checked_mask("key_padding_mask", padding)
            if given.shape not in ((batch, keys), (keys,) if batch == 1 else (batch, keys)):
                raise ShapeError(
                    f"MultiheadAttention: got key_padding_mask of shape {given.shape}, expected "
                    f"{(batch, keys)}"
                )
            found.append(reshape(given, (batch, 1, 1, keys)))
        if mask is not None:
            given = _checked_mask("attn_mask", mask)
            for_each = (batch * self.num_heads, places, keys)
            if given.shape not in ((places, keys), for_each):
                raise ShapeError(
                    f"MultiheadAttention: got attn_mask of shape {given.shape}, expected "
                    f"{(places, keys)}, or {for_each} with one for each sample and head"
                )
            if len(given.shape) == 3:
                given = reshape(given, (batch, self.num_heads, places, keys))
            found.append(given)
        return found

    def _weighted(self, heads: list[Any], mask: Any, rate: float) -> tuple[Any, Any]:
        """The results of all heads, and their weights."""
        q, k, v = heads
        times = self.num_heads // self.num_kv_heads
        if times > 1:
            k, v = (repeat(x, times, axis=1) for x in (k, v))
        scores = matmul(q * (1 / math.sqrt(self.head_dim)), k.mT)
        if mask is not None:
            closes = mask.dtype == np.bool_
            scores = where(mask, scores, -math.inf) if closes else scores + mask
        weights = softmax_over(scores, axis=(3,), limits=True)
        if rate:
            weights = dropout(weights, rate)
        return matmul(weights, v), weights

    def extra_repr(self) -> str:
        """Show the sizes, and options that differ from the defaults."""
        text = f"{self.embed_dim}, {self.num_heads}"
        usual = {
            "num_kv_heads": self.num_heads, "kdim": self.embed_dim, "vdim": self.embed_dim,
            "dropout": 0.0, "batch_first": False,
        }  # fmt: skip
        others = [(name, getattr(self, name)) for name in usual]
        return text + "".join(f", {n}={v}" for n, v in others if v != usual[n])


def _check_sizes(embed_dim: int, num_heads: int, kv_heads: int) -> None:
    check_count(
        "MultiheadAttention", 1, embed_dim=embed_dim, num_heads=num_heads, num_kv_heads=kv_heads
    )
    if embed_dim % num_heads:
        raise ArgumentError(
            f"MultiheadAttention: got embed_dim={embed_dim} and num_heads={num_heads}, expected a "
            "number of heads that divides the size"
        )
    if num_heads % kv_heads:
        raise ArgumentError(
            f"MultiheadAttention: got num_heads={num_heads} and num_kv_heads={kv_heads}, expected "
            "a number of heads of keys that divides that of queries"
        )


def _glorot(shape: tuple[int, int], dtype: Any) -> Any:
    return within(math.sqrt(6 / sum(shape)), shape, dtype)


def _open_behind(mask: Any, more: int) -> Any:
    """A mask with some more keys, which all queries see."""
    if not more:
        return mask
    value = False if mask.dtype == np.bool_ else 0.0
    return concatenate([mask, np.full((*mask.shape[:-1], more), value, mask.dtype)], axis=-1)
