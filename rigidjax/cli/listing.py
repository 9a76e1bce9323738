"""`rigidjax list`."""

import inspect

from rich.table import Table

from .. import problems
from .messages import console


def list_problems() -> None:
    """List the problems, what is known of them, and where their data are from.

    Example: `rigidjax list`
    """
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, build in problems.all().items():
        problem = build()
        known = "motion in closed form" if problem.has_reference else "end state to 40 digits"
        parts = [f"{problem.t1:g} s", known]
        parts += [
            f"--set {key}={parameter.default:g}"
            for key, parameter in inspect.signature(build).parameters.items()
        ]
        table.add_row(name, problem.title)
        table.add_row("", f"[dim]{problem.source}; {'; '.join(parts)}[/]")
    console().print(table)
