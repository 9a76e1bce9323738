"""Values within a step that are as accurate as its end."""

from typing import NamedTuple

import jax.numpy as jnp
import lineax as lx

from ....annotations import Count, Flag, Norm, Scalar
from ...implicit import solved
from ..newton import iterate
from .stages import Factors, Staged, Stages, combined, increments
from .tableau import lagrange_basis, radau_tableau


class Between(NamedTuple):
    """Stages of the method of 2 s - 1 stages, (2 s - 1, n), and whether they were found."""

    Z: Staged
    found: Flag


def nothing_between(stages: int, n: int, dtype: jnp.dtype) -> Between:
    """Of the shape of what `refined` finds after a step of so many stages with n unknowns."""
    return Between(jnp.zeros((2 * stages - 1, n), dtype), jnp.array(False))


def refined(
    step: Stages, Z: Staged, systems: Factors, eta: Scalar, tolerance: Scalar,
    stage_norm: Norm, limit: int, linear_solver: lx.AbstractLinearSolver,
) -> tuple[Between, Count]:  # fmt: skip
    """The collocation polynomial of degree 2 s - 1 over a step that has been solved.

    Its error is of order 2 s (local), as that of the end of the step, where the polynomial of the
    step itself has s + 1. A step of its own, from that polynomial and with the same Jacobian.
    **Arguments:** `Z`, stages of the step; `systems`, factors for 2 s - 1 stages; the others as of
    `newton.iterate`.
    **Returns:** the stages, and the evaluations that they took.
    """
    fine = _fine(step)
    outcome = iterate(
        fine.residual,
        lambda r: increments(linear_solver, systems, r, fine.tableau),
        _at_nodes(step, Z), eta, tolerance, stage_norm, limit,
    )  # fmt: skip
    okay = outcome.converged
    return Between(jnp.where(okay, outcome.Z, 0.0), okay), fine.stages * outcome.count


def joined(
    step: Stages, Z: Staged, between: Between, linear_solver: lx.AbstractLinearSolver
) -> Staged:
    """Increments of dense output, from the stages `Z` of a step to its end.

    What the finer polynomial misses the end by, an error of the step, is blended in. Where it was
    not found the polynomial of the step has to do.
    """
    fine = _fine(step)
    values = solved(fine, between.Z, between.found, linear_solver)
    c = jnp.asarray(fine.tableau.c, Z.dtype)
    values = values + (c * c * (3.0 - 2.0 * c))[:, None] * (Z[-1:] - values[-1:])
    return jnp.where(between.found, values, _at_nodes(step, Z))


def _fine(step):
    return Stages(step.equations, step.t0, step.t1, step.y0, 2 * step.stages - 1)


def _at_nodes(step, Z):
    """The polynomial of the step at the nodes of the finer one."""
    nodes = radau_tableau(2 * step.stages - 1).c
    return combined(jnp.stack(lagrange_basis(step.tableau.c, jnp.asarray(nodes)), axis=1), Z)
