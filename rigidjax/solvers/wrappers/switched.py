r"""Derivatives of switching times.

If the vector field jumps where a switching function $h(t, y, \theta)$ changes its sign, the
switching time $\tau$ depends on the start and the parameters. The error control shortens the step
at the jump, but the tangents of the step lack

$$\delta y^+ - \delta y^- = (f^- - f^+)\,\delta\tau, \qquad
  \delta\tau = -\frac{\delta h}{h_t + h_y f^-},$$

with the vector fields $f^-$ before and $f^+$ after the jump. `SwitchingTimes` adds this term, whose
value is zero, to the end of the step.

**Source:** the saltation matrix; Aizerman and Gantmacher (1958), Kong et al., arXiv:2306.06862.
"""

import warnings
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from ...annotations import Args, Flag, InterpolationClass, Matrix, T, Terms, Time, Vector, Y
from ...signals.shared_tables import freeze_signals
from ...signals.signal import signals_of
from ...signals.switches import Switches, evaluate_switches, find_switches
from ..base.hooked import AbstractHook, End, Start, hooks_of, innermost_solver, with_hook
from ..base.terms import flatten, unwrap
from ..conserving.base import ModelTerm
from ..dae.equations import build_equations, differentiation_index, stop_gradients
from ..explicit.unrolled import directed_rate
from .after_step import Blended, with_change


class SwitchingTimes(AbstractHook):
    """A hook by which tangents contain the derivatives of switching times.

    The terms must have a vector field.
    """

    has_flag: ClassVar[bool] = True
    keeps_stages: ClassVar[bool] = False

    def interpolation(self, inner: InterpolationClass) -> InterpolationClass:
        return Blended(inner)

    def before(self, start: Start, flag: Flag) -> Start:
        return start._replace(made_jump=start.made_jump | flag)

    def after(self, start: Start, end: End) -> tuple[End, Flag]:
        """Add the derivatives of switching times to the end of a step."""
        new_y, change, switched = _add_switching_times(
            start.terms, start.args, start.t0, start.y, start.t1, end.y
        )
        memory = end.memory
        if end.result is not None:
            memory = _shift_history(memory, change)
        elif getattr(innermost_solver(start.solver), "is_multistep", False):
            memory = _shift_differences(memory[0], change), memory[1]
        dense_info = with_change(end.dense_info, end.y, new_y)
        return End(new_y, end.error, dense_info, memory, end.result), switched


def with_switching_times(kwargs: dict[str, PyTree], is_second: bool = False) -> dict[str, PyTree]:
    """Add the hook `SwitchingTimes` to the solver of a loop if its laws contain comparisons.

    **Arguments:** `kwargs`, of `AbstractAdjoint.loop`; `is_second`, whether second derivatives are
    taken.
    **Warns** if derivatives of switching times are left out: for equations of index 1 to 3,
    comparisons that cannot be detected, second derivatives and structure-preserving solvers.
    """
    args, state = kwargs["args"], kwargs["init_state"]
    # The comparisons by which a signal finds its piece do not count: steps end at its samples.
    terms = freeze_signals(kwargs["terms"], state.tprev)
    term, _ = unwrap(terms)
    index = differentiation_index(term)

    def field(t, y):
        if index is None:
            return directed_rate(terms, t, y, args)
        return build_equations(term, t, y, args).residual(t, *[flatten(y)[0]] * 2)

    has_switches, hidden = find_switches(field, state.tprev, state.y)
    for signal in signals_of(terms):
        if signal.jumps and signal.call_times == "any":
            _warn(
                f"a law calls {signal.label}, which jumps, at times that depend on the state, or "
                "not linearly on time. Replace its jumps by steep slopes."
            )
    for name in hidden:
        _warn(
            f"the law {name!r} compares values inside a loop, in a branch of `jax.lax.cond` or in "
            "a function with a custom derivative. If it jumps there, declare its switching "
            "function with `rj.Switch`."
        )
    if not has_switches:
        return kwargs
    if is_second:
        _warn(
            "second derivatives do not contain them, and a law of this model compares values. If "
            "it jumps, replace the jump by a steep slope."
        )
        return kwargs
    if index is not None or isinstance(term, ModelTerm):
        _warn(
            "equations of index 1 to 3 and structure-preserving solvers do not support them, and a "
            "law of this model compares values. If it jumps, use another solver with `NullSpace`, "
            "`Relative` or `Absolute(index=0)`, or replace the jump by a steep slope."
        )
        return kwargs
    # The hook is inside those that replace signals and values of controllers.
    hooks, memory, flags = hooks_of(kwargs["solver"]), state.solver_state, ()
    if hooks:
        memory, flags = memory
    index = next((i for i, hook in enumerate(hooks) if not hook.changes_field), len(hooks))
    flags = *flags[:index], jnp.array(False), *flags[index:]
    state = eqx.tree_at(
        lambda s: s.solver_state, state, (memory, flags), is_leaf=lambda x: x is None
    )
    solver = with_hook(kwargs["solver"], SwitchingTimes(), index)
    return {**kwargs, "solver": solver, "init_state": state}


