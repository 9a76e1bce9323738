"""Arguments and options that several commands share."""

import pathlib
from typing import Annotated

import typer

# Names for help texts, listed here because finding them would import JAX.
SOLVERS = (
    "dopri8, dopri5, tsit5, bosh3, heun, midpoint, euler, kvaerno3, kvaerno4, kvaerno5, "
    "implicit-euler, bdf, energy-midpoint, energy-momentum, generalized-alpha, munthe-kaas, "
    "odex, rk4, radau1, radau13, radau5, radau9, seulex, simo-wong, variational"
)
FORMULATIONS = "absolute, euler-parameters, hamiltonian, null-space, relative"
ROTATIONS = (
    "conformal-rotation-vector, directors, linear-parameters, quaternion, rodrigues-parameters,"
    " rotation-vector, zxz, xyx, yzy, zyz, xzx, yxy, xyz, yzx, zxy, xzy, zyx, yxz"
)
# Principal moments of the racket that the authors of the data measured with pendulums, kg m^2.
PENDULUM_INERTIA = (20.7e-3, 18.8e-3, 1.391e-3)

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the problem, such as disturbance=1e-3."),
]
ReportFile = Annotated[
    pathlib.Path | None, typer.Option(help="Write the whole report (.md, .txt, .json, .csv).")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
