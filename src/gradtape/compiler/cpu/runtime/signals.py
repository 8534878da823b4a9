"""Looking for signals from native code that may run for ever.

Python runs signal handlers between its own instructions. Generated code that may not end calls `i32
gt_poll(ptr status)` now and then, which lets Python do so; if a handler raises, as that of Ctrl-C
does, the error stays set, and the code has to return.
"""

from __future__ import annotations

from gradtape.compiler.cpu.llvm.link import Library
from gradtape.compiler.cpu.llvm.native_source import NativeSource
from gradtape.compiler.cpu.runtime import cache
from gradtape.compiler.cpu.runtime.entry_tables import INTERRUPTED_STATUS
from gradtape.locks import once

# Handlers run in Python's main thread only; other threads see the status that it left.
_FUNCTIONS = """
def PyGILState_Ensure() -> i32: ...
def PyErr_CheckSignals() -> i32: ...
def PyGILState_Release(state: i32): ...

def gt_poll(status: ptr) -> i32:
    if i64[status] == INTERRUPTED:
        return 1
    state = PyGILState_Ensure()
    came = PyErr_CheckSignals()
    PyGILState_Release(state)
    return came
"""


@once
def _library() -> Library:
    """The native code of this process."""
    source = NativeSource(_FUNCTIONS, {"INTERRUPTED": INTERRUPTED_STATUS})
    return Library(cache.compiled(source), {}, ["gt_poll"])


def imports() -> dict[str, int]:
    """The symbol that generated code may refer to, for `Library(imports=…)`."""
    return {"gt_poll": _library().address("gt_poll")}
