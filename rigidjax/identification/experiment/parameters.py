"""Fitted leaves of an experiment and their coordinates."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from ...checks import find_duplicates, float_array
from ...formulations import AbstractFormulation
from ...formulations.leaves import LeafMark, find_leaf, mark_leaves, materialise_leaves
from ...sensors import AbstractSensor
from ...state import State
from ..transforms import AbstractTransform, Unconstrained
from .priors import AbstractPrior
from .start_change import StartChange, StartSelector, picks_geometry, transfer_state, zero_change


class Experiment(eqx.Module):
    """Model, start state and sensors of one run: a pytree in which `Parameter` picks leaves.

    **Attributes:** `model`, a formulation; `state0`, the state at the first sample; `sensors`, in
    the order of the measurements; `start`, a change of `state0` if `start_state` is fitted, else
    `None`; `reference`, the model whose joints allow `state0` if the geometry of joints is fitted,
    else `None`. With a `reference`, the run starts at the joint coordinates of `state0` for every
    value of the geometry.
    """

    model: AbstractFormulation
    state0: State
    sensors: tuple[AbstractSensor, ...]
    start: StartChange | None = None
    reference: AbstractFormulation | None = None

    def start_at(self, t: Float[Array, ""]) -> tuple[State, Bool[Array, ""]]:
        """Return the state at the first sample, after `start`, and whether its joints close."""
        state, okay = self.state0, jnp.array(True)
        if self.reference is not None:
            state, okay = transfer_state(self.reference, self.model, state, t)
        if self.start is None:
            return state, okay
        state, closed = self.start.apply(self.model, state, t)
        return state, okay & closed


@dataclasses.dataclass(frozen=True)
class LeafName:
    """Name of a leaf, and whether its transformation and its runs are defaults of its class."""

    name: str
    has_default_transform: bool = False
    has_default_run: bool = False

    def __call__(self, experiment: Any) -> Any:
        return find_leaf(self.name, experiment, f"`Parameter({self.name!r})`")(experiment)


class Parameter(eqx.Module):
    """A fitted leaf of an `Experiment`, by its name or by a function.

    `rj.Parameter("hinge.damping")`, `"arm.mass"`, `"arm.inertia"`, `"Spring.stiffness"`,
    `"gyroscope.bias"`: a part (a body, joint, constraint, force, frame or sensor; a force by its
    class, if needed with its joint or body, `"Motor hinge.torque"`) and a field of it. Unit and
    range follow from the class of the part. `"start.hinge"` and `"start.hinge.rate"` are changes
    of the start of a joint, or of a free body, as in `start_state`. Tied leaves are a list of
    names, `rj.Parameter(["left.mass", "right.mass"])`.

    **Arguments:**

    - `name`, of the leaf, or any name for reports if `where` is given.
    - `where(experiment)`, a function that picks the leaf: `lambda e: e.model.system.inertia`,
      `lambda e: e.state0.angular_velocity`. The leaf may be one that was left out because it is
      zero, such as the damping of a joint. Fits share compiled code if they use the same function
      object.
    - `transform`, its coordinates: `Unconstrained()`, `Positive()`, `Bounded(a, b)`,
      `PrincipalInertia()`, `InertiaTensor()`, `Orientation()`. A transformation can hold part of
      the leaf fixed. By default `Unconstrained()` with `where`, else that of the class.
    - `tied`, functions that pick other leaves of the same shape, which take the same value: two
      equal springs, both wheels.
    - `per_run`, whether every run has a value of its own.
    - `start`, the start value, in the shape of the leaf, or with a leading run axis; the value in
      the model if left out.
    - `unit`, for reports, one for all components or one per component; `labels`, names of the
      components instead of the name with an index.
    - `size` of a large change of a component, in its unit, where the value gives no scale (an angle
      may be zero). The verdict "hardly determined" and the scores of experiments are relative to
      it.
    - `prior`, knowledge besides the data: `LogDetPrior` for an inertia, or `GaussianPrior`.

    **Errors:** `TypeError` and `ValueError` for arguments of the wrong kind.
    """

    name: str = eqx.field(static=True)
    where: Callable[[Experiment], Any] = eqx.field(static=True)
    tied: tuple[Callable[[Experiment], Any], ...] = eqx.field(static=True)
    transform: AbstractTransform
    per_run: bool = eqx.field(static=True)
    start: Any
    unit: str | tuple[str, ...] = eqx.field(static=True)
    labels: tuple[str, ...] | None = eqx.field(static=True)
    size: float = eqx.field(static=True)
    prior: AbstractPrior | None

    def __init__(
        self,
        name: str | Sequence[str],
        where: Callable[[Experiment], Any] | None = None,
        transform: AbstractTransform | None = None,
        *,
        tied: Sequence[Callable[[Experiment], Any]] = (),
        per_run: bool | None = None,
        start: ArrayLike | None = None,
        unit: str | Sequence[str] = "",
        labels: Sequence[str] | None = None,
        size: float = 0.0,
        prior: AbstractPrior | None = None,
    ):
        names = [name] if isinstance(name, str) else list(name)
        if not names or not all(isinstance(n, str) and n for n in names) or (where and names[1:]):
            raise TypeError(
                "`Parameter(name=...)` must be a non-empty string, or without `where` a list of "
                f"names of tied leaves; got {name!r}."
            )
        name = ", ".join(names)
        if where is None:
            where = LeafName(names[0], transform is None, per_run is None)
            tied = (*map(LeafName, names[1:]), *tied)
        if not callable(where):
            raise TypeError(
                f"`Parameter({name!r}, where=...)` must be a function of an `Experiment`, such as "
                f"`lambda e: e.model.system.inertia`; got {where!r}."
            )
        if callable(tied) or not all(map(callable, tied)):
            raise TypeError(
                f"`Parameter({name!r}, tied=...)` must be a list of functions of an `Experiment`; "
                f"to tie leaves by name, list the names, `Parameter([...])`. Got {tied!r}."
            )
        transform = Unconstrained() if transform is None else transform
        if not isinstance(transform, AbstractTransform):
            raise TypeError(
                f"`Parameter({name!r}, transform=...)` must be a transformation such as "
                f"`rj.identification.Positive()`; got {transform!r}."
            )
        self.name = name
        self.where = where
        self.tied = tuple(tied)
        self.transform = transform
        self.per_run = bool(per_run)
        argument = f"Parameter({name!r}, start=...)"
        self.start = None if start is None else jnp.asarray(float_array(start, argument))
        self.unit = unit if isinstance(unit, str) else tuple(unit)
        self.labels = None if labels is None else tuple(labels)
        self.size = size
        if prior is not None:
            if not isinstance(prior, AbstractPrior):
                raise TypeError(
                    f"`Parameter({name!r}, prior=...)` must be a prior such as "
                    f"`rj.identification.GaussianPrior(mean, std)`; got {prior!r}."
                )
            if not isinstance(where, LeafName):
                prior.check(name, transform)
        self.prior = prior

    def component_labels(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Return the labels of all components of a leaf of this shape."""
        try:
            names = self.transform.components(shape)
        except ValueError as error:
            raise ValueError(f"Parameter {self.name!r}: {error}.") from error
        if self.labels is None:
            return tuple(self.name + suffix for suffix in names)
        if len(self.labels) != len(names):
            raise ValueError(
                f"`Parameter({self.name!r}, labels=...)` must have {len(names)} entries, one for "
                f"each component; got {self.labels}."
            )
        return self.labels

    def component_units(self, count: int) -> tuple[str, ...]:
        """Return the units of `count` components."""
        if isinstance(self.unit, str):
            return (self.unit,) * count
        if len(self.unit) != count:
            raise ValueError(
                f"`Parameter({self.name!r}, unit=...)` must be one unit or {count}, one for each "
                f"component; got {self.unit}."
            )
        return self.unit

    def leaf(self, experiment: Experiment) -> Any:
        """Return the leaf that the parameter picks, after checking it and the leaves tied to it.

        **Errors:** `ValueError` unless all are arrays of real numbers of the same shape.
        """
        leaf = self._pick_leaf(self.where, experiment)
        for where in self.tied:
            other = self._pick_leaf(where, experiment)
            if other.shape != leaf.shape:
                raise ValueError(
                    f"`Parameter({self.name!r}, tied=...)` must pick leaves of the same shape, "
                    f"{leaf.shape}; got {other.shape}."
                )
        return leaf

    def _pick_leaf(self, where: Callable[[Experiment], Any], experiment: Experiment) -> Any:
        try:
            leaf = where(experiment)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise ValueError(
                f"`Parameter({self.name!r}, where=...)` finds nothing in this experiment: {error}."
            ) from error
        if not eqx.is_inexact_array(leaf):
            raise ValueError(
                f"`Parameter({self.name!r}, where=...)` must pick one array of real numbers; got "
                f"{type(leaf).__name__}."
            )
        return leaf


