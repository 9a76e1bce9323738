"""Simulation settings that all functions of identification share."""

import dataclasses
from typing import Any, TypedDict

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...checks import is_traced
from ...projection import AbstractProjection
from ...simulate.arguments import (
    DEFAULT_TOLERANCE,
    Tolerances,
    check_solver,
    make_controller,
    takes_tolerances,
)
from ...simulate.backend_policy import adjoint_of_tangents

# Structure-preserving methods whose tangents are faster natively compiled, with joints too.


class Settings(TypedDict, total=False):
    """The arguments of `Simulation`, for functions that also accept them as keywords."""

    solver: diffrax.AbstractSolver | None
    rtol: float
    atol: float
    dt: ArrayLike | None
    projection: bool | AbstractProjection
    adjoint: diffrax.AbstractAdjoint | None
    max_steps: int
    backend: str


class Simulation(eqx.Module):
    """Settings for the simulation of runs in fits, designs and sensitivities.

    **Arguments:** as those of `rj.simulate` of the same names, except

    - `solver`: `None` for the default of the function: `diffrax.Dopri5()` in fits, else
      `diffrax.Dopri8()`.
    - `adjoint`: one that supports the mode in which derivatives are computed; `None` for the
      fastest.
    - `max_steps`: 4096 if left out.
    """

    solver: diffrax.AbstractSolver | None = None
    rtol: Any = DEFAULT_TOLERANCE
    atol: Any = DEFAULT_TOLERANCE
    dt: Any = None
    projection: bool | AbstractProjection = True
    adjoint: diffrax.AbstractAdjoint | None = None
    max_steps: int = eqx.field(static=True, default=4096)
    backend: str = eqx.field(static=True, default="auto")

    def with_defaults(
        self,
        dtype: Any,
        *,
        solver: diffrax.AbstractSolver | None = None,
        adjoint: diffrax.AbstractAdjoint | None = None,
    ) -> "Simulation":
        """Return the settings, checked for a precision, with a default solver and adjoint.

        Tolerances and steps become arrays, so that changing them does not recompile.
        """
        solver = check_solver(solver if self.solver is None else self.solver)
        make_controller(solver, None, Tolerances(self.rtol, self.atol), self.dt, dtype)
        # With another backend the adjoint must be chosen for that backend.
        adjoint = adjoint if self.adjoint is None and self.backend == "auto" else self.adjoint
        arrays = {
            name: jnp.asarray(getattr(self, name), dtype)
            for name in ("rtol", "atol", "dt")
            if getattr(self, name) is not None
        }
        return dataclasses.replace(self, solver=solver, adjoint=adjoint, **arrays)

    def forward(self, model: Any) -> "Simulation":
        """Return the settings with the fastest adjoint for tangents, unless one is chosen."""
        if self.adjoint is not None or self.backend != "auto":
            return self
        return dataclasses.replace(self, adjoint=adjoint_of_tangents(self.solver, model.system))

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `rj.simulate`."""
        arguments = {name: getattr(self, name) for name in Settings.__annotations__}
        if not takes_tolerances(check_solver(self.solver), None, self.dt):
            arguments |= {"rtol": DEFAULT_TOLERANCE, "atol": DEFAULT_TOLERANCE}  # ignored
        return arguments

    def resolution(self, dtype: Any) -> Float[Array, ""]:
        """Return the relative singular value of a Jacobian below which it counts as zero.

        Derivatives are those of the discrete trajectory and have its accuracy.
        """
        xp = jnp if is_traced(self.rtol) else np
        return xp.maximum(10 * self.rtol, np.sqrt(jnp.finfo(dtype).eps))


def resolve_simulation(entry: str, simulation: Simulation | None, settings: Settings) -> Simulation:
    """Return the settings that a function was given, as one object or as keywords.

    **Errors:** `TypeError` for another object or an unknown name; `ValueError` for both at once.
    """
    for name in settings:
        if name not in Settings.__annotations__:
            raise TypeError(f"{entry}() got an unexpected keyword argument {name!r}")
    if simulation is None:
        return _check_tolerances_used(Simulation(**settings))
    if not isinstance(simulation, Simulation):
        raise TypeError(f"`{entry}(simulation=...)` takes an `rj.Simulation`; got {simulation!r}.")
    if settings:
        raise ValueError(
            f"`{entry}` takes `simulation=rj.Simulation(...)` or its settings singly, not both; "
            f"got {list(settings)} besides. Put them into the `rj.Simulation`."
        )
    return _check_tolerances_used(simulation)


def _check_tolerances_used(simulation: Simulation) -> Simulation:
    """Return the settings, after checking that the given tolerances have an effect."""
    if isinstance(simulation.rtol, jax.Array):  # `prepared` before
        return simulation
    solver = check_solver(simulation.solver)
    Tolerances(simulation.rtol, simulation.atol).check_used(solver, None, simulation.dt)
    return simulation
