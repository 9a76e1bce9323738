r"""Impacts by Newton's law of restitution, with friction by Coulomb's law.

An impact changes velocities alone: $\dot g^+ = -e\,\dot g^-$ for a distance $g$ with the gradient
$J$ of its rate $\dot g = J \nu + \partial g/\partial t$, by an impulse $p$ along $J$:
$\Delta\nu = M^{-1} J^T p$ on the motions that the joints leave free.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput, is_traced, scalar_leaf
from ..formulations import AbstractFormulation, NullSpace
from ..formulations.charts import Unknowns
from ..formulations.null_space import AbstractNullSpace
from ..formulations.view import SystemView
from ..joints.axes import frame_of_axis, unit_vector
from ..joints.replacing import replace_fields
from ..native.ops import cross
from ..rotations.quaternion import Quaternion
from ..rotations.so3 import conjugate, rotate
from .contacts import PlaneContact
from .transition import AbstractChange, restart


class Restitution(AbstractChange):
    r"""An impact on a distance, the `when` of its `Transition`: $\dot g^+ = -e\,\dot g^-$.

    The distance may be any function of time and positions, such as `rj.PlaneContact`,
    `rj.JointStop`, or the distance of two bodies less the sum of their radii. Other constraints and
    joints respond with impulses of their own; positions do not change, and the energy does not
    grow unless the surface moves.

    With `friction`, which needs a `rj.PlaneContact`, the contact point sticks at the end of the
    impact if the impulse lies in the friction cone. Otherwise it slides, with the friction impulse
    against the sliding velocity before the impact.

    **Arguments:** `coefficient`, $e$, from 0 (plastic) to 1 (elastic); `friction`, Coulomb's
    coefficient.
    **Raises:** `ValueError` for other values; in a run, for `friction` at another distance.
    **Source:** Pfeiffer and Glocker, Multibody Dynamics with Unilateral Contacts, 8.
    """

    coefficient: Float[Array, ""]
    friction: Float[Array, ""] | None

    def __init__(self, coefficient: ArrayInput, friction: ArrayInput | None = None):
        self.coefficient = scalar_leaf(coefficient, "Restitution(coefficient=...)")
        if not is_traced(self.coefficient) and not 0 <= self.coefficient <= 1:
            raise ValueError(
                "`Restitution(coefficient=...)` must be between 0 and 1; got "
                f"{float(self.coefficient):g}."
            )
        self.friction = None
        if friction is not None:
            self.friction = scalar_leaf(friction, "Restitution(friction=...)")
            if not is_traced(self.friction) and self.friction < 0:
                raise ValueError(
                    f"`Restitution(friction=...)` must be >= 0; got {float(self.friction):g}."
                )

    def apply(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns, when: Callable[..., Scalar]
    ) -> Unknowns:
        """Return the unknowns after the impact; see `AbstractChange.apply`."""
        if isinstance(model, AbstractNullSpace):
            return self._apply(model, t, y, when)
        minimal = replace_fields(NullSpace(model.system, Quaternion()), arrays=model.arrays)
        before = model.decode(t, y)
        after = self._apply(minimal, t, minimal.start(before, t), when)
        state = minimal.decode(t, after)
        return restart(model, t, state, y)

    def _apply(
        self, model: AbstractNullSpace, t: Scalar, y: Unknowns, when: Callable[..., Scalar]
    ) -> Unknowns:
        nu = model.rates_of(y)

        def rate(nu):
            moving = model.with_rates(y, nu)
            along = (jnp.ones_like(t), model.rates_at_constant_velocities(t, moving))
            return jax.jvp(lambda t, y: when(t, SystemView(model, t, y)), (t, moving), along)[1]

        before, J = jax.value_and_grad(rate)(nu)
        response = model.impulse_response(t, y, J)
        if self.friction is None:
            e = self.coefficient.astype(nu.dtype)
            impulse = -(1.0 + e) * before / (J @ response)
            return model.with_rates(y, nu + response * impulse)
        if not isinstance(when, PlaneContact):
            raise ValueError(
                "`Restitution(friction=...)` acts at the point of a `rj.PlaneContact`, which must "
                f"be the `when` of its transition; got {type(when).__name__}."
            )
        change = self._frictional_change(model, t, y, when, self.friction, before, J)
        return model.with_rates(y, nu + change)

    def _frictional_change(
        self,
        model: AbstractNullSpace,
        t: Scalar,
        y: Unknowns,
        contact: PlaneContact,
        friction: Scalar,
        rate: Scalar,
        J: Float[Array, " f"],
    ) -> Float[Array, " f"]:
        """Return the change of the generalised velocities by an impact with friction."""
        state = model.decode(t, y)
        row = 0 if contact.body is None else model.multibody.locate(contact.body)[0]
        tangents = frame_of_axis(unit_vector(contact.normal.astype(J.dtype)))[:, :2].T
        arm = contact.contact_point(SystemView(model, t, y)) - state.position[row]
        arm = rotate(conjugate(state.orientation[row]), arm)
        nu, e = model.rates_of(y), self.coefficient.astype(J.dtype)

        def sliding(nu):
            moving = model.decode(t, model.with_rates(y, nu))
            turning = rotate(moving.orientation[row], cross(moving.angular_velocity[row], arm))
            return tangents @ (moving.velocity[row] + turning)

        slip = sliding(nu)
        directions = jnp.concatenate([J[None], jax.jacfwd(sliding)(nu)])
        responses = jax.vmap(lambda row: model.impulse_response(t, y, row))(directions)
        W = directions @ responses.T
        sticking = jnp.linalg.solve(W, -jnp.concatenate([(1.0 + e) * rate[None], slip]))
        mu = friction.astype(J.dtype)
        speed = jnp.sqrt(jnp.maximum(slip @ slip, jnp.finfo(J.dtype).tiny))
        against = -mu * slip / speed
        normal = -(1.0 + e) * rate / (W[0, 0] + W[0, 1:] @ against)
        sliding_impulse = normal * jnp.concatenate([jnp.ones(1, J.dtype), against])
        along = sticking[1:] @ sticking[1:]
        sticks = along <= (mu * sticking[0]) ** 2
        return responses.T @ jnp.where(sticks, sticking, sliding_impulse)