def replace_leaves(
    parameters: Sequence[Parameter], experiment: Experiment, leaves: Sequence[Any]
) -> Experiment:
    """Return the experiment with new leaves for those that the parameters pick."""
    if not parameters:
        return experiment
    pairs = [
        (where, leaf)
        for p, leaf in zip(parameters, leaves, strict=True)
        for where in (p.where, *p.tied)
    ]
    return eqx.tree_at(
        lambda e: [where(e) for where, _ in pairs], experiment, [leaf for _, leaf in pairs]
    )


def leaves_from_coordinates(
    parameters: Sequence[Parameter], references: Sequence[Array], u: Float[Array, " k"]
) -> list[Array]:
    """Return the leaves for a vector of coordinates of all parameters.

    **Arguments:** `references`, the leaves at the start of the fit; see `AbstractTransform`.
    """
    leaves = []
    for p, reference in zip(parameters, references, strict=True):
        count = len(p.transform.fitted(reference.shape))
        leaves.append(p.transform.leaf(u[:count], reference))
        u = u[count:]
    return leaves


def _start_value(parameter: Parameter, leaf: Any, *shapes: tuple[int, ...]) -> Any:
    """Return the `start` of a parameter in one of the given shapes, or `leaf` if it has none.

    **Errors:** `ValueError` for a start, or a prior, of another shape.
    """
    if parameter.prior is not None:
        parameter.prior.check_leaf(parameter.name, parameter.transform, leaf.shape)
    if parameter.start is None:
        return leaf
    if parameter.start.shape == () and (1,) in shapes:
        # Values of a joint with one coordinate, such as its friction, have the shape (1,).
        return parameter.start.reshape(1).astype(leaf.dtype)
    if parameter.start.shape not in shapes:
        raise ValueError(
            f"`Parameter({parameter.name!r}, start=...)` must have shape "
            f"{' or '.join(map(str, shapes))}; got {parameter.start.shape}."
        )
    return parameter.start.astype(leaf.dtype)


