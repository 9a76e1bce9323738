"""A model as functions of flat arrays: time, states, inputs and parameters."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array, Float

from ..annotations import Scalar, Vector
from ..checks import collect_faults, common_dtype, find_duplicates
from ..formulations import AbstractFormulation
from ..formulations.binding import bind_inputs
from ..formulations.charts import split_chart
from ..formulations.choice import ModelInput, choose_formulation
from ..identification import Parameter
from ..identification.experiment.parameters import (
    Experiment,
    check_leaves,
    materialise_parameters,
    replace_leaves,
)
from ..identification.starts.named_parameters import find_named_parameters
from ..io.names import unknown_names
from ..native import TracedFunction, trace_function
from ..results import RESULTS
from ..sensors import AbstractSensor
from ..signals.inputs import Input, check_names, inputs_of, with_inputs
from ..state import State
from ..stepping.advance import advance_adaptive, advance_fixed, start_memory
from ..stepping.stepper import Stepper


class ExportedVariable(NamedTuple):
    """A scalar variable: its name, start value and unit."""

    name: str
    start: float
    unit: str = ""


class FlatModel(eqx.Module):
    r"""A model as functions of time and of flat arrays of states, inputs and parameters.

    **Attributes:** `experiment`, model and start state; `stepper`, the method of integration;
    `inputs`, `outputs`, `parameters`, as of `rj.export`.
    """

    experiment: Experiment
    stepper: Stepper
    inputs: dict[str, Input]
    outputs: tuple[AbstractSensor, ...]
    parameters: tuple[Parameter, ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of states, inputs and parameters."""
        sizes = [target.size or 1 for target in self.inputs.values()]
        model = self.experiment.model
        return model.num_unknowns, sum(sizes), sum(leaf.size for leaf in self._leaves)

    @property
    def is_adaptive(self) -> bool:
        """Whether the step of the co-simulation is chosen by an error estimate."""
        controller = self.stepper.method.controller
        return isinstance(controller, diffrax.AbstractAdaptiveStepSizeController)

    @property
    def _leaves(self) -> list[Array]:
        return [p.leaf(self.experiment) for p in self.parameters]

    def state_variables(self) -> list[ExportedVariable]:
        """Return the states: the unknowns of the formulation, at the start."""
        experiment = self.experiment
        start = np.asarray(experiment.model.encode(experiment.state0))
        names = unknown_names(experiment.model)
        return [ExportedVariable(n, float(x)) for n, x in zip(names, start, strict=True)]

    def input_variables(self) -> list[ExportedVariable]:
        """Return the entries of the inputs, with their defaults."""
        out = []
        for name, target in self.inputs.items():
            default = np.zeros(target.shape) if target.default is None else target.default
            values = np.ravel(default)
            names = _entries(name, target.shape)
            out += [ExportedVariable(n, float(x)) for n, x in zip(names, values, strict=True)]
        return out

    def parameter_variables(self) -> list[ExportedVariable]:
        """Return the components of the parameters, with their values in the model."""
        out = []
        for parameter, leaf in zip(self.parameters, self._leaves, strict=True):
            values, names = np.ravel(leaf), _entries(parameter.name, leaf.shape)
            units = parameter.component_units(len(values))
            entries = zip(names, map(float, values), units, strict=True)
            out += [ExportedVariable(*entry) for entry in entries]
        return out

    def output_variables(self) -> list[ExportedVariable]:
        """Return the components of the sensors."""
        model, out = self.experiment.model, []
        for sensor in self.outputs:
            size = int(np.prod(sensor.value_shape))
            names = _entries(sensor.name, sensor.value_shape)
            if size == len(sensor.channels) > 1:
                names = [f"{sensor.name}.{channel}" for channel in sensor.channels]
            out += [ExportedVariable(name, 0.0, sensor.unit_in(model)) for name in names]
        return out

    def feeds_through(self) -> list[bool]:
        """Return for each output whether it depends on the inputs other than through the states."""
        (n, m, k), out = self.counts, []
        for sensor in self.outputs:

            def read(x, u, p, sensor=sensor):
                return jnp.ravel(sensor.predict(self.bind(u, p), jnp.zeros(()), x))

            jaxpr = jax.make_jaxpr(read)(_array(n), _array(m), _array(k)).jaxpr
            _, (_, uses_inputs, _) = dce_jaxpr(jaxpr, [True])
            out += [uses_inputs] * int(np.prod(sensor.value_shape))
        return out

    def bind(self, u: Float[Array, " m"], p: Float[Array, " k"]) -> AbstractFormulation:
        """Return the model with values of its inputs and parameters."""
        shapes = [leaf.shape for leaf in self._leaves]
        leaves = _split(p, shapes)
        model = replace_leaves(self.parameters, self.experiment, leaves).model
        parts = _split(u, [target.shape for target in self.inputs.values()])
        values = dict(zip(self.inputs, parts, strict=True))
        with collect_faults():
            return bind_inputs(with_inputs(model, values), {}, "export(inputs=...)")

    def evaluate(
        self, t: Scalar, x: Vector, u: Float[Array, " m"], p: Float[Array, " k"]
    ) -> tuple[Vector, Float[Array, " z"]]:
        """Return the rates of the states and the outputs."""
        model = self.bind(u, p)
        readings = [jnp.ravel(s.predict(model, t, x)) for s in self.outputs]
        outputs = jnp.concatenate([jnp.zeros(0, x.dtype), *readings])
        return jnp.asarray(model.vector_field(t, x)), outputs

    def begin(self, t: Scalar, t1: Scalar, x: Array, u: Array, p: Array) -> tuple[Array, ...]:
        """Return the memory of the solver before the first step, as arrays."""
        memory = start_memory(self.stepper.method, self.bind(u, p), x, t, t1)
        return tuple(jax.tree.leaves(memory))

    def step(
        self, t: Scalar, t1: Scalar, reset: Scalar, x: Array, u: Array, p: Array, *memory: Array
    ) -> tuple[Array, ...]:
        """Return the states at `t1`, the result, an integer, and the memory of the solver.

        **Arguments:** `reset`, 1 if inputs, parameters or states were changed since the step
        before, else 0; `memory`, nothing for explicit steps of fixed length.
        """
        method, model = self.stepper.method, self.bind(u, p)
        if method.is_fixed_explicit:
            done = advance_fixed(method, model, x, t, t1, t)
        else:
            structure = jax.tree.structure(self._memory_shapes())
            before = jax.tree.unflatten(structure, memory)
            if not self.is_adaptive:
                before = eqx.tree_at(lambda m: m.step, before, t1 - t)
            flag = reset > 0 if self.stepper.method.has_memory else None
            done = advance_adaptive(method, model, x, before, t, t1, flag, t)
        result: Any = done.result
        unknowns, _ = split_chart(done.unknowns)
        finite = jnp.all(jnp.isfinite(unknowns))
        fine = finite | (result != RESULTS.successful)
        result = RESULTS.where(fine, result, RESULTS.nonfinite_state)
        return unknowns, result._value.astype(jnp.int32), *jax.tree.leaves(done.memory)

    def _memory_shapes(self) -> Any:
        method, (n, m, k) = self.stepper.method, self.counts
        t, x, u, p = (_array(), _array(n), _array(m), _array(k))
        return jax.eval_shape(
            lambda t, x, u, p: start_memory(method, self.bind(u, p), x, t, t + 1.0), t, x, u, p
        )

    def functions(self) -> list[TracedFunction]:
        """Return the functions as jaxprs, by their names in C."""
        t, (n, m, k) = _array(), self.counts
        x, u, p, y = _array(n), _array(m), _array(k), _array(len(self.output_variables()))
        # Python code of the model runs once for the four functions that evaluate it.
        evaluate = jaxpr_as_fun(jax.make_jaxpr(self.evaluate)(t, x, u, p))

        def tangent(t, x, u, p, *change):
            return jax.jvp(lambda *at: evaluate(t, *at), (x, u, p), change)[1]

        def adjoint(t, x, u, p, *weights):
            return jax.vjp(lambda *at: evaluate(t, *at), x, u, p)[1](list(weights))

        calls: dict[str, tuple[Callable[..., Sequence[Array]], tuple[Any, ...]]] = {
            "rates": (lambda *at: evaluate(*at)[:1], (t, x, u, p)),
            "outputs": (lambda *at: evaluate(*at)[1:], (t, x, u, p)),
            "tangent": (tangent, (t, x, u, p, x, u, p)),
            "adjoint": (adjoint, (t, x, u, p, x, y)),
        }
        memory: list[Any] = []
        if not self.stepper.method.is_fixed_explicit:
            calls["begin"] = self.begin, (t, t, x, u, p)
            memory = jax.tree.leaves(self._memory_shapes())
        calls["step"] = self.step, (t, t, t, x, u, p, *memory)
        return [trace_function(name, f, *args) for name, (f, args) in calls.items()]


