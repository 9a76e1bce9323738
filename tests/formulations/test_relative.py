"""Joint coordinates against null-space coordinates, joint by joint and in motion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.io.names import unknown_names

GRAVITY = rj.Gravity((0.3, -0.2, -9.81))
T = 0.4


def body(name, rng):
    size = rng.uniform(0.2, 0.6, 3)
    place = {"position": rng.normal(size=3), "orientation": _unit(rng)}
    return rj.Body.box(name, size, mass=rng.uniform(0.5, 2.0), **place)


def _unit(rng):
    p = rng.normal(size=4)
    return p / np.linalg.norm(p)


def every_joint(rng):
    """A tree on the ground and one in space, with every joint that can stand in a tree."""
    names = [f"b{i}" for i in range(12)]
    at, one, two = (0.2, 0.1, -0.3), (1.0, 0.5, 0.2), (-0.5, 1.0, 0.0)
    joints = [
        rj.Spherical("ground", "b0", at),
        rj.Revolute("b0", "b1", at, one),
        rj.Prismatic("b2", "b1", one, point=at),
        rj.Cylindrical("b2", "b3", at, two),
        rj.Planar("b4", "b2", at, one),
        rj.Universal("b0", "b5", at, one, two),
        rj.Screw("b5", "b6", at, one, 0.3),
        rj.Weld("b6", "b7", at),
        rj.Revolute("b7", "b8", at, two, motion=lambda t: jnp.sin(2.0 * t)),
        rj.Spherical("b10", "b9", at),
        rj.Free("b10", name="base"),
        rj.Revolute("b11", "b10", at, one),
    ]
    return rj.System([body(name, rng) for name in names], joints, [GRAVITY])


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(3)
    system = every_joint(rng)
    model = rj.Relative(system)

    @eqx.filter_jit
    def pack_again(model, y):
        y = model.project(T, y)
        state = model.decode(T, y)
        again = model.pack(state, t=T)
        return y, state, again, model.decode(T, again)

    return system, model, pack_again(model, jnp.asarray(rng.normal(size=model.num_unknowns)))


def differences(first, second):
    """Largest difference of every leaf over the largest entry."""
    both = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return [float(jnp.max(jnp.abs(a - b)) / (1 + jnp.max(jnp.abs(a)))) for a, b in both if a.size]


def test_coordinates_are_those_of_the_joints(tree):
    _, model, (y, state, again, twice) = tree
    assert max(differences(state, twice)) < 1e-12
    # Quaternions may differ in sign, angles by revolutions; other unknowns are equal.
    turns = np.abs(np.asarray(again - y)) / (2 * np.pi)
    plain, _ = model.layout.where
    np.testing.assert_allclose(turns[plain] - np.round(turns[plain]), 0, atol=1e-12)
    assert len(model.coordinate_labels) == model.layout.num_positions
    assert len(set(unknown_names(model))) == model.num_unknowns


def test_seven_hinges_have_fourteen_unknowns():
    problem = rj.problems.chain(7, "revolute")
    assert rj.Relative(problem.system).num_unknowns == 14
    assert rj.NullSpace(problem.system).num_unknowns == 56


def test_trees_of_hinges_have_no_singularity():
    problem = rj.problems.chain(1, "revolute")
    model = rj.Relative(problem.system, rj.RodriguesParameters(), recharting=False)
    run = rj.simulate(model, problem.state0, 0.1)
    assert run.result == rj.RESULTS.successful
    assert model.num_unknowns == 2


def test_loops_are_closed_on_rates_and_by_projection():
    problem = rj.problems.four_bar()
    model, other = rj.Relative(problem.system), rj.NullSpace(problem.system)
    start = model.encode(problem.state0)

    @jax.jit
    def evaluate(y, z):
        drifts = model.drift(0.0, y), model.drift(0.0, model.project(0.0, y))
        return model.accelerations(0.0, start), other.accelerations(0.0, z), drifts

    mine, theirs, (before, after) = evaluate(
        start + 1e-3 * jnp.arange(6.0), other.encode(problem.state0)
    )
    assert max(differences(mine, theirs)) < 1e-12
    assert before[0] > 1e-4
    assert max(after) < 1e-12


def test_angles_are_unwrapped():
    wheel = rj.Body.cylinder("wheel", 0.2, 0.1, mass=1.0)
    system = rj.System(wheel, [rj.Revolute("ground", "wheel", (0, 0, 0), (0, 0, 1), name="axle")])
    state = eqx.tree_at(
        lambda s: s.angular_velocity, system.reference_state(), jnp.array([[0, 0, 9.0]])
    )
    solution = rj.simulate(rj.Relative(system), state, 2.0, ts=jnp.linspace(0, 2, 5))
    np.testing.assert_allclose(solution.coordinates["axle"][:, 0], 9.0 * solution.ts, rtol=1e-9)
    np.testing.assert_allclose(solution.rates["axle"][:, 0], 9.0, rtol=1e-12)


def test_fixed_point_body_agrees_with_null_space():
    problem = rj.problems.heavy_top()
    model, other = rj.Relative(problem.system), rj.NullSpace(problem.system)
    y = other.encode(problem.state0)
    np.testing.assert_array_equal(model.encode(problem.state0), y)
    np.testing.assert_array_equal(model.vector_field(0.0, y), other.vector_field(0.0, y))


def test_structure_preserving_solvers_raise():
    problem = rj.problems.chain(2, "revolute")
    with pytest.raises(ValueError, match="takes `rj.NullSpace`"):
        rj.simulate(
            rj.Relative(problem.system), problem.state0, 0.1,
            solver=rj.solvers.EnergyMomentum(), dt=0.01,
        )  # fmt: skip
