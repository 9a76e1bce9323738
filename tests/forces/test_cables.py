"""Cords and cables, which pull only."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from forces.multibody import (
    BODIES,
    OTHER,
    POINT,
    T,
    along,
    energy_error,
    first,
    kinematics,
    pose,
    power,
    states,
    virial,
    worst,
    wrench,
)
from forces.test_spring_drag import ARMS
from formulations import cases

import rigidjax as rj

PULLEY = np.array([0.1, 0.9, -0.4])
OPTIONS = {"rtol": 1e-11, "atol": 1e-12}
# From body to body over a pulley on the ground and back to the first body.
ROUTE = [("one", POINT), ("ground", PULLEY), ("two", OTHER), ("one", None)]


def route_points(x, R):
    return x[0] + R[0] @ ARMS[0], jnp.asarray(PULLEY), x[1] + R[1] @ ARMS[1], x[0]


def test_closed_cable_is_the_gradient_of_its_energy():
    """Wrench and virial against a `Potential`, and the power of the damping."""

    def length(x, R):
        points = route_points(x, R)
        parts = [b - a for a, b in itertools.pairwise((*points, points[0]))]
        return sum(jnp.sqrt(jnp.sum(part * part)) for part in parts)

    cable = rj.Cable(ROUTE, 3.0, length=0.8, closed=True)
    potential = rj.Potential(lambda x, R: 0.5 * 3.0 * jnp.maximum(length(x, R) - 0.8, 0.0) ** 2)
    damped = rj.Cable(ROUTE, 3.0, 0.01, length=0.8, closed=True)

    def errors(state):
        pair = jnp.stack(wrench(cable, state)), jnp.stack(wrench(potential, state))
        _, rate = along(length, state)
        lost = power(damped, state) - power(cable, state)
        return [
            cases.error(*pair),
            cases.error(virial(cable, state), virial(potential, state)),
            energy_error(cable, state),
            cases.error(lost, -0.01 * rate**2),
        ]

    assert worst(errors) < 1e-11


@pytest.mark.float32
def test_slack_cables_and_cords_exert_nothing():
    """Also frames as ends; a cord and a cable of two points are the same."""
    frames = [rj.Frame("f", "one", ARMS[0]), rj.Frame("g", "two", ARMS[1])]
    state = first(states())
    distance = float(jnp.linalg.norm(route_points(*pose(state))[0] - route_points(*pose(state))[2]))
    for length in (0.7 * distance, 1.3 * distance):
        cord = rj.Spring("one", "two", POINT, OTHER, 3.0, 50.0, length, tension_only=True)
        cable = rj.Cable(["f", ("g", None)], 3.0, 50.0, length)
        loads = [
            rj.System(BODIES, (), force, frames).wrenches(T, kinematics(state, *pose(state)))
            for force in (cord, cable)
        ]
        assert cases.error(*loads) < cases.round_off(50)
        # The damping force is limited to the pull: between zero and twice the pull.
        tension = float(jnp.linalg.norm(loads[0][0, :3]))
        pull = max(3.0 * (distance - length), 0.0)
        assert -1e-6 <= tension <= 2 * pull * (1 + 1e-6)
        system = rj.System(BODIES, (), cord)
        energy = float(system.potential_energy(T, kinematics(state, *pose(state))))
        assert abs(energy - pull**2 / 6.0) < cases.round_off(50)


def test_cord_lets_a_body_fly_and_throws_it_back():
    """Free flight, half an oscillation, and free flight back with the same speed."""
    mass, k, length, speed = 2.0, 300.0, 0.5, 1.5
    body = rj.Body("b", mass, (0.1, 0.1, 0.1), (0.2, 0, 0), velocity=(speed, 0, 0))
    cord = rj.Spring("ground", "b", (0, 0, 0), None, k, length=length, tension_only=True)
    model = rj.NullSpace(rj.System(body, (), cord))
    ts = np.array([0.0, 0.15, 0.25, 0.5])
    sol = rj.simulate(model, model.system.reference_state(), ts[-1], ts=ts, **OPTIONS)
    omega = np.sqrt(k / mass)
    taut = (length - 0.2) / speed
    inside = length + speed / omega * np.sin(omega * (0.25 - taut))
    back = length - speed * (0.5 - taut - np.pi / omega)
    exact = np.array([0.2, 0.2 + 0.15 * speed, inside, back])
    assert np.abs(sol.states.position[:, 0, 0] - exact).max() < 1e-7
    assert np.abs(sol.energy - 0.5 * mass * speed**2).max() < 1e-7
