"""What data do not determine: which parameters, together with which, and what is left of them."""

import itertools
from collections.abc import Sequence

import numpy as np

from ..parameters import Components
from .covariance import Spectrum
from .digits import estimate_text, std_text

# An exponent or a coefficient this close to a whole number is that number.
_WHOLE = 1e-2
_NUMBERS = {1: "one", 2: "two", 3: "three"}


def directions(spectrum: Spectrum) -> np.ndarray:
    """What is not determined, each change in units of `spectrum.scale` with few parts, (d, p)."""
    # Reduced row echelon form: sparse combinations are those with a meaning. The pivots depend on
    # the subspace alone, not on the basis that the decomposition happens to give.
    rest, pivots = spectrum.null.copy(), []
    for _ in range(rest.shape[1]):
        sizes = np.sum(rest**2, axis=1)
        pivots.append(int(np.argmax(sizes > (1 - 1e-6) * sizes.max())))
        along = rest[pivots[-1]] / np.sqrt(sizes[pivots[-1]])
        rest = rest - np.outer(rest @ along, along)
    basis = np.linalg.solve(spectrum.null[pivots].T, spectrum.null.T)
    return np.where(np.abs(basis) > 1e-3, basis, 0.0)


def seen(spectrum: Spectrum, of: Components) -> np.ndarray:
    """Which values are more than zero as far as the data tell, (p,): changes can relate to them."""
    return np.abs(of.values) > np.sqrt(spectrum.variance) * spectrum.scale


def change_of(
    direction: np.ndarray, spectrum: Spectrum, of: Components, has_value: np.ndarray
) -> dict[str, float]:
    """A direction as changes by label: relative to the value, the largest being one.

    Absolute where a component does not have a value, see `seen`.
    """
    change = direction * spectrum.scale
    relative = np.divide(change, of.values, out=np.zeros_like(change), where=has_value)
    largest = relative if relative.any() else change
    largest = largest[np.argmax(np.abs(largest))]
    change = np.where(has_value, relative, change) / largest
    return {of.labels[i]: float(change[i]) for i in np.flatnonzero(direction)}


def is_common_scale(direction: np.ndarray, change: dict[str, float], has_value: np.ndarray) -> bool:
    """Whether a change multiplies several parameters by one factor."""
    factor = all(abs(x - 1) < _WHOLE for x in change.values())
    return len(change) > 1 and factor and bool(has_value[direction != 0].all())


def describe(spectrum: Spectrum, of: Components) -> tuple[list[dict[str, float]], list[str]]:
    """All that is not determined, as changes by label and in words.

    **Arguments:** `spectrum` of the fitted components, which `of` describes.
    """
    changes, messages = [], []
    rows, has_value = directions(spectrum), seen(spectrum, of)
    for members in _families(rows):
        family = [change_of(rows[i], spectrum, of, has_value) for i in members]
        changes += family
        messages += _text(family, rows[members], has_value, spectrum, of)
    return changes, messages


