"""Values of inputs and states of actuators at one time, put into a model; compiled methods."""

import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector
from ..checks import common_dtype, is_traced
from ..forces.base import AbstractStatefulForce, ForceAtStates
from ..joints.replacing import replace_fields
from ..mechanics import System
from ..native import call_by_kernel
from ..persistent_jit import persistent_jit
from ..signals.controllers import (
    Policy,
    SwitchedValue,
    as_source,
    checked_result,
    held_sources,
    is_source,
)
from ..signals.inputs import Input, InputTarget, check_names, check_value, inputs_of, with_inputs
from ..signals.shared_tables import number_tables
from ..signals.signal import Signal
from .charts import Unknowns, join_chart, split_chart
from .holding import bind_efforts, with_smooth_friction
from .view import SystemView

Method = TypeVar("Method", bound=Callable[..., object])


def bind_at(model: Any, t: Any, y: Any) -> Any:
    """Return the model with the values of its inputs, actuators and held joints at `(t, y)`."""
    return model.bind(t, y)


def compile_method(method: Method, bind: Callable[[Any, Any, Any], Any] = bind_at) -> Method:
    """Apply `equinox.filter_jit` to a method of a time and of unknowns, of a prepared model.

    `filter_jit` alone would treat a time or a vector of Python numbers as a constant and compile
    again for every value. Outside transformations the native backend runs the method, because it
    compiles faster.

    **Arguments:** `bind`, which puts the values at `(t, y)` into the model.
    """

    def call_prepared(self, t, y, args, kwargs):
        return method(bind(self, t, y).prepare(t), t, y, *args, **kwargs)

    # Deferred to the first call: both inspect signatures, which would slow down the import.
    jitted = functools.cache(lambda: persistent_jit(call_prepared))
    by_backend = functools.cache(
        lambda: persistent_jit(functools.partial(call_by_kernel, call_prepared))
    )

    @functools.wraps(method)
    def with_arrays(self, t, y, *args, **kwargs):
        if (shape := jnp.shape(split_chart(y)[0])) not in [(size,) for size in self.sizes]:
            sizes = " or ".join(f"({size},)" for size in sorted(self.sizes))
            raise ValueError(
                f"`{type(self).__name__}` has unknowns of shape {sizes}; got {shape}. "
                "`model.encode(state)` gives them, and `jax.vmap` takes many at once."
            )
        t = jnp.asarray(t, jnp.result_type(*jax.tree.leaves(y)))
        args = [_array(x) for x in args]
        kwargs = {name: _array(x) for name, x in kwargs.items()}
        model = self if is_traced(self) else self.separate_arrays()
        call = jitted if is_traced((self, t, y, args, kwargs)) else by_backend
        return call()(model, t, y, args, kwargs)

    return cast(Method, with_arrays)


def _array(value: Any):
    return jnp.asarray(value) if isinstance(value, list | tuple) else value


Model = TypeVar("Model")


def bind_inputs(
    model: Model, inputs: Mapping[str, Any] | None, argument: str, switched: Collection[str] = ()
) -> Model:
    """Return the model with its inputs bound by name, and all others to their defaults.

    Values and signals take the places of inputs in the model; policies and sampled controllers
    become `sources` of its system.

    **Arguments:** `inputs`, by name; `argument`, their name in messages; `switched`, names of the
    inputs whose values transitions set.
    **Errors:** `TypeError` and `ValueError` for an unknown name, a wrong shape, an input without a
    value, and controllers where the model does not support them.
    """
    if inputs is not None and not isinstance(inputs, Mapping):
        raise TypeError(f"`{argument}` must be a dict of values by name; got {inputs!r}.")
    if inputs is None and not switched:
        return model
    known, values, sources, inputs = inputs_of(model), {}, {}, inputs or {}
    dtype = common_dtype(model)
    check_names(list(inputs), known, argument)
    check_names(list(switched), known, "simulate(transitions=...)")
    for name, target in known.items():
        value = inputs.get(name, target.default)
        if value is None:
            raise ValueError(
                f"`{argument}` has no value for the input {name!r}, which has no default. Add "
                f"`{{{name!r}: ...}}`."
            )
        of_run = InputTarget(target.default, name, target.shape)
        if name in switched:
            if is_source(value) or isinstance(value, Signal):
                raise ValueError(
                    f"`{argument}[{name!r}]` must be a number or an array, the value until the "
                    f"first transition, because transitions set it; got {value!r}."
                )
            value = SwitchedValue(check_value(value, target, argument, dtype))
            sources[name] = of_run, value
        elif is_source(value):
            sources[name] = of_run, as_source(value, of_run, argument)
        else:
            values[name] = check_value(value, target, argument, dtype)
    # Entries of one signal search its table once.
    model = number_tables(with_inputs(model, values))
    if not sources:
        return model
    _check_sources(model, sources, argument)

    def add_sources(leaf):
        return replace_fields(leaf, sources=sources) if _is_system(leaf) else leaf

    return jax.tree.map(add_sources, model, is_leaf=_is_system)


