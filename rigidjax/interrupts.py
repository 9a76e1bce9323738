"""Ctrl-C in the command line: the program ends at once and leaves no file half-written.

Python acts on a signal between two of its own instructions, and raises. While XLA compiles or runs
that is too late, and an exception inside of its calls back into Python is a segmentation fault. So
a thread waits for signals, and nothing is raised. Nothing slow is imported here: it is to work
while the package itself is still being imported.
"""

import contextlib
import os
import signal
import sys
import threading

# Temporary files: removed if the program is stopped.
unfinished: set[str] = set()

# Held while files are moved to their places, so that a stop comes before all of them or after.
moving = threading.Lock()

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

# Clears a line of progress and shows the cursor again, which a progress bar hides.
TIDY = b"\r\x1b[K\x1b[?25h"


def is_program() -> bool:
    """Whether this process is `rigidjax` or `python -m rigidjax`, not one that uses the package."""
    first = (sys.argv or [""])[0]
    if first == "-m":
        return bool({"rigidjax", "-mrigidjax"} & set(sys.orig_argv))
    return os.path.splitext(os.path.basename(first))[0] == "rigidjax"


def end_at_once() -> None:
    """From now on a signal to stop ends this process, with code 130 for Ctrl-C.

    Codes are 128 and the number of the signal, as shells count. A signal that is ignored (by
    `nohup`, or in the background of a script) stays so.
    """
    wanted = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    wanted = [s for s in wanted if signal.getsignal(s) not in (signal.SIG_IGN, _leave_to_thread)]
    if not wanted or threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # Python's part of the handler that is written in C writes the number of the signal there.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(reading, set(wanted)), daemon=True).start()
    for number in wanted:
        signal.signal(number, _leave_to_thread)


def _leave_to_thread(number, frame):
    """Nothing: an exception here would be raised wherever the main thread is."""


def _wait(reading, wanted):
    while (number := os.read(reading, 1)[0]) not in wanted:
        pass
    with moving:
        for path in tuple(unfinished):
            with contextlib.suppress(OSError):
                os.unlink(path)
        if os.isatty(2):
            os.write(2, TIDY)
        # Not `sys.exit`: the interpreter cannot be taken down under threads of XLA that run.
        os._exit(128 + number)
