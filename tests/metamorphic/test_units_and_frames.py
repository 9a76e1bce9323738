"""Results do not depend on units and frames: all joints, loops, free bodies."""

import functools

import numpy as np
import pytest
from metamorphic import mechanisms
from metamorphic.mechanisms import BUILD, FORMULATIONS, QUICK, mechanism, sizes
from metamorphic.transforms import Frame, Units, in_frame, in_units, lane, stack_trees

import rigidjax as rj

exhaustive = pytest.mark.exhaustive
CASES = [
    pytest.param(name, form, marks=() if (name, form) in QUICK else exhaustive)
    for name in BUILD
    if name != "chain"
    for form in FORMULATIONS
]
# Millimetres, micrometres, kilometres; grams and tonnes and more; milliseconds; all at once.
UNITS = [
    Units(),
    Units(metre=2.0**10),
    Units(metre=2.0**20),
    Units(metre=2.0**-10),
    Units(kilogram=2.0**30),
    Units(kilogram=2.0**-20),
    Units(second=2.0**10),
    Units(2.0**-10, 2.0**-10, 2.0**-20),
]
TURN = np.array([0.3, -0.7, 0.5, 0.4]) / np.sqrt(0.99)
FRAMES = [Frame(TURN), Frame(shift=(3.0, -7.0, 2.0)), Frame(TURN[::-1], (30.0, 50.0, -20.0))]


@functools.cache
def results(name, formulation):
    system, state = mechanism(name)
    pairs = [(in_units(system, u), in_units(state, u)) for u in UNITS]
    pairs += [(in_frame(system, f), in_frame(state, f)) for f in FRAMES]
    systems, states = (stack_trees([pair[i] for pair in pairs]) for i in (0, 1))
    return system, mechanisms.evaluate_batch(formulation, systems, states)


def compare(out, wanted, size, tolerance):
    (a, wrenches, kinetic, drift), (b, others, energy, gap) = out, wanted
    assert np.abs(a.linear - b.linear).max() <= tolerance * size["linear"]
    assert np.abs(a.angular - b.angular).max() <= tolerance * size["angular"]
    for joint, (force, moment) in wrenches.items():
        assert np.abs(force - others[joint][0]).max() <= tolerance * size["force"]
        assert np.abs(moment - others[joint][1]).max() <= tolerance * size["moment"]
    assert abs(kinetic - energy) <= tolerance * abs(energy)
    assert np.abs(drift - gap).max() <= 1e-12


@pytest.mark.exhaustive(
    "four_bar-absolute",
)
@pytest.mark.parametrize(("name", "formulation"), CASES)
def test_accelerations_do_not_depend_on_frames(name, formulation):
    system, out = results(name, formulation)
    base = lane(out, 0)
    size = sizes(system, base)
    for k, frame in enumerate(FRAMES):
        acceleration, wrenches, kinetic, drift = lane(out, len(UNITS) + k)
        R = frame.matrix
        found = (
            rj.mechanics.kinematics.poses.Twists(acceleration.linear @ R, acceleration.angular),
            {j: (f @ R, m @ R) for j, (f, m) in wrenches.items()},
            kinetic,
            drift,
        )
        # Positions of 60 m lose two digits.
        compare(found, base, size, 1e-9)
