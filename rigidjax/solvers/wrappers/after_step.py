"""Hooks that change the unknowns at the end of every step."""

import abc
import dataclasses
from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from ...annotations import DenseInfo, Flag, InterpolationClass, Jump, Time, Y
from ...formulations import AbstractFormulation
from ...projection.projection import AbstractProjection
from ...results import first_failure
from ...signals.controllers import sampled_sources
from ..base.dense import AbstractDenseOutput
from ..base.hooked import AbstractHook, End, HookedSolver, Start, innermost_solver, with_hook
from ..dae.base import AbstractDAESolver
from .perturbed import map_probe


class AbstractAfterStep(AbstractHook):
    """A hook that replaces the end of each step.

    The error estimate is that of the original step. First-same-as-last methods evaluate the vector
    field again at the replaced end, because the value that they carry belongs to the original one.

    **Attributes:** `model`, the formulation.
    """

    model: eqx.AbstractVar[AbstractFormulation]
    has_flag: ClassVar[bool] = True

    @abc.abstractmethod
    def replace(self, t: Time, y: Y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """Replace the unknowns `y` at the end `t` of a step.

        **Returns:** the new unknowns; whether they differ from `y` (`True` or an array); the result
        of the replacement.
        """

    def blend(self, dense_info: DenseInfo, y: Y, new_y: Y) -> DenseInfo:
        """Return the dense information of a step whose end `y` is replaced by `new_y`."""
        return dense_info

    def before(self, start: Start, flag: Flag) -> Start:
        """Return the start, at which the solver resets its memory if it was replaced."""
        return start._replace(made_jump=start.made_jump | flag)

    def after(self, start: Start, end: End) -> tuple[End, Flag]:
        """Replace the end of a step."""
        (y, is_replaced, outcome), memory = map_probe(
            end.memory, (self, start.t1), lambda parts, y: parts[0].replace(parts[1], y), end.y
        )
        result = None if end.result is None else first_failure(end.result, outcome)
        dense_info = self.blend(end.dense_info, end.y, y)
        return End(y, end.error, dense_info, memory, result), jnp.asarray(is_replaced)


class ProjectedEnd(AbstractAfterStep):
    """A hook that projects the end of every step onto the constraints.

    Dense output is continuous: the change by the projection is blended in over the step.
    """

    model: AbstractFormulation
    projection: AbstractProjection

    @property
    def restarts(self) -> bool:
        return True

    def interpolation(self, inner: InterpolationClass) -> InterpolationClass:
        return Blended(inner)

    def blend(self, dense_info: DenseInfo, y: Y, new_y: Y) -> DenseInfo:
        return with_change(dense_info, y, new_y)

    def replace(self, t: Time, y: Y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """Return the projected unknowns."""
        y, result = self.projection(self.model, jnp.asarray(t), y)
        return y, True, result

    def before(self, start: Start, flag: Flag) -> Start:
        is_sampled = bool(sampled_sources(self.model.multibody.sources))
        if is_sampled and isinstance(innermost_solver(start.solver), AbstractDAESolver):
            return start  # A multistep method restarts at samples, not after a projection.
        # With a Python `True` the wrapped solver knows at compile time that its memory is reset.
        return start._replace(made_jump=True)


class RechartedEnd(AbstractAfterStep):
    """A hook that changes reference rotations before a minimal parametrization is singular.

    Dense output of a step is in the chart of this step.
    """

    model: AbstractFormulation

    def replace(self, t: Time, y: Y) -> tuple[Y, Jump, diffrax.RESULTS]:
        """Return the unknowns in new charts, if any is close to a singularity."""
        y, has_changed = self.model.rechart(jnp.asarray(t), y)
        return y, has_changed, diffrax.RESULTS.successful


class Projected(HookedSolver):
    r"""A solver that projects the end of every step onto the constraints.

    Dense output is continuous: the change by the projection is blended in over the step.

    **Arguments:** `solver`, any diffrax solver; `model`, the formulation; `projection`, such as
    `rj.projection.MassMetric()`.
    """

    def __init__(
        self,
        solver: diffrax.AbstractSolver,
        model: AbstractFormulation,
        projection: AbstractProjection,
    ):
        hooked = with_hook(solver, ProjectedEnd(model, projection))
        self.solver, self.hooks = hooked.solver, hooked.hooks


class Recharted(HookedSolver):
    r"""A solver that changes the reference rotations before a minimal parametrization is singular.

    The unknowns are `Charted`, as returned by `model.chart(state)`. Dense output of a step is in
    the chart of this step.

    **Arguments:** `solver`, any diffrax solver; `model`, a formulation with `recharting=True`.
    """

    def __init__(self, solver: diffrax.AbstractSolver, model: AbstractFormulation):
        hooked = with_hook(solver, RechartedEnd(model))
        self.solver, self.hooks = hooked.solver, hooked.hooks


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
