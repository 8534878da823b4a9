"""The page that lists every function of NumPy and what it does with a tensor.

Each is called on recorded tensors, and the page says what happened. To update the page:

    python tests/support/numpy_page.py docs/numpy-functions.md
"""

from __future__ import annotations

import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.op import Zero
from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError, GradtapeError, UnsupportedError
from gradtape.ops.answers import answer as answer_of
from numpy_samples import GENERAL, LIKE, NO_ARRAYS, ONLY_ARRAYS, SAMPLES, Samples

DIFFERENTIABLE = "differentiable"
UNTRACKED = "without gradient"
REFUSED = "refused"
NOT_FOR_ARRAYS = "no arrays"

MODULES: dict[str, types.ModuleType] = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
_ONLY_LIKE = "with `like=t`, or in `gradtape.numpy`; else a recorded tensor raises"
_CONVERTED = "NumPy turns its argument into an array without asking; use "


@dataclass(frozen=True)
class Entry:
    """A function and what it does with a tensor.

    Attributes:
        name: The name people call it by.
        status: One of the four above.
        note: The name it has in gradtape, or why it is refused.
    """

    name: str
    status: str
    note: str = ""


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function of NumPy with its name, classes left out."""
    for prefix, module in MODULES.items():
        for name in dir(module):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = getattr(module, name)
            kind = type | types.ModuleType
            if not name.startswith("_") and callable(value) and not isinstance(value, kind):
                yield f"{prefix}.{name}", value


def entries() -> list[Entry]:
    """The entries of every function."""
    return [_entry(name, function) for name, function in functions()]


def _entry(name: str, function: Callable[..., Any]) -> Entry:
    public = sys.modules["gradtape"]
    alike = hasattr(public, name[3:]) and name != "np.load"  # gt.load reads another format
    same = f"`gt.{name[3:]}`" if alike else ""
    if name in NO_ARRAYS:
        return Entry(name, NOT_FOR_ARRAYS, same)
    trials = (SAMPLES[name],) if name in SAMPLES else GENERAL
    errors: list[Exception] = []
    for trial in trials:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results = containers.flatten(trial(function, Samples()))[0]
        except UnsupportedError as error:
            return Entry(name, REFUSED, str(error).partition(": ")[2] or str(error))
        except ConversionError:
            return Entry(name, REFUSED, _CONVERTED + (same or "t.detach().numpy()"))
        except Exception as error:
            if isinstance(error, AttributeError) and isinstance(error.obj, Tensor):
                return Entry(name, REFUSED, str(error))
            errors.append(error)
            continue
        recorded = any(isinstance(one, Tensor) and one.requires_grad for one in results)
        note = _ONLY_LIKE if name in LIKE else ""
        status = DIFFERENTIABLE if recorded else UNTRACKED
        return Entry(name, status, note or _counterpart(function))
    if name in ONLY_ARRAYS:
        return Entry(name, REFUSED, ONLY_ARRAYS[name])
    raise GradtapeError(f"{name}: no sample fits; give it one in numpy_samples ({errors[-1]!r})")


def _counterpart(function: Callable[..., Any]) -> str:
    """The public name of the function that implements a NumPy function."""
    answer: Any = answer_of(function)
    name: str = getattr(answer, "__name__", "")
    partials = answer.op.partials if hasattr(answer, "op") else ()
    is_flat = partials and all(isinstance(partial, Zero) for partial in partials)
    flat = "; its derivative is 0" if is_flat else ""
    public = sys.modules["gradtape"]
    for prefix, space in (("gt", public), *((f"gt.{n}", attrgetter(n)(public)) for n in _SPACES)):
        found = getattr(space, name, None) if name else None
        if found is not None and answer in (found, getattr(found, "__wrapped__", None)):
            return f"`{prefix}.{name}`{flat}"
    return flat[2:]


_SPACES = ("linalg", "fft", "scipy.special")

_HEAD = """# NumPy's functions on tensors

<!-- Made by `python tests/support/numpy_page.py docs/numpy-functions.md`; not to be edited. -->

This page lists every public function of `numpy`, `numpy.linalg` and `numpy.fft`, as of NumPy
{}, and what became of it when it was called on a tensor that is being recorded:

| | |
|---|---|
| {} **differentiable** | the result is recorded; derivatives of any order pass |
| {} **without gradient** | computed; truths, indices and texts have no derivative |
| {} **refused** | it raises, and names a way out |
| {} **no arrays** | about sizes, dtypes, settings or files |

The third column has the name in gradtape, which takes arrays and tensors alike, or the reason.
Ufuncs also have their methods (`reduce`, `accumulate`, `reduceat`, `outer`, `at`) and options
(`where=`, `out=` a tensor, `dtype=`, `casting=`). In place of the class `np.vectorize` there is
`gt.vectorize`, and `gt.vmap`, which is faster.

This is NumPy itself. In [`gradtape.numpy`](drop-in.md#one-import-line) the same functions also take
lists of tensors.
"""


def page() -> str:
    """The text of the page."""
    found = entries()
    counts = Counter(entry.status for entry in found)
    in_order = (counts[status] for status in (DIFFERENTIABLE, UNTRACKED, REFUSED, NOT_FOR_ARRAYS))
    lines = [_HEAD.format(np.__version__, *in_order)]
    for prefix, module in MODULES.items():
        lines += [f"\n## {module.__name__}\n", "| function | on a tensor | |", "|---|---|---|"]
        for entry in found:
            if entry.name.rpartition(".")[0] == prefix:
                lines.append(f"| `{entry.name}` | {entry.status} | {entry.note} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
