"""Invariants of energy-momentum steps with every joint, none of which may do work."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum


def test_mean_gradient_is_the_secant():
    """All kinds of constraints: bilinear in poses, of fourth degree, and with an angle."""
    axis, point = (0.3, -0.5, 0.8), (0.25, 0.15, 0.05)
    joints = [
        rj.Distance("base", "distance", (0.1, 0.2, 0.1), (0.5, 0.4, 0.3)),
        rj.Screw("base", "screw", point, axis, 0.4),
        rj.Universal("base", "universal", point, (1, 0, 0), (0, 1, 0)),
        rj.Planar("base", "planar", point, axis),
    ]
    rng = np.random.default_rng(3)
    bodies = [rj.Body("base", 3.0, (0.5, 0.6, 0.7))]
    bodies += [
        rj.Body(joint.child, 1.0, (0.02, 0.05, 0.06), 0.4 * rng.normal(size=3) + 0.2)
        for joint in joints
    ]
    system = rj.System(bodies, joints)
    # All bodies turn as one at the start.
    state, spin = system.reference_state(), jnp.array([1.5, -2.0, 2.5])
    velocity = jnp.cross(spin, state.position)
    state = rj.State(
        state.position, state.orientation, velocity, jnp.broadcast_to(spin, velocity.shape)
    )
    sol = rj.simulate(
        rj.Absolute(system), state, 1.0, solver=EnergyMomentum(), dt=0.01, max_steps=128,
        ts=np.linspace(0.0, 1.0, 6),
    )  # fmt: skip
    assert np.ptp(sol.energy) < 1e-13 * sol.energy[0]
    assert np.max(np.ptp(sol.linear_momentum, axis=0)) < 1e-12
    assert np.max(np.ptp(sol.angular_momentum, axis=0)) < 1e-12
    assert np.max(sol.position_drift) < 1e-13
    # The joints do move: nothing turns as one any more.
    omega = sol.states.angular_velocity[-1]
    assert np.all(np.max(np.abs(omega[1:] - omega[0]), axis=1) > 0.01)


def test_gradient_of_a_screw_is_that_of_its_change():
    """For rotations up to nearly pi, and smooth at zero rotation."""
    joint = rj.Screw("ground", "a", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.4)
    multipliers = jnp.array([0.3, -0.2, 0.5, 0.7, -1.1])

    def pose(angle, tilt):
        c, s = jnp.cos(angle), jnp.sin(angle)
        R = jnp.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        d = jnp.array([0.1, 0.2, 0.4 * angle / (2 * jnp.pi)])
        return rj.joints.RelativePose(d, R @ rj.rotations.so3.exp(tilt), jnp.zeros(()))

    @jax.jit
    @jax.vmap
    def off(turn):
        first, last = pose(0.4, jnp.array([0.1, 0.0, 0.0])), pose(0.4 + turn, jnp.zeros(3))
        by_d, by_Q = joint.mean_gradient(first, last, jnp.zeros(()), multipliers)
        change = jax.tree.map(lambda a, b: b - a, first, last)
        work = jnp.sum(by_d * change.displacement) + jnp.sum(by_Q * change.rotation)
        gain = joint.constraint(last, 0.0) - joint.constraint(first, 0.0)
        return work - multipliers @ gain

    assert np.max(np.abs(off(jnp.array([0.0, 1e-9, 1e-3, 0.18, 0.2, 1.0, -2.0, 3.0])))) < 1e-14
    rate = jax.jit(jax.vmap(jax.grad(lambda turn: jnp.sum(off(turn[None])))))
    assert np.all(np.isfinite(rate(jnp.array([0.0, 0.19, 1.0]))))


def run_of_a_rotor(t1, spring=None, **laws):
    """Return a run of a rotor on a hinge that starts at 8 rad/s, with an energy of 3.2 J."""
    hinge = rj.Revolute("ground", "rotor", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), **laws)
    rotor = rj.Body("rotor", 1.0, (0.1, 0.1, 0.1), angular_velocity=(0.0, 0.0, 8.0))
    forces = [] if spring is None else [rj.TorsionSpring(hinge, spring)]
    system = rj.System([rotor], [hinge], forces)
    return rj.simulate(
        rj.NullSpace(system), system.reference_state(), t1, ts=np.linspace(0.0, t1, 51),
        solver=EnergyMomentum(), dt=0.01, max_steps=512,
    )  # fmt: skip


def test_energy_of_a_wound_up_spring():
    """Revolutions of a joint count in the energy at both ends of a step that passes pi."""
    sol = run_of_a_rotor(4.0, spring=0.05)
    # Harmonic, with an amplitude of 11 rad.
    rate = np.sqrt(0.5)
    assert 8.0 / rate > 3 * np.pi
    turn = 8.0 * np.cos(4.0 * rate)
    assert abs(sol.states.angular_velocity[-1, 0, 2] - turn) < 0.01
    assert np.max(np.abs(sol.energy - 3.2)) < 1e-12


def test_energy_of_a_rotor_between_elastic_stops():
    """The spring of a joint, and impacts within a few steps."""
    sol = run_of_a_rotor(
        1.0, stiffness=0.4, rest=0.1, limits=(-0.5, 0.5), stop=rj.Stop(40.0, 0.0, 0.1)
    )
    (angles,) = (np.asarray(values) for values in sol.states.angles.values())
    assert angles.min() < -0.6
    assert angles.max() > 0.6
    assert np.ptp(sol.energy) < 1e-12 * sol.energy[0]
