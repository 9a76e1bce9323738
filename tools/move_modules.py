"""Move modules or packages of `rigidjax` and rewrite every import of them.

    python tools/move_modules.py rigidjax.native.ops.sums=rigidjax.native.ops.sums ...

Rewrites imports in Python files, and dotted names and paths in strings, comments and documents.
Run `ruff check --fix` and `ruff format` afterwards: new import statements are neither sorted nor
wrapped. Folders that do not exist yet get an `__init__.py` without a docstring.
"""

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CODE = ("rigidjax", "tests", "benchmarks", "examples", "docs", "tools")
DOCUMENTS = ("*.md", "*.toml", "*.ipynb", "*.yml", "Makefile", ".ci/run")


def module_name(path: pathlib.Path) -> str:
    """Return the dotted name of a file below the root."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(module: str, is_package: bool) -> pathlib.Path:
    """Return the file of a module."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if is_package else path.with_suffix(".py")


class Moves:
    """New names of modules; modules inside a moved package move with it."""

    def __init__(self, pairs: dict[str, str]):
        self.pairs = pairs
        self.packages = {
            module_name(p): p.name == "__init__.py" for p in (ROOT / "rigidjax").rglob("*.py")
        }
        unknown = [old for old in pairs if old not in self.packages]
        if unknown:
            raise SystemExit(f"no such module: {', '.join(unknown)}")

    def is_module(self, name: str) -> bool:
        """Return whether a dotted name is that of a module before the move."""
        return name in self.packages

    def new_name(self, module: str) -> str:
        """Return the name of a module after the move."""
        parts = module.split(".")
        for k in range(len(parts), 0, -1):
            head = ".".join(parts[:k])
            if head in self.pairs:
                return ".".join([self.pairs[head], *parts[k:]])
        return module


def rewritten(text: str, module: str, is_package: bool, moves: Moves) -> str:
    """Return the source of a module with its import statements as they are after the move."""
    lines = text.splitlines(keepends=True)
    for node in reversed([n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)]):
        statements = _import_statements(node, module, is_package, moves)
        if statements is None:
            continue
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if any("#" in line for line in lines[first:last]):
            print(f"{module}:{node.lineno}: comments inside an import are lost")
        indent = lines[first][: node.col_offset]
        # `ast` counts bytes.
        rest = lines[last].encode()[node.end_col_offset :].decode()
        lines[first : last + 1] = [
            "".join(f"{indent}{s}\n" for s in statements[:-1]) + indent + statements[-1] + rest
        ]
    return "".join(lines)


def _import_statements(
    node: ast.ImportFrom, module: str, is_package: bool, moves: Moves
) -> list[str] | None:
    """Return the statements that replace an import; None if it stays as it is."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    named = node.module.split(".") if node.module else []
    base = ".".join([*package[: len(package) - node.level + 1], *named] if node.level else named)
    if not base.startswith("rigidjax"):
        return None
    new_module = moves.new_name(module)
    here = new_module.split(".") if is_package else new_module.split(".")[:-1]
    changed, groups = False, {}
    for alias in node.names:
        whole = f"{base}.{alias.name}"
        if moves.is_module(whole):
            parent, _, name = moves.new_name(whole).rpartition(".")
        else:
            parent, name = moves.new_name(base), alias.name
        local = alias.asname or alias.name
        text = f"{name} as {local}" if alias.asname or name != local else name
        source = _relative(parent, here) if node.level else parent
        changed |= source != "." * node.level + (node.module or "") or name != alias.name
        groups.setdefault(source, []).append(text)
    if not changed:
        return None
    return [f"from {source} import {', '.join(names)}" for source, names in groups.items()]


def _relative(target: str, here: list[str]) -> str:
    """Return a module as an import statement of a package names it."""
    parts = target.split(".")
    common = 0
    while common < min(len(parts), len(here)) and parts[common] == here[common]:
        common += 1
    return "." * (len(here) - common + 1) + ".".join(parts[common:])


def main() -> None:
    """Move the files and rewrite what names them."""
    # Modules before the packages around them.
    pairs = sorted((argument.split("=") for argument in sys.argv[1:]), key=lambda p: -len(p[0]))
    moves = Moves(dict(pairs))
    texts = {}
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name, is_package = module_name(path), path.name == "__init__.py"
            texts[path] = rewritten(path.read_text("utf-8"), name, is_package, moves)
    for pattern in DOCUMENTS:
        for path in ROOT.rglob(pattern):
            if not {".venv", ".git", "site"} & set(path.relative_to(ROOT).parts):
                texts[path] = path.read_text("utf-8")
    names = []
    for old, new in moves.pairs.items():
        names.append((re.compile(rf"\b{re.escape(old)}\b(?!\s*\()"), new))
        pattern = re.escape(old.replace(".", "/")) + r"(?=\.py\b|/)"
        names.append((re.compile(rf"\b{pattern}"), new.replace(".", "/")))
    for path, text in texts.items():
        for pattern, new in names:
            text = pattern.sub(new, text)
        if text != path.read_text("utf-8"):
            path.write_text(text, "utf-8")
    for old, new in moves.pairs.items():
        _move(old, new, moves.packages[old])


def _move(old: str, new: str, is_package: bool) -> None:
    source, target = (ROOT.joinpath(*name.split(".")) for name in (old, new))
    if not is_package:
        source, target = source.with_suffix(".py"), target.with_suffix(".py")
    for parent in reversed(target.relative_to(ROOT).parents[:-1]):
        (ROOT / parent).mkdir(exist_ok=True)
        (ROOT / parent / "__init__.py").touch()
    subprocess.run(["git", "-C", ROOT, "mv", "-k", source, target], check=True)


if __name__ == "__main__":
    main()
