"""The base class of the extrapolation methods."""

from typing import ClassVar, NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp

from ....annotations import Count, Time, Vector, Y
from ...base.dense import ChordInterpolation
from ...base.step_results import RESULTS, stop_at_roundoff
from ..base import AbstractProposingSolver
from ..controllers import controller_scale, encode_step_factor
from ..equations import stop_gradients
from ..newton import SimplifiedNewton, default_newton
from .table import Extrapolation, StepSequence, choose_columns


class ExtrapolationState(NamedTuple):
    """State of an extrapolation method between two steps.

    **Attributes:** `target`, expected number of columns of the next step; `columns`, number of
    columns in the last attempted step; `evaluations`, in the last attempted step.
    """

    target: Count
    columns: Count
    evaluations: Count


class AbstractExtrapolation(AbstractProposingSolver):
    """A one-step extrapolation method, with the number of columns chosen for each step."""

    root_finder: SimplifiedNewton = eqx.field(default_factory=default_newton)
    root_find_max_steps: int = eqx.field(static=True, default=0)

    interpolation_cls: ClassVar = ChordInterpolation  # pyright: ignore

    def history(self, solver_state: ExtrapolationState) -> tuple[None, None]:
        """Return no history: this is a one-step method."""
        return None, None

    def step_record(self, before: ExtrapolationState, after: ExtrapolationState) -> Count:
        """Return the number of columns of a step."""
        return after.columns


def initial_state(finder: SimplifiedNewton, columns: int) -> ExtrapolationState:
    """Return the state with the initial number of columns of the codes ODEX and SEULEX."""
    rtol = jnp.max(jnp.asarray(finder.rtol, float)) + 1e-40
    guess = jnp.round(-0.6 * jnp.log10(rtol) + 1.5).astype(jnp.result_type(1))
    zero = jnp.zeros_like(guess)
    return ExtrapolationState(jnp.clip(guess, 2, columns - 2), zero + 1, zero)


def conclude_step(
    sequence: StepSequence, e: Extrapolation, target: Count, t0: Time, t1: Time, y0: Y, y1: Y,
    finder: SimplifiedNewton,
) -> tuple[Count, Vector, diffrax.RESULTS]:  # fmt: skip
    """Return the next target, the error estimate for the controller and the result of a step."""
    best, factor = choose_columns(sequence, e, target)
    size = jnp.where(e.accepted, 0.5, jnp.inf)
    finite = jnp.isfinite(e.error)
    error = encode_step_factor(
        controller_scale(finder, y0, y1), e.accepted, jnp.maximum(factor, 0.02)
    )
    error = jnp.where(finite, error, jnp.inf)
    result = RESULTS.where(finite, RESULTS.successful, RESULTS.nonfinite)
    error, result = stop_at_roundoff(stop_gradients(t0), stop_gradients(t1), size, error, result)
    return best, error, result
