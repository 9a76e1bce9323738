"""What a simulation returns."""

import functools
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..checks import is_traced
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns, split_chart
from ..mechanics.gaps import closed_gap
from ..native import call_by_kernel
from ..results import RESULTS
from ..state import State
from .summary import summary_lines


class Solution(eqx.Module):
    """A trajectory, its quantities and its work counters; a pytree.

    Energies, drifts and states are computed when asked for. Under `jax.vmap` every array has the
    batch in front.

    **Attributes:**

    - `model`: the formulation that was integrated.
    - `ts`: times, shape (T,), s; what an event or a failure cut off is `inf`.
    - `ys`: unknowns, shape (T, num_unknowns), or `Charted` where charts may move.
    - `stats`: `num_steps`, `num_accepted_steps`, `num_rejected_steps`, and `num_rhs`, the
      evaluations of the vector field, Jacobian columns apart, as is the one that a
      first-same-as-last method makes after a change of chart. For implicit solvers `num_rhs` is
      counted on the host and missing under a JAX transformation. `derivative_error`, an estimate
      of the relative error of first derivatives, NaN without any; see `rj.AnyMode`.
    - `result`: an `rj.RESULTS`; see `warnings` too.
    - `event_mask`: which event ended the run, as in diffrax.
    - `event_time`, `event_y`: time, s, and unknowns of the event that ended the run, whatever else
      was saved; NaN if none did, `None` of a run without `event=`. See `event_state`.
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

    def __repr__(self) -> str:
        """A summary of at most eight lines."""
        return "\n".join(summary_lines(self))

    @property
    def event_state(self) -> State | None:
        """State at the event that ended the run; NaN if none did, `None` without `event=`."""
        if self.event_time is None:
            return None
        ts = self.event_time[..., None]
        ys = jax.tree.map(lambda y: jnp.expand_dims(y, ts.ndim - 1), self.event_y)
        traced = is_traced((self.model, ts, ys))
        states = _evaluate(_decode, self.model, ts, ys, as_kernel=not traced)
        missing = jnp.isnan(ts)

        def at_event(leaf):
            known = ~missing.reshape(missing.shape + (1,) * (leaf.ndim - missing.ndim))
            return jnp.where(known, leaf, jnp.nan).take(0, axis=ts.ndim - 1)

        return jax.tree.map(at_event, states)

    @property
    def states(self) -> State:
        """Physical states, each leaf with a leading axis of T."""
        return self._along(_decode)

    @property
    def energy(self) -> Float[Array, " T"]:
        """Total energy, shape (T,), J."""
        return self._along(_energy)

    @property
    def linear_momentum(self) -> Float[Array, "T 3"]:
        """Linear momentum, shape (T, 3), space components, kg m/s."""
        return self._along(_momentum)[0]

    @property
    def angular_momentum(self) -> Float[Array, "T 3"]:
        """Angular momentum about the origin, shape (T, 3), space components, kg m^2/s."""
        return self._along(_momentum)[1]

    @property
    def position_drift(self) -> Float[Array, " T"]:
        """Largest violation of the constraints, shape (T,)."""
        return self._along(_drift)[0]

    @property
    def velocity_drift(self) -> Float[Array, " T"]:
        """Largest violation of the differentiated constraints, shape (T,), 1/s."""
        return self._along(_drift)[1]

    @property
    def multipliers(self) -> Float[Array, "T m"]:
        """Lagrange multipliers of the internal constraints, shape (T, m), J."""
        return self._along(_multipliers)

    @property
    def coordinates(self) -> dict[str, Float[Array, "T k"]]:
        r"""Coordinates of every joint by its name, shape (T, k), lengths (m) before angles (rad).

        Angles have all their turns in `Relative`, where the motion is prescribed, and where the
        model follows them (for a force, a coupling, `System.tracking`); others are in
        $(-\pi, \pi]$. See the joints for their signs.
        **Raises:** `ValueError` for a model without joints.
        """
        return self._along(_coordinates)[0]

    @property
    def rates(self) -> dict[str, Float[Array, "T f"]]:
        """Rates of every joint by its name, shape (T, f), m/s and rad/s; as `coordinates`."""
        return self._along(_coordinates)[1]

    @property
    def frames(self) -> dict[str, tuple[Float[Array, "T 3"], Float[Array, "T 3 3"]]]:
        """Position of the origin, (T, 3) m, space components, and rotation matrix, (T, 3, 3), frame
        to space, of every `Frame` of the system by its name."""
        return self._along(_frames)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a successful run may not be trusted for; empty if there is nothing.

        The joint that is farthest open at a saved time, if that is more than a state may have
        that another run starts from: after `projection=False`, or with steps too long.
        """
        gaps = np.asarray(self._along(_gaps))
        times = np.broadcast_to(np.asarray(self.ts)[..., None], gaps.shape)
        known = np.where(np.isfinite(times) & np.isfinite(gaps), gaps, 0.0)
        if not np.max(known, initial=0.0) > closed_gap(gaps.dtype):
            return ()
        where = np.unravel_index(np.argmax(known), known.shape)
        joint = self.model.multibody.closing_names[where[-1]]
        run = f" of run {', '.join(map(str, where[:-2]))}" if gaps.ndim > 2 else ""
        return (
            f"The joint {joint!r} is open by {known[where]:.3g} (of the size of the mechanism, or "
            f"rad) at t = {times[where]:.6g} s{run}.",
        )

    def evaluate(self, t: Float[Array, ""]) -> State:
        """State at any time, from dense output (`saveat=diffrax.SaveAt(dense=True)`).

        **Raises:** `ValueError` without dense output.
        """
        if self.interpolation is None:
            raise ValueError(
                "`Solution.evaluate` needs dense output: pass `saveat=diffrax.SaveAt(dense=True)`."
            )
        return _decode(self.model, t, self.interpolation.evaluate(t))

    def to_xarray(self) -> Any:
        """The trajectory as an `xarray.Dataset` with units and coordinates; see `rj.io`."""
        from ..io.dataset import to_dataset

        return to_dataset(self)

    def _along(self, function):
        """`function(model, t, y)` at every time, of every trajectory of a batch."""
        if self.ts is None or self.ys is None:
            raise ValueError(
                "No times were saved: pass `ts=` or a `diffrax.SaveAt` with times as well."
            )
        values, _ = split_chart(self.ys)
        if values.shape[-1:] != (self.model.num_unknowns,):
            raise ValueError(
                "`SaveAt(fn=...)` saved something else than the unknowns; use `Solution.ys`."
            )
        traced = is_traced((self.model, self.ts, self.ys))
        return _evaluate(function, self.model, self.ts, self.ys, as_kernel=not traced)


@eqx.filter_jit
def _evaluate(function, model, ts, ys, as_kernel):
    one = functools.partial(call_by_kernel, function) if as_kernel else function

    def along(model, ts, ys):
        return jax.vmap(one, in_axes=(None, 0, 0))(model, ts, ys)

    for _ in range(ts.ndim - 1):
        along = eqx.filter_vmap(along)
    return along(model, ts, ys)


def _decode(model, t, y):
    return model.decode(t, y)


def _frames(model, t, y):
    return model.frame_poses(t, y)


def _energy(model, t, y):
    return model.energy(t, y)


def _momentum(model, t, y):
    return model.momentum(t, y)


def _drift(model, t, y):
    return model.drift(t, y)


def _coordinates(model, t, y):
    return model.joint_coordinates(t, y)


def _gaps(model, t, y):
    return model.gaps(t, y)


def _multipliers(model, t, y):
    return model.multipliers(t, y)
