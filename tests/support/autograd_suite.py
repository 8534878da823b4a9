"""A pytest plugin that runs autograd's own tests on `gradtape.compat.autograd`.

`make test-autograd` loads it. Tests that are listed in a file with a reason have to fail.
"""

from pathlib import Path

import pytest

from gradtape.compat import autograd

autograd.install()


def pytest_addoption(parser):
    parser.addoption("--known-failures", type=Path, help="a file with the ids of tests")


def known_failures(path):
    """The reason for each id in a file, which is the comment above it."""
    found, reason, commented = {}, "", False
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("#"):
            reason = f"{reason} {text[1:].strip()}".strip() if commented else text[1:].strip()
        elif text:
            found[text] = reason
        commented = text.startswith("#")
    return found


def pytest_collection_modifyitems(config, items):
    path = config.getoption("--known-failures")
    known = known_failures(path) if path else {}
    ids = {item.nodeid: item for item in items}
    asked = {name.partition("::")[0] for name in ids}
    for name, reason in known.items():
        if name in ids:
            ids[name].add_marker(pytest.mark.xfail(reason=reason, strict=True))
        elif name.partition("::")[0] in asked and not config.getoption("keyword"):
            raise pytest.UsageError(f"{path}: there is no test {name}")
