"""Bodies that only welds connect move as one body."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.rotations.euler_map import euler_map
from rigidjax.solvers import EnergyMomentum
from rigidjax.solvers.conserving.welded_assemblies import assembly_leads

MASSES = np.array([1.0, 2.0, 0.7])
CENTRES = np.array([[0.3, 0.1, -0.2], [-0.5, 0.4, 0.1], [0.1, -0.6, 0.5]])
CENTRE = MASSES @ CENTRES / MASSES.sum()
VELOCITY, OMEGA = np.array([0.2, -0.1, 0.3]), np.array([3.0, -2.0, 4.0])
PAIR = [
    rj.Body("d", 1.3, (0.1, 0.2, 0.15), (2.0, 0.3, 0.1)),
    rj.Body("e", 0.9, (0.1, 0.1, 0.1), (2.5, 0.3, 0.1)),
]
BALL = rj.Spherical("d", "e", (2.2, 0.3, 0.1))
WELDS = [rj.Weld("a", "b"), rj.Weld("b", "c")]
LOOP = [*WELDS, rj.Weld("c", "a", name="again")]


def matrices(quaternions):
    return jax.vmap(euler_map)(jnp.asarray(quaternions))


@pytest.fixture(scope="module")
def parts():
    """Three bodies, and the one that they are together, moving alike."""
    rng = np.random.default_rng(20261126)
    p = rng.normal(size=(3, 4))
    p /= np.linalg.norm(p, axis=1, keepdims=True)
    moments = 0.1 * MASSES[:, None] * (1.0 + 0.5 * rng.random((3, 3)))
    R, arms = np.asarray(matrices(p)), CENTRES - CENTRE
    bodies = [
        rj.Body(name, m, tuple(own), tuple(x), tuple(q), tuple(VELOCITY + np.cross(OMEGA, r)),
                tuple(Q.T @ OMEGA))
        for name, m, own, x, q, r, Q in zip(
            "abc", MASSES, moments, CENTRES, p, arms, R, strict=True
        )
    ]  # fmt: skip
    inertia = sum(
        Q @ np.diag(own) @ Q.T + m * (r @ r * np.eye(3) - np.outer(r, r))
        for Q, own, m, r in zip(R, moments, MASSES, arms, strict=True)
    )
    whole = rj.Body("whole", MASSES.sum(), inertia, tuple(CENTRE), velocity=tuple(VELOCITY),
                    angular_velocity=tuple(OMEGA))  # fmt: skip
    return bodies, whole


def forces(of):
    """Return loads and dampers to the ground and to a body on a joint, at points of bodies `a` to
    `c`.
    """
    return [
        rj.Gravity((0.0, 0.0, -9.81)),
        rj.Spring(of("c"), "d", (0.2, -0.5, 0.4), (2.0, 0.1, 0.1), 0.0, 0.7),
        rj.Spring("ground", of("b"), (0.0, 0.0, 2.0), (-0.4, 0.4, 0.3), 0.0, 0.5),
        rj.PointForce(of("a"), force=(0.3, 0.4, 0.0), at=(0.5, -0.3, 0.2)),
    ]


def states(formulation, bodies, joints, acting, t1=1.0, dt=0.02, times=11):
    system = rj.System(bodies, joints, acting)
    return rj.simulate(
        formulation(system), system.reference_state(), t1, solver=EnergyMomentum(), dt=dt,
        ts=jnp.linspace(0.0, t1, times), max_steps=4096,
    )  # fmt: skip


@pytest.mark.exhaustive("NullSpace-chain", "Absolute-loop")
@pytest.mark.parametrize("welds", [WELDS, LOOP], ids=["chain", "loop"])
@pytest.mark.parametrize("formulation", [rj.NullSpace, rj.Absolute], ids=lambda f: f.__name__)
@pytest.mark.exhaustive("NullSpace-loop")
@pytest.mark.exhaustive
def test_welded_bodies_move_as_one_body(parts, formulation, welds):
    bodies, whole = parts
    found = states(formulation, [*bodies, *PAIR], [*welds, BALL], forces(str)).states
    one = states(formulation, [whole, *PAIR], [BALL], forces(lambda name: "whole")).states
    R, turned = matrices(bodies[0].orientation[None])[0], matrices(one.orientation[:, 0])
    centre = jnp.einsum("b,tbi->ti", MASSES / MASSES.sum(), found.position[:, :3])
    np.testing.assert_allclose(centre, one.position[:, 0], atol=1e-12)
    np.testing.assert_allclose(matrices(found.orientation[:, 0]), turned @ R, atol=1e-12)
    np.testing.assert_allclose(found.position[:, 3:], one.position[:, 1:], atol=1e-12)
    np.testing.assert_allclose(found.velocity[:, 3:], one.velocity[:, 1:], atol=1e-11)
    # Steps of 0.1 rad, whose twists are not those of the mean at the ends.
    arms = jnp.einsum("tij,bj->tbi", turned, CENTRES - CENTRE)
    omega = jnp.einsum("tij,tj->ti", turned, one.angular_velocity[:, 0])
    velocity = one.velocity[:, :1] + jnp.cross(omega[:, None], arms)
    np.testing.assert_allclose(found.velocity[:, :3], velocity, atol=1e-11)


@pytest.mark.exhaustive
def test_welded_bodies_conserve_energy_and_momentum(parts):
    """Momentum, angular momentum and energy, with a spring within and one to another cluster."""
    bodies, _ = parts
    inner = rj.Spring("a", "b", (0.3, 0.1, 0.0), (-0.5, 0.4, 0.0), 10.0, length=0.2)
    outer = rj.Spring("c", "e", (0.2, -0.5, 0.4), (2.5, 0.1, 0.1), 40.0, length=0.3)
    welds = [*WELDS, rj.Weld("d", "e", (2.2, 0.3, 0.1))]
    sol = states(rj.NullSpace, [*bodies, *PAIR], welds, [inner, outer], 8.0, times=51)
    assert np.ptp(sol.energy) < 1e-12 * sol.energy[0]
    assert np.max(np.ptp(sol.linear_momentum, axis=0)) < 1e-11
    assert np.max(np.ptp(sol.angular_momentum, axis=0)) < 1e-10
    assert np.max(sol.position_drift) < 1e-13 and np.max(sol.velocity_drift) < 1e-12


@pytest.mark.exhaustive
def test_derivatives_by_the_mass_of_a_welded_body(parts):
    bodies, _ = parts
    system = rj.System([*bodies, *PAIR], [*WELDS, BALL], forces(str))
    model, state0 = rj.NullSpace(system), system.reference_state()

    @jax.jit
    def end(mass):
        here = eqx.tree_at(lambda m: m.system.bodies[1].mass, model, mass)
        sol = rj.simulate(here, state0, 0.2, solver=EnergyMomentum(), dt=0.02)
        return jnp.sum(sol.states.position[-1] ** 2)

    mass, h = jnp.asarray(2.0), 2e-3
    expected = (8 * (end(mass + h) - end(mass - h)) - end(mass + 2 * h) + end(mass - 2 * h)) / (
        12 * h
    )
    np.testing.assert_allclose(jax.jit(jax.grad(end))(mass), expected, rtol=1e-9)


def leads(bodies, joints):
    return assembly_leads(rj.NullSpace(rj.System(bodies, joints)).prepared_system)


@pytest.mark.exhaustive
def test_partition_into_welded_assemblies(parts):
    bodies, _ = parts
    everything = [*bodies, *PAIR]
    assert leads(everything, [BALL]) is None
    assert leads(everything, [*WELDS, BALL]) == (0, 0, 0, -1, -1)
    assert leads(everything, [rj.Free("b"), *WELDS, BALL]) == (0, 0, 0, -1, -1)
    assert leads(everything[::-1], [rj.Weld("d", "e"), *LOOP]) == (0, 0, 2, 2, 2)
    # The ground or another joint holds one of them.
    rod = rj.Distance("c", "d", (0.1, -0.6, 0.5), (2.0, 0.3, 0.1))
    for other in (rj.Weld("ground", "c"), rj.Revolute("c", "d", (0, 0, 0), (0, 0, 1)), rod):
        assert leads(everything, [*WELDS, other]) is None
