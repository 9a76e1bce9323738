"""Functions with host callbacks are compiled again in every process: runs and fits have none."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.core import jaxprs_in_params

import rigidjax as rj

TS = np.linspace(0.0, 1.0, 5)
FREE = rj.NullSpace(rj.FixedPointBody((1.0, 2.0, 2.5)))


def primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from primitives(inner)


def find_callbacks(function, *args):
    closed = eqx.filter_make_jaxpr(function)(*args)[0]
    return {name for name in primitives(closed.jaxpr) if "callback" in name}


def arm():
    body = rj.Body("arm", 1.3, (0.02, 0.05, 0.06), (0.3, 0.0, 0.0))
    hinge = rj.Revolute("ground", "arm", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), name="hinge")
    return rj.NullSpace(rj.System(body, [hinge], rj.Gravity((0.0, -9.81, 0.0))))


@pytest.mark.parametrize("model", [FREE, arm()], ids=["free", "arm"])
def test_runs_that_do_not_raise_do_not_call_the_host(model):
    def run(model, state, ts, throw):
        return rj.simulate(model, state, ts[-1], t0=ts[0], ts=ts, throw=throw).ys

    system = model.system
    state = system.reference_state() if model is not FREE else rj.State()
    assert find_callbacks(run, model, state, jnp.asarray(TS), False) == set()
    # Where a run is to raise, there is no other way.
    assert find_callbacks(run, model, state, jnp.asarray(TS), True) == {"pure_callback"}


def test_times_of_samples_are_checked_before_diffrax_would():
    def run(**options):
        return rj.simulate(FREE, rj.State(), 1.0, **options)

    with pytest.raises(ValueError, match=r"SaveAt\(ts=...\)\)` must be strictly increasing"):
        run(saveat=diffrax.SaveAt(ts=TS[::-1]))
    with pytest.raises(ValueError, match=r"SaveAt\(ts=...\)\)` must lie between t0 = 0"):
        run(saveat=diffrax.SaveAt(ts=[0.5, 2.0]))
    traced = eqx.filter_jit(lambda ts: run(ts=ts).ys)
    for ts, match in ((TS[::-1], "must be increasing"), (2 * TS, "must lie between t0 and t1")):
        with pytest.raises(Exception, match=match):
            jax.block_until_ready(traced(jnp.asarray(ts)))
    assert np.isfinite(np.asarray(traced(jnp.asarray(TS)))).all()
