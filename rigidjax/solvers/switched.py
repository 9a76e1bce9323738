r"""Derivatives of the times at which forces jump.

Where a force jumps at $h(t, y, \theta) = 0$, the motion has a kink at a time $\tau$ that depends on
everything that is differentiated. Steps see the kink (their error estimate cuts them short there)
but not that it moves, so that tangents behind it lack

$$\delta y^+ - \delta y^- = (f^- - f^+)\,\delta\tau, \qquad
  \delta\tau = -\frac{\delta h}{h_t + h_y f^-},$$

with the vector field on both sides. It is added at the end of the step in which $h$ changes its
sign. Its value is zero; only its derivatives are not.

**Source:** the saltation matrix; Aizerman and Gantmacher (1958), Kong et al., arXiv:2306.06862.
"""

import warnings
from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, PyTree

from ..annotations import InterpolationClass, Matrix, Repeated, Stepped, T, Time, Vector, Y
from ..signal import with_signals
from ..switches import Switches, has_switches, hidden_switches, switches_of
from .after_step import AbstractDelegating, blended, with_change
from .dae.bdf.bdf import BDF
from .dae.bdf.history import DifferenceState
from .dae.equations import equations, frozen, index_of
from .knots import Pinned
from .structure.base import ModelTerm
from .terms import flattened, unwrapped
from .unrolled import rate


