"""No part of the package imports one above it; no import cycle has more than three files."""

import ast
import pathlib
import subprocess
import sys

import numpy as np
import scipy.sparse

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "rigidjax"
# From the lowest to the highest; parts of one row may import each other.
LAYERS = (
    ("_version", "annotations", "deferred", "extras", "native", "private_names"),
    ("by_numpy", "checks", "interrupts", "persistent_jit", "results", "state"),
    ("signals",),
    ("rotations",),
    ("bodies",),
    ("joints",),
    ("forces",),
    ("mechanics",),
    ("formulations",),
    ("sensors",),
    ("control",),
    ("analysis", "initial"),
    ("projection",),
    ("solvers",),
    ("adjoints",),
    ("simulate",),
    ("stepping",),
    ("problems", "models"),
    ("io", "identification"),
    ("ensembles", "exporting"),
    ("plotting", "viewer"),
    ("cli", "__main__"),
)  # fmt: skip
HEIGHT = {part: height for height, row in enumerate(LAYERS) for part in row}


def imported_parts(path):
    """Parts of the package that a module imports when it is imported itself."""
    own = path.relative_to(PACKAGE).with_suffix("").parts
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = own[: len(own) - node.level]
            names = (node.module or "").split(".") if node.module else []
            if base or names:
                yield (*base, *names)[0]
            else:
                yield from (alias.name for alias in node.names)


def test_no_layer_imports_a_higher_one():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imported_parts(path):
            if other in HEIGHT and HEIGHT[other] > HEIGHT[part]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_every_part_has_a_layer():
    parts = {p.name.removesuffix(".py") for p in PACKAGE.iterdir() if p.name != "py.typed"}
    assert parts - {"__init__", "__pycache__"} == set(HEIGHT)


def modules():
    """Return the file of every module, by dotted name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name, path, names):
    """Yield modules that a module imports anywhere: at its top, in functions, for types alone."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            named = node.module.split(".") if node.module else []
            base = [*package[: len(package) - node.level + 1], *named] if node.level else named
            for alias in node.names:
                whole, of = ".".join([*base, alias.name]), ".".join(base)
                yield from [m for m in (whole, of) if m in names][:1]


def test_import_cycles():
    names = sorted(files := modules())
    edges = [(names.index(n), names.index(o)) for n in names for o in imports(n, files[n], files)]
    graph = scipy.sparse.coo_array((np.ones(len(edges)), np.transpose(edges)), [len(names)] * 2)
    _, labels = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    cycles = [np.array(names)[labels == k].tolist() for k in range(max(labels) + 1)]
    cycles = [cycle for cycle in cycles if len(cycle) > 3]
    assert not cycles, "\n".join(map(str, cycles))


def test_the_compiler_stands_alone():
    files = modules()
    for name, path in files.items():
        if name.startswith("rigidjax.native"):
            others = {o for o in imports(name, path, files) if not o.startswith("rigidjax.native")}
            assert not others, f"{name} imports {others}"


def test_only_the_interface_of_the_compiler_is_imported():
    """Other modules import names of `rigidjax.native` and `rigidjax.native.ops`, none deeper."""
    files = modules()
    interface = {"rigidjax.native", "rigidjax.native.ops"}
    for name, path in files.items():
        if not name.startswith("rigidjax.native"):
            inner = {o for o in imports(name, path, files) if o.startswith("rigidjax.native")}
            assert inner <= interface, f"{name} imports {inner - interface}"


def test_importing_the_compiler_does_not_import_llvm():
    code = "import sys, rigidjax.native.ops; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
