"""Redundant constraints of closed loops at index 0."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

FOUR_BAR = rj.problems.four_bar(thickness=0.05)


def test_derivatives_of_multipliers():
    """The combinations of multipliers without effect change with the pose."""
    model = rj.Absolute(FOUR_BAR.system)
    y, n = model.encode(FOUR_BAR.state0), model.layout.num_positions
    along = jnp.zeros_like(y).at[:n].set(y[n : 2 * n])
    along = along / jnp.max(jnp.abs(along))

    def multipliers(s):
        return model.multipliers(jnp.zeros(()), y + s * along)

    both = jax.jit(lambda s: jax.jvp(multipliers, (s,), (jnp.ones(()),)))
    h = 1e-5
    slope = (both(h)[0] - both(-h)[0]) / (2 * h)
    found = both(0.0)[1]
    size = np.max(np.abs(slope))
    assert size > 1e-3
    np.testing.assert_allclose(found, slope, atol=1e-6 * size)
