r"""Forces and moments at the mid-point of a step, with Gonzalez' discrete derivative.

In a step a body moves by $h V$ and turns by $h W$ in the frame of the mid-point, mean velocity and
mean angular velocity: a force $f$ and a moment $\mu$ do the work $h (V \cdot f + W \cdot \mu)$.
Energy is conserved if that of the potentials is $U_n - U_{n+1}$. The potential's own force at the
mid-point misses that by a defect of third order (none if the potential is linear), which a force
along the motion makes up for.
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies.euler_equations import angular_momentum, solve_inertia
from ...bodies.inertia import inertia_tensor
from ...bodies.potentials import AbstractPotential
from ...forces.base import AbstractForce, Kinematics, Wrench, body_index, to_space
from ...rotations.base import AbstractRotation
from ...rotations.euler_map import euler_map
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product
from ...rotations.so3 import cross, dot, skew, unskew
from ...system import AbstractMechanics, System
from ...system.fixed_point import FixedPointMechanics
from ...system.mechanics import add
from .increments import Increment
from .motion import Motion, turned


class MidPoint(NamedTuple):
    """The middle of a step of length `h` that ends where `velocities`, `omegas` (means) lead.

    `mean_directors`: potentials of orientation act where the directors are the means of both ends.
    """

    rotation: AbstractRotation
    t: Float[Array, ""]
    h: Float[Array, ""]
    start: Motion
    velocities: Any
    omegas: Any
    increments: list[Increment]
    mean_directors: bool = False

    def kinematics(self) -> Kinematics:
        """Poses and twists in the middle."""
        positions = [
            x + 0.5 * self.h * v for x, v in zip(self.start.positions, self.velocities, strict=True)
        ]
        rotations = [
            self.rotation.to_matrix(turned(self.rotation, a, one.half)) / one.square
            for a, one in zip(self.start.coordinates, self.increments, strict=True)
        ]
        return Kinematics(
            tuple(positions), tuple(rotations), tuple(self.velocities), tuple(self.omegas)
        )

    def ends(self, middle: Kinematics) -> tuple[Kinematics, Kinematics]:
        """Poses at start and end, with the twists of the middle, for potentials."""
        start = self.start
        positions = [x + self.h * v for x, v in zip(start.positions, self.velocities, strict=True)]
        coordinates = [
            turned(self.rotation, a, one.whole)
            for a, one in zip(start.coordinates, self.increments, strict=True)
        ]

        def kinematics(positions, coordinates):
            rotations = tuple(self.rotation.to_matrix(a) for a in coordinates)
            return Kinematics(
                tuple(positions), rotations, middle.velocities, middle.angular_velocities
            )

        first = kinematics(start.positions, start.coordinates)
        return first, kinematics(positions, coordinates)


@singledispatch
def mean_loads(mechanics: AbstractMechanics, point: MidPoint, conserves: bool) -> Sequence[Wrench]:
    """Force (space) and moment (frame of the mid-point) on each body over a step.

    **Arguments:** `mechanics`; `point`; `conserves`, whether the potentials do exactly the work
    that they lose.
    """
    raise NotImplementedError


@mean_loads.register
def _of_fixed_point(mechanics: FixedPointMechanics, point: MidPoint, conserves: bool):
    body = mechanics.body
    if body.is_free:
        return [(None, None)]
    middle = point.kinematics()
    R, W = middle.rotations[0], middle.angular_velocities[0]
    total = None
    if body.moment is not None:
        total = body.extra_moment(point.t, R, W)
    if body.potential is None:
        return [(None, total)]
    if not conserves:
        return [(None, add(total, body.potential.moment(R)))]
    moment = _mean_moment(point, body.potential, R)
    if not body.potential.is_linear:
        first, last = point.ends(middle)
        gain = body.potential(last.rotations[0]) - body.potential(first.rotations[0])
        defect = gain + point.h * dot(W, moment)
        moment = moment - safe_divide(defect, point.h * dot(W, W)) * W
    return [(None, add(total, moment))]


def _mean_moment(
    point: MidPoint, potential: AbstractPotential, R: Float[Array, "3 3"]
) -> Float[Array, "3"]:
    """Moment of a potential that does the right work if that is linear in the rotation matrix.

    In components of the frame of the mid-point, `R`.
    """
    one = point.increments[0]
    if not point.mean_directors:
        # With the mean quaternion: a stretched rotation.
        return potential.moment(one.chord * R)
    # With the mean directors: (R_n + R_{n+1}) / 2 = R (F + F^T) / 2.
    F = euler_map(one.half) / one.square
    mean = product(R, 0.5 * (F + F.T))
    return -2.0 * unskew(product(product(R.T, potential.gradient(mean)), product(mean.T, R)))


@mean_loads.register
def _of_system(mechanics: System, point: MidPoint, conserves: bool):
    middle = point.kinematics()
    loads = list(mechanics.wrenches(point.t, middle))
    if not conserves or all(force.is_linear for force in mechanics.forces):
        return loads
    first, last = point.ends(middle)
    for force in mechanics.forces:
        if not force.is_linear:
            more = _correction(mechanics, force, point, middle, first, last)
            loads = [(add(f, df), add(m, dm)) for (f, m), (df, dm) in zip(loads, more, strict=True)]
    return loads


def _correction(
    mechanics: System, force: AbstractForce, point: MidPoint, middle, first, last
) -> list[Wrench]:
    """What makes up for the defect of one force, along the motion of the bodies that it acts on.

    Between bodies, where nothing but their relative motion matters, along that alone: total
    momentum and angular momentum are not touched.
    """
    bodies, h = mechanics.bodies, point.h

    def energy(positions, rotations):
        kinematics = Kinematics(positions, rotations, middle.velocities, middle.angular_velocities)
        return force.potential_energy(point.t, bodies, kinematics)

    steps = (
        tuple(h * v for v in middle.velocities),
        tuple(
            product(R, skew(h * w))
            for R, w in zip(middle.rotations, middle.angular_velocities, strict=True)
        ),
    )
    _, slope = jax.jvp(energy, (middle.positions, middle.rotations), steps)
    ends = jax.tree.map(
        lambda a, b: jnp.stack([a, b]),
        (first.positions, first.rotations), (last.positions, last.rotations),
    )  # fmt: skip
    before, after = jnp.unstack(jax.vmap(energy)(*ends))
    gain = after - before
    names = force.body_names()
    rows = [body_index(bodies, name) for name in names] or list(range(len(bodies)))
    velocities = {i: middle.velocities[i] for i in rows}
    omegas = {i: middle.angular_velocities[i] for i in rows}
    if len(names) > 1:
        velocities, omegas = _relative(bodies, middle, velocities, omegas)
    momenta = {
        i: (bodies[i].mass * velocities[i], angular_momentum(bodies[i].inertia, omegas[i]))
        for i in rows
    }
    twice = sum(dot(momenta[i][0], velocities[i]) + dot(momenta[i][1], omegas[i]) for i in rows)
    factor = -safe_divide(gain - slope, h * twice)
    return [
        (factor * momenta[i][0], factor * momenta[i][1]) if i in momenta else (None, None)
        for i in range(len(bodies))
    ]


def _relative(bodies, middle, velocities, omegas):
    """Twists less the rigid motion that has their momentum and angular momentum."""
    rows = list(velocities)
    mass = sum(bodies[i].mass for i in rows)
    center = sum(bodies[i].mass * middle.positions[i] for i in rows) / mass
    drift = sum(bodies[i].mass * velocities[i] for i in rows) / mass
    spin = jnp.zeros_like(velocities[rows[0]])
    locked = jnp.zeros((3, 3), spin.dtype)
    for i in rows:
        body, R, arm = bodies[i], middle.rotations[i], middle.positions[i] - center
        spin = spin + to_space(R, angular_momentum(body.inertia, omegas[i]))
        spin = spin + body.mass * cross(arm, velocities[i] - drift)
        locked = locked + product(product(R, inertia_tensor(body.inertia)), R.T)
        S = skew(arm)
        locked = locked - body.mass * product(S, S)
    turn = solve_inertia(locked, spin)
    return (
        {i: velocities[i] - drift - cross(turn, middle.positions[i] - center) for i in rows},
        {i: omegas[i] - to_space(middle.rotations[i].T, turn) for i in rows},
    )
