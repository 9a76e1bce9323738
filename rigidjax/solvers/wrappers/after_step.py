"""Wrappers that change the unknowns at the end of every step."""

import abc
import dataclasses
from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, PyTree

from ...annotations import (
    Args,
    DenseInfo,
    Flag,
    History,
    InterpolationClass,
    Jump,
    Number,
    ReplayResult,
    StepResult,
    Terms,
    Time,
    Y,
)
from ...formulations import AbstractFormulation
from ...projection.base import AbstractProjection
from ...results import first_failure
from ...signals.controllers import sampled_sources
from ..dae.base import AbstractDAESolver
from ..dense import AbstractDenseOutput
from .probe_state import map_probe
from .replayable import AbstractReplayable, as_replayable


def innermost_solver(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
    """Return the solver inside all wrappers."""
    while isinstance(solver, diffrax.AbstractWrappedSolver):
        solver = solver.solver
    return solver


class AbstractDelegating(diffrax.AbstractWrappedSolver, AbstractReplayable):
    """A wrapper that changes the steps of a solver and has its other properties."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    @property
    def inner(self) -> AbstractReplayable:
        """The wrapped solver as one that can replay its steps."""
        return as_replayable(self.solver)

    @property
    def term_structure(self) -> PyTree[type[diffrax.AbstractTerm]]:
        return self.solver.term_structure

    @property
    def term_compatible_contr_kwargs(self) -> PyTree:
        return self.solver.term_compatible_contr_kwargs

    @property
    def scan_kind(self) -> str | None:
        """Kind of loop of the wrapped solver, which diffrax sets for a mode of differentiation."""
        return self.solver.scan_kind  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def root_finder(self) -> optx.AbstractRootFinder:
        return self.solver.root_finder  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def root_find_max_steps(self) -> int:
        return self.solver.root_find_max_steps  # pyright: ignore[reportAttributeAccessIssue]

    def order(self, terms: Terms) -> int | None:
        return self.solver.order(terms)

    def strong_order(self, terms: Terms) -> Number | None:
        return self.solver.strong_order(terms)

    def error_order(self, terms: Terms) -> Number | None:
        return self.solver.error_order(terms)

    def func(self, terms: Terms, t0: Time, y0: Y, args: Args) -> Y:
        return self.solver.func(terms, t0, y0, args)


class AbstractAfterStep(AbstractDelegating):
    """A wrapper that replaces the end of each step of a solver.

    The error estimate is that of the original step. First-same-as-last methods evaluate the vector
    field again at the replaced end, because the value that they carry belongs to the original one.

    **Attributes:** `solver`, the wrapped solver; `model`, the formulation; `always`, whether the
    end of every step is replaced.
    """

    solver: eqx.AbstractVar[diffrax.AbstractSolver]
    model: eqx.AbstractVar[AbstractFormulation]
    always: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def finish(self, t: Time, y: Y, dense_info: DenseInfo) -> tuple[Y, DenseInfo]:
        """Return the replaced unknowns `y` at the end `t` of a step, and its dense information."""

    @abc.abstractmethod
    def after(self, t: Time, y: Y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """Replace the unknowns `y` at the end `t` of a step.

        **Returns:** the new unknowns; whether they differ from `y` (`True` or an array); the result
        of the replacement.
        """

    def init(self, terms: Terms, t0: Time, t1: Time, y0: Y, args: Args) -> PyTree[Array]:
        """Return the state of the wrapped solver, and a flag for replaced unknowns, `False`."""
        return self.solver.init(terms, t0, t1, y0, args), jnp.array(False)

    def history(self, solver_state: PyTree[Array]) -> History:
        return self.inner.history(solver_state[0])

    def step_record(self, before: PyTree[Array], after: PyTree[Array]) -> PyTree[Array]:
        """Return the wrapped solver's record, and whether the start of the step was replaced."""
        return self.inner.step_record(before[0], after[0]), before[1]

    def replay(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        history: History,
        step_record: PyTree[Array],
        made_jump: Jump,
    ) -> ReplayResult:
        """Replay a step of the wrapped solver and replace its end."""
        inner_record, replaced = step_record
        jump = self._jump(made_jump, replaced)
        y1, dense_info, history = self.inner.replay(
            terms, t0, t1, y0, args, history, inner_record, jump
        )
        return *self.finish(t1, y1, dense_info), history

    def _jump(self, made_jump: Jump, replaced: Flag) -> Jump:
        """Return whether the wrapped solver resets its memory at the start of a step."""
        if not self.always:
            return made_jump | replaced
        is_sampled = bool(sampled_sources(self.model.multibody.sources))
        if is_sampled and isinstance(innermost_solver(self.solver), AbstractDAESolver):
            return made_jump  # A multistep method restarts at samples, not after a projection.
        # With a Python `True` the wrapped solver knows at compile time that its memory is reset.
        return True

    def replaced_step(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        solver_state: PyTree[Array],
        made_jump: Jump,
    ):
        """Make a step of the wrapped solver and replace its end.

        **Returns:** the original and the replaced unknowns; the error estimate; dense information
        of the original step; the state of the solver; the result.
        """
        inner_state, replaced = solver_state
        jump = self._jump(made_jump, replaced)
        y1, error, dense_info, inner_state, result = self.solver.step(
            terms, t0, t1, y0, args, inner_state, jump
        )
        new_y1, replaced, outcome = self.after(t1, y1)
        inner_state = map_probe(
            inner_state, (self, t1), lambda parts, y: parts[0].after(parts[1], y)[0], y1
        )
        result = first_failure(result, outcome)
        state = inner_state, jnp.asarray(replaced)
        return y1, new_y1, error, dense_info, state, result


class Projected(AbstractAfterStep):
    r"""A wrapper that projects the end of every step onto the constraints.

    Dense output is continuous: the change by the projection is blended in over the step.

    **Arguments:** `solver`, any diffrax solver; `model`, the formulation; `projection`.
    """

    solver: diffrax.AbstractSolver
    model: AbstractFormulation
    projection: AbstractProjection
    always: ClassVar[bool] = True

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Dense output of the wrapped solver with the change of the end blended in."""
        return Blended(self.solver.interpolation_cls)

    def after(self, t: Time, y: Y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """Return the projected unknowns."""
        y, result = self.projection(self.model, jnp.asarray(t), y)
        return y, True, result

    def step(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        solver_state: PyTree[Array],
        made_jump: Jump,
    ) -> StepResult[PyTree]:
        """Make a step and project its end."""
        y1, new_y1, error, dense_info, state, result = self.replaced_step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        return new_y1, error, with_change(dense_info, y1, new_y1), state, result

    def finish(self, t: Time, y: Y, dense_info: DenseInfo) -> tuple[Y, DenseInfo]:
        """Return the projected end, and dense information with its change."""
        new_y, _, _ = self.after(t, y)
        return new_y, with_change(dense_info, y, new_y)


class Recharted(AbstractAfterStep):
    r"""A wrapper that changes the reference rotations before a minimal parametrization is singular.

    The unknowns are `Charted`, as returned by `model.chart(state)`. Dense output of a step is in
    the chart of this step.

    **Arguments:** `solver`, any diffrax solver; `model`, a formulation with `recharting=True`.
    """

    solver: diffrax.AbstractSolver
    model: AbstractFormulation
    always: ClassVar[bool] = False

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    def after(self, t: Time, y: Y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """Return the unknowns in new charts, if any is close to a singularity."""
        y, has_changed = self.model.rechart(jnp.asarray(t), y)
        return y, has_changed, diffrax.RESULTS.successful

    def step(
        self,
        terms: Terms,
        t0: Time,
        t1: Time,
        y0: Y,
        args: Args,
        solver_state: PyTree[Array],
        made_jump: Jump,
    ) -> StepResult[PyTree]:
        """Make a step and change charts that are close to a singularity."""
        _, new_y1, error, dense_info, state, result = self.replaced_step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        return new_y1, error, dense_info, state, result

    def finish(self, t: Time, y: Y, dense_info: DenseInfo) -> tuple[Y, DenseInfo]:
        """Return the end in its new charts, and dense information in the old ones."""
        return self.after(t, y)[0], dense_info


def with_change(dense_info: DenseInfo, y: Y, new_y: Y) -> DenseInfo:
    """Return the dense information of `BlendedInterpolation`."""
    change = jax.tree.map(lambda new, old: new - old, new_y, y)
    return dict(dense_info=dense_info, change=change)


@dataclasses.dataclass(frozen=True)
class Blended:
    """Factory of `BlendedInterpolation` for an interpolation class, hashable by this class."""

    inner: InterpolationClass

    def __call__(
        self, *, t0: Time, t1: Time, dense_info: DenseInfo, change: Y
    ) -> "BlendedInterpolation":
        return BlendedInterpolation(t0, t1, self.inner(t0=t0, t1=t1, **dense_info), change)


class BlendedInterpolation(AbstractDenseOutput):
    r"""Dense output plus $s^2 (3 - 2 s)$ times the change of the end, for $s$ from 0 to 1."""

    t0: Time
    t1: Time
    inner: diffrax.AbstractLocalInterpolation
    change: Y

    def evaluate_at(self, t: Time) -> Y:
        """Return the unknowns at time `t`."""
        s = self.fraction(t)
        weight = s * s * (3.0 - 2.0 * s)
        return jax.tree.map(
            lambda y, d: y + weight.astype(d.dtype) * d, self.inner.evaluate(t), self.change
        )
