"""Transitions of a hybrid run: events at which the state jumps and the motion goes on."""

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..annotations import Count, Scalar
from ..checks import find_duplicates
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns, join_chart, split_chart
from ..formulations.view import SystemView
from ..signals.controllers import call_traced
from ..state import State
from .contacts import AbstractContact

_DIRECTIONS = (-1, 0, 1)


class AbstractChange(eqx.Module):
    """A change of the unknowns at a transition that needs the model, such as an impact."""

    # Whether it changes the mode of a joint, after which `when` may rest at zero.
    sets_modes: ClassVar[bool] = False
    # Whether it acts again at the same time if another transition has reversed the rate of `when`.
    may_repeat: ClassVar[bool] = False

    @abc.abstractmethod
    def apply(
        self, model: AbstractFormulation, t: Scalar, y: Unknowns, when: Callable[..., Scalar]
    ) -> Unknowns:
        """Return the unknowns after the transition.

        **Arguments:** `model`, the formulation; `t`, s; `y`, the unknowns before; `when`, the
        function of the transition.
        """


class Transition(eqx.Module):
    """An event at which the state of a run jumps: an impact, a stop, a change of mode.

    `simulate(transitions=[...])` goes on from the changed state, as often as transitions occur.

    ```python
    floor = rj.Transition(
        lambda t, view: view.state.position[0, 2],
        lambda t, state: eqx.tree_at(
            lambda s: s.velocity, state, state.velocity * jnp.array([1.0, 1.0, -0.8])
        ),
    )
    sol = rj.simulate(model, state, 4.0, transitions=[floor])
    ```

    **Arguments:**

    - `when(t, view)`: a real scalar; the transition occurs where it crosses zero. `view` is a
      `rj.SystemView`.
    - `change(t, state)`: the `State` after the transition. Joint angles that it leaves out keep
      their revolutions. Or a pair `(state, {"mode": 1.0})` with values of
      `rj.Input`s that hold from then on; `when` reads them as `view.inputs["mode"]`. Or a law such
      as `rj.Restitution(0.8)`.
    - `direction`: -1 for zero crossings of falling values, 1 for rising ones, 0 for both.
    - `name`: in `sol.transitions.names`.

    **Raises:** `TypeError` and `ValueError` for other arguments.
    """

    when: Callable[..., Scalar]
    change: Callable[..., Any] | AbstractChange
    direction: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        when: Callable[..., Any],
        change: Callable[..., Any] | AbstractChange,
        direction: int = -1,
        name: str = "",
    ):
        if not callable(when):
            raise TypeError(
                f"`Transition(when=...)` takes a function `when(t, view)`; got {when!r}."
            )
        if not (callable(change) or isinstance(change, AbstractChange)):
            raise TypeError(
                "`Transition(change=...)` takes a function `change(t, state)` or a law such as "
                f"`rj.Restitution(0.8)`; got {change!r}."
            )
        if isinstance(direction, bool) or direction not in _DIRECTIONS:
            raise ValueError(
                "`Transition(direction=...)` must be -1 (falling), 1 (rising) or 0 (both); got "
                f"{direction!r}."
            )
        if not isinstance(name, str):
            raise TypeError(f"`Transition(name=...)` must be a string; got {name!r}.")
        self.when, self.change = when, change
        self.direction, self.name = int(direction), name

    def value(self, model: AbstractFormulation, t: Scalar, y: Unknowns) -> Scalar:
        """Return the value of `when`."""
        subject = f"`Transition(when=..., name={self.name!r})`"
        return jnp.asarray(call_traced(self.when, subject, t, SystemView(model, t, y)))


