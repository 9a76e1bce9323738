"""State of a tangent that is integrated with the unknowns to choose steps (see `probe`)."""

from collections.abc import Callable
from typing import NamedTuple

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


def map_probe(solver_state: T, parts: PyTree, function: Callable[[PyTree, Y], Y], y: Y) -> T:
    """Map the probe in the state of a solver, if any, by the derivative of `function(parts, y)`.

    The result has no derivatives.
    """
    parts, y = stop_gradients((parts, y))

    def is_state(x):
        return isinstance(x, ProbeState)

    def map_state(state):
        if not is_state(state):
            return state
        v = jax.jvp(lambda y: function(parts, y), (y,), (stop_gradients(state.v),))[1]
        return state._replace(v=stop_gradients(v))

    return jax.tree.map(map_state, solver_state, is_leaf=is_state)
