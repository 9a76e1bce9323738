"""Hamilton's equations in quaternions and their momenta."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies.euler_equations import angular_momentum, solve_inertia
from ..bodies.fixed_point import FixedPointBody
from ..checks import ArrayInput
from ..forces.base import Kinematics
from ..rotations import so3
from ..rotations.quaternion import Quaternion
from ..state import State
from ..system import System, as_mechanics, has_joints
from ..system.jointed import JointedMechanics
from .base import AbstractFormulation
from .charts import Unknowns, split_chart
from .layout import Layout


class Hamiltonian(AbstractFormulation):
    r"""Hamilton's equations, $y = (x, q, P, p)$ of each body, $P = m \dot x$, $p = M_4(q)\,\dot q$.

    With $\pi = \bar q\,p = (q \cdot p,\ G(q)\,p)$ and $w = J_4^{-1} \pi$, $J_4 =
    \mathrm{diag}(J_0, J)$, they are $\dot q = \frac14 q\,w$ and $\dot p = \frac14 p\,w^* + f -
    \lambda q$, $w^* = (-w_0, w_1, w_2, w_3)$, with generalised forces $f = -\nabla V(q)$ of a
    potential. The multiplier of $|q| = 1$ is eliminated: $\lambda = q \cdot f$ keeps
    $q \cdot p = 0$.

    - `radial_inertia="half-trace"`, $J_0 = \frac12 \mathrm{tr} J$: the regular mass matrix.
    - `"zero"`: the singular one, with its Moore-Penrose inverse for the inverse, so that
      $w_0 = 0$: $q$ keeps its length exactly, whatever $q \cdot p$.

    For $q \cdot p = 0$ both are the same. The projection moves the variables onto the constraints
    and changes neither the kinetic energy nor the angular momentum $\frac12 E(q)\,p$.

    **Arguments:** `system`, a `System` without joints or a `FixedPointBody` (whose unknowns are
    $q$, $p$ alone); `radial_inertia`.
    **Raises:** `ValueError` for joints, and another `radial_inertia`.
    **Source:** Betsch-Siebert (33), (36), (38)-(40), remarks 4.1, 4.2.
    """

    system: System | FixedPointBody
    built: JointedMechanics | None
    rotation: Quaternion

    def __init__(
        self,
        system: System | FixedPointBody,
        radial_inertia: Literal["zero", "half-trace"] = "half-trace",
    ):
        as_mechanics(system)
        if has_joints(system):
            raise ValueError(
                "`Hamiltonian` writes the equations of single bodies; for a system with joints use "
                "`NullSpace` or `Absolute`, both with `rj.Quaternion()`."
            )
        self.system = system
        self.built = None
        self.rotation = Quaternion(radial_inertia)

    @property
    def recharting(self) -> bool:
        """False: there is no singularity."""
        return False

    @property
    def num_algebraic(self) -> int:
        return 0

    @property
    def jointed(self) -> None:
        """`None`: momenta are no velocities."""
        return None

    @property
    def layout(self) -> Layout:
        mechanics = self.mechanics
        return Layout(mechanics.num_bodies, mechanics.translates, 4, 4)

    def pack(
        self,
        state: State,
        reference: Float[Array, "L 4"] | None = None,
        t: ArrayInput = 0.0,
    ) -> Float[Array, " N"]:
        mechanics, coordinates = self.mechanics, list(jnp.unstack(state.orientation))
        momenta = [
            2.0 * so3.multiply(q, _pure(angular_momentum(inertia, w)))
            for q, w, inertia in zip(
                coordinates, jnp.unstack(state.angular_velocity), mechanics.inertias(), strict=True
            )
        ]
        if not mechanics.translates:
            return self.layout.join((), coordinates, (), momenta)
        linear = jnp.stack(mechanics.masses())[:, None] * state.velocity
        return self.layout.join(state.position, coordinates, linear, momenta)

    def kinematics(self, t: Float[Array, ""], y: Unknowns) -> Kinematics:
        values, _ = split_chart(y)
        layout, bodies = self.layout, range(self.layout.num_bodies)
        rotations = tuple(self.rotation_matrix(values, None, i) for i in bodies)
        omegas = tuple(
            0.5 * solve_inertia(inertia, so3.multiply(so3.conjugate(q), p)[1:])
            for (q, p), inertia in zip(self.phases(y), self.mechanics.inertias(), strict=True)
        )
        if not layout.translates:
            return Kinematics((), rotations, (), omegas)
        masses = jnp.stack(list(self.mechanics.masses()))
        positions, velocities = layout.poses(values)[0], layout.twists(values)[0] / masses[:, None]
        return Kinematics(positions, jnp.stack(rotations), velocities, jnp.stack(omegas))

    def phases(self, y: Unknowns) -> list[tuple[Float[Array, "4"], Float[Array, "4"]]]:
        """Quaternion $q$ and momentum $p$, kg m^2/s, of each body."""
        values, _ = split_chart(y)
        layout = self.layout
        return [
            (layout.coordinates(values, i), layout.rates(values, i))
            for i in range(layout.num_bodies)
        ]

    def vector_field(self, t: Float[Array, ""], y: Unknowns, args: Any = None) -> Unknowns:
        mechanics, kinematics = self.mechanics, self.kinematics(t, y)
        values, _ = split_chart(y)
        wrenches = mechanics.wrenches(t, kinematics)
        rates, slopes = [], []
        for (q, p), inertia, (_, moment) in zip(
            self.phases(y), mechanics.inertias(), wrenches, strict=True
        ):
            pi = so3.multiply(so3.conjugate(q), p)
            radial = pi[:1] / _half_trace(inertia)
            if self.rotation.radial_inertia == "zero":
                radial = jnp.zeros_like(radial)
            across = solve_inertia(inertia, pi[1:])
            rates.append(0.25 * so3.multiply(q, jnp.concatenate([radial, across])))
            slope = 0.25 * so3.multiply(p, jnp.concatenate([-radial, across]))
            # What of f is along q, the multiplier takes.
            if moment is not None:
                slope = slope + 2.0 * so3.multiply(q, _pure(moment))
            slopes.append(slope)
        forces = [jnp.zeros(3, values.dtype) if f is None else f for f, _ in wrenches]
        return self.layout.join(kinematics.velocities, rates, forces, slopes)

    def drift(self, t: Float[Array, ""], y: Unknowns) -> tuple[Float[Array, ""], Float[Array, ""]]:
        r"""Largest $|g(q)|$, (37), and $|q \cdot p| / (4 J_0)$, (40), 1/s, $J_0$ half the trace."""
        pairs = self.phases(y)
        position = [jnp.abs(self.rotation.constraint(q))[0] for q, _ in pairs]
        velocity = [
            jnp.abs(jnp.sum(q * p)) / (4.0 * _half_trace(inertia))
            for (q, p), inertia in zip(pairs, self.mechanics.inertias(), strict=True)
        ]
        return jnp.max(jnp.stack(position)), jnp.max(jnp.stack(velocity))

    def project(self, t: Float[Array, ""], y: Unknowns) -> Unknowns:
        r"""$q / |q|$ and $|q|\,(p - q\,(q \cdot p) / |q|^2)$: $G(q)\,p$ and $E(q)\,p$ stay."""
        values, _ = split_chart(y)
        for i, (q, p) in enumerate(self.phases(y)):
            length = jnp.sqrt(jnp.sum(q * q))
            unit = q / length
            values = self.layout.set_coordinates(values, i, unit)
            values = self.layout.set_rates(values, i, length * (p - jnp.sum(unit * p) * unit))
        return values

    def multipliers(self, t: Float[Array, ""], y: Unknowns) -> Float[Array, " m"]:
        r"""$\lambda = q \cdot f$ of each body, $-q \cdot \nabla V$ of a potential; shape (L,), J.

        $2\,\mathrm{tr} \sum f \otimes u$ for $R(q)$ of degree 2; there is no inertial part.
        **Source:** Betsch-Siebert, remark 4.2.
        """
        virials = self.mechanics.virials(t, self.kinematics(t, y))
        zero = jnp.zeros((), split_chart(y)[0].dtype)
        return jnp.stack([zero if v is None else 2.0 * jnp.trace(v) for v in virials])


def inverse_mass_matrix(
    q: Float[Array, "4"], inertia: Float[Array, "3"] | Float[Array, "3 3"]
) -> Float[Array, "4 4"]:
    r"""$M_4(q)^{-1} = \frac14 Q_l(q)\,J_4^{-1} Q_l(q)^T$ for $|q| = 1$, shape (4, 4), 1/(kg m^2).

    **Source:** Betsch-Siebert (33).
    """
    G = so3.left_matrix(q)[:, 1:].T
    solved = jax.vmap(lambda column: solve_inertia(inertia, column), 1, 1)(G)
    return 0.25 * (jnp.outer(q, q) / _half_trace(inertia) + G.T @ solved)


def _half_trace(inertia):
    return 0.5 * (jnp.sum(inertia) if inertia.ndim == 1 else jnp.trace(inertia))


def _pure(w: Float[Array, "3"]) -> Float[Array, "4"]:
    return jnp.concatenate([jnp.zeros_like(w[:1]), w])
