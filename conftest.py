"""Settings shared by the unit tests and by the examples in docstrings and documents."""

import gc
import linecache
import re
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Functions of these modules have NumPy's docstrings, whose examples are NumPy's affair.
collect_ignore = ["src/gradtape/numpy"]

# "ci" is deterministic: the same tree gives the same result, on slow machines too.
# To look for new failures: pytest --hypothesis-profile=explore
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--thorough`: all that `make test-all` does besides running the slow tests."""
    parser.addoption(
        "--thorough",
        action="store_true",
        help="check every op in every dtype, entry by entry, and in every combination of arguments",
    )


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether to try every combination, not only one that would show what is wrong."""
    return bool(request.config.getoption("--thorough"))


def pytest_collection_finish() -> None:
    """Hide what collecting the tests left in memory from what would go through it again and again.

    The garbage collector takes half a second to go through the tests themselves, and before each
    example doctest checks every file in the cache of lines for changes.
    """
    linecache.clearcache()
    gc.collect()
    gc.freeze()


def seed_of(item: pytest.Item) -> int:
    """A seed that depends on nothing but the test's id, so order and workers do not matter.

    Folders below `tests` do not count: a file that is moved keeps its numbers.
    """
    return zlib.crc32(re.sub(r"^tests/[^:]*/", "tests/", item.nodeid).encode())


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A NumPy generator seeded from the test's id."""
    return np.random.default_rng(seed_of(request.node))


# gradtape is imported inside of functions: a package that fails to import is then reported by each
# test, not as a failure to load this file.


@pytest.hookimpl(trylast=True)  # after the fixtures of the file are gone
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Hide what a file of tests left in memory, too: caches, graphs, reports.

    By the end of a run it is half a million objects, and some tests have them all looked at dozens
    of times. What goes with its last reference still goes.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(trylast=True)  # not a fixture, which would cost more than what it does
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seed the library's generator from the test's id."""
    import gradtape as gt

    gt.manual_seed(seed_of(item))


@pytest.fixture(autouse=True, scope="session")
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    import gradtape as gt

    doctest_namespace.update(gt=gt, np=np)
