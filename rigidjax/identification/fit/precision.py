"""Detection of insufficient integration accuracy, and refinement of the tolerances."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data.measurements import Runs
from .least_squares import Minimum, Search, minimise
from .problem import FitProblem

# Largest distance to the optimum of a converged fit, in standard errors.
MAX_DISTANCE = 0.1
# Factor by which tolerances are lowered if integration errors stall a fit, and maximum number of
# refinements.
_TIGHTER, _ROUNDS = 1e-2, 2
# Factor on `max_steps` for runs with lowered tolerances.
_MORE_STEPS = 4


def noise_floor(problem: FitProblem, runs: Runs) -> float:
    """Return the variance below which residuals are not noise, in units of the weights.

    It is one for known noise. For estimated noise, residuals as small as ten tolerances are
    integration errors, so that exact data have an optimum too.
    """
    if runs.noise_is_known:
        return 1.0
    settings, count, total = problem.simulation, 0, 0.0
    rtol, atol = max(float(settings.rtol), float(np.finfo(runs.ts.dtype).eps)), float(settings.atol)
    for values, weights in zip(runs.values, map(np.asarray, runs.weights), strict=True):
        used = weights > 0
        largest = np.abs(np.asarray(values)[used.any(axis=-1)]).max()
        total += np.sum((10 * weights[used] * (atol + rtol * largest)) ** 2)
        count += np.count_nonzero(used)
    return float(total / count)


def refine_tolerances(
    problem: FitProblem, runs: Runs, search: Search, minimum: Minimum
) -> tuple[FitProblem, Minimum, list[str]]:
    """Continue with tighter tolerances if the fit stalls before the optimum.

    Adaptive steps treat non-smooth inputs, such as tables of torques, differently in every trial,
    so that the sum of squares jumps. Near the optimum the jumps exceed the reduction that is left.
    Steps of fixed length do not have this problem.

    **Returns:** the problem with the final tolerances, its minimum, and notes.
    """
    notes = []
    if problem.simulation.dt is not None:
        return problem, minimum, notes
    for _ in range(_ROUNDS):
        distance = minimum.distance_to_optimum(noise_floor(problem, runs), np)
        how = problem.simulation
        if not bool(minimum.converged) or distance <= max(
            MAX_DISTANCE, float(search.distance_tolerance)
        ):
            break
        smallest = 10 * float(jnp.finfo(runs.ts.dtype).eps)
        rtol, atol = (jnp.maximum(_TIGHTER * x, smallest) for x in (how.rtol, how.atol))
        if rtol >= how.rtol and atol >= how.atol:
            break
        for max_steps in (how.max_steps, _MORE_STEPS * how.max_steps):
            refined_settings = dataclasses.replace(how, rtol=rtol, atol=atol, max_steps=max_steps)
            refined = eqx.tree_at(
                lambda p: p.simulation, problem.with_starts(minimum.leaves), refined_settings
            )
            new_minimum = minimise(refined, search.with_full_horizons())
            succeeded = bool(np.all(new_minimum.last.okay))
            if succeeded and int(new_minimum.failures) == 0:
                break
        if not succeeded:
            notes.append(
                f"At rtol = {float(how.rtol):.1g} no step leads closer to the optimum, "
                f"{distance:.2g} standard errors away; at rtol = {float(rtol):.1g} simulations "
                f"fail, with {max_steps} steps as well."
            )
            break
        end_distance = new_minimum.distance_to_optimum(noise_floor(problem, runs), np)
        notes.append(
            f"Integrated at rtol = {float(rtol):.1g} in the end: at {float(how.rtol):.1g} the fit "
            f"ended {distance:.2g} standard errors from the optimum, "
            + (
                "because of errors of the integration."
                if bool(new_minimum.converged) and end_distance <= MAX_DISTANCE
                else f"and now {end_distance:.2g}, so that integration errors are not the reason."
            )
        )
        minimum = dataclasses.replace(
            new_minimum,
            first=minimum.first,
            iterations=jnp.concatenate([minimum.iterations, new_minimum.iterations]),
            cost=jnp.concatenate([minimum.cost, new_minimum.cost]),
            failures=minimum.failures + new_minimum.failures,
        )
        problem = refined
    return problem, minimum, notes
