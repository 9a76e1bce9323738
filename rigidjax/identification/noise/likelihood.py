"""Estimation of the parameters of noise models by restricted maximum likelihood."""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Bool, Float

from ...annotations import Scalar
from ...persistent_jit import persistent_jit
from ...small_arrays import sequential_vmap_on_cpu
from ..experiment.linearised_runs import separate_runs
from .kalman import SampleGaps, Whitening, make_whitening
from .models import AbstractNoise

# Diagonal that is added to the normal matrix with columns of norm one.
_RIDGE = 1e-12
_MAX_STEPS = 100
# Largest standard deviation of the logarithm of a noise parameter.
_WIDEST = 1.0
# Smallest number of degrees of freedom of the variance of an estimate.
_FEWEST = 4.0


class SensorNoise(eqx.Module):
    """Noise model of one sensor, its gaps, and whether its white noise is known.

    **Attributes:** `model`, `None` for white noise; `gaps` (B, T, C); `white_is_known`, whether the
    noise of the measurements was given: white residuals then have unit variance.
    """

    model: AbstractNoise | None
    gaps: SampleGaps
    white_is_known: bool = eqx.field(static=True)

    @property
    def is_estimated(self) -> bool:
        """Whether the likelihood has coordinates for this sensor."""
        return not (self.white_is_known if self.model is None else self.model.is_known)

    def guess(self, std: float, interval: float) -> Float[np.ndarray, " d"]:
        """Return the start coordinates; none if everything is known.

        The coordinate of white noise is the logarithm of a factor.
        """
        if not self.is_estimated:
            return np.zeros(0)
        if self.model is None:
            return np.zeros(1)
        return self.model.guess(std, interval, self.white_is_known)

    def model_at(self, coordinates: Float[Array, " d"]) -> AbstractNoise | None:
        """Return the model with the parameters at these coordinates."""
        if self.model is None or self.model.is_known:
            return self.model
        return self.model.at(coordinates, self.white_is_known)

    def whitening(self, coordinates: Float[Array, " d"]) -> Whitening | None:
        """Return the filters of all runs, `None` for white noise."""
        model = self.model_at(coordinates)
        if model is None:
            return None
        return jax.vmap(lambda gaps: make_whitening(model, gaps))(self.gaps)

    def first_whitening(self, std: float) -> Whitening | None:
        """Return the first filters: those of white noise unless the model has parameters.

        **Arguments:** `std` of white noise, in the sensor's unit.
        """
        if self.model is None or self.model.is_known:
            return self.whitening(self._blank_coordinates())
        scale = 1.0 if self.white_is_known and not self.model.counts_samples else 1.0 / std
        size = eqx.filter_eval_shape(self.whitening, self._blank_coordinates()).gain.shape[-1]
        gaps = self.gaps
        zeros = jnp.zeros((*gaps.gap.shape, size), gaps.gap.dtype)
        scale = jnp.where(gaps.counts, scale, 0.0).astype(zeros.dtype)
        transition = jnp.zeros((*zeros.shape, size), zeros.dtype)
        return Whitening(transition, zeros, gaps.weight, scale, gaps.counts)

    def _blank_coordinates(self) -> Float[Array, " d"]:
        return jnp.asarray(self.guess(1.0, 1.0), self.gaps.gap.dtype)


def split_coordinates(
    coordinates: Float[Array, " d"], sensors: Sequence[SensorNoise]
) -> list[Float[Array, " k"]]:
    """Return the coordinates of each sensor."""
    counts = [len(s.guess(1.0, 1.0)) for s in sensors]
    return jnp.split(coordinates, np.cumsum(counts)[:-1])