def input_values(model: Any, inputs: Mapping[str, Any], t: Scalar, y: Unknowns) -> dict[str, Array]:
    """Return the values of inputs at `(t, y)` by name.

    **Arguments:** `model`, with its sources; `inputs`, as bound to it.
    """
    values, _ = split_chart(y)
    system, t = model.multibody, jnp.asarray(t, values.dtype)
    states, found = split_states(system, model.layout.states(values)), {}
    view = SystemView(replace_fields(model, system=_awaiting(_bind_held(system, states))), t, y)
    for name, value in inputs.items():
        target, source = system.sources.get(name, (None, None))
        if isinstance(source, Policy):
            found[name] = source.evaluate(t, view, target)
        elif source is not None:
            found[name] = source.held_value(states[name], target)
        else:
            found[name] = value(t) if isinstance(value, Signal) else jnp.asarray(value, t.dtype)
    return found


def held_inputs(model: Any, y: Unknowns) -> dict[str, Array]:
    """Return the values of inputs that are among the unknowns, by name."""
    system = model.multibody
    states = split_states(system, model.layout.states(split_chart(y)[0]))
    held = held_sources(system.sources).items()
    return {name: source.held_value(states[name], target) for name, (target, source) in held}


def set_inputs(model: Any, y: Unknowns, inputs: Mapping[str, Any]) -> Unknowns:
    """Return the unknowns with other values of inputs that transitions set.

    **Errors:** `ValueError` for a wrong shape.
    """
    if not inputs:
        return y
    system, (values, _) = model.multibody, split_chart(y)
    states = split_states(system, model.layout.states(values))
    for name, value in inputs.items():
        value = checked_result(value, system.sources[name][0], "A transition", values.dtype)
        states[name] = value.ravel()
    parts = [states[key] for key, _ in system.state_counts]
    return join_chart(model.layout.with_states(values, jnp.concatenate(parts)), y)


def _awaiting(system: Any) -> Any:
    """Return the system in which inputs with policies have no value."""
    policies = {name for name, pair in system.sources.items() if isinstance(pair[1], Policy)}
    return _without_defaults(system, policies)


def _bind_held(system: Any, states: Mapping[Any, Array]) -> Any:
    """Return the bound system with the inputs that are held, and with actuators at their states.

    The rates of these states, which may depend on policies, are zero.
    """
    held = {
        name: source.held_value(states[name], target)
        for name, (target, source) in held_sources(system.sources).items()
    }
    system = with_inputs(replace_fields(system, is_bound=True), held)
    forces = tuple(
        ForceAtStates(force, states[k], jnp.zeros_like(states[k]))
        if isinstance(force, AbstractStatefulForce)
        else force
        for k, force in enumerate(system.forces)
    )
    return replace_fields(system, forces=forces)


def _is_system(leaf: object) -> bool:
    return isinstance(leaf, System)


