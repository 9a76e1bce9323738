"""A run for tests, slow enough to be killed in the middle."""

import jax
import jax.numpy as jnp


def run(p):
    """Map two numbers slowly; member 17 fails."""
    value = jax.lax.fori_loop(0, 20_000, lambda _, x: jnp.sin(x) + p["shift"], p["start"])
    return {"value": jnp.where(p["start"] == 17.0, jnp.nan, value), "twice": 2 * p["shift"]}


def other(p):
    """Compute another function."""
    return {"value": p["start"] + 1.0, "twice": 2 * p["shift"]}
