"""One step of free bodies whose unknowns are the mean twists of the step."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...bodies.euler_equations import angular_momentum
from ...rotations.base import AbstractRotation
from ...system import AbstractMechanics
from .increments import Increment, Map, cayley, rotated
from .midpoint_loads import MidPoint, mean_loads
from .motion import Motion, polished, turned
from .motion_step import AbstractMotionStep
from .sizes import extent


class AbstractMeanTwistStep(AbstractMotionStep):
    r"""Equations for $Z$: rows $(V, W)$, or $W$ of a body with a fixed point.

    The centres of mass move by $h V$ (space components, m/s), the bodies turn about $W$ (rad/s, the
    same components in the frames of start, middle and end).

    **Attributes:** `mechanics`; `rotation`; `t0`, `h`, start and length of the step; `start`, the
    motion there.
    """

    mechanics: AbstractMechanics
    rotation: AbstractRotation
    t0: Float[Array, ""]
    h: Float[Array, ""]
    start: Motion

    @property
    @abc.abstractmethod
    def mean_directors(self) -> bool:
        """As in `MidPoint`."""

    @abc.abstractmethod
    def balance(self, V: Any, W: Any, increments: list[Increment]) -> tuple[list[Any], list[Any]]:
        """What is zero: balances of momentum and of angular momentum, one for each body."""

    @abc.abstractmethod
    def conclude(
        self, V: Any, W: Any, increments: list[Increment], coordinates: Any
    ) -> tuple[Any, Any, Any]:
        """Velocities, angular velocities and `Motion.rates` at the end with its `coordinates`."""

    @abc.abstractmethod
    def increment(self, psi: Float[Array, "3"]) -> Increment:
        """The rotation of a body for $h W$."""

    def split(self, Z: Float[Array, "L k"]) -> tuple[list[Any], list[Any], list[Increment]]:
        """Mean velocities (empty if the bodies do not translate), mean rates, and rotations."""
        rows = [Z[i] for i in range(Z.shape[0])]
        V = [row[:3] for row in rows] if self.mechanics.translates else []
        W = [row[-3:] for row in rows]
        return V, W, [self.increment(self.h * w) for w in W]

    def residual(self, Z: Float[Array, "L k"]) -> Float[Array, "L k"]:
        linear, angular = self.balance(*self.split(Z))
        if not self.mechanics.translates:
            return jnp.stack(angular)
        return jnp.stack([jnp.concatenate(pair) for pair in zip(linear, angular, strict=True)])

    def guess(self) -> Float[Array, "L k"]:
        """The twists at the start."""
        rows = self.start.omegas
        if self.mechanics.translates:
            rows = [
                jnp.concatenate(pair)
                for pair in zip(self.start.velocities, self.start.omegas, strict=True)
            ]
        return jnp.stack(list(rows))

    def sizes(self) -> Float[Array, "L k"]:
        """A radian, or the distance of a body from the origin and its extent, in a step."""
        rows = [jnp.ones_like(w) for w in self.start.omegas]
        if self.mechanics.translates:
            masses, inertias = self.mechanics.masses(), self.mechanics.inertias()
            lengths = map(extent, self.start.positions, masses, inertias)
            rows = [
                jnp.concatenate([length * one, one])
                for length, one in zip(lengths, rows, strict=True)
            ]
        return jnp.stack(rows) / jnp.abs(self.h)

    def end(self, Z: Float[Array, "L k"]) -> Motion:
        """The motion at the end."""
        V, W, increments = self.split(Z)
        positions = [x + self.h * v for x, v in zip(self.start.positions, V, strict=True)]
        coordinates = [
            polished(self.rotation, turned(self.rotation, a, one.whole))
            for a, one in zip(self.start.coordinates, increments, strict=True)
        ]
        velocities, omegas, rates = self.conclude(V, W, increments, coordinates)
        return Motion(positions, coordinates, velocities, omegas, rates)

    def middle(self, V: Any, W: Any, increments: list[Increment]) -> MidPoint:
        """The middle of the step."""
        t = self.t0 + 0.5 * self.h
        return MidPoint(self.rotation, t, self.h, self.start, V, W, increments, self.mean_directors)


class TrapezoidalStep(AbstractMeanTwistStep):
    r"""$V$ and $W$ are the means of the twists at both ends; momentum is balanced in space.

    $m(v_{n+1} - v_n) = h f$, and $F I \Omega_{n+1} - F^T I \Omega_n = h \mu$ in the frame of the
    mid-point with the half rotation $F$. Whatever the angle of the rotation about $W$, angular
    momentum is conserved without moments, and the gain of kinetic energy is the work
    $h (V \cdot f + W \cdot \mu)$.

    **Attributes:** `map`, the rotation for $h W$; `conserves`, whether potentials do the work that
    they lose.
    """

    map: Map = eqx.field(static=True)
    conserves: bool = eqx.field(static=True)

    @property
    def mean_directors(self):
        return self.map is cayley

    def increment(self, psi):
        return self.map(psi)

    def conclude(self, V, W, increments, coordinates):
        v1, w1 = self._twists(V, W)
        return v1, w1, None

    def _twists(self, V: Any, W: Any) -> tuple[list[Any], list[Any]]:
        start = self.start
        return (
            [2.0 * mean - v for mean, v in zip(V, start.velocities, strict=True)],
            [2.0 * mean - w for mean, w in zip(W, start.omegas, strict=True)],
        )

    def balance(self, V, W, increments):
        v1, w1 = self._twists(V, W)
        linear = momentum_gains(self.mechanics, self.start.velocities, v1)
        angular = [
            rotated(one, angular_momentum(inertia, after))
            - rotated(one, angular_momentum(inertia, before), back=True)
            for one, inertia, before, after in zip(
                increments, self.mechanics.inertias(), self.start.omegas, w1, strict=True
            )
        ]
        loads = mean_loads(self.mechanics, self.middle(V, W, increments), self.conserves)
        return less_impulses(linear, angular, self.h, loads)


def momentum_gains(mechanics: AbstractMechanics, before: Any, after: Any) -> list[Any]:
    """What the momenta gain, kg m/s."""
    return [
        mass * (v1 - v0) for mass, v0, v1 in zip(mechanics.masses(), before, after, strict=True)
    ]


def less_impulses(linear: list[Any], angular: list[Any], h: Any, loads: Any) -> Any:
    """Gains of momentum and of angular momentum less the impulses of the loads."""
    if linear:
        linear = [
            p if force is None else p - h * force
            for p, (force, _) in zip(linear, loads, strict=True)
        ]
    angular = [
        m if moment is None else m - h * moment
        for m, (_, moment) in zip(angular, loads, strict=True)
    ]
    return linear, angular
