r"""Bodies on the group: $M \dot w = f - G^T \lambda$, $g(q, t) = 0$, in poses and twists alone."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies.inertia import inertia_tensor
from ...mechanics.constraints import flat, smallest_change
from ...mechanics.dynamics import constrained_accelerations
from ...mechanics.mechanics import SystemMechanics
from ...mechanics.reactions import idle_multipliers
from ...mechanics.twists import Twists
from ...rotations.euler_map import euler_map
from ..conserving.scales import increment_scales


class Pose(NamedTuple):
    """Configuration of all bodies.

    **Attributes:** `x`, positions, (L, 3) m; `p`, unit quaternions, (L, 4); `angles`,
    of the joints whose turns matter, rad: their whole turns are those of the coordinates.
    """

    x: Float[Array, "L 3"]
    p: Float[Array, "L 4"]
    angles: Float[Array, " A"]


class Dynamics(eqx.Module):
    r"""Forces, masses and constraints of all bodies, in twists $w$, (L, k): velocity of the centre
    of mass, space components, before $\Omega$, body components; $\Omega$ alone for one body with a
    fixed point."""

    mechanics: SystemMechanics

    def twists(self, w: Float[Array, "L k"]) -> Twists:
        """Velocities, zero of a fixed point, and angular velocities."""
        linear = w[:, :-3] if self.mechanics.system.translates else jnp.zeros_like(w)
        return Twists(linear, w[:, -3:])

    def _own(self, values: Float[Array, "L 6"]) -> Float[Array, "L k"]:
        return values[:, -self.mechanics.system.rates_of_free :]

    def _placed(self, pose: Pose):
        poses = self.mechanics.poses(pose.x, jax.vmap(euler_map)(pose.p), pose.angles)
        return poses, self.mechanics.place(poses)

    def least_norm(self, t, pose: Pose, lam: Float[Array, " m"]) -> Float[Array, " m"]:
        r"""The multipliers of least norm with the same $G^T \lambda$."""
        if not self.mechanics.system.closes:
            return lam
        poses, places = self._placed(pose)
        return lam - idle_multipliers(self.mechanics, t, poses, places, self.mechanics.units) @ lam

    def redundancy(self, t, pose: Pose) -> Float[Array, "m m"] | None:
        r"""The projection onto those multipliers that do nothing, or `None`."""
        if not self.mechanics.system.closes:
            return None
        weights = jnp.ones(self.mechanics.num_joint_constraints, pose.x.dtype)
        return idle_multipliers(self.mechanics, t, *self._placed(pose), weights)

    def sizes(self, x: Float[Array, "L 3"]) -> Float[Array, "L k"]:
        """What increments of bodies at positions `x` are measured by: the size of the system and
        the distance from the origin, m, and a radian."""
        return self._own(increment_scales(self.mechanics, x))

    @property
    def units(self) -> Float[Array, " m"]:
        """What constraints are measured by: the size of the system, m, or a radian."""
        return self.mechanics.units

    def momenta(self, w: Float[Array, "L k"]) -> Float[Array, "L k"]:
        r"""$M w$."""
        twists = self.twists(w)
        return self._own(self.mechanics.momenta(twists.linear, twists.angular))

    def evaluate(self, t, pose: Pose, w) -> tuple[Array, Array, Array]:
        r"""Applied and gyroscopic forces $f$, (L, k), constraints $g(q, t)$, (m,), and $G$,
        (m, L k)."""
        mechanics, (poses, places) = self.mechanics, self._placed(pose)
        forces = mechanics.free_forces(t, mechanics.kinematics(poses, places, self.twists(w)))
        return self._own(forces), mechanics.constraint(t, places), self._gradient(t, places)

    def _gradient(self, t, places):
        rows = self.mechanics.constraint_jacobian(t, places)
        return flat(rows[:, :, -self.mechanics.system.rates_of_free :])

    def accelerations(self, t, pose: Pose, w) -> Float[Array, "L k"]:
        r"""$\dot w$ of a consistent state."""
        at = self._placed(pose)
        return self._own(constrained_accelerations(self.mechanics, t, *at, self.twists(w)))

    def constraint_rate(self, t, pose: Pose, w) -> Float[Array, " m"]:
        r"""$G w + \partial g/\partial t$."""
        return self.mechanics.constraint_rate(t, self._placed(pose)[1], self.twists(w))

    def constraint_jacobian(self, t, pose: Pose) -> Float[Array, "m Lk"]:
        r"""$G$, on the twists of all bodies."""
        return self._gradient(t, self._placed(pose)[1])

    def normal(self, t, pose: Pose, rate: Float[Array, " m"]) -> Float[Array, "L k"]:
        r"""The smallest $w$ in kinetic energy with $G w =$ `rate`."""
        mechanics = self.mechanics
        inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
        return self._own(smallest_change(mechanics, t, *self._placed(pose), -rate, inertias))

    def angle_rates(self, t, pose: Pose, w) -> Float[Array, " A"]:
        """Rates of the angles of `Pose`."""
        _, places = self._placed(pose)
        return self.mechanics.angle_rates(places, self.twists(w), self.mechanics.tracked)

    def angles(self, pose: Pose) -> Float[Array, " A"]:
        """Angles of the joints in a pose, with the turns of `Pose.angles`."""
        return self.mechanics.angles(self._placed(pose)[0], self.mechanics.tracked)

    def virials(self, t, pose: Pose, w, lam) -> Float[Array, " L"]:
        r"""$p \cdot$ force on the quaternion of each body but for its inertia, J: what stretches
        it."""
        mechanics = self.mechanics
        poses, places = self._placed(pose)
        applied = mechanics.virials(t, mechanics.kinematics(poses, places, self.twists(w)))

        def work(R):
            moved = eqx.tree_at(lambda poses: poses.rotations, poses, R)
            return lam @ mechanics.constraint(t, mechanics.place(moved))

        # R of the quaternion (1 + e) p is (1 + 2 e) R.
        R = poses.rotations
        stretch = 2.0 * jnp.sum(jax.grad(work)(R) * R, axis=(1, 2))
        return 2.0 * jnp.trace(applied, axis1=1, axis2=2) - stretch[:-1]
