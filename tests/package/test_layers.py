"""Imports point one way: each layer of the package knows only the layers before it.

The rules read source text, so they can be tried on made-up packages as well as on ours.
"""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import pytest

from paths import SOURCE

PACKAGE = "gradtape"

# In order; a module imports from earlier layers, and from its own as long as there is no cycle.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "config", "dtypes", "locks", "class_fields", "containers", "typing"}),
    frozenset({"backends"}),
    frozenset({"core"}),
    frozenset({"advice"}),
    frozenset({"ops"}),
    frozenset({"autodiff"}),
    frozenset({"graph"}),
    frozenset({"compiler"}),
    frozenset({"kernels"}),
    frozenset({"lazy"}),
    frozenset({"solvers", "sparsity", "dropin"}),
    frozenset(
        {"nn", "optim", "amp", "determinism", "random", "linalg", "fft", "distributed", "io"}
        | {"implicit", "scipy", "numpy", "compat", "gradients", "gradient_clipping"}
        | {"tree"}
    ),
    frozenset({"tools", "testing", "data", "training", "demo", "cli"}),
    frozenset({"__init__", "__main__"}),
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}

# Slow to import or not installed everywhere: loaded at first use, inside the function that needs
# them. Only what a user starts by name may load them at once.
HEAVY = frozenset(
    {"scipy", "opt_einsum", "ml_dtypes", "cupy", "llvmlite", "rich", "threadpoolctl", "mpi4py"}
    | {"matplotlib", "optree", "safetensors", "tensorboardX"}
)
MAY_LOAD_HEAVY = frozenset({"cli", "demo", "tools"})

Sources = Mapping[str, str]  # dotted module name -> source text


