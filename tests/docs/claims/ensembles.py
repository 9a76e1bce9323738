"""The optimum of the design of wheels is better than the start and than its neighbours."""

import jax
import jax.numpy as jnp
import pytest

import rigidjax as rj


def check_2(page, printed):
    given = page["members"](jax.random.key(1), 2000)

    def cost(design):
        found = rj.ensemble(lambda p: page["run"](p, design), given, progress=False)
        assert len(found.failed) == 0
        return found.outputs["cost"].mean()

    best = page["ensemble"].outputs["cost"].mean()
    assert best == pytest.approx(cost(page["design"]), rel=1e-9)
    assert best < 0.5 * cost(jnp.zeros(2))
    for change in ([0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5]):
        assert best < cost(page["design"] + jnp.array(change))
