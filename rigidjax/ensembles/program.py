"""One member of an ensemble as a traced program, and many of them at once."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxprs_in_params

from ..checks import find_duplicates
from ..results import RESULTS, RunOutcome, failures_as_nan, record_runs
from ..simulate.solution import Solution
from .members import Device, Members, name_of


class Status(NamedTuple):
    """How members ended, with the members in front.

    **Attributes:** `result`, numbers of `rj.RESULTS`; `num_steps`, of all runs of a member;
    `reached`, the time that its last run came to, s.
    """

    result: Any
    num_steps: Any
    reached: Any


class Program:
    """`run` for chunks of members, traced once.

    **Attributes:** `names`, `shapes` of the outputs of one member: a leaf's path and its shape and
    type.
    """

    def __init__(self, run: Callable[[Any], Any], members: Members):
        # Traced anew, so that runs inside see that failures are to be kept.
        is_jitted = isinstance(run, type(jax.jit(lambda: None)))
        self._run = getattr(run, "__wrapped__", run) if is_jitted else run
        self._members = members
        one = [jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in members.leaves]
        try:
            with failures_as_nan(True):
                self._traced, out = jax.make_jaxpr(self._member, return_shape=True)(one)
        except jax.errors.ConcretizationTypeError as error:
            raise TypeError(
                "The run of an ensemble is traced once for all members: shapes of its outputs and "
                "branches of Python (`if`, `int(...)`) cannot depend on parameters of a member. "
                "Use `jnp.where` or `jax.lax.cond`, and arrays of one shape."
            ) from error
        paths, self.structure = jax.tree_util.tree_flatten_with_path(out[0])
        self.names = [name_of(path) for path, _ in paths]
        self.shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for _, leaf in paths]
        if not self.names:
            raise ValueError("The run of an ensemble returns no arrays; return what is to be kept.")
        if find_duplicates(self.names):
            raise ValueError(f"Outputs of a run need different names; got {self.names}.")
        self._compiled: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, rows: list[Any], device: Device) -> tuple[list[Any], Status]:
        """Outputs and status of some members, with the members in front, on the device."""
        rows = jax.device_put(rows, device)
        # Threads that come at the same time compile it once.
        with self._lock:
            key = device, rows[0].shape[0]
            if key not in self._compiled:
                with failures_as_nan(True):
                    self._compiled[key] = jax.jit(jax.vmap(self._member)).lower(rows).compile()
        outputs, status = self._compiled[key](rows)
        return jax.tree.leaves(outputs), status

    def fingerprint(self) -> str:
        """A hash of the traced program and the constants in it."""
        total = hashlib.sha256()
        for program in _programs(self._traced):
            # Addresses of host functions differ from process to process.
            total.update(re.sub(r"0x[0-9a-f]+", "", str(program.jaxpr)).encode())
            for constant in program.consts:
                total.update(np.asarray(constant).tobytes())
        return total.hexdigest()[:16]

    def _member(self, leaves: list[Any]) -> tuple[Any, Status]:
        with record_runs() as noted:
            outputs = self._run(self._members.tree(leaves))
        is_solution = lambda x: isinstance(x, Solution)  # noqa: E731
        found = [x for x in jax.tree.leaves(outputs, is_leaf=is_solution) if is_solution(x)]
        outputs = jax.tree.map(_trajectory, outputs, is_leaf=is_solution)
        outputs = jax.tree.map(jnp.asarray, eqx.filter(outputs, eqx.is_array_like))
        runs = noted or [RunOutcome.from_solution(solution) for solution in found]
        return outputs, _status(runs, jax.tree.leaves(outputs))


def _programs(program: ClosedJaxpr) -> Iterator[ClosedJaxpr]:
    """A program, and those in it that its text does not show: of runs, by the parameter `solve`."""
    yield program
    waiting = [program.jaxpr]
    while waiting:
        for equation in waiting.pop().eqns:
            for value in equation.params.values():
                hidden = getattr(value, "jaxpr", None)
                if isinstance(hidden, ClosedJaxpr):
                    yield from _programs(hidden)
            waiting += jaxprs_in_params(equation.params)


def _trajectory(x: Any) -> Any:
    """Named quantities in the place of a solution, so that its model is not stored N times."""
    if not isinstance(x, Solution):
        return x
    if x.ts is None or x.ys is None:
        raise ValueError("An ensemble keeps what a `Solution` saved: give `simulate` times.")
    states = x.states
    quantities = {
        "t": x.ts,
        "position": states.position,
        "orientation": states.orientation,
        "velocity": states.velocity,
        "angular_velocity": states.angular_velocity,
        "energy": x.energy,
    }
    # Where nothing depends on revolutions, poses tell the angles.
    if x.model.multibody.tracked_joints:
        quantities["joint_angles"] = states.joint_angles
    return quantities


def _status(runs: list[RunOutcome], outputs: list[Any]) -> Status:
    """The first failure, all steps, the time of the last run."""
    result: Any = RESULTS.successful
    num_steps, reached = jnp.zeros((), jnp.int32), jnp.asarray(jnp.nan)
    for run in runs:
        result = RESULTS.where(result == RESULTS.successful, run.failure, result)
        num_steps = num_steps + jnp.asarray(run.num_steps, jnp.int32)
        reached = run.reached
    # Of a run deep inside of other transformations its outputs are all that is seen.
    finite = [
        jnp.all(~jnp.isnan(leaf)) for leaf in outputs if jnp.issubdtype(leaf.dtype, jnp.inexact)
    ]
    okay = jnp.all(jnp.stack(finite)) if finite else jnp.array(True)
    spoiled = (result == RESULTS.successful) & ~okay
    result = RESULTS.where(spoiled, RESULTS.nonfinite_state, result)
    (number,) = jax.tree.leaves(result)
    return Status(jnp.asarray(number, jnp.int32), num_steps, reached)


def names_of(results: np.ndarray) -> np.ndarray:
    """Names of `rj.RESULTS` by their numbers."""
    return np.array([_NAMES[int(number)] for number in results.reshape(-1)]).reshape(results.shape)


# Without a public way from numbers to names.
_NAMES = {
    int(jax.tree.leaves(item)[0]): name
    for name, item in RESULTS._name_to_item.items()  # pyright: ignore[reportAttributeAccessIssue]
}
