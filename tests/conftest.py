"""Fixtures of several test files: compiled functions with native entry points and without."""

from __future__ import annotations

from typing import Any

import pytest

from gradtape.compiler.runtime import entry


@pytest.fixture(params=[True, False], ids=["native", "python"])
def native(request: pytest.FixtureRequest) -> bool:
    """Whether arguments are checked by native code."""
    return bool(request.param)


@pytest.fixture
def direct(native: bool, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the entry points of compiled functions are."""
    if native:
        return type(len)
    monkeypatch.setattr(entry, "native_layout", lambda: None)
    return entry._PythonEntry
