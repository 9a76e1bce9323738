"""Progress report of an ensemble: members done and failed, their rate, the remaining time."""

import importlib
import importlib.util
import sys
import time
from typing import Any

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
    console = importlib.import_module("rich.console").Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return None
    bars = importlib.import_module("rich.progress")
    return bars.Progress(
        bars.TextColumn("members"), bars.BarColumn(), bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"), bars.TimeRemainingColumn(),
        console=console, transient=True,
    )  # fmt: skip


class ProgressReport:
    """A progress bar on a terminal or in a notebook, a line at intervals elsewhere."""

    def __init__(self, count: int, done: int, enabled: bool):
        self._count, self._before, self._done, self._failed = count, done, done, 0
        self._begin = self._last_line = time.monotonic()
        self._enabled = enabled
        self._bar = _make_bar() if enabled else None
        if self._bar:
            self._task: Any = self._bar.add_task("", total=count, completed=done, rate="")

    def __enter__(self) -> "ProgressReport":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
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
        if self._bar:
            self._bar.start()
            self._bar.update(self._task, completed=self._done, rate=text)
        elif now - self._last_line >= _INTERVAL:
            self._last_line = now
            left = (self._count - self._done) / rate
            line = f"{self._done} of {self._count} members, {text}, {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)
