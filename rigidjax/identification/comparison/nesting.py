"""Whether a model is a special case of another one, and which parameters it puts on bounds."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..fit.evaluation import evaluate_plain
from ..fit.optimum import Optimum
from ..fit.problem import FitProblem
from ..fit.result import Fit
from ..left_out import materialise_leaves
from ..parameters import Experiment, Parameter
from ..start_change import StartSelector
from ..transforms.elementwise import AbstractElementwise

# Largest difference of the predictions of all samples together, in standard deviations of the
# noise, of a model and of the larger model that takes its values.
_SAME = 1e-2


class Nesting(NamedTuple):
    """A model that is a special case of a larger one.

    **Attributes:** `extra`, labels of the additional parameters; `sides`, for each of them -1 if
    the special case has it on its lower bound, 1 on its upper bound, else 0.
    """

    extra: tuple[str, ...]
    sides: np.ndarray


def find_nesting(small: Fit, large: Fit) -> Nesting | None:
    """Return how the smaller model is nested in the larger one, `None` if it is not.

    It is nested if all of its parameters are among those of the larger model, and the larger model
    makes the same predictions if it takes all values from the smaller one. A leaf that the smaller
    model does not have counts as zero.
    """
    if not set(small.labels) < set(large.labels):
        return None
    problem, names = large.optimum.problem, large.run_names
    leaves, sides = [], []
    for p, start in zip(problem.parameters, large.optimum.minimum.leaves, strict=True):
        values = _values_in(small, p, start)
        if values is None or values.shape != start.shape:
            return None
        admissible, leaf_sides = zip(*(_place(p, x, start[0]) for x in values), strict=True)
        leaves.append(jnp.stack(admissible))
        sides.append(np.stack(leaf_sides))
    problem = problem.with_starts(leaves)
    residuals = evaluate_plain(problem, *problem.start_coordinates()).residuals
    if not _same_predictions(small.optimum, large.optimum, residuals):
        return None
    table = problem.component_table(names)
    labels = table.subset(table.fitted_indices).labels
    all_sides = dict(zip(labels, _join(problem, sides), strict=True))
    extra = tuple(label for label in large.labels if label not in small.labels)
    return Nesting(extra, np.array([all_sides[label] for label in extra]))


def _values_in(fit: Fit, parameter: Parameter, like: Array) -> np.ndarray | None:
    """Return the values (B, ...) of a parameter's leaf in every run of a fit of another model."""
    problem = fit.optimum.problem
    for p, leaf in zip(problem.parameters, fit.optimum.minimum.leaves, strict=True):
        if p.name == parameter.name:
            return np.asarray(leaf)
    if isinstance(parameter.where, StartSelector):
        return np.zeros(like.shape, like.dtype)
    values = []
    for b, (model, sensors) in enumerate(zip(fit.models, fit.sensors_by_run, strict=True)):
        experiment = Experiment(model, fit.states[b], sensors)
        try:
            experiment = materialise_leaves(experiment, [parameter.where])
            values.append(np.asarray(parameter.leaf(experiment), like.dtype))
        except ValueError:
            values.append(np.zeros(like.shape[1:], like.dtype))
    return np.stack(values)


def _place(parameter: Parameter, value: np.ndarray, reference: Array) -> tuple[Array, np.ndarray]:
    """Return the nearest leaf that the transformation admits, and its coordinates on limits."""
    transform = parameter.transform
    lower, upper, _ = transform.limits(reference)
    u = transform.coordinates(jnp.asarray(value))
    sides = (u >= upper).astype(int) - (u <= lower).astype(int)
    try:
        leaf, _ = transform.admissible(value)
    except ValueError:
        leaf = transform.leaf(jnp.clip(u, lower, upper), reference)
    return jnp.asarray(leaf), np.asarray(sides)


def _join(problem: FitProblem, sides: list[np.ndarray]) -> np.ndarray:
    """Return (B, k) arrays of all parameters in the order of the fitted components."""
    count = len(problem.shared)
    per_run = (s[b] for b in range(problem.num_runs) for s in sides[count:])
    return np.concatenate([*(s[0] for s in sides[:count]), *per_run])


def _same_predictions(small: Optimum, large: Optimum, residuals: Array) -> bool:
    minimum = small.minimum
    small_residuals = minimum.last.residuals
    if small.problem.runs.whitening:
        plain = evaluate_plain(small.problem, minimum.shared, minimum.per_run)
        small_residuals = plain.residuals
    pairs = zip(
        small.runs.by_sensor(small_residuals),
        large.runs.by_sensor(residuals),
        strict=True,
    )
    squares = 0.0
    for (_, weights, r), (_, large_weights, large_r) in pairs:
        used = weights > 0
        difference = r[used] / weights[used] - large_r[used] / large_weights[used]
        squares += float(np.sum((weights[used] * difference) ** 2))
    return squares < _SAME**2


def is_elementwise(fit: Fit, labels: tuple[str, ...]) -> bool:
    """Return whether components with these labels have coordinates of their own."""
    return all(
        isinstance(fit.optimum.parameter_of(label).transform, AbstractElementwise)
        for label in labels
    )
