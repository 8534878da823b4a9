"""Functions of NumPy that are refused on tensors, each with the reason and a way out.

What is missing here and has no answer either is refused by a general message.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradtape.core.define import answers
from gradtape.errors import UnsupportedError
from gradtape.ops.adapt import qualified_name

_VALUE = "use t.detach().numpy()"

REASONS: dict[Any, str] = {
    np.save: f"a file holds values, not their history; {_VALUE}",
    np.savetxt: f"a file holds values, not their history; {_VALUE}",
    np.savez: f"a file holds values, not their history; {_VALUE}",
    np.savez_compressed: f"a file holds values, not their history; {_VALUE}",
    np.packbits: f"bits in bytes are no numbers to compute with; {_VALUE}",
    np.unpackbits: f"bits in bytes are no numbers to compute with; {_VALUE}",
    np.isnat: "tensors hold numbers, not dates; use np.isnan",
    np.busday_count: f"tensors hold numbers, not dates; {_VALUE}",
    np.busday_offset: f"tensors hold numbers, not dates; {_VALUE}",
    np.is_busday: f"tensors hold numbers, not dates; {_VALUE}",
    np.datetime_as_string: f"tensors hold numbers, not dates; {_VALUE}",
}


def _refuse(original: Any, reason: str) -> None:
    def refusal(*args: Any, **options: Any) -> None:
        raise UnsupportedError(f"{qualified_name(original)}: {reason}")

    refusal.reason = reason  # type: ignore[attr-defined]
    answers(original)(refusal)


for _original, _reason in REASONS.items():
    _refuse(_original, _reason)
