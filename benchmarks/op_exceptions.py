"""Operations that are slower than the bar of the per-op table, and why."""

_COPIES = "copies into memory of their own; PyTorch's gradients are views of the cotangent"
_PASSES = "several passes by NumPy; `gt.jit` fuses them"
_MEMORY = "0.7 to 1.7 from run to run: bound by memory, as far as we know"

SLOWER: dict[str, str] = {
    "gt.sum(x)": _MEMORY,
    "gt.sum(x, 0)": _MEMORY,
    "gt.nn.layer_norm(x, w.shape, w, w)": _MEMORY,
    "gt.std(x)": "the gradient takes two passes and an array in between: 0.8 to 2.4 by run",
    "gt.cumprod(x, 1)": _PASSES,
    "gt.cross(x.reshape(-1, 4)[:, :3], y.reshape(-1, 4)[:, :3])": _PASSES,
    "gt.nn.batch_norm(x, None, None, w, w, training=True)": "1.2 to 3.4 from run to run; "
    "not looked into further",
    "gt.nn.embedding(label, x)": "the gradient is added up by a sparse product, on one core",
    "x[::-1]": "NumPy's copy, on one core",
    "gt.tril(x)": "NumPy's mask and copy, on one core",
    "gt.concat([x, y])": _COPIES,
    "gt.stack([x, y])": _COPIES,
    "gt.linalg.slogdet(x)[1]": "LAPACK with OpenBLAS; PyTorch has MKL",
}
