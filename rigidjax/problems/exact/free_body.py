r"""Motion of the torque-free rigid body in Jacobi elliptic functions, attitude included.

Body axes are relabelled so that the angular momentum circles axis 3, axis 2 has the middle moment,
and axis 1 the other extreme moment. With $\Omega_3 \ge 0$, $h = |I\Omega|$ and
$u = u_0 + \omega_p t$

$$\Omega = (A_1\,\mathrm{cn}\,u,\ A_2\,\mathrm{sn}\,u,\ A_3\,\mathrm{dn}\,u), \qquad
R = R_z(\varphi) R_x(\theta) R_z(\psi)$$

in a frame with $e_3$ along the angular momentum. $\theta$ and $\psi$ follow from $\Omega$, and
$\dot\varphi = h/I_3 + h (1/I_1 - 1/I_3)/(1 + \nu\,\mathrm{sn}^2 u)$ is an integral of the third
kind with the characteristic $-\nu$. A change of parameter to $-\rho = -m/\nu$ (DLMF 19.7.9) gives
a second form. With the smaller characteristic all coefficients are bounded for all inertias and
energies, so that no phase loses digits: neither close to the separatrix, nor for nearly symmetric
or spherical bodies, nor close to steady rotation.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies import principal_axes, unit_quaternion
from ...bodies.inertia import checked_inertia
from ...checks import ArrayInput, finite_leaf
from ...rotations.so3 import multiply
from .elliptic import JacobiFunctions, carlson_rf, complete_first, jacobi, third_kind

# Replaces m1 = 0, where the period is infinite; its quarter period is 323.
_SMALLEST_M1 = 1e-280
_multiply = jnp.vectorize(multiply, signature="(n),(n)->(n)")


def free_body(
    inertia: ArrayInput, orientation0: ArrayInput, omega0: ArrayInput, ts: ArrayInput
) -> tuple[Float[Array, "*T 4"], Float[Array, "*T 3"]]:
    r"""Compute the exact motion of a rigid body without applied moment.

    Valid for every order of the moments, for equal moments, on both sides of the separatrix and on
    it, and for steady rotation. The quaternion is continuous in time.

    **Arguments:** `inertia` about the centre of mass (or the fixed point), principal (3,) or
    symmetric (3, 3), kg m^2; `orientation0`, unit quaternion (4,), body to space, and `omega0`,
    (3,) rad/s, body components, at t = 0; `ts`, times in s, (T,) or a scalar, of either sign.
    **Returns:** orientations (T, 4) and angular velocities (T, 3), body components, rad/s.
    **Errors:** `ValueError` for wrong shapes, moments that are not positive, a quaternion that is
    not of unit length, or values that are not finite.
    **Source:** Jacobi; Landau-Lifshitz, Mechanics, section 37; van Zon, Schofield, J. Comput. Phys.
    225 (2007) 145; DLMF 19, 22.
    """
    moments = checked_inertia(inertia, "inertia", physical=False, regular=True)
    p0 = unit_quaternion(orientation0, "orientation0")
    omega = finite_leaf(omega0, "omega0", (3,))
    t = finite_leaf(ts, "ts")
    if t.ndim > 1:
        raise ValueError(f"`ts` must be a number or have shape (T,); got shape {t.shape}.")
    if moments.ndim == 2:
        moments, axes = principal_axes(moments)
    else:
        axes = jnp.eye(3, dtype=omega.dtype)
    # Time is scaled so that the largest rate is 1 and squares do not underflow.
    speed = jnp.max(jnp.abs(omega))
    resting = speed == 0
    speed = jnp.where(resting, 1.0, speed)
    omega_principal = axes.T @ (omega / speed)
    rows = _canonical_axes(moments, omega_principal)
    relative, omega_canonical = _canonical_motion(
        jnp.abs(rows) @ moments, rows @ omega_principal, t * speed
    )
    to_canonical = rows @ axes.T
    vector = relative[..., 1:] @ to_canonical
    orientation = _multiply(p0, jnp.concatenate([relative[..., :1], vector], axis=-1))
    angular_velocity = omega_canonical @ to_canonical * speed
    return (jnp.where(resting, p0, orientation), jnp.where(resting, omega, angular_velocity))


def _canonical_axes(moments: Float[Array, "3"], omega: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Return the signed permutation matrix of determinant 1 to the relabelled axes."""
    order = jnp.argsort(moments)
    low, middle, high = moments[order[0]], moments[order[1]], moments[order[2]]
    w_low, w_high = omega[order[0]], omega[order[2]]
    # The sign of h^2 - 2 T I_middle tells the side of the separatrix.
    for_high = high * (high - middle) * w_high * w_high
    for_low = low * (middle - low) * w_low * w_low
    tie = (for_high == for_low) & (high - middle > middle - low)
    circled_high = (for_high > for_low) | tie
    chosen = jnp.where(circled_high, order, order[::-1])
    rows = jnp.eye(3, dtype=omega.dtype)[chosen]
    # After a transposition the sign of the second axis is changed, to obtain a rotation.
    even = (chosen[1] - chosen[0]) % 3 == 1
    rows = rows * jnp.array([1.0, jnp.where(even, 1.0, -1.0), 1.0], omega.dtype)[:, None]
    turn = jnp.where(rows[2] @ omega < 0, -1.0, 1.0)
    return rows * jnp.array([1.0, turn, turn], omega.dtype)[:, None]


