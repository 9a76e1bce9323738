"""Redundant constraints of closed loops at index 1, 2, 3."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.formulations.descriptor import Descriptor, redundant_projector
from rigidjax.solvers import dae_term

FOUR_BAR = rj.problems.four_bar(thickness=0.05)


def smallest(A):
    """Smallest singular value, rows and columns of the same size."""
    for _ in range(5):
        A = A / np.sqrt(np.max(np.abs(A), axis=1, keepdims=True))
        A = A / np.sqrt(np.max(np.abs(A), axis=0, keepdims=True))
    return np.linalg.svd(np.asarray(A), compute_uv=False)[-1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", [1, 2, 3])
def test_newton_matrix_is_regular(index):
    """Three of the twenty-three constraints of a planar four-bar in space are redundant."""
    model = rj.Absolute(FOUR_BAR.system, index=index)
    y = model.encode(FOUR_BAR.state0)

    @jax.jit
    def newton_matrix(y):
        term = dae_term(model, FOUR_BAR.state0)
        K = -jax.jacfwd(lambda y: term.vector_field(0.0, y, None))(y)
        return 10.0 * term.mass_matrix(0.0, y, None) + K

    A = np.array(newton_matrix(y))
    assert smallest(A) > 1e-8
    # Without what chooses multipliers it is not.
    first = model.layout.size
    A[first:, first:] = 0.0
    assert smallest(A) < 1e-14


@jax.jit
def _parts(t, y):
    model = rj.Absolute(FOUR_BAR.system, index=3)
    descriptor = Descriptor(model)
    q, _, angles = descriptor.split(y[: model.layout.size])
    Q = redundant_projector(descriptor, t, y[: model.layout.size])
    return descriptor.jacobian(t, q, angles), Q, descriptor.units


@pytest.mark.exhaustive
def test_projector_is_idempotent():
    """The projector maps onto multipliers without effect.

    Three bodies with seven coordinates each have one degree of freedom, and the gradient has rank
    20.
    """
    y = rj.Absolute(FOUR_BAR.system, index=3).encode(FOUR_BAR.state0)
    G, Q, units = map(np.asarray, _parts(jnp.zeros(()), y))
    assert G.shape == (23, 21)
    np.testing.assert_allclose(Q @ Q, Q, atol=1e-14)
    np.testing.assert_allclose(Q.T @ G, 0.0 * G, atol=1e-14)
    assert round(np.trace(Q)) == 3 == 23 - np.linalg.matrix_rank(G)
    # The remaining multipliers have least norm, measured by the length of the loop.
    lam = np.arange(23.0)
    short = lam - Q @ lam
    np.testing.assert_allclose(G.T @ short, G.T @ lam, atol=1e-12)
    assert np.all(units[:3] == 1) and np.allclose(units[3:6], 0.45)
    idle = (units[:, None] * Q)[3:]
    np.testing.assert_allclose(idle.T @ (units * short)[3:], np.zeros(23), atol=1e-11)


@pytest.mark.parametrize("index", [0, 3])
@pytest.mark.exhaustive("3")
@pytest.mark.exhaustive("3")
def test_derivatives_of_multipliers(index):
    """The combinations of multipliers without effect change with the pose."""
    model = rj.Absolute(FOUR_BAR.system, index=index)
    y, n = model.encode(FOUR_BAR.state0), model.layout.num_positions
    along = jnp.zeros_like(y).at[:n].set(y[n : 2 * n])
    along = along / jnp.max(jnp.abs(along))
    # The redundant part of an unknown multiplier is removed.
    y = y.at[model.layout.size :].add(jnp.arange(1.0, 1.0 + model.num_algebraic))

    def multipliers(s):
        return model.multipliers(jnp.zeros(()), y + s * along)

    both = jax.jit(lambda s: jax.jvp(multipliers, (s,), (jnp.ones(()),)))
    h = 1e-5
    slope = (both(h)[0] - both(-h)[0]) / (2 * h)
    found = both(0.0)[1]
    size = np.max(np.abs(slope))
    assert size > 1e-3
    np.testing.assert_allclose(found, slope, atol=1e-6 * size)


@pytest.mark.exhaustive
def test_tree_equations_are_unchanged():
    """A chain has no redundant constraints; a loop without them gets zero."""
    chain = rj.Absolute(rj.problems.chain(2).system, index=2)
    assert dae_term(chain).vector_field.descriptor.idle is None
    bodies = [rj.Body("rod", 1.0, (0.1, 0.2, 0.3), (0.5, 0.0, 0.0))]
    joints = [
        rj.Spherical("ground", "rod", (0.0, 0.0, 0.0)),
        rj.Distance("ground", "rod", (1.0, 1.0, 0.0), (1.0, 0.0, 0.0)),
    ]
    loop = rj.Absolute(rj.System(bodies, joints), index=2)
    np.testing.assert_array_equal(dae_term(loop).vector_field.descriptor.idle, np.zeros((5, 5)))


@pytest.mark.exhaustive
def test_redundant_constraints_do_not_change_the_motion():
    """A planar four-bar in space at index 3, against null-space coordinates; its reactions too."""
    model, t1, reference = rj.Absolute(FOUR_BAR.system, index=3), 0.2, rj.NullSpace(FOUR_BAR.system)
    run = rj.simulate(
        model, FOUR_BAR.state0, t1, solver=rj.solvers.Radau5(), rtol=1e-6, atol=1e-6
    )  # fmt: skip
    true = rj.simulate(reference, FOUR_BAR.state0, t1, rtol=1e-10, atol=1e-10)
    error = np.abs(run.states.position - true.states.position)
    # Ten tolerances, as in `tests/solvers/test_oracles.py`.
    assert np.max(error) < 1e-5
    state = jax.tree.map(lambda x: x[-1], run.states)
    state = rj.consistent_state(FOUR_BAR.system, state, t1)
    zero = rj.Absolute(FOUR_BAR.system)
    expected = zero.multipliers(t1, zero.encode(state, t1))
    got = model.multipliers(t1, run.ys[-1])
    # Errors of multipliers are larger by 1/h^2, h about 0.01 s.
    np.testing.assert_allclose(got, expected, atol=1e-2)
