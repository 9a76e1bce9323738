r"""Constraints of the joints in the mass metric: $G M^{-1} G^T\lambda = c$, projections.

Trees have independent constraints; many of them are eliminated joint by joint. Loops may be
redundant or momentarily singular: what they ask for is solved by a pseudo-inverse.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.inertia import inertia_tensor
from ..sums import short_sum
from .attachment import Poses
from .blocks import JointBlocks, joint_blocks
from .elimination import Factors, invert
from .inverses import inverse_root, inverse_root_3, pseudo_inverse, solve
from .jointed import JointedMechanics, Twists
from .trees import Screws, centres, loop_jacobian, mass_matrix, screws, spread

# Constraints of trees up to which a dense matrix is faster than elimination.
_DENSE_LIMIT = 48


def flat(jacobian: Float[Array, "m L 6"]) -> Float[Array, "m 6L"]:
    """Gradients on the twists of all bodies as one matrix."""
    m, L, _ = jacobian.shape
    return jacobian.reshape(m, 6 * L)


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
        return jnp.concatenate([wrenches[:, :3] / self.masses[:, None], turn], axis=1)

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, "L 6"]:
        """The smallest change of the twists, in kinetic energy, that removes the residual."""
        return -self.inverse_mass(self.transpose(self.solve(residual)))


class EliminatedConstraints(AbstractConstraints):
    """Those of a tree joint by joint, at linear cost."""

    blocks: JointBlocks
    factors: Factors
    masses: Float[Array, " L"]
    inverses: Float[Array, "L 3 3"]

    def solve(self, right):
        return self.blocks.flat(self.factors.solve(self.blocks.padded(right)))

    def apply(self, w):
        return self.blocks.flat(self.blocks.apply(w))

    def transpose(self, lam):
        return self.blocks.transpose(self.blocks.padded(lam))


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


class RedundantConstraints(AbstractConstraints):
    r"""With loops, which may be redundant: by the pseudo-inverse of $G M^{-1/2}$ (the matrix
    itself has the squares of its singular values)."""

    G: Float[Array, "m L 6"]
    inverse: Float[Array, "6L m"]
    masses: Float[Array, " L"]
    inverses: Float[Array, "L 3 3"]

    def solve(self, right):
        return self.inverse.T @ (self.inverse @ right)

    def apply(self, w):
        return flat(self.G) @ w.ravel()

    def transpose(self, lam):
        return (lam @ flat(self.G)).reshape(-1, 6)


def constraints(mechanics: JointedMechanics, t, places, inertias, masses) -> AbstractConstraints:
    """Factored constraints of all joints, in the metric of these inertias and masses."""
    if not mechanics.system.topology.loops:
        return tree_constraints(mechanics, t, places, inertias, masses)
    G = mechanics.constraint_jacobian(t, places)
    turn = short_sum(G[:, :, None, 3:], jax.vmap(inverse_root_3)(inertias), axis=3)
    half = jnp.concatenate([G[:, :, :3] / jnp.sqrt(masses)[:, None], turn], axis=2)
    return RedundantConstraints(
        G=G, inverse=pseudo_inverse(flat(half)), masses=masses, inverses=invert(inertias)
    )


def tree_constraints(
    mechanics: JointedMechanics, t, places, inertias, masses
) -> AbstractConstraints:
    """Those of the tree joints alone."""
    inverses = invert(inertias)
    if mechanics.num_tree_constraints > _DENSE_LIMIT:
        blocks = joint_blocks(mechanics, t, places)
        factors = blocks.factor(masses, inverses)
        return EliminatedConstraints(
            blocks=blocks, factors=factors, masses=masses, inverses=inverses
        )
    G = mechanics.constraint_jacobian(t, places, trees_only=True)
    turn = short_sum(G[:, :, None, 3:], inverses, axis=3)
    lighter = jnp.concatenate([G[:, :, :3] / masses[:, None], turn], axis=2)
    return DenseConstraints(G=G, S=flat(lighter) @ flat(G).T, masses=masses, inverses=inverses)


class Loops(eqx.Module):
    """Constraints of the loops on the minimal velocities of the trees, in the mass metric."""

    moving: Screws
    root: Float[Array, "f f"]  # inverse W of the Cholesky factor of the mass matrix
    J: Float[Array, "m f"]
    inverse: Float[Array, "f m"]  # pseudo-inverse of J W^T

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, " f"]:
        """The smallest change of the rates, in kinetic energy, that removes the residual."""
        return -self.root.T @ (self.inverse @ residual)


def factor_loops(mechanics: JointedMechanics, t, poses: Poses, places, inertias=None) -> Loops:
    """Factored mass matrix of the trees, and the constraints of the loops, in a pose."""
    at = centres(mechanics, poses)
    moving = Screws(screws(mechanics, poses, places, at), at)
    root = inverse_root(mass_matrix(mechanics, poses, moving, inertias))
    J = loop_jacobian(mechanics, t, places, moving)
    return Loops(moving, root, J, pseudo_inverse(J @ root.T))


# Projections.


def _smallest_change(mechanics: JointedMechanics, t, poses: Poses, places, tree, loop):
    """The smallest change of all twists, in kinetic energy, that removes the residuals.

    What the tree joints ask for is orthogonal, in the mass metric, to what they allow, so that the
    loops can be closed afterwards by allowed motions: together the change is the smallest.
    """
    inertias = _regular_inertias(mechanics)
    joints = tree_constraints(mechanics, t, places, inertias, mechanics.masses)
    change = joints.correction(tree)
    if not mechanics.system.topology.loops:
        return change

    def rate(w):
        return mechanics.constraint_rate(t, places, Twists(w[:, :3], w[:, 3:]), loops_only=True)

    _, moved = jax.jvp(rate, (change,), (change,))
    loops = factor_loops(mechanics, t, poses, places, inertias)
    return change + spread(mechanics, poses, loops.moving, loops.correction(loop + moved))


def project_twists(mechanics: JointedMechanics, t, poses, places, twists: Twists) -> Twists:
    """Twists nearest to the given ones, in kinetic energy, that the joints allow (Lang (62, V))."""
    residuals = mechanics.split(mechanics.constraint_rate(t, places, twists))
    change = _smallest_change(mechanics, t, poses, places, *residuals)
    return Twists(twists.linear + change[:, :3], twists.angular + change[:, 3:])


def pose_correction(mechanics: JointedMechanics, t, poses, places) -> Float[Array, "L 6"]:
    r"""Small motion of all bodies that closes the joints, smallest in the mass metric.

    One Newton step of Lang (62, P), `(dx, dtheta)` of each body, `dtheta` in body components.
    """
    residuals = mechanics.split(mechanics.constraint(t, places))
    return _smallest_change(mechanics, t, poses, places, *residuals)


def mass_metric(mechanics: JointedMechanics) -> Float[Array, "n n"]:
    r"""Mass matrix (6L, 6L) of small motions $(\Delta x / \ell, \Delta\theta)$ of all bodies.

    $\ell$ is the length of the mechanism. Made regular where a body lacks mass.
    """
    L = mechanics.num_bodies
    shift = (mechanics.masses * mechanics.lengths**2)[:, None, None] * jnp.eye(3)
    M = jnp.zeros((L, 6, L, 6), mechanics.masses.dtype)
    i = np.arange(L)
    M = M.at[i, :3, i, :3].set(shift.astype(M.dtype))
    return M.at[i, 3:, i, 3:].set(_regular_inertias(mechanics)).reshape(6 * L, 6 * L)


def _regular_inertias(mechanics: JointedMechanics) -> Float[Array, "L 3 3"]:
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    arms = jnp.zeros(mechanics.num_bodies + 1, inertias.dtype)
    for group in mechanics.groups:
        for bodies, points in (
            (group.parents, group.parent_point),
            (group.children, group.child_point),
        ):
            arms = arms.at[np.array(bodies)].max(short_sum(points, points, axis=1))
    # A body whose mass is a point at its joint turns at no cost: any length will do.
    arms = jnp.where(arms[:-1] > 0, arms[:-1], 1.0)
    floor = 1e-6 * jnp.trace(inertias, axis1=1, axis2=2) + 1e-9 * mechanics.masses * arms
    return inertias + floor[:, None, None] * jnp.eye(3, dtype=inertias.dtype)
