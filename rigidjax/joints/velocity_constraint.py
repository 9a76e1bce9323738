"""Nonholonomic constraints: on velocities of any number of bodies, and on no positions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import is_traced
from ..laws import as_law
from ..rotations.euler_map import euler_map
from .base import AbstractJoint
from .constraint import (
    AbstractConstraint,
    Pose,
    body_names_of,
    checked_lengths,
    checked_name,
    equation_count,
)

# Velocity of the centre of mass, (3,) m/s, space components, and angular velocity, (3,) rad/s, body
# components.
Twist = tuple[Float[Array, "3"], Float[Array, "3"]]
# Parts of values up to which a function counts as linear, in units of the last place.
_ROUND_OFF = 1000


class VelocityConstraint(AbstractConstraint):
    r"""A nonholonomic constraint, linear in the twists, $A(t, q)\,w + b(t, q) = 0$.

    Rolling without slipping, skates, wheels that roll but do not slide. Positions are free: what
    can be reached is not restricted, but the ways there are. It is imposed on velocities in every
    formulation, in `Absolute(index=3)` too, and projected there; its reaction does no work where
    $b = 0$.

    **Arguments:**

    - `function`: `function(t, poses, twists)` with `poses[name] = (x, R)`, the position of the
      centre of mass, (3,) m, space components, and the rotation matrix (3, 3) from body to space;
      `twists[name] = (v, omega)`, the velocity of the centre of mass, (3,) m/s, space components,
      and the angular velocity, (3,) rad/s, body components. It returns a number or a vector, linear
      in the twists up to a part without them, zero where the equations hold. An Equinox module
      keeps its parameters as leaves.
    - `bodies`: names of the bodies that it depends on.
    - `lengths`: whether its values are velocities, m/s, or angular velocities, rad/s; one for each,
      or one for all.
    - `name`.

    Give it to `System` among the joints. Its equations may depend on each other and on those of
    joints. **Errors:** `TypeError` for what is no function; `ValueError` for no bodies, a function
    that returns another shape than a number or a vector or is not linear in the twists, or another
    count of `lengths`.
    **Source:** Neimark, Fufaev, Dynamics of Nonholonomic Systems (1972).
    """

    function: Any
    bodies: tuple[str, ...] = eqx.field(static=True)
    lengths: tuple[bool, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[[Float[Array, ""], dict[str, Pose], dict[str, Twist]], Any],
        bodies: Sequence[str],
        lengths: bool | Sequence[bool] = True,
        name: str | None = None,
    ):
        kind = "VelocityConstraint"
        if not callable(function):
            raise TypeError(
                f"`{kind}(function=...)` must be a function of time, poses and twists; got "
                f"{function!r}."
            )
        self.bodies = body_names_of(kind, bodies)
        self.name = checked_name(kind, name, f"velocity constraint {'-'.join(self.bodies)}")
        self.function = as_law(function, f"{kind}(function=...)")
        still = {name: (jnp.zeros(3), jnp.eye(3)) for name in self.bodies}
        twists = {name: (jnp.zeros(3), jnp.zeros(3)) for name in self.bodies}
        shape = jax.eval_shape(lambda: self._values(jnp.zeros(()), still, twists)).shape
        self.lengths = checked_lengths(kind, lengths, equation_count(kind, shape))
        self._check_linear()

    @property
    def constrains_length(self) -> tuple[bool, ...]:
        return self.lengths

    @property
    def is_on_positions(self) -> bool:
        """False."""
        return False

    def body_names(self) -> tuple[str, ...]:
        return self.bodies

    def joint_names(self) -> tuple[str, ...]:
        return ()

    def attached(self, joints: Mapping[str, AbstractJoint]) -> "VelocityConstraint":
        return self

    def rate(
        self, t: Float[Array, ""], poses: Mapping[str, Pose], twists: Mapping[str, Twist]
    ) -> Float[Array, " m"]:
        """The equations on velocities, zero where they hold."""
        poses = {name: poses[name] for name in self.bodies}
        twists = {name: twists[name] for name in self.bodies}
        return self._values(t, poses, twists).reshape(len(self.lengths))

    def _values(self, t, poses, twists) -> Array:
        return jnp.asarray(self.function(t, poses, twists))

    def _check_linear(self) -> None:
        """Raise unless the function is linear in the twists at some poses and twists."""
        if is_traced(self.function):
            return
        random = np.random.default_rng(0)
        poses = {
            name: (jnp.asarray(random.normal(size=3)), euler_map(_unit(random.normal(size=4))))
            for name in self.bodies
        }
        first, second = (
            {name: tuple(random.normal(size=(2, 3))) for name in self.bodies} for _ in range(2)
        )

        def at(part: float) -> np.ndarray:
            twists: Any = jax.tree.map(lambda a, b: jnp.asarray(a + part * (b - a)), first, second)
            return np.asarray(self._values(jnp.zeros(()), poses, twists))

        with jax.ensure_compile_time_eval():
            values = [at(part) for part in (0.0, 1.0, 3.0)]
        gap = np.abs(values[2] - 3.0 * values[1] + 2.0 * values[0])
        size = np.max(np.abs(values), initial=1.0)
        if np.any(gap > _ROUND_OFF * np.finfo(gap.dtype).eps * size):
            raise ValueError(
                "`VelocityConstraint(function=...)` must be linear in the twists, up to a part "
                f"without them; got a function that is not, by {np.max(gap):.3g} at random poses "
                "and twists."
            )


def _unit(p: np.ndarray) -> Array:
    return jnp.asarray(p / np.sqrt(np.sum(p * p)))
