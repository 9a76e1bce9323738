"""Steps of systems with joints as a diffrax solver makes them."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp

from ....formulations import AbstractFormulation
from ...outcome import RESULTS
from .phase import Phase, phase_of, pose_rates, unknowns_of
from .saddle import Root

Step: TypeAlias = Callable[[AbstractFormulation, Any, Any, Phase, Any], tuple[Phase, Root]]


class Memory(eqx.Module):
    """What one step hands to the next.

    `twists` of all bodies, which the joints need not allow (the unknowns of `NullSpace` have those
    nearest to them); `multipliers`, the next guess; `count`, of Newton iterations.
    """

    twists: Any
    multipliers: Any
    count: Any


def start_of_joints(model: AbstractFormulation, t0: Any, y0: Any) -> Memory:
    """Before the first step."""
    phase = phase_of(model, t0, y0)
    jointed: Any = model.jointed
    multipliers = jnp.zeros(jointed.mechanics.num_joint_constraints, y0.dtype)
    return Memory(phase.twists, multipliers, jnp.array(0))


def step_of_joints(
    step: Step, model: AbstractFormulation, t0: Any, t1: Any, y0: Any, memory: Memory
) -> tuple[Any, dict[str, Any], Memory, Any]:
    """A step from `t0` to `t1`.

    **Returns:** unknowns, dense information for a cubic interpolation, memory, result.
    """
    h = t1 - t0
    start = eqx.tree_at(lambda phase: phase.twists, phase_of(model, t0, y0), memory.twists)
    end, root = step(model, t0, h, start, memory.multipliers)
    y1 = unknowns_of(model, t1, end)
    result = RESULTS.where(root.found, RESULTS.successful, RESULTS.nonlinear_divergence)
    size = model.layout.num_positions
    # Velocities change at a constant rate.
    slopes = [
        jnp.concatenate([h * pose_rates(model, phase).ravel(), (y1 - y0)[size:]])
        for phase in (start, end)
    ]
    dense = dict(y0=y0, y1=y1, k=jnp.stack(slopes))
    return y1, dense, Memory(end.twists, root.multipliers, root.count), result
