r"""The step of systems that moves bodies with the means of their twists."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar, Vector
from ...formulations import AbstractFormulation
from ...mechanics.attachment import Placements, Poses
from ...mechanics.mechanics import SystemMechanics
from ...native.ops import cross
from ...rotations.euler_map import euler_map
from ...rotations.matrix import to_body
from .fixed_point import director_gain, director_rates
from .increments import Map, RotationIncrement, cayley, mapped
from .loads import applied, conserving_wrenches
from .newton import Root, find_root
from .phase import Phase, advanced, carried, is_held, middle_of, momenta
from .saddle import AbstractSaddle
from .sizes import extents
from .welded_assemblies import WeldedAssemblies, assembly_leads


def trapezoidal_step(
    model: AbstractFormulation,
    t0: Scalar,
    h: Scalar,
    start: Phase,
    multipliers: Vector,
    limit: int,
    *,
    free: Map,
    conserves: bool = True,
    published: bool = False,
) -> tuple[Phase, Root]:
    r"""One step that conserves momentum where nothing holds the system, and energy.

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

    Bodies without joints, and those that welds alone hold together as one (see
    `welded_assemblies`), turn by any other map of $h\,\bar\Omega$ about the same axis: QUAT.EM has
    $q_1 - q_0 = \frac h2\,\bar q \circ \bar\Omega$ with the mean quaternion $\bar q$. In DIR.EM
    their directors have rates of their own, of which the same is true as of the twists. With
    `published`, all bodies turn as QUAT.EM has it, and the rest of $\bar G$ is the chain rule over
    $R(q)$: $R_1 - R_0 = h\,R(\bar q)\,\bar\Omega^\wedge$, so that the moment of a joint has
    $R(\bar q)$ in the place of $\bar R$, which differs by $R(\frac12(q_1 - q_0))$. Energy and
    joints are as exact; angular momentum is so to second order.

    No gradient avoids that. Two bodies welded together that turn as one by $\varphi$ have
    $h \bar v = 2 \tan\frac\varphi2$ in units of their distances from the axis: energy, angular
    momentum and the weld ask for $h \bar\Omega = 2 \tan\frac\varphi2$ as well, which is the Cayley
    map, while the mean quaternion has $4 \tan\frac\varphi4$.

    **Arguments:** `model`; `multipliers`, the guess, those of the step before; `limit`, of Newton
    iterations; `free`, the map of bodies without joints; `conserves`, whether potentials do the
    work that they lose; `published`, whether bodies on joints turn by `free` too.
    **Returns:** the end, and the root: increments $h\,\bar w$ and multipliers $h^2\lambda/2$.
    **Source:** discrete null-space method: Betsch, Leyendecker, Int. J. Numer. Meth. Engng 67
    (2006); the mid-point rule on rotations: Simo, Wong (1991), Austin, Krishnaprasad, Wang (1993);
    the mean quaternion: Betsch-Siebert (50), (51); rates of directors: Betsch-Siebert, section 3.
    """
    mechanics = model.mechanics
    first, sizes = start.poses(mechanics), extents(mechanics, start.positions)
    held, assemblies = np.array(is_held(mechanics)), None
    if free is not cayley and not published and (leads := assembly_leads(mechanics)) is not None:
        assemblies = WeldedAssemblies(mechanics, leads, first)
        held = held & ~assemblies.is_member
    maps = tuple(cayley if is_on_joint and not published else free for is_on_joint in held)
    places = mechanics.place(first)
    equations = _Equations(
        mechanics, sizes, t0, h, start, first, places, maps, conserves, published, assemblies
    )
    guess = jnp.concatenate([h * start.twists.ravel(), multipliers])
    root = find_root(equations, guess, limit)
    change, _ = equations.unpacked(root.Z)
    return equations.concluded(change), root


class _Equations(AbstractSaddle):
    mechanics: SystemMechanics
    sizes: Float[Array, "L 6"]
    t0: Float[Array, ""]
    h: Float[Array, ""]
    start: Phase
    first: Poses
    places: Placements  # of the joints at the start
    maps: tuple[Map, ...] = eqx.field(static=True)
    conserves: bool = eqx.field(static=True)
    published: bool = eqx.field(static=True)
    assemblies: WeldedAssemblies | None

    def increments(self, change) -> RotationIncrement:
        """Rotations of all bodies."""
        return mapped(self.maps, change[:, 3:])

    def end(self, change) -> Phase:
        """Poses after the increments; twists are still those of the start."""
        start = self.start
        quaternions = advanced(start.quaternions, self.increments(change))
        positions = start.positions + change[:, :3]
        return Phase(positions, quaternions, start.twists, start.angles, start.rates)

    def concluded(self, change) -> Phase:
        """The end, with its twists."""
        start, end = self.start, self.end(change)
        twists = 2.0 / self.h * change - start.twists
        if self.assemblies is not None:
            last = end.poses(self.mechanics)
            of_assemblies = self.assemblies.twists(self.h, start.twists, change, last)
            twists = jnp.where(self.assemblies.is_member[:, None], of_assemblies, twists)
        if start.rates is None:
            return eqx.tree_at(lambda phase: phase.twists, end, twists)
        middle = middle_of(self.mechanics, start, end).rotations[:-1]
        rates = jax.vmap(director_rates, in_axes=(0, 0, 0, 0, None))(
            self.increments(change), middle, start.rates, change[:, 3:], self.h
        )
        return eqx.tree_at(lambda phase: (phase.twists, phase.rates), end, (twists, rates))

    def residual(self, Z):
        mechanics, start, h = self.mechanics, self.start, self.h
        change, mu = self.unpacked(Z)
        end, increments = self.end(change), self.increments(change)
        middle = middle_of(mechanics, start, end)
        first, last = self.first, end.poses(mechanics)
        L, t = mechanics.num_bodies, self.t0 + 0.5 * h
        # In body components at the start: rotations about the axis of the step leave them alone.
        frames = first.rotations[:L]
        moved = change
        if self.assemblies is not None:
            middle, moved = self.assemblies.in_the_middle(change, middle, last)
        if self.conserves:
            wrench = conserving_wrenches(
                mechanics, t, first, middle, last, moved, h, increments.chord
            )
        else:
            wrench = applied(mechanics, t, middle, moved / h)
        moment = carried(wrench[:, 3:], middle.rotations[:L], frames)
        before = 0.5 * h * momenta(mechanics, start.twists)
        after = momenta(mechanics, change) - before
        spin = carried(after[:, 3:], last.rotations[:L], frames) - before[:, 3:]
        if start.rates is not None:
            spin = self._spin_of_directors(change, increments, middle, spin)
        gain = jnp.concatenate([after[:, :3] - before[:, :3], spin], axis=1)
        impulse = 0.5 * h * h * jnp.concatenate([wrench[:, :3], moment], axis=1)
        if mechanics.is_free:
            return (gain - impulse).ravel()
        places = mechanics.place(last)
        reaction = self._reaction(t, last, places, mu, end.quaternions)
        gap = mechanics.constraint(self.t0 + h, places)
        balance = gain - impulse + reaction
        if (assemblies := self.assemblies) is not None:
            whole = assemblies.balance(h, start.twists, change, middle, last, wrench)
            loose = change - assemblies.following(change, last)
            rows = jnp.where(assemblies.is_lead[:, None], whole, loose)
            balance = jnp.where(assemblies.is_member[:, None], rows, balance)
            # Their welds hold by that.
            gap = jnp.where(assemblies.welds(mechanics), mu, gap)
        return jnp.concatenate([balance.ravel(), gap])

    def _spin_of_directors(self, change, increments, middle: Poses, spin):
        """Gains of angular momentum, where bodies without joints have rates of their directors."""
        assert self.start.rates is not None
        frames = self.first.rotations[:-1]
        rates = jnp.swapaxes(self.start.rates.reshape(-1, 3, 3), 1, 2)
        gain = 0.5 * jax.vmap(director_gain, in_axes=(0, 0, 0, 0, 0, None))(
            self.mechanics.inertias, increments, frames, rates, change[:, 3:], self.h
        )
        held = np.array(is_held(self.mechanics))[:, None]
        return jnp.where(held, spin, carried(gain, middle.rotations[:-1], frames))

    def _reaction(self, t, last: Poses, places: Placements, mu, ends):
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
        if self.published:
            matrices = jax.vmap(euler_map)(0.5 * (self.start.quaternions + ends))
        columns, slopes = (jnp.swapaxes(A, 1, 2) for A in (matrices, gradient))
        moment = jnp.sum(jax.vmap(jax.vmap(cross))(columns, slopes), axis=1)
        return jnp.concatenate([force, jax.vmap(to_body)(first.rotations[:-1], moment)], axis=1)
