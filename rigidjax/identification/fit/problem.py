"""A least-squares problem: experiments, data, and parameters as one vector of coordinates."""

from collections.abc import Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...results import RESULTS
from ...simulate import simulate
from ...state import State
from ..data.inputs import Table, check_cover, make_tables, with_tables
from ..data.measurements import Runs
from ..parameters import Experiment, Parameter, check_leaves, start_leaf, with_leaves
from ..start_state import StartChange, with_start


class Simulation(eqx.Module):
    """How the trial experiments are simulated; the arguments of `rj.simulate`.

    Tolerances are leaves: one program for all of them. `forward`: whether derivatives are taken in
    forward mode.
    """

    solver: diffrax.AbstractSolver
    rtol: Float[Array, ""]
    atol: Float[Array, ""]
    projection: Any
    max_steps: int = eqx.field(static=True)
    forward: bool = eqx.field(static=True, default=True)


class _Readings(eqx.Module):
    """What all sensors read, as a function to be saved by the solver."""

    model: Any
    sensors: tuple[Any, ...]

    def __call__(self, t: Any, y: Any, args: Any) -> tuple[Array, ...]:
        return tuple(sensor.predict(self.model, t, y) for sensor in self.sensors)


class Run(eqx.Module):
    """What differs from run to run; in a `Problem` with the runs in front of every array."""

    state0: State
    ts: Float[Array, " T"]
    values: tuple[Array, ...]
    weights: tuple[Float[Array, "T C"], ...]
    own: tuple[Array, ...]
    inputs: dict[str, Table]


