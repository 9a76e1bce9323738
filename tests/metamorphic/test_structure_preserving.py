"""Fixed steps of the structure-preserving and Lie-group solvers against themselves: slower, from
rest, at equilibrium, in other units, and backwards."""

from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax import solvers
from rigidjax.rotations.euler_map import euler_map
from rigidjax.rotations.so3 import exp_quaternion, multiply
from rigidjax.solvers import ModelTerm

STEPS, DT = 60, 0.01
# From rest, at a thousandth, at a millionth, and exactly at equilibrium.
AMPLITUDES = jnp.array([1.0, 1e-3, -1e-3, 1e-6, -1e-6, 0.0])
TILTED = jnp.array([0.8, 0.6, 0.0])


class Units(NamedTuple):
    """Values of a metre, a kilogram and a second in the units: powers of two, which scale
    exactly.
    """

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0


OTHERS = {
    "millimetres, grams, milliseconds": Units(2.0**10, 2.0**10, 2.0**10),
    "micrometres, tonnes": Units(2.0**20, 2.0**-10, 1.0),
    "kilometres, milliseconds": Units(2.0**-10, 1.0, 2.0**10),
}


class Well(eqx.Module):
    """V = a (1 - R33) + b (1 - R33)^2."""

    a: jax.Array
    b: jax.Array

    def __call__(self, R):
        return self.a * (1.0 - R[2, 2]) + self.b * (1.0 - R[2, 2]) ** 2


def top(units):
    """A body with a fixed point in a nonlinear well, and its states at amplitudes."""
    inertia = units.mass * units.length**2
    energy = inertia / units.time**2
    well = Well(jnp.asarray(50.0 * energy), jnp.asarray(30.0 * energy))
    body = rj.FixedPointBody(inertia * np.array([0.5, 0.4, 0.3]), well)

    def states(a):
        return rj.State(orientation=exp_quaternion(a * TILTED), angular_velocity=jnp.zeros(3))

    return body, states


def pendulum(units):
    """Return two rods on a ball joint, connected by a hinge, with a stretched nonlinear spring."""
    L, M, acceleration = units.length, units.mass, units.length / units.time**2
    inertia = M * L**2 * np.array([0.1, 0.12, 0.06])
    bodies = [
        rj.Body("upper", 1.0 * M, inertia, (0.0, 0.0, -0.5 * L)),
        rj.Body("lower", 0.5 * M, 0.5 * inertia, (0.0, 0.0, -1.4 * L)),
    ]
    joints = [
        rj.Spherical("ground", "upper", (0.0, 0.0, 0.0)),
        rj.Revolute("upper", "lower", (0.0, 0.0, -1.0 * L), (1.0, 0.0, 0.0)),
    ]
    spring = rj.Spring(
        "ground", "lower", (0.0, 0.0, -3.0 * L), (0.0, 0.0, -1.8 * L),
        stiffness=20.0 * M / units.time**2, length=0.8 * L,
    )  # fmt: skip
    forces = [rj.Gravity((0.0, 0.0, -9.81 * acceleration)), spring]

    def states(a):
        p = exp_quaternion(a * TILTED)
        q = multiply(p, exp_quaternion(a * jnp.array([1.0, 0.0, 0.0])))
        upper, down = euler_map(p), jnp.array([0.0, 0.0, -L])
        position = [0.5 * upper @ down, upper @ down + 0.4 * euler_map(q) @ down]
        zero = jnp.zeros((2, 3))
        return rj.State(jnp.stack(position), jnp.stack([p, q]), zero, zero)

    return rj.System(bodies, joints, forces), states


def index3(system):
    return rj.Absolute(system, index=3)


def directors(system):
    return rj.NullSpace(system, rj.Directors())


def all_directors(system):
    return rj.Absolute(system, rj.Directors())


