"""Choice between the native backend and XLA for runs and for their tangents."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import diffrax

from ..adjoints.any_mode import AnyMode
from ..mechanics import has_joints
from ..native import BACKENDS, Backend, call_as_single_kernel, call_by_kernel
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.dae.base import AbstractDAESolver

T = TypeVar("T")
# Module constants, because building modules costs more than a short run.
_ANY_MODE = {name: AnyMode(backend=name) for name in BACKENDS}


def choose_adjoint(
    adjoint: diffrax.AbstractAdjoint | None, backend: str
) -> diffrax.AbstractAdjoint:
    """Return the adjoint for the backend that a user asks for."""
    if adjoint is None:
        return _ANY_MODE[backend]
    if backend == "auto":
        return adjoint
    if isinstance(adjoint, AnyMode):
        return dataclasses.replace(adjoint, backend=backend)
    if backend == "native":
        raise ValueError(
            '`backend="native"` runs with `rj.AnyMode()`; got '
            f"`adjoint={type(adjoint).__name__}()`. Omit one of the two."
        )
    return adjoint


def adjoint_of_tangents(solver: diffrax.AbstractSolver | None, system: Any) -> AnyMode:
    """Return the adjoint with the fastest backend for tangents.

    Tangents are compiled natively except where each step eliminates a large matrix, for which
    LAPACK is faster: in Radau methods, and in structure-preserving methods with joints except
    those on groups (docs/benchmarks). Tangents of diffrax's implicit methods call back into
    Python and are not compiled natively either.
    """
    # Only derivatives in batches ask, and these modules take long to import.
    from ..solvers.dae.radau import AbstractRadau
    from ..solvers.lie import GeneralizedAlpha
    from ..solvers.lie.base import AbstractGroupSolver

    jointed = isinstance(solver, AbstractStructureSolver) and has_joints(system)
    implicit = isinstance(solver, diffrax.AbstractImplicitSolver)
    by_xla = (
        isinstance(solver, AbstractRadau)
        or (jointed and not isinstance(solver, AbstractGroupSolver | GeneralizedAlpha))
        or (implicit and not isinstance(solver, AbstractDAESolver))
    )
    return _ANY_MODE["xla" if by_xla else "auto"]


def choose_call(adjoint: diffrax.AbstractAdjoint) -> Callable[..., Any]:
    """Return how functions beside the steps of a run are called: natively or directly."""
    is_native = isinstance(adjoint, AnyMode) and adjoint.backend != "xla"
    return call_by_kernel if is_native else _call_directly


def choose_call_after(solution: diffrax.Solution) -> Callable[..., Any]:
    """Return how functions of a run's results are called: by the backend of the run."""
    return call_by_kernel if backend_of(solution) == "native" else _call_directly


def choose_call_of_run(adjoint: diffrax.AbstractAdjoint) -> Callable[..., Any]:
    """Return how a run is called: as one kernel if all of it is native, or directly."""
    if choose_call(adjoint) is _call_directly:
        return _call_directly
    return functools.partial(call_as_single_kernel, _ran_native)


def _ran_native(results: tuple[Any, Any]) -> bool:
    return results[0].stats["backend"] == "native"


def _call_directly(function: Callable[..., T], *args: Any) -> T:
    return function(*args)


def backend_of(solution: diffrax.Solution) -> Backend:
    """Return the backend that computed a run."""
    return solution.stats.get("backend", Backend("xla", ("a diffrax adjoint",)))
