"""Fixtures of several test files: compiled functions with native entry points and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from builds import NO_ENTRY
from gradtape.compiler.cpu.runtime import entry_point

# These need other packages: make test-ecosystem runs them.
collect_ignore_glob = ["ecosystem/*"]


@pytest.fixture(params=[True, False], ids=["native", "python"])
def native(request: pytest.FixtureRequest) -> bool:
    """Whether arguments are checked by native code."""
    if request.param and NO_ENTRY:
        pytest.skip("native entry points are switched off, or need the interpreter lock")
    return bool(request.param)


@pytest.fixture
def direct(native: bool, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], bool]:
    """A function that says whether another one is the entry point of compiled code."""
    if native:
        return lambda call: type(call) is type(len)
    monkeypatch.setattr(entry_point, "native_layout", lambda: None)
    return lambda call: "_python_callable" in getattr(call, "__qualname__", "")
