"""A least-squares problem: experiments, data, and parameters as one vector of coordinates."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...results import RESULTS
from ...state import State
from ..checked_arguments import check_precision
from ..data.inputs import Table, check_cover, make_tables, with_tables
from ..data.measurements import Runs
from ..linearised_runs import Varied, observed, residuals_of, weighted
from ..parameters import (
    Components,
    Experiment,
    Parameter,
    check_leaves,
    completed,
    components_of,
    leaves_at,
    start_leaf,
    with_leaves,
    with_reference,
    with_start,
)
from ..simulation import Simulation
from ..start_change import StartChange
from ..transforms.base import Limits


class Run(eqx.Module):
    """What differs from run to run; in a `Problem` with the runs in front of every array."""

    state0: State
    ts: Float[Array, " T"]
    values: tuple[Array, ...]
    weights: tuple[Float[Array, "T C"], ...]
    own: tuple[Array, ...]
    inputs: dict[str, Table]


class Start(NamedTuple):
    """What an experiment of one run is made of, besides leaves."""

    state0: State
    inputs: dict[str, Table]


class Problem(eqx.Module):
    """Residuals of all runs as functions of the coordinates of all parameters.

    The vector of coordinates holds those of the shared parameters, then for each run those of its
    own. A run depends on the shared ones and its own only, so that its Jacobian takes as many
    directions as there are of these, whatever the number of runs.

    **Attributes:** `model` and `sensors`, as they were before the fit; `runs`; `parameters`, shared
    ones first; `shared`, start values of the shared ones (those of the others are in `runs.own`);
    `displacement`, the change of the start state, zero, if that is a parameter; `fitted_only`,
    whether derivatives by components that a transformation holds fixed are left out, as zero;
    `fits_geometry`, whether the start has to follow the parameters, see `Experiment.reference`.
    """

    model: Any
    sensors: tuple[Any, ...]
    runs: Run
    parameters: tuple[Parameter, ...]
    shared: tuple[Array, ...]
    simulation: Simulation
    displacement: StartChange | None
    fitted_only: bool = eqx.field(static=True, default=False)
    fits_geometry: bool = eqx.field(static=True, default=False)

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

    def _parts(self) -> tuple[Any, Any]:
        """Pairs of the parameters and their start values, the shared ones and those of runs."""
        of_all = zip(self.shared_parameters, self.shared, strict=True)
        return list(of_all), list(zip(self.own_parameters, self.runs.own, strict=True))

    def start(self) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Start coordinates: shared, and of each run."""
        of_all, of_run = self._parts()
        dtype = jnp.result_type(self.runs.ts)
        shared = [p.transform.coordinates(leaf) for p, leaf in of_all]
        own = [jax.vmap(p.transform.coordinates)(leaf) for p, leaf in of_run]
        return self.clip(
            jnp.concatenate([jnp.zeros(0, dtype), *shared]),
            jnp.concatenate([jnp.zeros((self.num_runs, 0), dtype), *own], axis=1),
        )

    def spread(self) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """`AbstractTransform.spread` of every coordinate: shared, and of each run."""
        dtype, (of_all, of_run) = jnp.result_type(self.runs.ts), self._parts()
        shared = [p.transform.spread(leaf) for p, leaf in of_all]
        own = [jax.vmap(p.transform.spread)(leaf) for p, leaf in of_run]
        return (
            jnp.concatenate([jnp.zeros(0, dtype), *shared]),
            jnp.concatenate([jnp.zeros((self.num_runs, 0), dtype), *own], axis=1),
        )

    def limits(self) -> tuple[Limits, Limits] | None:
        """Limits of the coordinates, shared (S,), and of each run (B, P); `None` without any."""
        if not any(p.transform.is_bounded for p in self.parameters):
            return None
        dtype, (of_all, of_run) = jnp.result_type(self.runs.ts), self._parts()
        shared = [p.transform.limits(leaf) for p, leaf in of_all]
        own = [jax.vmap(p.transform.limits)(leaf) for p, leaf in of_run]
        none = jnp.zeros(0, dtype)
        of_all = jax.tree.map(lambda *x: jnp.concatenate(x), Limits(none, none, none), *shared)
        none = jnp.zeros((self.num_runs, 0), dtype)
        first = Limits(none, none, none)
        return of_all, jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), first, *own)

    def clip(
        self, shared: Float[Array, " S"], own: Float[Array, "B P"]
    ) -> tuple[Float[Array, " S"], Float[Array, "B P"]]:
        """Clip coordinates to their limits."""
        limits = self.limits()
        if limits is None:
            return shared, own
        of_all, of_run = limits
        return jnp.clip(shared, of_all.lower, of_all.upper), jnp.clip(
            own, of_run.lower, of_run.upper
        )

    def leaves(self, shared: Float[Array, " S"], own: Float[Array, " P"], run: Run) -> list[Array]:
        """Leaves of all parameters in one run, in the order of `parameters`."""
        return [
            *leaves_at(self.shared_parameters, self.shared, shared),
            *leaves_at(self.own_parameters, run.own, own),
        ]

    def experiment(self, leaves: Sequence[Array], run: Run | Start) -> Experiment:
        """The experiment of one run with these leaves in it."""
        model = with_tables(self.model, run.inputs)
        reference = model if self.fits_geometry else None
        experiment = Experiment(model, run.state0, self.sensors, self.displacement, reference)
        return with_leaves(self.parameters, experiment, leaves)

    def varied(self, experiment: Experiment) -> tuple[Varied, Varied]:
        """The experiment of one run as a function of shared parameters, and of its own."""
        return Varied(experiment, self.shared_parameters), Varied(experiment, self.own_parameters)

    def directions(self) -> np.ndarray:
        """Changes of the components of a run by which it is differentiated, (E, K), one in each."""
        table = self.components(("",))
        identity = np.eye(len(table.labels), dtype=self.runs.ts.dtype)
        return identity[table.chosen] if self.fitted_only else identity

    def residuals(
        self, leaves: Sequence[Array], run: Run
    ) -> tuple[Float[Array, " N"], Bool[Array, ""]]:
        """Weighted residuals of one run, predicted minus measured, and success."""
        experiment = self.experiment(leaves, run)
        readings, result = observed(experiment, run.ts, self.simulation)
        each = zip(experiment.sensors, readings, run.values, strict=True)
        r = weighted([residuals_of(*one) for one in each], run.weights)
        return r, result == RESULTS.successful

    def chain(
        self, shared: Float[Array, " S"], own: Float[Array, " P"], run: Run
    ) -> tuple[Float[Array, "C S"], Float[Array, "D P"]]:
        """Derivatives of the components in one run by the coordinates, of shared ones and own."""
        leaves, count = self.leaves(shared, own, run), len(self.shared)

        def components(shared, own):
            changes = [
                p.transform.change(leaf, new)
                for p, leaf, new in zip(
                    self.parameters, leaves, self.leaves(shared, own, run), strict=True
                )
            ]
            none = jnp.zeros(0, own.dtype)
            return tuple(
                jnp.concatenate([none, *part]) for part in (changes[:count], changes[count:])
            )

        return (
            jax.jacfwd(lambda x: components(x, own)[0])(shared),
            jax.jacfwd(lambda x: components(shared, x)[1])(own),
        )

    def all_leaves(self, shared: Float[Array, " S"], own: Float[Array, "B P"]) -> list[Array]:
        """Leaves of all parameters in every run, with the runs in front."""
        return jax.vmap(lambda own, run: self.leaves(shared, own, run))(own, self.runs)

    def starting(self, leaves: Sequence[Array]) -> "Problem":
        """The problem with these leaves in every run as its start."""
        count = len(self.shared)
        return eqx.tree_at(
            lambda p: (p.shared, p.runs.own),
            self,
            (tuple(leaf[0] for leaf in leaves[:count]), tuple(leaves[count:])),
        )

    def components(self, names: Sequence[str]) -> Components:
        """All components, shared ones, then run by run; `names` of the runs."""
        of_all, of_run = self._parts()
        shared = [(p, x.shape, "") for p, x in of_all]
        own = [(p, x.shape[1:], f"[{name}]") for name in names for p, x in of_run]
        return components_of([*shared, *own])


