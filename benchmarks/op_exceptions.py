"""Operations that are slower than the bar of the per-op table, and why."""

_COPIES = "copies into memory of their own; PyTorch's gradients are views of the cotangent"

SLOWER: dict[str, str] = {
    "gt.concat([x, y])": _COPIES,
    "gt.stack([x, y])": _COPIES,
    "x[::-1]": "float32 is copied backwards by NumPy, on one core",
    "gt.sum(x, 0)": "parts of the rows first, then what these give: 1.3 to 1.7 by run",
    "gt.nn.layer_norm(x, w.shape, w, w)": "sums for the weights are a pass by itself: 1.2 to 1.7",
    "gt.nn.embedding(label, x)": "the gradient is added up by a sparse product, on one core",
}
