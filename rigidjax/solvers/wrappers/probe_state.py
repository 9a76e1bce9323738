"""State of a tangent that is integrated with the unknowns to choose steps (see `probe`)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, PyTree

from ...annotations import Scalar, T, Y
from ..dae.equations import stop_gradients


class Probe(eqx.Module):
    """Unknowns `y` and a tangent `v`, which are integrated together."""

    y: Y
    v: Y


class ProbeState(NamedTuple):
    """State of a `Probed` solver.

    **Attributes:** `inner`, state of the solver for unknowns and probe; `v`, the probe; `drive`,
    size of the perturbation of parameters; `size`, of the probe in the last steps; `error`, sum of
    the relative errors of the probe.
    """

    inner: PyTree[Array]
    v: Y
    drive: Scalar
    size: Scalar
    error: Scalar


@eqx.filter_custom_jvp
def value_and_rate(both: Callable, plain: Callable, *args: Any) -> tuple[PyTree, PyTree]:
    """Return `both(*args)`: the value of `plain(*args)`, and a rate that has no derivatives.

    The value is computed twice in a differentiated run only. The functions close over no arrays.
    """
    return both(*args)


@value_and_rate.def_jvp
def _value_and_rate_jvp(primals: tuple, tangents: tuple):
    both, plain, *args = primals
    value, value_tangent = eqx.filter_jvp(plain, tuple(args), tangents[2:])
    _, rate = both(*args)
    return (value, rate), (value_tangent, jax.tree.map(lambda _: None, rate))


def map_probe(
    solver_state: T, parts: PyTree, function: Callable[[PyTree, Y], tuple[Y, *tuple[Any, ...]]],
    y: Y,
) -> tuple[Any, T]:  # fmt: skip
    """Return `function(parts, y)`, whose first result replaces the unknowns, and the state of a
    solver with its probe, if any, mapped by the derivative of that result.

    The new probe has no derivatives.
    """
    probe = find_probe_state(solver_state)
    if probe is None:
        return function(parts, y), solver_state

    def both(parts, y, v):
        def call(y):
            first, *others = function(parts, y)
            return first, others

        first, rate, others = jax.jvp(call, (y,), (v,), has_aux=True)
        return (first, *others), rate

    out, v = value_and_rate(both, lambda parts, y, v: function(parts, y), parts, y, probe.v)

    def replace(state):
        return state._replace(v=stop_gradients(v)) if _is_state(state) else state

    return out, jax.tree.map(replace, solver_state, is_leaf=_is_state)


def find_probe_state(solver_state: PyTree) -> ProbeState | None:
    """Return the state of a `Probed` solver inside the state of a solver, `None` without one."""
    return next(filter(_is_state, jax.tree.leaves(solver_state, is_leaf=_is_state)), None)


def _is_state(x: Any) -> bool:
    return isinstance(x, ProbeState)
