"""Problems with known solutions, and helpers to solve them."""

import _ivp as ivp
import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix as optx

from rigidjax.solvers import ImplicitTerm, MassMatrixTerm, SimplifiedNewton
from rigidjax.solvers.base.hooked import HookedSolver
from rigidjax.solvers.wrappers.counting import CountedSteps, CountingController


def solve(solver, term, y0, t1, rtol, atol, t0=0.0, **kwargs):
    """End of a run, its steps and evaluations, with the solver's own controller."""
    return _solve(solver, term, y0, t0, t1, jnp.asarray(rtol), jnp.asarray(atol), kwargs)


@eqx.filter_jit
def _solve(solver, term, y0, t0, t1, rtol, atol, kwargs):
    finder = eqx.tree_at(
        lambda f: (f.rtol, f.atol, f.norm), solver.root_finder, (rtol, atol, optx.rms_norm)
    )
    solver = eqx.tree_at(lambda s: s.root_finder, solver, finder)
    controller = CountingController(solver.controller(rtol, atol, optx.rms_norm))
    settings = dict(
        max_steps=20_000, throw=False, adjoint=diffrax.ForwardMode(),
        saveat=diffrax.SaveAt(t1=True, controller_state=True),
    )  # fmt: skip
    solution = diffrax.diffeqsolve(
        term, HookedSolver(solver, (CountedSteps(),)), t0, t1, None, y0,
        stepsize_controller=controller, **{**settings, **kwargs},
    )  # fmt: skip
    return solution, solution.controller_state[1]


def with_tolerance(solver, tolerance):
    """Return the solver with its own tolerances, for fixed steps."""
    finder = SimplifiedNewton(rtol=tolerance, atol=tolerance, max_steps=20)
    return eqx.tree_at(lambda s: s.root_finder, solver, finder)


# Stiff.


def van_der_pol(t, y, mu):
    return jnp.stack([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])


def robertson(t, y, args):
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([-a + b, a - b - c, c])


ROBERTSON_END = ivp.ROBERTSON_END


# Differential-algebraic.


def robertson_dae():
    def f(t, y, args):
        rates = robertson(t, y, args)
        return jnp.stack([rates[0], rates[1], jnp.sum(y) - 1.0])

    return MassMatrixTerm(f, np.diag([1.0, 1.0, 0.0]))


def robertson_implicit():
    def F(t, y, y_dot, args):
        rates = robertson(t, y, args)
        return jnp.stack([y_dot[0] - rates[0], y_dot[1] - rates[1], jnp.sum(y) - 1.0])

    return ImplicitTerm(F)


def pendulum(index):
    """A point mass on a massless link of 1 m; y = (x, z, x', z', lambda)."""
    problem = ivp.pendulum(index)
    return MassMatrixTerm(
        lambda t, y, args: problem.field(t, y), np.diag(problem.mass), problem.index
    )


PENDULUM_START = ivp.pendulum(3).y0
