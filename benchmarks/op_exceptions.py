"""Operations that are slower than the bar of the per-op table, and why."""

_SCALAR = "SciPy's loop, an element at a time on one core; no native form yet"
_COPIES = "NumPy's copy, on one core"
_OPENBLAS = "LAPACK with OpenBLAS; PyTorch has MKL"
_SORTS = "NumPy's stable argsort, on one core; the order is kept for the gradient"
_PASSES = "several passes by NumPy; `gt.jit` fuses them"

SLOWER: dict[str, str] = {
    "gt.cumprod(x, 1)": _PASSES,
    "gt.trapezoid(x)": _PASSES,
    "gt.cross(x.reshape(-1, 4)[:, :3], y.reshape(-1, 4)[:, :3])": _PASSES,
    "gt.nn.embedding(label, x)": "the gradient is added up by a sparse product, on one core",
    "x[::-1]": _COPIES,
    "gt.concat([x, y])": _COPIES,
    "gt.stack([x, y])": _COPIES,
    "gt.tile(x, (2,))": _COPIES,
    "gt.tril(x)": _COPIES,
    "gt.solve(x, y)": _OPENBLAS,
    "gt.linalg.inv(x)": _OPENBLAS,
    "gt.linalg.slogdet(x)[1]": _OPENBLAS,
    "gt.linalg.cholesky(x @ x.T)": _OPENBLAS,
    "gt.abs(gt.fft.rfft(x))": "SciPy's transform, on one core",
}
