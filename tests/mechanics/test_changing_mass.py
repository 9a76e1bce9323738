"""Bodies that lose mass: leaving mass carries its momentum away, thrust is a force."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rigidjax as rj

MASS, THRUST, G = 10.0, 160.0, 9.81


class Burn(eqx.Module):
    rate: jax.Array

    def __call__(self, t):
        return MASS - self.rate * t


def rocket(mass):
    force = rj.PointForce("r", force=jnp.array([0.0, 0.0, THRUST]))
    return rj.System(rj.Body("r", mass, (1.0, 1.0, 1.0)), [], [force, rj.Gravity((0, 0, -G))])


SIGNAL = rj.Signal([0.0, 5.0], [MASS, MASS - 0.8 * 5.0])


@pytest.mark.parametrize(
    ("mass", "kind", "backend"),
    [(lambda t: MASS - 0.8 * t, rj.NullSpace, "native"), (SIGNAL, rj.Relative, "xla")],
)
def test_rocket_equation(mass, kind, backend):
    """The speed of Tsiolkovsky's rocket, less that of free fall; weight follows the mass."""
    system = rocket(mass)
    run = rj.simulate(kind(system), system.reference_state(), 5.0, backend=backend)
    assert str(run.stats["backend"]) == backend
    speed = THRUST / 0.8 * np.log(MASS / 6.0) - G * 5.0
    np.testing.assert_allclose(run.states.velocity[-1, 0], [0, 0, speed], rtol=1e-7, atol=1e-12)
    # The momentum is that of the mass that is left.
    momentum, _ = run.model.momentum(5.0, run.ys[-1])
    np.testing.assert_allclose(momentum[2], 6.0 * speed, rtol=1e-7)


@pytest.mark.exhaustive
def test_derivative_by_the_mass_flow():
    system = rocket(Burn(jnp.asarray(0.8)))
    start = system.reference_state()

    def end_speed(rate):
        burning = eqx.tree_at(lambda s: s.bodies[0].mass_law.rate, system, rate)
        return rj.simulate(rj.NullSpace(burning), start, 5.0).states.velocity[-1, 0, 2]

    wanted = jax.grad(lambda r: THRUST / r * jnp.log(MASS / (MASS - 5.0 * r)))(0.8)
    np.testing.assert_allclose(jax.grad(end_speed)(0.8), wanted, rtol=1e-6)


def pendulum(**options):
    rod = rj.Body("bob", lambda t: 2.0 - 0.3 * t, (0.1, 0.2, 0.2), (0.5, 0.0, 0.0), **options)
    hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0), name="h", damping=0.1)
    return rj.System(rod, hinge, rj.Gravity((0.0, 0.0, -G)))


@pytest.mark.exhaustive
def test_pendulum_that_loses_mass():
    """Its moment of inertia about the hinge and its weight follow the mass, and nothing else."""
    system = pendulum()
    model = rj.NullSpace(system)
    run = rj.simulate(model, system.reference_state(), 2.0, rtol=1e-10, atol=1e-10)

    def rate(t, y):
        m = 2.0 - 0.3 * t
        return [y[1], (m * G * 0.5 * np.cos(y[0]) - 0.1 * y[1]) / (0.2 + m * 0.25)]

    q, w = solve_ivp(rate, (0, 2), [0, 0], rtol=1e-12, atol=1e-12).y[:, -1]
    position = [0.5 * np.cos(q), 0.0, -0.5 * np.sin(q)]
    np.testing.assert_allclose(run.states.position[-1, 0], position, atol=1e-8)
    y, m = run.ys[-1], 2.0 - 0.3 * 2.0
    np.testing.assert_allclose(model.mass_matrix(2.0, y), [[0.2 + m * 0.25]], rtol=1e-12)
    # Newton's equation of what is left, for the reaction of the hinge.
    acceleration = model.accelerations(2.0, y).linear[0]
    force = m * (acceleration + jnp.array([0.0, 0.0, G]))
    np.testing.assert_allclose(model.reactions(2.0, y)["h"].force, force, atol=1e-9)
    assert np.isfinite(model.multipliers(2.0, y)).all()
    kinetic = 0.5 * (0.2 + m * 0.25) * w**2
    np.testing.assert_allclose(model.kinetic_energy(2.0, y), kinetic, rtol=1e-7)


def test_features_that_need_constant_mass_raise():
    system = pendulum()
    with pytest.raises(ValueError, match="`Absolute` takes constant masses; .* a function of time"):
        rj.Absolute(system)
    solver = rj.solvers.EnergyMomentum()
    with pytest.raises(ValueError, match="`EnergyMomentum` takes constant masses"):
        rj.simulate(rj.NullSpace(system), system.reference_state(), 1.0, dt=0.1, solver=solver)
    with pytest.raises(ValueError, match=r"Body\(mass=...\)` must return a number, .* \(2,\)"):
        rj.Body("b", lambda t: jnp.ones(2), (1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="must be positive, in kg"):
        rj.Body("b", lambda t: t - 1.0, (1.0, 1.0, 1.0))
