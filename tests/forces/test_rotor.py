"""Thrust and torque of rotors against closed forms."""

import numpy as np
import pytest
from formulations import cases

import rigidjax as rj

MASS, J, LAG, SPEED, START = 2.0, 0.3, 0.2, 40.0, 10.0
TS = np.linspace(0.0, 0.6, 4)


def powers():
    """Integrals over time of w and w^2, for w = SPEED + (START - SPEED) exp(-t / LAG)."""
    d, e = START - SPEED, np.exp(-TS / LAG)
    linear = SPEED * TS + d * LAG * (1 - e)
    square = SPEED**2 * TS + 2 * SPEED * d * LAG * (1 - e) + d**2 * LAG / 2 * (1 - e**2)
    return linear, square


def test_rotors_lift_and_turn_a_body():
    """Two rotors on a body on a cylindrical joint, which takes the moments of their thrusts.

    One is on a frame whose axes are not those of the body; the other is at the centre of mass, has
    quadratic coefficients alone, and spins in the other direction.
    """
    body = rj.Body("drone", MASS, (J, J, J))
    half = np.sqrt(0.5)
    mount = rj.Frame("arm", "drone", (0.4, 0.1, 0.0), orientation=(half, half, 0.0, 0.0))
    rotors = [
        rj.Rotor("arm", SPEED, (0.03, 2e-3), (0.01, 5e-4), time_constant=LAG,
                 axis=(0.0, -3.0, 0.0), initial=START),
        rj.Rotor("drone", SPEED, 1e-3, 2e-4, time_constant=LAG, spin="clockwise", initial=START),
    ]  # fmt: skip
    joint = rj.Cylindrical("ground", "drone", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="mast")
    model = rj.NullSpace(rj.System(body, joint, rotors, mount))
    start = model.system.reference_state()
    sol = rj.simulate(model, start, TS[-1], ts=TS, rtol=1e-10, atol=1e-11)
    linear, square = powers()
    # The axis of the rotor on the frame, -y there, is -z of the body.
    rise = (-0.03 * linear + (1e-3 - 2e-3) * square) / MASS
    turn = (0.01 * linear + (5e-4 + 2e-4) * square) / J
    assert cases.error(sol.rates["mast"], np.stack([rise, turn], axis=1)) < 1e-8
    names = sol.to_xarray().coords["unknown"].values
    assert {"arm.speed", "drone.speed"} <= set(names)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spin": "left"}, r"`Rotor\(spin=...\)` must be .* got 'left'"),
        ({"axis": (0.0, 0.0, 0.0)}, r"`Rotor\(axis=...\)` must not be zero"),
        ({"thrust": (1.0, 2.0, 3.0)}, r"`Rotor\(thrust=...\)` must"),
        ({"time_constant": 0.0}, r"`Rotor\(time_constant=...\)` must be positive"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        rj.Rotor("drone", 1.0, **{"thrust": 1.0, "time_constant": 0.1, **options})


def test_loads_need_states():
    rotor = rj.Rotor("drone", 1.0, 1.0, time_constant=0.1)
    system = rj.System(rj.Body("drone", 1.0, (1.0, 1.0, 1.0)), (), rotor)
    with pytest.raises(ValueError, match=r"`Rotor` has states, which only the methods"):
        system.wrenches(0.0, rj.forces.Kinematics(np.zeros((1, 3)), np.eye(3)[None],
                                                  np.zeros((1, 3)), np.zeros((1, 3))))  # fmt: skip
