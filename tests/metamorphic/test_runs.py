"""Runs in other units and from other frames: every formulation, fixed and adaptive steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from metamorphic.mechanisms import BUILD, FAST, mechanism
from metamorphic.test_units_and_frames import UNITS
from metamorphic.transforms import in_units, lane, stack_trees

import rigidjax as rj
from rigidjax.problems.comparison import formulations
from rigidjax.rotations.euler_map import euler_map

STEPS, TOLERANCE = 16, 1e-9
# Length of a run, s.
TIMES = {
    "free_body": 0.5, "heavy_top": 0.3, "heavy_top_fast": 0.05, "steady_top": 0.2,
    "symmetric_top": 0.5, "tennis_racket": 0.1, "tumbling_brick": 0.5, "two_bodies": 0.1,
    "two_bodies_slow": 0.5, "chain": 0.2, "four_bar": 0.1, "slider_crank": 0.05, "turntable": 0.3,
    "dual_spin_satellite": 0.1, "simple_pendulum": 0.3, "n_four_bar": 0.3, "andrews": 0.005,
    "bricard": 0.3, "flyball_governor": 1e-4, "adams_case-revolute": 0.3,
}  # fmt: skip
LABELS = tuple(formulations(rj.problems.free_body().system))
OF_SYSTEMS = tuple(formulations(rj.problems.two_bodies().system))
JOINTED = ("null space, quaternion", "absolute, quaternion")
QUICK = (("heavy_top", "null space, quaternion"),)


def problem(name):
    if name in BUILD:
        return mechanism(name)
    found = rj.problems.find(name)()
    return found.system, jax.tree.map(np.asarray, found.state0)


def cases():
    """Every formulation of a body with a fixed point; of joints, one of each kind."""
    for name in TIMES:
        alone = name not in BUILD and name != "two_bodies_slow"
        for label in LABELS if alone else (OF_SYSTEMS if name == "two_bodies" else JOINTED):
            mark = () if (name, label) in QUICK else pytest.mark.exhaustive
            yield pytest.param(name, label, marks=mark)


CASES = list(cases())


def final_states(name, label, systems, states, times, **how):
    """Return final states of one problem in several units or frames, from one compiled function."""

    def run(system, state, t1):
        model = formulations(system)[label]
        steps = how or {"dt": t1 / STEPS}
        return rj.simulate(model, state, t1, backend="xla", throw=False, **steps)

    program = jax.jit(jax.vmap(run), compiler_options=FAST)
    found = program(systems, states, times)
    assert np.all(np.asarray(found.result == rj.RESULTS.successful))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:, -1], found.states)


def in_all_units(system, state):
    pairs = [(in_units(system, u), in_units(state, u), u.of(0, 0, 1)) for u in UNITS]
    return (stack_trees([pair[i] for pair in pairs]) for i in range(3))


def error(found, base):
    """The largest difference relative to the largest of its kind; rotations by their matrices."""
    rotation = jnp.vectorize(euler_map, signature="(4)->(3,3)")
    found, base = (
        (s.position, s.velocity, s.angular_velocity, rotation(s.orientation)) for s in (found, base)
    )
    least = 1e-3 * np.abs(base[2]).max()
    sizes = [max(np.abs(b).max(), least, 1e-300) for b in base]
    return max(np.abs(a - b).max() / s for a, b, s in zip(found, base, sizes, strict=True))


def undone(state, u):
    """A state in the units from which `u` leads to it."""
    return rj.State(
        state.position / u.of(1, 0, 0), state.orientation,
        state.velocity / u.of(1, 0, -1), state.angular_velocity / u.of(0, 0, -1),
    )  # fmt: skip


@pytest.mark.parametrize(("name", "label"), CASES)
def test_fixed_steps_do_not_depend_on_units(name, label):
    """Results agree to round-off."""
    systems, states, seconds = in_all_units(*problem(name))
    out = final_states(name, label, systems, states, TIMES[name] * seconds)
    for k, u in enumerate(UNITS):
        assert error(undone(lane(out, k), u), lane(out, 0)) < 1e-10, u
