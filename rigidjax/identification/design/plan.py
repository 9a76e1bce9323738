"""Planned runs."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...adjoints.boundaries import NestedForwardMode
from ...checks import check_sample_times, common_dtype
from ...formulations.choice import ModelInput, choose_formulation
from ...results import RESULTS
from ...sensors import unwrap_measured_angles
from ...state import State
from ..experiment.checked_arguments import (
    check_noise,
    check_parameters,
    check_precision,
    check_sensors,
)
from ..experiment.linearised_runs import ParametrisedExperiment, linearise_run
from ..experiment.parameters import (
    ComponentTable,
    Experiment,
    Parameter,
    apply_starts,
    component_table,
)
from ..experiment.simulation import Simulation
from ..starts.named_parameters import find_named_parameters


class RunPlan(eqx.Module):
    """A planned run and its parameters.

    **Attributes:** `experiment`; `parameters`; `ts` (T,); `weights`, reciprocals of the noise of
    each sensor, (T, C); `simulation`.
    """

    experiment: Experiment
    parameters: tuple[Parameter, ...]
    ts: Float[Array, " T"]
    weights: tuple[Float[Array, "T C"], ...]
    simulation: Simulation

    @property
    def resolution(self) -> Float[Array, ""]:
        """Relative singular value of the Jacobian below which it counts as zero."""
        return self.simulation.resolution(self.ts.dtype)

    @property
    def num_readings(self) -> int:
        """Number of scalar readings with a weight."""
        return int(sum(np.count_nonzero(np.asarray(w)) for w in self.weights))

    def component_table(self) -> ComponentTable:
        """Return the table of all components of the parameters."""
        return component_table([(p, p.leaf(self.experiment).shape, "") for p in self.parameters])

    def values(self, experiment: Experiment) -> Float[Array, " K"]:
        """Return all components of the parameters, in physical units."""
        return ParametrisedExperiment(experiment, self.parameters).values()

    def scale(self) -> np.ndarray:
        """Return the size that relative changes of each component refer to, (K,).

        It is the magnitude of the component, or one, in its unit, if the component is zero.
        """
        table = self.component_table().with_values(self.values(self.experiment))
        magnitudes = table.magnitudes(table.values)
        return np.where(magnitudes > 0, magnitudes, 1.0)

    def jacobian(
        self, experiment: Experiment, chosen: Sequence[int] | None = None
    ) -> tuple[Float[Array, "N k"], RESULTS]:
        """Return derivatives of the weighted readings of an experiment with respect to components.

        **Arguments:** `chosen`, indices of the components; `None` for all.
        **Returns:** the Jacobian, with the rows of the priors below it, and the result of the run.
        """
        parametrised = ParametrisedExperiment(experiment, self.parameters)
        _, prior = parametrised.prior()
        columns = np.arange(prior.shape[1]) if chosen is None else np.asarray(chosen)
        directions = jnp.eye(prior.shape[1], dtype=prior.dtype)[columns]
        run = linearise_run(
            parametrised, directions, self.ts, self.simulation, self.weights, during_solve=False
        )
        return jnp.concatenate([run.jacobian, prior[:, columns]]), run.aux


def make_plan(
    entry: str,
    model: ModelInput,
    state0: State,
    ts: ArrayLike,
    noise: Mapping[Any, ArrayLike],
    parameters: Parameter | Sequence[Parameter],
    simulation: Simulation,
) -> RunPlan:
    """Return a plan from checked arguments of the function `entry`.

    **Errors:** `TypeError` and `ValueError` for arguments that do not fit.
    """
    model = choose_formulation(model, entry)
    parameters = check_parameters(entry, parameters)
    if not isinstance(noise, Mapping) or not noise:
        raise ValueError(
            f"`{entry}(noise=...)` takes a dictionary such as {{rj.Gyroscope(): 0.01}}; got "
            f"{noise!r}."
        )
    sensors = check_sensors(f"The keys of `{entry}(noise=...)` must be", noise, model)
    parameters = find_named_parameters(parameters, model, sensors)
    check_precision(entry, model, sensors, parameters)
    model = unwrap_measured_angles(model, sensors)
    dtype = common_dtype(model, state0)
    sample_times = jnp.asarray(check_sample_times(ts, f"{entry}(ts=...)"), dtype)
    state0 = jax.tree.map(lambda x: x.astype(dtype), model.check_state(state0, sample_times[0]))
    experiment = apply_starts(parameters, Experiment(model, state0, sensors))
    # The experiment now holds the start values, also of parameters that are inputs.
    parameters = tuple(dataclasses.replace(p, start=None) for p in parameters)
    requirement = "positive, in {}, `inf` where nothing is read"
    weights = tuple(
        1
        / jnp.asarray(
            check_noise(s, noise[s], len(sample_times), requirement.format(s.unit_in(model))), dtype
        )
        for s in sensors
    )
    # The plan is only differentiated in forward mode.
    simulation = simulation.with_defaults(dtype, adjoint=NestedForwardMode())
    plan = RunPlan(experiment, parameters, sample_times, weights, simulation)
    table = plan.component_table()
    table.check_labels()
    if plan.num_readings < table.fitted_indices.size:
        raise ValueError(
            f"`{entry}`: {plan.num_readings} scalar readings cannot determine "
            f"{table.fitted_indices.size} parameters. Plan more samples, or fewer parameters."
        )
    return plan
