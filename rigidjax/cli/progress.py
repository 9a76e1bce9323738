"""A progress bar for runs that take long."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

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
