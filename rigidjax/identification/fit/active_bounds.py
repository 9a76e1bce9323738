"""Bounds that are active at the estimates."""

import dataclasses

import numpy as np

from ..component_table import ComponentTable
from ..statistics.covariance import Spectrum
from ..statistics.digits import interval_text, std_text
from .least_squares import Minimum
from .problem import FitProblem


@dataclasses.dataclass(frozen=True)
class ActiveBound:
    """A bound on which the optimum lies; without it the sum of squares would decrease further.

    **Attributes:** `quantity`, the bounded quantity: the label of a parameter, or a combination of
    parameters such as a principal Euler value, which is zero for a flat body; `label` of the
    parameter, `None` for a combination; `parameters`, labels of all parameters in it; `limit`, the
    bound; `is_lower`, whether it is a lower bound; `std`, standard deviation of the quantity in the
    linearisation without the bound; `unit`.
    """

    quantity: str
    label: str | None
    parameters: tuple[str, ...]
    limit: float
    is_lower: bool
    std: float
    unit: str

    def interval(self, factor: float) -> tuple[float, float]:
        """Return the one-sided interval from the limit to `factor` standard deviations inside."""
        if self.is_lower:
            return self.limit, self.limit + factor * self.std
        return self.limit - factor * self.std, self.limit

    def text(self, factor: float, level: float) -> str:
        """Return the bound in words, with the one-sided interval at a confidence level."""
        unit = f" {self.unit}" if self.unit else ""
        flat = " (a flat body)" if self.label is None else ""
        interval = interval_text(self.interval(factor))
        if np.isfinite(self.std):
            interval = f"{interval}{unit}"
        return (
            f"{self.quantity} is at its {'lower' if self.is_lower else 'upper'} bound, "
            f"{self.limit:.6g}{unit}{flat}: the data alone would have it "
            f"{'less' if self.is_lower else 'greater'}. Its {100 * level:g} % interval is "
            f"one-sided, {interval} (standard deviation without the bound {std_text(self.std)})."
        )


def find_active_bounds(
    problem: FitProblem,
    minimum: Minimum,
    table: ComponentTable,
    names: tuple[str, ...],
    spectrum: Spectrum,
) -> tuple[ActiveBound, ...]:
    """Return the bounds that are active at a minimum.

    **Arguments:** `problem`, `minimum`; `table` of all components; `names` of the runs; `spectrum`
    of the fitted components.
    """
    sides = np.asarray(minimum.sides)
    if not sides.any():
        return ()
    bounds, first_component, first_coordinate = [], 0, 0
    leaves = [np.asarray(leaf) for leaf in minimum.leaves]
    count = len(problem.shared)
    shared_entries = [(p, leaf[0], "") for p, leaf in zip(problem.parameters, leaves, strict=True)][
        :count
    ]
    run_entries = [
        (p, leaf[b], f" of run {name}")
        for b, name in enumerate(names)
        for p, leaf in list(zip(problem.parameters, leaves, strict=True))[count:]
    ]
    for p, leaf, suffix in (*shared_entries, *run_entries):
        size, width = len(p.transform.fitted(leaf.shape)), len(p.component_labels(leaf.shape))
        leaf_sides = sides[first_coordinate : first_coordinate + size]
        for active in p.transform.active_limits(leaf, leaf_sides) if leaf_sides.any() else ():
            combination = np.zeros(len(table.labels))
            combination[first_component : first_component + width] = active.combination
            components = np.flatnonzero(combination * table.fitted)
            is_component = not active.quantity
            bounds.append(
                ActiveBound(
                    quantity=table.labels[components[0]]
                    if is_component
                    else f"The {active.quantity} of {p.name}{suffix}",
                    label=table.labels[components[0]] if is_component else None,
                    parameters=tuple(table.labels[k] for k in components),
                    limit=active.limit,
                    is_lower=active.is_lower,
                    std=spectrum.std_of(combination[table.fitted_indices]),
                    unit=table.units[components[0]],
                )
            )
        first_component, first_coordinate = first_component + width, first_coordinate + size
    return tuple(bounds)
