"""Functions that compute the value of an input from the state of a run."""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, PyTree

from ..annotations import Scalar, Vector
from ..checks import as_leaf, check_finite, float_array, is_traced, nan_if_violated, scalar_leaf
from .inputs import InputTarget
from .laws import as_law
from .signal import Signal
from .switches import evaluate_law


class Policy(eqx.Module):
    """A continuous controller: the value of an input as a function of time and the state of the
    run, `function(t, view)`; see `rj.View`."""

    function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], name: str):
        check_num_parameters(function, 2, f"inputs[{name!r}]", "policy(t, view)")
        self.function = as_law(function, f"inputs[{name!r}]")

    def num_states(self, target: InputTarget) -> int:
        """Return the number of unknowns that it adds to a run."""
        return 0

    def evaluate(self, t: Scalar, view: Any, target: InputTarget) -> Float[Array, " *size"]:
        """Return the value of the input; `ValueError` for a wrong shape."""
        value = evaluate_law(lambda t: self.call(t, view, target), t)
        return checked_result(value, target, "The policy", t.dtype)

    def call(self, t: Scalar, view: Any, target: InputTarget) -> Any:
        """Return the result of the function, unchecked."""
        with nan_if_violated():
            return call_traced(self.function, f"The policy of the input {target.name!r}", t, view)


class SampledController(eqx.Module):
    r"""A digital controller: a function that is evaluated at samples, with a zero-order hold.

    It is bound as an input, `inputs={"u": rj.SampledController(function, period)}`. Samples lie
    at $t_0 + k\,T$ from the start $t_0$ of the run. The steps of the solver end there.

    **Arguments:**

    - `function(t, view, state) -> (value, state)`: computes the value of the input and the new
      state of the controller; `view` is an `rj.SystemView`. An Equinox module keeps its parameters
      as leaves, which have exact derivatives.
    - `period`: $T$, s, a concrete number, of which the duration of a run is a multiple.
    - `state`: initial state of the controller, a pytree of numbers or arrays; `None` for none.
    - `delay`: number of periods between a sample and the use of its value. The input has its
      default before.
    - `quantum`: spacing to which values are rounded, a scalar in the unit of the input; `None` for
      no rounding. Derivatives are those of the values before rounding.

    **Raises:** `TypeError` for a `function` that does not take three arguments; `ValueError` for a
    period or quantum that is not positive, and a delay that is no integer of at least 0. When a
    run starts, `ValueError` for a result that is not a pair, another shape of the value, or
    another structure of the state.
    """

    function: Callable[..., Any]
    state: PyTree
    quantum: Scalar | None
    period: float = eqx.field(static=True)
    delay: int = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[..., Any],
        period: float,
        state: PyTree = None,
        *,
        delay: int = 0,
        quantum: ArrayLike | None = None,
    ):
        name = "SampledController"
        check_num_parameters(function, 3, f"{name}(function=...)", "function(t, view, state)")
        self.function = as_law(function, f"{name}(function=...)")
        if is_traced(period):
            raise ValueError(
                f"`{name}(period=...)` must be a known number, because it determines the number of "
                "samples; got a traced value."
            )
        self.period = float(check_finite(float_array(period, f"{name}(period=...)", ()), "period"))
        if not self.period > 0:
            raise ValueError(f"`{name}(period=...)` must be positive, s; got {self.period:g}.")
        if isinstance(delay, bool) or not isinstance(delay, int | np.integer) or delay < 0:
            raise ValueError(
                f"`{name}(delay=...)` is a number of periods, an integer of at least 0; got "
                f"{delay!r}."
            )
        self.delay = int(delay)
        self.quantum = None
        if quantum is not None:
            self.quantum = scalar_leaf(quantum, f"{name}(quantum=...)")
            if not is_traced(self.quantum) and not self.quantum > 0:
                raise ValueError(f"`{name}(quantum=...)` must be positive; got {quantum!r}.")
        self.state = (
            jax.tree.map(
                lambda leaf: _as_number(leaf, f"{name}(state=...)"),
                state,
                is_leaf=lambda x: x is None,
            )
            if state is not None
            else None
        )

    def num_states(self, target: InputTarget) -> int:
        """Return the number of unknowns that it adds to a run: values and its state."""
        return (self.delay + 1) * int(np.prod(target.shape)) + ravel_pytree(self.state)[0].size

    def initial_states(self, target: InputTarget, dtype: Any) -> Vector:
        """Return its unknowns before the first sample: the default of the input, and its state."""
        default = jnp.zeros(target.shape) if target.default is None else target.default
        held = jnp.broadcast_to(default, (self.delay + 1, *target.shape)).ravel()
        return jnp.concatenate([held.astype(dtype), ravel_pytree(self.state)[0].astype(dtype)])

    def held_value(self, states: Vector, target: InputTarget) -> Float[Array, " *size"]:
        """Return the value that is in use."""
        return states[: int(np.prod(target.shape))].reshape(target.shape)

    def sample(self, t: Scalar, view: Any, states: Vector, target: InputTarget) -> Vector:
        """Return its unknowns after a sample at `t`."""
        size = int(np.prod(target.shape))
        queue, flat = states[: (self.delay + 1) * size], states[(self.delay + 1) * size :]
        _, unravel = ravel_pytree(self.state)
        subject = f"The sampled controller of the input {target.name!r}"
        with nan_if_violated():
            result = call_traced(self.function, subject, t, view, unravel(flat))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError(
                "`SampledController(function=...)` must return a pair (value, state); got "
                f"{type(result).__name__}."
            )
        value, state = result
        value = checked_result(value, target, "The sampled controller", states.dtype)
        if self.quantum is not None:
            rounded = self.quantum * jnp.round(value / self.quantum)
            value = value + jax.lax.stop_gradient(rounded - value)
        flat = self._checked_state(state, states.dtype)
        return jnp.concatenate([queue[size:], value.ravel(), flat])

    def _checked_state(self, state: PyTree, dtype: Any) -> Float[Array, " m"]:
        """Return the flattened new state; `ValueError` for another structure or shapes."""

        def form(tree):
            return jax.tree.structure(tree), [np.shape(leaf) for leaf in jax.tree.leaves(tree)]

        if form(state) != form(self.state):
            raise ValueError(
                "`SampledController(function=...)` must return a state of the structure and shapes "
                f"of `state=`, {form(self.state)}; got {form(state)}."
            )
        return ravel_pytree(state)[0].astype(dtype)


