"""Base class of formulations in absolute coordinates."""

import abc
import functools
from typing import ClassVar, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..annotations import Args, Scalar
from ..mechanics import has_joints
from ..mechanics.dynamics.loads import (
    apply_mass,
    free_accelerations_and_moments,
    gyroscopic_moments,
)
from ..mechanics.dynamics.projections import constrained_accelerations, project_twists
from ..mechanics.kinematics.constraints import constraint_owners
from ..mechanics.kinematics.poses import Twists, joint_frames_at, kinematics_for_forces
from ..mechanics.stacked.joints import JointFrames, Poses
from ..small_arrays import vmap_rows
from .base import AbstractFormulation
from .binding import compile_method
from .charts import Unknowns, constant_chart, join_chart, split_chart
from .constrained import constrained_acceleration
from .layout import Layout


class MultiplierEquations(Protocol):
    r"""Matrix and right-hand side of $A(t, y)\,\dot y = b(t, y)$ for index 1 to 3."""

    @property
    def model(self) -> "AbstractAbsolute":
        """The formulation."""
        ...

    def mass_times(
        self, t: Scalar, y: Float[Array, " N"], rate: Float[Array, " N"], index: int
    ) -> Float[Array, " N"]:
        r"""Return $A\,\dot y$, (N,)."""
        ...

    def mass(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, "N N"]:
        """Return the matrix $A$, (N, N)."""
        ...

    def right_hand_side(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, " N"]:
        """Return the right-hand side $b$, (N,)."""
        ...


