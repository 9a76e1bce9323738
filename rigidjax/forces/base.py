"""What every applied force provides."""

import abc
import difflib
from collections.abc import Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..checks import ArrayInput, as_leaf, finite, float_array
from ..joints.base import AbstractJoint
from ..laws import as_law, check_shapes

# Force at the centre of mass in space components (N) and moment about it in body components
# (N m); `None` for what is zero by construction, so that no operation is spent on it.
Wrench: TypeAlias = tuple[Float[Array, "3"] | None, Float[Array, "3"] | None]


class JointKinematics(eqx.Module):
    r"""A joint as forces see it.

    `coordinates` (k,) and `rates` (k,), lengths (m) before angles (rad); `forces` and `moments`,
    (k, 3), space components: the wrench at the child's joint point that does unit work on each
    coordinate; `child_arm` and `parent_arm`, (3,), to that point from the centres of mass, space
    components; `child` and `parent`, indices of the bodies, -1 for the ground.
    """

    coordinates: Float[Array, " k"]
    rates: Float[Array, " k"]
    forces: Float[Array, "k 3"]
    moments: Float[Array, "k 3"]
    child_arm: Float[Array, "3"]
    parent_arm: Float[Array, "3"]
    parent: int = eqx.field(static=True)
    child: int = eqx.field(static=True)


class Kinematics(eqx.Module):
    """Poses and twists of all bodies as forces see them, one entry for each body.

    Positions and velocities of the centres of mass in space components (m, m/s), rotation
    matrices from body to space, angular velocities in body components (rad/s): tuples, or arrays
    with one row for each body. `joints` has those joints that forces refer to, by name.
    """

    positions: Sequence[Float[Array, "3"]] | Float[Array, "L 3"]
    rotations: Sequence[Float[Array, "3 3"]] | Float[Array, "L 3 3"]
    velocities: Sequence[Float[Array, "3"]] | Float[Array, "L 3"]
    angular_velocities: Sequence[Float[Array, "3"]] | Float[Array, "L 3"]
    joints: dict[str, JointKinematics] = eqx.field(default_factory=dict)


class AbstractForce(eqx.Module):
    """A law that turns time, poses and twists into wrenches on the bodies."""

    @abc.abstractmethod
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies that the force refers to; checked when a `System` is built."""

    @property
    def is_linear(self) -> bool:
        """Whether the potential energy is linear in the positions, or zero; no unless it says so.

        Steps that conserve energy then need no discrete derivative.
        """
        return False

    def check_bodies(self, bodies: Sequence[Body]) -> None:
        """Raise if the force cannot act on these bodies; called when a `System` is built."""
        for name in self.body_names():
            body_index(bodies, name)

    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints whose coordinates the force depends on; none unless it says so."""
        return ()

    def check_joint(self, joint: AbstractJoint) -> None:
        """Raise `ValueError` if the force cannot act on one of the joints that it names."""
        return None

    @abc.abstractmethod
    def wrenches(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Wrench, ...]:
        """Wrench on each body: force (space components, N), moment about the centre of mass
        (body components, N m); `None` for no contribution.

        Where a system has many forces of a kind, `bodies` and `kinematics` hold those alone that
        one of them names (and those of the joints that it names).
        """

    @abc.abstractmethod
    def virials(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> tuple[Float[Array, "3 3"] | None, ...]:
        r"""Symmetric part of $\sum f \otimes u$ of each body, forces $f$ at points $u$ in body
        components, N m. It moves nothing; Lagrange multipliers depend on it (Sherif 4.2)."""

    @abc.abstractmethod
    def potential_energy(
        self, t: Float[Array, ""], bodies: Sequence[Body], kinematics: Kinematics
    ) -> Float[Array, ""]:
        """Potential energy, J; zero for a force that has none."""


def body_index(bodies: Sequence[Body], name: str) -> int:
    """Index of the body called `name`; `ValueError` with the nearest name if there is none."""
    names = [body.name for body in bodies]
    if name not in names:
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" The bodies are {names}."
        raise ValueError(f"There is no body called {name!r}.{hint}")
    return names.index(name)


def vector_leaf(value: ArrayInput, argument: str) -> Float[Array, "3"]:
    """A checked vector (3,) as an array; `argument` names it in the error."""
    return as_leaf(finite(float_array(value, argument, (3,)), argument))


def scalar_leaf(value: ArrayInput, argument: str) -> Float[Array, ""]:
    """A checked number as an array; `argument` names it in the error."""
    return as_leaf(finite(float_array(value, argument, ()), argument))


def vector_law(value: Any, argument: str, *shapes: tuple[int, ...]) -> Any:
    """A checked vector (3,), or a function that returns one, as a part of a module.

    `shapes`, of the arguments of the function.
    """
    if not callable(value):
        return vector_leaf(value, argument)
    law = as_law(value, argument)
    check_shapes(lambda *args: evaluated(law, argument, *args), *shapes)
    return law


def evaluated(law: Any, argument: str, *args: Any) -> Float[Array, "3"]:
    """What a `vector_law` gives at `args`; `ValueError` if a function returns another shape."""
    if not callable(law):
        return law
    value = jnp.asarray(law(*args))
    if value.shape != (3,):
        raise ValueError(f"The function `{argument}` must return shape (3,); got {value.shape}.")
    return value


def to_space(R: Float[Array, "3 3"], v: Float[Array, "3"]) -> Float[Array, "3"]:
    """Space components of a vector given in body components, in scalar components."""
    return jnp.stack([R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2] for i in range(3)])


def to_body(R: Float[Array, "3 3"], v: Float[Array, "3"]) -> Float[Array, "3"]:
    """Body components of a vector given in space components, in scalar components."""
    return jnp.stack([R[0, i] * v[0] + R[1, i] * v[1] + R[2, i] * v[2] for i in range(3)])


def one_body(num_bodies: int, index: int, wrench: Wrench) -> tuple[Wrench, ...]:
    """Wrenches that are zero on all bodies but one."""
    return tuple(wrench if i == index else (None, None) for i in range(num_bodies))


def symmetric_part(matrix: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """Symmetric part of a matrix."""
    return 0.5 * (matrix + matrix.T)


def no_virials(num_bodies: int) -> tuple[None, ...]:
    """Virials of a force that acts at centres of mass or is a pure moment."""
    return (None,) * num_bodies