class Switched(AbstractDelegating):
    """A solver whose derivatives contain those of switching times.

    **Arguments:** `solver`, any diffrax solver, of terms with a vector field.
    """

    solver: diffrax.AbstractSolver

    @property
    def interpolation_cls(self) -> InterpolationClass:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Dense output of the wrapped solver with the change of the end blended in."""
        return blended(self.solver.interpolation_cls)

    def init(self, terms, t0, t1, y0, args):
        """State of the wrapped solver, and whether a law switched in the last step."""
        return self.solver.init(terms, t0, t1, y0, args), jnp.array(False)

    def past(self, solver_state):
        return self.inner.past(solver_state[0])

    def found(self, before, after):
        """As the wrapped solver; and whether a law switched in the step before."""
        return self.inner.found(before[0], after[0]), before[1]

    def repeated(self, terms, t0, t1, y0, args, past, found, made_jump) -> Repeated:
        found, switched = found
        y1, dense_info, past = self.inner.repeated(
            terms, t0, t1, y0, args, past, found, made_jump | switched
        )
        new_y1, change, _ = _with_moving_times(terms, args, t0, y0, t1, y1)
        if _is_multistep(self.solver):
            moved = _with_past_moved(DifferenceState(*past), change)
            past = moved.phi, moved.psi
        return new_y1, with_change(dense_info, y1, new_y1), past

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump) -> Stepped[Any]:
        """A step, at its end the derivatives of switching times."""
        inner_state, switched = solver_state
        y1, error, dense_info, inner_state, result = self.solver.step(
            terms, t0, t1, y0, args, inner_state, made_jump | switched
        )
        new_y1, change, switched = _with_moving_times(terms, args, t0, y0, t1, y1)
        inner_state = _with_past_moved(inner_state, change)
        dense_info = with_change(dense_info, y1, new_y1)
        return new_y1, error, dense_info, (inner_state, switched), result


def with_switching_times(kwargs: dict[str, PyTree], is_second: bool = False) -> dict[str, PyTree]:
    """Arguments of a loop (`AbstractAdjoint.loop`) whose derivatives are those of jumping laws.

    The same where laws do not compare numbers. **Warns** where derivatives lack those of switching
    times: for equations of index 1 to 3, laws that hide what they compare, second derivatives
    (`is_second`), structure-preserving methods.
    """
    args, state = kwargs["args"], kwargs["init_state"]
    # What a signal compares to find its piece is no jump: steps end at its samples.
    terms = with_signals(kwargs["terms"], lambda signal: signal.piece(state.tprev))
    term, _ = unwrapped(terms)
    index = index_of(term)

    def field(t, y):
        if index is None:
            return rate(terms, t, y, args)
        return equations(term, t, y, args).residual(t, *[flattened(y)[0]] * 2)

    at = state.tprev, state.y
    for name in sorted(hidden_switches(field, *at)):
        _warn(
            f"the law {name!r} compares numbers inside of a loop, a `jax.lax.cond` or a function "
            "with derivatives of its own. If it jumps there, say what it compares with `rj.Switch`."
        )
    if not has_switches(field, *at):
        return kwargs
    if is_second:
        _warn("a law compares numbers, and second derivatives have none. If it jumps, smooth it.")
        return kwargs
    if index is not None or isinstance(term, ModelTerm):
        _warn(
            "a law compares numbers, and equations of index 1 to 3 and structure-preserving "
            "solvers have none. If it jumps, smooth it, or take another solver and `NullSpace`, "
            "`Relative` or `Absolute(index=0)`."
        )
        return kwargs
    solver_state = state.solver_state, jnp.array(False)
    state = eqx.tree_at(lambda s: s.solver_state, state, solver_state, is_leaf=lambda x: x is None)
    return {**kwargs, "solver": _inside(kwargs["solver"]), "init_state": state}


def _warn(reason):
    start = "Derivatives of this run may lack those of the times at which laws switch: "
    warnings.warn(start + reason, stacklevel=2)


def _inside(solver):
    """`Switched` within a `Pinned` solver, which knows the pieces of signals in a step."""
    if isinstance(solver, Pinned):
        return eqx.tree_at(lambda s: s.solver, solver, _inside(solver.solver))
    return Switched(solver)


def _is_multistep(solver):
    while isinstance(solver, AbstractDelegating):
        solver = solver.solver
    return isinstance(solver, BDF)


def _with_moving_times(terms, args, t0, y0, t1, y1) -> tuple[Y, Vector, Bool[Array, ""]]:
    """The end of a step with derivatives by switching times, these, and whether there are any."""
    first, unravel = ravel_pytree(y0)
    still = frozen((terms, args))

    def field(t, y, given=still, sides=None):
        terms, args = given
        return switches_of(
            lambda t, y: ravel_pytree(rate(terms, t, unravel(y), args))[0], t, y, sides=sides
        )

    before = field(t0, first, (terms, args))
    if before.sides.size == 0:  # laws compared numbers in the first step only
        return y1, jnp.zeros_like(first), jnp.array(False)
    after = field(t1, ravel_pytree(y1)[0], (terms, args))
    parts, influence = _influence(field, *frozen((t0, t1, first, before, after)))
    crossed = parts < jnp.inf
    parts = jnp.where(crossed, parts, 0.0)
    differences = before.differences + parts * (after.differences - before.differences)
    differences -= frozen(differences)
    change = influence @ differences.astype(influence.dtype)
    return jax.tree.map(jnp.add, y1, unravel(change)), change, jnp.any(crossed)


def _with_past_moved(solver_state: T, change: Vector) -> T:
    """The state of a solver, all of its past moved as the end of the last step."""

    def is_past(x):
        return isinstance(x, DifferenceState)

    def moved(past):
        if not is_past(past):
            return past
        # Differences of values that all move alike stay what they are.
        return DifferenceState(past.phi.at[0, : change.size].add(change), past.psi)

    return jax.tree.map(moved, solver_state, is_leaf=is_past)


def _influence(
    field: Callable[..., Switches],
    t0: Time,
    t1: Time,
    y0: Vector,
    before: Switches,
    after: Switches,
) -> tuple[Vector, Matrix]:
    """Where in a step differences change their signs, and what that does to its end.

    Each is taken in the order of time, with the others as they are then.
    **Returns:** parts (K,) of the step, infinite for those that keep their signs; derivatives
    (n, K) of the end of the step by the differences there.
    """
    # What starts where it switches (at rest, in contact) has not crossed anything; what ends there
    # has.
    ends_there = after.differences == 0
    new = jnp.where(ends_there, 1.0 - before.sides, after.sides)
    crossed = (before.sides != new) & (before.differences != 0)
    count = crossed.size
    h = t1 - t0
    change = after.differences - before.differences
    parts = jnp.where(crossed, -before.differences / jnp.where(crossed, change, 1.0), jnp.inf)

    def body(val):
        parts, sides, influence = val
        k = jnp.argmin(parts)
        part = parts[k] * h
        t, y = t0 + part, y0 + part.astype(y0.dtype) * field(t0, y0, sides=before.sides).out
        new_sides = sides.at[k].set(new[k])
        old, behind = (field(t, y, sides=s).out for s in (sides, new_sides))
        _, rates = jax.jvp(lambda t, y: field(t, y).differences, (t, y), (jnp.ones_like(t), old))
        # Where the rate has the wrong sign the step only touches: its mean rate.
        mean = change[k] / h
        slope = jnp.where(rates[k] * mean > 0, rates[k], mean)
        column = (behind - old) / slope
        # On to the end of the step.
        _, rate = jax.jvp(lambda y: field(t, y, sides=new_sides).out, (y,), (column,))
        column = column + (h - part).astype(y.dtype) * rate
        column = jnp.where(jnp.all(jnp.isfinite(column)), column, 0.0)
        return parts.at[k].set(jnp.inf), new_sides, influence.at[:, k].set(column)

    start = parts, before.sides, jnp.zeros((y0.size, count), y0.dtype)
    end = jax.lax.while_loop(lambda val: jnp.any(val[0] < jnp.inf), body, start)
    return frozen(parts), frozen(end[2])
