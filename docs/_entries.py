"""Entries of the reference: signature, description, arguments and an example of a public name."""

import ast
import functools
import inspect
import json
import pathlib
import re
import types
import typing

import jax

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r'^```python(?: title="(\w+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)
PARTS = "Arguments|Attributes|Returns|Raises|Errors|Source|States?|Warnings?"
PART = re.compile(rf"^\*\*({PARTS}):?\*\*:?\s*", re.MULTILINE)

# Objects that functions and methods return; the example is that of their origin.
RETURNED_BY = {
    "BatchFit": "identify_batch",
    "BaseParameters": "regress",
    "Changes": "changes_since",
    "Combination": "identify",
    "ConsistentRegression": "consistent_regression",
    "Design": "design_experiment",
    "EstimateChange": "identify",
    "EstimateCovariance": "identify",
    "Excitation": "excitation",
    "Fit": "identify",
    "FittedRun": "fitted_runs",
    "Identifiability": "identify",
    "IntervalTable": "interval_table",
    "JointData": "joint_data",
    "Likelihood": "compare_models",
    "LikelihoodRatio": "compare_models",
    "Linearisation": "linearize",
    "ModelComparison": "compare_models",
    "Posterior": "posterior",
    "PredictedSensor": "validate",
    "Profile": "profile",
    "Regression": "regress",
    "Sensitivity": "sensitivity",
    "TimeShift": "find_time_shift",
    "Trajectory": "design_trajectory",
    "Validation": "validate",
    "Verdict": "identify",
    "Whiteness": "identify",
    "Ensemble": "ensemble",
    "Store": "ensemble",
    "Comparison": "compare",
    "Row": "compare",
    "Problem": "heavy_top",
    "Actuator": "load",
    "JointLimits": "load",
    "Model": "load",
    "Names": "load",
    "Report": "load",
    "Backend": "simulate",
    "View": "view",
    "Shape": "cone",
    "Charted": "simulate",
    "Solution": "simulate",
    "StepperState": "Stepper",
    "SystemView": "Stepper",
    "TransitionRecord": "Transition",
}


def defined(thing):
    """Return the full name of the definition of a class or function."""
    return f"{thing.__module__}.{thing.__qualname__}"


def parameters_of(thing):
    """Return the parameters of a function or class; keys of a `TypedDict` are keywords."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return [inspect.Parameter("message", inspect.Parameter.POSITIONAL_ONLY, annotation=str)]
    parameters = []
    for p in inspect.signature(thing).parameters.values():
        if typing.get_origin(p.annotation) is typing.Unpack:
            p = p.replace(kind=p.KEYWORD_ONLY, default=...)
            keys = typing.get_args(p.annotation)[0].__annotations__.items()
            parameters += [p.replace(name=name, annotation=kind) for name, kind in keys]
        elif p.name not in ("self", "cls"):
            parameters.append(p)
    return parameters


def signature_of(thing, call):
    """Return a call with types and defaults, one argument per line where it is long."""
    words, starred = [], False
    for p in parameters_of(thing):
        if p.kind is p.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        starred |= p.kind is p.VAR_POSITIONAL
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f" = {shown(p.default)}"
        words.append(f"{star}{p.name}: {type_text(p.annotation)}{default}")
    result = "" if inspect.isclass(thing) else inspect.signature(thing).return_annotation
    end = f") -> {type_text(result)}" if result else ")"
    line = f"{call}({', '.join(words)}{end}"
    return line if len(line) <= 88 else f"{call}(\n    " + ",\n    ".join(words) + f"\n{end}"


def type_text(kind):
    """Return a type as code, without the names of modules."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, list):  # arguments of a callable
        return f"[{', '.join(map(type_text, kind))}]"
    if origin in (typing.Union, types.UnionType):
        text = " | ".join(map(type_text, parts))
        numbers = " | ".join(map(type_text, typing.get_args(jax.typing.ArrayLike)))
        return text.replace(numbers, "ArrayLike").replace("ArrayLike | Sequence[Any]", "ArrayLike")
    if parts and origin is not typing.Literal:
        return f"{type_text(origin)}[{', '.join(map(type_text, parts))}]"
    if kind in (..., types.NoneType):
        return "..." if kind is ... else "None"
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return re.sub(r"\b(\w+\.)+(?=\w)|~", "", text).replace("'", '"')


