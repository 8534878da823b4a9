"""Operations that are slower than the bar of the per-op table, and why."""

_SCALAR = "SciPy's loop, an element at a time on one core; no native form yet"
_COPIES = "NumPy's copy, on one core"
_OPENBLAS = "LAPACK with OpenBLAS; PyTorch has MKL"
_SORTS = "NumPy's stable argsort, on one core; the order is kept for the gradient"
_PASSES = "several passes by NumPy; `gt.jit` fuses them"

SLOWER: dict[str, str] = {
    "gt.lgamma(x)": _SCALAR,
    "gt.digamma(x)": _SCALAR,
    "gt.erfinv(x)": _SCALAR,
    "gt.special.i0(x)": _SCALAR,
    "gt.special.log_ndtr(x)": _SCALAR,
    "gt.gelu(x)": "float32 only, where PyTorch has code of its own; not looked into further",
    "gt.sum(x)": "a call of a kernel and a gradient that is written out; not looked into further",
    "gt.sum(x, 0)": "NumPy's sum over rows, on one core",
    "gt.sum(x, 1)": "as that of the whole sum",
    "gt.cumprod(x, 1)": _PASSES,
    "gt.trapezoid(x)": _PASSES,
    "gt.std(x)": _PASSES,
    "gt.cross(x.reshape(-1, 4)[:, :3], y.reshape(-1, 4)[:, :3])": _PASSES,
    "gt.nn.batch_norm(x, None, None, w, w, training=True)": _PASSES,
    "gt.nn.layer_norm(x, w.shape, w, w)": "the gradients of weights are sums over rows by NumPy",
    "gt.nn.embedding(label, x)": "the gradient is added up by a sparse product, on one core",
    "x + y": "the gradient of the row is a sum over rows by NumPy",
    "x[::-1]": _COPIES,
    "gt.roll(x, 3)": _COPIES,
    "gt.concat([x, y])": _COPIES,
    "gt.stack([x, y])": _COPIES,
    "gt.tile(x, (2,))": _COPIES,
    "gt.pad(x, 3)": _COPIES,
    "gt.tril(x)": _COPIES,
    "gt.solve(x, y)": _OPENBLAS,
    "gt.linalg.inv(x)": _OPENBLAS,
    "gt.linalg.slogdet(x)[1]": _OPENBLAS,
    "gt.linalg.cholesky(x @ x.T)": _OPENBLAS,
    "gt.sort(x)": _SORTS,
    "gt.sort(x, 1)": _SORTS,
    "gt.topk(x, 10)[0]": "NumPy's partition of all elements, on one core",
    "gt.abs(gt.fft.rfft(x))": "SciPy's transform, on one core",
}
