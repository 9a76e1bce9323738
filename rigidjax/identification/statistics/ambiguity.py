"""Undetermined combinations of parameters, and the determined ones that remain."""

import itertools
from collections.abc import Sequence

import numpy as np

from ...io.document import estimate_text, std_text
from ..experiment.parameters import ComponentTable
from .covariance import Spectrum

# Distance to an integer below which an exponent or a coefficient counts as this integer.
_NEAR_INTEGER = 1e-2
_NUMBERS = {1: "one", 2: "two", 3: "three"}


def undetermined_directions(spectrum: Spectrum) -> np.ndarray:
    """Return a sparse basis of undetermined directions, in units of `spectrum.scale`, (d, p)."""
    # Reduced row echelon form, because sparse combinations are interpretable. The pivots depend on
    # the subspace alone, not on its basis.
    remaining, pivots = spectrum.null.copy(), []
    for _ in range(remaining.shape[1]):
        sizes = np.sum(remaining**2, axis=1)
        pivots.append(int(np.argmax(sizes > (1 - 1e-6) * sizes.max())))
        along = remaining[pivots[-1]] / np.sqrt(sizes[pivots[-1]])
        remaining = remaining - np.outer(remaining @ along, along)
    basis = np.linalg.solve(spectrum.null[pivots].T, spectrum.null.T)
    return np.where(np.abs(basis) > 1e-3, basis, 0.0)


def has_significant_value(spectrum: Spectrum, table: ComponentTable) -> np.ndarray:
    """Return which values differ significantly from zero, (p,), so that changes can be relative."""
    return np.abs(table.values) > np.sqrt(spectrum.variance) * spectrum.scale


def relative_change(
    direction: np.ndarray, spectrum: Spectrum, table: ComponentTable, has_value: np.ndarray
) -> dict[str, float]:
    """Return a direction as changes by label, relative to the values, with a largest entry of one.

    Changes of components without a significant value are absolute; see `has_significant_value`.
    """
    change = direction * spectrum.scale
    relative = np.divide(change, table.values, out=np.zeros_like(change), where=has_value)
    largest = relative if relative.any() else change
    largest = largest[np.argmax(np.abs(largest))]
    change = np.where(has_value, relative, change) / largest
    return {table.labels[i]: float(change[i]) for i in np.flatnonzero(direction)}


def is_common_scale(direction: np.ndarray, change: dict[str, float], has_value: np.ndarray) -> bool:
    """Return whether a change multiplies several parameters by one factor."""
    factor = all(abs(x - 1) < _NEAR_INTEGER for x in change.values())
    return len(change) > 1 and factor and bool(has_value[direction != 0].all())


def describe_ambiguity(
    spectrum: Spectrum, table: ComponentTable
) -> tuple[list[dict[str, float]], list[str]]:
    """Return all undetermined changes by label, and sentences that describe them.

    **Arguments:** `spectrum` of the fitted components; `table` of the same components.
    """
    changes, messages = [], []
    rows, has_value = undetermined_directions(spectrum), has_significant_value(spectrum, table)
    for family_rows in _group_by_parameters(rows):
        family = [relative_change(rows[i], spectrum, table, has_value) for i in family_rows]
        changes += family
        messages += _describe_family(family, rows[family_rows], has_value, spectrum, table)
    return changes, messages


