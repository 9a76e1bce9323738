"""Whether runs are integrated well enough for their data, and what is done if not."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..data.measurements import Runs
from .least_squares import Minimum, Search, minimise
from .problem import Problem

# Standard errors between an optimum and where a fit that converged may end.
MOST_OFFSET = 0.1
# By how much tolerances are lowered where a fit gets stuck on errors of the integration, and how
# often.
_TIGHTER, _ROUNDS = 1e-2, 2
# Times `max_steps` that a run at lowered tolerances may take.
_MORE_STEPS = 4


def least_scatter(problem: Problem, runs: Runs) -> float:
    """Square of the noise, in units of that of the weights, below which scatter is not noise.

    One where the noise is known. Where it is estimated, residuals as small as ten tolerances of the
    integration are its errors: exact data have an optimum too.
    """
    if runs.noise_is_known:
        return 1.0
    how, count, total = problem.simulation, 0, 0.0
    rtol, atol = max(float(how.rtol), float(np.finfo(runs.ts.dtype).eps)), float(how.atol)
    for values, weights in zip(runs.values, map(np.asarray, runs.weights), strict=True):
        used = weights > 0
        largest = np.abs(np.asarray(values)[used.any(axis=-1)]).max()
        total += np.sum((10 * weights[used] * (atol + rtol * largest)) ** 2)
        count += np.count_nonzero(used)
    return float(total / count)


def tightened(
    problem: Problem, runs: Runs, search: Search, minimum: Minimum
) -> tuple[Problem, Minimum, list[str]]:
    """Go on with tighter tolerances where no step gains anything but derivatives lead on.

    Adaptive steps meet what is not smooth, such as a table of torques, differently in every trial:
    the sum of squares jumps, and near the optimum by more than there is to gain. Steps of a fixed
    length do not.

    **Returns:** the problem with the tolerances that served, its minimum, and a note.
    """
    notes = []
    if problem.simulation.dt is not None:
        return problem, minimum, notes
    for _ in range(_ROUNDS):
        offset = minimum.offset(least_scatter(problem, runs), np)
        how = problem.simulation
        if not bool(minimum.converged) or offset <= max(MOST_OFFSET, float(search.reach)):
            break
        least = 10 * float(jnp.finfo(runs.ts.dtype).eps)
        rtol, atol = (jnp.maximum(_TIGHTER * x, least) for x in (how.rtol, how.atol))
        if rtol >= how.rtol and atol >= how.atol:
            break
        for max_steps in (how.max_steps, _MORE_STEPS * how.max_steps):
            lower = dataclasses.replace(how, rtol=rtol, atol=atol, max_steps=max_steps)
            tighter = eqx.tree_at(lambda p: p.simulation, problem.starting(minimum.leaves), lower)
            found = minimise(tighter, search.repeated())
            reached = bool(np.all(found.last.okay))
            if reached and int(found.failures) == 0:
                break
        if not reached:
            notes.append(
                f"At rtol = {float(how.rtol):.1g} no step leads closer to the optimum, "
                f"{offset:.2g} standard errors away; at rtol = {float(rtol):.1g} simulations fail, "
                f"with {max_steps} steps as well."
            )
            break
        after = found.offset(least_scatter(problem, runs), np)
        notes.append(
            f"Integrated at rtol = {float(rtol):.1g} in the end: at {float(how.rtol):.1g} the fit "
            f"ended {offset:.2g} standard errors from the optimum, "
            + (
                "because of errors of the integration."
                if bool(found.converged) and after <= MOST_OFFSET
                else f"and now {after:.2g}, so that errors of the integration are not the reason."
            )
        )
        minimum = dataclasses.replace(
            found,
            first=minimum.first,
            iterations=jnp.concatenate([minimum.iterations, found.iterations]),
            cost=jnp.concatenate([minimum.cost, found.cost]),
            failures=minimum.failures + found.failures,
        )
        problem = tighter
    return problem, minimum, notes
