"""What an ensemble says while it runs: members done and failed, their rate, the time left."""

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# Seconds before anything is said, and between lines where the output is no terminal.
_PATIENCE = 1.0
_BETWEEN = 10.0


class Report:
    """A bar on a terminal or in a notebook, a line now and then elsewhere."""

    def __init__(self, count: int, done: int, wanted: bool):
        self._count, self._before, self._done, self._failed = count, done, done, 0
        self._begin = self._said = time.monotonic()
        self._wanted = wanted
        console = Console(stderr=True)
        self._is_shown = wanted and (console.is_terminal or console.is_jupyter)
        self._bar = Progress(
            TextColumn("members"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
            console=console, transient=True,
        )  # fmt: skip
        self._task: Any = self._bar.add_task("", total=count, completed=done, rate="")

    def __enter__(self) -> "Report":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def add(self, count: int, failed: int) -> None:
        """Say that a chunk is done."""
        self._done += count
        self._failed += failed
        now = time.monotonic()
        if not self._wanted or now - self._begin < _PATIENCE:
            return
        rate = (self._done - self._before) / (now - self._begin)
        text = f"{rate:,.0f} /s" + (f", {self._failed} failed" if self._failed else "")
        if self._is_shown:
            self._bar.start()
            self._bar.update(self._task, completed=self._done, rate=text)
        elif now - self._said >= _BETWEEN:
            self._said = now
            left = (self._count - self._done) / rate
            line = f"{self._done} of {self._count} members, {text}, {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)
