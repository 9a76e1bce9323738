r"""The variational step of systems with joints."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ....formulations import AbstractFormulation
from ....rotations.guarded import safe_sqrt
from ....rotations.matrix import cross
from ....system.attachment import Poses
from ....system.jointed import JointedMechanics
from ..sizes import extents
from .forces import applied
from .phase import Phase, as_twists, momenta, turned
from .saddle import AbstractSaddle, Root, saddle_root


def variational_step(
    model: AbstractFormulation, t0: Any, h: Any, start: Phase, multipliers: Any
) -> tuple[Phase, Root]:
    r"""One step of a discrete Lagrangian, with all constraints on positions and on velocities.

    $R_1 = R_0\,R(\sqrt{1 - e\cdot e},\, e)$, and the discrete Lagrangian has $\frac12
    \tilde\Omega\cdot I\tilde\Omega$ with $\tilde\Omega = 2e/h$, which is the one of quaternions in
    Betsch-Siebert's QUAT.VI, written on the group; potentials and joints act at both ends. So a
    free body moves as with QUAT.VI, joints are closed at the end, and the multipliers of the end
    make its momenta consistent with them. Symplectic and of second order; momentum that nothing
    holds is conserved, the energy oscillates without drift. Forces that depend on velocities take
    the mean one of the step.

    **Arguments:** `model`, with joints, in quaternions; `multipliers`, the guess, those of the step
    before.
    **Returns:** the end, and the root: $h\,\bar v$, $2e$ and multipliers $h^2\lambda/2$.
    **Source:** Betsch-Siebert, Appendix E; joints as in RATTLE (Andersen 1983; Leimkuhler, Skeel).
    """
    jointed: Any = model.jointed
    mechanics: JointedMechanics = jointed.mechanics
    first = start.poses(mechanics)
    joints = _jacobian(mechanics, t0, first)
    sizes = extents(mechanics, start.positions)
    equations = _Equations(mechanics, sizes, t0, h, start, first, joints)
    root = saddle_root(equations, jnp.concatenate([h * start.twists.ravel(), multipliers]))
    end = equations.end(root.increments)
    last, mean = end.poses(mechanics), root.increments / h
    forces = 0.5 * h * applied(mechanics, t0 + h, last, mean)
    after = _boundary_momenta(mechanics, root.increments, -1.0) / h + forces
    closed = _consistent(mechanics, t0 + h, last, after, mean, sizes / jnp.abs(h))
    end = eqx.tree_at(lambda phase: phase.twists, end, closed.increments)
    return end, root._replace(found=root.found & closed.found)


class _Equations(AbstractSaddle):
    mechanics: JointedMechanics
    sizes: Float[Array, "L 6"]
    t0: Float[Array, ""]
    h: Float[Array, ""]
    start: Phase
    first: Poses
    joints: Float[Array, "m 6L"]  # their gradients at the start

    def end(self, change) -> Phase:
        """Poses after the increments; twists are still those of the start."""
        start, half = self.start, 0.5 * change[:, 3:]
        quaternions = turned(start.quaternions, half, _real(half))
        return Phase(start.positions + change[:, :3], quaternions, start.twists, start.angles)

    def residual(self, Z):
        mechanics, h = self.mechanics, self.h
        change, mu = self.unpacked(Z)
        forces = 0.5 * h * h * applied(mechanics, self.t0, self.first, change / h)
        gain = _boundary_momenta(mechanics, change, 1.0) - h * momenta(mechanics, self.start.twists)
        last = self.end(change).poses(mechanics)
        gap = mechanics.constraint(self.t0 + h, mechanics.place(last))
        return jnp.concatenate([(gain - forces).ravel() + mu @ self.joints, gap])


def _real(half):
    """Real part of quaternions; NaN for rotations beyond pi, which have none."""
    square = 1.0 - jnp.sum(half * half, axis=1)
    return jnp.where(square > 0, safe_sqrt(jnp.where(square > 0, square, 1.0)), jnp.nan)


def _boundary_momenta(mechanics: JointedMechanics, change, side):
    r"""Discrete momenta times $h$ at the start (`side` 1) or at the end (-1) of the step.

    $m\bar v$, and $e_0 I\tilde\Omega \pm e \times I\tilde\Omega$ in body components there.
    """
    inner = momenta(mechanics, change)
    half = 0.5 * change[:, 3:]
    turn = _real(half)[:, None] * inner[:, 3:] + side * jax.vmap(cross)(half, inner[:, 3:])
    return jnp.concatenate([inner[:, :3], turn], axis=1)


def _jacobian(mechanics: JointedMechanics, t, poses) -> Float[Array, "m 6L"]:
    G = mechanics.constraint_jacobian(t, mechanics.place(poses))
    return G.reshape(-1, 6 * mechanics.num_bodies)


def _consistent(mechanics: JointedMechanics, t, poses, momentum, guess, sizes) -> Root:
    """Twists of these momenta and impulses of the joints that allow them."""
    rest = mechanics.constraint_rate(t, mechanics.place(poses), as_twists(jnp.zeros_like(guess)))
    joints = _jacobian(mechanics, t, poses)
    start = jnp.concatenate([guess.ravel(), jnp.zeros_like(rest)])
    return saddle_root(_Momenta(mechanics, sizes, joints, momentum, rest), start)


class _Momenta(AbstractSaddle):
    mechanics: JointedMechanics
    sizes: Float[Array, "L 6"]
    joints: Float[Array, "m 6L"]
    momentum: Float[Array, "L 6"]
    rest: Float[Array, " m"]

    def residual(self, Z):
        w, impulses = self.unpacked(Z)
        balance = (momenta(self.mechanics, w) - self.momentum).ravel() + impulses @ self.joints
        return jnp.concatenate([balance, self.joints @ w.ravel() + self.rest])
