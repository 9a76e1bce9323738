"""Runs for tests of ensembles, in a module that worker processes can import."""

import jax
import jax.numpy as jnp


def run(p):
    """Map two numbers in a loop; member 17 fails."""
    value = jax.lax.fori_loop(0, 200, lambda _, x: jnp.sin(x) + p["shift"], p["start"])
    return {"value": jnp.where(p["start"] == 17.0, jnp.nan, value), "twice": 2 * p["shift"]}


def other(p):
    """Compute another function."""
    return {"value": p["start"] + 1.0, "twice": 2 * p["shift"]}
