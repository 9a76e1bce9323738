r"""The variational step of systems."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...annotations import Scalar, Vector
from ...formulations import AbstractFormulation
from ...mechanics.attachment import Poses
from ...mechanics.mechanics import SystemMechanics
from .fixed_point import boundary_momentum, split_moment
from .increments import conformal
from .loads import applied
from .newton import Root, find_root
from .phase import Phase, advanced, as_twists, middle_of, momenta
from .saddle import AbstractSaddle
from .sizes import extents


def variational_step(
    model: AbstractFormulation, t0: Scalar, h: Scalar, start: Phase, multipliers: Vector, limit: int
) -> tuple[Phase, Root]:
    r"""One step of a discrete Lagrangian, with all constraints on positions and on velocities.

    Free bodies move as with QUAT.VI: $R_1 = R_0\,R(c, e)$ with the discrete angular momenta
    $\frac2h (c\,I e \pm e \times I e)$ at the ends, and loads in the middle, with joints or
    without. Joints act at both ends: they are closed at the end, and the multipliers of the end
    make its momenta consistent with them. Symplectic and of second order; momentum that nothing
    holds is conserved, the energy oscillates without drift. Forces that depend on velocities take
    the mean one of the step.

    **Arguments:** `model`, in quaternions; `multipliers`, the guess, those of the step before;
    `limit`, of Newton iterations.
    **Returns:** the end, and the root: $h\,\bar v$, conformal rotation vectors, and multipliers
    $h^2\lambda/2$.
    **Source:** Betsch-Siebert, Appendix E; joints as in RATTLE (Andersen 1983; Leimkuhler, Skeel).
    """
    mechanics = model.mechanics
    first = start.poses(mechanics)
    joints = _jacobian(mechanics, t0, first)
    sizes = extents(mechanics, start.positions)
    equations = _Equations(mechanics, sizes, t0, h, start, joints)
    root = find_root(equations, jnp.concatenate([h * start.twists.ravel(), multipliers]), limit)
    change, _ = equations.unpacked(root.Z)
    end = equations.end(change)
    after = _boundary_momenta(mechanics, change, -1.0) / h + equations.impulses(change)[1] / h
    if mechanics.is_free:
        return eqx.tree_at(lambda phase: phase.twists, end, mechanics.inverse_mass(after)), root
    closed = _consistent(mechanics, t0 + h, end.poses(mechanics), after, change / h, sizes, h)
    found = find_root(*closed, limit)
    end = eqx.tree_at(lambda phase: phase.twists, end, closed[0].unpacked(found.Z)[0])
    return end, root._replace(okay=root.okay & found.okay)


class _Equations(AbstractSaddle):
    mechanics: SystemMechanics
    sizes: Float[Array, "L 6"]
    t0: Float[Array, ""]
    h: Float[Array, ""]
    start: Phase
    joints: Float[Array, "m 6L"]  # their gradients at the start

    def end(self, change) -> Phase:
        """Poses after the increments; twists are still those of the start."""
        start = self.start
        quaternions = advanced(start.quaternions, jax.vmap(conformal)(change[:, 3:]))
        return Phase(start.positions + change[:, :3], quaternions, start.twists, start.angles)

    def impulses(self, change) -> tuple[Float[Array, "L 6"], Float[Array, "L 6"]]:
        """Of the loads, times $h$, on the momenta at the start and at the end."""
        mechanics, h = self.mechanics, self.h
        middle = middle_of(mechanics, self.start, self.end(change))
        loads = 0.5 * h * h * applied(mechanics, self.t0 + 0.5 * h, middle, change / h)
        before, after = jax.vmap(split_moment)(loads[:, 3:], change[:, 3:])
        force = loads[:, :3]
        return jnp.concatenate([force, before], axis=1), jnp.concatenate([force, after], axis=1)

    def residual(self, Z):
        mechanics, h = self.mechanics, self.h
        change, mu = self.unpacked(Z)
        gain = _boundary_momenta(mechanics, change, 1.0) - h * momenta(mechanics, self.start.twists)
        balance = (gain - self.impulses(change)[0]).ravel()
        if mechanics.is_free:
            return balance
        last = self.end(change).poses(mechanics)
        gap = mechanics.constraint(self.t0 + h, mechanics.place(last))
        return jnp.concatenate([balance + mu @ self.joints, gap])


def _boundary_momenta(mechanics: SystemMechanics, change, side) -> Float[Array, "L 6"]:
    """Discrete momenta times $h$ at the start (`side` 1) or at the end (-1) of the step."""
    whole = jax.vmap(lambda psi: conformal(psi).whole)(change[:, 3:])
    turn = jax.vmap(lambda I, p: boundary_momentum(I, p, side))(mechanics.inertias, whole)
    return jnp.concatenate([mechanics.masses[:, None] * change[:, :3], 2.0 * turn], axis=1)


def _jacobian(mechanics: SystemMechanics, t, poses: Poses) -> Float[Array, "m 6L"]:
    G = mechanics.constraint_jacobian(t, mechanics.place(poses))
    return G.reshape(-1, 6 * mechanics.num_bodies)


def _consistent(mechanics: SystemMechanics, t, poses, momentum, guess, sizes, h):
    """Equations of twists of these momenta and impulses of the joints that allow them, with a
    guess."""
    rest = mechanics.constraint_rate(t, mechanics.place(poses), as_twists(jnp.zeros_like(guess)))
    joints = _jacobian(mechanics, t, poses)
    start = jnp.concatenate([guess.ravel(), jnp.zeros_like(rest)])
    return _Momenta(mechanics, sizes / jnp.abs(h), joints, momentum, rest), start


class _Momenta(AbstractSaddle):
    mechanics: SystemMechanics
    sizes: Float[Array, "L 6"]
    joints: Float[Array, "m 6L"]
    momentum: Float[Array, "L 6"]
    rest: Float[Array, " m"]

    def residual(self, Z):
        w, impulses = self.unpacked(Z)
        balance = (momenta(self.mechanics, w) - self.momentum).ravel() + impulses @ self.joints
        return jnp.concatenate([balance, self.joints @ w.ravel() + self.rest])
