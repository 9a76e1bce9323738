r"""Impacts by Newton's law of restitution, with friction by Coulomb's law and Stronge's.

An impact changes velocities alone: $\dot g^+ = -e\,\dot g^-$ for a distance $g$ with the gradient
$J$ of its rate $\dot g = J \nu + \partial g/\partial t$, by an impulse $p$ along $J$:
$\Delta\nu = M^{-1} J^T p$ on the motions that the joints and closed contacts leave free.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput, is_traced, scalar_leaf
from ..formulations import AbstractFormulation, NullSpace
from ..formulations.charts import Unknowns
from ..formulations.holding import motion_responses, rate_and_gradient, solve_held, with_closed
from ..formulations.null_space import AbstractNullSpace
from ..formulations.view import SystemView
from ..joints.axes import frame_of_axis, unit_vector
from ..joints.replacing import replace_fields
from ..rotations.quaternion import Quaternion
from ..rotations.so3 import conjugate, rotate
from ..small_arrays import cross
from .contacts import PlaneContact
from .impact_law import frictional_impulse
from .transition import AbstractChange, restart


class Restitution(AbstractChange):
    r"""An impact on a distance, the `when` of its `Transition`: $\dot g^+ = -e\,\dot g^-$.

    The distance may be any function of time and positions, such as `rj.PlaneContact`,
    `rj.JointStop`, or the distance of two bodies less the sum of their radii. Other constraints and
    joints respond with impulses of their own; positions do not change, and the energy does not
    grow unless the surface moves.

    Where the bodies no longer separate, a `rj.PlaneContact` or `rj.JointStop` without friction
    closes and stays closed until it would have to pull: a ball comes to rest, a pendulum lies on
    its stop. This needs `rj.NullSpace` or `rj.Relative`.

    With `friction`, which needs a `rj.PlaneContact`, the contact point slides against Coulomb's
    friction, sticks, or turns within the impact, and $e^2$ is the part of the work of compression
    that the normal impulse returns, by Stronge's law. It is Newton's law where the slip does not
    change its direction.

    **Arguments:** `coefficient`, $e$, from 0 (plastic) to 1 (elastic); `friction`, Coulomb's
    coefficient.
    **Raises:** `ValueError` for other values; in a run, for `friction` at another distance.
    **Source:** Pfeiffer and Glocker, Multibody Dynamics with Unilateral Contacts, 8; with friction
    Stronge, Impact Mechanics, chapters 3 and 4 (see `impact_law.frictional_impulse`).
    """

    may_repeat: ClassVar[bool] = True

    coefficient: Scalar
    friction: Scalar | None

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

        def rate(y):
            along = (jnp.ones_like(t), model.rates_at_constant_velocities(t, y))
            return jax.jvp(lambda t, y: when(t, SystemView(model, t, y)), (t, y), along)[1]

        before, J = rate_and_gradient(model, rate, y)
        model = _without_pulled_contacts(model, t, y, J)
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
        velocity = jnp.concatenate([rate[None], slip])
        impulse = frictional_impulse(
            directions @ responses.T, velocity, e, friction.astype(J.dtype)
        )
        return responses.T @ impulse


def _without_pulled_contacts(
    model: AbstractNullSpace, t: Scalar, y: Unknowns, J: Float[Array, " f"]
) -> AbstractNullSpace:
    """Return the model without the closed contacts that would pull during an impulse along `J`."""
    # The contact of the impact itself is open.
    for _ in model.multibody.contacts[1:]:
        modes: Any = model.modes(y)
        _, responses, A = motion_responses(model, t, y, modes)
        impulses = -solve_held(A, modes._replace(held=modes.are_locked), responses @ J)
        pulls = impulses[len(modes.coordinates) :] < 0
        closed = jnp.stack([contact.is_closed for contact in modes.contacts])
        model = with_closed(model, closed & ~pulls)
    return model
