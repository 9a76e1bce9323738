"""Inertia tensors that are physically possible."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Matrix3, Scalar
from ...bodies.euler_equations import symmetric_components
from ...bodies.inertia import euler_tensor, inertia_from_euler_tensor, nearest_physical
from .base import AbstractTransform, ActiveLimit, Limits, no_limits
from .principal_inertia import euler_floor

_MARGIN_OF_TRACE = 1e-3


class InertiaTensor(AbstractTransform):
    r"""Symmetric tensor (3, 3) in log-Cholesky coordinates of its Euler tensor.

    $E = L D L^T$ with $D = \mathrm{diag}(e^{2 u_1}, e^{2 u_2}, e^{2 u_3})$ and the upper triangular
    $L = ((1, u_4, u_6), (0, 1, u_5), (0, 0, 1))$, times a scale from the start value, is positive
    definite for every $u$. The coordinates are those of the rotational part of
    `MassProperties.from_log_cholesky`, with the columns of the factor divided by their diagonal and
    the axes in the cyclic order in which the body is thinnest along the first axis at the start of
    the fit. Scaling all moments by a common factor is then a straight line in $u$. For a body that
    is flat across an axis near the first, only one logarithm diverges.

    **Source:** Rucker, Wensing, IEEE Robot. Autom. Lett. 7 (2022) 6797.
    """

    is_bounded: ClassVar[bool] = True

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
        new_moments = np.linalg.eigvalsh(np.asarray(nearest.inertia))
        return np.asarray(nearest.inertia), (
            f"the start, with principal moments {moments} kg m^2, violates the triangle inequality "
            "or is on the limit of a flat body; the fit started from the nearest physical inertia, "
            f"with {new_moments} kg m^2"
        )

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        tensor = jnp.stack(symmetric_components(euler_tensor(leaf) / _scale(leaf)))
        a, b, c, d, e, f = jnp.unstack(_roll(tensor, -_thinnest(leaf)))
        l23, l13 = d / c, e / c
        d2 = b - c * l23 * l23
        l12 = (f - c * l13 * l23) / d2
        d1 = a - d2 * l12 * l12 - c * l13 * l13
        logs = (0.5 * jnp.log(x) for x in (d1, d2, c))
        return jnp.stack([*logs, l12, l23, l13])

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        d1, d2, d3 = jnp.exp(2 * u[0]), jnp.exp(2 * u[1]), jnp.exp(2 * u[2])
        l12, l23, l13 = u[3], u[4], u[5]
        a, b, c = d1 + d2 * l12 * l12 + d3 * l13 * l13, d2 + d3 * l23 * l23, d3
        d, e, f = d3 * l23, d3 * l13, d2 * l12 + d3 * l13 * l23
        tensor = _roll(jnp.stack([a, b, c, d, e, f]), _thinnest(reference))
        return inertia_from_euler_tensor(_scale(reference) * _symmetric(*jnp.unstack(tensor)))

    def estimates(self, leaf: Array) -> Float[Array, " c"]:
        return jnp.stack(symmetric_components(leaf))

    def perturbed(self, leaf: Array, change: Float[Array, " c"]) -> Array:
        return leaf + _symmetric(*jnp.unstack(change))

    def change(self, leaf: Array, new: Array) -> Float[Array, " c"]:
        return jnp.stack(symmetric_components(new - leaf))

    def spread(self, reference: Array) -> Float[Array, " k"]:
        return jnp.ones(6, reference.dtype)

    def limits(self, reference: Array) -> Limits:
        none = no_limits(6, reference.dtype)
        scale = _scale(reference)
        floor = 0.5 * jnp.log(euler_floor(2 * scale) / scale)
        # The Euler tensor is linear in the square of the exponential.
        return none._replace(lower=none.lower.at[:3].set(floor), reach=none.reach.at[:3].set(0.5))

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        # Directions in which the Euler tensor E = 1/2 tr(I) 1 - I is zero.
        _, axes = np.linalg.eigh(np.asarray(euler_tensor(jnp.asarray(leaf))))
        active = []
        for n in axes.T[: int(np.count_nonzero(sides[:3] < 0))]:
            squares, products = n * n, -2 * n[[1, 0, 0]] * n[[2, 2, 1]]
            name = f"principal Euler value about ({', '.join(f'{x:.3f}' for x in n)})"
            combination = np.concatenate([0.5 - squares, products])
            active.append(ActiveLimit(name, combination, 0.0, True))
        return tuple(active)


def _scale(inertia: Matrix3) -> Scalar:
    """Return half the trace, with which coordinates are of order one in any unit."""
    return 0.5 * (inertia[0, 0] + inertia[1, 1] + inertia[2, 2])


def _thinnest(inertia: Array) -> Array:
    """Return the axis along which a body is thinnest: that of the largest minor of its tensor."""
    a, b, c, d, e, f = symmetric_components(euler_tensor(inertia))
    return jnp.argmax(jnp.stack([b * c - d * d, a * c - e * e, a * b - f * f]))


def _roll(components: Array, shift: Array) -> Array:
    """Permute components cyclically; the axis missing in an off-diagonal one is its number."""
    return jnp.concatenate([jnp.roll(part, shift) for part in (components[:3], components[3:])])


def _symmetric(a: Scalar, b: Scalar, c: Scalar, d: Scalar, e: Scalar, f: Scalar) -> Matrix3:
    return jnp.stack([a, f, e, f, b, d, e, d, c]).reshape(3, 3)
