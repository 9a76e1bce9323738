"""A sweep for tests: members that take long enough to be killed in the middle."""

import jax
import jax.numpy as jnp


def run(p):
    """A slow map of two numbers; the member 17 fails."""
    value = jax.lax.fori_loop(0, 20_000, lambda _, x: jnp.sin(x) + p["shift"], p["start"])
    return {"value": jnp.where(p["start"] == 17.0, jnp.nan, value), "twice": 2 * p["shift"]}


def other(p):
    """Another program."""
    return {"value": p["start"] + 1.0, "twice": 2 * p["shift"]}
