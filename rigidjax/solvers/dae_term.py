"""The differential-algebraic equations of a formulation as a term."""

import equinox as eqx

from ..formulations import Absolute
from .terms import MassMatrixTerm


def dae_term(model: Absolute) -> MassMatrixTerm:
    """The term of a formulation with multipliers among its unknowns, for `diffrax.diffeqsolve`.

    **Arguments:** `model`, such as `rj.Absolute(system, index=2)`; start from
    `model.encode(state)`. If other unknowns violate a constraint, an error names its joint.
    """
    levels = model.num_algebraic // max(model.num_multipliers, 1)
    names = ("",) * model.layout.size + levels * model.constraint_names
    return MassMatrixTerm(_RightHandSide(model), _Mass(model), model.indices, names=names)


class _RightHandSide(eqx.Module):
    model: Absolute

    def __call__(self, t, y, args):
        return self.model.right_hand_side(t, y)


class _Mass(eqx.Module):
    model: Absolute

    def __call__(self, t, y, args):
        return self.model.mass_matrix(t, y)
