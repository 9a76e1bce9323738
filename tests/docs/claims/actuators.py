"""The limited motor has its acceleration."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj


def check_1(page, printed):
    lift, current = page["lift"], np.asarray(page["current"])
    assert 1.99 < current.max() <= 2.0 + 1e-7
    # Newton's law of the arm and the rotor while the current is at its limit.
    rates, angles = lift.rates["hinge"][:, 0], lift.coordinates["hinge"][:, 0]
    inertia = page["arm"].inertia[0] + 0.5 * 0.2**2 + 50.0**2 * 2e-6
    weight = 0.5 * 9.81 * 0.2
    change = 3.0 * (angles[5] - angles[2]) - weight * (np.sin(angles[5]) - np.sin(angles[2]))
    assert abs(0.5 * inertia * (rates[5] ** 2 - rates[2] ** 2) - change) < 1e-6

    cylinder = page["Hydraulic"]("slide", 2.0, *(jnp.array(x) for x in (0.5, 0.1, 0.4)))
    slide = rj.Prismatic("ground", "mass", (1.0, 0.0, 0.0), name="slide")
    system = rj.System(rj.Body("mass", 3.0, (1.0, 1.0, 1.0)), slide, cylinder)
    sol = rj.simulate(rj.Relative(system), system.reference_state(), 100.0)
    # The piston takes the whole flow in the end.
    assert abs(sol.rates["slide"][-1, 0] - 2.0 / 0.5) < 1e-6
