"""The racket fit: inertia and drag from measured rates, from pendulum values and random starts.

A start is successful if the root mean square of the residuals reaches 0.4585 rad/s (the optimum has
0.45839). Random starts have both moments, the drag, and every initial rate of every toss multiplied
by independent factors within +-30 %. The fit is repeated without growing horizons, to show their
effect.
"""

import dataclasses
import statistics
import time
from typing import Any

import _common as common
import numpy as np

from rigidjax.cli.case import Case
from rigidjax.cli.demo import racket_case
from rigidjax.identification import Fit, identify

OPTIMUM = 0.4585
SPREAD = 0.3


def random_start(rng: np.random.Generator) -> Case:
    """Return the case with every start value changed by up to 30 %."""
    case = racket_case()
    inertia = np.array(case.model.system.inertia)
    inertia[:2] *= rng.uniform(1 - SPREAD, 1 + SPREAD, size=2)
    drag = case.model.system.moment.coefficient * rng.uniform(1 - SPREAD, 1 + SPREAD)
    rates = np.array([m.values[0][:1] for m in case.measurements])
    rates *= rng.uniform(1 - SPREAD, 1 + SPREAD, size=rates.shape)
    starts = zip(case.parameters, (inertia, drag, rates), strict=True)
    return case._replace(
        parameters=tuple(dataclasses.replace(p, start=start) for p, start in starts)
    )


def timed_fit(case: Case, **options: Any) -> tuple[Fit, float, float]:
    """Return a fit with its wall and processor time."""
    wall, used = time.perf_counter(), time.process_time()
    arguments = case.model, case.measurements, case.parameters
    fit = identify(*arguments, throw=False, **options)
    return fit, time.perf_counter() - wall, time.process_time() - used


def estimates(fit: Fit) -> dict[str, Any]:
    """Return the estimates, in g m^2."""
    return {
        "rms": fit.rms["gyroscope"],
        **{label: 1e3 * fit.estimates[label] for label in ("I1", "I2", "c")},
        **{f"std_{label}": 1e3 * fit.std[label] for label in ("I1", "I2", "c")},
        "correlation": fit.correlation("I1", "I2"),
    }


def from_pendulum_values(repeats: int) -> dict[str, Any]:
    """Return rows of one fit with its compilation, and of repetitions."""
    first, wall, used = timed_fit(racket_case())
    again = [timed_fit(racket_case())[1:] for _ in range(repeats)]
    return {
        "case": "pendulum values",
        "first_seconds": wall,
        "first_cpu_seconds": used,
        **common.summary(again),
        "iterations": sum(first.iterations),
        "failed_evaluations": first.failed_evaluations,
        "success": bool(first.converged and first.rms["gyroscope"] <= OPTIMUM),
        **estimates(first),
    }


def from_random_starts(case: str, starts: int, **options: Any) -> dict[str, Any]:
    """Return how many starts reach the optimum, and their times."""
    rng = np.random.default_rng(0)
    timed_fit(racket_case(), **options)  # compiled before the clock starts
    found = [timed_fit(random_start(rng), **options) for _ in range(starts)]
    fits = [fit for fit, *_ in found]
    iterations = [sum(fit.iterations) for fit in fits]
    return {
        "case": case,
        "starts": starts,
        "successes": sum(fit.converged and fit.rms["gyroscope"] <= OPTIMUM for fit in fits),
        "worst_rms": max(fit.rms["gyroscope"] for fit in fits),
        "iterations_median": statistics.median(iterations),
        "iterations_max": max(iterations),
        "failed_evaluations": sum(fit.failed_evaluations for fit in fits),
        "run_seconds": statistics.median(wall for _, wall, _ in found),
        "run_seconds_max": max(wall for _, wall, _ in found),
        "cpu_seconds": statistics.median(used for *_, used in found),
    }


def rows(smoke: bool) -> list[dict[str, Any]]:
    """Return all rows."""
    starts = 3 if smoke else 100
    out = [
        from_pendulum_values(repeats=2 if smoke else 20),
        from_random_starts("random starts", starts),
    ]
    if not smoke:
        out.append(from_random_starts("random starts, one horizon", 30, horizons=(1.0,)))
    return out


def main() -> None:
    """Measure and write `results/racket_fit.json`."""
    smoke = common.arguments(__doc__).smoke
    common.double_precision()
    common.write("racket_fit", rows(smoke), smoke)


if __name__ == "__main__":
    main()
