"""Every op, by the cases in `opcases`: values, shape rules, derivatives, batching, errors.

A case only states arguments and a reference; what is tested of every op stands here, once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from every_case import CASES, FURTHER, call_of, cast, each, pulled, with_arrays
from gradtape import containers
from gradtape.core.op import registry
from gradtape.core.state import current
from gradtape.errors import GradtapeError
from gradtape.ops.answers import places
from gradtape.testing import check_grads
from older import OLDER
from opcall import (
    Call,
    CheckInfer,
    PassOn,
    as_tensors,
    assert_same,
    check_kept,
    is_floating,
    noting,
)
from opcases.case import At, OpCase, Raises

# ---- values -------------------------------------------------------------------------------------


def check_values(case: OpCase, args: Sequence[Any]) -> set[str]:
    """Arrays in, arrays out; tensors in, tensors out; both as the reference has it.

    Returns:
        The ops that were called.
    """
    call = Call(case.function, args, case.params)
    from_arrays = call(*call.arrays)
    assert_same(from_arrays, Call(case.ref, args, case.params)(*call.arrays), case.rtol)
    assert not any(isinstance(out, gt.Tensor) for out in from_arrays)
    from_tensors = call(*as_tensors(call.arrays))
    mode = CheckInfer()
    with gt.using_mode(mode):
        from_general = call(*as_tensors(call.arrays))
    for results in (from_tensors, from_general) if call.arrays else ():
        assert all(isinstance(out, gt.Tensor) for out in results)
        assert_same(results, from_arrays, 0)
    return mode.seen


@each()
def test_value(case: OpCase, thorough: bool) -> None:
    seen: set[str] = set()
    # The reference of an older one is that of another version.
    for dtype in () if case.id in OLDER else case.dtypes:
        seen |= check_values(case, cast(case.args, dtype))
    if thorough or not seen.issuperset(case.names):
        check_rules_reach(case, seen)


def check_rules_reach(case: OpCase, seen: set[str]) -> None:
    """The ops a case names that are not among those seen are called by the rules of others."""
    call = call_of(case)
    function, floats = call.differentiable()
    mode = CheckInfer()
    with gt.using_mode(mode):
        call(*as_tensors(call.arrays))
        if case.differentiable:  # on raw arrays modes do not see what rules call
            once = functools.partial(pulled, function)
            gt.jvp(lambda *xs: once(xs), floats, floats)
            if case.second_order:
                gt.jvp(lambda *xs: pulled(lambda *ys: once(ys), xs), floats, floats)
    assert set(case.names) <= seen | mode.seen


ANSWERED = places()  # once: it goes through all names, and there are thousands of cases


@each(lambda case: case.ref in ANSWERED)
def test_numpy_function_on_tensors(case: OpCase) -> None:
    call, reference = call_of(case), Call(case.ref, case.args, case.params)
    results = reference(*as_tensors(call.arrays))
    assert not call.arrays or all(isinstance(out, gt.Tensor) for out in results)
    assert_same(results, call(*call.arrays), 0)


def variants(args: Sequence[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Other forms of the arguments of an elementwise function."""
    flat = [np.ravel(arg)[:4] for arg in np.broadcast_arrays(*args)]
    yield "0-d", tuple(array[:1].reshape(()) for array in flat)
    yield "empty", tuple(array[:0].reshape(0, 3) for array in flat)
    yield "strided", tuple(np.repeat(array, 2)[::2] for array in flat)
    yield "transposed", tuple(np.stack([array, array]).T for array in flat)
    for i in range(len(flat) if len(flat) > 1 else 0):
        yield f"column {i}", tuple(x[:3, None] if i == j else x[:2] for j, x in enumerate(flat))
        yield f"scalar {i}", tuple(x[0] if i == j else x[:3] for j, x in enumerate(flat))
        if flat[i].dtype == np.float64:
            yield f"number {i}", tuple(x[0].item() if i == j else x for j, x in enumerate(flat))


@each(lambda case: case.elementwise)
def test_elementwise_variants(case: OpCase, thorough: bool) -> None:
    for label, args in variants(case.args):
        with noting(f"with {label} arguments"):
            for dtype in case.dtypes:
                check_values(case, cast(args, dtype))
            # To a rule, strides and numbers are what other forms are already.
            derived = thorough or not label.startswith(("strided", "number"))
            if derived and case.differentiable and case.differences:
                # Where shapes differ, rules have to sum, and those of rules to spread again.
                second = thorough or label.startswith(("0-d", "column"))
                check_derivatives(case, args, thorough, second)


# ---- derivatives --------------------------------------------------------------------------------


def check_derivatives(
    case: OpCase, args: Sequence[Any], thorough: bool, second: bool = True
) -> None:
    """All floating arguments together, to second order if there is one, and each of them alone."""
    function, floats = Call(case.function, args, case.params).differentiable()
    # Along a random direction, the errors of all entries add up.
    options = {} if thorough else {"entries": 0, "directions": 1, "rtol": 1e-6, "atol": 1e-6}
    if floats:
        check_grads(function, floats, order=2 if second and case.second_order else 1, **options)
    for i in range(len(floats) if len(floats) > 1 else 0):
        check_grads(alone(function, floats, i), (floats[i],), order=1, **options)


def alone(function: Callable[..., Any], args: Sequence[Any], i: int) -> Callable[[Any], Any]:
    """The function of argument i only."""
    return lambda x: function(*args[:i], x, *args[i + 1 :])


