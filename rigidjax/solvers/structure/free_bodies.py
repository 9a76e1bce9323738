"""What the one-step schemes for bodies without joints have in common."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from ...formulations import AbstractFormulation
from ..outcome import RESULTS
from ..terms import unwrapped
from .base import AbstractStructureSolver
from .interpolation import StepInterpolation
from .motion import Motion, motion_of, unknowns_of
from .motion_step import AbstractMotionStep
from .newton import find_root


class AbstractFreeBodySolver(AbstractStructureSolver):
    """An implicit one-step scheme of order 2 for bodies without joints.

    A step is solved by Newton's method to round-off; derivatives, of any order, are those of the
    solution. Where it has none, or none that Newton's method finds from the twists at the start of
    the step, the run ends with `nonlinear_divergence`.

    Between steps unknowns are interpolated by cubic polynomials with the true rates at both ends:
    what a scheme conserves it conserves at its steps.

    **Attributes:** `max_iterations` of Newton's method.
    """

    max_iterations: eqx.AbstractVar[int]

    is_adaptive: ClassVar[bool] = False
    interpolation_cls: ClassVar[Callable[..., Any]] = StepInterpolation

    @abc.abstractmethod
    def equations(
        self, model: AbstractFormulation, t0: Any, h: Any, start: Motion
    ) -> AbstractMotionStep:
        """The equations of one step."""

    def order(self, terms: Any) -> int:
        """Order of the scheme."""
        return 2

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """The vector field of the model."""
        return terms.vf(t0, y0, args)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        """No step has been made; raises for a model that the scheme is not defined on."""
        model = unwrapped(terms)[0].model
        self.check_model(model)
        return jnp.array(0), self.checked(model, jnp.array(True))

    @abc.abstractmethod
    def checked(self, model: AbstractFormulation, value: Any) -> Any:
        """`value`, with a check of those numbers of the model that are not known before."""

    def evaluations(self, solver_state: Any) -> Any:
        """Newton iterations of the last step."""
        return solver_state[0]

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> tuple[Any, Any, Any, Any, diffrax.RESULTS]:
        """One step from `t0` to `t1`."""
        term, direction = unwrapped(terms)
        model = term.model
        t0, t1 = (jnp.asarray(direction * t, y0.dtype) for t in (t0, t1))
        h = t1 - t0
        equations = self.equations(model, t0, h, motion_of(model, y0))
        root = find_root(equations, equations.guess(), self.max_iterations)
        y1 = unknowns_of(model, equations.end(root.Z))
        rates = jax.vmap(lambda t, y: term.vf(t, y, args))(jnp.stack([t0, t1]), jnp.stack([y0, y1]))
        dense = dict(y0=y0, y1=y1, k=h * rates)
        _, valid = solver_state
        result = RESULTS.where(root.okay & valid, RESULTS.successful, RESULTS.nonlinear_divergence)
        return y1, None, dense, (root.iterations, valid), result
