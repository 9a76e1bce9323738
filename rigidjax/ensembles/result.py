"""Result of an ensemble."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..extras import import_optional
from .members import Members, Status

if TYPE_CHECKING:
    import xarray

# Number of failed members that the summary lists.
_MAX_LISTED = 10


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Ensemble:
    """Outputs and outcomes of N members.

    **Attributes:**

    - `members`: the parameters.
    - `outputs`: the return values of `run`, a pytree of arrays with a leading axis of N; a
      `Solution` is replaced by its times and states by name. `None` if statistics replace the
      outputs. The samples of a failed member are NaN.
    - `statistics`: the requested statistics by output and name.
    - `result`: names of `rj.RESULTS`, (N,). Runs inside further JAX transformations (`jax.grad`,
      `lax.scan`) are not counted; NaN in the outputs marks their failures.
    - `num_steps`: sum over all runs of a member, (N,).
    - `reached`: last time that the last run of a member reached, (N,), s.
    - `names`, `leaves`: names of the arrays in the outputs, and the arrays.
    - `joints`: names of the joints in the outputs.
    - `again`: the function behind `rerun`.
    """

    members: Members
    outputs: Any
    statistics: dict[str, dict[str, np.ndarray]]
    result: np.ndarray
    num_steps: np.ndarray
    reached: np.ndarray
    names: tuple[str, ...]
    leaves: tuple[np.ndarray, ...]
    joints: tuple[str, ...]
    again: Callable[..., "Ensemble"] = dataclasses.field(compare=False)

    def __len__(self) -> int:
        return self.members.count

    @property
    def failed(self) -> np.ndarray:
        """Indices of the members that failed, increasing."""
        return np.flatnonzero(self.result != "successful")

    @property
    def failures(self) -> dict[str, int]:
        """Number of failed members by the name of the result."""
        names, counts = np.unique(self.result[self.failed], return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def rerun(self, which: Any = None, **changes: Any) -> "Ensemble":
        """Evaluate some members again, by default those that failed.

        **Arguments:** `which`, indices of members; `changes`, keyword arguments for the run, such
        as a solver for `def run(parameters, solver=None)`.
        **Returns:** an `Ensemble` of these members.
        **Raises:** `ValueError` for an index out of range, and if there is no member to run.
        """
        index = self.failed if which is None else np.atleast_1d(np.asarray(which))
        if index.size == 0:
            raise ValueError("There is no member to run again: `which` is empty or none failed.")
        if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= len(self):
            raise ValueError(f"Members have the indices 0 to {len(self) - 1}; got {which!r}.")
        return self.again(self.members.select(index), changes)

    def to_xarray(
        self,
        dims: Mapping[str, tuple[str, ...]] | None = None,
        units: Mapping[str, str] | None = None,
    ) -> "xarray.Dataset":
        """Return parameters, outputs and outcomes with the dimension `member`.

        **Arguments:** `dims`, names of further dimensions by the name of an output or a parameter;
        `units`, the unit of each, likewise.
        **Raises:** `ValueError` for unknown names and a wrong number of dimensions.
        """
        xarray = import_optional("xarray", "Datasets of ensembles")

        arrays = dict(zip(self.members.names, self.members.leaves, strict=True))
        arrays |= {
            f"{name}_out" if name in arrays or name in Status._fields else name: leaf
            for name, leaf in zip(self.names, self.leaves, strict=True)
        }
        labels = label_dimensions({name: a.shape[1:] for name, a in arrays.items()}, dims, units)
        variables: dict[str, Any] = {
            name: (("member", *labels[name][0]), array, labels[name][1])
            for name, array in arrays.items()
        }
        variables["result"] = ("member", self.result, {})
        variables["num_steps"] = ("member", self.num_steps, {"units": "1"})
        variables["reached"] = ("member", self.reached, {"units": "s"})
        data = xarray.Dataset(variables).set_coords(self.members.names)
        return with_joint_names(data, self.joints)

    def __repr__(self) -> str:
        outputs = ", ".join(self.names) or ", ".join(self.statistics)
        if not len(self.failed):
            return f"Ensemble({len(self)} members; {outputs}; none failed)"
        causes = ", ".join(f"{count} {name}" for name, count in self.failures.items())
        listed = ", ".join(map(str, self.failed[:_MAX_LISTED]))
        rest = ", ..." if len(self.failed) > _MAX_LISTED else ""
        return (
            f"Ensemble({len(self)} members; {outputs}; {len(self.failed)} failed: {causes}; "
            f"numbers {listed}{rest})"
        )


_STATES = {
    "t": (("time",), "s"),
    "position": (("time", "body", "space"), "m"),
    "orientation": (("time", "body", "quaternion"), "1"),
    "velocity": (("time", "body", "space"), "m s-1"),
    "angular_velocity": (("time", "body", "axis"), "rad s-1"),
    "joint_angles": (("time", "joint"), "rad"),
    "energy": (("time",), "J"),
}


def with_joint_names(dataset: "xarray.Dataset", joints: Sequence[str]) -> "xarray.Dataset":
    """Return the dataset with the names of the joints whose angles it contains."""
    if dataset.sizes.get("joint") != len(joints):
        return dataset
    return dataset.assign_coords(joint=list(joints))


def label_dimensions(
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, tuple[str, ...]] | None,
    units: Mapping[str, str] | None,
) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """Return names of the dimensions after the member axis, and attributes, by array name."""
    dims, units = dict(dims or {}), dict(units or {})
    unknown = sorted({*dims, *units} - set(shapes))
    if unknown:
        raise ValueError(f"There is no output or parameter {unknown[0]!r}; there are {[*shapes]}.")
    labels = {}
    for name, shape in shapes.items():
        default, unit = _STATES.get(name.rpartition(".")[2], ((), ""))
        if len(default) != len(shape):
            default, unit = tuple(f"{name}_{k}" for k in range(len(shape))), ""
        names = tuple(dims.get(name, default))
        if len(names) != len(shape):
            raise ValueError(f"`dims` of {name!r} must name {len(shape)} dimensions; got {names}.")
        unit = units.get(name, unit)
        labels[name] = names, {"units": unit} if unit else {}
    return labels