@each(lambda case: case.differentiable and case.differences)
def test_derivatives(case: OpCase, thorough: bool) -> None:
    check_derivatives(case, case.args, thorough, second=thorough or case.id not in FURTHER)


@each()
def test_records_keep_what_rules_read(case: OpCase, thorough: bool) -> None:
    if case.id in FURTHER and not thorough:
        return
    call = call_of(case)
    results = call(*as_tensors(call.arrays, requires_grad=True))
    tracked = [out for out in results if isinstance(out, gt.Tensor) and out.requires_grad]
    assert bool(tracked) == case.differentiable
    if not tracked:
        return
    for out in results:
        check_kept(out.record)
    with gt.using_mode(PassOn()):
        for out in call(*as_tensors(call.arrays, requires_grad=True)):
            check_kept(out.record)
    function, floats = call.differentiable()
    fast = pulled(function, floats)
    with gt.using_mode(PassOn()):
        general = pulled(function, floats)
    assert_same(fast, general, 64)


# ---- batching -----------------------------------------------------------------------------------

BATCH = 3


def batch_of(array: Any, axis: int) -> Any:
    """Some arrays like the given one, along a new axis."""
    if is_floating(array):
        elements = [array * factor for factor in (1, 0.99, 1.01)]
    else:
        elements = [array, np.flip(array), array]
    return np.stack(elements, axis=axis)


def check_batched(
    function: Callable[..., Any], arrays: Sequence[Any], on: set[int], axis: int
) -> None:
    """`vmap` over some of the arguments equals a loop, with the batch first or last."""
    batches = [batch_of(x, axis) if i in on else x for i, x in enumerate(arrays)]
    in_axes = tuple(axis if i in on else None for i in range(len(arrays)))
    got = gt.vmap(function, in_axes=in_axes, out_axes=axis)(*batches)
    rows = [
        function(*(np.take(x, n, axis) if i in on else x for i, x in enumerate(batches)))
        for n in range(BATCH)
    ]
    expected = [np.stack(results, axis=axis) for results in zip(*rows, strict=True)]
    assert_same(got, expected, 4096)


@each(lambda case: case.batched)
def test_vmap_equals_loop(case: OpCase, thorough: bool) -> None:
    call = call_of(case)
    possible = {i for i in range(len(call.arrays)) if i not in case.fixed}
    some = [{i} for i in possible] if thorough or case.id not in FURTHER else []
    if possible and possible not in some:
        some.append(possible)
    for on in some:
        check_batched(call, call.arrays, on, 0)
        if thorough or on == possible:
            check_batched(call, call.arrays, on, -1)


@each(lambda case: case.batched and case.differentiable)
def test_vmap_of_derivatives_equals_loop(case: OpCase, thorough: bool) -> None:
    if case.id in FURTHER and not thorough:
        return
    function, floats = call_of(case).differentiable()

    def pull(*floats: Any) -> list[Any]:
        return pulled(function, floats)

    def push(*floats: Any) -> list[Any]:
        return list(gt.jvp(function, floats, floats)[1])

    one_by_one = [{i} for i in range(len(floats) if thorough else 0)]
    for on in [*one_by_one, set(range(len(floats)))]:
        check_batched(pull, floats, on, 0)
        check_batched(push, floats, on, 0)


# ---- special points and errors ------------------------------------------------------------------


@each(lambda case: case.at)
def test_special_points(case: OpCase) -> None:
    for at in case.at:
        check_special_point(case, at)


def check_special_point(case: OpCase, at: At) -> None:
    function, floats = Call(case.function, with_arrays(at.args), at.params).differentiable()
    expected = containers.flatten(with_arrays(at.grads))[0]

    def total(*floats: Any) -> Any:
        return functools.reduce(gt.add, [gt.sum(out) for out in function(*floats)])

    with np.errstate(all="ignore"):
        got = gt.grad(total, tuple(range(len(floats))))(*floats)
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        for i, grad in enumerate(expected):
            if np.isfinite(grad).all():  # else zeros of the tangent would meet infinities
                forward = pushed(alone(total, floats, i), floats[i])
                np.testing.assert_allclose(forward, grad, rtol=1e-12, atol=1e-12)


def pushed(function: Callable[..., Any], x: Any) -> Any:
    """A gradient by forward mode, element by element."""
    basis = np.eye(x.size).reshape(-1, *x.shape)
    return np.reshape([gt.jvp(function, (x,), (e,))[1] for e in basis], x.shape)


@each(lambda case: case.raises)
def test_bad_input(case: OpCase) -> None:
    for bad in case.raises:
        check_bad_input(case, bad)


def check_bad_input(case: OpCase, bad: Raises) -> None:
    call = Call(case.function, bad.args, bad.params)
    for arrays in (call.arrays, as_tensors(call.arrays, requires_grad=True)):
        before = current()
        with pytest.raises(bad.error, match=bad.match) as caught:
            call(*arrays)
        assert isinstance(caught.value, GradtapeError)
        assert current() is before


# ---- completeness -------------------------------------------------------------------------------


def test_every_op_has_a_case() -> None:
    named = {name for case in CASES for name in case.names}
    assert {op.name for op in registry} == named


def test_case_names_are_unique() -> None:
    names = [case.id for case in CASES]
    assert sorted({name for name in names if names.count(name) > 1}) == []
