"""Progress of long runs and fits, on the error stream."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ..identification.search.least_squares import Iteration
from .base.messages import errors

# Seconds before a bar appears, and the smallest increment that it shows.
_DELAY = 1.0
_INCREMENT = 0.01


class Reporter(diffrax.AbstractProgressMeter):
    """A diffrax progress meter that passes the progress of a run, from 0 to 1, to a function."""

    report: Callable[[float], None] = eqx.field(static=True)

    def init(self) -> Any:
        """Return the state: the progress that was reported last."""
        return jnp.zeros(())

    def step(self, state: Any, progress: Any) -> Any:
        """Report the progress if it advanced by at least the increment."""

        def show(progress):
            io_callback(self.report, None, progress)
            return progress

        progress = jnp.asarray(progress, state.dtype)
        due = progress - state >= _INCREMENT
        return jax.lax.cond(due, show, lambda progress: state, progress)

    def close(self, state: Any) -> None:
        """Do nothing: the bar is closed by its owner."""


@contextlib.contextmanager
def progress_bar(text: str, enabled: bool | None = None) -> Iterator[diffrax.AbstractProgressMeter]:
    """Provide a meter for `rj.simulate(progress=...)` with a bar that appears after a second.

    **Arguments:** `text` beside the bar; `enabled`, `None` to show it only on a terminal.
    """
    stream = errors()
    if not (stream.is_terminal if enabled is None else enabled):
        yield diffrax.NoProgressMeter()
        return
    columns = TextColumn(text), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    bar = Progress(*columns, console=stream, transient=True)
    task = bar.add_task(text, total=1.0)
    first: float | None = None

    def report(progress: Any) -> None:
        nonlocal first
        first = time.monotonic() if first is None else first
        if time.monotonic() - first >= _DELAY:
            bar.start()
            bar.update(task, completed=float(progress))

    try:
        yield Reporter(report)
    finally:
        bar.stop()


def show_spinner(text: str) -> Progress:
    """Return a context that shows a spinner, a text and the elapsed time on the error stream."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    stream = errors()
    progress = Progress(*columns, console=stream, transient=True, disable=not stream.is_terminal)
    progress.add_task(text, total=None)
    return progress


@contextlib.contextmanager
def fit_progress() -> Iterator[Callable[[Iteration], None]]:
    """Provide a function that reports an iteration of a fit: its number, cost and time.

    On a terminal one line is updated, elsewhere every iteration prints a line. Before the first one
    a line says that the fit is compiled, which takes long once.
    """
    stream, begin = errors(), time.monotonic()
    is_announced = False

    def report(iteration: Iteration) -> None:
        nonlocal is_announced
        if iteration.number > 0:
            stage = f"horizon {iteration.horizon:g}, " if iteration.horizon < 1 else ""
            text = f"{stage}iteration {iteration.number}, cost {iteration.cost:.6g}"
            if stream.is_terminal:
                progress.update(progress.task_ids[0], description=text)
            else:
                elapsed = time.monotonic() - begin
                stream.print(f"{elapsed:8.1f} s  {text}", markup=False)
        elif not is_announced:
            is_announced = True
            stream.print("compiling (first run only, later ones load the result) ...")

    with show_spinner("compiling") as progress:
        yield report
