"""`rigidjax sweep`."""

import pathlib
from typing import Annotated, Any

import typer

from ..ensembles import Store, ensemble
from ..ensembles.processes import read_rank, run_workers
from .messages import bad_input, console, fail, print_outputs
from .options import Force
from .outputs import PAGE, Output, check_outputs
from .plugins import describe_error, import_file

_USAGE = "`rigidjax sweep FILE.py:FUNCTION`, `sweep status STORE.zarr` or `sweep report STORE.zarr`"


def sweep(
    task: Annotated[str, typer.Argument(help="FILE.py:FUNCTION, or `status`, or `report`.")],
    store: Annotated[
        pathlib.Path | None, typer.Argument(help="The store, for `status` and `report`.")
    ] = None,
    parameters: Annotated[
        pathlib.Path | None, typer.Option(help="Parameters of the members (.nc, .csv).")
    ] = None,
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write to this store, a folder *.zarr.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    worker: Annotated[
        str | None, typer.Option(help="Be worker I/N; also read from Slurm and MPI.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Members of a shard.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each process.")] = None,
    lengths: Annotated[
        str | None, typer.Option(help="A parameter that predicts the durations of members.")
    ] = None,
    html: Annotated[
        pathlib.Path | None, typer.Option(help="The page that `report` writes.")
    ] = None,
    force: Force = False,
) -> None:
    """Run a function of a Python file for many parameters; continue an interrupted sweep.

    The function receives the parameters of one member by name and returns arrays, see
    docs/ensembles.md. Any number of processes and hosts that share a store may work on it at the
    same time. After a process was killed, the same call computes the missing members.

    Examples:

    `rigidjax sweep study.py:run --parameters p.nc --out sweep.zarr --workers 8`

    `rigidjax sweep status sweep.zarr`

    `rigidjax sweep report sweep.zarr --html sweep.html`
    """
    if task in ("status", "report"):
        with bad_input():
            if store is None:
                raise ValueError(f"`sweep {task}` takes a store: `sweep {task} STORE.zarr`.")
            existing = Store(store)
        if task == "status":
            _print_status(existing)
        else:
            _write_report(existing, html or pathlib.Path(f"{existing.path.stem}.html"), force)
        return
    with bad_input():
        if store is not None:
            raise ValueError(f"The argument {store} is not expected; use {_USAGE}.")
        if parameters is None or out is None:
            raise ValueError("A sweep needs `--parameters FILE` and `--out STORE.zarr`.")
        if workers > 1 and worker is not None:
            raise ValueError("Use `--workers` or `--worker`, not both.")
        rank = read_rank(worker)
        run = _name_errors(load_function(task), task)
    if workers > 1:
        command = ["sweep", task, "--parameters", parameters, "--out", out]
        command += ["--threads", threads or 1]
        command += [] if batch is None else ["--batch", batch]
        command += [] if lengths is None else ["--lengths", lengths]
        with bad_input():
            run_workers([str(part) for part in command], out, workers)
    else:
        try:
            with bad_input():
                result = ensemble(
                    run, parameters, out=out, batch=batch, threads=threads,
                    worker=rank, progress=rank[0] == 0, lengths=lengths,
                )  # fmt: skip
        except _RunError as error:
            fail(str(error), code=1)
        if rank[0] != 0:
            return
        console().print(repr(result), markup=False)
    _print_status(Store(out))


def load_function(task: str) -> Any:
    """Return the function that FILE.py:FUNCTION names.

    **Raises:** `ValueError` and `FileNotFoundError` if it does not exist.
    """
    file, _, name = task.rpartition(":")
    path = pathlib.Path(file)
    if not file or path.suffix != ".py":
        raise ValueError(f"{task!r} does not name a function; use {_USAGE}.")
    module = import_file(path)
    if not callable(getattr(module, name, None)):
        raise ValueError(f"{path} has no function {name!r}.")
    return getattr(module, name)


class _RunError(Exception):
    """Error in the function of a sweep, with a description."""


def _name_errors(run: Any, task: str) -> Any:
    """Wrap a function so that its errors name the task and the line."""

    def run_with_named_errors(parameters: Any) -> Any:
        try:
            return run(parameters)
        except Exception as error:
            text = describe_error(error, pathlib.Path(task.rpartition(":")[0]))
            names = f" It got the parameters {', '.join(parameters)}."
            raise _RunError(f"{task} raised {text}{names}") from error

    return run_with_named_errors


def _print_status(store: Store) -> None:
    console().print(
        f"{store.path}: {store.num_done()} of {store.count} members in {len(store.done())} of "
        f"{store.num_shards} shards, {store.failed()} failed",
        markup=False,
        soft_wrap=True,
    )


def _write_report(store: Store, html: pathlib.Path, force: bool) -> None:
    with bad_input():
        check_outputs([Output("--html", html, PAGE)], force, [])
        if store.missing():
            raise ValueError(f"{store.path} is not complete; see `sweep status {store.path}`.")
        from .. import plotting

        plotting.write_ensemble_page(
            store.to_xarray(),
            html,
            title=f"Ensemble {store.path.stem}",
            files=[store.path, store.path / "progress" / "plan.json"],
            force=force,
        )
    print_outputs({"page": html})
