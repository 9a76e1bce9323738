"""Directors: the nine entries of the rotation matrix, rotation-free coordinates."""

from collections.abc import Sequence
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from . import so3
from .base import AbstractRotation, Rates, check_inertia, check_rates
from .conversion import half_rotation_matrix, spurrier_klumpp
from .euler_map import euler_map_directors


def _cross(u: Sequence[Array], v: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Return the cross product of two vectors given in scalar components."""
    return (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])


class Directors(AbstractRotation):
    r"""The directors $d = (d_1, d_2, d_3)$, the columns of $R$ stacked; nine coordinates.

    They have no singularities, six internal constraints, and linear and quadratic expressions only.
    With body rates the *rows* of $R$ are constrained, with space rates the columns, so that
    $G T = 0$ holds off the manifold as well. Off the manifold `to_matrix` returns the nine
    coordinates unchanged; only `to_quaternion` and `project` make them a rotation.

    **Source:** Lang, Section 3 and (44), (45).
    """

    num_coordinates: ClassVar[int] = 9
    num_constraints: ClassVar[int] = 6

    def to_matrix(self, a: Float[Array, "9"]) -> Matrix3:
        r"""Return the matrix $R = (d_1 | d_2 | d_3)$."""
        return jnp.stack([a[0:3], a[3:6], a[6:9]], axis=1)

    def from_matrix(self, R: Matrix3) -> Float[Array, "9"]:
        r"""Return the columns of $R$, stacked, even if $R$ is not a rotation; see `project`."""
        return R.T.reshape(9)

    def to_quaternion(self, a: Float[Array, "9"]) -> Float[Array, "4"]:
        r"""Return the unit quaternion of $R$ whose largest component is positive."""
        return so3.normalize(spurrier_klumpp(a.reshape(3, 3).T))

    def from_quaternion(self, p: Float[Array, "4"]) -> Float[Array, "9"]:
        r"""Return the Euler map, its columns stacked. **Source:** Lang (47)."""
        return euler_map_directors(p)

    def rate(
        self, a: Float[Array, "9"], omega: Vector3, rates: Rates = "body"
    ) -> Float[Array, "9"]:
        r"""Return $\dot d_1 = \Omega_3 d_2 - \Omega_2 d_3$, ...: 18 products, 9 sums.

        `rates="space"` returns $\dot d_n = \omega \times d_n$.
        """
        check_rates(rates)
        d = jnp.unstack(a)
        w1, w2, w3 = jnp.unstack(omega)
        if rates == "space":
            w = (w1, w2, w3)
            return jnp.stack([c for n in (0, 3, 6) for c in _cross(w, d[n : n + 3])])
        return jnp.stack(
            [w3 * d[3 + m] - w2 * d[6 + m] for m in range(3)]
            + [w1 * d[6 + m] - w3 * d[m] for m in range(3)]
            + [w2 * d[m] - w1 * d[3 + m] for m in range(3)]
        )

    def null_space(self, a: Float[Array, "9"], rates: Rates = "body") -> Float[Array, "9 3"]:
        r"""Return $T(d)$ of rank 3. **Source:** Lang (24), (45)."""
        check_rates(rates)
        d1, d2, d3 = a[:3], a[3:6], a[6:]
        if rates == "space":
            return -jnp.concatenate([so3.skew(d1), so3.skew(d2), so3.skew(d3)])
        o = jnp.zeros_like(d1)
        return jnp.concatenate(
            [
                jnp.stack([o, -d3, d2], axis=1),
                jnp.stack([d3, o, -d1], axis=1),
                jnp.stack([-d2, d1, o], axis=1),
            ]
        )

    def tangent(self, a: Float[Array, "9"], rates: Rates = "body") -> Float[Array, "3 9"]:
        r"""Return $H(d) = \frac12 T(d)^T$, the mean of the two expressions in Lang (15)."""
        return 0.5 * self.null_space(a, rates).T

    def angular_velocity(
        self, a: Float[Array, "9"], a_dot: Float[Array, "9"], rates: Rates = "body"
    ) -> Vector3:
        r"""Return $\Omega_1 = \frac12(d_3 \cdot \dot d_2 - d_2 \cdot \dot d_3)$, ...

        `rates="space"` returns $\omega = \frac12 \sum_n d_n \times \dot d_n$.

        **Source:** Lang (15).
        """
        check_rates(rates)
        d, v = jnp.unstack(a), jnp.unstack(0.5 * a_dot)
        if rates == "space":
            parts = [_cross(d[n : n + 3], v[n : n + 3]) for n in (0, 3, 6)]
            return jnp.stack([x + y + z for x, y, z in zip(*parts, strict=True)])

        def product(i: int, j: int) -> Array:
            return d[i] * v[j] + d[i + 1] * v[j + 1] + d[i + 2] * v[j + 2]

        return jnp.stack(
            [
                product(6, 3) - product(3, 6),
                product(0, 6) - product(6, 0),
                product(3, 0) - product(0, 3),
            ]
        )

    def constraint(self, a: Float[Array, "9"], rates: Rates = "body") -> Float[Array, "6"]:
        r"""Return the orthonormality conditions of the rows of $R$, shape (6,).

        Their order is $\frac12(|u_n|^2 - 1)$, $u_1 u_2$, $u_3 u_1$, $u_2 u_3$. With
        `rates="space"` the vectors $u_n$ are the columns.

        **Source:** Lang (19), (44).
        """
        check_rates(rates)
        d = jnp.unstack(a)
        rows = [d[n::3] for n in range(3)] if rates == "body" else [d[:3], d[3:6], d[6:]]

        def product(i: int, j: int) -> Array:
            u, v = rows[i], rows[j]
            return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]

        lengths = [0.5 * (product(n, n) - 1.0) for n in range(3)]
        return jnp.stack([*lengths, product(0, 1), product(2, 0), product(1, 2)])

    def constraint_jacobian(
        self, a: Float[Array, "9"], rates: Rates = "body"
    ) -> Float[Array, "6 9"]:
        r"""Return the gradient $G(d)$ of rank 6. **Source:** Lang (20)."""
        check_rates(rates)
        R = a.reshape(3, 3).T
        u1, u2, u3 = (R[0], R[1], R[2]) if rates == "body" else (R[:, 0], R[:, 1], R[:, 2])
        o = jnp.zeros_like(u1)
        # Axes: constraint, vector, component.
        blocks = jnp.stack(
            [
                jnp.stack([u1, o, o]),
                jnp.stack([o, u2, o]),
                jnp.stack([o, o, u3]),
                jnp.stack([u2, u1, o]),
                jnp.stack([u3, o, u1]),
                jnp.stack([o, u3, u2]),
            ]
        )
        if rates == "body":
            blocks = blocks.transpose(0, 2, 1)
        return blocks.reshape(6, 9)

    def mass_matrix(self, a: Float[Array, "9"], inertia: Vector3 | Matrix3) -> Float[Array, "9 9"]:
        r"""Return $E \otimes 1$ with the Euler tensor $E = \frac12 \mathrm{tr}(I)\,1 - I$, kg m^2.

        It is constant, and block-diagonal with blocks $E_n 1$ for principal moments.

        **Source:** Lang (17), (18).
        """
        check_inertia(inertia)
        I = jnp.diag(inertia) if inertia.ndim == 1 else inertia
        identity = jnp.eye(3, dtype=I.dtype)
        return jnp.kron(0.5 * jnp.trace(I) * identity - I, identity)

    def project(self, a: Float[Array, "9"]) -> Float[Array, "9"]:
        r"""Return the directors of the quaternion extracted by Spurrier and Klumpp's algorithm.

        The projection is explicit. The change is of the order of the drift. Contrary to Lang's
        Lemma 6.2, the result is not the nearest rotation: it also moves along the manifold.

        **Source:** Lang, Section 6, (P).
        """
        return euler_map_directors(self.to_quaternion(a))

    def project_rate(
        self,
        a: Float[Array, "9"],
        a_dot: Float[Array, "9"],
        inertia: Vector3 | Matrix3 | None = None,
    ) -> Float[Array, "9"]:
        r"""Return the nearest rate tangent at $d$, $\frac12 T T^T \dot d$ without `inertia`.

        This agrees with Lang's projection by way of the quaternion velocity, because $T^T T = 2$
        and the image of the quaternion's tangent space is that of $T$. With an inertia the result
        is $T I^{-1} T^T M \dot d$, which has the angular momentum of $\dot d$: the difference has
        the direction of the constraint forces. Methods of index 2 and 3 need this metric, because
        their velocities have errors of lower order in that direction only. A small multiple of the
        unit matrix, of relative size $\sqrt\epsilon$, regularises axes without inertia.

        **Source:** Lang, Section 6, (V), and (62, V).
        """
        if inertia is None:
            return self.rate(a, self.angular_velocity(a, a_dot))
        check_inertia(inertia)
        I = jnp.diag(inertia) if inertia.ndim == 1 else inertia
        trace, identity = jnp.trace(I), jnp.eye(3, dtype=I.dtype)
        floor = float(jnp.finfo(I.dtype).eps) ** 0.5 * jnp.where(trace > 0, trace, 1.0)
        E = (0.5 * trace + floor) * identity - I
        B = a.reshape(3, 3) @ a_dot.reshape(3, 3).T @ E
        momentum = jnp.stack([B[2, 1] - B[1, 2], B[0, 2] - B[2, 0], B[1, 0] - B[0, 1]])
        # Solve (I + 2 floor 1) omega = momentum by cofactors.
        x, y, z = I + 2.0 * floor * identity
        cofactors = jnp.stack([so3.cross(y, z), so3.cross(z, x), so3.cross(x, y)])
        omega = (cofactors @ momentum) / so3.dot(x, cofactors[0])
        return self.rate(a, omega)

    def singularity(self, a: Float[Array, "9"]) -> Scalar:
        r"""Return infinity: there is no singularity."""
        return jnp.full((), jnp.inf, a.dtype)

    def singularity_function(self, a: Float[Array, "9"]) -> Scalar:
        r"""Return 1: there is no singularity."""
        return jnp.ones((), a.dtype)

    def center(self) -> Float[Array, "9"]:
        r"""Return the identity."""
        return jnp.eye(3).reshape(9)

    def half_rotation(self, a: Float[Array, "9"]) -> Matrix3:
        r"""Return $F$ with $R(d) = F F$ and an angle of at most pi/2."""
        return half_rotation_matrix(so3.principal(self.to_quaternion(a)))
