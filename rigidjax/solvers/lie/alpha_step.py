"""The equations of a step of the generalised-alpha method, and their Newton iteration."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Count, Flag, Scalar, Vector
from ...small_arrays import inverse
from ..base.implicit import AbstractImplicitStep
from ..dae.equations import stop_gradients
from .chart import Chart, ChartIncrement
from .dynamics import Dynamics, Pose
from .tree_elimination import TreePlan, factor_tree, newton_blocks, plan_tree, solve_tree

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
        forces, gap, on_bodies = self.dynamics.evaluate(self.t1, pose, w, lam)
        balance = self.scale * (self.dynamics.momenta(rate) - forces) + on_bodies
        if self.redundant is not None:
            gap = gap + self.redundant @ lam
        return jnp.concatenate([balance.ravel(), gap])

    def factor(self, z: Vector) -> Any:
        """Return the factored Jacobian, at linear cost for a tree."""
        plan = plan_tree(self.dynamics.prepared)
        if plan is None:
            return inverse(self.jacobian(z))
        return factor_tree(plan, *self._tree_blocks(plan, z))

    def _tree_blocks(self, plan: TreePlan, z: Vector) -> tuple[Array, Array, Array]:
        n = self.shift.size
        gradients = self.dynamics.joint_gradients(self.t1, self.end(z)[0])

        def along(seed):
            tangent = jnp.concatenate([seed.ravel(), jnp.zeros(z.size - n, z.dtype)])
            change = jax.jvp(lambda z: self.residual(z), (z,), (tangent,))[1]
            return change[:n].reshape(self.shift.shape), gradients.pad(change[n:])

        return newton_blocks(plan, along, gradients)

    def solve(self, factors: Any, right: Vector) -> Vector:
        """Return the solution of the linear equations with a factored Jacobian."""
        plan = plan_tree(self.dynamics.prepared)
        if plan is None:
            return factors @ right
        n, shape = self.shift.size, self.shift.shape
        gradients = self.dynamics.joint_gradients(self.t1, self.end(jnp.zeros_like(right))[0])
        gaps = jnp.pad(gradients.pad(right[n:]), ((0, 1), (0, 0)))
        rows = jnp.concatenate([right[:n].reshape(shape), gaps[plan.joints]], axis=1)
        solution = solve_tree(plan, factors, rows)
        joints = plan.joints < len(gradients.counts)
        order = np.argsort(plan.joints[joints])
        lam = gradients.unpad(solution[joints][order][:, shape[1] :])
        return jnp.concatenate([solution[:, : shape[1]].ravel(), lam])

    def solve_structured(self, Z: Array, right: Array, okay: bool | Flag) -> Array | None:
        plan = plan_tree(self.dynamics.prepared)
        if plan is None:
            return None
        diagonal, up, down = self._tree_blocks(plan, Z)
        unit = jnp.eye(diagonal.shape[1], dtype=diagonal.dtype)
        blocks = (
            jnp.where(okay, diagonal, unit),
            jnp.where(okay, up, 0.0),
            jnp.where(okay, down, 0.0),
        )
        return self.solve(factor_tree(plan, *blocks), right)


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
        k, z, size, stale, factors, _ = carry
        factors = jax.lax.cond(stale, lambda z: step.factor(z), lambda z: factors, z)
        change = -step.solve(factors, step.residual(z))
        new_size = jnp.max(jnp.abs(change[:n]) / scales)
        z = z + change
        largest = jnp.max(jnp.abs(step.shift + step.split_unknowns(z)[0]).ravel() / scales)
        has_stagnated = (new_size >= 0.5 * size) & (new_size <= noise)
        done = (new_size <= eps * largest) | has_stagnated
        ended = done | (k + 1 == _MAX_ITERATIONS) | ~jnp.isfinite(new_size)
        return k + 1, z, new_size, new_size > _SLOW_CONVERGENCE * size, factors, ended

    empty = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        jax.eval_shape(lambda z: step.factor(z), start),
    )
    carry = jnp.array(0), start, jnp.array(jnp.inf, dtype), jnp.array(True), empty, jnp.array(False)
    count, z, size, _, _, _ = jax.lax.while_loop(is_running, iterate, carry)
    okay = (size <= noise) & jnp.all(jnp.isfinite(z))
    if step.redundant is not None:
        # Redundant constraints that the others do not satisfy contradict these.
        gap = jnp.abs(step.redundant @ step.split_unknowns(z)[1]) / step.dynamics.constraint_scales
        okay = okay & (jnp.max(gap, initial=0.0) <= noise)
    return jnp.where(okay, z, start), okay, count