def _canonical_motion(
    moments: Float[Array, "3"], omega: Float[Array, "3"], t: Float[Array, "*T"]
) -> tuple[Float[Array, "*T 4"], Float[Array, "*T 3"]]:
    """Return the rotation since t = 0 as a quaternion, and omega, in relabelled axes."""
    i1, i2, i3 = moments[0], moments[1], moments[2]
    w1, w2, w3 = omega[0], omega[1], omega[2]
    spherical = i1 == i3
    span = jnp.where(spherical, 1.0, i3 - i1)
    upper = jnp.where(i3 == i2, 1.0, i3 - i2)
    lower = i2 - i1
    # Squares of the ratios of amplitudes; all signs cancel.
    ratio12 = jnp.where(spherical, 1.0, i2 * upper / (i1 * span))
    ratio32 = i2 * lower / (i3 * span)
    ratio31 = i1 * lower / (i3 * upper)
    nu = i3 * lower / (i1 * upper)
    a1_squared = w1 * w1 + ratio12 * w2 * w2
    a3_squared = w3 * w3 + ratio32 * w2 * w2
    m1 = (w3 * w3 - ratio31 * w1 * w1) / _nonzero(a3_squared)
    smallest = max(_SMALLEST_M1, float(jnp.finfo(omega.dtype).tiny))
    m1 = jnp.clip(jnp.where(a3_squared > 0, m1, 1.0), smallest, 1.0)
    rho = (i1 / i3) ** 2 * a1_squared / _nonzero(a3_squared)
    rate = jnp.sign(i3 - i2) * jnp.sqrt(a3_squared * upper * span * i3 / (i1 * i2 * i3))
    # Rotation about the middle axis is steady; its period would be infinite.
    steady = ((w1 == 0) & (w3 == 0)) | (a3_squared == 0) | spherical
    rate = jnp.where(steady, 0.0, rate)

    # Initial phase: amplitude from both components, F by an integral that keeps relative accuracy.
    a1 = jnp.sqrt(_nonzero(a1_squared))
    s0 = jnp.where(a1_squared > 0, jnp.sqrt(ratio12) * w2 / a1, 0.0)
    c0 = jnp.where(a1_squared > 0, w1 / a1, 1.0)
    d0 = jnp.maximum(w3 / jnp.sqrt(_nonzero(a3_squared)), jnp.sqrt(m1))
    quarter = complete_first(m1)
    back = c0 < 0
    u0 = jnp.where(back, -s0, s0) * carlson_rf(c0 * c0, d0 * d0, 1.0)
    u0 = u0 + jnp.where(back, 2 * quarter, 0.0)

    all_u = jnp.concatenate([u0[None], jnp.atleast_1d(u0 + rate * t)])
    k, sn, cn, dn = jacobi(all_u, m1)
    # In steady rotation the components keep their initial values, independent of the phase.
    sn = jnp.where(steady, jnp.where(back, -s0, s0), sn)
    cn = jnp.where(steady, jnp.abs(c0), cn)
    dn = jnp.where(steady, w3 / jnp.sqrt(_nonzero(a3_squared)), dn)
    k = jnp.where(steady, jnp.where(back, 1.0, 0.0), k)

    sign = 1 - 2 * jnp.mod(k, 2.0)
    a2 = jnp.sqrt(a1_squared / ratio12)
    a3 = jnp.sqrt(a3_squared)
    amplitude1 = jnp.sqrt(a1_squared)
    components = jnp.stack([amplitude1 * sign * cn, a2 * sign * sn, a3 * dn], axis=-1)

    # psi and theta from the direction of the angular momentum in the body.
    h = jnp.sqrt(_nonzero((i1 * w1) ** 2 + (i2 * w2) ** 2 + (i3 * w3) ** 2))
    stretch = jnp.sqrt(1 + nu)
    psi = 0.5 * jnp.pi - (k * jnp.pi + jnp.arctan2(stretch * sn, cn))
    sin_theta = i1 * amplitude1 * jnp.sqrt(cn * cn + (1 + nu) * sn * sn) / h
    cos_theta = i3 * a3 * dn / h
    theta = jnp.arctan2(sin_theta, cos_theta)

    # phi, in the form with the smaller characteristic.
    first = nu < rho
    small = jnp.where(first, nu, rho)
    functions = JacobiFunctions(k, sn, cn, dn)
    third = third_kind(functions, m1, 1 + small * sn * sn, 1 + small)
    weight = jnp.sqrt((1 + nu) * (1 + jnp.where(first, 1.0, rho)))
    # nu * sqrt((1 + nu)(1 + rho)) with rho = m/nu, which may be infinite for nu = 0
    weight_first = jnp.sqrt(nu * (1 + nu) * (nu + (1 - m1)))
    elementary = k * jnp.pi + jnp.arctan2(weight * sn, cn * dn)
    periodic = jnp.where(first, -weight_first * third, elementary + small * weight * third)
    secular = jnp.where(first, h / i1, h / i3)
    transverse = (i1 * w1) ** 2 + (i2 * w2) ** 2
    steady_rate = (i1 * w1 * w1 + i2 * w2 * w2) / _nonzero(transverse)
    steady_rate = h * jnp.where(transverse > 0, steady_rate, 1 / i3)
    secular = jnp.where(steady, steady_rate, secular)
    phi = jnp.atleast_1d(secular * t) + jnp.where(steady, 0.0, periodic[1:] - periodic[0])

    start = quaternion_zxz(jnp.zeros_like(phi[:1]), theta[:1], psi[:1])
    now = quaternion_zxz(phi, theta[1:], psi[1:])
    relative = _multiply(start * jnp.array([[1.0, -1.0, -1.0, -1.0]], start.dtype), now)
    return relative.reshape(*t.shape, 4), components[1:].reshape(*t.shape, 3)


def _nonzero(x: Array) -> Array:
    return jnp.where(x == 0, 1.0, x)


def quaternion_zxz(
    phi: Float[Array, "..."], theta: Float[Array, "..."], psi: Float[Array, "..."]
) -> Float[Array, "... 4"]:
    r"""Return the quaternion (..., 4) of $R_z(\varphi) R_x(\theta) R_z(\psi)$; angles in rad.

    The scalar comes first. The quaternion is continuous in all three angles, which are not reduced
    to one revolution.
    """
    plus, minus = 0.5 * (phi + psi), 0.5 * (phi - psi)
    c, s = jnp.cos(0.5 * theta), jnp.sin(0.5 * theta)
    return jnp.stack(
        [c * jnp.cos(plus), s * jnp.cos(minus), s * jnp.sin(minus), c * jnp.sin(plus)], axis=-1
    )
