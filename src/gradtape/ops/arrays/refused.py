"""Functions of NumPy that are refused on tensors, each with the reason and a way out.

Functions that are neither here nor implemented are refused by a general message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradtape.errors import UnsupportedError

_VALUE = "use t.detach().numpy()"

_FILE = f"a file holds values, not their history; {_VALUE}"
_BITS = f"bits in bytes are no numbers to compute with; {_VALUE}"
_DATES = f"tensors hold numbers, not dates; {_VALUE}"


def _refused(name: str, reason: str) -> Callable[..., None]:
    """A stand-in for a NumPy function that raises and says why."""

    def refusal(*args: Any, **options: Any) -> None:
        raise UnsupportedError(f"np.{name}: {reason}")

    refusal.reason = reason  # type: ignore[attr-defined]
    return refusal


save = _refused("save", _FILE)
savetxt = _refused("savetxt", _FILE)
savez = _refused("savez", _FILE)
savez_compressed = _refused("savez_compressed", _FILE)
packbits = _refused("packbits", _BITS)
unpackbits = _refused("unpackbits", _BITS)
isnat = _refused("isnat", "tensors hold numbers, not dates; use np.isnan")
busday_count = _refused("busday_count", _DATES)
busday_offset = _refused("busday_offset", _DATES)
is_busday = _refused("is_busday", _DATES)
datetime_as_string = _refused("datetime_as_string", _DATES)
