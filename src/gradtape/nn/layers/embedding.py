"""Tables whose rows are looked up by number."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import ShapeError
from gradtape.nn.layers.first_values import layer_dtype, leaf, standard_normal
from gradtape.nn.module import Module
from gradtape.ops.arguments import as_array
from gradtape.ops.checks import check_choice, check_count
from gradtape.ops.nn.bags import embedding_bag
from gradtape.ops.nn.embedding import embedding, row_number
from gradtape.typing import Array, ArrayLike


class _Table(Module):
    """A parameter whose rows are drawn from the standard normal distribution."""

    padding_idx: int | None
    weight: Any

    def _set_table(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, dtype: Any
    ) -> None:
        name = type(self).__name__
        check_count(name, 1, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.padding_idx = row_number(name, padding_idx, num_embeddings)
        kind = layer_dtype(dtype, name)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        drawn = standard_normal((num_embeddings, embedding_dim), kind)
        if self.padding_idx is not None:
            table = drawn.detach().numpy().copy()
            table[self.padding_idx] = 0
            drawn = leaf(Tensor(table))
        self.weight = drawn

    @classmethod
    def from_pretrained(
        cls,
        embeddings: ArrayLike,
        freeze: bool = True,
        padding_idx: int | None = None,
        **others: Any,
    ) -> Self:
        """Make a layer with a given table, which is copied.

        Args:
            embeddings: The table, of shape (rows, size).
            freeze: Whether it is not to be trained.
            padding_idx: A row that has no gradient.
            **others: Further settings of the class.

        Raises:
            ShapeError: It has other than two axes.
            DTypeError: It does not hold floating-point numbers.

        >>> gt.nn.Embedding.from_pretrained(np.eye(3))(np.array([2])).detach()
        tensor([[0., 0., 1.]])
        """
        table = np.array(as_array(embeddings))
        if table.ndim != 2:
            raise ShapeError(
                f"{cls.__name__}: got a table of shape {table.shape}, expected (rows, size)"
            )
        settings = {"padding_idx": padding_idx, "dtype": table.dtype, **others}
        made = cls(*table.shape, **settings)
        made.weight = leaf(Tensor(table))
        return made.requires_grad_(not freeze)

    def extra_repr(self) -> str:
        """Show the sizes."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Embedding(_Table):
    """Rows of a table by their numbers: `gt.nn.embedding`.

    Args:
        num_embeddings: The number of rows.
        embedding_dim: The size of a row.
        padding_idx: A row that begins with zeros and has no gradient.
        dtype: The dtype of the table.

    Attributes:
        weight: The table, of shape (num_embeddings, embedding_dim).

    Raises:
        ArgumentError: There would be no rows, or nothing in them.
        IndexingError: There is no row `padding_idx`.
        DTypeError: The dtype is not a floating-point one.

    >>> layer = gt.nn.Embedding(10, 3, padding_idx=0)
    >>> layer(np.array([[1, 2], [0, 3]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        dtype: Any = np.float32,
    ) -> None:
        self._set_table(num_embeddings, embedding_dim, padding_idx, dtype)

    def forward(self, x: ArrayLike) -> Array:
        """Look up the rows with the numbers `x`."""
        return embedding(x, self.weight, self.padding_idx)


class EmbeddingBag(_Table):
    """Sums, averages or maxima of rows of a table: `gt.nn.embedding_bag`.

    Args:
        num_embeddings: The number of rows.
        embedding_dim: The size of a row.
        mode: "sum", "mean", or "max".
        include_last_offset: Whether the last offset is the end of the last bag.
        padding_idx: A row that begins with zeros, has no gradient, and does not count.
        dtype: The dtype of the table.

    Attributes:
        weight: The table, of shape (num_embeddings, embedding_dim).

    Raises:
        ArgumentError: There would be no rows, nothing in them, or no such mode.
        IndexingError: There is no row `padding_idx`.
        DTypeError: The dtype is not a floating-point one.

    >>> layer = gt.nn.EmbeddingBag(10, 3, mode="sum")
    >>> layer(np.array([1, 2, 4, 5, 4]), np.array([0, 3])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: Any = np.float32,
    ) -> None:
        check_choice("EmbeddingBag", ("sum", "mean", "max"), mode=mode)
        self.mode, self.include_last_offset = mode, include_last_offset
        self._set_table(num_embeddings, embedding_dim, padding_idx, dtype)

    def forward(
        self,
        x: ArrayLike,
        offsets: ArrayLike | None = None,
        per_sample_weights: ArrayLike | None = None,
    ) -> Array:
        """Reduce bags of the rows with the numbers `x`.

        Args:
            x: The numbers, of shape (bags, rows in each), or all of them one after the other.
            offsets: Where each bag begins, if they come one after the other.
            per_sample_weights: What rows are multiplied with, of the shape of `x`; only for "sum".
        """
        return embedding_bag(
            *(x, self.weight, offsets),
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Show the sizes and the mode."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
