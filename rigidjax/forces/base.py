"""The base class of applied forces, and their arguments and results."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector, Vector3
from ..bodies.body import Body
from ..checks import did_you_mean, vector_leaf
from ..joints.base import AbstractJoint
from ..rotations.matrix import product, to_body, to_space
from ..signals.laws import as_law, check_shapes
from ..signals.switches import evaluate_law
from ..small_arrays import cross, take, vmap_rows


class JointKinematics(eqx.Module):
    r"""Coordinates and geometry of a joint, for forces that act on it.

    `coordinates` (k,) and `rates` (k,), lengths (m) before angles (rad); `forces` and `moments`,
    (k, 3), space components: the wrench at the child's joint point that does unit work on each
    coordinate; `parent_arm` and `child_arm`, (3,) m, from the centres of mass to that point, space
    components; `turns`, the full revolutions in the angle, rad.
    """

    coordinates: Float[Array, " k"]
    rates: Float[Array, " k"]
    forces: Float[Array, "k 3"]
    moments: Float[Array, "k 3"]
    parent_arm: Vector3
    child_arm: Vector3
    turns: Scalar


class Joints(eqx.Module):
    """Joints that forces refer to: one stacked entry of `groups` per kind, and their `names`."""

    groups: list[JointKinematics] = eqx.field(default_factory=list)
    names: tuple[tuple[str, ...], ...] = eqx.field(static=True, default=())

    def __getitem__(self, name: str) -> JointKinematics:
        """Return the joint called `name`."""
        return jax.tree.map(lambda leaf: leaf[0], self.select([name]))

    def select(self, names: Sequence[str]) -> JointKinematics:
        """Return the joints of these names, all of one group, stacked in this order."""
        for group, members in zip(self.groups, self.names, strict=True):
            if names[0] in members:
                index = {name: k for k, name in enumerate(members)}
                return take(group, [index[name] for name in names])
        raise KeyError(names[0])


class Bodies(eqx.Module):
    """Constant properties of the bodies that a force acts on, one row per body.

    `masses`, kg; `positions` (space components, m) and `rotations` (body to space) in the reference
    configuration; `is_ground`, static, marks the inertial frame, a massless body at rest in the
    origin. If a force names a `Frame` instead of a body, its pose and motion take the place of the
    body's, and loads refer to its origin and axes; `mounts` contains these frames.
    """

    masses: Float[Array, " B"]
    positions: Float[Array, "B 3"]
    rotations: Float[Array, "B 3 3"]
    is_ground: tuple[bool, ...] = eqx.field(static=True)
    mounts: "Mounts | None" = None


class Mounts(eqx.Module):
    """Frames on bodies: origins `points`, body components, m, and `rotations`, frame to body."""

    points: Float[Array, "B 3"]
    rotations: Float[Array, "B 3 3"]

    def frame_poses(
        self, x: Float[Array, "B 3"], R: Float[Array, "B 3 3"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 3 3"]]:
        """Return positions and rotations of the frames from those of the bodies."""
        return x + vmap_rows(to_space, R, self.points), vmap_rows(product, R, self.rotations)

    def frame_kinematics(self, body_kinematics: "Kinematics") -> "Kinematics":
        """Return poses and twists of the frames from those of the bodies."""
        positions, rotations = self.frame_poses(
            body_kinematics.positions, body_kinematics.rotations
        )
        velocities = vmap_rows(cross, body_kinematics.angular_velocities, self.points)
        return Kinematics(
            positions,
            rotations,
            body_kinematics.velocities + vmap_rows(to_space, body_kinematics.rotations, velocities),
            vmap_rows(to_body, self.rotations, body_kinematics.angular_velocities),
            body_kinematics.joints,
        )


class Kinematics(eqx.Module):
    """Poses and twists of bodies, one row per body.

    Positions and velocities of the centres of mass in space components (m, m/s), rotation
    matrices from body to space, angular velocities in body components (rad/s). `joints` contains
    the joints that forces refer to: for a whole system `Joints`, accessible by name; for one force
    a tuple in the order of its `joint_names`.
    """

    positions: Float[Array, "B 3"] = eqx.field(converter=jnp.asarray)
    rotations: Float[Array, "B 3 3"] = eqx.field(converter=jnp.asarray)
    velocities: Float[Array, "B 3"] = eqx.field(converter=jnp.asarray)
    angular_velocities: Float[Array, "B 3"] = eqx.field(converter=jnp.asarray)
    joints: Any = eqx.field(default_factory=Joints)


class Loads(eqx.Module):
    """Forces and moments on bodies, one row per body; `None` stands for zero.

    `forces`, N, in space components, or in body components with `axes="body"`, act at points whose
    distances from the centres of mass are `arms`, m, body components. `moments`, N m, body
    components, are added to the moments of the forces about the centres of mass. If moments
    represent forces at points, as those of a potential do, `dyads` contains the sums of force times
    arm, N m, body components.
    """

    forces: Float[Array, "B 3"] | None = None
    arms: Float[Array, "B 3"] | None = None
    moments: Float[Array, "B 3"] | None = None
    dyads: Float[Array, "B 3 3"] | None = None
    axes: Literal["space", "body"] = eqx.field(static=True, default="space")

    def wrenches(
        self, R: Float[Array, "B 3 3"]
    ) -> tuple[Float[Array, "B 3"] | None, Float[Array, "B 3"] | None]:
        """Return forces, space components, and moments about the centres of mass, body components.

        **Arguments:** `R`, rotations of the bodies.
        **Returns:** forces and moments; `None` instead of an array that is zero by construction.
        """
        forces, moments = self.forces, self.moments
        if forces is not None and self.arms is not None:
            couples = vmap_rows(cross, self.arms, self._in_body(forces, R))
            moments = couples if moments is None else couples + moments
        if forces is not None and self.axes == "body":
            forces = vmap_rows(to_space, R, forces)
        return forces, moments

    def virials(self, R: Float[Array, "B 3 3"]) -> Float[Array, "B 3 3"]:
        r"""Return the symmetric parts of $\sum f \otimes u$, of forces and `dyads`, body, N m."""
        dyads = jnp.zeros_like(R) if self.dyads is None else self.dyads
        if self.forces is not None and self.arms is not None:
            dyads = dyads + self._in_body(self.forces, R)[:, :, None] * self.arms[:, None, :]
        return 0.5 * (dyads + jnp.swapaxes(dyads, 1, 2))

    def on_bodies(self, mounts: Mounts | None) -> "Loads":
        """Convert loads on frames to loads about the centres of mass in body components."""
        if mounts is None:
            return self
        B, forces, arms = mounts.rotations, self.forces, None
        if forces is not None:
            arms = mounts.points
            if self.arms is not None:
                arms = arms + vmap_rows(to_space, B, self.arms)
            if self.axes == "body":
                forces = vmap_rows(to_space, B, forces)
        moments = None if self.moments is None else vmap_rows(to_space, B, self.moments)
        dyads = None if self.dyads is None else B @ self.dyads @ jnp.swapaxes(B, 1, 2)
        return Loads(forces, arms, moments, dyads, self.axes)

    def _in_body(self, forces: Float[Array, "B 3"], R: Float[Array, "B 3 3"]) -> Array:
        return forces if self.axes == "body" else vmap_rows(to_body, R, forces)


class AbstractForce(eqx.Module):
    """A law that computes loads on bodies from time, poses and twists.

    A law is written for one force. Forces that differ only in parameter values and in the names of
    their bodies and joints are evaluated together, by `jax.vmap` of the law.
    """

    # Whether the loads depend on positions or velocities of bodies without joints.
    depends_on_translation: ClassVar[bool] = True

    @abc.abstractmethod
    def body_names(self) -> tuple[str, ...]:
        """Return the names of the bodies or frames that it acts on, possibly `"ground"`.

        `System` checks that they exist.
        """

    def joint_names(self) -> tuple[str, ...]:
        """Return the names of the joints whose coordinates it depends on; none by default."""
        return ()

    @property
    def needs_different_bodies(self) -> bool:
        """Whether the bodies that it names must be different ones; yes by default."""
        return True

    @property
    def acts_on_all(self) -> bool:
        """Whether it acts on all bodies, like gravity, because it names no body and no joint."""
        return not (self.body_names() or self.joint_names())

    def check_bodies(self, bodies: Sequence[Body]) -> None:
        """Raise if the force cannot act on these bodies; called when a `System` is built."""
        return None

    def check_joint(self, joint: AbstractJoint) -> None:
        """Raise `ValueError` if the force cannot act on one of the joints that it names."""
        return None

    @abc.abstractmethod
    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        """Return the loads on the bodies that the force names.

        Rows are in the order of `body_names`, followed by the parent and the child of each joint in
        `joint_names`. A force that `acts_on_all` has a row for each body of the system. Loads on
        the ground have no effect.

        **Arguments:** `t`, s; `bodies` and `kinematics`, with the same rows.
        """

    def potential_energy(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Scalar:
        """Return the potential energy, J, zero by default; arguments as for `loads`."""
        return jnp.zeros((), kinematics.positions.dtype)

    @property
    def has_potential(self) -> bool:
        """Whether it has a potential energy, that is, overrides `potential_energy`."""
        return type(self).potential_energy is not AbstractForce.potential_energy

    @property
    def is_linear(self) -> bool:
        """Whether the potential energy is linear in the positions, or zero.

        If it is, energy-conserving steps need no discrete gradient.
        """
        return not self.has_potential


def body_index(bodies: Sequence[Body], name: str) -> int:
    """Return the index of a body; `ValueError` with the nearest name for an unknown one."""
    names = [body.name for body in bodies]
    if name not in names:
        hint = did_you_mean(name, names, f" The bodies are {names}.")
        hint = ' The inertial frame is called "ground".' if name == "world" else hint
        raise ValueError(f"There is no body called {name!r}.{hint}")
    return names.index(name)


def vector_law(value: Any, argument: str, *shapes: tuple[int, ...]) -> Any:
    """Return a checked vector (3,), or a checked function that returns one.

    **Arguments:** `value`; `argument`, its name in messages; `shapes` of the function's arguments.
    """
    if not callable(value):
        return vector_leaf(value, argument)
    law = as_law(value, argument)
    check_shapes(lambda *args: evaluate_vector_law(law, argument, *args), *shapes)
    return law


def evaluate_vector_law(law: Any, argument: str, *args: Any) -> Vector3:
    """Return the vector of a `vector_law` at `args`; `ValueError` for a wrong shape."""
    if not callable(law):
        return law
    value = jnp.asarray(evaluate_law(law, *args))
    if value.shape != (3,):
        raise ValueError(f"The function `{argument}` must return shape (3,); got {value.shape}.")
    return value


class AbstractStatefulForce(AbstractForce):
    r"""A force with continuous states $x$, which are integrated with the motion.

    **Attributes:** `num_states`, the number of its states.
    """

    num_states: eqx.AbstractClassVar[int]

    depends_on_translation: ClassVar[bool] = False

    @abc.abstractmethod
    def rates_in_view(self, t: Scalar, x: Vector, view: Any) -> Array:
        """Return the rates of the states, (num_states,).

        **Arguments:** `t`, s; `x`, (num_states,); `view`, the `SystemView` at this time.
        """

    @abc.abstractmethod
    def loads_at_states(
        self, t: Scalar, x: Vector, bodies: Bodies, kinematics: Kinematics
    ) -> Loads:
        """Return the loads at the states `x`, (num_states,); other arguments as for `loads`."""

    @property
    @abc.abstractmethod
    def state_labels(self) -> tuple[str, ...]:
        """Names of the states in the unknowns of a run; repeated ones get a number there."""

    def initial_states(self) -> Vector:
        """Return the states at the start of a run, (num_states,); zero by default."""
        return jnp.zeros(self.num_states)

    def states_error(self) -> ValueError:
        """Return the error for an evaluation without states."""
        return ValueError(
            f"A `{type(self).__name__}` has states, which only the methods of a formulation know."
        )


class ForceAtStates(AbstractForce):
    """A force with its states, and their rates, at one time."""

    force: AbstractStatefulForce
    states: Vector
    rates: Vector

    depends_on_translation: ClassVar[bool] = False

    def body_names(self) -> tuple[str, ...]:
        return self.force.body_names()

    def joint_names(self) -> tuple[str, ...]:
        return self.force.joint_names()

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        return self.force.loads_at_states(t, self.states, bodies, kinematics)