class AbstractAbsolute(AbstractFormulation):
    r"""Redundant positions and velocities, $y = (x, a, \dot x, \dot a)$ of each body.

    The ordinary differential equation has the constraints imposed on the acceleration $\ddot a$, in
    closed form. With index 1 to 3 the constraints are equations on accelerations, velocities or
    positions, and the multipliers unknowns. A final class adds its fields, its equations of index
    1 to 3 and its multipliers.
    """

    index: eqx.AbstractVar[int]
    stabilized: eqx.AbstractVar[bool]
    baumgarte: eqx.AbstractVar[tuple[ArrayLike, ArrayLike] | None]
    needs_all_mass: ClassVar[bool] = True
    takes_armature: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def equations(self) -> MultiplierEquations:
        """The equations of index 1 to 3."""

    @property
    def num_multipliers(self) -> int:
        r"""Number of constraints, internal and of joints, whatever the form of the equations."""
        internal = self.layout.num_bodies * self.rotation.num_constraints
        return internal + self.multibody.num_constraints

    @property
    def has_loops(self) -> bool:
        """Whether joints close loops, so that constraints may be redundant."""
        return has_joints(self.system) and self.system.has_loops

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Descriptions of the constraints for messages, in the order of `multipliers`."""
        system = self.multibody
        of = "the rotation coordinates"
        internal = [
            f"{of} of the body {body.name!r}" if system.translates else of
            for body in system.bodies
            for _ in range(self.rotation.num_constraints)
        ]
        bodies_of_rates = constraint_owners(self.prepared_system)
        return *internal, *(f"the joint {system.closing_names[i]!r}" for i in bodies_of_rates)

    @property
    def indices(self) -> tuple[int, ...]:
        r"""Differentiation index of each unknown, which solvers use in their error estimate.

        Multipliers of the index-1 equations count as index 2: they stand in one equation with
        $\dot v$ and have its errors, which are larger than those of $v$ by a factor of $1/h$.
        """
        layout = self.layout
        place = np.arange(layout.size) - layout.num_positions
        velocities = (place >= 0) & (place < layout.velocity_size)
        if self.index == 0:
            return (0,) * layout.size
        rates = 2 if self.index == 3 else 1
        return (
            *np.where(velocities, rates, 1).tolist(),
            *(max(self.index, 2),) * self.num_algebraic,
        )

    def vector_field(self, t: Scalar, y: Unknowns, args: Args = None) -> Unknowns:
        if self.index != 0:
            raise ValueError(
                f"`{type(self).__name__}(index={self.index})` is a differential-algebraic "
                "equation: it has no vector field. Use `residual`, or `mass_matrix` and "
                "`right_hand_side`, with a solver of such equations, or index=0."
            )
        return self.ordinary_field(t, y)

    @abc.abstractmethod
    def ordinary_field(self, t: Scalar, y: Unknowns) -> Unknowns:
        r"""Return the right-hand side $\dot y$ of the ordinary differential equation, index 0."""

    def residual(
        self, t: Scalar, y: Float[Array, " N"], y_dot: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        r"""Return the residual $F(t, y, \dot y)$ of the equations, zero along a motion.

        For index 1 to 3 the unknowns are $y = (q, v, \lambda)$ (joint angles that are unknowns
        before $\lambda$). **Source:** Lang (1), (3), (4).
        """
        return self.mass_matrix(t, y) @ y_dot - self.right_hand_side(t, y)

    def mass_matrix(self, t: Scalar, y: Float[Array, " N"]) -> Float[Array, "N N"]:
        r"""Return the matrix $A$ of $A(t, y)\,\dot y = b(t, y)$, singular unless the index is 0."""
        if self.index == 0:
            return jnp.eye(y.size, dtype=y.dtype)
        return self.equations.mass(jnp.asarray(t, y.dtype), y, self.index)

    def right_hand_side(self, t: Scalar, y: Float[Array, " N"]) -> Float[Array, " N"]:
        r"""Return the right-hand side $b$ of $A(t, y)\,\dot y = b(t, y)$."""
        if self.index == 0:
            return split_chart(self.vector_field(t, y))[0]
        return self.equations.right_hand_side(jnp.asarray(t, y.dtype), y, self.index)

    def project(self, t: Scalar, y: Unknowns) -> Unknowns:
        if self.index == 0:
            return self.explicit_projection(t, y)
        size, values = self.layout.size, split_chart(y)[0]
        projected = split_chart(self.explicit_projection(t, values[:size]))[0]
        return jnp.concatenate([projected, values[size:]])

    def explicit_projection(self, t: Scalar, y: Unknowns) -> Unknowns:
        """Project onto the constraints: rotations in closed form, joints by Newton steps."""
        if not (self.rotation.num_constraints or has_joints(self.system)):
            return y
        return self._project(t, y)

    @compile_method
    def _project(self, t: Scalar, y: Unknowns) -> Unknowns:
        y = self.close_joints(t, y)
        values, _ = split_chart(y)
        prepared, (x, a) = self.prepared_system, self.layout.poses(values)
        v, a_dot = self.layout.twists(values)
        a_dot = vmap_rows(self.rotation.project_rate, a, a_dot, prepared.inertias)
        if not prepared.is_free:
            poses = self.poses(t, y)
            twists = Twists(v, jax.vmap(self.rotation.angular_velocity)(a, a_dot))
            twists = project_twists(prepared, t, poses, joint_frames_at(prepared, poses), twists)
            v, a_dot = twists.linear, jax.vmap(self.rotation.rate)(a, twists.angular)
        velocities = self.layout.join(v, a_dot)
        rest = self.layout.angles_and_states(values)
        return join_chart(self.layout.join_all(x, a, velocities, rest), y)

    @property
    def layout(self) -> Layout:
        system, n = self.multibody, self.rotation.num_coordinates
        return Layout(
            system.num_bodies, system.translates, n, n, None, len(self.unwrapped_joints),
            system.num_states,
        )  # fmt: skip

    def velocities_of(
        self,
        t: Scalar,
        poses: Poses,
        joint_frames: JointFrames,
        coordinates: Float[Array, "k n"],
        twists: Twists,
    ):
        a_dot = jax.vmap(self.rotation.rate)(coordinates, twists.angular)
        return self.layout.join(twists.linear, a_dot)

    def motion(self, t: Scalar, y: Unknowns):
        v, _ = self.layout.twists(split_chart(y)[0])
        poses = self.poses(t, y)
        omega = vmap_rows(self.rotation.angular_velocity, *self.split_coordinates(y))
        return poses, joint_frames_at(self.prepared_system, poses), Twists(v, omega)

    def coordinate_rates(self, y: Unknowns, twists: Twists):
        return self.split_coordinates(y)[1]

    @compile_method
    def accelerations(self, t: Scalar, y: Unknowns):
        w_dot = constrained_accelerations(self.prepared_system, t, *self.motion(t, y))
        return Twists(w_dot[:, :3], w_dot[:, 3:])

    @compile_method
    def index_0_field(self, t: Scalar, y: Unknowns) -> Unknowns:
        r"""Return the right-hand side $\dot y$ by closed forms of the accelerations."""
        prepared, (poses, joint_frames, twists) = self.prepared_system, self.motion(t, y)
        a, a_dot = self.split_coordinates(y)
        if prepared.is_free:
            kinematics = kinematics_for_forces(prepared, poses, joint_frames, twists)
            v_dot, moment = free_accelerations_and_moments(prepared, t, kinematics)
        else:
            # The moment, reactions included, that causes this angular acceleration; the internal
            # constraints are imposed in closed form.
            w_dot = constrained_accelerations(prepared, t, poses, joint_frames, twists)
            v_dot = w_dot[:, :3]
            moment = apply_mass(prepared, v_dot, w_dot[:, 3:])[:, 3:]
            moment = moment + gyroscopic_moments(prepared, twists.angular)
        of_body = functools.partial(constrained_acceleration, self.rotation)
        a_ddot = vmap_rows(of_body, a, a_dot, prepared.inertias, moment)
        rate = self.layout.join_all(
            twists.linear,
            a_dot,
            self.layout.join(v_dot, a_ddot),
            self.rest_rates(joint_frames, twists),
        )
        return constant_chart(rate, y)

    def split_coordinates(self, y: Unknowns) -> tuple[Float[Array, "L n"], Float[Array, "L n"]]:
        r"""Return rotation coordinates $a$ and rates $\dot a$ of each body."""
        values, _ = split_chart(y)
        return self.layout.poses(values)[1], self.layout.twists(values)[1]
