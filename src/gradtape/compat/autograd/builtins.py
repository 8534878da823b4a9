"""autograd's versions of Python's built-in names.

Containers of tensors are Python's own here, so `list`, `tuple` and `dict` are Python's, too;
`isinstance` and `type` look at the value of a tensor.
"""

from __future__ import annotations

import builtins
from typing import Any

from gradtape.compat.autograd.tracer import Box, notrace_primitive
from gradtape.compat.autograd.vspaces import (
    ContainerVSpace as ContainerVSpace,
    DictVSpace as DictVSpace,
    ListVSpace as ListVSpace,
    NamedTupleVSpace as NamedTupleVSpace,
    SequenceVSpace as SequenceVSpace,
    TupleVSpace as TupleVSpace,
)

list: Any = builtins.list
tuple: Any = builtins.tuple
dict: Any = builtins.dict
tuple_, list_, dict_ = tuple, list, dict
isinstance_, type_ = builtins.isinstance, builtins.type

isinstance = notrace_primitive(builtins.isinstance)
type = notrace_primitive(builtins.type)


class SequenceBox(Box):
    """What autograd tracks lists and tuples in; here they stay what they are."""


class DictBox(Box):
    """What autograd tracks dicts in; here they stay what they are."""


def make_sequence(seq_type: Any, *args: Any) -> Any:
    """A list or tuple of some values."""
    return seq_type(args)


def container_take(A: Any, idx: Any) -> Any:
    """An entry of a container, or a part of it."""
    return A[idx]
