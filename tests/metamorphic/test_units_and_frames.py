"""Results do not depend on units, frames, names and the order of bodies, joints and forces."""

import jax
import jax.numpy as jnp
import numpy as np
from metamorphic import mechanisms
from metamorphic.mechanisms import FAST, make_evaluation, sizes
from metamorphic.transforms import Frame, Units, in_frame, in_units, lane, reorder, stack_trees

import rigidjax as rj
from rigidjax.rotations.euler_map import euler_map

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
FRAMES = [
    Frame(),
    Frame(TURN),
    Frame(shift=(3.0, -7.0, 2.0)),
    Frame(TURN[::-1], (30.0, 50.0, -20.0)),
]


def compare(found, base, size, tolerance, rows=slice(None), names=None):
    """Compare accelerations and wrenches; `rows` and `names` of the base in the first one."""
    assert np.abs(found[0].linear[rows] - base[0].linear).max() <= tolerance * size["linear"]
    assert np.abs(found[0].angular[rows] - base[0].angular).max() <= tolerance * size["angular"]
    for joint, (force, moment) in base[1].items():
        other = found[1][joint if names is None else names[joint]]
        assert np.abs(other[0] - force).max() <= tolerance * size["force"]
        assert np.abs(other[1] - moment).max() <= tolerance * size["moment"]


def test_accelerations_do_not_depend_on_frames():
    problem = rj.problems.two_bodies()
    system, state = problem.system, jax.tree.map(np.asarray, problem.state0)
    systems = stack_trees([in_frame(system, f) for f in FRAMES])
    states = stack_trees([in_frame(state, f) for f in FRAMES])
    evaluate = jax.jit(jax.vmap(make_evaluation("null space")), compiler_options=FAST)
    out = jax.tree.map(np.asarray, evaluate(systems, states))
    base = lane(out, 0)
    for k, frame in enumerate(FRAMES):
        acceleration, wrenches, kinetic, drift = lane(out, k)
        R = frame.matrix
        found = (
            rj.mechanics.kinematics.poses.Twists(acceleration.linear @ R, acceleration.angular),
            {j: (f @ R, m @ R) for j, (f, m) in wrenches.items()},
        )
        # Positions of 60 m lose two digits.
        compare(found, base, sizes(system, base), 1e-9)
        assert abs(kinetic - base[2]) <= 1e-9 * abs(base[2])
        assert np.abs(drift - base[3]).max() <= 1e-12


def test_motion_does_not_depend_on_names_and_order():
    def evaluate(system, state):
        program = jax.jit(make_evaluation("absolute"), compiler_options=FAST)
        return jax.tree.map(np.asarray, program(system, jax.tree.map(jnp.asarray, state)))

    system, state = mechanisms.chain()
    base = evaluate(system, state)
    other, moved, order, called = reorder(system, state, 3)
    found = evaluate(other, moved)
    compare(found, base, sizes(system, base), 1e-10, np.argsort(order), called)


def error(found, base):
    """The largest difference relative to the largest of its kind; rotations by their matrices."""
    rotation = jnp.vectorize(euler_map, signature="(4)->(3,3)")
    pairs = [(s.angular_velocity, rotation(s.orientation)) for s in (found, base)]
    return max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(*pairs, strict=True))


def test_fixed_steps_do_not_depend_on_units():
    """Results agree to round-off."""
    problem = rj.problems.heavy_top()
    system, state = problem.system, jax.tree.map(np.asarray, problem.state0)
    parts = [(in_units(system, u), in_units(state, u), u.of(0, 0, 1)) for u in UNITS]

    def run(system, state, second):
        t1 = 0.3 * second
        return rj.simulate(rj.NullSpace(system), state, t1, dt=t1 / 16, backend="xla", throw=False)

    program = jax.jit(jax.vmap(run), compiler_options=FAST)
    found = program(*(stack_trees([part[i] for part in parts]) for i in range(3)))
    assert np.all(np.asarray(found.result == rj.RESULTS.successful))
    out = jax.tree.map(lambda leaf: np.asarray(leaf)[:, -1], found.states)
    for k, u in enumerate(UNITS):
        assert error(in_units(lane(out, k), Units(second=1 / u.second)), lane(out, 0)) < 1e-10, u
