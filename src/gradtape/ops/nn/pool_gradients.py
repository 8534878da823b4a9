"""The op of pooling by the largest or smallest element, with its derivatives.

The gradient is computed window by window, by `pool_put`; or element by element, where windows do
not overlap: each element asks the window that sees it whether it was chosen. That goes through
memory in order, needs no array of places, and joins the loops around it. It is faster where
neighbours ask the same window, or windows that stand a power of two apart.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core import scalar
from gradtape.core.aval import Aval
from gradtape.core.call import call
from gradtape.core.define import general, multilinear
from gradtape.core.lowering import Composite, Elements, Reader
from gradtape.core.op import Op, Zero
from gradtape.core.scalar import Scalar
from gradtape.ops import lowered
from gradtape.ops.nn.pool_extremes import (
    WINDOW_EXTREME,
    AllSizes,
    Best,
    extreme_forward,
    indices_forward,
    lowest,
    pool_indices,
    pool_pick,
    pool_put,
    put_forward,
)
from gradtape.ops.nn.window_elements import (
    AllWindows,
    by_small_windows,
    infer_windows,
    is_small,
    seen_by,
    seen_from,
    seen_in_windows,
)
from gradtape.ops.nn.windows import Windows, has_many, joint_parts

# The dtype that numbers the elements of a window that is written out one by one.
_COUNT = np.dtype(np.int8)


def _all_sizes(windows: AllWindows) -> AllSizes:
    return tuple(None if w is None else w.size for w in windows)


# ---- which element of its window ----------------------------------------------------------------


def _chosen_element(i: Sequence[Any], x: Reader, windows: AllWindows, largest: bool) -> Scalar:
    """The number of the best element among those that a window sees."""
    best, found = Best(largest), scalar.constant(0, _COUNT)
    fill = lowest(x.aval.dtype, largest)
    for number, (index, inside) in enumerate(seen_in_windows(i, windows, seen_by)):
        wins = best.wins(lowered.read_or(fill, x, index, inside), inside)
        if wins is not True:
            found = scalar.where(wins, scalar.constant(number, _COUNT), found)
    return found


def _chosen_forward(xp: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    """The same, from where the best element stands in the flattened spatial axes."""
    if windows[-1] is None:
        first = _chosen_forward(xp, xp.moveaxis(x, -1, 0), windows[:-1], largest)
        return xp.moveaxis(first, 0, -1)
    place, number, scale = indices_forward(xp, x, windows, largest), 0, 1
    for axis, w in reversed([*enumerate(windows)]):
        assert isinstance(w, Windows)
        own = xp.arange(w.number).reshape((-1, *(1,) * (len(windows) - 1 - axis)))
        number = number + (place % w.size + w.before - own * w.stride) // w.dilation * scale
        place, scale = place // w.size, scale * w.kernel
    return xp.asarray(number).astype(_COUNT)


# Only compiled functions know it.
_CHOSEN = Op(
    "window_choice",
    _chosen_forward,
    lambda x, **params: Aval(infer_windows(x, **params).shape, _COUNT),
    lower=Elements(_chosen_element, often=True),
)


# ---- back to that element -----------------------------------------------------------------------


def _given_element(i: Sequence[Any], y: Reader, chosen: Reader, windows: AllWindows) -> Scalar:
    """The value of `y` for the window that sees an element, if that window chose it; else 0."""
    ((which, inside),) = seen_in_windows(i, windows, seen_from)
    number: Any = 0
    for axis, w in enumerate(windows, start=len(i) - len(windows)):
        if isinstance(w, Windows):
            number = number * w.kernel + (i[axis] + w.before - which[axis] * w.stride)
    choice = lowered.read_or(-1, chosen, which, inside)
    wanted = scalar.convert(scalar.scalar(number), _COUNT)
    return scalar.where(choice == wanted, lowered.read_or(0, y, which, inside), 0)


def _given_forward(xp: Any, y: Any, chosen: Any, windows: AllWindows) -> Any:
    if windows[-1] is None:
        y, chosen = xp.moveaxis(y, -1, 0), xp.moveaxis(chosen, -1, 0)
        return xp.moveaxis(_given_forward(xp, y, chosen, windows[:-1]), 0, -1)
    out = xp.zeros(infer_windows(y, windows, back=True).shape, y.dtype)
    kernel = [w.kernel for w in windows if w is not None]
    for tap, into, of in joint_parts(windows):
        given = xp.where(
            chosen[(..., *into)] == np.ravel_multi_index(tap, kernel), y[(..., *into)], 0
        )
        out[(..., *of)] += given
    return out


_GIVEN = Op(
    "window_given",
    _given_forward,
    lambda y, _chosen, windows: infer_windows(y, windows, back=True),
    lower=Elements(_given_element, often=True),
)


def _give_forward(xp: Any, y: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    return put_forward(xp, y, indices_forward(xp, x, windows, largest), _all_sizes(windows))


def _give_composition(y: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    params: dict[str, Any] = {"windows": windows, "largest": largest}
    if is_small(windows) and all(map(_seen_back, windows)) and _asks_in_rows(windows[-1]):
        return call(_GIVEN, (y, call(_CHOSEN, (x,), params)), {"windows": windows})
    return pool_put(y, pool_indices(x, **params), sizes=_all_sizes(windows))


def _seen_back(w: Any) -> bool:
    """Whether at most one window sees each element, and its number can be computed."""
    return w is None or (isinstance(w, Windows) and w.dilation == 1 and w.kernel <= w.stride)


def _asks_in_rows(last: Any) -> bool:
    """Whether elements next to each other ask windows that are read as rows."""
    if last is None:  # channels: all of them ask the same window
        return True
    return not last.before and last.size % last.stride == 0 and last.stride.bit_count() == 1


def _pick_chosen(z: Any, x: Any, windows: AllWindows, largest: bool) -> Any:
    places = pool_indices(x, windows=windows, largest=largest)
    return pool_pick(z, places, sizes=_all_sizes(windows))


# ---- the ops ------------------------------------------------------------------------------------

# Linear in y, which is added where the elements of x stand; transpose: read there.
pool_give: Callable[..., Any] = multilinear(
    "pool_give",
    _give_forward,
    lambda ct, _out, _y, x, **params: _pick_chosen(ct, x, **params),
    Zero("which element is the largest is piecewise constant"),
    infer=lambda y, _x, windows, largest: infer_windows(y, windows, back=True),
    kind="planewise",
    lower=Composite(_give_composition),
    heavy=has_many,
)

# d max(x) = dx where the largest element stands, the first of those that are equal
pool_extreme = general(
    "pool_extreme",
    extreme_forward,
    infer=infer_windows,
    vjps=(lambda ct, _out, x, **params: pool_give(ct, x, **params),),
    jvp=lambda tangents, _out, x, **params: _pick_chosen(tangents[0], x, **params),
    kind="planewise",
    lower=Composite(functools.partial(by_small_windows, WINDOW_EXTREME)),
    heavy=has_many,
)
