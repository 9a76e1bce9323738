"""A full inertia tensor that some distribution of mass has."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.euler_equations import symmetric_components
from ...bodies.inertia import euler_tensor, inertia_from_euler_tensor, nearest_physical
from .base import AbstractTransform

_MARGIN_OF_TRACE = 1e-3


class InertiaTensor(AbstractTransform):
    r"""Symmetric tensor (3, 3) in the log-Cholesky coordinates of its Euler tensor.

    $E = U U^T$ with the upper triangular
    $U = ((e^{u_1}, m u_4, m u_6), (0, e^{u_2}, m u_5), (0, 0, e^{u_3}))$,
    $m = e^{(u_1 + u_2 + u_3)/3}$, times a length scale of the start value: positive definite
    whatever $u$ is. The rotational part of `MassProperties.from_log_cholesky` but for the factor
    $m$. With it a common scale of all moments is a straight line; without, data that hardly
    determine the scale leave a curved valley (a torque-free body with a weak prior took more than
    200 iterations instead of 49).

    **Source:** Rucker, Wensing, IEEE Robot. Autom. Lett. 7 (2022) 6797.
    """

    spread: ClassVar[float] = 1.0

    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        if shape != (3, 3):
            raise ValueError(
                f"`InertiaTensor` takes a tensor of shape (3, 3); got shape {shape}. Use "
                "`PrincipalInertia` for principal moments"
            )
        return (".I11", ".I22", ".I33", ".I23", ".I13", ".I12")

    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(range(6))

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        nearest = nearest_physical(leaf, _MARGIN_OF_TRACE)
        if not bool(nearest.moved):
            return leaf, ""
        moments = np.linalg.eigvalsh(leaf)
        found = np.linalg.eigvalsh(np.asarray(nearest.inertia))
        return np.asarray(nearest.inertia), (
            f"the start, with principal moments {moments} kg m^2, violates the triangle inequality "
            "or is on the limit of a flat body; the fit started from the nearest physical inertia, "
            f"with {found} kg m^2"
        )

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        scale = _scale(leaf)
        a, b, c, d, e, f = symmetric_components(euler_tensor(leaf) / scale)
        u33 = jnp.sqrt(c)
        u23, u13 = d / u33, e / u33
        u22 = jnp.sqrt(b - u23 * u23)
        u12 = (f - u13 * u23) / u22
        u11 = jnp.sqrt(a - u12 * u12 - u13 * u13)
        m = jnp.cbrt(u11 * u22 * u33)
        return jnp.stack([jnp.log(u11), jnp.log(u22), jnp.log(u33), u12 / m, u23 / m, u13 / m])

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        scale = _scale(reference)
        u11, u22, u33 = jnp.exp(u[0]), jnp.exp(u[1]), jnp.exp(u[2])
        u12, u23, u13 = jnp.exp((u[0] + u[1] + u[2]) / 3) * u[3:]
        a, b, c = u11 * u11 + u12 * u12 + u13 * u13, u22 * u22 + u23 * u23, u33 * u33
        d, e, f = u23 * u33, u13 * u33, u12 * u22 + u13 * u23
        return inertia_from_euler_tensor(scale * _symmetric(a, b, c, d, e, f))

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return jnp.stack(symmetric_components(leaf))

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return leaf + _symmetric(*jnp.unstack(change))

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        return jnp.stack(symmetric_components(new - leaf))

    def bound(self, leaf: np.ndarray) -> str:
        values = np.linalg.eigvalsh(np.asarray(euler_tensor(jnp.asarray(leaf))))
        if values.min() > 1e-6 * values.sum():
            return ""
        return "the limit of a flat body (a principal Euler value is zero)"


def _scale(inertia):
    """Half the trace, so that coordinates are of order one in any unit."""
    return 0.5 * (inertia[0, 0] + inertia[1, 1] + inertia[2, 2])


def _symmetric(a, b, c, d, e, f):
    return jnp.stack([a, f, e, f, b, d, e, d, c]).reshape(3, 3)
