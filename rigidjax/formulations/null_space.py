"""Null-space coordinates: redundant positions, minimal velocities."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..checks import ArrayInput
from ..forces.base import Kinematics, to_body, to_space
from ..rotations.base import AbstractRotation, Rates, check_rates
from ..rotations.euler_map import euler_map
from ..state import State
from ..system import System, as_mechanics, has_joints
from .charts import Unknowns, constant_chart, join_chart, relative_quaternion, split_chart
from .internal import check_rotation, constraint_drift, system_multipliers
from .jointed_rates import JointedNullSpace
from .layout import Layout
from .minimal_rates import AbstractMinimalRates


class AbstractNullSpace(AbstractMinimalRates):
    """A formulation in which velocities are minimal and internal constraints hold on them."""

    system: eqx.AbstractVar[System | FixedPointBody]
    rotation: eqx.AbstractVar[AbstractRotation]
    recharting: eqx.AbstractVar[bool]

    @property
    def num_algebraic(self) -> int:
        return 0

    @property
    def layout(self) -> Any:
        if self.jointed is not None:
            return self.jointed.layout
        mechanics = self.mechanics
        return Layout(mechanics.num_bodies, mechanics.translates, self.rotation.num_coordinates, 3)

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
            p, omega = state.orientation[i], state.angular_velocity[i]
            a = self.rotation.from_quaternion(relative_quaternion(p, reference, i))
            coordinates.append(a)
            if self.rates == "space":
                omega = to_space(euler_map(p), omega)
            rates.append(omega)
        return self.layout.join(state.position, coordinates, state.velocity, rates)

    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
        if self.jointed is not None:
            return self.jointed.kinematics(t, y)
        values, reference = split_chart(y)
        layout, bodies = self.layout, range(self.layout.num_bodies)
        rotations = tuple(self.rotation_matrix(values, reference, i) for i in bodies)
        rates = tuple(layout.rates(values, i) for i in bodies)
        if self.rates == "space":
            rates = tuple(to_body(R, w) for R, w in zip(rotations, rates, strict=True))
        if not layout.translates:
            return Kinematics((), rotations, (), rates)
        positions = tuple(layout.position(values, i) for i in bodies)
        velocities = tuple(layout.velocity(values, i) for i in bodies)
        return Kinematics(positions, rotations, velocities, rates)

    def coordinate_rates(self, y: Unknowns) -> list[Float[Array, " n"]]:
        r"""Rates $\dot a = T(a)\,\Omega$ of the rotation coordinates of each body."""
        values, reference = split_chart(y)
        out = []
        for i in range(self.layout.num_bodies):
            w = self.layout.rates(values, i)
            if self.rates == "space" and reference is not None:
                w = to_body(euler_map(reference[i]), w)
            out.append(self.rotation.rate(self.layout.coordinates(values, i), w, self.rates))
        return out

    def vector_field(self, t: Float[Array, ""], y: Unknowns, args: Any = None) -> Unknowns:
        if self.jointed is not None:
            return self.jointed.vector_field(t, y)
        kinematics = self.kinematics(t, y)
        linear, angular = self.mechanics.accelerations(t, kinematics)
        if self.rates == "space":
            # d(R Omega)/dt = R dOmega/dt, since Omega x Omega = 0.
            angular = tuple(
                to_space(R, w) for R, w in zip(kinematics.rotations, angular, strict=True)
            )
        rate = self.layout.join(kinematics.velocities, self.coordinate_rates(y), linear, angular)
        return constant_chart(rate, y)

    def drift(self, t: Float[Array, ""], y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        if self.jointed is not None:
            return self.jointed.drift(t, y)
        values, _ = split_chart(y)
        return constraint_drift(
            self.rotation,
            [self.layout.coordinates(values, i) for i in range(self.layout.num_bodies)],
            self.coordinate_rates(y),
        )

    def project(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        if self.jointed is not None:
            return self.jointed.project(t, y)
        if self.rotation.num_constraints == 0:
            return y
        values, _ = split_chart(y)
        layout, bodies = self.layout, range(self.layout.num_bodies)
        shifts = layout.translates
        projected = layout.join(
            [layout.position(values, i) for i in bodies] if shifts else (),
            [self.rotation.project(layout.coordinates(values, i)) for i in bodies],
            [layout.velocity(values, i) for i in bodies] if shifts else (),
            [layout.rates(values, i) for i in bodies],
        )
        return join_chart(projected, y)

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        r"""Multipliers $\lambda$ of the internal constraints, and of the joints, in postprocessing.

        **Returns:** shape (m,), in the order of `Absolute.multipliers`, J.
        **Source:** Lang (6), (40).
        """
        if self.jointed is not None:
            return self.jointed.multipliers(t, y)
        values, _ = split_chart(y)
        kinematics = self.kinematics(t, y)
        rates = self.coordinate_rates(y)
        coordinates = [self.layout.coordinates(values, i) for i in range(len(rates))]
        return system_multipliers(self.rotation, self.mechanics, t, kinematics, coordinates, rates)


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
        as_mechanics(system)
        self.system = system
        self.rotation = check_rotation(rotation)
        self.rates = rates
        self.recharting = recharting and self.rotation.num_constraints == 0

    @property
    def jointed(self) -> JointedNullSpace | None:
        """The same formulation for a system with joints, `None` without."""
        system = self.system
        if not has_joints(system):
            return None
        return JointedNullSpace(system, self.rotation)

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        jointed = self.jointed
        if jointed is None or self.rotation.num_constraints == 0:
            return super().multipliers(t, y)
        from .absolute import Absolute

        system = jointed.without_rotors(t, y)
        return Absolute(system, self.rotation).multipliers(t, jointed.absolute(t, y))
