"""Linear expressions as sums of coefficients times variables.

A step back through a loop is linear in the cotangents that it carries. Computed as it is written,
all of it waits for the step before. As a sum of coefficients times cotangents, the coefficients of
many steps are computed at a time, and only the sum waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradtape.compiler.kernel import walk
from gradtape.core.scalar import Scalar, constant, watch

# More variables than this have too many coefficients.
_MOST_VARIABLES = 4

Form = dict[object, Scalar]


def as_linear(
    results: Sequence[Scalar], variables: Sequence[Scalar], starts: Sequence[Scalar]
) -> tuple[Scalar, ...] | None:
    """Expressions rewritten as linear forms; None if they are not of that form.

    Args:
        results: The expressions: first the next values of the variables, then others.
        variables: The variables in which they are linear, which a loop carries.
        starts: Their values before the loop.
    """
    if not 0 < len(variables) <= _MOST_VARIABLES:
        return None
    keys = {variable.extra: variable for variable in variables}
    # Those that begin as 0 and stay 0 have no coefficients.
    zeros = {
        variable.extra
        for variable, start, result in zip(variables, starts, results, strict=False)
        if is_number(start, 0.0) and is_number(result, 0.0)
    }
    forms: dict[int, Form | None] = {}
    watched: set[int] = set()
    seen: set[int] = set()
    for result in results:
        for part in walk(result, seen):
            try:
                forms[id(part)] = _form(part, forms, keys, zeros)
            except NotLinearError:
                return None
            if part.name == "watch" or any(id(arg) in watched for arg in part.args):
                watched.add(id(part))
    made = []
    for result in results:
        form = forms[id(result)]
        if form is None and not is_number(result, 0.0):
            return None
        total: Scalar | None = None
        for key, coefficient in (form or {}).items():
            term = _times(coefficient, keys[key])
            total = term if total is None else total + term
        value = constant(0, result.dtype) if total is None else total
        made.append(watch(value) if id(result) in watched else value)
    return tuple(made)


class NotLinearError(Exception):
    """An expression is not a linear form."""


def _form(
    part: Scalar, forms: dict[int, Form | None], keys: dict[object, Scalar], zeros: set[object]
) -> Form | None:
    """The coefficients of an expression; None if it depends on none of the variables."""
    if part.name == "variable" and part.extra in zeros:
        return {}
    if part.name == "variable":
        return {part.extra: constant(1, part.dtype)} if part.extra in keys else None
    own = [forms[id(arg)] for arg in part.args]
    if all(form is None for form in own):
        return None
    if part.dtype.kind != "f" or any(
        form is not None and arg.dtype != part.dtype
        for form, arg in zip(own, part.args, strict=True)
    ):
        raise NotLinearError
    args = part.args
    if part.name == "watch" and len(args) == 1:
        return own[0]
    if part.name == "negative":
        return {key: -value for key, value in _given(own[0]).items()}
    if part.name in ("add", "subtract"):
        return _added(args, own, minus=part.name == "subtract")
    if part.name == "multiply":
        if own[0] is not None and own[1] is not None:
            raise NotLinearError
        form, factor = (own[0], args[1]) if own[0] is not None else (own[1], args[0])
        return {key: _times(value, factor) for key, value in _given(form).items()}
    if part.name == "divide" and own[1] is None:
        return {key: value / args[1] for key, value in _given(own[0]).items()}
    raise NotLinearError


def _given(form: Form | None) -> Form:
    assert form is not None
    return form


def _added(args: Sequence[Scalar], own: Sequence[Form | None], *, minus: bool) -> Form:
    for arg, form in zip(args, own, strict=True):
        if form is None and not is_number(arg, 0.0):
            raise NotLinearError
    total = dict(own[0] or {})
    for key, value in (own[1] or {}).items():
        signed = -value if minus else value
        total[key] = total[key] + signed if key in total else signed
    return total


def _times(x: Scalar, y: Scalar) -> Scalar:
    return y if is_number(x, 1.0) else x if is_number(y, 1.0) else x * y


def is_number(x: Scalar, number: float) -> bool:
    """Whether an expression is a number that is known."""
    return x.name == "constant" and x.extra == number
