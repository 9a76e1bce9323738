"""Null-space coordinates: redundant positions, minimal velocities."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..checks import ArrayInput
from ..forces.base import Kinematics, to_body, to_space
from ..rotations.base import AbstractRotation, Rates, check_rates
from ..rotations.euler_map import euler_map
from ..state import State
from ..system import System, check_system, has_joints
from ..system.mechanics import SystemMechanics
from .charts import Unknowns, constant_chart, join_chart, relative_quaternion, split_chart
from .internal import check_rotation, constraint_drift, multipliers_of_rotations
from .layout import Layout
from .minimal_rates import AbstractMinimalRates
from .system_rates import SystemNullSpace


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
        if self.of_system is not None:
            return self.of_system.layout
        return Layout(1, False, self.rotation.num_coordinates, 3)

    def pack(
        self,
        state: State,
        reference: Float[Array, "L 4"] | None = None,
        t: ArrayInput = 0.0,
    ) -> Float[Array, " N"]:
        if self.of_system is not None:
            return self.of_system.pack(state, reference, t)
        p, omega = state.orientation[0], state.angular_velocity[0]
        a = self.rotation.from_quaternion(relative_quaternion(p, reference, 0))
        if self.rates == "space":
            omega = to_space(euler_map(p), omega)
        return jnp.concatenate([a, omega])

    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
        if self.of_system is not None:
            return self.of_system.kinematics(t, y)
        values, reference = split_chart(y)
        R, omega = self.rotation_matrix(values, reference, 0), self.layout.velocities(values)
        if self.rates == "space":
            omega = to_body(R, omega)
        return Kinematics((), (R,), (), (omega,))

    def coordinate_rate(self, y: Unknowns) -> Float[Array, " n"]:
        r"""Rate $\dot a = T(a)\,\Omega$ of the coordinates of a body with a fixed point."""
        values, reference = split_chart(y)
        w = self.layout.velocities(values)
        if self.rates == "space" and reference is not None:
            w = to_body(euler_map(reference[0]), w)
        return self.rotation.rate(self.layout.coordinates(values, 0), w, self.rates)

    def vector_field(self, t: Float[Array, ""], y: Unknowns, args: Any = None) -> Unknowns:
        if self.of_system is not None:
            return self.of_system.vector_field(t, y)
        kinematics = self.kinematics(t, y)
        turning = self._body.turning(t, kinematics)
        if self.rates == "space":
            # d(R Omega)/dt = R dOmega/dt, since Omega x Omega = 0.
            turning = to_space(kinematics.rotations[0], turning)
        return constant_chart(jnp.concatenate([self.coordinate_rate(y), turning]), y)

    def drift(self, t: Float[Array, ""], y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        if self.of_system is not None:
            return self.of_system.drift(t, y)
        a = self.layout.coordinates(split_chart(y)[0], 0)
        return constraint_drift(self.rotation, a, self.coordinate_rate(y))

    def project(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        if not (self.rotation.num_constraints or has_joints(self.system)):
            return y
        if self.of_system is not None:
            return self.of_system.project(t, y)
        values, _ = split_chart(y)
        a = self.rotation.project(self.layout.coordinates(values, 0))
        return join_chart(jnp.concatenate([a, self.layout.velocities(values)]), y)

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        r"""Multipliers $\lambda$ of the internal constraints, and of the joints, in postprocessing.

        **Returns:** shape (m,), in the order of `Absolute.multipliers`, J.
        **Source:** Lang (6), (40).
        """
        if self.of_system is not None:
            return self.of_system.multipliers(t, y)
        a = self.layout.coordinates(split_chart(y)[0], 0)
        rate = self.coordinate_rate(y)
        return multipliers_of_rotations(
            self.rotation, self.mechanics, t, self.kinematics(t, y), a[None], rate[None]
        )


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
    built: SystemMechanics | None
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
        self.built = None
        self.rotation = check_rotation(rotation)
        self.rates = rates
        self.recharting = recharting and self.rotation.num_constraints == 0

    @property
    def of_system(self) -> SystemNullSpace | None:
        """The same formulation for a system, `None` for a `FixedPointBody`."""
        system = self.system
        if not isinstance(system, System):
            return None
        return SystemNullSpace(system, self.rotation, self.built, self.rates)

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        of_system = self.of_system
        if of_system is None or self.rotation.num_constraints == 0:
            return super().multipliers(t, y)
        from .absolute import Absolute

        system = of_system.without_rotors(t, y)
        return Absolute(system, self.rotation).multipliers(t, of_system.absolute(t, y))
