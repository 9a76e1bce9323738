"""The traced function of an ensemble, and its vectorised evaluation for chunks of members."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxprs_in_params

from ..checks import find_duplicates
from ..persistent_jit import Executable
from ..results import RESULTS, RunOutcome, failures_as_nan, record_runs
from ..simulate.solution import Solution
from .members import Device, Members, Status, leaf_name


class TracedRun:
    """The user's `run`, traced once and evaluated for chunks of members.

    **Attributes:** `names` and `shapes`, the paths and the shapes with dtypes of the output leaves
    of one member; `joints`, the names that its arrays `joint_angles` have in common, if any.
    """

    def __init__(self, run: Callable[[Any], Any], members: Members):
        # Unwrapped, because an earlier trace could contain runs that raise on failure.
        is_jitted = isinstance(run, type(jax.jit(lambda: None)))
        self._run = getattr(run, "__wrapped__", run) if is_jitted else run
        self._members = members
        self.joints: tuple[str, ...] = ()
        leaves = [jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in members.leaves]
        try:
            with failures_as_nan(True):
                self._traced, out = jax.make_jaxpr(self._run_member, return_shape=True)(leaves)
        except jax.errors.ConcretizationTypeError as error:
            raise TypeError(
                "The run of an ensemble is traced once for all members: shapes of its outputs and "
                "Python control flow (`if`, `int(...)`) cannot depend on parameters of a member. "
                "Use `jnp.where` or `jax.lax.cond`, and arrays of one shape."
            ) from error
        paths, self.structure = jax.tree_util.tree_flatten_with_path(out[0])
        self.names = [leaf_name(path) for path, _ in paths]
        self.shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for _, leaf in paths]
        if not self.names:
            raise ValueError("The run of an ensemble returns no arrays; return at least one.")
        if find_duplicates(self.names):
            raise ValueError(f"Outputs of a run must have different names; got {self.names}.")
        self._compiled: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, rows: list[Any], device: Device) -> tuple[list[Any], Status]:
        """Return outputs and status of the members in `rows`, on the device."""
        rows = jax.device_put(rows, device)
        # The lock prevents concurrent threads from compiling the same function.
        with self._lock:
            key = device, rows[0].shape[0]
            if key not in self._compiled:
                with failures_as_nan(True):
                    self._compiled[key] = jax.jit(jax.vmap(self._run_member)).lower(rows).compile()
        outputs, status = self._compiled[key](rows)
        return jax.tree.leaves(outputs), status

    def fingerprint(self) -> str:
        """Return a hash of the jaxpr and its constants."""
        total = hashlib.sha256()
        for closed in _nested_jaxprs(self._traced):
            # Addresses of host functions differ from process to process.
            total.update(re.sub(r"0x[0-9a-f]+", "", str(closed.jaxpr)).encode())
            for constant in closed.consts:
                total.update(np.asarray(constant).tobytes())
        return total.hexdigest()[:16]

    def _run_member(self, leaves: list[Any]) -> tuple[Any, Status]:
        with record_runs() as recorded:
            outputs = self._run(self._members.tree(leaves))
        is_solution = lambda x: isinstance(x, Solution)  # noqa: E731
        solutions = [x for x in jax.tree.leaves(outputs, is_leaf=is_solution) if is_solution(x)]
        joints = {solution.model.multibody.angle_names for solution in solutions}
        self.joints = joints.pop() if len(joints) == 1 else ()
        outputs = jax.tree.map(_trajectory, outputs, is_leaf=is_solution)
        outputs = jax.tree.map(jnp.asarray, eqx.filter(outputs, eqx.is_array_like))
        runs = recorded or [RunOutcome.from_solution(solution) for solution in solutions]
        return outputs, _status(runs, jax.tree.leaves(outputs))


def _nested_jaxprs(closed: ClosedJaxpr) -> Iterator[ClosedJaxpr]:
    """Yield a jaxpr and the nested jaxprs that its text omits: those of runs and executables."""
    yield closed
    waiting = [closed.jaxpr]
    while waiting:
        for equation in waiting.pop().eqns:
            for value in equation.params.values():
                if isinstance(value, Executable):
                    hidden = jax.make_jaxpr(value.subfunction)(*value.arguments)
                else:
                    hidden = getattr(value, "jaxpr", None)
                if isinstance(hidden, ClosedJaxpr):
                    yield from _nested_jaxprs(hidden)
            waiting += jaxprs_in_params(equation.params)


def _trajectory(x: Any) -> Any:
    """Replace a solution by named quantities, so that its model is not stored N times."""
    if not isinstance(x, Solution):
        return x
    if x.ts is None or x.ys is None:
        raise ValueError("An ensemble stores the samples of a `Solution`: pass `ts` to `simulate`.")
    names = ["position", "orientation", "velocity", "angular_velocity"]
    # Without tracked joints the angles follow from the poses.
    if x.model.multibody.tracked_joints:
        names.append("joint_angles")
    states = {name: getattr(x.states, name) for name in names}
    return {"t": x.ts, "energy": x.energy, **states}


def _status(runs: list[RunOutcome], outputs: list[Any]) -> Status:
    """Return the first failure, the total number of steps and the end time of the last run."""
    result: Any = RESULTS.successful
    num_steps, reached = jnp.zeros((), jnp.int32), jnp.asarray(jnp.nan)
    for run in runs:
        result = RESULTS.where(result == RESULTS.successful, run.failure, result)
        num_steps = num_steps + jnp.asarray(run.num_steps, jnp.int32)
        reached = run.reached
    # A run inside a further transformation is not recorded; only its outputs show a failure.
    finite = [
        jnp.all(~jnp.isnan(leaf)) for leaf in outputs if jnp.issubdtype(leaf.dtype, jnp.inexact)
    ]
    okay = jnp.all(jnp.stack(finite)) if finite else jnp.array(True)
    has_nan = (result == RESULTS.successful) & ~okay
    result = RESULTS.where(has_nan, RESULTS.nonfinite_state, result)
    (number,) = jax.tree.leaves(result)
    return Status(jnp.asarray(number, jnp.int32), num_steps, reached)


def result_names(results: np.ndarray) -> np.ndarray:
    """Return the names of results from their values in `rj.RESULTS`."""
    return np.array([_NAMES[int(number)] for number in results.reshape(-1)]).reshape(results.shape)


# Result of a member with a NaN parameter, whatever the outcome of its run.
INVALID = int(jax.tree.leaves(RESULTS.invalid_input)[0])
# Equinox has no public function from the values of an enumeration to its names.
_NAMES = {
    int(jax.tree.leaves(item)[0]): name
    for name, item in RESULTS._name_to_item.items()  # pyright: ignore[reportAttributeAccessIssue]
}
