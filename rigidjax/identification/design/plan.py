"""A run that is planned: where it starts, what reads it, what it is to tell."""

from collections.abc import Mapping, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...checks import float_array
from ...formulations import AbstractFormulation
from ...results import RESULTS
from ...state import State
from ..parameters import Experiment, Parameter, check_leaves, with_leaves
from ..priors import prior_rows
from ..sensitivity import VariedRun, leaf_of
from ..sensors import AbstractSensor, tracking
from ..start_state import with_start
from ..statistics.covariance import reach_of


class Plan(eqx.Module):
    """A planned run and its parameters.

    **Attributes:** `experiment`; `parameters`; `ts` (T,); `weights`, of each sensor the reciprocals
    of its noise, (T, C); `options` of the simulation.
    """

    experiment: Experiment
    parameters: tuple[Parameter, ...]
    ts: Float[Array, " T"]
    weights: tuple[Float[Array, "T C"], ...]
    options: dict[str, Any]

    @property
    def tolerance(self) -> float:
        """Singular values of the Jacobian that count as zero, relative to the largest.

        Derivatives are those of the discrete trajectory, as accurate as it is.
        """
        return max(10 * self.options["rtol"], float(np.sqrt(np.finfo(self.ts.dtype).eps)))

    @property
    def num_readings(self) -> int:
        """Number of scalar readings that count."""
        return int(sum(np.count_nonzero(np.asarray(w)) for w in self.weights))

    def components(self) -> tuple[list[str], list[str], list[int], np.ndarray]:
        """Labels, units, numbers of the parameter, and "is fitted" of all components."""
        labels, units, groups, fitted = [], [], [], []
        for number, p in enumerate(self.parameters):
            shape = p.leaf(self.experiment).shape
            names = p.component_labels(shape)
            labels += names
            units += p.component_units(shape)
            groups += [number] * len(names)
            fitted += [i in p.transform.fitted(shape) for i in range(len(names))]
        return labels, units, groups, np.asarray(fitted)

    def values(self, experiment: Experiment) -> Float[Array, " K"]:
        """All components of the parameters, in physical units."""
        return jnp.concatenate([p.transform.estimates(p.leaf(experiment)) for p in self.parameters])

    def scale(self) -> np.ndarray:
        """What a relative change of each component relates to, (K,): its `reach_of`.

        A component that is zero counts in its own unit.
        """
        _, _, groups, _ = self.components()
        values = np.asarray(self.values(self.experiment))
        reach = reach_of(values, values, np.asarray(groups), self.sizes())
        return np.where(reach > 0, reach, 1.0)

    def sizes(self) -> np.ndarray:
        """`Parameter.size` of all components, (K,)."""
        counts = [len(p.component_labels(p.leaf(self.experiment).shape)) for p in self.parameters]
        return np.repeat([p.size for p in self.parameters], counts)

    def jacobian(
        self, experiment: Experiment, chosen: Sequence[int] | None = None
    ) -> tuple[Float[Array, "N k"], RESULTS]:
        """Derivatives of the weighted readings by the `chosen` components, in an experiment.

        **Returns:** the Jacobian, with the rows of the priors below it, and the result of the run.
        """
        leaves = tuple(p.leaf(experiment) for p in self.parameters)
        run = VariedRun(
            experiment, self.parameters, leaves, self.ts[0], self.ts[-1], self.ts, self.options
        )
        sensors, zero = experiment.sensors, jnp.zeros_like(self.values(experiment))

        def push(direction):
            read, moved, (_, result) = jax.jvp(run, (zero,), (direction,), has_aux=True)
            columns = [
                (w * _residual_tangent(s, r, dr)).reshape(-1)
                for s, w, r, dr in zip(sensors, self.weights, read, moved, strict=True)
            ]
            return jnp.concatenate(columns), result

        columns = np.arange(len(zero)) if chosen is None else np.asarray(chosen)
        identity = jnp.eye(len(zero), dtype=zero.dtype)[columns]
        J, result = jax.vmap(push, out_axes=(-1, None))(identity)
        _, prior = prior_rows(self.parameters, leaves, zero.dtype)
        return jnp.concatenate([J, prior[:, columns]]), result


