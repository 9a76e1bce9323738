"""Progress report of an ensemble: members done and failed, their rate, the remaining time."""

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# Seconds before the first report, and between lines if the output is not a terminal.
_DELAY = 1.0
_INTERVAL = 10.0


class ProgressReport:
    """A progress bar on a terminal or in a notebook, a line at intervals elsewhere."""

    def __init__(self, count: int, done: int, enabled: bool):
        self._count, self._before, self._done, self._failed = count, done, done, 0
        self._begin = self._last_line = time.monotonic()
        self._enabled = enabled
        console = Console(stderr=True)
        self._is_shown = enabled and (console.is_terminal or console.is_jupyter)
        self._bar = Progress(
            TextColumn("members"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
            console=console, transient=True,
        )  # fmt: skip
        self._task: Any = self._bar.add_task("", total=count, completed=done, rate="")

    def __enter__(self) -> "ProgressReport":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def add(self, count: int, failed: int) -> None:
        """Report that `count` further members are done, of which some failed."""
        self._done += count
        self._failed += failed
        now = time.monotonic()
        if not self._enabled or now - self._begin < _DELAY:
            return
        rate = (self._done - self._before) / (now - self._begin)
        text = f"{rate:,.0f} /s" + (f", {self._failed} failed" if self._failed else "")
        if self._is_shown:
            self._bar.start()
            self._bar.update(self._task, completed=self._done, rate=text)
        elif now - self._last_line >= _INTERVAL:
            self._last_line = now
            left = (self._count - self._done) / rate
            line = f"{self._done} of {self._count} members, {text}, {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)
