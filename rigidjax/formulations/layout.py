"""Positions of the unknowns of each body in the vector of unknowns."""

import abc
import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..small_arrays import take


class AbstractLayout(abc.ABC):
    """Positions, velocities, unwrapped angles of joints, then states of controllers."""

    num_bodies: int
    translates: bool
    num_angles: int
    num_states: int

    @property
    @abc.abstractmethod
    def num_positions(self) -> int:
        """Number of position-level unknowns."""

    @property
    @abc.abstractmethod
    def velocity_size(self) -> int:
        """Number of velocity-level unknowns."""

    @property
    @abc.abstractmethod
    def num_rotations(self) -> int:
        """Number of rotations whose coordinates are among the unknowns."""

    @abc.abstractmethod
    def rotations(self, y: Float[Array, " N"]) -> Float[Array, "k n"]:
        """Return the coordinates of all rotations that are among the unknowns."""

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.num_positions + self.velocity_size + self.num_angles + self.num_states

    def velocities(self, y: Float[Array, " N"]) -> Float[Array, " V"]:
        """Return all velocity-level unknowns."""
        return y[self.num_positions : self.num_positions + self.velocity_size]

    def angles(self, y: Float[Array, " N"]) -> Float[Array, " A"]:
        """Return the joint angles that are unknowns."""
        end = self.size - self.num_states
        return y[end - self.num_angles : end]

    def states(self, y: Float[Array, " N"]) -> Float[Array, " s"]:
        """Return the states of actuators and sampled controllers."""
        return y[self.size - self.num_states : self.size]

    def angles_and_states(self, y: Float[Array, " N"]) -> Float[Array, " A+s"]:
        """Return the joint angles that are unknowns, and the states."""
        return y[self.size - self.num_angles - self.num_states : self.size]

    def with_states(self, y: Float[Array, " N"], states: Float[Array, " s"]) -> Float[Array, " N"]:
        """Return `y` with other states."""
        start = self.size - self.num_states
        return jnp.concatenate([y[:start], states, y[self.size :]])

    def with_angles(self, y: Float[Array, " N"], other: Float[Array, " N"]) -> Float[Array, " N"]:
        """Return `y` with the joint angles, which include revolutions, and states of `other`."""
        if self.num_angles + self.num_states == 0:
            return y
        start = self.size - self.num_angles - self.num_states
        return jnp.concatenate([y[:start], self.angles_and_states(other)])

    def with_velocities(
        self, y: Float[Array, " N"], velocities: Float[Array, " V"]
    ) -> Float[Array, " N"]:
        """Return `y` with other velocity-level unknowns."""
        end = self.num_positions + self.velocity_size
        return jnp.concatenate([y[: self.num_positions], velocities, y[end:]])


@dataclasses.dataclass(frozen=True)
class Layout(AbstractLayout):
    r"""Unknowns $(x_1, a_1, x_2, a_2, \dots, v_1, w_1, v_2, w_2, \dots)$, the order of Lang (58),
    (68).

    **Arguments:** `num_bodies`; `translates`, whether positions and velocities are unknowns, zero
    otherwise; `num_coordinates` of a rotation; `num_rates`, rotational velocities of one body (3 in
    null-space coordinates, `num_coordinates` in absolute ones); `num_velocities`, all of them, if
    they are not those of each body; `num_angles`; `num_states`.
    """

    num_bodies: int
    translates: bool
    num_coordinates: int
    num_rates: int
    num_velocities: int | None = None
    num_angles: int = 0
    num_states: int = 0

    @property
    def velocity_size(self) -> int:
        if self.num_velocities is None:
            return self.num_bodies * (self.shift + self.num_rates)
        return self.num_velocities

    @property
    def num_positions(self) -> int:
        return self.num_bodies * (self.shift + self.num_coordinates)

    @property
    def shift(self) -> int:
        """Number of coordinates of a position that are unknowns."""
        return 3 if self.translates else 0

    @property
    def num_rotations(self) -> int:
        return self.num_bodies

    def rotations(self, y: Float[Array, " N"]) -> Float[Array, "L n"]:
        return self.poses(y)[1]

    def poses(self, y: Float[Array, " N"]) -> tuple[Float[Array, "L 3"], Float[Array, "L n"]]:
        """Return positions and rotation coordinates of all bodies."""
        return self._parts(y[: self.num_positions])

    def twists(self, y: Float[Array, " N"]) -> tuple[Float[Array, "L 3"], Float[Array, "L k"]]:
        """Return velocities and rotational velocity unknowns of all bodies."""
        return self._parts(self.velocities(y))

    def _parts(self, values: Float[Array, " n"]) -> tuple[Array, Array]:
        rows = values.reshape(self.num_bodies, -1)
        if not self.translates:
            return jnp.zeros((self.num_bodies, 3), rows.dtype), rows
        return rows[:, :3], rows[:, 3:]

    def join(self, linear: Float[Array, "L 3"], turning: Float[Array, "L n"]) -> Float[Array, " m"]:
        """Join linear and rotational quantities of all bodies as unknowns of one level."""
        return jnp.concatenate([linear[:, : self.shift], turning], axis=1).ravel()

    def join_all(
        self,
        positions: Float[Array, "L 3"],
        coordinates: Float[Array, "k n"],
        velocities: Float[Array, " V"],
        rest: Float[Array, " A+s"],
    ) -> Float[Array, " N"]:
        """Return all unknowns, or their rates, from parts; `rest`, joint angles and states."""
        return jnp.concatenate([self.join(positions, coordinates), velocities, rest])


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
