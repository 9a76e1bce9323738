"""Cotangents of the step boundaries in the backward pass."""

from typing import NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PyTree

from ..annotations import Scalar, Vector
from ..solvers.wrappers.knots import knot_parameters

# The arguments of `AbstractAdjoint.loop` by name, or a tree with their structure.
Tree = dict[str, PyTree]


def boundaries_are_wanted(wanted: Tree) -> bool:
    """Return whether cotangents of any time are wanted.

    The times are the start, the end of the first step, the end, the saved times, and the
    parameters of knots.
    """
    state = wanted["init_state"]
    times = [
        state.tprev,
        state.tnext,
        wanted["t1"],
        *knot_parameters(wanted["stepsize_controller"]),
    ]
    return any(times) or wanted["saveat"].subs.ts is True


class Boundaries(NamedTuple):
    """Cotangents of times in the backward pass.

    **Attributes:** `sources`, (3 + D,), of the start of the run, the planned end of its first step,
    its end, and the D parameters of knots, on which all boundaries depend (see
    `record.Record.motions`); `later`, of the end of the current step.
    """

    sources: Vector
    later: Scalar

    def step_back(self, motion: Vector, bar_start: Scalar, bar_end: Scalar) -> "Boundaries":
        """Add the cotangents of the start and the end of a step.

        **Arguments:** `motion`, derivatives of its end by the `sources`; `bar_start`, `bar_end`.
        """
        return Boundaries(self.sources + (bar_end + self.later) * motion, bar_start)

    def add_to(self, out: Tree) -> Tree:
        """Return the cotangents `out` of the arguments with those of times filled in."""
        start, planned, end, *of_knots = self.sources
        if of_knots:
            controller = eqx.tree_at(knot_parameters, out["stepsize_controller"], of_knots)
            out = {**out, "stepsize_controller": controller}
        state = eqx.tree_at(
            lambda s: (s.tprev, s.tnext), out["init_state"], (start + self.later, planned)
        )
        return {**out, "t1": end, "init_state": state}


def after_last_step(end: Scalar, controller: diffrax.AbstractStepSizeController) -> Boundaries:
    """Return the cotangents after the last step from that of its end."""
    return Boundaries(jnp.zeros(3 + len(knot_parameters(controller)), end.dtype), end)
