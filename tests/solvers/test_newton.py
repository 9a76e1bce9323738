"""The iteration of the implicit solvers, apart from them."""

import jax.numpy as jnp
import pytest

from rigidjax.solvers.dae.newton import iterate


def noisy(size):
    """Return iterations for Z = 1 of rate 0.01, with errors of the residual of a given size."""

    def residual(Z):
        return 0.99 * (Z - 1.0) + size * jnp.cos(1e9 * Z)

    def norm(v):
        return jnp.max(jnp.abs(v))

    start, one = jnp.array([1e3]), jnp.ones(())
    return iterate(residual, lambda r: r, start, one, 1e-6 * one, norm, 8)


@pytest.mark.parametrize("size,converges", [(1e-9, True), (0.1, True), (2.0, False)])
def test_newton_ends_at_round_off(size, converges):
    """Increments below the error of a step that round-off causes are convergence, larger ones are
    not.
    """
    outcome = noisy(size)
    assert bool(outcome.converged) == converges
    if converges:
        assert outcome.count < 8
        assert abs(float(outcome.Z[0]) - 1.0) <= 1.1 * size + 1e-6


def test_slow_convergence_is_not_round_off():
    """At a rate of 0.6 from the start on, an increment of 0.1 still means an error of 0.15."""

    def norm(v):
        return jnp.max(jnp.abs(v))

    one = jnp.ones(())
    outcome = iterate(
        lambda Z: 0.4 * (Z - 1.0), lambda r: r, jnp.array([1.5]), one, 1e-3 * one, norm, 6
    )
    assert not bool(outcome.converged)