class AbstractLinearisedFit(eqx.Module):
    """A fit, linearised at its minimum, as a function of the noise parameters.

    **Attributes:** `prior`, residuals (R,) of unit variance and their derivatives (R, U) with
    respect to all coordinates; `num_shared`, number S of the shared columns among E = S + P, the
    others belonging to each run.
    """

    prior: eqx.AbstractVar[tuple[Float[Array, " R"], Float[Array, "R U"]]]
    num_shared: eqx.AbstractVar[int]

    @abc.abstractmethod
    def whiten_at(self, coordinates: Float[Array, " d"]) -> tuple[Float[Array, "B N F"], Scalar]:
        """Return whitened derivatives and residuals (B, N, E + 1), and log |V| of the noise."""

    def deviance(self, coordinates: Float[Array, " d"]) -> Scalar:
        r"""Return minus twice the logarithm of the restricted likelihood, up to a constant.

        $\log|V| + \log|X^T V^{-1} X| + r^T V^{-1} r$ with the residual $r$ of the generalised least
        squares fit. The fitted parameters of the linearised model are integrated out, so that they
        do not bias the noise.

        **Source:** Harville, J. Am. Stat. Assoc. 72 (1977) 320, (4.2).
        """
        normal, squares, log_variance = self._reduce(coordinates)
        log_normal = jnp.sum(jnp.log(normal.pivots)) + 2 * jnp.sum(jnp.log(normal.size))
        explained = jnp.sum(normal.projection**2 / normal.pivots)
        return log_variance + log_normal + squares - explained

    def estimates(
        self, coordinates: Float[Array, " d"]
    ) -> tuple[Float[Array, " U"], Float[Array, "U U"]]:
        """Return the change of the fitted coordinates, and their covariance, for this noise.

        Both are zero for coordinates without effect.
        """
        normal, _, _ = self._reduce(coordinates)
        roots = normal.inverse / jnp.sqrt(normal.pivots)[:, None]
        roots = jnp.where(normal.acts, roots / normal.size, 0.0)
        return -(normal.projection / jnp.sqrt(normal.pivots)) @ roots, roots.T @ roots

    def _reduce(self, coordinates: Float[Array, " d"]) -> tuple["NormalEquations", Scalar, Scalar]:
        """Return the normal equations, the sum of squares of the residuals, and log |V|."""
        rows, log_variance = self.whiten_at(coordinates)
        X = separate_runs(rows[..., :-1], self.num_shared)
        X = jnp.concatenate([X, self.prior[1]])
        r = jnp.concatenate([rows[..., -1].reshape(-1), self.prior[0]])
        return _normal_equations(X, r), jnp.sum(r**2), log_variance


class NormalEquations(NamedTuple):
    r"""Normal equations with columns of norm one, factorised as $L D L^T$.

    `pivots` D (U,); `inverse` of L (U, U); `projection` $L^{-1} X^T r$ (U,); `size`, the norms of
    the columns, one without effect; `acts` (U,), whether a column is not zero.
    """

    pivots: Float[Array, " U"]
    inverse: Float[Array, "U U"]
    projection: Float[Array, " U"]
    size: Float[Array, " U"]
    acts: Bool[Array, " U"]


def _normal_equations(X: Float[Array, "M U"], r: Float[Array, " M"]) -> NormalEquations:
    """Factorise the normal equations without LAPACK, whose batched calls can block each other."""
    gram = X.T @ X
    size = jnp.sqrt(jnp.diagonal(gram))
    acts = size > 0
    # Columns without effect add a constant.
    size = jax.lax.stop_gradient(jnp.where(acts, size, 1.0))
    count = size.shape[0]
    identity, index = jnp.eye(count, dtype=X.dtype), jnp.arange(count)

    def eliminate(k, rows):
        row = rows[k]
        return rows - jnp.where(index > k, rows[:, k] / row[k], 0.0)[:, None] * row

    scaled = gram / jnp.outer(size, size) + _RIDGE * identity
    right = ((X.T @ r) / size)[:, None]
    rows = jnp.concatenate([scaled, identity, right], axis=1)
    rows = jax.lax.fori_loop(0, count, eliminate, rows)
    pivots = jnp.diagonal(rows[:, :count])
    return NormalEquations(pivots, rows[:, count:-1], rows[:, -1], size, acts)


