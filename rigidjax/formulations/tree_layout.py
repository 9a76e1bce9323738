"""Positions of the joint coordinates of trees in the vector of unknowns."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..native.ops import take
from .layout import AbstractLayout


@dataclasses.dataclass(frozen=True)
class TreeLayout(AbstractLayout):
    """Coordinates of the joint of each body: lengths and angles, then its rotation.

    **Arguments:** `plain`, lengths and angles of each body; `turning`, the bodies whose rotation is
    free; `num_coordinates` of a rotation; `rates`, generalised velocities of each body;
    `num_angles`, unwrapped angles of joints of loops; `translates`, whether free bodies do;
    `num_states`, of actuators and controllers.
    """

    plain: tuple[int, ...]
    turning: tuple[int, ...]
    num_coordinates: int
    rates: tuple[int, ...]
    num_angles: int
    translates: bool = True
    num_states: int = 0

    @property
    def num_bodies(self) -> int:
        return len(self.plain)

    @property
    def num_positions(self) -> int:
        return sum(self.plain) + self.num_coordinates * self.num_rotations

    @property
    def velocity_size(self) -> int:
        return sum(self.rates)

    @property
    def num_rotations(self) -> int:
        return len(self.turning)

    @property
    def where(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of lengths and angles (q,), and of the rotations, (k, n)."""
        plain: list[int] = []
        turning: list[list[int]] = []
        row = 0
        for body, count in enumerate(self.plain):
            plain += range(row, row + count)
            row += count
            if body in self.turning:
                turning.append(list(range(row, row + self.num_coordinates)))
                row += self.num_coordinates
        rows = np.array(turning, int).reshape(self.num_rotations, self.num_coordinates)
        return np.array(plain, int), rows

    @property
    def where_of_rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of lengths and angles, (q,), and of rotations, (k, 3), among the rates."""
        plain: list[int] = []
        turning: list[list[int]] = []
        row = 0
        for body, (count, all_of_them) in enumerate(zip(self.plain, self.rates, strict=True)):
            plain += range(row, row + count)
            if body in self.turning:
                turning.append(list(range(row + count, row + all_of_them)))
            row += all_of_them
        return np.array(plain, int), np.array(turning, int).reshape(self.num_rotations, 3)

    def rows_of(self, body: int) -> tuple[slice, slice]:
        """Return the rows of the coordinates and of the rates of the joint of a body."""
        own = [
            count + self.num_coordinates * (i in self.turning) for i, count in enumerate(self.plain)
        ]
        ends = sum(own[: body + 1]), sum(self.rates[: body + 1])
        return slice(ends[0] - own[body], ends[0]), slice(ends[1] - self.rates[body], ends[1])

    def split(self, y: Float[Array, " N"]) -> tuple[Float[Array, " q"], Float[Array, "k n"]]:
        """Return lengths and angles, and coordinates of the rotations."""
        plain, turning = self.where
        return take(y, plain), take(y, turning.ravel()).reshape(turning.shape)

    def split_rates(self, nu: Float[Array, " f"]) -> tuple[Float[Array, " q"], Float[Array, "k 3"]]:
        """Return rates of lengths and angles, and angular velocities."""
        plain, turning = self.where_of_rates
        return take(nu, plain), take(nu, turning.ravel()).reshape(turning.shape)

    def join(
        self,
        plain: Float[Array, " q"],
        turning: Float[Array, "k n"],
        velocities: Float[Array, " V"],
        rest: Float[Array, " A+s"],
    ) -> Float[Array, " N"]:
        """Return unknowns, or their rates, from parts; `rest`, joint angles and states."""
        order = np.argsort(np.concatenate([rows.ravel() for rows in self.where]))
        positions = take(jnp.concatenate([plain, turning.ravel()]), order)
        return jnp.concatenate([positions, velocities, rest])

    def rotations(self, y: Float[Array, " N"]) -> Float[Array, "k n"]:
        return self.split(y)[1]
