"""Changes of the start state of a run along what the joints allow."""

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..formulations import AbstractFormulation
from ..initial.local_coordinates import Directions, num_rates, retract, selection
from ..state import State


class StartChange(eqx.Module):
    """A change of the start state along what the joints allow.

    **Attributes:** `change`, of the independent positions, then of the independent rates, zero at
    the given start; `directions`, which these are; whether `positions` and `rates` are among them.
    """

    change: Float[Array, " n"]
    directions: Directions
    positions: bool = eqx.field(static=True)
    rates: bool = eqx.field(static=True)

    def applied(
        self, model: AbstractFormulation, state: State, t: Float[Array, ""]
    ) -> tuple[State, Bool[Array, ""]]:
        """The changed state, and whether the joints could be closed."""
        count = self.directions.free.shape[1]
        none = jnp.zeros(count, self.change.dtype)
        shift = self.change[:count] if self.positions else none
        rate = self.change[-count:] if self.rates else none
        return retract(model, state, t, self.directions, shift, rate)


@dataclasses.dataclass(frozen=True)
class StartOf:
    """Picks the change of the start state of an experiment; equal ones share compiled code."""

    independent: tuple[int, ...]
    num_rates: int
    positions: bool
    rates: bool

    def __call__(self, experiment: Any) -> Any:
        return experiment.start.change

    def zero(self, model: AbstractFormulation, dtype: Any) -> StartChange:
        """No change. **Errors:** `ValueError` for another system than that of `start_state`."""
        count = num_rates(model)
        if count != self.num_rates:
            raise ValueError(
                f"`start_state(model)` was made for a system with {self.num_rates} minimal "
                f"velocities; this one has {count}. Make it from the model that is fitted."
            )
        size = len(self.independent) * (self.positions + self.rates)
        return StartChange(
            jnp.zeros(size, dtype),
            selection(self.independent, count, dtype),
            self.positions,
            self.rates,
        )
