"""Checks of the models that the conserving schemes are defined on."""

from ...formulations import Absolute, AbstractFormulation, NullSpace
from ...mechanics import has_joints
from ...rotations.directors import Directors
from ...rotations.quaternion import Quaternion
from .base import AbstractStructureSolver


def check_form(
    solver: AbstractStructureSolver, model: AbstractFormulation, rotations: tuple[type, ...]
) -> None:
    """Raise `ValueError` unless a scheme is defined on the formulation and the rotation."""
    name = f"`{type(solver).__name__}`"
    wanted = " or ".join(f"`rj.{kind.__name__}()`" for kind in rotations)
    if not isinstance(model.rotation, rotations):
        raise ValueError(
            f"{name} is written in the coordinates of {wanted}; got "
            f"`{type(model.rotation).__name__}`. Build the formulation with one of them, or "
            "integrate it with an explicit solver such as `diffrax.Dopri8()`."
        )
    if not isinstance(model, NullSpace | Absolute):
        raise ValueError(
            f"{name} takes `rj.NullSpace` or `rj.Absolute(index=0)`; got `{type(model).__name__}`."
        )
    if isinstance(model, Absolute) and model.index != 0:
        raise ValueError(
            f"{name} solves for the multipliers of its own equations; got `Absolute(index="
            f"{model.index})`. Use `Absolute(..., index=0)` or `NullSpace`, or for this index "
            "`rj.solvers.Radau5()`."
        )
    if model.multibody.constraints or model.multibody.has_armature:
        raise ValueError(
            f"{name} has no discrete form of `Coupling`, `Constraint`, `VelocityConstraint` and "
            "`armature`. Use an explicit solver such as `diffrax.Dopri8()`, or "
            "`rj.solvers.Radau5()`."
        )
    if isinstance(model, NullSpace) and model.rates != "body":
        raise ValueError(
            f'{name} uses angular velocities in body components; got `NullSpace(rates="'
            f'{model.rates}")`. Use rates="body".'
        )


def check_free_bodies(
    solver: AbstractStructureSolver,
    model: AbstractFormulation,
    rotations: tuple[type, ...] = (Quaternion, Directors),
) -> None:
    """Raise `ValueError` unless a scheme for bodies without joints is defined on the model."""
    check_form(solver, model, rotations)
    if has_joints(model.system):
        raise ValueError(
            f"`{type(solver).__name__}` is for bodies without joints: a `FixedPointBody`, or a "
            f"`System` of free bodies; got {len(model.system.joints)} joint(s). Use "
            "`rj.solvers.EnergyMomentum()` or `rj.solvers.Variational()`; for a top on a ball "
            "joint `rj.solvers.EnergyMidpoint()`."
        )
