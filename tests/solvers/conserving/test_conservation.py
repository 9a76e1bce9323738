"""Invariants of each scheme, at large steps and over many of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum, SimoWong, Variational
from rigidjax.solvers.conserving import invariants

FORMS = {
    "null space, quaternion": rj.NullSpace(models.FREE.system),
    "null space, directors": rj.NullSpace(models.FREE.system, rj.Directors()),
    "absolute, quaternion": rj.Absolute(models.FREE.system),
}


@pytest.mark.exhaustive("null space, directors")
@pytest.mark.parametrize("form", FORMS)
def test_energy_momentum_many_steps(form):
    """1e5 steps of 0.05 s, 1.5 rad each: energy, angular momentum, constraints."""
    sol = models.run(FORMS[form], models.FREE.state0, 0.05, 100_000, EnergyMomentum(), 50)
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


@pytest.mark.exhaustive(
    but=(
        "EnergyMomentum-rotation0",
        "Variational-rotation1",
        "SimoWong-rotation2",
    )
)
@pytest.mark.parametrize(
    ("scheme", "rotation"),
    [
        *((scheme, rj.Quaternion()) for scheme in models.SCHEMES),
        *((scheme, rj.Directors()) for scheme in models.SCHEMES if scheme != "Variational"),
    ],
)
def test_steady_top_is_conserved(scheme, rotation):
    """Energy and J3 of the heavy top at the largest step that Figure 5 has."""
    model = rj.NullSpace(models.STEADY.system, rotation)
    dt = 0.007 if scheme == "Variational" else 0.01
    sol = models.run(model, models.STEADY.state0, dt, 500, models.SCHEMES[scheme])
    assert models.change(sol.angular_momentum[:, 2]) < 1e-11
    change = models.change(sol.energy)
    if scheme in ("EnergyMomentum", "SimoWong, energy"):
        assert change < 1e-11
    else:
        assert 1e-6 < change < 1e-2


@pytest.mark.exhaustive(
    "solver1",
    "solver2",
)
@pytest.mark.parametrize(
    "solver", [EnergyMomentum(), EnergyMomentum(form="saddle-point"), SimoWong(conserve="energy")]
)
def test_energy_is_conserved_for_any_potential(solver):
    """The discrete derivative conserves the energy of every potential."""
    body, state0 = models.quartic_body()
    make = rj.Absolute if solver == EnergyMomentum() else rj.NullSpace
    sol = models.run(make(body), state0, 0.2, 400, solver)
    assert models.change(sol.energy) < 1e-12


def test_gradient_at_the_midpoint():
    """Which the gradient in the middle alone does not."""
    body, state0 = models.quartic_body()
    sol = models.run(rj.NullSpace(body), state0, 0.2, 400, SimoWong())
    assert models.change(sol.energy) > 1e-3


@pytest.mark.exhaustive
def test_energy_is_conserved_for_any_potential_in_directors():
    body, state0 = models.quartic_body()
    sol = models.run(rj.NullSpace(body, rj.Directors()), state0, 0.2, 400, EnergyMomentum())
    assert models.change(sol.energy) < 1e-12
    whole = models.run(rj.Absolute(body, rj.Directors()), state0, 0.2, 400, EnergyMomentum())
    kinetic = jax.vmap(lambda v: invariants.director_energy(body.inertia, v))(whole.ys[:, 9:])
    potential = jax.vmap(lambda d: body.potential(rj.Directors().to_matrix(d)))(whole.ys[:, :9])
    assert models.change(kinetic + potential) < 1e-12


@pytest.mark.exhaustive
def test_reduced_and_saddle_point_agree():
    """The reduced equations have the solution of the nine, step by step, with a moment too."""
    body, state0 = models.quartic_body(moment=rj.bodies.LinearDrag(0.3))
    model = rj.NullSpace(body)
    reduced = models.run(model, state0, 0.1, 50, EnergyMomentum())
    full = models.run(model, state0, 0.1, 50, EnergyMomentum(form="saddle-point"))
    assert np.max(np.abs(reduced.ys - full.ys)) < 1e-12


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


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["EnergyMomentum", "Variational"])
def test_free_systems_conserve_momentum(scheme):
    """Internal forces leave momentum and angular momentum alone, whatever the scheme."""
    system = models.tethered_pair()
    sol = models.run(
        rj.NullSpace(system), system.reference_state(), 0.02, 500, models.SCHEMES[scheme]
    )
    assert models.change(sol.linear_momentum) < 1e-12
    assert models.change(sol.angular_momentum) < 1e-12
    change = models.change(sol.energy)
    assert change < 1e-12 if "nergy" in scheme else 1e-6 < change < 1e-2


@pytest.mark.exhaustive
def test_systems_under_gravity_conserve_energy():
    """Energy is constant; the momentum changes by the impulse of gravity."""
    system = models.tethered_pair(gravity=True)
    model = rj.NullSpace(system, rj.Directors())
    sol = models.run(model, system.reference_state(), 0.02, 100, EnergyMomentum())
    assert models.change(sol.energy) < 1e-12
    gain = sol.linear_momentum - sol.linear_momentum[0]
    assert np.allclose(gain, sol.ts[:, None] * 3.0 * jnp.array([0.3, 0.0, -9.81]), atol=1e-11)


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["EnergyMomentum", "Variational"])
def test_dissipation_is_the_work_of_dampers(scheme):
    """Damped bodies lose the energy of an accurate integration, to second order."""
    system = models.tethered_pair(damping=1.5)
    model, state0 = rj.NullSpace(system), system.reference_state()
    true = rj.simulate(model, state0, 1.0, rtol=1e-11, atol=1e-11).energy[-1]
    solver = models.SCHEMES[scheme]
    ends = [models.run(model, state0, dt, round(1 / dt), solver, 1) for dt in (0.02, 0.01)]
    errors = [abs(sol.energy[-1] - true) for sol in ends]
    assert 3.0 < errors[0] / errors[1] < 5.5
    assert errors[1] < 2e-3 * abs(true)


def test_dissipation_rate():
    """Drag takes h c |W|^2 in each step, W the mean of the angular velocities."""
    body, state0 = models.quartic_body(moment=rj.bodies.LinearDrag(0.3))
    sol = models.run(rj.NullSpace(body), state0, 0.05, 100, EnergyMomentum())
    omega = np.asarray(sol.states.angular_velocity[:, 0])
    mean = 0.5 * (omega[1:] + omega[:-1])
    lost = -0.3 * 0.05 * np.sum(mean**2, axis=1)
    assert np.max(np.abs(np.diff(sol.energy) - lost)) < 1e-13
