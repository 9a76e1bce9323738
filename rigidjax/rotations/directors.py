"""Directors: the nine entries of the rotation matrix, rotation-free coordinates."""

from collections.abc import Sequence
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from . import so3
from .base import AbstractRotation, Rates, check_inertia, check_rates
from .euler_map import euler_map_directors
from .half_rotation import half_rotation_matrix
from .spurrier_klumpp import spurrier_klumpp


def _cross(u: Sequence[Array], v: Sequence[Array]) -> tuple[Array, Array, Array]:
    """The cross product of two vectors given in scalar components."""
    return (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])


class Directors(AbstractRotation):
    r"""The directors $d = (d_1, d_2, d_3)$, the columns of $R$ stacked; nine coordinates.

    Free of singularities, with linear and quadratic expressions only; six internal constraints.
    With body rates the *rows* of $R$ are constrained, with space rates the columns: then $G T = 0$
    holds off the manifold as well, and $R(d)$ is whatever the nine numbers say. `to_quaternion`
    and `project` do make it a rotation.

    **Source:** Lang, Section 3 and (44), (45).
    """

    num_coordinates: ClassVar[int] = 9
    num_constraints: ClassVar[int] = 6

    def to_matrix(self, a: Float[Array, "9"]) -> Float[Array, "3 3"]:
        r"""The matrix $R = (d_1 | d_2 | d_3)$."""
        return jnp.stack([a[0:3], a[3:6], a[6:9]], axis=1)

    def from_matrix(self, R: Float[Array, "3 3"]) -> Float[Array, "9"]:
        r"""The columns of $R$, stacked, unchanged even if $R$ is not a rotation; see `project`."""
        return R.T.reshape(9)

    def to_quaternion(self, a: Float[Array, "9"]) -> Float[Array, "4"]:
        r"""Unit quaternion of $R$, its largest component positive."""
        return so3.normalize(spurrier_klumpp(a.reshape(3, 3).T))

    def from_quaternion(self, p: Float[Array, "4"]) -> Float[Array, "9"]:
        r"""The Euler map, its columns stacked. **Source:** Lang (47)."""
        return euler_map_directors(p)

    def rate(
        self, a: Float[Array, "9"], omega: Float[Array, "3"], rates: Rates = "body"
    ) -> Float[Array, "9"]:
        r"""$\dot d_1 = \Omega_3 d_2 - \Omega_2 d_3$, ...: 18 products, 9 sums.

        `rates="space"`: $\dot d_n = \omega \times d_n$.
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
        r"""$T(d)$ of rank 3. **Source:** Lang (24), (45)."""
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
        r"""$H(d) = \frac12 T(d)^T$, the mean of the two expressions in Lang (15)."""
        return 0.5 * self.null_space(a, rates).T

    def angular_velocity(
        self, a: Float[Array, "9"], a_dot: Float[Array, "9"], rates: Rates = "body"
    ) -> Float[Array, "3"]:
        r"""$\Omega_1 = \frac12(d_3 \cdot \dot d_2 - d_2 \cdot \dot d_3)$, ... in components.

        `rates="space"`: $\omega = \frac12 \sum_n d_n \times \dot d_n$. **Source:** Lang (15).
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
        r"""Orthonormality of the rows of $R$ (`"space"`: of its columns), shape (6,).

        In the order $\frac12(|u_n|^2 - 1)$, $u_1 u_2$, $u_3 u_1$, $u_2 u_3$.

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
        r"""Gradient $G(d)$ of rank 6. **Source:** Lang (20)."""
        check_rates(rates)
        R = a.reshape(3, 3).T
        u1, u2, u3 = (R[0], R[1], R[2]) if rates == "body" else (R[:, 0], R[:, 1], R[:, 2])
        o = jnp.zeros_like(u1)
        # Blocks by constraint, by vector and by component.
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

    def mass_matrix(
        self, a: Float[Array, "9"], inertia: Float[Array, "3"] | Float[Array, "3 3"]
    ) -> Float[Array, "9 9"]:
        r"""$E \otimes 1$ with the Euler tensor $E = \frac12 \mathrm{tr}(I)\,1 - I$, kg m^2.

        Constant. For principal moments the block-diagonal matrix of the $E_n 1$.

        **Source:** Lang (17), (18).
        """
        check_inertia(inertia)
        I = jnp.diag(inertia) if inertia.ndim == 1 else inertia
        one = jnp.eye(3, dtype=I.dtype)
        return jnp.kron(0.5 * jnp.trace(I) * one - I, one)

    def project(self, a: Float[Array, "9"]) -> Float[Array, "9"]:
        r"""The directors of the normalized quaternion extracted by Spurrier and Klumpp's algorithm.

        Explicit: no iteration. The result is at a distance of the order of the drift, but not the
        nearest rotation, as Lang's Lemma 6.2 says: it also moves along the manifold, by up to
        twice the drift in random tests.

        **Source:** Lang, Section 6, (P).
        """
        return euler_map_directors(self.to_quaternion(a))

    def project_rate(
        self,
        a: Float[Array, "9"],
        a_dot: Float[Array, "9"],
        inertia: Float[Array, "3"] | Float[Array, "3 3"] | None = None,
    ) -> Float[Array, "9"]:
        r"""The nearest rate that is tangent at $d$: $\frac12 T T^T \dot d$ without `inertia`.

        This is the same as Lang's detour over the quaternion velocity, because $T^T T = 2$ and the
        image of the quaternion's tangent space is that of $T$. With an inertia it is
        $T I^{-1} T^T M \dot d$, of the same angular momentum as $\dot d$: what is taken away has
        the direction of the constraint forces. So it must be behind the steps of a method at index
        2 or 3, whose velocities have errors of lower order in that direction alone. About an axis
        without inertia, a part of $\sqrt\epsilon$ of the unit matrix decides.

        **Source:** Lang, Section 6, (V), and (62, V).
        """
        if inertia is None:
            return self.rate(a, self.angular_velocity(a, a_dot))
        check_inertia(inertia)
        I = jnp.diag(inertia) if inertia.ndim == 1 else inertia
        trace, one = jnp.trace(I), jnp.eye(3, dtype=I.dtype)
        floor = float(jnp.finfo(I.dtype).eps) ** 0.5 * jnp.where(trace > 0, trace, 1.0)
        E = (0.5 * trace + floor) * one - I
        B = a.reshape(3, 3) @ a_dot.reshape(3, 3).T @ E
        momentum = jnp.stack([B[2, 1] - B[1, 2], B[0, 2] - B[2, 0], B[1, 0] - B[0, 1]])
        # By cofactors.
        x, y, z = I + 2.0 * floor * one
        cofactors = jnp.stack([so3.cross(y, z), so3.cross(z, x), so3.cross(x, y)])
        omega = (cofactors @ momentum) / so3.dot(x, cofactors[0])
        return self.rate(a, omega)

    def singularity(self, a: Float[Array, "9"]) -> Float[Array, ""]:
        r"""Infinite: there is no singularity."""
        return jnp.full((), jnp.inf, a.dtype)

    def singularity_function(self, a: Float[Array, "9"]) -> Float[Array, ""]:
        r"""1: there is no singularity."""
        return jnp.ones((), a.dtype)

    def center(self) -> Float[Array, "9"]:
        r"""The identity."""
        return jnp.eye(3).reshape(9)

    def half_rotation(self, a: Float[Array, "9"]) -> Float[Array, "3 3"]:
        r"""$F$ with $R(d) = F F$ and an angle of at most pi/2."""
        return half_rotation_matrix(so3.principal(self.to_quaternion(a)))
