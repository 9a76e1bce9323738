"""The design of wheels on the page of ensembles."""

import pathlib
import re

import jax
import jax.numpy as jnp
import pytest

import rigidjax as rj

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ensembles.md"


@pytest.mark.exhaustive
def test_stochastic_optimisation():
    """The optimum is better than the start and, for equal members, than its neighbours."""
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (program,) = (one for one in programs if "optax" in one)
    page: dict = {}
    exec(program, page)
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