def insert_start_change(experiment: Experiment, parameters: Sequence[Parameter]) -> Experiment:
    """Return the experiment with a zero change of its start, if a parameter is a start state."""
    selectors = tuple(p.where for p in parameters if isinstance(p.where, StartSelector))
    if not selectors:
        return experiment
    change = zero_change(experiment.model, selectors, experiment.state0.position.dtype)
    return eqx.tree_at(lambda e: e.start, experiment, change, is_leaf=lambda x: x is None)


def insert_reference(experiment: Experiment, parameters: Sequence[Parameter]) -> Experiment:
    """Return the experiment with its model as `reference`, if parameters change the geometry."""
    if not picks_geometry(experiment, [w for p in parameters for w in (p.where, *p.tied)]):
        return experiment
    model = experiment.model
    return eqx.tree_at(lambda e: e.reference, experiment, model, is_leaf=lambda x: x is None)


def materialise_parameters(experiment: Experiment, parameters: Sequence[Parameter]) -> Experiment:
    """Return the experiment with arrays for picked leaves that are left out or plain numbers."""
    return materialise_leaves(experiment, [w for p in parameters for w in (p.where, *p.tied)])


def apply_starts(parameters: Sequence[Parameter], experiment: Experiment) -> Experiment:
    """Return the experiment of one run with the `start` of every parameter in it.

    **Errors:** `ValueError` for a start, or a prior, of another shape than the leaf; see also
    `check_leaves`.
    """
    experiment = insert_start_change(materialise_parameters(experiment, parameters), parameters)
    check_leaves(parameters, experiment)
    experiment = insert_reference(experiment, parameters)
    picked = [p.leaf(experiment) for p in parameters]
    leaves = [_start_value(p, leaf, leaf.shape) for p, leaf in zip(parameters, picked, strict=True)]
    return replace_leaves(parameters, experiment, leaves)


def admissible_start(
    parameter: Parameter, experiments: Sequence[Experiment], run_names: Sequence[str]
) -> tuple[np.ndarray, list[str]]:
    """Return the start value of a parameter, moved to the nearest admissible one.

    **Returns:** the leaf, with a leading run axis if `per_run`, and notes on changes.
    **Errors:** `ValueError` for a start of the wrong shape or out of bounds.
    """
    leaves = [np.asarray(parameter.leaf(experiment)) for experiment in experiments]
    shape = leaves[0].shape
    count = len(leaves) if parameter.per_run else 1
    parameter.component_labels(shape)
    value = _start_value(
        parameter, leaves[0], shape, *([(count, *shape)] if parameter.per_run else [])
    )
    if parameter.start is not None:
        leaves = list(np.broadcast_to(np.asarray(value), (count, *shape)))
    starts, notes = [], []
    for leaf, run in zip(leaves[:count], run_names, strict=False):
        label = f"{parameter.name} of run {run}" if parameter.per_run else parameter.name
        if not np.all(np.isfinite(leaf)):
            raise ValueError(f"The start of {label} must be finite numbers; got {leaf}.")
        try:
            start, note = parameter.transform.admissible(leaf)
        except ValueError as error:
            raise ValueError(f"The start of {label} cannot be used: {error}.") from error
        starts.append(start)
        notes += [f"{label}: {note}."] if note else []
    return (np.stack(starts) if parameter.per_run else starts[0]), notes


