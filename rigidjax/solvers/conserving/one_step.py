"""What the one-step schemes have in common: as solvers of diffrax."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Count, Flag, InterpolationClass, Scalar, Stepped, T, Vector, Y
from ...formulations import AbstractFormulation
from ...mechanics import has_joints
from ..step_results import RESULTS
from ..terms import signed, unwrapped
from .base import AbstractStructureSolver
from .equations import AbstractMotionStep
from .interpolation import StepInterpolation
from .motion import BodyMotion, motion_of, unknowns_of as unknowns_of_motion
from .newton import Root, find_root
from .phase import Phase, phase_of, pose_rates, unknowns_of


class StepMemory(eqx.Module):
    """What one step hands to the next.

    `count`, of Newton iterations; `valid`, whether the model is one that the scheme is defined on;
    with joints `twists` of all bodies, which the joints need not allow (the unknowns of `NullSpace`
    have those nearest to them), and `multipliers`, the next guess.
    """

    count: Count
    valid: Flag
    twists: Float[Array, "L 6"] | None = None
    multipliers: Vector | None = None


class AbstractOneStepSolver(AbstractStructureSolver):
    """An implicit one-step scheme of order 2.

    A step is solved by Newton's method to round-off; derivatives, of any order, are those of the
    solution. Where it has none, or none that Newton's method finds from the twists at the start of
    the step, the run ends with `nonlinear_divergence`.

    Between steps unknowns are interpolated by cubic polynomials with the true rates at both ends
    (with joints, velocities by a line): what a scheme conserves it conserves at its steps.

    **Attributes:** `max_iterations` of Newton's method.
    """

    max_iterations: eqx.AbstractVar[int]

    is_adaptive: ClassVar[bool] = False
    interpolation_cls: ClassVar[InterpolationClass] = StepInterpolation

    @abc.abstractmethod
    def step_of_body(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: BodyMotion
    ) -> AbstractMotionStep:
        """The equations of a step of the one body that the model has."""

    @abc.abstractmethod
    def first_memory(
        self, model: AbstractFormulation, t0: Scalar, y0: Vector, memory: StepMemory
    ) -> StepMemory:
        """`memory`, completed by what the first step needs."""

    @abc.abstractmethod
    def advance(
        self, model: AbstractFormulation, t0: Scalar, t1: Scalar, y0: Vector, memory: StepMemory
    ) -> tuple[Vector, Array | None, StepMemory, Root]:
        """Unknowns at the end of a step, increments over the step at its ends (`None` for the true
        rates), memory, root."""

    def advance_body(
        self, model: AbstractFormulation, t0: Scalar, t1: Scalar, y0: Vector, memory: StepMemory
    ) -> tuple[Vector, Array | None, StepMemory, Root]:
        """`advance` of the one body that the model has."""
        equations = self.step_of_body(model, t0, t1 - t0, motion_of(model, y0))
        root = find_root(equations, equations.guess(), self.max_iterations)
        y1 = unknowns_of_motion(model, equations.end(root.Z))
        return y1, None, StepMemory(root.iterations, memory.valid), root

    def checked(self, model: AbstractFormulation, value: T) -> T:
        """`value`, with a check of those numbers of the model that are not known before."""
        return value

    def order(self, terms) -> int:
        """Order of the scheme."""
        return 2

    def func(self, terms, t0, y0, args) -> Y:
        """The vector field of the model."""
        return terms.vf(t0, y0, args)

    def evaluations(self, solver_state: StepMemory) -> Count:
        """Newton iterations of the last step."""
        return solver_state.count

    def init(self, terms, t0, t1, y0, args) -> StepMemory:
        """No step has been made; raises for a model that the scheme is not defined on."""
        term, direction = unwrapped(terms)
        model: AbstractFormulation = term.model
        self.check_model(model)
        memory = StepMemory(jnp.array(0), self.checked(model, jnp.array(True)))
        return self.first_memory(model, signed(direction, jnp.asarray(t0)), y0, memory)

    def step(
        self, terms, t0, t1, y0, args, solver_state: StepMemory, made_jump
    ) -> Stepped[StepMemory]:
        term, direction = unwrapped(terms)
        t0, t1 = (jnp.asarray(signed(direction, jnp.asarray(t)), y0.dtype) for t in (t0, t1))
        y1, slopes, memory, root = self.advance(term.model, t0, t1, y0, solver_state)
        if slopes is None:
            times, ys = jnp.stack([t0, t1]), jnp.stack([y0, y1])
            slopes = (t1 - t0) * jax.vmap(lambda t, y: term.vf(t, y, args))(times, ys)
        found = root.okay & memory.valid
        result = RESULTS.where(found, RESULTS.successful, RESULTS.nonlinear_divergence)
        return y1, None, dict(y0=y0, y1=y1, k=slopes), memory, result


class AbstractSystemStepSolver(AbstractOneStepSolver):
    """One that steps systems as well, with joints or without."""

    @abc.abstractmethod
    def step_of_system(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector
    ) -> tuple[Phase, Root]:
        """A step of a system: its end, and the root, increments and multipliers.

        **Arguments:** `multipliers`, the guess.
        """

    def first_memory(self, model, t0, y0, memory):
        if not has_joints(model.system):
            return memory
        twists = phase_of(model, t0, y0).twists
        number = model.mechanics.num_joint_constraints
        return StepMemory(memory.count, memory.valid, twists, jnp.zeros(number, y0.dtype))

    def advance(self, model, t0, t1, y0, memory):
        if not model.multibody.translates:
            return self.advance_body(model, t0, t1, y0, memory)
        h, start = t1 - t0, phase_of(model, t0, y0)
        if memory.twists is None or memory.multipliers is None:
            end, root = self.step_of_system(model, t0, h, start, jnp.zeros(0, y0.dtype))
            return (
                unknowns_of(model, t1, end),
                None,
                StepMemory(root.iterations, memory.valid),
                root,
            )
        start = eqx.tree_at(lambda phase: phase.twists, start, memory.twists)
        end, root = self.step_of_system(model, t0, h, start, memory.multipliers)
        y1 = unknowns_of(model, t1, end)
        size = model.layout.num_positions
        # Velocities change at a constant rate.
        slopes = [
            jnp.concatenate([h * pose_rates(model, phase).ravel(), (y1 - y0)[size:]])
            for phase in (start, end)
        ]
        multipliers = root.Z[end.twists.size :]
        memory = StepMemory(root.iterations, memory.valid, end.twists, multipliers)
        return y1, jnp.stack(slopes), memory, root
