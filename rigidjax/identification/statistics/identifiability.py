"""Verdict on the identifiability of parameters."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np

from ...io.document import estimate_text, std_text
from ..experiment.parameters import ComponentTable
from .ambiguity import (
    describe_ambiguity,
    has_significant_value,
    is_common_scale,
    join_names,
    relative_change,
    undetermined_directions,
)
from .covariance import Spectrum

# Correlation above which the sum or difference of two parameters may be much more precise than they
# are.
_CORRELATED = 0.9
# Factor by which the standard deviation of a combination must be smaller to be reported.
_SHARPER = 3.0
# A parameter whose standard deviation exceeds the fraction `_WEAK` of its value is reported: as
# "hardly determined" if the standard deviation also exceeds the fraction `_ZERO` of its possible
# change, else as zero within its error.
_WEAK, _ZERO = 0.5, 0.1


@dataclasses.dataclass(frozen=True)
class Combination:
    """A combination of parameters that is known more precisely than the parameters."""

    label: str
    value: float
    std: float
    unit: str
    parts: tuple[str, ...]
    parts_std: tuple[float, ...]

    def __str__(self) -> str:
        parts_text = " and ".join(
            f"{part} to {std_text(std)}"
            for part, std in zip(self.parts, self.parts_std, strict=True)
        )
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.label} = {estimate_text(self.value, self.std)}{unit} is known to "
            f"{std_text(self.std)}{unit}, more accurately than its parts: {parts_text}."
        )


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """The verdict on a fit, from the Jacobian at its solution.

    **Attributes:**

    - `identifiable`: whether every fitted parameter is determined.
    - `rank` and `num_parameters`, of the Fisher information.
    - `condition`: of the weighted Jacobian with columns of norm one, independent of the units and
      values of the parameters; its square is that of the Fisher information in this scaling.
    - `singular_values`: in the same scaling.
    - `undetermined`: changes of parameters, by label, that change no prediction: relative to the
      value, with a largest entry of one; absolute for parameters without a significant value.
    - `sharp`: combinations that are known more precisely than the parameters in them.
    - `messages`: the verdict in words.
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
    refine: Callable[[Spectrum], Spectrum] = lambda spectrum: spectrum,
) -> tuple[Spectrum, Identifiability]:
    """Judge a fit by the Jacobian with respect to all components, fitted or held fixed.

    **Arguments:** `table`, all components (K,) with their values; `starts`, their start values;
    `jacobian` (M, K) of the weighted residuals; `variance` of a weighted residual; `tolerance`,
    relative singular value that counts as zero; `refine`, a function that replaces the covariance
    of the scores, which is that of independent residuals.
    **Returns:** the spectrum of the fitted components, and the verdict.
    """
    magnitudes, indices = table.magnitudes(starts), table.fitted_indices
    fitted = table.subset(indices)
    # The triangular factor has the same column norms and products, and fewer rows.
    jacobian = np.asarray(np.linalg.qr(jacobian, mode="r"))
    spectrum = refine(Spectrum(jacobian[:, indices], tolerance, magnitudes[indices], variance))
    undetermined, messages = describe_ambiguity(spectrum, fitted)
    if not messages:
        messages = _describe_held(Spectrum(jacobian, tolerance, magnitudes, variance), table)
    std = np.sqrt(np.diag(spectrum.covariance()))
    weak = _describe_weak(fitted, std, magnitudes[indices])
    messages = [*messages, *weak] if undetermined else [*weak, *messages]
    sharp = _sharp_combinations(fitted, spectrum)
    messages += [str(combination) for combination in sharp]
    if spectrum.rank == len(indices):
        # After the hardly determined parameters: the worst news comes first.
        messages.insert(len(weak), _describe_identifiable(len(indices)))
    return spectrum, Identifiability(
        identifiable=spectrum.rank == len(indices),
        rank=spectrum.rank,
        num_parameters=len(indices),
        condition=spectrum.condition,
        singular_values=tuple(float(x) for x in spectrum.values),
        undetermined=tuple(undetermined),
        sharp=tuple(sharp),
        messages=tuple(messages),
    )


def _describe_identifiable(count: int) -> str:
    if count == 1:
        return "The fitted parameter is identifiable."
    return f"{'Both' if count == 2 else f'All {count}'} fitted parameters are identifiable."


def _describe_weak(table: ComponentTable, std: np.ndarray, magnitudes: np.ndarray) -> list[str]:
    """Return sentences on parameters whose standard deviation is as large as their value."""
    largest = table.magnitudes(table.values)
    messages = []
    for label, value, deviation, size, possible in zip(
        table.labels, table.values, std, largest, magnitudes, strict=True
    ):
        if not (np.isfinite(deviation) and deviation > _WEAK * size):
            continue
        weak = 0 < _ZERO * possible < deviation
        messages.append(
            f"{label} {'is hardly determined' if weak else 'cannot be distinguished from zero'}: "
            f"{estimate_text(value, deviation)} with a standard deviation of {std_text(deviation)}."
        )
    return messages


def _describe_held(spectrum: Spectrum, table: ComponentTable) -> list[str]:
    """Return sentences on results that rest on the values of components that are held fixed."""
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
        messages.append(f"The fixed value of {idle[0]} has no effect on the predictions.")
    elif idle:
        idle = sorted(idle, key=table.labels.index)
        messages.append(
            f"The fixed values of {join_names(idle)} have no effect on the predictions."
        )
    return messages


def _describe_dependence(change: dict[str, float], held: list[str], common: bool) -> str:
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


def _sharp_combinations(table: ComponentTable, spectrum: Spectrum) -> list[Combination]:
    combinations = []
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
        # The covariance would lose digits by cancellation.
        combined = spectrum.std_of(gradient)
        if _SHARPER * combined > min(std[i], std[j]):
            continue
        combinations.append(
            Combination(
                label=f"{table.labels[i]} {'-' if sign < 0 else '+'} {table.labels[j]}",
                value=float(table.values[i] + sign * table.values[j]),
                std=combined,
                unit=table.units[i],
                parts=(table.labels[i], table.labels[j]),
                parts_std=(float(std[i]), float(std[j])),
            )
        )
    return combinations
