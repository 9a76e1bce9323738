"""Steps of systems with joints as a diffrax solver makes them."""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import diffrax
import equinox as eqx
import jax.numpy as jnp

from ....formulations import AbstractFormulation
from ....system import has_joints
from ...outcome import RESULTS
from ...terms import unwrapped
from ..free_bodies import AbstractFreeBodySolver
from .phase import Phase, phase_of, pose_rates, unknowns_of
from .saddle import Root

Step: TypeAlias = Callable[[AbstractFormulation, Any, Any, Phase, Any], tuple[Phase, Root]]


class Memory(eqx.Module):
    """What one step hands to the next.

    `twists` of all bodies, which the joints need not allow (the unknowns of `NullSpace` have those
    nearest to them); `multipliers`, the next guess; `count`, of Newton iterations.
    """

    twists: Any
    multipliers: Any
    count: Any


def _first(model: AbstractFormulation, t0: Any, y0: Any) -> Memory:
    """Before the first step."""
    phase = phase_of(model, t0, y0)
    jointed: Any = model.jointed
    multipliers = jnp.zeros(jointed.mechanics.num_joint_constraints, y0.dtype)
    return Memory(phase.twists, multipliers, jnp.array(0))


def _step(
    step: Step, model: AbstractFormulation, t0: Any, t1: Any, y0: Any, memory: Memory
) -> tuple[Any, dict[str, Any], Memory, Any]:
    """A step from `t0` to `t1`.

    **Returns:** unknowns, dense information for a cubic interpolation, memory, result.
    """
    h = t1 - t0
    start = eqx.tree_at(lambda phase: phase.twists, phase_of(model, t0, y0), memory.twists)
    end, root = step(model, t0, h, start, memory.multipliers)
    y1 = unknowns_of(model, t1, end)
    result = RESULTS.where(root.found, RESULTS.successful, RESULTS.nonlinear_divergence)
    size = model.layout.num_positions
    # Velocities change at a constant rate.
    slopes = [
        jnp.concatenate([h * pose_rates(model, phase).ravel(), (y1 - y0)[size:]])
        for phase in (start, end)
    ]
    dense = dict(y0=y0, y1=y1, k=jnp.stack(slopes))
    return y1, dense, Memory(end.twists, root.multipliers, root.count), result


class AbstractSystemSolver(AbstractFreeBodySolver):
    """A scheme for free bodies with a form of it for systems with joints."""

    @abc.abstractmethod
    def step_of_joints(
        self, model: AbstractFormulation, t0: Any, h: Any, start: Phase, multipliers: Any
    ) -> tuple[Phase, Root]:
        """A step of a system with joints."""

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        """As for free bodies; with joints, a `Memory`."""
        term, direction = unwrapped(terms)
        if not has_joints(term.model.system):
            return super().init(terms, t0, t1, y0, args)
        self.check_model(term.model)
        return _first(term.model, direction * t0, y0)

    def evaluations(self, solver_state: Any) -> Any:
        """Newton iterations of the last step."""
        if isinstance(solver_state, Memory):
            return solver_state.count
        return super().evaluations(solver_state)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any
    ) -> tuple[Any, Any, Any, Any, diffrax.RESULTS]:
        """One step from `t0` to `t1`."""
        term, direction = unwrapped(terms)
        model = term.model
        if not has_joints(model.system):
            return super().step(terms, t0, t1, y0, args, solver_state, made_jump)
        t0, t1 = (jnp.asarray(direction * t, y0.dtype) for t in (t0, t1))
        y1, dense, memory, result = _step(self.step_of_joints, model, t0, t1, y0, solver_state)
        return y1, None, dense, memory, result
