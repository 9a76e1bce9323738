"""Absolute coordinates: redundant positions and velocities."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..forces.base import Kinematics
from ..rotations.base import AbstractRotation
from ..state import State
from ..system import System, as_mechanics
from .base import AbstractFormulation
from .charts import Unknowns, constant_chart, join_chart, relative_quaternion, split_chart
from .constrained import constrained_acceleration
from .internal import check_rotation, constraint_drift, system_multipliers
from .layout import Layout


class Absolute(AbstractFormulation):
    r"""The index-reduced equations in absolute coordinates, $y = (x, a, \dot x, \dot a)$ of each body.

    The constraints are imposed on the acceleration, so that position drifts quadratically and
    velocity linearly unless they are projected.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (whose unknowns are $a$, $\dot a$ alone).
    - `rotation`: the parametrization. `rj.Quaternion(radial_inertia=...)` chooses the fictive
      radial moment of inertia; off the manifold it changes the equations, on it only $\lambda$.
    - `index`: differentiation index of the equations; this version has 0, the ordinary
      differential equation with the multipliers eliminated.
    - `recharting`: as in `NullSpace`.

    **Raises:** `ValueError` for another index.
    **Source:** Lang (6), (23), (40).
    """

    system: System | FixedPointBody
    rotation: AbstractRotation
    index: int = eqx.field(static=True)
    recharting: bool = eqx.field(static=True)

    def __init__(
        self,
        system: System | FixedPointBody,
        rotation: AbstractRotation | None = None,
        index: int = 0,
        recharting: bool = True,
    ):
        if index != 0:
            raise ValueError(
                f"`Absolute(index={index!r})` is not supported in this version; use index=0, the "
                "ordinary differential equation, or `NullSpace` (equivalent to index 2)."
            )
        as_mechanics(system)
        self.system = system
        self.rotation = check_rotation(rotation)
        self.index = index
        self.recharting = recharting and self.rotation.num_constraints == 0

    @property
    def layout(self) -> Layout:
        mechanics, n = self.mechanics, self.rotation.num_coordinates
        return Layout(mechanics.num_bodies, mechanics.translates, n, n)

    def pack(self, state: State, reference: Float[Array, "L 4"] | None = None) -> Float[Array, " N"]:
        coordinates, rates = [], []
        for i in range(self.layout.num_bodies):
            p = relative_quaternion(state.orientation[i], reference, i)
            a = self.rotation.from_quaternion(p)
            coordinates.append(a)
            rates.append(self.rotation.rate(a, state.angular_velocity[i]))
        return self.layout.join(state.position, coordinates, state.velocity, rates)

    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
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

    def vector_field(self, t: Float[Array, ""], y: Unknowns, args: Any = None) -> Unknowns:
        kinematics = self.kinematics(t, y)
        mechanics = self.mechanics
        wrenches = mechanics.wrenches(t, kinematics)
        coordinates, rates = self._coordinates(y)
        accelerations = [
            constrained_acceleration(self.rotation, a, a_dot, inertia, moment)
            for a, a_dot, inertia, (_, moment) in zip(
                coordinates, rates, mechanics.inertias(), wrenches, strict=True
            )
        ]
        linear = mechanics.linear_accelerations(wrenches, kinematics)
        rate = self.layout.join(kinematics.velocities, rates, linear, accelerations)
        return constant_chart(rate, y)

    def drift(
        self, t: Float[Array, ""], y: Unknowns
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return constraint_drift(self.rotation, *self._coordinates(y))

    def project(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        if self.rotation.num_constraints == 0:
            return y
        values, _ = split_chart(y)
        layout, bodies = self.layout, range(self.layout.num_bodies)
        shifts = layout.translates
        coordinates, rates = self._coordinates(y)
        coordinates = [self.rotation.project(a) for a in coordinates]
        projected = layout.join(
            [layout.position(values, i) for i in bodies] if shifts else (),
            coordinates,
            [layout.velocity(values, i) for i in bodies] if shifts else (),
            [
                self.rotation.project_rate(a, a_dot)
                for a, a_dot in zip(coordinates, rates, strict=True)
            ],
        )
        return join_chart(projected, y)

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        r"""Multipliers $\lambda$ of the internal constraints, in postprocessing, J.

        **Returns:** shape (L m,), in the order of `rotation.constraint`.
        **Source:** Lang (6), (40).
        """
        kinematics = self.kinematics(t, y)
        return system_multipliers(
            self.rotation, self.mechanics, t, kinematics, *self._coordinates(y)
        )

    def _coordinates(self, y: Unknowns):
        values, _ = split_chart(y)
        bodies = range(self.layout.num_bodies)
        return (
            [self.layout.coordinates(values, i) for i in bodies],
            [self.layout.rates(values, i) for i in bodies],
        )
