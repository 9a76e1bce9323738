"""What runs and fits that take long say on the error stream."""

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

from ..identification.fit.least_squares import Iteration
from .messages import errors

# Seconds before a bar appears, and the smallest advance that it shows.
_PATIENCE = 1.0
_INCREASE = 0.01


class Reporter(diffrax.AbstractProgressMeter):
    """A diffrax progress meter that calls a function with how far the run is, from 0 to 1."""

    report: Callable[[float], None] = eqx.field(static=True)

    def init(self) -> Any:
        """What was reported last."""
        return jnp.zeros(())

    def step(self, state: Any, progress: Any) -> Any:
        """Report if the run has advanced enough."""

        def show(progress):
            io_callback(self.report, None, progress)
            return progress

        progress = jnp.asarray(progress, state.dtype)
        due = progress - state >= _INCREASE
        return jax.lax.cond(due, show, lambda progress: state, progress)

    def close(self, state: Any) -> None:
        """Nothing to do: the bar belongs to whoever made it."""


@contextlib.contextmanager
def progress_bar(text: str, wanted: bool | None = None) -> Iterator[diffrax.AbstractProgressMeter]:
    """A meter for `rj.simulate(progress=...)`, its bar on the error stream after a second.

    **Arguments:** `text` beside the bar; `wanted`, `None` for on a terminal only.
    """
    stream = errors()
    if not (stream.is_terminal if wanted is None else wanted):
        yield diffrax.NoProgressMeter()
        return
    columns = TextColumn(text), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    bar = Progress(*columns, console=stream, transient=True)
    task = bar.add_task(text, total=1.0)
    first: float | None = None

    def report(progress: Any) -> None:
        nonlocal first
        first = time.monotonic() if first is None else first
        if time.monotonic() - first >= _PATIENCE:
            bar.start()
            bar.update(task, completed=float(progress))

    try:
        yield Reporter(report)
    finally:
        bar.stop()


def working(text: str) -> Progress:
    """A context in which a spinner and a clock say on the error stream what is being done."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    stream = errors()
    progress = Progress(*columns, console=stream, transient=True, disable=not stream.is_terminal)
    progress.add_task(text, total=None)
    return progress


@contextlib.contextmanager
def fit_progress() -> Iterator[Callable[[Iteration], None]]:
    """A function to be called after every iteration of a fit: its number, cost and time.

    On a terminal they are one line that changes, elsewhere a line each.
    """
    stream, begin = errors(), time.monotonic()

    def line(at: Iteration) -> None:
        stream.print(f"{time.monotonic() - begin:8.1f} s  {_words(at)}", markup=False)

    with working("compiling") as progress:
        if stream.is_terminal:
            yield lambda at: progress.update(progress.task_ids[0], description=_words(at))
        else:
            yield line


def _words(at: Iteration) -> str:
    stage = f"horizon {at.horizon:g}, " if at.horizon < 1 else ""
    return f"{stage}iteration {at.number}, cost {at.cost:.6g}"
