"""Samples of the posterior distribution by the No-U-Turn sampler of BlackJAX."""

import dataclasses
import importlib
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ...extras import import_optional
from ...io.document import estimate_text, std_text
from ...persistent_jit import persistent_jit
from ..search.optimum import Optimum
from .log_posterior import LogPosterior, make_log_posterior

# Acceptance rate that the step size is adapted to, and the first step size, for coordinates of
# unit variance.
_TARGET, _STEP = 0.8, 0.7
# Spread of the starts of the chains, in standard deviations.
_SPREAD = 1.5
# R-hat above which chains have not mixed, and effective samples below which quantiles are coarse.
_MIXED, _FEW = 1.01, 400


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Posterior:
    r"""Samples of the posterior distribution of all fitted parameters.

    **Attributes:**

    - `labels`, `units`, as in the `Fit`; `samples` (chains, samples, k) in physical units.
    - `r_hat`: $\hat R$ of each label, of rank-normalised split chains; near 1 for chains that have
      mixed. `effective_samples`: number of independent samples with the same error of the mean.
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
    start_key, key = jax.random.split(key)
    starts = _SPREAD * jax.random.normal(start_key, (chains, posterior.origin.size))
    starts = starts.astype(posterior.origin.dtype)
    keys = jax.random.split(key, chains)
    z, is_divergent, acceptance, steps = map(
        np.asarray, _run_chains(posterior, starts, keys, samples, warmup)
    )
    values = np.asarray(_components(posterior, jnp.asarray(z)))
    if not np.isfinite(values).all() or not np.all(np.std(values, axis=1) > 0):
        raise RuntimeError(
            "`Fit.posterior`: a chain did not move from its start, where a simulation fails. Fit "
            "first with tighter tolerances, or sample with another `key`."
        )
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
