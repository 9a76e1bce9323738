"""Variational integrator in quaternions."""

import equinox as eqx

from ...annotations import Scalar, Vector
from ...bodies import FixedPointBody
from ...formulations import AbstractFormulation
from ...mechanics import has_joints
from ...rotations.quaternion import Quaternion
from .equations import AbstractMotionStep
from .fixed_point import VariationalRateStep
from .model_checks import check_form, check_free_bodies
from .motion import BodyMotion
from .newton import Root
from .one_step import AbstractSystemStepSolver
from .phase import Phase
from .variational_step import variational_step


class Variational(AbstractSystemStepSolver):
    r"""QUAT.VI, the variational integrator of the discrete Lagrangian at the mid-point.

    The scheme is symplectic. It conserves momentum maps exactly and the energy to second order
    without drift (in free rotation exactly). A step starts from the discrete momentum
    $p_n = -D_1 L_d(q_n, q_{n+1}) + \frac h2 q_n \lambda_n$, as the first step of the paper does,
    and ends with $p_{n+1} = D_2 L_d$; the discrete Euler-Lagrange equations (E1) state that both
    agree. The angular velocities among the unknowns are $\Omega = I^{-1}\,\frac12 G(q)\,p$ of these
    momenta.

    In body components, with $(c, e) = \bar q_n \circ q_{n+1}$ and without forces, a step is
    $I\Omega_n = \frac2h (c\,I e + e \times I e)$ and
    $I\Omega_{n+1} = \frac2h (c\,I e - e \times I e)$. The right-hand side is bounded: about a
    principal axis it is $\frac1h I \sin\varphi$. **There is no solution for $h |\Omega|$ above
    about 1**, and the run ends with `nonlinear_divergence`.

    Forces without potential enter by the discrete principle of d'Alembert at the mid-point.

    The scheme takes `NullSpace` and `Absolute(index=0)` in `Quaternion()` of a `FixedPointBody` or
    a `System`. With joints, also in closed loops and with redundant constraints, positions and
    velocities at the ends of steps satisfy all constraints to round-off.

    **Arguments:** `max_iterations`, of Newton's method.
    **Source:** Betsch-Siebert, Appendix E.
    """

    max_iterations: int = eqx.field(static=True, default=30)

    def check_model(self, model: AbstractFormulation) -> None:
        check = check_form if has_joints(model.system) else check_free_bodies
        check(self, model, (Quaternion,))

    def step_of_system(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector
    ) -> tuple[Phase, Root]:
        return variational_step(model, t0, h, start, multipliers, self.max_iterations)

    def step_of_body(
        self, model: AbstractFormulation, t0: Scalar, h: Scalar, start: BodyMotion
    ) -> AbstractMotionStep:
        assert isinstance(model.system, FixedPointBody)
        return VariationalRateStep(model.system, model.rotation, t0, h, start)
