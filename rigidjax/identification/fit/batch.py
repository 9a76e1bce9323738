"""Fits of one problem to many data sets at once."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
import numpy as np
from jaxtyping import ArrayLike

from ...formulations.choice import ModelInput, choose_formulation
from ...state import State
from ..data.measurements import Measurements, Runs, stack_runs
from ..experiment.checked_arguments import check_parameters
from ..experiment.parameters import Parameter
from ..experiment.simulation import Settings, Simulation, resolve_simulation
from ..noise.models import AbstractNoise, NoiseArgument, noise_models
from ..prediction.batch import make_set_fit
from ..prediction.fit import check_prediction_options, check_white_noise
from ..search.batch_search import (
    choose_batch_size,
    fit_set,
    fit_sets,
    limit_by_memory,
    runs_on_gpu,
    stack_sets,
    summarise,
)
from ..search.dependent_noise import fit_sets_with_noise
from ..search.first_order import FirstOrder
from ..search.noise import guess_noise
from ..search.options import make_search, prepare_problems
from ..starts.named_parameters import find_named_parameters

_SEARCH_OPTIONS = ("horizons", "method", "loss", "max_iterations", "tolerance")


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BatchFit:
    """Estimates of N fits of one problem.

    **Attributes:**

    - `labels`, `units`: of the k fitted parameters.
    - `values`, `covariance`: (N, k) and (N, k, k), in physical units, as in `Fit`, for known noise.
      Not finite for a fit whose data do not determine all parameters.
    - `at_bound` (N, k), boolean: parameters on an active bound, alone or in a combination such as a
      principal Euler value; see `Fit.bounds`.
    - `chi_square` (N,): sum of squares of the weighted residuals per degree of freedom.
    - `converged` (N,), boolean: fits that did not converge are not at an optimum.
    - `iterations` (N,): number of iterations of each fit.
    - `noise_models`: of dependent noise by sensor; their parameters have a leading axis N.
    - `process_noise`: of prediction-error fits, standard deviations (N,) by name, else `None`.
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    at_bound: np.ndarray
    chi_square: np.ndarray
    converged: np.ndarray
    iterations: np.ndarray
    noise_models: dict[str, AbstractNoise]
    process_noise: dict[str, np.ndarray] | None = None

    @property
    def std(self) -> np.ndarray:
        """Standard deviations (N, k)."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))

    def __repr__(self) -> str:
        count, num_converged = len(self.converged), int(np.count_nonzero(self.converged))
        return f"BatchFit({count} fits of {', '.join(self.labels)}; {num_converged} converged)"


def identify_batch(
    model: ModelInput,
    data: Sequence[Measurements | Sequence[Measurements]],
    parameters: Parameter | Sequence[Parameter],
    *,
    state0: State | Sequence[State] | None = None,
    starts: Mapping[str, ArrayLike] | None = None,
    noise: NoiseArgument = "white",
    batch_size: int | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    progress: bool = False,
    process_noise: Mapping[str, Any] | None = None,
    simulation: Simulation | None = None,
    **options: Any,
) -> BatchFit:
    """Fit the same parameters to many data sets at once, each separately, under `vmap`.

    **Arguments:**

    - `model`, `parameters`, `state0`: as in `rj.identify`; priors are the same for all sets.
    - `data`: N sets, each of one or several runs, with equal times, sensors and shapes; noise must
      be given, except for sensors with a noise model.
    - `starts`: start values by the name of a parameter, with a leading axis N.
    - `noise`: as in `rj.identify`; the parameters of a noise model are estimated for each set, the
      order of `"ar(p)"` for all together. Not with `out` or `progress`.
    - `batch_size`: number of sets that are fitted at once, by default eight for each core. Finished
      fits are replaced by waiting ones; with `out` or `progress` a batch, by default of 128, runs
      until its slowest fit has ended, and so it does on a GPU, by default of 16,384.
    - `out`, `resume`: a Zarr store for the results, written after every `batch_size` fits, from
      which an interrupted call resumes, as in `rj.ensemble`.
    - `progress`: report progress on standard error.
    - `process_noise`: as in `rj.identify`, for `method="prediction-error"`.
    - `simulation`: as in `rj.identify`.
    - `options`: `horizons`, `method`, `loss`, `max_iterations`, `tolerance`, and the arguments of
      `simulation` instead of it, as in `rj.identify`.

    **Returns:** a `BatchFit`. No exception is raised for fits that fail: see `converged`.
    **Warns:** `UserWarning` if the memory of a GPU limits the number of fits at a time.
    **Raises:** `TypeError` and `ValueError` for arguments that do not fit; as `rj.ensemble` for a
    store that cannot be used.
    """
    search_options = {name: options.pop(name) for name in _SEARCH_OPTIONS if name in options}
    simulation = resolve_simulation("identify_batch", simulation, cast("Settings", options))
    if isinstance(search_options.get("method"), FirstOrder):
        raise ValueError('`identify_batch` has no `FirstOrder`; use "levenberg-marquardt".')
    given_noise = check_prediction_options(search_options.get("method"), process_noise)
    model = choose_formulation(model, "identify_batch")
    parameters = check_parameters("identify_batch", parameters)
    if not data:
        raise ValueError("`identify_batch(data=...)` needs at least one set of data; got none.")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"`identify_batch(batch_size=...)` must be positive; got {batch_size}.")
    starts = _check_starts(parameters, starts, len(data))
    all_runs = [stack_runs(measurements) for measurements in data]
    parameters = find_named_parameters(parameters, model, all_runs[0].sensors)
    models = noise_models("identify_batch", noise, all_runs[0].sensors)
    is_white = all(model is None for model in models)
    check_white_noise(given_noise, models)
    known = [runs.has_noise for runs in all_runs]
    if not all(k or m is not None for has in known for k, m in zip(has, models, strict=True)):
        raise ValueError(
            "`identify_batch` takes data of known noise; give `Measurements(noise=...)`, or a "
            "noise model."
        )
    if not is_white and (out is not None or progress):
        raise ValueError(
            "`identify_batch(noise=...)` fits all sets together, more than once; leave out `out` "
            "and `progress`, or use white noise."
        )
    if len({_signature(runs) for runs in all_runs}) > 1:
        raise ValueError(
            "`identify_batch(data=...)` takes sets of the same sensors and numbers of samples."
        )
    problems, all_runs, table, _ = prepare_problems(
        model, all_runs, parameters, state0, simulation, guess_noise, starts
    )
    problems = [dataclasses.replace(problem, fitted_only=True) for problem in problems]
    search = make_search(all_runs[0].ts.dtype, **search_options)
    samples = np.array([runs.num_samples for runs in all_runs])
    # On a GPU each thread performs whole fits, in batches of `ensemble`.
    is_threaded = runs_on_gpu() and is_white and given_noise is None
    is_whole = is_threaded or out is not None or progress
    size = min(batch_size or choose_batch_size(is_whole), len(data))
    stacked = stack_sets(problems)
    fitted_noise: dict[str, Any] = {}
    predicted, run = None, functools.partial(fit_set, summarise, problems[0], search)
    if given_noise is not None:
        predicted = make_set_fit(problems[0], all_runs[0], search, given_noise, summarise)
        run = predicted.fit_one
    if not is_white:
        outputs, fitted_noise = fit_sets_with_noise(problems, all_runs, models, search, size)
    elif is_whole:
        # Imported here, since ensembles are of a higher layer.
        from ...ensembles import ensemble

        size = limit_by_memory(size, stacked) if is_threaded else size
        outputs = ensemble(
            run, stacked, batch=size, out=out, resume=resume, progress=progress
        ).outputs
    elif predicted is not None:
        outputs = predicted.fit_sets(stacked, size)
    else:
        outputs = fit_sets(problems[0], stacked, search, size, summarise)
    indices, fitted = table.fitted_indices, table.subset(table.fitted_indices)
    return BatchFit(
        labels=fitted.labels,
        units=fitted.units,
        values=outputs["values"][:, indices],
        covariance=outputs["covariance"][:, indices[:, None], indices],
        at_bound=outputs["at_bound"][:, indices],
        chi_square=outputs["squares"] / np.maximum(samples - len(indices), 1),
        converged=outputs["converged"],
        iterations=outputs["iterations"],
        noise_models=fitted_noise,
        process_noise=None if predicted is None else predicted.process_noise(outputs),
    )


def _signature(runs: Runs) -> tuple[Any, ...]:
    """Return names of the sensors and shapes of samples and inputs."""
    leaves, tree = jax.tree.flatten((runs.ts, runs.values, runs.inputs))
    return tuple(s.name for s in runs.sensors), tree, *map(np.shape, leaves)


def _check_starts(
    parameters: Sequence[Parameter], given: Mapping[str, ArrayLike] | None, count: int
) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    names = [p.name for p in parameters]
    for name, values in ({} if given is None else given).items():
        if name not in names:
            raise ValueError(
                f"`identify_batch(starts=...)` names the parameter {name!r}; there are {names}."
            )
        arrays[name] = np.asarray(values)
        if arrays[name].shape[:1] != (count,):
            raise ValueError(
                f"`identify_batch(starts=...)` of {name!r} needs a leading axis of {count}, the "
                f"number of sets of data; got shape {arrays[name].shape}."
            )
    return arrays
