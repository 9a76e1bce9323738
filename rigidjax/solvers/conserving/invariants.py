r"""Conserved quantities, in quaternions and their momenta and in directors and their rates.

$q$ is a unit quaternion, $p = M_4(q)\,\dot q$ its momentum with $q \cdot p = 0$, kg m^2/s; $d$ the
directors stacked, (9,), and $\dot d$ their rates, 1/s. Inertias are (3,) or (3, 3), kg m^2.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Matrix3, Scalar, Vector, Vector3
from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...bodies.inertia import euler_tensor
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product
from ...rotations.so3 import conjugate, multiply, pure, unskew
from .discrete_gradient import defect

Inertia = Vector3 | Matrix3


def quaternion_momentum(
    inertia: Inertia, q: Float[Array, "4"], omega: Vector3
) -> Float[Array, "4"]:
    r"""Return $p = 2\,q \circ (0, I\Omega)$, shape (4,), kg m^2/s.

    This is $M_4(q)\,\dot q$ for $\dot q = \frac12 q \circ \Omega$, for every radial inertia.

    **Arguments:** `inertia`; `q`, a unit quaternion; `omega`, rad/s, body components.

    **Source:** Betsch-Siebert (3), (32).
    """
    return 2.0 * multiply(q, pure(angular_momentum(inertia, omega)))


def invariants(q: Float[Array, "4"], p: Float[Array, "4"]) -> Float[Array, "4"]:
    r"""Return $\pi = \bar q \circ p = (q \cdot p,\ G(q)\,p) = (0, 2 I\Omega)$, shape (4,).

    **Source:** Betsch-Siebert (46).
    """
    return multiply(conjugate(q), p)


def length_invariant(q: Float[Array, "4"]) -> Scalar:
    r"""Return $\eta = q \cdot q$. **Source:** Betsch-Siebert (47)."""
    return jnp.sum(q * q)


def momentum_map(q: Float[Array, "4"], p: Float[Array, "4"]) -> Vector3:
    r"""Return the angular momentum $J = \frac12 E(q)\,p$, shape (3,), space components, kg m^2/s.

    **Source:** Betsch-Siebert (35), after (45).
    """
    return 0.5 * multiply(p, conjugate(q))[1:]


def kinetic_energy(inertia: Inertia, q: Float[Array, "4"], p: Float[Array, "4"]) -> Scalar:
    r"""Return $T = \frac18 \pi \cdot \mathrm{diag}(I_0, I)^{-1} \pi$, J.

    The radial inertia is $I_0 = \frac12 \mathrm{tr} I$.

    **Source:** Betsch-Siebert (48).
    """
    pi = invariants(q, p)
    radial = 0.5 * (jnp.sum(inertia) if inertia.ndim == 1 else jnp.trace(inertia))
    return 0.125 * (pi[0] * pi[0] / radial + jnp.sum(pi[1:] * solve_inertia(inertia, pi[1:])))


def discrete_gradient(function: Callable[[Vector], Scalar], q0: Vector, q1: Vector) -> Vector:
    r"""Return Gonzalez' discrete derivative $\bar\nabla V$, shape (n,).

    It satisfies $\bar\nabla V \cdot (q_1 - q_0) = V(q_1) - V(q_0)$. The gradient at the mid-point
    is corrected along $q_1 - q_0$, where this is not zero.

    **Source:** Betsch-Siebert (50); Gonzalez (1996).
    """
    step = q1 - q0
    points = jnp.stack([q0, 0.5 * (q0 + q1), q1])
    values, gradients = jax.vmap(jax.value_and_grad(function))(points)
    size = jax.lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(points * gradients), axis=1)))
    defect_of_gradient = defect((values[0], values[2]), jnp.unstack(gradients @ step), size)
    return gradients[1] + safe_divide(defect_of_gradient, jnp.sum(step * step)) * step


def discrete_multiplier(
    potential: Callable[[Float[Array, "4"]], Scalar], q0: Float[Array, "4"], q1: Float[Array, "4"]
) -> Scalar:
    r"""Return the multiplier $\lambda$ of QUAT.EM in the step from `q0` to `q1`, J.

    **Arguments:** `potential(q)`, such as `lambda q: body.potential(euler_map(q))`, J.
    **Source:** Betsch-Siebert, remark 4.3.
    """
    q = 0.5 * (q0 + q1)
    return -jnp.sum(q * discrete_gradient(potential, q0, q1)) / jnp.sum(q * q)


def director_energy(inertia: Inertia, d_dot: Float[Array, "9"]) -> Scalar:
    r"""Return the kinetic energy $\frac12 \dot d \cdot M_9 \dot d$, J.

    The rates `d_dot` need not be tangent to the constraints.

    **Source:** Betsch-Siebert (18), (19).
    """
    D = d_dot.reshape(3, 3)
    return 0.5 * jnp.sum(D * _apply_euler_tensor(inertia, D))


def director_momentum(inertia: Inertia, d: Float[Array, "9"], d_dot: Float[Array, "9"]) -> Vector3:
    r"""Return the angular momentum $\sum_i E_i\,d_i \times \dot d_i$, space components, kg m^2/s.

    **Source:** Betsch-Siebert (23).
    """
    D = d_dot.reshape(3, 3)
    return 2.0 * unskew(product(_apply_euler_tensor(inertia, D).T, d.reshape(3, 3)))


def _apply_euler_tensor(inertia: Inertia, D: Matrix3) -> Matrix3:
    """Return the Euler tensor times `D`."""
    E = euler_tensor(inertia)
    return D * E[:, None] if E.ndim == 1 else product(E, D)
