"""The reference of the command line, from its commands."""

import pathlib
import re

import typer

from rigidjax.cli import app

INTRODUCTION = """# Command line

`pip install rigidjax` installs the command `rigidjax`. All computations are in double precision. `rigidjax COMMAND --help` shows the text of
this page in a terminal.

| exit code | meaning |
|---:|---|
| 0 | success |
| 1 | the computation failed: a run that stopped, a fit without an optimum, a check that found deviations |
| 2 | invalid input; nothing was written |
| 130 | interrupted |
"""

VALUES = {int: "INTEGER", float: "NUMBER", pathlib.Path: "FILE"}


def on_files(files, config):
    """Add the page."""
    from mkdocs.structure.files import File  # tests of the page do without MkDocs

    files.append(File.generated(config, "command_line.md", content=page()))
    return files


def page():
    """Return the page in Markdown: an overview, then each command."""
    group = typer.main.get_command(app)
    commands = {name: c for name, c in group.commands.items() if not c.hidden}
    rows = [
        f"| [`rigidjax {name}`](#rigidjax-{name}) | {first_line(command.help)} |"
        for name, command in commands.items()
    ]
    parts = [INTRODUCTION, "| command | |", "|---|---|", *rows, ""]
    parts += [*options_of(group), "These options stand before the command.", ""]
    for name, command in commands.items():
        parts += [f"## rigidjax {name}", "", *section(name, command)]
    return "\n".join(parts)


def first_line(text):
    return " ".join(text.split("\n\n")[0].split())


def section(name, command):
    """Return usage, help text and tables of one command."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(
        f"{p.display_name_raw}{'...' if p.nargs < 0 else ''}"
        if p.required
        else f"[{p.display_name_raw}]{'...' if p.nargs < 0 else ''}"
        for p in arguments
    )
    parts = ["```console", f"rigidjax {name} {usage} [OPTIONS]".replace("  ", " "), "```", ""]
    parts += [linked(command.help.strip()), ""]
    if arguments:
        parts += ["| argument | |", "|---|---|"]
        parts += [f"| `{p.display_name_raw}` | {cell(p.help)} |" for p in arguments]
        parts += [""]
    return parts + options_of(command)


def options_of(command):
    """Return a table of the options, with their defaults."""
    rows = []
    for option in command.params:
        if option.param_type_name == "argument" or getattr(option, "hidden", False):
            continue
        names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
        value = (
            ""
            if option.is_bool_flag
            else f" {VALUES.get(option.type_descriptor.annotation, 'TEXT')}"
        )
        repeated = " (repeatable)" if option.multiple else ""
        shown = option.default
        if callable(shown) or shown in (None, False, (), []):
            default = ""
        else:
            default = "yes" if shown is True else f"`{shown}`"
        rows.append(f"| {names}{value}{repeated} | {default} | {cell(option.help)} |")
    return ["| option | default | |", "|---|---|---|", *rows, ""] if rows else []


def cell(text):
    text = re.sub(r"\s+", " ", text or "").replace("|", r"\|")
    return linked(text)


def linked(text):
    return re.sub(r"docs/(\w+)\.md", r"[\1](\1.md)", text)
