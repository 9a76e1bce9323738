"""What formulations in absolute coordinates have in common."""

import abc
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput
from ..forces.base import Kinematics
from ..state import State
from ..system import System, has_joints
from .base import AbstractFormulation
from .charts import Unknowns, constant_chart, join_chart, relative_quaternion, split_chart
from .constrained import constrained_acceleration
from .internal import constraint_drift
from .layout import Layout
from .system_form import SystemAbsolute

if TYPE_CHECKING:
    from .descriptor import Descriptor
    from .reduced_equations import ReducedEquations


class AbstractAbsolute(AbstractFormulation):
    r"""Redundant positions and velocities, $y = (x, a, \dot x, \dot a)$ of each body.

    The ordinary differential equation has the constraints imposed on the acceleration $\ddot a$, in
    closed form. With index 1 to 3 the constraints are equations on accelerations, velocities or
    positions, and the multipliers unknowns. A final class adds its fields, its equations of index
    1 to 3 and its multipliers.
    """

    index: eqx.AbstractVar[int]
    stabilized: eqx.AbstractVar[bool]
    baumgarte: eqx.AbstractVar[tuple[Any, Any] | None]

    @property
    @abc.abstractmethod
    def equations(self) -> "Descriptor | ReducedEquations":
        """The equations of index 1 to 3."""

    @property
    def num_multipliers(self) -> int:
        r"""Number of constraints, internal and of joints, whatever the form of the equations."""
        internal = self.layout.num_bodies * self.rotation.num_constraints
        if not isinstance(self.system, System):
            return internal
        return internal + self.system.num_constraints

    @property
    def has_loops(self) -> bool:
        """Whether joints close loops, so that constraints may be redundant."""
        return has_joints(self.system) and self.system.closes

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """What each of the constraints belongs to, for messages, in the order of `multipliers`."""
        bodies = [getattr(body, "name", "") for body in getattr(self.system, "bodies", [None])]
        internal = [
            f"the rotation coordinates of the body {name!r}" if name else "the rotation coordinates"
            for name in bodies
            for _ in range(self.rotation.num_constraints)
        ]
        if self.of_system is None:
            return tuple(internal)
        names = self.of_system.system.closing_names
        owners = self.of_system.mechanics.constraint_owners()
        return *internal, *(f"the joint {names[i]!r}" for i in owners)

    @property
    def indices(self) -> tuple[int, ...]:
        r"""Differentiation index of each unknown, as solvers want it for their error estimate.

        Multipliers of the index-1 equations count as index 2: they stand in one equation with
        $\dot v$ and have its errors, which are by $1/h$ larger than those of $v$.
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

    def vector_field(self, t: Float[Array, ""], y: Unknowns, args: Any = None) -> Unknowns:
        if self.index != 0:
            raise ValueError(
                f"`{type(self).__name__}(index={self.index})` is a differential-algebraic "
                "equation: it has no vector field. Use `residual`, or `mass_matrix` and "
                "`right_hand_side`, with a solver of such equations, or index=0."
            )
        return self.ordinary_field(t, y)

    @abc.abstractmethod
    def ordinary_field(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        r"""Right-hand side $\dot y$ of the ordinary differential equation, index 0."""

    def residual(
        self, t: Float[Array, ""], y: Float[Array, " N"], y_dot: Float[Array, " N"]
    ) -> Float[Array, " N"]:
        r"""Residual $F(t, y, \dot y)$ of the equations, zero along a motion.

        For index 1 to 3 the unknowns are $y = (q, v, \lambda)$ (joint angles that are unknowns
        before $\lambda$). **Source:** Lang (1), (3), (4).
        """
        return self.mass_matrix(t, y) @ y_dot - self.right_hand_side(t, y)

    def mass_matrix(self, t: Float[Array, ""], y: Float[Array, " N"]) -> Float[Array, "N N"]:
        r"""Matrix $A$ of $A(t, y)\,\dot y = b(t, y)$, singular unless the index is 0."""
        if self.index == 0:
            return jnp.eye(y.size, dtype=y.dtype)
        return self.equations.mass(jnp.asarray(t, y.dtype), y, self.index)

    def right_hand_side(self, t: Float[Array, ""], y: Float[Array, " N"]) -> Float[Array, " N"]:
        r"""Right-hand side $b$ of $A(t, y)\,\dot y = b(t, y)$."""
        if self.index == 0:
            return split_chart(self.vector_field(t, y))[0]
        return self.equations.right_hand_side(jnp.asarray(t, y.dtype), y, self.index)

    def project(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        if self.index == 0:
            return self.explicit_projection(t, y)
        size, values = self.layout.size, split_chart(y)[0]
        projected = split_chart(self.explicit_projection(t, values[:size]))[0]
        return jnp.concatenate([projected, values[size:]])

    @property
    def of_system(self) -> SystemAbsolute | None:
        """The same formulation for a system, `None` for a `FixedPointBody`."""
        system = self.system
        if not isinstance(system, System):
            return None
        return SystemAbsolute(system, self.rotation, self.built)

    @property
    def layout(self) -> Layout:
        if self.of_system is not None:
            return self.of_system.layout
        n = self.rotation.num_coordinates
        return Layout(1, False, n, n)

    def pack(
        self,
        state: State,
        reference: Float[Array, "L 4"] | None = None,
        t: ArrayInput = 0.0,
    ) -> Float[Array, " N"]:
        if self.of_system is not None:
            return self.of_system.pack(state, reference, t)
        p = relative_quaternion(state.orientation[0], reference, 0)
        a = self.rotation.from_quaternion(p)
        return jnp.concatenate([a, self.rotation.rate(a, state.angular_velocity[0])])

    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
        if self.of_system is not None:
            return self.of_system.kinematics(t, y)
        values, reference = split_chart(y)
        omega = self.rotation.angular_velocity(*self._coordinates(y))
        return Kinematics((), (self.rotation_matrix(values, reference, 0),), (), (omega,))

    def index_0_field(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        r"""Right-hand side $\dot y$ by closed forms of the accelerations."""
        if self.of_system is not None:
            return self.of_system.vector_field(t, y)
        moment = self._body.moment(t, self.kinematics(t, y))
        a, a_dot = self._coordinates(y)
        inertia = self._body.inertia
        a_ddot = constrained_acceleration(self.rotation, a, a_dot, inertia, moment)
        return constant_chart(jnp.concatenate([a_dot, a_ddot]), y)

    def drift(self, t: Float[Array, ""], y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        if self.of_system is not None:
            return self.of_system.drift(t, y)
        return constraint_drift(self.rotation, *self._coordinates(y))

    def explicit_projection(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        """Unknowns moved onto the constraints: in closed form, of joints by Newton steps."""
        if not (self.rotation.num_constraints or has_joints(self.system)):
            return y
        if self.of_system is not None:
            return self.of_system.project(t, y)
        a, a_dot = self._coordinates(y)
        a = self.rotation.project(a)
        a_dot = self.rotation.project_rate(a, a_dot, self._body.inertia)
        return join_chart(jnp.concatenate([a, a_dot]), y)

    def split_coordinates(self, y: Unknowns) -> tuple[Float[Array, "L n"], Float[Array, "L n"]]:
        r"""Rotation coordinates $a$ and rates $\dot a$ of each body."""
        values, _ = split_chart(y)
        return self.layout.poses(values)[1], self.layout.twists(values)[1]

    def _coordinates(self, y: Unknowns) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        a, a_dot = self.split_coordinates(y)
        return a[0], a_dot[0]