def _check_sources(model: Any, sources: Iterable[str], argument: str) -> None:
    """Raise if the model does not support controllers of these inputs."""
    system = model.system
    if not model.takes_controllers:
        raise ValueError(
            f"`{argument}`: `{type(model).__name__}` takes values and signals, no controllers. Use "
            "`NullSpace`, `Relative` or `Absolute`."
        )
    if not isinstance(system, System):
        raise TypeError(
            f"`{argument}`: a `FixedPointBody` takes values and signals, no controllers. Use a "
            "`System` of a `Body` on a `Spherical` joint."
        )
    for part in (*system.joints, *system.bodies):
        prescribed = {name: value for name, value in vars(part).items() if name != "friction"}
        driven = set(inputs_of(prescribed)) & set(sources)
        if driven:
            raise ValueError(
                f"`{argument}`: the input {min(driven)!r} prescribes the motion of "
                f"{part.name!r}, which needs velocities and accelerations. Bind it to a number or "
                'to a Signal of interpolation="cubic".'
            )


def bind_controls(model: Any, t: Scalar, y: Unknowns) -> Any:
    """Return the model with the values that inputs and states of actuators have at `(t, y)`.

    The model keeps the unknowns of its actuators and sampled controllers. Models without any, and
    models that are bound already, are returned unchanged. Efforts hold the joints at rest, and
    contacts that are closed.
    """
    if not model.multibody.has_modes or model.multibody.is_bound:
        return bind_free(model, t, y)
    return bind_efforts(bind_free(model, t, y), t, y, model.holding(t, y).efforts)


def bind_free(model: Any, t: Scalar, y: Unknowns) -> Any:
    """Return the model as `bind_controls` does, but with no effort on joints that are held."""
    system = model.system
    if not isinstance(system, System) or system.is_bound:
        return model
    if not system.is_controlled:
        bound = replace_fields(system, is_bound=True)
        return replace_fields(model, system=bound) if system.contacts else model
    values, _ = split_chart(y)
    t = jnp.asarray(t, values.dtype)
    states = split_states(system, model.layout.states(values))
    system = _bind_held(system, states)
    policies = {name: pair for name, pair in system.sources.items() if isinstance(pair[1], Policy)}
    # Nothing that a view computes depends on the values of these inputs, or it raises an error.
    view = SystemView(replace_fields(model, system=_awaiting(system)), t, y)
    found = {n: _evaluate(policy, t, view, target) for n, (target, policy) in policies.items()}
    system = with_inputs(system, found)
    forces = list(system.forces)
    for k, force in enumerate(forces):
        if isinstance(force, ForceAtStates):
            rates = force.force.rates_in_view(t, states[k], view)
            forces[k] = replace_fields(force, rates=rates)
    model = replace_fields(model, system=replace_fields(system, forces=tuple(forces)))
    return bind_efforts(model, t, y, None) if model.multibody.has_modes else model


def compile_free_method(method: Method) -> Method:
    """Apply `compile_method` to a method that no effort on joints at rest affects."""
    return compile_method(method, bind_free)


def bind_start(model: Any) -> Any:
    """Return the model with actuators at their initial states, undefined inputs at zero, and
    friction that is smooth.

    Checks of a state, which has no other unknowns, use it.
    """
    dtype = common_dtype(model)
    undefined = {
        name: jnp.zeros(target.shape, dtype)
        for name, target in inputs_of(model).items()
        if target.default is None
    }
    model = with_inputs(model, undefined) if undefined else model
    system = model.multibody
    if system.sticking_joints:
        system = with_smooth_friction(system)
        model = replace_fields(model, system=system)
    if not system.is_controlled or system.is_bound:
        return model
    forces = [
        ForceAtStates(f, f.initial_states(), jnp.zeros(f.num_states, dtype))
        if isinstance(f, AbstractStatefulForce)
        else f
        for f in system.forces
    ]
    return replace_fields(model, system=replace_fields(system, forces=tuple(forces), is_bound=True))