class LinearisedFit(AbstractLinearisedFit):
    """A fit whose residuals are filtered by the noise models of its sensors.

    **Attributes:** `sensors`; `columns` (B, T, C, E + 1) of each: derivatives of its weighted
    residuals, then the residuals; see `AbstractLinearisedFit`.
    """

    sensors: tuple[SensorNoise, ...]
    columns: tuple[Float[Array, "B T C F"], ...]
    prior: tuple[Float[Array, " R"], Float[Array, "R U"]]
    num_shared: int = eqx.field(static=True)

    def whiten_at(self, coordinates: Float[Array, " d"]) -> tuple[Float[Array, "B N F"], Scalar]:
        log_variance, parts = jnp.zeros((), coordinates.dtype), []
        all_own = split_coordinates(coordinates, self.sensors)
        for sensor, own, rows in zip(self.sensors, all_own, self.columns, strict=True):
            whitening = sensor.whitening(own)
            if whitening is not None:
                rows = jax.vmap(lambda w, r: w(r))(whitening, rows)
                scale = jnp.where(whitening.scale > 0, whitening.scale, 1.0)
                log_variance -= 2 * jnp.sum(jnp.log(scale))
            elif own.size:
                rows = rows * jnp.exp(-own[0])
                log_variance += 2 * own[0] * jnp.sum(sensor.gaps.counts)
            parts.append(rows.reshape(rows.shape[0], -1, rows.shape[-1]))
        return jnp.concatenate(parts, axis=1), log_variance


_eigenvalues = sequential_vmap_on_cpu(lambda matrix: tuple(jnp.linalg.eigh(matrix)))


@persistent_jit
def estimate_noise(
    fit: AbstractLinearisedFit, coordinates: Float[Array, " d"]
) -> Float[Array, " d"]:
    """Return the coordinates of all noise models with the largest restricted likelihood.

    **Arguments:** `coordinates`, the start.
    """
    solution = optx.minimise(
        lambda coordinates, _: fit.deviance(coordinates),
        optx.BFGS(rtol=1e-8, atol=1e-4),
        coordinates,
        options={"autodiff_mode": "fwd"},
        max_steps=_MAX_STEPS,
        throw=False,
    )
    return solution.value


@persistent_jit
def covariance_from_noise(
    fit: AbstractLinearisedFit, coordinates: Float[Array, " d"]
) -> Float[Array, "U U"]:
    r"""Return the increase of the covariance of the coordinates by the uncertainty of the noise.

    The noise parameters are taken as normal about their estimates; their covariance is twice the
    inverse Hessian of the deviance. The variances of the coordinates then scatter like
    $\chi^2_\nu/\nu$. Errors have Student's distribution, with a variance that is $\nu/(\nu - 2)$
    times as large. In addition the estimates for given noise scatter. Both effects are computed
    from $2d$ points with the right second moments.

    **Arguments:** `coordinates` with the largest restricted likelihood.
    **Source:** Kenward, Roger, Biometrics 53 (1997) 983; points: Julier, Uhlmann, Proc. IEEE 92
    (2004) 401, without the central one.
    """
    count = coordinates.shape[0]
    _, given = fit.estimates(coordinates)
    if count == 0:
        return jnp.zeros_like(given)
    slope = jax.jacfwd(fit.deviance)
    directions = jnp.eye(count, dtype=coordinates.dtype)
    # One direction after the other, for memory.
    hessian = jax.lax.map(lambda v: jax.jvp(slope, (coordinates,), (v,))[1], directions)
    values, vectors = _eigenvalues(0.5 * (hessian + hessian.T))
    # Undetermined parameters, such as a standard deviation near zero, change nothing.
    std = jnp.sqrt(2.0 / jnp.maximum(values, 2.0 / _WIDEST**2))
    steps = np.sqrt(count) * (vectors * std).T
    points = coordinates + jnp.concatenate([steps, -steps])
    changes, covariances = jax.vmap(fit.estimates)(points)
    scatter = changes - jnp.mean(changes, axis=0)
    variances = jnp.diagonal(covariances, axis1=1, axis2=2)
    mean, variance = jnp.mean(variances, axis=0), jnp.var(variances, axis=0)
    freedom = 2 * mean**2 / jnp.where(variance > 0, variance, jnp.inf)
    freedom = jnp.where(variance > 0, jnp.maximum(freedom, _FEWEST), jnp.inf)
    wider = jnp.sqrt(1.0 + 2.0 / (freedom - 2.0))
    added = jnp.outer(wider, wider) * given - given + scatter.T @ scatter / (2 * count)
    return jnp.where(jnp.all(jnp.isfinite(added)), added, jnp.zeros_like(added))
