"""Fits with one component held at a value."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...persistent_jit import persistent_jit
from ..search.evaluation import Evaluation, PriorRows
from ..search.least_squares import Minimum, Search, minimise
from ..search.optimum import Optimum
from ..search.problem import FitProblem
from ..transforms.elementwise import AbstractElementwise

# Weight that holds the component, relative to the reciprocal of its standard deviation. The data
# move it by 1e-8 of a standard deviation, which the reported value includes.
_HOLD = 1e4


@dataclasses.dataclass(frozen=True)
class HeldComponent:
    """Fits of a problem with one component held.

    A fit starts from the solution at a neighbouring value, moved along the tangent of the curve of
    constrained optima.

    **Attributes:** `label`; `index` of the component among all components; `problem`, with the
    weight that holds it; `search`; `start`, the minimum without a constraint; `limits` of the
    component, infinite without bounds; `owner`, index of its parameter, `run` of a parameter per
    run (else 0), `element` of it in its leaf, `coordinate`, its index among all coordinates if it
    has one of its own.
    """

    label: str
    index: int
    problem: FitProblem
    search: Search
    start: Minimum
    limits: tuple[float, float]
    owner: int
    run: int
    element: int
    coordinate: int | None

    @classmethod
    def new(cls, optimum: Optimum, label: str, std: float) -> "HeldComponent":
        """Return the fits with the component of this label held, of standard deviation `std`."""
        problem, table, minimum = optimum.problem, optimum.table, optimum.minimum
        index = table.labels.index(label)
        parameter = optimum.parameter_of(label)
        owner = problem.parameters.index(parameter)
        size, width = np.asarray(minimum.last.shared).size, minimum.last.per_run.shape[1]
        weights = np.zeros(size), np.zeros(minimum.last.per_run.shape)
        run = 0
        if index < size:
            weights[0][index] = _HOLD / std
        else:
            run = (index - size) // width
            weights[1][run, (index - size) % width] = _HOLD / std
        element = index - int(np.flatnonzero(table.groups == table.groups[index])[0])
        leaf = minimum.leaves[owner][run]
        coordinate, limits = None, (-np.inf, np.inf)
        if isinstance(parameter.transform, AbstractElementwise):
            coordinate = int(np.flatnonzero(table.fitted_indices == index)[0])
            k = parameter.transform.fitted(leaf.shape).index(element)
            lower, upper, reach = parameter.transform.limits(leaf)
            ends = (
                float(parameter.transform.leaf(u, leaf).reshape(-1)[element])
                if np.isfinite(u[k])
                else side * np.inf
                for u, side in ((lower, -1.0), (upper, 1.0))
            )
            # A logarithm stops at a negligible value, which stands for zero.
            limits = (0.0 if np.isfinite(reach[k]) else next(ends), list(ends)[-1])
        return cls(
            label=label,
            index=index,
            problem=problem.with_hold(*weights),
            search=optimum.search.with_full_horizon(),
            start=minimum,
            limits=limits,
            owner=owner,
            run=run,
            element=element,
            coordinate=coordinate,
        )

    def value(self, minimum: Minimum) -> float:
        """Return the value of the component at a minimum."""
        return float(minimum.last.components[self.index])

    def cost(self, minimum: Minimum) -> float:
        """Return the sum of squares of data and priors, without the row that holds."""
        last = self._without_hold(minimum)
        return float(np.sum(last.residuals**2) + np.sum(last.prior.residuals**2))

    def slope(self, minimum: Minimum) -> float:
        """Return the derivative in the component of the root of the sum of squares, at an optimum.

        It is one over the standard deviation of the component, for residuals of unit variance.
        """
        return self._tangent(minimum)[1]

    def solve(self, last: Minimum, target: float) -> Minimum | None:
        """Return the constrained minimum near a value, from a neighbouring one; `None` if it fails.

        **Arguments:** `last`, the neighbouring minimum; `target`, the value of the component. For a
        component without a coordinate of its own the value is met to second order in the step.
        """
        change = target - self.value(last)
        size = last.shared.size
        x = np.concatenate([np.asarray(last.shared), np.asarray(last.per_run).reshape(-1)])
        step = self._tangent(last)[0] * change
        if self.coordinate is not None:
            step[self.coordinate] = self._coordinate_at(last, change) - x[self.coordinate]
        shared, per_run = jnp.split(jnp.asarray(x + step), [size])
        per_run = per_run.reshape(last.per_run.shape)
        problem = self.problem.with_starts(_leaves(self.problem, shared, per_run))
        minimum = minimise(problem, self.search)
        return minimum if bool(minimum.converged) else None

    def _tangent(self, minimum: Minimum) -> tuple[Float[np.ndarray, " U"], float]:
        """Return the change of the coordinates per change of the component, and `slope`.

        Among all changes with a unit change of the component it changes the residuals least.
        Coordinates on active bounds stay there. The change of a coordinate that belongs to the
        component alone is left out, as zero.
        """
        last = self._without_hold(minimum)
        rows, chain = last.component_jacobian_with_prior(), np.asarray(last.chain)
        free = np.asarray(minimum.sides) == 0
        step = np.zeros(free.size)
        if self.coordinate is not None:
            free[self.coordinate] = False
            across = rows @ chain[:, free]
            step[free] = -_least_squares(across, rows[:, self.index])
            return step, float(np.linalg.norm(rows[:, self.index] + across @ step[free]))
        along = rows @ chain[:, free]
        gradient = chain[self.index, free]
        size = np.linalg.norm(along, axis=0)
        size = np.where(size > 0, size, 1.0)
        inverse = np.linalg.pinv(along / size)
        direction = inverse @ inverse.T @ (gradient / size) / size
        step[free] = direction / (gradient @ direction)
        return step, float(np.linalg.norm(along @ step[free]))

    def _without_hold(self, minimum: Minimum) -> Evaluation:
        """Return the evaluation at a minimum without the rows that hold, the last of its priors."""
        last, free = minimum.last.prior, self.start.last.prior
        shared, per_run = free.shared.size, free.per_run.shape[1]
        prior = PriorRows(
            last.shared[:shared],
            last.shared_jacobian[:shared],
            last.per_run[:, :per_run],
            last.per_run_jacobian[:, :per_run],
        )
        return dataclasses.replace(minimum.last, prior=prior)

    def _coordinate_at(self, last: Minimum, change: float) -> float:
        """Return the coordinate of the component after a change of its value, within limits."""
        leaf = last.leaves[self.owner][self.run]
        transform = self.problem.parameters[self.owner].transform
        changed = leaf.reshape(-1).at[self.element].add(change).reshape(leaf.shape)
        k = transform.fitted(leaf.shape).index(self.element)
        lower, upper, _ = transform.limits(leaf)
        return float(jnp.clip(transform.coordinates(changed), lower, upper)[k])


def _least_squares(rows: Float[np.ndarray, "M U"], right: Float[np.ndarray, " M"]) -> np.ndarray:
    """Return the least-squares solution of a system with columns of any size."""
    size = np.linalg.norm(rows, axis=0)
    size = np.where(size > 0, size, 1.0)
    return np.linalg.lstsq(rows / size, right)[0] / size


@persistent_jit
def _leaves(
    problem: FitProblem, shared: Float[Array, " S"], per_run: Float[Array, "B P"]
) -> list[Array]:
    """Return the leaves at coordinates, clipped to their limits."""
    return problem.all_leaves(*problem.clip(shared, per_run))
