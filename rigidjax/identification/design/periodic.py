"""Periodic motions of a tree, and the rows of its regressor along them."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...mechanics import System
from ...mechanics.kinematics.forward import state_of_joints, turning_bodies
from ...mechanics.kinematics.poses import poses_of_state
from ...persistent_jit import persistent_jit
from ...rotations import RotationVector
from ...rotations.euler_map import euler_map
from ...signals.fourier import FourierSeries
from ..regression.base_parameters import BaseParameters, base_parameters
from ..regression.regression import TERMS
from ..regression.regressor import (
    inertial_parameters,
    inverse_dynamics,
    parameter_labels,
    split_gravity,
)
from .motion_limits import WorkspaceBox

# Number of random samples per coordinate that determine the base parameters.
_NUM_RANDOM = 30
# Part of the rate limit at which the sign of a rate is smoothed in the design.
_SMOOTH = 0.02


class PeriodicMotion:
    """Coordinates as finite Fourier series, (f,), of one period.

    `coefficients` (2 K + 1, f): the offset, then the sines, then the cosines.
    """

    def __init__(self, coefficients: np.ndarray, period: float):
        self.coefficients, self.period = coefficients, period

    @property
    def num_harmonics(self) -> int:
        """Number of harmonics, K."""
        return (len(self.coefficients) - 1) // 2

    def __call__(self, ts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coordinates, first and second derivatives at times (T,), (T, f) each."""
        basis = fourier_basis(ts, self.period, self.num_harmonics)
        q, v, a = (part @ self.coefficients for part in basis)
        return q, v, a

    def series(self, k: int) -> FourierSeries:
        """Return coordinate number `k` as a law."""
        count = self.num_harmonics
        offset, sine, cosine = np.split(self.coefficients[:, k], [1, 1 + count])
        return FourierSeries(2 * np.pi / self.period, sine, cosine, offset[0])


def fourier_basis(ts: np.ndarray, period: float, harmonics: int) -> np.ndarray:
    """Return constant, sines and cosines and their two derivatives, (3, T, 2 K + 1)."""
    omega = 2 * np.pi / period * np.arange(1, harmonics + 1)
    s, c = np.sin(np.outer(ts, omega)), np.cos(np.outer(ts, omega))
    one, zero = np.ones((len(ts), 1)), np.zeros((len(ts), 1))
    return np.stack(
        [
            np.hstack([one, s, c]),
            np.hstack([zero, omega * c, -omega * s]),
            np.hstack([zero, -(omega**2) * s, -(omega**2) * c]),
        ]
    )


