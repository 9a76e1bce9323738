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

from ...bodies.potentials import AbstractPotential
from ...forces.base import Kinematics, Wrench
from ...rotations.base import AbstractRotation
from ...rotations.euler_map import euler_map
from ...rotations.guarded import safe_divide
from ...rotations.matrix import product
from ...rotations.so3 import dot, skew, unskew
from ...system import AbstractMechanics, System
from ...system.fixed_point import FixedPointMechanics
from ...system.mechanics import add
from .discrete_gradient import correction, defect
from .increments import Increment
from .motion import Motion, polished, turned


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

    def last_coordinates(self) -> list[Any]:
        """Rotations at the end, as the next step starts with them.

        Energies of coordinates that are off by round-off would not add up from step to step: 4e-11
        of 7 J in a million steps, all in one direction.
        """
        return [
            polished(self.rotation, turned(self.rotation, a, one.whole))
            for a, one in zip(self.start.coordinates, self.increments, strict=True)
        ]

    def ends(self, middle: Kinematics) -> tuple[Kinematics, Kinematics]:
        """Poses at start and end, with the twists of the middle, for potentials."""
        start = self.start
        positions = [x + self.h * v for x, v in zip(start.positions, self.velocities, strict=True)]
        coordinates = self.last_coordinates()

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
    raise NotImplementedError(f"There is no loads for `{type(mechanics).__name__}`.")


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
    mean, moment = _mean_moment(point, body.potential, R)
    if not body.potential.is_linear:
        missed = _missed(point, body.potential, R, mean, point.h * dot(W, moment))
        moment = moment - safe_divide(missed, point.h * dot(W, W)) * W
    return [(None, add(total, moment))]


def _mean_moment(
    point: MidPoint, potential: AbstractPotential, R: Float[Array, "3 3"]
) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
    """Moment of a potential that does the right work if that is linear in the rotation matrix.

    **Returns:** the matrix at which the gradient is taken; the moment, in components of the frame
    of the mid-point, `R`.
    """
    one = point.increments[0]
    if not point.mean_directors:
        # With the mean quaternion: a stretched rotation.
        mean = one.chord * R
        return mean, potential.moment(mean)
    # With the mean directors: (R_n + R_{n+1}) / 2 = R (F + F^T) / 2.
    F = euler_map(one.half) / one.square
    mean = product(R, 0.5 * (F + F.T))
    torque = product(product(R.T, potential.gradient(mean)), product(mean.T, R))
    return mean, -2.0 * unskew(torque)


def _missed(point: MidPoint, potential: AbstractPotential, R, mean, work) -> Float[Array, ""]:
    """What a potential gains in a step beyond the `work` against its mean moment.

    Slopes are those of the parabola of matrices through start, `mean` and end.
    """
    one = point.increments[0]
    ends = point.start.coordinates[0], point.last_coordinates()[0]
    R0, R1 = (point.rotation.to_matrix(a) for a in ends)
    change = one.chord * product(R, skew(point.h * point.omegas[0]))
    bend = 2.0 * (R0 + R1) - 4.0 * mean
    G0, G1 = potential.gradient(R0), potential.gradient(R1)
    slopes = jnp.sum(G0 * (change - bend)), -work, jnp.sum(G1 * (change + bend))
    size = jax.lax.stop_gradient(jnp.sum(jnp.abs(G0 * R0)) + jnp.sum(jnp.abs(G1 * R1)))
    return defect((potential(R0), potential(R1)), slopes, size)


@mean_loads.register
def _of_system(mechanics: System, point: MidPoint, conserves: bool):
    middle = point.kinematics()
    loads = list(mechanics.wrenches(point.t, middle))
    if not conserves or all(force.is_linear for force in mechanics.forces):
        return loads
    first, last = point.ends(middle)

    def kinematics_of(positions, rotations):
        return Kinematics(positions, rotations, middle.velocities, middle.angular_velocities)

    for force in mechanics.forces:
        if not force.is_linear:
            more = correction(
                mechanics.bodies, (), force, point.t, point.h, kinematics_of, first, middle, last,
                [one.chord for one in point.increments],
            )  # fmt: skip
            loads = [(add(f, df), add(m, dm)) for (f, m), (df, dm) in zip(loads, more, strict=True)]
    return loads
