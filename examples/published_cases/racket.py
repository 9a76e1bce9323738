"""The tossed racket: all five tosses, each toss left out, and its prediction by the other four.

`python examples/published_cases/racket.py` prints the table of docs/published_cases/racket.md.
"""

import pathlib

import jax
import numpy as np

import rigidjax as rj

jax.config.update("jax_enable_x64", True)

CASE = pathlib.Path(__file__).resolve().parents[1] / "racket" / "racket.toml"
LABELS = "I1", "I2", "c"


def main():
    """Print the fit of all tosses, of all but one, and of both halves of them."""
    case = rj.read_case(CASE)
    runs = case.measurements
    fit = rj.identify(case.model, runs, case.parameters)
    print(fit.verdict)
    intervals = fit.confidence_intervals()
    for label in LABELS:
        low, high = intervals[label]
        print(f"{label}: {fit.estimates[label]:.4g} +- {fit.std[label]:.2g}, {low:.4g}..{high:.4g}")
    for k, run in enumerate(runs):
        others = rj.identify(case.model, [*runs[:k], *runs[k + 1 :]], case.parameters)
        inside = {x: intervals[x][0] <= others.estimates[x] <= intervals[x][1] for x in LABELS}
        values = ", ".join(
            f"{x} {others.estimates[x]:.4g} +- {others.std[x]:.2g} ({'in' if inside[x] else 'OUT'})"
            for x in LABELS
        )
        (sensor,) = others.validate(run).sensors
        print(
            f"without toss {run.name}: {values}; rms {others.rms['gyroscope']:.3g}, of the toss "
            f"{sensor.predicted:.3g} by its first sample, {sensor.fitted_start:.3g} rad/s with a "
            f"fitted start; {others.verdict.use}"
        )
    halves = [rj.identify(case.model, part, case.parameters) for part in (runs[:3], runs[3:])]
    values = np.array([[fit.estimates[x] for x in LABELS] for fit in halves])
    std = np.array([[fit.std[x] for x in LABELS] for fit in halves])
    z = (values[0] - values[1]) / np.hypot(*std)
    for fit, value, error in zip(halves, values, std, strict=True):
        print(f"half of the tosses: {value} +- {error}; {fit.verdict.use}")
    print(f"halves differ by {np.sqrt(np.mean(z**2)):.2f} standard deviations (rms)")


if __name__ == "__main__":
    main()
