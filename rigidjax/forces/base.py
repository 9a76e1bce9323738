"""What every applied force provides."""

import abc
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..checks import did_you_mean, vector_leaf
from ..joints.base import AbstractJoint
from ..native.ops import cross, take, vmap_rows
from ..rotations.matrix import product, to_body, to_space
from ..signals.laws import as_law, check_shapes
from ..signals.switches import evaluate_law


class JointKinematics(eqx.Module):
    r"""A joint as forces see it.

    `coordinates` (k,) and `rates` (k,), lengths (m) before angles (rad); `forces` and `moments`,
    (k, 3), space components: the wrench at the child's joint point that does unit work on each
    coordinate; `parent_arm` and `child_arm`, (3,), to that point from the centres of mass, space
    components; `turns`, whole turns in the angle, rad.
    """

    coordinates: Float[Array, " k"]
    rates: Float[Array, " k"]
    forces: Float[Array, "k 3"]
    moments: Float[Array, "k 3"]
    parent_arm: Float[Array, "3"]
    child_arm: Float[Array, "3"]
    turns: Float[Array, ""]


class Joints(eqx.Module):
    """Joints that forces refer to: `groups`, of a kind and stacked, and the `names` in each."""

    groups: list[JointKinematics] = eqx.field(default_factory=list)
    names: tuple[tuple[str, ...], ...] = eqx.field(static=True, default=())

    def __getitem__(self, name: str) -> JointKinematics:
        """The joint called `name`."""
        return jax.tree.map(lambda leaf: leaf[0], self.stacked([name]))

    def stacked(self, names: Sequence[str]) -> JointKinematics:
        """Joints of one group."""
        for group, own in zip(self.groups, self.names, strict=True):
            if names[0] in own:
                place = {name: k for k, name in enumerate(own)}
                return take(group, [place[name] for name in names])
        raise KeyError(names[0])


class Bodies(eqx.Module):
    """What does not change of the bodies that a force acts on, one row for each.

    Masses, kg; positions (space components, m) and rotation matrices (body to space) in the
    reference configuration; `is_ground`, static: the inertial frame, a body without mass that rests
    in the origin. Where a force names a `Frame` of a body, pose and motion are those of the frame,
    and loads are taken likewise: from its origin, in its components; `mounts` says where it is.
    """

    masses: Float[Array, " B"]
    positions: Float[Array, "B 3"]
    rotations: Float[Array, "B 3 3"]
    is_ground: tuple[bool, ...] = eqx.field(static=True)
    mounts: "Mounts | None" = None


class Mounts(eqx.Module):
    """Frames on bodies: their origins, body components, m, and rotation matrices, frame to body."""

    points: Float[Array, "B 3"]
    rotations: Float[Array, "B 3 3"]

    def poses(
        self, x: Float[Array, "B 3"], R: Float[Array, "B 3 3"]
    ) -> tuple[Float[Array, "B 3"], Float[Array, "B 3 3"]]:
        """Those of the frames from those of the bodies."""
        return x + vmap_rows(to_space, R, self.points), vmap_rows(product, R, self.rotations)

    def motion(self, of: "Kinematics") -> "Kinematics":
        """That of the frames from that of the bodies."""
        positions, rotations = self.poses(of.positions, of.rotations)
        at_origin = vmap_rows(cross, of.angular_velocities, self.points)
        return Kinematics(
            positions,
            rotations,
            of.velocities + vmap_rows(to_space, of.rotations, at_origin),
            vmap_rows(to_body, self.rotations, of.angular_velocities),
            of.joints,
        )


class Kinematics(eqx.Module):
    """Poses and twists of bodies, one row for each.

    Positions and velocities of the centres of mass in space components (m, m/s), rotation
    matrices from body to space, angular velocities in body components (rad/s). `joints` has those
    joints that forces refer to: of a whole system by name, of a force in the order of its names.
    """

    positions: Float[Array, "B 3"] = eqx.field(converter=jnp.asarray)
    rotations: Float[Array, "B 3 3"] = eqx.field(converter=jnp.asarray)
    velocities: Float[Array, "B 3"] = eqx.field(converter=jnp.asarray)
    angular_velocities: Float[Array, "B 3"] = eqx.field(converter=jnp.asarray)
    joints: Any = eqx.field(default_factory=Joints)


