"""What the data determine, sharply or not at all, in words."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from .covariance import Spectrum
from .undetermined import (
    Components,
    describe,
    directions,
    is_common_scale,
    listed,
    relative_change,
)

# Parameters at least this correlated may have a combination that is much sharper than they are.
_CORRELATED = 0.9
# A combination is worth a sentence if its relative standard deviation gains this factor.
_SHARPER = 3.0
# A standard deviation above this part of the value is called "hardly determined".
_WEAK = 0.5


@dataclasses.dataclass(frozen=True)
class Combination:
    """A combination of parameters that is known better than they are."""

    label: str
    value: float
    std: float
    unit: str
    parts: tuple[str, ...]
    parts_std: tuple[float, ...]

    def __str__(self) -> str:
        each = " and ".join(
            f"{part} to {std:.2g}" for part, std in zip(self.parts, self.parts_std, strict=True)
        )
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.label} = {self.value:.5g}{unit} is sharp, known to {self.std:.2g}{unit}; "
            f"{each} are not."
        )


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """The verdict on a fit, from the Jacobian at its solution.

    **Attributes:**

    - `identifiable`: whether every fitted parameter is determined.
    - `rank` and `num_parameters`, of the Fisher information.
    - `condition`: of the weighted Jacobian in relative changes of the parameters; squared, that of
      the Fisher information.
    - `singular_values`: in the same scaling.
    - `undetermined`: relative changes of parameters, by label, that change no prediction.
    - `sharp`: combinations known better than the parameters in them.
    - `messages`: all of it in words.
    """

    identifiable: bool
    rank: int
    num_parameters: int
    condition: float
    singular_values: tuple[float, ...]
    undetermined: tuple[dict[str, float], ...]
    sharp: tuple[Combination, ...]
    messages: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.messages)


def judge(
    labels: Sequence[str],
    units: Sequence[str],
    groups: Sequence[int],
    fitted: np.ndarray,
    values: np.ndarray,
    jacobian: np.ndarray,
    variance: float,
    tolerance: float,
    sizes: np.ndarray,
) -> tuple[Spectrum, Identifiability]:
    """Judge a fit by the Jacobian with respect to all components, fitted or held fixed.

    **Arguments:** `labels`, `units`, `groups` (components of one parameter have one number),
    `fitted` and `values` of all components (K,); `jacobian` (M, K) of the weighted residuals;
    `variance` of a weighted residual; `tolerance`, singular values relative to the largest that
    count as zero; `sizes`, `Parameter.size` of all components.
    **Returns:** the spectrum of the fitted ones, and the verdict.
    """
    scale = parameter_scale(values, np.asarray(groups), sizes)
    chosen = [int(k) for k in np.flatnonzero(fitted)]
    every = Components(tuple(labels), tuple(units), values, tuple(groups))
    spectrum = Spectrum(jacobian[:, chosen], scale[chosen], tolerance)
    covariance = spectrum.covariance(variance)
    undetermined, messages = describe(spectrum, _part(every, chosen), variance)
    if not messages:
        messages = _held_texts(Spectrum(jacobian, scale, tolerance), every, fitted)
    std = np.sqrt(np.diag(covariance))
    for i, k in enumerate(chosen):
        if np.isfinite(std[i]) and std[i] > _WEAK * scale[k]:
            messages.append(
                f"{labels[k]} is hardly determined: {values[k]:.4g} with a standard deviation of "
                f"{std[i]:.2g}."
            )
    sharp = _sharp_combinations(labels, units, values, chosen, spectrum, variance)
    messages += [str(combination) for combination in sharp]
    if spectrum.rank == len(chosen):
        messages.insert(0, f"All {len(chosen)} fitted parameters are determined.")
    return spectrum, Identifiability(
        identifiable=spectrum.rank == len(chosen),
        rank=spectrum.rank,
        num_parameters=len(chosen),
        condition=spectrum.condition,
        singular_values=tuple(float(x) for x in spectrum.values),
        undetermined=tuple(undetermined),
        sharp=tuple(sharp),
        messages=tuple(messages),
    )


def parameter_scale(values: np.ndarray, groups: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Size of a large change of each component: the largest component of the same parameter.

    At least what `sizes` says.
    """
    scale = np.ones_like(values)
    for group in np.unique(groups):
        members = groups == group
        size = np.abs(values[members]).max()
        scale[members] = size if size > 0 else 1.0
    return np.where(sizes > 0, np.maximum(sizes, np.abs(values)), scale)


def _part(of, chosen):
    return Components(
        tuple(of.labels[k] for k in chosen),
        tuple(of.units[k] for k in chosen),
        of.values[chosen],
        tuple(of.groups[k] for k in chosen),
    )


def _held_texts(whole, of, fitted):
    """What would not be determined without the values that are held fixed."""
    held = {label for label, f in zip(of.labels, fitted, strict=True) if not f}
    idle, messages = [], []
    for row in directions(whole):
        change = relative_change(row, whole, of)
        if set(change) <= held:
            idle += [label for label in change if label not in idle]
        else:
            messages.append(_rests_on_text(change, [x for x in change if x in held]))
    if len(idle) == 1:
        messages.append(f"The value at which {idle[0]} is held fixed has no effect.")
    elif idle:
        idle = sorted(idle, key=of.labels.index)
        messages.append(f"The values at which {listed(idle)} are held fixed have no effect.")
    return messages


def _rests_on_text(change, held):
    fixed = listed(held)
    if is_common_scale(change):
        return (
            f"The data determine only the ratios of {listed(list(change))}: their common scale "
            f"rests on {fixed}, which is held fixed, and an error of it is not in the standard "
            "deviations."
        )
    fitted = listed([label for label in change if label not in held])
    return (
        f"{fitted}: without {fixed}, which is held fixed, not all of these would be determined; an "
        "error of it is not in the standard deviations."
    )


def _sharp_combinations(labels, units, values, chosen, spectrum, variance):
    found = []
    covariance = spectrum.covariance(variance)
    std = np.sqrt(np.diag(covariance))
    for a in range(len(chosen)):
        for b in range(a + 1, len(chosen)):
            i, j = chosen[a], chosen[b]
            if units[i] != units[j] or not np.isfinite(std[[a, b]]).all():
                continue
            if min(std[a], std[b]) == 0 or (abs(covariance[a, b]) < _CORRELATED * std[a] * std[b]):
                continue
            sign = -1.0 if covariance[a, b] > 0 else 1.0
            gradient = np.zeros(len(chosen))
            gradient[a], gradient[b] = 1.0, sign
            # Not from the covariance, where the difference of two large numbers would cancel.
            combined = spectrum.std_of(gradient, variance)
            if _SHARPER * combined > min(std[a], std[b]):
                continue
            found.append(
                Combination(
                    label=f"{labels[i]} {'-' if sign < 0 else '+'} {labels[j]}",
                    value=float(values[i] + sign * values[j]),
                    std=combined,
                    unit=units[i],
                    parts=(labels[i], labels[j]),
                    parts_std=(float(std[a]), float(std[b])),
                )
            )
    return found
