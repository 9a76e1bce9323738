"""Changes of the start state of a run in directions that the joints allow."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..formulations import AbstractFormulation
from ..initial.local_coordinates import Directions, num_rates, retract, selection
from ..state import State


class StartChange(eqx.Module):
    """A change of the start state in directions that the joints allow.

    **Attributes:** `change`, of the independent positions, then of the independent rates, zero at
    the given start; `directions`, the corresponding generalised velocities; `positions` and
    `rates`, whether `change` contains either part.
    """

    change: Float[Array, " n"]
    directions: Directions
    positions: bool = eqx.field(static=True)
    rates: bool = eqx.field(static=True)

    def apply(
        self, model: AbstractFormulation, state: State, t: Float[Array, ""]
    ) -> tuple[State, Bool[Array, ""]]:
        """Return the changed state, and whether the joints could be closed."""
        count = self.directions.free.shape[1]
        none = jnp.zeros(count, self.change.dtype)
        shift = self.change[:count] if self.positions else none
        rate = self.change[-count:] if self.rates else none
        return retract(model, state, t, self.directions, shift, rate)


@dataclasses.dataclass(frozen=True)
class StartSelector:
    """Function that picks the change of the start state; equal selectors share compiled code."""

    independent: tuple[int, ...]
    num_rates: int
    positions: bool
    rates: bool

    def __call__(self, experiment: Any) -> Any:
        return experiment.start.change

    def zero_change(self, model: AbstractFormulation, dtype: Any) -> StartChange:
        """Return a zero change of the start.

        **Errors:** `ValueError` for another system than the one that `start_state` was called with.
        """
        count = num_rates(model)
        if count != self.num_rates:
            raise ValueError(
                f"`start_state(model)` was called with a system of {self.num_rates} generalised "
                f"velocities; the fitted one has {count}. Call it with the model that is fitted."
            )
        size = len(self.independent) * (self.positions + self.rates)
        return StartChange(
            jnp.zeros(size, dtype),
            selection(self.independent, count, dtype),
            self.positions,
            self.rates,
        )
