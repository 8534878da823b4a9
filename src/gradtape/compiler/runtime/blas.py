"""Matrix products for compiled code: own loops for what is small, SciPy's BLAS for the rest.

BLAS comes through SciPy's capsules: a pointer to Fortran's routine, which takes everything by
address. It must not use threads of its own inside ours (two pools that both spin slow each other
down many times over), so it is held to one thread as long as any call from compiled code runs; the
number that the user had set is restored by the last one to leave. That needs OpenBLAS, which is
what SciPy's own builds have; another BLAS keeps its threads, and results stay right.
"""

from __future__ import annotations

import ctypes
import os
import threading

from gradtape.compiler.llvm.builder import Module
from gradtape.compiler.llvm.link import Library, Target, host
from gradtape.compiler.runtime import blocks, cache, pool
from gradtape.compiler.runtime.product import Product, define
from gradtape.compiler.runtime.tile import Block
from gradtape.errors import ArgumentError, UnsupportedError

_ROUTINES = {"gt_sgemm": "sgemm", "gt_dgemm": "dgemm"}
_LARGEST = 2**31 - 1  # BLAS counts in 32-bit integers

# What OpenBLAS calls the number of its threads: in SciPy's builds, in others.
_THREAD_FUNCTIONS = (
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
)

# A count of the callers, behind a lock that is held for some nanoseconds: who comes first sets one
# thread, who leaves last sets the old number, unless the user changed it meanwhile.
_HOLD = """
@lock = internal global i32 0, align 64
@inside = internal global i32 0, align 4
@before = internal global i32 1, align 4

declare i32 @blas_get_threads()
declare void @blas_set_threads(i32)
declare i32 @sched_yield()

define internal void @take() {
entry:
  br label %try
try:
  %swap = cmpxchg ptr @lock, i32 0, i32 1 acquire monotonic, align 4
  %taken = extractvalue { i32, i1 } %swap, 1
  br i1 %taken, label %end, label %wait
wait:
  %yielded = call i32 @sched_yield()
  br label %try
end:
  ret void
}

define void @gt_blas_enter() {
entry:
  call void @take()
  %inside = load i32, ptr @inside, align 4
  %more = add i32 %inside, 1
  store i32 %more, ptr @inside, align 4
  %first = icmp eq i32 %inside, 0
  br i1 %first, label %ask, label %end
ask:
  %threads = call i32 @blas_get_threads()
  store i32 %threads, ptr @before, align 4
  %several = icmp ne i32 %threads, 1
  br i1 %several, label %hold, label %end
hold:
  call void @blas_set_threads(i32 1)
  br label %end
end:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

define internal void @restore() {
entry:
  %before = load i32, ptr @before, align 4
  %several = icmp ne i32 %before, 1
  br i1 %several, label %ask, label %end
ask:
  %threads = call i32 @blas_get_threads()
  %untouched = icmp eq i32 %threads, 1
  br i1 %untouched, label %set, label %end
set:
  call void @blas_set_threads(i32 %before)
  br label %end
end:
  ret void
}

define void @gt_blas_leave() {
entry:
  call void @take()
  %inside = load i32, ptr @inside, align 4
  %fewer = sub i32 %inside, 1
  store i32 %fewer, ptr @inside, align 4
  %last = icmp eq i32 %fewer, 0
  br i1 %last, label %free, label %end
free:
  call void @restore()
  br label %end
end:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

define void @gt_blas_reset() {
entry:
  %inside = load i32, ptr @inside, align 4
  %any = icmp ne i32 %inside, 0
  br i1 %any, label %free, label %end
free:
  call void @restore()
  br label %end
end:
  store i32 0, ptr @inside, align 4
  store atomic i32 0, ptr @lock release, align 4
  ret void
}
"""

_NO_HOLD = """
define void @gt_blas_enter() {
  ret void
}
define void @gt_blas_leave() {
  ret void
}
define void @gt_blas_reset() {
  ret void
}
"""


class _Blas:
    """SciPy's BLAS in this process, once it was needed."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # see the pool's
        self.hold: Library | None = None
        self.addresses: dict[str, int] = {}

    def ready(self) -> dict[str, int]:
        """The symbols that compiled products refer to."""
        with self.lock:
            if self.hold is None:
                functions = _thread_functions()
                code = cache.compiled(_HOLD if functions else _NO_HOLD)
                exports = ("gt_blas_enter", "gt_blas_leave", "gt_blas_reset")
                self.hold = Library(code, functions, exports)
                found = {name: _capsule(routine) for name, routine in _ROUTINES.items()}
                self.addresses = found | {name: self.hold.address(name) for name in exports[:2]}
            return self.addresses

    def after_fork(self) -> None:
        """In the child: calls of other threads will never leave."""
        if self.hold is not None:
            ctypes.CFUNCTYPE(None)(self.hold.address("gt_blas_reset"))()
        self.lock.release()


_blas = _Blas()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_blas.lock.acquire,
        after_in_parent=_blas.lock.release,
        after_in_child=_blas.after_fork,
    )


def _capsule(routine: str) -> int:
    """The address of one of SciPy's BLAS routines."""
    import scipy.linalg.cython_blas as blas

    get_name, get_pointer = (
        ctypes.pythonapi.PyCapsule_GetName,
        ctypes.pythonapi.PyCapsule_GetPointer,
    )
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = blas.__pyx_capi__[routine]
    signature = get_name(capsule)
    if b"char *, char *, int *, int *, int *" not in signature:
        raise UnsupportedError(
            f"matmul: SciPy's {routine} is {signature!r}; needs one with 32-bit integers; "
            "install SciPy from PyPI or conda-forge"
        )
    return int(get_pointer(capsule, signature))


