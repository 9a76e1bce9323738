r"""The algebra of SO(3): skew matrices, quaternion products, exponential, logarithm, dexp.

All functions but the cross product work in scalar components, because small matrix products cost
more than their arithmetic. Quaternions have the scalar part first; products are Hamilton's.
Functions take single vectors; use `jax.vmap` for batches.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Matrix3, Scalar, Vector3
from ..small_arrays import cross as cross
from . import guarded
from .base import Rates, check_rates
from .conversion import spurrier_klumpp
from .matrix import matrix


def skew(v: Vector3) -> Matrix3:
    r"""Return the skew matrix $\tilde v$ with $\tilde v\,w = v \times w$, shape (3, 3)."""
    v1, v2, v3 = jnp.unstack(v)
    o = jnp.zeros_like(v1)
    return matrix([o, -v3, v2, v3, o, -v1, -v2, v1, o])


def unskew(V: Matrix3) -> Vector3:
    r"""Return the axial vector of the skew part of $V$, `vect` in Geradin-Rixen, shape (3,).

    It is the inverse of `skew`; $\mathrm{vect}(R) = n \sin\phi$, Geradin-Rixen (47).
    """
    return 0.5 * jnp.stack([V[2, 1] - V[1, 2], V[0, 2] - V[2, 0], V[1, 0] - V[0, 1]])


def dot(u: Vector3, v: Vector3) -> Scalar:
    r"""Return the inner product $u \cdot v$ in components."""
    u1, u2, u3 = jnp.unstack(u)
    v1, v2, v3 = jnp.unstack(v)
    return u1 * v1 + u2 * v2 + u3 * v3


def axial_matrix(k: Scalar | float, s: Scalar | float, g: Scalar | float, v: Vector3) -> Matrix3:
    r"""Return the matrix $k\,1 + s\,\tilde v + g\,v v^T$, shape (3, 3).

    Rotation matrices, tangent operators and their inverses all have this form in the
    parametrizations $a = n f(\phi)$ by a vector along the rotation axis.
    """
    v1, v2, v3 = jnp.unstack(v)
    s1, s2, s3 = s * v1, s * v2, s * v3
    g1, g2, g3 = g * v1, g * v2, g * v3
    g12, g13, g23 = g1 * v2, g1 * v3, g2 * v3
    return matrix(
        [
            *(k + g1 * v1, g12 - s3, g13 + s2),
            *(g12 + s3, k + g2 * v2, g23 - s1),
            *(g13 - s2, g23 + s1, k + g3 * v3),
        ]
    )


def axial_product(
    k: Scalar | float, s: Scalar | float, g: Scalar | float, v: Vector3, w: Vector3
) -> Vector3:
    r"""Return the vector $k\,w + s\,v \times w + g\,(v \cdot w)\,v$, shape (3,).

    It equals `axial_matrix(k, s, g, v) @ w`, in 30 operations.
    """
    v1, v2, v3 = jnp.unstack(v)
    w1, w2, w3 = jnp.unstack(w)
    h1, h2, h3 = s * w1, s * w2, s * w3
    d = g * (v1 * w1 + v2 * w2 + v3 * w3)
    return jnp.stack(
        [
            k * w1 + d * v1 + v2 * h3 - v3 * h2,
            k * w2 + d * v2 + v3 * h1 - v1 * h3,
            k * w3 + d * v3 + v1 * h2 - v2 * h1,
        ]
    )


def pure(w: Vector3) -> Float[Array, "4"]:
    """Return the quaternion $(0, w)$ of a vector."""
    return jnp.concatenate([jnp.zeros_like(w[:1]), w])


def multiply(p: Float[Array, "4"], q: Float[Array, "4"]) -> Float[Array, "4"]:
    r"""Return the quaternion product $p\,q$, shape (4,): rotation by $q$, then by $p$.

    **Source:** Lang (30), Geradin-Rixen (212).
    """
    p0, p1, p2, p3 = jnp.unstack(p)
    q0, q1, q2, q3 = jnp.unstack(q)
    return jnp.stack(
        [
            p0 * q0 - p1 * q1 - p2 * q2 - p3 * q3,
            p0 * q1 + p1 * q0 + p2 * q3 - p3 * q2,
            p0 * q2 + p2 * q0 + p3 * q1 - p1 * q3,
            p0 * q3 + p3 * q0 + p1 * q2 - p2 * q1,
        ]
    )


def left_matrix(p: Float[Array, "4"]) -> Float[Array, "4 4"]:
    r"""Return $Q_l(p) = (p\ \ G(p)^T)$ with $p\,q = Q_l(p)\,q$, shape (4, 4).

    **Source:** Betsch-Siebert (9)-(11); Lang (30).
    """
    return jnp.concatenate([p[:, None], _columns(p, 1.0)], axis=1)


def right_matrix(p: Float[Array, "4"]) -> Float[Array, "4 4"]:
    r"""Return $Q_r(p) = (p\ \ E(p)^T)$ with $q\,p = Q_r(p)\,q$, shape (4, 4).

    **Source:** Betsch-Siebert (9)-(11).
    """
    return jnp.concatenate([p[:, None], _columns(p, -1.0)], axis=1)


def _columns(p: Float[Array, "4"], sign: float) -> Float[Array, "4 3"]:
    lower = p[0] * jnp.eye(3, dtype=p.dtype) + sign * skew(p[1:])
    return jnp.concatenate([-p[None, 1:], lower])


def turned_skew(p: Float[Array, "4"], w: Vector3) -> Matrix3:
    r"""Return the skew matrix of $R(p)\,w$, $-E(p)\,Q_r(0, w)\,E(p)^T$ for $|p| = 1$, (3, 3).

    **Source:** Betsch-Siebert (34), Appendix B.
    """
    E = right_matrix(p)[:, 1:].T
    return -E @ right_matrix(pure(w)) @ E.T


def conjugate(p: Float[Array, "4"]) -> Float[Array, "4"]:
    r"""Return the conjugate $\bar p$, the inverse rotation of a unit quaternion, shape (4,)."""
    p0, p1, p2, p3 = jnp.unstack(p)
    return jnp.stack([p0, -p1, -p2, -p3])


def normalize(p: Float[Array, "4"]) -> Float[Array, "4"]:
    r"""Return the unit quaternion $p / |p|$, shape (4,); not finite at $p = 0$."""
    p0, p1, p2, p3 = jnp.unstack(p)
    scale = 1.0 / jnp.sqrt(p0 * p0 + p1 * p1 + p2 * p2 + p3 * p3)
    return jnp.stack([p0 * scale, p1 * scale, p2 * scale, p3 * scale])


def principal(p: Float[Array, "4"]) -> Float[Array, "4"]:
    r"""Return $p$ or $-p$, the one with $p_0 \ge 0$ and an angle of at most pi, shape (4,).

    At pi, where both signs describe the same rotation, $p$ is returned unchanged, so that
    derivatives there are one-sided.
    """
    return jnp.where(p[0] < 0, -p, p)


def rotate(p: Float[Array, "4"], w: Vector3) -> Vector3:
    r"""Return the rotated vector $p\,w\,\bar p$, body to space components, shape (3,).

    It is stretched by $|p|^2$ if $p$ is not a unit quaternion.

    **Source:** Lang (29).
    """
    p0, p1, p2, p3 = jnp.unstack(p)
    w1, w2, w3 = jnp.unstack(w)
    # First p w, then the product with conj(p), whose scalar part cancels.
    a0 = p1 * w1 + p2 * w2 + p3 * w3
    a1 = p0 * w1 + p2 * w3 - p3 * w2
    a2 = p0 * w2 + p3 * w1 - p1 * w3
    a3 = p0 * w3 + p1 * w2 - p2 * w1
    return jnp.stack(
        [
            a0 * p1 + a1 * p0 + a3 * p2 - a2 * p3,
            a0 * p2 + a2 * p0 + a1 * p3 - a3 * p1,
            a0 * p3 + a3 * p0 + a2 * p1 - a1 * p2,
        ]
    )


def exp(psi: Vector3) -> Matrix3:
    r"""Return the rotation matrix $\exp(\tilde\psi)$ of $\psi = n\phi$, rad, shape (3, 3).

    **Source:** Geradin-Rixen (165), as $\cos\phi\,1 + \ldots\,\tilde\psi + \ldots\,\psi\psi^T$.
    """
    x = dot(psi, psi)
    versine = guarded.versine_ratio(x)
    return axial_matrix(1.0 - versine * x, guarded.sine_ratio(x), versine, psi)


def exp_quaternion(psi: Vector3) -> Float[Array, "4"]:
    r"""Return the unit quaternion $(\cos\frac\phi2, n \sin\frac\phi2)$ of $\psi = n\phi$, (4,)."""
    psi1, psi2, psi3 = jnp.unstack(psi)
    quarter = 0.25 * (psi1 * psi1 + psi2 * psi2 + psi3 * psi3)
    half = 0.5 * guarded.sine_ratio(quarter)
    return jnp.stack([guarded.cosine(quarter), half * psi1, half * psi2, half * psi3])


def log_quaternion(p: Float[Array, "4"]) -> Vector3:
    r"""Return the rotation vector $\psi$, $|\psi| \le \pi$, of a quaternion $p \ne 0$, rad, (3,).

    It does not depend on $|p|$ and the sign of $p$, except at angle pi, where $n$ and $-n$ are
    equivalent: there the sign of $p$ decides, and derivatives are one-sided.
    """
    # Adding |p| to the scalar part bisects the angle. After three bisections a power series of the
    # arc tangent is accurate: smooth at zero, without arc functions and case distinctions.
    p = principal(p)
    p0, p1, p2, p3 = jnp.unstack(p)
    v2 = p1 * p1 + p2 * p2 + p3 * p3
    norm = jnp.sqrt(p0 * p0 + v2)
    for _ in range(3):
        p0 = p0 + norm
        norm = jnp.sqrt(2.0 * norm * p0)
    scale = 16.0 / p0 * guarded.arctangent_ratio(v2 / (p0 * p0))
    return jnp.stack([scale * p1, scale * p2, scale * p3])


def log(R: Matrix3) -> Vector3:
    r"""Return the rotation vector with $|\psi| \le \pi$, rad, of a rotation matrix, shape (3,)."""
    return log_quaternion(spurrier_klumpp(R))


def dexp(psi: Vector3, v: Vector3, rates: Rates = "body") -> Vector3:
    r"""Return the angular velocity of $R = \exp(\tilde\psi)$ with $\dot\psi = v$, (3,) rad/s.

    `rates="body"` is the left trivialization, $\tilde\Omega = R^T \dot R$, and `rates="space"` the
    right one, $\tilde\omega = \dot R R^T$.

    **Source:** Geradin-Rixen (170), (171); Terze, Appendix A.
    """
    check_rates(rates)
    x = dot(psi, psi)
    versine = guarded.versine_ratio(x)
    s = -versine if rates == "body" else versine
    return axial_product(guarded.sine_ratio(x), s, guarded.sine_excess_ratio(x), psi, v)


def dexp_inv(
    psi: Vector3, v: Vector3, rates: Rates = "body", truncated: int | None = None
) -> Vector3:
    r"""Return the rate $\dot\psi$ for which $\exp(\tilde\psi)$ has the angular velocity $v$, (3,).

    It is the inverse of `dexp` and singular at angle 2 pi. With `truncated=k` the series
    $\sum_j (B_j / j!)\,(\mp\mathrm{ad}_\psi)^j v$ ends with the power $k$ of the commutator, with
    an error of order $|\psi|^{k+1}$ (odd powers above the first are zero).

    **Source:** inverse of Geradin-Rixen (171); Terze (A.4) and (B.1), where `dexp` is printed for
    its inverse.
    """
    check_rates(rates)
    x = dot(psi, psi)
    if truncated is None:
        e = guarded.dexp_inverse_ratio(x)
    else:
        e = guarded.dexp_inverse_polynomial(x, truncated // 2)
    s = 0.5 if truncated is None or truncated > 0 else 0.0
    return axial_product(1.0 - e * x, s if rates == "body" else -s, e, psi, v)
