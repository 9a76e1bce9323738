"""Euler's equations of rotation, in scalar components."""

import jax.numpy as jnp
from jaxtyping import Array

from ..annotations import Matrix3, Scalar, Vector3
from ..small_arrays import divide_by_invariant


def euler_equations(
    inertia: Vector3 | Matrix3, omega: Vector3, moment: Vector3 | None = None
) -> Vector3:
    r"""Return the angular acceleration $\dot\Omega = I^{-1}(\mu - \Omega \times I \Omega)$.

    With principal moments this takes 12 operations, 15 with a moment. A full tensor is inverted by
    cofactors. Arrays of shape (3,) are only split and stacked, because batched 3x3 products are
    slow.

    **Arguments:** `inertia`, principal moments (3,) or symmetric tensor (3, 3), kg m^2, body axes;
    `omega`, rad/s, body components; `moment`, N m, body components, or `None` for no moment.
    **Returns:** shape (3,), rad/s^2, body components.
    **Source:** Lang (25), (42).
    """
    w1, w2, w3 = omega[0], omega[1], omega[2]
    if inertia.ndim == 1:
        i1, i2, i3 = inertia[0], inertia[1], inertia[2]
        n1 = (i2 - i3) * w2 * w3
        n2 = (i3 - i1) * w3 * w1
        n3 = (i1 - i2) * w1 * w2
        if moment is not None:
            n1, n2, n3 = n1 + moment[0], n2 + moment[1], n3 + moment[2]
        return divide_by_invariant(jnp.stack([n1, n2, n3]), inertia)
    h1, h2, h3 = _angular_momentum(inertia, w1, w2, w3)
    n1 = h2 * w3 - h3 * w2
    n2 = h3 * w1 - h1 * w3
    n3 = h1 * w2 - h2 * w1
    if moment is not None:
        n1, n2, n3 = n1 + moment[0], n2 + moment[1], n3 + moment[2]
    return solve_inertia(inertia, jnp.stack([n1, n2, n3]))


def solve_inertia(inertia: Vector3 | Matrix3, vector: Vector3) -> Vector3:
    r"""Solve $I x = v$, by cofactors if `inertia` is a full symmetric tensor.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2; `vector`, (3,).
    **Returns:** shape (3,).
    """
    if inertia.ndim == 1:
        return divide_by_invariant(vector, inertia)
    a, b, c, d, e, f = symmetric_components(inertia)
    v1, v2, v3 = vector[0], vector[1], vector[2]
    k11 = b * c - d * d
    k22 = a * c - e * e
    k33 = a * b - f * f
    k23 = e * f - a * d
    k13 = d * f - b * e
    k12 = d * e - c * f
    determinant = a * k11 + f * k12 + e * k13
    solved = jnp.stack(
        [
            k11 * v1 + k12 * v2 + k13 * v3,
            k12 * v1 + k22 * v2 + k23 * v3,
            k13 * v1 + k23 * v2 + k33 * v3,
        ]
    )
    return divide_by_invariant(solved, determinant)


def angular_momentum(inertia: Vector3 | Matrix3, omega: Vector3) -> Vector3:
    r"""Return the angular momentum $I \Omega$, body components, kg m^2/s.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2; `omega`, rad/s, body components.
    **Returns:** shape (3,).
    """
    if inertia.ndim == 1:
        return inertia * omega
    return jnp.stack(_angular_momentum(inertia, omega[0], omega[1], omega[2]))


def rotational_energy(inertia: Vector3 | Matrix3, omega: Vector3) -> Scalar:
    r"""Return the kinetic energy of rotation $\frac12 \Omega \cdot I \Omega$, J.

    **Arguments:** `inertia`, (3,) or (3, 3), kg m^2; `omega`, rad/s, body components.
    """
    h = angular_momentum(inertia, omega)
    return 0.5 * (h[0] * omega[0] + h[1] * omega[1] + h[2] * omega[2])


def symmetric_components(matrix: Matrix3) -> tuple[Scalar, ...]:
    """Return the components 11, 22, 33, 23, 13, 12 (Voigt order) of a symmetric 3x3 matrix."""
    # Both triangles are read, so that derivatives with respect to the tensor are symmetric.
    return (
        matrix[0, 0],
        matrix[1, 1],
        matrix[2, 2],
        0.5 * (matrix[1, 2] + matrix[2, 1]),
        0.5 * (matrix[0, 2] + matrix[2, 0]),
        0.5 * (matrix[0, 1] + matrix[1, 0]),
    )


def _angular_momentum(
    inertia: Matrix3, w1: Array, w2: Array, w3: Array
) -> tuple[Array, Array, Array]:
    a, b, c, d, e, f = symmetric_components(inertia)
    return a * w1 + f * w2 + e * w3, f * w1 + b * w2 + d * w3, e * w1 + d * w2 + c * w3
