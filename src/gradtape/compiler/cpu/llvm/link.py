"""From the text of a module to machine code in this process, by llvmlite."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from gradtape import config
from gradtape.core.lazy import lazy
from gradtape.errors import ArgumentError, UnsupportedError
from gradtape.locks import apart, held_at_fork, loading, once

T = TypeVar("T")

# The passes that our IR needs: vectors are explicit and loops are as they should be, so the passes
# that vectorise and unroll would take most of the compile time for no gain. Repeated computations
# in a block are left out by the builder: LLVM's pass for that (NewGVN) aborts on some of our loops.
_PASSES = (
    "add_always_inliner_pass",
    "add_sroa_pass",
    "add_instruction_combine_pass",
    "add_simplify_cfg_pass",
    "add_loop_rotate_pass",
    "add_dead_code_elimination_pass",
)

# Each run of a pass builder makes the next one slower, and 5 kB of each builder are never freed, so
# one serves some modules and is then replaced.
_MODULES_PER_BUILDER = 32

# Code that nothing refers to any more, to be unloaded.
_unused: deque[Any] = deque()
_library_numbers = itertools.count()
# A linker keeps 9 kB of every library that is gone, so it is replaced now and then.
_LIBRARIES_PER_LINKER = 64


def llvm() -> ModuleType:
    """Llvmlite's binding, with the native target ready."""
    return _llvm()[0]


def _calling_llvm(work: Callable[[], T]) -> T:
    """Call LLVM: on one thread at a time, and never interrupted.

    Ctrl-C in the middle of llvmlite would leave its lock held, or have memory freed twice. The lock
    is the one that llvmlite itself holds during each call, including calls of other packages and
    of the garbage collector: two locks could be taken in either order, and deadlock.
    """
    return apart(work, _llvm()[1])


@once
def _llvm() -> tuple[ModuleType, Any]:
    try:
        with loading():
            import llvmlite.binding as binding
    except ImportError as error:
        raise UnsupportedError(
            "jit: needs llvmlite, which is not installed; pip install llvmlite"
        ) from error
    # Not a public name: if it is gone, a lock of our own keeps our calls apart.
    lock = held_at_fork(getattr(getattr(binding.ffi.lib, "_lock", None), "_lock", None))
    apart(lambda: _initialize(binding), lock)
    return binding, lock


def _initialize(binding: ModuleType) -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


# The levels of x86-64, by which code can be made for CPUs older than this one, and the features of
# each that matter for our code.
_V2 = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"}
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "fma", "f16c", "lzcnt", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS: dict[str, set[str]] = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}


class Cpu:
    """A CPU to generate code for.

    Attributes:
        name: LLVM's name for it.
        features: LLVM's list of features (`+avx2,-avx512f,…`) beyond those the name implies.
        vector_bytes: The width of its vector registers.
        vector_registers: The number of its vector registers.
        masks: Whether it can load and store only some lanes of a vector.
        has_half: Whether it converts between float16 and float32.
        has_pairs: Whether it adds up products of bfloat16 in pairs.
        optimizes: Whether LLVM optimizes the code, which is most of the compile time.
    """

    def __init__(self, name: str, features: str, *, optimizes: bool = True) -> None:
        self.name = name
        self.features = features
        self.optimizes = optimizes
        has = _named(features) | LEVELS.get(name, set())
        self.vector_bytes = 64 if "avx512f" in has else 32 if "avx2" in has else 16
        self.vector_registers = 32 if has & {"avx512f", "neon"} else 16
        self.masks = "avx2" in has
        self.has_pairs = {"avx512bf16", "avx512vl"} <= has
        self.has_half = bool(has & {"f16c", "avx512f", "neon"})
        self._improved = 0
        self._passes: tuple[Any, Any] | None = None

    @property
    def key(self) -> str:
        """Everything about it that generated code depends on."""
        version = ".".join(map(str, llvm().llvm_version_info))
        return f"llvm {version} {self.name} {self.features}{'' if self.optimizes else ' as it is'}"

    @lazy
    def machine(self) -> Any:
        """LLVM's code generator for it."""
        return (
            llvm()
            .Target.from_default_triple()
            .create_target_machine(
                cpu=self.name,
                features=self.features,
                opt=2 if self.optimizes else 0,
                reloc="pic",
                codemodel="small",
                jit=True,
            )
        )

    def improve(self, module: Any) -> None:
        """Run the passes over a module, on the thread that may call LLVM."""
        if self._passes is None or self._improved % _MODULES_PER_BUILDER == 0:
            options = llvm().create_pipeline_tuning_options(speed_level=2)
            manager = llvm().create_new_module_pass_manager()
            for name in _PASSES:
                getattr(manager, name)()
            self._passes = manager, llvm().create_pass_builder(self.machine, options)
        self._improved += 1
        manager, builder = self._passes
        manager.run(module, builder)


