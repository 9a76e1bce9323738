"""Base classes of the one-step schemes, as diffrax solvers."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import (
    Args,
    Count,
    Flag,
    InterpolationClass,
    Scalar,
    StepResult,
    T,
    Terms,
    Time,
    Vector,
)
from ...formulations import AbstractFormulation
from ...mechanics import has_joints
from ..base.dense import StepInterpolation
from ..base.replayable import Start
from ..base.step_results import RESULTS
from ..base.terms import apply_direction, unwrap
from .base import AbstractStructureSolver
from .equations import AbstractMotionStep, Root, find_root
from .motion import BodyMotion, decode_motion, encode_motion
from .phase import Phase, decode_phase, encode_phase, pose_rates


class StepMemory(eqx.Module):
    """State of the solver between two steps.

    **Attributes:** `iterations`, of Newton's method in the last step; `valid`, whether the scheme
    is defined on the model; with joints `twists` of all bodies, which may violate the velocity
    constraints (the unknowns of `NullSpace` contain the nearest twists that satisfy them), and
    `multipliers`, the initial iterate of the next step.
    """

    iterations: Count
    valid: Flag
    twists: Float[Array, "L 6"] | None = None
    multipliers: Vector | None = None


class AbstractOneStepSolver(AbstractStructureSolver):
    """An implicit one-step scheme of order 2.

    The equations of a step are solved by Newton's method to round-off, and derivatives of any order
    are those of the solution. If the iteration, which starts from the twists at the start of the
    step, does not converge, the run ends with `nonlinear_divergence`.

    Dense output is a cubic Hermite polynomial (with joints, velocities are linear in time).
    Invariants are conserved at the ends of steps, but not by the dense output.

    **Attributes:** `max_iterations`, of Newton's method.
    """

    max_iterations: eqx.AbstractVar[int]

    is_adaptive: ClassVar[bool] = False
    interpolation_cls: ClassVar[InterpolationClass] = StepInterpolation

    @abc.abstractmethod
    def step_of_body(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: BodyMotion
    ) -> AbstractMotionStep:
        """Return the equations of a step of the model's only body."""

    @abc.abstractmethod
    def initial_memory(
        self, model: AbstractFormulation, t0: Scalar, y0: Vector, memory: StepMemory
    ) -> StepMemory:
        """Add the twists and multipliers that the first step needs to `memory`."""

    @abc.abstractmethod
    def advance(
        self, model: AbstractFormulation, t0: Scalar, t1: Scalar, y0: Vector, memory: StepMemory
    ) -> tuple[Vector, Array | None, StepMemory, Root]:
        """Advance the unknowns by one step.

        **Returns:** unknowns at the end; rates at both ends times the length of the step for dense
        output, (2, N), `None` for those of the vector field; the new memory; the result of Newton's
        method.
        """

    def advance_body(
        self, model: AbstractFormulation, t0: Scalar, t1: Scalar, y0: Vector, memory: StepMemory
    ) -> tuple[Vector, Array | None, StepMemory, Root]:
        """Advance the unknowns of a model with one body, see `advance`."""
        equations = self.step_of_body(model, t0, t1 - t0, decode_motion(model, y0))
        root = find_root(equations, equations.guess(), self.max_iterations)
        y1 = encode_motion(model, equations.end(root.Z))
        return y1, None, StepMemory(root.iterations, memory.valid), root

    def check_traced_model(self, model: AbstractFormulation, value: T) -> T:
        """Return `value` with a runtime check of the model's traced parameters."""
        return value

    def order(self, terms: Terms) -> int:
        return 2

    def evaluations(self, solver_state: StepMemory) -> Count:
        """Return the Newton iterations of the last step."""
        return solver_state.iterations

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Vector, args: Args) -> StepMemory:
        """Return the initial state; raise for a model that the scheme is not defined on."""
        term, direction = unwrap(terms)
        model: AbstractFormulation = term.model
        self.check_model(model)
        memory = StepMemory(jnp.array(0), self.check_traced_model(model, jnp.array(True)))
        return self.initial_memory(model, apply_direction(direction, jnp.asarray(t0)), y0, memory)

    def make_step(self, start: Start) -> StepResult[StepMemory]:
        _, terms, t0, t1, y0, args, _, solver_state = start
        term, direction = unwrap(terms)
        t0, t1 = (
            jnp.asarray(apply_direction(direction, jnp.asarray(t)), y0.dtype) for t in (t0, t1)
        )
        y1, slopes, memory, root = self.advance(term.model, t0, t1, y0, solver_state)
        if slopes is None:
            times, ys = jnp.stack([t0, t1]), jnp.stack([y0, y1])
            slopes = (t1 - t0) * jax.vmap(lambda t, y: term.vf(t, y, args))(times, ys)
        solved = root.okay & memory.valid
        result = RESULTS.where(solved, RESULTS.successful, RESULTS.nonlinear_divergence)
        return y1, None, dict(y0=y0, y1=y1, k=slopes), memory, result


class AbstractSystemStepSolver(AbstractOneStepSolver):
    """A one-step scheme for one body with a fixed point and for systems with or without joints."""

    @abc.abstractmethod
    def step_of_system(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector
    ) -> tuple[Phase, Root]:
        """Make a step of a system.

        **Arguments:** `model`; `t0`, start of the step, and `h`, its length, s; `start`, poses and
        twists at its start; `multipliers`, their initial iterate.
        **Returns:** poses and twists at the end; the result of Newton's method, for increments and
        multipliers.
        """

    def initial_memory(
        self, model: AbstractFormulation, t0: Scalar, y0: Vector, memory: StepMemory
    ) -> StepMemory:
        if not has_joints(model.system):
            return memory
        twists = decode_phase(model, t0, y0).twists
        count = model.prepared_system.num_constraints
        return StepMemory(memory.iterations, memory.valid, twists, jnp.zeros(count, y0.dtype))

    def advance(
        self, model: AbstractFormulation, t0: Scalar, t1: Scalar, y0: Vector, memory: StepMemory
    ) -> tuple[Vector, Array | None, StepMemory, Root]:
        if not model.multibody.translates:
            return self.advance_body(model, t0, t1, y0, memory)
        h, start = t1 - t0, decode_phase(model, t0, y0)
        if memory.twists is None or memory.multipliers is None:
            end, root = self.step_of_system(model, t0, h, start, jnp.zeros(0, y0.dtype))
            return (
                encode_phase(model, t1, end),
                None,
                StepMemory(root.iterations, memory.valid),
                root,
            )
        start = eqx.tree_at(lambda phase: phase.twists, start, memory.twists)
        end, root = self.step_of_system(model, t0, h, start, memory.multipliers)
        y1 = encode_phase(model, t1, end)
        size = model.layout.num_positions
        # Velocities are linear in time.
        slopes = [
            jnp.concatenate([h * pose_rates(model, phase).ravel(), (y1 - y0)[size:]])
            for phase in (start, end)
        ]
        multipliers = root.Z[end.twists.size :]
        memory = StepMemory(root.iterations, memory.valid, end.twists, multipliers)
        return y1, jnp.stack(slopes), memory, root
