"""Summary of a run in a few lines of text."""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ..checks import is_traced
from ..formulations import NullSpace
from ..formulations.charts import split_chart
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


class ResolvedRotation(NamedTuple):
    """A rotating body that dictates the length of steps.

    `body` and `joint`, their names; `rate`, rad/s; `angle`, mean rotation in a step, rad.
    """

    body: str
    joint: str
    rate: float
    angle: float


# Mean rotation in a step, rad, and revolutions from which a rotation dictates the steps.
_LARGE_ANGLE, _MANY_REVOLUTIONS = 0.5, 10


def fastest_rotor(solution: "Solution") -> ResolvedRotation | None:
    """Return the body on a joint whose revolutions the steps of a run resolve one by one.

    `NullSpace` follows the orientation of every body, also that of a wheel or propeller; in
    `Relative` its rotation is one angle, which steps need not resolve.

    **Returns:** `None` for other formulations, for batches, and where no joint turns that fast.
    """
    model, ys, t0 = solution.model, solution.ys, solution.t0
    steps: Any = solution.stats.get("num_steps")
    if not isinstance(model, NullSpace) or ys is None or t0 is None or np.ndim(steps) or not steps:
        return None
    values, ts = np.asarray(split_chart(ys)[0]), np.asarray(solution.ts)
    if values.shape[-1:] != (model.num_unknowns,) or not np.isfinite(ts[-1:]).all():
        return None
    system, first = model.multibody, model.layout.num_positions
    rotor, largest = None, 0.0
    for j, count in zip(system.topology.joints, system.rates_of_bodies, strict=True):
        joint = None if j is None else system.joints[j]
        if joint is not None and joint.has_angle and count:
            rate = float(np.abs(values[:, first + joint.num_translations]).max(initial=0.0))
            rotor, largest = (joint, rate) if rate > largest else (rotor, largest)
        first += count
    rotation = largest * abs(float(ts[-1]) - float(t0)) if len(ts) else 0.0
    angle = rotation / float(steps)
    if rotor is None or angle < _LARGE_ANGLE or rotation < 2 * np.pi * _MANY_REVOLUTIONS:
        return None
    return ResolvedRotation(rotor.child, rotor.name, largest, angle)


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
