"""Energy-momentum schemes in quaternions and directors."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp

from ...bodies import FixedPointBody
from ...formulations import Absolute, AbstractFormulation
from ...mechanics import has_joints
from ...rotations.directors import Directors
from ...rotations.quaternion import Quaternion
from .equations import AbstractMotionStep
from .fixed_point import DirectorTurn, TrapezoidalTurn
from .increments import Map, cayley, conformal
from .model_checks import check_form, check_free_bodies
from .null_space_step import NullSpaceStep
from .one_step import AbstractSystemStepSolver
from .saddle_point import SaddlePointStep
from .trapezoidal_step import trapezoidal_step


class EnergyMomentum(AbstractSystemStepSolver):
    r"""Energy-momentum conserving steps: QUAT.EM in quaternions, DIR.EM in directors.

    Conserves the energy (where no force takes any), the length of the quaternion, its tangency
    $q \cdot p = 0$, and whatever angular momentum the potentials leave alone, for steps of every
    length. Potentials enter by Gonzalez' discrete derivative, exactly for every potential; forces
    without potential and dampers at the mid-point, where they do the work $h\,P$ with their power
    $P$ at the mean twist.

    - `Quaternion()`, QUAT.EM. The equations (51) for $(q_{n+1}, p_{n+1})$ with the non-singular
      mass matrix, radial inertia $\frac12\mathrm{tr}\,I$, have $p = 2\,q \circ I\Omega$ and
      the solution $q_{n+1} - q_n = \frac h2 q_{n+1/2} \circ W$, $W = \frac12 (\Omega_n +
      \Omega_{n+1})$, on the unit sphere: $h W$ is the conformal rotation vector of the step. So
      three unknowns for each body are left of the seven of (52)-(54), with (53) the balance of
      angular momentum in the frame of the mid-point.
    - `Directors()` in `Absolute(index=0)`, DIR.EM. The rates $\dot d$ are tangent at the start,
      but not after a step (the constraint on them holds in the middle): what is conserved is
      `director_energy` and `director_momentum`, with the whole of $\dot d$, while `Solution.energy`
      and `angular_momentum` see its tangent part alone.
    - `Directors()` in `NullSpace`: the same mean of the directors, $d_{n+1} - d_n =
      h\,T(d_{n+1/2})\,W$, with rates that stay tangent. All invariants are those of `Solution`.

    For `NullSpace` and `Absolute(index=0)` of a `FixedPointBody` or of a `System`, closed loops and
    redundant constraints included. Bodies that welds alone hold together move as the one body that
    they are. Bodies on other joints turn with the mean of their matrices in quaternions too: of
    bodies that go by their mean velocity, no other map keeps joints, energy and angular momentum at
    once. With joints, `Absolute` holds the velocities of the scheme and their energy, conserved to
    round-off; their constraints hold in the middle of a step, and at its ends to second order.
    `NullSpace` has the nearest velocities that the joints allow, lengthened to have that energy
    too. In systems with bodies free in space, whose momentum it keeps, and with prescribed motions
    it does not lengthen them: their energy oscillates about the conserved one to fourth order in
    the step.

    The moment of an internal force (one that names two bodies) leaves total momentum and angular
    momentum alone; that of any other nonlinear potential conserves energy exactly, and momentum to
    third order in the step.

    **Arguments:** `form`: `"reduced"`; or, with the same steps at several times the cost, for a
    `FixedPointBody` in quaternions, `"saddle-point"`, the nine equations (51) as they stand, with
    the multiplier, and `"null-space"`, the seven of (52)-(54) in a rotation vector and the
    momentum. With joints, in quaternions, `"saddle-point"` is another step: (51) for all bodies,
    with the multipliers of the joints, by the discrete derivative (50) at the mean quaternion. It
    conserves energy, momentum and joints; angular momentum changes to second order in the step.
    `max_iterations` of Newton's method.
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

    def step_of_system(self, model, t0, h, start, multipliers):
        return trapezoidal_step(
            model, t0, h, start, multipliers, self.max_iterations,
            free=self._map(model), published=self.form == "saddle-point",
        )  # fmt: skip

    def step_of_body(self, model, t0, h, start) -> AbstractMotionStep:
        body = model.system
        assert isinstance(body, FixedPointBody)
        if self.form != "reduced":
            step = SaddlePointStep(body, jnp.asarray(t0), h, start.coordinates, start.omega)
            return step if self.form == "saddle-point" else NullSpaceStep(step)
        if isinstance(model.rotation, Directors) and isinstance(model, Absolute):
            return DirectorTurn(body, model.rotation, t0, h, start)
        return TrapezoidalTurn(body, model.rotation, t0, h, start, self._map(model), True)

    def _map(self, model: AbstractFormulation) -> Map:
        """How bodies without joints turn."""
        return cayley if isinstance(model.rotation, Directors) else conformal
