"""Principal moments of inertia that are physically possible."""

import itertools
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...bodies.inertia import euler_tensor, inertia_from_euler_tensor
from .base import AbstractElements, ActiveLimit, Limits, clip_value

_NAMES = ("I1", "I2", "I3")

# Distance of start values to the boundary of the physical inertias: principal Euler values relative
# to half the trace, and relative to the smallest moment that is fixed.
_MARGIN_OF_TRACE = 1e-3
_MARGIN_OF_FIXED = 2e-2

# Matrix that maps principal moments to principal Euler values.
_EULER_VALUES = 0.5 * np.array([[-1.0, 1, 1], [1, -1, 1], [1, 1, -1]])


def euler_floor(trace: Array) -> Array:
    """Return the Euler value that counts as zero for a body whose moments have this sum."""
    return 0.03 * np.sqrt(jnp.finfo(trace.dtype).eps) * trace


class PrincipalInertia(AbstractElements):
    r"""Principal moments whose principal Euler values are never negative.

    With $I_i = E_j + E_k$ a body is physical if no $E_i = \frac12(I_j + I_k - I_i)$ is negative.

    - All moments fitted: $E_i = e^{u_i}$.
    - $I_k$ fixed: $E_i + E_j = I_k$ is divided by $E_i = \frac12 I_k (1 + u_1)$, $|u_1| \le 1$, and
      $E_k = e^{u_2}$.
    - $I_j$ and $I_k$ fixed: $I_i$ is linear in $u$ between $|I_j - I_k|$ and $I_j + I_k$.

    A linear coordinate reaches the limit of a flat body exactly. A logarithm stops at the
    negligible Euler value `euler_floor`, which represents the limit.

    **Arguments:** `fixed`, the moments that keep their start value, such as `("I3",)`.
    """

    fixed: tuple[str, ...] = eqx.field(static=True, default=())
    is_bounded: ClassVar[bool] = True

    def __check_init__(self):
        wrong = [name for name in self.fixed if name not in _NAMES]
        if isinstance(self.fixed, str) or wrong or len(set(self.fixed)) > 2:
            raise ValueError(
                "`PrincipalInertia(fixed=...)` takes at most two of the names in "
                f'("I1", "I2", "I3"), as a tuple; got {self.fixed!r}.'
            )

    def components(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        if shape != (3,):
            raise ValueError(
                "`PrincipalInertia` takes principal moments of shape (3,); got shape "
                f"{shape}. Use `InertiaTensor` for a full tensor"
            )
        return tuple("." + name for name in _NAMES)

    def fitted(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(i for i, name in enumerate(_NAMES) if name not in self.fixed)

    def admissible(self, leaf: np.ndarray) -> tuple[np.ndarray, str]:
        fixed = [i for i in range(3) if i not in self.fitted((3,))]
        if not (np.all(np.isfinite(leaf)) and np.all(leaf > 0)):
            raise ValueError(f"principal moments must start above zero; got {leaf}")
        margin = _MARGIN_OF_TRACE * 0.5 * leaf.sum()
        if fixed:
            margin = min(margin, _MARGIN_OF_FIXED * leaf[fixed].min())
        nearest = _nearest_physical(leaf, fixed, margin)
        if nearest is leaf:
            return leaf, ""
        values = _EULER_VALUES @ leaf
        lowest = int(np.argmin(values))
        reason = (
            f"violates the triangle inequality (principal Euler value E{lowest + 1} = "
            f"{values[lowest]:.4g} kg m^2 is negative)"
            if values[lowest] < 0
            else f"is on the limit of a flat body (E{lowest + 1} = {values[lowest]:.4g} kg m^2)"
        )
        return nearest, (
            f"the start {_format_moments(leaf)} kg m^2 {reason}; the fit started from the nearest "
            f"physical inertia, {_format_moments(nearest)} kg m^2"
        )

    def coordinates(self, leaf: Array) -> Float[Array, " k"]:
        E = euler_tensor(leaf)
        free = self.fitted((3,))
        if len(free) == 3:
            return jnp.log(E)
        if len(free) == 2:
            i, j, k = self._axes()
            return jnp.stack([(E[i] - E[j]) / leaf[k], jnp.log(E[k])])
        i, j, k = self._axes()
        lower, upper = jnp.abs(leaf[j] - leaf[k]), leaf[j] + leaf[k]
        return ((2 * leaf[i] - lower - upper) / (upper - lower))[None]

    def leaf(self, u: Float[Array, " k"], reference: Array) -> Array:
        free = self.fitted((3,))
        if len(free) == 3:
            return inertia_from_euler_tensor(jnp.exp(u))
        i, j, k = self._axes()
        if len(free) == 2:
            half, s, Ek = 0.5 * reference[k], clip_value(u[0], -1.0, 1.0), jnp.exp(u[1])
            moments = {i: half * (1 - s) + Ek, j: half * (1 + s) + Ek, k: reference[k]}
        else:
            lower = jnp.abs(reference[j] - reference[k])
            upper = reference[j] + reference[k]
            middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
            moments = {
                i: middle + half * clip_value(u[0], -1.0, 1.0),
                j: reference[j],
                k: reference[k],
            }
        return jnp.stack([moments[0], moments[1], moments[2]])

    def spread(self, reference: Array) -> Float[Array, " k"]:
        return jnp.ones_like(self.coordinates(reference))

    def limits(self, reference: Array) -> Limits:
        linear = {3: 0, 2: 1, 1: 1}[len(self.fitted((3,)))]
        floor = jnp.log(euler_floor(jnp.sum(reference)))
        one = jnp.ones(len(self.fitted((3,))), reference.dtype)
        is_linear = np.arange(one.size) < linear
        return Limits(
            jnp.where(is_linear, -one, floor),
            jnp.where(is_linear, one, jnp.inf),
            jnp.where(is_linear, jnp.inf, one),
        )

    def active_limits(self, leaf: np.ndarray, sides: np.ndarray) -> tuple[ActiveLimit, ...]:
        free = self.fitted((3,))
        i, j, k = self._axes()
        if len(free) == 3:
            flat = [axis for axis in free if sides[axis] < 0]
        elif len(free) == 2:
            flat = [j if sides[0] > 0 else i] * bool(sides[0]) + [k] * bool(sides[1] < 0)
        elif sides[0]:
            # The upper bound of I_i is E_i = 0; at its lower bound the Euler value of the larger
            # fixed moment is zero.
            flat = [i if sides[0] > 0 else (j if leaf[j] > leaf[k] else k)]
        else:
            flat = []
        return tuple(
            ActiveLimit(f"principal Euler value E{axis + 1}", _EULER_VALUES[axis], 0.0, True)
            for axis in flat
        )

    def _axes(self) -> tuple[int, int, int]:
        """Return the axes in cyclic order, with the fixed ones last."""
        free = self.fitted((3,))
        if len(free) == 2:
            k = 3 - free[0] - free[1]
            return (k + 1) % 3, (k + 2) % 3, k
        return free[0], (free[0] + 1) % 3, (free[0] + 2) % 3


def _nearest_physical(moments: np.ndarray, fixed: list[int], margin: float) -> np.ndarray:
    """Return the nearest moments (Euclidean) with every Euler value at least `margin`.

    Each set of active bounds has one candidate, the smallest change with equality in them.
    """
    gap = margin - _EULER_VALUES @ moments
    if np.all(gap <= 0):
        return moments
    free = [i for i in range(3) if i not in fixed]
    best, cost = None, np.inf
    for count in range(1, len(free) + 1):
        for active in map(list, itertools.combinations(range(3), count)):
            change = np.zeros(3)
            change[free] = np.linalg.lstsq(_EULER_VALUES[active][:, free], gap[active])[0]
            admissible = np.all(_EULER_VALUES @ change >= gap - 1e-9 * np.abs(moments).sum())
            if admissible and change @ change < cost:
                best, cost = moments + change, change @ change
    if best is None:
        raise ValueError(
            f"no physical inertia has the fixed moments {moments[fixed]} kg m^2 of {moments}"
        )
    return best.astype(moments.dtype)


def _format_moments(moments: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.6g}" for x in moments) + ")"
