"""Batches of runs on eight devices, of the mesh that `jax.make_mesh` makes by default."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json
import diffrax
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import rigidjax as rj
from jax.sharding import NamedSharding, PartitionSpec as P

problem = rj.problems.heavy_top()

def run(spin, weight):
    body = problem.system
    model = rj.NullSpace(rj.FixedPointBody(body.inertia * weight, body.potential))
    state = problem.state0
    state = rj.State(orientation=state.orientation, angular_velocity=spin * state.angular_velocity)
    how = dict(solver=diffrax.Bosh3(), rtol=1e-4, atol=1e-4, backend="native")
    return rj.simulate(model, state, 0.1, **how).ys[-1]

def total(runs, spins, weight):
    ends = runs(spins, weight)
    return jnp.sum(ends[:, -1]), ends

mesh = jax.make_mesh((8,), ("runs",))
spins = jnp.linspace(0.9, 1.1, 16)
runs = jax.vmap(run, in_axes=(0, None))
mapped = jax.shard_map(runs, mesh=mesh, in_specs=(P("runs"), P()), out_specs=P("runs"))
shared = jax.device_put(spins, NamedSharding(mesh, P("runs")))
weight = jnp.asarray(1.0)
results = []
for f, x in ((runs, spins), (mapped, shared), (runs, shared)):
    ends = jax.jit(f)(x, weight)
    (_, same), slope = jax.jit(
        jax.value_and_grad(lambda s, w: total(f, s, w), argnums=1, has_aux=True)
    )(x, weight)
    results.append({
        "ends": ends.tolist(), "differentiated": same.tolist(), "gradient": float(slope),
        "devices": len(ends.sharding.device_set),
    })
one, all_devices = (
    rj.ensemble(
        lambda p: {"end": run(p["spin"], weight)}, {"spin": spins}, devices=devices, batch=2,
        progress=False,
    ).outputs["end"].tolist()
    for devices in (jax.devices()[:1], None)
)
print(json.dumps({"runs": results, "one": one, "all": all_devices}))
"""


def test_batches_on_eight_devices():
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    alone, *others = found["runs"]
    assert alone["devices"] == 1
    for other in others:
        assert other["devices"] == 8
        assert other["gradient"] == pytest.approx(alone["gradient"], rel=1e-10)
        assert other["ends"] == alone["ends"]
        for end, same in zip(alone["differentiated"], other["differentiated"], strict=True):
            # Runs that are differentiated, and others, have steps of their own.
            assert same == pytest.approx(end, abs=1e-4)
    assert found["one"] == found["all"] == alone["ends"]
