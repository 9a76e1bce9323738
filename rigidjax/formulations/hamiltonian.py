"""Hamilton's equations in quaternions and their momenta."""

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Args, Matrix3, Scalar, Vector3
from ..bodies.euler_equations import angular_momentum, solve_inertia
from ..bodies.fixed_point import FixedPointBody
from ..mechanics import System, check_constant_masses, check_system, has_joints, system_of
from ..mechanics.dynamics.loads import applied_wrenches, force_virials, free_accelerations
from ..mechanics.kinematics.poses import Twists, joint_frames_at
from ..mechanics.stacked.joints import JointFrames, Poses
from ..mechanics.stacked.system import PreparedSystem, StackedSystem
from ..rotations import so3
from ..rotations.quaternion import Quaternion
from .base import AbstractFormulation
from .binding import compile_method
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
    $q$, $p$ alone); `radial_inertia`, $J_0$, see above.
    **Raises:** `ValueError` for joints, and another `radial_inertia`.
    **Source:** Betsch-Siebert (33), (36), (38)-(40), remarks 4.1, 4.2.
    """

    system: System | FixedPointBody
    arrays: PreparedSystem | StackedSystem | None
    rotation: Quaternion
    needs_all_mass: ClassVar[bool] = True
    takes_controllers: ClassVar[bool] = False

    def __init__(
        self,
        system: System | FixedPointBody,
        radial_inertia: Literal["zero", "half-trace"] = "half-trace",
    ):
        check_system(system)
        check_constant_masses("`Hamiltonian`", system_of(system))
        if has_joints(system):
            raise ValueError(
                "`Hamiltonian` writes the equations of single bodies; for a system with joints use "
                "`NullSpace` or `Absolute`, both with `rj.Quaternion()`."
            )
        self.system = system
        self.arrays = None
        self.rotation = Quaternion(radial_inertia)

    @property
    def recharting(self) -> bool:
        """False: there is no singularity."""
        return False

    @property
    def num_algebraic(self) -> int:
        return 0

    @property
    def layout(self) -> Layout:
        system = self.multibody
        return Layout(system.num_bodies, system.translates, 4, 4)

    def velocities_of(
        self,
        t: Scalar,
        poses: Poses,
        joint_frames: JointFrames,
        coordinates: Float[Array, "k n"],
        twists: Twists,
    ):
        def momentum(q, inertia, omega):
            return 2.0 * so3.multiply(q, so3.pure(angular_momentum(inertia, omega)))

        prepared = self.prepared_system
        p = jax.vmap(momentum)(coordinates, prepared.inertias, twists.angular)
        return self.layout.join(prepared.masses[:, None] * twists.linear, p)

    def motion(self, t: Scalar, y: Unknowns):
        def omega(q, p, inertia):
            return 0.5 * solve_inertia(inertia, so3.multiply(so3.conjugate(q), p)[1:])

        prepared, poses = self.prepared_system, self.poses(t, y)
        velocities = self.layout.twists(split_chart(y)[0])[0] / prepared.masses[:, None]
        omegas = jax.vmap(omega)(*self._phases(y), prepared.inertias)
        return poses, joint_frames_at(prepared, poses), Twists(velocities, omegas)

    def coordinate_rates(self, y: Unknowns, twists: Twists):
        return jax.vmap(self.rotation.rate)(self._phases(y)[0], twists.angular)

    @compile_method
    def accelerations(self, t: Scalar, y: Unknowns):
        return free_accelerations(self.prepared_system, t, self.kinematics(t, y))

    def phases(self, y: Unknowns) -> list[tuple[Float[Array, "4"], Float[Array, "4"]]]:
        """Return quaternion $q$ and momentum $p$, kg m^2/s, of each body."""
        return list(zip(*self._phases(y), strict=True))

    def _phases(self, y: Unknowns) -> tuple[Float[Array, "L 4"], Float[Array, "L 4"]]:
        values, _ = split_chart(y)
        return self.layout.poses(values)[1], self.layout.twists(values)[1]

    def vector_field(self, t: Scalar, y: Unknowns, args: Args = None) -> Unknowns:
        model = self.prepare()
        prepared, layout, kinematics = model.prepared_system, self.layout, model.kinematics(t, y)
        wrenches = applied_wrenches(prepared, t, kinematics)

        def rates(q, p, inertia, moment):
            pi = so3.multiply(so3.conjugate(q), p)
            radial = pi[:1] / _half_trace(inertia)
            if self.rotation.radial_inertia == "zero":
                radial = jnp.zeros_like(radial)
            across = solve_inertia(inertia, pi[1:])
            rate = 0.25 * so3.multiply(q, jnp.concatenate([radial, across]))
            slope = 0.25 * so3.multiply(p, jnp.concatenate([-radial, across]))
            # The multiplier balances the part of f along q.
            return rate, slope + 2.0 * so3.multiply(q, so3.pure(moment))

        q_dot, p_dot = jax.vmap(rates)(*self._phases(y), prepared.inertias, wrenches[:, 3:])
        velocities = jnp.asarray(kinematics.velocities)
        slopes = layout.join(wrenches[:, :3], p_dot)
        return jnp.concatenate([layout.join(velocities, q_dot), slopes])

    def drift(self, t: Scalar, y: Unknowns) -> tuple[Scalar, Scalar]:
        r"""Return the largest $|g(q)|$, (37), and $|q \cdot p| / (4 J_0)$, (40), 1/s.

        $J_0$ is half the trace of the inertia.
        """
        q, p = self._phases(y)
        radial = 4.0 * jax.vmap(_half_trace)(self.prepared_system.inertias)
        velocity = jnp.sum(q * p, axis=1) / radial
        position = jax.vmap(self.rotation.constraint)(q)
        return jnp.max(jnp.abs(position)), jnp.max(jnp.abs(velocity))

    def project(self, t: Scalar, y: Unknowns) -> Unknowns:
        r"""Return $q / |q|$ and $|q|\,(p - q\,(q \cdot p) / |q|^2)$, which keep $G(q)\,p$ and
        $E(q)\,p$."""
        values, _ = split_chart(y)
        layout, (q, p) = self.layout, self._phases(y)
        length = jnp.sqrt(jnp.sum(q * q, axis=1, keepdims=True))
        unit = q / length
        p = length * (p - jnp.sum(unit * p, axis=1, keepdims=True) * unit)
        momenta = layout.join(layout.twists(values)[0], p)
        return jnp.concatenate([layout.join(layout.poses(values)[0], unit), momenta])

    def multipliers(self, t: Scalar, y: Unknowns) -> Float[Array, " m"]:
        r"""Return $\lambda = q \cdot f$ of each body, $-q \cdot \nabla V$ of a potential, (L,), J.

        It is $2\,\mathrm{tr} \sum f \otimes u$ for $R(q)$ of degree 2; there is no inertial part.
        **Source:** Betsch-Siebert, remark 4.2.
        """
        virials = force_virials(self.prepared_system, t, self.kinematics(t, y))
        return 2.0 * jnp.trace(virials, axis1=1, axis2=2)


def inverse_mass_matrix(q: Float[Array, "4"], inertia: Vector3 | Matrix3) -> Float[Array, "4 4"]:
    r"""Return $M_4(q)^{-1} = \frac14 Q_l(q)\,J_4^{-1} Q_l(q)^T$ for $|q| = 1$, (4, 4), 1/(kg m^2).

    **Source:** Betsch-Siebert (33).
    """
    G = so3.left_matrix(q)[:, 1:].T
    solved = jax.vmap(lambda column: solve_inertia(inertia, column), 1, 1)(G)
    return 0.25 * (jnp.outer(q, q) / _half_trace(inertia) + G.T @ solved)


def _half_trace(inertia: Vector3 | Matrix3):
    return 0.5 * (jnp.sum(inertia) if inertia.ndim == 1 else jnp.trace(inertia))
