"""Draw docstrings, comments and error messages to be judged against the vocabulary.

    python tools/sample_prose.py [SEED] [FOLDER ...]

Prints 60 docstrings, 40 comments and 40 error messages of `rigidjax/`, or of some of its folders,
each with file and line. A text needs rewriting if it cannot be understood at the first reading,
has a private word where the field has a term, or says no more than the signature.
"""

import ast
import io
import pathlib
import random
import sys
import tokenize
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
COUNTS = {"docstring": 60, "comment": 40, "error": 40}
DIRECTIVES = ("noqa", "pyright:", "fmt:", "type:")


def texts(path: pathlib.Path) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of everything in a file that is written to be read."""
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield "docstring", getattr(node, "lineno", 1), docstring
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield "error", node.lineno, ast.unparse(node.exc.args[0])
    first, lines = 0, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.lstrip("# ").startswith(DIRECTIVES):
            continue
        if lines and token.start[0] != first + len(lines):
            yield "comment", first, " ".join(lines)
            lines = []
        first = first if lines else token.start[0]
        lines.append(token.string.lstrip("# "))
    if lines:
        yield "comment", first, " ".join(lines)


def main() -> None:
    """Print the sample."""
    seed, *folders = sys.argv[1:] or ["0"]
    rng = random.Random(int(seed))
    found = {kind: [] for kind in COUNTS}
    package = ROOT / "rigidjax"
    for path in sorted(p for name in folders or ["."] for p in (package / name).rglob("*.py")):
        for kind, line, text in texts(path):
            found[kind].append((path.relative_to(ROOT), line, text))
    for kind, count in COUNTS.items():
        for number, (path, line, text) in enumerate(rng.sample(found[kind], count), 1):
            print(f"[{kind} {number} of {count}] {path}:{line}\n{text}\n")


if __name__ == "__main__":
    main()