class Loads(eqx.Module):
    """What a force exerts, a row for each of its bodies; what is left out is zero.

    `forces`, N, in space components, or, with `axes="body"`, in those of the bodies, at points that
    are `arms` away from the centres of mass, m, body components; `moments`, N m, body components,
    beyond those of the forces about the centres of mass. Moments that stand for forces at points,
    as those of a potential do, have the `dyads` of these: sums of force times arm, N m, body
    components.
    """

    forces: Float[Array, "B 3"] | None = None
    arms: Float[Array, "B 3"] | None = None
    moments: Float[Array, "B 3"] | None = None
    dyads: Float[Array, "B 3 3"] | None = None
    axes: Literal["space", "body"] = eqx.field(static=True, default="space")

    def wrenches(
        self, R: Float[Array, "B 3 3"]
    ) -> tuple[Float[Array, "B 3"] | None, Float[Array, "B 3"] | None]:
        """Forces, space components, and moments about the centres of mass, body components, on
        bodies with these rotations; `None` for what is zero by construction."""
        forces, moments = self.forces, self.moments
        if forces is not None and self.arms is not None:
            of_forces = vmap_rows(cross, self.arms, self._in_body(forces, R))
            moments = of_forces if moments is None else of_forces + moments
        if forces is not None and self.axes == "body":
            forces = vmap_rows(to_space, R, forces)
        return forces, moments

    def virials(self, R: Float[Array, "B 3 3"]) -> Float[Array, "B 3 3"]:
        r"""Symmetric parts of $\sum f \otimes u$, body components, N m: of forces and `dyads`."""
        dyads = jnp.zeros_like(R) if self.dyads is None else self.dyads
        if self.forces is not None and self.arms is not None:
            dyads = dyads + self._in_body(self.forces, R)[:, :, None] * self.arms[:, None, :]
        return 0.5 * (dyads + jnp.swapaxes(dyads, 1, 2))

    def on_bodies(self, mounts: Mounts | None) -> "Loads":
        """The same from the centres of mass in body components, of loads on frames."""
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

    def _in_body(self, forces, R):
        """Body components."""
        return forces if self.axes == "body" else vmap_rows(to_body, R, forces)


class AbstractForce(eqx.Module):
    """A law that turns time, poses and twists into loads on bodies.

    Laws are written for one force. Forces that differ in numbers and in the names of their bodies
    and joints alone are evaluated together, by `jax.vmap` of the law.
    """

    @abc.abstractmethod
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies that it acts on, or of frames on them, `"ground"` among them; checked
        by `System`."""

    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints whose coordinates it depends on; none unless it says so."""
        return ()

    @property
    def acts_on_all(self) -> bool:
        """Whether it acts on all bodies, as gravity does: where it names no body and no joint."""
        return not (self.body_names() or self.joint_names())

    def check_bodies(self, bodies: Sequence[Body]) -> None:
        """Raise if the force cannot act on these bodies; called when a `System` is built."""
        return None

    def check_joint(self, joint: AbstractJoint) -> None:
        """Raise `ValueError` if the force cannot act on one of the joints that it names."""
        return None

    @abc.abstractmethod
    def loads(self, t: Float[Array, ""], bodies: Bodies, kinematics: Kinematics) -> Loads:
        """What it exerts on the bodies that it names.

        Their rows are in the order of `body_names`; behind them are those of the parent and the
        child of each joint in `joint_names`. A force that `acts_on_all` has a row for each body of
        the system. What it exerts on the ground is of no effect.
        """

    def potential_energy(
        self, t: Float[Array, ""], bodies: Bodies, kinematics: Kinematics
    ) -> Float[Array, ""]:
        """Potential energy, J; zero unless it says so. Arguments as those of `loads`."""
        return jnp.zeros((), kinematics.positions.dtype)

    @property
    def has_potential(self) -> bool:
        """Whether it has a potential energy: whether it says so."""
        return type(self).potential_energy is not AbstractForce.potential_energy

    @property
    def is_linear(self) -> bool:
        """Whether the potential energy is linear in the positions, or zero.

        Steps that conserve energy then need no discrete derivative.
        """
        return not self.has_potential


def body_index(bodies: Sequence[Body], name: str) -> int:
    """Index of the body called `name`; `ValueError` with the nearest name if there is none."""
    names = [body.name for body in bodies]
    if name not in names:
        hint = did_you_mean(name, names, f" The bodies are {names}.")
        raise ValueError(f"There is no body called {name!r}.{hint}")
    return names.index(name)


def vector_law(value: Any, argument: str, *shapes: tuple[int, ...]) -> Any:
    """A checked vector (3,), or a function that returns one, as a part of a module.

    `shapes`, of the arguments of the function.
    """
    if not callable(value):
        return vector_leaf(value, argument)
    law = as_law(value, argument)
    check_shapes(lambda *args: evaluated(law, argument, *args), *shapes)
    return law


def evaluated(law: Any, argument: str, *args: Any) -> Float[Array, "3"]:
    """What a `vector_law` gives at `args`; `ValueError` if a function returns another shape."""
    if not callable(law):
        return law
    value = jnp.asarray(evaluate_law(law, *args))
    if value.shape != (3,):
        raise ValueError(f"The function `{argument}` must return shape (3,); got {value.shape}.")
    return value