def _warn(reason: str):
    start = "Derivatives of this run may lack the derivatives of switching times: "
    warnings.warn(start + reason, stacklevel=2)


def _add_switching_times(
    terms: Terms, args: Args, t0: Time, y0: Y, t1: Time, y1: Y
) -> tuple[Y, Vector, Flag]:
    """Add the derivatives of switching times to the end of a step.

    **Returns:** the end; the added term, (n,), of value zero; whether a law switched.
    """
    first, unravel = ravel_pytree(y0)
    still = stop_gradients((terms, args))

    def field(t, y, parameters=still, sides=None):
        terms, args = parameters
        return evaluate_switches(
            lambda t, y: ravel_pytree(directed_rate(terms, t, unravel(y), args))[0],
            t,
            y,
            sides=sides,
        )

    before = field(t0, first, (terms, args))
    if before.sides.size == 0:  # the vector field has comparisons at the first step only
        return y1, jnp.zeros_like(first), jnp.array(False)
    after = field(t1, ravel_pytree(y1)[0], (terms, args))
    parts, influence = _influence(field, *stop_gradients((t0, t1, first, before, after)))
    crossed = parts < jnp.inf
    parts = jnp.where(crossed, parts, 0.0)
    functions = before.functions + parts * (after.functions - before.functions)
    tangents_only = functions - stop_gradients(functions)
    change = influence @ tangents_only.astype(influence.dtype)
    return jax.tree.map(jnp.add, y1, unravel(change)), change, jnp.any(crossed)


def _shift_history(solver_state: T, change: Vector) -> T:
    """Shift all earlier unknowns of a multistep method by the change of the last ones.

    Their differences do not change.
    """

    def is_history(x):
        return hasattr(x, "phi")

    def shift(x):
        if not is_history(x):
            return x
        return eqx.tree_at(lambda history: history.phi, x, _shift_differences(x.phi, change))

    return jax.tree.map(shift, solver_state, is_leaf=is_history)


def _shift_differences(phi: Matrix, change: Vector) -> Matrix:
    return phi.at[0, : change.size].add(change)


def _influence(
    field: Callable[..., Switches],
    t0: Time,
    t1: Time,
    y0: Vector,
    before: Switches,
    after: Switches,
) -> tuple[Vector, Matrix]:
    """Locate sign changes of switching functions in a step; differentiate its end in the functions.

    Switches are processed in the order of their times, and a switch sees the sides of earlier ones
    after they have switched.
    **Returns:** the times as parts of the step, (K,), infinite without a sign change; derivatives
    of the end of the step with respect to the switching functions, (n, K).
    """
    # A step from zero, such as rest or contact, does not cross the surface; a step to zero does.
    sides_after = jnp.where(after.functions == 0, 1.0 - before.sides, after.sides)
    crossed = (before.sides != sides_after) & (before.functions != 0)
    h = t1 - t0
    change = after.functions - before.functions
    parts = jnp.where(crossed, -before.functions / jnp.where(crossed, change, 1.0), jnp.inf)

    def body(val):
        parts, sides, influence = val
        k = jnp.argmin(parts)
        part = parts[k] * h
        t = t0 + part
        y = y0 + part.astype(y0.dtype) * field(t0, y0, sides=before.sides).value
        new_sides = sides.at[k].set(sides_after[k])
        f_minus, f_plus = (field(t, y, sides=s).value for s in (sides, new_sides))
        _, rates = jax.jvp(lambda t, y: field(t, y).functions, (t, y), (jnp.ones_like(t), f_minus))
        # A rate of the wrong sign means that the motion only touches the surface.
        mean = change[k] / h
        rate = jnp.where(rates[k] * mean > 0, rates[k], mean)
        column = (f_plus - f_minus) / rate
        # Propagate to the end of the step to first order.
        _, column_rate = jax.jvp(lambda y: field(t, y, sides=new_sides).value, (y,), (column,))
        column = column + (h - part).astype(y.dtype) * column_rate
        column = jnp.where(jnp.all(jnp.isfinite(column)), column, 0.0)
        return parts.at[k].set(jnp.inf), new_sides, influence.at[:, k].set(column)

    start = parts, before.sides, jnp.zeros((y0.size, parts.size), y0.dtype)
    end = jax.lax.while_loop(lambda val: jnp.any(val[0] < jnp.inf), body, start)
    return stop_gradients(parts), stop_gradients(end[2])
