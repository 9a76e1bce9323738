"""Null-space coordinates: redundant positions, generalised velocities."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Args, Scalar
from ..bodies.fixed_point import FixedPointBody
from ..joints.replacing import replace_fields
from ..mechanics import System, check_system, has_joints
from ..mechanics.dynamics.loops import consistent_rates
from ..mechanics.dynamics.reactions import rotor_forces
from ..mechanics.dynamics.select import compute_accelerations
from ..mechanics.kinematics.poses import Motion, Twists, joint_frames_at
from ..mechanics.kinematics.trees import (
    body_accelerations,
    body_twists,
    free_bodies,
    free_rate_rows,
    generalised_velocities,
)
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import PreparedSystem, StackedSystem
from ..rotations.base import AbstractRotation, Rates, check_rates
from ..rotations.matrix import to_body, to_space
from ..small_arrays import vmap_rows
from .binding import compile_free_method, compile_method
from .charts import Unknowns, constant_chart, join_chart, split_chart
from .constrained import check_rotation
from .layout import Layout
from .minimal_rates import AbstractMinimalRates


class AbstractNullSpace(AbstractMinimalRates):
    r"""Base class with velocities $\nu$, the rates of the joints that attach the bodies. All
    constraints but those of loops hold on velocities by construction."""

    needs_all_mass: ClassVar[bool] = False

    @abc.abstractmethod
    def joined_rates(
        self, y: Unknowns, joint_frames: JointFrames, of: Motion
    ) -> Float[Array, " N"]:
        """Return the rates of the unknowns in a motion."""

    @property
    def num_algebraic(self) -> int:
        return 0

    def velocities_of(
        self,
        t: Scalar,
        poses: Poses,
        joint_frames: JointFrames,
        coordinates: Float[Array, "k n"],
        twists: Twists,
    ):
        nu = generalised_velocities(self.prepared_system, t, joint_frames, twists)
        return self.as_unknowns(
            poses, consistent_rates(self.prepared_system, t, poses, joint_frames, nu)
        )

    def motion(self, t: Scalar, y: Unknowns):
        at = self.configuration_prepared(t, y)
        return (
            at.poses,
            at.joint_frames,
            body_twists(at.prepared, at.t, at.poses, at.joint_frames, at.nu),
        )

    def vector_field(self, t: Scalar, y: Unknowns, args: Args = None) -> Unknowns:
        system = self.multibody
        if system.has_modes and not system.is_bound:
            return self.held_field(t, y)
        return self._field(t, y)

    @compile_method
    def _field(self, t: Scalar, y: Unknowns) -> Unknowns:
        _, joint_frames, of = self._moving(t, y)
        return constant_chart(self.joined_rates(y, joint_frames, of), y)

    @compile_free_method
    def rates_at_constant_velocities(self, t: Scalar, y: Unknowns) -> Unknowns:
        r"""Return the rate of the unknowns for $\dot\nu = 0$: the velocities of the coordinates."""
        at = self.configuration_prepared(t, y)
        twists = body_twists(at.prepared, at.t, at.poses, at.joint_frames, at.nu)
        of = Motion(at.nu, twists, jnp.zeros_like(at.nu))
        return constant_chart(self.joined_rates(y, at.joint_frames, of), y)

    def _moving(self, t: Scalar, y: Unknowns) -> tuple[Poses, JointFrames, Motion]:
        prepared, poses = self.prepared_system, self.poses(t, y)
        joint_frames, nu = joint_frames_at(prepared, poses), self.minimal(poses, split_chart(y)[0])
        return poses, joint_frames, compute_accelerations(prepared, t, poses, joint_frames, nu)

    @compile_method
    def accelerations(self, t: Scalar, y: Unknowns) -> Twists:
        poses, _, of = self._moving(t, y)
        return body_accelerations(self.prepared_system, t, poses, of.rates, of.derivatives)

    def project(self, t: Scalar, y: Unknowns) -> Unknowns:
        if not (self.rotation.num_constraints or has_joints(self.system)):
            return y
        return self._project(t, y)

    @compile_free_method
    def _project(self, t: Scalar, y: Unknowns) -> Unknowns:
        y = self.close_joints(t, y)
        if not self.multibody.has_loops:
            return y
        at, (values, _) = self.configuration_prepared(t, y), split_chart(y)
        nu = self.as_unknowns(at.poses, at.nu)
        return join_chart(self.layout.with_velocities(values, nu), y)


class NullSpace(AbstractNullSpace):
    r"""The equations of motion in null-space coordinates, $y = (x, a, \dot x, \Omega)$ of each
    body.

    $\dot a = T(a)\,\Omega$ with the internal null-space matrix of the parametrization and
    $I \dot\Omega = \mu - \Omega \times I \Omega$: the internal constraints hold exactly at velocity
    level and their multipliers drop out.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (whose unknowns are $a$, $\Omega$ alone).
    - `rotation`: the parametrization.
    - `rates`: `"body"` for $\Omega$, `"space"` for $\omega = R\,\Omega$ as unknowns.
    - `recharting`: let a minimal parametrization move its reference on before it becomes
      singular. If `False`, `simulate` stops at the singularity with a named result.

    **Source:** Lang (11), (25), (42), (66), remark 4.6.
    """

    system: System | FixedPointBody
    arrays: PreparedSystem | StackedSystem | None
    rotation: AbstractRotation
    rates: Rates = eqx.field(static=True)
    recharting: bool = eqx.field(static=True)

    def __init__(
        self,
        system: System | FixedPointBody,
        rotation: AbstractRotation | None = None,
        rates: Rates = "body",
        recharting: bool = True,
    ):
        check_rates(rates)
        if has_joints(system) and rates == "space":
            raise ValueError(
                '`NullSpace(rates="space")` is for bodies without joints; the unknowns of a system '
                'with joints are its joint rates. Use rates="body".'
            )
        check_system(system)
        self.system = system
        self.arrays = None
        self.rotation = check_rotation(rotation)
        self.rates = rates
        self.recharting = recharting and self.rotation.num_constraints == 0

    @property
    def layout(self) -> Layout:
        system = self.multibody
        return Layout(
            system.num_bodies, system.translates, self.rotation.num_coordinates, 3,
            sum(system.rates_of_bodies), len(self.unwrapped_joints), system.num_states,
        )  # fmt: skip

    def minimal(self, poses: Poses, values: Float[Array, " N"]):
        return self._rotate_free(poses, self.layout.velocities(values), to_body)

    def as_unknowns(self, poses: Poses, nu: Float[Array, " f"]):
        # It holds for derivatives too: d(R Omega)/dt = R dOmega/dt, since Omega x Omega = 0.
        return self._rotate_free(poses, nu, to_space)

    def _rotate_free(self, poses: Poses, nu: Float[Array, " f"], turn: Callable[..., Any]):
        if self.rates == "body":
            return nu
        free, rows = free_bodies(self.prepared_system), free_rate_rows(self.prepared_system)[:, -3:]
        rotated = jax.vmap(turn)(poses.rotations[free], nu[rows])
        return nu.at[rows].set(rotated, unique_indices=True)

    def coordinate_rates(self, y: Unknowns, twists: Twists):
        _, a = self.layout.poses(split_chart(y)[0])
        return vmap_rows(self.rotation.rate, a, twists.angular)

    def joined_rates(self, y: Unknowns, joint_frames: JointFrames, of: Motion):
        return self.layout.join_all(
            of.twists.linear, self.coordinate_rates(y, of.twists),
            self.as_unknowns(joint_frames.poses, of.derivatives),
            self.rest_rates(joint_frames, of.twists),
        )  # fmt: skip

    def multipliers(self, t: Scalar, y: Unknowns) -> Float[Array, " m"]:
        r"""Return the multipliers $\lambda$ of internal constraints and joints, in postprocessing.

        **Returns:** shape (m,), in the order of `Absolute.multipliers`, J.
        **Source:** Lang (6), (40).
        """
        if self.rotation.num_constraints == 0:
            return self.joint_multipliers(t, y)
        from .absolute import Absolute

        system = self._without_rotors(t, y)
        if isinstance(system, System):
            system = system.at_time(jnp.asarray(t, split_chart(y)[0].dtype))
        return Absolute(system, self.rotation).multipliers(t, self.absolute(t, y))

    @compile_method
    def absolute(self, t: Scalar, y: Unknowns) -> Float[Array, " N"]:
        """Return the unknowns in absolute coordinates, in the fixed chart."""
        values, _ = split_chart(y)
        _, _, twists = self.motion(t, y)
        velocities = self.layout.join(twists.linear, self.coordinate_rates(y, twists))
        rest = self.layout.angles_and_states(values)
        return self.layout.join_all(*self.layout.poses(values), velocities, rest)

    def _without_rotors(self, t: Scalar, y: Unknowns) -> System | FixedPointBody:
        """Return the system in which forces represent the rotors of joints."""
        system = self.system
        if not has_joints(system) or not system.has_armature:
            return system
        poses, joint_frames, twists = self.motion(t, y)
        forces = rotor_forces(
            self.prepared_system, t, poses, joint_frames, twists, self.accelerations(t, y)
        )
        bare = (
            joint if joint.armatures is None else replace_fields(joint, armature=None)
            for joint in system.joints
        )
        return replace_fields(system, joints=tuple(bare), forces=(*system.forces, *forces))
