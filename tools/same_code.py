"""Show that a change of names, types and prose left the code alone.

    python tools/same_code.py BASE [FILE ...]

Compares syntax trees of files with those of the commit BASE, without docstrings, messages, types
and imports. Prints the names that changed (`!` where one name became several) and exits with 1 if
anything else did.
"""

import ast
import collections
import pathlib
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES = {"id", "attr", "arg", "name", "asname", "names", "rest"}


def git(*arguments: str) -> str:
    """Return what a git command prints."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return run.stdout


def without_types_and_prose(tree: ast.Module) -> ast.Module:
    """Remove docstrings, imports and types of functions; empty strings that contain a space."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                kept = [
                    s
                    for s in body
                    if not isinstance(s, ast.Import | ast.ImportFrom)
                    and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
                    and not (isinstance(s, ast.If) and ast.unparse(s.test) == "TYPE_CHECKING")
                ]
                setattr(node, field, kept)
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            node.value = ""
    return tree


def differences(old: object, new: object, line: int, renamed: dict) -> Iterator[str]:
    """Yield lines where two trees differ by more than names, and collect the names."""
    line = getattr(new, "lineno", line)
    if type(old) is not type(new):
        yield f"line {line}: {type(old).__name__} is {type(new).__name__}"
    elif isinstance(old, ast.AST):
        for field in old._fields:
            a, b = getattr(old, field, None), getattr(new, field, None)
            if field in NAMES and isinstance(a, str) and isinstance(b, str):
                renamed[a].add(b)
            else:
                yield from differences(a, b, line, renamed)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"line {line}: {len(old)} entries are {len(new)}"
        else:
            for a, b in zip(old, new, strict=True):
                yield from differences(a, b, line, renamed)
    elif old != new:
        yield f"line {line}: {old!r} is {new!r}"


def main(base: str, *files: str) -> int:
    """Compare files with a commit; return the exit status."""
    names = files or git("diff", "--name-only", "--diff-filter=M", base, "--", "*.py").split()
    status = 0
    for name in names:
        renamed = collections.defaultdict(set)
        old = without_types_and_prose(ast.parse(git("show", f"{base}:{name}")))
        new = without_types_and_prose(ast.parse((ROOT / name).read_text("utf-8")))
        found = list(differences(old, new, 0, renamed))
        pairs = {a: b for a, b in renamed.items() if b != {a}}
        text = ", ".join(
            f"{'!' * (len(b) > 1)}{a} -> {'|'.join(sorted(b))}" for a, b in pairs.items()
        )
        if text or found:
            print("\n    ".join([f"{name}: {text}", *found]))
        status |= bool(found)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
