"""einsum: reduced to contractions of two arrays.

Diagonals, sums over letters that stand alone and transposes are ops of their own; several arrays
are contracted in pairs, in the order that opt_einsum finds. So intermediate results serve the
backward pass too: a gradient costs a small multiple of the value, however many arrays there are.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtape.core.state import adopted
from gradtape.errors import ArgumentError, ShapeError
from gradtape.ops.arguments import as_array, as_integer
from gradtape.ops.cast import astype
from gradtape.ops.contract import LETTERS, contract, fresh_letters
from gradtape.ops.diagonal import diagonal
from gradtape.ops.reduce import sum as sum_of
from gradtape.ops.shape import reshape, transpose
from gradtape.typing import Array, ArrayLike

Shapes = tuple[tuple[int, ...], ...]
# In the form with lists, labels are numbers; NumPy orders 0, 1, ... as these letters.
_LABELS = LETTERS.swapcase()


class _Operand(NamedTuple):
    """The steps that prepare one array."""

    diagonals: tuple[tuple[int, int], ...]  # pairs of axes with the same letter
    shape: tuple[int, ...] | None  # without axes of size 1 that other arrays broadcast
    summed: tuple[int, ...]  # axes whose letter stands nowhere else


class _Plan(NamedTuple):
    """An einsum as ops; contractions take positions in a list the result is appended to."""

    operands: tuple[_Operand, ...]
    contractions: tuple[tuple[int, int, str], ...]
    order: tuple[int, ...]  # how a single array is transposed at the end


def _parse(subscripts: str, shapes: Shapes) -> tuple[list[str], str]:
    """Letters per array and of the result, "..." replaced by letters and the result explicit."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ArgumentError(
            f"einsum: got {len(shapes)} arrays for {subscripts!r}, expected {len(terms)}, one for "
            "each group of letters"
        )
    for letter in (inputs + output).replace("...", "").replace(",", ""):
        if not letter.isalpha():
            raise ArgumentError(
                f"einsum: got {letter!r} in {subscripts!r}, expected letters, ',', '...' and '->'"
            )
    most = 0
    for term, shape in zip(terms, shapes, strict=True):
        missing = len(shape) - len(term.replace("...", ""))
        if term.count("...") > 1 or missing < 0 or ("..." not in term and missing):
            raise ShapeError(
                f"einsum: got shape {shape} for {term!r} of {subscripts!r}, expected one letter "
                "for each axis, or '...' once for the rest of them"
            )
        most = max(most, missing)
    dots = fresh_letters(text, most)
    found = [
        term.replace("...", dots[most - len(shape) + len(term.replace("...", "")) :])
        for term, shape in zip(terms, shapes, strict=True)
    ]
    return found, _output(subscripts, found, dots, output if arrow else None)


def _output(subscripts: str, terms: list[str], dots: str, output: str | None) -> str:
    """The letters of the result; by default "..." and those that stand once, sorted."""
    everything = "".join(terms)
    if output is None:
        named = sorted(set(everything) - set(dots))
        return dots + "".join(c for c in named if everything.count(c) == 1)
    if dots and "..." not in output:
        raise ArgumentError(
            f"einsum: {subscripts!r} has '...' in arrays, expected it in the result"
        )
    out = output.replace("...", dots)
    if len(set(out)) != len(out) or not set(out) <= set(everything):
        raise ArgumentError(
            f"einsum: got the result {output!r} in {subscripts!r}, expected letters of the arrays, "
            "each once"
        )
    return out


@functools.lru_cache(maxsize=4096)
def _plan(subscripts: str, shapes: Shapes, optimize: Any) -> _Plan:
    terms, out = _parse(subscripts, shapes)
    sizes = _sizes(subscripts, terms, shapes)
    prepared = [_merge(term, shape) for term, shape in zip(terms, shapes, strict=True)]
    kept = ["".join(c for c, n in own.items() if n == sizes[c]) for own, _ in prepared]
    operands, left = [], []
    for i, ((own, diagonals), letters) in enumerate(zip(prepared, kept, strict=True)):
        shape = None if len(letters) == len(own) else tuple(sizes[c] for c in letters)
        elsewhere = out + "".join(kept[:i] + kept[i + 1 :])
        alone = tuple(axis for axis, c in enumerate(letters) if c not in elsewhere)
        operands.append(_Operand(diagonals, shape, alone))
        left.append("".join(c for c in letters if c in elsewhere))
    if len(left) == 1:
        return _Plan(tuple(operands), (), tuple(left[0].index(c) for c in out))
    return _Plan(tuple(operands), _contractions(left, out, sizes, optimize), ())


def _sizes(subscripts: str, terms: list[str], shapes: Shapes) -> dict[str, int]:
    """The size of every letter; an axis of size 1 goes with any, unless its array repeats it."""
    sizes: dict[str, int] = {}
    where = [
        (letter, size, operand)
        for operand, (term, shape) in enumerate(zip(terms, shapes, strict=True))
        for letter, size in zip(term, shape, strict=True)
    ]
    for letter, size, _ in where:
        if sizes.get(letter, 1) == 1:
            sizes[letter] = size
    for letter, size, operand in where:
        own = {n for c, n, other in where if c == letter and other == operand}
        if size not in (1, sizes[letter]) or len(own) > 1:
            raise ShapeError(
                f"einsum: got shapes {', '.join(map(str, shapes))} for {subscripts!r}, expected "
                f"the same size wherever {letter!r} stands"
            )
    return sizes


