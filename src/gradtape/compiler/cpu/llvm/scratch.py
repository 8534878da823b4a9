"""Working memory of functions: a little of the stack, and memory that threads keep.

Compiled code runs in threads with stacks of any size, including Python's, so nothing whose size
depends on the data goes on the stack. `gt_scratch` of `runtime.scratch` gives memory for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gradtape.compiler.cpu.llvm.builder import I64, NULL, PTR, Builder, Type, Value

# The most stack that a function may use for its values.
STACK_BYTES = 1 << 13

# The code for the failure that there is no memory. The codes of others are larger, but for that of
# an interrupt.
NO_MEMORY = 2


def take_scratch(b: Builder, size: int, status: Value) -> Value:
    """Write code that gets memory of the calling thread; if there is none, it notes it and returns.

    Args:
        b: The function that needs it, which returns nothing. The memory is its own until it
            returns, or calls something that may run another such function.
        size: The number of bytes.
        status: The address of the code of the first failure.
    """
    memory = b.call("gt_scratch", PTR, b.const(I64, size))
    with b.only_if(b.icmp("eq", memory, NULL), returns=True):
        b.lower(status, b.const(I64, NO_MEMORY))
        b.emit("ret void")
    return memory


def take_rooms(
    b: Builder, wanted: Mapping[object, tuple[Type, int]], status: Callable[[], Value]
) -> dict[object, Value]:
    """Find memory for values: the stack for the smallest, as far as they fit, else scratch memory.

    LLVM keeps values on the stack in registers if they are never accessed by a computed index.

    Args:
        b: The function that needs them, which returns nothing.
        wanted: For each value, its type and their number.
        status: Gives the address of the code of the first failure.
    """
    sizes = {key: _aligned_bytes(type, count) for key, (type, count) in wanted.items()}
    found: dict[object, Value] = {}
    offsets: dict[object, int] = {}
    near = far = 0
    for key in sorted(wanted, key=lambda key: sizes[key]):
        if near + sizes[key] <= STACK_BYTES:
            near += sizes[key]
            found[key] = b.alloca(*wanted[key])
        else:
            offsets[key] = far
            far += sizes[key]
    if far:
        memory = take_scratch(b, far, status())
        for key, offset in offsets.items():
            found[key] = b.element(memory, offset, "i8")
    return found


def _aligned_bytes(type: Type, count: int) -> int:
    """The bytes that values take, rounded up to the alignment of the widest vectors."""
    return -(-max(type.bits // 8, 1) * type.lanes * count // 64) * 64