def split_change(result: Any) -> tuple[Any, dict[str, Any]]:
    """Return the state that a `change` returned, and the values of inputs."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        return result
    return result, {}


def switched_inputs(transitions: Sequence[Transition], t: Scalar, state: State) -> list[str]:
    """Return the names of the inputs that transitions set.

    **Arguments:** `t`, s, and `state`, of which only types and shapes matter.
    """
    names = set()
    for item in transitions:
        if not isinstance(item.change, AbstractChange):
            subject = f"`Transition(change=..., name={item.name!r})`"
            call = functools.partial(call_traced, item.change, subject)
            names |= set(split_change(eqx.filter_eval_shape(call, t, state))[1])
    return sorted(names)


def restart(model: AbstractFormulation, t: Scalar, state: State, y: Unknowns) -> Unknowns:
    """Return the unknowns of a state, with the states of controllers and actuators of `y`."""
    new = model.chart(state, t) if model.recharting else model.start(state, t)
    layout = model.layout
    return join_chart(
        layout.with_states(split_chart(new)[0], layout.states(split_chart(y)[0])), new
    )


class TransitionRecord(eqx.Module):
    """Transitions of a run in the order of their occurrence, padded to `max_transitions` N.

    **Attributes:**

    - `times`: shape (N,), s; `inf` after the last transition.
    - `kinds`: index of each in `simulate(transitions=...)`, shape (N,); -1 after the last.
    - `count`: the number of transitions that occurred.
    - `before`, `after`: states before and after each, leaves with a leading axis of N;
      infinite after the last.
    - `names`: names of the kinds.
    """

    times: Float[Array, " N"]
    kinds: Int[Array, " N"]
    count: Count
    before: State
    after: State
    names: tuple[str, ...] = eqx.field(static=True)


def check_transitions(
    transitions: Any, max_transitions: Any, model: AbstractFormulation
) -> tuple[Transition, ...]:
    """Return the transitions of a run as a tuple.

    **Errors:** `TypeError` unless it is a sequence of `Transition`, `ValueError` for names that
    occur twice, a `max_transitions` that is no positive integer, and contacts of other models.
    """
    wrong = not isinstance(transitions, Sequence)
    if wrong or any(not isinstance(item, Transition) for item in transitions):
        raise TypeError(
            "`simulate(transitions=...)` takes a list of `rj.Transition(when, change)`; got "
            f"{transitions!r}."
        )
    if twice := find_duplicates(item.name for item in transitions if item.name):
        raise ValueError(
            f"`simulate(transitions=...)`: every transition needs a name of its own; got {twice} "
            "more than once."
        )
    if isinstance(max_transitions, bool) or not (
        isinstance(max_transitions, int) and max_transitions > 0
    ):
        raise ValueError(
            f"`simulate(max_transitions=...)` must be a positive integer; got {max_transitions!r}."
        )
    for item in transitions:
        if isinstance(item.when, AbstractContact):
            item.when.check(model)
    return tuple(transitions)


def check_functions(
    transitions: Sequence[Transition], model: AbstractFormulation, t: Scalar, y: Unknowns
) -> None:
    """Check the results of `when` and `change` of every transition, without evaluating them.

    **Errors:** `ValueError` for a `when` that returns no real scalar, `TypeError` for a `change`
    that returns no `State` of the same bodies.
    """
    for k, item in enumerate(transitions):
        label = f"transition {item.name!r}" if item.name else f"transition {k}"
        value = jax.eval_shape(item.value, model, t, y)
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(
                f"`when` of {label} must return a real scalar that changes its sign; got shape "
                f"{value.shape} and dtype {value.dtype}."
            )
        if isinstance(item.change, AbstractChange):
            continue
        state = eqx.filter_eval_shape(model.decode, t, y)
        changed, values = split_change(eqx.filter_eval_shape(item.change, t, state))
        if unknown := sorted(set(values) - set(model.multibody.sources)):
            raise ValueError(
                f"`change` of {label} sets the input {unknown[0]!r}, which the model does not have."
            )
        if not isinstance(changed, State):
            raise TypeError(
                f"`change` of {label} must return a `State`, or a pair of a state and a dict of "
                f"values of inputs; got {type(changed).__name__}."
            )
        if changed.num_bodies != state.num_bodies:
            raise ValueError(
                f"`change` of {label} must return a `State` of {state.num_bodies} bodies; got "
                f"{changed.num_bodies}."
            )
