"""Prose and names follow the vocabulary of the field, and every parameter has a type.

`python tests/test_vocabulary.py FILE_OR_FOLDER ...` prints violations.
"""

import ast
import collections
import io
import pathlib
import re
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = "rigidjax", "benchmarks", "examples", "tests", "tools"
# Openings of sentences without a subject, and words that have a term in the field.
OPENINGS = re.compile(
    r"(?:^|[.:;?]\s+|\n\s*\n\s*|[-*]\s+)"
    r"(What(?! is\b[^.]*\?)|Those|That of|The same|Of)\b(?! course)"
)
WORDS = re.compile(
    r"\b(in the place of|inside of|so many|nobody|whole numbers?|written out|writes? out|"
    r"no turn|falls apart|fall apart|hangs on|told)\b",
    re.IGNORECASE,
)
# Words of the compiler: those that have a term, and those that only it may use.
COMPILER_WORDS = re.compile(r"\b(programs?|turns?|members?)\b", re.IGNORECASE)
COMPILER_ALONE = re.compile(r"\b(kernels?|lanes?|jaxprs?|XLA|LLVM|emit(?:s|ted)?)\b", re.IGNORECASE)
WITHOUT_COMPILER = "mechanics", "formulations", "solvers", "identification"
IRREGULAR = frozenset(
    "begun bent bound bought brought built chosen done drawn driven fallen felt found given gone "
    "held hidden hung kept known laid led left lost made meant met paid said seen sent shown spent "
    "spun stood sunk taken thought thrown told understood worn woven written".split()
)
PREPOSITIONS = frozenset("of at by in on to with from for as into over".split())
PRONOUNS = frozenset("one own some each".split())
# Methods that users call or override.
PUBLIC = frozenset(
    "at combined converged done failed fitted known merged normalized of perturbed placed "
    "transformed".split()
)


def bad_names(tree: ast.Module) -> list[str]:
    """Return function names that are a bare participle, preposition or pronoun."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "_" not in node.name.strip("_"):
            word = node.name.strip("_")
            is_participle = word in IRREGULAR or re.fullmatch(r"[a-z]{3,}ed", word)
            is_public = node.name in PUBLIC and node.args.args[:1] != []
            if not is_public and (is_participle or word in PREPOSITIONS or word in PRONOUNS):
                names.append(node.name)
    return names


def prose(path: pathlib.Path) -> list[str]:
    """Return docstrings, comments and messages of a Python file, or the text of a document."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n")
    tree, texts = ast.parse(text), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            texts.append(node.value)
    comments = [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    return [*texts, *comments]


def nouns_as_docstrings(tree: ast.Module) -> list[str]:
    """Return functions, properties apart, whose docstring does not start with a verb."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = {ast.unparse(d).split(".")[-1] for d in node.decorator_list}
            words = (ast.get_docstring(node) or "").split()
            if (
                words
                and words[0] in ("Whether", "The", "A", "An", "As")
                and (decorators.isdisjoint(("property", "cached_property")))
            ):
                names.append(f"docstring of {node.name}: {words[0]}")
    return names


def untyped_parameters(tree: ast.Module) -> list[str]:
    """Return parameters without a type of top-level functions and methods."""
    names = []
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for body in bodies:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                a = node.args
                all_of = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
                names += [
                    f"untyped {node.name}({arg.arg})"
                    for arg in all_of
                    if arg and arg.annotation is None and arg.arg not in ("self", "cls")
                ]
    return names


def violations(path: pathlib.Path) -> list[str]:
    """Return banned openings, words and names of a file, and its parameters without a type."""
    patterns, parts = [OPENINGS, WORDS], path.relative_to(ROOT).parts
    if "native" in parts:
        patterns.append(COMPILER_WORDS)
    if parts[0] == "rigidjax" and parts[1] in WITHOUT_COMPILER:
        patterns.append(COMPILER_ALONE)
    found = [
        f"{match.group().strip()}: {' '.join(text[max(match.start() - 30, 0) :].split())[:90]}"
        for text in prose(path)
        for pattern in patterns
        for match in pattern.finditer(text)
    ]
    if path.suffix == ".py":
        tree = ast.parse(path.read_text("utf-8"))
        found += [f"name {name}" for name in bad_names(tree)]
        if parts[0] == "rigidjax":
            found += untyped_parameters(tree) + nouns_as_docstrings(tree)
    return found


def files() -> list[pathlib.Path]:
    """Return the files that the vocabulary is binding for; tables of measurements are left out."""
    python = (p for name in FOLDERS for p in (ROOT / name).rglob("*.py"))
    documents = (p for p in (ROOT / "docs").rglob("*.md") if "benchmarks" not in p.parts)
    this_file = pathlib.Path(__file__).resolve()  # it contains the words
    return sorted({*python, *documents, *ROOT.glob("*.md")} - {this_file})


def test_prose_and_names():
    found = [f"{p.relative_to(ROOT)}: {v}" for p in files() for v in violations(p)]
    assert not found, "\n".join(found)


def test_public_class_names_are_unique():
    files_of = collections.defaultdict(list)
    for path in sorted((ROOT / "rigidjax").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files_of[node.name].append(str(path.relative_to(ROOT)))
    duplicates = {name: paths for name, paths in files_of.items() if len(paths) > 1}
    assert not duplicates


if __name__ == "__main__":
    found = []
    for given in sys.argv[1:]:
        path = pathlib.Path(given).resolve()
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            in_file = violations(file) if file.suffix in (".py", ".md", ".ipynb") else ()
            found += [f"{file.relative_to(ROOT)}: {violation}" for violation in in_file]
    sys.exit("\n".join(found) or None)
