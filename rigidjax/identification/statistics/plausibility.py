"""Plausibility of the estimates of a fit."""

from collections.abc import Sequence

import numpy as np

from ...formulations import AbstractFormulation
from ...mechanics import System
from .digits import estimate_text, std_text
from .verdict import Finding, shorten_names

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
