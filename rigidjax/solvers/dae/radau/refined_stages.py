"""Dense output of a Radau method that is as accurate as the end of the step."""

from typing import NamedTuple

import jax.numpy as jnp
import lineax as lx

from ....annotations import Count, Flag, Norm, Scalar
from ...base.implicit import attach_derivatives
from ..newton import iterate
from .stages import (
    StageEquations,
    StageFactors,
    StageValues,
    combine_stages,
    solve_newton_equations,
)
from .tableau import lagrange_basis, radau_tableau


class RefinedStages(NamedTuple):
    """Stages `Z` of the method of 2 s - 1 stages, (2 s - 1, n), and whether they `converged`."""

    Z: StageValues
    converged: Flag


def zero_refined_stages(stages: int, n: int, dtype: jnp.dtype) -> RefinedStages:
    """Return zeros in the structure of refined stages of a step with n unknowns."""
    return RefinedStages(jnp.zeros((2 * stages - 1, n), dtype), jnp.array(False))


def refine_stages(
    step: StageEquations, Z: StageValues, systems: StageFactors, eta: Scalar, tolerance: Scalar,
    stage_norm: Norm, limit: int, linear_solver: lx.AbstractLinearSolver,
) -> tuple[RefinedStages, Count]:  # fmt: skip
    """Compute the collocation polynomial of degree 2 s - 1 over a solved step of s stages.

    Its local error is of order 2 s, like that of the end of the step; that of the polynomial of
    degree s is of order s + 1. The step is solved again by the method of 2 s - 1 stages, starting
    from the polynomial of degree s, with the same Jacobian.

    **Arguments:** `step`, equations of the step; `Z`, its stages; `systems`, factors for 2 s - 1
    stages; `linear_solver`; the others as of `newton.iterate`.
    **Returns:** the stages and the number of evaluations.
    """
    refined_step = _refined_equations(step)
    outcome = iterate(
        refined_step.residual,
        lambda r: solve_newton_equations(linear_solver, systems, r, refined_step.tableau),
        _interpolate_at_nodes(step, Z), eta, tolerance, stage_norm, limit,
    )  # fmt: skip
    okay = outcome.converged
    return RefinedStages(jnp.where(okay, outcome.Z, 0.0), okay), refined_step.stages * outcome.count


def dense_increments(
    step: StageEquations,
    Z: StageValues,
    refined: RefinedStages,
    linear_solver: lx.AbstractLinearSolver,
) -> StageValues:
    """Return the increments of dense output from the refined stages.

    The deviation of the refined polynomial from the end of the step, which is of the size of the
    error of the step, is distributed by a cubic polynomial. If the refined stages did not converge,
    the increments are those of the collocation polynomial with the stages `Z`.
    """
    refined_step = _refined_equations(step)
    values = attach_derivatives(refined_step, refined.Z, refined.converged, linear_solver)
    c = jnp.asarray(refined_step.tableau.c, Z.dtype)
    values = values + (c * c * (3.0 - 2.0 * c))[:, None] * (Z[-1:] - values[-1:])
    return jnp.where(refined.converged, values, _interpolate_at_nodes(step, Z))


def _refined_equations(step: StageEquations):
    return StageEquations(step.equations, step.t0, step.t1, step.y0, 2 * step.stages - 1)


def _interpolate_at_nodes(step: StageEquations, Z: StageValues):
    """Evaluate the collocation polynomial of the step at the nodes of the refined method."""
    nodes = radau_tableau(2 * step.stages - 1).c
    return combine_stages(jnp.stack(lagrange_basis(step.tableau.c, jnp.asarray(nodes)), axis=1), Z)
