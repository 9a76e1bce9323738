"""Bootstrap of a fit: refits of resampled data, all at once."""

import dataclasses
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from ..fit.batch_search import choose_batch_size, fit_sets, summarise
from ..fit.evaluation import evaluate_plain
from ..fit.optimum import Optimum
from ..fit.problem import FitProblem
from ..fit.result import Fit
from .bootstrap_result import Bootstrap
from .resampling import block_length, draw_residuals, filter_back, readings_with_residuals

Kind: TypeAlias = Literal["parametric", "residual", "block", "runs"]
KINDS = ("parametric", "residual", "block", "runs")


def bootstrap(
    fit: Fit,
    count: int,
    key: PRNGKeyArray,
    kind: Kind = "parametric",
    *,
    block: int | None = None,
    batch_size: int | None = None,
) -> Bootstrap:
    r"""Fit resampled data many times at once, for the covariance and intervals of the estimates.

    The model and the estimates give predictions, to which resampled residuals are added:

    - `"parametric"`: normal residuals of the noise of the fit. It shows bias and curvature, if
      model and noise are right.
    - `"residual"`: residuals drawn from all residuals of the channel, for independent noise of
      any distribution.
    - `"block"`: blocks of successive residuals of a run, all channels of a sensor together, which
      keep their dependence. The number of samples of a block is
      $(\sqrt 6\,r/(1 - r^2))^{2/3} n^{1/3}$ with the correlation r of successive residuals and the
      number n of samples, or `block`.
    - `"runs"`: whole runs, drawn with replacement. It holds for any dependence inside the runs,
      with ten runs or more. Parameters with one value per run have no meaning in it.

    Residuals are centred, and enlarged by $\sqrt{n/(n - k)}$ for the k fitted parameters. Weights
    of the data stay as they are. With a noise model the residuals are innovations, which are
    resampled and then filtered back.

    ```python
    spread = rj.identification.bootstrap(fit, 500, jax.random.key(0), "block")
    print(spread.std, spread.intervals())
    ```

    **Arguments:** `fit`, converged; `count` of refits; `key`, a JAX random key; `kind`; `block`,
    number of samples of a block; `batch_size`, number of refits at once, as in `identify_batch`.
    **Returns:** a `Bootstrap`.
    **Errors:** `TypeError` and `ValueError` for other arguments, and for `"runs"` of a single run.
    **Source:** Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 9; Carlstein,
    Ann. Statist. 14 (1986) 1171, for the length of blocks; Politis and Romano, in Exploring the
    Limits of Bootstrap (1992) 263, for blocks that continue at the start.
    """
    batch_size = choose_batch_size() if batch_size is None else batch_size
    _check_arguments(fit, count, kind, block, batch_size)
    optimum = fit.optimum
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    problem = dataclasses.replace(
        optimum.problem.with_starts(optimum.minimum.leaves), fitted_only=True
    )
    lengths: dict[str, int] = {}
    if kind == "runs":
        chosen = rng.integers(problem.num_runs, size=(count, problem.num_runs))
        runs = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[chosen]), problem.runs)
    else:
        if kind == "block":
            lengths = {
                s.name: block or block_length(w, r)
                for s, w, r in optimum.runs.by_sensor(optimum.minimum.last.residuals)
            }
        values = _resampled_values(optimum, rng, count, kind, lengths, fit)
        runs = _repeat_runs(problem, count)
        runs = dataclasses.replace(runs, values=tuple(map(jnp.asarray, values)))
    stacked = jax.tree.map(lambda x: _repeat(x, count), problem.shared), runs
    search = optimum.search.with_full_horizon()
    outputs = fit_sets(problem, stacked, search, min(batch_size, count), summarise)
    table = optimum.table.subset(optimum.table.fitted_indices)
    converged = outputs["converged"]
    if np.count_nonzero(converged) < 2:
        raise RuntimeError(
            f"`bootstrap`: of {count} refits only {np.count_nonzero(converged)} converged. Raise "
            "`max_iterations` of the fit, or fit fewer parameters."
        )
    return Bootstrap(
        kind=kind,
        labels=table.labels,
        units=table.units,
        estimates=fit.values,
        values=outputs["values"][converged][:, optimum.table.fitted_indices],
        num_failed=int(np.count_nonzero(~converged)),
        block_lengths=lengths,
    )


def _check_arguments(fit: Fit, count: int, kind: str, block: int | None, batch_size: int) -> None:
    if not isinstance(fit, Fit):
        raise TypeError(
            f"`bootstrap(fit=...)` takes a result of `identify`; got {type(fit).__name__}."
        )
    if not fit.converged:
        raise ValueError(
            f"`bootstrap(fit=...)` takes a converged fit; it ended with: {fit.result}."
        )
    if kind not in KINDS:
        raise ValueError(f"`bootstrap(kind=...)` must be one of {KINDS}; got {kind!r}.")
    for name, value, least in (("count", count, 2), ("batch_size", batch_size, 1)):
        if value < least:
            raise ValueError(f"`bootstrap({name}=...)` must be at least {least}; got {value!r}.")
    if block is not None and (kind != "block" or block < 1):
        raise ValueError(
            f'`bootstrap(block=...)` is a number of samples for kind="block"; got {block!r} for '
            f"kind={kind!r}."
        )
    if kind == "runs" and len(fit.run_names) < 2:
        raise ValueError(
            '`bootstrap(kind="runs")` draws from several runs; the fit has one. Use kind="block".'
        )


def _resampled_values(
    optimum: Optimum,
    rng: np.random.Generator,
    count: int,
    kind: str,
    lengths: dict[str, int],
    fit: Fit,
) -> list[np.ndarray]:
    """Return the samples of all sensors in `count` resampled data sets, (N, B, T, ...)."""
    runs, values = optimum.runs, []
    filters = optimum.problem.runs.whitening or (None,) * len(runs.sensors)
    plain = _plain_residuals(optimum)
    scale = np.sqrt(fit.num_residuals / max(fit.degrees_of_freedom, 1))
    for k, (sensor, weights, r) in enumerate(runs.by_sensor(optimum.minimum.last.residuals)):
        if kind == "parametric":
            drawn = fit.noise * rng.normal(size=(count, *r.shape))
        else:
            drawn = scale * draw_residuals(rng, count, weights, r, lengths.get(sensor.name, 1))
        used = weights > 0
        if filters[k] is not None:
            drawn = np.asarray(filter_back(filters[k], jnp.asarray(drawn)))
        std = np.where(used, 1 / np.where(used, weights, 1.0), 0.0)
        readings = np.asarray(runs.values[k])
        values.append(readings_with_residuals(sensor, readings, std * plain[k], std * drawn))
    return values


def _plain_residuals(optimum: Optimum) -> list[np.ndarray]:
    """Return the weighted residuals of every sensor, (B, T, C), before filters of noise models."""
    minimum = optimum.minimum
    residuals = minimum.last.residuals
    if optimum.problem.runs.whitening:
        plain = evaluate_plain(optimum.problem, minimum.shared, minimum.per_run)
        residuals = plain.residuals
    return [r for _, _, r in optimum.runs.by_sensor(residuals)]


def _repeat(x: Array, count: int) -> Array:
    return jnp.broadcast_to(x, (count, *jnp.shape(x)))


def _repeat_runs(problem: FitProblem, count: int) -> Any:
    """Return the data of the runs, with a leading axis."""
    return jax.tree.map(lambda x: _repeat(x, count), problem.runs)
