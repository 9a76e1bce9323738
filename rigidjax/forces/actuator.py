"""The base class of actuators: forces on a joint with states of their own."""

import abc
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.body import Body
from ..signals.laws import check_shapes
from ..signals.switches import evaluate_law
from .joint_force import AbstractJointForce


class AbstractActuator(AbstractJointForce):
    r"""A force or moment on one coordinate of a joint, with continuous states $x$.

    $\dot x = r(t, x, u)$ and $Q = f(t, x, u)$, where $u$ is the command. The states are unknowns
    of a run: they are integrated with the motion, and appear by their names in
    `Solution.to_xarray()`. A final class adds `num_states`, `rates` and `force`, and fields:

        class Lag(rj.AbstractActuator):
            joint: str = eqx.field(static=True)
            command: Any
            time_constant: jax.Array
            component: int | None = eqx.field(static=True, default=None)
            num_states: ClassVar[int] = 1

            def rates(self, t, x, u):
                return (u - x) / self.time_constant

            def force(self, t, x, u):
                return x[0]

    **Attributes:** `joint`, its name; `command`, $u$: a scalar, a function of time, an `rj.Signal`
    or an `rj.Input`; `component`, the index of the coordinate if the joint has several.
    """

    command: eqx.AbstractVar[Any]
    num_states: eqx.AbstractClassVar[int]

    @abc.abstractmethod
    def rates(self, *args: Array) -> Float[Array, " n"]:
        """Return the rates of the states, (num_states,).

        **Arguments:** `t`, s; `x`, (num_states,); `u`, a scalar; where the method has five
        parameters, also the coordinate and the rate of the joint (m or rad, m/s or rad/s).
        """

    @abc.abstractmethod
    def force(self, *args: Array) -> Float[Array, ""]:
        """Return the force, N, or moment, N m, on the child; arguments as for `rates`."""

    def initial_states(self) -> Float[Array, " n"]:
        """Return the states at the start of a run, (num_states,); zero by default."""
        return jnp.zeros(self.num_states)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states, to which the name of the joint is added."""
        return tuple(f"state{k + 1}" for k in range(self.num_states))

    def check_bodies(self, bodies: Sequence[Body]) -> None:
        """Raise `ValueError` if `rates`, `force` or the command return a wrong shape."""
        for name, method, shape in (
            ("rates", self.state_rates, (self.num_states,)),
            ("force", self.evaluate_force, ()),
        ):
            found = check_shapes(method, (), (self.num_states,), (), ())
            if found.shape != shape:
                raise ValueError(
                    f"`{type(self).__name__}.{name}` must return shape {shape}; got {found.shape}."
                )

    def evaluate_command(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """Return the command; `ValueError` for a wrong shape."""
        command = self.command
        value = jnp.asarray(evaluate_law(command, t) if callable(command) else command)
        if value.shape != ():
            raise ValueError(
                f"`{type(self).__name__}(command=...)` must return a scalar; got shape "
                f"{value.shape}."
            )
        return value

    def state_rates(self, t: Array, x: Array, coordinate: Array, rate: Array) -> Array:
        """Return `rates` at the present command."""
        return jnp.asarray(self._evaluate(self.rates, t, x, coordinate, rate))

    def evaluate_force(self, t: Array, x: Array, coordinate: Array, rate: Array) -> Array:
        """Return `force` at the present command."""
        return jnp.asarray(self._evaluate(self.force, t, x, coordinate, rate))

    def generalised_force(
        self, t: Float[Array, ""], coordinate: Float[Array, ""], rate: Float[Array, ""]
    ) -> Float[Array, ""]:
        raise ValueError(
            f"A `{type(self).__name__}` has states, which only the methods of a formulation know."
        )

    def _evaluate(self, method: Callable[..., Any], t: Array, x: Array, *motion: Array) -> Any:
        arguments = (t, x, self.evaluate_command(t), *motion)
        return evaluate_law(
            method, *arguments[: _num_parameters(getattr(type(self), method.__name__)) - 1]
        )


class ActuatorAtStates(AbstractJointForce):
    """The force of an actuator with its states, and their rates, at one time."""

    joint: str = eqx.field(static=True)
    component: int | None = eqx.field(static=True)
    actuator: AbstractActuator
    states: Float[Array, " n"]
    rates: Float[Array, " n"]

    def generalised_force(
        self, t: Float[Array, ""], coordinate: Float[Array, ""], rate: Float[Array, ""]
    ) -> Float[Array, ""]:
        return self.actuator.evaluate_force(t, self.states, coordinate, rate)


@functools.cache
def _num_parameters(method: Callable[..., Any]) -> int:
    """Return the number of parameters of a method of an actuator, `self` included.

    **Errors:** `TypeError` unless it takes (t, x, u) or (t, x, u, coordinate, rate).
    """
    count = len(inspect.signature(method).parameters)
    if count not in (4, 6):
        raise TypeError(
            f"`{method.__qualname__}` must take (t, x, u) or (t, x, u, coordinate, rate); got "
            f"{inspect.signature(method)}."
        )
    return count