# Problem, formulation, solver, error of a step forth and back: round-off of symmetric schemes, the
# error of accurate ones, `None` for those that dissipate.
CASES = {
    "energy-top": (top, rj.NullSpace, solvers.EnergyMomentum(), 1e-12),
    "energy-joints": (pendulum, rj.Absolute, solvers.EnergyMomentum(), 1e-11),
    "variational-joints": (pendulum, rj.NullSpace, solvers.Variational(), 1e-11),
    "alpha-joints": (pendulum, index3, solvers.GeneralizedAlpha(), None),
    "energy-directors": (top, directors, solvers.EnergyMomentum(), 1e-12),
    "energy-all-directors": (top, all_directors, solvers.EnergyMomentum(), 1e-12),
    "energy-saddle": (top, rj.NullSpace, solvers.EnergyMomentum(form="saddle-point"), 1e-12),
    "variational-top": (top, rj.NullSpace, solvers.Variational(), 1e-12),
    "simo-wong": (top, rj.NullSpace, solvers.SimoWong(), 1e-12),
    "simo-wong-energy": (top, rj.NullSpace, solvers.SimoWong(conserve="energy"), 1e-12),
    "midpoint": (top, rj.NullSpace, solvers.EnergyMidpoint(mean="angular-velocity"), 1e-12),
    "alpha-top": (top, rj.NullSpace, solvers.GeneralizedAlpha(), None),
    "munthe-kaas": (top, rj.NullSpace, solvers.MuntheKaas(), 1e-6),
    "energy-joints-directors": (pendulum, all_directors, solvers.EnergyMomentum(), 1e-11),
    # 9.0e-5 over all steps; 2.7e-6 and 8.4e-8 in a half and a quarter of them: order 5.
    "munthe-kaas-joints": (pendulum, rj.NullSpace, solvers.MuntheKaas(), 2e-6),
}


@eqx.filter_jit
def run(model, solver, states, t0, t1, dt):
    """Return final unknowns of fixed steps of a batch, from states or from unknowns, also as
    states.
    """

    def run_start(start):
        y0 = model.encode(start) if isinstance(start, rj.State) else start
        sol = diffrax.diffeqsolve(
            ModelTerm(model), solver, t0, t1, dt, y0, max_steps=STEPS + 2, throw=False,
            stepsize_controller=diffrax.ConstantStepSize(),
        )  # fmt: skip
        y = sol.ys[-1]
        fine = sol.result == diffrax.RESULTS.successful
        return y, model.decode(t1, y), fine & (sol.stats["num_steps"] == STEPS)

    return jax.vmap(run_start)(states)


def steps(problem, make, solver, units=Units()):
    """The model, its states at all amplitudes, and what `run` makes of them."""
    system, states = problem(units)
    model, start = make(system), jax.vmap(states)(AMPLITUDES)
    return model, start, run(model, solver, start, 0.0, STEPS * DT * units.time, DT * units.time)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("problem", "make", "solver", "error"), CASES.values(), ids=CASES)
def test_structure_preserving_steps_scale_with_speed_units_and_time(problem, make, solver, error):
    model, start, (y, end, fine) = steps(problem, make, solver)
    assert np.all(fine)
    # Exactly at equilibrium nothing moves.
    for value, same in zip(jax.tree.leaves(start), jax.tree.leaves(end), strict=True):
        assert np.max(np.abs(same[-1] - value[-1])) < 1e-12
    # Odd functions of the amplitude scale with it, up to its square and round-off divided by it.
    odd = [
        np.concatenate([np.ravel(part[k] - part[k + 1]) for part in jax.tree.leaves(end)])
        / AMPLITUDES[k]
        for k in (1, 3)
    ]
    assert np.max(np.abs(odd[0] - odd[1])) < 20 * AMPLITUDES[1] ** 2 * np.max(np.abs(odd[0]))
    # In other units the same numbers, scaled.
    for name, units in OTHERS.items():
        _, _, (_, scaled, fine) = steps(problem, make, solver, units)
        assert np.all(fine), name
        factors = units.length, 1.0, units.length / units.time, 1.0 / units.time
        for value, same, factor in zip(
            jax.tree.leaves(end), jax.tree.leaves(scaled), factors[-len(jax.tree.leaves(end)) :],
            strict=True,
        ):  # fmt: skip
            off = np.abs(same / factor - value).reshape(AMPLITUDES.size, -1).max(axis=1)
            assert np.all(off < 1e-12 * np.maximum(1.0, np.max(np.abs(value)))), (name, off)
    if error is None:
        return
    # Backwards in time the steps are undone.
    _, back, fine = run(model, solver, y, STEPS * DT, 0.0, -DT)
    assert np.all(fine)
    for value, same in zip(jax.tree.leaves(start), jax.tree.leaves(back), strict=True):
        assert np.max(np.abs(same - value)) < error * STEPS