def check_leaves(parameters: Sequence[Parameter], experiment: Experiment) -> None:
    """Raise `ValueError` unless every parameter picks a different leaf, as it is stored."""
    _, marked = mark_leaves(experiment)
    picked = {}
    for p, where in ((q, where) for q in parameters for where in (q.where, *q.tied)):
        p.leaf(experiment)
        try:
            mark = where(marked)
        except (AttributeError, TypeError):
            mark = None
        if not isinstance(mark, LeafMark):
            raise ValueError(
                f"`Parameter({p.name!r}, where=...)` must pick an array as it is stored, not a "
                "part or a function of it. For a part use `which=` or `fixed=` of the "
                "transformation."
            )
        if mark in picked:
            raise ValueError(f"Parameters {picked[mark]!r} and {p.name!r} pick the same leaf.")
        picked[mark] = p.name


def describe_priors(parameters: Sequence[Parameter]) -> list[str]:
    """Return a note that names the parameters with a prior; no note if there is none."""
    descriptions = [f"{p.name} has {p.prior.text()}" for p in parameters if p.prior is not None]
    if not descriptions:
        return []
    return [
        f"{'; '.join(descriptions)}. Estimates, standard deviations and the verdict are those of "
        "data and priors together."
    ]


@dataclasses.dataclass(frozen=True)
class ComponentTable:
    """All components of several parameters, in their order.

    **Attributes:** `labels`, `units`; `groups`, for each component the index of its parameter;
    `sizes`, `Parameter.size`; `fitted`, whether the transformation leaves the component free;
    `values`, in physical units, empty if unknown.
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    groups: np.ndarray
    sizes: np.ndarray
    fitted: np.ndarray
    values: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def with_values(self, values: ArrayLike) -> "ComponentTable":
        """Return the table with these values."""
        return dataclasses.replace(self, values=np.asarray(values))

    @property
    def fitted_indices(self) -> np.ndarray:
        """Indices of the fitted components."""
        return np.flatnonzero(self.fitted)

    def subset(self, fitted_indices: np.ndarray) -> "ComponentTable":
        """Return the table of the components with these indices."""
        return ComponentTable(
            tuple(self.labels[k] for k in fitted_indices),
            tuple(self.units[k] for k in fitted_indices),
            self.groups[fitted_indices],
            self.sizes[fitted_indices],
            self.fitted[fitted_indices],
            self.values[fitted_indices] if self.values.size else self.values,
        )

    def check_labels(self) -> None:
        """Raise `ValueError` for labels that are not unique."""
        if repeated := find_duplicates(self.labels):
            raise ValueError(f"Parameters need different labels; got {repeated} more than once.")

    def magnitudes(self, starts: np.ndarray) -> np.ndarray:
        """Return the size of a large change of each component, (p,), zero where none is known.

        It is `sizes` where given, else the largest component of the same parameter, at its start or
        now. A parameter that starts at zero has no magnitude, since its present value may be
        round-off.
        """
        values, magnitudes = self.values, np.zeros(len(self.values))
        for group in np.unique(self.groups):
            in_group = self.groups == group
            if np.any(starts[in_group] != 0):
                magnitudes[in_group] = np.abs([values[in_group], starts[in_group]]).max()
        return np.where(self.sizes > 0, np.maximum(self.sizes, np.abs(values)), magnitudes)


def component_table(entries: Iterable[tuple[Parameter, tuple[int, ...], str]]) -> ComponentTable:
    """Return the table of the components of parameters.

    **Arguments:** `entries`, for each parameter the shape of its leaf and a suffix of its labels.
    """
    labels, units, groups, sizes, fitted = [], [], [], [], []
    for index, (p, shape, suffix) in enumerate(entries):
        names = p.component_labels(shape)
        labels += [name + suffix for name in names]
        units += p.component_units(len(names))
        groups += [index] * len(names)
        sizes += [p.size] * len(names)
        fitted_of_leaf = p.transform.fitted(shape)
        fitted += [i in fitted_of_leaf for i in range(len(names))]
    arrays = np.array(groups, int), np.array(sizes, float), np.array(fitted, bool)
    return ComponentTable(tuple(labels), tuple(units), *arrays)
