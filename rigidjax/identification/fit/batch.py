"""The same fit to many sets of data at once."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from ...formulations import AbstractFormulation
from ...native import map_with_lane_compaction
from ...state import State
from ..checked_arguments import check_model, checked_parameters
from ..data.measurements import Measurements, stack_runs
from ..data.revolutions import counted_from_start
from ..parameters import Parameter
from ..simulation import Settings, Simulation, simulation_of
from .evaluation import Evaluation
from .first_order import FirstOrder
from .late_starts import with_fitted_start
from .least_squares import Minimum, Search, begin, goes_on, iterated, minimise_from, minimum_of
from .options import prepare, search_of, start_states, trials
from .precision import MOST_OFFSET
from .problem import Problem, make_problem
from .trust_region import inverse_gram

_OF_SEARCH = ("horizons", "method", "loss", "max_iterations", "tolerance")


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class BatchFit:
    """Estimates of N fits of one problem.

    **Attributes:**

    - `labels`, `units`: of the k fitted parameters.
    - `values` (N, k), `std` (N, k), `covariance` (N, k, k): in physical units, as in `Fit`, for
      noise that is known. Not finite for a fit whose data do not determine all parameters.
    - `at_bound` (N, k), boolean: which parameters a bound holds, alone or in a combination such as
      a principal Euler value; see `Fit.bounds`.
    - `chi_square` (N,): sum of squares of the weighted residuals by the degrees of freedom.
    - `converged` (N,), boolean: fits without are not at an optimum; `iterations` (N,).
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    at_bound: np.ndarray
    chi_square: np.ndarray
    converged: np.ndarray
    iterations: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """Standard deviations (N, k)."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))

    def __repr__(self) -> str:
        count, done = len(self.converged), int(np.count_nonzero(self.converged))
        return f"BatchFit({count} fits of {', '.join(self.labels)}; {done} converged)"


def identify_batch(
    model: AbstractFormulation,
    data: Sequence[Measurements | Sequence[Measurements]],
    parameters: Parameter | Sequence[Parameter],
    *,
    state0: State | Sequence[State] | None = None,
    starts: Mapping[str, ArrayLike] | None = None,
    batch_size: int = 128,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    progress: bool = False,
    simulation: Simulation | None = None,
    **options: Any,
) -> BatchFit:
    """Fit the same parameters to many sets of data at once, each on its own, under `vmap`.

    **Arguments:**

    - `model`, `parameters`, `state0`: as in `rj.identify`; priors are the same for all sets.
    - `data`: N sets, each one run or several, of the same times, sensors and shapes; noise must be
      given.
    - `starts`: start values by the name of a parameter, with the N sets in front.
    - `batch_size`: how many are fitted at once; others take the places of those that have ended
      (with `out` or `progress` so many are a batch, whose members wait for the slowest).
    - `out`, `resume`: a Zarr store to write to, `batch_size` fits at a time, and to go on with
      after a kill, as in `rj.ensemble`; `progress`: say on the error stream how far it is.
    - `simulation`, or `solver` and its other settings one by one; `horizons`, `method`, `loss`,
      `max_iterations`, `tolerance`: as in `rj.identify`.

    **Returns:** a `BatchFit`. No exception is raised for fits that fail: see `converged`.
    **Raises:** `TypeError` and `ValueError` for arguments that do not fit; as `rj.ensemble` for a
    store that cannot be taken.
    """
    how = {name: options.pop(name) for name in _OF_SEARCH if name in options}
    simulation = simulation_of("identify_batch", simulation, cast("Settings", options))
    if isinstance(how.get("method"), FirstOrder):
        raise ValueError('`identify_batch` has no `FirstOrder`; use "levenberg-marquardt".')
    check_model("identify_batch", model)
    parameters = checked_parameters("identify_batch", parameters)
    if not data:
        raise ValueError("`identify_batch(data=...)` needs at least one set of data; got none.")
    if batch_size < 1:
        raise ValueError(f"`identify_batch(batch_size=...)` must be positive; got {batch_size}.")
    starts = _checked_starts(parameters, starts, len(data))
    all_runs = [stack_runs(measurements) for measurements in data]
    if not all(runs.noise_is_known for runs in all_runs):
        raise ValueError(
            "`identify_batch` takes data of known noise; give `Measurements(noise=...)`."
        )
    if len({_kind_of(runs) for runs in all_runs}) > 1:
        raise ValueError(
            "`identify_batch(data=...)` takes sets of the same sensors and numbers of samples."
        )
    tracked, all_runs, _ = prepare(model, all_runs)
    states = start_states(tracked, all_runs[0], state0)
    if state0 is None:
        parameters, _ = with_fitted_start(tracked, all_runs, parameters)
    trial = trials(simulation, all_runs[0].ts.dtype)
    problems = []
    for n, runs in enumerate(all_runs):
        if n and state0 is None:
            states = start_states(tracked, runs, None)
        runs, _ = counted_from_start(tracked, runs, states)
        chosen = [
            dataclasses.replace(p, start=starts[p.name][n]) if p.name in starts else p
            for p in parameters
        ]
        problem, *_ = make_problem(tracked, runs, states, chosen, trial)
        problems.append(dataclasses.replace(problem, fitted_only=True))
    search = search_of(all_runs[0].ts.dtype, **how)
    samples = np.array([runs.num_samples for runs in all_runs])
    moving = [(p.shared, p.runs) for p in problems]
    stacked = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *moving)
    size = min(batch_size, len(data))
    if out is None and not progress:
        found = jax.tree.map(np.asarray, _fits(problems[0], stacked, search, size))
    else:
        # SciPy's statistics, which it imports, take as long as all of this package.
        from ...ensembles import ensemble

        one = functools.partial(_one, problems[0], search)
        found = ensemble(
            one, stacked, batch=size, out=out, resume=resume, progress=progress
        ).outputs
    table = problems[0].components(all_runs[0].names)
    index, part = table.chosen, table.part(table.chosen)
    return BatchFit(
        labels=part.labels,
        units=part.units,
        values=found["values"][:, index],
        covariance=found["covariance"][:, index[:, None], index],
        at_bound=found["at_bound"][:, index],
        chi_square=found["squares"] / np.maximum(samples - len(index), 1),
        converged=found["converged"],
        iterations=found["iterations"],
    )


@eqx.filter_jit
def _fits(problem: Problem, stacked: Any, search: Search, size: int) -> dict[str, Any]:
    """Those of all sets of data, `size` of them at once."""

    def start(moving):
        own_problem = _with_data(problem, moving)
        shared, own = own_problem.start()
        return begin(own_problem, shared, own, search)

    return map_with_lane_compaction(
        stacked,
        start,
        functools.partial(goes_on, search),
        lambda moving, reached: iterated(_with_data(problem, moving), search, reached),
        lambda moving, reached: _result(minimum_of(_with_data(problem, moving), reached)),
        size,
    )


def _one(problem: Problem, search: Search, moving: Any) -> dict[str, Any]:
    """The fit of one set of data."""
    own_problem = _with_data(problem, moving)
    shared, own = own_problem.start()
    return _result(minimise_from(own_problem, shared, own, search))


def _with_data(problem, moving):
    return eqx.tree_at(lambda p: (p.shared, p.runs), problem, moving)


def _result(minimum: Minimum) -> dict[str, Any]:
    """Estimates of one set of data, and how its fit ended."""
    last = minimum.last
    chain = jax.scipy.linalg.block_diag(last.shared_chain, *last.own_chain)
    return {
        "values": jnp.concatenate([last.shared, last.own.reshape(-1)]),
        "covariance": _covariance(last, chain),
        "at_bound": jnp.any((chain != 0) & (minimum.sides != 0)[None], axis=1),
        "squares": jnp.sum(last.residuals**2),
        "converged": minimum.converged & (minimum.offset(1.0) <= MOST_OFFSET),
        "iterations": jnp.sum(minimum.iterations),
    }


def _kind_of(runs):
    """Names of sensors and numbers of samples, of inputs too."""
    leaves, tree = jax.tree.flatten((runs.ts, runs.values, runs.inputs))
    return tuple(s.name for s in runs.sensors), tree, *map(np.shape, leaves)


def _covariance(last: Evaluation, chain: Any):
    """Covariance of all components, by that of the coordinates; unit variance of a residual.

    **Arguments:** `chain`, derivatives of the components by the coordinates.
    """
    prior = last.prior.by_coordinates(last.shared_chain, last.own_chain)
    rest = inverse_gram(jnp.concatenate([last.by_coordinates(), prior]))
    return chain @ rest @ chain.T


def _checked_starts(parameters: Any, starts: Any, count: int) -> dict[str, Any]:
    starts = {} if starts is None else dict(starts)
    names = [p.name for p in parameters]
    for name, values in starts.items():
        if name not in names:
            raise ValueError(
                f"`identify_batch(starts=...)` names the parameter {name!r}; there are {names}."
            )
        starts[name] = np.asarray(values)
        if starts[name].shape[:1] != (count,):
            raise ValueError(
                f"`identify_batch(starts=...)` of {name!r} must have the {count} sets of data in "
                f"front; got shape {starts[name].shape}."
            )
    return starts
