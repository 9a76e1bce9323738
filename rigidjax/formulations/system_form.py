r"""Formulations of a system, with joints or without: all bodies at once, positions redundant.

What the two formulations share is here: poses, projection of poses, drift. Methods are compiled
(one by one they would be hundreds of small programs). Null-space coordinates
carry the minimal velocities of the trees, absolute coordinates those of every body and rotation.
"""

import abc
import functools
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..checks import ArrayInput
from ..forces.base import Kinematics
from ..rotations.base import AbstractRotation
from ..rotations.euler_map import euler_map
from ..rotations.matrix import product
from ..rotations.so3 import conjugate, multiply
from ..state import State
from ..system import System, mechanics_of
from ..system.attachment import Placements, Poses
from ..system.constraints import pose_correction, project_twists
from ..system.dynamics import constrained_accelerations
from ..system.gaps import gaps
from ..system.mechanics import SystemMechanics, Twists
from ..system.reactions import ConstraintReaction, Reaction, multipliers, reactions
from .charts import Unknowns, constant_chart, join_chart, split_chart
from .compiled import compiled
from .constrained import constrained_acceleration
from .layout import Layout

if TYPE_CHECKING:
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar

# Newton steps of the projection after a time step: what a step leaves is small, so that the second
# one reaches round-off. With loops it is made where the first one did not, which is seldom; a step
# of a tree costs about as much as to look.
_NEWTON_STEPS = 2
# Gap of a joint that counts as round-off, in units of the last place.
_ROUND_OFF = 64


