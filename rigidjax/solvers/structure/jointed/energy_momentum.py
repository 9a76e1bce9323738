r"""The energy-momentum step of systems with joints."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ....formulations import AbstractFormulation
from ....rotations import Directors
from ....rotations.euler_map import euler_map
from ....rotations.matrix import cross, to_body, to_space
from ....system.attachment import Placements, Poses
from ....system.jointed import JointedMechanics
from ..sizes import extents
from .forces import conserving_wrenches
from .phase import Phase, momenta, turned
from .saddle import AbstractSaddle, Root, saddle_root


def energy_momentum_step(
    model: AbstractFormulation,
    t0: Any,
    h: Any,
    start: Phase,
    multipliers: Any,
    published: bool = False,
) -> tuple[Phase, Root]:
    r"""One step that conserves energy, and momentum where nothing holds the system.

    Bodies move with the mean $\bar w$ of their twists at both ends,
    $x_1 - x_0 = h\,\bar v$, $R_1 = R_0\,\mathrm{cay}(h\,\bar\Omega)$, such that
    $R_1 - R_0 = h\,\bar R\,\bar\Omega^\wedge$ with the mean $\bar R$ of both matrices. Then
    $M(w_1 - w_0)$, with angular momenta in space components, equals the impulse of the applied
    forces and of the joints, $-\bar G^T h\lambda$, where $\bar G\,\bar w\,h = g(q_1) - g(q_0)$
    exactly: the relative poses of joints are of second degree in $x$ and $R$, so that their
    gradient at the mean pose is a discrete one, and one that commutes with rotations of the whole;
    constraints have one on relative poses (`AbstractJoint.mean_gradient`). All joints hold at the
    end, $g(q_1) = 0$, to round-off; the rates of their constraints hold in the mean, and are of
    second order in $h$ at the ends.

    In quaternions, bodies without joints turn as QUAT.EM has it, $q_1 - q_0 = \frac h2\,\bar q
    \circ \bar\Omega$ with the mean quaternion $\bar q$. With `published`, all bodies do, and the
    rest of $\bar G$ is the chain rule over $R(q)$: $R_1 - R_0 = h\,R(\bar q)\,\bar\Omega^\wedge$,
    so that the moment of a joint has $R(\bar q)$ in the place of $\bar R$, which differs by
    $R(\frac12(q_1 - q_0))$. Energy and joints are as exact; angular momentum is so to second order.

    No gradient avoids that. Two bodies welded together that turn as one by $\varphi$ have
    $h \bar v = 2 \tan\frac\varphi2$ in units of their distances from the axis: energy, angular
    momentum and the weld ask for $h \bar\Omega = 2 \tan\frac\varphi2$ as well, which is the Cayley
    map, while the mean quaternion has $4 \tan\frac\varphi4$.

    **Arguments:** `model`, with joints; `multipliers`, the guess, those of the step before;
    `published`, whether bodies on joints turn with the mean quaternion too.
    **Returns:** the end, and the root: increments $h\,\bar w$ and multipliers $h^2\lambda/2$.
    **Source:** discrete null-space method: Betsch, Leyendecker, Int. J. Numer. Meth. Engng 67
    (2006); the mid-point rule on rotations: Simo, Wong (1991), Austin, Krishnaprasad, Wang (1993);
    the mean quaternion: Betsch-Siebert (50), (51).
    """
    jointed: Any = model.jointed
    mechanics: JointedMechanics = jointed.mechanics
    first, sizes = start.poses(mechanics), extents(mechanics, start.positions)
    rule = _by_quaternion(model, mechanics, published)
    equations = _Equations(mechanics, sizes, t0, h, start, first, mechanics.place(first), rule)
    guess = jnp.concatenate([h * start.twists.ravel(), multipliers])
    root = saddle_root(equations, guess)
    twists = 2.0 / h * root.increments - start.twists
    end = equations.end(root.increments)
    return eqx.tree_at(lambda phase: phase.twists, end, twists), root


def _by_quaternion(
    model: AbstractFormulation, mechanics: JointedMechanics, published: bool
) -> tuple[bool, ...]:
    """Whether each body turns with its mean quaternion, not with its mean matrix."""
    if isinstance(model.rotation, Directors):
        return (False,) * mechanics.num_bodies
    held = {row for group in mechanics.groups for row in (*group.parents, *group.children)}
    return tuple(published or row not in held for row in range(mechanics.num_bodies))


class _Equations(AbstractSaddle):
    mechanics: JointedMechanics
    sizes: Float[Array, "L 6"]
    t0: Float[Array, ""]
    h: Float[Array, ""]
    start: Phase
    first: Poses
    places: Placements  # of the joints at the start
    by_quaternion: tuple[bool, ...] = eqx.field(static=True)

    def _turns(self, change) -> tuple[Float[Array, " L"], Float[Array, " L"]]:
        """Real parts of the rotations, whose vector parts are halves of `change`, and chords."""
        square = jnp.sum(change[:, 3:] ** 2, axis=1) / 16.0
        mean = np.array(self.by_quaternion)
        real = jnp.where(mean, 1.0 - square, 1.0)
        return real, jnp.where(mean, 1.0 / (1.0 + square), 1.0 / jnp.sqrt(1.0 + 4.0 * square))

    def end(self, change) -> Phase:
        """Poses after the increments; twists are still those of the start."""
        start = self.start
        quaternions = turned(start.quaternions, 0.5 * change[:, 3:], self._turns(change)[0])
        return Phase(start.positions + change[:, :3], quaternions, start.twists, start.angles)

    def residual(self, Z):
        mechanics, start, h = self.mechanics, self.start, self.h
        change, mu = self.unpacked(Z)
        end = self.end(change)
        mean = 0.5 * (start.quaternions + end.quaternions)
        middle = _middle(mechanics, start, end, mean)
        first, last = self.first, end.poses(mechanics)
        places = mechanics.place(last)
        L, t = mechanics.num_bodies, self.t0 + 0.5 * h
        # In body components at the start: rotations about the axis of the step leave them alone.
        frames = first.rotations[:L]
        wrench = conserving_wrenches(
            mechanics, t, first, middle, last, change, h, start.angles, self._turns(change)[1]
        )
        moment = _carried(wrench[:, 3:], middle.rotations[:L], frames)
        before = 0.5 * h * momenta(mechanics, start.twists)
        after = momenta(mechanics, change) - before
        spin = _carried(after[:, 3:], last.rotations[:L], frames)
        gain = jnp.concatenate([after[:, :3], spin], axis=1) - before
        impulse = 0.5 * h * h * jnp.concatenate([wrench[:, :3], moment], axis=1)
        reaction = self._reaction(t, last, places, mu, mean)
        gap = mechanics.constraint(self.t0 + h, places)
        return jnp.concatenate([(gain - impulse + reaction).ravel(), gap])

    def _reaction(self, t, last: Poses, places: Placements, mu, quaternions):
        r"""$\bar G^T \mu$, moments in body components at the start."""
        mechanics, first = self.mechanics, self.first
        mean = jax.tree.map(lambda u, v: 0.5 * (u + v), first, last)

        def relatives(positions, rotations):
            x, R = mean.positions.at[:-1].set(positions), mean.rotations.at[:-1].set(rotations)
            seen = [place.relative for place in mechanics.place(Poses(x, R, mean.turns))]
            return [(relative.displacement, relative.rotation) for relative in seen]

        _, pull_back = jax.vjp(relatives, mean.positions[:-1], mean.rotations[:-1])
        blocks = mechanics.by_group(mu)
        gradients = [
            group.over(
                lambda joint, r0, r1, mu: joint.mean_gradient(r0, r1, t, mu),
                before.relative, after.relative, block,
            )
            for group, before, after, block in zip(
                mechanics.groups, self.places, places, blocks, strict=True
            )
        ]  # fmt: skip
        force, gradient = pull_back(gradients)
        matrices = mean.rotations[:-1]
        if any(self.by_quaternion):
            rows = np.array(self.by_quaternion)[:, None, None]
            matrices = jnp.where(rows, jax.vmap(euler_map)(quaternions), matrices)
        columns, slopes = (jnp.swapaxes(A, 1, 2) for A in (matrices, gradient))
        moment = jnp.sum(jax.vmap(jax.vmap(cross))(columns, slopes), axis=1)
        return jnp.concatenate([force, jax.vmap(to_body)(first.rotations[:-1], moment)], axis=1)


def _middle(mechanics, start: Phase, end: Phase, mean) -> Poses:
    """The pose half-way, where forces act."""
    lengths = jnp.sqrt(jnp.sum(mean * mean, axis=1, keepdims=True))
    positions = 0.5 * (start.positions + end.positions)
    half_way = Phase(positions, mean / lengths, start.twists, start.angles)
    return half_way.poses(mechanics)


def _carried(vectors, here, there):
    """Body components in one orientation as those in another."""
    return jax.vmap(lambda v, R, Q: to_body(Q, to_space(R, v)))(vectors, here, there)
