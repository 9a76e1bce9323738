"""Progress report of an ensemble: members done and failed, their rate, the remaining time."""

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Seconds before the first report, and between lines if the output is not a terminal.
_DELAY = 1.0
_INTERVAL = 10.0


def _make_bar() -> Any:
    """Return a progress bar.

    It is `None` without the optional package rich, and where neither a terminal nor a notebook
    shows a bar.
    """
    if importlib.util.find_spec("rich") is None:
        return None
    from rich import console, progress as bars

    stream = console.Console(stderr=True)
    if not (stream.is_terminal or stream.is_jupyter):
        return None
    return bars.Progress(
        bars.TextColumn("members"), bars.BarColumn(), bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"), bars.TimeRemainingColumn(),
        console=stream, transient=True,
    )  # fmt: skip


@contextlib.contextmanager
def report_progress(count: int, done: int, enabled: bool) -> Iterator[Callable[[np.ndarray], None]]:
    """Show a progress bar on a terminal or in a notebook, a line at intervals elsewhere.

    The function that it yields takes the results of further members.
    """
    total, failed, begin = done, 0, time.monotonic()
    last_line = begin
    bar = _make_bar() if enabled else None
    task = bar and bar.add_task("", total=count, completed=done, rate="")

    def add(results):
        nonlocal total, failed, last_line
        total += len(results)
        failed += np.count_nonzero(results)
        now = time.monotonic()
        if not enabled or now - begin < _DELAY:
            return
        rate = (total - done) / (now - begin)
        text = f"{rate:,.0f} /s" + (f", {failed} failed" if failed else "")
        if bar:
            bar.start()
            bar.update(task, completed=total, rate=text)
        elif now - last_line >= _INTERVAL:
            last_line = now
            left = (count - total) / rate
            line = f"{total} of {count} members, {text}, {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    try:
        yield add
    finally:
        if bar:
            bar.stop()
