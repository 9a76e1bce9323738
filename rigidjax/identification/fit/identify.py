"""The entry point of identification."""

import dataclasses
from collections.abc import Sequence
from typing import Unpack

from ...formulations import AbstractFormulation
from ...state import State
from ..checked_arguments import check_model, checked_parameters
from ..data.measurements import Measurements, stack_runs
from ..data.revolutions import counted_from_start
from ..parameters import Parameter
from ..prior_rows import prior_notes
from ..shooting.shooting import shoot, started_from
from ..simulation import Settings, Simulation, simulation_of
from ..statistics.plausibility import plausibility_notes
from .first_order import FirstOrder, descend
from .from_minimum import make_fit
from .late_starts import with_fitted_start
from .least_squares import minimise
from .losses import AbstractLoss, Squares
from .multi_start import best_start
from .noise import alternate_fit_and_noise, first_guess, noise_note, noise_of_sensors
from .options import (
    Method,
    check_start,
    check_starts,
    num_fitted,
    prepare,
    search_of,
    start_states,
    trials,
)
from .precision import tightened
from .problem import make_problem
from .result import Fit, IdentificationError


def identify(
    model: AbstractFormulation,
    measurements: Measurements | Sequence[Measurements],
    parameters: Parameter | Sequence[Parameter],
    *,
    state0: State | Sequence[State] | None = None,
    simulation: Simulation | None = None,
    horizons: Sequence[float] = (0.1, 0.3, 1.0),
    method: Method = "levenberg-marquardt",
    loss: AbstractLoss | None = None,
    starts: int = 1,
    start_spread: float = 0.5,
    seed: int = 0,
    segments: int = 1,
    max_iterations: int = 200,
    tolerance: float | None = None,
    throw: bool = True,
    **settings: Unpack[Settings],
) -> Fit:
    r"""Fit parameters of a model to measurements by weighted least squares.

    Levenberg-Marquardt with exact Jacobians, forward mode through the adaptive solve, all runs at
    once by `vmap`. A trial whose simulation fails is rejected and counted. Noise that is not given
    is estimated from the residuals, sensor by sensor, in turn with the fit.

    **Arguments:**

    - `model`: a formulation such as `rj.NullSpace(system)`.
    - `measurements`: one run or several, of any lengths, with the same sensors.
    - `parameters`: what is fitted, each a `Parameter`, with a prior or without; everything else is
      held fixed.
    - `state0`: state at the first sample, one for all runs or one for each. If left out: the
      reference state, with the first sample of every gyroscope and attitude sensor put into it.
      Where such a sample comes so late that its reading may have changed by more than its noise,
      the start of every run is fitted too; a note in the `Fit` names the sensor.
    - `simulation`: an `rj.Simulation`, or one by one as `settings`: `solver`, `rtol`, `atol`, `dt`,
      `projection`, `adjoint`, `max_steps`, `backend`. Where a fit gets stuck on errors of the
      integration, it goes on with tolerances a hundredth of these, with up to four times the
      steps, and says so in `Fit.notes`.
    - `horizons`: parts of each run that are fitted first, one after the other, ending with 1.
      Short ones lead past the local minima of long or chaotic runs; `(1.0,)` fits all at once.
    - `method`: `"gauss-newton"` takes the full step of the linearisation, shortened by a line
      search; it needs a good start, and data that determine all parameters. `FirstOrder(...)`
      goes along gradients first, for large or stochastic problems.
    - `loss`: of a residual in units of the noise; `Huber()` or `Cauchy()` against outliers. `None`
      for least squares.
    - `starts`: more than one minimises from as many starts at once, under `vmap`, and goes on from
      the lowest minimum: the given one, and others drawn around it with `seed`, within
      `start_spread` of the natural scale of each coordinate (logarithms, angles) or of its value.
    - `segments`: multiple shooting, for runs that are too long or too chaotic for that. Each run is
      cut into so many segments with starts of their own, the gaps between them are closed in
      stages, and the fit goes on from there with the undivided runs, whatever `horizons` says.
      Include `start_state` or other parameters of the start, unless it is known exactly.
    - `max_iterations`: of the last stage; the others take at most a quarter of it.
    - `tolerance`: of the minimisation: it ends a hundred times that, in standard errors, from the
      optimum, or where no step promises that part of the sum of squares. A fit that then is more
      than 0.1 standard errors away did not converge. `None` for 1e-8, or 1e-4 in single precision.
    - `throw`: raise `IdentificationError` if there is no optimum; if `False`, see `Fit.result`.

    **Returns:** a `Fit`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit, for fewer samples than
    parameters, and for parameters that act on nothing; `IdentificationError`.
    """
    how = simulation_of("identify", simulation, settings)
    check_model("identify", model)
    parameters = checked_parameters("identify", parameters)
    check_starts(starts, start_spread, segments)
    runs = stack_runs(measurements)
    search = search_of(runs.ts.dtype, horizons, method, loss, max_iterations, tolerance)
    model, (runs,), of_data = prepare(model, [runs])
    states = start_states(model, runs, state0)
    runs, told = counted_from_start(model, runs, states)
    of_data += told
    if state0 is None:
        parameters, told = with_fitted_start(model, [runs], parameters)
        of_data += told
    told = prior_notes(parameters)
    # A prior, as a robust loss, must be weighed against the noise; so must several sensors.
    single = len(runs.sensors) == 1 and isinstance(search.loss, Squares) and not told
    known = runs.noise_is_known or single
    if not known:
        runs = first_guess(runs, priors=bool(told))
    how = trials(how, runs.ts.dtype)
    problem, table, notes = make_problem(model, runs, states, parameters, how)
    notes += [*of_data, *told]
    count = num_fitted(table, runs)
    given, shot = problem, None
    if starts > 1:
        problem, note = best_start(problem, search, starts, start_spread, seed)
        notes.append(note)
    if segments > 1:
        shot = shoot(problem, runs, segments)
        problem, search = shot.problem, search.undivided()
    if isinstance(method, FirstOrder):
        problem, note = descend(problem, search.loss, method)
        notes.append(note)
    noise = {}
    if known:
        minimum = minimise(problem, search)
    else:
        problem, runs, minimum, why = alternate_fit_and_noise(problem, runs, search, count)
        noise = noise_of_sensors(runs)
        notes.append(noise_note(runs, noise, why, model))
    check_start(problem, runs, table, minimum.first)
    problem, minimum, told = tightened(problem, runs, search, minimum)
    notes += told
    if shot is not None:
        notes += shot.notes(bool(minimum.converged))
    if problem is not given:
        minimum = started_from(given, minimum)
    fit = make_fit(problem, runs, table, minimum, notes, search, noise)
    fit = dataclasses.replace(fit, notes=(*fit.notes, *plausibility_notes(fit.model)))
    if throw and not fit.converged:
        raise IdentificationError(
            f"The fit did not converge: {fit.result}. {fit.warnings[0]} `throw=False` returns what "
            "was reached."
        )
    return fit