def _merge(term: str, shape: tuple[int, ...]) -> tuple[dict[str, int], tuple[tuple[int, int], ...]]:
    """Letters and sizes after taking diagonals, and the pairs of axes to take them of."""
    diagonals = []
    letters = list(term)
    for letter in dict.fromkeys(term):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            diagonals.append((first, second))
            # NumPy puts the diagonal last.
            letters = [*(c for i, c in enumerate(letters) if i not in (first, second)), letter]
    sizes = dict(zip(term, shape, strict=True))
    return {c: sizes[c] for c in letters}, tuple(diagonals)


def _contractions(
    terms: list[str], out: str, sizes: dict[str, int], optimize: Any
) -> tuple[tuple[int, int, str], ...]:
    """The pairs to contract, in the order of opt_einsum; results are appended to the list."""
    path: Any = [(0, 1)]
    if len(terms) > 2:
        import opt_einsum  # type: ignore[import-untyped]

        shapes = [tuple(sizes[c] for c in term) for term in terms]
        text = f"{','.join(terms)}->{out}"
        try:
            path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=optimize)
        except KeyError as error:
            raise ArgumentError(
                f"einsum: got optimize={optimize!r}, expected a search that opt_einsum knows, as "
                "'auto', 'greedy' or 'optimal', or a path"
            ) from error
    found, live = [], list(enumerate(terms))
    for group in path:
        picked = [live.pop(i) for i in sorted(group, reverse=True)][::-1]
        while len(picked) > 1:
            (i, x), (j, y) = picked.pop(0), picked.pop(0)
            needed = out + "".join(term for _, term in picked + live)
            rest = dict.fromkeys(c for c in x + y if c in needed)
            result = "".join(rest) if picked or live else out
            found.append((i, j, f"{x},{y}->{result}"))
            picked.append((len(terms) + len(found) - 1, result))
        live += picked
    return tuple(found)


def einsum(
    subscripts: Any, /, *operands: ArrayLike, optimize: Any = True, dtype: Any = None
) -> Array:
    """Sum of products, by Einstein's convention.

    Args:
        subscripts: Letters for the axes of each array and of the result, as "ij,jk->ik". "..."
            stands for axes that broadcast; without "->" the result has the letters that stand
            once, sorted. NumPy's other form is taken as well: `einsum(x, [0, 1], y, [1, 2])`.
        *operands: The arrays.
        optimize: How opt_einsum looks for the order of contraction: True ("auto"), "greedy",
            "optimal" and so on, or a path.
        dtype: The dtype to compute in.

    Raises:
        ArgumentError: The subscripts do not make sense.
        ShapeError: They do not fit the shapes of the arrays.

    >>> gt.einsum("ij,j->i", np.eye(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    arrays = [adopted(as_array(operand)) for operand in operands]
    if dtype is not None:
        arrays = [astype(array, dtype, copy=False) for array in arrays]
    plan = _plan(subscripts, tuple(array.shape for array in arrays), _search(optimize))
    arrays = [_prepared(*pair) for pair in zip(arrays, plan.operands, strict=True)]
    for i, j, pair in plan.contractions:
        arrays.append(contract(arrays[i], arrays[j], subscripts=pair))
    return arrays[-1] if plan.contractions else transpose(arrays[-1], plan.order)


def _prepared(x: Any, plan: _Operand) -> Any:
    """One array with its diagonals taken, and letters that stand alone summed over."""
    for first, second in plan.diagonals:
        x = diagonal(x, axis1=first, axis2=second)
    if plan.shape is not None:
        x = reshape(x, plan.shape)
    if plan.summed:
        dtype = x.dtype
        x = sum_of(x, plan.summed)
        x = x if x.dtype == dtype else astype(x, dtype)  # small integers stay small
    return x


def _search(optimize: Any) -> Any:
    """NumPy's argument `optimize` as opt_einsum takes it."""
    if optimize is None or isinstance(optimize, bool):
        return "auto"
    if isinstance(optimize, str):
        return optimize
    try:
        steps = [step for step in optimize if not isinstance(step, str)]
        return tuple(tuple(as_integer(i, "einsum", "optimize") for i in step) for step in steps)
    except TypeError:
        raise ArgumentError(
            f"einsum: got optimize={optimize!r}, expected True, False, the name of a search, or "
            "what np.einsum_path gives"
        ) from None


def _from_lists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """`x, [0, 1], y, [1, 2], [0, 2]` as subscripts and arrays."""
    lists = args[1::2] if len(args) % 2 == 0 else (*args[1::2], args[-1])
    if not all(isinstance(labels, Sequence) for labels in lists):
        raise ArgumentError(
            f"einsum: got {type(args[0]).__name__} first, expected subscripts as 'ij,jk->ik', or "
            "arrays each followed by the list of its labels"
        )
    terms = ["".join("..." if i is Ellipsis else _LABELS[i] for i in labels) for labels in lists]
    if len(args) % 2 == 0:
        return ",".join(terms), args[::2]
    return f"{','.join(terms[:-1])}->{terms[-1]}", args[:-1:2]
