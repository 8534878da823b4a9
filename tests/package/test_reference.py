"""`docs/reference.md` lists every public name under its namespace; links lead somewhere."""

import functools
import re
from pathlib import Path
from types import ModuleType

import pytest

import gradtape as gt
import our_scipy
from gradtape import config, errors
from paths import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NAMESPACES = (
    "gt",
    *(f"gt.{name}" for name in gt._NAMESPACES),
    *(f"gt.scipy.{name}" for name in gt.scipy._MODULES),
    "gt.scipy.sparse.linalg",
    "gt.scipy.spatial.distance",
)
# What Python leaves in a module besides modules.
NO_NAMES = {"TYPE_CHECKING"}


def public(namespace):
    """The names that users are given in a namespace, but those that are SciPy's own."""
    if namespace in ("gt.scipy", "gt.numpy"):  # of modules; of NumPy's own names
        return set()
    if namespace.startswith("gt.scipy."):
        names = namespace.removeprefix("gt.scipy.").split(".")
        module = functools.reduce(getattr, names, our_scipy)
        return {name for name in module.__all__ if name not in ("linalg", "distance")}
    module = functools.reduce(getattr, namespace.split(".")[1:], gt)
    names = getattr(module, "__all__", dir(module))
    return {
        name
        for name in names
        if not name.startswith("_")
        and name not in NO_NAMES
        and not isinstance(getattr(module, name), ModuleType)
    }


def listed(namespace):
    """The names in the tables under the heading of a namespace, in their order."""
    section = re.search(rf"^### `{re.escape(namespace)}`\n(.*?)(?=^##|\Z)", REFERENCE, re.M | re.S)
    assert section, f"docs/reference.md has no heading for {namespace}"
    rows = re.findall(r"^\|[^|]*\|(.*)\|$", section[1], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_name_is_listed(namespace):
    assert public(namespace) - set(listed(namespace)) == set(), "add it to docs/reference.md"


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_what_is_listed_exists(namespace):
    assert set(listed(namespace)) - public(namespace) == set()


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_nothing_is_listed_twice(namespace):
    names = listed(namespace)
    assert sorted(names) == sorted(set(names))


def test_methods_that_write_are_listed():
    methods = {name for name in dir(gt.Tensor) if name.endswith("_into")}
    assert methods == set(re.findall(r"`(\w+_into)`", REFERENCE))


def test_environment_variables_are_listed():
    source = Path(config.__file__).read_text(encoding="utf-8")
    read = set(re.findall(r'environ\.get\("(\w+)"', source))
    table = set(re.findall(r"^\| `([A-Z_]+)` \|", REFERENCE, re.MULTILINE))
    assert read
    assert table == read | {"SCIPY_ARRAY_API"}


def test_errors_are_listed():
    classes = {name for name in vars(errors) if name.endswith("Error")} - {"GradtapeError"}
    assert classes == set(re.findall(r"^\| `(\w+Error)` \|", REFERENCE, re.MULTILINE))
    warnings = {name for name in vars(errors) if name.endswith("Warning")} - {"GradtapeWarning"}
    assert warnings == set(re.findall(r"^\| `(\w+Warning)` \|", REFERENCE, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads nowhere"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"


def anchors(page):
    """What headings are called in addresses: words in lower case with hyphens between them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_has_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    links = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", index)}
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    assert pages - links == {"README.md"}