def make_plan(
    entry: str,
    model: AbstractFormulation,
    state0: State,
    ts: ArrayLike,
    noise: Mapping[Any, ArrayLike],
    parameters: Parameter | Sequence[Parameter],
    options: dict[str, Any],
) -> Plan:
    """A plan from checked arguments of the function `entry`.

    **Errors:** `TypeError` and `ValueError`.
    """
    if not isinstance(model, AbstractFormulation):
        raise TypeError(
            f"`{entry}(model, ...)` takes a formulation such as `rj.NullSpace(system)`; got "
            f"{type(model).__name__}."
        )
    parameters = checked_parameters(entry, "parameters", parameters)
    sensors = _checked_sensors(entry, model, noise)
    model = tracking(model, sensors)
    dtype = jnp.result_type(*filter(eqx.is_inexact_array, jax.tree.leaves((model, state0))))
    at = _checked_times(entry, ts, dtype)
    state0 = jax.tree.map(lambda x: x.astype(dtype), model.check_state(state0, at[0]))
    experiment = with_start(Experiment(model, state0, sensors), parameters)
    check_leaves(parameters, experiment)
    parameters, experiment = _started(parameters, experiment)
    weights = tuple(
        1 / jnp.asarray(_noise(s, noise[s], len(at), s.unit_in(model)), dtype) for s in sensors
    )
    # Never differentiated backwards, and only `ForwardMode` nests without a bound on the steps.
    options = {**options, "dt": None, "adjoint": diffrax.ForwardMode()}
    plan = Plan(experiment, parameters, at, weights, options)
    labels, _, _, fitted = plan.components()
    if len(set(labels)) < len(labels):
        doubled = sorted({x for x in labels if labels.count(x) > 1})
        raise ValueError(f"Parameters need different labels; got {doubled} more than once.")
    count = int(np.count_nonzero(fitted))
    if plan.num_readings < count:
        raise ValueError(
            f"`{entry}`: {plan.num_readings} scalar readings cannot tell {count} parameters. Plan "
            "more samples, or fewer parameters."
        )
    return plan


def checked_parameters(
    entry: str, argument: str, given: Parameter | Sequence[Parameter]
) -> tuple[Parameter, ...]:
    """One or several parameters as a tuple; `TypeError` and `ValueError` for anything else."""
    given = (given,) if isinstance(given, Parameter) else tuple(given)
    for parameter in given:
        if not isinstance(parameter, Parameter):
            raise TypeError(
                f"`{entry}({argument}=...)` takes `rj.Parameter` objects; got "
                f"{type(parameter).__name__}."
            )
    names = [p.name for p in given]
    if not given or len(set(names)) < len(names):
        raise ValueError(
            f"`{entry}({argument}=...)` needs {argument} of different names; got {names}."
        )
    return given


def _started(parameters, experiment):
    """The `start` of every parameter put into the experiment."""
    leaves = [leaf_of(p, experiment) for p in parameters]
    for p, leaf in zip(parameters, leaves, strict=True):
        if p.prior is not None:
            p.prior.check_leaf(p.name, p.transform, leaf.shape)
    # An input may be a parameter too: from here on what the experiment holds counts.
    plain = [eqx.tree_at(lambda p: p.start, p, None, is_leaf=_is_none) for p in parameters]
    return tuple(plain), with_leaves(parameters, experiment, leaves)


def _is_none(leaf):
    return leaf is None


def _residual_tangent(sensor, reading, change):
    """How the residual of each sample changes with its prediction, where it is zero."""

    def residual(predicted):
        return jax.vmap(sensor.residual)(predicted, reading)

    return jax.jvp(residual, (reading,), (change,))[1]


def _checked_sensors(entry, model, noise):
    if not isinstance(noise, Mapping) or not noise:
        raise ValueError(
            f"`{entry}(noise=...)` takes a dictionary such as {{rj.Gyroscope(): 0.01}}; got "
            f"{noise!r}."
        )
    for sensor in noise:
        if not isinstance(sensor, AbstractSensor):
            raise TypeError(
                f"The keys of `{entry}(noise=...)` must be sensors such as `rj.Gyroscope()`; got "
                f"{sensor!r}."
            )
        sensor.check(model)
    names = [sensor.name for sensor in noise]
    if len(set(names)) < len(names):
        raise ValueError(f"Every sensor needs a name of its own; got {names}.")
    return tuple(noise)


def _checked_times(entry, ts, dtype):
    at = np.asarray(float_array(ts, f"{entry}(ts=...)"))
    if at.ndim != 1 or len(at) < 2 or not np.all(np.isfinite(at)) or not np.all(np.diff(at) > 0):
        raise ValueError(
            f"`{entry}(ts=...)` must be at least two finite times, strictly increasing, shape "
            f"(T,); got {ts!r}."
        )
    return jnp.asarray(at, dtype)


def _noise(sensor, noise, length, unit):
    channels = len(sensor.channels)
    argument = f"noise of the sensor {sensor.name!r}"
    noise = np.asarray(float_array(noise, argument, (), (channels,), (length, channels)))
    if not np.all(noise > 0):
        raise ValueError(
            f"The {argument} must be positive, in {unit}, `inf` where nothing is read."
        )
    return np.broadcast_to(noise, (length, channels))
