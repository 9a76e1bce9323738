"""Order of convergence of every method, at fixed steps, with its order pinned."""

import itertools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers import cases

from rigidjax.solvers import BDF, Odex, Radau1, Radau5, Radau9, Radau13, Seulex
from rigidjax.solvers.dae.bdf.multistep import ROWS, DifferenceHistory


def turning(t, y, args):
    rate = (1.0 + 0.5 * jnp.cos(t)) * jnp.sum(y * y)
    return rate * jnp.stack([-y[1], y[0]])


def turning_solution(t):
    angle = t + 0.5 * jnp.sin(t)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


@eqx.filter_jit
def march(solver, field, solution, h, count, pin):
    """End of `count` steps and middle of the last one, and what is true there."""
    term, zero = diffrax.ODETerm(field), jnp.zeros(())
    y = solution(zero)
    state = solver.init(term, zero, h, y, None)
    if isinstance(solver, BDF):
        state = state._replace(history=exact_past(solution, h))

    def step(i, val):
        y, state, _ = val
        y, _, dense, state, _ = solver.step(term, i * h, i * h + h, y, None, pin(state), False)
        path = solver.interpolation_cls(t0=i * h, t1=i * h + h, **dense)
        return y, state, path.evaluate((i + 0.5) * h)

    y, _, middle = jax.lax.fori_loop(0, count, step, (y, state, y))
    return y, solution(count * h), middle, solution((count - 0.5) * h)


def exact_past(solution, h):
    """Backward differences of the true values, which are the modified ones at equal steps."""
    column = [solution(-i * h) for i in range(ROWS)]
    rows = []
    while column:
        rows.append(column[0])
        column = [a - b for a, b in itertools.pairwise(column)]
    return DifferenceHistory(jnp.stack(rows), h * jnp.arange(1.0, ROWS))


def pinned_columns(columns):
    # With a tolerance that no step reaches the method ends one column before the target.
    return lambda state: state._replace(target=jnp.array(columns + 1))


def pinned_order(order):
    return lambda state: state._replace(order=jnp.array(order), rising=jnp.array(False))


# Solver, pinning of its order, order of the method and of dense output, number of steps.
METHODS = {
    "Radau5": (cases.with_tolerance(Radau5(), 1e-13), lambda state: state, 5, 4, 8),
    "BDF1": (cases.with_tolerance(BDF(), 1e-12), pinned_order(1), 1, 1, 64),
    "BDF2": (cases.with_tolerance(BDF(), 1e-12), pinned_order(2), 2, 2, 64),
    "BDF3": (cases.with_tolerance(BDF(), 1e-12), pinned_order(3), 3, 3, 64),
    "BDF4": (cases.with_tolerance(BDF(), 1e-14), pinned_order(4), 4, 4, 96),
    "BDF5": (cases.with_tolerance(BDF(), 1e-14), pinned_order(5), 5, 5, 96),
    "Odex, 2 columns": (cases.with_tolerance(Odex(), 1e-60), pinned_columns(2), 4, 4, 16),
    "Odex, 3 columns": (cases.with_tolerance(Odex(), 1e-60), pinned_columns(3), 6, 6, 8),
    "Seulex, 2 columns": (cases.with_tolerance(Seulex(), 1e-60), pinned_columns(2), 2, 2, 64),
    "Seulex, 5 columns": (cases.with_tolerance(Seulex(), 1e-60), pinned_columns(5), 5, 5, 40),
}


@pytest.mark.parametrize("name", METHODS)
def test_order_of_convergence(name):
    """The slope of the error at the end and within the last step, from two halvings on.

    Within one step a polynomial of degree k has an error of order k + 1.
    """
    solver, pin, order, dense_order, count = METHODS[name]
    ends, middles = [], []
    for k in (2, 4):
        steps = jnp.asarray(k * count)
        y, end, y_middle, middle = march(solver, turning, turning_solution, 2.0 / steps, steps, pin)
        ends.append(np.max(np.abs(y - end)))
        middles.append(np.max(np.abs(y_middle - middle)))
    assert np.log2(ends[0] / ends[1]) == pytest.approx(order, abs=0.2)
    assert np.log2(middles[0] / middles[1]) > dense_order - 0.2


def spiral(t, y, args):
    return jnp.stack([-0.05 * y[0] - 1.2 * y[1], 1.2 * y[0] - 0.05 * y[1]])


def spiral_solution(t):
    return jnp.exp(-0.05 * t) * jnp.stack([jnp.cos(1.2 * t), jnp.sin(1.2 * t)], axis=-1)


# Newton's iteration of the linear equation converges in the long steps whose errors can be seen.
@pytest.mark.parametrize("solver,count", [(Radau1(), 2000), (Radau9(), 24), (Radau13(), 10)])
def test_order_of_other_radau_methods(solver, count):
    solver, errors = cases.with_tolerance(solver, 1e-15), []
    for k in (1, 2):
        steps = jnp.asarray(k * count)
        y, end, _, _ = march(
            solver, spiral, spiral_solution, 20.0 / steps, steps, lambda state: state
        )
        errors.append(np.max(np.abs(y - end)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(solver.order(None), abs=0.2)