def _evaluate(policy: Any, t: Scalar, view: SystemView, target: InputTarget) -> Array:
    # Traced once to see which parts of the view it uses: these are computed outside of the law,
    # because comparisons within the law count as jumps of the force.
    used = SystemView(view.model, t, view.y)
    jax.eval_shape(lambda t: policy.call(t, used, target), t)
    return policy.evaluate(t, used.precompute(), target)


def _without_defaults(system: System, names: Any) -> System:
    """Return the system in which an input of these names has no value."""

    def replace(leaf):
        is_named = isinstance(leaf, Input) and leaf.name in names
        return replace_fields(leaf, default=None) if is_named else leaf

    return jax.tree.map(replace, system, is_leaf=lambda leaf: isinstance(leaf, Input))


def split_states(system: Any, states: Float[Array, " s"]) -> dict[Any, Vector]:
    """Return the states of each actuator, by its index among the forces, and of each sampled
    controller, by the name of its input."""
    start, parts = 0, {}
    for key, count in system.state_counts:
        parts[key] = states[start : start + count]
        start += count
    return parts


def initial_states(system: Any, dtype: Any) -> Float[Array, " s"]:
    """Return the states of actuators, and of sampled controllers before their first sample."""
    parts = [jnp.zeros(0, dtype)]
    for key, _ in system.state_counts:
        if isinstance(key, int):
            force = system.forces[key]
            force = force.force if isinstance(force, ForceAtStates) else force
            parts.append(jnp.asarray(force.initial_states()).astype(dtype))
        else:
            target, source = system.sources[key]
            parts.append(source.initial_states(target, dtype))
    return jnp.concatenate(parts)


def state_rates(system: Any, dtype: Any) -> Float[Array, " s"]:
    """Return the rates of the states of actuators; zero for those of sampled controllers.

    **Arguments:** `system`, bound at one time.
    """
    parts = [jnp.zeros(0, dtype)]
    for key, count in system.state_counts:
        rates = system.forces[key].rates if isinstance(key, int) else jnp.zeros(count)
        parts.append(rates.astype(dtype))
    return jnp.concatenate(parts)


def actuator_state_names(forces: Iterable[Any]) -> list[str]:
    """Return unique names of the states of actuators, in their order.

    Examples are `hinge.current`, for the second coordinate of a joint `sleeve.torque2`, and
    `hinge.torque (2)` for the second such actuator on one coordinate.
    """
    names: list[str] = []
    for force in forces:
        if isinstance(force, AbstractStatefulForce):
            names += force.state_labels
    before = [names[:k].count(name) for k, name in enumerate(names)]
    return [f"{n} ({count + 1})" if count else n for n, count in zip(names, before, strict=True)]


def state_names(system: Any) -> list[str]:
    """Return names of the states of actuators and sampled controllers, in their order."""
    names = actuator_state_names(system.forces)
    for key, count in system.state_counts:
        if not isinstance(key, int):
            target, source = system.sources[key]
            if isinstance(source, SwitchedValue):
                names += [key] if count == 1 else [f"{key}{k + 1}" for k in range(count)]
                continue
            held = (source.delay + 1) * math.prod(target.shape)
            names += [f"{key}.held{k + 1}" for k in range(held)]
            names += [f"{key}.state{k + 1}" for k in range(count - held)]
    return names


def sample_controllers(model: Any, t: Scalar, y: Unknowns, due: dict[str, Any]) -> Unknowns:
    """Return the unknowns after the samples of controllers at `t`.

    **Arguments:** `due`, a flag for each input with a sampled controller: whether it samples now.
    """
    values, _ = split_chart(y)
    system, layout = model.multibody, model.layout
    states = split_states(system, layout.states(values))
    view = SystemView(bind_controls(model, t, y), t, y)
    parts = []
    for key, _ in system.state_counts:
        old = states[key]
        if key in due:
            target, source = system.sources[key]
            parts.append(
                jax.lax.cond(
                    due[key],
                    lambda old, source=source, target=target: source.sample(t, view, old, target),
                    lambda old: old,
                    old,
                )
            )
        else:
            parts.append(old)
    return join_chart(layout.with_states(values, jnp.concatenate(parts)), y)
