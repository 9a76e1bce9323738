"""Systems of rigid bodies and the forces on them."""

from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..forces.base import AbstractForce, Kinematics, Wrench, body_index
from ..state import State
from .mechanics import AbstractMechanics, Inertia, add


class System(AbstractMechanics):
    """Free rigid bodies and the forces that act on them.

    **Arguments:**

    - `bodies`: one `Body` or a sequence of them, with different names.
    - `joints`: must be empty; this version has no joints.
    - `forces`: one force or a sequence of them (`Gravity`, `PointForce`, `Torque`, `Potential`).

    **Raises:** `ValueError` for no body, doubled or unknown names, or joints; `TypeError` for
    what is neither a body nor a force.
    """

    bodies: tuple[Body, ...]
    forces: tuple[AbstractForce, ...]
    translates: bool = eqx.field(static=True)

    def __init__(
        self,
        bodies: Body | Sequence[Body],
        joints: Sequence[object] = (),
        forces: AbstractForce | Sequence[AbstractForce] = (),
    ):
        bodies, forces = _as_tuple(bodies), _as_tuple(forces)
        if not bodies:
            raise ValueError("`System(bodies=...)` needs at least one body; got none.")
        for name, items, kind in (("bodies", bodies, Body), ("forces", forces, AbstractForce)):
            for item in items:
                if not isinstance(item, kind):
                    raise TypeError(
                        f"`System({name}=...)` takes {kind.__name__} objects; got {item!r}."
                    )
        names = [body.name for body in bodies]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"Every body needs a name of its own; got {doubled} more than once.")
        if _as_tuple(joints):
            raise ValueError(
                "`System(joints=...)` must be empty: joints are not supported in this version. "
                "For a body that turns about a fixed point use `FixedPointBody`."
            )
        for force in forces:
            for name in force.body_names():
                body_index(bodies, name)
        self.bodies = bodies
        self.forces = forces
        self.translates = True

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return len(self.bodies)

    @property
    def num_dof(self) -> int:
        """Number of mechanical degrees of freedom."""
        return 6 * len(self.bodies)

    def reference_state(self) -> State:
        """Poses and twists given to the bodies when they were built."""
        return State(
            jnp.stack([body.position for body in self.bodies]),
            jnp.stack([body.orientation for body in self.bodies]),
            jnp.stack([body.velocity for body in self.bodies]),
            jnp.stack([body.angular_velocity for body in self.bodies]),
        )

    def masses(self) -> Sequence[Float[Array, ""]]:
        return tuple(body.mass for body in self.bodies)

    def inertias(self) -> Sequence[Inertia]:
        return tuple(body.inertia for body in self.bodies)

    def wrenches(self, t: Float[Array, ""], kinematics: Kinematics) -> Sequence[Wrench]:
        total: list[Wrench] = [(None, None)] * self.num_bodies
        for force in self.forces:
            parts = force.wrenches(t, self.bodies, kinematics)
            total = [
                (add(f, df), add(m, dm)) for (f, m), (df, dm) in zip(total, parts, strict=True)
            ]
        return tuple(total)

    def virials(
        self, t: Float[Array, ""], kinematics: Kinematics
    ) -> Sequence[Float[Array, "3 3"] | None]:
        total: list[Float[Array, "3 3"] | None] = [None] * self.num_bodies
        for force in self.forces:
            parts = force.virials(t, self.bodies, kinematics)
            total = [add(s, ds) for s, ds in zip(total, parts, strict=True)]
        return tuple(total)

    def potential_energy(self, t: Float[Array, ""], kinematics: Kinematics) -> Float[Array, ""]:
        energy = jnp.zeros((), self.bodies[0].mass.dtype)
        for force in self.forces:
            energy = energy + force.potential_energy(t, self.bodies, kinematics)
        return energy


def _as_tuple(items: Any) -> tuple[Any, ...]:
    """One item or a sequence of them as a tuple."""
    return tuple(items) if isinstance(items, Iterable) else (items,)
