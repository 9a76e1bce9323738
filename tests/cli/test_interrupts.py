"""Ctrl-C ends the command at once with code 130, without partial files."""

import signal
import subprocess
import sys
import time

import pytest

import rigidjax as rj
from rigidjax import interrupts

PROGRAM = [sys.executable, "-m", "rigidjax"]
# Seconds from the signal to the end: an idle machine takes a few tenths, a busy one may not run a
# process for seconds.
LIMIT = 20.0


def end_of(process, number=signal.SIGINT):
    """The exit code after a signal."""
    begin = time.monotonic()
    process.send_signal(number)
    code = process.wait(timeout=30)
    assert time.monotonic() - begin < LIMIT
    return code


# Becomes the program named after it, with the signals that a shell's background jobs ignore back at
# their defaults. (A function that runs after a fork would do it too, but JAX warns of any fork.)
LISTENING = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def start_process(*arguments, folder, program=PROGRAM, **streams):
    """Start a process that handles Ctrl-C, although a shell ignores it in the background."""
    command = [sys.executable, "-c", LISTENING, *program, *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, **streams)


def test_interrupt_during_import(tmp_path):
    code, errors = 0, b""
    # On a busy machine the program may be done before the signal comes: code 0, once more.
    for _ in range(10):
        with start_process("--version", folder=tmp_path, stderr=subprocess.PIPE) as process:
            while process.poll() is None and not _is_caught(process.pid):
                time.sleep(0.005)
            code = end_of(process)
            assert process.stderr is not None
            errors = process.stderr.read()
        if code != 0:
            break
    assert (code, errors) == (130, b"")


def _is_caught(pid):
    """Whether a process handles SIGTERM, which Python does not by itself."""
    with open(f"/proc/{pid}/status") as file:
        mask = next(line.split()[1] for line in file if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)


def test_interrupt_during_output(tmp_path):
    """One of two files is complete, neither is there afterwards; what was there is kept."""
    (tmp_path / "a.txt").write_text("old")
    code = """if True:
        import time
        from rigidjax import interrupts, io
        interrupts.exit_on_signals()
        with io.together():
            for name in ("a.txt", "b.txt"):
                with io.replacing(name, force=True) as file:
                    file.write_text("new")
                    if name == "b.txt":
                        print("ready", flush=True)
                        time.sleep(60)
    """
    own = [sys.executable, "-c", code]
    with start_process(program=own, folder=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 3
        assert end_of(process, signal.SIGTERM) == 143
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_other_processes_keep_their_handlers():
    assert not interrupts.is_console_command()
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)


# --- several files at once


def test_files_are_written_together_or_not_at_all(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"

    def write(fails):
        with rj.io.together():
            for path in (first, second):
                with rj.io.replacing(path) as temporary:
                    temporary.write_text("new")
                assert not path.exists()
            if fails:
                raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write(fails=True)
    assert list(tmp_path.iterdir()) == [] and not interrupts.temporary_files
    write(fails=False)
    assert sorted(tmp_path.iterdir()) == [first, second] and not interrupts.temporary_files