def listed(names: Sequence[str]) -> str:
    """Names as in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def _families(rows):
    """Directions that have parameters in common, as lists of row numbers."""
    families: list[list[int]] = []
    for i, row in enumerate(rows):
        linked = [f for f in families if np.any(rows[f].any(axis=0) & (row != 0))]
        families = [f for f in families if f not in linked] + [[*itertools.chain(*linked), i]]
    return families


def _text(family, rows, has_value, spectrum, of):
    used = np.flatnonzero(np.any(rows != 0, axis=0))
    if len(used) == 1:
        return [f"{of.labels[used[0]]} is not determined: it changes no prediction."]
    if len(family) == 1 and is_common_scale(rows[0], family[0], has_value):
        return _ratios_text(used, spectrum, of)
    if len(used) - len(family) == 1:
        sentence = _combination_text(used, rows, has_value, spectrum, of)
        if sentence:
            return [sentence]
    return [_together_text(change, has_value, of) for change in family]


def _together_text(change, has_value, of):
    parts = []
    for k, label in enumerate(of.labels):
        if label in change:
            percent = f"{change[label]:+.3g} %"
            absolute = f"{0.01 * change[label]:+.3g} {of.units[k]}".rstrip()
            parts.append(f"{label} by {percent if has_value[k] else absolute}")
    return (
        f"{listed(list(change))} are not determined each: changing them together "
        f"({', '.join(parts)}, to first order) changes no prediction."
    )


def _ratios_text(used, spectrum, of):
    """The ratios of parameters to one of them, with their standard deviations."""
    # Related to the last of the same parameter as the first: moments to a moment.
    base = [i for i in used if of.groups[i] == of.groups[used[0]]][-1]
    parts = []
    for i in used:
        if i != base:
            exponents = np.zeros(len(of.values))
            exponents[i], exponents[base] = 1.0, -1.0
            parts.append(_monomial_text(exponents, spectrum, of))
    names = listed([of.labels[i] for i in used])
    return [
        f"The data determine only the ratios of {names}: multiplying all of them by one factor "
        "changes no prediction. Hold one of them fixed at a known value.",
        "Their ratios: " + ", ".join(parts) + ".",
    ]


def _combination_text(used, rows, has_value, spectrum, of):
    """The one combination that is left, if it has a name; else `""`."""
    # In units of the scale, what is orthogonal to all directions.
    _, _, vectors = np.linalg.svd(rows[:, used])
    gradient = np.zeros(len(of.values))
    gradient[used] = vectors[-1] / spectrum.scale[used]
    count = len(rows)
    number = _NUMBERS.get(count, str(count))
    hold = f"{number} of them fixed at {'a known value' if count == 1 else 'known values'}"
    names = listed([of.labels[i] for i in used])
    text = ""
    if len({of.units[i] for i in used}) == 1:
        signs = _whole(gradient, largest=1)
        if signs is not None:
            text = _sum_text(signs, spectrum, of)
    exponents = _whole(gradient * of.values, largest=3) if has_value[used].all() else None
    if not text and exponents is not None:
        text = _monomial_text(exponents, spectrum, of)
    if not text:
        return ""
    return f"{names} are not determined each, only one combination of them: {text}. Hold {hold}."


def _whole(coefficients, largest):
    """The coefficients as small whole numbers, the first being positive, or `None`."""
    used = np.flatnonzero(coefficients)
    smallest = np.abs(coefficients[used]).min()
    scaled = coefficients / np.copysign(smallest, coefficients[used[0]])
    whole = np.round(scaled)
    close = np.abs(scaled - whole).max() < _WHOLE and np.abs(whole).max() <= largest
    return whole if close else None


def _sum_text(signs, spectrum, of):
    used = np.flatnonzero(signs)
    name = of.labels[used[0]] + "".join(
        f" {'+' if signs[i] > 0 else '-'} {of.labels[i]}" for i in used[1:]
    )
    value, unit = float(signs @ of.values), of.units[used[0]]
    std = spectrum.std_of(signs)
    known = f"{name} = {estimate_text(value, std)}{' ' * bool(unit)}{unit}"
    return f"{known} (standard deviation {std_text(std)})"


def _monomial_text(exponents, spectrum, of):
    used = np.flatnonzero(exponents)
    value = float(np.prod(of.values[used] ** exponents[used]))
    gradient = np.zeros(len(of.values))
    gradient[used] = value * exponents[used] / of.values[used]
    std = spectrum.std_of(gradient)

    def factors(sign):
        chosen = [i for i in used if sign * exponents[i] > 0]
        powers = [int(abs(exponents[i])) for i in chosen]
        return [
            of.labels[i] + (f"^{n}" if n > 1 else "") for i, n in zip(chosen, powers, strict=True)
        ]

    over, under = "*".join(factors(1)), factors(-1)
    below = "*".join(under)
    name = over + ("/" + (f"({below})" if len(under) > 1 else below) if under else "")
    return f"{name} = {estimate_text(value, std)} (standard deviation {std_text(std)})"
