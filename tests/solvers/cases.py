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


# With solutions in closed form.


def decay(t, y, args):
    return -t * y * y


def decay_solution(t):
    return (2.0 / (1.0 + t * t))[..., None]


def turning(t, y, args):
    rate = (1.0 + 0.5 * jnp.cos(t)) * jnp.sum(y * y)
    return rate * jnp.stack([-y[1], y[0]])


def turning_solution(t):
    angle = t + 0.5 * jnp.sin(t)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


SMOOTH = {"decay": (decay, decay_solution), "turning": (turning, turning_solution)}


# Stiff; ends by SciPy's Radau at rtol 1e-12.


def van_der_pol(t, y, mu):
    return jnp.stack([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])


def robertson(t, y, args):
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([-a + b, a - b - c, c])


def hires(t, y, args):
    return ivp.hires().field(t, y)


ROBERTSON_END = ivp.ROBERTSON_END

# Right-hand side, start, end time, absolute tolerance as a part of the relative one, and the end.
STIFF = {
    "van der Pol": (
        van_der_pol, np.array([2.0, 0.0]), 2000.0, 1e-2,
        np.array([1.7061677321704736, -0.0008928097010248073]),
    ),
    "Robertson": (robertson, np.array([1.0, 0.0, 0.0]), 1e4, 1e-4, ROBERTSON_END),
    "HIRES": (hires, ivp.hires().y0, ivp.hires().t1, 1e-2, ivp.hires().end),
}  # fmt: skip


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


def dae(problem):
    """The term of a problem of the benchmarks."""
    return MassMatrixTerm(
        lambda t, y, args: problem.field(t, y), np.diag(problem.mass), problem.index
    )


def pendulum(index):
    """A point mass on a massless link of 1 m; y = (x, z, x', z', lambda)."""
    return dae(ivp.pendulum(index))


PENDULUM_START = ivp.pendulum(3).y0
PENDULUM_END = ivp.PENDULUM_END


def car_axis():
    """The car axis of the IVP test set, index 3."""
    return dae(ivp.car_axis())


CAR_AXIS_START = ivp.car_axis().y0
CAR_AXIS_END = ivp.car_axis().end
