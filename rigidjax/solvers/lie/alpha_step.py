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

# Iterations after which Newton's method gives up; four are the rule.
_LIMIT = 20
# A Jacobian is computed anew if an iteration leaves more than this part of the error.
_SLOW = 0.1


class AlphaCoefficients(NamedTuple):
    r"""$\alpha_m$, $\alpha_f$, $\beta$, $\gamma$ of a spectral radius.

    **Source:** Chung, Hulbert (1993); Bruels, Cardona (2010) (22)-(24).
    """

    mass: float
    force: float
    beta: float
    gamma: float

    @property
    def lead(self) -> float:
        r"""$\alpha_m - \alpha_f$: pseudo-accelerations are those of a time that much later."""
        return self.mass - self.force


def coefficients(radius: float) -> AlphaCoefficients:
    """Second order, largest dissipation of high frequencies for a spectral radius."""
    mass, force = (2 * radius - 1) / (radius + 1), radius / (radius + 1)
    gamma = 0.5 + force - mass
    return AlphaCoefficients(mass, force, 0.25 * (gamma + 0.5) ** 2, gamma)


class AlphaStep(AbstractImplicitStep):
    r"""Equations for $z = (\beta h^2 a_{n+1}, s \lambda_{n+1})$ with the pseudo-acceleration a.

    $\Delta = h w_n + (\frac12 - \beta) h^2 a_n + z_a$, $q_{n+1} = q_n \circ \exp(\Delta)$; with
    $s = \beta h^2 (1 - \alpha_f)/(1 - \alpha_m)$ neither part of the matrix depends on h.
    **Attributes:** `shift`, $\Delta$ without $z_a$, and `twist`, `rate`, $w_{n+1}$ and $\dot
    w_{n+1}$ without what z adds, (L, k); `idle`, projection onto the multipliers that do nothing,
    or `None`.
    """

    dynamics: Dynamics
    chart: Chart
    angles: Float[Array, " A"]
    t1: Scalar
    h: Scalar
    shift: Float[Array, "L k"]
    twist: Float[Array, "L k"]
    rate: Float[Array, "L k"]
    idle: Float[Array, "m m"] | None
    c: AlphaCoefficients

    @property
    def scale(self):
        """s."""
        return self.c.beta * self.h**2 * (1 - self.c.force) / (1 - self.c.mass)

    def split(self, z):
        """Both parts of z."""
        n = self.shift.size
        return z[:n].reshape(self.shift.shape), z[n:]

    def increment(self, z) -> ChartIncrement:
        """Of the unknowns, those of velocities left out."""
        moved = self.shift + self.split(z)[0]
        return self.chart.zero._replace(shift=moved[:, :-3], turn=moved[:, -3:])

    def end(self, z):
        """Pose, twists, their derivatives and pseudo-accelerations at the end."""
        x, p = self.chart.layout.poses(self.chart.point(self.increment(z)))
        a = self.split(z)[0] / (self.c.beta * self.h**2)
        w = self.twist + self.c.gamma * self.h * a
        rate = self.rate + (1 - self.c.mass) / (1 - self.c.force) * a
        return Pose(x, p, self.angles), w, rate, a

    def residual(self, Z):
        pose, w, rate, _ = self.end(Z)
        lam = self.split(Z)[1]
        forces, gap, G = self.dynamics.evaluate(self.t1, pose, w)
        balance = self.scale * (self.dynamics.momenta(rate) - forces).ravel() + lam @ G
        if self.idle is not None:
            gap = gap + self.idle @ lam
        return jnp.concatenate([balance, gap])


def newton(step: AlphaStep, start: Vector) -> tuple[Vector, Flag, Count]:
    """Newton's method to round-off; the Jacobian is kept while it serves.

    **Returns:** the solution, whether it is one, and the number of iterations.
    """
    step, start = stop_gradients((step, start))
    n, dtype = step.shift.size, start.dtype
    eps = jnp.finfo(dtype).eps
    x, _ = step.chart.layout.poses(step.chart.origin)
    sizes = step.dynamics.sizes(x).ravel()
    # Increments of that part of the size of the system, or of a radian, are round-off of the pose.
    noise = 1e4 * eps

    def running(carry):
        return ~carry[-1]

    def turn(carry):
        k, z, size, stale, inverse_of_J, _ = carry
        inverse_of_J = jax.lax.cond(
            stale, lambda z: inverse(step.jacobian(z)), lambda z: inverse_of_J, z
        )
        change = -inverse_of_J @ step.residual(z)
        new_size = jnp.max(jnp.abs(change[:n]) / sizes)
        z = z + change
        largest = jnp.max(jnp.abs(step.shift + step.split(z)[0]).ravel() / sizes)
        at_rest = (new_size >= 0.5 * size) & (new_size <= noise)
        done = (new_size <= eps * largest) | at_rest
        ended = done | (k + 1 == _LIMIT) | ~jnp.isfinite(new_size)
        return k + 1, z, new_size, new_size > _SLOW * size, inverse_of_J, ended

    empty = jnp.zeros((start.size, start.size), dtype)
    carry = jnp.array(0), start, jnp.array(jnp.inf, dtype), jnp.array(True), empty, jnp.array(False)
    count, z, size, _, _, _ = jax.lax.while_loop(running, turn, carry)
    okay = (size <= noise) & jnp.all(jnp.isfinite(z))
    if step.idle is not None:
        # What multipliers cannot do must be satisfied by itself, or the constraints contradict.
        gap = jnp.abs(step.idle @ step.split(z)[1]) / step.dynamics.units
        okay = okay & (jnp.max(gap, initial=0.0) <= noise)
    return jnp.where(okay, z, start), okay, count
