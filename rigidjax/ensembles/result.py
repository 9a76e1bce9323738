"""What an ensemble returns."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..results import RESULTS
from .members import ENDS, Members

if TYPE_CHECKING:
    import xarray

# So many failures are listed in words.
_LISTED = 10


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Ensemble:
    """Outputs and ends of N members.

    **Attributes:**

    - `members`: the parameters.
    - `outputs`: what the run returned, a pytree of arrays with N in front; of a `Solution` its
      times and states by name. `None` where statistics were asked for instead. A member that
      failed has NaN where its run did not come.
    - `statistics`: by output and name, where they were asked for.
    - `result` (N,): names of `rj.RESULTS`; `num_steps` (N,), of all runs of a member; `reached`
      (N,), the time that its last run came to, s. What happens inside of further transformations of
      a run (`jax.grad`, `lax.scan`) is not counted: there NaN says that a member failed.
    """

    members: Members
    outputs: Any
    statistics: dict[str, dict[str, np.ndarray]]
    result: np.ndarray
    num_steps: np.ndarray
    reached: np.ndarray
    names: tuple[str, ...]
    leaves: tuple[np.ndarray, ...]
    again: Callable[..., "Ensemble"] = dataclasses.field(compare=False)

    def __len__(self) -> int:
        return self.members.count

    @property
    def failed(self) -> np.ndarray:
        """Numbers of the members that failed, increasing."""
        return np.flatnonzero(self.result != "successful")

    @property
    def failures(self) -> dict[str, int]:
        """How many members failed, by the name of the result."""
        names, counts = np.unique(self.result[self.failed], return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def rerun(self, which: Any = None, **changes: Any) -> "Ensemble":
        """The same for some members, their numbers given, those that failed by default.

        **Arguments:** `which`, numbers of members; `changes`, keyword arguments for the run, such
        as a solver for `def run(parameters, solver=None)`.
        **Raises:** `ValueError` if there is no such member.
        """
        index = self.failed if which is None else np.atleast_1d(np.asarray(which))
        if index.size == 0:
            raise ValueError("No member is to be run again: `which` is empty, none failed.")
        if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= len(self):
            raise ValueError(f"Members have the numbers 0 to {len(self) - 1}; got {which!r}.")
        return self.again(self.members.chosen(index), changes)

    def to_xarray(
        self,
        dims: Mapping[str, tuple[str, ...]] | None = None,
        units: Mapping[str, str] | None = None,
    ) -> "xarray.Dataset":
        """Parameters, outputs and ends with the dimension `member`.

        **Arguments:** by the name of an output or a parameter: `dims`, its further dimensions,
        `units`.
        **Raises:** `ValueError` for names that are not there, for dimensions that do not fit.
        """
        import xarray

        arrays = dict(zip(self.members.names, self.members.leaves, strict=True))
        arrays |= {
            _free(name, arrays): leaf for name, leaf in zip(self.names, self.leaves, strict=True)
        }
        labels = labelled({name: a.shape[1:] for name, a in arrays.items()}, dims, units)
        variables: dict[str, Any] = {
            name: (("member", *labels[name][0]), array, labels[name][1])
            for name, array in arrays.items()
        }
        variables["result"] = ("member", self.result, {})
        variables["num_steps"] = ("member", self.num_steps, {"units": "1"})
        variables["reached"] = ("member", self.reached, {"units": "s"})
        return xarray.Dataset(variables).set_coords([n for n in self.members.names])

    def __repr__(self) -> str:
        outputs = ", ".join(self.names) or ", ".join(self.statistics)
        if not len(self.failed):
            return f"Ensemble({len(self)} members; {outputs}; none failed)"
        causes = ", ".join(f"{count} {name}" for name, count in self.failures.items())
        listed = ", ".join(map(str, self.failed[:_LISTED]))
        rest = ", ..." if len(self.failed) > _LISTED else ""
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


def labelled(
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, tuple[str, ...]] | None,
    units: Mapping[str, str] | None,
) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """Names of the dimensions behind the members, and attributes, by the name of an array."""
    dims, units = dict(dims or {}), dict(units or {})
    unknown = sorted({*dims, *units} - set(shapes))
    if unknown:
        raise ValueError(f"There is no output or parameter {unknown[0]!r}; there are {[*shapes]}.")
    labels = {}
    for name, shape in shapes.items():
        known, unit = _STATES.get(name.rpartition(".")[2], ((), ""))
        if len(known) != len(shape):
            known, unit = tuple(f"{name}_{k}" for k in range(len(shape))), ""
        own = tuple(dims.get(name, known))
        if len(own) != len(shape):
            raise ValueError(f"`dims` of {name!r} must name {len(shape)} dimensions; got {own}.")
        unit = units.get(name, unit)
        labels[name] = own, {"units": unit} if unit else {}
    return labels


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """The name of an output beside those of the parameters."""
    return f"{name}_out" if name in taken or name in ENDS else name


# What a member of which a parameter is NaN ended with, whatever its run made of it.
INVALID = int(jax.tree.leaves(RESULTS.invalid_input)[0])
