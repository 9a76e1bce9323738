"""Mass matrix, bias forces, inverse dynamics, Jacobians, impulses: against differentiation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.mechanics.dynamics.loads import apply_mass
from rigidjax.mechanics.dynamics.loops import loop_gradient
from rigidjax.mechanics.kinematics.constraints import constraint_jacobian

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


MODELS = {
    "free bodies": lambda: rj.NullSpace(rj.problems.free_body().system),
    "space rates": lambda: rj.NullSpace(rj.problems.free_body().system, rates="space"),
    "top": lambda: rj.NullSpace(rj.problems.heavy_top().system),
    "top in space rates": lambda: rj.NullSpace(rj.problems.heavy_top().system, rates="space"),
    "free and jointed": lambda: rj.NullSpace(rj.problems.two_bodies().system),
}


@pytest.mark.parametrize("name", MODELS)
def test_equations_of_motion_balance(name):
    model = MODELS[name]()
    problem = {"free and jointed": rj.problems.two_bodies}
    problem |= {"top": rj.problems.heavy_top, "top in space rates": rj.problems.heavy_top}
    state = problem.get(name, rj.problems.free_body)().state0

    @eqx.filter_jit
    def evaluate(model, state):
        y = model.pack(state)
        rate = model.vector_field(T, y)
        here = slice(model.layout.num_positions, model.layout.num_positions + model.num_rates)
        nu, M = y[here], model.mass_matrix(T, y)
        kinetic = 0.5 * nu @ M @ nu
        potential = model.energy(T, y.at[here].set(0.0))
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


KICK, TWIST = (1.0, -2.0, 0.5), (0.1, 0.2, 0.3)


@pytest.fixture(scope="module")
def four_bar():
    """Return the model and quantities of its initial state, in one compiled function."""
    problem = rj.problems.four_bar(thickness=0.05)
    model = rj.Relative(problem.system)

    @jax.jit
    def evaluate(y):
        rates_dot = model.vector_field(0.0, y)[3:]
        placed = model.configuration(0.0, y)
        prepared, places = placed.prepared, placed.joint_frames
        loops = loop_gradient(prepared, placed.t, placed.poses, places)
        N = jnp.linalg.svd(loops.matrix)[2][-1] * loops.scale
        after = model.apply_impulse(0.0, y, "coupler", KICK, POINT, TWIST)
        before, behind = model.decode(0.0, y), model.decode(0.0, after)
        linear = behind.velocity - before.velocity
        angular = behind.angular_velocity - before.angular_velocity
        return {
            "rates dot": rates_dot,
            "free motion": N,
            "motors": model.inverse_dynamics(0.0, y, rates_dot + 2.0 * N),
            "jacobian": constraint_jacobian(prepared, 0.0, places).reshape(-1, 18),
            "change": (after - y, jnp.concatenate([linear, angular], 1)),
            "momenta": apply_mass(prepared, linear, angular),
            "turn": model.forward_kinematics(0.0, y)["coupler"][1],
        }

    values = evaluate(model.encode(problem.state0))
    return model, jax.tree.map(np.asarray, values)


def test_actuated_joint_of_a_loop(four_bar):
    """One motor for one freedom: it causes the accelerations, and does the same power."""
    model, at = four_bar
    y, wanted = model.encode(rj.problems.four_bar(thickness=0.05).state0), at["rates dot"]
    N, all_motors = at["free motion"], at["motors"]
    label = model.rate_labels[0]

    def motor(scale):
        return model.inverse_dynamics(0.0, y, wanted + scale * N, actuated=[label])

    tau, tangent = jax.jvp(jax.jit(motor), (2.0,), (1.0,))
    np.testing.assert_array_equal(tau[1:], 0)
    np.testing.assert_allclose(N @ tau, N @ all_motors, rtol=1e-10)
    np.testing.assert_allclose(tangent, tau / 2.0, atol=1e-10)
    np.testing.assert_allclose(jax.jacrev(motor)(2.0), tangent, atol=1e-11)
    moved = model.forward_dynamics(0.0, y, tau)
    np.testing.assert_allclose(moved, wanted + 2.0 * N, atol=1e-10)
    # More motors than freedoms: all of them are the least there is.
    both = model.inverse_dynamics(0.0, y, wanted + 2.0 * N, actuated=model.rate_labels)
    np.testing.assert_allclose(both, all_motors, atol=1e-10)
    # None is needed where the mechanism moves as it does by itself.
    none = model.inverse_dynamics(0.0, y, wanted, actuated=[])
    np.testing.assert_array_equal(none, 0)
    with pytest.raises(ValueError, match="cannot cause these accelerations: forces are missing"):
        model.inverse_dynamics(0.0, y, wanted + 2.0 * N, actuated=[])
    with pytest.raises(ValueError, match=r"the joint '.*' closes a loop.*name it before another"):
        closing = model.system.joints[model.system.topology.loops[0]].name
        model.inverse_dynamics(0.0, y, wanted, actuated=closing)


def test_actuated_joints_of_a_tree(at_random):
    model, y = at_random
    labels = model.rate_labels
    missing = model.inverse_dynamics(T, y, jnp.zeros(5))
    every = model.inverse_dynamics(T, y, jnp.zeros(5), actuated=labels)
    np.testing.assert_allclose(every, missing, rtol=1e-14)
    # Accelerations under one motor need that motor alone, in every lane.
    push = jnp.zeros(5).at[0].set(0.7)
    rates_dot = model.forward_dynamics(T, y, push)
    found = jax.vmap(lambda a: model.inverse_dynamics(T, y, a, actuated=labels[0]))(
        jnp.stack([rates_dot, rates_dot + 1.0])
    )
    np.testing.assert_allclose(found[0], push, atol=1e-10)
    assert np.isnan(found[1]).all()
    with pytest.raises(
        ValueError, match=rf"missing elsewhere.*largest missing force is at '{labels[4]}'"
    ):
        wanted = rates_dot + jnp.linalg.solve(model.mass_matrix(T, y), jnp.eye(5)[4])
        model.inverse_dynamics(T, y, wanted, actuated=labels[0])
    with pytest.raises(ValueError, match=r"takes joints with free rates; got 'hing'. Did you mean"):
        model.inverse_dynamics(T, y, rates_dot, actuated=["hing"])


def test_impulse_respects_all_joints(four_bar):
    """The reference uses the constraints of all joints on the twists of all bodies."""
    model, at = four_bar
    unknowns, change = at["change"]
    np.testing.assert_array_equal(unknowns[:3], 0)
    index = [body.name for body in model.system.bodies].index("coupler")
    momenta = at["momenta"].copy()
    momenta[index, :3] -= KICK
    momenta[index, 3:] -= np.cross(POINT, at["turn"].T @ np.array(KICK)) + TWIST
    G = at["jacobian"]
    left = np.linalg.lstsq(G.T, momenta.ravel(), rcond=None)[0]
    np.testing.assert_allclose(G.T @ left, momenta.ravel(), atol=1e-11)
    np.testing.assert_allclose(G @ change.ravel(), 0, atol=1e-11)


def test_invalid_arguments_raise(at_random):
    model, y = at_random
    with pytest.raises(ValueError, match=r"shape \(5,\).*hinge"):
        model.inverse_dynamics(T, y, jnp.zeros(4))
    with pytest.raises(ValueError, match="no body called 'b9'"):
        model.jacobian(T, y, "b9")
    with pytest.raises(ValueError, match="axes"):
        model.jacobian(T, y, "b1", axes="world")
    with pytest.raises(ValueError, match="`armature` of a joint is not supported"):
        rj.Absolute(model.system)