def flatten_model(
    model: ModelInput, state0: State | None, inputs: Sequence[str] | None,
    outputs: Sequence[AbstractSensor], parameters: Sequence[Parameter], options: dict[str, Any],
) -> FlatModel:  # fmt: skip
    """Return a checked model as functions of flat arrays; arguments and errors of `rj.export`."""
    model = choose_formulation(model, "export")
    if model.num_algebraic:
        raise ValueError(
            "`export`: a model with multipliers among its unknowns has no explicit differential "
            "equation. Use `rj.NullSpace`, `rj.Relative` or `rj.Absolute(index=0)`."
        )
    if model.recharting and model.layout.num_rotations:
        raise ValueError(
            f"`export`: `{type(model.rotation).__name__}` changes its charts during a run. Use "
            "`rj.Quaternion()`, which has no singularity."
        )
    if common_dtype(model) != np.float64:
        raise ValueError(
            "`export` needs a model in double precision: call "
            '`jax.config.update("jax_enable_x64", True)` before the model is built.'
        )
    known = inputs_of(model)
    names = sorted(known) if inputs is None else list(inputs)
    check_names(names, known, "export(inputs=...)")
    for sensor in outputs:
        if not isinstance(sensor, AbstractSensor):
            raise TypeError(
                "`export(outputs=...)` takes sensors such as `[rj.JointCoordinate('hinge')]`; got "
                f"{sensor!r}."
            )
        sensor.check(model)
        if sensor.on_time()[1] is not None:
            raise ValueError(
                f"`export(outputs=...)`: the {sensor.name} has a delay, which is no function of "
                "the state. Give the sensor without its delay."
            )
    state0 = model.multibody.reference_state() if state0 is None else state0
    experiment = Experiment(model, state0, tuple(outputs))
    parameters = find_named_parameters(parameters, experiment.model, experiment.sensors)
    experiment = materialise_parameters(experiment, parameters)
    check_leaves(parameters, experiment)
    dt = options.get("dt")
    constants = {
        name: target.default
        for name, target in known.items()
        if name not in names and target.default is not None
    }
    stepper = Stepper(model, 1.0 if dt is None else dt, inputs=constants, **options)
    # diffrax rejects tolerances that are NumPy arrays.
    stepper = jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_array(x) else x, stepper)
    targets = {name: known[name] for name in names}
    flat = FlatModel(experiment, stepper, targets, experiment.sensors, tuple(parameters))
    _check_names(flat)
    return flat


def _check_names(flat: FlatModel) -> None:
    groups = (
        flat.state_variables(), flat.input_variables(), flat.parameter_variables(),
        flat.output_variables(),
    )  # fmt: skip
    names = [variable.name for group in groups for variable in group]
    if twice := find_duplicates([*names, "time"]):
        raise ValueError(
            f"`export`: several variables are called {twice}; give inputs, parameters and sensors "
            "other names."
        )


def _entries(name: str, shape: Sequence[int]) -> list[str]:
    """Return the names of the entries of an array; the name itself for a scalar."""
    if not shape:
        return [name]
    return [f"{name}[{','.join(str(k + 1) for k in index)}]" for index in np.ndindex(*shape)]


def _split(flat: Vector, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Return consecutive parts of an array in these shapes."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = jnp.split(flat, ends[:-1]) if shapes else []
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float64)
