"""The least-squares problem: experiments, data, and parameters as one vector of coordinates."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...annotations import Flag
from ...checks import as_leaf
from ...results import RESULTS
from ...state import State
from ..data.measurements import Runs
from ..experiment.checked_arguments import check_precision
from ..experiment.inputs import InputTable, check_coverage, insert_tables, make_tables
from ..experiment.linearised_runs import (
    ParametrisedExperiment,
    sensor_residuals,
    simulate_readings,
    weigh_residuals,
)
from ..experiment.parameters import (
    ComponentTable,
    Experiment,
    Parameter,
    admissible_start,
    check_leaves,
    component_table,
    insert_reference,
    insert_start_change,
    leaves_from_coordinates,
    materialise_parameters,
    replace_leaves,
)
from ..experiment.simulation import Simulation
from ..experiment.start_change import StartChange
from ..noise.kalman import Whitening
from ..transforms.base import AbstractTransform, Limits


class RunData(eqx.Module):
    """Per-run data. In a `FitProblem` every array has a leading run axis.

    **Attributes:** `hold` (D,), see `FitProblem.hold`, of the components of the run; `whitening` of
    each sensor, `None` for white noise, empty if all are white; `gains`, of the filter of a
    prediction-error fit, else `None`.
    """

    state0: State
    ts: Float[Array, " T"]
    values: tuple[Array, ...]
    weights: tuple[Float[Array, "T C"], ...]
    per_run: tuple[Array, ...]
    inputs: dict[str, InputTable]
    hold: Float[Array, " D"] | None = None
    whitening: tuple[Whitening | None, ...] = ()
    gains: Any = None

    def whiten(self, rows: Float[Array, "N E"]) -> Float[Array, "N E"]:
        """Return rows of weighted residuals, filtered by the noise models of their sensors."""
        if not any(w is not None for w in self.whitening):
            return rows
        sizes = [w.size for w in self.weights]
        parts = jnp.split(rows, np.cumsum(sizes)[:-1])
        filtered = [
            part if filter is None else filter(part.reshape(*w.shape, -1)).reshape(part.shape)
            for filter, w, part in zip(self.whitening, self.weights, parts, strict=True)
        ]
        return jnp.concatenate(filtered)


class StartData(NamedTuple):
    """The per-run data that an experiment needs besides its leaves."""

    state0: State
    inputs: dict[str, InputTable]


class FitProblem(eqx.Module):
    """Residuals of all runs as functions of the coordinates of all parameters.

    The vector of coordinates holds those of the shared parameters, then run by run those of the
    per-run parameters. A run depends on the shared parameters and its own ones only, so that its
    Jacobian needs as many directions as it has parameters, whatever the number of runs.

    **Attributes:** `model` and `sensors`, as before the fit; `runs`; `parameters`, shared ones
    first; `shared`, start values of the shared parameters (those of the others are in
    `runs.per_run`); `start_change`, a zero change of the start state, if that is a parameter;
    `fitted_only`, whether derivatives with respect to components that a transformation holds fixed
    are left out, as zero; `fits_geometry`, whether the start must follow the parameters, see
    `Experiment.reference`; `hold`, `None` or weights (C,) of additional residuals, the changes of
    the shared components from their start. Large weights hold components, a zero weight has no
    effect; `predictor`, whose innovations replace the residuals of simulated runs.
    """

    model: Any
    sensors: tuple[Any, ...]
    runs: RunData
    parameters: tuple[Parameter, ...]
    shared: tuple[Array, ...]
    simulation: Simulation
    start_change: StartChange | None
    predictor: Any = None
    fitted_only: bool = eqx.field(static=True, default=False)
    fits_geometry: bool = eqx.field(static=True, default=False)
    hold: Float[Array, " C"] | None = None

    @property
    def shared_parameters(self) -> tuple[Parameter, ...]:
        """Parameters that all runs share."""
        return tuple(p for p in self.parameters if not p.per_run)

    @property
    def per_run_parameters(self) -> tuple[Parameter, ...]:
        """Parameters with one value per run."""
        return tuple(p for p in self.parameters if p.per_run)

    def parameter_of(self, group: int) -> Parameter:
        """Return the parameter of a group of components; see `ComponentTable`."""
        count = len(self.shared)
        if group >= count:
            group = count + (group - count) % len(self.per_run_parameters)
        return self.parameters[group]

    @property
    def num_runs(self) -> int:
        """Number of runs."""
        return self.runs.ts.shape[0]

    def _parameters_with_starts(self) -> tuple[Any, Any]:
        """Return pairs of parameters and start values, for shared and for per-run parameters."""
        shared_pairs = zip(self.shared_parameters, self.shared, strict=True)
        return list(shared_pairs), list(
            zip(self.per_run_parameters, self.runs.per_run, strict=True)
        )

    def _concatenate(
        self,
        function: Callable[[AbstractTransform, Array], Any],
        collect: Callable[[Array], Any] = lambda array: array,
    ) -> tuple[Any, Any]:
        """Concatenate values of all transformations: shared (S,), and of each run (B, P).

        **Arguments:** `function` of a transformation and a start value, which returns one array or
        several with an entry for every coordinate; `collect(array)`, this result if all of its
        arrays are `array`.
        """
        shared_pairs, run_pairs = self._parameters_with_starts()
        shared = [function(p.transform, leaf) for p, leaf in shared_pairs]
        per_run = [jax.vmap(partial(function, p.transform))(leaf) for p, leaf in run_pairs]
        dtype = jnp.result_type(self.runs.ts)
        none, none_of_runs = jnp.zeros(0, dtype), jnp.zeros((self.num_runs, 0), dtype)
        return (
            jax.tree.map(lambda *x: jnp.concatenate(x), collect(none), *shared),
            jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), collect(none_of_runs), *per_run),
        )

    def start_coordinates(self) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Return the start coordinates: shared, and of each run."""
        return self.clip(*self._concatenate(lambda transform, leaf: transform.coordinates(leaf)))

    def natural_scales(self) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Return `AbstractTransform.spread` of every coordinate: shared, and of each run."""
        return self._concatenate(lambda transform, leaf: transform.spread(leaf))

    def limits(self) -> tuple[Limits, Limits] | None:
        """Return limits of the coordinates, shared (S,) and per run (B, P); `None` without any."""
        if not any(p.transform.is_bounded for p in self.parameters):
            return None
        return self._concatenate(
            lambda transform, leaf: transform.limits(leaf), lambda x: Limits(x, x, x)
        )

    def clip(
        self, shared: Float[Array, " S"], per_run: Float[Array, "B P"]
    ) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Clip coordinates to their limits."""
        limits = self.limits()
        if limits is None:
            return shared, per_run
        shared_limits, run_limits = limits
        return jnp.clip(shared, shared_limits.lower, shared_limits.upper), jnp.clip(
            per_run, run_limits.lower, run_limits.upper
        )

    def run_leaves(
        self, shared: Float[Array, " S"], per_run: Float[Array, " P"], run: RunData
    ) -> list[Array]:
        """Return the leaves of all parameters in one run, in the order of `parameters`."""
        return [
            *leaves_from_coordinates(self.shared_parameters, self.shared, shared),
            *leaves_from_coordinates(self.per_run_parameters, run.per_run, per_run),
        ]

    def experiment(self, leaves: Sequence[Array], run: RunData | StartData) -> Experiment:
        """Return the experiment of one run with these leaves."""
        model = insert_tables(self.model, run.inputs)
        reference = model if self.fits_geometry else None
        experiment = Experiment(model, run.state0, self.sensors, self.start_change, reference)
        return replace_leaves(self.parameters, experiment, leaves)

    def parametrise(
        self, experiment: Experiment
    ) -> tuple[ParametrisedExperiment, ParametrisedExperiment]:
        """Return the experiment of a run as functions of shared and of per-run parameters."""
        blocks = self.shared_parameters, self.per_run_parameters
        shared, per_run = (ParametrisedExperiment(experiment, block) for block in blocks)
        return shared, per_run

    def directions(self) -> np.ndarray:
        """Return the changes of components along which a run is differentiated, (E, K)."""
        table = self.component_table(("",))
        identity = np.eye(len(table.labels), dtype=self.runs.ts.dtype)
        return identity[table.fitted_indices] if self.fitted_only else identity

    def residuals(self, leaves: Sequence[Array], run: RunData) -> tuple[Float[Array, " N"], Flag]:
        """Return the weighted residuals of one run, predicted minus measured, and success.

        A noise model whitens those of its sensor.
        """
        experiment = self.experiment(leaves, run)
        readings, result = simulate_readings(experiment, run.ts, self.simulation)
        triples = zip(experiment.sensors, readings, run.values, strict=True)
        r = weigh_residuals([sensor_residuals(*triple) for triple in triples], run.weights)
        return run.whiten(r[:, None])[:, 0], result == RESULTS.successful

    def component_derivatives(
        self, shared: Float[Array, " S"], per_run: Float[Array, " P"], run: RunData
    ) -> tuple[Float[Array, "C S"], Float[Array, "D P"]]:
        """Return derivatives of shared and of per-run components with respect to coordinates."""

        def derivatives(parameters, references, u):
            leaves = leaves_from_coordinates(parameters, references, u)

            def changes(u):
                new = leaves_from_coordinates(parameters, references, u)
                triples = zip(parameters, leaves, new, strict=True)
                parts = [p.transform.change(leaf, new) for p, leaf, new in triples]
                return jnp.concatenate([jnp.zeros(0, u.dtype), *parts])

            return jax.jacfwd(changes)(u)

        return (
            derivatives(self.shared_parameters, self.shared, shared),
            derivatives(self.per_run_parameters, run.per_run, per_run),
        )

    def all_leaves(self, shared: Float[Array, " S"], per_run: Float[Array, "B P"]) -> list[Array]:
        """Return the leaves of all parameters in every run, with a leading run axis."""
        return jax.vmap(lambda per_run, run: self.run_leaves(shared, per_run, run))(
            per_run, self.runs
        )

    def with_samples(self, runs: Runs) -> "FitProblem":
        """Return the problem with other times, samples and weights of the same runs."""
        samples = dataclasses.replace(
            self.runs, ts=runs.ts, values=runs.values, weights=runs.weights
        )
        return dataclasses.replace(self, runs=samples)

    def without_whitening(self) -> "FitProblem":
        """Return the problem without noise models, whose residuals are weighted alone."""
        return dataclasses.replace(self, runs=dataclasses.replace(self.runs, whitening=()))

    def with_starts(self, leaves: Sequence[Array]) -> "FitProblem":
        """Return the problem with these leaves as the start of every run."""
        count = len(self.shared)
        runs = dataclasses.replace(self.runs, per_run=tuple(leaves[count:]))
        return dataclasses.replace(self, shared=tuple(x[0] for x in leaves[:count]), runs=runs)

    def with_hold(
        self, shared: Float[ArrayLike, " C"], per_run: Float[ArrayLike, "B D"]
    ) -> "FitProblem":
        """Return the problem with these weights of changes from the start, see `hold`."""
        runs = dataclasses.replace(self.runs, hold=jnp.asarray(per_run))
        return dataclasses.replace(self, runs=runs, hold=jnp.asarray(shared))

    def hold_rows(
        self, experiment: Experiment, run: RunData
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return residuals that hold shared and per-run components, and their derivatives."""

        assert self.hold is not None and run.hold is not None

        def rows(parameters, starts, weights):
            leaves = [p.leaf(experiment) for p in parameters]
            changes = [
                p.transform.change(start, leaf)
                for p, start, leaf in zip(parameters, starts, leaves, strict=True)
            ]
            change = jnp.concatenate([jnp.zeros(0, weights.dtype), *changes])
            return weights * change, jnp.diag(weights)

        return (
            rows(self.shared_parameters, self.shared, self.hold),
            rows(self.per_run_parameters, run.per_run, run.hold),
        )

    def component_table(self, names: Sequence[str]) -> ComponentTable:
        """Return the table of all components, shared ones, then run by run; `names` of the runs."""
        shared_pairs, run_pairs = self._parameters_with_starts()
        shared = [(p, x.shape, "") for p, x in shared_pairs]
        suffixes = [f"[{name}]" for name in names] if len(names) > 1 else [""]
        per_run = [(p, x.shape[1:], suffix) for suffix in suffixes for p, x in run_pairs]
        return component_table([*shared, *per_run])


def make_problem(
    model: Any,
    runs: Runs,
    states: Sequence[State],
    parameters: Sequence[Parameter],
    simulation: Simulation,
) -> tuple[FitProblem, ComponentTable, list[str]]:
    """Return a problem, the table of its components, and notes on start values that were moved.

    **Errors:** `ValueError` for parameters that pick the same leaf, or have the same labels.
    """
    check_precision("identify", model, (), parameters)
    experiment = materialise_parameters(Experiment(model, states[0], runs.sensors), parameters)
    model, sensors = experiment.model, experiment.sensors
    experiments = [
        insert_start_change(Experiment(model, state, sensors), parameters) for state in states
    ]
    ordered = tuple(sorted(parameters, key=lambda p: p.per_run))
    check_leaves(ordered, experiments[0])
    shared, per_run, notes = [], [], []
    for p in ordered:
        leaf, leaf_notes = admissible_start(p, experiments, runs.names)
        (per_run if p.per_run else shared).append(as_leaf(leaf))
        notes += leaf_notes
    run = RunData(
        jax.tree.map(lambda *leaves: as_leaf(np.stack(leaves)), *states),
        runs.ts,
        runs.values,
        runs.weights,
        tuple(per_run),
        make_tables(model, runs.inputs),
    )
    _check_coverage(experiments, ordered, run, runs)
    # Start values are data: as static fields of parameters they would cause recompilation.
    ordered = tuple(
        p if p.start is None else eqx.tree_at(lambda p: p.start, p, None) for p in ordered
    )
    start_change = experiments[0].start
    problem = FitProblem(
        model, sensors, run, ordered, tuple(shared), simulation, start_change,
        fits_geometry=insert_reference(experiments[0], ordered).reference is not None,
    )  # fmt: skip
    table = problem.component_table(runs.names)
    table.check_labels()
    return problem, table, notes


def _check_coverage(
    experiments: Sequence[Experiment], parameters: Sequence[Parameter], run: RunData, runs: Runs
) -> None:
    """Raise `ValueError` for runs that leave the table of a signal; see `check_coverage`."""
    with_inputs, spans, ts = list(experiments), [], np.asarray(runs.ts)
    for b, (experiment, length) in enumerate(zip(experiments, runs.lengths, strict=True)):
        if run.inputs:
            tables = jax.tree.map(lambda x, b=b: x[b], run.inputs)
            model = insert_tables(experiment.model, tables)
            with_inputs[b] = eqx.tree_at(lambda e: e.model, experiment, model)
        spans.append((float(ts[b, 0]), float(ts[b, length - 1])))
    check_coverage(with_inputs, parameters, spans, runs.names)