def shown(value):
    """Return a default as code."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return value.__name__
    text = "..." if value is ... else repr(value).replace("'", '"')
    return text if len(text) <= 40 and "<" not in text else f"{type(value).__name__}(...)"


def sections(text):
    """Return a docstring before its first part, and its parts by name."""
    pieces = PART.split(text)
    return pieces[0].strip(), dict(
        zip(pieces[1::2], (x.strip() for x in pieces[2::2]), strict=True)
    )


def meanings(text, names):
    """Return names and meanings of arguments, from a list or from a sentence."""
    text = text.split("\n\n")[0]
    if text.startswith("- "):
        known = "|".join(names)
        items = re.split(rf"\n- |;\s+(?=`(?:{known})`[,:])", text.removeprefix("- "))
    else:
        items = re.split(r";\s+(?=`)|\.\s+(?=`\w+`,)", text)
    rows = []
    for item in items:
        name = r"`\**\w+(?:[=(][^`]*)?`"
        found = re.match(rf"({name}(?:(?:,|,?\s+and)\s+{name})*)[,:]?\s*(.*)", item, re.DOTALL)
        if not found:
            return []
        rows.append((re.findall(name, found[1]), " ".join(found[2].split())))
    return rows


def arguments_table(thing, title, text):
    """Return a table of arguments, or `None` if the text is no list of arguments."""
    names = [p.name for p in parameters_of(thing)]
    rows = meanings(text, names)
    if not rows:
        return None
    documented = {re.search(r"\w+", code)[0] for listed, _ in rows for code in listed}
    rows += [([f"`{name}`"], "") for name in names if name not in documented]
    lines = [f"| {title} | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {', '.join(x)} | {cell(text)} |" for x, text in rows)])


def cell(text):
    """Return text for a cell of a table: one line, bars escaped outside of formulas."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split())).rstrip(".")


def description(thing, up):
    """Return the docstring as Markdown with a table of arguments; `up` leads to the pages."""
    text, parts = sections(inspect.getdoc(thing) or "")
    lines = [text, ""]
    for name, part in parts.items():
        is_list = name in ("Arguments", "Attributes")
        table = arguments_table(thing, name.lower()[:-1], part) if is_list else None
        if table is None:
            lines += [f"**{name}:** {part}", ""]
        else:
            lines += [table, "", part.partition("\n\n")[2], ""]
    return re.sub(
        r"`?docs/([\w/]+)\.md`?(,\s+\"[^\"]*\")?", rf"[\1]({up}\1.md)\2", "\n".join(lines)
    )


def entry(call, thing, level, up, heading=None):
    """Return heading, signature, description and example of a name."""
    anchor = defined(thing) if hasattr(thing, "__qualname__") else call
    lines = [f"{'#' * level} {heading or call.rpartition('.')[2]} {{#{anchor}}}", ""]
    lines += ["```{.python .signature}", signature_of(thing, call), "```", ""]
    lines += [description(thing, up), ""]
    return "\n".join([*lines, *example_of(call.rpartition(".")[2], up), ""])


def example_of(name, up):
    """Return an example in Markdown, with a link to its page; empty if there is none."""
    origin = RETURNED_BY.get(name)
    found = [examples().get(key) for key in (name, f".{name}", origin, f".{origin}")]
    if not any(found):
        return []
    page, code = next(filter(None, found))
    title = pathlib.PurePath(page).stem.replace("_", " ")
    return [f"**Example**, from [{title}]({up}{page}):", "", "```python", code, "```", ""]


@functools.cache
def examples():
    """Return the shortest statement that uses a name, with its page, by name.

    The statements are those of the pages, of the gallery and of the notebooks, which tests run.
    """
    found = {}
    for page, code in sources():
        from_notebook = page.startswith("notebooks")  # where no page has one
        for statement in statements(ast.parse(code)):
            text = ast.get_source_segment(code, statement)
            if text is None or text.count("\n") > 11:
                continue
            for name in names_in(statement):
                if name not in found or (len(text) < len(found[name][1]) and not from_notebook):
                    found[name] = (page, text)
    return found


def sources():
    """Yield page and code of every example."""
    docs = ROOT / "docs"
    for path in sorted(docs.rglob("*.md")):
        for title, code in FENCE.findall(path.read_text("utf-8")):
            if title != "fragment":
                yield path.relative_to(docs).as_posix(), code
    for path in sorted((docs / "gallery").glob("*.py")):
        if path.stem not in ("make", "clips"):
            yield f"gallery/{path.stem}.md", path.read_text("utf-8")
    for path in sorted((docs / "reference_runs").glob("*.py")):
        yield "reference.md", path.read_text("utf-8")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for part in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(part["source"])
            if part["cell_type"] == "code" and not re.search(r"^\s*[%!]", source, re.MULTILINE):
                yield f"notebooks/{path.stem}.md", source


def statements(tree):
    """Yield the statements of a script, and those within its functions and loops."""
    compound = ast.FunctionDef | ast.For | ast.While | ast.If | ast.Import | ast.ImportFrom
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, compound):
            yield node


def names_in(statement):
    """Yield public names and, with a dot in front, names of methods that a statement uses."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            is_ours = isinstance(root, ast.Name) and root.id in ("rj", "ident", "rigidjax")
            yield node.attr if is_ours else f".{node.attr}"
