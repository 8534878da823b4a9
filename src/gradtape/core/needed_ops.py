"""The few functions of the layers above that core itself calls.

Tensors index and copy themselves, and derivatives are summed and cast, with ops that are defined on
top of core. `gradtape.ops` puts them here when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.core.op import Op

Function = Callable[..., Any]


class NeededOps:
    """Functions of `ops` and `autodiff` that core calls, with the signatures of the public ones.

    Attributes:
        add_hook: `core.gradient_hooks.add_hook`.
        as_object: The array of a tracked number (`core.tracked_number`).
        assign_in_place: `ops.write.write_item`.
        compute_gradients: `autodiff.context.compute_gradients`.
        joined: `ops.joined.joined`.
        jvp: `autodiff.transforms.jvp`.
        mask: `ops.select.mask`.
        public_places: Where functions of `gt` are defined, `"module:name"`; for `ops.answers`.
        vjp: `autodiff.reverse.vjp`.
        with_sparse: `ops.sparse.operators.with_sparse`.
    """

    add_hook: Function
    add_op: Op
    as_object: Function
    assign_in_place: Function
    astype: Function
    broadcast_to: Function
    compute_gradients: Function
    conj: Function
    copy: Function
    getitem: Function
    isfinite: Function
    joined: Function
    jvp: Function
    mask: Function
    moveaxis: Function
    ones_like: Function
    public_places: Function
    real: Function
    reshape: Function
    setitem: Function
    stop_gradient: Function
    sum: Function
    sum_op: Op
    vjp: Function
    with_sparse: Function

    def fill(self, **functions: Any) -> None:
        """Set some of the fields."""
        for name, function in functions.items():
            assert name in self.__annotations__, f"core needs no op {name}"
            setattr(self, name, function)


needed = NeededOps()