class SwitchedValue(eqx.Module):
    """A value that transitions of a hybrid run set, one of the unknowns.

    **Arguments:** `value`, until the first transition; `joint`, whose mode it is: `sticks` or
    `locks`; `None` for the value of an input.
    """

    value: Float[Array, " *size"]
    joint: str | None = eqx.field(static=True, default=None)
    locks: bool = eqx.field(static=True, default=False)

    def num_states(self, target: InputTarget) -> int:
        """Return the number of unknowns that it adds to a run."""
        return int(np.prod(target.shape))

    def initial_states(self, target: InputTarget, dtype: Any) -> Vector:
        """Return its unknowns at the start."""
        return jnp.asarray(self.value, dtype).ravel()

    def held_value(self, states: Vector, target: InputTarget) -> Float[Array, " *size"]:
        """Return the value that is in use."""
        return states.reshape(target.shape)


# How an input gets its value during a run.
Source: TypeAlias = Policy | SampledController | SwitchedValue


def held_sources(sources: dict[str, Any]) -> dict[str, tuple[InputTarget, Any]]:
    """Return the inputs whose values are held among the unknowns, by name."""
    kinds = SampledController | SwitchedValue
    return {name: pair for name, pair in sorted(sources.items()) if isinstance(pair[1], kinds)}


def sampled_sources(sources: dict[str, Any]) -> dict[str, tuple[InputTarget, SampledController]]:
    """Return the inputs with sampled controllers among the sources of a system, by name."""
    return {
        name: pair
        for name, pair in sorted(sources.items())
        if isinstance(pair[1], SampledController)
    }


def as_source(value: Any, target: InputTarget, argument: str) -> Policy | SampledController:
    """Return a function or a sampled controller as the source of an input.

    **Errors:** `TypeError` for another object.
    """
    if isinstance(value, SampledController | Policy):
        return value
    if callable(value):
        return Policy(value, target.name)
    raise TypeError(
        f"`{argument}[{target.name!r}]` must be a number, an array of shape {target.shape}, a "
        f"Signal, a function policy(t, view) or a SampledController; got {value!r}."
    )


def is_source(value: Any) -> bool:
    """Return whether a value of an input is computed during the run."""
    return (callable(value) and not isinstance(value, Signal)) or isinstance(
        value, SampledController
    )


def checked_result(
    value: Any, target: InputTarget, subject: str, dtype: Any
) -> Float[Array, " *size"]:
    """Return the value that a controller computed; `ValueError` for a wrong shape."""
    if not eqx.is_array_like(value):
        raise TypeError(
            f"{subject} of the input {target.name!r} must return a number or an array; got "
            f"{value!r}."
        )
    value = jnp.asarray(value)
    if value.shape != target.shape:
        raise ValueError(
            f"{subject} of the input {target.name!r} must return shape {target.shape}; got "
            f"{value.shape}."
        )
    return value.astype(dtype)


def call_traced(function: Callable[..., Any], subject: str, *args: Any) -> Any:
    """Call a function of a user with traced values.

    **Arguments:** `subject`, the function in messages.
    **Errors:** `TypeError` for a function that needs concrete values.
    """
    try:
        return function(*args)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise TypeError(
            f"{subject} needs known numbers, but JAX traces it: the run is compiled before its "
            "values are known. Use `jnp.where` or `jax.lax.cond` instead of `if`, `jnp` functions "
            "instead of NumPy's, and neither `float(...)` nor `bool(...)`."
        ) from error


def check_num_parameters(function: Any, count: int, argument: str, form: str) -> None:
    """Raise `TypeError` unless `function` can be called with `count` positional arguments."""
    if not callable(function):
        raise TypeError(f"`{argument}` must be a function {form}; got {function!r}.")
    try:
        inspect.signature(function).bind(*range(count))
    except ValueError:  # Some functions written in C have no signature.
        return
    except TypeError as error:
        raise TypeError(
            f"`{argument}` must be a function {form}; got one of {inspect.signature(function)}."
        ) from error


def _as_number(leaf: Any, argument: str) -> Array:
    """Return a leaf of the state of a controller; `TypeError` for other objects."""
    if not eqx.is_array_like(leaf) or jnp.issubdtype(jnp.result_type(leaf), jnp.complexfloating):
        raise TypeError(f"`{argument}` is a pytree of real numbers and arrays; got {leaf!r}.")
    return as_leaf(leaf) if isinstance(leaf, np.ndarray) else jnp.asarray(leaf)
