"""What the data determine, sharply or not at all, in words."""

import dataclasses
import itertools

import numpy as np

from ..parameters import ComponentTable
from .ambiguity import (
    describe_ambiguity,
    has_significant_value,
    is_common_scale,
    join_names,
    relative_change,
    undetermined_directions,
)
from .covariance import Spectrum
from .digits import estimate_text, std_text

# Parameters at least this correlated may have a combination that is much sharper than they are.
_CORRELATED = 0.9
# A combination is worth a sentence if its relative standard deviation gains this factor.
_SHARPER = 3.0
# A standard deviation above this part of the value is worth a sentence: the parameter is "hardly
# determined"; or zero within its error, if that is below the second part of what it started from.
_WEAK, _ZERO = 0.5, 0.1


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
            f"{part} to {std_text(std)}"
            for part, std in zip(self.parts, self.parts_std, strict=True)
        )
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.label} = {estimate_text(self.value, self.std)}{unit} is sharp, known to "
            f"{std_text(self.std)}{unit}; "
            f"{each} are not."
        )


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """The verdict on a fit, from the Jacobian at its solution.

    **Attributes:**

    - `identifiable`: whether every fitted parameter is determined.
    - `rank` and `num_parameters`, of the Fisher information.
    - `condition`: of the weighted Jacobian with columns of norm one, whatever the units and values
      of the parameters; squared, that of the Fisher information in this scaling.
    - `singular_values`: in the same scaling.
    - `undetermined`: changes of parameters, by label, that change no prediction: relative to the
      value, the largest being one; absolute where a parameter is zero as far as the data tell.
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
    table: ComponentTable,
    starts: np.ndarray,
    jacobian: np.ndarray,
    variance: float,
    tolerance: float,
) -> tuple[Spectrum, Identifiability]:
    """Judge a fit by the Jacobian with respect to all components, fitted or held fixed.

    **Arguments:** `table`, all components (K,) with their values; `starts`, their start values;
    `jacobian` (M, K) of the weighted residuals; `variance` of a weighted residual; `tolerance`,
    relative singular value that counts as zero.
    **Returns:** the spectrum of the fitted components, and the verdict.
    """
    magnitudes, chosen = table.magnitudes(starts), table.fitted_indices
    part = table.subset(chosen)
    # Columns of the triangular factor have the same norms and products, and are short.
    jacobian = np.asarray(np.linalg.qr(jacobian, mode="r"))
    spectrum = Spectrum(jacobian[:, chosen], tolerance, magnitudes[chosen], variance)
    undetermined, messages = describe_ambiguity(spectrum, part)
    if not messages:
        messages = _describe_held(Spectrum(jacobian, tolerance, magnitudes, variance), table)
    std = np.sqrt(np.diag(spectrum.covariance()))
    weak = _describe_weak(part, std, magnitudes[chosen])
    messages = [*messages, *weak] if undetermined else [*weak, *messages]
    sharp = _sharp_combinations(part, spectrum)
    messages += [str(combination) for combination in sharp]
    if spectrum.rank == len(chosen):
        # Behind what is hardly determined: the worst news comes first.
        messages.insert(len(weak), f"All {len(chosen)} fitted parameters are determined.")
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


def _describe_weak(table, std, magnitudes):
    """Parameters whose standard deviation is as large as they are."""
    largest = table.magnitudes(table.values)
    messages = []
    for label, value, deviation, size, possible in zip(
        table.labels, table.values, std, largest, magnitudes, strict=True
    ):
        if not (np.isfinite(deviation) and deviation > _WEAK * size):
            continue
        weak = 0 < _ZERO * possible < deviation
        messages.append(
            f"{label} {'is hardly determined' if weak else 'cannot be told from zero'}: "
            f"{estimate_text(value, deviation)} with a standard deviation of {std_text(deviation)}."
        )
    return messages


def _describe_held(spectrum, table):
    """What would not be determined without the values that are held fixed."""
    held = {label for label, f in zip(table.labels, table.fitted, strict=True) if not f}
    has_value = has_significant_value(spectrum, table)
    idle, messages = [], []
    for row in undetermined_directions(spectrum):
        change = relative_change(row, spectrum, table, has_value)
        if set(change) <= held:
            idle += [label for label in change if label not in idle]
        else:
            common = is_common_scale(row, change, has_value)
            messages.append(_describe_dependence(change, [x for x in change if x in held], common))
    if len(idle) == 1:
        messages.append(f"The value at which {idle[0]} is held fixed has no effect.")
    elif idle:
        idle = sorted(idle, key=table.labels.index)
        messages.append(f"The values at which {join_names(idle)} are held fixed have no effect.")
    return messages


def _describe_dependence(change, held, common):
    fixed = join_names(held)
    if common:
        return (
            f"The data determine only the ratios of {join_names(list(change))}: their common scale "
            f"rests on {fixed}, which is held fixed, and an error of it is not in the standard "
            "deviations."
        )
    fitted = join_names([label for label in change if label not in held])
    return (
        f"{fitted}: without {fixed}, which is held fixed, not all of these would be determined; an "
        "error of it is not in the standard deviations."
    )


def _sharp_combinations(table, spectrum):
    found = []
    covariance = spectrum.covariance()
    std = np.sqrt(np.diag(covariance))
    for i, j in itertools.combinations(range(len(table.labels)), 2):
        if table.units[i] != table.units[j] or not np.isfinite(std[[i, j]]).all():
            continue
        if min(std[i], std[j]) == 0 or (abs(covariance[i, j]) < _CORRELATED * std[i] * std[j]):
            continue
        sign = -1.0 if covariance[i, j] > 0 else 1.0
        gradient = np.zeros(len(table.labels))
        gradient[i], gradient[j] = 1.0, sign
        # Not from the covariance, where the difference of two large numbers would cancel.
        combined = spectrum.std_of(gradient)
        if _SHARPER * combined > min(std[i], std[j]):
            continue
        found.append(
            Combination(
                label=f"{table.labels[i]} {'-' if sign < 0 else '+'} {table.labels[j]}",
                value=float(table.values[i] + sign * table.values[j]),
                std=combined,
                unit=table.units[i],
                parts=(table.labels[i], table.labels[j]),
                parts_std=(float(std[i]), float(std[j])),
            )
        )
    return found
