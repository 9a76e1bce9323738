r"""Bodies on the group: $M \dot w = f - G^T \lambda$, $g(q, t) = 0$, in poses and twists alone."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ....bodies.euler_equations import angular_momentum, euler_equations
from ....bodies.inertia import inertia_tensor
from ....forces.base import Kinematics
from ....formulations import AbstractFormulation
from ....rotations.euler_map import euler_map
from ....system import FixedPointMechanics, System
from ....system.constraints import flat, smallest_change
from ....system.dynamics import constrained_accelerations
from ....system.mechanics import SystemMechanics, Twists
from ....system.reactions import idle_multipliers
from ..sizes import extents


class Pose(NamedTuple):
    """Configuration of all bodies.

    **Attributes:** `x`, positions, (L, 3) m, or (L, 0); `p`, unit quaternions, (L, 4); `angles`,
    of the joints whose turns matter, rad: their whole turns are those of the coordinates.
    """

    x: Any
    p: Any
    angles: Any


class AbstractDynamics(eqx.Module):
    r"""Forces, masses and constraints of all bodies, in twists $w$, (L, k): velocity of the centre
    of mass, space components, before $\Omega$, body components; $\Omega$ alone for one body with a
    fixed point."""

    @abc.abstractmethod
    def momenta(self, w: Float[Array, "L k"]) -> Float[Array, "L k"]:
        r"""$M w$."""

    @abc.abstractmethod
    def evaluate(self, t, pose: Pose, w) -> tuple[Array, Array, Array]:
        r"""Applied and gyroscopic forces $f$, (L, k), constraints $g(q, t)$, (m,), and $G$,
        (m, L k)."""

    @abc.abstractmethod
    def accelerations(self, t, pose: Pose, w) -> Float[Array, "L k"]:
        r"""$\dot w$ of a consistent state."""

    @abc.abstractmethod
    def constraint_rate(self, t, pose: Pose, w) -> Float[Array, " m"]:
        r"""$G w + \partial g/\partial t$."""

    @abc.abstractmethod
    def constraint_jacobian(self, t, pose: Pose) -> Float[Array, "m Lk"]:
        r"""$G$, on the twists of all bodies."""

    @abc.abstractmethod
    def normal(self, t, pose: Pose, rate: Float[Array, " m"]) -> Float[Array, "L k"]:
        r"""The smallest $w$ in kinetic energy with $G w =$ `rate`."""

    @abc.abstractmethod
    def angle_rates(self, t, pose: Pose, w) -> Float[Array, " A"]:
        """Rates of the angles of `Pose`."""

    @abc.abstractmethod
    def angles(self, pose: Pose) -> Float[Array, " A"]:
        """Angles of the joints in a pose, with the turns of `Pose.angles`."""

    @abc.abstractmethod
    def virials(self, t, pose: Pose, w, lam) -> Float[Array, " L"]:
        r"""$p \cdot$ force on the quaternion of each body but for its inertia, J: what stretches
        it."""

    @abc.abstractmethod
    def sizes(self, x: Float[Array, "L 3"]) -> Float[Array, "L k"]:
        """What increments of bodies at positions `x` are measured by: the size of the system and
        the distance from the origin, m, and a radian."""

    @property
    @abc.abstractmethod
    def units(self) -> Float[Array, " m"]:
        """What constraints are measured by: the size of the system, m, or a radian."""

    def least_norm(self, t, pose: Pose, lam: Float[Array, " m"]) -> Float[Array, " m"]:
        r"""The multipliers of least norm with the same $G^T \lambda$."""
        return lam

    def redundancy(self, t, pose: Pose) -> Float[Array, "m m"] | None:
        r"""The projection onto those multipliers that do nothing, or `None`."""
        return None


class SystemDynamics(AbstractDynamics):
    """A system of bodies, with or without joints."""

    mechanics: SystemMechanics

    def least_norm(self, t, pose, lam):
        if not self.mechanics.system.closes:
            return lam
        poses, places = self._placed(pose)
        return lam - idle_multipliers(self.mechanics, t, poses, places, self.mechanics.units) @ lam

    def redundancy(self, t, pose):
        if not self.mechanics.system.closes:
            return None
        weights = jnp.ones(self.mechanics.num_joint_constraints, pose.x.dtype)
        return idle_multipliers(self.mechanics, t, *self._placed(pose), weights)

    def sizes(self, x):
        return extents(self.mechanics, x)

    @property
    def units(self):
        return self.mechanics.units

    def _placed(self, pose):
        poses = self.mechanics.poses(pose.x, jax.vmap(euler_map)(pose.p), pose.angles)
        return poses, self.mechanics.place(poses)

    def momenta(self, w):
        return self.mechanics.momenta(w[:, :3], w[:, 3:])

    def evaluate(self, t, pose, w):
        poses, places = self._placed(pose)
        mechanics = self.mechanics
        forces = mechanics.free_forces(t, mechanics.kinematics(poses, places, _twists(w)))
        G = flat(mechanics.constraint_jacobian(t, places))
        return forces, mechanics.constraint(t, places), G

    def accelerations(self, t, pose, w):
        return constrained_accelerations(self.mechanics, t, *self._placed(pose), _twists(w))

    def constraint_rate(self, t, pose, w):
        return self.mechanics.constraint_rate(t, self._placed(pose)[1], _twists(w))

    def constraint_jacobian(self, t, pose):
        return flat(self.mechanics.constraint_jacobian(t, self._placed(pose)[1]))

    def normal(self, t, pose, rate):
        inertias = jax.vmap(inertia_tensor)(self.mechanics.inertias)
        return smallest_change(self.mechanics, t, *self._placed(pose), -rate, inertias)

    def angle_rates(self, t, pose, w):
        mechanics, places = self.mechanics, self._placed(pose)[1]
        if not mechanics.tracked:
            return jnp.zeros(0, w.dtype)
        placed = mechanics.by_joint(places)
        relative = mechanics.by_joint(mechanics.joint_twists(places, _twists(w)))
        joints = mechanics.system.joints
        rates = [joints[j].rates(placed[j].relative, relative[j]) for j in mechanics.tracked]
        firsts = [joints[j].num_translations for j in mechanics.tracked]
        return jnp.stack([rate[k] for rate, k in zip(rates, firsts, strict=True)])

    def angles(self, pose):
        if not self.mechanics.tracked:
            return pose.angles
        return self.mechanics.angles(self._placed(pose)[0])

    def virials(self, t, pose, w, lam):
        mechanics = self.mechanics
        poses, places = self._placed(pose)
        applied = mechanics.virials(t, mechanics.kinematics(poses, places, _twists(w)))

        def work(R):
            moved = eqx.tree_at(lambda poses: poses.rotations, poses, R)
            return lam @ mechanics.constraint(t, mechanics.place(moved))

        # R of the quaternion (1 + e) p is (1 + 2 e) R.
        R = poses.rotations
        stretch = 2.0 * jnp.sum(jax.grad(work)(R) * R, axis=(1, 2))
        return 2.0 * jnp.trace(applied, axis1=1, axis2=2) - stretch[:-1]


class FixedPointDynamics(AbstractDynamics):
    """One body with a fixed point."""

    body: Any

    def sizes(self, x):
        return jnp.ones((1, 3), x.dtype)

    @property
    def units(self):
        return jnp.ones(0)

    def _kinematics(self, pose, w):
        return Kinematics((), (euler_map(pose.p[0]),), (), (w[0],))

    def _moment(self, t, pose, w):
        return FixedPointMechanics(self.body).moment(t, self._kinematics(pose, w))

    def momenta(self, w):
        return angular_momentum(self.body.inertia, w[0])[None]

    def evaluate(self, t, pose, w):
        forces = self.momenta(self.accelerations(t, pose, w))
        return forces, jnp.zeros(0, w.dtype), self.constraint_jacobian(t, pose)

    def accelerations(self, t, pose, w):
        return euler_equations(self.body.inertia, w[0], self._moment(t, pose, w))[None]

    def constraint_rate(self, t, pose, w):
        return jnp.zeros(0, w.dtype)

    def constraint_jacobian(self, t, pose):
        return jnp.zeros((0, 3), pose.p.dtype)

    def normal(self, t, pose, rate):
        return jnp.zeros_like(pose.p[:, 1:])

    def angle_rates(self, t, pose, w):
        return pose.angles

    def angles(self, pose):
        return pose.angles

    def virials(self, t, pose, w, lam):
        virials = FixedPointMechanics(self.body).virials(t, self._kinematics(pose, w))
        return 2.0 * jnp.trace(virials, axis1=1, axis2=2)


def dynamics_of(model: AbstractFormulation) -> AbstractDynamics:
    """The dynamics of the bodies of a formulation."""
    if isinstance(model.system, System):
        return SystemDynamics(SystemMechanics(model.system))
    return FixedPointDynamics(model.system)


def _twists(w):
    return Twists(w[:, :3], w[:, 3:])
