r"""Formulations of a system whose velocities are the minimal ones of the trees."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..joints.base import replaced
from ..linalg import loops_are_kernels
from ..rotations.base import AbstractRotation, Rates
from ..rotations.matrix import to_body, to_space
from ..side_by_side import side_by_side
from ..system import System
from ..system.articulated import articulated
from ..system.attachment import Poses
from ..system.dynamics import Motion, body_accelerations, consistent_rates, motion
from ..system.mechanics import SystemMechanics
from ..system.reactions import rotors
from ..system.trees import first_rate, free_bodies, tree_rates, tree_twists
from .charts import Unknowns, constant_chart, join_chart, split_chart
from .compiled import compiled
from .layout import Layout
from .system_form import AbstractSystemForm


class AbstractSystemRates(AbstractSystemForm):
    r"""Velocities are $\nu$, the rates of the joints that the bodies hang on."""

    needs_all_mass: ClassVar[bool] = False

    @abc.abstractmethod
    def joined_rates(self, y: Unknowns, places, of: Motion) -> Float[Array, " N"]:
        """Rates of the unknowns in a motion."""

    @abc.abstractmethod
    def with_rates(self, y: Unknowns, nu: Float[Array, " f"]) -> Unknowns:
        """The unknowns with other minimal velocities."""

    def velocities_of(self, t, poses, places, coordinates, twists):
        nu = tree_rates(self.mechanics, t, places, twists)
        return self.as_unknowns(poses, consistent_rates(self.mechanics, t, poses, places, nu))

    def minimal(self, poses: Poses, values: Float[Array, " N"]) -> Float[Array, " f"]:
        r"""$\nu$ of the trees, angular velocities of free bodies in body components."""
        return self.layout.velocities(values)

    def as_unknowns(self, poses: Poses, nu: Float[Array, " f"]) -> Float[Array, " f"]:
        """The inverse of `minimal`, of minimal velocities or of their derivatives."""
        return nu

    def motion(self, t, y):
        values, _ = split_chart(y)
        poses = self.poses(t, y)
        places = self.mechanics.place(poses)
        nu = consistent_rates(self.mechanics, t, poses, places, self.minimal(poses, values))
        return poses, places, tree_twists(self.mechanics, t, poses, places, nu)

    @compiled
    def vector_field(self, t, y):
        values, _ = split_chart(y)
        t = jnp.asarray(t, values.dtype)
        if self.system.closes or not self.mechanics.num_rates:
            return self.rates_by(motion, t, y)
        # Body after body is the fastest where that loop is a single kernel: a chain of eight takes
        # 2.2 us instead of 14.
        in_loops = loops_are_kernels() and jax.default_backend() == "cpu"
        alone = _rates_by_articulated if in_loops else _rates_by_motion
        return side_by_side(alone, _rates_by_articulated)(self, t, y)

    def without_rotors(self, t, y: Unknowns) -> System:
        """The system in which what rotors of joints do is given as forces."""
        system = self.system
        if not system.has_armature:
            return system
        poses, places, twists = self.motion(t, y)
        forces = rotors(self.mechanics, t, poses, places, twists, self.accelerations(t, y))
        bare = (
            joint if joint.armatures is None else replaced(joint, armature=None)
            for joint in system.joints
        )
        return replaced(system, joints=tuple(bare), forces=(*system.forces, *forces))

    def rates_by(self, motion, t, y):
        """`vector_field`, accelerations by `dynamics.motion` or by `articulated`."""
        values, _ = split_chart(y)
        poses = self.poses(t, y)
        places = self.mechanics.place(poses)
        of = motion(self.mechanics, t, poses, places, self.minimal(poses, values))
        return constant_chart(self.joined_rates(y, places, of), y)

    def accelerations(self, t, y):
        values, _ = split_chart(y)
        poses = self.poses(t, y)
        places = self.mechanics.place(poses)
        of = motion(self.mechanics, t, poses, places, self.minimal(poses, values))
        return body_accelerations(self.mechanics, t, poses, of.rates, of.derivatives)

    @compiled
    def project(self, t, y):
        y = self.closed(t, y)
        values, _ = split_chart(y)
        poses = self.poses(t, y)
        places = self.mechanics.place(poses)
        nu = consistent_rates(self.mechanics, t, poses, places, self.minimal(poses, values))
        return self.with_rates(y, self.as_unknowns(poses, nu))


def _rates_by_motion(model: AbstractSystemRates, t, y):
    return model.rates_by(motion, t, y)


def _rates_by_articulated(model: AbstractSystemRates, t, y):
    return model.rates_by(articulated, t, y)


class SystemNullSpace(AbstractSystemRates):
    r"""$y = (x_1, a_1, \dots, \nu)$, with the joint rates of the spanning trees.

    With `rates="space"` angular velocities of bodies on no joint are in space components.
    """

    system: System
    rotation: AbstractRotation
    built: SystemMechanics | None
    rates: Rates = eqx.field(static=True, default="body")

    @property
    def layout(self) -> Layout:
        system = self.system
        return Layout(
            system.num_bodies, True, self.rotation.num_coordinates, 3, sum(system.rates_of_bodies),
            len(self.followed),
        )  # fmt: skip

    def minimal(self, poses, values):
        return self._turned(poses, self.layout.velocities(values), to_body)

    def as_unknowns(self, poses, nu):
        # Of derivatives too: d(R Omega)/dt = R dOmega/dt, since Omega x Omega = 0.
        return self._turned(poses, nu, to_space)

    def _turned(self, poses, nu, turn):
        if self.rates == "body":
            return nu
        free = free_bodies(self.mechanics)
        rows = np.add.outer(first_rate(self.mechanics)[free], np.arange(3, 6))
        return nu.at[rows].set(jax.vmap(turn)(poses.rotations[free], nu[rows]))

    def coordinate_rates(self, y, twists):
        _, a = self.layout.poses(split_chart(y)[0])
        return jax.vmap(self.rotation.rate)(a, twists.angular)

    def joined_rates(self, y, places, of):
        return self.layout.join_all(
            of.twists.linear, self.coordinate_rates(y, of.twists),
            self.as_unknowns(places.poses, of.derivatives), self.angle_rates(places, of.twists),
        )  # fmt: skip

    def with_rates(self, y, nu):
        values, _ = split_chart(y)
        x, a = self.layout.poses(values)
        return join_chart(self.layout.join_all(x, a, nu, self.layout.angles(values)), y)
