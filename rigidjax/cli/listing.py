"""`rigidjax list`."""

import inspect

from rich.table import Table

from .. import problems
from .messages import console

_REFERENCES = {
    "closed form": "motion in closed form",
    "an integration with 40 digits": "end state to 40 digits",
    "": "no stored reference",
}


def list_problems() -> None:
    """List the problems, their reference solutions, and the sources of their data.

    Example: `rigidjax list`
    """
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, build in problems.all().items():
        problem = build()
        parts = [f"{problem.t1:g} s", _REFERENCES[problem.known]]
        parts += [
            f"--set {key}={_format(parameter.default)}"
            for key, parameter in inspect.signature(build).parameters.items()
        ]
        table.add_row(name, problem.title)
        table.add_row("", f"[dim]{problem.source}; {'; '.join(parts)}[/]")
    console().print(table)


def _format(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
