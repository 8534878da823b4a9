"""Matrix products to try, and their compiled functions."""

import ctypes
import random
from typing import NamedTuple

import numpy as np

from gradtape.compiler.cpu.gemm.form import TileForm
from gradtape.compiler.cpu.gemm.gemm import Gemm
from gradtape.compiler.cpu.gemm.split import Split, split_of
from gradtape.compiler.cpu.llvm.builder import Module
from gradtape.compiler.cpu.llvm.link import LEVELS, Cpu, Library, compile_module, host, llvm
from gradtape.compiler.cpu.runtime.symbols import imports

DTYPES = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}


class Case(NamedTuple):
    """A batch of products; a gap of -1 means that all share one operand."""

    dtype: str
    m: int
    n: int
    k: int
    transpose_a: bool = False
    transpose_b: bool = False
    batch: int = 1
    gaps: tuple[int, int, int] = (0, 0, 0)

    @property
    def strides(self) -> tuple[int, int, int]:
        sizes = (self.m * self.k, self.k * self.n, self.m * self.n)
        a, b, c = (0 if gap < 0 else size + gap for size, gap in zip(sizes, self.gaps, strict=True))
        return a, b, c

    @property
    def gemm(self) -> Gemm:
        return Gemm(*self[:-1], self.strides)

    def define(self, module: Module, target: Cpu | None = None) -> str:
        return self.gemm.define(module, target)

    def form(self, target: Cpu | None = None) -> TileForm:
        return TileForm.of(self.gemm.simplified.block, target or host())

    def split(self, target: Cpu | None = None) -> Split:
        product = self.gemm.simplified
        return split_of(product.block, product.batch, target or host())


class Products:
    """Compiled functions for cases, all in one module."""

    def __init__(
        self,
        cases: list[Case],
        target: Cpu | None = None,
        symbols: dict[str, int] | None = None,
    ) -> None:
        module = Module()
        self.target = target
        self.names = {case: case.define(module, target) for case in cases}
        text = str(module)
        known = imports(text) if symbols is None else imports(text) | symbols
        self.library = Library(compile_module(text, target), known, self.names.values())

    def call(self, case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
        assert self.status(case, a, b, c) == -1

    def status(self, case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> int:
        """Run a product; -1 if all went well."""
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)
        address = self.library.address(self.names[case])
        work = np.full(case.gemm.work_bytes(self.target), 0xFF, np.uint8)
        status = ctypes.c_int64(-1)
        pointers = (*(x.ctypes.data for x in (a, b, c, work)), ctypes.addressof(status))
        function(address)(*pointers)
        return status.value

    def check(self, case: Case, rng: np.random.Generator) -> np.ndarray:
        """Compare with NumPy in a wider type, element by element; return the results."""
        a, a_items = operand(case, 0, (case.k, case.m)[:: 1 if case.transpose_a else -1], rng)
        b, b_items = operand(case, 1, (case.n, case.k)[:: 1 if case.transpose_b else -1], rng)
        c, c_items = operand(case, 2, (case.m, case.n), rng)
        before = c.copy()
        c_items[...] = np.nan
        self.call(case, a[1:], b[1:], c[1:])
        left = a_items.swapaxes(1, 2) if case.transpose_a else a_items
        right = b_items.swapaxes(1, 2) if case.transpose_b else b_items
        wide = np.float64 if case.dtype == "float" else np.longdouble
        exact = left.astype(wide) @ right.astype(wide)
        size = np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64)
        # A sum of n products is never off by more than n roundings of its largest size; it is
        # off by a few if they are added up in parts.
        roundings = min(case.k, 12)
        assert (np.abs(c_items - exact) <= roundings * np.finfo(c.dtype).eps / 2 * size).all(), case
        results = c_items.copy()
        c_items[...] = 0
        items_of(case, 2, before, (case.m, case.n))[...] = 0
        assert (c == before).all(), "wrote outside of the results"
        return results


def items_of(case: Case, number: int, flat: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrices of a batch in a flat array, which begins with one element to misalign them."""
    step = case.strides[number] * flat.itemsize
    inner = (shape[1] * flat.itemsize, flat.itemsize)
    return np.lib.stride_tricks.as_strided(flat[1:], (case.batch, *shape), (step, *inner))


def operand(
    case: Case, number: int, shape: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    count = 1 + case.batch * (shape[0] * shape[1] + max(case.gaps[number], 0)) + 8
    flat = rng.standard_normal(count).astype(DTYPES[case.dtype])
    return flat, items_of(case, number, flat, shape)


def random_cases(seed: int, count: int) -> list[Case]:
    choice = random.Random(seed)
    sizes = [1, 1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 24, 31, 33, 40, 64, 65, 100]
    cases = []
    for _ in range(count):
        m, n, k = choice.choices(sizes, k=3)
        flags = choice.random() < 0.5, choice.random() < 0.5
        gaps = choice.choice([0, 0, -1, 3]), choice.choice([0, 0, -1, 5]), choice.choice([0, 2])
        batch = choice.choice([1, 1, 1, 2, 9])
        cases.append(Case(choice.choice(list(DTYPES)), m, n, k, *flags, batch, gaps))
    return cases


# The one at hand, and what is promised for others.
CPUS = {"host": None, **{level: Cpu(level, "") for level in LEVELS}}


def runs_here(name: str) -> bool:
    """Whether code for a CPU can be run on the one at hand."""
    has = llvm().get_host_cpu_features()
    return name == "host" or all(has.get(feature, False) for feature in LEVELS[name])
