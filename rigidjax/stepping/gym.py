"""A stepper as an environment of gymnasium."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..extras import import_optional
from ..formulations.view import SystemView
from ..native import call_as_kernel, why_too_large_matrices
from ..results import RESULTS, SimulationError
from ..state import State
from .stepper import Stepper, StepperState

gymnasium = import_optional("gymnasium", "Environments for learners")


class GymEnvironment(gymnasium.Env):
    """A `Stepper` as an environment of gymnasium, for the learners that take one.

    An action is a vector with all entries of the inputs in `actions`, in their order. A step, its
    observation and its reward are one compiled function. For thousands of environments use
    `jax.vmap` of `Stepper.step` instead: a call of this class costs more than the step.

    **Arguments:**

    - `stepper`: the model and its period.
    - `start`: returns the state in which an episode starts from a `numpy.random.Generator`.
    - `observation`: returns the observation, shape (n,), from a `SystemView`.
    - `reward`: returns the reward of a period, a scalar, from the view at its end and the action,
      a dict of values by name.
    - `actions`: the lowest and the highest value of each input, by name.
    - `terminated`: returns whether the episode ends, from a view; `None` for never.
    - `max_periods`: the number of periods after which an episode is truncated; `None` for any.

    **Raises:** `ModuleNotFoundError` without the extra `rigidjax[gym]`; `TypeError` for an object
    that is not a stepper; `ValueError` for unknown inputs, bounds that are not in order, and
    results of another shape; `SimulationError` for a period that fails.
    """

    def __init__(
        self,
        stepper: Stepper,
        start: Callable[[np.random.Generator], State],
        observation: Callable[[SystemView], Any],
        reward: Callable[[SystemView, dict[str, Array]], Any],
        actions: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        terminated: Callable[[SystemView], Any] | None = None,
        max_periods: int | None = None,
    ):
        if not isinstance(stepper, Stepper):
            raise TypeError(
                f"`GymEnvironment(stepper, ...)` takes a `Stepper`; got {type(stepper).__name__}."
            )
        self.stepper, self._start, self._max_periods = stepper, start, max_periods
        shapes = stepper.input_shapes
        unknown = set(actions) - set(shapes)
        if unknown:
            raise ValueError(
                f"`GymEnvironment(actions=...)`: there is no input called {min(unknown)!r}. The "
                f"inputs are {sorted(shapes)}."
            )
        self._shapes = {name: shapes[name] for name in actions}
        bounds = [
            [np.ravel(np.broadcast_to(np.asarray(x, float), shapes[name])) for x in pair]
            for name, pair in actions.items()
        ]
        low, high = (np.concatenate([pair[k] for pair in bounds]) for k in (0, 1))
        if not np.all(low < high):
            raise ValueError(
                "`GymEnvironment(actions=...)` takes pairs of a low and a higher value; got "
                f"{dict(actions)}."
            )
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        self._state: StepperState | None = None

        def read(y: StepperState) -> Float[Array, " n"]:
            return jnp.asarray(observation(stepper.observe(y)))

        def advance(y: StepperState, action: Float[Array, " m"]) -> tuple[Any, ...]:
            inputs = self._split_action(action)
            y = stepper.step(y, inputs)
            view = stepper.observe(y)
            ended = jnp.array(False) if terminated is None else jnp.asarray(terminated(view))
            return y, jnp.asarray(observation(view)), jnp.asarray(reward(view, inputs)), ended

        example = jax.eval_shape(stepper.init, start(np.random.default_rng(0)))
        found = jax.eval_shape(advance, example, jnp.asarray(low))
        for name, value, rank in zip(
            ("observation", "reward", "terminated"), found[1:], (1, 0, 0), strict=True
        ):
            if value.ndim != rank:
                expected = "shape (n,)" if rank else "a scalar"
                raise ValueError(
                    f"`GymEnvironment({name}=...)` must return {expected}; got shape {value.shape}."
                )
        self.observation_space = gymnasium.spaces.Box(
            -np.inf, np.inf, found[1].shape, dtype=np.float64
        )
        backend = stepper.method.backend
        self._read = eqx.filter_jit(
            lambda y: call_as_kernel(backend, why_too_large_matrices, read, y)
        )
        self._advance = eqx.filter_jit(
            lambda y, action: call_as_kernel(backend, why_too_large_matrices, advance, y, action)
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode; return its first observation, (n,), and the time, s.

        `options={"state": state}` starts at a given state.
        """
        super().reset(seed=seed)
        state = (options or {}).get("state")
        state = self._start(self.np_random) if state is None else state
        self._state = self.stepper.init(state)
        return np.asarray(self._read(self._state)), {"t": float(self._state.t)}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Advance by a period; return observation, reward, `terminated`, `truncated` and the time.

        **Errors:** `RuntimeError` before `reset`, `SimulationError` for a period that fails.
        """
        if self._state is None:
            raise RuntimeError("`GymEnvironment.step` needs a start: call `reset` first.")
        values = np.asarray(action, float).reshape(self.action_space.shape)
        y, observed, reward, ended = self._advance(self._state, values)
        successful: Any = RESULTS.successful
        if not y.result == successful:
            raise SimulationError(RESULTS[y.result])
        self._state = y
        truncated = self._max_periods is not None and int(y.count) >= self._max_periods
        return np.asarray(observed), float(reward), bool(ended), truncated, {"t": float(y.t)}

    def _split_action(self, action: Float[Array, " m"]) -> dict[str, Array]:
        """Return the values of the inputs of an action."""
        values, first = {}, 0
        for name, shape in self._shapes.items():
            size = int(np.prod(shape))
            values[name] = action[first : first + size].reshape(shape)
            first += size
        return values
