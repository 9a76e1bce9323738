"""Centre of mass, momenta and energies of a model, by their definitions."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax import problems


def test_momenta_are_sums_over_free_bodies(rng):
    masses, inertias = (2.0, 0.5), np.array([[1.0, 2.0, 2.5], [0.3, 0.2, 0.4]])
    bodies = [rj.Body(f"{i}", m, inertias[i]) for i, m in enumerate(masses)]
    g = np.array([0.3, -0.2, -9.0])
    model = rj.Absolute(rj.System(bodies, forces=rj.Gravity(g)))
    p = rng.normal(size=(2, 4))
    p /= np.linalg.norm(p, axis=1)[:, None]
    x, v, omega = rng.normal(size=(3, 2, 3))
    t, y = jnp.zeros(()), model.encode(rj.State(x, p, v, omega))

    centre = np.average(x, axis=0, weights=masses)
    linear = masses @ v
    spin = Rotation.from_quat(p, scalar_first=True).apply(inertias * omega)
    angular = sum(spin[i] + m * np.cross(x[i] - centre, v[i]) for i, m in enumerate(masses))
    kinetic = 0.5 * (masses @ np.sum(v * v, axis=1) + np.sum(inertias * omega**2))
    wanted = [centre, linear, angular, kinetic, -sum(masses) * g @ centre]
    found = [model.centre_of_mass(t, y), *model.centroidal_momentum(t, y)]
    found += [model.kinetic_energy(t, y), model.potential_energy(t, y)]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)


def test_fixed_point_body_has_no_centre_of_mass():
    problem = problems.heavy_top()
    model = rj.NullSpace(problem.system)
    t, y = jnp.zeros(()), model.encode(problem.state0)
    omega = np.asarray(problem.state0.angular_velocity[0])
    np.testing.assert_allclose(
        model.kinetic_energy(t, y), 0.5 * omega @ ([50, 42, 10] * omega), rtol=1e-14
    )
    np.testing.assert_allclose(
        model.kinetic_energy(t, y) + model.potential_energy(t, y), model.energy(t, y), rtol=1e-14
    )
    for of in (model.centre_of_mass, model.centroidal_momentum):
        with pytest.raises(ValueError, match="where its centre of mass is"):
            of(t, y)
