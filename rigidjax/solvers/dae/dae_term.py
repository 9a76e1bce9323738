"""The differential-algebraic equations of a formulation as a term."""

import equinox as eqx
import jax
import jax.numpy as jnp

from ...annotations import Time
from ...formulations import AbstractAbsolute
from ...formulations.absolute_base import MultiplierEquations
from ...formulations.charts import split_chart
from ...formulations.descriptor import Descriptor
from ...state import State
from ..terms import MassMatrixTerm


def dae_term(
    model: AbstractAbsolute, state: State | None = None, t: Time = 0.0, check_start: bool = True
) -> MassMatrixTerm:
    """The term of a formulation with multipliers among its unknowns, for `diffrax.diffeqsolve`.

    If joints close loops, constraints may be redundant: which ones hold the mechanism is decided
    once, at `state`; multipliers of the others are chosen (`model.multipliers` gives those of least
    norm). Where a mechanism comes to a position in which other ones are needed, the run ends with a
    named result.

    **Arguments:** `model`, such as `rj.Absolute(system, index=2)`; start from
    `model.encode(state)`. If other unknowns violate a constraint, an error names its joint, unless
    `check_start=False`. `state`, with unit quaternions, at `t`, s: the start; `None` for the
    reference configuration.
    """
    levels = model.num_algebraic // max(model.num_multipliers, 1)
    names = ("",) * model.layout.size + levels * model.constraint_names
    descriptor = model.equations
    if model.has_loops:
        state = model.system.reference_state() if state is None else state  # pyright: ignore
        y0 = model.pack(state, None, t)
        # Any projector will do that is one at the start: it has no derivatives.
        idle = Descriptor(model).idle_projector(t, y0)
        idle = jax.lax.stop_gradient(idle)
        descriptor = Descriptor(model, idle)
    right, mass, times = (of(descriptor) for of in (_RightHandSide, _Mass, _MassTimes))
    consistent = _Consistent(model)
    # q' = v, unless multipliers correct it.
    n = 0 if model.stabilized else model.layout.num_positions
    rates = tuple((i, n + i) for i in range(n))
    return MassMatrixTerm(
        vector_field=right,
        mass=mass,
        index=model.indices,
        names=names,
        check_start=check_start,
        rates=rates,
        product=times,
        consistent=consistent,
    )


class _RightHandSide(eqx.Module):
    descriptor: MultiplierEquations

    def __call__(self, t, y, args):
        return self.descriptor.right_hand_side(jnp.asarray(t, y.dtype), y, _index(self.descriptor))


class _Mass(eqx.Module):
    descriptor: MultiplierEquations

    def __call__(self, t, y, args):
        return self.descriptor.mass(jnp.asarray(t, y.dtype), y, _index(self.descriptor))


class _MassTimes(eqx.Module):
    descriptor: MultiplierEquations

    def __call__(self, t, y, rate, args):
        index = _index(self.descriptor)
        return self.descriptor.mass_times(jnp.asarray(t, y.dtype), y, rate, index)


class _Consistent(eqx.Module):
    model: AbstractAbsolute

    def __call__(self, t, y, args):
        t, size = jnp.asarray(t, y.dtype), self.model.layout.size
        values, _ = split_chart(self.model.explicit_projection(t, y[:size]))
        return self.model.with_multipliers(t, values)


def _index(descriptor: MultiplierEquations) -> int:
    return descriptor.model.index