def _named(features: str) -> set[str]:
    """The features that a CPU has, from LLVM's list of present and absent ones."""
    return {feature[1:] for feature in features.split(",") if feature.startswith("+")}


@once
def host() -> Cpu:
    """The CPU that code is made for: that of this machine, or an older one that the user named.

    Raises:
        ArgumentError: This CPU lacks features of the named one, or there is no such CPU.
    """
    level = config.cpu_level()
    if level is None:
        return Cpu(_calling_llvm(llvm().get_host_cpu_name), _features())
    if level not in levels():
        raise ArgumentError(
            f"GRADTAPE_CPU: got {level!r}, expected a level this CPU has "
            f"({', '.join(levels()) or 'none'}); leave it out to use all of the CPU"
        )
    return Cpu(level, "")


@once
def host_as_it_is() -> Cpu:
    """The same for code not worth optimizing: it runs seldom, and next to slower things."""
    return Cpu(host().name, host().features, optimizes=False)


def levels() -> list[str]:
    """The levels of x86-64 that this CPU has."""
    has = _named(_features())
    return [name for name, needed in LEVELS.items() if needed <= has]


def _features() -> str:
    """LLVM's list of the features that this CPU has and lacks."""
    return _calling_llvm(lambda: llvm().get_host_cpu_features().flatten())  # type: ignore[no-any-return]


def compile_module(text: str, cpu: Cpu | None = None) -> bytes:
    """Machine code of a module, as an object file."""
    return _printed(text, cpu or host(), "emit_object")  # type: ignore[no-any-return]


def assembly(text: str, cpu: Cpu | None = None) -> str:
    """The machine code of a module, as a listing."""
    return _printed(text, cpu or host(), "emit_assembly")  # type: ignore[no-any-return]


def _printed(text: str, cpu: Cpu, form: str) -> Any:
    def printed() -> Any:
        module, machine = _optimized(text, cpu)
        return getattr(machine, form)(module)

    return _calling_llvm(printed)


def _optimized(text: str, cpu: Cpu) -> tuple[Any, Any]:
    module = llvm().parse_assembly(text)
    module.verify()
    if cpu.optimizes:
        cpu.improve(module)
    return module, cpu.machine


class Library:
    """Machine code linked into this process; unloaded when the last reference is gone.

    Args:
        code: An object file.
        imports: Addresses of symbols it refers to, besides those the process exports.
        exports: The functions to be called from outside.
    """

    def __init__(self, code: bytes, imports: Mapping[str, int], exports: Iterable[str]) -> None:
        exports, _ = tuple(exports), host()  # before the lock is taken
        self._loaded = _calling_llvm(lambda: _Loaded(_linked(code, imports, exports)))
        self._addresses: dict[str, int] = {name: self._loaded.of_llvm[name] for name in exports}

    def address(self, name: str) -> int:
        """The address of an exported function."""
        return self._addresses[name]

    def function(self, name: str, prototype: Any) -> Any:
        """An exported function with a ctypes prototype; it keeps the code loaded."""
        function = prototype(self._addresses[name])
        function.library = self
        return function


class _Loaded:
    """Code that LLVM has loaded; it is unloaded when the next library is loaded.

    Not at once: the garbage collector runs at any time, in any thread, with any locks held.
    """

    def __init__(self, of_llvm: Any) -> None:
        self.of_llvm = of_llvm

    # As a default: when the process ends, modules may be emptied before libraries are gone.
    def __del__(self, unused: deque[Any] = _unused) -> None:
        unused.append(self.of_llvm)


def _linked(code: bytes, imports: Mapping[str, int], exports: Iterable[str]) -> Any:
    _unused.clear()
    builder = llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
    for name, address in imports.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    number = next(_library_numbers)
    return builder.link(_linker(number // _LIBRARIES_PER_LINKER), f"gradtape{number}")


@functools.lru_cache(maxsize=1)
def _linker(_generation: int) -> Any:
    """One of LLVM's linkers; it is freed with the last library that it linked."""
    return llvm().create_lljit_compiler(host().machine, use_jit_link=True)
