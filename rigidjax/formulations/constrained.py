r"""Closed forms of the index-1 equations of one body for each parametrization.

`constrained_acceleration` solves $M \ddot a + G^T \lambda = \psi$, $G \ddot a = -g^{II}$ for
$\ddot a$, `internal_multipliers` for $\lambda$, both without forming the matrix. A redundant
parametrization registers its own closed form; a minimal one has no constraints.
"""

from collections.abc import Sequence
from functools import singledispatch

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector, Vector3
from ..bodies.euler_equations import angular_momentum, euler_equations, solve_inertia
from ..bodies.inertia import euler_tensor
from ..forces.base import Kinematics
from ..mechanics.dynamics.loads import applied_wrenches, force_virials
from ..mechanics.stacked.system import PreparedSystem
from ..rotations import so3
from ..rotations.base import AbstractRotation
from ..rotations.directors import Directors
from ..rotations.quaternion import Quaternion

Inertia = Vector3 | Matrix3


@singledispatch
def constrained_acceleration(
    rotation: AbstractRotation, a: Vector, a_dot: Vector, inertia: Inertia, moment: Vector3 | None
) -> Vector:
    r"""Return the second derivatives $\ddot a$ of the coordinates of a body under a moment.

    For a minimal parametrization $\ddot a = T \dot\Omega + \dot T\,\Omega$ with Euler's equations
    for $\Omega = H \dot a$, which is Lagrange's equation solved for $\ddot a$.

    **Arguments:** `rotation`; `a`, `a_dot`, shape (n,); `inertia`, (3,) or (3, 3), kg m^2;
    `moment`, body components, N m, or `None`.
    **Returns:** shape (n,).
    **Source:** Lang (6), (66).
    """
    if rotation.num_constraints > 0:
        raise ValueError(
            f"There is no closed form of the index-1 equations for {type(rotation).__name__}; "
            "use `NullSpace`, which needs none."
        )
    omega = rotation.angular_velocity(a, a_dot)
    return rotation.acceleration(a, omega, euler_equations(inertia, omega, moment))


@singledispatch
def internal_multipliers(
    rotation: AbstractRotation,
    a: Vector,
    a_dot: Vector,
    inertia: Inertia,
    moment: Vector3,
    virial: Matrix3,
) -> Float[Array, " m"]:
    r"""Return the Lagrange multipliers of the internal constraints, J.

    **Arguments:** as `constrained_acceleration`; `virial`, the symmetric part of
    $\sum f \otimes u$ in body components, N m: it has no effect on the motion, but the multipliers
    balance it.
    **Returns:** shape (m,), in the order of `rotation.constraint`.
    """
    if rotation.num_constraints > 0:
        raise ValueError(f"There are no closed-form multipliers for {type(rotation).__name__}.")
    return jnp.zeros(0, a.dtype)


@constrained_acceleration.register
def _quaternion_acceleration(
    rotation: Quaternion, a: Vector, a_dot: Vector, inertia: Inertia, moment: Vector3 | None
):
    r"""Evaluate Lang (40) with $|p| = 1$: $\ddot p = M^\sharp \psi_p - |\dot p|^2 p$.

    With $\bar p\,\dot p = (r, h)$, where $h = \Omega/2$ and $r = 0$ on the manifold,
    $M^\sharp\psi_p = p\,[I^{-1}(\mu/2 - 2 h \times I h) - 2 r h]$. The fictive radial inertia
    $I_0$ adds $-4 I_0 |\dot p|^2 p$ to $\psi_p$ (Lang (33) is for $I_0 = 0$) and the same to
    $M\ddot p$: it changes neither $\ddot p$ nor $\lambda$.
    """
    p0, p1, p2, p3 = jnp.unstack(a)
    q0, q1, q2, q3 = jnp.unstack(a_dot)
    half = jnp.stack(
        [
            p0 * q1 - p1 * q0 + p3 * q2 - p2 * q3,
            p0 * q2 - p2 * q0 + p1 * q3 - p3 * q1,
            p0 * q3 - p3 * q0 + p2 * q1 - p1 * q2,
        ]
    )
    radial = 2.0 * (p0 * q0 + p1 * q1 + p2 * q2 + p3 * q3)
    half_moment = None if moment is None else 0.5 * moment
    if inertia.ndim == 1:
        h1, h2, h3 = jnp.unstack(half)
        i1, i2, i3 = jnp.unstack(inertia)
        d1, d2 = h1 + h1, h2 + h2
        n1, n2, n3 = (i3 - i2) * d2 * h3, (i1 - i3) * h3 * d1, (i2 - i1) * d1 * h2
        if half_moment is not None:
            m1, m2, m3 = jnp.unstack(half_moment)
            n1, n2, n3 = n1 - m1, n2 - m2, n3 - m3
        c1, c2, c3 = n1 / i1, n2 / i2, n3 / i3
    else:
        gyroscopic = euler_equations(inertia, half, None)
        applied = 0.0 if half_moment is None else solve_inertia(inertia, half_moment)
        c1, c2, c3 = jnp.unstack(-2.0 * gyroscopic - applied)
        h1, h2, h3 = jnp.unstack(half)
    # The negative of the bracket above, so that the product with p needs no change of sign.
    c1, c2, c3 = c1 + radial * h1, c2 + radial * h2, c3 + radial * h3
    s = q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3
    return jnp.stack(
        [
            p1 * c1 + p2 * c2 + p3 * c3 - s * p0,
            p3 * c2 - p2 * c3 - p0 * c1 - s * p1,
            p1 * c3 - p3 * c1 - p0 * c2 - s * p2,
            p2 * c1 - p1 * c2 - p0 * c3 - s * p3,
        ]
    )


