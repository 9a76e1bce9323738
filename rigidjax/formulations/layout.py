"""Where the unknowns of each body stand in the vector of unknowns."""

import abc
import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float


class AbstractLayout(abc.ABC):
    """Positions, velocities, then the angles of joints that are followed beyond pi."""

    num_bodies: int
    translates: bool
    num_angles: int

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
    def rotations(self, y: Float[Array, " N"]) -> list[Float[Array, " n"]]:
        """Coordinates of each rotation that is among the unknowns."""

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.num_positions + self.velocity_size + self.num_angles

    def velocities(self, y: Float[Array, " N"]) -> Float[Array, " V"]:
        """All velocity-level unknowns."""
        return y[self.num_positions : self.num_positions + self.velocity_size]

    def angles(self, y: Float[Array, " N"]) -> Float[Array, " A"]:
        """Angles of joints that are unknowns."""
        return y[self.size - self.num_angles : self.size]

    def with_angles(self, y: Float[Array, " N"], other: Float[Array, " N"]) -> Float[Array, " N"]:
        """`y` with the joint angles of `other`, which know their turns."""
        if self.num_angles == 0:
            return y
        return jnp.concatenate([y[: self.size - self.num_angles], self.angles(other)])


@dataclasses.dataclass(frozen=True)
class Layout(AbstractLayout):
    r"""Unknowns $(x_1, a_1, x_2, a_2, \dots, v_1, w_1, v_2, w_2, \dots)$, the order of Lang (58),
    (68).

    **Arguments:** `num_bodies`; `translates`, whether positions and velocities are unknowns;
    `num_coordinates` of a rotation; `num_rates`, rotational velocities of one body (3 in null-space
    coordinates, `num_coordinates` in absolute ones).
    """

    num_bodies: int
    translates: bool
    num_coordinates: int
    num_rates: int
    num_velocities: int | None = None
    num_angles: int = 0

    @property
    def velocity_size(self) -> int:
        if self.num_velocities is None:
            return self.num_bodies * self._twist
        return self.num_velocities

    @property
    def num_positions(self) -> int:
        return self.num_bodies * self._pose

    @property
    def _shift(self) -> int:
        return 3 if self.translates else 0

    @property
    def _pose(self) -> int:
        return self._shift + self.num_coordinates

    @property
    def _twist(self) -> int:
        return self._shift + self.num_rates

    def position(self, y: Float[Array, " N"], i: int) -> Float[Array, "3"]:
        """Position of body `i`."""
        start = i * self._pose
        return y[start : start + 3]

    def coordinates(self, y: Float[Array, " N"], i: int) -> Float[Array, " n"]:
        """Rotation coordinates of body `i`."""
        start = i * self._pose + self._shift
        return y[start : start + self.num_coordinates]

    @property
    def num_rotations(self) -> int:
        return self.num_bodies

    def rotations(self, y: Float[Array, " N"]) -> list[Float[Array, " n"]]:
        return [self.coordinates(y, i) for i in range(self.num_bodies)]

    def velocity(self, y: Float[Array, " N"], i: int) -> Float[Array, "3"]:
        """Velocity of body `i`."""
        start = self.num_positions + i * self._twist
        return y[start : start + 3]

    def rates(self, y: Float[Array, " N"], i: int) -> Float[Array, " k"]:
        """Rotational velocity unknowns of body `i`."""
        start = self.num_positions + i * self._twist + self._shift
        return y[start : start + self.num_rates]

    def set_coordinates(
        self, y: Float[Array, " N"], i: int, a: Float[Array, " n"]
    ) -> Float[Array, " N"]:
        """`y` with other rotation coordinates of body `i`."""
        start = i * self._pose + self._shift
        return y.at[start : start + self.num_coordinates].set(a)

    def set_rates(self, y: Float[Array, " N"], i: int, w: Float[Array, " k"]) -> Float[Array, " N"]:
        """`y` with other rotational velocity unknowns of body `i`."""
        start = self.num_positions + i * self._twist + self._shift
        return y.at[start : start + self.num_rates].set(w)

    def join(self, positions, coordinates, velocities, rates) -> Float[Array, " N"]:
        """Vector of unknowns (or of their rates) from one entry for each body.

        `positions` and `velocities` are empty if the bodies do not translate.
        """
        parts = []
        for shifts, turns in ((positions, coordinates), (velocities, rates)):
            for i, turn in enumerate(turns):
                if self.translates:
                    parts.append(shifts[i])
                parts.append(turn)
        return jnp.concatenate(parts)

    # All bodies at once, for systems with joints.

    def poses(self, y: Float[Array, " N"]) -> tuple[Float[Array, "L 3"], Float[Array, "L n"]]:
        """Positions and rotation coordinates of all bodies."""
        rows = y[: self.num_positions].reshape(self.num_bodies, self._pose)
        return rows[:, : self._shift], rows[:, self._shift :]

    def twists(self, y: Float[Array, " N"]) -> tuple[Float[Array, "L 3"], Float[Array, "L k"]]:
        """Velocities and rotational velocity unknowns of all bodies."""
        rows = self.velocities(y).reshape(self.num_bodies, self._twist)
        return rows[:, : self._shift], rows[:, self._shift :]

    def join_all(self, positions, coordinates, velocities, angles) -> Float[Array, " N"]:
        """Vector of unknowns (or of their rates) from stacked parts.

        `velocities`: all of them, shape (V,), or (L, 3 + k).
        """
        rows = jnp.concatenate([positions, coordinates], axis=1)
        return jnp.concatenate([rows.ravel(), velocities.ravel(), angles])
