"""Summary of a run in a few lines of text."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ..checks import is_traced
from ..formulations import Relative
from ..formulations.charts import split_chart
from ..mechanics import System
from ..results import RESULTS

if TYPE_CHECKING:
    from .solution import Solution


def summary_lines(solution: "Solution") -> list[str]:
    """Return the formulation, the outcome, the saved times and the work of a run, line by line.

    For a traced solution, or a pytree of the same structure, return the formulation and shapes.
    """
    lines = [f"Solution of {solution.model!r}"]
    parts = solution.ts, solution.ys, solution.stats, solution.result, solution.event_time
    leaves = [x for x in jax.tree.leaves(parts) if not isinstance(x, str)]
    if is_traced(leaves) or not all(isinstance(x, jax.Array | np.ndarray) for x in leaves):
        shapes = [getattr(x, "shape", x) for x in jax.tree.leaves((solution.ts, solution.ys))]
        return [*lines, f"  times and unknowns: {shapes}, without values"]
    lines.append(f"  result: {_format_outcomes(solution.result)}")
    lines.append(f"  times: {_format_times(solution.ts)}")
    if solution.ys is not None:
        values, _ = split_chart(solution.ys)
        lines.append(f"  saved: {[x.shape for x in jax.tree.leaves(values)]}")
    stats = solution.stats
    for name in ("num_steps", "num_rejected_steps", "num_rhs"):
        if stats.get(name) is not None:
            lines.append(f"  {name}: {_format_range(stats[name])}")
    if solution.event_time is not None:
        lines.append(f"  event_time: {_format_range(solution.event_time)} s")
    rotor = fastest_rotor(solution)
    if rotor is not None:
        lines.append(
            f"  short steps: they resolve each revolution of {rotor.body!r} on {rotor.joint!r} "
            f"({rotor.rate:.3g} rad/s, {rotor.angle:.2g} rad a step). `rj.Relative` has it as one "
            "angle"
        )
    return lines


class Rotor(NamedTuple):
    """A rotating body that dictates the length of steps.

    `body` and `joint`, their names; `rate`, rad/s; `angle`, mean rotation in a step, rad.
    """

    body: str
    joint: str
    rate: float
    angle: float


# Mean rotation in a step, rad, and revolutions from which a rotation dictates the steps.
_LARGE_ANGLE, _MANY_REVOLUTIONS = 0.5, 10


def fastest_rotor(solution: "Solution") -> Rotor | None:
    """Return the body on a joint whose revolutions the steps of a run resolve one by one.

    Formulations with the orientation of each body as unknowns follow every revolution of a wheel or
    propeller; in `Relative` its rotation is one angle, which steps need not resolve.
    **Returns:** `None` for `Relative`, for batches, and where no joint turns that fast.
    """
    model = solution.model
    system: System = model.multibody
    steps: Any = solution.stats.get("num_steps")
    if isinstance(model, Relative) or not system.angle_joints or np.ndim(steps) or not steps:
        return None
    if (
        solution.ts is None
        or solution.ys is None
        or solution.t0 is None
        or solution.result != RESULTS.successful
    ):
        return None
    values, _ = split_chart(solution.ys)
    ts = np.asarray(solution.ts)
    if values.shape[-1:] != (model.num_unknowns,) or len(ts) == 0:
        return None
    rates = solution.rates
    largest = {
        j: float(np.abs(rates[system.joints[j].name][:, system.joints[j].num_translations]).max())
        for j in system.angle_joints
    }
    j = max(largest, key=lambda j: largest[j])
    duration = abs(float(ts[-1]) - float(solution.t0))
    angle = largest[j] * duration / float(steps)
    if angle < _LARGE_ANGLE or largest[j] * duration < 2 * np.pi * _MANY_REVOLUTIONS:
        return None
    joint = system.joints[j]
    return Rotor(joint.child, joint.name, largest[j], angle)


def _format_outcomes(result: Any) -> str:
    """Return the names of the outcomes, for a batch with their counts."""
    (values,) = jax.tree.leaves(result)
    numbers, counts = np.unique(np.asarray(values), return_counts=True)
    names = {int(item._value): name for name, item in RESULTS._name_to_item.items()}  # pyright: ignore[reportAttributeAccessIssue]
    if np.ndim(values) == 0:
        return names[int(numbers[0])]
    pairs = zip(numbers, counts, strict=True)
    return ", ".join(f"{count} {names[int(number)]}" for number, count in pairs)


def _format_times(ts: Any) -> str:
    if ts is None:
        return "none saved"
    ts = np.asarray(ts)
    reached = ts[np.isfinite(ts)]
    batch = f"batch {ts.shape[:-1]}, " if ts.ndim > 1 else ""
    if not reached.size:
        return f"{batch}{ts.shape[-1]}, none reached"
    missed = int(ts.size - reached.size)
    rest = f", {missed} not reached" if missed else ""
    return f"{batch}{ts.shape[-1]} from {reached.min():.6g} to {reached.max():.6g} s{rest}"


def _format_range(values: Any) -> str:
    """Return a value, or the range of several values, as text."""
    values = np.asarray(values)
    if values.ndim == 0:
        return f"{values:.6g}"
    known = values[np.isfinite(values)]
    return f"{known.min():.6g} to {known.max():.6g}" if known.size else "none"
