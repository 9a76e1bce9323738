"""Values within a step that are as accurate as its end."""

from typing import NamedTuple

import jax.numpy as jnp
import lineax as lx

from ....annotations import Count, Flag, Norm, Scalar
from ...implicit import attach_derivatives
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
    """Stages of the method of 2 s - 1 stages, (2 s - 1, n), and whether they were found."""

    Z: StageValues
    converged: Flag


def zero_refined_stages(stages: int, n: int, dtype: jnp.dtype) -> RefinedStages:
    """Of the shape of what `refined` finds after a step of so many stages with n unknowns."""
    return RefinedStages(jnp.zeros((2 * stages - 1, n), dtype), jnp.array(False))


def refine_stages(
    step: StageEquations, Z: StageValues, systems: StageFactors, eta: Scalar, tolerance: Scalar,
    stage_norm: Norm, limit: int, linear_solver: lx.AbstractLinearSolver,
) -> tuple[RefinedStages, Count]:  # fmt: skip
    """The collocation polynomial of degree 2 s - 1 over a step that has been solved.

    Its error is of order 2 s (local), as that of the end of the step, where the polynomial of the
    step itself has s + 1. A step of its own, from that polynomial and with the same Jacobian.
    **Arguments:** `Z`, stages of the step; `systems`, factors for 2 s - 1 stages; the others as of
    `newton.iterate`.
    **Returns:** the stages, and the evaluations that they took.
    """
    fine = _refined_equations(step)
    outcome = iterate(
        fine.residual,
        lambda r: solve_newton_equations(linear_solver, systems, r, fine.tableau),
        _interpolate_at_nodes(step, Z), eta, tolerance, stage_norm, limit,
    )  # fmt: skip
    okay = outcome.converged
    return RefinedStages(jnp.where(okay, outcome.Z, 0.0), okay), fine.stages * outcome.count


def dense_increments(
    step: StageEquations,
    Z: StageValues,
    between: RefinedStages,
    linear_solver: lx.AbstractLinearSolver,
) -> StageValues:
    """Increments of dense output, from the stages `Z` of a step to its end.

    What the finer polynomial misses the end by, an error of the step, is blended in. Where it was
    not found the polynomial of the step has to do.
    """
    fine = _refined_equations(step)
    values = attach_derivatives(fine, between.Z, between.converged, linear_solver)
    c = jnp.asarray(fine.tableau.c, Z.dtype)
    values = values + (c * c * (3.0 - 2.0 * c))[:, None] * (Z[-1:] - values[-1:])
    return jnp.where(between.converged, values, _interpolate_at_nodes(step, Z))


def _refined_equations(step: StageEquations):
    return StageEquations(step.equations, step.t0, step.t1, step.y0, 2 * step.stages - 1)


def _interpolate_at_nodes(step: StageEquations, Z: StageValues):
    """The polynomial of the step at the nodes of the finer one."""
    nodes = radau_tableau(2 * step.stages - 1).c
    return combine_stages(jnp.stack(lagrange_basis(step.tableau.c, jnp.asarray(nodes)), axis=1), Z)
