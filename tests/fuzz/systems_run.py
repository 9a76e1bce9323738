"""One seed of the fuzzer of systems: builds, checks, shrinks, writes a program."""

import pathlib
import time
from typing import Any

import numpy as np

from . import program, systems
from .system_checks import CHECKS

TEMPLATE = """{code}

from tests.fuzz.system_checks import CHECKS  # noqa: E402
from tests.fuzz.systems import Units  # noqa: E402

comparisons = CHECKS[{check!r}](system, state, np.random.default_rng({seed}), {units!r})
failures = [c.failure() for c in comparisons if c.failure()]
print(*failures, sep="\\n")
sys.exit(bool(failures))
"""


def check(description: systems.Description, name: str, seed: int) -> tuple[int, int, str]:
    """Return numbers of comparisons and of elements, and the first failure, or ""."""
    try:
        system, state = description.build()
    except ValueError as error:
        if "contradicts" in str(error):
            # Prescribed motions that no motion of the mechanism fits.
            return 0, 0, ""
        raise
    comparisons = CHECKS[name](system, state, np.random.default_rng(seed), description.units)
    failures = (c.failure() for c in comparisons)
    message = next((text for text in failures if text), "")
    return len(comparisons), sum(np.size(c.expected) for c in comparisons), message


def run_system(seed: int, out: pathlib.Path | None, seconds: float) -> dict[str, Any]:
    """Return the counts of one seed and its failure, if there is one."""
    from .run import write

    description = systems.random_description(seed)
    names = list(CHECKS)
    name = names[np.random.default_rng([seed, 1]).integers(len(names))]
    counts = {"systems": 1, f"systems: {name}": 1}
    found: dict[str, Any] = {"counts": counts}
    comparisons, elements, message = _attempt(description, name, seed)
    counts["system comparisons"], counts["system elements"] = comparisons, elements
    if comparisons == 0 and not message:
        counts["systems without a comparison"] = 1
    if message:
        small = shrink(description, name, seed, message, seconds) if seconds > 0 else description
        message = _attempt(small, name, seed)[2] or message
        title = f"{name}: {message}"
        text = program.start(title, "system", seed, "the check fails", systems.HEADER)
        text += TEMPLATE.format(code=small.code(), check=name, seed=seed, units=small.units)
        found["failure"] = f"{name}: {message}"
        found["file"] = write(out, f"system_{seed}.py", text)
    return found


def _attempt(description, name, seed) -> tuple[int, int, str]:
    try:
        return check(description, name, seed)
    except Exception as error:
        return 0, 0, f"{type(error).__name__}: {str(error)[:600]}"


def shrink(
    description: systems.Description, name: str, seed: int, message: str, seconds: float
) -> systems.Description:
    """Return a smaller system with a failure of the same kind."""
    end = time.monotonic() + seconds
    kind = _kind(message)
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for part in ("forces", "loops", "bodies"):
            for k in reversed(range(len(getattr(description, part)))):
                if (part == "bodies" and len(description.bodies) == 1) or time.monotonic() > end:
                    continue
                smaller = systems.without(description, part, k)
                if _kind(_attempt(smaller, name, seed)[2]) == kind:
                    description, progress = smaller, True
                    break
    return description


def _kind(message: str) -> str:
    """Return the start of a message: what was compared, or the exception."""
    return message.split("[")[0][:60]
