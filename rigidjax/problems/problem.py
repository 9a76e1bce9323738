"""A system with its initial state and its reference solution."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies import FixedPointBody
from ..checks import ArrayInput, float_array
from ..mechanics import System
from ..state import State


class Problem(eqx.Module):
    """A system with its initial state, an end time, and a reference solution if one is known.

    **Attributes:**

    - `name`: as in `rj.problems.all()`; `title`: a readable title of one line.
    - `system`: the argument of a formulation; `state0`: the state at t = 0; `t1`: end time, s.
    - `source`: origin of the data, with section.
    - `solution`: closed form of the motion, `(system, state0, ts) -> State`, or `None`.
    - `end_state`: the state at `t1` from an integration with 40 digits, or `None`. It is valid only
      for the unchanged data of the problem.

    Solution and end state may belong to a system of any number of bodies.
    """

    name: str = eqx.field(static=True)
    title: str = eqx.field(static=True)
    system: System | FixedPointBody
    state0: State
    t1: float = eqx.field(static=True)
    source: str = eqx.field(static=True)
    solution: Callable[[System | FixedPointBody, State, Array], State] | None = eqx.field(
        static=True, default=None
    )
    end_state: State | None = None

    @property
    def has_reference(self) -> bool:
        """Whether `reference` is available at all times, as opposed to `t1` alone."""
        return self.solution is not None

    @property
    def known(self) -> str:
        """Description of the origin of `reference`; empty without a reference."""
        if self.solution is not None:
            return "closed form"
        return "" if self.end_state is None else "an integration with 40 digits"

    def reference(self, ts: ArrayInput) -> State:
        """Return reference states, from a closed form or from an integration with 40 digits.

        **Arguments:** `ts`, times, shape (T,) s; for a problem without closed form, `[t1]`.
        **Returns:** states, each leaf with a leading axis of T.
        **Raises:** `ValueError` for a time without a reference.
        """
        ts = jnp.asarray(float_array(ts, "Problem.reference(ts=...)"))
        if ts.ndim != 1:
            raise ValueError(f"`Problem.reference(ts=...)` must have shape (T,); got {ts.shape}.")
        if self.solution is not None:
            return eqx.filter_jit(self.solution)(self.system, self.state0, ts)
        if self.end_state is None or not np.array_equal(ts, [self.t1]):
            known = "not known" if self.end_state is None else f"known only at t1 = {self.t1:g} s"
            raise ValueError(
                f"The motion of `{self.name}` has no closed form and is {known}; got ts = {ts}."
            )
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], self.end_state)


def spherical_states(orientation: Float[Array, "T 4"], omega: Float[Array, "T 3"]) -> State:
    """Return states of one body with a fixed point, each leaf with a leading axis of T."""
    return jax.vmap(lambda p, w: State(orientation=p, angular_velocity=w))(orientation, omega)


def spherical_state(orientation: ArrayInput, omega: ArrayInput) -> State:
    """Return the state of a body with a fixed point: quaternion (4,), body rates (3,), rad/s."""
    return State(orientation=orientation, angular_velocity=omega)


def states_along(
    position: Float[Array, "T L 3"],
    orientation: Float[Array, "T L 4"],
    velocity: Float[Array, "T L 3"],
    angular_velocity: Float[Array, "T L 3"],
) -> State:
    """Return states of several bodies, each leaf with a leading axis of T."""
    return jax.vmap(State)(position, orientation, velocity, angular_velocity)
