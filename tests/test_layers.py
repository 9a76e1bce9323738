"""No part of the package imports one above it, and none imports in a circle."""

import ast
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "rigidjax"
# From the lowest to the highest; parts of one row know each other.
LAYERS = (
    ("annotations",),
    (
        "sums", "cross_product", "quotient", "reflections", "gather_scatter", "garbage", "meshes",
        "lockstep", "checks", "interrupts", "results", "state",
    ),
    ("native",),
    ("linalg", "laws", "signal", "refilled", "switches"),
    ("rotations",),
    ("kinematics",),
    ("bodies",),
    ("joints",),
    ("forces",),
    ("mechanics",),
    ("formulations",),
    ("sensors",),
    ("linearisation",),
    ("projection",),
    ("solvers",),
    ("adjoints",),
    ("simulate",),
    ("problems",),
    ("io", "identification"),
    ("ensembles",),
    ("plotting", "viewer"),
    ("cli", "__main__"),
)  # fmt: skip
HEIGHT = {part: height for height, row in enumerate(LAYERS) for part in row}


def imported(path):
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
        for other in imported(path):
            if other in HEIGHT and HEIGHT[other] > HEIGHT[part]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_every_part_has_a_layer():
    parts = {p.name.removesuffix(".py") for p in PACKAGE.iterdir() if p.name != "py.typed"}
    assert parts - {"__init__", "__pycache__"} == set(HEIGHT)