@internal_multipliers.register
def _quaternion_multipliers(
    rotation: Quaternion,
    a: Vector,
    a_dot: Vector,
    inertia: Inertia,
    moment: Vector3 | None,
    virial: Matrix3,
):
    r"""Evaluate Lang (40): $\lambda = \langle p, \psi_p\rangle$ for any $I_0$."""
    half = 0.5 * rotation.angular_velocity(a, a_dot)
    value = 8.0 * so3.dot(half, angular_momentum(inertia, half)) + 2.0 * jnp.trace(virial)
    return value[None]


@constrained_acceleration.register
def _director_acceleration(
    rotation: Directors, a: Vector, a_dot: Vector, inertia: Inertia, moment: Vector3 | None
):
    r"""Evaluate Lang (23), exactly, also off the manifold, by a 3x3 solve instead of a 15x15 one.

    With $\ddot R = R\,(S + \tilde\alpha)$ the constraint determines the symmetric part alone,
    $S = -W W^T$, $W = R^{-1}\dot R$; the multipliers are symmetric, $G^T\lambda \simeq \Lambda R$,
    so that the skew part of $R^T(\Psi - \ddot R E) = R^T \Lambda R$ gives three equations for
    $\alpha$: $B\tilde\alpha E + E\tilde\alpha B = \tilde\mu + C W^T E - E W C^T$, $B = R^T R$, $C
    = R^T\dot R$. On the manifold the matrix on the left is the inertia itself.
    """
    R, R_dot = _columns(a), _columns(a_dot)
    E = _euler_tensor(inertia)
    B = _gram(R)
    C = [[_dot(R[i], R_dot[j]) for j in range(3)] for i in range(3)]
    W = _solve_symmetric(B, C)
    Z = [[_dot(C[i], W[j]) for j in range(3)] for i in range(3)]  # C W^T
    X = _times_symmetric(Z, E)
    right = [X[2][1] - X[1][2], X[0][2] - X[2][0], X[1][0] - X[0][1]]
    if moment is not None:
        right = [r + m for r, m in zip(right, jnp.unstack(moment), strict=True)]
    x1, x2, x3 = _solve_vector(_mixed_cofactors(B, E), right)
    # R S = -R W W^T = -(dR/dt) W^T.
    rows = []
    for k in range(3):
        d = [R[j][k] for j in range(3)]
        v = [R_dot[j][k] for j in range(3)]
        rows.append(
            [
                d[1] * x3 - d[2] * x2 - _dot(v, W[0]),
                d[2] * x1 - d[0] * x3 - _dot(v, W[1]),
                d[0] * x2 - d[1] * x1 - _dot(v, W[2]),
            ]
        )
    return jnp.stack([rows[k][j] for j in range(3) for k in range(3)])


@internal_multipliers.register
def _director_multipliers(
    rotation: Directors,
    a: Vector,
    a_dot: Vector,
    inertia: Inertia,
    moment: Vector3,
    virial: Matrix3,
):
    r"""Return $\Lambda = (\Psi - \ddot R E) R^{-1}$, the six multipliers of Lang (19)."""
    R = rotation.to_matrix(a)
    a_ddot = constrained_acceleration(rotation, a, a_dot, inertia, moment)
    E = euler_tensor(inertia)
    E = jnp.diag(E) if E.ndim == 1 else E
    body = virial + 0.5 * so3.skew(moment)
    inverse = jnp.linalg.inv(R)
    # R^T Psi = `body`: `moment` is the moment of forces on the actual directors.
    L = (inverse.T @ body - rotation.to_matrix(a_ddot) @ E) @ inverse
    L = 0.5 * (L + L.T)
    return jnp.stack([L[0, 0], L[1, 1], L[2, 2], L[0, 1], L[0, 2], L[1, 2]])


def _columns(a: Float[Array, "9"]) -> list[list[Array]]:
    d = jnp.unstack(a)
    return [list(d[0:3]), list(d[3:6]), list(d[6:9])]


