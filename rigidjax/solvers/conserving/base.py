"""What the structure-preserving integrators have in common."""

import abc
from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...annotations import Count, Time, Y
from ...formulations import AbstractAbsolute, AbstractFormulation


class ModelTerm(diffrax.AbstractTerm):
    """A formulation as a term of diffrax: for solvers that need more than a vector field.

    They ask the model for its masses, inertias, potentials and constraints:
    `diffrax.diffeqsolve(ModelTerm(model), solver, t0, t1, dt0, model.encode(state))`.

    **Arguments:** `model`, such as `rj.NullSpace(system)`.
    """

    model: AbstractFormulation

    def vf(self, t, y, args) -> Y:
        """The vector field of the model, where it has one; zero for equations of index 1 to 3."""
        if isinstance(self.model, AbstractAbsolute) and self.model.index > 0:
            return jax.tree.map(jnp.zeros_like, y)
        return self.model.vector_field(jnp.asarray(t), y, args)

    def contr(self, t0, t1, **kwargs) -> Time:
        """The length of the step."""
        return t1 - t0

    def prod(self, vf, control) -> Y:
        """Their product."""
        return jax.tree.map(lambda f: control * f, vf)


class AbstractStructureSolver(diffrax.AbstractSolver):
    """A solver that steps a formulation as a whole, by its structure.

    It takes a `ModelTerm`. Its unknowns are those of the model, so that whatever reads a solution
    goes on to work. `simulate` runs it without projection: what the scheme keeps it keeps itself.

    **Attributes:** `is_adaptive`, whether its error estimate can choose the step; `failure`, the
    name in `rj.RESULTS` of a step that cannot be made (diffrax knows it as
    `nonlinear_divergence`); `forces_may_jump`, between steps, which takes a method that carries no
    accelerations along.
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
        """Evaluations of the forces in the last attempted step, Jacobian columns apart."""
