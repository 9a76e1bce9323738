"""How the boundaries of the steps move, backwards."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from .record import Record


class Boundaries(NamedTuple):
    """Cotangents of a run's step boundaries, while it is walked backwards.

    Boundaries move with the first one, and apart in proportion to the first step; the last one is
    the end of the run.

    **Attributes:** `first`, of those that move with the first one; `last`, of the last one;
    `inner`, of those between, weighted as they move with the first step; `later`, of the boundary
    behind the step in hand.
    """

    first: Any
    last: Any
    inner: Any
    later: Any

    def before(self, record: Record, end: Any, bar_start: Any, bar_end: Any) -> "Boundaries":
        """With the cotangents of the start and the end of the step that ends at `end`."""
        after = bar_end + self.later
        is_inner = end < record.end
        inner = jnp.where(is_inner, after, 0.0)
        return Boundaries(
            first=self.first + inner,
            last=jnp.where(is_inner, self.last, after),
            inner=self.inner + inner * ((end - record.start) / record.span),
            later=bar_start,
        )

    def collected(self, out: Any, init_state: Any, record: Record, end: Any) -> Any:
        """The cotangents `out` of the arguments with those of start, end and first step.

        **Arguments:** `end`, further cotangent of the last boundary.
        """
        end = self.last + end
        # The last one is `t1`, unless it is the end of the first step already.
        single = record.span == record.end - record.start
        t1 = out["t1"] + jnp.where(single, 0.0, end)
        step = self.inner + jnp.where(single, end, 0.0)
        # A first step that was rejected shrank in proportion.
        planned = init_state.tnext - init_state.tprev
        step = step * jnp.where(single, 1.0, record.span / planned)
        state = eqx.tree_at(
            lambda s: (s.tprev, s.tnext),
            out["init_state"],
            (self.first + self.later - step, step),
        )
        return {**out, "t1": t1, "init_state": state}


def no_cotangents(record: Record) -> Boundaries:
    """All zero."""
    zero = jnp.zeros_like(record.end)
    return Boundaries(zero, zero, zero, zero)
