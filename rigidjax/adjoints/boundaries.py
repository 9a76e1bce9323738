"""How the boundaries of the steps move, backwards."""

from typing import NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PyTree

from ..annotations import Scalar, Vector
from ..solvers.wrappers.knots import signal_delays

# The arguments of `AbstractAdjoint.loop` by name, or something for each of their leaves.
Tree = dict[str, PyTree]


def do_move(wanted: Tree) -> bool:
    """Whether cotangents of times are wanted.

    Those of the start, the first step, the end, of what is saved, or of delays of signals.
    """
    state = wanted["init_state"]
    times = [state.tprev, state.tnext, wanted["t1"], *signal_delays(wanted["stepsize_controller"])]
    return any(times) or wanted["saveat"].subs.ts is True


class Boundaries(NamedTuple):
    """Cotangents of times, while a run is walked backwards.

    **Attributes:** `sources`, (3 + D,), of the start of the run, the planned end of its first step,
    its own end, and the D delays of signals, by which all boundaries move (see
    `record.Record.motions`); `later`, of the boundary behind the step in hand.
    """

    sources: Vector
    later: Scalar

    def before(self, motion: Vector, bar_start: Scalar, bar_end: Scalar) -> "Boundaries":
        """With the cotangents of the start and the end of a step, whose end moves by `motion`."""
        return Boundaries(self.sources + (bar_end + self.later) * motion, bar_start)

    def collected(self, out: Tree) -> Tree:
        """The cotangents `out` of the arguments with those of their times."""
        start, planned, end, *delays = self.sources
        if delays:
            controller = eqx.tree_at(signal_delays, out["stepsize_controller"], delays)
            out = {**out, "stepsize_controller": controller}
        state = eqx.tree_at(
            lambda s: (s.tprev, s.tnext), out["init_state"], (start + self.later, planned)
        )
        return {**out, "t1": end, "init_state": state}


def behind(end: Scalar, controller: diffrax.AbstractStepSizeController) -> Boundaries:
    """Behind the last step, with the cotangent of its end."""
    return Boundaries(jnp.zeros(3 + len(signal_delays(controller)), end.dtype), end)
