"""How runs are simulated: the settings that all of identification takes."""

import dataclasses
from typing import Any, TypedDict

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..adjoints.any_mode import AnyMode
from ..mechanics import has_joints
from ..projection import AbstractProjection
from ..simulate.arguments import (
    DEFAULT_TOLERANCE,
    check_solver,
    check_tolerances,
    make_controller,
    takes_tolerances,
)
from ..solvers.conserving.base import AbstractStructureSolver
from ..solvers.dae.base import AbstractDAESolver
from ..solvers.dae.radau import AbstractRadau
from ..solvers.lie import GeneralizedAlpha
from ..solvers.lie.base import AbstractGroupSolver

# Structure-preserving steps whose tangents kernels find faster with joints too.
_BY_KERNELS = AbstractGroupSolver | GeneralizedAlpha


class Settings(TypedDict, total=False):
    """The arguments of `Simulation`, for functions that also take them one by one."""

    solver: diffrax.AbstractSolver | None
    rtol: float
    atol: float
    dt: ArrayLike | None
    projection: bool | AbstractProjection
    adjoint: diffrax.AbstractAdjoint | None
    max_steps: int
    backend: str


class Simulation(eqx.Module):
    """How runs are simulated, in fits, designs and sensitivities alike.

    **Arguments:** those of `rj.simulate` of the same names, but for

    - `solver`: `None` for the default of the function: `diffrax.Dopri5()` in fits, else
      `diffrax.Dopri8()`.
    - `adjoint`: one that serves the mode in which derivatives are taken; `None` for the fastest.
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

    def prepared(
        self,
        dtype: Any,
        *,
        solver: diffrax.AbstractSolver | None = None,
        adjoint: diffrax.AbstractAdjoint | None = None,
    ) -> "Simulation":
        """Checked for a precision, with a default solver and adjoint.

        Tolerances and steps become arrays: one program serves all of them.
        """
        solver = check_solver(solver if self.solver is None else self.solver)
        make_controller(solver, None, self.rtol, self.atol, self.dt, dtype)
        # The other backends have an adjoint of their own.
        adjoint = adjoint if self.adjoint is None and self.backend == "auto" else self.adjoint
        numbers = {
            name: jnp.asarray(getattr(self, name), dtype)
            for name in ("rtol", "atol", "dt")
            if getattr(self, name) is not None
        }
        return dataclasses.replace(self, solver=solver, adjoint=adjoint, **numbers)

    def forward(self, model: Any) -> "Simulation":
        """With the fastest adjoint for tangents of a model's runs, if none is chosen.

        That of kernels, but where each step eliminates a large matrix, for which XLA has LAPACK:
        Radau methods (kernels take 1.4 times as long in a fit of a body, to compile 1.9 times)
        and, with joints, structure-preserving steps but those on groups (`EnergyMomentum`: a batch
        of 16 double pendulums 1.5 times as long). Tangents of diffrax's implicit methods call back
        into Python.
        """
        if self.adjoint is not None or self.backend != "auto":
            return self
        solver = self.solver
        jointed = isinstance(solver, AbstractStructureSolver) and has_joints(model.system)
        implicit = isinstance(solver, diffrax.AbstractImplicitSolver)
        by_xla = (
            isinstance(solver, AbstractRadau)
            or (jointed and not isinstance(solver, _BY_KERNELS))
            or (implicit and not isinstance(solver, AbstractDAESolver))
        )
        return dataclasses.replace(self, adjoint=AnyMode(backend="xla" if by_xla else "auto"))

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `rj.simulate`."""
        given = {name: getattr(self, name) for name in Settings.__annotations__}
        if not takes_tolerances(check_solver(self.solver), None, self.dt):
            given |= {"rtol": DEFAULT_TOLERANCE, "atol": DEFAULT_TOLERANCE}  # of no effect
        return given

    def resolution(self, dtype: Any) -> Float[Array, ""]:
        """Singular values of a Jacobian that count as zero, relative to the largest.

        Derivatives are those of the discrete trajectory, as accurate as it is.
        """
        return jnp.maximum(10 * self.rtol, np.sqrt(jnp.finfo(dtype).eps))


def simulation_of(entry: str, simulation: Simulation | None, settings: Settings) -> Simulation:
    """The settings that a function was given, as one object or one by one.

    **Errors:** `TypeError` for another object or an unknown name; `ValueError` for both at once.
    """
    for name in settings:
        if name not in Settings.__annotations__:
            raise TypeError(f"{entry}() got an unexpected keyword argument {name!r}")
    if simulation is None:
        return _with_effect(Simulation(**settings))
    if not isinstance(simulation, Simulation):
        raise TypeError(f"`{entry}(simulation=...)` takes an `rj.Simulation`; got {simulation!r}.")
    if settings:
        raise ValueError(
            f"`{entry}` takes `simulation=rj.Simulation(...)` or its settings singly, not both; "
            f"got {list(settings)} besides. Put them into the `rj.Simulation`."
        )
    return _with_effect(simulation)


def _with_effect(simulation: Simulation) -> Simulation:
    """Return the settings; an error for tolerances that would be of no effect."""
    if isinstance(simulation.rtol, jax.Array):  # `prepared` before
        return simulation
    solver = check_solver(simulation.solver)
    check_tolerances(solver, None, simulation.rtol, simulation.atol, simulation.dt)
    return simulation
