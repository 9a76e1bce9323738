"""The problems: data, references, and that simulations reach them."""

import math

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems.cases import TOPS

import rigidjax as rj
from rigidjax import State, problems
from rigidjax.rotations import EulerAngles, euler_map
from tools.exact.references import ENDS, REFERENCES

BUILT = TOPS | {"symmetric_top case 2": lambda: problems.symmetric_top(case=2)}


def matrices(state):
    return jax.vmap(jax.vmap(euler_map))(state.orientation)


def errors(state, true):
    """Largest errors in R and in the body rates."""
    return (
        float(jnp.max(jnp.abs(matrices(state) - matrices(true)))),
        float(jnp.max(jnp.abs(state.angular_velocity - true.angular_velocity))),
    )


@pytest.mark.parametrize("name", [name for name in BUILT if name != "free_body"])
def test_simulation_reaches_the_reference(name):
    problem = BUILT[name]()
    model = rj.NullSpace(problem.system)
    sol = rj.simulate(model, problem.state0, problem.t1, rtol=1e-12, atol=1e-12)
    rotation, rate = errors(sol.states, problem.reference([problem.t1]))
    assert rotation < 1e-8
    assert rate < 1e-8


@pytest.mark.parametrize("build", BUILT.values(), ids=BUILT)
def test_reference_starts_at_the_initial_state(build):
    problem = build()
    if not problem.has_reference:
        with pytest.raises(ValueError, match="no closed form"):
            problem.reference([0.0])
        return
    start = jax.tree.map(lambda leaf: leaf[None], problem.state0)
    rotation, rate = errors(problem.reference([0.0]), start)
    assert rotation < 1e-14
    assert rate < 2e-14 * float(jnp.max(jnp.abs(problem.state0.angular_velocity)))


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("heavy_top", "heavy_top"),
        ("heavy_top_fast", "heavy_top_fast"),
        ("free_body", "free_body"),
        ("tennis_racket", "tennis_racket_1e-1"),
        ("tumbling_brick", "tumbling_brick"),
    ],
)
def test_problem_data_match_the_stored_references(name, stored):
    problem, (top, _) = problems.all()[name](), REFERENCES[stored]
    np.testing.assert_allclose(problem.system.inertia, top.inertia, rtol=1e-15)
    np.testing.assert_allclose(problem.state0.angular_velocity[0], top.omega, rtol=1e-15)
    assert problem.t1 == top.t1
    if top.weight_moment:
        moment = float(problem.system.potential.weight_moment)
        assert moment == pytest.approx(math.prod(top.weight_moment), rel=1e-15)
        half = math.pi * float(top.turn) / 2
        start = [math.cos(half), math.sin(half), 0, 0]
        np.testing.assert_allclose(problem.state0.orientation[0], start, rtol=1e-15)


@pytest.mark.parametrize("name", ["heavy_top", "heavy_top_fast", *ENDS])
def test_end_states_are_the_stored_references_to_the_last_bit(name):
    problem = problems.all()[name]()
    end = jax.tree.map(lambda leaf: leaf[0], problem.reference([problem.t1]))
    if name in ENDS:
        expected = State(*ENDS[name].to_arrays())
    else:
        orientation, omega = REFERENCES[name][1].to_arrays()
        expected = State(orientation=orientation, angular_velocity=omega)
    jax.tree.map(np.testing.assert_array_equal, end, expected)


def test_brick_is_within_a_billionth_of_a_degree():
    brick = problems.tumbling_brick()
    sol = rj.simulate(rj.NullSpace(brick.system), brick.state0, 30.0, rtol=1e-12, atol=1e-12)
    p, q = sol.states.orientation[0, 0], brick.reference([30.0]).orientation[0, 0]
    half_sine = jnp.minimum(jnp.linalg.norm(p - q), jnp.linalg.norm(p + q)) / 2
    assert math.degrees(4 * float(jnp.arcsin(half_sine))) < 1e-9
    np.testing.assert_allclose(
        np.degrees(brick.state0.angular_velocity[0]), [10, 20, 30], rtol=1e-15
    )


def test_heavy_top_has_the_orientation_of_the_paper():
    R = euler_map(problems.heavy_top().state0.orientation[0])
    s = math.sqrt(3) / 2
    np.testing.assert_allclose(R, [[1, 0, 0], [0, 0.5, -s], [0, s, 0.5]], atol=1e-15)


