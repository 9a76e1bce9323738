"""A system at one time, as controllers and events see it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..checks import did_you_mean, is_traced
from ..mechanics import has_joints
from ..state import State
from .charts import Unknowns, split_chart


class SystemView:
    """A system at one time: its state, joints, frames and sensor readings.

    Policies, sampled controllers, transitions and observers receive it. Every quantity is computed
    from the unknowns when it is first read; nothing is computed that is not read.

    ```python
    def policy(t, view):
        return -3.0 * view.coordinates["hinge"][0] - view.rates["hinge"][0]
    ```

    **Attributes:** `model`, the formulation; `t`, time, s; `y`, the unknowns, shape
    (num_unknowns,), or `Charted`.
    """

    def __init__(self, model: Any, t: Any, y: Unknowns):
        self.model, self.y = model, y
        self.t = jnp.asarray(t, split_chart(y)[0].dtype)
        self._parts: dict[str, Any] = {}
        self._readings: list[tuple[Any, Array]] = []

    @property
    def state(self) -> State:
        """State of all bodies."""
        return self._part("state")

    @property
    def coordinates(self) -> Mapping[str, Float[Array, " k"]]:
        """Coordinates of every joint by its name, (k,), lengths (m) before angles (rad).

        See `Solution.coordinates` for the range of angles. An unknown name is a `KeyError`.
        """
        return _ByName("joint", self._joint_names, lambda name: self._part("joints")[0][name])

    @property
    def rates(self) -> Mapping[str, Float[Array, " f"]]:
        """Rates of every joint by its name, (f,), m/s and rad/s; see `coordinates`."""
        return _ByName("joint", self._joint_names, lambda name: self._part("joints")[1][name])

    @property
    def frames(self) -> Mapping[str, tuple[Float[Array, "3"], Float[Array, "3 3"]]]:
        """Pose of every `Frame` by its name: its origin, (3,) m, and its rotation matrix, (3, 3).

        See `Solution.frames`. An unknown name is a `KeyError`.
        """
        names = tuple(frame.name for frame in self.model.multibody.frames)
        return _ByName("frame", names, lambda name: self._part("frames")[name])

    @property
    def inputs(self) -> Mapping[str, Float[Array, " *size"]]:
        """Values of the inputs that sampled controllers or transitions set, by name.

        An unknown name is a `KeyError`.
        """
        held = self.model.held_inputs(self.y)
        return _ByName("held input", tuple(held), held.__getitem__)

    @property
    def sensors(self) -> "Readings":
        """Readings by sensor, such as `view.sensors[rj.Gyroscope("body")]`.

        A sensor that the model lacks is a `ValueError`.
        """
        return Readings(self._read)

    def precompute(self) -> "SystemView":
        """Return a view that has computed the quantities that were read from this one."""
        view = SystemView(self.model, self.t, self.y)
        for name in self._parts:
            view._part(name)
        for sensor, _ in self._readings:
            if not is_traced(sensor):
                view._read(sensor)
        return view

    @property
    def _joint_names(self) -> tuple[str, ...]:
        if not has_joints(self.model.system):
            return ()
        return tuple(str(joint.name) for joint in self.model.multibody.joints)

    def _part(self, name: str) -> Any:
        if name not in self._parts:
            compute = {
                "joints": self.model.joint_coordinates,
                "state": self.model.decode,
                "frames": self.model.frame_poses,
            }[name]
            self._parts[name] = compute(self.t, self.y)
        return self._parts[name]

    def _read(self, sensor: Any) -> Array:
        for known, reading in self._readings:
            if _are_same(known, sensor):
                return reading
        sensor.check(self.model)
        reading = jnp.asarray(sensor.predict(self.model, self.t, self.y))
        self._readings.append((sensor, reading))
        return reading


def _are_same(a: Any, b: Any) -> bool:
    """Return whether two sensors measure the same: their names do not contain points of a body."""
    (leaves, structure), (others, other) = map(jax.tree.flatten, (a, b))
    return structure == other and all(
        x is y or (not is_traced((x, y)) and np.array_equal(x, y))
        for x, y in zip(leaves, others, strict=True)
    )


class Readings:
    """Readings of any sensor of a system at one time."""

    def __init__(self, read: Callable[[Any], Array]):
        self._read = read

    def __getitem__(self, sensor: Any) -> Array:
        """Return the reading of a sensor, shape `sensor.value_shape`.

        **Errors:** `TypeError` for an object that is not a sensor; `ValueError` if the
        model lacks the measured quantity.
        """
        if not callable(getattr(sensor, "predict", None)):  # Sensors are defined above this layer.
            raise TypeError(
                f'`sensors[...]` takes a sensor such as `rj.Gyroscope("body")`; got {sensor!r}.'
            )
        return self._read(sensor)


class _ByName(Mapping):
    """Values by name; an unknown name raises an error that suggests a similar one."""

    def __init__(self, kind: str, names: tuple[str, ...], value: Callable[[str], Any]):
        self._kind, self._names, self._value = kind, names, value

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            there_are = f" The {self._kind}s are {list(self._names)}."
            raise KeyError(
                f"There is no {self._kind} called {name!r}."
                + did_you_mean(name, self._names, there_are)
            )
        return self._value(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


# The quantities that have been computed are not part of it.
jax.tree_util.register_pytree_node(
    SystemView, lambda view: ((view.model, view.t, view.y), None), lambda _, parts: _view_of(*parts)
)


def _view_of(model: Any, t: Any, y: Any) -> SystemView:
    """Return a view without converting its parts, which may be placeholders of a transformation."""
    view = object.__new__(SystemView)
    view.model, view.t, view.y, view._parts, view._readings = model, t, y, {}, []
    return view
