"""Plausibility of the masses and inertias of a fit."""

import numpy as np

from ...formulations import AbstractFormulation
from ...mechanics import System

# Density of osmium, the densest material, kg/m^3.
_DENSEST = 22_600.0
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
