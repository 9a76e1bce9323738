"""Energy-momentum schemes in quaternions and directors."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp

from ...annotations import Scalar, Vector
from ...bodies import FixedPointBody
from ...formulations import Absolute, AbstractFormulation
from ...mechanics import has_joints
from ...rotations.directors import Directors
from ...rotations.quaternion import Quaternion
from .base import check_form, check_free_bodies
from .equations import AbstractMotionStep, Root
from .fixed_point import DirectorRateStep, TrapezoidalRateStep
from .increments import Map, cayley, conformal
from .motion import BodyMotion
from .one_step import AbstractSystemStepSolver
from .phase import Phase
from .saddle_point import NullSpaceStep, SaddlePointStep
from .trapezoidal_step import trapezoidal_step


class EnergyMomentum(AbstractSystemStepSolver):
    r"""Energy-momentum conserving scheme: QUAT.EM in quaternions, DIR.EM in directors.

    For every length of the step the scheme conserves the energy (without dissipative forces), the
    length of the quaternion, its tangency $q \cdot p = 0$, and the angular momentum about every
    axis of symmetry of the potentials. Potentials enter by Gonzalez' discrete derivative, which is
    exact for every potential. Dampers and other forces without potential are evaluated at the
    mid-point, where they do the work $h\,P$ with their power $P$ at the mean twist.

    - `Quaternion()`, QUAT.EM. The equations (51) for $(q_{n+1}, p_{n+1})$ with the non-singular
      mass matrix, radial inertia $\frac12\mathrm{tr}\,I$, have $p = 2\,q \circ I\Omega$ and
      the solution $q_{n+1} - q_n = \frac h2 q_{n+1/2} \circ W$, $W = \frac12 (\Omega_n +
      \Omega_{n+1})$, on the unit sphere: $h W$ is the conformal rotation vector of the step. This
      leaves three unknowns per body instead of the seven of (52)-(54), where (53) is the balance of
      angular momentum in the mid-point frame.
    - `Directors()` in `Absolute(index=0)`, DIR.EM. The rates $\dot d$ are tangent at the start of
      the run, but not at the ends of steps, because their constraint holds at the mid-points.
      Conserved are `director_energy` and `director_momentum` of the full $\dot d$, while
      `Solution.energy` and `angular_momentum` depend on its tangent part only.
    - `Directors()` in `NullSpace`: the directors have the same mean, $d_{n+1} - d_n =
      h\,T(d_{n+1/2})\,W$, and rates that stay tangent. The invariants are those of `Solution`.

    The scheme takes `NullSpace` and `Absolute(index=0)` of a `FixedPointBody` or of a `System`,
    with closed loops and redundant constraints. Bodies that are held together by welds alone move
    as one body. Bodies on other joints rotate with the mean of their rotation matrices in
    quaternions too: no other map of the mean angular velocity preserves joints, energy and angular
    momentum at once. With joints, `Absolute` contains the velocities of the scheme, whose energy is
    conserved to round-off; they satisfy the velocity constraints at the mid-points, and at the ends
    of steps to second order. `NullSpace` contains the nearest velocities that the joints allow,
    scaled to the conserved energy. They are not scaled in systems with prescribed motions or with
    bodies free in space, whose momentum the scaling would change. Their energy then oscillates
    about the conserved one with an amplitude of fourth order in the step.

    Internal forces (forces that name two bodies) conserve total momentum and angular momentum.
    Other nonlinear potentials conserve energy exactly and momentum to third order in the step.

    **Arguments:**

    - `form`: `"reduced"`, the equations above. For a `FixedPointBody` in quaternions two further
      forms give the same steps at several times the cost: `"saddle-point"`, the nine equations (51)
      with the multiplier, and `"null-space"`, the seven equations (52)-(54) in a rotation vector
      and the momentum. With joints, in quaternions, `"saddle-point"` is a different scheme: (51)
      for all bodies with the multipliers of the joints and the discrete derivative (50) at the mean
      quaternion. It conserves energy, momentum and joints; angular momentum is conserved to second
      order in the step.
    - `max_iterations`, of Newton's method.

    **Raises:** `ValueError` for another `form`, and from `check_model`.
    **Source:** Betsch-Siebert (51)-(54), remark 4.3, section 3; Gonzalez, J. Nonlinear Sci. 6
    (1996) 449; Betsch, Steinmann, CMAME 191 (2001) 467.
    """

    form: Literal["reduced", "saddle-point", "null-space"] = eqx.field(
        static=True, default="reduced"
    )
    max_iterations: int = eqx.field(static=True, default=30)

    def __check_init__(self):
        if self.form not in ("reduced", "saddle-point", "null-space"):
            raise ValueError(
                '`EnergyMomentum(form=...)` must be "reduced", "saddle-point" or "null-space"; got '
                f"{self.form!r}."
            )

    def check_model(self, model: AbstractFormulation) -> None:
        if has_joints(model.system):
            if self.form == "null-space":
                raise ValueError(
                    f'`EnergyMomentum(form="{self.form}")` takes no joints. Use `EnergyMomentum()`.'
                )
            both = (Quaternion, Directors)
            check_form(self, model, both if self.form == "reduced" else (Quaternion,))
            return
        check_free_bodies(self, model)
        comparable = isinstance(model.rotation, Quaternion) and not model.multibody.translates
        if self.form != "reduced" and not comparable:
            raise ValueError(
                f'`EnergyMomentum(form="{self.form}")` is for comparison: it takes a '
                "`FixedPointBody` in `rj.Quaternion()`. Use `EnergyMomentum()`."
            )

    def step_of_system(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector
    ) -> tuple[Phase, Root]:
        return trapezoidal_step(
            model, t0, h, start, multipliers, self.max_iterations,
            free_map=self._free_map(model), mean_quaternions=self.form == "saddle-point",
        )  # fmt: skip

    def step_of_body(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: BodyMotion
    ) -> AbstractMotionStep:
        body = model.system
        assert isinstance(body, FixedPointBody)
        if self.form != "reduced":
            step = SaddlePointStep(body, jnp.asarray(t0), h, start.coordinates, start.omega)
            return step if self.form == "saddle-point" else NullSpaceStep(step)
        if isinstance(model.rotation, Directors) and isinstance(model, Absolute):
            return DirectorRateStep(body, model.rotation, t0, h, start)
        return TrapezoidalRateStep(body, model.rotation, t0, h, start, self._free_map(model), True)

    def _free_map(self, model: AbstractFormulation) -> Map:
        """Return the map from $h W$ to the rotation of a body without joints."""
        return cayley if isinstance(model.rotation, Directors) else conformal
