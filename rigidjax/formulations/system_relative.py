r"""Joint coordinates of the trees and their rates; loops are closed on the rates."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import ArrayInput
from ..rotations.base import AbstractRotation
from ..rotations.euler_map import euler_map
from ..rotations.so3 import conjugate, multiply
from ..rotations.spurrier_klumpp import spurrier_klumpp
from ..state import State
from ..system import System
from ..system.attachment import Poses
from ..system.constraints import factor_loops, regular_inertias
from ..system.dynamics import consistent_rates
from ..system.mechanics import SystemMechanics, Twists
from ..system.placing import plain_counts, tree_poses, turning_bodies
from ..system.rows import take
from ..system.trees import tree_rates
from .charts import Unknowns, join_chart, split_chart
from .layout import AbstractLayout
from .system_rates import AbstractSystemRates


@dataclasses.dataclass(frozen=True)
class TreeLayout(AbstractLayout):
    """Coordinates of the joint that each body hangs on: lengths and angles, then its rotation.

    **Arguments:** `plain`, lengths and angles of each body; `turning`, the bodies whose rotation is
    free; `num_coordinates` of a rotation; `rates`, minimal velocities of each body; `num_angles`,
    those of joints of loops that are followed.
    """

    plain: tuple[int, ...]
    turning: tuple[int, ...]
    num_coordinates: int
    rates: tuple[int, ...]
    num_angles: int
    translates: ClassVar[bool] = True

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
        """The same of the minimal velocities: rows (q,), and (k, 3)."""
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
        """Rows of the coordinates of what a body hangs on, and of its rates among all rates."""
        own = [
            count + self.num_coordinates * (i in self.turning) for i, count in enumerate(self.plain)
        ]
        ends = sum(own[: body + 1]), sum(self.rates[: body + 1])
        return slice(ends[0] - own[body], ends[0]), slice(ends[1] - self.rates[body], ends[1])

    def split(self, y: Float[Array, " N"]) -> tuple[Float[Array, " q"], Float[Array, "k n"]]:
        """Lengths and angles, and coordinates of the rotations."""
        plain, turning = self.where
        return take(y, plain), take(y, turning.ravel()).reshape(turning.shape)

    def split_rates(self, nu: Float[Array, " f"]) -> tuple[Float[Array, " q"], Float[Array, "k 3"]]:
        """Minimal velocities of lengths and angles, and angular velocities."""
        plain, turning = self.where_of_rates
        return take(nu, plain), take(nu, turning.ravel()).reshape(turning.shape)

    def join(self, plain, turning, velocities, angles) -> Float[Array, " N"]:
        """Unknowns, or their rates, from parts."""
        order = np.argsort(np.concatenate([rows.ravel() for rows in self.where]))
        positions = take(jnp.concatenate([plain, turning.ravel()]), order)
        return jnp.concatenate([positions, velocities, angles])

    def rotations(self, y: Float[Array, " N"]) -> list[Float[Array, " n"]]:
        return list(self.split(y)[1])


class SystemRelative(AbstractSystemRates):
    r"""$y = (q_1, q_2, \dots, \nu)$, the coordinates of the joints that the bodies hang on."""

    system: System
    rotation: AbstractRotation
    built: SystemMechanics | None

    @property
    def layout(self) -> TreeLayout:
        system = self.system
        return TreeLayout(
            plain_counts(system), turning_bodies(system), self.rotation.num_coordinates,
            system.rates_of_bodies, len(self.followed),
        )  # fmt: skip

    @property
    def followed(self) -> tuple[int, ...]:
        """Joints of loops whose whole turns matter; those of the trees know theirs."""
        loops = self.system.topology.loops
        return tuple(j for j in self.system.tracked_joints if j in loops)

    def poses(self, t, y: Unknowns) -> Poses:
        values, reference = split_chart(y)
        plain, a = self.layout.split(values)
        t = jnp.asarray(t, values.dtype)
        poses = tree_poses(self.mechanics, t, plain, self.matrices(a, reference))
        followed = self.followed
        if not followed:
            return poses
        missing = self.layout.angles(values) - self._angles(poses)
        turns = 2 * jnp.pi * jnp.round(jax.lax.stop_gradient(missing) / (2 * jnp.pi))
        turns = poses.turns.at[np.array(followed)].add(turns)
        return Poses(poses.positions, poses.rotations, turns)

    def matrices(self, a, reference):
        if not self.layout.num_rotations:
            return jnp.zeros((0, 3, 3), a.dtype)
        return super().matrices(a, reference)

    def _angles(self, poses: Poses) -> Float[Array, " A"]:
        """Angles of the joints of loops that are followed."""
        if not self.followed:
            return jnp.zeros(0, poses.positions.dtype)
        found, joints = self.mechanics.coordinates(self.mechanics.place(poses)), self.system.joints
        return jnp.stack([found[j][joints[j].num_translations] for j in self.followed])

    def quaternions(self, state: State) -> list[Float[Array, "4"]]:
        """Rotations that are among the coordinates, of bodies in a state, as quaternions."""
        placed = self.mechanics.by_joint(self.mechanics.place(self._poses_of(state)))
        out = []
        for body in self.layout.turning:
            j = self.system.topology.joints[body]
            free = j is None
            p = state.orientation[body] if free else spurrier_klumpp(placed[j].relative.rotation)
            out.append(p)
        return out

    def _poses_of(self, state: State) -> Poses:
        R = jax.vmap(euler_map)(state.orientation)
        return self.mechanics.poses(state.position, R, jnp.zeros(0))

    @eqx.filter_jit
    def pack(self, state: State, reference=None, t: ArrayInput = 0.0) -> Float[Array, " N"]:
        mechanics, dtype = self.mechanics, state.position.dtype
        t = jnp.asarray(t, dtype)
        poses = self._poses_of(state)
        places = mechanics.place(poses)
        found, topology = mechanics.coordinates(places), self.system.topology
        plain = [jnp.zeros(0, dtype)]
        for body, j in enumerate(topology.joints):
            count = self.layout.plain[body]
            plain.append(state.position[body] if j is None else found[j][:count])
        a = jnp.zeros((0, self.rotation.num_coordinates), dtype)
        if self.layout.turning:
            p = jnp.stack(self.quaternions(state))
            if reference is not None:
                p = jax.vmap(lambda ref, p: multiply(conjugate(ref), p))(reference, p)
            a = jax.vmap(self.rotation.from_quaternion)(p)
        nu = tree_rates(mechanics, t, places, Twists(state.velocity, state.angular_velocity))
        nu = consistent_rates(mechanics, t, poses, places, nu)
        return self.layout.join(jnp.concatenate(plain), a, nu, self._angles(poses))

    def decoded(self, t, y: Unknowns) -> State:
        """Physical state of the unknowns."""
        poses, _, twists = self.motion(t, y)
        p = jax.vmap(spurrier_klumpp)(poses.rotations[:-1])
        return State(poses.positions[:-1], p, twists.linear, twists.angular)

    def rotation_rates(self, y: Unknowns, nu) -> Float[Array, "k n"]:
        """Rates of the rotation coordinates."""
        _, a = self.layout.split(split_chart(y)[0])
        _, omega = self.layout.split_rates(nu)
        return jax.vmap(self.rotation.rate)(a, omega) if len(a) else a

    def coordinate_rates(self, y: Unknowns, twists: Twists) -> Float[Array, "k n"]:
        return self.rotation_rates(y, self.layout.velocities(split_chart(y)[0]))

    def joined_rates(self, y, places, of):
        plain, _ = self.layout.split_rates(of.rates)
        angles = self.angle_rates(places, of.twists)
        return self.layout.join(plain, self.rotation_rates(y, of.rates), of.derivatives, angles)

    def rotation_coordinates(self, y: Unknowns) -> Float[Array, "k n"]:
        return self.layout.split(split_chart(y)[0])[1]

    def newton_step(self, t, y: Unknowns) -> Unknowns:
        values, _ = split_chart(y)
        layout, mechanics = self.layout, self.mechanics.holonomic
        plain, a = layout.split(values)
        nu, angles = layout.velocities(values), layout.angles(values)
        project = jax.vmap(self.rotation.project) if len(a) else lambda a: a
        a = project(a)
        if mechanics.system.closes:
            y = join_chart(layout.join(plain, a, nu, angles), y)
            poses = self.poses(t, y)
            places = mechanics.place(poses)
            residual = mechanics.constraint(t, places, loops_only=True)
            inertias = regular_inertias(mechanics)
            change = factor_loops(mechanics, t, poses, places, inertias).correction(residual)
            moved, _ = layout.split_rates(change)
            plain, a = plain + moved, project(a + self.rotation_rates(y, change))
            if angles.size:
                y = join_chart(layout.join(plain, a, nu, angles), y)
                angles = self._angles(self.poses(t, y))
        return join_chart(layout.join(plain, a, nu, angles), y)

    def with_rates(self, y: Unknowns, nu) -> Unknowns:
        values, _ = split_chart(y)
        layout = self.layout
        return join_chart(layout.join(*layout.split(values), nu, layout.angles(values)), y)
