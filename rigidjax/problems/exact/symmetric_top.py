r"""Motion of the heavy symmetric top in Jacobi elliptic functions: nutation, precession and spin.

With $u = \cos\theta = R_{33}$ the integrals of motion give
$\dot u^2 = \beta (u - u_1)(u - u_2)(u - u_3)$, where
$-1 \le u_1 \le u \le u_2 \le 1 \le u_3$, so that $u = u_1 + (u_2 - u_1)\,\mathrm{sn}^2 v$.
In Klein's variables $C e^{i(\varphi+\psi)/2}$ and $S e^{i(\varphi-\psi)/2}$, where
$C = \cos\frac\theta2$ and $S = \sin\frac\theta2$, each phase has one pole,

$$\dot\varphi + \dot\psi = \frac{L_z + L_3}{I_1(1 + u)} + L_3\Big(\frac1{I_3} - \frac1{I_1}\Big),
\qquad
\dot\varphi - \dot\psi = \frac{L_z - L_3}{I_1(1 - u)} - L_3\Big(\frac1{I_3} - \frac1{I_1}\Big),$$

so that each phase is one integral of the third kind.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies import unit_quaternion
from ...checks import ArrayInput, as_leaf, check_all, finite_leaf, finite_rule, float_array
from .elliptic import JacobiFunctions, carlson_rf, complete_first, jacobi, third_kind

_NEWTON_STEPS = 4


class TopMotion(NamedTuple):
    """Motion of a symmetric top at given times, and its nutation.

    **Attributes:** `orientation` (T, 4), scalar first, body to space; `angular_velocity` (T, 3),
    body components, rad/s; `inclination` (T,), the angle of the axis from the vertical, rad;
    `nutation_range` (2,), smallest and largest inclination, rad; `nutation_period`, s.
    """

    orientation: Float[Array, "*T 4"]
    angular_velocity: Float[Array, "*T 3"]
    inclination: Float[Array, "*T"]
    nutation_range: Float[Array, "2"]
    nutation_period: Float[Array, ""]


def symmetric_top(
    inertia: ArrayInput,
    weight_moment: ArrayInput,
    orientation0: ArrayInput,
    omega0: ArrayInput,
    ts: ArrayInput,
) -> TopMotion:
    r"""Compute the exact motion of a heavy symmetric top, $V = m g L\,R_{33}$ with $m g L > 0$.

    Also valid for steady precession, for motion in a plane, and if the axis passes close to or
    through the vertical. At t = 0 the axis must not be vertical, because the precession angle is
    undefined there. Close to the separatrix (a motion that ends upright) half of the digits are
    lost.

    **Arguments:** `inertia` about the fixed point, $(I_1, I_1, I_3)$, (3,) kg m^2;
    `weight_moment`, $m g L$, N m; `orientation0`, unit quaternion (4,), body to space, and
    `omega0`, (3,) rad/s, body components, at t = 0; `ts`, s, (T,) or a scalar, of either sign.
    **Errors:** `ValueError` for wrong shapes, moments $I_1 \ne I_2$, weight moment not positive,
    or a vertical axis.
    **Source:** Whittaker, Analytical Dynamics, section 71; Klein, Sommerfeld, Theorie des Kreisels,
    chapter IV.
    """
    name = "symmetric_top(inertia=...)"
    moments = as_leaf(
        check_all(
            float_array(inertia, name, (3,)),
            [
                (lambda i: (i > 0) & (i < float("inf")), f"`{name}` must be positive and finite."),
                (
                    lambda i: abs(i[0] - i[1]) <= 1e-12 * i[0],
                    f"`{name}` must have equal first and second moments.",
                ),
            ],
        )
    )
    name = "symmetric_top(weight_moment=...)"
    positive = (lambda x: x > 0, f"`{name}` must be positive; a top without weight is a free body.")
    weight = as_leaf(check_all(float_array(weight_moment, name, ()), [finite_rule(name), positive]))
    tilted = (
        lambda p: (p[0] ** 2 + p[3] ** 2 > 0) & (p[1] ** 2 + p[2] ** 2 > 0),
        "`symmetric_top(orientation0=...)` must not have a vertical axis.",
    )
    p0 = check_all(unit_quaternion(orientation0, "symmetric_top(orientation0=...)"), [tilted])
    name = "symmetric_top(omega0=...)"
    omega = finite_leaf(omega0, name, (3,))
    name = "symmetric_top(ts=...)"
    t = finite_leaf(ts, name)
    if t.ndim > 1:
        raise ValueError(f"`{name}` must be a number or have shape (T,); got shape {t.shape}.")
    return _motion(moments[0], moments[2], weight, p0, omega, t)


class _Integrals(NamedTuple):
    """Constants of the motion, with the initial value u0 of u."""

    beta: Array  # 2 m g L/I1
    a: Array  # L3/I1
    plus: Array  # (Lz + L3)/I1
    minus: Array  # (Lz - L3)/I1
    below: Array  # u0 - u1
    above: Array  # u2 - u0
    beyond: Array  # u3 - u0
    up: tuple[Array, Array]  # 1 - u1, 1 - u2
    down: tuple[Array, Array]  # 1 + u1, 1 + u2
    u_dot: Array  # at t = 0


def _compute_integrals(
    i1: Array, i3: Array, weight: Array, p: Float[Array, "4"], omega: Float[Array, "3"]
) -> _Integrals:
    """Compute the constants; small differences are sums of terms of one sign."""
    w1, w2, w3 = omega[0], omega[1], omega[2]
    r1, r2 = 2 * (p[1] * p[3] - p[0] * p[2]), 2 * (p[2] * p[3] + p[0] * p[1])
    up, down = 2 * (p[1] ** 2 + p[2] ** 2), 2 * (p[0] ** 2 + p[3] ** 2)
    u = 0.5 * (down - up)
    beta, a = 2 * weight / i1, i3 * w3 / i1
    swing = w1 * r1 + w2 * r2  # (Lz - L3 u)/I1
    plus, minus = swing + a * down, swing - a * up
    u_dot = r1 * w2 - r2 * w1
    transverse = w1 * w1 + w2 * w2

    # u_dot^2 = beta (x^3 + c2 x^2 + c1 x + c0) in x = u - u0.
    c2 = 2 * u - (transverse + a * a) / beta
    c1 = -up * down + (2 * a * swing - 2 * u * transverse) / beta
    c0 = u_dot * u_dot / beta
    beyond = _largest_root(c2, c1, c0)
    # The other two roots follow from the remaining quadratic, without cancellation.
    product = -c0 / beyond
    minus_sum = (product - c1) / beyond
    root = jnp.sqrt(minus_sum * minus_sum - 4 * product)
    larger = -0.5 * (minus_sum + jnp.where(minus_sum < 0, -root, root))
    smaller = product / jnp.where(larger == 0, 1.0, larger)
    below, above = jnp.maximum(-jnp.minimum(larger, smaller), 0.0), jnp.maximum(larger, smaller)
    above = jnp.maximum(above, 0.0)

    # plus^2 = beta (1 + u1)(1 + u2)(1 + u3) and minus^2 = beta (1 - u1)(1 - u2)(u3 - 1).
    down2 = down + above
    down1 = plus * plus / (beta * down2 * (down + beyond))
    up1 = up + below
    up2, outside = up - above, beyond - up
    up2 = jnp.where(
        up2 > outside, up2, minus * minus / (beta * up1 * jnp.where(outside > 0, outside, 1.0))
    )
    return _Integrals(beta, a, plus, minus, below, above, beyond, (up1, up2), (down1, down2), u_dot)


def _largest_root(c2: Array, c1: Array, c0: Array) -> Array:
    """Return the largest of the three real roots of x^3 + c2 x^2 + c1 x + c0."""
    q = jnp.maximum(c2 * c2 - 3 * c1, 0.0) / 9
    r = (2 * c2**3 - 9 * c2 * c1 + 27 * c0) / 54
    scale = jnp.sqrt(q)
    cube = jnp.where(q > 0, scale**3, 1.0)
    angle = jnp.arccos(jnp.clip(r / cube, -1.0, 1.0))
    x = -2 * scale * jnp.cos((angle + 2 * math.pi) / 3) - c2 / 3
    for _ in range(_NEWTON_STEPS):
        slope = (3 * x + 2 * c2) * x + c1
        value = ((x + c2) * x + c1) * x + c0
        x = x - jnp.where(slope > 0, value / jnp.where(slope > 0, slope, 1.0), 0.0)
    return x


def _motion(
    i1: Array,
    i3: Array,
    weight: Array,
    p0: Float[Array, "4"],
    omega: Float[Array, "3"],
    t: Float[Array, "*T"],
) -> TopMotion:
    k = _compute_integrals(i1, i3, weight, p0, omega)
    # Replaces zero at an exact pole; the square of its square root must not underflow.
    smallest = float(jnp.finfo(p0.dtype).tiny) ** 0.75
    span, total = k.below + k.above, k.below + k.beyond
    rate = 0.5 * jnp.sqrt(k.beta * total)
    m1 = jnp.clip((k.beyond - k.above) / total, smallest, 1.0)

    # Twice the amplitude at t = 0 from u and its rate, which is accurate at turning points too.
    nutating = span > 0
    d0_squared = jnp.maximum(k.beyond / total, m1)
    sine = k.u_dot / (rate * jnp.sqrt(d0_squared))
    double = jnp.arctan2(
        jnp.where(nutating, sine, 0.0), jnp.where(nutating, k.above - k.below, 1.0)
    )
    s0, c0 = jnp.sin(0.5 * double), jnp.cos(0.5 * double)
    v0 = s0 * carlson_rf(c0 * c0, d0_squared, 1.0)
    v = jnp.concatenate([v0[None], jnp.atleast_1d(v0 + rate * t)])
    f = jacobi(v, m1)
    parity = 1 - 2 * jnp.mod(f.half_turns, 2.0)

    # S and C change sign at a pole, where the phase would jump.
    (up1, up2), (down1, down2) = k.up, k.down
    through_up, through_down = up2 == 0, down1 == 0
    up = up1 * f.cn**2 + up2 * f.sn**2
    down = down1 * f.cn**2 + down2 * f.sn**2
    S = jnp.where(through_up, jnp.sqrt(0.5 * up1) * parity * f.cn, jnp.sqrt(0.5 * up))
    C = jnp.where(through_down, jnp.sqrt(0.5 * down2) * parity * f.sn, jnp.sqrt(0.5 * down))
    # cn/S and sn/C are finite at a pole.
    cn_by_S = jnp.where(through_up, parity / jnp.sqrt(0.5 * up1), f.cn / _nonzero(S))
    sn_by_C = jnp.where(through_down, parity / jnp.sqrt(0.5 * down2), f.sn / _nonzero(C))
    sign_S, sign_C = jnp.where(S[0] < 0, -1.0, 1.0), jnp.where(C[0] < 0, -1.0, 1.0)
    S, C = (sign_S * S)[1:], (sign_C * C)[1:]
    cn_by_S, sn_by_C = (sign_S * cn_by_S)[1:], (sign_C * sn_by_C)[1:]

    skew = k.a * (i1 / i3 - 1) * jnp.atleast_1d(t)
    lower = _integral_down(v, f, m1, span / jnp.maximum(down1, smallest), down1 / total)
    upper = _integral_up(v, f, m1, jnp.maximum(up2 / up1, smallest))
    # Halves of the phases phi + psi and phi - psi.
    plus = (lower[1:] - lower[0]) * k.plus / (rate * jnp.maximum(down1, smallest)) + skew
    minus = (upper[1:] - upper[0]) * k.minus / (rate * up1) - skew
    plus = 0.5 * plus + jnp.arctan2(p0[3], p0[0])
    minus = 0.5 * minus + jnp.arctan2(p0[2], p0[1])
    orientation = jnp.stack(
        [C * jnp.cos(plus), S * jnp.cos(minus), S * jnp.sin(minus), C * jnp.sin(plus)], axis=-1
    )

    # Angular velocity components along and normal to the line of nodes.
    theta_dot = -rate * span * f.dn[1:] * sn_by_C * cn_by_S
    across = 0.5 * (
        jnp.where(through_up, 0.0, k.minus * C / _nonzero(S))
        + jnp.where(through_down, 0.0, k.plus * S / _nonzero(C))
    )
    psi = plus - minus
    angular_velocity = jnp.stack(
        [
            across * jnp.sin(psi) + theta_dot * jnp.cos(psi),
            across * jnp.cos(psi) - theta_dot * jnp.sin(psi),
            jnp.broadcast_to(omega[2], psi.shape),
        ],
        axis=-1,
    )
    extremes = 2 * jnp.arctan2(jnp.sqrt(jnp.stack([up2, up1])), jnp.sqrt(jnp.stack([down2, down1])))
    return TopMotion(
        orientation.reshape(*t.shape, 4),
        angular_velocity.reshape(*t.shape, 3),
        (2 * jnp.arctan2(jnp.abs(S), jnp.abs(C))).reshape(t.shape),
        extremes,
        2 * complete_first(m1) / rate,
    )


def _integral_down(v: Array, f: JacobiFunctions, m1: Array, nu: Array, rho: Array) -> Array:
    r"""Compute $\int_0^v dv'/(1 + \nu\,\mathrm{sn}^2 v')$ with $\nu\rho = m$, as in `free_body`."""
    first = nu < rho
    small = jnp.where(first, nu, rho)
    weight = jnp.sqrt((1 + nu) * (1 + rho))
    third = third_kind(f, m1, 1 + small * f.sn**2, 1 + small)
    angle = f.half_turns * math.pi + jnp.arctan2(weight * f.sn, f.cn * f.dn)
    return jnp.where(first, v - nu * third, angle / weight + rho * third)


def _integral_up(v: Array, f: JacobiFunctions, m1: Array, remainder: Array) -> Array:
    r"""Compute $\int_0^v dv'/(1 - n\,\mathrm{sn}^2 v')$ with $1 - n$ the `remainder`."""
    third = third_kind(f, m1, f.cn**2 + remainder * f.sn**2, remainder)
    return v + (1 - remainder) * third


def _nonzero(x: Array) -> Array:
    return jnp.where(x == 0, 1.0, x)
