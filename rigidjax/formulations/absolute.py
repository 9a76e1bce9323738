"""Absolute coordinates: redundant positions and velocities."""

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..mechanics import System, check_constant_masses, check_system, has_joints, system_of
from ..mechanics.stacked.system import PreparedSystem, StackedSystem
from ..rotations.base import AbstractRotation
from .absolute_base import AbstractAbsolute
from .charts import Unknowns, split_chart
from .constrained import check_rotation, multipliers_of_rotations
from .descriptor import Descriptor


class Absolute(AbstractAbsolute):
    r"""The index-reduced equations in absolute coordinates $y = (x, a, \dot x, \dot a)$.

    The constraints are imposed on the acceleration, so that position drifts quadratically and
    velocity linearly unless they are projected.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (whose unknowns are $a$, $\dot a$ alone).
    - `rotation`: the parametrization. The fictive radial moment of inertia of a quaternion
      drops out of $\ddot p$ and $\lambda$: the constraint prescribes the radial acceleration.
    - `index`: differentiation index of the equations: 0, the ordinary differential equation with
      the multipliers eliminated; 1, 2, 3, constraints on accelerations, velocities, positions, with
      the multipliers as unknowns: `residual`, or `mass_matrix` and `right_hand_side`.
    - `stabilized`: for index 2, the form of Gear, Gupta and Leimkuhler: the constraints on
      positions hold as well, $\dot q = v - G^T \mu$ with further multipliers $\mu$ (behind
      $\lambda$) that are zero but for errors of the integration.
    - `baumgarte`: for index 1, $(\alpha, \beta)$, 1/s, of Baumgarte's stabilisation
      $\ddot g + 2 \alpha \dot g + \beta^2 g = 0$.
    - `recharting`: as in `NullSpace`.

    **Raises:** `ValueError` for another index, and for a stabilisation of another index.
    **Source:** Lang (6), (23), (40); Hairer-Wanner II, VII.2 (2.9), (2.11).
    """

    system: System | FixedPointBody
    arrays: PreparedSystem | StackedSystem | None
    rotation: AbstractRotation
    index: int = eqx.field(static=True)
    recharting: bool = eqx.field(static=True)
    stabilized: bool = eqx.field(static=True)
    baumgarte: tuple[ArrayLike, ArrayLike] | None

    def __init__(
        self,
        system: System | FixedPointBody,
        rotation: AbstractRotation | None = None,
        index: int = 0,
        recharting: bool = True,
        stabilized: bool = False,
        baumgarte: tuple[ArrayLike, ArrayLike] | None = None,
    ):
        if index not in (0, 1, 2, 3):
            raise ValueError(
                f"`Absolute(index=...)` must be 0, 1, 2 or 3; got {index!r}. `NullSpace` has the "
                "velocity level built in."
            )
        if stabilized and index != 2:
            raise ValueError(
                f"`Absolute(stabilized=True)` is a form of index=2; got index={index}."
            )
        if baumgarte is not None and (index != 1 or len(baumgarte) != 2):
            raise ValueError(
                "`Absolute(baumgarte=...)` takes two rates (alpha, beta) in 1/s, for index=1; got "
                f"{baumgarte!r} for index={index}."
            )
        check_system(system)
        check_constant_masses("`Absolute`", system_of(system))
        if system_of(system).has_armature:
            raise ValueError(
                "`Absolute` has the masses of the bodies alone; `armature` of a joint is not "
                "supported there. Use `NullSpace` or `Relative`."
            )
        self.system = system
        self.arrays = None
        self.rotation = check_rotation(rotation)
        self.index = index
        self.stabilized = stabilized
        self.baumgarte = baumgarte
        self.recharting = index == 0 and recharting and self.rotation.num_constraints == 0

    @property
    def num_algebraic(self) -> int:
        if self.index == 0:
            return 0
        return self.num_multipliers * (2 if self.stabilized else 1)

    def ordinary_field(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        return self.index_0_field(t, y)

    @property
    def equations(self) -> Descriptor:
        """The equations of index 1 to 3."""
        return Descriptor(self)

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        r"""Return the multipliers $\lambda$ of the internal constraints and of those of the joints.

        They are computed in postprocessing for index 0, and part of the unknowns otherwise; of
        least norm if constraints are redundant.
        **Returns:** shape (m,): J for every body in the order of `rotation.constraint`, then the
        joints group by group (joints of the same kind together); see `reactions`.
        **Source:** Lang (6), (40).
        """
        values, _ = split_chart(y)
        if self.index != 0 and values.size == self.num_unknowns:
            lam = values[self.layout.size :][: self.num_multipliers]
            if not self.has_loops:
                return lam
            y0 = values[: self.layout.size]
            return lam - Descriptor(self).redundant_projector(t, y0) @ lam
        if has_joints(self.system):
            if self.rotation.num_constraints == 0:
                return self.joint_multipliers(t, y)
            return Descriptor(self).accelerations_and_multipliers(t, values)[1]
        return multipliers_of_rotations(
            self.rotation,
            self.prepared_system,
            t,
            self.kinematics(t, y),
            *self.split_coordinates(y),
        )
