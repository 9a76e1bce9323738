"""Which leaves of an experiment are fitted, and in which coordinates."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from ..checks import find_duplicates, float_array
from ..formulations import AbstractFormulation
from ..sensors import AbstractSensor
from ..state import State
from .left_out import LeafMark, with_zeros
from .priors import AbstractPrior
from .start_change import StartChange, StartOf
from .start_geometry import moves_start, state_at_joints
from .transforms import AbstractTransform, Free


class Experiment(eqx.Module):
    """One run as it is simulated: everything in which there can be parameters.

    **Attributes:** `model`, a formulation; `state0`, the state at the first sample; `sensors`, in
    the order of the measurements; `start`, a change of `state0`, there if `start_state` is fitted;
    `reference`, the model whose joints allow `state0`, there if their geometry is fitted: the start
    has the joint coordinates of `state0`, whatever the geometry.
    """

    model: AbstractFormulation
    state0: State
    sensors: tuple[AbstractSensor, ...]
    start: StartChange | None = None
    reference: AbstractFormulation | None = None

    def started(self, t: Float[Array, ""]) -> tuple[State, Bool[Array, ""]]:
        """The state at the first sample, changed as `start` says, and whether that succeeded."""
        state, okay = self.state0, jnp.array(True)
        if self.reference is not None:
            state, okay = state_at_joints(self.reference, self.model, state, t)
        if self.start is None:
            return state, okay
        state, closed = self.start.applied(self.model, state, t)
        return state, okay & closed


class Parameter(eqx.Module):
    """A leaf of an `Experiment` that is fitted.

    **Arguments:**

    - `name`, for reports.
    - `where(experiment)`, picks the leaf: `lambda e: e.model.system.inertia`,
      `lambda e: e.state0.angular_velocity`; also one that was left out because it is zero, such as
      the damping of a joint. Use the same function object for fits that are to
      share their compiled code.
    - `transform`, its coordinates: `Free()`, `Positive()`, `Bounded(a, b)`, `PrincipalInertia()`,
      `InertiaTensor()`, `Orientation()`; each can hold a part of the leaf fixed.
    - `tied`, functions that pick other leaves of the same shape, which take the same value: two
      equal springs, both wheels.
    - `per_run`, whether every run has its own.
    - `start`, start value, in the shape of the leaf, or with the runs in front; what the model
      holds if left out.
    - `unit`, for reports, one for all components or one for each; `labels`, names of the components
      in place of the name with an index.
    - `size` of a large change of a component, in its unit, where the values themselves do not tell
      (zero is not a small angle): what "hardly determined" and the scores of experiments relate to.
    - `prior`, what is known of it besides the data: `LogDetPrior` of an inertia, `GaussianPrior`.

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
        name: str,
        where: Callable[[Experiment], Any],
        transform: AbstractTransform | None = None,
        *,
        tied: Sequence[Callable[[Experiment], Any]] = (),
        per_run: bool = False,
        start: ArrayLike | None = None,
        unit: str | Sequence[str] = "",
        labels: Sequence[str] | None = None,
        size: float = 0.0,
        prior: AbstractPrior | None = None,
    ):
        if not isinstance(name, str) or not name:
            raise TypeError(f"`Parameter(name=...)` must be a non-empty string; got {name!r}.")
        if not callable(where):
            raise TypeError(
                f"`Parameter({name!r}, where=...)` must be a function of an `Experiment`, such as "
                f"`lambda e: e.model.system.inertia`; got {where!r}."
            )
        if callable(tied) or not all(map(callable, tied)):
            raise TypeError(
                f"`Parameter({name!r}, tied=...)` must be a list of functions of an `Experiment`; "
                f"got {tied!r}."
            )
        transform = Free() if transform is None else transform
        if not isinstance(transform, AbstractTransform):
            raise TypeError(
                f"`Parameter({name!r}, transform=...)` must be a transformation such as "
                f"`rj.identification.Positive()`; got {transform!r}."
            )
        self.name = name
        self.where = where
        self.tied = tuple(tied)
        self.transform = transform
        self.per_run = per_run
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
            prior.check(name, transform)
        self.prior = prior

    def component_labels(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Labels of all components of a leaf of this shape."""
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
        """Units of all components, so many of them."""
        if isinstance(self.unit, str):
            return (self.unit,) * count
        if len(self.unit) != count:
            raise ValueError(
                f"`Parameter({self.name!r}, unit=...)` must be one unit or {count}, one for each "
                f"component; got {self.unit}."
            )
        return self.unit

    def leaf(self, experiment: Experiment) -> Any:
        """The leaf of an experiment, checked to be one array of real numbers, and those tied to it.

        **Errors:** `ValueError` for another kind of leaf, or tied ones of another shape.
        """
        leaf = self._picked(self.where, experiment)
        for where in self.tied:
            other = self._picked(where, experiment)
            if other.shape != leaf.shape:
                raise ValueError(
                    f"`Parameter({self.name!r}, tied=...)` must pick leaves of the same shape, "
                    f"{leaf.shape}; got {other.shape}."
                )
        return leaf

    def _picked(self, where: Callable[[Experiment], Any], experiment: Experiment) -> Any:
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


@dataclasses.dataclass(frozen=True)
class Components:
    """All components of some parameters, in their order.

    **Attributes:** `labels`, `units`; `groups`, components of one parameter have one number;
    `sizes`, `Parameter.size`; `fitted`, those that a transformation does not hold fixed; `values`,
    in physical units, where they are known.
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    groups: np.ndarray
    sizes: np.ndarray
    fitted: np.ndarray
    values: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def at(self, values: ArrayLike) -> "Components":
        """These with their values."""
        return dataclasses.replace(self, values=np.asarray(values))

    @property
    def chosen(self) -> np.ndarray:
        """Numbers of the fitted ones."""
        return np.flatnonzero(self.fitted)

    def part(self, chosen: np.ndarray) -> "Components":
        """Those with these numbers."""
        return Components(
            tuple(self.labels[k] for k in chosen),
            tuple(self.units[k] for k in chosen),
            self.groups[chosen],
            self.sizes[chosen],
            self.fitted[chosen],
            self.values[chosen] if self.values.size else self.values,
        )

    def check_labels(self) -> None:
        """Raise `ValueError` for labels that are not unique."""
        if twice := find_duplicates(self.labels):
            raise ValueError(f"Parameters need different labels; got {twice} more than once.")

    def reach(self, starts: np.ndarray) -> np.ndarray:
        """How far each component may change, (p,): zero where nothing tells.

        What `sizes` says, else the largest component of the same parameter, at its start or now. A
        parameter that starts at zero tells nothing: where it has come to may be round-off.
        """
        values, reach = self.values, np.zeros(len(self.values))
        for group in np.unique(self.groups):
            members = self.groups == group
            if np.any(starts[members] != 0):
                reach[members] = np.abs([values[members], starts[members]]).max()
        return np.where(self.sizes > 0, np.maximum(self.sizes, np.abs(values)), reach)


def components_of(entries: Iterable[tuple[Parameter, tuple[int, ...], str]]) -> Components:
    """Components of parameters, each with the shape of its leaf and what is put behind labels."""
    labels, units, groups, sizes, fitted = [], [], [], [], []
    for number, (p, shape, suffix) in enumerate(entries):
        names = p.component_labels(shape)
        labels += [name + suffix for name in names]
        units += p.component_units(len(names))
        groups += [number] * len(names)
        sizes += [p.size] * len(names)
        of_leaf = p.transform.fitted(shape)
        fitted += [i in of_leaf for i in range(len(names))]
    numbers, large, chosen = np.array(groups, int), np.array(sizes, float), np.array(fitted, bool)
    return Components(tuple(labels), tuple(units), numbers, large, chosen)


def with_leaves(
    parameters: Sequence[Parameter], experiment: Experiment, leaves: Sequence[Any]
) -> Experiment:
    """The experiment with these leaves in place of those that the parameters pick."""
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


def leaves_at(
    parameters: Sequence[Parameter], references: Sequence[Array], u: Float[Array, " k"]
) -> list[Array]:
    """The leaves at these coordinates of all parameters, one after the other.

    **Arguments:** `references`, the leaves at the start; see `AbstractTransform`.
    """
    leaves = []
    for p, reference in zip(parameters, references, strict=True):
        count = len(p.transform.fitted(reference.shape))
        leaves.append(p.transform.leaf(u[:count], reference))
        u = u[count:]
    return leaves


def _given(parameter: Parameter, leaf: Any, *shapes: tuple[int, ...]) -> Any:
    """What a parameter starts from: its `start`, in one of these shapes, or the leaf.

    **Errors:** `ValueError` for a start, or a prior, of another shape.
    """
    if parameter.prior is not None:
        parameter.prior.check_leaf(parameter.name, parameter.transform, leaf.shape)
    if parameter.start is None:
        return leaf
    if parameter.start.shape not in shapes:
        raise ValueError(
            f"`Parameter({parameter.name!r}, start=...)` must have shape "
            f"{' or '.join(map(str, shapes))}; got {parameter.start.shape}."
        )
    return parameter.start.astype(leaf.dtype)


def with_start(experiment: Experiment, parameters: Sequence[Parameter]) -> Experiment:
    """The experiment with a change of its start in it, zero, if a parameter is one."""
    specs = [p.where for p in parameters if isinstance(p.where, StartOf)]
    if not specs:
        return experiment
    change = specs[0].zero(experiment.model, experiment.state0.position.dtype)
    return eqx.tree_at(lambda e: e.start, experiment, change, is_leaf=lambda x: x is None)


def with_reference(experiment: Experiment, parameters: Sequence[Parameter]) -> Experiment:
    """The experiment with its model as the reference of the start, if geometry is fitted."""
    if not moves_start(experiment, [w for p in parameters for w in (p.where, *p.tied)]):
        return experiment
    model = experiment.model
    return eqx.tree_at(lambda e: e.reference, experiment, model, is_leaf=lambda x: x is None)


def completed(experiment: Experiment, parameters: Sequence[Parameter]) -> Experiment:
    """The experiment with arrays where parameters pick zeros that were left out, or numbers."""
    return with_zeros(experiment, [w for p in parameters for w in (p.where, *p.tied)])


def started(parameters: Sequence[Parameter], experiment: Experiment) -> Experiment:
    """The experiment of one run with the `start` of every parameter in it.

    **Errors:** `ValueError` for a start, or a prior, of another shape than the leaf, and as
    `check_leaves`.
    """
    experiment = with_start(completed(experiment, parameters), parameters)
    check_leaves(parameters, experiment)
    experiment = with_reference(experiment, parameters)
    picked = [p.leaf(experiment) for p in parameters]
    leaves = [_given(p, leaf, leaf.shape) for p, leaf in zip(parameters, picked, strict=True)]
    return with_leaves(parameters, experiment, leaves)


def start_leaf(
    parameter: Parameter, experiments: Sequence[Experiment], run_names: Sequence[str]
) -> tuple[np.ndarray, list[str]]:
    """Start value of a parameter, moved to where a fit can start; runs in front if `per_run`.

    **Returns:** the leaf and notes on what was moved.
    **Errors:** `ValueError` for a start of the wrong shape or out of bounds.
    """
    leaves = [np.asarray(parameter.leaf(experiment)) for experiment in experiments]
    shape = leaves[0].shape
    count = len(leaves) if parameter.per_run else 1
    parameter.component_labels(shape)
    given = _given(parameter, leaves[0], shape, *([(count, *shape)] if parameter.per_run else []))
    if parameter.start is not None:
        leaves = list(np.broadcast_to(np.asarray(given), (count, *shape)))
    found, notes = [], []
    for leaf, run in zip(leaves[:count], run_names, strict=False):
        which = f"{parameter.name} of run {run}" if parameter.per_run else parameter.name
        if not np.all(np.isfinite(leaf)):
            raise ValueError(f"The start of {which} must be finite numbers; got {leaf}.")
        try:
            moved, note = parameter.transform.admissible(leaf)
        except ValueError as error:
            raise ValueError(f"The start of {which} cannot be used: {error}.") from error
        found.append(moved)
        notes += [f"{which}: {note}."] if note else []
    return (np.stack(found) if parameter.per_run else found[0]), notes


def check_leaves(parameters: Sequence[Parameter], experiment: Experiment) -> None:
    """Raise `ValueError` unless every parameter picks a leaf of its own, as it is stored."""
    numbers = itertools.count()
    marked = jax.tree.map(lambda _: LeafMark(next(numbers)), experiment)
    picked = {}
    for p, where in ((each, where) for each in parameters for where in (each.where, *each.tied)):
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
