r"""Mass matrix, forces and Jacobians of models in generalised velocities.

The equations of motion are $M \dot\nu + h = \tau$, and with closed loops $\tau + J^T \lambda$.
"""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from ..checks import ArrayInput, vector_leaf
from ..mechanics import rate_labels
from ..mechanics.dynamics.loads import apply_mass, free_forces
from ..mechanics.dynamics.loops import consistent_rates, factor_loops, loop_gradient
from ..mechanics.dynamics.mass_matrix import generalised_forces, mass_matrix, solve
from ..mechanics.dynamics.select import compute_accelerations
from ..mechanics.kinematics.bias_accelerations import bias_accelerations
from ..mechanics.kinematics.poses import joint_frames_at, kinematics_for_forces
from ..mechanics.kinematics.trees import (
    MotionSubspace,
    motion_subspace,
    motions_and_twists,
    null_space,
    reference_points,
)
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import PreparedSystem
from ..rotations.base import Rates
from ..rotations.matrix import product
from ..rotations.so3 import skew
from .actuation import actuated_rates, check_forces, forces_of_actuated
from .base import AbstractFormulation
from .binding import compile_free_method, compile_method
from .charts import Unknowns, join_chart, split_chart
from .holding import Holding, Modes, held_coordinates, hold, modes_at, motion_responses, solve_held


class SystemConfiguration(eqx.Module):
    """A pose of the whole system, with its consistent generalised velocities in body components."""

    prepared: PreparedSystem
    t: Scalar
    poses: Poses
    joint_frames: JointFrames
    nu: Float[Array, " f"]

    def moving(self) -> MotionSubspace:
        """Return the motions that the generalised velocities cause."""
        at = reference_points(self.prepared, self.poses)
        return MotionSubspace(motion_subspace(self.prepared, self.poses, self.joint_frames, at), at)


