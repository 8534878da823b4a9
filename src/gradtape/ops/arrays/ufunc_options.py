"""Calls of NumPy's ufuncs with options: where=, out=, dtype=, casting=, signature=."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradtape.core.tensor import Tensor
from gradtape.errors import DTypeError, UnsupportedError
from gradtape.ops.arguments import as_array
from gradtape.ops.cast import astype
from gradtape.ops.select import where as where_of

_NUMBERS = (int, float, complex)


def ufunc_call(
    ufunc: np.ufunc,
    function: Callable[..., Any],
    name: str,
    inputs: tuple[Any, ...],
    out: Sequence[Any] | None,
    options: dict[str, Any],
) -> Any:
    """Answer `ufunc(*inputs, out=out, **options)`.

    Args:
        ufunc: The ufunc.
        function: The gradtape function that answers for it.
        name: Its usual name, for errors.
        inputs: Its arguments.
        out: Tensors to write the results to, or None for each; None for all of them.
        options: `where`, `dtype`, `signature`, `casting`; for a generalized ufunc its axes.

    Raises:
        DTypeError: The dtypes cannot be cast as asked for.
        UnsupportedError: `where` got without `out`, or an option is not taken on a tensor.
    """
    where = options.pop("where", True)
    casting = options.pop("casting", "same_kind")
    wanted = _signature(ufunc, options.pop("signature", None), options.pop("dtype", None))
    taken = {"axis", "keepdims"} if ufunc.__name__ in ("vecdot", "matvec", "vecmat") else set()
    if not set(options) <= taken:
        raise UnsupportedError(
            f"{name}: got {', '.join(options)}=; gradtape does not take it on a tensor; "
            "leave it out and apply it to the arguments or to the result"
        )
    if where is not True:
        if out is None or any(target is None for target in out):
            raise UnsupportedError(
                f"{name}: got where= without out=; NumPy leaves the other elements undefined; "
                "use gt.where(condition, result, other), or give a tensor as out="
            )
        # Elements that take no part become ones, which neither warn nor spoil a gradient.
        inputs = tuple(_masked(where, x) for x in inputs)
    if wanted is None and casting in ("same_kind", "unsafe"):
        results = function(*inputs, **options)
    else:
        dtypes = _dtypes(ufunc, name, inputs, wanted, casting)
        results = function(*_cast(inputs, dtypes[: ufunc.nin]), **options)
        several = ufunc.nout > 1
        cast = _cast(results if several else (results,), dtypes[ufunc.nin :])
        results = tuple(cast) if several else cast[0]
    return results if out is None else ufunc_into(name, out, results, casting, where)


def _masked(where: Any, x: Any) -> Any:
    """An argument with ones where it takes no part, in its own dtype; Python numbers stay."""
    if type(x) in (bool, *_NUMBERS):
        return x
    x = as_array(x)
    return where_of(where, x, True if x.dtype == np.bool_ else 1)


def ufunc_into(
    name: str, out: Sequence[Any], results: Any, casting: str = "same_kind", where: Any = True
) -> Any:
    """Assign results to the tensors that were given as `out=`; one with None is passed on."""
    given = []
    for target, result in zip(out, results if len(out) > 1 else (results,), strict=True):
        if target is None:
            given.append(result)
            continue
        if not isinstance(target, Tensor):
            raise UnsupportedError(f"{name}: got a tensor and an ndarray as out=, expected tensors")
        if where is not True:
            result = where_of(where, result, target)
        target[...] = astype(result, target.dtype, copy=False) if casting == "unsafe" else result
        given.append(target)
    return tuple(given) if len(out) > 1 else given[0]


def _dtypes(
    ufunc: np.ufunc, name: str, inputs: Sequence[Any], wanted: Any, casting: Any
) -> tuple[Any, ...]:
    """The dtypes of arguments and results that NumPy chooses."""
    given = tuple(type(x) if type(x) in _NUMBERS else as_array(x).dtype for x in inputs)
    signature = wanted or (None,) * ufunc.nargs
    try:
        unknown = (None,) * ufunc.nout
        return ufunc.resolve_dtypes((*given, *unknown), signature=signature, casting=casting)
    except TypeError as error:
        raise DTypeError(f"{name}: {error}") from None


def _cast(values: Sequence[Any], dtypes: Sequence[Any]) -> list[Any]:
    """Arrays in the given dtypes; Python numbers stay."""
    return [
        x if type(x) in _NUMBERS else astype(as_array(x), dtype, copy=False)
        for x, dtype in zip(values, dtypes, strict=True)
    ]


def _signature(ufunc: np.ufunc, signature: Any, dtype: Any) -> tuple[Any, ...] | None:
    """The dtype asked for, for each argument and result, or None; None if nothing is asked for."""
    if signature is None and dtype is None:
        return None
    if signature is None:
        signature = (None,) * ufunc.nin + (dtype,) * ufunc.nout
    elif isinstance(signature, str) and len(signature) > 1:
        signature = signature.replace("->", "")
    elif not isinstance(signature, tuple):
        signature = (None,) * ufunc.nin + (signature,) * ufunc.nout
    return tuple(None if one is None else np.dtype(one) for one in signature)
