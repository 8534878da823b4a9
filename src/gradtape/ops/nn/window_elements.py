"""Windows in native code: which elements one of them sees, and which windows see an element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.op import Op
from gradtape.core.scalar import Scalar
from gradtape.errors import UnsupportedError
from gradtape.ops import lowered
from gradtape.ops.nn.windows import Shares, Windows

# None leaves an axis as it is.
AllWindows = tuple[Windows | Shares | None, ...]
# Windows over more elements are not written out one by one.
_LONGEST = 64
# Places along an axis, and which of them are inside the array; None if all are.
Seen = list[tuple[Any, Scalar | None]]


def is_small(windows: AllWindows) -> bool:
    """Whether what windows see can be written out one by one, for all axes at once."""
    return math.prod(w.kernel for w in windows if w is not None) <= _LONGEST


def seen_by(i: Any, w: Windows | Shares) -> Seen:
    """The elements that window `i` sees, and which of them exist inside the array."""
    if isinstance(w, Shares):
        start = scalar.floor_divide(i * w.size, w.number)
        stop = scalar.floor_divide((i + 1) * w.size + (w.number - 1), w.number)
        return [(start + tap, start + tap < stop if tap else None) for tap in range(w.kernel)]
    found = []
    for tap in range(w.kernel):
        shift = tap * w.dilation - w.before
        place = (i if w.stride == 1 else i * w.stride) + shift
        ends = (w.number - 1) * w.stride + shift >= w.size
        inside = lowered.both(place >= 0 if shift < 0 else None, place < w.size if ends else None)
        found.append((place, inside))
    return found


def seen_from(i: Any, w: Windows | Shares) -> Seen:
    """The windows that see element `i`, and where there are such windows."""
    if isinstance(w, Shares) or w.dilation > 1:
        raise UnsupportedError("no native code for windows of several sizes, or with gaps")
    at = i + w.before if w.before else i
    last = at if w.stride == 1 else scalar.floor_divide(at, w.stride)
    found = []
    for back in range(-(-w.kernel // w.stride)):
        which = last - back if back else last
        ends = (w.size - 1 + w.before) // w.stride - back >= w.number
        # Windows this far back may end before the element.
        short = w.kernel < (back + 1) * w.stride
        inside = lowered.both(
            which >= 0 if back or w.before < 0 else None,
            which < w.number if ends else None,
            at - which * w.stride < w.kernel if short else None,
        )
        found.append((which, inside))
    return found


def seen_in_windows(
    i: Sequence[Any],
    windows: AllWindows,
    seen: Callable[[Any, Windows | Shares], Seen],
) -> Iterator[tuple[tuple[Any, ...], Scalar | None]]:
    """Everything seen along the last axes from a place, in order; None leaves an axis unchanged."""
    lead = len(i) - len(windows)
    axes = [
        [(own, None)] if w is None else seen(own, w)
        for own, w in zip(i[lead:], windows, strict=True)
    ]
    for part in itertools.product(*axes):
        places, conditions = zip(*part, strict=True)
        yield (*i[:lead], *places), lowered.both(*conditions)


def infer_windows(x: Aval, windows: AllWindows, back: bool = False, **_params: Any) -> Aval:
    """One element per window; backwards, one per element that they see."""
    lead = len(x.shape) - len(windows)
    sizes = (
        n if w is None else w.size if back else w.number
        for n, w in zip(x.shape[lead:], windows, strict=True)
    )
    return Aval((*x.shape[:lead], *sizes), x.dtype)


def by_small_windows(op: Op, x: Any, windows: AllWindows, **params: Any) -> Any:
    """Apply an op of windows to all axes at once if they are small; else axis by axis."""
    if is_small(windows):
        return call(op, (x,), {"windows": windows, **params})
    for axis, w in enumerate(windows, start=-len(windows)):
        if w is not None:
            one = (w, *(None,) * (-axis - 1))
            if not is_small(one):
                raise UnsupportedError(f"no native code for windows over {w.kernel} elements")
            x = call(op, (x,), {"windows": one, **params})
    return x
