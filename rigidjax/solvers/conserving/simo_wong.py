"""Simo and Wong's momentum-conserving algorithm."""

from typing import Literal

import equinox as eqx

from ...bodies import FixedPointBody
from ...formulations import AbstractFormulation
from .equations import AbstractMotionStep
from .fixed_point import TrapezoidalTurn
from .increments import exponential
from .model_checks import check_free_bodies
from .one_step import AbstractSystemStepSolver
from .trapezoidal_step import trapezoidal_step


class SimoWong(AbstractSystemStepSolver):
    r"""ALGO.C1: Euler's equations in conservation form with the exponential map.

    $R_{n+1} = R_n \exp(h \tilde W)$, $W = \frac12 (\Omega_n + \Omega_{n+1})$, and
    $R_{n+1} I \Omega_{n+1} - R_n I \Omega_n = h\,m$ in space with the moment $m$ at
    $R_n \exp(\frac h2 \tilde W)$: the trapezoidal member ($\beta = \frac14$, $\gamma = \frac12$) of
    the family. Conserves angular momentum; in free rotation also the energy, because the body turns
    about $W$; with potentials the energy to second order.

    For `Quaternion()` and `Directors()`, `NullSpace` and `Absolute(index=0)` of a `FixedPointBody`
    or of a `System` without joints.

    **Arguments:** `conserve`: `"momentum"` for ALGO.C1; `"energy"` for its companion in which
    potentials enter by Gonzalez' discrete derivative, so that energy is conserved as well;
    `max_iterations` of Newton's method.
    **Raises:** `ValueError` for another `conserve`, and from `check_model`.
    **Source:** Simo, Wong, IJNME 31 (1991) 19; Betsch-Siebert, section 5.
    """

    conserve: Literal["momentum", "energy"] = eqx.field(static=True, default="momentum")
    max_iterations: int = eqx.field(static=True, default=30)

    def __check_init__(self):
        if self.conserve not in ("momentum", "energy"):
            raise ValueError(
                f'`SimoWong(conserve=...)` must be "momentum" or "energy"; got {self.conserve!r}.'
            )

    def check_model(self, model: AbstractFormulation) -> None:
        check_free_bodies(self, model)

    def step_of_system(self, model, t0, h, start, multipliers):
        return trapezoidal_step(
            model, t0, h, start, multipliers, self.max_iterations,
            free=exponential, conserves=self.conserve == "energy",
        )  # fmt: skip

    def step_of_body(self, model, t0, h, start) -> AbstractMotionStep:
        assert isinstance(model.system, FixedPointBody)
        conserves = self.conserve == "energy"
        return TrapezoidalTurn(model.system, model.rotation, t0, h, start, exponential, conserves)
