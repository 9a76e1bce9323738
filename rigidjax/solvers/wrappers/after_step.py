"""Solvers that do something to the unknowns after every step."""

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
    DenseInfo,
    History,
    InterpolationClass,
    Jump,
    Number,
    ReplayResult,
    StepResult,
    Time,
    Y,
)
from ...formulations import AbstractFormulation
from ...projection.base import AbstractProjection
from ..dense import AbstractDenseOutput
from .probe_state import map_probe
from .replayable import AbstractReplayable, as_replayable


class AbstractDelegating(diffrax.AbstractWrappedSolver, AbstractReplayable):
    """Wraps a solver and changes its steps, but not what it is."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    @property
    def inner(self) -> AbstractReplayable:
        """The wrapped solver as one that can repeat its steps."""
        return as_replayable(self.solver)

    @property
    def term_structure(self) -> PyTree[type[diffrax.AbstractTerm]]:
        return self.solver.term_structure

    @property
    def term_compatible_contr_kwargs(self) -> PyTree:
        return self.solver.term_compatible_contr_kwargs

    @property
    def scan_kind(self) -> str | None:
        """As the wrapped solver (diffrax sets it to choose a mode of differentiation)."""
        return self.solver.scan_kind  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def root_finder(self) -> optx.AbstractRootFinder:
        return self.solver.root_finder  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def root_find_max_steps(self) -> int:
        return self.solver.root_find_max_steps  # pyright: ignore[reportAttributeAccessIssue]

    def order(self, terms) -> int | None:
        return self.solver.order(terms)

    def strong_order(self, terms) -> Number | None:
        return self.solver.strong_order(terms)

    def error_order(self, terms) -> Number | None:
        return self.solver.error_order(terms)

    def func(self, terms, t0, y0, args) -> Y:
        return self.solver.func(terms, t0, y0, args)


class AbstractAfterStep(AbstractDelegating):
    """Wraps a solver and replaces the end of each of its steps.

    The error estimate stays that of the step itself. First-same-as-last methods evaluate the
    vector field again at the replaced end: what they carry belongs to the old one.
    """

    solver: eqx.AbstractVar[diffrax.AbstractSolver]
    model: eqx.AbstractVar[AbstractFormulation]
    always: eqx.AbstractClassVar[bool]  # whether every step's end is replaced

    @abc.abstractmethod
    def finish(self, t: Time, y: Y, dense_info: DenseInfo) -> tuple[Y, DenseInfo]:
        """The replaced end of a step that ended at `t` with `y`, and its dense information."""

    @abc.abstractmethod
    def after(self, t: Time, y: Y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """The replaced unknowns, whether they are new (`True` or an array), and the outcome."""

    def init(self, terms, t0, t1, y0, args) -> PyTree[Array]:
        """State of the wrapped solver, and whether the unknowns were replaced."""
        return self.solver.init(terms, t0, t1, y0, args), jnp.array(False)

    def history(self, solver_state) -> History:
        return self.inner.history(solver_state[0])

    def step_record(self, before, after) -> PyTree[Array]:
        """As the wrapped solver; and whether the unknowns were replaced before the step."""
        return self.inner.step_record(before[0], after[0]), before[1]

    def replay(self, terms, t0, t1, y0, args, history, step_record, made_jump) -> ReplayResult:
        """Step of the wrapped solver of which everything is known, its end replaced."""
        inner_record, replaced = step_record
        jump = True if self.always else made_jump | replaced
        y1, dense_info, history = self.inner.replay(
            terms, t0, t1, y0, args, history, inner_record, jump
        )
        return *self.finish(t1, y1, dense_info), history

    def replaced_step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """Step of the wrapped solver, its end replaced; and the change of the end."""
        inner_state, replaced = solver_state
        # A plain `True` lets the wrapped solver know at compile time that nothing is kept.
        jump = True if self.always else made_jump | replaced
        y1, error, dense_info, inner_state, result = self.solver.step(
            terms, t0, t1, y0, args, inner_state, jump
        )
        new_y1, replaced, outcome = self.after(t1, y1)
        inner_state = map_probe(
            inner_state, (self, t1), lambda parts, y: parts[0].after(parts[1], y)[0], y1
        )
        result = diffrax.RESULTS.where(diffrax.is_successful(result), outcome, result)
        state = inner_state, jnp.asarray(replaced)
        return y1, new_y1, error, dense_info, state, result


class Projected(AbstractAfterStep):
    r"""Projects the end of every step onto the constraints.

    Dense output joins the projected ends: the small change of the end is blended in over the step.

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

    def after(self, t, y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """The projected unknowns."""
        y, result = self.projection(self.model, jnp.asarray(t), y)
        return y, True, result

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump) -> StepResult[PyTree]:
        """One step and its projection."""
        y1, new_y1, error, dense_info, state, result = self.replaced_step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        return new_y1, error, with_change(dense_info, y1, new_y1), state, result

    def finish(self, t, y, dense_info) -> tuple[Y, DenseInfo]:
        """The projected end, and the change that dense output blends in."""
        new_y, _, _ = self.after(t, y)
        return new_y, with_change(dense_info, y, new_y)


class Recharted(AbstractAfterStep):
    r"""Moves the references of minimal parametrizations on before they become singular.

    The unknowns are `Charted`, as `model.chart(state)` makes them; dense output within a step stays
    in the chart in which the step was made.

    **Arguments:** `solver`, any diffrax solver; `model`, a formulation with `recharting=True`.
    """

    solver: diffrax.AbstractSolver
    model: AbstractFormulation
    always: ClassVar[bool] = False

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.interpolation_cls

    def after(self, t, y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """The unknowns in new charts, if any came close to a singularity."""
        y, moved = self.model.rechart(jnp.asarray(t), y)
        return y, moved, diffrax.RESULTS.successful

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump) -> StepResult[PyTree]:
        """One step, and a change of chart if it is due."""
        _, new_y1, error, dense_info, state, result = self.replaced_step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        return new_y1, error, dense_info, state, result

    def finish(self, t, y, dense_info) -> tuple[Y, DenseInfo]:
        """The end in its new charts; dense output stays in the old ones."""
        return self.after(t, y)[0], dense_info


def with_change(dense_info: DenseInfo, y: Y, new_y: Y) -> DenseInfo:
    """Return the dense information of `BlendedInterpolation`."""
    change = jax.tree.map(lambda new, old: new - old, new_y, y)
    return dict(dense_info=dense_info, change=change)


@dataclasses.dataclass(frozen=True)
class Blended:
    """Makes `BlendedInterpolation` of an interpolation class; compares by that class."""

    inner: InterpolationClass

    def __call__(
        self, *, t0: Time, t1: Time, dense_info: DenseInfo, change: Y
    ) -> "BlendedInterpolation":
        return BlendedInterpolation(t0, t1, self.inner(t0=t0, t1=t1, **dense_info), change)


class BlendedInterpolation(AbstractDenseOutput):
    r"""Dense output plus $s^2 (3 - 2 s)$ times the change of the step's end, $s$ from 0 to 1."""

    t0: Time
    t1: Time
    inner: diffrax.AbstractLocalInterpolation
    change: Y

    def evaluate_at(self, t: Time) -> Y:
        """Unknowns at `t`."""
        s = self.fraction(t)
        weight = s * s * (3.0 - 2.0 * s)
        return jax.tree.map(
            lambda y, d: y + weight.astype(d.dtype) * d, self.inner.evaluate(t), self.change
        )
