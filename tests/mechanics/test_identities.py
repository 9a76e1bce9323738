"""Identities of systems with joints at random states, all kinds of joints, all formulations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error, round_off
from mechanics import cases

import rigidjax as rj
from rigidjax.mechanics.dynamics.constraint_elimination import flatten_jacobian
from rigidjax.mechanics.dynamics.energies import kinetic_energy
from rigidjax.mechanics.kinematics.constraints import constraint_jacobian, constraint_rates
from rigidjax.mechanics.kinematics.trees import null_space as null_space_matrix
from rigidjax.rotations import so3

TIME = jnp.asarray(cases.T)
SMALL = (
    ("ground", "body 0", "Spherical"),
    ("body 1", "body 0", "Universal"),
    ("body 1", "body 2", "Screw"),
)


def small_tree() -> rj.System:
    parts = cases.bodies(np.random.default_rng(2), 3)
    joints = [cases.joint_cases.KINDS[kind](a, b) for a, b, kind in SMALL]
    return rj.System(parts, joints, cases.forces([body.name for body in parts]))


def motion(model, y):
    """Poses, twists and, from the vector field alone, their derivatives."""

    def decode_state(y, t):
        state = model.decode(t, y)
        return state.position, cases.attitudes(state), state.velocity, state.angular_velocity

    return jax.jvp(decode_state, (y, TIME), (model.vector_field(TIME, y), jnp.ones(())))


def everything(system, rotation, reactions, formulations):
    """Return all compared quantities as functions of the state."""
    null_space, absolute = rj.NullSpace(system, rotation), rj.Absolute(system, rotation)
    prepared = null_space.prepared_system

    def evaluate(state):
        out = {}
        y = null_space.pack(state, None, TIME)
        state = null_space.decode(TIME, y)
        poses, places, twists = null_space.motion(TIME, y)
        out["T"] = null_space_matrix(prepared, poses, places).reshape(6 * system.num_bodies, -1)
        out["G"] = flatten_jacobian(constraint_jacobian(prepared, TIME, places))
        out["rate"] = constraint_rates(prepared, TIME, places, twists)
        for name in formulations:
            model = {"null space": null_space, "absolute": absolute}[name]
            z = y if model is null_space else model.pack(state, None, TIME)
            of = {"energy": kinetic_energy_of(model, TIME, z), "momentum": model.momentum(TIME, z)}
            of["drift"] = jnp.stack(model.drift(TIME, z))
            of["motion"], of["rates"] = motion(model, z)
            if name in reactions:
                of["reactions"] = model.reactions(TIME, z)
            out[name] = of
        return out

    return evaluate


def kinetic_energy_of(model, t, y):
    return kinetic_energy(model.prepared_system, model.kinematics(t, y))


# Compiling costs nearly all the time.
FAST = {"xla_backend_optimization_level": 0}
REACTIONS = {"all": ("null space",), "small": ("absolute",)}
SYSTEMS = {"all": (cases.tree, cases.TREE), "small": (small_tree, SMALL)}
ONE, BOTH = ("null space",), ("null space", "absolute")


@functools.cache
def evaluate_everything(size, rotation, formulations, count=3):
    """`everything` at random states, one compilation."""
    build, joints = SYSTEMS[size]
    system, rng = build(), np.random.default_rng(6)
    states = cases.stack_states([cases.random_state(system, joints, rng) for _ in range(count)])
    function = jax.jit(
        jax.vmap(everything(system, rotation, REACTIONS[size], formulations)), compiler_options=FAST
    )
    return system, jax.tree.map(np.asarray, function(states))


CASES = [("all", rj.Quaternion(), ONE), ("small", rj.EulerAngles("ZYX"), BOTH)]
every_case = pytest.mark.parametrize(
    ("size", "rotation", "formulations"), CASES, ids=["all", "small"]
)


@every_case
def test_admissible_velocities_satisfy_the_constraints(size, rotation, formulations):
    system, out = evaluate_everything(size, rotation, formulations)
    T, G = out["T"], out["G"]
    assert error(G @ T, 0.0 * (G @ T)) < round_off(100)
    assert np.all(np.linalg.matrix_rank(T) == system.num_dof)
    assert np.all(np.linalg.matrix_rank(G) == 6 * system.num_bodies - system.num_dof)
    assert error(out["rate"], 0.0 * out["rate"]) < round_off(200)
    for model in formulations:
        assert out[model]["drift"].max() < round_off(200)


def test_formulations_agree():
    _, out = evaluate_everything(*CASES[1])
    one, two = out["null space"], out["absolute"]
    for a, b in zip(one["motion"], two["motion"], strict=True):
        assert error(a, b) < round_off(100)
    for a, b in zip(one["rates"], two["rates"], strict=True):
        # Both solve linear systems with condition numbers of about 1e3.
        assert error(a, b) < 1e-11
    assert error(one["energy"], two["energy"]) < round_off(100)
    for a, b in zip(one["momentum"], two["momentum"], strict=True):
        assert error(a, b) < round_off(100)


@every_case
def test_rates_of_poses_are_the_twists(size, rotation, formulations):
    _, out = evaluate_everything(size, rotation, formulations)
    for model in formulations:
        (_, R, v, omega), (x_dot, R_dot, _, _) = out[model]["motion"], out[model]["rates"]
        spin = np.asarray(jax.vmap(jax.vmap(so3.skew))(omega))
        assert error(x_dot, v) < round_off(20)
        assert error(R_dot, R @ spin) < round_off(200)


def apply_forces(system, x, R, v, omega):
    """Evaluate forces (space) and moments (body) of `cases.forces` explicitly, shape (K, L, 3)
    each.
    """
    mass = np.array([float(body.mass) for body in system.bodies])
    force = np.tile(mass[:, None] * np.array([0.3, -0.2, -9.81]), (len(x), 1, 1))
    moment = np.zeros_like(force)
    t, last = cases.T, system.num_bodies - 1
    push, follower = np.array([t, 2.0 - t, t * t]), np.array([1.0, -2.0, 0.5])
    force[:, 1] += push
    moment[:, 1] += np.cross([0.1, -0.4, 0.2], np.swapaxes(R[:, 1], 1, 2) @ push)
    force[:, last] += R[:, last] @ follower
    moment[:, last] += np.cross([0.3, 0.2, 0.1], follower)
    moment[:, 2] += np.sin(t) * R[:, 2, 2] - 0.3 * omega[:, 2]
    return force, moment


def masses(system):
    """Masses and tensors of inertia of all bodies."""
    mass = np.array([float(body.mass) for body in system.bodies])
    return mass, np.stack([np.asarray(body.inertia_tensor) for body in system.bodies])


def balance(system, motion, rates):
    """Return the force and moment that each body needs beside the applied ones, space
    components.
    """
    x, R, v, omega = motion
    force, moment = apply_forces(system, x, R, v, omega)
    mass, inertia = masses(system)
    spin = np.einsum("lij,klj->kli", inertia, omega)
    turn = np.einsum("lij,klj->kli", inertia, rates[3]) + np.cross(omega, spin) - moment
    return mass[:, None] * rates[2] - force, np.einsum("klij,klj->kli", R, turn)


def joint_wrenches(system, motion, reactions):
    """Sum of the reactions on each body, about its centre of mass, space components."""
    x, R, _, _ = motion
    start = system.reference_state()
    R0 = cases.matrices(start.orientation)
    index = {body.name: i for i, body in enumerate(system.bodies)}
    force, moment = np.zeros_like(x), np.zeros_like(x)
    for joint in system.joints:
        reaction, at = reactions[joint.name], np.asarray(joint.points()[1])
        child, parent = index.get(joint.child), index.get(joint.parent)
        point = np.broadcast_to(at, x[:, 0].shape)
        if child is not None:
            point = x[:, child] + R[:, child] @ R0[child].T @ (at - start.position[child])
        for body, sign in ((child, 1.0), (parent, -1.0)):
            if body is not None:
                arm = point - x[:, body]
                force[:, body] += sign * reaction.force
                moment[:, body] += sign * (reaction.moment + np.cross(arm, reaction.force))
    return force, moment


@every_case
def test_reactions_balance_every_body(size, rotation, formulations):
    system, out = evaluate_everything(size, rotation, formulations)
    (of,) = (out[name] for name in REACTIONS[size])
    wanted = balance(system, of["motion"], of["rates"])
    found = joint_wrenches(system, of["motion"], of["reactions"])
    for a, b in zip(found, wanted, strict=True):
        assert error(a, b) < 1e-11
    for joint in system.joints:
        driven = getattr(joint, "motion", None) is not None
        assert (of["reactions"][joint.name].drive is not None) == driven


def test_reactions_do_no_work_along_joints():
    system, out = evaluate_everything(*CASES[0])
    of = out["null space"]
    ball, hinge = (of["reactions"][system.joints[j].name] for j in (0, 1))
    size = np.abs(ball.force).max()
    assert np.abs(ball.moment).max() < 1e-12 * size
    axis = np.asarray(system.joints[1].frame())[:, 2]
    R = of["motion"][1][:, 0] @ cases.matrices(system.reference_state().orientation)[0].T
    assert np.abs(np.sum(hinge.moment * (R @ axis), axis=1)).max() < 1e-11 * size


@every_case
def test_power_of_all_forces_is_the_rate_of_kinetic_energy(size, rotation, formulations):
    system, out = evaluate_everything(size, rotation, formulations)
    for model in formulations:
        of = out[model]
        x, R, v, omega = of["motion"]
        _, _, v_dot, omega_dot = of["rates"]
        force, moment = apply_forces(system, x, R, v, omega)
        power = np.sum(force * v, axis=(1, 2)) + np.sum(moment * omega, axis=(1, 2))
        if size == "all":
            power = power + driving_power(system, out["null space"])
        mass, inertia = masses(system)
        rate = np.einsum("l,kli,kli->k", mass, v, v_dot)
        rate = rate + np.einsum("kli,lij,klj->k", omega, inertia, omega_dot)
        assert error(rate, power) < 1e-11
        energy = 0.5 * np.einsum("l,kli,kli->k", mass, v, v)
        energy = energy + 0.5 * np.einsum("kli,lij,klj->k", omega, inertia, omega)
        assert error(of["energy"], energy) < round_off(50)


def driving_power(system, of):
    """Power of the two prescribed motions: drive times the rate of the coordinate."""
    names = [joint.name for joint in system.joints if getattr(joint, "motion", None) is not None]
    assert len(names) == 2
    return sum(of["reactions"][name].drive * cases.joint_cases.MOTION_RATE for name in names)


def test_joints_conserve_the_momentum_of_free_systems():
    system, out = evaluate_everything(*CASES[0])
    out = out["null space"]
    x, R, v, omega = out["motion"]
    force, moment = balance(system, out["motion"], out["rates"])
    floating = system.topology.roots == system.topology.roots[5]
    assert np.flatnonzero(floating).tolist() == [5, 6, 7, 8, 9]
    # Joint forces have zero sum, as have their moments about the origin.
    total = np.sum(force[:, floating], axis=1)
    turn = np.sum((np.cross(x, force) + moment)[:, floating], axis=1)
    assert np.abs(total).max() < 1e-11 * np.abs(force).max()
    assert np.abs(turn).max() < 1e-11 * np.abs(moment).max()
    mass, inertia = masses(system)
    linear = np.einsum("l,kli->ki", mass, v)
    spin = np.einsum("klij,ljm,klm->ki", R, inertia, omega)
    angular = spin + np.einsum("l,kli->ki", mass, np.cross(x, v))
    for found, wanted in zip(out["momentum"], (linear, angular), strict=True):
        assert error(found, wanted) < round_off(50)
