"""Absolute coordinates: redundant positions and velocities."""

import equinox as eqx
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..rotations.base import AbstractRotation
from ..system import System, as_mechanics
from .absolute_base import AbstractAbsolute
from .charts import Unknowns
from .internal import check_rotation, system_multipliers


class Absolute(AbstractAbsolute):
    r"""The index-reduced equations in absolute coordinates $y = (x, a, \dot x, \dot a)$.

    The constraints are imposed on the acceleration, so that position drifts quadratically and
    velocity linearly unless they are projected.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (whose unknowns are $a$, $\dot a$ alone).
    - `rotation`: the parametrization. The fictive radial moment of inertia of a quaternion
      drops out of $\ddot p$ and $\lambda$: the constraint prescribes the radial acceleration.
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

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        r"""Multipliers $\lambda$ of the internal constraints, in postprocessing, J.

        **Returns:** shape (L m,), in the order of `rotation.constraint`.
        **Source:** Lang (6), (40).
        """
        if self.jointed is not None:
            return self.jointed.multipliers(t, y)
        kinematics = self.kinematics(t, y)
        return system_multipliers(
            self.rotation, self.mechanics, t, kinematics, *self.split_coordinates(y)
        )
