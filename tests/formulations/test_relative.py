"""Joint coordinates against null-space coordinates, joint by joint and in motion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import systems
from mechanics.cases import T

import rigidjax as rj
from rigidjax.io.names import unknown_names


def differences(first, second):
    """Largest difference of every leaf over the largest entry."""
    both = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return [float(jnp.max(jnp.abs(a - b)) / (1 + jnp.max(jnp.abs(a)))) for a, b in both if a.size]


def test_coordinates_are_those_of_the_joints():
    """Unknowns of a tree with every joint that can stand in one, there and back."""
    model = systems.model("tree with every joint", rj.Relative)

    @jax.jit
    def pack_again(y):
        y = model.project(T, y)
        state = model.decode(T, y)
        again = model.pack(state, t=T)
        return y, state, again, model.decode(T, again)

    start = np.random.default_rng(3).normal(size=model.num_unknowns)
    y, state, again, twice = pack_again(jnp.asarray(start))
    assert max(differences(state, twice)) < 1e-12
    # Quaternions may differ in sign, angles by revolutions; other unknowns are equal.
    turns = np.abs(np.asarray(again - y)) / (2 * np.pi)
    plain, _ = model.layout.where
    np.testing.assert_allclose(turns[plain] - np.round(turns[plain]), 0, atol=1e-12)
    assert len(model.coordinate_labels) == model.layout.num_positions
    assert len(set(unknown_names(model))) == model.num_unknowns


def test_trees_of_hinges_have_no_singularity():
    problem = rj.problems.chain(1, "revolute")
    model = rj.Relative(problem.system, rj.RodriguesParameters(), recharting=False)
    run = rj.simulate(model, problem.state0, 0.1)
    assert run.result == rj.RESULTS.successful
    assert model.num_unknowns == 2


def test_loops_are_closed_by_projection():
    model = systems.model("four-bar", rj.Relative)
    y = model.encode(systems.case("four-bar").state) + 1e-3 * jnp.arange(6.0)
    drift = jax.jit(lambda y: (model.drift(0.0, y), model.drift(0.0, model.project(0.0, y))))
    before, after = drift(y)
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
