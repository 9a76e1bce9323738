"""Bounds that hold estimates."""

import dataclasses
from typing import Any

import numpy as np

from ..parameters import Components
from ..statistics.covariance import Spectrum
from ..statistics.digits import interval_text, std_text


@dataclasses.dataclass(frozen=True)
class ActiveBound:
    """A bound on which an optimum lies: without it, the sum of squares would fall further.

    **Attributes:** `quantity`, what is bounded: the label of a parameter, or a combination of
    parameters such as a principal Euler value, which is zero for a flat body; `label`, that of the
    parameter, `None` for a combination; `parameters`, labels of those that take part; `limit`, the
    bound; `is_lower`, whether it is the lower one; `std`, standard deviation of the quantity in the
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
        """The one-sided interval from the limit to `factor` standard deviations inside."""
        if self.is_lower:
            return self.limit, self.limit + factor * self.std
        return self.limit - factor * self.std, self.limit

    def text(self, factor: float, level: float) -> str:
        """The bound in words, with the interval at a level."""
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


def active_bounds(
    problem: Any, minimum: Any, table: Components, names: tuple[str, ...], spectrum: Spectrum
) -> tuple[ActiveBound, ...]:
    """The bounds that hold the estimates at a minimum.

    **Arguments:** `problem`, `minimum`; `table` of all components; `names` of the runs; `spectrum`
    of those that are fitted.
    """
    sides = np.asarray(minimum.sides)
    if not sides.any():
        return ()
    out, component, coordinate = [], 0, 0
    leaves = [np.asarray(leaf) for leaf in minimum.leaves]
    count = len(problem.shared)
    of_all = [(p, leaf[0], "") for p, leaf in zip(problem.parameters, leaves, strict=True)][:count]
    of_runs = [
        (p, leaf[b], f" of run {name}")
        for b, name in enumerate(names)
        for p, leaf in list(zip(problem.parameters, leaves, strict=True))[count:]
    ]
    for p, leaf, of_run in (*of_all, *of_runs):
        size, width = len(p.transform.fitted(leaf.shape)), len(p.component_labels(leaf.shape))
        own = sides[coordinate : coordinate + size]
        for active in p.transform.active_limits(leaf, own) if own.any() else ():
            whole = np.zeros(len(table.labels))
            whole[component : component + width] = active.combination
            part = np.flatnonzero(whole * table.fitted)
            single = not active.quantity
            out.append(
                ActiveBound(
                    quantity=table.labels[part[0]]
                    if single
                    else f"The {active.quantity} of {p.name}{of_run}",
                    label=table.labels[part[0]] if single else None,
                    parameters=tuple(table.labels[k] for k in part),
                    limit=active.limit,
                    is_lower=active.is_lower,
                    std=spectrum.std_of(whole[table.chosen]),
                    unit=table.units[part[0]],
                )
            )
        component, coordinate = component + width, coordinate + size
    return tuple(out)
