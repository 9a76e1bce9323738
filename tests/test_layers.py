"""Layers, walls between folders, import cycles, and the number of lines of each folder."""

import ast
import pathlib
import re
import subprocess
import sys

import numpy as np
import scipy.sparse

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "rigidjax"
# From the lowest to the highest; parts of one row may import each other.
LAYERS = (
    ("_version", "annotations", "deferred", "extras", "native", "private_names", "small_arrays"),
    ("by_numpy", "checks", "interrupts", "persistent_jit", "results", "state"), ("signals",),
    ("rotations",), ("bodies",), ("joints",), ("forces",), ("mechanics",), ("formulations",),
    ("sensors",), ("control",), ("analysis", "initial", "io"), ("projection",), ("solvers",),
    ("adjoints",), ("simulate",), ("stepping",), ("problems", "models"), ("identification",),
    ("ensembles", "exporting"), ("plotting", "viewer"), ("cli", "__main__"),
)  # fmt: skip
HEIGHT = {part: height for height, row in enumerate(LAYERS) for part in row}
# Largest number of lines of the files of each folder, and of the files at the top.
LINES = {
    ".": 1_900, "adjoints": 2_030, "analysis": 790, "bodies": 1_970, "cli": 4_510,
    "control": 1_380, "ensembles": 1_680, "exporting": 820, "forces": 2_380, "formulations": 5_280,
    "identification": 21_450, "initial": 1_090, "io": 580, "joints": 2_270, "mechanics": 5_570,
    "models": 6_380, "native": 14_360, "plotting": 1_730, "problems": 2_250, "projection": 200,
    "rotations": 2_080, "sensors": 1_400, "signals": 1_880, "simulate": 3_460, "solvers": 11_260,
    "stepping": 870, "viewer": 1_490,
}  # fmt: skip


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


def find_cycles(edges):
    """Return the nodes of each strongly connected component of more than one node."""
    names = sorted({node for edge in edges for node in edge})
    indices = [(names.index(a), names.index(b)) for a, b in edges]
    graph = scipy.sparse.coo_array((np.ones(len(indices)), np.transpose(indices)), [len(names)] * 2)
    _, labels = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    components = [np.array(names)[labels == k].tolist() for k in range(max(labels) + 1)]
    return [component for component in components if len(component) > 1]


def test_import_cycles():
    """No import cycle has more than three files."""
    files = modules()
    edges = {(name, other) for name in files for other in imports(name, files[name], files)}
    cycles = [cycle for cycle in find_cycles(edges) if len(cycle) > 3]
    assert not cycles, "\n".join(map(str, cycles))


def test_no_folders_import_each_other():
    """Imports anywhere in a file count; names that an `__init__.py` passes on do not."""
    files = modules()

    def folder(name):
        parent = files[name].parent
        return name if parent == PACKAGE else parent.relative_to(PACKAGE).as_posix()

    edges = {
        (folder(name), folder(other))
        for name, path in files.items()
        if path.name != "__init__.py"
        for other in imports(name, path, files)
    }
    cycles = find_cycles(edges)
    assert not cycles, "\n".join(map(str, cycles))


def test_folders_say_what_they_contain():
    """At most ten lines: what is here, where to start reading, what may be imported."""
    for path in sorted(PACKAGE.rglob("__init__.py")):
        if path.parent == PACKAGE:
            continue
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        start = re.search(r"Start with `([^`]+)`", text)
        assert start and (path.parent / start[1]).is_file(), f"{path}: say where to start"
        assert re.search(r"(May import|Imports|nothing) ", text), f"{path}: say what it may import"
        assert len(text.splitlines()) <= 10, f"{path}: more than ten lines"


def test_lines_of_folders():
    """A number grows only in a commit that says why."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0]
        part = "." if part.endswith(".py") else part
        found[part] = found.get(part, 0) + len(path.read_text("utf-8").splitlines())
    assert set(found) == set(LINES)
    longer = {part: n for part, n in found.items() if n > LINES[part]}
    assert not longer, f"more lines than in LINES: {longer}"


def test_the_compiler_stands_alone():
    files = modules()
    for name, path in files.items():
        if name.startswith("rigidjax.native"):
            others = {o for o in imports(name, path, files) if not o.startswith("rigidjax.native")}
            assert not others, f"{name} imports {others}"


def test_only_the_interface_of_the_compiler_is_imported():
    """Physics takes array functions from `small_arrays`, the rest from `native`."""
    files = modules()
    for name, path in files.items():
        if not name.startswith(("rigidjax.native", "rigidjax.small_arrays")):
            inner = {o for o in imports(name, path, files) if o.startswith("rigidjax.native")}
            assert inner <= {"rigidjax.native"}, f"{name} imports {inner}"


def test_importing_the_compiler_does_not_import_llvm():
    code = "import sys, rigidjax.native.ops; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
