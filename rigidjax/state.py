"""The physical, parametrization-free state of a system of rigid bodies."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .checks import ArrayInput, as_leaf, check_finite, float_array, is_traced


def _rows(name: str, value: Any, width: int) -> Any:
    # An array of single precision makes a state of single precision.
    if not (
        isinstance(value, jax.Array | np.ndarray) and jnp.issubdtype(value.dtype, jnp.floating)
    ):
        value = float_array(value, f"State({name}=...)")
    value = value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)
    if value.ndim == 1:
        value = value[None]
    if value.ndim != 2 or value.shape[1] != width:
        raise ValueError(
            f"`State({name}=...)` must have shape (L, {width}), one row for each body; "
            f"got shape {value.shape}. For many states at once use `jax.vmap`."
        )
    return value


# Number of rows or angles that a summary shows, and the fields that it shows with their units.
_SHOWN = 3
_PARTS = (
    ("position", ", m"), ("orientation", ""), ("velocity", ", m/s"),
    ("angular_velocity", ", rad/s"),
)  # fmt: skip


def _format_rows(values: Any, ndim: int) -> str:
    """Return the first rows of an array as text, or its shape if it is traced or a batch."""
    if not isinstance(values, jax.Array | np.ndarray) or is_traced(values) or values.ndim > ndim:
        return f"shape {jnp.shape(values)}" if eqx.is_array(values) else repr(values)
    rows = np.asarray(values)[:_SHOWN]
    text = np.array2string(rows, precision=6, suppress_small=True, separator=", ")
    more = ", ..." if len(values) > _SHOWN else ""
    return " ".join(text.split()) + more


class State(eqx.Module):
    r"""Poses and twists of all bodies, independent of any parametrization.

    **Arguments:**

    - `position`: positions of the centres of mass, shape (L, 3), space components, m.
    - `orientation`: unit quaternions, scalar first, shape (L, 4); body to space.
    - `velocity`: velocities of the centres of mass, shape (L, 3), space components, m/s.
    - `angular_velocity`: shape (L, 3), **body** components, rad/s.
    - `angles`: unwrapped angles of joints by their names, rad. Poses determine the angle of a
      hinge up to full revolutions; the value nearest to `angles[name]` is used, or without an
      entry the principal value in $(-\pi, \pi]$. Torsion springs, motors, couplings and joint
      sensors depend on it.

    Omitted positions and velocities are zero, omitted orientations the identity. The leading axis
    may be omitted for one body. A `FixedPointBody` has orientation (1, 4) and angular velocity
    (1, 3); its position and velocity are zero.

    States that rigidjax computes for a system contain the angles of all joints in
    `System.angle_names`, so that `jax.tree.map` can combine them.

    **Attributes:** the first four arguments; `joint_angles`, shape (A,), rad, in the order of
    `angle_names`, or `None` without angles.
    **Raises:** `ValueError` for a wrong shape or different numbers of bodies.
    """

    position: Float[Array, "L 3"]
    orientation: Float[Array, "L 4"]
    velocity: Float[Array, "L 3"]
    angular_velocity: Float[Array, "L 3"]
    joint_angles: Float[Array, " A"] | None
    angle_names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        position: ArrayInput | None = None,
        orientation: ArrayInput | None = None,
        velocity: ArrayInput | None = None,
        angular_velocity: ArrayInput | None = None,
        angles: Mapping[str, ArrayInput] | None = None,
    ):
        given = {
            name: _rows(name, value, width)
            for name, value, width in (
                ("position", position, 3),
                ("orientation", orientation, 4),
                ("velocity", velocity, 3),
                ("angular_velocity", angular_velocity, 3),
            )
            if value is not None
        }
        counts = {name: value.shape[0] for name, value in given.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"`State(...)` needs one row for each body in every argument; got {counts} rows."
            )
        num_bodies = next(iter(counts.values()), 1)
        dtype = jnp.result_type(*given.values()) if given else jnp.result_type(float)
        given = {name: value.astype(dtype) for name, value in given.items()}
        zeros, identity = np.zeros((num_bodies, 3), dtype), np.eye(1, 4, dtype=dtype)
        self.position = as_leaf(given.get("position", zeros))
        self.orientation = as_leaf(given.get("orientation", identity.repeat(num_bodies, 0)))
        self.velocity = as_leaf(given.get("velocity", zeros))
        self.angular_velocity = as_leaf(given.get("angular_velocity", zeros))
        self.angle_names, self.joint_angles = _joint_angles(angles or {}, dtype)

    @property
    def angles(self) -> dict[str, Float[Array, ""]]:
        """Unwrapped angles of joints by their names, rad."""
        if self.joint_angles is None:
            return {}
        return {name: self.joint_angles[..., k] for k, name in enumerate(self.angle_names)}

    def with_angles(
        self, names: tuple[str, ...], joint_angles: Float[Array, " A"] | None
    ) -> "State":
        """Return the state with other unwrapped joint angles.

        **Arguments:** `names` of joints; `joint_angles`, shape (A,), rad, in the order of `names`.
        """
        return self._replace(angle_names=names, joint_angles=joint_angles if names else None)

    def __getitem__(self, index: Any) -> "State":
        """Return one of several states, such as `sol.states[-1]`, or for a slice some of them."""
        if self.position.ndim < 3 or isinstance(index, str):
            raise TypeError("`states[k]` takes the number of a sample; arrays have a row per body.")
        index = range(len(self.position))[index] if isinstance(index, int) else index
        return jax.tree.map(lambda leaf: leaf[index], self)

    def at_rest(self) -> "State":
        """Return the state with all velocities zero."""
        zero = jnp.zeros_like(self.velocity)
        return self._replace(velocity=zero, angular_velocity=jnp.zeros_like(self.angular_velocity))

    def normalized(self) -> "State":
        """Return the state with its quaternions scaled to unit length."""
        p = self.orientation
        p = p / jnp.sqrt(jnp.sum(p * p, axis=-1, keepdims=True))
        return self._replace(orientation=p)

    def __repr__(self) -> str:
        """Return at most seven lines: values of the first bodies, or shapes of a batch."""
        shape = jnp.shape(self.position)
        bodies = f"{shape[-2]} bodies" if len(shape) > 1 else "unknown bodies"
        batch = f", batch {shape[:-2]}" if len(shape) > 2 else ""
        lines = [f"State of {bodies}{batch}"]
        for name, unit in _PARTS:
            lines.append(f"  {name}{unit}: {_format_rows(getattr(self, name), 2)}")
        if self.angle_names:
            names = ", ".join(self.angle_names[:_SHOWN]) + ", ..." * (
                len(self.angle_names) > _SHOWN
            )
            lines.append(f"  angles, rad ({names}): {_format_rows(self.joint_angles, 1)}")
        return "\n".join(lines)

    def _replace(self, **fields: Any) -> "State":
        """Return the state with other values of these fields, unchecked: leaves may be batched."""
        new = object.__new__(State)
        for field in dataclasses.fields(self):
            value = fields.get(field.name, getattr(self, field.name))
            object.__setattr__(new, field.name, value)
        return new

    @property
    def num_bodies(self) -> int:
        """Number of bodies."""
        return self.orientation.shape[-2]

    def check_rows(self, num_bodies: int) -> None:
        """Raise `ValueError` unless the state has `num_bodies` rows."""
        if self.num_bodies != num_bodies:
            raise ValueError(
                f"The system has {num_bodies} bodies, the state has {self.num_bodies}. Give "
                "`State` one row for each body."
            )


def _joint_angles(
    angles: Mapping[str, ArrayInput], dtype: jnp.dtype
) -> tuple[tuple[str, ...], Array | None]:
    """Return names of joints and their checked angles in one array, `None` without angles."""
    if not isinstance(angles, Mapping):
        raise TypeError(
            "`State(angles=...)` takes a mapping from names of joints to angles in rad; got "
            f"{type(angles).__name__}."
        )
    if not angles:
        return (), None
    values = [
        check_finite(
            float_array(value, f"State(angles={{{name!r}: ...}})", ()), f"State(angles={name!r})"
        )
        for name, value in angles.items()
    ]
    stack = jnp.stack if is_traced(values) else np.stack
    return tuple(angles), as_leaf(stack(values).astype(dtype))
