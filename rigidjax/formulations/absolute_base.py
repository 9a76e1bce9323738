"""What formulations in absolute coordinates have in common."""

from jaxtyping import Array, Float

from ..checks import ArrayInput
from ..forces.base import Kinematics
from ..state import State
from ..system import has_joints
from .base import AbstractFormulation
from .charts import Unknowns, constant_chart, join_chart, relative_quaternion, split_chart
from .constrained import constrained_acceleration
from .internal import constraint_drift
from .jointed import JointedAbsolute
from .layout import Layout


class AbstractAbsolute(AbstractFormulation):
    r"""Redundant positions and velocities, $y = (x, a, \dot x, \dot a)$ of each body.

    The constraints are imposed on the acceleration $\ddot a$, in closed form. A final class adds
    its fields and the multipliers of its equations.
    """

    @property
    def jointed(self) -> JointedAbsolute | None:
        """The same formulation for a system with joints, `None` without."""
        system = self.system
        if not has_joints(system):
            return None
        return JointedAbsolute(system, self.rotation)

    @property
    def layout(self) -> Layout:
        if self.jointed is not None:
            return self.jointed.layout
        mechanics, n = self.mechanics, self.rotation.num_coordinates
        return Layout(mechanics.num_bodies, mechanics.translates, n, n)

    def pack(
        self,
        state: State,
        reference: Float[Array, "L 4"] | None = None,
        t: ArrayInput = 0.0,
    ) -> Float[Array, " N"]:
        if self.jointed is not None:
            return self.jointed.pack(state, reference, t)
        coordinates, rates = [], []
        for i in range(self.layout.num_bodies):
            p = relative_quaternion(state.orientation[i], reference, i)
            a = self.rotation.from_quaternion(p)
            coordinates.append(a)
            rates.append(self.rotation.rate(a, state.angular_velocity[i]))
        return self.layout.join(state.position, coordinates, state.velocity, rates)

    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
        if self.jointed is not None:
            return self.jointed.kinematics(t, y)
        values, reference = split_chart(y)
        layout, bodies = self.layout, range(self.layout.num_bodies)
        rotations = tuple(self.rotation_matrix(values, reference, i) for i in bodies)
        omegas = tuple(
            self.rotation.angular_velocity(layout.coordinates(values, i), layout.rates(values, i))
            for i in bodies
        )
        if not layout.translates:
            return Kinematics((), rotations, (), omegas)
        positions = tuple(layout.position(values, i) for i in bodies)
        velocities = tuple(layout.velocity(values, i) for i in bodies)
        return Kinematics(positions, rotations, velocities, omegas)

    def index_0_field(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        r"""Right-hand side $\dot y$ of the ordinary differential equation."""
        if self.jointed is not None:
            return self.jointed.vector_field(t, y)
        kinematics = self.kinematics(t, y)
        mechanics = self.mechanics
        wrenches = mechanics.wrenches(t, kinematics)
        coordinates, rates = self.split_coordinates(y)
        accelerations = [
            constrained_acceleration(self.rotation, a, a_dot, inertia, moment)
            for a, a_dot, inertia, (_, moment) in zip(
                coordinates, rates, mechanics.inertias(), wrenches, strict=True
            )
        ]
        linear = mechanics.linear_accelerations(wrenches, kinematics)
        rate = self.layout.join(kinematics.velocities, rates, linear, accelerations)
        return constant_chart(rate, y)

    def drift(self, t: Float[Array, ""], y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        if self.jointed is not None:
            return self.jointed.drift(t, y)
        return constraint_drift(self.rotation, *self.split_coordinates(y))

    def explicit_projection(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        """Unknowns moved onto the constraints in closed form (by Newton steps with joints)."""
        if self.jointed is not None:
            return self.jointed.project(t, y)
        if self.rotation.num_constraints == 0:
            return y
        values, _ = split_chart(y)
        layout, bodies = self.layout, range(self.layout.num_bodies)
        shifts = layout.translates
        coordinates, rates = self.split_coordinates(y)
        coordinates = [self.rotation.project(a) for a in coordinates]
        projected = layout.join(
            [layout.position(values, i) for i in bodies] if shifts else (),
            coordinates,
            [layout.velocity(values, i) for i in bodies] if shifts else (),
            [
                self.rotation.project_rate(a, a_dot, I)
                for a, a_dot, I in zip(coordinates, rates, self.mechanics.inertias(), strict=True)
            ],
        )
        return join_chart(projected, y)

    def split_coordinates(
        self, y: Unknowns
    ) -> tuple[list[Float[Array, " n"]], list[Float[Array, " n"]]]:
        r"""Rotation coordinates $a$ and rates $\dot a$ of each body."""
        values, _ = split_chart(y)
        bodies = range(self.layout.num_bodies)
        return (
            [self.layout.coordinates(values, i) for i in bodies],
            [self.layout.rates(values, i) for i in bodies],
        )
