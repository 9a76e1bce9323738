r"""The equations of motion in descriptor form, with multipliers as unknowns.

$\dot q = v$, $M(q)\,\dot v + G(q, t)^T \lambda = f(q, v, t)$ and the constraints at one of three
levels: $g(q, t) = 0$ (index 3), $G v + g_t = 0$ (index 2), $G \dot v + \gamma = 0$ (index 1).
Constraints on velocities alone, $A v + b = 0$, have rows of $G$ too; they have no position level
and stay on velocities where the others are on positions.
Automatic differentiation derives everything from the constraints, the kinetic energy and the
virtual work of forces, independently of the closed forms of the other formulations.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..annotations import Matrix, Scalar, Time, Vector
from ..joints.replacing import replace_fields
from ..mechanics.dynamics.loads import applied_wrenches, force_virials
from ..mechanics.dynamics.pseudo_inverse import ConstrainedEquations
from ..mechanics.dynamics.reactions import redundant_multipliers
from ..mechanics.kinematics.constraints import constraint_units, constraint_values
from ..mechanics.kinematics.extra_constraints import ExtraConstraints
from ..mechanics.kinematics.poses import Twists, assemble_poses, joint_frames_at
from ..rotations.so3 import skew
from ..small_arrays import block_diagonal, cross
from .binding import compile_method

# Singular values below this part of the largest one are zero: a mechanism is assembled to round-off
# at the start, and constraints so nearly dependent would not hold it.
_CUTOFF = 1e-8


def redundant_projector(
    descriptor: "Descriptor", t: Time, y0: Float[Array, " N"]
) -> Float[Array, "m m"]:
    r"""Return the projector onto the multipliers that have no effect at the unknowns `y0`.

    Where rows of the gradient $G$ depend on each other, the multipliers are not unique, and
    equations with multipliers as unknowns are singular. With the projector $Q$, $G^T Q = 0$, the
    equations $(1 - Q^T) g + Q^T U Q \lambda = 0$ replace $g = 0$. Both terms vanish separately: the
    independent constraints hold, and the redundant multipliers are determined. $U$, diagonal, has
    the squares of the scales of the constraints.

    It is exactly zero if all constraints are independent. The remaining multipliers have the least
    norm in the multipliers of joints, moments in units of the mechanism's length.
    """
    t = jnp.asarray(t, y0.dtype)
    prepared = descriptor.model.prepared_system
    poses, joint_frames, _ = descriptor.model.motion(t, y0)
    idle = redundant_multipliers(
        prepared, t, poses, joint_frames, constraint_units(prepared), _CUTOFF
    )
    q, _, angles = descriptor.split(y0)
    G = descriptor.jacobian(t, q, angles)
    count = len(G) - len(idle)
    internal, joints = G[:count], G[count:]
    # The internal constraints of the rotations balance their effect on rotation coordinates.
    carried = -jnp.linalg.solve(internal @ internal.T, internal @ joints.T) if count else G[:0, :0]
    both = jnp.concatenate([carried.reshape(count, -1) @ idle, idle]) if count else idle
    return jnp.concatenate([jnp.zeros_like(G, shape=(len(G), count)), both], axis=1)


if TYPE_CHECKING:
    from .absolute_base import AbstractAbsolute


class Descriptor(eqx.Module):
    """Constraints, masses and generalised forces of a model in the coordinates $q = (x, a)$.

    **Arguments:** `model`; `idle`, the projector onto multipliers without effect, (m, m), see
    `redundant_projector`; `None` if there are none; `law`, generalised forces of the model,
    $f(t, q, v, y_0)$, instead of Lagrange's.
    """

    model: "AbstractAbsolute"
    idle: Float[Array, "m m"] | None = None
    law: Callable | None = None

    @property
    def sizes(self) -> set[int]:
        """Numbers of unknowns that the methods of the model take."""
        return self.model.sizes

    def separate_arrays(self) -> "Descriptor":
        """Return the equations of the model with separate arrays."""
        return replace_fields(self, model=self.model.separate_arrays())

    def bind(self, t: Scalar, y: Float[Array, " N"]) -> "Descriptor":
        """Return the equations of the model with the values of its inputs at `(t, y)`."""
        return replace_fields(self, model=self.model.bind(t, y))

    def prepare(self, t: Scalar | None = None) -> "Descriptor":
        """Return the equations of the prepared model."""
        return replace_fields(self, model=self.model.prepare())

    def constraint(self, t: Scalar, q: Vector, angles: Float[Array, " A"]) -> Float[Array, " m"]:
        """Return internal constraints of every rotation, then constraints of the joints, group by
        group; zero for constraints on velocities alone."""
        model, layout = self.model, self.model.layout
        x, a = layout.poses(q)
        internal = jax.vmap(model.rotation.constraint)(a).ravel()
        prepared = model.prepared_system
        poses = assemble_poses(prepared, x, model.matrices(a, None), angles)
        return jnp.concatenate(
            [internal, constraint_values(prepared, t, joint_frames_at(prepared, poses))]
        )

    def constraint_rate(
        self, t: Scalar, q: Vector, v: Vector, angles: Float[Array, " A"]
    ) -> Float[Array, " m"]:
        """Return $G v + g_t$, and $A v + b$ of constraints on velocities alone."""
        tangents = (jnp.ones_like(t), v)
        rate = jax.jvp(lambda t, q: self.constraint(t, q, angles), (t, q), tangents)[1]
        return rate + self.slips(t, q, v, angles) if self.num_slips else rate

    @property
    def num_slips(self) -> int:
        """Number of constraints on velocities alone, the last ones."""
        return self.model.prepared_system.num_velocity_constraints

    def slips(
        self, t: Scalar, q: Vector, v: Vector, angles: Float[Array, " A"]
    ) -> Float[Array, " m"]:
        """Return $A v + b$ of the constraints on velocities alone, zero for the others."""
        model, prepared = self.model, self.model.prepared_system
        (x, a), (x_dot, a_dot) = model.layout.poses(q), model.layout.poses(v)
        poses = assemble_poses(prepared, x, model.matrices(a, None), angles)
        twists = Twists(x_dot, jax.vmap(model.rotation.angular_velocity)(a, a_dot))
        count = model.num_multipliers - self.num_slips
        return jnp.pad(ExtraConstraints(prepared).slips(t, poses, twists), (count, 0))

    def constraint_bias(
        self, t: Scalar, q: Vector, v: Vector, angles: Float[Array, " A"]
    ) -> Float[Array, " m"]:
        r"""Return $\gamma$, the part of $\ddot g = G\dot v + \gamma$ without accelerations."""
        tangents = (jnp.ones_like(t), v)
        return jax.jvp(lambda t, q: self.constraint_rate(t, q, v, angles), (t, q), tangents)[1]

    def jacobian(self, t: Scalar, q: Vector, angles: Float[Array, " A"]) -> Float[Array, "m n"]:
        """Return the gradient $G$ of the constraints."""
        G = jax.jacfwd(lambda q: self.constraint(t, q, angles))(q)
        if not self.num_slips:
            return G
        return G + jax.jacfwd(lambda v: self.slips(t, q, v, angles))(jnp.zeros_like(q))

    def reaction(
        self, t: Scalar, q: Vector, angles: Float[Array, " A"], lam: Float[Array, " m"]
    ) -> Vector:
        r"""Return $G^T \lambda$."""
        _, transpose = jax.vjp(lambda q: self.constraint(t, q, angles), q)
        if not self.num_slips:
            return transpose(lam)[0]
        _, of_slips = jax.vjp(lambda v: self.slips(t, q, v, angles), jnp.zeros_like(q))
        return transpose(lam)[0] + of_slips(lam)[0]

    def mass_matrices(self, q: Vector) -> Float[Array, "L k k"]:
        """Return the mass matrices of the bodies."""
        model, layout = self.model, self.model.layout
        prepared, (x, a) = model.prepared_system, layout.poses(q)
        turning = jax.vmap(model.rotation.mass_matrix)(a, prepared.inertias)
        moving = (jnp.ones_like(x) * prepared.masses[:, None])[:, : layout.shift]
        return jax.vmap(lambda m, M: jax.scipy.linalg.block_diag(jnp.diag(m), M))(moving, turning)

    def mass_matrix(self, q: Vector) -> Matrix:
        """Return the mass matrix $M$, block diagonal."""
        return block_diagonal(self.mass_matrices(q))

    def momentum(self, q: Vector, v: Vector) -> Vector:
        r"""Return $M(q)\,v$."""
        model, layout = self.model, self.model.layout
        prepared, (_, a), (x_dot, a_dot) = model.prepared_system, layout.poses(q), layout.poses(v)
        turning = jax.vmap(model.rotation.momentum)(a, a_dot, prepared.inertias)
        return layout.join(prepared.masses[:, None] * x_dot, turning)

    def force(self, t: Scalar, q: Vector, v: Vector, y0: Float[Array, " N"]) -> Vector:
        r"""Return applied and velocity-dependent generalised forces,
        $f = \psi - \dot M v + \nabla T$."""
        if self.law is not None:
            return self.law(self.model, t, q, v, y0)
        _, quadratic = jax.jvp(lambda q: self.momentum(q, v), (q,), (v,))
        kinetic = jax.grad(lambda q: 0.5 * v @ self.momentum(q, v))(q)
        return self.applied_forces(t, q, y0) - quadratic + kinetic

    def applied_forces(self, t: Scalar, q: Vector, y0: Float[Array, " N"]) -> Vector:
        r"""Return the generalised applied forces, their virtual work on $(\delta x, \delta a)$.

        On a rotation it is $\Psi : \delta R$ with $R^T \Psi = S + \frac12 \tilde\mu$, $S$ the
        symmetric part of $\sum f \otimes u$, which matters to multipliers only.
        """
        model, (_, a) = self.model, self.model.layout.poses(q)
        prepared, kinematics = model.prepared_system, model.kinematics(t, y0)
        wrenches, virials = (
            applied_wrenches(prepared, t, kinematics),
            force_virials(prepared, t, kinematics),
        )

        def on_coordinates(a, moment, virial):
            R, transpose = jax.vjp(model.rotation.to_matrix, a)
            # R^-T, the cofactors over the determinant.
            d1, d2, d3 = R.T
            cofactors = jnp.stack([cross(d2, d3), cross(d3, d1), cross(d1, d2)], axis=1)
            body = cofactors @ (0.5 * skew(moment) + virial)
            return transpose(body / (d1 @ cofactors[:, 0]))[0]

        turning = jax.vmap(on_coordinates)(a, wrenches[:, 3:], virials)
        return model.layout.join(wrenches[:, :3], turning)

    @compile_method
    def accelerations_and_multipliers(
        self, t: Scalar, y0: Float[Array, " N"]
    ) -> tuple[Array, Array]:
        r"""Return $\dot v$ and $\lambda$ of the index-1 equations; $\lambda$ has the least norm."""
        q, v, angles = self.split(y0)
        G, M, f = self.jacobian(t, q, angles), self.mass_matrix(q), self.force(t, q, v, y0)
        # Scaled, so that rows and columns have the same size.
        scale, units = self._lengths(q), self.units
        equations = ConstrainedEquations(
            G * scale[None] / units[:, None], scale[:, None] * M * scale[None]
        )
        bias = self.constraint_bias(t, q, v, angles)
        v_dot, lam = equations.solve(scale * f, -bias / units)
        v_dot, lam = scale * v_dot, lam / units
        if self.model.has_loops:
            lam = lam - self.redundant_projector(t, y0) @ lam
        return v_dot, lam

    @compile_method
    def redundant_projector(self, t: Time, y0: Float[Array, " N"]) -> Float[Array, "m m"]:
        """Return `redundant_projector` of this system."""
        return redundant_projector(self, t, y0)

    def _lengths(self, q: Vector) -> Vector:
        """Return the scale of the coordinates: lengths of the mechanism, 1 for rotations."""
        x, a = self.model.layout.poses(q)
        lengths = self.model.prepared_system.lengths[:, None] * jnp.ones_like(x)
        return self.model.layout.join(lengths, jnp.ones_like(a))

    def split(self, y0: Float[Array, " N"]) -> tuple[Array, Array, Array]:
        """Return positions, velocities and joint angles of the unknowns without multipliers."""
        layout = self.model.layout
        return y0[: layout.num_positions], layout.velocities(y0), layout.angles(y0)

    @compile_method
    def mass(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, "N N"]:
        r"""Return the singular matrix $A$ of $A(t, y)\,\dot y = b(t, y)$."""
        size = self.model.layout.size
        q, _, angles = self.split(y[:size])
        n, m = q.size, self.model.num_multipliers
        A = jnp.zeros((y.size, y.size), y.dtype)
        A = A.at[:n, :n].set(jnp.eye(n, dtype=y.dtype))
        A = A.at[n : 2 * n, n : 2 * n].set(self.mass_matrix(q))
        A = A.at[2 * n : size, 2 * n : size].set(jnp.eye(size - 2 * n, dtype=y.dtype))
        if index == 1 and m:
            G, Q = self.jacobian(t, q, angles), self.idle
            A = A.at[size : size + m, n : 2 * n].set(G if Q is None else G - Q.T @ G)
        return A

    @compile_method
    def mass_times(
        self, t: Scalar, y: Float[Array, " N"], rate: Float[Array, " N"], index: int
    ) -> Float[Array, " N"]:
        r"""Return $A(t, y)\,\dot y$ of a rate, (N,), without the matrix."""
        size = self.model.layout.size
        q, _, angles = self.split(y[:size])
        n, m = q.size, self.model.num_multipliers
        v, v_dot, rest = rate[:n], rate[n : 2 * n], rate[2 * n : size]
        along = jnp.zeros_like(rate[size:])
        if index == 1 and m:
            _, along = jax.jvp(lambda q: self.constraint(t, q, angles), (q,), (v_dot,))
            if self.num_slips:
                slips, none = lambda v: self.slips(t, q, v, angles), jnp.zeros_like(q)
                along = along + jax.jvp(slips, (none,), (v_dot,))[1]
            along = along if self.idle is None else along - self.idle.T @ along
        return jnp.concatenate([v, self.momentum(q, v_dot), rest, along])

    @compile_method
    def right_hand_side(self, t: Scalar, y: Float[Array, " N"], index: int) -> Float[Array, " N"]:
        r"""Return the right-hand side $b$ of $A(t, y)\,\dot y = b(t, y)$."""
        model, size = self.model, self.model.layout.size
        m = model.num_multipliers
        y0, lam, mu = y[:size], y[size : size + m], y[size + m :]
        q, v, angles = self.split(y0)
        level = self.regularise(self.level(t, q, v, angles, index), lam)
        balance = self.force(t, q, v, y0) - self.reaction(t, q, angles, lam)
        _, joint_frames, twists = model.motion(t, y0)
        rates = model.rest_rates(joint_frames, twists)
        if model.stabilized:
            positions, transpose = jax.vjp(lambda q: self.constraint(t, q, angles), q)
            v = v - transpose(mu)[0]
            if self.num_slips:
                # These constraints have no position level: their multipliers are zero.
                idle = np.arange(m) >= m - self.num_slips
                positions = positions - jnp.where(idle, self.units**2 * mu, 0.0)
            positions = self.regularise(positions, mu)
            level = jnp.concatenate([level, positions])
        return jnp.concatenate([v, balance, rates, level])

    def level(
        self, t: Scalar, q: Vector, v: Vector, angles: Float[Array, " A"], index: int
    ) -> Float[Array, " m"]:
        r"""Return constraints on positions or velocities, or $-\gamma$ for accelerations."""
        level = {
            1: lambda: -self.constraint_bias(t, q, v, angles),
            2: lambda: self.constraint_rate(t, q, v, angles),
            3: lambda: self.constraint(t, q, angles) + self.slips(t, q, v, angles),
        }[index]()
        if self.model.baumgarte is not None:
            alpha, beta = self.model.baumgarte
            level = level - 2.0 * alpha * self.constraint_rate(t, q, v, angles)
            level = level - beta**2 * self.constraint(t, q, angles)
        return level

    def regularise(
        self, level: Float[Array, " m"], multipliers: Float[Array, " m"]
    ) -> Float[Array, " m"]:
        """Replace dependent constraints by equations that determine the redundant multipliers."""
        Q = self.idle
        if Q is None:
            return level
        return level + Q.T @ (self.units**2 * (Q @ multipliers) - level)

    @property
    def units(self) -> Float[Array, " m"]:
        """Scale of the constraints, 1 for those of rotations."""
        model = self.model
        joints = constraint_units(model.prepared_system)
        return jnp.concatenate(
            [jnp.ones(model.num_multipliers - len(joints), joints.dtype), joints]
        )
