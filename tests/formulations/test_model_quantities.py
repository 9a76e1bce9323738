"""Mass matrix, bias forces, inverse dynamics, Jacobians, impulses: against differentiation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

T = 0.3
POINT = (0.1, -0.2, 0.05)


def arm():
    """Joints whose rates are the derivatives of their coordinates, with a spring and a motor."""
    at = (0.1, 0.0, 0.2)
    bodies = [
        rj.Body.box(f"b{i}", (0.3, 0.2, 0.1 + 0.1 * i), mass=1.0 + i, position=(0.3 * i, 0.1, 0.2))
        for i in range(4)
    ]
    joints = [
        rj.Revolute("ground", "b0", at, (1.0, 0.5, 0.2), name="hinge", armature=0.2, damping=0.1),
        rj.Universal("b0", "b1", at, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        rj.Screw("b2", "b1", at, (0.0, 1.0, 1.0), 0.5, armature=0.1),
        rj.Prismatic("b2", "b3", (1.0, 0.0, 0.3), name="slider", damping=0.4),
    ]
    forces = [rj.Gravity((0, 0, -9.81)), rj.TorsionSpring("slider", 3.0), rj.Motor("hinge", 0.7)]
    return rj.System(bodies, joints, forces)


@pytest.fixture(scope="module")
def at_random():
    model = rj.Relative(arm())
    y = jnp.asarray(np.random.default_rng(5).normal(size=model.num_unknowns))
    return model, y


def test_mass_matrix_and_bias_are_those_of_lagrange(at_random):
    model, y = at_random
    q, nu = jnp.split(y, 2)

    def potential(q):
        return model.energy(T, jnp.concatenate([q, jnp.zeros(5)]))

    def kinetic(q, nu):
        return model.energy(T, jnp.concatenate([q, nu])) - potential(q)

    @jax.jit
    def lagrange(q, nu):
        momentum = lambda q: jax.grad(kinetic, 1)(q, nu)  # noqa: E731
        change = jax.jvp(momentum, (q,), (nu,))[1]
        h = change - jax.grad(kinetic)(q, nu) + jax.grad(potential)(q)
        return jax.jacfwd(jax.grad(kinetic, 1), 1)(q, nu), h

    M, h = lagrange(q, nu)
    # The motor pushes, dampers hold back: rates of the hinge and of the slider, 0 and 4.
    h = h + jnp.zeros(5).at[0].set(-0.7 + 0.1 * nu[0]).at[4].set(0.4 * nu[4])
    np.testing.assert_allclose(model.mass_matrix(T, y), M, atol=1e-12)
    np.testing.assert_allclose(model.bias_forces(T, y), h, atol=1e-11)
    rates_dot = model.vector_field(T, y)[5:]
    np.testing.assert_allclose(rates_dot, -jnp.linalg.solve(M, h), atol=1e-10)
    tau = jnp.arange(5.0)
    found = model.inverse_dynamics(T, y, jnp.linalg.solve(M, tau - h))
    np.testing.assert_allclose(found, tau, atol=1e-10)
    found = model.forward_dynamics(T, y, tau)
    np.testing.assert_allclose(found, jnp.linalg.solve(M, tau - h), atol=1e-10)


@pytest.mark.exhaustive
def test_reactions_know_the_rotors(at_random):
    """Power of all reactions is zero where nothing is prescribed, rotors apart."""
    model, y = at_random
    other = rj.NullSpace(model.system)
    z = other.encode(model.decode(T, y), T)
    mine, theirs = model.reactions(T, y), other.reactions(T, z)
    assert max(_differences(mine, theirs)) < 1e-10
    b3 = model.system.bodies[3]
    acceleration = model.accelerations(T, y)
    k = model.kinematics(T, y).joints["slider"]
    pull = -3.0 * k.coordinates[0] - 0.4 * k.rates[0]
    force = mine["slider"].force + pull * k.forces[0] + b3.mass * jnp.array([0, 0, -9.81])
    np.testing.assert_allclose(force, b3.mass * acceleration.linear[3], atol=1e-10)


def _differences(first, second):
    both = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return [float(jnp.max(jnp.abs(a - b))) for a, b in both]


@pytest.mark.parametrize("axes", ["body", "space"])
def test_jacobian_is_the_gradient_of_velocities(at_random, axes):
    model, y = at_random
    rate = model.vector_field(T, y)

    def pose(y):
        x, R = model.forward_kinematics(T, y)["b2"]
        return x + R @ jnp.asarray(POINT), R

    (_, R), (v, R_dot) = jax.jvp(pose, (y,), (rate,))
    spin = R_dot @ R.T if axes == "space" else R.T @ R_dot
    omega = jnp.stack([spin[2, 1], spin[0, 2], spin[1, 0]])
    velocity = lambda y: model.jacobian(T, y, "b2", POINT, axes) @ y[5:]  # noqa: E731
    np.testing.assert_allclose(velocity(y), jnp.concatenate([v, omega]), atol=1e-12)
    # And its rate: the acceleration of the point is J nu' + J' nu.
    along = jax.jvp(velocity, (y,), (rate,))[1]
    found = model.jacobian_rate(T, y, "b2", POINT, axes) @ y[5:]
    found = found + model.jacobian(T, y, "b2", POINT, axes) @ rate[5:]
    np.testing.assert_allclose(found, along, atol=1e-10)


MODELS = {
    "free bodies": lambda: rj.NullSpace(rj.problems.free_body().system),
    "space rates": lambda: rj.NullSpace(rj.problems.free_body().system, rates="space"),
    "top": lambda: rj.NullSpace(rj.problems.heavy_top().system),
    "top in space rates": lambda: rj.NullSpace(rj.problems.heavy_top().system, rates="space"),
    "free and jointed": lambda: rj.NullSpace(rj.problems.two_bodies().system),
    "moving chart": lambda: rj.Relative(rj.problems.two_bodies().system, rj.RotationVector()),
}


@pytest.mark.parametrize("name", MODELS)
def test_equations_of_motion_balance(name):
    model = MODELS[name]()
    problem = {"free and jointed": rj.problems.two_bodies, "moving chart": rj.problems.two_bodies}
    problem |= {"top": rj.problems.heavy_top, "top in space rates": rj.problems.heavy_top}
    state = problem.get(name, rj.problems.free_body)().state0

    @eqx.filter_jit
    def evaluate(model, state):
        y = model.chart(state) if model.recharting else model.pack(state)
        rate = getattr(model.vector_field(T, y), "values", model.vector_field(T, y))
        values = getattr(y, "values", y)
        here = slice(model.layout.num_positions, model.layout.num_positions + model.num_rates)
        nu, M = values[here], model.mass_matrix(T, y)
        kinetic = 0.5 * nu @ M @ nu
        still = values.at[here].set(0.0)
        still = eqx.tree_at(lambda c: c.values, y, still) if values is not y else still
        potential = model.energy(T, still)
        last = model.system.bodies[-1].name if hasattr(model.system, "bodies") else "body"
        J = model.jacobian(T, y, last)
        twist = model.kinematics(T, y)
        omega = jnp.asarray(twist.angular_velocities[-1])
        return {
            "balance": (M @ rate[here], -model.bias_forces(T, y)),
            "energy": (kinetic, model.energy(T, y) - potential),
            "velocity": ((J @ nu)[3:], omega),
        }

    for key, (found, wanted) in evaluate(model, state).items():
        scale = 1 + np.max(np.abs(wanted))
        np.testing.assert_allclose(found / scale, wanted / scale, atol=1e-11, err_msg=key)
    assert len(model.rate_labels) == model.num_rates


@pytest.fixture(scope="module")
def four_bar():
    problem = rj.problems.four_bar(thickness=0.05)
    model = rj.Relative(problem.system)
    return model, model.encode(problem.state0)


def test_loops_take_a_part_of_the_forces(four_bar):
    model, y = four_bar
    rates_dot = model.vector_field(0.0, y)[3:]
    np.testing.assert_allclose(model.inverse_dynamics(0.0, y, rates_dot), 0, atol=1e-11)
    # Motions that the loop allows: one; the motors of least norm work along it alone.
    placed = model.placed(0.0, y)
    from rigidjax.system.constraints import loop_gradient

    loops = loop_gradient(placed.mechanics, placed.t, placed.poses, placed.places)
    N = np.linalg.svd(np.asarray(loops.matrix))[2][-1] * np.asarray(loops.scale)
    tau = np.asarray(model.inverse_dynamics(0.0, y, rates_dot + 2.0 * N))
    again = model.forward_dynamics(0.0, y, tau)
    np.testing.assert_allclose(again, rates_dot + 2.0 * N, atol=1e-10)
    M = np.asarray(model.mass_matrix(0.0, y))
    np.testing.assert_allclose(N @ tau, 2.0 * N @ M @ N, rtol=1e-10)
    scaled = tau * np.asarray(loops.scale)
    np.testing.assert_allclose(np.asarray(loops.matrix) @ scaled, 0, atol=1e-10)


def test_an_impulse_changes_velocities_as_all_joints_allow(four_bar):
    model, y = four_bar
    system = model.system
    kick = jnp.array([1.0, -2.0, 0.5])
    after = model.apply_impulse(0.0, y, "coupler", kick, POINT, (0.1, 0.2, 0.3))
    np.testing.assert_array_equal(after[:3], y[:3])
    # The same by the constraints of all joints on the twists of all bodies.
    placed = model.placed(0.0, y)
    G = placed.mechanics.constraint_jacobian(0.0, placed.places).reshape(-1, 18)
    before, behind = model.decode(0.0, y), model.decode(0.0, after)
    change = np.concatenate(
        [behind.velocity - before.velocity, behind.angular_velocity - before.angular_velocity], 1
    )
    momenta = np.asarray(placed.mechanics.momenta(change[:, :3], change[:, 3:])).copy()
    R = model.forward_kinematics(0.0, y)["coupler"][1]
    index = [body.name for body in system.bodies].index("coupler")
    momenta[index, :3] -= kick
    momenta[index, 3:] -= jnp.cross(jnp.asarray(POINT), R.T @ kick) + jnp.array([0.1, 0.2, 0.3])
    left = np.linalg.lstsq(np.asarray(G).T, momenta.ravel(), rcond=None)[0]
    np.testing.assert_allclose(np.asarray(G).T @ left, momenta.ravel(), atol=1e-11)
    np.testing.assert_allclose(np.asarray(G) @ change.ravel(), 0, atol=1e-11)


def test_messages(at_random):
    model, y = at_random
    with pytest.raises(ValueError, match=r"shape \(5,\).*hinge"):
        model.inverse_dynamics(T, y, jnp.zeros(4))
    with pytest.raises(ValueError, match="no body called 'b9'"):
        model.jacobian(T, y, "b9")
    with pytest.raises(ValueError, match="axes"):
        model.jacobian(T, y, "b1", axes="world")
    with pytest.raises(ValueError, match="armature"):
        rj.Absolute(model.system)
