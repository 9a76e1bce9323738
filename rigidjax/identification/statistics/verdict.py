"""Verdict of a fit or regression: whether its intervals may be used."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...formulations import AbstractFormulation
from ...io.document import estimate_text, std_text
from ...mechanics import System
from .ambiguity import join_names
from .estimate_covariance import METHODS, EstimateCovariance
from .stability import Differences
from .whiteness import Whiteness, reject_jointly

# Probability that a correct model with white noise causes any false alarm of a kind.
LEVEL = 0.005
# Ratio of standard deviations above which methods disagree.
_DISAGREE = 1.2
# Largest number of names in one sentence.
_MANY = 4
# Names of the intervals by covariances, in tables.
METHOD_NAMES = {"model": "linearised", "hac": "sandwich (hac)", "cluster": "sandwich (cluster)"}


class Finding(NamedTuple):
    """A reason to doubt intervals: in few words for the first line, and in full.

    **Attributes:** `reason`; `text`; `forbids`, whether intervals must not be used, instead of with
    caution.
    """

    reason: str
    text: str
    forbids: bool


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether intervals may be used, and why.

    **Attributes:** `use`: "yes", "with caution" or "no"; `reasons`, in few words.
    """

    use: str
    reasons: tuple[str, ...]

    @property
    def is_warning(self) -> bool:
        """Whether anything speaks against the intervals."""
        return self.use != "yes"

    def __str__(self) -> str:
        """Return the first line of a report."""
        reasons = "; ".join(self.reasons)
        if not self.is_warning:
            return f"The intervals may be used: {reasons}."
        may = "may not be used" if self.use == "no" else "may be used with caution only"
        return f"Warning: the intervals {may}: {reasons}."


def make_verdict(findings: Sequence[Finding], supports: Sequence[str]) -> Verdict:
    """Return the verdict.

    **Arguments:** `findings` against the intervals; `supports`, reasons for them.
    """
    if not findings:
        return Verdict("yes", tuple(supports))
    use = "no" if any(finding.forbids for finding in findings) else "with caution"
    ordered = sorted(findings, key=lambda finding: not finding.forbids)
    return Verdict(use, tuple(dict.fromkeys(finding.reason for finding in ordered)))


def rejected_channels(tests: Mapping[str, Whiteness | None]) -> list[str]:
    """Return the names of the tested series that are not white, each false with `LEVEL` in all."""
    names, values = [], []
    for name, test in tests.items():
        for p_value in [] if test is None else test.p_values:
            names.append(name)
            values.append(p_value)
    rejected = reject_jointly(values, LEVEL)
    return list(dict.fromkeys(name for name, no in zip(names, rejected, strict=True) if no))


def shorten_names(names: Iterable[str]) -> str:
    """Join names as in a sentence, with a count instead of the last ones of many."""
    names = list(names)
    if len(names) <= _MANY:
        return join_names(names)
    return ", ".join(names[: _MANY - 1]) + f" and {len(names) - _MANY + 1} more"


def dependence_finding(
    series: Sequence[str],
    labels: Sequence[str],
    used: EstimateCovariance,
    covariances: Mapping[str, EstimateCovariance],
) -> Finding | None:
    """Return the finding that residuals are not white; `None` if none of the `series` is rejected.

    **Arguments:** `series`, names of the rejected ones; `labels` of the estimates; the covariance
    that is `used`; all `covariances`.
    """
    if not series:
        return None
    reason = f"residuals of {shorten_names(series)} are not white"
    text = f"Residuals of {shorten_names(series)} are not white (tests of Ljung and Box, and of "
    text += "runs of signs): the model or the noise lacks something. "
    others = [c for name, c in covariances.items() if name != "model"]
    model = covariances["model"]
    if used.method != "model":
        text += (
            f"The intervals allow for {METHODS[used.method]} ({used.method}); the standard "
            f"deviations are {_describe_ratio(labels, used, model)} those for independent "
            "residuals. They do not allow for a bias by a wrong model."
        )
        return Finding(reason, text, False)
    if others:
        text += (
            "The standard deviations assume independent residuals; those that allow for "
            f"{METHODS[others[0].method]} ({others[0].method}) are "
            f"{_describe_ratio(labels, others[0], model)} them."
        )
    return Finding(reason, text, True)


def _describe_ratio(
    labels: Sequence[str], first: EstimateCovariance, second: EstimateCovariance
) -> str:
    """Return by which factors standard deviations of two methods differ."""
    finite = np.isfinite(first.std) & np.isfinite(second.std) & (second.std > 0)
    if not finite.any():
        return "as large as"
    ratios = np.where(finite, first.std / np.where(finite, second.std, 1.0), 1.0)
    k = int(np.argmax(np.abs(np.log(np.maximum(ratios, 1e-300)))))
    if max(ratios[k], 1 / max(ratios[k], 1e-300)) < _DISAGREE:
        return "nearly as large as"
    return f"up to {ratios[k]:.2g} times ({labels[k]})"


