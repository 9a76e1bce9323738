r"""Accelerations and consistent velocities of bodies with joints.

Trees in null-space coordinates are regular wherever every allowed motion moves some mass. Loops are
constraints $J\nu + c = 0$ on the rates of the trees, solved by the pseudo-inverse, then the motions
that they leave free: redundant constraints and positions in which $J$ loses rank need no care.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..bodies.inertia import inertia_tensor
from ..checks import is_traced
from ..native import variants
from ..native.ops import short_sum
from ..rotations.euler_map import euler_map
from .articulated import articulated
from .attachment import Poses
from .bias_accelerations import bias_accelerations, joint_bias
from .constraints import (
    allowed_accelerations,
    factor_loops,
    loop_gradient,
    tree_constraints,
)
from .inverses import solve
from .mechanics import SystemMechanics
from .system import System
from .trees import (
    Screws,
    along_paths,
    centres,
    generalised_forces,
    joint_twists_in_space,
    mass_matrix,
    screws,
    tree_rates,
    tree_twists,
    twists_of,
)
from .twists import Motion, Twists

# Minimal velocities up to which a dense mass matrix is faster (16 ball joints or 48 hinges).
DENSE_LIMIT = 48


def eliminates(system: System) -> bool:
    """Whether accelerations are found by elimination along the trees, at linear cost.

    A dense mass matrix is faster for few rates, and needs mass in fewer directions.
    """
    few = sum(system.rates_of_bodies) <= DENSE_LIMIT
    regular = system.has_all_mass and system.armatures is None
    return not few and not system.closes and regular


def consistent_rates(mechanics: SystemMechanics, t, poses, places, nu):
    """The rates nearest to `nu`, in kinetic energy, with which the loops stay closed."""
    if not mechanics.system.closes:
        return nu
    twists = tree_twists(mechanics, t, poses, places, nu)
    residual = mechanics.constraint_rate(t, places, twists, loops_only=True)
    return nu + factor_loops(mechanics, t, poses, places).correction(residual)


def motion(mechanics: SystemMechanics, t, poses: Poses, places, nu) -> Motion:
    r"""Consistent rates and their derivatives.

    All forms are the same in consistent poses. Where joints are open or matrices no rotations, as
    inside of a step, elimination along the trees differs from the others to first order.

    **Source:** Lang (11): $T^T M T \dot\nu = T^T (f - M (\dot T \nu - \dot r))$.
    """
    if nu.size == 0:
        return Motion(nu, tree_twists(mechanics, t, poses, places, nu), nu)
    if mechanics.is_free:
        twists = tree_twists(mechanics, t, poses, places, nu)
        of = mechanics.accelerations(t, mechanics.kinematics(poses, places, twists))
        rates = of.angular
        if mechanics.system.translates:
            rates = jnp.concatenate([of.linear, of.angular], axis=1)
        return Motion(nu, twists, rates.ravel())
    if mechanics.system.closes:
        return _by_mass_matrix(mechanics, t, poses, places, nu)
    form = _by_elimination if eliminates(mechanics.system) else _by_mass_matrix
    return variants(
        kernel=lambda: articulated(mechanics, t, poses, places, nu),
        xla=lambda: form(mechanics, t, poses, places, nu),
    )


def _by_mass_matrix(mechanics: SystemMechanics, t, poses: Poses, places, nu) -> Motion:
    """The same by a dense mass matrix, loops too."""
    at = centres(mechanics, poses)
    motions, twists = moving_bodies(mechanics, t, poses, places, at, nu)
    parts = None
    if mechanics.system.closes:
        parts = factor_loops(mechanics, t, poses, places)
        residual = mechanics.constraint_rate(t, places, twists, loops_only=True)
        nu = nu + parts.correction(residual)
        motions, twists = moving_bodies(mechanics, t, poses, places, at, nu)
    bias = bias_accelerations(mechanics, t, poses, places, at, motions, nu)
    kinematics = mechanics.kinematics(poses, places, twists)
    forces = mechanics.free_forces(t, kinematics) - mechanics.momenta(bias[:, :3], bias[:, 3:])
    if parts is None:
        moving = Screws(screws(mechanics, poses, places, at), at)
        right = generalised_forces(mechanics, poses, moving, forces)
        return Motion(nu, twists, solve(mass_matrix(mechanics, poses, moving), right))

    def rate(t, poses, w):
        places = mechanics.place(poses)
        return mechanics.constraint_rate(t, places, Twists(w[:, :3], w[:, 3:]), loops_only=True)

    w = jnp.concatenate([twists.linear, twists.angular], axis=1)
    moved = (jnp.ones_like(t), mechanics.pose_rate(poses, twists), bias)
    _, gap = jax.jvp(rate, (t, poses, w), moved)
    right = generalised_forces(mechanics, poses, parts.moving, forces)
    return Motion(nu, twists, parts.rates(gap, right))


def moving_bodies(mechanics: SystemMechanics, t, poses, places, at, nu):
    """Motions of all bodies about the points `at`, (L, 6), and their twists."""
    motions = along_paths(mechanics, joint_twists_in_space(mechanics, t, poses, places, at, nu))
    return motions, twists_of(poses, at, motions)


def _by_elimination(mechanics: SystemMechanics, t, poses: Poses, places, nu) -> Motion:
    r"""The same for a large tree, at linear cost.

    The reactions are found first, $G M^{-1} G^T \lambda = G M^{-1} f + \gamma$, then the
    accelerations of the bodies, then those of the joints, each for itself.
    """
    twists = tree_twists(mechanics, t, poses, places, nu)
    kinematics = mechanics.kinematics(poses, places, twists)
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    joints = tree_constraints(mechanics, t, places, inertias, mechanics.masses)
    free = joints.inverse_mass(mechanics.free_forces(t, kinematics))
    bias = joint_bias(mechanics, t, poses, nu, twists)
    gamma = [
        group.over(
            lambda joint, r, b: short_sum(joint.constraint_jacobian(r, t), b, axis=1),
            place.relative,
            bias[g],
        )
        for g, (group, place) in enumerate(zip(mechanics.groups, places, strict=True))
    ]
    gamma = jnp.concatenate([part.ravel() for part in gamma])
    w = free + joints.correction(joints.apply(free) + gamma)
    return Motion(nu, twists, tree_rates(mechanics, t, places, Twists(w[:, :3], w[:, 3:]), bias))


def body_accelerations(mechanics, t, poses, nu, nu_dot) -> Twists:
    r"""Derivatives $\dot w = T\dot\nu + \dot T\nu - \dot r$ of the twists of all bodies."""

    def twists(t, poses, nu):
        return tree_twists(mechanics, t, poses, mechanics.place(poses), nu)

    start = twists(t, poses, nu)
    rate = mechanics.pose_rate(poses, start)
    return jax.jvp(twists, (t, poses, nu), (jnp.ones_like(t), rate, nu_dot))[1]


def constrained_accelerations(mechanics: SystemMechanics, t, poses, places, twists):
    r"""Accelerations of all bodies with all joints as constraints, (L, 6).

    $M\dot w + G^T\lambda = f$, $G\dot w = -\gamma$. **Source:** Lang (6), (58).
    """
    kinematics = mechanics.kinematics(poses, places, twists)
    if mechanics.is_free:
        of = mechanics.accelerations(t, kinematics)
        return jnp.concatenate([of.linear, of.angular], axis=1)
    forces = mechanics.free_forces(t, kinematics)

    def rate(t, poses):
        return mechanics.constraint_rate(t, mechanics.place(poses), twists)

    _, gamma = mechanics.bias(rate, t, poses, twists)
    inertias = jax.vmap(inertia_tensor)(mechanics.inertias)
    if mechanics.system.closes:
        return allowed_accelerations(mechanics, t, poses, places, gamma, forces, inertias)
    free = mechanics.inverse_mass(forces)
    joints = tree_constraints(mechanics, t, places, inertias, mechanics.masses)
    return free + joints.correction(joints.apply(free) + gamma)


def loop_rank(system) -> int:
    """Rank of the loop constraints in the reference configuration."""
    if is_traced(system):
        raise ValueError(
            "`System.num_dof` with closed loops needs known values: read it outside of `jax.jit`."
        )
    J = np.asarray(_loop_gradient(system))
    return int(np.linalg.matrix_rank(J, tol=1e-8 * np.abs(J).max(initial=0.0)))


@eqx.filter_jit
def _loop_gradient(system):
    reference = system.reference_state()
    mechanics = SystemMechanics(system)
    rotations = jax.vmap(euler_map)(reference.orientation)
    poses = mechanics.poses(reference.position, rotations, jnp.zeros(0))
    t = jnp.zeros((), reference.position.dtype)
    return loop_gradient(mechanics, t, poses, mechanics.place(poses)).matrix