class Problem(eqx.Module):
    """Residuals of all runs as functions of the coordinates of all parameters.

    The vector of coordinates holds those of the shared parameters, then for each run those of its
    own. A run depends on the shared ones and its own only, so that its Jacobian takes as many
    directions as there are of these, whatever the number of runs.

    **Attributes:** `model` and `sensors`, as they were before the fit; `runs`; `parameters`, shared
    ones first; `shared`, start values of the shared ones (those of the others are in `runs.own`);
    `displacement`, the change of the start state, zero, if that is a parameter.
    """

    model: Any
    sensors: tuple[Any, ...]
    runs: Run
    parameters: tuple[Parameter, ...]
    shared: tuple[Array, ...]
    simulation: Simulation
    displacement: StartChange | None

    @property
    def shared_parameters(self) -> tuple[Parameter, ...]:
        """Parameters that all runs have in common."""
        return tuple(p for p in self.parameters if not p.per_run)

    @property
    def own_parameters(self) -> tuple[Parameter, ...]:
        """Parameters of which every run has its own."""
        return tuple(p for p in self.parameters if p.per_run)

    @property
    def num_runs(self) -> int:
        """Number of runs."""
        return self.runs.ts.shape[0]

    def start(self) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Start coordinates: shared, and of each run."""
        shared = [
            p.transform.coordinates(leaf)
            for p, leaf in zip(self.shared_parameters, self.shared, strict=True)
        ]
        own = [
            jax.vmap(p.transform.coordinates)(leaf)
            for p, leaf in zip(self.own_parameters, self.runs.own, strict=True)
        ]
        dtype = jnp.result_type(self.runs.ts)
        return (
            jnp.concatenate([jnp.zeros(0, dtype), *shared]),
            jnp.concatenate([jnp.zeros((self.num_runs, 0), dtype), *own], axis=1),
        )

    def spread(self) -> tuple[Float[Array, " S"], Float[Array, " P"]]:
        """`AbstractTransform.spread` of every coordinate: shared, and of one run."""
        dtype = jnp.result_type(self.runs.ts)
        return tuple(
            jnp.asarray(
                [
                    p.transform.spread
                    for p, leaf in zip(parameters, leaves, strict=True)
                    for _ in p.transform.fitted(leaf.shape[skip:])
                ],
                dtype,
            )
            for parameters, leaves, skip in (
                (self.shared_parameters, self.shared, 0),
                (self.own_parameters, self.runs.own, 1),
            )
        )  # pyright: ignore[reportReturnType]

    def leaves(self, shared: Float[Array, " S"], own: Float[Array, " P"], run: Run) -> list[Array]:
        """Leaves of all parameters in one run, in the order of `parameters`."""
        out = []
        for parameters, references, u in (
            (self.shared_parameters, self.shared, shared),
            (self.own_parameters, run.own, own),
        ):
            for parameter, reference in zip(parameters, references, strict=True):
                count = len(parameter.transform.fitted(reference.shape))
                out.append(parameter.transform.leaf(u[:count], reference))
                u = u[count:]
        return out

    def experiment(self, leaves: Sequence[Array], run: Run) -> Experiment:
        """The experiment of one run with these leaves in it."""
        model = with_tables(self.model, run.inputs)
        experiment = Experiment(model, run.state0, self.sensors, self.displacement)
        return with_leaves(self.parameters, experiment, leaves)

    def predict(
        self, experiment: Experiment, run: Run
    ) -> tuple[tuple[Array, ...], Bool[Array, ""]]:
        """Predicted values of all sensors at the times of the samples, and success."""
        how: Any = self.simulation
        state0, closed = experiment.started(run.ts[0])
        # Sensors are read while integrating: what is saved costs memory traffic in every step. As
        # everywhere they read projected unknowns.
        saveat = diffrax.SaveAt(ts=run.ts, fn=_Readings(experiment.model, experiment.sensors))
        solution = simulate(
            experiment.model,
            state0,
            run.ts[-1],
            t0=run.ts[0],
            saveat=saveat,
            solver=how.solver,
            rtol=how.rtol,
            atol=how.atol,
            projection=how.projection,
            max_steps=how.max_steps,
            adjoint=diffrax.ForwardMode() if how.forward else None,
            throw=False,
        )
        return solution.ys, closed & (solution.result == RESULTS.successful)

    def residuals(
        self, leaves: Sequence[Array], run: Run
    ) -> tuple[tuple[Float[Array, "T C"], ...], Bool[Array, ""]]:
        """Unweighted residuals of one run, predicted minus measured, and success."""
        experiment = self.experiment(leaves, run)
        predicted, okay = self.predict(experiment, run)
        return tuple(
            jax.vmap(sensor.residual)(prediction, values)
            for sensor, prediction, values in zip(
                experiment.sensors, predicted, run.values, strict=True
            )
        ), okay


def weighted(
    residuals: Sequence[Float[Array, "T C"]], weights: Sequence[Float[Array, "T C"]]
) -> Float[Array, " N"]:
    """Residuals of all sensors times their weights, as one vector; what has no weight is zero."""
    return jnp.concatenate(
        [
            jnp.where(w > 0, w * jnp.where(w > 0, r, 0.0), 0.0).reshape(-1)
            for r, w in zip(residuals, weights, strict=True)
        ]
    )


def make_problem(
    model: Any,
    runs: Runs,
    states: Sequence[State],
    parameters: Sequence[Parameter],
    simulation: Simulation,
) -> tuple[Problem, list[str]]:
    """Assemble a problem; the notes say which start values were moved.

    **Errors:** `ValueError` for no parameter, two of one name, or one that picks the same leaf.
    """
    names = [p.name for p in parameters]
    if not parameters or len(set(names)) < len(names):
        raise ValueError(
            f"`identify(parameters=...)` needs parameters of different names; got {names}."
        )
    experiments = [
        with_start(Experiment(model, state, runs.sensors), parameters) for state in states
    ]
    ordered = tuple(sorted(parameters, key=lambda p: p.per_run))
    check_leaves(ordered, experiments[0])
    shared, own, notes = [], [], []
    for p in ordered:
        leaf, moved = start_leaf(p, experiments, runs.names)
        (own if p.per_run else shared).append(jnp.asarray(leaf))
        notes += moved
    run = Run(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *states),
        runs.ts,
        runs.values,
        runs.weights,
        tuple(own),
        make_tables(model, runs.inputs),
    )
    _check_cover(experiments, ordered, run, runs)
    # Which run a start value came from, and the start values themselves, are data: not static.
    ordered = tuple(
        eqx.tree_at(lambda p: p.start, p, None, is_leaf=lambda x: x is None) for p in ordered
    )
    displacement = experiments[0].start
    problem = Problem(model, runs.sensors, run, ordered, tuple(shared), simulation, displacement)
    return problem, notes


def _check_cover(experiments, parameters, run, runs):
    """Raise for runs that leave the table of a signal; see `inputs.check_cover`."""
    given, spans = [], []
    for b, (experiment, length) in enumerate(zip(experiments, runs.lengths, strict=True)):
        tables = jax.tree.map(lambda x, b=b: x[b], run.inputs)
        model = with_tables(experiment.model, tables)
        given.append(eqx.tree_at(lambda e: e.model, experiment, model))
        spans.append((float(runs.ts[b, 0]), float(runs.ts[b, length - 1])))
    check_cover(given, parameters, spans, runs.names)


def component_table(problem: Problem, runs: Runs) -> tuple[list[str], list[str], np.ndarray]:
    """Labels, units and "is fitted" of all components: shared, then run by run.

    **Errors:** `ValueError` for labels that are not unique.
    """
    labels, units, fitted = [], [], []

    def add(parameter, shape, suffix):
        chosen = parameter.transform.fitted(shape)
        units.extend(parameter.component_units(shape))
        for i, label in enumerate(parameter.component_labels(shape)):
            labels.append(label + suffix)
            fitted.append(i in chosen)

    for p, leaf in zip(problem.shared_parameters, problem.shared, strict=True):
        add(p, leaf.shape, "")
    for b in range(problem.num_runs):
        for p, leaf in zip(problem.own_parameters, problem.runs.own, strict=True):
            add(p, leaf.shape[1:], f"[{runs.names[b]}]")
    doubled = sorted({x for x in labels if labels.count(x) > 1})
    if doubled:
        raise ValueError(
            f"Parameters and runs need different labels; got {doubled} more than once."
        )
    return labels, units, np.asarray(fitted)


def component_sizes(problem: Problem) -> np.ndarray:
    """`Parameter.size` of all components: shared, then run by run."""
    shared = [
        np.full(len(p.component_labels(leaf.shape)), p.size)
        for p, leaf in zip(problem.shared_parameters, problem.shared, strict=True)
    ]
    own = [
        np.full(len(p.component_labels(leaf.shape[1:])), p.size)
        for p, leaf in zip(problem.own_parameters, problem.runs.own, strict=True)
    ]
    return np.concatenate([np.zeros(0), *shared, *(own * problem.num_runs)])


def component_groups(problem: Problem) -> np.ndarray:
    """The parameter (and run) that every component belongs to, as numbers."""
    counts = [
        len(p.component_labels(leaf.shape))
        for p, leaf in zip(problem.shared_parameters, problem.shared, strict=True)
    ]
    own = [
        len(p.component_labels(leaf.shape[1:]))
        for p, leaf in zip(problem.own_parameters, problem.runs.own, strict=True)
    ]
    counts += own * problem.num_runs
    return np.repeat(np.arange(len(counts)), counts)