@dataclass(frozen=True)
class Import:
    """One name imported by one statement."""

    importer: str
    target: str
    line: int
    in_function: bool
    for_types: bool  # under `if TYPE_CHECKING`, never executed

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@functools.cache
def package_sources() -> dict[str, str]:
    """Our own modules; a package goes by its own name, as in `import`."""
    sources = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = (PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sources[name] = path.read_text(encoding="utf-8")
    return sources


def is_ours(name: str) -> bool:
    return name.partition(".")[0] == PACKAGE


def top_name(module: str) -> str:
    """`gradtape.core.op` -> `core`; the package itself -> `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


def under_type_checking(node: ast.If) -> bool:
    return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


# Expressions hold no statements, and are most of a tree.
LISTS_OF_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(
    node: ast.AST, in_function: bool = False, for_types: bool = False
) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Every statement below `node`, with where it stands: in a function, under TYPE_CHECKING."""
    inner_function = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for field in LISTS_OF_STATEMENTS:
        inner_types = for_types or (
            isinstance(node, ast.If) and field == "body" and under_type_checking(node)
        )
        for child in getattr(node, field, ()):
            yield child, inner_function, inner_types
            yield from statements(child, inner_function, inner_types)


@functools.cache
def judged_statements(text: str) -> list[tuple[ast.AST, bool, bool]]:
    """The statements of a file that rules are about; a file is parsed once for all rules."""
    judged = ast.Import | ast.ImportFrom | ast.Global
    return [found for found in statements(ast.parse(text)) if isinstance(found[0], judged)]


def targets(node: ast.AST, known: Sources) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        names = [f"{base}.{alias.name}" for alias in node.names]
        # A name that is no module is taken out of the package's `__init__`.
        return [name if name in known else base for name in names]
    return []


def imports(sources: Sources) -> Iterator[Import]:
    for module, text in sources.items():
        for node, in_function, for_types in judged_statements(text):
            for target in dict.fromkeys(targets(node, sources)):
                yield Import(module, target, node.lineno, in_function, for_types)


# ---- the rules: each yields what it objects to ----


def known_modules(sources: Sources) -> Iterator[str]:
    for module in sources:
        if top_name(module) not in LAYER_OF:
            yield f"{module} belongs to no layer; add it to LAYERS"


def direction(sources: Sources) -> Iterator[str]:
    # Also for types: a layer that names a later one's classes depends on them all the same.
    for imp in imports(sources):
        if imp.target.startswith("."):
            yield f"{imp}; write the absolute name"
        elif is_ours(imp.target):
            here, there = LAYER_OF.get(top_name(imp.importer)), LAYER_OF.get(top_name(imp.target))
            if there is None:
                yield f"{imp}, which belongs to no layer"
            elif here is not None and there > here:
                yield f"{imp}: layer {here} may not know layer {there}"


def cycles(sources: Sources) -> Iterator[str]:
    graph: dict[str, set[str]] = {module: set() for module in sources}
    for imp in imports(sources):
        if not is_ours(imp.target) or imp.for_types or imp.in_function:
            continue
        # Importing a.b.c runs a and a.b first, unless the importer stands inside them.
        parts = imp.target.split(".")
        ancestors = (".".join(parts[:n]) for n in range(1, len(parts)))
        graph[imp.importer] |= {
            package for package in ancestors if not f"{imp.importer}.".startswith(f"{package}.")
        }
        graph[imp.importer].add(imp.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "import cycle: " + " -> ".join(reversed(error.args[1]))


def lazy_imports(sources: Sources) -> Iterator[str]:
    for imp in imports(sources):
        if imp.in_function and imp.target.partition(".")[0] not in HEAVY:
            yield f"{imp} inside a function; move it to the top of the file"


def heavy_imports(sources: Sources) -> Iterator[str]:
    for imp in imports(sources):
        heavy = imp.target.partition(".")[0] in HEAVY
        at_once = not imp.in_function and not imp.for_types
        if heavy and at_once and top_name(imp.importer) not in MAY_LOAD_HEAVY:
            yield f"{imp} at the top; import it in the function that needs it"


def global_statements(sources: Sources) -> Iterator[str]:
    for module, text in sources.items():
        for node, _, _ in judged_statements(text):
            if isinstance(node, ast.Global):
                yield f"{module}:{node.lineno} has `global {', '.join(node.names)}`"


# Ops are compared with ops, or asked for their facts.
BY_NAME = re.compile(r"\bop\.name (?:==|!=|in|not in) |\bregistry\[|\bregistry\.functions\b")


def ops_by_name(sources: Sources) -> Iterator[str]:
    for module, text in sources.items():
        for number, line in enumerate(text.splitlines(), start=1):
            if BY_NAME.search(line):
                yield f"{module}:{number} tells an op by its name; import the op, or use its facts"


Rule = Callable[[Sources], Iterator[str]]
RULES: list[Rule] = [
    known_modules,
    direction,
    cycles,
    lazy_imports,
    heavy_imports,
    global_statements,
    ops_by_name,
]


# ---- the package keeps the rules ----


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_package_keeps_the_rule(rule):
    sources = package_sources()
    assert PACKAGE in sources, "the package was not found, so nothing would be checked"
    assert list(rule(sources)) == []


def test_import_loads_nothing_heavy():
    # The rules see our own text only; this sees what our dependencies load as well.
    code = f"import sys, {PACKAGE}; print(*sorted({set(HEAVY)!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# ---- the rules see what they should ----

BROKEN: list[tuple[Rule, Sources, str]] = [
    (known_modules, {"gradtape.helpers": ""}, "gradtape.helpers belongs to no layer"),
    (known_modules, {"gradtape.misc.a": ""}, "gradtape.misc.a belongs to no layer"),
    (
        direction,
        {"gradtape.core.op": "import gradtape.advice.public"},
        "layer 2 may not know layer 3",
    ),
    (
        direction,
        {"gradtape.nn.init": "from gradtape import Tensor"},
        "layer 11 may not know layer 13",
    ),
    (
        direction,
        {"gradtape.config": "def f():\n    from gradtape.core import op", "gradtape.core.op": ""},
        "gradtape.config:2 imports gradtape.core.op: layer 0 may not know layer 2",
    ),
    (
        direction,
        {"gradtape.containers": "if TYPE_CHECKING:\n    from gradtape.core.tensor import Tensor"},
        "layer 0 may not know layer 2",
    ),
    (direction, {"gradtape.core.op": "from gradtape.old import x"}, "belongs to no layer"),
    (direction, {"gradtape.core.op": "from . import tensor"}, "write the absolute name"),
    (
        cycles,
        {
            "gradtape.core.op": "from gradtape.core import call",
            "gradtape.core.call": "try:\n    import gradtape.core.op\nexcept ImportError: pass",
        },
        "import cycle: gradtape.core.",
    ),
    (
        cycles,
        {
            "gradtape.core": "from gradtape.core.op import Op",
            "gradtape.core.op": "from gradtape.core import Op",
        },
        "import cycle: gradtape.core",
    ),
    (
        cycles,  # through the `__init__` of a package whose other module is asked for
        {
            "gradtape.nn.layer": "import gradtape.optim.sgd",
            "gradtape.optim": "import gradtape.nn.layer",
            "gradtape.optim.sgd": "",
        },
        "gradtape.optim",
    ),
    (lazy_imports, {"gradtape.cli": "def f():\n  import gradtape.demo"}, "inside a function"),
    (lazy_imports, {"gradtape.io": "class A:\n  async def f(self): import json"}, "move it"),
    (
        heavy_imports,
        {"gradtape.ops.special": "from scipy import special"},
        "imports scipy at the top",
    ),
    (heavy_imports, {"gradtape.ops.matmul": "import opt_einsum"}, "imports opt_einsum at the top"),
    (
        heavy_imports,
        {"gradtape.backends.cupy": "try:\n  import cupy.cuda\nexcept ImportError: pass"},
        "imports cupy.cuda at the top",
    ),
    (heavy_imports, {"gradtape": "class A:\n  import rich"}, "imports rich at the top"),
    (
        global_statements,
        {"gradtape.config": "def f():\n  global a, b"},
        "config:2 has `global a, b`",
    ),
    (ops_by_name, {"gradtape.graph.a": 'node.op.name in ("add",)'}, "graph.a:1 tells an op by"),
    (ops_by_name, {"gradtape.graph.a": '\nif op.name == "add": pass'}, "graph.a:2 tells an op"),
    (ops_by_name, {"gradtape.ops.a": 'registry["add"]'}, "import the op, or use its facts"),
]


@pytest.mark.parametrize(("rule", "sources", "message"), BROKEN)
def test_rule_objects(rule, sources, message):
    (objection,) = rule(sources)
    assert message in objection


ALLOWED: list[Sources] = [
    {"gradtape": "from gradtape.core.op import Op", "gradtape.core.op": "import gradtape.errors"},
    {"gradtape.nn.init": "from gradtape import random", "gradtape.random": "import numpy"},
    {
        "gradtape.core": "from gradtape.core.op import Op as Op",
        "gradtape.core.op": "if typing.TYPE_CHECKING:\n    from gradtape.core.call import Call",
        "gradtape.core.call": "from gradtape.core.op import Op\nfrom gradtape.core import op",
    },
    {"gradtape.ops.special": "def erf(x):\n    import scipy.special"},
    {"gradtape.ops.special": "if TYPE_CHECKING:\n    import scipy.special"},
    {"gradtape.tools.profile": "import rich", "gradtape.demo": "from rich import progress"},
    {"gradtape.__main__": "from gradtape.cli import main", "gradtape.cli": ""},
]


@pytest.mark.parametrize("sources", ALLOWED)
def test_no_rule_objects(sources):
    assert [objection for rule in RULES for objection in rule(sources)] == []
