"""Nonholonomic constraints on the velocities of any number of bodies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector3
from ..checks import is_traced
from ..rotations.euler_map import euler_map
from .constraint import AbstractUserConstraint, Pose

# Velocity of the centre of mass, (3,) m/s, space components, and angular velocity, (3,) rad/s, body
# components.
Twist = tuple[Vector3, Vector3]
# Tolerance of the test of linearity, in units of round-off.
_ROUND_OFF = 1000


class VelocityConstraint(AbstractUserConstraint):
    r"""A nonholonomic constraint, linear in the twists, $A(t, q)\,w + b(t, q) = 0$.

    Examples are rolling without slipping, skates, and wheels that do not slide sideways. The
    constraint restricts the paths, not the positions that they can reach. Every formulation imposes
    it on velocities, `Absolute(index=3)` too, and projects velocities onto it. Its reaction does no
    work if $b = 0$. Add the constraint to the joints of a `System`; its equations may depend on
    each other and on those of joints.

    **Arguments:**

    - `function`: `function(t, poses, twists)` with `poses[name] = (x, R)`, the position of the
      centre of mass, (3,) m, space components, and the rotation matrix (3, 3) from body to space;
      `twists[name] = (v, omega)`, the velocity of the centre of mass, (3,) m/s, space components,
      and the angular velocity, (3,) rad/s, body components; for a `Frame` its origin, the matrix
      from frame to space, the velocity of its origin and the angular velocity in its components.
      The function returns a scalar or a vector, affine in the twists, zero where the equations
      hold. An Equinox module keeps its parameters as leaves.
    - `bodies`: names of the bodies and frames that the function depends on.
    - `lengths`: whether the values are velocities, m/s; other values are angular velocities, rad/s.
      One flag per value, or one for all.
    - `name`: by default `"velocity constraint <bodies>"`.

    **Errors:** `TypeError` if `function` is not callable; `ValueError` for no bodies, a function
    that returns neither a scalar nor a vector or is not affine in the twists, or a wrong number of
    `lengths`.
    **Source:** Neimark, Fufaev, Dynamics of Nonholonomic Systems (1972).
    """

    arguments = "time, poses and twists"

    def __init__(
        self,
        function: Callable[[Scalar, dict[str, Pose], dict[str, Twist]], Any],
        bodies: str | Sequence[str],
        lengths: bool | Sequence[bool] = True,
        name: str | None = None,
    ):
        super().__init__(function, bodies, lengths, name)
        self._check_linear()

    @property
    def is_on_positions(self) -> bool:
        """Whether the equations constrain positions: false."""
        return False

    def rate(
        self, t: Scalar, poses: Mapping[str, Pose], twists: Mapping[str, Twist]
    ) -> Float[Array, " m"]:
        """Return the values of the equations on velocities, zero where they hold."""
        poses = {name: poses[name] for name in self.bodies}
        twists = {name: twists[name] for name in self.bodies}
        return self._values(t, poses, twists).reshape(len(self.lengths))

    def _at_rest(self) -> Array:
        still = {name: (jnp.zeros(3), jnp.zeros(3)) for name in self.bodies}
        return self._values(jnp.zeros(()), self._origins(), still)

    def _check_linear(self) -> None:
        """Raise `ValueError` unless the function is affine in the twists at random poses."""
        if is_traced(self.function):
            return
        values = _values_at_random(self.function, self.bodies)
        error = np.abs(values[2] - 3.0 * values[1] + 2.0 * values[0])
        size = np.max(np.abs(values), initial=1.0)
        if np.any(error > _ROUND_OFF * np.finfo(error.dtype).eps * size):
            raise ValueError(
                "`VelocityConstraint(function=...)` must be affine in the twists; got a function "
                f"that deviates by {np.max(error):.3g} at random poses and twists."
            )


def _values_at_random(function: Any, bodies: tuple[str, ...]) -> np.ndarray:
    """Return the values at random poses for random twists a and b, and for 3 b - 2 a."""
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
            {name: (w[:3], w[3:]) for name, w in zip(bodies, rows, strict=True)} for rows in twists
        ]
        zero = jnp.zeros(())
        return jnp.stack([jnp.asarray(function(zero, poses, sample)) for sample in twists])

    # Evaluated at once even inside a transformation of JAX, and compiled as one function.
    with eval_context():
        twists = np.stack([first, second, 3.0 * second - 2.0 * first])
        return np.asarray(jax.jit(values)(positions, quaternions, twists))