def _dot(u: Sequence[Array], v: Sequence[Array]):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def _gram(R: Sequence[Sequence[Array]]):
    """Return the upper triangle of $R^T R$ as 11, 22, 33, 23, 13, 12."""
    return (
        _dot(R[0], R[0]),
        _dot(R[1], R[1]),
        _dot(R[2], R[2]),
        _dot(R[1], R[2]),
        _dot(R[0], R[2]),
        _dot(R[0], R[1]),
    )


def _euler_tensor(inertia: Inertia):
    """Return three principal values or six components in the order of `_gram`."""
    E = euler_tensor(inertia)
    if E.ndim == 1:
        return tuple(jnp.unstack(E))
    return (E[0, 0], E[1, 1], E[2, 2], E[1, 2], E[0, 2], E[0, 1])


def _times_symmetric(Z: Sequence[Sequence[Array]], E: Sequence[Array]):
    if len(E) == 3:
        return [[Z[i][j] * E[j] for j in range(3)] for i in range(3)]
    full = [[E[0], E[5], E[4]], [E[5], E[1], E[3]], [E[4], E[3], E[2]]]
    return [[_dot(Z[i], full[j]) for j in range(3)] for i in range(3)]


def _mixed_cofactors(B: Sequence[Array], E: Sequence[Array]):
    r"""Return $K$ = cof(B+E) - cof B - cof E with
    $K\alpha \simeq B\tilde\alpha E + E\tilde\alpha B$."""
    b1, b2, b3, b23, b13, b12 = B
    if len(E) == 3:
        e1, e2, e3 = E
        return (
            b2 * e3 + b3 * e2,
            b1 * e3 + b3 * e1,
            b1 * e2 + b2 * e1,
            -(b23 * e1),
            -(b13 * e2),
            -(b12 * e3),
        )
    e1, e2, e3, e23, e13, e12 = E
    return (
        b2 * e3 + b3 * e2 - 2.0 * b23 * e23,
        b1 * e3 + b3 * e1 - 2.0 * b13 * e13,
        b1 * e2 + b2 * e1 - 2.0 * b12 * e12,
        b12 * e13 + b13 * e12 - b1 * e23 - b23 * e1,
        b12 * e23 + b23 * e12 - b2 * e13 - b13 * e2,
        b13 * e23 + b23 * e13 - b3 * e12 - b12 * e3,
    )


def _adjugate(K: Sequence[Array]):
    """Return the adjugate (same order of components) and the inverse determinant of a symmetric
    3x3 matrix."""
    a, b, c, d, e, f = K
    k1, k5, k6 = b * c - d * d, d * f - b * e, d * e - c * f
    k2, k3, k4 = a * c - e * e, a * b - f * f, e * f - a * d
    return (k1, k2, k3, k4, k5, k6), 1.0 / (a * k1 + f * k6 + e * k5)


def _solve_vector(K: Sequence[Array], v: Sequence[Array]):
    (k1, k2, k3, k4, k5, k6), scale = _adjugate(K)
    s = [v[0] * scale, v[1] * scale, v[2] * scale]
    return (
        k1 * s[0] + k6 * s[1] + k5 * s[2],
        k6 * s[0] + k2 * s[1] + k4 * s[2],
        k5 * s[0] + k4 * s[1] + k3 * s[2],
    )


def _solve_symmetric(K: Sequence[Array], C: Sequence[Sequence[Array]]):
    (k1, k2, k3, k4, k5, k6), scale = _adjugate(K)
    k1, k2, k3, k4, k5, k6 = (k * scale for k in (k1, k2, k3, k4, k5, k6))
    rows = ((k1, k6, k5), (k6, k2, k4), (k5, k4, k3))
    columns = [[C[i][j] for i in range(3)] for j in range(3)]
    return [[_dot(row, column) for column in columns] for row in rows]


def check_rotation(rotation: AbstractRotation | None) -> AbstractRotation:
    """Return `rotation`, or the quaternion for `None`; raise `TypeError` for anything else."""
    if rotation is None:
        return Quaternion()
    if not isinstance(rotation, AbstractRotation):
        raise TypeError(
            "`rotation` must be a parametrization such as `rj.Quaternion()`, an instance and not "
            f"a class; got {rotation!r}."
        )
    return rotation


def multipliers_of_rotations(
    rotation: AbstractRotation,
    prepared: PreparedSystem,
    t: Scalar,
    kinematics: Kinematics,
    coordinates: Float[Array, "L n"],
    rates: Float[Array, "L n"],
) -> Float[Array, " m"]:
    """Return the multipliers of the internal constraints of all bodies, in one vector."""
    moments = applied_wrenches(prepared, t, kinematics)[:, 3:]
    virials = force_virials(prepared, t, kinematics)
    each = jax.vmap(lambda *of_body: internal_multipliers(rotation, *of_body))
    return each(coordinates, rates, prepared.inertias, moments, virials).ravel()
