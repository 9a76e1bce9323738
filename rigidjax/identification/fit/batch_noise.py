"""Noise models in fits of many data sets at once."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...persistent_jit import persistent_jit
from ..data.measurements import Runs
from ..noise.likelihood import covariance_from_noise
from ..noise.models import AbstractNoise
from ..noise.specification import SELECT_ORDER
from .batch_search import (
    fit_sets,
    replace_data,
    set_data,
    stack_sets,
    summarise_with_point,
)
from .dependent_noise import (
    CLOSE,
    apply_noise,
    fitted_models,
    guess_coordinates,
    linearise_fit,
    noise_step,
    prepare_noise,
    replace_noise,
    select_orders,
)
from .least_squares import Search
from .problem import FitProblem

# Rounds of fits and estimates of the noise. The restricted likelihood contains the linearised fit,
# so that the second round is a correction.
_MAX_ROUNDS = 4
# Number of sets whose noise is estimated at once.
_AT_ONCE = 16


def fit_sets_with_noise(
    problems: Sequence[FitProblem],
    all_runs: Sequence[Runs],
    models: Sequence[AbstractNoise | str | None],
    search: Search,
    size: int,
) -> tuple[dict[str, Any], dict[str, AbstractNoise]]:
    """Fit all data sets, and estimate the noise of each, in rounds.

    **Arguments:** `all_runs`, with weights; `models`, see `noise_models`; `size`, the number of
    sets that are fitted at once.
    **Returns:** the estimates, see `fit_sets`, and the fitted models by sensor, stacked.
    """
    problem = problems[0]
    fit_all = functools.partial(fit_sets, size=size, summarise=summarise_with_point)
    if SELECT_ORDER in models:
        outputs = fit_all(problem, stack_sets(problems), search)
        models = select_orders(all_runs[0], np.asarray(outputs["residuals"]), models)
        problems = [
            p.with_starts(jax.tree.map(lambda x, n=n: x[n], outputs["leaves"]))
            for n, p in enumerate(problems)
        ]
        search = search.with_full_horizons()
    prepared = [prepare_noise(runs, models) for runs in all_runs]
    problems = [
        replace_noise(
            p,
            runs.weights,
            tuple(s.first_whitening(std) for s, std in zip(sensors, stds, strict=True)),
        )
        for p, (sensors, runs, stds) in zip(problems, prepared, strict=True)
    ]
    sensors = jax.tree.map(lambda *x: jnp.stack(x), *(sensors for sensors, _, _ in prepared))
    coordinates = jnp.stack([guess_coordinates(*parts) for parts in prepared])
    problem, stacked = problems[0], stack_sets(problems)
    outputs = fit_all(problem, stacked, search)
    for _ in range(_MAX_ROUNDS):
        before = coordinates
        coordinates, stacked, added = jax.tree.map(
            np.asarray, _update_noise(problem, stacked, outputs, sensors, before, size)
        )
        outputs = fit_all(problem, stacked, search.with_full_horizons())
        chain = outputs["chain"]
        outputs["covariance"] = outputs["covariance"] + chain @ added @ chain.swapaxes(1, 2)
        if float(jnp.max(jnp.abs(coordinates - before))) < CLOSE:
            break
    sensors_by_name = all_runs[0].sensors
    fitted = jax.vmap(functools.partial(fitted_models, sensors_by_name))(sensors, coordinates)
    return outputs, fitted


@persistent_jit
def _update_noise(
    problem: FitProblem,
    stacked: Any,
    outputs: dict[str, Any],
    sensors: Any,
    coordinates: Float[Array, "N d"],
    size: int,
) -> tuple[Float[Array, "N d"], Any, Float[Array, "N U U"]]:
    """Return the coordinates of the noise of each set, data with new starts and filters, and what
    the uncertainty of the noise adds to the covariance of the coordinates.
    """

    def update(arguments):
        data, shared, per_run, sides, leaves, sensors, before = arguments
        own = replace_data(problem, data)
        linear = linearise_fit(own, shared, per_run, sides, sensors)
        new = noise_step(linear, before)
        added = covariance_from_noise(linear, new)
        own, new = apply_noise(own.with_starts(leaves), sensors, new)
        return new, set_data(own), added

    arguments = (stacked, *(outputs[k] for k in ("shared", "per_run", "sides", "leaves")))
    return jax.lax.map(update, (*arguments, sensors, coordinates), batch_size=min(size, _AT_ONCE))
