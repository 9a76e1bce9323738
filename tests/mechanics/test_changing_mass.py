"""Bodies that lose mass: leaving mass carries its momentum away, thrust is a force."""

import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

MASS, THRUST, G = 10.0, 160.0, 9.81


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


def pendulum(**options):
    rod = rj.Body("bob", lambda t: 2.0 - 0.3 * t, (0.1, 0.2, 0.2), (0.5, 0.0, 0.0), **options)
    hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0), name="h", damping=0.1)
    return rj.System(rod, hinge, rj.Gravity((0.0, 0.0, -G)))


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
