"""Joint coordinates: what a tree of bodies needs, and no more."""

import equinox as eqx
from jaxtyping import Array, Float

from ..bodies.fixed_point import FixedPointBody
from ..rotations.base import AbstractRotation, Rates
from ..state import State
from ..system import System, check_system
from ..system.mechanics import SystemMechanics
from .charts import Unknowns
from .internal import check_rotation
from .null_space import AbstractNullSpace
from .system_relative import SystemRelative


class Relative(AbstractNullSpace):
    r"""The equations of motion in joint coordinates, $y = (q, \nu)$.

    Each body has the coordinates of the joint by which it hangs on its tree: lengths and angles, of
    any number of turns, and for a ball joint or a body that is free in space the coordinates $a$ of
    the chosen parametrization. Velocities are the joint rates, those of `NullSpace`, so that
    constraints are left only where loops close: they hold on the rates by construction and on the
    coordinates by projection. Seven hinges have 14 unknowns.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (the same as `NullSpace` then).
    - `rotation`: the parametrization of ball joints and free bodies.
    - `recharting`: let a minimal parametrization move its reference on before it becomes
      singular. If `False`, `simulate` stops at the singularity with a named result.

    **Source:** Featherstone (2008), Rigid Body Dynamics Algorithms, Chapters 4 and 8.
    """

    system: System | FixedPointBody
    built: SystemMechanics | None
    rotation: AbstractRotation
    recharting: bool = eqx.field(static=True)

    def __init__(
        self,
        system: System | FixedPointBody,
        rotation: AbstractRotation | None = None,
        recharting: bool = True,
    ):
        check_system(system)
        self.system = system
        self.built = None
        self.rotation = check_rotation(rotation)
        self.recharting = recharting and self.rotation.num_constraints == 0

    @property
    def rates(self) -> Rates:
        """Angular velocities are in body components."""
        return "body"

    @property
    def of_system(self) -> SystemRelative | None:
        """The same formulation for a system, `None` for a `FixedPointBody`."""
        if not isinstance(self.system, System):
            return None
        return SystemRelative(self.system, self.rotation, self.built)

    @property
    def coordinate_labels(self) -> tuple[str, ...]:
        """Names of the position-level unknowns, in their order.

        The name of a joint; `"joint[0]"`, ... if it has several coordinates; `"body.x1"` ... and
        `"body.a1"` ... of a free body.
        """
        n = self.rotation.num_coordinates
        turn = [f"a{k + 1}" for k in range(n)]
        if not isinstance(self.system, System):
            return tuple(turn)
        labels: list[str] = []
        layout = self.layout
        for body, j in enumerate(self.system.topology.joints):
            if j is None:
                name = self.system.bodies[body].name
                labels += [f"{name}.{part}" for part in ("x1", "x2", "x3", *turn)]
                continue
            count = layout.plain[body] + (n if body in layout.turning else 0)
            name = self.system.joints[j].name
            labels += [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
        return tuple(labels)

    def decode(self, t: Float[Array, ""], y: Unknowns) -> State:
        return super().decode(t, y) if self.of_system is None else self.of_system.decoded(t, y)

    def quaternions(self, state: State) -> list[Float[Array, "4"]]:
        if self.of_system is None:
            return super().quaternions(state)
        return self.of_system.quaternions(state)

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        """Multipliers of the joints, group by group, N and N m, in postprocessing.

        **Returns:** shape (m,), in the order of `Absolute.multipliers`; those of the internal
        constraints of a `FixedPointBody`.
        """
        if self.of_system is None:
            return super().multipliers(t, y)
        return self.of_system.multipliers(t, y)