def _thread_functions() -> dict[str, int]:
    """Where the BLAS that SciPy uses gets and sets its number of threads; nothing if unknown."""
    import scipy.linalg.cython_blas as blas

    # Symbols are looked up in the extension module and in the libraries it was linked with.
    library = ctypes.CDLL(blas.__file__)
    for getter, setter in _THREAD_FUNCTIONS:
        if hasattr(library, getter) and hasattr(library, setter):
            found = {"blas_get_threads": getter, "blas_set_threads": setter}
            return {
                name: ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value or 0
                for name, symbol in found.items()
            }
    return {}


def imports(text: str) -> dict[str, int]:
    """Of the thread pool, kept memory and BLAS, the symbols that a module's text refers to.

    SciPy is loaded only if the module needs its BLAS.
    """
    needed: dict[str, int] = {}
    if "@gt_parallel" in text:
        needed |= pool.imports()
    if "@gt_take" in text:
        needed |= blocks.imports()
    if any(f"@{name}(" in text for name in (*_ROUTINES, "gt_blas_enter")):
        needed |= _blas.ready()
    return needed


def gemm(
    module: Module,
    dtype: str,
    m: int,
    n: int,
    k: int,
    *,
    transpose_a: bool,
    transpose_b: bool,
    batch: int = 1,
    stride_a: int = 0,
    stride_b: int = 0,
    stride_c: int = 0,
    target: Target | None = None,
) -> str:
    """Define a function for a matrix product of static sizes, C = op(A)·op(B), all row-major.

    Args:
        module: Where to define it, unless it is there already.
        dtype: float or double.
        m: Rows of C.
        n: Columns of C.
        k: Length of the sums; 0 gives zeros.
        transpose_a: A is stored k×m and used as m×k.
        transpose_b: B is stored n×k and used as k×n.
        batch: How many products.
        stride_a: Elements from one A to the next; 0 if all use the same.
        stride_b: The same of B.
        stride_c: The same of C.
        target: The CPU, by default the one at hand.

    Returns:
        The name of the function, `void name(ptr a, ptr b, ptr c)`. C must not overlap A or B. It
        may refer to the symbols of `imports`.

    Raises:
        ArgumentError: If a size is negative or beyond 32 bits, or results of a batch would overlap.
    """
    if not all(0 <= size <= _LARGEST for size in (m, n, k)):
        raise ArgumentError(
            f"matmul: sizes ({m}, {k}) and ({k}, {n}); needs each to be at most {_LARGEST}; "
            "split the arrays"
        )
    if batch > 1 and stride_c < m * n:
        raise ArgumentError(
            f"matmul: results of {m * n} elements every {stride_c}; needs them not to overlap"
        )
    flags = ("t" if transpose_a else "n") + ("t" if transpose_b else "n")
    strides = f"_{batch}_{stride_a}_{stride_b}_{stride_c}" if batch != 1 else ""
    name = f"gt_gemm_{dtype}_{m}_{n}_{k}_{flags}{strides}"
    if module.defines(name):
        return name
    block = Block(
        dtype,
        m,
        n,
        k,
        transpose_a,
        transpose_b,
        m if transpose_a else k,
        k if transpose_b else n,
        n,
    )
    product = Product(block, batch, (stride_a, stride_b, stride_c), "abc")
    if min(m, n, batch) <= 0:
        module.define(f"define void @{name}(ptr %a, ptr %b, ptr %c) {{\n  ret void\n}}")
    else:
        define(module, name, _simplified(product), target or host())
    return name


def _simplified(product: Product) -> Product:
    """The same product with as little as possible transposed, batched, or one column wide."""
    block, batch, strides, order = product
    m, n, k = block.m, block.n, block.k
    dense = strides[::2] == (m * k, m * n) and strides[1] == 0 and not block.transpose_a
    if batch > 1 and dense and batch * m <= _LARGEST:
        # One B for all: the As are one tall matrix.
        return _simplified(Product(block._replace(m=batch * m), 1, (0, 0, 0), order))
    if n == 1:
        # A column is also a row: Cᵀ = op(B)ᵀ·op(A)ᵀ, where the first factor is a row as well.
        along_k = not block.transpose_a or m == 1
        block = Block(block.scalar, 1, m, k, False, along_k, k, k if along_k else m, m)
        strides, order = (strides[1], strides[0], strides[2]), "bac"
    if block.m == 1:
        block = block._replace(transpose_a=False, lda=k)
    if k == 1:
        block = block._replace(transpose_a=False, lda=1, transpose_b=False, ldb=block.n)
    return Product(block, batch, strides, order)
