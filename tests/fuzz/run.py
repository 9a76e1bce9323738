"""One seed: generates, checks, shrinks, writes a program; and the worker that does many."""

import gc
import json
import pathlib
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

import jax

from rigidjax.native.runtime import codegen as machine

from . import generate, jaxprs, shrink

CLEAR_EVERY = 20


def run_jaxpr(seed: int, out: pathlib.Path | None, seconds: float) -> dict[str, Any]:
    """Return the counts of one seed and its failure, if there is one."""
    case, _ = generate.random_case(seed)
    outcome = jaxprs.check(case, seed)
    counts = {
        "jaxprs": 1,
        "lines": case.block.size(),
        "elements": outcome.elements,
        "undecided": outcome.undecided,
        "derivatives": int(bool(case.mode) and not outcome.skipped),
        "skipped": int(bool(outcome.skipped)),
    }
    found: dict[str, Any] = {"counts": counts, "skipped": outcome.skipped}
    if outcome.failure is not None:
        small, failure = case, outcome.failure
        if seconds > 0:
            small = shrink.shrink(case, outcome.failure, seed, seconds)
            failure = jaxprs.check(small, seed).failure or outcome.failure
        found["failure"] = failure.message
        found["file"] = write(out, f"jaxpr_{seed}.py", shrink.standalone(small, failure, seed))
    return found


def write_unchecked(seed: int, out: pathlib.Path, title: str) -> str:
    """Write the program of a seed that ended the process."""
    case, _ = generate.random_case(seed)
    failure = jaxprs.Failure("crash", "batch", title)
    return write(out, f"jaxpr_{seed}.py", shrink.standalone(case, failure, seed))


def write(out: pathlib.Path | None, name: str, text: str) -> str:
    if out is None:
        return ""
    out.mkdir(parents=True, exist_ok=True)
    (out / name).write_text(text)
    return str(out / name)


def runner(kind: str):
    if kind == "jaxpr":
        return run_jaxpr
    from . import systems_run

    return systems_run.run_system


def run_seed(kind: str, seed: int, out: pathlib.Path | None, seconds: float) -> dict[str, Any]:
    """Return what one seed gives; an exception of the fuzzer itself is a failure, too."""
    # Few optimisations for most: compilation is nearly all of the time.
    lengths = machine.LONG, machine.LONG_BATCH
    if seed % 3:
        machine.LONG = machine.LONG_BATCH = 0
    begin = time.monotonic()
    try:
        found = runner(kind)(seed, out, seconds)
    except Exception as error:
        trace = traceback.format_exc()
        found = {"counts": {}, "failure": f"{type(error).__name__}: {error}", "trace": trace}
    finally:
        machine.LONG, machine.LONG_BATCH = lengths
    return {"kind": kind, "seed": seed, "seconds": time.monotonic() - begin, **found}


def run_many(
    kind: str, seeds: Iterable[int], out: pathlib.Path, seconds: float
) -> Iterator[dict[str, Any]]:
    """Run seeds one after the other; each begins with a record of its own."""
    for k, seed in enumerate(seeds):
        yield {"kind": kind, "seed": seed, "begins": True}
        yield run_seed(kind, seed, out, seconds)
        if k % CLEAR_EVERY == CLEAR_EVERY - 1:
            jax.clear_caches()
            gc.collect()


def work(kind: str, seeds: Iterable[int], out: pathlib.Path, seconds: float) -> None:
    """Print a line of JSON for each record."""
    for record in run_many(kind, seeds, out, seconds):
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()
