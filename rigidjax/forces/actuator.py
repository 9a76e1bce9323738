"""The base class of actuators: forces on a joint with states of their own."""

import abc
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from ..annotations import Scalar, Vector
from ..bodies.body import Body
from ..checks import ArrayInput, as_leaf, finite_leaf, positive_leaf, scalar_leaf
from ..joints.base import AbstractJoint
from ..signals.laws import as_law, check_shapes, law_result
from ..signals.switches import evaluate_law
from .base import AbstractStatefulForce, Bodies, Kinematics, Loads
from .joint_force import AbstractJointForce, checked_component, coordinate_loads, joint_name

# A command as the constructors of actuators accept it.
Command: TypeAlias = ArrayLike | Callable[..., Any]


class AbstractActuator(AbstractStatefulForce, AbstractJointForce):
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
    def rates(self, *args: Any, **kwargs: Any) -> Vector:
        """Return the rates of the states, (num_states,).

        **Arguments:** `t`, s; `x`, (num_states,); `u`, a scalar; where the method has five
        parameters, also the coordinate and the rate of the joint (m or rad, m/s or rad/s).
        """

    @abc.abstractmethod
    def force(self, *args: Any, **kwargs: Any) -> Scalar:
        """Return the force, N, or moment, N m, on the child; arguments as for `rates`."""

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states, to which the name of the joint is added."""
        return tuple(f"state{k + 1}" for k in range(self.num_states))

    @property
    def state_labels(self) -> tuple[str, ...]:
        number = "" if self.component is None else self.component + 1
        return tuple(f"{self.joint}.{name}{number}" for name in self.state_names)

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

    def evaluate_command(self, t: Scalar) -> Scalar:
        """Return the command; `ValueError` for a wrong shape."""
        return command_value(self.command, t, f"{type(self).__name__}(command=...)")

    def state_rates(self, t: Array, x: Array, coordinate: Array, rate: Array) -> Array:
        """Return `rates` at the present command."""
        return jnp.asarray(self._evaluate(self.rates, t, x, coordinate, rate))

    def evaluate_force(self, t: Array, x: Array, coordinate: Array, rate: Array) -> Array:
        """Return `force` at the present command."""
        return jnp.asarray(self._evaluate(self.force, t, x, coordinate, rate))

    def generalised_force(self, t: Scalar, coordinate: Scalar, rate: Scalar) -> Scalar:
        raise self.states_error()

    def rates_in_view(self, t: Scalar, x: Vector, view: Any) -> Array:
        k = self.component or 0
        return self.state_rates(t, x, view.coordinates[self.joint][k], view.rates[self.joint][k])

    def loads_at_states(
        self, t: Scalar, x: Vector, bodies: Bodies, kinematics: Kinematics
    ) -> Loads:
        (joint,), k = kinematics.joints, self.component or 0
        Q = self.evaluate_force(t, x, joint.coordinates[k], joint.rates[k])
        return coordinate_loads(Q, joint, k, kinematics)

    def _evaluate(self, method: Any, t: Array, x: Array, *motion: Array) -> Any:
        arguments = (t, x, self.evaluate_command(t), *motion)
        return evaluate_law(method, *arguments[: _num_parameters(method.__func__) - 1])


class AbstractDrive(AbstractActuator):
    """An actuator of this package, whose states at the start of a run are an argument.

    **Attributes:** `initial`, the states at the start, (num_states,).
    """

    joint: str = eqx.field(static=True)
    command: Command
    component: int | None = eqx.field(static=True)
    initial: eqx.AbstractVar[Vector]
    state_names: eqx.AbstractClassVar[tuple[str, ...]]  # pyright: ignore[reportIncompatibleMethodOverride]

    def set_common(
        self,
        joint: str | AbstractJoint,
        command: Command,
        initial: ArrayInput,
        component: int | None,
    ) -> None:
        """Check and set the arguments that all drives have."""
        name = type(self).__name__
        self.joint = joint_name(joint, name)
        self.command = command_law(command, f"{name}(command=...)")
        self.initial = initial_leaf(initial, self.num_states, f"{name}(initial=...)")
        self.component = checked_component(component, name)

    def initial_states(self) -> Vector:
        return self.initial


def command_law(command: Command, argument: str) -> Any:
    """Return a checked command: a scalar, or a function of time.

    **Errors:** `TypeError` and `ValueError` for another object, and a function that does not
    return a scalar.
    """
    if not callable(command):
        return scalar_leaf(command, argument)
    law = as_law(command, argument)
    check_shapes(lambda t: command_value(law, t, argument), ())
    return law


def command_value(command: Any, t: Scalar, argument: str) -> Scalar:
    """Return the value of a command at `t`, s; `ValueError` for a wrong shape."""
    value = evaluate_law(command, t) if callable(command) else command
    return law_result(value, (), f"`{argument}` must return a scalar")


def initial_leaf(initial: ArrayInput, count: int, argument: str) -> Vector:
    """Return the checked states at the start, (count,); a scalar is the value of all of them."""
    value = finite_leaf(initial, argument, (), (count,))
    return value if value.shape else as_leaf(jnp.full(count, value))


def limit_leaf(limit: ArrayInput | None, argument: str) -> Scalar | None:
    """Return a checked, positive bound of a magnitude; `None` for no bound."""
    return None if limit is None else positive_leaf(limit, argument)


def limit_magnitude(value: Scalar, limit: Scalar | None) -> Scalar:
    """Return the value within plus and minus the limit, with a kink there."""
    return value if limit is None else jnp.clip(value, -limit, limit)


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
