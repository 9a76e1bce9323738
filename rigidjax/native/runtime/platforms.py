"""Cores of this machine, and whether it has native kernels."""

import functools
import os
import platform
import sys
import warnings

# Platforms on which kernels are tested.
TESTED = {("linux", "x86_64")}
# Environment variable: "on" or "off", otherwise kernels are used on tested platforms.
SWITCH = "RIGIDJAX_KERNELS"


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def why_no_kernels() -> list[str]:
    """Return why this process leaves kernels to XLA; empty if it has kernels. Warns once.

    **Raises:** `ValueError` for another value of the environment variable.
    """
    switch = os.environ.get(SWITCH, "")
    if switch not in ("", "on", "off"):
        raise ValueError(
            f'The environment variable {SWITCH} must be "on" or "off"; got {switch!r}.'
        )
    here = sys.platform, platform.machine()
    if switch == "on" or (not switch and here in TESTED):
        return []
    tested = f"native kernels are tested on Linux x86-64, and this is {' '.join(here)}"
    off = f"the environment variable {SWITCH} is off"
    reason = off if switch else f"{tested}; {SWITCH}=on uses them nevertheless"
    warnings.warn(f"Simulations run by XLA, which is slower: {reason}.", stacklevel=2)
    return [reason]