def make_problem(
    model: Any,
    runs: Runs,
    states: Sequence[State],
    parameters: Sequence[Parameter],
    simulation: Simulation,
) -> tuple[Problem, Components, list[str]]:
    """A problem, all components of its parameters, and notes on start values that were moved.

    **Errors:** `ValueError` for parameters that pick the same leaf, or have the same labels.
    """
    check_precision("identify", model, (), parameters)
    whole = completed(Experiment(model, states[0], runs.sensors), parameters)
    model, sensors = whole.model, whole.sensors
    experiments = [with_start(Experiment(model, state, sensors), parameters) for state in states]
    ordered = tuple(sorted(parameters, key=lambda p: p.per_run))
    check_leaves(ordered, experiments[0])
    shared, own, notes = [], [], []
    for p in ordered:
        leaf, moved = start_leaf(p, experiments, runs.names)
        (own if p.per_run else shared).append(jnp.asarray(leaf))
        notes += moved
    run = Run(
        jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *states),
        runs.ts,
        runs.values,
        runs.weights,
        tuple(own),
        make_tables(model, runs.inputs),
    )
    _check_cover(experiments, ordered, run, runs)
    # Which run a start value came from, and the start values themselves, are data: not static.
    ordered = tuple(
        p if p.start is None else eqx.tree_at(lambda p: p.start, p, None) for p in ordered
    )
    displacement = experiments[0].start
    problem = Problem(
        model, sensors, run, ordered, tuple(shared), simulation, displacement,
        fits_geometry=with_reference(experiments[0], ordered).reference is not None,
    )  # fmt: skip
    table = problem.components(runs.names)
    table.check_labels()
    return problem, table, notes


def _check_cover(experiments, parameters, run, runs):
    """Raise for runs that leave the table of a signal; see `inputs.check_cover`."""
    given, spans, ts = list(experiments), [], np.asarray(runs.ts)
    for b, (experiment, length) in enumerate(zip(experiments, runs.lengths, strict=True)):
        if run.inputs:
            tables = jax.tree.map(lambda x, b=b: x[b], run.inputs)
            model = with_tables(experiment.model, tables)
            given[b] = eqx.tree_at(lambda e: e.model, experiment, model)
        spans.append((float(ts[b, 0]), float(ts[b, length - 1])))
    check_cover(given, parameters, spans, runs.names)
