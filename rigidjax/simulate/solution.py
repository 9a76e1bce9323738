"""Result of a simulation."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from ..checks import is_traced, known
from ..control.transition import TransitionRecord
from ..formulations import AbstractFormulation, NullSpace
from ..formulations.binding import input_values, sample_controllers
from ..formulations.charts import Unknowns, split_chart
from ..formulations.holding import with_closed
from ..formulations.view import Readings
from ..mechanics.dynamics.reactions import ConstraintReaction, Reaction
from ..mechanics.kinematics.constraints import violation_tolerance
from ..native import call_by_kernel, gc_paused
from ..persistent_jit import persistent_jit
from ..results import RESULTS
from ..signals.controllers import sampled_sources
from ..solvers.wrappers.sampled import samples_at
from ..state import State


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
    """A rotating body that limits the length of steps.

    `body` and `joint`, their names; `rate`, rad/s; `angle`, mean rotation in a step, rad.
    """

    body: str
    joint: str
    rate: float
    angle: float


# Mean rotation per step, rad, and number of revolutions above which a body limits the steps.
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


class Solution(eqx.Module):
    """A trajectory, its derived quantities and its work counters; a pytree.

    Energies, drifts and states are computed on access. Under `jax.vmap` every array has leading
    batch axes.

    **Attributes:**

    - `model`: the formulation that was integrated.
    - `ts`: times, shape (T,), s; `inf` for times that a run ended by an event or a failure did
      not reach.
    - `ys`: unknowns, shape (T, num_unknowns), or `Charted` where charts may move.
    - `stats`: `num_steps`, `num_accepted_steps`, `num_rejected_steps`, and `num_rhs`, the number
      of evaluations of the vector field. Not counted are Jacobian columns, and the evaluation of
      a first-same-as-last method after a change of chart. For implicit solvers `num_rhs` is
      counted on the host and missing under a JAX transformation. `derivative_error` is an
      estimate of the relative error of first derivatives, NaN if unknown; see `rj.AnyMode`.
    - `result`: an `rj.RESULTS`; see also `warnings`.
    - `t0`: start of the run, s.
    - `bound_inputs`: `inputs` of the run; see `inputs`.
    - `event_mask`: the mask of the event that ended the run, as in diffrax.
    - `event_time`, `event_y`: time, s, and unknowns of the event that ended the run; NaN if no
      event did, `None` without `event=`. See `event_state`.
    - `transitions`: the transitions of a hybrid run, `None` without `transitions=`.
    - `closed`: whether each contact that can stay closed is so, shape (T, C); `None` without any.
      See `contact_forces`.
    - `interpolation`, `solver_state`, `controller_state`: dense output, and states of the solver
      and of the step-size controller at the end, if `saveat` asks for them.
    """

    model: AbstractFormulation
    ts: PyTree[Float[Array, " T"]]
    ys: PyTree[Float[Array, "T ..."]]
    stats: dict[str, PyTree]
    result: RESULTS
    event_mask: PyTree
    interpolation: diffrax.DenseInterpolation | None
    solver_state: PyTree
    controller_state: PyTree
    event_time: Float[Array, ""] | None = None
    event_y: Unknowns | None = None
    t0: Float[Array, ""] | None = None
    bound_inputs: dict[str, Any] | None = None
    transitions: TransitionRecord | None = None
    closed: Bool[Array, "T C"] | None = None

    def __repr__(self) -> str:
        """Return a summary of at most nine lines."""
        return "\n".join(summary_lines(self))

    @property
    def event_state(self) -> State | None:
        """State at the event that ended the run; NaN if no event did, `None` without `event=`."""
        if self.event_time is None:
            return None
        ts = self.event_time[..., None]
        ys = jax.tree.map(lambda y: jnp.expand_dims(y, ts.ndim - 1), self.event_y)
        traced = is_traced(known((self.model, ts, ys)))
        states = _evaluate("decode", self.model, ts, (ys, None, None), as_kernel=not traced)
        missing = jnp.isnan(ts)

        def at_event(leaf):
            known = ~missing.reshape(missing.shape + (1,) * (leaf.ndim - missing.ndim))
            return jnp.where(known, leaf, jnp.nan).take(0, axis=ts.ndim - 1)

        return jax.tree.map(at_event, states)

    @property
    def states(self) -> State:
        """Physical states, each leaf with a leading axis of T; `sol.states[-1]` is the last one."""
        return self._along("decode")

    @property
    def energy(self) -> Float[Array, " T"]:
        """Total energy, shape (T,), J."""
        return self._along("energy")

    @property
    def linear_momentum(self) -> Float[Array, "T 3"]:
        """Linear momentum, shape (T, 3), space components, kg m/s."""
        return self._along("momentum")[0]

    @property
    def angular_momentum(self) -> Float[Array, "T 3"]:
        """Angular momentum about the origin, shape (T, 3), space components, kg m^2/s."""
        return self._along("momentum")[1]

    @property
    def position_drift(self) -> Float[Array, " T"]:
        """Largest violation of the constraints, shape (T,)."""
        return self._along("drift")[0]

    @property
    def velocity_drift(self) -> Float[Array, " T"]:
        """Largest violation of the differentiated constraints, shape (T,), 1/s."""
        return self._along("drift")[1]

    @property
    def multipliers(self) -> Float[Array, "T m"]:
        """Lagrange multipliers of the internal constraints, shape (T, m), J."""
        return self._along("multipliers")

    @property
    def contact_forces(self) -> dict[str, Float[Array, " T"]]:
        """Normal force, N, or moment, N m, of every contact of `transitions=` that can stay closed.

        By the name of the transition, or its number; shape (T,), zero while the contact is open.
        Impacts are not part of it.
        """
        if self.closed is None:
            return {}
        contacts = self.model.multibody.contacts

        def efforts(model, t, y):
            values = model.holding(t, y).efforts[-len(contacts) :]
            return {contact.name: values[c] for c, contact in enumerate(contacts)}

        return self._along(efforts)

    @property
    def reactions(self) -> dict[str, Reaction | ConstraintReaction]:
        """Reactions of joints and constraints by name, along the run; see `model.reactions`."""
        return self._along("reactions")

    @property
    def sensors(self) -> Readings:
        """Readings, shape (T, ...), by sensor, such as `sol.sensors[rj.Gyroscope("body")]`."""

        def read(sensor):
            sensor.check(self.model)
            return self._along(jax.tree_util.Partial(type(sensor).predict, sensor))

        return Readings(read)

    @property
    def coordinates(self) -> dict[str, Float[Array, "T k"]]:
        r"""Coordinates of every joint by its name, shape (T, k), lengths (m) before angles (rad).

        Angles include full revolutions in `Relative`, for a prescribed motion, and where the model
        unwraps them (for a force, a coupling or `System.tracking`); other angles are in
        $(-\pi, \pi]$. See the joints for their signs.
        **Raises:** `ValueError` for a model without joints.
        """
        return self._along("joint_coordinates")[0]

    @property
    def rates(self) -> dict[str, Float[Array, "T f"]]:
        """Rates of every joint by its name, shape (T, f), m/s and rad/s; see `coordinates`."""
        return self._along("joint_coordinates")[1]

    @property
    def inputs(self) -> dict[str, Float[Array, "T *size"]]:
        """Values of the inputs of the run by name, shape (T,) or (T, size).

        At a sample of an `rj.SampledController` the value is the new one, which is used from then
        on. Empty for a run without `inputs=`.
        """
        bound = self.bound_inputs
        if not bound:
            return {}

        def evaluate(model, t, sample):
            y, t0 = sample
            if sampled_sources(model.multibody.sources):
                y = sample_controllers(model, t, y, samples_at(model, t0, t))
            return input_values(model, bound, t, y)

        starts = jnp.broadcast_to(jnp.asarray(self.t0)[..., None], jnp.shape(self.ts))
        return self._along(evaluate, starts)

    @property
    def frames(self) -> dict[str, tuple[Float[Array, "T 3"], Float[Array, "T 3 3"]]]:
        """Poses of every `Frame` of the system by its name.

        A pose is the position of the origin, (T, 3) m, space components, and the rotation matrix
        from frame to space components, (T, 3, 3).
        """
        return self._along("frame_poses")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust a successful run; empty if there are none.

        Names the joint with the largest constraint violation at a saved time, if `simulate` would
        reject it in an initial state: after `projection=False`, or if steps are too long.
        """
        gaps = np.asarray(self._along("gaps"))
        times = np.broadcast_to(np.asarray(self.ts)[..., None], gaps.shape)
        known = np.where(np.isfinite(times) & np.isfinite(gaps), gaps, 0.0)
        if not np.max(known, initial=0.0) > violation_tolerance(gaps.dtype):
            return ()
        where = np.unravel_index(np.argmax(known), known.shape)
        joint = self.model.multibody.closing_names[where[-1]]
        run = f" of run {', '.join(map(str, where[:-2]))}" if gaps.ndim > 2 else ""
        return (
            f"The joint {joint!r} is open by {known[where]:.3g} (of the size of the mechanism, or "
            f"rad) at t = {times[where]:.6g} s{run}.",
        )

    def evaluate(self, t: Float[Array, ""]) -> State:
        """Return the state at any time, from dense output (`saveat=diffrax.SaveAt(dense=True)`).

        **Raises:** `ValueError` without dense output.
        """
        if self.interpolation is None:
            raise ValueError(
                "`Solution.evaluate` needs dense output: pass `saveat=diffrax.SaveAt(dense=True)`."
            )
        return self.model.decode(t, self.interpolation.evaluate(t))

    def to_xarray(self) -> Any:
        """Return the trajectory as an `xarray.Dataset` with units and coordinates; see `rj.io`."""
        from .dataset import to_dataset

        return to_dataset(self)

    @gc_paused()
    def _along(self, function: Callable[..., PyTree] | str, values: Array | None = None) -> Any:
        """Evaluate `function(model, t, y)`, or a method of the model by its name, at every time of
        every trajectory of a batch.

        With `values`, one for each time, the last argument is `(y, value)`.
        """
        if self.ts is None or self.ys is None:
            raise ValueError("No samples were saved: pass `ts=`, or a `diffrax.SaveAt` with times.")
        unknowns, _ = split_chart(self.ys)
        if unknowns.shape[-1:] != (self.model.num_unknowns,):
            raise ValueError(
                "`SaveAt(fn=...)` did not save the unknowns; use `Solution.ys` for its values."
            )
        traced = is_traced(known((self.model, self.ts, self.ys)))
        samples = self.ys, values, self.closed
        return _evaluate(function, self.model, self.ts, samples, as_kernel=not traced)


@persistent_jit
def _evaluate(
    function: Callable[..., PyTree] | str,
    model: AbstractFormulation,
    ts: Float[Array, "*batch T"],
    samples: PyTree[Array],
    as_kernel: bool,
) -> Any:
    """Evaluate a function or a method (see `_along`) at samples (y, value, closed)."""

    def at_sample(model, t, sample):
        y, value, closed = sample
        model = model if closed is None else with_closed(model, closed)
        call = (
            functools.partial(function, model) if callable(function) else getattr(model, function)
        )
        return call(t, y if value is None else (y, value))

    evaluate = functools.partial(call_by_kernel, at_sample) if as_kernel else at_sample

    def along(model, ts, samples):
        return jax.vmap(evaluate, in_axes=(None, 0, 0))(model, ts, samples)

    for _ in range(ts.ndim - 1):
        along = eqx.filter_vmap(along)
    return along(model, ts, samples)
