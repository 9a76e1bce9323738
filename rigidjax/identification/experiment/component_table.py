"""Table of the components of fitted parameters."""

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import ArrayLike

from ...checks import find_duplicates
from .parameters import Parameter


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
