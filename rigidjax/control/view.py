"""The system at one time, as controllers and events see it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar
from ..checks import did_you_mean
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns, split_chart
from ..mechanics import has_joints
from ..sensors import AbstractSensor
from ..state import State

Key = TypeVar("Key")


class SystemView(eqx.Module):
    """A system at one time: its state, joints, frames and sensor readings.

    Policies, events of transitions and observers receive it. Every quantity is computed from the
    unknowns when it is read; nothing is computed that is not read.

    ```python
    def policy(t, view):
        return -3.0 * view.coordinates["hinge"][0] - view.rates["hinge"][0]
    ```

    **Attributes:** `model`, the formulation; `t`, time, s; `y`, the unknowns, shape
    (num_unknowns,), or `Charted`.
    """

    model: AbstractFormulation
    t: Scalar
    y: Unknowns

    def __init__(self, model: AbstractFormulation, t: Any, y: Unknowns):
        self.model, self.y = model, y
        self.t = jnp.asarray(t, split_chart(y)[0].dtype)

    @property
    def state(self) -> State:
        """State of all bodies."""
        return self.model.decode(self.t, self.y)

    @property
    def coordinates(self) -> Mapping[str, Float[Array, " k"]]:
        """Coordinates of every joint by its name, (k,), lengths (m) before angles (rad).

        See `Solution.coordinates` for the range of angles. An unknown name is a `KeyError`.
        """
        return _ByName("joint", self._joint_names, lambda name: self._joints[0][name])

    @property
    def rates(self) -> Mapping[str, Float[Array, " f"]]:
        """Rates of every joint by its name, (f,), m/s and rad/s; see `coordinates`."""
        return _ByName("joint", self._joint_names, lambda name: self._joints[1][name])

    @property
    def frames(self) -> Mapping[str, tuple[Float[Array, "3"], Float[Array, "3 3"]]]:
        """Pose of every `Frame` by its name: its origin, (3,) m, and its rotation matrix, (3, 3).

        See `Solution.frames`. An unknown name is a `KeyError`.
        """
        names = tuple(frame.name for frame in self.model.multibody.frames)
        return _ByName("frame", names, lambda name: self.model.frame_poses(self.t, self.y)[name])

    @property
    def sensors(self) -> "Readings":
        """Readings by sensor, such as `view.sensors[rj.Gyroscope("body")]`."""
        return Readings(self)

    @property
    def _joint_names(self) -> tuple[str, ...]:
        if not has_joints(self.model.system):
            return ()
        return tuple(str(joint.name) for joint in self.model.multibody.joints)

    @property
    def _joints(self) -> tuple[dict[str, Array], dict[str, Array]]:
        return self.model.joint_coordinates(self.t, self.y)


class Readings(eqx.Module):
    """Readings of any sensor of a system at one time."""

    view: SystemView

    def __getitem__(self, sensor: AbstractSensor) -> Array:
        """Return the reading of a sensor, shape `sensor.value_shape`.

        **Errors:** `TypeError` for what is no sensor; `ValueError` if the model lacks the measured
        quantity.
        """
        if not isinstance(sensor, AbstractSensor):
            raise TypeError(
                '`view.sensors[...]` takes a sensor such as `rj.Gyroscope("body")`; got '
                f"{sensor!r}."
            )
        view = self.view
        sensor.check(view.model)
        return sensor.predict(view.model, view.t, view.y)


class _ByName(Mapping):
    """Values of things that have names; an unknown name is an error that suggests another."""

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