class AbstractMinimalRates(AbstractFormulation):
    r"""A formulation with generalised velocities $\nu$, named by `rate_labels`."""

    rates: eqx.AbstractVar[Rates]

    def minimal(self, poses: Poses, values: Float[Array, " N"]) -> Float[Array, " f"]:
        r"""Return $\nu$ of the trees, angular velocities of free bodies in body components."""
        return self.layout.velocities(values)

    def as_unknowns(self, poses: Poses, nu: Float[Array, " f"]) -> Float[Array, " f"]:
        """Return the inverse of `minimal`, of generalised velocities or of their derivatives."""
        return nu

    @property
    def num_rates(self) -> int:
        r"""Number of generalised velocities $f$ of the trees."""
        return self.layout.velocity_size

    @property
    def rate_labels(self) -> tuple[str, ...]:
        """Names of the generalised velocities, in their order (see `rj.rate_labels`)."""
        return rate_labels(self.multibody)

    @compile_free_method
    def mass_matrix(self, t: Scalar, y: Unknowns) -> Float[Array, "f f"]:
        r"""Return the mass matrix $M$ of the generalised velocities.

        $\frac12 \nu^T M \nu$ is the kinetic energy. With closed loops $M$ is of the trees.
        **Returns:** shape (f, f), SI units. **Source:** Lang (11), $T^T M T$.
        """
        at = self.configuration(t, y)
        return self._in_rates(y, mass_matrix(at.prepared, at.poses, at.moving()))

    @compile_method
    def bias_forces(self, t: Scalar, y: Unknowns) -> Float[Array, " f"]:
        r"""Return the generalised forces $h$ with $M \dot\nu + h = \tau$.

        Gyroscopic and centrifugal forces, less all forces of the model: gravity, springs, motors,
        damping. $\tau$ are further forces, zero in a simulation.
        **Returns:** shape (f,), N and N m.
        """
        at = self.configuration(t, y)
        prepared, moving = at.prepared, at.moving()
        motions, twists = motions_and_twists(
            prepared, at.t, at.poses, at.joint_frames, moving.reference_points, at.nu
        )
        bias = bias_accelerations(
            prepared, at.t, at.poses, at.joint_frames, moving.reference_points, motions, at.nu
        )
        forces = free_forces(
            prepared, at.t, kinematics_for_forces(prepared, at.poses, at.joint_frames, twists)
        )
        forces = forces - apply_mass(prepared, bias[:, :3], bias[:, 3:])
        return self._out_rates(y, -generalised_forces(prepared, at.poses, moving, forces))

    def inverse_dynamics(
        self,
        t: Scalar,
        y: Unknowns,
        rates_dot: ArrayInput,
        actuated: str | Sequence[str] | None = None,
    ) -> Float[Array, " f"]:
        r"""Return the generalised forces $\tau$ beyond those of the model that cause accelerations.

        Without loops $\tau = M \dot\nu + h$. With loops constraint forces can carry a part: the
        result has the least norm, with a length of the mechanism (see `docs/concepts.md`) as unit.
        `rates_dot` has to satisfy the loops: a part that they forbid has no effect.

        With `actuated` the forces are those of these joints alone, all others are passive: as many
        actuated rates as degrees of freedom have unique forces, more have those of least norm,
        fewer raise an error unless they suffice (to 1.5e-8 of the largest force, or of that for 1
        rad/s^2; to 3e-4 in single precision).

        **Arguments:** `t`, `y`, time, s, and unknowns; `rates_dot`, $\dot\nu$, shape (f,), in the
        order of `rate_labels`; `actuated`, names of tree joints, or single entries of
        `rate_labels`.
        **Returns:** shape (f,), N and N m; zero where nothing is actuated.
        **Errors:** `ValueError` for another shape, an unknown or prescribed joint or one that
        closes a loop, and for actuated joints that cannot cause these accelerations.
        """
        rates_dot = self._of_rates(rates_dot, "inverse_dynamics(rates_dot=...)")
        if actuated is None:
            return self._inverse_dynamics(t, y, rates_dot)
        rows = actuated_rates(self.multibody, self.rate_labels, actuated)
        forces, rest = self._actuated_forces(t, y, rates_dot, rows)
        return check_forces(forces, rest, self.rate_labels, actuated)

    @compile_method
    def _actuated_forces(
        self, t: Scalar, y: Unknowns, rates_dot: Float[Array, " f"], rows: frozenset[int]
    ) -> tuple[Float[Array, " f"], Float[Array, " f"]]:
        M, at = self.mass_matrix(t, y), self.configuration(t, y)
        tau = M @ rates_dot + self.bias_forces(t, y)
        loops = None
        if self.multibody.has_loops:
            loops = loop_gradient(at.prepared, at.t, at.poses, at.joint_frames)
        return forces_of_actuated(M, tau, rows, loops)

    @compile_method
    def _inverse_dynamics(
        self, t: Scalar, y: Unknowns, rates_dot: Float[Array, " f"]
    ) -> Float[Array, " f"]:
        tau = self.mass_matrix(t, y) @ rates_dot + self.bias_forces(t, y)
        if not self.multibody.has_loops:
            return tau
        at = self.configuration(t, y)
        loops = loop_gradient(at.prepared, at.t, at.poses, at.joint_frames)
        scaled = loops.scale * tau
        carried = loops.inverse() @ (loops.matrix @ scaled)
        return (scaled - carried) / loops.scale

    @compile_method
    def forward_dynamics(
        self, t: Scalar, y: Unknowns, forces: ArrayInput | None = None
    ) -> Float[Array, " f"]:
        r"""Return the accelerations $\dot\nu$ under generalised forces beyond those of the model.

        **Arguments:** `t`, `y`, time, s, and unknowns; `forces`, shape (f,), N and N m, in the
        order of `rate_labels`; none if left out, as in a simulation.
        **Returns:** shape (f,).
        **Errors:** `ValueError` for another shape.
        """
        if forces is None:
            values, _ = split_chart(self.vector_field(t, y))
            return self.layout.velocities(values)
        forces = self._of_rates(forces, "forward_dynamics(forces=...)")
        at = self.configuration(t, y)
        turn = self._turn(y)
        efforts = forces if turn is None else turn.T @ forces
        motion = compute_accelerations(at.prepared, at.t, at.poses, at.joint_frames, at.nu, efforts)
        rates_dot = motion.derivatives
        # The derivative of the angular velocity in space is R times that in the body.
        return rates_dot if turn is None else turn @ rates_dot

    def _of_rates(self, values: ArrayInput, argument: str) -> Float[Array, " f"]:
        values = jnp.asarray(values)
        if values.shape != (self.num_rates,):
            raise ValueError(
                f"`{argument}` takes shape ({self.num_rates},), one for each of "
                f"{list(self.rate_labels)}; got {values.shape}."
            )
        return values

    def forward_kinematics(self, t: Scalar, y: Unknowns) -> dict[str, tuple[Vector3, Matrix3]]:
        """Return the pose of every body (`"body"` for a `FixedPointBody`) and frame by its name.

        **Returns:** position of the centre of mass (of the fixed point; of the frame's origin),
        (3,) m, space components, and rotation matrix (3, 3), body (frame) to space.
        """
        kinematics = self.kinematics(t, y)
        poses = {
            body.name: (jnp.asarray(x), jnp.asarray(R))
            for body, x, R in zip(
                self.multibody.bodies, kinematics.positions, kinematics.rotations, strict=True
            )
        }
        return poses | self.frame_poses(t, y)

    def jacobian(
        self,
        t: Scalar,
        y: Unknowns,
        body: str,
        point: ArrayInput = (0.0, 0.0, 0.0),
        axes: Literal["body", "space"] = "body",
    ) -> Float[Array, "6 f"]:
        r"""Return the Jacobian of the velocity of a point and of the angular velocity in $\nu$.

        **Arguments:** `t`, `y`, time, s, and unknowns; `body`, its name or that of a `Frame`;
        `point`, from the centre of mass (of a `FixedPointBody`: from the fixed point; of a frame:
        from its origin), (3,) m, components of the body (of the frame); `axes`, of the angular
        velocity, `"body"` for those of the body (of the frame).
        **Returns:** shape (6, f): velocity of the point, space components, then angular velocity in
        components of `axes`. Prescribed motions add terms to both that do not depend on $\nu$.
        **Errors:** `ValueError` for an unknown name, a wrong shape, or other axes.
        """
        if axes not in ("body", "space"):
            raise ValueError(f'`jacobian(axes=...)` must be "body" or "space"; got {axes!r}.')
        return self._jacobian(t, y, body, vector_leaf(point, "jacobian(point=...)"), axes)

    @compile_method
    def _jacobian(self, t: Scalar, y: Unknowns, body: str, u: Vector3, axes: str) -> Array:
        at = self.configuration(t, y)
        i, frame = at.prepared.system.locate(body)
        T, R = null_space(at.prepared, at.poses, at.joint_frames)[i], at.poses.rotations[i]
        u = u.astype(R.dtype) if frame is None else frame.on_body(u).astype(R.dtype)
        linear = T[:3] - product(R, skew(u)) @ T[3:]
        angular = R @ T[3:] if axes == "space" else T[3:]
        if frame is not None and axes == "body":
            angular = frame.rotation.T @ angular
        J = jnp.concatenate([linear, angular])
        turn = self._turn(y)
        return J if turn is None else J @ turn.T

    def jacobian_rate(
        self,
        t: Scalar,
        y: Unknowns,
        body: str,
        point: ArrayInput = (0.0, 0.0, 0.0),
        axes: Literal["body", "space"] = "body",
    ) -> Float[Array, "6 f"]:
        r"""Return the time derivative of `jacobian` along the motion, shape (6, f)."""
        t = jnp.asarray(t, split_chart(y)[0].dtype)
        moved = (jnp.ones_like(t), self.vector_field(t, y))
        return jax.jvp(lambda t, y: self.jacobian(t, y, body, point, axes), (t, y), moved)[1]

    @compile_method
    def apply_impulse(
        self,
        t: Scalar,
        y: Unknowns,
        body: str,
        impulse: ArrayInput,
        point: ArrayInput = (0.0, 0.0, 0.0),
        moment: ArrayInput = (0.0, 0.0, 0.0),
    ) -> Unknowns:
        r"""Return the unknowns after an impulse, which changes velocities and no pose.

        Joints respond with impulses of their own: $M \Delta\nu = J^T p$ on the motions that all of
        them leave free.

        **Arguments:** `t`, `y`, time, s, and unknowns; `body`, its name or that of a `Frame`;
        `impulse`, (3,) N s, space components; `point`, where it acts, from the centre of mass, (3,)
        m, body components; `moment`, an angular impulse, (3,) N m s, body components (of a frame:
        from its origin, in its components).
        **Errors:** `ValueError` for an unknown body or wrong shapes.
        """
        parts = {"impulse": impulse, "moment": moment}
        p = [vector_leaf(value, f"apply_impulse({name}=...)") for name, value in parts.items()]
        f = self.jacobian(t, y, body, point).T @ jnp.concatenate(p)
        return self.with_rates(y, self.rates_of(y) + self.impulse_response(t, y, f))

    @compile_method
    def impulse_response(
        self, t: Scalar, y: Unknowns, impulses: Float[Array, " f"]
    ) -> Float[Array, " f"]:
        r"""Return the change $\Delta\nu$ due to generalised impulses, (f,), N s and N m s.

        Joints, including locked ones, and closed contacts respond with impulses of their own, as in
        `apply_impulse`.
        """
        response = self.free_response(t, y, impulses)
        modes = self.modes(y)
        if modes is None or not modes.are_locks.any():
            return response
        response = response - self.locking_change(t, y, modes, response)
        return modes.stop_rates(response, modes.are_locked)

    @compile_free_method
    def free_response(
        self, t: Scalar, y: Unknowns, impulses: Float[Array, " f"]
    ) -> Float[Array, " f"]:
        """Return `impulse_response` with all locks open."""
        if not self.multibody.has_loops:
            return solve(self.mass_matrix(t, y), impulses)
        at = self.configuration(t, y)
        return factor_loops(at.prepared, at.t, at.poses, at.joint_frames).response(impulses)

    def locking_change(
        self, t: Scalar, y: Unknowns, modes: Modes, nu: Float[Array, " f"]
    ) -> Float[Array, " f"]:
        """Return the change of velocities that stops the locked coordinates, with its sign changed.

        The impulses that lock the joints cause it: momentum is conserved in all other motions.
        """
        S, responses, A = motion_responses(self, t, y, modes)
        modes = modes._replace(held=modes.are_locked)
        return responses.T @ solve_held(A, modes, S @ nu)

    def modes(self, y: Unknowns) -> Modes | None:
        """Return the modes of joints that friction or locks hold, and of contacts; `None` without
        any."""
        coordinates, contacts = held_coordinates(self), self.multibody.contacts
        if not (coordinates or contacts):
            return None
        return modes_at(coordinates, self.held_inputs(y), contacts)

    @compile_free_method
    def holding(self, t: Scalar, y: Unknowns) -> Holding:
        """Return the efforts on the coordinates with modes, and the motion that they cause."""
        modes = self.modes(y)
        assert modes is not None
        return hold(self, t, y, modes, self.rates_of(self.vector_field(t, y)))

    @compile_free_method
    def held_field(self, t: Scalar, y: Unknowns) -> Unknowns:
        """Return the rate of the unknowns, with the efforts where any are needed."""
        modes, free = self.modes(y), self.vector_field(t, y)
        assert modes is not None
        nu_dot = jax.lax.cond(
            jnp.any(modes.held),
            lambda nu_dot: hold(self, t, y, modes, nu_dot).nu_dot,
            lambda nu_dot: nu_dot,
            self.rates_of(free),
        )
        return self.with_rates(free, nu_dot)

    def rates_of(self, y: Unknowns) -> Float[Array, " f"]:
        r"""Return the generalised velocities $\nu$ among the unknowns."""
        return self.layout.velocities(split_chart(y)[0])

    def with_rates(self, y: Unknowns, nu: Float[Array, " f"]) -> Unknowns:
        """Return the unknowns with other generalised velocities."""
        return join_chart(self.layout.with_velocities(split_chart(y)[0], nu), y)

    @compile_free_method
    def configuration(self, t: Scalar, y: Unknowns) -> SystemConfiguration:
        """Return the poses, joints and generalised velocities in body components."""
        return self.configuration_prepared(t, y)

    def configuration_prepared(self, t: Scalar, y: Unknowns) -> SystemConfiguration:
        """Return `configuration` of a prepared model."""
        values, _ = split_chart(y)
        t = jnp.asarray(t, values.dtype)
        poses, prepared = self.poses(t, y), self.prepared_system
        joint_frames = joint_frames_at(prepared, poses)
        nu = self.minimal(poses, values)
        nu = consistent_rates(prepared, t, poses, joint_frames, nu)
        return SystemConfiguration(prepared, t, poses, joint_frames, nu)

    def _turn(self, y: Unknowns) -> Float[Array, "f f"] | None:
        r"""Return $P$ with $\nu = P \nu_{body}$ for rates in space components, otherwise `None`."""
        if self.rates == "body":
            return None
        values, _ = split_chart(y)
        poses = self.poses(jnp.zeros((), values.dtype), y)
        each = jax.vmap(lambda nu: self.as_unknowns(poses, nu), out_axes=1)
        return each(jnp.eye(self.num_rates, dtype=values.dtype))

    def _in_rates(self, y: Unknowns, M: Float[Array, "f f"]) -> Float[Array, "f f"]:
        turn = self._turn(y)
        return M if turn is None else turn @ M @ turn.T

    def _out_rates(self, y: Unknowns, h: Float[Array, " f"]) -> Float[Array, " f"]:
        turn = self._turn(y)
        return h if turn is None else turn @ h
