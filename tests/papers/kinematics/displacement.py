"""The screw of a finite displacement (Chasles)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from rigidjax.rotations import guarded, so3
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
        r"""Translation $p = 2\pi k/\phi$ per revolution, m; infinite without rotation.

        **Source:** Geradin-Rixen (71); the text there says "by a rotation of 1 radian".
        """
        turning = self.angle > 0
        pitch = 2.0 * jnp.pi * self.translation / jnp.where(turning, self.angle, 1.0)
        return jnp.where(turning, pitch, jnp.copysign(jnp.inf, self.translation))

    @property
    def moment(self) -> Float[Array, "3"]:
        r"""$X_M \times n$, m: with `axis` the Plücker coordinates of the screw axis, shape (3,)."""
        return so3.cross(self.pose, self.axis)

    def matrix(self) -> Float[Array, "3 3"]:
        r"""Return the rotation matrix $R$, shape (3, 3). **Source:** Geradin-Rixen (46)."""
        return so3.exp(self.angle * self.axis)

    def displacement(self, X: Float[Array, "3"]) -> Float[Array, "3"]:
        r"""Return the displacement $u = k\,n + (R - 1)(X - X_M)$ of the point $X$, shape (3,), m.

        The displacement of the origin, $u_0$, is `displacement(jnp.zeros(3))`.

        **Source:** Geradin-Rixen (65).
        """
        arm = X - self.pose
        return self.translation * self.axis + self.matrix() @ arm - arm


def finite_screw(displacement: Float[Array, "3"], R: Float[Array, "3 3"]) -> FiniteScrew:
    r"""Return the screw of the displacement $X \mapsto u_0 + R X$.

    Conventions where the screw is not unique: at angle pi the largest component of the quaternion
    is positive, which fixes the sign of the axis. A rotation below 8 units of round-off counts as
    none: the angle is zero, the axis has the direction of $u_0$, the translation is $|u_0|$, and
    the pose is zero. Without any displacement the axis is zero as well. Derivatives are finite in
    all these cases; derivatives of quantities that are discontinuous there are set to zero.

    **Arguments:** `displacement`, $u_0$, of the origin, shape (3,), m; `R`, the rotation, (3, 3).

    **Source:** Geradin-Rixen (63), (69).
    """
    p = so3.principal(so3.normalize(spurrier_klumpp(R)))
    p0, v = p[0], p[1:]
    square = so3.dot(v, v)
    turning = square > (4.0 * jnp.finfo(p.dtype).eps) ** 2
    square = jnp.where(turning, square, 1.0)
    sine = jnp.sqrt(square)
    distance = guarded.safe_sqrt(so3.dot(displacement, displacement))
    axis = jnp.where(turning, v / sine, guarded.safe_divide(displacement, distance))
    angle = jnp.where(turning, 2.0 * jnp.arctan2(sine, p0), 0.0)
    translation = jnp.where(turning, so3.dot(axis, displacement), distance)
    # Half the sum of the part of u0 across the axis and cot(phi/2) n x u0, without cancellation
    # near pi.
    across = displacement - translation * axis
    cotangent = p0 / square
    pose = 0.5 * jnp.where(turning, across + cotangent * so3.cross(v, displacement), 0.0)
    return FiniteScrew(axis, angle, translation, pose)
