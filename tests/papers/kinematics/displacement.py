"""The screw of a finite displacement (Chasles)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations import so3
from rigidjax.rotations.conversion import spurrier_klumpp


class FiniteScrew(eqx.Module):
    r"""A finite displacement as a rotation about a line and a translation along it.

    All vectors are in space components. A point $X$ of the body moves to $u_0 + R X$, a point of
    the screw axis by $k\,n$.

    **Arguments:**

    - `axis`: unit vector $n$, shape (3,);
    - `angle`: $\phi$ in [0, pi], rad;
    - `translation`: $k = n \cdot u_0$ along the axis, m;
    - `pose`: the point $X_M$ of the axis that is closest to the origin, shape (3,), m.

    **Source:** Geradin-Rixen, Section 2.3.
    """

    axis: Float[Array, "3"]
    angle: Float[Array, ""]
    translation: Float[Array, ""]
    pose: Float[Array, "3"]

    @property
    def pitch(self) -> Float[Array, ""]:
        r"""Translation $p = 2\pi k/\phi$ per revolution, m.

        Geradin-Rixen (71); the text there says "by a rotation of 1 radian".
        """
        return 2.0 * jnp.pi * self.translation / self.angle

    def matrix(self) -> Float[Array, "3 3"]:
        r"""Return the rotation matrix $R$, shape (3, 3). **Source:** Geradin-Rixen (46)."""
        return so3.exp(self.angle * self.axis)

    def displacement(self, X: Float[Array, "3"]) -> Float[Array, "3"]:
        r"""Return the displacement $u = k\,n + (R - 1)(X - X_M)$ of $X$: Geradin-Rixen (65)."""
        arm = X - self.pose
        return self.translation * self.axis + self.matrix() @ arm - arm


def finite_screw(displacement: Float[Array, "3"], R: Float[Array, "3 3"]) -> FiniteScrew:
    r"""Return the screw of the displacement $X \mapsto u_0 + R X$.

    At angle pi the largest component of the quaternion is positive, which fixes the sign of the
    axis. Without rotation the screw is undefined. **Source:** Geradin-Rixen (63), (69).
    """
    p = so3.principal(so3.normalize(spurrier_klumpp(R)))
    p0, v = p[0], p[1:]
    square = so3.dot(v, v)
    sine = jnp.sqrt(square)
    axis = v / sine
    translation = so3.dot(axis, displacement)
    # Half the sum of the part of u0 across the axis and cot(phi/2) n x u0, without cancellation
    # near pi.
    across = displacement - translation * axis
    pose = 0.5 * (across + p0 / square * so3.cross(v, displacement))
    return FiniteScrew(axis, 2.0 * jnp.arctan2(sine, p0), translation, pose)
