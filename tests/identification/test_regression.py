"""Linear regression of inertial parameters: the matrix, base parameters, consistent solutions."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

import rigidjax as rj
from rigidjax import identification as ident
from rigidjax.system.dynamics import motion
from rigidjax.system.jointed import JointedMechanics, Twists
from rigidjax.system.placing import tree_poses
from rigidjax.system.trees import tree_rates

FRICTION = ("viscous", "coulomb", "offset")


def planar_arm(gravity=-9.81):
    """Two links in the x-z plane; the frame of each is at its joint."""
    moments = (0.02, 0.03, 0.04)
    bodies = [
        rj.Body("upper", 1.3, moments),
        rj.Body("fore", 0.7, moments, position=(0.25, 0.0, 0.0)),
    ]
    joints = [
        rj.Revolute("ground", "upper", (0, 0, 0), (0, 1, 0), name="shoulder"),
        rj.Revolute("upper", "fore", (0.25, 0, 0), (0, 1, 0), name="elbow"),
    ]
    return rj.System(bodies, joints, rj.Gravity((0, 0, gravity)))


def mixed_tree(motions=(None, None, None)):
    """A hinge, a slider turned round and a hinge in general position, with springs."""
    p = (0.5, 0.5, -0.5, 0.5)
    inertia = np.array([[0.5, 0.02, -0.1], [0.02, 0.6, 0.05], [-0.1, 0.05, 0.7]])
    bodies = [
        rj.Body("a", 1.3, inertia, (0.2, 0.1, 0.3), p),
        rj.Body("b", 0.7, (0.1, 0.15, 0.2), (0.5, -0.2, 0.6)),
        rj.Body("c", 2.0, 0.3 * inertia, (0.9, 0.3, 0.1), p),
    ]
    joints = [
        rj.Revolute("ground", "a", (0, 0.1, 0), (0.1, 0.3, 1.0), motions[0], "first"),
        rj.Prismatic("b", "a", (0, 1, 0.2), motions[1], name="second"),
        rj.Revolute("b", "c", (0.4, 0, 0), (1, 1, 0), motions[2], "third"),
    ]
    forces = [
        rj.Gravity((0.3, -1, -9.81)),
        rj.Spring("a", "c", (0, 0, 0), (0.9, 0.5, 0.1), 5.0, 0.2),
    ]
    return rj.System(bodies, joints, forces)


class Swing(eqx.Module):
    """A motion whose numbers are leaves, so that joints with it are of one kind."""

    size: jax.Array
    rate: jax.Array

    def __call__(self, t):
        return self.size * jnp.sin(self.rate * t)


def excitation(joints, count=200, seed=0):
    """Sums of three sines: coordinates, rates, accelerations, (count, joints) each."""
    rng = np.random.default_rng(seed)
    size, phase, rate = rng.normal(size=(3, joints, 3))
    rate = 2 + 2 * np.abs(rate)
    angle = rate * np.linspace(0, 4, count)[:, None, None] + phase
    return (
        np.sum(size * np.sin(angle), axis=2),
        np.sum(size * rate * np.cos(angle), axis=2),
        -np.sum(size * rate**2 * np.sin(angle), axis=2),
    )


PLANTED = np.concatenate(
    [
        ident.inertial_parameters(planar_arm()) * 0,
        [0.3, 0.2, 0.1, 0.15, 0.02, -0.03],
    ]
)
PLANTED[:10] = rj.MassProperties(2.0, (0.12, 0.01, -0.02), (0.03, 0.04, 0.02)).parameters()
PLANTED[10:20] = rj.MassProperties(1.1, (0.1, -0.02, 0.03), (0.02, 0.025, 0.02)).parameters()


def arm_data(noise, count=200, seed=0, terms=FRICTION):
    """The planar arm with the planted parameters, and noise on its torques."""
    moved = excitation(2, count, seed)
    zero = np.zeros((count, 2))
    exact = ident.joint_data(planar_arm(), *moved, zero, terms=terms)
    torques = exact.matrix @ PLANTED[: exact.matrix.shape[2]]
    torques += noise * np.random.default_rng(seed + 1).normal(size=torques.shape)
    return ident.joint_data(planar_arm(), *moved, torques, terms=terms)


@pytest.fixture(scope="module")
def exact():
    return arm_data(0.0)


@pytest.fixture(scope="module")
def noisy():
    return ident.regress(arm_data(0.5, 25), noise=[0.5, 0.5])


# The matrix.


def test_driven_joints_need_what_the_regressor_says():
    """Against the multipliers of prescribed motions, another way through the package."""
    motions = [Swing(jnp.asarray(0.7 - 0.2 * i), jnp.asarray(2.0 + i)) for i in range(3)]
    t = jnp.asarray(0.4)
    q = np.array([m(t) for m in motions])
    v = np.array([jax.grad(m)(t) for m in motions])
    a = np.array([jax.grad(jax.grad(m))(t) for m in motions])
    free = mixed_tree()
    names = rj.rate_labels(free)
    data = ident.joint_data(free, q[None], v[None], a[None], np.zeros((1, 3)))
    known = data.torques[0]
    found = data.matrix[0] @ np.asarray(ident.inertial_parameters(free)) - known
    driven = rj.NullSpace(mixed_tree(motions))
    y = driven.encode(rj.joint_states(free, q, v), t)
    reactions = driven.reactions(t, y)
    expected = [reactions[name].drive for name in names]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_free_flight_needs_no_force():
    """A free body with a hinge on it: accelerations of the simulation are those without force."""
    bodies = [rj.Body("a", 1.0, (0.1, 0.2, 0.25)), rj.Body("b", 0.4, (0.02, 0.03, 0.04), (1, 0, 0))]
    system = rj.System(
        bodies, rj.Revolute("a", "b", (0.5, 0.1, 0), (0, 1, 0)), rj.Gravity((0, 0, -9.81))
    )
    rng = np.random.default_rng(0)
    start = system.reference_state()
    state = rj.State(start.position, start.orientation, *rng.normal(size=(2, 2, 3)))
    state = rj.consistent_state(system, state)
    mechanics = JointedMechanics(system)
    of = _motion(mechanics, state)
    Y = ident.regressor(rj.NullSpace(system), state, of)
    assert Y.shape == (7, 20)
    assert rj.rate_labels(system)[:3] == ("a.vx", "a.vy", "a.vz")
    np.testing.assert_allclose(Y @ ident.inertial_parameters(system), 0, atol=1e-12)
    # Not because the matrix is zero.
    assert np.abs(Y).max() > 1


@jax.jit
def _motion(mechanics, state):
    R = jax.vmap(rj.Quaternion().to_matrix)(state.orientation)
    poses = mechanics.poses(state.position, R, jnp.zeros(0))
    places, t = mechanics.place(poses), jnp.zeros(())
    nu = tree_rates(mechanics, t, places, Twists(state.velocity, state.angular_velocity))
    return motion(mechanics, t, poses, places, nu).derivatives


def test_states_and_joint_coordinates_give_the_same_matrix(exact):
    q, v, a = excitation(2)
    states = rj.joint_states(planar_arm(), q, v)
    Y = ident.regressor(planar_arm(), states, a)
    np.testing.assert_allclose(Y, exact.matrix[:, :, :20], atol=1e-12)
    np.testing.assert_array_equal(exact.labels[:3], ["upper.m", "upper.mx", "upper.my"])


def test_joint_states_are_consistent_and_keep_their_turns():
    system, q = mixed_tree(), np.array([7.3, -0.4, 0.9])
    mechanics = JointedMechanics(system)

    @jax.jit
    def placed(q, state):
        t, poses = jnp.zeros(()), tree_poses(mechanics, q)
        places = mechanics.place(poses)
        twists = Twists(state.velocity, state.angular_velocity)
        rate = mechanics.constraint_rate(t, places, twists)
        return mechanics.coordinates(places), mechanics.constraint(t, places), rate, poses

    state = rj.joint_states(system, q, np.array([0.3, -1.2, 0.8]))
    found, gap, rate, poses = placed(q, state)
    np.testing.assert_allclose(np.concatenate([found[j] for j in range(3)]), q, atol=1e-14)
    np.testing.assert_allclose(np.concatenate([gap, rate]), 0, atol=1e-14)
    R = jax.vmap(rj.Quaternion().to_matrix)(state.orientation)
    np.testing.assert_allclose(R, poses.rotations[:-1], atol=1e-14)


# Base parameters.


@pytest.mark.parametrize(
    ("gravity", "count"),
    [(-9.81, 6), (0.0, 4)],
)
def test_count_of_a_planar_arm(gravity, count):
    """Two joint inertias, two first moments of the outer link, and two of the inner under gravity.

    Khalil, Dombre (2004), Modeling, Identification and Control of Robots, Section 9.4.
    """
    data = ident.joint_data(planar_arm(gravity), *excitation(2), np.ones((200, 2)))
    base = ident.base_parameters(data.matrix.reshape(400, -1), data.labels)
    assert base.rank == count
    assert base.rank == np.linalg.matrix_rank(data.matrix.reshape(400, -1), tol=1e-9)
    assert "upper.Iyy + 0.0625 fore.m" in base.expressions
    assert "fore.Izz" in base.idle and f"{count} base parameters of 20" in str(base)


def test_combinations_reproduce_the_matrix(rng):
    system = mixed_tree()
    q, v, a = excitation(3)
    data = ident.joint_data(system, q, v, a, np.ones((200, 3)), terms=("rotor",))
    rows = data.matrix.reshape(600, -1)
    base = ident.base_parameters(rows, data.labels)
    assert base.rank == np.linalg.matrix_rank(rows, tol=1e-9)
    assert np.count_nonzero(base.singular_values > 1e-9) == base.rank
    pi = rng.normal(size=rows.shape[1])
    np.testing.assert_allclose(
        rows[:, base.chosen] @ base.combinations @ pi, rows @ pi, atol=1e-9 * np.abs(rows).max()
    )
    assert 1 < base.condition < 1e6


# Least squares.


def test_planted_parameters_are_recovered(exact):
    found = ident.regress(exact)
    np.testing.assert_allclose(found.values, found.base.combinations @ PLANTED, atol=1e-11)
    assert found.rms.max() < 1e-12 and "upper.mx + 0.25 fore.m" in str(found)


def test_standard_deviations_are_those_of_repetitions(exact):
    """The errors of 200 data sets, in units of their standard deviation, have variance one."""
    noise = np.array([0.4, 0.1])
    base = ident.regress(exact, noise=noise)
    truth = base.base.combinations @ PLANTED
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(200):
        torques = exact.matrix @ PLANTED + noise * rng.normal(size=exact.torques.shape)
        found = ident.regress(_with(exact, torques), noise=noise)
        errors.append((found.values - truth) / found.std)
    # 12 times 200 squares: a standard deviation of 0.03 about 1.
    assert abs(np.mean(np.square(errors)) - 1) < 0.12
    estimated = ident.regress(_with(exact, torques))
    np.testing.assert_allclose(estimated.noise, noise, rtol=0.15)
    assert not estimated.noise_is_known and found.noise_is_known


def _with(data, torques):
    return dataclasses.replace(data, torques=torques)


def test_agrees_with_identify():
    """A pendulum driven by a known torque: angles explain the same body as accelerations do."""
    law = lambda t: 3 * jnp.sin(2 * t) + jnp.cos(5 * t)  # noqa: E731
    length, mass, moment = 0.4, 1.3, 0.05

    def pendulum(mass, moment, *motor):
        body = rj.Body("bob", mass, (moment,) * 3, (length, 0, 0))
        hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 0, 1), name="hinge")
        return rj.System(body, hinge, [rj.Gravity((0, -9.81, 0)), *motor])

    start, sensor = pendulum(1.0, 0.1, rj.Motor("hinge", law)), rj.JointCoordinate("hinge")

    def swing(ts, y):
        return y[1], (law(ts) - mass * 9.81 * length * np.cos(y[0])) / (moment + mass * length**2)

    ts = np.linspace(0, 2, 41)
    path = solve_ivp(swing, (0, 2), [0, 0], "DOP853", ts, rtol=1e-12, atol=1e-12)
    q, v = path.y
    a = np.array([swing(t, y)[1] for t, y in zip(ts, path.y.T, strict=True)])
    fit = rj.identify(
        rj.NullSpace(start),
        rj.Measurements(ts, {sensor: q}, {sensor: 1e-3}),
        [
            rj.Parameter("m", lambda e: e.model.system.bodies[0].mass, ident.Positive()),
            rj.Parameter(
                "I",
                lambda e: e.model.system.bodies[0].inertia,
                ident.PrincipalInertia(fixed=("I1", "I2")),
            ),
        ],
        projection=False,
        horizons=(1.0,),
    )
    motion = (x[:, None] for x in (q, v, a, np.asarray(law(ts))))
    linear = ident.regress(ident.joint_data(pendulum(1.0, 0.1), *motion), noise=[1e-3])
    assert linear.base.rank == 3
    identified = ident.inertial_parameters(fit.model.system)
    # As accurate as the simulations in the fit, at their tolerance of 1e-8.
    np.testing.assert_allclose(
        linear.base.combinations @ identified, linear.values, rtol=1e-6, atol=1e-7
    )


# Consistent solutions.


def test_consistent_solution_of_exact_data_is_exact(exact):
    linear = ident.regress(exact, noise=[0.01, 0.01])
    found = ident.consistent_regression(linear, weight=1e-6)
    truth = linear.base.combinations @ PLANTED
    np.testing.assert_allclose(linear.base.combinations @ found.parameters, truth, atol=1e-8)
    assert found.terms["shoulder.viscous"] == pytest.approx(0.3, abs=1e-8)
    rebuilt = ident.joint_data(found.system, *excitation(2), np.zeros((200, 2)))
    own = rebuilt.matrix @ np.asarray(ident.inertial_parameters(found.system))
    friction = exact.matrix[:, :, 20:] @ found.parameters[20:]
    np.testing.assert_allclose(own + friction, exact.torques, atol=1e-6)


@pytest.mark.parametrize("weight", [1e-4, 1.0, 100.0])
def test_always_positive_definite(weight):
    """Few and very noisy torques, of which the linear solution makes masses that are negative."""
    for seed in range(5):
        linear = ident.regress(arm_data(3.0, 12, seed))
        found = ident.consistent_regression(linear, weight=weight)
        for body in found.bodies.values():
            assert np.linalg.eigvalsh(body.pseudo_inertia())[0] > 0
        assert all(value > 0 for label, value in found.terms.items() if "offset" not in label)
    assert min(linear.values[:3]) < 0 or min(linear.values[6:10]) < 0


def test_same_minimum_in_log_cholesky_parameters(noisy):
    """The other coordinates, another minimiser, another derivative."""
    weight = 0.5
    found = ident.consistent_regression(noisy, weight=weight)
    data, system = noisy.data, noisy.data.system
    prior = jnp.stack([b.mass_properties.pseudo_inertia() for b in system.bodies])
    sizes = np.abs(noisy.parameters[20:24])

    def cost(x):
        bodies = [
            rj.MassProperties.from_log_cholesky(x[:10]),
            rj.MassProperties.from_log_cholesky(x[10:20]),
        ]
        friction = sizes * jnp.exp(x[20:24])
        pi = jnp.concatenate([*(b.parameters() for b in bodies), friction, x[24:]])
        left = (data.matrix @ pi - data.torques) / noisy.noise
        total = 0.5 * jnp.sum(left**2)
        for body, start in zip(bodies, prior, strict=True):
            ratio = jnp.linalg.solve(start, body.pseudo_inertia())
            total += weight * (jnp.trace(ratio) - jnp.linalg.slogdet(ratio)[1] - 4)
        return total + weight * jnp.sum(jnp.exp(x[20:24]) - x[20:24] - 1)

    start = np.concatenate(
        [*(b.mass_properties.log_cholesky() for b in system.bodies), np.zeros(6)]
    )
    slope = jax.jit(jax.value_and_grad(cost))
    result = minimize(
        lambda x: tuple(map(np.asarray, slope(x))),
        start,
        jac=True,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    left = (data.torques_of(found.parameters) - data.torques) / noisy.noise
    reached = 0.5 * np.sum(left**2) + weight * found.divergence
    assert result.fun == pytest.approx(reached, rel=1e-10)
    np.testing.assert_allclose(np.exp(result.x[20:24]) * sizes, found.parameters[20:24], rtol=1e-5)
    np.testing.assert_allclose(np.exp(2 * result.x[0]), found.bodies["upper"].mass, rtol=1e-5)


def test_prior_does_not_depend_on_the_axes(noisy):
    """The same arm, described in frames that are turned: the same bodies are found."""
    p = np.array([0.5, 0.5, 0.5, 0.5])
    bodies = []
    for body in planar_arm().bodies:
        turned = body.mass_properties.transformed(_matrix(p).T, jnp.zeros(3))
        bodies.append(rj.Body(body.name, body.mass, turned.inertia, body.position, p))
    system = rj.System(bodies, planar_arm().joints, planar_arm().forces)
    moved = excitation(2, 25)
    data = ident.joint_data(system, *moved, noisy.data.torques, terms=FRICTION)
    other = ident.consistent_regression(ident.regress(data, noise=[0.5, 0.5]))
    found = ident.consistent_regression(noisy)
    assert other.divergence == pytest.approx(found.divergence, rel=1e-9)
    for name, body in found.bodies.items():
        back = other.bodies[name].transformed(_matrix(p), jnp.zeros(3))
        np.testing.assert_allclose(back.parameters(), body.parameters(), atol=1e-9)


def _matrix(p):
    return rj.Quaternion().to_matrix(jnp.asarray(p))


# Bad input.


def ground_hinge(**options):
    body = rj.Body("bob", 1.0, (0.1, 0.1, 0.1))
    hinge = rj.Revolute("ground", "bob", (0, 0, 0), (0, 0, 1), name="hinge", **options)
    return rj.System(body, hinge)


def test_models_that_have_no_regressor():
    state, rate = ground_hinge().reference_state(), np.zeros(1)
    with pytest.raises(TypeError, match="takes a `System`, or a formulation of one; got Fixed"):
        ident.regressor(rj.NullSpace(rj.FixedPointBody((1, 1, 1))), state, rate)
    with pytest.raises(ValueError, match="'hinge' is prescribed: leave `motion` out"):
        ident.regressor(ground_hinge(motion=lambda t: t), state, rate)
    motor = rj.System(ground_hinge().bodies, ground_hinge().joints, rj.Motor("hinge", 1.0))
    with pytest.raises(ValueError, match="Leave the `Motor` on 'hinge' out"):
        ident.regressor(motor, state, rate)
    four_bar = rj.problems.four_bar()
    with pytest.raises(ValueError, match="takes a tree; the joints .* close loops"):
        ident.regressor(four_bar.system, four_bar.state0, rate)
    with pytest.raises(ValueError, match=r"shape \(1,\), one column for each of \['hinge'\]"):
        ident.regressor(ground_hinge(), state, np.zeros(2))


def test_what_joint_coordinates_do_not_place():
    body = rj.Body("bob", 1.0, (0.1, 0.1, 0.1))
    with pytest.raises(ValueError, match="do not place the body 'bob', which is free"):
        rj.joint_states(rj.System(body), np.zeros(6))
    ball = rj.System(body, rj.Spherical("ground", "bob", (0, 0, 0)))
    with pytest.raises(
        ValueError, match="child of the Spherical .*: only lengths and one angle do"
    ):
        rj.joint_states(ball, np.zeros(3))
    cross = rj.System(body, rj.Universal("ground", "bob", (0, 0, 0), (1, 0, 0), (0, 1, 0)))
    with pytest.raises(
        ValueError, match="child of the Universal .*: only lengths and one angle do"
    ):
        rj.joint_states(cross, np.zeros(2))
    with pytest.raises(ValueError, match="is prescribed; leave `motion` out where"):
        rj.joint_states(ground_hinge(motion=lambda t: t), np.zeros(0))
    with pytest.raises(ValueError, match="close loops. Give states"):
        rj.joint_states(rj.problems.four_bar().system, np.zeros(3))
    with pytest.raises(ValueError, match=r"take shape \(1,\) or \(T, 1\)"):
        rj.joint_states(ground_hinge(), np.zeros(2))


def test_bad_data():
    one = np.zeros((3, 1))
    with pytest.raises(ValueError, match=r"rates=...\)` must have shape \(T, 1\)"):
        ident.joint_data(ground_hinge(), one, np.zeros(3), one, one)
    with pytest.raises(ValueError, match="torques=.* is not finite at sample 2"):
        ident.joint_data(ground_hinge(), one, one, one, np.array([[0.0], [0.0], [np.nan]]))
    with pytest.raises(ValueError, match="needs as many samples of each"):
        ident.joint_data(ground_hinge(), one, one, one, np.zeros((4, 1)))
    with pytest.raises(ValueError, match="takes of .*'viscous'.*; got 'stiction'"):
        ident.joint_data(ground_hinge(), one, one, one, one, terms=("stiction",))
    with pytest.raises(ValueError, match="a label of its own; got .'bob.m'. twice"):
        ident.joint_data(ground_hinge(), one, one, one, one, extra={"bob.m": one})


def test_bad_arguments_of_the_solutions(noisy, exact):
    with pytest.raises(ValueError, match="a label for each column; got shape"):
        ident.base_parameters(np.zeros((3, 2)), ["a"])
    with pytest.raises(ValueError, match="must be finite numbers"):
        ident.base_parameters(np.full((3, 1), np.nan), ["a"])
    with pytest.raises(ValueError, match="is zero: no parameter acts"):
        ident.base_parameters(np.zeros((3, 1)), ["a"])
    with pytest.raises(ValueError, match="must be positive and finite, N m"):
        ident.regress(exact, noise=[1.0, 0.0])
    few = arm_data(0.0, 3)
    with pytest.raises(ValueError, match="6 torques for 6 base parameters"):
        ident.regress(few)
    with pytest.raises(ValueError, match=r"weight=...\)` must be positive; got 0"):
        ident.consistent_regression(noisy, weight=0)
    with pytest.raises(ValueError, match="no body called 'forearm'. Did you mean 'fore'"):
        ident.consistent_regression(noisy, prior={"forearm": noisy})
    rod = rj.MassProperties(1.0, (0, 0, 0), (0.0, 0.1, 0.1))
    with pytest.raises(ValueError, match="prior of 'fore' has no positive definite"):
        ident.consistent_regression(noisy, prior={"fore": rod})
    idle = ident.joint_data(
        planar_arm(), *excitation(2), exact.torques, extra={"idle": np.zeros((200, 2))}
    )
    with pytest.raises(ValueError, match=r"\['idle'\] have no prior, and the data do not"):
        ident.consistent_regression(ident.regress(idle))


def test_bodies_that_cannot_be_exchanged():
    with pytest.raises(ValueError, match=r"must have shape \(20,\); got \(10,\)"):
        ident.with_inertial_parameters(planar_arm(), np.ones(10))
    with pytest.raises(ValueError, match="to which the Spring on .'a', 'c'. is attached"):
        ident.with_inertial_parameters(mixed_tree(), np.ones(30))
    with pytest.raises(ValueError, match="must be positive"):
        ident.with_inertial_parameters(planar_arm(), -np.ones(20))
