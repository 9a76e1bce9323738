"""Derivatives of the solution of nonlinear equations, by the implicit function theorem."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array

from ...annotations import Flag, Matrix, Vector
from .linear import Inverse, factorise, solve
from .rate_elimination import Pairs, solve_stages


class AbstractImplicitStep(eqx.Module):
    """The nonlinear equations of a step of an implicit method, with the solution `Z`.

    Every quantity that the solution depends on is a leaf of the module.
    """

    @property
    def rates(self) -> Pairs:
        """Pairs (i, j) with the equation $\\dot y_i = y_j$ in every row of `Z` (..., n)."""
        return ()

    @abc.abstractmethod
    def residual(self, Z: Array) -> Array:
        """Return the residual, which is zero at the solution, same shape as `Z`."""

    def linearize(self, Z: Array) -> tuple[Vector, Matrix]:
        """Return the flattened residual and its Jacobian."""

        def flat(z):
            r = self.residual(z.reshape(Z.shape)).ravel()
            return r, r

        J, r = jax.jacfwd(flat, has_aux=True)(Z.ravel())
        return r, J

    def jacobian(self, Z: Array) -> Matrix:
        """Return the Jacobian of the flattened residual with respect to the flattened `Z`."""
        return self.linearize(Z)[1]

    def solve_structured(self, Z: Array, right: Array, okay: bool | Flag) -> Array | None:
        """Solve $J x =$ `right` by the structure of the Jacobian $J$ at `Z`.

        With `okay` false the Jacobian counts as the identity. `None` if it has no such structure.
        """
        return None


_INVERSE = Inverse()


@eqx.filter_custom_jvp
def attach_derivatives(
    step: AbstractImplicitStep, Z: Array, okay: bool | Flag,
    linear_solver: lx.AbstractLinearSolver = _INVERSE,
) -> Array:  # fmt: skip
    """Return the solution `Z` with its derivatives by the implicit function theorem.

    The iteration that computed `Z` is not differentiated: `Z` itself counts as a constant. The
    rule can be applied to its own result, which gives derivatives of any order.

    **Arguments:**

    - `step`: the equations.
    - `Z`: their solution.
    - `okay`: whether the iteration converged; if not, the derivatives are zero, and no linear
      system with a possibly singular Jacobian is solved.
    - `linear_solver`: solver of the linear system for the derivatives.
    """
    return Z


@attach_derivatives.def_jvp
def _attach_derivatives_jvp(primals: tuple, tangents: tuple):
    step, Z, okay, *solvers = primals
    linear_solver = solvers[0] if solvers else _INVERSE
    d_step = tangents[0]
    Z = attach_derivatives(step, Z, okay, linear_solver)
    _, change = eqx.filter_jvp(lambda step: step.residual(Z), (step,), (d_step,))
    # `None` if the equations depend on no differentiated value, or only through a comparison.
    change = jnp.zeros_like(Z) if change is None else change
    change = jnp.where(okay, change, 0.0)
    structured = step.solve_structured(Z, change.ravel(), okay)
    if structured is not None:
        return Z, -structured.reshape(Z.shape)
    J = step.jacobian(Z)
    J = jnp.where(okay, J, jnp.eye(Z.size, dtype=Z.dtype))
    if step.rates and isinstance(linear_solver, Inverse):
        s, n = Z.size // Z.shape[-1], Z.shape[-1]
        solution = solve_stages(J.reshape(s, n, s, n), change.reshape(s, n), step.rates)
        return Z, -solution.reshape(Z.shape)
    system = factorise(linear_solver, J)
    return Z, -solve(linear_solver, system, change.ravel()).reshape(Z.shape)
