"""The differential-algebraic equations of a formulation as a term."""

import equinox as eqx

from ..formulations import Absolute
from .terms import MassMatrixTerm


def dae_term(model: Absolute) -> MassMatrixTerm:
    """The term of a formulation with multipliers among its unknowns, for `diffrax.diffeqsolve`.

    **Arguments:** `model`, such as `rj.Absolute(system, index=2)`; start from
    `model.encode(state)`.
    """
    return MassMatrixTerm(_RightHandSide(model), _Mass(model), model.indices)


class _RightHandSide(eqx.Module):
    model: Absolute

    def __call__(self, t, y, args):
        return self.model.right_hand_side(t, y)


class _Mass(eqx.Module):
    model: Absolute

    def __call__(self, t, y, args):
        return self.model.mass_matrix(t, y)
