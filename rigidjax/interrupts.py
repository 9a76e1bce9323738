"""Immediate exit on Ctrl-C in the command line, without leaving half-written files.

Python handles a signal between two bytecode instructions and raises an exception. While XLA
compiles or runs, this is too late, and an exception inside a call-back from XLA into Python is a
segmentation fault. Therefore a thread waits for signals, and nothing is raised. This module imports
nothing slow, because it has to work while the package itself is being imported.
"""

import contextlib
import os
import signal
import sys
import threading
import types

# Paths of temporary files, removed when the process is stopped.
temporary_files: set[str] = set()

# Held while files are moved to their final paths, so that an exit moves either all or none.
move_lock = threading.Lock()

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

# Clears the progress line and shows the cursor, which a progress bar hides.
RESTORE_TERMINAL = b"\r\x1b[K\x1b[?25h"


def is_console_command() -> bool:
    """Return whether this process runs `rigidjax` or `python -m rigidjax`, not a user's code."""
    script = (sys.argv or [""])[0]
    if script == "-m":
        return bool({"rigidjax", "-mrigidjax"} & set(sys.orig_argv))
    return os.path.splitext(os.path.basename(script))[0] == "rigidjax"


def shows_help() -> bool:
    """Return whether this process is the console command and prints only help or the version."""
    words = sys.argv[1:]
    return is_console_command() and (not words or bool({"--help", "--version"} & set(words)))


def exit_on_signals() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end this process at once.

    The exit code is 128 plus the number of the signal, as in shells: 130 for Ctrl-C. A signal that
    is ignored (by `nohup`, or in the background of a script) stays ignored.
    """
    handled = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    handled = [s for s in handled if signal.getsignal(s) not in (signal.SIG_IGN, _ignore)]
    if not handled or threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # The C part of Python's signal handling writes the number of the signal to this pipe.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_wait_and_exit, args=(reading, set(handled)), daemon=True).start()
    for number in handled:
        signal.signal(number, _ignore)


def _ignore(number: int, frame: types.FrameType | None) -> None:
    """Do nothing: an exception would be raised wherever the main thread happens to be."""


def _wait_and_exit(reading: int, handled: set[int]) -> None:
    while (number := os.read(reading, 1)[0]) not in handled:
        pass
    with move_lock:
        for path in tuple(temporary_files):
            with contextlib.suppress(OSError):
                os.unlink(path)
        if os.isatty(2):
            os.write(2, RESTORE_TERMINAL)
        # `sys.exit` would finalise the interpreter while threads of XLA still run.
        os._exit(128 + number)
