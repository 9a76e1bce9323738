"""Invariants of each scheme, at large steps and over many of them."""

import jax
import numpy as np
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum, SimoWong, Variational
from rigidjax.solvers.conserving import invariants


@pytest.mark.parametrize("make", [rj.NullSpace, rj.Absolute])
def test_energy_momentum_many_steps(make):
    """1e5 steps of 0.05 s, 1.5 rad each: energy, angular momentum, constraints."""
    model = make(models.FREE.system)
    sol = models.run(model, models.FREE.state0, 0.05, 100_000, EnergyMomentum(), 50)
    assert models.change(sol.energy) < 1e-11
    assert models.change(sol.angular_momentum) < 1e-11
    assert np.max(sol.position_drift) < 1e-12
    # q . q' is q . p up to the inertia.
    assert np.max(sol.velocity_drift) < 1e-12


@pytest.mark.parametrize(("solver", "dt"), [(SimoWong(), 0.05), (Variational(), 0.025)])
def test_momentum_many_steps(solver, dt):
    """The variational integrator has no step of 0.05 s."""
    sol = models.run(rj.NullSpace(models.FREE.system), models.FREE.state0, dt, 100_000, solver, 50)
    assert models.change(sol.angular_momentum) < 1e-11
    # In free rotation both conserve the energy as well.
    assert models.change(sol.energy) < 1e-11
    assert np.max(sol.position_drift) < 1e-12


def test_directors_in_absolute_coordinates():
    """DIR.EM conserves energy and momentum of the full rates, which are not tangent."""
    model = rj.Absolute(models.FREE.system, rj.Directors())
    sol = models.run(model, models.FREE.state0, 0.05, 100_000, EnergyMomentum(), 50)
    d, d_dot = sol.ys[:, :9], sol.ys[:, 9:]
    inertia = models.FREE.system.inertia
    energy = jax.vmap(lambda v: invariants.director_energy(inertia, v))(d_dot)
    momentum = jax.vmap(lambda d, v: invariants.director_momentum(inertia, d, v))(d, d_dot)
    assert abs(energy[0] / sol.energy[0] - 1) < 1e-14
    assert np.allclose(momentum[0], sol.angular_momentum[0], rtol=1e-14)
    assert models.change(energy) < 1e-11
    assert models.change(momentum) < 1e-11
    assert np.max(sol.position_drift) < 1e-12
    # The tangent part alone is not invariant.
    assert models.change(sol.energy) > 1e-2


@pytest.mark.parametrize(
    ("scheme", "rotation"),
    [
        ("EnergyMomentum", rj.Quaternion()),
        ("Variational", rj.Quaternion()),
        ("SimoWong", rj.Directors()),
    ],
)
def test_steady_top_is_conserved(scheme, rotation):
    """Energy and J3 of the heavy top at the largest step that Figure 5 has."""
    model = rj.NullSpace(models.STEADY.system, rotation)
    dt = 0.007 if scheme == "Variational" else 0.01
    sol = models.run(model, models.STEADY.state0, dt, 500, models.SCHEMES[scheme])
    assert models.change(sol.angular_momentum[:, 2]) < 1e-11
    change = models.change(sol.energy)
    if scheme == "EnergyMomentum":
        assert change < 1e-11
    else:
        assert 1e-6 < change < 1e-2


@pytest.mark.parametrize(
    "solver", [EnergyMomentum(), EnergyMomentum(form="saddle-point"), SimoWong(conserve="energy")]
)
def test_energy_is_conserved_for_any_potential(solver):
    """The discrete derivative conserves the energy of every potential."""
    body, state0 = models.quartic_body()
    make = rj.Absolute if solver == EnergyMomentum() else rj.NullSpace
    sol = models.run(make(body), state0, 0.2, 400, solver)
    assert models.change(sol.energy) < 1e-12
    if solver == SimoWong(conserve="energy"):
        # The gradient in the middle alone does not.
        sol = models.run(make(body), state0, 0.2, 400, SimoWong())
        assert models.change(sol.energy) > 1e-3


def test_seven_unknowns_agree_with_three():
    """(52)-(54) have the trajectory of the reduced equations over 1,000 steps."""
    for problem, dt in ((models.FREE, 0.002), (models.STEADY, 0.001)):
        model = rj.NullSpace(problem.system)
        three, seven = (
            models.run(model, problem.state0, dt, 1000, EnergyMomentum(form=form), 10)
            for form in ("reduced", "null-space")
        )
        apart, rate = np.abs(three.ys - seven.ys), np.max(np.abs(three.ys[:, 4:]))
        assert np.max(apart[:, :4]) < 1e-11 and np.max(apart[:, 4:]) < 1e-11 * rate


def test_dissipation_rate():
    """Drag takes h c |W|^2 in each step, W the mean of the angular velocities."""
    body, state0 = models.quartic_body(moment=rj.bodies.LinearDrag(0.3))
    sol = models.run(rj.NullSpace(body), state0, 0.05, 100, EnergyMomentum())
    omega = np.asarray(sol.states.angular_velocity[:, 0])
    mean = 0.5 * (omega[1:] + omega[:-1])
    lost = -0.3 * 0.05 * np.sum(mean**2, axis=1)
    assert np.max(np.abs(np.diff(sol.energy) - lost)) < 1e-13


def test_reduced_and_saddle_point_agree():
    """The reduced equations have the solution of the nine, step by step, with a moment too."""
    body, state0 = models.quartic_body(moment=rj.bodies.LinearDrag(0.3))
    model = rj.NullSpace(body)
    reduced = models.run(model, state0, 0.1, 50, EnergyMomentum())
    full = models.run(model, state0, 0.1, 50, EnergyMomentum(form="saddle-point"))
    assert np.max(np.abs(reduced.ys - full.ys)) < 1e-12
