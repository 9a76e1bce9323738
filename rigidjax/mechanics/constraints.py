r"""Constraints of the joints in the mass metric: $G M^{-1} G^T\lambda = c$, projections.

Trees have independent constraints; many of them are eliminated joint by joint. Loops may be
redundant or momentarily singular: they are constraints on the motions that the trees allow, solved
by a pseudo-inverse.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.inertia import inertia_tensor
from ..native import variants
from ..native.ops import divide_by_invariant, short_sum
from .articulated import nearest
from .attachment import Poses
from .elimination import Factors, invert
from .inverses import solve
from .joint_gradients import JointGradients, joint_gradients
from .loop_blocks import loop_blocks
from .mechanics import SystemMechanics
from .pseudo_inverses import CUTOFF, Blocks, ConstrainedEquations, pseudo_inverse
from .trees import (
    Screws,
    centres,
    generalised_forces,
    loop_jacobian,
    mass_matrix,
    rate_lengths,
    screws,
    spread,
)
from .twists import Twists

# Constraints of trees up to which a dense matrix is faster than elimination.
_DENSE_LIMIT = 48


def flat(jacobian: Float[Array, "m L k"]) -> Float[Array, "m Lk"]:
    """Gradients on the twists of all bodies as one matrix."""
    m, L, k = jacobian.shape
    return jacobian.reshape(m, L * k)


class AbstractConstraints(eqx.Module):
    r"""Constraints of joints in a pose, ready to solve $G M^{-1} G^T \lambda = c$."""

    masses: eqx.AbstractVar[Float[Array, " L"]]
    inverses: eqx.AbstractVar[Float[Array, "L 3 3"]]  # of the inertias

    @abc.abstractmethod
    def solve(self, right: Float[Array, " m"]) -> Float[Array, " m"]:
        r"""$\lambda$, of least norm."""

    @abc.abstractmethod
    def apply(self, w: Float[Array, "L 6"]) -> Float[Array, " m"]:
        r"""$G\,w$."""

    @abc.abstractmethod
    def transpose(self, lam: Float[Array, " m"]) -> Float[Array, "L 6"]:
        r"""$G^T \lambda$."""

    def inverse_mass(self, wrenches: Float[Array, "L 6"]) -> Float[Array, "L 6"]:
        r"""$M^{-1}$ times wrenches."""
        turn = short_sum(self.inverses, wrenches[:, None, 3:], axis=2)
        return jnp.concatenate(
            [divide_by_invariant(wrenches[:, :3], self.masses[:, None]), turn], axis=1
        )

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, "L 6"]:
        """The smallest change of the twists, in kinetic energy, that removes the residual."""
        return -self.inverse_mass(self.transpose(self.solve(residual)))


class EliminatedConstraints(AbstractConstraints):
    """Those of a tree joint by joint, at linear cost."""

    gradients: JointGradients
    factors: Factors
    masses: Float[Array, " L"]
    inverses: Float[Array, "L 3 3"]

    def solve(self, right):
        return self.gradients.flat(self.factors.solve(self.gradients.padded(right)))

    def apply(self, w):
        return self.gradients.flat(self.gradients.apply(w))

    def transpose(self, lam):
        return self.gradients.transpose(self.gradients.padded(lam))


class DenseConstraints(AbstractConstraints):
    """Those of a small tree."""

    G: Float[Array, "m L 6"]
    S: Float[Array, "m m"]
    masses: Float[Array, " L"]
    inverses: Float[Array, "L 3 3"]

    def solve(self, right):
        return solve(self.S, right)

    def apply(self, w):
        return flat(self.G) @ w.ravel()

    def transpose(self, lam):
        return (lam @ flat(self.G)).reshape(-1, 6)


def tree_constraints(
    mechanics: SystemMechanics, t, places, inertias, masses
) -> AbstractConstraints:
    """Those of the tree joints alone."""
    inverses = invert(inertias)
    if mechanics.num_tree_constraints > _DENSE_LIMIT:
        gradients = joint_gradients(mechanics, t, places)
        factors = gradients.factor(masses, inverses)
        return EliminatedConstraints(
            gradients=gradients, factors=factors, masses=masses, inverses=inverses
        )
    G = mechanics.constraint_jacobian(t, places, trees_only=True)
    turn = short_sum(G[:, :, None, 3:], inverses, axis=3)
    lighter = jnp.concatenate([divide_by_invariant(G[:, :, :3], masses[:, None]), turn], axis=2)
    return DenseConstraints(G=G, S=flat(lighter) @ flat(G).T, masses=masses, inverses=inverses)


def tree_correction(
    mechanics: SystemMechanics, t, poses: Poses, places, inertias, masses, residual
) -> Float[Array, "L 6"]:
    """The smallest change of all twists, in kinetic energy, that removes the residual of the tree
    joints."""
    return variants(
        kernel=lambda: nearest(mechanics, t, poses, places, inertias, masses, residual),
        xla=lambda: tree_constraints(mechanics, t, places, inertias, masses).correction(residual),
    )


class Loops(eqx.Module):
    r"""Constraints $J\nu + c = 0$ of the loops on the minimal velocities of the trees.

    Lengths are measured by the size of the mechanism (`mechanics.lengths`), so that which of the
    constraints are independent depends on the shape of the mechanism alone: not on units, on its
    size or on masses.
    """

    moving: Screws
    equations: ConstrainedEquations  # without units
    units: Float[Array, " m"]  # of the constraints
    scale: Float[Array, " f"]  # of the minimal velocities

    def rates(self, residual: Float[Array, " m"], forces: Float[Array, " f"]) -> Float[Array, " f"]:
        r"""$\dot\nu$ with $J\dot\nu = -$`residual` under generalised forces."""
        found, _ = self.equations.solve(self.scale * forces, -residual / self.units)
        return self.scale * found

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, " f"]:
        """The smallest change of the rates, in kinetic energy, that removes the residual."""
        return self.rates(residual, jnp.zeros_like(self.scale))

    def response(self, forces: Float[Array, " f"]) -> Float[Array, " f"]:
        """Change of the rates by impulses, or of their derivatives by forces, loops closed."""
        return self.rates(jnp.zeros_like(self.units), forces)


class LoopGradient(eqx.Module):
    r"""Gradient $J = G T$ of the constraints of the loops on the minimal velocities of the trees,
    without units: `matrix` is $u^{-1} J s$, lengths measured by the size of the mechanism."""

    moving: Screws
    matrix: Float[Array, "m f"]
    units: Float[Array, " m"]  # $u$, of the constraints
    scale: Float[Array, " f"]  # $s$, of the minimal velocities
    blocks: Blocks | None = eqx.field(static=True)  # outside of which `matrix` is zero

    def inverse(self, cutoff: float = CUTOFF) -> Float[Array, "f m"]:
        """The pseudo-inverse of `matrix`."""
        return pseudo_inverse(self.matrix, cutoff, self.blocks)


def loop_gradient(mechanics: SystemMechanics, t, poses: Poses, places) -> LoopGradient:
    """That of the loops in a pose."""
    at = centres(mechanics, poses)
    moving = Screws(screws(mechanics, poses, places, at), at)
    _, units = mechanics.split(mechanics.units)
    scale = rate_lengths(mechanics)
    J = loop_jacobian(mechanics, t, places, moving) * scale[None] * (1 / units)[:, None]
    return LoopGradient(moving, J, units, scale, loop_blocks(mechanics))


def factor_loops(mechanics: SystemMechanics, t, poses: Poses, places, inertias=None) -> Loops:
    """Factored mass matrix of the trees, and the constraints of the loops, in a pose; `inertias`
    (L, 3, 3) if not those of the bodies."""
    if inertias is None:
        inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    return _factored(mechanics, t, poses, places, inertias)


# One program for accelerations, for projections of positions and of velocities.
@eqx.filter_jit
def _factored(mechanics, t, poses, places, inertias):
    of = loop_gradient(mechanics, t, poses, places)
    H, scale = mass_matrix(mechanics, poses, of.moving, inertias), of.scale[:, None]
    equations = ConstrainedEquations(of.matrix, scale * H * of.scale[None], of.blocks)
    return Loops(of.moving, equations, of.units, of.scale)


def allowed_accelerations(
    mechanics: SystemMechanics, t, poses: Poses, places, residual, forces, inertias
) -> Float[Array, "L 6"]:
    r"""$\dot w$ with $G \dot w = -$`residual` under wrenches (L, 6), in a system with loops.

    What the tree joints ask for is found from the geometry, the rest are motions that they allow:
    masses and `inertias`, (L, 3, 3), matter along these only.
    """
    tree, loop = mechanics.split(residual)
    square = mechanics.lengths**2
    unit = square[:, None, None] * jnp.eye(3, dtype=square.dtype)[None]
    start = tree_correction(mechanics, t, poses, places, unit, jnp.ones_like(square), tree)

    def rate(w):
        return mechanics.constraint_rate(t, places, Twists(w[:, :3], w[:, 3:]), loops_only=True)

    _, moved = jax.jvp(rate, (start,), (start,))
    loops = factor_loops(mechanics, t, poses, places, inertias)
    turning = short_sum(inertias, start[:, None, 3:], axis=2)
    inertial = jnp.concatenate([mechanics.masses[:, None] * start[:, :3], turning], axis=1)
    forces = generalised_forces(mechanics, poses, loops.moving, forces - inertial)
    return start + spread(mechanics, poses, loops.moving, loops.rates(loop + moved, forces))


def smallest_change(
    mechanics: SystemMechanics, t, poses: Poses, places, residual: Float[Array, " m"], inertias
) -> Float[Array, "L 6"]:
    """The smallest change of all twists, in kinetic energy, that removes the residual.

    `inertias`, (L, 3, 3), that no motion is without.
    """
    if mechanics.system.closes:
        still = jnp.zeros((mechanics.num_bodies, 6), residual.dtype)
        return allowed_accelerations(mechanics, t, poses, places, residual, still, inertias)
    masses = regular_masses(mechanics)
    return tree_correction(mechanics, t, poses, places, inertias, masses, residual)


# Projections.


def project_twists(mechanics: SystemMechanics, t, poses, places, twists: Twists) -> Twists:
    """Twists nearest to the given ones, in kinetic energy, that the joints allow (Lang (62, V))."""
    residual = mechanics.constraint_rate(t, places, twists)
    change = smallest_change(mechanics, t, poses, places, residual, regular_inertias(mechanics))
    return Twists(twists.linear + change[:, :3], twists.angular + change[:, 3:])


def pose_correction(mechanics: SystemMechanics, t, poses, places) -> Float[Array, "L 6"]:
    r"""Small motion of all bodies that closes the joints, smallest in the mass metric.

    One Newton step of Lang (62, P), `(dx, dtheta)` of each body, `dtheta` in body components.
    """
    mechanics = mechanics.holonomic
    residual = mechanics.constraint(t, places)
    return smallest_change(mechanics, t, poses, places, residual, regular_inertias(mechanics))


def mass_metric(mechanics: SystemMechanics) -> Float[Array, "n n"]:
    r"""Mass matrix (6L, 6L) of small motions $(\Delta x / \ell, \Delta\theta)$ of all bodies.

    $\ell$ is the length of the mechanism. Made regular where a body lacks mass.
    """
    L = mechanics.num_bodies
    unit = jnp.eye(3, dtype=mechanics.masses.dtype)[None]
    shift = (regular_masses(mechanics) * mechanics.lengths**2)[:, None, None] * unit
    M = jnp.zeros((L, 6, L, 6), mechanics.masses.dtype)
    i = np.arange(L)
    M = M.at[i, :3, i, :3].set(shift)
    return M.at[i, 3:, i, 3:].set(regular_inertias(mechanics)).reshape(6 * L, 6 * L)


def regular_masses(mechanics: SystemMechanics) -> Float[Array, " L"]:
    """Return masses for a metric of motions; a body without mass has the mean of all.

    Its motion costs nothing, so that any mass serves as a metric.
    """
    masses = mechanics.masses
    return jnp.where(masses > 0, masses, jnp.mean(masses))


def regular_inertias(mechanics: SystemMechanics) -> Float[Array, "L 3 3"]:
    """Inertias about which no motion is without any."""
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    # A body whose mass is a point at its joint turns at no cost: any length will do.
    masses = regular_masses(mechanics)
    points = jnp.where(mechanics.masses > 0, 1e-9, 1.0) * masses * mechanics.lengths**2
    floor = 1e-6 * jnp.trace(inertias, axis1=1, axis2=2) + points
    return inertias + floor[:, None, None] * jnp.eye(3, dtype=inertias.dtype)[None]
