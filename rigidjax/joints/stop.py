"""Stops at the limits of a joint."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import ArrayInput
from .friction import law_constant


class Stop(eqx.Module):
    r"""Elastic, dissipative stops at the `limits` of a joint.

    At a depth $\delta$ beyond a limit, approached at the rate $\dot\delta$, a stop pushes back with

    $$F = f(\delta)\,\phi(c\,\dot\delta), \qquad
    f = \begin{cases} 0 & \delta \le 0 \\ k\,\delta^2 / 2w & 0 \le \delta \le w \\
    k\,(\delta - w/2) & \delta \ge w \end{cases} \qquad
    \phi(y) = \begin{cases} 1 + y & y \ge -\frac12 \\ -1 / 4y & y \le -\frac12 \end{cases}$$

    that is a linear spring which sets in within a width $w$, with the dissipation of Hunt and
    Crossley. $F$ has continuous first derivatives, acts only beyond the limit, and never pulls:
    instead of becoming negative for a fast retreat, $\phi$ goes to zero. The energy of the spring
    counts as potential energy; the stop never adds energy. The ratio of the rates after and before
    a slow impact is $1 - \frac23 c v$, whatever the mass and the stiffness are.

    It is given to a joint, as in `rj.Revolute(..., limits=(-1.0, 1.0), stop=rj.Stop(500.0))`. The
    defaults suit mechanisms of about a metre and a kilogram: choose a stiffness for which the
    greatest depth is acceptable, which for an impact at the rate $v$ of the inertia $m$ is about
    $v\sqrt{m/k}$. The stiffer the stop, the shorter the steps of a solver in it. Every argument is
    a scalar, or has an entry for each coordinate of the joint.

    **Arguments:**

    - `stiffness`, $k$, N/m where the coordinate is a length, N m/rad where it is an angle.
    - `dissipation`, $c$, s/m or s/rad; 0 for an elastic stop.
    - `width`, $w$, m or rad.

    **Errors:** `ValueError` for negative values, a width of zero, or a wrong shape; when the joint
    is built, for a wrong number of entries.
    **Source:** Hunt and Crossley (1975), J. Appl. Mech. 42, with $\phi$ continued below $-1/2$.
    """

    stiffness: Float[Array, " *f"]
    dissipation: Float[Array, " *f"]
    width: Float[Array, " *f"]

    def __init__(
        self, stiffness: ArrayInput = 1e4, dissipation: ArrayInput = 0.5, width: ArrayInput = 1e-3
    ):
        self.stiffness = law_constant(stiffness, "Stop(stiffness=...)")
        self.dissipation = law_constant(dissipation, "Stop(dissipation=...)")
        self.width = law_constant(width, "Stop(width=...)", is_positive=True)

    def force(self, depth: Scalar, rate: Scalar) -> Scalar:
        """Return the force, N, or moment, N m, out of the stop.

        **Arguments:** `depth` beyond the limit, m or rad, negative before it; `rate` of the depth.
        """
        depth = jnp.maximum(depth, 0.0)
        onset = jnp.minimum(depth, self.width)
        elastic = self.stiffness * onset * (depth - 0.5 * onset) / self.width
        y = self.dissipation * rate
        return elastic * jnp.where(y >= -0.5, 1.0 + y, -0.25 / jnp.minimum(y, -0.5))

    def energy(self, depth: Scalar) -> Scalar:
        """Return the energy of the spring, J; `depth` as for `force`."""
        depth = jnp.maximum(depth, 0.0)
        onset = jnp.minimum(depth, self.width)
        square = 0.5 * depth * (depth - onset) + onset * onset / 6.0
        return self.stiffness * onset * square / self.width