def join_names(names: Sequence[str]) -> str:
    """Join names as in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def _group_by_parameters(rows: np.ndarray) -> list[list[int]]:
    """Group directions that have parameters in common; return lists of row indices."""
    families: list[list[int]] = []
    for i, row in enumerate(rows):
        linked = [f for f in families if np.any(rows[f].any(axis=0) & (row != 0))]
        families = [f for f in families if f not in linked] + [[*itertools.chain(*linked), i]]
    return families


def _describe_family(
    family: list[dict[str, float]],
    rows: np.ndarray,
    has_value: np.ndarray,
    spectrum: Spectrum,
    table: ComponentTable,
) -> list[str]:
    used = np.flatnonzero(np.any(rows != 0, axis=0))
    if len(used) == 1:
        return [f"{table.labels[used[0]]} is not determined: it changes no prediction."]
    if len(family) == 1 and is_common_scale(rows[0], family[0], has_value):
        return _describe_ratios(used, spectrum, table)
    if len(used) - len(family) == 1:
        sentence = _describe_combination(used, rows, has_value, spectrum, table)
        if sentence:
            return [sentence]
    return [_describe_joint_change(change, has_value, table) for change in family]


def _describe_joint_change(
    change: dict[str, float], has_value: np.ndarray, table: ComponentTable
) -> str:
    parts = []
    for k, label in enumerate(table.labels):
        if label in change:
            percent = f"{change[label]:+.3g} %"
            absolute = f"{0.01 * change[label]:+.3g} {table.units[k]}".rstrip()
            parts.append(f"{label} by {percent if has_value[k] else absolute}")
    return (
        f"{join_names(list(change))} are not determined individually: changing them together "
        f"({', '.join(parts)}, to first order) changes no prediction."
    )


def _describe_ratios(used: np.ndarray, spectrum: Spectrum, table: ComponentTable) -> list[str]:
    """Return sentences on the ratios of parameters to one of them, with standard deviations."""
    # The reference is the last component of the same parameter as the first one.
    base = [i for i in used if table.groups[i] == table.groups[used[0]]][-1]
    parts = []
    for i in used:
        if i != base:
            exponents = np.zeros(len(table.values))
            exponents[i], exponents[base] = 1.0, -1.0
            parts.append(_describe_monomial(exponents, spectrum, table))
    names = join_names([table.labels[i] for i in used])
    return [
        f"The data determine only the ratios of {names}: multiplying all of them by one factor "
        "changes no prediction. Hold one of them fixed at a known value.",
        "Their ratios: " + ", ".join(parts) + ".",
    ]


def _describe_combination(
    used: np.ndarray,
    rows: np.ndarray,
    has_value: np.ndarray,
    spectrum: Spectrum,
    table: ComponentTable,
) -> str:
    """Return a sentence on the single determined combination if it has a simple form; else `""`."""
    # The direction orthogonal to all undetermined directions, in units of the scale.
    _, _, vectors = np.linalg.svd(rows[:, used])
    gradient = np.zeros(len(table.values))
    gradient[used] = vectors[-1] / spectrum.scale[used]
    count = len(rows)
    number = _NUMBERS.get(count, str(count))
    hold = f"{number} of them fixed at {'a known value' if count == 1 else 'known values'}"
    names = join_names([table.labels[i] for i in used])
    text = ""
    if len({table.units[i] for i in used}) == 1:
        signs = _small_integers(gradient, largest=1)
        if signs is not None:
            text = _describe_sum(signs, spectrum, table)
    exponents = (
        _small_integers(gradient * table.values, largest=3) if has_value[used].all() else None
    )
    if not text and exponents is not None:
        text = _describe_monomial(exponents, spectrum, table)
    if not text:
        return ""
    return (
        f"{names} are not determined individually, only one combination of them: {text}. "
        f"Hold {hold}."
    )


def _small_integers(coefficients: np.ndarray, largest: int) -> np.ndarray | None:
    """Scale coefficients to small integers, the first one positive; return `None` if impossible."""
    used = np.flatnonzero(coefficients)
    smallest = np.abs(coefficients[used]).min()
    scaled = coefficients / np.copysign(smallest, coefficients[used[0]])
    integers = np.round(scaled)
    close = np.abs(scaled - integers).max() < _NEAR_INTEGER and np.abs(integers).max() <= largest
    return integers if close else None


def _describe_sum(signs: np.ndarray, spectrum: Spectrum, table: ComponentTable) -> str:
    used = np.flatnonzero(signs)
    name = table.labels[used[0]] + "".join(
        f" {'+' if signs[i] > 0 else '-'} {table.labels[i]}" for i in used[1:]
    )
    value, unit = float(signs @ table.values), table.units[used[0]]
    std = spectrum.std_of(signs)
    known = f"{name} = {estimate_text(value, std)}{' ' * bool(unit)}{unit}"
    return f"{known} (standard deviation {std_text(std)})"


def _describe_monomial(exponents: np.ndarray, spectrum: Spectrum, table: ComponentTable) -> str:
    used = np.flatnonzero(exponents)
    value = float(np.prod(table.values[used] ** exponents[used]))
    gradient = np.zeros(len(table.values))
    gradient[used] = value * exponents[used] / table.values[used]
    std = spectrum.std_of(gradient)

    def factors(sign):
        indices = [i for i in used if sign * exponents[i] > 0]
        powers = [int(abs(exponents[i])) for i in indices]
        return [
            table.labels[i] + (f"^{n}" if n > 1 else "")
            for i, n in zip(indices, powers, strict=True)
        ]

    numerator, denominators = "*".join(factors(1)), factors(-1)
    denominator = "*".join(denominators)
    name = numerator + (
        "/" + (f"({denominator})" if len(denominators) > 1 else denominator) if denominators else ""
    )
    return f"{name} = {estimate_text(value, std)} (standard deviation {std_text(std)})"
