"""The base class of forces with continuous states of their own, and such forces at one time."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar
from .base import AbstractForce, Bodies, Kinematics, Loads


class AbstractStatefulForce(AbstractForce):
    r"""A force with continuous states $x$, which are integrated with the motion.

    **Attributes:** `num_states`, the number of its states.
    """

    num_states: eqx.AbstractClassVar[int]

    depends_on_translation: ClassVar[bool] = False

    @abc.abstractmethod
    def rates_in_view(self, t: Scalar, x: Float[Array, " n"], view: Any) -> Array:
        """Return the rates of the states, (num_states,).

        **Arguments:** `t`, s; `x`, (num_states,); `view`, the `SystemView` at this time.
        """

    @abc.abstractmethod
    def loads_at_states(
        self, t: Scalar, x: Float[Array, " n"], bodies: Bodies, kinematics: Kinematics
    ) -> Loads:
        """Return the loads at the states `x`, (num_states,); other arguments as for `loads`."""

    @property
    @abc.abstractmethod
    def state_labels(self) -> tuple[str, ...]:
        """Names of the states in the unknowns of a run; repeated ones get a number there."""

    def initial_states(self) -> Float[Array, " n"]:
        """Return the states at the start of a run, (num_states,); zero by default."""
        return jnp.zeros(self.num_states)

    def states_error(self) -> ValueError:
        """Return the error for an evaluation without states."""
        return ValueError(
            f"A `{type(self).__name__}` has states, which only the methods of a formulation know."
        )


class ForceAtStates(AbstractForce):
    """A force with its states, and their rates, at one time."""

    force: AbstractStatefulForce
    states: Float[Array, " n"]
    rates: Float[Array, " n"]

    depends_on_translation: ClassVar[bool] = False

    def body_names(self) -> tuple[str, ...]:
        return self.force.body_names()

    def joint_names(self) -> tuple[str, ...]:
        return self.force.joint_names()

    def loads(self, t: Scalar, bodies: Bodies, kinematics: Kinematics) -> Loads:
        return self.force.loads_at_states(t, self.states, bodies, kinematics)
