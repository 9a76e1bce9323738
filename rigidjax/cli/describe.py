"""`rigidjax describe`."""

import pathlib
from typing import Annotated

import typer

from .case import read_case
from .choices import make_problem
from .messages import bad_input, print_outputs
from .options import Force
from .outputs import PAGE, Output, check_outputs


def describe(
    model: Annotated[
        str, typer.Argument(help="A problem, see `rigidjax list`, or a case in TOML.")
    ],
    html: Annotated[
        pathlib.Path | None,
        typer.Option(help="The page to write; by default named after the model."),
    ] = None,
    force: Force = False,
) -> None:
    """Write an HTML page that describes a model: bodies, joints, forces, and a view.

    Examples:

    `rigidjax describe four_bar --html four_bar.html`

    `rigidjax describe case.toml`
    """
    from ..plotting import write_model_page

    with bad_input():
        is_case = model.endswith(".toml")
        target = pathlib.Path(pathlib.Path(model).stem + ".html") if html is None else html
        check_outputs([Output("--html", target, PAGE)], force, [model] if is_case else [])
        if is_case:
            case = read_case(model)
            shown, state, title, files = case.model, None, case.title, (model, *case.files)
        else:
            problem = make_problem(model)
            shown, state, title, files = problem.system, problem.state0, problem.title, ()
        write_model_page(shown, target, state=state, title=title, files=files, force=force)
    print_outputs({"page": target})
