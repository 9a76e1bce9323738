"""The differential-algebraic equations of a formulation as a term for diffrax."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ...annotations import Args, Time, Vector
from ...formulations import AbstractAbsolute
from ...formulations.absolute_base import MultiplierEquations
from ...formulations.charts import split_chart
from ...formulations.descriptor import Descriptor
from ...state import State
from ..base.terms import MassMatrixTerm


def dae_term(
    model: AbstractAbsolute,
    state: State | None = None,
    t: Time = 0.0,
    check_start: bool = True,
    redundant: Array | None = None,
) -> MassMatrixTerm:
    """Return the term of a formulation with multipliers among its unknowns.

    If joints close loops, constraints may be redundant. The redundant combinations of constraints
    are determined once, at `state`, and their multipliers are set so that the equations have a
    unique solution; `model.multipliers` returns the multipliers of least norm. A run ends with a
    named result where the mechanism reaches a position with other redundant constraints.

    **Arguments:**

    - `model`: such as `rj.Absolute(system, index=2)`; the unknowns at the start are
      `model.encode(state)`.
    - `state`: start, with unit quaternions; `None` for the reference configuration.
    - `t`: time of the start, s.
    - `check_start`: whether unknowns at the start that violate a constraint give an error with the
      name of the joint.
    - `redundant`: the projector onto multipliers without effect, (m, m), of an earlier term of the
      model, instead of that at `state`.
    """
    levels = model.num_algebraic // max(model.num_multipliers, 1)
    names = ("",) * model.layout.size + levels * model.constraint_names
    descriptor = model.equations
    if model.has_loops and redundant is not None:
        descriptor = Descriptor(model, redundant)
    elif model.has_loops:
        state = model.system.reference_state() if state is None else state  # pyright: ignore
        y0 = model.pack(state, None, t)
        # Constant: any projector that is valid at the start will do, so it needs no derivatives.
        idle = Descriptor(model).redundant_projector(t, y0)
        idle = jax.lax.stop_gradient(idle)
        descriptor = Descriptor(model, idle)
    right, mass, times = (part(descriptor) for part in (_RightHandSide, _Mass, _MassTimes))
    consistent = _Consistent(model)
    # The equations q' = v, unless they contain multipliers.
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

    def __call__(self, t: Time, y: Vector, args: Args):
        return self.descriptor.right_hand_side(jnp.asarray(t, y.dtype), y, _index(self.descriptor))


class _Mass(eqx.Module):
    descriptor: MultiplierEquations

    def __call__(self, t: Time, y: Vector, args: Args):
        return self.descriptor.mass(jnp.asarray(t, y.dtype), y, _index(self.descriptor))


class _MassTimes(eqx.Module):
    descriptor: MultiplierEquations

    def __call__(self, t: Time, y: Vector, rate: Vector, args: Args):
        index = _index(self.descriptor)
        return self.descriptor.mass_times(jnp.asarray(t, y.dtype), y, rate, index)


class _Consistent(eqx.Module):
    model: AbstractAbsolute

    def __call__(self, t: Time, y: Vector, args: Args):
        t, size = jnp.asarray(t, y.dtype), self.model.layout.size
        values, _ = split_chart(self.model.explicit_projection(t, y[:size]))
        return self.model.with_multipliers(t, values)


def _index(descriptor: MultiplierEquations) -> int:
    return descriptor.model.index
