"""Derivatives of the solution of nonlinear equations."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array

from ..annotations import Flag, Matrix, Vector
from .linear import Inverse, factorise, solve
from .rate_elimination import Pairs, solve_stages


class AbstractImplicitStep(eqx.Module):
    """Equations whose solution `Z` is what an implicit method needs in a step.

    Everything that the solution depends on is a leaf.
    """

    @property
    def rates(self) -> Pairs:
        """Pairs (i, j) of the equations $\\dot y_i = y_j$ of an unknown `Z` (..., n)."""
        return ()

    @abc.abstractmethod
    def residual(self, Z: Array) -> Array:
        """What is zero at the solution, of the shape of `Z`."""

    def linearize(self, Z: Array) -> tuple[Vector, Matrix]:
        """The residual, flattened, and its derivative."""

        def flat(z):
            r = self.residual(z.reshape(Z.shape)).ravel()
            return r, r

        J, r = jax.jacfwd(flat, has_aux=True)(Z.ravel())
        return r, J

    def jacobian(self, Z: Array) -> Matrix:
        """Derivative of the residual by `Z`, both flattened."""
        return self.linearize(Z)[1]


_INVERSE = Inverse()


@eqx.filter_custom_jvp
def attach_derivatives(
    step: AbstractImplicitStep, Z: Array, okay: bool | Flag,
    linear_solver: lx.AbstractLinearSolver = _INVERSE,
) -> Array:  # fmt: skip
    """The solution `Z` of the equations of a step, with the derivatives of the solution.

    Those of the iteration that found it are of no interest: `Z` itself counts as a constant. The
    rule applies to its own result, for derivatives of any order.

    **Arguments:** `step`; `Z`; `okay`, whether `Z` is a solution (if not, it has no derivatives,
    and nothing singular is solved for them); `linear_solver`, of the linear equations for them.
    """
    return Z


@attach_derivatives.def_jvp
def _attach_derivatives_jvp(primals, tangents):
    step, Z, okay, *chosen = primals
    linear_solver = chosen[0] if chosen else _INVERSE
    d_step = tangents[0]
    Z = attach_derivatives(step, Z, okay, linear_solver)
    _, change = eqx.filter_jvp(lambda step: step.residual(Z), (step,), (d_step,))
    # The equations may not depend on any differentiated value, for example if it is compared only.
    change = jnp.zeros_like(Z) if change is None else change
    J = step.jacobian(Z)
    J = jnp.where(okay, J, jnp.eye(Z.size, dtype=Z.dtype))
    change = jnp.where(okay, change, 0.0)
    if step.rates and isinstance(linear_solver, Inverse):
        s, n = Z.size // Z.shape[-1], Z.shape[-1]
        found = solve_stages(J.reshape(s, n, s, n), change.reshape(s, n), step.rates)
        return Z, -found.reshape(Z.shape)
    system = factorise(linear_solver, J)
    return Z, -solve(linear_solver, system, change.ravel()).reshape(Z.shape)