class AbstractSystemForm(eqx.Module):
    """One of the formulations of a system."""

    system: eqx.AbstractVar[System]
    rotation: eqx.AbstractVar[AbstractRotation]
    built: eqx.AbstractVar[SystemMechanics | None]
    needs_all_mass: AbstractClassVar[bool]  # or in the directions that the joints leave free

    @functools.cached_property
    def mechanics(self) -> SystemMechanics:
        """Poses, twists and constraints of the bodies."""
        return mechanics_of(self.system, self.built)

    @property
    @abc.abstractmethod
    def layout(self) -> Any:
        """Where the unknowns stand: a `Layout`, or that of the coordinates of trees."""

    @property
    def followed(self) -> tuple[int, ...]:
        """Joints whose angles are unknowns of their own, because their whole turns matter."""
        return self.system.tracked_joints

    @abc.abstractmethod
    def motion(self, t, y: Unknowns) -> tuple[Poses, Placements, Twists]:
        """Poses, placement of the joints, and twists of all bodies."""

    @abc.abstractmethod
    def velocities_of(self, t, poses, places, coordinates, twists: Twists) -> Array:
        """Velocity-level unknowns of twists, nearest to them if the joints do not allow them."""

    @abc.abstractmethod
    def vector_field(self, t, y: Unknowns) -> Unknowns:
        """Rates of the unknowns."""

    @abc.abstractmethod
    def accelerations(self, t, y: Unknowns) -> Twists:
        """Derivatives of the twists of all bodies."""

    @abc.abstractmethod
    def project(self, t, y: Unknowns) -> Unknowns:
        """Unknowns on the constraints, internal ones and those of the joints."""

    def poses(self, t, y: Unknowns) -> Poses:
        """Poses of all bodies and turns of the joints."""
        values, reference = split_chart(y)
        x, a = self.layout.poses(values)
        return self.mechanics.poses(x, self.matrices(a, reference), self.layout.angles(values))

    def matrices(self, a, reference) -> Float[Array, "L 3 3"]:
        """Rotation matrices of all bodies."""
        R = jax.vmap(self.rotation.to_matrix)(a)
        if reference is None:
            return R
        return jax.vmap(lambda p, R: product(euler_map(p), R))(reference, R)

    @eqx.filter_jit
    def pack(self, state: State, reference=None, t: ArrayInput = 0.0) -> Float[Array, " N"]:
        """Unknowns of a state with unit quaternions; velocities nearest to it."""
        t = jnp.asarray(t, state.position.dtype)
        p = state.orientation
        relative = p if reference is None else jax.vmap(multiply)(jax.vmap(conjugate)(reference), p)
        a = jax.vmap(self.rotation.from_quaternion)(relative)
        poses = self.mechanics.poses(state.position, jax.vmap(euler_map)(p), jnp.zeros(0))
        angles = jnp.zeros(0, state.position.dtype)
        if self.system.tracked_joints:
            angles = self.mechanics.angles(poses)
        places = self.mechanics.place(poses)
        twists = Twists(state.velocity, state.angular_velocity)
        velocities = self.velocities_of(t, poses, places, a, twists)
        return self.layout.join_all(state.position, a, velocities, angles)

    @compiled
    def kinematics(self, t, y: Unknowns) -> Kinematics:
        """What forces see."""
        poses, places, twists = self.motion(t, y)
        return self.mechanics.kinematics(poses, places, twists)

    def angle_rates(self, places, twists: Twists) -> Float[Array, " A"]:
        """Rates of the angles that are unknowns."""
        mechanics = self.mechanics
        if not self.followed:
            return jnp.zeros(0, twists.linear.dtype)
        relative = mechanics.by_joint(mechanics.joint_twists(places, twists))
        placed = mechanics.by_joint(places)
        rates = []
        for j in self.followed:
            joint = mechanics.system.joints[j]
            nu = joint.rates(placed[j].relative, relative[j])
            rates.append(nu[joint.num_translations])
        return jnp.stack(rates)

    @compiled
    def drift(self, t, y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Largest violation of internal and joint constraints, position and velocity level."""
        _, places, twists = self.motion(t, y)
        a = self.rotation_coordinates(y)
        position = self.mechanics.constraint(t, places)
        velocity = self.mechanics.constraint_rate(t, places, twists)
        if self.rotation.num_constraints > 0 and len(a):
            internal = jax.vmap(self.rotation.constraint)(a)
            a_dot = self.coordinate_rates(y, twists)
            rate = jax.vmap(lambda a, v: self.rotation.constraint_jacobian(a) @ v)(a, a_dot)
            position = jnp.concatenate([position, internal.ravel()])
            velocity = jnp.concatenate([velocity, rate.ravel()])
        largest = lambda g: jnp.max(jnp.abs(g), initial=0.0)  # noqa: E731
        return largest(position), largest(velocity)

    @compiled
    def gaps(self, t, y: Unknowns) -> Float[Array, " J"]:
        """How far every joint is open, see `rigidjax.system.gaps`."""
        return gaps(self.mechanics, t, self.mechanics.place(self.poses(t, y)))

    @compiled
    def joint_coordinates(self, t, y: Unknowns):
        """Coordinates and rates of every joint, by its name."""
        mechanics = self.mechanics
        _, places, twists = self.motion(t, y)
        found = mechanics.coordinates(places)
        rates = mechanics.by_joint(
            [
                group.over(lambda joint, r, s: joint.coordinate_rates(r, s), place.relative, twist)
                for group, place, twist in zip(
                    mechanics.groups, places, mechanics.joint_twists(places, twists), strict=True
                )
            ]
        )
        names = [str(joint.name) for joint in self.system.joints]
        by_name = lambda of: {name: of[j] for j, name in enumerate(names)}  # noqa: E731
        return by_name(found), by_name(rates)

    @abc.abstractmethod
    def coordinate_rates(self, y: Unknowns, twists: Twists) -> Float[Array, "k n"]:
        """Rates of the rotation coordinates."""

    def rotation_coordinates(self, y: Unknowns) -> Float[Array, "k n"]:
        """Coordinates of all rotations that are among the unknowns."""
        return self.layout.poses(split_chart(y)[0])[1]

    def closed(self, t, y: Unknowns) -> Unknowns:
        """Unknowns whose positions satisfy all constraints; velocities as they were."""
        # A loop, since it compiles in half the time. What is cached must not be made inside of it.
        _ = self.mechanics
        if self.mechanics.is_free:
            values, _ = split_chart(y)
            x, a = self.layout.poses(values)
            a, angles = jax.vmap(self.rotation.project)(a), self.layout.angles(values)
            return join_chart(self.layout.join_all(x, a, self.layout.velocities(values), angles), y)
        if not self.system.closes:
            return jax.lax.fori_loop(0, _NEWTON_STEPS, lambda _, y: self.newton_step(t, y), y)

        def improved(_, carry):
            y, gap = carry
            y = jax.lax.cond(gap > limit, lambda y: self.newton_step(t, y), lambda y: y, y)
            return y, jax.lax.stop_gradient(jnp.max(self.gaps(t, y), initial=0.0))

        dtype = split_chart(y)[0].dtype
        limit = _ROUND_OFF * float(jnp.finfo(dtype).eps)
        start = y, jnp.asarray(jnp.inf, dtype)
        return jax.lax.fori_loop(0, _NEWTON_STEPS, improved, start)[0]

    def newton_step(self, t, y: Unknowns) -> Unknowns:
        """One Newton step towards poses that satisfy all constraints."""
        values, reference = split_chart(y)
        x, a = self.layout.poses(values)
        a = jax.vmap(self.rotation.project)(a)
        angles = self.layout.angles(values)
        poses = self.mechanics.poses(x, self.matrices(a, reference), angles)
        change = pose_correction(self.mechanics, t, poses, self.mechanics.place(poses))
        a = a + jax.vmap(self.rotation.rate)(a, change[:, 3:])
        a = jax.vmap(self.rotation.project)(a)
        x = x + change[:, :3]
        if angles.size:
            poses = self.mechanics.poses(x, self.matrices(a, reference), angles)
            angles = self.mechanics.angles(poses)
        velocities = self.layout.velocities(values)
        return join_chart(self.layout.join_all(x, a, velocities, angles), y)

    @compiled
    def absolute(self, t, y: Unknowns) -> Float[Array, " N"]:
        """The same motion in absolute coordinates, in the fixed chart."""
        values, _ = split_chart(y)
        _, _, twists = self.motion(t, y)
        x, a = self.layout.poses(values)
        velocities = jnp.concatenate([twists.linear, self.coordinate_rates(y, twists)], axis=1)
        return self.layout.join_all(x, a, velocities, self.layout.angles(values))

    @compiled
    def multipliers(self, t, y: Unknowns) -> Float[Array, " m"]:
        """Multipliers of the joints, group by group; see `reactions`."""
        poses, places, twists = self.motion(t, y)
        accelerations = self.accelerations(t, y)
        return multipliers(self.mechanics, t, poses, places, twists, accelerations)

    @compiled
    def reactions(self, t, y: Unknowns) -> dict[str, Reaction | ConstraintReaction]:
        """Reaction of every joint and constraint, by its name."""
        _, places, _ = self.motion(t, y)
        return reactions(self.mechanics, t, places, self.multipliers(t, y))


class SystemAbsolute(AbstractSystemForm):
    r"""$y = (x_1, a_1, \dots, \dot x_1, \dot a_1, \dots)$, all joints imposed on accelerations."""

    system: System
    rotation: AbstractRotation
    built: SystemMechanics | None
    needs_all_mass: ClassVar[bool] = True

    @property
    def layout(self) -> Layout:
        n = self.rotation.num_coordinates
        return Layout(self.system.num_bodies, True, n, n, None, len(self.system.tracked_joints))

    def velocities_of(self, t, poses, places, coordinates, twists):
        a_dot = jax.vmap(self.rotation.rate)(coordinates, twists.angular)
        return jnp.concatenate([twists.linear, a_dot], axis=1)

    def motion(self, t, y):
        values, _ = split_chart(y)
        _, a = self.layout.poses(values)
        v, a_dot = self.layout.twists(values)
        poses = self.poses(t, y)
        twists = Twists(v, jax.vmap(self.rotation.angular_velocity)(a, a_dot))
        return poses, self.mechanics.place(poses), twists

    def coordinate_rates(self, y, twists):
        return self.layout.twists(split_chart(y)[0])[1]

    def accelerations(self, t, y):
        poses, places, twists = self.motion(t, y)
        w_dot = constrained_accelerations(self.mechanics, t, poses, places, twists)
        return Twists(w_dot[:, :3], w_dot[:, 3:])

    @compiled
    def vector_field(self, t, y):
        values, _ = split_chart(y)
        t = jnp.asarray(t, values.dtype)
        mechanics = self.mechanics
        _, a = self.layout.poses(values)
        v, a_dot = self.layout.twists(values)
        poses, places, twists = self.motion(t, y)
        w_dot = constrained_accelerations(mechanics, t, poses, places, twists)
        # The moment with reactions that makes the bodies turn like that; the internal constraints
        # are imposed in closed form.
        omega = twists.angular
        moment = mechanics.momenta(w_dot[:, :3], w_dot[:, 3:])[:, 3:] + mechanics.gyroscopic(omega)
        a_ddot = jax.vmap(
            lambda a, a_dot, I, m: constrained_acceleration(self.rotation, a, a_dot, I, m)
        )(a, a_dot, mechanics.inertias, moment)
        rate = self.layout.join_all(
            v, a_dot, jnp.concatenate([w_dot[:, :3], a_ddot], axis=1),
            self.angle_rates(places, twists),
        )  # fmt: skip
        return constant_chart(rate, y)

    @compiled
    def project(self, t, y):
        y = self.closed(t, y)
        values, _ = split_chart(y)
        x, a = self.layout.poses(values)
        v, a_dot = self.layout.twists(values)
        a_dot = jax.vmap(self.rotation.project_rate)(a, a_dot, self.mechanics.inertias)
        poses = self.poses(t, y)
        places = self.mechanics.place(poses)
        twists = Twists(v, jax.vmap(self.rotation.angular_velocity)(a, a_dot))
        twists = project_twists(self.mechanics, t, poses, places, twists)
        a_dot = jax.vmap(self.rotation.rate)(a, twists.angular)
        velocities = jnp.concatenate([twists.linear, a_dot], axis=1)
        return join_chart(self.layout.join_all(x, a, velocities, self.layout.angles(values)), y)
