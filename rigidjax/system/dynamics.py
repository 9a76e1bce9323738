r"""Accelerations, consistent velocities and positions, and reactions of bodies with joints.

Trees in null-space coordinates are regular wherever every allowed motion moves some mass. Loops are
constraints $J\nu + c = 0$ on the rates of the trees, solved in the metric of kinetic energy by the
pseudo-inverse: redundant constraints and positions in which $J$ loses rank need no care.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.inertia import inertia_tensor
from ..checks import is_traced
from ..rotations.euler_map import euler_map
from ..rotations.matrix import to_space
from .attachment import Poses
from .blocks import JointBlocks, joint_blocks
from .elimination import Factors, invert
from .jointed import JointedMechanics, Twists
from .pseudo_inverse import pseudo_inverse


class Reaction(eqx.Module):
    """What a joint exerts on its child, space components.

    `force`, (3,) N; `moment`, (3,) N m, about the joint point (of the child); `drive`, the force
    (N) or moment (N m) along the axis of a prescribed motion, included in them, `None` without one.
    With redundant constraints it is the solution of least norm of the multipliers.
    """

    force: Float[Array, "3"]
    moment: Float[Array, "3"]
    drive: Float[Array, ""] | None


class Loops(eqx.Module):
    """Factors of a pose: the mass matrix of the trees and the constraints of the loops."""

    T: Float[Array, "L 6 f"]
    root: Float[Array, "f f"]  # Cholesky factor of the mass matrix
    J: Float[Array, "m f"]
    inverse: Float[Array, "f m"]  # pseudo-inverse of J root^-T

    def correction(self, residual: Float[Array, " m"]) -> Float[Array, " f"]:
        """The smallest change of the rates, in kinetic energy, that removes the residual."""
        return -_solve_upper(self.root, self.inverse @ residual)


def _solve_lower(root, b):
    return jax.scipy.linalg.solve_triangular(root, b, lower=True)


def _solve_upper(root, b):
    return jax.scipy.linalg.solve_triangular(root, b, lower=True, trans=1)


def flat(jacobian: Float[Array, "m L 6"]) -> Float[Array, "m 6L"]:
    """Gradients on the twists of all bodies as one matrix."""
    m, L, _ = jacobian.shape
    return jacobian.reshape(m, 6 * L)


def mass_of_rates(mechanics: JointedMechanics, t, poses, places, all_directions: bool):
    """Mass matrix of the minimal velocities, or of all twists, and the body of each row."""
    L = mechanics.num_bodies
    if all_directions:
        T = jnp.eye(6 * L, dtype=poses.positions.dtype).reshape(L, 6, 6 * L)
        return _reduced_mass(mechanics, T), np.repeat(np.arange(L), 6)
    columns, _ = mechanics.screws(t, poses, places)
    T = mechanics.null_space(poses, columns)
    return _reduced_mass(mechanics, T), mechanics.owners


def _reduced_mass(mechanics: JointedMechanics, T: Float[Array, "L 6 f"]) -> Float[Array, "f f"]:
    momenta = jax.vmap(
        lambda column: mechanics.momenta(column[:, :3], column[:, 3:]), in_axes=2, out_axes=2
    )(T)
    f = T.shape[2]
    return T.reshape(-1, f).T @ momenta.reshape(-1, f) if f else jnp.zeros((0, 0), T.dtype)


def factors(mechanics: JointedMechanics, t, poses: Poses, places) -> Loops:
    """Null-space matrix, factored mass matrix and loop constraints in a pose."""
    columns, _ = mechanics.screws(t, poses, places)
    T = mechanics.null_space(poses, columns)
    f = mechanics.num_rates
    root = jnp.linalg.cholesky(_reduced_mass(mechanics, T))
    loops = mechanics.system.topology.loops
    if not loops:
        none = jnp.zeros((0, f), T.dtype)
        return Loops(T, root, none, none.T)
    J = flat(mechanics.constraint_jacobian(t, places, loops)) @ T.reshape(-1, f)
    return Loops(T, root, J, pseudo_inverse(_solve_lower(root, J.T).T))


def consistent_rates(mechanics: JointedMechanics, t, poses, places, nu):
    """The rates nearest to `nu`, in kinetic energy, with which the loops stay closed."""
    loops = mechanics.system.topology.loops
    if not loops:
        return nu
    twists = mechanics.tree_twists(t, poses, places, nu)
    residual = mechanics.constraint_rate(t, places, twists, loops)
    return nu + factors(mechanics, t, poses, places).correction(residual)


def rate_derivatives(mechanics: JointedMechanics, t, poses, places, nu) -> Float[Array, " f"]:
    r"""Derivatives $\dot\nu$ of consistent rates.

    **Source:** Lang (11): $T^T M T \dot\nu = T^T (f - M (\dot T \nu - \dot r))$.
    """
    loops = mechanics.system.topology.loops
    twists = mechanics.tree_twists(t, poses, places, nu)
    if nu.size == 0:
        return nu

    if mechanics.eliminates:
        return _by_elimination(mechanics, t, poses, places, nu, twists)

    def velocity_level(t, poses):
        places = mechanics.place(poses)
        twists = mechanics.tree_twists(t, poses, places, nu)
        return twists, mechanics.constraint_rate(t, places, twists, loops) if loops else None

    _, (bias, loop_bias) = mechanics.bias(velocity_level, t, poses, twists)
    kinematics = mechanics.kinematics(poses, places, twists)
    forces = mechanics.free_forces(t, kinematics) - mechanics.momenta(bias.linear, bias.angular)
    parts = factors(mechanics, t, poses, places)
    f = nu.size
    free = _solve_upper(
        parts.root, _solve_lower(parts.root, parts.T.reshape(-1, f).T @ forces.ravel())
    )
    if not loops:
        return free
    return free + parts.correction(loop_bias + parts.J @ free)


def _by_elimination(mechanics: JointedMechanics, t, poses, places, nu, twists: Twists):
    r"""The same for a large tree, at linear cost.

    The reactions are found first, $G M^{-1} G^T \lambda = G M^{-1} f + \gamma$, then the
    accelerations of the bodies, then those of the joints, each for itself.
    """
    kinematics = mechanics.kinematics(poses, places, twists)
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    joints = constraints(mechanics, t, places, inertias, mechanics.masses)
    free = joints.inverse_mass(mechanics.free_forces(t, kinematics))
    bias = mechanics.joint_bias(t, poses, nu, twists)
    gamma = [
        group.over(lambda joint, r, b: joint.constraint_jacobian(r, t) @ b, place.relative, b)
        for group, place, b in zip(mechanics.groups, places, bias, strict=True)
    ]
    gamma = jnp.concatenate([part.ravel() for part in gamma])
    lam = joints.solve(joints.apply(free) + gamma)
    w = free - joints.inverse_mass(joints.transpose(lam))
    return mechanics.tree_rates(t, places, Twists(w[:, :3], w[:, 3:]), bias)


def body_accelerations(mechanics, t, poses, nu, nu_dot) -> Twists:
    r"""Derivatives $\dot w = T\dot\nu + \dot T\nu - \dot r$ of the twists of all bodies."""

    def twists(t, poses, nu):
        return mechanics.tree_twists(t, poses, mechanics.place(poses), nu)

    start = twists(t, poses, nu)
    _, bias = mechanics.bias(lambda t, poses: twists(t, poses, nu), t, poses, start)
    _, driven = jax.jvp(lambda nu: twists(t, poses, nu), (nu,), (nu_dot,))
    return Twists(bias.linear + driven.linear, bias.angular + driven.angular)


# In absolute coordinates.


class AbstractConstraints(eqx.Module):
    r"""Constraints of all joints in a pose, ready to solve $G M^{-1} G^T \lambda = c$."""

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
        turn = jnp.sum(self.inverses * wrenches[:, None, 3:], axis=2)
        return jnp.concatenate([wrenches[:, :3] / self.masses[:, None], turn], axis=1)


class TreeConstraints(AbstractConstraints):
    """Joint by joint, at linear cost."""

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


class LoopConstraints(AbstractConstraints):
    r"""With loops, which may be redundant: by the pseudo-inverse of $G M^{-1/2}$ (the matrix
    itself has the squares of its singular values)."""

    G: Float[Array, "m 6L"]
    inverse: Float[Array, "6L m"]
    masses: Float[Array, " L"]
    inverses: Float[Array, "L 3 3"]

    def solve(self, right):
        return self.inverse.T @ (self.inverse @ right)

    def apply(self, w):
        return self.G @ w.ravel()

    def transpose(self, lam):
        return (self.G.T @ lam).reshape(-1, 6)


def constraints(mechanics: JointedMechanics, t, places, inertias, masses) -> AbstractConstraints:
    """Factored constraints of all joints, in the metric of these inertias and masses."""
    inverses = invert(inertias)
    if not mechanics.system.topology.loops:
        blocks = joint_blocks(mechanics, t, places)
        factors = blocks.factor(masses, inverses)
        return TreeConstraints(blocks=blocks, factors=factors, masses=masses, inverses=inverses)
    G = mechanics.constraint_jacobian(t, places)
    # M^-1 = L^-T L^-1 with L the Cholesky factor of every block.
    turn = jax.vmap(_solve_lower)(jnp.linalg.cholesky(inertias), jnp.moveaxis(G[:, :, 3:], 0, 2))
    half = jnp.concatenate(
        [G[:, :, :3] / jnp.sqrt(masses)[:, None], jnp.moveaxis(turn, 2, 0)], axis=2
    )
    return LoopConstraints(
        G=flat(G), inverse=pseudo_inverse(flat(half)), masses=masses, inverses=inverses
    )


def constrained_accelerations(mechanics: JointedMechanics, t, poses, places, twists):
    r"""Accelerations of all bodies with all joints as constraints, and their multipliers.

    $M\dot w + G^T\lambda = f$, $G\dot w = -\gamma$; the multipliers are those of least norm.
    **Returns:** accelerations (L, 6) and multipliers (m,). **Source:** Lang (6), (58).
    """
    kinematics = mechanics.kinematics(poses, places, twists)
    free = mechanics.inverse_mass(mechanics.free_forces(t, kinematics))

    def rate(t, poses):
        return mechanics.constraint_rate(t, mechanics.place(poses), twists)

    _, gamma = mechanics.bias(rate, t, poses, twists)
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    joints = constraints(mechanics, t, places, inertias, mechanics.masses)
    lam = joints.solve(joints.apply(free) + gamma)
    return free - joints.inverse_mass(joints.transpose(lam)), lam


def mass_metric_constraints(mechanics: JointedMechanics, t, places) -> AbstractConstraints:
    """The constraints in the mass metric, made regular where a body lacks mass."""
    return constraints(mechanics, t, places, _regular_inertias(mechanics), mechanics.masses)


def project_twists(mechanics: JointedMechanics, t, places, twists: Twists) -> Twists:
    """Twists nearest to the given ones, in kinetic energy, that the joints allow (Lang (62, V))."""
    joints = mass_metric_constraints(mechanics, t, places)
    lam = joints.solve(mechanics.constraint_rate(t, places, twists))
    change = joints.inverse_mass(joints.transpose(lam))
    return Twists(twists.linear - change[:, :3], twists.angular - change[:, 3:])


def pose_correction(mechanics: JointedMechanics, t, places) -> Float[Array, "L 6"]:
    r"""Small motion of all bodies that closes the joints, smallest in the mass metric.

    One Newton step of Lang (62, P), `(dx, dtheta)` of each body, `dtheta` in body components.
    """
    joints = mass_metric_constraints(mechanics, t, places)
    lam = joints.solve(mechanics.constraint(t, places))
    return -joints.inverse_mass(joints.transpose(lam))


def mass_metric(mechanics: JointedMechanics):
    r"""The map $M^{-1/2}$ to twists of all bodies, made regular where a body lacks mass."""
    roots = jnp.linalg.cholesky(_regular_inertias(mechanics))
    scale = 1.0 / jnp.sqrt(mechanics.masses)

    def apply(z):
        turn = jax.vmap(_solve_upper)(roots, z[:, 3:])
        return jnp.concatenate([scale[:, None] * z[:, :3], turn], axis=1)

    return apply


def _regular_inertias(mechanics: JointedMechanics) -> Float[Array, "L 3 3"]:
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    arms = jnp.zeros(mechanics.num_bodies + 1, inertias.dtype)
    for group in mechanics.groups:
        for bodies, points in (
            (group.parents, group.parent_point),
            (group.children, group.child_point),
        ):
            arms = arms.at[np.array(bodies)].max(jnp.sum(points * points, axis=1))
    # A body whose mass is a point at its joint turns at no cost: any length will do.
    arms = jnp.where(arms[:-1] > 0, arms[:-1], 1.0)
    floor = 1e-6 * jnp.trace(inertias, axis1=1, axis2=2) + 1e-9 * mechanics.masses * arms
    return inertias + floor[:, None, None] * jnp.eye(3, dtype=inertias.dtype)


# Reactions.


def multipliers(mechanics, t, poses, places, twists: Twists, accelerations: Twists):
    r"""Multipliers of all joints, $G^T\lambda = f - M\dot w$, of least norm."""
    kinematics = mechanics.kinematics(poses, places, twists)
    balance = mechanics.free_forces(t, kinematics) - mechanics.momenta(
        accelerations.linear, accelerations.angular
    )
    if mechanics.system.topology.loops:
        G = flat(mechanics.constraint_jacobian(t, places))
        return pseudo_inverse(G.T) @ balance.ravel()
    # Any metric will do: the solution is unique.
    unit = jnp.broadcast_to(jnp.eye(3, dtype=balance.dtype), (mechanics.num_bodies, 3, 3))
    joints = constraints(mechanics, t, places, unit, jnp.ones_like(mechanics.masses))
    return joints.solve(joints.apply(balance))


def reactions(mechanics: JointedMechanics, t, places, lam) -> dict[str, Reaction]:
    """Reaction of every joint on its child at the joint point, from the multipliers."""
    out: dict[int, Any] = {}
    start = 0
    for group, place in zip(mechanics.groups, places, strict=True):
        n, m = len(group.indices), group.joint.num_constraints
        rows = lam[start : start + n * m].reshape(n, m)
        start += n * m

        def one(joint, place, row):
            G = joint.constraint_jacobian(place.relative, t)
            wrench = -(G.T @ row)
            force, moment = to_space(place.frame, wrench[:3]), to_space(place.frame, wrench[3:])
            return Reaction(force, moment, None), wrench

        values = group.over(one, place, rows)
        driven = getattr(group.joint, "motion", None) is not None
        axis = 2 if group.joint.num_translations else 5
        for k, j in enumerate(group.indices):
            reaction, wrench = jax.tree.map(lambda leaf, k=k: leaf[k], values)
            out[j] = Reaction(reaction.force, reaction.moment, wrench[axis] if driven else None)
    return {mechanics.system.joints[j].name: out[j] for j in sorted(out)}


def loop_rank(system) -> int:
    """Rank of the loop constraints in the reference configuration."""
    if is_traced(system):
        raise ValueError(
            "`System.num_dof` with closed loops needs known values: read it outside of `jax.jit`."
        )
    J = np.asarray(_loop_jacobian(system))
    return int(np.linalg.matrix_rank(J, tol=1e-8 * max(1.0, np.abs(J).max(initial=0.0))))


@eqx.filter_jit
def _loop_jacobian(system):
    reference = system.reference_state()
    mechanics = JointedMechanics(system)
    rotations = jax.vmap(euler_map)(reference.orientation)
    poses = mechanics.poses(reference.position, rotations, jnp.zeros(0))
    t = jnp.zeros((), reference.position.dtype)
    places = mechanics.place(poses)
    columns, _ = mechanics.screws(t, poses, places)
    T = mechanics.null_space(poses, columns).reshape(-1, mechanics.num_rates)
    return flat(mechanics.constraint_jacobian(t, places, system.topology.loops)) @ T
