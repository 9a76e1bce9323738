"""Equilibria and small motions about them: closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

G = 9.81
GRAVITY = rj.Gravity((0.0, 0.0, -G))


def pendulum(angle=0.0, **more):
    """A rod of 1 m and 2 kg on a hinge at its end, turned away from hanging down."""
    position = (0.5 * np.sin(angle), 0.0, -0.5 * np.cos(angle))
    turned = (np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0)
    rod = rj.Body.rod("rod", 1.0, mass=2.0, position=position, orientation=turned)
    joint = rj.Revolute("ground", "rod", (0, 0, 0), (0, -1, 0), name="hinge", **more)
    return rj.System(rod, [joint], [GRAVITY])


@pytest.mark.exhaustive(but=("Relative",))
@pytest.mark.parametrize("kind", [rj.NullSpace, rj.Relative])
def test_modes_of_a_damped_pendulum(kind):
    J, d = 2.0 / 3.0, 0.5
    system = pendulum(damping=d)
    found = rj.linearize(kind(system), 0.0, system.reference_state())
    wanted = np.roots([J, d, 2.0 * G * 0.5])
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(wanted))
    np.testing.assert_allclose(found.frequencies, abs(wanted[0].imag))
    np.testing.assert_allclose(found.damping_ratios, d / (2 * np.sqrt(J * G)))
    assert found.is_stable and found.labels == ("hinge",)


def test_equilibrium_of_a_pendulum():
    system = pendulum(angle=1.0)
    found = rj.equilibrium(rj.Relative(system), system.reference_state())
    np.testing.assert_allclose(found.position, [[0, 0, -0.5]], atol=1e-10)
    upright = pendulum(angle=np.pi)
    assert not rj.linearize(rj.NullSpace(upright), 0.0, upright.reference_state()).is_stable


@pytest.mark.exhaustive
def test_equilibrium_of_a_linkage_minimises_its_potential():
    problem = rj.problems.four_bar(thickness=0.05)
    model = rj.NullSpace(problem.system)
    still = eqx.tree_at(
        lambda s: (s.velocity, s.angular_velocity),
        problem.state0,
        (jnp.zeros((3, 3)), jnp.zeros((3, 3))),
    )
    state = rj.equilibrium(model, still)
    found = rj.linearize(model, 0.0, state)
    assert found.is_stable and found.matrix.shape == (2, 2)
    # The frequency by a small swing: the period of a run that starts a little aside.
    direction = np.asarray(found.directions)[:, 0]
    y = model.encode(state)
    y = y.at[-3:].add(1e-4 * direction)
    period = 2 * np.pi / found.frequencies[0]
    run = rj.simulate(model, model.decode(0.0, y), period, rtol=1e-11, atol=1e-13)
    moved = np.abs(np.asarray(run.states.position[-1] - state.position)).max()
    assert moved < 1e-7
    with pytest.raises(TypeError, match="`linearize` takes a `NullSpace` or `Relative`"):
        rj.linearize(rj.Absolute(problem.system), 0.0, still)
    with pytest.raises(TypeError, match="`equilibrium` takes a `NullSpace` or `Relative`"):
        rj.equilibrium(rj.Absolute(problem.system), still)


def test_free_fall_has_no_equilibrium():
    with pytest.raises(ValueError, match="found none"):
        body = rj.System(rj.Body.box("box", (1, 1, 1), mass=1.0), forces=[GRAVITY])
        rj.equilibrium(rj.NullSpace(body), body.reference_state())


def test_equilibrium_under_jit_raises():
    problem = rj.problems.chain(1)
    model = rj.NullSpace(problem.system)
    with pytest.raises(ValueError, match="outside `jax.jit`"):
        jax.jit(lambda: rj.equilibrium(model, problem.system.reference_state()))()
