"""Base class and term of the solvers that conserve the structure of a formulation."""

import abc
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...annotations import Args, Count, Terms, Time, Y
from ...formulations import Absolute, AbstractAbsolute, AbstractFormulation, NullSpace
from ...mechanics import has_joints
from ...rotations.directors import Directors
from ...rotations.quaternion import Quaternion
from ..base.replayable import AbstractStepSolver


class ModelTerm(diffrax.AbstractTerm):
    """A formulation as a diffrax term, for solvers that need more than a vector field.

    Such solvers ask the model for its masses, inertias, potentials and constraints:
    `diffrax.diffeqsolve(ModelTerm(model), solver, t0, t1, dt0, model.encode(state))`.

    **Arguments:** `model`, such as `rj.NullSpace(system)`.
    """

    model: AbstractFormulation

    def vf(self, t: Time, y: Y, args: Args) -> Y:
        """Return the model's vector field; zero for equations of index 1 to 3, which have none."""
        if isinstance(self.model, AbstractAbsolute) and self.model.index > 0:
            return jax.tree.map(jnp.zeros_like, y)
        return self.model.vector_field(jnp.asarray(t), y, args)

    def contr(self, t0: Time, t1: Time, **kwargs: Any) -> Time:
        """Return the length of the step."""
        return t1 - t0

    def prod(self, vf: Y, control: Time) -> Y:
        """Return the product of the vector field and the length of the step."""
        return jax.tree.map(lambda f: control * f, vf)


class AbstractStructureSolver(AbstractStepSolver):
    """A solver that advances a whole formulation and conserves part of its structure.

    It takes a `ModelTerm` and uses the unknowns of the model, so that a solution is read as that
    of any other solver. `simulate` runs it without projection, which would change the quantities
    that the scheme conserves.

    **Attributes:** `is_adaptive`, whether its error estimate can choose the step; `failure`, the
    name in `rj.RESULTS` of a step that has no solution (diffrax reports it as
    `nonlinear_divergence`); `forces_may_jump`, whether forces may jump between steps, which a
    method cannot allow that carries accelerations from step to step.
    """

    is_adaptive: eqx.AbstractClassVar[bool]
    failure: ClassVar[str] = "nonlinear_divergence"
    forces_may_jump: ClassVar[bool] = True
    term_structure: ClassVar = ModelTerm

    @abc.abstractmethod
    def check_model(self, model: AbstractFormulation) -> None:
        """Raise for a model that the scheme is not defined on.

        **Raises:** `ValueError` that says what the scheme needs and which one to use instead.
        """

    @abc.abstractmethod
    def evaluations(self, solver_state: PyTree) -> Count:
        """Count the force evaluations of the last attempted step, without Jacobian columns."""

    def func(self, terms: Terms, t0: Time, y0: Y, args: Args) -> Y:
        return terms.vf(t0, y0, args)


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