class TreeRows:
    """Information, torques and points of a tree along a motion.

    All functions take coordinates and their two derivatives in one array, (T, 3 f).
    """

    def __init__(
        self,
        system: System,
        labels: Sequence[str],
        workspace: Sequence[WorkspaceBox],
        terms: Sequence[str],
        nominal: Mapping[str, float],
        bounds: Mapping[str, np.ndarray],
    ):
        self._prepared, self._gravity = split_gravity(system)
        self._rotations = _rotation_columns(system)
        self._terms = tuple(terms)
        for term in terms:
            if term not in TERMS:
                raise ValueError(
                    f"`design_trajectory(terms=...)` takes of {list(TERMS)}; got {term!r}."
                )
        self._velocity = _SMOOTH * np.where(np.isfinite(bounds["rate"]), bounds["rate"], 1.0)
        names = [f"{label}.{term}" for term in terms for label in labels]
        unknown = sorted(set(nominal) - set(names))
        if unknown:
            raise ValueError(
                f"`design_trajectory(nominal=...)` takes values of {names}; got {unknown}."
            )
        values = np.array([nominal.get(name, 0.0) for name in names])
        self._parameters = jnp.concatenate([inertial_parameters(system), values])
        self._points = tuple((*system.locate(b.body), np.asarray(b.point)) for b in workspace)
        weights = np.where(np.isfinite(bounds["torque"]), 1 / bounds["torque"], 1.0)
        self._weights = jnp.asarray(weights)
        rng, f = np.random.default_rng(0), len(labels)
        q = rng.uniform(bounds["low"], bounds["high"], (_NUM_RANDOM * f, f))
        x = np.hstack([q, rng.normal(size=(len(q), 2 * f))])
        matrix = np.asarray(_all_rows(self._arguments, self._options, x)[0])
        flat = matrix.reshape(-1, matrix.shape[2])
        self.base: BaseParameters = base_parameters(flat, [*parameter_labels(system), *names])
        # Orthogonal combinations of unit columns: those of the base parameters can be nearly
        # parallel, such as the masses of links that mostly act by gravity.
        size = np.linalg.norm(flat, axis=0)
        size = np.where(size > 0, size, np.inf)
        axes = np.linalg.svd(flat / size, full_matrices=False)[2][: self.base.rank]
        self._combine = jnp.asarray(axes.T / size[:, None])

    @property
    def _arguments(self) -> Any:
        return self._prepared, self._gravity, self._parameters, self._velocity, self._points

    @property
    def _options(self) -> Any:
        return self._rotations, self._terms

    def condition(self, x: np.ndarray) -> float:
        """Return the condition of the weighted columns of unit length, as of `BaseParameters`."""
        matrix = np.asarray(_all_rows(self._arguments, self._options, x)[0])
        flat = (matrix * np.asarray(self._weights)[:, None]).reshape(-1, matrix.shape[2])
        size = np.linalg.norm(flat, axis=0)
        values = np.linalg.svd(flat[:, size > 0] / size[size > 0], compute_uv=False)
        return float(values[0] / values[self.base.rank - 1])

    def evaluate_bounded(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return torques of the nominal parameters, (T, f), and coordinates of points (T, 3 P)."""
        _, torques, points = _all_rows(self._arguments, self._options, x)
        return np.asarray(torques), np.asarray(points)

    def differentiate_bounded(self, x: np.ndarray) -> np.ndarray:
        """Return the Jacobian of `evaluate_bounded` in the inputs, (T, f + 3 P, 3 f)."""
        return np.asarray(_derivatives(self._arguments, self._options, x))

    def score(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        r"""Return $\frac1r \log\det(W^T W)$ and its derivatives in the inputs, (T, 3 f)."""
        value, slope = _score(
            jnp.asarray(x), self._arguments, self._options, self._weights, self._combine
        )
        return float(value), np.asarray(slope)


def _rotation_columns(system: System) -> tuple[tuple[int, ...], ...]:
    """Return the columns of the rotation vectors among the coordinates."""
    columns, begin = [], 0
    turning = turning_bodies(system)
    for body, count in enumerate(system.rates_of_bodies):
        if body in turning:
            columns.append(tuple(range(begin + count - 3, begin + count)))
        begin += count
    return tuple(columns)


def _local(fixed: Any, static: Any, x: Float[Array, " n"]) -> tuple[Array, Array, Array]:
    """Return all columns (f, p), torques (f,) and points (3 P,) of one sample."""
    prepared, gravity, parameters, velocity, points = fixed
    rotations, terms = static
    q, rate, change = jnp.split(x, 3)

    def velocities_of(q, rate):
        nu = rate
        for columns in rotations:
            k = jnp.array(columns)
            nu = nu.at[k].set(RotationVector().tangent(q[k]) @ rate[k])
        return nu

    nu, nu_dot = jax.jvp(velocities_of, (q, rate), (rate, change))
    state = state_of_joints(prepared, jnp.zeros((), x.dtype), q, nu)
    Y, applied = inverse_dynamics(prepared, gravity, poses_of_state(prepared, state), nu, nu_dot)
    parts = [Y]
    for term in terms:
        value = jnp.tanh(nu / velocity) if term == "coulomb" else TERMS[term](nu, nu_dot)
        parts.append(jnp.diag(jnp.asarray(value)))
    matrix = jnp.concatenate(parts, axis=1)
    places = [jnp.zeros(0, x.dtype)]
    for row, frame, point in points:
        on_body = point if frame is None else frame.on_body(jnp.asarray(point))
        R = euler_map(state.orientation[row])
        places.append(state.position[row] + R @ on_body)
    return matrix, matrix @ parameters - applied, jnp.concatenate(places)


@persistent_jit
def _all_rows(fixed: Any, static: Any, x: Any) -> tuple[Array, Array, Array]:
    return jax.vmap(lambda row: _local(fixed, static, row))(jnp.asarray(x))


@persistent_jit
def _derivatives(fixed: Any, static: Any, x: Any) -> Array:
    def evaluate(row):
        return jnp.concatenate(_local(fixed, static, row)[1:])

    return jax.vmap(jax.jacfwd(evaluate))(jnp.asarray(x))


@persistent_jit
def _score(x: Any, fixed: Any, static: Any, weights: Any, combine: Any) -> tuple[Array, Array]:
    def value(x):
        matrix = jax.vmap(lambda row: _local(fixed, static, row)[0])(x) * weights[:, None]
        W = matrix.reshape(-1, matrix.shape[2]) @ combine
        # From the triangular factor: the product would square the condition.
        R = jnp.linalg.qr(W, mode="r")
        return 2 * jnp.mean(jnp.log(jnp.abs(jnp.diag(R))))

    return jax.value_and_grad(value)(x)
