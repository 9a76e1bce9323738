"""Density of the posterior distribution, and samples of it by two samplers."""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...extras import import_optional
from ...io.document import estimate_text, std_text
from ...persistent_jit import persistent_jit
from ..search.evaluation import evaluate
from ..search.losses import AbstractLoss
from ..search.optimum import Optimum
from ..search.problem import FitProblem

# Curvature of the density of a bounded coordinate in its chart, without data.
_BOUND_CURVATURE = 0.25


class BoundChart(eqx.Module):
    r"""Unbounded coordinates x of coordinates u with bounds.

    $u = a + (b - a)/(1 + e^{-x})$ between two bounds, $a + e^x$ or $b - e^x$ at one bound, and x
    without bounds.

    **Attributes:** `lower` a, `upper` b, (U,), infinite without a bound.
    """

    lower: Float[Array, " U"]
    upper: Float[Array, " U"]

    def coordinates(self, x: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return u."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        a, b = jnp.where(below, self.lower, 0.0), jnp.where(above, self.upper, 0.0)
        distance = jnp.exp(jnp.where(below ^ above, x, 0.0))
        between = a + (b - a) * jax.nn.sigmoid(x)
        return jnp.select([below & above, below, above], [between, a + distance, b - distance], x)

    def inverse(self, u: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return x of coordinates inside their bounds."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        from_lower = jnp.log(jnp.where(below, u - self.lower, 1.0))
        from_upper = jnp.log(jnp.where(above, self.upper - u, 1.0))
        return jnp.select([below, above], [from_lower - from_upper, from_upper], u)

    def slope(self, x: Float[Array, " U"]) -> Float[Array, " U"]:
        """Return |du/dx|."""
        return jnp.abs(jax.jvp(self.coordinates, (x,), (jnp.ones_like(x),))[1])


class LogPosterior(eqx.Module):
    r"""Logarithm of the posterior density in whitened coordinates z, up to a constant.

    The coordinates of `BoundChart` are $x = x_0 + L z$. The density is that of all fitted
    components in physical units: of the data and the priors, times the determinant of the
    derivatives of the components with respect to z. Noise that is estimated is integrated out with
    the prior $1/\sigma$.

    **Attributes:** `problem`; `loss`; `chart`; `origin` (U,), $x_0$; `factor` (U, U), L; `counts`,
    for each sensor the number of residuals whose noise is estimated, 0 for given noise; `fitted`,
    indices of the fitted components among the shared ones and among those of a run.
    """

    problem: FitProblem
    loss: AbstractLoss
    chart: BoundChart
    origin: Float[Array, " U"]
    factor: Float[Array, "U U"]
    counts: tuple[int, ...] = eqx.field(static=True)
    fitted: tuple[tuple[int, ...], tuple[int, ...]] = eqx.field(static=True)

    def __call__(self, z: Float[Array, " U"]) -> Float[Array, ""]:
        """Return the logarithm of the density; minus infinity where a run fails.

        The gradient costs no second simulation: residuals and priors are linear functions of the
        coordinates, with the derivatives that their evaluation returns.
        """
        x = self.origin + self.factor @ z
        u = self.chart.coordinates(x)
        change = u - jax.lax.stop_gradient(u)
        evaluation = evaluate(self.problem, *self._split(jax.lax.stop_gradient(u)))
        okay = jnp.all(evaluation.okay)
        # Values of a failed run would make the gradient NaN.
        evaluation = jax.tree.map(lambda leaf: jnp.where(okay, leaf, 1.0), evaluation)
        shared, per_run = self._split(change)
        of_runs = jnp.hstack([jnp.broadcast_to(shared, (len(per_run), shared.size)), per_run])
        residuals = evaluation.residuals + jnp.einsum(
            "bnf,bf->bn", evaluation.coordinate_rows(), of_runs
        )
        prior = evaluation.prior.residuals + evaluation.prior_jacobian() @ change
        value = self._log_likelihood(residuals) - 0.5 * jnp.sum(prior**2) + self._log_volume(x)
        return jnp.where(okay & jnp.isfinite(value), value, -jnp.inf)

    def without_derivatives(self, z: Float[Array, " U"]) -> Float[Array, ""]:
        """Return the logarithm of the density from runs without tangents."""
        x = self.origin + self.factor @ z
        shared, per_run = self._split(self.chart.coordinates(x))

        def evaluate_run(per_run, run):
            leaves = self.problem.run_leaves(shared, per_run, run)
            blocks = self.problem.parametrise(self.problem.experiment(leaves, run))
            return *self.problem.residuals(leaves, run), *(block.prior()[0] for block in blocks)

        residuals, okay, of_shared, of_runs = jax.vmap(evaluate_run)(per_run, self.problem.runs)
        prior = jnp.sum(of_shared[0] ** 2) + jnp.sum(of_runs**2)
        value = self._log_likelihood(residuals) - 0.5 * prior + self._log_volume(x)
        return jnp.where(jnp.all(okay) & jnp.isfinite(value), value, -jnp.inf)

    def components(self, z: Float[Array, " U"]) -> Float[Array, " k"]:
        """Return all fitted components in physical units: shared ones, then run by run."""
        shared, per_run = self._split(self.chart.coordinates(self.origin + self.factor @ z))

        def components_of_run(per_run, run):
            leaves = self.problem.run_leaves(shared, per_run, run)
            blocks = self.problem.parametrise(self.problem.experiment(leaves, run))
            return [b.values()[np.array(k, int)] for b, k in zip(blocks, self.fitted, strict=True)]

        of_shared, of_runs = jax.vmap(components_of_run)(per_run, self.problem.runs)
        return jnp.concatenate([of_shared[0], of_runs.reshape(-1)])

    def _split(self, u: Float[Array, " U"]) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Return shared and per-run coordinates."""
        size = len(self.fitted[0])
        return u[:size], u[size:].reshape(self.problem.num_runs, -1)

    def _log_likelihood(self, residuals: Float[Array, "B N"]) -> Float[Array, ""]:
        """Return the logarithm of the likelihood as a function of weighted residuals."""
        total, sizes = (
            jnp.zeros((), residuals.dtype),
            [w[0].size for w in self.problem.runs.weights],
        )
        parts = jnp.split(self.loss.root(residuals), np.cumsum(sizes)[:-1], axis=1)
        for part, count in zip(parts, self.counts, strict=True):
            squares = jnp.sum(part**2)
            total -= 0.5 * count * jnp.log(squares) if count else 0.5 * squares
        return total

    def _log_volume(self, x: Float[Array, " U"]) -> Float[Array, ""]:
        """Return the logarithm of the determinant of the Jacobian of the components in x."""
        shared, per_run = self._split(self.chart.coordinates(x))

        def volumes_of_run(per_run, run):
            chains = self.problem.component_derivatives(shared, per_run, run)
            blocks = zip(chains, self.fitted, strict=True)
            return [jnp.linalg.slogdet(chain[np.array(k, int)])[1] for chain, k in blocks]

        of_shared, of_runs = jax.vmap(volumes_of_run)(per_run, self.problem.runs)
        return of_shared[0] + jnp.sum(of_runs) + jnp.sum(jnp.log(self.chart.slope(x)))


def make_log_posterior(optimum: Optimum, variance: float) -> LogPosterior:
    """Return the posterior density, whitened by the Laplace approximation at the optimum.

    **Arguments:** `variance` of a weighted residual.
    """
    problem = optimum.problem.with_starts(optimum.minimum.leaves)
    problem = dataclasses.replace(problem, fitted_only=True)
    lower, upper = _linear_limits(problem)
    start = _start_inside(optimum, problem, lower, upper)
    chart = BoundChart(jnp.asarray(lower), jnp.asarray(upper))
    origin = chart.inverse(start)
    shared, per_run = problem.start_coordinates()
    evaluation = evaluate(
        problem, start[: shared.size], start[shared.size :].reshape(per_run.shape)
    )
    data = np.asarray(evaluation.coordinate_jacobian()) / np.sqrt(variance)
    rows = np.concatenate([data, np.asarray(evaluation.prior_jacobian())])
    rows = rows * np.asarray(chart.slope(origin))
    is_bounded = np.isfinite(lower) | np.isfinite(upper)
    information = rows.T @ rows + _BOUND_CURVATURE * np.diag(is_bounded.astype(float))
    filters = problem.runs.whitening or (None,) * len(optimum.runs.sensors)
    has_noise, weights = optimum.runs.has_noise, optimum.runs.weights
    is_fitted = optimum.table.fitted
    count, num_own = evaluation.shared.size, evaluation.per_run.shape[1]
    return LogPosterior(
        problem=problem,
        loss=optimum.search.loss,
        chart=chart,
        origin=origin,
        factor=jnp.asarray(np.linalg.inv(np.linalg.cholesky(information)).T),
        counts=tuple(
            0 if known or filter is not None else int(np.count_nonzero(np.asarray(w)))
            for w, filter, known in zip(weights, filters, has_noise, strict=True)
        ),
        fitted=(
            tuple(np.flatnonzero(is_fitted[:count]).tolist()),
            tuple(np.flatnonzero(is_fitted[count : count + num_own]).tolist()),
        ),
    )


def _linear_limits(problem: FitProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return limits of the coordinates; infinite for those of logarithms, which stand for zero."""
    limits = problem.limits()
    if limits is None:
        infinite = np.full(sum(x.size for x in problem.start_coordinates()), np.inf)
        return -infinite, infinite
    lower, upper, reach = (
        np.concatenate([np.asarray(a), np.asarray(b).reshape(-1)])
        for a, b in zip(*limits, strict=True)
    )
    return np.where(np.isfinite(reach), -np.inf, lower), upper


def _start_inside(
    optimum: Optimum, problem: FitProblem, lower: np.ndarray, upper: np.ndarray
) -> Float[Array, " U"]:
    """Return the optimum, moved inside by one standard deviation where it is on a bound."""
    u = np.concatenate([np.asarray(x).reshape(-1) for x in problem.start_coordinates()])
    norm = np.linalg.norm(np.asarray(optimum.minimum.last.coordinate_jacobian()), axis=0)
    std = 1 / np.where(norm > 0, norm, 1.0)
    # A change of a logarithm has an exponential effect: the logarithm of `std` is enough.
    is_linear = np.isfinite(lower) | np.isfinite(upper)
    inside = np.where(is_linear, std, np.log(np.maximum(std, 1.0)))
    width = upper - lower
    margin = np.where(np.isfinite(width), 0.01 * width, np.where(is_linear, 0.1 * std, 0.0))
    u = u - np.asarray(optimum.minimum.sides) * inside
    return jnp.asarray(np.clip(u, lower + margin, upper - margin))


# Acceptance rate that the step size is adapted to, and the first step size, for coordinates of
# unit variance.
_TARGET, _STEP = 0.8, 0.7
# Degrees of freedom of proposals, and part of the samples that are effective if they suit.
_TAILS, _EFFECTIVE = 6.0, 0.2
# Spread of the starts of the chains, in standard deviations.
_SPREAD = 1.5
# R-hat above which chains have not mixed, and effective samples below which quantiles are coarse.
_MIXED, _FEW = 1.01, 400


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Posterior:
    r"""Samples of the posterior distribution of all fitted parameters.

    **Attributes:**

    - `labels`, `units`: as in the `Fit`.
    - `samples`: (chains, samples, k), in physical units.
    - `r_hat`: $\hat R$ of each label, of rank-normalised split chains; near 1 for chains that have
      mixed.
    - `effective_samples`: number of independent samples with the same error of the mean.
    - `divergences`: number of trajectories whose energy was not conserved; `acceptance`, the mean
      acceptance rate; `evaluations`, the number of evaluations of the density by all chains
      together.
    - `bounds`: for labels on a bound of the fit, the bound and whether it is the lower one.
    - `warnings`: reasons not to trust the samples.
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    samples: Float[np.ndarray, "chains samples k"]
    r_hat: dict[str, float]
    effective_samples: dict[str, float]
    divergences: int
    acceptance: float
    evaluations: int
    bounds: Mapping[str, tuple[float, bool]]

    @property
    def flat(self) -> Float[np.ndarray, "M k"]:
        """Samples of all chains, one after the other."""
        return self.samples.reshape(-1, len(self.labels))

    @property
    def mean(self) -> dict[str, float]:
        """Posterior means by label."""
        return dict(zip(self.labels, self.flat.mean(axis=0).tolist(), strict=True))

    @property
    def std(self) -> dict[str, float]:
        """Posterior standard deviations by label."""
        return dict(zip(self.labels, self.flat.std(axis=0, ddof=1).tolist(), strict=True))

    @property
    def covariance(self) -> Float[np.ndarray, "k k"]:
        """Posterior covariance."""
        return np.atleast_2d(np.cov(self.flat.T))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Return credible intervals by label, with equal probabilities on both sides.

        The interval of a parameter whose estimate is on a bound begins at the bound.

        **Arguments:** `level`, the probability, in (0, 1).
        **Errors:** `ValueError` for another level.
        """
        if not 0 < level < 1:
            raise ValueError(
                "`Posterior.intervals(level=...)` lies between 0 and 1, such as 0.95 for 95 %; got "
                f"{level!r}."
            )
        intervals = {}
        for label, samples in zip(self.labels, self.flat.T, strict=True):
            low, high = np.quantile(samples, [0.5 * (1 - level), 0.5 * (1 + level)]).tolist()
            if label in self.bounds:
                limit, is_lower = self.bounds[label]
                end = float(np.quantile(samples, level if is_lower else 1 - level))
                low, high = (limit, end) if is_lower else (end, limit)
            intervals[label] = (low, high)
        return intervals

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust the samples."""
        warnings = []
        if mixing := [label for label, r in self.r_hat.items() if not r < _MIXED]:
            warnings.append(
                f"The chains have not mixed in {mixing} (R-hat up to "
                f"{max(self.r_hat.values()):.3g}); draw more samples."
            )
        fewest = min(self.effective_samples.values())
        if not fewest >= _FEW:
            warnings.append(
                f"There are only {fewest:.0f} effective samples, too few for the ends of an "
                "interval; draw more."
            )
        if self.divergences:
            warnings.append(
                f"{self.divergences} trajectories diverged: the samples miss a narrow part of the "
                "posterior, or simulations fail there."
            )
        return tuple(warnings)

    def __repr__(self) -> str:
        mean, std = self.mean, self.std
        entries = ", ".join(
            f"{label}={estimate_text(mean[label], std[label])} +- {std_text(std[label])}"
            for label in self.labels[:6]
        )
        more = f", {len(self.labels) - 6} more" if len(self.labels) > 6 else ""
        chains, count = self.samples.shape[:2]
        text = (
            f"Posterior({chains} chains of {count}; {entries}{more}; R-hat up to "
            f"{max(self.r_hat.values()):.3f}, at least {min(self.effective_samples.values()):.0f} "
            "effective samples)"
        )
        return "\n".join([text, *self.warnings])


def sample_posterior(
    optimum: Optimum,
    key: PRNGKeyArray,
    samples: int,
    chains: int,
    warmup: int,
    *,
    variance: float,
    bounds: Mapping[str, tuple[float, bool]],
) -> Posterior:
    """Sample the posterior; see `Fit.posterior`.

    **Arguments:** `variance` of a weighted residual; `bounds`, see `Posterior`.
    """
    for name, value, least in (
        ("samples", samples, 4),
        ("chains", chains, 2),
        ("warmup", warmup, 50),
    ):
        if not value >= least:
            raise ValueError(
                f"`Fit.posterior({name}=...)` must be at least {least}; got {value!r}."
            )
    blackjax = import_optional("blackjax", "Posterior samples")
    posterior = make_log_posterior(optimum, variance)
    proposed = _accept_proposals(posterior, key, samples, chains, warmup)
    if proposed is not None:
        values = np.asarray(_components(posterior, jnp.asarray(proposed[0])))
        if np.asarray(blackjax.ess_bulk(values)).min() > _EFFECTIVE * values[..., 0].size:
            return _make_posterior(optimum, values, proposed[1:], bounds)
    start_key, key = jax.random.split(key)
    starts = _SPREAD * jax.random.normal(start_key, (chains, posterior.origin.size))
    starts = starts.astype(posterior.origin.dtype)
    keys = jax.random.split(key, chains)
    z, *counts = map(np.asarray, _run_chains(posterior, starts, keys, samples, warmup))
    values = np.asarray(_components(posterior, jnp.asarray(z)))
    if not np.isfinite(values).all() or not np.all(np.std(values, axis=1) > 0):
        raise RuntimeError(
            "`Fit.posterior`: a chain did not move from its start, where a simulation fails. Fit "
            "first with tighter tolerances, or sample with another `key`."
        )
    return _make_posterior(optimum, values, counts, bounds)


def _make_posterior(
    optimum: Optimum,
    values: Float[np.ndarray, "chains samples k"],
    counts: Sequence[np.ndarray],
    bounds: Mapping[str, tuple[float, bool]],
) -> Posterior:
    """Return samples with their diagnostics.

    **Arguments:** `counts`, of divergences, acceptance rates and evaluations.
    """
    blackjax = import_optional("blackjax", "Posterior samples")
    is_divergent, acceptance, steps = counts
    table = optimum.table.subset(optimum.table.fitted_indices)
    r_hat = np.asarray(blackjax.rhat(values))
    effective = np.asarray(blackjax.ess_bulk(values))
    return Posterior(
        labels=table.labels,
        units=table.units,
        samples=values,
        r_hat=dict(zip(table.labels, r_hat.tolist(), strict=True)),
        effective_samples=dict(zip(table.labels, effective.tolist(), strict=True)),
        divergences=int(is_divergent.sum()),
        acceptance=float(acceptance.mean()),
        evaluations=int(steps.sum()),
        bounds=bounds,
    )


def _accept_proposals(
    posterior: LogPosterior, key: PRNGKeyArray, samples: int, chains: int, warmup: int
) -> tuple[np.ndarray, ...] | None:
    """Return whitened samples (chains, samples, U), divergences, acceptance and evaluations of
    independent Metropolis chains; `None` for prediction errors.

    Proposals are drawn from Student's distribution with the covariance of the Laplace
    approximation, so that all densities are one batch. Where the posterior is not close to it, few
    are accepted.

    **Source:** Tierney, Ann. Statist. 22 (1994) 1701, Section 2.3.3.
    """
    if posterior.problem.predictor is not None:
        return None
    size, dtype = posterior.origin.size, posterior.origin.dtype
    normal_key, scale_key, accept_key = jax.random.split(key, 3)
    shape = chains, warmup + samples
    scale = 2 * jax.random.gamma(scale_key, _TAILS / 2, shape, dtype) / _TAILS
    z = jax.random.normal(normal_key, (*shape, size), dtype) / jnp.sqrt(scale)[..., None]
    own = -0.5 * (_TAILS + size) * jnp.log1p(jnp.sum(z**2, axis=-1) / _TAILS)
    weights = np.asarray(_log_densities(posterior, z.reshape(-1, size)).reshape(shape) - own)
    bars = np.log(np.asarray(jax.random.uniform(accept_key, shape, dtype)))
    index, rows = np.zeros(shape, int), np.arange(chains)
    for k in range(1, shape[1]):
        last = index[:, k - 1]
        with np.errstate(invalid="ignore"):
            is_accepted = ~(weights[:, k] - weights[rows, last] <= bars[:, k])
        is_accepted &= np.isfinite(weights[:, k])
        index[:, k] = np.where(is_accepted, k, last)
    kept = index[:, warmup:]
    acceptance = np.mean(np.diff(index, axis=1) > 0, axis=1)
    return np.asarray(z)[rows[:, None], kept], np.zeros(1), acceptance, np.array([weights.size])


@persistent_jit
def _log_densities(posterior: LogPosterior, z: Float[Array, "M U"]) -> Float[Array, " M"]:
    return jax.vmap(posterior.without_derivatives)(z)


@persistent_jit
def _run_chains(
    posterior: LogPosterior, starts: Array, keys: Array, samples: int, warmup: int
) -> tuple[Array, Array, Array, Array]:
    """Return whitened samples (chains, samples, U), divergences, acceptance and step counts.

    The step size of each chain is adapted during `warmup`, by dual averaging.
    """
    blackjax = import_optional("blackjax", "Posterior samples")
    adaptation = importlib.import_module("blackjax.adaptation.step_size")
    begin, update, end = adaptation.dual_averaging_adaptation(_TARGET)
    kernel = blackjax.nuts.build_kernel()
    inverse_mass = jnp.ones_like(posterior.origin)

    def step(carry, inputs):
        state, averaging = carry
        key, number = inputs
        is_warmup = number < warmup
        size = jnp.where(is_warmup, jnp.exp(averaging.log_step_size), end(averaging))
        state, info = kernel(key, state, posterior, size, inverse_mass)
        updated = update(averaging, info.acceptance_rate)
        averaging = jax.tree.map(lambda a, b: jnp.where(is_warmup, a, b), updated, averaging)
        output = state.position, info.is_divergent, info.acceptance_rate, info.num_integration_steps
        return (state, averaging), output

    def run_chain(start, key):
        state = blackjax.nuts.init(start, posterior)
        numbers = jnp.arange(warmup + samples)
        inputs = jax.random.split(key, warmup + samples), numbers
        _, outputs = jax.lax.scan(step, (state, begin(_STEP)), inputs)
        return jax.tree.map(lambda x: x[warmup:], outputs)

    return jax.vmap(run_chain)(starts, keys)


@persistent_jit
def _components(posterior: LogPosterior, z: Float[Array, "chains samples U"]) -> Array:
    return jax.vmap(jax.vmap(posterior.components))(z)
