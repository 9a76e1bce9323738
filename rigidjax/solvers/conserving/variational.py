"""The variational integrator in quaternions."""

import equinox as eqx

from ...bodies import FixedPointBody
from ...formulations import AbstractFormulation
from ...mechanics import has_joints
from ...rotations.quaternion import Quaternion
from .equations import AbstractMotionStep
from .fixed_point import VariationalTurn
from .model_checks import check_form, check_free_bodies
from .one_step import AbstractSystemStepSolver
from .variational_step import variational_step


class Variational(AbstractSystemStepSolver):
    r"""QUAT.VI, the variational integrator of the discrete Lagrangian at the mid-point.

    Symplectic; conserves the momentum that belongs to a symmetry exactly, the energy to second
    order without drift (exactly in free rotation). A step starts from the discrete momentum
    $p_n = -D_1 L_d(q_n, q_{n+1}) + \frac h2 q_n \lambda_n$, as the scheme of the paper is started,
    and ends with $p_{n+1} = D_2 L_d$: the discrete Euler-Lagrange equations (E1) say that both
    agree. The unknowns are those momenta turned into $\Omega = I^{-1}\,\frac12 G(q)\,p$.

    In the frame of the body, with $(c, e) = \bar q_n \circ q_{n+1}$ and without forces, a step is
    $I\Omega_n = \frac2h (c\,I e + e \times I e)$ and
    $I\Omega_{n+1} = \frac2h (c\,I e - e \times I e)$. The right-hand side is bounded: about a
    principal axis it is $\frac1h I \sin\varphi$. **No step exists for $h |\Omega|$ above 1 or so**,
    and the run ends with `nonlinear_divergence`: the steady top of the paper has
    $\Omega_3 = 140.6$ rad/s, so that $h = 0.007$ s works and 0.01 s cannot.

    Forces without potential enter by the discrete principle of d'Alembert at the mid-point.

    For `Quaternion()` in `NullSpace` and `Absolute(index=0)` of a `FixedPointBody` or a `System`.
    With joints, closed loops and redundant constraints included, positions and velocities at the
    ends of steps satisfy all constraints to round-off.

    **Arguments:** `max_iterations` of Newton's method.
    **Source:** Betsch-Siebert, Appendix E.
    """

    max_iterations: int = eqx.field(static=True, default=30)

    def check_model(self, model: AbstractFormulation) -> None:
        check = check_form if has_joints(model.system) else check_free_bodies
        check(self, model, (Quaternion,))

    def step_of_system(self, model, t0, h, start, multipliers):
        return variational_step(model, t0, h, start, multipliers, self.max_iterations)

    def step_of_body(self, model, t0, h, start) -> AbstractMotionStep:
        assert isinstance(model.system, FixedPointBody)
        return VariationalTurn(model.system, model.rotation, t0, h, start)