def test_racket_starts_at_the_angles_of_the_paper():
    racket = problems.tennis_racket(disturbance=1e-3)
    angles = EulerAngles("ZXZ").from_quaternion(racket.state0.orientation[0])
    np.testing.assert_allclose(angles, [math.pi / 3, math.pi / 4, math.pi / 2], rtol=1e-14)
    np.testing.assert_array_equal(racket.state0.angular_velocity, [[50.0, 1e-3, 1e-3]])


def test_racket_flips_at_the_times_of_the_paper():
    """With a disturbance of 1e-3 the racket flips at about 0.4 s and 1.2 s (Lang)."""
    racket = problems.tennis_racket(disturbance=1e-3)
    rate = racket.reference(np.linspace(0, 1.4, 701)).angular_velocity[:, 0, 0]
    changes = np.linspace(0, 1.4, 701)[1:][np.diff(np.sign(rate)) != 0]
    np.testing.assert_allclose(changes, [0.4, 1.2], atol=0.1)  # read off a figure


def test_disturbance_can_be_differentiated():
    def rate(disturbance):
        racket = problems.tennis_racket(disturbance)
        return racket.reference([0.2]).angular_velocity[0, 0, 1]

    step = 1e-6
    slope = (rate(0.1 + step) - rate(0.1 - step)) / (2 * step)
    assert jax.jvp(rate, (0.1,), (1.0,))[1] == pytest.approx(float(slope), rel=1e-6)


def test_steady_top_precesses_without_nutation():
    top = problems.steady_top()
    ts = np.linspace(0, 1, 21)
    R = matrices(top.reference(ts))[:, 0]
    np.testing.assert_allclose(R[:, 2, 2], 0.5, atol=1e-14)
    np.testing.assert_allclose(R[:, 0, 2], math.sqrt(0.75) * np.sin(10 * ts), atol=1e-14)


@pytest.mark.parametrize("case", [1, 2])
def test_symmetric_top_starts_with_the_rates_of_its_euler_angles(case):
    top = problems.symmetric_top(case=case)
    angles = jnp.array([0.0, math.pi / 9, 0.0])
    rates = jnp.array([{1: 0.0, 2: -10.0}[case], 0.0, 50.0])
    zxz = EulerAngles("ZXZ")
    np.testing.assert_allclose(
        zxz.angular_velocity(angles, rates), top.state0.angular_velocity[0], atol=1e-14
    )
    np.testing.assert_allclose(top.system.inertia, [9.25, 9.25, 1.8], rtol=1e-15)


def test_every_problem_has_a_description():
    for name, build in problems.all().items():
        problem = build()
        assert problem.name == name
        assert problem.title
        words = ("section", "check case", "benchmark", "unit tests", "made for this package")
        assert any(word in problem.source for word in words)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("tenis_racket", "no problem 'tenis_racket'. Did you mean 'tennis_racket'"),
        ("Heavy-Topp", "Did you mean 'heavy_top'"),
        ("xyz", "There are: free_body, heavy_top"),
    ],
)
def test_unknown_problem_suggests_the_nearest(wrong, message):
    assert problems.find("Heavy-Top") is problems.heavy_top
    with pytest.raises(ValueError, match=message):
        problems.find(wrong)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"`symmetric_top\(case=...\)` must be 1 or 2; got 3"):
        problems.symmetric_top(case=3)
    with pytest.raises(ValueError, match="no closed form and is known only at t1 = 10 s"):
        problems.heavy_top().reference([1.0, 10.0])
    with pytest.raises(ValueError, match=r"must have shape \(T,\); got \(\)"):
        problems.free_body().reference(1.0)


@pytest.mark.float32
def test_problems_run_in_the_precision_in_use():
    racket = problems.tennis_racket()
    dtype = jnp.result_type(float)
    assert {leaf.dtype for leaf in jax.tree.leaves(racket)} == {dtype}
    sol = rj.simulate(
        rj.NullSpace(racket.system),
        racket.state0,
        0.2,
        solver=diffrax.Dopri5(),
        rtol=1e-5,
        atol=1e-5,
    )
    _, rate = errors(sol.states, racket.reference([0.2]))
    assert sol.states.orientation.dtype == dtype
    assert rate < 0.05
