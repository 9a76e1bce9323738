"""Sherif's forms of the rotational equations of motion in Euler parameters."""

from typing import Any, Literal, get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.euler_equations import angular_momentum
from ..bodies.fixed_point import FixedPointBody
from ..rotations import so3
from ..rotations.quaternion import Quaternion
from ..system import System, as_mechanics, has_joints
from .absolute_base import AbstractAbsolute
from .charts import Unknowns

Form = Literal[
    "zero-multiplier",
    "no-multiplier",
    "simplified-gyroscopic",
    "simplified-torque",
    "virtual-work",
]


class EulerParameters(AbstractAbsolute):
    r"""The equations of motion in Euler parameters, in one of Sherif's forms.

    The unknowns are $(x, p, \dot x, \dot p)$ of each body. With the matrices $G$, $L$ of
    $A = G L^T$, $\Omega = 2 L \dot p$, forces $f$ at points $u$ of the body, and
    $n = u \times A^T f$, every form reads $4 L^T J L\,\ddot p + c + p\,\lambda = Q$ with

    | form | $c$ | $Q$ | $\lambda$ | Sherif |
    |---|---|---|---|---|
    | `"zero-multiplier"` | $c_1$ | $Q_1$ | 0 | (23), (37) |
    | `"no-multiplier"` | $L\,c_1$ | $L\,Q_1$ | eliminated, three equations | (25) |
    | `"simplified-gyroscopic"` | $c_2$ | $Q_1$ | $-8 p^T \dot L^T J L \dot p$ | (29), (30) |
    | `"simplified-torque"` | $c_1$ | $2 H^T G^T f$ | $2 p^T H^T G^T f$ | (82), (84) |
    | `"virtual-work"` | $c_1$ | $Q_2$ | $p^T Q_2$ | (62), (69) |

    where $c_1 = 8 L^T L \dot L^T J L \dot p$, $c_2 = 8 \dot L^T J L \dot p$, $Q_1 = 2 L^T n$,
    $Q_2 = (\partial (A u) / \partial p)^T f = 2 H^T G^T f + 2 p\,u^T f$.
    Together with $p^T \ddot p + \dot p^T \dot p = 0$ all of them have the same solution
    $\ddot p$, (38), (40) and (84), which is what `vector_field` returns, and therefore the same
    motion. What differs is $\lambda$. Sherif admits forces alone; a pure moment counts as the
    couple whose $\sum f \otimes u$ has no symmetric part.

    **Arguments:**

    - `system`: a `System` or a `FixedPointBody` (whose unknowns are $p$, $\dot p$ alone).
    - `form`: one of the names in the table.

    **Raises:** `ValueError` for another form.
    **Source:** Sherif, Sections 3 and 4.
    """

    system: System | FixedPointBody
    form: Form = eqx.field(static=True)

    def __init__(self, system: System | FixedPointBody, form: Form = "zero-multiplier"):
        if form not in get_args(Form):
            names = ", ".join(f'"{name}"' for name in get_args(Form))
            raise ValueError(f"`EulerParameters(form=...)` must be one of {names}; got {form!r}.")
        as_mechanics(system)
        if has_joints(system):
            raise ValueError(
                "`EulerParameters` writes the equations of single bodies; for a system with joints "
                "use `NullSpace` or `Absolute`, both with `rj.Quaternion()`."
            )
        self.system = system
        self.form = form

    @property
    def num_algebraic(self) -> int:
        return 0

    def vector_field(self, t: Float[Array, ""], y: Unknowns, args: Any = None) -> Unknowns:
        return self.index_0_field(t, y)

    def project(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        return self.explicit_projection(t, y)

    @property
    def rotation(self) -> Quaternion:
        """The quaternion: Euler parameters are its components."""
        return Quaternion()

    @property
    def recharting(self) -> bool:
        """False: there is no singularity."""
        return False

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        r"""Multiplier $\lambda$ of $p^T p = 1$ of each body in the equations of `form`, J.

        **Returns:** shape (L,), or (0,) for `"no-multiplier"`.
        **Source:** Sherif (30), (37), (84), and $p^T Q_{p,2}$ of (69).
        """
        kinematics = self.kinematics(t, y)
        mechanics = self.mechanics
        coordinates, rates = self.split_coordinates(y)
        if self.form == "no-multiplier":
            return jnp.zeros(0, coordinates[0].dtype)
        if self.form == "zero-multiplier":
            return jnp.zeros(len(coordinates), coordinates[0].dtype)
        if self.form == "simplified-gyroscopic":
            return jnp.stack(
                [
                    gyroscopic_multiplier(p, p_dot, inertia)
                    for p, p_dot, inertia in zip(
                        coordinates, rates, mechanics.inertias(), strict=True
                    )
                ]
            )
        virials = mechanics.virials(t, kinematics)
        if self.form == "simplified-torque":
            return jnp.stack(
                [
                    torque_multiplier(virial, p)
                    for virial, p in zip(virials, coordinates, strict=True)
                ]
            )
        return jnp.stack(
            [
                torque_multiplier(virial, p) + gradient_multiplier(R, moment, virial)
                for R, (_, moment), virial, p in zip(
                    kinematics.rotations,
                    mechanics.wrenches(t, kinematics),
                    virials,
                    coordinates,
                    strict=True,
                )
            ]
        )


def gyroscopic_multiplier(
    p: Float[Array, "4"],
    p_dot: Float[Array, "4"],
    inertia: Float[Array, "3"] | Float[Array, "3 3"],
) -> Float[Array, ""]:
    r"""$-8 p^T \dot L^T J L \dot p = 8 h \cdot J h$, $h = L \dot p$: four times the kinetic energy.

    From $p^T \dot L^T v = -(L \dot p) \cdot v$. **Source:** Sherif (30).
    """
    h = 0.5 * Quaternion().angular_velocity(p, p_dot)
    return 8.0 * so3.dot(h, angular_momentum(inertia, h))


def torque_multiplier(virial: Float[Array, "3 3"] | None, p: Float[Array, "4"]) -> Float[Array, ""]:
    r"""$2 p^T H^T G^T f = 2 u \cdot A^T f$, twice the trace of the virial.

    As quaternions $G^T f = p f_b$ with $f_b = A^T f$, and $H^T q = -q u$, so that
    $H^T G^T f = -p f_b u = p\,(f_b \cdot u,\; u \times f_b)$. **Source:** Sherif (84).
    """
    return jnp.zeros((), p.dtype) if virial is None else 2.0 * jnp.trace(virial)


def gradient_multiplier(
    R: Float[Array, "3 3"],
    moment: Float[Array, "3"] | None,
    virial: Float[Array, "3 3"] | None,
) -> Float[Array, ""]:
    r"""$2 u^T f$ with $u$ in body and $f$ in space components, as in Sherif (69).

    Summed over the forces it is $2\,\mathrm{tr}(A D)$, $D = \sum f_b \otimes u$; the symmetric part
    of $D$ is the virial, its skew part half the skew matrix of the moment. The value depends on
    how $A$ is continued to $|p| \ne 1$, Sherif (5), and means nothing in mechanics.
    """
    total = jnp.zeros((), R.dtype)
    if virial is not None:
        total = total + 2.0 * jnp.sum(R * virial)
    if moment is not None:
        total = total - 2.0 * so3.dot(so3.unskew(R), moment)
    return total
