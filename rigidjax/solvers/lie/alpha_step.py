"""The equations of a step of the generalised-alpha method, and their Newton iteration."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Count, Flag, Scalar, Vector
from ...native.ops import inverse
from ..dae.equations import stop_gradients
from ..implicit import AbstractImplicitStep
from .chart import Chart, ChartIncrement
from .dynamics import Dynamics, Pose

# Largest number of Newton iterations; about four are usual.
_MAX_ITERATIONS = 20
# The Jacobian is updated if an iteration reduces the error by less than this factor.
_SLOW_CONVERGENCE = 0.1


class AlphaCoefficients(NamedTuple):
    r"""Coefficients of the method.

    **Attributes:** `mass`, $\alpha_m$; `force`, $\alpha_f$; `beta`; `gamma`.
    **Source:** Chung, Hulbert (1993); Bruels, Cardona (2010) (22)-(24).
    """

    mass: float
    force: float
    beta: float
    gamma: float

    @property
    def lead(self) -> float:
        r"""$\alpha_m - \alpha_f$, by which pseudo-accelerations are ahead in time, in steps."""
        return self.mass - self.force


def coefficients(radius: float) -> AlphaCoefficients:
    """Return the coefficients of second order with the largest high-frequency dissipation.

    **Arguments:** `radius`, the spectral radius at infinite frequency, 0 to 1.
    """
    mass, force = (2 * radius - 1) / (radius + 1), radius / (radius + 1)
    gamma = 0.5 + force - mass
    return AlphaCoefficients(mass, force, 0.25 * (gamma + 0.5) ** 2, gamma)


class AlphaStep(AbstractImplicitStep):
    r"""Equations for $z = (\beta h^2 a_{n+1}, s \lambda_{n+1})$ with the pseudo-acceleration $a$.

    $\Delta = h w_n + (\frac12 - \beta) h^2 a_n + z_a$ and $q_{n+1} = q_n \circ \exp(\Delta)$. With
    $s = \beta h^2 (1 - \alpha_f)/(1 - \alpha_m)$ no block of the Jacobian depends on the length of
    the step to leading order.

    **Attributes:** `dynamics`; `chart`, at the start of the step; `angles`, of joints, predicted
    for its end; `t1`, its end, s; `h`, its length, s; `shift`, $\Delta$ without $z_a$; `twist` and
    `rate`, $w_{n+1}$ and $\dot w_{n+1}$ without the contributions of $z$; `redundant`, the
    projection onto the multipliers without effect, or `None`; `c`, the coefficients.
    """

    dynamics: Dynamics
    chart: Chart
    angles: Float[Array, " A"]
    t1: Scalar
    h: Scalar
    shift: Float[Array, "L k"]
    twist: Float[Array, "L k"]
    rate: Float[Array, "L k"]
    redundant: Float[Array, "m m"] | None
    c: AlphaCoefficients

    @property
    def scale(self) -> Scalar:
        """Scale $s$ of the multipliers."""
        return self.c.beta * self.h**2 * (1 - self.c.force) / (1 - self.c.mass)

    def split_unknowns(self, z: Vector) -> tuple[Float[Array, "L k"], Float[Array, " m"]]:
        """Split the unknowns into scaled pseudo-accelerations and multipliers."""
        n = self.shift.size
        return z[:n].reshape(self.shift.shape), z[n:]

    def increment(self, z: Vector) -> ChartIncrement:
        """Return the increment of the configuration; that of the velocities is zero."""
        change = self.shift + self.split_unknowns(z)[0]
        return self.chart.zero._replace(shift=change[:, :-3], rotation=change[:, -3:])

    def end(
        self, z: Vector
    ) -> tuple[Pose, Float[Array, "L k"], Float[Array, "L k"], Float[Array, "L k"]]:
        """Return pose, twists, accelerations and pseudo-accelerations at the end of the step."""
        x, p = self.chart.layout.poses(self.chart.point(self.increment(z)))
        a = self.split_unknowns(z)[0] / (self.c.beta * self.h**2)
        w = self.twist + self.c.gamma * self.h * a
        rate = self.rate + (1 - self.c.mass) / (1 - self.c.force) * a
        return Pose(x, p, self.angles), w, rate, a

    def residual(self, Z: Vector) -> Vector:
        pose, w, rate, _ = self.end(Z)
        lam = self.split_unknowns(Z)[1]
        forces, gap, G = self.dynamics.evaluate(self.t1, pose, w)
        balance = self.scale * (self.dynamics.momenta(rate) - forces).ravel() + lam @ G
        if self.redundant is not None:
            gap = gap + self.redundant @ lam
        return jnp.concatenate([balance, gap])


def solve_by_newton(step: AlphaStep, start: Vector) -> tuple[Vector, Flag, Count]:
    """Solve the equations by Newton's method to round-off.

    The Jacobian is updated only where convergence is slow.

    **Arguments:** `step`, the equations; `start`, the initial iterate.
    **Returns:** the solution (`start` if there is none); whether the iteration converged; the
    number of iterations.
    """
    step, start = stop_gradients((step, start))
    n, dtype = step.shift.size, start.dtype
    eps = jnp.finfo(dtype).eps
    x, _ = step.chart.layout.poses(step.chart.origin)
    scales = step.dynamics.increment_scales(x).ravel()
    # Smaller increments, relative to the size of the system or one radian, are round-off of the
    # pose.
    noise = 1e4 * eps

    def is_running(carry):
        return ~carry[-1]

    def iterate(carry):
        k, z, size, stale, inverse_of_J, _ = carry
        inverse_of_J = jax.lax.cond(
            stale, lambda z: inverse(step.jacobian(z)), lambda z: inverse_of_J, z
        )
        change = -inverse_of_J @ step.residual(z)
        new_size = jnp.max(jnp.abs(change[:n]) / scales)
        z = z + change
        largest = jnp.max(jnp.abs(step.shift + step.split_unknowns(z)[0]).ravel() / scales)
        has_stagnated = (new_size >= 0.5 * size) & (new_size <= noise)
        done = (new_size <= eps * largest) | has_stagnated
        ended = done | (k + 1 == _MAX_ITERATIONS) | ~jnp.isfinite(new_size)
        return k + 1, z, new_size, new_size > _SLOW_CONVERGENCE * size, inverse_of_J, ended

    empty = jnp.zeros((start.size, start.size), dtype)
    carry = jnp.array(0), start, jnp.array(jnp.inf, dtype), jnp.array(True), empty, jnp.array(False)
    count, z, size, _, _, _ = jax.lax.while_loop(is_running, iterate, carry)
    okay = (size <= noise) & jnp.all(jnp.isfinite(z))
    if step.redundant is not None:
        # Redundant constraints that the others do not satisfy contradict these.
        gap = jnp.abs(step.redundant @ step.split_unknowns(z)[1]) / step.dynamics.constraint_scales
        okay = okay & (jnp.max(gap, initial=0.0) <= noise)
    return jnp.where(okay, z, start), okay, count
