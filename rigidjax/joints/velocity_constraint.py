"""Nonholonomic constraints: on velocities of any number of bodies, and on no positions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from ..checks import is_traced
from ..rotations.euler_map import euler_map
from .constraint import AbstractUserConstraint, Pose

# Velocity of the centre of mass, (3,) m/s, space components, and angular velocity, (3,) rad/s, body
# components.
Twist = tuple[Float[Array, "3"], Float[Array, "3"]]
# Parts of values up to which a function counts as linear, in units of the last place.
_ROUND_OFF = 1000


class VelocityConstraint(AbstractUserConstraint):
    r"""A nonholonomic constraint, linear in the twists, $A(t, q)\,w + b(t, q) = 0$.

    Rolling without slipping, skates, wheels that roll but do not slide. Positions are free: what
    can be reached is not restricted, but the ways there are. It is imposed on velocities in every
    formulation, in `Absolute(index=3)` too, and projected there; its reaction does no work where
    $b = 0$.

    **Arguments:**

    - `function`: `function(t, poses, twists)` with `poses[name] = (x, R)`, the position of the
      centre of mass, (3,) m, space components, and the rotation matrix (3, 3) from body to space;
      `twists[name] = (v, omega)`, the velocity of the centre of mass, (3,) m/s, space components,
      and the angular velocity, (3,) rad/s, body components; of a `Frame` its origin, the matrix
      from frame to space, the velocity of its origin and the angular velocity in its components.
      It returns a number or a vector, linear in the twists up to a part without them, zero where
      the equations hold. An Equinox module keeps its parameters as leaves.
    - `bodies`: names of the bodies and frames that it depends on.
    - `lengths`: whether its values are velocities, m/s, or angular velocities, rad/s; one for each,
      or one for all.
    - `name`.

    Give it to `System` among the joints. Its equations may depend on each other and on those of
    joints. **Errors:** `TypeError` for what is no function; `ValueError` for no bodies, a function
    that returns another shape than a number or a vector or is not linear in the twists, or another
    count of `lengths`.
    **Source:** Neimark, Fufaev, Dynamics of Nonholonomic Systems (1972).
    """

    arguments = "time, poses and twists"

    def __init__(
        self,
        function: Callable[[Float[Array, ""], dict[str, Pose], dict[str, Twist]], Any],
        bodies: str | Sequence[str],
        lengths: bool | Sequence[bool] = True,
        name: str | None = None,
    ):
        super().__init__(function, bodies, lengths, name)
        self._check_linear()

    @property
    def is_on_positions(self) -> bool:
        """False."""
        return False

    def rate(
        self, t: Float[Array, ""], poses: Mapping[str, Pose], twists: Mapping[str, Twist]
    ) -> Float[Array, " m"]:
        """The equations on velocities, zero where they hold."""
        poses = {name: poses[name] for name in self.bodies}
        twists = {name: twists[name] for name in self.bodies}
        return self._values(t, poses, twists).reshape(len(self.lengths))

    def _at_rest(self):
        still = {name: (jnp.zeros(3), jnp.zeros(3)) for name in self.bodies}
        return self._values(jnp.zeros(()), self._origins(), still)

    def _check_linear(self) -> None:
        """Raise unless the function is linear in the twists at some poses and twists."""
        if is_traced(self.function):
            return
        values = _at_random(self.function, self.bodies)
        gap = np.abs(values[2] - 3.0 * values[1] + 2.0 * values[0])
        size = np.max(np.abs(values), initial=1.0)
        if np.any(gap > _ROUND_OFF * np.finfo(gap.dtype).eps * size):
            raise ValueError(
                "`VelocityConstraint(function=...)` must be linear in the twists, up to a part "
                f"without them; got a function that is not, by {np.max(gap):.3g} at random poses "
                "and twists."
            )


def _at_random(function: Any, bodies: tuple[str, ...]) -> np.ndarray:
    """Values at random poses, for twists a, b and 3 b - 2 a."""
    random = np.random.default_rng(0)
    quaternions = random.normal(size=(len(bodies), 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    positions, first, second = random.normal(size=(3, len(bodies), 6))

    def values(positions, quaternions, twists):
        poses = {
            name: (x[:3], euler_map(p))
            for name, x, p in zip(bodies, positions, quaternions, strict=True)
        }
        twists = [
            {name: (w[:3], w[3:]) for name, w in zip(bodies, one, strict=True)} for one in twists
        ]
        zero = jnp.zeros(())
        return jnp.stack([jnp.asarray(function(zero, poses, one)) for one in twists])

    # One program, also where a transformation of JAX is under way.
    with eval_context():
        twists = np.stack([first, second, 3.0 * second - 2.0 * first])
        return np.asarray(jax.jit(values)(positions, quaternions, twists))