def difference_finding(
    differences: Mapping[str, Differences], labels: Sequence[str]
) -> Finding | None:
    """Return the finding that estimates from parts of the data differ beyond their intervals.

    **Arguments:** `differences`, by the name of the parts, such as "halves of the data"; `labels`
    of the estimates.
    """
    from scipy import special

    names = list(differences)
    values = np.array([parts.values for parts in differences.values()])
    freedom = np.array([parts.freedom for parts in differences.values()])
    if not values.size:
        return None
    # By `special`, because `stats` takes long to import.
    p_values = 2 * special.stdtr(np.maximum(freedom / 2, 1.0), -np.abs(values))
    rejected = reject_jointly(p_values.ravel().tolist(), LEVEL).reshape(values.shape)
    if not rejected.any():
        return None
    worst = np.argmax(np.where(rejected, np.abs(values), 0.0), axis=0)
    parts = [
        f"{labels[k]} by {abs(values[worst[k], k]):.2g} ({names[int(worst[k])]})"
        for k in np.flatnonzero(rejected.any(axis=0)).tolist()
    ]
    reason = (
        f"parts of the data give different {shorten_names([p.split(' by ')[0] for p in parts])}"
    )
    return Finding(
        reason,
        "Estimates from parts of the data differ beyond their intervals, in standard deviations "
        f"of the difference: {shorten_names(parts)}.",
        True,
    )


# Density of osmium, the densest material, kg/m^3.
_DENSEST = 22_600.0
# Standard deviations below zero from which a quantity that cannot be negative is implausible.
_NEGATIVE = 2.5
# Tolerance of the triangle inequality, for fitted flat bodies.
_SLACK = 1.01


def plausibility_notes(model: AbstractFormulation) -> list[str]:
    r"""Return a sentence for each body whose mass and inertia no body can have.

    Among all bodies with mass $m$ and radius of gyration $k$ about the centre of mass, $k^2 =
    \operatorname{tr} J / 2m$, the ball of radius $\sqrt{5/3}\,k$ has the smallest density. If it
    exceeds that of any material, a value or its unit is wrong.
    """
    system = model.system
    bodies = system.bodies if isinstance(system, System) else ()
    notes = []
    for body in bodies:
        mass, inertia = float(body.mass), np.asarray(body.inertia, float)
        moments = np.linalg.eigvalsh(inertia) if inertia.ndim == 2 else np.sort(inertia)
        if not (np.isfinite(mass) and np.isfinite(moments).all() and mass > 0):
            continue
        text = ", ".join(f"{x:.3g}" for x in moments)
        if moments[2] > _SLACK * (moments[0] + moments[1]) or moments[0] < 0:
            notes.append(
                f"No body has the moments of inertia of {body.name!r}, {text} kg m^2: none is "
                "negative or greater than the sum of the others. Fit them all with "
                "`PrincipalInertia`, or correct those that are held."
            )
        elif moments.sum() > 0:
            radius = np.sqrt(moments.sum() / (2 * mass))
            density = mass / (4 / 3 * np.pi * (5 / 3) ** 1.5 * radius**3)
            if density > _DENSEST:
                notes.append(
                    f"The body {body.name!r} would be denser than any material: {mass:.3g} kg with "
                    f"the moments of inertia {text} kg m^2, a radius of gyration of "
                    f"{radius:.2g} m, need {density:.2g} kg/m^3 or more. Unless it stands for a "
                    "mass point, look at its mass, held or fitted, and at units."
                )
    return notes


def negative_finding(quantities: Sequence[tuple[str, float, float]]) -> Finding | None:
    """Return the finding that quantities are negative that cannot be; `None` if all may be zero.

    **Arguments:** `quantities`, such as masses, dampings and frictions: label, value and standard
    deviation.
    """
    parts = [
        (label, f"{label} = {estimate_text(value, std)} +- {std_text(std)}", -value / std)
        for label, value, std in quantities
        if std > 0 and value < -_NEGATIVE * std
    ]
    if not parts:
        return None
    names = shorten_names(
        [f"{label} is negative by {z:.2g} standard deviations" for label, _, z in parts]
    )
    return Finding(
        names,
        f"{shorten_names([text for _, text, _ in parts])} cannot be negative: {names}. The model "
        "lacks something that the estimate stands for, or a sign or a unit is wrong.",
        True,
    )
