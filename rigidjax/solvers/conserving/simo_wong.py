"""Momentum-conserving algorithm of Simo and Wong."""

from typing import Literal

import equinox as eqx

from ...annotations import Scalar, Vector
from ...bodies import FixedPointBody
from ...formulations import AbstractFormulation
from .base import check_free_bodies
from .equations import AbstractMotionStep, Root
from .fixed_point import TrapezoidalRateStep
from .increments import exponential
from .motion import BodyMotion
from .one_step import AbstractSystemStepSolver
from .phase import Phase
from .trapezoidal_step import trapezoidal_step


class SimoWong(AbstractSystemStepSolver):
    r"""ALGO.C1: Euler's equations in conservation form with the exponential map.

    The step is $R_{n+1} = R_n \exp(h \tilde W)$ with $W = \frac12 (\Omega_n + \Omega_{n+1})$ and
    $R_{n+1} I \Omega_{n+1} - R_n I \Omega_n = h\,m$ in space components, with the moment $m$ at
    $R_n \exp(\frac h2 \tilde W)$. This is the trapezoidal scheme of the family
    ($\beta = \frac14$, $\gamma = \frac12$). It conserves angular momentum, in free rotation the
    energy too, because the body rotates about $W$, and with potentials the energy to second order.

    The scheme takes `NullSpace` and `Absolute(index=0)` in `Quaternion()` or `Directors()` of a
    `FixedPointBody` or of a `System` without joints.

    **Arguments:** `conserve`, `"momentum"` for ALGO.C1, or `"energy"` for the variant in which
    potentials enter by Gonzalez' discrete derivative, so that energy is conserved too;
    `max_iterations`, of Newton's method.
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

    def step_of_system(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector
    ) -> tuple[Phase, Root]:
        return trapezoidal_step(
            model, t0, h, start, multipliers, self.max_iterations,
            free_map=exponential, conserves=self.conserve == "energy",
        )  # fmt: skip

    def step_of_body(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: BodyMotion
    ) -> AbstractMotionStep:
        assert isinstance(model.system, FixedPointBody)
        conserves = self.conserve == "energy"
        return TrapezoidalRateStep(
            model.system, model.rotation, t0, h, start, exponential, conserves
        )
